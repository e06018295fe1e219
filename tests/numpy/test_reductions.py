"""Reductions, cumulative functions and quantiles against NumPy; dtypes and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_differential import B, C, F, I, N, P, V, agree

import numjet
import numjet.numpy as jnp

REDUCTIONS = """sum prod max min mean var std all any argmax argmin ptp median count_nonzero amax
amin""".split()
NAN_REDUCTIONS = """nansum nanmax nanmin nanmean nanvar nanstd nanprod nanmedian nanargmax nanargmin
nancumsum nancumprod""".split()


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", REDUCTIONS + ["cumsum", "cumprod"])
def test_over_an_axis(name, axis):
    agree(name, F, axis=axis)
    agree(name, I, axis=axis)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", NAN_REDUCTIONS)
def test_ignoring_nan(name, axis):
    agree(name, N, axis=axis)


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "median"]
)
@pytest.mark.parametrize("axis", [(0, 1), (-1,), 1])
def test_keepdims(name, axis):
    agree(name, F, axis=axis, keepdims=True)


def test_masks_and_initial_values():
    agree("sum", F, where=B)
    agree("prod", F, axis=1, where=B)
    agree("max", F, where=B, initial=-9.0)
    agree("min", F, axis=0, where=B, initial=9.0)
    agree("mean", F, where=B)
    agree("var", F, where=B)
    agree("all", F, where=B)
    agree("sum", F, initial=3.0)
    agree("sum", F, axis=0, where=np.array([True, False, True, True]))


def test_other_statistics():
    agree("var", F, ddof=1)
    agree("average", F, weights=P)
    agree("average", F, axis=1, weights=V[:4] * 0 + 2)
    agree("average", F, axis=0, returned=True, weights=P)
    agree("cov", F)
    agree("cov", F, rowvar=False, bias=True)
    agree("cov", C)
    agree("cov", F, aweights=P[0], fweights=np.array([1, 2, 1, 3]))
    agree("corrcoef", F)
    agree("corrcoef", V, V[::-1].copy())
    for name in ("sum", "prod", "mean", "cumsum", "var", "std"):
        agree(name, C)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_quantiles(method, q):
    if method == "nearest" and q == 0.5:
        q = 0.51  # of two as near NumPy takes that with an even place
    agree("quantile", F, q, axis=1, method=method)
    agree("nanquantile", N, q, axis=0, method=method)


def test_quantiles_of_several():
    q = np.array([0.1, 0.5, 0.9], np.float32)
    agree("quantile", F, q, axis=0)
    agree("quantile", F, q, keepdims=True)
    agree("percentile", F, 30.0)
    agree("nanpercentile", N, 30.0, axis=1)
    assert np.isnan(jnp.median(jnp.array([1.0, np.nan])))


def test_dtypes():
    assert jnp.sum(jnp.ones(3, "int8")).dtype == jnp.int32
    assert jnp.sum(jnp.ones(3, "uint8")).dtype == jnp.uint32
    assert jnp.sum(jnp.ones(3, bool)).dtype == jnp.int32
    assert jnp.cumsum(jnp.ones(3, "int8")).dtype == jnp.int8
    assert jnp.mean(jnp.arange(3)).dtype == jnp.float32
    assert jnp.mean(jnp.ones(3, "bfloat16")).dtype == jnp.bfloat16
    assert jnp.sum(jnp.ones(3), dtype=jnp.int32).dtype == jnp.int32
    assert jnp.argmax(jnp.ones(3)).dtype == jnp.int32
    assert float(jnp.mean(jnp.full(4096, 1.0, "float16"))) == 1.0  # adds up in 32 bits
    assert jnp.max(jnp.array([1, 2], "int8")).dtype == jnp.int8


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays(shape):
    x = np.zeros(shape, np.float32)
    for name in ("sum", "prod", "all", "any"):
        agree(name, x)
        agree(name, x, axis=0)
    with pytest.raises(ValueError, match="no identity"):
        jnp.max(jnp.zeros((0,)))
    with pytest.raises(ValueError, match="empty"):
        jnp.argmax(jnp.zeros((0,)))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.sum([1, 2]), TypeError, "sum requires ndarray"),
        (lambda: jnp.sum(jnp.ones(3), axis=1), ValueError, "out of bounds"),
        (lambda: jnp.sum(jnp.ones((3, 2)), axis=(0, 0)), ValueError, "duplicate"),
        (lambda: jnp.sum(jnp.ones(3), out=np.zeros(())), NotImplementedError, "out"),
        (lambda: jnp.max(jnp.ones(3), where=jnp.array([True, False, True])), ValueError, "initial"),
        (lambda: jnp.quantile(jnp.ones(3), 0.5, method="x"), ValueError, "method"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("name", ["mean", "var", "std", "max", "prod", "median", "cumsum"])
def test_compiled_and_differentiated(name):
    f = lambda x: jnp.sum(getattr(jnp, name)(x, axis=0) ** 2)
    x = jnp.asarray(P)
    np.testing.assert_allclose(numjet.jit(f)(x), f(x), rtol=1e-5)
    grad = numjet.grad(f)(x)
    eps = np.float32(1e-2)
    step = np.zeros_like(P)
    step[1, 2] = eps
    numeric = (f(x + step) - f(x - step)) / (2 * eps)
    np.testing.assert_allclose(grad[1, 2], numeric, rtol=2e-2, atol=1e-3)


def test_quantiles_of_nothing_and_integer_shares_are_refused():
    for f in (jnp.median, jnp.nanmedian, lambda x, *args, **kw: jnp.quantile(x, 0.5, *args, **kw)):
        with pytest.raises(TypeError, match="no elements along the axis"):
            f(jnp.zeros((3, 0)), axis=1, keepdims=True)
        assert f(jnp.zeros((0, 3)), axis=1).shape == (0,)
    with pytest.raises(IndexError, match="no elements"):
        jnp.nanmedian(jnp.zeros((3, 0)))
    for q in (1, True, np.array([0, 1]), 1j):
        for method in ("linear", "inverted_cdf"):
            with pytest.raises(TypeError, match="for q"):
                jnp.quantile(jnp.arange(3.0), q, method=method)
    assert jnp.percentile(jnp.arange(3.0), 50) == 1


def test_cumulative_sums_in_booleans():
    """Whether any so far, and all so far."""
    x = jnp.array([0.0, -1.5, 0.0])
    some, every = jnp.cumulative_sum(x, dtype=bool), jnp.cumulative_prod(x + 1, dtype=bool)
    np.testing.assert_array_equal(some, np.array([False, True, True]))
    np.testing.assert_array_equal(every, np.array([True, True, True]))
    assert jnp.prod(x + 5, dtype=bool, initial=2.5) and not jnp.prod(x + 5, dtype=bool, initial=0)
    with pytest.raises(TypeError, match="mean has no dtype bool"):
        jnp.mean(x, dtype=bool)


def test_cumulative_sums_of_small_integers_are_wide():
    x = np.array([100, 100, 100], np.int8)
    np.testing.assert_array_equal(jnp.cumulative_sum(x), np.cumsum(x, dtype=np.int32))
    for name in ("cumulative_prod", "cumprod"):
        assert getattr(jnp, name)(x.astype(np.uint8)).dtype == jnp.uint8
        assert getattr(jnp, name)(x > 1).dtype == jnp.int32


@pytest.mark.parametrize("name", "sum prod max min ptp cumsum cumprod nansum any all".split())
def test_results_of_weak_numbers_are_not_weak(name):
    x = jnp.where(np.array([True, False]), 2.0, 1.0)
    for f in (getattr(jnp, name), numjet.jit(getattr(jnp, name))):
        assert x.weak_type and not f(x).weak_type
    if name == "sum":
        assert (f(x) * jnp.ones((), jnp.float16)).dtype == jnp.float32


def test_results_by_element_are_as_weak_as_their_operands():
    weak, strong = jnp.where(np.array([True, False]), 2.0, 1.0), jnp.ones(2)
    for f in (jnp.abs, lambda x: x < 1.5, lambda x: x == x, jnp.isfinite):
        for g in (f, numjet.jit(f)):
            assert g(weak).weak_type and not g(strong).weak_type
    assert not (weak < strong).weak_type
    assert (abs(weak) * jnp.ones((), jnp.float16)).dtype == jnp.float16


def test_extremes_of_complex_numbers_are_numpys_under_jit_too():
    rng = np.random.default_rng(0)
    x = (rng.integers(-3, 3, (4, 3, 5000)) + 1j * rng.integers(-3, 3, (4, 3, 5000))).astype("c8")
    bad = x.copy()
    bad[1, 2, 77], bad[1, 2, 99], bad[3, 0, 5] = complex(2, np.nan), complex(np.nan, 1), np.nan
    for given in (x, bad):
        for axis in (None, 0, 2, (0, 2), (1, 2)):
            for name in ("max", "min"):
                want = getattr(np, name)(given, axis)
                f = lambda v, name=name, axis=axis: getattr(jnp, name)(v, axis)  # noqa: E731
                np.testing.assert_array_equal(f(jnp.array(given)), want)
                np.testing.assert_array_equal(numjet.jit(f)(given), want)
    assert len(numjet.make_jaxpr(lambda v: jnp.max(v, 2))(x).eqns) < 30
    weights = numjet.grad(lambda v: jnp.max(v).real)(jnp.array([1 + 2j, 1 + 3j, 0]))
    np.testing.assert_array_equal(weights, [0, 1, 0])


@pytest.mark.parametrize(
    "name", "sum prod mean var std all any nansum nanprod nanmean nanvar nanstd".split()
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_masks_are_of_booleans(name: str, dtype: str) -> None:
    text = rf"jnp\.{name}: where must be None or a boolean array"
    with pytest.raises(ValueError, match=text):
        getattr(jnp, name)(jnp.ones(3, dtype), where=jnp.ones(3, int))
    if name.startswith("nan"):
        with pytest.raises(ValueError, match="jnp.nanmax: where must be None or a boolean array"):
            jnp.nanmax(jnp.ones(3, dtype), where=jnp.ones(3, int), initial=0)


def test_extremes_of_no_complex_numbers_are_the_initial_value() -> None:
    nothing = jnp.zeros((2, 0), jnp.complex64)
    for run in (lambda f: f, numjet.jit):
        for reduce, more in ((jnp.max, 3), (jnp.min, 1 - 2j), (jnp.nanmax, 1j)):
            got = run(lambda x, f=reduce, k=more: f(x, axis=1, initial=k))(nothing)
            assert got.dtype == jnp.complex64 and got.tolist() == [more, more]
        assert run(lambda x: jnp.min(x, initial=2j))(nothing) == 2j


def test_means_in_integers_are_added_up_in_them() -> None:
    full = np.array([[250, 9], [7, 8]])
    for dtype in ("uint8", "int8", "int32"):
        for axis in (None, 0, 1):
            wanted = np.trunc(full.sum(axis=axis, dtype=dtype) / (4 if axis is None else 2))
            np.testing.assert_array_equal(jnp.mean(full, axis, dtype), wanted.astype(dtype))
    parts = jnp.array([1.9, 1.9, 0.3])
    assert jnp.mean(parts, dtype="int32") == 0
    assert jnp.mean(parts, dtype="uint8", where=jnp.array([True, True, False])) == 1


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "float32"])
def test_later_means_of_integers_are_as_the_first(name: str, monkeypatch) -> None:
    from numjet.numpy import averages

    asked = []
    complete = averages._complete_mean
    monkeypatch.setattr(averages, "_complete_mean", lambda *a: asked.append(a) or complete(*a))
    for shape, axis in (((7,), None), ((3, 31), 0), ((3, 31), 1), ((29, 2), None)):
        x = np.random.default_rng(1).integers(0, 2 if name == "bool" else 99, shape).astype(name)
        found = [jnp.mean(jnp.asarray(x), axis) for _ in range(4)]
        np.testing.assert_allclose(found[0], x.mean(axis), 1e-6)
        for y in found:
            assert y.aval is found[0].aval
            np.testing.assert_array_equal(y, found[0])
    assert len(asked) <= 8  # of 16: native code may come meanwhile


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_later_reductions_that_keep_axes_are_as_the_first(name: str) -> None:
    function = getattr(jnp, name)
    for dtype in (bool, np.int8, np.float16, np.float32, np.complex64):
        x = jnp.asarray(np.random.default_rng(2).uniform(-2, 2, (3, 5)).astype(np.float32))
        x = x.astype(dtype)
        for axis in (None, 0, -1):
            found = [function(x, axis, keepdims=True) for _ in range(4)]
            plain = function(x, axis)
            for y in found:
                assert y.aval is found[0].aval and y.ndim == 2 and y.dtype == plain.dtype
                np.testing.assert_array_equal(np.squeeze(y), plain)
    with numjet.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.sum(jnp.array([np.inf, -np.inf]), keepdims=True)
    for _ in range(3):
        assert np.isnan(jnp.sum(jnp.array([np.inf, -np.inf]), keepdims=True))
    with numjet.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.sum(jnp.array([np.inf, -np.inf]), keepdims=True)
