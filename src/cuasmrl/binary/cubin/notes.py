"""What a cubin says of the tool that wrote it; compilers from CUDA 13 on leave a note."""

from __future__ import annotations

import re

from cuasmrl.binary.cubin.container import Cubin

_TOOL = re.compile(rb"(?P<name>[\w.-]+)\0Cuda compilation tools, release [\d.]+, V(?P<version>[\d.]+)\0")


def tool_of(cubin: Cubin) -> str | None:
    """Such as `ptxas 13.1.80`; None if there is no such note."""
    section = cubin.section(".note.nv.tkinfo")
    found = _TOOL.search(cubin.bytes_of(section)) if section is not None else None
    return f"{found['name'].decode()} {found['version'].decode()}" if found else None
