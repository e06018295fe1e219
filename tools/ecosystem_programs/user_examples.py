"""Programs of the kinds that people write in JAX, without a library.

Each returns its results, and a test says what has to be true of them. `user_examples.py FILE`
saves all of them, so that those of two systems can be compared.
"""

import functools
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.optimize
import jax.scipy.sparse.linalg
import numpy as np
from jax import lax
from jax.experimental import sparse
from jax.experimental.jet import jet
from jax.experimental.ode import odeint
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.scipy.stats import norm


# ------------------------------------------------------------------ reinforcement learning
class CartState(NamedTuple):
    x: jax.Array
    v: jax.Array
    angle: jax.Array
    spin: jax.Array
    t: jax.Array


def cart_reset(key):
    x, v, angle, spin = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
    return CartState(x, v, angle, spin, jnp.int32(0))


def cart_observe(s):
    return jnp.stack([s.x, s.v, s.angle, s.spin])


def cart_step(key, s, action):
    force = jnp.where(action == 1, 10.0, -10.0)
    sin, cos = jnp.sin(s.angle), jnp.cos(s.angle)
    push = (force + 0.05 * s.spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    pull = push - 0.05 * turn * cos / 1.1
    new = CartState(s.x + 0.02 * s.v, s.v + 0.02 * pull, s.angle + 0.02 * s.spin,
                    s.spin + 0.02 * turn, s.t + 1)
    done = (jnp.abs(new.x) > 2.4) | (jnp.abs(new.angle) > 0.2095) | (new.t >= 200)
    new = jax.tree.map(lambda a, b: jnp.where(done, a, b), cart_reset(key), new)
    return cart_observe(new), new, jnp.float32(1.0), done


def init_mlp(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)}
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def mlp(params, x, act=jnp.tanh):
    for layer in params[:-1]:
        x = act(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def adam_init(params):
    return jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.int32(0)


def adam(params, grads, state, rate):
    m, v, n = state
    n = n + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    new = jax.tree.map(
        lambda p, m, v: p - rate * (m / (1 - 0.9**n)) / (jnp.sqrt(v / (1 - 0.999**n)) + 1e-8),
        params, m, v)
    return new, (m, v, n)


def ppo():
    """Proximal policy optimization of a pole on a cart, all of it in one jit."""
    envs, steps, updates, epochs, parts = 8, 32, 4, 2, 4

    def act(params, obs):
        return mlp(params["pi"], obs), mlp(params["v"], obs)[..., 0]

    def collect(carry, key):
        params, state, obs = carry
        k_act, k_step = jax.random.split(key)
        logits, value = act(params, obs)
        action = jax.random.categorical(k_act, logits)
        logp = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        new_obs, state, reward, done = jax.vmap(cart_step)(jax.random.split(k_step, envs), state,
                                                           action)
        return (params, state, new_obs), (obs, action, logp, value, reward, done)

    def advantages(values, rewards, dones, last):
        def back(carry, x):
            gae, next_value = carry
            value, reward, done = x
            delta = reward + 0.99 * next_value * (1 - done) - value
            gae = delta + 0.99 * 0.95 * (1 - done) * gae
            return (gae, value), gae

        return lax.scan(back, (jnp.zeros_like(last), last), (values, rewards, dones),
                        reverse=True, unroll=4)[1]

    def loss(params, batch):
        obs, action, logp, advantage, target = batch
        logits, value = act(params, obs)
        logs = jax.nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(logs, action[:, None], 1)[:, 0] - logp)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = jnp.clip(ratio, 0.8, 1.2) * advantage
        entropy = -(jnp.exp(logs) * logs).sum(-1).mean()
        return (-jnp.minimum(ratio * advantage, clipped).mean()
                + 0.5 * jnp.square(value - target).mean() - 0.01 * entropy)

    def update(carry, key):
        params, opt, state, obs = carry
        k_roll, k_perm = jax.random.split(key)
        (_, state, obs), rows = lax.scan(collect, (params, state, obs),
                                         jax.random.split(k_roll, steps))
        o, a, lp, v, r, d = rows
        adv = advantages(v, r, d.astype(jnp.float32), act(params, obs)[1])
        data = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (o, a, lp, adv, adv + v))

        def epoch(carry, key):
            order = jax.random.permutation(key, envs * steps)
            batches = jax.tree.map(lambda x: x[order].reshape(parts, -1, *x.shape[1:]), data)

            def part(carry, batch):
                params, opt = carry
                value, grads = jax.value_and_grad(loss)(params, batch)
                return adam(params, grads, opt, 1e-2), value

            return lax.scan(part, carry, batches)

        (params, opt), losses = lax.scan(epoch, (params, opt), jax.random.split(k_perm, epochs))
        return (params, opt, state, obs), (losses.mean(), d.sum())

    @jax.jit
    def train(key):
        k_pi, k_v, k_env, k_run = jax.random.split(key, 4)
        params = {"pi": init_mlp(k_pi, (4, 16, 2)), "v": init_mlp(k_v, (4, 16, 1))}
        state = jax.vmap(cart_reset)(jax.random.split(k_env, envs))
        obs = jax.vmap(cart_observe)(state)
        return lax.scan(update, (params, adam_init(params), state, obs),
                        jax.random.split(k_run, updates))[1]

    return train(jax.random.key(0))


def test_ppo():
    losses, ended = ppo()
    assert np.all(np.isfinite(losses)) and ended[-1] < ended[0]


# ------------------------------------------------------------------ generative models
def autoencoder():
    """A variational autoencoder of points on a ring, trained in a Python loop."""
    key = jax.random.PRNGKey(1)
    turn = jax.random.uniform(key, (256,), maxval=2 * jnp.pi)
    data = jnp.stack([jnp.cos(turn), jnp.sin(turn)], 1)

    def elbo(params, key, x):
        mean, logvar = jnp.split(mlp(params["enc"], x, jax.nn.relu), 2, axis=-1)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
        back = mlp(params["dec"], z, jax.nn.relu)
        rebuilt = norm.logpdf(x, back, 0.1).sum(-1)
        kl = -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1)
        return (rebuilt - kl).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, opt, key):
        value, grads = jax.value_and_grad(lambda p: -elbo(p, key, data))(params)
        params, opt = adam(params, grads, opt, 3e-3)
        return params, opt, value

    k_enc, k_dec, key = jax.random.split(key, 3)
    params = {"enc": init_mlp(k_enc, (2, 32, 4)), "dec": init_mlp(k_dec, (2, 32, 2))}
    opt, values = adam_init(params), []
    for i in range(60):
        params, opt, value = step(params, opt, jax.random.fold_in(key, i))
        values.append(value)
    return jnp.stack(values)


def test_autoencoder():
    values = autoencoder()
    assert values[-1] < 0.5 * values[0]


def flow():
    """A flow of affine coupling layers, fitted to two moons; its inverse and its Jacobian."""
    key = jax.random.key(2)
    angle = jnp.linspace(0, jnp.pi, 64)
    moons = jnp.concatenate([jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1),
                             jnp.stack([1 - jnp.cos(angle), 0.5 - jnp.sin(angle)], 1)])
    moons = moons + 0.05 * jax.random.normal(key, moons.shape)
    layers = [init_mlp(k, (1, 16, 2)) for k in jax.random.split(key, 4)]

    def forward(layers, x):
        log_det = 0.0
        for i, layer in enumerate(layers):
            a, b = x[i % 2], x[1 - i % 2]
            scale, shift = mlp(layer, a[None])
            scale = jnp.tanh(scale)
            pair = (a, b * jnp.exp(scale) + shift)
            x = jnp.stack(pair if i % 2 == 0 else pair[::-1])
            log_det = log_det + scale
        return x, log_det

    def inverse(layers, y):
        for i, layer in reversed(list(enumerate(layers))):
            a, b = y[i % 2], y[1 - i % 2]
            scale, shift = mlp(layer, a[None])
            pair = (a, (b - shift) * jnp.exp(-jnp.tanh(scale)))
            y = jnp.stack(pair if i % 2 == 0 else pair[::-1])
        return y

    def loss(layers):
        z, log_det = jax.vmap(forward, (None, 0))(layers, moons)
        return -(norm.logpdf(z).sum(-1) + log_det).mean()

    def step(i, carry):
        layers, opt, _ = carry
        value, grads = jax.value_and_grad(loss)(layers)
        return *adam(layers, grads, opt, 1e-2), value

    layers, _, value = jax.jit(lambda c: lax.fori_loop(0, 80, step, c))(
        (layers, adam_init(layers), jnp.float32(0)))
    z, log_det = forward(layers, moons[3])
    jacobian = jax.jacfwd(lambda x: forward(layers, x)[0])(moons[3])
    return value, inverse(layers, z) - moons[3], jnp.linalg.slogdet(jacobian)[1] - log_det


def test_flow():
    value, error, difference = flow()
    assert value < 2.2 and np.abs(error).max() < 1e-4 and abs(difference) < 1e-4


# ------------------------------------------------------------------ inference
def gaussian_process():
    """Regression with a kernel whose parameters are fitted by the marginal likelihood."""
    x = jnp.linspace(0, 6, 30)
    y = jnp.sin(x) + 0.1 * jax.random.normal(jax.random.key(3), x.shape)

    def kernel(p, a, b):
        return jnp.exp(p["size"]) * jnp.exp(-0.5 * ((a - b) / jnp.exp(p["length"])) ** 2)

    gram = lambda p, a, b: jax.vmap(lambda u: jax.vmap(lambda v: kernel(p, u, v))(b))(a)

    def minus_log_likelihood(p):
        k = gram(p, x, x) + (jnp.exp(p["noise"]) + 1e-4) * jnp.eye(x.size)
        chol = jnp.linalg.cholesky(k)
        white = solve_triangular(chol, y, lower=True)
        return 0.5 * white @ white + jnp.log(jnp.diag(chol)).sum()

    start = {"size": 0.0, "length": 0.0, "noise": -2.0}
    flat, unravel = ravel_pytree(start)
    found = jax.scipy.optimize.minimize(lambda f: minus_log_likelihood(unravel(f)), flat,
                                        method="BFGS", options={"maxiter": 20})
    p = unravel(found.x)
    new = jnp.linspace(0.1, 5.9, 7)
    chol = jnp.linalg.cholesky(gram(p, x, x) + (jnp.exp(p["noise"]) + 1e-4) * jnp.eye(x.size))
    mean = gram(p, new, x) @ cho_solve((chol, True), y)
    return found.fun, mean, mean - jnp.sin(new)


def test_gaussian_process():
    assert np.abs(gaussian_process()[2]).max() < 0.15


def hamiltonian():
    """Hamiltonian Monte Carlo of a correlated normal distribution, several chains."""
    precision = jnp.array([[2.0, -1.2], [-1.2, 1.5]])
    potential = lambda q: 0.5 * q @ precision @ q

    def leapfrog(q, p):
        def one(carry, _):
            q, p = carry
            p = p - 0.1 * jax.grad(potential)(q)
            q = q + 0.2 * p
            return (q, p - 0.1 * jax.grad(potential)(q)), None

        return lax.scan(one, (q, p), None, length=8)[0]

    def transition(q, key):
        k_p, k_u = jax.random.split(key)
        p = jax.random.normal(k_p, q.shape)
        new_q, new_p = leapfrog(q, p)
        gain = potential(q) + 0.5 * p @ p - potential(new_q) - 0.5 * new_p @ new_p
        accept = jnp.log(jax.random.uniform(k_u)) < gain
        q = lax.cond(accept, lambda: new_q, lambda: q)
        return q, (q, accept)

    chain = lambda key: lax.scan(transition, jnp.zeros(2), jax.random.split(key, 400))[1]
    draws, accepted = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(4), 4))
    return jnp.cov(draws[:, 50:].reshape(-1, 2).T) @ precision, accepted.mean()


def test_hamiltonian():
    product, accepted = hamiltonian()
    assert np.abs(product - np.eye(2)).max() < 0.2 and accepted > 0.8


# ------------------------------------------------------------------ physics
class Neighbors(NamedTuple):
    index: jax.Array
    overflow: jax.Array


def molecules():
    """Particles in a periodic box that attract and repel; lists of neighbors of a fixed size."""
    n, box, cutoff, room = 36, 6.6, 2.5, 32
    shift = lambda a, b: (lambda d: d - box * jnp.round(d / box))(a - b)

    def neighbors(r):
        d2 = jnp.sum(shift(r[:, None], r[None]) ** 2, -1)
        near = (d2 < (cutoff + 0.3) ** 2) & ~jnp.eye(n, dtype=bool)
        order = jnp.argsort(~near, axis=1, stable=True)[:, :room]
        index = jnp.where(jnp.take_along_axis(near, order, 1), order, n)
        return Neighbors(index, jnp.max(near.sum(1)) > room)

    def energy(r, near):
        there = near.index < n
        other = r.at[near.index].get(mode="fill", fill_value=0.0)
        d2 = jnp.where(there, jnp.sum(shift(r[:, None], other) ** 2, -1), 1.0)
        sixth = 1.0 / d2**3
        cut = 1.0 / cutoff**6
        pair = 4 * (sixth**2 - sixth) - 4 * (cut**2 - cut)
        return 0.5 * jnp.sum(jnp.where(there & (d2 < cutoff**2), pair, 0.0))

    force = jax.grad(lambda r, near: -energy(r, near))

    def step(carry, _):
        r, v, near = carry
        v = v + 0.5 * 0.002 * force(r, near)
        r = jnp.mod(r + 0.002 * v, box)
        v = v + 0.5 * 0.002 * force(r, near)
        return (r, v, near), energy(r, near) + 0.5 * jnp.sum(v**2)

    def block(carry, _):
        r, v, _ = carry
        near = neighbors(r)
        carry, total = lax.scan(step, (r, v, near), None, length=10)
        return carry, (total, near.overflow)

    grid = jnp.stack(jnp.meshgrid(*[jnp.arange(6) * 1.1] * 2), -1).reshape(-1, 2)
    v = 0.3 * jax.random.normal(jax.random.key(5), grid.shape)
    start = (grid, v - v.mean(0), neighbors(grid))
    (r, _, _), (total, overflow) = jax.jit(
        lambda c: lax.scan(block, c, None, length=10))(start)
    return r, total.reshape(-1), overflow


def test_molecules():
    _, total, overflow = molecules()
    assert np.ptp(total) < 1e-2 * abs(total[0]) and not overflow.any()


def heat():
    """A network that solves a heat equation by its residual: forward and second derivatives."""
    params = init_mlp(jax.random.key(6), (2, 16, 16, 1))
    u = lambda p, x, t: mlp(p, jnp.stack([x, t]))[0] * x * (1 - x) * t + jnp.sin(jnp.pi * x)

    def residual(p, x, t):
        return jax.jacfwd(u, 2)(p, x, t) - 0.1 * jax.hessian(u, 1)(p, x, t)

    points = jax.random.uniform(jax.random.key(7), (64, 2))

    @jax.jit
    def step(p, opt):
        value, grads = jax.value_and_grad(
            lambda p: jnp.mean(jax.vmap(residual, (None, 0, 0))(p, *points.T) ** 2))(p)
        return *adam(p, grads, opt, 1e-2), value

    opt, values = adam_init(params), []
    for _ in range(100):
        params, opt, value = step(params, opt)
        values.append(value)
    exact = jnp.exp(-0.1 * jnp.pi**2 * 0.5) * jnp.sin(jnp.pi * 0.5)
    return jnp.stack(values), u(params, 0.5, 0.5), exact


def test_heat():
    values, found, exact = heat()
    assert values[-1] < 0.05 * values[0] and abs(found - exact) < 0.1


def neural_ode():
    """A field fitted to a spiral through odeint."""
    times = jnp.linspace(0.0, 1.5, 8)
    spiral = jnp.array([[-0.1, 2.0], [-2.0, -0.1]])
    true = odeint(lambda y, t: spiral @ y, jnp.array([2.0, 0.0]), times, rtol=1e-6, atol=1e-6)

    def loss(field):
        path = odeint(lambda y, t, a: a @ y, true[0], times, field, rtol=1e-5, atol=1e-5)
        return jnp.mean((path - true) ** 2)

    field, step = jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jax.jit(jax.value_and_grad(loss))
    values = []
    for _ in range(30):
        value, slope = step(field)
        field = field - 0.1 * slope
        values.append(value)
    return jnp.stack(values), field


def test_neural_ode():
    values, _ = neural_ode()
    assert values[-1] < 0.1 * values[0]


def taylor():
    """A step of a Taylor method: y' = y², whose derivatives jet finds one after the other."""
    f, y0 = lambda y: y * y, jnp.float32(0.5)
    series = [f(y0)]
    for _ in range(5):
        _, rest = jet(f, (y0,), (series,))
        series = [series[0], *rest]
    step, total, factor = 0.3, y0, 1.0
    for k, c in enumerate(series, 1):
        factor = factor * step / k
        total = total + c * factor
    return total, 1 / (1 / y0 - step)


def test_taylor():
    found, exact = taylor()
    assert abs(found - exact) < 1e-4


# ------------------------------------------------------------------ what the system offers
def fixed_point():
    """A custom_vjp by the implicit function theorem, and a custom_jvp."""
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def solve(f, a, x):
        return lax.while_loop(lambda c: jnp.abs(c[0] - c[1]) > 1e-6,
                              lambda c: (c[1], f(a, c[1])), (x, f(a, x)))[1]

    def forward(f, a, x):
        found = solve(f, a, x)
        return found, (a, found)

    def backward(f, saved, ct):
        a, found = saved
        _, by_a = jax.vjp(lambda a: f(a, found), a)
        _, by_x = jax.vjp(lambda x: f(a, x), found)
        w = lax.fori_loop(0, 50, lambda i, w: ct + by_x(w)[0], ct)
        return by_a(w)[0], jnp.zeros_like(found)

    solve.defvjp(forward, backward)

    @jax.custom_jvp
    def safe_log(x):
        return jnp.log(jnp.maximum(x, 1e-3))

    @safe_log.defjvp
    def _(primals, tangents):
        return safe_log(primals[0]), tangents[0] / jnp.maximum(primals[0], 1e-3)

    root = lambda a: solve(lambda a, x: 0.5 * (x + a / x), a, a)
    return (jax.vmap(jax.value_and_grad(root))(jnp.array([2.0, 9.0])),
            jax.vmap(jax.grad(safe_log))(jnp.array([0.0, 2.0])))


def test_fixed_point():
    (roots, slopes), logs = fixed_point()
    np.testing.assert_allclose(roots, np.sqrt([2.0, 9.0]), rtol=1e-5)
    np.testing.assert_allclose(slopes, 0.5 / np.sqrt([2.0, 9.0]), rtol=1e-4)
    np.testing.assert_allclose(logs, [1000.0, 0.5], rtol=1e-5)


def callbacks():
    """NumPy inside of a jitted function, and values that are told on the way."""
    told = []

    def erode(x):
        return np.minimum(x, np.roll(x, 1)).astype(x.dtype)

    @jax.jit
    def run(x):
        y = jax.pure_callback(erode, jax.ShapeDtypeStruct(x.shape, x.dtype), x,
                              vmap_method="sequential")
        jax.debug.callback(lambda v: told.append(float(v)), y.sum())
        return jax.experimental.io_callback(lambda v: v + 1, jax.ShapeDtypeStruct((), y.dtype),
                                            y.max(), ordered=True), y

    top, y = run(jnp.arange(5.0))
    many = jax.vmap(lambda x: jax.pure_callback(
        erode, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims"))(
            jnp.arange(4.0)[:, None] * jnp.arange(3.0))
    jax.effects_barrier()
    return top, y, many, jnp.array(told)


def test_callbacks():
    top, y, _, told = callbacks()
    assert top == 4.0 and told.tolist() == [float(y.sum())]


def devices():
    """pmap over the devices there are, with a mean over them."""
    n = jax.local_device_count()
    step = jax.pmap(lambda w, x: w - 0.1 * lax.pmean(jax.grad(lambda w: (x @ w).sum())(w), "d"),
                    axis_name="d", in_axes=(None, 0))
    return step(jnp.ones(3), jnp.ones((n, 4, 3)))[0]


def test_devices():
    np.testing.assert_allclose(devices(), 0.6, rtol=1e-6)


def remat():
    """A deep network whose blocks are recomputed, with policies, scanned over its layers."""
    keys = jax.random.split(jax.random.key(8), 6)
    weights = jax.vmap(lambda k: jax.random.normal(k, (8, 8)) / 3)(keys)

    def block(x, w):
        return jnp.sin(x @ w) + x, None

    def loss(weights, x, body):
        return jnp.sum(lax.scan(body, x, weights)[0] ** 2)

    x = jnp.linspace(-1.0, 1.0, 8)
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    return [jax.jit(jax.grad(functools.partial(loss, body=body)))(weights, x) for body in (
        block, jax.checkpoint(block), jax.checkpoint(block, policy=policy, prevent_cse=False))]


def test_remat():
    plain, *others = remat()
    for other in others:
        np.testing.assert_allclose(other, plain, rtol=1e-5, atol=1e-6)


def style():
    """Gradients with respect to an image through convolutions, updated by tree_map."""
    key = jax.random.key(9)
    filters = jax.random.normal(key, (3, 3, 3, 8)) / 5

    def features(image):
        x = lax.conv_general_dilated(image[None], filters, (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1),
                                 "VALID")[0]

    def gram(f):
        f = f.reshape(-1, f.shape[-1])
        return f.T @ f / f.size

    content, model = jax.random.uniform(key, (2, 16, 16, 3))
    target = {"content": features(content), "style": gram(features(model))}

    @jax.jit
    def step(state):
        def loss(image):
            f = features(image["pixels"])
            return (jnp.mean((f - target["content"]) ** 2)
                    + 10 * jnp.sum((gram(f) - target["style"]) ** 2))

        value, grads = jax.value_and_grad(loss)(state)
        return jax.tree_util.tree_map(lambda p, g: jnp.clip(p - 0.5 * g, 0, 1), state, grads), value

    state, values = {"pixels": content}, []
    for _ in range(20):
        state, value = step(state)
        values.append(value)
    return jnp.stack(values), state["pixels"]


def test_style():
    values, _ = style()
    assert values[-1] < values[0]


def sparse_solver():
    """Conjugate gradients on a sparse Laplacian, and the gradient with respect to its entries."""
    n = 20
    dense = 2.1 * jnp.eye(n) - jnp.eye(n, k=1) - jnp.eye(n, k=-1)
    matrix = sparse.BCOO.fromdense(dense)
    b = jnp.sin(jnp.arange(n))
    x, _ = jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b, tol=1e-8)
    energy = lambda data: b @ (sparse.BCOO((data, matrix.indices), shape=(n, n)) @ x)
    scaled = sparse.sparsify(lambda m, v: 2.0 * (m @ v) + v)(matrix, x)
    return x, jax.jit(jax.grad(energy))(matrix.data), scaled, dense @ x - b


def test_sparse_solver():
    x, slope, scaled, left = sparse_solver()
    assert np.abs(left).max() < 1e-4 and slope.shape == (58,)


PROGRAMS = (ppo, autoencoder, flow, gaussian_process, hamiltonian, molecules, heat, neural_ode,
            taylor, fixed_point, callbacks, devices, remat, style, sparse_solver)

if __name__ == "__main__":
    saved = {}
    for program in PROGRAMS:
        began = time.perf_counter()
        leaves = jax.tree.leaves(program())
        saved |= {f"{program.__name__}{i}": np.asarray(x) for i, x in enumerate(leaves)}
        print(f"{program.__name__}: {time.perf_counter() - began:.2f} s", flush=True)
    np.savez(sys.argv[1], **saved)
