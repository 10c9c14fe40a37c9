"""The command that prints SASS."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cuasmrl.cli.console import CubinFile, Json, KernelName, console, print_json

if TYPE_CHECKING:
    from cuasmrl.binary.cubin import Kernel
    from cuasmrl.binary.sass import Instruction, Listing


def disasm(cubin: CubinFile, kernel: KernelName = None, as_json: Json = False) -> None:
    """SASS with control codes."""
    from cuasmrl.binary.cubin import Cubin
    from cuasmrl.binary.sass import disassemble

    loaded = Cubin.load(cubin)
    chosen = [loaded.kernel(kernel)] if kernel else loaded.kernels
    listings = disassemble(loaded)
    if as_json:
        print_json([_kernel_json(k, listings[k.name]) for k in chosen])
        return
    for k in chosen:
        _print(k, listings[k.name])


def _print(kernel: Kernel, listing: Listing) -> None:
    console.print(
        f"// {kernel.name}: sm_{kernel.arch}, {len(kernel.words)} instructions, "
        f"{kernel.registers} registers, {kernel.shared_bytes} bytes of static shared memory, "
        f"{len(kernel.parameters)} parameters",
        markup=False,
    )
    targets = {i.target for i in listing.instructions if i.target is not None}
    for i in listing.instructions:
        mark = ">" if i.address in targets else " "
        unknown = "  // unknown opcode: never moved" if i.declaration is None else ""
        console.print(f"{mark}{i.address:05x}  {i.control}  {i.text}{unknown}", markup=False)


def _kernel_json(kernel: Kernel, listing: Listing) -> dict[str, Any]:
    return {
        "kernel": kernel.name,
        "arch": kernel.arch,
        "registers": kernel.registers,
        "shared_bytes": kernel.shared_bytes,
        "parameters": [dataclasses.asdict(parameter) for parameter in kernel.parameters],
        "instructions": [_instruction_json(i) for i in listing.instructions],
    }


def _instruction_json(i: Instruction) -> dict[str, Any]:
    return {
        "address": i.address,
        "text": i.text,
        "word": i.word.hex(),
        "control": dataclasses.asdict(i.control),
        "known": i.declaration is not None,
    }
