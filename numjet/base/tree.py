"""Pytrees: nested containers of leaves, and functions over them, with `jax.tree_util`'s meanings.

Everything below the public namespaces imports pytree functions from here. None, tuples, lists,
dicts (keys in sorted order), OrderedDicts, defaultdicts, namedtuples and registered types are
nodes; everything else is a leaf. `tree_flatten` is called on each call of a transformed function
and must stay fast (see `base.treedef`).
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .tree_paths import (
    KeyPath,
    broadcast_prefix,
    child_keys,
    difference_text,
    equality_errors,
    flatten_axes,
    keystr,
    leaf_path,
    prefix_errors,
    structure_difference,
    tree_flatten_with_path,
)
from .tree_registry import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    kind_of,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from .treedef import LEAF, PyTreeDef, make_node, tree_flatten

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "broadcast_prefix", "build_tree", "difference_text", "equality_errors",
    "flatten_axes", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr",
    "leaf_path",
    "prefix_errors", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static",
    "static_field", "structure_difference", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
    "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten",
    "treedef_children", "treedef_is_leaf", "treedef_tuple",
]

_MISSING = object()
IsLeaf = Callable[[Any], bool] | None


def _structure(treedef: Any, name: str) -> PyTreeDef:
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(
            f"{name}: expected a tree's structure (PyTreeDef, as tree_structure gives it), got "
            f"{treedef!r}."
        )
    return treedef


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with these leaves.

    treedef: a PyTreeDef. leaves: as many objects as it has leaves (ValueError otherwise). The
    inverse of `flatten`.

    >>> from numjet import tree
    >>> tree.unflatten(tree.structure({"a": 1, "b": 2}), [5, 6])
    {'a': 5, 'b': 6}
    """
    if treedef.__class__ is not PyTreeDef:
        _structure(treedef, "tree_unflatten")
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list:
    """The leaves of a tree, in order.

    tree: a pytree. is_leaf: subtrees for which it holds count as leaves.

    >>> from numjet import tree
    >>> tree.leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree, without its leaves.

    tree: a pytree. is_leaf: subtrees for which it holds count as leaves. Result: a PyTreeDef,
    compared by == and hashable.

    >>> from numjet import tree
    >>> tree.structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of f(leaf, *subtrees at the same place in rest).

    f: any function. tree: a pytree; rest: further ones, of which it must be a prefix (ValueError
    naming the path that differs). is_leaf: subtrees for which it holds count as leaves. Result:
    tree's structure.

    >>> from numjet import tree
    >>> tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = _columns("tree_map", treedef, rest)
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


def _columns(caller: str, treedef: PyTreeDef, rest: tuple) -> list[list]:
    columns = []
    for i, other in enumerate(rest):
        try:
            leaves, other_treedef = tree_flatten(other)
        except (ValueError, RecursionError):
            # What stands where `treedef` has a leaf may have keys without an order, or itself
            # below it: it is not opened.
            other_treedef = None
        if other_treedef is not treedef:
            leaves = treedef.flatten_up_to(other, f"{caller}: tree number {i + 2}")
        columns.append(leaves)
    return columns


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING,
                is_leaf: IsLeaf = None) -> Any:
    """`function` folded over the leaves of a tree, from the left.

    function(accumulated, leaf): any function. tree: a pytree. initializer: where folding begins;
    without it, the first leaf (TypeError where there is none). is_leaf: subtrees for which it holds
    count as leaves.

    >>> from numjet import tree
    >>> tree.reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 0)
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _MISSING:
        if not leaves:
            raise TypeError("reduce() of empty iterable with no initial value: the tree has no "
                            "leaves; pass an initializer.")
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *,
                            identity: Any = _MISSING, is_leaf: IsLeaf = None) -> Any:
    """An associative operation over the leaves of a tree, as a balanced tree of applications.

    operation(x, y): any associative function. tree: a pytree. identity: the result for a tree
    without leaves (TypeError otherwise). is_leaf: subtrees for which it holds count as leaves. The
    chain of dependences is log₂ n long, where that of `reduce` is n.

    >>> from numjet import tree
    >>> tree.reduce_associative(lambda x, y: x + y, [1, 2, 3, 4])
    10
    """
    values = tree_leaves(tree, is_leaf)
    if not values:
        if identity is _MISSING:
            raise TypeError(
                "Must specify identity for parallel reduction of empty sequence: pass identity=."
            )
        return identity
    while len(values) > 1:
        pairs = [operation(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(pairs) * 2:]
    return values[0]


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf of a tree is true.

    tree: a pytree. is_leaf: subtrees for which it holds count as leaves.

    >>> from numjet import tree
    >>> tree.all({"a": True, "b": [1, 2]})
    True
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element of an iterable is a leaf, as those that `tree_flatten` gives are.

    iterable: objects. is_leaf: what holds for it counts as a leaf.

    >>> from numjet import tree_util
    >>> tree_util.all_leaves([1, 2]), tree_util.all_leaves([1, [2]])
    (True, False)
    """
    if is_leaf is None:
        return all([kind_of(type(item)) is None for item in iterable])
    return all([is_leaf(item) or kind_of(type(item)) is None for item in iterable])


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: Any) -> Any:
    """A tree of structure outer over inner, turned into inner over outer.

    outer_treedef, inner_treedef: PyTreeDefs; None as the inner one takes the structure of the first
    subtree. pytree_to_transpose: a pytree, of which, as in JAX, the leaves alone are looked at.
    Raises TypeError when there are not as many as these say.

    >>> from numjet import tree
    >>> outer, inner = tree.structure([0, 0]), tree.structure({"a": 0})
    >>> tree.transpose(outer, inner, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    _structure(outer_treedef, "tree_transpose")
    if inner_treedef is not None:
        _structure(inner_treedef, "tree_transpose")
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose, "tree_transpose: the tree")
        inner_treedef = tree_flatten(subtrees[0])[1] if subtrees else LEAF
    expected = outer_treedef.compose(inner_treedef)
    if treedef.num_leaves != expected.num_leaves:
        raise TypeError(f"Mismatch {treedef} != {expected}: tree_transpose expects a tree of the "
                        "outer structure over the inner.")
    width = inner_treedef.num_leaves
    columns = [outer_treedef.unflatten(leaves[i::width]) for i in range(width)]
    return inner_treedef.unflatten(columns)


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of `full_tree` with the leaves of its prefix `prefix_tree`, repeated.

    prefix_tree: a pytree that is as full_tree near the root. is_leaf: subtrees of prefix_tree for
    which it holds count as leaves. Raises ValueError where it is no prefix.

    >>> from numjet import tree
    >>> tree.broadcast({"a": 1, "b": 2}, {"a": [5, 6], "b": 7})
    {'a': [1, 1], 'b': 2}
    """
    values = broadcast_prefix(prefix_tree, full_tree, is_leaf, "tree_broadcast: prefix_tree")
    return tree_structure(full_tree).unflatten(values)


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of a structure whose leaves are those of `xs`, a tree flattened anyhow.

    treedef: a PyTreeDef. xs: a pytree with as many leaves (ValueError otherwise).

    >>> from numjet import tree_util
    >>> tree_util.build_tree(tree_util.tree_structure({"a": 0, "b": 0}), [[1], 2])
    {'a': 1, 'b': 2}
    """
    return _structure(treedef, "build_tree").unflatten(tree_leaves(xs))


# -- key paths ----------------------------------------------------------------------------------


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with the ways to them: [(key path, leaf), ...].

    tree: a pytree. is_leaf: subtrees for which it holds count as leaves; is_leaf_takes_path: it is
    called with (path, node).

    >>> from numjet import tree
    >>> tree.leaves_with_path([5])
    [((SequenceKey(idx=0),), 5)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
    """The tree of f(key path, leaf, *subtrees at the same place in rest).

    f: any function. tree: a pytree; rest: further ones, of which it must be a prefix (ValueError).
    is_leaf: subtrees for which it holds count as leaves; is_leaf_takes_path: it is called with
    (path, node).

    >>> from numjet import tree
    >>> tree.map_with_path(lambda path, x: (len(path), x), {"a": 1, "b": [2]})
    {'a': (1, 1), 'b': [(2, 2)]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _columns("tree_map_with_path", treedef, rest)
    return treedef.unflatten([f(path, leaf, *others) for (path, leaf), *others
                              in zip(pairs, *columns, strict=True)])


# -- structures and single nodes ----------------------------------------------------------------

def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is one node: a leaf, None or an empty container.

    treedef: a PyTreeDef.

    >>> from numjet import tree_util
    >>> tree_util.treedef_is_leaf(tree_util.tree_structure(5))
    True
    """
    return _structure(treedef, "treedef_is_leaf").num_nodes == 1


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures one level down.

    treedef: a PyTreeDef. Result: a list, empty for a leaf.

    >>> from numjet import tree_util
    >>> tree_util.treedef_children(tree_util.tree_structure([1, (2, 3)]))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return _structure(treedef, "treedef_children").children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees.

    treedefs: the structures of its entries.

    >>> from numjet import tree_util
    >>> tree_util.treedef_tuple([tree_util.tree_structure(5), tree_util.tree_structure([6])])
    PyTreeDef((*, [*]))
    """
    kind = kind_of(tuple)
    assert kind is not None
    children = tuple([_structure(treedef, "treedef_tuple") for treedef in treedefs])
    return make_node(kind, None, children)


def is_tree_node(typ: type) -> bool:
    """Whether objects of exactly this type are nodes of pytrees; what is none is a leaf.

    typ: a type.

    >>> from numjet import tree_util
    >>> tree_util.is_tree_node(dict), tree_util.is_tree_node(str)
    (True, False)
    """
    return kind_of(typ) is not None


def flatten_one_level(tree: Any) -> tuple[Sequence, Any]:
    """The children of the outermost node, and its static data.

    tree: a pytree that is no leaf (ValueError). Result: (children, data); children is a list where
    the node is one, else a tuple; of a dictionary the data are its keys.

    >>> from numjet import tree_util
    >>> tree_util.flatten_one_level({"a": 1, "b": [2]})
    ((1, [2]), ('a', 'b'))
    """
    kind = kind_of(type(tree))
    if kind is None:
        raise ValueError(f"flatten_one_level: {type(tree).__name__} is a leaf, not a pytree node.")
    children, data = kind.flatten(tree)
    return list(children) if type(tree) is list else tuple(children), data


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """The children of the outermost node with their keys, and its static data.

    tree: a pytree that is no leaf (ValueError). Result: ([(key, child), ...], data).

    >>> from numjet import tree_util
    >>> tree_util.flatten_one_level_with_keys([5])
    ([(SequenceKey(idx=0), 5)], None)
    """
    children, data = flatten_one_level(tree)
    kind = kind_of(type(tree))
    assert kind is not None
    return list(zip(child_keys(kind, tree, len(children)), children, strict=True)), data


def static_field(**kwargs: Any) -> Any:
    """A dataclass field that `tree_util.register_dataclass` makes static data.

    kwargs: those of `dataclasses.field`. Static data is part of the structure: hashable, compared
    by ==, no leaf.

    >>> from numjet import tree, tree_util
    >>> import dataclasses
    >>> from numjet import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weights: list
    ...     name: str = tree.static(default="dense")
    >>> tree.leaves(Layer([1, 2]))
    [1, 2]
    """
    import dataclasses  # 0.7 ms that most programs do without

    metadata = {**kwargs.pop("metadata", {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)
