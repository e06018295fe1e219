"""Fit the Chebyshev series of numjet/ops/special_tables.py and write that file.

Run by hand after changing an interval: python tools/fit_special.py (half a minute). Each function
is computed with mpmath to 40 digits at Chebyshev points of an interval, and its series is cut where
the coefficients fall below the target's rounding (Clenshaw, "Chebyshev series for mathematical
functions", NPL Mathematical Tables 5, 1962). Printed are the terms in double and single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

mp.dps = 40
TARGET = Path(__file__).resolve().parents[1] / "numjet/ops/special_tables.py"
HEAD = '''"""Chebyshev series of special functions; written by tools/fit_special.py, do not edit.

Each table: the interval of the variable, and coefficients of T_0, T_1, ... (T_0's whole). Read by
the special functions that name them.
"""

'''
WIDTH = 3


def chebyshev(f: Callable, low: float, high: float, terms: int = 64) -> list[mpf]:
    """The coefficients of f's series on [low, high]."""
    nodes = [mp.cos(mp.pi * (k + mpf(1) / 2) / terms) for k in range(terms)]
    middle, half = (mpf(high) + low) / 2, (mpf(high) - low) / 2
    values = [f(middle + half * t) for t in nodes]
    out = []
    for j in range(terms):
        total = sum(
            v * mp.cos(mp.pi * j * (k + mpf(1) / 2) / terms) for k, v in enumerate(values)
        )
        out.append(total * 2 / terms)
    out[0] /= 2
    return out


def limit(f: Callable, at_zero: mpf) -> Callable:
    """f, with its limit at 0."""
    return lambda w: f(w) if w else at_zero


def sine_integral(which: int) -> Callable:
    """x f(x) or x² g(x), the auxiliary functions of Si and Ci, of w = 4/x."""

    def value(w: mpf) -> mpf:
        x = 4 / w
        si, ci = mp.si(x) - mp.pi / 2, mp.ci(x)
        if which == 0:
            return x * (ci * mp.sin(x) - si * mp.cos(x))
        return x * x * (-ci * mp.cos(x) - si * mp.sin(x))

    return value


def fresnel(which: int) -> Callable:
    """π x f(x) or π² x³ g(x), the auxiliary functions of the Fresnel integrals, of (3/2 / x)²."""

    def value(w: mpf) -> mpf:
        x = mpf(3) / 2 / mp.sqrt(w)
        s, c = mp.fresnels(x) - mpf(1) / 2, mp.fresnelc(x) - mpf(1) / 2
        angle = mp.pi * x * x / 2
        if which == 0:
            return mp.pi * x * (c * mp.sin(angle) - s * mp.cos(angle))
        return -(mp.pi**2) * x**3 * (c * mp.cos(angle) + s * mp.sin(angle))

    return value


def dawson(x: mpf) -> mpf:
    """exp(-x²) times the integral of exp(t²)."""
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def dawson_square(t: mpf) -> mpf:
    """D(x) / x of x²."""
    return dawson(mp.sqrt(t)) / mp.sqrt(t) if t else mpf(1)


def dawson_far(w: mpf) -> mpf:
    """2 x D(x) of (4/x)²."""
    x = 4 / mp.sqrt(w)
    return 2 * x * dawson(x)


def bessel_far(order: int) -> Callable:
    """√x exp(-x) I(x) of 8/x."""
    return lambda w: mp.sqrt(8 / w) * mp.exp(-8 / w) * mp.besseli(order, 8 / w)


def minimax(f: Callable, low: float, high: float, degree: int) -> list[float]:
    """The coefficients of the series of so many terms whose largest relative error is least: least
    squares with weights that follow the errors (C. L. Lawson, 1961), in double precision."""
    count = 50 * degree
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    values = np.array([float(f((mpf(high) - low) / 2 * (1 + mpf(t)) + low)) for t in nodes])
    terms, weights, best = np.polynomial.chebyshev.chebvander(nodes, degree), np.ones(count), None
    for _ in range(80):
        scale = np.sqrt(weights) / values
        found = np.linalg.lstsq(terms * scale[:, None], values * scale, rcond=None)[0]
        errors = np.abs(terms @ found / values - 1)
        if best is None or errors.max() < best[0]:
            best = errors.max(), found
        weights *= errors / errors.sum()
        weights /= weights.sum()
    assert best is not None
    print(f"{degree + 1} terms, relative error {best[0]:.1e}")
    return best[1].tolist()


def bessel_whole(order: int, shift: float) -> Callable:
    """(x + s)^(order + ½) exp(-x) I(x) / x^order of 1 / (x + s)."""

    def value(w: mpf) -> mpf:
        x = 1 / w - shift
        scaled = mp.exp(-x) * mp.besseli(order, x)
        return scaled * mp.sqrt(x + shift) * ((x + shift) / x) ** order

    return value


def gamma_scaled(w: mpf) -> mpf:
    """Γ(z) exp(z + s) (z + s)^(½ - z) z (z + 1) (z + 2) (z + 3) w⁴ of w = 1 / (z + s), s = 3.75:
    C. Lanczos, "A precision approximation of the gamma function", SIAM J. Numer. Anal. 1, 1964."""
    z = 1 / w - mpf(15) / 4
    poles = z * (z + 1) * (z + 2) * (z + 3) * w**4
    return mp.gamma(z) * mp.exp(1 / w) * (1 / w) ** (mpf(1) / 2 - z) * poles


def erfcx(w: mpf) -> mpf:
    """exp(a²) erfc(a) / w of w = 3 / (a + 3)."""
    a = 3 / w - 3
    return mp.exp(a * a) * mp.erfc(a) / w


def erfcx_slope(w: mpf) -> mpf:
    """-d/da exp(a²) erfc(a) / w² of the same w."""
    a = 3 / w - 3
    with mp.workdps(80):
        return (2 / mp.sqrt(mp.pi) - 2 * a * mp.exp(a * a) * mp.erfc(a)) / w**2


def quantile(w: mpf) -> mpf:
    """The y > 0 above which the normal distribution has q with 4 q (1 - q) = exp(-w)."""
    q = -mp.expm1(mp.log1p(-mp.exp(-w)) / 2) / 2
    y = mp.sqrt(max(2 * w - mp.log(2 * mp.pi * max(w, 1)), mpf("0.1")))
    for _ in range(80):  # Newton on log erfc
        above = mp.erfc(y / mp.sqrt(2)) / 2
        step = mp.log(above / q) * above / (mp.exp(-y * y / 2) / mp.sqrt(2 * mp.pi))
        y += step
        if abs(step) < mpf(10) ** -36:
            break
    return y


def quantile_centre(w: mpf) -> mpf:
    """y / (1 - 2 q)."""
    return quantile(w) / mp.sqrt(-mp.expm1(-w))


def quantile_far(v: mpf) -> mpf:
    """y / √w of v = 1 / (√w + 1)."""
    root = 1 / v - 1
    return quantile(root * root) / root


TABLES: dict[str, tuple[Callable, float, float]] = {
    "SINE_F": (sine_integral(0), 0, 1),
    "SINE_G": (sine_integral(1), 0, 1),
    "FRESNEL_F": (fresnel(0), 0, 1),
    "FRESNEL_G": (fresnel(1), 0, 1),
    "DAWSON_LOW": (dawson_square, 0, 4),
    "DAWSON_MIDDLE": (dawson, 2, 4),
    "DAWSON_FAR": (dawson_far, 0, 1),
    "I0E_NEAR": (lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 8),
    "I1E_NEAR": (lambda x: mp.exp(-x) * mp.besseli(1, x) / x if x else mpf(1) / 2, 0, 8),
    "I0E_FAR": (bessel_far(0), 0, 1),
    "I1E_FAR": (bessel_far(1), 0, 1),
    "I0E": (bessel_whole(0, 6.25), 0, 0.16),
    "I1E": (bessel_whole(1, 7), 0, 1 / 7),
    "GAMMA_SCALED": (gamma_scaled, 0, 4 / 17),
    "ERFCX": (limit(erfcx, 1 / (3 * mp.sqrt(mp.pi))), 0, 1),
    "ERFCX_SLOPE": (limit(erfcx_slope, 1 / (9 * mp.sqrt(mp.pi))), 0, 1),
    "NDTRI_CENTRE": (limit(quantile_centre, mp.sqrt(mp.pi / 2)), 0, 6.25),
    "NDTRI_FAR": (quantile_far, 0.035, 0.2857142857142857),
}
# Tables of functions that are computed so in single precision only.
SINGLE = ("GAMMA_SCALED",)
# The degrees of those that take part in every element's cost.
DEGREES = {"I0E": 18, "I1E": 18}


def written(name: str, low: float, high: float, series: list) -> list[str]:
    """The lines of a table."""
    numbers = [repr(float(c)) for c in series]
    lines = [f"{name} = (\n    ({low!r}, {high!r}),\n    (\n"]
    for k in range(0, len(numbers), WIDTH):
        lines.append("        " + ", ".join(numbers[k : k + WIDTH]) + ",\n")
    return [*lines, "    ),\n)\n"]


def main() -> None:
    lines = [HEAD]
    for name, (f, low, high) in TABLES.items():
        if name in DEGREES:
            print(name, end=": ")
            series = minimax(f, low, high, DEGREES[name])
            lines += written(name, low, high, series)
            continue
        series = chebyshev(f, low, high)
        largest = max(abs(c) for c in series)
        counts = [
            max(k for k, c in enumerate(series) if abs(c) > largest * bound) + 1
            for bound in (2e-17, 1e-9)
        ]
        print(f"{name}: {counts[0]} terms, {counts[1]} in single precision")
        lines += written(name, low, high, series[: counts[name in SINGLE]])
    TARGET.write_text("".join(lines))


if __name__ == "__main__":
    main()
