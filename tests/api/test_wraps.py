"""Transformations of callable objects whose names are no text, as modules of libraries may be."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import numjet as nj
from numjet import numpy as jnp
from numjet.base.config import FLAGS
from numjet.numpy import elementwise, logic


class Named:
    """A callable with an attribute in the place of a name."""

    def __init__(self) -> None:
        self.__name__ = 3.0
        self.__annotations__ = None

    def __call__(self, x):
        return 2.0 * x


@pytest.mark.parametrize("transform", [nj.jit, nj.vmap, nj.checkpoint, nj.pmap])
def test_names_that_are_no_text_are_left_out(transform):
    np.testing.assert_array_equal(transform(Named())(np.ones((1, 2), np.float32)), [[2, 2]])


def test_gradients_of_such_objects():
    assert nj.grad(Named())(1.0) == 2 and nj.value_and_grad(Named())(1.0)[0] == 2
    assert nj.jacfwd(Named())(1.0) == 2


def test_keys_are_close_when_they_are_equal():
    keys = nj.random.split(nj.random.key(0), 3)
    assert nj.numpy.isclose(keys, keys[::-1]).tolist() == [False, True, False]
    assert nj.numpy.allclose(keys, keys)


def scaled(x, times=2, *, power=1):
    return (x * times) ** power


raised = nj.jit(scaled, static_argnames="power", donate_argnums=0)


@nj.jit
def tripled(x):
    return 3 * x


def test_jitted_functions_are_pickled_by_name_or_with_what_they_were_told():
    """As JAX's are by cloudpickle, which writes down functions that no module has, too."""
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    again = pickle.loads(pickle.dumps(raised))  # no module has it under its function's name
    assert again is not raised and again.__wrapped__ is scaled
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(again(x, 3, power=2), [0, 9, 36])
    assert x.is_deleted() and again._cache_size() == 1
    with pytest.raises(ValueError, match="hash"):
        again(jnp.ones(1), power=np.ones(1))
    mesh = nj.make_mesh((1,), ("i",))
    placed = nj.jit(scaled, out_shardings=nj.NamedSharding(mesh, nj.P("i")))
    back = pickle.loads(pickle.dumps(placed))
    assert back(jnp.ones(2)).sharding == placed(jnp.ones(2)).sharding
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(nj.jit(lambda x: x))


def test_copies_of_jitted_functions_are_themselves():
    """So that a copy of what holds one does not compile again."""
    held = {"f": raised, "g": nj.jit(lambda x: x)}
    assert copy.deepcopy(held)["f"] is raised and copy.copy(held["g"]) is held["g"]


def test_what_made_functions_read_is_pickled_by_name():
    """Closures that cloudpickle writes down (initializers) read flags and functions of ours."""
    flag = FLAGS["jax_equations"]
    assert pickle.loads(pickle.dumps(flag)) is flag
    for function in (elementwise.multiply, elementwise.add, logic.logical_and, jnp.multiply):
        assert pickle.loads(pickle.dumps(function)) is function
