"""Gradients inside of `shard_map`: what does not vary along an axis counts once (check_vma)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import P, lax
from numjet.base import config
from numjet.sharding import AxisType

ALL, CUT = P(), P("x")


@pytest.fixture(autouse=True)
def eight() -> Iterator[None]:
    before = config.num_cpu_devices.value
    nj.config.update("num_cpu_devices", 8)
    yield
    nj.config.update("num_cpu_devices", before)


def mapped(f: Callable, ins: Any, outs: Any, **more: Any) -> Callable:
    mesh = nj.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    return nj.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **more)


X = np.arange(1.0, 9.0, dtype=np.float32)


def whole(f: Callable) -> Callable:
    """A loss of all rows, as the sum of what each device computes."""
    return lambda *args: lax.psum(f(*args), "x")


def loss(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.tanh(x * w) ** 2 + w * x)


@pytest.mark.parametrize("joins", [whole, lambda f: f], ids=["psum", "local"])
@pytest.mark.parametrize("stages", [lambda f: f, nj.jit], ids=["plain", "jit"])
def test_of_what_all_share_and_of_what_each_has(joins: Callable, stages: Callable) -> None:
    want_w, want_x = nj.grad(loss, (0, 1))(0.5, X)
    both = stages(nj.grad(joins(loss), (0, 1)))
    w, x = mapped(both, (ALL, CUT), (ALL, CUT))(0.5, X)
    np.testing.assert_allclose(w, want_w, rtol=1e-5)
    np.testing.assert_allclose(x, want_x, rtol=1e-5)


def test_means_and_several_axes() -> None:
    def mean(w: Any, x: Any) -> Any:
        return lax.pmean(jnp.mean((w * x) ** 2), ("x", "y"))

    rows = X.reshape(2, 4)
    got = mapped(nj.value_and_grad(mean), (ALL, P("x", "y")), (ALL, ALL))(0.5, rows)
    want = nj.value_and_grad(lambda w: jnp.mean((w * X) ** 2))(0.5)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    # Cut over one axis and the same along the other.
    f = nj.grad(lambda w, x: lax.psum(jnp.sum(w * x), "y"))
    np.testing.assert_allclose(mapped(f, (CUT, P("x", "y")), CUT)(jnp.ones(2), rows), [10.0, 26.0])


def test_derivatives_of_gradients() -> None:
    f = whole(lambda w, x: jnp.sum(w**3 * x))
    for derive in (nj.hessian(f), nj.jacfwd(nj.grad(f)), nj.grad(nj.grad(f))):
        np.testing.assert_allclose(mapped(derive, (ALL, CUT), ALL)(2.0, X), 12 * X.sum())
    outside = nj.grad(lambda w: mapped(nj.grad(f), (ALL, CUT), ALL)(w, X))(2.0)
    np.testing.assert_allclose(outside, 12 * X.sum())
    of_sum = nj.grad(whole(nj.grad(lambda w, x: jnp.sum(w**3 * x))))
    np.testing.assert_allclose(mapped(of_sum, (ALL, CUT), ALL)(2.0, X), 2 * 12 * X.sum())


def test_pullbacks_of_several_results() -> None:
    def both(w: Any, x: Any) -> Any:
        _, pullback = nj.vjp(lambda w, x: (w * x, lax.psum(w * x, "x")), w, x)
        return pullback((x, jnp.ones_like(x)))

    w, x = mapped(both, (ALL, CUT), (ALL, CUT))(2.0, X)
    np.testing.assert_allclose(w, (X**2).sum() + X.sum())
    np.testing.assert_allclose(x, 2.0 * X + 2.0)


def test_collectives_that_move_values() -> None:
    turn = functools.partial(lax.ppermute, axis_name="x", perm=[(0, 1), (1, 0)])
    got = mapped(nj.grad(whole(lambda x: jnp.sum(turn(x) * x))), CUT, CUT)(X)
    np.testing.assert_allclose(got, 2 * np.roll(X, 4))
    got = mapped(nj.grad(whole(lambda x: jnp.sum(lax.all_gather(x, "x") ** 2))), CUT, CUT)(X)
    np.testing.assert_allclose(got, 4 * X)


def test_values_that_are_each_members_own() -> None:
    slope = nj.grad(lambda w, x: jnp.sum(w * x))
    own = mapped(lambda w, x: slope(lax.pcast(w, "x", to="varying"), x)[None], (ALL, CUT), CUT)
    np.testing.assert_allclose(own(2.0, X), [X[:4].sum(), X[4:].sum()])
    each = mapped(nj.grad(whole(lambda x: jnp.sum(x**2))), CUT, CUT, check_vma=False)
    np.testing.assert_allclose(each(X), 2 * 2 * X)


def test_in_loops_what_would_differ_is_refused() -> None:
    f = nj.grad(whole(lambda w, x: jnp.sum(w * x)))
    steps = mapped(lambda w, x: lax.fori_loop(0, 2, lambda i, w: w - f(w, x), w), (ALL, CUT), ALL)
    with pytest.raises(NotImplementedError, match="inside of the body of a loop"):
        steps(2.0, X)
    # What another thread does meanwhile is no concern of this thread's loops.
    inner = nj.jit(nj.grad(whole(lambda w, x: jnp.sum(jnp.sin(w) * x))))

    def body(i: Any, w: Any) -> Any:
        other = threading.Thread(target=lambda: mapped(inner, (ALL, CUT), ALL)(2.0, X))
        other.start()
        other.join()
        return w + 1

    assert lax.fori_loop(0, 3, body, 0) == 3
    transposed = mapped(
        lambda x: nj.linear_transpose(lambda y: lax.psum(y, "x"), x)(x)[0], CUT, CUT
    )
    with pytest.raises(NotImplementedError, match="Use vjp"):
        transposed(X)
