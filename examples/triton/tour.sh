#!/bin/sh
# Record, optimise and deploy matmul.py on a virtual A100, with a store and caches of its own.
# BUDGET=500 tour.sh -k 512    a smaller budget, another size
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/cuasmrl-tour-XXXXXX")
trap 'rm -rf "$work"' EXIT
export CUASMRL_STORE="$work/store" TRITON_CACHE_DIR="$work/triton" TRITON_DEFAULT_FP_FUSION=1

echo "== as compiled, recorded"
cuasmrl run --virtual a100 --mode record -- python "$here/matmul.py" "$@"
echo "== optimised"
cuasmrl optimize --recorded --budget "${BUDGET:-2000}" --run "$work/runs" 2>"$work/progress"
echo "== from the store"
cuasmrl run --virtual a100 -- python "$here/matmul.py" "$@"
