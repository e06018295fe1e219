"""Trees with key paths, prefix trees, and messages that name the place where two trees differ.

Used by `base.tree` and, for `in_axes`-like arguments, by the transformations' front ends. Breaks
when a registered type's key function gives another number of keys than its flatten gives children.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .tree_registry import FlattenedIndexKey, NodeKind, kind_of
from .treedef import LEAF, PyTreeDef, TreeMismatch, describe, make_node, open_node

KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    keys: as of `tree_flatten_with_path`. simple: the bare names, joined by `separator`, instead of
    Python's notation.

    >>> from numjet import tree_util
    >>> [(path, leaf)] = tree_util.tree_leaves_with_path({"a": [5]})
    >>> tree_util.keystr(path), tree_util.keystr(path, simple=True, separator="/")
    ("['a'][0]", 'a/0')
    """
    if not isinstance(separator, str):
        raise TypeError(f"keystr: separator must be a string, got {separator!r}.")
    return separator.join([_bare(key) if simple else str(key) for key in keys])


def _bare(key: Any) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def child_keys(kind: NodeKind, node: Any, count: int) -> list:
    """The key of each child of a node; flat indices for children that were given no key."""
    keys = list(kind.keys(node))[:count]
    return keys + [FlattenedIndexKey(i) for i in range(len(keys), count)]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False,
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The leaves of a tree with the ways to them, and its structure.

    tree: a pytree. is_leaf: subtrees for which it holds count as leaves; is_leaf_takes_path: it is
    called with (path, node). Result: ([(key path, leaf), ...], PyTreeDef); `tree_util.keystr`
    prints a path.

    >>> from numjet import tree
    >>> tree.flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    out: list[tuple[KeyPath, Any]] = []
    stops = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        stops = lambda path, node: is_leaf(node)  # noqa: E731
    return out, _with_paths(tree, (), stops, out)


def _with_paths(
    node: Any, path: KeyPath, stops: Callable[..., bool] | None, out: list[tuple[KeyPath, Any]]
) -> PyTreeDef:
    """The structure of a node at the end of a path, whose leaves are added to `out`."""
    kind = kind_of(type(node)) if stops is None or not stops(path, node) else None
    if kind is None:
        out.append((path, node))
        return LEAF
    children, data = kind.flatten(node)
    children = list(children)
    keys = child_keys(kind, node, len(children))
    pairs = zip(keys, children, strict=True)
    return make_node(
        kind, data, tuple([_with_paths(c, (*path, key), stops, out) for key, c in pairs])
    )


def leaf_path(treedef: PyTreeDef, i: int) -> KeyPath:
    """The way to leaf `i` of a structure."""
    path: list[Any] = []
    while treedef is not LEAF:
        for at, child in enumerate(treedef._children):  # noqa: B007  (read below)
            if i < child.num_leaves:
                break
            i -= child.num_leaves
        path.append(_child_key(treedef, at))
        treedef = child
    return tuple(path)


def _child_key(treedef: PyTreeDef, at: int) -> Any:
    """The key of child `at`; its index where the node's class does not take numbers for children.

    A class may check what it is made of, or count arrays alone as its children (distrax).
    """
    kind, count = treedef._kind, len(treedef._children)
    assert kind is not None
    try:
        return child_keys(kind, kind.unflatten(treedef._data, tuple(range(count))), count)[at]
    except Exception:  # noqa: BLE001  (of the user's class; this is for a message)
        return FlattenedIndexKey(at)


# -- prefixes -----------------------------------------------------------------------------------

def _broadcast(prefix: Any, treedef: PyTreeDef, is_leaf: Callable[[Any], bool] | None,
           out: list) -> None:
    """Append each leaf of `prefix` once per leaf of `treedef` under it, or raise TreeMismatch."""
    kind = None if is_leaf is not None and is_leaf(prefix) else kind_of(type(prefix))
    if kind is None:
        out.extend([prefix] * treedef.num_leaves)
        return
    opened, children = open_node(treedef, prefix)
    for i, (child, part) in enumerate(zip(children, treedef._children, strict=True)):
        try:
            _broadcast(child, part, is_leaf, out)
        except TreeMismatch as error:
            error.path.insert(0, child_keys(opened, prefix, len(children))[i])
            raise


def broadcast_prefix(prefix_tree: Any, full_tree: Any,
                     is_leaf: Callable[[Any], bool] | None = None,
                     name: str = "prefix tree") -> list:
    """The leaves of `prefix_tree`, each repeated for every leaf of `full_tree` under it.

    Raises ValueError naming the path that differs when `prefix_tree` is no prefix. Subtrees of
    `prefix_tree` for which is_leaf holds count as leaves.
    """
    out: list[Any] = []
    try:
        _broadcast_over_tree(prefix_tree, full_tree, is_leaf, out)
    except TreeMismatch as error:
        raise ValueError(
            f"{name} is not a prefix of the full tree: at {error.at()}, {error.text}") from None
    return out


def _broadcast_over_tree(prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None,
                      out: list) -> None:
    _broadcast(prefix, _nodes(full), is_leaf, out)


def _nodes(node: Any) -> PyTreeDef:
    kind = kind_of(type(node))
    if kind is None:
        return LEAF
    children, data = kind.flatten(node)
    return make_node(kind, data, tuple([_nodes(child) for child in children]))


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any,
                 is_leaf: Callable[[Any], bool] = lambda node: node is None) -> list:
    """One entry per leaf of `treedef` from `axis_tree`, a prefix whose None (or other nodes for
    which is_leaf holds) count as entries; the None of the values count as nodes all the same.

    `name` is the argument's name in the ValueError raised when it is no prefix, as `in_axes`.
    """
    out: list[Any] = []
    try:
        _broadcast(axis_tree, treedef, is_leaf, out)
    except TreeMismatch as error:
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value: at "
            f"{name}{keystr(tuple(error.path))}, "
            f"{error.text} {name} was {axis_tree!r}; the values have the structure {treedef}."
        ) from None
    return out


# -- differences --------------------------------------------------------------------------------

def prefix_errors(prefix_tree: Any, full_tree: Any,
                  is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[KeyPath, str]]:
    """Every (path, sentence) where `prefix_tree` is no prefix of `full_tree`; [] when it is."""
    found: list[tuple[KeyPath, str]] = []

    def visit(prefix: Any, full: Any, path: KeyPath) -> None:
        if is_leaf is not None and is_leaf(prefix):
            return
        kind = kind_of(type(prefix))
        if kind is None:
            return
        children, data = kind.flatten(prefix)
        children = list(children)
        node = make_node(kind, data, (LEAF,) * len(children))
        try:
            _, others = open_node(node, full)
        except TreeMismatch as error:
            found.append((path, error.text))
            return
        for key, child, other in zip(child_keys(kind, prefix, len(children)), children, others,
                                     strict=True):
            visit(child, other, (*path, key))

    visit(prefix_tree, full_tree, ())
    return found


def equality_errors(tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None,
                    ) -> Iterator[tuple[KeyPath, str, str, str]]:
    """(path, first in words, second in words, difference) wherever the structures differ."""
    yield from _differences(tree1, tree2, is_leaf, ())


def _differences(tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None,
                 path: KeyPath) -> Iterator[tuple[KeyPath, str, str, str]]:
    leaf1, leaf2 = (is_leaf is not None and is_leaf(tree) for tree in (tree1, tree2))
    kind1 = None if leaf1 else kind_of(type(tree1))
    kind2 = None if leaf2 else kind_of(type(tree2))
    if kind1 is None and kind2 is None:
        return
    children1, data1 = ([], None) if kind1 is None else kind1.flatten(tree1)
    children2, data2 = ([], None) if kind2 is None else kind2.flatten(tree2)
    children1, children2 = list(children1), list(children2)
    words = (describe(kind1, data1, len(children1)), describe(kind2, data2, len(children2)))
    if kind1 is not kind2:
        yield (path, *words, "the types of the nodes differ")
        return
    assert kind1 is not None
    if not bool(data1 == data2):
        what = "keys" if kind1.form.endswith("dict") else "static data"
        yield (path, *words, f"the {what} differ")
        return
    if len(children1) != len(children2):
        yield (path, *words, "the numbers of children differ")
        return
    for key, child1, child2 in zip(child_keys(kind1, tree1, len(children1)), children1, children2,
                                   strict=True):
        yield from _differences(child1, child2, is_leaf, (*path, key))


def difference_text(name1: str, tree1: Any, name2: str, tree2: Any) -> str:
    """Sentences that say where two trees differ in structure; empty when they do not."""
    return " ".join([
        f"At {keystr(path) or 'the root'}, {name1} has {first} and {name2} has {second}: {why}."
        for path, first, second, why in equality_errors(tree1, tree2)])


def structure_difference(name1: str, treedef1: PyTreeDef, name2: str, treedef2: PyTreeDef) -> str:
    """`difference_text` of two structures, of whose leaves nothing is known."""
    tree1, tree2 = (t.unflatten(range(t.num_leaves)) for t in (treedef1, treedef2))
    return difference_text(name1, tree1, name2, tree2)
