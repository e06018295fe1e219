"""Operations written down natively: the next rows of the thread's open tape.

`write` does what `api.eager.deferral.defer_plan` does where all is as it mostly is: the tape is
open, has a row, and goes on, and the operands are on it or are memory that nobody writes to.
Everything else is Python's (NULL, and no exception set). What is allocated may run the garbage
collector, and that anything: rows are appended in one go when all is made, and only if the tape is
as it was before.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, Static, native, stack
from numjet.native.code.context import both_made, taken
from numjet.native.code.record import line_of, recording
from numjet.native.objects import (
    DENSE,
    OWNS_DATA,
    ArrayImpl,
    DeferredArray,
    Form,
    List,
    NdArray,
    Object,
    Open,
    Place,
    Plan,
    Tape,
    Tuple,
    is_a,
)
from numjet.native.tables import Deferral, DeferralContext, Written, WrittenStep

deferral = Static(Deferral, "deferral", exported=True)


@native
def is_fixed(c: DeferralContext, value: NdArray) -> bool:
    """Whether nobody can write to the memory of an Array's value, of which the caller holds a
    reference beside the Array's."""
    if value.flags & DENSE != DENSE:
        return False
    base = value.base
    alone = value.refcount == 2
    if base == NULL:
        return value.flags & OWNS_DATA != 0 and alone
    while base.type == c.ndarray:
        of = NdArray(base)
        if of.refcount != 1:
            alone = False
        base = of.base
        if base == NULL:  # a view of what nobody else refers to
            return of.flags & OWNS_DATA != 0 and alone
    pooled = c.PyObject_GetAttr(base, c.pool_name)
    if pooled == NULL:
        c.PyErr_Clear()
        return False
    c.Py_DecRef(pooled)
    return pooled == c.true


@native
def new_input(
    c: DeferralContext, t: Tape, value: Object, aval: Object, address: Object, nbytes: Int
) -> Object:
    """The code of an array that becomes an input of the tape; NULL without memory."""
    inputs = t.inputs
    avals = t.avals
    places = t.places
    if not is_a(inputs, c.list) or not is_a(avals, c.list) or not is_a(places, c.dict):
        return NULL
    if aval == NULL:
        return NULL
    count = List(inputs).size
    code = c.PyLong_FromLongLong(-1 - count)
    total = c.PyLong_FromLongLong(Int(c.PyLong_AsLongLong(t.bytes) + nbytes))
    if code != NULL and total != NULL and c.PyList_Append(avals, aval) == 0:
        if c.PyList_Append(inputs, value) == 0:
            if c.PyDict_SetItem(places, address, code) == 0:
                old = t.bytes
                t.bytes = total
                c.Py_DecRef(old)
                return code
            c.PyList_SetSlice(inputs, count, count + 1, NULL)
        c.PyList_SetSlice(avals, count, count + 1, NULL)
    c.PyErr_Clear()
    c.Py_DecRef(total)
    c.Py_DecRef(code)
    return NULL


@native
def copied(c: DeferralContext, tape: Object, x: Object) -> Object:
    """The code of a small array whose memory may change: of a copy of it; NULL where there is
    none."""
    operands = stack(Object, 2)
    operands[0] = tape
    operands[1] = x
    code = c.PyObject_Vectorcall(c.code, operands, 2, NULL)
    if code == NULL:
        c.PyErr_Clear()
    elif code == c.none:
        c.Py_DecRef(code)
        code = NULL
    return code


@native
def code_of(c: DeferralContext, w: Written, tape: Object, x: Object, nbytes: Int) -> Object:
    """The code of an operand on the tape, owned; NULL where that is not so simple."""
    if x.type == c.deferred:
        at = DeferredArray(x)._pending
        if not is_a(at, c.place) or Place(at).record != tape:
            return NULL
        found = Place(at).code
        c.Py_IncRef(found)
        return found
    if x.type != c.array:
        return NULL
    value = ArrayImpl(x)._value
    places = Tape(tape).places
    if not is_a(value, c.ndarray) or not is_a(places, c.dict):
        return NULL
    address = c.PyLong_FromLongLong(Int(value))
    if address == NULL:
        c.PyErr_Clear()
        return NULL
    code = c.PyDict_GetItem(places, address)
    if code != NULL:
        c.Py_IncRef(code)
    else:
        c.Py_IncRef(value)
        if is_fixed(c, NdArray(value)):
            code = new_input(c, Tape(tape), value, ArrayImpl(x)._aval, address, nbytes)
        elif nbytes <= c.copied and w.view == 0:
            code = copied(c, tape, x)
        c.Py_DecRef(value)
    c.Py_DecRef(address)
    return code


@native
def codes_of(
    c: DeferralContext, w: Written, tape: Object, operands: Array[Object], values: List
) -> bool:
    """Fill `values` with the codes of operands and constants; False where one has none."""
    for k in range(w.operands + w.constants):
        x = operands[k] if k < w.operands else w.constant[k - w.operands]
        code = code_of(c, w, tape, x, w.nbytes[k])
        if code == NULL:
            return False
        values.items[k] = code
    return True


@native
def row_of_step(c: DeferralContext, step: WrittenStep, values: List, held: Object) -> Object:
    """A row: the form, who holds the result (`held` is not taken over), and the operands' codes.
    NULL with an exception set."""
    row = c.PyTuple_New(step.count + 2)
    if row == NULL:
        return NULL
    made = Tuple(row)
    made.items[0] = taken(c, step.form)
    made.items[1] = taken(c, held)
    for k in range(step.count):
        made.items[k + 2] = taken(c, values.items[step.place[k]])
    c.PyObject_GC_UnTrack(row)  # it is in no cycles: collections need not look at it
    return row


@native
def new_result(c: DeferralContext, tape: Object, code: Object, aval: Object) -> Object:
    """A new array that waits, made at a place of the tape; NULL with an exception set."""
    made = stack(Object, 2)
    if not both_made(c, c.deferred, c.place, made):
        return NULL
    at = Place(made[1])
    at.record = taken(c, tape)
    at.code = taken(c, code)
    c.PyObject_GC_UnTrack(at)
    array = DeferredArray(made[0])
    array._aval = taken(c, aval)
    array._pending = at
    return array


@native
def append(
    c: DeferralContext, w: Written, tape: Object, rows: Object, values: List, made: List
) -> Object:
    """Append the rows of a plan, which are made in `made`; the result, or a list of
    several; or NULL."""
    base = List(rows).size
    given = w.operands + w.constants
    out: Object = NULL
    if w.outs != 0:
        out = c.PyList_New(w.outs)
        if out == NULL:
            return NULL
    n = 0
    for k in range(w.steps):
        step = w.step[k]
        code = c.PyLong_FromLongLong(Int((base + k) << c.results))
        if code == NULL:
            c.Py_DecRef(out)
            return NULL
        values.items[given + k] = code
        held = c.empty
        if step.kept != 0:
            result = new_result(c, tape, code, step.aval)
            if result == NULL:
                c.Py_DecRef(out)
                return NULL
            if w.outs == 0:
                out = result
            else:
                List(out).items[n] = result
                n = n + 1
            held = c.PyWeakref_NewRef(result, NULL)
        else:
            c.Py_IncRef(held)
        row: Object = NULL
        if held != NULL:
            row = row_of_step(c, step, values, held)
            c.Py_DecRef(held)
        if row == NULL:
            c.Py_DecRef(out)
            return NULL
        made.items[k] = row
    if Tape(tape).rows != rows or List(rows).size != base:
        c.Py_DecRef(out)
        return NULL
    for k in range(w.steps):
        if c.PyList_Append(rows, made.items[k]) != 0:
            c.Py_DecRef(out)
            return NULL
    return out


@native
def write_row(
    c: DeferralContext, w: Written, tape: Object, rows: Object, operands: Array[Object]
) -> Object:
    """`write_on` for a plan of one operation: what most are."""
    step = w.step[0]
    row = c.PyTuple_New(step.count + 2)
    if row == NULL:
        return NULL
    made = Tuple(row)
    for k in range(step.count):
        i = step.place[k]
        x = operands[i] if i < w.operands else w.constant[i - w.operands]
        code = code_of(c, w, tape, x, w.nbytes[i])
        if code == NULL:
            c.Py_DecRef(row)
            return NULL
        made.items[k + 2] = code
    base = List(rows).size
    number = c.PyLong_FromLongLong(Int(base << c.results))
    out: Object = NULL
    held: Object = NULL
    if number != NULL:
        out = new_result(c, tape, number, step.aval)
        c.Py_DecRef(number)
    if out != NULL:
        held = c.PyWeakref_NewRef(out, NULL)
    if held == NULL:
        c.Py_DecRef(row)
        c.Py_DecRef(out)
        return NULL
    made.items[0] = taken(c, step.form)
    made.items[1] = held
    c.PyObject_GC_UnTrack(row)  # it is in no cycles: collections need not look at it
    kept = Tape(tape).rows == rows and List(rows).size == base
    if not kept or c.PyList_Append(rows, row) != 0:
        c.Py_DecRef(out)
        out = NULL
    c.Py_DecRef(row)
    return out


@native
def write_on(c: DeferralContext, w: Written, tape: Object, operands: Array[Object]) -> Object:
    """`write` on this tape."""
    t = Tape(tape)
    rows = t.rows
    if not is_a(rows, c.list):
        return NULL
    count = List(rows).size
    if count == 0 and not began_before(c, w.step[0].form):
        return NULL
    if count >= c.soft and (count >= c.hard or Form(w.step[0].form).begins != c.false):
        return NULL
    if c.PyLong_AsLongLong(t.bytes) > c.PyLong_AsLongLong(t.limit):
        return NULL
    c.Py_IncRef(rows)  # from here on the tape may be finished
    if w.steps == 1 and w.outs == 0:
        only = write_row(c, w, tape, rows, operands)
        if only == NULL:
            c.PyErr_Clear()
        c.Py_DecRef(rows)
        return only
    values = c.PyList_New(w.operands + w.constants + w.steps)
    made = c.PyList_New(w.steps)
    out: Object = NULL
    if values != NULL and made != NULL:
        if codes_of(c, w, tape, operands, List(values)):
            out = append(c, w, tape, rows, List(values), List(made))
    if out == NULL:
        c.PyErr_Clear()
    c.Py_DecRef(made)
    c.Py_DecRef(values)
    c.Py_DecRef(rows)
    return out


@native
def began_before(c: DeferralContext, form: Object) -> bool:
    """Whether an earlier tape began with this operation at the user's line, so that there is
    nothing to note."""
    if Form(form).begins != c.true:
        return False
    r = recording.context
    if r == NULL:
        return False
    found = False
    key = c.PyTuple_New(2)
    line = line_of(r, r.zero, r.one)
    if key != NULL and line != NULL:
        number = Form(form).number
        c.Py_IncRef(number)
        Tuple(key).items[0] = number
        c.Py_IncRef(line)
        Tuple(key).items[1] = line
        found = c.PySet_Contains(c.starts, key) == 1
    if key == NULL or line == NULL or not found:
        c.PyErr_Clear()
    c.Py_DecRef(line)
    c.Py_DecRef(key)
    return found


@native
def new_tape(c: DeferralContext, held: Open) -> Object:
    """A tape of no rows; NULL where there is none, perhaps with an exception set."""
    if held.lock == NULL:
        return NULL
    made = c.PyType_GenericAlloc(c.tape, 0)
    if made == NULL:
        return NULL
    t = Tape(made)
    t.rows = c.PyList_New(0)
    t.inputs = c.PyList_New(0)
    t.avals = c.PyList_New(0)
    t.places = c.PyDict_New()
    t.bytes = c.PyLong_FromLongLong(0)
    t.limit = c.PyLong_FromLongLong(c.enabled[1])
    c.Py_IncRef(c.none)
    t.taken = c.none
    t.lock = held.lock
    c.Py_IncRef(t.lock)
    whole = t.rows != NULL and t.inputs != NULL and t.avals != NULL
    if not whole or t.places == NULL or t.bytes == NULL or t.limit == NULL:
        c.Py_DecRef(made)
        return NULL
    return made


@native
def open_tape(c: DeferralContext, held: Open) -> Object:
    """The thread's tape, owned, a new one where the last has ended; NULL with an exception set."""
    tape = held.tape
    if is_a(tape, c.tape) and Tape(tape).rows == c.none:
        new = new_tape(c, held)
        if new == NULL:
            return NULL
        tape = held.tape
        held.tape = new
        c.Py_DecRef(tape)
        tape = new
    c.Py_IncRef(tape)
    return tape


@native
def open_of_thread(c: DeferralContext) -> Object:
    """What the calling thread has open, owned; NULL with an exception set."""
    thread = c.PyThreadState_GetID(c.PyThreadState_Get())  # which no other thread ever has
    found = c.opened
    if found != NULL and c.thread == thread:
        c.Py_IncRef(found)
        return found
    found = c.PyObject_GetAttr(c.local, c.open_name)
    if found != NULL:
        old = c.opened
        c.opened = found
        c.thread = thread
        c.Py_IncRef(found)
        c.Py_DecRef(old)
    return found


@native
def write(c: DeferralContext, plan: Object, operands: Array[Object], n: Int) -> Object:
    """The operations of a plan on these operands as the next rows of the thread's tape: the result.
    NULL, and no exception, where Python sees to it."""
    entry = Plan(plan).entry
    if not is_a(entry, c.ndarray):
        return NULL
    w = Written(NdArray(entry).data)
    state = c.state[0]
    if w.operands != n or state < 0 or c.enabled[0] != Int(state * 2) + 1:
        return NULL
    c.Py_IncRef(plan)  # whose memory is read; memos may forget it meanwhile
    held = open_of_thread(c)
    tape: Object = NULL
    out: Object = NULL
    if is_a(held, c.open) and Open(held).busy == c.false:
        tape = open_tape(c, Open(held))
        if is_a(tape, c.tape):
            out = write_on(c, w, tape, operands)
    if held == NULL or tape == NULL:
        c.PyErr_Clear()
    c.Py_DecRef(tape)
    c.Py_DecRef(held)
    c.Py_DecRef(plan)
    return out


@native(exported=True)
def defer_plan(self: Object, given: Array[Object], n: Int) -> Object:
    """`core.hooks.defer_plan(plan, operands)` (METH_FASTCALL)."""
    c = deferral.context
    if n == 2 and given[0].type == c.plan:
        out: Object = NULL
        if given[1].type == c.list:
            arrays = List(given[1])
            out = write(c, given[0], arrays.items, arrays.size)
        elif given[1].type == c.tuple:
            row = Tuple(given[1])
            out = write(c, given[0], row.items, row.size)
        if out != NULL:
            return out
    return c.PyObject_Vectorcall(c.defer_plan, given, n, NULL)


@native(exported=True)
def planned(self: Tuple, args: Array[Object], n: Int, names: Object) -> Object:
    """A function of arrays of known avals, one of them large; self is (None, its plan, the complete
    function): METH_FASTCALL | METH_KEYWORDS."""
    c = deferral.context
    if names == NULL:
        out = write(c, self.items[1], args, n)
        if out != NULL:
            return out
    return c.PyObject_Vectorcall(self.items[2], args, n, names)
