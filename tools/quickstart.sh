#!/usr/bin/env bash
# From nothing to verified kernels: installs missing packages, builds into build/,
# generates the kernels of Qwen3-0.6B for this machine and runs them through the
# block manager against the f64 reference.
set -euo pipefail
cd "$(dirname "$0")/.."

config=tools/configs/qwen3-0.6b.json

echo "== packages"
tools/install-packages.sh

echo "== build (into build/)"
cmake --preset default >build.log 2>&1 && cmake --build build >>build.log 2>&1 || {
  tail -n 40 build.log >&2
  echo "error: the build failed; build.log has all of it" >&2
  exit 1
}
mv build.log build/build.log

echo "== kernels for $config (into build/out/qwen3-0.6b)"
build/bin/pagoda gen --config "$config" -o build/out/qwen3-0.6b --name qwen3

echo "== four prompts with a common prefix: chunked prefill, then decode, all verified"
build/bin/pagoda run --config "$config" --seqs 4 --prompt-len 512 --shared-prefix 256 \
  --chunk 128 --decode-steps 8 --verify
