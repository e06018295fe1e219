"""The shortcuts as native code: tables for the functions of `code.operators`, and their use.

`numpy.fast` hands over what it learns and stays with Python where there is no native code: on
another interpreter or system, in a build without the GIL, where objects do not lie as the tests
here want them, and in the first process of its kind for a second, until another thread of it has
compiled the code. A call costs a third of what NumPy's own takes on few numbers, since NumPy's
inner loop is called directly. What would break it: a table whose objects die (it holds them, and
methods' tables are held for ever).
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config, locks
from numjet.base.errors import InternalError
from numjet.core import hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import Plan
from numjet.core.evaluate import evaluate_python
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY, Primitive
from numjet.cpu.builder import sources
from numjet.cpu.builder.records import words
from numjet.cpu.link import freestanding
from numjet.cpu.link.later import later
from numjet.native import build, deferral, files, objects, record as trace_native, tables
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
from numjet.transforms.eager import LinearTracer
from numjet.transforms.stage import StageTracer

_FLAGS = {"positional": 0x0080, "function": 0x0080 | 0x0002, "binary": 8, "unary": 4}  # METH_...
# Methods with a native form, and what they do (see `code.interpreter`; "unary": one operand).
_BINARY = "add sub mul truediv and or xor".split()
_COMPARISONS = "eq ne lt le gt ge".split()
OPERATORS = (
    {f"__{name}__": "plain" for name in (*_BINARY, *_COMPARISONS)}
    | {f"__r{name}__": "reflected" for name in _BINARY}
    | {f"__{name}__": "unary" for name in ("neg", "abs", "invert")}
    | {"__getitem__": "index", "__matmul__": "product"}
    | {f"at.{name}": "update" for name in "set add subtract multiply min max".split()}
)
# Of linearized arrays, too: those that have derivatives.
_OF_LINEAR = {f"__{r}{x}__" for x in "add sub mul truediv".split() for r in ("", "r")} | {
    "__neg__", "__abs__", "__matmul__"}


_HEADER = len(words(tables.Table)) - 1  # words of a table before its slots
_LATER = words(tables.Table).index("later")
_ENTRY, _CONTEXT = words(tables.Entry), words(tables.OperatorContext)
_TABLES = forever(np.zeros(len(OPERATORS), np.int64))  # addresses, by number
_STAGED = forever(np.zeros(len(OPERATORS), np.int64))  # of staged arrays, likewise: what is known
_changing = locks.reentrant()  # finalizers may run anywhere
# Entries that are forgotten, and when they were: a call that found one may be on its way yet.
_dropped: collections.deque[tuple[float, list]] = collections.deque()
_CALL_SECONDS = 0.2


class AtSlots:
    """What native code knows of the object `x.at`."""

    __slots__ = ("array",)


class AtIndexSlots:
    """What native code knows of the object `x.at[index]`."""

    __slots__ = ("array", "index")


class Table(Memo):
    """The table of one operation: which operands it knows, and what to do with them. `words` lead
    native code to the entries, which are kept here: by their keys (entry, what the keys name)."""

    def __init__(
        self, fallback: Callable, operands: int, check_trace: bool = True, name: str = ""
    ) -> None:
        table = np.zeros(_HEADER + 3 * tables.SLOTS, np.int64)
        table[:_HEADER] = (address(_context()), id(fallback), check_trace, operands, 0)
        self.words, self.fallback = table, fallback
        self.later: Any = None  # the slots of what is written down, when there are some
        name = name or getattr(fallback, "__name__", "an operation")
        # Last: who forgets everything finds it from here on.
        super().__init__(f"native code: {name}", tables.SLOTS + tables.LATER_SLOTS, passing=True)

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

    def add_later(self, left: Any, right: Any, plan: Plan, numbers: tuple, large: bool) -> None:
        """Remember that the operation on operands of these kinds is written down as `plan`.

        numbers: for each operand, if it is a Python number, the dict of arrays made of such, else
        None; large: whether no operand needs to wait itself.
        """
        self._begin_later()
        keys = id(left), 0 if right is None else id(right)

        def entry() -> np.ndarray:
            of_numbers = [0 if x is None else id(x) for x in numbers]
            return np.array([id(plan), *of_numbers, large, 0, 0, 0], np.int64)

        self.put(*keys, (left, right, plan, numbers), entry, self.later)

    def add_linear(
        self, left: Any, right: Any, primitive: Any, params: dict, numbers: tuple, always: bool
    ) -> None:
        """Remember that the operation on these operands, some of which are linearized, is that of
        `primitive` with `params`, as long as the flags are as they are.

        numbers: as for `add_later`; always: whether no operand needs to wait itself.
        """
        self._begin_later()
        kinds = [_kind(left), (0, None) if right is None else _kind(right)]
        keys = kinds[0][0], kinds[1][0]
        of_numbers = [0 if x is None else id(x) for x in numbers]
        made = np.array(
            [0, *of_numbers, always, id(primitive), id(params), config.state[0]], np.int64
        )
        held = kinds[0][1], kinds[1][1], primitive, params, numbers
        with _changing:
            known = self.get((*keys, True))
            if known is not None:  # under other flags
                known[0][:] = made
                dict.__setitem__(self, (*keys, True), (known[0], (held, known[1])))
                return
        self.put(*keys, held, lambda: made, self.later)

    def _begin_later(self) -> None:
        with _changing:
            if self.later is None:
                self.later = np.zeros(3 * tables.LATER_SLOTS, np.int64)
                self.words[_LATER] = address(self.later)

    def put(
        self, x: int, y: int, kinds: tuple, make: Callable[[], np.ndarray | None],
        slots: np.ndarray | None = None,
    ) -> bool:  # fmt: skip
        """Store the entry that `make` gives under these keys, if one of its two places is free;
        says whether there is one now. (Operands of ever new kinds leave nothing behind.)"""
        slots = self.words[_HEADER:] if slots is None else slots
        first = (x >> 4 ^ x >> 10 ^ y >> 5 ^ y >> 11) & (len(slots) // 3 - 1)
        for k in (first, first ^ 1):
            place = slots[3 * k :][:3]
            if place[2] == 0:
                entry = make()
                if entry is None:
                    return False
                key = x, y, slots is self.later
                with _changing:
                    # Other threads may have been here meanwhile: what a slot leads to stays.
                    free = not place[2] and key not in self
                    if free:
                        place[:] = x, y, address(entry)
                        dict.__setitem__(self, key, (entry, kinds))
                if free:
                    self.count()  # may drop all
                    return True
            if place[0] == x and place[1] == y:
                return True
        return False

    def drop(self, count: int) -> None:
        """Forget all entries. Their memory goes later: calls may be on their way."""
        now, past = time.monotonic(), []
        with _changing:
            self.words[_HEADER:] = 0
            if self.later is not None:
                self.later[:] = 0
            _dropped.append((now, list(self.values())))
            self.dropped += len(self)
            self.clear()
            while _dropped[0][0] < now - _CALL_SECONDS:
                past.append(_dropped.popleft())  # freed without the lock

    def function(self) -> Callable:
        """The operation as a function object."""
        method = _methods()["where_function" if self.words[3] == 3 else "function"]
        return _new_function(ctypes.addressof(method), (self.words, self), None)


def _kind(x: Any) -> tuple[int, Any]:
    """The key of an operand (`code.known_operands.kind_of`), and what it names."""
    if type(x) is LinearTracer:
        return id(x.aval) | 1, x.aval  # `tables.linear_key`, which is slow as Python
    if isinstance(x, ArrayImpl):
        return id(x.aval), x.aval
    return id(type(x)), type(x)


class Forms:
    """The native forms of one operation: its tables, and what they have to know."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.facts: list[tuple] = []
        # By kinds of operands, some of which are linearized: the state of the flags.
        self.linear: dict[tuple[int, int], int] = Memo("linearized operands", 1024)

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

    def learn_later(
        self, left: Any, right: Any, plan: Plan, numbers: tuple = (None, None), large: bool = False
    ) -> None:
        """`Table.add_later` for each table, now or when there is one."""
        self._note((Table.add_later, left, right, plan, numbers, large))

    def learn_linear(
        self, left: Any, right: Any, primitive: Any, params: dict,
        numbers: tuple = (None, None), always: bool = True,
    ) -> None:  # fmt: skip
        """`Table.add_linear` for each table that there is, once a state of the flags."""
        state = config.state[0]
        if state < 0 or not deferral.wanted():
            return
        key = _kind(left)[0], 0 if right is None else _kind(right)[0]
        if self.linear.get(key) == state:
            return
        self.linear[key] = state
        for table in self.tables:
            table.add_linear(left, right, primitive, params, numbers, always)

    def _note(self, fact: tuple) -> None:
        if possible():
            if not _state.get("connected") and len(self.facts) < tables.SLOTS:  # for tables to come
                self.facts.append(fact)
            for table in self.tables:
                fact[0](table, *fact[1:])
            _wanted()

    def forget(self) -> None:
        """Forget what was learned."""
        self.facts.clear()
        for table in self.tables:
            table.drop(0)

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
    right = operands[1] if len(operands) == 2 else None
    _evaluation(primitive, len(operands)).add(operands[0], right, function, out)


def _evaluation(primitive: Primitive, operands: int) -> Table:
    """The table of a primitive without params."""
    table = _evaluations.get(primitive)
    if table is None:

        def fallback(*args: Any) -> Any:
            return evaluate_python(primitive, args, {})

        table = _evaluations[primitive] = forever(
            Table(fallback, operands, False, f"evaluation of {primitive.name}")
        )
        primitive.run = table.function()
    return table


def _learn_later(primitive: Primitive, params: dict, plan: Plan) -> None:
    """Writing down by primitives, which transformations bind, as native calls."""
    avals = plan.avals
    if not 0 < len(avals) <= 2 or primitive.multiple_results or primitive.evaluate is not None:
        return
    if params:
        known = _executors.get((primitive, *params.items()))
        if known is None:
            return
        table = known[0]
    else:
        table = _evaluation(primitive, len(avals))
    table.add_later(avals[0], avals[1] if len(avals) == 2 else None, plan, (None, None), False)


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

    table = Table(fallback, len(avals), False, f"evaluation of {primitive.name} with parameters")
    table.put(*keys, avals, lambda: made)
    run = table.function()
    _executors[key] = table, run
    return run


def _learn_evaluations() -> None:
    hooks.learn, hooks.executor, hooks.learn_later = _learn_evaluation, _executor, _learn_later
    for primitive in list(REGISTRY.values()):
        primitive.runs.clear()
        for key, (out, function) in list(primitive.eager.items()):
            _learn_evaluation(primitive, key if type(key) is tuple else (key,), function, out)


# ------------------------------------------------------------------ loading
# A program that runs for longer gains more than it pays: 30 ms of one core, once a machine.
WAIT_SECONDS = 1.0
_state: dict[str, Any] = forever({})
_waiting: list[Callable[[], None]] = []
_ready_lock = locks.lock()  # between the code's arrival and what waits for it


def _reason() -> str:
    """Why there can be no native code here; "" when there can be."""
    if not config.disk_cache.value:
        return "the flag disk_cache is off"
    reason = freestanding.reason() or layout() or ("" if sources.readable() else sources.MISSING)
    for record, cls in ((objects.AtHelper, AtSlots), (objects.AtRef, AtIndexSlots)):
        if not reason and not slots_of(record, cls, exact=False):
            reason = f"the slots of {record.__name__} were not found"
    return reason or deferral.reason() or trace_native.reason()


_FUNCTIONS = (
    "function", "where_function", "at_get", "at_index", "read_file", *trace_native.METHODS,
    *deferral.FUNCTIONS,
)  # fmt: skip
_VARIABLES = ("tables", "recording", "deferral", "files")


def _load() -> dict[str, int] | None:
    kinds = list(OPERATORS.values())
    methods = [f"{'update' if x == 'update' else 'operator'}_{k}" for k, x in enumerate(kinds)]
    staged = [f"staged_{k}" for k, kind in enumerate(kinds) if kind in ("plain", "reflected")]
    return build.load("interpreter", [*_FUNCTIONS, *_VARIABLES, *methods, *staged], kinds)


def _find() -> dict[str, Any]:
    """Ask for the code once, when the package is imported."""
    if not _state:
        _state["reason"] = _reason()
        _state["addresses"] = None if _state["reason"] else _load()
        _state["connected"] = usable()
        # In this order, as other threads go on meanwhile: what tables refer to comes first.
        when_ready(_install_record)
        when_ready(_install_deferral)
        when_ready(_install_files)
        when_ready(_connect)
        when_ready(_learn_evaluations)
        if possible() and not usable():
            hooks.long_trace = _wanted
    return _state


def _connect() -> None:
    """Let methods find the tables."""
    ctypes.c_size_t.from_address(_state["addresses"]["tables"]).value = address(_TABLES)


def _install_record() -> None:
    addresses = _state["addresses"]
    kinds = dict.fromkeys(
        ("record", "describe", "replay_jvp", "replay_transposed"), "positional")
    kinds |= dict.fromkeys(("product", "apply_staged"), "binary") | dict.fromkeys(
        ("user_line", "caller_line"), "unary")
    methods = {
        name: Method(name.encode(), addresses[name], _FLAGS[kind], None)
        for name, kind in kinds.items()
    }
    trace_native.install(_new_method, _new_function, methods, _STAGED, addresses["recording"])


def _install_deferral() -> None:
    addresses = _state["addresses"]
    methods = {
        name: Method(name.encode(), addresses[name], _FLAGS[kind], None)
        for name, kind in deferral.FUNCTIONS.items()
    }
    deferral.install(_new_function, _new_method, methods, addresses["deferral"])


def _install_files() -> None:
    addresses = _state["addresses"]
    method = forever(Method(b"read_file", addresses["read_file"], _FLAGS["positional"], None))
    files.install(_new_function(ctypes.addressof(method), None, None), addresses["files"])


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
    if not possible():
        return
    with _ready_lock:
        if not usable():
            _waiting.append(action)
            return
    action()


def _wanted() -> None:
    """There is a use for the code: where it is not there yet, it is compiled, by another thread and
    after a while, so that programs that do little do not compete with it for a core."""
    if "builder" not in _state and not usable():
        _state["builder"] = True
        with contextlib.suppress(RuntimeError):  # no more threads
            later(WAIT_SECONDS, _build)
        atexit.register(_build)  # for later processes, unless it was done


_building = locks.lock()


def _build() -> None:
    """Compile the code and use it: once, whichever thread is first."""
    with _building:
        if usable() or not possible():
            return
        try:
            build.compile("interpreter", list(OPERATORS.values()))
            found = _load()
            with _ready_lock:
                _state["addresses"] = found
            if not usable():
                _state["reason"] = "the compiled code could not be mapped or kept"
        except (InternalError, ImportError, OSError) as error:
            _state["reason"] = str(error)
            warnings.warn(
                f"numjet's operators stay with Python: {error}", RuntimeWarning, stacklevel=1
            )
        if usable():
            _arrive()


def _arrive() -> None:
    """Do what waited for the code. What is learned meanwhile by another thread is noted for tables
    to come, until all are there."""
    while _waiting:  # nothing is added any more
        _waiting.pop(0)()
    _state["connected"] = True


def _context() -> np.ndarray:
    if "context" not in _state:
        api = array_api()
        known = {"new_array": api[NEW_ARRAY], "set_base": api[SET_BASE]}
        known |= {"at_helper": 0, "at_ref": 0}  # `install_updates` knows
        for name, x in (
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
        # Of the class above, so that `type(x).__add__` takes traced arrays too.
        native = _new_method(Array, ctypes.addressof(_methods()[name]))
        hooks.install(ArrayImpl, {name: native})
        if name in _OF_LINEAR:
            hooks.install(LinearTracer, {name: native})

    when_ready(attach)


def install_staged(name: str, known: dict, primitive: Primitive, method: Callable) -> None:
    """Make operator `name` a native method of staged arrays, with `method` for what it does not
    know; it binds `primitive` for operands that are `known` (`numpy.fast`)."""

    def attach() -> None:
        number = list(OPERATORS).index(name)
        about = forever((known, primitive, {}, method))
        _STAGED[number] = id(about)
        code = _state["addresses"][f"staged_{number}"]
        described = forever(Method(name.encode(), code, _FLAGS["binary"], None))
        native = _new_method(StageTracer, ctypes.addressof(described))
        hooks.install(StageTracer, {name: native})

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
        methods = {}
        for name, form in forms.items():
            operator = f"at.{name}"
            table = forever(form.attach(Table(getattr(at_index, name), 2)))
            _TABLES[list(OPERATORS).index(operator)] = address(table.words)
            methods[name] = _new_method(at_index, ctypes.addressof(_methods()[operator]))
        hooks.install(at_index, methods)
        getitem = _new_method(at, ctypes.addressof(_methods()["at_index"]))
        hooks.install(at, {"__getitem__": getitem})
        getter = Property(
            b"at", _state["addresses"]["at_get"], None, doc.encode(), address(context)
        )
        keep.append((at, at_index, getter))
        hooks.install(ArrayImpl, {"at": _new_property(ArrayImpl, ctypes.addressof(getter))})

    when_ready(attach)
