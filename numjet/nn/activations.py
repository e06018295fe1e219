"""Activation functions. Where a function has a kink, its derivative there is the one users of JAX
know (relu: 0 at 0)."""

from __future__ import annotations

import math
from typing import Any

from numjet.api.compiled.shown import FLAG, as_call, shown, wanted
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.structural import zeros
from numjet.core.trace import EVAL, Tracer, current_trace, set_trace
from numjet.nn.jax_forms import gelu_in_jax
from numjet.numpy import lax_names as lax
from numjet.numpy.binary import logaddexp
from numjet.numpy.elementwise import (
    add,
    clip,
    constant,
    divide,
    maximum,
    minimum,
    multiply,
    negative,
    power,
    square,
    subtract,
)
from numjet.numpy.joining import split
from numjet.numpy.logic import greater, greater_equal, less, less_equal, where
from numjet.numpy.promote import (
    as_arrays,
    cast,
    int_dtype,
    one_array,
    one_inexact,
    promote_dtypes,
    promote_inexact,
)
from numjet.numpy.unary import exp, expm1, log, log1p, sqrt, tanh
from numjet.transforms.again import again
from numjet.transforms.jvp import JVPTrace, JVPTracer
from numjet.transforms.linearize import PartialTrace
from numjet.transforms.stage import StageTrace


def identity(x: Any) -> Any:
    """x as an Array.

    x: an array or number. Result: x's shape. Derivative: 1.

    >>> from numjet import nn
    >>> nn.identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return one_array("identity", x)


def relu(x: Any) -> Any:
    """max(x, 0).

    x: an array of any shape and dtype, which it keeps; booleans become integers. Result: x's shape.
    Derivative: 1 above 0, 0 at 0 and below.

    >>> from numjet import nn, numpy as jnp
    >>> nn.relu(jnp.array([-2.0, 0.0, 2.0]))
    Array([0., 0., 2.], dtype=float32)
    """
    x = one_array("relu", x)
    if dtypes.is_bool(x.aval.dtype):
        promote_dtypes(x, as_array(0))  # strict promotion refuses it
        x = cast(x, int_dtype(), True)
    trace: Any = current_trace()
    if trace is EVAL:
        return _cut_below(x)
    if type(trace) is StageTrace:
        return _relu(x)
    if isinstance(trace, JVPTrace | PartialTrace):
        around: Any = trace.parent
        with set_trace(around):
            if getattr(x, "owner", None) is not trace:
                return relu(x)
            # What _relu comes to, in less time.
            if isinstance(trace, JVPTrace) and type(x) is JVPTracer:
                return JVPTracer(trace, *jvp((x.primal,), (x.tangent,)))
    if FLAG.uses and wanted():
        return _relu(x)
    # No derivative where x is not above zero.
    return where(greater(x, 0), x, lax.stop_gradient(_cut_below(x)))


def _cut_below(x: Any) -> Any:
    return lax.max(x, constant(0, x))


# One equation by the function's name, for who reads or rewrites jaxprs.
_cut_below.__name__ = "relu"
_relu = jvp_of_arrays(shown(_cut_below))


def jvp(primals: tuple, tangents: tuple) -> tuple:
    """The rule of `relu`, whose name jaxprs show."""
    (x,), (t,) = primals, tangents
    out, above = relu(x), greater(x, 0)
    if t.aval.weak_type:  # which the selection is then, too
        return out, lax.select(above, t, zeros(t.aval))
    return out, lax.select(above, t, lax.full(t.aval.shape, 0, t.aval.dtype))


_relu.defjvp(jvp)


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6).

    x: a real array of any shape. Result: x's shape. Derivative: 1 between 0 and 6, 0 at both and
    outside. Source: Krizhevsky, Convolutional deep belief networks on CIFAR-10 (2010). Integers
    become floats.

    >>> from numjet import nn, numpy as jnp
    >>> nn.relu6(jnp.array([-2.0, 3.0, 8.0]))
    Array([0., 3., 6.], dtype=float32)
    """
    x = _beside_floats("relu6", x)
    if FLAG.uses and wanted():
        return _relu6_in_jax(x)
    return lax.clamp(constant(0, x), x, constant(6, x))


def _relu6(x: Any) -> Any:
    return lax.min(lax.max(x, constant(0, x)), constant(6, x))


_relu6.__name__ = "relu6"
_relu6_in_jax = jvp_of_arrays(shown(_relu6))


def _jvp6(primals: tuple, tangents: tuple) -> tuple:
    """The rule of `relu6`, under the name that jaxprs show."""
    (x,), (t,) = primals, tangents
    within = lax.bitwise_and(greater(x, 0), less(x, 6))
    return relu6(x), lax.select(within, t, lax.full(t.aval.shape, 0, t.aval.dtype))


_jvp6.__name__ = "jvp"
_relu6_in_jax.defjvp(_jvp6)


def _beside_floats(name: str, x: Any) -> Any:
    """x as an operation with a Python float makes it: integers become weak floats."""
    return promote_dtypes(*as_arrays(name, x, 0.0))[0]


def _number(name: str, x: Any) -> Any:
    """x as a floating array; TypeError for booleans, which have no negatives."""
    x = one_array(name, x)
    if dtypes.is_bool(x.aval.dtype):
        raise TypeError(f"{name} does not accept booleans. Convert with .astype(float).")
    return promote_inexact(x)[0]


def sigmoid(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x)), without overflow.

    x: a floating array of any shape (TypeError for integers). Result: x's shape. Derivative (y is
    the result): y (1 - y).

    >>> from numjet import nn, numpy as jnp
    >>> nn.sigmoid(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([0.1192, 0.5   , 0.8808], dtype=float32)
    """
    return lax.logistic(one_array("sigmoid", x))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow.

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: the sigmoid of x.

    >>> from numjet import nn, numpy as jnp
    >>> nn.softplus(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([0.1269, 0.6931, 2.1269], dtype=float32)
    """
    return logaddexp(_weak_where_boolean(one_array("softplus", x)), 0.0)


_softplus = shown(softplus)


def _weak_where_boolean(x: Any) -> Any:
    """x as a floating array: weakly typed if it holds booleans."""
    if dtypes.is_bool(x.aval.dtype):
        return _beside_floats("", x)
    return promote_inexact(x)[0]


def _quarter(x: Any) -> Any:
    return divide(x, 4.0) if FLAG.uses and wanted() else multiply(x, 0.25)


def sparse_plus(x: Any) -> Any:
    """0 below -1, (x + 1)² / 4 up to 1, x above: a softplus that is exactly 0 and x outside.

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: `sparse_sigmoid`(x).

    >>> from numjet import nn, numpy as jnp
    >>> nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = _beside_floats("sparse_plus", x)
    return where(
        less_equal(x, -1.0),
        0.0,
        where(greater_equal(x, 1.0), x, _quarter(power(add(x, 1.0), 2))),
    )


def soft_sign(x: Any) -> Any:
    """x / (|x| + 1).

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 1 / (|x| + 1)².

    >>> from numjet import nn, numpy as jnp
    >>> nn.soft_sign(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.6667,  0.    ,  0.6667], dtype=float32)
    """
    x = _weak_where_boolean(one_array("soft_sign", x))
    return divide(x, cast(add(lax.abs(x), 1), x.aval.dtype, x.aval.weak_type))


def silu(x: Any) -> Any:
    """x times the sigmoid of x; `swish` is another name.

    x: a floating or complex array of any shape (TypeError for integers and booleans). Result: x's
    shape and dtype. Derivative (y is the result): y + sigmoid(x) (1 - y). Source: Elfwing, Uchibe
    and Doya, Sigmoid-weighted linear units (2017).

    >>> from numjet import nn, numpy as jnp
    >>> nn.silu(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.2384,  0.    ,  1.7616], dtype=float32)
    """
    x = one_array("silu", x)
    return multiply(x, lax.logistic(x))


swish = silu


def mish(x: Any) -> Any:
    """x tanh(softplus(x)).

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Source: Misra, Mish: a self regularized non-monotonic activation function (2019).

    >>> from numjet import nn, numpy as jnp
    >>> nn.mish(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.2525,  0.    ,  1.944 ], dtype=float32)
    """
    x = _weak_where_boolean(one_array("mish", x))
    return multiply(x, tanh(_softplus(x)))


def log_sigmoid(x: Any) -> Any:
    """The logarithm of the sigmoid of x, without overflow: -softplus(-x).

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: the sigmoid of -x. Raises TypeError for booleans.

    >>> from numjet import nn, numpy as jnp
    >>> nn.log_sigmoid(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-2.1269, -0.6931, -0.1269], dtype=float32)
    """
    x = _number("log_sigmoid", x)
    return negative(_softplus(negative(x)))


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x above 0, alpha (exp(x) - 1) below.

    x: an array of any shape, real; integers become floats, floats keep their dtype. alpha: a number
    or an array. Result: x's shape. Derivative (y is the result): 1 above 0, y + alpha below.
    Source: Clevert, Unterthiner and Hochreiter, Exponential linear units (2015).

    >>> from numjet import nn, numpy as jnp
    >>> nn.elu(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.8647,  0.    ,  2.    ], dtype=float32)
    """
    x = _beside_floats("elu", x)
    above = greater(x, 0)
    return where(above, x, multiply(alpha, expm1(where(above, 0.0, x))))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x from 0 on, negative_slope x below.

    x: an array of any shape, real; it and the slope become one dtype. negative_slope: a number or
    an array. Result: x's shape. Derivative: 1 from 0 on, negative_slope below. Integers become
    floats.

    >>> from numjet import nn, numpy as jnp
    >>> nn.leaky_relu(jnp.array([-2.0, 0.0, 2.0]))
    Array([-0.02,  0.  ,  2.  ], dtype=float32)
    """
    x = one_array("leaky_relu", x)
    return where(lax.ge(x, constant(0, x)), x, multiply(negative_slope, x))


def hard_tanh(x: Any) -> Any:
    """x limited to [-1, 1].

    x: a real array of any shape and dtype, which it keeps. Result: x's shape. Derivative: 1 within
    [-1, 1], 0 outside. Booleans become integers.

    >>> from numjet import nn, numpy as jnp
    >>> nn.hard_tanh(jnp.array([-2.0, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    x = one_array("hard_tanh", x)
    return where(greater(x, 1), 1, where(less(x, -1), -1, x))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """max(x, 0) + min(0, alpha (exp(x / alpha) - 1)).

    x: an array of any shape, real; integers become floats, floats keep their dtype. alpha: a
    positive number or array. Result: x's shape. Derivative: 1 above 0, exp(x / alpha) below:
    continuous for every alpha. Source: Barron, Continuously differentiable exponential linear units
    (2017).

    >>> from numjet import nn, numpy as jnp
    >>> nn.celu(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.8647,  0.    ,  2.    ], dtype=float32)
    """
    x = _beside_floats("celu", x)
    return add(maximum(x, 0.0), multiply(alpha, expm1(divide(minimum(x, 0.0), alpha))))


# The fixed point of mean 0 and variance 1 (Klambauer et al. 2017).
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def selu(x: Any) -> Any:
    """1.0507 times the elu of x with alpha 1.6733: keeps mean 0 and variance 1 of its inputs.

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Source: Klambauer, Unterthiner, Mayr and Hochreiter, Self-normalizing neural networks
    (2017). Derivative (y is the result): 1.0507 above 0, y + 1.7581 below and at 0.

    >>> from numjet import nn, numpy as jnp
    >>> nn.selu(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-1.5202,  0.    ,  2.1014], dtype=float32)
    """
    return multiply(_SELU_SCALE, elu(x, _SELU_ALPHA))


def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function at x, by default by a formula with tanh.

    x: an array of any shape, real; integers become floats, floats keep their dtype. approximate:
    x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) instead of erf. Result: x's shape. Source: Hendrycks
    and Gimpel, Gaussian error linear units (2016).

    >>> from numjet import nn, numpy as jnp
    >>> nn.gelu(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.0454,  0.    ,  1.9546], dtype=float32)
    """
    x = one_inexact("gelu", x)
    if FLAG.uses and wanted():
        return gelu_in_jax(x, approximate)
    x = cast(x, x.aval.dtype, False)
    if approximate:
        return again(_gelu, x, _gelu) if isinstance(x, Tracer) else _gelu(x)
    return multiply(multiply(0.5, x), lax.erfc(multiply(x, -math.sqrt(0.5))))


# The tanh approximation, whose factor (1 + tanh u) / 2 is the logistic function of 2u: half the
# operations, and no cancellation where x is far below 0. 2u is x (_GELU_LINE + _GELU_CUBE x²).
_GELU_LINE = 2 * math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715 * _GELU_LINE


def _gelu_share(x: Any, square: Any) -> Any:
    return lax.logistic(multiply(x, add(_GELU_LINE, multiply(_GELU_CUBE, square))))


@jvp_of_arrays
def _gelu(x: Any) -> Any:
    return multiply(x, _gelu_share(x, lax.square(x)))


@_gelu.defjvp
def _gelu_jvp(primals: tuple, tangents: tuple) -> tuple:
    """A slope is all that the backward pass keeps: x and tanh would be twice as many bytes."""
    (x,), (dx,) = primals, tangents
    square = lax.square(x)
    share = _gelu_share(x, square)
    y = multiply(x, share)
    rise = multiply(subtract(1.0, share), add(_GELU_LINE, multiply(3 * _GELU_CUBE, square)))
    return y, multiply(add(share, multiply(y, rise)), dx)


def glu(x: Any, axis: int = -1) -> Any:
    """The first half of x along an axis times the sigmoid of the second.

    x: a floating array. axis: an integer, whose size must be even (AssertionError). Result: x's
    shape with the axis half as long. Source: Dauphin, Fan, Auli and Grangier, Language modeling
    with gated convolutional networks (2016). Raises TypeError for integers and booleans, IndexError
    for an axis out of range.

    >>> from numjet import nn, numpy as jnp
    >>> nn.glu(jnp.array([1.0, 2.0, 0.0, 0.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    x = one_array("glu", x)
    if not -x.aval.ndim <= axis < x.aval.ndim:
        raise IndexError(f"glu: axis {axis} is out of range for {x.aval.str_short()}.")
    if x.aval.shape[axis] % 2:
        raise AssertionError(
            f"axis size must be divisible by 2: glu along axis {axis} of {x.aval}."
        )
    first, second = split(x, 2, axis)
    return multiply(first, sigmoid(second))


def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + √(x² + b)) / 2: a softplus without exponentials.

    x: an array of any shape, real; integers become floats, floats keep their dtype. b: a number or
    an array, not negative; 0 gives relu. Result: the broadcast shape, the promoted dtype.
    Derivative: (1 + x / √(x² + b)) / 2.
    Source: Barron, Squareplus (2021).

    >>> from numjet import nn, numpy as jnp
    >>> nn.squareplus(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([0.4142, 1.    , 2.4142], dtype=float32)
    """
    x, b = as_arrays("squareplus", x, b)
    if dtypes.is_bool(x.aval.dtype) and not dtypes.is_inexact(b.aval.dtype):
        x = one_inexact("squareplus", x)  # single precision, whatever the integers are
    else:
        x, b = promote_inexact(x, b)
    total = add(x, sqrt(add(square(x), b)))
    return divide(total, 2.0) if FLAG.uses and wanted() else multiply(total, 0.5)


def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6: a sigmoid of straight lines.

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 1/6 between -3 and 3, 0 outside.

    >>> from numjet import nn, numpy as jnp
    >>> nn.hard_sigmoid(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([0.1667, 0.5   , 0.8333], dtype=float32)
    """
    return divide(relu6(add(_beside_floats("hard_sigmoid", x), 3.0)), 6.0)


_hard_sigmoid = shown(hard_sigmoid)


def hard_silu(x: Any) -> Any:
    """x hard_sigmoid(x); `hard_swish` is another name.

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Source: Howard and others, Searching for MobileNetV3 (2019).

    >>> from numjet import nn, numpy as jnp
    >>> nn.hard_silu(jnp.array([-2.0, 0.0, 2.0])).round(4)
    Array([-0.3333,  0.    ,  1.6667], dtype=float32)
    """
    x = _beside_floats("hard_silu", x)
    return multiply(x, _hard_sigmoid(x))


hard_swish = hard_silu


def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2, limited to [0, 1].

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 1/2 between -1 and 1, half of it at both, 0 outside. Raises ValueError for
    complex numbers.

    >>> from numjet import nn, numpy as jnp
    >>> nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return multiply(0.5, clip(add(_beside_floats("sparse_sigmoid", x), 1.0), 0.0, 2.0))


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)), exact for small and large x.

    x: an array of any shape, real; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 1 / (exp(x) - 1). -∞ at 0, NaN below. Source: Mächler, Accurately computing
    log(1 - exp(-|a|)) (2012). Raises TypeError for booleans.

    >>> from numjet import nn, numpy as jnp
    >>> nn.log1mexp(jnp.array([0.0, 1e-8, 1.0])).round(4)
    Array([    -inf, -18.4207,  -0.4587], dtype=float32)
    """
    return _log1mexp(_number("log1mexp", x))


def _log1mexp_of(x: Any) -> Any:
    if FLAG.uses and wanted():
        return as_call("log1mexp", x)
    small = less(x, math.log(2))
    near = log(negative(expm1(negative(where(small, x, 1.0)))))
    far = log1p(negative(exp(negative(where(small, 1.0, x)))))
    return where(small, near, far)


_log1mexp_of.__name__ = "log1mexp"
_log1mexp = jvp_of_arrays(_log1mexp_of)


def _log1mexp_rule(t: Any, out: Any, x: Any) -> Any:
    left = less(x, 0)
    fall = where(left, x, negative(x))  # exp(x) would overflow, and the second derivative be NaN
    above = where(left, -1.0, exp(fall))
    return multiply(t, divide(above, negative(expm1(fall))))


_log1mexp.defjvps(_log1mexp_rule)
