"""Other processes: they install as they import Triton, because their environment says so."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cuasmrl
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.bootstrap import CHIP, MODE, SITE, STORE, environment
from tests.deploy.triton.kernels import code, compiled, put_result

ROOT = Path(__file__).parents[3]
TELL = """
import json, sys
from cuasmrl.deploy.triton import installation
found = installation()
driver = sys.modules["triton"].runtime.driver._active
print(json.dumps({
    "mode": found and found.mode, "store": found and str(found.store.root),
    "chip": driver and driver.chip.key, "loader": type(sys.modules["triton"].__loader__).__name__,
}))
"""


def child(code: str, changes: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env={**os.environ, **changes}, cwd=ROOT, capture_output=True, text=True, check=True
    )


def told(code: str, changes: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(child(code, changes).stdout.splitlines()[-1])
    return found


def test_variables(tmp_path: Path) -> None:
    base = {"PYTHONPATH": os.pathsep.join(["/mine", SITE, "/other"])}
    found = environment("record", tmp_path, base, "h100")
    assert found == {
        MODE: "record", CHIP: "h100", STORE: str(tmp_path),
        "PYTHONPATH": os.pathsep.join([SITE, "/mine", "/other"]),
    }  # fmt: skip
    assert environment(None, tmp_path, {}) == {STORE: str(tmp_path), "PYTHONPATH": SITE}


def test_mode_chip_and_store(store: Store) -> None:
    changes = environment("record", store.root, os.environ, "h100")
    assert told("import triton\n" + TELL, changes) == {
        "mode": "record", "store": str(store.root), "chip": "h100", "loader": "SourceFileLoader",
    }  # fmt: skip


def test_a_process_without_triton_loads_nothing_of_us(store: Store) -> None:
    changes = environment("deploy", store.root, os.environ)
    modules = "import sys; print(sorted(name for name in sys.modules if name.startswith('cuasmrl')))"
    found = child(modules, changes).stdout
    assert "cuasmrl.deploy.triton.bootstrap" in found
    assert "activation" not in found
    assert "store" not in found


def test_deploying_imports_nothing_large(store: Store) -> None:
    """Every process that imports Triton pays for it."""
    changes = environment("deploy", store.root, os.environ)
    before = "import triton, sys; print(sorted(n for n in sys.modules if '.' not in n))"
    plain = set(eval(child(before, {}).stdout))
    more = set(eval(child(before, changes).stdout)) - plain
    assert not more & {"numpy", "numba", "rich", "typer", "torch"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({MODE: "faster"}, "there is no mode 'faster'"),
        ({CHIP: "b9"}, "There is no chip 'b9'"),
    ],
)
def test_bad_settings_do_not_stop_a_program(changes: dict[str, str], sentence: str, store: Store) -> None:
    done = child("import triton; print('on')", {**environment(None, store.root, os.environ), **changes})
    assert done.stdout == "on\n"
    assert done.stderr.startswith("cuasmrl: not active in process ")
    assert sentence in done.stderr


def test_the_sitecustomize_of_others_runs_too(tmp_path: Path, store: Store) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.theirs = 'theirs ran'\n")
    base = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = child(
        "import sitecustomize; print(theirs, sitecustomize.__file__)", environment("deploy", store.root, base)
    )
    assert done.stdout.split() == ["theirs", "ran", str(tmp_path / "sitecustomize.py")]


def test_children_of_a_process_that_installs(store: Store) -> None:
    """So it is with the workers of torch.compile, which compile for it."""
    put_result(store, compiled().asm["cubin"])
    before = dict(os.environ)
    cuasmrl.install(store=store)
    script = """
import sys
import cuasmrl.gpu.virtual
from tests.deploy.triton.kernels import compiled
with cuasmrl.gpu.virtual.active("a100"):
    sys.stdout.buffer.write(compiled().asm["cubin"])
"""
    made = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True).stdout
    (entry,) = store.entries()
    assert code(made) == code(entry.optimised)
    assert os.environ["TORCH_COMPILE_CACHE_KEY_TAG"] == f"cuasmrl-{store.epoch}"
    cuasmrl.uninstall()
    assert dict(os.environ) == before
