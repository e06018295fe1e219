"""Functions made anew by the same line that do the same: when one trace serves both of them.

For control flow outside `jit`, whose functions are often written where they are used, and so are
other objects in each call. `form(function)` says what tracing it can depend on: its code, its
defaults, what it closes over, the globals and attributes of modules that it reads, with functions
among these followed in the same way. Numbers and text count by value, lists and dicts by what they
hold, Arrays by identity, and by value too where a user may write to their memory. It is None where
something else is read, such as an object with attributes, so that a function which may do
otherwise is traced again. What would break it: a way to read what can change that `reads_of` does
not see.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from numjet.base.class_names import home, is_own
from numjet.base.record import NamedTuple
from numjet.base.treedef import LEAF, PyTreeDef
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.memo import Memo

_OWN = __name__.partition(".")[0]
# So many parts a form has at most; small NumPy arrays are parts by their bytes; the Arrays of a
# form, which live as long as it is remembered, have so many bytes together.
_MOST, _BYTES, _ARRAYS = 400, 256, 1 << 16
_BY_VALUE = {type(None), type(...), type(NotImplemented), bool, int, str, bytes, ShapedArray}
# Attributes of our functions that messages alone read.
_TOLD = frozenset({"in_tree", "told", "traced"})
_CONTAINERS = (type(None), tuple, list, dict)
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
# What a jitted function has in its dictionary.
_WRAPPED = {*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "_core"}
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
    around it, the attributes that are read of them. `special`: whether it names something like
    `__doc__`, which can be an attribute of anything that a form holds."""

    globals: tuple[tuple[str, ...], ...]
    cells: dict[str, set[tuple[str, ...]]]
    special: bool


# By address, with the code, so that no other one gets the address.
_codes: dict[int, tuple[types.CodeType, _Reads | None]] = Memo("what functions read", 512)


def form(function: Callable, in_tree: PyTreeDef | None = None) -> Form | None:
    """What tracing `function`, for arguments of this structure, can depend on; None where that
    cannot be told."""
    made = _Maker()
    try:
        if in_tree is not None:
            made.add(in_tree)
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
        self.mutable = self.numpy = False
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
        elif kind is PyTreeDef:
            if not _is_plain(x):
                raise _Unknown
            parts.append((kind, x))
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
        elif kind is weakref.ref:
            parts.append(kind)
            self.add(x())
        elif kind is functools.partial:
            if x.__dict__:
                raise _Unknown
            if not self.is_new(x):
                return
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
        if self.bytes > _ARRAYS or x.is_deleted():
            raise _Unknown
        self.keep(x)
        # What a program computes lies in the pool; other memory may be a user's.
        base = value = x._value if x._pending is None else None
        while type(base) is np.ndarray:
            base = base.base
        if type(value) is np.ndarray and not getattr(base, "from_pool", False):
            self.parts.append(value.tobytes())

    def keep(self, x: Any) -> None:
        """Note `x` by its address."""
        self.parts.append(id(x))
        self.kept.append(x)

    def computes(self) -> None:
        """Note that NumPy computes, and raises, warns or does neither, as its state says."""
        if not self.numpy:
            self.numpy = True
            self.parts.append(tuple(np.geterr().values()))

    def is_new(self, x: Any) -> bool:
        """Whether `x` is met for the first time; else its turn is noted."""
        turn = self.seen.get(id(x))
        if turn is None:
            self.seen[id(x)] = len(self.seen)
            return True
        self.parts.append(("again", turn))
        return False

    def add_other(self, x: Any) -> None:
        if isinstance(x, np.generic) and type(x).__module__ == "numpy" and x.dtype.kind in "biufc":
            self.computes()
            self.parts.append((type(x), x.tobytes()))
        elif isinstance(x, np.dtype) and x.names is None and x.metadata is None:
            self.parts.append(x)
        elif type(x) is np.ndarray and x.nbytes <= _BYTES and x.dtype.kind in "biufc":
            self.mutable = True
            self.computes()
            if self.is_new(x):
                layout = x.shape, x.strides, x.flags.num, x.dtype
                self.parts.append((*layout, x.tobytes()))
        elif _is_fixed(x):
            if getattr(x, "__module__", "numpy") == "numpy":
                self.computes()
            self.keep(x)
        elif getattr(type(x), "clearings", None) is not None and x.__dict__.keys() <= _WRAPPED:
            self.parts.append((id(x), x.clearings, x.__name__))
            self.passing.append(x)
        else:
            raise _Unknown

    def add_function(self, function: types.FunctionType) -> None:
        if _is_public(function):
            self.keep(function)
            return
        code, space = function.__code__, function.__globals__
        reads, own = reads_of(code), _belongs(space.get("__name__"))
        told = _TOLD if own else frozenset()
        if not function.__dict__.keys() - told <= {"__wrapped__"}:
            raise _Unknown
        if reads.special and not own:
            raise _Unknown
        self.parts.append(("function", function.__name__, function.__qualname__))
        self.keep(code)
        if "__wrapped__" in function.__dict__:
            self.add(function.__wrapped__)  # type: ignore[attr-defined]
        self.add(function.__defaults__)
        for name, value in sorted((function.__kwdefaults__ or {}).items()):
            self.parts.append(name)
            self.add(value)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                raise _Unknown from None
            if _is_module(value):
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
        while _is_module(value):
            if not rest:
                raise _Unknown
            ours = type(value) is not types.ModuleType or _belongs(value.__name__)
            value = getattr(value, rest.pop(0), _Unknown)
            if ours and type(value) is types.FunctionType and _is_ours(value):
                self.keep(value)  # also under another name than its own
                return
        self.add(value)


def _belongs(module: Any) -> bool:
    """Whether a module of this name is one of this package's, whose globals are no state."""
    return type(module) is str and module.partition(".")[0] == _OWN


def _is_plain(treedef: PyTreeDef) -> bool:
    """Whether a tree has no nodes of classes with methods of their own, nor keys but text."""
    if treedef is LEAF:
        return True
    node = treedef.node_data()
    if node is None:
        return True
    kind, data = node
    if kind not in _CONTAINERS or kind is dict and not all([type(key) is str for key in data]):
        return False
    return all(map(_is_plain, treedef.children()))


def _is_module(x: Any) -> bool:
    """Whether `x` is a module whose attributes are what it is asked for: of Python's own type, or
    one that shows numjet under JAX's name."""
    return type(x) is types.ModuleType or isinstance(x, types.ModuleType) and is_own(type(x))


def _is_ours(function: types.FunctionType) -> bool:
    """Whether this package wrote a function, and did not make it of a user's."""
    return _belongs(home(function) or function.__module__) and _belongs(
        function.__globals__.get("__name__")
    )


def _is_public(function: types.FunctionType) -> bool:
    """Whether a module of this package shows a function of this package under its name."""
    module = home(function) or function.__module__
    known = sys.modules.get(module) if _is_ours(function) else None
    return getattr(known, function.__name__, None) is function


def _is_fixed(x: Any) -> bool:
    """Whether what `x` does is decided when it is made: functions of C without state, types."""
    if id(x) in _BUILTINS:
        return True
    if isinstance(x, np.ufunc):  # not those that `np.frompyfunc` makes of functions
        return getattr(np, x.__name__, None) is x
    if isinstance(x, types.BuiltinFunctionType):
        return x.__module__ in _MATHEMATICS
    if isinstance(x, type):
        return is_own(x) or issubclass(x, np.generic)
    return False


def reads_of(code: types.CodeType) -> _Reads:
    """What a code and the functions made in it read. Raises _Unknown where it writes to what is
    not its own, or imports."""
    found = _codes.get(id(code))
    if found is None:
        try:
            chains = tuple(sorted(set(_globals(code))))
            reads: _Reads | None = _Reads(chains, _cells(code), _is_special(code))
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


def _is_special(code: types.CodeType) -> bool:
    return any(
        type(word) is str and word.startswith("__")
        for inner in _all_codes(code)
        for word in (*inner.co_names, *inner.co_consts)
    )


def _chains(code: types.CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each instruction that reads a variable by name, with the name, and the attributes that are
    read of it at once."""
    instructions = list(dis.get_instructions(code))
    for k, instruction in enumerate(instructions):
        word, chain = instruction.opname, []
        for later in instructions[k + 1 :]:
            if later.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                chain.append(later.argval)
            elif later.opname != "EXTENDED_ARG":
                break
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
