"""Incomplete gamma and beta functions and zeta as programs compute them, beside mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from versions import needs

import numjet as nj
from numjet import lax
from numjet.base import config
from numjet.core.array import as_array
from numjet.core.primitive import REGISTRY
from numjet.ops import hurwitz, incomplete, special
from numjet.ops.namespaces import Numpy

RNG = np.random.default_rng(3)
N = 12


def spread(low: float, high: float) -> np.ndarray:
    """Numbers of all sizes between two powers of ten."""
    return 10 ** RNG.uniform(low, high, N)


def gamma_points() -> tuple:
    a = np.concatenate([spread(-6, 0), spread(0, 1), spread(1, 2), spread(1.2, 2.2)])
    x = a * np.concatenate([spread(-3, 2), spread(-1, 0.5), spread(-0.7, 0.5), spread(-0.05, 0.05)])
    return np.append(a, [20.0, 12.0, 8.0, 1.0, 0.5]), np.append(x, [20.0, 12.0, 8.0, 1.0, 1.0])


def beta_points() -> tuple:
    a = np.concatenate([spread(-5, 0), spread(-1, 1), spread(0, 2), spread(0, 2)])
    b = np.concatenate([spread(-5, 0), spread(-1, 1), spread(0, 2), spread(-1, 1)])
    x = np.concatenate([RNG.uniform(0, 1, 3 * N), spread(-5, 0)])
    return a, b, x


def P(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def Q(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def I(a, b, x):  # noqa: E743
    if x > a / (a + b):
        return 1 - I(b, a, 1 - x)
    front = x**a * (1 - x) ** b / (a * mpmath.beta(a, b))
    return front * mpmath.hyp2f1(a + b, 1, a + 1, x)


def derivative(f, which):
    def slope(*args):
        step = args[which] * mpmath.mpf(10) ** -20

        def at(moved):
            return f(*[v + moved if k == which else v for k, v in enumerate(args)])

        return (at(step) - at(-step)) / (2 * step)

    return slope


def zeta_points() -> tuple:
    return 1 + spread(-4, 1.5), spread(-2, 2)


# name: primitive, formula, what mpmath says, points, ulps in double (of exponents that reach some
# hundreds, and of 1 - x, which the reference does not round)
CASES = {
    "igamma": (special.igamma_p, incomplete.lower_gamma, P, gamma_points, 100),
    "igammac": (special.igammac_p, incomplete.upper_gamma, Q, gamma_points, 300),
    "igamma_grad_a": (
        special.igamma_grad_a_p, incomplete.gamma_slope, derivative(P, 0), gamma_points, 200),
    "betainc": (special.regularized_incomplete_beta_p, incomplete.beta, I, beta_points, 200),
    "betainc_grad_a": (
        special.betainc_grad_a_p, incomplete.beta_slope_a, derivative(I, 0), beta_points, 400),
    "betainc_grad_b": (
        special.betainc_grad_b_p, incomplete.beta_slope_b, derivative(I, 1), beta_points, 400),
    "zeta": (special.zeta_p, hurwitz.zeta, mpmath.zeta, zeta_points, 10),
    "zeta_grad_x": (
        special.zeta_grad_x_p, hurwitz.zeta_slope, derivative(mpmath.zeta, 0), zeta_points, 10),
    "polygamma": (
        special.polygamma_p, hurwitz.polygamma, lambda m, x: mpmath.psi(int(m), x),
        lambda: (RNG.integers(1, 30, N).astype(float), spread(-2, 2)), 20),
}  # fmt: skip


def error(got: np.ndarray, want: list, dtype: type) -> float:
    """The largest error in units of the dtype's epsilon, of what the dtype can hold."""
    tiny, largest = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    errors = [
        float(abs(mpmath.mpf(float(g)) - w) / abs(w)) / float(np.finfo(dtype).eps)
        for g, w in zip(got, want, strict=True)
        if 4 * tiny < abs(w) < largest / 4
    ]
    assert len(errors) >= 2 * N // 3
    return max(errors)


@pytest.mark.parametrize("name", CASES)
def test_values_beside_mpmath(name: str) -> None:
    primitive, formula, truth, points, ulps = CASES[name]
    args = points()
    single = [v.astype(np.float32) for v in args]
    with config.enable_x64(True), mpmath.workdps(60):
        compiled = nj.jit(primitive.bind)
        want = [truth(*map(mpmath.mpf, map(float, row))) for row in zip(*args, strict=True)]
        with np.errstate(all="ignore"):
            assert error(formula(Numpy, *args), want, np.float64) < ulps
        assert error(np.asarray(compiled(*map(nj.numpy.asarray, args))), want, np.float64) < ulps
        want = [truth(*map(mpmath.mpf, map(float, row))) for row in zip(*single, strict=True)]
        got = compiled(*map(nj.numpy.asarray, single))
        assert got.dtype == np.float32
        assert error(np.asarray(got), want, np.float32) < 1


def test_upper_gamma_about_one_half() -> None:
    """Where SciPy's own values are off by hundreds of ulp: the reference takes the formula."""
    a, x = (v.ravel() for v in np.meshgrid(np.linspace(0.45, 0.55, 21), np.linspace(0.2, 1.2, 11)))
    with mpmath.workdps(60):
        want = [Q(mpmath.mpf(float(p)), mpmath.mpf(float(q))) for p, q in zip(a, x, strict=True)]
        got = special.igammac_p.reference(a, x)
        assert max(abs(float(g / w - 1)) for g, w in zip(got, want, strict=True)) < 2e-14


EDGES = [0.0, -0.0, 1.0, 2.0, 3.5, -1.0, -2.5, 1e-300, 1e9, np.inf, -np.inf, np.nan]


@needs("scipy", "1.16")
@pytest.mark.parametrize("name", ["igamma", "igammac", "betainc", "zeta", "polygamma"])
def test_edges_are_those_of_the_reference(name: str) -> None:
    primitive, formula, *_ = CASES[name]
    axes = [EDGES] * (3 if name == "betainc" else 2)
    args = [v.ravel() for v in np.meshgrid(*axes)]
    with config.enable_x64(True):
        got = np.asarray(nj.jit(primitive.bind)(*map(nj.numpy.asarray, args)))
    with np.errstate(all="ignore"):
        want = primitive.reference(*args)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_zeta_of_negative_numbers() -> None:
    """ζ(s, q) for whole s and q < 0 adds terms of both signs; polygamma reflects."""
    q = np.array([-0.3, -0.5, -3.7, -40.25])
    with config.enable_x64(True):
        for m in (1, 2, 3):
            got = nj.jit(lambda x, m=m: lax.polygamma(np.float64(m), x))(q)
            want = [float(mpmath.psi(m, x)) for x in q]
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_large_parameters() -> None:
    """Where the series would take thousands of terms: a normal distribution with corrections."""
    a = np.array([1e6, 1e9, 1e12])
    with config.enable_x64(True):
        got = nj.jit(lax.igamma)(a, a)
        # P(a, a) = 1/2 + 1/(3 √(2πa)) + ...
        np.testing.assert_allclose(got, 0.5 + 1 / (3 * np.sqrt(2 * np.pi * a)), rtol=1e-9)
        slope = nj.jit(lax.random_gamma_grad)(a, a)
        np.testing.assert_allclose(slope, 1 + 1 / (6 * a), rtol=1e-9)


@pytest.mark.parametrize("a, x", [(0.4, 0.2), (3.0, 9.0), (20.0, 20.0), (30.0, 10.0)])
def test_second_derivatives_in_the_parameters(a: float, x: float) -> None:
    with config.enable_x64(True), mpmath.workdps(50):
        got = float(nj.grad(nj.grad(lax.igamma))(a, x))
        assert got == pytest.approx(float(mpmath.diff(lambda v: P(v, mpmath.mpf(x)), a, 2)), 1e-9)
        got = float(nj.grad(nj.grad(lax.betainc), 1)(a, 2.0, 0.3))
        mixed = mpmath.diff(lambda v, w: I(v, w, mpmath.mpf(0.3)), (a, 2.0), (1, 1))
        assert got == pytest.approx(float(mixed), 1e-9)


def test_second_derivatives_of_one_operand_beside_concrete_ones() -> None:
    """In single precision, where the other operand is no tracer."""
    x = np.float32([1.1, 1.2])
    got = nj.grad(lambda a: lax.igamma_grad_a(a, x).sum())(np.float32([1.73, 1.639]))
    want = [float(mpmath.diff(lambda v: P(v, mpmath.mpf(float(x))), float(a), 2))
            for a, x in zip(np.float32([1.73, 1.639]), x)]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_of_no_elements_and_under_vmap() -> None:
    assert nj.jit(lax.igamma)(np.zeros(0, np.float32), np.zeros(0, np.float32)).shape == (0,)
    a, x = np.float32([1, 2, 3]), np.float32([0.5, 20])
    table = nj.jit(nj.vmap(nj.vmap(lax.igamma, (None, 0)), (0, None)))(a, x)
    want = [[float(lax.igamma(p, q)) for q in x] for p in a]
    np.testing.assert_allclose(table, want, rtol=1e-6)


DEAR = {
    "polygamma": "mx", "zeta": "sx", "zeta_grad_x": "sx", "igamma": "ax", "igammac": "ax",
    "igamma_grad_a": "ax", "random_gamma_grad": "ax",
    "regularized_incomplete_beta": "aap", "betainc_grad_a": "aap", "betainc_grad_b": "aap",
}  # fmt: skip


@pytest.mark.parametrize("name", DEAR)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_elements_give_what_few_do(name, dtype):
    """Eager code compiles these from so many elements on, one operand a scalar or not."""
    rng = np.random.default_rng(7)
    n = 300
    made = {
        "m": rng.integers(1, 6, n) * 1.0, "s": rng.uniform(1.5, 6, n), "p": rng.uniform(0, 1, n),
        "x": rng.uniform(0.1, 20, n), "a": rng.uniform(0.1, 20, n),
    }  # fmt: skip
    primitive = REGISTRY[name]
    with nj.enable_x64(dtype == "float64"):
        for first in (slice(None), 5):
            operands = [made[k].astype(dtype) for k in DEAR[name]]
            if len(operands) > 1:
                operands[0] = operands[0][first]
            many = primitive.bind(*[as_array(x) for x in operands])
            few = [
                primitive.bind(*[as_array(x if x.ndim == 0 else x[i : i + 60]) for x in operands])
                for i in range(0, n, 60)
            ]
            assert many.dtype == dtype
            limit = 1e-6 if dtype == "float32" else 2e-12
            few = np.concatenate(few)
            np.testing.assert_allclose(many, few, rtol=limit, atol=limit * np.abs(few).max() / 10)
