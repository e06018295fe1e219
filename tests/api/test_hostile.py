"""Hostile calls of public names: see tools/hostile.py, which draws them."""

from __future__ import annotations

from collections.abc import Callable

import hostile
import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

HUGE = 2**40
x = jnp.ones(3)


@pytest.mark.parametrize("first", [500_000, 500_500])
def test_a_campaign_of_hostile_calls(first: int) -> None:
    found = hostile.batch(first, 500)
    assert not found, "\n".join(found)


def test_everything_public_is_called() -> None:
    names = dict(hostile.public_names())
    assert len(names) > 1100
    assert {"numpy.sin", "lax.add", "random.normal", "Array.reshape", "numjet.grad"} <= names.keys()


def test_a_call_is_drawn_by_its_seed_alone() -> None:
    names = hostile.public_names()
    shown = [hostile.Call(k, names).shown().split(" at 0x")[0] for k in range(50)]
    again = [hostile.Call(k, names).shown().split(" at 0x")[0] for k in range(50)]
    assert shown == again and len(set(shown)) > 40


@pytest.mark.parametrize("error, judged", [
    (KeyError("a"), "KeyError"), (TypeError("a"), ""), (AssertionError("a"), "AssertionError"),
    (nj.errors.InternalError("a"), "InternalError"), (MemoryError(), ""),
    (RuntimeError("a"), "RuntimeError"), (RuntimeError("Found an unbound axis name: i."), ""),
])  # fmt: skip
def test_what_is_judged(error: BaseException, judged: str) -> None:
    def raises(_: object) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        nj.tree.map(raises, 1)
    assert hostile.wrong(caught.value) == judged


TOO_LARGE: dict[str, Callable] = {
    "ones": lambda: jnp.ones((HUGE, HUGE)),
    "full": lambda: jnp.full((2**63 - 1,), 1, jnp.int8),
    "broadcast": lambda: jnp.broadcast_to(x[0], (HUGE, HUGE)),
    "lax": lambda: lax.broadcast(x[0], (HUGE, HUGE)),
    "jit": lambda: nj.jit(lambda a: lax.broadcast(a, (HUGE, HUGE)) * 2)(x[0]),
    "reduced": lambda: nj.jit(lambda a: lax.broadcast(a, (HUGE, HUGE)).sum())(x[0]),
    "repeat": lambda: jnp.repeat(x, 2**62),
    "tile": lambda: jnp.tile(x, 2**62),
    "pad": lambda: lax.pad(x, x[0], [(2**62, 0, 0)]),
    "eye": lambda: jnp.eye(HUGE),
    "diagonal": lambda: jnp.diagflat(x, 2**63),
    "arange": lambda: jnp.arange(2**62),
    "linspace": lambda: jnp.linspace(0, 1, 2**62),
    "random": lambda: nj.random.uniform(nj.random.key(0), (HUGE, HUGE)),
    "one_hot": lambda: nj.nn.one_hot(jnp.arange(3), 2**62),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_no_memory_holds_is_a_memory_error(name: str) -> None:
    with nj.enable_x64(True), pytest.raises(MemoryError, match="does not fit into memory"):
        TOO_LARGE[name]()


@pytest.mark.parametrize("call", [
    lambda: jnp.ones(3, x), lambda: x.astype(x), lambda: jnp.asarray(x, dtype=x),
    lambda: jnp.sum(x, dtype=x), lambda: lax.convert_element_type(x, x),
    lambda: nj.random.normal(nj.random.key(0), (3,), x),
])  # fmt: skip
def test_an_array_is_no_dtype(call: Callable) -> None:
    with pytest.raises(ValueError, match="passed as a dtype"):
        call()
    with pytest.raises(TypeError, match="passed as a dtype"):
        jnp.zeros_like(x, np.ones(3))


@pytest.mark.parametrize("call", [
    lambda: nj.tree_util.tree_unflatten(3, [2]), lambda: nj.tree_util.treedef_children([1.0]),
    lambda: nj.tree_util.treedef_is_leaf("a"), lambda: nj.tree_util.treedef_tuple([3]),
    lambda: nj.tree_util.tree_transpose(3, None, (1,)), lambda: nj.dlpack.from_dlpack(3),
    lambda: nj.tree_util.register_pytree_node_class(int), lambda: jnp.from_dlpack({}),
    lambda: nj.tree_util.register_pytree_with_keys_class(x), lambda: nj.freeze(3),
    lambda: nj.image.resize(jnp.ones((2, 2)), (1, 1), 3),
    lambda: nj.tree_util.PyTreeDef(True, None, ()), lambda: nj.tree_util.PyTreeDef(None, None, 3),
    lambda: nj.tree_util.PyTreeDef(None, None, (x,)),
    lambda: nj.tree_util.PyTreeDef.from_node_data_and_children((tuple, None), (3,)),
])  # fmt: skip
def test_arguments_of_another_kind(call: Callable) -> None:
    with pytest.raises(TypeError, match="expected|must be|takes a kind of node"):
        call()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "float32"])
def test_text_that_is_no_number(name: str) -> None:
    with pytest.raises(ValueError if name == "float32" else TypeError):
        getattr(jnp, name)("text")
    assert jnp.float16("1.5") == 1.5


def test_an_object_that_is_its_own_array() -> None:
    class Own:
        def __jax_array__(self):
            return self

    with pytest.raises(TypeError, match="must return an array"):
        jnp.add(Own(), x)
