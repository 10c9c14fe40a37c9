// Kernels in which nearly every instruction matters for the result.

#define ADDRESS(p) ((unsigned)__cvta_generic_to_shared(p))

extern "C" __global__ void hashes(const unsigned *in, unsigned *out, int n) {
    unsigned i = threadIdx.x, h = in[i] | 1;
#pragma unroll 1
    for (int k = 0; k < n; ++k) {
        h ^= in[(i + k) & 63] * 0x9e3779b9u;
        h = __funnelshift_l(h, h, 7) + (h >> 3);
        if (h & 4) h = h * 5 + 1;
    }
    out[i] = h;
}

extern "C" __global__ void sums(const float *in, float *out) {
    __shared__ float s[64];
    int i = threadIdx.x;
    float x = in[i], y = in[64 + i];
    s[i] = x * y + 1.f;
    for (int d = 32; d; d >>= 1) {
        __syncthreads();
        if (i < d) s[i] += s[i + d] * 0.5f;
    }
    __syncthreads();
    out[i] = s[0] + x;
}

extern "C" __global__ void staged(const int *in, int *out, int n) {
    __shared__ int s[2][64];
    int i = threadIdx.x, sum = 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" :: "r"(ADDRESS(&s[0][i])), "l"(in + i) : "memory");
#pragma unroll 1
    for (int k = 0; k < n; ++k) {
        if (k + 1 < n)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(ADDRESS(&s[(k + 1) & 1][i])), "l"(in + 64 * (k + 1) + i) : "memory");
        asm volatile("cp.async.commit_group; cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        sum = 3 * sum + s[k & 1][63 - i];
        __syncthreads();
    }
    out[i] = sum;
}

extern "C" __global__ void tiles(const uint4 *in, float *out) {
    __shared__ uint4 s[64];
    int i = threadIdx.x & 31;
    s[i] = in[i];
    s[32 + i] = in[32 + i];
    __syncwarp();
    unsigned a[4], b[2];
    float c[4] = {0, 1, 2, 3};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(ADDRESS(&s[i])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1]) : "r"(ADDRESS(&s[32 + (i & 15)])));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int k = 0; k < 4; ++k) out[4 * i + k] = c[k];
}
