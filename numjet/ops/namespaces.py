"""What a formula of arrays is written with, so that it stands in one place for two uses.

`formula(F, *values)` uses operators, the functions of `F`, and `F.loop`. With `NUMPY` it is a
primitive's reference, on arrays; with `TRACED` it becomes what a program computes. `reference` and
`lowering` make these of it: values are float64 of one shape there, so that results of narrower
types are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.structural import broadcast_in_dim, convert, full
from numjet.ops.arithmetic import abs as absolute, max as maximum, min as minimum, mul
from numjet.ops.logic import floor
from numjet.ops.reduce import reduce_or
from numjet.ops.shape import select_n
from numjet.ops.transcendental import exp, expm1, log, log1p, pow as power, sqrt
from numjet.ops.while_loop import while_loop


class Traced:
    """The functions that formulas use, of traced arrays; `ops.special` adds its own. `single`: the
    results are wanted in float32 or less, which ends loops earlier."""

    single = False

    exp, expm1, log, log1p, sqrt = map(staticmethod, (exp, expm1, log, log1p, sqrt))
    floor, abs = map(staticmethod, (floor, absolute))

    @classmethod
    def power(cls, x: Any, y: Any) -> Any:
        """x to the power y, of x >= 0. Logarithms lose some digits, which single precision has."""
        return exp(mul(y, log(x))) if cls.single else power(x, y)

    @staticmethod
    def minimum(x: Any, bound: float) -> Any:
        return minimum(x, full(x.aval.shape, bound, x.aval.dtype))

    @staticmethod
    def maximum(x: Any, bound: float) -> Any:
        return maximum(x, full(x.aval.shape, bound, x.aval.dtype))

    @staticmethod
    def where(mask: Any, x: Any, y: Any) -> Any:
        x, y = (
            full(mask.aval.shape, v, dtypes.float64) if isinstance(v, float) else v for v in (x, y)
        )
        return select_n(mask, y, x)

    @staticmethod
    def loop(step: Callable, going: Any, state: Sequence[Any]) -> Sequence[Any]:
        """`state, going = step(*state)` for the elements that are `going`, while there are any."""

        def body(carry: tuple) -> tuple:
            going, state = carry
            new, more = step(*state)
            kept = [select_n(going, old, y) for old, y in zip(state, new, strict=True)]
            return select_n(going, going, more), kept

        return while_loop(
            lambda carry: reduce_or(carry[0], tuple(range(carry[0].ndim))),
            body,
            (going, list(state)),
        )[1]


class Numpy:
    """The same of NumPy arrays."""

    single = False

    exp, expm1, log, log1p, sqrt = np.exp, np.expm1, np.log, np.log1p, np.sqrt
    power, floor, abs, where = np.power, np.floor, np.abs, staticmethod(np.where)
    minimum, maximum = np.minimum, np.maximum

    @staticmethod
    def erfc(x: Any) -> Any:
        from scipy import special

        return special.erfc(x)

    @staticmethod
    def digamma(x: Any) -> Any:
        from scipy import special

        return special.digamma(x)

    @staticmethod
    def lgamma(x: Any) -> Any:
        from scipy import special

        return special.gammaln(x)

    @staticmethod
    def loop(step: Callable, going: Any, state: Sequence[Any]) -> Sequence[Any]:
        state = list(state)
        while np.any(going):
            new, more = step(*state)
            state = [np.where(going, y, old) for old, y in zip(state, new, strict=True)]
            going = going & more
        return state


def lowering(namespace: type[Traced], formula: Callable) -> Callable:
    """The function of traced arrays of one dtype, which have one shape or none."""

    def lowered(*operands: Any) -> Any:
        dtype = operands[0].aval.dtype
        shape = max([x.aval.shape for x in operands], key=len)
        weak = all(x.aval.weak_type for x in operands)
        functions = type("functions", (namespace,), {"single": dtype.itemsize < 8})
        wide = [convert(x, dtypes.float64) for x in operands]
        wide = [x if x.aval.shape == shape else broadcast_in_dim(x, shape, ()) for x in wide]
        with config.enable_x64(True):  # numbers beside doubles are doubles
            out = formula(functions, *wide)
        return convert(out, dtype, weak)

    return lowered


def reference(formula: Callable) -> Callable:
    """The function of NumPy arrays."""

    def evaluated(*operands: np.ndarray, **_: Any) -> np.ndarray:
        wide = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in operands])
        with np.errstate(all="ignore"):
            return np.asarray(formula(Numpy, *wide)).astype(operands[0].dtype)

    return evaluated
