"""The hypergeometric functions 1F1 and 2F1 of real arguments, for numjet.scipy.special.

By their series where these have no cancellation, after Kummer's, Pfaff's or Euler's transformation
elsewhere (DLMF 13.2.39, 15.8.1). Where the argument of 2F1 is near 1, Taylor series of its
differential equation go there in steps (as in Pearson, Olver & Porter, "Numerical methods for the
computation of the confluent and Gauss hypergeometric functions", Numer. Algorithms 74, 2017), which
needs no limits where c - a - b is a whole number; 1F1 of large arguments by DLMF 13.7.

The derivative in the argument is of the same kind (DLMF 13.3.15, 15.5.1); those in the parameters
come from differentiating the loops forward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.autodiff import jvp
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.numpy.creation import taking_lists
from numjet.scipy.special_gamma import gammasgn
from numjet.scipy.special_integrals import wide

# Terms after which a series is given up.
MOST_TERMS = 5000


def _whole_nonpositive(a: Any) -> Any:
    return (a <= 0) & (a == jnp.floor(a))


def _not_zero(x: Any) -> Any:
    """A denominator that is 0 only where the terms have been 0 before."""
    return jnp.where(x == 0, 1, x)


def _summed(numerator: Callable, rest: Callable, like: Any, whole: bool) -> Any:
    """Σ t_k with t_0 = 1 and t_(k+1) = numerator(k) rest(k) t_k, until the terms do not count.

    whole: a numerator of 0 does not end the series, as its derivatives have terms beyond.
    """
    eps = float(jnp.finfo(like.dtype).eps)

    def going(state: tuple) -> Any:
        k, guide, total, before, _ = state
        large = jnp.abs(guide) > eps * jnp.abs(total)
        # One small term may be by chance a zero of the ratio's numerator: two are the end.
        large |= jnp.abs(before) > eps * jnp.abs(total)
        return (k < MOST_TERMS) & jnp.any(large & jnp.isfinite(total) & (guide != 0))

    def step(state: tuple) -> tuple:
        k, guide, total, _, term = state
        number = k.astype(like.dtype)
        top, other = numerator(number), rest(number)
        new = term * (top * other)
        along = guide * _not_zero(top) * other if whole else new
        return k + 1, along, total + new, guide, new

    one = jnp.ones_like(like)
    return lax.while_loop(going, step, (jnp.asarray(0), one, one, one, one))[2]


def _with_derivatives(function: Callable, argument_slope: Callable, count: int) -> Callable:
    """`function` of `count` parameters and an argument, with rules for all of them. Those in the
    parameters call it with whole=True: a series that ends has derivatives that do not."""
    wrapped = jvp_of_arrays(lambda *args: function(*args))

    def along(i: int) -> Callable:
        def rule(t: Any, out: Any, *args: Any) -> Any:
            if i == count:
                return argument_slope(wrapped, *args) * t
            others = list(args)

            def one(p: Any) -> Any:
                return function(*others[:i], p, *others[i + 1 :], whole=True)

            return jvp(one, (args[i],), (jnp.ones_like(args[i]),))[1] * t

        return rule

    wrapped.defjvps(*[along(i) for i in range(count + 1)])
    return wrapped


# ------------------------------------------------------------------ 1F1
def _confluent_series(a: Any, b: Any, x: Any, whole: bool) -> Any:
    return _summed(lambda k: a + k, lambda k: x / (k + 1) / _not_zero(b + k), x, whole)


def _confluent_far(a: Any, b: Any, x: Any) -> Any:
    """1F1 of large x < 0, without what exp(x) makes small."""
    y = -x
    total: Any = jnp.ones_like(x)
    term: Any = total
    least = total
    for k in range(40):
        new = term * (a + k) * (1 + a - b + k) / ((k + 1) * y)
        # The series is summed to its least term.
        least = jnp.where(jnp.abs(new) < jnp.abs(least), new, jnp.zeros_like(least))
        term = new
        total = total + least
    size = jnp.exp(lax.lgamma(b) - lax.lgamma(b - a) - a * jnp.log(y))
    sign = gammasgn(b) * gammasgn(b - a)
    return jnp.where(_whole_nonpositive(b - a), 0, sign * size * total)


def _hyp1f1(a: Any, b: Any, x: Any, whole: bool = False) -> Any:
    pole = _whole_nonpositive(b)
    ends = _whole_nonpositive(a)
    # A polynomial of lower degree than the pole's order is none of its concern.
    undefined = pole & ~(ends & (a > b)) & (x != 0) & (a != 0) & ~(ends & (a == b))
    b_ = jnp.where(pole & ~ends, 1, b)
    b_ = jnp.where(pole & ends, b - 0.5, b_)
    exact_b = jnp.where(pole & ends, b, b_)
    turned = (x < 0) & ~(ends & pole if whole else ends)
    # Up to here exp(x) and its reciprocal are normal numbers. Where b - a ends the series the other
    # way stays.
    size = 600 if x.dtype == jnp.float64 else 80
    far = turned & (x < -size) & ~_whole_nonpositive(b_ - a)
    a1 = jnp.where(turned, b_ - a, a)
    x1 = jnp.where(turned, -x, x)
    x1 = jnp.where(far, 1, x1)
    x1 = jnp.where(jnp.isfinite(x1), x1, 1)
    series = _confluent_series(a1, exact_b, x1, whole)
    value = jnp.where(turned, jnp.exp(jnp.where(turned, x, 0)) * series, series)
    outer = _confluent_far(
        jnp.where(far, a, 1), jnp.where(far, b_, 2), jnp.where(far & jnp.isfinite(x), x, -100)
    )
    value = jnp.where(far, outer, value)
    value = jnp.where(x == jnp.inf, jnp.where(a == 0, 1, jnp.inf), value)
    value = jnp.where((x == -jnp.inf) & (a > 0), 0, value)
    value = jnp.where(undefined, jnp.inf, value)
    value = jnp.where((x == 0) if whole else (a == 0) | (x == 0), 1, value)
    return jnp.where(jnp.isnan(a) | jnp.isnan(b) | jnp.isnan(x), jnp.nan, value)


# The loops' bodies would be traced in each call.
_confluent = jit(_with_derivatives(_hyp1f1, lambda f, a, b, x: a / b * f(a + 1, b + 1, x), 2))


@taking_lists
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's function: Σ (a)_k / (b)_k x^k / k!, real.

    a, b, x: real floats that broadcast. Result: infinite where b is 0, -1, ... and no numerator is
    0 before; 1 for a = 0. The digits of a result that is small beside its terms (a < 0 < x) are
    lost. Derivative: a/b times the function at a + 1, b + 1 in x; in the parameters too, but there
    without reverse mode beyond first order. Raises ValueError for complex numbers. Source: DLMF
    13.2.2, 13.2.39, 13.7; Pearson, Olver and Porter, Numerical methods for hypergeometric functions
    (2017).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.hyp1f1(1.0, 2.0, jnp.array([1.0])).round(4)
    Array([1.7183], dtype=float32)
    """
    (a, b, x), dtype = wide("hyp1f1", a, b, x)
    return _confluent(*jnp.broadcast_arrays(a, b, x)).astype(dtype)


# ------------------------------------------------------------------ 2F1
def _gauss_series(a: Any, b: Any, c: Any, x: Any, whole: bool) -> Any:
    return _summed(
        lambda k: (a + k) * (b + k), lambda k: x / (k + 1) / _not_zero(c + k), x, whole
    )


# Taylor series reach half of the way to the singular point; so many terms of 2^-k count.
TAYLOR_TERMS = {True: 60, False: 30}


def _towards_one(a: Any, b: Any, c: Any, rest: Any, whole: bool) -> Any:
    """2F1 at x = 1 - rest, for rest in (0, 1/2]."""
    half = jnp.full_like(rest, 0.5)
    value = _gauss_series(a, b, c, half, whole)
    slope = a * b / c * _gauss_series(a + 1, b + 1, c + 1, half, whole)
    count = TAYLOR_TERMS[rest.dtype == jnp.float64]

    def going(state: tuple) -> Any:
        left, _, _ = state
        return jnp.any(left > rest)

    def step(state: tuple) -> tuple:
        left, value, slope = state
        # From x = 1 - left on to 1 - left / 2, or to the end. With u_k the k-th coefficient times
        # (step)^k, the equation x (1 - x) F'' + (c - (a + b + 1) x) F' - a b F = 0 gives u_(k+2).
        new = jnp.maximum(left * 0.5, rest)
        h = left - new
        x = 1 - left
        first, second = value, slope * h
        total, total_slope = first + second, second
        p, q = x * left, 1 - 2 * x
        linear, constant = c - (a + b + 1) * x, -(a + b + 1)
        for k in range(count):
            top = (k + 1) * (k * q + linear) * h * second + (
                k * (k - 1) * -1 + constant * k - a * b
            ) * h * h * first
            third = -top / ((k + 2) * (k + 1) * p)
            first, second = second, third
            total = total + third
            total_slope = total_slope + (k + 2) * third
        moving = left > rest
        safe = jnp.where(h == 0, 1, h)
        return (
            jnp.where(moving, new, left),
            jnp.where(moving, total, value),
            jnp.where(moving, total_slope / safe, slope),
        )

    return lax.while_loop(going, step, (half, value, slope))[1]


def _at_one(a: Any, b: Any, c: Any) -> Any:
    """Gauss's sum, for c > a + b; infinite otherwise (DLMF 15.4.20)."""
    good = c - a - b > 0
    s = jnp.where(good, c - a - b, 1)
    pole = _whole_nonpositive(c - a) | _whole_nonpositive(c - b)
    size = lax.lgamma(c) + lax.lgamma(s) - lax.lgamma(c - a) - lax.lgamma(c - b)
    sign = gammasgn(c) * gammasgn(c - a) * gammasgn(c - b)
    value = jnp.where(pole, 0, sign * jnp.exp(jnp.where(pole, 0, size)))
    return jnp.where(good, value, jnp.inf)


def _hyp2f1(a: Any, b: Any, c: Any, x: Any, whole: bool = False) -> Any:
    # b is the parameter that ends the series, if one does.
    swap = _whole_nonpositive(a) & ~(_whole_nonpositive(b) & (b > a))
    a, b = jnp.where(swap, b, a), jnp.where(swap, a, b)
    ends = _whole_nonpositive(b)
    pole = _whole_nonpositive(c)
    fine = ends & (b > c) | (a == 0) | (b == 0)
    undefined = pole & ~fine & ~(ends & (b == c)) & (x != 0)
    c = jnp.where(pole & ~ends, 1.5, c)
    one = jnp.ones_like(x)
    if whole:  # derivatives in the parameters have all terms, where the series converges
        ends &= pole | ~(x < 1)

    # A polynomial, of any argument.
    finite = _gauss_series(
        jnp.where(ends, a, one), jnp.where(ends, b, -one), c, jnp.where(ends, x, 0), False
    )
    a_, b_ = jnp.where(ends, one, a), jnp.where(ends, one, b)
    c_ = jnp.where(ends, 2 * one, c)
    x_ = jnp.where(ends | ~(x < 1) | (x == -jnp.inf), 0, x)
    # Pfaff's transformation takes (-∞, 0) to (0, 1).
    left = x_ < 0
    low, high = jnp.minimum(a_, b_), jnp.maximum(a_, b_)
    z = jnp.where(left, x_ / (x_ - 1), x_)
    rest = jnp.where(left, 1 / (1 - x_), 1 - x_)
    near = z <= 0.5
    # So transformed the function stays finite at 1, and steps towards it lose no digits: by Euler's
    # transformation, and with the smaller of a and b kept by Pfaff's.
    power = c_ - a_ - b_
    euler = ~left & ~near & (power < 0)
    a1 = jnp.where(left, low, jnp.where(euler, c_ - a_, a_))
    b1 = jnp.where(left, c_ - high, jnp.where(euler, c_ - b_, b_))
    inner = _gauss_series(a1, b1, c_, jnp.where(near, z, 0), whole)
    outer = _towards_one(a1, b1, c_, jnp.where(near, 0.5, rest), whole)
    value = jnp.where(near, inner, outer)
    value = value * rest ** jnp.where(left, low, jnp.where(euler, power, 0))

    value = jnp.where(ends, finite, value)
    value = jnp.where(~ends & (x == 1), _at_one(a_, b_, c_), value)
    # Where the other two parameters cancel it is a power; a whole one is real beyond 1 as well.
    other = jnp.where(b == c, a, b)
    beyond = jnp.where((a == c) | (b == c), (1 - x) ** -other, jnp.inf)
    beyond = jnp.where(other == jnp.floor(other), beyond, jnp.inf)
    value = jnp.where(~ends & (x > 1), beyond, value)
    value = jnp.where(~ends & (x == -jnp.inf), jnp.where((a > 0) & (b > 0), 0, jnp.nan), value)
    value = jnp.where(undefined, jnp.inf, value)
    constant = (a == 0) | (b == 0)
    value = jnp.where((x == 0) | (constant & ends if whole else constant), 1, value)
    unknown = jnp.isnan(a) | jnp.isnan(b) | jnp.isnan(c) | jnp.isnan(x)
    return jnp.where(unknown, jnp.nan, value)


_gauss = jit(
    _with_derivatives(_hyp2f1, lambda f, a, b, c, x: a * b / c * f(a + 1, b + 1, c + 1, x), 3)
)


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's function: Σ (a)_k (b)_k / (c)_k x^k / k!, real, for x <= 1.

    a, b, c, x: real floats that broadcast. Result: the broadcast shape, the promoted dtype.
    Polynomials (a or b is 0, -1, ...) are there for every x, and whole powers of 1 - x (a or b is
    c); otherwise it is infinite for x > 1, at x = 1 with c <= a + b, and where c is 0, -1, ...
    Derivative: a b / c times the function at a +
    1, b + 1, c + 1 in x; in the parameters too, but there without reverse mode beyond first order.
    Raises ValueError for complex numbers. Source: DLMF 15.2.1, 15.8.1; Pearson, Olver and Porter,
    Numerical methods for hypergeometric functions (2017).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.hyp2f1(1.0, 2.0, 3.0, jnp.array([0.5])).round(4)
    Array([1.5452], dtype=float32)
    """
    (a, b, c, x), dtype = wide("hyp2f1", a, b, c, x)
    return _gauss(*jnp.broadcast_arrays(a, b, c, x)).astype(dtype)
