"""A certificate counts as long as the rules it was proved by are those of today."""

from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.checker import VERSION, Checker
from cuasmrl.deploy.store import Store, deploy
from tests.deploy.store.results import compiled, entry, repacked

EARLIER = [str(number) for number in range(1, int(VERSION))]


def test_a_certificate_carries_the_version_of_the_rules() -> None:
    cubin = Cubin.parse(compiled())
    assert Checker(cubin).check(cubin).checker == VERSION


@pytest.mark.parametrize("version", EARLIER)
def test_the_store_uses_nothing_that_earlier_rules_certified(tmp_path: Path, version: str) -> None:
    """They let more through. Proved again, the same entry is used."""
    store, made = Store(tmp_path / "store"), entry()
    store.keep(made)
    assert deploy(compiled(), store).used
    place = store.root / "objects" / made.key[:2] / made.key
    place.write_bytes(repacked(made, certificate={"checker": version}))
    deployment = deploy(compiled(), store)
    assert not deployment.used
    assert deployment.cubin == compiled()
    assert f"proved by rules {version}, but those of today are {VERSION}" in deployment.reason
