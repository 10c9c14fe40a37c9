// Single accesses and bare streams of loads, all of them hits.
//
// Control bits are put in afterwards: what the compiler would have waited for is not what is measured.

typedef unsigned int u32;

#define LOADS 24
#define ROUNDS 64
#define LINES 4

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

// Loads that need nothing of each other, after one that brings their line into L1.
extern "C" __global__ void loads(const u32 *data, u32 *sums) {
    u32 x[LOADS], sum = data[LOADS];
    sums[threadIdx.x] = sum;
    asm volatile("bar.sync 0;" ::: "memory");
#pragma unroll
    for (int k = 0; k < LOADS; ++k) asm volatile("ld.global.u32 %0, [%1];" : "=r"(x[k]) : "l"(data + k));
#pragma unroll
    for (int k = 0; k < LOADS; ++k) sum += x[k];
    sums[threadIdx.x] = sum;
}

__device__ __forceinline__ u32 pass(const u32 *mine) {
    u32 sum = 0;
#pragma unroll 4
    for (int j = 0; j < ROUNDS; ++j) {
#pragma unroll
        for (int k = 0; k < LINES; ++k) sum += mine[32 * (LINES * j + k)];
    }
    return sum;
}

// Whole lines by many warps, twice; the second time all are in L1.
extern "C" __global__ void lines(const u32 *data, u32 *sums, u32 *clocks) {
    const u32 *mine = data + threadIdx.x % 32;
    sums[threadIdx.x] = pass(mine);
    asm volatile("bar.sync 0;" ::: "memory");
    u32 start = now();
    sums[threadIdx.x] = pass(mine);
    u32 stop = now();
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

__constant__ u32 table[64];
__constant__ uint2 pairs[64];

// One access, of which the second execution counts: the first one brings the data into L1.
#define ACCESS(name, width, afterwards, ...)                                                                    \
    extern "C" __global__ void name(u32 *data) {                                                         \
        __shared__ __align__(16) u32 here[128];                                                          \
        [[maybe_unused]] u32 *mine = data + width * threadIdx.x;                                         \
        [[maybe_unused]] u32 x = threadIdx.x, y = x, z = x, w = x;                                       \
        u32 place = (u32)__cvta_generic_to_shared(here + width * threadIdx.x);                           \
        for (int k = 0; k < 4; ++k) here[4 * threadIdx.x + k] = k;                                       \
        _Pragma("unroll") for (int j = 0; j < 2; ++j) {                                                  \
            asm volatile("bar.sync 0;" ::: "memory");                                                    \
            __VA_ARGS__;                                                                                 \
            afterwards;                                                                                  \
        }                                                                                                \
    }
#define LOAD(name, width, ...) ACCESS(name, width, mine[128] = x + y + z + w, __VA_ARGS__)
#define STORE(name, width, ...) ACCESS(name, width, , __VA_ARGS__)

#define ONE "=r"(x)
#define TWO ONE, "=r"(y)
#define FOUR TWO, "=r"(z), "=r"(w)
#define THERE "l"(mine)
#define HERE "r"(place)
#define VALUE "r"(x)
#define VALUES VALUE, "r"(y)
#define ALL_VALUES VALUES, "r"(z), "r"(w)

LOAD(ldg_32, 1, asm volatile("ld.global.u32 %0, [%1];" : ONE : THERE))
LOAD(ldg_64, 2, asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : TWO : THERE))
LOAD(ldg_128, 4, asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : FOUR : THERE))
LOAD(lds_32, 1, asm volatile("ld.shared.u32 %0, [%1];" : ONE : HERE))
LOAD(lds_64, 2, asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : TWO : HERE))
LOAD(lds_128, 4, asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : FOUR : HERE))
LOAD(ldc_32, 1, x = ((const volatile u32 *)table)[(x + j) % 64])
LOAD(ldc_64, 2, uint2 both = pairs[(x + j) % 64]; x = both.x; y = both.y)
STORE(sts_32, 1, asm volatile("st.shared.u32 [%0], %1;" ::HERE, VALUE))
STORE(sts_64, 2, asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::HERE, VALUES))
STORE(sts_128, 4, asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::HERE, ALL_VALUES))
STORE(stg_32, 1, asm volatile("st.global.u32 [%0], %1;" ::THERE, VALUE))
STORE(stg_64, 2, asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::THERE, VALUES))
STORE(stg_128, 4, asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::THERE, ALL_VALUES))
STORE(ldgsts_32, 1, asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::HERE, THERE))
STORE(ldgsts_64, 2, asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::HERE, THERE))
STORE(ldgsts_128, 4, asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::HERE, THERE))
