"""The table of chips, and the launches each of them refuses."""

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS, Chip, chip, chip_of_arch
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.workloads.chips import SHARED_LIMIT


def launch(
    grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (128, 1, 1), shared: int = 0
) -> Launch:
    return Launch(grid, block, shared, ())


@pytest.mark.parametrize("each", CHIPS.values(), ids=lambda each: each.key)
def test_a_chip_agrees_with_itself(each: Chip) -> None:
    assert each.shared_per_block <= each.shared_per_block_optin == SHARED_LIMIT[each.arch]
    assert each.shared_per_block_optin + each.shared_reserved_per_block == each.shared_per_sm
    assert each.max_warps_per_sm * 32 == each.max_threads_per_sm
    assert each.max_threads_per_sm % each.max_threads_per_block in (0, 512)
    assert each.capability[0] * 10 + each.capability[1] == each.arch


@pytest.mark.parametrize(
    ("name", "gigabytes_per_second"),
    # The bandwidths of the data sheets, which the table does not hold, follow from clock and bus.
    [
        ("t4", 320),
        ("a100", 1555),
        ("a6000", 768),
        ("rtx3090", 936),
        ("rtx4090", 1008),
        ("l40", 864),
        ("h100", 3350),
        ("b200", 8184),  # 8 TB/s in the data sheet
        ("b300", 8184),
        ("rtx5090", 1792),
    ],
)
def test_memory_clock_and_bus_give_the_published_bandwidth(name: str, gigabytes_per_second: int) -> None:
    found = chip(name)
    bandwidth = found.memory_clock_khz * 1000 * 2 * found.memory_bus_bits / 8 / 1e9
    assert bandwidth == pytest.approx(gigabytes_per_second, rel=2e-3)


def test_names() -> None:
    assert chip("a100").name == "NVIDIA A100-SXM4-40GB"
    assert chip("A100") is chip("a100")
    with pytest.raises(CuasmrlError, match="no chip 'b2000'; choose one of t4, a100, .*rtx5090"):
        chip("b2000")


@pytest.mark.parametrize(
    ("arch", "name"),
    [
        (75, "t4"),
        (80, "a100"),
        (86, "a6000"),
        (89, "rtx4090"),
        (90, "h100"),
        (100, "b200"),
        (103, "b300"),
        (120, "rtx5090"),
    ],
)
def test_default_of_an_architecture(arch: int, name: str) -> None:
    assert chip_of_arch(arch) is chip(name)


def test_an_architecture_without_a_chip() -> None:
    with pytest.raises(CuasmrlError, match="no chip for sm_70; choose one of sm_75, sm_80"):
        chip_of_arch(70)


def test_code_runs_within_a_major_version() -> None:
    assert chip("a6000").runs(80)
    assert chip("a6000").runs(86)
    assert not chip("a100").runs(86)
    assert not chip("h100").runs(89)


@pytest.mark.parametrize(
    ("registers", "threads"),
    # The last two: partitions get equally many warps, so 9 warps of 224 registers do not fit although
    # 9 * 32 * 224 is less than the register file.
    [(1, 1024), (64, 1024), (65, 896), (128, 512), (224, 256), (255, 256)],
)
def test_threads_that_the_registers_leave_room_for(registers: int, threads: int) -> None:
    assert chip("a100").max_threads(registers) == threads


def test_the_largest_launch_passes() -> None:
    a100 = chip("a100")
    a100.check(launch(a100.max_grid, (1024, 1, 1), 163 << 10), 0, 64)
    a100.check(launch(block=(1, 1, 64)), 163 << 10, 255)


def test_reserved_shared_memory_is_not_the_blocks() -> None:
    """From sm_90 on the cubin counts the reserved KiB as static."""
    chip("h100").check(launch(shared=227 << 10), 1 << 10, 32)
    with pytest.raises(CuasmrlError, match="233472 bytes of shared memory per block; .* allows 232448"):
        chip("h100").check(launch(shared=227 << 10), 2 << 10, 32)


@pytest.mark.parametrize(
    ("asked", "static", "registers", "message"),
    [
        (launch(block=(1025, 1, 1)), 0, 32, "a block 1025 wide in x; .* allows 1024"),
        (launch(block=(1, 1, 65)), 0, 32, "a block 65 wide in z; .* allows 64"),
        (launch(block=(32, 33, 1)), 0, 32, "1056 threads per block; .* allows 1024"),
        (launch(grid=(2**31, 1, 1)), 0, 32, "a grid 2147483648 wide in x; .* allows 2147483647"),
        (launch(grid=(1, 65536, 1)), 0, 32, "a grid 65536 wide in y; .* allows 65535"),
        (launch(grid=(1, 1, 65536)), 0, 32, "a grid 65536 wide in z; .* allows 65535"),
        (launch(shared=160 << 10), 4 << 10, 32, "167936 bytes of shared memory per block; .* allows 166912"),
        (launch(block=(512, 1, 1)), 0, 136, "512 threads per block with 136 registers each; .* allows 384"),
        (launch(), 0, 256, "256 registers per thread; .* allows 255"),
    ],
)
def test_a_launch_too_large_is_refused(asked: Launch, static: int, registers: int, message: str) -> None:
    with pytest.raises(CuasmrlError, match=message):
        chip("a100").check(asked, static, registers)
