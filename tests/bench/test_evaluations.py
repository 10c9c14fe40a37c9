"""What an evaluation of a search costs, on a small kernel."""

from cuasmrl.bench.evaluations import evaluations_of, evaluations_table
from tests.traced_kernels import traced


def test_figures_of_a_small_kernel() -> None:
    found = evaluations_of(traced("softmax"), count=20)
    assert min(found.time_only, found.attributing, found.table, found.moves) > 0
    assert found.evaluations_per_second > 0
    assert evaluations_table([found]).row_count == 1
