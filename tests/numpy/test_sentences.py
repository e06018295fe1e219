"""What errors say, where programs match the sentence, and cases at the edges of functions."""

from __future__ import annotations

import io

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

C = jnp.array([2 + 1j, 3])
M = jnp.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: jnp.clip(C), ValueError, "Complex values have no ordering and cannot be clipped"),
    (lambda: jnp.hypot(C, C), ValueError, "jnp.hypot is not well defined for complex-valued"),
    (lambda: jnp.tensordot(M, M, ([0], [0, 1])), TypeError, "axes lists to have equal length"),
    (lambda: jnp.tensordot(M, M, ("a", "b")), TypeError, "both axes lists to be either ints, tu"),
    (lambda: jnp.tensordot(M, M, "ab"), TypeError, "axes argument must be an int, a pair of ints"),
    (lambda: jnp.pad(M, 1, 7), NotImplementedError, "Unimplemented padding mode '7' for np.pad."),
    (lambda: jnp.trace(M, axis1=0, axis2=-2), ValueError, "axis1 and axis2 can not be same"),
    (lambda: jnp.rot90(M[0]), ValueError, "rot90 requires its first argument to have ndim at lea"),
    (lambda: jnp.expand_dims(M, (0, -4)), ValueError, "repeated axis"),
    (lambda: jnp.size(M, (1, -1)), ValueError, "repeated axis"),
    (lambda: jnp.sum(M, (1, -1)), ValueError, r"duplicate value in 'axis': \(1, -1\)"),
    (lambda: jnp.broadcast_to(M, (4,)), ValueError, "Cannot broadcast to shape with fewer dimen"),
    (lambda: jnp.broadcast_to(M, (2, 4)), ValueError, "Incompatible shapes for broadcasting: "),
    (lambda: jnp.interp(0.5, M[0], M[0], left="last"), ValueError,
     "the only valid string value of `left` is 'extrapolate', but got: 'last'"),
    (lambda: jnp.interp(0.5, M[0], M[0], period=np.ones(2)), ValueError, "period must be a scal"),
    (lambda: jnp.interp(1j, M[0], M[0]), ValueError, "jnp.interp: complex x values not supported"),
    (lambda: jnp.zeros(4, 5), TypeError,
     r"Did you accidentally write `jax\.numpy\.zeros\(4, 5\)` when you meant `jax\.numpy\.zeros\("),
    (lambda: jnp.ones(2, str), TypeError, "JAX only supports number, bool, and string dtypes"),
    (lambda: jnp.corrcoef(M, dtype=int), ValueError, "corrcoef: dtype must be a subclass of float"),
    (lambda: jnp.cov(M, dtype=bool), ValueError, "cov: dtype must be a subclass of float or comp"),
    (lambda: jnp.take(jnp.ones((0, 2)), jnp.array([1]), axis=0), IndexError, "non-empty jnp.take"),
    (lambda: jnp.take_along_axis(M, M, axis=0), TypeError,
     "take_along_axis indices must be of integer type, got float32"),
    (lambda: jnp.gradient(M[0], jnp.ones(3)), ValueError, "spacing arrays must have the same leng"),
    (lambda: nj.jit(lambda a, b: jnp.mgrid[a:b])(0, 2), nj.errors.ConcretizationTypeError,
     "slice start of jnp.mgrid"),
    (lambda: nj.jit(lambda a: jnp.c_[0:a])(2), nj.errors.ConcretizationTypeError,
     "slice stop of jnp.c_"),
    (lambda: nj.jit(lambda i: jnp.ravel_multi_index((i,), (3,)))(1),
     nj.errors.ConcretizationTypeError,
     "ravel_multi_index was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' inst"),
    (lambda: nj.jit(lambda i: jnp.choose(i, [1, 2]))(1), nj.errors.ConcretizationTypeError,
     "jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' instead."),
    (lambda: nj.jit(lambda x: x.tolist())(M), nj.errors.ConcretizationTypeError,
     r"The tolist\(\) method was called on traced array"),
    (lambda: nj.jit(lambda x: x.tobytes())(M), nj.errors.ConcretizationTypeError,
     r"The tobytes\(\) method was called on traced array"),
    (lambda: nj.jit(lambda x: jnp.polymul(x, x, trim_leading_zeros=True))(M[0]),
     nj.errors.ConcretizationTypeError, "size depends on the coefficients"),
    (lambda: nj.jit(jnp.zeros)(3), TypeError,
     "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."),
])  # fmt: skip
def test_errors_say(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_strict_promotion_takes_what_is_mixed_by_nature() -> None:
    with nj.numpy_dtype_promotion("strict"):
        assert jnp.array([]).shape == (0,)
        assert jnp.array([[]]).dtype == jnp.float32
        out = nj.jit(jnp.array)([[1, 2.5], [3, 4]])
        np.testing.assert_array_equal(out, [[1, 2.5], [3, 4]])
        assert jnp.mgrid[0:1:3j, 2:4].shape == (2, 3, 2)
        assert nj.lax.mul(jnp.int8(100), jnp.int8(3), out_dtype=jnp.int16) == 300
    assert jnp.mgrid[()].shape == (0,)
    assert jnp.ogrid[()] == []


def test_decimals_that_no_number_has_change_nothing() -> None:
    x = jnp.array([0.1, -2.5, 1e20])
    for decimals in (60, 400):
        np.testing.assert_array_equal(jnp.round(x, decimals), x)
    np.testing.assert_array_equal(jnp.round(x.astype(jnp.bfloat16), 90), x.astype(jnp.bfloat16))
    np.testing.assert_array_equal(jnp.round(C, 99), C)


def test_a_copy_outlives_what_astype_was_given() -> None:
    x = jnp.arange(3)
    y = x.astype(x.dtype, copy=True)
    y.delete()
    np.testing.assert_array_equal(x, [0, 1, 2])
    z = jnp.astype(x, x.dtype, copy=True)
    x.delete()
    np.testing.assert_array_equal(z, [0, 1, 2])


def test_the_pointer_of_parts_of_complex_numbers_is_to_their_own_memory() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        x = nj.lax.convert_element_type(jnp.array([1 + 9j, 2 + 9j, 3]), jnp.float32)
    address = x.unsafe_buffer_pointer()
    there = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 3).from_address(address))
    np.testing.assert_array_equal(there, [1, 2, 3])


def test_view_without_a_dtype_is_the_array() -> None:
    x = jnp.ones(3, jnp.uint32)
    assert x.view().dtype == jnp.uint32


def test_arrays_tell_whether_they_are_committed_under_both_names() -> None:
    assert not jnp.ones(2)._committed
    assert nj.device_put(jnp.ones(2), nj.devices()[0])._committed


def test_closeness_takes_tolerances_without_bound() -> None:
    x, y = jnp.array([np.inf, 1.0, np.nan, np.inf]), jnp.array([1.0, 2.0, 1.0, np.inf])
    np.testing.assert_array_equal(jnp.isclose(x, y, rtol=np.inf), [True, True, False, True])
    np.testing.assert_array_equal(jnp.isclose(x, y, atol=np.inf), [True, True, False, True])
    np.testing.assert_array_equal(jnp.isclose(x, y), [False, False, False, True])


def test_geometric_progressions_of_ranks_that_differ() -> None:
    start, stop = jnp.array([1.0, 2.0]), jnp.array([[4.0, 8.0], [16.0, 32.0]])
    for axis in (0, 1, -1, -2):
        out = jnp.geomspace(start, stop, 3, axis=axis)
        np.testing.assert_allclose(out, np.geomspace(start, stop, 3, axis=axis), rtol=1e-5)


def test_gradient_takes_coordinates_of_several_axes() -> None:
    rows, columns = np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5, 2.0, 2.5])
    for ours, theirs in zip(jnp.gradient(M, rows, columns), np.gradient(M, rows, columns)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_piecewise_traces_functions_once() -> None:
    traced = []

    def twice(x):
        traced.append(x)
        return 2 * x

    x = jnp.arange(4.0)
    for _ in range(3):
        out = jnp.piecewise(x, [x < 2], [twice, -1.0])
    np.testing.assert_array_equal(out, [0, 2, -1, -1])
    assert len(traced) == 1


def test_ravel_multi_index_takes_indices_as_they_are() -> None:
    index = jnp.array([0, 1], jnp.int16)
    out = jnp.ravel_multi_index((index, index), (2, 3), mode="ignore", dtype=jnp.int8)
    assert out.dtype == jnp.int8
    np.testing.assert_array_equal(out, [0, 4])


def test_one_hot_reads_are_zero_outside() -> None:
    out = jnp.take_along_axis(jnp.array([5.0, 6.0]), jnp.array([1, 0, 2]), mode="one_hot")
    np.testing.assert_array_equal(out, [6, 5, 0])


def test_load_gives_objects_as_numpy_does() -> None:
    file = io.BytesIO()
    jnp.save(file, np.array([1, "a"], dtype=object))
    file.seek(0)
    assert jnp.load(file, allow_pickle=True).tolist() == [1, "a"]


def test_the_covariance_has_the_dtype_that_is_asked_for() -> None:
    assert jnp.cov(M, M, dtype=jnp.bfloat16).dtype == jnp.bfloat16
    assert jnp.corrcoef(M, M, dtype="bfloat16").dtype == jnp.bfloat16
    assert jnp.polyfit(M[0], M[1], 1, rcond=-1, full=True)[4].dtype == jnp.float32


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: M[[0]], TypeError, r"use `arr\[array\(seq\)\]`"),
    (lambda: M[[0, None]], TypeError, r"use `arr\[tuple\(seq\)\]`"),
    (lambda: M.at[[0, slice(1)]].set(0), TypeError, r"use `arr\[tuple\(seq\)\]`"),
    (lambda: jnp.cumulative_sum(2.0), ValueError, "The input must be non-scalar to take a"),
    (lambda: jnp.cumulative_prod(M), ValueError, r"The input array has rank \d*, however"),
    (lambda: jnp.logical_or.accumulate(M, axis=None), ValueError, "does not allow multiple axes"),
    (lambda: jnp.ldexp(C, 1), ValueError, "not supported for input types complex64"),
    (lambda: jnp.maximum.accumulate(M, axis=None), ValueError, "does not allow multiple axes"),
    (lambda: jnp.bitwise_and.reduce(M), ValueError, "integer argument required; got dtype=float32"),
    (lambda: jnp.roll(M, jnp.ones((2, 2), int), 0), ValueError, "must be scalars or 1D arrays"),
    (lambda: jnp.arange([3]), TypeError, "arange requires ndarray, scalar, or None arguments"),
    (lambda: jnp.linalg.cond(jnp.ones((0, 3))), ValueError, "cond: input array must not be empty"),
    (lambda: jnp.linalg.pinv(M, rtol=0.1, rcond=0.1), ValueError, "only one of rtol and rcond"),
    (lambda: jnp.linalg.lstsq(M[None], M[0]), TypeError, "Array must be two-dimensional"),
    (lambda: nj.scipy.linalg.expm(jnp.ones((2, 2), jnp.bfloat16)), TypeError, "is not supported"),
])  # fmt: skip
def test_more_errors_say(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_methods_of_ufuncs_keep_to_strict_flags() -> None:
    with nj.numpy_dtype_promotion("strict"), nj.numpy_rank_promotion("raise"):
        assert jnp.subtract.outer(M, M[0]).shape == (3, 4, 4)
        assert jnp.frompyfunc(lambda x, y: x * y, 2, 1).outer(M[0], M[1]).shape == (4, 4)
        assert jnp.logical_and.reduce(M[1:], initial=3).tolist() == [True] * 4
        assert nj.jit(jnp.isreal)(jnp.ones(2, bool)).tolist() == [True, True]


def test_folds_have_the_dtype_of_what_the_function_gives() -> None:
    assert jnp.logical_xor.reduce(M).dtype == jnp.bool_
    out = jnp.logaddexp.reduce(jnp.array([1, 2, 3]))
    np.testing.assert_allclose(out, np.logaddexp.reduce([1.0, 2.0, 3.0]), rtol=1e-5)
    out = jnp.logaddexp2.accumulate(jnp.array([1, 2, 3]))
    np.testing.assert_allclose(out, np.logaddexp2.accumulate([1.0, 2.0, 3.0]), rtol=1e-5)


def test_jaxprs_of_sums_show_casts_after_a_trace_that_shows_none() -> None:
    x = jnp.ones(6, jnp.float16)
    nj.jit(jnp.sum)(x)
    names = [e.primitive.name for e in nj.make_jaxpr(jnp.sum)(x).eqns]
    assert names == ["convert_element_type", "reduce_sum", "convert_element_type"]


def test_shapes_of_lists_are_told_with_a_warning() -> None:
    for function, answer in ((jnp.shape, (2,)), (jnp.ndim, 1), (jnp.size, 2)):
        with pytest.warns(DeprecationWarning, match=f"{function.__name__} requires ndarray or sca"):
            assert function([4, 5]) == answer


def test_diagonals_far_away_are_all_zero() -> None:
    assert not nj.jit(lambda: jnp.eye(3, 4, k=2**80))().any()
    np.testing.assert_array_equal(nj.jit(lambda: jnp.eye(3, 4, k=3))(), np.eye(3, 4, k=3))


def test_hessenberg_forms_of_nothing() -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 2, 2)):
        h, q = nj.scipy.linalg.hessenberg(jnp.zeros(shape), calc_q=True)
        assert h.shape == q.shape == shape


def test_exponentials_of_no_matrices() -> None:
    assert nj.scipy.linalg.expm(jnp.zeros((2, 0, 0), int)).shape == (2, 0, 0)


def test_ranges_are_sequences_and_wrap() -> None:
    assert jnp.array([range(2), [3, 4]]).tolist() == [[0, 1], [3, 4]]
    assert nj.jit(lambda x: jnp.array([range(2), [x, x]]))(1.0).tolist() == [[0, 1], [1, 1]]
    for make in (lambda f: f, nj.jit):
        assert make(lambda: jnp.arange(0, 2**31, 2**30))().tolist() == [0, 2**30]
        assert make(lambda: jnp.arange(0, 2**31, 2**30, dtype=float))().tolist() == [0, 2.0**30]
