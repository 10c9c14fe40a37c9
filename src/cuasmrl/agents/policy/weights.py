"""Weights of a policy on disk: the numbers in safetensors, and what they are made for beside them as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from cuasmrl.agents.policy.observation import pairs, rows
from cuasmrl.errors import CuasmrlError

Tensors: TypeAlias = Mapping[str, npt.NDArray[np.float32]]

DEFAULT = Path(__file__).parent / "data" / "policy.safetensors"
VERSION = 1
"""Of what columns mean: another number where one of them is filled in another way."""
MOVES = ("drag",)


def interface() -> dict[str, Any]:
    """What weights are made for: they fit nothing else."""
    return {
        "version": VERSION,
        "moves": list(MOVES),
        "columns of instructions": list(rows.COLUMNS),
        "columns of moves": list(pairs.COLUMNS),
    }


def save(path: Path, tensors: Tensors, about: Mapping[str, Any]) -> None:
    """Write the weights, and `about` with what they are made for into a JSON file of the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, path)
    text = json.dumps({**interface(), **about}, indent=1)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """The weights, and what is said about them; refuses those made for other observations or moves."""
    try:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        tensors = load_file(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise CuasmrlError(f"cannot read the weights {path} and the .json beside them: {error}") from error
    for key, value in interface().items():
        if about.get(key) != value:
            raise CuasmrlError(
                f"the weights {path} are made for another {key.replace('columns', 'set of columns')} than "
                "this version has; train new ones with `cuasmrl train`"
            )
    return tensors, about
