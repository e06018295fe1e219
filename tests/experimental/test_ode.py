"""odeint against solutions that are known, and its adjoint against derivatives of those."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental.ode import fit_4th_order_polynomial, odeint, runge_kutta_step

TIMES = np.linspace(0.0, 2.0, 5)


@pytest.fixture(autouse=True)
def wide():
    with nj.enable_x64(True):
        yield


def test_a_pytree_of_states_follows_scipys_solution():
    def slopes(y, t, a):
        return {"u": a * y["u"] - y["u"] * y["v"], "v": y["u"] * y["v"] * jnp.sin(t) - y["v"]}

    found = odeint(slopes, {"u": np.array([1.0, 2.0]), "v": np.array([0.5, 0.1])}, TIMES, 1.1)
    for i, start in enumerate([(1.0, 0.5), (2.0, 0.1)]):
        want = scipy.integrate.solve_ivp(
            lambda t, y: [1.1 * y[0] - y[0] * y[1], y[0] * y[1] * np.sin(t) - y[1]], (0.0, 2.0),
            start, t_eval=TIMES, rtol=1e-11, atol=1e-11).y
        np.testing.assert_allclose([found["u"][:, i], found["v"][:, i]], want, rtol=2e-6)


def test_derivatives_with_respect_to_states_times_arguments_and_closures():
    # y(t) = y0·exp(a·c·(t² - t0²)/2)
    def last(y0, times, a, c):
        return odeint(lambda y, t, a: a * c * t * y, y0, times, a)[-1]

    y0, a, c, times = 1.5, 0.7, 0.9, np.array([0.5, 1.0, 2.0])
    value = y0 * np.exp(a * c * (2.0**2 - 0.5**2) / 2)
    by = nj.jit(nj.grad(last, argnums=(0, 1, 2, 3)))(y0, times, a, c)
    grown = (2.0**2 - 0.5**2) / 2 * value
    for found, want in zip(by, (value / y0, [-a * c * 0.5 * value, 0.0, a * c * 2.0 * value],
                                c * grown, a * grown), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


def test_whole_arguments_and_complex_states_and_vmap():
    def last(y0, n):
        return odeint(lambda y, t, n: n * 1j * y, y0, TIMES, n)[-1]

    found = nj.vmap(last, in_axes=(0, None))(np.array([1.0 + 0j, 2.0j]), 2)
    np.testing.assert_allclose(found, np.array([1.0, 2.0j]) * np.exp(4j), rtol=1e-6)
    by = nj.grad(lambda y0: odeint(lambda y, t, n: -y * n, y0, TIMES, 2)[-1])(1.0)
    np.testing.assert_allclose(by, np.exp(-4.0), rtol=1e-5)


def test_bounds_on_steps():
    few = odeint(lambda y, t: y * jnp.cos(20 * t), 1.0, TIMES, mxstep=2)
    exact = np.exp(np.sin(20 * TIMES) / 20)
    assert np.abs(few - exact).max() > 1e-3  # two steps do not reach the next time
    short = odeint(lambda y, t: y * jnp.cos(20 * t), 1.0, TIMES, rtol=1.0, atol=1.0, hmax=0.01)
    np.testing.assert_allclose(short, exact, rtol=1e-6)


def test_the_error_is_estimated_by_shampines_pair():
    y0 = np.array([1.0, 2.0])
    error = runge_kutta_step(lambda y, t: -y * t, y0, -y0, jnp.float64(1.0), jnp.float64(0.5))[2]
    # Of `jax.experimental.ode.runge_kutta_step`.
    np.testing.assert_allclose(error, [-1.5424e-5, -3.0848e-5], rtol=1e-3)


def test_the_quartic_has_the_values_and_slopes_it_is_made_of():
    y0, y1, middle, dy0, dy1, dt = 0.3, -1.2, 0.8, 2.0, -0.4, 0.5
    p = np.poly1d([float(c) for c in fit_4th_order_polynomial(y0, y1, middle, dy0, dy1, dt)])
    slope = p.deriv()
    np.testing.assert_allclose([p(0), p(1), p(0.5), slope(0), slope(1)],
                               [y0, y1, middle, dt * dy0, dt * dy1])


def test_refusals():
    with pytest.raises(TypeError, match="t must be an array of floats"):
        odeint(lambda y, t: y, 1.0, np.arange(3))
    with pytest.raises(TypeError, match=r"contents of odeint \*args must be arrays"):
        odeint(lambda y, t, s: y, 1.0, TIMES, "a")
    with pytest.raises(ValueError, match="as many numbers as y0 has, 1, got 2"):
        odeint(lambda y, t: (y, y), 1.0, TIMES)


def test_slopes_may_come_in_another_container():
    # The leaves alone count, as programs return a list where y0 is a tuple.
    found = odeint(lambda y, t: [y[1], -y[0]], (1.0, 0.0), TIMES)
    np.testing.assert_allclose(found[0], np.cos(TIMES), atol=1e-6)
    assert type(found) is tuple
