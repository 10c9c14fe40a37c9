"""Recorded kernels are played on, and what is found goes into the store."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.deploy import recorded
from cuasmrl.deploy.deposit import deposit, with_other_kernels
from cuasmrl.deploy.recorded import Outcome, optimize_recorded
from cuasmrl.deploy.store import Entry, Store, code_key
from cuasmrl.deploy.store.proof import prove
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches import LaunchRecord, as_json, describe
from cuasmrl.optimize import Request, optimize, resume
from cuasmrl.schedule import Board
from tests.climbing import CONFIG, NAME, SIZES, kernel
from tests.conftest import CompileCuda
from tests.optimize.playing import Device, asking, device

__all__ = ["device"]
ASKED: dict[str, Any] = {"agent": "climber", "budget": 60, "min_gain": 0.0, "min_faster": 0.5}
ORIGIN = {"framework": "by hand", "device": "virtual:a100"}


def launch_record(**sizes: int) -> LaunchRecord:
    workload = workloads.get(NAME)
    built = workload.build(workload.config(CONFIG), 80, SIZES)
    chosen = {**SIZES, **sizes}
    return describe(workload.launch(built, workload.inputs(chosen), chosen), built.kernel)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def cubin() -> bytes:
    return kernel().cubin.data


def play(store: Store, tmp_path: Path, **changes: Any) -> list[Outcome]:
    return list(optimize_recorded(store, {**ASKED, **changes}, tmp_path / "runs"))


def test_a_kernel_with_two_launches(store: Store, cubin: bytes, tmp_path: Path, device: Device) -> None:
    small, large = launch_record(K=128), launch_record(M=256)
    again = replace(small, seed=7)
    store.record(cubin, [as_json(record) for record in (small, large, again)], ORIGIN)
    (outcome,) = play(store, tmp_path)
    assert outcome.problem is None
    assert outcome.found is not None
    assert (outcome.key, outcome.launches) == (code_key(cubin), 2), "other data is no news"
    subject = outcome.found.subject
    assert subject.kernel.sizes["blocks"] == 32, "played for the one with most blocks"
    assert len(subject.problems.shapes) == len(subject.problems.lengths) == 1
    (check,) = (check for check in outcome.found.verdict.checks if check.name == "other sizes")
    assert check.outcome == "passed"
    entry = store.find(outcome.key)
    assert entry is not None
    assert outcome.entry == entry
    assert entry.measurement["device"] == "virtual:a100"
    assert entry.measurement["unit"] == "modelled cycles"
    assert entry.measurement["optimised"] < entry.measurement["original"]
    assert entry.provenance["origin"] == ORIGIN
    assert entry.provenance["run"]["budget"] == 60
    assert not store.recorded()
    assert outcome.found.run.parent == tmp_path / "runs"
    assert outcome.as_dict()["stored"]


def test_a_run_with_several_launches_is_continued(
    store: Store, cubin: bytes, tmp_path: Path, device: Device
) -> None:
    seen = store.record(cubin, [as_json(launch_record(K=128)), as_json(launch_record())], ORIGIN)
    main, other = map(str, seen.launches)
    asked = Request(str(seen.cubin), launch=main, other_launches=(other,), **{**ASKED, "budget": 20})
    found = optimize(asked, tmp_path / "run")
    assert resume(tmp_path / "run").verdict == found.verdict
    Path(other).write_text(Path(other).read_text() + " ")
    with pytest.raises(CuasmrlError, match="was started with problem launch file"):
        resume(tmp_path / "run")


def test_every_kernel_of_a_cubin_is_played_on(
    compile_cuda: CompileCuda, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result for the first ends the waiting of all, but not before the last has had its turn."""
    results = {str(entry.measurement["kernel"]): entry for entry in two_kernels(compile_cuda)}
    launches = [{**as_json(launch_record()), "kernel": name} for name in results]
    store.record(next(iter(results.values())).original, launches, ORIGIN)

    def play_quickly(request: Request, run: Path, watch: object) -> str:
        assert request.launch is not None
        assert Path(request.launch).exists()
        assert Path(request.source).exists()
        return str(request.kernel)

    def shelve_quickly(found: str, store: Store, origin: object) -> Entry:
        store.keep(prove(results[found]))
        return results[found]

    monkeypatch.setattr(recorded, "optimize", play_quickly)
    monkeypatch.setattr(recorded, "shelve", shelve_quickly)
    assert {outcome.kernel for outcome in play(store, tmp_path)} == set(results)
    assert store.recorded() == []


def test_no_gain_stays_recorded(store: Store, cubin: bytes, tmp_path: Path, device: Device) -> None:
    store.record(cubin, [as_json(launch_record())], ORIGIN)
    (outcome,) = play(store, tmp_path, agent="idler")
    assert outcome.entry is None
    assert outcome.found is not None
    assert not outcome.found.verdict.accepted
    assert len(store.recorded()) == 1
    # The next attempt has a directory of its own.
    (second,) = play(store, tmp_path, agent="idler")
    assert second.found is not None
    assert second.found.run != outcome.found.run


def test_what_cannot_be_played_on(store: Store, cubin: bytes, tmp_path: Path, device: Device) -> None:
    seen = store.record(cubin, [], ORIGIN)
    (outcome,) = play(store, tmp_path)
    assert outcome.problem is not None
    assert outcome.problem.startswith("no launch of it was recorded; write a launch file and run")
    assert str(seen.cubin) in outcome.problem
    broken = as_json(launch_record())
    store.record(cubin, [{**broken, "arguments": broken["arguments"][:-1]}], ORIGIN)
    (outcome,) = play(store, tmp_path)
    assert outcome.problem is not None
    assert "arguments, but kernel" in outcome.problem
    assert not list(store.entries())
    assert len(store.recorded()) == 1


def test_where_it_is_played(store: Store, cubin: bytes, tmp_path: Path, device: Device) -> None:
    """Where it was seen; a device that is not here is no obstacle."""
    for origin, expected in (
        ({"device": "virtual:rtx4090"}, "virtual:rtx4090"),
        ({"device": "cuda:7"}, "virtual:a100"),
    ):
        store.record(cubin, [as_json(launch_record())], origin)
        (outcome,) = play(store, tmp_path, agent="idler")
        assert outcome.found is not None
        assert outcome.found.config.device == expected
        store.forget_recorded(outcome.key)


@pytest.mark.slow
def test_only_a_faster_one_replaces_a_result(
    store: Store, cubin: bytes, tmp_path: Path, device: Device
) -> None:
    few, many = (optimize(asking(budget=budget), tmp_path / str(budget)) for budget in (40, 120))
    assert few.verdict.after is not None
    assert many.verdict.after is not None
    assert few.verdict.after > many.verdict.after
    first = deposit(few, store)
    assert first is not None
    better = deposit(many, store)
    assert better is not None
    assert better.optimised != first.optimised
    assert deposit(few, store) == better == store.find(code_key(cubin))
    idle = optimize(asking(agent="idler"), tmp_path / "idle")
    assert deposit(idle, store) is None


def two_kernels(compile_cuda: CompileCuda) -> list[Entry]:
    """Results for each of the two kernels of one cubin."""
    source = "\n".join(
        f"""__global__ void {name}(float *out, const float *a) {{
            int i = threadIdx.x; float x = a[i], y = a[i + 64];
            out[i] = x * y + {number}.f; out[i + 64] = x - y; out[i + 128] = x + {number}.f; }}"""
        for number, name in enumerate(("first", "second"), 2)
    )
    original = Cubin.parse(compile_cuda(source, "sm_80"), "two kernels")
    entries = []
    for found in original.kernels:
        board = Board(disassemble_kernel(original, found.name))
        board.swap(board.legal_swaps()[0])
        measurement = {"kernel": found.name, "device": "virtual:a100", "unit": "cycles", "original": 2.0}
        measurement |= {"optimised": 1.0, "gain": 1.0, "interval": [0.0, 1.0]}
        entries.append(Entry.of(original.data, board.schedule().apply(original).data, measurement))
    return entries


def test_other_kernels_of_a_cubin_keep_their_results(compile_cuda: CompileCuda, store: Store) -> None:
    old, new = entries = two_kernels(compile_cuda)
    original = Cubin.parse(old.original, "two kernels")
    made = store.put(with_other_kernels(new, old))
    assert made.measurement == new.measurement
    assert made.provenance["other kernels"]["kernel"] == old.measurement["kernel"]
    for entry in entries:
        name = str(entry.measurement["kernel"])
        assert words(made, name) == words(entry, name) != original.kernel(name).words


def words(entry: Entry, name: str) -> tuple[bytes, ...]:
    return Cubin.parse(entry.optimised, "an entry").kernel(name).words
