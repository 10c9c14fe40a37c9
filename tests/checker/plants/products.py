"""Products of a warpgroup: registers touched too early or late, order, counts, cycles around them."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from cuasmrl.binary.sass import File, Instruction, Order, Space, file_of, without_control
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Named, Plant, Site, both, edit, is_too_close, kind, move, one_of
from tests.checker.subjects import Subject

_PRODUCT = frozenset((Rule.PRODUCT,))
_ORDER = frozenset((Rule.SYNC_ORDER,))
_MOVED_PRODUCT = frozenset((Rule.SYNC_ORDER, Rule.DATA_FLOW))


# ---- what is where ----


def _of(subject: Subject, opcode: str, modifier: str) -> list[int]:
    return [i.index for i in subject.code if i.opcode == opcode and modifier in i.modifiers]


def arrivals(subject: Subject) -> list[int]:
    return _of(subject, "WARPGROUP", "ARRIVE")


def waits(subject: Subject) -> list[int]:
    return _of(subject, "WARPGROUP", "DEPBAR")


def _is_product(i: Instruction) -> bool:
    return i.opcode.endswith("GMMA")


def _count(wait: Instruction) -> int:
    return int(wait.text.split(",")[1], 16)


def _written(product: Instruction) -> set[int]:
    return {access.register for access in product.defs}


def _read(product: Instruction) -> set[int]:
    used = {access.register for access in product.uses if file_of(access.register) is File.R}
    return used - _written(product)


def awaited(subject: Subject, wait: int) -> list[int]:
    """Products of its block that are in flight until this DEPBAR."""
    found: list[int] = []
    closed = 0
    for i in range(wait - 1, -1, -1):
        code = subject.code[i]
        if subject.block[i] != subject.block[wait]:
            break
        if code.opcode == "WARPGROUP" and "DEPBAR" in code.modifiers and not _count(code):
            break
        if _is_product(code):
            closed += "gsb0" in code.text
            if closed > _count(subject.code[wait]):
                found.append(i)
    earlier = [w for w in waits(subject) if w < wait and found and w > min(found)]
    return [p for p in found if not any(p in awaited(subject, w) for w in earlier)]


def begun(subject: Subject, arrival: int) -> list[int]:
    """Products of its block behind this ARRIVE, up to the next."""
    found: list[int] = []
    for i in subject.code[arrival + 1 :]:
        if subject.block[i.index] != subject.block[arrival] or i.index in arrivals(subject):
            break
        if _is_product(i):
            found.append(i.index)
    return found


def _touches(i: Instruction, registers: Iterable[int], reads: bool, writes: bool) -> bool:
    accesses = (i.uses if reads else ()) + (i.defs if writes else ())
    return not {access.register for access in accesses}.isdisjoint(registers)


def _is_other(i: Instruction) -> bool:
    return i.order is not Order.PRODUCT and not i.never_executes


def _may_go(subject: Subject, i: int, across: Iterable[int], unless: int) -> bool:
    """Is there nothing but the one instruction that it must not cross?"""
    word = without_control(subject.code[i].word)
    return subject.is_movable(i) and not any(
        # Of equal words nobody can tell which has moved.
        (j != i and without_control(subject.code[j].word) == word)
        or (j != unless and (subject.hazards(i, j) or subject.hazards(j, i) or subject.may_be_ordered(i, j)))
        for j in across
    )


def _stays_free(subject: Subject, i: int) -> bool:
    """Do control bits of it matter to nobody? Else another rule may speak first."""
    control = subject.code[i].control
    return not control.sets and not control.wait_mask


# ---- registers touched in flight ----


def _early(name: str, reads: bool, writes: bool, of_source: bool = False) -> None:
    """Behind a DEPBAR, the first that touches what it awaits goes in front of it."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for w in waits(subject):
            products = awaited(subject, w)
            held = {p: (_read if of_source else _written)(subject.code[p]) for p in products}
            for c in range(w + 1, len(subject.code)):
                if subject.region[c] != subject.region[w]:
                    break
                touching = [p for p in products if _touches(subject.code[c], held[p], reads, writes)]
                code = subject.code[c]
                free = _is_other(code) and _stays_free(subject, c) and _may_go(subject, c, range(w, c), w)
                if touching and free:
                    yield partial(move, subject, c, w, _PRODUCT, _one_and(touching, c), name)


def _one_and(ones: list[int], other: int) -> Named:
    def named(refusal: Refusal) -> bool:
        pair = {refusal.producer, refusal.consumer}
        return other in pair and not pair.isdisjoint(ones)

    return named


_early("accumulator read in flight", reads=True, writes=False)
_early("accumulator overwritten in flight", reads=False, writes=True)
_early("A registers overwritten in flight", reads=False, writes=True, of_source=True)


def _around(subject: Subject, wait: int) -> list[int]:
    """Products of its block that are in flight when a loop, that is only this block, comes back to a wait."""
    inside = [i for i in subject.code if subject.block[i.index] == subject.block[wait]]
    first, last = inside[0], inside[-1]
    if last.target is None or last.target // 16 != first.index or _count(subject.code[wait]):
        return []
    if any(w < wait for w in waits(subject) if w >= first.index):
        return []
    latest = max(w for w in waits(subject) if w <= last.index)
    return [i.index for i in inside if _is_product(i) and i.index > latest]


@kind("accumulator touched while it is in flight round a loop")
def touched_round_a_loop(subject: Subject) -> Iterator[Site]:
    for w in waits(subject):
        products = _around(subject, w)
        for c in range(w + 1, min(products, default=0)):
            touching = [
                p for p in products if _touches(subject.code[c], _written(subject.code[p]), True, True)
            ]
            together = subject.region[c] == subject.region[w] and _may_go(subject, c, range(w, c), w)
            if touching and together and _is_other(subject.code[c]) and _stays_free(subject, c):
                named = _one_and(touching, c)
                yield partial(move, subject, c, w, _PRODUCT, named, "touched round a loop")


@kind("wait for products put off past who touches their registers")
def wait_put_off(subject: Subject) -> Iterator[Site]:
    for w in waits(subject):
        products = awaited(subject, w)
        held = set().union(*(_written(subject.code[p]) for p in products))
        for c in range(w + 1, len(subject.code) - 1):
            if subject.region[c + 1] != subject.region[w]:
                break
            code = subject.code[c]
            if code.order is not Order.FREE and subject.may_be_ordered(w, c):
                break
            if _is_other(code) and _touches(code, held, True, True):
                if not subject.code[w].control.wait_mask:
                    name = "wait put off"
                    yield partial(move, subject, w, c + 1, _PRODUCT, _one_and(products, c), name)
                break


# ---- registers not there when products begin ----


def _late(name: str, reads: bool, writes: bool, of_source: bool = False) -> None:
    """In front of an ARRIVE, the last that touches a register of the products goes behind it."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for a in arrivals(subject):
            products = begun(subject, a)
            held = {p: (_read if of_source else _written)(subject.code[p]) for p in products}
            for x in range(a - 1, -1, -1):
                if subject.region[x] != subject.region[a]:
                    break
                code = subject.code[x]
                using = [p for p in products if _touches(code, held[p], reads, writes)]
                free = _is_other(code) and _stays_free(subject, x)
                if using and free and _may_go(subject, x, range(x + 1, a + 1), a):
                    yield partial(move, subject, x, a + 1, _PRODUCT, _one_and(using, x), name)


_late("accumulator written behind the ARRIVE of its products", reads=False, writes=True)
_late("accumulator read behind the ARRIVE of its products", reads=True, writes=False)
_late("A registers written behind the ARRIVE of their product", reads=False, writes=True, of_source=True)


@kind("ARRIVE put in front of who touches registers of its products")
def arrive_put_forward(subject: Subject) -> Iterator[Site]:
    for a in arrivals(subject):
        products = begun(subject, a)
        held = set().union(*(_written(subject.code[p]) | _read(subject.code[p]) for p in products))
        written = set().union(*(_written(subject.code[p]) for p in products))
        for x in range(a - 1, -1, -1):
            code = subject.code[x]
            if subject.region[x] != subject.region[a] or subject.may_be_ordered(x, a):
                break
            if _is_other(code) and (
                _touches(code, held, False, True) or _touches(code, written, True, False)
            ):
                if not subject.code[a].control.wait_mask:
                    named = _one_and(products, x)
                    yield partial(move, subject, a, x, _PRODUCT, named, "ARRIVE put forward")
                break


# ---- one queue ----


def exchanged(
    name: str, chosen: Callable[[Instruction, Instruction], bool], rules: frozenset[Rule] = _ORDER
) -> None:
    """Of two that have to keep their order, one goes past the other, if nothing else stops it."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        p: int | None = None
        for c in range(len(subject.code)):
            together = p is not None and subject.region[p] == subject.region[c]
            if p is not None and together and chosen(subject.code[p], subject.code[c]):
                if _may_go(subject, c, range(p, c), p) and subject.is_movable(p):
                    yield partial(move, subject, c, p, rules, both(p, c), name)
                elif _may_go(subject, p, range(p + 1, c + 1), c) and subject.is_movable(c):
                    yield partial(move, subject, p, c + 1, rules, both(p, c), name)
            if subject.code[c].order is not Order.FREE:
                p = c


def _depbar(i: Instruction) -> bool:
    return i.opcode == "WARPGROUP" and "DEPBAR" in i.modifiers


def _arrive(i: Instruction) -> bool:
    return i.opcode == "WARPGROUP" and "ARRIVE" in i.modifiers


def _closes(i: Instruction) -> bool:
    return _is_product(i) and "gsb0" in i.text


def _fills(i: Instruction) -> bool:
    """It writes shared memory, where products may still read."""
    return i.declaration is not None and i.declaration.writes is Space.SHARED


exchanged("products exchanged", lambda p, c: _is_product(p) and _is_product(c), _MOVED_PRODUCT)
exchanged("product put in another group", lambda p, c: _closes(p) and _is_product(c), _MOVED_PRODUCT)
exchanged("product in front of its ARRIVE", lambda p, c: _arrive(p) and _is_product(c))
exchanged("wait for products in front of one", lambda p, c: _is_product(p) and _depbar(c))
exchanged("product in front of a wait for others", lambda p, c: _depbar(p) and _is_product(c))
exchanged("ARRIVE in front of a wait for products", lambda p, c: _depbar(p) and _arrive(c))
exchanged("waits for products exchanged", lambda p, c: _depbar(p) and _depbar(c))
exchanged("tile written in front of the wait for its products", lambda p, c: _depbar(p) and _fills(c))
exchanged("tile written in front of a product", lambda p, c: _is_product(p) and _fills(c))
exchanged("product in front of what writes shared memory", lambda p, c: _fills(p) and _is_product(c))
exchanged("barrier in front of the wait for products", lambda p, c: _depbar(p) and c.opcode == "BAR")
exchanged("wait for products in front of a barrier", lambda p, c: p.opcode == "BAR" and _depbar(c))
exchanged("barrier in front of a product", lambda p, c: _is_product(p) and c.opcode == "BAR")
exchanged("product in front of a barrier", lambda p, c: p.opcode == "BAR" and _is_product(c))
exchanged("fence of shared memory and ARRIVE exchanged", lambda p, c: p.opcode == "FENCE" and _arrive(c))
exchanged("wait for copies and ARRIVE exchanged", lambda p, c: p.opcode == "DEPBAR" and _arrive(c))


# ---- time and waits ----


def _closer(subject: Subject, first: int, second: int, needed: int, _: random.Random) -> Plant | None:
    """The second a cycle closer than it may be: stalls in between are cut, as far as they can be."""
    found = subject.cycle[second] - subject.cycle[first]
    controls = {}
    for i in range(first, second):
        spare = subject.code[i].control.stall - 1
        cut = min(spare, found - needed + 1)
        if cut > 0:
            controls[i] = replace(subject.code[i].control, stall=subject.code[i].control.stall - cut)
            found -= cut
    if found >= needed:
        return None
    story = f"{subject.code[second]} {found} cycles after {subject.code[first]}"
    rules = frozenset((Rule.DISTANCE, Rule.SPACING, Rule.STALL, Rule.RELEASE))
    return Plant(subject.build(controls=controls), rules, is_too_close, story)


@kind("product too close to its ARRIVE")
def product_too_close(subject: Subject) -> Iterator[Site]:
    for a in arrivals(subject):
        p = next(iter(begun(subject, a)), None)
        if p is not None and subject.was(a, p) >= (needed := subject.table.spacing(subject.code[a]) or 0):
            yield partial(_closer, subject, a, p, needed)


@kind("accumulator touched too soon behind the wait")
def touched_too_soon(subject: Subject) -> Iterator[Site]:
    for w in waits(subject):
        held = set().union(*(_written(subject.code[p]) for p in awaited(subject, w)))
        c = w + 1
        together = c < len(subject.code) and subject.block[c] == subject.block[w]
        if together and _touches(subject.code[c], held, True, True) and subject.was(w, c) >= 2:
            yield partial(_closer, subject, w, c, 2)


@kind("wait of an ARRIVE or a product dropped")
def wait_dropped(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        for board in i.control.waits if i.order is Order.PRODUCT else ():
            control = replace(i.control, wait_mask=i.control.wait_mask & ~(1 << board))
            yield partial(edit, subject, i.index, control, Rule.BARRIER, one_of(i.index), "wait dropped")


def _rewritten(name: str, chosen: Callable[[Instruction], bool], change: Callable[[int], int]) -> None:
    """The word itself, as another compiler might have made it."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for i in subject.code:
            if chosen(i):
                yield partial(_with_word, subject, i.index, change)


def _with_word(subject: Subject, i: int, change: Callable[[int], int], _: random.Random) -> Plant:
    word = change(int.from_bytes(subject.code[i].word, "little")).to_bytes(16, "little")
    words = tuple(word if j.index == i else j.word for j in subject.code)
    broken = subject.cubin.with_words(subject.listing.kernel, words, {})
    rules = frozenset((Rule.WORD, Rule.BLOCK))
    # Now it may be the very word of another product, which is then missed.
    products = [j.index for j in subject.code if _is_product(j)]
    return Plant(broken, rules, one_of(*products), f"{subject.code[i]} rewritten")


_GROUP = 0b111 << 84
"""Which group a product closes, or, with all bits set, none."""
_rewritten("group of products left open", _closes, lambda word: word | _GROUP)
_rewritten(
    "group of products closed early", lambda i: _is_product(i) and not _closes(i), lambda w: w & ~_GROUP
)
