// Halves and bfloats in pairs: arithmetic, comparisons, and the way from and to floats.
#include "operations.cuh"

struct HalfMore {
    OPERATIONS
    OPERATION(R1("neg.f16x2"))
    OPERATION(R1("abs.f16x2"))
    OPERATION(asm("set.lt.f16x2.f16x2 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(P_FROM_R("setp.lt.f16x2 p|q, %1, %2"))
    OPERATION(P_FROM_R("setp.ge.f16x2 p|q, %1, %2; and.pred p, p, q"))
    OPERATION(unsigned set; asm("{ .reg .b16 x, y, z; .reg .pred p; mov.b32 {x, y}, %1; mov.b32 {z, y}, %2; setp.gt.f16 p, x, y; selp.u32 %0, 1, 0, p; }"
                                : "=r"(set) : "r"(ra), "r"(rb)); pd = set)
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; fma.rn.f16 x, x, y, x; mov.b32 %0, {x, y}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.f32.f16 %0, x; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.f32.f16 %0, y; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.f16.f32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(if (pa) asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(rd) : "r"(ra), "r"(rb)))
    OPERATIONS_END
};
struct HalfSpecial {
    OPERATIONS
    OPERATION(R1("ex2.approx.f16x2"))
    OPERATION(R1("tanh.approx.f16x2"))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; ex2.approx.f16 x, x; mov.b32 %0, {x, y}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rni.f16.f16 x, x; mov.b32 %0, {x, y}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rzi.s32.f16 %0, x; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.f16.s32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};

#if __CUDA_ARCH__ >= 800
struct Half80 {
    OPERATIONS
    OPERATION(R2("min.f16x2"))
    OPERATION(R2("max.NaN.f16x2"))
    OPERATION(R3("fma.rn.relu.f16x2"))
    OPERATION(asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATIONS_END
};
struct Bfloat {
    OPERATIONS
    OPERATION(R3("fma.rn.bf16x2"))
    OPERATION(R3("fma.rn.relu.bf16x2"))
    OPERATION(R2("min.bf16x2"))
    OPERATION(R2("max.NaN.bf16x2"))
    OPERATION(R1("neg.bf16x2"))
    OPERATION(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.bf16.f32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(R1("cvt.rna.tf32.f32"))
    OPERATIONS_END
};
#else
using Half80 = Nothing;
using Bfloat = Half;
#endif
#if __CUDA_ARCH__ >= 900
struct Bfloat90 {
    OPERATIONS
    OPERATION(R2("add.rn.bf16x2"))
    OPERATION(R2("sub.rn.bf16x2"))
    OPERATION(R2("mul.rn.bf16x2"))
    OPERATION(P_FROM_R("setp.lt.bf16x2 p|q, %1, %2"))
    OPERATION(asm("set.gt.bf16x2.bf16x2 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R1("ex2.approx.ftz.bf16x2"))
    OPERATION(R1("tanh.approx.bf16x2"))
    OPERATIONS_END
};
#else
using Bfloat90 = Nothing;
#endif
#if __CUDA_ARCH__ >= 860
struct Half86 {
    OPERATIONS
    OPERATION(R2("min.xorsign.abs.f16x2"))
    OPERATION(R2("max.xorsign.abs.bf16x2"))
    OPERATION(R2("max.NaN.xorsign.abs.f32"))
    OPERATIONS_END
};
#else
using Half86 = Nothing;
#endif
#if __CUDA_ARCH__ >= 1000
struct Half100 {
    OPERATIONS
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; fma.rn.f32.f16 %0, x, y, %2; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; add.rn.f32.bf16 %0, x, %2; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; sub.f32.f16 %0, y, %2; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATIONS_END
};
#else
using Half100 = Nothing;
#endif

PROGRAM(half_chain, looped, 81, 250, Chain, Half, Half, Half80, Integer, Compare)
PROGRAM(half_few, looped, 82, 300, Few, Half, Half, HalfMore, Half80, Half86, Glue)
PROGRAM(half_compare, looped, 83, 200, Few, Half, HalfMore, HalfMore, Half86, Compare, Logic)
PROGRAM(half_special, looped, 84, 150, Few, Half, HalfSpecial, HalfMore, Half100, Single)
PROGRAM(half_memory, looped, 85, 150, Few, Half, HalfMore, Memory)
PROGRAM(half_mixed, looped, 88, 150, Few, Half100, Half100, Half100, Half, Glue)
PROGRAM(bfloat_chain, looped, 86, 200, Chain, Bfloat, Bfloat90, Integer, Compare)
PROGRAM(bfloat_few, looped, 87, 250, Few, Bfloat, Bfloat90, Half, Glue)
TIGHT_PROGRAM(half_tight, 40, looped, 89, 250, Many, Half, HalfMore, Half80, Bfloat, Glue)
