// Bulk copies and barriers in shared memory, as compilers arrange them; for sm_90 and later.

__device__ inline unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ inline void init(unsigned bar, unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}
__device__ inline void expect(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}
__device__ inline void arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(bar) : "memory");
}
__device__ inline void wait(unsigned bar, unsigned parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra AGAIN;\n}"
                 :: "r"(bar), "r"(parity) : "memory");
}
__device__ inline void copy(unsigned to, const void *from, unsigned bytes, unsigned bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
__device__ inline void copy_back(void *to, unsigned from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(to), "r"(from), "r"(bytes) : "memory");
}

// One thread copies 512 bytes, all wait.
extern "C" __global__ void copies(const int *in, int *out, int waits) {
    __shared__ __align__(16) int s[128];
    __shared__ long long b;
    unsigned bar = shared_address(&b);
    if (threadIdx.x == 0) init(bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(bar, 512);
        copy(shared_address(s), in + 128 * blockIdx.x, 512, bar);
    }
    if (waits) wait(bar, 0);
    out[128 * blockIdx.x + threadIdx.x] = s[threadIdx.x ^ 1];
}

// The first warp produces, the others consume, by way of a ring of three buffers.
extern "C" __global__ void ring(const int *in, int *out, int rounds, int releases) {
    __shared__ __align__(16) int s[3][96];
    __shared__ long long full[3], empty[3];
    if (threadIdx.x == 0)
        for (int i = 0; i < 3; i++) { init(shared_address(full + i), 1); init(shared_address(empty + i), 96); }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int k = 0; k < rounds; k++) {
            int stage = k % 3, turn = k / 3;
            wait(shared_address(empty + stage), (turn & 1) ^ 1);
            if (threadIdx.x == 0) {
                expect(shared_address(full + stage), 384);
                copy(shared_address(s[stage]), in + 96 * k, 384, shared_address(full + stage));
            }
        }
    } else {
        int t = threadIdx.x - 32, sum = 0;
        for (int k = 0; k < rounds; k++) {
            int stage = k % 3, turn = k / 3;
            wait(shared_address(full + stage), turn & 1);
            sum = 3 * sum + s[stage][95 - t];
            if (k < releases) arrive(shared_address(empty + stage));
        }
        out[t] = sum;
    }
}

// Out of shared memory, which is written again when the copy has been waited for.
extern "C" __global__ void back(int *out, int waits) {
    __shared__ __align__(16) int s[32];
    s[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        copy_back(out, shared_address(s), 128);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (waits) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    s[threadIdx.x ^ 1] = -1;
    __syncthreads();
    out[32 + threadIdx.x] = s[threadIdx.x];
}

// Copies of single threads, which a barrier is told of.
extern "C" __global__ void told(const int *in, int *out, int waits) {
    __shared__ __align__(16) int s[64];
    __shared__ long long b;
    unsigned bar = shared_address(&b);
    if (threadIdx.x == 0) init(bar, 64);
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(shared_address(s + threadIdx.x)), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(bar) : "memory");
    if (waits) wait(bar, 0);
    out[threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void told_more(const int *in, int *out) {
    __shared__ __align__(16) int s[64];
    __shared__ long long b;
    unsigned bar = shared_address(&b);
    if (threadIdx.x == 0) init(bar, 64);
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(shared_address(s + threadIdx.x)), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(bar) : "memory");
    arrive(bar);
    wait(bar, 0);
    out[threadIdx.x] = s[63 - threadIdx.x];
}
