// Texture and surface accesses, which stay undeclared: their operand widths depend on masks and dimensions.
extern "C" __global__ void textures(unsigned long long texture, unsigned long long surface, float4 *out, int n) {
    float x = n * 0.5f, y = n * 0.25f;
    int t = threadIdx.x;
    float4 v;
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(texture), "f"(x + t), "f"(y));
    out[t] = v;
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(texture), "r"(t));
    out[t + 32] = v;
    asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], %3;" ::"l"(surface), "r"(t), "r"(n), "r"(t) : "memory");
}
