"""A kernel on the emulator, and the modelled cycles of its launches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.emulator import Emulator, Run
from cuasmrl.gpu.launches.launch import Launch, Tiles
from cuasmrl.gpu.timing import L2, Model, load_parameters, trace_share, traced_blocks
from cuasmrl.gpu.timing.code import Code
from cuasmrl.gpu.timing.model import occupancy
from cuasmrl.gpu.timing.share import with_whole_footprint
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.virtual.memory import Bytes, living_buffer
from cuasmrl.schedule import Schedule

SEEDS = (0, 1, 2)
"""Of the latency jitter; the mean over them is the figure."""
_SUB_CORES = 4


class ModelledKernel:
    """Runs launches, and times them without leaving a trace of it in memory."""

    def __init__(self, cubin: Cubin, kernel: str, chip: Chip) -> None:
        self._emulator = Emulator(cubin, kernel, chip, find=self._find)
        self._cycles: dict[bytes, float] = {}
        self._kept: list[tuple[Bytes, Bytes]] | None = None
        """While a launch is only timed: buffers it has come to, and what they held before."""

    def run(self, launch: Launch) -> Run:
        if launch.cooperative:
            self._check_cooperative(launch)
        return self._emulator.run(launch)

    def _check_cooperative(self, launch: Launch) -> None:
        chip, kernel = self._emulator.chip, self._emulator.kernel
        shared = kernel.shared_bytes + launch.shared_bytes
        most = occupancy(chip, launch.threads, kernel.registers, shared).blocks * chip.sm_count
        if launch.blocks > most:
            raise CuasmrlError(
                f"A cooperative grid of {launch.blocks} blocks of {kernel.name} does not fit onto "
                f"{chip.name}, which runs {most} of them at the same time; launch fewer blocks."
            )

    def cycles(self, launch: Launch) -> float:
        """Modelled cycles of the SM that has most to do; a launch seen before costs nothing."""
        key = _digest(launch)
        if key not in self._cycles:
            self._cycles[key] = self._modelled(launch)
        return self._cycles[key]

    def _modelled(self, launch: Launch) -> float:
        emulator = self._emulator
        if not self._can_be_timed:
            with self._as_before(launch):
                return _fewest_cycles(launch, emulator)
        try:
            with self._as_before(launch):
                trace = emulator.trace(launch) if launch.cooperative else trace_share(launch, emulator)
        except CuasmrlError:
            # Blocks that wait for those of other SMs end only together with them. And if the launch is at
            # fault, the error has to be the one that running it gives.
            with self._as_before(launch):
                trace = with_whole_footprint(emulator.trace(launch), launch, emulator)
        schedule = Schedule.original(emulator.listing)
        # As Triton's benchmark functions measure: they clean the cache before each run.
        return measure(Model(schedule, trace, emulator.chip, l2=L2.COLD), schedule, SEEDS).value

    @cached_property
    def _can_be_timed(self) -> bool:
        return _has_model(self._emulator)

    def _find(self, address: int) -> Bytes | None:
        buffer = living_buffer(address)
        if buffer is not None and self._kept is not None:
            self._kept.append((buffer, buffer.copy()))
        return buffer

    @contextmanager
    def _as_before(self, launch: Launch) -> Iterator[None]:
        """Whatever is executed inside, memory holds afterwards what it held before."""
        buffers = [argument for argument in launch.arguments if isinstance(argument, np.ndarray)]
        buffers += [data.bytes for data in self._emulator.module.data]
        kept = [(buffer, buffer.copy()) for buffer in buffers]
        self._kept = kept
        try:
            yield
        finally:
            self._kept = None
            # A buffer that was found may share memory with an argument; the first copy is the oldest.
            for buffer, before in reversed(kept):
                np.copyto(buffer, before)


def _has_model(emulator: Emulator) -> bool:
    """Is there timing data for the chip, and does the model know all instructions of the kernel?"""
    try:
        Code(emulator.listing, load_parameters(emulator.chip.key))
    except CuasmrlError:
        return False
    return True


def _fewest_cycles(launch: Launch, emulator: Emulator) -> float:
    """Where the model has no answer: each sub-core issues at most one instruction a cycle."""
    blocks = traced_blocks(launch, emulator)
    share = -(-launch.blocks // emulator.chip.sm_count)
    executed = emulator.run(launch, blocks).warp_instructions
    return executed * share / (len(blocks) * _SUB_CORES)


def _digest(launch: Launch) -> bytes:
    """Of everything that a launch depends on, the contents of its buffers among it."""
    digest = hashlib.blake2b(
        repr((launch.grid, launch.block, launch.shared_bytes, launch.cooperative, launch.cluster)).encode()
    )
    for argument in launch.arguments:
        if argument is None:
            digest.update(b"null")
        elif isinstance(argument, Tiles):
            fields = argument.element, argument.sizes, argument.strides, argument.box, argument.swizzle
            digest.update(repr((*fields, argument.fills_nan, argument.rounds_to_tf32)).encode())
            digest.update(np.ascontiguousarray(argument.array).data)
        else:
            digest.update(f"{argument.dtype} {argument.nbytes} ".encode())
            digest.update(np.ascontiguousarray(argument).data)
    return digest.digest()
