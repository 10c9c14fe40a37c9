// A kernel that calls code outside of it: what happens there is not known.
#include <cstdio>

extern "C" __global__ void told(int* out, const int* in, int n) {
    int t = threadIdx.x, x = in[t] * n + t;
    if (x == 77) printf("lane %d of %d\n", t, n);
    out[t] = x ^ in[t + 32];
}

// Beside it, one that stays at home.
extern "C" __global__ void home(int* out, const int* in, int n) {
    int t = threadIdx.x, x = in[t] * n + t;
    out[t] = x > n ? x ^ in[t + 32] : x;
}
