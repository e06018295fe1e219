"""Flattening of functions and their arguments, as libraries with transformations of their own need
it: JAX's `api_util`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numjet.base import tree
from numjet.core.debug_info import DebugInfo, place_of
from numjet.extend.linear_util import (
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)
from numjet.extend.types import shaped_abstractify as shaped_abstractify

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]


@transformation_with_aux2
def flatten_fun(f: Callable, store: Any, in_tree: Any, *args_flat: Any) -> list[Any]:
    """A wrapped function as one of flat arguments.

    Called as flatten_fun(f, in_tree): f is what `extend.linear_util.wrap_init` made, in_tree the
    structure of (args, kwargs). Result: the flat function, and a function that tells the structure
    of its output after a call. store and args_flat are what the transformation itself gets.

    >>> import numjet as nj
    >>> from numjet import api_util
    >>> from numjet.extend import linear_util
    >>> wrapped = linear_util.wrap_init(lambda x: [x, x])
    >>> flat, out_tree = api_util.flatten_fun(wrapped, nj.tree.structure(((1.0,), {})))
    >>> print(flat.call_wrapped(5), out_tree())
    [5, 5] PyTreeDef([*, *])
    """
    args, kwargs = tree.tree_unflatten(in_tree, args_flat)
    leaves, out_tree = tree.tree_flatten(f(*args, **kwargs))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable, store: Any, in_tree: Any, *args_flat: Any) -> list[Any]:
    """A wrapped function as one of flat arguments.

    Called as flatten_fun_nokwargs(f, in_tree): f is what `extend.linear_util.wrap_init` made,
    in_tree the structure of the positional arguments alone. Result: the flat function, and a
    function that tells the structure of its output after a call. store and args_flat are what the
    transformation itself gets.

    >>> import numjet as nj
    >>> from numjet import api_util
    >>> from numjet.extend import linear_util
    >>> wrapped = linear_util.wrap_init(lambda x: [x, x])
    >>> flat, out_tree = api_util.flatten_fun_nokwargs(wrapped, nj.tree.structure((1.0,)))
    >>> print(flat.call_wrapped(5), out_tree())
    [5, 5] PyTreeDef([*, *])
    """
    leaves, out_tree = tree.tree_flatten(f(*tree.tree_unflatten(in_tree, args_flat)))
    store.store(out_tree)
    return leaves


def safe_map(f: Callable, /, *args: Iterable[Any]) -> list[Any]:
    """`list(map(f, *args))` of sequences of one length.

    f: a function; args: sequences. Raises ValueError for lengths that differ.

    >>> from numjet import api_util
    >>> api_util.safe_map(lambda x, y: x + y, [1, 2], [10, 20])
    [11, 22]
    """
    if not args:
        raise TypeError("safe_map requires at least 2 arguments: a function and a sequence")
    values = [list(x) for x in args]
    n = len(values[0])
    for i, x in enumerate(values[1:], 2):
        if len(x) != n:
            which = "shorter" if len(x) < n else "longer"
            raise ValueError(f"safe_map() argument {i} is {which} than argument 1")
    return [f(*xs) for xs in zip(*values, strict=True)]


# ------------------------------------------------------------------ arguments by number
@transformation2
def _with_fixed(f: Callable, nums: tuple, fixed: tuple, *args: Any, **kwargs: Any) -> Any:
    rest, given = iter(fixed), dict(zip(nums, args, strict=True))
    whole = [given[i] if i in given else next(rest).value for i in range(len(fixed) + len(nums))]
    return f(*whole, **kwargs)


class _Fixed:
    """An argument that stays; equal to another of an equal value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fixed) and type(self.value) is type(other.value) and bool(
            self.value == other.value
        )


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple]:
    """A wrapped function of some of its arguments, the others being as they are; and those
    arguments.

    f: what `extend.linear_util.wrap_init` made. dyn_argnums: the arguments that stay. args: all of
    them. require_static_args_hashable: raise ValueError for others without a hash. Result:
    (function, tuple).

    >>> from numjet import api_util
    >>> from numjet.extend import linear_util
    >>> f, dynamic = api_util.argnums_partial(linear_util.wrap_init(lambda x, y: x - y), 0, (5, 3))
    >>> f.call_wrapped(*dynamic)
    2
    """
    nums = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    nums = tuple([i % len(args) for i in nums])
    fixed = [_Fixed(x) for i, x in enumerate(args) if i not in nums]
    if require_static_args_hashable:
        for x in fixed:
            try:
                hash(x.value)
            except TypeError:
                raise ValueError(
                    "Non-hashable static arguments are used in a function: an argument is of type "
                    f"{type(x.value)}, which has no hash. Pass a tuple, or a frozen dataclass."
                ) from None
    return _with_fixed(f, nums, tuple(fixed)), tuple([args[i] for i in nums])


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """The numbers of donated arguments when the static ones are taken out.

    donate_argnums, static_argnums: integers. Raises ValueError where one is both.

    >>> from numjet import api_util
    >>> api_util.rebase_donate_argnums((2,), (0,))
    (1,)
    """
    both = set(donate_argnums) & set(static_argnums)
    if both:
        raise ValueError(
            f"static_argnums {tuple(static_argnums)} and donate_argnums {tuple(donate_argnums)} "
            f"cannot intersect: {sorted(both)} is in both."
        )
    return tuple([i - sum([s < i for s in static_argnums]) for i in sorted(donate_argnums)])


def donation_vector(
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str],
    in_tree: Any,
    kws: bool = True,
) -> tuple[bool, ...]:
    """A flag for each leaf of a function's arguments: whether its argument is donated.

    donate_argnums, donate_argnames: the arguments. in_tree: the structure of (args, kwargs), of
    args alone where kws is False.

    >>> import numjet as nj
    >>> from numjet import api_util
    >>> api_util.donation_vector((0,), (), nj.tree.structure(((1, [2, 3]), {})))
    (True, False, False)
    """
    whole = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
    args, kwargs = whole if kws else (whole, {})
    flags: list[bool] = []
    for i, x in enumerate(args):
        flags += [i in donate_argnums] * len(tree.tree_leaves(x))
    for name in sorted(kwargs):
        flags += [name in donate_argnames] * len(tree.tree_leaves(kwargs[name]))
    return tuple(flags)


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """An entry for each leaf of a structure from a prefix of it, whose None are entries.

    name: for messages. treedef: a PyTreeDef. axis_tree: a pytree that is as treedef near the root
    (ValueError for others). kws and tupled_args say how a function's arguments became the tree;
    messages name the path here in any case.

    >>> import numjet as nj
    >>> from numjet import api_util
    >>> api_util.flatten_axes("in_axes", nj.tree.structure(([1, 2], 3)), (0, None))
    [0, 0, None]
    """
    del kws, tupled_args
    return tree.flatten_axes(name, treedef, axis_tree)


# ------------------------------------------------------------------ names
def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Callable | None = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """What is known of a function called with arguments: its name and place, and a name for each
    leaf.

    traced_for: what traces it. fun: the function. args, kwargs: its arguments. static_argnums,
    static_argnames: those that are Python values and have no leaves. result_paths_thunk,
    sourceinfo, signature: what is known already. Result: a DebugInfo.

    >>> from numjet import api_util
    >>> api_util.debug_info("jit", lambda x: x, (1,), {}).arg_names
    ('x',)
    """
    names = _argument_names(signature, fun, args, kwargs, static_argnums, static_argnames)
    place = sourceinfo if sourceinfo is not None else place_of(fun)
    return DebugInfo(traced_for, place, names, result_paths_thunk)


def _argument_names(
    signature: inspect.Signature | None,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static_argnums: Sequence[int],
    static_argnames: Sequence[str],
) -> tuple[str, ...] | None:
    try:
        bound = (signature or inspect.signature(fun)).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    parameters = bound.signature.parameters
    static = {name for i, name in enumerate(parameters) if i in static_argnums}
    names: list[str] = []
    for name, value in bound.arguments.items():
        if name in static or name in static_argnames:
            continue
        if parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            value = {k: x for k, x in value.items() if k not in static_argnames}
        paths, _ = tree.tree_flatten_with_path(value)
        names += [f"{name}{tree.keystr(path)}" for path, _ in paths]
    return tuple(names)
