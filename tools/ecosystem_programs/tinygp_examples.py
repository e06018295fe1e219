"""tinygp after its documentation: a Gaussian process, its likelihood, gradient and prediction."""
import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess, kernels

X = jnp.linspace(0, 5, 30)
Y = jnp.sin(X)


def test_prediction_and_likelihood():
    gp = GaussianProcess(1.5 * kernels.ExpSquared(scale=1.0), X, diag=1e-3)
    likelihood, conditioned = gp.condition(Y, jnp.array([1.25, 2.5]))
    assert np.isfinite(likelihood)
    np.testing.assert_allclose(conditioned.loc, np.sin([1.25, 2.5]), atol=1e-2)


def test_gradient_of_the_likelihood():
    def loss(log_scale):
        kernel = kernels.Matern32(scale=jnp.exp(log_scale))
        return -GaussianProcess(kernel, X, diag=0.01).log_probability(Y)

    slope = jax.jit(jax.grad(loss))(0.3)
    numeric = (loss(0.3 + 1e-2) - loss(0.3 - 1e-2)) / 2e-2
    np.testing.assert_allclose(slope, numeric, rtol=5e-2)


def test_quasiseparable_kernels():
    fast = GaussianProcess(kernels.quasisep.Matern32(scale=1.0), X, diag=0.01)
    slow = GaussianProcess(kernels.Matern32(scale=1.0), X, diag=0.01)
    np.testing.assert_allclose(fast.log_probability(Y), slow.log_probability(Y), rtol=1e-2)
