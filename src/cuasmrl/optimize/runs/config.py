"""What a run was asked for: everything that decides its outcome."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from cuasmrl import __version__
from cuasmrl.binary.sass import find_nvdisasm
from cuasmrl.errors import CuasmrlError

FORMAT = 1
_DECISIVE = {
    "version": "version",
    "kernel": "kernel",
    "cubin": "a cubin of sha256",
    "problem": "problem",
    "device": "device",
    "agent": "agent",
    "settings": "the agent's settings",
    "budget": "budget",
    "seed": "seed",
    "scoreboards": "scoreboards",
    "l2": "the L2 cache",
    "objective": "the objective",
}
"""What must not change while a run goes on; where the input lies on disk may."""


@dataclass(frozen=True)
class RunConfig:
    source: Mapping[str, Any]
    """The input as given: a workload with config and sizes, or a cubin with its launch file."""
    kernel: str
    cubin: str
    """sha256 of the original."""
    problem: str
    """What the kernel is launched on: the sizes of a workload, the digest of a launch file."""
    device: str
    agent: str
    settings: Mapping[str, Any]
    """Of the agent."""
    budget: int
    seed: int
    versions: Mapping[str, str]
    scoreboards: str = "kept"
    """Whether moves keep the compiler's: `kept`, or `reassigned`."""
    l2: str = "warm"
    """What the virtual GPU's L2 cache holds when the kernel starts: `warm`, as in older runs, or `cold`."""
    objective: str = "nominal"
    """What the virtual GPU scored schedules by: `nominal`, as in older runs, or `robust`."""
    min_faster: float = 42 / 48
    min_gain: float = 0.005
    """What a modelled gain has to reach; may be asked for anew when a run goes on."""
    format: int = FORMAT

    def as_dict(self) -> dict[str, Any]:
        """As JSON gives it back."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return data

    @staticmethod
    def parse(data: Any, where: str) -> RunConfig:
        try:
            config = RunConfig(**data)
        except TypeError as error:
            raise CuasmrlError(f"{where} is not the config of a run: {error}") from None
        if config.format != FORMAT:
            raise CuasmrlError(
                f"{where} has format {config.format}, this version reads {FORMAT}; "
                "use the version that wrote it"
            )
        return config

    def difference(self, other: RunConfig) -> str | None:
        """The first thing in which another run would not be this one, in words."""
        mine, theirs = self.as_dict(), other.as_dict()
        for one in (mine, theirs):
            one["version"] = one["versions"].get("cuasmrl")
        for name, what in _DECISIVE.items():
            if mine[name] != theirs[name]:
                return f"{what} {_shown(mine[name])}, not {_shown(theirs[name])}"
        return None


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name}={_shown(entry)}" for name, entry in value.items()) + ")"
    return str(value)


def versions(compiler: str | None = None) -> dict[str, str]:
    """Of everything whose change could change a run."""
    found = {"cuasmrl": __version__, "python": platform.python_version()}
    found |= {package: version(package) for package in ("numpy", "numba")}
    if "torch" in sys.modules:
        found["torch"] = version("torch")
    found["nvdisasm"] = ".".join(map(str, find_nvdisasm().version))
    return found | ({"compiler": compiler} if compiler else {})
