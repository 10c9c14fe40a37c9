// 32 KiB of parameters: sizes no longer fit KPARAM_INFO, so ptxas writes KPARAM_INFO_V2.
struct First { int a[4090]; };
struct Second { int a[4000]; };
struct Three { char a[3]; };

extern "C" __global__ void large(const __grid_constant__ First a, const __grid_constant__ Second b, float *x, int i,
                                 Three c, double d) {
    x[threadIdx.x] = a.a[i] + b.a[i] + c.a[i] + d;
}
