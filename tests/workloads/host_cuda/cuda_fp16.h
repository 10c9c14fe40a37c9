// Half precision on the host compiler's own type, as far as the workloads use it.

#pragma once

#include "host_cuda.h"

using __half = _Float16;
struct __half2 {
    __half x, y;
};

inline __half __float2half_rn(float value) { return (__half)value; }
inline __half2 __half2half2(__half value) { return {value, value}; }
// A double holds the product of two halves and its sum with a third exactly, so this rounds once.
inline __half __hfma(__half a, __half b, __half c) { return (__half)((double)a * (double)b + (double)c); }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
