// Results that come back in any order, each announced by a scoreboard of its own.
#include <cstdint>

// Loads from global memory.
extern "C" __global__ void loads(float* out, const float* a, const float* b, int n) {
    int t = threadIdx.x;
    float w = a[t] * 2.0f + 1.0f;
    float x = a[t + 256], y = b[t], z = b[t + 512], s = 0;
    for (int i = 0; i < n; i++) {
        s = s * x + a[i * 64 + t];
        s = s + b[i * 32 + t] * y;
    }
    out[t] = s * w + z;
}

// A table that has to live in local memory.
extern "C" __global__ void spilled(int* out, const int* in, int n) {
    int t = threadIdx.x, table[24];
    for (int i = 0; i < 24; i++) table[i] = in[t + i * 32] * n;
    int a = table[n & 15], b = table[(n >> 4) & 15] + a, c = table[(n + t) % 24], d = table[t % 24];
    table[(a ^ b) & 15] = c;
    out[t] = a + b * c;
    out[t + 32] = d ^ table[(t + 5) % 24];
}

// Atomics that return something, special registers, constants by index.
__constant__ int numbers[256];
extern "C" __global__ void returned(int* out, int* counters, int n) {
    int t = threadIdx.x;
    int a = atomicAdd(counters + t, n), b = atomicMax(counters + t + 64, t), c = atomicExch(counters + t + 128, n);
    int x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    int p = numbers[(t + n) & 255], q = numbers[(t * 3 + n) & 255];
    out[t] = a + 3;
    out[t + 64] = x * y + z * lane;
    out[t + 128] = p * q + numbers[n & 255];
    out[t + 192] = b * n;
    out[t + 256] = c ^ n;
}

// Copies past the registers, awaited by count.
extern "C" __global__ void copied(int* out, const int* in, int n) {
    __shared__ __align__(16) int box[4][128];
    int t = threadIdx.x, sum = 0;
#if __CUDA_ARCH__ >= 800
    for (int i = 0; i < 3; i++) {
        uint32_t to = __cvta_generic_to_shared(&box[i][t]);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + i * 128 + t) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    int beside = in[t + 1024], more = in[t + 2048];
    asm volatile("cp.async.wait_group 2;" ::: "memory");
    sum += box[0][t] * beside;
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    sum += box[1][t] + more;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    sum += box[2][t];
#endif
    out[t] = sum;
}
