// Memory order: fences, acquiring loads, releasing stores and atomics of every scope.
#include "operations.cuh"

#define LOAD(text) asm volatile("ld." text " %0, [%1];" : "=r"(rd) : "l"(qa) : "memory")
#define STORE(text) asm volatile("st." text " [%0], %1;" ::"l"(qa), "r"(ra) : "memory")
#define ATOMIC(text) asm volatile("atom." text " %0, [%1], %2;" : "=r"(rd) : "l"(qa), "r"(ra) : "memory")
#define ATOMIC2(text) asm volatile("atom." text " %0, [%1], %2;" : "=l"(qd) : "l"(qa), "l"(qb) : "memory")
#define REDUCE(text) asm volatile("red." text " [%0], %1;" ::"l"(qa), "r"(ra) : "memory")
#define STATEMENT(text) asm volatile(text ";" ::: "memory")

struct Fences {
    OPERATIONS
    OPERATION(STATEMENT("fence.sc.cta"))
    OPERATION(STATEMENT("fence.sc.gpu"))
    OPERATION(STATEMENT("fence.sc.sys"))
    OPERATION(STATEMENT("fence.acq_rel.cta"))
    OPERATION(STATEMENT("fence.acq_rel.gpu"))
    OPERATION(STATEMENT("fence.acq_rel.sys"))
    OPERATION(STATEMENT("membar.cta"))
    OPERATION(STATEMENT("membar.gl"))
    OPERATIONS_END
};
struct AliasFence {
    OPERATIONS
    OPERATION(STATEMENT("fence.proxy.alias"))
    OPERATIONS_END
};
struct Loads {
    OPERATIONS
    OPERATION(LOAD("acquire.cta.global.u32"))
    OPERATION(LOAD("acquire.gpu.global.u32"))
    OPERATION(LOAD("acquire.sys.global.u32"))
    OPERATION(LOAD("relaxed.cta.global.u32"))
    OPERATION(LOAD("relaxed.gpu.global.u32"))
    OPERATION(LOAD("relaxed.sys.u32"))
    OPERATION(LOAD("acquire.gpu.u32"))
    OPERATION(LOAD("volatile.global.u32"))
    OPERATION(asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(qd) : "l"(qa) : "memory"))
    OPERATION(asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(rd) : "r"(ra) : "memory"))
    OPERATION(asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(rd) : "r"(ra) : "memory"))
    OPERATIONS_END
};
struct Stores {
    OPERATIONS
    OPERATION(STORE("release.cta.global.u32"))
    OPERATION(STORE("release.gpu.global.u32"))
    OPERATION(STORE("release.sys.global.u32"))
    OPERATION(STORE("relaxed.gpu.global.u32"))
    OPERATION(STORE("relaxed.sys.u32"))
    OPERATION(STORE("release.gpu.u32"))
    OPERATION(STORE("volatile.global.u32"))
    OPERATION(asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(qb), "l"(qa) : "memory"))
    OPERATION(asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATIONS_END
};
struct Atomics {
    OPERATIONS
    OPERATION(ATOMIC("relaxed.cta.global.add.u32"))
    OPERATION(ATOMIC("acquire.gpu.global.add.u32"))
    OPERATION(ATOMIC("release.gpu.global.exch.b32"))
    OPERATION(ATOMIC("acq_rel.gpu.global.add.u32"))
    OPERATION(ATOMIC("acq_rel.sys.global.add.u32"))
    OPERATION(ATOMIC("acq_rel.cta.global.max.s32"))
    OPERATION(ATOMIC("relaxed.gpu.global.min.u32"))
    OPERATION(ATOMIC("relaxed.gpu.global.and.b32"))
    OPERATION(ATOMIC("relaxed.sys.global.or.b32"))
    OPERATION(ATOMIC("relaxed.gpu.global.xor.b32"))
    OPERATION(ATOMIC("relaxed.gpu.global.inc.u32"))
    OPERATION(ATOMIC("relaxed.gpu.global.dec.u32"))
    OPERATION(ATOMIC("relaxed.gpu.global.add.f32"))
    OPERATION(ATOMIC("relaxed.gpu.global.add.noftz.f16x2"))
    OPERATION(ATOMIC("acq_rel.gpu.add.u32"))
    OPERATION(ATOMIC2("relaxed.gpu.global.add.u64"))
    OPERATION(ATOMIC2("acq_rel.gpu.global.max.u64"))
    OPERATION(ATOMIC2("relaxed.gpu.global.add.f64"))
    OPERATION(ATOMIC2("acquire.sys.global.exch.b64"))
    OPERATION(asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(rd) : "l"(qa), "r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(qd) : "l"(qa), "l"(qb), "l"(qc) : "memory"))
    OPERATION(asm volatile("atom.acquire.cta.shared.add.u32 %0, [%1], %2;" : "=r"(rd) : "r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("atom.relaxed.cta.shared.cas.b32 %0, [%1], %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc) : "memory"))
    OPERATION(asm volatile("atom.relaxed.cta.shared.add.f32 %0, [%1], %2;" : "=r"(rd) : "r"(ra), "r"(rb) : "memory"))
    OPERATIONS_END
};
struct Reduces {
    OPERATIONS
    OPERATION(REDUCE("relaxed.gpu.global.add.u32"))
    OPERATION(REDUCE("release.gpu.global.add.u32"))
    OPERATION(REDUCE("relaxed.sys.global.max.u32"))
    OPERATION(REDUCE("relaxed.cta.global.or.b32"))
    OPERATION(REDUCE("relaxed.gpu.global.add.f32"))
    OPERATION(REDUCE("relaxed.gpu.add.u32"))
    OPERATION(asm volatile("red.relaxed.gpu.global.add.f64 [%0], %1;" ::"l"(qb), "l"(qa) : "memory"))
    OPERATION(asm volatile("red.relaxed.cta.shared.add.u32 [%0], %1;" ::"r"(ra), "r"(rb) : "memory"))
    OPERATION(if (pa) asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(qa), "r"(ra) : "memory"))
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 900
struct Cluster {
    OPERATIONS
    OPERATION(STATEMENT("fence.sc.cluster"))
    OPERATION(STATEMENT("fence.acq_rel.cluster"))
    OPERATION(STATEMENT("fence.proxy.async"))
    OPERATION(STATEMENT("fence.proxy.async.shared::cta"))
    OPERATION(LOAD("acquire.cluster.global.u32"))
    OPERATION(STORE("release.cluster.global.u32"))
    OPERATION(ATOMIC("acq_rel.cluster.global.add.u32"))
    OPERATION(REDUCE("release.cluster.global.add.u32"))
    OPERATION(asm volatile("atom.global.v2.f32.add.gpu {%0, %1}, [%2], {%3, %4};" : "=r"(rd), "=r"(rc) : "l"(qa), "r"(ra), "r"(rb) : "memory"))
    OPERATION(asm volatile("red.global.v4.f32.add.gpu [%0], {%1, %2, %1, %2};" ::"l"(qa), "r"(ra), "r"(rb) : "memory"))
    OPERATIONS_END
};
#else
using Cluster = Nothing;
#endif

PROGRAM(fences, looped, 161, 150, Few, Fences, Memory, Wide, Integer)
PROGRAM(fences_chain, looped, 162, 100, Chain, Fences, Loads, Stores)
PROGRAM(alias_fences, looped, 160, 40, Few, AliasFence, Memory)
PROGRAM(loads, looped, 163, 150, Few, Loads, Loads, Wide, Glue)
PROGRAM(stores, looped, 164, 150, Few, Stores, Stores, Wide, Glue)
PROGRAM(atomics_few, looped, 165, 150, Few, Atomics, Wide, Glue)
PROGRAM(atomics_some, looped, 166, 150, Some, Atomics, Half, Logic, Wide, Glue)
PROGRAM(reduces, looped, 167, 150, Few, Reduces, Reduces, Wide, Glue)
PROGRAM(cluster, looped, 168, 150, Few, Cluster, Cluster, Fences, Wide, Integer)
PROGRAM(ordered_all, looped, 169, 150, Some, Cluster, Fences, Loads, Stores, Atomics, Reduces, Wide, Glue)
