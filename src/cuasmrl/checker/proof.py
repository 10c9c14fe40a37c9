"""The proof: the original and a candidate in, a certificate or the first broken rule out."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

from cuasmrl.binary.cubin import WORD_BYTES, Cubin
from cuasmrl.binary.sass import Control, Distances, Listing, disassemble, distances
from cuasmrl.checker.crossing import Crossing
from cuasmrl.checker.fields import crowding_faults, field_faults
from cuasmrl.checker.latency import Latencies, Timed
from cuasmrl.checker.matching import match_words, padding_faults, record_faults
from cuasmrl.checker.memory import MemoryOrder
from cuasmrl.checker.operations import Tables
from cuasmrl.checker.products import Products
from cuasmrl.checker.program import Arrangement, Program, arrange, as_compiled
from cuasmrl.checker.scoreboards import run
from cuasmrl.checker.sharing import Sharing
from cuasmrl.checker.spacing import Spacings
from cuasmrl.checker.verdict import Certificate, Fault, Refusal, Rule, refusal
from cuasmrl.checker.version import VERSION
from cuasmrl.errors import CuasmrlError


def check(
    original: Cubin,
    candidate: Cubin,
    listings: Mapping[str, Listing] | None = None,
    table: Distances | None = None,
) -> Certificate:
    """Certify that `candidate` is as safe as `original`, or raise the Refusal that names the first fault."""
    return Checker(original, listings, table).check(candidate)


class Checker:
    """Everything about an original that does not depend on the candidate, for checking many of them."""

    def __init__(
        self, original: Cubin, listings: Mapping[str, Listing] | None = None, table: Distances | None = None
    ):
        self.original = original
        self.table = distances(original.arch) if table is None else table
        found = disassemble(original) if listings is None else listings
        self._kernels = [
            _KernelProof(_listing(original, found, k.name), self.table) for k in original.kernels
        ]

    def check(self, candidate: Cubin) -> Certificate:
        if candidate.arch != self.original.arch:
            raise CuasmrlError(
                f"{candidate.source} is compiled for sm_{candidate.arch} but {self.original.source} for "
                f"sm_{self.original.arch}; give two cubins of one chip"
            )
        _check_container(self.original, candidate)
        proved = {proof.name: proof.prove(candidate.data) for proof in self._kernels}
        return Certificate(
            original=hashlib.sha256(self.original.data).hexdigest(),
            candidate=hashlib.sha256(candidate.data).hexdigest(),
            arch=self.original.arch,
            kernels=tuple(proved),
            proved=proved,
            checker=VERSION,
            distances=hashlib.sha256("".join(proof.digest for proof in self._kernels).encode()).hexdigest(),
        )


def _listing(original: Cubin, listings: Mapping[str, Listing], name: str) -> Listing:
    """A listing handed in must be one of these very words."""
    listing, kernel = listings.get(name), original.kernel(name)
    words = () if listing is None else tuple(i.word for i in listing.instructions)
    if listing is None or listing.kernel != kernel or words != kernel.words:
        raise CuasmrlError(f"{original.source}: the listing given for kernel {name} is not one of this cubin")
    return listing


def _check_container(original: Cubin, candidate: Cubin) -> None:
    """Only words and the offsets that follow them may differ."""
    if len(original.data) != len(candidate.data):
        sizes = f"{len(candidate.data)} bytes long, the original {len(original.data)}"
        raise Refusal(Rule.CONTAINER, "", f"the candidate is {sizes}")
    before, after = bytearray(original.data), bytearray(candidate.data)
    for start, size in _editable(original):
        before[start : start + size] = after[start : start + size] = bytes(size)
    if before != after:
        position = next(n for n, (x, y) in enumerate(zip(before, after, strict=True)) if x != y)
        inside = [s.name for s in original.sections if s.in_file and s.offset <= position < s.offset + s.size]
        where = f"in section {inside[0]}" if inside else "outside all sections"
        raise Refusal(
            Rule.CONTAINER,
            "",
            f"byte {position:#x} of the file, {where}, differs and belongs to no instruction",
        )


def _editable(original: Cubin) -> Iterator[tuple[int, int]]:
    for kernel in original.kernels:
        yield kernel.text.offset, kernel.text.size
        yield from ((slot, 4) for slot in kernel.record_offsets())


class _KernelProof:
    def __init__(self, listing: Listing, table: Distances):
        self.name = listing.kernel.name
        self.table = table
        self.program = Program(listing)
        self.original = as_compiled(self.program)
        self.tables = Tables(self.program)
        self.findings = run(self.program, self.tables, self.original)
        self.unprotected = self.findings.unprotected
        self.timed = Timed(self.program, table, self.unprotected)
        self.latencies = Latencies(self.program, self.timed, self.original)
        self.crossing = Crossing(self.program, self.timed, self.original, self.latencies.waits)
        self.spacings = Spacings(self.program, table, self.original)
        self.sharing = Sharing(self.program, table, self.original)
        self.memory = MemoryOrder(self.program)
        self.products = Products(self.program, self.original, table)

    def prove(self, data: bytes) -> dict[str, int]:
        text = self.program.kernel.text
        code = data[text.offset : text.offset + text.size]
        words = [code[i : i + WORD_BYTES] for i in range(0, len(code), WORD_BYTES)]
        order = match_words(self.program, words)
        if isinstance(order, Fault):
            raise refusal(self.name, order, self.program.instructions, self.original.position)
        candidate = arrange(self.program, order, self._controls(order, words))
        for faults in self._rules(candidate, data):
            self._refuse_first(faults, candidate)
        return dict(self._counts)

    def _rules(self, candidate: Arrangement, data: bytes) -> Iterator[Iterable[Fault]]:
        """In this order, so that a candidate with several faults is refused for the most telling one."""
        yield record_faults(self.program, candidate, data)
        yield padding_faults(self.program, candidate)
        yield field_faults(self.program, candidate, self.table)
        yield self._data_flow_faults(candidate)
        yield self.memory.faults(candidate)
        yield self.products.faults(candidate)
        yield self._scoreboard_faults(candidate)
        yield crowding_faults(self.program, candidate, self.original)
        yield self._distance_faults(candidate)
        yield self.spacings.release_faults(candidate)
        yield self.spacings.spacing_faults(candidate)
        yield self.sharing.faults(candidate)

    def _refuse_first(self, faults: Iterable[Fault], candidate: Arrangement) -> None:
        """The first is the one with the lowest consumer; what a loop carries round comes after the rest."""

        def rank(fault: Fault) -> tuple[bool, int, int, int, int, str]:
            position = candidate.position[fault.consumer]
            origin = position if fault.producer is None else candidate.position[fault.producer]
            carried = fault.producer is not None and fault.producer > fault.consumer
            rule = list(Rule).index(fault.rule)
            return carried, position, origin, rule, fault.register or 0, fault.message

        first = min(faults, key=rank, default=None)
        if first is not None:
            raise refusal(self.name, first, self.program.instructions, candidate.position)

    def _controls(self, order: list[int], words: list[bytes]) -> list[Control]:
        controls = list(self.original.controls)
        for position, i in enumerate(order):
            if words[position] != self.program.instructions[i].word:
                controls[i] = Control.decode(words[position])
        return controls

    def _data_flow_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """All accesses to a register follow each other as before, but for the order of mere reads.

        Blocks and their graph are unchanged, so every use then sees the same definitions on every path.
        """
        for hazard, p, c, register in self.program.dependences.broken(candidate.positions):
            yield Fault(Rule.DATA_FLOW, c, f"{{p}} must stay before {{c}}: {hazard.name}", p, register)

    def _distance_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        if candidate != self.original:
            inside = list(self.latencies.faults(candidate))
            yield from inside
            yield from self.products.closeness_faults(candidate)
            first = min((candidate.position[fault.consumer] for fault in inside), default=None)
            yield from self.crossing.faults(candidate, first)

    def _scoreboard_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        found = run(self.program, self.tables, candidate, self.findings.settled)
        for edge in found.unprotected.beyond(self.unprotected):
            message = f"{{c}} no longer waits for {{p}}: {edge.hazard.name} without a scoreboard"
            yield Fault(Rule.SCOREBOARD, edge.consumer, message, edge.producer, edge.register)
        for i, settled in self.findings.settled.items():
            # Such a wait may stand for memory that has to be settled, which no register shows.
            for p in self.tables.instructions(settled & found.under_way.get(i, 0)):
                yield Fault(Rule.SCOREBOARD, i, "{c} no longer waits for {p}", p)
        for i, unordered in found.unordered.items():
            for p in self.tables.instructions(unordered & ~self.findings.unordered.get(i, 0)):
                message = "{c} no longer waits for {p}, which orders what comes behind it"
                yield Fault(Rule.SCOREBOARD, i, message, p)

    @cached_property
    def _counts(self) -> Counter[str]:
        program = self.program
        counts = Counter[str](instructions=len(program.instructions), blocks=len(program.blocks))
        variable = np.array([i.is_variable for i in program.instructions], dtype=bool)
        for (hazard, is_variable), amount in program.dependences.counts(variable).items():
            counts[f"{hazard} {'scoreboard' if is_variable else 'distance'}"] = amount
        counts["records"] = len(self.program.kernel.record_offsets())
        counts["memory and synchronisation"] = sum(self.memory.ordered)
        counts["unprotected in the original"] = len(self.unprotected)
        return counts

    @cached_property
    def digest(self) -> str:
        """Over the answers for this kernel: a row for another opcode changes no proof."""
        digest = hashlib.sha256()
        pieces = (piece for piece in self._relied_on() if piece)
        # All numbers are parted by blanks, and the first has none in front.
        digest.update(next(pieces, b"")[1:])
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()

    def _relied_on(self) -> Iterator[bytes]:
        yield from self.timed.relied_on()
        yield from self.products.relied_on()
        answers: dict[str, bytes] = {}
        for i in self.program.instructions:
            if i.timing_key not in answers:
                found = f" {self.table.minimum_stall(i)} {self.table.spacing(i)} {self.table.release(i)}"
                shares = None if i.declaration is None else i.declaration.shares
                found += "" if shares is None else f" {self.table.spacing(i, shares)}"
                answers[i.timing_key] = found.encode()
            yield answers[i.timing_key]
