"""numba under types: its decorators have none, and strict checking wants to see through them."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.extending import intrinsic

# Columns of every warp-level matrix instruction; what the vector below is as long as.
COLUMNS = 8


F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on first call and keep the result on disk.

    numba looks for changes only in the file of the function it kept, so the compiled functions that call
    each other stand in one file.
    """
    return cast(F, numba.njit(cache=True)(function))


def _vector(context: Any, builder: Any, array_type: Any, array: Any, start: Any) -> Any:
    """Address of eight neighbours in a flat array of 32-bit integers."""
    data = context.make_array(array_type)(context, builder, array).data
    kind = ir.VectorType(ir.IntType(32), COLUMNS)
    return builder.bitcast(builder.gep(data, [start]), kind.as_pointer())


def _spread(builder: Any, value: Any) -> Any:
    kind = ir.VectorType(ir.IntType(32), COLUMNS)
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(kind, [0] * COLUMNS))


def _row(combine: str, accumulate: bool) -> Any:
    # Written in LLVM's own words: a loop of eight is unrolled before the vectoriser sees it, and the
    # products are half of the work of a matrix instruction.
    def typed(typing: Any, value: Any, row: Any, row_start: Any, out: Any, out_start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scalar, row_array, row_at, out_array, out_at = arguments
            source = builder.load(_vector(context, builder, signature.args[1], row_array, row_at), align=4)
            target = _vector(context, builder, signature.args[3], out_array, out_at)
            result = getattr(builder, combine)(_spread(builder, scalar), source)
            if accumulate:
                result = builder.add(result, builder.load(target, align=4))
            builder.store(result, target, align=4)
            return context.get_dummy_value()

        integers = numba.types
        return integers.void(integers.int32, row, integers.intp, out, integers.intp), generate

    return intrinsic(typed)


# f(value, row, row_start, out, out_start), over eight neighbours: out = value * row, value + row,
# and out += value * row.
multiply_row = _row("mul", accumulate=False)
add_row = _row("add", accumulate=False)
multiply_add_row = _row("mul", accumulate=True)


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    double = numba.types.float64
    return double(double, double, double), generate


# a * b + c with one rounding.
fused_multiply_add = intrinsic(_fused)
