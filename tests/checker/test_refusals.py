"""What a refusal says, and what is bad input rather than a refusal."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Distances, Hazard, Listing, disassemble_kernel
from cuasmrl.checker import Checker, Refusal, Rule, check
from cuasmrl.checker.fields import crowding_faults
from cuasmrl.checker.program import Program, arrange, as_compiled
from cuasmrl.errors import CuasmrlError
from tests.checker.subjects import Subject, Uniform


def _dependent_neighbours(subject: Subject) -> int:
    """First of two neighbours of which the second reads a general register that the first writes."""
    return next(
        p
        for c, p in enumerate(subject.obstacles)
        if p == c - 1 and any(x.hazard is Hazard.RAW and x.register < 256 for x in subject.hazards(p, c))
    )


def test_a_refusal_names_producer_consumer_register_and_addresses(
    subject: Callable[[str, str], Subject], checker: Callable[[str], Checker]
) -> None:
    code = subject("sm_80", "local")
    p = _dependent_neighbours(code)
    with pytest.raises(Refusal) as caught:
        checker("sm_80").check(code.build(code.moved(p + 1, p)))
    refusal = caught.value
    assert (refusal.rule, refusal.kernel) == (Rule.DATA_FLOW, "local")
    assert (refusal.producer, refusal.consumer) == (p, p + 1)
    assert (refusal.producer_address, refusal.consumer_address) == (16 * (p + 1), 16 * p)
    assert str(refusal) == (
        f"kernel local: {code.code[p]}, now {16 * (p + 1):#06x} must stay before "
        f"{code.code[p + 1]}, now {16 * p:#06x}: RAW ({refusal.register})"
    )
    assert json.loads(json.dumps(refusal.as_dict()))["certified"] is False


def test_a_file_of_another_length_is_refused(compiled: Callable[[str], Cubin]) -> None:
    cubin = compiled("sm_80")
    with pytest.raises(Refusal, match="bytes long, the original") as caught:
        check(cubin, replace(cubin, data=cubin.data + b"\0"))
    assert caught.value.rule is Rule.CONTAINER


def test_another_chip_is_bad_input(compiled: Callable[[str], Cubin]) -> None:
    with pytest.raises(CuasmrlError, match=r"sm_90 .* sm_80.*one chip"):
        check(compiled("sm_80"), compiled("sm_90"))


def test_a_listing_of_other_words_is_not_believed(
    compiled: Callable[[str], Cubin], listed: Callable[[str], dict[str, Listing]]
) -> None:
    cubin, listings = compiled("sm_80"), listed("sm_80")
    tile = listings["tile"]
    swapped = replace(tile, instructions=(tile.instructions[1], tile.instructions[0], *tile.instructions[2:]))
    with pytest.raises(CuasmrlError, match="is not one of this cubin"):
        Checker(cubin, listings | {"tile": swapped})
    with pytest.raises(CuasmrlError, match="is not one of this cubin"):
        Checker(cubin, {})


def test_a_known_distance_may_be_used_up_and_an_unknown_one_not(
    subject: Callable[[str, str], Subject], listed: Callable[[str], dict[str, Listing]]
) -> None:
    """One pair with cycles to spare: with a hand-made table they may go, without a table they may not."""
    code = subject("sm_80", "tile")
    pair = next(
        x
        for x in code.timed
        if x.hazard is Hazard.RAW
        and x.consumer == x.producer + 1
        and code.code[x.producer].control.stall >= 5
        and not code.code[x.consumer].control.wait_mask
    )
    control = code.code[pair.producer].control
    shorter = code.build(controls={pair.producer: replace(control, stall=control.stall - 1)})
    with pytest.raises(Refusal) as caught:
        check(code.cubin, shorter, listed("sm_80"), Distances(80, ()))
    assert caught.value.rule is Rule.STALL
    check(code.cubin, shorter, listed("sm_80"), Uniform(80, control.stall - 1))
    with pytest.raises(Refusal) as caught:
        check(code.cubin, shorter, listed("sm_80"), Uniform(80, control.stall))
    refusal = caught.value
    assert (refusal.rule, refusal.needed, refusal.found) == (Rule.DISTANCE, control.stall, control.stall - 1)
    assert f"after {refusal.found} cycles, but needs {refusal.needed}" in str(refusal)


def test_a_scoreboard_is_not_raised_more_often_than_it_counts() -> None:
    """All transcendentals of a block on one scoreboard, and nobody waits for it."""
    workload = workloads.get("flash_attention")
    built = workload.build(workload.config("m64n128_w4_s3"), 80)
    program = Program(disassemble_kernel(Cubin.parse(built.cubin, "attention")))
    original = as_compiled(program)
    controls = [
        replace(
            i.control,
            write_barrier=5 if i.opcode == "MUFU" else i.control.write_barrier,
            wait_mask=i.control.wait_mask & ~(1 << 5),
        )
        for i in program.instructions
    ]
    first = next(crowding_faults(program, arrange(program, original.order, controls), original))
    assert program.instructions[first.consumer].opcode == "MUFU"
    assert (first.needed, first.found) == (32, 33)
    assert "SB5" in first.message
    assert not list(crowding_faults(program, original, original))
