"""Run directories: made once, opened again, never overwritten."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.optimize.runs import RunConfig, RunDirectory, versions
from cuasmrl.optimize.runs.directory import check_vacant, vacant
from tests.traced_kernels import rescheduled, traced

CONFIG = RunConfig(
    source={"workload": "softmax", "config": "w4", "sizes": {"M": 648, "N": 256}},
    kernel="softmax",
    cubin="00",
    problem="M=648 N=256",
    device="virtual:a100",
    agent="random",
    settings={"horizon": 128, "rates": (0.1, 0.2)},
    budget=10,
    seed=0,
    versions={"cuasmrl": "0.1.0", "python": "3.11"},
)


def test_a_config_comes_back(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "deep" / "run", CONFIG)
    found = RunDirectory.open(tmp_path / "deep" / "run").config
    assert found.difference(CONFIG) is None
    assert CONFIG.difference(found) is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seed": 1}, "seed 0, not 1"),
        ({"budget": 20}, "budget 10, not 20"),
        ({"device": "virtual:h100"}, "device virtual:a100, not virtual:h100"),
        ({"cubin": "11"}, "a cubin of sha256 00, not 11"),
        (
            {"settings": {"horizon": 8}},
            "the agent's settings (horizon=128, rates=[0.1, 0.2]), not (horizon=8)",
        ),
        ({"versions": {"cuasmrl": "9"}}, "version 0.1.0, not 9"),
    ],
)
def test_what_differs_is_said(change: dict[str, object], sentence: str) -> None:
    assert CONFIG.difference(replace(CONFIG, **change)) == sentence  # type: ignore[arg-type]


def test_other_software_and_another_place_of_the_input_do_not_matter() -> None:
    other = replace(CONFIG, source={"cubin": "elsewhere"}, versions={"cuasmrl": "0.1.0", "python": "4"})
    assert CONFIG.difference(other) is None


def test_versions() -> None:
    assert {"cuasmrl", "python", "numpy", "numba", "nvdisasm", "compiler"} <= versions("nvcc 13").keys()


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, CONFIG)
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(CuasmrlError, match="is not empty; continue it with --resume"):
        RunDirectory.create(tmp_path, replace(CONFIG, seed=7))
    assert (tmp_path / "config.json").read_bytes() == before


def test_what_a_killed_process_left_half_written_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json.123.partial").write_text("{")
    run = RunDirectory.create(tmp_path, CONFIG)
    run.open_log().close()
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "log.jsonl"}


def test_places_that_cannot_hold_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("")
    for place, reason in (
        ("file", "Not a directory"),
        ("file/run", "Not a directory"),
        ("other", "not empty"),
    ):
        with pytest.raises(CuasmrlError, match=reason):
            check_vacant(tmp_path / place)


def test_the_next_vacant_name(tmp_path: Path) -> None:
    assert vacant(tmp_path / "a") == tmp_path / "a"
    (tmp_path / "a").mkdir()
    (tmp_path / "a-2").mkdir()
    assert vacant(tmp_path / "a") == tmp_path / "a-3"


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="holds no run"):
        RunDirectory.open(tmp_path)
    for text, reason in (("{", "is not JSON"), ("{}", "is not the config"), ("[1]", "is not the config")):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(CuasmrlError, match=reason):
            RunDirectory.open(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG.as_dict(), "format": 2}))
    with pytest.raises(CuasmrlError, match="format 2"):
        RunDirectory.open(tmp_path)


def test_schedules_come_back(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, CONFIG)
    schedule = rescheduled("softmax")
    run.keep_best(schedule, 1234.5)
    found = run.best(traced("softmax").listing)
    assert found == schedule
    assert found.words == schedule.words
    with pytest.raises(CuasmrlError, match="of another kernel"):
        run.best(traced("gemm_leaky_relu").listing)
    data = json.loads((tmp_path / "best.json").read_text())
    data["controls"][0][0] ^= 1
    (tmp_path / "best.json").write_text(json.dumps(data))
    with pytest.raises(CuasmrlError, match="damaged"):
        run.best(traced("softmax").listing)
    (tmp_path / "best.json").write_text("{}")
    with pytest.raises(CuasmrlError, match="holds no schedule"):
        run.best(traced("softmax").listing)
