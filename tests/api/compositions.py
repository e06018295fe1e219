"""Random programs: a base function under three transformations, as code that runs with numjet and
with JAX.

`build(jx, jnp, lax)` is called by the test with numjet's modules and by the oracle's interpreter
with JAX's.
"""

import itertools
import random as stdlib_random


def build(jx, jnp, lax):
    """Base functions float64[4] -> float64[4], and transformations of such functions into such
    functions."""
    v = jnp.array([0.3, -1.2, 0.7, 0.4])
    w = jnp.array([1.0, 0.5, -0.25, 2.0])
    m = jnp.array(
        [[0.2, -0.4, 0.1, 0.7], [0.5, 0.3, -0.6, 0.2], [-0.1, 0.8, 0.4, -0.3], [0.6, 0.1, 0.2, 0.5]]
    )

    def two_layers(x):
        return jnp.tanh(m @ jnp.tanh(m @ x + 0.1)) * x

    def softmax(x):
        e = jnp.exp(x - jnp.max(x))
        return e / jnp.sum(e) + x**2

    def rearranged(x):
        y = jnp.sort(x * w)[::-1]
        return jnp.where(y > 0, jnp.sin(y), y * x) + jnp.cumsum(x)

    def indexed(x):
        y = x.at[1].multiply(x[3]).at[jnp.array([0, 2])].add(jnp.cos(x[:2]))
        return jnp.concatenate([y[2:], y[:2]]) * jnp.linalg.norm(x)

    def looped(x):
        total, parts = lax.scan(lambda c, a: (jnp.sin(c) * a + x[0], c * a), jnp.sum(x), x)
        return parts + total * w

    def products(x):
        outer = jnp.outer(x, w)
        return jnp.einsum("ij,jk,k->i", outer, m, x) / (1.0 + jnp.prod(x) ** 2)

    bases = {f.__name__: f for f in (two_layers, softmax, rearranged, indexed, looped, products)}

    def with_rule(f):
        g = jx.custom_jvp(f)
        g.defjvp(lambda primals, tangents: jx.jvp(f, primals, tangents))
        return g

    transformations = {
        "jit": jx.jit,
        "grad": lambda f: jx.grad(lambda x: jnp.sum(f(x) * w)),
        "value_and_grad": lambda f: (
            lambda x: sum(jx.value_and_grad(lambda y: jnp.sum(f(y) * w))(x))
        ),
        "vmap": lambda f: lambda x: jnp.sum(jx.vmap(lambda a: f(x * a))(v), axis=0),
        "vmap_out": lambda f: lambda x: jx.vmap(f, in_axes=1, out_axes=1)(jnp.outer(x, w)) @ v,
        "jvp": lambda f: lambda x: jx.jvp(f, (x,), (v,))[1],
        "vjp": lambda f: lambda x: jx.vjp(f, x)[1](v)[0],
        "linearize": lambda f: lambda x: jx.linearize(f, x)[1](w),
        "jacfwd": lambda f: lambda x: jx.jacfwd(f)(x) @ v,
        "jacrev": lambda f: lambda x: v @ jx.jacrev(f)(x),
        "checkpoint": jx.checkpoint,
        "custom_jvp": with_rule,
        "scan": lambda f: (
            lambda x: lax.scan(lambda c, a: (0.3 * jnp.tanh(f(c)) + a, None), x, jnp.outer(w, v))[0]
        ),
        "fori_loop": lambda f: (
            lambda x: lax.fori_loop(0, 3, lambda i, c: 0.4 * jnp.tanh(f(c)) + i, x)
        ),
        "cond": lambda f: lambda x: lax.cond(jnp.sum(x) > 0.2, f, lambda y: jnp.cos(y) * w, x),
        "switch": lambda f: lambda x: lax.switch(1, [jnp.sin, f, jnp.cos], x),
        "closure": lambda f: lambda x: jx.grad(lambda s: jnp.sum(f(x * s)))(1.5) * f(x),
    }
    return bases, transformations, jnp.array([0.9, -0.4, 0.35, 1.1])


def programs(names_of_bases, names_of_transformations, count, seed=0):
    """`count` different (base, outer, middle, inner) choices."""
    everything = list(itertools.product(names_of_bases, *[names_of_transformations] * 3))
    return stdlib_random.Random(seed).sample(everything, count)


def run(jx, jnp, lax, program):
    """The value of one program at the point."""
    bases, transformations, x = build(jx, jnp, lax)
    f = bases[program[0]]
    for name in reversed(program[1:]):
        f = transformations[name](f)
    return f(x)
