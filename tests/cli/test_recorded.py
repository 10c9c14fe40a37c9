"""`cuasmrl optimize --recorded` and `--store` as a user meets them."""

import json
from pathlib import Path

import pytest

from cuasmrl.cli.recorded import optimize_recorded
from cuasmrl.deploy.store import Store, code_key
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches import as_json
from tests.command import run, sentence
from tests.gpu.test_traced import record_of
from tests.traced_kernels import traced


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("CUASMRL_STORE", str(tmp_path / "store"))
    return Store()


def test_a_recorded_kernel_without_a_gain(store: Store, tmp_path: Path) -> None:
    kernel = traced("softmax")
    store.record(kernel.cubin.data, [as_json(record_of("softmax"))], {"framework": "by hand"})
    options = ("--agent", "random", "--budget", "2", "--run", tmp_path / "runs")
    (found,) = json.loads(run("optimize", "--recorded", "--json", *options))
    assert (found["key"], found["kernel"]) == (code_key(kernel.cubin.data), "softmax")
    assert found["result"]["evaluations"] == 2
    assert found["stored"] == found["result"]["verdict"]["accepted"]
    assert found["problem"] is None
    assert bool(store.recorded()) != found["stored"]


@pytest.mark.slow
def test_an_accepted_result_goes_into_the_store(store: Store, tmp_path: Path) -> None:
    sizes = ("--config", "m64n64k32_w4_s3", "--set", "M=128", "--set", "N=128", "--set", "K=256")
    options = (*sizes, "--budget", "150", "--run", tmp_path / "run", "--store")
    text = run("optimize", "gemm_leaky_relu", *options)
    (entry,) = store.entries()
    assert f"stored as {entry.key[:12]}" in text
    assert entry.provenance["run"]["source"]["workload"] == "gemm_leaky_relu"


@pytest.mark.parametrize("own", ["source", "launch", "config"])
def test_what_does_not_go_together(own: str, store: Store) -> None:
    with pytest.raises(CuasmrlError, match=f"so a {own} cannot be given as well"):
        optimize_recorded({own: "x"}, None, as_json=False)


def test_nothing_is_recorded(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert "leave out --resume, -o and --watch" in sentence("optimize", "--recorded", "--resume", "run")
    optimize_recorded({}, None, as_json=True)
    assert json.loads(capsys.readouterr().out) == []
