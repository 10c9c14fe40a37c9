// c = a b on tensor cores: a is m x depth and b is depth x n, both fp16, c is fp32. All sizes are multiples
// of 64. A block of four warps makes a tile of 64 x 64, each warp a quarter of it.

#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 64;
constexpr int STEP = 32;
constexpr int THREADS = 128;
constexpr int PART = 8;          // halves in one access to memory
constexpr int PAD = 8;           // keeps the rows of a tile on different banks

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

template <int ROWS, int COLUMNS>
__device__ void copy_tile(half (&to)[ROWS][COLUMNS + PAD], const half *from, int stride)
{
    constexpr int PARTS = COLUMNS / PART;
    for (int i = threadIdx.x; i < ROWS * PARTS; i += THREADS) {
        const int row = i / PARTS, column = PART * (i % PARTS);
        *(int4 *)&to[row][column] = *(const int4 *)&from[(long)row * stride + column];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(float *c, const half *a, const half *b, int n, int depth)
{
    __shared__ half left[TILE][STEP + PAD];
    __shared__ half right[STEP][TILE + PAD];
    const int warp = threadIdx.x / 32;
    const int row = TILE / 2 * (warp / 2), column = TILE / 2 * (warp % 2);
    a += (long)TILE * blockIdx.y * depth;
    b += TILE * blockIdx.x;
    c += (long)(TILE * blockIdx.y + row) * n + TILE * blockIdx.x + column;

    Sum sum[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            wmma::fill_fragment(sum[i][j], 0.0f);

    for (int k = 0; k < depth; k += STEP) {
        copy_tile<TILE, STEP>(left, a + k, depth);
        copy_tile<STEP, TILE>(right, b + (long)k * n, n);
        __syncthreads();
        for (int s = 0; s < STEP; s += 16) {
            Left x[2];
            Right y[2];
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(x[i], &left[row + 16 * i][s], STEP + PAD);
                wmma::load_matrix_sync(y[i], &right[s][column + 16 * i], TILE + PAD);
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++)
                    wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(&c[16 * i * n + 16 * j], sum[i][j], n, wmma::mem_row_major);
}
