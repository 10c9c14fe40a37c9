"""ldmatrix and stmatrix against their definition in the PTX ISA."""

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Kernels, Load

Halves = npt.NDArray[np.uint16]


@pytest.fixture(scope="module", params=["sm_75", "sm_80", "sm_90", "sm_120"])
def matrices(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("matrices", request.param)


def tile(seed: int = 0) -> Halves:
    """32 rows of 8 halves."""
    return np.random.default_rng(seed).integers(0, 1 << 16, (32, 8), np.uint16)


def rows(count: int, seed: int = 1) -> npt.NDArray[np.int32]:
    """Where the rows of the matrices lie: all over the tile, no two in one place."""
    return np.random.default_rng(seed).permutation(32).astype(np.int32)[: 8 * count]


def fragments(matrix: Halves, transposed: bool) -> npt.NDArray[np.uint32]:
    """Lane l holds elements (l / 4, 2 (l % 4)) and the next of the row."""
    chosen = matrix.T if transposed else matrix
    pairs = np.ascontiguousarray(chosen).reshape(32, 2).astype(np.uint32)
    return pairs[:, 0] | pairs[:, 1] << np.uint32(16)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_load(matrices: Kernels, count: int, transposed: bool) -> None:
    data, where = tile(), rows(4)
    out = np.zeros((count, 32), np.uint32)
    matrices.run(f"load{count}{'t' if transposed else ''}", data, where, out)
    for k in range(count):
        assert (out[k] == fragments(data[where[8 * k : 8 * k + 8]], transposed)).all()


@pytest.mark.parametrize("chip", ["sm_90", "sm_120"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_store(load: Load, chip: str, count: int, transposed: bool) -> None:
    data, where = tile(2).reshape(4, 8, 8), rows(4)
    registers = np.stack([fragments(matrix, transposed) for matrix in data])
    out = np.zeros((32, 8), np.uint16)
    name = f"store{count}{'t' if transposed else ''}"
    load("matrices", chip).run(name, registers, where, out, np.int32(count))
    wanted = np.zeros((32, 8), np.uint16)
    wanted[where[: 8 * count]] = data[:count].reshape(-1, 8)
    assert (out == wanted).all()


def test_rows_are_aligned(matrices: Kernels) -> None:
    with pytest.raises(Fault, match=r"LDSM.*: 16 bytes of shared memory at 0x\w+ are not aligned to 16"):
        matrices.run("misaligned", tile(), np.zeros(32, np.uint32))


def test_a_row_that_nobody_has_written(matrices: Kernels) -> None:
    with pytest.raises(
        Fault, match=r"STG.*thread \(20, 0, 0\): uses R\d+, which LDSM.* read .*, never written"
    ):
        matrices.run("never_written", np.zeros(32, np.uint32))


def test_a_warp_that_is_not_full(load: Load) -> None:
    with pytest.raises(Fault, match="LDSM needs all lanes of a warp"):
        load("matrices", "sm_80").run("load1", tile(), rows(4), np.zeros(32, np.uint32), block=24)
