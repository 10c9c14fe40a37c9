"""Rows of a benchmark survive an interruption, and other files are refused."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from cuasmrl.bench.kept import Kept
from cuasmrl.errors import CuasmrlError


@dataclass(frozen=True)
class Row:
    name: str
    gain: float


def test_rows_come_back(tmp_path: Path) -> None:
    kept = Kept(Row, tmp_path / "rows.jsonl")
    assert kept.rows() == []
    rows = [Row("gemm", 0.11), Row("bmm", -0.1 / 3)]
    for row in rows:
        kept.add(row)
    assert Kept(Row, tmp_path / "rows.jsonl").rows() == rows


def test_only_what_is_missing_is_made(tmp_path: Path) -> None:
    asked: list[list[str]] = []
    steps: list[tuple[int, int]] = []

    def make(left: list[str]) -> list[Row]:
        asked.append(left)
        return [Row(name, len(name) / 10) for name in reversed(left)]

    def complete(wanted: list[str]) -> list[Row]:
        kept = Kept(Row, tmp_path / "rows.jsonl")
        return kept.complete(wanted, lambda row: row.name, make, lambda *step: steps.append(step))

    assert complete(["gemm"]) == [Row("gemm", 0.4)]
    found = complete(["softmax", "gemm", "bmm"])
    assert [row.name for row in found] == ["softmax", "gemm", "bmm"]
    assert asked == [["gemm"], ["softmax", "bmm"]]
    assert steps == [(0, 1), (1, 1), (1, 3), (2, 3), (3, 3)]


def test_without_a_file_nothing_is_kept() -> None:
    kept = Kept(Row, None)
    kept.add(Row("gemm", 0.1))
    assert kept.rows() == []


@pytest.mark.parametrize("text", ["not json\n", '{"name": "gemm"}\n', "3\n"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(CuasmrlError, match="choose another file"):
        Kept(Row, path).rows()
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="cannot write"):
        Kept(Row, tmp_path / "missing" / "rows.jsonl").add(Row("gemm", 0.1))
