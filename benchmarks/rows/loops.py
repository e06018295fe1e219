"""Control flow: loops with scalar and small carries, and their gradients."""

import numpy as np
from registry import row

STEPS = 10**6


def array_while(s):
    def run(x):
        def body(carry):
            i, x = carry
            return i + 1, x * 0.999 + s.np.sin(x) * 0.001 + 0.01

        return s.lax.while_loop(lambda carry: carry[0] < STEPS, body, (0, x))[1]

    return s.jit(run)


def numba_while(numba):
    @numba.njit
    def run(x):
        y = x[()]
        for _ in range(STEPS):
            y = y * np.float32(0.999) + np.sin(y) * np.float32(0.001) + np.float32(0.01)
        return y

    return run


row(
    "scalar_while",
    "scalar while, 10⁶ iterations",
    "loops",
    inputs=lambda rng: (np.array(rng.random(), np.float32),),
    array=array_while,
    others={"numba": numba_while},
    bars={"jax": 0.8},
    tolerance=1e-3,
)


def rnn_inputs(rng):
    return (
        rng.standard_normal((16, 16), dtype=np.float32) / 8,
        rng.standard_normal((16, 16), dtype=np.float32) / 8,
        rng.standard_normal((10_000, 16), dtype=np.float32),
    )


def array_rnn(s):
    def run(w, u, xs):
        def step(h, x):
            h = s.np.tanh(w @ h + u @ x)
            return h, h

        return s.lax.scan(step, s.np.zeros(16, "float32"), xs)

    return s.jit(run)


def numba_rnn(numba):
    @numba.njit(fastmath=True)
    def run(w, u, xs):
        h = np.zeros(16, np.float32)
        hs = np.empty_like(xs)
        for t in range(xs.shape[0]):
            for i in range(16):
                total = np.float32(0)
                for j in range(16):
                    total += w[i, j] * h[j] + u[i, j] * xs[t, j]
                hs[t, i] = np.tanh(total)
            h[:] = hs[t]
        return h, hs

    return run


row(
    "rnn_scan",
    "RNN scan, 10⁴ steps of 16",
    "loops",
    inputs=rnn_inputs,
    array=array_rnn,
    others={"numba": numba_rnn},
    bars={"jax": 0.5},
    tolerance=1e-3,
)

BODIES = 5


def nbody_inputs(rng):
    return (
        rng.standard_normal((BODIES, 3), dtype=np.float32) * 5,
        rng.standard_normal((BODIES, 3), dtype=np.float32) * 0.1,
        rng.random(BODIES, dtype=np.float32) + 0.5,
    )


def array_nbody(s):
    def run(position, velocity, mass):
        def step(_, state):
            position, velocity = state
            apart = position[None] - position[:, None]
            square = (apart**2).sum(-1) + 1e-2
            force = (mass[None, :, None] * apart) * (square**-1.5)[..., None]
            velocity = velocity + 1e-3 * force.sum(1)
            return position + 1e-3 * velocity, velocity

        return s.lax.fori_loop(0, 1000, step, (position, velocity))

    return s.jit(run)


def numba_nbody(numba):
    @numba.njit(fastmath=True)
    def run(position, velocity, mass):
        position, velocity = position.copy(), velocity.copy()
        small = np.float32(1e-3)
        for _ in range(1000):
            for i in range(BODIES):
                for j in range(BODIES):
                    dx = position[j, 0] - position[i, 0]
                    dy = position[j, 1] - position[i, 1]
                    dz = position[j, 2] - position[i, 2]
                    square = dx * dx + dy * dy + dz * dz + np.float32(1e-2)
                    pull = small * mass[j] / (square * np.sqrt(square))
                    velocity[i, 0] += pull * dx
                    velocity[i, 1] += pull * dy
                    velocity[i, 2] += pull * dz
            for i in range(BODIES):
                for k in range(3):
                    position[i, k] += small * velocity[i, k]
        return position, velocity

    return run


row(
    "nbody",
    "N-body (5), 1,000 steps",
    "loops",
    inputs=nbody_inputs,
    array=array_nbody,
    others={"numba": numba_nbody},
    bars={"jax": 0.5},
    tolerance=5e-3,
)


def carries(s):
    """A scan of 614 steps with 16 scalar carries, and its scalar outcome."""

    def loss(xs, scales):
        def step(state, x):
            turned = state[1:] + state[:1]
            state = tuple(
                s.np.tanh(0.5 * a + 0.3 * b + scales[i] * x)
                for i, (a, b) in enumerate(zip(state, turned))
            )
            return state, state[0]

        start = tuple(0.1 * i + xs[0] * 0 for i in range(16))
        state, out = s.lax.scan(step, start, xs)
        return s.np.sum(out) + sum(state)

    return loss


def carries_inputs(rng):
    return rng.standard_normal(614, dtype=np.float32), rng.random(16, dtype=np.float32)


row(
    "scan_forward",
    "614-step scan with 16 scalar carries",
    "loops",
    inputs=carries_inputs,
    array=lambda s: s.jit(carries(s)),
    tolerance=1e-3,
)
row(
    "scan_grad",
    "gradient of that scan",
    "loops",
    inputs=carries_inputs,
    array=lambda s: s.jit(s.grad(carries(s), argnums=(0, 1))),
    bars={"row:scan_forward": 5.0},
    tolerance=1e-3,
)
