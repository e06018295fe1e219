"""What a call costs, told from its jaxpr: the counts that XLA gives for the same programs."""

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

X, W = jnp.ones((4, 8)), jnp.ones((8, 16))
IMAGE, KERNEL = jnp.ones((2, 6, 6, 4)), jnp.ones((3, 3, 2, 6))


def convolved(x, w, **options):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=2, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fun", "args", "flops", "transcendentals"),
    [
        (lambda x, w: x @ w, (X, W), 2 * 4 * 8 * 16, 0),
        (lambda x: x + 1, (X,), 32, 0),
        (lambda x: jnp.exp(x) / jnp.sqrt(x), (X,), 32, 64),
        (jnp.sum, (X,), 31, 0),
        (lambda x: x.sum(0), (X,), 24, 0),
        (nj.nn.softmax, (X,), 124, 32),
        (lambda x: x**3, (X,), 64, 0),
        (nj.nn.relu, (X,), 32, 0),
        # Windows along 6 elements hold 16 of them in all: those at the edges two each.
        (convolved, (IMAGE, KERNEL), 2 * 2 * 6 * 2 * 16 * 16, 0),
        (lambda x: lax.scan(lambda c, _: (c + x, None), x, length=5)[0], (X,), 5 * 32, 0),
        (lambda x: lax.cond(x[0, 0] > 0, lambda y: y, lambda y: y + y * 3, x), (X,), 66, 0),
        (lambda x: jnp.sort(x, 0), (X,), 160, 0),
        (lambda x: jnp.broadcast_to(x.T, (3, 8, 4)), (X,), 0, 0),
    ],
)
def test_operations_are_counted_as_xla_counts_them(fun, args, flops, transcendentals):
    cost = nj.jit(fun).lower(*args).cost_analysis()
    assert cost.get("flops", 0) == flops
    assert cost.get("transcendentals", 0) == transcendentals
    compiled = nj.jit(fun).lower(*args).compile().cost_analysis()
    assert compiled.get("flops", 0) == flops and compiled["bytes accessed"] > 0


def test_the_cost_of_a_whole_is_that_of_its_parts():
    block = nj.jit(lambda x: nj.nn.relu(x @ jnp.ones((8, 8)) + 1))
    one = block.lower(X).cost_analysis()["flops"]
    three = nj.jit(lambda x: block(block(block(x)))).lower(X).cost_analysis()["flops"]
    assert three == 3 * one > 0


def test_lowering_and_calling_trace_once():
    count = []

    @nj.jit
    def f(x):
        count.append(1)
        return x * 2

    assert f.lower(X).cost_analysis()["flops"] == 32
    assert f.lower(nj.ShapeDtypeStruct(X.shape, X.dtype)).out_info.shape == X.shape
    np.testing.assert_array_equal(f(X), 2 * np.ones((4, 8)))
    assert f.eval_shape(X).shape == X.shape and len(count) == 1
    f.lower(X[0])
    f(X[0])
    assert len(count) == 2
