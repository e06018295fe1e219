"""What equations and jaxprs tell of where they come from, for messages and for programs that print
jaxprs: `DebugInfo`, `SourceInfo`, `EqnContext`.

Made when somebody asks; jaxprs themselves hold a name and a line. What would break it: nothing
depends on it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from typing import Any, NamedTuple

from numjet.base import tree
from numjet.base.name_stack import NameStack


class DebugInfo(NamedTuple):
    """What is known of a traced function: what traces it, its name and place, the names of its
    arguments and the paths of its results (or a function that tells them)."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: Any

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file of the function, where it is known."""
        _, at, place = self.func_src_info.partition(" at ")
        return place.rpartition(":")[0] if at else None

    @property
    def func_lineno(self) -> int | None:
        """The line of the function, where it is known."""
        _, at, place = self.func_src_info.partition(" at ")
        return int(place.rpartition(":")[2]) if at else None

    def resolve_result_paths(self) -> DebugInfo:
        """This, with the paths told."""
        paths = self.result_paths() if callable(self.result_paths) else self.result_paths
        return self._replace(result_paths=paths)

    def with_unknown_names(self) -> DebugInfo:
        """This, without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def replace_func_name(self, name: str) -> DebugInfo:
        """This, with another name of the function."""
        _, at, place = self.func_src_info.partition(" at ")
        return self._replace(func_src_info=f"{name}{at}{place}")

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """The names of that many arguments; empty ones where they are not known."""
        known = self.arg_names
        fits = known is not None and len(known) == expected_count
        return tuple(known) if fits and known is not None else ("",) * expected_count

    def safe_result_paths(self, expected_count: int) -> tuple[str, ...]:
        """The paths of that many results; empty ones where they are not known."""
        known = self.resolve_result_paths().result_paths
        fits = known is not None and len(known) == expected_count
        return tuple(known) if fits else ("",) * expected_count


def place_of(fun: Any) -> str:
    """A function's name and where it was written."""
    inner = inspect.unwrap(fun) if callable(fun) else fun
    inner = getattr(inner, "func", inner)  # of functools.partial
    name = getattr(inner, "__name__", type(inner).__name__)
    code = getattr(inner, "__code__", None)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def stand_in(fun: Any) -> Any:
    """What has the name, the place and the parameters of a function and holds none of its values:
    a jaxpr that tells them must not keep alive the function whose programs hold the jaxpr."""
    fun = inspect.unwrap(fun)
    if type(fun) is types.FunctionType:
        code = fun.__code__
        cells = tuple([types.CellType() for _ in code.co_freevars])
        return types.FunctionType(code, {}, fun.__name__, None, cells)
    if type(fun) is types.MethodType:
        return types.MethodType(stand_in(fun.__func__), _LEAF)
    if type(fun) is functools.partial:
        names = dict.fromkeys(fun.keywords)
        return functools.partial(stand_in(fun.func), *[None] * len(fun.args), **names)
    call = type(fun).__call__ if callable(fun) and not isinstance(fun, type) else None
    if type(call) is types.FunctionType:
        return types.MethodType(stand_in(call), _LEAF)
    return fun


def argument_names(fun: Any, static: Any, in_tree: Any) -> list[str]:
    """`x`, `params['w']`, ... for each leaf of (args, kwargs) without the static ones, whose
    positions `static` holds."""
    args, kwargs = tree.tree_unflatten(in_tree, [_LEAF] * in_tree.num_leaves)
    names = [f"args[{i}]" for i in range(len(args))]
    by_name = {name: name for name in kwargs}
    try:
        parameters = inspect.signature(fun).parameters.values()
        own = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        keep = [name for i, name in enumerate(own) if i not in static]
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                keep += [f"{p.name}[{i}]" for i in range(len(args) - len(keep))]
            elif p.kind is p.VAR_KEYWORD:
                known = {q.name for q in parameters if q.kind is q.KEYWORD_ONLY}.union(own)
                by_name |= {n: f"{p.name}[{n!r}]" for n in kwargs if n not in known}
        names[: len(keep)] = keep[: len(args)]
    except (ValueError, TypeError):
        pass  # no signature to read (a builtin): positions serve as names
    out = []
    named = [(by_name[name], value) for name, value in kwargs.items()]
    for name, value in [*zip(names, args, strict=False), *named]:
        out += [name + tree.keystr(path) for path, _ in tree.tree_flatten_with_path(value)[0]]
    return out


def of_jitted(fun: Any, static: Any, in_tree: Any, out_tree: Any) -> DebugInfo:
    """What is known of a jaxpr of these arguments and results."""
    paths = [f"result{tree.keystr(tree.leaf_path(out_tree, i))}"
             for i in range(out_tree.num_leaves)]  # fmt: skip
    names = argument_names(fun, static, in_tree)
    return DebugInfo("jit", place_of(fun), tuple(names), tuple(paths))


_LEAF = object()
NO_NAMES = NameStack()


class SourceInfo(NamedTuple):
    """Where an equation comes from: the user's line, and the names of the scopes around it."""

    traceback: Any
    name_stack: Any = NO_NAMES

    def replace(self, **changes: Any) -> SourceInfo:
        """This with other fields."""
        return self._replace(**changes)


class EqnContext:
    """What was set while an equation was made. Nothing of that changes what it means here, so that
    `manager` enters nothing."""

    __slots__ = ()

    @property
    def manager(self) -> Any:
        """A context in which the equation may be bound again."""
        return contextlib.nullcontext()


CONTEXT = EqnContext()
