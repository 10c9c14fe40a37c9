"""Reading mnemonics: the forms with a model, and the refusals."""

import pytest

from cuasmrl.gpu.emulator.tensor import accumulations, matrix_form


@pytest.mark.parametrize(
    ("mnemonic", "arch", "shape", "types", "registers"),
    [
        ("HMMA.1688.F32", 75, (16, 8, 8), ("F16", "F16", "F32"), (2, 1, 4)),
        ("HMMA.1688.F16", 75, (16, 8, 8), ("F16", "F16", "F16"), (2, 1, 2)),
        ("HMMA.16816.F32", 80, (16, 8, 16), ("F16", "F16", "F32"), (4, 2, 4)),
        ("HMMA.16816.F16", 90, (16, 8, 16), ("F16", "F16", "F16"), (4, 2, 2)),
        ("HMMA.16816.F32.BF16", 86, (16, 8, 16), ("BF16", "BF16", "F32"), (4, 2, 4)),
        ("HMMA.1688.F32.BF16", 100, (16, 8, 8), ("BF16", "BF16", "F32"), (2, 1, 4)),
        ("HMMA.1684.F32.TF32", 80, (16, 8, 4), ("TF32", "TF32", "F32"), (2, 1, 4)),
        ("HMMA.1688.F32.TF32", 120, (16, 8, 8), ("TF32", "TF32", "F32"), (4, 2, 4)),
        ("IMMA.8816.S8.S8", 75, (8, 8, 16), ("S8", "S8", "S32"), (1, 1, 2)),
        ("IMMA.16816.U8.S8", 80, (16, 8, 16), ("U8", "S8", "S32"), (2, 1, 4)),
        ("IMMA.16832.S8.S8.SAT", 120, (16, 8, 32), ("S8", "S8", "S32"), (4, 2, 4)),
        ("IMMA.8832.S4.S4", 75, (8, 8, 32), ("S4", "S4", "S32"), (1, 1, 2)),
        ("IMMA.16832.S4.U4", 80, (16, 8, 32), ("S4", "U4", "S32"), (2, 1, 4)),
        ("IMMA.16864.U4.U4", 89, (16, 8, 64), ("U4", "U4", "S32"), (4, 2, 4)),
        ("QMMA.16832.F32.E4M3.E5M2", 89, (16, 8, 32), ("E4M3", "E5M2", "F32"), (4, 2, 4)),
        ("QMMA.16816.F16.E5M2.E5M2", 120, (16, 8, 16), ("E5M2", "E5M2", "F16"), (2, 1, 2)),
        ("DMMA.884", 80, (8, 8, 4), ("F64", "F64", "F64"), (2, 2, 4)),
        ("DMMA.8x8x4", 100, (8, 8, 4), ("F64", "F64", "F64"), (2, 2, 4)),
        ("DMMA.16x8x16", 90, (16, 8, 16), ("F64", "F64", "F64"), (16, 8, 8)),
    ],
)
def test_forms(
    mnemonic: str,
    arch: int,
    shape: tuple[int, int, int],
    types: tuple[str, str, str],
    registers: tuple[int, int, int],
) -> None:
    form = matrix_form(mnemonic, arch)
    assert (form.m, form.n, form.k) == shape
    assert (form.a, form.b, form.accumulator) == types
    assert (form.a_registers, form.b_registers, form.c_registers) == registers
    assert form.d_registers == form.c_registers
    assert form.saturate is mnemonic.endswith(".SAT")


@pytest.mark.parametrize(
    ("mnemonic", "arch"),
    [
        ("HMMA.884.F32.F32.STEP0", 75),
        ("HMMA.16816.F32", 75),
        ("HMMA.16816.F32", 70),
        ("HMMA.16816.F16.BF16", 80),
        ("HMMA.SP.16816.F32", 80),
        ("HMMA.16832.SP.F32", 80),
        ("HMMA.16816.F32.SAT", 80),
        ("HMMA", 80),
        ("IMMA.16832.S8", 80),
        ("IMMA.16832.S8.S4", 80),
        ("IMMA.16864.S4.S4", 90),
        ("IMMA.8816.S8.S8", 120),
        ("IMMA.16832.S8.S8.SAT.SAT", 80),
        ("QMMA.16832.F32.E4M3.E4M3", 90),
        ("QMMA.16832.F32.E3M2.E4M3", 120),
        ("QMMA.SF.16832.F32.E4M3.E4M3.E8", 120),
        ("DMMA.16x8x8", 80),
        ("BMMA.168128.AND.POPC", 80),
        ("HGMMA.64x64x16.F32", 90),
        ("FFMA", 80),
    ],
)
def test_refusals_are_one_sentence(mnemonic: str, arch: int) -> None:
    with pytest.raises(ValueError, match=rf"^{mnemonic}\b.*\.$"):
        matrix_form(mnemonic, arch)


def test_every_row_of_the_table_says_where_it_comes_from() -> None:
    for how in accumulations().values():
        assert how.certainty in ("measured", "inferred", "assumed")
        assert how.source
        # What the sums in 32 bits are sized for.
        assert how.block in (4, 8, 16, 32)
        assert how.fraction_bits <= 25
