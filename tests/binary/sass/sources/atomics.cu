// Every kind of atomic: spaces, widths, with and without a result, exchange and compare.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define ALL_INTEGER(T, p, v)                                                                                 \
    atomicAdd(p, v); atomicMin(p + 1, v); atomicMax(p + 2, v); atomicAnd(p + 3, v); atomicOr(p + 4, v);      \
    atomicXor(p + 5, v)
#define ALL_INTEGER_RESULT(T, p, v)                                                                          \
    (atomicAdd(p, v) ^ atomicMin(p + 1, v) ^ atomicMax(p + 2, v) ^ atomicAnd(p + 3, v) ^ atomicOr(p + 4, v) ^ \
     atomicXor(p + 5, v) ^ atomicExch(p + 6, v) ^ atomicCAS(p + 7, v, v + 1))

extern "C" __global__ void global_integer(int *i, unsigned *u, unsigned long long *l, long long *s, int *out) {
    int t = threadIdx.x;
    ALL_INTEGER(int, i, t);
    ALL_INTEGER(unsigned, u, (unsigned)t);
    ALL_INTEGER(unsigned long long, l, (unsigned long long)t * 3);
    atomicMin(s, (long long)t); atomicMax(s + 1, (long long)t);
    atomicInc(u + 9, t); atomicDec(u + 10, t);
    out[t] = ALL_INTEGER_RESULT(int, i, t) + ALL_INTEGER_RESULT(unsigned, u, (unsigned)t) +
             (int)ALL_INTEGER_RESULT(unsigned long long, l, (unsigned long long)t) + atomicInc(u + 8, t) +
             atomicDec(u + 9, t) + (int)atomicMin(s + 2, (long long)t);
}

extern "C" __global__ void shared_integer(int *out, unsigned long long *out64) {
    __shared__ int i[16];
    __shared__ unsigned u[16];
    __shared__ unsigned long long l[16];
    int t = threadIdx.x;
    if (t < 16) { i[t] = t; u[t] = t; l[t] = t; }
    __syncthreads();
    ALL_INTEGER(int, i, t);
    ALL_INTEGER(unsigned, u, (unsigned)t);
    out[t] = ALL_INTEGER_RESULT(int, i, t) + ALL_INTEGER_RESULT(unsigned, u, (unsigned)t) + atomicInc(u + 8, t);
    out64[t] = ALL_INTEGER_RESULT(unsigned long long, l, (unsigned long long)t);
    __syncthreads();
    out[t] += i[t & 7] + u[t & 7] + (int)l[t & 7];
}

extern "C" __global__ void floating(float *f, double *d, __half2 *h, __nv_bfloat162 *b, __half *h1, float *out, double *outd) {
    __shared__ float sf[4];
    __shared__ double sd[4];
    int t = threadIdx.x;
    if (t < 4) { sf[t] = 0; sd[t] = 0; }
    __syncthreads();
    atomicAdd(f, 1.0f * t); atomicAdd(d, 2.0 * t); atomicAdd(h, __float2half2_rn(t)); atomicAdd(h1, __float2half(t));
    atomicAdd(sf, 1.0f * t); atomicAdd(sd, 2.0 * t);
    out[t] = atomicAdd(f + 1, 2.0f) + atomicExch(f + 2, 3.0f * t) + atomicAdd(sf + 1, 1.0f) +
             __low2float(atomicAdd(h + 1, __float2half2_rn(2 * t)));
    outd[t] = atomicAdd(d + 1, 3.0 * t) + atomicAdd(sd + 1, 1.0 * t);
#if __CUDA_ARCH__ >= 800
    atomicAdd(b, __float2bfloat162_rn(t));
    out[t] += __low2float(atomicAdd(b + 1, __float2bfloat162_rn(t)));
#endif
    __syncthreads();
    out[t] += sf[t & 3] + (float)sd[t & 3];
}

// A pointer that may lead anywhere: ATOM and RED instead of ATOMG.
extern "C" __global__ void generic(int **p, unsigned long long **q, float **f, int *out) {
    int t = threadIdx.x;
    __shared__ int s[32];
    int *where = t & 1 ? s + (t & 31) : p[t];
    s[t & 31] = 0;
    __syncthreads();
    atomicAdd(where, t);
    out[t] = atomicMax(where, t) + atomicCAS(where, t, 5) + (int)atomicExch(q[t], 7ull * t) + (int)atomicCAS(q[t], 1ull, 2ull * t);
    atomicAdd(f[t], 1.0f * t);
}

extern "C" __global__ void scoped(int *i, int *out) {
    int t = threadIdx.x, r;
    asm volatile("atom.global.release.sys.add.u32 %0, [%1], %2;" : "=r"(r) : "l"(i), "r"(t) : "memory");
    out[t] = r;
    asm volatile("atom.global.acquire.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(i + 1), "r"(t), "r"(t + 1) : "memory");
    out[t + 32] = r;
    asm volatile("red.global.relaxed.cta.add.u32 [%0], %1;" ::"l"(i + 2), "r"(t) : "memory");
    asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;" : "=h"(*(short *)&r) : "l"(i + 3), "h"((short)t), "h"((short)(t + 1)) : "memory");
    out[t + 64] = r & 0xffff;
}

#if __CUDA_ARCH__ >= 900
// Vectors of floats and 128-bit compare-and-swap.
extern "C" __global__ void vectors(float *f, unsigned short *h, unsigned long long *l, float *out) {
    int t = threadIdx.x;
    float a, b, c, d;
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(f), "f"(1.0f * t), "f"(2.0f * t) : "memory");
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(f + 4), "f"(1.0f * t), "f"(2.0f * t), "f"(3.0f * t), "f"(4.0f) : "memory");
    asm volatile("atom.global.v4.f32.add {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(f + 8), "f"(1.0f * t), "f"(2.0f * t), "f"(3.0f * t), "f"(4.0f) : "memory");
    out[t] = a + b + c + d;
    asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %4};" : "=f"(a), "=f"(b) : "l"(f + 12), "f"(1.0f * t), "f"(2.0f * t) : "memory");
    out[t + 32] = a + b;
    unsigned r0, r1, r2, r3;
    asm volatile("atom.global.v4.f16x2.add.noftz {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "l"(h), "r"(t), "r"(t + 1), "r"(t + 2), "r"(t + 3) : "memory");
    out[t + 64] = r0 + r1 + r2 + r3;
    asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1, %2};" ::"l"(h + 16), "r"(t), "r"(t + 1) : "memory");
    asm volatile("red.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(h + 16), "r"(t), "r"(t + 1), "r"(t + 2), "r"(t + 3) : "memory");
    asm volatile("{ .reg .b128 x, y, z; mov.b128 x, {%2, %3}; mov.b128 y, {%4, %5}; atom.global.cas.b128 z, [%6], x, y; mov.b128 {%0, %1}, z; }"
                 : "=l"(l[t + 8]), "=l"(l[t + 9]) : "l"(1ull * t), "l"(2ull * t), "l"(3ull * t), "l"(4ull * t), "l"(l) : "memory");
    asm volatile("{ .reg .b128 x, z; mov.b128 x, {%2, %3}; atom.global.exch.b128 z, [%4], x; mov.b128 {%0, %1}, z; }"
                 : "=l"(l[t + 18]), "=l"(l[t + 19]) : "l"(1ull * t), "l"(2ull * t), "l"(l + 4) : "memory");
}
#endif
