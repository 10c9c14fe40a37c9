"""Play in the process that launches: after the first launch of a kernel, as an autotuner would."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from cuasmrl.deploy.recorded import play_on
from cuasmrl.deploy.triton.launches import Seen
from cuasmrl.deploy.triton.recording import Recorder
from cuasmrl.gpu.launches import LaunchRecord


class Player:
    """Uses what the store has, records the rest, and plays on each new kernel once."""

    def __init__(self, recorder: Recorder, **settings: Any) -> None:
        """`settings` are fields of a `Request`: agent, budget."""
        self._recorder = recorder
        self._settings = settings
        self._played: set[str] = set()

    def loading(self, kernel: Any) -> bool:
        return not self._swap(kernel) and self._recorder.loading(kernel)

    def before(self, seen: Seen) -> LaunchRecord | None:
        return self._recorder.before(seen)

    def after(self, seen: Seen, note: LaunchRecord) -> None:
        recorded = self._recorder.after(seen, note)
        if recorded.key in self._played:
            return
        self._played.add(recorded.key)
        name = seen.kernel.name
        print(f"cuasmrl: playing on {name}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="cuasmrl-runs-") as place:
            for outcome in play_on(recorded, self._recorder.store, self._settings, Path(place)):
                said = outcome.found.verdict.sentence if outcome.found else outcome.problem
                print(f"cuasmrl: {name}: {said}", file=sys.stderr)
        if self._swap(seen.kernel):
            # Loaded anew at the next launch. The old one stays loaded: somebody may hold its handle.
            seen.kernel.module = seen.kernel.function = seen.kernel._run = None

    def _swap(self, kernel: Any) -> bool:
        """In memory only, so that Triton's caches keep the original under the original's key."""
        found = self._recorder.lookup.deploy(kernel.asm["cubin"], kernel.name)
        if found.used:
            kernel.kernel = kernel.asm["cubin"] = found.cubin
            kernel.asm.pop("sass", None)
        return found.used
