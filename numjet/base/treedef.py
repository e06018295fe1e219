"""Tree structures (`PyTreeDef`), and flattening and unflattening by them.

Every call of a transformed function flattens its arguments, so the common path is fast: the
structure of a tree that was seen a few times gets a generated flattener (`base.tree_codegen`),
which checks that a tree has exactly this structure and lists its leaves, or returns None.
Structures whose static data are plain values are interned, so equal structures are mostly one
object and comparing them is comparing identities; equality is structural in every case.

Used by `base.tree` and `base.tree_paths`. What would break it: handing out an interned structure
for a tree whose static data are only equal to it, not the same (1 and 1.0, 0.0 and -0.0), since
unflattening would then change values. `static_key` draws that line.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .tree_codegen import generate_builder, generate_matcher, leaf_count_error, static_key
from .tree_registry import KINDS, LEAF_TYPES, ON_CHANGE, NodeKind, kind_of, refuse_parts

# A structure gets generated code when generating has about been paid for: it costs as much as 40
# (ten leaves) to 110 (one leaf) traversals, and most structures are seen a few times, while a
# program is built.
USES_BEFORE_GENERATING = 32
# Structures nested deeper, or with more nodes, are traversed plainly: CPython's parser refuses
# about 100 nested brackets, and code for huge trees takes long to generate.
MAX_GENERATED_DEPTH = 40
MAX_GENERATED_NODES = 2000
# The tables of known structures are emptied when they reach this size, which bounds what they keep.
MAX_KNOWN = 4096
# Structures tried for trees of one outer shape, before the plain way.
MAX_CANDIDATES = 4


class TreeMismatch(Exception):
    """A tree differs from a structure; `path` leads from the root to the node that differs."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text
        self.path: list[Any] = []

    def at(self) -> str:
        return "".join(map(str, self.path)) or "the root"


class PyTreeDef:
    """The structure of a tree: its nodes and static data, and where its leaves stand. Immutable.

    `num_leaves`, `num_nodes`, `children()`, `unflatten(leaves)`, `flatten_up_to(tree)`; compared by
    == and hashable. `tree.structure` makes one; kind, data and children are what it is made of.

    >>> from numjet import tree_util
    >>> tree_util.tree_structure({"a": 1, "b": [2, 3]}).num_leaves
    3
    """

    __slots__ = ("_kind", "_data", "_children", "num_leaves", "num_nodes", "_depth", "_plain",
                 "_hash", "_match", "_read", "_build", "_uses", "__weakref__")

    def __init__(self, kind: NodeKind | None, data: Any, children: tuple[PyTreeDef, ...]):
        if not (kind is None or isinstance(kind, NodeKind)) or not isinstance(children, tuple) or (
            not all([isinstance(child, PyTreeDef) for child in children])
        ):
            raise TypeError(
                "PyTreeDef takes a kind of node, its data and a tuple of PyTreeDefs. Use "
                "tree_util.tree_structure, or PyTreeDef.from_node_data_and_children."
            )
        self._kind = kind
        self._data = data
        self._children = children
        leaves, nodes, depth, plain = 1 if kind is None else 0, 1, 0, True
        for child in children:
            leaves += child.num_leaves
            nodes += child.num_nodes
            if child._depth > depth:
                depth = child._depth
            if not child._plain:
                plain = False
        self.num_leaves: int = leaves
        self.num_nodes: int = nodes
        self._depth: int = depth + 1
        # Whether the structure may be interned: keeping it keeps only plain values alive.
        self._plain: bool = plain
        self._hash: int | None = None
        self._match: Callable[[Any], list | None] | None = None
        self._read: Callable[[Any], list | None] | None = None
        self._build: Callable[[Iterable], Any] | None = None
        self._uses = 0

    # -- identity ---------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        if not (self._kind is other._kind and len(self._children) == len(other._children)
                and self.num_leaves == other.num_leaves):  # fmt: skip
            return False
        try:
            equal = bool(self._data == other._data)
        except Exception as error:
            raise ValueError(
                "Exception raised while checking equality of metadata fields of pytree. The static "
                f"data {_short(self._data)} and {_short(other._data)} of nodes do not compare: "
                f"{error} Arrays are no static data; make them children."
            ) from error
        return equal and all(
            [a == b for a, b in zip(self._children, other._children, strict=True)])

    def __hash__(self) -> int:
        if self._hash is None:
            cls = None if self._kind is None else self._kind.cls
            try:
                data = hash(self._data)
            except TypeError:
                data = 0  # lists, arrays: equality decides among structures of the same shape
            self._hash = hash((cls, data, self._children))
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def _text(self) -> str:
        parts = [child._text() for child in self._children]
        kind = self._kind
        if kind is None:
            return "*"
        if kind.form == "none":
            return "None"
        if kind.form == "list":
            return f"[{', '.join(parts)}]"
        if kind.form == "tuple":
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        if kind.form == "dict":
            items = zip(self._data, parts, strict=True)
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in items) + "}"
        if kind.form == "namedtuple":
            return f"CustomNode(namedtuple[{kind.cls.__name__}], [{', '.join(parts)}])"
        return f"CustomNode({kind.cls.__name__}[{self._data}], [{', '.join(parts)}])"

    def __reduce__(self):
        cls = None if self._kind is None else self._kind.cls
        return _rebuild, (cls, self._data, self._children)

    def __deepcopy__(self, memo: dict) -> PyTreeDef:
        return self

    # -- looking at it ----------------------------------------------------------------------

    def children(self) -> list[PyTreeDef]:
        """The structures one level down, a list.

        >>> from numjet import tree_util
        >>> tree_util.tree_structure([0, (0, 0)]).children()
        [PyTreeDef(*), PyTreeDef((*, *))]
        """
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """(type, static data) of the outermost node; None for a leaf."""
        if self._kind is None:
            return None
        return self._kind.cls, list(self._data) if self._kind.form == "dict" else self._data

    # -- using it ---------------------------------------------------------------------------

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves.

        leaves: as many objects as it has leaves (ValueError otherwise).

        >>> from numjet import tree_util
        >>> tree_util.tree_structure({"a": 0}).unflatten([5])
        {'a': 5}
        """
        build = self._build
        if build is None:
            build = self.builder() if self._count_use() else self._unflatten_plainly
        if type(leaves) is not list and not isinstance(leaves, list | tuple):
            leaves = list(leaves)  # a generator's own errors are not about the number of leaves
        return build(leaves)

    def _count_use(self) -> bool:
        """Note one use; says whether generated code pays."""
        self._uses += 1
        return self._uses >= USES_BEFORE_GENERATING and self._may_generate()

    def _may_generate(self) -> bool:
        return self._depth <= MAX_GENERATED_DEPTH and self.num_nodes <= MAX_GENERATED_NODES

    def matcher(self) -> Callable[[Any], list | None]:
        """A function: tree -> its leaves if it has exactly this structure, else None. Made once."""
        if self._match is None:
            self._match = generate_matcher(self) if self._may_generate() else self._match_plainly
        return self._match

    def reader(self) -> Callable[[Any], list | None]:
        """Like `matcher`, but does not check that what stands at the leaves are leaves.

        For callers that look at every leaf anyway, as dispatch does: a container among the leaves
        means that the tree has another structure. Made once.
        """
        if self._read is None:
            generate = self._may_generate()
            self._read = generate_matcher(self, False) if generate else self._match_plainly
        return self._read

    def builder(self) -> Callable[[Iterable], Any]:
        """A function: leaves -> tree. Made once."""
        if self._build is None:
            generate = self._may_generate()
            self._build = generate_builder(self) if generate else self._unflatten_plainly
        return self._build

    def _match_plainly(self, tree: Any) -> list | None:
        leaves: list[Any] = []
        return leaves if _flatten_into(tree, leaves, None) == self else None

    def _unflatten_plainly(self, leaves: Iterable[Any]) -> Any:
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise leaf_count_error(self, values)
        return self._take(iter(values))

    def _take(self, leaves: Iterator[Any]) -> Any:
        if self._kind is None:
            return next(leaves)
        if self._plain:
            children = [next(leaves) if c is LEAF else c._take(leaves) for c in self._children]
        else:  # made each time, but those below may have a builder
            children = [
                next(leaves) if c is LEAF else c._take(leaves) if not c._plain
                else c.unflatten(list(itertools.islice(leaves, c.num_leaves)))
                for c in self._children]
        return self._kind.unflatten(self._data, tuple(children))

    def walk(self, f: Callable[[tuple, Any], Any], leaf: Callable[[Any], Any] | None,
             leaves: Iterable[Any]) -> Any:
        """Fold this structure over its leaves: leaf(value) at them (None: the value as it is),
        f(children, static data) at nodes."""
        values = iter(leaves)
        if self._kind is None:
            return next(values) if leaf is None else leaf(next(values))
        made = self.node_data()
        assert made is not None
        return f(tuple([child.walk(f, leaf, values) for child in self._children]), made[1])

    def from_iterable_tree(self, tree: Any) -> Any:
        """The tree of this structure out of sequences nested as it is, which stand for its nodes.

        >>> from numjet import tree_util
        >>> tree_util.tree_structure({"a": 0, "b": (0,)}).from_iterable_tree([1, [2]])
        {'a': 1, 'b': (2,)}
        """
        if self._kind is None:
            return tree
        parts = list(tree)
        if len(parts) != len(self._children):
            raise ValueError(
                f"from_iterable_tree: a node of {self!r} has {len(self._children)} children, got "
                f"{len(parts)}.")
        return self._kind.unflatten(self._data, tuple(
            [c.from_iterable_tree(part) for c, part in zip(self._children, parts, strict=True)]))

    def flatten_up_to(self, tree: Any, name: str = "tree") -> list:
        """The subtrees of a tree at the leaves of this structure, which must be a prefix of it
        (ValueError).

        tree: a pytree.

        >>> from numjet import tree_util
        >>> tree_util.tree_structure([0, 0]).flatten_up_to([1, (2, 3)])
        [1, (2, 3)]
        """
        out: list[Any] = []
        try:
            flatten_up_to(self, tree, out)
        except TreeMismatch as error:
            raise ValueError(
                f"{name} does not have the expected structure: at {error.at()}, {error.text}"
            ) from None
        return out

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in place of every leaf."""
        if self._kind is None:
            return inner
        return make_node(self._kind, self._data, tuple([c.compose(inner) for c in self._children]))

    @classmethod
    def from_node_data_and_children(
            cls, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]) -> PyTreeDef:
        """The structure with this outermost node, as `node_data()` and `children()` give it."""
        if node_data is None:
            return LEAF
        return _rebuild(*node_data, tuple(children))


LEAF = PyTreeDef(None, None, ())
_are_names = frozenset((str,)).issuperset
_interned: dict[Any, PyTreeDef] = {}
# Types of nodes whose static data, functions say, were seen to have no key. What is below such a
# node may be known all the same.
_never_interned: set[type] = set()


def make_node(kind: NodeKind, data: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    """The structure of a node over these children; interned where all data are plain."""
    if data is None:
        key: Any = (kind, *map(id, children))
    elif type(data) is tuple and _are_names(map(type, data)):
        key = (kind, data, *map(id, children))  # most dictionaries
    else:
        data_key = None
        if all([c._plain for c in children]):
            data_key = static_key(data)
            if data_key is None:
                _never_interned.add(kind.cls)
        if data_key is None:
            treedef = PyTreeDef(kind, data, children)
            treedef._plain = False
            return treedef
        key = (kind, data_key, *map(id, children))
    found = _interned.get(key)
    if found is None:
        found = PyTreeDef(kind, data, children)
        if not found._plain:
            return found
        if len(_interned) >= MAX_KNOWN:
            forget_structures()
        _interned[key] = found
    return found


def forget_structures() -> None:
    """Empty the tables of known structures. Structures in use stay valid and compare as before."""
    _candidates.clear()
    _interned.clear()
    _never_interned.clear()
    for treedef in (_none, *_flat_tuples, *_flat_lists):
        _interned[(treedef._kind, *map(id, treedef._children))] = treedef


def _rebuild(cls: type | None, data: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    if cls is None:
        return LEAF
    kind = kind_of(cls)
    if kind is None:
        raise ValueError(f"PyTreeDef: {cls.__module__}.{cls.__qualname__} is not a pytree node "
                         "here. Register it before reading structures that hold it.")
    return make_node(kind, tuple(data) if kind.form == "dict" else data, tuple(children))


# -- flattening ---------------------------------------------------------------------------------

_FLAT_SIZES = 9
_are_leaf_types = LEAF_TYPES.issuperset
_flat_tuples = [PyTreeDef(KINDS[tuple], None, (LEAF,) * n) for n in range(_FLAT_SIZES)]
_flat_lists = [PyTreeDef(KINDS[list], None, (LEAF,) * n) for n in range(_FLAT_SIZES)]
_none = PyTreeDef(KINDS[type(None)], None, ())
# Outer shape of a tree -> structures with generated flatteners, the latest hit first.
_candidates: dict[Any, list[PyTreeDef]] = {}


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None,
                 ) -> tuple[list, PyTreeDef]:
    """The leaves of a tree in order, and its structure.

    tree: a pytree: nested lists, tuples, dictionaries (in the order of sorted keys), None (no
    leaf), and registered types; everything else is a leaf. is_leaf: subtrees for which it holds
    count as leaves. Result: (list, PyTreeDef). The inverse is `unflatten`.

    >>> from numjet import tree
    >>> tree.flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    if is_leaf is not None:
        leaves: list[Any] = []
        treedef = _flatten_into(tree, leaves, is_leaf)
        return leaves, treedef
    cls = type(tree)
    if cls in LEAF_TYPES:
        return [tree], LEAF
    shape: Any
    if cls is tuple or cls is list:
        size = len(tree)
        if size < _FLAT_SIZES and _are_leaf_types(map(type, tree)):
            return list(tree), _flat_tuples[size] if cls is tuple else _flat_lists[size]
        shape = (cls, *map(type, tree))
    elif cls is dict:
        shape = tuple(tree)
    else:
        shape = cls
    candidates = _candidates.get(shape)
    if candidates is not None:
        treedef = candidates[0]
        matched = treedef._match(tree)  # type: ignore[misc]
        if matched is not None:
            return matched, treedef
        for i in range(1, len(candidates)):
            treedef = candidates[i]
            matched = treedef._match(tree)  # type: ignore[misc]
            if matched is not None:
                _candidates[shape] = [treedef, *candidates[:i], *candidates[i + 1:]]
                return matched, treedef
    leaves = []
    treedef = _flatten_into(tree, leaves, None)
    if treedef is not LEAF and treedef._count_use():
        _remember(shape, treedef)
    return leaves, treedef


def _remember(shape: Any, treedef: PyTreeDef) -> None:
    treedef.matcher()
    if len(_candidates) >= MAX_KNOWN:
        _candidates.clear()
    known = _candidates.get(shape, [])  # a list that other threads see is never empty
    if all([treedef is not other for other in known]):
        _candidates[shape] = [treedef, *known[:MAX_CANDIDATES - 1]]


def _flatten_into(tree: Any, leaves: list, is_leaf: Callable[[Any], bool] | None) -> PyTreeDef:
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return LEAF
    cls = type(tree)
    kind = KINDS.get(cls) or kind_of(cls)
    if kind is None:
        leaves.append(tree)
        return LEAF
    try:
        children, data = kind.flatten(tree)
        children = tuple(children)
    except (TypeError, ValueError):
        refuse_parts(kind, tree)
        raise
    if is_leaf is not None:
        return make_node(kind, data, tuple([_flatten_into(c, leaves, is_leaf) for c in children]))
    if _are_leaf_types(map(type, children)):
        leaves.extend(children)
        return make_node(kind, data, (LEAF,) * len(children))
    below = []
    for child in children:
        if child is None:
            below.append(_none)
        elif type(child) in LEAF_TYPES:
            leaves.append(child)
            below.append(LEAF)
        elif cls in _never_interned:
            inner, structure = tree_flatten(child)
            leaves += inner
            below.append(structure)
        else:
            below.append(_flatten_into(child, leaves, None))
    return make_node(kind, data, tuple(below))


# -- comparing a tree with a structure ----------------------------------------------------------

def describe(kind: NodeKind | None, data: Any, size: int) -> str:
    """A node in words, for messages."""
    if kind is None:
        return "a leaf"
    if kind.form == "none":
        return "None"
    if kind.form in ("dict", "ordered_dict"):
        return f"{_article(kind.cls.__name__)} with keys {list(data)!r}"
    if kind.form == "default_dict":
        return f"a defaultdict of {data[0]!r} with keys {list(data[1])!r}"
    if kind.form in ("list", "tuple"):
        return f"a {kind.form} of length {size}"
    if data is None or (type(data) is tuple and not data):
        return f"a {kind.cls.__name__} of {size} children"
    return f"a {kind.cls.__name__} of {size} children with static data {data!r}"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_NONE_REMEDY = (" None is a node without leaves; pass is_leaf=lambda x: x is None, where the "
                "function takes it, to treat None as a leaf.")


def open_node(treedef: PyTreeDef, tree: Any) -> tuple[NodeKind, list]:
    """The children of `tree`, whose outermost node must be that of `treedef`, else TreeMismatch."""
    wanted, kind = treedef._kind, kind_of(type(tree))
    size = len(treedef._children)
    if kind is None:
        remedy = _NONE_REMEDY if wanted is not None and wanted.form == "none" else ""
        raise TreeMismatch(f"expected {describe(wanted, treedef._data, size)}, got "
                           f"{_short(tree)} of type {type(tree).__name__}."
                           f"{_in_short('different types')}{_expected(wanted, tree)}{remedy}")
    children, data = kind.flatten(tree)
    children = list(children)
    if kind is not wanted or len(children) != size or not bool(data == treedef._data):
        remedy = _NONE_REMEDY if "none" in (kind.form, wanted and wanted.form) else ""
        other = _expected(wanted, tree) if kind is not wanted else ""
        differs = _difference(treedef, kind, data, tree, len(children))
        raise TreeMismatch(f"expected {describe(wanted, treedef._data, size)}, got "
                           f"{describe(kind, data, len(children))}.{differs}{other}{remedy}")
    return kind, children


# What messages call the nodes of Python's own containers.
_FORMS = {"dict": "dict", "list": "list", "tuple": "tuple", "none": "None",
          "namedtuple": "named tuple"}  # fmt: skip


def _expected(wanted: NodeKind | None, tree: Any) -> str:
    """The sentence that programs look for where a container of Python's was expected."""
    if wanted is None:
        return ""
    form = _FORMS.get(wanted.form)
    if wanted.form == "namedtuple" and hasattr(tree, "_fields"):
        return f" Named tuple type mismatch: expected type: {wanted.cls}, tuple: {_short(tree)}."
    if form is not None:
        return f" Expected {form}, got {_short(tree)}."
    return f" Custom node type mismatch: expected type: {wanted.cls}, value: {_short(tree)}."


def _in_short(difference: str) -> str:
    return f" (pytree structure error: {difference}.)"


def _difference(treedef: PyTreeDef, kind: NodeKind, data: Any, tree: Any, size: int) -> str:
    """What differs between a node and the one expected, in the words that programs look for."""
    wanted, expected = treedef._kind, len(treedef._children)
    if wanted is not kind:
        return _in_short("different types")
    if kind.form in ("tuple", "list"):
        return (f" {kind.form.capitalize()} arity mismatch: {size} != {expected}; {kind.form}: "
                f"{_short(tree)}.{_in_short(f'different lengths of {kind.form}')}")
    what = "numbers of pytree children" if size != expected else "pytree metadata"
    return _key_difference(treedef, kind, data) + _in_short(f"different {what}")


def _key_difference(treedef: PyTreeDef, kind: NodeKind, data: Any) -> str:
    if kind.form not in ("dict", "ordered_dict"):
        return f" Mismatch custom node data: {_short(treedef._data)} != {_short(data)}."
    missing = [key for key in treedef._data if key not in data]
    extra = [key for key in data if key not in treedef._data]
    parts = ([f"missing: {', '.join(map(repr, missing))}"] if missing else []) + (
        [f"unexpected: {', '.join(map(repr, extra))}"] if extra else [])
    if not parts:
        return " (The order of the keys differs.)"
    told = f" (Dict key mismatch; {'; '.join(parts)}.)"
    if kind.form == "dict":
        expected, present = [_short(list(keys)) for keys in (treedef._data, data)]
        return f" Dict key mismatch; expected keys: {expected}; present keys: {present}.{told}"
    return f" Mismatch custom node data: {_short(treedef._data)} != {_short(data)}.{told}"


def flatten_up_to(treedef: PyTreeDef, tree: Any, out: list) -> None:
    """Append to `out` the subtrees of `tree` at the leaves of `treedef`, or raise TreeMismatch."""
    if treedef._kind is None:
        out.append(tree)
        return
    kind, children = open_node(treedef, tree)
    for i, child in enumerate(children):
        try:
            flatten_up_to(treedef._children[i], child, out)
        except TreeMismatch as error:
            error.path.insert(0, kind.keys(tree)[i])
            raise


forget_structures()
ON_CHANGE.append(forget_structures)
