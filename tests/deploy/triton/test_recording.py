"""Kernels and launches that are noted down while a program runs as ever."""

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import triton

import cuasmrl
from cuasmrl.binary.cubin import Cubin
from cuasmrl.deploy.store import Store, code_key
from cuasmrl.deploy.triton import buffers
from cuasmrl.deploy.triton.launches import Seen
from cuasmrl.deploy.triton.recording import record_of
from cuasmrl.gpu import launches
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.gpu.launches import Buffer, LaunchRecord, SameAs, Scalar
from cuasmrl.gpu.virtual import wrap
from tests.deploy.triton import kernels
from tests.deploy.triton.kernels import compiled, put_result, scale, softmax, softmax_of, tuned
from tests.gpu.virtual.kernels import pair, scalars, strided

ROWS = np.random.default_rng(0).standard_normal((5, kernels.COLUMNS)).astype(np.float32)


def records(store: Store) -> list[LaunchRecord]:
    return [launches.load(path) for kernel in store.recorded() for path in kernel.launches]


def test_a_launch(store: Store) -> None:
    plain, expected = compiled(), softmax_of(ROWS)
    kernels.forget()
    assert cuasmrl.install("record", store=store)
    assert (softmax_of(ROWS) == expected).all()
    (recorded,) = store.recorded()
    assert recorded.cubin.read_bytes() == plain.asm["cubin"]
    assert recorded.key == code_key(plain.asm["cubin"])
    assert recorded.origin == {
        "framework": f"triton {triton.__version__}",
        "function": "tests.deploy.triton.kernels.softmax",
        "device": "virtual:a100",
        "num_warps": 4,
        "num_stages": 3,
        "constants": {"BLOCK": "512"},
    }
    (record,) = records(store)
    assert (record.kernel, record.grid, record.block) == ("softmax", (5, 1, 1), (128, 1, 1))
    x, z, columns, *rest = record.arguments
    assert isinstance(x, Buffer)
    assert (x.name, x.dtype, x.shape, x.fill) == ("x", "float32", (ROWS.size,), "normal")
    assert x.settings["std"] == pytest.approx(ROWS.std(), rel=1e-3)
    # As it was before the launch.
    assert isinstance(z, Buffer)
    assert z.fill == "zeros"
    assert columns == Scalar("int32", kernels.COLUMNS, "columns")
    assert rest == [None, None]
    kernel = Cubin.load(recorded.cubin)
    Emulator(kernel).run(record.launch(kernel.kernel()))


def test_nothing_changes_in_what_triton_compiles(store: Store) -> None:
    plain = compiled()
    put_result(store, plain.asm["cubin"])
    kernels.forget()
    cuasmrl.install("record", store=store)
    assert compiled().hash == plain.hash
    assert compiled().asm["cubin"] == plain.asm["cubin"]
    softmax_of(ROWS)
    assert not store.recorded(), "there is a result for it"


def test_what_is_a_result_is_not_recorded(store: Store) -> None:
    """It may come from another way of deploying."""
    cubin = compiled().asm["cubin"]
    entry = put_result(store, cubin)
    kernels.forget()
    cuasmrl.install("record", store=store)
    kernel = compiled()
    kernel.kernel = kernel.asm["cubin"] = entry.optimised
    softmax_of(ROWS)
    assert not store.recorded()


def test_launches_that_differ_and_launches_that_do_not(store: Store) -> None:
    cuasmrl.install("record", store=store)
    for rows in (2, 5, 2):
        softmax_of(ROWS[:rows].copy())
        softmax_of(2 * ROWS[:rows])
    assert [record.grid[0] for record in records(store)] == [2, 5]
    assert len(store.recorded()) == 1


def test_of_an_autotuned_kernel_the_winner_only(store: Store) -> None:
    cuasmrl.install("record", store=store)
    x, z = torch.rand(500), torch.zeros(500)
    tuned[lambda meta: (-(-500 // meta["BLOCK"]),)](x, z, 500)
    assert torch.equal(z, x + 1)
    (recorded,) = store.recorded()
    assert recorded.origin["constants"] == {"BLOCK": str(tuned.best_config.kwargs["BLOCK"])}


def test_the_decorator_records_its_kernel_only(store: Store) -> None:
    cuasmrl.jit(mode="record", store=store)(softmax)
    softmax_of(ROWS)
    x = wrap(np.zeros(128, np.float32))
    scale[(1,)](x, x, 2.0, 128, BLOCK=128)
    assert [record.kernel for record in records(store)] == ["softmax"]


def seen(function: Any, grid: int, *values: Any, **constants: Any) -> LaunchRecord:
    """The record of one launch, made by hand."""
    kernel = function.run(*values, **constants, grid=(grid,), warmup=True)
    return record_of(Seen(kernel, (grid, 1, 1), (*values, *constants.values())))


def test_scalars_of_every_type() -> None:
    out = wrap(np.zeros(5, np.int64))
    record = seen(scalars, 1, out, True, -3, 40000, 1 << 40, 1.5, 2.5, 8.0, 77.0, None, 1)
    kinds = [(type(entry), getattr(entry, "dtype", None)) for entry in record.arguments]
    assert kinds == [
        (Buffer, "int64"), (Scalar, "uint8"), (Scalar, "int8"), (Scalar, "uint16"), (Scalar, "int64"),
        (Scalar, "float16"), (Scalar, "uint16"), (Scalar, "float32"), (Scalar, "float64"),
        (type(None), None), (type(None), None),
    ]  # fmt: skip


def test_buffers_of_narrow_types_and_twice_the_same() -> None:
    x = wrap(np.ones(256, ml_dtypes.bfloat16))
    record = seen(scale, 1, x, x, 2.0, 256, BLOCK=256)
    assert record.arguments[:2] == (
        Buffer("bfloat16", (256,), "constant", {"value": 1.0}, (), "x"),
        SameAs(0, "z"),
    )


def test_of_large_float_buffers_the_beginning_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "SAMPLED", 100)
    floats, numbers = np.ones(256, np.float32), np.ones(256, np.int32)
    floats[200], numbers[200] = 7, 7
    first = seen(scale, 1, wrap(floats), wrap(numbers), 2.0, 256, BLOCK=256).arguments[:2]
    assert first[0] == Buffer("float32", (256,), "constant", {"value": 1.0}, (), "x")
    assert isinstance(first[1], Buffer)
    assert first[1].values == tuple(numbers.tolist()), "of integers nothing is left out"


def test_slices_and_tuples() -> None:
    storage = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    part, z = storage[2:6, 4:], torch.zeros(16)
    first = seen(strided, 1, part, z, 4, part.stride(0), COLUMNS=4).arguments[0]
    assert isinstance(first, Buffer)
    assert first.shape == (64 - 20,), "up to the end of the storage"
    both = seen(pair, 1, (z, z), 16, BLOCK=16).arguments[:2]
    assert both[1] == SameAs(0, "pointers[1]")


def test_a_launch_is_never_broken(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.root.write_text("a file, where a directory should be")
    cuasmrl.install("record", store=store)
    softmax_of(ROWS[:2].copy())
    assert (softmax_of(ROWS) >= 0).all()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("cuasmrl: launches of softmax are not recorded: ")


def test_a_launch_that_fails_is_not_recorded(store: Store) -> None:
    cuasmrl.install("record", store=store)
    x = wrap(np.zeros(128, np.float32))
    with pytest.raises(cuasmrl.CuasmrlError, match="out of bounds"):
        scale[(2,)](x, x, 2.0, 4096, BLOCK=128)
    assert not store.recorded()


def test_launchers_are_given_back(store: Store) -> None:
    cuasmrl.install("record", store=store)
    softmax_of(ROWS)
    kernel = compiled()
    assert kernel.run.signature, "what others ask the launcher for is still there"
    cuasmrl.uninstall()
    assert type(kernel.run).__module__ == "cuasmrl.gpu.virtual.driver"
    softmax_of(ROWS[:3].copy())
    assert len(records(store)) == 1
    # Kernels go when nobody needs them any more, without the garbage collector.
    gc.disable()
    try:
        cuasmrl.install("record", store=store)
        before = len(_kernels())
        kernels.forget()
        softmax_of(ROWS)
        del kernel
        kernels.forget()
        assert len(_kernels()) < before
    finally:
        gc.enable()


def _kernels() -> list[Any]:
    return [thing for thing in gc.get_objects() if type(thing) is triton.compiler.CompiledKernel]
