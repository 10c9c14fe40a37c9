// Memory in every space and width, copies in the background, mbarriers, matrix loads, and control flow.
#include <cuda_pipeline.h>

struct Big { int v[40]; };

extern "C" __global__ void widths(const char *c, const short *s, const int2 *i2, const int4 *i4, int *out, int4 *out4, int2 *out2, short *outs, char *outc) {
    __shared__ int4 sh4[64];
    __shared__ int2 sh2[64];
    __shared__ short shs[64];
    __shared__ char shc[64];
    int t = threadIdx.x;
    sh4[t] = i4[t]; sh2[t] = i2[t]; shs[t] = s[t]; shc[t] = c[t];
    __syncthreads();
    out4[t] = sh4[t ^ 1]; out2[t] = sh2[t ^ 1]; outs[t] = shs[t ^ 1]; outc[t] = shc[t ^ 1];
    out[t] = __ldg(out + t + 32) + __ldcg(out + t + 64) + *(volatile int *)(out + t + 96);
    __threadfence(); __threadfence_block(); __threadfence_system();
    __stcs(out + t + 128, 3);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(out + t));
    int a, b, d, e;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(d), "=r"(e) : "l"(i4 + 64) : "memory");
    asm volatile("st.global.release.gpu.u32 [%0], %1;" ::"l"(out + 500), "r"(a + b + d + e) : "memory");
    asm volatile("ld.global.acquire.gpu.u32 %0, [%1];" : "=r"(a) : "l"(out + 501) : "memory");
    out[t + 160] = a;
}

extern "C" __global__ void local_and_generic(const Big big, const int *in, int **where, int4 *out, int n) {
    int array[32];
    int4 quads[8];
    for (int i = 0; i < 32; i++) array[i] = in[i * n];
    for (int i = 0; i < 8; i++) quads[i] = ((const int4 *)in)[i * n];
    int t = threadIdx.x;
    int *p = n & 1 ? array : where[t];
    p[t & 7] = n + big.v[t & 31];
    out[t] = quads[array[t & 31] & 7];
    out[t].x += p[(t + 1) & 7] + __isGlobal(p) + __isShared(p) + __isConstant(p) + __isLocal(p);
    const int4 *q = n & 2 ? quads : (const int4 *)where[t + 1];
    out[t + 32] = q[t & 7];
    *(int2 *)(where[t + 2]) = make_int2(n, t);
}

__constant__ int table[256];
__constant__ int2 table2[64];
extern "C" __global__ void constants(int *out, int2 *out2, int n) {
    int t = threadIdx.x;
    out[t] = table[t] + table[n] + table[3];
    out2[t] = table2[t & 63];
}

__device__ __noinline__ int recurse(int n, int *p) { return n < 2 ? n + p[0] : recurse(n - 1, p) + recurse(n - 2, p + 1); }
__device__ int add(int a, int b) { return a + b; }
__device__ int sub(int a, int b) { return a - b; }
__device__ int (*functions[2])(int, int) = {add, sub};

extern "C" __global__ void control_flow(int *p, int n) {
    int t = threadIdx.x, v = p[t];
    switch (v) {
        case 0: v += 7; break;
        case 1: v *= 3; p[t + 1] = v; break;
        case 2: v = v ^ p[t + 2]; break;
        case 3: v = p[v * 8]; break;
        case 4: v = p[v * 8 + 1] * 5; break;
        case 5: v -= p[9]; break;
        case 6: p[v] = 3; break;
        case 7: v = __float_as_int(sqrtf(v)); break;
        default: v = 2;
    }
    while (v & 1) {
        if (p[v] == t) break;
        for (int i = 0; i < v; i++) { if (p[i] > n) goto out; v += p[i]; }
        v = functions[v & 1](v, n);
    }
out:
    p[t] = v + recurse(n, p);
    if (v == 77) __trap();
    if (v == 78) asm volatile("exit;");
    if (v == 79) __nanosleep(v);
    p[t + 64] = clock() + (int)clock64();
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void background_copy(const int4 *in, const int *in1, int4 *out, int n) {
    __shared__ int4 s[2][64];
    __shared__ int s1[64];
    __shared__ unsigned long long barrier;
    int t = threadIdx.x;
    unsigned b = (unsigned)__cvta_generic_to_shared(&barrier);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(b), "r"(32));
    __syncthreads();
    for (int i = 0; i < n; i++) {
        __pipeline_memcpy_async(&s[i & 1][t], in + i * 64 + t, 16, i & 3);
        __pipeline_memcpy_async(&s1[t], in1 + i * 64 + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 64 + t] = s[i & 1][t ^ 1];
        out[i].x += s1[t];
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(b));
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b));
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(b));
    int done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(b), "l"(state));
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(b));
    out[t].y = (int)state;
}
#endif

extern "C" __global__ void matrix_load(const int4 *in, int *out) {
    __shared__ int4 s[128];
    int t = threadIdx.x, a, b, c, d;
    s[t] = in[t];
    __syncthreads();
    unsigned p = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(p));
    out[t] = a;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(p));
    out[t + 32] = a + b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(p));
    out[t + 64] = a + b * c + d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(b) : "r"(a));
    out[t + 96] = b;
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(p + 64), "r"(a), "r"(b) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(p + 128), "r"(a) : "memory");
    out[t + 128] = s[t ^ 1].x;
#endif
#if __CUDA_ARCH__ >= 1000
    asm volatile("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(p));
    out[t + 160] = a + b;
    asm volatile("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(p));
    out[t + 192] = a + b + c + d;
    asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(p));
    out[t + 224] = a + b + c + d;
    asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(p));
    out[t + 288] = a + b;
    asm volatile("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%0], {%1, %2, %3, %4};" ::"r"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    out[t + 256] = s[t ^ 3].x;
#endif
}

#if __CUDA_ARCH__ >= 1000
extern "C" __global__ void eight_registers(const int *in, int *out) {
    int v[8];
    asm volatile("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]) : "l"(in + 8 * threadIdx.x) : "memory");
    asm volatile("st.global.v8.b32 [%8], {%0,%1,%2,%3,%4,%5,%6,%7};" ::"r"(v[0]), "r"(v[2]), "r"(v[1]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[7]), "r"(v[6]), "l"(out + 8 * threadIdx.x) : "memory");
}
#endif
