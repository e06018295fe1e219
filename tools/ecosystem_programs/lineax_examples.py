"""Lineax after its documentation: solvers, operators, gradients, least squares."""
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

key = jax.random.key(0)
MATRIX = jax.random.normal(key, (4, 4)) + 4 * jnp.eye(4)
VECTOR = jnp.arange(1.0, 5)


def test_direct_and_iterative_solvers():
    for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=True),
                   lx.GMRES(1e-5, 1e-5)):
        x = lx.linear_solve(lx.MatrixLinearOperator(MATRIX), VECTOR, solver).value
        np.testing.assert_allclose(MATRIX @ x, VECTOR, rtol=2e-3, atol=2e-3)


def test_positive_definite_operators():
    spd = MATRIX @ MATRIX.T
    operator = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
    for solver in (lx.Cholesky(), lx.CG(1e-6, 1e-6)):
        x = lx.linear_solve(operator, VECTOR, solver).value
        np.testing.assert_allclose(spd @ x, VECTOR, rtol=1e-3, atol=1e-3)


def test_structured_operators():
    diagonal = lx.DiagonalLinearOperator(jnp.array([1.0, 2, 4, 8]))
    np.testing.assert_allclose(lx.linear_solve(diagonal, VECTOR).value, VECTOR / diagonal.diagonal)
    tri = lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3))
    x = lx.linear_solve(tri, VECTOR, lx.Tridiagonal()).value
    np.testing.assert_allclose(tri.as_matrix() @ x, VECTOR, rtol=1e-4)


def test_least_squares_and_gradients():
    tall = jax.random.normal(key, (6, 3))
    b = jnp.arange(6.0)
    x = lx.linear_solve(lx.MatrixLinearOperator(tall), b, lx.QR()).value
    np.testing.assert_allclose(x, np.linalg.lstsq(np.asarray(tall), np.asarray(b), rcond=None)[0],
                               rtol=1e-3)
    solve = lambda m: lx.linear_solve(lx.MatrixLinearOperator(m), VECTOR).value.sum()
    np.testing.assert_allclose(jax.grad(solve)(MATRIX),
                               jax.grad(lambda m: jnp.linalg.solve(m, VECTOR).sum())(MATRIX),
                               rtol=1e-3, atol=1e-5)


def test_functions_as_operators():
    operator = lx.FunctionLinearOperator(lambda x: MATRIX @ x, jax.eval_shape(lambda: VECTOR))
    np.testing.assert_allclose(operator.as_matrix(), MATRIX, rtol=1e-5)
    jac = lx.JacobianLinearOperator(lambda x, _: jnp.sin(x), VECTOR)
    np.testing.assert_allclose(jac.mv(VECTOR), jnp.cos(VECTOR) * VECTOR, rtol=1e-5)
