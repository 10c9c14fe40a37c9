"""Large kernels: the graph stays sparse, and a larger kernel takes longer by as much as it is larger.

What is counted does not depend on the machine; processor time per instruction, where it is compared between
two sizes, may differ by a generous factor only, which a cost that grows with the square exceeds.
"""

import random
import time
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.bench.large import Shape, build, growth, large, source
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.schedule import Block, Board, Reason, Scoreboards, control_flow, registers
from cuasmrl.schedule.flow import Flow
from cuasmrl.schedule.graph import Graph, Weave
from cuasmrl.schedule.lint import lint
from cuasmrl.schedule.machine import Ledger, Machine, at_entry
from cuasmrl.schedule.random_moves import random_moves
from tests.assembly import listing

MOST_EDGES = 12
"""Per instruction; 6 in a block of 50,000, where all dependences together are 540."""
TOLERANCE = 2.5


def unrolled(units: int) -> Listing:
    """One block of loads, stores, shared memory and predicated code that shares address registers."""
    lines = []
    for k in range(units):
        data, flag = 8 + k % 40, k % 3
        lines += [
            f"B------:R-:W{flag}:-:S02  LDG.E R{data}, [R2.64+{4 * k:#x}]",
            f"B------:R4:W-:-:S02  STS [R4+{4 * k % 4096:#x}], R5",
            f"B{'-' * flag}{flag}{'-' * (3 - flag)}45:R-:W-:-:S05  FFMA R5, R{data}, R{data}, R5",
            f"B------:R-:W-:-:S05  @P{flag} FADD R6, R6, R{data}",
            f"B------:R-:W3:-:S02  LDS R7, [R4+{4 * k % 1024:#x}]",
            "B---3--:R-:W-:-:S05  FSETP.GT.AND P0, PT, R7, R5, PT",
            f"B------:R5:W-:-:S02  STG.E [R2.64+{4 * k + 0x10000:#x}], R5",
        ]
    return listing("\n".join([*lines, "B------:R-:W-:-:S05  EXIT"]), arch=80)


def branching(units: int) -> Listing:
    """Small blocks: loops, reconvergence, and a function that all of them call."""
    lines = []
    for k in range(units):
        lines += [
            f".L{k}:",
            "B------:R-:W0:-:S02  LDG.E R8, [R2.64]",
            f"B------:R-:W-:-:S04  BSSY B0, `(.Lback{k})",
            f"B0-----:R-:W-:-:S05  ISETP.GT.AND P0, PT, R8, {k:#x}, PT",
            f"B------:R-:W-:-:S05  @P0 BRA `(.Lend{k})",
            "B------:R-:W-:-:S02  STG.E [R2.64], R9",
            "B------:R-:W-:-:S05  CALL.REL.NOINC `(.Lfunction)",
            f".Lend{k}:",
            "B------:R-:W-:-:S05  BSYNC B0",
            f".Lback{k}:",
            f"B------:R-:W-:-:S05  @P1 BRA `(.L{k})",
        ]
    function = [
        ".Lfunction:",
        "B------:R-:W-:-:S05  FADD R9, R9, R9",
        "B------:R-:W-:-:S05  RET.REL.NODEC R20 `(.L0)",
    ]
    return listing("\n".join([*lines, "B------:R-:W-:-:S05  EXIT", *function]), arch=80)


def edges_of(board: Board) -> int:
    return sum(len(edges) for graph in board.graphs for edges in graph.successors.values())


def test_a_block_of_any_size_has_few_edges_for_each_instruction() -> None:
    few, many = (Board(unrolled(units)) for units in (60, 600))
    assert edges_of(many) <= MOST_EDGES * len(many.code)
    assert edges_of(many) / len(many.code) <= 1.2 * edges_of(few) / len(few.code)
    # The dependences themselves are many: every store stays behind every load before it.
    dependences = sum(many.graphs[0].before.values())
    assert dependences == sum(many.graphs[0].behind.values()) > 100 * len(many.code)


def test_blocks_are_visited_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0
    forwards = Flow.forwards

    def counted(self: Flow, leave: Callable[[int], object], enter: Callable[[int, object], bool]) -> None:
        def visit(node: int) -> object:
            nonlocal visits
            visits += 1
            return leave(node)

        forwards(self, visit, enter)

    monkeypatch.setattr(Flow, "forwards", counted)
    code = branching(150)
    blocks = control_flow(code)
    at_entry(blocks, Ledger(code.instructions))
    assert visits <= 8 * len(blocks)


def test_returns_to_many_places_meet_in_one_junction() -> None:
    blocks = control_flow(branching(100))
    flow = Flow(blocks)
    assert sum(len(block.successors) for block in blocks) > 20 * len(blocks)
    assert sum(len(following) for following in flow.successors) < 4 * len(blocks)


def seconds(action: Callable[[Listing], object], code: Listing) -> float:
    start = time.process_time()
    action(code)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [unrolled, branching])
@pytest.mark.parametrize(
    "action", [Board, lambda code: Board(code, scoreboards=Scoreboards.REASSIGNED), lint],
    ids=["board", "reassigned", "lint"],
)  # fmt: skip
def test_time_per_instruction_stays(
    kernel: Callable[[int], Listing], action: Callable[[Listing], object]
) -> None:
    small, large_one = kernel(40), kernel(300)
    action(small)  # tables are read, functions compiled
    once = min(seconds(action, small) for _ in range(3)) / len(small.instructions)
    assert seconds(action, large_one) / len(large_one.instructions) < TOLERANCE * once


# ---- chains stand for edges ----


@st.composite
def relations(draw: st.DrawFn) -> list[int]:
    """For each position, others before it that it has to stay behind, as bits."""
    n = draw(st.integers(2, 9))
    return [draw(st.integers(0, (1 << q) - 1)) for q in range(n)]


@cache
def plain(n: int) -> Listing:
    return listing("\n".join(f"B------:R-:W-:-:S01  MOV R{i}, RZ" for i in range(n)))


def woven(rows: list[int], distances: dict[tuple[int, int], int]) -> Graph:
    n, graph = len(rows), Graph()
    for (first, second), need in distances.items():
        graph.add(first, second, need, Reason.REGISTER)
    weave = Weave(graph, range(n), plain(n).instructions)
    for row in rows:
        weave.tie({Reason.MEMORY: row})
    weave.close()
    return graph


def allowed(edges: set[tuple[int, int]], order: list[int]) -> bool:
    position = {i: p for p, i in enumerate(order)}
    return all(position[first] < position[second] for first, second in edges)


@given(relations(), st.data())
def test_the_sparse_graph_allows_the_same_orders(rows: list[int], data: st.DataObject) -> None:
    n = len(rows)
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=5))
    distances = {(first, second): 4 for first, second in pairs if first < second}
    full = {(p, q) for q, row in enumerate(rows) for p in range(q) if row >> p & 1} | set(distances)
    graph = woven(rows, distances)
    sparse = {(first, second) for first, behind in graph.successors.items() for second in behind}
    assert set(distances) <= sparse <= full
    for first, second in sparse - set(distances):
        assert not any((first, m) in full and (m, second) in full for m in range(first + 1, second))
    order = list(range(n))
    for _ in range(20):
        random.Random(data.draw(st.integers(0, 1000))).shuffle(order)
        assert allowed(sparse, order) == allowed(full, order)
    for i in range(n):
        assert graph.before[i] == sum(second == i for _, second in full)
        assert graph.behind[i] == sum(first == i for first, _ in full)


# ---- sets as bits ----


def reference_states(blocks: tuple[Block, ...], ledger: Ledger) -> list[tuple[int, tuple[int, ...]]]:
    """By brute force: all blocks in turn until nothing changes, the sets of numbers as sets."""
    entries = [ledger.idle() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for block in blocks:
            machine = Machine(ledger, entries[block.number])
            for instruction in ledger.code[block.start : block.end]:
                machine.end(machine.finished(instruction, instruction.control))
                machine.issue(instruction, instruction.control)
            for successor in block.successors:
                joined = entries[successor].joined(machine.state)
                changed |= joined != entries[successor]
                entries[successor] = joined
    return [(entry.out, entry.loose) for entry in entries]


@pytest.mark.parametrize("units", [1, 2, 7, 12])
def test_junctions_and_the_order_of_visits_change_nothing(units: int) -> None:
    code = branching(units)
    blocks = control_flow(code)
    ledger = Ledger(code.instructions)
    found = [(entry.out, entry.loose) for entry in at_entry(blocks, ledger)]
    assert found == reference_states(blocks, ledger)


# ---- registers under guards ----


@pytest.mark.parametrize("how", Scoreboards)
@pytest.mark.parametrize("seed", range(4))
def test_accesses_that_retire_leave_the_same_moves(
    monkeypatch: pytest.MonkeyPatch, seed: int, how: Scoreboards
) -> None:
    code = guarded(120, random.Random(seed))
    monkeypatch.setattr(registers, "_FEW", 1 << 30)
    full = Board(code, scoreboards=how)
    monkeypatch.setattr(registers, "_FEW", 0)
    sparse = Board(code, scoreboards=how)
    assert edges_of(sparse) < edges_of(full)
    for _ in range(3):
        for mine, others in zip(sparse.reaches(sparse.blocks[0]), full.reaches(full.blocks[0]), strict=True):
            assert mine.tolist() == others.tolist()
        assert bytes(sparse.mask) == bytes(full.mask)
        assert sparse.inheritable_swaps() == full.inheritable_swaps()
        assert sparse.graphs[0].before == full.graphs[0].before
        assert sparse.graphs[0].behind == full.graphs[0].behind
        moves = [random_moves(board, 40, random.Random(seed)) for board in (sparse, full)]
        assert moves[0] == moves[1]
        assert sparse.schedule() == full.schedule()


def guarded(count: int, rng: random.Random) -> Listing:
    """Two registers that are only ever written under guards."""
    lines = []
    for _ in range(count):
        guard, target, source, stall = rng.randrange(3), rng.choice((6, 7)), rng.choice((6, 7, 8, 9)), 6
        text = rng.choice(
            (
                f"@P{guard} FADD R{target}, R{source}, R9",
                f"@!P{guard} MOV R{target}, R{source}",
                f"FMUL R{rng.randrange(10, 20)}, R{target}, R{source}",
                f"MOV R{rng.randrange(10, 20)}, R{rng.randrange(20, 30)}",
            )
        )
        lines.append(f"B------:R-:W-:-:S{stall:02}  {text}")
    return listing("\n".join([*lines, "B------:R-:W-:-:S05  EXIT"]), arch=80)


# ---- compiled kernels ----


@pytest.fixture(scope="module")
def compiled() -> dict[Shape, Cubin]:
    return {shape: build(shape, 3000) for shape in Shape}


@pytest.mark.parametrize("shape", Shape)
def test_compiled_kernels_have_the_wanted_size_and_shape(compiled: dict[Shape, Cubin], shape: Shape) -> None:
    board = Board(disassemble_kernel(compiled[shape]))
    assert 2000 < len(board.code) < 4500
    longest = max(len(block) for block in board.blocks)
    assert longest > 0.9 * len(board.code) if shape is Shape.ONE_BLOCK else longest < 100
    assert edges_of(board) <= MOST_EDGES * len(board.code)
    assert "large" in source(shape, 10)


@pytest.mark.slow
def test_fifty_thousand_instructions_take_as_long_as_fifty_times_one_thousand() -> None:
    figures = large(lambda done, total: None, (1000, 50_000), seconds=900)
    for shape in Shape:
        alike = [f for f in figures if f.shape == shape]
        largest = alike[-1]
        assert largest.instructions > 40_000
        for stage in ("load", "board", "reassigned", "lint"):
            ratio, took = growth(alike, stage), getattr(largest, stage)
            assert (ratio or 9) < 1.3, (shape, stage, ratio)
            assert (took or 99) < 25, (shape, stage, took)
        assert (largest.megabytes or 9999) < 2048
