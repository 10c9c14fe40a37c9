"""The SM model beside published measurements, through the bench that prints them."""

import csv
import json
from importlib import resources
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from cuasmrl.bench.streams import Memory, issues, listing, round_cycles, run
from cuasmrl.bench.timing import Measurement, TimingFigures, compare, modelled, published, summary
from cuasmrl.cli import app

EXACT = ("control bits and register ports", "memory timeline", "memory latency")
ROWS = {row.id: row for row in published()}
CLOSE = [
    "V0106", "V0107", "V0109", "V0114", "V0137", "V0177", "V0187", "V0252", "V0683",  # tensor
    "V0465", "V0468", "V0472", "V0475", "V0480", "V0483", "V0756",  # shared memory
    "V0736", "V0743", "V0747", "V0750", "V0500", "V0513", "V0516", "V0800", "V0533",  # chains and streams
    "V0517", "V0518", "V0520", "V0525", "V0659", "V0665",  # pointer chases
]  # fmt: skip


@pytest.mark.parametrize("group", EXACT)
def test_exact(group: str) -> None:
    figures = [compare(row) for row in published() if row.group == group and not row.left_out]
    assert {f.measurement.id: f.model for f in figures} == {
        f.measurement.id: f.measurement.value for f in figures
    }


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    error = compare(ROWS[name]).error
    assert error is not None
    assert abs(error) <= 3


def test_all_rows_have_an_origin_and_a_number_or_a_reason() -> None:
    text = (resources.files("cuasmrl.timing") / "published.csv").read_text()
    assert len(list(csv.DictReader(text.splitlines()))) == len(ROWS)
    assert all(row.source and row.unit and row.metric for row in ROWS.values())


def test_one_warp_waits_for_its_own_operands_where_the_tensor_core_is_fast() -> None:
    """Two warps on a sub-core keep the tensor core of an A100 busy, one does not; GA102 hides it."""
    lines = [f"HMMA.1688.F16 R{32 + 8 * k}, R8, R16, R{32 + 8 * k}" for k in range(6)]
    assert round_cycles(lines, "a100", 80, warps=8) / 12 == pytest.approx(4.1, rel=0.02)
    assert round_cycles(lines, "a100", 80, warps=4) / 6 == 5
    assert round_cycles(lines, "a6000", 86, warps=4) / 6 == 8


def test_a_sparse_product_takes_the_time_of_a_dense_one_of_half_its_depth() -> None:
    dense = ["HMMA.16816.F32 R32, R8, R16, R32"]
    sparse = ["HMMA.SP.16832.F32 R32, R8, R16, R32, R24, 0x0"]
    assert round_cycles(dense, "a6000", 86, 1) == round_cycles(sparse, "a6000", 86, 1)


def test_a_line_is_far_only_once() -> None:
    chase = listing(["B0-----:R-:W0:-:S02 LDG.E R2, [R2.64]"], 80)
    for fresh, expected in ((False, [205, 33, 33]), (True, [205, 205, 205])):
        cycles = issues(run(chase, "a100", rounds=4, memory=Memory(sectors=1, fresh=fresh)))
        assert [b - a for a, b in pairwise(cycles[:4])] == expected


@pytest.mark.parametrize(
    ("load", "memory", "cycles"),
    [
        ("LDG.E", Memory(sectors=4), 1.02),
        ("LDG.E.64", Memory(sectors=8), 2.01),
        ("LDG.E", Memory(sectors=8, apart=4), 3.1),
        ("LDG.E", Memory(sectors=16, apart=4), 5.1),
        ("LDG.E", Memory(sectors=32, apart=4), 9.2),
    ],
)
def test_loads_that_hit_take_turns_at_tags_and_data(load: str, memory: Memory, cycles: float) -> None:
    """RRZE gpu-benches on the A100: cycles of the SM per load of a warp, many warps."""
    lines = [f"B{'-' * k}{k}{'-' * (5 - k)}:R-:W{k}:-:S01 {load} R{32 + 8 * k}, [R2.64]" for k in range(6)]
    assert round_cycles(lines, "a100", 80, 32, memory) / (6 * 32) == pytest.approx(cycles, rel=0.05)


def test_summary_counts_what_was_not_run() -> None:
    row = ROWS["V0001"]
    kept = TimingFigures(row, row.value * 1.02)
    dropped = TimingFigures(Measurement(**{**vars(row), "id": "V9999", "left_out": "no such unit"}), None)
    (found,) = summary([kept, dropped])
    assert (found.rows, found.left_out, found.worst) == (1, 1, "V0001")
    assert found.largest == pytest.approx(2)


def test_an_unknown_setup_is_named() -> None:
    row = Measurement(**{**vars(ROWS["V0001"]), "setup": "upside down"})
    with pytest.raises(Exception, match="upside down"):
        modelled(row)


def test_the_command_prints_all_rows() -> None:
    runner = CliRunner()
    rows = json.loads(runner.invoke(app, ["bench", "timing", "--json"]).stdout)
    assert {row["id"] for row in rows} == set(ROWS)
    assert all((row["model"] is None) == bool(row["left_out"]) for row in rows)
    table = runner.invoke(app, ["bench", "timing"]).stdout
    assert all(name in table for name in ROWS)
    for found in summary([TimingFigures(ROWS[row["id"]], row["model"]) for row in rows]):
        assert f"{found.mean:.1f} %" in table
        assert found.group in table
        assert found.mean <= 3
