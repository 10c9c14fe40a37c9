// Several small integers in one register: dot products, minima, differences, saturating packs.
#include "operations.cuh"

struct Dots {
    OPERATIONS
    OPERATION(R3("dp4a.s32.s32"))
    OPERATION(R3("dp4a.u32.s32"))
    OPERATION(R3("dp2a.lo.s32.u32"))
    OPERATION(R3("dp2a.hi.u32.u32"))
    OPERATIONS_END
};
struct Differences {
    OPERATIONS
    OPERATION(R3("vabsdiff4.u32.u32.u32.add"))
    OPERATION(asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("vabsdiff.s32.s32.s32 %0, %1.b1, %2.b2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("vadd.s32.u32.s32.sat %0, %1.h1, %2.b0;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("vmin.s32.s32.u32 %0, %1.b3, %2.h0;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("vshl.u32.u32.u32.clamp %0, %1, %2.b0;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("vmad.s32.s32.s32 %0, %1.h0, %2.h1, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(rd = __vadd4(ra, rb))
    OPERATION(rd = __vavgu2(ra, rb))
    OPERATIONS_END
};
struct Extremes {
    OPERATIONS
    OPERATION(R2("min.s32"))
    OPERATION(R2("max.u32"))
    OPERATION(rd = max(max((int)ra, (int)rb), (int)rc))
    OPERATION(rd = min(min(ra, rb), rc))
    OPERATION(rd = max((int)(ra + rb), (int)rc))
    OPERATION(rd = min(ra + rb, rc))
    OPERATION(rd = __viaddmax_s32_relu(ra, rb, rc))
    OPERATION(rd = __vimax_s32_relu(ra, rb))
    OPERATION(rd = max((int)ra, 0))
    OPERATION(bool which; rd = __vibmax_s32(ra, rb, &which); pd = which)
    OPERATION(bool which; rd = __vibmin_u32(ra, rb, &which); pd = which)
    OPERATIONS_END
};
struct PackedExtremes {
    OPERATIONS
    OPERATION(rd = __vmaxs2(ra, rb))
    OPERATION(rd = __vminu2(ra, rb))
    OPERATION(rd = __viaddmax_s16x2(ra, rb, rc))
    OPERATION(rd = __viaddmin_u16x2(ra, rb, rc))
    OPERATION(rd = __vimax3_s16x2(ra, rb, rc))
    OPERATION(rd = __vimin_s16x2_relu(ra, rb))
    OPERATION(bool high; bool low; rd = __vibmax_s16x2(ra, rb, &high, &low); pd = high; s.p[D::bits(7) % S::P] = low)
    OPERATIONS_END
};
struct Packs {
    OPERATIONS
    OPERATION(asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("{ .reg .s32 x, y; cvt.rni.s32.f32 x, %1; cvt.rni.s32.f32 y, %2; cvt.pack.sat.s8.s32.b32 %0, x, y, %3; }"
                  : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm("{ .reg .s32 x, y; cvt.rni.s32.f32 x, %1; cvt.rni.s32.f32 y, %2; cvt.pack.sat.s16.s32 %0, x, y; }"
                  : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("cvt.s32.s8 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("cvt.u32.u16 %0, %1;" : "=r"(rd) : "h"((unsigned short)ra)))
    OPERATIONS_END
};
struct Saturated {
    OPERATIONS
    OPERATION(asm("cvt.sat.s8.s32 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("cvt.sat.u8.u32 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("cvt.sat.u16.s32 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("cvt.sat.s16.u32 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};

PROGRAM(dots_chain, looped, 111, 200, Chain, Dots, Integer)
PROGRAM(dots_few, looped, 112, 250, Few, Dots, Dots, Glue)
PROGRAM(differences, looped, 113, 100, Few, Differences, Dots, Integer)
PROGRAM(extremes_chain, looped, 114, 200, Chain, Extremes, Integer, Compare)
PROGRAM(extremes_few, looped, 115, 250, Few, Extremes, Extremes, Glue, Logic)
PROGRAM(packed_extremes, looped, 116, 120, Few, PackedExtremes, Extremes, Half, Integer)
PROGRAM(packs, looped, 117, 200, Few, Packs, Packs, Dots, Glue)
PROGRAM(saturated, looped, 110, 100, Few, Saturated, Packs, Integer)
PROGRAM(packed_memory, looped, 118, 150, Few, Packs, Extremes, Dots, Memory)
TIGHT_PROGRAM(packed_tight, 32, looped, 119, 200, Many, Dots, Extremes, Packs, Glue)

// Floats to bytes, four at a time, as image kernels do it.
extern "C" __global__ void quantise(const float4 *in, unsigned *out, float scale, int n) {
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 256) {
        float4 v = in[i];
        int x = __float2int_rn(v.x * scale), y = __float2int_rn(v.y * scale), z = __float2int_rn(v.z * scale), w = __float2int_rn(v.w * scale);
        x = min(max(x, -128), 127), y = min(max(y, -128), 127), z = min(max(z, -128), 127), w = min(max(w, -128), 127);
        out[i] = (x & 255) | (y & 255) << 8 | (z & 255) << 16 | w << 24;
        uchar4 u = make_uchar4((unsigned char)v.x, (unsigned char)v.y, (unsigned char)v.z, (unsigned char)v.w);
        char4 c = make_char4((signed char)v.x, (signed char)v.y, (signed char)v.z, (signed char)v.w);
        ((uchar4 *)out)[i + n] = u;
        ((char4 *)out)[i + 2 * n] = c;
        ((ushort2 *)out)[i + 3 * n] = make_ushort2(__float2uint_rz(v.x), __float2uint_rn(v.y));
    }
}
