"""Programs as they are written for GPUs alone, executed by whatever device is there: several rounds
of a loop as one, sorts by digits, operations of XLA's own."""
from __future__ import annotations

import numpy as np
import pytest
from xla.plugin import GpuLike, needs_plugin, run

import numjet as nj
import numjet.numpy as jnp
from numjet.xla import hlo

pytestmark = needs_plugin
LIKE = GpuLike()


def text(fun, *args):
    return hlo.module(nj.make_jaxpr(fun)(*args), devices=(LIKE,)).text


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 7, 16, 17, 40, 41])
def test_rounds_written_together(length, reverse):
    xs = np.arange(3 * length, dtype=np.float32).reshape(length, 3)

    def fun(x, xs):
        def body(carry, row):
            a, k = carry
            a = a * 0.5 + jnp.sin(row)
            return (a, k + 1), (a.sum(), row + k)

        return nj.lax.scan(body, (x, 0), xs, reverse=reverse)

    args = [np.ones(3, np.float32), xs]
    for f in (fun, lambda x, xs: nj.grad(lambda x: fun(x, xs)[0][0].sum())(x),
              lambda x, xs: nj.vmap(fun, (None, 2))(x, jnp.stack([xs, xs + 1], 2))):
        got, want = run(f, args, LIKE), nj.tree.leaves(f(*args))
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-6)


def test_which_rounds():
    rounds = lambda n, f: text(  # noqa: E731
        lambda x: nj.lax.scan(lambda c, _: (f(c), None), x, None, length=n)[0],
        np.ones(4, np.float32))
    short = rounds(1000, jnp.sin)
    assert short.count("stablehlo.sine") == 10 and short.count("stablehlo.while") == 1
    assert rounds(13, jnp.sin).count("stablehlo.sine") == 13
    assert "stablehlo.while" not in rounds(13, jnp.sin)
    inner = lambda c: nj.lax.fori_loop(0, 500, lambda _, c: jnp.sin(c), c)  # noqa: E731
    assert rounds(1000, inner).count("stablehlo.while") == 2
    closed = nj.make_jaxpr(lambda x: nj.lax.scan(lambda c, _: (jnp.sin(c), None), x, None,
                                                 length=1000)[0])(np.ones(4, np.float32))
    assert hlo.module(closed).text.count("stablehlo.sine") == 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "uint8"])
@pytest.mark.parametrize("n", [100, 5000, 40000])
def test_sorts(n, dtype):
    with nj.enable_x64(True):
        rng = np.random.default_rng(n)
        x = rng.integers(-300, 300, n)
        x = x.astype(np.float32) / 8 if "float" in dtype else x
        x = np.asarray(x).astype(jnp.dtype(dtype))
        if "float" in dtype:
            x[:4], x[5], x[6], x[7] = np.nan, -np.nan, -0.0, 0.0
            x[8], x[9] = np.inf, -np.inf
        order = np.argsort(x.astype(np.float64), kind="stable")
        (got,) = run(jnp.sort, [x], LIKE)
        same(got, x[order])
        (got,) = run(jnp.argsort, [x], LIKE)
        np.testing.assert_array_equal(got, order)
        got = run(lambda x, y: nj.lax.sort((x, y), num_keys=1), [x, np.arange(n)[::-1].copy()],
                  LIKE)
        np.testing.assert_array_equal(got[0].view(f"u{x.itemsize}"),
                                      x[order].view(f"u{x.itemsize}"))
        np.testing.assert_array_equal(got[1], np.arange(n)[::-1][order])
        values, places = run(lambda x: nj.lax.top_k(x, 9), [x], LIKE)
        want = nj.lax.top_k(x, 9)
        same(values, np.asarray(want[0]))
        np.testing.assert_array_equal(places, want[1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("shape, axis", [((7,), 0), ((3, 50), 1), ((50, 3), 0), ((2, 40, 3), 1)])
def test_the_largest(shape, axis, dtype):
    rng = np.random.default_rng(0)
    x = np.asarray(rng.integers(0, 9, shape)).astype(jnp.dtype(dtype))
    if "float" in dtype:
        x.flat[3], x.flat[5], x.flat[6] = np.nan, -0.0, np.inf
    got = run(lambda x: nj.lax.top_k(x, 4, axis=axis), [x], LIKE)
    want = [np.asarray(y) for y in nj.lax.top_k(x, 4, axis=axis)]
    same(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    assert "chlo.top_k" in text(lambda x: nj.lax.top_k(x, 4, axis=axis), x)


@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape, axis", [((1,), 0), ((1000,), 0), ((3, 70), 1), ((70, 3), 0)])
def test_running_combinations(shape, axis, reverse, op):
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(np.float32)
    fun = lambda x: getattr(nj.lax, op)(x, axis=axis, reverse=reverse)  # noqa: E731
    (got,) = run(fun, [x], LIKE)
    np.testing.assert_allclose(got, np.asarray(fun(x)), rtol=2e-5)
    assert ("reduce_window" in text(fun, x)) == (op != "cumlogsumexp")
    (got,) = run(fun, [x.astype(jnp.bfloat16)], LIKE)
    assert got.dtype == jnp.bfloat16


def test_rows_and_halves_are_compared():
    assert text(jnp.argsort, np.ones((2, 40000), np.float32)).count("gather") == 0
    one = text(jnp.argsort, np.ones(40000, np.float32))
    assert "TOTALORDER" not in one and "stablehlo.sort" in one
    pair = text(lambda x, y: nj.lax.sort((x, y), num_keys=1), np.ones(40000), np.ones(40000))
    assert one.count('"stablehlo.gather"') == 1 and pair.count('"stablehlo.gather"') == 2
    assert "TOTALORDER" in text(jnp.sort, np.ones((4, 5000), np.float32))
    assert "TOTALORDER" not in text(jnp.sort, np.ones((4, 4096), np.float32))
