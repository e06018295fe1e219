"""Transfer guards: which operations are transfers, as JAX's CPU backend has them."""
from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from cpu_devices import cpu_devices

import numjet as nj
import numjet.numpy as jnp
from numjet.core import array, hooks

N = np.arange(3.0, dtype=np.float32)
X, Y, I = jnp.asarray(N), jnp.ones((3, 4)), jnp.int32(1)
KEY = nj.random.key(0)
F = nj.jit(lambda x: x + 1)
CLOSED = nj.jit(lambda x: x * N + np.float32(2))
REFUSED = pytest.raises(nj.errors.JaxRuntimeError, match="Disallowed host-to-device transfer")

IMPLICIT = {
    "array + int": lambda: X + 1,
    "float - array": lambda: 1.5 - X,
    "array + NumPy": lambda: X + N,
    "NumPy + array": lambda: N + X,
    "NumPy's number": lambda: X * np.float32(2),
    "bool": lambda: X + True,
    "comparison": lambda: X > 0,
    "function of NumPy": lambda: jnp.sin(N),
    "function of a number": lambda: jnp.sin(1.0),
    "reduction of NumPy": lambda: jnp.sum(N),
    "where": lambda: jnp.where(X > X, X, 0.0),
    "clip": lambda: jnp.clip(X, 0, 1),
    "maximum": lambda: jnp.maximum(X, 0),
    "lax": lambda: nj.lax.add(X, 1.0),
    "concatenate": lambda: jnp.concatenate([X, N]),
    "product": lambda: X @ N,
    "index": lambda: X[0],
    "range": lambda: X[1:],
    "two indices": lambda: Y[:, 1],
    "NumPy's index": lambda: X[np.array([0, 1])],
    "update": lambda: X.at[0].set(1.0),
    "take": lambda: jnp.take(X, 1),
    "asarray": lambda: jnp.asarray(N),
    "array of a list": lambda: jnp.array([1.0, 2.0]),
    "scalar type": lambda: jnp.float32(1),
    "zeros": lambda: jnp.zeros(3),
    "full": lambda: jnp.full(3, 2.0),
    "ones_like": lambda: jnp.ones_like(X),
    "jitted NumPy": lambda: F(N),
    "jitted number": lambda: F(2.0),
    "jitted list": lambda: nj.jit(lambda x: x[0] + 1)([1.0]),
    "grad of NumPy": lambda: nj.grad(lambda x: (x * x).sum())(N),
    "within grad": lambda: nj.grad(lambda x: (x * N).sum())(X),
    "number within vmap": lambda: nj.vmap(lambda x: x + 1)(X),
    "vmap of NumPy": lambda: nj.vmap(lambda x: x * x)(N),
    "jvp of NumPy": lambda: nj.jvp(lambda x: x * x, (N,), (N,)),
    "scan": lambda: nj.lax.scan(lambda c, x: (c + x, c), 0.0, X),
    "fori_loop": lambda: nj.lax.fori_loop(0, 3, lambda i, c: c, X),
    "key": lambda: nj.random.key(0),
    "fold_in": lambda: nj.random.fold_in(KEY, 1),
}
ALLOWED = {
    "array + array": lambda: X + X,
    "integer power": lambda: X**2,
    "reductions": lambda: (jnp.sum(X), jnp.mean(X), Y.sum(axis=1)),
    "whole": lambda: (X[:], X[None], X[...], X[::2], X[::-1], Y[0:3]),
    "shapes": lambda: (X.reshape(3, 1), jnp.stack([X, X]), jnp.expand_dims(X, 0), jnp.sort(X)),
    "product": lambda: (Y.T @ Y, jnp.einsum("i,i", X, X)),
    "jitted": lambda: F(X),
    "constants of programs": lambda: CLOSED(X),
    "static": lambda: nj.jit(lambda x, k: x + k, static_argnums=1)(X, 3),
    "traced anew": lambda: nj.jit(lambda x: x * N + jnp.zeros(3) + x[0])(X),
    "jitted gradient": lambda: nj.jit(nj.grad(lambda x: jnp.sum(jnp.sin(x) * 2)))(X),
    "gradient": lambda: nj.grad(lambda x: (x * x).sum())(X),
    "types alone": lambda: (nj.eval_shape(F, N), nj.make_jaxpr(F)(N), F.lower(N)),
    "arange": lambda: (jnp.arange(5), jnp.arange(5.0), nj.lax.iota("int32", 3)),
    "random": lambda: (nj.random.split(KEY), nj.random.normal(KEY, (3,))),
    "to the host": lambda: (np.asarray(X), float(I), X.tolist(), repr(X), nj.device_get(X)),
    "astype": lambda: X.astype(int),
    "asarray of an array": lambda: (jnp.asarray(X), jnp.array(X), nj.device_put(X)),
}


@pytest.mark.parametrize("name", IMPLICIT)
def test_implicit_transfers_are_refused(name: str) -> None:
    want = IMPLICIT[name]()
    with REFUSED, nj.transfer_guard("disallow"):
        IMPLICIT[name]()
    with nj.transfer_guard("allow"):
        got = IMPLICIT[name]()
    for a, b in zip(nj.tree.leaves(want), nj.tree.leaves(got), strict=True):
        assert a.dtype == b.dtype and (a == b).all()


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_no_transfer_runs(name: str) -> None:
    with nj.transfer_guard("disallow_explicit"):
        ALLOWED[name]()


def test_explicit_transfers() -> None:
    for call in (lambda: nj.device_put(N), lambda: nj.device_put({"a": [2.0]}),
                 lambda: nj.device_put(N, nj.devices()[0])):
        with nj.transfer_guard("disallow"):
            call()
        with REFUSED, nj.transfer_guard("disallow_explicit"):
            call()


def test_the_message_says_what_and_how() -> None:
    with pytest.raises(RuntimeError) as raised, nj.transfer_guard_host_to_device("disallow"):
        F(N)
    text = str(raised.value)
    assert "float32[3]" in text and "device_put" in text and "implicit" in text


def test_levels_that_log(caplog: pytest.LogCaptureFixture) -> None:
    def logged(level: str) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING), nj.transfer_guard(level):
            F(N)
            nj.device_put(N)
        return [r.getMessage() for r in caplog.records]

    assert [m.split(" transfer (")[0] for m in logged("log")] == ["host-to-device"]
    assert [m.split(":")[0] for m in logged("log_explicit")] == [
        "host-to-device transfer (implicit)", "host-to-device transfer (explicit)"]
    assert not logged("allow")


def test_the_innermost_block_counts_and_each_thread_has_its_own() -> None:
    found: list[str] = []

    def other() -> None:
        try:
            jnp.asarray(N)
            found.append("allowed")
        except RuntimeError:
            found.append("refused")

    def in_a_thread() -> str:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return found.pop()

    with nj.transfer_guard("disallow"):
        assert in_a_thread() == "allowed"
        with nj.transfer_guard_host_to_device("allow"):
            jnp.asarray(N)
        with nj.transfer_guard(None):
            jnp.asarray(N)
        with REFUSED:
            jnp.asarray(N)
    try:
        nj.config.update("jax_transfer_guard", "disallow")
        assert nj.config.jax_transfer_guard_device_to_device == "disallow"
        assert in_a_thread() == "refused"
        nj.config.update("jax_transfer_guard_host_to_device", "allow")
        assert in_a_thread() == "allowed"
    finally:
        nj.config.update("jax_transfer_guard", None)
    assert nj.config.jax_transfer_guard_host_to_device is None


def test_nothing_is_left_when_no_block_guards() -> None:
    before = dict(array._CONVERTERS)
    with nj.transfer_guard("log"):
        assert hooks.guards is not None and array._CONVERTERS != before
        with nj.transfer_guard("disallow"):
            pass
        assert hooks.guards is not None
    assert hooks.guards is None and array._CONVERTERS == before


@pytest.mark.parametrize("level", ["something", 1, True])
def test_other_levels(level: object) -> None:
    with pytest.raises(ValueError), nj.transfer_guard(level):
        pass


@pytest.fixture
def two_devices() -> Iterator[list]:
    with cpu_devices(2) as found:
        yield found


def test_arrays_that_move_among_devices(two_devices: list) -> None:
    first, second = two_devices
    mesh = nj.sharding.Mesh(np.array(two_devices), ("a",))
    rows = nj.sharding.NamedSharding(mesh, nj.sharding.PartitionSpec("a"))
    x = jnp.arange(4.0)
    there, sharded = nj.device_put(x, second), nj.device_put(x, rows)
    guard, moved = nj.transfer_guard_device_to_device, pytest.raises(
        RuntimeError, match="Disallowed device-to-device transfer")
    add = nj.jit(lambda a, b: a + b)
    for call in (lambda: there + x, lambda: sharded + x, lambda: add(sharded, x),
                 lambda: nj.jit(lambda a: a, in_shardings=rows)(x)):
        with moved, guard("disallow"):
            call()
    with guard("disallow"):
        nj.device_put(x, second)
        F(there), sharded + sharded, sharded + np.ones(4, np.float32), np.asarray(sharded)
    with moved, guard("disallow_explicit"):
        nj.device_put(nj.device_put(x, first), second)
