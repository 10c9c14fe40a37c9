// Control flow: every kernel writes one number per thread.

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void nested(const int *in, int *out) {
    int i = THREAD, x = in[i], r = 0;
    if (x & 1) {
        r += 1;
        if (x & 2) {
            r += out[i] * 3;
            if (x & 4) r ^= out[i ^ 1];
            else r -= 5;
        } else {
            r += 100;
        }
        r *= 7;
    } else if (x & 8) {
        r = x * x + out[i];
    } else {
        for (int k = 0; k < (x & 3); ++k) r += k * out[i];
    }
    // Right after reconvergence all lanes vote together.
    unsigned all = __activemask();
    out[i] = r + (all == 0xffffffffu ? 1000 : 0);
}

extern "C" __global__ void trips(const int *in, int *out) {
    int i = THREAD, x = in[i], steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        ++steps;
    }
    out[i] = steps;
}

extern "C" __global__ void jumps(const int *in, int *out, int n) {
    int i = THREAD, sum = 0;
    for (int k = 0; k < n; ++k) {
        int x = in[(i + k) % n];
        if (x % 5 == 0) continue;
        if (x > 90) break;
        for (int j = 0; j < x; ++j) {
            if (j * j > x) break;
            if ((j + x) & 1) continue;
            sum += j + out[i];
        }
    }
    out[i] = sum;
}

extern "C" __global__ void switches(const int *in, int *out) {
    int i = THREAD, x = in[i], r = out[i];
    switch (x) {
        case 0: r = r * 3 + 1; break;
        case 1: r = r ^ 0x55; break;
        case 2: r = r - out[i ^ 1]; break;
        case 3: r = __popc(r); // falls through
        case 4: r = r + 17; break;
        case 5: r = r / (x + 2); break;
        case 6: for (int k = 0; k < 3; ++k) r = r * 5 + out[i ^ k]; break;
        case 7: r = __brev(r); break;
        case 8: out[i] = -8; return;
        default: r = -1;
    }
    out[i] = r;
}

extern "C" __global__ void leaves(const int *in, int *out) {
    int i = THREAD, x = in[i];
    if (x < 0) return;
    int r = 0;
    for (int k = 0; k < 10; ++k) {
        if (k == x) return;
        r += out[i] + k;
    }
    out[i] = r;
}

__device__ __noinline__ int collatz(int x) {
    int steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        ++steps;
    }
    return steps;
}

__device__ __noinline__ int polynomial(int x, int n) {
    int r = 0;
    for (int k = 0; k < n; ++k) {
        if ((x + k) % 3 == 0) r += collatz(x + k);
        else r = r * x + k;
    }
    return r;
}

// Lane 0 does not take part in the inner call: nothing may depend on what it holds.
extern "C" __global__ void calls(const int *in, int *out) {
    int i = THREAD, x = in[i], r = -1;
    if (threadIdx.x & 3) r = polynomial(x, x & 7);
    else if (threadIdx.x & 4) r = collatz(x) * 2;
    if (threadIdx.x & 16) r += collatz(x + 1);
    out[i] = r;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void recursive(const int *in, int *out) { out[THREAD] = fibonacci(in[THREAD]); }

extern "C" __global__ void indices(int *out) {
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    int *mine = out + 6 * (block * threads + thread);
    mine[0] = threadIdx.x; mine[1] = threadIdx.y; mine[2] = threadIdx.z;
    mine[3] = blockIdx.x; mine[4] = blockIdx.y; mine[5] = blockIdx.z;
}

// Both sides of a branch have loops of their own: their convergence barriers must not meet.
extern "C" __global__ void sides(const int *in, int *out) {
    int i = THREAD, x = in[i], r = 0;
    if (x & 1) {
        for (int k = 0; k < x; ++k) {
            if (out[(i + k) & 31] & 1) r += k; else r ^= x;
        }
    } else {
        for (int k = 0; k < 2 * x; ++k) {
            if (out[(i + k) & 31] & 2) r -= k; else r = 2 * r + 1;
        }
    }
    __syncwarp();
    out[32 + i] = r;
}
