"""Short rows that are walked as one: right at every width, and picked instead of gathered."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.cpu.link import link
from numjet.cpu.loops.index import Index, LoopVar, growth, lanes_of

RNG = np.random.default_rng(0)
ROWS = {
    "turned": lambda x: x[:, ::-1],
    "differences": lambda x: x[:, 1:] - x[:, :-1],
    "repeated": lambda x: jnp.repeat(x, 2, axis=1),
    "tiled": lambda x: jnp.tile(x, (1, 3)),
    "with the first": lambda x: x * x[:, :1],
    "steps": lambda x: x[:, ::2] + x[:, 1::2][:, :1],
    "turned back": lambda x: x[::-1],
    "outer": lambda x: x[:, :, None] * x[:, None, :],
    "triangles": lambda x: jnp.tril(jnp.stack([x, x], 1), 1),
}
SQUARES = {
    "transposed": lambda x: x.mT + x,
    "as rows": lambda x: jnp.swapaxes(x, 1, 2).reshape(x.shape[0], -1) * 2,
    "diagonal": lambda x: jnp.diagonal(x, axis1=1, axis2=2) + x[:, :, 0],
    "turned": lambda x: x[:, ::-1, ::-1],
    "pixels": lambda x: x[:, ::-1],
    "triangle": lambda x: jnp.triu(x, 1) * 2,
    "scaled up": lambda x: jnp.repeat(jnp.repeat(x, 2, 1), 2, 2),
}


def numbers(shape, dtype):
    return RNG.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def same(f, x):
    got = nj.jit(f)(x)
    with nj.disable_jit():
        want = f(jnp.array(x))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int16", "bool", "complex64"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_every_width(name, dtype):
    if dtype == "bool" and name in ("differences", "steps"):
        return
    for width in (2, 3, 5, 7, 12, 17):
        for rows in (1031, 512):
            same(ROWS[name], numbers((rows, width), dtype))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int32"])
@pytest.mark.parametrize("name", SQUARES)
def test_small_matrices(name, dtype):
    for shape in ((513, 3, 3), (301, 4, 4), (129, 8, 8), (77, 16, 16), (40, 6, 24), (19, 50, 3)):
        if shape[1] == shape[2] or name in ("turned", "pixels", "scaled up", "as rows"):
            same(SQUARES[name], numbers(shape, dtype))


def test_results_in_the_memory_of_operands():
    for rows in (1000, 1031):
        x, y = numbers((rows, 5), "float32"), numbers((rows, 5), "float32")
        scale = nj.jit(lambda a, b: a * b[:, :1], donate_argnums=0)
        np.testing.assert_array_equal(scale(jnp.array(x), y), x * y[:, :1])


def test_vectors_hold_parts_of_several_rows():
    for name, x in [
        ("turned", jnp.zeros((10000, 5))), ("differences", jnp.zeros((10000, 4))),
        ("repeated", jnp.zeros((10000, 3))), ("tiled", jnp.zeros((10000, 3), "uint8")),
    ]:  # fmt: skip
        run = nj.jit(ROWS[name]).lower(x)
        if link.vector_bytes() > 16:  # else most of these rows are longer than a vector
            assert "for block <" in run.as_text()
        made = run.compile().as_text()
        assert "gather" not in made and "scatter" not in made, name
    run = nj.jit(SQUARES["transposed"]).lower(jnp.zeros((10000, 3, 3)))
    assert "gather" not in run.compile().as_text()
    assert "for block <" in run.as_text() or link.vector_bytes() == 16


def test_rows_that_join_operands_are_written_round_by_round():
    x = jnp.zeros((10000, 3))
    joined = nj.jit(lambda v: jnp.stack([v[:, 0] * 2, v[:, 1] + v[:, 2]], 1))
    assert "for block <" not in joined.lower(x).as_text()


def test_a_row_of_matrices_is_split_where_it_is_divided():
    run = nj.jit(SQUARES["as rows"]).lower(jnp.zeros((1000, 16, 16)))
    assert "//16" not in run.as_text()


def test_gradients_of_steps_read_vectors():
    for n in (511, 512, 640):
        x = numbers((40, n), "float32")
        f = nj.jit(nj.grad(lambda v: jnp.sum(v[:, ::2] ** 2)))
        want = np.zeros_like(x)
        want[:, ::2] = 2 * x[:, ::2]
        np.testing.assert_array_equal(f(x), want)
        assert "gather" not in f.lower(x).compile().as_text().replace("masked.gather", "")


def test_what_lanes_add_to_an_index():
    t, other = LoopVar("t", 48), LoopVar("u", 10)
    i = (Index.of(t) + 4) // 6 * 3 + (Index.of(t) + 1) % 3 + Index.of(other) * 7
    at = [(k + 4) // 6 * 3 + (k + 1) % 3 for k in range(16, 32)]
    assert lanes_of(i, t, 16, 16) == [p - at[0] for p in at]
    assert growth(i, t, 12) == 6 and growth(i, t, 16) is None
    mixed = (Index.of(t) + Index.of(other)) // 6
    assert lanes_of(mixed, t, 0, 16) is None and growth(mixed, t, 12) == 2
