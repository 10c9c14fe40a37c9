// Locks: who spins must let the others go on.

__device__ void lock(int *l) { while (atomicCAS(l, 0, 1) != 0) __nanosleep(20); __threadfence(); }
__device__ void unlock(int *l) { __threadfence(); atomicExch(l, 0); }

extern "C" __global__ void warps_take_turns(int *l, volatile int *counter) {
    if ((threadIdx.x & 31) == 0) {
        lock(l);
        *counter = *counter + 1;
        unlock(l);
    }
}

extern "C" __global__ void lanes_take_turns(int *l, volatile int *counter) {
    bool done = false;
    while (!done) {
        if (atomicCAS(l, 0, 1) == 0) {
            *counter = *counter + 1;
            __threadfence();
            atomicExch(l, 0);
            done = true;
        }
    }
}

extern "C" __global__ void naive_lanes(int *l, volatile int *counter) {
    lock(l);
    *counter = *counter + 1;
    unlock(l);
}

extern "C" __global__ void wait_for_a_later_block(volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        while (*flag == 0) {}
        out[threadIdx.x] = *flag;
    } else if (threadIdx.x == 0) {
        *flag = 5;
    }
}
