// CUDA's execution model on host threads, as far as the workloads use it: one std::thread per CUDA thread,
// blocks one after the other (so a static variable can stand in for shared memory).

#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#define __global__
#define __device__ static
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

struct Dim3 {
    unsigned x, y, z;
};

static thread_local Dim3 threadIdx, blockIdx;
static Dim3 blockDim, gridDim;

static pthread_barrier_t block_barrier;
static pthread_barrier_t warp_barrier[32];
static uint64_t lanes[32][32];

using std::max;
using std::min;

inline unsigned linear_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
inline void __syncthreads() { pthread_barrier_wait(&block_barrier); }

// All 32 lanes of a warp must arrive, which is what a full mask promises.
template <typename T, typename Source> T exchange(T value, Source source)
{
    const unsigned lane = linear_thread() % 32, warp = linear_thread() / 32;
    lanes[warp][lane] = 0;
    std::memcpy(&lanes[warp][lane], &value, sizeof value);
    pthread_barrier_wait(&warp_barrier[warp]);
    const int from = source((int)lane);
    T result = value;
    if (from >= 0 && from < 32)
        std::memcpy(&result, &lanes[warp][from], sizeof result);
    pthread_barrier_wait(&warp_barrier[warp]);
    return result;
}

template <typename T> T __shfl_down_sync(unsigned, T value, int by)
{
    return exchange(value, [by](int lane) { return lane + by; });
}
template <typename T> T __shfl_up_sync(unsigned, T value, int by)
{
    return exchange(value, [by](int lane) { return lane - by; });
}
template <typename T> T __shfl_xor_sync(unsigned, T value, int mask)
{
    return exchange(value, [mask](int lane) { return lane ^ mask; });
}
inline unsigned __ballot_sync(unsigned, bool vote)
{
    const unsigned lane = linear_thread() % 32, warp = linear_thread() / 32;
    lanes[warp][lane] = vote;
    pthread_barrier_wait(&warp_barrier[warp]);
    unsigned votes = 0;
    for (int i = 0; i < 32; ++i)
        votes |= (unsigned)lanes[warp][i] << i;
    pthread_barrier_wait(&warp_barrier[warp]);
    return votes;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

inline unsigned atomicAdd(unsigned *at, unsigned value) { return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST); }
inline float atomicAdd(float *at, float value)
{
    float before, after;
    __atomic_load(at, &before, __ATOMIC_SEQ_CST);
    do
        after = before + value;
    while (!__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return before;
}

template <typename Kernel> void launch(Dim3 grid, Dim3 block, Kernel kernel)
{
    const unsigned threads = block.x * block.y * block.z;
    gridDim = grid;
    blockDim = block;
    pthread_barrier_init(&block_barrier, nullptr, threads);
    for (unsigned warp = 0; warp < threads / 32; ++warp)
        pthread_barrier_init(&warp_barrier[warp], nullptr, 32);
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
        std::vector<std::thread> running;
        for (unsigned t = 0; t < threads; ++t)
            running.emplace_back([=] {
                blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
                threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
                kernel();
            });
        for (auto &thread : running)
            thread.join();
    }
}
