// Functions that are really called: by name, through a pointer, by themselves; and jump tables.
#include "operations.cuh"

template <unsigned SEED> __device__ __noinline__ unsigned called(unsigned x, unsigned y) {
    Few s;
    for (int i = 0; i < Few::R; i++) s.r[i] = x + y * i;
    for (int i = 0; i < Few::Q; i++) s.q[i] = (unsigned long long)y << 32 | x;
    for (int i = 0; i < Few::P; i++) s.p[i] = x >> i & 1;
    steps<Mixture<Glue, Half, Wide>, SEED, 40>(s);
    return s.r[0] ^ s.r[1] ^ s.r[2] ^ s.r[3] ^ s.r[4] ^ (unsigned)s.q[0] ^ (unsigned)(s.q[1] >> 32);
}
__device__ __noinline__ double called_wide(double x, unsigned long long y, bool flag) {
    return flag ? x * 3.0 + (double)y : x - (double)(y >> 3);
}
__device__ __noinline__ unsigned recursive(unsigned x, unsigned y) {
    if (x < 2 || y == 0) return x + y;
    unsigned left = recursive(x - 1, y >> 1), right = recursive(x >> 1, y - 1);
    return called<91>(left, right);
}
typedef unsigned (*Function)(unsigned, unsigned);
__device__ const Function functions[] = {called<92>, called<93>, called<94>, recursive};

extern "C" __global__ void calls(const unsigned *in, unsigned *out, int n) {
    unsigned x = in[threadIdx.x], y = in[threadIdx.x + 256];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        x = called<91>(x, y) + 3;
        if (x & 1) y = called<92>(y, x);
        else y ^= called<93>(x, x);
        x += (unsigned)called_wide(x, y, y > 5);
    }
    out[threadIdx.x] = x + y;
}
extern "C" __global__ void recursion(const unsigned *in, unsigned *out, int n) {
    out[threadIdx.x] = recursive(in[threadIdx.x], n);
}
extern "C" __global__ void pointers(const unsigned *in, unsigned *out, int n) {
    unsigned x = in[threadIdx.x];
#pragma unroll 1
    for (int i = 0; i < n; i++) x = functions[x & 3](x, i);
    out[threadIdx.x] = x;
}

// Jump tables. The compiler makes one of a switch only now and then, so the branch is written out.
#define JUMP(x, y, z, index)                                                                                           \
    asm volatile("{ targets: .branchtargets one, two, three, four, five, six; brx.idx %3, targets;"                    \
                 "one: add.u32 %0, %0, %1; mul.lo.u32 %1, %1, %2; bra.uni done;"                                       \
                 "two: fma.rn.f32 %0, %0, %1, %2; bra.uni done;"                                                       \
                 "three: xor.b32 %0, %0, %2; shl.b32 %2, %2, %1; st.shared.u32 [%0], %2; bra.uni done;"                \
                 "four: fma.rn.f16x2 %0, %0, %1, %2; add.u32 %1, %0, %1; bra.uni done;"                                \
                 "five: popc.b32 %0, %0; add.u32 %1, %0, %1; bra.uni done;"                                            \
                 "six: sub.u32 %0, %0, %1; min.s32 %1, %0, %1; done: }"                                                \
                 : "+r"(x), "+r"(y), "+r"(z) : "r"(index))
extern "C" __global__ void jump_table(const unsigned *in, unsigned *out, int n) {
    unsigned x = in[threadIdx.x], y = in[threadIdx.x + 256], z = in[threadIdx.x + 512];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        JUMP(x, y, z, x % 6);
        JUMP(y, z, x, min(z, 5));
        if (z & 4) JUMP(z, x, y, y);
        x = x * 5 + i;
    }
    out[threadIdx.x] = x + y + z;
}
extern "C" __global__ void jump_table_uniform(const unsigned *in, unsigned *out, int n) {
    unsigned x = in[threadIdx.x], y = in[threadIdx.x + 256], z = in[threadIdx.x + 512];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        JUMP(x, y, z, numbers[i]);
        JUMP(z, y, x, i % 6);
    }
    out[threadIdx.x] = x + y + z;
}

// A switch: each case is a short program of its own.
#define CASE(k)                                                                                                        \
    case k: steps<Mixture<Glue, Logic>, 900 + k, 12>(s); break;
extern "C" __global__ void switched(const unsigned *in, unsigned *out, int n) {
    Few s;
    read(s, in);
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        switch ((s.r[0] >> 3) % 20) {
            CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)
        default: s.r[1] += s.r[2];
        }
        s.r[0] = s.r[0] * 5 + i;
    }
    write(s, out);
}
