"""Libraries beside those with a row of their own, each after its documentation: state-space models,
evolution, Lie groups, molecules, environments, replay buffers, pictures, quadrature."""
import dm_pix
import dynamax.hidden_markov_model as hidden_markov_model
import dynamax.linear_gaussian_ssm as linear_gaussian_ssm
import evosax.algorithms
import flashbax
import gymnax
import interpax
import jax
import jax.numpy as jnp
import jax_md
import jaxlie
import numpy as np
import quadax
from jax import random


def test_dynamax_fits_a_hidden_markov_model():
    model = hidden_markov_model.GaussianHMM(3, 2)
    truth, _ = model.initialize(random.PRNGKey(0))
    _, seen = model.sample(truth, random.PRNGKey(1), 200)
    params, props = model.initialize(random.PRNGKey(2), method="prior")
    params, likelihoods = model.fit_em(params, props, seen[None], num_iters=8, verbose=False)
    assert np.all(np.diff(likelihoods) > -1e-2)
    posterior = model.smoother(params, seen)
    np.testing.assert_allclose(posterior.smoothed_probs.sum(1), 1, rtol=1e-4)
    assert model.most_likely_states(params, seen).shape == (200,)
    assert np.isfinite(model.fit_sgd(params, props, seen[None], num_epochs=5)[1]).all()


def test_dynamax_filters_and_differentiates_a_linear_model():
    model = linear_gaussian_ssm.LinearGaussianSSM(2, 3)
    params, props = model.initialize(random.PRNGKey(0))
    _, seen = model.sample(params, random.PRNGKey(1), 50)
    slopes = jax.grad(lambda p: model.marginal_log_prob(p, seen))(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    likelihoods = model.fit_em(params, props, seen, num_iters=5, verbose=False)[1]
    assert likelihoods[-1] >= likelihoods[0]


def test_evosax_finds_a_minimum():
    search = evosax.algorithms.CMA_ES(population_size=16, solution=jnp.zeros(4))
    params = search.default_params

    def step(state, key):
        asking, telling = random.split(key)
        population, state = search.ask(asking, state, params)
        fitness = jnp.sum((population - 0.5) ** 2, 1)
        return search.tell(telling, population, fitness, state, params)[0], fitness.min()

    state = search.init(random.key(0), jnp.ones(4), params)
    best = jax.jit(lambda s, keys: jax.lax.scan(step, s, keys)[1])(
        state, random.split(random.key(1), 60))
    assert best[-1] < 1e-2


def test_jaxlie_descends_on_a_manifold():
    turn = jaxlie.SO3.from_x_radians(0.3)
    pose = jaxlie.SE3.from_rotation_and_translation(turn, jnp.array([1.0, 2, 3]))
    np.testing.assert_allclose(jaxlie.SE3.exp(pose.log()).as_matrix(), pose.as_matrix(), atol=1e-5)
    np.testing.assert_allclose((pose @ pose.inverse()).as_matrix(), np.eye(4), atol=1e-5)

    def loss(rotation):
        return jnp.sum((rotation.apply(jnp.array([1.0, 0, 0])) - jnp.array([0.0, 1, 0])) ** 2)

    step = jax.jit(lambda r: jaxlie.manifold.rplus(r, -0.2 * jaxlie.manifold.grad(loss)(r)))
    rotation = jaxlie.SO3.from_z_radians(0.1)
    for _ in range(60):
        rotation = step(rotation)
    assert loss(rotation) < 1e-3


def test_jax_md_minimizes_and_simulates():
    displacement, shift = jax_md.space.periodic(8.0)
    places = random.uniform(random.PRNGKey(0), (64, 2)) * 8
    energy = jax_md.energy.soft_sphere_pair(displacement)
    begin, step = jax_md.minimize.fire_descent(energy, shift)
    state = jax.lax.fori_loop(0, 100, lambda i, s: step(s), begin(places))
    assert energy(state.position) < energy(places)
    begin, move = jax_md.simulate.nvt_nose_hoover(energy, shift, 1e-3, 0.1)
    state = begin(random.PRNGKey(1), state.position, mass=1.0)
    state = jax.jit(lambda s: jax.lax.fori_loop(0, 50, lambda i, s: move(s), s))(state)
    assert np.isfinite(state.position).all()
    neighbors, near = jax_md.energy.lennard_jones_neighbor_list(displacement, 8.0)
    found = neighbors.allocate(state.position).update(state.position)
    assert jax.jit(jax.grad(near))(state.position, found).shape == (64, 2)
    assert not found.did_buffer_overflow


def test_gymnax_environments_run_under_vmap_and_scan():
    for name in ("CartPole-v1", "Pendulum-v1", "Breakout-MinAtar", "Catch-bsuite"):
        environment, params = gymnax.make(name)

        def roll(key, environment=environment, params=params):
            def step(state, key):
                action = environment.action_space(params).sample(key)
                _, state, reward, *_ = environment.step(key, state, action, params)
                return state, reward

            start = environment.reset(key, params)[1]
            return jax.lax.scan(step, start, random.split(key, 30))[1]

        assert jax.jit(jax.vmap(roll))(random.split(random.key(0), 5)).shape == (5, 30)


def test_flashbax_buffers():
    buffer = flashbax.make_item_buffer(max_length=64, min_length=2, sample_batch_size=8)
    state = buffer.init({"seen": jnp.zeros(2), "reward": jnp.zeros(())})
    add = jax.jit(buffer.add, donate_argnums=0)
    for i in range(20):
        state = add(state, {"seen": jnp.ones(2) * i, "reward": jnp.float32(i)})
    drawn = jax.jit(buffer.sample)(state, random.key(0)).experience
    np.testing.assert_allclose(drawn["seen"][:, 0], drawn["reward"])
    buffer = flashbax.make_prioritised_flat_buffer(64, 2, 4)
    state = buffer.init(jnp.zeros(2))
    for i in range(10):
        state = buffer.add(state, jnp.ones(2) * i)
    drawn = buffer.sample(state, random.key(0))
    buffer.set_priorities(state, drawn.indices, jnp.ones(4) * 3)
    assert drawn.experience.first.shape == (4, 2)


def test_pix_transforms_pictures():
    picture = random.uniform(random.key(0), (16, 16, 3))
    np.testing.assert_allclose(dm_pix.hsv_to_rgb(dm_pix.rgb_to_hsv(picture)), picture, atol=1e-5)
    assert dm_pix.gaussian_blur(picture, 1.0, 5).shape == picture.shape
    assert dm_pix.random_crop(random.key(1), picture, (8, 8, 3)).shape == (8, 8, 3)
    assert abs(float(dm_pix.ssim(picture, picture)) - 1) < 1e-5
    assert dm_pix.affine_transform(picture, jnp.eye(3)).shape == picture.shape


def test_quadrature_and_interpolation():
    area, _ = quadax.quadgk(lambda t: t * jnp.log(1 + t), [0, 1])
    np.testing.assert_allclose(area, 0.25, rtol=1e-5)
    slope = jax.grad(lambda a: quadax.quadgk(lambda t: jnp.exp(-a * t * t), [0, jnp.inf])[0])(1.0)
    np.testing.assert_allclose(slope, -np.sqrt(np.pi) / 4, rtol=1e-3)
    x = jnp.linspace(0, 6, 30)
    wave = interpax.Interpolator1D(x, jnp.sin(x), method="cubic2")
    np.testing.assert_allclose(wave(2.2), np.sin(2.2), atol=1e-3)
