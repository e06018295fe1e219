"""Long scientific programs: hundreds of elementwise operations on grids, their gradients, and
stencils with tridiagonal solves. What decides their time is how little of them passes memory.
Their bar is one for the group, a geometric mean (registry.GROUP_BARS)."""

import numpy as np
from registry import row
from scalar_loops import loop

COEFFICIENTS = [float(c) for c in np.random.default_rng(7).uniform(-1, 1, 100)]
LONGITUDES, LATITUDES, DEPTHS = 204, 204, 26


def ocean(dtype):
    """Salinity, temperature, and the pressure of each depth, which all columns share."""

    def inputs(rng):
        shape = LONGITUDES, LATITUDES, DEPTHS
        salinity, temperature = 0.8 * rng.random(shape), rng.random(shape)
        return (
            salinity.astype(dtype),
            temperature.astype(dtype),
            (4 * rng.random((1, 1, DEPTHS))).astype(dtype),
        )

    return inputs


def state(np, salinity, temperature, pressure):
    """A rational equation of state with some 200 operations: density and what it adds up to."""
    s, t, p = salinity, temperature, pressure
    left = iter(COEFFICIENTS)

    def polynomial(x, degree):
        value = next(left)
        for _ in range(degree):
            value = value * x + next(left)
        return value

    root = np.sqrt(s)
    a = polynomial(t, 4) + s * (polynomial(t, 5) + root * polynomial(t, 4))
    a = a + p * (polynomial(t, 3) + s * (polynomial(t, 3) + p * polynomial(t, 2)))
    da = polynomial(t, 3) + s * (polynomial(t, 3) + root * polynomial(t, 2))
    da = da + p * (polynomial(t, 2) + s * polynomial(t, 2) + p * polynomial(t, 2))
    b = 2.0 + polynomial(t, 3) + s * polynomial(t, 3) + root * s * polynomial(t, 2)
    b = b + p * (polynomial(t, 2) + p * t * polynomial(t, 2))
    db = polynomial(t, 1) + s * polynomial(t, 1) + p * p * t
    width = np.sqrt(np.abs(b * b - a) + 1.0)
    logarithm = np.log((b + width) / (np.abs(b - width) + 0.1) + 1.5)
    part = (da - b * db) / (width * 2.0 + 0.3)
    u = logarithm * part + np.log(1.0 + np.abs(p * (2.0 * b + a * p))) * db
    v = (part * b - da) / (1.0 + b * b) + p * (p * a - b * u)
    w = u * v - part * logarithm + np.exp(-np.abs(u) * 0.01)
    return w * 10.0 - t * (da + p * (db + p * (a - b) * 1e-2))


def array_state(s):
    return s.jit(lambda *fields: state(s.np, *fields))


def array_state_gradient(s):
    return s.jit(s.grad(lambda *fields: s.np.mean(state(s.np, *fields)), argnums=(0, 1, 2)))


def loops_state(bits, gradient):
    return loop(state, ["i, j, k", "i, j, k", "0, 0, k"], 3, gradient, f"float{bits}")


for bits in (32, 64):
    options = {"inputs": ocean(f"float{bits}"), "x64": bits == 64, "tolerance": 1e-3}
    row(
        f"ocean_state_{bits}", f"equation of state, {bits} bits", "long",
        array=array_state, others={"numba": loops_state(bits, False)}, **options,
    )  # fmt: skip
    row(
        f"ocean_state_gradient_{bits}", f"gradient of an equation of state, {bits} bits", "long",
        array=array_state_gradient, others={"numba": loops_state(bits, True)}, **options,
    )  # fmt: skip


def random_operations(count, window):
    """Operations drawn once: which of the last `window` values each takes."""
    rng = np.random.default_rng(count)
    kinds, scales = rng.integers(0, 12, count).tolist(), rng.uniform(0.1, 1, count).tolist()
    back = rng.integers(1, window, (2, count)).tolist()
    return list(zip(kinds, *back, scales, strict=True))


def random_program(np, operations, inputs):
    """What all operations add up to: one value in 25 of them, since the last are near constants."""
    values = list(inputs)
    for kind, first, second, scale in operations:
        p, q = values[-min(first, len(values))], values[-min(second, len(values))]
        if kind < 4:
            made = p * q * 0.5
        elif kind < 8:
            made = p * scale + q
        elif kind < 10:
            made = p - q * scale
        elif kind == 10:
            made = p / (1.0 + q * q)
        else:
            made = np.exp(-np.abs(p))
        values.append(made)
    total = values[-1]
    for value in values[::25]:
        total = total + 0.1 * value
    return total


def three_vectors(rng):
    return tuple(rng.random(10**6, dtype=np.float32) for _ in range(3))


def array_random(count, window, gradient):
    operations = random_operations(count, window)

    def make(s):
        def run(*inputs):
            return random_program(s.np, operations, inputs)

        if gradient:
            return s.jit(s.grad(lambda *inputs: s.np.mean(run(*inputs)), argnums=(0, 1, 2)))
        return s.jit(run)

    return make


def loops_random(count, window, gradient):
    operations = random_operations(count, window)
    return loop(lambda np, *xs: random_program(np, operations, xs), ["i"] * 3, 1, gradient)


for count, window, gradient in ((300, 8, False), (500, 40, False), (200, 20, True)):
    of = "gradient of " if gradient else ""
    row(
        f"random_{count}{'_gradient' if gradient else ''}",
        f"{of}{count} random operations, 10⁶", "long",
        inputs=three_vectors, array=array_random(count, window, gradient),
        others={"numba": loops_random(count, window, gradient)}, tolerance=1e-3,
    )  # fmt: skip

DECAYS, TIMES, PIXELS = 4, [0.1, 0.3, 0.6, 1.0, 1.5, 2.2], 200_000
FITTED = 2 * DECAYS + 1 + len(TIMES)


def pixels(rng):
    return tuple(0.2 + rng.random(PIXELS, dtype=np.float32) for _ in range(FITTED))


def decay(np, *fields):
    """How far a sum of decays is from what was counted: amplitudes, rates, a background, counts."""
    amplitudes, rates, background = fields[:DECAYS], fields[DECAYS : 2 * DECAYS], fields[2 * DECAYS]
    loss = 0.0
    for time, counted in zip(TIMES, fields[2 * DECAYS + 1 :], strict=True):
        model = background
        for amplitude, rate in zip(amplitudes, rates, strict=True):
            model = model + amplitude * np.exp(-time * rate)
        away = counted - model
        loss = loss + away * away / (model + 0.1) + 0.5 * np.log(model + 0.1)
    for amplitude, rate in zip(amplitudes, rates, strict=True):
        loss = loss + 1e-2 * (amplitude * amplitude + np.sqrt(rate))
    return loss


def array_decay(s):
    every = tuple(range(FITTED))
    return s.jit(s.grad(lambda *fields: s.np.mean(decay(s.np, *fields)), argnums=every))


row(
    "decay_gradient", f"gradient of a fit by {FITTED} arrays, 2·10⁵", "long",
    inputs=pixels, array=array_decay, others={"numba": loop(decay, ["i"] * FITTED, 1, True)},
    tolerance=1e-3,
)  # fmt: skip

SPECIES, REACTIONS, CELLS = 9, 24, 100_000


def flame(rng):
    return rng.random((SPECIES, CELLS), dtype=np.float32), 1 + rng.random(CELLS, dtype=np.float32)


def reactions():
    rng = np.random.default_rng(3)
    return [
        (*rng.permutation(SPECIES)[:4].tolist(), *rng.uniform(0.5, 2, 3).tolist())
        for _ in range(REACTIONS)
    ]


def chemistry(np, amounts, temperature):
    """Rates of a chain of reactions by Arrhenius' law, and what they do to each species."""
    inverse, logarithm = 1.0 / temperature, np.log(temperature)
    change = [0.0] * SPECIES
    for a, b, c, d, factor, power, energy in reactions():
        forward = factor * np.exp(power * logarithm - energy * inverse)
        backward = forward * np.exp(-energy * 0.3 * inverse)
        rate = forward * amounts[a] * amounts[b] - backward * amounts[c] * amounts[d]
        change[a] = change[a] - rate
        change[b] = change[b] - rate
        change[c] = change[c] + rate
        change[d] = change[d] + rate
    return np.stack([x + np.zeros_like(temperature) for x in change])


row(
    "chemistry", "24 reactions of 9 species, 10⁵ cells", "long",
    inputs=flame, array=lambda s: s.jit(lambda *fields: chemistry(s.np, *fields)),
    others={"numba": loop(chemistry, [[f"{n}, i" for n in range(SPECIES)], "i"])}, tolerance=1e-3,
)  # fmt: skip


def columns(rng):
    shape = 32, 128, 128  # the depth in front: a scan runs over it
    return rng.random(shape, dtype=np.float32), 0.1 + rng.random(shape, dtype=np.float32)


def array_mixing(s):
    """Vertical mixing: how much from the shear, then an implicit step, by elimination."""

    def run(tracer, velocity):
        shear = velocity[1:] - velocity[:-1]
        stratification = tracer[1:] - tracer[:-1]
        richardson = s.np.maximum(stratification, 0.0) / (shear * shear + 1e-3)
        mixing = 1e-2 + 0.5 / (1.0 + 5.0 * richardson) ** 2
        zero = s.np.zeros_like(mixing[:1])
        above = s.np.concatenate([zero, mixing])
        below = s.np.concatenate([mixing, zero])
        diagonal = 1.0 + above + below

        def eliminate(before, at):
            upper, right = before
            a, b, c, d = at
            scale = 1.0 / (b + a * upper)
            new = (-c * scale, (d + a * right) * scale)
            return new, new

        start = (s.np.zeros_like(tracer[0]), s.np.zeros_like(tracer[0]))
        _, (uppers, rights) = s.lax.scan(eliminate, start, (above, diagonal, below, tracer))

        def substitute(after, at):
            upper, right = at
            value = right - upper * after
            return value, value

        _, solved = s.lax.scan(
            substitute, s.np.zeros_like(tracer[0]), (uppers, rights), reverse=True
        )
        return solved

    return s.jit(run)


def numba_mixing(numba):
    c = np.float32

    @numba.njit(parallel=True, fastmath=True)
    def run(tracer, velocity):
        depth, rows, width = tracer.shape
        out = np.empty_like(tracer)
        for i in numba.prange(rows):
            mixing = np.zeros((depth + 1, width), c)
            uppers, rights = np.zeros((depth + 1, width), c), np.zeros((depth + 1, width), c)
            for k in range(1, depth):
                for j in range(width):
                    shear = velocity[k, i, j] - velocity[k - 1, i, j]
                    difference = max(tracer[k, i, j] - tracer[k - 1, i, j], c(0))
                    slowed = c(1) + c(5) * difference / (shear * shear + c(1e-3))
                    mixing[k, j] = c(1e-2) + c(0.5) / (slowed * slowed)
            for k in range(depth):
                for j in range(width):
                    above, below = mixing[k, j], mixing[k + 1, j]
                    scale = c(1) / (c(1) + above + below + above * uppers[k, j])
                    uppers[k + 1, j] = -below * scale
                    rights[k + 1, j] = (tracer[k, i, j] + above * rights[k, j]) * scale
            for j in range(width):
                out[depth - 1, i, j] = rights[depth, j]
            for k in range(depth - 2, -1, -1):
                for j in range(width):
                    out[k, i, j] = rights[k + 1, j] - uppers[k + 1, j] * out[k + 1, i, j]
        return out

    return run


row(
    "mixing", "vertical mixing, 32 levels of 128²", "long",
    inputs=columns, array=array_mixing, others={"numba": numba_mixing}, tolerance=1e-3,
)  # fmt: skip
