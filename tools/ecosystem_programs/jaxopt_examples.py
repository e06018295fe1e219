"""jaxopt after its documentation: solvers with implicit gradients."""
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

key = jax.random.key(0)
X = jax.random.normal(key, (40, 3))
Y = X @ jnp.array([1.0, -2.0, 0.5])


def ridge(w, reg, data):
    x, y = data
    return jnp.mean((x @ w - y) ** 2) + reg * jnp.sum(w**2)


def exact(reg):
    return jnp.linalg.solve(X.T @ X / 40 + reg * jnp.eye(3), X.T @ Y / 40)


def test_solvers_reach_the_minimum():
    for solver in (jaxopt.LBFGS, jaxopt.GradientDescent, jaxopt.BFGS, jaxopt.NonlinearCG):
        w = solver(fun=ridge, maxiter=500, tol=1e-6).run(jnp.zeros(3), 0.1, (X, Y)).params
        np.testing.assert_allclose(w, exact(0.1), rtol=1e-2, atol=1e-3)


def test_gradients_through_the_solution():
    solver = jaxopt.LBFGS(fun=ridge, maxiter=500, tol=1e-6)
    slope = jax.jacobian(lambda r: solver.run(jnp.zeros(3), r, (X, Y)).params)(0.1)
    np.testing.assert_allclose(slope, jax.jacobian(exact)(0.1), rtol=2e-2, atol=1e-3)


def test_projections_and_proximal_gradient():
    np.testing.assert_allclose(jaxopt.projection.projection_simplex(jnp.array([3.0, 1, -1])).sum(),
                               1, rtol=1e-6)
    lasso = jaxopt.ProximalGradient(fun=lambda w, d: jnp.mean((d[0] @ w - d[1]) ** 2),
                                    prox=jaxopt.prox.prox_lasso, maxiter=500)
    assert float(jnp.abs(lasso.run(jnp.zeros(3), 10.0, (X, Y)).params).sum()) < 1e-3


def test_least_squares_and_bisection():
    fit = jaxopt.LevenbergMarquardt(residual_fun=lambda w, x, y: x @ w - y)
    np.testing.assert_allclose(fit.run(jnp.zeros(3), x=X, y=Y).params, [1, -2, 0.5], atol=1e-3)
    root = jaxopt.Bisection(optimality_fun=lambda x, a: x**3 - a, lower=0.0, upper=3.0)
    np.testing.assert_allclose(root.run(1.0, a=8.0).params, 2, rtol=1e-3)
