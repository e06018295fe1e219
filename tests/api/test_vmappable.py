"""Values that say themselves how vmap maps them."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, tree_util
from numjet.interpreters import batching


@tree_util.register_pytree_node_class
class State:
    """Rows that are mapped, and a buffer that all share."""

    def __init__(self, rows, buffer):
        self.rows, self.buffer = rows, buffer

    shape = property(lambda self: self.rows.shape)

    def tree_flatten(self):
        return (self.rows, self.buffer), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Bare:
    """No pytree."""

    def __init__(self, data):
        self.data = data


class Columns:
    """Says that the second axis is mapped."""


@pytest.fixture(autouse=True)
def rules():
    batching.register_vmappable(
        State, int, int, lambda cont, _, x, axis: State(cont(x.rows, axis), x.buffer),
        lambda cont, size, x, axis: State(cont(size, x.rows, axis), x.buffer), None,
    )  # fmt: skip
    batching.register_vmappable(
        Bare, Columns, int, lambda cont, _, x, spec: Bare(cont(x.data, 1)),
        lambda cont, size, x, spec: Bare(cont(size, x.data, 1)), None,
    )  # fmt: skip
    yield
    for cls in (State, Bare):
        batching.unregister_vmappable(cls)
    assert not batching.vmappables


def state(*shape):
    return State(jnp.arange(float(np.prod(shape))).reshape(shape), jnp.ones(7))


def test_arrays_that_a_rule_keeps_are_not_mapped():
    seen = []

    def step(x):
        seen.append((x.rows.shape, x.buffer.shape))
        return State(x.rows + x.buffer[0], x.buffer)

    x = state(3, 2)
    for f in (nj.vmap(step), nj.jit(nj.vmap(step)), nj.vmap(nj.jit(step))):
        out = f(x)
        np.testing.assert_array_equal(out.rows, np.asarray(x.rows) + 1)
        assert out.buffer.shape == (7,)
    assert set(seen) == {((2,), (7,))}
    out = nj.vmap(nj.vmap(step))(state(3, 2, 4))
    assert out.rows.shape == (3, 2, 4) and out.buffer.shape == (7,)


def test_axes_and_other_arguments():
    x, y = state(3, 2), jnp.arange(3.0)
    out, plain = nj.vmap(lambda d: (d["s"], d["y"] + 1))({"s": x, "y": y})
    assert out.rows.shape == (3, 2) and plain.tolist() == [1, 2, 3]
    out = nj.vmap(lambda s: State(s.rows[::-1], s.buffer), in_axes=1, out_axes=1)(x)
    np.testing.assert_array_equal(out.rows, np.asarray(x.rows)[::-1])
    out = nj.vmap(lambda s, y: State(s.rows * y, s.buffer), in_axes=(None, 0))(x, y)
    assert out.rows.shape == (3, 3, 2)
    out = nj.vmap(lambda y: x)(y)  # it does not vary: repeated
    assert out.rows.shape == (3, 3, 2) and out.buffer.shape == (7,)
    total = nj.vmap(lambda s, *, y: lax.psum(s.rows * y, "i"), axis_name="i")(x, y=y)
    np.testing.assert_array_equal(total[0], (np.asarray(x.rows) * np.arange(3)[:, None]).sum(0))


def test_loops_and_derivatives_see_pytrees():
    x = state(3, 2)

    def loop(s):
        step = lambda c, _: (State(c.rows * 2, c.buffer), None)  # noqa: E731
        return lax.scan(step, s, None, length=3)[0]

    np.testing.assert_array_equal(nj.vmap(loop)(x).rows, 8 * np.asarray(x.rows))
    grad = nj.grad(lambda r: nj.vmap(lambda s: (s.rows**2).sum())(State(r, x.buffer)).sum())
    np.testing.assert_array_equal(grad(x.rows), 2 * np.asarray(x.rows))


def test_axes_of_a_type_of_their_own():
    data = jnp.arange(6.0).reshape(2, 3)
    double = lambda b: Bare(b.data * 2)  # noqa: E731
    out = nj.vmap(double, in_axes=(Columns(),), out_axes=Columns())(Bare(data))
    np.testing.assert_array_equal(out.data, 2 * data)
    sums = nj.vmap(lambda b: b.data.sum(), in_axes=(Columns(),))(Bare(data))
    assert sums.tolist() == [3, 5, 7]


def test_what_does_not_fit():
    x = state(3, 2)
    with pytest.raises(ValueError, match="spec None but output was batched"):
        nj.vmap(lambda s: s, out_axes=None)(x)
    with pytest.raises(ValueError, match="inconsistent sizes"):
        nj.vmap(lambda s, y: y)(x, jnp.ones(4))
    with pytest.raises(TypeError, match="leaves, but got 'a'"):
        nj.vmap(lambda s: s, in_axes=("a",))(x)
