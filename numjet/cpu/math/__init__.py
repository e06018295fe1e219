"""Vector elementary functions, written inline as IR: `emit(b, "sin", x)`.

For the generators of the native backend. Any number of lanes and scalars; float and double, while
half and bfloat go through float. Results are within 2 ulp of the true value over the whole range
(the tests sample it); `ACCURATE` names the functions for which that holds, the others come within
a few more. NaN, infinities and signed zeros as IEEE 754 and C99 say.

A function sees only the target features that `Module.has` reports; the same text runs on any CPU
whose features include them.
"""

from __future__ import annotations

from collections.abc import Callable

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

FUNCTIONS: dict[str, Callable[..., Value]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "logistic": exponential.logistic,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": trigonometric.asin,
    "acos": trigonometric.acos,
    "atan": trigonometric.atan,
    "atan2": trigonometric.atan2,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erf_inv": error_function.erf_inv,
    "sqrt": power.sqrt,
    "rsqrt": power.rsqrt,
    "cbrt": power.cbrt,
    "pow": power.pow,
    "fmod": power.fmod,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "floor": integer.floor,
    "ceil": integer.ceil,
    "trunc": integer.trunc,
    "round": integer.round_away,
    "round_even": integer.round_even,
    "sign": integer.sign,
    "copysign": integer.copysign,
    "is_finite": integer.is_finite,
    "popcount": integer.popcount,
    "clz": integer.clz,
    "mulhi": integer.mulhi,
    "integer_pow": integer.integer_pow,
}

ACCURATE = (
    "exp", "exp2", "expm1", "logistic", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "erf", "sqrt", "rsqrt", "cbrt", "pow",
    "asinh", "acosh", "atanh", "fmod",
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
        result = function(b, *(b.fpext(v, "float") for v in values))
        return b.fptrunc(result, like(result.type, narrow))
    return function(b, *values)
