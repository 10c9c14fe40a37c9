// sm_90 and later: asynchronous matrix multiply, bulk and tensor copies, mbarriers of transactions, clusters.
#if __CUDA_ARCH__ >= 900
struct alignas(64) TensorMap { char opaque[128]; };

extern "C" __global__ void transactions(const __grid_constant__ TensorMap map, const int4 *in, int4 *out, int n) {
    __shared__ alignas(128) int4 s[1024];
    __shared__ unsigned long long barrier;
    unsigned b = (unsigned)__cvta_generic_to_shared(&barrier), p = (unsigned)__cvta_generic_to_shared(s);
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("fence.proxy.async;");
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n));
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(p), "l"(in), "r"(n), "r"(b) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(p), "l"(&map), "r"(n), "r"(b) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(p), "l"(&map), "r"(n), "r"(n + 1), "r"(b) : "memory");
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(p), "l"(&map), "r"(n), "r"(n + 1), "r"(n + 2), "r"(b), "h"((short)n) : "memory");
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(p), "l"(&map), "r"(n), "r"(n + 1), "r"(n + 2), "r"(n + 3), "r"(b), "h"((short)n), "h"((short)(n + 1)) : "memory");
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %2}], [%6], {%7, %8, %7}, %9, %10;" ::"r"(p), "l"(&map), "r"(n), "r"(n + 1), "r"(n + 2), "r"(n + 3), "r"(b), "h"((short)n), "h"((short)(n + 1)), "h"((short)(n + 7)), "l"(0x14F0000000000000ull) : "memory");
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %2}], [%6], {%7, %8, %7};" ::"r"(p), "l"(&map), "r"(n), "r"(n + 1), "r"(n + 2), "r"(n + 3), "r"(b), "h"((short)n), "h"((short)(n + 1)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1], %2, [%3], %4, %5;" ::"r"(p), "l"(in), "r"(n), "r"(b), "h"((short)n), "l"(0x14F0000000000000ull) : "memory");
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(p), "l"(&map), "r"(n), "r"(n + 1), "r"(n + 2), "r"(n + 3), "r"(n + 4), "r"(b), "l"(0x14F0000000000000ull) : "memory");
    }
    int done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(b), "r"(n & 1));
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b));
    done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(b), "l"(state));
    out[t] = s[t ^ 1];
    asm volatile("fence.proxy.async.shared::cta;");
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(p), "r"(n) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(n), "r"(n + 1), "r"(p) : "memory");
        asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %1, %2, %1}], [%3];" ::"l"(&map), "r"(n), "r"(n + 1), "r"(p) : "memory");
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(n), "r"(n + 1), "r"(p) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(out), "r"(p), "r"(n) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in), "r"(n));
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group.L2::cache_hint [%0, {%1, %2, %1}], [%3], %4;" ::"l"(&map), "r"(n), "r"(n + 1), "r"(p), "l"(0x14F0000000000000ull) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [%0, {%1, %2, %1}], {%3};" ::"l"(&map), "r"(n), "r"(n + 1), "h"((short)n));
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(n), "r"(n + 1));
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(p + 4096), "r"(p), "r"(n), "r"(b) : "memory");
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b));
    }
}

extern "C" __global__ __cluster_dims__(2, 1, 1) void clusters(int *out, int n) {
    __shared__ int s[64];
    __shared__ unsigned long long barrier;
    unsigned p = (unsigned)__cvta_generic_to_shared(s), b = (unsigned)__cvta_generic_to_shared(&barrier), q;
    s[threadIdx.x] = n;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(b));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(q) : "r"(p), "r"(1));
    int v;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(q) : "memory");
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(n) : "r"(q + 4), "r"(v) : "memory");
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(q + 8), "r"(n) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(q + 12), "r"(n), "r"(b) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %3}, [%2];" ::"r"(q + 16), "r"(n), "r"(b), "r"(v) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %3, %1, %3}, [%2];" ::"r"(q + 32), "r"(n), "r"(b), "r"(v) : "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(q) : "r"(b), "r"(n));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(q) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(q), "r"(n) : "memory");
    asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = v + n;
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define A8 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define I8 "+r"(i[0]), "+r"(i[1]), "+r"(i[2]), "+r"(i[3]), "+r"(i[4]), "+r"(i[5]), "+r"(i[6]), "+r"(i[7])
#define D8 "{%0,%1,%2,%3,%4,%5,%6,%7}"
extern "C" __global__ void warpgroup(const int *in, float *out, unsigned long long da, unsigned long long db) {
    float d[8];
    int i[8], a[4];
    int t = threadIdx.x;
    for (int k = 0; k < 8; k++) { d[k] = out[t + k * 128]; i[k] = in[t + k * 128]; }
    for (int k = 0; k < 4; k++) a[k] = in[t * 4 + k];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " D8 ", %8, %9, 1, 1, 1, 0, 1;" : A8 : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " D8 ", {%8,%9,%10,%11}, %12, 1, 1, 1, 1;" : A8 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 " D8 ", %8, %9, 1, 1, 1;" : A8 : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2 " D8 ", %8, %9, 1, 1, 1;" : A8 : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.f16.e4m3.e5m2 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1;" : "+r"(i[0]), "+r"(i[1]), "+r"(i[2]), "+r"(i[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 1;" : "+r"(i[0]), "+r"(i[1]), "+r"(i[2]), "+r"(i[3]) : "l"(da), "l"(db));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int k = 0; k < 4; k++) out[t + k] += i[k];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.u8 " D8 ", %8, %9, 1;" : I8 : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc " D8 ", %8, %9, 1;" : I8 : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16 " D8 ", %8, %9, %10, 0, 1, 1, 1, 0, 1;" : A8 : "l"(da), "l"(db), "r"(a[0]));
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.s8.s8 " D8 ", {%8,%9,%10,%11}, %12, %13, 0, 1;" : I8 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db), "r"(a[1]));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int k = 0; k < 8; k++) out[t + k * 128] = d[k] + i[k];
}

extern "C" __global__ void __maxnreg__(168) register_share(int *out) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = 3;
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}
#endif
