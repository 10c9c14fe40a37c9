// Kernels that cannot be emulated: each must be refused when it is loaded.

extern "C" __global__ void texture(cudaTextureObject_t t, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}

extern "C" __global__ void generic(int *out, int where) {
    __shared__ int s[32];
    int *p = where ? s : out;
    p[threadIdx.x] = 1;
    __syncthreads();
    if (where) out[threadIdx.x] = p[threadIdx.x];
}
