"""Weights of a policy on disk: the numbers in safetensors, and what they are made for beside them as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from cuasmrl.errors import CuasmrlError
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.jumps import JUMPS

DEFAULT = Path(__file__).parent / "data" / "pretrained.safetensors"
VERSION = 2


def save(path: Path, network: torch.nn.Module, width: int, about: dict[str, Any]) -> None:
    """Write the weights, and `about` with the sizes into a JSON file of the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, path)
    text = json.dumps(_interface(width) | about, indent=1)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def load(path: Path, network: torch.nn.Module, width: int) -> None:
    """Fill a network with weights; refuses those made for other observations or moves."""
    try:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        tensors = load_file(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise CuasmrlError(f"cannot read the weights {path} and the .json beside them: {error}") from error
    for key, value in _interface(width).items():
        if about.get(key) != value:
            raise CuasmrlError(
                f"the weights {path} are made for another {key} than this version of the game has; "
                "train new ones with `python -m cuasmrl.agents.pretraining`"
            )
    network.load_state_dict(tensors)


def _interface(width: int) -> dict[str, Any]:
    return {
        "version": VERSION,
        "width": width,
        "columns": list(COLUMNS),
        "jumps": [jump.name for jump in JUMPS],
    }
