// Tensor memory, products beside the warp and barriers between them, in straight lines: what may cross what.

__device__ inline unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void product(unsigned d, unsigned long long a, unsigned long long b, unsigned kind) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" :: "r"(d), "l"(a), "l"(b), "r"(kind) : "memory");
}
__device__ inline void from_cells(unsigned d, unsigned a, unsigned long long b, unsigned kind) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}" :: "r"(d), "r"(a), "l"(b), "r"(kind) : "memory");
}
__device__ inline void copy(unsigned to, unsigned long long from) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" :: "r"(to), "l"(from) : "memory");
}
__device__ inline void commit(unsigned bar) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(bar) : "memory");
}
__device__ inline bool ended(unsigned bar, unsigned parity) {
    unsigned found;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                 : "=r"(found) : "r"(bar), "r"(parity) : "memory");
    return found;
}
__device__ inline void arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(bar) : "memory");
}
__device__ inline void load(unsigned (&r)[4], unsigned from) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ inline void store(unsigned to, const unsigned (&r)[4]) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%4], {%0, %1, %2, %3};"
                 :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(to) : "memory");
}
#define LOADED asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define STORED asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")

__device__ inline bool elected() {
    unsigned found;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(found));
    return found;
}

// Warps move cells to registers and back, around thread barriers and arrivals.
extern "C" __global__ void cells(unsigned *out, const unsigned *in, unsigned at) {
    __shared__ long long bars[4];
    __shared__ unsigned s[512];
    unsigned bar = shared_address(bars), t = threadIdx.x, a[4], b[4], c[4], d[4];
    for (int i = 0; i < 4; i++) a[i] = in[t + 32 * i];
    store(at, a);
    for (int i = 0; i < 4; i++) b[i] = a[i] * 3 + t;
    store(at + 16, b);
    STORED;
    __syncthreads();
    load(c, at + 32);
    load(d, at + 48);
    LOADED;
    s[t] = c[0] ^ d[1];
    for (int i = 0; i < 4; i++) c[i] += d[i] * a[i];
    arrive(bar);
    load(a, at + 64);
    LOADED;
    for (int i = 0; i < 4; i++) a[i] ^= c[i] + b[i];
    __syncthreads();
    store(at + 80, a);
    STORED;
    arrive(bar + 8);
    bool is_over = ended(bar + 16, t & 1);
    load(b, at + 96);
    load(c, at + 112);
    LOADED;
    store(at + 112, b);
    out[t] = s[t ^ 1] + b[0] + is_over;
    for (int i = 1; i < 4; i++) out[t + 128 * i] = b[i] * c[i] + d[i];
    STORED;
    __syncthreads();
    load(a, at);
    LOADED;
    __syncthreads();
    load(d, at + 4);
    LOADED;
    for (int i = 0; i < 4; i++) out[t + 512 + 128 * i] = a[i] * a[i] + d[i];
}

// One thread orders products and copies; operands and addresses are worked out in between.
extern "C" __global__ void orders(unsigned *out, unsigned at, unsigned long long a, unsigned long long b, unsigned kind) {
    __shared__ long long bars[4];
    __shared__ unsigned s[512];
    unsigned bar = shared_address(bars), t = threadIdx.x;
    s[t] = t * kind;
    if (elected()) {
        product(at, a, b, kind);
        product(at + 64, a + 2, b + 2, kind);
        commit(bar);
        s[256] = kind + at;
        copy(at + 128, a + 64);
        copy(at + 132, b + 64);
        product(at, a + 4, b + 4, kind);
        s[257] = kind ^ at;
        from_cells(at + 64, at + 192, b + 6, kind);
        commit(bar + 8);
        commit(bar + 16);
        bool is_over = ended(bar, kind & 1);
        product(at + 32, a + 8, b + 8, kind);
        arrive(bar + 24);
        product(at + 96, a + 10, b + 10, kind);
        out[0] = s[258] + is_over;
        copy(at + 136, a + 128);
        commit(bar + 8);
        arrive(bar + 24);
        commit(bar + 16);
        out[1] = s[259];
    }
    __syncthreads();
    out[t + 32] = s[t ^ 1];
}

// Without the waits that a program needs: what stands next to what is all that counts here.
extern "C" __global__ void bare(unsigned *out, const unsigned *in, unsigned at) {
    __shared__ long long bars[4];
    unsigned bar = shared_address(bars), t = threadIdx.x, a[4], b[4], c[4], d[4];
    for (int i = 0; i < 4; i++) a[i] = in[t + 32 * i];
    store(at, a);
    arrive(bar);
    for (int i = 0; i < 4; i++) b[i] = a[i] * 5 + t;
    store(at + 8, b);
    __syncthreads();
    STORED;
    store(at + 16, b);
    STORED;
    load(c, at + 24);
    STORED;
    for (int i = 0; i < 4; i++) b[i] += a[i] ^ t;
    load(a, at + 32);
    store(at + 40, b);
    load(d, at + 64);
    __syncthreads();
    load(b, at + 48);
    out[t + 128] = (b[0] ^ b[1]) + (b[2] ^ b[3]);
    arrive(bar + 8);
    load(b, at + 56);
    unsigned sum = __shfl_xor_sync(~0u, b[0], 1);
    __syncthreads();
    sum ^= b[1] * b[2] + b[3];
    out[t + 256] = sum;
    for (int i = 0; i < 4; i++) out[t + 512 + 128 * i] = a[i] * c[i] + d[i];
}
