"""Who gets the next evaluations."""

from cuasmrl.deploy.fleet.budgets import Standing, next_round


def test_first_everybody_gets_a_slice_and_the_most_promising_first() -> None:
    kernels = {"small": Standing(0.1, 0.5), "large": Standing(0.8, 0.1), "done": Standing(0.1, 0.0)}
    assert next_round(kernels, 12, 1) == ["large", "small", "done"]
    assert next_round(kernels, 2, 1) == ["large", "small"]


def test_then_those_that_gain_most_for_the_program() -> None:
    kernels = {
        "gaining": Standing(0.2, 0.5, (0.05, 0.10)),
        "large": Standing(0.7, 0.5, (0.05, 0.06)),
        "stuck": Standing(0.1, 0.5, (0.05, 0.05, 0.05)),
        "over": Standing(0.9, 0.5, (0.1, 0.3), is_over=True),
    }
    # The one behind has gained little by its last slice, but a little before that.
    assert next_round(kernels, 5, 2) == ["large", "gaining"]
    assert next_round(kernels, 1, 2) == ["large"]
    assert next_round(kernels, 0, 2) == []
    assert "stuck" not in next_round(kernels, 5, 4)


def test_nobody_is_expected_to_gain_more_than_there_is() -> None:
    kernels = {"near": Standing(0.9, 0.1001, (0.02, 0.1)), "far": Standing(0.1, 0.5, (0.02, 0.1))}
    assert next_round(kernels, 2, 1) == ["far"]


def test_a_first_slice_without_gain_is_not_the_last() -> None:
    assert next_round({"k": Standing(1.0, 0.2, (0.0,))}, 2, 1) == ["k"]
    assert next_round({"k": Standing(1.0, 0.2, (0.0, 0.0))}, 2, 1) == []


def test_nothing_recorded() -> None:
    assert next_round({}, 0, 1) == []
