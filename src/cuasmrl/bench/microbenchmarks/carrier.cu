// Room for other instructions: everything from the first clock on is overwritten.
//
// It has a word of every opcode that is wanted, and more registers than any of them names.

typedef unsigned int u32;

#define COUNT 48

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

extern "C" __global__ void carrier(float *numbers, u32 *clocks) {
    float x[COUNT], y = numbers[64], z = numbers[65];
    for (int i = 0; i < COUNT; ++i) x[i] = numbers[threadIdx.x + i];
    asm volatile("bar.sync 0;");
    u32 start = now();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x[i]) : "f"(y), "f"(z));
        asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x[i]) : "f"(y));
        asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(x[i]) : "f"(z));
    }
    u32 stop = now();
    for (int i = 0; i < COUNT; ++i) numbers[threadIdx.x + 64 * i] = x[i];
    clocks[0] = start;
    clocks[1] = stop;
}
