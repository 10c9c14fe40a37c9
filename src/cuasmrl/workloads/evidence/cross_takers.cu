// Every fixed result before every instruction that takes a value to memory, another lane or a slower unit.
#include "cross.cuh"

using Narrow = State<6, 2, 2>;
using Broad = State<11, 3, 3>;
CROSS(takers_narrow, Values, Takers, Narrow, 1020)
CROSS(takers_broad, Values, Takers, Broad, 1030)
