// Loads and stores of every width in every space.

typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef long long s64;

template <class T> __device__ void through_shared(const T *in, T *out, char *s) {
    T *mine = (T *)s;
    mine[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = mine[threadIdx.x ^ 1];
    __syncthreads();
}

template <class T> __device__ T from_local(const T *in, int k) {
    T a[8];
    for (int j = 0; j < 8; ++j) a[j] = in[(threadIdx.x + j) & 31];
    for (int j = 0; j < 8; ++j) { int t = (k + j) & 7; T x = a[t]; a[t] = a[j]; a[j] = x; }
    return a[k & 7];
}

#define KERNELS(name, T)                                                                              \
    extern "C" __global__ void global_##name(const T *in, T *out) { out[threadIdx.x] = in[threadIdx.x ^ 1]; } \
    extern "C" __global__ void shared_##name(const T *in, T *out) {                                   \
        __shared__ __align__(16) char s[32 * sizeof(T)];                                              \
        through_shared(in, out, s);                                                                   \
    }                                                                                                 \
    extern "C" __global__ void local_##name(const T *in, T *out, int k) {                             \
        out[threadIdx.x] = from_local(in, k + threadIdx.x);                                           \
    }

KERNELS(s8, s8)
KERNELS(u8, u8)
KERNELS(s16, s16)
KERNELS(u16, u16)
KERNELS(u32, unsigned)
KERNELS(u64, unsigned long long)

#define WIDE(name, T)                                                                                 \
    extern "C" __global__ void global_##name(const T *in, T *out) { out[threadIdx.x] = in[threadIdx.x ^ 1]; } \
    extern "C" __global__ void shared_##name(const T *in, T *out) {                                   \
        __shared__ T s[32];                                                                           \
        s[threadIdx.x] = in[threadIdx.x];                                                             \
        __syncthreads();                                                                              \
        out[threadIdx.x] = s[threadIdx.x ^ 1];                                                        \
    }

WIDE(v128, int4)
WIDE(v64, int2)

// Widening shows whether a narrow load extends the sign.
extern "C" __global__ void widened(const s8 *a, const u8 *b, const s16 *c, const u16 *d, s64 *out) {
    int i = threadIdx.x;
    __shared__ s8 sa[32]; __shared__ u8 sb[32]; __shared__ s16 sc[32]; __shared__ u16 sd[32];
    out[i] = a[i]; out[32 + i] = b[i]; out[64 + i] = c[i]; out[96 + i] = d[i];
    sa[i] = a[i]; sb[i] = b[i]; sc[i] = c[i]; sd[i] = d[i];
    __syncthreads();
    out[128 + i] = sa[i ^ 1]; out[160 + i] = sb[i ^ 1]; out[192 + i] = sc[i ^ 1]; out[224 + i] = sd[i ^ 1];
}

__constant__ s8 c_s8[32] = {-128, 127, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                            17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, -28};
__constant__ u8 c_u8[32] = {255, 128, 3};
__constant__ s16 c_s16[32] = {-32768, 32767, -1, 5};
__constant__ u16 c_u16[32] = {65535, 32768, 7};
__constant__ int c_s32[32] = {-5, 4, 3, 2, 1};
__constant__ double c_f64[32] = {1.5, -2.5, 1e300};
__constant__ int4 c_v128[8] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};

extern "C" __global__ void constants(const int *index, double *out) {
    int i = threadIdx.x, k = index[i];
    out[i] = c_s8[k]; out[32 + i] = c_u8[k]; out[64 + i] = c_s16[k]; out[96 + i] = c_u16[k];
    out[128 + i] = c_s32[k]; out[160 + i] = c_f64[k];
    int4 v = c_v128[k & 7];
    out[192 + i] = v.x + 100. * v.y + 10000. * v.z + 1000000. * v.w;
    out[224 + i] = c_s8[0] + c_u8[1] + c_s16[0] + c_u16[1] + c_f64[1];
}

struct Record { s8 a; double b; s16 c; int d[3]; };
extern "C" __global__ void by_value(Record r, u8 b, s16 h, float f, s64 l, double *out) {
    out[threadIdx.x] = r.a + r.b + r.c + r.d[threadIdx.x % 3] + b + h + f + l;
}

extern "C" __global__ void load_word(const char *p, int *out, s64 offset) {
    if (threadIdx.x == 3) out[blockIdx.x] = *(const int *)(p + offset);
}
extern "C" __global__ void load_wide(const char *p, int *out, s64 offset) {
    if (threadIdx.x == 3) { int4 v = *(const int4 *)(p + offset); out[blockIdx.x] = v.x + 2 * v.y + 3 * v.z + 4 * v.w; }
}
extern "C" __global__ void store_word(char *p, s64 offset, int value) {
    if (threadIdx.x == 5) *(int *)(p + offset) = value;
}
extern "C" __global__ void copy(const int *from, int *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void scaled_sum(int *a, const int *b, int n) {
    for (int i = threadIdx.x; i < n; i += 32) a[i] = 2 * a[i] + b[i];
}
// Every lane chooses its buffer.
extern "C" __global__ void choose(const int *a, const int *b, int *c, int *d) {
    int i = threadIdx.x;
    const int *from = i % 3 ? a : b;
    int *to = i % 2 ? c : d;
    to[i] = from[i];
}

extern "C" __global__ void static_and_dynamic(const int *in, int *out, int n) {
    __shared__ int fixed[32];
    extern __shared__ int rest[];
    int i = threadIdx.x;
    fixed[i] = in[i];
    for (int k = i; k < n; k += 32) rest[k] = 1000 * k;
    __syncthreads();
    for (int k = i; k < n; k += 32) out[k] = rest[n - 1 - k] + fixed[31 - i];
}
extern "C" __global__ void shared_at(int *out, int at) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x + at];
}
extern "C" __global__ void never_written(int *out, int from) {
    __shared__ int s[32];
    if (threadIdx.x < from) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void half_written(const u16 *in, unsigned *out, int both) {
    __shared__ __align__(4) u16 s[64];
    s[2 * threadIdx.x] = in[threadIdx.x];
    if (both) s[2 * threadIdx.x + 1] = in[32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = ((unsigned *)s)[threadIdx.x];
}

extern "C" __global__ void by_block(const int *x, int *out, int writer) {
    int twice = 2 * x[blockIdx.x];
    if (threadIdx.x == writer) out[blockIdx.x] = twice;
}
