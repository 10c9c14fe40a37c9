"""The log: whole lines only, the same lines again, one writer."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Evaluation
from cuasmrl.optimize.runs.log import Log, read_log

EVALUATIONS = (
    *(Evaluation(n, bytes([n]) * 16, 100.1 / (n + 1), n < 3) for n in range(5)),
    Evaluation(5, bytes(16), math.inf, False),
)


def written(path: Path, count: int = len(EVALUATIONS)) -> bytes:
    log = Log(path)
    for evaluation in EVALUATIONS[:count]:
        log.record(evaluation)
    log.close()
    return path.read_bytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written(tmp_path / "log")
    assert read_log(tmp_path / "log") == EVALUATIONS


def test_a_line_is_there_before_play_goes_on(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.record(EVALUATIONS[0])
    assert read_log(tmp_path / "log") == EVALUATIONS[:1]


def test_a_log_cut_anywhere_is_continued_to_the_same_bytes(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole")
    for cut in range(len(whole) + 1):
        path = tmp_path / f"{cut}"
        path.write_bytes(whole[:cut])
        assert Log(path).found == EVALUATIONS[: whole[:cut].count(b"\n")]
        assert written(path) == whole


def test_known_times_are_exact(tmp_path: Path) -> None:
    written(tmp_path / "log")
    assert Log(tmp_path / "log").known == {e.key: e.time for e in EVALUATIONS}


def test_another_evaluation_than_before_is_refused(tmp_path: Path) -> None:
    before = written(tmp_path / "log")
    log = Log(tmp_path / "log")
    log.record(EVALUATIONS[0])
    with pytest.raises(CuasmrlError, match="evaluation 1 was another one"):
        log.record(EVALUATIONS[2])
    assert (tmp_path / "log").read_bytes() == before


def test_damage_inside_is_no_cut(tmp_path: Path) -> None:
    whole = written(tmp_path / "log")
    lines = whole.splitlines(keepends=True)
    for bad in (
        b"{}\n",
        b"nonsense\n",
        lines[3],
        b'{"number": 1, "key": "00", "time": NaN, "is_best": true}\n',
    ):
        (tmp_path / "log").write_bytes(b"".join([lines[0], bad, *lines[2:]]))
        with pytest.raises(CuasmrlError, match="line 2 is damaged"):
            Log(tmp_path / "log")


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    path = str(tmp_path / "log")
    code = f"from pathlib import Path; from cuasmrl.optimize.runs import Log; Log(Path({path!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "is being written by another process" in done.stderr
    log.close()
    Log(tmp_path / "log").close()
