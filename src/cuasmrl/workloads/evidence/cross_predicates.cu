// Every instruction that sets a predicate before every one that uses it: as data, as guard, as a vote.
#include "cross.cuh"

struct Setters {
    OPERATIONS
    OPERATION(pd = (int)ra < (int)rb)
    OPERATION(pd = ra == rb && pb)
    OPERATION(pd = __uint_as_float(ra) < __uint_as_float(rb))
    OPERATION(pd = ((ra ^ rb) & rc) == 0)
    OPERATION(pd = (pa && pb) || (pc && !pa))
    OPERATION(P_FROM_R("setp.lt.f16x2 p|q, %1, %2"))
    OPERATION(pd = __longlong_as_double(qa) < __longlong_as_double(qb))
    OPERATION(pd = qa < qb)
    OPERATION(pd = __any_sync(~0u, pa))
    OPERATION(unsigned set; asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 4, 0x1f, -1; selp.b32 %1, 1, 0, p; }"
                                         : "=r"(rd), "=r"(set) : "r"(ra)); pd = set)
    OPERATION(for (int i = 0; i < S::P; i++) s.p[i] = ra >> i & 1)
    OPERATIONS_END
};
#define GUARD(text) if (pa) asm volatile(text " %0, %0, %1;" : "+r"(rd) : "r"(rb))
#define GUARD3(text) if (!pa) asm volatile(text " %0, %0, %1, %2;" : "+r"(rd) : "r"(rb), "r"(rc))
#define GUARD1(text) if (pa) asm volatile(text " %0, %1;" : "+r"(rd) : "r"(rb))
struct Users {
    OPERATIONS
    OPERATION(rd = pa ? rb : rc)
    OPERATION(rd = __float_as_uint(pa ? __uint_as_float(rb) : -__uint_as_float(rc)))
    OPERATION(pd = (pa != pb) != pc)
    OPERATION(pd = (int)ra >= (int)rb && pa)
    OPERATION(pd = __uint_as_float(ra) >= __uint_as_float(rb) || pa)
    OPERATION(pd = ((rb & rc) != 0) && pa)
    OPERATION(rd = rb + rc + pa)
    OPERATION(rd = __ballot_sync(~0u, pa))
    OPERATION(pd = __all_sync(~0u, pa))
    OPERATION(pd = __any_sync(~0u, !pa))
    OPERATION(unsigned m = 0; for (int i = 0; i < S::P; i++) m |= s.p[i] ? 1u << i : 0; rd = m ^ ra)
    OPERATION(GUARD("add.u32"))
    OPERATION(GUARD3("lop3.b32 %0, %0, %1, %2, 0x6a; shf.l.wrap.b32"))
    OPERATION(GUARD("xor.b32"))
    OPERATION(GUARD3("shf.r.wrap.b32"))
    OPERATION(GUARD3("prmt.b32"))
    OPERATION(GUARD3("mad.lo.u32"))
    OPERATION(GUARD("mul.hi.u32"))
    OPERATION(GUARD("min.s32"))
    OPERATION(GUARD("add.f32"))
    OPERATION(GUARD("mul.f32"))
    OPERATION(GUARD3("fma.rn.f32"))
    OPERATION(GUARD("max.f32"))
    OPERATION(GUARD("add.rn.f16x2"))
    OPERATION(GUARD3("fma.rn.f16x2"))
    OPERATION(GUARD1("mov.b32"))
    OPERATION(if (pa) asm volatile("mov.b32 %0, %1;" : "+r"(rd) : "n"(CONSTANT)))
    OPERATION(GUARD1("ex2.approx.ftz.f32"))
    OPERATION(GUARD1("popc.b32"))
    OPERATION(GUARD1("cvt.rzi.s32.f32"))
    OPERATION(GUARD1("cvt.rn.f32.s32"))
    OPERATION(if (pa) asm volatile("mad.wide.u32 %0, %1, %2, %0;" : "+l"(qd) : "r"(rb), "r"(rc)))
    OPERATION(if (pa) asm volatile("add.u64 %0, %0, %1;" : "+l"(qd) : "l"(qb)))
    OPERATION(if (pa) asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+l"(qd) : "l"(qb)))
    OPERATION(if (pa) asm volatile("ld.shared.u32 %0, [%1];" : "+r"(rd) : "r"(rb)))
    OPERATION(if (!pa) asm volatile("st.shared.u32 [%0], %1;" ::"r"(rb), "r"(rc)))
    OPERATION(if (pa) asm volatile("ld.global.u32 %0, [%1];" : "+r"(rd) : "l"(qb)))
    OPERATION(if (pa) asm volatile("st.global.u32 [%0], %1;" ::"l"(qb), "r"(rc)))
    OPERATION(if (pa) asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(rb), "r"(rc)))
    OPERATION(if (pa) asm volatile("red.global.add.u32 [%0], %1;" ::"l"(qb), "r"(rc)))
    OPERATION(if (pa) asm volatile("bar.sync 1, 64;"))
    OPERATION(pd = __syncthreads_or(pa))
    OPERATION(rd = __shfl_sync(~0u, pa ? rb : rc, 5))
    OPERATIONS_END
};

using Three = State<6, 3, 3>;
using Six = State<8, 3, 6>;
CROSS(predicates_three, Setters, Users, Three, 1040)
CROSS(predicates_six, Setters, Users, Six, 1050)
