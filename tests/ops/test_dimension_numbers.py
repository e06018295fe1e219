"""Dimension numbers, sizes and indices that do not fit are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp

X = jnp.ones((4, 3, 2))
NUMBERS = lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
G, S = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers


@pytest.mark.parametrize(("indices", "numbers", "sizes", "text"), [
    ((5, 1), G((2, 1), (0,), (0,)), (1, 3, 2), "offset_dims in gather op must be sorted"),
    ((5, 1), G((1, 1), (0,), (0,)), (1, 3, 2), "offset_dims in gather op must not repeat"),
    ((5, 1), G((1, 3), (0,), (0,)), (1, 3, 2), "Offset dimension 1 in gather op is out of bounds"),
    ((5, 2), G((1, 2), (0,), (0,)), (1, 3, 2), "Gather op has 1 elements in start_index_map and"),
    ((5, 1), G((1, 2), (0,), (3,)), (1, 3, 2), "Invalid start_index_map"),
    ((5, 2), G((1, 2), (0,), (1, 1)), (1, 3, 2), "start_index_map in gather op must not repeat"),
    ((5, 1), G((1,), (1, 0), (0,)), (1, 1, 2), "collapsed_slice_dims in gather op must be sorted"),
    ((5, 1), G((1, 2), (4,), (0,)), (1, 3, 2), "Invalid collapsed_slice_dims set in gather op"),
    ((4, 1), G((1,), (0,), (1,), (0,), (0,)), (1, 1, 2), "operand_batching_dims in gather op must "
     "be disjoint"),
    ((4, 1), G((1,), (1,), (0,), (0,), (0,)), (1, 1, 2), "start_index_map and operand_batching"),
    ((4, 1), G((1,), (1,), (1,), (0,), (0, 0)), (1, 1, 2), "start_indices_batching_dims in gather "
     "op must not repeat"),
    ((4, 1), G((1,), (1,), (1,), (0,), (2,)), (1, 1, 2), "Invalid start_indices_batching_dims set"),
    ((4, 1), G((1,), (1,), (1,), (0,), (1,)), (1, 1, 2), "cannot have the index vector dimension"),
    ((4, 1), G((1,), (1,), (1,), (0,), ()), (1, 1, 2), "requires equal numbers of operand_bat"),
    ((5, 1), G((1,), (1,), (1,), (0,), (0,)), (1, 1, 2), "to have the same shape"),
    ((5, 1), G((1, 2), (0,), (0,)), (1, 3), "one slice size for every input dimension"),
    ((5, 1), G((1,), (0,), (0,)), (1, 3, 2), "All components of the offset index in a gather op"),
    ((5, 1), G((1, 2), (0,), (0,)), (1, 3, 5), "Slice size at index 2 in gather op is out"),
    ((5, 1), G((1, 2), (0,), (0,)), (2, 3, 2), "collapse slice dims with bound 1, but bound is 2"),
    ((4, 1), G((1,), (1,), (1,), (0,), (0,)), (2, 1, 2), "batching dims with bound 0/1, but bound"),
])  # fmt: skip
def test_gather_numbers(indices, numbers, sizes, text) -> None:
    with pytest.raises(TypeError, match=text):
        lax.gather(X, np.zeros(indices, np.int32), numbers, sizes)


@pytest.mark.parametrize(("indices", "updates", "numbers", "text"), [
    ((5, 1), (5, 3), S((1, 2), (0,), (0,)), "Updates tensor must be of rank 3; got 2"),
    ((5, 1), (5, 3, 2), S((2, 1), (0,), (0,)), "update_window_dims in scatter op must be sorted"),
    ((5, 1), (5, 3, 2), S((1, 3), (0,), (0,)), "Invalid update_window_dims set in scatter op"),
    ((5, 1), (5, 3, 2), S((1, 2), (0, 0), (0,)), "inserted_window_dims in scatter op must not rep"),
    ((5, 1), (5, 3, 2), S((1, 2), (7,), (0,)), "Invalid inserted_window_dims set in scatter op"),
    ((5, 1), (5, 3), S((1,), (0,), (0,)), "Scatter op has window of size 2; doesn't match operand"),
    ((5, 2), (5, 3, 2), S((1, 2), (0,), (0,)), "Scatter op has 1 elements in scatter_dims_to_oper"),
    ((5, 1), (5, 3, 2), S((1, 2), (0,), (3,)), "Invalid scatter_dims_to_operand_dims mapping"),
    ((5, 2), (5, 3, 2), S((1, 2), (0,), (0, 0)), "scatter_dims_to_operand_dims in scatter op must "
     "not repeat"),
    ((5, 1), (5, 4, 2), S((1, 2), (0,), (0,)), "Bounds of the window dimensions of updates"),
    ((5, 1), (4, 3, 2), S((1, 2), (0,), (0,)), "Bounds of the scatter dimensions of updates"),
    ((5, 1), (5, 2), S((1,), (1,), (1,), (0,), (0,)), "to have the same shape"),
])  # fmt: skip
def test_scatter_numbers(indices, updates, numbers, text) -> None:
    with pytest.raises(TypeError, match=text):
        lax.scatter(X, np.zeros(indices, np.int32), jnp.ones(updates), numbers)


def test_no_windows_may_be_larger_than_nothing() -> None:
    out = lax.gather(jnp.ones((0, 2)), np.zeros((0, 1), np.int32), G((1,), (0,), (0,)), (1, 2))
    assert out.shape == (0, 2)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: lax.dynamic_slice(X[0], (np.int32(0), np.int16(1)), (1, 1)), TypeError,
     "index arguments to dynamic_slice must be integers of the same type"),
    (lambda: lax.dynamic_update_slice(X[0], X[0, :1], (np.uint8(0), jnp.array(1))), TypeError,
     "index arguments to dynamic_update_slice must be integers of the same type"),
    (lambda: lax.broadcast_in_dim(X, (4, 3), (0, 1, 2)), TypeError,
     "target broadcast shape must have equal or higher rank to the operand shape"),
    (lambda: lax.reduce({"a": X}, {"b": 0.0}, lambda x, y: x, (0,)), ValueError,
     "Operands must have the same tree structure as init_values"),
    (lambda: lax.reduce(X, X[0, 0], lax.add, (0,)), ValueError,
     "reduce found non-scalar initial value"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (0, 1, 1), (1, 1, 1), "VALID"), TypeError,
     "must have every element be strictly positive"),
    (lambda: lax.reduce_window(X, np.zeros(1, np.float32), lax.max, (1, 1, 1), (1, 1, 1), "VALID"),
     TypeError, r"reduce_window expected init_values to be scalars but init_values have shapes \["),
    (lambda: lax.split(X, (5, -1)), ValueError, "Sizes passed to split must be nonnegative"),
    (lambda: lax.split(X, (5,)), ValueError, "Sum of sizes 5 must be equal to dimension 0 of the"),
    (lambda: lax.conv_general_dilated(X, X[None], (1,), [(0, 0)], dimension_numbers=NUMBERS),
     ValueError, "conv_general_dilated lhs and rhs must have the same number of dimensions"),
    (lambda: lax.reshape(X, (2.5, 4)), TypeError, "Shapes must be 1D sequences of concrete values"),
    (lambda: nj.eval_shape(lambda x: lax.top_k(x, 1), nj.ShapeDtypeStruct((2**31,), "int8")),
     ValueError, "top_k returns int32 indices, which will overflow"),
    (lambda: lax.iota(str, 3), TypeError, "JAX only supports number, bool, and string dtypes"),
    (lambda: lax.conj(jnp.ones(2, jnp.float8_e5m2)), TypeError, "conj does not accept dtype"),
    (lambda: lax.bitcast_convert_type(jnp.ones(2, int), jnp.complex64), TypeError,
     "does not support bool or complex values"),
])  # fmt: skip
def test_arguments_are_refused(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_fold_of_bits_from_all_ones_is_one_reduction() -> None:
    for dtype, start in ((bool, True), (jnp.int16, -1), (jnp.uint8, 255)):
        jaxpr = nj.make_jaxpr(lambda x: lax.reduce(x, dtype(start), lax.bitwise_and, (0,)))(  # noqa: B023
            jnp.ones(3, dtype)
        )
        assert [e.primitive.name for e in jaxpr.eqns] == ["reduce_and"]


def test_same_padding_of_windows_counts_no_gaps_of_the_base() -> None:
    x = jnp.ones((4,))
    out = lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "SAME", base_dilation=(2,))
    assert out.shape == (3,)


def test_products_told_to_be_integers_saturate_as_in_programs() -> None:
    x = jnp.array([[-2.5, 300.0], [2.5, -1.0]])
    product = lambda: lax.dot(x, jnp.eye(2), preferred_element_type=np.uint8)  # noqa: E731
    np.testing.assert_array_equal(product(), [[0, 255], [2, 0]])
    np.testing.assert_array_equal(nj.jit(product)(), [[0, 255], [2, 0]])


def test_strides_of_convolutions_are_counted_before_padding() -> None:
    with pytest.raises(ValueError, match="window and window_strides must have the same number of"):
        lax.conv(jnp.ones((1, 1, 5, 5)), jnp.ones((1, 1, 2, 2)), (2,), "SAME")
