"""What tells a record of linear steps from others, and what its backward pass reads
(`transforms.walks`, which does the same for records of other kinds).

Slots may be anybody's: what is read from one is looked at before it is used. What is allocated may
run the garbage collector, and that anything: lists are looked at anew then.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, native
from numjet.native.code.context import taken
from numjet.native.code.deferral import deferral
from numjet.native.code.linear import aval_of
from numjet.native.objects import LinearStep, List, Object, Tuple, is_a
from numjet.native.tables import DeferralContext


@native
def size_of(c: DeferralContext, tape: List) -> Int:
    """How many items of a key tell the steps of a record; -1 where there is something else."""
    count = 0
    for k in range(tape.size):
        entry = tape.items[k]
        if entry.type != c.step:
            return -1
        step = LinearStep(entry)
        if step.rule == NULL or not is_a(step.invars, c.list) or not is_a(step.outvars, c.tuple):
            return -1
        if Tuple(step.outvars).size != 1:
            return -1
        count = count + 1 + List(step.invars).size
    return count


@native
def number(c: DeferralContext, numbers: Object, var: Object, k: Int) -> bool:
    """Call a variable by a number; False, perhaps with an exception set, where that cannot be."""
    if not is_a(var, c.var):  # whose hash and equality are the object's
        return False
    made = c.PyLong_FromLongLong(k)
    good = made != NULL and c.PyDict_SetItem(numbers, var, made) == 0
    c.Py_DecRef(made)
    return good


@native
def number_of(c: DeferralContext, numbers: Object, var: Object) -> Object:
    """What a variable is called, borrowed; NULL for others."""
    return c.PyDict_GetItem(numbers, var) if is_a(var, c.var) else NULL


@native
def put(c: DeferralContext, key: Tuple, at: Int, x: Object) -> bool:
    """Fill a place of a key with an object (or NULL); False where that cannot be."""
    if x == NULL or at >= key.size:
        return False
    key.items[at] = taken(c, x)
    return True


@native
def put_steps(
    c: DeferralContext, key: Tuple, numbers: Object, tape: List, first: Int
) -> Int:
    """Fill a key from place 1 on; the place behind the steps, or -1. first: the number of the
    first step's variable."""
    at = 1
    k = 0
    while k < tape.size:
        entry = tape.items[k]
        if entry.type != c.step:
            return -1
        c.Py_IncRef(entry)
        step = LinearStep(entry)
        good = is_a(step.invars, c.list) and is_a(step.outvars, c.tuple)
        if good:
            good = Tuple(step.outvars).size == 1 and put(c, key, at, step.rule)
            at = at + 1
            variables = List(step.invars)
            i = 0
            while good and i < variables.size:
                good = put(c, key, at, number_of(c, numbers, variables.items[i]))
                at = at + 1
                i = i + 1
        if good:
            good = number(c, numbers, Tuple(step.outvars).items[0], first + k)
        c.Py_DecRef(entry)
        if not good:
            return -1
        k = k + 1
    return at


@native
def put_outputs(
    c: DeferralContext, key: Tuple, at: Int, numbers: Object, tangents: List, cts: List
) -> Int:
    """Fill a key with the outputs that have both a tangent and a cotangent; the place behind, or
    -1."""
    for k in range(tangents.size):
        t = tangents.items[k]
        aval = aval_of(c, cts.items[k])
        if not put(c, key, at, number_of(c, numbers, t)) or not put(c, key, at + 1, aval):
            return -1
        at = at + 2
    return at


@native
def key_of_record(
    c: DeferralContext, numbers: Object, tape: List, variables: List, tangents: List, cts: List,
    given: Array[Object],
) -> Object:  # fmt: skip
    """The key, owned; NULL, and perhaps an exception, where Python sees to it."""
    steps = size_of(c, tape)
    outputs = tangents.size
    if steps <= 0 or cts.size != outputs:
        return NULL
    count = variables.size
    made = c.PyTuple_New(steps + outputs * 2 + 3)
    if made == NULL:
        return NULL
    key = Tuple(made)
    k = 0
    while k < variables.size:
        if not number(c, numbers, variables.items[k], k):
            break
        k = k + 1
    at = -1
    if k == count and variables.size == count:
        size = c.PyLong_FromLongLong(count)
        if put(c, key, 0, size):
            at = put_steps(c, key, numbers, tape, count)
        c.Py_DecRef(size)
    if at > 0 and tangents.size == outputs and cts.size == outputs:
        at = put_outputs(c, key, at, numbers, tangents, cts)
    if at + 2 != key.size or not put(c, key, at, given[4]) or not put(c, key, at + 1, given[5]):
        c.Py_DecRef(made)
        return NULL
    return made


@native(exported=True)
def record_key(self: Object, given: Array[Object], n: Int) -> Object:
    """`core.hooks.record_key(tape, variables, tangents, cotangents, flags, executor)` of lists
    (METH_FASTCALL); None where Python sees to it."""
    c = deferral.context
    usual = n == 6
    for k in range(4):
        if usual:
            usual = is_a(given[k], c.list)
    key: Object = NULL
    if usual:
        numbers = c.PyDict_New()
        if numbers != NULL:
            key = key_of_record(
                c, numbers, List(given[0]), List(given[1]), List(given[2]), List(given[3]), given
            )
            c.Py_DecRef(numbers)
        if key == NULL:
            c.PyErr_Clear()
    return taken(c, c.none) if key == NULL else key


@native
def residual_at(c: DeferralContext, tape: List, place: Object) -> Object:
    """The residual that (entry, number) names, borrowed; NULL where it is no array."""
    if not is_a(place, c.tuple) or Tuple(place).size != 2:
        return NULL
    i = c.PyLong_AsLongLong(Tuple(place).items[0])
    k = c.PyLong_AsLongLong(Tuple(place).items[1])
    if i < 0 or i >= tape.size or tape.items[i].type != c.step:
        return NULL
    held = LinearStep(tape.items[i]).residuals
    if not is_a(held, c.tuple) or k < 0 or k >= Tuple(held).size:
        return NULL
    x = Tuple(held).items[k]
    return NULL if aval_of(c, x) == NULL else x


@native(exported=True)
def residuals(self: Object, given: Array[Object], n: Int) -> Object:
    """`core.hooks.residuals(tape, places)`: a list of what steps of a list keep (METH_FASTCALL);
    None where Python sees to it."""
    c = deferral.context
    if n == 2 and is_a(given[0], c.list) and is_a(given[1], c.list):
        count = List(given[1]).size
        made = c.PyList_New(count)
        good = made != NULL
        for k in range(count):
            x: Object = NULL
            if good and k < List(given[1]).size:
                x = residual_at(c, List(given[0]), List(given[1]).items[k])
            if x == NULL:
                good = False
            else:
                List(made).items[k] = taken(c, x)
        if good:
            return made
        c.Py_DecRef(made)
        c.PyErr_Clear()
    return taken(c, c.none)
