"""Programs on arrays without elements call nothing back."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.primitive import REGISTRY
from numjet.cpu.graph.degenerate import long_product

NONE, FIVE, NARROW, SHORT = (0,), (5,), (4, 0), (0, 3)
CASES = {
    "concatenate": (lambda a, b: jnp.concatenate([a * 2, b + 1, a, b]), NONE, FIVE),
    "concatenate one": (lambda a, b: jnp.concatenate([a, b]), NONE, FIVE),
    "concatenate none": (lambda a: jnp.concatenate([a, a], 1), NARROW),
    "product": (lambda a, b: a @ b + 1, NARROW, SHORT),
    "inner product": (lambda a: a @ a, NONE),
    "integers": (lambda a, b: a.astype(int) @ b.astype(int), NARROW, SHORT),
    "complex": (lambda a, b: (a + 0j) @ (b + 1j), NARROW, SHORT),
    "empty product": (lambda a, b: a @ b, SHORT, (3, 2)),
    "sum": (lambda a: jnp.exp(a).sum(1), NARROW),
    "sum of all": (lambda a: jnp.exp(a).sum(), NARROW),
    "product of rows": (lambda a: a.prod(1), NARROW),
    "all": (lambda a: (a > 0).all(1), NARROW),
    "any": (lambda a: (a > 0).any(), NARROW),
    "max": (lambda a: jnp.max(a, 1, initial=-np.inf), NARROW),
    "empty sum": (lambda a: a.sum(1), (0, 5)),
    "pad": (lambda a: jnp.pad(a, ((1, 1), (2, 0)), constant_values=3.0), NARROW),
    "cumsum": (lambda a: jnp.cumsum(a, 1), NARROW),
    "sort": (lambda a: jnp.sort(a, 1), NARROW),
    "update": (lambda a, b: lax.dynamic_update_slice(b * 2, a, (1,)), NONE, FIVE),
    "convolution": (lambda a, b: lax.conv(a, b, (1,), "VALID"), (2, 0, 9), (4, 0, 3)),
    "cholesky": (lambda a: jnp.linalg.cholesky(a), (3, 0, 0)),
    "loop": (lambda a, b: lax.fori_loop(
        0, 3, lambda i, s: jnp.concatenate([a, s[1:], s[:1] + a.sum()]), b), NONE, FIVE),
    "branch": (lambda a, b: lax.cond(b[0] > 0, lambda: b + a.sum(), lambda: b), NONE, FIVE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_empty_is_not_computed(name):
    function, *shapes = CASES[name]
    args = [jnp.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) for shape in shapes]
    assert " = host " not in nj.jit(function).lower(*args).as_text()
    found = nj.jit(function)(*args)
    with nj.disable_jit():
        expected = function(*args)
    assert found.dtype == expected.dtype and found.weak_type == expected.weak_type
    np.testing.assert_array_equal(found, expected)


ONE_EACH = {
    "sum": jnp.sum, "max": jnp.max, "prod": jnp.prod, "all": jnp.all, "argmax": jnp.argmax,
    "argmin": jnp.argmin, "sort": jnp.sort, "argsort": jnp.argsort, "cumsum": jnp.cumsum,
    "cumprod": jnp.cumprod,
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_EACH)
def test_what_is_reduced_or_sorted_along_one_element(name):
    f, x = ONE_EACH[name], np.array([3.0, -0.0, np.nan, 2.0], np.float32).reshape(2, 1, 2)
    run = nj.jit(lambda x: f(x, axis=1))
    got, want = run(x), getattr(np, name)(x, axis=1)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == f(jnp.array(x), axis=1).dtype
    text = run.lower(x).as_text()
    assert " host " not in text and "special" not in text and " add= " not in text


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64"])
@pytest.mark.parametrize(("shape", "axis"), [((50, 2), 1), ((9, 3, 5), 1), ((7, 4), 1), ((3,), 0)])
def test_sums_and_the_like_over_few_elements(shape, axis, dtype, reverse):
    x = jnp.array(np.random.default_rng(0).integers(-9, 9, shape) * 0.75).astype(dtype)
    for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin):
        if dtype == "complex64" and f in (lax.cummax, lax.cummin):
            continue
        run = nj.jit(lambda x, f=f: f(x, axis, reverse=reverse))
        got, want = run(x), f(x, axis, reverse=reverse)
        np.testing.assert_allclose(
            np.asarray(got, np.complex64), np.asarray(want, np.complex64), rtol=1e-5
        )
        assert got.dtype == want.dtype and "special" not in run.lower(x).as_text()


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize(("shape", "axis"), [((50, 1), 1), ((1, 9, 3), 0), ((1,), 0)])
def test_the_largest_of_one(shape, axis, dtype):
    x = jnp.array(np.random.default_rng(0).integers(-9, 9, shape)).astype(dtype)
    run = nj.jit(lambda x: lax.top_k(x, 1, axis=axis))
    values, places = run(x)
    np.testing.assert_array_equal(np.asarray(values), np.asarray(x))
    np.testing.assert_array_equal(places, np.zeros(shape, np.int32))
    assert places.dtype == "int32" and "special" not in run.lower(x).as_text()


LONG = {
    "few": ((255,), (0,)), "enough": ((256,), (0,)), "a rest": ((1000,), (0,)),
    "rows": ((3, 400), (1,)), "all": ((3, 5, 77), (0, 1, 2)), "turned": ((3, 5, 77), (2, 1)),
    "many rows": ((16, 300), (1,)), "columns": ((700, 3), (0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_products_of_complex_numbers_are_made_side_by_side(name: str) -> None:
    shape, axes = LONG[name]
    rng = np.random.default_rng(4)
    x = np.exp(1j * rng.uniform(0, 6, shape) + rng.normal(size=shape) * 0.01)
    product = nj.jit(lambda x: jnp.prod(x * (1 + 0j), axis=axes))
    got = product(jnp.asarray(x, jnp.complex64))
    np.testing.assert_allclose(got, np.prod(x, axis=axes), rtol=1e-5, atol=1e-6)
    chosen = name not in ("few", "many rows", "columns")
    prod, dtype = REGISTRY["reduce_prod"], np.dtype(np.complex64)
    assert (long_product(prod, {"axes": axes}, shape, dtype) is not None) == chosen
    assert long_product(prod, {"axes": axes}, shape, np.dtype(np.float32)) is None
