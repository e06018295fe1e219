"""gather and scatter: modes, duplicates, batching, derivatives, against JAX."""

from __future__ import annotations

import numpy as np
import pytest
from same_script import compare

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

GATHER = """
rng = np.random.default_rng(0)
x = rng.standard_normal((5, 6, 4)).astype("float32")
D = lax.GatherDimensionNumbers
cases = [
    (D((1, 2), (0,), (0,)), (1, 6, 4), np.array([[3], [0], [4]])),
    (D((1, 2, 3), (), (0, 2)), (2, 6, 3), np.array([[3, 1], [9, -2], [1, 0]])),
    (D((0, 2), (1,), (1,)), (5, 1, 4), np.array([[2], [7]])),
    (D((), (0, 1, 2), (2, 0, 1)), (1, 1, 1), np.array([[[1, 2, 3]], [[0, 9, 9]]])),
    (D((1,), (1,), (1,), (0,), (0,)), (1, 1, 4), np.array([[2], [7], [0], [1], [5]])),
    (D((0, 1, 2), (), ()), (2, 3, 4), np.zeros(0, int)),
]
for i, (numbers, sizes, indices) in enumerate(cases):
    indices = indices.astype("int32")
    for mode in ("clip", "fill", None):
        f = lambda x, i: lax.gather(x, i, numbers, sizes, mode=mode)
        y = f(x, indices)
        out[f"{i}{mode}"] = y
        out[f"jit{i}{mode}"] = jit(f)(x, indices)
        if mode is None:
            continue  # out of bounds, the oracle's gradient of a promise is undefined
        w = rng.standard_normal(y.shape).astype("float32")
        loss = lambda x, i: jnp.where(jnp.isnan(f(x, i)), 0, f(x, i) * w).sum()
        out[f"~grad{i}{mode}"] = grad(loss)(x, indices)
        out[f"~jitgrad{i}{mode}"] = jit(grad(loss))(x, indices)
        xs, many = np.stack([x, x + 1]), np.stack([indices, indices[::-1]])
        for dims in ((0, None), (None, 0), (0, 0)):
            a, b = xs if dims[0] == 0 else x, many if dims[1] == 0 else indices
            out[f"vmap{i}{mode}{dims}"] = vmap(f, dims)(a, b)
            out[f"~vgrad{i}{mode}{dims}"] = vmap(grad(loss), dims)(a, b)
for dtype in ("int8", "uint8", "bool", "complex64"):
    x = jnp.arange(3).astype(dtype)
    out[f"fill{dtype}"] = lax.gather(x, np.array([[5], [1]]), D((), (0,), (0,)), (1,), mode="fill")
"""
SCATTER = """
rng = np.random.default_rng(0)
x = rng.standard_normal((5, 6, 4)).astype("float32")
D = lax.ScatterDimensionNumbers
cases = [
    (D((1, 2), (0,), (0,)), (3, 6, 4), np.array([[3], [0], [3]]), False),
    (D((1, 2, 3), (), (0, 2)), (3, 2, 6, 3), np.array([[3, 1], [9, -2], [1, 0]]), False),
    (D((0, 1), (1,), (1,)), (5, 4, 2), np.array([[2], [7]]), True),
    (D((1,), (1,), (1,), (0,), (0,)), (5, 4), np.array([[2], [7], [0], [1], [5]]), True),
]
for i, (numbers, shape, indices, unique) in enumerate(cases):
    indices = indices.astype("int32")
    u = rng.standard_normal(shape).astype("float32")
    for kind in ("", "_add", "_sub", "_mul", "_min", "_max"):
        name = "scatter" + kind
        for mode in ("clip", "drop"):
            if name == "scatter" and mode == "clip" and not unique:
                continue  # the oracle leaves the order of overlapping windows open
            options = dict(mode=mode, unique_indices=unique)
            f = lambda x, i, u: getattr(lax, name)(x, i, u, numbers, **options)
            out[f"~{i}{name}{mode}"] = f(x, indices, u)
            out[f"~jit{i}{name}{mode}"] = jit(f)(x, indices, u)
            xs, many, us = np.stack([x, x + 1]), np.stack([indices, indices]), np.stack([u, u * 2])
            for dims in ((0, None, None), (None, 0, None), (0, 0, 0)):
                pairs = zip((x, indices, u), (xs, many, us), dims)
                args = [b if d == 0 else a for a, b, d in pairs]
                out[f"~vmap{i}{name}{mode}{dims}"] = vmap(f, dims)(*args)
            # Clipped minima and maxima: the oracle's gradient compares with the window not moved.
            exact = unique and (mode == "drop" or name not in ("scatter_min", "scatter_max"))
            if exact or name in ("scatter_add", "scatter_sub"):
                w = rng.standard_normal(x.shape).astype("float32")
                loss = lambda x, u: (f(x, indices, u) * w).sum()
                dx, du = grad(loss, argnums=(0, 1))(x, u)
                out[f"~dx{i}{name}{mode}"], out[f"~du{i}{name}{mode}"] = dx, du
                out[f"~jdu{i}{name}{mode}"] = jit(grad(loss, argnums=1))(x, u)
"""


@pytest.mark.oracle
@pytest.mark.parametrize("script", [GATHER, SCATTER], ids=["gather", "scatter"])
def test_as_the_oracle(script: str) -> None:
    compare(script)


ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))


def test_of_duplicate_updates_the_last_wins_and_gets_the_cotangent() -> None:
    from numjet import grad

    indices = np.array([[1], [1], [2]])
    updates = np.array([10.0, 20.0, 30.0], np.float32)
    out = lax.scatter(jnp.zeros(4), indices, updates, ROWS)
    np.testing.assert_array_equal(out, [0, 20, 30, 0])
    du = grad(lambda u: lax.scatter(jnp.zeros(4), indices, u, ROWS).sum())(updates)
    np.testing.assert_array_equal(du, [0, 1, 1])


def test_apply_runs_once_for_each_occurrence() -> None:
    out = lax.scatter_apply(
        jnp.array([1.0, 2.0, 3.0]),
        np.array([[1], [1], [2], [9]]),
        lambda v: v * 10,
        ROWS,
        update_shape=(4,),
    )
    np.testing.assert_array_equal(out, [1, 200, 30])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: lax.gather(
                jnp.zeros(3), np.array([[0.5]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,)
            ),
            "must have an integer type",
        ),
        (
            lambda: lax.gather(
                jnp.zeros(3), np.array([[0]]), lax.GatherDimensionNumbers((), (0,), (0,)), (4,)
            ),
            "Slice size at index 0 in gather op is out of range",
        ),
        (
            lambda: lax.scatter_add(jnp.zeros(3), np.array([[0]]), np.ones(2, np.float32), ROWS),
            "scatter dimensions of updates",
        ),
        (
            lambda: lax.scatter_add(jnp.zeros(3), np.array([[0]]), np.ones(1, np.int32), ROWS),
            "one dtype",
        ),
    ],
)
def test_mistakes_are_explained(call, text) -> None:
    with pytest.raises(ValueError if "integer type" in text else TypeError, match=text):
        call()


def test_unknown_mode() -> None:
    with pytest.raises(ValueError, match="promise_in_bounds"):
        lax.scatter_add(jnp.zeros(3), np.array([[0]]), np.ones(1, np.float32), ROWS, mode="wrap")


def test_fills_of_both_zeros_are_two():
    x, places = jnp.array([1.0, -2.0]), jnp.array([0, 9])
    for fill in (-0.0, 0.0, -0.0, np.float32(0.0), np.float32(-0.0)):
        take = lambda x, f=fill: jnp.take(x, places, mode="fill", fill_value=f)
        for found in (take(x), nj.jit(take)(x), nj.vmap(take)(x[None])[0]):
            assert np.signbit(np.asarray(found)[1]) == np.signbit(fill)
