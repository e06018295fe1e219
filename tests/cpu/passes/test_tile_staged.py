"""Transposed operands turned in blocks: which kernels do it, and that every element is right."""

import re

import numpy as np
import pytest

import numjet as nj
from numjet.base import config
from numjet.cpu.link import link

# Rows of lines; halves of lines; columns and rows left over; blocks that do not divide them; one
# block; narrow and wide elements.
SHAPES = [
    ((2600, 2600), "float32"), ((2500, 2600), "float32"), ((2057, 2501), "float32"),
    ((1200, 5000), "float32"), ((250, 20011), "float32"), ((20011, 250), "float32"),
    ((2000, 1607), "float64"), ((4100, 4099), "int8"), ((3001, 3003), "int16"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "dtype"), SHAPES)
def test_beside_another_operand(shape, dtype):
    a = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)
    b = np.arange(a.size).reshape(a.T.shape).astype(dtype)
    with config.enable_x64(True):
        f = nj.jit(lambda a, b: a.T - b)
        if a.nbytes >= 24 << 20 or a.itemsize * a.shape[0] % 64:
            assert "scratch block0" in f.lower(a, b).as_text()
        np.testing.assert_array_equal(f(a, b), a.T - b)


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((5, 1000, 1000), (0, 2, 1)),
        ((3, 7, 450, 500), (1, 0, 3, 2)),
        ((200, 100, 250), (2, 1, 0)),
        ((500, 33, 300), (2, 1, 0)),
        ((2001, 2401), (1, 0)),
    ],
)
def test_loops_around_share_the_pieces(shape, order):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    f = nj.jit(lambda x: x.transpose(order) + 1)
    text = f.lower(x).as_text()
    assert re.search(r"for piece < \d+ grain=1:\n    scratch block0", text)
    np.testing.assert_array_equal(f(x), x.transpose(order) + 1)


def test_two_operands_share_the_room():
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal((2100, 2100), dtype=np.float32) for _ in range(3))
    f = nj.jit(lambda a, b, c: (a.T * b.T + c, a.T - c))
    text = f.lower(a, b, c).as_text()
    assert "scratch block1" in text
    for got, want in zip(f(a, b, c), (a.T * b.T + c, a.T - c), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(nj.jit(lambda a: a + a.T)(a), a + a.T)


@pytest.mark.skipif(link.vector_bytes() < 64, reason="no vector fills a line on this machine")
def test_tiles_alone_where_they_fill_lines_or_results_are_small():
    for f, shapes in (
        (lambda a: a.T * 2, [(2400, 2400)]),  # tiles write whole lines
        (lambda a, b: a.T + b, [(1500, 1500)] * 2),  # the caches hold it
        (lambda a: a.T * 2, [(60, 90000)]),  # rows of a few vectors
    ):
        arguments = [np.ones(s, np.float32) for s in shapes]
        text = nj.jit(f).lower(*arguments).as_text()
        assert "scratch" not in text and "tile" in text


def test_the_operand_beside_may_be_overwritten():
    a = np.random.default_rng(2).standard_normal((2601, 2600), dtype=np.float32)
    b = np.ones((2600, 2601), np.float32)
    given = nj.numpy.array(b)
    got = nj.jit(lambda a, b: a.T + b, donate_argnums=1)(a, given)
    np.testing.assert_array_equal(got, a.T + b)
