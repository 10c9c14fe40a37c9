// Counts of byte values: atomics on a private copy in dynamic shared memory, then one global atomic per bin.

#ifndef BINS
#define BINS 256
#endif

extern "C" __global__ void histogram(const unsigned char *x, unsigned int *counts, int n)
{
    extern __shared__ unsigned int local[];

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        local[bin] = 0;
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[x[i] * BINS / 256], 1u);
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        if (local[bin])
            atomicAdd(&counts[bin], local[bin]);
}
