"""`cuasmrl simulate`: workloads and cubins, timelines, two schedules compared."""

import json
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.launches import save
from tests.command import run, sentence
from tests.gpu.test_traced import record_of
from tests.traced_kernels import rescheduled, traced

SIZES = ("--set", "M=648", "--set", "N=256")
SMALL = ("softmax", "--config", "w4", *SIZES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """softmax.cubin, its launch file, another schedule of it, one that is not legal, and another kernel."""
    made = tmp_path_factory.mktemp("kernels")
    kernel = traced("softmax")
    kernel.cubin.save(made / "softmax.cubin")
    save(made / "softmax.launch.json", record_of("softmax"))
    rescheduled("softmax").apply(kernel.cubin).save(made / "other.cubin")
    words = list(kernel.listing.kernel.words)
    words[:10] = reversed(words[:10])
    kernel.cubin.with_words(kernel.listing.kernel, tuple(words), {}).save(made / "illegal.cubin")
    words[0] = bytes([255] * 16)
    kernel.cubin.with_words(kernel.listing.kernel, tuple(words), {}).save(made / "foreign.cubin")
    traced("gemm_leaky_relu").cubin.save(made / "gemm.cubin")
    return made


def test_every_cycle_has_a_name() -> None:
    found = json.loads(run("simulate", *SMALL, "--seeds", "2", "--json"))
    assert len(found["cycles"]) == 2
    assert sum(found["reasons"].values()) == pytest.approx(1)
    assert "modelled cycles" in run("simulate", *SMALL, "--chip", "rtx4090")


def test_a_cubin_with_a_launch_file(folder: Path) -> None:
    launch = ("--launch", folder / "softmax.launch.json", "--json")
    found = json.loads(run("simulate", folder / "softmax.cubin", *launch))
    expected = json.loads(run("simulate", *SMALL, "--json"))
    assert found["cycles"] == expected["cycles"]
    assert found["reasons"] == expected["reasons"]
    text = run("simulate", folder / "softmax.cubin", *launch[:2], "--chip", "a6000", "--kernel", "softmax")
    assert "softmax.cubin softmax, on virtual:a6000" in text


def test_a_timeline(folder: Path) -> None:
    path = folder / "timeline.json"
    text = run("simulate", *SMALL, "--timeline", path, "--timeline-issues", "500")
    assert "timeline: 500 of " in text
    assert "ui.perfetto.dev" in text
    slices = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "issue"]
    assert len(slices) == 500
    found = json.loads(run("simulate", *SMALL, "--timeline", path, "--json"))
    assert found["timeline"]["issues"] == found["timeline"]["of"] == found["instructions"]


def test_compare(folder: Path) -> None:
    text = run("simulate", *SMALL, "--compare", "original", folder / "other.cubin")
    assert "instructions moved" in text
    assert "in words" in text
    assert "note:" not in text
    found = json.loads(run("simulate", *SMALL, "--compare", "original", folder / "other.cubin", "--json"))
    assert found["doubts"] == []
    assert sum(r["change"] for r in found["reasons"]) == pytest.approx(found["difference"], abs=1e-6)
    launch = ("--launch", folder / "softmax.launch.json", "--json")
    both = (folder / "other.cubin", "original")
    back = json.loads(run("simulate", folder / "softmax.cubin", *launch, "--compare", *both))
    assert back["difference"] == -found["difference"]


def test_without_a_config_the_fastest_is_taken_as_by_optimize() -> None:
    found = json.loads(run("simulate", "softmax", *SIZES, "--seeds", "1", "--json"))
    cycles = {each["config"]: each["cycles"] for each in found["candidates"]}
    assert len(cycles) == 3
    assert found["config"] == min(cycles, key=lambda name: cycles[name])
    assert f"softmax {found['config']}, the fastest of 3 configs, on virtual:a100" in run(
        "simulate", "softmax", *SIZES
    )


def test_a_schedule_of_another_config_is_refused_with_its_name(folder: Path) -> None:
    said = sentence(
        "simulate", "softmax", "--config", "w8", *SIZES, "--compare", "original", folder / "other.cubin"
    )
    assert "other.cubin holds a schedule of softmax w4, not of w8; give --config w4" in said


def test_compare_says_when_a_schedule_is_not_safe(folder: Path) -> None:
    text = run("simulate", *SMALL, "--compare", "original", folder / "illegal.cubin")
    assert f"note: {folder / 'illegal.cubin'} is not as safe as softmax w4: " in text


def test_bad_input_is_one_sentence(folder: Path) -> None:
    cubin, launch = folder / "softmax.cubin", ("--launch", folder / "softmax.launch.json")
    assert "voodoo" in sentence("simulate", "softmax", "--chip", "voodoo")
    assert "so it cannot be warm; choose --l2 cold" in sentence(
        "simulate", "vector_add", "--chip", "t4", "--config", "b1024_w4", "--l2", "warm"
    )
    assert "name a launch file with --launch" in sentence("simulate", cubin)
    assert "cannot read missing.cubin" in sentence("simulate", "missing.cubin")
    assert "has no kernel nope; it holds softmax" in sentence("simulate", cubin, *launch, "--kernel", "nope")
    assert "cannot run; choose --chip a100" in sentence("simulate", cubin, *launch, "--chip", "h100")
    assert "arguments, but kernel gemm_leaky_relu takes" in sentence(
        "simulate", folder / "gemm.cubin", *launch, "--kernel", "gemm_leaky_relu"
    )
    assert "belong to workloads" in sentence("simulate", cubin, *launch, "--config", "w4")
    assert "belongs to cubins" in sentence("simulate", "softmax", "--kernel", "softmax")
    assert "do not go together" in sentence(
        "simulate", *SMALL, "--compare", "original", cubin, "--timeline", "t.json"
    )
    assert "has no kernel softmax; it holds gemm_leaky_relu" in sentence(
        "simulate", *SMALL, "--compare", "original", folder / "gemm.cubin"
    )
    assert "0x0000 is no instruction of the original" in sentence(
        "simulate", *SMALL, "--compare", "original", folder / "foreign.cubin"
    )
    assert Cubin.load(folder / "foreign.cubin").kernel().name == "softmax"
