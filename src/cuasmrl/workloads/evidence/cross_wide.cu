// Every result of 64 bits before every use: whole, and each half alone.
#include "cross.cuh"

struct WideValues {
    OPERATIONS
    OPERATION(Q2("add.u64"))
    OPERATION(Q2("xor.b64"))
    OPERATION(asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(qd) : "r"(ra), "r"(rb), "l"(qa)))
    OPERATION(asm("mul.wide.s32 %0, %1, %2;" : "=l"(qd) : "r"(ra), "r"(rb)))
    OPERATION(asm("shl.b64 %0, %1, 5;" : "=l"(qd) : "l"(qa)))
    OPERATION(qd = pa ? qa : qb)
    OPERATION(qd = qa + ((unsigned long long)rb << 2))
    OPERATION(Q2("add.f64"))
    OPERATION(Q2("mul.f64"))
    OPERATION(Q3("fma.rn.f64"))
    OPERATION(asm volatile("mov.b64 %0, %1;" : "=l"(qd) : "l"(qa)))
    OPERATION(asm volatile("mov.u64 %0, %%clock64;" : "=l"(qd)))
#if __CUDA_ARCH__ >= 1000
    OPERATION(Q2("add.rn.f32x2"))
    OPERATION(Q2("mul.rn.f32x2"))
    OPERATION(Q3("fma.rn.f32x2"))
#endif
    OPERATIONS_END
};
#define LOW (unsigned)qa
#define HIGH (unsigned)(qa >> 32)
#define BOTH_HALVES(text) asm(text " %0, %0, %1;" : "+r"(rd) : "r"(LOW)); asm(text " %0, %0, %1;" : "+r"(rd) : "r"(HIGH))
#define BOTH_HALVES3(text) asm(text " %0, %0, %1, %2;" : "+r"(rd) : "r"(LOW), "r"(rb)); asm(text " %0, %0, %1, %2;" : "+r"(rd) : "r"(HIGH), "r"(rb))
struct WideTakers {
    OPERATIONS
    OPERATION(BOTH_HALVES("add.u32"))
    OPERATION(BOTH_HALVES3("lop3.b32 %0, %0, %1, %2, 0x6a; mad.lo.u32"))
    OPERATION(BOTH_HALVES3("shf.l.wrap.b32"))
    OPERATION(BOTH_HALVES3("prmt.b32"))
    OPERATION(BOTH_HALVES("mul.hi.u32"))
    OPERATION(BOTH_HALVES("max.s32"))
    OPERATION(BOTH_HALVES("add.f32"))
    OPERATION(BOTH_HALVES3("fma.rn.f32"))
    OPERATION(BOTH_HALVES("mul.f32"))
    OPERATION(BOTH_HALVES("add.rn.f16x2"))
    OPERATION(rd = pa ? LOW : rd; rd = pb ? HIGH : rd)
    OPERATION(unsigned x; asm("ex2.approx.ftz.f32 %0, %1;" : "=r"(x) : "r"(HIGH)); rd ^= x)
    OPERATION(unsigned x; asm("popc.b32 %0, %1;" : "=r"(x) : "r"(LOW)); rd += x)
    OPERATION(pd = (int)LOW < (int)rb; rd = pd ? rd : HIGH)
    OPERATION(pd = __uint_as_float(LOW) < __uint_as_float(HIGH); rd = pd ? rd : rc)
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(LOW), "r"(HIGH)))
    OPERATION(asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "=r"(rd) : "r"(LOW)))
    OPERATION(asm volatile("st.shared.u64 [%0], %1;" ::"r"(rb), "l"(qa)))
    OPERATION(asm volatile("st.global.u64 [%0], %1;" ::"l"(qb), "l"(qa)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(qa), "r"(rb)))
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(rd) : "l"(qa)))
    OPERATION(asm volatile("red.global.add.u32 [%0], %1;" ::"l"(qa), "r"(rb)))
    OPERATION(asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(qd) : "l"(qa), "l"(qb)))
    OPERATION(pd = qa < qb; rd = pd ? rd : rc)
    OPERATION(pd = __longlong_as_double(qa) < __longlong_as_double(qb); rd = pd ? rd : rc)
    OPERATION(unsigned x; asm("cvt.rn.f32.f64 %0, %1;" : "=r"(x) : "l"(qa)); rd ^= x)
    OPERATION(unsigned x; asm("cvt.rzi.s32.f64 %0, %1;" : "=r"(x) : "l"(qa)); rd += x)
    OPERATION(asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(qd) : "r"(rb), "r"(rc), "l"(qa)))
    OPERATION(asm("mul.wide.u32 %0, %1, %2;" : "=l"(qd) : "r"(LOW), "r"(HIGH)))
    OPERATIONS_END
};

using Narrow = State<4, 3, 2>;
using Broad = State<6, 6, 3>;
CROSS(wide_values, WideValues, WideValues, Narrow, 1060)
CROSS(wide_takers, WideValues, WideTakers, Narrow, 1070)
CROSS(wide_takers_broad, WideValues, WideTakers, Broad, 1080)
