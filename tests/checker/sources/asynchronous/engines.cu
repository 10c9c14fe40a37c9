// Copies by an engine beside the warp, as one elected thread orders them, with accesses and fences around.

__device__ inline unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline bool elected() {
    unsigned found;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(found));
    return found;
}
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
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define COMMIT asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.bulk.wait_group.read " #n ";" ::: "memory")

// Two tiles in, each with a barrier of its own; what is made of them goes out.
extern "C" __global__ void in_and_out(const int *in, int *out) {
    __shared__ __align__(128) int s[2][128], t[256];
    __shared__ long long full[2];
    unsigned first = shared_address(full), second = shared_address(full + 1);
    init(first, 1);
    init(second, 33);
    __syncthreads();
    if (elected()) {
        expect(first, 512);
        copy(shared_address(s[0]), in + 256 * blockIdx.x, 512, first);
        expect(second, 512);
        copy(shared_address(s[1]), in + 256 * blockIdx.x + 128, 256, second);
        copy(shared_address(s[1] + 64), in + 256 * blockIdx.x + 192, 256, second);
    }
    wait(first, 0);
    int x = s[0][threadIdx.x], y = s[0][threadIdx.x ^ 1];
    t[threadIdx.x] = 2 * y;
    arrive(second);
    s[0][threadIdx.x] = x + y;
    wait(second, 0);
    int z = s[1][threadIdx.x];
    arrive(first);
    t[128 + threadIdx.x] = z;
    FENCE;
    __syncthreads();
    if (elected()) {
        copy_back(out + 256 * blockIdx.x, shared_address(t), 512);
        copy_back(out + 256 * blockIdx.x + 128, shared_address(t + 128), 512);
        COMMIT;
        WAIT(0);
        t[0] = 0;
    }
}

// Fences right beside plain and atomic accesses.
extern "C" __global__ void fenced(int *data, int *flag, int *out) {
    __shared__ int s[256];
    int x = data[threadIdx.x];
    FENCE;
    int y = data[threadIdx.x + 256];
    s[threadIdx.x] = x;
    __threadfence_block();
    s[threadIdx.x ^ 1] = y;
    __syncthreads();
    FENCE;
    FENCE;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 2];
    __threadfence();
    atomicAdd(flag, 1);
}
