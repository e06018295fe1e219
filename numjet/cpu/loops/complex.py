"""Complex arithmetic and functions in terms of real loop IR expressions.

A complex value is a pair of real expressions; `unary` and `binary` are what the ExprEmitter calls
when an operand is a pair. Formulas follow C99 Annex G where that costs nothing, and scale
where a naive formula would overflow. Nobody but `loops.build` calls it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from numjet.base.record import record
from numjet.cpu.loops.ir import Expr


@record(frozen=True, eq=False, slots=True)
class ComplexPair:
    """A complex value: two real expressions (or two locals) of one dtype."""

    re: Any
    im: Any

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.complex64 if self.re.dtype == np.float32 else np.complex128)


# What the emitter's methods take: an expression, a pair of them, or a number beside one.
Operand: TypeAlias = Expr | ComplexPair | float | complex | np.generic


class Arithmetic(Protocol):
    """The emitter's operations on real expressions and numbers, as the functions here use them."""

    def const(self, value: complex, dtype: np.dtype) -> Any: ...
    def call(self, name: str, *xs: Operand) -> Any: ...
    def select(self, condition: Operand, x: Operand, y: Operand) -> Any: ...
    def neg(self, x: Operand) -> Any: ...
    def abs(self, x: Operand) -> Any: ...
    def pow(self, x: Operand, y: Operand) -> Any: ...
    def add(self, x: Operand, y: Operand) -> Any: ...
    def sub(self, x: Operand, y: Operand) -> Any: ...
    def mul(self, x: Operand, y: Operand) -> Any: ...
    def div(self, x: Operand, y: Operand) -> Any: ...
    def max(self, x: Operand, y: Operand) -> Any: ...
    def min(self, x: Operand, y: Operand) -> Any: ...
    def eq(self, x: Operand, y: Operand) -> Any: ...
    def ne(self, x: Operand, y: Operand) -> Any: ...
    def lt(self, x: Operand, y: Operand) -> Any: ...
    def gt(self, x: Operand, y: Operand) -> Any: ...
    def ge(self, x: Operand, y: Operand) -> Any: ...
    def and_(self, x: Operand, y: Operand) -> Any: ...
    def or_(self, x: Operand, y: Operand) -> Any: ...


def _add(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    return ComplexPair(e.add(x.re, y.re), e.add(x.im, y.im))


def _sub(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    return ComplexPair(e.sub(x.re, y.re), e.sub(x.im, y.im))


def _mul(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    re = e.sub(e.mul(x.re, y.re), e.mul(x.im, y.im))
    im = e.add(e.mul(x.re, y.im), e.mul(x.im, y.re))
    return ComplexPair(re, im)


def _square(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """(a - b)(a + b) + 2abi: the parts do not cancel, nor overflow where they are equal."""
    im = e.mul(x.re, x.im)
    return ComplexPair(e.mul(e.sub(x.re, x.im), e.add(x.re, x.im)), e.add(im, im))


def _div(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    """Smith's method: divide through by the larger part of y."""
    wide = e.ge(e.abs(y.re), e.abs(y.im))
    big, small = e.select(wide, y.re, y.im), e.select(wide, y.im, y.re)
    both_zero = e.eq(big, 0)
    ratio = e.select(both_zero, e.const(0, big.dtype), e.div(small, big))
    scale = e.add(big, e.mul(small, ratio))
    one = e.select(wide, x.re, x.im)
    two = e.select(wide, x.im, x.re)
    re = e.div(e.add(one, e.mul(two, ratio)), scale)
    im = e.div(e.sub(two, e.mul(one, ratio)), scale)
    return ComplexPair(re, e.select(wide, im, e.neg(im)))


def _pow(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    """exp(y·log x), with 0**0 = 1 and 0**y = 0 where y has a positive real part, NaN elsewhere.

    Of y = c + di the size is |x|^c exp(-dθ): of an |x| far from 1 the first factor is a power, as
    c·log|x| is rounded to fewer digits the larger it is; not where both factors are extreme.
    """
    zero = e.and_(e.eq(x.re, 0), e.eq(x.im, 0))
    y_zero = e.and_(e.eq(y.re, 0), e.eq(y.im, 0))
    logarithm, angle = _log_of_size(e, x), e.call("atan2", x.im, x.re)
    growth, turn = e.mul(y.re, logarithm), e.neg(e.mul(y.im, angle))
    unit = e.const(1, x.re.dtype)
    limit = e.const(40 if x.re.dtype == np.float32 else 350, x.re.dtype)
    apart = e.lt(e.abs(turn), e.select(e.lt(e.abs(growth), limit), limit, unit))
    apart = e.and_(apart, e.gt(e.abs(logarithm), 1.0))
    size = e.call("exp", e.select(apart, turn, e.add(growth, turn)))
    size = e.mul(size, e.pow(e.select(apart, _abs(e, x), unit), y.re))
    turns = e.select(e.eq(y.im, 0), e.const(0, x.re.dtype), e.mul(y.im, logarithm))
    phase = e.add(e.mul(y.re, angle), turns)
    im = e.select(e.eq(phase, 0), phase, e.mul(size, e.call("sin", phase)))
    power = ComplexPair(e.mul(size, e.call("cos", phase)), im)
    one, nan = e.const(1, x.dtype), e.const(complex(math.nan, math.nan), x.dtype)
    at_zero = e.select(e.gt(y.re, 0), e.const(0, x.dtype), nan)
    return e.select(y_zero, one, e.select(zero, at_zero, power))


def _eq(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> Any:
    return e.and_(e.eq(x.re, y.re), e.eq(x.im, y.im))


def _ne(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> Any:
    return e.or_(e.ne(x.re, y.re), e.ne(x.im, y.im))


def _ordered(name: str) -> Callable[..., Any]:
    """Lexicographic comparison, as NumPy orders complex numbers."""

    def compare(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> Any:
        strict = e.call(name[0] + "t", x.re, y.re)
        return e.or_(strict, e.and_(e.eq(x.re, y.re), e.call(name, x.im, y.im)))

    return compare


def _pick(name: str) -> Callable[..., Any]:
    def choose(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
        nan = e.or_(e.ne(x.re, x.re), e.ne(x.im, x.im))
        first = _ordered("ge" if name == "max" else "le")(e, x, y)
        return e.select(e.or_(nan, first), x, y)

    return choose


def _abs(e: Arithmetic, x: ComplexPair) -> Any:
    """hypot: scaled by the larger part so that squares neither overflow nor vanish."""
    a, b = e.abs(x.re), e.abs(x.im)
    big, small = e.max(a, b), e.min(a, b)
    ratio = e.select(e.eq(big, 0), e.const(0, a.dtype), e.div(small, big))
    length = e.mul(big, e.call("sqrt", e.add(e.mul(ratio, ratio), 1.0)))
    infinite = e.or_(e.eq(a, math.inf), e.eq(b, math.inf))
    return e.select(infinite, e.const(math.inf, a.dtype), length)


def _sign(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """z / |z|, of z over its larger part, which neither overflows nor vanishes; z at 0. Infinite
    parts are ±1 beside finite ones, which are 0.
    """
    big = e.max(e.abs(x.re), e.abs(x.im))
    zero, infinite = e.eq(big, 0), e.eq(big, math.inf)

    def over(part: Expr) -> Expr:
        far = e.select(e.eq(e.abs(part), math.inf), e.const(1, part.dtype), e.mul(part, 0.0))
        return e.select(infinite, e.call("copysign", far, part), e.div(part, big))

    a, b = over(x.re), over(x.im)
    size = e.call("sqrt", e.add(e.mul(a, a), e.mul(b, b)))
    return ComplexPair(e.select(zero, x.re, e.div(a, size)), e.select(zero, x.im, e.div(b, size)))


def _exp(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """At -inf 0 whatever the phase, and infinite without a phase at inf."""
    size, phase = e.call("exp", x.re), x.im
    endless = e.eq(e.abs(x.re), math.inf)
    no_phase = e.and_(endless, e.ne(e.sub(x.im, x.im), e.const(0, x.re.dtype)))
    re = e.select(no_phase, size, e.mul(size, e.call("cos", phase)))
    im = e.select(e.eq(x.im, 0), x.im, e.mul(size, e.call("sin", phase)))
    low = e.eq(x.re, -math.inf)
    return ComplexPair(re, e.select(e.and_(no_phase, low), size, im))


def _log(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return ComplexPair(_log_of_size(e, x), e.call("atan2", x.im, x.re))


def _log_of_size(e: Arithmetic, x: ComplexPair) -> Any:
    """log|z|: half of log1p(|z|² - 1) near the unit circle, to keep the digits; elsewhere, with b
    the larger part and s the smaller, log b + log1p((s/b)²) / 2, where nothing overflows.
    """
    a, b = e.abs(x.re), e.abs(x.im)
    big, small = e.max(a, b), e.min(a, b)
    near = e.and_(e.gt(big, 0.5), e.lt(big, 3.0))
    safe = e.select(near, big, e.const(1, a.dtype))
    excess = e.add(e.mul(e.sub(safe, 1.0), e.add(safe, 1.0)), e.mul(small, small))
    infinite, zero = _infinite(e, x), e.const(0, a.dtype)
    ratio = e.select(e.or_(infinite, e.eq(big, 0)), zero, e.div(small, big))
    half = e.mul(e.call("log1p", e.select(near, excess, e.mul(ratio, ratio))), 0.5)
    size = e.add(e.select(near, zero, e.call("log", big)), half)
    return e.select(infinite, e.const(math.inf, a.dtype), size)


def _sqrt(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """Half the sum of |z| and |re|, scaled by 1/4 so that the sum does not overflow."""
    size = _abs(e, ComplexPair(e.mul(x.re, 0.25), e.mul(x.im, 0.25)))
    root = e.mul(e.call("sqrt", e.mul(e.add(size, e.mul(e.abs(x.re), 0.25)), 0.5)), 2.0)
    zero = e.eq(root, 0)
    other = e.select(zero, e.abs(x.im), e.div(e.mul(e.abs(x.im), 0.5), root))
    positive = e.ge(x.re, 0)
    infinite = e.eq(e.abs(x.im), math.inf)
    re = e.select(infinite, e.abs(x.im), e.select(positive, root, other))
    im = e.select(infinite, e.abs(x.im), e.select(positive, other, root))
    return ComplexPair(re, e.call("copysign", im, x.im))


def _reciprocal(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return _div(e, ComplexPair(e.const(1, x.re.dtype), e.const(0, x.re.dtype)), x)


def _rsqrt(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    y, zero = _reciprocal(e, _sqrt(e, x)), e.const(0, x.re.dtype)
    infinite = _infinite(e, x)
    im = e.select(infinite, e.call("copysign", zero, e.neg(x.im)), y.im)
    return ComplexPair(e.select(infinite, zero, y.re), im)


def _sinh(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    re = e.mul(e.call("sinh", x.re), e.call("cos", x.im))
    im = e.mul(e.call("cosh", x.re), e.call("sin", x.im))
    return ComplexPair(e.select(e.eq(x.re, 0), x.re, re), e.select(e.eq(x.im, 0), x.im, im))


def _cosh(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    re = e.mul(e.call("cosh", x.re), e.call("cos", x.im))
    im = e.mul(e.call("sinh", x.re), e.call("sin", x.im))
    side = e.call("copysign", e.const(1, x.re.dtype), x.re)
    return ComplexPair(re, e.select(e.eq(x.im, 0), e.mul(side, x.im), im))


def _zero_like(e: Arithmetic, x: Expr, y: Expr) -> Expr:
    """A zero with the sign of x, of y where x is NaN."""
    return e.call("copysign", e.const(0, x.dtype), e.select(e.eq(x, x), x, y))


def _tanh(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """tanh(a+bi) = (t(1+u²) + i·u(1-t²)) / (1+t²u²), t = tanh a, u = tan b; 1-t² = 1/cosh²a.

    At an infinite a the phase does not matter but for the sign of a zero.
    """
    endless = e.eq(e.abs(x.re), math.inf)
    t = e.call("tanh", x.re)
    u = e.call("tan", x.im)
    u = e.select(endless, _zero_like(e, u, x.im), u)
    inverse = e.div(e.const(1, t.dtype), e.call("cosh", x.re))
    tu = e.mul(t, u)
    below = e.add(e.mul(tu, tu), 1.0)
    re = e.div(e.mul(t, e.add(e.mul(u, u), 1.0)), below)
    im = e.div(e.mul(e.mul(u, inverse), inverse), below)
    return ComplexPair(re, e.select(e.eq(x.im, 0), x.im, im))


def _times_i(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return ComplexPair(e.neg(x.im), x.re)


def _over_i(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return ComplexPair(x.im, e.neg(x.re))


def _rotated(hyperbolic: Callable[..., Any]) -> Callable[..., Any]:
    """f(z) = fh(iz)/i, for sin from sinh, tan from tanh, asin from asinh, atan from atanh."""

    def circular(e: Arithmetic, x: ComplexPair) -> ComplexPair:
        return _over_i(e, hyperbolic(e, _times_i(e, x)))

    return circular


def _cos(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return _cosh(e, _times_i(e, x))


def _log1p(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """log(1+z): the modulus through log1p(2a + a² + b²)."""
    a, b = x.re, x.im
    small = e.lt(e.max(e.abs(a), e.abs(b)), 0.5)
    excess = e.add(e.mul(a, e.add(a, 2.0)), e.mul(b, b))
    near = e.mul(e.call("log1p", e.select(small, excess, e.const(0, a.dtype))), 0.5)
    far = _log(e, ComplexPair(e.add(a, 1.0), b))
    return ComplexPair(e.select(small, near, far.re), e.call("atan2", b, e.add(a, 1.0)))


def _expm1(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """expm1(a)·cos b - 2·sin²(b/2) + i·exp(a)·sin b."""
    half = e.call("sin", e.mul(x.im, 0.5))
    re = e.sub(e.mul(e.call("expm1", x.re), e.call("cos", x.im)), e.mul(e.mul(half, half), 2.0))
    im = e.mul(e.call("exp", x.re), e.call("sin", x.im))
    # The limit at -inf whatever the phase, and infinite without a phase at inf.
    low = e.eq(x.re, -np.inf)
    re = e.select(low, e.const(-1, x.re.dtype), re)
    im = e.select(low, _zero_like(e, im, x.im), im)
    re = e.select(e.eq(x.re, np.inf), _real_at_infinity(e, x, re), re)
    return ComplexPair(re, e.select(e.eq(x.im, 0), x.im, im))


def _real_at_infinity(e: Arithmetic, x: ComplexPair, re: Any) -> Any:
    no_phase = e.ne(e.sub(x.im, x.im), e.const(0, x.re.dtype))
    return e.select(no_phase, x.re, re)


def _one(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return ComplexPair(e.const(1, x.re.dtype), e.const(0, x.re.dtype))


def _infinite(e: Arithmetic, x: ComplexPair) -> Expr:
    return e.or_(e.eq(e.abs(x.re), math.inf), e.eq(e.abs(x.im), math.inf))


def _roots(e: Arithmetic, x: ComplexPair) -> tuple[ComplexPair, ComplexPair]:
    """sqrt(1-z), sqrt(1+z): on a branch cut the sign of the zero in z says on which side z is."""
    minus = ComplexPair(e.sub(1.0, x.re), e.neg(x.im))
    return _sqrt(e, minus), _sqrt(e, ComplexPair(e.add(x.re, 1.0), x.im))


def _asinh_of_difference(
    e: Arithmetic, x: ComplexPair, a: Expr, b: Expr, c: Expr, d: Expr
) -> Expr:
    """asinh(ab - cd) of parts of the roots; log 4 + asinh((ab - cd) / 4) where that is large."""
    large = e.gt(e.max(e.abs(x.re), e.abs(x.im)), 1e18)
    half = e.select(large, e.const(0.5, a.dtype), e.const(1, a.dtype))
    b, d = e.mul(b, half), e.mul(d, half)
    y = e.sub(e.mul(e.mul(a, half), b), e.mul(e.mul(c, half), d))
    value, shift = e.call("asinh", y), e.call("copysign", e.const(math.log(4.0), a.dtype), y)
    return e.select(large, e.add(value, shift), value)


def _acos(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """Kahan: with p = sqrt(1-z), q = sqrt(1+z). At infinity the angle alone counts."""
    p, q = _roots(e, x)
    re = e.mul(e.call("atan2", p.re, q.re), 2.0)
    im = _asinh_of_difference(e, x, q.re, p.im, q.im, p.re)
    endless, infinity = _infinite(e, x), e.const(math.inf, x.re.dtype)
    re = e.select(endless, e.call("atan2", e.abs(x.im), x.re), re)
    return ComplexPair(re, e.select(endless, e.call("copysign", infinity, e.neg(x.im)), im))


def _asin(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    p, q = _roots(e, x)
    below = e.sub(e.mul(p.re, q.re), e.mul(p.im, q.im))
    im = _asinh_of_difference(e, x, p.re, q.im, p.im, q.re)
    endless, infinity = _infinite(e, x), e.const(math.inf, x.re.dtype)
    re = e.call("atan2", x.re, e.select(endless, e.abs(x.im), below))
    return ComplexPair(re, e.select(endless, e.call("copysign", infinity, x.im), im))


def _asinh(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return _over_i(e, _asin(e, _times_i(e, x)))


def _acosh(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """±i acos z, of which the real part is not negative."""
    y = _acos(e, x)
    return ComplexPair(e.abs(y.im), e.call("copysign", y.re, x.im))


def _atanh(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """re = log1p(4|a| / ((1-|a|)² + b²)) / 4 like a, im = atan2(2b, (1-a)(1+a) - b²) / 2.

    Where squares overflow, re = a / (a² + b²), that of 1/x, and im = π/2 with the sign of b; beside
    ±1, where they vanish, re = log(2/|b|) / 2.
    """
    a, b = x.re, x.im
    size, minus, plus = e.abs(a), e.sub(1.0, a), e.add(a, 1.0)
    gap = e.sub(1.0, size)
    below = e.add(e.mul(gap, gap), e.mul(b, b))
    re = e.mul(e.call("log1p", e.div(e.mul(size, 4.0), below)), 0.25)
    beside = e.and_(e.eq(gap, 0), e.lt(e.abs(b), 1e-9))
    safe = e.select(beside, e.abs(b), e.const(1, a.dtype))
    re = e.select(beside, e.mul(e.sub(math.log(2.0), e.call("log", safe)), 0.5), re)
    im = e.mul(e.call("atan2", e.mul(b, 2.0), e.sub(e.mul(minus, plus), e.mul(b, b))), 0.5)
    endless = _infinite(e, x)
    far = e.or_(endless, e.gt(e.max(size, e.abs(b)), 1e17))
    at_far = e.select(endless, e.const(0, a.dtype), e.abs(_reciprocal(e, x).re))
    re = e.call("copysign", e.select(far, at_far, re), a)
    quarter = e.call("copysign", e.const(math.pi / 2, a.dtype), b)
    quarter = e.select(e.eq(b, b), quarter, b)
    return ComplexPair(re, e.select(far, quarter, im))


def _atan2(e: Arithmetic, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    """log((y + ix) / sqrt(x² + y²)) / i, of x and y over their largest part."""
    parts = [e.abs(part) for part in (x.re, x.im, y.re, y.im)]
    size = e.max(e.max(parts[0], parts[1]), e.max(parts[2], parts[3]))
    x, y = (ComplexPair(e.div(z.re, size), e.div(z.im, size)) for z in (x, y))
    length = _sqrt(e, _add(e, _mul(e, x, x), _mul(e, y, y)))
    return _over_i(e, _log(e, _div(e, _add(e, y, _times_i(e, x)), length)))


def _logistic(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    """1 / (1 + exp(-x)) to the right of the imaginary axis, exp(x) / (exp(x) + 1) to its left."""
    right = e.ge(x.re, 0)
    turned = ComplexPair(e.neg(e.abs(x.re)), e.select(right, e.neg(x.im), x.im))
    small, one = _exp(e, turned), _one(e, x)
    above = ComplexPair(e.select(right, one.re, small.re), e.select(right, one.im, small.im))
    return _div(e, above, _add(e, one, small))


def _scaled(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
    def times(e: Arithmetic, x: ComplexPair) -> ComplexPair:
        y = function(e, x)
        return ComplexPair(e.mul(y.re, factor), e.mul(y.im, factor))

    return times


def _exp2(e: Arithmetic, x: ComplexPair) -> ComplexPair:
    return _exp(e, ComplexPair(e.mul(x.re, math.log(2.0)), e.mul(x.im, math.log(2.0))))


_BINARY: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "pow": _pow, "atan2": _atan2,
    "eq": _eq, "ne": _ne,
    "lt": _ordered("lt"), "le": _ordered("le"), "gt": _ordered("gt"), "ge": _ordered("ge"),
    "max": _pick("max"), "min": _pick("min"),
}  # fmt: skip

_UNARY: dict[str, Callable[..., Any]] = {
    "neg": lambda e, x: ComplexPair(e.neg(x.re), e.neg(x.im)),
    "abs": _abs, "sign": _sign, "exp": _exp, "exp2": _exp2, "log": _log, "log1p": _log1p,
    "log2": _scaled(_log, 1 / math.log(2.0)), "log10": _scaled(_log, 1 / math.log(10.0)),
    "expm1": _expm1, "sqrt": _sqrt, "rsqrt": _rsqrt,
    "sinh": _sinh, "cosh": _cosh, "tanh": _tanh, "sin": _rotated(_sinh), "cos": _cos,
    "tan": _rotated(_tanh), "asin": _asin, "acos": _acos, "atan": _rotated(_atanh),
    "asinh": _asinh, "acosh": _acosh, "atanh": _atanh, "logistic": _logistic,
    "square": _square, "reciprocal": _reciprocal,
    "is_nan": lambda e, x: e.or_(e.ne(x.re, x.re), e.ne(x.im, x.im)),
}  # fmt: skip


def binary(e: Arithmetic, name: str, x: ComplexPair, y: ComplexPair) -> Any:
    """A binary operation on pairs."""
    if name not in _BINARY:
        raise NotImplementedError(
            f"{name} of complex numbers has no native lowering; use a Host rule for it"
        )
    return _BINARY[name](e, x, y)


def unary(e: Arithmetic, name: str, x: ComplexPair) -> Any:
    """A function of one pair."""
    if name not in _UNARY:
        raise NotImplementedError(
            f"{name} of a complex number has no native lowering; use a Host rule for it"
        )
    return _UNARY[name](e, x)
