// sm_100: tensor memory and the fifth generation of matrix multiply, packed floats.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
#define R4(x) "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])

extern "C" __global__ void tensor_memory(int *out, unsigned long long da, unsigned long long db, unsigned id, int n) {
    __shared__ unsigned address;
    __shared__ unsigned long long barrier;
    unsigned where = (unsigned)__cvta_generic_to_shared(&address), b = (unsigned)__cvta_generic_to_shared(&barrier);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(where) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    __syncthreads();
    unsigned d = address, t = threadIdx.x;
    int v[16];
    for (int k = 0; k < 16; k++) v[k] = out[t + k * 32];
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1,%2,%3,%4};" ::"r"(d), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
    asm volatile("tcgen05.st.sync.aligned.16x64b.x1.b32 [%0], {%1};" ::"r"(d), "r"(v[4]) : "memory");
    asm volatile("tcgen05.st.sync.aligned.16x256b.x1.b32 [%0], {%1,%2,%3,%4};" ::"r"(d), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]) : "memory");
    asm volatile("tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%0], 8, {%1,%2};" ::"r"(d), "r"(v[4]), "r"(v[5]) : "memory");
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    if (t == 0) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }" ::"r"(d), "r"(d + 64), "l"(db), "r"(id), "r"(n) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%5], [%6], p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "r"(d + 8), "r"(d + 16) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%0], %1, %2, %3, [%5], [%6], p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "r"(d + 8), "r"(d + 16) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%5], %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "r"(d + 8) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5,%6,%7,%8}, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), R4(v) : "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n) : "memory");
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(b) : "memory");
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(d), "l"(da) : "memory");
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(d), "l"(da) : "memory");
        asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(d) : "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;");
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]) : "r"(d));
    asm volatile("tcgen05.ld.sync.aligned.16x128b.x2.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v[8]), "=r"(v[9]), "=r"(v[10]), "=r"(v[11]) : "r"(d));
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v[12]), "=r"(v[13]), "=r"(v[14]), "=r"(v[15]) : "r"(d));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int k = 0; k < 16; k++) out[t + k * 32] = v[k];
    asm volatile("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%0,%1}, [%2];" : "=r"(v[8]), "=r"(v[9]) : "r"(d));
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%0,%1}, [%2];" : "=r"(v[10]), "=r"(v[11]) : "r"(d));
    asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%0}, [%1], 4;" : "=r"(v[12]) : "r"(d));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int k = 8; k < 13; k++) out[t + k * 32 + 512] = v[k];
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(d));
}

extern "C" __global__ __cluster_dims__(2, 1, 1) void two_blocks(unsigned d, unsigned long long da, unsigned long long db, unsigned id, int n, const int *in) {
    __shared__ unsigned long long barrier;
    unsigned b = (unsigned)__cvta_generic_to_shared(&barrier);
    int v[8];
    for (int k = 0; k < 8; k++) v[k] = in[k];
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, {%5,%6,%7,%8,%9,%10,%11,%12}, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]) : "memory");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f8f6f4 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n) : "memory");
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(b), "h"((short)n) : "memory");
    asm volatile("tcgen05.cp.cta_group::2.64x128b.warpx2::02_13 [%0], %1;" ::"r"(d), "l"(da) : "memory");
}

extern "C" __global__ void one_block(unsigned d, unsigned long long da, unsigned long long db, unsigned id, int n) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, [%7], %3, [%5], [%6], p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "r"(d + 8), "r"(d + 16), "r"(d + 32) : "memory");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p, %5; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "l"(da) : "memory");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%0], %1, %2, [%5], %3, p; }" ::"r"(d), "l"(da), "l"(db), "r"(id), "r"(n), "r"(d + 4) : "memory");
}

extern "C" __global__ void packed(const float2 *a, const float2 *b, float2 *c) {
    int t = threadIdx.x;
    float2 x = a[t], y = b[t];
    c[t] = __ffma2_rn(x, y, a[t + 1]);
    c[t + 32] = __fadd2_rn(x, y);
    c[t + 64] = __fmul2_rn(x, make_float2(y.x, y.x));
    c[t + 96] = __ffma2_rn(make_float2(x.y, x.y), y, make_float2(1.0f, 2.0f));
}
#endif
