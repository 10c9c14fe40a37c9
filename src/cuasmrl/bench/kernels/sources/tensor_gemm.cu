// C = A B on tensor cores, float16 into float32: A row-major, B column-major (row-major in the scalar kernel),
// C row-major in the type OUT. Sizes are multiples of the tiles.
//
//   FRAGMENTS 0: single values from shared memory; 1: ldmatrix for each product; 2: ldmatrix of A once per
//             row of products; 3: ldmatrix of the whole tile before the first product
//   LAYOUT    of shared memory, 0: plain; 1: 16 bytes of padding behind each row; 2: 16-byte pieces permuted
//   ASYNC     copies by LDGSTS instead of through registers
//   STAGES    tiles in shared memory
//   LATE      copies of a later tile are issued behind the fragments of this one; needs FRAGMENTS 3, two STAGES

#include <cuda_fp16.h>

#ifndef BLOCK_M
#define BLOCK_M 128
#define BLOCK_N 128
#define BLOCK_K 64
#define WARPS_M 2
#define WARPS_N 2
#define FRAGMENTS 3
#define LAYOUT 2
#define ASYNC 1
#define STAGES 2
#define LATE 0
#define GROUP 0
#define OUT half
#endif

#define THREADS (32 * WARPS_M * WARPS_N)
#define PRODUCTS_M (BLOCK_M / WARPS_M / 16)
#define PRODUCTS_N (BLOCK_N / WARPS_N / 8)

__device__ void multiply(float *d, const unsigned *a, const unsigned *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void put(float *c, float x, float y) { *reinterpret_cast<float2 *>(c) = make_float2(x, y); }
__device__ void put(half *c, float x, float y) { *reinterpret_cast<half2 *>(c) = __floats2half2_rn(x, y); }

#if FRAGMENTS == 0

__device__ unsigned pair(half low, half high) {
    half2 both = __halves2half2(low, high);
    return *reinterpret_cast<unsigned *>(&both);
}

// Warps of 16 x 8 products side by side, tiles of 32 x 32 apart.
extern "C" __global__ void __launch_bounds__(256)
    tensor_gemm(const half *a, const half *b, OUT *c, int m, int n, int k) {
    __shared__ half a_tile[BLOCK_M][16], b_tile[16][BLOCK_N];
    int x = threadIdx.x % 16, y = threadIdx.x / 16, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int first_row = blockIdx.y * BLOCK_M, first_column = blockIdx.x * BLOCK_N;
    int row = warp / 4 * 16 + lane / 4, column = warp % 4 * 8 + lane / 4, depth = lane % 4 * 2;
    float sum[BLOCK_M / 32][BLOCK_N / 32][4] = {};
    for (int start = 0; start < k; start += 16) {
        for (int r = 0; r < BLOCK_M; r += 16)
            a_tile[r + y][x] = a[(first_row + r + y) * k + start + x];
        for (int s = 0; s < BLOCK_N; s += 16)
            b_tile[y][s + x] = b[(start + y) * n + first_column + s + x];
        __syncthreads();
        for (int p = 0; p < BLOCK_M / 32; p++) {
            const half *top = a_tile[32 * p + row], *bottom = a_tile[32 * p + row + 8];
            unsigned left[4] = {pair(top[depth], top[depth + 1]), pair(bottom[depth], bottom[depth + 1]),
                                pair(top[depth + 8], top[depth + 9]), pair(bottom[depth + 8], bottom[depth + 9])};
            for (int q = 0; q < BLOCK_N / 32; q++) {
                int at = 32 * q + column;
                unsigned right[2] = {pair(b_tile[depth][at], b_tile[depth + 1][at]),
                                     pair(b_tile[depth + 8][at], b_tile[depth + 9][at])};
                multiply(sum[p][q], left, right);
            }
        }
        __syncthreads();
    }
    for (int p = 0; p < BLOCK_M / 32; p++)
        for (int q = 0; q < BLOCK_N / 32; q++) {
            OUT *at = c + (first_row + 32 * p + row) * n + first_column + 32 * q + warp % 4 * 8 + depth;
            put(at, sum[p][q][0], sum[p][q][1]);
            put(at + 8 * n, sum[p][q][2], sum[p][q][3]);
        }
}

#else

#define PIECES (BLOCK_K / 8)
#define ROW (BLOCK_K + (LAYOUT == 1 ? 8 : 0))
#define STAGE ((BLOCK_M + BLOCK_N) * ROW)

__device__ int place(int row, int piece) {
    // Eight rows at one depth must lie in different banks: rows of 128 bytes each in turn, shorter ones in pairs.
    if (LAYOUT == 2)
        piece ^= row / (8 / PIECES) % PIECES;
    return row * ROW + piece * 8;
}

__device__ void copy(half *tile, const half *from, int rows, int k) {
    for (int e = threadIdx.x; e < rows * PIECES; e += THREADS) {
        int row = e / PIECES, piece = e % PIECES;
        half *to = tile + place(row, piece);
        const half *source = from + row * k + piece * 8;
        if (ASYNC)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(source));
        else
            *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(source);
    }
}

__device__ void load_left(unsigned *left, const half *tile, int row, int depth) {
    int lane = threadIdx.x % 32;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + place(row + lane % 16, depth / 8 + lane / 16));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3]) : "r"(at));
}

__device__ void load_right(unsigned *right, const half *tile, int column, int depth) {
    int lane = threadIdx.x % 16;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + place(column + lane % 8, depth / 8 + lane / 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(right[0]), "=r"(right[1]) : "r"(at));
}

__device__ void load_right_pair(unsigned *right, const half *tile, int column, int depth) {
    int lane = threadIdx.x % 32;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + place(column + lane % 8 + lane / 16 * 8, depth / 8 + lane / 8 % 2));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(right[0]), "=r"(right[1]), "=r"(right[2]), "=r"(right[3]) : "r"(at));
}

#if FRAGMENTS == 3

struct Fragments {
    unsigned left[BLOCK_K / 16][PRODUCTS_M][4], right[BLOCK_K / 16][PRODUCTS_N][2];
};

__device__ void load(Fragments &from, const half *a_tile, const half *b_tile, int row, int column) {
#pragma unroll
    for (int d = 0; d < BLOCK_K / 16; d++) {
#pragma unroll
        for (int p = 0; p < PRODUCTS_M; p++)
            load_left(from.left[d][p], a_tile, row + 16 * p, 16 * d);
#pragma unroll
        for (int q = 0; q < PRODUCTS_N; q += 2)
            load_right_pair(from.right[d][q], b_tile, column + 8 * q, 16 * d);
    }
}

__device__ void multiply_all(float sum[PRODUCTS_M][PRODUCTS_N][4], const Fragments &of) {
#pragma unroll
    for (int d = 0; d < BLOCK_K / 16; d++)
#pragma unroll
        for (int p = 0; p < PRODUCTS_M; p++)
#pragma unroll
            for (int q = 0; q < PRODUCTS_N; q++)
                multiply(sum[p][q], of.left[d][p], of.right[d][q]);
}

#endif

__device__ void products(float sum[PRODUCTS_M][PRODUCTS_N][4], const half *a_tile, const half *b_tile, int row, int column) {
#if FRAGMENTS == 3
    Fragments loaded;
    load(loaded, a_tile, b_tile, row, column);
    multiply_all(sum, loaded);
#elif FRAGMENTS == 2
    unsigned left[4], right[PRODUCTS_N][2];
#pragma unroll
    for (int d = 0; d < BLOCK_K; d += 16) {
#pragma unroll
        for (int q = 0; q < PRODUCTS_N; q++)
            load_right(right[q], b_tile, column + 8 * q, d);
#pragma unroll
        for (int p = 0; p < PRODUCTS_M; p++) {
            load_left(left, a_tile, row + 16 * p, d);
#pragma unroll
            for (int q = 0; q < PRODUCTS_N; q++)
                multiply(sum[p][q], left, right[q]);
        }
    }
#else
    unsigned left[4], right[2];
#pragma unroll
    for (int p = 0; p < PRODUCTS_M; p++)
#pragma unroll
        for (int q = 0; q < PRODUCTS_N; q++)
#pragma unroll
            for (int d = 0; d < BLOCK_K; d += 16) {
                load_left(left, a_tile, row + 16 * p, d);
                load_right(right, b_tile, column + 8 * q, d);
                multiply(sum[p][q], left, right);
            }
#endif
}

__device__ void copy_tile(half *tiles, const half *a, const half *b, int i, int k) {
    if (i < k / BLOCK_K) {
        half *tile = tiles + i % STAGES * STAGE;
        copy(tile, a + i * BLOCK_K, BLOCK_M, k);
        copy(tile + BLOCK_M * ROW, b + i * BLOCK_K, BLOCK_N, k);
    }
    if (ASYNC)
        asm volatile("cp.async.commit_group;");
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_gemm(const half *a, const half *b, OUT *c, int m, int n, int k) {
    extern __shared__ half tiles[];
    int across = n / BLOCK_N, tile_m = blockIdx.x / across, tile_n = blockIdx.x % across;
    if (GROUP) {
        // Blocks that run together cover a square rather than a strip.
        int band = blockIdx.x / (GROUP * across), inside = blockIdx.x % (GROUP * across);
        int height = min(m / BLOCK_M - band * GROUP, GROUP);
        tile_m = band * GROUP + inside % height;
        tile_n = inside / height;
    }
    a += tile_m * BLOCK_M * k;
    b += tile_n * BLOCK_N * k;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / WARPS_N * (BLOCK_M / WARPS_M), column = warp % WARPS_N * (BLOCK_N / WARPS_N);
    float sum[PRODUCTS_M][PRODUCTS_N][4] = {};
    for (int i = 0; i < STAGES - 1; i++)
        copy_tile(tiles, a, b, i, k);
    for (int i = 0; i < k / BLOCK_K; i++) {
        const half *tile = tiles + i % STAGES * STAGE;
#if LATE
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        Fragments loaded;
        load(loaded, tile, tile + BLOCK_M * ROW, row, column);
        copy_tile(tiles, a, b, i + STAGES - 1, k);
        multiply_all(sum, loaded);
#else
        // The tile that comes next takes the place of the one that was multiplied last.
        __syncthreads();
        copy_tile(tiles, a, b, i + STAGES - 1, k);
        if (ASYNC)
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
        __syncthreads();
        products(sum, tile, tile + BLOCK_M * ROW, row, column);
#endif
    }
    for (int p = 0; p < PRODUCTS_M; p++)
        for (int q = 0; q < PRODUCTS_N; q++) {
            OUT *at = c + (tile_m * BLOCK_M + row + 16 * p + lane / 4) * n + tile_n * BLOCK_N + column + 8 * q + lane % 4 * 2;
            put(at, sum[p][q][0], sum[p][q][1]);
            put(at + 8 * n, sum[p][q][2], sum[p][q][3]);
        }
}

#endif
