"""What deployment costs, measured here; the numbers of a busy machine are only bounded from above."""

import pytest
from rich.console import Console

from cuasmrl.bench.deploy import DeployFigures, deploy_table, deploying


def test_the_table_names_cost_and_bound() -> None:
    console = Console(width=120)
    with console.capture() as text:
        console.print(
            deploy_table([DeployFigures("shim", "a kernel", 43.9, 33.5, 53.0, 30.1, "ms", "100 ms")])
        )
    assert text.get().splitlines()[1].split("  ")[-1].strip() == "100 ms"
    assert "33.50 ms" in text.get()


@pytest.mark.slow
def test_deployment_is_cheap() -> None:
    figures = {figure.what: figure for figure in deploying(lambda done, total: None)}
    for what in ("nothing stored", "stored"):
        assert figures[f"lookup, {what}"].processor < 5
        assert figures[f"shim, {what}"].processor < 100
    assert figures["launch"].added < 0.05 * figures["launch"].before
