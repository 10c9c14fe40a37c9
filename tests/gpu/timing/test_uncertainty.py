"""Figures with their uncertainty: seeds, ensembles, and the gain of one schedule over another."""

from dataclasses import replace

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS
from cuasmrl.gpu.emulator import Emulator
from cuasmrl.gpu.timing import Model, load_parameters, occupancy
from cuasmrl.gpu.timing.parameters import chips_with_data, parse_parameters
from cuasmrl.gpu.timing.uncertainty import compare, draw, measure
from cuasmrl.schedule import Schedule


@pytest.fixture(scope="module")
def softmax() -> tuple[Model, Schedule]:
    workload = workloads.get("softmax")
    sizes = {"M": 216, "N": 256}
    built = workload.build(workload.configs[0], 80, sizes)
    emulator = Emulator(Cubin.parse(built.cubin), built.kernel)
    trace = emulator.trace(workload.launch(built, workload.inputs(sizes), sizes), blocks=[0, 108])
    schedule = Schedule.original(emulator.listing)
    return Model(schedule, trace, "a100"), schedule


def slower(schedule: Schedule) -> Schedule:
    """Three cycles more behind every instruction that can have them."""
    controls = tuple(replace(c, stall=c.stall + 3) if 0 < c.stall <= 8 else c for c in schedule.controls)
    return schedule.replaced(controls=controls)


def test_the_same_seed_gives_the_same_cycles(softmax: tuple[Model, Schedule]) -> None:
    model, schedule = softmax
    first = measure(model, schedule, range(4))
    assert first == measure(model, schedule, range(4))
    assert first.low <= first.value <= first.high
    assert len(set(first.samples)) > 1
    assert first.unit == "modelled cycles"


def test_a_schedule_gains_nothing_over_itself(softmax: tuple[Model, Schedule]) -> None:
    model, schedule = softmax
    gain = compare(model, schedule, schedule, range(2), draw(model.parameters, 4))
    assert gain.members == (0, 0, 0, 0)
    assert gain.share_above_zero == 0


def test_longer_stalls_lose_everywhere(softmax: tuple[Model, Schedule]) -> None:
    model, schedule = softmax
    loss = compare(model, schedule, slower(schedule), range(2), draw(model.parameters, 6))
    assert loss.nominal < 0
    assert loss.share_above_zero == 0
    back = compare(model, slower(schedule), schedule, range(2), draw(model.parameters, 6))
    assert min(back.members) > 0


def test_members_stay_in_the_stated_ranges() -> None:
    parameters = load_parameters("a100")
    members = draw(parameters, 20, seed=3)
    assert members[0] is parameters
    for member in members:
        for name, number in parameters.numbers.items():
            assert number.low <= member[name] <= number.high, name
    assert {member["copy_fills_shared"] for member in members} == {0, 1}
    assert {member["warp_choice"] for member in members} == {0, 1, 2}
    assert {member["copy_bytes"] for member in members} == {32, 64, 128}
    assert [dict(m) for m in draw(parameters, 3, seed=3)] == [dict(m) for m in members[:3]]


@pytest.mark.parametrize("chip", sorted(CHIPS))
def test_an_ensemble_has_every_value_of_what_is_unsettled_and_draws_what_has_a_range(chip: str) -> None:
    parameters = load_parameters(chip)
    members = draw(parameters, 60, seed=1)
    for name, number in parameters.numbers.items():
        drawn = {member[name] for member in members}
        if number.choices:
            assert drawn == set(number.choices), name
        else:
            assert (len(drawn) > 10) == (number.low < number.high), name
    beyond = ("l2_bytes", "l2_chip_bytes", "l2_written_bytes", "share_slack", "l2_latency", "dram_latency",
              "dram_efficiency", "dram_mixed_efficiency", "block_start", "launch_time")  # fmt: skip
    assert [name for name in beyond if parameters.numbers[name].low == parameters.numbers[name].high] == []
    for name, values in {"copy_bytes": (32, 64, 128), "warp_choice": (0, 1, 2)}.items():
        assert parameters.numbers[name].choices == values


@pytest.mark.parametrize("chip", sorted(CHIPS))
def test_every_number_has_its_source(chip: str) -> None:
    for name, number in load_parameters(chip).numbers.items():
        assert number.source, name
        assert number.low <= number.value <= number.high, name


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a,1,cycles,2,3,measured,somebody", "does not lie in"),
        ("a,one,cycles,0,3,measured,somebody", "is not understood"),
        ("a,1,cycles,0,3,guessed,somebody", "is not understood"),
        ("a,1,cycles,0,3,measured,", "lacks its unit or source"),
        ("a,1,choice 0 2,0,2,measured,somebody", "1 is none of 0, 2"),
        ("a,0.5,switch,0,1,measured,somebody", "0.5 is none of 0, 1"),
        ("a,1,choice 0 1 2,0,1,measured,somebody", "from the least of its values to the largest"),
        ("a,1,choice 1,1,1,measured,somebody", "does not name two values"),
        ("a,1,choice one two,0,2,measured,somebody", "is not understood"),
    ],
)
def test_absurd_numbers_are_refused(line: str, why: str) -> None:
    head = "parameter,value,unit,low,high,certainty,source\n"
    with pytest.raises(CuasmrlError, match=why):
        parse_parameters("toy", head + line)


def test_a_missing_number_is_named() -> None:
    with pytest.raises(CuasmrlError, match="has no 'warp drive'"):
        load_parameters("a100")["warp drive"]


def test_a_card_of_the_same_silicon_has_the_other_numbers_and_some_of_its_own() -> None:
    card, silicon = load_parameters("a100-80gb"), load_parameters("a100")
    assert card["launch_time"] != silicon["launch_time"]
    assert {name: card[name] for name in card if name != "launch_time"} == {
        name: silicon[name] for name in silicon if name != "launch_time"
    }
    assert "a100-80gb" not in chips_with_data()


def test_a_number_of_its_own_has_to_exist_and_may_not_contradict_the_others() -> None:
    head = "parameter,value,unit,low,high,certainty,source\n"
    silicon = load_parameters("a100")
    with pytest.raises(CuasmrlError, match="has no 'warp drive'"):
        silicon.overridden("toy", parse_parameters("toy", head + "warp drive,1,cycles,0,3,assumed,x\n"))
    near = parse_parameters("toy", head + "l2_latency,900,cycles,200,900,assumed,x\n")
    with pytest.raises(CuasmrlError, match="toy contradicts itself: l2_latency is 900 cycles"):
        silicon.overridden("toy", near)


def test_a_choice_takes_its_values_only() -> None:
    parameters = load_parameters("a100")
    assert parameters.with_values({"copy_bytes": 32})["copy_bytes"] == 32
    with pytest.raises(CuasmrlError, match="copy_bytes of a100 cannot be 48: it is one of 32, 64, 128"):
        parameters.with_values({"copy_bytes": 48})


def test_occupancy_names_its_limit(softmax: tuple[Model, Schedule]) -> None:
    chip = softmax[0].chip
    assert occupancy(chip, 128, 32, 0).limit == "warps"
    assert occupancy(chip, 128, 255, 0).limit == "registers"
    assert occupancy(chip, 128, 32, 100 << 10).blocks == 1
    with pytest.raises(CuasmrlError, match="shared memory"):
        occupancy(chip, 128, 32, 200 << 10)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("l2_kept,0.9,share,0.5,1.2,assumed,x", "l2_kept is a share, and 1.2 is more than the whole"),
        (
            "l2_bytes,64,bytes/cycle,32,128,assumed,x\nl2_chip_bytes,40,bytes/cycle,30,50,assumed,x",
            "l2_bytes is 64 bytes/cycle, more than l2_chip_bytes with 40",
        ),
        (
            "l2_latency,300,cycles,200,400,assumed,x\ndram_latency,250,cycles,200,300,assumed,x",
            "l2_latency is 300 cycles, more than dram_latency with 250",
        ),
    ],
)
def test_a_file_that_contradicts_itself(lines: str, why: str) -> None:
    head = "parameter,value,unit,low,high,certainty,source\n"
    with pytest.raises(CuasmrlError, match=why):
        parse_parameters("toy", head + lines + "\n")
