"""First and second derivatives to the last digits where formulas that suggest themselves cancel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.scipy import special

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def scaled(x: mpf) -> mpf:
    return mp.exp(x * x) * mp.erfc(x)


def log_normal(x: mpf) -> mpf:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def density(x: mpf) -> mpf:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)



CASES: dict[str, tuple[Callable, Callable, list]] = {
    "erfcx": (special.erfcx, scaled, [-3.5, -0.25, 0, 0.375, 0.5, 0.625, 4, 77, 5000, 2e6]),
    "log_ndtr": (special.log_ndtr, log_normal, [-9000, -40.5, -13, -2.25, 0, 0.5, 3]),
    "i0": (special.i0, lambda x: mp.besseli(0, x), [-9, -0.5, -1e-3, 0, 1e-7, 0.875, 1, 20]),
    "i1": (special.i1, lambda x: mp.besseli(1, x), [-9, -0.5, -1e-3, 0, 1e-7, 0.875, 1, 20]),
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
        for order, bound in ((1, 12), (2, 60)):
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
