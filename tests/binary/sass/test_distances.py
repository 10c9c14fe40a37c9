"""How the table of distances answers: evidence first, then relatives, else nothing."""

import pytest

from cuasmrl.binary.sass import Distances, Hazard, Instruction, Row
from tests.assembly import listing

MANY, FEW = 100, 4


def row(consumer: str, distance: int, pairs: int, producer: str = "FADD", role: str = "data") -> Row:
    return Row(
        90, Hazard.RAW, "R", producer, "data", consumer, role, distance, distance - 1, pairs, 3, "here"
    )


def pooled(hazard: Hazard, producer: str, distance: int, file: str = "", role: str = "") -> Row:
    return Row(90, hazard, file, producer, role, "*", "", distance, distance, MANY, 3, "here")


def instruction(text: str) -> Instruction:
    return listing(f"B------:R-:W-:-:S01  {text}").instructions[0]


FADD, FMUL, FFMA = (instruction(t) for t in ("FADD R1, R2, R3", "FMUL R4, R1, R3", "FFMA R4, R1, R3, R3"))
LOP3, STG = instruction("LOP3.LUT R4, R1, R3, RZ, 0xc0, !PT"), instruction("STG.E desc[UR4][R2.64], R1")
R1 = 1


def required(rows: list[Row], consumer: Instruction, hazard: Hazard = Hazard.RAW) -> int | None:
    return Distances(90, rows).required(hazard, FADD, consumer, R1)


def test_a_well_witnessed_pair_speaks_for_itself() -> None:
    assert required([row("FMUL", 4, MANY), row("FFMA", 7, MANY)], FMUL) == 4


def test_a_rare_pair_is_no_stricter_than_the_most_careful_relative() -> None:
    """FMUL and FFMA share a pipe: an accidental 11 cycles, seen four times, does not bind."""
    assert required([row("FMUL", 11, FEW), row("FFMA", 5, MANY), row("FADD", 4, MANY)], FMUL) == 5


def test_a_rare_pair_below_its_relatives_counts() -> None:
    assert required([row("FMUL", 3, FEW), row("FFMA", 5, MANY)], FMUL) == 3


def test_an_unseen_pair_takes_the_most_careful_relative() -> None:
    assert required([row("FFMA", 5, MANY), row("FADD", 4, MANY)], FMUL) == 5


@pytest.mark.parametrize("hazard", [Hazard.RAW, Hazard.WAW])
def test_an_unseen_pipe_takes_the_slowest_reader(hazard: Hazard) -> None:
    """What the slowest known reader can read is there for anybody, to read or to overwrite."""
    assert required([row("FFMA", 4, MANY), row("STG", 9, MANY)], LOP3, hazard) == 9
    assert required([row("FFMA", 4, MANY)], LOP3, hazard) == 8


def test_an_unknown_producer_gets_no_answer() -> None:
    assert required([row("FMUL", 4, MANY, producer="IADD3")], FMUL) is None
    assert required([row("FFMA", 4, FEW)], LOP3) is None


def test_other_chips_do_not_speak() -> None:
    assert Distances(80, [row("FMUL", 4, MANY)]).required(Hazard.RAW, FADD, FMUL, R1) is None


def test_roles_are_kept_apart() -> None:
    table = Distances(90, [row("STG", 5, MANY), row("STG", 7, MANY, role="address")])
    assert table.required(Hazard.RAW, FADD, STG, R1) == 5
    assert table.required(Hazard.RAW, FADD, STG, R1, consumer_role="address") == 7


def test_sources_may_be_overwritten_after_the_time_any_instruction_needs() -> None:
    table = Distances(
        90, [pooled(Hazard.WAR, "FADD", 2, "R", "data"), pooled(Hazard.WAR, "LOP3", 3, "R", "data")]
    )
    assert table.required(Hazard.WAR, FADD, FMUL, 2) == 2
    assert table.required(Hazard.WAR, FMUL, FADD, 1) == 3


def test_spacing_of_an_unseen_opcode_is_the_widest_of_its_pipe() -> None:
    table = Distances(90, [pooled(Hazard.SPACING, "FADD", 2), pooled(Hazard.SPACING, "LOP3", 4)])
    assert table.spacing(FADD) == 2
    assert table.spacing(FMUL) == 2
    assert table.spacing(STG) is None


def test_branches_are_no_pipe() -> None:
    assert Distances(90, []).spacing(instruction("EXIT")) == 1


def test_the_floor_is_the_smallest_of_the_pipe() -> None:
    table = Distances(90, [row("FMUL", 6, MANY), row("FFMA", 4, FEW), row("LOP3", 9, MANY, producer="FMUL")])
    assert table.floor(FADD, FFMA, R1, "data") == 3
    assert table.floor(FMUL, LOP3, R1, "data") == 3
    assert table.floor(FADD, LOP3, R1, "data") == 0
    assert table.floor(LOP3, FADD, R1, "data") == 0


def test_a_rare_release_is_no_longer_than_the_widest_known() -> None:
    rare = Row(90, Hazard.RELEASE, "", "DMUL", "", "*", "", 128, 128, FEW, 3, "here")
    table = Distances(90, [rare, pooled(Hazard.RELEASE, "LDG", 2), pooled(Hazard.RELEASE, "MUFU", 3)])
    assert table.release(instruction("DMUL R4, R2, R2")) == 3
    assert table.release(instruction("LDG.E R1, desc[UR4][R2.64]")) == 2
    assert table.release(instruction("LDS R1, [R2]")) == 3
