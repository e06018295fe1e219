"""Which Python types are pytree nodes, and how each is taken apart and put together.

Used by `base.treedef` (flattening) and `base.tree_paths` (key paths); users reach the register
functions through `numjet.tree_util`. A type is a node when it is registered here or is a
namedtuple; every other type is a leaf. `LEAF_TYPES` remembers types found to be leaves, and the
generated flatteners trust it: code that adds a node type must go through `_add`, which removes the
type from that set, or a container would pass for a leaf.
"""
from __future__ import annotations

import functools
import operator
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from numjet.base.record import record


class _Key:
    """One step of a key path; equal to another step of the same class with the same value."""

    __slots__ = ("_value",)
    _label = "key"

    def __init__(self, value: Any):
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._label}={self._value!r})"

    def __reduce__(self):
        return type(self), (self._value,)


class SequenceKey(_Key):
    """Position `idx` of a list or tuple; prints as `[0]`.

    >>> from numjet import tree_util
    >>> tree_util.keystr((tree_util.SequenceKey(0),))
    '[0]'
    """

    __slots__ = ()
    __match_args__ = ("idx",)
    _label = "idx"

    def __init__(self, idx: int):
        super().__init__(operator.index(idx))

    @property
    def idx(self) -> int:
        """The position."""
        return self._value

    def __str__(self) -> str:
        return f"[{self._value}]"


class DictKey(_Key):
    """Entry `key` of a dictionary; prints as `['a']`.

    >>> from numjet import tree_util
    >>> tree_util.keystr((tree_util.DictKey("a"),))
    "['a']"
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: Hashable):
        super().__init__(key)

    @property
    def key(self) -> Any:
        """The key in the dictionary."""
        return self._value

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class GetAttrKey(_Key):
    """Attribute `name` of an object; prints as `.name`.

    >>> from numjet import tree_util
    >>> tree_util.keystr((tree_util.GetAttrKey("x"),))
    '.x'
    """

    __slots__ = ()
    __match_args__ = ("name",)
    _label = "name"

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"GetAttrKey: an attribute's name is a string, got {name!r}.")
        super().__init__(name)

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self._value

    def __str__(self) -> str:
        return f".{self._value}"


class FlattenedIndexKey(_Key):
    """Child number `key` of a registered node that gives no names; prints as `[<flat index 0>]`.

    >>> from numjet import tree_util
    >>> tree_util.keystr((tree_util.FlattenedIndexKey(0),))
    '[<flat index 0>]'
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: int):
        super().__init__(operator.index(key))

    @property
    def key(self) -> int:
        """The number of the child."""
        return self._value

    def __str__(self) -> str:
        return f"[<flat index {self._value}>]"


@record(frozen=True, slots=True, eq=False)
class NodeKind:
    """How one type of node is taken apart.

    flatten(node) -> (children, data); unflatten(data, children) -> node; keys(node) -> one key
    entry per child. `form` tells the code generator what it may inline: none, tuple, list, dict,
    namedtuple, ordered_dict, default_dict, dataclass or custom. `fields` and `meta` are the
    attribute names of a dataclass's children and of its static data.
    """

    cls: type
    form: str
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    keys: Callable[[Any], Sequence[Any]]
    fields: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()


def refuse_parts(kind: NodeKind, node: Any) -> None:
    """Raise ValueError where a user's function takes a node apart into something else than a pair
    of children and data; what it raises itself is raised."""
    told = "The to_iterable function for a custom PyTree node should return a (children, aux_data)"
    parts = kind.flatten(node)
    if not isinstance(parts, tuple | list) or len(parts) != 2:
        raise ValueError(f"{told} tuple, got {parts!r} of {kind.cls.__qualname__}.")
    if not isinstance(parts[0], Iterable):
        raise ValueError(
            f"{told} tuple where 'children' is iterable, got {parts!r} of "
            f"{kind.cls.__qualname__}. Return a tuple of the children, ({parts[0]!r},).")


FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]

KINDS: dict[type, NodeKind] = {}
LEAF_TYPES: set[type] = set()
# Called when a type changes how it is taken apart, so that generated code for it is dropped.
ON_CHANGE: list[Callable[[], None]] = []


def kind_of(cls: type) -> NodeKind | None:
    """The way nodes of exactly this type are taken apart; None when the type is a leaf."""
    if cls in LEAF_TYPES:
        return None
    kind = KINDS.get(cls)
    if kind is None:
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            kind = KINDS[cls] = _namedtuple_kind(cls)
        else:
            LEAF_TYPES.add(cls)
    return kind


def _add(kind: NodeKind) -> None:
    present = KINDS.get(kind.cls)
    if present is not None and present.form != "namedtuple":
        raise ValueError(
            f"Duplicate custom PyTreeDef type registration for {kind.cls}: it is already a pytree "
            "node. A type can be registered once; remove one of the two registrations.")
    KINDS[kind.cls] = kind
    LEAF_TYPES.discard(kind.cls)
    if present is not None:
        for forget in ON_CHANGE:
            forget()


def _namedtuple_kind(cls: type) -> NodeKind:
    fields = cls._fields  # type: ignore[attr-defined]
    keys = [GetAttrKey(name) for name in fields]
    return NodeKind(cls, "namedtuple", lambda node: (node, None),
                    lambda data, children: cls(*children), lambda node: keys)


def sorted_keys(node: dict) -> list:
    """A dictionary's keys in order; ValueError when they cannot be compared."""
    try:
        return sorted(node)
    except TypeError as error:
        raise ValueError(
            "Comparator raised exception while sorting pytree dictionary keys: they must be "
            f"comparable with each other; got {list(node)!r}. Use keys of one type, or an "
            "OrderedDict.") from error


def _flatten_dict(node: dict) -> tuple[Iterable[Any], Any]:
    keys = sorted_keys(node)
    return [node[key] for key in keys], tuple(keys)


def _flatten_default_dict(node: defaultdict) -> tuple[Iterable[Any], Any]:
    keys = sorted_keys(node)
    return [node[key] for key in keys], (node.default_factory, tuple(keys))


def _sequence_keys(node: Sequence[Any]) -> list:
    return [SequenceKey(i) for i in range(len(node))]


def _sorted_dict_keys(node: dict) -> list:
    return [DictKey(key) for key in sorted_keys(node)]


_add(NodeKind(type(None), "none", lambda node: ((), None), lambda data, children: None,
              lambda node: ()))
_add(NodeKind(tuple, "tuple", lambda node: (node, None), lambda data, children: tuple(children),
              _sequence_keys))
_add(NodeKind(list, "list", lambda node: (node, None), lambda data, children: list(children),
              _sequence_keys))
_add(NodeKind(dict, "dict", _flatten_dict,
              lambda data, children: dict(zip(data, children, strict=True)), _sorted_dict_keys))
_add(NodeKind(OrderedDict, "ordered_dict", lambda node: (list(node.values()), tuple(node)),
              lambda data, children: OrderedDict(zip(data, children, strict=True)),
              lambda node: [DictKey(key) for key in node]))
_add(NodeKind(defaultdict, "default_dict", _flatten_default_dict,
              lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)),
              _sorted_dict_keys))


def _flat_index_keys(flatten: Callable) -> Callable[[Any], list]:
    return lambda node: [FlattenedIndexKey(i) for i, _ in enumerate(flatten(node)[0])]


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Sequence[Any]], Any],
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Make a type a node of pytrees.

    nodetype: a class. flatten_func(node) returns (children, data); data is static, hashable and
    compared by ==. unflatten_func(data, children) makes the node again; it must accept any objects
    as children. flatten_with_keys_func(node) returns ([(key, child), ...], data) and names the
    children. Raises ValueError when the type is a node already.

    >>> from numjet import tree_util
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.first, p.second), None), lambda data, children: Pair(*children))
    >>> tree_util.tree_leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"register_pytree_node: expected a class, got {nodetype!r}.")
    if not callable(flatten_func) or not callable(unflatten_func):
        raise TypeError(
            f"register_pytree_node: flatten_func and unflatten_func of {nodetype.__qualname__} "
            f"must be functions, got {flatten_func!r} and {unflatten_func!r}.")
    if flatten_with_keys_func is None:
        keys = _flat_index_keys(flatten_func)
    else:
        def keys(node):
            return [key for key, _ in flatten_with_keys_func(node)[0]]
    _add(NodeKind(nodetype, "custom", flatten_func, unflatten_func, keys))


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: FlattenWithKeys,
    unflatten_func: Callable[[Any, Sequence[Any]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a type a node whose children have names.

    nodetype: a class. flatten_with_keys(node) returns ([(key, child), ...], data).
    unflatten_func(data, children) makes the node again. flatten_func(node) returns (children,
    data), to be faster without names. See `register_pytree_node`. Raises ValueError when the type
    is a node already.

    >>> from numjet import tree_util
    >>> class Cell:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> tree_util.register_pytree_with_keys(
    ...     Cell, lambda c: ([(tree_util.GetAttrKey("x"), c.x)], None), lambda data, xs: Cell(*xs))
    >>> tree_util.keystr(tree_util.tree_leaves_with_path(Cell(5))[0][0])
    '.x'
    """
    if flatten_func is None:
        def flatten_func(node):
            pairs, data = flatten_with_keys(node)
            return [child for _, child in pairs], data
    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def _needs(cls: Any, name: str, *methods: str) -> None:
    for method in methods:
        if not isinstance(cls, type) or not hasattr(cls, method):
            raise TypeError(
                f"{name}: expected a class with the methods {' and '.join(methods)}, got {cls!r}."
            )


def register_pytree_node_class(cls: Any) -> Any:
    """Class decorator: a node of pytrees, by the class's `tree_flatten()` and `tree_unflatten(data,
    children)`.

    cls: a class with these methods, the second a classmethod; see `register_pytree_node`. Returns
    it. Raises ValueError when it is a node already.

    >>> from numjet import tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    ...     def tree_flatten(self):
    ...         return (self.content,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children):
    ...         return cls(*children)
    >>> tree_util.tree_leaves(Box(5))
    [5]
    """
    _needs(cls, "register_pytree_node_class", "tree_unflatten", "tree_flatten")
    register_pytree_node(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Any) -> Any:
    """Class decorator: a node with named children, by methods `tree_flatten_with_keys()` and
    `tree_unflatten`.

    cls: a class with these methods, perhaps with `tree_flatten()`; see `register_pytree_with_keys`.
    Returns it. Raises ValueError when it is a node already.

    >>> from numjet import tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return [(tree_util.GetAttrKey("x"), self.x)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children):
    ...         return cls(*children)
    >>> tree_util.keystr(tree_util.tree_leaves_with_path(Named(5))[0][0])
    '.x'
    """
    _needs(cls, "register_pytree_with_keys_class", "tree_unflatten", "tree_flatten_with_keys")
    flatten = (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(),
                              cls.tree_unflatten, flatten)
    return cls


def _dataclass_fields(
    nodetype: type, data_fields: Sequence[str] | None, meta_fields: Sequence[str] | None,
    drop_fields: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes that are children and those that are static, checked against the class."""
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is "
            f"specified. Got data_fields={data_fields!r} meta_fields={meta_fields!r}.")
    dataclasses = sys.modules.get("dataclasses")  # who has one, has loaded it
    if dataclasses is None or not dataclasses.is_dataclass(nodetype):
        if data_fields is None or meta_fields is None:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not "
                f"a dataclass. Got nodetype={nodetype!r}: put @dataclass under register_dataclass, "
                "or pass both.")
        return tuple(data_fields), tuple(meta_fields)
    own = [field for field in dataclasses.fields(nodetype) if field.init]
    if data_fields is None or meta_fields is None:
        dropped = set(drop_fields)
        own = [field for field in own if field.name not in dropped]
        return (tuple(f.name for f in own if not f.metadata.get("static", False)),
                tuple(f.name for f in own if f.metadata.get("static", False)))
    if twice := set(data_fields) & set(meta_fields):
        raise ValueError("data_fields and meta_fields must not overlap. Overlapping fields: "
                         f"{twice} of {nodetype.__qualname__}.")
    names = {field.name for field in own} - set(drop_fields)
    given = {*data_fields, *meta_fields}
    if missing := names - given:
        raise ValueError(
            "data_fields and meta_fields must include all dataclass fields with ``init=True`` and "
            f"only them. Missing fields: {missing}. Add them to drop_fields to suppress this "
            f"error, if the constructor of {nodetype.__qualname__} can do without them.")
    if unexpected := given - names:
        raise ValueError(
            "data_fields and meta_fields must include all dataclass fields with ``init=True`` and "
            f"only them. Unexpected fields: {unexpected} of {nodetype.__qualname__}.")
    return tuple(data_fields), tuple(meta_fields)


def register_dataclass(
    nodetype: Any, data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a node of pytrees; returns the class.

    nodetype: the class. data_fields: names of fields that are children; meta_fields: of those that
    are static data, hashable and compared by ==. Both default to the dataclass's fields, where
    `field(metadata={"static": True})` marks static ones. drop_fields: those that are neither. Works
    as a call and as a decorator. Raises ValueError for names that are no fields or fields left out,
    TypeError for what is no class.

    >>> from numjet import tree_util
    >>> import dataclasses
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> tree_util.tree_map(lambda v: 2 * v, Point(1.0, 2.0)).y
    4.0
    """
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = [GetAttrKey(name) for name in data]
    names = data + meta

    def flatten(node):
        return ([getattr(node, name) for name in data],
                tuple([getattr(node, name) for name in meta]))

    def unflatten(static, children):
        return nodetype(**dict(zip(names, (*children, *static), strict=True)))

    _add(NodeKind(nodetype, "dataclass", flatten, unflatten, lambda node: keys, data, meta))
    return nodetype


def register_static(cls: Any) -> Any:
    """Class decorator: an instance is a node without leaves, itself the static data.

    cls: a class whose instances are hashable and compared by ==. Returns it. Compiled functions are
    traced anew for instances that differ. Raises ValueError when it is a node already.

    >>> from numjet import tree_util
    >>> @tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> tree_util.tree_leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(cls, lambda node: ((), node), lambda data, children: data)
    return cls


class _FrozenPartial:
    """A partial application that is one static function, compared by the object it stands for.

    It keeps `Partial(functools.partial(f, x), y)` from merging x into the children: what came in
    as a function stays a function.
    """

    def __init__(self, func: functools.partial):
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if type(other) is _FrozenPartial else other)

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


class Partial(functools.partial):
    """`functools.partial` as a pytree: the arguments are children, the function is static.

    func: a function, compared by identity; args, kw: its first arguments, pytrees. Compiled
    functions so take and return functions with arrays inside.

    >>> from numjet import tree_util
    >>> add = tree_util.Partial(lambda x, y: x + y, 1)
    >>> add(2), tree_util.tree_leaves(add)
    (3, [1])
    """

    def __new__(cls, func: Callable, *args: Any, **kw: Any):
        if isinstance(func, functools.partial) and not getattr(func, "opaque", False):
            func = _FrozenPartial(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(Partial, lambda node: ((node.args, node.keywords), node.func),
                     lambda func, children: Partial(func, *children[0], **children[1]))
