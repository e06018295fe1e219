"""Cases that JAX's reference describes, beyond what NumPy's functions of the same names do."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp


def test_einsum_with_numbers_has_an_implicit_result_in_their_order() -> None:
    x = jnp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jnp.einsum(x, (1, 0)), np.transpose(x))
    np.testing.assert_array_equal(jnp.einsum(x, (7, 3)), np.transpose(x))
    np.testing.assert_array_equal(jnp.einsum(x, (5, 1), x, (5, 2)), np.transpose(x) @ x)
    np.testing.assert_array_equal(jnp.einsum(x, (30, 1), (30, 1)), x)


def test_fromfunction_is_mapped_over_places() -> None:
    shapes = []

    def row(i):
        shapes.append(i.shape)
        return (i + 2) * jnp.arange(3)

    np.testing.assert_array_equal(jnp.fromfunction(row, (2,)), [[0, 2, 4], [0, 3, 6]])
    assert shapes == [()]
    both = jnp.fromfunction(lambda i, j, k: (i - j, k), (2, 3), k=7, dtype=int)
    np.testing.assert_array_equal(both[0], [[0, -1, -2], [1, 0, -1]])
    assert both[1].shape == (2, 3) and int(both[1][1, 1]) == 7


def test_polynomials_of_arrays() -> None:
    one, two = jnp.array([[1, 2, 3]]), jnp.array([[4, 0, 1], [2, 2, 5]])
    np.testing.assert_array_equal(jnp.polyadd(one, two), [[4, 0, 1], [3, 4, 8]])
    np.testing.assert_array_equal(jnp.polysub(one, two), [[-4, 0, -1], [-1, 0, -2]])
    np.testing.assert_array_equal(jnp.polyadd(two, jnp.array([3])), [[4, 0, 1], [5, 5, 8]])
    with pytest.raises(ValueError, match="roadcast"):
        jnp.polyadd(jnp.arange(3), two)


def test_matrices_of_r_and_c() -> None:
    a, b = [4, 5], [6, 7]
    np.testing.assert_array_equal(jnp.r_["r", a, b], [[4, 5, 6, 7]])
    np.testing.assert_array_equal(jnp.r_["c", a, b], [[4], [5], [6], [7]])
    np.testing.assert_array_equal(jnp.c_["r", a, b], [[4, 6], [5, 7]])
    square = jnp.eye(2)
    np.testing.assert_array_equal(jnp.r_["r", square, square], np.r_[np.eye(2), np.eye(2)])
    with pytest.raises(ValueError, match="could not understand directive 'x'"):
        jnp.r_["x", a]


def test_partition_descends_behind_the_pivot() -> None:
    x = jnp.array([6, 2, 9, 4, 2, 7])
    np.testing.assert_array_equal(jnp.partition(x, 2), [2, 2, 4, 9, 7, 6])
    np.testing.assert_array_equal(jnp.argpartition(x, 2), [1, 4, 3, 0, 2, 5])
    np.testing.assert_array_equal(jnp.partition(x.reshape(3, 2), -2, axis=0)[1], [6, 4])


def test_linspace_of_complex_ends_rounds_the_real_parts_down() -> None:
    # as JAX does; floor takes no complex numbers
    out, step = jnp.linspace(-1.5 + 3j, 2.5 - 1j, 3, dtype="int32", retstep=True)
    assert out.dtype == jnp.int32 and step == 2 - 2j  # the step is NumPy's
    np.testing.assert_array_equal(out, [-2, 0, 2])
    assert jnp.linspace(2j, 1.0, 0, dtype="int8").dtype == jnp.int8


def test_logspace_keeps_a_complex_base() -> None:
    # The imaginary part was dropped before the power was taken.
    got = jnp.logspace(0, 2, 3, base=3j, dtype="complex64")
    np.testing.assert_allclose(got, [1, 3j, -9], atol=1e-5)
    with pytest.warns(np.exceptions.ComplexWarning):
        real = jnp.logspace(0, 2, 3, base=3j)  # exponents decide the dtype
    assert real.dtype == jnp.float32
    np.testing.assert_allclose(real, [1, 0, -9], atol=1e-5)
    np.testing.assert_allclose(jnp.logspace(0, 2j, 2, base=1j), [1, np.exp(-np.pi)], atol=1e-6)


@pytest.mark.parametrize("promotion", ["standard", "strict"])
@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_ranges_are_computed_in_the_dtype_that_is_asked_for(name: str, promotion: str) -> None:
    # Of ends of fewer bits they had the precision of those, and a Python number beside them too.
    low, high = 1.7, jnp.float16(2.25)
    with nj.numpy_dtype_promotion(promotion), nj.enable_x64(True):
        for dtype, tolerance in (("float32", 3e-7), ("float64", 1e-15), ("complex64", 3e-7)):
            got = getattr(jnp, name)(low, high, 7, dtype=dtype)
            want = getattr(np, name)(low, 2.25, 7)
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, rtol=tolerance)
    whole = getattr(jnp, name)(jnp.bfloat16(1), jnp.bfloat16(3), 9, dtype="int32")
    np.testing.assert_array_equal(whole, np.floor(getattr(np, name)(1, 3, 9) + 1e-5))


def test_steps_of_linspace_that_are_whole() -> None:
    np.testing.assert_array_equal(jnp.linspace(0, 25, 6), [0, 5, 10, 15, 20, 25])
    counts, _ = jnp.histogram(jnp.array([1, 4, 15, 15, 19]), range=(0, 25), bins=5)
    np.testing.assert_array_equal(counts, [2, 0, 0, 3, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linspace_rounds_once_wherever_it_is_computed(dtype: type) -> None:
    with nj.enable_x64(True):
        for start, stop, num in [(-2.5, 3.75, 23), (0.7, 11.0, 40), (4.0, -9.0, 17)]:
            low, high = dtype(start), dtype(stop)
            part, at = dtype(1) / dtype(num - 1), np.arange(num, dtype=dtype)
            rest = low * (dtype(1) - at * part)
            exact = [Fraction(float(high * part)) * int(i) + Fraction(float(r))
                     for i, r in zip(at, rest)]  # fmt: skip
            expected = [dtype(float(x)) if dtype is np.float64 else _nearest(x) for x in exact]
            expected[-1] = high
            got = jnp.linspace(start, stop, num, dtype=dtype)
            traced = nj.jit(lambda a, b, n=num: jnp.linspace(a, b, n))(low, high)
            np.testing.assert_array_equal(got, expected)
            np.testing.assert_array_equal(traced, expected)


def _nearest(x: Fraction) -> np.float32:
    """The float32 nearest to `x`."""
    near = np.float32(float(x))
    around = [np.nextafter(near, np.float32(s)) for s in (-np.inf, np.inf)]
    return min([near, *around], key=lambda y: abs(Fraction(float(y)) - x))


def test_files_of_bfloat16() -> None:
    file = io.BytesIO()
    jnp.save(file, jnp.array([1.5, -2.0], dtype="bfloat16"))
    file.seek(0)
    got = jnp.load(file)
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(got.astype("float32"), [1.5, -2.0])


X = jnp.array([30.0, 10.0, 20.0, 50.0, 40.0])
MASS = jnp.array([1, 2, 0, 1, 3])


@pytest.mark.parametrize("part, want", [(0.1, 10), (1 / 3, 30), (0.5, 40), (0.8, 40), (1.0, 50)])
def test_quantiles_by_weight(part: float, want: float) -> None:
    got = jnp.quantile(X, part, weights=MASS, method="inverted_cdf")
    assert float(got) == want
    assert float(jnp.percentile(X, 100 * part, weights=MASS, method="inverted_cdf")) == want


def test_quantiles_by_weight_of_axes() -> None:
    x = jnp.arange(12.0).reshape(3, 4)
    by = {"weights": jnp.array([1, 2, 3]), "method": "inverted_cdf"}
    want = [[4, 5, 6, 7], [8, 9, 10, 11]]
    np.testing.assert_array_equal(jnp.quantile(x, jnp.array([0.4, 0.6]), axis=0, **by), want)
    holed = x.at[2, 0].set(jnp.nan)
    assert np.isnan(jnp.quantile(holed, 0.6, axis=0, **by)[0])
    np.testing.assert_array_equal(jnp.nanquantile(holed, 0.6, axis=0, **by), [4, 9, 10, 11])
    shape = jnp.quantile(x[None], 0.5, axis=(0, 2), weights=x[None], method="inverted_cdf").shape
    assert shape == (3,)
    assert np.isnan(jnp.quantile(X, 0.5, weights=-MASS, method="inverted_cdf"))
    assert float(jnp.quantile(X, 0.5, method="inverted_cdf")) == 30


def test_weights_of_quantiles_that_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="Only method 'inverted_cdf' supports weights"):
        jnp.quantile(X, 0.5, weights=MASS)
    with pytest.raises(ValueError, match=r"Weights shape \(2,\) must match reduction axes \(5,\)"):
        jnp.quantile(X, 0.5, axis=0, weights=MASS[:2], method="inverted_cdf")
    with pytest.raises(ValueError, match="when axis is None"):
        jnp.quantile(X, 0.5, weights=MASS[:2], method="inverted_cdf")
    with pytest.raises(ValueError, match="cannot be complex"):
        jnp.quantile(X, 0.5, weights=MASS * 1j, method="inverted_cdf")


def test_the_nearer_element_is_the_lower_of_two() -> None:
    parts = jnp.array([0.125, 0.25, 0.375, 0.5, 0.625, 0.875])
    got = jnp.quantile(jnp.arange(5), parts, method="nearest")
    np.testing.assert_array_equal(got, [0, 1, 1, 2, 2, 3])


def test_conditions_of_piecewise_that_are_numbers() -> None:
    x = jnp.arange(4)
    chosen = jnp.piecewise(x, jnp.array([False, True]), [1, lambda x: 2 * x])
    np.testing.assert_array_equal(chosen, [0, 2, 4, 6])
    np.testing.assert_array_equal(jnp.piecewise(x, [True, False, True], [5, 6, 7, 8]), [7] * 4)


@pytest.mark.parametrize("jitted", [False, True])
def test_roots_of_leading_zeros_are_nan(jitted: bool) -> None:
    roots = lambda p: jnp.roots(p, strip_zeros=False)  # noqa: E731
    roots = nj.jit(roots) if jitted else roots
    got = roots(jnp.array([0, 0, 2, 4, 0]))
    np.testing.assert_allclose(got[:2], [-2, 0], atol=1e-6)
    assert np.isnan(got[2:].real).all() and np.isnan(got[2:].imag).all()
    assert np.isnan(roots(jnp.zeros(3))).all()
    np.testing.assert_allclose(jnp.roots(jnp.array([0, 2, 4, 0])), [0, -2], atol=1e-6)


@pytest.mark.parametrize(
    ("x", "options", "expected"),
    [
        ([1, 2, 4, 9], {}, 9),
        ([1, 2, 4, 9], {"correction": 2}, 19),
        ([1, 2, 4, 9], {"mean": 3}, 10),
        ([1.0, 2.5, 4.7, 9.0], {"ddof": 1}, 12),
        ([[1, 2, 3], [4, 9, 20]], {"axis": 0, "keepdims": True}, [[2, 12, 72]]),
        ([1, 2, 4, 9], {"where": np.array([True, True, True, False])}, 1),
        ([True, False, True], {"ddof": 1}, 1),
        ([], {}, np.nan),
    ],
)
def test_variances_in_an_integer_dtype_are_cut_to_integers(x, options, expected) -> None:
    x = jnp.array(x)
    got = jnp.var(x, dtype=int, **options)
    assert (got.dtype, got.weak_type) == (jnp.float32, True)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(nj.jit(lambda x: x.var(dtype=int, **options))(x), expected)
    options["ddof"] = options.pop("correction", options.pop("ddof", 0))
    again = jnp.nanvar(x, dtype=int, **options)
    assert (again.dtype, again.weak_type) == (jnp.int32, False)
    np.testing.assert_array_equal(again, np.nan_to_num(expected))


def test_variances_in_narrow_integers_wrap_around() -> None:
    x = jnp.array([100, 50, 3], jnp.uint8)
    assert [jnp.var(x, dtype=d).item() for d in (int, jnp.int8, jnp.uint8)] == [1568, 4, 32]
    x = jnp.array([[1, 2, 3], [4, 9, 20]])
    assert jnp.var(x, dtype=jnp.uint8).item() == 0
    assert jnp.nanvar(x, dtype=jnp.uint8).item() == 43  # added up in 32 bits
    assert jnp.nanvar(jnp.array([1, np.nan, 3, 9.5]), dtype=int).item() == 12  # NaN is 0 there


def test_dtypes_that_no_variance_has() -> None:
    x = jnp.array([1, 2, 4])
    for function in (jnp.var, jnp.nanvar, jnp.nanstd):
        with pytest.raises(TypeError, match="bool"):
            function(x, dtype=bool)
    with pytest.raises(ValueError, match="std: dtype must be a floating dtype"):
        jnp.std(x, dtype=int)
    with pytest.raises(TypeError, match="int32"):
        jnp.nanstd(x, dtype=int)
    for function in (jnp.var, jnp.nanvar):
        with pytest.raises(ValueError, match="of complex values"):
            function(x * 1j, dtype=int)


@pytest.mark.parametrize(
    ("shape", "axis", "options", "expected"),
    [
        ((0,), None, {"size": 2}, ((2,), [], (0,), [])),
        ((0, 3), None, {}, ((2,), [], (0, 3), [])),
        ((0, 3), 0, {}, ((2, 3), [], (0,), [])),
        ((0, 3), 1, {}, ((0, 2), [0], (3,), [3])),
        ((3, 0), 0, {"size": 0}, ((0, 0), [0], (3,), [3])),
        ((3, 0), 0, {"fill_value": None}, ((1, 0), [0], (3,), [3])),
        ((0, 0), 0, {"size": None}, ((1, 0), [0], (0,), [])),
    ],
)
def test_distinct_slices_of_nothing(shape, axis, options, expected) -> None:
    options = {"size": 2, "fill_value": 7, **options}
    values, index, inverse, counts = jnp.unique(
        jnp.zeros(shape), True, True, True, axis=axis, **options
    )
    assert (values.shape, index.tolist(), inverse.shape, counts.tolist()) == expected
    assert (values == 7).all() and not inverse.any()


def test_no_distinct_values_are_asked_for() -> None:
    got = jnp.unique(jnp.array([3, 1, 1]), True, True, True, size=0)
    assert [part.tolist() for part in got] == [[], [], [1, 0, 0], []]


@pytest.mark.parametrize("lists", [[[1], 2], [1, [2]], [[[1]], [2]], [[1], [2, [3]]]])
def test_blocks_are_nested_to_one_depth(lists: list) -> None:
    with pytest.raises(ValueError, match="different depths"):
        jnp.block(lists)
