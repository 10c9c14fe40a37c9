// Every instruction of the uniform datapath before every vector instruction that takes its result.
#include "cross.cuh"
#include "uniform.cuh"

using Three = State<3, 2, 2>;
// A few uniform operations, then the one in question, then the vector instruction; and so on. The vector
// instruction changes last, as one that merges with its operand makes ptxas leave the datapath for a whole kernel.
template <class First, class Second, unsigned SEED, int START, int LEFT>
INLINE void uniform_pairs(Crossed &v, const Arguments &a, int n) {
    if constexpr (LEFT > 0 && START < First::count * Second::count) {
        Three u;
        start(u, a, n, SEED + START);
        steps<Uniform, SEED + START, 3>(u);
        u.q[0] += u.r[0];
        u.p[0] = (int)u.r[1] > 3;
        First::template apply<START % First::count, Link<SEED, 7>>(u);
        v.u = u.r[7 % 3];
        v.w = u.q[7 % 2];
        v.c = u.p[7 % 2];
        Second::template apply<START / First::count, Draw<SEED, START>>(v);
        uniform_pairs<First, Second, SEED, START + 1, LEFT - 1>(v, a, n);
    }
}
#define PAIRS(name, tens, ones, first, second, seed, length)                                                           \
    extern "C" __global__ void name##_##tens##ones(const unsigned *in, unsigned *out, int n, Arguments a) {            \
        Crossed v;                                                                                                     \
        read(v, in);                                                                                                   \
        uniform_pairs<first, second, seed, (tens * 5 + ones) * length, length>(v, a, n);                               \
        write(v, out);                                                                                                 \
    }
#define FIVE(name, tens, ...)                                                                                          \
    PAIRS(name, tens, 0, __VA_ARGS__)                                                                                  \
    PAIRS(name, tens, 1, __VA_ARGS__)                                                                                  \
    PAIRS(name, tens, 2, __VA_ARGS__)                                                                                  \
    PAIRS(name, tens, 3, __VA_ARGS__)                                                                                  \
    PAIRS(name, tens, 4, __VA_ARGS__)
#define TWENTY_FIVE(name, ...)                                                                                         \
    FIVE(name, 0, __VA_ARGS__)                                                                                         \
    FIVE(name, 1, __VA_ARGS__)                                                                                         \
    FIVE(name, 2, __VA_ARGS__)                                                                                         \
    FIVE(name, 3, __VA_ARGS__)                                                                                         \
    FIVE(name, 4, __VA_ARGS__)

using UniformTests = Mixture<UniformCompare, Logic>;
using UniformAll = Mixture<Uniform, UniformBits>;
TWENTY_FIVE(values, UniformAll, Crossing, 1101, (UniformAll::count * Crossing::count + 24) / 25)
FIVE(wide, 0, UniformWide, WideCrossing, 1103, (UniformWide::count * WideCrossing::count + 4) / 5)
FIVE(predicates, 0, UniformTests, PredicateCrossing, 1105, (UniformTests::count * PredicateCrossing::count + 4) / 5)
