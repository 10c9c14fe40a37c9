"""Real results to store: kernels of workloads, rearranged by legal moves and proved by the checker."""

import hashlib
import random
from dataclasses import replace
from functools import lru_cache
from typing import Any

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble
from cuasmrl.deploy.store import Entry
from cuasmrl.deploy.store.packing import pack
from cuasmrl.deploy.store.proof import prove
from cuasmrl.schedule import Board
from tests.schedule.campaign import random_move

MEASUREMENT = {
    "device": "cuda:0", "unit": "microseconds", "original": 1000.0, "optimised": 950.0, "gain": 0.05,
    "interval": [0.01, 0.09], "gpu": {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"},
}  # fmt: skip
MODELLED = {
    "device": "virtual:a100", "unit": "modelled cycles", "original": 1000.0, "optimised": 900.0, "gain": 0.05,
    "interval": [0.01, 0.09],
}  # fmt: skip


@lru_cache
def compiled(name: str = "softmax", arch: int = 80) -> bytes:
    workload = workloads.get(name)
    return workload.build(workload.configs[0], arch).cubin


@lru_cache
def rearranged(original: bytes, seed: int = 0, tries: int = 40) -> bytes:
    cubin, rng = Cubin.parse(original), random.Random(seed)
    for listing in disassemble(cubin).values():
        board = Board(listing)
        for _ in range(tries):
            random_move(board, rng)
        cubin = board.schedule().apply(cubin)
    assert cubin.data != original
    return cubin.data


def entry_of(original: bytes, optimised: bytes, cycles: float = 950.0) -> Entry:
    """Not proved."""
    return Entry.of(original, optimised, {**MEASUREMENT, "optimised": cycles}, {"agent": "greedy", "seed": 0})


@lru_cache
def entry(name: str = "softmax", arch: int = 80, seed: int = 0) -> Entry:
    """Proved."""
    original = compiled(name, arch)
    return prove(entry_of(original, rearranged(original, seed), 900.0 + seed))


def repacked(made: Entry, certificate: dict[str, Any] | None = None, **changes: Any) -> bytes:
    """The file of an entry with other facts or cubins, in which a careful hand has made all digests right."""
    original, optimised = changes.pop("original", made.original), changes.pop("optimised", made.optimised)
    facts = {**made.facts(), **changes}
    digests = {"original": digest(original), "candidate": digest(optimised)}
    return pack(
        {**facts, "certificate": facts["certificate"] | digests | (certificate or {})}, original, optimised
    )


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def with_byte(data: bytes, place: int, change: int = 1) -> bytes:
    return data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]


def unproved(made: Entry) -> Entry:
    return replace(made, certificates={})


def exchanged(cubin: bytes) -> bytes:
    """Two instructions far from each other in each other's place, which no legal schedule can have."""
    kernel = Cubin.parse(cubin).kernel()
    words = list(kernel.words)
    words[3], words[40] = words[40], words[3]
    start, size = kernel.text.offset, kernel.text.size
    return cubin[:start] + b"".join(words) + cubin[start + size :]
