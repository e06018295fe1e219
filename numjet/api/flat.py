"""Flattening user functions: what grad, vmap and the others share.

A `Flat` is a user's function of the leaves that a transformation works on. Arguments are made
arrays here (`array_leaves`), so that errors name those that are none by their paths.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import tree
from numjet.base.errors import InvalidInputException
from numjet.core import hi
from numjet.core.array import Array, ArrayImpl, as_array, is_arraylike
from numjet.core.given import Noted, as_given, note
from numjet.core.refs import Ref, hold, refuse_returned
from numjet.ops.bodies import name_of as name_of

# What functools.wraps copies, and what Python lets a function have there.
_KINDS = {"__name__": str, "__qualname__": str, "__annotations__": dict, "__type_params__": tuple}
_GENERATOR = inspect.CO_GENERATOR


def wraps(fun: Callable) -> Callable[[Callable], Callable]:
    """`functools.wraps(fun)`, also for objects whose attributes of these names are of other kinds,
    as those of libraries' modules may be, or that have no name."""
    if type(fun) is types.FunctionType:  # has all of the names: the same in half the time

        def wrap(made: Any) -> Any:
            for name in functools.WRAPPER_ASSIGNMENTS:
                setattr(made, name, getattr(fun, name))
            made.__dict__.update(fun.__dict__)
            made.__wrapped__ = fun
            return made

        return wrap
    names = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(fun, name, None), _KINDS.get(name, object))
    ]

    def wrap_object(made: Any) -> Any:
        if not hasattr(fun, "__name__"):
            made.__name__ = made.__qualname__ = name_of(fun)
        return functools.update_wrapper(made, fun, names)

    return wrap_object


def described(made: Callable, fun: Callable, text: str) -> Callable:
    """`made`, a transformed `fun`, with a docstring that says what it is: `text`, in which {} is
    the function's name, before the function's own."""
    name, own = name_of(fun), getattr(fun, "__doc__", None)
    rest = f"\n\nOriginal documentation:\n\n{own}" if own else ""
    made.__doc__ = text.replace("{}", str(name)) + rest
    return made


def check_callable(what: str, fun: Any) -> None:
    """Refuse what no transformation can call for its results: objects that cannot be called,
    static methods that are not bound, functions that yield."""
    if type(fun) is types.FunctionType and not fun.__code__.co_flags & _GENERATOR:
        return
    if type(fun) is staticmethod:
        raise TypeError(
            f"staticmethod arguments are not supported, got {fun!r}: apply {what} to the function "
            "and staticmethod to the result."
        )
    code = getattr(fun, "__code__", None)
    if getattr(code, "co_flags", 0) & _GENERATOR and what != "make_jaxpr":
        raise TypeError(
            f"Expected a function, got a generator function: {fun!r}. {what} calls a function for "
            "its results; return them all, or use lax.scan."
        )
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value, got {fun!r}: {what} takes a function, not a "
            f"{type(fun).__name__}."
        )


class RefGiven(ValueError):
    """An argument that is to be differentiated is a mutable reference."""


def array_leaves(
    what: str, value: Any, name: str = "argument", noted: Noted | None = None
) -> tuple[list[Any], Any]:
    """Leaves of `value` as Arrays or tracers, and its structure. The error names the path of a leaf
    that is none. `noted` notes what numbers and NumPy arrays became."""
    leaves, treedef = tree.tree_flatten(value)
    for i, x in enumerate(leaves):
        if type(x) is not ArrayImpl and not isinstance(x, Array):
            if type(x) in hi.TYPES and not hi.changes(x):
                return array_leaves(what, hi.lower(value), name, noted)
            try:
                leaves[i] = made = as_array(x)
                if noted is not None:
                    note(noted, made, x)
            except TypeError:
                if name == "output":
                    refuse_returned(x, what)
                path = tree.keystr(tree.tree_flatten_with_path(value)[0][i][0])
                raise _refused_leaf(what, x, name, path) from None
    return leaves, treedef


def _refused_leaf(what: str, x: Any, name: str, path: str) -> Exception:
    """The error for a leaf that is no array."""
    if isinstance(x, Ref):
        asked = RefGiven if what in ("jvp", "linearize", "vjp") else ValueError
        return asked(
            f"{what}: {name}{path} is a mutable array reference of type {x.aval}, of which there "
            "is no derivative. Take it out of argnums, or use it by closure."
        )
    given = what == "vjp" and name == "argument"
    refused = InvalidInputException if given else TypeError
    return refused(
        f"Argument {x!r} of type {type(x)} is not a valid JAX type: {what} takes no such value as "
        f"{name}{path}. Pass it by closure, or through functools.partial."
    )


def checked_leaves(
    what: str, value: Any, name: str = "argument", refs: Callable | None = None
) -> tuple[list[Any], Any]:
    """Leaves of `value` as they are, and its structure; Python numbers stay Python numbers. The
    error names the path of a leaf that is neither an array nor a scalar. References among arguments
    are part of the structure; `refs(leaves, treedef)` is told of them."""
    leaves, treedef = tree.tree_flatten(value)
    for x in leaves:
        if type(x) is not ArrayImpl and not is_arraylike(x):
            if type(x) in hi.TYPES and not hi.changes(x):
                return checked_leaves(what, hi.lower(value), name, refs)
            if isinstance(x, Ref) and name == "argument":
                if refs is not None:
                    refs(leaves, treedef)
                return checked_leaves(what, hold(value), name)
            return array_leaves(what, value, name)  # raises
    return leaves, treedef


class Flat:
    """A function of flat leaves; remembers the structure of its output (and of `aux`, returned
    beside it). `noted`: leaves that the function is given as they were, numbers and NumPy arrays
    (those that are not differentiated; the others come as tracers)."""

    __slots__ = ("fun", "in_tree", "has_aux", "out_tree", "aux", "what", "n_out", "noted")

    def __init__(self, what: str, fun: Callable, in_tree: Any, has_aux: bool = False) -> None:
        self.what, self.fun, self.in_tree, self.has_aux = what, fun, in_tree, has_aux
        self.out_tree: Any = None
        self.aux: Any = None
        self.n_out = 0
        self.noted: Noted | None = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self.noted:
            leaves = tuple(as_given(leaves, self.noted))
        out: Any = self.fun(*tree.tree_unflatten(self.in_tree, leaves))
        if not self.has_aux:
            outs, self.out_tree = checked_leaves(self.what, out, "output")
            self.n_out = len(outs)
            return outs
        if not (isinstance(out, tuple | list) and len(out) == 2):
            unpacked = self.what in ("jvp", "jacfwd") and isinstance(out, (tuple, list, dict))
            raise (ValueError if unpacked else TypeError)(
                f"{self.what}: expected function with aux output to return a two-element tuple, "
                f"but got type {type(out)}. With has_aux=True it must return a pair (output, "
                "auxiliary data)."
            )
        outs, self.out_tree = checked_leaves(self.what, out[0], "output")
        self.n_out = len(outs)
        aux, treedef = tree.tree_flatten(out[1])
        arrays = [isinstance(x, Array) for x in aux]
        self.aux = treedef, arrays, [x for x, a in zip(aux, arrays, strict=True) if not a]
        return outs + [x for x, a in zip(aux, arrays, strict=True) if a]

    def unflatten(self, outs: Sequence[Any]) -> Any:
        return tree.tree_unflatten(self.out_tree, outs)

    def unflatten_aux(self, values: Sequence[Any]) -> Any:
        """The auxiliary data, from the values after the first `n_out`."""
        treedef, arrays, rest = self.aux
        given, other = iter(values), iter(rest)
        return tree.tree_unflatten(treedef, [next(given) if a else next(other) for a in arrays])


def leaf_name(treedef: Any, i: int) -> str:
    """Where leaf `i` of a structure is, as text."""
    return tree.keystr(tree.leaf_path(treedef, i))


def check_argnums(what: str, argnums: Any) -> None:
    """Raise TypeError where `argnums` is no integer, nor several."""
    if type(argnums) is int:
        return
    if not (hasattr(argnums, "__index__") or hasattr(argnums, "__iter__")):
        raise TypeError(f"{what}: argnums must be an integer or integers, got {argnums!r}.")
    for i in argnums if hasattr(argnums, "__iter__") else (argnums,):
        if not hasattr(i, "__index__"):
            raise TypeError(
                f"{type(i).__name__!r} object cannot be interpreted as an integer: the argnums of "
                f"{what} must be an integer or integers, got {argnums!r}."
            )


def argnums_tuple(what: str, argnums: Any, n_args: int, name: str) -> tuple[int, ...]:
    """`argnums` as non-negative positions. Raises TypeError when an argument of `grad` is
    missing, ValueError when a negative one is out of range, and for other functions.
    """
    nums: tuple = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not nums:
        raise ValueError(f"{what}: argnums is empty, so that there is nothing to differentiate.")
    for i in nums:
        if not isinstance(i, int):
            raise TypeError(
                f"{type(argnums).__name__!r} object cannot be interpreted as an integer: the "
                f"argnums of {what} must be an integer or integers, got {argnums!r}."
            )
        if not -n_args <= i < n_args:
            mistake = TypeError if i >= 0 and what in ("grad", "value_and_grad") else ValueError
            raise mistake(
                f"{what}: differentiating with respect to argnums={argnums!r} requires at least "
                f"{max(max(j, -j - 1) for j in nums) + 1} positional arguments to be passed by the "
                f"caller, but got only {n_args} positional arguments for {name}."
            )
    found = tuple([i % n_args for i in nums])
    if len({*found}) < len(found):
        raise TypeError(f"{what}: argnums={argnums!r} names an argument of {name} twice.")
    return found


def close_over(fun: Callable, args: tuple, kwargs: dict, nums: tuple[int, ...]) -> Callable:
    """A function of the arguments at `nums` alone; the others keep their values."""
    if len(nums) == len(args) and nums == tuple(range(len(args))):
        return (lambda *xs: fun(*xs, **kwargs)) if kwargs else fun

    def partial(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(nums, xs, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return partial
