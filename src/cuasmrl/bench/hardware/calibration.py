"""All experiments on one GPU, and the file in which they can be sent to somebody."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cuasmrl import __version__
from cuasmrl.bench.hardware.clocks import SAMPLES
from cuasmrl.bench.hardware.rows import Row, Unsettled, chosen, rows_of, unsettled_rows
from cuasmrl.bench.hardware.schedules import KERNELS, SCHEDULES, Ranking, rankings
from cuasmrl.bench.hardware.session import Session, ordinal_of
from cuasmrl.bench.microbenchmarks import unsettled
from cuasmrl.bench.microbenchmarks.cubins import cubin_of, missing_compiler
from cuasmrl.errors import CuasmrlError
from cuasmrl.files import write_text
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.workloads import cuda_compiler, triton_compiler

FORMAT = 1
_SPIN = 20_000_000
"""Cycles: about ten milliseconds, of which a step of the nanosecond clock is a ten-thousandth."""
_SMI = (
    "driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "power.limit",
    "temperature.gpu", "ecc.mode.current",
)  # fmt: skip
_PATIENCE = 20


@dataclass(frozen=True)
class Calibration:
    """What one GPU said."""

    gpu: dict[str, Any]
    """As the driver describes it."""
    chip: str
    """The chip of the model that it was compared with."""
    clocks_mhz: tuple[float, float]
    """Of the SMs, before the first experiment and after the last."""
    smi: dict[str, str]
    """What nvidia-smi says, if it is there."""
    versions: dict[str, str]
    rows: tuple[Row, ...]
    unsettled: tuple[Unsettled, ...]
    rankings: tuple[Ranking, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("gpu", "chip", "clocks_mhz", "smi", "versions")},
            "format": FORMAT,
            "rows": [row.as_dict() for row in self.rows],
            "unsettled": [row.as_dict() for row in self.unsettled],
            "rankings": [ranking.as_dict() for ranking in self.rankings],
        }

    def write(self, path: Path) -> None:
        write_text(path, json.dumps(self.as_dict(), indent=1) + "\n")


def calibrate(
    device: str,
    progress: Callable[[int, int], None],
    connect: Connect = load,
    schedules: int = SCHEDULES,
) -> Calibration:
    """Run every experiment on a device such as cuda:0."""
    if reason := missing_compiler():
        raise CuasmrlError(f"{reason.removeprefix('Compiled kernels are skipped: ')}")
    session = Session(ordinal_of(device), connect)
    total = len(chosen(session.chip.key)) + len(unsettled.experiments()) + len(KERNELS) * (schedules + 1)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    progress(0, total)
    before = sm_clock(session)
    rows = rows_of(session, advance)
    decisive = unsettled_rows(session, advance)
    ranked = rankings(session, schedules, connect, advance)
    return Calibration(
        asdict(session.gpu),
        session.chip.key,
        (before, sm_clock(session)),
        smi(session.gpu.ordinal),
        _versions(),
        tuple(rows),
        tuple(decisive),
        tuple(ranked),
    )


def sm_clock(session: Session) -> float:
    """MHz of the SMs while they are busy: cycles over nanoseconds of one warp that waits."""
    times = np.zeros(4, np.uint64)
    launch = Launch((1, 1, 1), (32, 1, 1), 0, (times, np.uint64(_SPIN)))
    runs = session.run(cubin_of("spin", session.gpu.arch), "spin", launch, SAMPLES)
    rates = []
    for run in runs:
        cycle, cycles, nanosecond, nanoseconds = (int(value) for value in run[0])
        rates.append(1e3 * (cycles - cycle) / max(nanoseconds - nanosecond, 1))
    return median(rates)


def smi(ordinal: int) -> dict[str, str]:
    """Driver, clocks, power and temperature by nvidia-smi; nothing where it does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    command = [tool, "-i", str(ordinal), f"--query-gpu={','.join(_SMI)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in done.stdout.split(",")]
    return dict(zip(_SMI, values, strict=True)) if len(values) == len(_SMI) else {}


def _versions() -> dict[str, str]:
    return {
        "cuasmrl": __version__,
        "nvcc": cuda_compiler.identity(),
        "triton": triton_compiler.identity(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
