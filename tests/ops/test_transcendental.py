"""Transcendental primitives: values and derivatives against JAX, laws, gradients' conventions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from lax_cases import checks_of, sample

import numjet as nj
from numjet import jit, lax, numpy as jnp
from numjet.api.derivatives.autodiff import grad

X = sample(3, 4)
P = sample(3, 4, low=0.1, high=4.0)
Q = sample(3, 4, seed=1)
UNIT = sample(3, 4, low=-0.95, high=0.95)
C = sample(5, dtype=np.complex64)
H = sample(4, low=0.2, high=1.0).astype(ml_dtypes.bfloat16)
HALF = sample(4, low=0.2, high=1.0).astype(np.float16)
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 90.0, -110.0], np.float32)

EVERYWHERE = [
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "cbrt",
    "logistic",
]
POSITIVE = ["log", "sqrt", "rsqrt", "log1p"]
UNIT_ONES = ["asin", "acos", "atanh"]
COMPLEX = ["exp", "log", "sin", "cos", "tanh", "sqrt", "sinh", "cosh", "expm1", "log1p"]

CASES = {
    **{name: (f"lax.{name}(x)", X) for name in EVERYWHERE},
    **{name: (f"lax.{name}(x)", P) for name in POSITIVE},
    **{name: (f"lax.{name}(x)", UNIT) for name in UNIT_ONES},
    "acosh": ("lax.acosh(x)", P + 1),
    "atan2": ("lax.atan2(x, y)", X, Q),
    "complex atan2": ("lax.atan2(x, y)", C, C[::-1] + 1),
    "pow": ("lax.pow(x, y)", P, Q),
    "pow scalar": ("lax.pow(x, 2.5)", P),
    "pow of scalar": ("lax.pow(y, x)", X, np.float32(2.5)),
    "pow int": ("lax.pow(x, 3)", X),
    "pow int array": ("lax.pow(x, y)", X, np.arange(12, dtype=np.int32).reshape(3, 4) - 5),
    **{
        f"bfloat16 {name}": (f"lax.{name}(x)", H)
        for name in ("exp", "log", "tanh", "sqrt", "rsqrt", "logistic")
    },
    **{f"float16 {name}": (f"lax.{name}(x)", HALF) for name in ("exp", "log", "sin", "sqrt")},
    **{f"complex {name}": (f"lax.{name}(x)", C) for name in COMPLEX},
    **{
        f"edges {name}": (f"lax.{name}(x)", EDGES)
        for name in EVERYWHERE + POSITIVE + UNIT_ONES + ["acosh"]
    },
    "edges pow": ("lax.pow(x, y)", EDGES, np.roll(EDGES, 2)),
    "edges atan2": ("lax.atan2(x, y)", EDGES, np.roll(EDGES, 2)),
    "empty": ("lax.exp(x)", np.zeros((0, 3), np.float32)),
}
SPECIAL_VALUES = [name for name in CASES if name.startswith("edges")]


test_against_jax, test_laws = checks_of(CASES, only_values=SPECIAL_VALUES)


def test_conventions_of_gradients() -> None:
    assert float(grad(lax.sqrt)(0.0)) == np.inf
    assert float(grad(lambda x: lax.pow(x, 2.0))(0.0)) == 0.0
    assert float(grad(lambda y: lax.pow(0.0, y))(2.0)) == 0.0
    assert np.isnan(float(grad(lambda x: lax.pow(x, 0.0))(0.0)))  # 0 times 1/0, as in JAX


@pytest.mark.parametrize("name", ["tanh", "sin", "log", "sqrt", "logistic", "atan"])
def test_third_derivative(name: str) -> None:
    f = getattr(lax, name)
    third = grad(grad(grad(f)))
    second, h = grad(grad(f)), 1e-2
    slope = (float(second(0.7 + h)) - float(second(0.7 - h))) / (2 * h)
    assert float(third(0.7)) == pytest.approx(slope, rel=2e-2, abs=1e-3)


def test_messages() -> None:
    with pytest.raises(TypeError, match="exp does not accept dtype int32.*floating"):
        lax.exp(np.arange(3, dtype=np.int32))


def test_cube_roots_are_right_to_the_last_place():
    x = np.arange(0x3E000000, 0x41000000, 40009, np.int32).view(np.float32)
    x = np.concatenate([x, -x, x * np.float32(1e-40), x * np.float32(1e37)])
    exact = np.cbrt(x.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    cubes = np.arange(1, 256, dtype=np.float32)
    for root in (lax.cbrt, jit(lax.cbrt)):
        got = np.asarray(root(x))
        assert got.dtype == np.float32
        assert (np.abs(got - exact) <= unit).all()
        np.testing.assert_array_equal(root(cubes**3), cubes)
        np.testing.assert_array_equal(root(-(cubes**3)), -cubes)
    assert float(lax.cbrt(np.float32(27))) == 3


def test_complex_functions_far_out():
    """At infinities and beside zero, the same by both ways, without NaN where a limit is."""
    parts = (0.0, 1e-10, -1e-10, 2.0, -2.0, 1e20, -1e20, 100.0, -100.0, np.inf, -np.inf)
    z = np.array([complex(a, b) for a in parts for b in parts if np.isfinite(b)], "complex64")
    for name in ("atanh", "atan", "tanh", "tan", "logistic", "log1p"):
        function = getattr(lax, name)
        eager, compiled = np.asarray(function(z)), np.asarray(jit(function)(z))
        np.testing.assert_allclose(eager, compiled, rtol=2e-5, err_msg=name)
        # The tangent of a real infinity has no limit.
        assert name == "tan" or not np.isnan(eager).any(), name
    far = lax.logistic(np.complex64([-100 + 2j, 1000 + 1j]))
    np.testing.assert_allclose(far, [0, 1], atol=1e-38)
    np.testing.assert_allclose(lax.log1p(np.complex64(1e-22 - 1e-22j)), 1e-22 - 1e-22j, rtol=1e-6)
    turned = jnp.logaddexp(np.complex64(1e10j), 0)
    np.testing.assert_allclose(turned, np.log(1 + np.exp(1e10j)), rtol=1e-5)
    with pytest.raises(TypeError, match="is_finite does not accept dtype complex64"):
        lax.is_finite(z)


def test_derivatives_of_powers_of_zero_to_integers_that_are_known_at_run_time_only() -> None:
    power = lambda x, n: x**n  # noqa: E731
    for n, slope in ((0, 0.0), (1, 1.0), (2, 0.0)):
        for f in (nj.jit(power), nj.jit(lax.pow), power):
            assert float(nj.grad(f)(0.0, jnp.int32(n))) == slope, n
    zeros = jnp.zeros((2, 3))
    total = lambda x: jnp.sum(x ** jnp.arange(3))  # noqa: E731
    for f in (total, nj.jit(total)):
        assert nj.grad(f)(zeros).tolist() == [[0.0, 1.0, 0.0]] * 2
        assert nj.vmap(nj.grad(f))(zeros).tolist() == [[0.0, 1.0, 0.0]] * 2
    slopes = nj.grad(lambda x: jnp.sum(x ** jnp.array([3, -1])))(jnp.array([2.0, 4.0]))
    assert slopes.tolist() == [12.0, -0.0625]
    assert np.isnan(nj.grad(nj.jit(power))(0.0, 0.0))


def test_branch_cuts_of_compiled_complex_functions():
    """The sign of a zero says on which side of a cut a number is, and infinities have angles."""
    parts = (-np.inf, -1e25, -3.0, -1.0, -0.25, -0.0, 0.0, 0.25, 1.0, 3.0, 1e25, np.inf)
    z = np.array([complex(a, b) for a in parts for b in parts], "complex64")
    for name in ("acos", "asin", "acosh", "asinh", "atan", "atanh"):
        eager, compiled = np.asarray(getattr(lax, name)(z)), np.asarray(jit(getattr(lax, name))(z))
        for part in ("real", "imag"):
            want, got = getattr(eager, part), getattr(compiled, part)
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=name)
            known = ~np.isnan(want)
            signs = np.signbit(got[known]) == np.signbit(want[known])
            assert signs.all(), (name, part, z[known][~signs])
    got = jit(lax.acosh)(np.complex64([complex(-3, -0.0), complex(-3, 0.0)]))
    np.testing.assert_allclose(got, np.arccosh(3) + np.array([-1j, 1j]) * np.pi, rtol=1e-6)
    ends = np.asarray(jit(lax.tanh)(np.complex64([complex(np.inf, -1), complex(-np.inf, 2)])))
    assert np.signbit(ends.imag).all()
    # Beside -1 the real part is large, and does not overflow.
    beside = np.complex64([-1 + 1e-3j, -1 - 1e-12j, 1 + 1e-30j])
    want = np.arctanh(beside.astype("complex128"))
    np.testing.assert_allclose(jit(lax.atanh)(beside), want, rtol=1e-5)


def test_squares_of_complex_numbers_do_not_cancel():
    z = np.complex64([1e30 + 1e30j, 1.0000001 + 1j])
    want = [complex(0, np.inf), np.complex128(z[1]) ** 2]
    for square in (lax.square, jit(lax.square)):
        np.testing.assert_allclose(square(z), want, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(square(z)).real, np.real(want), rtol=1e-6)


def test_slopes_of_tanh_lose_only_what_its_value_lost() -> None:
    """1 - out² rounds the square, which costs as much again and more."""
    x = np.linspace(2, 8, 301).astype(np.float32)
    for run in (lambda f, x: f(x), lambda f, x: jit(f)(x)):
        value, slope = run(lambda x: nj.jvp(lax.tanh, (x,), (jnp.ones_like(x),)), jnp.asarray(x))
        out = np.asarray(value).astype(np.float64)
        np.testing.assert_allclose(slope, (1 - out) * (1 + out), rtol=2e-7)
