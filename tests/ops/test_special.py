"""Special functions against JAX and mpmath; derivatives that are refused."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special
from lax_cases import checks_of, sample

from numjet import lax
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.autodiff import grad
from numjet.base import config

X = sample(3, 4)
P, Q = sample(6, low=0.3, high=6.0), sample(6, seed=1, low=0.3, high=6.0)
UNIT = sample(6, low=-0.95, high=0.95)
PART = sample(6, low=0.05, high=0.95)
CASES = {
    "erf": ("lax.erf(x)", X),
    "erfc": ("lax.erfc(x)", X),
    "erf_inv": ("lax.erf_inv(x)", UNIT),
    "lgamma": ("lax.lgamma(x)", P),
    "digamma": ("lax.digamma(x)", P),
    "igamma": ("lax.igamma(x, y)", P, Q),
    "igammac": ("lax.igammac(x, y)", P, Q),
    "betainc": ("lax.betainc(x, y, z)", P, Q, PART),
    "bessel_i0e": ("lax.bessel_i0e(x)", X),
    "bessel_i1e": ("lax.bessel_i1e(x)", X),
    "polygamma": ("lax.polygamma(x, y)", np.float32([1, 2, 3, 0, 1, 2]), P),
    "zeta": ("lax.zeta(x, y)", P + 1.2, Q),
    "igamma_grad_a": ("lax.igamma_grad_a(x, y)", P, Q),
    "random_gamma_grad": ("lax.random_gamma_grad(x, y)", P, Q),
    "edges erf": ("lax.erf(x)", np.float32([0, -0.0, np.inf, -np.inf, np.nan])),
    "edges lgamma": ("lax.lgamma(x)", np.float32([0, -1, np.inf, -0.5, 1, 2])),
    "edges erf_inv": ("lax.erf_inv(x)", np.float32([1, -1, 0, 2, np.nan])),
}
ONLY_VALUES = [name for name in CASES if name.startswith("edges")] + [
    "betainc",
    "polygamma",
    "zeta",
    "igamma_grad_a",
    "random_gamma_grad",
]


test_against_jax, test_laws = checks_of(
    CASES, only_values=ONLY_VALUES, rtol=2e-4, atol=1e-5, laws_rtol=1e-4
)


@pytest.mark.parametrize("a, x", [(0.5, 1.0), (2.0, 3.0), (30.0, 28.0), (5.0, 40.0), (0.1, 1e-3)])
def test_gamma_derivative_in_its_parameter(a: float, x: float) -> None:
    with mpmath.workdps(30):
        want = float(mpmath.diff(lambda s: mpmath.gammainc(s, 0, x, regularized=True), a))
    with config.enable_x64(True):
        got = float(lax.igamma_grad_a(np.float64(a), np.float64(x)))
    assert got == pytest.approx(want, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_higher_derivatives(order: int) -> None:
    f = lax.lgamma
    for _ in range(order):
        f = grad(f)
    assert float(f(3.3)) == pytest.approx(float(mpmath.psi(order - 1, 3.3)), rel=1e-5)


def test_bessel_derivative_at_zero() -> None:
    assert float(grad(lax.bessel_i1e)(0.0)) == 0.5


@pytest.mark.parametrize("x", [-2.5, -0.75, -1e-3, -1e-9, 1e-20, 3e-6, 0.4, 6.0])
def test_second_derivatives_of_bessel_functions_do_not_cancel(x: float) -> None:
    # (e^(-s x) I1(x))'' is e^(-s x) (I1'' - 2 s I1' + I1), s the sign of x.
    values = [scipy.special.ivp(1, x, n) for n in range(3)]
    want = np.exp(-abs(x)) * (values[2] - 2 * np.sign(x) * values[1] + values[0])
    for twice in (grad(grad(lax.bessel_i1e)), jit(grad(grad(lax.bessel_i1e)))):
        np.testing.assert_allclose(twice(x), want, rtol=2e-5)


def test_derivatives_that_do_not_exist_are_refused() -> None:
    with pytest.raises(
        NotImplementedError, match="derivative of polygamma with respect to m.*stop_gradient"
    ):
        grad(lambda m: lax.polygamma(m, 2.0))(1.0)


@pytest.mark.parametrize("name", ["bessel_i0e", "bessel_i1e"])
def test_compiled_bessel_functions_are_rounded_once(name: str) -> None:
    x = np.linspace(-40, 40, 40_001).astype(np.float32)
    got = np.asarray(jit(getattr(lax, name))(x))
    wide = getattr(scipy.special, name.removeprefix("bessel_"))(x.astype(np.float64))
    assert (np.abs(got - wide) <= 0.6 * np.spacing(np.abs(wide).astype(np.float32))).all()


def test_compiled_bessel_functions_at_the_ends() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, -1e38], np.float32)
    even, odd = [np.asarray(jit(f)(x)) for f in (lax.bessel_i0e, lax.bessel_i1e)]
    far = np.float32(1 / np.sqrt(2e38 * np.pi))
    np.testing.assert_allclose(even, [0, 0, np.nan, 1, 1, far, far], 1e-6)
    np.testing.assert_allclose(odd, [0, 0, np.nan, 0, 0, far, -far], 1e-6)
    assert list(np.signbit(odd[[0, 1, 3, 4]])) == [False, True, False, True]
