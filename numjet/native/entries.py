"""Entries of the native shortcuts' tables: which inner loop of NumPy runs, and how.

For `native.operators`. An entry is an array of words, named in `tables.Entry`; None is the answer
where an operation is more than such a loop, or so large that what a call costs does not count. What
would break it: an entry whose objects die (it refers to them), and inner loops that are called with
what they were not made for (their types are read from the ufunc).
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.primitive import Primitive
from numjet.cpu.builder.records import words
from numjet.native.layout import forever
from numjet.native.tables import Entry, Read

# Above this size what a call costs beside its work does not count, and Python lets others run.
MAX_BYTES = 1 << 15
# Nor does it above this for reductions, but to long rows: NumPy's own takes 20 ns and more for each
# of many short sweeps.
MAX_REDUCED = 1 << 18
_LONG = 256
_BUFFER = 8192  # elements, as NumPy begins with
_SCALARS: dict[tuple, int] = {
    (float, "f4"): Read.FLOAT_F32,
    (float, "f8"): Read.FLOAT_F64,
    (int, "f4"): Read.INT_F32,
    (int, "f8"): Read.INT_F64,
    (int, "i4"): Read.INT_I32,
    (int, "i8"): Read.INT_I64,
}
_ENTRY = words(Entry)
keep: list[Any] = forever([])


class Owner(np.ndarray):
    """An entry's words, and the objects that they point to."""

    refs: tuple = ()


class _UfuncObject(ctypes.Structure):
    """The head of NumPy's PyUFuncObject, a public structure."""

    _fields_ = [
        ("refcount", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    ]


def address(table: np.ndarray) -> int:
    """Where the elements of an array lie."""
    return table.__array_interface__["data"][0]


def inner_loop(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> tuple[int, int] | None:
    """The inner loop of `ufunc` for operands and result of exactly these dtypes, and its data."""
    head = _UfuncObject.from_address(id(ufunc))
    if (head.nin, head.nout, head.nargs, head.ntypes) != (
        ufunc.nin,
        ufunc.nout,
        ufunc.nargs,
        ufunc.ntypes,
    ) or head.name != ufunc.__name__.encode():
        return None
    n = head.nargs
    numbers = bytes(dtype.num for dtype in dtypes)
    for k in range(head.ntypes):
        if head.types[k * n : (k + 1) * n] == numbers:
            function, data = head.functions[k], head.data[k] if head.data else None
            return (function, data or 0) if function else None
    return None


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


def _broadcast_strides(shape: tuple, size: int, rank: int) -> list[int]:
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
    return _result_words(out) | {"loop": loop[0], "data": loop[1], "left": Read.ARRAY}


def _result_words(out: ShapedArray) -> dict[str, Any]:
    dims = np.array([*out.shape, 0], np.intp)
    return {
        "refs": [dims, out, out.dtype], "aval": id(out), "dtype": id(out.dtype), "rank": out.ndim,
        "dims": address(dims),
    }  # fmt: skip


def _pack(words: dict[str, Any], walk: tuple[int, int, list[list[int]]]) -> np.ndarray:
    outer, inner, steps = walk
    if not outer:
        outer, inner = 1, 0
    for k, (step, _) in enumerate(steps):
        words[f"ostep{k}"] = step
    return _with_counts(words | {"outer": outer}, [inner], [step for _, step in steps])


def _with_counts(words: dict[str, Any], counts: list[int], steps: list[int]) -> np.ndarray:
    arrays = np.array(counts, np.intp), np.array(steps, np.intp)
    words |= {"counts": address(arrays[0]), "steps": address(arrays[1])}
    entry: Any = np.array([words.get(name, 0) for name in _ENTRY], np.int64).view(Owner)
    entry.refs = (*words["refs"], *arrays)
    return entry


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
    words |= {"right": Read.ARRAY, "out_place": 2, "outer": 1}
    steps = [0, 0, 0, *x_steps, *y_steps, n * size, size]
    return _with_counts(words, [1, m, k, n], steps)


def entry_of(left: Any, right: Any, function: Any, out: ShapedArray) -> np.ndarray | None:
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
            codes.append(Read.ARRAY)
            strides.append(_broadcast_strides(x.shape, dtype.itemsize, out.ndim))
    walk = _nest(out.shape, [*strides, _strides(out.shape, out.dtype.itemsize)])
    if None in codes or walk is None or getattr(function, "nin", 0) != len(operands):
        return None
    words = _words(function, (*[dtype] * len(operands), out.dtype), out)
    if words is None:
        return None
    words |= {"left": codes[0], "right": codes[-1], "out_place": len(operands)}
    return _pack(words, walk)


def where_entry(condition: ShapedArray, x: Any, y: Any, out: ShapedArray) -> np.ndarray | None:
    dtype = out.dtype
    if out.size * dtype.itemsize > MAX_BYTES or dtype.itemsize > 8 or dtype.isbuiltin != 1:
        return None
    codes, steps = [], []
    for operand in (condition, x, y):
        if type(operand) is not ShapedArray:
            codes.append(_SCALARS.get((operand, dtype.str[1:])))
            steps.append(0)
        elif operand.shape not in ((), out.shape):
            return None
        else:
            codes.append(Read.ARRAY)
            steps.append(operand.dtype.itemsize if operand.shape else 0)
    if None in codes:
        return None
    words = _result_words(out) | {"left": codes[1], "right": codes[2]}
    words |= {"key_x": id(x), "key_y": id(y)}
    return _with_counts(words, [out.size, dtype.itemsize], steps)


def update_entry(
    function: np.ufunc, x: ShapedArray, given: Any, out: ShapedArray
) -> np.ndarray | None:
    """A copy of x, and `function` (np.positive: the value itself) on a row of it."""
    dtype = x.dtype
    if x.nbytes > MAX_BYTES or not x.ndim or x.dtype is not out.dtype:
        return None
    row = x.shape[1:]
    count = x.size // x.shape[0] if x.shape[0] else 0
    words = _words(np.positive, (dtype, dtype), out)
    binary = function is not np.positive
    loop = words and inner_loop(function, (dtype, dtype, dtype) if binary else (dtype, dtype))
    if words is None or not loop or not count:
        return None
    size, step = dtype.itemsize, 0
    if type(given) is not ShapedArray:
        words["right"] = _SCALARS.get((given, dtype.str[1:]))
    elif given.dtype is not dtype or given.shape not in ((), row):
        return None
    else:
        words["right"], step = Read.ARRAY, size if given.shape else 0
    if words["right"] is None:
        return None
    counts = np.array([count], np.intp)
    steps = np.array([size, step, size] if binary else [step, size], np.intp)
    words["refs"] += (counts, steps, function)
    words |= {
        "outer": 1,
        "rows": x.shape[0],
        "row_bytes": count * size,
        "row_binary": binary,
        "row_loop": loop[0],
        "row_data": loop[1],
        "row_counts": address(counts),
        "row_steps": address(steps),
    }
    return _with_counts(words, [x.size], [size, size])


# Reductions of one ufunc, and what they begin with, as NumPy's own do: a number, or None for the
# first elements.
_REDUCTIONS: dict[str, tuple[np.ufunc, Any]] = {
    "reduce_sum": (np.add, 0),
    "reduce_prod": (np.multiply, 1),
    "reduce_max": (np.maximum, None),
    "reduce_min": (np.minimum, None),
    "reduce_and": (np.bitwise_and, -1),
    "reduce_or": (np.bitwise_or, 0),
    "reduce_xor": (np.bitwise_xor, 0),
}


def _reduction_entry(name: str, x: ShapedArray, axes: tuple, out: ShapedArray) -> Any:
    function, start = _REDUCTIONS[name]
    dtype = x.dtype
    if x.nbytes > MAX_REDUCED or not out.size or dtype.itemsize > 8:
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
    if x.nbytes > MAX_BYTES and walk[1] > _LONG and walk[2][0][1]:
        return None
    if walk[1] > _BUFFER and dtype.kind in "fc" and _adds_up_in_parts():
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


@functools.cache
def _adds_up_in_parts() -> bool:
    """Whether NumPy adds up a long row in parts of its buffer's size, as before 2.3: to other bits
    than one call of its inner loop."""
    row = np.sin(np.arange(20000, dtype=np.float32))
    before = np.add.reduce(row)
    size = np.setbufsize(1 << 20)
    try:
        return bool(np.add.reduce(row) != before)
    finally:
        np.setbufsize(size)


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


def entry_with_params(
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
        return entry_of(x, None, np.square, out)
    return None
