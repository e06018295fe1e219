"""Brax after its documentation: an environment that is stepped under jit and vmap."""
import jax
import jax.numpy as jnp
from brax import envs


def test_an_environment_moves():
    env = envs.get_environment("inverted_pendulum", backend="generalized")
    state = jax.jit(env.reset)(jax.random.PRNGKey(0))
    step = jax.jit(env.step)
    for _ in range(5):
        state = step(state, jnp.ones(env.action_size) * 0.1)
    assert state.obs.shape == (env.observation_size,) and bool(jnp.isfinite(state.obs).all())


def test_a_batch_of_environments():
    env = envs.get_environment("fast")
    states = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), 4))
    states = jax.vmap(env.step)(states, jnp.zeros((4, env.action_size)))
    assert states.reward.shape == (4,)
