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
from typing import Any

from numjet.base import tree
from numjet.base.name_stack import NameStack
from numjet.base.record import NamedTuple


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
    if hasattr(fun, "__wrapped__"):
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


def argument_names(fun: Any, static: Any, in_tree: Any, by_name: bool = True) -> list[str]:
    """`x`, `params['w']`, `args[0]`, `kwargs['k']`, ... for each leaf of (args, kwargs), or of args
    alone, without the static ones, whose positions `static` holds."""
    found = tree.tree_unflatten(in_tree, [_LEAF] * in_tree.num_leaves)
    args, kwargs = found if by_name else (found, {})
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        parameters = []  # no signature to read (a builtin): positions serve as names
    plain = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    others = [p.name for p in parameters if p.kind is p.VAR_KEYWORD]
    total = len(args) + len(static)
    places = [i for i in range(total) if i not in static][: len(args)]
    names = [
        plain[i] if i < len(plain)
        else f"{rest[0]}[{i - len(plain)}]" if rest else f"args[{i}]"
        for i in places
    ]  # fmt: skip
    known = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    given = [
        (k if k in known or not others else f"{others[0]}[{k!r}]", v) for k, v in kwargs.items()
    ]
    out = []
    for name, value in [*zip(names, args, strict=False), *given]:
        out += [name + tree.keystr(path) for path, _ in tree.tree_flatten_with_path(value)[0]]
    return out


def result_paths(out_tree: Any) -> tuple[str, ...]:
    """`result`, `result[0]['w']`, ... for each leaf of a result."""
    n = out_tree.num_leaves
    return tuple([f"result{tree.keystr(tree.leaf_path(out_tree, i))}" for i in range(n)])


def of_jitted(fun: Any, static: Any, in_tree: Any, out_tree: Any) -> DebugInfo:
    """What is known of a jaxpr of these arguments and results."""
    names = argument_names(fun, static, in_tree)
    return DebugInfo("jit", place_of(fun), tuple(names), result_paths(out_tree))


def derived(jaxpr: Any, *, named: bool = False, results: int | None = None) -> Any:
    """What a jaxpr made of `jaxpr` by a transformation holds: a function that gives the DebugInfo.
    named: its arguments are those of `jaxpr`. results: how many it has, where paths are told."""
    return functools.partial(_of_derived, jaxpr.debug, named, results)


def _of_derived(known: Any, named: bool, results: int | None) -> DebugInfo:
    known = known() if callable(known) else known
    if not isinstance(known, DebugInfo):
        known = DebugInfo("", known or "", None, None)
    paths = None if results is None else tuple([f"result[{i}]" for i in range(results)])
    return known._replace(arg_names=known.arg_names if named else None, result_paths=paths)


class Tracing:
    """What is traced, and for whom: a function, of which messages name place and arguments.

    label: what traces it (`jit`, `scan`, ...). in_tree: the structure of (args, kwargs), without
    by_name of args alone; static: positions of arguments that are no leaves. arrange: puts the
    names in the order of the leaves, where these are others than the function's arguments.
    """

    __slots__ = ("fun", "label", "in_tree", "static", "by_name", "arrange")

    def __init__(
        self, fun: Any, label: str, in_tree: Any, *, static: Any = (), by_name: bool = True,
        arrange: Any = None,
    ) -> None:  # fmt: skip
        self.fun, self.label, self.in_tree = fun, label, in_tree
        self.static, self.by_name, self.arrange = static, by_name, arrange

    def names(self) -> list[str]:
        """What the arguments are called."""
        names = argument_names(self.fun, self.static, self.in_tree, self.by_name)
        return names if self.arrange is None else self.arrange(names)

    def where(self) -> str:
        """The function's name and the place where it was written."""
        return place_of(self.fun)

    def told(self, out_tree: Any) -> Any:
        """What a jaxpr of it holds: a function that gives the `DebugInfo`, and holds none of the
        function's values. out_tree: the structure of the results, None where it is not known."""
        free = Tracing(stand_in(self.fun), self.label, self.in_tree, static=self.static,
                      by_name=self.by_name, arrange=self.arrange)  # fmt: skip
        return functools.partial(_of_traced, free, out_tree)


def _of_traced(traced: Tracing, out_tree: Any) -> DebugInfo:
    paths = None if out_tree is None else result_paths(out_tree)
    return DebugInfo(traced.label, traced.where(), tuple(traced.names()), paths)


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
