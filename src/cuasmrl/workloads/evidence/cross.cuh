// Every operation of one list directly before every operation of another.
#pragma once
#include "operations.cuh"

// Operands of a link of a chain: each reads what the one before wrote.
template <unsigned SEED, int STEP> struct Link {
    static DRAWN unsigned bits(unsigned slot) { return scramble(SEED * 31 + slot, STEP); }
    static DRAWN int to(int size) { return STEP % size; }
    static DRAWN int from(int size) { return (STEP + size - 1) % size; }
    static DRAWN int other(int size) { return bits(4) % size; }
    static DRAWN int third(int size) { return bits(5) % size; }
};

template <class First, class Second, unsigned SEED, int START, class S, int... I>
INLINE void each_pair(S &s, std::integer_sequence<int, I...>) {
    ((First::template apply<(START + I) / Second::count, Link<SEED, 2 * I + 2>>(s),
      Second::template apply<(START + I) % Second::count, Link<SEED, 2 * I + 3>>(s)),
     ...);
}
// Pairs START to START + LENGTH of all, in a loop.
template <class First, class Second, class S, unsigned SEED, int START, int LENGTH>
INLINE void crossed(const unsigned *in, unsigned *out, int n) {
    constexpr int all = First::count * Second::count, length = START + LENGTH < all ? LENGTH : all - START;
    S s;
    read(s, in);
#pragma unroll 1
    for (int i = 0; i < n; i++)
        if constexpr (length > 0) each_pair<First, Second, SEED, START>(s, std::make_integer_sequence<int, length>());
    write(s, out);
}
#define CROSS_PART(name, part, first, second, state, seed, length)                                                     \
    extern "C" __global__ void name##_##part(const unsigned *in, unsigned *out, int n) {                               \
        crossed<first, second, state, seed + part, (part) * length, length>(in, out, n);                               \
    }
// A sixth of all pairs in each kernel.
#define CROSS(name, first, second, state, seed)                                                                        \
    static constexpr int name##_length = (first::count * second::count + 5) / 6;                                       \
    CROSS_PART(name, 0, first, second, state, seed, name##_length)                                                     \
    CROSS_PART(name, 1, first, second, state, seed, name##_length)                                                     \
    CROSS_PART(name, 2, first, second, state, seed, name##_length)                                                     \
    CROSS_PART(name, 3, first, second, state, seed, name##_length)                                                     \
    CROSS_PART(name, 4, first, second, state, seed, name##_length)                                                     \
    CROSS_PART(name, 5, first, second, state, seed, name##_length)

// One operation for each instruction that has a 32-bit result at a fixed time.
struct Values {
    OPERATIONS
    OPERATION(asm("{ .reg .u32 t; add.u32 t, %1, %2; add.u32 %0, t, %3; }" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(R3("shf.l.wrap.b32"))
    OPERATION(asm("{ .reg .u32 t; shl.b32 t, %1, 7; add.u32 %0, t, %2; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R3("prmt.b32"))
    OPERATION(rd = pa ? ra : rb)
    OPERATION(R3("mad.lo.u32"))
    OPERATION(R2("mul.hi.u32"))
    OPERATION(R2("min.s32"))
    OPERATION(rd = max((int)(ra + rb), (int)rc))
    OPERATION(rd = max(max(ra, rb), rc))
    OPERATION(R1("abs.s32"))
    OPERATION(R2("szext.wrap.s32"))
    OPERATION(R2("bmsk.clamp.b32"))
    OPERATION(R3("sad.s32"))
    OPERATION(R3("vabsdiff4.u32.u32.u32.add"))
    OPERATION(R3("dp4a.s32.s32"))
    OPERATION(asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(R2("add.f32"))
    OPERATION(R2("mul.f32"))
    OPERATION(R3("fma.rn.f32"))
    OPERATION(R2("max.f32"))
    OPERATION(rd = __float_as_uint(pa ? __uint_as_float(ra) : -__uint_as_float(rb)))
    OPERATION(asm("set.lt.f32.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R2("add.rn.f16x2"))
    OPERATION(R2("mul.rn.f16x2"))
    OPERATION(R3("fma.rn.f16x2"))
    OPERATION(asm("set.lt.f16x2.f16x2 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm volatile("mov.b32 %0, %1;" : "=r"(rd) : "r"(ra)))
#if __CUDA_ARCH__ >= 800
    OPERATION(R2("min.f16x2"))
    OPERATION(asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R3("fma.rn.bf16x2"))
    OPERATION(R1("cvt.rn.f32.s32"))
#endif
    OPERATIONS_END
};

#define PAIR_OF_R ((unsigned long long)rb << 32 | ra)
// Consumers of a 32-bit value whose own result comes later, or that have none.
struct Takers {
    OPERATIONS
    OPERATION(R1("ex2.approx.ftz.f32"))
    OPERATION(R1("popc.b32"))
    OPERATION(R1("bfind.u32"))
    OPERATION(R1("brev.b32"))
    OPERATION(R1("cvt.rzi.s32.f32"))
    OPERATION(R1("cvt.rn.f32.u32"))
    OPERATION(R1("cvt.rmi.f32.f32"))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.f16.f32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, -1;" : "=r"(rd) : "r"(rb), "r"(ra)))
    OPERATION(rd = __match_any_sync(~0u, ra))
#if __CUDA_ARCH__ >= 800
    OPERATION(rd = __reduce_add_sync(~0u, ra))
#endif
    OPERATION(rd = numbers[ra & 1023])
    OPERATION(asm volatile("ld.shared.u32 %0, [%1];" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(ra), "r"(rb)))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(rb), "r"(ra)))
    OPERATION(asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm volatile("atom.shared.max.u32 %0, [%1], %2;" : "=r"(rd) : "r"(rb), "r"(ra)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATION(asm volatile("st.u32 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATION(asm volatile("red.global.add.u32 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATION(asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(rd) : "l"(qa), "r"(ra)))
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(rd) : "l"(PAIR_OF_R)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(PAIR_OF_R), "r"(rc)))
    OPERATION(asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(rd) : "l"(PAIR_OF_R), "r"(rc)))
    OPERATION(asm volatile("red.global.add.u32 [%0], %1;" ::"l"(PAIR_OF_R), "r"(rc)))
    OPERATION(asm("add.f64 %0, %1, %2;" : "=l"(qd) : "l"(PAIR_OF_R), "l"(qb)); rd = (unsigned)qd)
    OPERATION(asm("fma.rn.f64 %0, %1, %2, %1;" : "=l"(qd) : "l"(PAIR_OF_R), "l"(qb)); rd = (unsigned)qd)
    OPERATION(asm("mul.wide.u32 %0, %1, %2;" : "=l"(qd) : "r"(ra), "r"(rb)); rd = (unsigned)qd)
    OPERATION(asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(qd) : "r"(rb), "r"(rc), "l"(PAIR_OF_R)); rd = (unsigned)(qd >> 32))
    OPERATION(qd = qa + ra; rd = (unsigned)(qd >> 32))
    OPERATION(pd = (int)ra < (int)rb; rd = pd ? rb : rc)
    OPERATION(pd = __uint_as_float(ra) < __uint_as_float(rb); rd = pd ? rb : rc)
    OPERATION(P_FROM_R("setp.lt.f16x2 p|q, %1, %2"); rd = pd ? rb : rc)
    OPERATION(pd = ((ra ^ rb) & rc) == 0; rd = pd ? rb : rc)
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
                           : "+r"(s.r[0]), "+r"(s.r[1]), "+r"(s.r[2]), "+r"(s.r[3]) : "r"(ra)))
    OPERATIONS_END
};
