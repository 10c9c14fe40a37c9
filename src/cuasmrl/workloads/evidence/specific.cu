// What only the architecture-specific targets have (sm_90a, sm_100a, sm_120a).
#include "matrix.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Asynchronous products: their sources and results are guarded by fences and waits, not by distances.
struct Warpgroup {
    OPERATIONS
    OPERATION(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"))
    OPERATION(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"))
    OPERATION(asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"))
    OPERATION(asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1, 0;"
                           "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" : OUT4 : IN4(FA), "l"(s.q[0]) : "memory"))
    OPERATION(asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 1;"
                           "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" : OUT4 : "l"(s.q[0]), "l"(s.q[1]) : "memory"))
    OPERATION(asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0,%1,%2,%3}, %4, %5, 1;"
                           "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" : OUT4 : "l"(s.q[0]), "l"(s.q[1]) : "memory"))
    OPERATIONS_END
};
PROGRAM(warpgroup, together, 871, 100, Fragments, Warpgroup, InPlace, Pack)
PROGRAM(warpgroup_memory, together, 873, 80, Fragments, Warpgroup, Through, InPlace)

extern "C" __global__ void __maxnreg__(168) register_share(const unsigned *in, unsigned *out, int n) {
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        out[threadIdx.x] = in[n];
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        looped<Glue, Some, 875, 60>(in, out, n);
    }
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL)
struct Tiny {
    OPERATIONS
    OPERATION(asm("{ .reg .b8 x; .reg .b16 y; cvt.rn.satfinite.e2m1x2.f32 x, %1, %2; mov.b16 y, {x, x}; mov.b32 %0, {y, y}; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.satfinite.e2m3x2.f32 x, %1, %2; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x; cvt.rn.satfinite.relu.e3m2x2.f32 x, %1, %2; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x; cvt.rp.satfinite.ue8m0x2.f32 x, %1, %2; mov.b32 %0, {x, x}; }" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rn.f16x2.e2m3x2 %0, x; }" : "=r"(rd) : "r"(ra)))
    OPERATION(asm("{ .reg .b16 x, y; mov.b32 {x, y}, %1; cvt.rn.bf16x2.ue8m0x2 %0, y; }" : "=r"(rd) : "r"(ra)))
    OPERATIONS_END
};
PROGRAM(tiny_chain, looped, 881, 120, Chain, Tiny, Single, Integer)
PROGRAM(tiny_few, looped, 883, 150, Few, Tiny, Tiny, Half, Glue)

struct WiderLoads {
    OPERATIONS
    OPERATION(asm volatile("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0, %1}, [%2];" : "=r"(FB(0)), "=r"(FB(1)) : "r"(s.r[24])))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%0, %1, %2, %3}, [%4];" : "=r"(FA(0)), "=r"(FA(1)), "=r"(FA(2)), "=r"(FA(3)) : "r"(s.r[24])))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%0, %1}, [%2];" : "=r"(FB(0)), "=r"(FB(1)) : "r"(s.r[24])))
    OPERATION(asm volatile("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%0], {%1, %2};" ::"r"(s.r[24]), "r"(FB(0)), "r"(FB(1))))
    OPERATIONS_END
};
PROGRAM(wider_loads, together, 885, 120, Fragments, WiderLoads, WiderLoads, InPlace, Pack)
#endif

#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
struct FloatReductions {
    OPERATIONS
    OPERATION(asm volatile("redux.sync.min.f32 %0, %1, -1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("redux.sync.max.abs.f32 %0, %1, -1;" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("redux.sync.max.NaN.f32 %0, %1, -1;" : "=r"(rd) : "r"(ra)))
    OPERATION(rd = __reduce_max_sync(~0u, ra))
    OPERATION(rd = __reduce_min_sync(~0u, (int)ra) + rb)
    OPERATION(if (__reduce_max_sync(~0u, (int)ra) > 9) asm volatile("add.u32 %0, %0, %1;" : "+r"(rd) : "r"(rb)))
    OPERATIONS_END
};
PROGRAM(float_reductions, together, 887, 150, Few, FloatReductions, Glue)
PROGRAM(float_reductions_some, together, 889, 150, Some, FloatReductions, Half, Logic, Glue)

// Tensor memory to registers and back.
struct TensorMemory {
    OPERATIONS
    OPERATION(asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(FA(0)), "=r"(FA(1)), "=r"(FA(2)), "=r"(FA(3)) : "r"(s.r[24])))
    OPERATION(asm volatile("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%0,%1}, [%2];" : "=r"(FB(0)), "=r"(FB(1)) : "r"(s.r[24])))
    OPERATION(asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1,%2,%3,%4};" ::"r"(s.r[24]), "r"(FA(0)), "r"(FA(1)), "r"(FA(2)), "r"(FA(3)) : "memory"))
    OPERATION(asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"))
    OPERATION(asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"))
    OPERATION(asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"))
    OPERATIONS_END
};
PROGRAM(tensor_memory, together, 891, 120, Fragments, TensorMemory, TensorMemory, InPlace, Pack)
#endif

#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define KIND(text) "mma.sync.aligned." text
#define SPARSE_KIND(text) "mma.sp::ordered_metadata.sync.aligned." text
#define SCALED(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {0, 1}, {%11}, {0, 2};" \
    : OUT4 : IN4(FA), IN2(FB), "r"(s.r[24]), "r"(FB(3)))
#define SCALED_SPARSE(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0, {%13}, {0, 1}, {%14}, {0, 0};" \
    : OUT4 : IN4(FA), IN4(FB), "r"(s.r[24]), "r"(s.r[7]), "r"(s.r[6]))
MATRIX_PROGRAMS(e3m2_e2m3, 901, 80, D4_A4_B2(KIND("m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32")))
MATRIX_PROGRAMS(e2m1_e4m3, 905, 80, D4_A4_B2(KIND("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32")))
MATRIX_PROGRAMS(e2m1_f16, 911, 80, D2_A4_B2(KIND("m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e2m1.f16")))
MATRIX_PROGRAMS(mxf8, 915, 100, SCALED(KIND("m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0")))
MATRIX_PROGRAMS(mxf4, 921, 100, SCALED(KIND("m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0")))
MATRIX_PROGRAMS(nvf4, 925, 100, SCALED(KIND("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3")))
MATRIX_PROGRAMS(sparse_e3m2, 931, 60, SPARSE_D4_A4_B4(SPARSE_KIND("m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32")))
MATRIX_PROGRAMS(sparse_mxf8, 935, 60, SCALED_SPARSE(SPARSE_KIND("m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0")))
MATRIX_PROGRAMS(sparse_nvf4, 941, 60, SCALED_SPARSE(SPARSE_KIND("m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3")))
#endif
