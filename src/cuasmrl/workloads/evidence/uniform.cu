// Uniform computations of all kinds, one after another, each ending in an operand of a vector instruction.
#include "uniform.cuh"

using Uses = Mixture<Crossing, WideCrossing, PredicateCrossing>;

template <class Ops, class U, unsigned SEED, int LENGTH, int LEFT>
INLINE void segments(Crossed &v, const Arguments &a, int n) {
    U u;
    start(u, a, n, SEED);
    steps<Ops, SEED, LENGTH>(u);
    unsigned end = 0;
    unsigned long long wide = 0;
    for (int i = 0; i < U::R; i++) end ^= u.r[i];
    for (int i = 0; i < U::Q; i++) wide += u.q[i];
    for (int i = 0; i < U::P; i++) end += u.p[i] ? 4u << i : 0;
    v.u = end;
    v.w = wide + end;
    v.c = (int)end > 9;
    Uses::apply<scramble(SEED, 999) % Uses::count, Draw<SEED, 999>>(v);
    if constexpr (LEFT > 1) segments<Ops, U, SEED + 7, LENGTH, LEFT - 1>(v, a, n);
}
#define UNIFORM_PROGRAM(name, state, seed, length, left, ...)                                                          \
    extern "C" __global__ void name(const unsigned *in, unsigned *out, int n, Arguments a) {                           \
        Crossed v;                                                                                                     \
        read(v, in);                                                                                                   \
        segments<Mixture<__VA_ARGS__>, state, seed, length, left>(v, a, n);                                            \
        write(v, out);                                                                                                 \
    }

UNIFORM_PROGRAM(uniform_long, Few, 601, 60, 3, Uniform)
UNIFORM_PROGRAM(uniform_short_1, Few, 602, 25, 8, Uniform)
UNIFORM_PROGRAM(uniform_short_2, Chain, 603, 20, 8, Uniform)
UNIFORM_PROGRAM(uniform_short_3, Few, 611, 12, 16, Uniform, UniformCompare)
UNIFORM_PROGRAM(uniform_short_4, Chain, 612, 14, 14, Uniform, UniformWide)
UNIFORM_PROGRAM(uniform_compare, Few, 604, 30, 7, Uniform, UniformCompare, UniformCompare)
UNIFORM_PROGRAM(uniform_logic, Few, 605, 30, 7, Uniform, UniformCompare, Logic, Logic)
UNIFORM_PROGRAM(uniform_wide, Few, 606, 30, 7, UniformWide, Uniform)
UNIFORM_PROGRAM(uniform_bits, Few, 607, 30, 6, Uniform, UniformBits)
UNIFORM_PROGRAM(uniform_more, Few, 608, 30, 6, Uniform, UniformMore)
UNIFORM_PROGRAM(uniform_longer, Few, 609, 25, 4, Uniform, UniformLong, UniformWide)
UNIFORM_PROGRAM(uniform_constants, Few, 610, 25, 4, Uniform, UniformConstants)
UNIFORM_PROGRAM(uniform_packed, Some, 613, 30, 4, Uniform, UniformPacked, UniformCompare, Logic)
UNIFORM_PROGRAM(uniform_floats_1, Few, 614, 30, 6, UniformFloat, UniformFloat, Uniform)
UNIFORM_PROGRAM(uniform_floats_2, Few, 615, 20, 8, UniformFloat, UniformFloat, UniformCompare, Uniform)
