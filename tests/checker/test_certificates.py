"""What is left alone, or changed with care, is certified."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Control, Listing, Order, disassemble
from cuasmrl.checker import Checker, check
from tests.checker.conftest import CHIPS
from tests.checker.subjects import Subject, Uniform

KERNELS = ("tile", "reduce", "local", "mixed")


@pytest.mark.parametrize("chip", CHIPS)
def test_compiler_output_is_certified(chip: str, checker: Callable[[str], Checker]) -> None:
    proof = checker(chip)
    certificate = proof.check(proof.original)
    assert certificate.original == certificate.candidate
    assert set(certificate.kernels) == set(KERNELS)
    for counts in certificate.proved.values():
        assert counts["raw distance"] > 10
        assert counts["raw scoreboard"] > 10


@pytest.mark.parametrize("chip", CHIPS)
def test_three_rules_explain_every_scoreboard_the_compiler_sets(
    chip: str, checker: Callable[[str], Checker]
) -> None:
    proof = checker(chip)
    proved = proof.check(proof.original).proved
    # sm_75 clears a convergence barrier (BMOV) right before it sets it (BSSY), without any protection.
    allowed = 2 if chip == "sm_75" else 0
    assert sum(counts["unprotected in the original"] for counts in proved.values()) <= allowed


def test_a_certificate_is_plain_data(checker: Callable[[str], Checker]) -> None:
    proof = checker("sm_80")
    text = json.dumps(proof.check(proof.original).as_dict())
    assert json.loads(text)["certified"] is True


def test_the_listing_may_be_left_out(compiled: Callable[[str], Cubin]) -> None:
    cubin = compiled("sm_86")
    assert check(cubin, cubin) == check(cubin, cubin, disassemble(cubin))


def _slowed(subject: Subject, block: int) -> dict[int, Control]:
    """The longest stall for every instruction of a block: no fixed latency is left to care about."""
    return {
        i.index: replace(i.control, stall=15, yield_=True, reuse=0)
        for i in subject.code
        if subject.block[i.index] == block
    }


def _independent_pairs(subject: Subject) -> list[int]:
    """First of two neighbours that have nothing to do with each other, nor with any scoreboard.

    Not near the border of a block: there they would come closer to what lies in other blocks.
    """
    found = []
    for a in range(3, len(subject.code) - 4):
        if subject.block[a - 3] != subject.block[a + 4]:
            continue
        pair = [subject.code[a], subject.code[a + 1]]
        plain = all(
            i.order is Order.FREE
            and not i.control.wait_mask
            and not i.control.sets
            and subject.is_movable(i.index)
            for i in pair
        )
        together = subject.region[a] == subject.region[a + 1]
        if plain and together and not subject.hazards(a, a + 1) and not subject.may_be_ordered(a, a + 1):
            found.append(a)
    return found


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_independent_neighbours_may_change_places(
    chip: str,
    kernel: str,
    subject: Callable[[str, str], Subject],
    listed: Callable[[str], dict[str, Listing]],
) -> None:
    code = subject(chip, kernel)
    proof = Checker(code.cubin, listed(chip), Uniform(code.cubin.arch, 15))
    pairs = _independent_pairs(code)
    assert pairs
    for a in random.Random(chip + kernel).sample(pairs, min(8, len(pairs))):
        proof.check(code.build(code.moved(a + 1, a), _slowed(code, code.block[a])))


@pytest.mark.parametrize("chip", ["sm_80", "sm_120"])
def test_more_waits_fewer_reuse_flags_and_any_yield_are_fine(
    chip: str, subject: Callable[[str, str], Subject], listed: Callable[[str], dict[str, Listing]]
) -> None:
    code = subject(chip, "tile")
    proof = Checker(code.cubin, listed(chip), Uniform(code.cubin.arch, 15))
    for i in code.code[::5]:
        before = code.code[i.index - 1].control.sets if i.index else ()
        waits = 63 & ~sum(1 << board for board in before)
        calmer = replace(i.control, yield_=True, wait_mask=i.control.wait_mask | waits, reuse=0)
        proof.check(code.build(controls={i.index: calmer}))


def test_a_shuffle_that_moves_takes_its_record_along(
    subject: Callable[[str, str], Subject], listed: Callable[[str], dict[str, Listing]]
) -> None:
    code = subject("sm_80", "reduce")
    proof = Checker(code.cubin, listed("sm_80"), Uniform(80, 15))
    named = {offset // 16 for offset in code.listing.kernel.record_offsets().values()}
    moves = [
        a
        for a in range(3, len(code.code) - 4)
        if code.block[a - 3] == code.block[a + 4]
        and (a in named) != (a + 1 in named)
        and code.region[a] == code.region[a + 1]
        and Order.FREE in (code.code[a].order, code.code[a + 1].order)
        and not code.hazards(a, a + 1)
        and not code.may_be_ordered(a, a + 1)
        and not code.code[a].control.wait_mask
    ]
    assert moves
    for a in moves:
        proof.check(code.build(code.moved(a + 1, a), _slowed(code, code.block[a])))


@pytest.mark.slow
def test_nothing_in_the_corpus_raises_a_false_alarm(corpus: Path) -> None:
    cubins = sorted(corpus.rglob("*.cubin"))
    assert cubins
    for path in cubins:
        cubin = Cubin.load(path)
        check(cubin, cubin)


@pytest.mark.slow
def test_no_rule_raises_a_false_alarm_when_every_word_is_touched(corpus: Path) -> None:
    """Without reuse flags and with yield everywhere each word differs, so that no rule takes a short cut."""
    for path in sorted(corpus.rglob("*.cubin")):
        cubin = Cubin.load(path)
        listings, calmer = disassemble(cubin), cubin
        for listing in listings.values():
            words = tuple(
                replace(i.control, yield_=True, reuse=0).encode(i.word) for i in listing.instructions
            )
            calmer = calmer.with_words(listing.kernel, words, {})
        check(cubin, calmer, listings)
