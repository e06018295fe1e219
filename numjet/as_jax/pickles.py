"""What pickles that JAX wrote are made of, and numjet's own classes build differently.

A pickle makes an object of a class without arguments and then hands it the state, so that the class
it names cannot choose what it becomes. Each class here is a subclass of ours that takes JAX's state
and then is an object of ours. private.py names them in the places of JAX's.
"""

from __future__ import annotations

from typing import Any

from numjet import random
from numjet.api.placement import mesh as meshes, sharding
from numjet.base import tree_registry, treedef
from numjet.core.array import ArrayImpl


class _Key:
    """An entry of a path in a pytree; the state is its one field."""

    __slots__ = ()

    def __setstate__(self, state: tuple) -> None:
        self.__class__ = type(self).__mro__[2]  # type: ignore[assignment]
        (self._value,) = state  # type: ignore[misc]


class SequenceKey(_Key, tree_registry.SequenceKey):
    __slots__ = ()


class DictKey(_Key, tree_registry.DictKey):
    __slots__ = ()


class GetAttrKey(_Key, tree_registry.GetAttrKey):
    __slots__ = ()


class FlattenedIndexKey(_Key, tree_registry.FlattenedIndexKey):
    __slots__ = ()


# The numbers by which JAX tells kinds of nodes, for those whose type is not written down.
_LEAF, _NAMED_TUPLE = 0, 3
_TYPES: dict[int, type] = {1: type(None), 2: tuple, 4: list, 5: dict}


class PyTreeDef(treedef.PyTreeDef):
    """A structure; the state has its nodes from the leaves up: kind, number of children, static
    data, type, and two counts that follow."""

    __slots__ = ()

    def __setstate__(self, state: tuple) -> None:
        _, nodes = state
        made: list[treedef.PyTreeDef] = []
        for kind, arity, data, cls, *_ in nodes:
            first = len(made) - arity
            children = tuple(made[first:])
            del made[first:]
            if kind == _LEAF:
                made.append(treedef.LEAF)
                continue
            if kind == _NAMED_TUPLE:
                cls, data = data, None
            node = (_TYPES.get(kind, cls), data)
            made.append(treedef.PyTreeDef.from_node_data_and_children(node, children))
        (whole,) = made
        self.__class__ = treedef.PyTreeDef  # type: ignore[assignment]
        for name in treedef.PyTreeDef.__slots__:
            if name != "__weakref__":
                setattr(self, name, getattr(whole, name))


class PRNGImpl:
    """A generator of random numbers, of which the name is enough."""

    name: str

    def __new__(cls, *fields: Any) -> PRNGImpl:
        made = object.__new__(cls)
        made.name = next(field for field in fields if isinstance(field, str))
        return made


class PRNGKeyArray(ArrayImpl):
    """An array of keys; the state has its words and its generator."""

    __slots__ = ()

    def __new__(cls) -> PRNGKeyArray:
        return object.__new__(cls)

    def __init__(self) -> None:
        """The state comes later."""

    def __setstate__(self, state: dict) -> None:
        made = random.wrap_key_data(state["_base_array"], impl=state["_impl"].name)
        self.__class__ = ArrayImpl  # type: ignore[assignment]
        for name in ArrayImpl.__slots__:
            if name != "__weakref__" and hasattr(made, name):
                setattr(self, name, getattr(made, name))


class AbstractMesh:
    """The axes of a mesh: what is made is ours."""

    def __new__(cls, *fields: Any, **named: Any) -> Any:
        return meshes.AbstractMesh(*fields, **named)


def unpickle_named_sharding(mesh: Any, spec: Any, memory_kind: Any, _: Any) -> Any:
    """The sharding of an aval."""
    return sharding.NamedSharding(mesh, spec, memory_kind=memory_kind)
