// Sources overwritten as soon as possible, by results of every pipe and by loads.
#include "operations.cuh"

struct Slow {
    OPERATIONS
    OPERATION(R1("ex2.approx.ftz.f32"))
    OPERATION(R1("popc.b32"))
    OPERATION(R1("cvt.rn.f32.u32"))
    OPERATION(asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "=r"(rd) : "r"(ra)))
    OPERATION(rd = numbers[ra & 1023])
    OPERATIONS_END
};
struct Loads {
    OPERATIONS
    OPERATION(asm volatile("ld.shared.u32 %0, [%1];" : "=r"(rd) : "r"(s.r[0])))
    OPERATION(asm volatile("ld.shared.u64 %0, [%1];" : "=l"(qd) : "r"(s.r[0])))
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(rd) : "l"(s.q[0])))
    OPERATION(asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(rd), "=r"(ra), "=r"(rb), "=r"(rc) : "r"(s.r[0])))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(s.r[0]), "r"(ra)))
    OPERATION(asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %1};" ::"r"(s.r[0]), "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(s.q[0]), "r"(ra)))
    OPERATIONS_END
};
struct Double {
    OPERATIONS
    OPERATION(Q2("add.f64"))
    OPERATION(Q2("mul.f64"))
    OPERATION(Q3("fma.rn.f64"))
    OPERATIONS_END
};

PROGRAM(by_arithmetic, looped, 821, 250, Chain, Glue, Half)
PROGRAM(by_loads_chain, looped, 822, 150, Chain, Loads, Glue, Half)
PROGRAM(by_loads_few, looped, 823, 200, Few, Loads, Loads, Glue, Half)
PROGRAM(by_slow, looped, 824, 200, Few, Slow, Glue, Half)
PROGRAM(by_wide, looped, 825, 200, Few, Wide, Wide, Loads, Integer)
PROGRAM(of_doubles, looped, 826, 200, Few, Double, Double, Wide, Integer, Loads)
TIGHT_PROGRAM(tight_24, 24, looped, 827, 250, Some, Glue, Half, Loads)
TIGHT_PROGRAM(tight_28, 28, looped, 828, 250, Some, Glue, Slow, Logic)
TIGHT_PROGRAM(tight_32, 32, looped, 829, 250, Some, Double, Wide, Integer, Loads)

// A product of matrices in floats: rows and columns are loaded anew while the last use is still being issued.
template <int TILE> INLINE void outer_products(const unsigned *in, unsigned *out, int n) {
    __shared__ float tile[4096];
    float a[TILE], b[TILE], c[TILE][TILE] = {};
    tile[threadIdx.x] = __uint_as_float(in[threadIdx.x]);
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int k = 0; k < TILE; k += 4) {
            float4 v = *(const float4 *)&tile[(i * TILE + k + threadIdx.x * 4) & 4092], w = *(const float4 *)&tile[(i * TILE + k + 2048 + threadIdx.y * 4) & 4092];
            a[k] = v.x, a[k + 1] = v.y, a[k + 2] = v.z, a[k + 3] = v.w;
            b[k] = w.x, b[k + 1] = w.y, b[k + 2] = w.z, b[k + 3] = w.w;
        }
#pragma unroll
        for (int x = 0; x < TILE; x++)
#pragma unroll
            for (int y = 0; y < TILE; y++) c[x][y] += a[x] * b[y];
    }
    for (int x = 0; x < TILE; x++)
        for (int y = 0; y < TILE; y++) out[threadIdx.x + 256 * (x * TILE + y)] = __float_as_uint(c[x][y]);
}
extern "C" __global__ void outer_4(const unsigned *in, unsigned *out, int n) { outer_products<4>(in, out, n); }
extern "C" __global__ void outer_8(const unsigned *in, unsigned *out, int n) { outer_products<8>(in, out, n); }
