// Small kernels that between them use every mechanism the checker knows.
#include <cstdint>

// Double-buffered tile multiply: asynchronous copies, groups, barriers, matrix instructions, a loop.
extern "C" __global__ void tile(float* out, const uint32_t* a, const uint32_t* b, int steps) {
    __shared__ __align__(16) uint32_t left[2][128 * 4], right[2][128 * 4];
    int t = threadIdx.x;
    float sum[4] = {0, 0, 0, 0};
#if __CUDA_ARCH__ >= 800
    auto fetch = [&](int stage, int step) {
        uint32_t l = __cvta_generic_to_shared(&left[stage][t * 4]);
        uint32_t r = __cvta_generic_to_shared(&right[stage][t * 4]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(l), "l"(a + step * 512 + t * 4));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(r), "l"(b + step * 512 + t * 4));
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    for (int step = 0; step < steps; step++) {
        fetch((step + 1) & 1, step + 1);
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        const uint32_t* l = left[step & 1];
        const uint32_t* r = right[step & 1];
        for (int k = 0; k < 4; k++) {
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                "{%0,%1,%2,%3};"
                : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                : "r"(l[t + k]), "r"(l[t + k + 32]), "r"(l[t + k + 64]), "r"(l[t + k + 96]), "r"(r[t + k]),
                  "r"(r[t + k + 32]));
        }
        __syncthreads();
    }
#else
    for (int step = 0; step < steps; step++) {
        left[0][t] = a[step * 128 + t];
        right[0][t] = b[step * 128 + t];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum[k & 3] += __int_as_float(left[0][k]) * __int_as_float(right[0][t ^ k]);
        __syncthreads();
    }
#endif
    for (int k = 0; k < 4; k++) out[t * 4 + k] = sum[k];
}

// Shuffles, votes, shared memory across a barrier, an atomic.
extern "C" __global__ void reduce(float* out, int* votes, const float* in, int n) {
    __shared__ float partial[32];
    int t = threadIdx.x;
    float sum = 0, most = -1e30f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        sum += in[i];
        most = fmaxf(most, in[i]);
    }
    for (int d = 16; d; d >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, d);
        most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    }
    unsigned ballot = __ballot_sync(~0u, sum > 0);
    if (t % 32 == 0) partial[t / 32] = sum * most;
    __syncthreads();
    float total = t < blockDim.x / 32 ? partial[t] : 0;
    for (int d = 16; d; d >>= 1) total += __shfl_xor_sync(~0u, total, d);
    if (t == 0) {
        atomicAdd(out, total);
        atomicOr(votes, (int)ballot);
    }
}

// Local memory that cannot live in registers, a switch, 64-bit carries, division by a call.
extern "C" __global__ void local(long long* out, const long long* in, int n, int pick) {
    long long table[16];
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < 16; i++) table[i] = in[t * 16 + i] * (pick + i);
    table[pick & 15] += table[(pick + 3) & 15];
    table[(pick + n) & 15] ^= n;
    long long value = table[(pick + 5) & 15];
    switch (pick & 3) {
        case 0: value /= n | 1; break;
        case 1: value = value * value + n; break;
        case 2: value = value << (n & 31); break;
        default: value -= in[t]; break;
    }
    out[t] = value + table[t & 15];
}

// Special functions, doubles, conversions, and lanes that talk through shared memory.
extern "C" __global__ void mixed(double* out, float* half, const float* in, int n) {
    __shared__ float lane[64];
    int t = threadIdx.x;
    float x = in[t], y = __expf(x) + rsqrtf(fabsf(x)) + __sinf(x);
    lane[t & 31] = y;
    __syncwarp();
    float z = lane[(t + 1) & 31];
    __syncwarp();
    lane[(t & 31) + 1] = z * x;
    __syncwarp();
    double d = (double)z * x + n;
    for (int i = 0; i < (n & 7); i++) d = d * 1.0625 + (double)(int)(lane[i] * 3.0f);
    out[t] = d;
    half[t] = lane[t & 31] + (float)(n % 7);
}
