// Floats: special functions, rounding, minima of three, pairs, division.
#include "operations.cuh"

struct Special {
    OPERATIONS
    OPERATION(R1("ex2.approx.ftz.f32"))
    OPERATION(R1("lg2.approx.ftz.f32"))
    OPERATION(R1("rcp.approx.ftz.f32"))
    OPERATION(R1("rsqrt.approx.ftz.f32"))
    OPERATION(R1("sqrt.approx.ftz.f32"))
    OPERATION(R1("sin.approx.ftz.f32"))
    OPERATION(R1("cos.approx.ftz.f32"))
    OPERATION(R1("tanh.approx.f32"))
    OPERATION(R1("ex2.approx.f32"))
    OPERATION(R1("rcp.approx.f32"))
    OPERATIONS_END
};
struct SingleMore {
    OPERATIONS
    OPERATION(asm("set.lt.f32.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("set.ge.u32.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(R2("add.rz.f32"))
    OPERATION(R2("mul.rp.f32"))
    OPERATION(R3("fma.rm.f32"))
    OPERATION(R1("neg.f32"))
    OPERATION(R1("abs.ftz.f32"))
    OPERATION(R2("copysign.f32"))
    OPERATION(asm("add.sat.f32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(rd = __float_as_uint(fmaxf(fmaxf(__uint_as_float(ra), __uint_as_float(rb)), __uint_as_float(rc))))
    OPERATION(rd = __float_as_uint(fminf(fminf(__uint_as_float(ra), __uint_as_float(rb)), __uint_as_float(rc))))
    OPERATION(P_FROM_R("setp.ltu.f32 p|q, %1, %2"))
    OPERATION(unsigned set; asm("{ .reg .pred p; testp.finite.f32 p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(set) : "r"(ra)); pd = set)
    OPERATION(R1("cvt.rmi.f32.f32"))
    OPERATION(R3("slct.s32.f32"))
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 1000
struct Pairs {
    OPERATIONS
    OPERATION(Q2("add.rn.f32x2"))
    OPERATION(Q2("mul.rn.f32x2"))
    OPERATION(Q3("fma.rn.f32x2"))
    OPERATION(Q2("sub.rn.f32x2"))
    OPERATION(qd = (unsigned long long)ra << 32 | rb)
    OPERATION(rd = (unsigned)qa ^ rb)
    OPERATION(rd = (unsigned)(qa >> 32))
    OPERATIONS_END
};
#else
using Pairs = Nothing;
#endif

PROGRAM(single_chain, looped, 121, 200, Chain, Single, SingleMore)
PROGRAM(single_few, looped, 122, 250, Few, Single, SingleMore, SingleMore, Glue)
PROGRAM(special_few, looped, 123, 200, Few, Special, Single, Integer)
PROGRAM(special_some, looped, 124, 200, Some, Special, SingleMore, Half, Glue)
PROGRAM(single_logic, looped, 125, 200, Few, Single, SingleMore, Logic, Compare)
PROGRAM(pairs_chain, looped, 126, 150, Chain, Pairs, Pairs, Single)
PROGRAM(pairs_few, looped, 127, 200, Few, Pairs, Pairs, Glue)
PROGRAM(pairs_memory, looped, 128, 150, Few, Pairs, SingleMore, Memory)

extern "C" __global__ void quotients(const float *in, float *out, int n) {
    float x = in[threadIdx.x], y = in[threadIdx.x + 256];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        x = x / y + sqrtf(y);
        y = __fdividef(y, x) + rsqrtf(x) + 1.f / x;
        if (x > y) y = expf(x) - logf(y) * sinf(x) + powf(x, y);
        x += erff(y) + tanhf(x) + fmodf(x, y);
    }
    out[threadIdx.x] = x + y;
}
extern "C" __global__ void integer_quotients(const int *in, int *out, int n) {
    int x = in[threadIdx.x], y = in[threadIdx.x + 256];
    long long z = ((const long long *)in)[threadIdx.x + 256];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        x = x / y + x % 7 + (unsigned)x / (unsigned)n;
        y = y % x + (unsigned)y % 10u;
        z = z / y + z % x + (unsigned long long)z / 1000u;
        y += (int)z;
    }
    out[threadIdx.x] = x + y;
}
