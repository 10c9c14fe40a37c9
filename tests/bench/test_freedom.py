"""`cuasmrl bench freedom`: what may move in loops with products of warpgroups."""

import json
from pathlib import Path

from cuasmrl import workloads
from tests.command import run


def test_a_loop_of_products_is_pinned_by_its_branch_alone(tmp_path: Path) -> None:
    workload = workloads.get("bmm")
    built = workload.build(workload.config("m128n128k64_w8_s3"), 90, workload.shapes[0])
    (tmp_path / "bmm.cubin").write_bytes(built.cubin)
    (row,) = json.loads(run("bench", "freedom", str(tmp_path), "--json"))
    assert (row["cubin"], row["blocks"], row["pinned"]) == ("bmm", 1, 1)
    assert 0 < row["unordered"] < row["instructions"] ** 2 / 2
    assert "bmm" in run("bench", "freedom", str(tmp_path))
