"""Kernels that exist to be mined: they compile, can be read, and have the instructions they are there for."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble
from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import ARCHS, build_evidence, evidence
from cuasmrl.workloads.cuda_compiler import find_nvcc

OLD = 80
NO_KERNELS = {
    ("clusters", 75), ("clusters", 80), ("clusters", 86), ("clusters", 89),
    ("specific", 75), ("specific", 80), ("specific", 86), ("specific", 89),
    ("matrix_double", 75), ("matrix_sparse", 75),
}  # fmt: skip
UNDECLARED = {"I2I", "UF2FP", "UF2IP", "UR2UP"}
"""Opcodes that compilers write here and `opcodes.py` does not know yet; their blocks are not mined."""

# What each theme is there for: opcodes on the old chip, and more of them on the new one.
INTENDED = {
    "bits": ("BMSK SGXT PRMT SHF POPC FLO BREV IABS VABSDIFF", "VIMNMX"),
    "calls": ("CALL RET BRX BMOV", "R2P"),
    "clusters": ("", "SYNCS UBLKCP UCGABAR_ARV ELECT STAS"),
    "convert": ("F2I I2F F2F FRND F2FP", "F2IP I2FP"),
    "cross_predicates": ("ISETP FSETP HSETP2 PLOP3 VOTE P2R", "HSETP2"),
    "cross_takers": ("MUFU POPC SHFL REDUX MATCH ATOMS ATOMG LDSM MOVM HMMA", "FLO"),
    "cross_uniform": ("UIADD3 ULOP3 USHF ULEA UIMAD UPRMT UFLO", "LDCU UPOPC"),
    "cross_values": ("IMAD LOP3 VABSDIFF4 IDP I2IP HMNMX2 FSET HSET2", "I2FP VIADD"),
    "cross_wide": ("DADD DFMA CS2R", "CS2UR"),
    "double": ("DADD DMUL DFMA DSETP MUFU", "I2F"),
    "fragments": ("LDSM MOVM HMMA", "STSM"),
    "half": ("HADD2 HMUL2 HFMA2 HMNMX2 HSET2 HSETP2 F2FP", "FHADD FHFMA"),
    "integer": ("IADD3 IMAD LOP3 SEL FSEL", "IADD MOV"),
    "lanes": ("VOTE VOTEU MATCH SHFL REDUX", "ELECT"),
    "local": ("LDL STL", "R2UR"),
    "matrix_double": ("DMMA", "DMMA"),
    "matrix_half": ("HMMA", "QMMA"),
    "matrix_integer": ("IMMA BMMA", "MOVM"),
    "matrix_sparse": ("HMMA IMMA", "QMMA"),
    "memory": ("LDGSTS LDGDEPBAR LDC B2R NANOSLEEP CS2R LD ST", "LDCU"),
    "ordered": ("MEMBAR ERRBAR CCTL ATOM ATOMG RED LD ST", "CGAERRBAR FENCE REDG"),
    "overwrite": ("FFMA DFMA LDS LDG", "IADD"),
    "packed": ("IDP I2IP VABSDIFF4 IMNMX", "I2I F2IP VIMNMX"),
    "predicates": ("PLOP3 P2R R2P BSSY", "PLOP3 ISETP"),
    "single": ("MUFU FMNMX FSET FCHK FRND", "FMNMX"),
    "specific": ("", "OMMA QMMA F2FP LDSM STSM"),
    "uniform": ("UIADD3 UIMAD USEL UISETP UBREV UBMSK USGXT", "UFADD UFFMA UFSETP UI2FP UVIMNMX"),
    "wide": ("IMAD IADD3 ISETP", "IADD IMNMX"),
}

Build = Callable[[str, int], Cubin]


@pytest.fixture(scope="session")
def compiled(kept: Callable[[str, list[str], str], bytes]) -> Build:
    """compiled(theme, arch): one of the files, by nvcc alone, kept from run to run."""
    headers = "".join(path.read_text() for path in sorted(evidence.SOURCES.glob("*.cuh")))
    digest = hashlib.sha256(headers.encode()).hexdigest()

    def build(theme: str, arch: int) -> Cubin:
        target = f"sm_{arch}a" if theme == evidence.SPECIFIC and arch >= 90 else f"sm_{arch}"
        options = [
            "-cubin",
            f"-arch={target}",
            "-std=c++17",
            "-w",
            f"-I{evidence.SOURCES}",
            f"-DHEADERS={digest}",
        ]
        source = (evidence.SOURCES / f"{theme}.cu").read_text()
        return Cubin.parse(kept(source, [str(find_nvcc()), *options], ".cu"), f"{theme}-sm_{arch}.cubin")

    return build


def combinations(archs: tuple[int, ...]) -> list[tuple[str, int]]:
    return [(theme, arch) for theme in evidence.themes() for arch in archs if (theme, arch) not in NO_KERNELS]


def check(listings: dict[str, Listing]) -> set[str]:
    """The opcodes; all of them known, or named above."""
    instructions = [i for listing in listings.values() for i in listing.instructions]
    assert {i.opcode for i in instructions if i.declaration is None} <= UNDECLARED
    return {i.opcode for i in instructions}


@pytest.mark.parametrize(("theme", "arch"), combinations((OLD,)))
def test_it_compiles_and_has_what_it_is_there_for(theme: str, arch: int, compiled: Build) -> None:
    old, new = INTENDED[theme]
    seen = check(disassemble(compiled(theme, arch)))
    assert set((old if arch == OLD else new).split()) <= seen


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "arch"), combinations(tuple(a for a in ARCHS if a != OLD)))
def test_it_compiles_for_every_chip(theme: str, arch: int, compiled: Build) -> None:
    check(disassemble(compiled(theme, arch)))


def test_every_theme_is_in_the_table() -> None:
    assert set(INTENDED) == set(evidence.themes())


def test_cubins_stand_where_mining_looks_for_them(tmp_path: Path) -> None:
    settled: list[tuple[int, int]] = []
    corpus = build_evidence(
        tmp_path, [75, 80], jobs=1, names=["fragments", "matrix_double"],
        progress=lambda _, done, total: settled.append((done, total)),
    )  # fmt: skip
    tool = evidence.find_assembler().name
    wanted = {(75, "fragments"), (80, "fragments"), (80, "matrix_double")}
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == {
        f"sm_{arch}/evidence-{theme}-{level}-{tool}.cubin"
        for arch, theme in wanted
        for level in evidence.LEVELS
    }
    assert {(entry.arch, entry.workload) for entry in corpus.missing} == {(75, "evidence-matrix_double")}
    assert {entry.reason for entry in corpus.missing} == {"matrix_double.cu has no kernel for sm_75."}
    assert settled == [(done, 8) for done in range(1, 9)]
    for entry in corpus.built:
        assert entry.path is not None
        assert Cubin.load(entry.path).arch == entry.arch


def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        build_evidence(tmp_path / folder, [80], jobs=1, names=["calls"])
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / f).rglob("*.cubin")} for f in ("one", "two"))
    assert one == two
    assert len(one) == len(evidence.LEVELS)


def test_an_older_ptxas_is_told_its_own_version(triton_tool: Callable[[str], Path], tmp_path: Path) -> None:
    """Triton's ptxas is older than nvcc and writes the container of CUDA 12."""
    older = evidence.find_assembler(triton_tool("ptxas"))
    corpus = build_evidence(tmp_path, [80], [older.path], jobs=1, names=["fragments"])
    assert corpus.missing == ()
    assert {entry.config for entry in corpus.built} == {
        f"{level}-{tool.name}" for level in evidence.LEVELS for tool in (older, evidence.find_assembler())
    }


@pytest.mark.parametrize(
    ("release", "ptx"), [((12, 0), (8, 0)), ((12, 6), (8, 5)), ((12, 9), (8, 8)), ((13, 4), (9, 4))]
)
def test_versions_of_ptx(release: tuple[int, int], ptx: tuple[int, int]) -> None:
    assert evidence.Assembler(Path("ptxas"), release).ptx_version == ptx


def test_what_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="no evidence called halfs; choose of bits, calls,"):
        build_evidence(tmp_path, [80], names=["halfs"])
    with pytest.raises(CuasmrlError, match="sm_70 is not a chip"):
        build_evidence(tmp_path, [70])
    with pytest.raises(CuasmrlError, match="no ptxas in"):
        build_evidence(tmp_path, [80], [tmp_path])
    assert list(tmp_path.iterdir()) == []
