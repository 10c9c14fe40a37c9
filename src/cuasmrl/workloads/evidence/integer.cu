// 32-bit integers, floats and predicates in all orders: the pairs that everything else is measured against.
#include "operations.cuh"

// Two constants, of which one has to be moved to a register first.
struct Constants {
    OPERATIONS
    OPERATION(asm("fma.rn.f32 %0, %1, 0f3fb8aa3b, 0f40490fdb;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("lop3.b32 %0, %1, %2, %3, 0x1e;" : "=r"(rd) : "r"(ra), "n"(CONSTANT), "n"(CONSTANT ^ 0x1234567)))
    OPERATION(asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "n"(CONSTANT | 65537), "n"(CONSTANT >> 3)))
    OPERATION(asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(rd) : "n"(CONSTANT), "n"(CONSTANT >> 5), "r"(ra)))
    OPERATION(asm("prmt.b32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "n"(CONSTANT), "n"(CONSTANT & 0x7777)))
    OPERATION(rd = pa ? CONSTANT : CONSTANT >> 7)
    OPERATION(asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(CONSTANT), "r"(CONSTANT >> 1)))
    OPERATION(asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(CONSTANT), "r"(CONSTANT >> 1)))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(ra), "r"(CONSTANT)))
    OPERATION(asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(ra), "r"(CONSTANT), "r"(rb)))
    OPERATION(asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, -1;" : "=r"(rd) : "r"(CONSTANT), "r"(ra)))
    OPERATION(qd = qa + CONSTANT)
    OPERATIONS_END
};

PROGRAM(constants_chain, looped, 18, 200, Chain, Constants, Integer)
PROGRAM(constants_few, looped, 19, 250, Few, Constants, Constants, Glue)
PROGRAM(integers_chain, looped, 11, 300, Chain, Integer, Compare)
PROGRAM(integers_few, looped, 12, 400, Few, Integer, Compare)
PROGRAM(floats_chain, looped, 13, 300, Chain, Glue)
PROGRAM(floats_few, looped, 14, 400, Few, Glue)
PROGRAM(halves_few, looped, 15, 300, Few, Glue, Half)
PROGRAM(addresses, looped, 16, 300, Few, Glue, Memory)
TIGHT_PROGRAM(tight, 32, looped, 17, 400, Many, Glue, Half)
