"""dot_general and convolutions: values, derivatives, batching, dtypes, against JAX."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from same_script import compare

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.ops.dot import dot_general_p

DOT = """
rng = np.random.default_rng(0)
cases = [
    ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ((4,), (4,), (((0,), (0,)), ((), ()))),
    ((2, 3, 4), (5, 4, 2), (((2,), (1,)), ((0,), (2,)))),
    ((2, 3, 4, 6), (4, 5, 6, 2), (((3, 2), (2, 0)), ((0,), (3,)))),
    ((2, 3), (4, 5), (((), ()), ((), ()))),
    ((0, 3), (3, 2), (((1,), (0,)), ((), ()))),
]
for i, (a, b, numbers) in enumerate(cases):
    x, y = rng.standard_normal(a).astype("float32"), rng.standard_normal(b).astype("float32")
    f = lambda x, y: lax.dot_general(x, y, numbers)
    z = f(x, y)
    out[f"~{i}"], out[f"~jit{i}"] = z, jit(f)(x, y)
    w = rng.standard_normal(z.shape).astype("float32")
    loss = lambda x, y: (f(x, y) * w).sum()
    out[f"~dx{i}"], out[f"~dy{i}"] = grad(loss, argnums=(0, 1))(x, y)
    xs, ys = np.stack([x, x * 2, x + 1], -1), np.stack([y, y * 2, y + 1], 1 if y.ndim else 0)
    for dims in ((-1, None), (None, 1), (-1, 1)):
        args = xs if dims[0] else x, ys if dims[1] else y
        out[f"~vmap{i}{dims}"] = vmap(f, dims)(*args)
        out[f"~vgrad{i}{dims}"] = vmap(grad(loss), dims)(*args)
    m, n = np.round(x * 3).astype("int8"), np.round(y * 3).astype("int8")
    out[f"preferred{i}"] = lax.dot_general(m, n, numbers, preferred_element_type="int32")
x = rng.standard_normal((3, 4)) + 1j
out["~complex"] = grad(lambda x: lax.dot(x, x.T).sum(), holomorphic=True)(x.astype("complex64"))
"""
CONV = """
rng = np.random.default_rng(0)
def draw(*shape):
    return rng.standard_normal(shape).astype("float32")
cases = [
    ((2, 4, 9, 8), (6, 4, 3, 2), (2, 3), "VALID", None, None, None, 1, 1),
    ((2, 4, 9, 8), (6, 2, 3, 3), (2, 1), [(1, 2), (0, 3)], (1, 2), (2, 1), None, 2, 1),
    ((2, 9, 8, 4), (3, 3, 4, 6), (2, 2), "SAME", None, (2, 2), ("NHWC", "HWIO", "NHWC"), 1, 1),
    ((4, 6, 7), (8, 6, 3), (1,), [(-1, 2)], (3,), None, None, 1, 2),
    ((3, 2, 5, 4, 6), (4, 2, 2, 2, 3), (1, 2, 1), "SAME_LOWER", None, None, None, 1, 1),
    ((2, 6, 9), (12, 1, 4), (2,), "SAME", None, None, None, 6, 1),
]
for i, (a, b, *options) in enumerate(cases):
    x, w = draw(*a), draw(*b)
    f = lambda x, w: lax.conv_general_dilated(x, w, *options)
    y = f(x, w)
    out[f"~{i}"], out[f"~jit{i}"] = y, jit(f)(x, w)
    c = draw(*y.shape)
    loss = lambda x, w: (f(x, w) * c).sum()
    out[f"~dx{i}"], out[f"~dw{i}"] = grad(loss, argnums=(0, 1))(x, w)
    out[f"~jdw{i}"] = jit(grad(loss, argnums=1))(x, w)
    xs, ws = draw(3, *a), draw(3, *b)
    for dims in ((0, None), (None, 0), (0, 0)):
        args = xs if dims[0] == 0 else x, ws if dims[1] == 0 else w
        out[f"~vmap{i}{dims}"] = vmap(f, dims)(*args)
    out[f"~vgrad{i}"] = vmap(grad(loss, argnums=1), (0, None))(xs, w)
x, w = draw(2, 5, 6, 3), draw(3, 3, 3, 4)
for strides in ((1, 1), (3, 2)):
    for padding in ("SAME", "VALID", [(1, 2), (0, 1)]):
        out[f"~transpose{strides}{padding}"] = lax.conv_transpose(x, w, strides, padding)
out["~kernel"] = lax.conv_transpose(x, draw(3, 3, 4, 3), (2, 2), "SAME", transpose_kernel=True)
out["~patches"] = lax.conv_general_dilated_patches(draw(2, 3, 6, 5), (2, 3), (1, 2), "SAME")
"""


@pytest.mark.oracle
@pytest.mark.parametrize("script", [DOT, CONV], ids=["dot", "conv"])
def test_as_the_oracle(script: str) -> None:
    compare(script, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_accumulate_in_float32(dtype) -> None:
    # 4096 ones: a 16-bit sum would stop growing at 256 (bfloat16) or 2048 (float16).
    ones = jnp.ones(4096, dtype)
    assert float(lax.dot(ones, ones)) == 4096


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lax.dot(jnp.ones((3, 4)), jnp.ones((5, 6))), "axis 1 is 4.*axis 0 is 5"),
        (lambda: lax.dot(jnp.ones((3, 4, 2)), jnp.ones((5, 6))), "vector-vector products"),
        (
            lambda: lax.conv(jnp.ones((1, 3, 8)), jnp.ones((2, 4, 3)), (1,), "SAME"),
            "3 // 1 != 4",
        ),
    ],
)
def test_mistakes_are_explained(call, text) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (((2,), (0,)), "nonnegative and less than the number of axes of the lhs value"),
        (((-1,), (0,)), "requires lhs dimension numbers to be nonnegative"),
        (((0, 0), (0, 1)), "lhs contracting dimensions to be distinct"),
        (((0, 1), (1, 1)), "rhs contracting dimensions to be distinct"),
        (((0,), (0, 1)), "must name equally many"),
        (((0,), (1,)), "contracting dimensions to have the same shape, got (2,) and (3,)"),
    ],
)
def test_axes_that_do_not_fit_are_explained(numbers, text) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        dot_general_p.bind(
            jnp.ones((2, 3)), jnp.ones((2, 3)), dimension_numbers=(numbers, ((), ())),
            precision=None, preferred_element_type=None,
        )  # fmt: skip


SMALL_FLOATS = """
import ml_dtypes
names = ["float8_e5m2", "float8_e4m3fn", "float8_e3m4", "bfloat16", "float32", "int8"]
numbers = (((1,), (0,)), ((), ()))
x, y = [[1, 2], [3, -4]], [[1, 2.5], [-3, 4]]
for a in names:
    for b in names[:3]:
        if a != b:
            l, r = (np.array(v).astype(d) if "int" in d else np.array(v).astype(
                getattr(ml_dtypes, d, d)) for v, d in ((x, a), (y, b)))
            l, r = jnp.asarray(l), jnp.asarray(r)
            for swapped, p, q in (("", l, r), (" swapped", r, l)):
                out[f"{a} {b}{swapped}"] = lax.dot_general(p, q, numbers).astype("float32")
                out[f"{a} {b}{swapped} dtype"] = np.frombuffer(
                    str(lax.dot_general(p, q, numbers).dtype).encode(), "uint8")
                out[f"{a} {b}{swapped} float32"] = lax.dot_general(
                    p, q, numbers, preferred_element_type="float32")
l, r = jnp.asarray(x, "float8_e5m2"), jnp.asarray(y, "float8_e4m3fn")
cases = [(l, r, None), (l, r, "float32"), (l, l, "float32"), (r, l, "bfloat16"),
         (l, r.astype("float32"), None), (l.astype("float32"), r.astype("float32"), "float8_e5m2")]
for i, (p, q, wanted) in enumerate(cases):
    loss = jit(lambda p, q: lax.dot_general(
        p, q, numbers, preferred_element_type=wanted).astype("float32").sum())
    for j, g in enumerate(grad(loss, (0, 1))(p, q)):
        out[f"gradient {i} {j}"] = g.astype("float32")
        out[f"dtype {i} {j}"] = np.frombuffer(str(g.dtype).encode(), "uint8")
"""


def test_products_of_small_floats_and_others() -> None:
    compare(SMALL_FLOATS)


def test_a_product_of_dtypes_of_one_range_asks_for_the_results() -> None:
    x = jnp.ones((2, 2), ml_dtypes.float8_e5m2)
    y = jnp.ones((2, 2), ml_dtypes.float8_e5m2fnuz)
    numbers = (((1,), (0,)), ((), ()))
    with pytest.raises(TypeError, match="have the same range"):
        lax.dot_general(x, y, numbers)
    z = lax.dot_general(x, y, numbers, preferred_element_type="float32")
    assert z.dtype == "float32" and np.all(z == 2)


def test_convolutions_take_the_algorithms_of_products():
    image, kernel = jnp.ones((1, 1, 3, 3)), jnp.full((1, 1, 2, 2), 0.5)
    want = lax.conv(image, kernel, (1, 1), "VALID")
    for precision in (*lax.DotAlgorithmPreset, "BF16_BF16_F32", "TF32_TF32_F32",
                      lax.DotAlgorithm(np.float32, np.float32, np.float32)):
        found = lax.conv(image, kernel, (1, 1), "VALID", precision=precision)
        np.testing.assert_array_equal(found, want)
    with pytest.raises(ValueError, match="Precision argument"):
        lax.conv(image, kernel, (1, 1), "VALID", precision="BF16")


def test_algorithms_say_their_operands():
    presets = lax.DotAlgorithmPreset
    assert presets.F16_F16_F32.supported_lhs_types == (np.float16,)
    assert presets.BF16_BF16_F32.supported_rhs_types == (jnp.bfloat16, np.float32)
    assert presets.BF16_BF16_F32_X6.supported_rhs_types == (np.float32,)
    assert presets.DEFAULT.supported_lhs_types is None
    assert presets.ANY_F8_ANY_F8_F32.accumulation_type == np.float32


@pytest.mark.parametrize("shape", [(10, 60000, 10), (2, 200000, 2), (1, 200000, 3), (5, 90000, 1)])
def test_products_of_great_depth_keep_their_digits(shape) -> None:
    """Numbers that all lie on one side, added one after the other, lose a digit in every ten."""
    rows, depth, columns = shape
    rng = np.random.default_rng(3)
    x = rng.random((depth, rows)).astype(np.float32)
    y = rng.random((depth, columns)).astype(np.float32)
    want = x.T.astype(np.float64) @ y.astype(np.float64)
    for run in (lambda x, y: x.T @ y, nj.jit(lambda x, y: x.T @ y)):
        np.testing.assert_allclose(run(jnp.asarray(x), jnp.asarray(y)), want, rtol=6e-6)
    line = jnp.asarray(x[:, 0])
    want = x[:, 0].astype(np.float64) @ x[::-1, 0].astype(np.float64)
    for run in (jnp.dot, jnp.vdot, lambda a, b: jnp.einsum("i,i->", a, b), nj.jit(jnp.dot)):
        np.testing.assert_allclose(run(line, line[::-1]), want, rtol=1e-6)


def test_products_of_few_long_rows_keep_their_digits() -> None:
    rows = np.random.default_rng(4).random((2, 2_500_000)).astype(np.float32)
    want = rows.astype(np.float64) @ rows.T.astype(np.float64)
    np.testing.assert_allclose(nj.jit(lambda x: x @ x.T)(rows), want, rtol=2e-6)
