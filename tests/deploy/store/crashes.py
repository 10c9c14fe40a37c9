"""Processes that use one store at once and are killed at random points, and what must hold when all are dead.

Each writer has a kernel of its own and shares others. In a journal it notes what it begins and what it has
ended. Whatever has ended must be there; whatever was under way may be there or not, but never by half.
"""

import hashlib
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuasmrl.deploy.store import EMPTY, Entry, Store, code_key, deploy

ABSENT = -1
LONGEST_LIFE = 0.05
"""Seconds; an operation takes about a tenth of that."""
LAUNCH = {"format": 1, "grid": [1], "block": [128], "arguments": []}


@dataclass(frozen=True)
class Operation:
    kind: str
    kernel: int
    variant: int
    ended: bool


@dataclass
class Tally:
    kills: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    """Ended ones."""
    interrupted: Counter[str] = field(default_factory=Counter)
    took_effect: Counter[str] = field(default_factory=Counter)
    """Of the interrupted ones."""
    without_epoch: int = 0
    with_leftovers: int = 0


class Campaign:
    """`kernels[k]` are proved variants of one kernel. Kernel 0 is shared and never removed, kernel 1 shared,
    and each further one belongs to one writer; one more process only reads."""

    def __init__(self, folder: Path, kernels: Sequence[Sequence[Entry]], seed: int) -> None:
        self.kernels = kernels
        self.writers = len(kernels) - 2
        self.folder = folder
        self.store = Store(folder / "store")
        self.tally = Tally()
        self._rng = random.Random(seed)
        self._state = [ABSENT] * len(kernels)

    def run(self, kills: int) -> None:
        while self.tally.kills < kills:
            self.round()

    def round(self) -> None:
        """All processes start, all are killed, everything is examined."""
        seeds = [self._rng.random() for _ in range(self.writers + 1)]
        children = [self._start(slot, seed) for slot, seed in enumerate(seeds)]
        moments = sorted((self._rng.random() * LONGEST_LIFE, child) for child in children)
        born = time.monotonic()
        for moment, child in moments:
            time.sleep(max(0.0, born + moment - time.monotonic()))
            os.kill(child, signal.SIGKILL)
        for child in children:
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), (self.folder / "trouble").read_text()
            self.tally.kills += 1
        self._examine([self._journal(slot) for slot in range(self.writers + 1)])

    def _start(self, slot: int, seed: float) -> int:
        journal = self.folder / f"journal-{slot}"
        journal.write_bytes(b"")
        child = os.fork()
        if child:
            return child
        try:
            handle = os.open(journal, os.O_WRONLY | os.O_APPEND)
            _Worker(self, slot, handle, random.Random(seed)).work()
        except BaseException:
            (self.folder / "trouble").write_text(traceback.format_exc())
        finally:
            os._exit(3)

    def _journal(self, slot: int) -> list[Operation]:
        found: list[Operation] = []
        # A line that was being written when its process died is not ended by a newline.
        for line in (self.folder / f"journal-{slot}").read_text().split("\n")[:-1]:
            what, kind, kernel, variant = line.split(" ")
            assert what in ("begin", "end"), f"a process saw something wrong: {line}"
            if what == "end":
                found.pop()
            found.append(Operation(kind, int(kernel), int(variant), what == "end"))
        return found

    def _examine(self, journals: list[list[Operation]]) -> None:
        for journal in journals:
            self.tally.operations.update(operation.kind for operation in journal if operation.ended)
            self.tally.interrupted.update(operation.kind for operation in journal if not operation.ended)
        root = self.store.root
        self.tally.with_leftovers += bool((root / "scratch").is_dir() and os.listdir(root / "scratch"))
        self.tally.without_epoch += not (root / "epoch").exists() and (root / "objects").exists()
        assert not (root / "corrupt").exists()
        for kernel in range(len(self.kernels)):
            self._examine_kernel(kernel, journals)
        self._examine_epoch()
        for waiting in self.store.recorded():
            assert code_key(waiting.cubin.read_bytes()) == waiting.key

    def _examine_kernel(self, kernel: int, journals: list[list[Operation]]) -> None:
        """What lies there is whole, and the last that somebody did to it."""
        allowed, untouched, under_way = set[int](), True, set[tuple[str, int]]()
        for journal in journals:
            mine = [op for op in journal if op.kernel == kernel and op.kind in ("put", "remove")]
            for operation in mine[-2:]:
                if operation.ended:
                    untouched = False
                else:
                    under_way.add((operation.kind, operation.variant))
            # Only the last ended one of each process can be the last of all, or the one after it.
            ended = [op.variant for op in mine if op.ended]
            allowed |= {*ended[-1:], *(op.variant for op in mine if not op.ended)}
        if untouched:
            allowed.add(self._state[kernel])
        found = self._visible(kernel)
        assert found in allowed, f"kernel {kernel} is {found}, not one of {allowed}"
        for kind, variant in under_way:
            self.tally.took_effect[kind] += variant == found != self._state[kernel]
        self._state[kernel] = found

    def _visible(self, kernel: int) -> int:
        variants = self.kernels[kernel]
        entry, deployment = self.store.examined(variants[0].key), deploy(variants[0].original, self.store)
        assert deployment.used == (entry is not None)
        assert not deployment.doubt, deployment.reason
        if entry is None:
            return ABSENT
        assert deployment.cubin == entry.optimised
        return variants.index(entry)

    def _examine_epoch(self) -> None:
        visible = [
            f"{variants[0].key} {hashlib.sha256(_content(variants[found])).hexdigest()}\n"
            for found, variants in zip(self._state, self.kernels, strict=True)
            if found != ABSENT
        ]
        expected = hashlib.sha256("".join(sorted(visible)).encode()).hexdigest()[:32] if visible else EMPTY
        file = self.store.root / "epoch"
        assert not file.exists() or file.read_text().split()[1] == expected, "an epoch is out of date"
        # In half of the rounds the next process finds it as it was left.
        if self._rng.random() < 0.5:
            assert self.store.epoch == expected


def _content(entry: Entry) -> bytes:
    """All but the first line."""
    return entry.packed().partition(b"\n")[2]


class _Worker:
    def __init__(self, campaign: Campaign, slot: int, journal: int, rng: random.Random) -> None:
        self._kernels = campaign.kernels
        self._store = Store(campaign.store.root)
        self._reads_only = slot == campaign.writers
        self._own = slot + 2
        self._journal = journal
        self._rng = rng
        self._always_there = campaign._state[0] != ABSENT

    def work(self) -> None:
        while True:
            kinds = (
                ("get", "epoch")
                if self._reads_only
                else ("put", "put", "put", "remove", "get", "epoch", "note")
            )
            kind = self._rng.choice(kinds)
            kernel = self._rng.choice((0, 1, self._own)) if not self._reads_only else self._rng.randrange(2)
            if kind == "remove" and kernel == 0:
                kind = "put"
            variant = self._rng.randrange(len(self._kernels[kernel])) if kind == "put" else ABSENT
            self._note(f"begin {kind} {kernel} {variant}")
            problem = self._do(kind, kernel, variant)
            self._note(f"{problem or 'end'} {kind} {kernel} {variant}")

    def _do(self, kind: str, kernel: int, variant: int) -> str:
        variants = self._kernels[kernel]
        match kind:
            case "put":
                self._store.keep(variants[variant])
            case "remove":
                self._store.remove(variants[0].key)
            case "get":
                return self._read(kernel)
            case "epoch":
                return "" if len(self._store.epoch) in (5, 32) else "epoch"
            case "note":
                self._store.record(variants[0].original, [LAUNCH], {"by": "a campaign"})
                if self._rng.random() < 0.5:
                    self._store.forget_recorded(variants[0].key)
        return ""

    def _read(self, kernel: int) -> str:
        variants = self._kernels[kernel]
        deployment = deploy(variants[0].original, self._store)
        if deployment.doubt or (kernel == 0 and self._always_there and not deployment.used):
            return "lost"
        if deployment.used and deployment.cubin not in [variant.optimised for variant in variants]:
            return "wrong"
        found = self._store.examined(variants[0].key)
        return "" if found is None or found in variants else "half"

    def _note(self, line: str) -> None:
        os.write(self._journal, f"{line}\n".encode())
