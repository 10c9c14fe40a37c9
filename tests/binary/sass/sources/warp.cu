// Exchanges between the lanes of a warp, reductions, votes and elections.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

extern "C" __global__ void lanes(const int *in, int *out, unsigned long long *wide) {
    int t = threadIdx.x, v = in[t];
    out[t] = __shfl_sync(~0u, v, 3) + __shfl_up_sync(~0u, v, t & 3) + __shfl_down_sync(~0u, v, 2) + __shfl_xor_sync(~0u, v, 16, 16);
    int ok;
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 4, 0x1f, -1; selp.b32 %1, 1, 0, p; }" : "=r"(v), "=r"(ok) : "r"(v));
    out[t] += v * ok;
    out[t] += __ballot_sync(~0u, v > 3) + __any_sync(~0u, v > 4) + __all_sync(~0u, v > 5) + __activemask();
    out[t + 32] = __match_any_sync(~0u, v);
    out[t + 64] = __match_all_sync(~0u, v, &ok) + ok;
    unsigned long long w = wide[t];
    out[t + 96] = __match_any_sync(~0u, w);
    out[t + 128] = __match_all_sync(~0u, w, &ok) + ok;
    if (__any_sync(~0u, w > 7)) out[t] += 5;
    if (t < 16) out[t] += __shfl_sync(0xffff, v, t ^ 1);
    __syncwarp(0xff);
    wide[t] = __shfl_sync(~0u, w, 4);
    out[t + 160] = __popc(v) + __clz(v) + __ffs(v) + __brev(v) + __popcll(w) + __clzll(w) + __ffsll(w) + __fns(v, 3, 2);
}

extern "C" __global__ void reductions(const int *in, int *out, float *f) {
#if __CUDA_ARCH__ >= 800
    int t = threadIdx.x, v = in[t];
    unsigned u = in[t + 32];
    out[t] = __reduce_add_sync(~0u, v) + __reduce_min_sync(~0u, v) + __reduce_max_sync(~0u, v) + __reduce_and_sync(~0u, u) +
             __reduce_or_sync(~0u, u) + __reduce_xor_sync(~0u, u) + __reduce_min_sync(~0u, u) + __reduce_max_sync(~0u, u);
    __shared__ int s;
    if (__reduce_add_sync(~0u, v) > 3) s = __reduce_max_sync(~0u, v);
    __syncthreads();
    out[t] += s;
#endif
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
    float x = f[threadIdx.x], y;
    asm volatile("redux.sync.min.f32 %0, %1, -1;" : "=f"(y) : "f"(x));
    f[threadIdx.x] = y;
#endif
}

extern "C" __global__ void groups(int *out) {
    namespace cg = cooperative_groups;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto active = cg::coalesced_threads();
    int v = threadIdx.x;
    if (v & 1) {
        auto odd = cg::coalesced_threads();
        out[v] = odd.size() + odd.thread_rank() + cg::reduce(odd, v, cg::plus<int>());
    }
    out[v + 64] = cg::reduce(warp, v, cg::greater<int>()) + active.size();
    cg::this_thread_block().sync();
    int n = __syncthreads_count(v > 3), a = __syncthreads_and(v > 4), o = __syncthreads_or(v > 5);
    out[v + 128] = n + a + o;
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void election(int *out) {
    unsigned leader, chosen;
    asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(leader), "=r"(chosen));
    if (chosen) out[0] = leader;
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    out[threadIdx.x + 1] = rank;
}
#endif
