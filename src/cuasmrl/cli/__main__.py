"""`python -m cuasmrl.cli` is the command `cuasmrl`."""

from cuasmrl.cli import main

main()
