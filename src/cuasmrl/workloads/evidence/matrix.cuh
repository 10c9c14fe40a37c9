// Matrix products on fragments that arithmetic changes in place.
//
// A fragment is a group of registers side by side, so a new value for one of its elements has to go to the very
// register that the product before has just read: this is how sources of a product get overwritten soon.
#pragma once
#include "operations.cuh"

// r: D and C are 0..3 and 4..7; A is 8..11 and 12..15; B is 16..19 and 20..23; 24 holds a sparsity pattern.
struct Fragments {
    static constexpr int R = 25, Q = 4, P = 3;
    unsigned r[R];
    unsigned long long q[Q];
    bool p[P];
};

#define ACC(k) s.r[(D::bits(7) & 1) * 4 + k]
#define FA(k) s.r[8 + (D::bits(8) & 1) * 4 + k]
#define FB(k) s.r[16 + (D::bits(9) & 1) * 4 + k]
#define IN2(X) "r"(X(0)), "r"(X(1))
#define IN4(X) "r"(X(0)), "r"(X(1)), "r"(X(2)), "r"(X(3))
#define OUT2 "+r"(ACC(0)), "+r"(ACC(1))
#define OUT4 "+r"(ACC(0)), "+r"(ACC(1)), "+r"(ACC(2)), "+r"(ACC(3))

// D4_A4_B2: four registers of result and addend, four of A, two of B.
#define D4_A4_B2(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : OUT4 : IN4(FA), IN2(FB))
#define D4_A2_B1(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : OUT4 : IN2(FA), "r"(FB(0)))
#define D2_A4_B2(text) asm volatile(text " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : OUT2 : IN4(FA), IN2(FB))
#define D2_A2_B1(text) asm volatile(text " {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : OUT2 : IN2(FA), "r"(FB(0)))
#define D2_A1_B1(text) asm volatile(text " {%0,%1}, {%2}, {%3}, {%0,%1};" : OUT2 : "r"(FA(0)), "r"(FB(0)))
// Without addend: the same registers, first written here.
#define D4_A4_B2_ZERO(text, zero) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {" zero "," zero "," zero "," zero "};" \
    : "=r"(ACC(0)), "=r"(ACC(1)), "=r"(ACC(2)), "=r"(ACC(3)) : IN4(FA), IN2(FB))
#define SPARSE_D4_A4_B4(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : OUT4 : IN4(FA), IN4(FB), "r"(s.r[24]))
#define SPARSE_D4_A2_B2(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;" : OUT4 : IN2(FA), IN2(FB), "r"(s.r[24]))
#define SPARSE_D2_A4_B4(text) asm volatile(text " {%0,%1}, {%2,%3,%4,%5}, {%6,%7,%8,%9}, {%0,%1}, %10, 0x0;" : OUT2 : IN4(FA), IN4(FB), "r"(s.r[24]))

// Element i of any fragment, in place: reads a result, or changes what the product read.
#define ELEMENT s.r[D::bits(10) % 24]
#define RESULT s.r[D::bits(11) % 8]
struct InPlace {
    OPERATIONS
    OPERATION(asm volatile("xor.b32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("add.u32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("mad.lo.u32 %0, %0, %1, %0;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("add.f32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("mul.f32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("prmt.b32 %0, %0, %1, 0x5410;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("shl.b32 %0, %0, 3;" : "+r"(ELEMENT)))
    OPERATION(asm volatile("max.f32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("min.s32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("mov.b32 %0, %1;" : "=r"(ELEMENT) : "n"(CONSTANT)))
    OPERATION(ELEMENT = s.p[0] ? ELEMENT : RESULT)
    OPERATION(s.p[0] = (int)RESULT < (int)ELEMENT)
    OPERATION(s.p[0] = __uint_as_float(RESULT) > __uint_as_float(ELEMENT))
    OPERATION(if (s.p[0]) asm volatile("add.u32 %0, %0, %1;" : "+r"(ELEMENT) : "r"(RESULT)))
    OPERATIONS_END
};
// The same by loads, which overwrite late, and stores, which read late.
struct Through {
    OPERATIONS
    OPERATION(asm volatile("ld.shared.u32 %0, [%1];" : "=r"(s.r[8 + D::bits(10) % 16]) : "r"(s.r[24])))
    OPERATION(asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(FA(0)), "=r"(FA(1)), "=r"(FA(2)), "=r"(FA(3)) : "r"(s.r[24])))
    OPERATION(asm volatile("ld.global.u32 %0, [%1];" : "=r"(s.r[8 + D::bits(10) % 16]) : "l"(s.q[0])))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(FA(0)), "=r"(FA(1)), "=r"(FA(2)), "=r"(FA(3)) : "r"(s.r[24])))
    OPERATION(asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(FB(0)), "=r"(FB(1)) : "r"(s.r[24])))
    OPERATION(asm volatile("st.shared.u32 [%0], %1;" ::"r"(s.r[24]), "r"(RESULT)))
    OPERATION(asm volatile("st.global.u32 [%0], %1;" ::"l"(s.q[0]), "r"(RESULT)))
    OPERATION(asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(s.r[24]), "r"(ACC(0)), "r"(ACC(1)), "r"(ACC(2)), "r"(ACC(3))))
    OPERATION(asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "=r"(ELEMENT) : "r"(RESULT)))
    OPERATION(asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=r"(ELEMENT) : "r"(RESULT)))
    OPERATIONS_END
};
#if __CUDA_ARCH__ >= 800
struct Pack {
    OPERATIONS
    OPERATION(asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(FA(D::bits(12) & 3)) : "r"(RESULT), "r"(ACC(0))))
    OPERATION(asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(FB(D::bits(12) & 1)) : "r"(RESULT), "r"(ACC(1))))
    OPERATION(asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(ELEMENT) : "r"(RESULT)))
    OPERATIONS_END
};
#else
using Pack = Nothing;
#endif

// A list with one product, and programs around it.
#define PRODUCT(name, ...)                                                                                             \
    struct name {                                                                                                      \
        OPERATIONS                                                                                                     \
        OPERATION(__VA_ARGS__)                                                                                         \
        OPERATIONS_END                                                                                                 \
    };
template <class L> using Often = Mixture<L, L, L, L, L, L, L, L>;
#define MATRIX_PROGRAMS(name, seed, length, ...)                                                                       \
    PRODUCT(name##_product, __VA_ARGS__)                                                                               \
    PROGRAM(name, together, seed, length, Fragments, Often<name##_product>, InPlace, Pack)                             \
    PROGRAM(name##_memory, together, seed + 2, length / 2, Fragments, Often<name##_product>, Through, InPlace)
