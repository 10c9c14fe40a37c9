// Predicates: computed, combined, kept in a register when there are too many, used as guards.
#include "operations.cuh"

// All predicates into a register (P2R) and back (R2P).
struct Packed {
    OPERATIONS
    OPERATION(unsigned m = 0; for (int i = 0; i < S::P && i < 7; i++) m |= s.p[i] ? 1u << i : 0; rd = m ^ ra)
    OPERATION(for (int i = 0; i < S::P && i < 7; i++) s.p[i] = ra >> i & 1)
    OPERATION(for (int i = 0; i < S::P && i < 4; i++) s.p[i] = ra >> (i + 8) & 1)
    OPERATIONS_END
};

// Guards on whatever can carry one, and two guards in a row with opposite senses.
struct MoreGuarded {
    OPERATIONS
    OPERATION(if (pa) asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("min.s32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("max.f32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("mad.wide.u32 %0, %1, %2, %0;" : "+l"(qd) : "r"(ra), "r"(rb)))
    OPERATION(if (pa) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("popc.b32 %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("cvt.rn.f32.s32 %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("ld.const.u32 %0, [numbers+%1];" : "+r"(rd) : "n"(CONSTANT % 1024 * 4)))
    OPERATION(if (pa) asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(ra), "r"(rb)))
    OPERATION(if (pa) asm volatile("add.u32 %0, %0, 5;" : "+r"(rd)); else asm volatile("sub.u32 %0, %0, %1;" : "+r"(rd) : "r"(rb)))
    OPERATION(if (pa && pb) asm volatile("xor.b32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (pa || !pb) asm volatile("shl.b32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATIONS_END
};

PROGRAM(logic_chain, looped, 21, 250, Chain, Logic, Logic, Compare)
PROGRAM(logic_few, looped, 22, 350, Few, Logic, Logic, Glue)
PROGRAM(many_live, looped, 23, 350, Many, Logic, Logic, Packed, Glue)
PROGRAM(packed, looped, 24, 150, Few, Packed, Packed, Compare, Integer)
PROGRAM(guards_chain, looped, 25, 120, Chain, Guarded, MoreGuarded, Glue)
PROGRAM(guards_few, looped, 26, 160, Few, Guarded, Guarded, MoreGuarded, Glue)
PROGRAM(guards_logic, looped, 27, 120, Some, Guarded, MoreGuarded, Logic, Compare)
PROGRAM(guards_memory, looped, 28, 120, Few, Guarded, Memory, Logic, Glue)

// Short alternatives on a condition that differs from lane to lane.
extern "C" __global__ void alternatives(const unsigned *in, unsigned *out, int n) {
    unsigned x = in[threadIdx.x], y = in[threadIdx.x + 256], z = in[threadIdx.x + 512];
    for (int i = 0; i < n; i++) {
        if (x > y) { asm volatile("add.u32 %0, %0, %1;" : "+r"(x) : "r"(z)); asm volatile("xor.b32 %0, %0, %1;" : "+r"(z) : "r"(x)); }
        else { asm volatile("sub.u32 %0, %0, %1;" : "+r"(y) : "r"(z)); }
        if ((x ^ z) & 4) { asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(z) : "r"(x), "r"(y)); }
        if (__uint_as_float(z) < 1.5f) { asm volatile("mul.f32 %0, %0, %1;" : "+r"(x) : "r"(y)); }
        else if (y & 8) { asm volatile("shl.b32 %0, %0, 3;" : "+r"(y)); out[threadIdx.x + 256 * i] = x; }
        while (y & 3) { y += x >> 2; if (y == z) break; }
    }
    out[threadIdx.x] = x + y * z;
}

// Bits of a mask as guards, a few at a time.
extern "C" __global__ void masks(const unsigned *in, unsigned *out, int n) {
    unsigned m = in[threadIdx.x], x = in[threadIdx.x + 256], y = x + 1;
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 28; k++) {
            if (m >> k & 1) out[threadIdx.x + 512 * k] = x;
            if (k % 7 == 6) asm("mad.lo.u32 %0, %1, %1, %2;" : "=r"(x) : "r"(x), "r"(y));
        }
#pragma unroll
        for (int k = 0; k < 12; k++) {
            unsigned v = 0;
            if (m >> k & 1) v = in[threadIdx.x + 256 * k + x];
            asm("mad.lo.u32 %0, %1, %2, %0;" : "+r"(y) : "r"(v), "r"(x));
        }
        m = m * 5 + y;
    }
    out[threadIdx.x] = y;
}
