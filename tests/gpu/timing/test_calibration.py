"""The SM model beside published measurements, through the bench that prints them."""

import csv
import json
from importlib import resources
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from cuasmrl.bench import timing as bench
from cuasmrl.bench.streams import Memory, issues, listing, round_cycles, run
from cuasmrl.bench.timing import Measurement, TimingFigures, compare, modelled, published, summary
from cuasmrl.cli import app

EXACT = ("control bits and register ports", "memory timeline", "memory latency", "warpgroup products")
ROWS = {row.id: row for row in published()}
CLOSE = [
    "V0106", "V0109", "V0114", "V0177", "V0187", "V0252", "V0490", "V0683",  # tensor
    "V0465", "V0468", "V0472", "V0475", "V0480", "V0483", "V0756",  # shared memory
    "V0736", "V0743", "V0747", "V0750", "V0500", "V0513", "V0516", "V0800", "V0533",  # chains and streams
    "V0517", "V0518", "V0520", "V0525", "V0659", "V0665", "V0789", "V0790", "V0791",  # pointer chases
    "V0811", "V0815", "V0819", "V0823",  # listings of sm_120
    "V0236", "V0244", "V0249", "V0786", "V0788",  # sm_75
]  # fmt: skip


@pytest.mark.parametrize("group", EXACT)
def test_exact(group: str) -> None:
    figures = [compare(row, kernels=False) for row in published() if row.group == group and not row.left_out]
    assert {f.measurement.id: f.model for f in figures} == {
        f.measurement.id: f.measurement.value for f in figures
    }


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    error = compare(ROWS[name], kernels=False).error
    assert error is not None
    assert abs(error) <= 3


def test_all_rows_have_an_origin_and_a_number_or_a_reason() -> None:
    text = (resources.files("cuasmrl.gpu.timing") / "published.csv").read_text()
    assert len(list(csv.DictReader(text.splitlines()))) == len(ROWS)
    assert all(row.source and row.unit and row.metric for row in ROWS.values())


def test_products_of_one_warp_follow_each_other_as_those_of_two() -> None:
    """Abdelkhalik et al. on the A100: 8 cycles; GA102 takes twice as long."""
    lines = [f"HMMA.16816.F16 R{32 + 8 * k}, R8, R16, R{32 + 8 * k}" for k in range(6)]
    assert round_cycles(lines, "a100", 80, warps=8) / 12 == pytest.approx(8.2, rel=0.01)
    assert round_cycles(lines, "a100", 80, warps=4) / 6 == pytest.approx(8.2, rel=0.02)
    assert round_cycles(lines, "a6000", 86, warps=4) / 6 == 16


def test_a_sparse_product_takes_the_time_of_a_dense_one_of_half_its_depth() -> None:
    dense = ["HMMA.16816.F32 R32, R8, R16, R32"]
    sparse = ["HMMA.SP.16832.F32 R32, R8, R16, R32, R24, 0x0"]
    assert round_cycles(dense, "a6000", 86, 1) == round_cycles(sparse, "a6000", 86, 1)


def test_a_line_is_far_only_once() -> None:
    chase = listing(["B0-----:R-:W0:-:S02 LDG.E R2, [R2.64]"], 80)
    for fresh, expected in ((False, [205, 32, 32]), (True, [205, 205, 205])):
        cycles = issues(run(chase, "a100", rounds=4, memory=Memory(sectors=1, fresh=fresh)))
        assert [b - a for a, b in pairwise(cycles[:4])] == expected


@pytest.mark.parametrize(
    ("load", "memory", "cycles"),
    [
        ("LDG.E", Memory(sectors=4), 1.02),
        ("LDG.E.64", Memory(passes=2, sectors=8), 2.01),
        ("LDG.E", Memory(passes=16, sectors=32), 16.0),
        # Lines side by side, four to a turn of the tags; then lines that lie far apart.
        ("LDG.E", Memory(sectors=16, apart=4), 4.0),
        ("LDG.E", Memory(sectors=8, apart=512), 3.1),
        ("LDG.E", Memory(sectors=16, apart=512), 5.1),
        ("LDG.E", Memory(sectors=32, apart=512), 9.2),
    ],
)
def test_loads_that_hit_take_turns_at_tags_and_data(load: str, memory: Memory, cycles: float) -> None:
    """RRZE gpu-benches on the A100: cycles of the SM per load of a warp, many warps."""
    lines = [f"B{'-' * k}{k}{'-' * (5 - k)}:R-:W{k}:-:S01 {load} R{32 + 8 * k}, [R2.64]" for k in range(6)]
    assert round_cycles(lines, "a100", 80, 32, memory) / (6 * 32) == pytest.approx(cycles, rel=0.05)


def test_summary_counts_what_was_not_run() -> None:
    row = ROWS["V0001"]
    kept = TimingFigures(row, row.value * 1.02, row.value * 0.99)
    dropped = TimingFigures(Measurement(**{**vars(row), "id": "V9999", "left_out": "no such unit"}), None)
    found, everything = summary([kept, dropped])
    assert (everything.group, everything.rows, everything.hand) == ("all", 2, found.hand)
    assert found.rows == 2
    assert found.hand is not None
    assert found.compiled is not None
    assert (found.hand.rows, found.hand.worst) == (1, "V0001")
    assert found.hand.largest == pytest.approx(2)
    assert found.compiled.mean == pytest.approx(1)


def test_an_unknown_setup_is_named() -> None:
    row = Measurement(**{**vars(ROWS["V0001"]), "setup": "upside down"})
    with pytest.raises(Exception, match="upside down"):
        modelled(row)


def test_the_command_prints_rows_and_their_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [ROWS[name] for name in ("V0001", "V0010", "V0795", "V0480")]
    monkeypatch.setattr(bench, "published", lambda: tuple(chosen))
    monkeypatch.setattr(bench, "speed", list)
    monkeypatch.setattr(bench, "predictions", lambda changes: [])
    runner = CliRunner()
    rows = {row["id"]: row for row in json.loads(runner.invoke(app, ["bench", "timing", "--json"]).stdout)}
    assert rows.keys() == {row.id for row in chosen}
    assert rows["V0001"]["compiled"] == rows["V0001"]["model"] == 5
    assert rows["V0010"]["model"] is None
    assert rows["V0795"]["unmet"]
    table = runner.invoke(app, ["bench", "timing"]).stdout
    assert all(text in table for text in (*rows, "legality", "mean error"))


@pytest.mark.slow
def test_the_command_prints_everything() -> None:
    rows = json.loads(CliRunner().invoke(app, ["bench", "timing", "--json"]).stdout)
    assert {row["id"] for row in rows if "id" in row} == set(ROWS)
    assert any("rate" in row for row in rows)
