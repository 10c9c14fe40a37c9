// Programs drawn at compile time, for the mining of distances. They are compiled and read, never launched:
// addresses are whatever the arithmetic gives, and what is computed means nothing.
//
// An operation list is a struct of OPERATIONs; a Mixture joins lists. `steps` draws operations and operands
// from a seed, and mostly lets one read what the one before it wrote. So any two operations of a mixture meet
// as producer and consumer, as writer and overwriter, and among different neighbours.
#pragma once
#include <utility>

#define INLINE static __device__ __forceinline__
#define DRAWN __host__ __device__ constexpr

DRAWN unsigned scramble(unsigned seed, unsigned step) {
    unsigned x = seed * 0x9e3779b9u + step * 0x85ebca6bu + 0x165667b1u;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// What the operations work on: 32-bit values (integers, floats, pairs of halves), 64-bit values, predicates.
// Few of them make one long chain of dependences, many make the registers scarce.
template <int R_, int Q_, int P_> struct State {
    static constexpr int R = R_, Q = Q_, P = P_;
    unsigned r[R];
    unsigned long long q[Q];
    bool p[P];
};

// The operands of one step, as compile-time indices.
template <unsigned SEED, int STEP> struct Draw {
    static DRAWN unsigned bits(unsigned slot) { return scramble(SEED * 31 + slot, STEP); }
    static DRAWN int to(int size) { return bits(1) % size; }
    // Three times out of four, what the step before wrote.
    static DRAWN int from(int size) {
        return bits(2) & 3 ? scramble(SEED * 31 + 1, STEP - 1u) % size : bits(3) % size;
    }
    static DRAWN int other(int size) { return bits(4) % size; }
    static DRAWN int third(int size) { return bits(5) % size; }
};

// Inside an OPERATION: d is written, a is what the step before wrote most of the time, b and c are others.
#define rd s.r[D::to(S::R)]
#define ra s.r[D::from(S::R)]
#define rb s.r[D::other(S::R)]
#define rc s.r[D::third(S::R)]
#define qd s.q[D::to(S::Q)]
#define qa s.q[D::from(S::Q)]
#define qb s.q[D::other(S::Q)]
#define qc s.q[D::third(S::Q)]
#define pd s.p[D::to(S::P)]
#define pa s.p[D::from(S::P)]
#define pb s.p[D::other(S::P)]
#define pc s.p[D::third(S::P)]
#define CONSTANT D::bits(6)

#define OPERATION(...)                                                                                                 \
    if constexpr (OP == __COUNTER__ - base) { __VA_ARGS__; }
#define OPERATIONS                                                                                                     \
    static constexpr int base = __COUNTER__ + 1;                                                                       \
    template <int OP, class D, class S> INLINE void apply(S &s) {
#define OPERATIONS_END                                                                                                 \
    }                                                                                                                  \
    static constexpr int count = __COUNTER__ - base;

// PTX on 32-bit values (R), 64-bit values (Q), or from one to the other; a register takes any type of its size.
#define R1(text) asm(text " %0, %1;" : "=r"(rd) : "r"(ra))
#define R2(text) asm(text " %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb))
#define R3(text) asm(text " %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc))
#define R2N(text, constant) asm(text " %0, %1, %2;" : "=r"(rd) : "r"(ra), "n"(constant))
#define R3N(text, constant) asm(text " %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "n"(constant))
#define Q1(text) asm(text " %0, %1;" : "=l"(qd) : "l"(qa))
#define Q2(text) asm(text " %0, %1, %2;" : "=l"(qd) : "l"(qa), "l"(qb))
#define Q3(text) asm(text " %0, %1, %2, %3;" : "=l"(qd) : "l"(qa), "l"(qb), "l"(qc))
#define Q_FROM_R(text) asm(text " %0, %1;" : "=l"(qd) : "r"(ra))
#define R_FROM_Q(text) asm(text " %0, %1;" : "=r"(rd) : "l"(qa))
// A comparison that C++ has no words for: PTX that sets p from %1 and %2.
#define P_FROM_R(text)                                                                                                 \
    unsigned set;                                                                                                      \
    asm("{ .reg .pred p, q; " text "; selp.u32 %0, 1, 0, p; }" : "=r"(set) : "r"(ra), "r"(rb));                        \
    pd = set != 0

struct Nothing {
    static constexpr int count = 0;
    template <int OP, class D, class S> INLINE void apply(S &) {}
};

template <class... Lists> struct Mixture;
template <class List> struct Mixture<List> : List {};
template <class First, class... Rest> struct Mixture<First, Rest...> {
    static constexpr int count = First::count + Mixture<Rest...>::count;
    template <int OP, class D, class S> INLINE void apply(S &s) {
        if constexpr (OP < First::count) First::template apply<OP, D>(s);
        else Mixture<Rest...>::template apply<OP - First::count, D>(s);
    }
};

// One operation after another, in line.
template <class Ops, unsigned SEED, class S, int... I>
INLINE void each_step(S &s, std::integer_sequence<int, I...>) {
    (Ops::template apply<scramble(SEED, I) % Ops::count, Draw<SEED, I>>(s), ...);
}
template <class Ops, unsigned SEED, int LENGTH, class S> INLINE void steps(S &s) {
    each_step<Ops, SEED>(s, std::make_integer_sequence<int, LENGTH>());
}

__constant__ unsigned numbers[4096];

template <class S> INLINE void read(S &s, const unsigned *in) {
    for (int i = 0; i < S::R; i++) s.r[i] = in[threadIdx.x + 256 * i];
    for (int i = 0; i < S::Q; i++) s.q[i] = ((const unsigned long long *)in)[threadIdx.x + 256 * i + 8192];
    for (int i = 0; i < S::P; i++) s.p[i] = in[threadIdx.x + 256 * i + 65536] > 7;
}
template <class S> INLINE void write(S &s, unsigned *out) {
    for (int i = 0; i < S::R; i++) out[threadIdx.x + 256 * i] = s.r[i];
    for (int i = 0; i < S::Q; i++) ((unsigned long long *)out)[threadIdx.x + 256 * i + 8192] = s.q[i];
    for (int i = 0; i < S::P; i++) out[threadIdx.x + 256 * i + 65536] = s.p[i];
}

// A loop with one long block and, depending on data, one of two shorter ones.
template <class Ops, class S, unsigned SEED, int LENGTH>
INLINE void looped(const unsigned *in, unsigned *out, int n) {
    S s;
    read(s, in);
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        steps<Ops, SEED, LENGTH>(s);
        if (s.r[0] & 1) steps<Ops, SEED + 1, LENGTH / 4>(s);
        else steps<Ops, SEED + 2, LENGTH / 4>(s);
    }
    write(s, out);
}
// The same where all lanes of a warp stay together, for operations that need them all.
template <class Ops, class S, unsigned SEED, int LENGTH>
INLINE void together(const unsigned *in, unsigned *out, int n) {
    S s;
    read(s, in);
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        steps<Ops, SEED, LENGTH>(s);
        if (numbers[i] & 1) steps<Ops, SEED + 1, LENGTH / 4>(s);
    }
    write(s, out);
}

#define PROGRAM(name, shape, seed, length, state, ...)                                                                 \
    extern "C" __global__ void name(const unsigned *in, unsigned *out, int n) {                                        \
        shape<Mixture<__VA_ARGS__>, state, seed, length>(in, out, n);                                                  \
    }
// Few registers per thread: the compiler has to reuse them at once, or to spill.
#define TIGHT_PROGRAM(name, registers, shape, seed, length, state, ...)                                                \
    extern "C" __global__ void __maxnreg__(registers) name(const unsigned *in, unsigned *out, int n) {                 \
        shape<Mixture<__VA_ARGS__>, state, seed, length>(in, out, n);                                                  \
    }

using Chain = State<3, 2, 3>;
using Few = State<5, 2, 4>;
using Some = State<12, 4, 7>;
using Many = State<28, 8, 12>;
