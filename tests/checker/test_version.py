"""A certificate counts as long as the rules it was proved by are those of today."""

from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import GUARD, File, file_of
from cuasmrl.checker import VERSION, Checker
from cuasmrl.deploy.store import Entry, Store, deploy
from cuasmrl.deploy.store.proof import prove
from tests.checker.conftest import Examined
from tests.checker.squeezing import squeezed
from tests.deploy.store.results import compiled, entry, entry_of, rearranged, repacked

EARLIER = [str(number) for number in range(1, int(VERSION))]
"""They let more through."""


def test_a_certificate_carries_the_version_of_the_rules() -> None:
    cubin = Cubin.parse(compiled())
    assert Checker(cubin).check(cubin).checker == VERSION
    assert EARLIER


def _stored(root: Path, made: Entry) -> tuple[Store, Path]:
    """A store with one entry, and the file that holds it."""
    store = Store(root / "store")
    store.keep(made)
    assert deploy(made.original, store).used
    return store, store.root / "objects" / made.key[:2] / made.key


@pytest.mark.parametrize("version", EARLIER)
def test_the_store_uses_nothing_that_earlier_rules_certified(tmp_path: Path, version: str) -> None:
    """Proved again, the same entry is used."""
    store, place = _stored(tmp_path, entry())
    place.write_bytes(repacked(entry(), certificate={"checker": version}))
    deployment = deploy(compiled(), store)
    assert not deployment.used
    assert deployment.cubin == compiled()
    assert f"proved by rules {version}, but those of today are {VERSION}" in deployment.reason
    store.verify()
    assert deploy(compiled(), store).used


def test_an_unsafe_schedule_with_a_certificate_by_earlier_rules_does_not_come_back(
    tmp_path: Path, examined: Examined
) -> None:
    """A vote reads its predicate too early, which those rules let through."""
    checker, subjects = examined("lanes", "sm_80")
    subject, original = subjects["votes"], checker.original.data
    votes = [
        found
        for found in subject.kept_by_time
        if subject.code[found.pair.consumer].opcode == "VOTE"
        and file_of(found.pair.register) is File.P
        and found.pair.consumer_role != GUARD
    ]
    too_close = (squeezed(subject, v.pair.producer, v.pair.consumer, v.needed - 1) for v in votes)
    unsafe = subject.build(controls=next(controls for controls in too_close if controls is not None)).data
    sound = prove(entry_of(original, rearranged(original)))
    store, place = _stored(tmp_path, sound)
    place.write_bytes(repacked(sound, certificate={"checker": EARLIER[-1]}, optimised=unsafe))
    assert not deploy(original, store).used
    store.verify()
    deployment = deploy(original, store)
    assert not deployment.used
    assert deployment.cubin == original
    assert not place.exists()
