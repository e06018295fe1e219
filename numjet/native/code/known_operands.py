"""Operations that the tables of operators and functions know by operands that wait.

Arrays, whether they wait or not, and numbers are written down as a plan (`code.deferral`); of
linearized operands the rule is found and recorded (`code.linear`). What is not known, or not as it
was, is NULL, with no exception set: callers take the complete way.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, lshr, native, place, stack
from numjet.native.code.context import taken, value_of
from numjet.native.code.deferral import deferral, write
from numjet.native.code.linear import recorded
from numjet.native.objects import (
    ArrayImpl,
    DeferredArray,
    Float,
    LinearTracer,
    Object,
    Tuple,
    is_a,
)
from numjet.native.tables import LATER_SLOTS, DeferralContext, Table, linear_key


@native
def kind_of(c: DeferralContext, x: Object) -> Int:
    """What tables of operations that are written down know an operand by."""
    if x == NULL:
        return 0
    if x.type == c.array:
        return Int(ArrayImpl(x)._aval)
    if x.type == c.deferred:
        return Int(DeferredArray(x)._aval)
    if x.type == c.linear_tracer:
        return linear_key(Int(LinearTracer(x).aval))
    return Int(x.type)


@native
def waits(c: DeferralContext, x: Object) -> bool:
    """Whether an operand's value (or NULL) is not there yet."""
    if x == NULL:
        return False
    if x.type == c.linear_tracer:
        return is_a(LinearTracer(x).primal, c.deferred)
    return x.type == c.deferred


@native
def operand_of(c: DeferralContext, x: Object, numbers: Object) -> Object:
    """An operand as an array, borrowed; NULL for a number that none was made of."""
    if numbers == NULL:
        return x
    if x.type == c.float and Array[Int](place(Float(x), "value"))[0] == 0:
        return c.PyDict_GetItem(numbers, c.plus_zero)
    return c.PyDict_GetItem(numbers, x)


@native
def linearized(
    c: DeferralContext, primitive: Object, params: Object, operands: Array[Object], n: Int
) -> Object:  # fmt: skip
    """An operation on operands of which some are linearized; or NULL, and no exception."""
    trace = value_of(c, c.trace)
    if not is_a(trace, c.linearize_trace):
        return NULL
    given = stack(Object, 3)
    given[0] = taken(c, primitive)  # tables may forget their entries meanwhile
    given[2] = taken(c, params)
    c.Py_IncRef(trace)
    args = c.PyTuple_New(n)
    out: Object = NULL
    if args != NULL:
        for k in range(n):
            Tuple(args).items[k] = taken(c, operands[k])
        given[1] = args
        out = recorded(c, trace, given, 3)
        c.Py_DecRef(args)
    if out == NULL:
        c.PyErr_Clear()
    c.Py_DecRef(trace)
    c.Py_DecRef(given[2])
    c.Py_DecRef(given[0])
    return out


@native
def later(t: Table, x: Object, y: Object) -> Object:
    """The operation of a table on x (and y, unless NULL), written down or recorded; or NULL."""
    slots = t.later
    if slots == NULL:
        return NULL
    c = deferral.context
    kx = kind_of(c, x)
    ky = kind_of(c, y)
    k = (lshr(kx, 4) ^ lshr(kx, 10) ^ lshr(ky, 5) ^ lshr(ky, 11)) & (LATER_SLOTS - 1)
    slot = slots[k]
    if slot.left != kx or slot.right != ky:
        slot = slots[k ^ 1]
        if slot.left != kx or slot.right != ky:
            return NULL
    e = slot.entry
    if e == NULL:
        return NULL
    if e.large == 0 and not waits(c, x) and not waits(c, y):
        return NULL
    operands = stack(Object, 2)
    operands[0] = operand_of(c, x, e.left)
    operands[1] = y
    n = 1
    if y != NULL:
        n = 2
        operands[1] = operand_of(c, y, e.right)
        if operands[1] == NULL:
            return NULL
    if operands[0] == NULL:
        return NULL
    for k in range(n):
        c.Py_IncRef(operands[k])  # the dicts of numbers may forget theirs meanwhile
    out: Object = NULL
    if e.plan != NULL:
        out = write(c, e.plan, operands, n)
    elif e.state == c.state[0]:
        out = linearized(c, e.primitive, e.params, operands, n)
    for k in range(n):
        c.Py_DecRef(operands[k])
    return out
