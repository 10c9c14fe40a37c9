// Products of doubles.
#include "matrix.cuh"

#if __CUDA_ARCH__ >= 800
// q: D and C are 0..3, A is 4..11, B is 12..15.
struct DoubleFragments {
    static constexpr int R = 4, Q = 16, P = 3;
    unsigned r[R];
    unsigned long long q[Q];
    bool p[P];
};
#define Q_ELEMENT s.q[D::bits(10) % 16]
#define Q_RESULT s.q[D::bits(11) % 4]
struct InPlaceDouble {
    OPERATIONS
    OPERATION(asm volatile("add.f64 %0, %0, %1;" : "+l"(Q_ELEMENT) : "l"(Q_RESULT)))
    OPERATION(asm volatile("mul.f64 %0, %0, %1;" : "+l"(Q_ELEMENT) : "l"(Q_RESULT)))
    OPERATION(asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+l"(Q_ELEMENT) : "l"(Q_RESULT)))
    OPERATION(asm volatile("add.u64 %0, %0, %1;" : "+l"(Q_ELEMENT) : "l"(Q_RESULT)))
    OPERATION(asm volatile("xor.b64 %0, %0, %1;" : "+l"(Q_ELEMENT) : "l"(Q_RESULT)))
    OPERATION(asm volatile("mad.wide.u32 %0, %1, %2, %0;" : "+l"(Q_ELEMENT) : "r"(ra), "r"(rb)))
    OPERATION(asm volatile("mov.b64 %0, %1;" : "=l"(Q_ELEMENT) : "n"(CONSTANT)))
    OPERATION(rd = (unsigned)Q_RESULT + ra)
    OPERATION(pd = __longlong_as_double(Q_RESULT) < __longlong_as_double(Q_ELEMENT))
    OPERATION(asm volatile("ld.shared.u64 %0, [%1];" : "=l"(Q_ELEMENT) : "r"(ra)))
    OPERATION(asm volatile("st.shared.u64 [%0], %1;" ::"r"(ra), "l"(Q_RESULT)))
    OPERATIONS_END
};
#define IN_Q4(k) "l"(s.q[k]), "l"(s.q[k + 1]), "l"(s.q[k + 2]), "l"(s.q[k + 3])
#define OUT_Q4 "+l"(s.q[0]), "+l"(s.q[1]), "+l"(s.q[2]), "+l"(s.q[3])
#define DOUBLE_PROGRAM(name, seed, length, ...)                                                                        \
    PRODUCT(name##_product, __VA_ARGS__)                                                                               \
    PROGRAM(name, together, seed, length, DoubleFragments, name##_product, name##_product, name##_product,             \
            name##_product, InPlaceDouble)

#if __CUDA_ARCH__ >= 1200
// Some six hundred cycles pass behind each product, written as fifty instructions that never execute.
#define LENGTH 30
#else
#define LENGTH 200
#endif
DOUBLE_PROGRAM(f64_m8n8k4, 501, LENGTH, asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+l"(s.q[(D::bits(7) & 1) * 2]), "+l"(s.q[(D::bits(7) & 1) * 2 + 1]) : "l"(s.q[4 + (D::bits(8) & 7)]), "l"(s.q[12 + (D::bits(9) & 3)])))
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
DOUBLE_PROGRAM(f64_m16n8k4, 505, 120, asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : OUT_Q4 : "l"(s.q[4]), "l"(s.q[5]), "l"(s.q[12])))
DOUBLE_PROGRAM(f64_m16n8k8, 511, 120, asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : OUT_Q4 : IN_Q4(4), "l"(s.q[12]), "l"(s.q[13])))
DOUBLE_PROGRAM(f64_m16n8k16, 515, 120, asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
               : OUT_Q4 : IN_Q4(4), IN_Q4(8), IN_Q4(12)))
#endif
#endif
