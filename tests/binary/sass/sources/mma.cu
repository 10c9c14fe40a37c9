// Warp matrix multiply-add through inline PTX: every shape and element type that a chip has.
#define INTS4(x) "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
#define INTS2(x) "r"(x[0]), "r"(x[1])
#define FLOATS4(x) "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
#define RESULT4(x) "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])

// D and C of four floats or ints, A of four, B of two registers.
#define F4_A4_B2(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : FLOATS4(f) : INTS4(a), INTS2(b))
#define F4_A2_B1(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : FLOATS4(f) : INTS2(a), "r"(b[0]))
#define H2_A4_B2(text) asm volatile(text " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : INTS4(a), INTS2(b))
#define H2_A2_B1(text) asm volatile(text " {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : INTS2(a), "r"(b[0]))
#define I4_A4_B2(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : RESULT4(d) : INTS4(a), INTS2(b))
#define I4_A2_B1(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : RESULT4(d) : INTS2(a), "r"(b[0]))
#define I2_A1_B1(text) asm volatile(text " {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(b[0]))
// Sparse: A is halved, and one more register says which half.
#define SF4_A4_B4(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : FLOATS4(f) : INTS4(a), INTS4(b), "r"(e))
#define SF4_A2_B2(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x1;" : FLOATS4(f) : INTS2(a), INTS2(b), "r"(e))
#define SH2_A4_B4(text) asm volatile(text " {%0,%1}, {%2,%3,%4,%5}, {%6,%7,%8,%9}, {%0,%1}, %10, 0x0;" : "+r"(d[0]), "+r"(d[1]) : INTS4(a), INTS4(b), "r"(e))
#define SI4_A4_B4(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : RESULT4(d) : INTS4(a), INTS4(b), "r"(e))
#define SI4_A2_B2(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;" : RESULT4(d) : INTS2(a), INTS2(b), "r"(e))

#define BEGIN                                                                                                          \
    int t = threadIdx.x, a[4], b[4], d[4], e = in[t + 999];                                                            \
    float f[4];                                                                                                        \
    for (int i = 0; i < 4; i++) { a[i] = in[t + 32 * i]; b[i] = in[t + 32 * i + 128]; d[i] = in[t + 32 * i + 256]; f[i] = fin[t + i * 32]; }
#define END for (int i = 0; i < 4; i++) { out[t + 32 * i] = d[i]; fout[t + 32 * i] = f[i]; }

extern "C" __global__ void half(const int *in, const float *fin, int *out, float *fout) {
    BEGIN
    F4_A2_B1("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
    H2_A2_B1("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16");
#if __CUDA_ARCH__ >= 800
    F4_A4_B2("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    H2_A4_B2("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16");
    F4_A4_B2("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
    F4_A2_B1("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32");
    F4_A4_B2("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
    F4_A2_B1("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32");
    SF4_A4_B4("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32");
    SF4_A2_B2("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    SH2_A4_B4("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16");
    SF4_A4_B4("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32");
    SF4_A2_B2("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
#endif
    END
}

extern "C" __global__ void integer(const int *in, const float *fin, int *out, float *fout) {
    BEGIN
    I2_A1_B1("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32");
    I2_A1_B1("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32");
    I2_A1_B1("mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32");
#if __CUDA_ARCH__ >= 800
    I4_A2_B1("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32");
    I4_A4_B2("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32");
    I4_A2_B1("mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32");
    I4_A4_B2("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32");
    SI4_A4_B4("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32");
    SI4_A2_B2("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32");
    SI4_A4_B4("mma.sp.sync.aligned.m16n8k128.row.col.s32.u4.u4.s32");
    I2_A1_B1("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc");
    I4_A4_B2("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc");
    I4_A2_B1("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc");
#endif
    END
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void doubles(const double *in, double *out) {
    int t = threadIdx.x;
    double a[8], b[4], c[4];
    for (int i = 0; i < 8; i++) a[i] = in[t + i * 32];
    for (int i = 0; i < 4; i++) { b[i] = in[t + i * 32 + 256]; c[i] = in[t + i * 32 + 512]; }
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[0]), "+d"(c[1]) : "d"(a[0]), "d"(b[0]));
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#endif
    for (int i = 0; i < 4; i++) out[t + i * 32] = c[i];
}
#endif

#if __CUDA_ARCH__ >= 890
extern "C" __global__ void bytes(const int *in, const float *fin, int *out, float *fout) {
    BEGIN
    F4_A4_B2("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32");
    F4_A4_B2("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32");
    SF4_A4_B4("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32");
    H2_A4_B2("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16");
    F4_A2_B1("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32");
    END
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define SCALED(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {0, 1}, {%11}, {0, 2};" \
                                  : FLOATS4(f) : INTS4(a), INTS2(b), "r"(b[2]), "r"(b[3]))
#define SCALED_SPARSE(text) asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0, {%13}, {0, 1}, {%14}, {0, 0};" \
                                  : FLOATS4(f) : INTS4(a), INTS4(b), "r"(e), "r"(d[2]), "r"(d[3]))
extern "C" __global__ void narrow(const int *in, const float *fin, int *out, float *fout) {
    BEGIN
    F4_A4_B2("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32");
    F4_A4_B2("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32");
    H2_A4_B2("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e2m1.f16");
    SF4_A4_B4("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32");
    SCALED("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0");
    SCALED("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0");
    SCALED("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3");
    SCALED_SPARSE("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3");
    SCALED_SPARSE("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0");
    END
}
#endif
