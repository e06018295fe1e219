"""Binomial and multinomial counts: probabilities, limits, transformations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import random
from numjet.transforms.stage import StageTrace

DRAWS = 20_000


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.3), (5, 0.5), (12, 0.9), (40, 0.2), (30, 0.5), (100, 0.85), (1000, 0.4)]
)
def test_probabilities(n: int, p: float) -> None:
    """Frequencies of the counts, those expected less than ten times together, by a χ² test."""
    drawn = np.asarray(random.binomial(random.key(n), n, p, (DRAWS,)))
    assert ((drawn >= 0) & (drawn <= n) & (drawn == np.floor(drawn))).all()
    want = DRAWS * scipy.stats.binom.pmf(np.arange(n + 1), n, p)
    got = np.bincount(drawn.astype(int), minlength=n + 1)
    often = want >= 10
    got = np.append(got[often], got[~often].sum())
    want = np.append(want[often], want[~often].sum())
    keep = want > 1e-3
    assert not got[~keep].any()
    statistic = ((got[keep] - want[keep]) ** 2 / want[keep]).sum()
    assert scipy.stats.chi2.sf(statistic, keep.sum() - 1) > 1e-4


def test_large_numbers_of_trials() -> None:
    n, p = 10_000_000, 0.3
    drawn = np.asarray(random.binomial(random.key(0), n, p, (DRAWS,)), np.float64)
    scale = np.sqrt(n * p * (1 - p))
    assert abs(drawn.mean() - n * p) < 5 * scale / np.sqrt(DRAWS)
    assert abs(drawn.std() / scale - 1) < 0.03


def test_limits_of_the_parameters() -> None:
    n = jnp.array([0, 7, 7, 50, 50, -1, 3, 3, np.nan, np.inf])
    p = jnp.array([0.5, 0, 1, 0, 1, 0.5, -0.1, 1.1, 0.5, 0.5])
    for f in (random.binomial, nj.jit(random.binomial)):
        got = f(random.key(0), n, p)
        np.testing.assert_array_equal(got, [0, 0, 7, 0, 50, *[np.nan] * 4, np.inf])


def test_multinomial_counts_add_up() -> None:
    p = jnp.array([2.0, 0.0, 3.0, 5.0])
    n = jnp.array([0.0, 10.0, 1000.0])
    counts = np.asarray(random.multinomial(random.key(1), n, p, shape=(5000, 3, 4)))
    np.testing.assert_array_equal(counts.sum(-1), np.broadcast_to(n, (5000, 3)))
    np.testing.assert_array_equal(counts[..., 1], 0)
    parts = np.asarray(p) / 10
    np.testing.assert_allclose(counts[:, 2].mean(0), 1000 * parts, atol=1.2)
    want = 1000 * (np.diag(parts) - np.outer(parts, parts))
    np.testing.assert_allclose(np.cov(counts[:, 2].T), want, atol=16)


def test_shapes_dtypes_and_transformations() -> None:
    key = random.key(3)
    assert random.binomial(key, jnp.ones((2, 1)), jnp.full(3, 0.5)).shape == (2, 3)
    assert random.binomial(key, 5, 0.5, dtype="float16").dtype == jnp.float16
    assert random.multinomial(key, 5, jnp.ones((4, 2)), dtype="bfloat16").dtype == jnp.bfloat16
    keys = random.split(key, 4)
    many = nj.vmap(lambda k: random.binomial(k, 30, 0.4))(keys)
    np.testing.assert_array_equal(many, [random.binomial(k, 30, 0.4) for k in keys])
    assert random.multinomial(key, 3, jnp.ones((2, 0))).shape == (2, 0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda k: random.binomial(k, 5, 0.5, dtype=int), "`binomial` must be a float dtype"),
        (lambda k: random.binomial(k, jnp.ones(3), 0.5, (2,)), "do not broadcast"),
        (lambda k: random.multinomial(k, 5, 0.5), "axis of categories"),
    ],
)
def test_mistakes_are_explained(call, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(random.key(0))


def test_the_same_key_gives_the_counts_of_jax() -> None:
    cases = [(10, 0.5), (3, 0.2), (30, 0.9), (100, 0.7), (50, 0.4), (2.5, 0.7), (np.inf, 0.5)]
    script = f"""
for i, (n, p) in enumerate({cases!r}):
    out[f"b{{i}}"] = jax.random.binomial(jax.random.key(i), n, p, (50,))
out["m"] = jax.random.multinomial(jax.random.key(1), 40, jnp.array([0.1, 0.2, 0.3, 0.4]))
""".replace("inf", "jnp.inf")
    want = run_in_oracle(script)
    for i, (n, p) in enumerate(cases):
        np.testing.assert_array_equal(random.binomial(random.key(i), n, p, (50,)), want[f"b{i}"])
    got = random.multinomial(random.key(1), 40, jnp.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(got, want["m"])


def test_exponents_may_be_traced() -> None:
    key = random.key(0)
    for draw in (
        lambda p: random.ball(key, 3, p, (2,)),
        lambda p: random.generalized_normal(key, p, (2,)),
    ):
        np.testing.assert_allclose(nj.jit(draw)(2.5), draw(2.5), rtol=1e-5)


@pytest.mark.parametrize("name", ["binomial", "multinomial"])
def test_an_eager_call_like_the_one_before_traces_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = jnp.array([0.25, 0.25, 0.5])
    first = getattr(random, name)(random.key(3), 20, p)
    traces: list[object] = []
    begin = StageTrace.__init__

    def counted(self: StageTrace, *rest: object) -> None:
        traces.append(self)
        begin(self, *rest)

    monkeypatch.setattr(StageTrace, "__init__", counted)
    again = getattr(random, name)(random.key(3), 20, p)
    np.testing.assert_array_equal(first, again)
    assert traces == []


def test_multinomial_counts_are_drawn_in_the_floats_of_their_parameters() -> None:
    """Whatever the result's dtype is."""
    key, p = random.key(7), jnp.array([0.5, 0.2, 0.3])
    whole = random.multinomial(key, 60, p, dtype=jnp.int32)
    assert whole.dtype == jnp.int32 and whole.sum() == 60
    np.testing.assert_array_equal(whole, random.multinomial(key, 60, p))
    with nj.enable_x64(True):
        narrow = random.multinomial(key, 60, p, dtype=jnp.float32)  # p is of float32
        np.testing.assert_array_equal(narrow, whole)
        wide = random.multinomial(key, 60, p.astype(float), dtype=jnp.float32)
        assert wide.dtype == jnp.float32
        np.testing.assert_array_equal(wide, random.multinomial(key, 60, p.astype(float)))


def test_lognormal_draws_are_complex_where_that_is_asked_for() -> None:
    key = random.key(2)
    drawn = random.lognormal(key, 0.5, (3,), jnp.complex64)
    np.testing.assert_allclose(
        drawn, jnp.exp(0.5 * random.normal(key, (3,), jnp.complex64)), rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_keys_like_others_are_filled_word_by_word(kind: str) -> None:
    keys = random.split(random.key(0, impl=kind), 2)
    shaped = nj.ShapeDtypeStruct((2,), keys.dtype)
    for like in (keys, shaped):
        for made, word in ((jnp.ones_like(like), 1), (jnp.full_like(like, 9), 9),
                           (jnp.zeros_like(like), 0)):
            assert made.dtype == keys.dtype
            words = random.key_data(made)
            np.testing.assert_array_equal(words, np.full_like(random.key_data(keys), word))


def test_64_bits_asked_for_in_vain_are_told() -> None:
    key = random.key(3)
    for name, draw in {
        "random.bits": lambda: random.bits(key, (2,), "uint64"),
        "rademacher": lambda: random.rademacher(key, (2,), np.int64),
        "poisson": lambda: random.poisson(key, 2.0, (2,), np.int64),
        "geometric": lambda: random.geometric(key, 0.5, (2,), np.int64),
    }.items():
        with pytest.warns(UserWarning, match=f"requested in {name} is not available"):
            assert draw().dtype.itemsize == 4
