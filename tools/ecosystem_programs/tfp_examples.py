"""TensorFlow Probability on JAX after its documentation: distributions, bijectors, MCMC, joint
models, fitting."""
import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates import jax as tfp

tfb, tfd = tfp.bijectors, tfp.distributions


def test_distributions_are_sampled_mapped_and_differentiated():
    normal = tfd.Normal(loc=jnp.array([0.0, 2.0]), scale=jnp.array([1.0, 3.0]))
    draws = normal.sample(2000, seed=jax.random.key(0))
    assert draws.shape == (2000, 2)
    np.testing.assert_allclose(draws.mean(0), [0, 2], atol=0.25)
    values = jax.vmap(lambda mu: tfd.Normal(mu, 1.0).log_prob(1.0))(jnp.arange(3.0))
    np.testing.assert_allclose(values, -0.5 * np.log(2 * np.pi) - np.array([0.5, 0, 0.5]),
                               rtol=1e-5)
    slope = jax.jit(jax.grad(lambda mu: tfd.Normal(mu, 2.0).log_prob(1.0)))(0.0)
    np.testing.assert_allclose(slope, 0.25, rtol=1e-6)
    mixture = tfd.MixtureSameFamily(tfd.Categorical(probs=jnp.array([0.3, 0.7])),
                                    tfd.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.1, 0.5])))
    np.testing.assert_allclose(mixture.mean(), 0.4, rtol=1e-5)
    assert np.isfinite(mixture.log_prob(jnp.linspace(-2, 2, 5))).all()
    assert tfd.kl_divergence(normal, tfd.Normal(0.0, 1.0)).shape == (2,)


def test_bijectors_transform_distributions():
    chain = tfb.Chain([tfb.Shift(1.0), tfb.Scale(2.0), tfb.Exp()])
    x = jnp.array([0.1, 0.7])
    np.testing.assert_allclose(chain.inverse(chain.forward(x) + 0.0), x, rtol=1e-5)
    lognormal = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp())
    np.testing.assert_allclose(lognormal.log_prob(2.0), tfd.LogNormal(0.0, 1.0).log_prob(2.0),
                               rtol=1e-5)
    scale = tfb.FillScaleTriL()(jnp.arange(6.0))
    mvn = tfd.MultivariateNormalTriL(jnp.zeros(3), scale)
    assert mvn.sample(4, seed=jax.random.key(1)).shape == (4, 3)


def test_hamiltonian_monte_carlo():
    def target(x):
        return tfd.Normal(2.0, 0.5).log_prob(x)

    @jax.jit
    def run(key):
        kernel = tfp.mcmc.SimpleStepSizeAdaptation(
            tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.1, num_leapfrog_steps=3),
            num_adaptation_steps=150)
        return tfp.mcmc.sample_chain(2000, current_state=1.0, kernel=kernel,
                                     num_burnin_steps=200, trace_fn=None, seed=key)

    draws = run(jax.random.key(0))
    np.testing.assert_allclose([draws.mean(), draws.std()], [2.0, 0.5], atol=0.15)


def test_joint_models_and_nuts():
    key = jax.random.key(2)
    features = jax.random.normal(key, (40, 2))

    @tfd.JointDistributionCoroutineAutoBatched
    def model():
        weights = yield tfd.Sample(tfd.Normal(0.0, 1.0), 2, name="weights")
        yield tfd.Normal(features @ weights, 0.1, name="y")

    truth = jnp.array([1.0, -2.0])
    y = features @ truth

    @jax.jit
    def run(key):
        kernel = tfp.mcmc.NoUTurnSampler(lambda w: model.log_prob(w, y), 0.02)
        return tfp.mcmc.sample_chain(100, current_state=jnp.zeros(2), kernel=kernel,
                                     num_burnin_steps=100, trace_fn=None, seed=key)

    np.testing.assert_allclose(run(key).mean(0), truth, atol=0.1)
    assert model.sample(seed=key).y.shape == (40,)


def test_maximum_likelihood():
    data = tfd.Gamma(3.0, 2.0).sample(2000, seed=jax.random.key(3))

    def loss(parameters):
        a, b = jax.nn.softplus(parameters)
        return -tfd.Gamma(a, b).log_prob(data).mean()

    found = tfp.optimizer.lbfgs_minimize(jax.value_and_grad(loss), jnp.zeros(2), tolerance=1e-3)
    np.testing.assert_allclose(jax.nn.softplus(found.position), [3, 2], rtol=0.15)
    np.testing.assert_allclose(tfp.math.lbeta(2.0, 3.0), np.log(1 / 12), rtol=1e-5)
    np.testing.assert_allclose(tfp.stats.percentile(jnp.arange(11.0), 30.0), 3.0)
