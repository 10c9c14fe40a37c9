// Accesses of all widths and spaces: where their addresses and data come from, and what happens to them next.
#include "operations.cuh"

struct SharedAccess {
    OPERATIONS
    OPERATION(asm volatile("ld.shared.u8 %0, [%1];" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("ld.shared.s16 %0, [%1+6];" : "=r"(rd) : "r"(ra)))
    OPERATION(asm volatile("ld.shared.u64 %0, [%1];" : "=l"(qd) : "r"(ra)))
    OPERATION(asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(qd), "=l"(qa) : "r"(ra)))
    OPERATION(asm volatile("ld.shared.v4.u32 {%0, %1, %0, %1}, [%2];" : "=r"(rd), "=r"(rc) : "r"(ra)))
    OPERATION(asm volatile("st.shared.u8 [%0], %1;" ::"r"(rb), "r"(ra)))
    OPERATION(asm volatile("st.shared.u16 [%0+2], %1;" ::"r"(ra), "h"((unsigned short)rb)))
    OPERATION(asm volatile("st.shared.u64 [%0], %1;" ::"r"(ra), "l"(qa)))
    OPERATION(asm volatile("st.shared.v2.u64 [%0], {%1, %2};" ::"r"(rb), "l"(qa), "l"(qb)))
    OPERATION(asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %1};" ::"r"(ra), "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(rd) : "r"(ra), "r"(rb)))
    OPERATION(asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;" : "=r"(rd) : "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm volatile("atom.shared.exch.b64 %0, [%1], %2;" : "=l"(qd) : "r"(ra), "l"(qb)))
    OPERATIONS_END
};
struct GlobalAccess {
    OPERATIONS
    OPERATION(asm volatile("ld.global.u8 %0, [%1];" : "=r"(rd) : "l"(qa)))
    OPERATION(asm volatile("ld.global.nc.u32 %0, [%1+16];" : "=r"(rd) : "l"(qa)))
    OPERATION(asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(qd) : "l"(qa)))
    OPERATION(asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(rd), "=r"(rc) : "l"(qa)))
    OPERATION(asm volatile("ld.global.v4.u32 {%0, %1, %0, %1}, [%2];" : "=r"(rd), "=r"(rc) : "l"(qa)))
    OPERATION(asm volatile("st.global.u8 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATION(asm volatile("st.global.cs.u64 [%0], %1;" ::"l"(qb), "l"(qa)))
    OPERATION(asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %1};" ::"l"(qa), "r"(ra), "r"(rb), "r"(rc)))
    OPERATION(asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(qa), "l"(qa), "l"(qb)))
    OPERATION(asm volatile("ld.u32 %0, [%1];" : "=r"(rd) : "l"(qa)))
    OPERATION(asm volatile("st.u32 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATION(asm volatile("prefetch.global.L2 [%0];" ::"l"(qa)))
    OPERATION(asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(rd) : "l"(qa), "r"(ra)))
    OPERATION(asm volatile("red.global.max.u32 [%0], %1;" ::"l"(qa), "r"(ra)))
    OPERATIONS_END
};
struct ConstantAccess {
    OPERATIONS
    OPERATION(rd = numbers[ra & 1023])
    OPERATION(rd = numbers[ra])
    OPERATION(rd = ((const unsigned char *)numbers)[ra])
    OPERATION(qd = ((const unsigned long long *)numbers)[ra & 511])
    OPERATION(asm("ld.const.s16 %0, [%1+4];" : "=r"(rd) : "l"(qa)))
    OPERATION(rd = ra * numbers[CONSTANT % 1024])
    OPERATION(rd = __float_as_uint(__uint_as_float(ra) * __uint_as_float(numbers[CONSTANT % 1024])))
    OPERATION(pd = ra < numbers[CONSTANT % 1024])
    OPERATIONS_END
};
struct SpecialRegisters {
    OPERATIONS
    OPERATION(asm volatile("mov.u32 %0, %%clock;" : "=r"(rd)))
    OPERATION(asm volatile("mov.u64 %0, %%clock64;" : "=l"(qd)))
    OPERATION(asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(qd)))
    OPERATION(asm volatile("mov.u32 %0, %%smid;" : "=r"(rd)))
    OPERATION(asm volatile("mov.u32 %0, %%laneid;" : "=r"(rd)))
    OPERATION(asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(rd)))
    OPERATION(asm volatile("mov.u32 %0, %%warpid;" : "=r"(rd)))
    OPERATION(rd = ra + blockIdx.y)
    OPERATION(rd = ra ^ threadIdx.y)
    OPERATION(asm volatile("nanosleep.u32 %0;" ::"r"(ra & 255)))
    OPERATION(asm volatile("nanosleep.u32 40;"))
    OPERATION(qd = qa - clock64())
    OPERATIONS_END
};
struct Barriers {
    OPERATIONS
    OPERATION(__syncthreads())
    OPERATION(asm volatile("bar.sync 3, 64;" ::: "memory"))
    OPERATION(asm volatile("bar.arrive 2, 128;" ::: "memory"))
    OPERATION(asm volatile("bar.sync %0, 64;" ::"r"(ra & 15) : "memory"))
    OPERATION(pd = __syncthreads_or(pa))
    OPERATION(pd = __syncthreads_and(pa))
    OPERATION(rd = __syncthreads_count(pa))
    OPERATION(__syncwarp())
    OPERATION(__syncwarp(ra))
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 800
struct Copies {
    OPERATIONS
    OPERATION(asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(ra), "l"(qa) : "memory"))
    OPERATION(asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(ra), "l"(qb) : "memory"))
    OPERATION(asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(rb), "l"(qa) : "memory"))
    OPERATION(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(rb), "l"(qa), "r"(pa ? 16 : 0) : "memory"))
    OPERATION(asm volatile("cp.async.cg.shared.global.L2::128B [%0+32], [%1+64], 16;" ::"r"(ra), "l"(qa) : "memory"))
    OPERATION(if (pa) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ra), "l"(qa) : "memory"))
    OPERATION(asm volatile("cp.async.commit_group;" ::: "memory"))
    OPERATION(asm volatile("cp.async.wait_group 2;" ::: "memory"))
    OPERATION(asm volatile("cp.async.wait_all;" ::: "memory"))
    OPERATIONS_END
};
#else
using Copies = Nothing;
#endif

PROGRAM(shared_few, looped, 141, 200, Few, SharedAccess, Glue, Wide)
PROGRAM(shared_some, looped, 142, 200, Some, SharedAccess, Half, Logic, Glue)
PROGRAM(global_few, looped, 143, 200, Few, GlobalAccess, Wide, Wide, Integer)
PROGRAM(global_some, looped, 144, 200, Some, GlobalAccess, Half, Wide, Glue)
PROGRAM(constants, looped, 145, 200, Few, ConstantAccess, Glue)
PROGRAM(constants_memory, looped, 146, 150, Some, ConstantAccess, Memory, Wide, Half)
PROGRAM(special_registers, looped, 147, 150, Few, SpecialRegisters, Glue, Wide)
PROGRAM(barriers, together, 148, 120, Few, Barriers, Glue, Logic)
PROGRAM(barriers_memory, together, 149, 120, Few, Barriers, Memory, SharedAccess, Integer)
PROGRAM(copies_few, together, 150, 150, Few, Copies, Copies, Wide, Integer, Compare)
PROGRAM(copies_some, together, 151, 150, Some, Copies, Copies, SharedAccess, Barriers, Wide, Glue)
TIGHT_PROGRAM(memory_tight, 40, looped, 152, 150, Many, SharedAccess, GlobalAccess, Glue)
