"""A shim that is killed at any moment leaves ptxas's output or the store's, and nothing in between."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.deploy.store import Store
from tests.deploy.shim.conftest import put

ROUNDS = 400


@pytest.mark.slow
def test_killed_at_random_moments(
    tmp_path: Path,
    store: Store,
    cubin: bytes,
    fake_tool: Callable[[str], Path],
    make_shim: Callable[..., Path],
) -> None:
    better = put(store, cubin)
    (tmp_path / "made").write_bytes(cubin)
    output = tmp_path / "out.cubin"
    # In the place of a ptxas that is never half done, so that whatever is half done is ours.
    shim = make_shim(fake_tool(f"cp {tmp_path}/made {tmp_path}/new && mv {tmp_path}/new {output}"))
    command = [str(shim), "-o", str(output)]
    start = time.monotonic()
    subprocess.run(command, check=True)
    whole = time.monotonic() - start
    rng, seen = random.Random(0), Counter[str]()
    for _ in range(ROUNDS):
        output.unlink(missing_ok=True)
        program = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 1.2 * whole))
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            seen["ended before"] += 1
        program.wait()
        found = output.read_bytes() if output.exists() else None
        assert found in (None, cubin, better)
        seen["nothing" if found is None else "compiled" if found == cubin else "stored"] += 1
    assert min(seen[name] for name in ("nothing", "compiled", "stored")) > 0, seen
    assert store.find(store.keys()[0]) is not None
    print(dict(seen))
