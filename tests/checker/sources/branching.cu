// Every way to leave a block: branches, tables, calls, returns, exits, reconvergence.

__device__ __noinline__ unsigned called(unsigned x, unsigned y) {
    unsigned z = x * y + 3;
    if (z & 4) z ^= y >> 2;
    return z - x;
}

#define JUMP(x, y, z, index) \
    asm volatile("{ targets: .branchtargets one, two, three, four; brx.idx %3, targets;" \
                 "one: add.u32 %0, %0, %1; mul.lo.u32 %1, %1, %2; bra.uni done;" \
                 "two: fma.rn.f32 %0, %0, %1, %2; bra.uni done;" \
                 "three: xor.b32 %0, %0, %2; shl.b32 %2, %2, %1; bra.uni done;" \
                 "four: sub.u32 %0, %0, %1; min.s32 %1, %0, %1; done: }" \
                 : "+r"(x), "+r"(y), "+r"(z) : "r"(index))

extern "C" __global__ void branches(unsigned* out, const unsigned* in, int n) {
    unsigned t = threadIdx.x, x = in[t], y = in[t + 64], z = in[t + 128];
    if (x == 77) return;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        JUMP(x, y, z, x & 3);
        if (x > y) {
            x = called(x, z);
            if (z & 1) y += in[x & 63];
            __syncwarp();
        } else {
            while (y & 3) {
                y += x >> 2;
                if (y == z) break;
            }
        }
        z = called(z, y) + i;
    }
    out[t] = x + y * z;
}
