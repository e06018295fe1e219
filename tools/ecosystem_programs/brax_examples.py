"""Brax after its documentation: an environment that is stepped under jit and vmap, a policy that
is trained."""
import jax
import jax.numpy as jnp
import pytest
from brax import envs
from brax.training.agents.ppo import train as ppo


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


@pytest.mark.skipif(
    not hasattr(jax, "device_put_replicated"), reason="brax 0.14.2 needs what JAX removed"
)
def test_policies_are_trained():
    seen = []
    make, params, _ = ppo.train(
        environment=envs.get_environment("fast"), num_timesteps=512, episode_length=32,
        num_envs=8, unroll_length=4, batch_size=8, num_minibatches=2, num_updates_per_batch=1,
        num_evals=2, num_eval_envs=8, normalize_observations=True, seed=1,
        progress_fn=lambda steps, metrics: seen.append(metrics["eval/episode_reward"]))  # fmt: skip
    assert len(seen) == 2
    act = jax.jit(make(params, deterministic=True))
    assert act(jnp.ones((3, 2)), jax.random.PRNGKey(0))[0].shape == (3, 1)
