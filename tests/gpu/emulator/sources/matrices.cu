// Fragments of 8 by 8 matrices between shared memory and registers.

#define ADDRESS(p) ((unsigned)__cvta_generic_to_shared(p))

template <int N, bool T> __device__ void load(unsigned at, unsigned *r) {
    if constexpr (N == 1 && !T) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
    if constexpr (N == 1 && T) asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
    if constexpr (N == 2 && !T) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
    if constexpr (N == 2 && T) asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
    if constexpr (N == 4 && !T) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    if constexpr (N == 4 && T) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

// Row r of matrix m lies at row rows[8 m + r] of the tile.
template <int N, bool T> __device__ void read(const uint4 *in, const int *rows, unsigned *out) {
    __shared__ uint4 s[32];
    int i = threadIdx.x;
    s[i] = in[i];
    __syncthreads();
    unsigned r[N];
    // Only lanes below 8 N name a row; what the others pass is not looked at.
    load<N, T>(i < 8 * N ? ADDRESS(&s[rows[i]]) : 0xffffff01, r);
    for (int k = 0; k < N; ++k) out[32 * k + i] = r[k];
}

extern "C" __global__ void load1(const uint4 *in, const int *rows, unsigned *out) { read<1, false>(in, rows, out); }
extern "C" __global__ void load2(const uint4 *in, const int *rows, unsigned *out) { read<2, false>(in, rows, out); }
extern "C" __global__ void load4(const uint4 *in, const int *rows, unsigned *out) { read<4, false>(in, rows, out); }
extern "C" __global__ void load1t(const uint4 *in, const int *rows, unsigned *out) { read<1, true>(in, rows, out); }
extern "C" __global__ void load2t(const uint4 *in, const int *rows, unsigned *out) { read<2, true>(in, rows, out); }
extern "C" __global__ void load4t(const uint4 *in, const int *rows, unsigned *out) { read<4, true>(in, rows, out); }

extern "C" __global__ void misaligned(const uint4 *in, unsigned *out) {
    __shared__ uint4 s[33];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    unsigned r[1];
    load<1, false>(ADDRESS(&s[threadIdx.x]) + 8, r);
    out[threadIdx.x] = r[0];
}

extern "C" __global__ void never_written(unsigned *out) {
    __shared__ uint4 s[32];
    if (threadIdx.x != 5) s[threadIdx.x] = make_uint4(1, 2, 3, 4);
    __syncthreads();
    unsigned r[1];
    load<1, false>(ADDRESS(&s[threadIdx.x & 7]), r);
    out[threadIdx.x] = r[0];
}

#if __CUDA_ARCH__ >= 900
#define STORE(name, form, ...)                                                                        \
    extern "C" __global__ void name(const unsigned *in, const int *rows, uint4 *out, int n) {         \
        __shared__ uint4 s[32];                                                                       \
        int i = threadIdx.x;                                                                          \
        s[i] = make_uint4(0, 0, 0, 0);                                                                \
        __syncthreads();                                                                              \
        unsigned at = i < 8 * n ? ADDRESS(&s[rows[i]]) : 0, r[4];                                     \
        for (int k = 0; k < 4; ++k) r[k] = in[32 * k + i];                                            \
        asm volatile("stmatrix.sync.aligned.m8n8." form :: "r"(at), __VA_ARGS__ : "memory");          \
        __syncthreads();                                                                              \
        out[i] = s[i];                                                                                \
    }
STORE(store1, "x1.shared.b16 [%0], {%1};", "r"(r[0]))
STORE(store2, "x2.shared.b16 [%0], {%1,%2};", "r"(r[0]), "r"(r[1]))
STORE(store4, "x4.shared.b16 [%0], {%1,%2,%3,%4};", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))
STORE(store1t, "x1.trans.shared.b16 [%0], {%1};", "r"(r[0]))
STORE(store2t, "x2.trans.shared.b16 [%0], {%1,%2};", "r"(r[0]), "r"(r[1]))
STORE(store4t, "x4.trans.shared.b16 [%0], {%1,%2,%3,%4};", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))
#endif
