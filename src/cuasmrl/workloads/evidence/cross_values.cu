// Every fixed result before every use of a 32-bit value.
#include "cross.cuh"

using Narrow = State<4, 2, 2>;
using Broad = State<9, 3, 3>;
CROSS(values_narrow, Values, Values, Narrow, 1000)
CROSS(values_broad, Values, Values, Broad, 1010)
