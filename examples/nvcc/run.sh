#!/bin/sh
# Compile with nvcc, optimise the kernel, and compile again: nvcc then writes the faster schedule by itself.
# Usage: examples/nvcc/run.sh [FOLDER [BUDGET]]; needs no GPU.
set -eu
here=$(dirname "$(realpath "$0")")
work=${1:-build}
budget=${2:-500}
mkdir -p "$work"
cd "$work"
# A store of its own; without this line it is the user's.
export CUASMRL_STORE="$PWD/store"
compile="nvcc -arch=sm_80 -cubin $here/matmul.cu"

echo "== 1. compile as always; cuasmrl notes the kernel down"
cuasmrl run --mode record -- $compile -o before.cubin

echo "== 2. optimise it for a launch (grid, block and arguments are in matmul.launch.json)"
cuasmrl optimize before.cubin --launch "$here/matmul.launch.json" --budget "$budget" --run run --store

echo "== 3. compile again: the same command, another schedule"
cuasmrl run -- $compile -o after.cubin

echo "== 4. what nvcc wrote is as safe as before, and faster"
cuasmrl check before.cubin after.cubin
cuasmrl simulate before.cubin --launch "$here/matmul.launch.json" --compare original after.cubin
