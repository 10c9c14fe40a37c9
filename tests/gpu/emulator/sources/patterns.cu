// One access for each lane, wherever the caller wants it.

#define GATHER(bytes, T)                                                                              \
    extern "C" __global__ void gather##bytes(const T *in, const int *index, T *out) {                 \
        int i = index[threadIdx.x];                                                                   \
        if (i >= 0) out[threadIdx.x] = in[i];                                                         \
    }                                                                                                 \
    extern "C" __global__ void scatter##bytes(T *out, const int *index, const T *in) {                \
        int i = index[threadIdx.x];                                                                   \
        if (i >= 0) out[i] = in[threadIdx.x];                                                         \
    }                                                                                                 \
    extern "C" __global__ void banks##bytes(const T *in, const int *index, T *out, int n) {           \
        extern __shared__ __align__(16) char bytes_of_shared[];                                       \
        T *s = (T *)bytes_of_shared;                                                                  \
        for (int k = threadIdx.x; k < n; k += 32) s[k] = in[k & 31];                                  \
        __syncthreads();                                                                              \
        int i = index[threadIdx.x];                                                                   \
        if (i >= 0) out[threadIdx.x] = s[i];                                                          \
    }

GATHER(1, unsigned char)
GATHER(4, int)
GATHER(8, int2)
GATHER(16, int4)

// Which block of the code is which can be seen from the atomics in it.
extern "C" __global__ void ways(const int *in, int *out) {
    int x = in[blockIdx.x * blockDim.x + threadIdx.x];
    if (x & 1) {
#pragma unroll 1
        for (int k = 0; k < x; ++k) { atomicAdd(out, k); __threadfence(); }
    } else {
#pragma unroll 1
        for (int k = 0; k < x; k += 2) { atomicMax(out + 1, x); __threadfence(); }
    }
    __threadfence();
    atomicOr(out + 2, 4);
}

// Odd and even lanes wait in the middle of different blocks.
extern "C" __global__ void interrupted(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    if (i & 1) {
#pragma unroll 1
        for (int k = 0; k < 3; ++k) { out[64 + i] = in[x & 15]; __syncwarp(0xaaaaaaaa); out[96 + i] = k; }
    } else {
#pragma unroll 1
        for (int k = 0; k < 5; ++k) { out[64 + i] = in[x & 7]; __syncwarp(0x55555555); out[96 + i] = -k; }
    }
    out[32 + i] = x;
}
