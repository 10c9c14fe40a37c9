"""How long would it take if one mechanism were free? A replay with that mechanism ideal, all else as it is.

The change says what a mechanism costs beside all others: of two that hide each other neither shows. Some of
these machines cannot exist, as they drop what keeps the program right: they answer what waiting costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import mean

import numpy as np

from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.records import Kind, Row, Unit
from cuasmrl.schedule import Schedule

_WORKERS = 2
_PLENTY = float(1 << 40)
_MOST_QUEUED = 32.0
"""As much as the state has room for; with nothing to wait for, an instruction stays `accept_delay` cycles."""


@dataclass(frozen=True)
class Mechanism:
    """A part of the machine, and how to make it free."""

    name: str
    values: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the chip."""
    edit: Callable[[Int], None] | None = None
    """Changes the records of the schedule, one row each."""
    is_fiction: bool = False
    """Would the program compute something else?"""


@dataclass(frozen=True)
class Counterfactual:
    mechanism: str
    cycles: float
    """Modelled cycles with the mechanism free, the mean over the seeds."""
    change: float
    """Against the real machine; -0.2 means a fifth less."""
    is_fiction: bool


def _double_tensor_rate(rows: Int) -> None:
    rows[:, [Row.INTERVAL, Row.SAME_WARP]] //= 2


def _free_tensor_results(rows: Int) -> None:
    rows[(rows[:, Row.KIND] == Kind.TENSOR) | (rows[:, Row.KIND] == Kind.PRODUCT), Row.RAW] = 0


def _free_products(rows: Int) -> None:
    rows[rows[:, Row.KIND] == Kind.PRODUCT_WAIT, Row.KIND] = Kind.FIXED


def _free_tiles(rows: Int) -> None:
    rows[rows[:, Row.KIND] == Kind.PRODUCT, Row.TURNS] = 0


def _free_units(rows: Int) -> None:
    rows[rows[:, Row.UNIT] != Unit.NONE, Row.HOLD] = 1


def _free_ports(rows: Int) -> None:
    rows[:, Row.SOURCE_COUNT] = 0


def _free_constants(rows: Int) -> None:
    rows[:, Row.CONSTANT] = -1


def _free_barriers(rows: Int) -> None:
    rows[(rows[:, Row.KIND] == Kind.BARRIER) | (rows[:, Row.KIND] == Kind.MEET), Row.KIND] = Kind.FIXED


def _free_phases(rows: Int) -> None:
    rows[rows[:, Row.KIND] == Kind.PHASE_WAIT, Row.KIND] = Kind.FIXED


def _free_engine(rows: Int) -> None:
    """Orders are carried out at once; L2 and DRAM take as long as ever."""
    is_order = (rows[:, Row.KIND] == Kind.COPY_IN) | (rows[:, Row.KIND] == Kind.COPY_OUT)
    rows[np.ix_(is_order, [Row.RAW, Row.INTERVAL, Row.TURNS])] = 0


def _free_copies(rows: Int) -> None:
    rows[(rows[:, Row.KIND] == Kind.DEPBAR) | (rows[:, Row.KIND] == Kind.STORES_WAIT), Row.KIND] = Kind.FIXED


def _free_scoreboards(rows: Int) -> None:
    rows[:, Row.WAIT] = 0


def _free_stalls(rows: Int) -> None:
    """A raised scoreboard is seen after two cycles, and a DEPBAR holds others up only if it stalls."""
    raises = (rows[:, Row.WRITE_BOARD] >= 0) | (rows[:, Row.READ_BOARD] >= 0)
    others = rows[:, Row.KIND] != Kind.DEPBAR
    rows[others, Row.STALL] = 1 + raises[others]
    rows[others, Row.YIELDS] = 0


MECHANISMS = (
    Mechanism("issue without stall counts", edit=_free_stalls, is_fiction=True),
    Mechanism("no waits for scoreboards", edit=_free_scoreboards, is_fiction=True),
    Mechanism("no waits for copies", edit=_free_copies, is_fiction=True),
    Mechanism("no waits for products of warpgroups", edit=_free_products, is_fiction=True),
    Mechanism("products of warpgroups read tiles beside the port", edit=_free_tiles),
    Mechanism("no waits for phases of mbarriers", edit=_free_phases, is_fiction=True),
    Mechanism("bulk copies beside the engine", edit=_free_engine),
    Mechanism("no barriers", edit=_free_barriers, is_fiction=True),
    Mechanism("barriers release at once", {"bar_latency": 0, "bar_gap": 0}),
    Mechanism("taken branches at once", {"branch_taken": 0}),
    Mechanism("instruction cache always hits", {"fetch_latency": 0, "fetch_gap": 0}),
    Mechanism("constant cache always hits", edit=_free_constants),
    Mechanism("register ports unlimited", edit=_free_ports),
    Mechanism("units take one instruction a cycle", edit=_free_units),
    Mechanism("tensor cores at twice the rate", edit=_double_tensor_rate),
    Mechanism("tensor results at once", edit=_free_tensor_results),
    Mechanism(
        "memory queue unlimited",
        {
            "queue_entries": _MOST_QUEUED,
            "agu_interval": 0,
            "sm_accept_interval": 0,
            "port_backlog": _PLENTY,
        },
    ),
    Mechanism(
        "shared memory port unlimited",
        {"shared_bytes": _PLENTY, "return_bytes": _PLENTY, "copy_fills_shared": 0, "conflict_step": 0},
    ),
    Mechanism("copies fill shared memory beside the port", {"copy_fills_shared": 0}),
    Mechanism("L2 as near as L1", {"l2_latency": 0, "l2_far_latency": 0, "l2_jitter": 0, "dram_latency": 0}),
    Mechanism(
        "L2 bandwidth unlimited", {"l2_bytes": _PLENTY, "l2_chip_bytes": _PLENTY, "l2_written_bytes": _PLENTY}
    ),
    Mechanism("DRAM bandwidth unlimited", {"dram_efficiency": _PLENTY, "dram_mixed_efficiency": _PLENTY}),
    Mechanism("next block starts at once", {"block_start": 1, "warp_start": 0, "block_rate": _PLENTY}),
)


def counterfactuals_of(
    model: Model, schedule: Schedule, seeds: Sequence[int], mechanisms: Sequence[Mechanism] = MECHANISMS
) -> tuple[Counterfactual, ...]:
    """One replay per mechanism and seed; the largest gain first."""
    found = []
    with ThreadPoolExecutor(_WORKERS) as pool:

        def cycles(changed: Model, table: Int) -> float:
            return mean(pool.map(lambda seed: changed.cycles(table, seed), seeds))

        real = cycles(model, model.table(schedule))
        for mechanism in mechanisms:
            changed = with_free(model, mechanism)
            free = cycles(changed, table_with_free(changed, schedule, mechanism))
            found.append(Counterfactual(mechanism.name, free, free / real - 1, mechanism.is_fiction))
    return tuple(sorted(found, key=lambda one: one.cycles))


def with_free(model: Model, mechanism: Mechanism) -> Model:
    """The chip with a mechanism free as far as its numbers decide."""
    if not mechanism.values:
        return model
    return model.with_parameters(model.parameters.with_values(mechanism.values))


def table_with_free(model: Model, schedule: Schedule, mechanism: Mechanism) -> Int:
    """The records of a schedule with a mechanism free as far as they decide."""
    table = model.table(schedule)
    if mechanism.edit is not None:
        mechanism.edit(table.reshape(-1, Row.WIDTH))
    return table
