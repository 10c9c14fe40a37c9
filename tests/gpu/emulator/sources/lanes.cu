// Exchanges between lanes, also in divergent code. Two warps; every kernel writes 64 numbers at a time.

extern "C" __global__ void shuffles(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    out[i] = __shfl_sync(~0u, x, 31 - (i & 31));
    out[64 + i] = __shfl_up_sync(~0u, x, 3);
    out[128 + i] = __shfl_down_sync(~0u, x, 5, 16);
    out[192 + i] = __shfl_xor_sync(~0u, x, 6, 8);
    out[256 + i] = __shfl_sync(~0u, x, x);
}

extern "C" __global__ void votes(const int *in, int *out) {
    int i = threadIdx.x, x = in[i], same = 0;
    unsigned r, s, t, a, b;
    if (i % 3 == 0) {
        unsigned mask = __activemask();
        r = __ballot_sync(mask, x & 1);
        s = __any_sync(mask, x == 7) + 2 * __all_sync(mask, x > 7);
        __syncwarp(mask);
        t = __shfl_sync(mask, x, 3 * (i & 7));
        a = b = mask;
    } else {
        unsigned mask = __activemask();
        r = __match_any_sync(mask, x & 3);
        s = __match_all_sync(mask, x >> 20, &same);
        t = same;
        __syncwarp(mask);
        a = __match_all_sync(mask, x, &same);
        b = same;
    }
    out[i] = r; out[64 + i] = s; out[128 + i] = t; out[192 + i] = a; out[256 + i] = b;
}

// Both sides come to a full-mask exchange: the lanes meet although they come from different places.
extern "C" __global__ void from_two_places(const int *in, int *out) {
    int i = threadIdx.x, x = in[i];
    if (x & 1) x = __shfl_sync(~0u, x, (i + 3) & 31) + 1;
    else x = __shfl_sync(~0u, x, (i + 5) & 31) * 3;
    out[i] = x;
}

// Each half of a warp goes round its loop as often as it likes: one must not wait for the other.
extern "C" __global__ void halves(const int *in, int *out) {
    int i = threadIdx.x, x = in[i], sum = 0;
    unsigned mask = i & 16 ? 0xffff0000u : 0x0000ffffu;
    int turns = i & 16 ? 3 : 9;
    for (int k = 0; k < turns; ++k) {
        int from = (i & 16) + ((i + k) & 15);
        sum += __shfl_sync(mask, x, from) * (k + 1);
        __syncwarp(mask);
    }
    out[i] = sum;
}

// Only odd numbers load a mask; what the other lanes hold in its register is none.
extern "C" __global__ void loaded_mask(const int *in, int *out, const unsigned *masks) {
    __shared__ int s[64];
    int i = threadIdx.x, r = 0;
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

#if __CUDA_ARCH__ >= 800
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
#endif

#if __CUDA_ARCH__ >= 900
// Lanes with different masks come together, and each mask gets its own sum.
extern "C" __global__ void reductions_of_halves(const int *in, int *out) {
    int i = threadIdx.x, x = in[i], sum = 0;
    unsigned mask = i & 16 ? 0xffff0000u : 0x0000ffffu;
    out[i] = __reduce_add_sync(mask, x);
    int turns = i & 16 ? 3 : 9;
    for (int k = 0; k < turns; ++k) sum += __reduce_max_sync(mask, x ^ k);
    out[64 + i] = sum;
}
#endif
