"""Calls of functions of one array whose operations were written down before.

`native.known` fills the table: with which array's aval and which other arguments, by identity, a
call is which plan. A call that is not there, or that cannot be written down now, goes to the
Python function. What would break it: an argument whose meaning changes while it stays the object
that it is.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, lshr, native
from numjet.native.code.context import at_once
from numjet.native.code.deferral import deferral, write
from numjet.native.code.linear import aval_of
from numjet.native.objects import NdArray, Object, Tuple
from numjet.native.tables import (
    KNOWN_SLOTS,
    KnownCall,
    KnownCalls,
    known_key,
)


@native
def fits(e: KnownCall, aval: Object, args: Array[Object], n: Int, names: Tuple) -> bool:
    """Whether a call has the arguments of an entry."""
    if e.aval != aval:
        return False
    named = 0
    if names != NULL:
        named = names.size
    if e.arguments != n + named or e.named != named:
        return False
    for k in range(1, n + named):
        if e.other[k - 1] != args[k]:
            return False
    for k in range(named):
        if e.name[k] != names.items[k]:
            return False
    return True


@native(exported=True)
def known_call(self: Tuple, args: Array[Object], n: Int, names: Tuple) -> Object:
    """A call of a function; self is (its table, the complete function): METH_FASTCALL |
    METH_KEYWORDS."""
    c = deferral.context
    if n > 0:
        aval = aval_of(c, args[0])
        if aval != NULL:
            count = n
            if names != NULL:
                count = n + names.size
            at = lshr(Int(aval), 4) ^ lshr(Int(aval), 10)
            for k in range(1, count):
                at = known_key(at, Int(args[k]))
            slots = KnownCalls(NdArray(self.items[0]).data).slots
            at = at & (KNOWN_SLOTS - 1)
            for k in range(2):
                entry = slots[at ^ k]
                if entry != 0:
                    e = KnownCall(entry)
                    if fits(e, aval, args, n, names) and e.state == c.state[0]:
                        if e.large != 0 or args[0].type == c.deferred:
                            if at_once(c):
                                out = write(c, e.plan, args, 1)
                                if out != NULL:
                                    return out
                        break
    return c.PyObject_Vectorcall(self.items[1], args, n, names)
