"""The picture: valid, small, the same every time, and its numbers are those of the data."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.columns import shortened
from cuasmrl.explain.report.loop import ConfirmedGain, HotLoop, hot_loop, telling, window
from cuasmrl.explain.report.palette import REASON_COLOURS
from cuasmrl.explain.report.run import picture_of_run
from cuasmrl.explain.report.svg import HEIGHT, WIDTH, draw
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.schedule import Schedule
from tests.traced_kernels import rescheduled, traced

KERNELS = ["softmax", "gemm_leaky_relu", "vector_add"]
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((Path(__file__).parents[3] / "docs" / "pictures").glob("*-loop.svg"))
REASONS = [REASON_NAMES[reason] for reason in REASON_COLOURS if reason is not Reason.ISSUED]
MOST_BYTES = 150_000
MODELLED = ConfirmedGain(0.0688, 0.0356, 0.1, 0.0977, 16, "virtual:a100")


@lru_cache
def loop(name: str) -> HotLoop:
    return hot_loop(traced(name), rescheduled(name), seeds=range(2))


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def texts(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in parsed(picture).iter(f"{SVG}text")]


def drawn(picture: str, looks: str) -> Iterator[str]:
    """The data of paths that look like this."""
    for element in parsed(picture).iter(f"{SVG}path"):
        if element.get("class") == looks:
            yield element.get("d", "")


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_an_svg_that_says_what_it_shows(name: str) -> None:
    picture = draw(loop(name))
    root = parsed(picture)
    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert f"{name} {traced(name).config}: the hot " in (title.text or "")
    assert "Modelled cycles of one warp for one " in (description.text or "")
    assert root.get("viewBox") == f"0 0 {WIDTH} {root.get('height')}"
    assert float(root.get("height", "0")) <= HEIGHT
    assert len(picture.encode()) < MOST_BYTES


@pytest.mark.parametrize("reasons", [1, 2, 14])
def test_it_stays_small_however_long_the_loop_is(reasons: int) -> None:
    found = loop("softmax")
    rows = [
        tuple(
            replace(row, index=index, position=index, waits=dict.fromkeys(REASONS[:reasons], row.executions))
            for index in order
            for row in side.rows[:1]
        )
        for side, order in ((found.before, range(5000)), (found.after, [*range(2500, 5000), *range(2500)]))
    ]
    before, after = (replace(side, rows=r) for side, r in zip((found.before, found.after), rows, strict=True))
    long = replace(found, before=before, after=after, moved=frozenset(range(2500)))
    assert len(draw(long).encode()) < MOST_BYTES


@pytest.mark.parametrize("name", KERNELS)
def test_it_needs_nothing_from_elsewhere(name: str) -> None:
    """GitHub shows pictures without scripts, fonts or anything else that would have to be fetched."""
    picture = draw(loop(name))
    assert "<script" not in picture
    assert not re.search(r"url\(|@import|@font-face|href|\bon\w+=", picture)
    assert picture.count("http") == picture.count("http://www.w3.org/2000/svg") == 1


def test_it_is_the_same_every_time() -> None:
    kernel, schedule = traced("gemm_leaky_relu"), rescheduled("gemm_leaky_relu")
    again = hot_loop(kernel, schedule, seeds=range(2))
    assert draw(again) == draw(loop("gemm_leaky_relu"))


def test_light_and_dark() -> None:
    picture = draw(loop("gemm_leaky_relu"))
    style = parsed(picture).find(f"{SVG}style")
    assert style is not None
    light, _, dark = (style.text or "").partition("@media (prefers-color-scheme:dark)")
    coloured = re.compile(r"(\.hotloop [\w.]+)\{(?:fill|stroke|color):#")
    assert set(coloured.findall(light)) == set(coloured.findall(dark)) != set()
    known = set(re.findall(r"\.([a-z]\w*)", style.text or "")) - {"hotloop"}
    used = {name for element in parsed(picture).iter() for name in (element.get("class") or "").split()}
    assert used - {"hotloop"} <= known


@pytest.mark.parametrize("name", KERNELS)
def test_the_legend_sums_to_the_totals(name: str) -> None:
    found = loop(name)
    said = texts(draw(found))
    entries = [re.match(r"([\d,.]+) → ([\d,.]+)(  |$)", line) for line in said]
    sums = [sum(float(entry[k].replace(",", "")) for entry in entries if entry) for k in (1, 2)]
    totals = [found.per_iteration(side.cycles) for side in (found.before, found.after)]
    assert sums == pytest.approx([round(total, 1) for total in totals], abs=0.01)
    assert f"{totals[0]:,.1f} → {totals[1]:,.1f} cycles" in said
    for reason in found.before.reasons:
        if found.per_iteration(found.before.reasons[reason]) >= 0.1:
            assert reason in said


@pytest.mark.parametrize("name", KERNELS)
def test_the_strips_are_as_long_as_an_iteration(name: str) -> None:
    found = loop(name)
    lengths: dict[str, float] = {}
    for element in parsed(draw(found)).iter(f"{SVG}path"):
        if (element.get("class") or "").startswith("lane"):
            pieces = re.findall(r"M[\d.]+ ([\d.]+)h([\d.]+)", element.get("d", ""))
            for top, width in pieces:
                lengths[top] = lengths.get(top, 0.0) + float(width)
    before, after = (lengths[top] for top in sorted(lengths, key=float))
    # Pieces that nobody would see are left out.
    assert before / after == pytest.approx(found.before.cycles / found.after.cycles, rel=0.02)


def test_what_matters_most_is_thick() -> None:
    found = loop("gemm_leaky_relu")
    picture = draw(found)
    lines = list(parsed(picture).iter(f"{SVG}g"))
    seen = window(found, len(lines) // 2)
    thick = telling(found, seen, 8)
    inside = [i for i in thick if found.before.place[i] in seen and found.after.place[i] in seen]
    between_strips, between_columns = drawn(picture, "strong")
    assert between_strips.count("M") == len(thick) > 0
    assert between_columns.count("M") == len(inside)
    bold = [e for e in parsed(picture).iter(f"{SVG}text") if (e.get("class") or "").endswith("code bold")]
    shown = [row.index for s in (found.before, found.after) for row in s.rows[seen.start : seen.stop]]
    assert len(bold) == sum(index in thick for index in shown)


def test_a_short_loop_is_shown_whole() -> None:
    found = loop("vector_add")
    lines = texts(draw(found, height=3000))
    assert f"All {len(found.before.rows)} instructions." in " ".join(lines)
    few = texts(draw(found, height=400))
    assert any(f" of {len(found.before.rows)} instructions (shaded above)." in line for line in few)


def test_what_is_claimed() -> None:
    found = loop("gemm_leaky_relu")
    assert "not confirmed" in texts(draw(found))
    lines = texts(draw(replace(found, gain=MODELLED)))
    assert "+6.9 % confirmed" in lines
    (detail,) = (line for line in lines if line.startswith("whole kernel"))
    assert "median over 16 chips, middle 90 % +3.6 to +10.0 %; nominal chip " in detail
    assert detail.endswith(" cycles, +9.8 %")
    assert f"modelled on {found.chip}" in lines
    lines = texts(draw(replace(found, gain=replace(MODELLED, device="cuda:0", members=200))))
    assert "whole kernel on cuda:0: median of 200 rounds, +3.6 to +10.0 %" in lines


def test_names_are_escaped() -> None:
    found = replace(loop("vector_add"), kernel="a<b>&c")
    assert "a<b>&c" in " ".join(texts(draw(found)))


def test_sass_is_shortened_alike_for_an_opcode() -> None:
    given = [
        "HMMA.16816.F32 R4, R36.reuse, R2, R4",
        "LDSM.16.MT88.4 R40, [R71+UR5+0x1000]",
        "LDSM.16.M88.4 R36, [R68]",
        "@!P5 BRA `(.L_x_1)",
        "@P0 LDGSTS.E.BYPASS.LTC128B.128 [R77+0x1000], [R112.64], P5",
        "EXIT",
    ]
    assert shortened(given, 28) == [
        "HMMA.16816 R4, R36, R2, R4",
        "LDSM R40, [R71+UR5+0x1000]",
        "LDSM R36, [R68]",
        "@!P5 BRA `(.L_x_1)",
        "@P0 LDGSTS [R77+0x1000], [R…",
        "EXIT",
    ]
    assert shortened(given, 100) == [text.replace(".reuse", "") for text in given]


_SEEN_BY = {
    "all": np.eye(3),
    # Machado, Oliveira, Fernandes 2009, severity 1.0.
    "protanopes": np.array([
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopes": np.array([
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanopes": np.array([
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip


def lab(colour: str, who: str) -> npt.NDArray[np.float64]:
    """CIELAB of a colour as somebody sees it: a distance of 2 is just seen, 10 at a glance."""
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(_SEEN_BY[who] @ linear, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("who", _SEEN_BY)
@pytest.mark.parametrize("dark", [0, 1], ids=["light", "dark"])
def test_reasons_can_be_told_apart(who: str, dark: int) -> None:
    assert set(REASON_COLOURS) == set(Reason) - {Reason.NO_WARP}
    for one, other in combinations(REASON_COLOURS, 2):
        colours = (lab(REASON_COLOURS[reason][dark], who) for reason in (one, other))
        assert np.linalg.norm(np.subtract(*colours)) > 15, (one.name, other.name)


def written(path: Path, best: Schedule | None) -> Path:
    """A run of a small product, as `cuasmrl optimize` leaves it."""
    kernel = traced("gemm_leaky_relu")
    source = {"workload": kernel.name, "config": kernel.config, "sizes": dict(kernel.sizes)}
    digest = hashlib.sha256(kernel.cubin.data).hexdigest()
    config = RunConfig(source, kernel.name, digest, "", "virtual:a100", "nobody", {}, 7, 3, versions={})
    run = RunDirectory.create(path, config)
    run.keep_original(kernel.cubin, None)
    if best is not None:
        run.keep_best(best, 1.0)
    return path


def test_the_picture_of_a_run(tmp_path: Path) -> None:
    best = rescheduled("gemm_leaky_relu")
    path = written(tmp_path / "run", best)
    picture = picture_of_run(path)
    assert "not confirmed" in texts(picture)
    gain = {"median": 0.02, "low": 0.01, "high": 0.03, "nominal": 0.02, "members": [0.02] * 4}
    verdict = {"accepted": True, "device": "virtual:a100", "schedule": best.key.hex(), "gain": gain}
    RunDirectory.open(path).finish(verdict, None, None)
    confirmed = picture_of_run(path)
    assert "+2.0 % confirmed" in texts(confirmed)
    assert confirmed == picture_of_run(path)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_pictures_of_the_pages_are_such_pictures(path: Path) -> None:
    picture = path.read_text(encoding="utf-8")
    assert parsed(picture).get("role") == "img"
    assert len(picture.encode()) < MOST_BYTES
    assert any(line.endswith(" % confirmed") for line in texts(picture))


def test_a_run_that_found_nothing_has_no_picture(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="nothing faster than the original, so there is nothing to draw"):
        picture_of_run(written(tmp_path / "run", None))
