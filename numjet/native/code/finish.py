"""Tapes that end natively: what tells their rows from others, and programs that were found before.

`api.eager.deferral` asks `run_found` first, with the table of functions that are such programs.
What would break it: a key that does not tell two lists of rows apart, or results in another order
than that of the codes of those that somebody holds.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, native, stack
from numjet.native.code.deferral import deferral
from numjet.native.objects import ArrayImpl, DeferredArray, Form, List, Object, Tuple, is_a
from numjet.native.tables import DeferralContext


@native
def helds_of(row: Tuple) -> Int:
    """How many results a row has that somebody may hold."""
    held = row.items[1]
    return Tuple(held).size if held.type == row.type else 1


@native
def holder(c: DeferralContext, row: Tuple, r: Int) -> Object:
    """Who holds a row's result `r`: a new reference to an array or None; NULL with an exception."""
    held = row.items[1]
    if held.type == row.type:
        held = Tuple(held).items[r]
    return c.PyObject_Vectorcall(held, NULL, 0, NULL)


@native
def add_holders(c: DeferralContext, row: Tuple, k: Int, holders: Object) -> bool:
    """Add the results of row `k` that somebody holds, by their codes; False with an exception."""
    for r in range(helds_of(row)):
        x = holder(c, row, r)
        if x == NULL:
            return False
        failed = False
        if x != c.none:
            code = c.PyLong_FromLongLong(Int(k << c.results | r))
            failed = code == NULL or c.PyDict_SetItem(holders, code, x) != 0
            c.Py_DecRef(code)
        c.Py_DecRef(x)
        if failed:
            return False
    return True


@native
def words_of(c: DeferralContext, rows: List, flags: Int, first: Int, second: Int) -> Object:
    """Forms' numbers and operands' codes of rows, as the bytes of a row of words; NULL, and perhaps
    an exception, where that cannot be. flags: whether two more words and room for one for each
    result follow."""
    count = 0
    if flags != 0:
        count = 2
    for k in range(rows.size):
        if not is_a(rows.items[k], c.tuple):
            return NULL
        row = Tuple(rows.items[k])
        if row.size < 2:
            return NULL
        count = count + row.size
        if flags != 0:
            count = count + helds_of(row)
    key = c.PyBytes_FromStringAndSize(NULL, count * 8)
    if key == NULL:
        return NULL
    words = c.PyBytes_AsString(key)
    at = 0
    for k in range(rows.size):
        row = Tuple(rows.items[k])
        words[at] = c.PyLong_AsLongLong(Form(row.items[0]).number)
        words[at + 1] = row.size - 2
        for i in range(2, row.size):
            words[at + i] = c.PyLong_AsLongLong(row.items[i])
        at = at + row.size
    if flags != 0:
        words[at] = first
        words[at + 1] = second
    return key


@native(exported=True)
def survey(self: Object, given: Array[Object], n: Int) -> Object:
    """`native.deferral.survey(rows)` of a list that nobody changes (METH_FASTCALL); None where
    Python sees to it."""
    c = deferral.context
    made: Object = NULL
    if n == 1 and given[0].type == c.list:
        rows = List(given[0])
        key = words_of(c, rows, 0, 0, 0)
        found: Object = NULL
        if key != NULL:
            found = c.PyDict_New()
        good = found != NULL
        if good:
            for k in range(rows.size):
                if good:
                    good = add_holders(c, Tuple(rows.items[k]), k, found)
        if good:
            made = c.PyTuple_New(2)
        if made != NULL:
            Tuple(made).items[0] = key
            Tuple(made).items[1] = found
            return made
        c.Py_DecRef(found)
        c.Py_DecRef(key)
        c.PyErr_Clear()
    c.Py_IncRef(c.none)
    return c.none


@native
def held_results(c: DeferralContext, rows: List, flags: Array[Int], held: Object) -> bool:
    """Append the results that somebody holds to a list, and set their flags; False with an
    exception."""
    at = 0
    for k in range(rows.size):
        row = Tuple(rows.items[k])
        for r in range(helds_of(row)):
            x = holder(c, row, r)
            if x == NULL:
                return False
            flags[at] = Int(x != c.none)
            failed = x != c.none and c.PyList_Append(held, x) != 0
            c.Py_DecRef(x)
            if failed:
                return False
            at = at + 1
    return True


@native
def flags_of(rows: List, words: Array[Int]) -> Array[Int]:
    """Where the flags of results begin in the words of `words_of`."""
    at = 2
    for k in range(rows.size):
        at = at + Tuple(rows.items[k]).size
    return words[at:]


@native
def arrive(c: DeferralContext, x: Object, computed: Object) -> bool:
    """Give an array, if it waits, the value of one that was computed, and its type. False: this has
    no value."""
    if computed.type != c.array:
        return False
    value = ArrayImpl(computed)._value
    if value == NULL:
        return False
    if x.type != c.deferred:  # it has one from elsewhere
        return True
    waiting = DeferredArray(x)
    place = waiting._pending
    c.Py_IncRef(c.none)
    waiting._pending = c.none
    c.Py_IncRef(value)
    c.Py_IncRef(c.array)
    x.type = c.array
    ArrayImpl(x)._value = value
    c.Py_DecRef(c.deferred)
    c.Py_DecRef(place)
    return True


@native
def run_entry(c: DeferralContext, entry: Object, inputs: List, held: List) -> bool:
    """Run a program, (its function, ...), and give those results that are held their values; False
    with an exception."""
    outs = c.PyObject_Vectorcall(Tuple(entry).items[0], inputs.items, inputs.size, NULL)
    if outs == NULL:
        return False
    good = is_a(outs, c.tuple) and Tuple(outs).size == held.size
    if good:
        for k in range(held.size):
            if good:
                good = arrive(c, held.items[k], Tuple(outs).items[k])
    if not good:
        args = stack(Object, 2)
        args[0] = outs
        args[1] = held
        c.Py_DecRef(c.PyObject_Vectorcall(c.mismatched, args, 2, NULL))
    c.Py_DecRef(outs)
    return good


@native(exported=True)
def run_found(self: Object, given: Array[Object], n: Int) -> Object:
    """`native.deferral.run_found(rows, inputs, table)` of lists that nobody changes
    (METH_FASTCALL): the table's entry after its program has run; else the key that it would
    have; None where Python sees to it."""
    c = deferral.context
    key: Object = NULL
    held: Object = NULL
    if n == 3 and given[0].type == c.list and given[1].type == c.list and c.state[0] >= 0:
        rows = List(given[0])
        inputs = List(given[1])
        key = words_of(c, rows, 1, c.state[0], inputs.size)
        held = c.PyList_New(0)
    if key == NULL or held == NULL:
        c.PyErr_Clear()
        c.Py_DecRef(held)
        c.Py_DecRef(key)
        c.Py_IncRef(c.none)
        return c.none
    rows = List(given[0])
    failed = not held_results(c, rows, flags_of(rows, c.PyBytes_AsString(key)), held)
    if not failed:
        entry = c.PyDict_GetItem(given[2], key)
        if is_a(entry, c.tuple) and List(held).size > 0:
            c.Py_IncRef(entry)
            failed = not run_entry(c, entry, List(given[1]), List(held))
            c.Py_DecRef(key)
            key = entry
    c.Py_DecRef(held)
    if failed:
        c.Py_DecRef(key)
        return NULL
    return key
