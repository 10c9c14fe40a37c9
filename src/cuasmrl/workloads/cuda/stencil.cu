// One Jacobi step of the heat equation on a rows x columns grid; the border is carried over.

#ifndef TILE_X
#define TILE_X 32
#endif
#ifndef TILE_Y
#define TILE_Y 8
#endif

extern "C" __global__ void __launch_bounds__(TILE_X *TILE_Y)
stencil(const float *x, float *out, int rows, int columns, float alpha)
{
    __shared__ float tile[TILE_Y + 2][TILE_X + 2];

    const int column = blockIdx.x * TILE_X + threadIdx.x;
    const int row = blockIdx.y * TILE_Y + threadIdx.y;
    const int tx = threadIdx.x + 1;
    const int ty = threadIdx.y + 1;
    const bool inside = row < rows && column < columns;
    const bool interior = row > 0 && row < rows - 1 && column > 0 && column < columns - 1;
    const size_t here = (size_t)row * columns + column;

    if (inside)
        tile[ty][tx] = x[here];
    // The outermost threads also fetch the halo; corners are never read.
    if (interior) {
        if (threadIdx.x == 0)
            tile[ty][0] = x[here - 1];
        if (threadIdx.x == TILE_X - 1)
            tile[ty][TILE_X + 1] = x[here + 1];
        if (threadIdx.y == 0)
            tile[0][tx] = x[here - columns];
        if (threadIdx.y == TILE_Y - 1)
            tile[TILE_Y + 1][tx] = x[here + columns];
    }
    __syncthreads();

    if (!inside)
        return;
    const float centre = tile[ty][tx];
    float next = centre;
    if (interior) {
        const float around = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
        next = centre + alpha * (around - 4.0f * centre);
    }
    out[here] = next;
}
