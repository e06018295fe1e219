"""Products of a large matrix and a few vectors, and operands that are transposed before."""

from __future__ import annotations

import numpy as np
import pytest

import numjet
import numjet.numpy as jnp
from numjet.cpu.kernels.products import matvec


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("vectors", range(2, matvec.MOST_VECTORS + 1))
@pytest.mark.parametrize("rows", [173, 200])
def test_a_matrix_meets_a_few_vectors(dtype: str, vectors: int, rows: int) -> None:
    with numjet.enable_x64(True):
        a, x = draw(rows, 203, dtype=dtype), draw(vectors, 203, dtype=dtype)
        programs = {
            "a,x": lambda a, x: a @ x.T,
            "x,a": lambda a, x: x @ a.T,
            "a,column": lambda a, x: a @ jnp.asarray(x.T.copy()),
            "behind": lambda a, x: jnp.maximum(a @ x.T + 1, 0),
            "batch": lambda a, x: jnp.einsum("brk,bvk->vbr", jnp.stack([a, -a]), jnp.stack([x, x])),
        }
        for name, f in programs.items():
            left, right = numjet.jit(f)(a, x), f(a.astype(np.float64), x.astype(np.float64))
            assert np.array_equal(left, right), name


def test_vectors_are_read_by_the_library() -> None:
    a, x = draw(300, 256), draw(256, 5)
    name = "special dot_general(%0:f32[300,256]@input0, "
    text = numjet.jit(lambda a, x: a @ x).lower(a, x).as_text()
    assert name in text and "f32[5,256]" in text  # the vectors' depths next to each other
    compiled = numjet.jit(lambda a, x: a @ x).lower(a, x).compile().as_text()
    assert f"{matvec.PREFIX}5_float" in compiled


@pytest.mark.parametrize(
    "form",
    [
        "hkm,nkmb->bhn",  # the batch of the right operand is not there: rows of it are far apart
        "kmb,knb->bmn",  # elements that lie next to each other are of different products
        "kbh,nkbh->bn",
        "kam,abk->mb",  # depths apart from each other on the left
        "akm,kbn->ambn",
    ],
)
def test_operands_in_any_order(form: str) -> None:
    sizes = {"h": 6, "k": 37, "m": 24, "n": 33, "b": 8, "a": 5}
    shapes = [[sizes[a] for a in word] for word in form.split("->")[0].split(",")]
    x, y = (draw(*shape) for shape in shapes)
    f = numjet.jit(lambda x, y: jnp.einsum(form, x, y))
    assert np.array_equal(f(x, y), np.einsum(form, x, y))


def test_elements_of_other_products_are_moved_first() -> None:
    x, y = draw(64, 24, 8), draw(64, 40, 8)
    text = numjet.jit(lambda x, y: jnp.einsum("kmb,knb->bmn", x, y)).lower(x, y).as_text()
    assert "special dot_general(" in text
    assert "f32[8,24,64]" in text and "f32[8,64,40]" in text
