"""What notebooks show of results."""

from dataclasses import replace

from cuasmrl.explain.comparison import compare
from cuasmrl.markup import card
from cuasmrl.optimize import Optimized
from tests.explain.report.reading import Page
from tests.traced_kernels import rescheduled, traced


def test_a_run(played: Optimized) -> None:
    page = Page(played._repr_html_())
    (text,) = (said for a, said in page.all("div") if a["class"] == "cuasmrl")
    assert played.verdict.sentence in text
    rows = [said for _, said in page.all("tr")]
    assert len(rows) == 1 + len(played.verdict.checks)
    for check in played.verdict.checks:
        assert f"{check.name}{check.outcome.value}{check.sentence}" in rows


def test_a_replay() -> None:
    kernel = traced("softmax")
    result = kernel.model.simulate(kernel.original)
    page = Page(result._repr_html_())
    assert f"{result.cycles:,} modelled cycles" in page.text
    shares = [float(said[:-2]) for a, said in page.all("td") if "right" in a["style"]]
    assert abs(sum(shares) - 100) < 1


def test_a_comparison() -> None:
    kernel = traced("softmax")
    found = compare(kernel.model, kernel.original, rescheduled("softmax"), names=("<a>", "b"))
    page = Page(found._repr_html_())
    assert "<a>" not in page.text
    assert "&lt;a&gt;" in page.text
    for reason in found.reasons:
        assert f"{reason.reason}</td>" in page.text
    assert replace(found, reasons=())._repr_html_().count("<table>") == 0


def test_everything_is_escaped() -> None:
    page = Page(card("<b>", ["<i>"], ["<u>"], [["<s>", "+1"]]))
    assert not page.all("i")
    assert not page.all("u")
    assert not page.all("s")
    assert page.all("td")[1] == ({"style": "text-align:right"}, "+1")
