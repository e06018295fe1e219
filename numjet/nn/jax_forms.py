"""Functions in the operations that JAX makes them of, for who looks at jaxprs (`api.shown`).

What runs has fewer operations, or rules of its own. For `activations` and `normalization`, where
`make_jaxpr` traces.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.shown import Shown, form
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import add, multiply, negative, power, subtract
from numjet.numpy.logic import equal, greater, less, where
from numjet.numpy.promote import as_arrays, cast, one_array, promote_inexact
from numjet.numpy.reductions import max as max_, sum as sum_
from numjet.numpy.shape import expand_dims
from numjet.numpy.unary import exp, expm1, isfinite, log, log1p, tanh
from numjet.ops.arrange import stop_gradient


def gelu_in_jax(x: Any, approximate: bool) -> Any:
    """x / 2 (1 + tanh(...)), or by erfc."""
    if approximate:
        scale = scalar(math.sqrt(2 / math.pi), x.aval.dtype)
        inner = multiply(scale, add(x, multiply(0.044715, power(x, 3))))
        return multiply(x, multiply(0.5, add(1.0, tanh(inner))))
    x = cast(x, x.aval.dtype, False)
    return lax.mul(multiply(0.5, x), lax.erfc(multiply(negative(x), math.sqrt(0.5))))


def logsumexp_in_jax(x: Any, axes: tuple, b: Any, keepdims: bool, return_sign: bool) -> Any:
    """The logarithm of the absolute value of the sum, and its sign."""
    high = max_(x, axes, initial=-np.inf)
    finite = isfinite(high)
    zero = lax.full(high.aval.shape, 0, high.aval.dtype)
    high = stop_gradient(lax.select(finite, high, zero))
    grown = exp(subtract(x, expand_dims(high, axes) if axes else high))
    if b is not None:
        grown = multiply(grown, b)
    total = sum_(grown, axes)
    sign = lax.sign(total)
    out = add(log(lax.abs(total)), high)
    if keepdims:
        out, sign = expand_dims(out, axes), expand_dims(sign, axes)
    return (out, sign) if return_sign else out


def one_hot_in_jax(x: Any, num_classes: int, *, dtype: Any, axis: int) -> Any:
    """A comparison with the numbers of the classes along an axis of their own."""
    (x,) = as_arrays("one_hot", x)
    kind, shape = x.aval.dtype, [1] * (x.aval.ndim + 1)
    shape[axis] = num_classes
    return cast(equal(expand_dims(x, axis), lax.broadcasted_iota(kind, tuple(shape), axis)), dtype)




@form("elu")
def elu_in_jax(x: Any, alpha: Any = 1.0) -> Any:
    """Two comparisons, as JAX makes them."""
    (x,) = promote_inexact(one_array("elu", x))
    above = greater(x, 0)
    return where(above, x, multiply(alpha, expm1(where(greater(x, 0), 0.0, x))))


_elu = Shown(elu_in_jax, "elu")


@form("log1mexp")
def log1mexp_in_jax(x: Any) -> Any:
    """Both logarithms everywhere."""
    small = less(x, log(2.0).astype(x.dtype))
    near = log(negative(expm1(negative(x))))
    return where(small, near, log1p(negative(exp(negative(x)))))


@form("selu")
def selu_in_jax(x: Any) -> Any:
    """The scale times a call of `elu`."""
    (x,) = promote_inexact(one_array("selu", x))
    return multiply(1.0507009873554805, _elu.call((x, 1.6732632423543772), {}))
