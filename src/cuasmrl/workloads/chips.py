"""The chips workloads are built for, and what limits a kernel on each."""

from __future__ import annotations

from cuasmrl.errors import CuasmrlError

ARCHS = (75, 80, 86, 89, 90, 100, 120)
"""Those that the corpus is made for, and that distances are mined from."""

# Opt-in maximum of shared memory for one block, CUDA C++ Programming Guide,
# "Technical Specifications per Compute Capability": 64, 163, 99, 99, 227, 227, 227 and 99 KiB.
SHARED_LIMIT = {
    75: 64 << 10,
    80: 163 << 10,
    86: 99 << 10,
    89: 99 << 10,
    90: 227 << 10,
    100: 227 << 10,
    103: 227 << 10,
    120: 99 << 10,
}


def unknown_chip(arch: int) -> str | None:
    """Why this chip cannot be built for, or None when it can."""
    if arch in SHARED_LIMIT:
        return None
    known = ", ".join(str(known) for known in SHARED_LIMIT)
    return f"sm_{arch} is not a chip workloads are built for; choose one of {known}."


def check_shared(arch: int, shared_bytes: int, what: str) -> None:
    """Refuse a kernel no launch on this chip could ever start."""
    limit = SHARED_LIMIT[arch]
    if shared_bytes > limit:
        raise CuasmrlError(
            f"{what} needs {shared_bytes} bytes of shared memory per block, sm_{arch} has {limit}; "
            "choose a config with a smaller tile or fewer stages."
        )
