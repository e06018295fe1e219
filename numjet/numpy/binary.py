"""Functions of two arrays that are several primitives: isclose, hypot, logaddexp, fmax, gcd."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, in_place, wanted
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import (
    absolute,
    broadcast_like,
    constant,
    full_scalar,
    multiply,
    prepared,
    remainder,
    select,
    subtract,
    zeros_like,
)
from numjet.numpy.fast import eager
from numjet.numpy.logic import (
    as_bool,
    greater,
    less,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from numjet.numpy.promote import (
    as_arrays,
    cast,
    one_array,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    promote_shapes,
    strong,
    unmixed,
)
from numjet.numpy.unary import isfinite, isnan, weak_of_scalars
from numjet.ops.arrange import broadcast_shapes
from numjet.ops.while_loop import while_loop


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol * |b|, element by element.

    a, b: numbers, broadcast to one shape (PRNG keys too: whether they are equal). rtol, atol: the
    relative and the absolute tolerance, broadcast too; mind that `b` is the reference. Returns
    booleans. Infinities are close to equal ones only, NaN to NaN only with `equal_nan`. TypeError
    for shapes of one rank that do not broadcast, ValueError for others.

    >>> jnp.isclose(jnp.array([1.0, 1.1]), jnp.array([1.000001, 1.0]))
    Array([ True, False], dtype=bool)
    """
    if all([dtypes.is_key(getattr(v, "dtype", None)) for v in (a, b)]):
        return lax.eq(*promote_shapes("isclose", a, b))
    x, y = promote_shapes("isclose", *promote_numeric(*unmixed("isclose", a, b)))
    if not dtypes.is_inexact(x.aval.dtype):
        # The tolerance is a float.
        x, y = (cast(v, dtypes.canonical(dtypes.float64)) for v in (x, y))
    kind = dtypes.real_of(x.aval.dtype)
    rtol, atol = (cast(one_array("isclose", v), kind) for v in (rtol, atol))
    if rtol.aval.shape or atol.aval.shape:
        x, y, rtol, atol = promote_shapes("isclose", x, y, rtol, atol)
    close = lax.le(absolute(subtract(x, y)), lax.add(atol, multiply(rtol, absolute(y))))
    # What is compared with must be finite; the tolerance may not be.
    bounded, same = isfinite(y), lax.eq(x, y)
    out = select(bounded, close, same) if close.aval.shape else where(bounded, close, same)
    if equal_nan:
        out = lax.bitwise_or(out, logical_and(isnan(x), isnan(y)))
    return out


def hypot(x1: Any, x2: Any, /) -> Any:
    """sqrt(x1**2 + x2**2), without overflow on the way.

    x1, x2: real numbers, broadcast to one shape and dtype; integers and booleans count as floats.
    Infinite where either is infinite. The derivatives at (0, 0) are 1/2 each. ValueError for
    complex numbers.

    >>> jnp.hypot(3.0, jnp.array([4.0, 0.0]))
    Array([5., 3.], dtype=float32)
    """
    x, y = prepared("hypot", promote_inexact, x1, x2)
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs. Take abs(x) first."
        )
    x, y = lax.abs(x), lax.abs(y)
    large, small = lax.max(x, y), lax.min(x, y)
    zero = lax.eq(large, zeros_like(large))
    safe = select(zero, broadcast_like(constant(1, large), large), large)
    ratio = lax.div(small, safe)
    out = lax.mul(large, lax.sqrt(lax.add(weak_of_scalars(1, ratio), lax.square(ratio))))
    out = select(zero, large, out)
    infinite = lax.bitwise_or(lax.eq(x, constant(np.inf, x)), lax.eq(y, constant(np.inf, y)))
    return select(infinite, broadcast_like(constant(np.inf, out), out), out)


# ------------------------------------------------------------------ sums of exponentials
def logaddexp(x1: Any, x2: Any, /) -> Any:
    """log(exp(x1) + exp(x2)), without overflow.

    x1, x2: numbers, broadcast to one shape and dtype; integers and booleans count as floats; for
    complex ones the principal value. The derivatives are the two shares of the sum, which add up to
    1 (NaN of -∞ and -∞). out, where: raise NotImplementedError: use `where`.

    >>> jnp.logaddexp(1000.0, jnp.array([0.0, 1000.0])).round(2)
    Array([1000.  , 1000.69], dtype=float32)
    """
    if FLAG.uses and wanted():
        return in_place("logaddexp", x1, x2)
    x, y = prepared("logaddexp", promote_inexact, x1, x2)
    return _logaddexp(x, y, 1.0)


def logaddexp2(x1: Any, x2: Any, /) -> Any:
    """log2(2**x1 + 2**x2), without overflow.

    x1, x2: numbers, broadcast to one shape and dtype; integers and booleans count as floats. The
    derivatives are the shares of the sum, which add up to 1. out, where: raise NotImplementedError.

    >>> jnp.logaddexp2(3.0, jnp.array([3.0, 1000.0]))
    Array([   4., 1000.], dtype=float32)
    """
    x, y = prepared("logaddexp2", promote_inexact, x1, x2)
    return _logaddexp(x, y, math.log(2))


@jvp_of_arrays
def _logaddexp_of_complex(x: Any, y: Any) -> Any:
    """The principal value, its imaginary part in (-pi, pi], with all digits of large phases."""
    larger = lax.ge(lax.real(x), lax.real(y))
    high, low = select(larger, x, y), select(larger, y, x)
    rest, angle = lax.log1p(lax.exp(lax.sub(low, high))), lax.imag(high)
    total = lax.add(lax.atan2(lax.sin(angle), lax.cos(angle)), lax.imag(rest))
    half = constant(math.pi, total)
    turn = remainder(lax.sub(half, total), constant(2 * math.pi, total))
    principal = lax.sub(half, turn)
    out = lax.complex(lax.add(lax.real(high), lax.real(rest)), principal)
    return strong(out) if out.aval.shape else out


def _logaddexp_of_complex_jvp(primals: tuple, tangents: tuple) -> tuple:
    out = _logaddexp_of_complex(*primals)       # each share of it is exp of the argument less it
    shares = [lax.mul(t, lax.exp(lax.sub(x, out))) for x, t in zip(primals, tangents)]
    return out, lax.add(*shares)


_logaddexp_of_complex.defjvp(_logaddexp_of_complex_jvp)


def _logaddexp(x: Any, y: Any, unit: float) -> Any:
    """In units of `unit` nats: max + log1p(exp(-|x - y|))."""
    if dtypes.is_complex(x.aval.dtype):
        if unit == 1.0:
            return _logaddexp_of_complex(x, y)
        nats = constant(unit, x)
        return lax.div(_logaddexp_of_complex(lax.mul(x, nats), lax.mul(y, nats)), nats)
    # A choice, not max and -|gap|: each branch is the function itself, so that derivatives of every
    # order are right where the arguments are equal.
    larger = lax.ge(x, y)
    high = select(larger, x, y)
    gap = lax.sub(x, y)
    # Infinity and infinity have no difference; their sum is the answer, and its derivative is 1.
    nothing = lax.eq(high, constant(-np.inf, high))
    infinite = lax.bitwise_or(lax.ne(gap, gap), _infinite(high))
    safe = select(infinite, full_scalar(zeros_like(gap), gap.aval.shape), gap)
    falling = select(larger, lax.neg(safe), safe)
    if unit != 1.0:
        falling = lax.mul(falling, weak_of_scalars(unit, falling))
    # The logarithm of no terms is log 0, which has no derivative.
    terms = lax.exp(select(nothing, lax.add(x, y), falling))
    rest = lax.log1p(select(nothing, lax.sub(terms, constant(1, terms)), terms))
    if unit != 1.0:
        rest = lax.div(rest, weak_of_scalars(unit, rest))
    # Where the sum is NaN so are its derivatives of every order: it is divided by what made it so.
    one = full_scalar(constant(1, gap), gap.aval.shape)
    sick = select(lax.ne(x, x), x, select(lax.ne(y, y), y, one))
    plain = select(lax.ne(gap, gap), lax.div(lax.add(x, y), sick), high)
    known = lax.bitwise_and(infinite, lax.bitwise_not(nothing))
    return select(known, plain, lax.add(high, rest))


def _infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), constant(np.inf, x))


# ------------------------------------------------------------------ steps and extremes
def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 where x1 is negative, 1 where it is positive, x2 where it is zero.

    x1, x2: real numbers, broadcast to one shape and dtype; integers and booleans count as floats.
    NaN where x1 is NaN. The derivative with respect to x1 is zero. TypeError for complex numbers.

    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = as_arrays("heaviside", x1, x2)
    number = not x.aval.ndim
    x, y = promote_shapes("heaviside", *promote_inexact(x, y), any_rank=True)
    if dtypes.is_complex(x.aval.dtype):
        raise TypeError(f"heaviside: lt does not accept dtype {x.aval.dtype}: it has no order.")
    if not number:
        x, y = strong(x), strong(y)
    zero = zeros_like(x)
    step = where(lax.lt(x, zero), zero, where(lax.gt(x, zero), constant(1, x), y))
    return where(isnan(x), x, step)


def fmax(x1: Any, x2: Any) -> Any:
    """The larger of x1 and x2, element by element; the other one where one is NaN.

    x1, x2: arrays or numbers, broadcast to one shape and dtype, which the result has. Where both
    are equal, x2 gets the derivative.

    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5)
    Array([1. , 0.5], dtype=float32)
    """
    x, y = promote_dtypes(*unmixed("fmax", x1, x2))
    return where(logical_or(greater(x, y), isnan(y)), x, y)


def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of x1 and x2, element by element; the other one where one is NaN.

    x1, x2: arrays or numbers, broadcast to one shape and dtype, which the result has. Where both
    are equal, x2 gets the derivative.

    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.5)
    Array([0.5, 0.5], dtype=float32)
    """
    x, y = promote_dtypes(*unmixed("fmin", x1, x2))
    return where(logical_or(less(x, y), isnan(y)), x, y)


# ------------------------------------------------------------------ integers
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor, never negative: Euclid's algorithm, element by element.

    x1, x2: integers, broadcast to one shape and dtype, which the result has. That of 0 and x is
    |x|. ValueError for other dtypes.

    >>> jnp.gcd(jnp.array([12, -18, 0]), 8)
    Array([4, 2, 8], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2, any_rank=True)
    if type(x) is type(y) is ArrayImpl and eager():
        return ArrayImpl(np.asarray(np.gcd(x._value, y._value)), x.aval)

    def step(state: tuple) -> tuple:
        x, y = state
        safe = where(as_bool(y), y, constant(1, y))
        return where(as_bool(y), y, x), where(as_bool(y), lax.rem(x, safe), y)

    # Euclid's algorithm, until the last element has its answer.
    state = while_loop(lambda state: not_equal(state[1], 0).any(), step,
                           (absolute(x), absolute(y)))
    return absolute(state[0])  # the least integer stays negative, and leaves such remainders


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple, never negative, element by element; 0 where either is 0.

    x1, x2: integers, broadcast to one shape and dtype, which the result has. ValueError for other
    dtypes. The divisor is found by Euclid's algorithm.

    >>> jnp.lcm(jnp.array([4, 6, 0]), 10)
    Array([20, 30,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    x, y = absolute(x), absolute(y)
    divisor = gcd(x, y)
    safe = where(as_bool(divisor), divisor, constant(1, divisor))
    return where(as_bool(divisor), multiply(x, lax.div(y, safe)), constant(0, x))


def _integers(name: str, x1: Any, x2: Any, any_rank: bool = False) -> list[Any]:
    x, y = promote_dtypes(*as_arrays(name, x1, x2))
    if not dtypes.is_integer(x.aval.dtype):
        raise ValueError(f"{name}: arguments must be integers, got {x.aval.dtype}.")
    shape = broadcast_shapes(x.aval.shape, y.aval.shape)
    if shape:
        x, y = strong(x), strong(y)  # weak of numbers alone, as in JAX
    x, y = promote_shapes(name, x, y, any_rank=any_rank)
    return [v if v.aval.shape == shape else full_scalar(v, shape) for v in (x, y)]
