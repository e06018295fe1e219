"""What a compiled program keeps for later kernels: how many temporaries it needs."""

from __future__ import annotations

import numpy as np
from jaxpr_interpreter import compiled, spec

from numjet.api.derivatives.autodiff import grad
from numjet.core.structural import broadcast_in_dim, full, reduce_sum
from numjet.nn import softmax
from numjet.ops import transcendental as fn
from numjet.ops.arithmetic import add, div, mul, sub
from numjet.ops.dot import dot_general
from numjet.ops.logic import gt
from numjet.ops.shape import concatenate, select
from numjet.ops.slicing import slice as part

N = 128
WHOLE = N * N * 4
SLACK = WHOLE // 8


def product(x, y):
    return dot_general(x, y, (((1,), (0,)), ((), ())))


def number(value):
    return full((N, N), value, np.dtype(np.float32))


def exact_operands():
    """A matrix of numbers near 1 and one that changes signs and order of columns or rows: products
    with it are exact, so that masks and magnitudes do not depend on the order of summation."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.8, 1.2, (N, N)) * rng.choice([-1.0, 1.0], (N, N))
    w = np.eye(N)[rng.permutation(N)] * rng.choice([-1.0, 1.0], (N, 1))
    return [x.astype(np.float32), w.astype(np.float32)]


def temporaries(f):
    run = compiled(f, spec(N, N), spec(N, N), tolerance=1e-3, args=exact_operands())
    return run.memory_analysis()["temp_size_in_bytes"]


def test_what_follows_from_one_dear_value_is_computed_from_it():
    def run(x, w):
        h = product(x, w)
        t = fn.tanh(h)
        factor, slope = mul(number(0.5), add(number(1.0), t)), sub(number(1.0), mul(t, t))
        for _ in range(2):
            x = product(mul(h, factor), w)
        # t and h are kept for this, neither factor nor slope.
        return mul(x, add(factor, mul(h, slope)))

    # Besides, the product's operand; its result is the program's.
    assert temporaries(run) <= 3 * WHOLE + SLACK


def test_a_mask_is_kept_instead_of_what_it_was_made_from():
    def run(x, w):
        masks = []
        for _ in range(4):
            h = product(x, w)
            masks.append(gt(h, number(0.0)))
            x = mul(h, h)
        for mask in reversed(masks):
            x = select(mask, product(x, w), number(0.0))
        return x

    # Four masks of a byte an element; two whole arrays, and the holes between.
    assert temporaries(run) <= 4 * WHOLE


def test_a_sum_of_two_dying_values_is_kept_not_both():
    def run(x, w):
        kept = []
        for _ in range(4):
            a, b = product(x, w), product(w, x)
            kept.append(add(a, b))
            x = mul(a, b)
        out = product(x, w)
        for value in reversed(kept):
            out = add(product(out, w), value)
        return out

    assert temporaries(run) <= 7 * WHOLE + SLACK


def test_arguments_are_read_again_rather_than_a_sum_of_them_kept():
    def run(x, y):
        total = add(x, y)
        z = product(fn.tanh(total), y)
        return add(product(z, y), total)

    assert temporaries(run) <= 2 * WHOLE + SLACK


def test_rows_of_reductions_are_kept_rather_than_what_is_divided_by_them():
    def run(x, w):
        h = product(x, w)
        total = reduce_sum(fn.exp(h), (1,))
        z = product(h, w)
        return [z, mul(total, reduce_sum(z, (1,)))]

    assert temporaries(run) <= WHOLE + SLACK


def test_large_values_made_from_small_ones_are_computed_again():
    n = 512

    def run(x, y):
        wide = broadcast_in_dim(x, (n, n), (0,)), broadcast_in_dim(y, (n, n), (1,))
        far = div(sub(*wide), add(fn.exp(sub(*wide)), full((n, n), 1.0, np.dtype(np.float32))))
        return [reduce_sum(far, (0,)), reduce_sum(far, (1,))]

    run = compiled(run, spec(n), spec(n), tolerance=1e-3)
    assert run.memory_analysis()["temp_size_in_bytes"] < n * n


def test_softmax_keeps_its_result_alone_for_the_backward_pass():
    def loss(x, w):
        for _ in range(6):
            x = softmax(product(x, w), 1)
        return reduce_sum(mul(x, x), (0, 1))

    run = compiled(lambda x, w: grad(loss, (0, 1))(x, w), spec(N, N), spec(N, N), tolerance=1e-3)
    # Six results; the gradient's memory holds the rest.
    assert run.memory_analysis()["temp_size_in_bytes"] <= 7 * WHOLE + SLACK


def test_values_between_edges_are_computed_where_they_are_joined():
    def run(x):
        steps = sub(part(x, (2,), (N,)), part(x, (0,), (N - 2,)))
        inner = div(steps, full((N - 2,), 2.0, np.dtype(np.float32)))
        return [concatenate([part(x, (0,), (1,)), inner, part(x, (N - 1,), (N,))], 0)]

    assert compiled(run, spec(N)).memory_analysis()["temp_size_in_bytes"] == 0


def test_columns_are_computed_where_they_are_joined():
    def column(x, k):
        return part(x, (0, k), (N * N, k + 1))

    def cross(x, y):
        pairs = [(1, 2), (2, 0), (0, 1)]
        products = [
            sub(mul(column(x, i), column(y, j)), mul(column(x, j), column(y, i))) for i, j in pairs
        ]
        return [concatenate(products, 1)]

    rows = spec(N * N, 3)
    assert compiled(cross, rows, rows).memory_analysis()["temp_size_in_bytes"] == 0


def test_what_joined_halves_share_is_not_computed_by_each():
    # Rows turned by an angle, whose sine and cosine both halves would compute.
    def turned(x, y, angle):
        s, c = fn.sin(angle), fn.cos(angle)
        return [concatenate([sub(mul(x, c), mul(y, s)), add(mul(y, c), mul(x, s))], 1)]

    half = spec(N, N)
    run = compiled(turned, half, half, half, tolerance=1e-6)
    assert run.memory_analysis()["temp_size_in_bytes"] >= 2 * WHOLE
