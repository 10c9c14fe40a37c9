"""Compiled kernels beside publications."""

from dataclasses import replace

import pytest

from cuasmrl.bench.microbenchmarks import experiments, figure, missing_compiler, unsettled
from cuasmrl.bench.microbenchmarks.cubins import SOURCES, compiled, cubin_of, listings_of
from cuasmrl.bench.microbenchmarks.patches import patched, watched
from cuasmrl.bench.microbenchmarks.timeline import listing_of, run
from cuasmrl.bench.timing import compare, parsed_changes, published
from cuasmrl.binary.sass import without_control
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing import load_parameters

ROWS = {row.id: row for row in published()}
EXACT = [
    "V0001", "V0003", "V0009", "V0019",  # register ports, the clock of a stopped warp
    "V0029", "V0052", "V0056", "V0057",  # memory queue
    "V0064", "V0069", "V0075", "V0087", "V0093", "V0099", "V0104",  # memory latencies
]  # fmt: skip
CLOSE = [
    "V0106", "V0107", "V0109", "V0142", "V0164", "V0490",  # tensor
    "V0462", "V0463", "V0473", "V0480", "V0483",  # shared memory
    "V0518", "V0520",  # chases
    "V0314", "V0353", "V0407", "V0453",  # grids of products and ldmatrix
    "V0538", "V0558", "V0606", "V0631",  # strides and tiles
    "V0808", "V0810", "V0811", "V0815", "V0817", "V0819", "V0821", "V0823",  # listings of sm_120
    "V0236", "V0241", "V0244", "V0247", "V0249",  # tensor cores of sm_75
    "V0715", "V0718", "V0719", "V0722", "V0732",  # a full block, one thread
]  # fmt: skip
# What is known to be further off than 5 %, with the largest error in percent.
KNOWN = {
    # Half a turn of the loop is the prologue.
    "V0532": 8, "V0533": 8, "H0028": 7,
    # The compiler of the publication must have made another loop.
    "H0012": 6, "H0015": 6, "V0122": 9, "V0666": 7, "V0669": 9, "V0661": 6, "V0671": 6,
    # Other publications of the same thing are nearer.
    "V0687": 6, "V0492": 9, "V0494": 7, "V0658": 7, "V0663": 7,
    # Of low trust.
    "V0758": 8,
    # One warp alone sends sparse products a little slower than several do.
    "V0383": 6, "V0389": 6, "V0395": 6,
    # Turns of the tags depend on how addresses are hashed.
    "V0552": 8, "V0554": 9, "V0556": 7, "V0563": 7, "V0573": 8, "V0595": 7, "V0597": 7, "V0604": 7,
    "V0610": 8, "V0637": 8, "V0640": 7, "V0641": 10, "V0628": 7, "V0576": 6,
    # Wide loads of a full block lose some 2,500 cycles that are not explained.
    "V0724": 12, "V0725": 8,
    # An atomic is as far away as a load from L2.
    "V0729": 6,
    # All SMs at once: one SM alone gets all that its port lets through.
    "V0727": 320,
}  # fmt: skip


def error(name: str) -> float:
    row = ROWS[name]
    return 100 * (figure(experiments()[name], row.chip) - row.value) / (row.value or 1)


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str) -> None:
    assert error(name) == 0


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    assert abs(error(name)) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, e in experiments().items() if not e.unmet])
def test_all(name: str) -> None:
    assert abs(error(name)) <= KNOWN.get(name, 5)


def test_every_experiment_makes_a_row() -> None:
    for name, experiment in experiments().items():
        load_parameters(ROWS[name].chip)
        assert (SOURCES / f"{experiment.source}.cu").exists(), name
        assert experiment.per > 0, name
    assert len(experiments()) > 620


def test_what_is_not_measured_yet_tells_settings_apart() -> None:
    """Eight warps with eight copies each: 32 KB take 256, 512 or 1024 turns on their way in."""
    found = unsettled.experiments()["LDSM.4 behind 8 LDGSTS.128, 8 warps"]
    cycles = [figure(found, "a100", {"copy_bytes": rate, "copy_fills_shared": 0}) for rate in (32, 64, 128)]
    assert cycles[0] - cycles[1] == pytest.approx(512, rel=0.02)
    assert cycles[1] - cycles[2] == pytest.approx(256, rel=0.02)
    none = unsettled.experiments()["LDSM.4 behind 0 LDGSTS.128, 8 warps"]
    assert figure(none, "a100", {"copy_bytes": 32}) == figure(none, "a100", {"copy_bytes": 128})


def test_numbers_can_be_changed_for_a_run() -> None:
    starved = figure(experiments()["V0719"], "rtx4090", parsed_changes(["warp_choice=0"]))
    assert starved < 0.9 * figure(experiments()["V0719"], "rtx4090")
    for text, why in (
        ("warp_choice", "NAME=VALUE"),
        ("warp_choice=7", "one of 0, 1, 2"),
        ("wind=1", "no 'wind'"),
    ):
        with pytest.raises(CuasmrlError, match=why):
            parsed_changes([text])


def test_a_branch_and_the_clock_are_timed_as_compiled() -> None:
    """The loop has its NOPs, its branch and both clocks; the clock is read twice by each warp."""
    experiment = experiments()["V0107"]
    timeline = run(experiment, chip("a100"))
    code = timeline.listing.instructions
    assert {code[place].opcode for _, place in timeline.issues(3)} >= {"HMMA", "NOP", "BRA", "CS2R"}
    assert [len(timeline.clocks(warp)) for warp in range(4)] == [2] * 4


def test_single_bits_are_timed_though_not_emulated() -> None:
    experiment = replace(experiments()["V0161"], threads=32)
    timeline = run(experiment, chip("a100"))
    code = timeline.listing.instructions
    assert sum(code[place].opcode == "BMMA" for _, place in timeline.issues(0)) == 1024


def test_a_watched_access_differs_in_control_bits_only() -> None:
    experiment = experiments()["V0065"]
    compiled = listings_of("accesses", 86)["ldg_32"]
    changed = listing_of(experiment.launched, 86)
    place = watched(compiled, "LDG")
    assert [without_control(w) for w in changed.kernel.words] == [
        without_control(w) for w in compiled.kernel.words
    ]
    assert changed.instructions[place].control.write_barrier == 0
    assert changed.instructions[place + 1].control.wait_mask == 1


def test_words_read_as_wanted() -> None:
    code = listing_of(experiments()["V0002"].launched, 86).instructions
    start = next(i.index for i in code if "SR_CLOCKLO" in i.text)
    texts = [i.text for i in code[start + 1 : start + 5]]
    assert texts == ["NOP", "FFMA R11, R10, R12, R14", "FFMA R13, R16, R18, R21", "NOP"]


@pytest.mark.parametrize(
    "patch", ["stream FSEL R1, R2, R3, P0", "stream FADD R1, R2, 1", "result LDSM", "upside down"]
)
def test_what_cannot_be_patched_is_refused(patch: str) -> None:
    with pytest.raises(CuasmrlError):
        patched(cubin_of("carrier", 86), listings_of("carrier", 86)["carrier"], patch)


def test_unknown_inputs_and_readings_are_named() -> None:
    experiment = experiments()["V0064"]
    with pytest.raises(CuasmrlError, match="a sandwich"):
        figure(replace(experiment, inputs="a sandwich"), "a6000")
    with pytest.raises(CuasmrlError, match="tea leaves"):
        figure(replace(experiment, reading="tea leaves"), "a6000")


def test_what_the_model_does_not_have_is_not_compared() -> None:
    found = compare(ROWS["V0795"])
    assert found.compiled is None
    assert "HFMA2.MMA" in found.unmet


def test_without_a_compiler_the_rest_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise CuasmrlError("nvcc is missing")

    with monkeypatch.context() as without:
        without.setattr("cuasmrl.workloads.cuda_compiler.identity", missing)
        compiled.cache_clear()
        missing_compiler.cache_clear()
        assert missing_compiler() == "Compiled kernels are skipped: nvcc is missing"
    compiled.cache_clear()
    missing_compiler.cache_clear()
    assert not missing_compiler()
    found = compare(ROWS["V0106"], kernels=False)
    assert found.compiled is None
    assert found.model is not None
