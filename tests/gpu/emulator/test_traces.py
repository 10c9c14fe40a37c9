"""What a trace says about paths and accesses, against counts made by hand."""

import random
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.emulator import emulator as module
from cuasmrl.gpu.launches.launch import Argument
from cuasmrl.schedule import Board, control_flow
from tests.gpu.emulator.kernels import Array, Kernels, Load, launch, numbers

FIRST = 0x7_0000_0000
"""Where the first argument lies."""
LANE = np.arange(32)
KINDS: dict[int, type] = {1: np.uint8, 4: np.int32, 8: np.int64}


@pytest.fixture(scope="module")
def patterns(load: Load) -> Kernels:
    return load("patterns", "sm_80")


def accesses(kernels: Kernels, name: str, trace: Trace, opcode: str) -> npt.NDArray[np.int64]:
    """Numbers of the accesses that instructions of an opcode have made."""
    code = kernels.listings[name].instructions
    return np.flatnonzero([code[k].opcode == opcode for k in trace.access_instruction])


def buffer(size: int, count: int = 4096) -> Array:
    return np.zeros((count, 2), np.int64) if size == 16 else np.zeros(count, KINDS[size])


# global memory

GLOBAL = {
    # size, index of each lane: lanes, sectors, lines
    "4 bytes side by side": (4, LANE, 32, 4, 1),
    "8 bytes side by side": (8, LANE, 32, 8, 2),
    "16 bytes side by side": (16, LANE, 32, 16, 4),
    "1 byte side by side": (1, LANE, 32, 1, 1),
    "backwards": (4, 31 - LANE, 32, 4, 1),
    "shuffled": (4, np.random.default_rng(0).permutation(32), 32, 4, 1),
    "one word for all": (4, 0 * LANE + 100, 32, 1, 1),
    "every second word": (4, 2 * LANE, 32, 8, 2),
    "every eighth word": (4, 8 * LANE, 32, 32, 8),
    "every line": (4, 32 * LANE, 32, 32, 32),
    "every second pair": (8, 2 * LANE, 32, 16, 4),
    "one word beyond a sector": (4, LANE + 1, 32, 5, 2),
    "half a sector beyond": (4, LANE + 4, 32, 5, 2),
    "one sector beyond a line": (4, LANE + 8, 32, 4, 2),
    "16 bytes, a sector beyond": (16, LANE + 2, 32, 16, 5),
    "two lines, in turn": (4, np.where(LANE % 2, LANE, LANE + 512), 32, 8, 2),
    "even lanes only": (4, np.where(LANE % 2, -1, LANE), 16, 4, 1),
    "one lane": (4, np.where(LANE == 9, 9, -1), 1, 1, 1),
    "lanes of the first half": (16, np.where(LANE < 16, LANE, -1), 16, 8, 2),
}


@pytest.mark.parametrize("case", GLOBAL)
@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_sectors_and_lines(patterns: Kernels, kind: str, case: str) -> None:
    size, index, lanes, sectors, lines = GLOBAL[case]
    name = f"{kind}{size}"
    trace = patterns.trace(name, buffer(size), index.astype(np.int32), buffer(size))
    found = accesses(patterns, name, trace, "LDG" if kind == "gather" else "STG")
    chosen = [k for k in found if FIRST <= trace.access_base[k] < FIRST + 4096 * size]
    assert len(chosen) == 1
    (k,) = chosen
    assert (trace.access_lanes[k], trace.access_lines[k]) == (lanes, lines)
    wanted = sorted({FIRST + int(i) * size // 32 * 32 for i in index if i >= 0})
    assert trace.sectors(k).tolist() == wanted
    assert len(wanted) == sectors


def test_a_buffer_that_does_not_begin_at_a_sector(patterns: Kernels) -> None:
    storage = np.zeros(64, np.int32)
    offset = storage.ctypes.data // 4 % 4
    trace = patterns.trace(
        "gather4", storage[4 - offset + 1 :], LANE.astype(np.int32), np.zeros(32, np.int32)
    )
    k = int(np.flatnonzero(trace.access_base == FIRST)[0])
    assert (len(trace.sectors(k)), trace.access_lines[k]) == (5, 2)


# shared memory

SHARED = {
    # size, index of each lane: passes
    "4 bytes side by side": (4, LANE, 1),
    "backwards": (4, 31 - LANE, 1),
    "one word for all": (4, 0 * LANE + 7, 1),
    "two words of one bank": (4, 32 * (LANE % 2), 2),
    "2-way": (4, 2 * LANE, 2),
    "4-way": (4, 4 * LANE, 4),
    "8-way": (4, 8 * LANE, 8),
    "16-way": (4, 16 * LANE, 16),
    "32-way": (4, 32 * LANE, 32),
    "odd stride": (4, 33 * LANE, 1),
    "stride 3": (4, 3 * LANE, 1),
    "two banks, 16 words each": (4, 32 * (LANE // 2) + LANE % 2, 16),
    "bytes of eight words": (1, LANE, 1),
    "bytes of every word of a bank": (1, 128 * LANE, 32),
    "8 bytes side by side": (8, LANE, 2),
    "one pair for all": (8, 0 * LANE, 2),
    "8 bytes, every second": (8, 2 * LANE, 4),
    "8 bytes, 16-way": (8, 16 * LANE, 32),
    "8 bytes, conflicts in one half only": (8, np.where(LANE < 16, LANE, 16 * (LANE - 16)), 17),
    "16 bytes side by side": (16, LANE, 4),
    "one quad for all": (16, 0 * LANE, 4),
    "16 bytes, every second": (16, 2 * LANE, 8),
    "16 bytes, 8-way": (16, 8 * LANE, 32),
    "16 bytes, the first quarter only": (16, np.where(LANE < 8, LANE, -1), 1),
    "half of the lanes": (4, np.where(LANE % 2, -1, LANE), 1),
}


@pytest.mark.parametrize("case", SHARED)
def test_passes_of_shared_memory(patterns: Kernels, case: str) -> None:
    size, index, passes = SHARED[case]
    n = int(index.max()) + 32
    trace = patterns.trace(
        f"banks{size}", buffer(size), index.astype(np.int32), buffer(size), np.int32(n), shared=n * size
    )
    (k,) = accesses(patterns, f"banks{size}", trace, "LDS")
    assert trace.access_passes[k] == passes
    assert trace.access_lanes[k] == np.count_nonzero(index >= 0)
    assert (trace.access_lines[k], trace.access_base[k], len(trace.sectors(k))) == (0, -1, 0)


@pytest.mark.parametrize("case", SHARED)
@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_l1_has_the_banks_of_shared_memory(patterns: Kernels, kind: str, case: str) -> None:
    size, index, passes = SHARED[case]
    name = f"{kind}{size}"
    trace = patterns.trace(name, buffer(size), index.astype(np.int32), buffer(size))
    found = accesses(patterns, name, trace, "LDG" if kind == "gather" else "STG")
    (k,) = (k for k in found if FIRST <= trace.access_base[k] < FIRST + 4096 * size)
    assert trace.access_passes[k] == passes


@pytest.mark.parametrize(
    ("rows", "passes"),
    [(LANE, 4), (np.tile([0, 8, 16, 24], 8), 16), (np.tile([0, 8, 1, 9, 2, 10, 3, 11], 4), 8)],
)
def test_rows_of_matrices(load: Load, rows: Array, passes: int) -> None:
    """Eight rows of 16 bytes at a time; rows 0, 8, 16 and 24 lie in the same banks."""
    kernels = load("matrices", "sm_80")
    tile, out = np.zeros((32, 8), np.uint16), np.zeros((4, 32), np.uint32)
    trace = kernels.trace("load4", tile, rows.astype(np.int32), out)
    (k,) = accesses(kernels, "load4", trace, "LDSM")
    assert (trace.access_passes[k], trace.access_lanes[k]) == (passes, 32)


# copies, local memory, atomics


def test_both_halves_of_a_copy(load: Load) -> None:
    kernels = load("copies", "sm_80")
    trace = kernels.trace("sizes", numbers(128), np.zeros(224, np.int32))
    found = accesses(kernels, "sizes", trace, "LDGSTS")
    assert trace.access_passes[found].tolist() == [1, 2, 4]
    assert trace.access_lines[found].tolist() == [1, 2, 4]
    assert [len(trace.sectors(k)) for k in found] == [4, 8, 16]
    assert (trace.access_lanes[found] == 32).all()


def test_copies_of_zeros_read_nothing(load: Load) -> None:
    """20 numbers, then none at all, and again none: three accesses, of which one touches global memory."""
    kernels = load("copies", "sm_80")
    trace = kernels.trace("zeros", numbers(20), np.zeros(96, np.int32), np.int32(20), np.int32(3))
    found = accesses(kernels, "zeros", trace, "LDGSTS")
    assert [len(trace.sectors(k)) for k in found] == [3, 0, 0]
    assert trace.access_base[found].tolist() == [FIRST, -1, -1]
    assert trace.access_lines[found].tolist() == [1, 0, 0]
    assert trace.access_lanes[found].tolist() == [32, 32, 32]
    assert trace.access_passes[found].tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", ["s8", "u32", "u64"])
def test_local_memory_is_interleaved(load: Load, kind: str) -> None:
    """Lanes at the same place of their stacks touch 32 units side by side, in every warp elsewhere."""
    kernels, name = load("memory", "sm_80"), f"local_{kind}"
    x = np.zeros(32, {"s8": np.int8, "u32": np.uint32, "u64": np.uint64}[kind])
    trace = kernels.trace(name, x, np.zeros(64, x.dtype), np.int32(0), block=64)
    code, touched = kernels.listings[name].instructions, (set[int](), set[int]())
    for k in accesses(kernels, name, trace, "STL"):
        store = code[trace.access_instruction[k]]
        if not store.operands[0].text.startswith(("[R1]", "[R1+")):
            continue
        words = {"64": 2, "128": 4}.get(next((m for m in store.modifiers if m in ("64", "128")), ""), 1)
        assert (np.diff(trace.sectors(k)) == 32).all()
        assert (len(trace.sectors(k)), trace.access_lines[k]) == (4 * words, words)
        touched[trace.access_warp[k]].update(trace.sectors(k).tolist())
    assert touched[0]
    assert touched[1]
    assert not touched[0] & touched[1]


@pytest.mark.parametrize(
    ("index", "meetings"), [(0 * LANE, 32), (LANE % 8, 4), (LANE // 8, 8), (np.where(LANE < 20, 0, 1), 20)]
)
def test_atomics_that_meet(load: Load, index: Array, meetings: int) -> None:
    kernels = load("atomics", "sm_80")
    cells, x, old = np.zeros(8, np.int32), numbers(32), np.zeros(32, np.int32)
    trace = kernels.trace("reduce_add_s32", cells, x, index.astype(np.int32))
    (k,) = accesses(kernels, "reduce_add_s32", trace, "RED")
    assert (trace.access_passes[k], trace.sectors(k).tolist()) == (meetings, [FIRST])
    trace = kernels.trace("shared_add_s32", cells, x, index.astype(np.int32), old)
    (k,) = accesses(kernels, "shared_add_s32", trace, "ATOMS")
    assert (trace.access_passes[k], trace.access_base[k]) == (meetings, -1)


# paths


def marked(kernels: Kernels, name: str, trace: Trace, warp: int, marks: dict[str, str]) -> str:
    """The path of a warp as letters: of the blocks in which one of these modifiers appears."""
    code, letters = kernels.listings[name].instructions, {}
    for block in control_flow(kernels.listings[name]):
        modifiers = {
            m for i in code[block.start : block.end] if i.opcode in ("RED", "ATOMG") for m in i.modifiers
        }
        letters[block.number] = "".join(letter for mark, letter in marks.items() if mark in modifiers)
    return "".join(letters[number] for number in trace.path(warp))


@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_paths_of_divergent_warps(load: Load, chip: str) -> None:
    kernels = load("patterns", chip)
    x = np.zeros((6, 32), np.int32)
    x[0], x[1], x[2] = 3, 4, 0
    x[3], x[3, 5], x[3, 9] = 1, 5, 6
    x[4], x[4, 7] = 2, 7
    x[5] = 3
    trace = kernels.trace("ways", x, np.zeros(3, np.int32), grid=3, block=64)
    paths = [
        marked(kernels, "ways", trace, warp, {"ADD": "a", "MAX": "m", "OR": "."})
        for warp in range(trace.warps)
    ]
    odd_first = paths[3].startswith("a")
    both = [("a" * a, "m" * m) for a, m in ((5, 3), (7, 1))]
    assert paths == [
        "aaa.", "mm.", ".", *("".join(b if odd_first else b[::-1]) + "." for b in both), "aaa."
    ]  # fmt: skip
    assert trace.path_of_warp[0] == trace.path_of_warp[5]
    assert len(set(trace.path_of_warp.tolist())) == 5


def test_a_path_follows_the_graph(load: Load) -> None:
    """Warps that do not diverge go along edges; their blocks add up to the instructions executed."""
    kernels = load("patterns", "sm_80")
    blocks = control_flow(kernels.listings["ways"])
    x = np.repeat(np.arange(8, dtype=np.int32), 32)
    trace = kernels.trace("ways", x, np.zeros(3, np.int32), block=256)
    for warp in range(8):
        path = trace.path(warp).tolist()
        assert path[0] == 0
        assert all(b in blocks[a].successors for a, b in pairwise(path))
    run = kernels.run("ways", x, np.zeros(3, np.int32), block=256)
    total = sum(len(blocks[number]) for warp in range(8) for number in trace.path(warp))
    assert run.warp_instructions == total


@pytest.mark.parametrize(
    ("source", "name"),
    [("patterns", "interrupted"), ("patterns", "ways"), ("barriers", "pipeline"), ("copies", "stages")],
)
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_every_access_belongs_to_its_visit(load: Load, chip: str, source: str, name: str) -> None:
    kernels = load(source, chip)
    x, out = numbers(960), np.zeros(1000, np.int32)
    rest = [np.int32(10)] if name == "pipeline" else []
    trace = kernels.trace(name, x, out, *rest, block={"pipeline": 96, "stages": 64}.get(name, 32))
    blocks = control_flow(kernels.listings[name])
    for k in range(len(trace.access_warp)):
        block = blocks[trace.path(trace.access_warp[k])[trace.access_position[k]]]
        assert block.start <= trace.access_instruction[k] < block.end


def test_slabs_do_not_show_in_a_trace(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = load("patterns", "sm_80")
    x = numbers(20 * 64, 0, 9)
    whole = kernels.trace("ways", x, np.zeros(3, np.int32), grid=20, block=64)
    monkeypatch.setattr(module, "_WARPS_IN_A_SLAB", 5)
    assert_same(whole, kernels.trace("ways", x, np.zeros(3, np.int32), grid=20, block=64))


# schedules


def assert_same(a: Trace, b: Trace, order: tuple[int, ...] | None = None) -> None:
    """The same paths and accesses; instruction k of `b` is instruction order[k] of `a`."""
    assert a.warps == b.warps
    for warp in range(a.warps):
        assert a.path(warp).tolist() == b.path(warp).tolist()
    renamed = b.access_instruction if order is None else np.array(order)[b.access_instruction]
    again = np.lexsort((renamed, b.access_position, b.access_warp))
    assert a.access_instruction.tolist() == renamed[again].tolist()
    for name in ("warp", "position", "lanes", "lines", "passes", "base"):
        assert (getattr(a, f"access_{name}") == getattr(b, f"access_{name}")[again]).all(), name
    for k, other in enumerate(again):
        assert a.sectors(k).tolist() == b.sectors(int(other)).tolist()


def arguments_of(name: str) -> tuple[Argument, ...]:
    x = numbers(192, 0, 32)
    match name:
        case "stages" | "reversed" | "ways":
            return x, np.zeros(192, np.int32)
        case "shared_add_f32":
            return np.zeros(8, np.float32), x.astype(np.float32), x % 8, np.zeros(64, np.float32)
        case "local_u64":
            return x.astype(np.uint64), np.zeros(64, np.uint64), np.int32(3)
    return np.zeros(512, np.uint8), x, np.zeros(256, np.uint32)


@pytest.mark.parametrize(
    ("source", "name", "block"),
    [("copies", "stages", 64), ("barriers", "reversed", 64), ("patterns", "ways", 32),
     ("matrices", "load4t", 32), ("atomics", "shared_add_f32", 64), ("memory", "local_u64", 32)],
)  # fmt: skip
def test_a_schedule_does_not_change_the_trace(load: Load, source: str, name: str, block: int) -> None:
    kernels, rng = load(source, "sm_80"), random.Random(0)
    board = Board(kernels.listings[name])
    for _ in range(60):
        if swaps := board.legal_swaps():
            board.swap(rng.choice(swaps))
        i = rng.randrange(len(board.code))
        board.move(i, rng.choice(board.reach(i)))
    schedule = board.schedule()
    assert sum(p != i for p, i in enumerate(schedule.order)) > 1
    other = Emulator(schedule.apply(kernels.cubin), name)
    first, second = (
        emulator.trace(launch(arguments_of(name), block=block))
        for emulator in (kernels.emulator(name), other)
    )
    assert_same(first, second, schedule.order)
    assert first.header.code != second.header.code
