"""Hurwitz's zeta function, its derivative in the order, and polygamma, in double precision.

`formula(F, *values)` as `ops.namespaces` has them. Euler and Maclaurin's sum (NIST's Digital
Library of Mathematical Functions, 25.11.5, 25.11.28): terms are added up to q + N, the rest is an
integral and corrections in powers of 1 / (q + N). It is accurate whatever the order, since for
large orders the rest is nothing beside the first terms.
"""

from __future__ import annotations

import math
from typing import Any

from numjet.ops.incomplete import gamma_star

# B_2j / (2j)!
_CORRECTIONS = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000, 77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)  # fmt: skip
_LARGEST_FACTORIAL = 170.0


def _counts(F: Any) -> tuple:
    """How many terms are added up, and the corrections."""
    return (6, _CORRECTIONS[:7]) if F.single else (10, _CORRECTIONS)


def _positive(F: Any, s: Any, q: Any) -> Any:
    """ζ(s, q) for s > 1 and q > 0."""
    terms, corrections = _counts(F)
    total = F.power(q, -s)
    for k in range(1, terms):
        total = total + F.power(q + float(k), -s)
    end = q + float(terms)
    last = F.power(end, 1.0 - s)
    inverse = 1.0 / end
    factor = s * inverse * inverse
    rest = 0.5 * inverse + 1.0 / (s - 1.0)
    for j, c in enumerate(corrections):
        rest = rest + c * factor
        at = s + (2.0 * j + 1.0)
        factor = factor * (at * inverse) * ((at + 1.0) * inverse)
    return total + F.where(last > 0.0, last * rest, 0.0)


def zeta(F: Any, s: Any, q: Any) -> Any:
    """Σ (k + q)^-s, k >= 0; for q < 0 of whole numbers s alone, infinite at its poles."""
    sound = (s > 1.0) & (q < math.inf)
    positive = q > 0.0
    order = F.where(sound, s, 2.0)
    at = F.where(sound & positive, q, 1.0)
    out = F.where(sound & positive, _positive(F, order, at), math.nan)
    below = F.floor(q)
    negative = sound & (q < 0.0) & (q != below) & (F.floor(s) == s) & (q > -math.inf)

    def reflected(_: Any) -> tuple:
        # The terms below zero are (-1)^s times those from t to -q, a distance 1 apart.
        t = F.where(negative, -q - F.floor(-q), 0.5)
        size = F.where(negative, 1.0 - q, 1.5)
        odd = F.floor(order * 0.5) * 2.0 != order
        finite = _positive(F, order, t) - _positive(F, order, size)
        return (_positive(F, order, 1.0 - t) + F.where(odd, -finite, finite),), q > math.inf

    (far,) = F.loop(reflected, negative, (out,))
    out = F.where(negative, far, out)
    out = F.where(sound & (q <= 0.0) & (q == below), math.inf, out)
    out = F.where((s > 1.0) & (q == math.inf), 0.0, out)
    return F.where(s == 1.0, math.inf, out)


def zeta_slope(F: Any, s: Any, q: Any) -> Any:
    """∂ζ(s, q)/∂s, of q > 0."""
    sound = (s > 1.0) & (q > 0.0) & (q < math.inf)
    s, q = F.where(sound, s, 2.0), F.where(sound, q, 1.0)
    total = s * 0.0
    terms, corrections = _counts(F)
    for k in range(terms):
        at = q + float(k)
        total = total - F.log(at) * F.power(at, -s)
    end = q + float(terms)
    last, logarithm, inverse = F.power(end, 1.0 - s), F.log(end), 1.0 / end
    factor, slope = s * inverse * inverse, inverse * inverse
    rest = 0.5 * inverse + 1.0 / (s - 1.0)
    rest_slope = -1.0 / ((s - 1.0) * (s - 1.0))
    for j, c in enumerate(corrections):
        rest, rest_slope = rest + c * factor, rest_slope + c * slope
        low, high = (s + (2.0 * j + 1.0)) * inverse, (s + (2.0 * j + 2.0)) * inverse
        slope = slope * low * high + factor * (low + high) * inverse
        factor = factor * low * high
    total = total + F.where(last > 0.0, last * (rest_slope - logarithm * rest), 0.0)
    return F.where(sound, total, math.nan)


def _factorial(F: Any, m: Any) -> Any:
    """m!, by powers rather than logarithms, which would lose digits."""
    half = F.power(m, 0.5 * m)
    return half * F.exp(-m) * half * F.sqrt(2.0 * math.pi * m) * gamma_star(F, m)


def polygamma(F: Any, m: Any, x: Any) -> Any:
    """(-1)^(m+1) m! ζ(m + 1, x), and digamma for m = 0."""
    whole = (m >= 0.0) & (F.floor(m) == m)
    order = F.where(whole & (m > 0.0), m, 1.0)
    value = zeta(F, order + 1.0, x)
    large = order > _LARGEST_FACTORIAL
    size = F.exp(F.lgamma(order + 1.0) + F.log(F.abs(value)))
    size = F.where(value < 0.0, -size, size)
    out = F.where(large, size, _factorial(F, F.where(large, 1.0, order)) * value)
    out = F.where(F.floor(order * 0.5) * 2.0 == order, -out, out)
    return F.where(whole, F.where(m == 0.0, F.digamma(x), out), math.nan)

