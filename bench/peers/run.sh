#!/usr/bin/env bash
# Pagoda beside ONNX Runtime and OpenVINO: makes a virtual environment with both
# (PyPI; a package that cannot be had is skipped by name), generates kernels and
# measures. Arguments go to peers.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${PAGODA_BUILD:-build}
work=$build/peers
[ -x "$build/bin/pagoda" ] || {
  echo "error: $build/bin/pagoda: expected a build, got none" >&2
  exit 1
}
mkdir -p "$work"
if [ ! -x "$work/venv/bin/python" ]; then
  python3 -m venv "$work/venv"
fi
python=$work/venv/bin/python
"$python" -c 'import numpy' 2>/dev/null || "$python" -m pip install -q numpy
for package in onnx onnxruntime openvino; do
  "$python" -c "import $package" 2>/dev/null ||
    "$python" -m pip install -q "$package" ||
    echo "skipped $package: it cannot be installed"
done
for type in f32 f16 bf16; do
  PAGODA_DB=none "$build/bin/pagoda" gen --heads 16 --kv-heads 8 --head-dim 128 --block-size 16 \
    --layout hnd --dtype "$type" -o "$work" --name "$type"
done
# An old core type would slow numpy's and ONNX Runtime's libraries.
exec env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE "$python" bench/peers/peers.py \
  --runtime "$build/lib/libpagoda_runtime.so" --kernels "$work" "$@"
