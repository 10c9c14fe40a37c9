// 32-bit integers, floats and predicates in all orders: the pairs that everything else is measured against.
#include "operations.cuh"

PROGRAM(integers_chain, looped, 11, 300, Chain, Integer, Compare)
PROGRAM(integers_few, looped, 12, 400, Few, Integer, Compare)
PROGRAM(floats_chain, looped, 13, 300, Chain, Glue)
PROGRAM(floats_few, looped, 14, 400, Few, Glue)
PROGRAM(halves_few, looped, 15, 300, Few, Glue, Half)
PROGRAM(addresses, looped, 16, 300, Few, Glue, Memory)
TIGHT_PROGRAM(tight, 32, looped, 17, 400, Many, Glue, Half)
