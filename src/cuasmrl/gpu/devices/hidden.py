"""Devices that nobody knows: a chip drawn by a secret, if asked for with mechanisms that no chip's file has.

`hidden:7` has every number drawn from its range. `hidden:7+reuse` moreover has no reuse cache, and so on: an
agent that models its device as our chip files do cannot describe such a one, however it sets the numbers. So
agents are compared on these, and a model that the device shares code with does not flatter them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.devices.device import COST_ON_A_GPU
from cuasmrl.gpu.devices.objective import Objective, hidden_member
from cuasmrl.gpu.devices.virtual import VirtualTimer
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.timing import L2, Model, Parameters
from cuasmrl.gpu.timing.code import Code, Int
from cuasmrl.gpu.timing.machine import Machine
from cuasmrl.gpu.timing.records import Choice, Kind, Row, Unit
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule

HIDDEN = "hidden"
_SLOWER_COPIES = 3
_PRODUCT_HOLD = 5
"""Cycles in which a product keeps the instructions behind it from being read; 1 in the chip files."""
_NEAR, _FAR, _FAR_PER_MILLE = 0.7, 2.0, 400
_L0_LINES, _PREFETCH_LINES = 16, 2


def _same_machine(machine: Machine) -> Machine:
    return machine


def _same_rows(rows: Int) -> None:
    pass


@dataclass(frozen=True)
class Strangeness:
    """A mechanism that is not as in our chip files."""

    sentence: str
    machine: Callable[[Machine], Machine] = _same_machine
    rows: Callable[[Int], None] = _same_rows
    """Changes the rows of a table, one for each instruction."""


def _slow_copies(machine: Machine) -> Machine:
    return machine._replace(copy_bytes=max(1, machine.copy_bytes // _SLOWER_COPIES))


def _two_latencies(machine: Machine) -> Machine:
    share = machine.share._replace(far_per_mille=_FAR_PER_MILLE, port_sector=2 * machine.share.port_sector)
    near, far = round(_NEAR * machine.l2_latency), round(_FAR * machine.l2_latency)
    return machine._replace(l2_latency=near, l2_far_latency=far, l2_jitter=0, share=share)


def _blocking_products(rows: Int) -> None:
    rows[rows[:, Row.KIND] == Kind.TENSOR, Row.HOLD] = _PRODUCT_HOLD


def _no_reuse(rows: Int) -> None:
    rows[:, Row.REUSE] = 0


def _one_pipe(rows: Int) -> None:
    rows[rows[:, Row.UNIT] == Unit.INT, Row.UNIT] = Unit.FMA


STRANGE: Mapping[str, Strangeness] = MappingProxyType({
    "warps": Strangeness(
        "warps are chosen in turn, also when the last one is ready",
        machine=lambda machine: machine._replace(warp_choice=int(Choice.NEXT)),
    ),
    "copies": Strangeness("asynchronous copies hold the pipe three times as long", machine=_slow_copies),
    "products": Strangeness("products of the tensor core block dispatch", rows=_blocking_products),
    "reuse": Strangeness("there is no reuse cache", rows=_no_reuse),
    "pipes": Strangeness("integers and single precision share one pipe", rows=_one_pipe),
    "l2": Strangeness("L2 has two latencies, far apart, and half the port", machine=_two_latencies),
    "fetch": Strangeness(
        "the instruction cache is small, and little is fetched ahead",
        machine=lambda machine: machine._replace(l0_lines=_L0_LINES, prefetch_lines=_PREFETCH_LINES),
    ),
})  # fmt: skip


@dataclass(frozen=True)
class Secret:
    """What a hidden device is."""

    seed: int
    kinds: tuple[str, ...] = ()

    @staticmethod
    def parse(device: str) -> Secret:
        """`hidden:SEED`, `hidden:SEED+KIND+KIND`."""
        kind, _, rest = device.partition(":")
        seed, *kinds = rest.split("+")
        if kind != HIDDEN or not seed.isdecimal() or len(set(kinds)) < len(kinds):
            raise CuasmrlError(f"there is no device {device!r}; write hidden:7, or hidden:7+reuse")
        for one in kinds:
            if one not in STRANGE:
                known = ", ".join(f"{name} ({strange.sentence})" for name, strange in STRANGE.items())
                raise CuasmrlError(f"a hidden device knows no {one!r}; choose among {known}")
        return Secret(int(seed), tuple(kinds))

    @property
    def device(self) -> str:
        return "+".join([f"{HIDDEN}:{self.seed}", *self.kinds])

    def machine(self, machine: Machine) -> Machine:
        for kind in self.kinds:
            machine = STRANGE[kind].machine(machine)
        return machine

    def rows(self, rows: Int) -> None:
        for kind in self.kinds:
            STRANGE[kind].rows(rows)


class StrangeCode(Code):
    def __init__(self, listing: Listing, parameters: Parameters, secret: Secret) -> None:
        super().__init__(listing, parameters)
        self.secret = secret

    def table(self, schedule: Schedule) -> Int:
        table = super().table(schedule)
        self.secret.rows(table.reshape(-1, Row.WIDTH))
        return table


class StrangeModel(Model):
    def __init__(
        self, schedule: Schedule, trace: Trace, chip: Chip, parameters: Parameters, l2: L2, secret: Secret
    ) -> None:
        self.secret = secret
        super().__init__(schedule, trace, chip, parameters, l2)

    def _machine(self, parameters: Parameters) -> Machine:
        return self.secret.machine(super()._machine(parameters))

    def _code(self, parameters: Parameters) -> Code:
        return StrangeCode(self.listing, parameters, self.secret)


@dataclass(frozen=True, eq=False, kw_only=True)
class HiddenKernel(TracedKernel):
    """A traced kernel on a chip that only its device knows."""

    secret: Secret
    parameters: Parameters = field(repr=False)

    def _model(self, trace: Trace) -> Model:
        return StrangeModel(self.original, trace, self.chip, self.parameters, self.l2, self.secret)


class HiddenTimer(VirtualTimer):
    """The virtual GPU as one chip that only it knows; confirmed there, and on chips drawn around it."""

    def __init__(
        self, kernel: TracedKernel, secret: Secret, game: int = 0, workers: int | None = None
    ) -> None:
        """`kernel` is as everybody knows it."""
        known = {each.name: getattr(kernel, each.name) for each in fields(kernel) if each.init}
        parameters = hidden_member(kernel.model.parameters, secret.seed)
        hidden = HiddenKernel(**known, secret=secret, parameters=parameters)
        super().__init__(hidden, Objective.NOMINAL, game, workers=workers)
        self.secret = secret

    @property
    def device(self) -> str:
        return self.secret.device

    @property
    def cost(self) -> float:
        """It stands for a GPU."""
        return COST_ON_A_GPU
