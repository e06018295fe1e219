"""Operators and functions on small concrete arrays.

`native.operators` fills the tables that are read here, with entries of `native.entries`. A call
looks its operands' avals up in the operation's table and runs the inner loop that NumPy has for
them, on memory of a new array; whatever is not in the table goes to the fallback. Methods are
handed an object alone, which may be anybody's: slots are looked at before they are used, and the
tables are found by a variable of the module. No function returns NULL with an exception set.
"""

from __future__ import annotations

from numjet.cpu.builder.records import (
    NULL,
    Array,
    Double,
    Int,
    Int8,
    Int32,
    Pointer,
    Records,
    Single,
    Static,
    lshr,
    native,
    place,
    stack,
)
from numjet.native.code.context import at_once
from numjet.native.code.known_operands import later
from numjet.native.objects import (
    DENSE,
    WRITEABLE,
    ArrayImpl,
    Float,
    NdArray,
    Object,
    ShapedArray,
    Tuple,
    is_a,
)
from numjet.native.tables import (
    INT_LIMIT,
    MAX_RANK,
    SLOTS,
    Entry,
    OperatorContext,
    Read,
    Slot,
    Table,
    Tables,
    range_key,
)

tables = Static(Tables, "tables", exported=True)


@native
def integer(c: OperatorContext, x: Object, good: Array[Int]) -> Int:
    """A Python integer; `good` says whether it is one of 64 bits."""
    found = c.PyLong_AsLongLong(x)
    good[0] = 1
    # -1 is also how an error shows, which cannot be told from it by the value.
    if found == -1 and c.PyErr_Occurred() != NULL:
        c.PyErr_Clear()
        good[0] = 0
    return found


@native
def operand(c: OperatorContext, x: Object, code: Int, buffer: Pointer) -> Pointer:
    """Where an operand's numbers lie (a scalar's in `buffer`); NULL: it is not as was expected."""
    if code == Read.ARRAY:
        value = ArrayImpl(x)._value
        if is_a(value, c.ndarray) and NdArray(value).flags & DENSE == DENSE:
            return NdArray(value).data
        return NULL
    if code == Read.FLOAT_F32:
        Array[Single](buffer)[0] = Single(Float(x).value)
        return buffer
    if code == Read.FLOAT_F64:
        Array[Double](buffer)[0] = Float(x).value
        return buffer
    good = stack(Int)
    number = integer(c, x, good)
    if good[0] == 0 or number < -INT_LIMIT or number >= INT_LIMIT:
        return NULL
    match code:
        case Read.INT_F32:
            Array[Single](buffer)[0] = Single(number)
        case Read.INT_F64:
            Array[Double](buffer)[0] = Double(number)
        case Read.INT_I32:
            Array[Int32](buffer)[0] = Int32(number)
        case _:
            Array[Int](buffer)[0] = number
    return buffer


@native
def key(c: OperatorContext, x: Object) -> Int:
    """What tables know an operand by: an array's aval, another object's type. A slot that nobody
    has filled has the key 0, which no entry has."""
    if x == NULL:
        return 0
    if x.type == c.array:
        return Int(ArrayImpl(x)._aval)
    return Int(x.type)


@native
def plain(c: OperatorContext, check_trace: Int) -> bool:
    """Whether concrete operands are computed with at once, as where nothing traces (if one is to
    ask), and no results are checked."""
    if c.checks.size == 0 or c.checks.items[0] != c.zero:
        return False
    return check_trace == 0 or at_once(c)


@native
def find(t: Table, x: Int, y: Int) -> Entry:
    """The entry for operands with these keys, or NULL."""
    slots = Records[Slot](t.slots)
    k = (lshr(x, 4) ^ lshr(x, 10) ^ lshr(y, 5) ^ lshr(y, 11)) & (SLOTS - 1)
    first = slots[k]
    if first.left == x and first.right == y:
        return first.entry
    second = slots[k ^ 1]
    if second.left == x and second.right == y:
        return second.entry
    return NULL


@native
def wrap(c: OperatorContext, value: Object, aval: ShapedArray) -> Object:
    """An Array around `value`, which is taken over; NULL when there is no memory."""
    if value != NULL:
        c.Py_IncRef(aval)  # what is allocated may run anything, which may forget it
        out = c.PyType_GenericAlloc(c.array, 0)
        if out != NULL:
            array = ArrayImpl(out)
            array._aval = aval
            array._value = value
            return out
        c.Py_DecRef(aval)
        c.Py_DecRef(value)
    c.PyErr_Clear()
    return NULL


@native
def empty(c: OperatorContext, e: Entry) -> NdArray:
    """A new NumPy array for an entry's results; NULL, and no exception, without memory."""
    c.Py_IncRef(e.dtype)
    made = c.new_array(c.ndarray, e.dtype, e.rank, e.dims, NULL, NULL, 0, NULL)
    if made == NULL:
        c.PyErr_Clear()
    return NdArray(made)


@native
def move(size: Int, source: Pointer, to: Pointer) -> None:
    """One element of 1, 2, 4 or 8 bytes."""
    if size == 4:
        Array[Int32](to)[0] = Array[Int32](source)[0]
    elif size == 8:
        Array[Int](to)[0] = Array[Int](source)[0]
    elif size == 1:
        Array[Int8](to)[0] = Array[Int8](source)[0]
    else:
        Array[Int8](to)[0] = Array[Int8](source)[0]
        Array[Int8](to)[1] = Array[Int8](source)[1]


@native
def fill(e: Entry, out: Pointer, x: Pointer) -> None:
    """The results of a reduction before it."""
    source = Pointer(place(e, "init")) if e.fill_own == 0 else x
    for k in range(e.fill):
        move(e.fill_size, source + k * e.fill_step, out + k * e.fill_size)


@native
def sweep(e: Entry, pointers: Array[Pointer]) -> None:
    """NumPy's inner loop on the operands and results at `pointers`, `outer` times."""
    left = e.outer
    while True:
        e.loop(pointers, e.counts, e.steps, e.data)
        left -= 1
        if left <= 0:
            return
        pointers[0] = pointers[0] + e.ostep0
        pointers[1] = pointers[1] + e.ostep1
        pointers[2] = pointers[2] + e.ostep2


@native
def failed(c: OperatorContext, value: NdArray) -> bool:
    """Whether NumPy's inner loop has set an exception, which is dropped with the results: what
    Python does in its place raises it again."""
    if c.PyErr_Occurred() == NULL:
        return False
    c.PyErr_Clear()
    c.Py_DecRef(value)
    return True


@native
def apply(t: Table, x: Object, y: Object) -> Object:
    """The operation on x (and y, unless NULL); NULL where the fallback is to be taken."""
    c = t.context
    ky = 0
    if y != NULL:
        ky = key(c, y)
    e = find(t, key(c, x), ky)
    if not plain(c, t.check_trace):
        return NULL
    if e == NULL:
        return later(t, x, y)
    buffers = stack(Int, 2)
    pointers = stack(Pointer, 3)
    data = operand(c, x, e.left, buffers)
    if data == NULL:
        return NULL
    pointers[0] = data
    if y != NULL:
        second = operand(c, y, e.right, buffers[1:])
        if second == NULL:
            return NULL
        pointers[1] = second
    value = empty(c, e)
    if value == NULL:
        return NULL
    out = value.data
    pointers[e.out_place] = out
    if e.fill != 0:
        fill(e, out, data)
        pointers[0] = out
        pointers[1] = data + e.skip
    sweep(e, pointers)
    if failed(c, value):
        return NULL
    return wrap(c, value, e.aval)


@native
def otherwise(t: Table, args: Array[Object], n: Int, names: Object) -> Object:
    """What Python does with a call."""
    return t.context.PyObject_Vectorcall(t.fallback, args, n, names)


@native
def table_of(self: Tuple) -> Table:
    """The table of a function, whose `self` is a tuple that begins with the table's array."""
    return Table(NdArray(self.items[0]).data)


@native(exported=True)
def function(self: Tuple, args: Array[Object], n: Int, names: Object) -> Object:
    """An operation as a function: METH_FASTCALL | METH_KEYWORDS."""
    t = table_of(self)
    if n == t.operands and names == NULL:
        second: Object = NULL
        if n == 2:
            second = args[1]
        out = apply(t, args[0], second)
        if out != NULL:
            return out
    return otherwise(t, args, n, names)


@native
def view(
    c: OperatorContext, of: NdArray, rank: Int, dims: Array[Int], strides: Array[Int], offset: Int,
    aval: ShapedArray,
) -> Object:  # fmt: skip
    """An Array of a part of a NumPy array; NULL, and no exception, without memory."""
    c.Py_IncRef(of.dtype)
    made = c.new_array(
        c.ndarray, of.dtype, rank, dims, strides, of.data + offset, of.flags & WRITEABLE, NULL
    )
    if made == NULL:
        c.PyErr_Clear()
        return NULL
    c.Py_IncRef(of)
    if c.set_base(made, of) != 0:
        c.PyErr_Clear()
        c.Py_DecRef(made)
        return NULL
    return wrap(c, made, aval)


@native
def row_of(c: OperatorContext, index: Object, rows: Int) -> Int:
    """The row that an integer names, or -1."""
    good = stack(Int)
    k = integer(c, index, good)
    if good[0] == 0:
        return -1
    if k < 0:
        k = k + rows
    return k if k >= 0 and k < rows else -1


@native
def rows(t: Table, self: Object, index: Object) -> Object:
    """x[index] for an integer or a slice: a view of x's array. The table's right keys are the type
    `int`, and for slices `range_key` of the number of rows they leave."""
    c = t.context
    if self.type != c.array:
        return NULL
    x = ArrayImpl(self)
    found = x._value
    if not plain(c, 1) or not is_a(found, c.ndarray):
        return NULL
    value = NdArray(found)
    rank = value.rank
    if rank < 1 or rank > MAX_RANK:
        return NULL
    n = value.dims[0]
    stride = value.strides[0]
    aval = Int(x._aval)
    if index.type == c.int:
        row = find(t, aval, Int(c.int))
        k = -1
        if row != NULL:
            k = row_of(c, index, n)
        if k < 0:
            return NULL
        return view(c, value, rank - 1, value.dims[1:], value.strides[1:], k * stride, row.aval)
    if index.type != c.slice:
        return NULL
    bounds = stack(Int, 3)
    if c.PySlice_Unpack(index, bounds, bounds[1:], bounds[2:]) != 0:
        c.PyErr_Clear()
        return NULL
    if x._value != found:
        return NULL  # an index's __index__ may have deleted the array
    length = c.PySlice_AdjustIndices(n, bounds, bounds[1:], bounds[2])
    e = find(t, aval, range_key(length))
    if e == NULL:
        return NULL
    dims = stack(Int, MAX_RANK)
    strides = stack(Int, MAX_RANK)
    for k in range(rank):
        dims[k] = value.dims[k]
        strides[k] = value.strides[k]
    dims[0] = length
    strides[0] = stride * bounds[2]
    offset = bounds[0] * stride if length > 0 else 0
    return view(c, value, rank, dims, strides, offset, e.aval)


def operator(number: int, kind: str) -> object:
    """Operator method `number` (METH_O, or METH_NOARGS with `other` NULL)."""

    @native(name=f"operator_{number}", exported=True)
    def method(self: Object, other: Object) -> Object:
        t = tables.table[number]
        out: Object = NULL
        if kind == "index":
            out = rows(t, self, other)
        elif kind == "reflected":
            out = apply(t, other, self)
        else:
            out = apply(t, self, other)
        if out != NULL:
            return out
        args = stack(Object, 2)
        args[0] = self
        args[1] = other
        n = 1 if other == NULL else 2
        return otherwise(t, args, n, NULL)

    return method
