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

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void bulk(const char *in, int *out) {
    __shared__ __align__(16) int s[32];
    __shared__ long long b;
    unsigned to = (unsigned)__cvta_generic_to_shared(s), bar = (unsigned)__cvta_generic_to_shared(&b);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 :: "r"(to), "l"(in), "r"(bar) : "memory");
    out[threadIdx.x] = s[threadIdx.x];
}
#endif
