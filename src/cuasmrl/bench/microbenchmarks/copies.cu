// How long a load from shared memory queues behind asynchronous copies: the experiment that settles `copy_bytes`.
//
// Every warp starts COPIES copies of 16 bytes per lane, then loads four matrices from another part of shared memory
// and waits for them: the clock is read before the first copy and when the matrices are there. What the copies bring
// is in L2, or in L1 if `ld.ca` has touched it; the copies go past L1 (`.cg`). `_x0` is the time without copies.

typedef unsigned int u32;

#define WORDS 8192
#define HALF (WORDS / 2)

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

template <int COPIES> __device__ __forceinline__ void measure(const u32 *data, u32 *sums, u32 *clocks) {
    __shared__ __align__(16) u32 words[WORDS];
    for (u32 i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i;
    // Eight copies of a warp take 4 KB: up to eight warps have places of their own in the lower half.
    const u32 warp = threadIdx.x / 32 % 8, lane = threadIdx.x % 32;
    u32 target = (u32)__cvta_generic_to_shared(words) + (warp * 1024 + lane * 4) * 4 % (HALF * 4);
    u32 source = (u32)__cvta_generic_to_shared(words + HALF + lane * 4);
    const u32 *from = data + warp * 1024 + lane * 4;
    asm volatile("bar.sync 0;" ::: "memory");
    u32 start = now();
#pragma unroll
    for (int k = 0; k < COPIES; ++k)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target + 512 * k), "l"(from + 128 * k));
    u32 a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(source));
    sums[threadIdx.x] = a + b + c + d;
    u32 stop = now();
    asm volatile("cp.async.wait_all;" ::: "memory");
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

#define KERNEL(copies)                                                                                   \
    extern "C" __global__ void behind_x##copies(const u32 *data, u32 *sums, u32 *clocks) {               \
        measure<copies>(data, sums, clocks);                                                             \
    }

KERNEL(0)
KERNEL(1)
KERNEL(2)
KERNEL(4)
KERNEL(8)
