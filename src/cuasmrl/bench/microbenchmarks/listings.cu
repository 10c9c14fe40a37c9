// Straight chains of 16, 32 or 64 links between two reads of the clock, by one warp.
//
// As the listings of sass-king for an RTX 5070 Ti show it: operands of HMMA and QMMA are still on their way from
// L2 when the clock is read, so the first product waits for them; those of OMMA and LDSM have passed a barrier.

typedef unsigned int u32;

__device__ __forceinline__ long long now() {
    long long time;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(time)::"memory");
    return time;
}

#define D4A4B2 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}"
#define OPERANDS                                                                                         \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])

struct hmma {
    static const bool WAITS = false;
    static __device__ __forceinline__ void link(float *d, const u32 *a, const u32 *b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D4A4B2 ";" : OPERANDS);
    }
};

struct qmma {
    static const bool WAITS = false;
    static __device__ __forceinline__ void link(float *d, const u32 *a, const u32 *b) {
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " D4A4B2 ";" : OPERANDS);
    }
};

struct omma {
    static const bool WAITS = true;
    static __device__ __forceinline__ void link(float *d, const u32 *a, const u32 *b) {
        const u32 ones = 0x38383838;
        const unsigned short none = 0;
        asm volatile("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32"
                     ".ue4m3 " D4A4B2 ", {%10}, {%11,%11}, {%10}, {%11,%11};" : OPERANDS, "r"(ones), "h"(none));
    }
};

template <class P, int LINKS>
__device__ __forceinline__ void products(const u32 *__restrict__ operands, float *sums, long long *clocks) {
    u32 a[4], b[2];
    float d[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; ++i) a[i] = operands[4 * threadIdx.x + i];
    for (int i = 0; i < 2; ++i) b[i] = operands[256 + 2 * threadIdx.x + i];
    if (P::WAITS)
        __syncthreads();
    else
        for (int i = 0; i < 4; ++i) d[i] = __uint_as_float(operands[512 + 4 * threadIdx.x + i]);
    long long start = now();
#pragma unroll
    for (int j = 0; j < LINKS; ++j) P::link(d, a, b);
    long long stop = now();
    for (int i = 0; i < 4; ++i) sums[4 * threadIdx.x + i] = d[i];
    if (threadIdx.x == 0) clocks[0] = stop - start;
}

// Every LDSM says where the next one goes; what it loads is zero.
template <int LINKS> __device__ __forceinline__ void loads(u32 *sums, long long *clocks) {
    __shared__ u32 tile[256];
    tile[threadIdx.x] = 0;
    u32 at = (u32)__cvta_generic_to_shared(tile) + threadIdx.x % 8 * 16, loaded = 0;
    __syncthreads();
    long long start = now();
#pragma unroll
    for (int j = 0; j < LINKS; ++j) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(loaded) : "r"(at) : "memory");
        at += loaded;
    }
    long long stop = now();
    sums[threadIdx.x] = loaded;
    if (threadIdx.x == 0) clocks[0] = stop - start;
}

#define KERNELS(links)                                                                                   \
    extern "C" __global__ void hmma_##links(const u32 *operands, float *sums, long long *clocks) {       \
        products<hmma, links>(operands, sums, clocks);                                                   \
    }                                                                                                    \
    extern "C" __global__ void qmma_##links(const u32 *operands, float *sums, long long *clocks) {       \
        products<qmma, links>(operands, sums, clocks);                                                   \
    }                                                                                                    \
    extern "C" __global__ void omma_##links(const u32 *operands, float *sums, long long *clocks) {       \
        products<omma, links>(operands, sums, clocks);                                                   \
    }                                                                                                    \
    extern "C" __global__ void ldsm_##links(const u32 *operands, u32 *sums, long long *clocks) {         \
        loads<links>(sums, clocks);                                                                      \
    }

KERNELS(16)
KERNELS(32)
KERNELS(64)
