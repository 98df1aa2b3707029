#!/usr/bin/env bash
# Installs what is missing, builds into build/ and runs the tests labelled `ci`, or
# those of the label given as the first argument (`extended`). Further arguments go
# to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."

label=${1:-ci}
[ $# -gt 0 ] && shift

tools/install-packages.sh
cmake --preset default
cmake --build build
ctest --test-dir build --label-regex "^${label}\$" --output-on-failure \
  --no-tests=error --parallel "$(nproc)" "$@"
