"""GPJax after its documentation: a conjugate Gaussian process and its prediction."""
import jax

jax.config.update("jax_enable_x64", True)

import gpjax as gpx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402


def test_prediction():
    x = jnp.linspace(0, 5, 30).reshape(-1, 1)
    y = jnp.sin(x)
    data = gpx.Dataset(X=x, y=y)
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
    posterior = prior * gpx.likelihoods.Gaussian()
    told = posterior.predict(jnp.array([[1.25], [2.5]]), train_data=data)
    mean = told.mean() if callable(told.mean) else told.mean
    assert np.abs(np.asarray(mean) - np.sin([1.25, 2.5])).max() < 0.5
