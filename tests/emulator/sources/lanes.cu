// Exchanges between lanes, also in divergent code.

extern "C" __global__ void shuffles(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    out[i] = __shfl_sync(~0u, x, 31 - (i & 31));
    out[64 + i] = __shfl_up_sync(~0u, x, 3);
    out[128 + i] = __shfl_down_sync(~0u, x, 5, 16);
    out[192 + i] = __shfl_xor_sync(~0u, x, x & 31, 8);
}

extern "C" __global__ void divergent_votes(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    unsigned r;
    if (i % 3 == 0) {
        unsigned mask = __activemask();
        r = __ballot_sync(mask, x & 1);
        r += __any_sync(mask, x == 7) + 2 * __all_sync(mask, x > -1);
        __syncwarp(mask);
        r ^= __shfl_sync(mask, x, 3);
    } else {
        unsigned mask = __activemask();
        r = __match_any_sync(mask, x & 3);
        int same;
        __match_all_sync(mask, x >> 20, &same);
        r = r * 2 + same;
        __syncwarp(mask);
    }
    out[i] = r;
}

extern "C" __global__ void half_warps(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    unsigned mask = i & 16 ? 0xffff0000u : 0x0000ffffu;
    // Each half goes round its loop as often as it likes: one must not wait for the other.
    int turns = i & 16 ? 3 : 9, sum = 0;
    for (int k = 0; k < turns; ++k) {
        int from = (i & 16) + ((i + k) & 15);
        sum += __shfl_sync(mask, x, from) * (k + 1);
        __syncwarp(mask);
    }
    out[i] = sum;
}

extern "C" __global__ void register_mask(const int *in, int *out, const unsigned *masks) {
    int i = threadIdx.x;
    __shared__ int s[64];
    int r = 0;
    // Only these lanes load a mask; what the others hold in its register is none.
    if (in[i] & 1) {
        unsigned mask = masks[i >> 5];
        s[i] = in[i];
        __syncwarp(mask);
        int other = i ^ 2;
        if (mask >> (other & 31) & 1) r = s[other];
        __syncwarp(mask);
        r += __popc(mask);
    }
    out[i] = r;
}
