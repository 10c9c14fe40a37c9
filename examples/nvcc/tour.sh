#!/bin/sh
# Compile matmul.cu with nvcc, optimise the kernel, and compile again: nvcc then writes the faster schedule.
# No GPU measures it here, so the result is modelled, and the last run has to allow that.
# BUDGET=2000 tour.sh build    a larger budget; cubins and run stay in the folder build
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/cuasmrl-tour-XXXXXX")
    trap 'rm -rf "$work"' EXIT
fi
export CUASMRL_STORE="$work/store"
cd "$work"

echo "== as compiled, recorded"
cuasmrl run --mode record -- nvcc -arch=sm_80 -cubin -o before.cubin "$here/matmul.cu"
echo "== optimised"
cuasmrl optimize before.cubin --launch "$here/matmul.launch.json" --budget "${BUDGET:-500}" --run run --store 2>progress
echo "== from the store, by the same command; --modelled, for no GPU has measured the result"
cuasmrl run --modelled -- nvcc -arch=sm_80 -cubin -o after.cubin "$here/matmul.cu"
echo "== what nvcc wrote is as safe as before, and faster by the model"
cuasmrl check before.cubin after.cubin
cuasmrl simulate before.cubin --launch "$here/matmul.launch.json" --compare original after.cubin
