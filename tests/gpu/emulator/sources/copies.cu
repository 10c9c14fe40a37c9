// Asynchronous copies to shared memory (sm_80 and later), plain and with zeros.

#define ADDRESS(p) ((unsigned)__cvta_generic_to_shared(p))
#define COPY(to, from, bytes) asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ";" :: "r"(ADDRESS(to)), "l"(from) : "memory")
#define COPY16(to, from) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(ADDRESS(to)), "l"(from) : "memory")
#define FILL(to, from, n) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(ADDRESS(to)), "l"(from), "r"(n) : "memory")
#define FILL16(to, from, n) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(ADDRESS(to)), "l"(from), "r"(n) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")

extern "C" __global__ void sizes(const int *in, int *out) {
    __shared__ __align__(16) int s[3][128];
    int i = threadIdx.x;
    COPY(&s[0][i], in + i, 4);
    COPY(&s[1][2 * i], in + 2 * i, 8);
    COPY16(&s[2][4 * i], in + 4 * i);
    COMMIT();
    WAIT(0);
    __syncthreads();
    out[i] = s[0][31 - i];
    for (int k = 0; k < 2; ++k) out[32 + 2 * i + k] = s[1][63 - 2 * i - k];
    for (int k = 0; k < 4; ++k) out[96 + 4 * i + k] = s[2][127 - 4 * i - k];
}

extern "C" __global__ void wait_all(const int *in, int *out) {
    __shared__ int s[32];
    COPY(&s[threadIdx.x], in + threadIdx.x, 4);
    WAIT_ALL();
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}

extern "C" __global__ void without_wait(const int *in, int *out) {
    __shared__ int s[64];
    int i = threadIdx.x;
    s[i] = -1;
    __syncthreads();
    COPY(&s[i], in + i, 4);
    COMMIT();
    __syncthreads();
    out[i] = s[i ^ 1];
}

// Three stages: stage k may be read once at most two younger groups are in flight.
extern "C" __global__ void stages(const int *in, int *out) {
    __shared__ int s[3][64];
    int i = threadIdx.x;
    for (int k = 0; k < 3; ++k) { COPY(&s[k][i], in + 64 * k + i, 4); COMMIT(); }
    WAIT(2); __syncthreads();
    out[i] = s[0][63 - i];
    WAIT(1); __syncthreads();
    out[64 + i] = s[1][63 - i];
    WAIT(0); __syncthreads();
    out[128 + i] = s[2][63 - i];
}

extern "C" __global__ void stage_too_early(const int *in, int *out) {
    __shared__ int s[3][64];
    int i = threadIdx.x;
    for (int k = 0; k < 3; ++k) { COPY(&s[k][i], in + 64 * k + i, 4); COMMIT(); }
    WAIT(2); __syncthreads();
    out[i] = s[1][63 - i];
    WAIT(0);
}

// Only warp 0 waits for its copies.
extern "C" __global__ void other_warp_does_not_wait(const int *in, int *out) {
    __shared__ int s[64];
    int i = threadIdx.x;
    COPY(&s[i], in + i, 4);
    COMMIT();
    if (i < 32) WAIT(0);
    __syncthreads();
    out[i] = s[63 - i];
}

extern "C" __global__ void zeros(const int *in, int *out, int n, int turns) {
    __shared__ __align__(16) int s[128];
    int i = threadIdx.x;
    for (int k = 0; k < turns; ++k) {
        FILL(&s[i], in + i, k * 32 + i < n ? 4 : 0);
        COMMIT(); WAIT(0); __syncthreads();
        out[32 * k + i] = s[i];
        __syncthreads();
    }
}

extern "C" __global__ void zeros16(const int *in, int *out, int bytes) {
    __shared__ __align__(16) int s[128];
    int i = threadIdx.x;
    FILL16(&s[4 * i], in + 4 * i, bytes);
    COMMIT(); WAIT(0); __syncthreads();
    for (int k = 0; k < 4; ++k) out[4 * i + k] = s[4 * i + k];
}
