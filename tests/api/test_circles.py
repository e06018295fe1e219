"""Calls leave no objects in circles, which memory is held by until the garbage collector runs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.custom_batching import custom_vmap
from numjet.scipy.optimize import minimize
from numjet.sharding import Mesh, PartitionSpec as P


def sine() -> Callable[[Any], Any]:
    """A function that is new to whatever remembers functions."""
    two = jnp.float32(2)
    return lambda x: jnp.sin(x) * two


def shard_map() -> Any:
    mesh = Mesh(np.array(nj.devices()[:1]), ("i",))
    return nj.shard_map(sine(), mesh=mesh, in_specs=P("i"), out_specs=P("i"))(jnp.ones(2))


def mapped_by_rule() -> Any:
    f = custom_vmap(sine())
    f.def_vmap(lambda n, mapped, x: (x, True))
    return nj.vmap(f)(jnp.ones(2))


def loop() -> Any:
    f = sine()
    return lax.while_loop(lambda c: c < 3, lambda c: c + 1 + f(c) ** 2, 1.0)


CALLS = {
    "jit": lambda: nj.jit(sine())(1.0),
    "grad": lambda: nj.jit(nj.grad(nj.checkpoint(sine())))(1.0),
    "while_loop": loop,
    "scan": lambda: nj.hessian(lambda x: lax.scan(lambda c, _: (x * c, c), x, None, 3)[0])(1.0),
    "shard_map": shard_map,
    "custom_vmap": mapped_by_rule,
    "minimize": lambda: minimize(lambda x: (x**2).sum(), jnp.ones(2), method="BFGS"),
    "multi_dot": lambda: jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 2)), jnp.ones(2)]),
    "block": lambda: jnp.block([[jnp.ones((2, 2))], [jnp.ones((2, 2))]]),
    "broadcast": lambda: nj.tree.broadcast(1, {"a": [1, 2]}),
    "walk": lambda: nj.tree.structure({"a": 1, "b": (2,)}).walk(lambda c, _: c, None, [1, 2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_circles_of_objects(name):
    call = CALLS[name]
    for _ in range(3):
        call()
    gc.collect()
    gc.disable()
    try:
        call()
        assert gc.collect() == 0
    finally:
        gc.enable()
