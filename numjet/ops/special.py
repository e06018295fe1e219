"""Special functions: error functions, gamma functions, incomplete gamma and beta, Bessel
functions, zeta.

Used by `lax`, `scipy.special` and the distributions. erf, erfc, erf_inv, lgamma and digamma have
native code; the others are formulas over whole arrays (`ops.incomplete`, `ops.hurwitz`), of which
eager code has SciPy's where it has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import convert, full
from numjet.ops import hurwitz, incomplete, special_tables as tables
from numjet.ops.arithmetic import (
    abs as absolute,
    add,
    div,
    integer_pow,
    mul,
    neg,
    sign,
    square,
    sub,
)
from numjet.ops.families import (
    REAL_FLOATING,
    constant_like,
    elementwise,
    elementwise_abstract,
    elementwise_batch,
    elementwise_jvp,
    pair,
    quiet,
)
from numjet.ops.fma import fma
from numjet.ops.jit_call import call
from numjet.ops.logic import bitwise_and, eq, gt, le, lt
from numjet.ops.namespaces import Traced, lowering, reference
from numjet.ops.shape import select_n
from numjet.ops.special_series import chebyshev, polynomial, powers
from numjet.ops.transcendental import exp, log, log1p, rsqrt, sqrt
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import stage_closed

_SQRT_PI = 1.7724538509055160273


def _scipy(name: str) -> Callable:
    """SciPy's function of this name, imported when first called."""

    def call(*args: np.ndarray) -> np.ndarray:
        from scipy import special

        return getattr(special, name)(*args)

    return quiet(call)


def _native(name: str, reference: str, jvp: Callable) -> Primitive:
    return elementwise(
        name,
        accepts=REAL_FLOATING,
        reference=_scipy(reference),
        jvp=jvp,
        loops=lambda e, x: e.call(name, x),
    )


# ------------------------------------------------------------------ the error function
erf_p = _native(
    "erf",
    "erf",
    lambda t, out, x: mul(constant_like(x, 2 / _SQRT_PI), mul(t, exp(neg(square(x))))),
)
erfc_p = _native(
    "erfc",
    "erfc",
    lambda t, out, x: mul(constant_like(x, -2 / _SQRT_PI), mul(t, exp(neg(square(x))))),
)


def _erf_inv_slope(t: Any, out: Any, x: Any) -> Any:
    """√π/2 exp(y²). Towards 1 it is √π/2 erfcx(y) / (1 - x), whose relative error is that of the
    result y; that of exp(y²) is 2 y² times as large."""
    if x.aval.dtype.itemsize < 4 or config.jax_form():
        factor = exp(square(out))
    else:
        size = absolute(x)
        far = bitwise_and(gt(size, constant_like(x, 0.5)), lt(size, constant_like(x, 1)))
        none = full(x.aval.shape, 0, x.aval.dtype, x.aval.weak_type)
        near = exp(square(select_n(far, out, none)))
        w = div(constant_like(x, 3), add(absolute(select_n(far, none, out)), constant_like(x, 3)))
        left = sub(constant_like(x, 1), select_n(far, none, size))
        factor = select_n(far, near, div(mul(w, chebyshev(tables.ERFCX, w)), left))
    return mul(constant_like(x, _SQRT_PI / 2), mul(t, factor))


erf_inv_p = _native("erf_inv", "erfinv", _erf_inv_slope)

# ------------------------------------------------------------------ gamma
def _lgamma(x: np.ndarray) -> np.ndarray:
    from scipy import special

    return special.gammaln(np.where(x == -np.inf, x.dtype.type(np.inf), x))      # inf at both ends


lgamma_p = elementwise(
    "lgamma",
    accepts=REAL_FLOATING,
    reference=quiet(_lgamma),
    jvp=lambda t, out, x: mul(t, digamma(x)),
    loops=lambda e, x: e.call("lgamma", x),
)


def _digamma(x: np.ndarray) -> np.ndarray:
    from scipy import special

    out = special.digamma(x)
    if (x < -0.5).any():
        # SciPy's tangent is of π x, rounded: its poles are elsewhere.
        left = np.where(x < -0.5, x, np.nan).astype(np.float64)
        turned = special.digamma(1 - left) - np.pi / np.tan(np.pi * (left - np.rint(left)))
        # Between the poles are zeros, where SciPy's has a series of its own.
        out = np.where(np.abs(turned) > 1, np.where(left == np.rint(left), np.nan, turned), out)
    return np.where(x == 0, np.nan, out).astype(x.dtype)      # as at other poles


digamma_p = elementwise(
    "digamma",
    accepts=REAL_FLOATING,
    reference=quiet(_digamma),
    jvp=lambda t, out, x: mul(t, polygamma(constant_like(x, 1), x)),
    loops=lambda e, x: e.call("digamma", x),
)


# ------------------------------------------------------------------ formulas over whole arrays
class _Functions(Traced):
    erfc, digamma, lgamma = map(
        staticmethod, (lambda x: erfc(x), lambda x: digamma(x), lambda x: lgamma(x))
    )


def _computed(
    name: str, formula: Callable, rules: tuple, evaluated: Callable | None = None
) -> Primitive:
    """An elementwise primitive that programs compute by `formula` (see `ops.namespaces`). Eager
    code calls `evaluated`, or the formula too. `rules` as in `elementwise_jvp`."""
    primitive: Primitive
    primitive = Primitive(
        name,
        abstract=elementwise_abstract(name, REAL_FLOATING, operands=len(rules)),
        reference=evaluated or reference(formula),
        jvp=_strong(elementwise_jvp(lambda: primitive, rules)),
        batch=elementwise_batch(lambda: primitive),
        loops=Expand(lowering(_Functions, formula)),
    )
    return primitive


def _strong(jvp: Callable) -> Callable:
    """A forward rule before which tangents are converted to what the operands have in common, so
    that cotangents are converted back: those of weakly typed operands are weakly typed."""

    def rule(primals: tuple, tangents: tuple, **params: Any) -> tuple:
        if not all([x.aval.weak_type for x in primals]):
            tangents = tuple([
                t if type(t) is Zero else convert(t, t.aval.dtype) for t in tangents
            ])
        return jvp(primals, tangents, **params)

    return rule


def _through(formula: Callable, which: int) -> Callable:
    """The rule of one operand of a primitive that programs compute by `formula`: its derivative,
    forward, which is taken when it is asked for."""
    function = lowering(_Functions, formula)

    def computed(*xs: Any) -> list[Any]:
        # Staged: operators of values that are there would make float32 of the formula's float64.
        avals = [x.aval for x in xs]
        return call(stage_closed(lambda *ys: [function(*ys)], avals, formula.__name__), xs, "slope")

    def rule(t: Any, out: Any, *primals: Any) -> Any:
        one = primals[which]
        tangents = [Zero(x.aval.tangent()) for x in primals]
        tangents[which] = full(one.aval.shape, 1, one.aval.dtype)
        _, (slope,), _ = jvp_call(computed, primals, tangents)
        return mul(t, slope)

    return rule


def _order_of_polygamma(t: Any, out: Any, m: Any, x: Any) -> Any:
    raise NotImplementedError(
        "The derivative of polygamma with respect to m is not implemented: it has whole orders "
        "alone. Stop it with lax.stop_gradient(m)."
    )


def _polygamma(m: np.ndarray, x: np.ndarray) -> np.ndarray:
    from scipy import special

    order = np.asarray(m, np.float64)
    # ψ⁽ᵐ⁾(x) = (-1)^(m+1) m! ζ(m + 1, x)
    scaled = (
        np.where(order % 2 == 1, 1.0, -1.0) * special.gamma(order + 1) * special.zeta(order + 1, x)
    )
    logarithm = special.gammaln(order + 1) + np.log(special.zeta(order + 1, x))
    scaled = np.where(order > 170, np.where(order % 2 == 1, 1.0, -1.0) * np.exp(logarithm), scaled)
    value = np.where(order == 0, _digamma(x), scaled)
    return np.where(order == np.floor(order), value, np.nan).astype(x.dtype)


def _zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    from scipy import special

    out = special.zeta(x, q)
    # The first term is all, and orders that are NaN have no poles.
    first = np.isnan(out) & (x > 1) & (q > 0)
    return np.where(np.isnan(x), x, np.where(first, np.power(q, -x), out))


def _zeta_second(t: Any, out: Any, x: Any, q: Any) -> Any:
    return mul(t, mul(neg(x), zeta(add(x, constant_like(x, 1)), q)))


zeta_grad_x_p = _computed(
    "zeta_grad_x",
    hurwitz.zeta_slope,
    (
        _through(hurwitz.zeta_slope, 0),
        # ∂ζ(x, q)/∂q = -x ζ(x + 1, q)
        lambda t, out, x, q: neg(mul(t, add(
            zeta(add(x, constant_like(x, 1)), q),
            mul(x, zeta_grad_x_p.bind(add(x, constant_like(x, 1)), q))))),
    ),
)
zeta_p = _computed(
    "zeta",
    hurwitz.zeta,
    (lambda t, out, x, q: mul(t, zeta_grad_x_p.bind(x, q)), _zeta_second),
    quiet(_zeta),
)
polygamma_p = _computed(
    "polygamma",
    hurwitz.polygamma,
    (
        _order_of_polygamma,
        lambda t, out, m, x: mul(t, polygamma(add(m, constant_like(m, 1)), x)),
    ),
    quiet(_polygamma),
)


# ------------------------------------------------------------------ incomplete gamma
def _gamma_rate(a: Any, x: Any) -> Any:
    """The derivative in x of the logarithm of P's density."""
    return sub(div(sub(a, constant_like(a, 1)), x), constant_like(x, 1))


igamma_density_p = _computed(
    "igamma_density",
    incomplete.gamma_density,
    (
        lambda t, out, a, x: mul(t, mul(out, sub(log(x), digamma(a)))),
        lambda t, out, a, x: mul(t, mul(out, _gamma_rate(a, x))),
    ),
)


def _gamma_density(a: Any, x: Any) -> Any:
    """x^(a-1) exp(-x) / Γ(a), the derivative of P(a, x) in x. Of logarithms, whose sum cancels, in
    jaxprs alone."""
    if config.jax_form():
        return exp(sub(sub(mul(sub(a, constant_like(a, 1)), log(x)), x), lgamma(a)))
    return igamma_density_p.bind(a, x)


def _grad_a_second(t: Any, out: Any, a: Any, x: Any) -> Any:
    return mul(t, mul(_gamma_density(a, x), sub(log(x), digamma(a))))


def _sample_second(t: Any, out: Any, a: Any, x: Any) -> Any:
    # With p = ∂P/∂x: -(∂p/∂a) / p - out (∂p/∂x) / p.
    return neg(mul(t, add(sub(log(x), digamma(a)), mul(out, _gamma_rate(a, x)))))


igamma_grad_a_p = _computed(
    "igamma_grad_a",
    incomplete.gamma_slope,
    (_through(incomplete.gamma_slope, 0), _grad_a_second),
)
random_gamma_grad_p = _computed(
    "random_gamma_grad",
    incomplete.sample_slope,
    (_through(incomplete.sample_slope, 0), _sample_second),
)
igamma_p = _computed(
    "igamma",
    incomplete.lower_gamma,
    (
        lambda t, out, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, out, a, x: mul(t, _gamma_density(a, x)),
    ),
    _scipy("gammainc"),
)
_upper_gamma = reference(incomplete.upper_gamma)


def _gammaincc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """SciPy's, but the formula about a = 1/2, where SciPy's are off by hundreds of ulp."""
    out, close = _scipy("gammaincc")(a, x), (abs(a - 0.5) < 0.03) & (x <= 1.1)
    return np.where(close, _upper_gamma(a, x), out) if np.any(close) else out


igammac_p = _computed(
    "igammac",
    incomplete.upper_gamma,
    (
        lambda t, out, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, out, a, x: neg(mul(t, _gamma_density(a, x))),
    ),
    quiet(_gammaincc),
)


# ------------------------------------------------------------------ incomplete beta
def _beta_density_in_x(t: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
    one = constant_like(x, 1)
    rate = sub(div(sub(a, one), x), div(sub(b, one), sub(one, x)))
    return mul(t, mul(out, rate))


def _beta_rate(of: Callable) -> Callable:
    """The derivative of the density in a or b, which it is times log x - ψ(a) + ψ(a + b)."""

    def rule(t: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
        return mul(t, mul(out, add(of(a, b, x), digamma(add(a, b)))))

    return rule


betainc_density_p = _computed(
    "betainc_density",
    incomplete.beta_density,
    (
        _beta_rate(lambda a, b, x: sub(log(x), digamma(a))),
        _beta_rate(lambda a, b, x: sub(log1p(neg(x)), digamma(b))),
        _beta_density_in_x,
    ),
)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    if not config.jax_form():
        return betainc_density_p.bind(a, b, x)
    one = constant_like(x, 1)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return exp(sub(powers, log_beta))


def _beta_mixed(of: Callable) -> Callable:
    """The derivative in x of ∂I/∂a or ∂I/∂b: that of the density in a or b."""

    def rule(t: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
        rate = add(of(a, b, x), digamma(add(a, b)))
        return mul(t, mul(_beta_density(a, b, x), rate))

    return rule


betainc_grad_a_p = _computed(
    "betainc_grad_a",
    incomplete.beta_slope_a,
    (
        _through(incomplete.beta_slope_a, 0),
        _through(incomplete.beta_slope_a, 1),
        _beta_mixed(lambda a, b, x: sub(log(x), digamma(a))),
    ),
)
betainc_grad_b_p = _computed(
    "betainc_grad_b",
    incomplete.beta_slope_b,
    (
        _through(incomplete.beta_slope_b, 0),
        _through(incomplete.beta_slope_b, 1),
        _beta_mixed(lambda a, b, x: sub(log1p(neg(x)), digamma(b))),
    ),
)
def _betainc(*operands: np.ndarray) -> np.ndarray:
    from scipy import special

    # SciPy's loop of single precision has five digits.
    wide = special.betainc(*[x.astype(np.float64) for x in operands])
    return np.asarray(wide).astype(operands[0].dtype)


regularized_incomplete_beta_p = _computed(
    "regularized_incomplete_beta",
    incomplete.beta,
    (
        lambda t, out, a, b, x: mul(t, betainc_grad_a_p.bind(a, b, x)),
        lambda t, out, a, b, x: mul(t, betainc_grad_b_p.bind(a, b, x)),
        lambda t, out, a, b, x: mul(t, _beta_density(a, b, x)),
    ),
    quiet(_betainc),
)


# ------------------------------------------------------------------ Bessel
# I1(x) / x is Σ c_k (x²/4)^k; up to 1 these are all that double precision sees.
_I1_OVER_X = tuple(0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(10))


def _i1e_rule(t: Any, out: Any, x: Any) -> Any:
    """i0e(x) - sign(x) i1e(x) - i1e(x) / x, the quotient near 0 by its series: its derivatives
    would cancel there."""
    near = lt(absolute(x), constant_like(x, 1))
    nothing = mul(x, constant_like(x, 0))
    inner = select_n(near, nothing, x)
    quarter = mul(inner, mul(inner, constant_like(x, 0.25)))
    series = nothing
    for c in reversed(_I1_OVER_X):
        series = add(mul(series, quarter), constant_like(x, c))
    outer = select_n(near, x, add(nothing, constant_like(x, 1)))
    quotient = div(bessel_i1e(outer), outer)
    quotient = select_n(near, quotient, mul(exp(neg(absolute(inner))), series))
    return mul(t, sub(sub(bessel_i0e(x), mul(sign(x), out)), quotient))


def _bessel_native(near: tuple, far: tuple, whole: tuple, odd: bool) -> Callable:
    """exp(-|x|) I(x). In double precision by Chebyshev series up to 8 and, of 8 / x, beyond; in
    others, rounded once, by a polynomial of 1 / (|x| + s) for all x (special_tables)."""
    shift = 1 / whole[0][1]

    def double(x: Any) -> Any:
        size = absolute(x)
        edge = full(size.aval.shape, 8, dtypes.float64)
        small = le(size, edge)
        # A NaN goes through the second series.
        inner = select_n(small, edge, size)
        outer = select_n(small, size, edge)
        low = chebyshev(near, inner)
        low = mul(low, inner) if odd else low
        root = integer_pow(sqrt(outer), -1)
        high = mul(chebyshev(far, mul(edge, integer_pow(outer, -1))), root)
        out = select_n(small, high, low)
        if odd:      # sign(x), which keeps the sign of zero
            out = select_n(lt(x, full(size.aval.shape, 0, dtypes.float64)), out, neg(out))
            out = select_n(eq(x, full(size.aval.shape, 0, dtypes.float64)), out, x)
        return out

    def single(x: Any) -> Any:
        def known(value: float, dtype: Any = np.float32) -> Any:
            return full(x.aval.shape, value, np.dtype(dtype))

        size, most = absolute(x), known(float(np.finfo(np.float32).max))
        infinite = gt(size, most)
        size = select_n(infinite, size, most)
        start = rsqrt(add(size, known(shift)))
        start = convert(select_n(infinite, start, known(0)), dtypes.float64)
        # A step of Newton's method from single precision, for the root and for its square: without
        # divisions in double, which take longer than the series.
        square = start * start
        away = fma(neg(convert(size, dtypes.float64) + shift), square, known(1, np.float64))
        root, inverse = fma(start, away * 0.5, start), fma(square, away, square)
        out = polynomial(powers(whole), inverse) * root
        if not odd:
            return out
        signed = select_n(infinite, x, select_n(lt(x, known(0)), most, neg(most)))
        return out * inverse * convert(signed, dtypes.float64)

    def lowering(x: Any) -> Any:
        dtype, weak = x.aval.dtype, x.aval.weak_type
        with config.enable_x64(True):  # numbers beside doubles are doubles
            if dtype.itemsize > 4:
                return double(x)
            return convert(single(convert(x, dtypes.float32)), dtype, weak)

    return lowering


def _i1e(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, x, _scipy("i1e")(x).astype(x.dtype))      # zeros keep their sign


def _bessel(name: str, reference: Callable, rule: Callable, lowering: Callable) -> Primitive:
    """An elementwise primitive that SciPy evaluates and compiled programs compute themselves."""
    primitive: Primitive
    primitive = Primitive(
        name,
        abstract=elementwise_abstract(name, REAL_FLOATING, operands=1),
        reference=reference,
        jvp=elementwise_jvp(lambda: primitive, (rule,)),
        batch=elementwise_batch(lambda: primitive),
        loops=Expand(lowering),
    )
    return primitive


bessel_i0e_p = _bessel(
    "bessel_i0e",
    _scipy("i0e"),
    lambda t, out, x: mul(t, sub(bessel_i1e(x), mul(sign(x), out))),
    _bessel_native(tables.I0E_NEAR, tables.I0E_FAR, tables.I0E, False),
)
bessel_i1e_p = _bessel(
    "bessel_i1e", _i1e, _i1e_rule, _bessel_native(tables.I1E_NEAR, tables.I1E_FAR, tables.I1E, True)
)


# ------------------------------------------------------------------ functions
def erf(x: Any) -> Any:
    """The error function 2/√π ∫₀ˣ exp(-t²) dt.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: 2/√π exp(-x²). Raises TypeError for other dtypes; `numpy` promotes. Source: minimax
    polynomials, found by the Remez exchange.

    >>> from numjet import lax, numpy as jnp
    >>> lax.erf(jnp.array([0.0, 1.0, jnp.inf])).round(4)
    Array([0.    , 0.8427, 1.    ], dtype=float32)
    """
    return erf_p.bind(as_array(x))


def erfc(x: Any) -> Any:
    """1 - erf(x), without cancellation where erf(x) is near 1.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: -2/√π exp(-x²). Raises TypeError for other dtypes; `numpy` promotes. Source: minimax
    polynomials of exp(x²) erfc(x), DLMF 7.12.

    >>> from numjet import lax, numpy as jnp
    >>> lax.erfc(jnp.array([0.0, 1.0, -jnp.inf])).round(4)
    Array([1.    , 0.1573, 2.    ], dtype=float32)
    """
    return erfc_p.bind(as_array(x))


def erf_inv(x: Any) -> Any:
    """The inverse of erf: the y with erf(y) = x.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative (y is the result): √π/2 exp(y²). ±∞ at ±1, NaN outside. Raises TypeError for other
    dtypes; `numpy` promotes. Source: Giles, Approximating the erfinv function (2011).

    >>> from numjet import lax, numpy as jnp
    >>> lax.erf_inv(jnp.array([0.0, 0.5, 1.0])).round(4)
    Array([0.    , 0.4769,    inf], dtype=float32)
    """
    return erf_inv_p.bind(as_array(x))


def lgamma(x: Any) -> Any:
    """log |Γ(x)|.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: `digamma`. +∞ at 0 and the negative integers. Raises TypeError for other dtypes;
    `numpy` promotes. Source: DLMF 5.5.3 (reflection), 5.5.1 (recurrence), 5.11.1 (Stirling's
    series).

    >>> from numjet import lax, numpy as jnp
    >>> lax.lgamma(jnp.array([1.0, 5.0, 0.0])).round(4)
    Array([0.    , 3.1781,    inf], dtype=float32)
    """
    return lgamma_p.bind(as_array(x))


def digamma(x: Any) -> Any:
    """The derivative of log Γ.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative: `polygamma` of order 1. -∞ at 0, NaN at the negative integers. Raises TypeError for
    other dtypes; `numpy` promotes. Source: DLMF 5.5.4 (reflection), 5.5.2 (recurrence), 5.11.2
    (asymptotic series).

    >>> from numjet import lax, numpy as jnp
    >>> lax.digamma(jnp.array([1.0, 2.0])).round(4)
    Array([-0.5772,  0.4228], dtype=float32)
    """
    return digamma_p.bind(as_array(x))


def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of digamma; m is an array (or scalar) of whole numbers."""
    m, x = as_array(m), as_array(x)
    return polygamma_p.bind(*pair(m, x))


def zeta(x: Any, q: Any) -> Any:
    """Hurwitz's zeta function, Σ (k + q)^-x over k >= 0."""
    return zeta_p.bind(*pair(x, q))


def igamma(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return igamma_p.bind(*pair(a, x))


def igammac(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return igammac_p.bind(*pair(a, x))


def igamma_grad_a(a: Any, x: Any) -> Any:
    """∂P(a, x)/∂a."""
    return igamma_grad_a_p.bind(*pair(a, x))


def random_gamma_grad(a: Any, x: Any) -> Any:
    """How a gamma-distributed sample x moves with its shape parameter a: -(∂P/∂a) / (∂P/∂x)."""
    return random_gamma_grad_p.bind(*pair(a, x))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function."""
    values = [as_array(v) for v in (a, b, x)]
    like = next(
        (v for v in values if not v.aval.weak_type and dtypes.is_floating(v.aval.dtype)), values[-1]
    )
    return regularized_incomplete_beta_p.bind(*[pair(v, like)[0] for v in values])


def bessel_i0e(x: Any) -> Any:
    """exp(-|x|) I₀(x), the scaled modified Bessel function of order 0.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative (y is the result): `bessel_i1e`(x) - sign(x) y. Raises TypeError for other dtypes;
    `numpy` promotes. Source: DLMF 10.25.2, 10.40.1; Chebyshev series after Clenshaw (1962).

    >>> from numjet import lax, numpy as jnp
    >>> lax.bessel_i0e(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 0.4658], dtype=float32)
    """
    return bessel_i0e_p.bind(as_array(x))


def bessel_i1e(x: Any) -> Any:
    """exp(-|x|) I₁(x), the scaled modified Bessel function of order 1.

    x: a real floating array, of any shape, or a Python number. Result: x's shape and dtype.
    Derivative (y is the result): I₀(x) exp(-|x|) - y (sign(x) + 1/x), 1/2 at 0. Raises TypeError
    for other dtypes; `numpy` promotes. Source: as of `bessel_i0e`.

    >>> from numjet import lax, numpy as jnp
    >>> lax.bessel_i1e(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.2079], dtype=float32)
    """
    return bessel_i1e_p.bind(as_array(x))
