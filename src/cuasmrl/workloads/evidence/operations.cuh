// The arithmetic that every kernel has: the producers and consumers that rarer instructions meet.
#pragma once
#include "mixture.cuh"

struct Integer {
    OPERATIONS
    OPERATION(R2("add.u32"))
    OPERATION(R2("sub.u32"))
    OPERATION(asm("{ .reg .u32 t; add.u32 t, %1, %2; add.u32 %0, t, %3; }" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("{ .reg .u32 t; shl.b32 t, %1, %3; add.u32 %0, t, %2; }"
                  : "=r"(rd) : "r"(ra), "r"(rb), "n"(CONSTANT % 31 + 1)))
    OPERATION(asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc), "n"(CONSTANT % 254 + 1)))
    OPERATION(asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(R2("xor.b32"))
    OPERATION(R2("shl.b32"))
    OPERATION(R2("shr.s32"))
    OPERATION(R2N("shr.u32", CONSTANT % 31 + 1))
    OPERATION(R3("shf.l.wrap.b32"))
    OPERATION(R3("shf.r.clamp.b32"))
    OPERATION(R3("prmt.b32"))
    OPERATION(R3N("prmt.b32", CONSTANT & 0x7777))
    OPERATION(R2("mul.lo.u32"))
    OPERATION(R3("mad.lo.u32"))
    OPERATION(R2("mul.hi.s32"))
    OPERATION(R2("min.s32"))
    OPERATION(R2("max.u32"))
    OPERATION(rd = pa ? ra : rb)
    OPERATION(rd = pa ? ra : CONSTANT)
    OPERATION(asm volatile("mov.b32 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};

struct Single {
    OPERATIONS
    OPERATION(R2("add.f32"))
    OPERATION(R2("sub.ftz.f32"))
    OPERATION(R2("mul.f32"))
    OPERATION(R3("fma.rn.f32"))
    OPERATION(R3("fma.rn.sat.f32"))
    OPERATION(asm("fma.rn.f32 %0, %1, 0f3fb8aa3b, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R2("min.f32"))
    OPERATION(R2("max.ftz.f32"))
    OPERATION(rd = __float_as_uint(pa ? __uint_as_float(ra) : -__uint_as_float(rb)))
    OPERATIONS_END
};

struct Half {
    OPERATIONS
    OPERATION(R2("add.rn.f16x2"))
    OPERATION(R2("sub.f16x2"))
    OPERATION(R2("mul.rn.f16x2"))
    OPERATION(R3("fma.rn.f16x2"))
    OPERATION(R3("fma.rn.sat.f16x2"))
    OPERATIONS_END
};

struct Compare {
    OPERATIONS
    OPERATION(pd = (int)ra < (int)rb)
    OPERATION(pd = ra != rb)
    OPERATION(pd = ra > (CONSTANT & 0xffff))
    OPERATION(pd = (int)ra >= (int)rb && pa)
    OPERATION(pd = ra <= rb || !pb)
    OPERATION(pd = (ra & rb) != 0)
    OPERATION(pd = ((ra ^ rb) & rc) == 0)
    OPERATION(pd = __uint_as_float(ra) < __uint_as_float(rb))
    OPERATION(pd = __uint_as_float(ra) >= __uint_as_float(rb) && pb)
    OPERATION(pd = !(__uint_as_float(ra) == __uint_as_float(rc)))
    OPERATIONS_END
};

struct Logic {
    OPERATIONS
    OPERATION(pd = pa && pb)
    OPERATION(pd = pa != pb)
    OPERATION(pd = pa || !pb)
    OPERATION(pd = (pa && pb) || (pc && !pa))
    OPERATION(pd = (pa != pb) != pc)
    OPERATIONS_END
};

// 64-bit integers, which are pairs of registers with a carry between them.
struct Wide {
    OPERATIONS
    OPERATION(Q2("add.u64"))
    OPERATION(Q2("sub.u64"))
    OPERATION(Q2("xor.b64"))
    OPERATION(asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(qd) : "r"(ra), "r"(rb), "l"(qa)))
    OPERATION(asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(qd) : "r"(ra), "n"(CONSTANT % 65521), "l"(qb)))
    OPERATION(asm("mul.wide.u32 %0, %1, %2;" : "=l"(qd) : "r"(ra), "r"(rb)))
    OPERATION(qd = qa + ((unsigned long long)ra << (CONSTANT % 5)))
    OPERATION(qd = pa ? qa : qb)
    OPERATION(pd = (long long)qa < (long long)qb)
    OPERATION(pd = qa != qb && pb)
    OPERATION(rd = (unsigned)qa ^ rb)
    OPERATION(rd = (unsigned)(qa >> 32) + rb)
    OPERATION(qd = (unsigned long long)ra << 32 | rb)
    OPERATIONS_END
};

// Predicated: a branch around one instruction, which the compiler turns into a guard.
struct Guarded {
    OPERATIONS
    OPERATION(if (pa) asm volatile("add.u32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (!pa) asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(if (pa) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(if (pa) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(if (!pa) asm volatile("shf.l.wrap.b32 %0, %0, %1, 7;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("mov.b32 %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("mov.b32 %0, %1;" : "+r"(rd) : "n"(CONSTANT)))
    OPERATION(if (pa) asm volatile("mul.f32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (!pa) asm volatile("prmt.b32 %0, %0, %1, 0x5410;" : "+r"(rd) : "r"(ra)))
    OPERATIONS_END
};

// Accesses whose address and data come straight from arithmetic.
struct Memory {
    OPERATIONS
    OPERATION(asm volatile("ld.shared.u32 %0, [%1];" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(ra), "r"(rb)))
    OPERATION(asm volatile("st.shared.u32 [%0+64], %1;" ::"r"(rb), "r"(ra)))
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(rd) : "l"(qa)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATION(asm volatile("st.global.u64 [%0+8], %1;" ::"l"(qb), "l"(qa)))
    OPERATION(if (pa) asm volatile("st.shared.u32 [%0], %1;" ::"r"(ra), "r"(rb)))
    OPERATION(if (!pa) asm volatile("st.global.u32 [%0], %1;" ::"l"(qa), "r"(rb)))
    OPERATION(if (pa) asm volatile("ld.shared.u32 %0, [%1];" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("ld.global.u32 %0, [%1];" : "+r"(rd) : "l"(qa)))
    OPERATIONS_END
};

using Glue = Mixture<Integer, Single, Compare>;
