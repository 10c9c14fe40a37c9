"""Execute a kernel of a cubin on the CPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip, chip_of_arch
from cuasmrl.gpu.emulator.constants import Constants, launch_bank
from cuasmrl.gpu.emulator.global_memory import FindBuffer, GlobalMemory, nothing_else
from cuasmrl.gpu.emulator.machine import Environment, Machine
from cuasmrl.gpu.emulator.module import load_module
from cuasmrl.gpu.emulator.program import load_program
from cuasmrl.gpu.emulator.recorder import Recorder
from cuasmrl.gpu.emulator.tensor_maps import ImpossibleMapError, tensor_map_of
from cuasmrl.gpu.emulator.trace import Header, Trace, code_digest
from cuasmrl.gpu.emulator.values import LANES
from cuasmrl.gpu.launches.launch import Launch, Tiles, argument_bytes, buffer_of

DEFAULT_BUDGET = 20_000_000
_WARPS_IN_A_SLAB = 512
_BYTES_IN_A_SLAB = 512 << 20
_REGISTER_BYTES = 4
_GROWTH = 8
"""Of a slab over the one before, if that one had little to do."""
_DEFAULT_STACK = 1024
"""What the driver gives a thread whose stack the compiler could not measure: cudaLimitStackSize."""


@dataclass(frozen=True)
class Run:
    """What executing a launch amounted to."""

    blocks: int
    warp_instructions: int
    lane_instructions: int
    """Instructions times the threads that were active in them."""


class Emulator:
    """One kernel, decoded once and launched as often as wanted."""

    def __init__(
        self,
        cubin: Cubin,
        kernel: str | None = None,
        chip: Chip | None = None,
        listing: Listing | None = None,
        find: FindBuffer = nothing_else,
    ) -> None:
        """`listing` saves disassembling what is already known, or executes another schedule of the kernel.

        `find` knows buffers that are no arguments, by the addresses that a kernel may find in memory.
        """
        self._find = find
        self._time = 0
        """Instructions that earlier launches have executed."""
        self.kernel: Kernel = cubin.kernel(kernel)
        self.chip = chip or chip_of_arch(self.kernel.arch)
        if self.kernel.has_relocations:
            raise CuasmrlError(
                f"Kernel {self.kernel.name} has relocations, which a linker must resolve first; "
                "link it with nvlink or nvcc -dlink."
            )
        self.listing = listing or disassemble_kernel(cubin, self.kernel.name)
        self.program = load_program(self.listing)
        self.module = load_module(cubin, self.kernel)
        uses_stack = any(i.opcode in ("LDL", "STL") for i in self.listing.instructions)
        self._local_bytes = self.kernel.stack_bytes or (_DEFAULT_STACK if uses_stack else 0)

    def trace(
        self, launch: Launch, blocks: Sequence[int] | None = None, budget: int = DEFAULT_BUDGET
    ) -> Trace:
        """Execute a launch, or some of its blocks, and keep what the timing model needs."""
        recorder = Recorder(self.listing, self._local_bytes)
        self.run(launch, blocks, budget, recorder=recorder)
        header = Header(
            kernel=self.kernel.name,
            arch=self.kernel.arch,
            code=code_digest(self.listing.kernel.words),
            grid=launch.grid,
            block=launch.block,
            registers=self.kernel.registers,
            shared_bytes=self.kernel.shared_bytes + launch.shared_bytes,
            warps_per_block=-(-launch.threads // LANES),
        )
        return recorder.trace(header, self._chosen(launch, blocks))

    def run(
        self,
        launch: Launch,
        blocks: Sequence[int] | None = None,
        budget: int = DEFAULT_BUDGET,
        progress: Callable[[int, int], None] | None = None,
        recorder: Recorder | None = None,
    ) -> Run:
        """Execute a launch, or only some of its blocks (linear indices); buffers change in place.

        `progress` is called with the number of blocks done and their total.
        """
        self.chip.check(launch, self.kernel.shared_bytes, self.kernel.registers)
        chosen = self._chosen(launch, blocks)
        env = self._environment(launch, budget)
        warps = -(-launch.threads // LANES)
        # Blocks that may wait for one another have to be executed together.
        size = len(chosen) if launch.cooperative else self._blocks_in_a_slab(env, warps)
        warp_instructions = lane_instructions = 0
        try:
            first = 0
            while first < len(chosen):
                machine = Machine(self.program, env, chosen[first : first + size], recorder, self._time)
                machine.run()
                self._time += machine.instructions
                warp_instructions += machine.warp_instructions
                lane_instructions += machine.lane_instructions
                first += size
                if progress is not None:
                    progress(min(first, len(chosen)), len(chosen))
                if not machine.slab.flattened:
                    # Whatever it computed was the same in all threads of a block, or in few of them.
                    size = max(size, min(_GROWTH * size, self._most_blocks(env, warps)))
        finally:
            env.memory.finish()
        return Run(len(chosen), warp_instructions, lane_instructions)

    def extents(self, launch: Launch) -> list[tuple[int, int]]:
        """Where a launch has its buffers: the addresses of the first byte and behind the last."""
        return [(region.start, region.limit) for region in self._memory(launch).regions]

    def _chosen(self, launch: Launch, blocks: Sequence[int] | None) -> npt.NDArray[np.int64]:
        if blocks is None:
            return np.arange(launch.blocks)
        chosen = np.asarray(blocks, np.int64)
        if chosen.size == 0 or chosen.min() < 0 or chosen.max() >= launch.blocks:
            raise CuasmrlError(
                f"Blocks of this launch are numbered 0 to {launch.blocks - 1}; choose some of them."
            )
        return chosen

    def _environment(self, launch: Launch, budget: int) -> Environment:
        self._check_arguments(launch)
        if launch.cluster is not None and max(launch.cluster) > 1:
            raise CuasmrlError(
                f"Kernel {self.kernel.name} is launched in clusters of {launch.cluster} blocks, which reach "
                "each other's shared memory; the emulator cannot execute that, a GPU can (--device cuda:0)."
            )
        memory = self._memory(launch)
        local = self._local_bytes
        banks = dict(self.module.banks)
        banks[0] = launch_bank(self.kernel, launch, local, self._parameters(launch, memory))
        memory.show_parameters(np.frombuffer(banks[0], np.uint8))
        shared = self.kernel.shared_bytes + launch.shared_bytes
        return Environment(
            launch, memory, Constants(banks), self.module, shared, local, budget, self.chip.sm_count
        )

    def _memory(self, launch: Launch) -> GlobalMemory:
        arrays: dict[str, npt.NDArray[Any]] = {
            f"argument {k}": array
            for k, array in enumerate(map(buffer_of, launch.arguments))
            if array is not None and array.size
        }
        return GlobalMemory(arrays, self.module.data, self._find)

    def _check_arguments(self, launch: Launch) -> None:
        parameters = self.kernel.parameters
        if len(launch.arguments) != len(parameters):
            raise CuasmrlError(
                f"Kernel {self.kernel.name} takes {len(parameters)} arguments, got {len(launch.arguments)}."
            )
        for parameter, argument in zip(parameters, launch.arguments, strict=True):
            given = argument_bytes(argument)
            if given != parameter.size:
                what = (
                    "a pointer"
                    if given == 8 and not isinstance(argument, np.generic)
                    else type(argument).__name__
                )
                raise CuasmrlError(
                    f"Argument {parameter.ordinal} of kernel {self.kernel.name} takes {parameter.size} "
                    f"bytes, got {what} of {given}."
                )

    def _parameters(self, launch: Launch, memory: GlobalMemory) -> bytes:
        end = max((p.offset + p.size for p in self.kernel.parameters), default=0)
        area = bytearray(end)
        for parameter, argument in zip(self.kernel.parameters, launch.arguments, strict=True):
            if argument is None:
                continue
            if isinstance(argument, np.ndarray):
                data = (memory.address_of(argument) if argument.size else 0).to_bytes(8, "little")
            elif isinstance(argument, Tiles):
                data = _tensor_map(argument, memory.address_of(argument.array))
            else:
                data = argument.tobytes()
            area[parameter.offset : parameter.offset + parameter.size] = data
        return bytes(area)

    def _blocks_in_a_slab(self, env: Environment, warps: int) -> int:
        return max(1, min(_WARPS_IN_A_SLAB // warps, self._most_blocks(env, warps)))

    def _most_blocks(self, env: Environment, warps: int) -> int:
        """Blocks of which all registers and all memory have their place."""
        threads = warps * LANES
        per_block = (
            2 * env.shared_bytes
            + threads * env.local_bytes
            + threads * _REGISTER_BYTES * self.kernel.registers
        )
        return _BYTES_IN_A_SLAB // max(per_block, 1)


def _tensor_map(tiles: Tiles, address: int) -> bytes:
    try:
        return tensor_map_of(tiles, address).encode()
    except ImpossibleMapError as error:
        raise CuasmrlError(f"An argument is a tensor map that no driver makes: {error}.") from None
