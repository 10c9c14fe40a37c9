"""Stored code in place of compiled code, and every reason not to."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.checker import VERSION
from cuasmrl.deploy.store import Store, code_key, deploy
from cuasmrl.deploy.store.code import INFO, TEXT, is_idle, read_code
from cuasmrl.deploy.store.packing import DamagedError, UnusableError, unpack
from tests.conftest import CompileCuda
from tests.deploy.store.results import MEASUREMENT, compiled, entry, entry_of, rearranged, repacked, with_byte

HEAVY = (
    "numpy",
    "numba",
    "typer",
    "rich",
    "triton",
    "dataclasses",
    "inspect",
    "typing",
    "pathlib",
    "tempfile",
)
SOURCE = """
extern "C" __global__ void tile(float *x, const float *y, int n) {
    __shared__ float s[64];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 64) { s[threadIdx.x] = y[i] * 3 + x[i]; __syncthreads();
        sum += s[63 - threadIdx.x] * y[n - i]; __syncthreads(); }
    x[threadIdx.x] = sum;
}
extern "C" __global__ void add(float *x, const float *y) {
    int i = threadIdx.x; x[i] += y[i] * y[i + 64]; x[i + 128] = y[i] - y[i + 192]; }
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.keep(entry())
    return store


def place_of(store: Store, key: str) -> Path:
    return store.root / "objects" / key[:2] / key


def refuses(store: Store, words: str, cubin: bytes = b"") -> None:
    """The very same object comes back, with a reason."""
    given = cubin or compiled()
    deployment = deploy(given, store)
    assert deployment.cubin is given
    assert not deployment.used
    assert deployment.doubt
    assert words in deployment.reason


def refuses_file(store: Store, data: bytes, words: str) -> None:
    """A damaged entry is refused, set aside, and not met again."""
    place = place_of(store, entry().key)
    place.write_bytes(data)
    epoch = store.epoch
    refuses(store, words)
    assert not place.exists()
    assert store.epoch == "empty" != epoch
    (aside,) = [path for path in (store.root / "corrupt").iterdir() if path.suffix != ".reason"]
    assert aside.read_bytes() == data
    assert words in aside.with_name(f"{aside.name}.reason").read_text()
    again = deploy(compiled(), store)
    assert not again.doubt
    assert "nothing is stored" in again.reason


def test_stored_code_is_used(store: Store) -> None:
    deployment = deploy(compiled(), store)
    assert deployment.used
    assert not deployment.doubt
    assert deployment.cubin == entry().optimised
    assert code_key(deployment.cubin) == code_key(entry().optimised)


def test_other_code_is_the_same_object(store: Store) -> None:
    given = compiled("rmsnorm")
    deployment = deploy(given, store)
    assert deployment.cubin is given
    assert (deployment.used, deployment.doubt) == (False, False)
    assert "nothing is stored" in deployment.reason


def test_what_is_no_cubin_is_the_same_object(store: Store) -> None:
    for given in (b"", b"PTX", compiled()[:1000]):
        deployment = deploy(given, store)
        assert deployment.cubin is given
        assert not deployment.used
        assert "not a readable cubin" in deployment.reason


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_symbols_and_lines_are_those_of_the_compiler(
    compile_cuda: CompileCuda, arch: str, tmp_path: Path
) -> None:
    """Optimised before some lines were inserted above the kernel, deployed after."""
    before = compile_cuda(SOURCE, arch, "-lineinfo")
    after = compile_cuda("// new\n\n\n" + SOURCE, arch, "-lineinfo")
    assert before != after
    store = Store(tmp_path)
    stored = store.put(entry_of(before, rearranged(before)))
    deployment = deploy(after, store)
    assert deployment.used
    ours, theirs, optimised = Cubin.parse(deployment.cubin), Cubin.parse(after), Cubin.parse(stored.optimised)
    for section in theirs.sections:
        source = theirs if is_idle(section.name) else optimised
        wanted = source.section(section.name)
        assert wanted is not None
        assert ours.bytes_of(section) == source.bytes_of(wanted), section.name
    assert ours.sections == theirs.sections
    assert any(ours.bytes_of(s) != theirs.bytes_of(s) for s in ours.sections)


def test_any_damaged_byte_is_refused(store: Store) -> None:
    whole, rng = entry().packed(), random.Random(0)
    damaged = [with_byte(whole, at, 1 << rng.randrange(8)) for at in range(0, 300, 7)]
    damaged += [with_byte(whole, rng.randrange(len(whole)), 1 << rng.randrange(8)) for _ in range(150)]
    damaged += [whole[:length] for length in (0, 1, 100, len(whole) // 2, len(whole) - 1)]
    damaged += [whole + b"\0", whole[1:], bytes(len(whole))]
    for data in damaged:
        with pytest.raises((DamagedError, UnusableError)):
            unpack(data, entry().key)
    for data in damaged[::20]:
        place_of(store, entry().key).write_bytes(data)
        refuses(store, "")
    place_of(store, entry().key).write_bytes(whole)
    assert deploy(compiled(), store).used


def test_a_changed_cubin(store: Store) -> None:
    whole = entry().packed()
    refuses_file(store, with_byte(whole, len(whole) - 5000), "does not have the digest")


def test_a_changed_instruction_with_all_digests_made_right(store: Store) -> None:
    place, size = read_code(compiled()).sections[f"{TEXT}softmax"]
    changed = with_byte(entry().optimised, place + size // 2)
    refuses_file(store, repacked(entry(), optimised=changed), "has other instructions")


def test_an_instruction_twice_with_all_digests_made_right(store: Store) -> None:
    place, _ = read_code(compiled()).sections[f"{TEXT}softmax"]
    made = entry().optimised
    changed = made[: place + 16] + made[place : place + 16] + made[place + 32 :]
    refuses_file(store, repacked(entry(), optimised=changed), "has other instructions")


def test_a_byte_outside_the_code_with_all_digests_made_right(store: Store) -> None:
    place, _ = read_code(compiled()).sections[".nv.info"]
    changed = with_byte(entry().optimised, place + 8, 0x10)
    refuses_file(store, repacked(entry(), optimised=changed), "differs outside the code")


def test_a_record_of_another_instruction_with_all_digests_made_right(store: Store) -> None:
    place, _ = read_code(compiled()).sections[f"{INFO}softmax"]
    slot = next(iter(Cubin.parse(compiled()).kernel().record_offsets()))
    assert slot > place
    changed = with_byte(entry().optimised, slot, 0x20)
    refuses_file(store, repacked(entry(), optimised=changed), "names another instruction")


def test_a_record_that_is_no_offset(store: Store) -> None:
    place, _ = read_code(compiled()).sections[f"{INFO}softmax"]
    changed = with_byte(entry().optimised, place + 4, 0x01)
    refuses_file(store, repacked(entry(), optimised=changed), "names another instruction")


def test_a_longer_cubin(store: Store) -> None:
    refuses_file(store, repacked(entry(), optimised=entry().optimised + b"\0"), "another size")


def test_another_original(store: Store) -> None:
    changed = repacked(entry(), original=compiled("rmsnorm"))
    refuses_file(store, changed, "not the code it stands for")
    store.keep(entry())
    refuses_again = repacked(entry(), original=b"nothing")
    place_of(store, entry().key).write_bytes(refuses_again)
    refuses(store, "not a readable cubin")


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ({"candidate": "0" * 64}, "for another optimised cubin"),
        ({"original": "0" * 64}, "for another original"),
        ({"arch": 90}, "not one for sm_80"),
        ({"certified": False}, "not one for sm_80"),
        ({"certified": 1}, "not one for sm_80"),
        ({"kernels": []}, "does not speak of the kernels"),
        ({"kernels": "softmax"}, "does not speak of the kernels"),
        ({"kernels": ["other"]}, "does not speak of the kernels"),
    ],
)
def test_a_changed_certificate(store: Store, certificate: dict[str, object], words: str) -> None:
    refuses_file(store, repacked(entry(), certificate=certificate), words)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"arch": 90}, "does not speak of the sm_80 kernels"),
        ({"kernels": ["other"]}, "does not speak of the sm_80 kernels"),
        ({"key": "0" * 64}, "do not belong"),
    ],
)
def test_changed_facts(store: Store, facts: dict[str, Any], words: str) -> None:
    refuses_file(store, repacked(entry(), **facts), words)


def test_swapped_entries(store: Store) -> None:
    other = entry("rmsnorm")
    store.keep(other)
    one, two = place_of(store, entry().key), place_of(store, other.key)
    one_bytes, two_bytes = one.read_bytes(), two.read_bytes()
    one.write_bytes(two_bytes)
    two.write_bytes(one_bytes)
    refuses(store, "do not belong")
    refuses(store, "do not belong", compiled("rmsnorm"))
    assert store.keys() == []


def test_an_entry_of_another_chip(store: Store) -> None:
    """Under the key of the same kernel for another chip, even with facts that say so."""
    given = compiled("softmax", 90)
    key = code_key(given)
    place_of(store, key).parent.mkdir(exist_ok=True)
    place_of(store, key).write_bytes(repacked(entry(), key=key, arch=90, certificate={"arch": 90}))
    refuses(store, "not the code it stands for", given)


@pytest.mark.parametrize("version", ["0", "later", ""])
def test_rules_of_another_version(store: Store, version: str) -> None:
    """Not damaged: it can be proved again, so it stays where it is."""
    place = place_of(store, entry().key)
    place.write_bytes(repacked(entry(), certificate={"checker": version}))
    refuses(store, f"proved by rules {version}, but those of today are {VERSION}; run `cuasmrl store verify`")
    assert place.exists()


def test_a_newer_schema(store: Store) -> None:
    place = place_of(store, entry().key)
    place.write_bytes(place.read_bytes().replace(b"cuasmrl-entry 1 ", b"cuasmrl-entry 7 ", 1))
    refuses(store, "it has schema 7, but this version of cuasmrl reads 1; update cuasmrl")
    assert place.exists()
    assert store.find(entry().key) is None


def test_a_damaged_entry_is_reported_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    place_of(store, entry().key).write_bytes(b"rubbish")
    assert store.find(entry().key) is None
    assert store.find(entry().key) is None
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "is damaged: it does not begin like an entry; it is now in" in printed


@pytest.mark.parametrize(
    "facts",
    [
        {"measurement": "none"},
        {"measurement": {}},
        {"provenance": 3},
        {"measurement": {**MEASUREMENT, "interval": [1]}},
    ],
)
def test_facts_for_people_that_no_one_could_read(store: Store, facts: dict[str, Any]) -> None:
    """The code is proved and could be used, but who lists the store is not to stumble over it."""
    place_of(store, entry().key).write_bytes(repacked(entry(), **facts))
    assert list(store.entries()) == []
    assert store.keys() == []


def test_a_newer_result_is_not_set_aside_for_an_older_one(store: Store) -> None:
    from cuasmrl.deploy.store.change import set_aside

    assert set_aside(store.shelf, entry().key, b"what was read before", "damaged") is None
    assert deploy(compiled(), store).used


def test_nothing_can_be_raised(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("for no good reason")

    for name in ("unpack", "check_contract", "substituted", "read_code"):
        with monkeypatch.context() as patch:
            patch.setattr(f"cuasmrl.deploy.store.deployment.{name}", fail)
            given = compiled()
            deployment = deploy(given, store)
            assert deployment.cubin is given
            assert "for no good reason" in deployment.reason
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    for root in (blocked, Path("/dev/null"), Path("/proc/self/mem")):
        deployment = deploy(compiled(), Store(root))
        assert deployment.cubin is compiled()
        assert not deployment.used


def test_a_folder_in_place_of_an_entry(store: Store) -> None:
    place = place_of(store, entry().key)
    place.unlink()
    place.mkdir()
    refuses(store, "Is a directory")


def test_a_lookup_takes_few_milliseconds(store: Store) -> None:
    workload = compiled("fused_ff")
    store.put(entry_of(workload, rearranged(workload)))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        assert deploy(workload, store).used
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005


def test_deploying_imports_little() -> None:
    code = (
        "import sys; before = set(sys.modules); from cuasmrl.deploy.store import Store; Store().epoch; "
        f"print([name for name in {HEAVY!r} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
