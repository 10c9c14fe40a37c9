"""`cuasmrl run` as a user types it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cuasmrl.cli import app
from cuasmrl.deploy.store import Store
from cuasmrl.errors import CuasmrlError
from tests.deploy.shim.conftest import PTX, put

COMMAND = [sys.executable, "-m", "cuasmrl.cli", "run"]


class Said(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Said]


@pytest.fixture
def run(store: Store, capfd: pytest.CaptureFixture[str]) -> Run:
    """run(...): the command in this process, with the output of the program it runs."""

    def invoke(*arguments: str | Path) -> Said:
        status = app(["run", *map(str, arguments)], standalone_mode=False)
        return Said(status or 0, *capfd.readouterr())

    return invoke


def test_one_run_inside_another(tmp_path: Path, store: Store, cubin: bytes, run: Run) -> None:
    better = put(store, cubin)
    shell = f'$TRITON_PTXAS_PATH --gpu-name=sm_80 {PTX} -o {tmp_path}/out; echo "$CCACHE_NAMESPACE $PATH"'
    said = run("--", *COMMAND, "--", "sh", "-c", shell)
    assert (tmp_path / "out").read_bytes() == better
    namespace, path = said.out.split()
    assert namespace == f"cuasmrl-{store.epoch}"
    assert path.count("shims/cuda-") == 1


def test_the_status_of_the_program_is_ours(run: Run) -> None:
    assert run("--", "sh", "-c", "exit 7").status == 7
    assert run("--quiet", "--", "sh", "-c", "exit 0").err == ""


def test_options_behind_the_program_are_its_own(run: Run) -> None:
    assert run("--quiet", "sh", "-c", "echo $0 $1", "--json", "--help").out == "--json --help\n"


def test_the_signal_that_ends_the_program_ends_us(store: Store) -> None:
    done = subprocess.run([*COMMAND, "--", "sh", "-c", "kill -TERM $$"], check=False, timeout=60)
    assert done.returncode == -signal.SIGTERM


def test_a_signal_reaches_the_program(tmp_path: Path, store: Store) -> None:
    shell = f'trap "echo ended; exit 5" TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done'
    program = subprocess.Popen([*COMMAND, "--quiet", "sh", "-c", shell], stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "ready").exists():
        assert program.poll() is None
    program.send_signal(signal.SIGTERM)
    assert program.communicate(timeout=60)[0] == "ended\n"
    assert program.returncode == 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--", "/nowhere/program"), "cannot run /nowhere/program: No such file or directory"),
        ((), "name a program to run"),
        (("--mode", "fast", "--", "true"), "there is no mode 'fast'"),
        (("--virtual", "abacus", "--", "true"), "abacus"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CuasmrlError, match=sentence):
        run(*arguments)


def test_a_store_of_the_future_leaves_everything_as_it_is(store: Store, cubin: bytes, run: Run) -> None:
    put(store, cubin)
    Path(store.root, "schema").write_text("99\n")
    said = run("--quiet", "--", "env")
    assert said.err.count("\n") == 1
    assert "schema 99" in said.err
    assert "TRITON_PTXAS_PATH" not in said.out
    assert "cuasmrl/shims" not in said.out


def test_shims_that_cannot_be_made_leave_everything_as_it_is(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    said = run("--", "env")
    assert "cannot make the shims" in said.err
    assert "TRITON_PTXAS_PATH" not in said.out


def test_the_environment_can_be_had_by_itself(store: Store, cubin: bytes, run: Run) -> None:
    put(store, cubin)
    named = json.loads(run("--env", "--json").out)
    assert {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "CUASMRL_STORE"} <= set(named)
    shell = f"{run('--env').out}\n$TRITON_PTXAS_PATH --version"
    said = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert said.stdout.endswith(f"cuasmrl {store.epoch}\n")


def test_it_says_what_was_compiled(tmp_path: Path, run: Run) -> None:
    assert "no cubin was compiled by ptxas in this run" in run("true").err
    shell = f"$TRITON_PTXAS_PATH --gpu-name=sm_80 {PTX} -o {tmp_path}/out"
    found = json.loads(run("--json", "--", "sh", "-c", shell).err)
    assert (found["status"], found["compiled"], found["from_store"]) == (0, 1, 0)
    said = "cuasmrl: 1 cubin compiled by ptxas in this run, 0 from the store\n"
    assert run("--", "sh", "-c", shell).err == said
