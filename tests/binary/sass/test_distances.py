"""How the table of distances answers: evidence first, then relatives, else nothing."""

import pytest

from cuasmrl.binary.sass import Distances, Hazard, Instruction, Row
from cuasmrl.binary.sass.distances import joined
from tests.assembly import listing

MANY, FEW = 100, 4


def row(consumer: str, distance: int, pairs: int, producer: str = "FADD", role: str = "data") -> Row:
    return Row(
        90, Hazard.RAW, "R", producer, "data", consumer, role, distance, distance - 1, pairs, 3, "here"
    )


def pooled(hazard: Hazard, producer: str, distance: int) -> Row:
    return Row(90, hazard, "", producer, "", "*", "", distance, distance, MANY, 3, "here")


def overwritten(producer: str, by: str, distance: int, pairs: int = MANY, role: str = "data") -> Row:
    return Row(90, Hazard.WAR, "R", producer, "data", by, role, distance, distance, pairs, 3, "here")


def instruction(text: str) -> Instruction:
    return listing(f"B------:R-:W-:-:S01  {text}").instructions[0]


FADD, FMUL, FFMA = (instruction(t) for t in ("FADD R1, R2, R3", "FMUL R4, R1, R3", "FFMA R4, R1, R3, R3"))
LOP3, STG = instruction("LOP3.LUT R4, R1, R3, RZ, 0xc0, !PT"), instruction("STG.E desc[UR4][R2.64], R1")
R1 = 1


def required(rows: list[Row], consumer: Instruction, hazard: Hazard = Hazard.RAW) -> int | None:
    return Distances(90, rows).required(hazard, FADD, consumer, R1)


def test_a_well_witnessed_pair_speaks_for_itself() -> None:
    assert required([row("FMUL", 4, MANY), row("FFMA", 7, MANY)], FMUL) == 4


def test_of_a_rare_pair_and_its_relatives_the_larger_counts() -> None:
    """What compilers emit is an upper bound of the need, so the larger is the safe one of two."""
    assert required([row("FMUL", 11, FEW), row("FFMA", 5, MANY), row("FADD", 4, MANY)], FMUL) == 11
    assert required([row("FMUL", 3, FEW), row("FFMA", 5, MANY)], FMUL) == 5


def test_a_rare_pair_without_relatives_is_no_answer() -> None:
    assert required([row("FMUL", 3, FEW)], FMUL) is None


def test_who_reads_across_lanes_is_a_class_of_its_own() -> None:
    """A vote shares a pipe with LOP3 and still reads its predicate much later."""
    setter, vote = instruction("ISETP.GT.AND P1, PT, R0, R2, PT"), instruction("VOTE.ANY R6, PT, P1")
    (register,) = {use.register for use in vote.uses}
    rows = [Row(90, Hazard.RAW, "P", "ISETP", "data", "SEL", "data", 4, 4, MANY, MANY, "here")]
    assert Distances(90, rows).required(Hazard.RAW, setter, vote, register) == 14
    rows.append(Row(90, Hazard.RAW, "P", "ISETP", "data", "VOTE", "data", 13, 13, MANY, MANY, "here"))
    assert Distances(90, rows).required(Hazard.RAW, setter, vote, register) == 13


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


def test_who_writes_late_may_overwrite_early_and_others_may_not() -> None:
    load, hmma = instruction("LDS R1, [R2]"), instruction("HMMA.16816.F32 R8, R4, R12, R8")
    rows = [overwritten("HMMA.16816.F32", "LDSM", 1, role="late"), overwritten("HMMA.16816.F32", "SHF", 7)]
    table = Distances(90, rows)
    assert table.required(Hazard.WAR, hmma, load, 4) == 1
    assert table.required(Hazard.WAR, hmma, LOP3, 4) == 7
    assert table.required(Hazard.WAR, hmma, FADD, 4) == 7, "no FMA was seen, so the slowest class counts"
    assert Distances(90, rows[:1]).required(Hazard.WAR, hmma, LOP3, 4) is None


def test_an_overwriter_speaks_for_itself() -> None:
    """Of one pipe some write sooner than others: what a slow one may do says nothing about a quick one."""
    rows = [overwritten("FADD", "SHF", 1), overwritten("FADD", "LOP3", 3)]
    assert Distances(90, rows).required(Hazard.WAR, FADD, LOP3, 2) == 3
    assert Distances(90, rows).required(Hazard.WAR, FADD, instruction("MOV R2, R5"), 2) == 3
    assert Distances(90, rows).required(Hazard.WAR, FADD, instruction("SHF.L.U32 R2, R5, R6, RZ"), 2) == 1


def test_an_unseen_source_takes_the_longest_of_its_overwriters_class() -> None:
    table = Distances(90, [overwritten("FADD", "FMUL", 2), overwritten("LOP3", "FADD", 3)])
    assert table.required(Hazard.WAR, FADD, FMUL, 2) == 2
    assert table.required(Hazard.WAR, FMUL, FADD, 1) == 3
    rare = [overwritten("FADD", "FMUL", 9, FEW), overwritten("LOP3", "FADD", 3)]
    assert Distances(90, rare).required(Hazard.WAR, FADD, FMUL, 2) == 9


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


def test_a_rare_release_is_at_least_the_widest_known() -> None:
    rare = Row(90, Hazard.RELEASE, "", "DMUL", "", "*", "", 2, 2, FEW, 3, "here")
    table = Distances(90, [rare, pooled(Hazard.RELEASE, "LDG", 2), pooled(Hazard.RELEASE, "MUFU", 3)])
    assert table.release(instruction("DMUL R4, R2, R2")) == 3
    assert table.release(instruction("LDG.E R1, desc[UR4][R2.64]")) == 2
    assert table.release(instruction("LDS R1, [R2]")) == 3


def test_two_tables_are_joined_on_the_careful_side() -> None:
    ours, theirs = [row("FMUL", 4, MANY)], [row("FMUL", 5, MANY), row("FFMA", 6, MANY)]
    assert [(r.consumer, r.distance, r.pairs) for r in joined(ours, theirs)] == [
        ("FFMA", 6, MANY), ("FMUL", 5, 2 * MANY)
    ]  # fmt: skip
    assert joined([row("FMUL", 6, MANY)], [row("FMUL", 5, MANY)])[0].distance == 6
    assert joined([row("FMUL", 25, FEW)], [row("FMUL", 5, MANY)])[0].distance == 5, "ours are an accident"
    assert joined([row("FMUL", 4, FEW)], [row("FMUL", 5, FEW)])[0].distance == 5
