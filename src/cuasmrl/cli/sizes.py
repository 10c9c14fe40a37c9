"""Sizes of a workload as --set gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.workloads import Workload


def sizes_of(workload: Workload, settings: list[str] | None) -> dict[str, int]:
    """All sizes of a workload, those that `M=512` and the like name changed."""
    sizes = dict(workload.sizes)
    for setting in settings or ():
        name, _, number = setting.partition("=")
        if name not in workload.sizes or not number.isdecimal() or int(number) < 1:
            known = sorted(workload.sizes)
            raise CuasmrlError(
                f"--set {setting} is not understood; {workload.name} is sized by {', '.join(known)}, "
                f"for example --set {known[0]}=64"
            )
        sizes[name] = int(number)
    return sizes


def sizes_given(
    kernel_of: str | None, launch: Path | None, settings: list[str] | None
) -> dict[str, int] | None:
    """The sizes of a workload where --set changes any."""
    if not settings:
        return None
    if kernel_of is None or launch is not None or Path(kernel_of).suffix == ".cubin":
        raise CuasmrlError("--set gives the sizes of a workload, and none is named; leave it out")
    from cuasmrl import workloads

    return sizes_of(workloads.get(kernel_of), settings)
