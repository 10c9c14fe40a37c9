// The uniform datapath. ptxas keeps arithmetic there if it starts from parameters, has only operations that the
// datapath knows, runs straight on, and ends in one operand of a vector instruction.
#pragma once
#include "operations.cuh"

struct Uniform {
    OPERATIONS
    OPERATION(R2("add.u32"))
    OPERATION(R2("sub.u32"))
    OPERATION(asm("{ .reg .u32 t; add.u32 t, %1, %2; add.u32 %0, t, %3; }" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("{ .reg .u32 t; shl.b32 t, %1, %3; add.u32 %0, t, %2; }"
                  : "=r"(rd) : "r"(ra), "r"(rb), "n"(CONSTANT % 31 + 1)))
    OPERATION(asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc), "n"(CONSTANT % 254 + 1)))
    OPERATION(R2("xor.b32"))
    OPERATION(R2("shl.b32"))
    OPERATION(R2N("shr.s32", CONSTANT % 31 + 1))
    OPERATION(R3N("shf.l.wrap.b32", CONSTANT % 31 + 1))
    OPERATION(R3N("prmt.b32", CONSTANT & 0x7777))
    OPERATION(R2("mul.lo.u32"))
    OPERATION(R3("mad.lo.u32"))
    OPERATION(rd = pa ? ra : rb)
    OPERATIONS_END
};
struct UniformBits {
    OPERATIONS
    OPERATION(R1("popc.b32"))
    OPERATION(R1("bfind.u32"))
    OPERATION(R1("brev.b32"))
    OPERATION(asm("bfe.s32 %0, %1, 3, 9;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("bfe.u32 %0, %1, %2, 9;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("szext.clamp.u32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "n"(CONSTANT % 31 + 1)))
    OPERATION(rd = ra + blockIdx.x)
    OPERATION(rd = ra * gridDim.y)
    OPERATIONS_END
};
struct UniformCompare {
    OPERATIONS
    OPERATION(pd = (int)ra < (int)rb)
    OPERATION(pd = ra != rb)
    OPERATION(pd = ra > (CONSTANT & 0xffff))
    OPERATION(pd = (int)ra >= (int)rb && pa)
    OPERATION(pd = ra <= rb || !pb)
    OPERATION(pd = (ra & rb) != 0)
    OPERATIONS_END
};
struct UniformWide {
    OPERATIONS
    OPERATION(Q2("add.u64"))
    OPERATION(Q2("sub.u64"))
    OPERATION(asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(qd) : "r"(ra), "r"(rb), "l"(qa)))
    OPERATION(asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(qd) : "r"(ra), "n"(CONSTANT % 65521), "l"(qb)))
    OPERATION(qd = qa + ((unsigned long long)ra << (CONSTANT % 5)))
    OPERATION(qd = pa ? qa : qb)
    OPERATION(pd = (long long)qa < (long long)qb)
    OPERATION(rd = (unsigned)qa ^ rb)
    OPERATION(rd = (unsigned)(qa >> 32) + rb)
    OPERATIONS_END
};
struct UniformMore {
    OPERATIONS
    OPERATION(R3("shf.r.wrap.b32"))
    OPERATION(R3("prmt.b32"))
    OPERATION(R2("mul.hi.u32"))
    OPERATION(R1("neg.s32"))
    OPERATION(rd = __ffs(ra))
    OPERATION(rd = (int)ra < (int)rb ? ~0u : 0)
    OPERATION(rd = ra + pa)
    OPERATION(asm("bfi.b32 %0, %1, %2, %3, 8;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATIONS_END
};
struct UniformLong {
    OPERATIONS
    OPERATION(rd = __popcll(qa))
    OPERATION(qd = qa << (ra & 63))
    OPERATION(qd = qa * qb)
    OPERATION(qd = min((long long)qa, (long long)qb))
    OPERATION(qd = qa >> (CONSTANT % 63 + 1))
    OPERATIONS_END
};
struct UniformConstants {
    OPERATIONS
    OPERATION(rd = numbers[ra & 1023])
    OPERATION(rd = ra ^ numbers[rb & 511])
    OPERATIONS_END
};
// More predicates than there are: into a register and back.
struct UniformPacked {
    OPERATIONS
    OPERATION(unsigned m = 0; for (int i = 0; i < S::P; i++) m |= s.p[i] ? 1u << i : 0; rd = m ^ ra)
    OPERATION(for (int i = 0; i < S::P; i++) s.p[i] = ra >> i & 1)
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 1200
struct UniformFloat {
    OPERATIONS
    OPERATION(R2("add.f32"))
    OPERATION(R2("mul.f32"))
    OPERATION(R3("fma.rn.f32"))
    OPERATION(R2("min.s32"))
    OPERATION(R2("max.u32"))
    OPERATION(pd = __uint_as_float(ra) < __uint_as_float(rb))
    OPERATION(R1("cvt.rn.f32.s32"))
    OPERATION(R1("cvt.rzi.s32.f32"))
    OPERATION(rd = __float_as_uint(pa ? __uint_as_float(ra) : -__uint_as_float(rb)))
    OPERATIONS_END
};
#else
using UniformFloat = Nothing;
#endif

// Vector instructions that take one uniform operand: s.u of 32 bits, s.w of 64, the predicate s.c. For others
// (SEL, halves, SHFL, data of stores) ptxas would rather compute everything in vector registers.
struct Crossing {
    OPERATIONS
    OPERATION(rd = ra + s.u)
    OPERATION(rd = ra - s.u)
    OPERATION(rd = ra + rb + s.u)
    OPERATION(rd = ra * s.u)
    OPERATION(rd = ra * s.u + rb)
    OPERATION(rd = ra * rb + s.u)
    OPERATION(rd = ra << (s.u & 31))
    OPERATION(rd = (ra << 3) + s.u)
    OPERATION(rd = __funnelshift_l(ra, rb, s.u))
    OPERATION(rd = __byte_perm(ra, rb, s.u))
    OPERATION(rd = max(ra, s.u))
    OPERATION(rd = __umulhi(ra, s.u))
    OPERATION(asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(s.u), "r"(rb)))
    OPERATION(rd = __float_as_uint(__uint_as_float(ra) + __uint_as_float(s.u)))
    OPERATION(rd = __float_as_uint(__uint_as_float(ra) * __uint_as_float(s.u)))
    OPERATION(rd = __float_as_uint(__fmaf_rn(__uint_as_float(ra), __uint_as_float(s.u), __uint_as_float(rb))))
    OPERATION(rd = __float_as_uint(__fmaf_rn(__uint_as_float(ra), __uint_as_float(rb), __uint_as_float(s.u))))
    OPERATION(rd = __float_as_uint(fmaxf(__uint_as_float(ra), __uint_as_float(s.u))))
    OPERATION(pd = (int)ra < (int)s.u)
    OPERATION(pd = __uint_as_float(ra) < __uint_as_float(s.u))
    OPERATION(qd = (unsigned long long)ra * s.u + qa)
    OPERATION(asm volatile("ld.shared.u32 %0, [%1];" : "=r"(rd) : "r"(s.u + ra)))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(s.u), "r"(ra)))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(rd) : "r"(s.u + ra)))
    OPERATION(asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(rd) : "r"(ra + s.u), "r"(rb)))
    OPERATION(rd = numbers[s.u + ra])
    OPERATION(rd = numbers[s.u & 1023] + ra)
    OPERATIONS_END
};
struct WideCrossing {
    OPERATIONS
    OPERATION(pd = qa < s.w)
    OPERATION(qd = (unsigned long long)ra * rb + s.w)
    OPERATION(qd = (unsigned long long)ra * 4 + s.w)
    OPERATION(rd = (ra ^ (unsigned)(s.w >> 32)) & rb)
    OPERATION(asm volatile("red.global.add.u32 [%0], %1;" ::"l"(s.w), "r"(rb)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(s.w + 4ull * ra), "r"(ra)))
#if __CUDA_ARCH__ >= 800
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(rd) : "l"(s.w)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(s.w), "r"(ra)))
#endif
#if __CUDA_ARCH__ >= 1000
    OPERATION(qd = qa + s.w)
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(rd) : "l"(s.w + ra)))
#endif
    OPERATIONS_END
};
struct PredicateCrossing {
    OPERATIONS
    OPERATION(rd = ra + s.u; rd = s.c ? rd : rb)
    OPERATION(rd = ra * s.u + rb; rd = s.c ? ra : rd)
    OPERATION(rd = max(ra, s.u); rd = s.c ? rd : rb)
    OPERATIONS_END
};

struct Arguments { unsigned v[96]; };
struct Crossed : State<4, 2, 3> {
    unsigned u;
    unsigned long long w;
    bool c;
};

template <class U> INLINE void start(U &u, const Arguments &a, int n, int first) {
    for (int i = 0; i < U::R; i++) u.r[i] = a.v[(first + i) % 96] + n;
    for (int i = 0; i < U::Q; i++) u.q[i] = ((unsigned long long)a.v[(first + i + 40) % 96] << 32) + n;
    for (int i = 0; i < U::P; i++) u.p[i] = (int)(a.v[(first + i + 70) % 96] - n) > 4;
}
