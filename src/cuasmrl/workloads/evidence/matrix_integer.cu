// Products of bytes, nibbles and bits.
#include "matrix.cuh"

MATRIX_PROGRAMS(s8_k16, 301, 100, D2_A1_B1("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"))
MATRIX_PROGRAMS(u8_k16, 305, 60, D2_A1_B1("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32"))
MATRIX_PROGRAMS(s4_k32, 311, 60, D2_A1_B1("mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32"))
MATRIX_PROGRAMS(xor_k128, 361, 60, D2_A1_B1("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc"))
#if __CUDA_ARCH__ >= 800
MATRIX_PROGRAMS(s8_m16_k16, 315, 100, D4_A2_B1("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"))
MATRIX_PROGRAMS(s8_m16_k32, 321, 160, D4_A4_B2("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"))
MATRIX_PROGRAMS(u8_m16_k32, 325, 60, D4_A4_B2("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"))
MATRIX_PROGRAMS(s4_m16_k32, 331, 60, D4_A2_B1("mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32"))
MATRIX_PROGRAMS(s4_m16_k64, 335, 100, D4_A4_B2("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"))
MATRIX_PROGRAMS(and_k128, 341, 60, D2_A1_B1("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc"))
MATRIX_PROGRAMS(and_m16_k256, 345, 60, D4_A4_B2("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"))
MATRIX_PROGRAMS(xor_m16_k128, 351, 60, D4_A2_B1("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc"))
#endif
