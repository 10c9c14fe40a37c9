// Fragments between shared memory and registers: ldmatrix, stmatrix, movmatrix, and what feeds and takes them.
#include "matrix.cuh"

#define ADDRESS s.r[24]
struct Addresses {
    OPERATIONS
    OPERATION(asm volatile("xor.b32 %0, %0, %1;" : "+r"(ADDRESS) : "r"(RESULT)))
    OPERATION(asm volatile("add.u32 %0, %0, %1;" : "+r"(ADDRESS) : "r"(RESULT)))
    OPERATION(asm volatile("mad.lo.u32 %0, %1, 136, %0;" : "+r"(ADDRESS) : "r"(RESULT)))
    OPERATION(asm volatile("shl.b32 %0, %1, 4;" : "=r"(ADDRESS) : "r"(RESULT)))
    OPERATION(asm volatile("{ .reg .u32 t; shl.b32 t, %1, 4; add.u32 %0, t, %2; }" : "=r"(ADDRESS) : "r"(RESULT), "r"(ELEMENT)))
    OPERATION(asm volatile("lop3.b32 %0, %0, %1, 0x70, 0x6a;" : "+r"(ADDRESS) : "r"(RESULT)))
    OPERATION(ADDRESS = s.p[0] ? ADDRESS : RESULT)
    OPERATION(asm volatile("prmt.b32 %0, %0, %1, 0x5140;" : "+r"(ADDRESS) : "r"(RESULT)))
    OPERATION(asm volatile("min.s32 %0, %0, %1;" : "+r"(ADDRESS) : "r"(RESULT)))
    OPERATIONS_END
};
struct MatrixLoads {
    OPERATIONS
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(FB(0)) : "r"(ADDRESS)))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(FB(1)) : "r"(ADDRESS)))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(FB(0)), "=r"(FB(1)) : "r"(ADDRESS)))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4+512];" : "=r"(FA(0)), "=r"(FA(1)), "=r"(FA(2)), "=r"(FA(3)) : "r"(ADDRESS)))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(FA(0)), "=r"(FA(1)), "=r"(FA(2)), "=r"(FA(3)) : "r"(ADDRESS)))
    OPERATION(if (s.p[0]) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "+r"(FB(0)), "+r"(FB(1)) : "r"(ADDRESS)))
    OPERATIONS_END
};
struct MatrixMoves {
    OPERATIONS
    OPERATION(asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(RESULT)))
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 900
struct MatrixStores {
    OPERATIONS
    OPERATION(asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(ADDRESS), "r"(RESULT)))
    OPERATION(asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(ADDRESS), "r"(FB(0)), "r"(FB(1))))
    OPERATION(asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(ADDRESS), "r"(ACC(0)), "r"(ACC(1)), "r"(ACC(2)), "r"(ACC(3))))
    OPERATION(asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0+64], {%1, %2, %3, %4};" ::"r"(ADDRESS), "r"(FA(0)), "r"(FA(1)), "r"(FA(2)), "r"(FA(3))))
    OPERATIONS_END
};
#else
using MatrixStores = Nothing;
#endif
PRODUCT(Multiply, D4_A2_B1("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"))

PROGRAM(matrix_loads, together, 801, 200, Fragments, MatrixLoads, Addresses, InPlace)
PROGRAM(matrix_moves, together, 803, 150, Fragments, MatrixMoves, MatrixMoves, MatrixMoves, InPlace, Pack)
PROGRAM(matrix_stores, together, 805, 200, Fragments, MatrixStores, MatrixStores, Addresses, InPlace, Pack)
PROGRAM(fragments_all, together, 807, 200, Fragments, Often<Multiply>, MatrixLoads, MatrixStores, Addresses, MatrixMoves, InPlace)

// A loop with two buffers of fragments: each product's sources are loaded again while it may still read them.
template <int TILE> INLINE void pipelined(const unsigned *in, unsigned *out, int n) {
    __shared__ unsigned tile[8192];
    unsigned a[2][TILE][2], b[2][TILE], c[TILE][TILE][4] = {};
    unsigned address = (unsigned)__cvta_generic_to_shared(tile) + threadIdx.x * 16;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
#pragma unroll
            for (int t = 0; t < TILE; t++) {
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a[~k & 1][t][0]), "=r"(a[~k & 1][t][1]) : "r"(address + 512 * t));
                asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(b[~k & 1][t]) : "r"(address + 512 * t + 64));
            }
#pragma unroll
            for (int x = 0; x < TILE; x++)
#pragma unroll
                for (int y = 0; y < TILE; y++)
                    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                                 : "+r"(c[x][y][0]), "+r"(c[x][y][1]), "+r"(c[x][y][2]), "+r"(c[x][y][3])
                                 : "r"(a[k & 1][x][0]), "r"(a[k & 1][x][1]), "r"(b[k & 1][y]));
            address ^= 1024 << k;
        }
    }
    for (int x = 0; x < TILE; x++)
        for (int y = 0; y < TILE; y++)
            for (int k = 0; k < 4; k++) out[threadIdx.x + 256 * ((x * TILE + y) * 4 + k)] = c[x][y][k];
}
extern "C" __global__ void pipelined_2(const unsigned *in, unsigned *out, int n) { pipelined<2>(in, out, n); }
extern "C" __global__ void pipelined_4(const unsigned *in, unsigned *out, int n) { pipelined<4>(in, out, n); }
