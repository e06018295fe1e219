"""`where`, `x.at[i].set(v)` and such methods on small concrete arrays.

Parts of the module of `code.operators`. What is not in a table, or not as the entry wants it, goes
to the fallback.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, Int8, Pointer, native, stack
from numjet.native.code.operators import (
    empty,
    failed,
    find,
    key,
    move,
    operand,
    otherwise,
    plain,
    row_of,
    sweep,
    table_of,
    tables,
    wrap,
)
from numjet.native.objects import AtHelper, AtRef, Object, Tuple, is_a
from numjet.native.tables import Entry, OperatorContext, Read, Table


@native
def choose(e: Entry, out: Pointer, condition: Pointer, x: Pointer, y: Pointer) -> None:
    """Elements of x where the condition holds, else of y. The entry's counts are elements and their
    bytes, its steps those of the condition, x and y."""
    size = e.counts[1]
    for k in range(e.counts[0]):
        flag = Array[Int8](condition + k * e.steps[0])[0]
        source = x + k * e.steps[1] if flag != 0 else y + k * e.steps[2]
        move(size, source, out + k * size)


@native
def where(t: Table, condition: Object, x: Object, y: Object) -> Object:
    """where(condition, x, y), or NULL. An entry is found under the condition's key and a mix of the
    others', and says which these are."""
    c = t.context
    kx = key(c, x)
    ky = key(c, y)
    e = find(t, key(c, condition), Int(kx + Int(3 * ky)))
    if e == NULL or e.key_x != kx or e.key_y != ky or not plain(c, 1):
        return NULL
    buffers = stack(Int, 2)
    flags = operand(c, condition, Read.ARRAY, NULL)
    if flags == NULL:
        return NULL
    left = operand(c, x, e.left, buffers)
    if left == NULL:
        return NULL
    right = operand(c, y, e.right, buffers[1:])
    if right == NULL:
        return NULL
    value = empty(c, e)
    if value == NULL:
        return NULL
    choose(e, value.data, flags, left, right)
    return wrap(c, value, e.aval)


@native(exported=True)
def where_function(self: Tuple, args: Array[Object], n: Int, names: Object) -> Object:
    """`where` as a function: METH_FASTCALL | METH_KEYWORDS."""
    t = table_of(self)
    if n == 3 and names == NULL:
        out = where(t, args[0], args[1], args[2])
        if out != NULL:
            return out
    return otherwise(t, args, n, names)


@native(exported=True)
def at_get(x: Object, c: OperatorContext) -> Object:
    """`x.at`: a getter."""
    made = c.PyType_GenericAlloc(c.at_helper, 0)
    if made != NULL:
        c.Py_IncRef(x)
        helper = AtHelper(made)
        helper.array = x
    return made


def at_index(first_update: int) -> object:
    """`x.at[index]`; first_update: the number of an update's table."""

    @native(name="at_index", exported=True)
    def method(self: AtHelper, index: Object) -> Object:
        c = tables.table[first_update].context
        made = c.PyType_GenericAlloc(c.at_ref, 0)
        if made != NULL:
            c.Py_IncRef(self.array)
            c.Py_IncRef(index)
            ref = AtRef(made)
            ref.array = self.array
            ref.index = index
        return made

    return method


@native
def update(t: Table, x: Object, index: Object, given: Object) -> Object:
    """A copy of x by the entry's loop, and then the update's own on the row that an integer names;
    or NULL."""
    c = t.context
    e = find(t, key(c, x), key(c, given))
    if e == NULL or not is_a(index, c.int) or not plain(c, 1):
        return NULL
    row = row_of(c, index, e.rows)
    if row < 0:
        return NULL
    buffer = stack(Int)
    data = operand(c, x, Read.ARRAY, NULL)
    if data == NULL:
        return NULL
    new = operand(c, given, e.right, buffer)
    if new == NULL:
        return NULL
    value = empty(c, e)
    if value == NULL:
        return NULL
    pointers = stack(Pointer, 3)
    pointers[0] = data
    pointers[1] = value.data
    sweep(e, pointers)
    to = value.data + row * e.row_bytes
    if e.row_binary != 0:
        pointers[0] = to
        pointers[1] = new
        pointers[2] = to
    else:
        pointers[0] = new
        pointers[1] = to
    e.row_loop(pointers, e.row_counts, e.row_steps, e.row_data)
    if failed(c, value):
        return NULL
    return wrap(c, value, e.aval)


MAX_ARGUMENTS = 8  # of an update with names or too many


def update_method(number: int) -> object:
    """An update of x.at[i]: METH_FASTCALL | METH_KEYWORDS."""

    @native(name=f"update_{number}", exported=True)
    def method(self: AtRef, args: Array[Object], n: Int, names: Tuple) -> Object:
        t = tables.table[number]
        if n == 1 and names == NULL:
            out = update(t, self.array, self.index, args[0])
            if out != NULL:
                return out
        total = n
        if names != NULL:
            total = n + names.size
        given = stack(Object, MAX_ARGUMENTS + 1)
        given[0] = self
        # Of too many arguments the method is given too few, and raises as well.
        if total > MAX_ARGUMENTS:
            return otherwise(t, given, 1, NULL)
        for k in range(total):
            given[k + 1] = args[k]
        return otherwise(t, given, n + 1, names)

    return method
