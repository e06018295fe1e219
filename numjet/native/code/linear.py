"""`LinearizeTrace.process` of operations that have a rule: found, written down or run, recorded.

What `transforms.eager` does in Python for operands that are linearized or concrete, step for step;
everything else is that method's, as are operations without a rule. Where an operand waits, the
rule's plan is written down at once (`code.deferral.write`). Slots may be anybody's: what is read
from one is looked at before it is used.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, native, stack
from numjet.native.code.context import begin_key, both_made, end_key, taken
from numjet.native.code.deferral import deferral, write
from numjet.native.objects import (
    ArrayImpl,
    DeferredArray,
    Dict,
    LinearStep,
    LinearTracer,
    List,
    Object,
    Rule,
    ShapedArray,
    Tuple,
    Var,
    is_a,
)
from numjet.native.tables import DeferralContext

OPERANDS = 8  # at most


@native
def aval_of(c: DeferralContext, x: Object) -> Object:
    """The aval of a concrete array, borrowed; NULL for others."""
    if x.type == c.array:
        return ArrayImpl(x)._aval
    if x.type == c.deferred:
        return DeferredArray(x)._aval
    return NULL


@native
def lifted_one(c: DeferralContext, trace: Object, x: Object) -> Object:
    """`x` with a new variable as its tangent; NULL, perhaps with an exception set, for what is no
    array of an aval whose tangents' is known to be the same."""
    aval = aval_of(c, x)
    if not is_a(aval, c.shaped_array) or ShapedArray(aval)._tangent != aval:
        return NULL
    made = stack(Object, 2)
    if not both_made(c, c.linear_tracer, c.var, made):
        return NULL
    Var(made[1]).aval = taken(c, aval)
    t = LinearTracer(made[0])
    t.owner = taken(c, trace)
    t.primal = taken(c, x)
    t.tangent = made[1]
    t.aval = taken(c, aval)
    return made[0]


@native(exported=True)
def lifted(self: Object, given: Array[Object], n: Int) -> Object:
    """`core.hooks.lifted(trace, values)` of a list (METH_FASTCALL)."""
    c = deferral.context
    if n == 2 and is_a(given[1], c.list):
        values = List(given[1])
        count = values.size
        made = c.PyList_New(count)
        good = made != NULL
        for k in range(count):
            x: Object = NULL
            if good and k < values.size:
                x = lifted_one(c, given[0], values.items[k])
            if x == NULL:
                good = False
            else:
                List(made).items[k] = x
        if good:
            return made
        c.Py_DecRef(made)
        c.PyErr_Clear()
    return taken(c, c.none)


@native
def variable_of(c: DeferralContext, trace: Object, x: Object) -> Object:
    """The variable that is a linearized operand's tangent, borrowed; NULL where it has none of its
    own aval."""
    t = LinearTracer(x)
    var = t.tangent
    if t.owner != trace or t.primal == NULL or t.aval == NULL or not is_a(var, c.var):
        return NULL
    return var if Var(var).aval == t.aval else NULL


@native
def key_of(
    c: DeferralContext, trace: Object, primitive: Object, args: Tuple, params: Dict,
    primals: Array[Object],
) -> Object:  # fmt: skip
    """The key of an operation's rule, owned, with `primals` filled (borrowed); NULL, and perhaps an
    exception, where Python sees to it."""
    n = args.size
    key = begin_key(c, n, primitive, params)
    if key == NULL:
        return NULL
    mask = 0
    bit = 1
    for k in range(n):
        x = args.items[k]
        aval: Object = NULL
        if x.type == c.linear_tracer:
            if variable_of(c, trace, x) != NULL:
                mask = mask | bit
                primals[k] = LinearTracer(x).primal
                if aval_of(c, primals[k]) != NULL:
                    aval = LinearTracer(x).aval
        else:
            primals[k] = x
            aval = aval_of(c, x)
        if aval == NULL:
            c.Py_DecRef(key)
            return NULL
        key.items[k + 1] = taken(c, aval)
        bit = bit + bit
    if mask == 0 or not end_key(c, key, n + 1, mask, params):
        c.Py_DecRef(key)
        return NULL
    return key


@native
def given_at(
    c: DeferralContext, at: Int, primals: Array[Object], n: Int, constants: List, made: List
) -> Object:
    """A value of a plan: an operand, a constant, or one of its results; borrowed."""
    if at < n:
        return primals[at]
    at = at - n
    if at < constants.size:
        return constants.items[at]
    return made.items[at - constants.size]


@native
def written_down(
    c: DeferralContext, rule: Rule, primals: Array[Object], n: Int
) -> Object:
    """What the rule's forward function gives, by its plan; NULL, and no exception, where the plan
    is not written down."""
    if not is_a(rule.plan, c.plan) or not is_a(rule.gives, c.tuple):
        return NULL
    if not is_a(rule.constants, c.list):
        return NULL
    gives = Tuple(rule.gives)
    if gives.size == 0:
        return NULL
    rows = write(c, rule.plan, primals, n)
    if rows == NULL:
        return NULL
    made: Object = NULL
    residuals: Object = NULL
    if is_a(rows, c.list):
        made = c.PyTuple_New(2)
        residuals = c.PyTuple_New(gives.size - 1)
    if made == NULL or residuals == NULL:
        c.PyErr_Clear()
        c.Py_DecRef(residuals)
        c.Py_DecRef(made)
        c.Py_DecRef(rows)
        return NULL
    for k in range(gives.size):
        at = c.PyLong_AsLongLong(gives.items[k])
        x = taken(c, given_at(c, at, primals, n, List(rule.constants), List(rows)))
        if k == 0:
            Tuple(made).items[0] = x
        else:
            Tuple(residuals).items[k - 1] = x
    Tuple(made).items[1] = residuals
    c.Py_DecRef(rows)
    return made


@native
def step_of(
    c: DeferralContext, rule: Rule, residuals: Object, args: Tuple, trace: Object, out: Object
) -> Object:
    """A new step of the record, whose result's tangent is the variable `out`; NULL with an
    exception set."""
    count = 0
    for k in range(args.size):
        if args.items[k].type == c.linear_tracer:
            count = count + 1
    made = c.PyType_GenericAlloc(c.step, 0)
    invars = c.PyList_New(count)
    outvars = c.PyTuple_New(1)
    if made == NULL or invars == NULL or outvars == NULL:
        c.Py_DecRef(outvars)
        c.Py_DecRef(invars)
        c.Py_DecRef(made)
        return NULL
    at = 0
    for k in range(args.size):
        x = args.items[k]
        if x.type == c.linear_tracer:
            List(invars).items[at] = taken(c, LinearTracer(x).tangent)
            at = at + 1
    Tuple(outvars).items[0] = taken(c, out)
    step = LinearStep(made)
    step.rule = taken(c, rule)
    step.residuals = taken(c, residuals)
    step.invars = invars
    step.outvars = outvars
    return made


@native
def tangent_of(
    c: DeferralContext, trace: Object, tape: Object, rule: Rule, residuals: Object, args: Tuple
) -> Object:
    """The variable of the result's tangent, owned, its step being appended; NULL with an exception
    set."""
    if rule.alias != c.none:
        want = c.PyLong_AsLongLong(rule.alias)
        for k in range(args.size):
            x = args.items[k]
            if x.type == c.linear_tracer:
                if want == 0:
                    return taken(c, LinearTracer(x).tangent)
                want = want - 1
    var = c.PyType_GenericAlloc(c.var, 0)
    if var == NULL:
        return NULL
    Var(var).aval = taken(c, rule.aval)
    step = step_of(c, rule, residuals, args, trace, var)
    if step == NULL or c.PyList_Append(tape, step) != 0:
        c.Py_DecRef(step)
        c.Py_DecRef(var)
        return NULL
    c.Py_DecRef(step)
    return var


@native
def linearized(
    c: DeferralContext, trace: Object, tape: Object, rule: Rule, pair: Tuple, args: Tuple
) -> Object:
    """The result of an operation, whose rule gave `pair` (not taken over); NULL with an exception
    set."""
    out = pair.items[0]
    if rule.aval == c.none:
        return taken(c, out)
    made = c.PyType_GenericAlloc(c.linear_tracer, 0)
    if made == NULL:
        return NULL
    tangent = tangent_of(c, trace, tape, rule, pair.items[1], args)
    if tangent == NULL:
        c.Py_DecRef(made)
        return NULL
    t = LinearTracer(made)
    t.owner = taken(c, trace)
    t.primal = taken(c, out)
    t.tangent = tangent
    t.aval = taken(c, aval_of(c, out))
    return made


@native
def forward(c: DeferralContext, rule: Rule, primals: Array[Object], n: Int) -> Object:
    """The rule's result and residuals, owned; NULL with an exception set."""
    for k in range(n):
        if primals[k].type == c.deferred:
            found = written_down(c, rule, primals, n)
            if found != NULL:
                return found
            break
    return c.PyObject_Vectorcall(rule.forward, primals, n, NULL)


@native
def by_function(c: DeferralContext, function: Object, primals: Array[Object], n: Int) -> Object:
    """The same where `function` gives the result, and there are no residuals."""
    out = c.PyObject_Vectorcall(function, primals, n, NULL)
    if out == NULL:
        return NULL
    made = c.PyTuple_New(2)
    if made == NULL:
        c.Py_DecRef(out)
        return NULL
    Tuple(made).items[0] = out
    Tuple(made).items[1] = taken(c, c.empty)
    return made


@native
def with_rule(
    c: DeferralContext, trace: Object, rules: Object, tape: Object, given: Array[Object], n: Int
) -> Object:
    """`process` for an operation that has a rule. NULL: with an exception set it failed, without
    one Python sees to it."""
    args = Tuple(given[1])
    params = Dict(given[2])
    primals = stack(Object, OPERANDS)
    key = key_of(c, trace, given[0], args, params, primals)
    found: Object = NULL
    if key != NULL:
        found = c.PyDict_GetItem(rules, key)
        c.Py_DecRef(key)
    else:
        c.PyErr_Clear()
    if not is_a(found, c.rule):
        return NULL
    c.Py_IncRef(found)  # the rules may be forgotten meanwhile
    rule = Rule(found)
    pair: Object = NULL
    if n == 4 and given[3] != c.none:
        pair = by_function(c, given[3], primals, args.size)
    else:
        pair = forward(c, rule, primals, args.size)
    out: Object = NULL
    if pair != NULL:
        if is_a(pair, c.tuple) and Tuple(pair).size == 2:
            if aval_of(c, Tuple(pair).items[0]) != NULL:
                out = linearized(c, trace, tape, rule, Tuple(pair), args)
        c.Py_DecRef(pair)
    c.Py_DecRef(found)
    return out


@native
def recorded(c: DeferralContext, trace: Object, given: Array[Object], n: Int) -> Object:
    """`with_rule` of this trace."""
    rules = c.PyObject_GetAttr(trace, c.rules_name)
    tape = c.PyObject_GetAttr(trace, c.tape_name)
    out: Object = NULL
    if is_a(rules, c.memo) and is_a(tape, c.list):
        out = with_rule(c, trace, rules, tape, given, n)
    elif rules == NULL or tape == NULL:
        c.PyErr_Clear()
    c.Py_DecRef(tape)
    c.Py_DecRef(rules)
    return out


@native(exported=True)
def process(self: Object, given: Array[Object], n: Int) -> Object:
    """`LinearizeTrace.process(primitive, args, params, forward)` (METH_FASTCALL)."""
    c = deferral.context
    usual = n == 3 or n == 4
    if usual:
        usual = c.checks.size != 0 and c.checks.items[0] == c.zero
    if usual:
        usual = is_a(given[1], c.tuple) and is_a(given[2], c.dict)
    if usual:
        usual = Tuple(given[1]).size <= OPERANDS
    if usual:
        out = recorded(c, self, given, n)
        if out != NULL or c.PyErr_Occurred() != NULL:
            return out
    args = stack(Object, 5)
    if n > 4:
        n = 4
    args[0] = self
    for k in range(n):
        args[k + 1] = given[k]
    return c.PyObject_Vectorcall(c.process, args, n + 1, NULL)
