"""Functions of whole orders: Bessel functions of the first kind, spherical harmonics. For
numjet.scipy.special."""

from __future__ import annotations

import math
import operator
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.api.eager.large import wrap_public
from numjet.core import dtypes
from numjet.core.memo import remembered
from numjet.core.trace import concrete_or_none
from numjet.numpy.promote import as_arrays, promote_inexact

# From this |z| on Hankel's asymptotic series has the last digit of double precision.
HANKEL_FROM = 25.0


def _by_ratios(z: Any, v: int, start: int) -> list[Any]:
    """J_0 ... J_v of z >= 0 below `start`: Miller's algorithm on the ratios J_k / J_(k-1).

    Their recurrence from `start` downwards cannot overflow (Gautschi, "Computational aspects of
    three-term recurrence relations", SIAM Review 9, 1967); 1 = J_0 + 2 Σ J_2k fixes the scale.
    """
    tiny = float(jnp.finfo(z.dtype).tiny)
    ratios: list[Any] = []
    ratio: Any = jnp.zeros_like(z)
    for k in range(start, 0, -1):
        below = 2 * k - z * ratio
        ratio = z / jnp.where(below == 0, tiny, below)
        ratios.append(ratio)
    ratios.reverse()
    # 1 + 2 (r1 r2 + r1 r2 r3 r4 + ...), the pairs from the last.
    rest: Any = jnp.zeros_like(z)
    for k in range(start // 2, 0, -1):
        rest = ratios[2 * k - 2] * ratios[2 * k - 1] * (1 + rest)
    total = 1 + 2 * rest
    return _products(1 / total, ratios, v)


def _products(first: Any, ratios: list[Any], v: int) -> list[Any]:
    out = [first]
    for k in range(v):
        out.append(out[-1] * ratios[k])
    return out


def _hankel(z: Any, order: int) -> Any:
    """J_order of large z (DLMF 10.17.3)."""
    four = 4.0 * order * order
    term = 1.0
    p: list[float] = []
    q: list[float] = []
    for k in range(26):
        if k:
            term *= (four - (2 * k - 1) ** 2) / (8 * k)
        (p if k % 2 == 0 else q).append((-1) ** (k // 2) * term)
    inverse = 1 / z
    square = inverse * inverse
    even: Any = jnp.zeros_like(z)
    odd: Any = jnp.zeros_like(z)
    for a, b in zip(reversed(p), reversed(q), strict=True):
        even, odd = even * square + a, odd * square + b
    odd = odd * inverse
    # cos(z - order π/2 - π/4) with the sum of angles multiplied out: z itself stays exact.
    sin, cos = jnp.sin(z), jnp.cos(z)
    a, b = (cos + sin, sin - cos) if order == 0 else (sin - cos, -(sin + cos))
    return (even * a - odd * b) / jnp.sqrt(math.pi * z)


@remembered("Bessel functions of orders", 256)
def _bessel(v: int, n_iter: int) -> Any:
    """The function of z that gives J_0 ... J_v as a tuple, with its derivative."""
    start = max(n_iter, 2 * v + 40, 60)
    edge = max(HANKEL_FROM, float(v))

    @jvp_of_arrays
    def values(z: Any) -> tuple:
        size = jnp.abs(z)
        near = size < edge
        low = _by_ratios(jnp.where(near, size, 0), v, start)
        far = jnp.where(near | jnp.isinf(size), edge, size)
        high = [_hankel(far, 0), _hankel(far, 1)]
        for k in range(1, v):
            high.append(2 * k / far * high[-1] - high[-2])
        out = []
        for k in range(v + 1):
            value = jnp.where(near, low[k], high[k])
            value = jnp.where(jnp.isinf(size), 0, value)
            value = jnp.where((z < 0) & (k % 2 == 1), -value, value)
            out.append(jnp.where(jnp.isnan(z), z, value))
        return tuple(out)

    @values.defjvp
    def _rule(primals: tuple, tangents: tuple) -> tuple:
        (z,), (t,) = primals, tangents
        more = _bessel(v + 1, n_iter)(z)
        slopes = [-more[1]] + [(more[k - 1] - more[k + 1]) * 0.5 for k in range(1, v + 1)]
        return tuple(more[:-1]), tuple(s * t for s in slopes)

    return values


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """The Bessel functions of the first kind J₀(z), ..., J_v(z).

    z: real floats of any size and shape. v: a Python integer (TypeError for others). n_iter: the
    least order from which their recurrence runs downwards; more are taken where v needs them.
    Result: [v + 1, *shape of z]. Differentiable. Source: Miller's algorithm, DLMF 10.74(iv).

    >>> from numjet.scipy import special
    >>> special.bessel_jn(1.0, v=1).round(4)
    Array([0.7652, 0.4401], dtype=float32)
    """
    v, n_iter = operator.index(v), operator.index(n_iter)
    (z,) = promote_inexact(*as_arrays("bessel_jn", z))
    dtype = z.dtype
    if dtypes.is_complex(dtype):
        raise TypeError(f"bessel_jn: z must be real, got {dtype}.")
    if v < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v}.")
    work = dtypes.float32 if dtype.itemsize < 4 else dtype
    return jnp.stack(_bessel(v, n_iter)(jnp.asarray(z, work))).astype(dtype)


# ------------------------------------------------------------------ spherical harmonics
def _legendre(n: Any, m: Any, x: Any, sine: Any, most: int) -> Any:
    """The normalized associated Legendre function of degree n and order m >= 0, times the constant
    of the harmonics. Recurrences in the degree keep full accuracy (Holmes & Featherstone, "A
    unified approach to the Clenshaw summation", J. Geodesy 76, 2002)."""

    def along_order(j: Any, value: Any) -> Any:
        k = j.astype(value.dtype)
        step = -jnp.sqrt((2 * k + 1) / (2 * k)) * sine
        return jnp.where(j <= m, value * step, value)

    first = jnp.full(x.shape, math.sqrt(0.25 / math.pi), x.dtype)
    diagonal = lax.fori_loop(1, most + 1, along_order, first)
    order = m.astype(x.dtype)

    def along_degree(j: Any, state: tuple) -> tuple:
        now, before = state
        k = j.astype(x.dtype)
        going = (j > m) & (j <= n)
        square = jnp.where(going, k * k - order * order, 1)
        a = jnp.sqrt((4 * k * k - 1) / square)
        last = jnp.where(going, (k - 1) ** 2 - order * order, 0)
        b = jnp.sqrt(last / jnp.maximum(4 * (k - 1) ** 2 - 1, 1))
        return jnp.where(going, a * (x * now - b * before), now), jnp.where(going, now, before)

    return lax.fori_loop(1, most + 1, along_degree, (diagonal, jnp.zeros_like(x)))[0]


def sph_harm_y(
    n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None
) -> Any:
    """The spherical harmonics of degrees n and orders m, |m| <= n.

    n, m: integers; theta: polar angles, of which |sin| counts, as in SciPy; phi: azimuths; arrays
    that broadcast. n_max: the largest degree, to which others are clipped; needed where n is
    traced. diff_n is refused (NotImplementedError). Result: complex, the broadcast shape; 0 where
    |m| exceeds n. The Condon-Shortley phase is included. Raises TypeError for n and m that are no
    integers. Source: DLMF 14.30.1, by `lpmn_values`. Differentiable in theta and phi.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import special
    >>> special.sph_harm_y(jnp.array([1]), 0, 0.0, 0.0).real.round(4)
    Array([0.4886], dtype=float32)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: the argument diff_n is not supported. Leave it out.")
    n, m = as_arrays("sph_harm_y", n, m)
    theta, phi = promote_inexact(*as_arrays("sph_harm_y", theta, phi))
    for name, value in (("n", n), ("m", m)):
        if not dtypes.is_integer(value.dtype):
            raise TypeError(f"sph_harm_y: {name} must be integers, got {value.dtype}.")
    if n_max is None:
        known = concrete_or_none(n)
        if known is None:
            # int() of a traced array raises the error that names it.
            known = n
        n_max = int(jnp.max(known)) if n.size else 0
    return _harmonics(n, m, theta, phi, most=operator.index(n_max))


def _harmonics(n: Any, m: Any, theta: Any, phi: Any, most: int) -> Any:
    """`sph_harm_y` of degrees up to `most`."""
    n, m, theta, phi = jnp.broadcast_arrays(jnp.minimum(n, most), m, theta, phi)
    work = dtypes.canonical(dtypes.float64)
    theta, phi = jnp.asarray(theta, work), jnp.asarray(phi, work)
    size = jnp.abs(m)
    height = jnp.sin(theta)
    height = jnp.where(height < 0, -height, height)  # its derivative at 0 is that of the sine
    value = _legendre(n, size, jnp.cos(theta), height, most)
    value = jnp.where((size > n) | (n < 0), 0, value)
    value = jnp.where((m < 0) & (size % 2 == 1), -value, value)
    angle = m * phi
    return lax.complex(value * jnp.cos(angle), value * jnp.sin(angle))


# Recurrences of hundreds of operations, which take longer one by one than a program of theirs.
wrap_public(globals(), __name__, ("bessel_jn", "_harmonics"), always=True)
sph_harm_y.__module__ = "numjet.scipy.special"  # where its users find it
