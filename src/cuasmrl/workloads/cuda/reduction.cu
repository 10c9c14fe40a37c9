// Sum of n floats: one partial per thread, a shuffle tree per warp, one atomic add per block.

#ifndef THREADS
#define THREADS 256
#endif

__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS) reduction(const float *x, float *out, int n)
{
    __shared__ float partial[THREADS / 32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        sum += x[i];

    sum = warp_sum(sum);
    if (lane == 0)
        partial[warp] = sum;
    __syncthreads();

    if (warp == 0) {
        sum = warp_sum(lane < THREADS / 32 ? partial[lane] : 0.0f);
        if (lane == 0)
            atomicAdd(out, sum);
    }
}
