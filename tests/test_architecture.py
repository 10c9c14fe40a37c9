"""The rooms of docs/architecture.md: each imports only what stands before it, the checker even less."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cuasmrl"
LAYERS = (
    "errors", "files", "markup", "compiled",
    "binary.cubin", "binary.sass",
    "schedule",
    "checker",
    "gpu.launches", "gpu.chips", "gpu.emulator", "gpu.timing", "gpu.profile", "gpu.traced", "gpu.simulation",
    "gpu.virtual",
    "gpu.devices",
    "workloads",
    "game",
    "agents",
    "optimize.runs", "optimize.gate", "optimize",
    "deploy.store", "deploy.deposit", "deploy.recorded", "deploy.fleet",
    "deploy.triton", "deploy.shim", "deploy.doctor",
    "explain.waits", "explain.comparison", "explain.moves", "explain.report", "explain.play",
    "bench",
    "cli",
)  # fmt: skip
CHECKER_MAY_USE = {"errors", "binary.cubin", "binary.sass", "checker"}
MOST_NAMES = 16
"""At the top of the package, so that a reader sees the way of the data."""


def layer_of(module: str) -> str:
    """The innermost layer that a module of cuasmrl belongs to."""
    found = [layer for layer in LAYERS if module == layer or module.startswith(f"{layer}.")]
    assert found, f"{module} belongs to no layer; docs/architecture.md says where things go"
    return max(found, key=len)


def imports(path: Path) -> set[str]:
    """Layers that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if _is_room(module) else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.removeprefix("cuasmrl.") for name in names if name.startswith("cuasmrl.")}
    return {layer_of(module) for module in found - {"__version__"}}


def _is_room(module: str) -> bool:
    """cuasmrl itself, or a room that only holds others: what is imported from it is a module."""
    return module in ("cuasmrl", "cuasmrl.binary", "cuasmrl.gpu", "cuasmrl.deploy", "cuasmrl.explain")


def modules() -> list[tuple[str, Path]]:
    """All of the package, but for the files that only say what a room is for."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name and not _is_room(f"cuasmrl.{name}"):
            found.append((name, path))
    return found


@pytest.mark.parametrize(("module", "path"), [pytest.param(*each, id=each[0]) for each in modules()])
def test_a_layer_imports_only_earlier_ones(module: str, path: Path) -> None:
    layer = layer_of(module)
    assert imports(path) <= set(LAYERS[: LAYERS.index(layer) + 1])
    if layer == "checker":
        assert imports(path) <= CHECKER_MAY_USE


def test_the_top_of_the_package_shows_the_way_of_the_data() -> None:
    names = {path.name for path in SOURCE.iterdir()} - {"__init__.py", "py.typed", "__pycache__"}
    assert len(names) <= MOST_NAMES, sorted(names)


@pytest.mark.parametrize("folder", ["tests", "docs"])
def test_tests_and_docs_have_the_same_rooms(folder: str) -> None:
    rooms = {layer.partition(".")[0] for layer in LAYERS} - {"errors", "files", "markup", "compiled"}
    place = SOURCE.parents[1] / folder
    for room in place.iterdir():
        if room.is_dir() and room.name not in ("__pycache__", "pictures", "site"):
            assert room.name in rooms, room
