"""OTT after its documentation: Sinkhorn's algorithm on point clouds."""
import jax
import numpy as np
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (20, 2))
Y = jax.random.normal(jax.random.key(1), (25, 2)) + 1


def cost(x, y):
    problem = linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1))
    return sinkhorn.Sinkhorn()(problem)


def test_marginals_of_the_transport():
    out = jax.jit(cost)(X, Y)
    assert bool(out.converged)
    np.testing.assert_allclose(out.matrix.sum(1), np.full(20, 1 / 20), atol=1e-3)
    np.testing.assert_allclose(out.matrix.sum(0), np.full(25, 1 / 25), atol=1e-3)


def test_gradient_points_to_the_target():
    slope = jax.grad(lambda x: cost(x, Y).reg_ot_cost)(X)
    assert slope.shape == X.shape and bool((slope.mean(0) < 0).all())
