// Sums over a block, each of which needs the one before, as Triton of 2023 reduces a block: threads, warps, then
// a round through shared memory for the sums of the warps, and a second one that gives the result to everybody.

#include <cuda_fp16.h>

#ifndef ELEMENT
#define ELEMENT float
#define BLOCK 1024
#define WARPS 4
#define TIMES 100
#endif

constexpr int THREADS = 32 * WARPS;
constexpr int PER_THREAD = BLOCK / THREADS;
constexpr int WIDEST = 16 / sizeof(ELEMENT);
constexpr int WIDTH = WIDEST < PER_THREAD ? WIDEST : PER_THREAD;

struct alignas(WIDTH * sizeof(ELEMENT)) Vector {
    ELEMENT element[WIDTH];
};

template <typename Number> __device__ Number over_lanes(Number sum, int lanes) {
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        sum = sum + __shfl_xor_sync(0xffffffff, sum, distance);
    return sum;
}

template <typename Number> __device__ Number over_warp(Number sum) { return over_lanes(sum, 32); }

// For whole numbers there is an instruction.
template <> __device__ int over_warp(int sum) { return __reduce_add_sync(0xffffffff, sum); }

extern "C" __global__ void repeated_sum(const ELEMENT *x, const ELEMENT *y, ELEMENT *out, int n) {
    __shared__ ELEMENT partial[WARPS];
    int thread = threadIdx.x, lane = thread % 32;
    ELEMENT value[PER_THREAD], added[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; k += WIDTH) {
        int at = blockIdx.x * BLOCK + k * THREADS + thread * WIDTH;
        Vector first{}, second{};
        if (at < n) {
            first = *reinterpret_cast<const Vector *>(x + at);
            second = *reinterpret_cast<const Vector *>(y + at);
        }
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            value[k + i] = first.element[i];
            added[k + i] = second.element[i];
        }
    }
#pragma unroll 1
    for (int turn = 0; turn < TIMES; ++turn) {
        ELEMENT sum = value[0];
#pragma unroll
        for (int k = 1; k < PER_THREAD; ++k)
            sum = sum + value[k];
        sum = over_warp(sum);
        // The turn before may still be reading.
        __syncthreads();
        if (lane == 0)
            partial[thread / 32] = sum;
        __syncthreads();
        ELEMENT part = thread < WARPS ? partial[thread] : ELEMENT(0);
        part = over_lanes(part, WARPS);
        if (thread < WARPS && lane % WARPS == 0)
            partial[thread] = part;
        __syncthreads();
        ELEMENT total = partial[0];
#pragma unroll
        for (int k = 0; k < PER_THREAD; ++k)
            value[k] = total + added[k];
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k += WIDTH) {
        int at = blockIdx.x * BLOCK + k * THREADS + thread * WIDTH;
        Vector result;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            result.element[i] = value[k + i];
        if (at < n)
            *reinterpret_cast<Vector *>(out + at) = result;
    }
}
