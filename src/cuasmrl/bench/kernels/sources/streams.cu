// Kernels whose time is that of their memory traffic: one element of type double per thread.

#ifndef OPERATION
#define OPERATION 2
#endif

enum { FILL = 0, READ = 1, SCALE = 2, TRIAD = 3, STENCIL3 = 4, STENCIL5 = 5 };

extern "C" __global__ void stream(double *out, const double *__restrict__ a, const double *__restrict__ b,
                                  const double *__restrict__ c, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (OPERATION == FILL) {
        out[i] = 0.5;
    } else if (OPERATION == READ) {
        // No input has this value, but the compiler cannot know.
        double x = a[i];
        if (x == 1e300)
            out[i] = x;
    } else if (OPERATION == SCALE) {
        out[i] = 1.5 * a[i];
    } else if (OPERATION == TRIAD) {
        out[i] = a[i] * b[i] + c[i];
    } else if (OPERATION == STENCIL3) {
        if (i >= 1 && i < n - 1)
            out[i] = 0.5 * (a[i - 1] + a[i + 1]) - a[i];
    } else if (OPERATION == STENCIL5) {
        if (i >= 2 && i < n - 2)
            out[i] = 0.25 * (a[i - 2] + a[i - 1]) + 0.5 * (a[i + 1] + a[i + 2]) - a[i];
    }
}
