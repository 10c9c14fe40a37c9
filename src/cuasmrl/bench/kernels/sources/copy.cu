// A copy of floats, WIDTH neighbours per thread: as one access up to 16 bytes, as several of them beyond.

#ifndef WIDTH
#define WIDTH 1
#endif

struct alignas(4 * WIDTH) Floats {
    float values[WIDTH];
};

extern "C" __global__ void copy(float *out, const float *in, long long n) {
    long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    if (first + WIDTH <= n) {
        *reinterpret_cast<Floats *>(out + first) = *reinterpret_cast<const Floats *>(in + first);
    } else {
        for (long long i = first; i < n; i++)
            out[i] = in[i];
    }
}
