// Exchanges between the lanes of a warp: votes, matches, shuffles, reductions, elections.
#include "operations.cuh"

struct Votes {
    OPERATIONS
    OPERATION(pd = __any_sync(~0u, pa))
    OPERATION(pd = __all_sync(~0u, pa))
    OPERATION(rd = __ballot_sync(~0u, pa))
    OPERATION(pd = __uni_sync(~0u, pa))
    OPERATION(rd = __ballot_sync(~0u, pa && !pb) ^ ra)
    OPERATION(pd = __any_sync(~0u, (int)ra < (int)rb))
    OPERATION(pd = __all_sync(~0u, (ra & rb) != 0))
    OPERATION(rd = __ballot_sync(~0u, __uint_as_float(ra) < __uint_as_float(rb)))
    OPERATION(pd = __all_sync(~0u, pa) != pb)
    OPERATIONS_END
};

// What follows a vote is the same in all lanes, and may stay in the uniform datapath.
struct UniformVotes {
    OPERATIONS
    OPERATION(if (__any_sync(~0u, pa)) asm volatile("add.u32 %0, %0, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(if (__all_sync(~0u, pa)) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+r"(rd) : "r"(ra)))
    OPERATION(rd = ra + __popc(__ballot_sync(~0u, pa)))
    OPERATION(rd = ra ^ __ffs(__ballot_sync(~0u, pa)))
    OPERATION(rd = __popc(__ballot_sync(~0u, pa) & ((1u << (threadIdx.x & 31)) - 1)))
    OPERATION(rd = ra + (__ballot_sync(~0u, pa) == 0xff ? 5 : 7))
    OPERATION(pd = __popc(__ballot_sync(~0u, pa)) > 11)
    OPERATION(rd = __activemask() ^ ra)
    OPERATIONS_END
};

struct Shuffles {
    OPERATIONS
    OPERATION(rd = __shfl_sync(~0u, ra, rb))
    OPERATION(rd = __shfl_sync(~0u, ra, 3))
    OPERATION(rd = __shfl_up_sync(~0u, ra, rb))
    OPERATION(rd = __shfl_down_sync(~0u, ra, 2))
    OPERATION(rd = __shfl_xor_sync(~0u, ra, 16))
    OPERATION(rd = __shfl_xor_sync(~0u, rb, ra, 8))
    OPERATION(qd = __shfl_xor_sync(~0u, qa, 4))
    OPERATION(unsigned ok; asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 4, 0x1f, -1; selp.b32 %1, 1, 0, p; }"
                                        : "=r"(rd), "=r"(ok) : "r"(ra)); pd = ok)
    OPERATION(if (pa) asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "+r"(rd) : "r"(ra)))
    OPERATIONS_END
};

struct Matches {
    OPERATIONS
    OPERATION(rd = __match_any_sync(~0u, ra))
    OPERATION(int ok; rd = __match_all_sync(~0u, ra, &ok); pd = ok)
    OPERATION(rd = __match_any_sync(~0u, qa))
    OPERATION(int ok; rd = __match_all_sync(~0u, qa, &ok); pd = ok)
    OPERATION(rd = __match_any_sync(ra, rb))
    OPERATIONS_END
};

#if __CUDA_ARCH__ >= 800
struct Reductions {
    OPERATIONS
    OPERATION(rd = __reduce_add_sync(~0u, ra))
    OPERATION(rd = __reduce_min_sync(~0u, (int)ra))
    OPERATION(rd = __reduce_max_sync(~0u, ra))
    OPERATION(rd = __reduce_and_sync(~0u, ra))
    OPERATION(rd = __reduce_or_sync(~0u, ra))
    OPERATION(rd = __reduce_xor_sync(~0u, ra))
    OPERATION(if (__reduce_max_sync(~0u, (int)ra) > 9) asm volatile("add.u32 %0, %0, %1;" : "+r"(rd) : "r"(rb)))
    OPERATION(rd = ra + __reduce_add_sync(~0u, rb))
    OPERATION(rd = __reduce_min_sync(~0u, ra) * rb)
    OPERATIONS_END
};
#else
using Reductions = Nothing;
#endif

#if __CUDA_ARCH__ >= 900
struct Elections {
    OPERATIONS
    OPERATION(unsigned chosen; asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.b32 %1, 1, 0, p; }"
                                            : "=r"(rd), "=r"(chosen)); pd = chosen)
    OPERATION(unsigned chosen; asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }"
                                            : "=r"(chosen)); pd = chosen && pa)
    OPERATION(unsigned chosen; asm volatile("{ .reg .pred p; elect.sync _|p, %1; selp.b32 %0, 1, 0, p; }"
                                            : "=r"(chosen) : "r"(ra)); if (chosen) asm volatile("add.u32 %0, %0, %1;" : "+r"(rd) : "r"(rb)))
    OPERATIONS_END
};
#else
using Elections = Nothing;
#endif

PROGRAM(votes_chain, together, 31, 200, Chain, Votes, Votes, Compare, Integer)
PROGRAM(votes_few, together, 32, 300, Few, Votes, Votes, Logic, Glue)
PROGRAM(votes_many, together, 33, 200, Many, Votes, Compare, Logic)
PROGRAM(votes_guard, looped, 34, 120, Few, Votes, Guarded, Compare, Logic)
PROGRAM(votes_uniform, together, 35, 200, Few, UniformVotes, UniformVotes, Votes, Glue)
PROGRAM(votes_uniform_chain, together, 36, 200, Chain, UniformVotes, Votes, Logic, Glue)
PROGRAM(shuffles, together, 37, 200, Few, Shuffles, Glue)
PROGRAM(shuffles_some, together, 38, 200, Some, Shuffles, Half, Logic, Glue)
PROGRAM(matches, together, 39, 150, Few, Matches, Wide, Glue)
PROGRAM(reductions, together, 40, 150, Few, Reductions, Votes, Glue)
PROGRAM(reductions_some, together, 41, 150, Some, Reductions, UniformVotes, Glue)
PROGRAM(elections, together, 42, 150, Few, Elections, Votes, Guarded, Glue)

// Reductions over a warp as kernels write them, with a condition that ends the loop.
extern "C" __global__ void warp_loops(const unsigned *in, unsigned *out, int n) {
    unsigned lane = threadIdx.x & 31, x = in[threadIdx.x], left = __ballot_sync(~0u, x > 5);
    while (left) {
        int leader = __ffs(left) - 1;
        unsigned value = __shfl_sync(~0u, x, leader), same = __match_any_sync(~0u, value ^ lane / 4);
        float sum = __uint_as_float(x);
        for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
        unsigned scan = x;
        for (int step = 1; step < 32; step *= 2) { unsigned up = __shfl_up_sync(~0u, scan, step); if (lane >= step) scan += up; }
        if (lane == leader) out[threadIdx.x + n] = scan + same;
        x = x * 3 + (sum > 1.f);
        left &= left - 1;
        left &= ~__ballot_sync(~0u, value == x);
    }
    out[threadIdx.x] = x;
}
