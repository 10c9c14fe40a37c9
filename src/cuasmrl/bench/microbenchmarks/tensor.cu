// Loops of mma.sync between two reads of the clock: chains that feed themselves, one to six side by side.
//
// As Sun et al. (TPDS 2023) did it: 1024 rounds with a __syncwarp in each, unrolled as the compiler likes.
// The compiler makes NOPs of the __syncwarps, which cost more than the branches do.
// `_free` has six chains, no __syncwarp, and is unrolled 16 times; `_pair` has two, as a WMMA of 16x16x16.

typedef unsigned int u32;

#define ROUNDS 1024

#define A1 "r"(a[0])
#define A2 A1, "r"(a[1])
#define A4 A2, "r"(a[2]), "r"(a[3])
#define B1 "r"(b[0])
#define B2 B1, "r"(b[1])
#define B4 B2, "r"(b[2]), "r"(b[3])
#define F4 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define I2 "+r"(d[0]), "+r"(d[1])
#define I4 I2, "+r"(d[2]), "+r"(d[3])

// Registers per lane of A, B and the accumulator; `E` is the metadata of a sparse product.
#define PRODUCT(name, numbers, na, nb, nd, mnemonic, operands, accumulator, ...)                         \
    struct name {                                                                                        \
        typedef numbers T;                                                                               \
        static const int A = na, B = nb, D = nd;                                                         \
        static __device__ __forceinline__ void multiply(T *d, const u32 *a, const u32 *b, u32 e) {       \
            asm volatile(mnemonic " " operands ";" : accumulator : __VA_ARGS__);                         \
        }                                                                                                \
    };

#define D4A4B2 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}"
#define D4A2B1 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3}"
#define D2A4B2 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1}"
#define D2A2B1 "{%0,%1}, {%2,%3}, {%4}, {%0,%1}"
#define D2A1B1 "{%0,%1}, {%2}, {%3}, {%0,%1}"
#define D4A4B4 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0"
#define D4A2B2 "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0"
#define D2A4B4 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7,%8,%9}, {%0,%1}, %10, 0x0"
#define D2A2B2 "{%0,%1}, {%2,%3}, {%4,%5}, {%0,%1}, %6, 0x0"

#define DENSE "mma.sync.aligned."
PRODUCT(m16n8k16_f32_f16, float, 4, 2, 4, DENSE "m16n8k16.row.col.f32.f16.f16.f32", D4A4B2, F4, A4, B2)
PRODUCT(m16n8k16_f32_bf16, float, 4, 2, 4, DENSE "m16n8k16.row.col.f32.bf16.bf16.f32", D4A4B2, F4, A4, B2)
PRODUCT(m16n8k8_f32_bf16, float, 2, 1, 4, DENSE "m16n8k8.row.col.f32.bf16.bf16.f32", D4A2B1, F4, A2, B1)
PRODUCT(m16n8k8_f32_f16, float, 2, 1, 4, DENSE "m16n8k8.row.col.f32.f16.f16.f32", D4A2B1, F4, A2, B1)
PRODUCT(m16n8k16_f16_f16, u32, 4, 2, 2, DENSE "m16n8k16.row.col.f16.f16.f16.f16", D2A4B2, I2, A4, B2)
PRODUCT(m16n8k8_f16_f16, u32, 2, 1, 2, DENSE "m16n8k8.row.col.f16.f16.f16.f16", D2A2B1, I2, A2, B1)
PRODUCT(m16n8k8_f32_tf32, float, 4, 2, 4, DENSE "m16n8k8.row.col.f32.tf32.tf32.f32", D4A4B2, F4, A4, B2)
PRODUCT(m16n8k4_f32_tf32, float, 2, 1, 4, DENSE "m16n8k4.row.col.f32.tf32.tf32.f32", D4A2B1, F4, A2, B1)
PRODUCT(m8n8k16_s32_s8, u32, 1, 1, 2, DENSE "m8n8k16.row.col.s32.s8.s8.s32", D2A1B1, I2, A1, B1)
PRODUCT(m16n8k16_s32_s8, u32, 2, 1, 4, DENSE "m16n8k16.row.col.s32.s8.s8.s32", D4A2B1, I4, A2, B1)
PRODUCT(m16n8k32_s32_s8, u32, 4, 2, 4, DENSE "m16n8k32.row.col.s32.s8.s8.s32", D4A4B2, I4, A4, B2)
#if __CUDA_ARCH__ < 900
// Hopper multiplies four-bit and one-bit integers elsewhere.
PRODUCT(m8n8k32_s32_u4, u32, 1, 1, 2, DENSE "m8n8k32.row.col.s32.u4.u4.s32", D2A1B1, I2, A1, B1)
PRODUCT(m16n8k32_s32_s4, u32, 2, 1, 4, DENSE "m16n8k32.row.col.s32.s4.s4.s32", D4A2B1, I4, A2, B1)
PRODUCT(m16n8k64_s32_s4, u32, 4, 2, 4, DENSE "m16n8k64.row.col.s32.s4.s4.s32", D4A4B2, I4, A4, B2)
PRODUCT(m16n8k128_s32_b1, u32, 2, 1, 4, DENSE "m16n8k128.row.col.s32.b1.b1.s32.and.popc", D4A2B1, I4, A2, B1)
PRODUCT(m16n8k256_s32_b1, u32, 4, 2, 4, DENSE "m16n8k256.row.col.s32.b1.b1.s32.and.popc", D4A4B2, I4, A4, B2)
#endif

#define SPARSE "mma.sp::ordered_metadata.sync.aligned."
#define E "r"(e)
PRODUCT(sp_m16n8k32_f32_f16, float, 4, 4, 4, SPARSE "m16n8k32.row.col.f32.f16.f16.f32", D4A4B4, F4, A4, B4, E)
PRODUCT(sp_m16n8k16_f32_f16, float, 2, 2, 4, SPARSE "m16n8k16.row.col.f32.f16.f16.f32", D4A2B2, F4, A2, B2, E)
PRODUCT(sp_m16n8k16_f32_bf16, float, 2, 2, 4, SPARSE "m16n8k16.row.col.f32.bf16.bf16.f32", D4A2B2, F4, A2, B2, E)
PRODUCT(sp_m16n8k32_f16_f16, u32, 4, 4, 2, SPARSE "m16n8k32.row.col.f16.f16.f16.f16", D2A4B4, I2, A4, B4, E)
PRODUCT(sp_m16n8k16_f16_f16, u32, 2, 2, 2, SPARSE "m16n8k16.row.col.f16.f16.f16.f16", D2A2B2, I2, A2, B2, E)
PRODUCT(sp_m16n8k16_f32_tf32, float, 4, 4, 4, SPARSE "m16n8k16.row.col.f32.tf32.tf32.f32", D4A4B4, F4, A4, B4, E)
PRODUCT(sp_m16n8k8_f32_tf32, float, 2, 2, 4, SPARSE "m16n8k8.row.col.f32.tf32.tf32.f32", D4A2B2, F4, A2, B2, E)
PRODUCT(sp_m16n8k64_s32_s8, u32, 4, 4, 4, SPARSE "m16n8k64.row.col.s32.s8.s8.s32", D4A4B4, I4, A4, B4, E)
PRODUCT(sp_m16n8k32_s32_s8, u32, 2, 2, 4, SPARSE "m16n8k32.row.col.s32.s8.s8.s32", D4A2B2, I4, A2, B2, E)

__device__ __forceinline__ long long now() {
    long long time;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(time)::"memory");
    return time;
}

template <class P, int CHAINS> __device__ __forceinline__ void round_of(typename P::T (*d)[P::D], const u32 (*a)[P::A],
                                                                        const u32 (*b)[P::B], u32 e) {
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) P::multiply(d[k], a[k], b[k], e);
}

template <class P, int CHAINS, bool SYNCHRONISED>
__device__ __forceinline__ void measure(const u32 *operands, typename P::T *sums, long long *clocks) {
    typename P::T d[CHAINS][P::D];
    u32 a[CHAINS][P::A], b[CHAINS][P::B], e = operands[threadIdx.x];
    for (int k = 0; k < CHAINS; ++k) {
        for (int i = 0; i < P::D; ++i) d[k][i] = 0;
        for (int i = 0; i < P::A; ++i) a[k][i] = operands[threadIdx.x + 32 * (8 * k + i)];
        for (int i = 0; i < P::B; ++i) b[k][i] = operands[threadIdx.x + 32 * (8 * k + 4 + i)];
    }
    asm volatile("bar.sync 0;");
    long long start = now();
    if (SYNCHRONISED) {
        for (int j = 0; j < ROUNDS; ++j) {
            round_of<P, CHAINS>(d, a, b, e);
            __syncwarp();
        }
    } else {
#pragma unroll 16
        for (int j = 0; j < ROUNDS; ++j) round_of<P, CHAINS>(d, a, b, e);
    }
    long long stop = now();
    typename P::T sum = 0;
    for (int k = 0; k < CHAINS; ++k)
        for (int i = 0; i < P::D; ++i) sum += d[k][i];
    sums[threadIdx.x] = sum;
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

#define KERNEL(product, chains, synchronised, name)                                                      \
    extern "C" __global__ void name(const u32 *operands, product::T *sums, long long *clocks) {          \
        measure<product, chains, synchronised>(operands, sums, clocks);                                  \
    }
#define CHAINS_1_TO_3(product)                                                                           \
    KERNEL(product, 1, true, product##_x1)                                                               \
    KERNEL(product, 2, true, product##_x2)                                                               \
    KERNEL(product, 3, true, product##_x3)
#define ALL_CHAINS(product)                                                                              \
    CHAINS_1_TO_3(product)                                                                               \
    KERNEL(product, 4, true, product##_x4)
#define FREE(product) KERNEL(product, 6, false, product##_free)
#define PAIR(product) KERNEL(product, 2, false, product##_pair)
#define UP_TO_5(product)                                                                                 \
    ALL_CHAINS(product)                                                                                  \
    KERNEL(product, 5, true, product##_x5)
#define UP_TO_6(product)                                                                                 \
    UP_TO_5(product)                                                                                     \
    KERNEL(product, 6, true, product##_x6)

ALL_CHAINS(m16n8k8_f32_f16)
ALL_CHAINS(m16n8k8_f16_f16)
ALL_CHAINS(m8n8k16_s32_s8)
#if __CUDA_ARCH__ != 750
// Turing has no others.
ALL_CHAINS(m16n8k16_f32_f16)
ALL_CHAINS(m16n8k16_f16_f16)
ALL_CHAINS(m16n8k8_f32_tf32)
ALL_CHAINS(m16n8k4_f32_tf32)
ALL_CHAINS(m16n8k16_s32_s8)
ALL_CHAINS(m16n8k32_s32_s8)
FREE(m16n8k16_f16_f16)
FREE(m16n8k16_f32_f16)
FREE(m16n8k16_f32_bf16)
FREE(m16n8k4_f32_tf32)
FREE(m16n8k16_s32_s8)
#if __CUDA_ARCH__ < 900
ALL_CHAINS(m16n8k32_s32_s4)
ALL_CHAINS(m16n8k64_s32_s4)
ALL_CHAINS(m16n8k128_s32_b1)
ALL_CHAINS(m16n8k256_s32_b1)
FREE(m8n8k32_s32_u4)
#endif
PAIR(m16n8k16_f16_f16)
PAIR(m16n8k16_f32_f16)
#if __CUDA_ARCH__ == 800
UP_TO_5(m16n8k16_f32_bf16)
UP_TO_6(m16n8k8_f32_bf16)
UP_TO_6(sp_m16n8k16_f32_bf16)
#endif
#if __CUDA_ARCH__ == 860
CHAINS_1_TO_3(sp_m16n8k32_f32_f16)
CHAINS_1_TO_3(sp_m16n8k16_f32_f16)
CHAINS_1_TO_3(sp_m16n8k32_f16_f16)
CHAINS_1_TO_3(sp_m16n8k16_f16_f16)
CHAINS_1_TO_3(sp_m16n8k16_f32_tf32)
CHAINS_1_TO_3(sp_m16n8k8_f32_tf32)
CHAINS_1_TO_3(sp_m16n8k64_s32_s8)
CHAINS_1_TO_3(sp_m16n8k32_s32_s8)
#endif

// Doubles: one register pair of A and B, two of the accumulator.
template <int CHAINS> __device__ __forceinline__ void doubles(const double *operands, double *sums, long long *clocks) {
    double d[CHAINS][2], a = operands[threadIdx.x], b = operands[threadIdx.x + 32];
    for (int k = 0; k < CHAINS; ++k) d[k][0] = d[k][1] = 0;
    asm volatile("bar.sync 0;");
    long long start = now();
#pragma unroll 4
    for (int j = 0; j < ROUNDS; ++j) {
#pragma unroll
        for (int k = 0; k < CHAINS; ++k)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                         : "+d"(d[k][0]), "+d"(d[k][1])
                         : "d"(a), "d"(b));
    }
    long long stop = now();
    double sum = 0;
    for (int k = 0; k < CHAINS; ++k) sum += d[k][0] + d[k][1];
    sums[threadIdx.x] = sum;
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

extern "C" __global__ void m8n8k4_f64_x1(const double *operands, double *sums, long long *clocks) {
    doubles<1>(operands, sums, clocks);
}

extern "C" __global__ void m8n8k4_f64_free(const double *operands, double *sums, long long *clocks) {
    doubles<4>(operands, sums, clocks);
}
#endif
