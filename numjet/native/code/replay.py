"""Patterns of differentiation (`transforms.replay`): found, and written again.

What `ReplayTrace.process` and `transposed` do in Python for an operation that has a pattern, step
for step; everything else goes to them: operands of other kinds, short programs. Where there is no
pattern yet, `replayed` and `transposed_as` are handed the key that was made here.

Slots may be anybody's: what is read from one is looked at before it is used.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, native, stack
from numjet.native.code.context import begin_key, both_made, end_key, taken
from numjet.native.code.record import call_one, line_of, recording, takes, write
from numjet.native.objects import (
    ArrayImpl,
    Dict,
    Eqn,
    JVPTracer,
    List,
    Object,
    PartialTracer,
    Pattern,
    Primitive,
    ReplayTrace,
    StageTrace,
    StageTracer,
    Tuple,
    Var,
    is_a,
)
from numjet.native.tables import RecordContext

OPERANDS = 16  # at most: how each comes is a digit of a number


@native
def has_patterns(c: RecordContext, primitive: Primitive) -> bool:
    """Whether the rules of a primitive may be written down again."""
    return primitive.higher_order == c.false and primitive.collective == c.false


@native
def is_staged(c: RecordContext, stage: Object, x: Object) -> bool:
    """Whether a value (or NULL) is a variable of this staging trace."""
    return is_a(x, c.stage_tracer) and StageTracer(x).owner == stage


@native
def active(c: RecordContext, trace: Object, stage: Object, t: JVPTracer) -> Object:
    """The variable that is an operand's tangent, borrowed; NULL where it has none of its own aval,
    or its primal is not staged here."""
    tangent = t.tangent
    if t.owner != trace or t.aval == NULL or not is_a(tangent, c.partial_tracer):
        return NULL
    if PartialTracer(tangent).aval != t.aval or not is_staged(c, stage, t.primal):
        return NULL
    var = PartialTracer(tangent).jaxpr_var
    return var if is_a(var, c.var) else NULL


@native
def jvp_key(
    c: RecordContext, trace: Object, stage: Object, primitive: Object, args: Tuple, params: Dict,
    values: List,
) -> Object:  # fmt: skip
    """The key of an operation's pattern, owned; `values`, of as many empty places as there are
    operands, gets these and behind them the tangents' variables. NULL, and perhaps an exception,
    where Python sees to it."""
    n = args.size
    key = begin_key(c, n, primitive, params)
    if key == NULL:
        return NULL
    kinds = 0
    unit = 1
    for k in range(n):
        x = args.items[k]
        aval: Object = NULL
        if x.type == c.jvp_tracer:
            var = active(c, trace, stage, JVPTracer(x))
            if var != NULL:
                if c.PyList_Append(values, var) == 0:
                    kinds = kinds + unit
                    aval = JVPTracer(x).aval
                    x = JVPTracer(x).primal
        elif x.type == c.array_impl:
            kinds = kinds + unit + unit
            aval = ArrayImpl(x)._aval
        elif is_staged(c, stage, x):
            aval = StageTracer(x).aval
        if aval == NULL:
            c.Py_DecRef(key)
            return NULL
        values.items[k] = taken(c, x)
        key.items[k + 1] = taken(c, aval)
        unit = unit * 3
    usual = values.size > n  # one has a tangent at least
    if usual and n == 2:
        if values.items[0] == values.items[1]:
            kinds = kinds + unit
            # One value with two tangents has no pattern.
            usual = values.size == 3 or values.items[2] == values.items[3]
    if usual:
        usual = end_key(c, key, n + 1, kinds, params)
    if not usual:
        c.Py_DecRef(key)
        return NULL
    return key


@native
def pattern_of(c: RecordContext, patterns: Object, key: Object) -> Object:
    """The pattern of a key, owned; NULL, without an exception, if there is none."""
    found = c.PyDict_GetItem(patterns, key)
    if not is_a(found, c.pattern):
        return NULL
    return taken(c, found)  # it may be forgotten meanwhile


@native
def malformed(c: RecordContext, found: Object) -> None:
    """Raise that a pattern is not as `transforms.replay` makes them."""
    c.Py_DecRef(call_one(c, c.malformed, c.none if found == NULL else found))


@native
def value_at(c: RecordContext, values: List, place: Object) -> Object:
    """The value at a place, borrowed; NULL with an exception set."""
    at = -1
    if is_a(place, c.int):
        at = c.PyLong_AsLong(place)
    if at < 0 or at >= values.size:
        c.PyErr_Clear()
        malformed(c, place)
        return NULL
    return values.items[at]


@native
def operands_of(c: RecordContext, row: Tuple, values: List) -> Tuple:
    """A tuple of the values at a row's places; NULL with an exception set, as for no row."""
    if row == NULL:
        return NULL
    places = row.items[2]
    if not is_a(places, c.tuple):
        malformed(c, places)
        return NULL
    n = Tuple(places).size
    made = c.PyTuple_New(n)
    for k in range(n):
        x: Object = NULL
        if made != NULL:
            x = value_at(c, values, Tuple(places).items[k])
        if x == NULL:
            c.Py_DecRef(made)
            return NULL
        Tuple(made).items[k] = taken(c, x)
    return Tuple(made)


@native
def row_at(c: RecordContext, rows: Object, k: Int) -> Tuple:
    """A row of a pattern: primitive, params, places and aval; NULL with an exception set."""
    row = List(rows).items[k]
    if is_a(row, c.tuple):
        if Tuple(row).size == 4:
            if Tuple(row).items[0].type == c.primitive:
                return Tuple(row)
    malformed(c, row)
    return NULL


@native
def write_known(c: RecordContext, stage: Object, rows: Object, values: List) -> bool:
    """Stage the equations of a pattern; `values` gets their results. False with an exception
    set."""
    for k in range(List(rows).size):
        row = row_at(c, rows, k)
        operands = operands_of(c, row, values)
        if operands == NULL:
            return False
        out = write(
            c, stage, row.items[0], operands.items, operands.size, row.items[1], row.items[3],
            c.zero, c.one,
        )  # fmt: skip
        c.Py_DecRef(operands)
        if out == NULL:
            return False
        wrong = c.PyList_Append(values, out)
        c.Py_DecRef(out)
        if wrong != 0:
            return False
    return True


@native
def equation_of(c: RecordContext, row: Tuple, operands: Tuple, var: Object) -> Object:
    """A new equation of a row; its result is `var`, its source empty. NULL with an exception
    set."""
    n = operands.size
    made = c.PyType_GenericAlloc(c.eqn, 0)
    invars = c.PyList_New(n)
    outvars = c.PyList_New(1)
    if made == NULL or invars == NULL or outvars == NULL:
        c.Py_DecRef(outvars)
        c.Py_DecRef(invars)
        c.Py_DecRef(made)
        return NULL
    for k in range(n):
        List(invars).items[k] = taken(c, operands.items[k])
    List(outvars).items[0] = taken(c, var)
    eqn = Eqn(made)
    eqn.invars = invars
    eqn.outvars = outvars
    eqn.primitive = taken(c, row.items[0])
    eqn.params = taken(c, row.items[1])
    eqn.effects = taken(c, c.no_effects)
    return made


@native
def write_linear(
    c: RecordContext, tape: Object, source: Object, rows: Object, values: List
) -> bool:
    """Record the linear equations of a pattern, of this source; `values` gets the variables that
    are their results. False with an exception set."""
    for k in range(List(rows).size):
        row = row_at(c, rows, k)
        operands = operands_of(c, row, values)
        if operands == NULL:
            return False
        var = c.PyType_GenericAlloc(c.var, 0)
        eqn: Object = NULL
        if var != NULL:
            Var(var).aval = taken(c, row.items[3])
            eqn = equation_of(c, row, operands, var)
        c.Py_DecRef(operands)
        wrong = 1
        if eqn != NULL:
            Eqn(eqn).source = taken(c, source)
            if c.PyList_Append(tape, eqn) == 0:
                if c.PyList_Append(values, var) == 0:
                    wrong = 0
        c.Py_DecRef(eqn)
        c.Py_DecRef(var)
        if wrong != 0:
            return False
    return True


@native
def result_of(c: RecordContext, trace: Object, values: List, outs: List) -> Object:
    """What the operation gives: the primal with its tangent, or alone. NULL with an exception
    set."""
    if outs.size != 2:
        malformed(c, outs)
        return NULL
    primal = value_at(c, values, outs.items[0])
    if primal == NULL or outs.items[1] == c.none:
        return taken(c, primal)
    var = value_at(c, values, outs.items[1])
    if var == NULL:
        return NULL
    aval: Object = NULL
    if primal.type == c.stage_tracer:
        aval = StageTracer(primal).aval
    elif primal.type == c.array_impl:
        aval = ArrayImpl(primal)._aval
    if aval == NULL or not is_a(var, c.var):
        malformed(c, outs)
        return NULL
    made = stack(Object, 2)
    if not both_made(c, c.jvp_tracer, c.partial_tracer, made):
        return NULL
    tangent = PartialTracer(made[1])
    tangent.owner = taken(c, ReplayTrace(trace).partial)
    tangent.jaxpr_var = taken(c, var)
    tangent.aval = taken(c, Var(var).aval)
    tracer = JVPTracer(made[0])
    tracer.owner = taken(c, trace)
    tracer.primal = taken(c, primal)
    tracer.tangent = made[1]
    tracer.aval = taken(c, aval)
    return made[0]


@native
def has_rows(c: RecordContext, pattern: Pattern) -> bool:
    """Whether a pattern's parts are the lists that they should be."""
    if not is_a(pattern.constants, c.list) or not is_a(pattern.known, c.list):
        return False
    return is_a(pattern.linear, c.list) and is_a(pattern.outs, c.list)


@native
def write_pattern(c: RecordContext, stage: Object, pattern: Pattern, values: List) -> bool:
    """Stage what is known of a pattern, with its constants behind the operands in `values`. False
    with an exception set."""
    if not has_rows(c, pattern):
        malformed(c, pattern)
        return False
    constants = List(pattern.constants)
    for k in range(constants.size):
        if c.PyList_Append(values, constants.items[k]) != 0:
            return False
    return write_known(c, stage, pattern.known, values)


@native
def write_jvp(
    c: RecordContext, self: Object, stage: Object, tape: Object, pattern: Pattern, values: List
) -> Object:
    """The result of an operation that has a pattern, from the user's line unless the staging trace
    knows one; NULL with an exception set."""
    told = StageTrace(stage).source
    if told == c.none:
        line = line_of(c, c.zero, c.one)
        if line == NULL:
            return NULL
        named = call_one(c, c.named, line)
        c.Py_DecRef(line)
        if named == NULL:
            return NULL
        StageTrace(stage).source = named
    out: Object = NULL
    if write_pattern(c, stage, pattern, values):
        source = taken(c, StageTrace(stage).source)
        if write_linear(c, tape, source, pattern.linear, values):
            out = result_of(c, self, values, List(pattern.outs))
        c.Py_DecRef(source)
    if told == c.none:
        named = StageTrace(stage).source
        StageTrace(stage).source = told
        c.Py_DecRef(named)
    return out


@native
def jvp_as(
    c: RecordContext, self: Object, given: Array[Object], key: Object, values: Object
) -> Object:
    """`ReplayTrace.process` of what has this key; without a pattern `replayed` does it."""
    trace = ReplayTrace(self)
    found = pattern_of(c, trace.patterns, key)
    if found != NULL:
        out = write_jvp(c, self, trace.stage, trace.tape, Pattern(found), List(values))
        c.Py_DecRef(found)
        return out
    args = stack(Object, 6)
    args[0] = self
    for k in range(3):
        args[k + 1] = given[k]
    args[4] = key
    args[5] = values
    return c.PyObject_Vectorcall(c.replayed, args, 6, NULL)


@native(exported=True)
def replay_jvp(self: Object, given: Array[Object], n: Int) -> Object:
    """`ReplayTrace.process(primitive, args, params)` (METH_FASTCALL)."""
    c = recording.context
    trace = ReplayTrace(self)
    usual = n == 3 and is_a(self, c.replay_trace)
    if usual:
        usual = trace.long == c.true and is_a(trace.patterns, c.memo) and takes(c, trace.stage)
    if usual:
        usual = is_a(trace.tape, c.list) and trace.partial != NULL
    if usual:
        usual = given[0].type == c.primitive and is_a(given[1], c.tuple) and is_a(given[2], c.dict)
    if usual:
        usual = Tuple(given[1]).size <= OPERANDS and has_patterns(c, Primitive(given[0]))
    if usual:
        values = c.PyList_New(Tuple(given[1]).size)
        key: Object = NULL
        if values != NULL:
            key = jvp_key(
                c, self, trace.stage, given[0], Tuple(given[1]), Dict(given[2]), List(values)
            )
        if key != NULL:
            out = jvp_as(c, self, given, key, values)
            c.Py_DecRef(key)
            c.Py_DecRef(values)
            return out
        c.PyErr_Clear()
        c.Py_DecRef(values)
    args = stack(Object, 5)
    args[0] = self
    if n > 4:  # too many for the method, as four are
        n = 4
    for k in range(n):
        args[k + 1] = given[k]
    return c.PyObject_Vectorcall(c.replay_jvp, args, n + 1, NULL)


@native
def transpose_key(
    c: RecordContext, stage: Object, eqn: Eqn, ct: Object, values: List
) -> Object:
    """The key of the pattern of an equation's transpose rule, owned; `values`, of one empty place
    and one for each operand, gets the cotangent and the operands. NULL, and perhaps an exception,
    where Python sees to it."""
    invars = List(eqn.invars)
    params = Dict(eqn.params)
    n = invars.size
    key = begin_key(c, n + 1, eqn.primitive, params)  # the cotangent first
    if key == NULL:
        return NULL
    key.items[1] = taken(c, StageTracer(ct).aval)
    values.items[0] = taken(c, ct)
    kinds = 0
    unit = 1
    for k in range(n):
        x = invars.items[k]
        aval: Object = NULL
        if x.type == c.var:
            kinds = kinds + unit
            aval = Var(x).aval
        elif x.type == c.array_impl:
            kinds = kinds + unit + unit
            aval = ArrayImpl(x)._aval
        elif is_staged(c, stage, x):
            aval = StageTracer(x).aval
        if aval == NULL:
            c.Py_DecRef(key)
            return NULL
        values.items[k + 1] = taken(c, x)
        key.items[k + 2] = taken(c, aval)
        unit = unit * 3
    if not end_key(c, key, n + 2, kinds, params):
        c.Py_DecRef(key)
        return NULL
    return key


@native
def cotangents_of(c: RecordContext, values: List, outs: List) -> Object:
    """A list of the values at these places, None for None; NULL with an exception set."""
    made = c.PyList_New(outs.size)
    for k in range(outs.size):
        x: Object = NULL
        if made != NULL:
            x = outs.items[k]
            if x != c.none:
                x = value_at(c, values, x)
        if x == NULL:
            c.Py_DecRef(made)
            return NULL
        List(made).items[k] = taken(c, x)
    return made


@native
def transposed_as(c: RecordContext, given: Array[Object], key: Object, values: Object) -> Object:
    """`transposed` of what has this key; without a pattern the Python function does it."""
    found = pattern_of(c, given[0], key)
    if found != NULL:
        out: Object = NULL
        if write_pattern(c, given[1], Pattern(found), List(values)):
            out = cotangents_of(c, List(values), List(Pattern(found).outs))
        c.Py_DecRef(found)
        return out
    args = stack(Object, 5)
    for k in range(3):
        args[k] = given[k]
    args[3] = key
    args[4] = values
    return c.PyObject_Vectorcall(c.transposed_as, args, 5, NULL)


@native(exported=True)
def replay_transposed(self: Object, given: Array[Object], n: Int) -> Object:
    """`transposed(patterns, stage, equation, cotangent)` (METH_FASTCALL)."""
    c = recording.context
    usual = n == 4
    if usual:
        usual = is_a(given[0], c.memo) and takes(c, given[1]) and is_a(given[2], c.eqn)
    if usual:
        usual = is_staged(c, given[1], given[3])
    if usual:
        eqn = Eqn(given[2])
        usual = is_a(eqn.primitive, c.primitive) and is_a(eqn.invars, c.list)
        if usual:
            usual = is_a(eqn.params, c.dict) and StageTracer(given[3]).aval != NULL
        if usual:
            usual = List(eqn.invars).size <= OPERANDS and has_patterns(c, Primitive(eqn.primitive))
        if usual:
            values = c.PyList_New(List(eqn.invars).size + 1)
            key: Object = NULL
            if values != NULL:
                key = transpose_key(c, given[1], eqn, given[3], List(values))
            if key != NULL:
                out = transposed_as(c, given, key, values)
                c.Py_DecRef(key)
                c.Py_DecRef(values)
                return out
            c.PyErr_Clear()
            c.Py_DecRef(values)
    return c.PyObject_Vectorcall(c.transposed, given, n, NULL)
