"""The tables that native code reads: what their words are called, and of what type each is.

`calls`, `operators` and `record` fill them, the functions in `code` read them. What
would break it: a table whose words stand in another order than here.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import Array, Inline, Int, Int32, Pointer, Record, Records
from numjet.native.objects import Object, ShapedArray

# ------------------------------------------------------------------ prebuilt calls


class Node:
    """What a step of `CallEntry` reads or builds."""

    ARRAY, DICT, TUPLE, LIST, STATIC, FLOAT, INT, BOOL, NDARRAY, READER, OWN = range(11)


class CallContext(Record):
    """What every call uses: functions, objects and where the flags' state stands."""

    Py_IncRef: Callable[[Object], None]
    Py_DecRef: Callable[[Object], None]
    PyObject_Vectorcall: Callable[[Object, Array[Object], Int, Object], Object]
    PyContextVar_Get: Callable[[Object, Object, Array[Object]], Int32]
    PyDict_GetItemWithError: Callable[[Object, Object], Object]
    PyDict_New: Callable[[], Object]
    PyDict_SetItem: Callable[[Object, Object, Object], Int32]
    PyDict_Size: Callable[[Object], Int]
    PyTuple_New: Callable[[Int], Object]
    PyList_New: Callable[[Int], Object]
    PyLong_AsLongLong: Callable[[Object], Int]
    PyErr_Occurred: Callable[[], Object]
    PyErr_Clear: Callable[[], None]
    PyErr_SetString: Callable[[Object, Pointer], None]
    PyObject_CallObject: Callable[[Object, Object], Object]
    PyType_GenericAlloc: Callable[[Object, Int], Object]
    PyEval_SaveThread: Callable[[], Pointer]
    PyEval_RestoreThread: Callable[[Pointer], None]
    new_array: Callable[
        [Object, Object, Int32, Array[Int], Array[Int], Pointer, Int32, Object], Object
    ]
    state: Array[Int]
    trace: Object
    eval: Object
    axes: Object
    no_axes: Object
    array: Object
    ndarray: Object
    dict: Object
    list: Object
    float: Object
    int: Object
    true: Object
    false: Object
    error: Object
    message: Pointer


class Step(Record):
    """A step over registers: what (`Node`), which register, and three facts by that."""

    code: Int
    register: Int
    a: Int
    b: Int
    c: Int


class Output(Record):
    """An array of the result."""

    aval: ShapedArray
    dtype: Object
    rank: Int
    dims: Array[Int]
    maker: Object  # makes the array, where that is not NumPy
    register: Int


class CallEntry(Record):
    """A prebuilt call of one signature."""

    sized = {"kwnames": "nkw", "preset": "presets", "step": "steps", "output": "outputs",
             "build": "builds"}  # fmt: skip
    nargs: Int
    nkw: Int
    kwnames: Array[Object]
    regs: Int
    presets: Int
    preset: Array[Object]
    steps: Int
    step: Records[Step]
    inputs: Int
    owned: Int
    outputs: Int
    output: Records[Output]
    oregs: Int
    builds: Int
    build: Records[Step]
    main: Callable[[Array[Pointer], Array[Pointer], Pointer, Pointer], Int32]
    consts: Pointer
    needs_arena: Int
    unlock: Int
    builder: Object
    arena: Pointer


class CallTable(Record):
    """The prebuilt calls of one function."""

    sized = {"entries": "count"}
    state: Int
    count: Int
    context: CallContext
    entries: Inline[CallEntry]
