"""`device_put` to another memory of the devices within traced functions: results lie there, as with
JAX 0.10.2 on a CPU device, whose one memory has several names. tests/xla has memories apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import P, numpy as jnp

Space = nj.memory.Space
X = np.arange(8, dtype=np.float32)
HOST = nj.sharding.SingleDeviceSharding(nj.devices()[0], memory_kind="pinned_host")


def kinds(value: Any) -> list[str]:
    return [x.sharding.memory_kind for x in nj.tree.leaves(value)]


def to_host(x: Any) -> Any:
    return nj.device_put(2 * x, Space.Host)


H, D = "pinned_host", "device"
CASES: dict[str, tuple[Callable, list[str]]] = {
    "a space": (to_host, [H]),
    "a sharding": (lambda x: nj.device_put(2 * x, HOST), [H]),
    "one of two": (lambda x: (to_host(x), 2 * x), [H, D]),
    "in a jit within": (lambda x: nj.jit(to_host)(x), [H]),
    "computed from it": (lambda x: nj.device_put(x, Space.Host) * 2, [H]),
    "back": (lambda x: nj.device_put(nj.device_put(x, Space.Host), Space.Device) * 2, [D]),
    "vmap": (nj.vmap(to_host), [H]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_lie_where_the_program_puts_them(name: str) -> None:
    f, told = CASES[name]
    run = nj.jit(f)
    for _ in range(3):  # the quick ways as well
        out = run(X)
        assert kinds(out) == told
        np.testing.assert_array_equal(nj.tree.leaves(out)[0], 2 * X)
    assert kinds(run.lower(X).compile()(X)) == told


def test_shardings_of_results_are_stronger() -> None:
    device = HOST.with_memory_kind("device")
    assert kinds(nj.jit(to_host, out_shardings=device)(X)) == [D]
    both = nj.jit(lambda x: (to_host(x), x), out_shardings=(None, device))
    assert kinds(both(X)) == [H, D]
    assert kinds(nj.jit(lambda x: 2 * x, out_shardings=HOST)(X)) == [H]


def test_a_state_that_lies_in_the_hosts_memory() -> None:
    @nj.jit
    def step(state: Any) -> Any:
        return nj.device_put(nj.device_put(state, Space.Device) + 1, Space.Host)

    state = nj.device_put(X, HOST)
    for _ in range(3):
        state = step(state)
        assert kinds(state) == [H]
    np.testing.assert_array_equal(state, X + 3)
    assert kinds(nj.jit(lambda s: nj.device_put(s, Space.Device) * 2)(state)) == [D]


def test_derivatives_pass_through() -> None:
    f = lambda x: (nj.device_put(nj.device_put(2 * x, Space.Host), Space.Device) ** 2).sum()  # noqa: E731
    for run in (nj.grad(f), nj.jit(nj.grad(f))):
        np.testing.assert_allclose(run(jnp.asarray(X)), 8 * X)
    assert kinds(nj.jvp(to_host, (jnp.asarray(X),), (jnp.asarray(X),))) == [H, H]


def test_over_a_mesh(eight_devices: None) -> None:
    mesh = nj.make_mesh((8,), ("x",))
    rows = nj.NamedSharding(mesh, P("x"))
    x = nj.device_put(X, rows)
    for place in (rows.with_memory_kind("pinned_host"), Space.Host):
        out = nj.jit(lambda x: nj.device_put(2 * x, place))(x)  # noqa: B023 - called at once
        assert out.sharding == rows.with_memory_kind("pinned_host")
        np.testing.assert_array_equal(out, 2 * X)
