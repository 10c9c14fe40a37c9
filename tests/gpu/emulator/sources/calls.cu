// Functions of the driver, and data of the module.

#include <cstdio>
#include <cassert>

extern "C" __global__ void prints(const int *x, const char *unused, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0 && i < n) printf("%d: %s|%5.2f|%-4x|%lld\n", i, i % 2 ? "odd" : "even", x[i] / 4.0, x[i], 1ll << (x[i] & 40));
}

extern "C" __global__ void prints_twice(void) {
    printf("a%d ", (int)threadIdx.x);
    printf("b%d ", (int)threadIdx.x);
}

extern "C" __global__ void counts(int *out) { out[threadIdx.x] = printf("%d%c", (int)threadIdx.x, '\n'); }

extern "C" __global__ void checks(const int *x, int *out) {
    assert(x[threadIdx.x] < 50);
    out[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void allocates(int **out) { *out = (int *)malloc(64); }

__device__ int table[4] = {1, 2, 3, 4};
__device__ int empty[4];
__device__ int *pointer = table + 2;

extern "C" __global__ void variable(int *out) {
    int i = threadIdx.x & 3;
    out[threadIdx.x] = table[i] * 100 + empty[i] * 10 + *pointer;
    __syncthreads();
    if (threadIdx.x < 4) empty[i] += 1;
}

__constant__ int known[4] = {5, 6, 7, 8};
extern "C" __global__ void constants(int *out) { out[threadIdx.x] = known[threadIdx.x & 3]; }

extern "C" __global__ void range_reduction(const double *x, double *out) { out[threadIdx.x] = sin(x[threadIdx.x]); }

// An array that is indexed through a pointer of unknown origin: generic loads and stores on the stack.
extern "C" __global__ void stack(const int *x, int *out) {
    int mine[8];
    for (int k = 0; k < 8; ++k) mine[k] = x[threadIdx.x] + k;
    volatile int *p = x[threadIdx.x] & 1 ? mine : out + 8 * threadIdx.x;
    p[x[threadIdx.x] & 7] = -1;
    out[256 + threadIdx.x] = mine[1] + mine[7];
}

extern "C" __global__ void traps(int *out) {
    if (*out) asm volatile("trap;");
    *out = 1;
}

extern "C" __global__ void times(long long *out) {
    int i = blockIdx.x;
    unsigned long long first, last;
    out[4 * i] = clock64();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(first));
    out[4 * i + 1] = clock64();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(last));
    out[4 * i + 2] = first;
    out[4 * i + 3] = last;
}

extern "C" __global__ void places(int *out) {
    int sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    out[blockIdx.x] = sm;
}
