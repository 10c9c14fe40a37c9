// Products of a warpgroup as compilers pipeline them: several groups in flight, round loops, A in registers.

#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")
#define ACCUMULATOR(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])

__device__ inline void product(float *d, long long a, long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : ACCUMULATOR(d) : "l"(a), "l"(b) : "memory");
}
// Without `adds` nothing is read from d, which may then hold anything.
__device__ inline void product(float *d, long long a, long long b, int adds) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;\n}"
                 : ACCUMULATOR(d) : "l"(a), "l"(b), "r"(adds) : "memory");
}
__device__ inline void product(float *d, const unsigned *a, long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1, 0;"
                 : ACCUMULATOR(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
}
__device__ inline void store(float *out, const float *d, int at) {
    for (int i = 0; i < 4; i++) out[4 * (128 * at + threadIdx.x) + i] = d[i];
}

// Two groups in flight; the first result is worked on while the second is made.
extern "C" __global__ void two_groups(float *out, long long a, long long b, float scale) {
    float x[4] = {0, 1, 2, 3}, y[4] = {scale, 2 * scale, 3 * scale, 4 * scale};
    for (int i = 0; i < 4; i++) x[i] *= scale;
    FENCE;
    product(x, a, b);
    product(x, a + 2, b + 2);
    COMMIT;
    product(y, a, b + 8);
    product(y, a + 2, b + 10);
    COMMIT;
    WAIT(1);
    for (int i = 0; i < 4; i++) x[i] = x[i] * x[i] + scale;
    WAIT(0);
    for (int i = 0; i < 4; i++) y[i] = y[i] * y[i] - scale;
    store(out, x, 0);
    store(out, y, 1);
}

// One group is always in flight, round the loop as well.
extern "C" __global__ void rolling(float *out, const int *in, long long a, long long b, int rounds) {
    __shared__ int tile[512];
    float d[4];
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        int fresh = in[128 * k + threadIdx.x];
        FENCE;
        product(d, a + 2 * k, b + 2 * k, k);
        product(d, a + 2 * k + 64, b + 2 * k + 64);
        COMMIT;
        WAIT(1);
        __syncthreads();
        tile[(k & 3) * 128 + threadIdx.x] = fresh;
        __syncthreads();
        sum += 3 * tile[(k & 3) * 128 + (threadIdx.x ^ 1)];
    }
    WAIT(0);
    store(out, d, 0);
    out[threadIdx.x] += sum;
}

// A is computed; what was accumulated is scaled between the products, as in attention.
extern "C" __global__ void scaled(float *out, const float *in, long long b, int rounds) {
    float d[4] = {0, 0, 0, 0}, s[4] = {1, 1, 1, 1}, most = 0;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        FENCE;
        for (int i = 0; i < 4; i++) s[i] = 0;
        product(s, b + 2 * k, b);
        COMMIT;
        WAIT(0);
        most = fmaxf(most, fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3])));
        unsigned p[4];
        for (int i = 0; i < 4; i++) p[i] = __float_as_uint(exp2f(s[i] - most));
        float factor = in[k] - most;
        for (int i = 0; i < 4; i++) d[i] *= factor;
        FENCE;
        product(d, p, b + 4 * k);
        COMMIT;
        WAIT(0);
    }
    store(out, d, 0);
}

// Writes of shared memory, barriers and copies right beside products, with A in registers.
extern "C" __global__ void crowded(float *out, const int *in, long long b, unsigned seed) {
    __shared__ __align__(16) unsigned tile[512];
    unsigned to = (unsigned)__cvta_generic_to_shared(tile + 256 + threadIdx.x), p[4];
    float d[4] = {1, 2, 3, 4}, e[4] = {4, 3, 2, 1};
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int i = 0; i < 4; i++) p[i] = seed * (2 * i + 3) ^ threadIdx.x;
    for (int i = 0; i < 4; i++) e[i] *= seed;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    FENCE;
    product(d, p, b);
    tile[threadIdx.x] = seed;
    product(d, p, b + 2);
    COMMIT;
    product(e, b, b + 4);
    __syncthreads();
    product(e, b, b + 6);
    COMMIT;
    WAIT(1);
    for (int i = 0; i < 4; i++) p[i] = p[i] * 3 + 1;
    tile[threadIdx.x ^ 1] = p[0];
    __syncthreads();
    WAIT(0);
    __syncthreads();
    FENCE;
    product(d, p, b + 8);
    COMMIT;
    WAIT(0);
    tile[threadIdx.x ^ 2] = 7;
    store(out, d, 0);
    store(out, e, 1);
    for (int i = 0; i < 4; i++) out[i] = tile[p[i] & 511];
}

// In flight from each iteration to the next, which begins by waiting; the first finds nothing in flight.
extern "C" __global__ void around(float *out, long long a, long long b, float scale, int rounds) {
    float d[4] = {scale, 2, 3, 4};
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        WAIT(0);
        for (int i = 0; i < 4; i++) d[i] *= scale;
        FENCE;
        product(d, a + 2 * k, b + 2 * k);
        COMMIT;
    }
    WAIT(0);
    store(out, d, 0);
}

// Waits for one group after the other, and a product right behind a wait.
extern "C" __global__ void waits(float *out, long long a, long long b, int k) {
    float d[4] = {1, 2, 3, 4}, e[4] = {2, 3, 4, 5};
    FENCE;
    product(d, a, b);
    COMMIT;
    product(e, a, b + 4);
    COMMIT;
    WAIT(1);
    product(e, a, b + 6);
    COMMIT;
    WAIT(1);
    k = k * k + 3;
    WAIT(0);
    store(out + k, d, 0);
    store(out, e, 1);
}
