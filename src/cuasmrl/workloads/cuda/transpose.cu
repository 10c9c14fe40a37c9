// out[n][m] = x[m][n] through a shared tile, so that both global accesses are along rows.

#ifndef TILE
#define TILE 32
#endif
#ifndef ROWS
#define ROWS 8
#endif

extern "C" __global__ void __launch_bounds__(TILE *ROWS) transpose(const float *x, float *out, int m, int n)
{
    // One padding column moves the elements of a tile column to different banks.
    __shared__ float tile[TILE][TILE + 1];

    const int left = blockIdx.x * TILE;
    const int top = blockIdx.y * TILE;

#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += ROWS)
        if (top + r < m && left + (int)threadIdx.x < n)
            tile[r][threadIdx.x] = x[(size_t)(top + r) * n + left + threadIdx.x];
    __syncthreads();

#pragma unroll
    for (int r = threadIdx.y; r < TILE; r += ROWS)
        if (left + r < n && top + (int)threadIdx.x < m)
            out[(size_t)(left + r) * m + top + threadIdx.x] = tile[threadIdx.x][r];
}
