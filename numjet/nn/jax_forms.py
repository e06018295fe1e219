"""Functions in the operations that JAX makes them of, for who looks at jaxprs.

`api.compiled.shown` writes them. What runs has fewer operations, or rules of its own. For
`activations` and `normalization`, where `make_jaxpr` traces.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import Shown, form
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import add, multiply, negative, power, subtract
from numjet.numpy.logic import equal, greater, less, where
from numjet.numpy.promote import as_arrays, cast, one_array, promote_inexact
from numjet.numpy.ranges import tril
from numjet.numpy.reductions import max as max_, sum as sum_
from numjet.numpy.shape import expand_dims
from numjet.numpy.unary import exp, expm1, isfinite, log, log1p, tanh
from numjet.ops.arrange import stop_gradient
from numjet.ops.shape import copy


def gelu_in_jax(x: Any, approximate: bool) -> Any:
    """x / 2 (1 + tanh(...)), or by erfc."""
    if approximate:
        scale = scalar(math.sqrt(2 / math.pi), x.aval.dtype)
        inner = multiply(scale, add(x, multiply(0.044715, power(x, 3))))
        return multiply(x, multiply(0.5, add(1.0, tanh(inner))))
    x = cast(x, x.aval.dtype, False)
    return copy(lax.mul(multiply(0.5, x), lax.erfc(multiply(negative(x), math.sqrt(0.5)))))


def logsumexp_in_jax(x: Any, axes: tuple, b: Any, keepdims: bool, return_sign: bool) -> Any:
    """The logarithm of the absolute value of the sum, and its sign."""
    high = max_(x, axes, keepdims=keepdims, initial=-np.inf)
    finite = isfinite(high)
    zero = lax.full(high.aval.shape, 0, high.aval.dtype)
    high = stop_gradient(lax.select(finite, high, zero))
    grown = exp(subtract(x, expand_dims(high, axes) if axes and not keepdims else high))
    if b is not None:
        grown = multiply(grown, b)
    total = sum_(grown, axes, keepdims=keepdims)
    sign = lax.sign(total)
    out = add(log(lax.abs(total)), high)
    if b is not None and not return_sign:
        out = where(less(sign, 0), np.nan, out)
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


_elu, _tril = Shown(elu_in_jax, "elu"), Shown(tril, "tril")


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


# ------------------------------------------------------------------ attention
# Heads that share keys are a mapped axis in JAX, which stands first in its equations. Its rules
# for mapped axes leave NumPy's integers in them.
_FRONT = (3, 0, 1, 2, 4)
_LATER: tuple[Any, ...] = tuple([np.int64(i) for i in range(1, 5)])
_LEAST = 0.7 * float(np.finfo(np.float32).min)


def _repeated(x: Any, groups: int) -> Any:
    return broadcast_in_dim(x, (groups, *x.aval.shape), _LATER)


def _masked(seen: Any, logits: Any, least: Any) -> Any:
    b, k, t, groups, s = logits.aval.shape
    low = broadcast_in_dim(least, (b, k, t, s), ())
    if seen.aval.ndim == 4:
        seen = _repeated(seen, groups)
    return lax.select_n(seen, _repeated(low, groups), lax.transpose(logits, _FRONT))


_where_masked = Shown(_masked, "_where")


def attention_in_jax(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: float, causal: bool
) -> Any:
    """Attention of query [b, t, n, h], key and value [b, s, k, h], and bias or mask
    [b, n, t, s]."""
    (b, t, n, h), (s, k) = query.aval.shape, key.aval.shape[1:3]
    groups, f32 = n // k, np.dtype(np.float32)
    query = lax.reshape(query, (b, t, k, groups, h))
    rows = lambda x: lax.reshape(x, (b, k, groups, t, s))  # noqa: E731
    bias, mask = [x if x is None else rows(x) for x in (bias, mask)]
    products = (((4,), (3,)), ((0, 2), (0, 2)))
    logits = lax.dot_general(query, key, products, preferred_element_type=f32)
    logits = lax.mul(logits, scalar(scale, f32))
    front = bias is not None or mask is not None or causal
    if bias is not None:
        logits = lax.add(lax.transpose(logits, _FRONT), lax.transpose(bias, (2, 0, 1, 3, 4)))
    if mask is not None or causal:
        seen = lax.full((b, k, t, s), True, np.dtype(bool))
        if mask is not None:
            seen = lax.bitwise_and(
                _repeated(seen, groups), lax.transpose(mask, (2, 0, 1, 3, 4))
            )
        if causal:
            lower = _tril.call((lax.full((t, s), True, np.dtype(bool)),), {})
            seen = lax.bitwise_and(seen, broadcast_in_dim(lower, (1, 1, t, s), (2, 3)))
        logits = _where_masked.call((seen, logits, scalar(_LEAST, f32)), {})
    high = lax.max(scalar(-np.inf, f32), REGISTRY["reduce_max"].bind(logits, axes=_LATER[3:]))
    if not front:
        high = lax.transpose(high, _FRONT[:4])
    wide = (groups, b, k, t, 1)
    high = stop_gradient(broadcast_in_dim(high, wide, (0, *_LATER[:3])))
    grown = lax.exp(lax.sub(logits if front else lax.transpose(logits, _FRONT), high))
    total = broadcast_in_dim(lax.reduce_sum(grown, _LATER[3:]), wide, (0, *_LATER[:3]))
    sums = (((1,), (4,)), ((0, 2), (1, 2)))
    out = lax.dot_general(value, lax.div(grown, total), sums, preferred_element_type=f32)
    out = lax.transpose(lax.transpose(out, (3, 0, 4, 1, 2)), (1, 2, 3, 0, 4))
    return lax.reshape(out, (b, t, n, h))
