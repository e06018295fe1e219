"""Large results written by non-temporal stores: which ones, and that they are right."""

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config
from numjet.core.stretched import written_out
from numjet.cpu import host
from numjet.cpu.link import link
from numjet.cpu.passes import stream
from numjet.cpu.pipeline import Build, run

pytestmark = pytest.mark.skipif(
    link.vector_bytes() < 64, reason="a vector is no cache line on this machine"
)
MARK = "!nontemporal"


def stores(monkeypatch, f, *shapes, donate=(), dtype="float32"):
    """How many non-temporal stores the program of `f` has."""
    monkeypatch.setattr(stream, "RESULT_BYTES", 1 << 16)
    with config.enable_x64(True):
        closed = written_out(nj.make_jaxpr(f)(*[jnp.zeros(s, dtype) for s in shapes]))
        return run(Build(closed, donate)).llvm.count(MARK)


def test_large_results_are_stored_non_temporally(monkeypatch):
    assert stores(monkeypatch, lambda x: x + 1, 1 << 15)
    assert stores(monkeypatch, lambda x: x.T, (512, 256)) == 16
    assert stores(monkeypatch, lambda x: x.T, (512, 256), dtype="float64") == 8
    # In blocks, whose rows are lines.
    assert stores(monkeypatch, lambda x: x.T, (512, 256), dtype="int8")


def test_what_stays_in_the_caches(monkeypatch):
    assert not stores(monkeypatch, lambda x: x + 1, 1 << 13)
    # Short rows that begin inside a line, lines in pieces far apart, memory that was just read.
    assert not stores(monkeypatch, lambda x: x / x.sum(1, keepdims=True), (3000, 100))
    assert not stores(monkeypatch, lambda x: x.T, (256, 512), dtype="int8")
    assert not stores(monkeypatch, lambda x: x + 1, 1 << 15, donate=(0,))
    # A temporary that the program reads again.
    assert not stores(monkeypatch, lambda x: jnp.cumsum(jnp.exp(x)).sum(), 1 << 15)


def test_only_the_result_in_fresh_memory(monkeypatch):
    def f(x, y):
        return x * 2 + 1, y * 2 + 1

    both = stores(monkeypatch, f, 1 << 15, 1 << 15)
    assert stores(monkeypatch, f, 1 << 15, 1 << 15, donate=(0,)) == both // 2 > 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64", "bool"])
def test_results(dtype):
    shape = (2000, stream.RESULT_BYTES // 2000 // np.dtype(dtype).itemsize + 64)
    x = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
    with config.enable_x64(True):
        moved, same = nj.jit(lambda x: (x.T, x[::-1]))(x)
    np.testing.assert_array_equal(moved, x.T)
    np.testing.assert_array_equal(same, x[::-1])


def test_rows_in_lines():
    x = np.linspace(-1, 1, stream.RESULT_BYTES // 4, dtype=np.float32).reshape(-1, 1024)
    got = nj.jit(lambda x: x - x.mean(1, keepdims=True))(x)
    np.testing.assert_allclose(got, x - x.mean(1, keepdims=True), atol=1e-6)


# Odd lengths begin at every place of a line; 16 elements more or less leave one tail or none.
@pytest.mark.parametrize("columns", [128, 129, 143, 144, 145, 1000, 1001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_rows_that_begin_within_lines(monkeypatch, columns, dtype):
    def f(x, y):
        return x[:, 1:] * 2 + y, x[:, :-1] - x[:, :1]

    rows = 1 + (1 << 17) // columns
    x = np.arange(rows * (columns + 1)).reshape(rows, columns + 1).astype(dtype)
    y = np.arange(columns).astype(dtype)
    assert stores(monkeypatch, f, x.shape, y.shape, dtype=dtype)
    with config.enable_x64(True), config.disk_cache(False):
        got = nj.jit(f)(x, y)
    for result, expected in zip(got, f(x, y), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("columns", [129, 257])
def test_positions_in_rows_that_begin_within_lines(monkeypatch, columns):
    """The place that a result is written to, as a number, too."""
    rows = 1 + (1 << 17) // columns
    whole = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    x = np.arange(columns, dtype=np.int32)

    def f(x):
        return x[::-1] + jnp.arange(rows * columns, dtype="int32").reshape(rows, columns)

    assert stores(monkeypatch, f, x.shape, dtype="int32")
    with config.disk_cache(False):
        np.testing.assert_array_equal(nj.jit(f)(x), x[::-1] + whole)


# Whole strips; a shorter last strip and columns left over; an odd number of blocks; odd vectors.
@pytest.mark.parametrize("shape", [(1024, 1024), (1024, 1100), (1056, 1024), (1040, 1024)])
def test_large_transposes_are_shared_piece_by_piece(shape):
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    f = nj.jit(lambda x: x.T * 2)
    kernel = f.lower(x).as_text()
    blocks = shape[0] // 32 if shape[0] % 32 == 0 else 1
    assert f"for strip < {8 * min(8, blocks & -blocks)} grain=1" in kernel
    np.testing.assert_array_equal(f(x), x.T * 2)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_tiles_of_large_transposes_begin_with_the_lines_they_read(dtype):
    m, n = 1024, 2048
    f = nj.jit(lambda x: x.T * 2)
    memory = np.arange(m * n + 32).astype(dtype)
    first = -memory.ctypes.data % host.CACHE_LINE // memory.itemsize
    for skew in (0, 1, 4, 15):
        x = memory[first + skew :][: m * n].reshape(m, n)
        assert "skew(in0)" in f.lower(x).as_text()
        np.testing.assert_array_equal(f(jnp.asarray(x)), x.T * 2)
    # What is done twice must not be read where it is written, and rows are whole lines.
    for g, shape in ((lambda x: x.T + x[:1024, :1024], (1024, 1024)), (f, (1024, 1032))):
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        assert "skew" not in nj.jit(g).lower(x).as_text()
