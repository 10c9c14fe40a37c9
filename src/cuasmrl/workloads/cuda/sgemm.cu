// C = A B in fp32: shared tiles of A (transposed) and B, a TM x TN tile of C in the registers of each thread.

#ifndef BM
#define BM 64
#define BN 64
#define BK 16
#define TM 4
#define TN 4
#endif

#define THREADS ((BM / TM) * (BN / TN))

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm(const float *a, const float *b, float *c, int m, int n, int k)
{
    // Rows are padded by one vector so that the transposing stores do not all hit one bank.
    __shared__ __align__(16) float a_tile[BK][BM + 4];
    __shared__ __align__(16) float b_tile[BK][BN];

    const int thread = threadIdx.x;
    const int tile_row = blockIdx.y * BM;
    const int tile_column = blockIdx.x * BN;
    const int my_row = (thread / (BN / TN)) * TM;
    const int my_column = (thread % (BN / TN)) * TN;
    float sum[TM][TN] = {};

    for (int base = 0; base < k; base += BK) {
#pragma unroll
        for (int e = thread; e < BM * BK; e += THREADS) {
            const int row = tile_row + e / BK;
            const int depth = base + e % BK;
            a_tile[e % BK][e / BK] = row < m && depth < k ? a[(size_t)row * k + depth] : 0.0f;
        }
#pragma unroll
        for (int e = thread; e < BK * BN; e += THREADS) {
            const int depth = base + e / BN;
            const int column = tile_column + e % BN;
            b_tile[e / BN][e % BN] = depth < k && column < n ? b[(size_t)depth * n + column] : 0.0f;
        }
        __syncthreads();

#pragma unroll
        for (int d = 0; d < BK; ++d) {
            float a_part[TM], b_part[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a_part[i] = a_tile[d][my_row + i];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b_part[j] = b_tile[d][my_column + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += a_part[i] * b_part[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = tile_row + my_row + i;
            const int column = tile_column + my_column + j;
            if (row < m && column < n)
                c[(size_t)row * n + column] = sum[i][j];
        }
}
