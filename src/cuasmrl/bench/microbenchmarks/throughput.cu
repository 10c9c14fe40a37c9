// What one full block gets through, from the first clock to the second one behind a barrier.
//
// As the micro-benchmarks of Accel-Sim do it: chains of arithmetic that every warp follows, loads from L1 and from
// shared memory. One thread of it measures latencies. Loops are unrolled as the compiler likes.

typedef unsigned int u32;
typedef unsigned long long u64;

#define ROUNDS 1024
#define PASSES 256
#define CACHED 16384
#define SHARED_BYTES 32768
#define RING 512

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

__device__ __forceinline__ void meet() { asm volatile("bar.sync 0;" ::: "memory"); }

__device__ __forceinline__ void report(u32 *clocks, u32 start, u32 stop) {
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

// `steps` times a statement on the accumulator x, which needs the one before, in each round.
#define CHAIN(name, T, steps, ...)                                                                       \
    extern "C" __global__ void name(T *numbers, u32 *clocks) {                                           \
        T x = numbers[threadIdx.x], y = numbers[threadIdx.x + 1024], z = numbers[threadIdx.x + 2048];    \
        numbers[threadIdx.x + 3072] = x + y + z;                                                         \
        meet();                                                                                          \
        u32 start = now();                                                                               \
        for (int j = 0; j < ROUNDS; ++j) {                                                               \
            _Pragma("unroll") for (int k = 0; k < steps; ++k) { __VA_ARGS__; }                           \
        }                                                                                                \
        meet();                                                                                          \
        u32 stop = now();                                                                                \
        numbers[threadIdx.x] = x;                                                                        \
        report(clocks, start, stop);                                                                     \
    }

CHAIN(floats, float, 4, asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(x) : "f"(y), "f"(z)))
CHAIN(doubles, double, 4, asm volatile("fma.rn.f64 %0, %1, %2, %0;" : "+d"(x) : "d"(y), "d"(z)))
CHAIN(integers, u32, 4, asm volatile("mad.lo.u32 %0, %1, %2, %0;" : "+r"(x) : "r"(y), "r"(z)))
CHAIN(halves, u32, 1, asm volatile("fma.rn.f16x2 %0, %0, %1, %0;" : "+r"(x) : "r"(y)))
CHAIN(roots, float, 4, asm volatile("sqrt.approx.ftz.f32 %0, %0;" : "+f"(x)))
CHAIN(sines, float, 4, asm volatile("sin.approx.ftz.f32 %0, %0;" : "+f"(x)))

// Loads of W words by each thread, COUNT of them side by side; the warps go over the same lines.
template <int W> __device__ __forceinline__ void load(float *sum, const float *place) {
    float a, b, c, d;
    if (W == 1) {
        asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(a) : "l"(place) : "memory");
        sum[0] += a;
    } else if (W == 2) {
        asm volatile("ld.global.ca.v2.f32 {%0,%1}, [%2];" : "=f"(a), "=f"(b) : "l"(place) : "memory");
        sum[0] += a, sum[1] += b;
    } else {
        asm volatile("ld.global.ca.v4.f32 {%0,%1,%2,%3}, [%4];"
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                     : "l"(place)
                     : "memory");
        sum[0] += a, sum[1] += b, sum[2] += c, sum[3] += d;
    }
}

template <int W, int COUNT> __device__ __forceinline__ void cached(const float *data, float *sums, u32 *clocks) {
    float sum[4] = {0, 0, 0, 0};
    for (u32 i = W * threadIdx.x; i < CACHED; i += W * blockDim.x) load<W>(sum, data + i);
    meet();
    u32 start = now();
    for (u32 j = 0; j < PASSES; ++j) {
        const float *place = data + (W * threadIdx.x + 32 * W * COUNT * j) % CACHED;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) load<W>(sum + (COUNT > 1 ? k : 0), place + 32 * k);
    }
    meet();
    u32 stop = now();
    sums[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
    report(clocks, start, stop);
}

extern "C" __global__ void words_x4(const float *data, float *sums, u32 *clocks) { cached<1, 4>(data, sums, clocks); }
extern "C" __global__ void pairs(const float *data, float *sums, u32 *clocks) { cached<2, 1>(data, sums, clocks); }
extern "C" __global__ void quads(const float *data, float *sums, u32 *clocks) { cached<4, 1>(data, sums, clocks); }

// Every thread follows indices through shared memory, a block's width on with each.
template <class T> __device__ __forceinline__ void indices(T *sums, u32 *clocks) {
    __shared__ T elements[SHARED_BYTES / sizeof(T)];
    const u32 count = SHARED_BYTES / sizeof(T);
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) elements[i] = (i + blockDim.x) % count;
    meet();
    T at = threadIdx.x;
    u32 start = now();
    for (u32 j = 0; j < ROUNDS; ++j) at = elements[at];
    meet();
    u32 stop = now();
    sums[threadIdx.x] = at;
    report(clocks, start, stop);
}

extern "C" __global__ void shared_words(u32 *sums, u32 *clocks) { indices<u32>(sums, clocks); }
extern "C" __global__ void shared_pairs(u64 *sums, u32 *clocks) { indices<u64>(sums, clocks); }

// One thread follows pointers through eight rounds of a dense ring, which it has just written: the first round
// misses L1 with one load of four, or with `.cg` every load does.
#define LAPS(name, load)                                                                                 \
    extern "C" __global__ void name(u64 *ring, u32 *clocks) {                                            \
        for (u32 i = 0; i < RING; ++i) ring[i] = (u64)(ring + (i + 1) % RING);                           \
        u64 at;                                                                                          \
        asm volatile(load " %0, [%1];" : "=l"(at) : "l"(ring) : "memory");                               \
        meet();                                                                                          \
        u32 start = now();                                                                               \
        for (u32 j = 0; j < 8 * RING; ++j) asm volatile(load " %0, [%0];" : "+l"(at)::"memory");         \
        u32 stop = now();                                                                                \
        ring[0] = at;                                                                                    \
        report(clocks, start, stop);                                                                     \
    }

LAPS(laps, "ld.global.ca.u64")
LAPS(laps_past_l1, "ld.global.cg.u64")

// An atomic gives the place of the next, which is the same.
extern "C" __global__ void atomics(u32 *numbers, u32 *clocks) {
    u32 at = 0;
    meet();
    u32 start = now();
    for (int j = 0; j < ROUNDS; ++j) at = atomicAdd(numbers + at, 0);
    meet();
    u32 stop = now();
    numbers[1] = at;
    report(clocks, start, stop);
}

// All SMs read past L1 what fits into L2, every warp another part of it.
extern "C" __global__ void past_l1(const float *data, float *sums, u32 *clocks, u32 count) {
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    float sum[4] = {0, 0, 0, 0};
    meet();
    u32 start = now();
    for (u32 j = 0; j < PASSES; ++j) {
        const float *place = data + (4 * thread + 128 * j) % count;
        float a, b, c, d;
        asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                     : "l"(place)
                     : "memory");
        sum[0] += a, sum[1] += b, sum[2] += c, sum[3] += d;
    }
    meet();
    u32 stop = now();
    sums[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
    report(clocks, start, stop);
}
