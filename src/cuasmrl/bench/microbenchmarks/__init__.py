"""Published experiments made again: small kernels, compiled, executed and timed.

`experiments.csv` says for each row of `timing/published.csv` which kernel of which file makes it, how it is
launched, what is changed in its words, and how the figure is read. What is compared is what was measured: the
time between two reads of the clock (the cycles in which they are issued), divided by a number of rounds, with
everything that the compiler put into the loop.
"""

from cuasmrl.bench.microbenchmarks.cubins import missing_compiler
from cuasmrl.bench.microbenchmarks.experiment import Experiment, experiments
from cuasmrl.bench.microbenchmarks.readings import figure
from cuasmrl.bench.microbenchmarks.timeline import NOTHING

__all__ = ["NOTHING", "Experiment", "experiments", "figure", "missing_compiler"]
