"""What becomes of numbers whose dtype changes: lost imaginary parts, boolean sums, exponents;
the dtypes of memory that other objects lend."""

from __future__ import annotations

import array
import collections
import ctypes
import warnings

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, nn
from numjet.scipy import special

C = jnp.array([1 + 2j, 0, 2 - 1j], jnp.complex64)
F = jnp.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda: lax.convert_element_type(C, jnp.float32),
        lambda: lax.convert_element_type(C, jnp.int32),
        lambda: lax.convert_element_type(C, bool),
        lambda: nj.jit(lambda x: lax.convert_element_type(x, jnp.float32))(C),
        lambda: jnp.array(C, jnp.float32),
        lambda: jnp.asarray(C, "int32"),
        lambda: jnp.float32(C),
        lambda: jnp.sum(C, dtype=jnp.float32),
        lambda: jnp.mean(C, dtype=jnp.float32),
        lambda: jnp.cumsum(C, dtype=jnp.float32),
        lambda: jnp.trace(jnp.outer(C, C), dtype=jnp.float32),
        lambda: jnp.full((2,), C[0], jnp.float32),
        lambda: jnp.concatenate([C, F], dtype=jnp.float32),
        lambda: jnp.sum(F, initial=1j),
    ],
)
def test_lost_imaginary_parts_are_told(function):
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        out = function()
    assert not jnp.iscomplexobj(out)


def test_a_write_of_complex_numbers_is_told_twice():
    with pytest.warns(FutureWarning, match="incompatible types"):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert F.at[0].set(C[2]).tolist() == [2.0, -1.0, 2.0]


def test_real_parts_on_purpose_are_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nj.grad(lambda x: jnp.abs(x + 1j * x).sum())(1.0)
        nj.grad(lambda x: lax.convert_element_type(x, jnp.complex64).real)(1.0)
        jnp.var(C), jnp.std(C), jnp.real(C), jnp.linalg.norm(C), jnp.fft.irfft(C)
        jnp.full((2,), 1j, jnp.complex64), C.astype(bool)
        assert jnp.dot(C, C[0], preferred_element_type=jnp.float32).dtype == jnp.float32
    with pytest.warns(DeprecationWarning, match="Take .real"):
        assert C.astype(float).tolist() == [1.0, 0.0, 2.0]


def test_complex_numbers_that_are_converted_are_true_by_their_real_parts():
    x = jnp.array([2j, 1 - 1j, 0, 0.5])
    for run in (lambda f: f, nj.jit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted = run(lambda x: lax.convert_element_type(x, bool))(x)
            made = run(lambda x: jnp.full_like(jnp.zeros(4, bool), x))(x)
        assert converted.tolist() == made.tolist() == [False, True, False, True]
        assert run(lambda x: x.astype(bool))(x).tolist() == [True, True, False, True]
    with pytest.warns(np.exceptions.ComplexWarning):
        assert jnp.full_like(3.0, 2 + 1j) == 2.0
    with pytest.raises(ValueError, match="fewer dimensions"):
        jnp.full_like(3.0, jnp.ones(2))
    small = jnp.array([1, -2, 3], "int4")
    assert jnp.ldexp(jnp.array([1.0, 8.0, 0.5]), small).tolist() == [2.0, 2.0, 4.0]


def test_sums_that_are_booleans():
    m = jnp.array([[0.0, 0.5], [0.0, 0.0]])
    for function in (jnp.sum, jnp.nansum, lambda x, **k: x.sum(**k)):
        assert function(m, dtype=bool).dtype == bool and bool(function(m, dtype=bool))
        assert function(m, axis=1, dtype=bool).tolist() == [True, False]
    assert jnp.sum(m, axis=1, dtype=bool, keepdims=True, where=m < 0, initial=2).all()
    assert bool(nj.jit(lambda x: jnp.trace(x, dtype=bool))(m)) is False


def test_integers_to_negative_powers_inside_jit():
    """The low six bits of the exponent count, whether it is known or not."""
    x, y = jnp.array([3, -1, 2, 7]), jnp.int32(-2)
    known = nj.jit(lambda x: x**y)(x)
    assert known.tolist() == nj.jit(lambda x, y: x**y)(x, y).tolist()
    assert known.tolist() == [703701817, 1, 0, 767209169]
    with pytest.raises(TypeError, match="negative powers"):
        x**y
    with pytest.raises(TypeError, match="negative powers"):
        nj.jit(lambda x: x**-2)(x)


def test_bounds_of_loops_without_a_sign_are_no_numbers_dtype():
    count = lambda low, high: lax.fori_loop(low, high, lambda i, c: c + i, 1)  # noqa: E731
    assert int(count(0, jnp.int16(3))) == 4
    for run in (count, nj.jit(count)):
        with pytest.raises(TypeError, match="equal types, got int32 and uint8"):
            run(0, jnp.uint8(3))


def test_weights_of_other_rank_are_refused_where_ranks_are():
    m = jnp.ones((2, 3))
    with nj.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="logsumexp on shapes"):
        special.logsumexp(m, axis=1, b=jnp.ones(3))
    assert special.logsumexp(m, axis=1, b=jnp.ones(3)).shape == (2,)


def test_no_frequencies_of_nothing():
    assert np.isnan(jnp.fft.rfftfreq(0)).tolist() == [True]
    assert jnp.fft.fftfreq(0).shape == (0,)


def test_attention_of_fewer_axes():
    """Axes that are missing are the first ones."""
    q, k = jnp.arange(12.0).reshape(3, 4) / 10, jnp.arange(20.0).reshape(5, 1, 4) / 7
    whole = nn.dot_product_attention(q[None, None], k[None], k[None])
    assert (nn.dot_product_attention(q, k, k) == whole[0, 0]).all()
    assert nn.dot_product_attention(F, F, F).tolist() == F.tolist()
    with pytest.raises(ValueError, match="multiple of key/value"):
        nn.dot_product_attention(q, k[:, 0], k[:, 0])


@pytest.mark.parametrize("code", "bBhHiIfd")
def test_what_lends_its_memory_keeps_its_dtype(code):
    lender = array.array(code, [4, 1, 7])
    for x64 in (False, True):
        with nj.enable_x64(x64):
            want = jnp.asarray(np.array(lender)).dtype
            assert jnp.array(lender).dtype == jnp.asarray(lender).dtype == want
            pair = jnp.array([lender, (lender, lender)[1]])
            assert pair.dtype == want and pair.tolist() == [[4, 1, 7]] * 2


def test_memory_of_ctypes_and_of_mixed_lenders():
    table = ((ctypes.c_uint16 * 3) * 2)((1, 2, 3), (4, 5, 6))
    got = jnp.array(table)
    assert got.dtype == jnp.uint16 and got.tolist() == [[1, 2, 3], [4, 5, 6]]
    table[0][0] = 9
    assert got[0, 0] == 1
    mixed = jnp.array([array.array("b", [1, 2]), [3.0, 4.0]])
    assert mixed.dtype == jnp.float32 and mixed.tolist() == [[1, 2], [3, 4]]
    assert jnp.array([bytearray(b"ab")]).tolist() == [[97, 98]]
    assert jnp.array(array.array("d", [1.5]), dtype=int).dtype == jnp.int32
    with pytest.raises(TypeError):
        jnp.array([b"ab"])


def test_lists_of_dtypes_that_numpy_does_not_join():
    one = jnp.bfloat16(1.5)
    wide = [(np.float16(2), jnp.float32), (jnp.float32(2), jnp.float32)]
    for other, want in [(i, jnp.bfloat16) for i in (2, np.uint32(2), np.int16(2))] + wide:
        for pair in ([one, other], [other, one]):
            got = jnp.array(pair)
            assert got.dtype == want and not got.weak_type and sorted(got.tolist()) == [1.5, 2]
    assert jnp.array([[one, 2], [3, jnp.int8(4)]]).dtype == jnp.bfloat16
    assert jnp.array([one, 2], dtype=int).tolist() == [1, 2]


def test_lists_of_objects_that_numpy_reads():
    class Table:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3, dtype=np.int16)

    class Number:
        def __float__(self):
            return 2.5

    got = jnp.array([Table(), Table()])
    assert got.dtype == jnp.int16 and got.tolist() == [[0, 1, 2]] * 2
    assert jnp.array([collections.deque([1, 2]), [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert jnp.array([Number(), 1], dtype=float).tolist() == [2.5, 1]
    assert jnp.array(np.longdouble(1.5), dtype=jnp.bfloat16) == 1.5
    with pytest.raises(TypeError):
        jnp.array([Number()])
    with pytest.raises(TypeError):
        jnp.array([{"a": 1}])


@pytest.mark.parametrize("dtype", [np.int16, np.dtype("int16"), "int16", jnp.int16])
def test_the_dtype_of_bytes_and_text_may_be_numpys_type(dtype):
    read = jnp.frombuffer(b"\x01\x00\x02\x01", dtype=dtype)
    assert read.dtype == np.int16 and read.tolist() == [1, 258]
    read = jnp.fromstring("3 -4", dtype=dtype, sep=" ")
    assert read.dtype == np.int16 and read.tolist() == [3, -4]
