"""Lower bounds: exact where one resource decides, and below every schedule, seed and chip."""

import random

import pytest

from cuasmrl import workloads
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing import Bound, Model, bounds_of
from cuasmrl.gpu.timing.records import PARTS
from cuasmrl.gpu.timing.uncertainty import draw
from cuasmrl.schedule import Board, Schedule, SetReuse, SetStall, SetYield, Shift, Swap, SwapInheriting, play
from cuasmrl.workloads.tracing import trace_workload
from tests.gpu.timing.programs import model_of, stream
from tests.traced_kernels import traced


def by_name(model: Model) -> dict[str, Bound]:
    return {bound.resource: bound for bound in bounds_of(model)}


def cycles_of(model: Model) -> int:
    return model.simulate(Schedule.original(model.listing)).cycles


CHAINS = {
    "fixed latency": ["B------:R-:W-:-:S04  FADD R4, R4, R5"] * 20,
    "special function": ["B0-----:R-:W0:-:S02  MUFU.EX2 R4, R4"] * 12,
    "shared memory": ["B0-----:R-:W0:-:S02  LDS R4, [R4]"] * 12,
    "through a conditional writer": [
        "B------:R-:W0:-:S02  LDS R4, [R2]",
        "B------:R-:W-:-:S04  @P0 FADD R4, R5, R5",
        "B0-----:R-:W-:-:S04  FADD R6, R4, R5",
    ],
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_takes_no_longer_than_its_dependences(name: str) -> None:
    model = model_of(stream(*CHAINS[name]))
    found = cycles_of(model)
    # What follows the last link need not wait for it.
    assert found - 4 <= by_name(model)["dependences of a warp"].cycles <= found


def test_a_chain_of_products() -> None:
    product = "B------:R-:W-:-:S10  HMMA.16816.F32 R4, R12, R16, R4"
    model = model_of(stream(*[product] * 20, arch=80), "a100")
    assert by_name(model)["dependences of a warp"].cycles == pytest.approx(cycles_of(model), rel=0.03)


THROUGHPUTS = [
    ("FMUL R{}, R10, R13", "a100", 16, "FP32 unit"),
    ("FMUL R{}, R10, R12", "a6000", 16, "register port, even"),
    ("IADD3 R{}, R10, R13, RZ", "a6000", 16, "integer unit"),
    ("MUFU.EX2 R{}, R10", "a6000", 8, "special function unit"),
    ("HMMA.16816.F32 R{}, R12, R16, RZ", "a100", 16, "tensor core"),
    ("HMMA.16816.F32 R{}, R12, R16, RZ", "a100", 4, "tensor core, operands of one warp"),
    ("LDS R{}, [R2]", "a100", 16, "memory queue, address generation"),
    ("LDS R{}, [R2]", "a6000", 16, "memory arbiter"),
    ("NOP", "a100", 32, "issue slots"),
]


@pytest.mark.parametrize(("instruction", "name", "warps", "resource"), THROUGHPUTS)
def test_a_stream_for_one_resource_is_at_its_bound(
    instruction: str, name: str, warps: int, resource: str
) -> None:
    code = stream(*[instruction.format(20 + 4 * (k % 16)) for k in range(64)], arch=chip(name).arch)
    model = model_of(code, name, warps)
    found = by_name(model)[resource].cycles
    assert 0.97 * cycles_of(model) <= found <= cycles_of(model)


def test_two_pipes_share_plain_fp32() -> None:
    adds = [f"FADD R{20 + k}, R10, R13" for k in range(32)]
    products = [f"IMAD R{60 + k}, R10, R13, RZ" for k in range(8)]
    found = by_name(model_of(stream(*adds, *products), "a6000", 16))
    assert found["FP32 unit"].busy == 4 * 8 * 2
    assert found["FP32 units together"].busy == 4 * 40


def test_warps_without_a_place_of_their_own_are_spread() -> None:
    """Six warps: two sub-cores have two of them."""
    found = by_name(model_of(stream(*["NOP"] * 9), "a100", 6))
    assert found["issue slots"].cycles == 20


def test_data_that_nobody_else_touches_comes_from_l2() -> None:
    """Every load of vector_add misses; all that the SM needs comes through the port to L2."""
    kernel = traced("vector_add")
    model = kernel.model
    found = by_name(model)
    per_block = 3 * 256 * 2
    rates = model.machine.share
    sector = min(rates.full.l2_read, rates.tail.l2_read) / PARTS
    assert found["L2 bandwidth"].busy >= per_block / 32 * sector * len(kernel.trace.blocks)
    slow = model.with_parameters(model.parameters.with_values({"l2_latency": 500, "l2_far_latency": 500}))
    more = by_name(slow)["dependences of a warp"].cycles - found["dependences of a warp"].cycles
    waves = -(-model.blocks // model.resident)
    assert more >= waves * (500 - model.machine.l2_latency)


def test_bounds_do_not_depend_on_the_schedule_that_a_model_was_made_with() -> None:
    kernel = traced("softmax")
    board = Board(kernel.listing)
    shuffle(board, random.Random(1), 200)
    assert bounds_of(Model(board.schedule(), kernel.trace, "a100", l2=kernel.l2)) == bounds_of(kernel.model)


def shuffle(board: Board, rng: random.Random, tries: int) -> None:
    """Random legal moves of all kinds; most often with the smallest stalls in the end."""
    for _ in range(tries):
        i = rng.randrange(len(board.code))
        swaps, reach = board.legal_swaps(), board.reach(i) or [board.position[i]]
        play(board, rng.choice([
            Shift(i, rng.choice(reach)),
            Shift(i, rng.choice(reach)),
            Swap(rng.choice(swaps)) if swaps else SetYield(i, True),
            SwapInheriting(rng.randrange(len(board.code) - 1)),
            SetStall(i, rng.randrange(1, 16)),
            SetYield(i, rng.random() < 0.5),
            SetReuse(i, rng.random() < 0.5),
        ]))  # fmt: skip
    if rng.random() < 0.7:
        for block in board.blocks:
            board.retime(block.number)


def check(model: Model, rng: random.Random, schedules: int, members: int) -> float:
    """No bound is above any replay, on the chip and on others of its ranges; says how close one comes."""
    board = Board(model.listing)
    all_schedules = [board.schedule()]
    for _ in range(schedules):
        board.reset()
        shuffle(board, rng, rng.choice([20, 200, 600]))
        all_schedules.append(board.schedule())
    closest = 0.0
    for parameters in draw(model.parameters, members, rng.randrange(1000)):
        member = model.with_parameters(parameters)
        bounds = bounds_of(member)
        for k, schedule in enumerate(all_schedules):
            found = min(member.simulate(schedule, seed).cycles for seed in range(2))
            for bound in bounds:
                assert bound.cycles <= found, (bound, k, parameters["l2_latency"])
            closest = max(closest, bounds[0].cycles / found)
    return closest


SAMPLE = [
    ("gemm_leaky_relu", "a100", {"M": 128, "N": 128, "K": 256}, 0.35),
    ("gemm_leaky_relu", "a6000", {"M": 128, "N": 128, "K": 256}, 0.45),
    ("softmax", "a100", {"M": 648, "N": 256}, 0.4),
    ("rmsnorm", "h100", {"B": 1, "H": 32, "S": 512, "D": 64}, 0.6),
    ("transpose", "a6000", None, 0.8),
    ("histogram", "a100", None, 0.45),
    ("vector_add", "rtx4090", None, 0.5),
]


@pytest.mark.parametrize(("name", "on", "sizes", "tight"), SAMPLE)
def test_no_legal_schedule_is_below(name: str, on: str, sizes: dict[str, int] | None, tight: float) -> None:
    workload = workloads.get(name)
    model = trace_workload(workload, workload.configs[0], chip(on), sizes).model
    assert check(model, random.Random(name + on), schedules=3, members=3) >= tight


@pytest.mark.slow
def test_no_legal_schedule_of_any_workload_is_below(capsys: pytest.CaptureFixture[str]) -> None:
    """All workloads on four chips; prints how close the bound comes to the fastest replay."""
    for on in ("a100", "a6000", "rtx4090", "h100"):
        for workload in workloads.all():
            for config in workload.configs[:2]:
                try:
                    model = trace_workload(workload, config, chip(on)).model
                except CuasmrlError:
                    # Not for this chip, or with instructions that the model refuses.
                    continue
                closest = check(model, random.Random(workload.name + on), schedules=6, members=4)
                with capsys.disabled():
                    print(f"\n{on} {workload.name} {config.name}: {closest:.2f}", end="")
