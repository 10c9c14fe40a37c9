// Waits that no register explains: for fences, for strong accesses, for more registers.

// A value is written, a fence passed, a flag raised.
extern "C" __global__ void release(int* flag, int* data, int x) {
    int t = threadIdx.x;
    data[t] = x * t;
    asm volatile("fence.sc.cta;" ::: "memory");
    flag[t] = 1;
    flag[t + 64] = 2;
    data[t + 64] = x + t;
    __threadfence();
    atomicAdd(flag + 128, 1);
    data[t + 128] = x ^ t;
    __threadfence_system();
    atomicExch(flag + 129, x);
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(flag + 130) : "memory");
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag + 131), "r"(x) : "memory");
}

// Behind a fence: what other lanes and blocks wrote.
extern "C" __global__ void acquire(int* out, const int* in, volatile int* flag, int x) {
    __shared__ int box[256];
    int t = threadIdx.x;
    box[t] = x + t;
    box[t + 64] = x * t;
    int seen = flag[t];
    asm volatile("fence.sc.cta;" ::: "memory");
    int a = box[t ^ 1], b = box[(t ^ 1) + 64];
    int late = flag[t + 64];
    int first, second;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(first) : "l"(in + t) : "memory");
    int plain = in[t + 32];
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(second) : "l"(in + t + 64) : "memory");
    out[t] = a + b;
    out[t + 64] = seen + late;
    out[t + 128] = first * second + plain;
}

// Atomics right behind a fence; addresses that strong accesses found.
extern "C" __global__ void chased(int** heads, int* out, int x) {
    __shared__ int box[512];
    int t = threadIdx.x, *p, *q, old;
    unsigned slot, to = (unsigned)__cvta_generic_to_shared(box);
    out[t] = x;
    asm volatile("fence.sc.cta;" ::: "memory");
    asm volatile("atom.relaxed.cta.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(out + t + 128), "r"(x) : "memory");
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(p) : "l"(heads + t) : "memory");
    int a = p[0], b = p[1];
    asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(q) : "l"(heads + t + 64), "l"(p) : "memory");
    q[0] = a;
    q[1] = b + old;
    asm volatile("atom.relaxed.cta.shared.exch.b32 %0, [%1], %2;" : "=r"(slot) : "r"(to + t * 4), "r"(x) : "memory");
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(slot), "r"(x) : "memory");
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + t * 8), "r"(a) : "memory");
    __syncthreads();
    out[t + 64] = box[t ^ 1];
}

// Strong accesses and atomics, and what must stay behind them.
extern "C" __global__ void locks(int* lock, int* out, const int* in, int x) {
    __shared__ int count;
    int t = threadIdx.x, old, more;
    if (t == 0) count = 0;
    __syncthreads();
    asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(lock) : "memory");
    int guarded = in[t] + x;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 3;" : "=r"(more) : "l"(lock + 1) : "memory");
    int mine = atomicAdd(&count, guarded);
    int beside = in[t + 64];
    __threadfence_block();
    out[t] = old + more + mine;
    out[t + 64] = guarded ^ beside;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(lock), "r"(0) : "memory");
    while (atomicCAS(lock + 2, x, x + 1) != x) __nanosleep(20);
    out[t + 128] = in[t + 128];
}

#if __CUDA_ARCH__ >= 900
// Fences between the ways to memory, and a barrier of the cluster.
extern "C" __global__ void proxies(int* out, const int* in, int x) {
    __shared__ int box[128];
    int t = threadIdx.x;
    box[t] = in[t] + x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    int a = box[t ^ 3];
    asm volatile("fence.proxy.async;" ::: "memory");
    out[t] = a;
    int b = in[t + 64];
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    out[t + 64] = b + box[t ^ 5];
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[t + 128] = in[t + 128] * a;
}
#endif

// More registers for one half of the block (architecture-specific targets only).
#ifdef __CUDA_ARCH_SPECIFIC__
extern "C" __global__ void __maxnreg__(168) registers(int* out, const int* in, int n) {
    int t = threadIdx.x, sum = in[t];
    if (t < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        sum = sum * n + in[t + 64];
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        for (int i = 0; i < n; i++) sum = sum * 5 + in[t + i];
    }
    out[t] = sum;
}
#endif
