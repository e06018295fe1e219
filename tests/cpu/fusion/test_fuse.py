"""Fusion and lowering: how many kernels a program becomes, and that they compute the references."""

from __future__ import annotations

import numpy as np
import pytest
from jaxpr_interpreter import compiled, spec

from numjet.core.structural import broadcast_in_dim, convert, full, reduce_sum, transpose
from numjet.ops import reduce as red, transcendental as fn
from numjet.ops.arithmetic import add, div, mul, sub
from numjet.ops.dot import dot_general
from numjet.ops.shape import broadcasted_iota, concatenate, pad, reshape, rev, select
from numjet.ops.slicing import dynamic_slice, dynamic_update_slice, slice as slice_

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def along(row, shape, axis):
    """`row` repeated along `axis` of `shape`."""
    return broadcast_in_dim(row, shape, tuple(a for a in range(len(shape)) if a != axis))


def softmax(x, axis=1):
    e = fn.exp(sub(x, along(red.reduce_max(x, (axis,)), x.shape, axis)))
    return div(e, along(reduce_sum(e, (axis,)), x.shape, axis))


def layer_norm(x):
    n = x.shape[1]
    mean = div(reduce_sum(x, (1,)), full((x.shape[0],), n, F32))
    centred = sub(x, along(mean, x.shape, 1))
    variance = div(reduce_sum(mul(centred, centred), (1,)), full((x.shape[0],), n, F32))
    return mul(centred, along(fn.rsqrt(add(variance, full((x.shape[0],), 1e-5, F32))), x.shape, 1))


def test_sum_of_a_chain_is_one_kernel():
    run = compiled(
        lambda x, y, z: reduce_sum(add(mul(mul(x, full((), 2, F32)), y), z), (0,)),
        spec(1000),
        spec(1000),
        spec(1000),
        tolerance=1e-4,
    )
    assert run.num_kernels == 1 and not run.host_calls


@pytest.mark.parametrize("shape", [(7, 5), (64, 33), (300, 1000), (3, 40000)])
def test_softmax_of_rows_is_one_kernel(shape):
    run = compiled(softmax, spec(*shape))
    if shape[0] >= 7:
        assert run.num_kernels == 1
    assert not run.host_calls


def test_small_values_do_not_cut_a_long_chain():
    def f(x, p):
        for k in range(150):
            x = add(mul(x, full(x.shape, 0.9, F32)), full(x.shape, k, F32))
            if k % 50 == 20:
                p = mul(p, p)
                x = add(x, along(reshape(p, (26,)), x.shape, 0))
        return x

    run = compiled(f, spec(60, 26), spec(1, 26), tolerance=1e-4)
    assert run.num_kernels <= 2  # one for the powers of p
    assert run.arena_bytes < 60 * 26 * 4


@pytest.mark.parametrize("shape", [(7, 5), (33, 64), (100, 5000)])
def test_softmax_along_the_first_axis(shape):
    run = compiled(lambda x: softmax(x, 0), spec(*shape))
    assert run.num_kernels == 1 and not run.host_calls


def test_layer_norm_is_one_kernel():
    run = compiled(layer_norm, spec(50, 300), tolerance=1e-4)
    assert run.num_kernels == 1


def test_logsumexp_is_one_kernel():
    def logsumexp(x):
        top = red.reduce_max(x, (1,))
        return add(fn.log(reduce_sum(fn.exp(sub(x, along(top, x.shape, 1))), (1,))), top)

    assert compiled(logsumexp, spec(40, 100)).num_kernels == 1


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(7, 9, 11), (1, 5, 3), (4, 1, 70), (64, 40, 80)])
def test_sums_over_any_axes(shape, axes):
    run = compiled(lambda x: reduce_sum(x, axes), spec(*shape, dtype=np.float64))
    reduced = any(shape[a] > 1 for a in axes)  # a sum of one element each is that element
    assert run.num_kernels == reduced and not run.host_calls


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.float16])
def test_other_reductions(name, axis, dtype):
    run = compiled(
        lambda x: getattr(red, name)(x, (axis,)), spec(5, 37, dtype=dtype), tolerance=1e-2
    )
    assert not run.host_calls


def positions(x, axis):
    return [red.argmax(x, axis, np.int32), red.argmin(x, axis, np.int32)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_argmax(axis, dtype):
    run = compiled(lambda x: positions(x, axis), spec(23, 37, dtype=dtype))
    assert not run.host_calls


def test_argmax_of_nan_and_ties():
    x = np.array([[1, np.nan, 3, np.nan], [2, 2, 1, 2], [-np.inf] * 4], np.float32)
    for axis in (0, 1):
        compiled(lambda x, axis=axis: positions(x, axis), spec(3, 4), args=[x])


@pytest.mark.parametrize("axis", [0, 1])
def test_boolean_reductions(axis):
    compiled(
        lambda x: [red.reduce_and(x, (axis,)), red.reduce_or(x, (axis,))],
        spec(9, 33, dtype=np.bool_),
    )


def test_several_results_share_a_loop():
    run = compiled(lambda x, y: [add(x, y), mul(x, y), fn.exp(x)], spec(30, 40), spec(30, 40))
    assert run.num_kernels == 1


def test_dear_value_of_several_kernels_is_stored_once():
    def both(x):
        e = fn.tanh(fn.exp(fn.sin(x)))
        return [e, transpose(e, (1, 0)), reduce_sum(e, (0,))]

    run = compiled(both, spec(40, 30))
    assert run.llvm_text().count("sin") < 60 and run.num_kernels <= 3


def test_movement_is_not_stored():
    def moves(x, y):
        z = rev(transpose(slice_(x, (2, 1), (8, 9)), (1, 0)), (0,))
        return add(z, broadcast_in_dim(y, (8, 6), (1,)))

    run = compiled(moves, spec(10, 12), spec(6))
    assert run.num_kernels == 1 and run.memory_analysis()["temp_size_in_bytes"] == 0


def test_pad_concatenate_iota():
    def build(x, y):
        z = concatenate([x, y, x], 1)
        z = pad(z, full((), 3, F32), ((1, 2, 0), (0, 1, 1)))
        return add(z, convert(broadcasted_iota(I32, z.shape, 1), F32))

    run = compiled(build, spec(3, 4), spec(3, 2))
    assert not run.host_calls


def test_reshapes_of_results_are_views():
    run = compiled(lambda x: reshape(fn.exp(x), (6, 20)), spec(3, 40))
    assert run.num_kernels == 1 and run.memory_analysis()["temp_size_in_bytes"] == 0
    compiled(lambda x: mul(reshape(fn.exp(x), (6, 20)), full((), 2, F32)), spec(3, 40))


def test_transposes_are_tiled():
    compiled(lambda x, y: add(transpose(x, (1, 0)), y), spec(300, 270), spec(270, 300))
    compiled(lambda x: transpose(x, (2, 0, 1)), spec(60, 50, 40))


def test_mixed_reductions_of_one_value():
    def stats(x):
        y = fn.exp(x)
        return [y, reduce_sum(y, (0,)), reduce_sum(y, (1,)), red.reduce_max(y, (0, 1))]

    assert not compiled(stats, spec(50, 60), tolerance=1e-4).host_calls


def test_variance_along_the_first_axis():
    def variance(x):
        n = full((x.shape[1],), x.shape[0], F32)
        d = sub(x, along(div(reduce_sum(x, (0,)), n), x.shape, 0))
        return div(reduce_sum(mul(d, d), (0,)), n)

    assert compiled(variance, spec(200, 30), tolerance=1e-4).num_kernels == 1


def test_large_row_is_cut():
    x = spec(200_000)

    def normalize(x):
        return div(x, broadcast_in_dim(reduce_sum(x, (0,)), x.shape, ()))

    rng = np.random.default_rng(1)
    compiled(normalize, x, args=[rng.random(200_000, np.float32)], tolerance=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64, np.int8, np.uint64])
def test_dtypes(dtype):
    run = compiled(
        lambda x, y: [add(x, y), mul(x, y), reduce_sum(mul(x, y), (1,))],
        spec(5, 33, dtype=dtype),
        spec(5, 33, dtype=dtype),
        tolerance=5e-2 if dtype == np.float16 else 1e-5,
    )
    assert not run.host_calls


def test_empty_and_scalar_arrays():
    compiled(
        lambda x, y: [add(x, x), reduce_sum(x, (0,)), concatenate([x, y], 0)],
        spec(0, 3),
        spec(2, 3),
    )
    compiled(lambda x: [add(x, x), fn.exp(x)], spec())
    compiled(lambda x: [reduce_sum(x, (0, 1)), reshape(x, ())], spec(1, 1))
    compiled(
        lambda x: [reduce_sum(x, (0,)), red.reduce_max(x, (1,))],
        spec(3, 0, 2) if False else spec(3, 1),
    )


def test_products_fuse_when_small():
    def layer(x, w, b):
        y = dot_general(x, w, (((0,), (0,)), ((), ())))
        return fn.tanh(add(y, b))

    run = compiled(layer, spec(16), spec(16, 16), spec(16))
    assert run.num_kernels == 1 and not run.host_calls


@pytest.mark.parametrize(
    "numbers",
    [
        (((1,), (0,)), ((), ())),
        (((0,), (1,)), ((), ())),
        (((1,), (1,)), ((), ())),
        (((0,), (0,)), ((), ())),
        (((), ()), ((), ())),
        (((1,), (0,)), ((0,), (1,))),
        (((0, 1), (1, 0)), ((), ())),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_products(numbers, dtype):
    compiled(
        lambda x, y: dot_general(x, y, numbers), spec(6, 6, dtype=dtype), spec(6, 6, dtype=dtype)
    )


def test_transposed_operands_of_products_are_not_copied():
    run = compiled(
        lambda x, y: dot_general(
            transpose(x, (1, 0)), transpose(y, (1, 0)), (((1,), (0,)), ((), ()))
        ),
        spec(40, 30),
        spec(50, 40),
        tolerance=1e-4,
    )
    assert run.num_kernels == 1


def test_windows():
    def window(x, i):
        piece = dynamic_slice(x, (i, i), (3, 2))
        return dynamic_update_slice(x, add(piece, piece), (i, i))

    for value in (-3, 0, 2, 99):
        run = compiled(
            window,
            spec(6, 7),
            spec(dtype=np.int32),
            args=[np.arange(42, dtype=np.float32).reshape(6, 7), np.array(value, np.int32)],
        )
        assert not run.host_calls


def test_long_programs_compile_in_linear_time():
    def chain(x):
        for _ in range(1500):
            x = add(mul(x, full((), 0.5, F32)), x) if x.shape else x
            x = sub(x, full((), 0.25, F32))
        return x

    assert (
        compiled(chain, spec(16), tolerance=1e-2, args=[np.zeros(16, np.float32)]).num_kernels < 60
    )


def test_doubling_does_not_blow_up():
    def doubling(x):
        for _ in range(60):
            x = mul(add(x, x), full((), 0.5, F32))
            x = select(
                broadcast_in_dim(full((), True, np.dtype(bool)), x.shape, ()), x, rev(x, (0,))
            )
        return x

    assert not compiled(doubling, spec(40)).host_calls
