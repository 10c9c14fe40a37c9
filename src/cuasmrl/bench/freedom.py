"""How much of a loop may move: pinned instructions, and pairs that nothing keeps in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Instruction, disassemble
from cuasmrl.schedule import Board
from cuasmrl.schedule.blocks import Block, loop_depths
from cuasmrl.schedule.graph import Graph


@dataclass(frozen=True)
class Freedom:
    """Of the loop blocks of a kernel that give orders to engines beside the warp."""

    cubin: str
    kernel: str
    blocks: int
    instructions: int
    pinned: int
    unordered: int
    """Pairs of a block that may stand in either order, as far as dependences tell."""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def freedom(directory: Path, advance: Callable[[int, int], None] | None = None) -> list[Freedom]:
    """Of every kernel below a directory that has such blocks."""
    found: list[Freedom] = []
    paths = sorted(directory.rglob("*.cubin"))
    for number, path in enumerate(paths):
        for listing in disassemble(Cubin.load(path)).values():
            if any(_is_engine(i) for i in listing.instructions):
                found += _of_kernel(path.stem, Board(listing))
        if advance is not None:
            advance(number + 1, len(paths))
    return found


def _of_kernel(cubin: str, board: Board) -> Iterable[Freedom]:
    depths = loop_depths(board.blocks)
    chosen = [
        block
        for block in board.blocks
        if depths[block.number] and any(_is_engine(i) for i in board.code[block.start : block.end])
    ]
    if chosen:
        yield Freedom(
            cubin,
            board.listing.kernel.name,
            len(chosen),
            sum(len(block) for block in chosen),
            sum(board.fixed[i] for block in chosen for i in range(block.start, block.end)),
            sum(_unordered(block, board.graphs[block.number], board.fixed) for block in chosen),
        )


def _is_engine(i: Instruction) -> bool:
    return i.is_product or i.opcode.startswith(("UTMA", "UBLK", "UTC", "LDTM", "STTM"))


def _unordered(block: Block, graph: Graph, fixed: list[bool]) -> int:
    found = 0
    region = 0
    """Instructions since the last pinned one, as bits."""
    before: dict[int, int] = {}
    """Those of its region that an instruction stays behind, by chains of dependences."""
    for i in range(block.start, block.end):
        before[i] = 0
        if fixed[i]:
            region = 0
            continue
        for p in graph.predecessors.get(i, ()):
            if p < i:
                before[i] |= (before[p] | 1 << (p - block.start)) & region
        found += region.bit_count() - before[i].bit_count()
        region |= 1 << (i - block.start)
    return found


def freedom_table(kernels: list[Freedom]) -> Table:
    table = Table("kernel", box=None, padding=(0, 2, 0, 0))
    for name in ("blocks", "instructions", "pinned", "unordered pairs"):
        table.add_column(name, justify="right")
    for one in kernels:
        _row(table, one.cubin, [one])
    _row(table, "all", kernels)
    return table


def _row(table: Table, name: str, kernels: list[Freedom]) -> None:
    columns = ("blocks", "instructions", "pinned", "unordered")
    table.add_row(name, *(f"{sum(getattr(one, column) for one in kernels):,}" for column in columns))
