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
#define ROW (2 * (BLOCK_K + (LAYOUT == 1 ? 8 : 0)))
#define STAGE ((BLOCK_M + BLOCK_N) * ROW)
#define STEP (THREADS / PIECES)

typedef unsigned int u32;

// Where 16 bytes of a row lie, in bytes. Eight rows at one depth must be in different banks: rows of 128 bytes
// each in turn, shorter ones in pairs. Eight rows further down everything is the same again.
__device__ u32 place(int row, int piece) {
    if (LAYOUT == 2)
        piece ^= row / (8 / PIECES) % PIECES;
    return row * ROW + piece * 16;
}

// The same row two pieces (one product) deeper, `d` times.
__device__ u32 deeper(u32 at, int d) { return LAYOUT == 2 ? at ^ 32 * d : at + 32 * d; }

__device__ void copy(u32 to, const half *from, int rows, int k) {
#pragma unroll
    for (int row = 0; row < rows; row += STEP) {
        const half *source = from + row * k;
        if (ASYNC)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + row * ROW), "l"(source));
        else {
            uint4 v = *reinterpret_cast<const uint4 *>(source);
            asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to + row * ROW), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
        }
    }
}

__device__ void load_four(u32 *to, u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}

__device__ void load_two(u32 *to, u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(at));
}

#if FRAGMENTS == 3

struct Fragments {
    u32 left[BLOCK_K / 16][PRODUCTS_M][4], right[BLOCK_K / 16][PRODUCTS_N][2];
};

__device__ void load(Fragments &to, u32 left_at, u32 right_at) {
#pragma unroll
    for (int d = 0; d < BLOCK_K / 16; d++) {
#pragma unroll
        for (int p = 0; p < PRODUCTS_M; p++)
            load_four(to.left[d][p], deeper(left_at, d) + 16 * p * ROW);
#pragma unroll
        for (int q = 0; q < PRODUCTS_N; q += 2)
            load_four(to.right[d][q], deeper(right_at, d) + 8 * q * ROW);
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

__device__ void products(float sum[PRODUCTS_M][PRODUCTS_N][4], u32 left_at, u32 right_at) {
#if FRAGMENTS == 3
    Fragments loaded;
    load(loaded, left_at, right_at);
    multiply_all(sum, loaded);
#elif FRAGMENTS == 2
    u32 left[4], right[PRODUCTS_N][2];
#pragma unroll
    for (int d = 0; d < BLOCK_K / 16; d++) {
#pragma unroll
        for (int q = 0; q < PRODUCTS_N; q++)
            load_two(right[q], deeper(right_at, d) + 8 * q * ROW);
#pragma unroll
        for (int p = 0; p < PRODUCTS_M; p++) {
            load_four(left, deeper(left_at, d) + 16 * p * ROW);
#pragma unroll
            for (int q = 0; q < PRODUCTS_N; q++)
                multiply(sum[p][q], left, right[q]);
        }
    }
#else
    u32 left[4], right[2];
#pragma unroll
    for (int p = 0; p < PRODUCTS_M; p++)
#pragma unroll
        for (int q = 0; q < PRODUCTS_N; q++)
#pragma unroll
            for (int d = 0; d < BLOCK_K / 16; d++) {
                load_four(left, deeper(left_at, d) + 16 * p * ROW);
                load_two(right, deeper(right_at, d) + 8 * q * ROW);
                multiply(sum[p][q], left, right);
            }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_gemm(const half *a, const half *b, OUT *c, int m, int n, int k) {
    extern __shared__ __align__(128) half tiles[];
    int across = n / BLOCK_N, tile_m = blockIdx.x / across, tile_n = blockIdx.x % across;
    if (GROUP) {
        // Blocks that run together cover a square rather than a strip.
        int band = blockIdx.x / (GROUP * across), inside = blockIdx.x % (GROUP * across);
        int height = min(m / BLOCK_M - band * GROUP, GROUP);
        tile_m = band * GROUP + inside % height;
        tile_n = inside / height;
    }
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / WARPS_N * (BLOCK_M / WARPS_M), column = warp % WARPS_N * (BLOCK_N / WARPS_N);
    u32 shared = (u32)__cvta_generic_to_shared(tiles);
    // Copies: a thread has one place of every STEP rows.
    int copied = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
    u32 to = shared + place(copied, piece);
    a += (tile_m * BLOCK_M + copied) * k + piece * 8;
    b += (tile_n * BLOCK_N + copied) * k + piece * 8;
    // Loads: lanes name the rows of the matrices, those of B two products at a time where they are loaded so.
    u32 left_at = shared + place(row + lane % 16, lane / 16);
    int right_row = FRAGMENTS == 3 ? lane % 8 + lane / 16 * 8 : lane % 8;
    u32 right_at = shared + BLOCK_M * ROW + place(column + right_row, lane / 8 % 2);
    float sum[PRODUCTS_M][PRODUCTS_N][4] = {};
    int left = k / BLOCK_K;
    auto copy_tile = [&](int stage) {
        if (left > 0) {
            copy(to + stage * STAGE, a, BLOCK_M, k);
            copy(to + stage * STAGE + BLOCK_M * ROW, b, BLOCK_N, k);
        }
        if (ASYNC)
            asm volatile("cp.async.commit_group;");
        a += BLOCK_K;
        b += BLOCK_K;
        left--;
    };
    for (int i = 0; i < STAGES - 1; i++)
        copy_tile(i);
    int read = 0, written = STAGES - 1;
    for (int i = 0; i < k / BLOCK_K; i++) {
#if LATE
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        Fragments loaded;
        load(loaded, left_at + read * STAGE, right_at + read * STAGE);
        copy_tile(written);
        multiply_all(sum, loaded);
#else
        // The tile that comes next takes the place of the one that was multiplied last.
        __syncthreads();
        copy_tile(written);
        if (ASYNC)
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
        __syncthreads();
        products(sum, left_at + read * STAGE, right_at + read * STAGE);
#endif
        read = read + 1 == STAGES ? 0 : read + 1;
        written = written + 1 == STAGES ? 0 : written + 1;
    }
    c += (tile_m * BLOCK_M + row + lane / 4) * n + tile_n * BLOCK_N + column + lane % 4 * 2;
    for (int p = 0; p < PRODUCTS_M; p++)
        for (int q = 0; q < PRODUCTS_N; q++) {
            put(c + 16 * p * n + 8 * q, sum[p][q][0], sum[p][q][1]);
            put(c + (16 * p + 8) * n + 8 * q, sum[p][q][2], sum[p][q][3]);
        }
}

#endif
