"""Keys of other generators: rbg, unsafe_rbg and users' own; bits, words and errors as JAX's."""
import pickle

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, random
from numjet.cpu import backend
from numjet.extend import random as extended

CASES = """
def words(k):
    return random.key_data(k)
for impl in ("rbg", "unsafe_rbg"):
    k = random.key(42, impl=impl)
    ks = random.split(k, 3)
    for tag, f in [
        ("words", lambda: words(k)), ("split", lambda: words(ks)),
        ("split in a shape", lambda: words(random.split(k, (2, 2)))),
        ("fold_in", lambda: words(random.fold_in(k, 7))),
        ("seeds", lambda: jnp.stack([words(random.key(s, impl=impl)) for s in (0, -1, 2**31)])),
        *[("bits " + d, lambda d=d: random.bits(k, (2, 3), d)) for d in ("uint8", "uint16", "uint32")],
        ("randint", lambda: random.randint(k, (9,), 0, 100)),
        ("uniform", lambda: random.uniform(k, (9,))), ("normal", lambda: random.normal(k, (9,))),
        ("mapped bits", lambda: jax.vmap(lambda k: random.bits(k, (2,)))(ks)),
        ("mapped split", lambda: words(jax.vmap(random.split)(ks))),
        ("mapped fold_in", lambda: words(jax.vmap(random.fold_in, (0, None))(ks, 3))),
        ("mapped data", lambda: words(jax.vmap(lambda d: random.fold_in(k, d))(jnp.arange(3)))),
        ("mapped seeds", lambda: words(jax.vmap(lambda s: random.key(s, impl=impl))(jnp.arange(2)))),
        ("twice mapped", lambda: jax.vmap(jax.vmap(lambda k: random.bits(k, (2,))))(
            random.split(k, (2, 2)))),
        ("jit", lambda: jax.jit(lambda k: random.bits(k, (4,)))(k)),
        ("scan", lambda: lax.scan(lambda c, k: (c, random.bits(k, ())), 0, ks)[1]),
        ("scan carry", lambda: words(lax.scan(
            lambda c, _: (random.split(c)[0], c), k, None, length=3)[1])),
        ("moved", lambda: words(ks.reshape(3, 1).T[0, 1:])), ("at", lambda: words(ks.at[0].set(k))),
        ("equal", lambda: ks == k), ("indexed", lambda: words(ks[jnp.array([2, 0])])),
        ("joined", lambda: words(jnp.concatenate([ks, ks[:1]]))),
        ("where", lambda: words(jnp.where(jnp.array([True, False, True]), ks, k))),
        ("zeros", lambda: words(jnp.zeros((2,), k.dtype))), ("raw", lambda: random.PRNGKey(3, impl=impl)),
        ("jitted", lambda: words(jax.jit(lambda k, i: jnp.where(i > 1, k[0], k[i]))(ks, 1))),
        ("cond", lambda: words(lax.cond(True, lambda: k, lambda: ks[0]))),
        ("loop", lambda: words(lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), k))),
    ]:
        out[impl + " " + tag] = np.asarray(f())
out["gamma"] = np.asarray(random.gamma(random.key(4, impl="rbg"), 2.0, (3,)))
out["threefry"] = np.asarray(extended.threefry_2x32(
    jnp.arange(2, dtype="uint32"), jnp.arange(5, dtype="uint32")))
out["state"], out["drawn"] = map(np.asarray, jax.vmap(
    lambda k: lax.rng_bit_generator(k, (2,)))(jnp.arange(12, dtype="uint32").reshape(3, 4)))
with jax.default_prng_impl("rbg"):
    out["default"] = np.asarray(random.key_data(random.key(1)))
    out["default raw"] = np.asarray(random.bits(random.PRNGKey(1), (2,)))
"""  # noqa: E501


def test_bits_and_words_are_those_of_jax():
    names = "from jax import lax, random\nimport jax.extend.random as extended\n"
    want = run_in_oracle(names + CASES)
    got: dict = {}
    exec(CASES, {"np": np, "jnp": jnp, "jax": nj, "lax": lax, "random": random, "out": got,
                 "extended": extended})
    assert want.keys() == got.keys() and len(want) > 60
    for tag, value in want.items():
        assert got[tag].dtype == value.dtype, tag
        if value.dtype == np.float32:
            np.testing.assert_allclose(got[tag], value, rtol=2e-5, atol=1e-6, err_msg=tag)
        else:
            np.testing.assert_array_equal(got[tag], value, err_msg=tag)


def test_dtypes_and_what_is_printed():
    k = random.key(42, impl="rbg")
    assert repr(k) == "Array((), dtype=key<rbg>) overlaying:\n[ 0 42  0 42]"
    assert (k.shape, k.itemsize, k.nbytes, str(k.dtype)) == ((), 16, 16, "key<rbg>")
    assert jnp.issubdtype(k.dtype, nj.dtypes.prng_key)
    assert k.dtype == random.key_dtype("rbg") != random.key(0).dtype
    assert random.key_impl(k) == "rbg" and random.key(1, impl=k.dtype).dtype == k.dtype
    assert random.key_impl(random.clone(k)) == "rbg"
    again = pickle.loads(pickle.dumps(random.split(k, 3)))
    np.testing.assert_array_equal(random.key_data(again), random.key_data(random.split(k, 3)))


def counting():
    """Keys of three words: each step adds to them."""
    return extended.define_prng_impl(
        key_shape=(3,),
        seed=lambda s: jnp.stack([s.astype(jnp.uint32)] * 3),
        split=lambda k, shape: jnp.broadcast_to(k, (*shape, 3)) + jnp.arange(
            int(np.prod(shape)), dtype=jnp.uint32).reshape(*shape, 1),
        random_bits=lambda k, width, shape: jnp.broadcast_to(
            k.sum(), shape).astype(f"uint{width}"),
        fold_in=lambda k, d: k + d,
        name="counting", tag="c",
    )  # fmt: skip


def test_implementations_of_users():
    impl = counting()
    k = random.key(5, impl=impl)
    assert str(k.dtype) == "key<c>" and random.key_impl(k) is impl
    for f in (lambda k: random.split(k), nj.jit(lambda k: random.split(k))):
        np.testing.assert_array_equal(random.key_data(f(k)), [[5, 5, 5], [6, 6, 6]])
    np.testing.assert_array_equal(random.bits(k, (2,)), [15, 15])
    np.testing.assert_array_equal(random.key_data(random.fold_in(k, 3)), [8, 8, 8])
    mapped = nj.vmap(lambda k: random.bits(k, (2,)))(random.split(k, 3))
    np.testing.assert_array_equal(mapped, [[15, 15], [18, 18], [21, 21]])
    back = random.wrap_key_data(random.key_data(k), impl=random.key_impl(k))
    assert (back == k).all() and not (back != k).any()
    assert extended.seed_with_impl(impl, 3).dtype == k.dtype
    assert random.key_data(extended.random_seed(jnp.arange(4), impl)).shape == (4, 3)


def test_a_square_of_words_is_a_key():
    impl = extended.define_prng_impl(
        key_shape=(2, 2), seed=lambda s: jnp.full((2, 2), s, jnp.uint32),
        split=lambda k, shape: jnp.broadcast_to(k, (*shape, 2, 2)),
        random_bits=lambda k, w, shape: jnp.full(shape, k[0, 0]).astype(f"uint{w}"),
        fold_in=lambda k, d: k ^ d)  # fmt: skip
    ks = random.split(random.key(7, impl=impl), (2, 3))
    assert random.key_data(nj.jit(lambda k: k.T[1:])(ks)).shape == (2, 2, 2, 2)


def test_functions_of_python_see_keys():
    ks = random.split(random.key(1, impl="rbg"), 2)
    seen = []
    nj.jit(lambda k: nj.debug.callback(seen.append, k))(ks)
    nj.effects_barrier()
    np.testing.assert_array_equal(random.key_data(seen[0]), random.key_data(ks))


def test_programs_come_again_from_the_disk_cache(monkeypatch):
    ks = random.split(random.key(1, impl="unsafe_rbg"), 4)
    f = lambda k: random.split(k[::-1][0], 2)  # noqa: E731
    first = random.key_data(nj.jit(f)(ks))
    nj.clear_caches()
    monkeypatch.setattr(backend, "_compile", None)  # what is not there cannot be compiled
    np.testing.assert_array_equal(random.key_data(nj.jit(f)(ks)), first)


@pytest.mark.parametrize("call, error, text", [
    (lambda k, f: random.key(1, impl="foo"), ValueError, "unrecognized PRNG implementation"),
    (lambda k, f: random.key(1, impl=3), TypeError, "unrecognized type"),
    (lambda k, f: random.key(1, impl="rbg", dtype=k.dtype), ValueError, "both impl and dtype"),
    (lambda k, f: random.wrap_key_data(jnp.zeros(2, "uint32"), impl="rbg"), TypeError,
     "ends with"),
    (lambda k, f: jnp.concatenate([k[None], f[None]]), ValueError, "do not promote"),
    (lambda k, f: lax.cond(True, lambda: k, lambda: f), TypeError, "key<rbg>.*key<fry>"),
    (lambda k, f: k == f, TypeError, "do not promote"),
    (lambda k, f: k + 1, TypeError, "do not promote"),
    (lambda k, f: random.split(k, 3).at[0].set(f), TypeError, "cannot write"),
    (lambda k, f: random.bits(random.key_data(k)), TypeError, "raw words"),
    (lambda k, f: np.asarray(k), TypeError, "key_data"),
])  # fmt: skip
def test_what_does_not_mix(call, error, text):
    with pytest.raises(error, match=text):
        call(random.key(0, impl="rbg"), random.key(0))


@pytest.mark.parametrize("name", ["gamma", "loggamma", "beta", "dirichlet", "t", "binomial"])
def test_draws_by_rejection_compile_for_keys_of_words(name):
    args = {"gamma": (2.0,), "loggamma": (0.5,), "beta": (1.0, 2.0), "t": (3.0,),
            "dirichlet": (jnp.ones(3),), "binomial": (40.0, 0.4)}[name]
    f = lambda k: getattr(random, name)(k, *args)
    keys = random.split(random.key(3, impl="rbg"), 3)
    want = np.stack([f(k) for k in keys])
    np.testing.assert_allclose(np.stack([nj.jit(f)(k) for k in keys]), want, rtol=2e-5)
    np.testing.assert_allclose(np.stack([f(k) for k in keys]), want, rtol=2e-5)  # by now programs


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_devices_draw_from_their_own_keys(impl, eight_devices):
    """Of a vmap all examples draw from the first one's key; devices of a map do not."""
    draws = [
        lambda k: random.bits(k, (3,)), lambda k: random.normal(k, (2,)),
        lambda k: random.permutation(k, 5), lambda k: random.key_data(random.split(k)),
        lambda k: random.uniform(random.fold_in(k, 7), (2,)),
    ]  # fmt: skip
    keys = random.split(random.key(11, impl=impl), 4)
    mesh = nj.make_mesh((4,), ("d",), (nj.sharding.AxisType.Auto,))
    spec = nj.P("d")
    for draw in draws:
        alone = np.stack([np.asarray(draw(k)) for k in keys])
        cut = nj.shard_map(
            lambda k: draw(k[0])[None],  # noqa: B023
            mesh=mesh, in_specs=spec, out_specs=spec,
        )  # fmt: skip
        for f in (nj.pmap(draw), cut, nj.jit(cut)):
            np.testing.assert_array_equal(f(keys), alone)
        pairs = nj.make_mesh((2,), ("d",), (nj.sharding.AxisType.Auto,))
        inner = nj.shard_map(nj.vmap(draw), mesh=pairs, in_specs=spec, out_specs=spec)
        both = np.concatenate([np.asarray(nj.vmap(draw)(keys[i : i + 2])) for i in (0, 2)])
        np.testing.assert_array_equal(inner(keys), both)


def test_states_of_a_generator_move_on_on_every_device(eight_devices):
    states = np.arange(8, dtype=np.uint32).reshape(2, 4) * 5
    found = nj.pmap(lambda s: lax.rng_bit_generator(s, (3, 2)))(states)
    for i, state in enumerate(states):
        for ours, alone in zip(found, lax.rng_bit_generator(state, (3, 2)), strict=True):
            np.testing.assert_array_equal(ours[i], alone)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_small_draws_of_philox_are_those_of_programs(kind: str) -> None:
    top = 2**32 - 1
    with nj.enable_x64(True):
        for words in ([7, 0, 9, 2], [top] * 4, [3, top, top - 1, top]):
            state = jnp.array(words, "uint32")
            for shape in ((), (5,), (2, 9), (0, 3)):
                draw = lambda s, shape=shape: lax.rng_bit_generator(s, shape, kind)  # noqa: E731
                for ours, theirs in zip(draw(state), nj.jit(draw)(state), strict=True):
                    assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())
