"""What a proof costs grows with the instructions of a kernel, not with their pairs; and the short cuts agree
with looking at every pair."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from cuasmrl.bench import large
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Hazard, Listing, disassemble, distances
from cuasmrl.checker import Checker, Refusal
from cuasmrl.checker.dependences import Dependences, Edge
from cuasmrl.checker.flow import Block
from cuasmrl.checker.graph import Graph, Worklist
from cuasmrl.checker.program import Program, as_compiled
from cuasmrl.checker.spacing import Backwards, Spacings, closest
from tests.checker.conftest import CHIPS
from tests.conftest import CompileCuda

# ---- kernels of any size ----


def one_block(steps: int) -> str:
    """Loads, stores, shared memory, arithmetic and guarded instructions without a single branch.

    At the end a run of stores, of which no scoreboard says that they have read their sources.
    """
    kinds = (
        "x = fmaf(a[{k} * 37 % 4096], x, y);",
        "b[{k} * 13 % 4096] = x;",
        "shared[i + {k} % 1024] = y + x;",
        "y = fmaf(shared[i + {k} * 7 % 1024], z, x);",
        "if (x > {k}.f) sum += y;",
        "z = z * x + {k}.f; if (z < y) c[{k} % 4096] = z;",
    )
    body = "\n".join(kinds[k % len(kinds)].format(k=k) for k in range(steps))
    stores = "\n".join(f"d[{k}] = x;" for k in range(steps))
    return f"""extern __shared__ float shared[];
    extern "C" __global__ void kernel(const float *__restrict__ a, float *b, float *c, float *d, float z) {{
        int i = threadIdx.x;
        float x = a[i], y = a[i + 1], sum = 0;
        {body}
        x += sum + y + z;
        {stores}
    }}"""


def guarded_sums(steps: int) -> str:
    """Every guarded addition to one register depends on all those before it."""
    body = "\n".join(
        f"{{ float v = a[{k}]; if (v > t) {{ sum += v; n += {k % 7}; }} }}" for k in range(steps)
    )
    return f"""extern "C" __global__ void kernel(const float *__restrict__ a, float *b, float t) {{
        float sum = 0; int n = 0;
        a += threadIdx.x;
        {body}
        b[0] = sum; b[1] = n;
    }}"""


def many_blocks(steps: int) -> str:
    """Nested loops, divergent branches, slow paths of divisions, functions that are called everywhere."""
    kinds = (
        "if (x > {k}.f) for (int j = 0; j < n; j++) {{ x += a[j + {k}]; if (a[j] > x) b[j] = x; }}",
        "if (i & {bit}) x = x / a[i + {k}]; else b[i + {k}] = x;",
        "for (int j = 0; j < n; j++) for (int l = j; l < m; l += 3) {{ if (a[l] < x) break; x += l; }}",
        "x = repeated(x, i + {k});",
        "if (__any_sync(~0u, x > {k}.f)) x += walked(b + i, {k});",
        "switch (i & 3) {{ case 0: a[i] = ++x; break; case 1: x *= a[i + {k}]; default: __syncthreads(); }}",
    )
    body = "\n".join(kinds[k % len(kinds)].format(k=k, bit=1 << k % 10) for k in range(steps))
    return f"""__device__ __noinline__ float repeated(float x, int k) {{
        if (k & 1) for (int j = 0; j < k; j++) x = x * x + j;
        return x;
    }}
    __device__ __noinline__ float walked(float *p, int k) {{
        float x = p[k];
        while (x > 1) x = x * p[(int)x & 7];
        return x;
    }}
    extern "C" __global__ void kernel(float *a, float *b, int n, int m) {{
        int i = threadIdx.x;
        float x = a[i];
        {body}
        b[i] = x;
    }}"""


# ---- what they cost ----


def _seconds(work: Callable[[], object], turns: int) -> float:
    """Processor time, the least of some turns: other processes only ever add to it."""
    spent = []
    for _ in range(turns):
        before = time.process_time()
        work()
        spent.append(time.process_time() - before)
    return min(spent)


def _touched(cubin: Cubin, listing: Listing, faster: bool) -> Cubin:
    """Every word differs, so that no rule takes a short cut; `faster`, and many stalls are too short."""
    table, words = distances(cubin.arch), []
    for i in listing.instructions:
        control = replace(i.control, yield_=True, reuse=0)
        least = table.minimum_stall(i)
        if faster and i.index % 2 and least is not None and control.stall > least:
            control = replace(control, stall=control.stall - 1)
        words.append(control.encode(i.word))
    return cubin.with_words(listing.kernel, tuple(words), {})


def _costs(cubin: Cubin, turns: int) -> tuple[int, dict[str, float]]:
    """Instructions, and the processor time of each step of a proof."""
    listings = disassemble(cubin)
    (listing,) = listings.values()
    checker = Checker(cubin, listings)
    calmer, faster = (_touched(cubin, listing, faster) for faster in (False, True))

    def refuse() -> None:
        with pytest.raises(Refusal):
            checker.check(faster)

    return len(listing.instructions), {
        "load": _seconds(lambda: disassemble(Cubin.parse(cubin.data)), turns),
        "original": _seconds(lambda: Checker(cubin, listings).check(cubin), turns),
        "candidate": _seconds(lambda: checker.check(calmer), turns),
        "refusal": _seconds(refuse, turns),
    }


def _assert_linear(small: Cubin, large: Cubin, tolerance: float, turns: int) -> None:
    few, before = _costs(small, turns)
    many, after = _costs(large, turns)
    assert many > 3 * few
    for step, seconds in after.items():
        # What is fixed, such as reading tables, makes small kernels look dear, never large ones.
        growth = seconds / max(before[step], 0.01) / (many / few)
        assert growth < tolerance, f"{step}: {few} instructions {before[step]:.3f} s, {many} {seconds:.3f} s"


@pytest.mark.parametrize(
    ("source", "small", "large"), [(one_block, 200, 1600), (guarded_sums, 120, 960), (many_blocks, 18, 108)]
)
def test_the_cost_of_a_proof_is_linear(
    source: Callable[[int], str], small: int, large: int, compile_cuda: CompileCuda
) -> None:
    first, second = (Cubin.parse(compile_cuda(source(steps), "sm_80")) for steps in (small, large))
    _assert_linear(first, second, tolerance=2.5, turns=3)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("source", "small", "large"),
    [(guarded_sums, 250, 12000), (many_blocks, 24, 1000), (one_block, 500, 16000)],
)
def test_kernels_of_some_ten_thousand_instructions(
    chip: str, source: Callable[[int], str], small: int, large: int, compile_cuda: CompileCuda
) -> None:
    first, second = (Cubin.parse(compile_cuda(source(steps), chip)) for steps in (small, large))
    _assert_linear(first, second, tolerance=2.5, turns=1)


@pytest.mark.slow
def test_what_is_under_way_at_every_call_costs_no_more_than_the_calls(compile_cuda: CompileCuda) -> None:
    """Behind a function called a thousand times, what any caller left under way may still be so."""
    costs = []
    for instructions in (5000, 45_000):
        cubin = Cubin.parse(compile_cuda(large.source(large.Shape.MANY_BLOCKS, instructions), "sm_80"))
        listings = disassemble(cubin)
        (listing,) = listings.values()
        seconds = _seconds(lambda: Checker(cubin, listings).check(cubin), turns=2)  # noqa: B023 - called at once
        costs.append(seconds / len(listing.instructions))
    assert costs[1] < 4 * costs[0]


# ---- short cuts against every pair ----


def _every_edge(
    block: Block, uses: list[tuple[int, ...]], defs: list[tuple[int, ...]], certain: list[bool]
) -> Iterator[Edge]:
    """The definition, word by word: no certain overwrite lies between the two."""
    for c, p in product(range(block.start, block.end), repeat=2):
        for hazard, first, second in (
            (Hazard.RAW, defs[p], uses[c]),
            (Hazard.WAW, defs[p], defs[c]),
            (Hazard.WAR, uses[p], defs[c]),
        ):
            for r in set(first) & set(second) if p < c else ():
                cut = any(certain[k] and r in defs[k] for k in range(p + 1, c))
                # What a certain overwriter reads, it reads before it overwrites it.
                own = hazard is Hazard.WAR and certain[p] and r in defs[p]
                if not cut and not own:
                    yield Edge(hazard, p, c, r)


@pytest.mark.parametrize("seed", range(20))
def test_chains_hold_every_dependence(seed: int) -> None:
    rng = random.Random(seed)
    cuts = sorted({0, 24, *rng.sample(range(1, 24), 2)})
    blocks = [Block(start, end, ()) for start, end in pairwise(cuts)]
    uses, defs = ([tuple(rng.sample(range(5), rng.randrange(3))) for _ in range(24)] for _ in range(2))
    certain = [rng.random() < 0.3 for _ in range(24)]
    found = Dependences(blocks, uses, defs, certain)
    chains = [found.edge(m, p) for m in range(len(found)) for p in found.producers(m)]
    every = [edge for block in blocks for edge in _every_edge(block, uses, defs, certain)]
    assert len(chains) == len(set(chains))
    assert set(chains) == set(every)
    chosen = np.array([rng.random() < 0.5 for _ in range(24)])
    counts = found.counts(chosen)
    for hazard, is_chosen in product((Hazard.RAW, Hazard.WAW, Hazard.WAR), (True, False)):
        expected = sum(e.hazard is hazard and chosen[e.producer] == is_chosen for e in every)
        assert counts.get((hazard, is_chosen), 0) == expected
    # Close pairs, in the order of the code and with any stalls.
    starts = np.cumsum([rng.randrange(4) for _ in range(24)])
    meetings, members = found.near(np.arange(24), starts, reach=7)
    close = {found.edge(m, found.members[n]) for m, n in zip(meetings, members, strict=True)}
    assert close == {e for e in every if starts[e.consumer] - starts[e.producer] < 7}
    # Of a broken order, the first consumer that comes too early, with all that it overtook.
    shuffled = (rng.sample(range(b.start, b.end), b.end - b.start) for b in blocks)
    positions = np.array([position for inside in shuffled for position in inside])
    broken = [e for e in every if positions[e.producer] > positions[e.consumer]]
    first = min((positions[e.consumer] for e in broken), default=None)
    assert set(found.broken(positions)) == {e for e in broken if positions[e.consumer] == first}


def test_a_junction_is_passed_once_in_a_sweep() -> None:
    """A hundred returns to a hundred calls, each of which leads to the next return."""
    returns, calls = range(100), range(100, 200)
    own = [() for _ in returns] + [(c - 100,) for c in calls]
    shared = [tuple(calls) for _ in returns] + [() for _ in calls]
    graph = Graph(own, shared)
    assert sum(len(following) for following in graph.paths) == 300
    work, reached, visits = Worklist(graph), [{node} for node in range(len(graph))], 0
    while work:
        node = work.pop()
        visits += 1
        for following in graph.paths[node]:
            if not reached[node] <= reached[following]:
                reached[following] |= reached[node]
                work.push(following)
    assert all(len(seen) == 201 for seen in reached)
    assert visits <= 4 * len(graph)


@pytest.mark.parametrize("chip", CHIPS)
def test_who_follows_whom_is_the_same_forwards_and_backwards(
    chip: str, listed: Callable[[str], dict[str, Listing]]
) -> None:
    """Kinds are carried along the paths, single instructions looked up against them."""
    for listing in listed(chip).values():
        program = Program(listing)
        original = as_compiled(program)
        spacings = Spacings(program, distances(listing.kernel.arch), original)
        for talk in (spacings._pipes, spacings._boards(original)):
            forwards = {
                pair: cycles for pair, cycles in closest(program, original, talk).items() if cycles < 96
            }
            backwards: dict[tuple[str | int, int], int] = {}
            looked_up = Backwards(program, original, talk)
            for hearer in range(len(program.instructions)):
                for speaker, cycles in looked_up.speakers(hearer, 96).items():
                    pair = talk.kind[speaker], hearer
                    backwards[pair] = min(cycles, backwards.get(pair, 96))
            assert forwards == backwards
            assert forwards
