"""numjet.scipy.special: gamma and error functions, their kin, and sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.custom import custom_jvp
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.nn.normalization import log_softmax as _log_softmax, logsumexp, softmax as _softmax
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    add,
    broadcast_like,
    constant,
    divide,
    equal,
    greater,
    less,
    less_equal,
    logical_and,
    multiply,
    negative,
    subtract,
    where,
    zeros_like,
)
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    one_inexact,
    promote_inexact,
    promote_shapes,
)
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import expand_dims
from numjet.numpy.unary import exp, expm1, i0, isnan, log, log1p
from numjet.scipy.hypergeometric import hyp1f1, hyp2f1
from numjet.scipy.special_faddeeva import wofz
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
from numjet.scipy.special_normal import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from numjet.scipy.special_orders import bessel_jn, sph_harm_y


def _floats(name: str, *args: Any) -> list[Any]:
    """Arguments as floats of one dtype and one shape."""
    xs = promote_shapes(name, *promote_inexact(*as_arrays(name, *args)))
    shape = max([x.aval.shape for x in xs], key=len)
    return [broadcast(x, shape) for x in xs]


# ------------------------------------------------------------------ gamma
def gammaln(x: Any) -> Any:
    """log |gamma(x)|."""
    return lax.lgamma(one_inexact("gammaln", x))


def loggamma(x: Any) -> Any:
    """log gamma(x), NaN where gamma(x) is not on the real branch: for x < 0."""
    x = one_inexact("loggamma", x)
    return where(less(x, 0), constant(np.nan, x), lax.lgamma(x))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function."""
    return lax.betainc(*_floats("betainc", a, b, x))


def gammainc(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function."""
    return lax.igamma(*_floats("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function."""
    return lax.igammac(*_floats("gammaincc", a, x))


def digamma(x: Any) -> Any:
    """The derivative of log gamma."""
    return lax.digamma(one_inexact("digamma", x))


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma. ValueError where n is made of floats."""
    (orders,) = as_arrays("polygamma", n)
    if not dtypes.is_integer(orders.dtype):
        raise ValueError(
            f"polygamma: argument `n` must be of integer type, got dtype {orders.dtype}."
        )
    return lax.polygamma(*_floats("polygamma", n, x))


def multigammaln(a: Any, d: Any) -> Any:
    """log of the multivariate gamma function of dimension d (a Python integer)."""
    d = int(d)
    a = one_inexact("multigammaln", a)
    shift = np.arange(d) / -2.0
    terms = lax.lgamma(add(expand_dims(a, -1), as_array(shift.astype(a.aval.dtype))))
    return add(sum_(terms, -1), 0.25 * d * (d - 1) * math.log(math.pi))


def factorial(n: Any, exact: bool = False) -> Any:
    """n! as a float; 0 for negative n."""
    if exact:
        raise NotImplementedError("factorial: exact=True is not supported. Use math.factorial.")
    n = one_inexact("factorial", n)
    return where(less(n, 0), constant(0, n), exp(lax.lgamma(add(n, 1))))


# ------------------------------------------------------------------ logistic and entropies
def expit(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return lax.logistic(one_inexact("expit", x))


def logit(x: Any) -> Any:
    """log(x / (1 - x))."""
    x = one_inexact("logit", x)
    return subtract(log(x), log1p(negative(x)))


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    zero = equal(x, 0)
    safe = where(zero, constant(1, y), y)
    return where(zero, where(isnan(y), y, zeros_like(x)), multiply(x, log(safe)))


_xlogy.defjvps(
    lambda t, out, x, y: multiply(t, log(y)), lambda t, out, x, y: divide(multiply(t, x), y)
)


def xlogy(x: Any, y: Any) -> Any:
    """x log(y), 0 for x = 0 (NaN beside NaN). Its derivatives are log(y) and x / y also there."""
    return _xlogy(*_floats("xlogy", x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    zero = equal(x, 0)
    safe = where(zero, zeros_like(y), y)
    return where(zero, where(isnan(y), y, zeros_like(x)), multiply(x, log1p(safe)))


_xlog1py.defjvps(
    lambda t, out, x, y: multiply(t, log1p(y)),
    lambda t, out, x, y: divide(multiply(t, x), add(1, y)),
)


def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), 0 for x = 0 (NaN beside NaN). Its derivatives are log(1 + y) and x / (1 + y)
    also there."""
    return _xlog1py(*_floats("xlog1py", x, y))


@custom_jvp
def _entr(x: Any) -> Any:
    inner = where(less_equal(x, 0), constant(1, x), x)
    value = where(equal(x, 0), zeros_like(x), negative(multiply(inner, log(inner))))
    return where(less(x, 0), constant(-np.inf, x), value)


_entr.defjvps(lambda t, out, x: multiply(t, subtract(-1, log(x))))


def entr(x: Any) -> Any:
    """-x log(x); 0 at 0, -infinity below. Its derivative is infinite at 0."""
    return _entr(one_inexact("entr", x))


def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q); 0 for p = 0, infinity out of the domain."""
    p, q = _floats("rel_entr", p, q)
    both = logical_and(greater(p, 0), greater(q, 0))
    zero = logical_and(equal(p, 0), lax.ge(q, broadcast_like(zeros_like(q), q)))
    sp, sq = where(both, p, constant(1, p)), where(both, q, constant(1, q))
    inside = multiply(sp, subtract(log(sp), log(sq)))
    return where(both, inside, where(zero, constant(0, p), constant(np.inf, p)))


def kl_div(p: Any, q: Any) -> Any:
    """rel_entr(p, q) - p + q."""
    p, q = _floats("kl_div", p, q)
    return add(subtract(rel_entr(p, q), p), q)


def boxcox(x: Any, lmbda: Any) -> Any:
    """(x**lmbda - 1) / lmbda, log(x) for lmbda = 0."""
    x, power_ = _floats("boxcox", x, lmbda)
    flat = equal(power_, 0)
    safe = where(flat, constant(1, power_), power_)
    return where(flat, log(x), divide(expm1(multiply(safe, log(x))), safe))


def boxcox1p(x: Any, lmbda: Any) -> Any:
    """boxcox of 1 + x."""
    x, power_ = _floats("boxcox1p", x, lmbda)
    flat = equal(power_, 0)
    safe = where(flat, constant(1, power_), power_)
    return where(flat, log1p(x), divide(expm1(multiply(safe, log1p(x))), safe))


# ------------------------------------------------------------------ Bessel functions and others
def i0e(x: Any) -> Any:
    """exp(-|x|) times the modified Bessel function of order 0."""
    return lax.bessel_i0e(one_inexact("i0e", x))


def i1e(x: Any) -> Any:
    """exp(-|x|) times the modified Bessel function of order 1."""
    return lax.bessel_i1e(one_inexact("i1e", x))


def i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    x = one_inexact("i1", x)
    return multiply(exp(lax.abs(x)), lax.bessel_i1e(x))


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
    """The Bernoulli numbers B_0 ... B_n."""
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
    """exp(x) divided by its sum."""
    return _softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """The logarithm of softmax."""
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
