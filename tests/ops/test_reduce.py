"""Reductions against JAX, with ties, zeros and NaN; laws; messages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from lax_cases import checks_of, sample

import numjet as nj
from numjet import lax
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.autodiff import grad

X = sample(3, 4, 5)
TIES = np.array([[1, 3, 3, 0], [2, 2, 2, 2]], np.float32)
ZEROS = np.array([[1, 0, 3, 2, 5], [0, 2, 0, 1, 1], [1, 2, 3, 4, 5]], np.float32)
NANS = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0]], np.float32)
I = sample(3, 4, dtype=np.int32, low=-50, high=50)
T = sample(3, 4, dtype=np.bool_)
H = sample(3, 4).astype(ml_dtypes.bfloat16)
FINE = np.array(
    [1.2345678, -3.1415927, 1e-20, 1e20, 65504, 0.1, 3.0001, np.inf, np.nan], np.float32
)

CASES = {
    **{
        f"{op} {axes}": (f"lax.reduce_{op}(x, {axes})", X)
        for op in ("sum", "max", "min", "prod")
        for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2))
    },
    "max ties": ("lax.reduce_max(x, (1,))", TIES),
    "min ties": ("lax.reduce_min(x, (0, 1))", TIES),
    "prod zeros": ("lax.reduce_prod(x, (1,))", ZEROS),
    "max nan": ("lax.reduce_max(x, (1,))", NANS),
    "min nan": ("lax.reduce_min(x, (1,))", NANS),
    **{
        f"int {op}": (f"lax.reduce_{op}(x, (1,))", I)
        for op in ("sum", "max", "min", "prod", "and", "or", "xor")
    },
    **{f"bool {op}": (f"lax.reduce_{op}(x, (0,))", T) for op in ("max", "min", "and", "or", "xor")},
    **{f"bfloat16 {op}": (f"lax.reduce_{op}(x, (1,))", H) for op in ("sum", "max", "min", "prod")},
    "argmax": ("lax.argmax(x, 1, np.int32)", X),
    "argmin": ("lax.argmin(x, 2, np.int32)", X),
    "argmax ties": ("lax.argmax(x, 1, np.int32)", TIES),
    "argmax nan": ("lax.argmax(x, 1, np.int32)", NANS),
    "argmin nan": ("lax.argmin(x, 1, np.int32)", NANS),
    "argmax int": ("lax.argmax(x, 0, np.uint8)", I),
    "argmin bfloat16": ("lax.argmin(x, 0, np.int32)", H),
    "argmax bool": ("lax.argmax(x, 0, np.int32)", T),
    "empty sum": ("lax.reduce_sum(x, (0,))", np.zeros((0, 3), np.float32)),
    "empty max": ("lax.reduce_max(x, (0,))", np.zeros((0, 3), np.float32)),
    "empty prod": ("lax.reduce_prod(x, (0,))", np.zeros((0, 3), np.float32)),
    "empty rows": ("lax.reduce_max(x, (1,))", np.zeros((0, 3), np.float32)),
    "precision bfloat16": ("lax.reduce_precision(x, 8, 7)", FINE),
    "precision float16": ("lax.reduce_precision(x, 5, 10)", FINE),
    "reduce add": ("lax.reduce(x, np.float32(0), lax.add, (1,))", X),
    "reduce max": ("lax.reduce(x, np.float32(0.5), lax.max, (0, 2))", X),
    "reduce or": ("lax.reduce(x, np.bool_(False), lax.bitwise_or, (0,))", T),
    "reduce lambda": ("lax.reduce(x, np.float32(1), lambda a, b: lax.mul(a, b), (1,))", X),
    "reduce other": (
        "lax.reduce(x, np.float32(0), lambda a, b: lax.sqrt(lax.add(lax.square(a), "
        "lax.square(b))), "
        "(1,))",
        X,
    ),
}
# The derivative of a rounded number is the rounded tangent; JAX's generic reduction has none.
ONLY_VALUES = [
    "reduce other",
    "reduce add",
    "reduce max",
    "reduce lambda",
    "precision bfloat16",
    "precision float16",
    "max nan",
    "min nan",
    "empty prod",
]


test_against_jax, test_laws = checks_of(CASES, only_values=ONLY_VALUES, laws_rtol=1e-4)


def test_ties_share_the_gradient() -> None:
    assert grad(lambda x: lax.reduce_max(x, (0,)))(TIES[0]).tolist() == [0, 0.5, 0.5, 0]


def test_second_derivative_of_a_product_at_zeros() -> None:
    def f(x):
        return lax.reduce_prod(x, (0,))

    point = np.array([0.0, 3.0, 0.0, 2.0], np.float32)
    mixed = grad(lambda x: lax.index_in_dim(grad(f)(x), 0, 0, False))(point)
    assert mixed.tolist() == [0, 0, 6, 0]


def test_reduce_of_several_operands() -> None:
    def later_if_larger(a, b):
        return tuple(lax.select(lax.ge(a[0], b[0]), u, v) for u, v in zip(a, b, strict=True))

    value, place = lax.reduce(
        (X[0, 0], np.arange(5, dtype=np.int32)),
        (np.float32(-9), np.int32(-1)),
        later_if_larger,
        (0,),
    )
    assert float(value) == X[0, 0].max() and int(place) == X[0, 0].argmax()


def test_precision_is_differentiable() -> None:
    assert float(grad(lambda x: lax.reduce_precision(x, 8, 7))(1.5)) == 1.0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: lax.reduce_max(X, (3,)), "axis 3|axes"),
        (lambda: lax.reduce_and(X, (0,)), "reduce_and does not accept dtype float32"),
        (lambda: lax.argmax(X[:0], 0, np.int32), "argmax.*(empty|size 0)"),
        (lambda: lax.reduce_sum(X, (0, 0)), "duplicate value"),
    ],
)
def test_messages(call, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extrema_of_complex_numbers_with_infinite_real_parts(kind: str) -> None:
    """No number comes before these, as an accumulator's first value would have to."""
    sign = -1 if kind == "max" else 1
    x = np.full((3, 40), complex(sign * np.inf, sign), np.complex64)
    reduce = getattr(lax, f"reduce_{kind}")
    for axes in ((0,), (1,), (0, 1)):
        want = getattr(np, kind)(x, axes)
        np.testing.assert_array_equal(reduce(x, axes), want)
        np.testing.assert_array_equal(jit(lambda x, a=axes: reduce(x, a))(x), want)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 5, 4), (7, 2, 9), (1, 6, 1)])
def test_tangents_of_products_along_axes(axes, shape) -> None:
    """The sum over the elements of tangent times product of the others, where the axes are."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(2, *shape))
    x[rng.random(shape) < 0.1] = 0
    want = 0.0
    for place in np.ndindex(*[shape[a] for a in axes]):
        at = tuple(place[axes.index(a)] if a in axes else slice(None) for a in range(3))
        others = x.copy()
        others[at] = t[at]
        want = want + others.prod(axes)
    with nj.enable_x64(True):
        _, got = nj.jvp(lambda v: lax.reduce_prod(v, axes), (x,), (t,))
        shown = str(nj.make_jaxpr(nj.linearize(lambda v: lax.reduce_prod(v, axes), x)[1])(t))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert axes == (0, 2) or "transpose" not in shown
