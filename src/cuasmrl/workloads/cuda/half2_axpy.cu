// y = a x + y in half precision, two elements at a time; an odd last element goes alone.

#include <cuda_fp16.h>

extern "C" __global__ void half2_axpy(const __half *x, __half *y, float a, int n)
{
    const __half factor = __float2half_rn(a);
    const __half2 factors = __half2half2(factor);
    const __half2 *x2 = reinterpret_cast<const __half2 *>(x);
    __half2 *y2 = reinterpret_cast<__half2 *>(y);
    const int first = blockIdx.x * blockDim.x + threadIdx.x;

    for (int i = first; i < n / 2; i += gridDim.x * blockDim.x)
        y2[i] = __hfma2(factors, x2[i], y2[i]);
    if (first == 0 && n % 2)
        y[n - 1] = __hfma(factor, x[n - 1], y[n - 1]);
}
