// Arithmetic between two reads of the clock: chains, where every instruction needs the one before; streams of
// instructions that need nothing of each other; and a few of them.

typedef unsigned int u32;

#define ROUNDS 32
#define LENGTH 128
#define WIDTH 4
#define FEW_OF_THEM 3

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

__device__ __forceinline__ void report(u32 *clocks, u32 start, u32 stop) {
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

// A step changes x, with the help of y and z.
#define STEP(name, T, ...)                                                                               \
    struct name {                                                                                        \
        typedef T Number;                                                                                \
        static __device__ __forceinline__ void step(T &x, const T &y, const T &z) { __VA_ARGS__; }       \
    };

namespace steps {
STEP(fadd, float, asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(y)))
STEP(fmul, float, asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(y)))
STEP(ffma, float, asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(y), "f"(z)))
STEP(fmnmx, float, asm volatile("min.f32 %0, %0, %1;" : "+f"(x) : "f"(y)))
STEP(iadd3, u32, asm volatile("{.reg .u32 t; add.u32 t, %0, %1; add.u32 %0, t, %2;}" : "+r"(x) : "r"(y), "r"(z)))
STEP(imad, u32, asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(y), "r"(z)))
STEP(imnmx, int, asm volatile("min.s32 %0, %0, %1;" : "+r"(x) : "r"(y)))
STEP(lop3, u32, asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x) : "r"(y), "r"(z)))
STEP(shf, u32, asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(y), "r"(z)))
STEP(prmt, u32, asm volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(y), "r"(z)))
STEP(hadd2, u32, asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(x) : "r"(y)))
STEP(hfma2, u32, asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(y), "r"(z)))
STEP(dadd, double, asm volatile("add.rn.f64 %0, %0, %1;" : "+d"(x) : "d"(y)))
STEP(dfma, double, asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(y), "d"(z)))
STEP(ex2, float, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)))
STEP(ex2_half, unsigned short, asm volatile("ex2.approx.f16 %0, %0;" : "+h"(x)))
STEP(sine, float, asm volatile("sin.approx.ftz.f32 %0, %0;" : "+f"(x)))
STEP(tangent, float, asm volatile("tanh.approx.f32 %0, %0;" : "+f"(x)))
STEP(rcp64h, double, asm volatile("rcp.approx.ftz.f64 %0, %0;" : "+d"(x)))
STEP(brev, u32, asm volatile("brev.b32 %0, %0;" : "+r"(x)))
STEP(popc, u32, asm volatile("popc.b32 %0, %0;" : "+r"(x)))
STEP(flo, u32, asm volatile("bfind.u32 %0, %0;" : "+r"(x)))
STEP(f2i, u32, asm volatile("cvt.rzi.s32.f32 %0, %1;" : "=r"(x) : "f"(__uint_as_float(x))))
STEP(shfl, u32, asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(x)))
STEP(reduce, float, for (int k = 1; k < 32; k *= 2) x += __shfl_xor_sync(~0u, x, 1))
}  // namespace steps

template <class S> __device__ __forceinline__ void chain(typename S::Number *numbers, u32 *clocks) {
    typename S::Number x = numbers[threadIdx.x], y = numbers[32], z = numbers[33];
    numbers[threadIdx.x] = y + z;
    asm volatile("bar.sync 0;");
    u32 start = now();
#pragma unroll 1
    for (int j = 0; j < ROUNDS; ++j) {
#pragma unroll
        for (int k = 0; k < LENGTH; ++k) S::step(x, y, z);
    }
    numbers[threadIdx.x] = x;
    u32 stop = now();
    report(clocks, start, stop);
}

template <class S> __device__ __forceinline__ void stream(typename S::Number *numbers, u32 *clocks) {
    typename S::Number x[WIDTH], y = numbers[32], z = numbers[33];
    for (int i = 0; i < WIDTH; ++i) x[i] = numbers[threadIdx.x + i];
    numbers[threadIdx.x] = y + z;
    asm volatile("bar.sync 0;");
    u32 start = now();
#pragma unroll 1
    for (int j = 0; j < ROUNDS; ++j) {
#pragma unroll
        for (int k = 0; k < LENGTH; k += WIDTH)
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) S::step(x[i], y, z);
    }
    u32 stop = now();
    for (int i = 1; i < WIDTH; ++i) x[0] = x[0] + x[i];
    numbers[threadIdx.x] = x[0];
    report(clocks, start, stop);
}

// The second clock does not wait for the results: they are used behind it.
template <class S> __device__ __forceinline__ void few(typename S::Number *numbers, u32 *clocks) {
    typename S::Number x[FEW_OF_THEM], y = numbers[32], z = numbers[33];
    for (int i = 0; i < FEW_OF_THEM; ++i) x[i] = numbers[threadIdx.x + i];
    // All are there before the first clock.
    for (int i = 0; i < FEW_OF_THEM; ++i) numbers[threadIdx.x + 64 * i + 64] = x[i];
    asm volatile("bar.sync 0;");
    u32 start = now();
#pragma unroll
    for (int i = 0; i < FEW_OF_THEM; ++i) S::step(x[i], y, z);
    u32 stop = now();
    for (int i = 0; i < FEW_OF_THEM; ++i) numbers[threadIdx.x + 64 * i] = x[i];
    report(clocks, start, stop);
}

#define KERNEL(name, form)                                                                               \
    extern "C" __global__ void name##_##form(steps::name::Number *numbers, u32 *clocks) {                \
        form<steps::name>(numbers, clocks);                                                              \
    }

KERNEL(fadd, chain)
KERNEL(fmul, chain)
KERNEL(ffma, chain)
KERNEL(imad, chain)
KERNEL(lop3, chain)
KERNEL(shf, chain)
KERNEL(prmt, chain)
KERNEL(hadd2, chain)
KERNEL(hfma2, chain)
KERNEL(dadd, chain)
KERNEL(dfma, chain)
KERNEL(ex2, chain)
KERNEL(sine, chain)
KERNEL(rcp64h, chain)
KERNEL(brev, chain)
KERNEL(shfl, chain)
KERNEL(reduce, chain)
KERNEL(iadd3, stream)
KERNEL(fadd, stream)
KERNEL(fmul, stream)
KERNEL(ffma, stream)
KERNEL(hfma2, stream)
KERNEL(dfma, stream)
KERNEL(imad, stream)
KERNEL(imnmx, stream)
KERNEL(fmnmx, stream)
KERNEL(lop3, stream)
KERNEL(ex2, stream)
KERNEL(popc, few)
KERNEL(flo, few)
KERNEL(tangent, few)
KERNEL(ex2_half, few)
KERNEL(f2i, few)
