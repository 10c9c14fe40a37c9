"""The hook in Triton's compiler: what it changes, and everything that it leaves alone."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import triton

import cuasmrl
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton import Mode, installation, workers
from cuasmrl.deploy.triton.compiler import backend_class, is_known
from cuasmrl.deploy.triton.cost import measure_launches
from cuasmrl.errors import CuasmrlError
from tests.deploy.triton import kernels
from tests.deploy.triton.kernels import (
    code,
    compiled,
    put_result,
    rearranged,
    scale,
    softmax,
    softmax_of,
    tuned,
)

ROWS = np.random.default_rng(0).standard_normal((5, kernels.COLUMNS)).astype(np.float32)


@pytest.fixture
def triton_cache(own_cache: Path) -> Path:
    return own_cache


@contextmanager
def warning(*words: str) -> Iterator[None]:
    """Exactly one, with these words in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(each.message) for each in caught if issubclass(each.category, RuntimeWarning)]
    assert len(texts) == 1, texts
    assert texts[0].startswith("cuasmrl: ")
    for word in words:
        assert word in texts[0]


def again(function: Any = softmax) -> Any:
    """As a new process would compile it, with the caches of before."""
    kernels.forget()
    return compiled(function)


def test_an_empty_store_changes_nothing(store: Store) -> None:
    plain, expected = compiled(), softmax_of(ROWS)
    assert cuasmrl.install(store=store)
    assert again().hash == plain.hash
    assert again().asm["cubin"] == plain.asm["cubin"]
    assert (softmax_of(ROWS) == expected).all()
    assert not store.root.exists()


def test_a_stored_result_is_used_and_the_output_stays(store: Store) -> None:
    plain, expected = compiled(), softmax_of(ROWS)
    entry = put_result(store, plain.asm["cubin"])
    assert cuasmrl.install(store=store)
    kernel = again()
    assert code(kernel) == code(entry.optimised)
    assert kernel.hash != plain.hash
    assert (softmax_of(ROWS) == expected).all()
    # It is in Triton's cache now, under a key of its own.
    assert code(again()) == code(entry.optimised)
    cuasmrl.uninstall()
    assert again().hash == plain.hash
    assert again().asm["cubin"] == plain.asm["cubin"]


def test_a_result_for_another_kernel_changes_no_code(store: Store) -> None:
    plain = compiled(scale)
    put_result(store, compiled().asm["cubin"])
    cuasmrl.install(store=store)
    assert code(again(scale)) == code(plain)


def test_every_change_of_the_store_is_seen(store: Store) -> None:
    cubin = compiled().asm["cubin"]
    entry = put_result(store, cubin)
    cuasmrl.install(store=store)
    first = again()
    store.remove(entry.key)
    removed = again()
    put_result(store, cubin)
    last = again()
    assert code(first) == code(last) != code(removed) == code(cubin)
    assert first.hash == last.hash != removed.hash


def test_the_store_changes_while_triton_compiles(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton files the cubin under the epoch of before, so it must not be one of after."""
    cubin, other = compiled().asm["cubin"], compiled(scale).asm["cubin"]
    put_result(store, other)
    backend = backend_class()
    make = backend.make_cubin

    def make_and_put(*arguments: Any) -> Any:
        put_result(store, cubin)
        return make(*arguments)

    monkeypatch.setattr(backend, "make_cubin", make_and_put)
    cuasmrl.install(store=store)
    assert code(again()) == code(cubin)


def test_the_decorator_gives_back_what_it_is_given(store: Store) -> None:
    assert cuasmrl.jit(softmax) is softmax
    cuasmrl.uninstall()
    assert cuasmrl.jit(store=store)(softmax) is softmax
    assert cuasmrl.jit(store=store)(tuned) is tuned
    assert type(softmax) is triton.JITFunction


def test_the_decorator_covers_its_kernel_only(store: Store) -> None:
    plain = compiled().asm["cubin"], compiled(scale).asm["cubin"]
    entry, _ = (put_result(store, cubin) for cubin in plain)
    cuasmrl.jit(store=store)(softmax)
    assert (code(again()), code(again(scale))) == (code(entry.optimised), code(plain[1]))
    assert "CUASMRL_TRITON" not in os.environ, "what it covers is in this process"
    # Installed for all, the other one must not come from the cache of before.
    assert cuasmrl.install(store=store)
    assert os.environ["CUASMRL_TRITON"] == "deploy"
    assert code(again(scale)) == code(rearranged(plain[1]))


def test_names_that_begin_with_that_of_the_function(store: Store) -> None:
    cuasmrl.jit(store=store)(softmax)
    found = installation()
    assert found is not None
    assert found.covers("softmax_512_fp16")
    assert not found.covers("log_softmax")


def test_the_decorator_on_something_else() -> None:
    def plain() -> None: ...

    with pytest.raises(CuasmrlError, match="cuasmrl.jit goes above @triton.jit, and was given"):
        cuasmrl.jit(plain)
    assert installation() is None


def test_an_unknown_mode() -> None:
    with pytest.raises(CuasmrlError, match="no mode 'fast'; choose one of deploy, record, optimize"):
        cuasmrl.install("fast")
    assert installation() is None


def test_twice_the_same_is_once(store: Store) -> None:
    assert cuasmrl.install(store=store)
    assert cuasmrl.install(store=store)
    cuasmrl.jit(store=store)(softmax)
    found = installation()
    assert found is not None
    assert found.covers("anything")
    cuasmrl.uninstall()
    cuasmrl.uninstall()
    assert installation() is None


def test_two_installs_at_once(store: Store, tmp_path: Path) -> None:
    put_result(store, compiled().asm["cubin"])
    assert cuasmrl.install(store=store)
    with warning("mode deploy with the store", "is in force already, so mode record", "the first one stays"):
        assert not cuasmrl.install("record", store=store)
    with warning("in force already"):
        assert not cuasmrl.install(store=tmp_path / "elsewhere")
    found = installation()
    assert found is not None
    assert (found.mode, found.store.root) == (Mode.DEPLOY, store.root)
    assert code(again()) == code(next(store.entries()).optimised)


def test_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of torch that run already are worth a warning, and here warnings are errors."""
    backend, before = backend_class(), dict(os.environ)
    methods = backend.add_stages, backend.hash
    monkeypatch.setattr(workers, "_workers_run", lambda: True)
    with pytest.raises(RuntimeWarning, match="compile workers of torch have started already"):
        cuasmrl.install(store=store)
    assert (backend.add_stages, backend.hash) == methods
    assert dict(os.environ) == before
    assert installation() is None
    with warning("compile workers of torch have started already"):
        assert cuasmrl.install(store=store)


def test_another_copy_of_us(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_class()
    monkeypatch.setattr(backend.add_stages, "__cuasmrl__", True, raising=False)
    with warning("another copy of cuasmrl", "kernels stay as compiled"):
        assert not cuasmrl.install(store=store)


@pytest.mark.parametrize("version", ["3.5.1", "3.10.0", "4.0.0", "unknown"])
def test_an_unknown_triton(version: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compiled()
    put_result(store, plain.asm["cubin"])
    monkeypatch.setattr(triton, "__version__", version)
    with warning(f"Triton {version} is not known, 3.6 to 3.9 are", "kernels stay as compiled"):
        assert not cuasmrl.install(store=store)
    with warning(f"Triton {version} is not known"):
        assert cuasmrl.jit(store=store)(softmax) is softmax
    monkeypatch.undo()
    assert installation() is None


def test_known_versions() -> None:
    assert all(map(is_known, ("3.6.0", "3.7.1", "3.8.0+git1234", "3.9.0")))


def test_a_triton_without_our_backend(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton.backends, "backends", {})
    with warning("it has no backend for NVIDIA GPUs"):
        assert not cuasmrl.install(store=store)


def test_no_triton_at_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with warning("Triton does not import", "install cuasmrl[triton]"):
        assert not cuasmrl.install(store=store)


def test_a_store_of_a_newer_schema(store: Store) -> None:
    plain = compiled()
    put_result(store, plain.asm["cubin"])
    (store.root / "schema").write_text("99\n")
    with warning("kernels stay as compiled"):
        cuasmrl.install(store=store)
        assert again().asm["cubin"] == plain.asm["cubin"]
        # The same again is not said again.
        assert again(scale).hash
    assert again().hash == plain.hash


def test_a_damaged_entry(store: Store) -> None:
    plain = compiled().asm["cubin"]
    put_result(store, plain)
    (entry,) = (path for path in (store.root / "objects").rglob("*") if path.is_file())
    data = bytearray(entry.read_bytes())
    data[-100] ^= 1
    entry.write_bytes(data)
    cuasmrl.install(store=store)
    with warning("softmax stays as compiled", "corrupt"):
        assert code(again()) == code(plain)


def test_a_hook_of_others_around_ours(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs stays when ours goes, and ours does nothing any more."""
    plain = compiled()
    put_result(store, plain.asm["cubin"])
    cuasmrl.install(store=store)
    backend = backend_class()
    ours, calls = backend.add_stages, []

    def theirs(*arguments: Any) -> Any:
        calls.append(1)
        return ours(*arguments)

    before = ours.__wrapped__, backend.hash.__wrapped__
    try:
        backend.add_stages = theirs
        cuasmrl.uninstall()
        assert backend.add_stages is theirs
        monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
        assert code(again()) == code(plain)
        assert again().hash == plain.hash
        assert calls
    finally:
        backend.add_stages, backend.hash = before


def test_deploying_calls_nothing_at_a_launch(store: Store) -> None:
    put_result(store, compiled().asm["cubin"])
    cuasmrl.install(store=store)
    again()
    softmax_of(ROWS)
    ours: set[str] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        place = frame.f_code.co_filename
        if "cuasmrl/deploy" in place:
            ours.add(place)

    sys.setprofile(profile)
    try:
        softmax_of(ROWS)
    finally:
        sys.setprofile(None)
    assert not ours


def test_the_cost_of_a_launch_is_measured() -> None:
    cost = measure_launches(rounds=2, calls=20)
    assert cost.without > 0
    assert cost.added == cost.installed - cost.without
    assert installation() is None


def test_debug_information_of_the_compiled_cubin_stays(store: Store) -> None:
    """Line numbers have to be those of the source as it is now."""
    plain = compiled().asm["cubin"]
    place = plain.index(b"kernels.py\0")
    elsewhere = plain.replace(b"kernels.py\0", b"thernels.py"[:10] + b"\0")
    put_result(store, elsewhere)
    cuasmrl.install(store=store)
    made = again().asm["cubin"]
    assert code(made) == code(rearranged(elsewhere)) != code(plain)
    assert made[place : place + 10] == b"kernels.py"
