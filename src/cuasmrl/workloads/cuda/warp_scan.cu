// Per block: inclusive prefix sums by shuffles. Per warp: positive elements packed to the front by vote.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
warp_scan(const int *x, int *sums, int *packed, int *counts, int n)
{
    __shared__ int totals[THREADS / 32];
    const unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int value = i < n ? x[i] : 0;

    int sum = value;
#pragma unroll
    for (int offset = 1; offset < 32; offset <<= 1) {
        const int below = __shfl_up_sync(all, sum, offset);
        if (lane >= offset)
            sum += below;
    }
    if (lane == 31)
        totals[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; ++w)
        sum += totals[w];
    if (i < n)
        sums[i] = sum;

    const bool keep = value > 0;
    const unsigned kept = __ballot_sync(all, keep);
    const int first = i - lane;
    if (keep)
        packed[first + __popc(kept & ((1u << lane) - 1))] = value;
    // The largest kept value travels to all lanes by butterfly; lane 0 notes it beside the count.
    int largest = value;
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        largest = max(largest, __shfl_xor_sync(all, largest, offset));
    if (lane == 0 && first < n) {
        counts[2 * (first / 32)] = __popc(kept);
        counts[2 * (first / 32) + 1] = kept ? largest : 0;
    }
}
