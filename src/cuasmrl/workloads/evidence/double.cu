// Double precision, alone and among integers, floats and conversions.
#include "operations.cuh"

struct Double {
    OPERATIONS
    OPERATION(Q2("add.f64"))
    OPERATION(Q2("sub.f64"))
    OPERATION(Q2("mul.f64"))
    OPERATION(Q3("fma.rn.f64"))
    OPERATION(Q3("fma.rz.f64"))
    OPERATION(asm("fma.rn.f64 %0, %1, 0d3fe62e42fefa39ef, %2;" : "=l"(qd) : "l"(qa), "l"(qb)))
    OPERATIONS_END
};
struct DoubleCompare {
    OPERATIONS
    OPERATION(pd = __longlong_as_double(qa) < __longlong_as_double(qb))
    OPERATION(pd = __longlong_as_double(qa) >= __longlong_as_double(qb) && pa)
    OPERATION(pd = !(__longlong_as_double(qa) == __longlong_as_double(qb)))
    OPERATION(qd = __longlong_as_double(qa) < __longlong_as_double(qb) ? qa : qb)
    OPERATION(Q2("min.f64"))
    OPERATION(Q2("max.f64"))
    OPERATION(Q1("neg.f64"))
    OPERATION(Q1("abs.f64"))
    OPERATION(if (pa) asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+l"(qd) : "l"(qa)))
    OPERATION(if (pa) asm volatile("add.f64 %0, %0, %1;" : "+l"(qd) : "l"(qa)))
    OPERATIONS_END
};
struct DoubleConvert {
    OPERATIONS
    OPERATION(R_FROM_Q("cvt.rn.f32.f64"))
    OPERATION(Q_FROM_R("cvt.f64.f32"))
    OPERATION(R_FROM_Q("cvt.rzi.s32.f64"))
    OPERATION(R_FROM_Q("cvt.rni.u32.f64"))
    OPERATION(Q_FROM_R("cvt.rn.f64.s32"))
    OPERATION(Q_FROM_R("cvt.rn.f64.u32"))
    OPERATION(Q1("cvt.rzi.s64.f64"))
    OPERATION(Q1("cvt.rn.f64.u64"))
    OPERATION(Q1("cvt.rmi.f64.f64"))
    OPERATION(Q1("rcp.approx.ftz.f64"))
    OPERATION(Q1("rsqrt.approx.ftz.f64"))
    OPERATIONS_END
};

PROGRAM(double_chain, looped, 71, 200, Chain, Double)
PROGRAM(double_few, looped, 72, 250, Few, Double, Double, Integer, Compare)
PROGRAM(double_some, looped, 73, 250, Some, Double, Wide, Single)
PROGRAM(double_compare, looped, 74, 200, Few, Double, DoubleCompare, Compare)
PROGRAM(double_convert, looped, 75, 150, Few, Double, DoubleConvert, Integer)
PROGRAM(double_memory, looped, 76, 150, Few, Double, Double, Memory)
TIGHT_PROGRAM(double_tight, 48, looped, 77, 200, Many, Double, DoubleCompare, Wide, Glue)

// Division and root, which call a function for the rare cases.
extern "C" __global__ void quotients(const double *in, double *out, int n) {
    double x = in[threadIdx.x], y = in[threadIdx.x + 256];
    for (int i = 0; i < n; i++) {
        x = x / y + sqrt(y);
        y = y * 0.5 + rsqrt(x) + fmod(x, 3.0);
        if (x > y) y = exp(x) - log(y) * sin(x);
    }
    out[threadIdx.x] = x + y;
}
