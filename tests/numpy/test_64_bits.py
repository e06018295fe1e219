"""Numbers of 64 bits: where they are the default, beside others, and outside of their block."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp


@pytest.mark.parametrize("total", [jnp.sum, jnp.nansum, nj.jit(jnp.sum), lambda x: x.sum(0)])
@pytest.mark.parametrize("kind", ["int32", "uint32", "int16"])
def test_what_integers_are_added_up_in_follows_the_flag(total, kind):
    x = jnp.arange(5).astype(kind)
    wide = "uint64" if kind[0] == "u" else "int64"
    for x64 in (False, True, False, True):
        with nj.enable_x64(x64):
            for _ in range(3):
                assert total(x).dtype == (wide if x64 else wide[:-2] + "32")


def test_full_like_keeps_64_bits_outside_of_their_block():
    with nj.enable_x64(True):
        x, i, z = jnp.array([0.3, 1.1]), jnp.array([2, 5]), jnp.array([0.3 + 1j])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [nj.lax.full_like(y, 3).dtype for y in (x, i, z)] == [x.dtype, i.dtype, z.dtype]


@pytest.mark.parametrize("kind", ["uint8", "uint32", "uint64", "int8"])
def test_counts_of_unsigned_integers(kind):
    key = nj.random.key(0)
    for x64 in (False, True):
        with nj.enable_x64(x64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = nj.random.poisson(key, 3.0, (50,), kind)
            assert drawn.dtype == nj.dtypes.canonicalize_dtype(kind)
            assert (drawn == nj.random.poisson(key, 3.0, (50,), "int32")).all()


def test_what_is_computed_of_arrays_of_32_bits_has_32_bits():
    key = nj.random.key(1)
    mean, cov = jnp.zeros(2, "float32"), jnp.eye(2, dtype="float32")
    drawn = nj.random.multivariate_normal(key, mean, cov)
    with nj.enable_x64(True):
        assert (nj.random.multivariate_normal(key, mean, cov) == drawn).all()
        assert nj.random.multivariate_normal(key, mean, jnp.eye(2)).dtype == "float64"
        image = jnp.arange(4).reshape(2, 2)
        for kind, wanted in (("uint8", "float32"), ("int32", "float32"), ("int64", "float64")):
            larger = nj.image.resize(image.astype(kind), (3, 3), "linear")
            assert larger.dtype == wanted
    assert nj.image.resize(jnp.ones((2, 3)), (0, 3), "nearest").shape == (0, 3)


def test_callbacks_are_handed_arrays_whose_dtype_counts():
    seen = []

    def note(x):
        seen.append((x.dtype, x.weak_type, (x + np.float32(1)).dtype))
        return x

    with nj.enable_x64(True):
        of = nj.ShapeDtypeStruct((), "float64")
        for call in (nj.jit, lambda f: f):
            call(lambda x: nj.pure_callback(note, of, x * 1.0))(2.0)
            call(lambda x: nj.debug.callback(note, x * 1.0))(2.0)
        nj.effects_barrier()
    strong = (np.dtype("float64"), False, np.dtype("float64"))
    # A number that is handed on at once stays weak, as in JAX.
    strong = np.dtype("float64"), False, np.dtype("float64")
    # As it is given, where debug.callback calls at once.
    assert seen == [strong] * 3 + [(np.dtype("float64"), True, np.dtype("float32"))]


def test_numbers_beyond_the_default_integer_are_of_the_arrays_dtype():
    x = jnp.arange(3, dtype="uint32")
    for run in (lambda f: f, nj.jit):
        np.testing.assert_array_equal(run(lambda x: x.at[1].set(2**32 - 9))(x), [0, 2**32 - 9, 2])
        assert int(run(lambda x: x.at[jnp.array([2])].add(2**31))(x)[2]) == 2**31 + 2
        with nj.enable_x64(True):
            big = run(lambda x: x.at[0].max(2**64 - 5))(x.astype("uint64"))
            assert (int(big[0]), big.dtype) == (2**64 - 5, "uint64")
        for beyond, kind in ((2**32, "uint32"), (2**31, "int32")):
            with pytest.raises(OverflowError):
                run(lambda x, n=beyond: x.at[0].set(n))(x.astype(kind))
    assert jnp.full(2, 2**70, "float32")[0] == 2.0**70


def test_places_and_counts_of_other_integers():
    x = jnp.arange(6.0).reshape(2, 3)
    with nj.enable_x64(True):
        for kind in ("uint64", "int8", "uint16"):
            counts = jnp.array([2, 0, 1], kind)
            assert jnp.repeat(x, counts, axis=1).tolist() == [[0, 0, 2], [3, 3, 5]]
    far = jnp.array([1, 7])
    for run in (lambda f: f, nj.jit):  # a value to fill with is used where filling is asked for
        assert run(lambda x, i: x.at[:, i].get(fill_value=9))(x, far).tolist() == [[1, 2], [4, 5]]
        assert run(lambda x, i: x.at[i[1], 0].get(fill_value=9))(x, far) == 3
        filled = run(lambda x, i: x.at[:, i].get(mode="fill", fill_value=9))(x, far)
        assert filled.tolist() == [[1, 9], [4, 9]]


def test_integers_of_32_bits_and_less_become_floats_of_32():
    from numjet.scipy import fft, interpolate, linalg, stats
    from numjet.scipy.spatial.transform import Rotation, Slerp

    with nj.enable_x64(True):
        grid, at = (jnp.arange(2), jnp.arange(3)), jnp.array([[0.5, 1.5]])
        for kind, wide in (("int32", "float32"), ("uint8", "float32"), ("int64", "float64")):
            x = jnp.array([[4, 1], [1, 3]], kind)
            transformed = fft.dctn(x), fft.idct(x[0]), jnp.fft.rfftfreq(6, dtype=kind)
            factored = nj.lax.linalg.cholesky(x), *nj.lax.linalg.eigh(x)
            assert [y.dtype for y in (*transformed, *factored)] == [wide] * 6
            assert nj.lax.fft(x, "FFT", (2,)).dtype == {"float32": "complex64"}.get(
                wide, "complex128"
            )
            of = interpolate.RegularGridInterpolator(
                grid, jnp.arange(6).reshape(2, 3).astype(kind), method="nearest"
            )
            assert of(at).dtype == wide
            assert Rotation.from_quat(jnp.array([0, 0, 0, 1], kind)).as_matrix().dtype == wide
            weighed = stats.gaussian_kde(x[0], weights=jnp.array([1, 2]))
            assert weighed.covariance.dtype == "float64"
        solved = linalg.solve(jnp.array([[4, 1], [1, 3]]), jnp.ones(2, "float32"), assume_a="pos")
        assert solved.dtype == "float32"
        turn = Rotation.from_rotvec(jnp.array([0.0, 0.0, np.pi / 2], "float32"))
        assert turn.apply(jnp.array([1, 0, 0])).dtype == "float32"
        turns = Rotation.from_rotvec(jnp.array([[0, 0, 0.2], [0, 0, 0.6]]))
        for call in (lambda f: f, nj.jit):
            between = call(lambda t: Slerp.init(jnp.array([1.0, 3.0]), turns)(t).as_rotvec())(2.5)
            np.testing.assert_allclose(between, [0, 0, 0.5], rtol=1e-12, atol=1e-15)
        angle = jnp.array([0.4], "float32")
        degree = jnp.array([1], "int8")
        harmonic = nj.scipy.special.sph_harm_y(degree, degree, angle, angle, n_max=1)
        assert harmonic.dtype == "complex128"


def test_norms_and_masked_softmax_of_integers():
    for x64 in (False, True):
        with nj.enable_x64(x64):
            wide = "float64" if x64 else "float32"
            x = jnp.array([3, 4], "int8")
            norm = jnp.linalg.vector_norm
            assert (norm(x).dtype, norm(x)) == (wide, 5.0)
            assert (norm(x, ord=1).dtype, norm(x, ord=1)) == ("int64" if x64 else "int32", 7)
            assert (norm(x, ord=np.inf).dtype, norm(x, ord=-np.inf)) == ("int8", 3)
            for function in (nj.nn.softmax, nj.nn.log_softmax):
                assert function(x, where=x > 3).dtype == wide
                assert function(x).dtype == "float32"
            assert nj.nn.softmax(x > 3, where=x > 0).dtype == wide


def test_sorted_integers_of_64_bits_are_wide_complex_numbers():
    with nj.enable_x64(True):
        for dtype in (jnp.int64, jnp.uint64, jnp.float64):
            assert jnp.sort_complex(jnp.array([3, 1], dtype)).dtype == jnp.complex128
        for dtype in (jnp.int32, jnp.uint8, jnp.float32, jnp.bool_):
            assert jnp.sort_complex(jnp.array([3, 1]).astype(dtype)).dtype == jnp.complex64


def test_functions_of_floats_keep_64_bits_outside_of_the_block() -> None:
    with nj.enable_x64(True):
        x, i, z = jnp.array([0.25, 1]), jnp.array([1, 2]), jnp.array([1j])
    for function, exact in ((jnp.sin, np.sin), (jnp.exp2, np.exp2), (jnp.tanh, np.tanh)):
        for operand in (x, i, z):
            for call in (function, nj.jit(function)):
                result = call(operand)
                expected = exact(np.asarray(operand))
                assert result.dtype == expected.dtype
                np.testing.assert_allclose(result, expected, rtol=1e-14)
    assert jnp.sin(jnp.array([1, 2])).dtype == "float32"
    assert jnp.sin(x.astype("float32")).dtype == "float32"


def test_traced_diagonals_far_outside():
    with nj.enable_x64(True):
        for k in (2**33, -(2**33), 2**32 + 1):
            below = 1.0 if k > 0 else 0.0
            assert nj.jit(lambda k: jnp.tri(2, 3, k))(k).tolist() == [[below] * 3] * 2
            assert not nj.jit(lambda k: jnp.eye(2, 3, k))(k).any()
            assert not nj.jit(lambda k: jnp.eye(2, 3, k))(-k).any()
        one = nj.jit(lambda k: jnp.eye(2, 3, k))(np.uint64(1))
        assert one.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_constants_of_integrals_take_part_in_the_dtype():
    whole = np.array([4, 2, 6], np.int32)
    assert jnp.polyint(whole, 0, k=0.5).weak_type
    with nj.enable_x64(True):
        got = jnp.polyint(whole, k=0.5)
        assert got.dtype == jnp.float64
        np.testing.assert_allclose(got, np.polyint(whole, k=0.5), rtol=1e-15)


def test_indices_past_32_bits_are_past_the_ends():
    x = jnp.arange(5)
    with pytest.raises(OverflowError, match="int32"):
        x[2**31]
    with nj.enable_x64(True):
        for i, want in ((2**31, 4), (2**40, 4), (-(2**31) - 1, 0), (-(2**62), 0)):
            assert x[i] == want == nj.jit(lambda v, i=i: v[i])(x)
        assert jnp.arange(12).reshape(3, 4)[1, 2**31] == 7
        with pytest.raises(OverflowError, match="int64"):
            x[2**63]


def test_the_dtype_of_an_integer_does_not_ask_for_its_value():
    assert jnp.result_type(2**40) == jnp.int32 and jnp.result_type(-(2**70), 1.5) == jnp.float32
    assert jnp.result_type(2**40, jnp.int8(1)) == jnp.int8


def test_linear_algebra_takes_64_bits_outside_of_the_block() -> None:
    with nj.enable_x64(True):
        x = jnp.array([[3.0, 1.0], [1.0, 2.0]])
    exact = np.asarray(x)
    for ours, theirs in (
        (jnp.linalg.cholesky(x), np.linalg.cholesky(exact)),
        (jnp.linalg.inv(x), np.linalg.inv(exact)),
        (jnp.linalg.eigh(x)[0], np.linalg.eigh(exact)[0]),
        (jnp.linalg.solve(x, x), np.eye(2)),
        (jnp.linalg.svd(x)[1], np.linalg.svd(exact)[1]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_what_two_of_64_bits_give_outside_of_the_block_has_64() -> None:
    with nj.enable_x64(True):
        x, i = jnp.array([0.25, 1.5]), jnp.array([3, 5])
        number, count = jnp.array(2.0), jnp.array(2)
    for run in (lambda f: f, nj.jit):
        assert run(lambda x, y: x + y)(x, number).dtype == "float64"
        assert run(lambda x, y: y - x)(i, count).dtype == "int64"
        for function in (jnp.divide, jnp.arctan2, jnp.hypot, jnp.logaddexp, jnp.copysign):
            for a in (x, i):
                got = run(function)(a, a)
                exact = getattr(np, function.__name__)(np.asarray(a), np.asarray(a))
                assert got.dtype == exact.dtype == "float64"
                np.testing.assert_allclose(got, exact, rtol=1e-14)
        assert run(lambda x, n: x**n)(x, jnp.array([2, 3])).dtype == "float64"
        assert run(lambda n, m: n**m)(i, i).tolist() == [27, 3125]
        for function in (jnp.square, jnp.reciprocal, nj.scipy.special.gammaln, jnp.i0):
            assert run(function)(x).dtype == "float64"
        assert run(lambda y: jnp.convolve(y, y))(x).dtype == "float64"
        assert run(jnp.signbit)(-x).tolist() == [True, True]
        assert run(lambda n: jnp.arange(9.0)[n])(i).tolist() == [3, 5]
        parts = run(jnp.frexp)(x)
        assert parts[0].tolist() == [0.5, 0.75] and parts[1].tolist() == [-1, 1]
        assert run(lambda y: jnp.ldexp(y, 3))(x).tolist() == [2, 12]


def test_beside_numbers_64_bits_are_32_outside_of_the_block_whatever_was_computed_within() -> None:
    double = nj.jit(lambda x: 2 * x)
    actions = [
        lambda x: x * 2, lambda x: 2 - x, lambda x: jnp.maximum(x, 1), lambda x: x // 2, double,
        lambda x: nj.grad(lambda y: (y * 3).sum() * 2)(x) if x.dtype.kind == "f" else x * 3,
    ]  # fmt: skip
    for shape in ((2,), (600, 600)):
        with nj.enable_x64(True):
            x, i = jnp.ones(shape), jnp.ones(shape, int)
        for _ in range(2):
            with nj.enable_x64(True):
                for action in actions:
                    assert (action(x).dtype, action(i).dtype) == ("float64", "int64")
            for action in actions[:-1]:
                assert (action(x).dtype, action(i).dtype) == ("float32", "int32")
    nj.config.update("enable_x64", True)
    try:
        for _ in range(3):
            assert (x + 7).dtype == "float64"
    finally:
        nj.config.update("enable_x64", False)
    assert (x + 7).dtype == "float32"


def test_places_beyond_the_signed_integers_go_around() -> None:
    with nj.enable_x64(True):
        far = jnp.array([2**63 + 3, 2**64 - 2], "uint64")
        wanted = [(2**63 + 3) % 7, (2**64 - 2) % 7]
        for call in (lambda f: f, nj.jit):
            assert call(lambda i: jnp.take(jnp.arange(7), i, mode="wrap"))(far).tolist() == wanted
