"""Run Triton workloads in Triton's interpreter; started by test_kernels.py in a process of its own."""

import json
import sys

from cuasmrl.bench.interpreter import run
from cuasmrl.workloads import get


def main() -> None:
    report = {}
    for name in sys.argv[1:]:
        workload = get(name)
        # A small tile keeps the interpreter quick; the largest one on a ragged shape is mostly masked.
        cases = [(sizes, workload.configs[1]) for sizes in workload.shapes]
        for sizes, config in [*cases, (workload.shapes[-1], workload.configs[-1])]:
            report[f"{name} {config.name} {dict(sizes)}"] = run(workload, config, sizes, seed=1).failures
    print(json.dumps(report))


if __name__ == "__main__":
    main()
