"""Figures beside the model: kept, left out, and the tuner's choice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.bench.kernels.comparison import compare
from cuasmrl.bench.kernels.figures import Figure, figures
from cuasmrl.errors import CuasmrlError
from tests.command import run, sentence

SMALL = next(figure for figure in figures() if figure.id == "TV1")
TUNED = next(figure for figure in figures() if figure.id == "TM1")


def silent(done: int, total: int) -> None:
    pass


def compared(figure: Figure, keep: Path | None = None) -> list[float | None]:
    return [row.modelled_us for row in compare([figure], silent, keep)]


def test_a_row_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.jsonl"
    (row,) = compare([SMALL], silent, file)
    assert row.modelled_us == pytest.approx(row.moved_bytes / row.modelled * 1e-3)  # type: ignore[operator]
    assert row.published_us == pytest.approx(3 * 2 * 65536 / 186.6 * 1e-3)
    monkeypatch.setattr("cuasmrl.bench.kernels.comparison.trace_workload", None)
    assert compare([SMALL], silent, file) == [row]


def test_a_tuner_takes_the_fastest() -> None:
    tuned = replace(TUNED, sizes={"M": 256, "N": 256, "K": 64})
    each = [compared(replace(tuned, configs=(config,)))[0] for config in tuned.configs]
    (row,) = compare([tuned], silent)
    assert row.modelled_us == min(time for time in each if time is not None)
    assert row.config == tuned.configs[each.index(row.modelled_us)]


def test_clocks_that_are_not_known_span_a_range() -> None:
    (row,) = compare([replace(SMALL, clock=1200.0, clock_low=900.0, clock_high=1400.0)], silent)
    assert row.fastest_us < row.modelled_us < row.slowest_us  # type: ignore[operator]


def test_what_is_left_out_is_said_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.jsonl"
    monkeypatch.setattr("cuasmrl.bench.kernels.comparison.missing_compiler", lambda: "nvcc is missing")
    absent, compiled = replace(SMALL, chip="voodoo2"), next(f for f in figures() if f.id == "RA3")
    rows = compare([absent, compiled], silent, file)
    assert [(row.left_out, row.modelled, row.ratio) for row in rows] == [
        ("no chip voodoo2", None, None),
        ("no CUDA compiler", None, None),
    ]
    assert not file.exists()


def test_errors_name_the_row() -> None:
    with pytest.raises(CuasmrlError, match="TV1"):
        compare([replace(SMALL, configs=("fp16_b1024_w64",))], silent)


def test_rows_with_changed_numbers_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="leave out --keep or --set"):
        compare([SMALL], silent, tmp_path / "rows.jsonl", {"launch_time": 9.0})


def test_the_command() -> None:
    found = json.loads(run("bench", "kernels", "--only", "TV1", "--json"))
    assert [row["id"] for row in found["rows"]] == ["TV1"]
    assert [one["name"] for one in found["summaries"]] == ["memory", "all"]
    slower = json.loads(run("bench", "kernels", "--only", "TV1", "--set", "launch_time=9", "--json"))
    assert slower["rows"][0]["modelled_us"] > found["rows"][0]["modelled_us"] + 7
    assert "There are no figures of voodoo2" in sentence("bench", "kernels", "--chip", "voodoo2")
