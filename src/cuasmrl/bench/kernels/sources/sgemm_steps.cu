// C = A B in float32 on CUDA cores, all matrices row-major, in the steps in which such a kernel is usually
// made faster. Sizes are multiples of the tiles.

#ifndef STEP
#define STEP 0
#endif
#ifndef BLOCK_M
#define BLOCK_M 32
#define BLOCK_N 32
#define BLOCK_K 32
#define THREAD_M 1
#define THREAD_N 1
#define WARP_M 0
#define WARP_N 0
#endif

enum { UNCOALESCED = 0, COALESCED = 1, SHARED = 2, COLUMN = 3, TILE = 4, WIDE = 5, WARP = 6 };

#if STEP <= 1

// Each thread computes one element from global memory. With rows along x the lanes of a warp read different
// rows of A; with columns along x they read neighbours of B.
extern "C" __global__ void sgemm_steps(const float *a, const float *b, float *c, int m, int n, int k) {
    int fast = blockIdx.x * 32 + threadIdx.x % 32, slow = blockIdx.y * 32 + threadIdx.x / 32;
    int row = STEP == UNCOALESCED ? fast : slow, column = STEP == UNCOALESCED ? slow : fast;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

#elif STEP == 2

// Tiles of 32 x 32 in shared memory, one element per thread.
extern "C" __global__ void sgemm_steps(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[32 * 32], b_tile[32 * 32];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0;
    for (int start = 0; start < k; start += 32) {
        a_tile[y * 32 + x] = a[row * k + start + x];
        b_tile[y * 32 + x] = b[(start + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; i++)
            sum += a_tile[y * 32 + i] * b_tile[i * 32 + x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

#elif STEP == 3

// Each thread computes THREAD_M elements of one column: one value of B serves all of them.
extern "C" __global__ void sgemm_steps(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[BLOCK_M * BLOCK_K], b_tile[BLOCK_K * BLOCK_N];
    int column = threadIdx.x % BLOCK_N, band = threadIdx.x / BLOCK_N * THREAD_M;
    int first_row = blockIdx.y * BLOCK_M, first_column = blockIdx.x * BLOCK_N;
    float sum[THREAD_M] = {};
    for (int start = 0; start < k; start += BLOCK_K) {
        int y = threadIdx.x / BLOCK_K, x = threadIdx.x % BLOCK_K;
        a_tile[y * BLOCK_K + x] = a[(first_row + y) * k + start + x];
        y = threadIdx.x / BLOCK_N;
        b_tile[y * BLOCK_N + column] = b[(start + y) * n + first_column + column];
        __syncthreads();
        for (int i = 0; i < BLOCK_K; i++) {
            float right = b_tile[i * BLOCK_N + column];
            for (int r = 0; r < THREAD_M; r++)
                sum[r] += a_tile[(band + r) * BLOCK_K + i] * right;
        }
        __syncthreads();
    }
    for (int r = 0; r < THREAD_M; r++)
        c[(first_row + band + r) * n + first_column + column] = sum[r];
}

#elif STEP == 4

// Each thread computes THREAD_M x THREAD_N elements from registers; copies are one float wide.
extern "C" __global__ void sgemm_steps(const float *a, const float *b, float *c, int m, int n, int k) {
    const int threads = BLOCK_M * BLOCK_N / (THREAD_M * THREAD_N);
    __shared__ float a_tile[BLOCK_M * BLOCK_K], b_tile[BLOCK_K * BLOCK_N];
    int column = threadIdx.x % (BLOCK_N / THREAD_N) * THREAD_N, row = threadIdx.x / (BLOCK_N / THREAD_N) * THREAD_M;
    int first_row = blockIdx.y * BLOCK_M, first_column = blockIdx.x * BLOCK_N;
    float sum[THREAD_M][THREAD_N] = {}, left[THREAD_M], right[THREAD_N];
    for (int start = 0; start < k; start += BLOCK_K) {
        // Threads cover whole rows, so that the rest of a division stays the same for a thread.
        for (int down = 0; down < BLOCK_M; down += threads / BLOCK_K)
            a_tile[down * BLOCK_K + threadIdx.x] = a[(first_row + down + threadIdx.x / BLOCK_K) * k + start + threadIdx.x % BLOCK_K];
        for (int down = 0; down < BLOCK_K; down += threads / BLOCK_N)
            b_tile[down * BLOCK_N + threadIdx.x] = b[(start + down + threadIdx.x / BLOCK_N) * n + first_column + threadIdx.x % BLOCK_N];
        __syncthreads();
        for (int i = 0; i < BLOCK_K; i++) {
            for (int r = 0; r < THREAD_M; r++)
                left[r] = a_tile[(row + r) * BLOCK_K + i];
            for (int s = 0; s < THREAD_N; s++)
                right[s] = b_tile[i * BLOCK_N + column + s];
            for (int r = 0; r < THREAD_M; r++)
                for (int s = 0; s < THREAD_N; s++)
                    sum[r][s] += left[r] * right[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < THREAD_M; r++)
        for (int s = 0; s < THREAD_N; s++)
            c[(first_row + row + r) * n + first_column + column + s] = sum[r][s];
}

#else

__device__ float4 wide(const float *p) { return *reinterpret_cast<const float4 *>(p); }

// Copies of four floats; A is transposed on its way into shared memory, so that both operands are read along
// rows. With WARP the tile is cut into rectangles of WARP_M x WARP_N, one per warp, which a warp covers in
// SUB_M x SUB_N strips.
extern "C" __global__ void sgemm_steps(const float *a, const float *b, float *c, int m, int n, int k) {
#if STEP == 6
    const int strips_n = WARP_SUBS_N, strips_m = WARP_M * WARP_N / (32 * THREAD_M * THREAD_N * strips_n);
    const int strip_m = WARP_M / strips_m, strip_n = WARP_N / strips_n;
    const int threads = BLOCK_M / WARP_M * (BLOCK_N / WARP_N) * 32;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BLOCK_N / WARP_N) * WARP_M + lane / (strip_n / THREAD_N) * THREAD_M;
    int column = warp % (BLOCK_N / WARP_N) * WARP_N + lane % (strip_n / THREAD_N) * THREAD_N;
#else
    const int strips_n = 1, strips_m = 1, strip_m = 0, strip_n = 0;
    const int threads = BLOCK_M * BLOCK_N / (THREAD_M * THREAD_N);
    int row = threadIdx.x / (BLOCK_N / THREAD_N) * THREAD_M, column = threadIdx.x % (BLOCK_N / THREAD_N) * THREAD_N;
#endif
    __shared__ float a_tile[BLOCK_K * BLOCK_M], b_tile[BLOCK_K * BLOCK_N];
    int first_row = blockIdx.y * BLOCK_M, first_column = blockIdx.x * BLOCK_N;
    float sum[strips_m * THREAD_M][strips_n * THREAD_N] = {};
    float left[strips_m * THREAD_M], right[strips_n * THREAD_N];
    for (int start = 0; start < k; start += BLOCK_K) {
        for (int down = 0; down < BLOCK_M; down += 4 * threads / BLOCK_K) {
            int y = down + 4 * threadIdx.x / BLOCK_K, x = 4 * threadIdx.x % BLOCK_K;
            float4 v = wide(&a[(first_row + y) * k + start + x]);
            a_tile[(x + 0) * BLOCK_M + y] = v.x;
            a_tile[(x + 1) * BLOCK_M + y] = v.y;
            a_tile[(x + 2) * BLOCK_M + y] = v.z;
            a_tile[(x + 3) * BLOCK_M + y] = v.w;
        }
        for (int down = 0; down < BLOCK_K; down += 4 * threads / BLOCK_N) {
            int y = down + 4 * threadIdx.x / BLOCK_N, x = 4 * threadIdx.x % BLOCK_N;
            *reinterpret_cast<float4 *>(&b_tile[y * BLOCK_N + x]) = wide(&b[(start + y) * n + first_column + x]);
        }
        __syncthreads();
        for (int i = 0; i < BLOCK_K; i++) {
            for (int p = 0; p < strips_m; p++)
                for (int r = 0; r < THREAD_M; r++)
                    left[p * THREAD_M + r] = a_tile[i * BLOCK_M + row + p * strip_m + r];
            for (int q = 0; q < strips_n; q++)
                for (int s = 0; s < THREAD_N; s++)
                    right[q * THREAD_N + s] = b_tile[i * BLOCK_N + column + q * strip_n + s];
            for (int r = 0; r < strips_m * THREAD_M; r++)
                for (int s = 0; s < strips_n * THREAD_N; s++)
                    sum[r][s] += left[r] * right[s];
        }
        __syncthreads();
    }
    for (int p = 0; p < strips_m; p++)
        for (int r = 0; r < THREAD_M; r++)
            for (int q = 0; q < strips_n; q++)
                for (int s = 0; s < THREAD_N; s += 4) {
                    float *v = &sum[p * THREAD_M + r][q * THREAD_N + s];
                    int y = first_row + row + p * strip_m + r, x = first_column + column + q * strip_n + s;
                    *reinterpret_cast<float4 *>(&c[y * n + x]) = make_float4(v[0], v[1], v[2], v[3]);
                }
}

#endif
