"""What is asked of the store after a compile, and that no answer can do harm."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import cuasmrl.deploy.store
from cuasmrl.deploy.shim import substitute
from cuasmrl.deploy.shim.substitute import DoubtError, main, output_of
from cuasmrl.deploy.store import Deployment, Store
from tests.deploy.shim.conftest import put


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ("k.ptx -o out", "out"),
        ("-o=out k.ptx", "out"),
        ("--output-file out k.ptx", "out"),
        ("--output-file=out k.ptx", "out"),
        ("--output-file=first k.ptx -o out", "out"),
        ("-arch=sm_80 -m64 k.ptx -o a=b", "a=b"),
        ("k.ptx", None),
        ("-h", None),
        ("k.ptx -o", ""),
    ],
)
def test_outputs_are_found_as_ptxas_finds_them(given: str, output: str | None) -> None:
    assert output_of(given.split()) == output


@pytest.mark.parametrize("given", ["-optf options k.ptx -o out", "--options-file=options k.ptx"])
def test_options_in_a_file_are_a_doubt(given: str) -> None:
    with pytest.raises(DoubtError, match="options from a file"):
        output_of(given.split())


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "session"
    place.mkdir()
    monkeypatch.setenv("CUASMRL_SESSION", str(place))
    return place


@pytest.fixture
def compiled(tmp_path: Path, cubin: bytes) -> Path:
    """What ptxas has just written."""
    path = tmp_path / "out.cubin"
    path.write_bytes(cubin)
    return path


def events(session: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (session / "events.jsonl").read_text().splitlines()]


def ask(output: Path) -> None:
    assert main(["/bin/ptxas", "k.ptx", "-o", str(output)]) == 0


def kept(output: Path, cubin: bytes, session: Path) -> str:
    """The reason why ptxas's code was kept, which it was."""
    assert output.read_bytes() == cubin
    assert [path.name for path in output.parent.glob("*.partial")] == []
    event = events(session)[-1]
    assert (event["used"], event["doubt"]) == (False, True)
    return str(event["reason"])


def test_each_compile_is_logged(compiled: Path, store: Store, cubin: bytes, session: Path) -> None:
    ask(compiled)
    better = put(store, cubin)
    ask(compiled)
    assert compiled.read_bytes() == better
    first, second = events(session)
    assert (first["used"], first["doubt"]) == (False, False)
    assert second["used"]
    assert first["output"] == second["output"] == str(compiled)


def test_a_damaged_entry_is_not_used(
    compiled: Path, store: Store, cubin: bytes, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, cubin)
    (entry,) = Path(store.root).glob("objects/*/*")
    damaged = bytearray(entry.read_bytes())
    damaged[-1] ^= 1
    entry.write_bytes(damaged)
    ask(compiled)
    assert "is damaged" in kept(compiled, cubin, session)
    assert capsys.readouterr().err.startswith("cuasmrl: ptxas's own code is kept: ")


def test_a_store_of_the_future_is_not_used(
    compiled: Path, store: Store, cubin: bytes, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, cubin)
    Path(store.root, "schema").write_text("99\n")
    ask(compiled)
    assert "schema 99" in kept(compiled, cubin, session)
    assert main(["/bin/ptxas", "--version"]) == 0
    assert capsys.readouterr().out == ""


def test_doubts_are_said_once_in_a_session(
    compiled: Path, store: Store, cubin: bytes, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, cubin)
    Path(store.root, "schema").write_text("99\n")
    for _ in range(3):
        ask(compiled)
    assert capsys.readouterr().err.count("\n") == 1
    assert len(events(session)) == 3


@pytest.mark.parametrize(
    "error", [RuntimeError("no luck"), MemoryError(), SystemExit(3), KeyboardInterrupt()]
)
def test_no_exception_gets_out(
    compiled: Path,
    store: Store,
    cubin: bytes,
    session: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    def fail(*_: object) -> Deployment:
        raise error

    monkeypatch.setattr(cuasmrl.deploy.store, "deploy", fail)
    ask(compiled)
    assert kept(compiled, cubin, session).startswith(type(error).__name__)


def test_a_store_that_cannot_be_imported(
    compiled: Path, cubin: bytes, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuasmrl.deploy.store", None)
    ask(compiled)
    assert "Error" in kept(compiled, cubin, session)


def test_an_output_that_cannot_be_replaced(
    compiled: Path, store: Store, cubin: bytes, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, cubin)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    ask(compiled)
    assert "No space left" in kept(compiled, cubin, session)


def test_a_store_that_hangs_is_given_up(
    compiled: Path, store: Store, cubin: bytes, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that nobody writes to stands for a network disk that does not answer."""
    put(store, cubin)
    (entry,) = Path(store.root).glob("objects/*/*")
    entry.unlink()
    os.mkfifo(entry)
    monkeypatch.setenv("CUASMRL_TIMEOUT", "0.2")
    start = time.monotonic()
    ask(compiled)
    assert "did not answer within 0.2 seconds" in kept(compiled, cubin, session)
    waited = time.monotonic() - start
    ask(compiled)
    assert "not asked again" in kept(compiled, cubin, session)
    assert time.monotonic() - start - waited < 0.1


@pytest.mark.parametrize("text", ["soon", "", "-1"])
def test_a_senseless_limit_does_no_harm(
    compiled: Path, store: Store, cubin: bytes, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CUASMRL_TIMEOUT", text)
    ask(compiled)
    assert compiled.read_bytes() == cubin


def test_a_session_that_is_over_does_no_harm(
    compiled: Path, store: Store, cubin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = put(store, cubin)
    monkeypatch.setenv("CUASMRL_SESSION", "/nowhere/at/all")
    ask(compiled)
    assert compiled.read_bytes() == better


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not a cubin at all"])
def test_what_is_no_cubin_is_left_alone(compiled: Path, store: Store, session: Path, content: bytes) -> None:
    compiled.write_bytes(content)
    ask(compiled)
    assert compiled.read_bytes() == content
    assert not events(session)[0]["used"]


def test_it_starts_with_few_modules(make_shim: Callable[..., Path]) -> None:
    """Every compile waits for these imports."""
    import subprocess

    code = (
        "import sys; sys.path.append(sys.argv[1]); from cuasmrl.deploy.shim import substitute; "
        "import cuasmrl.deploy.store; print(*sys.modules)"
    )
    root = Path(substitute.__file__).parents[3]
    command = [sys.executable, "-I", "-S", "-c", code, str(root)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & {"numpy", "typing", "dataclasses", "inspect", "pathlib", "subprocess", "typer"}
    assert len(loaded) < 110
