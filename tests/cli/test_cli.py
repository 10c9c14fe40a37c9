"""The commands as a user meets them: text, JSON, exit status, and one clear sentence on bad input."""

import json
from pathlib import Path

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.schedule import Board
from tests.command import run, sentence


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workload = workloads.get("softmax")
    path = tmp_path_factory.mktemp("cubins") / "softmax.cubin"
    path.write_bytes(workload.build(workload.config("w4"), 80).cubin)
    return path


@pytest.fixture(scope="module")
def rescheduled(softmax: Path) -> Path:
    cubin = Cubin.load(softmax)
    board = Board(disassemble_kernel(cubin))
    for p in board.legal_swaps()[::7]:
        board.swap(p)
    path = softmax.with_name("rescheduled.cubin")
    board.schedule().apply(cubin).save(path)
    return path


def test_disasm_prints_control_codes(softmax: Path) -> None:
    lines = run("disasm", softmax).splitlines()
    count = len(Cubin.load(softmax).kernel().words)
    assert lines[0].startswith(f"// softmax: sm_80, {count} instructions")
    assert len(lines) == count + 1
    assert all(":S" in line for line in lines[1:])


def test_disasm_json(softmax: Path) -> None:
    (kernel,) = json.loads(run("disasm", softmax, "--json"))
    assert kernel["kernel"] == "softmax"
    assert len(kernel["instructions"]) == len(Cubin.load(softmax).kernel().words)
    assert kernel["instructions"][0]["known"] is True


def test_check_certifies_and_says_what_was_proved(softmax: Path, rescheduled: Path) -> None:
    assert softmax.read_bytes() != rescheduled.read_bytes()
    assert run("check", softmax, rescheduled).startswith("certified: ")
    answer = json.loads(run("check", softmax, rescheduled, "--json"))
    assert answer["certified"] is True
    assert answer["arch"] == 80


def test_check_refuses_with_status_1(softmax: Path, tmp_path: Path) -> None:
    cubin = Cubin.load(softmax)
    kernel = cubin.kernel()
    words = list(kernel.words)
    words[:40] = reversed(words[:40])
    broken = tmp_path / "broken.cubin"
    cubin.with_words(kernel, tuple(words), {}).save(broken)
    assert run("check", softmax, broken, status=1).startswith("refused (")
    answer = json.loads(run("check", softmax, broken, "--json", status=1))
    assert answer["certified"] is False
    assert answer["sentence"]


def test_lint(softmax: Path) -> None:
    assert "softmax: 0 hazards" in run("lint", softmax)
    assert all(not finding["hazard"] for finding in json.loads(run("lint", softmax, "--json")))


def test_mine_writes_a_table(softmax: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    assert "rows from" in run("mine", softmax.parent, "-o", table)
    assert table.read_text().startswith("arch,hazard,")
    assert not list(tmp_path.glob("*.partial"))
    assert run("mine", softmax.parent).startswith("arch,hazard,")


def test_workloads_lists_the_published_six() -> None:
    listed = json.loads(run("workloads", "--json"))
    assert sum(w["published"] for w in listed) == 6
    assert len(listed) >= 16
    assert "gemm_leaky_relu*" in run("workloads")


def test_emulate_compares_with_the_reference() -> None:
    text = run("emulate", "softmax", "--config", "w4", "--set", "M=3", "--set", "N=100")
    assert "ok" in text
    assert "allowed error" in text
    (outcome,) = json.loads(run("emulate", "vector_add", "--config", "b256_w2", "--set", "n=1000",
                                "--blocks", "0,2-3", "--json"))  # fmt: skip
    assert outcome["passed"]
    assert outcome["blocks"] == 3
    assert outcome["outputs"][0]["elements"] == 744


@pytest.mark.slow
def test_bench_timing_prints_model_and_publication() -> None:
    text = run("bench", "timing")
    assert "V0001" in text
    assert "not run" in text


def test_workloads_builds(tmp_path: Path) -> None:
    out = run("workloads", "--build", tmp_path, "--arch", "80", "--name", "vector_add")
    assert "cubins in" in out
    built = sorted((tmp_path / "sm_80").glob("vector_add-*.cubin"))
    assert built
    assert all(path.with_suffix(".launch.json").exists() for path in built)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("disasm", "missing.cubin"), "cannot read missing.cubin"),
        (("lint", __file__), "is not an ELF file"),
        (("workloads", "--name", "softmx"), "did you mean softmax"),
        (("mine", "no-such-directory"), "no-such-directory is not a directory"),
        (("emulate", "softmax", "--set", "Q=3"), "softmax is sized by M, N"),
        (("emulate", "softmax", "--blocks", "a-b"), "write for example 0-3,17"),
        (("emulate", "softmax", "--set", "M=2", "--blocks", "7"), "numbered 0 to 1"),
        (("emulate", "softmax", "--arch", "99"), "softmax has no config for sm_99"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments: tuple[str, ...], expected: str) -> None:
    assert expected in sentence(*arguments)


def test_a_missing_kernel_is_named(softmax: Path) -> None:
    assert "has no kernel nope; it holds softmax" in run("disasm", softmax, "--kernel", "nope", status=2)


def test_a_truncated_file(softmax: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.cubin"
    short.write_bytes(softmax.read_bytes()[:-100])
    assert run("lint", short, status=2).startswith("error: ")
