// From sm_90 on: clusters, mbarriers, bulk copies, the memory of another block, dependent grids.
#include "operations.cuh"

#if __CUDA_ARCH__ >= 900
struct Mbarriers {
    OPERATIONS
    OPERATION(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(qd) : "r"(ra) : "memory"))
    OPERATION(asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(rb), "r"(ra) : "memory"))
    OPERATION(unsigned done; asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                                          : "=r"(done) : "r"(ra), "r"(rb) : "memory"); pd = done)
    OPERATION(unsigned done; asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                                          : "=r"(done) : "r"(ra), "l"(qa) : "memory"); pd = done)
    OPERATION(asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(ra) : "memory"))
    OPERATION(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"))
    OPERATION(asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ra) : "memory"))
    OPERATIONS_END
};
struct Bulk {
    OPERATIONS
    OPERATION(asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                           ::"r"(ra), "l"(qa), "r"(rb), "r"(rc) : "memory"))
    OPERATION(asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(qa), "r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(qa), "r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(qa), "r"(ra) : "memory"))
    OPERATION(asm volatile("cp.async.bulk.commit_group;" ::: "memory"))
    OPERATION(asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"))
    OPERATION(asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"))
    OPERATION(asm volatile("fence.proxy.async.shared::cta;" ::: "memory"))
    OPERATIONS_END
};
struct Remote {
    OPERATIONS
    OPERATION(asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(rd) : "r"(ra) : "memory"))
    OPERATION(asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(rd) : "r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(ra), "r"(rb), "r"(rc) : "memory"))
    OPERATION(asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(ra) : "memory"))
    OPERATION(asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"))
    OPERATION(asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory"))
    OPERATION(asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rd)))
    OPERATION(asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(rd)))
    OPERATION(asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
struct Dependent {
    OPERATIONS
    OPERATION(asm volatile("griddepcontrol.launch_dependents;" ::: "memory"))
    OPERATION(asm volatile("griddepcontrol.wait;" ::: "memory"))
    OPERATIONS_END
};

PROGRAM(mbarriers_few, together, 861, 120, Few, Mbarriers, Glue, Wide)
PROGRAM(mbarriers_some, together, 862, 120, Some, Mbarriers, Mbarriers, Logic, Glue)
PROGRAM(bulk, together, 863, 120, Few, Bulk, Mbarriers, Integer, Wide)
PROGRAM(remote_few, together, 864, 120, Few, Remote, Glue)
PROGRAM(remote_some, together, 865, 120, Some, Remote, Mbarriers, Dependent, Glue)

// A producer and consumers, with a phase that turns over.
extern "C" __global__ __cluster_dims__(2, 1, 1) void stages(const unsigned *in, unsigned *out, int n) {
    __shared__ alignas(128) unsigned tile[4][1024];
    __shared__ alignas(8) unsigned long long full[4], empty[4];
    unsigned sum = 0;
    if (threadIdx.x == 0)
        for (int i = 0; i < 4; i++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(&full[i])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"((unsigned)__cvta_generic_to_shared(&empty[i])));
        }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        int stage = i & 3, phase = i >> 2 & 1, done = 0;
        unsigned f = (unsigned)__cvta_generic_to_shared(&full[stage]), e = (unsigned)__cvta_generic_to_shared(&empty[stage]);
        if (threadIdx.x < 32) {
            while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(e), "r"(phase ^ 1) : "memory");
            if (threadIdx.x == 0) {
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(f) : "memory");
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];" ::"r"((unsigned)__cvta_generic_to_shared(tile[stage])), "l"(in + 1024 * i), "r"(f) : "memory");
            }
        } else {
            while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(f), "r"(phase) : "memory");
            for (int k = 0; k < 8; k++) sum += tile[stage][threadIdx.x + 64 * k];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(e) : "memory");
        }
    }
    out[threadIdx.x] = sum;
}
#endif
