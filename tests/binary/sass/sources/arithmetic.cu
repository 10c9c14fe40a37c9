// Arithmetic that Triton kernels seldom need: doubles, 64-bit integers, halves, dot products, conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void doubles(const double *a, const double *b, double *c, float *f, long long *l, int *i) {
    int t = threadIdx.x;
    double x = a[t], y = b[t];
    c[t] = x * y + sqrt(x) - y / x + fmin(x, y) + fabs(x) * rsqrt(y);
    c[t + 32] = x > y ? floor(x) : ceil(y) + rint(x) + trunc(y);
    c[t + 64] = exp(x) + log(y) + sin(x) + (double)f[t] + (double)l[t] + (double)i[t];
    f[t] = (float)x + __double2float_rz(y);
    l[t] = (long long)x + (long long)__double2ull_rn(y) + __double2hiint(x) + __double2loint(y);
    i[t] = (int)x + (int)__double2uint_ru(y) + isnan(x) + (x < y && y != 0.0);
    c[t + 96] = __hiloint2double(i[t + 1], i[t + 2]) + (double)(unsigned)i[t + 3] + (double)(unsigned long long)l[t + 4];
}

extern "C" __global__ void longs(const long long *a, const long long *b, long long *c, unsigned long long *u, int *i, float *f) {
    int t = threadIdx.x;
    long long x = a[t], y = b[t];
    unsigned long long v = u[t];
    c[t] = x * y + (x << 3) - (y >> (t & 63)) + min(x, y) + llabs(x);
    c[t + 32] = x / y + x % y + __mul64hi(x, y);
    u[t] = v / (unsigned long long)y + v % 7 + __umul64hi(v, v) + (v >> (t & 63)) + (v << (t & 31));
    i[t] = __mulhi((int)x, (int)y) + __umulhi((unsigned)x, (unsigned)y) + (int)(x * y > 3 ? x : y) + __mul24((int)x, (int)y) +
           (x < y) + (v > (unsigned long long)x);
    f[t] = (float)x + (float)v + (float)(long long)f[t + 1] + (float)(unsigned long long)f[t + 2];
    c[t + 64] = (long long)(int)x * (int)y + a[t + 1] * (int)x + (long long)((unsigned)x * (unsigned long long)(unsigned)y);
    i[t + 32] = (int)x / (int)y + (int)x % (int)y + (unsigned)x / (unsigned)y;
}

extern "C" __global__ void packed_integers(const int *a, const int *b, int *c) {
    int t = threadIdx.x, x = a[t], y = b[t], z = c[t];
    c[t] = __dp4a(x, y, z) + __dp2a_lo(x, y, z) + __dp2a_hi(x, y, z) + __dp4a((unsigned)x, (unsigned)y, (unsigned)z);
    c[t + 32] = __vmaxs2(x, y) + __vmins2(x, y) + __vmaxu4(x, y) + __vminu4(x, y) + __vadd2(x, y) + __vsub4(x, y) + __vabsdiffu4(x, y) +
                __vavgu4(x, y) + __vcmpgtu2(x, y) + __vseteq4(x, y) + __vsadu4(x, y) + __vabsdiffs2(x, y);
    c[t + 64] = __sad(x, y, z) + __usad(x, y, z) + __funnelshift_l(x, y, z) + __funnelshift_r(x, y, z) + __byte_perm(x, y, 0x3210 + t) +
                abs(x) + min(x, y) + max(x, y) + (x ^ y & z | x & ~z) + __viaddmax_s32(x, y, z) + __vimax3_s32(x, y, z) +
                __viaddmin_u32(x, y, z) + __vimin3_u32(x, y, z) + __vimax_s32_relu(x, y) + __vibmax_s32(x, y, (bool *)&z) + z;
    c[t + 96] = __viaddmax_s16x2(x, y, z) + __vimax3_s16x2(x, y, z) + __vimin_s16x2_relu(x, y) + __viaddmin_s16x2_relu(x, y, z);
    int bits;
    asm volatile("bmsk.clamp.b32 %0, %1, %2;" : "=r"(bits) : "r"(x), "r"(y));
    c[t + 128] = bits;
    asm volatile("szext.wrap.s32 %0, %1, %2;" : "=r"(bits) : "r"(x), "r"(y));
    c[t + 160] = bits;
    asm volatile("bfe.s32 %0, %1, %2, %3;" : "=r"(bits) : "r"(x), "r"(y), "r"(z));
    c[t + 192] = bits;
    asm volatile("bfi.b32 %0, %1, %2, %3, 8;" : "=r"(bits) : "r"(x), "r"(y), "r"(z));
    c[t + 224] = bits;
}

extern "C" __global__ void halves(const __half2 *a, const __half2 *b, __half2 *c, const __nv_bfloat162 *d, __nv_bfloat162 *e, float *f) {
    int t = threadIdx.x;
    __half2 x = a[t], y = b[t];
    c[t] = __hfma2(x, y, a[t + 1]);
    c[t + 32] = __hadd2(__hmul2(x, y), h2exp(x));
    c[t + 64] = __hlt2(x, y);
    c[t + 96] = __hfma2_relu(x, y, x);
    c[t + 128] = __hmax2(x, y);
    c[t + 160] = h2sqrt(x);
    c[t + 192] = __h2div(x, y);
    c[t + 224] = h2floor(x);
    if (__hbgt2(x, y)) c[t + 256] = h2tanh(x);
    __nv_bfloat162 p = d[t], q = d[t + 1];
#if __CUDA_ARCH__ >= 800
    e[t] = __hfma2(p, q, p);
    e[t + 32] = __hmin2(p, q);
    e[t + 64] = __hgt2(p, q);
#endif
    f[t] = __low2float(x) + __high2float(p) + __half2float(__float2half(f[t])) + (float)__half2int_rn(__low2half(x)) + __half2float(__uint2half_rn(t));
    f[t + 32] = __bfloat162float(__float2bfloat16(f[t + 1])) + __half2float(hsin(__low2half(y)));
}

extern "C" __global__ void singles(const float *a, float *b, int *i, unsigned *u, unsigned short *s, unsigned char *bytes) {
    int t = threadIdx.x;
    float x = a[t], y = a[t + 1];
    b[t] = __sinf(x) + __cosf(y) + __expf(x) + __logf(y) + rsqrtf(x) + sqrtf(y) + x / y + __fdividef(x, y) + tanhf(x);
    b[t + 32] = fminf(x, y) + fmaxf(x, 0.f) + truncf(x) + rintf(y) + floorf(x) + fabsf(y) + copysignf(x, y) + fmodf(x, y);
    b[t + 64] = (float)i[t] + (float)u[t] + (float)s[t] + (float)bytes[t] + (float)(signed char)bytes[t + 1] + (x < y ? x : y * x + 3.f);
    i[t] = (int)x + __float2int_ru(y) + (x == y) + isfinite(x) + __float_as_int(y) + (short)x;
    u[t] = (unsigned)x + __float2uint_rn(y) + (unsigned char)x;
    s[t] = (unsigned short)(int)x;
    bytes[t] = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
    b[t + 96] = __fmaf_rz(x, y, x) + __fadd_ru(x, y) + __saturatef(x) + ldexpf(x, t) + sinf(y) + powf(x, y);
    float r;
    asm volatile("set.gt.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    b[t + 128] = r;
#if __CUDA_ARCH__ >= 800
    asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(i[t + 32]) : "f"(x));
#endif
}

// Values that every lane shares, so that the uniform pipe computes them where a chip has the operation.
extern "C" __global__ void uniform(int n, unsigned m, float f, float g, long long l, unsigned long long u, int *out, float *fout, long long *lout, char *bytes) {
    __shared__ int s[64];
    int k = n * 3 + 5, j = (n >> 3) & 7;
    unsigned q = m / 7u;
    for (int i = 0; i < n; i += k) {
        s[(threadIdx.x + i * j) & 63] = i;
        __syncthreads();
        out[(long long)i * n + l] = s[i & 63] + min(i, n) + __popc(i) + __clz(j + i) + (i > j ? q : m);
        fout[i] = f * (float)i + (float)(int)(f + i);
    }
    out[0] = abs(n) + __brev(m) + max(n, (int)m) + min(min(n, j), (int)q) + __vimax3_s32(n, j, k) + __viaddmax_s32(n, j, k) + __byte_perm(n, m, 0x1032);
    out[1] = __funnelshift_l(n, m, j) + __mulhi(n, k) + __umulhi(m, q) + (n << j) + (m >> q) + __ffs(n) + (n ^ j & k) + (short)n;
    lout[0] = l * n + (l << j) + (long long)(u >> j) + (l < (long long)u ? l : 7) + min(l, (long long)u) + (long long)n * k + llabs(l);
    fout[1] = fminf(f, g) + fmaxf(f, g) + fabsf(f) + floorf(g) + rintf(f) + truncf(g) + fmaf(f, g, f) + (f > g ? f : 2.f);
    fout[2] = (float)n + (float)m + (float)l + (float)u + (f == g) + __half2float(__float2half(g));
    out[2] = (int)f + (int)(unsigned)g + (int)(long long)f + (f < g && n > 3 || m > 5) + __float2int_rn(g);
    fout[3] = rsqrtf(f) + __expf(g) + __sinf(f) + 1.0f / g;
    lout[1] = (long long)g + (long long)(unsigned long long)f + (long long)(double)f;
    bytes[n] = bytes[m] + (char)l;
}

// Conversions that pack several results into a register, and mixed-precision sums.
extern "C" __global__ void packing(const int *in, const float *f, const unsigned short *h, int *out, float *fout) {
    int t = threadIdx.x, r;
    asm volatile("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(in[t]), "r"(in[t + 1]), "r"(in[t + 2]));
    out[t] = r;
    asm volatile("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(r) : "r"(in[t]), "r"(in[t + 1]));
    out[t + 32] = r;
    asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(in[t]), "r"(in[t + 1]), "r"(in[t + 3]));
    out[t + 64] = (r > 3 && (in[t + 4] & r) != 0) ? r : -r;
    int low = __float2int_rn(f[t]), high = __float2int_rn(f[t + 1]);
    asm volatile("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(high), "r"(low), "r"(in[t + 5]));
    out[t + 96] = r;
#if __CUDA_ARCH__ >= 1000
    float x;
    asm volatile("add.rn.f32.f16 %0, %1, %2;" : "=f"(x) : "h"(h[t]), "f"(f[t]));
    fout[t] = x;
    asm volatile("fma.rn.f32.f16 %0, %1, %2, %3;" : "=f"(x) : "h"(h[t]), "h"(h[t + 1]), "f"(f[t]));
    fout[t + 32] = x;
    asm volatile("fma.rn.f32.bf16 %0, %1, %2, %3;" : "=f"(x) : "h"(h[t + 2]), "h"(h[t + 3]), "f"(f[t]));
    fout[t + 64] = x;
#endif
}
