"""Finding nvdisasm, and what happens when it is missing, too old, slow or says something strange."""

import importlib.util
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble, disassemble_kernel, disassembler, find_nvdisasm
from cuasmrl.errors import CuasmrlError
from tests.binary.sass.conftest import Samples
from tests.conftest import CompileCuda


class Fake:
    """A stand-in for nvdisasm: a shell script that says it is a release, and then does as told."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        monkeypatch.setenv(disassembler.OVERRIDE, str(path))

    def says(self, release: str, body: str = "") -> None:
        version = f"Cuda disassembler, release {release}, V{release}.80"
        self.path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; exit; fi\n{body}\n')
        self.path.chmod(0o755)


@pytest.fixture
def cubin(samples: Samples) -> Cubin:
    return samples("mma", "sm_75").cubin


@pytest.fixture
def fake(cubin: Cubin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Comes after `cubin`, which is made with the real one."""
    return Fake(tmp_path / "nvdisasm", monkeypatch)


@pytest.fixture
def two_kernels(compile_cuda: CompileCuda) -> Cubin:
    kernel = 'extern "C" __global__ void {0}(int *p, int n) {{ p[threadIdx.x] = {1}; }}'
    source = kernel.format("divides", "p[threadIdx.x] / n") + "\n" + kernel.format("adds", "n + 1")
    return Cubin.parse(compile_cuda(source, "sm_80"), "two kernels")


def refusal(cubin: Cubin) -> str:
    with pytest.raises(CuasmrlError) as caught:
        disassemble(cubin)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message


def test_the_one_of_triton_is_found() -> None:
    tool = find_nvdisasm()
    assert tool.version >= (13, 0)
    assert "triton" in tool.path


def test_none_at_all(monkeypatch: pytest.MonkeyPatch, cubin: Cubin) -> None:
    monkeypatch.setattr(disassembler, "_candidates", lambda: iter(()))
    message = refusal(cubin)
    assert message.startswith("no nvdisasm found; pip install triton")
    assert "13.0 or newer" in message


def test_path_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = tmp_path / "nvdisasm"
    on_path.write_text("#!/bin/sh\n")
    on_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(disassembler.OVERRIDE, raising=False)
    assert list(disassembler._candidates())[-1] == str(on_path)
    monkeypatch.setattr(disassembler, "_PLACES", ())
    assert list(disassembler._candidates()) == [str(on_path)]


def test_the_named_one_is_missing(fake: Fake, cubin: Cubin) -> None:
    message = refusal(cubin)
    assert f"{fake.path} does not say its version" in message
    assert disassembler.OVERRIDE in message


def test_too_old(fake: Fake, cubin: Cubin) -> None:
    fake.says("12.8")
    message = refusal(cubin)
    assert message.startswith("nvdisasm 13.0 or newer is needed, but ")
    assert f"{fake.path} is 12.8" in message


def test_old_is_enough_for_the_old_container(fake: Fake) -> None:
    fake.says("12.4")
    assert find_nvdisasm((12, 0)).version == (12, 4)


@pytest.mark.parametrize(("osabi", "arch", "minimum"), [(0x41, 75, 13), (0x33, 80, 12), (0x33, 100, 12)])
def test_minimum_release(osabi: int, arch: int, minimum: int) -> None:
    cubin = Cubin(b"", "x", arch, osabi, (), ())
    assert disassembler._minimum_version(cubin)[0] == minimum


def test_it_fails(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1", "echo 'nvdisasm warning : careful' >&2; echo 'nvdisasm error   : no' >&2; exit 3")
    message = refusal(cubin)
    assert message.startswith(f"nvdisasm 13.1 refuses {cubin.source} (nvdisasm error   : no)")


def test_it_fails_without_a_word(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1", "exit 7")
    assert "exit status 7" in refusal(cubin)


def test_it_never_ends(fake: Fake, cubin: Cubin, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.says("13.1", "exec sleep 60")
    monkeypatch.setattr(disassembler, "_TIMEOUT_SECONDS", 0.2)
    assert f"did not finish {cubin.source}" in refusal(cubin)


def test_it_goes_away_after_it_was_found(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1")
    find_nvdisasm((13, 0))
    fake.path.unlink()
    assert "cannot be started" in refusal(cubin)


def test_it_prints_nothing(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1", "exit 0")
    message = refusal(cubin)
    assert f"{cubin.source}, kernel " in message
    assert "lists 0 instructions for " in message


def test_it_prints_garbage(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1", "head -c 20000 /dev/urandom")
    assert "lists 0 instructions for " in refusal(cubin)


def test_one_instruction_is_missing(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1", f'"{_real()}" "$@" | sed "0,/NOP/{{/NOP/d}}"')
    kernel = cubin.kernels[0]
    count = len(kernel.words)
    assert f"kernel {kernel.name}: nvdisasm lists {count - 1} instructions for {count} words" in refusal(
        cubin
    )


def test_an_instruction_cannot_be_read(fake: Fake, cubin: Cubin) -> None:
    fake.says("13.1", f'"{_real()}" "$@" | sed "0,/EXIT/s/EXIT/<EXIT>/"')
    message = refusal(cubin)
    assert "address 0x" in message
    assert "cannot read '<EXIT>'" in message


def test_several_kernels_in_one_run(samples: Samples) -> None:
    cubin, listings = samples("mma", "sm_75")
    assert set(listings) == {"half", "integer"} == {kernel.name for kernel in cubin.kernels}
    one = disassemble_kernel(cubin, "half")
    assert one.instructions == listings["half"].instructions
    with pytest.raises(CuasmrlError, match="several kernels"):
        disassemble_kernel(cubin)


def test_unknown_instructions_are_listed(samples: Samples) -> None:
    listing = samples("textures", "sm_80").listings["textures"]
    assert {i.opcode for i in listing.unknown} == {"TEX", "TLD", "SUST"}


def _real() -> str:
    spec = importlib.util.find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "backends/nvidia/bin/nvdisasm")


def test_only_the_kernels_asked_for(two_kernels: Cubin) -> None:
    """Labels are numbered as they are printed, so the texts of branches may differ; all else is the same."""
    every = disassemble(two_kernels)
    for name, listing in every.items():
        alone = disassemble(two_kernels, [name])
        assert set(alone) == {name}
        for one, same in zip(alone[name].instructions, listing.instructions, strict=True):
            assert (one.word, one.target, one.defs, one.uses) == (
                same.word,
                same.target,
                same.defs,
                same.uses,
            )
    assert disassemble(two_kernels, list(every)) == every
    assert disassemble(two_kernels, ["no_such_kernel"]) == {}
