"""Functions made anew by the same line that do the same: when one trace serves both of them.

For control flow outside `jit`, whose functions are often written where they are used, and so are
other objects in each call. `form(function)` says what tracing it can depend on: its code, its
defaults, what it closes over, and the globals that it reads, with functions among these followed
in the same way. Numbers and text count by value, lists and dicts by what they hold, Arrays by
identity. It is None where something else is read, such as an object with attributes, so that a
function which may do otherwise is traced again. What would break it: a way to read what can change
that `_reads` does not see.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from numjet.base.treedef import PyTreeDef
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.memo import Memo

_OWN = __name__.partition(".")[0]
# So many parts a form has at most; small NumPy arrays are parts by their bytes; the Arrays of a
# form, which live as long as it is remembered, have so many bytes together.
_MOST, _BYTES, _ARRAYS = 400, 256, 1 << 16
_BY_VALUE = {type(None), type(...), type(NotImplemented), bool, int, str, bytes, PyTreeDef,
             ShapedArray}  # fmt: skip
_BUILTINS = {
    id(getattr(builtins, name))
    for name in "abs all any bool bytes callable complex dict divmod enumerate filter float "
    "frozenset getattr hasattr hash int isinstance issubclass iter len list map max min next "
    "object pow range repr reversed round set slice sorted str sum tuple type zip".split()
}
_UNKNOWN_WORDS = set(
    "LOAD_NAME STORE_NAME DELETE_NAME IMPORT_NAME IMPORT_STAR STORE_GLOBAL DELETE_GLOBAL "
    "LOAD_BUILD_CLASS LOAD_CLASSDEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_FROM_DICT_OR_DEREF".split()
)
_MATHEMATICS = {"math", "cmath", "_operator", "operator"}


class Form(NamedTuple):
    """`key` is equal for functions that do the same while `kept` and `passing`, which it names by
    their addresses, live; `passing` are jitted functions, which hold much. `mutable`: what is read
    now of a list or the like may change, or be changed by the function, later."""

    key: tuple
    kept: list[Any]
    passing: list[Any]
    mutable: bool


class _Unknown(Exception):
    """Something that may do otherwise though it looks the same."""


class _Reads(NamedTuple):
    """What a code reads: chains of names that begin with a global, and, by variables of functions
    around it, the attributes that are read of them."""

    globals: tuple[tuple[str, ...], ...]
    cells: dict[str, set[tuple[str, ...]]]


# By address, with the code, so that no other one gets the address.
_codes: dict[int, tuple[types.CodeType, _Reads | None]] = Memo("what functions read", 512)


def form(function: Callable) -> Form | None:
    """What tracing `function` can depend on; None where that cannot be told."""
    made = _Maker()
    try:
        made.add(function)
    except (_Unknown, RecursionError):
        return None
    return Form(tuple(made.parts), made.kept, made.passing, made.mutable)


class _Maker:
    """A form in the making."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.kept: list[Any] = []
        self.passing: list[Any] = []
        self.mutable = False
        self.bytes = 0  # of arrays
        self.seen: dict[int, int] = {}  # functions and containers, by their turn

    def add(self, x: Any) -> None:
        kind, parts = type(x), self.parts
        if len(parts) > _MOST:
            raise _Unknown
        if kind in _BY_VALUE:
            parts.append((kind, x))
        elif kind is ArrayImpl:
            self.add_array(x)
        elif kind is float:
            parts.append((kind, x.hex()))
        elif kind is complex:
            parts.append((kind, x.real.hex(), x.imag.hex()))
        elif kind is types.FunctionType:
            if self.is_new(x):
                self.add_function(x)
        elif kind in (tuple, list):
            self.mutable |= kind is list
            if self.is_new(x):
                parts.append((kind, len(x)))
                for item in x:
                    self.add(item)
        elif kind is dict:
            self.mutable = True
            if self.is_new(x):
                parts.append((kind, len(x)))
                for name, item in x.items():
                    self.add(name)
                    self.add(item)
        elif kind is slice:
            parts.append(kind)
            for part in (x.start, x.stop, x.step):
                self.add(part)
        elif kind is functools.partial:
            if x.__dict__:
                raise _Unknown
            parts.append(kind)
            self.add(x.func)
            self.add(x.args)
            for name, value in x.keywords.items():
                parts.append(name)
                self.add(value)
        else:
            self.add_other(x)

    def add_array(self, x: ArrayImpl) -> None:
        self.bytes += x.nbytes
        if self.bytes > _ARRAYS:
            raise _Unknown
        self.keep(x)

    def keep(self, x: Any) -> None:
        """Note `x` by its address."""
        self.parts.append(id(x))
        self.kept.append(x)

    def is_new(self, x: Any) -> bool:
        """Whether `x` is met for the first time; else its turn is noted."""
        turn = self.seen.get(id(x))
        if turn is None:
            self.seen[id(x)] = len(self.seen)
            return True
        self.parts.append(("again", turn))
        return False

    def add_other(self, x: Any) -> None:
        if isinstance(x, np.generic) and x.dtype.kind in "biufc":
            self.parts.append((type(x), x.tobytes()))
        elif isinstance(x, np.dtype) and x.names is None:
            self.parts.append(x)
        elif type(x) is np.ndarray and x.nbytes <= _BYTES and x.dtype.kind in "biufc":
            self.mutable = True
            self.parts.append((x.shape, x.dtype, x.tobytes()))
        elif _is_fixed(x):
            self.keep(x)
        elif getattr(type(x), "traces_once", False):
            self.parts.append(id(x))
            self.passing.append(x)
        else:
            raise _Unknown

    def add_function(self, function: types.FunctionType) -> None:
        if _is_public(function):
            self.keep(function)
            return
        if not function.__dict__.keys() <= {"__wrapped__"}:
            raise _Unknown
        code = function.__code__
        reads = reads_of(code)
        self.parts.append("function")
        self.keep(code)
        self.add(function.__defaults__)
        for name, value in sorted((function.__kwdefaults__ or {}).items()):
            self.parts.append(name)
            self.add(value)
        space = function.__globals__
        own = _belongs(space.get("__name__"))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                raise _Unknown from None
            if type(value) is types.ModuleType:
                for chain in reads.cells.get(name, {()}):
                    self.add_attribute(value, chain)
            elif own and type(value) is list:  # which nobody changes
                self.parts.append((list, len(value)))
                for item in value:
                    self.add(item)
            else:
                self.add(value)
        if own:
            return
        for name, *names in reads.globals:
            if name in space:
                self.add_attribute(space[name], names)
            else:
                self.add(getattr(builtins, name, None))

    def add_attribute(self, value: Any, names: Any) -> None:
        """What is read of a global: of modules the attribute, of other values the value."""
        rest = list(names)
        while type(value) is types.ModuleType and not _belongs(value.__name__):
            if not rest:
                raise _Unknown
            value = getattr(value, rest.pop(0), _Unknown)
        if type(value) is types.ModuleType:
            self.keep(value)
        else:
            self.add(value)


def _belongs(module: Any) -> bool:
    """Whether a module of this name is one of this package's, whose globals are no state."""
    return type(module) is str and module.partition(".")[0] == _OWN


def _is_public(x: Any) -> bool:
    """Whether `x` is what a module of this package shows under its name."""
    module = getattr(x, "__module__", None)
    known = sys.modules.get(module) if type(module) is str and _belongs(module) else None
    return known is not None and getattr(known, getattr(x, "__name__", ""), None) is x


def _is_fixed(x: Any) -> bool:
    """Whether what `x` does is decided when it is made: functions of C without state, types."""
    if id(x) in _BUILTINS or isinstance(x, np.ufunc):
        return True
    if isinstance(x, types.BuiltinFunctionType):
        return x.__module__ in _MATHEMATICS
    if isinstance(x, type):
        return _belongs(x.__module__) or issubclass(x, np.generic)
    return False


def reads_of(code: types.CodeType) -> _Reads:
    """What a code and the functions made in it read. Raises _Unknown where it writes to what is
    not its own, or imports."""
    found = _codes.get(id(code))
    if found is None:
        try:
            reads: _Reads | None = _Reads(tuple(sorted(set(_globals(code)))), _cells(code))
        except _Unknown:
            reads = None
        found = _codes[id(code)] = code, reads
    if found[1] is None:
        raise _Unknown
    return found[1]


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _all_codes(const)


def _chains(code: types.CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each instruction that reads a variable by name, with the name, and the attributes that are
    read of it at once."""
    instructions = list(dis.get_instructions(code))
    for k, instruction in enumerate(instructions):
        word, chain = instruction.opname, []
        for later in instructions[k + 1 :]:
            if later.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                break
            chain.append(later.argval)
        yield word, instruction.argval, tuple(chain)


def _globals(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    for inner in _all_codes(code):
        for word, name, chain in _chains(inner):
            if word == "LOAD_GLOBAL":
                yield (name, *chain)
            elif word in _UNKNOWN_WORDS:
                raise _Unknown
            elif word in ("STORE_DEREF", "DELETE_DEREF") and name in inner.co_freevars:
                raise _Unknown


def _cells(code: types.CodeType) -> dict[str, set[tuple[str, ...]]]:
    found: dict[str, set[tuple[str, ...]]] = {}
    for inner in _all_codes(code):
        for word, name, chain in _chains(inner):
            if "DEREF" in word and name in code.co_freevars:
                found.setdefault(name, set()).add(chain)
    return found
