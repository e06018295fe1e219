"""Optimistix after its documentation: roots, fixed points, least squares, minima, gradients."""
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx


def test_roots():
    fun = lambda y, a: y - jnp.tanh(y * a + 1)
    for solver in (optx.Newton(1e-5, 1e-5), optx.Chord(1e-5, 1e-5), optx.Dogleg(1e-5, 1e-5)):
        y = optx.root_find(fun, solver, jnp.array(0.0), jnp.array(0.5)).value
        assert abs(float(fun(y, 0.5))) < 1e-4
    y = optx.root_find(lambda y, _: y**2 - 2, optx.Bisection(1e-6, 1e-6), 1.0,
                       options=dict(lower=0.0, upper=2.0)).value
    assert abs(float(y) - np.sqrt(2)) < 1e-4


def test_fixed_point_and_its_gradient():
    solver = optx.FixedPointIteration(1e-6, 1e-6)
    find = lambda a: optx.fixed_point(lambda y, a: jnp.cos(a * y), solver, 0.5, a).value
    y = find(1.0)
    assert abs(float(y) - 0.7390851) < 1e-5
    slope = jax.grad(find)(1.0)
    np.testing.assert_allclose(slope, -y * np.sin(y) / (1 + np.sin(y)), rtol=1e-3)


def test_least_squares():
    t = jnp.linspace(0, 1, 20)
    data = 2.0 * jnp.exp(-3.0 * t)
    residual = lambda p, _: p[0] * jnp.exp(-p[1] * t) - data
    for solver in (optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6)):
        p = optx.least_squares(residual, solver, jnp.array([1.5, 2.0])).value
        np.testing.assert_allclose(p, [2, 3], rtol=1e-3)


def test_minima():
    rosenbrock = lambda y, _: (1 - y[0]) ** 2 + 100 * (y[1] - y[0] ** 2) ** 2
    for solver in (optx.BFGS(1e-6, 1e-6), optx.NelderMead(1e-6, 1e-6)):
        y = optx.minimise(rosenbrock, solver, jnp.array([-1.0, 1.5]), max_steps=2000).value
        np.testing.assert_allclose(y, [1, 1], atol=2e-2)
