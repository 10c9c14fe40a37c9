"""Changes happen whole or not at all: at every step the process may die or the disk may be full."""

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.deploy.store import EMPTY, Store, deploy
from cuasmrl.deploy.store.change import changing, set_aside
from cuasmrl.errors import CuasmrlError
from tests.deploy.store.faults import dies, disk_is_full, disk_is_read_only, fault
from tests.deploy.store.results import compiled, digest, entry

Doing = Callable[[Store], object]
State = dict[str, str]


def put_first(store: Store) -> None:
    store.keep(entry("rmsnorm"))


def put_again(store: Store) -> None:
    store.keep(entry(seed=1))


def remove(store: Store) -> None:
    store.remove(entry().key)


def put_aside(store: Store) -> None:
    data = store.shelf.read(entry().key)
    assert data is not None
    set_aside(store.shelf, entry().key, data, "for a test")


def ask_for_the_epoch(store: Store) -> None:
    """When somebody died before it was written."""
    assert store.epoch == store.shelf.worked_out_epoch()


CHANGES = (put_first, put_again, remove, put_aside, ask_for_the_epoch)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A store with one entry; whatever a test may put there is proved before anything can fail."""
    for proved in (entry(seed=1), entry(seed=2), entry("rmsnorm")):
        assert proved.certificates
    Store(tmp_path / "prepared").keep(entry(seed=0))
    return tmp_path / "prepared"


def state(store: Store) -> State:
    return {found.key: digest(found.optimised) for found in store.entries()}


def copied(prepared: Path, name: str, do: Doing | None = None) -> Store:
    target = prepared.parent / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(prepared, target)
    if do is ask_for_the_epoch:
        (target / "epoch").unlink()
    return Store(target)


def in_a_child(do: Doing, store: Store, fatal: int) -> None:
    """Do it in a process that is killed at that step."""
    child = os.fork()
    if not child:
        try:
            with fault(fatal, dies):
                do(store)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"step {fatal} was never reached"


def check(store: Store, allowed: list[State], capsys: pytest.CaptureFixture[str]) -> State:
    """Everything that is visible is whole and right, and the epoch is that of what is visible."""
    found = state(store)
    assert found in allowed
    assert store.epoch == store.shelf.worked_out_epoch() == Store(store.root).epoch
    assert (store.epoch == EMPTY) == (not found)
    for one in (entry(), entry("rmsnorm")):
        deployment = deploy(one.original, store)
        assert deployment.used == (one.key in found), deployment.reason
        assert not deployment.doubt
    assert capsys.readouterr().err == ""
    return found


def test_a_process_may_die_at_every_step(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(Store(prepared))
    for do in CHANGES:
        store = copied(prepared, "whole", do)
        with fault(None, dies) as counted:
            do(store)
        after = state(store)
        assert counted.done > 5
        seen = []
        for fatal in range(counted.done):
            store = copied(prepared, "killed", do)
            in_a_child(do, store, fatal)
            found = check(store, [before, after], capsys)
            seen.append(found)
            if fatal % 4 == 0:
                store.keep(entry(seed=2))
                assert os.listdir(store.root / "scratch") == []
                check(store, [{**found, entry().key: digest(entry(seed=2).optimised)}], capsys)
        if before != after:
            # Once it is there it stays there.
            assert seen == sorted(seen, key=lambda found: found == after)
            assert before in seen
            assert after in seen


@pytest.mark.parametrize("problem", [disk_is_full, disk_is_read_only])
def test_the_disk_may_be_full_at_every_step(
    prepared: Path, capsys: pytest.CaptureFixture[str], problem: Callable[[], None]
) -> None:
    before = state(Store(prepared))
    for do in CHANGES:
        store = copied(prepared, "whole", do)
        with fault(None, problem, writers_only=True) as counted:
            do(store)
        after = state(store)
        for fatal in range(counted.done):
            store, refused = copied(prepared, "full", do), ""
            with fault(fatal, problem, writers_only=True):
                try:
                    do(store)
                except CuasmrlError as error:
                    refused = str(error)
            found = check(store, [before, after], capsys)
            if refused:
                assert refused.startswith(f"cannot write to the store {store.root}: ")
                assert refused.endswith("CUASMRL_STORE")
            elif do in (put_first, put_again, remove):
                assert found == after
            if fatal % 4 == 0:
                store.keep(entry(seed=2))
                assert os.listdir(store.root / "scratch") == []


def test_a_disk_that_stays_full_costs_nothing_that_is_there(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From some step on nothing can be written any more: refused, or done but for the epoch."""
    before, refusals = state(Store(prepared)), list[str]()
    after = {**before, entry("rmsnorm").key: digest(entry("rmsnorm").optimised)}
    for first in range(16):
        store = copied(prepared, "full")
        with fault(first, disk_is_full, writers_only=True, forever=True):
            try:
                put_first(store)
            except CuasmrlError as error:
                refusals.append(str(error))
            check(store, [before, after], capsys)
        check(store, [before, after], capsys)
    assert 5 < len(refusals) < 16
    assert all("No space left on device; free some space" in sentence for sentence in refusals)


def test_an_import_that_is_killed_leaves_whole_entries(
    prepared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Store(prepared.parent / "source")
    for one in (entry(seed=1), entry("rmsnorm")):
        source.keep(one)
    source.export(prepared.parent / "both.tar")
    monkeypatch.setattr("cuasmrl.deploy.store.archive.prove", lambda given: given)

    def import_both(store: Store) -> None:
        store.import_(prepared.parent / "both.tar", replace=True)

    whole = copied(prepared, "whole")
    with fault(None, dies) as counted:
        import_both(whole)
    old, new = digest(entry(seed=0).optimised), digest(entry(seed=1).optimised)
    other = {entry("rmsnorm").key: digest(entry("rmsnorm").optimised)}
    allowed = [{entry().key: mine, **rest} for mine in (old, new) for rest in ({}, other)]
    for fatal in range(0, counted.done, 2):
        store = copied(prepared, "killed")
        in_a_child(import_both, store, fatal)
        check(store, allowed, capsys)


def test_a_dead_holder_does_not_keep_the_lock(prepared: Path) -> None:
    store = Store(prepared)
    child = os.fork()
    if not child:
        with changing(store.shelf):
            dies()
    os.waitpid(child, 0)
    put_first(store)
    assert len(store.keys()) == 2


def test_a_file_system_that_cannot_synchronise_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    store = Store(tmp_path / "deep" / "down")
    put_first(store)
    assert store.keys() == [entry("rmsnorm").key]


def test_a_file_system_without_locks(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(
        CuasmrlError, match="cannot be locked .*put it on another file system with CUASMRL_STORE"
    ):
        put_first(Store(prepared))
    assert deploy(compiled(), Store(prepared)).used


def test_a_holder_that_does_not_let_go_is_named(prepared: Path) -> None:
    store = Store(prepared)
    with (
        changing(store.shelf),
        pytest.raises(CuasmrlError, match="another process has held the store .* wait for it or end it"),
        changing(Store(prepared).shelf, patience=0.02),
    ):
        pass
    with changing(store.shelf):
        # Readers do not wait.
        assert store.find(entry().key) == entry()
        assert deploy(compiled(), store).used
        assert store.epoch == Store(prepared).epoch


def test_many_writers_at_once(tmp_path: Path) -> None:
    """Threads put, replace and remove; readers never see anything but whole entries."""
    store, failures = Store(tmp_path), list[str]()
    allowed = {entry(seed=seed).optimised for seed in range(3)}
    store.keep(entry(seed=0))

    def write(seed: int) -> None:
        mine = Store(tmp_path)
        for turn in range(8):
            mine.keep(entry(seed=(seed + turn) % 3))
            mine.keep(entry("rmsnorm"))
            mine.remove(entry("rmsnorm").key)

    def read() -> None:
        for _ in range(200):
            found = deploy(compiled(), store)
            if not found.used or found.cubin not in allowed:
                failures.append(found.reason)
            if deploy(compiled("rmsnorm"), store).doubt:
                failures.append("rmsnorm")

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(store.keys()) == 1
    assert store.epoch == store.shelf.worked_out_epoch()


def test_a_real_small_disk_and_a_real_read_only_one(tmp_path: Path) -> None:
    """A file system in memory, in a mount namespace of its own; where that is not allowed, not at all."""
    made = [entry(seed=0).packed(), entry(seed=1).packed(), entry("rmsnorm").packed()]
    for number, data in enumerate(made):
        (tmp_path / f"{number}.entry").write_bytes(data)
    (tmp_path / "disk").mkdir()
    size = len(made[0]) * 5 // 2
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import json, subprocess, sys
        from pathlib import Path
        from cuasmrl.errors import CuasmrlError
        from cuasmrl.deploy.store import Entry, Store, deploy
        from cuasmrl.deploy.store.packing import unpack
        folder = Path(sys.argv[1])
        one, again, other = (
            Entry.unpacked(unpack(data, json.loads(data.split(b"\\n", 2)[1])["key"]))
            for data in ((folder / f"{n}.entry").read_bytes() for n in range(3))
        )
        def attempt(do):
            try:
                do()
                return "done"
            except CuasmrlError as error:
                return str(error)
        store = Store(folder / "disk" / "store")
        print(attempt(lambda: store.keep(one)))
        epoch = store.epoch
        (folder / "disk" / "ballast").write_bytes(bytes(int(sys.argv[2])))
        print(attempt(lambda: store.keep(again)))
        print(attempt(lambda: store.keep(other)))
        print(deploy(one.original, store).cubin == one.optimised, store.epoch == epoch)
        (folder / "disk" / "ballast").unlink()
        print(attempt(lambda: store.keep(again)), deploy(one.original, store).cubin == again.optimised)
        subprocess.run(["mount", "-o", "remount,ro", folder / "disk"], check=True)
        print(attempt(lambda: store.keep(one)))
        print(attempt(lambda: store.remove(one.key)))
        print(deploy(one.original, store).cubin == again.optimised, store.epoch != epoch)
        """)
    )
    ballast = size - len(made[0]) * 3 // 2
    shell = (
        f"mount -t tmpfs -o size={size // 4096 * 4096} none {tmp_path}/disk || exit 77; "
        f"exec {sys.executable} {script} {tmp_path} {ballast}"
    )
    try:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", shell], capture_output=True, text=True, check=False, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "done"
    assert "No space left on device; free some space or set CUASMRL_STORE" in lines[1]
    assert "No space left on device; free some space or set CUASMRL_STORE" in lines[2]
    assert lines[3:5] == ["True True", "done True"]
    assert "Read-only file system; choose a writable place with CUASMRL_STORE" in lines[5]
    assert "Read-only file system; choose a writable place with CUASMRL_STORE" in lines[6]
    assert lines[7] == "True True"
