"""Integers in as few bits as they need: the same numbers, in narrow lanes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

RNG = np.random.default_rng(0)
# Of x and y: what is computed in 8 bits, in 16, and what needs its own.
BYTES = {
    "chosen": lambda x, y: jnp.where(x > 50, 255, 0).astype("uint8"),
    "sum": lambda x, y: (x.astype("int32") + y + 3).astype("uint8"),
    "signs": lambda x, y: (-x.astype("int32")).astype("int8"),
    "compared": lambda x, y: x.astype("int32") < y.astype("int32"),
    "constant": lambda x, y: x.astype("int32") <= 20,
}
WORDS = {
    "clipped": lambda x, y: jnp.clip(x.astype("int32") + 20, 0, 255).astype("uint8"),
    "mean": lambda x, y: ((x.astype("int32") + y) // 2).astype("uint8"),
    "product": lambda x, y: (x.astype("int32") * y + 3).astype("int8"),
    "distance": lambda x, y: jnp.abs(x.astype("int32") - y).astype("uint8"),
    "least": lambda x, y: jnp.minimum(x.astype("int32") + y, 255).astype("uint8"),
    "rest": lambda x, y: (((x.astype("int32") & 15) + 9) % 7).astype("int8"),
    "blend": lambda x, y: ((x.astype("int32") * 2 + y.astype("int32") * 3) >> 2).astype("uint8"),
}
OTHERS = {
    "outside": lambda x, y: (x.astype("int32") < 40000) & (y.astype("int32") >= -40000),
    "unsigned": lambda x, y: x.astype("uint32") < y.astype("uint32"),
    "wrapped": lambda x, y: jnp.maximum(x.astype("int32") * 40000 * 70000, y).astype("uint8"),
    "large": lambda x, y: jnp.minimum(x.astype("int32") * y.astype("int32"), 300).astype("int16"),
    "shifted": lambda x, y: ((x.astype("int32") * 770 + y * 150) >> 10).astype("uint8"),
    "floor": lambda x, y: ((x.astype("int32") - y) // 3).astype("int8"),
}
ALL = BYTES | WORDS | OTHERS


def numbers(dtype):
    if dtype == "bool":
        return RNG.integers(0, 2, 777).astype(bool)
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    return np.concatenate([RNG.integers(info.min, info.max, 3000, dtype, True), np.tile(ends, 9)])


@pytest.mark.parametrize("name", ALL)
def test_numbers_are_the_same(name):
    for dtype in ("uint8", "int8", "int16", "uint16", "int32", "bool"):
        x = numbers(dtype)
        y = RNG.permutation(x)
        got = nj.jit(ALL[name])(x, y)
        with nj.disable_jit():
            want = ALL[name](jnp.array(x), jnp.array(y))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=dtype)


@pytest.mark.parametrize("name", [*BYTES, *WORDS])
def test_lanes_are_narrow(name):
    x = jnp.zeros(1000, "uint8")
    text = nj.jit(ALL[name]).lower(x, x).as_text()
    assert "32" not in text.replace("lanes=32", "")
    if name in BYTES:
        assert "16" not in text.replace("lanes=16", "")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int32"])
def test_comparisons_with_the_ends_are_known(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = numbers(dtype)
    with nj.enable_x64(True):
        known = {
            "<": lambda v: (v < v.dtype.type(least), v.dtype.type(most) < v),
            ">=": lambda v: (v >= v.dtype.type(least), v.dtype.type(most) >= v),
            "and": lambda v: ((v < v.dtype.type(least)) & (v > 5), (v > most) | (v < least)),
        }
        for name, f in known.items():
            assert "in0" not in nj.jit(f).lower(x).as_text().partition(":\n")[2], name
            for got, want in zip(nj.jit(f)(x), f(x), strict=True):
                np.testing.assert_array_equal(got, want)
        open_ = nj.jit(lambda v: (v > v.dtype.type(least), (v <= most) & (v > 5)))
        np.testing.assert_array_equal(open_(x)[0], x > least)
        np.testing.assert_array_equal(open_(x)[1], x > 5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "bool"])
def test_quotients_of_integers_by_constants_are_exact(dtype):
    x = numbers(dtype)
    for c in (3, 7, 10, 255, -255, 0.1, 127.5, 65535, -3, 0.3, 1.5, 1e20, 1e-20):
        divided = nj.jit(lambda v, c=np.float32(c): v.astype("float32") / c)
        want = x.astype("float32") / np.float32(c)
        assert np.asarray(divided(x)).tobytes() == want.tobytes(), c


def test_floats_are_divided():
    x = np.array([np.inf, -np.inf, -0.0, 1e-38, 3e38, np.nan, 5e-39], "float32")
    for c in (3, 255, -7):
        got = nj.jit(lambda v, c=np.float32(c): v / c)(x)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x / np.float32(c)))
        np.testing.assert_array_equal(got, x / np.float32(c))


def test_a_few_numbers_are_looked_for_one_by_one():
    for dtype in ("int32", "float32", "uint8"):
        x = numbers("uint8").astype(dtype)
        looked = nj.jit(lambda v, t: jnp.isin(v, t))
        for n in (0, 1, 6, 40, 500):
            np.testing.assert_array_equal(looked(x, x[:n]), np.isin(x, x[:n]))
        assert "in1[5]" in looked.lower(x, x[:6]).as_text()
        many = np.tile(x, 20)
        assert "sort" not in looked.lower(many, x[:100]).as_text()
        assert "sort" in looked.lower(many, x[:500]).as_text()


def test_shifts_of_numbers_without_a_sign_repeat_none():
    x = np.arange(1 << 16, dtype="uint16")
    got = nj.jit(lambda v: ((v.astype("int32") >> 3).astype("int16") // 16).astype("uint32"))(x)
    np.testing.assert_array_equal(got, x >> 7)


TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


def drawn(rng: random.Random, depth: int) -> str:
    """An expression of integers of all widths, converted to and fro."""
    if depth == 0:
        return rng.choice(["a", "b", "c", f"jnp.int32({rng.choice([0, 3, 127, 255, -1, -128])})"])
    x, y, z = (drawn(rng, depth - 1) for _ in range(3))
    to, joined = rng.choice(TYPES), rng.choice("+-*&|^")
    return rng.choice([
        f"{x}.astype('{to}')",
        f"({x}.astype('int32') {joined} {y}.astype('int32'))",
        f"({x}.astype('{to}') {joined} {y}.astype('{to}'))",
        f"jnp.clip({x}.astype('int32'), {rng.choice([-200, 0])}, {rng.choice([3, 127, 255])})",
        f"({x}.astype('{to}') {rng.choice(['// 3', '// 16', '% 8', '% 3', '>> 1', '>> 3'])})",
        f"jnp.where({x} {rng.choice(['<', '>=', '=='])} 5, {y}.astype('{to}'), {z}.astype('{to}'))",
        f"jnp.{rng.choice(['maximum', 'minimum'])}({x}.astype('{to}'), {y}.astype('{to}'))",
        f"jnp.abs({x}.astype('int32'))",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_drawn_expressions(seed):
    rng, values = random.Random(seed), np.random.default_rng(seed)
    for _ in range(20):
        args = []
        for dtype in rng.choices(TYPES, k=3):
            info = np.iinfo(dtype)
            x = values.integers(info.min, info.max, 200, endpoint=True, dtype=dtype)
            args.append(jnp.asarray(x))
        text = f"{drawn(rng, rng.randint(2, 4))}.astype('{rng.choice(TYPES)}')"
        f = eval(f"lambda a, b, c: {text}", {"jnp": jnp})
        with nj.disable_jit():
            want = f(*args)
        np.testing.assert_array_equal(np.asarray(nj.jit(f)(*args)), np.asarray(want), text)
