// Chains of loads from shared memory: every load says where the next one goes, which is the same place.
//
// Lane i reads element i * stride, so that lanes share banks as often as the stride says.

typedef unsigned int u32;
typedef unsigned long long u64;

#define ROUNDS 1024
#define BYTES 16384

__device__ __forceinline__ u32 now() {
    u32 time;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
    return time;
}

// What an element of each kind says, and how to follow it.
struct Index32 {
    typedef u32 T;
    static __device__ __forceinline__ T place(const T *elements, u32 i) { return i; }
    static __device__ __forceinline__ T follow(const T *elements, u32 at) { return elements[at]; }
};

struct Index64 {
    typedef u64 T;
    static __device__ __forceinline__ T place(const T *elements, u32 i) { return i; }
    static __device__ __forceinline__ T follow(const T *elements, u32 at) { return elements[at]; }
};

struct Address64 {
    typedef u64 T;
    static __device__ __forceinline__ T place(const T *elements, u32 i) {
        return (u32)__cvta_generic_to_shared(elements + i);
    }
    static __device__ __forceinline__ T follow(const T *elements, u32 at) {
        T element;
        asm volatile("ld.shared.u64 %0, [%1];" : "=l"(element) : "r"(at));
        return element;
    }
};

template <class Kind> __device__ __forceinline__ void measure(typename Kind::T *sums, u32 *clocks, u32 stride) {
    typedef typename Kind::T T;
    __shared__ T elements[BYTES / sizeof(T)];
    for (u32 i = threadIdx.x; i < BYTES / sizeof(T); i += blockDim.x) elements[i] = Kind::place(elements, i);
    asm volatile("bar.sync 0;");
    u32 at = (u32)Kind::place(elements, threadIdx.x * stride);
    T seen = 0;
    u32 start = now();
    for (u32 j = 0; j < ROUNDS; ++j) {
        T element = Kind::follow(elements, at);
        at = (u32)element;
        // Uses all of the element beside the chain, or the compiler would load only the half that matters.
        if (sizeof(T) == 8) seen ^= element;
    }
    sums[threadIdx.x] = seen + at;
    u32 stop = now();
    clocks[2 * threadIdx.x] = start;
    clocks[2 * threadIdx.x + 1] = stop;
}

extern "C" __global__ void index_u32(u32 *sums, u32 *clocks, u32 stride) { measure<Index32>(sums, clocks, stride); }
extern "C" __global__ void index_u64(u64 *sums, u32 *clocks, u32 stride) { measure<Index64>(sums, clocks, stride); }
extern "C" __global__ void address_u64(u64 *sums, u32 *clocks, u32 stride) { measure<Address64>(sums, clocks, stride); }
