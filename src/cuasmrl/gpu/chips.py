"""The chips a launch can be checked against, and what each of them allows.

Sources. Limits of a block and of an SM belong to the compute capability: CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability"; the reserved KiB of shared memory per block: the
tuning guide of each architecture; the grain of register allocation: cuda_occupancy.h of the CUDA toolkit.
SM count, L2, memory and clocks belong to the product: NVIDIA's architecture whitepapers (Turing, GA100,
GA102, AD102, GH100, GB202) and data sheets. Clocks are the published boost clocks, the H100's is the
driver's maximum (its data sheet has none); memory clocks are half the data rate, as the driver reports
them. Memory is the nominal size; a driver shows some percent less.

The B300 has 288 GB, the bandwidth of the B200 and 75 TFLOPS in FP32 (others quote so from NVIDIA), which are
148 SMs at about the clock of the B200; its L2 is taken to be that of the B200.

How sure. Compared with device properties that users have published: A100, H100, RTX 3090, RTX 4090, RTX 5090,
and of the T4 SMs, clock and bandwidth, of the B200 SMs, L2 and memory. Not compared: clocks of the B200,
clocks and L2 of the L40, L2 of the RTX A6000 and the T4, the 16 blocks per SM of sm_75. The 24 blocks per SM
of sm_120 were seen on an sm_121.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.launch import Launch

WARP_THREADS = 32
# Registers are given to whole warps in units of 256, and the four partitions of an SM get equally many warps.
_REGISTER_UNIT = 256
_PARTITIONS = 4
# From this architecture on a cubin counts the reserved shared memory among its static shared memory.
_RESERVED_IS_STATIC = 90
_KIB = 1 << 10
_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True)
class _Capability:
    """One row of the programming guide's table, sizes in KiB."""

    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_optin: int
    reserved: int


_CAPABILITIES = {
    75: _Capability(1024, 16, 64, 64, 0),
    80: _Capability(2048, 32, 164, 163, 1),
    86: _Capability(1536, 16, 100, 99, 1),
    89: _Capability(1536, 24, 100, 99, 1),
    90: _Capability(2048, 32, 228, 227, 1),
    100: _Capability(2048, 32, 228, 227, 1),
    103: _Capability(2048, 32, 228, 227, 1),
    120: _Capability(1536, 24, 100, 99, 1),
}


@dataclass(frozen=True)
class Chip:
    """What launches and device properties need to know of a GPU."""

    key: str
    """The short name by which `chip` finds it."""
    name: str
    """The name the driver prints."""
    arch: int
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    shared_per_sm: int
    shared_per_block_optin: int
    """The most shared memory a block can have, static and dynamic."""
    shared_reserved_per_block: int
    """Taken from the SM for each block besides what the block asked for."""
    # The same on every chip of the table.
    shared_per_block: int = 48 * _KIB
    """Shared memory a block gets without opting in."""
    max_threads_per_block: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    registers_per_sm: int = 65536
    max_registers_per_thread: int = 255
    silicon: str | None = None
    """The chip that has the same SMs and caches with other memory or clocks, and with it its timing data."""

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability, (major, minor)."""
        return self.arch // 10, self.arch % 10

    @property
    def max_warps_per_sm(self) -> int:
        return self.max_threads_per_sm // WARP_THREADS

    def max_threads(self, registers: int) -> int:
        """Threads a block can have when each of them needs this many registers."""
        unit = -(-registers * WARP_THREADS // _REGISTER_UNIT) * _REGISTER_UNIT
        warps = self.registers_per_sm // max(unit, 1) // _PARTITIONS * _PARTITIONS
        return min(self.max_threads_per_block, warps * WARP_THREADS)

    def runs(self, arch: int) -> bool:
        """Whether code for this architecture runs here: same major version, and not a later minor one."""
        return arch // 10 == self.arch // 10 and arch <= self.arch

    def check(self, launch: Launch, static_shared: int, registers: int) -> None:
        """Refuse a launch the chip could not start.

        `static_shared` and `registers` are those of the kernel, as the cubin states them.
        """
        self._check_dimensions("block", launch.block, self.max_block)
        self._check_dimensions("grid", launch.grid, self.max_grid)
        if launch.threads > self.max_threads_per_block:
            self._refuse(f"{launch.threads} threads per block", self.max_threads_per_block)
        if registers > self.max_registers_per_thread:
            self._refuse(f"{registers} registers per thread", self.max_registers_per_thread)
        most = self.max_threads(registers)
        if launch.threads > most:
            self._refuse(f"{launch.threads} threads per block with {registers} registers each", most)
        if self.arch >= _RESERVED_IS_STATIC:
            static_shared = max(static_shared - self.shared_reserved_per_block, 0)
        shared = static_shared + launch.shared_bytes
        if shared > self.shared_per_block_optin:
            self._refuse(f"{shared} bytes of shared memory per block", self.shared_per_block_optin)

    def _check_dimensions(self, what: str, given: tuple[int, ...], most: tuple[int, ...]) -> None:
        for axis, size, limit in zip("xyz", given, most, strict=True):
            if size > limit:
                self._refuse(f"a {what} {size} wide in {axis}", limit)

    def _refuse(self, asked: str, limit: int) -> NoReturn:
        raise CuasmrlError(f"The launch asks for {asked}; {self.name} (sm_{self.arch}) allows {limit}.")


def _row(  # One line of the table below.
    key: str,
    name: str,
    arch: int,
    sms: int,
    l2_mib: int,
    memory_gib: int,
    clock: int,
    memory: int,
    bus: int,
    silicon: str | None = None,
) -> Chip:
    limits = _CAPABILITIES[arch]
    return Chip(
        key=key,
        name=name,
        arch=arch,
        sm_count=sms,
        l2_bytes=l2_mib * _MIB,
        memory_bytes=memory_gib * _GIB,
        clock_khz=clock * 1000,
        memory_clock_khz=memory * 1000,
        memory_bus_bits=bus,
        max_threads_per_sm=limits.threads_per_sm,
        max_blocks_per_sm=limits.blocks_per_sm,
        shared_per_sm=limits.shared_per_sm * _KIB,
        shared_per_block_optin=limits.shared_optin * _KIB,
        shared_reserved_per_block=limits.reserved * _KIB,
        silicon=silicon,
    )


# The first chip of an architecture is its default.
_TABLE = (
    #    key        name as the driver prints it   arch  SMs  L2   GiB  MHz  memory MHz  bus
    _row("t4",      "Tesla T4",                      75,  40,  4,   16, 1590,  5001,  256),
    _row("a100",    "NVIDIA A100-SXM4-40GB",         80, 108, 40,   40, 1410,  1215, 5120),
    _row("a100-80gb", "NVIDIA A100-SXM4-80GB",       80, 108, 40,   80, 1410,  1593, 5120, "a100"),
    _row("a6000",   "NVIDIA RTX A6000",              86,  84,  6,   48, 1800,  8001,  384),
    _row("rtx3090", "NVIDIA GeForce RTX 3090",       86,  82,  6,   24, 1695,  9751,  384),
    _row("rtx4090", "NVIDIA GeForce RTX 4090",       89, 128, 72,   24, 2520, 10501,  384),
    _row("l40",     "NVIDIA L40",                    89, 142, 96,   48, 2490,  9001,  384),
    _row("h100",    "NVIDIA H100 80GB HBM3",         90, 132, 50,   80, 1980,  2619, 5120),
    _row("b200",    "NVIDIA B200",                  100, 148, 126,  180, 1965,  3996, 8192),
    _row("b300",    "NVIDIA B300 SXM6 AC",          103, 148, 126,  288, 1965,  3996, 8192, "b200"),
    _row("rtx5090", "NVIDIA GeForce RTX 5090",      120, 170, 96,   32, 2407, 14001,  512),
)  # fmt: skip

CHIPS = {row.key: row for row in _TABLE}
_DEFAULTS = {row.arch: row for row in reversed(_TABLE)}


def chip(name: str) -> Chip:
    """The chip of that short name."""
    found = CHIPS.get(name.lower())
    if found is None:
        raise CuasmrlError(f"There is no chip {name!r}; choose one of {', '.join(CHIPS)}.")
    return found


def chip_of_arch(arch: int) -> Chip:
    """The chip that stands for an architecture when none is named."""
    found = _DEFAULTS.get(arch)
    if found is None:
        known = ", ".join(f"sm_{known}" for known in sorted(_DEFAULTS))
        raise CuasmrlError(f"There is no chip for sm_{arch}; choose one of {known}.")
    return found
