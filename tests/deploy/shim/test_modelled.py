"""Behind ptxas no GPU is known: measured results are taken, modelled ones only where that is asked for."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.cli import app
from cuasmrl.deploy.shim.session import Noted, Outcome
from cuasmrl.deploy.shim.session import run as run_session
from cuasmrl.deploy.shim.substitute import main
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.modes import Mode
from tests.deploy.shim.conftest import PTX, put

COMPILED = "1 cubin compiled by ptxas in this run"
LEFT_OUT = (
    "1 modelled result not used, for no GPU has measured it (`cuasmrl run --modelled` uses modelled results)"
)


@pytest.fixture
def output(tmp_path: Path, cubin: bytes) -> Path:
    """What ptxas has just written."""
    path = tmp_path / "out.cubin"
    path.write_bytes(cubin)
    return path


def ask(output: Path) -> None:
    assert main(["/bin/ptxas", "k.ptx", "-o", str(output)]) == 0


def compile_(output: Path) -> list[str]:
    return ["sh", "-c", f"$TRITON_PTXAS_PATH --gpu-name=sm_80 {PTX} -o {output}"]


def test_a_modelled_result_is_left_out_and_that_is_said(
    output: Path, store: Store, cubin: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, cubin, modelled=True)
    ask(output)
    assert output.read_bytes() == cubin
    said = capsys.readouterr().err
    assert said.startswith("cuasmrl: ptxas's own code is kept: entry ")
    assert said.endswith("is modelled, and no GPU has measured it; CUASMRL_MODELLED=1 allows it\n")


def test_a_modelled_result_is_used_and_that_is_said(
    output: Path, store: Store, cubin: bytes, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    better = put(store, cubin, modelled=True)
    monkeypatch.setenv("CUASMRL_MODELLED", "1")
    ask(output)
    assert output.read_bytes() == better
    assert capsys.readouterr().err.endswith("is used, which is modelled, and no GPU has measured it\n")


def test_with_the_virtual_gpu_it_is_used_without_a_word(
    output: Path, store: Store, cubin: bytes, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    better = put(store, cubin, modelled=True)
    monkeypatch.setenv("CUASMRL_VIRTUAL", "a100")
    ask(output)
    assert output.read_bytes() == better
    assert not capsys.readouterr().err


def test_what_has_a_modelled_result_is_not_recorded_again(
    output: Path, store: Store, cubin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, cubin, modelled=True)
    monkeypatch.setenv("CUASMRL_MODE", "record")
    ask(output)
    assert store.recorded() == []


@pytest.mark.parametrize(
    ("options", "sentence", "is_used"),
    [
        ((), f"{COMPILED}, 0 from the store; {LEFT_OUT}", False),
        (("--modelled",), f"{COMPILED}, 1 from the store (1 modelled)", True),
        (("--virtual", "a100"), f"{COMPILED}, 1 from the store (1 modelled)", True),
    ],
)
def test_a_run_says_it_at_its_end(
    tmp_path: Path, store: Store, cubin: bytes, capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...], sentence: str, is_used: bool,
) -> None:  # fmt: skip
    better = put(store, cubin, modelled=True)
    app(["run", *options, "--", *compile_(tmp_path / "out")], standalone_mode=False)
    assert capfd.readouterr().err == f"cuasmrl: {sentence}\n"
    assert (tmp_path / "out").read_bytes() == (better if is_used else cubin)


def test_a_run_inside_a_run_inherits_it(tmp_path: Path, store: Store, cubin: bytes) -> None:
    better = put(store, cubin, modelled=True)
    inner = [sys.executable, "-m", "cuasmrl.cli", "run", "--", *compile_(tmp_path / "out")]
    run_session(inner, store, Mode.DEPLOY, modelled=True)
    assert (tmp_path / "out").read_bytes() == better


def test_caches_tell_the_two_apart(
    store: Store, cubin: bytes, make_shim: Callable[..., Path], triton_tool: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Triton files kernels under all that `ptxas --version` says."""
    put(store, cubin, modelled=True)
    shim = make_shim(triton_tool("ptxas"))
    said = []
    for value in ("", "1"):
        monkeypatch.setenv("CUASMRL_MODELLED", value)
        said.append(subprocess.run([shim, "--version"], capture_output=True, text=True, check=True).stdout)
    assert [text.splitlines()[-1] for text in said] == [
        f"cuasmrl {store.epoch}", f"cuasmrl {store.epoch}-modelled",
    ]  # fmt: skip


def test_the_environment_says_it(
    store: Store, cubin: bytes, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, cubin, modelled=True)
    found = []
    for options in ((), ("--modelled",)):
        app(["run", *options, "--env", "--json"], standalone_mode=False)
        found.append(json.loads(capfd.readouterr().out))
    plain, modelled = found
    assert "CUASMRL_MODELLED" not in plain
    assert modelled["CUASMRL_MODELLED"] == "1"
    assert plain["CCACHE_NAMESPACE"] == f"cuasmrl-{store.epoch}"
    assert modelled["CCACHE_NAMESPACE"] == f"cuasmrl-{store.epoch}-modelled"


def test_what_is_counted() -> None:
    compiled = {"output": "x", "used": False, "doubt": False, "reason": "", "modelled": False}
    left_out, modelled = {**compiled, "modelled": True}, {**compiled, "used": True, "modelled": True}
    found = Outcome(0, (compiled, left_out, left_out, modelled), (), Noted(3, 1))
    assert found.sentence == (
        "4 cubins compiled by ptxas in this run, 1 from the store (1 modelled); 2 modelled results not used, "
        "for no GPU has measured them (`cuasmrl run --modelled` uses modelled results); newly recorded: "
        "3 kernels, 1 launch"
    )
    told = found.as_dict()
    assert (told["from_store"], told["modelled"], told["modelled_left_out"]) == (1, 1, 2)
    assert told["recorded"] == {"kernels": 3, "launches": 1}
    assert Outcome(0, (), (), Noted(1, 2)).sentence == (
        "no cubin was compiled by ptxas in this run (all cached, or compiled in another way: cuasmrl "
        "doctor); newly recorded: 1 kernel, 2 launches"
    )
