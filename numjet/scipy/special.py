"""numjet.scipy.special: gamma and error functions, related ones, and sums of exponentials."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.hashed import hold
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.api.eager.large import wrap_public
from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.nn.normalization import log_softmax as _log_softmax, logsumexp, softmax as _softmax
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    add,
    broadcast_like,
    constant,
    divide,
    multiply,
    negative,
    subtract,
    zeros_like,
)
from numjet.numpy.logic import equal, greater, less, less_equal, logical_and, logical_or, where
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    cast,
    one_inexact,
    promote_inexact,
    promote_shapes,
    unmixed,
    weak_alone,
)
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import expand_dims
from numjet.numpy.unary import bessel_i1, expm1, i0, isfinite, log, log1p
from numjet.ops.special_series import polynomial
from numjet.scipy.hypergeometric import hyp1f1, hyp2f1
from numjet.scipy.precision import refuse_complex
from numjet.scipy.special_complex import complex_loggamma
from numjet.scipy.special_faddeeva import erfcx, wofz
from numjet.scipy.special_gamma import beta, betaln, comb, gamma, gammasgn, poch, zeta
from numjet.scipy.special_integrals import (
    dawsn,
    exp1,
    expi,
    expn,
    fresnel,
    owens_t,
    sici,
    spence,
)
from numjet.scipy.special_legendre import lpmn, lpmn_values
from numjet.scipy.special_normal import erf, erfc, erfinv, log_ndtr, ndtr, ndtri
from numjet.scipy.special_orders import bessel_jn, sph_harm_y


def _floats(name: str, *args: Any) -> list[Any]:
    """Arguments as floats of one dtype and one shape."""
    xs = promote_shapes(name, *promote_inexact(*unmixed(name, *args)))
    if name in ("betainc", "polygamma", "rel_entr"):
        refuse_complex(name, *xs)
    if config.jax_form():
        return xs
    shape = max([x.aval.shape for x in xs], key=len)
    return [broadcast(x, shape) for x in xs]


# ------------------------------------------------------------------ gamma
def gammaln(x: Any) -> Any:
    """log |Γ(x)|, also where Γ overflows.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: digamma(x). ∞ at 0 and the negative integers; `gammasgn` has the sign. Raises
    TypeError for complex x. Computed by `lax.lgamma`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.gammaln(jnp.array([4.0, 100.0])).round(3)
    Array([  1.792, 359.134], dtype=float32)
    """
    return lax.lgamma(one_inexact("gammaln", x))


def loggamma(x: Any) -> Any:
    """log Γ(x): of real x `gammaln` where x is positive, NaN where it is negative; of complex x the
    branch that is real for positive x, cut along the negative axis.

    x: an array of any shape; integers become floats, others keep their dtype. Result: x's shape.
    Derivative: digamma(x).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.loggamma(jnp.array([4.0, -0.5])).round(4)
    Array([1.7918,    nan], dtype=float32)
    """
    x = one_inexact("loggamma", x)
    if dtypes.is_complex(x.aval.dtype):
        return complex_loggamma(x)
    return where(less(x, 0), constant(np.nan, x), lax.lgamma(x))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I(a, b; x).

    a, b: positive; x: in [0, 1]; arrays that broadcast; integers become floats. Result: the
    broadcast shape, the promoted dtype. Derivative: x^(a-1) (1-x)^(b-1) / B(a, b) in x; in a and b
    as well. NaN outside of the domain. Raises ValueError for complex numbers. Source: DLMF
    8.17 and Didonato and Morris (1992), in `lax.betainc`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.betainc(2.0, 1.0, jnp.array([0.5, 1.0]))
    Array([0.25, 1.  ], dtype=float32)
    """
    return lax.betainc(*_floats("betainc", a, b, x))


def gammainc(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x).

    a: positive; x: not negative; arrays that broadcast; integers become floats. Result: the
    broadcast shape, the promoted dtype. Derivative: x^(a-1) e^-x / Γ(a) in x; in a as well. NaN
    outside of the domain. Raises TypeError for complex numbers. Source: DLMF 8.7, 8.11 and
    8.12, in `lax.igamma`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.gammainc(1.0, jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.6321], dtype=float32)
    """
    return lax.igamma(*_floats("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), without cancellation.

    a: positive; x: not negative; arrays that broadcast; integers become floats. Result: the
    broadcast shape, the promoted dtype. Derivative: the negative of `gammainc`'s. NaN outside of
    the domain. Raises TypeError for complex numbers. Source: DLMF 8.9, 8.11 and
    8.12, in `lax.igammac`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.gammaincc(1.0, jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.3679], dtype=float32)
    """
    return lax.igammac(*_floats("gammaincc", a, x))


def digamma(x: Any) -> Any:
    """The derivative of log Γ.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: polygamma(1, x). -∞ at 0, NaN at the negative integers. Raises TypeError for
    complex x. Computed by `lax.digamma`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.digamma(jnp.array([1.0, 2.0])).round(4)
    Array([-0.5772,  0.4228], dtype=float32)
    """
    return lax.digamma(one_inexact("digamma", x))


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma.

    n: integers, not negative (ValueError for floats); x: real floats that broadcast with them.
    Result: the broadcast shape, x's dtype. Derivative: polygamma(n + 1, x) in x. Raises ValueError
    for complex numbers. Source: DLMF 25.11.12, in `lax.polygamma`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.polygamma(1, jnp.array([1.0])).round(4)  # π²/6
    Array([1.6449], dtype=float32)
    """
    (orders,) = as_arrays("polygamma", n)
    if not dtypes.is_integer(orders.dtype):
        raise ValueError(
            f"polygamma: argument `n` must be of integer type, got dtype {orders.dtype}."
        )
    return lax.polygamma(*_floats("polygamma", n, x))


def multigammaln(a: Any, d: Any) -> Any:
    """log of the multivariate gamma function of dimension d.

    a: real floats above (d - 1) / 2. d: a Python integer. Result: a's shape: d (d-1)/4 log π + Σ
    gammaln(a - j/2) over j < d. Differentiable in a. Source: that of `gammaln`. Raises TypeError
    for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.multigammaln(jnp.array([3.0]), 2).round(4)
    Array([1.5502], dtype=float32)
    """
    d = int(d)
    a = one_inexact("multigammaln", a)
    shift = (np.arange(d) / -2.0).reshape((1,) * a.aval.ndim + (d,))
    terms = lax.lgamma(add(expand_dims(a, -1), as_array(shift.astype(a.aval.dtype))))
    return add(sum_(terms, -1), 0.25 * d * (d - 1) * math.log(math.pi))


def factorial(n: Any, exact: bool = False) -> Any:
    """n! as floats, Γ(n + 1) for n between integers.

    n: a real array; negative ones give 0. exact: must be False (NotImplementedError);
    `math.factorial` is exact. TypeError for complex numbers. Result: n's shape.
    Differentiable. SciPy's `extend` is not there. Source: that of `gamma`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.factorial(jnp.array([0, 4])).round(3)
    Array([ 1., 24.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial: exact=True is not supported. Use math.factorial.")
    n = one_inexact("factorial", n)
    if dtypes.is_complex(n.aval.dtype):
        raise TypeError(f"factorial does not accept dtype {n.aval.dtype}. Use gamma(n + 1).")
    negative_ones, zero = less(n, 0), constant(0, n)
    out = where(negative_ones, zero, gamma(add(where(negative_ones, zero, n), 1)))
    return cast(out, n.aval.dtype, n.aval.weak_type)


# ------------------------------------------------------------------ logistic and entropies
def expit(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x)), without overflow.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative (y is the result): y (1 - y). Raises TypeError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.expit(jnp.array([0.0, 2.0])).round(4)
    Array([0.5   , 0.8808], dtype=float32)
    """
    return lax.logistic(one_inexact("expit", x))


def logit(x: Any) -> Any:
    """log(x / (1 - x)), the inverse of expit.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: 1 / (x (1 - x)). -∞ at 0, ∞ at 1, NaN outside. Raises TypeError for complex
    x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.logit(jnp.array([0.5, 1.0])).round(4)
    Array([ 0., inf], dtype=float32)
    """
    return _logit(weak_alone(one_inexact("logit", x)))


def _logit_of(x: Any) -> Any:
    return log(divide(x, subtract(1, x)))


_logit_of.__name__ = "logit"
_logit = jvp_of_arrays(_logit_of)
_logit.defjvps(lambda t, out, x: divide(t, multiply(x, subtract(1, x))))


def _product(x: Any, y: Any, log_of: Callable[[Any], Any]) -> Any:
    """x log_of(y); 0 for x = 0, but NaN beside a y that is NaN."""
    if config.jax_form():
        x, y = _floats(log_of.__name__, x, y)
    there = lax.bitwise_or(lax.ne(x, zeros_like(x)), lax.ne(y, y))
    return where(there, multiply(x, log_of(y)), broadcast_like(zeros_like(x), x))


def _slope(primals: tuple, tangents: tuple, log_of: Callable, below: Callable) -> Any:
    """dx log_of(y) + dy x / below(y). Integers, which calls in printed jaxprs have, add nothing."""
    (x, y), (dx, dy) = primals, tangents
    if not dtypes.is_inexact(x.aval.dtype):
        return divide(multiply(dy, x), below(y))
    along = multiply(dx, log_of(y))
    if not dtypes.is_inexact(y.aval.dtype):
        return along
    return add(along, divide(multiply(dy, x), below(y)))


def _xlogy_of(x: Any, y: Any) -> Any:
    return _product(x, y, log)


def _xlogy_jvp(primals: tuple, tangents: tuple) -> tuple:
    """The rule of `xlogy`, whose name jaxprs show."""
    return _xlogy(*primals), _slope(primals, tangents, log, lambda y: y)


_xlogy_of.__name__ = "xlogy"
_xlogy = jvp_of_arrays(_xlogy_of)
_xlogy.defjvp(_xlogy_jvp)


def xlogy(x: Any, y: Any) -> Any:
    """x log(y), and 0 for x = 0 (NaN beside NaN).

    x, y: real or complex; arrays that broadcast; integers become floats. Result: the broadcast
    shape, the promoted dtype. Derivative: log(y) in x and x / y in y, also at x = 0.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.xlogy(jnp.array([0.0, 2.0]), 0.5).round(4)
    Array([ 0.    , -1.3863], dtype=float32)
    """
    if config.jax_form():
        return _xlogy(*unmixed("xlogy", x, y))
    return _xlogy(*_floats("xlogy", x, y))


def _xlog1py_of(x: Any, y: Any) -> Any:
    return _product(x, y, log1p)


def _xlog1py_jvp(primals: tuple, tangents: tuple) -> tuple:
    """The rule of `xlog1py`, whose name jaxprs show."""
    return _xlog1py(*primals), _slope(primals, tangents, log1p, lambda y: add(1, y))


_xlog1py_of.__name__ = "xlog1py"
_xlog1py = jvp_of_arrays(_xlog1py_of)
_xlog1py.defjvp(_xlog1py_jvp)


def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 for x = 0 (NaN beside NaN).

    x, y: real or complex; arrays that broadcast; integers become floats. Result: the broadcast
    shape, the promoted dtype. Derivative: log(1 + y) in x and x / (1 + y) in y, also at x = 0.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.xlog1py(jnp.array([0.0, 2.0]), 0.5).round(4)
    Array([0.    , 0.8109], dtype=float32)
    """
    if config.jax_form():
        return _xlog1py(*unmixed("xlog1py", x, y))
    return _xlog1py(*_floats("xlog1py", x, y))


@jvp_of_arrays
def _entr(x: Any) -> Any:
    inner = where(less_equal(x, 0), constant(1, x), x)
    value = where(equal(x, 0), zeros_like(x), negative(multiply(inner, log(inner))))
    return where(less(x, 0), constant(-np.inf, x), value)


_entr.defjvps(lambda t, out, x: multiply(t, subtract(-1, log(x))))


@jvp_of_arrays
def _xlogx(x: Any) -> Any:
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    return _xlogx(x), multiply(t, add(log(x), 1))


def entr(x: Any) -> Any:
    """-x log(x): the contribution to an entropy.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative: -log(x) - 1, infinite at 0. 0 at 0, -∞ below. ValueError for complex x.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.entr(jnp.array([0.0, 0.5, -1.0])).round(4)
    Array([0.    , 0.3466,   -inf], dtype=float32)
    """
    x = one_inexact("entr", x)
    refuse_complex("entr", x)
    if config.jax_form():
        below, endless = lax.lt(x, constant(0, x)), lax.full(x.aval.shape, -np.inf, x.aval.dtype)
        return lax.select_n(below, lax.neg(_xlogx(x)), endless)
    return _entr(x)


def _rel_entr_in_jax(p: Any, q: Any) -> Any:
    both = logical_and(greater(p, 0), greater(q, 0))
    zero = logical_and(equal(p, 0), lax.ge(q, constant(0, q)))
    safe, other = where(both, p, 1), where(both, q, 1)
    inside = subtract(_xlogx(safe), _xlogy(safe, other))
    return where(both, inside, where(zero, 0.0, np.inf))


def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q): the contribution to a relative entropy.

    p, q: real; arrays that broadcast; integers become floats. Result: the broadcast shape, the
    promoted dtype. Derivative: log(p / q) + 1 in p, -p / q in q. 0 for p = 0, ∞ out of the domain.
    ValueError for complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.rel_entr(jnp.array([0.0, 1.0]), 2.0).round(4)
    Array([ 0.    , -0.6931], dtype=float32)
    """
    p, q = promote_inexact(*unmixed("rel_entr", p, q))
    p, q = _floats("rel_entr", weak_alone(p), q)
    if config.jax_form():
        return _rel_entr_in_jax(p, q)
    both = logical_and(greater(p, 0), greater(q, 0))
    zero = logical_and(equal(p, 0), lax.ge(q, broadcast_like(zeros_like(q), q)))
    sp, sq = where(both, p, constant(1, p)), where(both, q, constant(1, q))
    inside = multiply(sp, subtract(log(sp), log(sq)))
    return where(both, inside, where(zero, constant(0, p), constant(np.inf, p)))


def kl_div(p: Any, q: Any) -> Any:
    """rel_entr(p, q) - p + q: the contribution to a Kullback-Leibler divergence, never negative.

    p, q: real; arrays that broadcast; integers become floats. Result: the broadcast shape, the
    promoted dtype. Derivative: log(p / q) in p, 1 - p / q in q. ∞ out of the domain. ValueError for
    complex numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.kl_div(jnp.array([0.0, 1.0]), 2.0).round(4)
    Array([2.    , 0.3069], dtype=float32)
    """
    entropy = rel_entr(p, q)
    p, q = _floats("kl_div", p, q)
    return add(subtract(entropy, p), q)


# expm1(t) / t is summed up to here, so that derivatives are exact, too: 1 / (k + 1)! for each k.
_NEAR_LOGARITHM = 0.25
_POWERS = tuple(1 / math.factorial(k + 1) for k in range(14))


def _power_transform(logs: Any, lmbda: Any) -> Any:
    """expm1(lmbda logs) / lmbda, which is `logs` for lmbda = 0."""
    exponent = multiply(lmbda, logs)
    near = logical_or(less(lax.abs(exponent), _NEAR_LOGARITHM), equal(lmbda, 0))
    # Neither side sees an argument that makes its derivative NaN.
    small = multiply(where(near, lmbda, constant(0, lmbda)), where(isfinite(logs), logs, 0))
    safe = where(near, constant(1, lmbda), lmbda)
    far = divide(expm1(multiply(safe, logs)), safe)
    if dtypes.is_complex(small.dtype):
        total = constant(_POWERS[-1], small)
        for power in reversed(_POWERS[:-1]):
            total = add(multiply(total, small), power)
    else:
        total = polynomial(_POWERS, small)
    return where(near, multiply(logs, total), far)


def boxcox(x: Any, lmbda: Any) -> Any:
    """(x^lmbda - 1) / lmbda, and log(x) for lmbda = 0.

    x: positive; lmbda: real; arrays that broadcast; integers become floats. Result: the broadcast
    shape, the promoted dtype. Exact near lmbda = 0. Source: Box and Cox, An analysis of
    transformations (1964). Differentiable in both.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.boxcox(2.0, jnp.array([0.0, 2.0])).round(4)
    Array([0.6931, 1.5   ], dtype=float32)
    """
    x, power_ = _floats("boxcox", x, lmbda)
    return _power_transform(log(x), power_)


def boxcox1p(x: Any, lmbda: Any) -> Any:
    """boxcox of 1 + x, exact for small x.

    x: above -1; lmbda: real; arrays that broadcast; integers become floats. Result: the broadcast
    shape, the promoted dtype. Differentiable in both. Source: that of `boxcox`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.boxcox1p(1.0, jnp.array([0.0, 2.0])).round(4)
    Array([0.6931, 1.5   ], dtype=float32)
    """
    x, power_ = _floats("boxcox1p", x, lmbda)
    return _power_transform(log1p(x), power_)


# ------------------------------------------------------------------ Bessel functions and others
def i0e(x: Any) -> Any:
    """exp(-|x|) times the modified Bessel function of the first kind, of order 0.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative (y is the result): i1e(x) - sign(x) y. Raises TypeError for complex x.
    Computed by `lax.bessel_i0e`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.i0e(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.4658], dtype=float32)
    """
    return lax.bessel_i0e(one_inexact("i0e", x))


def i1e(x: Any) -> Any:
    """exp(-|x|) times the modified Bessel function of the first kind, of order 1.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative (y is the result): i0e(x) - y (sign(x) + 1/x). Raises TypeError for complex x.
    Computed by `lax.bessel_i1e`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.i1e(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.2079], dtype=float32)
    """
    return lax.bessel_i1e(one_inexact("i1e", x))


def i1(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1.

    x: a real array of any shape; integers become floats, floats keep their dtype. Result: x's
    shape. Derivative (y is the result): i0(x) - y / x. `i1e` does not overflow. Raises TypeError
    for complex x. Computed by `lax.bessel_i1e`.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.i1(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.5652], dtype=float32)
    """
    x = one_inexact("i1", x)
    return bessel_i1(x)


# Bernoulli numbers B_0, B_2, B_4, ...; B_1 is -1/2 and the other odd ones are 0.
_EVEN_BERNOULLI = (
    1.0,
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
)


def bernoulli(n: int) -> Any:
    """The Bernoulli numbers B₀ ... Bₙ, with B₁ = -1/2.

    n: a Python integer, not negative (ValueError). Result: floats [n + 1].

    >>> from numjet.scipy import special
    >>> special.bernoulli(4).round(4)
    Array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333], dtype=float32)
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, got {n}.")
    values = np.zeros(n + 1)
    for k in range(n + 1):
        if k == 1:
            values[k] = -0.5
        elif k % 2 == 0:
            half = k // 2
            if half < len(_EVEN_BERNOULLI):
                values[k] = _EVEN_BERNOULLI[half]
            else:
                # |B_k| = 2 k! zeta(k) / (2 pi)**k, where zeta(k) is 1 to rounding.
                size = 2 * math.exp(math.lgamma(k + 1) - k * math.log(2 * math.pi))
                values[k] = (-1) ** (half + 1) * size
    return as_array(values.astype(dtypes.canonical(dtypes.float64)))


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """exp(x) divided by its sum, without overflow.

    x: a real array; integers become floats. axis: an integer, several, or None for all
    (`nn.softmax` takes the last). Result: x's shape. Derivative (y is the result): y (dx - Σ y dx).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.softmax(jnp.array([1.0, 1.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    return _softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """The logarithm of `softmax`: x - logsumexp(x), without overflow.

    x: a real array; integers become floats. axis: an integer, several, or None for all.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.log_softmax(jnp.array([0.0, 0.0])).round(4)
    Array([-0.6931, -0.6931], dtype=float32)
    """
    return _log_softmax(x, axis)


__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]


def __dir__() -> list[str]:
    return [*__all__]

# Several operations each, which small arrays are too few for: programs, when they are met again.
hold(globals(), __name__)
# Those of `special_orders` are programs, or call one, there.
_ORDERS = ("bessel_jn", "sph_harm_y")
wrap_public(globals(), __name__, [name for name in __all__ if name not in _ORDERS])
