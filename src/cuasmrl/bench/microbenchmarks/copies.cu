// What asynchronous copies cost loads from shared memory: the experiments that settle `copy_bytes`.
//
// `behind_xN`: a warp starts N copies of 16 bytes per lane, then loads four matrices from another part of shared
// memory and waits for them. The clock is read before the first copy and when the matrices are there, so the
// difference to `behind_x0` is the time that the load queues behind copies on their way in.
//
// `beside_xN`: as in the loop of a matrix product, every round starts N copies and loads matrices as fast as the
// port of shared memory gives them, so the difference to `beside_x0` is the time that the port needs to write what
// the copies bring. They go past L1 (`.cg`).
//
// Everything is done twice and the second time counts: by then instructions, constants and L2 are warm.

typedef unsigned int u32;

#define HERE 4096
#define ROUNDS 32
#define MATRICES 16

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

__device__ __forceinline__ u32 address(const u32 *word) { return (u32)__cvta_generic_to_shared(word); }

// Each warp has 512 words of its own, so that copies of eight warps do not meet.
template <int COPIES> __device__ __forceinline__ void copy(u32 target, const u32 *source) {
#pragma unroll
    for (int k = 0; k < COPIES; ++k)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target + 512 * (k % 4)), "l"(source + 128 * k));
}

__device__ __forceinline__ u32 load(u32 source) {
    u32 a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(source));
    return a + b + c + d;
}

template <int COPIES, bool BEHIND> __device__ __forceinline__ void measure(const u32 *data, u32 *sums, u32 *clocks) {
    __shared__ __align__(16) u32 words[HERE + 1024];
    for (u32 i = threadIdx.x; i < HERE + 1024; i += blockDim.x) words[i] = i;
    const u32 warp = threadIdx.x / 32 % 8, lane = threadIdx.x % 32;
    const u32 target = address(words + 512 * warp + 4 * lane), source = address(words + HERE + 4 * lane);
    const u32 *from = data + 1024 * warp + 4 * lane;
    u32 sum = 0, start, stop;
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn) {
        asm volatile("bar.sync 0;" ::: "memory");
        start = now();
        if (BEHIND) {
            copy<COPIES>(target, from);
            sum += load(source);
        } else {
#pragma unroll 1
            for (int j = 0; j < ROUNDS; ++j) {
                copy<COPIES>(target, from);
                asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll
                for (int k = 0; k < MATRICES; ++k) sum += load(source + 512 * (k % 8));
                asm volatile("cp.async.wait_group 1;" ::: "memory");
            }
        }
        sums[threadIdx.x] = sum;
        stop = now();
        asm volatile("cp.async.wait_all;" ::: "memory");
    }
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

#define KERNEL(copies)                                                                                   \
    extern "C" __global__ void behind_x##copies(const u32 *data, u32 *sums, u32 *clocks) {               \
        measure<copies, true>(data, sums, clocks);                                                       \
    }                                                                                                    \
    extern "C" __global__ void beside_x##copies(const u32 *data, u32 *sums, u32 *clocks) {               \
        measure<copies, false>(data, sums, clocks);                                                      \
    }

KERNEL(0)
KERNEL(1)
KERNEL(2)
KERNEL(4)
KERNEL(8)
