"""What native functions of every kind do with the interpreter: current traces, keys of tables.

For the other modules of this folder; each has a context of its own that begins as `Interpreter`
does.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, native, stack
from numjet.native.objects import Dict, Object, Tuple, is_a
from numjet.native.tables import Interpreter


@native
def taken(c: Interpreter, x: Object) -> Object:
    """Another reference to an object."""
    c.Py_IncRef(x)
    return x


@native
def both_made(c: Interpreter, first: Object, second: Object, made: Array[Object]) -> bool:
    """A new object of each of two types, in `made`; False with an exception, and neither, without
    memory."""
    made[0] = c.PyType_GenericAlloc(first, 0)
    made[1] = NULL
    if made[0] != NULL:
        made[1] = c.PyType_GenericAlloc(second, 0)
    if made[1] != NULL:
        return True
    c.Py_DecRef(made[0])
    return False


@native
def value_of(c: Interpreter, variable: Object) -> Object:
    """What a context variable holds, as a borrowed object; NULL with no exception set."""
    value = stack(Object)
    value[0] = NULL
    if c.PyContextVar_Get(variable, NULL, value) != 0:
        c.PyErr_Clear()
    found = value[0]
    c.Py_DecRef(found)
    return found


@native
def computes_at_once(c: Interpreter, trace: Object) -> bool:
    """Whether what this trace does not trace is computed with as where nothing traces."""
    return trace == c.eval or is_a(trace, c.linearize_trace)


@native
def at_once(c: Interpreter) -> bool:
    """The same of the current trace. One expression, like this: written where it is called."""
    return computes_at_once(c, value_of(c, c.trace))


@native
def begin_key(c: Interpreter, operands: Int, primitive: Object, params: Dict) -> Tuple:
    """A key with places for the primitive, which is filled, so many operands, a number and the
    params; NULL with an exception set."""
    made = Tuple(c.PyTuple_New(operands + 2 + params.used))
    if made != NULL:
        made.items[0] = taken(c, primitive)
    return made


@native
def end_key(c: Interpreter, key: Tuple, at: Int, kinds: Int, params: Dict) -> bool:
    """Fill a key from place `at` on: the number that says how the operands come, and the params.
    False: without memory, or the dict changes."""
    number = c.PyLong_FromLongLong(kinds)
    if number == NULL:
        return False
    key.items[at] = number
    place = stack(Int)
    place[0] = 0
    name = stack(Object)
    value = stack(Object)
    for k in range(params.used):
        pair: Object = NULL
        if c.PyDict_Next(params, place, name, value) != 0:
            pair = c.PyTuple_New(2)
        if pair == NULL:
            return False
        Tuple(pair).items[0] = taken(c, name[0])
        Tuple(pair).items[1] = taken(c, value[0])
        key.items[at + 1 + k] = pair
    return True
