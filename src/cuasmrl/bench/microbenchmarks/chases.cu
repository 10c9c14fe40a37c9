// Chases through global memory by one thread: every load says where the next one goes.
//
// The ring has `elements` places, `step` elements apart; the thread writes it, and goes `warm` places before it
// looks at the clock, so that a small ring is in L1.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

// As RRZE's gpu-benches does it: an element holds the address of the next, and 32 loads go to a branch.
extern "C" __global__ void pointers(void **ring, u64 *end, u32 *clocks, int step, int elements, int warm, int rounds) {
    for (int j = 0; j < elements; ++j) ring[j * step] = ring + (j + 1) % elements * step;
    void **at = ring;
    for (int j = 0; j < warm; ++j) at = (void **)*at;
    *end = (u64)at;
    u32 start = now();
#pragma unroll 1
    for (int j = 0; j < rounds; j += 32) {
#pragma unroll
        for (int k = 0; k < 32; ++k) at = (void **)*at;
    }
    *end = (u64)at;
    u32 stop = now();
    clocks[0] = start;
    clocks[1] = stop;
}

// An element holds the index of the next: the address is to be computed.
extern "C" __global__ void indices(u32 *ring, u64 *end, u32 *clocks, int step, int elements, int warm, int rounds) {
    for (int j = 0; j < elements; ++j) ring[j * step] = (j + 1) % elements * step;
    u32 at = 0;
    for (int j = 0; j < warm; ++j) at = ring[at];
    *end = at;
    u32 start = now();
#pragma unroll 1
    for (int j = 0; j < rounds; j += 32) {
#pragma unroll
        for (int k = 0; k < 32; ++k) at = ring[at];
    }
    *end = at;
    u32 stop = now();
    clocks[0] = start;
    clocks[1] = stop;
}
