"""Formulas of the incomplete gamma and beta functions and their derivatives, in double precision.

`formula(F, *values)` as `ops.namespaces` has them. Sources: NIST's Digital Library of Mathematical
Functions, 8.7, 8.9, 8.11, 8.12 (series, continued fraction, uniform expansion of the incomplete
gamma functions), 8.17 (incomplete beta); Temme, "The asymptotic expansion of the incomplete gamma
functions", SIAM J. Math. Anal. 10 (1979); Gil, Segura and Temme, "Efficient and accurate algorithms
for the computation and inversion of the incomplete gamma function ratios", SIAM J. Sci. Comput. 34
(2012), for the regions; Didonato and Morris, "Significant digit computation of the incomplete beta
function ratios", ACM TOMS 18 (1992), for the continued fraction.

Powers and gamma functions cancel for large arguments. They are written with
phi(u) = u - log(1 + u) and with Γ*(z) = Γ(z) / (√(2π/z) (z/e)^z), which tends to 1, so that only
what is left is exponentiated.
"""

from __future__ import annotations

import math
from typing import Any

# Continued fractions of large parameters take some √parameter rounds; more than these are no use.
MOST_ROUNDS = 20000.0
_TWO_PI = 2 * math.pi
_LARGEST = 1e308

# log Γ*(z) in 1/z, odd powers: B_2k / (2k (2k-1)).
_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
# ψ(z) - log z + 1/(2z) in 1/z², from the first power on: -B_2k / 2k.
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
# 1/Γ(1 + a) in powers of a.
_RECIPROCAL = (
    1.0, 0.57721566490153286061, -0.65587807152025388108, -0.042002635034095235529,
    0.1665386113822914895, -0.042197734555544336748, -0.0096219715278769735621,
    0.0072189432466630995424, -0.0011651675918590651121, -0.00021524167411497095282,
    0.00012805028238811618615, -0.000020134854780788238656, -1.2504934821426706573e-6,
    1.1330272319816958824e-6, -2.0563384169776071035e-7, 6.1160951044814158179e-9,
    5.0020076444692229301e-9, -1.1812745704870201446e-9, 1.0434267116911005105e-10,
    7.782263439905071254e-12, -3.6968056186422057082e-12, 5.100370287454475979e-13,
    -2.0583260535665067832e-14, -5.3481225394230179824e-15, 1.2267786282382607902e-15,
    -1.1812593016974587695e-16,
)  # fmt: skip
# η / (λ - 1) in powers of η, where η² / 2 = λ - 1 - log λ.
_UNIFORM = (
    1.0, -0.33333333333333333333, 0.083333333333333333333, -0.014814814814814814815,
    0.0011574074074074074074, 0.00035273368606701940035, -0.0001787551440329218107,
    0.000039192631785224377817, -2.1854485106799921615e-6, -1.8540622107151599607e-6,
    8.296711340953086005e-7, -1.7665952736826079304e-7, 6.7078535434014985804e-9,
    1.0261809784240308043e-8, -4.3820360184533531866e-9, 9.1476995822367902342e-10,
    -2.5514193994946249767e-11, -5.8307721325504250675e-11, 2.4361948020667416244e-11,
    -5.0276692801141755891e-12, 1.1004392031956134771e-13, 3.3717632624009853788e-13,
    -1.3923887224181620659e-13, 2.8534893807047443204e-14, -5.139111834242572619e-16,
    -1.9752288294349442835e-15, 8.0995211567045613341e-16, -1.6522531216398161819e-16,
)  # fmt: skip
# Where the uniform expansion holds: a >= 12 and |η| <= 1, nearly.
_UNIFORM_FROM, _UNIFORM_LOW, _UNIFORM_HIGH = 12.0, 0.3, 2.35


def _rounding(F: Any) -> float:
    """The part of a sum that does not count."""
    return 2.0**-32 if F.single else 2.0**-54


def _horner(coefficients: tuple, x: Any) -> Any:
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def phi(F: Any, u: Any, ratio: Any) -> Any:
    """u - log(1 + u), where ratio is 1 + u."""
    near, part = _phi_near(F, u)
    return F.where(near, part * u * u, u - F.log(F.minimum(ratio, _LARGEST)))


def _phi_near(F: Any, u: Any) -> tuple:
    """Whether u is small, and (u - log(1 + u)) / u² where it is."""
    near = F.abs(u) < 0.6
    u = F.where(near, u, 0.0)
    # log(1 + u) = 2 atanh(s), s = u / (2 + u)
    inverse = 1.0 / (u + 2.0)
    s = u * inverse
    tail = _horner(tuple(1 / k for k in range(3, 41, 2)), s * s)
    return near, inverse - 2.0 * s * inverse * inverse * tail


def gamma_star(F: Any, z: Any) -> Any:
    """Γ(z) / (√(2π/z) (z/e)^z), for z > 0."""
    small = z < 8.0
    w = F.where(small, z + 8.0, z)
    inverse = 1.0 / w
    far = F.exp(inverse * _horner(_STIRLING, inverse * inverse))
    # Γ(z) = Γ(z + 8) / (z (z + 1) ... (z + 7))
    y = F.where(small, F.maximum(z, 1e-300), 1.0)
    down = y + 8.0
    product = F.power(down / y, y - 0.5) * math.exp(-8)
    for k in range(8):
        product = product * (down / (y + float(k)))
    return F.where(small, product * far, far)


# ------------------------------------------------------------------ incomplete gamma


def _gamma_parts(F: Any, a: Any, x: Any) -> tuple:
    """Values that all methods can work on, and which elements are no special cases."""
    plain = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    return plain, F.where(plain, a, 1.0), F.where(plain, x, 1.0)


def _gamma_power(F: Any, a: Any, x: Any) -> Any:
    """x^a exp(-x) / Γ(a + 1)."""
    small = a < 8.0
    y = F.where(small, a, 1.0)
    # Γ(a + 1) = √(2πa) (a/e)^a Γ*(a), whose powers do not cancel for small a.
    z = F.minimum(x, 2000.0)      # beyond, all is 0
    half = F.exp(-0.5 * z)
    near = F.power(z, y) * half * half * reciprocal_gamma(F, y)
    b = F.where(small, 8.0, a)
    ratio = x / b
    far = F.exp(-b * phi(F, (x - b) / b, ratio)) / (F.sqrt(_TWO_PI * b) * gamma_star(F, b))
    return F.where(small, near, far)


def reciprocal_gamma(F: Any, a: Any) -> Any:
    """1 / Γ(1 + a), for a from 0 to 8."""
    t, product = a, 1.0
    for _ in range(7):
        above = t > 1.0
        product = product * F.where(above, t, 1.0)
        t = F.where(above, t - 1.0, t)
    return _horner(_RECIPROCAL, t) / product


def _series(F: Any, going: Any, a: Any, x: Any) -> Any:
    """Σ x^k / ((a + 1) ... (a + k)), two terms a round for one division."""
    one = x * 0.0 + 1.0
    rounding = _rounding(F)

    def step(n: Any, term: Any, total: Any) -> tuple:
        last = n + 2.0
        part = term * (x / ((n + 1.0) * last))
        new, total = part * x, total + part * (last + x)
        return (last, new, total), new > rounding * total

    return F.loop(step, going, (a, one, one))[2]


def _series_slope(F: Any, going: Any, a: Any, x: Any) -> tuple:
    """The same series and its derivative in a."""
    one = x * 0.0 + 1.0
    rounding = _rounding(F)

    def step(n: Any, term: Any, total: Any, term_slope: Any, slope: Any) -> tuple:
        n = n + 1.0
        factor = x / n
        new = term * factor
        total = total + new
        term_slope = term_slope * factor - new / n
        slope = slope + term_slope
        more = (new > rounding * total) | (term_slope < rounding * slope)
        return (n, new, total, term_slope, slope), more

    out = F.loop(step, going, (a, one, one, one * 0.0, one * 0.0))
    return out[2], out[4]


def _fraction(F: Any, going: Any, a: Any, x: Any) -> Any:
    """K of Q(a, x) = x^a exp(-x) / Γ(a) K: 1/(x+1-a- 1(1-a)/(x+3-a- ...)).

    With D = 1/(b + a D) of the step before, the differences of approximants are multiplied by
    b D - 1, which is -a D / (b + a D) of that step's D; two steps a round for one division.
    """
    # Where one is larger, what K is multiplied by is 0.
    a, x = F.minimum(a, 1e6), F.minimum(x, 1e6)
    first = x + 1.0 - a
    start = 1.0 / first
    rounding = _rounding(F)

    def step(n: Any, b: Any, d: Any, change: Any, total: Any) -> tuple:
        one, two = n + 1.0, n + 2.0
        top, b = one * (a - one), b + 2.0
        under = b + top * d
        last, b = two * (a - two), b + 2.0
        below = b * under + last
        inverse = 1.0 / (under * below)
        moved = -change * top * d * (below * inverse)
        ratio = under * inverse
        change = -moved * last * ratio
        total = total + (moved + change)
        more = F.abs(change) > rounding * F.abs(total)
        return (two, b, under * ratio, change, total), more & (two < MOST_ROUNDS)

    return F.loop(step, going, (x * 0.0, first, start, start, start))[4]


def _fraction_slope(F: Any, going: Any, a: Any, x: Any) -> tuple:
    """The same fraction and its derivative in a. The difference of two approximants is the last one
    times b D - 1."""
    first = x + 1.0 - a
    d = 1.0 / first
    zero = x * 0.0
    rounding = _rounding(F)

    def step(n: Any, b: Any, d: Any, change: Any, total: Any, *slopes: Any) -> tuple:
        d_slope, change_slope, total_slope = slopes
        n, b = n + 1.0, b + 2.0
        top = n * (a - n)
        new = 1.0 / (b + top * d)
        factor = b * new - 1.0
        moved = change * factor
        total = total + moved
        new_slope = new * new * (1.0 - n * d - top * d_slope)
        change_slope = change_slope * factor + change * (b * new_slope - new)
        total_slope = total_slope + change_slope
        more = F.abs(moved) > rounding * F.abs(total)
        more = more | (F.abs(change_slope) > rounding * F.abs(total_slope))
        slopes = (new_slope, change_slope, total_slope)
        return (n, b, new, moved, total, *slopes), more & (n < MOST_ROUNDS)

    out = F.loop(step, going, (zero, first, d, d, d, d * d, d * d, d * d))
    return out[4], out[7]


def _small_q(F: Any, going: Any, a: Any, x: Any) -> Any:
    """Q(a, x) for x up to 1 and a up to about 1, without the cancellation of 1 - P."""
    one = x * 0.0 + 1.0
    rounding = _rounding(F)

    def step(k: Any, term: Any, total: Any) -> tuple:
        k = k + 1.0
        term = term * (-x / k)
        new = term / (a + k)
        return (k, term, total + new), F.abs(new) > rounding * F.abs(total + new)

    total = F.loop(step, going, (one * 0.0, one, one * 0.0))[2]
    y = F.where(going, a, 1.0)
    gamma = y * _horner(_RECIPROCAL[1:], y)
    power = F.expm1(y * F.log(x))
    moved = power + gamma + power * gamma      # x^a / Γ(1 + a) - 1
    return -moved - (1.0 + moved) * y * total


def _uniform(F: Any, a: Any, x: Any) -> tuple:
    """η, and the uniform expansion's S(a, η) and ∂S/∂a and 1/Γ*(a).

    Q(a, x) = erfc(η √(a/2)) / 2 + exp(-aη²/2) / √(2πa) S, where dQ/dη gives η S - S'/a =
    f(η) / Γ*(a) - 1 for f = η / (λ - 1); so Γ* S has the coefficients
    β_(n-1) = d_n + (n+1) β_(n+1) / a.
    """
    ratio = x / a
    u = (x - a) / a
    near, part = _phi_near(F, u)
    part = F.where(near, part, phi(F, u, ratio) / (F.where(near, 1.0, u) * F.where(near, 1.0, u)))
    eta = u * F.sqrt(2.0 * part)
    inverse = 1.0 / a
    count = len(_UNIFORM)
    beta: list = [0.0] * (count + 2)
    slope: list = [0.0] * (count + 2)
    for n in reversed(range(1, count)):
        factor = n + 1.0
        slope[n - 1] = factor * (beta[n + 1] + inverse * slope[n + 1])
        beta[n - 1] = _UNIFORM[n] + factor * inverse * beta[n + 1]
    scale = 1.0 / (1.0 + beta[1] * inverse)      # 1/Γ*
    total = _horner(tuple(beta[:count - 1]), eta)
    total_slope = _horner(tuple(slope[:count - 1]), eta)
    series = scale * total
    moved = scale * (total_slope - series * (beta[1] + inverse * slope[1]))
    return eta, series, -inverse * inverse * moved, scale


def _regions(plain: Any, a: Any, x: Any) -> tuple:
    """Where the uniform expansion, the series of P, and the continued fraction are used."""
    ratio = x / a
    uniform = plain & (a >= _UNIFORM_FROM) & (ratio > _UNIFORM_LOW) & (ratio < _UNIFORM_HIGH)
    fraction = plain & ~uniform & (x > 1.0) & (x >= a)
    return uniform, plain & ~uniform & ~fraction, fraction


def _incomplete_gamma(F: Any, a: Any, x: Any, upper: bool) -> Any:
    given_a, given_x = a, x
    plain, a, x = _gamma_parts(F, a, x)
    uniform, series, fraction = _regions(plain, a, x)
    # Below this a, Q is computed of P's small complement.
    half = F.log(F.where(series, F.minimum(x, 0.5) * 0.5, 0.5))
    small = series & (x <= 1.0) & (a <= F.where(x < 0.5, math.log(0.5) / half, x))
    series = series & ~small
    power = _gamma_power(F, a, x)
    zero = x * 0.0

    def by_uniform(_: Any) -> tuple:
        y = F.where(uniform, a, 12.0)
        eta, s, _, _ = _uniform(F, y, F.where(uniform, x, 12.0))
        rest = F.exp(-0.5 * y * eta * eta) / F.sqrt(_TWO_PI * y) * s
        sign = 1.0 if upper else -1.0
        return (0.5 * F.erfc(eta * F.sqrt(0.5 * y) * sign) + sign * rest,), zero > 1.0

    p = F.where(series, power * _series(F, series, a, x), zero)
    q = power * a * _fraction(F, fraction, a, x)
    q = F.where(small, _small_q(F, small, a, x), q)
    (whole,) = F.loop(by_uniform, uniform, (zero,))
    out = F.where(series, 1.0 - p, q) if upper else F.where(series, p, 1.0 - q)
    out = F.where(uniform, whole, out)
    return _edges(F, given_a, given_x, plain, out, upper)


def _edges(F: Any, a: Any, x: Any, plain: Any, out: Any, upper: bool) -> Any:
    none, all_ = (1.0, 0.0) if upper else (0.0, 1.0)
    out = F.where(plain, out, math.nan)
    out = F.where((a >= 0.0) & (x == 0.0), none, out)
    out = F.where((a >= 0.0) & (x == math.inf), all_, out)
    out = F.where((a == 0.0) & (x > 0.0), all_, out)
    out = F.where((a == math.inf) & (x >= 0.0), none, out)
    undefined = (a == 0.0) & (x == 0.0) | (a == math.inf) & (x == math.inf)
    return F.where(undefined, math.nan, out)


def lower_gamma(F: Any, a: Any, x: Any) -> Any:
    """P(a, x)."""
    return _incomplete_gamma(F, a, x, False)


def upper_gamma(F: Any, a: Any, x: Any) -> Any:
    """Q(a, x)."""
    return _incomplete_gamma(F, a, x, True)


def gamma_density(F: Any, a: Any, x: Any) -> Any:
    """x^(a-1) exp(-x) / Γ(a), the derivative of P(a, x) in x."""
    plain, y, z = _gamma_parts(F, a, x)
    out = F.where(plain, _gamma_power(F, y, z) * (y / z), math.nan)
    out = F.where((a >= 0.0) & (x == math.inf) | (a == 0.0) & (x > 0.0), 0.0, out)
    at_zero = F.where(a < 1.0, math.inf, F.where(a > 1.0, 0.0, 1.0))
    return F.where((a > 0.0) & (x == 0.0), at_zero, out)


def _slope_in_a(F: Any, a: Any, x: Any) -> tuple:
    """∂P/∂a, divided by x^a exp(-x) / Γ(a + 1), of elements that are no special cases."""
    plain, a, x = _gamma_parts(F, a, x)
    uniform, series, fraction = _regions(plain, a, x)
    zero = x * 0.0
    total, slope = _series_slope(F, series, a, x)
    # log x - ψ(a + 1)
    rate = F.log(x) - F.digamma(a + 1.0)
    by_series = total * rate + slope
    total, slope = _fraction_slope(F, fraction, a, x)
    by_fraction = -(total * (a * rate + 1.0) + a * slope)

    def by_uniform(_: Any) -> tuple:
        y = F.where(uniform, a, 12.0)
        eta, s, s_slope, scale = _uniform(F, y, F.where(uniform, x, 12.0))
        # ∂Q/∂a = exp(-aη²/2) / √(2πa) (1/Γ* - η/2 - S (η²/2 + 1/(2a)) + ∂S/∂a)
        rest = scale - 0.5 * eta - s * (0.5 * eta * eta + 0.5 / y) + s_slope
        return (-rest / scale,), zero > 1.0

    (whole,) = F.loop(by_uniform, uniform, (zero,))
    return plain, F.where(uniform, whole, F.where(fraction, by_fraction, by_series)), a, x


def gamma_slope(F: Any, a: Any, x: Any) -> Any:
    """∂P(a, x)/∂a."""
    plain, value, y, z = _slope_in_a(F, a, x)
    out = F.where(plain, value * _gamma_power(F, y, z), math.nan)
    return F.where((a > 0.0) & ((x == 0.0) | (x == math.inf)), 0.0, out)


def sample_slope(F: Any, a: Any, x: Any) -> Any:
    """-(∂P/∂a) / (∂P/∂x), how a sample moves with a."""
    plain, value, y, z = _slope_in_a(F, a, x)
    out = F.where(plain, -value * (z / y), math.nan)
    return F.where((a > 0.0) & (x == 0.0), 0.0, out)


# ------------------------------------------------------------------ incomplete beta


def _beta_power(F: Any, a: Any, b: Any, x: Any, y: Any) -> tuple:
    """x^a y^b / B(a, b), where y is 1 - x, and a - (a + b) x."""
    rest = a * y - b * x
    near, far = x * ((a + b) / a), y * ((a + b) / b)
    exponent = a * phi(F, -rest / a, near) + b * phi(F, rest / b, far)
    whole = a + b
    scale = gamma_star(F, whole) / (gamma_star(F, a) * gamma_star(F, b))
    root = F.sqrt(a / whole) * F.sqrt(b) / math.sqrt(_TWO_PI)
    return F.exp(-exponent) * scale * root, rest


def _beta_fraction(F: Any, going: Any, values: tuple, slopes: bool) -> tuple:
    """K of I = x^a y^b / B(a, b) K, and its derivatives in a and b: α1/(β1 + α2/(β2 + ...)),
    as Didonato and Morris have it, of `values` a, b, x, y, a - (a + b) x; as `_fraction` else."""
    a, b, x, y, rest = values
    zero = x * 0.0
    first = a / (a + 1.0) * (rest + 1.0)
    d = 1.0 / first
    rounding = _rounding(F)

    def step(n: Any, d: Any, change: Any, total: Any, *more_state: Any) -> tuple:
        n = n + 1.0
        low, high = a + 2.0 * n - 1.0, a + 2.0 * n + 1.0
        part = n * (b - n) * x / low
        ahead, both = a + n - 1.0, a + b + n - 1.0
        front = ahead / low * both * x
        top = part * front
        inner = rest + 1.0 + n * (1.0 + y)
        bottom = n + part + (a + n) / high * inner
        new = 1.0 / (bottom + top * d)
        factor = bottom * new - 1.0
        moved = change * factor
        total = total + moved
        more = F.abs(moved) > rounding * F.abs(total)
        out = []
        for k in range(2 if slopes else 0):
            d_slope, change_slope, total_slope = more_state[3 * k : 3 * k + 3]
            if k == 0:
                part_slope = -part / low
                front_slope = (ahead + both - ahead / low * both) / low * x
                bottom_slope = part_slope + (
                    inner * (n + 1.0) / high + (a + n) * y) / high
            else:
                part_slope = n * x / low
                front_slope = ahead / low * x
                bottom_slope = part_slope - (a + n) / high * x
            top_slope = part_slope * front + part * front_slope
            new_slope = -new * new * (bottom_slope + top_slope * d + top * d_slope)
            factor_slope = bottom_slope * new + bottom * new_slope
            change_slope = change_slope * factor + change * factor_slope
            total_slope = total_slope + change_slope
            more = more | (F.abs(change_slope) > rounding * F.abs(total_slope))
            out += [new_slope, change_slope, total_slope]
        return (n, new, moved, total, *out), more & (n < MOST_ROUNDS)

    start = [zero, d, d, d]
    if slopes:
        # β1 = a (a - (a + b) x + 1) / (a + 1)
        in_a = ((rest + 1.0) / (a + 1.0) + a * y) / (a + 1.0)
        in_b = -a * x / (a + 1.0)
        for slope in (in_a, in_b):
            start += [-d * d * slope] * 3
    out = F.loop(step, going, start)
    return (out[3], out[6], out[9]) if slopes else (out[3],)


def _beta_parts(F: Any, a: Any, b: Any, x: Any) -> tuple:
    """Values that all methods can work on, turned round where x lies above the mean a / (a + b)."""
    plain = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    a, b = F.maximum(F.where(plain, a, 1.0), 1e-300), F.maximum(F.where(plain, b, 1.0), 1e-300)
    x = F.where(plain, x, 0.5)
    y = 1.0 - x
    turned = a * y < b * x
    return (plain, turned, F.where(turned, b, a), F.where(turned, a, b),
            F.where(turned, y, x), F.where(turned, x, y))


def beta(F: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b)."""
    given_a, given_b, given_x = a, b, x
    plain, turned, a, b, x, y = _beta_parts(F, a, b, x)
    power, rest = _beta_power(F, a, b, x, y)
    value = power * _beta_fraction(F, plain, (a, b, x, y, rest), False)[0]
    out = F.where(plain, F.where(turned, 1.0 - value, value), math.nan)
    a, b, x = given_a, given_b, given_x
    sound = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    left = (a == 0.0) | (b == math.inf)
    right = (b == 0.0) | (a == math.inf)
    out = F.where(sound & left & ~right, 1.0, F.where(sound & right & ~left, 0.0, out))
    out = F.where(sound & (x == 0.0) & ~(left & right), 0.0, out)
    return F.where(sound & (x == 1.0) & ~(left & right), 1.0, out)


def beta_density(F: Any, a: Any, b: Any, x: Any) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b), the derivative of I_x(a, b) in x."""
    given_a, given_b, given_x = a, b, x
    plain, turned, a, b, x, y = _beta_parts(F, a, b, x)
    out = F.where(plain, _beta_power(F, a, b, x, y)[0] / x / y, math.nan)
    a, b, x = given_a, given_b, given_x
    sound = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    for end, here, other in ((0.0, a, b), (1.0, b, a)):
        value = F.where(here < 1.0, math.inf, F.where(here > 1.0, 0.0, other))
        out = F.where(sound & (x == end), value, out)
    return out


def _log(F: Any, u: Any, ratio: Any) -> Any:
    """log(1 + u), where ratio is 1 + u."""
    near = F.abs(u) < 0.5
    return F.where(near, F.log1p(F.where(near, u, 0.0)), F.log(F.minimum(ratio, _LARGEST)))


def _digamma_rest(F: Any, z: Any) -> Any:
    """ψ(z) - log z."""
    large = z >= 10.0
    inverse = 1.0 / F.where(large, z, 10.0)
    square = inverse * inverse
    far = square * _horner(_DIGAMMA, square) - 0.5 * inverse
    y = F.where(large, 1.0, z)
    return F.where(large, far, F.digamma(y) - F.log(y))


def _beta_slope(F: Any, a: Any, b: Any, x: Any, second: bool) -> Any:
    given = x
    plain, turned, a, b, x, y = _beta_parts(F, a, b, x)
    power, rest = _beta_power(F, a, b, x, y)
    total, in_a, in_b = _beta_fraction(F, plain, (a, b, x, y, rest), True)
    common = _digamma_rest(F, a + b)
    # log x + ψ(a + b) - ψ(a), and the same of b and y, of which the logarithms cancel.
    rate_a = _log(F, -rest / a, x * ((a + b) / a)) + common - _digamma_rest(F, a)
    rate_b = _log(F, rest / b, y * ((a + b) / b)) + common - _digamma_rest(F, b)
    in_a, in_b = in_a + total * rate_a, in_b + total * rate_b
    value = F.where(turned, -(in_a if second else in_b), in_b if second else in_a)
    out = F.where(plain, power * value, math.nan)
    return F.where((given == 0.0) | (given == 1.0), 0.0, out)


def beta_slope_a(F: Any, a: Any, b: Any, x: Any) -> Any:
    """∂I_x(a, b)/∂a."""
    return _beta_slope(F, a, b, x, False)


def beta_slope_b(F: Any, a: Any, b: Any, x: Any) -> Any:
    """∂I_x(a, b)/∂b."""
    return _beta_slope(F, a, b, x, True)
