"""Vector elementary functions, written inline as IR: `emit(b, "sin", x)`.

For the generators of the native backend. Any number of lanes and scalars; float and double, while
half and bfloat go through float. The module of a family registers its functions (`elementary`) with
their cost and how near to the true value their results are over the whole range: the tests sample
that. NaN, infinities and signed zeros as IEEE 754 and C99 say.

A function sees only the target features that `Module.has` reports; the same text runs on any CPU
whose features include them.
"""

from __future__ import annotations

from numjet.cpu.builder.builder import TYPES, Builder, Value, like
from numjet.cpu.math import (
    error_function,
    exponential,
    gamma,
    hyperbolic,
    integer,
    logarithm,
    power,
    trigonometric,
)
from numjet.cpu.math.elementary import FUNCTIONS

# Loaded for the functions that they register.
_FAMILIES = (
    error_function, exponential, gamma, hyperbolic, integer, logarithm, power, trigonometric,
)  # fmt: skip


def emit(b: Builder, name: str, *values: Value) -> Value:
    """Write the function `name` of `values` and return its result.

    Floating functions return their argument's type; `is_finite` returns i1 lanes; `popcount`,
    `clz`, `mulhi` and `integer_pow` take integers of any width (`mulhi` unsigned).
    """
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotImplementedError(
            f"math: there is no vector code for {name!r}; add it to numjet/cpu/math"
        )
    narrow = TYPES[values[0].type].element
    if narrow in ("half", "bfloat") and name != "is_finite":
        result = function.write(b, *(b.fpext(v, "float") for v in values))
        return b.fptrunc(result, like(result.type, narrow))
    return function.write(b, *values)
