"""The shortcuts as native code: tables for the functions of `fast_ir`, and their use.

`numpy.fast` hands over what it learns and stays with Python where there is no native code: on
another interpreter or system, in a build without the GIL, where objects do not lie as the tests
here want them, and in the first process of its kind for a second, until another thread of it has
compiled the code. A call costs a third of what NumPy's own takes on few numbers, since NumPy's
inner loop is called directly. What would break it: an entry whose objects die (`_keep` holds them),
and inner loops that are called with what they were not made for (their types are read from the
ufunc).
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.objects import NEW_ARRAY, SET_BASE, array_api, layout, slot
from numjet.base import config
from numjet.base.errors import InternalError
from numjet.core import avals
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import Native, evaluate_python
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.trace import EVAL, _current
from numjet.cpu import freestanding
from numjet.numpy import fast_ir as ir

# Above this size what a call costs beside its work does not count, and Python lets others run.
MAX_BYTES = 1 << 15
_FLAGS = {"function": 0x0080 | 0x0002, "binary": 0x0008, "unary": 0x0004}  # METH_...
# Methods with a native form, and what they do (see `fast_ir.text`; "unary": there is no operand).
_BINARY = "add sub mul truediv and or xor".split()
_COMPARISONS = "eq ne lt le gt ge".split()
OPERATORS = (
    {f"__{name}__": "plain" for name in (*_BINARY, *_COMPARISONS)}
    | {f"__r{name}__": "reflected" for name in _BINARY}
    | {f"__{name}__": "unary" for name in ("neg", "abs", "invert")}
    | {"__getitem__": "index", "__matmul__": "plain"}
)
_SCALARS = {
    (float, "f4"): ir.FLOAT_F32, (float, "f8"): ir.FLOAT_F64, (int, "f4"): ir.INT_F32,
    (int, "f8"): ir.INT_F64, (int, "i4"): ir.INT_I32, (int, "i8"): ir.INT_I64,
}
_keep: list[Any] = []


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _UfuncObject(ctypes.Structure):
    """The head of NumPy's PyUFuncObject, a public structure."""

    _fields_ = [
        ("refcount", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("nin", ctypes.c_int),
        ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    ]


def _address(table: np.ndarray) -> int:
    return table.__array_interface__["data"][0]


def inner_loop(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> tuple[int, int] | None:
    """The inner loop of `ufunc` for operands and result of exactly these dtypes, and its data."""
    head = _UfuncObject.from_address(id(ufunc))
    if (head.nin, head.nout, head.nargs, head.ntypes) != (
        ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes
    ) or head.name != ufunc.__name__.encode():
        return None
    n = head.nargs
    numbers = bytes(dtype.num for dtype in dtypes)
    for k in range(head.ntypes):
        if head.types[k * n : (k + 1) * n] == numbers:
            function, data = head.functions[k], head.data[k] if head.data else None
            return (function, data or 0) if function else None
    return None


class Table:
    """The table of one operation: which operands it knows, and what to do with them."""

    def __init__(self, fallback: Callable, operands: int, check_trace: bool = True) -> None:
        words = np.zeros(len(ir.TABLE) + 3 * ir.SLOTS, np.int64)
        words[: len(ir.TABLE)] = (_address(_context()), id(fallback), check_trace, operands)
        self.words = words
        _keep.append((words, fallback))

    def add(self, left: Any, right: Any, function: Any, out: ShapedArray) -> None:
        """Remember that NumPy's `function` gives an array of aval `out` for operands of these
        kinds (an aval, or the type of a Python scalar; right None: one operand), if it can be."""
        entry = _entry(left, right, function, out)
        if entry is None:
            return
        self.put(id(left), 0 if right is None else id(right), entry)
        _keep.append((left, right, out))

    def add_view(self, x: ShapedArray, rows: int | None, out: ShapedArray) -> None:
        """Remember the aval of a slice of x's that leaves so many rows; rows None: of one row."""
        entry = np.zeros(len(ir.ENTRY), np.int64)
        entry[ir.ENTRY.index("aval")] = id(out)
        self.put(id(x), id(int) if rows is None else ir.range_key(rows), entry)
        _keep.append((x, out))

    def put(self, x: int, y: int, entry: np.ndarray) -> None:
        """Store an entry under these keys if one of its two places is free."""
        first = (x >> 4 ^ x >> 10 ^ y >> 5 ^ y >> 11) & (ir.SLOTS - 1)
        for k in (first, first ^ 1):
            place = self.words[len(ir.TABLE) + 3 * k :][:3]
            if place[2] == 0 or (place[0] == x and place[1] == y):
                place[:] = x, y, _address(entry)
                _keep.append(entry)
                return

    def function(self) -> Callable:
        """The operation as a function object."""
        return _new_function(ctypes.addressof(_methods()["function"]), (self.words,), None)


def _nest(shape: tuple, strides: list[list[int]]) -> tuple[int, int, list[list[int]]] | None:
    """Outer and inner extent and each array's outer and inner stride for a walk over `shape`, where
    two loops do. Axes that lie one after another in all arrays are one."""
    dims: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if dims and all(s[-1] == own[axis] * n for s, own in zip(steps, strides, strict=True)):
            dims[-1] *= n
            for s, own in zip(steps, strides, strict=True):
                s[-1] = own[axis]
        else:
            dims.append(n)
            for s, own in zip(steps, strides, strict=True):
                s.append(own[axis])
    if len(dims) > 2:
        return None
    missing = 2 - len(dims)
    dims = [1] * missing + dims
    return dims[0], dims[1], [[0] * missing + s for s in steps]


def _strides(shape: tuple, size: int) -> list[int]:
    """Of a dense array; 0 along axes of one element, so that these repeat."""
    out, step = [], size
    for n in reversed(shape):
        out.append(step if n != 1 else 0)
        step *= n
    return out[::-1]


def _spread(shape: tuple, size: int, rank: int) -> list[int]:
    return [0] * (rank - len(shape)) + _strides(shape, size)


def _words(function: Any, dtypes: tuple, out: ShapedArray) -> dict[str, Any] | None:
    """What each entry has: the inner loop of `function` for these dtypes, and the result."""
    if not isinstance(function, np.ufunc) or function.nout != 1:
        return None
    if any(not isinstance(d, np.dtype) or d.isbuiltin != 1 for d in dtypes):
        return None
    loop = inner_loop(function, dtypes)
    if loop is None:
        return None
    dims = np.array([*out.shape, 0], np.intp)
    _keep.append((dims, out, out.dtype, function))
    return {
        "loop": loop[0], "data": loop[1], "aval": id(out), "dtype": id(out.dtype),
        "rank": out.ndim, "dims": _address(dims), "left": ir.ARRAY,
    }


def _pack(words: dict[str, Any], walk: tuple[int, int, list[list[int]]]) -> np.ndarray:
    outer, inner, steps = walk
    if not outer:
        outer, inner = 1, 0
    for k, (step, _) in enumerate(steps):
        words[f"ostep{k}"] = step
    return _with_counts(words | {"outer": outer}, [inner], [step for _, step in steps])


def _with_counts(words: dict[str, Any], counts: list[int], steps: list[int]) -> np.ndarray:
    arrays = np.array(counts, np.intp), np.array(steps, np.intp)
    _keep.append(arrays)
    words |= {"counts": _address(arrays[0]), "steps": _address(arrays[1])}
    return np.array([words.get(name, 0) for name in ir.ENTRY], np.int64)


# A product of so many multiplications takes some ten times as long as its call does here.
_MAX_PRODUCT = 1 << 18


def _product_entry(
    x: ShapedArray, y: ShapedArray, out: ShapedArray, turned: tuple[bool, bool] = (False, False)
) -> np.ndarray | None:
    """NumPy's product of vectors and matrices of one dtype; `turned`: operands to be transposed."""
    size = x.dtype.itemsize
    if x.dtype is not y.dtype or not 0 < x.ndim <= 2 or not 0 < y.ndim <= 2:
        return None
    rows, columns = (1, *x.shape)[-2:]
    x_steps = [columns * size, size]
    if turned[0]:
        rows, columns, x_steps = columns, rows, x_steps[::-1]
    inner, n = (*y.shape, 1)[:2]
    y_steps = [n * size, size]
    if turned[1]:
        inner, n, y_steps = n, inner, y_steps[::-1]
    m, k = rows, columns
    if k != inner:
        return None
    if m * n * k > _MAX_PRODUCT or not m * n * k:
        return None
    words = _words(np.matmul, (x.dtype, x.dtype, out.dtype), out)
    if words is None:
        return None
    words |= {"right": ir.ARRAY, "out_place": 2, "outer": 1}
    steps = [0, 0, 0, *x_steps, *y_steps, n * size, size]
    return _with_counts(words, [1, m, k, n], steps)


def _entry(left: Any, right: Any, function: Any, out: ShapedArray) -> np.ndarray | None:
    if function is np.matmul:
        return _product_entry(left, right, out)
    operands = [left] if right is None else [left, right]
    dtype = next(x for x in operands if type(x) is ShapedArray).dtype
    if out.size * max(out.dtype.itemsize, dtype.itemsize) > MAX_BYTES:
        return None
    codes, strides = [], []
    for x in operands:
        if type(x) is not ShapedArray:
            codes.append(_SCALARS.get((x, dtype.str[1:])))
            strides.append([0] * out.ndim)
        elif x.dtype is not dtype or x.ndim > out.ndim:
            return None
        else:
            codes.append(ir.ARRAY)
            strides.append(_spread(x.shape, dtype.itemsize, out.ndim))
    walk = _nest(out.shape, [*strides, _strides(out.shape, out.dtype.itemsize)])
    if None in codes or walk is None or getattr(function, "nin", 0) != len(operands):
        return None
    words = _words(function, (*[dtype] * len(operands), out.dtype), out)
    if words is None:
        return None
    words |= {"left": codes[0], "right": codes[-1], "out_place": len(operands)}
    return _pack(words, walk)


# Reductions of one ufunc, and what they begin with, as NumPy's own do: a number, or None for the
# first elements.
_REDUCTIONS: dict[str, tuple[np.ufunc, Any]] = {
    "reduce_sum": (np.add, 0), "reduce_prod": (np.multiply, 1),
    "reduce_max": (np.maximum, None), "reduce_min": (np.minimum, None),
    "reduce_and": (np.bitwise_and, -1), "reduce_or": (np.bitwise_or, 0),
    "reduce_xor": (np.bitwise_xor, 0),
}


def _reduction_entry(name: str, x: ShapedArray, axes: tuple, out: ShapedArray) -> Any:
    function, start = _REDUCTIONS[name]
    dtype = x.dtype
    if x.nbytes > MAX_BYTES or not out.size or dtype.itemsize > 8:
        return None
    # Sums of half floats are added up in single precision.
    if dtype.itemsize == 2 and dtype.kind == "f" or start is None and not x.size:
        return None
    kept = iter(_strides(out.shape, dtype.itemsize))
    to = [0 if axis in axes else next(kept) for axis in range(x.ndim)]
    walk = _nest(x.shape, [to, _strides(x.shape, dtype.itemsize), to])
    words = walk and _words(function, (dtype, dtype, dtype), out)
    if walk is None or not words:
        return None
    words |= {"out_place": 2, "fill": out.size, "fill_size": dtype.itemsize}
    if start is not None:
        value = np.asarray(start).astype(dtype)
        words["init"] = int.from_bytes(value.tobytes(), "little", signed=value.itemsize == 8)
        return _pack(words, walk)
    outer, inner, ((_, to_inner), (from_outer, from_inner), _) = walk
    words["fill_own"] = 1
    if to_inner:  # results lie along the inner axis: the first sweep is left out
        words |= {"fill_step": from_inner, "skip": from_outer}
        walk = (outer - 1, inner, walk[2])
    else:
        words |= {"fill_step": from_outer, "skip": from_inner}
        walk = (outer, inner - 1, walk[2])
    return _pack(words, walk)


def _broadcast_entry(
    x: ShapedArray, shape: tuple, broadcast_dimensions: tuple, out: ShapedArray
) -> Any:
    if out.nbytes > MAX_BYTES:
        return None
    strides = [0] * out.ndim
    for axis, step in zip(broadcast_dimensions, _strides(x.shape, x.dtype.itemsize), strict=True):
        strides[axis] = step
    walk = _nest(shape, [strides, _strides(shape, x.dtype.itemsize)])
    words = walk and _words(np.positive, (x.dtype, x.dtype), out)
    if walk is None or not words:
        return None
    words["out_place"] = 1
    return _pack(words, walk)


def _dot_entry(
    x: ShapedArray,
    y: ShapedArray,
    out: ShapedArray,
    *,
    dimension_numbers: tuple,
    precision: Any,
    preferred_element_type: Any,
) -> np.ndarray | None:
    contracting, (batch, _) = dimension_numbers
    if batch or preferred_element_type not in (None, x.dtype) or x.dtype.kind not in "fc":
        return None
    if x.dtype.itemsize < 4 or (x.ndim, y.ndim) != (2, 2):
        return None
    if contracting not in (((1,), (0,)), ((0,), (0,)), ((1,), (1,)), ((0,), (1,))):
        return None
    (i,), (j,) = contracting
    return _product_entry(x, y, out, (i == 0, j == 1))


def _entry_with_params(
    primitive: Primitive, avals: tuple, params: dict, out: ShapedArray
) -> np.ndarray | None:
    """The entry of an operation that is just a ufunc's inner loop on its operands, else None."""
    if not all(isinstance(aval.dtype, np.dtype) for aval in avals):
        return None
    if primitive.name == "dot_general":
        return _dot_entry(avals[0], avals[1], out, **params)
    if len(avals) != 1:
        return None
    (x,) = avals
    if primitive.name in _REDUCTIONS:
        return _reduction_entry(primitive.name, x, params["axes"], out)
    if primitive.name == "broadcast_in_dim":
        return _broadcast_entry(x, out=out, **params)
    if primitive.name == "integer_pow" and params["y"] == 2:
        return _entry(x, None, np.square, out)
    return None


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

    def _note(self, fact: tuple) -> None:
        if possible():
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

        table = _evaluations[primitive] = Table(fallback, len(operands), check_trace=False)
        primitive.run = table.function()
    table.add(operands[0], operands[1] if len(operands) == 2 else None, function, out)


_executors: dict[tuple, tuple[Table, Callable]] = {}


def _executor(
    primitive: Primitive, avals: tuple, params: dict, out: ShapedArray
) -> Callable | None:
    """Evaluation with params as a native call, where it is one loop."""
    entry = _entry_with_params(primitive, avals, params, out)
    if entry is None:
        return None
    key = (primitive, *params.items())
    found = _executors.get(key)
    if found is None:

        def fallback(*args: Any) -> Any:
            return evaluate_python(primitive, args, params)

        table = Table(fallback, len(avals), check_trace=False)
        found = _executors[key] = table, table.function()
    found[0].put(id(avals[0]), 0 if len(avals) == 1 else id(avals[1]), entry)
    _keep.append(avals)
    return found[1]


def _learn_evaluations() -> None:
    Native.learn, Native.executor = _learn_evaluation, _executor
    for primitive in list(REGISTRY.values()):
        primitive.runs.clear()
        for key, (out, function) in list(primitive.eager.items()):
            _learn_evaluation(primitive, key if type(key) is tuple else (key,), function, out)


# ------------------------------------------------------------------ loading
# A program that runs for longer gains more than it pays: 30 ms of one core, once a machine.
WAIT_SECONDS = 1.0
_state: dict[str, Any] = {}
_waiting: list[Callable[[], None]] = []


def _arguments() -> tuple | None:
    """What `ir.text` takes for this interpreter's objects, or None where they lie otherwise."""
    offsets = layout() if freestanding.supported() else None
    operators = slot(ShapedArray, "operators")
    if offsets is None or operators is None:
        return None
    return (tuple.__basicsize__, *offsets, operators, list(OPERATORS.values()))


def _find() -> dict[str, Any]:
    """Ask for the code once, when the package is imported."""
    if not _state:
        arguments = _arguments() if config.disk_cache.value else None
        _state["arguments"] = arguments
        _state["addresses"] = arguments and freestanding.load(ir.identity(*arguments))
        when_ready(_learn_evaluations)
    return _state


def possible() -> bool:
    """Whether the native code is there, or may come."""
    return _find()["arguments"] is not None


def usable() -> bool:
    """Whether the native code is there."""
    return bool(_find()["addresses"])


def when_ready(action: Callable[[], None]) -> None:
    """Do something when the native code is there: now or never, or from another thread."""
    if usable():
        action()
    elif possible():
        _waiting.append(action)


def _wanted() -> None:
    """There is a use for the code: where it is not there yet, it is compiled, by another thread and
    after a while, so that programs that do little do not compete with it for a core."""
    if "timer" not in _state and not usable():
        timer = _state["timer"] = threading.Timer(WAIT_SECONDS, _build)
        timer.daemon = True
        timer.start()
        atexit.register(_build_at_last, timer)


def _build_at_last(timer: threading.Timer) -> None:
    """At the end: compile for later processes unless it was done; not while it is being done."""
    timer.cancel()
    timer.join()
    if not usable():
        _build()


def _build() -> None:
    arguments = _state["arguments"]
    identity = ir.identity(*arguments)
    try:
        freestanding.build(identity, ir.text(*arguments))
        _state["addresses"] = freestanding.load(identity)
    except (InternalError, ImportError, OSError) as error:
        _state["arguments"] = None
        warnings.warn(f"numjet's operators stay with Python: {error}", RuntimeWarning, stacklevel=1)
    while usable() and _waiting:
        _waiting.pop(0)()


def _context() -> np.ndarray:
    if "context" not in _state:
        api = array_api()
        values = {"new_array": api[NEW_ARRAY], "set_base": api[SET_BASE]}
        for name, x in (
            ("trace", _current), ("eval", EVAL), ("checks", config.numeric_checks), ("zero", 0),
            ("array", ArrayImpl), ("ndarray", np.ndarray), ("int", int), ("slice", slice),
        ):
            values[name] = id(x)
        for name in ir.CONTEXT:
            if name not in values:
                pointer = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
                values[name] = pointer.value or 0
        _state["context"] = np.array([values[name] for name in ir.CONTEXT], np.uint64)
    return _state["context"]


def _methods() -> dict[str, _Method]:
    if "methods" not in _state:
        addresses = _state["addresses"]
        methods = {"function": _Method(b"call", addresses["function"], _FLAGS["function"], None)}
        for k, (name, kind) in enumerate(OPERATORS.items()):
            flags = _FLAGS["unary" if kind == "unary" else "binary"]
            methods[name] = _Method(name.encode(), addresses[f"operator_{k}"], flags, None)
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
        table = forms.attach(Table(method, 1 if OPERATORS[name] == "unary" else 2))
        avals.OPERATORS[list(OPERATORS).index(name)] = _address(table.words)
        setattr(ArrayImpl, name, _new_method(ArrayImpl, ctypes.addressof(_methods()[name])))

    when_ready(attach)
