"""numjet.scipy.special: gamma and error functions, their kin, and sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.custom import custom_jvp
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.trace import concrete_or_none
from numjet.nn.normalization import log_softmax as _log_softmax, logsumexp, softmax as _softmax
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    _select,
    add,
    broadcast_like,
    constant,
    divide,
    equal,
    floor,
    greater,
    less,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    multiply,
    negative,
    not_equal,
    power,
    remainder,
    subtract,
    where,
    zeros_like,
)
from numjet.numpy.promote import (
    as_arrays,
    broadcast,
    cast,
    one_inexact,
    promote_inexact,
    promote_shapes,
)
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import expand_dims
from numjet.numpy.unary import exp, expm1, i0, isnan, log, log1p, sqrt


def _floats(name: str, *args: Any) -> list[Any]:
    """Arguments as floats of one dtype and one shape."""
    xs = promote_shapes(name, *promote_inexact(*as_arrays(name, *args)))
    shape = max([x.aval.shape for x in xs], key=len)
    return [broadcast(x, shape) for x in xs]


def _wide(name: str, x: Any) -> tuple[Any, Any]:
    """x in at least 32 bits, and the dtype to return to."""
    x = one_inexact(name, x)
    kind = x.aval.dtype
    return (cast(x, dtypes.float32) if kind.itemsize < 4 else x), kind


# ------------------------------------------------------------------ gamma
def gammaln(x: Any) -> Any:
    """log |gamma(x)|."""
    return lax.lgamma(one_inexact("gammaln", x))


loggamma = gammaln


def gammasgn(x: Any) -> Any:
    """The sign of gamma(x)."""
    x = one_inexact("gammasgn", x)
    whole = floor(x)
    pole = logical_and(less(x, 0), equal(x, whole))
    odd = not_equal(remainder(whole, 2.0), 0)
    out = where(logical_and(less(x, 0), odd), constant(-1, x), constant(1, x))
    minus_zero = logical_and(equal(x, 0), less(divide(1.0, x), 0))
    out = where(minus_zero, constant(-1, x), out)
    return where(logical_or(pole, isnan(x)), constant(np.nan, x), out)


def gamma(x: Any) -> Any:
    """The gamma function."""
    x = one_inexact("gamma", x)
    return multiply(gammasgn(x), exp(lax.lgamma(x)))


def betaln(a: Any, b: Any) -> Any:
    """log |beta(a, b)|."""
    a, b = _floats("betaln", a, b)
    return subtract(add(lax.lgamma(a), lax.lgamma(b)), lax.lgamma(add(a, b)))


def beta(a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b)."""
    a, b = _floats("beta", a, b)
    signs = multiply(multiply(gammasgn(a), gammasgn(b)), gammasgn(add(a, b)))
    return multiply(signs, exp(betaln(a, b)))


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
    """The n-th derivative of digamma."""
    return lax.polygamma(*_floats("polygamma", n, x))


def zeta(x: Any, q: Any = None) -> Any:
    """The Hurwitz zeta function: the sum of (k + q)**-x over k >= 0."""
    if q is None:
        raise NotImplementedError("zeta: the Riemann zeta function of one argument is zeta(x, 1).")
    return lax.zeta(*_floats("zeta", x, q))


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


def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:
    """The number of ways to choose k of N."""
    n, k = _floats("comb", N, k)
    n = subtract(add(n, k), 1) if repetition else n
    ways = exp(negative(add(betaln(add(subtract(n, k), 1), add(k, 1)), log1p(n))))
    bad = logical_or(less(n, k), logical_or(less(n, 0), less(k, 0)))
    return where(bad, constant(0, n), lax.round(ways, 1))


def poch(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z)."""
    z, m = _floats("poch", z, m)
    signs = multiply(gammasgn(add(z, m)), gammasgn(z))
    out = multiply(signs, exp(subtract(lax.lgamma(add(z, m)), lax.lgamma(z))))
    return where(equal(m, 0), constant(1, out), out)


# ------------------------------------------------------------------ errors and normal distribution
def erf(x: Any) -> Any:
    """The error function."""
    return lax.erf(one_inexact("erf", x))


def erfc(x: Any) -> Any:
    """1 - erf(x), exact for large x."""
    return lax.erfc(one_inexact("erfc", x))


def erfinv(x: Any) -> Any:
    """The inverse of erf."""
    return lax.erf_inv(one_inexact("erfinv", x))


def ndtr(x: Any) -> Any:
    """The normal distribution function."""
    x, kind = _wide("ndtr", x)
    half = multiply(x, math.sqrt(0.5))
    size = lax.abs(half)
    middle = add(1.0, lax.erf(half))
    tail = lax.erfc(size)
    out = where(
        less(size, math.sqrt(0.5)), middle, where(greater(half, 0), subtract(2.0, tail), tail)
    )
    return cast(multiply(0.5, out), kind)


def ndtri(p: Any) -> Any:
    """The inverse of ndtr."""
    p, kind = _wide("ndtri", p)
    # erf_inv loses digits near -1; below 0.5 Newton steps on log ndtr sharpen the tail.
    x = multiply(math.sqrt(2), lax.erf_inv(subtract(multiply(2, p), 1)))
    tail = logical_and(less(p, 1e-3), greater(p, 0))
    safe = _select(tail, p, broadcast_like(constant(1e-4, p), p))
    start = negative(sqrt(multiply(-2, log(safe))))
    target = log(safe)
    z = start
    for _ in range(5):
        value = log_ndtr(z)
        slope = exp(
            subtract(subtract(multiply(-0.5, lax.square(z)), 0.5 * math.log(2 * math.pi)), value)
        )
        z = subtract(z, divide(subtract(value, target), slope))
    out = _select(tail, z, x)
    out = where(equal(p, 0), constant(-np.inf, out), where(equal(p, 1), constant(np.inf, out), out))
    return cast(where(logical_or(less(p, 0), greater(p, 1)), constant(np.nan, out), out), kind)


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """log of ndtr, exact in the lower tail (by its asymptotic series)."""
    if not isinstance(series_order, int) or not 0 <= series_order <= 30:
        raise ValueError(
            f"log_ndtr: series_order must be an integer in [0, 30], got {series_order!r}."
        )
    x, kind = _wide("log_ndtr", x)
    # Below `low` the distribution function underflows, above `high` its complement is tiny.
    low, high = (-20.0, 8.0) if x.aval.dtype == dtypes.float64 else (-10.0, 5.0)
    top = negative(ndtr(negative(maximum(x, high))))
    middle = log(ndtr(where(less(x, low), low, where(greater(x, high), high, x))))
    far = where(less(x, low), x, low)
    square = lax.square(far)
    series: Any = 1.0
    term: Any = 1.0
    for n in range(1, series_order + 1):
        term = divide(multiply(term, -(2 * n - 1)), square)
        series = add(series, term)
    bottom = add(
        subtract(subtract(multiply(-0.5, square), log(negative(far))), 0.5 * math.log(2 * math.pi)),
        log(series),
    )
    return cast(where(greater(x, high), top, where(less(x, low), bottom, middle)), kind)


def erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x), without overflow for large x."""
    x, kind = _wide("erfcx", x)
    small = less(x, 5.0)
    near = where(small, x, constant(0, x))
    direct = multiply(exp(lax.square(near)), lax.erfc(near))
    far = where(small, constant(5, x), x)
    # The continued fraction 1 / (x + (1/2) / (x + 1 / (x + (3/2) / ...))), from the tail.
    rest = far
    for k in range(40, 0, -1):
        rest = add(far, divide(0.5 * k, rest))
    out = where(small, direct, divide(1 / math.sqrt(math.pi), rest))
    return cast(out, kind)


# ------------------------------------------------------------------ logistic and entropies
def expit(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return lax.logistic(one_inexact("expit", x))


def logit(x: Any) -> Any:
    """log(x / (1 - x))."""
    x = one_inexact("logit", x)
    return subtract(log(x), log1p(negative(x)))


def xlogy(x: Any, y: Any) -> Any:
    """x log(y), 0 for x = 0. Its derivatives are log(y) and x / y everywhere."""
    return _xlogy(*_floats("xlogy", x, y))


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    zero = equal(x, 0)
    ends = logical_or(less_equal(y, 0), equal(y, math.inf))
    safe = _select(logical_and(zero, ends), broadcast_like(constant(1, y), y), y)
    out = multiply(x, log(safe))
    return where(logical_and(zero, isnan(y)), y, out)


@_xlogy.defjvp
def _xlogy_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x, y), (dx, dy) = primals, tangents
    return _xlogy(x, y), add(multiply(dx, log(y)), multiply(dy, divide(x, y)))


def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), 0 for x = 0. Its derivatives are log(1 + y) and x / (1 + y) everywhere."""
    return _xlog1py(*_floats("xlog1py", x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    zero = equal(x, 0)
    ends = logical_or(less_equal(y, -1), equal(y, math.inf))
    safe = _select(logical_and(zero, ends), broadcast_like(zeros_like(y), y), y)
    out = multiply(x, log1p(safe))
    return where(logical_and(zero, isnan(y)), y, out)


@_xlog1py.defjvp
def _xlog1py_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x, y), (dx, dy) = primals, tangents
    return _xlog1py(x, y), add(multiply(dx, log1p(y)), multiply(dy, divide(x, add(y, 1))))


def _xlogx(x: Any) -> Any:
    return xlogy(x, x)


def entr(x: Any) -> Any:
    """-x log(x); 0 at 0, -infinity below."""
    x = one_inexact("entr", x)
    return _entr(x)


@custom_jvp
def _entr(x: Any) -> Any:
    safe = where(less(x, 0), constant(0, x), x)
    return where(less(x, 0), constant(-np.inf, x), negative(_xlogx(safe)))


@_entr.defjvp
def _entr_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    return _entr(x), multiply(t, subtract(negative(log(x)), 1))


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


def exp1(x: Any) -> Any:
    """The exponential integral E1: the integral of exp(-t) / t from x on."""
    x, kind = _wide("exp1", x)
    return cast(_exponential_integral(x, 1), kind)


def _exponential_integral(x: Any, n: int) -> Any:
    """E_n of positive x: a power series up to 1, a continued fraction above (Abramowitz 5.1)."""
    small = less_equal(x, 1.0)
    near = where(small, x, constant(1, x))
    far = where(small, constant(2, x), x)
    # E_n(x) = (-x)^(n-1)/(n-1)! (psi(n) - log x) - sum over k != n-1 of (-x)^k / ((k-n+1) k!)
    psi = -np.euler_gamma + sum(1 / m for m in range(1, n))
    series = multiply(
        divide(power(negative(near), n - 1), math.factorial(n - 1)), subtract(psi, log(near))
    )
    term: Any = constant(1, x)
    for k in range(26):
        if k:
            term = divide(multiply(term, negative(near)), k)
        if k != n - 1:
            series = subtract(series, divide(term, k - n + 1))
    rest = add(far, 2.0 * 60 + n)
    for k in range(60, 0, -1):
        rest = subtract(add(far, n + 2 * (k - 1)), divide(k * (k + n - 1.0), rest))
    out = where(small, series, divide(exp(negative(far)), rest))
    out = where(equal(x, 0), constant(np.inf if n == 1 else 1 / (n - 1), x), out)
    return where(less(x, 0), constant(np.nan, x), out)


def expn(n: Any, x: Any) -> Any:
    """The generalized exponential integral E_n for a concrete non-negative integer n."""
    known = concrete_or_none(n) if not isinstance(n, int) else as_array(n)
    if known is None or known.aval.ndim:
        raise NotImplementedError(
            "expn: n must be one concrete integer. Use jnp.stack over several orders."
        )
    order = int(known)
    x, kind = _wide("expn", x)
    if order < 0:
        return cast(broadcast(constant(np.nan, x), x.aval.shape), kind)
    if order == 0:
        return cast(divide(exp(negative(x)), x), kind)
    return cast(_exponential_integral(x, order), kind)


def expi(x: Any) -> Any:
    """The exponential integral Ei: the principal value of the integral of exp(t) / t up to x."""
    x, kind = _wide("expi", x)
    below = less(x, 0)
    left = negative(_exponential_integral(where(below, negative(x), constant(1, x)), 1))
    positive = where(below, constant(1, x), x)
    # From `switch` on the least term of the asymptotic series, the number `switch`, is below the
    # dtype's precision (2e-8 and 7e-17); before it the other series needs so many `terms`.
    switch, terms = (40, 110) if x.aval.dtype == dtypes.float64 else (20, 70)
    near = less(positive, float(switch))
    t = where(near, positive, constant(1, x))
    series = add(np.euler_gamma, log(t))
    term: Any = constant(1, x)
    for k in range(1, terms):
        term = divide(multiply(term, t), k)
        series = add(series, divide(term, k))
    infinite = equal(x, np.inf)
    far = where(logical_or(near, infinite), constant(switch, x), positive)
    total: Any = constant(1, x)
    term = constant(1, x)
    for k in range(1, switch):
        term = divide(multiply(term, k), far)
        total = add(total, term)
    right = where(near, series, multiply(divide(exp(far), far), total))
    out = where(infinite, x, where(below, left, right))
    return cast(where(equal(x, 0), constant(-np.inf, x), out), kind)


__all__ = [
    "bernoulli",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
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
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
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
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]


# B(2k) / (2k + 1)! for k = 1, 2, ...: the series of the dilogarithm in -log(1 - x), whose terms
# fall by (log 2 / 2π)² or more here.
_DILOGARITHM = [
    number / math.factorial(2 * k + 1)
    for k, number in enumerate([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6], 1)
]


def spence(x: Any) -> Any:
    """Spence's function, the integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x.

    Of floats of any shape; NaN below 0.

    >>> import numjet.scipy.special as special
    >>> print(special.spence(1.0), special.spence(2.0))
    0.0 -0.822467
    """
    (x,) = _floats("spence", x)
    x, dtype = _wide("spence", x)
    small, large = less(x, 0.5), greater(x, 2)
    safe = where(large, x, 2)
    below = negative(log1p(negative(where(small, x, 0))))
    between = subtract(0, log(where(logical_or(small, large), 1, x)))
    u = where(small, below, where(large, log1p(divide(-1, safe)), between))
    square = multiply(u, u)
    series = zeros_like(u)
    for coefficient in reversed(_DILOGARITHM):
        series = multiply(add(series, coefficient), square)
    series = add(multiply(u, add(series, 1)), multiply(square, -0.25))
    reflected = subtract(subtract(math.pi**2 / 6, xlogy(negative(below), x)), series)
    falling = log(subtract(safe, 1))
    inverted = subtract(
        subtract(-(math.pi**2) / 6, multiply(0.5, multiply(falling, falling))), series
    )
    return cast(where(small, reflected, where(large, inverted, series)), dtype)
