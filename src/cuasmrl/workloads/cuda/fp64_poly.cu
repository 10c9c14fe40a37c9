// A degree-8 polynomial by Horner's rule, and a clamped product of sums: the double-precision pipe and its chains.

extern "C" __global__ void
fp64_poly(const double *x, const double *y, const double *coefficients, double *poly, double *mixed, int n)
{
    double c[9];
#pragma unroll
    for (int d = 0; d < 9; ++d)
        c[d] = coefficients[d];

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const double at = x[i];
        double value = c[8];
#pragma unroll
        for (int d = 7; d >= 0; --d)
            value = fma(value, at, c[d]);
        poly[i] = value;
        const double other = y[i];
        // Sums times sums cannot be contracted, so adds and multiplies stay apart.
        const double product = (at + other) * (at - other);
        mixed[i] = product > 0.0 ? product : (at + other) * 0.5;
    }
}
