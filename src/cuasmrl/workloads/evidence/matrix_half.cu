// Products of halves, bfloats and tf32, dense.
#include "matrix.cuh"

MATRIX_PROGRAMS(f32_f16_k8, 201, 100, D4_A2_B1("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"))
MATRIX_PROGRAMS(f16_f16_k8, 205, 100, D2_A2_B1("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"))
#if __CUDA_ARCH__ >= 800
MATRIX_PROGRAMS(f32_f16_k16, 211, 160, D4_A4_B2("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"))
MATRIX_PROGRAMS(f16_f16_k16, 215, 160, D2_A4_B2("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"))
MATRIX_PROGRAMS(f32_bf16_k16, 221, 160, D4_A4_B2("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"))
MATRIX_PROGRAMS(f32_bf16_k8, 225, 100, D4_A2_B1("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"))
MATRIX_PROGRAMS(f32_tf32_k8, 231, 100, D4_A4_B2("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"))
MATRIX_PROGRAMS(f32_tf32_k4, 235, 100, D4_A2_B1("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"))
MATRIX_PROGRAMS(f32_f16_zero, 241, 100, D4_A4_B2_ZERO("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "0f00000000"))
#endif
#if __CUDA_ARCH__ >= 890
MATRIX_PROGRAMS(f32_e4m3_k32, 251, 100, D4_A4_B2("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"))
MATRIX_PROGRAMS(f32_e5m2_k32, 255, 100, D4_A4_B2("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32"))
MATRIX_PROGRAMS(f16_e4m3_k32, 261, 100, D2_A4_B2("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16"))
MATRIX_PROGRAMS(f32_e4m3_k16, 265, 100, D4_A2_B1("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32"))
#endif

// Two different products in one block.
#if __CUDA_ARCH__ >= 800
PROGRAM(halves_mixed, together, 271, 200, Fragments, f32_f16_k16_product, f16_f16_k16_product, f32_bf16_k16_product,
        f32_tf32_k8_product, InPlace)
#else
PROGRAM(halves_mixed, together, 271, 200, Fragments, f32_f16_k8_product, f16_f16_k8_product, InPlace)
#endif
