#!/usr/bin/env bash
# Installs what building and testing Pagoda needs and this machine lacks (Debian
# 12 packages). Needs root or sudo. Prints nothing if there is nothing to do.
set -euo pipefail

packages=(
  clang-22 libclang-rt-22-dev clang-format-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  cmake ninja-build git python3
  libxxhash-dev libboost-context-dev libsqlite3-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev binutils
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "error: needs root or sudo to install: ${missing[*]}" >&2
    exit 1
  }
  run=(sudo)
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${run[@]}" apt-get update -qq &&
       "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "error: the packages above could not be installed" >&2
  exit 1
fi
