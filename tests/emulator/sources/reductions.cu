extern "C" __global__ void reductions(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    unsigned u = x;
    if (x & 1) {
        unsigned m = __activemask();
        out[i] = __reduce_add_sync(m, x);
        out[64 + i] = __reduce_min_sync(m, x);
        out[128 + i] = __reduce_max_sync(m, u);
    } else {
        unsigned m = __activemask();
        out[i] = __reduce_and_sync(m, u);
        out[64 + i] = __reduce_or_sync(m, u);
        out[128 + i] = __reduce_xor_sync(m, u);
    }
}
