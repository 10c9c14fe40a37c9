// 64-bit integers: carries, comparisons, shifts, products, and the addresses made of them.
#include "operations.cuh"

struct WideMore {
    OPERATIONS
    OPERATION(Q2("mul.lo.u64"))
    OPERATION(Q3("mad.lo.u64"))
    OPERATION(Q2("mul.hi.u64"))
    OPERATION(Q2("min.s64"))
    OPERATION(Q2("max.u64"))
    OPERATION(Q1("neg.s64"))
    OPERATION(Q1("abs.s64"))
    OPERATION(asm("shl.b64 %0, %1, %2;" : "=l"(qd) : "l"(qa), "r"(ra)))
    OPERATION(asm("shr.s64 %0, %1, %2;" : "=l"(qd) : "l"(qa), "r"(ra)))
    OPERATION(asm("shr.u64 %0, %1, %2;" : "=l"(qd) : "l"(qa), "n"(CONSTANT % 63 + 1)))
    OPERATION(asm("{ .reg .u64 t; shl.b64 t, %1, %3; add.u64 %0, t, %2; }" : "=l"(qd) : "l"(qa), "l"(qb), "n"(CONSTANT % 31 + 1)))
    OPERATION(R_FROM_Q("popc.b64"))
    OPERATION(R_FROM_Q("clz.b64"))
    OPERATION(Q1("brev.b64"))
    OPERATION(asm("mul.hi.u32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATIONS_END
};
struct WideCompare {
    OPERATIONS
    OPERATION(pd = qa > qb)
    OPERATION(pd = (long long)qa >= (long long)qb && pa)
    OPERATION(pd = qa == qb || pb)
    OPERATION(pd = (qa & qb) != 0)
    OPERATION(pd = qa < CONSTANT)
    OPERATION(pd = (long long)qa < 0)
    OPERATION(rd = pa ? (unsigned)qa : (unsigned)(qb >> 32))
    OPERATION(qd = pa ? qa : qb + 1)
    OPERATION(if (pa) asm volatile("add.u64 %0, %0, %1;" : "+l"(qd) : "l"(qa)))
    OPERATIONS_END
};
// 96 and 128 bits: the carry goes on from one addition to the next.
struct Carries {
    OPERATIONS
    OPERATION(asm("add.cc.u32 %0, %1, %2; addc.u32 %3, %4, %5;" : "=r"(rd), "=r"(rc) : "r"(ra), "r"(rb), "r"(rc), "r"(ra)))
    OPERATION(asm("{ .reg .u32 t; add.cc.u32 t, %1, %2; addc.cc.u32 %0, %3, t; addc.u32 %0, %0, %1; }" : "=&r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("{ .reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %3, t; }" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("{ .reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, t; }" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("add.cc.u64 %0, %1, %2; addc.u64 %0, %0, %3;" : "=&l"(qd) : "l"(qa), "l"(qb), "l"(qc)))
    OPERATION(asm("sub.cc.u64 %0, %1, %2; subc.u64 %0, %0, %1;" : "=&l"(qd) : "l"(qa), "l"(qb)))
    OPERATIONS_END
};

PROGRAM(wide_chain, looped, 61, 200, Chain, Wide, WideCompare)
PROGRAM(wide_few, looped, 62, 250, Few, Wide, WideMore, Compare)
PROGRAM(wide_mixed, looped, 63, 250, Few, Wide, Glue)
PROGRAM(wide_compare, looped, 64, 200, Few, Wide, WideCompare, Logic)
PROGRAM(wide_memory, looped, 65, 200, Few, Wide, Wide, Memory, Compare)
PROGRAM(wide_guards, looped, 66, 120, Few, Wide, WideCompare, Guarded)
PROGRAM(carries_chain, looped, 67, 150, Chain, Carries, Integer, Compare)
PROGRAM(carries_few, looped, 68, 150, Few, Carries, Carries, Wide, Logic)
TIGHT_PROGRAM(wide_tight, 40, looped, 69, 200, Many, Wide, WideCompare, Integer)
