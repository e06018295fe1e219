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
from numjet.native.code.known_operands import linearized
from numjet.native.code.linear import aval_of
from numjet.native.objects import LinearTracer, NdArray, Object, Tuple
from numjet.native.tables import (
    KNOWN_SLOTS,
    DeferralContext,
    KnownCall,
    KnownCalls,
    known_key,
    linear_key,
)


@native
def fits(e: KnownCall, key: Int, args: Array[Object], n: Int, names: Tuple) -> bool:
    """Whether a call has the arguments of an entry."""
    if e.key != key:
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


@native
def key_of(c: DeferralContext, x: Object) -> Int:
    """What entries know a first argument by; 0: by nothing."""
    if x.type == c.linear_tracer:
        return linear_key(Int(LinearTracer(x).aval))
    return Int(aval_of(c, x))


@native
def known(c: DeferralContext, e: KnownCall, args: Array[Object]) -> Object:
    """The call of an entry, written down or recorded; or NULL."""
    if e.plan == NULL:
        return linearized(c, e.primitive, e.params, args, 1)
    if e.large != 0 or args[0].type == c.deferred:
        if at_once(c):
            return write(c, e.plan, args, 1)
    return NULL


@native(exported=True)
def known_call(self: Tuple, args: Array[Object], n: Int, names: Tuple) -> Object:
    """A call of a function; self is (its table, the complete function): METH_FASTCALL |
    METH_KEYWORDS."""
    c = deferral.context
    if n > 0:
        key = key_of(c, args[0])
        if key != 0 and c.checks.size != 0 and c.checks.items[0] == c.zero:
            count = n
            if names != NULL:
                count = n + names.size
            at = lshr(key, 4) ^ lshr(key, 10)
            for k in range(1, count):
                at = known_key(at, Int(args[k]))
            slots = KnownCalls(NdArray(self.items[0]).data).slots
            at = at & (KNOWN_SLOTS - 1)
            for k in range(2):
                entry = slots[at ^ k]
                if entry != 0:
                    e = KnownCall(entry)
                    if fits(e, key, args, n, names) and e.state == c.state[0]:
                        out = known(c, e, args)
                        if out != NULL:
                            return out
                        break
    return c.PyObject_Vectorcall(self.items[1], args, n, names)
