"""flowjax after its documentation: distributions, bijections, a flow that is fitted."""
import jax
import jax.numpy as jnp
import numpy as np
from flowjax.bijections import Affine
from flowjax.distributions import Normal, Transformed
from flowjax.flows import masked_autoregressive_flow
from flowjax.train import fit_to_data


def test_transformed_distributions():
    dist = Transformed(Normal(jnp.zeros(2)), Affine(jnp.ones(2), 2 * jnp.ones(2)))
    x = jnp.array([1.0, 3.0])
    expected = -0.5 * ((x - 1) / 2) ** 2 - np.log(2) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(dist.log_prob(x), expected.sum(), rtol=1e-5)


def test_fitting_a_flow():
    x = jax.random.normal(jax.random.key(0), (300, 2)) * jnp.array([1.0, 0.5]) + 1
    flow = masked_autoregressive_flow(jax.random.key(1), base_dist=Normal(jnp.zeros(2)),
                                      flow_layers=2)
    fitted, losses = fit_to_data(jax.random.key(2), flow, x, max_epochs=5, show_progress=False)
    assert losses["train"][-1] < losses["train"][0]
    assert fitted.sample(jax.random.key(3), (10,)).shape == (10, 2)
