// Local memory: spilled registers, and arrays with an index that is not known before.
#include "operations.cuh"

using Crowd = State<60, 16, 20>;
TIGHT_PROGRAM(spills_24, 24, looped, 841, 200, Many, Glue)
TIGHT_PROGRAM(spills_32, 32, looped, 842, 200, Crowd, Glue, Half)
TIGHT_PROGRAM(spills_40, 40, looped, 843, 200, Crowd, Wide, Glue)
TIGHT_PROGRAM(spills_predicates, 32, looped, 844, 200, Crowd, Logic, Logic, Compare, Guarded)
TIGHT_PROGRAM(spills_memory, 32, looped, 845, 150, Crowd, Memory, Glue)

template <class T, int SIZE> INLINE void indexed(const unsigned *in, unsigned *out, int n) {
    T array[SIZE];
    unsigned x = in[threadIdx.x], y = in[threadIdx.x + 256];
    for (int i = 0; i < SIZE; i++) array[i] = (T)(x + i);
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        array[x % SIZE] += (T)y;
        y = y * 3 + (unsigned)array[(x + y) % SIZE];
        if (y & 1) array[y % SIZE] = array[x % SIZE];
        asm("mad.lo.u32 %0, %0, %1, %1;" : "+r"(x) : "r"(y));
        array[(y >> 3) % SIZE] = (T)(x ^ y);
        x = (x << 3) + (unsigned)array[(y ^ x) & (SIZE / 2 - 1)];
    }
    out[threadIdx.x] = x + (unsigned)array[y % SIZE];
}
extern "C" __global__ void indexed_words(const unsigned *in, unsigned *out, int n) { indexed<unsigned, 64>(in, out, n); }
extern "C" __global__ void indexed_bytes(const unsigned *in, unsigned *out, int n) { indexed<unsigned char, 64>(in, out, n); }
extern "C" __global__ void indexed_shorts(const unsigned *in, unsigned *out, int n) { indexed<short, 96>(in, out, n); }
extern "C" __global__ void indexed_longs(const unsigned *in, unsigned *out, int n) { indexed<unsigned long long, 32>(in, out, n); }
extern "C" __global__ void indexed_floats(const unsigned *in, unsigned *out, int n) { indexed<float, 48>(in, out, n); }
extern "C" __global__ void indexed_doubles(const unsigned *in, unsigned *out, int n) { indexed<double, 24>(in, out, n); }

struct LocalAccess {
    OPERATIONS
    OPERATION(s.array[ra & 63] = rb)
    OPERATION(rd = s.array[ra & 63])
    OPERATION(s.array[(ra >> 3) & 31] = ra)
    OPERATION(rd = s.array[ra % 63] + rb)
    OPERATION(if (pa) s.array[CONSTANT & 63] = ra)
    OPERATION(*(uint4 *)&s.array[ra & 60] = make_uint4(ra, rb, rc, ra))
    OPERATION(rd = ((unsigned char *)s.array)[ra & 255])
    OPERATIONS_END
};
struct WithArray : State<5, 2, 4> { alignas(16) unsigned array[64]; };
PROGRAM(local_mixed, looped, 846, 150, WithArray, LocalAccess, Glue)
PROGRAM(local_wide, looped, 847, 150, WithArray, LocalAccess, Half, Wide, Integer)
