#!/usr/bin/env bash
# Packs kernels, cases with their references, and a runner into a folder that runs on
# a machine with an NVIDIA GPU and its driver, and nothing else of ours:
#   tests/device/pack.sh TARGET FOLDER [--run]
# then, over there, FOLDER/run.sh. The cases travel as an archive. TARGET: sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 target folder [--run]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=${PAGODA_BUILD:-$here/../../build}
mkdir -p "$2"
rm -rf "$2/cases" "$2/cases.tar.gz"
"$build/bin/pagoda-device-pack" "$1" "$2/cases"
tar -C "$2" -czf "$2/cases.tar.gz" cases
rm -r "$2/cases"
cp "$build/bin/pagoda-device-runner" "$here/run.sh" "$here/peers.py" "$2/"
libc=$(grep -aho 'GLIBC_2\.[0-9]*' "$2/pagoda-device-runner" | sort -uV | tail -n 1)
echo "$(du -sh "$2" | cut -f1) in $2, for machines with $libc or later"
[ "${3:-}" != --run ] || exec "$2/run.sh"
