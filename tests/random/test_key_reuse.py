"""Keys that are used twice, with `debug_key_reuse`: eagerly and in programs, loops and branches."""
import importlib

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import errors, lax, random


def thrice(body):
    return lambda k: lax.fori_loop(0, 3, lambda i, c: c + body(k, i), 0.0)


def split_in_while(k):
    def body(c):
        now, later = random.split(c[1])
        return c[0] + 1, later, c[2] + random.normal(now)

    return lax.while_loop(lambda c: c[0] < 3, body, (0, k, 0.0))


def split_in_scan(k):
    def body(c, _):
        now, later = random.split(c)
        return later, random.normal(now)

    return lax.scan(body, k, None, length=3)[1]


# What JAX 0.10 takes, and what it refuses.
FINE = {
    "fold_in": lambda k: (random.fold_in(k, 1), random.fold_in(k, 2), random.normal(k)),
    "key_data": lambda k: (random.normal(k), random.key_data(k), k == k, str(k), k.shape),
    "clone": lambda k: (random.normal(k), random.normal(random.clone(k))),
    "children": lambda k: [random.normal(c) for c in random.split(k)],
    "items": lambda k: (lambda ks: (random.normal(ks[0]), random.normal(ks[1])))(random.split(k)),
    "vmap": lambda k: nj.vmap(random.normal)(random.split(k, 3)),
    "closed over by vmap": lambda k: nj.vmap(lambda x: random.normal(k) + x)(jnp.arange(3.0)),
    "rows": lambda k: lax.scan(lambda c, r: (c, random.normal(r)), 0.0, random.split(k, 4)),
    "scan": split_in_scan, "while": split_in_while,
    "loop": thrice(lambda k, i: random.normal(random.fold_in(k, i))),
    "one branch": lambda k: lax.cond(True, random.normal, lambda k: 0.0, k),
    "both branches": lambda k: lax.cond(True, random.normal, random.uniform, k),
    "no branch": lambda k: (lax.cond(True, lambda k: 1.0, lambda k: 0.0, k), random.normal(k)),
    "grad": lambda k: nj.grad(lambda x: x * random.normal(k))(1.0),
    "checkpoint": lambda k: nj.grad(nj.checkpoint(lambda x: x * random.normal(k)))(1.0),
    "words": lambda k: [random.normal(random.wrap_key_data(random.key_data(k))) for _ in range(2)],
    "samplers": lambda k: [f(s) for f, s in zip(
        (random.normal, random.uniform, random.bits, random.gumbel, lambda k: random.gamma(k, 2.0),
         lambda k: random.randint(k, (2,), 0, 5), lambda k: random.permutation(k, 5),
         lambda k: random.choice(k, 5), lambda k: random.poisson(k, 3.0), random.ball,
         lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2)),
         lambda k: random.categorical(k, jnp.ones(3)), lambda k: random.binomial(k, 3.0, 0.5),
         lambda k: random.dirichlet(k, jnp.ones(3)), lambda k: random.t(k, 2.0), random.split),
        random.split(k, 16)) if f is not random.ball],
}
REUSE = {
    "two draws": lambda k: (random.normal(k), random.uniform(k)),
    "split, then draw": lambda k: (random.split(k), random.normal(k)),
    "draw, then split": lambda k: (random.normal(k), random.split(k)),
    "a child": lambda k: (lambda ks: (random.normal(ks[0]), random.normal(ks[0])))(random.split(k)),
    "a part": lambda k: (lambda ks: (nj.vmap(random.normal)(ks[:2]), random.normal(ks[1])))(
        random.split(k, 4)),
    "all, then one": lambda k: (lambda ks: (nj.vmap(random.normal)(ks), random.normal(ks[0])))(
        random.split(k, 3)),
    "chosen": lambda k: (lambda a, b: (random.normal(jnp.where(True, a, b)), random.normal(a)))(
        *random.split(k)),
    "two programs": lambda k: (nj.jit(random.normal)(k), nj.jit(random.uniform)(k)),
    "a program hands it back": lambda k: random.normal(
        nj.jit(lambda k: (random.normal(k), k))(k)[1]),
    "closed over": lambda k: (nj.jit(lambda: random.normal(k))(), random.normal(k)),
    "carried": lambda k: lax.scan(lambda c, _: (c, random.normal(c)), k, None, length=3),
    "every round": thrice(lambda k, i: random.normal(k)),
    "while": lambda k: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + random.normal(k)), (0, 0.0)),
    "after a branch": lambda k: (lax.cond(True, random.normal, lambda k: 0.0, k), random.normal(k)),
    "in a branch": lambda k: lax.cond(
        True, lambda k: random.normal(k) + random.normal(k), lambda k: 0.0, k),
    "two gradients": lambda k: [nj.grad(lambda x: x * random.normal(k))(1.0) for _ in range(2)],
    "samplers": lambda k: (random.permutation(k, 5), random.poisson(k, 2.0)),
    "in checkpoint": lambda k: nj.checkpoint(lambda k: random.normal(k) + random.normal(k))(k),
    "its gradient": lambda k: nj.grad(
        nj.checkpoint(lambda x, k: x * random.normal(k) + random.uniform(k)))(2.0, k),
    "a loop in checkpoint": nj.checkpoint(thrice(lambda k, i: random.normal(k))),
    "before checkpoint": lambda k: (random.normal(k), nj.checkpoint(random.uniform)(k)),
}


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FINE)
def test_what_uses_each_key_once_runs(name, wrap):
    fun = FINE[name] if wrap is not nj.jit else lambda k: nj.tree.map(
        lambda x: jnp.asarray(x) if not isinstance(x, str) else 0, FINE[name](k))
    with nj.debug_key_reuse(True):
        wrap(fun)(random.key(0))


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", REUSE)
def test_a_second_use_raises(name, wrap):
    with nj.debug_key_reuse(True), pytest.raises(errors.KeyReuseError, match="reviously-consumed"):
        wrap(REUSE[name])(random.key(0))
    wrap(REUSE[name])(random.key(0))  # off, it runs


def test_loops_say_that_the_rounds_share_a_key():
    with nj.debug_key_reuse(True), pytest.raises(errors.KeyReuseError, match="repeatedly executed"):
        REUSE["every round"](random.key(0))


def test_reuse_names_the_loops_function_and_the_operation():
    def asked(k):
        return lax.while_loop(lambda i: i < random.uniform(k), lambda i: i + 1, 0)

    told = "while_loop cond function leads to key reuse.*In random_bits, argument 0"
    with nj.debug_key_reuse(True), pytest.raises(errors.KeyReuseError, match=told):
        asked(random.key(0))
    for name, where in (("while", "while_loop body function"), ("carried", "scan body function")):
        with nj.debug_key_reuse(True), pytest.raises(errors.KeyReuseError, match=where):
            REUSE[name](random.key(0))


def test_equal_keys_and_raw_ones_are_others():
    with nj.debug_key_reuse(True):
        random.normal(random.key(0)), random.normal(random.key(0))
        raw = random.PRNGKey(0)
        random.normal(raw), random.normal(raw)


def test_the_flag_for_all_that_follows():
    nj.config.update("jax_debug_key_reuse", True)
    try:
        key = random.key(1)
        random.normal(key)
        with nj.debug_key_reuse(False):
            random.normal(key)
        with pytest.raises(errors.KeyReuseError):
            random.normal(key)
    finally:
        nj.config.update("jax_debug_key_reuse", False)
    random.normal(key)
    assert importlib.import_module("numjet.experimental.key_reuse").__doc__


def test_keys_of_which_nobody_knows_which_they_are_count_as_new():
    """JAX refuses the array of keys where one of them was used."""
    clone, normal = random.clone, random.normal
    chosen = nj.jit(lambda k, p: (normal(k), normal(jnp.where(p, k, clone(k)))))
    taken = nj.jit(lambda ks, i: (normal(ks[0]), normal(jnp.take(ks, i))))
    with nj.debug_key_reuse(True):
        chosen(random.key(0), False)
        taken(random.split(random.key(0)), 1)
