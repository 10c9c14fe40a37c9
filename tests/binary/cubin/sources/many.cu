// Several kernels in one cubin; each is here for a quirk of the container.
extern "C" {

__global__ void plain(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.f;
}

// A jump table: BRX, INDIRECT_BRANCH_TARGETS.
__global__ void jump(int *x, int n) {
    int v = x[threadIdx.x];
    switch (n) {
        case 0: v = v * 3 + 1; break;
        case 1: v = v ^ x[1]; break;
        case 2: v = x[v]; break;
        case 3: v += x[3] * x[2]; break;
        case 4: v = __popc(v); break;
        case 5: v = __clz(v) + x[5]; break;
        case 6: v /= n + x[4]; break;
        case 7: v %= 7; x[2] = v; break;
        case 8: atomicAdd(x, v); break;
        case 9: v = min(v, x[9]); break;
        default: v = 0;
    }
    x[threadIdx.x] = v;
}

// Shuffles and warp barriers: COOP_GROUP_INSTR_OFFSETS and the parallel COOP_GROUP_MASK_REGIDS.
__global__ void warp(float *x, const float *__restrict__ y) {
    float s = y[threadIdx.x];
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    __syncwarp();
    unsigned b = __ballot_sync(0xffffffffu, s > 0);
    int m = __any_sync(0xffffu, b > 3);
    if (threadIdx.x % 3 == 0) __syncwarp(0x9249249u);
    x[threadIdx.x] = s + b + m;
}

// Static shared memory: a section without bytes.
__global__ void tile(float *x) {
    __shared__ float t[33 * 32];
    __shared__ double e[7];
    t[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 7) e[threadIdx.x] = x[threadIdx.x + 9];
    __syncthreads();
    x[threadIdx.x] = t[threadIdx.x ^ 31] + e[3];
}

struct Odd { char a; short b; double c; };

__global__ void params(char a, short b, int c, long long d, float e, double f, Odd g, const int *h, char i,
                       char j, float4 k, int *out) {
    *out = a + b + c + d + e + f + g.a + g.b + g.c + *h + i + j + k.x + k.w;
}

__global__ void empty() {}

// A function symbol inside the code of a kernel.
__device__ __noinline__ float recurse(float x, int n) {
    return n < 2 ? x : recurse(x * 1.5f, n - 1) + recurse(x, n - 2);
}

__global__ void calls(float *x, int n) { x[threadIdx.x] = recurse(x[0], n); }

// A call into the driver: SYSCALL_OFFSETS, EXTERNS.
__global__ void __launch_bounds__(256, 2) heap(int **p) {
    int *q = (int *)malloc(64);
    q[threadIdx.x & 15] = 3;
    p[threadIdx.x] = q;
}

// MBARRIER_INSTR_OFFSETS, 16 bytes an entry, from sm_90 on.
__global__ void barrier(unsigned long long *x) {
#if __CUDA_ARCH__ >= 800
    __shared__ unsigned long long b;
    unsigned at = (unsigned)__cvta_generic_to_shared(&b);
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at) : "memory");
    __syncthreads();
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    x[threadIdx.x] = state;
#endif
}

// More live values than 32 registers: spills, ANNOTATIONS.
__global__ void __launch_bounds__(1024, 2) spill(float *x) {
    float v[48];
#pragma unroll
    for (int i = 0; i < 48; i++) v[i] = x[threadIdx.x * 48 + i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 48; i++) x[threadIdx.x * 48 + (i * 7) % 48] = v[i] * v[(i + 11) % 48];
}

}
