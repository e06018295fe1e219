"""Small scientific programs: finance, a stencil, derivatives of models. Their bar is one for the
group, a geometric mean (registry.GROUP_BARS)."""

import models
import numpy as np
from registry import row

ROOT_HALF = 0.7071067811865476


def options(rng):
    n = 10**6
    return (
        50 + 100 * rng.random(n, dtype=np.float32),
        50 + 100 * rng.random(n, dtype=np.float32),
        0.2 + 2 * rng.random(n, dtype=np.float32),
        0.1 + 0.4 * rng.random(n, dtype=np.float32),
    )


def array_black_scholes(s):
    def cdf(x):
        return 0.5 * (1 + s.lax.erf(x * ROOT_HALF))

    def price(spot, strike, years, volatility):
        spread = volatility * s.np.sqrt(years)
        d1 = (s.np.log(spot / strike) + (0.02 + 0.5 * volatility**2) * years) / spread
        return spot * cdf(d1) - strike * s.np.exp(-0.02 * years) * cdf(d1 - spread)

    def total(*inputs):
        prices = price(*inputs)
        return s.np.sum(prices), prices

    def run(*inputs):
        (_, prices), gradients = s.value_and_grad(total, argnums=(0, 3), has_aux=True)(*inputs)
        return prices, gradients

    return s.jit(run)


def torch_black_scholes(torch):
    def cdf(x):
        return 0.5 * (1 + torch.erf(x * ROOT_HALF))

    def run(spot, strike, years, volatility):
        spot, volatility = spot.detach().requires_grad_(), volatility.detach().requires_grad_()
        spread = volatility * torch.sqrt(years)
        d1 = (torch.log(spot / strike) + (0.02 + 0.5 * volatility**2) * years) / spread
        prices = spot * cdf(d1) - strike * torch.exp(-0.02 * years) * cdf(d1 - spread)
        return prices.detach(), torch.autograd.grad(prices.sum(), (spot, volatility))

    return run


row(
    "black_scholes",
    "Black–Scholes 10⁶ with gradient",
    "science",
    inputs=options,
    array=array_black_scholes,
    others={"torch": torch_black_scholes},
    reads=16e6,
    writes=12e6,
)


def heat_inputs(rng):
    return (rng.random((512, 512), dtype=np.float32),)


def array_heat(s):
    def step(_, u):
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(middle + 0.2 * (around - 4 * middle))

    return s.jit(lambda u: s.lax.fori_loop(0, 1000, step, u))


def in_place_heat(_):
    def heat(u):
        u = u.copy() if isinstance(u, np.ndarray) else u.clone()
        for _ in range(1000):
            middle = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            u[1:-1, 1:-1] = middle + 0.2 * (around - 4 * middle)
        return u

    return heat


def numba_heat(numba):
    @numba.njit(parallel=True, fastmath=True)
    def heat(u):
        u, new = u.copy(), u.copy()
        c = np.float32(0.2)
        for _ in range(1000):
            for i in numba.prange(1, 511):
                for j in range(1, 511):
                    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                    new[i, j] = u[i, j] + c * (around - 4 * u[i, j])
            u, new = new, u
        return u

    return heat


row(
    "heat",
    "heat stencil 512² × 1,000",
    "science",
    inputs=heat_inputs,
    array=array_heat,
    others={"numpy": in_place_heat, "torch": in_place_heat, "numba": numba_heat},
    repeats=3,
    tolerance=1e-3,
)


def per_example_inputs(rng):
    return models.mlp_inputs(rng, width=64, batch=128, depth=3)


def array_per_example(s):
    loss = models.mlp_loss(s)
    one = s.grad(lambda layers, x, y: loss(layers, x[None], y[None]))
    return s.jit(s.vmap(one, in_axes=(None, 0, 0)))


row(
    "per_example",
    "per-example gradients, MLP 3×64, 128",
    "science",
    inputs=per_example_inputs,
    array=array_per_example,
    blas=True,
)


def hessian_inputs(rng):
    return (
        rng.standard_normal(200, dtype=np.float32) * np.float32(0.1),
        rng.standard_normal((200, 200), dtype=np.float32) / 16,
    )


def array_hessian(s):
    return s.jit(s.hessian(lambda x, a: s.np.sum(s.np.tanh(a @ x) ** 2) + s.np.sum(x**4)))


row(
    "hessian",
    "dense Hessian, 200",
    "science",
    inputs=hessian_inputs,
    array=array_hessian,
    blas=True,
    tolerance=1e-3,
)


def logistic_inputs(rng):
    return (
        rng.standard_normal(100, dtype=np.float32) / 10,
        rng.standard_normal((10_000, 100), dtype=np.float32),
        (rng.random(10_000) > 0.5).astype(np.float32),
    )


def array_logistic(s):
    def loss(w, x, y):
        logits = x @ w
        return s.np.mean(s.np.logaddexp(0.0, logits) - y * logits)

    return s.jit(lambda w, x, y: w - 0.1 * s.grad(loss)(w, x, y))


def numpy_logistic(np):
    def step(w, x, y):
        return w - np.float32(0.1) * (x.T @ (1 / (1 + np.exp(-(x @ w))) - y)) / len(y)

    return step


def torch_logistic(torch):
    return lambda w, x, y: w - 0.1 * (x.T @ (torch.sigmoid(x @ w) - y)) / len(y)


row(
    "logistic",
    "logistic regression step, 10,000×100",
    "science",
    inputs=logistic_inputs,
    array=array_logistic,
    others={"numpy": numpy_logistic, "torch": torch_logistic},
    blas=True,
)
