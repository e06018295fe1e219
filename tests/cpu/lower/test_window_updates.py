"""Windows of loop carries are written in place; the old values that they are made of stay whole."""

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

FACTOR = np.float32(0.25)


def stencil(u, i, put):
    return put(u, (1, 1), u[1:-1, 1:-1] + FACTOR * (u[2:, 1:-1] - u[:-2, 1:-1]))


def shift(u, i, put):
    return put(u, (1, 0), u[:-1])


def itself(u, i, put):
    return put(u, (0, 1), u[:, 1:] - FACTOR * u[:, :-1])


def moving(u, i, put):
    return put(u, (i % 5, i % 7), u[:-3, :-3] * FACTOR)


def put_numpy(u, start, window):
    rows, columns = [
        min(int(a), n - m) for a, n, m in zip(start, u.shape, window.shape, strict=True)
    ]
    out = u.copy()
    out[rows : rows + window.shape[0], columns : columns + window.shape[1]] = window
    return out


@pytest.mark.parametrize("step", [stencil, shift, itself, moving])
def test_windows_of_carries(step):
    start = np.random.default_rng(0).random((37, 53), dtype=np.float32)
    wanted = [start]
    for i in range(6):
        wanted.append(step(wanted[-1], i, put_numpy))

    def put(u, at, window):
        return lax.dynamic_update_slice(u, window, at)

    got = nj.jit(lambda u: lax.fori_loop(0, 6, lambda i, u: step(u, i, put), u))(start)
    np.testing.assert_allclose(np.asarray(got), wanted[6], rtol=1e-5, atol=1e-6)

    def both(state, i):
        return (step(state[0], i, put), state[0]), None

    run = nj.jit(lambda u: lax.scan(both, (u, u), jnp.arange(6))[0])
    new, old = run(start)
    np.testing.assert_allclose(np.asarray(new), wanted[6], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(old), wanted[5], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(9, 7, 6), (9, 3, 1, 2), (9, 40), (9, 2, 30), (9, 1, 1)])
def test_windows_that_lie_together_are_one_row(shape, dtype):
    x = jnp.asarray(np.arange(np.prod(shape)) % 50).astype(dtype).reshape(shape)
    places = np.array([3, 0, 3, 8, 11, -1])
    for name in ("add", "multiply", "set"):
        update = nj.jit(lambda x, y, name=name: getattr(x.at[places], name)(y, mode="drop"))
        y = x[:6] + 1
        want = np.array(x)
        for at, row in zip(places, np.asarray(y), strict=True):
            if at < 9:
                with np.errstate(over="ignore"):
                    want[at] = {"add": want[at] + row, "multiply": want[at] * row, "set": row}[name]
        np.testing.assert_array_equal(update(x, y), want)
    every = nj.jit(lambda x: x.at[:, ::2].add(1))
    want = np.array(x)
    want[:, ::2] += 1
    np.testing.assert_array_equal(every(x), want)


def test_one_loop_for_windows_of_several_axes():
    text = nj.jit(lambda x: x.at[jnp.arange(20) * 3].add(1)).lower(jnp.zeros((64, 20, 6))).as_text()
    assert "< 120 vector" in text, text


ONES = {
    "the round": lambda c, i: i * 2.0,
    "what the array holds there": lambda c, i: c[i, 3],
    "what it holds before": lambda c, i: c[i - 1, 0] + 1,
    "one of the window itself": lambda c, i: c[i, 0] * 0.5,
    "a sum": lambda c, i: c[i].sum(),
}


@pytest.mark.parametrize("name", ONES)
def test_rows_of_one_number(name):
    start = np.random.default_rng(1).random((20, 35), dtype=np.float32)
    one, want = ONES[name], start.copy()
    for i in range(1, 20):
        want[i] = one(want, i)
    for put in (
        lambda c, i: c.at[i].set(one(c, i)),
        lambda c, i: lax.dynamic_update_slice(c, jnp.full((1, 35), one(c, i)), (i, 0)),
    ):
        run = nj.jit(lambda c, put=put: lax.fori_loop(1, 20, lambda i, c: put(c, i), c))
        np.testing.assert_allclose(run(start), want, rtol=1e-5)
        once = nj.jit(lambda c, put=put: put(c, jnp.int32(4)))(start)
        alone = start.copy()
        alone[4] = one(start, 4)
        np.testing.assert_allclose(once, alone, rtol=1e-5)
