"""First and second derivatives to the last digits where formulas that suggest themselves cancel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, nn
from numjet.scipy import special, stats

# In units of the last place, where they are not 12 and 60: both derivatives have zeros.
BOUNDS = {"dawsn": (40, 800)}
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def scaled(x: mpf) -> mpf:
    return mp.exp(x * x) * mp.erfc(x)


def log_normal(x: mpf) -> mpf:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def dawson(x: mpf) -> mpf:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def density(x: mpf) -> mpf:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)



CASES: dict[str, tuple[Callable, Callable, list]] = {
    "erfcx": (special.erfcx, scaled, [-3.5, -0.25, 0, 0.375, 0.5, 0.625, 4, 77, 5000, 2e6]),
    "log_ndtr": (special.log_ndtr, log_normal, [-9000, -40.5, -13, -2.25, 0, 0.5, 3]),
    "i0": (special.i0, lambda x: mp.besseli(0, x), [-9, -0.5, -1e-3, 0, 1e-7, 0.875, 1, 20]),
    "i1": (special.i1, lambda x: mp.besseli(1, x), [-9, -0.5, -1e-3, 0, 1e-7, 0.875, 1, 20]),
    "dawsn": (special.dawsn, dawson, [-30, -3.5, -1, 0, 0.25, 1.75, 2.5, 4, 4.25]),
    "asin": (lax.asin, mp.asin, [-0.999999, -0.5, 1e-9, 0.25, 0.99, 0.9999]),
    "acos": (lax.acos, mp.acos, [-0.999999, -0.5, 1e-9, 0.25, 0.99, 0.9999]),
    "atanh": (lax.atanh, mp.atanh, [-0.999999, -0.5, 1e-9, 0.25, 0.99, 0.9999]),
}


def differentiated(f: Callable, order: int) -> Callable:
    for _ in range(order):
        f = nj.grad(f)
    return nj.vmap(f)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivatives(name: str, dtype: str, compiled: bool) -> None:
    f, exact, points = CASES[name]
    with nj.enable_x64(True), mp.workdps(60):
        x = jnp.array(points, dtype)
        for order, bound in enumerate(BOUNDS.get(name, (12, 60)), 1):
            slope = differentiated(f, order)
            out = np.asarray((nj.jit(slope) if compiled else slope)(x), np.float64)
            for point, value in zip(np.asarray(x, np.float64), out, strict=True):
                step = max(abs(mpf(point)), mpf(1)) * mpf(10) ** -18
                ends = [exact(mpf(point) + k * step) for k in (-1, 0, 1)]
                right = (
                    (ends[2] - ends[0]) / (2 * step)
                    if order == 1
                    else (ends[2] - 2 * ends[1] + ends[0]) / step**2
                )
                error = abs(mpf(value) - right)
                least = mpf(10) ** (-30 if dtype == "float32" else -15)
                assert error <= bound * EPS[dtype] * abs(right) + least, (point, order, value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_normal_quantiles_far_out(dtype: str) -> None:
    with nj.enable_x64(True), mp.workdps(60):
        p = jnp.array([1e-18, 3e-15, 2e-8, 0.01, 0.25, 0.5, 0.96875], dtype)
        first = np.asarray(differentiated(special.ndtri, 1)(p), np.float64)
        second = np.asarray(differentiated(special.ndtri, 2)(p), np.float64)
        for point, one, two in zip(np.asarray(p, np.float64), first, second, strict=True):
            below = lambda y, q=point: mp.log(mp.erfc(-y / mp.sqrt(2)) / 2 / q)  # noqa: E731
            y = mp.findroot(below, mpf(float(special.ndtri(float(point)))))
            assert abs(one * density(y) - 1) < 6 * EPS[dtype], point
            assert abs(two * density(y) ** 2 - y) <= 40 * EPS[dtype] * abs(y) + 1e-40, point


def test_derivatives_of_normal_quantiles_at_the_ends() -> None:
    ends = jnp.array([0.0, 1.0])
    assert np.all(np.isinf(differentiated(special.ndtri, 1)(ends)))


def test_higher_derivatives_of_bessel_functions_at_zero() -> None:
    f, out = special.i0, []
    for _ in range(5):
        f = nj.grad(f)
        out.append(float(f(0.0)))
    assert out == [0, 0.5, 0, 0.375, 0]


def test_densities_of_incomplete_functions_keep_all_digits() -> None:
    """Sums of logarithms lose as many digits as the logarithms have before the point."""
    with mp.workdps(40):
        a, b = np.float32([0.25, 3, 30, 147.5, 900]), np.float32([227, 0.5, 8, 300, 400])
        x = np.float32([1e-4, 0.04, 0.75, 0.375, 0.6875])
        beta = np.asarray(nj.vmap(nj.grad(special.betainc, 2))(a, b, x))
        gamma = np.asarray(nj.vmap(nj.grad(special.gammainc, 1))(a, a * 1.25))
        for k in range(5):
            p, q, z = mpf(float(a[k])), mpf(float(b[k])), mpf(float(x[k]))
            right = z ** (p - 1) * (1 - z) ** (q - 1) / mp.beta(p, q)
            assert abs(beta[k] / right - 1) < 2e-7
            y = p * mpf(1.25)
            right = mp.exp((p - 1) * mp.log(y) - y - mp.loggamma(p))
            assert abs(gamma[k] / right - 1) < 2e-7


def test_densities_at_the_ends_of_the_support() -> None:
    ends = jnp.array([0.0, 1.0])
    slope = nj.vmap(nj.grad(special.betainc, 2), (None, None, 0))
    np.testing.assert_array_equal(slope(1.0, 3.0, ends), [3, 0])
    np.testing.assert_array_equal(slope(0.5, 1.0, ends), [np.inf, 0.5])
    slope = nj.vmap(nj.grad(special.gammainc, 1))
    out = slope(jnp.array([0.5, 1.0, 2.0, 2.0]), jnp.array([0.0, 0.0, 0.0, np.inf]))
    np.testing.assert_array_equal(out, [np.inf, 1, 0, 0])


@pytest.mark.parametrize("compiled", [False, True])
def test_slopes_of_probabilities_that_round_to_one(compiled: bool) -> None:
    run = nj.jit if compiled else lambda f: f
    cases = [
        (stats.pareto.cdf, (5.5, 12.0), 12 * 5.5**-13),
        (stats.gumbel_r.sf, (-3.25,), -np.exp(3.25 - np.exp(3.25))),
        (stats.gumbel_l.cdf, (3.25,), np.exp(3.25 - np.exp(3.25))),
        (stats.expon.cdf, (25.0,), np.exp(-25)),
    ]
    for f, args, right in cases:
        np.testing.assert_allclose(run(nj.grad(f))(*args), right, rtol=2e-5)
    second = nj.vmap(nj.grad(nj.grad(nn.log1mexp)))
    out = run(second)(jnp.array([20.0, 75.0, 400.0]))
    np.testing.assert_allclose(out, [-np.exp(-20), -np.exp(-75), 0], rtol=1e-5)


def test_digamma_near_its_poles_is_the_compiled_one() -> None:
    with nj.enable_x64(True), mp.workdps(40):
        x = np.array([-0.99990234375, -1 - 2.0**-20, -6.5, -3.25, -40.001953125, -2.0])
        for f in (lax.digamma, nj.jit(lax.digamma)):
            out = np.asarray(f(x))
            assert np.isnan(out[-1])
            for point, value in zip(x[:-1], out, strict=False):
                assert abs(value / mp.digamma(mpf(point)) - 1) < 8 * EPS["float64"], point
