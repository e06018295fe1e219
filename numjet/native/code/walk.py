"""The walk over a program's equations (`cpu.graph.forms`): a row of numbers.

A number is a byte, or ESCAPE and four bytes where it does not fit. `describe` gets an array of
bytes: a header (`cpu.graph.row`), a hash table from addresses to numbers (linear probing), and room
for the row. Variables are numbered as they are bound. What a primitive, params, a literal and an
aval are called is asked of Python once an object; that may change the lists that are walked over.
The answer is True; None means that Python has to do it: where operands do not stand in lists,
something is neither variable nor literal, a variable is not bound, or there is too little room.
"""

from __future__ import annotations

from numjet.cpu.builder.records import (
    NULL,
    Array,
    Int,
    Int8,
    Pointer,
    Records,
    below,
    layout_of,
    lshr,
    native,
)
from numjet.cpu.graph.row import ESCAPE
from numjet.native.code.record import call_one, recording
from numjet.native.objects import (
    DENSE,
    WRITEABLE,
    Dict,
    Eqn,
    List,
    Literal,
    NdArray,
    Object,
    Var,
    is_a,
)
from numjet.native.tables import Numbered, RecordContext, Row

# In place of a number. FAILED: an exception is set; LIMIT: Python has to do it.
FAILED, LIMIT = -(1 << 41), -(1 << 40)
_HEAD = layout_of(Row).size
_ENTRY = layout_of(Numbered).size
_MIX = -7046029254386353131


@native
def entry_of(h: Row, key: Int) -> Numbered:
    """The entry of an address, or a free one. (The table is never full.)"""
    entries = Records[Numbered](h + _HEAD)
    k = lshr(Int(key * _MIX), 32) & h.mask
    while entries[k].key != key and entries[k].key != 0:
        k = (k + 1) & h.mask
    return entries[k]


@native
def number_of(c: RecordContext, h: Row, ask: Object, x: Object, given: Object) -> Int:
    """The number of an object, which `ask(given)` tells once."""
    entry = entry_of(h, Int(x))
    if entry.key == Int(x):
        return entry.number
    if h.free <= 0:
        return LIMIT
    h.free = h.free - 1
    answer = call_one(c, ask, given)
    if answer == NULL:
        return FAILED
    number = c.PyLong_AsLong(answer)
    c.Py_DecRef(answer)
    # -1 is also how an error shows.
    if number == -1 and c.PyErr_Occurred() != NULL:
        return FAILED
    entry.key = Int(x)
    entry.number = number
    return number


@native
def put(h: Row, x: Int) -> Int:
    """Add a number to the row. Returns it, or why there is none."""
    if x <= LIMIT:
        return x
    if h.cursor + 5 > h.end:
        return LIMIT
    at = Pointer(h) + h.cursor
    if x >= -127 and x < 128:
        Array[Int8](at)[0] = Int8(x)
        h.cursor = h.cursor + 1
    else:
        Array[Int8](at)[0] = ESCAPE
        for k in range(4):
            Array[Int8](at)[k + 1] = Int8(x >> 8 * k)
        h.cursor = h.cursor + 5
    return x


@native
def bind(h: Row, var: Object) -> Int:
    """Number a variable. Returns the number."""
    if h.free <= 0:
        return LIMIT
    h.free = h.free - 1
    entry = entry_of(h, Int(var))
    number = h.count
    entry.key = Int(var)
    entry.number = number
    h.count = number + 1
    return number


@native
def operand(c: RecordContext, h: Row, x: Object, count: Int, ask: Object) -> Int:
    """A word for an operand: what it is numbered, or how many numbers further back."""
    if is_a(x, c.var):
        entry = entry_of(h, Int(x))
        if entry.key != Int(x):
            return LIMIT
        number = entry.number
        return number if number < h.first else number - count
    if is_a(x, c.literal):
        value = Literal(x).value
        if value != NULL:
            return number_of(c, h, ask, value, x)
    return LIMIT


@native
def result(c: RecordContext, h: Row, x: Object, ask: Object) -> Int:
    """A word for a result, which is numbered here: its aval."""
    if not is_a(x, c.var) or bind(h, x) <= LIMIT:
        return LIMIT
    aval = Var(x).aval
    if aval == NULL:
        aval = c.none
    return number_of(c, h, ask, aval, aval)


@native
def operands(c: RecordContext, h: Row, atoms: Object, ask: Object) -> Int:
    """How many operands a list holds, and a word for each. Above LIMIT: it went well."""
    if not is_a(atoms, c.list):
        return LIMIT
    c.Py_IncRef(atoms)  # what is asked of Python may take it out of the equation
    listed = List(atoms)
    size = listed.size
    count = h.count
    status = put(h, size)
    for k in range(size):
        if status <= LIMIT:
            break
        word = LIMIT
        if k < listed.size:
            word = operand(c, h, listed.items[k], count, ask)
        status = put(h, word)
    c.Py_DecRef(atoms)
    return status


@native
def results(c: RecordContext, h: Row, atoms: Object, ask: Object) -> Int:
    """How many results a list holds, and a word for each. Above LIMIT: it went well."""
    if not is_a(atoms, c.list):
        return LIMIT
    c.Py_IncRef(atoms)
    listed = List(atoms)
    size = listed.size
    status = put(h, size)
    for k in range(size):
        if status <= LIMIT:
            break
        word = LIMIT
        if k < listed.size:
            word = result(c, h, listed.items[k], ask)
        status = put(h, word)
    c.Py_DecRef(atoms)
    return status


@native
def sound(c: RecordContext, words: Object) -> bool:
    """Whether the header of an array of words says what is true of it."""
    if not is_a(words, c.ndarray):
        return False
    array = NdArray(words)
    flags = DENSE | WRITEABLE
    if array.rank != 1 or array.flags & flags != flags or array.dims[0] < _HEAD:
        return False
    size = array.dims[0]  # of words of one byte, the fewest that there may be
    h = Row(array.data)
    entries = h.mask + 1
    if h.mask & entries != 0 or not below(h.mask, (1 << 32) - 1) or not below(h.free, entries):
        return False  # the table is never full
    first = entries * _ENTRY + _HEAD
    return not below(h.cursor, first) and not below(h.end, h.cursor) and not below(size, h.end)


@native
def equation(c: RecordContext, h: Row, x: Object, given: Array[Object]) -> Int:
    """The numbers of an equation. Above LIMIT: it went well."""
    eqn = Eqn(x)
    primitive = eqn.primitive
    if primitive == NULL or not is_a(eqn.params, c.dict):
        return LIMIT
    status = put(h, number_of(c, h, given[4], primitive, primitive))
    if status <= LIMIT:
        return status
    kind = -1
    params = eqn.params
    if not is_a(params, c.dict):  # it was asked for the primitive meanwhile
        return LIMIT
    if Dict(params).used != 0:
        kind = number_of(c, h, given[5], params, x)
    status = put(h, kind)
    if status <= LIMIT:
        return status
    status = operands(c, h, eqn.invars, given[6])
    if status <= LIMIT:
        return status
    return results(c, h, eqn.outvars, given[7])


@native
def walk(c: RecordContext, h: Row, given: Array[Object]) -> Int:
    """The whole row. Above LIMIT: it went well."""
    args = List(given[0])
    for k in range(args.size):
        if bind(h, args.items[k]) <= LIMIT:
            return LIMIT
    eqns = List(given[1])
    k = 0
    while k < eqns.size:
        x = eqns.items[k]
        if not is_a(x, c.eqn):
            return LIMIT
        c.Py_IncRef(x)  # what is asked of Python may take it out of the list
        status = equation(c, h, x, given)
        c.Py_DecRef(x)
        if status <= LIMIT:
            return status
        k += 1
    return operands(c, h, given[2], given[6])


@native(exported=True)
def describe(self: Object, given: Array[Object], n: Int) -> Object:
    """METH_FASTCALL: (operands, equations, results, the words, ask primitive, ask params of an
    equation, ask literal, ask aval); the first three are lists, the fourth an array of bytes."""
    c = recording.context
    answer = c.none
    if n == 8 and is_a(given[0], c.list) and is_a(given[1], c.list) and is_a(given[2], c.list):
        if sound(c, given[3]):
            status = walk(c, Row(NdArray(given[3]).data), given)
            if status == FAILED:
                return NULL
            if status > LIMIT:
                answer = c.true
    c.Py_IncRef(answer)
    return answer
