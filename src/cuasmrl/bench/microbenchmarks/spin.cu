// How fast the clock of an SM goes: one warp waits for a number of cycles, and looks at the time before and after.

typedef unsigned long long u64;

__device__ __forceinline__ u64 cycles() {
    u64 time;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(time)::"memory");
    return time;
}

__device__ __forceinline__ u64 nanoseconds() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

extern "C" __global__ void spin(u64 *times, u64 wanted) {
    u64 cycle = cycles(), nanosecond = nanoseconds(), now = cycle;
    while (now - cycle < wanted) now = cycles();
    u64 later = nanoseconds();
    times[0] = cycle;
    times[1] = now;
    times[2] = nanosecond;
    times[3] = later;
}
