"""Mining: hand-computed distances, what is left out, and the shipped table against known facts."""

import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Distances, Hazard, disassemble_kernel, distances
from cuasmrl.binary.sass.distances import COLUMNS, Row, joined, read_rows
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule.mining import SUPPORT, WITNESSES, Evidence, Key, below, mine, mine_listing
from cuasmrl.workloads.cuda_compiler import find_nvcc
from tests.assembly import listing
from tests.conftest import CompileCuda


def mined(text: str, arch: int = 90) -> dict[tuple[str, str, str], Row]:
    """(hazard, producer, consumer) → row."""
    evidence: dict[Key, Evidence] = defaultdict(Evidence)
    mine_listing(listing(text, arch), "by_hand", evidence)
    rows = [found.row(key) for key, found in evidence.items()]
    return {(row.hazard, row.producer, row.consumer): row for row in rows}


def test_a_distance_is_the_sum_of_stalls() -> None:
    rows = mined("""
    B------:R-:W-:-:S02  FADD R1, R8, R9
    B------:R-:W-:-:S03  MOV R3, R4
    B------:R-:W-:-:S01  FMUL R2, R1, R9
    """)
    row = rows["raw", "FADD", "FMUL"]
    assert (row.distance, row.pairs, row.witness) == (5, 1, "by_hand@0x0>0x20")
    assert rows["spacing", "FADD", "*"].distance == 5


def test_one_lucky_pair_sets_no_rule() -> None:
    pair = "B------:R-:W-:-:S{0:02d}  FADD R1, R8, R9\nB------:R-:W-:-:S04  FMUL R2, R1, R9\n"
    rows = mined(pair.format(1) * (SUPPORT - 1) + pair.format(4))
    row = rows["raw", "FADD", "FMUL"]
    assert (row.distance, row.smallest, row.supporting, row.pairs) == (4, 1, SUPPORT, SUPPORT)


@pytest.mark.parametrize(
    "text",
    [
        # A wait in between may have passed the time.
        "B------:R-:W-:-:S02  FADD R1, R8, R9\nB0-----:R-:W-:-:S01  MOV R3, R4\n"
        "B------:R-:W-:-:S01  FMUL R2, R1, R9",
        "B------:R-:W-:-:S02  FADD R1, R8, R9\nB0-----:R-:W-:-:S01  FMUL R2, R1, R9",
        # Two guards may exclude each other.
        "B------:R-:W-:-:S02  @P0 FADD R1, R8, R9\nB------:R-:W-:-:S01  @!P0 FMUL R2, R1, R9",
        # One guard, but written in between: the two may still exclude each other.
        "B------:R-:W-:-:S02  @P0 FADD R1, R8, R9\nB------:R-:W-:-:S01  ISETP.GT.AND P0, PT, R4, R5, PT\n"
        "B------:R-:W-:-:S01  @P0 FMUL R2, R1, R9",
        # The value is overwritten before it is read.
        "B------:R-:W-:-:S02  FADD R1, R8, R9\nB------:R-:W-:-:S01  MOV R1, R4\n"
        "B------:R-:W-:-:S01  FMUL R2, R1, R9",
        # A filler never executes.
        "B------:R-:W-:-:S02  FADD R1, R8, R9\nB------:R-:W-:-:S01  @!PT FMUL R2, R1, R9",
    ],
)  # fmt: skip
def test_left_out(text: str) -> None:
    assert ("raw", "FADD", "FMUL") not in mined(text)


def test_a_source_by_who_overwrites_it_and_when_that_writes() -> None:
    rows = mined("""
    B------:R-:W-:-:S02  FADD R1, R8, R9
    B------:R-:W-:-:S03  MOV R8, R4
    B------:R-:W0:-:S01  LDS R9, [R8]
    """)
    assert (rows["war", "FADD", "MOV"].distance, rows["war", "FADD", "MOV"].consumer_role) == (2, "data")
    assert (rows["war", "FADD", "LDS"].distance, rows["war", "FADD", "LDS"].consumer_role) == (5, "late")


def test_the_words_of_an_addend_are_read_at_different_times() -> None:
    evidence: dict[Key, Evidence] = defaultdict(Evidence)
    text = "B------:R-:W-:-:S02  FADD R{0}, R8, R9\nB------:R-:W-:-:S01  IMAD.HI.U32 R2, R3, R4, R6"
    for register in (3, 6, 7):
        mine_listing(listing(text.format(register), 90), "by_hand", evidence)
    assert {key[6] for key in evidence if key[1:4:2] == ("raw", "FADD")} == {"data", "low", "high"}


def test_loads_are_no_fixed_latency_producers() -> None:
    rows = mined("B------:R-:W0:-:S02  LDS R1, [R8]\nB------:R-:W-:-:S01  FMUL R2, R1, R9")
    assert ("raw", "LDS", "FMUL") not in rows


def test_the_gap_between_raising_and_waiting() -> None:
    rows = mined("B------:R-:W0:-:S02  LDS R1, [R8]\nB0-----:R-:W-:-:S01  FMUL R2, R1, R9")
    assert rows["release", "LDS", "*"].distance == 2


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="no cubin that can be read below"):
        mine(tmp_path)


# Published or independently measured latencies, and the spacing the issue of this table names.
KNOWN = [
    (80, Hazard.RAW, "R", "FFMA", "data", "FFMA", "data", 4),
    (80, Hazard.RAW, "R", "IMAD", "data", "LOP3", "data", 5),
    (80, Hazard.RAW, "P", "ISETP", "data", "LDG", "guard", 13),
    (80, Hazard.RAW, "R", "HMMA.16816.F32", "data", "HMMA.16816.F32", "accumulator", 24),
    (90, Hazard.RAW, "P", "ISETP", "data", "STG", "guard", 13),
    (120, Hazard.RAW, "R", "HMMA.16816.F32", "data", "HMMA.16816.F32", "accumulator", 29),
    (80, Hazard.SPACING, "", "HMMA.16816.F32", "", "*", "", 8),
]


@pytest.mark.parametrize("row", KNOWN)
def test_the_shipped_table_knows(row: tuple[int, Hazard, str, str, str, str, str, int]) -> None:
    table = {
        (r.arch, r.hazard, r.file, r.producer, r.producer_role, r.consumer, r.consumer_role): r.distance
        for r in shipped()
    }
    assert table[row[:-1]] == row[-1]


def shipped() -> list[Row]:
    path = Path(__file__).parents[2] / "src/cuasmrl/binary/sass/data/distances.csv"
    return read_rows(path.read_text().splitlines(), str(path))


def vendors() -> list[Row]:
    path = Path(__file__).parents[2] / "src/cuasmrl/binary/sass/data/vendor.csv"
    return read_rows(path.read_text().splitlines(), str(path))


def test_no_answer_is_below_what_vendors_show() -> None:
    rows = vendors()
    assert len(rows) > 5000
    assert {row.arch for row in rows} == {75, 80, 86, 89, 90, 100, 120}
    assert all(row.supporting >= WITNESSES for row in rows)
    assert below(rows) == []
    # And it would be seen.
    votes = next(row for row in rows if (row.producer, row.consumer) == ("ISETP", "VOTE"))
    assert (
        below([replace(votes, distance=votes.distance + 1)])
        == [(replace(votes, distance=votes.distance + 1), votes.distance)]
        or votes.pairs < 20
    )


def test_what_is_inferred_of_a_pair_is_rarely_below_what_it_shows() -> None:
    """Cross-validation: of pairs seen often, each tenth in turn is taken out and asked for.

    Of the few below, most were never seen close together; in pairs of branches distances mean little.
    """
    rows = joined(shipped(), vendors())
    often = [
        row for row in rows if row.pairs >= 200 and row.supporting >= 20 and row.hazard is not Hazard.STALL
    ]
    random.Random(0).shuffle(often)
    below = Counter[Hazard]()
    for fold in range(10):
        left_out = often[fold::10]
        keys = {row.key for row in left_out}
        for arch in {row.arch for row in rows}:
            table = Distances(arch, [row for row in rows if row.arch == arch and row.key not in keys])
            for row in left_out:
                if row.arch == arch:
                    answer = table.answer(row.hazard, *row.key[2:])
                    below[row.hazard] += answer is not None and answer < row.distance
    asked = Counter(row.hazard for row in often)
    assert below.total() <= 0.01 * asked.total(), below
    for hazard in (Hazard.RAW, Hazard.WAW, Hazard.WAR):
        assert below[hazard] <= 0.01 * asked[hazard], (hazard, below[hazard], asked[hazard])


def test_a_move_is_read_by_a_comparison_as_late_as_its_relatives_are() -> None:
    """A plain move reads what `UMOV` gives after 2 cycles, a comparison does not."""
    table = distances(100)
    assert table.answer(Hazard.RAW, "UR", "UMOV", "data", "MOV", "data") == 2
    known = table.answer(Hazard.RAW, "UR", "UIADD3", "data", "ISETP", "data")
    unseen = table.answer(Hazard.RAW, "UR", "UMOV", "data", "ISETP", "data")
    assert known is not None
    assert unseen is not None
    assert unseen >= known > 2


def test_vendor_rows_name_libraries_and_nothing_of_their_code() -> None:
    for row in vendors():
        assert re.fullmatch(r"[\w.]+-[\w.]+", row.witness), row.witness


def test_every_shipped_row_names_its_evidence() -> None:
    rows = shipped()
    assert {row.arch for row in rows} == {75, 80, 86, 89, 90, 100, 120}
    for row in rows:
        assert row.pairs >= row.supporting >= 1
        assert row.smallest <= row.distance
        assert "@0x" in row.witness
        assert ">0x" in row.witness


def test_a_witness_can_be_looked_up(built: Callable[[str, str, int], Cubin]) -> None:
    """Recompile the kernel a row names and find its pair at that distance."""
    name, config = "bmm", "m32n64k32_w2_s2"
    place = f"sm_80/{name}-{config}@"
    row = next(r for r in shipped() if r.hazard is Hazard.RAW and r.witness.startswith(place))
    first, second = (int(x, 16) // 16 for x in row.witness.split("@")[1].split(">"))
    code = disassemble_kernel(built(name, config, 80)).instructions
    assert (code[first].timing_key, code[second].timing_key) == (row.producer, row.consumer)
    assert sum(i.control.stall for i in code[first:second]) == row.distance


def test_a_table_with_other_columns_is_refused() -> None:
    with pytest.raises(CuasmrlError, match="no distance table"):
        read_rows(["a,b", "1,2"], "x.csv")


def test_a_damaged_row_is_named() -> None:
    line = "80,raw,R,FADD,data,FADD,data,many,4,3,3,here"
    with pytest.raises(CuasmrlError, match="x.csv, line 2"):
        read_rows([",".join(COLUMNS), line], "x.csv")


def test_an_unseen_chip_gets_no_answers() -> None:
    code = listing(
        "B------:R-:W-:-:S02  FADD R1, R8, R9\nB------:R-:W-:-:S01  FADD R2, R1, R9", 103
    ).instructions
    assert distances(103).required(Hazard.RAW, code[0], code[1], 1) is None


def test_a_fat_binary_is_mined_as_its_cubins_are(
    tmp_path: Path, built: Callable[[str, str, int], Cubin], compile_cuda: CompileCuda
) -> None:
    source = "__global__ void twice(float *x) { x[threadIdx.x] = 2 * x[threadIdx.x] + 1; }"
    alone, inside = tmp_path / "alone", tmp_path / "inside"
    for folder in (alone, inside):
        folder.mkdir()
    (alone / "k.cubin").write_bytes(compile_cuda(source, "sm_80"))
    command = [str(find_nvcc()), "-fatbin", "-arch=sm_80", "-o", str(inside / "k.fatbin"), "-x", "cu", "-"]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    (inside / "notes.txt").write_text("no device code")
    (inside / "broken.cubin").write_bytes(b"\x7fELF and no more")
    plain, fat = mine(alone), mine(inside)
    assert {row.key: row.distance for row in plain.rows} == {row.key: row.distance for row in fat.rows}
    assert (fat.cubins, len(fat.skipped)) == (1, 1)
    assert "broken.cubin" in str(fat.skipped[0])


def test_mining_a_directory_gives_the_same_rows_as_the_listing(
    tmp_path: Path, built: Callable[[str, str, int], Cubin]
) -> None:
    cubin = built("reduction", "t128", 80)
    (tmp_path / "sm_80").mkdir()
    cubin.save(tmp_path / "sm_80" / "reduction-t128.cubin")
    found = mine(tmp_path)
    assert found.cubins == 1
    assert found.instructions == sum(len(k.words) for k in cubin.kernels)
    assert Distances(80, found.rows)
