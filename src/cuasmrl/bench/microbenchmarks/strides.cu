// Loads of a full SM that all hit L1, from places that share banks and lines in many ways.
//
// As RRZE's gpu-benches does it (gpu-strides): eight loads in a round, four elements apart, by 1024 threads. A
// thread stands in column `x` of a row of `width` threads; rows are `pitch` elements apart, columns `stride`. The
// first round brings everything into L1, and `zero` keeps the compiler from loading only once.

typedef unsigned int u32;

#define ROUNDS 32

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

template <class T> __device__ __forceinline__ T round_of(const T *place) {
    T sum = 0;
#pragma unroll
    for (int k = 0; k < 32; k += 8) sum += place[k] * place[k + 4];
    return sum;
}

template <class T>
__device__ __forceinline__ void measure(const T *data, T *sums, u32 *clocks, int zero, int width, int stride, int pitch) {
    const int x = threadIdx.x % width % 64, y = threadIdx.x / width % 32;
    const T *place = data + x * stride + y * pitch + pitch;
    sums[threadIdx.x] = round_of<T>(place);
    asm volatile("bar.sync 0;" ::: "memory");
    T sum = 0;
    u32 start = now();
#pragma unroll 1
    for (int j = 0; j < ROUNDS; ++j) {
        place += zero;
        sum += round_of<T>(place);
    }
    sums[threadIdx.x] = sum;
    u32 stop = now();
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

extern "C" __global__ void floats(const float *data, float *sums, u32 *clocks, int zero, int width, int stride, int pitch) {
    measure<float>(data, sums, clocks, zero, width, stride, pitch);
}

extern "C" __global__ void doubles(const double *data, double *sums, u32 *clocks, int zero, int width, int stride,
                                   int pitch) {
    measure<double>(data, sums, clocks, zero, width, stride, pitch);
}
