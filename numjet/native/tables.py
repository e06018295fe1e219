"""The tables that native code reads: what their words are called, and of what type each is.

`calls`, `operators` and `record` fill them, the functions in `code` read them. What would break it:
a table whose words stand in another order than here.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.records import (
    Array,
    Inline,
    Int,
    Int32,
    Pointer,
    Record,
    Records,
    lshr,
    native,
)
from numjet.native.objects import Code, List, Object, ShapedArray, Tuple

# ------------------------------------------------------------------ what all use


class Interpreter(Record):
    """What every context begins with: functions of the interpreter, the variable that holds the
    current trace, and the traces under which concrete values are computed with at once."""

    Py_IncRef: Callable[[Object], None]
    Py_DecRef: Callable[[Object], None]
    PyObject_Vectorcall: Callable[[Object, Array[Object], Int, Object], Object]
    PyContextVar_Get: Callable[[Object, Object, Array[Object]], Int32]
    PyErr_Clear: Callable[[], None]
    PyType_GenericAlloc: Callable[[Object, Int], Object]
    PyTuple_New: Callable[[Int], Object]
    PyDict_Next: Callable[[Object, Array[Int], Array[Object], Array[Object]], Int32]
    PyLong_FromLongLong: Callable[[Int], Object]
    trace: Object
    eval: Object
    linearize_trace: Object


# ------------------------------------------------------------------ prebuilt calls


class Node:
    """What a step of `CallEntry` reads or builds."""

    ARRAY, DICT, TUPLE, LIST, STATIC, FLOAT, INT, BOOL, NDARRAY, READER, OWN, REMOTE = range(12)


class CallContext(Interpreter):
    """What every call uses: functions, objects and where the flags' state stands."""

    PyDict_GetItemWithError: Callable[[Object, Object], Object]
    PyDict_New: Callable[[], Object]
    PyDict_SetItem: Callable[[Object, Object, Object], Int32]
    PyDict_Size: Callable[[Object], Int]
    PyList_New: Callable[[Int], Object]
    PyLong_AsLongLong: Callable[[Object], Int]
    PyErr_Occurred: Callable[[], Object]
    PyObject_CallObject: Callable[[Object, Object], Object]
    PyEval_SaveThread: Callable[[], Pointer]
    PyEval_RestoreThread: Callable[[Pointer], None]
    new_array: Callable[
        [Object, Object, Int32, Array[Int], Array[Int], Pointer, Int32, Object], Object
    ]
    state: Array[Int]
    axes: Object
    no_axes: Object
    array: Object
    remote: Object
    ndarray: Object
    dict: Object
    list: Object
    float: Object
    int: Object
    true: Object
    false: Object


class Step(Record):
    """A step over registers: what (`Node`), which register, and three facts by that."""

    code: Int
    register: Int
    a: Int
    b: Int
    c: Int


class Output(Record):
    """An array of the result; on a device it has a sharding (or NULL) for a dtype."""

    aval: ShapedArray
    dtype: Object
    rank: Int
    dims: Array[Int]
    maker: Object  # makes the array, where that is not NumPy
    register: Int


class RemoteCall(Record):
    """How a program of another backend is run on one device: its function takes a struct, of which
    `frame` is a pattern, and gives the address of an error. The struct has the addresses of lists
    of lists of the arguments' handles (word `arguments`) and the results' (word `results`)."""

    sized = {"frame": "words", "held": "helds"}
    execute: Callable[[Array[Pointer]], Pointer]
    words: Int
    frame: Array[Pointer]
    arguments: Int
    results: Int
    helds: Int
    held: Array[Pointer]  # handles of constants, before those of the arguments
    devices: Object
    buffer: Object  # the class of what arrays hold
    handle: Object  # makes a handle of a number
    maker: Object  # the program's name
    line: Object  # gives the user's line
    check: Object  # raises an error


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
    remote: RemoteCall  # NULL for programs of the CPU
    failed: Object  # raises what a program that failed left
    arena: Pointer


class CallTable(Record):
    """The prebuilt calls of one function."""

    sized = {"entries": "count"}
    state: Int
    count: Int
    context: CallContext
    entries: Inline[CallEntry]


# ------------------------------------------------------------------ operators

NewArray = Callable[
    [Object, Object, Int32, Array[Int], Array[Int], Pointer, Int32, Object], Object
]
# NumPy's inner loops: operands and results, counts, steps, and what the loop was registered with.
InnerLoop = Callable[[Array[Pointer], Array[Int], Array[Int], Pointer], None]
SLOTS = 64  # of an operation's table
# Python integers beyond this do not fit the default integer type.
INT_LIMIT = 2**31
MAX_RANK = 8  # of arrays that are indexed natively


class Read:
    """How an operand is read: an array, or a Python scalar made a number of the array's type."""

    ARRAY, FLOAT_F32, FLOAT_F64, INT_F32, INT_F64, INT_I32, INT_I64 = range(7)


class OperatorContext(Interpreter):
    """What every operation uses."""

    PyLong_AsLongLong: Callable[[Object], Int]
    PyErr_Occurred: Callable[[], Object]
    PySlice_Unpack: Callable[[Object, Array[Int], Array[Int], Array[Int]], Int32]
    PySlice_AdjustIndices: Callable[[Int, Array[Int], Array[Int], Int], Int]
    new_array: NewArray
    set_base: Callable[[Object, Object], Int32]
    checks: List  # the flag `numeric_checks`
    zero: Object
    array: Object
    ndarray: Object
    int: Object
    slice: Object
    at_helper: Object
    at_ref: Object


class Entry(Record):
    """An operation on operands of known avals. The inner loop is called `outer` times on operands
    and results that lie `ostep`s apart. A reduction's results are filled first, `fill` of them with
    `init` or (`fill_own`) with elements of the operand, of which the loop then leaves out the first
    `skip` bytes."""

    counts: Array[Int]
    steps: Array[Int]
    loop: InnerLoop
    data: Pointer
    aval: ShapedArray
    dtype: Object
    rank: Int
    dims: Array[Int]
    left: Int
    right: Int
    out_place: Int
    outer: Int
    ostep0: Int
    ostep1: Int
    ostep2: Int
    fill: Int
    fill_size: Int
    fill_step: Int
    fill_own: Int
    init: Int
    skip: Int
    key_x: Int
    key_y: Int
    row_loop: InnerLoop
    row_data: Pointer
    row_counts: Array[Int]
    row_steps: Array[Int]
    row_bytes: Int
    rows: Int
    row_binary: Int


class Slot(Record):
    """A place of an operation's table: the keys of the left and the right operand (an aval, the
    type of a Python scalar, or 0)."""

    left: Int
    right: Int
    entry: Entry


class Table(Record):
    """An operation's table; its slots follow (`SLOTS` of them)."""

    context: OperatorContext
    fallback: Object
    check_trace: Int
    operands: Int
    later: Records[LaterSlot]  # `LATER_SLOTS` of them, NULL where there are none yet
    slots: Inline[Int]


@native
def range_key(rows: Int) -> Int:
    """The right key of slices that leave so many rows; no address is odd."""
    return Int(rows * 64 + 1)


class Tables(Record):
    """The variable of the module that leads to the tables of all operators."""

    table: Array[Table]


# ------------------------------------------------------------------ what runs later

LATER_SLOTS = 256
WRITTEN = 8192  # values that a plan names, at most


class DeferralContext(Interpreter):
    """What writing operations down uses."""

    PyObject_GetAttr: Callable[[Object, Object], Object]
    PyObject_SetAttr: Callable[[Object, Object, Object], Int32]
    PyObject_GC_UnTrack: Callable[[Object], None]
    PySet_Contains: Callable[[Object, Object], Int32]
    PyList_New: Callable[[Int], Object]
    PyList_Append: Callable[[Object, Object], Int32]
    PyList_SetSlice: Callable[[Object, Int, Int, Object], Int32]
    PyDict_New: Callable[[], Object]
    PyDict_GetItem: Callable[[Object, Object], Object]
    PyDict_SetItem: Callable[[Object, Object, Object], Int32]
    PyErr_Occurred: Callable[[], Object]
    PyLong_AsLongLong: Callable[[Object], Int]
    PyBytes_FromStringAndSize: Callable[[Pointer, Int], Object]
    PyBytes_AsString: Callable[[Object], Array[Int]]
    PyWeakref_NewRef: Callable[[Object, Object], Object]
    PyThreadState_Get: Callable[[], Pointer]
    PyThreadState_GetID: Callable[[Pointer], Int]
    true: Object
    false: Object
    list: Object
    dict: Object
    tuple: Object
    empty: Object  # tuple
    none: Object
    ndarray: Object
    array: Object
    linear_tracer: Object
    shaped_array: Object
    var: Object
    step: Object
    rule: Object
    memo: Object
    checks: List  # the flag `numeric_checks`
    zero: Object
    process: Object
    rules_name: Object
    tape_name: Object
    deferred: Object
    place: Object
    tape: Object
    plan: Object
    local: Object
    open_name: Object
    open: Object
    starts: Object
    pool_name: Object
    float: Object
    plus_zero: Object
    state: Array[Int]
    enabled: Array[Int]
    soft: Int
    hard: Int
    results: Int
    copied: Int  # bytes of arrays that are copied at once
    code: Object  # `Tape.code`, which does so
    mismatched: Object  # raises
    defer_plan: Object
    thread: Int  # the number of the thread that wrote something down last
    opened: Object  # and what it has open, owned


class Deferral(Record):
    """The variable of the module that leads to what writing operations down uses."""

    context: DeferralContext


class WrittenStep(Record):
    """An operation of a plan: its form, the aval of its result, whether this is one of the plan's,
    and which values it reads."""

    form: Object
    aval: Object
    kept: Int
    count: Int
    place: Array[Int]


class Written(Record):
    """A plan. Its values are the operands, the constants, and the operations' results; `nbytes`
    those of the operands and constants. outs: how many results it has, 0 for that of the last
    operation alone. view: whether the result is a view of the operands: these are not copied."""

    operands: Int
    outs: Int
    view: Int
    constants: Int
    constant: Array[Object]
    nbytes: Array[Int]
    steps: Int
    step: Records[WrittenStep]


class Later(Record):
    """What an operation on operands of known kinds is when it is written down. `left` and `right`
    are NULL, or where the operand is a Python number the dict of arrays made of such. large:
    whether none of the operands needs to wait itself. Where some are linearized there is no plan,
    but the primitive and its params, under one state of the flags."""

    plan: Object
    left: Object
    right: Object
    large: Int
    primitive: Object
    params: Object
    state: Int


class LaterSlot(Record):
    """A place of an operation's table: the avals of arrays, whether they wait or not, the types of
    Python scalars, or `linear_key` of avals."""

    left: Int
    right: Int
    entry: Later


@native
def linear_key(aval: Int) -> Int:
    """The key of a linearized operand of this aval; no address is odd."""
    return Int(aval | 1)


KNOWN_SLOTS = 128


class KnownCall(Record):
    """A call of a function that is written down as a plan of its first argument alone, or where
    this is linearized is a primitive with params: under which state of the flags, the argument's
    key (its aval, or `linear_key`), which other arguments it has (`names` are the last ones'
    names), and whether the first one need not wait itself."""

    state: Int
    plan: Object
    primitive: Object
    params: Object
    large: Int
    key: Int
    arguments: Int
    other: Array[Object]
    named: Int
    name: Array[Object]


class KnownCalls(Record):
    """The calls of a function that are known: the addresses of entries, or NULL."""

    slots: Inline[Int]


@native
def known_key(key: Int, argument: Int) -> Int:
    """What the place of a call is found by, with one more argument (an address)."""
    return Int(Int(key * 31) ^ lshr(argument, 4))


# ------------------------------------------------------------------ recording

LINES = 1024  # entries in the table of lines


class RecordContext(Interpreter):
    """What recording uses."""

    PyList_New: Callable[[Int], Object]
    PyList_Append: Callable[[Object, Object], Int32]
    PyDict_GetItem: Callable[[Object, Object], Object]
    PyErr_Occurred: Callable[[], Object]
    PyLong_AsLong: Callable[[Object], Int]
    PyThreadState_Get: Callable[[], Pointer]
    PyThreadState_GetFrame: Callable[[Pointer], Object]
    PyFrame_GetBack: Callable[[Object], Object]
    PyFrame_GetCode: Callable[[Object], Code]
    PyFrame_GetLasti: Callable[[Object], Int32]
    PyObject_GC_UnTrack: Callable[[Object], None]
    PyObject_GC_IsTracked: Callable[[Object], Int32]
    none: Object
    true: Object
    false: Object
    tuple: Object
    list: Object
    no_effects: Object
    primitive: Object
    var: Object
    literal: Object
    eqn: Object
    stage_trace: Object
    stage_tracer: Object
    array_impl: Object
    shaped_array: Object
    dict: Object
    ndarray: Object
    no_axes: Object
    record: Object
    atom: Object
    out_avals: Object
    user_source: Object
    source_of: Object
    get_frame: Object
    zero: Object
    one: Object
    two: Object
    internal: Object
    lines: Records[Line]
    products: Object
    dot_general: Object
    product: Object
    operators: Array[Tuple]
    int: Object
    memo: Object
    pattern: Object
    replay_trace: Object
    jvp_tracer: Object
    partial_tracer: Object
    named: Object
    malformed: Object
    replay_jvp: Object
    replayed: Object
    transposed: Object
    transposed_as: Object


class FileContext(Interpreter):
    """What reading files uses: of the C library the functions `openat` to `read`."""

    PyBytes_FromStringAndSize: Callable[[Pointer, Int], Object]
    PyEval_SaveThread: Callable[[], Pointer]
    PyEval_RestoreThread: Callable[[Pointer], None]
    PyLong_AsLong: Callable[[Object], Int]
    openat: Callable[[Int32, Pointer, Int32], Int32]
    statx: Callable[[Int32, Pointer, Int32, Int32, Pointer], Int32]
    geteuid: Callable[[], Int32]
    close: Callable[[Int32], Int32]
    read: Callable[[Int32, Pointer, Int], Int]
    none: Object
    bytes: Object


class Files(Record):
    """The variable of the module that leads to what reading files uses."""

    context: FileContext


class FileStatus(Record):
    """`struct statx`, which is the same on all of Linux, as far as it is read. (Behind the mode are
    16 bits that mean nothing; a time is seconds, and a word with nanoseconds.)"""

    mask: Int32
    block: Int32
    attributes: Int
    links: Int32
    user: Int32
    group: Int32
    mode: Int32
    inode: Int
    size: Int
    blocks: Int
    supported: Int
    accessed: Int
    accessed_part: Int
    born: Int
    born_part: Int
    changed: Int
    changed_part: Int
    written: Int


class Line(Record):
    """A line of the user's, which a code object and an instruction lead to. The source, which keeps
    the code alive, is owned."""

    code: Object
    instruction: Int
    source: Object


class Recording(Record):
    """The variable of the module that leads to what recording uses."""

    context: RecordContext


class Row(Record):
    """The header of a row of numbers (`cpu.graph.row`); the hash table follows."""

    mask: Int
    free: Int
    count: Int
    first: Int
    cursor: Int
    end: Int
    spare0: Int
    spare1: Int


class Numbered(Record):
    """An entry of the hash table from addresses to numbers."""

    key: Int
    number: Int
