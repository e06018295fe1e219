"""The shortcuts as native code: tables for the functions of `code.operators`, and their use.

`numpy.fast` hands over what it learns and stays with Python where there is no native code: on
another interpreter or system, in a build without the GIL, where objects do not lie as the tests
here want them, and in the first process of its kind for a second, until another thread of it has
compiled the code. A call costs a third of what NumPy's own takes on few numbers, since NumPy's
inner loop is called directly. What would break it: a table whose objects die (it holds them, and
methods' tables are held for ever).
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import os
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config, locks
from numjet.base.errors import InternalError
from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import evaluate_python
from numjet.core.memo import Memo, on_clear
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.trace import EVAL, _current
from numjet.cpu.builder import sources
from numjet.cpu.builder.records import words
from numjet.cpu.link import freestanding
from numjet.native import build, objects, record as trace_native, tables
from numjet.native.entries import (
    address,
    entry_of,
    entry_with_params,
    keep,
    update_entry,
    where_entry,
)
from numjet.native.layout import (
    NEW_ARRAY,
    SET_BASE,
    Method,
    Property,
    array_api,
    context_of,
    forever,
    layout,
    slots_of,
)

_FLAGS = {"positional": 0x0080, "function": 0x0080 | 0x0002, "binary": 8, "unary": 4}  # METH_...
# Methods with a native form, and what they do (see `code.interpreter`; "unary": one operand).
_BINARY = "add sub mul truediv and or xor".split()
_COMPARISONS = "eq ne lt le gt ge".split()
OPERATORS = (
    {f"__{name}__": "plain" for name in (*_BINARY, *_COMPARISONS)}
    | {f"__r{name}__": "reflected" for name in _BINARY}
    | {f"__{name}__": "unary" for name in ("neg", "abs", "invert")}
    | {"__getitem__": "index", "__matmul__": "plain"}
    | {f"at.{name}": "update" for name in "set add subtract multiply min max".split()}
)


_HEADER = len(words(tables.Table)) - 1  # words of a table before its slots
_ENTRY, _CONTEXT = words(tables.Entry), words(tables.OperatorContext)
_TABLES = forever(np.zeros(len(OPERATORS), np.int64))  # addresses, by number


class AtSlots:
    """What native code knows of the object `x.at`."""

    __slots__ = ("array",)


class AtIndexSlots:
    """What native code knows of the object `x.at[index]`."""

    __slots__ = ("array", "index")


class Table:
    """The table of one operation: which operands it knows, and what to do with them."""

    def __init__(self, fallback: Callable, operands: int, check_trace: bool = True) -> None:
        table = np.zeros(_HEADER + 3 * tables.SLOTS, np.int64)
        table[:_HEADER] = (address(_context()), id(fallback), check_trace, operands)
        self.words, self.fallback = table, fallback
        self.entries: list[tuple] = []
        self._before: list[tuple] = []
        with _tables_lock:
            _tables.add(self)

    def add(self, left: Any, right: Any, function: Any, out: ShapedArray) -> None:
        """Remember that NumPy's `function` gives an array of aval `out` for operands of these
        kinds (an aval, or the type of a Python scalar; right None: one operand), if it can be."""
        keys = id(left), 0 if right is None else id(right)
        self.put(*keys, (left, right), lambda: entry_of(left, right, function, out))

    def add_view(self, x: ShapedArray, rows: int | None, out: ShapedArray) -> None:
        """Remember the aval of a slice of x's that leaves so many rows; rows None: of one row."""

        def entry() -> np.ndarray:
            made = np.zeros(len(_ENTRY), np.int64)
            made[_ENTRY.index("aval")] = id(out)
            return made

        self.put(id(x), id(int) if rows is None else tables.range_key(rows), (x, out), entry)

    def add_where(self, condition: ShapedArray, x: Any, y: Any, out: ShapedArray) -> None:
        """Remember that `where` of these kinds of operands gives an array of aval `out`."""
        keys = id(condition), id(x) + 3 * id(y)
        self.put(*keys, (condition, x, y), lambda: where_entry(condition, x, y, out))

    def add_update(self, function: np.ufunc, x: ShapedArray, given: Any, out: ShapedArray) -> None:
        """Remember that x's rows are updated by NumPy's `function` with such values."""
        self.put(id(x), id(given), (x, given), lambda: update_entry(function, x, given, out))

    def put(self, x: int, y: int, kinds: tuple, make: Callable[[], np.ndarray | None]) -> bool:
        """Store the entry that `make` gives under these keys, if one of its two places is free;
        says whether there is one now. (Operands of ever new kinds leave nothing behind.)"""
        first = (x >> 4 ^ x >> 10 ^ y >> 5 ^ y >> 11) & (tables.SLOTS - 1)
        for k in (first, first ^ 1):
            place = self.words[_HEADER + 3 * k :][:3]
            if place[2] == 0:
                entry = make()
                if entry is not None:
                    self.entries.append((entry, kinds))
                    place[:] = x, y, address(entry)
                return entry is not None
            if place[0] == x and place[1] == y:
                return True
        return False

    def clear(self) -> None:
        """Forget all entries. Their memory goes at the next time: a call may be on its way."""
        self.words[_HEADER:] = 0
        self._before, self.entries = self.entries, []

    def function(self) -> Callable:
        """The operation as a function object."""
        method = _methods()["where_function" if self.words[3] == 3 else "function"]
        return _new_function(ctypes.addressof(method), (self.words, self), None)


_tables: weakref.WeakSet[Table] = weakref.WeakSet()


_tables_lock = locks.lock()


def _clear_tables() -> None:
    with _tables_lock:
        known = list(_tables)
    for table in known:
        table.clear()


on_clear(_clear_tables)


class Forms:
    """The native forms of one operation: its tables, and what they have to know."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.facts: list[tuple] = []

    def learn(self, left: Any, right: Any, function: Any, out: ShapedArray) -> None:
        """`Table.add` for each table, now or when there is one."""
        self._note((Table.add, left, right, function, out))

    def learn_view(self, x: ShapedArray, rows: int | None, out: ShapedArray) -> None:
        """`Table.add_view` for each table, now or when there is one."""
        self._note((Table.add_view, x, rows, out))

    def learn_where(self, condition: ShapedArray, x: Any, y: Any, out: ShapedArray) -> None:
        """`Table.add_where` for each table, now or when there is one."""
        self._note((Table.add_where, condition, x, y, out))

    def learn_update(self, function: np.ufunc, x: ShapedArray, given: Any, out: Any) -> None:
        """`Table.add_update` for each table, now or when there is one."""
        self._note((Table.add_update, function, x, given, out))

    def _note(self, fact: tuple) -> None:
        if possible():
            if not usable() or _waiting:  # for tables to come
                self.facts.append(fact)
            for table in self.tables:
                fact[0](table, *fact[1:])
            _wanted()

    def attach(self, table: Table) -> Table:
        """Let `table` know what is known already, and what is learned from now on."""
        self.tables.append(table)
        for fact in list(self.facts):
            fact[0](table, *fact[1:])
        return table


_evaluations: dict[Primitive, Table] = {}


def _learn_evaluation(
    primitive: Primitive, operands: tuple, function: Any, out: ShapedArray
) -> None:
    """Evaluation of primitives, which transformations bind, as native calls."""
    table = _evaluations.get(primitive)
    if table is None:

        def fallback(*args: Any) -> Any:
            return evaluate_python(primitive, args, {})

        table = _evaluations[primitive] = forever(Table(fallback, len(operands), check_trace=False))
        primitive.run = table.function()
    table.add(operands[0], operands[1] if len(operands) == 2 else None, function, out)


# By primitive and params: the latest table, with its function. Those before it live as long as the
# functions that `Primitive.runs` holds.
_executors: dict[tuple, tuple[Table, Callable]] = Memo("native evaluation", 1000)


def _executor(
    primitive: Primitive, avals: tuple, params: dict, out: ShapedArray
) -> Callable | None:
    """Evaluation with params as a native call, where it is one loop."""

    made = entry_with_params(primitive, avals, params, out)
    if made is None:
        return None
    keys = id(avals[0]), 0 if len(avals) == 1 else id(avals[1])
    key = (primitive, *params.items())
    known = _executors.get(key)
    if known is not None and known[0].put(*keys, avals, lambda: made):
        return known[1]

    def fallback(*args: Any) -> Any:
        return evaluate_python(primitive, args, params)

    table = Table(fallback, len(avals), check_trace=False)
    table.put(*keys, avals, lambda: made)
    run = table.function()
    _executors[key] = table, run
    return run


def _learn_evaluations() -> None:
    hooks.learn, hooks.executor = _learn_evaluation, _executor
    for primitive in list(REGISTRY.values()):
        primitive.runs.clear()
        for key, (out, function) in list(primitive.eager.items()):
            _learn_evaluation(primitive, key if type(key) is tuple else (key,), function, out)


# ------------------------------------------------------------------ loading
# A program that runs for longer gains more than it pays: 30 ms of one core, once a machine.
WAIT_SECONDS = 1.0
_state: dict[str, Any] = forever({})
_waiting: list[Callable[[], None]] = []


def _reason() -> str:
    """Why there can be no native code here; "" when there can be."""
    if not config.disk_cache.value:
        return "the flag disk_cache is off"
    if not freestanding.supported():
        return "code is mapped on 64-bit Linux only"
    reason = layout() or ("" if sources.readable() else sources.MISSING)
    for record, cls in ((objects.AtHelper, AtSlots), (objects.AtRef, AtIndexSlots)):
        if not reason and not slots_of(record, cls, exact=False):
            reason = f"the slots of {record.__name__} were not found"
    return reason or trace_native.reason()


_FUNCTIONS = ("function", "where_function", "at_get", "at_index", *trace_native.METHODS)
_VARIABLES = ("tables", "recording")


def _load() -> dict[str, int] | None:
    kinds = list(OPERATORS.values())
    methods = [f"{'update' if x == 'update' else 'operator'}_{k}" for k, x in enumerate(kinds)]
    return build.load("interpreter", [*_FUNCTIONS, *_VARIABLES, *methods], kinds)


def _find() -> dict[str, Any]:
    """Ask for the code once, when the package is imported."""
    if not _state:
        _state["reason"] = _reason()
        _state["addresses"] = None if _state["reason"] else _load()
        when_ready(_connect)
        when_ready(_learn_evaluations)
        when_ready(_install_record)
        if possible() and not usable():
            hooks.long_trace = _wanted
    return _state


def _connect() -> None:
    """Let methods find the tables."""
    ctypes.c_size_t.from_address(_state["addresses"]["tables"]).value = address(_TABLES)


def _install_record() -> None:
    addresses = _state["addresses"]
    kinds = dict.fromkeys(("record", "describe"), "positional")
    kinds |= dict.fromkeys(("product", "apply_staged"), "binary") | {"user_line": "unary"}
    methods = {
        name: Method(name.encode(), addresses[name], _FLAGS[kind], None)
        for name, kind in kinds.items()
    }
    trace_native.install(_new_method, _new_function, methods, addresses["recording"])


def possible() -> bool:
    """Whether the native code is there, or may come."""
    return not _find()["reason"]


def usable() -> bool:
    """Whether the native code is there."""
    return bool(_find()["addresses"])


def status() -> str:
    """What reads objects natively: "native", "not compiled yet", or why Python does it."""
    if usable():
        return "native"
    return _find()["reason"] or "not compiled yet"


def when_ready(action: Callable[[], None]) -> None:
    """Do something when the native code is there: now or never, or from another thread."""
    if usable():
        action()
    elif possible():
        _waiting.append(action)


def _wanted() -> None:
    """There is a use for the code: where it is not there yet, it is compiled, by another thread and
    after a while, so that programs that do little do not compete with it for a core."""
    if "builder" not in _state and not usable():
        ending, done = _state["builder"] = _thread.allocate_lock(), _thread.allocate_lock()
        ending.acquire()
        done.acquire()
        try:
            # Not `threading.Timer`, which takes a quarter of a millisecond of the first long trace.
            _thread.start_new_thread(_build_later, (ending, done))
        except RuntimeError:  # no more threads
            done.release()
        atexit.register(_build_at_last, os.getpid(), ending, done)


def _build_later(ending: _thread.LockType, done: _thread.LockType) -> None:
    """What the other thread does: wait, then compile unless the process ends."""
    try:
        if not ending.acquire(timeout=WAIT_SECONDS):
            _build()
    finally:
        done.release()


def _build_at_last(process: int, ending: _thread.LockType, done: _thread.LockType) -> None:
    """At the end: compile for later processes unless it was done; not while it is being done."""
    if process == os.getpid():  # a fork has no such thread
        ending.release()
        done.acquire()
    if not usable():
        _build()


def _build() -> None:
    try:
        build.compile("interpreter", list(OPERATORS.values()))
        _state["addresses"] = _load()
        if not usable():
            _state["reason"] = "the compiled code could not be mapped or kept"
    except (InternalError, ImportError, OSError) as error:
        _state["reason"] = str(error)
        warnings.warn(f"numjet's operators stay with Python: {error}", RuntimeWarning, stacklevel=1)
    while usable() and _waiting:
        _waiting.pop(0)()


def _context() -> np.ndarray:
    if "context" not in _state:
        api = array_api()
        known = {"new_array": api[NEW_ARRAY], "set_base": api[SET_BASE]}
        known |= {"at_helper": 0, "at_ref": 0}  # `install_updates` knows
        for name, x in (
            ("trace", _current),
            ("eval", EVAL),
            ("checks", config.numeric_checks),
            ("zero", 0),
            ("array", ArrayImpl),
            ("ndarray", np.ndarray),
            ("int", int),
            ("slice", slice),
        ):
            known[name] = id(x)
        _state["context"] = context_of(tables.OperatorContext, known)
    return _state["context"]


def _methods() -> dict[str, Method]:
    if "methods" not in _state:
        addresses = _state["addresses"]
        methods = {
            name: Method(b"call", addresses[name], _FLAGS["function"], None)
            for name in ("function", "where_function")
        }
        methods["at_index"] = Method(b"__getitem__", addresses["at_index"], _FLAGS["binary"], None)
        for k, (name, kind) in enumerate(OPERATORS.items()):
            if kind == "update":
                title = name.removeprefix("at.").encode()
                code = addresses[f"update_{k}"]
                methods[name] = Method(title, code, _FLAGS["function"], None)
                continue
            flags = _FLAGS["unary" if kind == "unary" else "binary"]
            methods[name] = Method(name.encode(), addresses[f"operator_{k}"], flags, None)
        _state["methods"] = methods
    return _state["methods"]


_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))
_new_method = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
    ("PyDescr_NewMethod", ctypes.pythonapi)
)


def install(name: str, method: Callable, forms: Forms) -> None:
    """Make operator `name` a native method of concrete arrays, with `method` for what it does not
    know; `forms` are those of the operation behind it."""

    def attach() -> None:
        table = forever(forms.attach(Table(method, 1 if OPERATORS[name] == "unary" else 2)))
        _TABLES[list(OPERATORS).index(name)] = address(table.words)
        setattr(ArrayImpl, name, _new_method(ArrayImpl, ctypes.addressof(_methods()[name])))

    when_ready(attach)


_new_property = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
    ("PyDescr_NewGetSet", ctypes.pythonapi)
)


def install_updates(at: type, at_index: type, forms: dict[str, Forms], doc: str) -> None:
    """Make `x.at`, `x.at[i]` and its methods native for concrete arrays. `at` and `at_index` are
    the classes of these objects, which hold concrete arrays alone; their methods stay for what is
    not known. forms: those of the methods."""

    def attach() -> None:
        context = _context()
        context[_CONTEXT.index("at_helper")] = id(at)
        context[_CONTEXT.index("at_ref")] = id(at_index)
        for name, form in forms.items():
            operator = f"at.{name}"
            table = forever(form.attach(Table(getattr(at_index, name), 2)))
            _TABLES[list(OPERATORS).index(operator)] = address(table.words)
            setattr(at_index, name, _new_method(at_index, ctypes.addressof(_methods()[operator])))
        getitem = _new_method(at, ctypes.addressof(_methods()["at_index"]))
        setattr(at, "__getitem__", getitem)  # noqa: B010 - a class that is not known here
        getter = Property(
            b"at", _state["addresses"]["at_get"], None, doc.encode(), address(context)
        )
        keep.append((at, at_index, getter))
        ArrayImpl.at = _new_property(ArrayImpl, ctypes.addressof(getter))  # type: ignore[attr-defined]

    when_ready(attach)
