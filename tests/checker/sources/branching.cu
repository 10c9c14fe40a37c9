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

// A table jumps while loads and products of matrices are under way that each of its targets needs.
extern "C" __global__ void jumps(float* out, const unsigned* in, const float* values, int n) {
    int t = threadIdx.x;
    float d0 = 0, d1 = 1, d2 = 2, d3 = 3;
    unsigned a = in[t + 64], b = in[t + 96], sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        unsigned index = in[t + i], x = in[t + 32 * i + 128], y = in[t + 32 * i + 256];
        asm volatile("{ targets: .branchtargets one, two, three, four; brx.idx %3, targets;"
                     "one: add.u32 %0, %0, %1; bra.uni done;"
                     "two: xor.b32 %0, %1, %2; bra.uni done;"
                     "three: sub.u32 %0, %2, %1; bra.uni done;"
                     "four: mul.lo.u32 %0, %1, %2; done: }"
                     : "+r"(sum) : "r"(x), "r"(y), "r"(index & 3));
#if __CUDA_ARCH__ >= 800
        asm volatile("{ mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%5}, {%0,%1,%2,%3};"
                     "targets: .branchtargets one, two, three; brx.idx %6, targets;"
                     "one: mul.f32 %0, %0, %1; bra.uni done;"
                     "two: add.f32 %1, %0, %2; bra.uni done;"
                     "three: fma.rn.f32 %2, %0, %1, %3; done: }"
                     : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a), "r"(b), "r"(index % 3));
#endif
    }
    out[t] = d0 + d1 * d2 - d3 + sum + values[t];
}

// What is passed to a function and back is still being loaded or computed.
__device__ __noinline__ float passed(float x, float y, const float* from) {
    float z = x * y + 1.0f;
    if (z > 3.0f) return from[1];
    return __frcp_rn(z);
}

extern "C" __global__ void passes(float* out, const float* in, int n) {
    int t = threadIdx.x;
    float sum = in[t];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        float x = in[t + 32 * i], y = in[t + 64 * i];
        sum += passed(x, y, in + i);
        sum = passed(sum, x, in + t) * sum;
    }
    out[t] = sum;
}
