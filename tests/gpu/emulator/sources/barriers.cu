// Barriers of a block.

#define ARRIVE(name, threads) asm volatile("bar.arrive " #name ", " #threads ";" ::: "memory")
#define WAIT(name, threads) asm volatile("bar.sync " #name ", " #threads ";" ::: "memory")

extern "C" __global__ void reversed(const int *in, int *out) {
    __shared__ int s[1024];
    int i = threadIdx.x, n = blockDim.x;
    int *mine = out + blockIdx.x * n;
    for (int k = 0; k < 3; ++k) {
        s[i] = k ? mine[i] : in[blockIdx.x * n + i];
        __syncthreads();
        mine[i] = s[n - 1 - i] + k;
        __syncthreads();
    }
}

// The number of loops differs from block to block: some blocks of a slab are done while others go on.
extern "C" __global__ void rounds(const int *turns, int *out) {
    __shared__ int s[2];
    int i = threadIdx.x;
    if (i == 0) s[0] = 0;
    __syncthreads();
    for (int k = 0; k < turns[blockIdx.x]; ++k) {
        if (i == 32 * (k & 1)) s[0] += k;
        __syncthreads();
    }
    if (i == 0) out[blockIdx.x] = s[0];
}

extern "C" __global__ void votes(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    out[i] = __syncthreads_count(in[i] & 1);
    out[n + i] = __syncthreads_and(in[i] > 3);
    out[2 * n + i] = __syncthreads_or(in[i] == 99);
}

extern "C" __global__ void some_have_left(const int *in, int *out) {
    __shared__ int s[128];
    int i = threadIdx.x;
    s[i] = in[i];
    if (in[i] < 0) return;
    int there = __syncthreads_count(1);
    out[i] = s[127 - i] + 1000 * there;
}

// Warps 0 and 1 produce, warp 2 consumes: producers only arrive at barrier 1 and wait at barrier 2.
extern "C" __global__ void pipeline(const int *in, int *out, int n) {
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i < 64) {
        for (int k = 0; k < n; ++k) {
            if (k) WAIT(2, 96);
            s[i] = in[64 * k + i];
            __threadfence_block();
            ARRIVE(1, 96);
        }
    } else {
        for (int k = 0; k < n; ++k) {
            WAIT(1, 96);
            out[32 * k + i - 64] = s[i - 64] - s[i - 32];
            __threadfence_block();
            if (k + 1 < n) ARRIVE(2, 96);
        }
    }
}

__device__ int red(int name, int x) {
    int r;
    if (name == 1)
        asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; bar.red.popc.u32 %0, 1, 64, p;}" : "=r"(r) : "r"(x));
    else
        asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; bar.red.popc.u32 %0, 2, 64, p;}" : "=r"(r) : "r"(x));
    return r;
}

// Each pair of warps counts at a barrier of its own.
extern "C" __global__ void counts_of_pairs(const int *in, int *out) {
    int i = threadIdx.x;
    out[i] = i < 64 ? red(1, in[i]) : red(2, in[i]);
}

// The lanes of warp 0 come to barrier 1 one half after the other: it has arrived when both have.
extern "C" __global__ void half_after_half(int *out, volatile int *flag) {
    __shared__ volatile int s[64];
    int i = threadIdx.x;
    s[i] = 0;
    __syncthreads();
    if (i < 16) {
        s[i] = 1 + i;
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else if (i < 32) {
        while (*flag == 0) {}
        for (int k = 0; k < 20; ++k) s[i] = s[i] + i;
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else {
        if (i == 32) *flag = 1;
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    }
    out[i] = s[i ^ 32];
}

extern "C" __global__ void half_of_the_block(int *out) {
    if (threadIdx.x < 64) WAIT(3, 128);
    else WAIT(4, 128);
    out[threadIdx.x] = 1;
}

// Lanes 16 to 31 of each warp spin until lanes 0 to 15 have passed a barrier that needs them all.
extern "C" __global__ void half_of_a_warp(int *out, volatile int *flag) {
    if (threadIdx.x & 16) {
        asm volatile("barrier.sync 5, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 6, 64;" ::: "memory");
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void endless(volatile int *flag) { while (*flag == 0) {} }
