// Products with two of four elements of A left out.
#include "matrix.cuh"

#if __CUDA_ARCH__ >= 1000
#define SPARSE "mma.sp::ordered_metadata.sync.aligned."
#else
#define SPARSE "mma.sp.sync.aligned."
#endif
#if __CUDA_ARCH__ >= 800
MATRIX_PROGRAMS(sparse_f32_f16_k32, 401, 120, SPARSE_D4_A4_B4(SPARSE "m16n8k32.row.col.f32.f16.f16.f32"))
MATRIX_PROGRAMS(sparse_f32_f16_k16, 405, 80, SPARSE_D4_A2_B2(SPARSE "m16n8k16.row.col.f32.f16.f16.f32"))
MATRIX_PROGRAMS(sparse_f16_k32, 411, 80, SPARSE_D2_A4_B4(SPARSE "m16n8k32.row.col.f16.f16.f16.f16"))
MATRIX_PROGRAMS(sparse_f32_bf16_k32, 415, 80, SPARSE_D4_A4_B4(SPARSE "m16n8k32.row.col.f32.bf16.bf16.f32"))
MATRIX_PROGRAMS(sparse_f32_tf32_k16, 421, 80, SPARSE_D4_A4_B4(SPARSE "m16n8k16.row.col.f32.tf32.tf32.f32"))
MATRIX_PROGRAMS(sparse_f32_tf32_k8, 425, 60, SPARSE_D4_A2_B2(SPARSE "m16n8k8.row.col.f32.tf32.tf32.f32"))
MATRIX_PROGRAMS(sparse_s8_k64, 431, 80, SPARSE_D4_A4_B4(SPARSE "m16n8k64.row.col.s32.s8.s8.s32"))
MATRIX_PROGRAMS(sparse_s8_k32, 435, 60, SPARSE_D4_A2_B2(SPARSE "m16n8k32.row.col.s32.s8.s8.s32"))
MATRIX_PROGRAMS(sparse_s4_k128, 441, 60, SPARSE_D4_A4_B4(SPARSE "m16n8k128.row.col.s32.s4.s4.s32"))
MATRIX_PROGRAMS(sparse_u4_k64, 445, 60, SPARSE_D4_A2_B2(SPARSE "m16n8k64.row.col.s32.u4.u4.s32"))
#endif
#if __CUDA_ARCH__ >= 890
MATRIX_PROGRAMS(sparse_f32_e4m3_k64, 451, 80, SPARSE_D4_A4_B4(SPARSE "m16n8k64.row.col.f32.e4m3.e5m2.f32"))
#endif
