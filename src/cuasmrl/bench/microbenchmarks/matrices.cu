// Loops of ldmatrix between two reads of the clock: every load gives the address of the next.
//
// As Sun et al. (TPDS 2023) did it: 999 rounds with a __syncwarp in each, one to five loads side by side.
// No two rows of a matrix share a bank.

typedef unsigned int u32;

#define ROUNDS 999
#define WORDS 12288

template <int N> __device__ __forceinline__ u32 load(u32 address) {
    u32 d[4];
    if (N == 1)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d[0]) : "r"(address));
    else if (N == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(d[0]), "=r"(d[1])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                     : "r"(address));
    return d[0];
}

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

template <int N, int CHAINS> __device__ __forceinline__ void measure(u32 *sums, u32 *clocks) {
    __shared__ u32 words[WORDS];
    // The word that a lane gets of a matrix of consecutive rows is the address of its own row there.
    for (u32 i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 16 * i % 1024;
    asm volatile("bar.sync 0;");
    u32 address[CHAINS];
    for (int k = 0; k < CHAINS; ++k)
        address[k] = (u32)__cvta_generic_to_shared(&words[4 * (threadIdx.x + 32 * k)]);
    u32 start = now();
    for (u32 j = 0; j < ROUNDS; ++j) {
#pragma unroll
        for (int k = 0; k < CHAINS; ++k) address[k] = load<N>(address[k]);
        __syncwarp();
    }
    u32 stop = now();
    u32 sum = 0;
    for (int k = 0; k < CHAINS; ++k) sum += address[k];
    sums[threadIdx.x] = sum;
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

#define KERNEL(n, chains)                                                                                \
    extern "C" __global__ void ldmatrix_##n##_x##chains(u32 *sums, u32 *clocks) { measure<n, chains>(sums, clocks); }

KERNEL(1, 1)
KERNEL(1, 4)
KERNEL(1, 5)
KERNEL(2, 1)
KERNEL(2, 2)
KERNEL(2, 4)
KERNEL(4, 1)
KERNEL(4, 2)
KERNEL(4, 3)
KERNEL(4, 4)
KERNEL(4, 5)
