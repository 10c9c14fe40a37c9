// Bit fields, permutations and counts: PTX that C++ seldom reaches.
#include "operations.cuh"

struct Fields {
    OPERATIONS
    OPERATION(R3("bfe.u32"))
    OPERATION(R3("bfe.s32"))
    OPERATION(asm("bfe.s32 %0, %1, 3, 9;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("bfi.b32 %0, %1, %2, %3, 8;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("bfi.b32 %0, %1, %2, 4, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(R2("bmsk.clamp.b32"))
    OPERATION(R2("bmsk.wrap.b32"))
    OPERATION(R2("szext.wrap.s32"))
    OPERATION(R2("szext.clamp.u32"))
    OPERATION(R3("sad.s32"))
    OPERATION(R3("sad.u32"))
    OPERATION(R1("abs.s32"))
    OPERATION(R1("neg.s32"))
    OPERATION(R1("not.b32"))
    OPERATION(R1("cnot.b32"))
    OPERATION(R3("slct.s32.s32"))
    OPERATION(asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, %2, %3, p; }" : "=r"(rd) : "l"(qa), "r"(ra), "r"(rb)))
    OPERATIONS_END
};
struct Permutes {
    OPERATIONS
    OPERATION(R3("prmt.b32.f4e"))
    OPERATION(R3("prmt.b32.b4e"))
    OPERATION(R3("prmt.b32.rc8"))
    OPERATION(R3("prmt.b32.ecl"))
    OPERATION(R3("prmt.b32.ecr"))
    OPERATION(R3("prmt.b32.rc16"))
    OPERATION(R3N("prmt.b32", CONSTANT & 0xffff))
    OPERATION(R3("shf.l.clamp.b32"))
    OPERATION(R3("shf.r.wrap.b32"))
    OPERATION(asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "n"(CONSTANT % 31 + 1)))
    OPERATION(asm("{ .reg .u32 t; shf.l.clamp.b32 t, %1, %2, %4; add.u32 %0, t, %3; }"
                  : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc), "n"(CONSTANT % 31 + 1)))
    OPERATION(asm("{ .reg .u32 t; shr.s32 t, %1, 31; add.u32 %0, t, %2; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; mov.b32 %0, {y, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
struct Counts {
    OPERATIONS
    OPERATION(R1("popc.b32"))
    OPERATION(R1("clz.b32"))
    OPERATION(R1("bfind.s32"))
    OPERATION(R1("bfind.shiftamt.u32"))
    OPERATION(R1("brev.b32"))
    OPERATION(rd = __ffs(ra))
    OPERATIONS_END
};

PROGRAM(fields_chain, looped, 101, 200, Chain, Fields, Integer, Compare)
PROGRAM(fields_few, looped, 102, 250, Few, Fields, Fields, Glue)
PROGRAM(permutes_chain, looped, 103, 200, Chain, Permutes, Integer, Compare)
PROGRAM(permutes_few, looped, 104, 250, Few, Permutes, Permutes, Fields, Glue)
PROGRAM(counts, looped, 105, 200, Few, Counts, Fields, Permutes, Integer)
PROGRAM(bits_memory, looped, 106, 150, Few, Fields, Permutes, Memory)
TIGHT_PROGRAM(bits_tight, 32, looped, 107, 200, Many, Fields, Permutes, Glue)

// The n-th bit set is found by a sequence that ptxas writes.
extern "C" __global__ void nth_bit(const unsigned *in, unsigned *out, int n) {
    unsigned x = in[threadIdx.x], y = in[threadIdx.x + 256];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        asm("fns.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(y), "r"(i));
        x = x * 5 + y;
    }
    out[threadIdx.x] = y;
}
