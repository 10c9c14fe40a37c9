"""F2FP in its many shapes."""

from math import inf, nan

import ml_dtypes
import numpy as np
import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute


@pytest.mark.parametrize("dot", ["", ".F16.F32"])
def test_the_first_operand_goes_to_the_upper_half(dot: str) -> None:
    assert execute(f"F2FP{dot}.PACK_AB R1, R2, R3", R2=1.0, R3=-2.0).one("R1") == 0x3C00_C000
    assert execute(f"F2FP{dot}.PACK_AB R1, RZ, -R3", R3=-2.0).one("R1") == 0x0000_4000


@pytest.mark.parametrize("dot", [".BF16", ".BF16.F32"])
def test_bfloats(dot: str) -> None:
    tie, above = 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-23
    assert execute(f"F2FP{dot}.PACK_AB R1, R2, R3", R2=tie, R3=above).one("R1") == 0x3F80_3F81
    assert execute(f"F2FP{dot}.PACK_AB.RZ R1, R2, R3", R2=-above, R3=above).one("R1") == 0xBF80_3F80
    assert execute(f"F2FP{dot}.PACK_AB R1, R2, R3", R2=nan, R3=-inf).one("R1") == 0x7FFF_FF80
    assert execute(f"F2FP{dot}.PACK_AB R1, R2, R3", R2=3.4e38, R3=1).one("R1") == 0x7F80_0000


def test_halves() -> None:
    assert execute("F2FP.PACK_AB R1, R2, R3", R2=0xFFC0_0001, R3=65520.0).one("R1") == 0x7FFF_7C00
    assert execute("F2FP.PACK_AB.RZ R1, R2, R3", R2=65535.0, R3=-1e9).one("R1") == 0x7BFF_FBFF
    assert execute("F2FP.PACK_AB R1, R2, R3", R2=2.0**-25, R3=1.5 * 2.0**-25).one("R1") == 0x0000_0001
    assert execute("F2FP.RELU.PACK_AB R1, R2, R3", R2=-1.0, R3=nan).one("R1") == 0x0000_7FFF
    assert execute("F2FP.RELU.BF16.F32.PACK_AB R1, R2, R3", R2=2.0, R3=-0.0).one("R1") == 0x4000_0000
    assert execute("F2FP.RELU.MERGE_C R1, R2, RZ", R2=2.0).one("R1") == 0x4000


def test_all_operands_of_a_sweep() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        a, b = (random.integers(0, 2**32, 32, np.uint32) for _ in range(2))
        for dot, kind in ((".F16", np.float16), (".BF16", ml_dtypes.bfloat16)):
            found = execute(f"F2FP{dot}.F32.PACK_AB R1, R2, R3", R2=a, R3=b)["R1"]
            with np.errstate(all="ignore"):
                upper, lower = (
                    x.view(np.float32).astype(kind).view(np.uint16).astype(np.uint32) for x in (a, b)
                )
            number = ~(np.isnan(a.view(np.float32)) | np.isnan(b.view(np.float32)))
            assert (found == (upper << 16 | lower))[number].all()


def test_tensor_floats() -> None:
    assert execute("F2FP.TF32.F32.PACK_B R1, R2", arch=90, R2=0x3F80_1000).one("R1") == 0x3F80_0000
    assert execute("F2FP.TF32.F32.PACK_B R1, R2", arch=90, R2=0x3F80_3000).one("R1") == 0x3F80_4000
    assert execute("F2FP.TF32.F32.PACK_B R1, R2", arch=90, R2=0xFFFF_FFFF).one("R1") == 0x7FFF_FFFF
    assert execute("F2FP.TF32.F32.PACK_B R1, R2", arch=90, R2=inf).single("R1") == inf


@pytest.mark.parametrize(
    ("name", "kind"), [("E4M3", ml_dtypes.float8_e4m3fn), ("E5M2", ml_dtypes.float8_e5m2)]
)
def test_every_byte_widens(name: str, kind: type) -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = codes.view(kind).astype(np.float16)
    found = np.concatenate(
        [
            execute(
                f"F2FP.F16.{name}.UNPACK_B R1, R2.H1", arch=90, R2=part.astype(np.uint32) << 24 | 0x55_1234
            )["R1"]
            for part in np.split(codes, 8)
        ]
    )
    upper = (found >> 16).astype(np.uint16)
    assert (np.isnan(upper.view(np.float16)) == np.isnan(expected)).all()
    number = ~np.isnan(expected)
    assert (upper[number] == expected.view(np.uint16)[number]).all()
    assert (upper[~number] == 0x7FFF).all()
    assert execute(f"F2FP.F16.{name}.UNPACK_B R1, R2", arch=90, R2=0x3C_0001).one("R1") >> 16 == 0


@pytest.mark.parametrize(
    ("name", "kind", "largest"),
    [("E4M3", ml_dtypes.float8_e4m3fn, 448.0), ("E5M2", ml_dtypes.float8_e5m2, 57344.0)],
)
def test_narrowing_to_bytes(name: str, kind: type, largest: float) -> None:
    random = np.random.default_rng(3)
    text = f"F2FP.SATFINITE.{name}.F32.PACK_AB_MERGE_C R1, R2, R3, R4"
    codes = np.arange(0x7B, dtype=np.uint8).view(kind).astype(np.float32)
    ties = (codes[:-1] + codes[1:]) / 2
    for _ in range(20):
        a = random.choice(np.concatenate([codes, ties, -ties]), 32)
        b = (random.standard_normal(32) * 2.0 ** random.integers(-20, 8, 32)).astype(np.float32)
        b = np.clip(b, -largest, largest)
        found = execute(text, arch=90, R2=a, R3=b, R4=0xDEAD_BEEF)["R1"]
        upper, lower = (x.astype(kind).view(np.uint8).astype(np.uint32) for x in (a, b))
        assert (found == (0xBEEF_0000 | upper << 8 | lower)).all()


def test_bytes_saturate() -> None:
    text = "F2FP.SATFINITE.{}.F32.PACK_AB_MERGE_C R1, R2, R3, RZ"
    assert execute(text.format("E4M3"), arch=90, R2=1e9, R3=-inf).one("R1") == 0x7EFE
    assert execute(text.format("E5M2"), arch=90, R2=inf, R3=nan).one("R1") == 0x7B7F
    assert execute(text.format("RELU.E4M3"), arch=90, R2=-1.0, R3=1.0).one("R1") == 0x0038


def test_bytes_from_halves() -> None:
    text = "F2FP.SATFINITE.E4M3.F16.UNPACK_B_MERGE_C R1, R2, R3"
    assert execute(text, arch=90, R2=0xC000_3C00, R3=0x1234).one("R1") == 0x1234_C038


@pytest.mark.parametrize(
    "text",
    ["F2FP.RELU.MERGE_C R1, R2, R3", "F2FP.BF16.E8.UNPACK_B R1, R2", "F2FP.F16.F32.PACK_AB.RS R1, R2, R3, R4",
     "F2FP.RELU.F16.E4M3.UNPACK_B R1, R2", "F2FP.E4M3.F32.PACK_AB_MERGE_C R1, R2, R3, RZ"],
)  # fmt: skip
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text, arch=100)
