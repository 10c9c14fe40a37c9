// Every atomic operation on every type, in global and in shared memory.

#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define ATOMIC(name, T, call)                                                                         \
    extern "C" __global__ void global_##name(T *cells, const T *in, const int *index, T *old) {       \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                \
        T *p = cells + index[i], x = in[i];                                                           \
        old[i] = call;                                                                                \
    }                                                                                                 \
    extern "C" __global__ void reduce_##name(T *cells, const T *in, const int *index) {               \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                \
        T *p = cells + index[i], x = in[i];                                                           \
        call;                                                                                         \
    }                                                                                                 \
    extern "C" __global__ void shared_##name(T *cells, const T *in, const int *index, T *old) {       \
        __shared__ T s[8];                                                                            \
        int i = threadIdx.x;                                                                          \
        if (i < 8) s[i] = cells[i];                                                                   \
        __syncthreads();                                                                              \
        T *p = s + index[i], x = in[i];                                                               \
        old[i] = call;                                                                                \
        __syncthreads();                                                                              \
        if (i < 8) cells[i] = s[i];                                                                   \
    }

ATOMIC(add_s32, int, atomicAdd(p, x))
ATOMIC(add_u32, u32, atomicAdd(p, x))
ATOMIC(add_u64, u64, atomicAdd(p, x))
ATOMIC(add_f32, float, atomicAdd(p, x))
ATOMIC(add_f64, double, atomicAdd(p, x))
ATOMIC(sub_s32, int, atomicSub(p, x))
ATOMIC(min_s32, int, atomicMin(p, x))
ATOMIC(max_s32, int, atomicMax(p, x))
ATOMIC(min_u32, u32, atomicMin(p, x))
ATOMIC(max_u32, u32, atomicMax(p, x))
ATOMIC(min_s64, s64, atomicMin(p, x))
ATOMIC(max_s64, s64, atomicMax(p, x))
ATOMIC(min_u64, u64, atomicMin(p, x))
ATOMIC(max_u64, u64, atomicMax(p, x))
ATOMIC(inc_u32, u32, atomicInc(p, x & 7))
ATOMIC(dec_u32, u32, atomicDec(p, x & 7))
ATOMIC(and_u32, u32, atomicAnd(p, x))
ATOMIC(or_u32, u32, atomicOr(p, x))
ATOMIC(xor_u32, u32, atomicXor(p, x))
ATOMIC(and_u64, u64, atomicAnd(p, x))
ATOMIC(or_u64, u64, atomicOr(p, x))
ATOMIC(xor_u64, u64, atomicXor(p, x))
ATOMIC(exch_u32, u32, atomicExch(p, x))
ATOMIC(exch_u64, u64, atomicExch(p, x))
ATOMIC(exch_f32, float, atomicExch(p, x))
ATOMIC(cas_u32, u32, atomicCAS(p, x >> 4, x))
ATOMIC(cas_u64, u64, atomicCAS(p, x >> 4, x))
ATOMIC(one_u32, u32, (x = 1u, atomicAdd(p, x)))
ATOMIC(next_u32, u32, (x = 0xffffffffu, atomicInc(p, x)))

extern "C" __global__ void half_pairs(__half2 *cells, const __half2 *in, const int *index) {
    atomicAdd(cells + index[threadIdx.x], in[threadIdx.x]);
}

extern "C" __global__ void reduced_pairs(unsigned *cells, const unsigned *in, const int *index) {
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(cells + index[threadIdx.x]), "r"(in[threadIdx.x]) : "memory");
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void reduced_brains(unsigned *cells, const unsigned *in, const int *index) {
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" :: "l"(cells + index[threadIdx.x]), "r"(in[threadIdx.x]) : "memory");
}
#endif

extern "C" __global__ void uninitialised(int *out) {
    __shared__ int s[32];
    atomicAdd(&s[threadIdx.x], 1);
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
