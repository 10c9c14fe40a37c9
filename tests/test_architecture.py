"""The layers of docs/architecture.md: a layer imports only what stands before it, the checker even less."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cuasmrl"
LAYERS = (
    "errors", "files", "compiled", "launch", "chips", "cubin", "sass", "store", "schedule",
    "lint", "emulator", "timing", "virtual", "launches", "workloads", "emulate", "simulate", "traced",
    "report", "comparison", "devices", "game", "agents", "runs", "gate", "optimize", "integrations",
    "explanation", "demo", "bench", "tables", "cli",
)  # fmt: skip
CHECKER_MAY_USE = {"errors", "cubin", "sass", "checker"}


def imports(path: Path) -> set[str]:
    """Top-level parts of cuasmrl that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [node.module or ""]
            if node.module == "cuasmrl":
                names = [f"cuasmrl.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("cuasmrl.")}
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_earlier_ones(layer: str) -> None:
    place = SOURCE / layer
    files = sorted(place.rglob("*.py")) if place.is_dir() else [SOURCE / f"{layer}.py"]
    assert files
    allowed = set(LAYERS[: LAYERS.index(layer) + 1])
    if layer in ("store", "devices", "runs", "gate", "integrations", "demo", "bench", "cli"):
        allowed |= {"checker", "__version__"}
    for path in files:
        assert imports(path) <= allowed, path


def test_the_checker_shares_nothing_with_the_optimiser() -> None:
    for path in sorted((SOURCE / "checker").rglob("*.py")):
        assert imports(path) <= CHECKER_MAY_USE, path
