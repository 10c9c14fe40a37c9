// Conversions between all widths, mixed with the arithmetic that makes and takes the values.
#include "operations.cuh"

struct ToInteger {
    OPERATIONS
    OPERATION(R1("cvt.rzi.s32.f32"))
    OPERATION(R1("cvt.rni.u32.f32"))
    OPERATION(R1("cvt.rpi.ftz.s32.f32"))
    OPERATION(asm("{ .reg .s16 t; cvt.rzi.s16.f32 t, %1; cvt.s32.s16 %0, t; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .u32 t; cvt.rzi.u8.f32 t, %1; cvt.u32.u8 %0, t; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .s32 t; cvt.rni.sat.s8.f32 t, %1; cvt.s32.s8 %0, t; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("cvt.rzi.s64.f32 %0, %1;" : "=l"(qd) : "r"(ra)))
    OPERATION(asm("cvt.rni.u64.f32 %0, %1;" : "=l"(qd) : "r"(ra)))
    OPERATION(R_FROM_Q("cvt.rzi.s32.f64"))
    OPERATION(Q1("cvt.rmi.u64.f64"))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rzi.s32.f16 %0, x; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rni.u16.f16 x, y; mov.b32 %0, {x, y}; }" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
struct FromInteger {
    OPERATIONS
    OPERATION(R1("cvt.rn.f32.s32"))
    OPERATION(R1("cvt.rn.f32.u32"))
    OPERATION(R1("cvt.rz.f32.u32"))
    OPERATION(asm("{ .reg .u32 t; cvt.u32.u8 t, %1; cvt.rn.f32.u8 %0, t; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .u32 t; shr.u32 t, %1, 16; cvt.rn.f32.u8 %0, t; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rn.f32.s16 %0, y; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("cvt.rn.f32.s64 %0, %1;" : "=r"(rd) : "l"(qa)))
    OPERATION(asm("cvt.rn.f32.u64 %0, %1;" : "=r"(rd) : "l"(qa)))
    OPERATION(Q_FROM_R("cvt.rn.f64.s32"))
    OPERATION(Q1("cvt.rn.f64.s64"))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.f16.u32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rn.f16.s16 x, x; mov.b32 %0, {x, y}; }" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
struct BetweenFloats {
    OPERATIONS
    OPERATION(R_FROM_Q("cvt.rn.f32.f64"))
    OPERATION(Q_FROM_R("cvt.f64.f32"))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.f16.f32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x; cvt.rz.f16.f32 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.f32.f16 %0, y; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.f64.f16 %0, y; }" : "=l"(qd) : "r"(ra)))
    OPERATION(R1("cvt.rni.f32.f32"))
    OPERATION(R1("cvt.rpi.f32.f32"))
    OPERATION(Q1("cvt.rzi.f64.f64"))
    OPERATION(R1("cvt.sat.f32.f32"))
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 890
struct Narrow {
    OPERATIONS
    OPERATION(asm("{ .reg .b16 x; cvt.rn.satfinite.e4m3x2.f32 x, %1, %2; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.satfinite.relu.e5m2x2.f32 x, %1, %2; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.satfinite.e4m3x2.f16x2 x, %1; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rn.f16x2.e4m3x2 %0, x; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rn.relu.f16x2.e5m2x2 %0, y; }" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
#else
using Narrow = Nothing;
#endif
#if __CUDA_ARCH__ >= 800
struct Pack {
    OPERATIONS
    OPERATION(asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.rz.relu.bf16x2.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R1("cvt.rna.tf32.f32"))
    OPERATION(asm("shl.b32 %0, %1, 16;" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
#else
using Pack = Nothing;
#endif

PROGRAM(to_integer, looped, 131, 150, Few, ToInteger, Integer, Single)
PROGRAM(from_integer, looped, 132, 150, Few, FromInteger, Integer, Single)
PROGRAM(between_floats, looped, 133, 150, Few, BetweenFloats, Half, Glue)
PROGRAM(all_conversions, looped, 134, 200, Some, ToInteger, FromInteger, BetweenFloats, Narrow, Wide, Glue)
PROGRAM(narrow_chain, looped, 135, 150, Chain, Narrow, Pack, Single, Integer)
PROGRAM(narrow_few, looped, 136, 200, Few, Narrow, Pack, Pack, Half, Glue)
PROGRAM(pack_memory, looped, 137, 150, Few, Narrow, Pack, FromInteger, Memory)
