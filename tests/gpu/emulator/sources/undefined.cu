// Shared memory that nobody has written: read, and then used or not. `written` threads write their word.

extern __shared__ int s[];

__device__ int word(int written) {
    int i = threadIdx.x;
    if (i < written) s[i] = 10 * i;
    __syncthreads();
    return *(volatile int *)&s[i];
}

extern "C" __global__ void stored(int *out, int written) { out[threadIdx.x] = word(written); }

extern "C" __global__ void selected_away(int *out, int written) {
    int x = word(written);
    out[threadIdx.x] = (int)threadIdx.x < written ? x + 1 : -1;
}

extern "C" __global__ void stored_by_some(int *out, int written) {
    int x = word(written) * 3 + 1;
    if ((int)threadIdx.x < written) out[threadIdx.x] = x;
}

extern "C" __global__ void overwritten(int *out, int written) {
    int x = word(written);
    asm volatile("{.reg .pred p; setp.ge.s32 p, %1, %2; @p mov.b32 %0, 7;}" : "+r"(x) : "r"((int)threadIdx.x), "r"(written));
    out[threadIdx.x] = x;
}

extern "C" __global__ void address(int *out, int written) { out[word(written) & 31] = 1; }

extern "C" __global__ void branch(int *out, int written) {
    int x = word(written);
    for (int k = 0; k < (x & 15); ++k) atomicAdd(out + k, 1);
}

extern "C" __global__ void shuffled(int *out, int written, int from) {
    out[threadIdx.x] = __shfl_sync(0xffffffffu, word(written), from);
}

extern "C" __global__ void votes(int *out, int written) { out[threadIdx.x] = __any_sync(0xffffffffu, word(written) > 50); }

extern "C" __global__ void passed_on(int *out, int written, int reader) {
    int i = threadIdx.x, x = word(written);
    s[64 + i] = x;
    __syncthreads();
    int y = *(volatile int *)&s[64 + (i + 1) % 32];
    if (i == reader) out[0] = y;
}

extern "C" __global__ void passed_on_and_overwritten(int *out, int written) {
    int i = threadIdx.x, x = word(written);
    s[64 + i] = x;
    __syncthreads();
    s[64 + i] = i;
    __syncthreads();
    out[i] = *(volatile int *)&s[64 + (i + 1) % 32];
}
