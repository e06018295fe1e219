"""Exported functions as bytes: pickled records, of which reading makes numjet's and NumPy's classes
alone, and structures of nodes that users registered.

For `numjet.export`, which registers nodes. What would break it: a record of a program that
holds a function of Python.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from numjet.base import tree
from numjet.base.class_names import home
from numjet.base.treedef import PyTreeDef
from numjet.core.jaxpr import ClosedJaxpr, Literal
from numjet.core.lowering import Region
from numjet.core.trace import set_trace
from numjet.cpu.graph.nodes import LOOPS, called
from numjet.transforms.stage import StageTrace, with_jaxprs


class Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is PyTreeDef and obj._kind is not None:
            if obj._kind.form == "none":
                return tree.tree_structure, (None,)
            return self._node(obj) if obj._kind.form not in _NODES_OF_PYTHON else NotImplemented
        # The bytes say numjet's modules, under JAX's name too.
        module = home(obj) if isinstance(obj, type) else None
        if module is not None:
            return _class, (module, obj.__qualname__)
        # Where in the user's files an equation stands is left behind.
        return (_nothing, ()) if isinstance(obj, CodeType) else NotImplemented


    def _node(self, structure: Any) -> Any:
        node, data = stored_node(structure)
        return structure_of, (node.name, node.write(data), tuple(structure.children()))


def _class(module: str, name: str) -> type:
    found = getattr(importlib.import_module(module), name, None) if is_own(module) else None
    if not isinstance(found, type):
        raise pickle.UnpicklingError(f"{module}.{name} is no class of numjet's")
    return found


def is_own(module: str) -> bool:
    return module.partition(".")[0] == "numjet"


def _nothing() -> None:
    """What stands for a place in the user's files."""


def inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with calls and functions with rules of their own written out, so that it holds no
    function of Python."""
    trace = StageTrace("an exported function")
    with set_trace(trace):
        args = [trace.new_arg(v.aval) for v in closed.jaxpr.invars]
        jaxpr, consts = trace.finish(_written(trace, closed.jaxpr, closed.consts, args))
    return ClosedJaxpr(jaxpr, consts)


def _written(trace: Any, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list:
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.value if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        rule = eqn.primitive.loops
        inner = called(eqn.params) if type(rule) is Region and rule.name not in LOOPS else None
        if inner is not None:
            body, held = getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())
            outs = _written(trace, body, held, values[len(values) - len(body.invars) :])
        else:
            params = {name: with_jaxprs(value, inlined) for name, value in eqn.params.items()}
            trace.source = eqn.source  # else the line that asks for the bytes would stand in them
            found = trace.record(eqn.primitive, values, params)
            outs = found if eqn.primitive.multiple_results else [found]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


_PLAIN = {
    "builtins": {"getattr", "slice", "set", "frozenset", "complex", "dict", "tuple", "list"},
    "collections": {"OrderedDict", "defaultdict"},
}


def known(module: str, name: str) -> bool:
    """Whether reading may make instances of a class, or call a function, of this name."""
    root = module.partition(".")[0]
    return is_own(module) or root in ("numpy", "ml_dtypes") or name in _PLAIN.get(module, ())


@dataclass(frozen=True)
class StoredNode:
    """How structures with nodes of one class are written down."""

    cls: type
    name: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_stored_nodes: dict[Any, StoredNode] = {}  # by class and by name
_NODES_OF_PYTHON = frozenset(("tuple", "list", "dict", "ordered_dict", "default_dict"))


def register(node: StoredNode) -> type:
    for key, what in ((node.cls, f"type `{node.cls}`"),
                      (node.name, f"serialized_name `{node.name}`")):  # fmt: skip
        if key in _stored_nodes:
            known = _stored_nodes[key]
            previous = f"for type `{known.cls}`" if key == node.name else (
                f"with serialized_name `{known.name}`")
            raise ValueError(
                f"Duplicate serialization registration for {what}. Previous registration was "
                f"{previous}. Register each type once, under a name of its own."
            )
    _stored_nodes[node.cls] = _stored_nodes[node.name] = node
    return node.cls


def stored_node(structure: Any) -> tuple[StoredNode, Any]:
    """How the root of a structure is written down, and its static data. Raises ValueError where its
    class is not registered."""
    cls, data = structure.node_data()
    node = _stored_nodes.get(cls)
    if node is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{cls}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`."
        )
    return node, data


def structure_of(name: str, data: Any, children: tuple) -> Any:
    """The structure of a node that was written under `name`."""
    node = _stored_nodes.get(name)
    if node is None:
        raise pickle.UnpicklingError(
            f"nodes of {name!r} are not registered here. Call export."
            "register_pytree_node_serialization or register_namedtuple_serialization first"
        )
    data = node.read(data)
    if node.build is not None:
        made = node.build(data, [tree.tree_unflatten(c, [0] * c.num_leaves) for c in children])
        return tree.tree_structure(made)
    return PyTreeDef.from_node_data_and_children((node.cls, data), children)


def nothing_of(data: Any) -> None:
    """The static data of named tuples: there are none."""
