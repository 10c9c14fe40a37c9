// Who looks at all lanes, or at all predicates, reads its operands later than a select or an addition does.

// Each predicate is set right before it is read by something that looks at all lanes.
extern "C" __global__ void votes(const int* in, int* out, int n) {
    int t = threadIdx.x, a = in[t], b = in[t + 32], c = in[t + 64];
    float f = b * 2.0f + c;
    unsigned x = __ballot_sync(~0u, a > n);
    bool any = __any_sync(~0u, a != c), all = __all_sync(~0u, b < c);
    f = f * f + 1.0f;
    unsigned y = __ballot_sync(~0u, f > 3.0f) * 3 + x;
    out[t] = y + any;
    out[t + 32] = b * c + x + all;
    out[t + 64] = a ^ __float_as_int(f * f - 3.0f);
}

// All lanes branch alike, by what one of them has found.
extern "C" __global__ void agreed(const int* in, int* out, int n) {
    int t = threadIdx.x, a = in[t], b = in[t + 32];
    for (int i = 0; i < n; i++) {
        if (__any_sync(~0u, a * 3 > b + i)) out[t + i] = a;
        if (__all_sync(~0u, (a ^ i) < b)) out[t + 2 * i] = b;
        a += __popc(__ballot_sync(~0u, a + b > i));
        b -= __popc(__activemask());
    }
    out[t] = a ^ b;
}

// More predicates than there are registers for them: packed (P2R), combined (PLOP3), used as guards.
extern "C" __global__ void packed(const int* in, int* out, int n) {
    int t = threadIdx.x, x = in[t], y = in[t + 32], sum = 0;
    bool p[12];
#pragma unroll
    for (int i = 0; i < 12; i++) p[i] = x * (i + 3) > y + n * i;
    for (int k = 0; k < n; k++) {
#pragma unroll
        for (int i = 0; i < 12; i++)
            if (p[i]) sum += in[t + 32 * i + k];
        bool q = (p[0] != p[1]) != p[2], r = (p[3] && p[4]) || (p[5] && !p[6]);
        if (q) sum ^= x;
        if (r != q) out[t + 64 + k] = sum;
    }
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 7; i++) bits |= p[i] ? 1u << i : 0;
    out[t] = sum + bits;
}

// Lanes that exchange values right after these were computed, each from what the last one found.
extern "C" __global__ void exchanged(const int* in, int* out, int n) {
    __shared__ volatile int box[128];
    int t = threadIdx.x, a = in[t], b = in[t + 32], whole;
    box[t] = a;
    b += box[t + 1];
    box[t + 64] = b;
    unsigned v = __shfl_xor_sync(~0u, a * 3 + b, 5);
    v = __match_any_sync(~0u, v ^ a);
    v = __shfl_up_sync(~0u, v - a, n & 31);
    v = __match_all_sync(~0u, v * 5, &whole);
#if __CUDA_ARCH__ >= 800
    v = __reduce_add_sync(~0u, v ^ b);
    v = __reduce_and_sync(~0u, (v + t) * n);
    v = __reduce_max_sync(~0u, v ^ t);
#endif
    out[t] = v + whole;
}

#if __CUDA_ARCH__ >= 900
// Values that move to the uniform datapath (R2UR), where engines beside the warp take their operands from.
extern "C" __global__ void uniform(const int* in, int* out, int n) {
    int t = threadIdx.x, a = in[t], b = in[t + 32];
    const int* from = in + (a * 16 + n) % 1024 * 4;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((b & 7) * 16 + 16) : "memory");
    from += (b + n) * 4;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((a & 7) * 16 + 16) : "memory");
    out[t] = a + b;
}
#endif
