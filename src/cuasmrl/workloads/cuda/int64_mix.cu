// 64-bit integer arithmetic that the hardware has no single instruction for.

extern "C" __global__ void
int64_mix(const unsigned long long *x, const unsigned long long *y, unsigned long long *hash, long long *ratio, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const unsigned long long a = x[i];
    const unsigned long long b = y[i];

    // Multiply, xor-shift and rotate by a data-dependent amount.
    unsigned long long h = a * 0x9e3779b97f4a7c15ull + b;
    h ^= h >> 29;
    const int turn = (int)(b & 63);
    h = (h << turn) | (h >> ((64 - turn) & 63));
    h += __umul64hi(a, b);
    hash[i] = h;

    const long long numerator = (long long)a;
    const long long denominator = (long long)(b >> 33) + 1;
    ratio[i] = numerator / denominator + numerator % denominator;
}
