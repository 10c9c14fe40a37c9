// Sources are overwritten and 64-bit results read as soon as that is allowed.
#include <cstdint>

#define MMA(d, a, b) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define MMA75(d, a, b) \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]))
#define IMMA(d, a, b) \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define IMMA75(d, a, b) \
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" \
                 : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(b[0]))

// Fragments are computed in place: what a product reads is overwritten as soon as that is allowed.
extern "C" __global__ void products(float* out, const uint32_t* in, int n) {
    int t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    uint32_t a[4], b[2];
    for (int i = 0; i < 4; i++) a[i] = in[t * 8 + i];
    for (int i = 0; i < 2; i++) b[i] = in[t * 8 + 4 + i];
    for (int k = 0; k < n; k++) {
#if __CUDA_ARCH__ >= 800
        MMA(d, a, b);
#else
        MMA75(d, a, b);
#endif
        a[0] ^= n, a[1] += n, a[2] = a[2] * 3 + k, a[3] = (a[3] >> 3) + n;
        b[0] = b[0] * n + k, b[1] += 5;
    }
    for (int i = 0; i < 4; i++) d[i] = d[i] * 0.5f + 1.0f;
#if __CUDA_ARCH__ >= 800
    MMA(d, a, b);
#else
    MMA75(d, a, b);
#endif
    for (int i = 0; i < 4; i++) out[t * 4 + i] = fmaxf(d[i] * 0.5f, 0.0f);
}

extern "C" __global__ void whole_products(int* out, const uint32_t* in, int n) {
    int t = threadIdx.x, d[4] = {0, 0, 0, 0};
    uint32_t a[4], b[2];
    for (int i = 0; i < 4; i++) a[i] = in[t * 8 + i];
    for (int i = 0; i < 2; i++) b[i] = in[t * 8 + 4 + i];
    for (int k = 0; k < n; k++) {
#if __CUDA_ARCH__ >= 800
        IMMA(d, a, b);
#else
        IMMA75(d, a, b);
#endif
        a[0] ^= n, a[1] += n, a[2] = a[2] * 3 + k, a[3] = (a[3] >> 3) + n;
        b[0] = b[0] * n + k, b[1] += 5;
    }
    for (int i = 0; i < 4; i++) out[t * 4 + i] = d[i];
}

#if __CUDA_ARCH__ >= 800
// Half of the left matrix is zero, by a pattern that is computed as well.
extern "C" __global__ void sparse(float* out, const uint32_t* in, int n) {
    int t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    uint32_t a[4], b[4], pattern = in[t + 1024];
    for (int i = 0; i < 4; i++) a[i] = in[t * 8 + i], b[i] = in[t * 8 + 4 + i];
    for (int k = 0; k < n; k++) {
        asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
                       "r"(pattern));
        pattern = (pattern >> 2) * 5 + k;
        a[0] ^= n, a[1] += n, a[2] = a[2] * 3 + k, b[0] = b[0] * n + k, b[1] += 5;
    }
    for (int i = 0; i < 4; i++) out[t * 4 + i] = d[i] * 0.5f;
}
#endif

// Doubles and floats whose operands change between two uses.
extern "C" __global__ void doubles(double* out, const double* in, long long* whole, int n) {
    int t = threadIdx.x;
    double x = in[t], y = in[t + 32], sum = 0;
    long long k = whole[t];
    for (int i = 0; i < n; i++) {
        sum = sum * x + y;
        x = __longlong_as_double(__double_as_longlong(x) + k);
        y = y * 0.5 + x;
        k = k * 3 + i;
    }
    out[t] = sum;
    whole[t] = k > 7 ? k : -k;
}

// 64-bit sums, compares and selections.
extern "C" __global__ void wide(const long long* in, long long* out, long long n, int* flag) {
    int t = threadIdx.x;
    long long a = in[t], b = in[t + 64], c = a + b, d = a - n, e = c + n;
    float f = flag[t] * 1.5f + 2.0f;
    long long x = c > n ? a : b, y = e >= b ? 1 : 2, z = d > b ? 5 : 6;
    f = f * f - 3.0f;
    out[t] = x;
    out[t + 64] = y;
    out[t + 128] = z;
    out[t + 192] = (unsigned long long)(unsigned)flag[t] * (unsigned)t + e;
    flag[t] = f;
}
