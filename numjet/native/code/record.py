"""`StageTrace.record`: one equation of one result is allocated, filled and appended.

`product`, `apply_staged` and `staged_operator` are the whole way from `x @ w`, `tanh(x)` and
`x * 2` of staged arrays to there, for operands of avals that were met before. `native.record` and
`native.operators` install them. What is not as usual - another number of arguments, several
results, effects, a trace that has ended - goes to the Python method, which is the specification.
Slots may be anybody's: what is read from one is looked at before it is used.

The user's line is found as `core.trace.user_source` does: the innermost frame whose file is not
this package's. Its code and instruction are looked up in a table of lines of the user's; who is not
there asks the Python function.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, Static, lshr, native, stack
from numjet.native.code.context import value_of
from numjet.native.objects import (
    ArrayImpl,
    Eqn,
    List,
    Literal,
    Object,
    Primitive,
    ShapedArray,
    StageTrace,
    StageTracer,
    Tuple,
    Var,
    is_a,
)
from numjet.native.tables import LINES, RecordContext, Recording

recording = Static(Recording, "recording", exported=True)


@native
def takes(c: RecordContext, trace: Object) -> bool:
    """Whether a trace (or whatever stands where one should) takes equations."""
    if not is_a(trace, c.stage_trace):
        return False
    x = StageTrace(trace)
    return x.done == c.false and is_a(x.eqns, c.list) and x.source != NULL


@native
def current(c: RecordContext, trace: Object) -> bool:
    """Whether this is a trace, the current one, and has not ended."""
    return value_of(c, c.trace) == trace and takes(c, trace)


@native
def call_one(c: RecordContext, function: Object, x: Object) -> Object:
    """function(x)."""
    args = stack(Object)
    args[0] = x
    return c.PyObject_Vectorcall(function, args, 1, NULL)


@native
def line_of(c: RecordContext, skipped: Object, skipped_there: Object) -> Object:
    """The user's line, owned; so many of the innermost frames are left out (seen from here, and
    from `user_source`). NULL with an exception set."""
    frame: Object = NULL
    if skipped == c.zero:
        frame = c.PyThreadState_GetFrame(c.PyThreadState_Get())  # sooner than asking Python
    else:
        frame = call_one(c, c.get_frame, skipped)
        if frame == NULL:  # there are not so many frames
            c.PyErr_Clear()
    while frame != NULL:
        code = c.PyFrame_GetCode(frame)
        c.Py_DecRef(code)  # the frame holds it
        instruction = Int(c.PyFrame_GetLasti(frame))
        line = c.lines[(lshr(Int(code), 4) + instruction * 37) & (LINES - 1)]
        if line.code == code and line.instruction == instruction:
            source = line.source
            c.Py_IncRef(source)
            c.Py_DecRef(frame)
            return source
        known = c.PyDict_GetItem(c.internal, code.co_filename)
        if known == c.false:
            learned = call_one(c, c.source_of, frame)
            c.Py_DecRef(frame)
            if learned != NULL:
                old = line.source
                line.code = code
                line.instruction = instruction
                line.source = learned
                c.Py_IncRef(learned)
                c.Py_DecRef(old)
            return learned
        further: Object = NULL
        if known == c.true:
            further = c.PyFrame_GetBack(frame)
        c.Py_DecRef(frame)
        frame = further
    return call_one(c, c.user_source, skipped_there)


@native(exported=True)
def user_line(self: Object, unused: Object) -> Object:
    """`core.hooks.user_line` (METH_NOARGS)."""
    c = recording.context
    return line_of(c, c.one, c.two)


@native(exported=True)
def caller_line(self: Object, unused: Object) -> Object:
    """`core.hooks.caller_line` (METH_NOARGS)."""
    c = recording.context
    return line_of(c, c.zero, c.one)


@native
def aval_of(c: RecordContext, atom: Object) -> Object:
    """The aval of a variable or a literal, or None, which has no shape, as a rule will say."""
    found: Object = NULL
    if atom.type == c.var:
        found = Var(atom).aval
    elif atom.type == c.literal:
        found = Literal(atom).aval
    return found if found != NULL else c.none


@native
def result_of(
    c: RecordContext, primitive: Object, params: Object, atoms: List, n: Int
) -> Object:
    """The aval of the result, as `Primitive.out_avals` gives it; NULL with an exception set."""
    avals = c.PyTuple_New(n)
    if avals == NULL:
        return NULL
    for k in range(n):
        aval = aval_of(c, atoms.items[k])
        c.Py_IncRef(aval)
        Tuple(avals).items[k] = aval
    args = stack(Object, 3)
    args[0] = primitive
    args[1] = avals
    args[2] = params
    out = c.PyObject_Vectorcall(c.out_avals, args, 3, NULL)
    c.Py_DecRef(avals)
    return out


@native
def literal_of(c: RecordContext, x: Object) -> Object:
    """A new literal for a concrete array of no axes; NULL: for others, which Python sees to (no
    exception is set), or without memory."""
    aval: Object = ArrayImpl(x)._aval
    if not is_a(aval, c.shaped_array) or ShapedArray(aval).shape != c.no_axes:
        return NULL
    made = c.PyType_GenericAlloc(c.literal, 0)
    if made == NULL:
        c.PyErr_Clear()
        return NULL
    literal = Literal(made)
    c.Py_IncRef(x)
    literal.value = x
    c.Py_IncRef(aval)
    literal.aval = aval
    return made


@native
def atom_of(c: RecordContext, trace: Object, x: Object) -> Object:
    """The variable or literal of an operand; NULL with an exception set."""
    if x.type == c.stage_tracer and StageTracer(x).owner == trace:
        variable = StageTracer(x).jaxpr_var
        if is_a(variable, c.var):
            c.Py_IncRef(variable)
            return variable
    elif x.type == c.array_impl:
        literal = literal_of(c, x)
        if literal != NULL:
            return literal
    args = stack(Object, 2)
    args[0] = trace
    args[1] = x
    return c.PyObject_Vectorcall(c.atom, args, 2, NULL)


@native
def atoms_of(c: RecordContext, trace: Object, given: Array[Object], n: Int) -> List:
    """A list of the operands' variables and literals; NULL with an exception set."""
    made = c.PyList_New(n)
    if made == NULL:
        return NULL
    atoms = List(made)
    for k in range(n):
        atom = atom_of(c, trace, given[k])
        if atom == NULL:
            c.Py_DecRef(made)
            return NULL
        atoms.items[k] = atom
    return atoms


@native
def hide(
    c: RecordContext, invars: List, outvars: Object, var: Object, eqn: Object, params: Object
) -> None:
    """Hide what cannot be a part of a cycle from the garbage collection, which would search all of
    a long program after it was traced: the variable and its list, and where the operands are
    variables and arrays and the params hold nothing that is searched, the literals and the equation
    too."""
    c.PyObject_GC_UnTrack(var)
    c.PyObject_GC_UnTrack(outvars)
    if c.PyObject_GC_IsTracked(params) != 0:
        return
    for k in range(invars.size):
        x = invars.items[k]
        if x.type != c.var:
            if x.type != c.literal or not is_a(Literal(x).value, c.array_impl):
                return
            c.PyObject_GC_UnTrack(x)
    c.PyObject_GC_UnTrack(invars)
    c.PyObject_GC_UnTrack(eqn)


@native
def source_of(
    c: RecordContext, trace: StageTrace, skipped: Object, skipped_there: Object
) -> Object:
    """The line that a trace was told, or the user's; owned. NULL with an exception set."""
    told = trace.source
    if told == c.none:
        return line_of(c, skipped, skipped_there)
    c.Py_IncRef(told)
    return told


@native
def write(
    c: RecordContext, self: Object, primitive: Object, operands: Array[Object], n: Int,
    params: Object, out_given: Object, skipped: Object, skipped_there: Object,
) -> Object:  # fmt: skip
    """Append the equation of a primitive without effects and its one result, of the aval that is
    given or (None) derived; the result's tracer. For the frames that are left out see `line_of`."""
    invars = atoms_of(c, self, operands, n)
    if invars == NULL:
        return NULL
    out = out_given
    if out_given == c.none:
        out = result_of(c, primitive, params, invars, n)
    else:
        c.Py_IncRef(out_given)
    source: Object = NULL
    if out != NULL:
        source = source_of(c, StageTrace(self), skipped, skipped_there)
    if source == NULL:
        c.Py_DecRef(out)
        c.Py_DecRef(invars)
        return NULL
    outvars = c.PyList_New(1)
    variable: Object = NULL
    equation: Object = NULL
    result: Object = NULL
    if outvars != NULL:
        variable = c.PyType_GenericAlloc(c.var, 0)
    if variable != NULL:
        equation = c.PyType_GenericAlloc(c.eqn, 0)
    if equation != NULL:
        result = c.PyType_GenericAlloc(c.stage_tracer, 0)
    if result == NULL:
        c.Py_DecRef(equation)
        c.Py_DecRef(variable)
        c.Py_DecRef(outvars)
        c.Py_DecRef(source)
        c.Py_DecRef(out)
        c.Py_DecRef(invars)
        return NULL
    var = Var(variable)
    var.aval = out  # taken over
    List(outvars).items[0] = variable
    eqn = Eqn(equation)
    eqn.invars = invars
    eqn.outvars = outvars
    c.Py_IncRef(primitive)
    eqn.primitive = primitive
    c.Py_IncRef(params)
    eqn.params = params
    effects = Primitive(primitive).effects
    c.Py_IncRef(effects)
    eqn.effects = effects
    eqn.source = source
    tracer = StageTracer(result)
    c.Py_IncRef(self)
    tracer.owner = self
    c.Py_IncRef(variable)
    tracer.jaxpr_var = variable
    c.Py_IncRef(out)
    tracer.aval = out
    c.Py_IncRef(source)
    tracer.source = source
    eqns = StageTrace(self).eqns
    # None takes no items, and that is said.
    wrong = c.PyList_Append(eqns if eqns != NULL else c.none, equation)
    hide(c, invars, outvars, variable, equation, params)
    c.Py_DecRef(equation)
    if wrong != 0:
        c.Py_DecRef(result)
        return NULL
    return result


@native(exported=True)
def record(self: Object, given: Array[Object], n: Int) -> Object:
    """`StageTrace.record(primitive, operands, params, out=None)` (METH_FASTCALL)."""
    c = recording.context
    if (n == 3 or n == 4) and given[0].type == c.primitive and given[1].type == c.tuple:
        primitive = Primitive(given[0])
        operands = Tuple(given[1])
        single = primitive.multiple_results == c.false and primitive.effects == c.no_effects
        if single and takes(c, self):
            out = c.none
            if n == 4:
                out = given[3]
            return write(
                c, self, primitive, operands.items, operands.size, given[2], out, c.one, c.two
            )
    args = stack(Object, 5)
    args[0] = self
    if n > 4:  # given too few the method raises as well
        return c.PyObject_Vectorcall(c.record, args, 1, NULL)
    for k in range(n):
        args[k + 1] = given[k]
    return c.PyObject_Vectorcall(c.record, args, n + 1, NULL)


@native
def known_product(c: RecordContext, x: Object, y: Object) -> Tuple:
    """What is known of x @ y, borrowed; NULL for nothing."""
    left = StageTracer(x).aval
    right: Object = NULL
    if y.type == c.stage_tracer:
        right = StageTracer(y).aval
    elif y.type == c.array_impl:
        right = ArrayImpl(y)._aval
    if not is_a(left, c.shaped_array) or not is_a(right, c.shaped_array):
        return NULL
    key = c.PyTuple_New(2)
    if key == NULL:
        c.PyErr_Clear()
        return NULL
    c.Py_IncRef(left)
    c.Py_IncRef(right)
    pair = Tuple(key)
    pair.items[0] = left
    pair.items[1] = right
    found = c.PyDict_GetItem(c.products, key)
    c.Py_DecRef(key)
    return Tuple(found)


@native(exported=True)
def product(x: Object, y: Object) -> Object:
    """`x @ y` of a staged array (METH_O)."""
    c = recording.context
    operands = stack(Object, 2)
    operands[0] = x
    operands[1] = y
    owner = StageTracer(x).owner
    facts = known_product(c, x, y)
    if facts != NULL and current(c, owner):
        c.Py_IncRef(facts)
        c.Py_IncRef(owner)
        out = write(
            c, owner, c.dot_general, operands, 2, facts.items[0], facts.items[1], c.zero, c.one
        )
        c.Py_DecRef(owner)
        c.Py_DecRef(facts)
        return out
    return c.PyObject_Vectorcall(c.product, operands, 2, NULL)


@native(exported=True)
def apply_staged(self: Tuple, x: Object) -> Object:
    """A function of one array (METH_O); self is (None, avals of results by the operand's,
    primitive, params, the complete function)."""
    c = recording.context
    operands = stack(Object)
    operands[0] = x
    if x.type == c.stage_tracer:
        tracer = StageTracer(x)
        if is_a(tracer.aval, c.shaped_array):
            out = c.PyDict_GetItem(self.items[1], tracer.aval)
            if out != NULL and out != c.none and current(c, tracer.owner):
                owner = tracer.owner
                c.Py_IncRef(out)  # the dict may forget it meanwhile
                c.Py_IncRef(owner)
                written = write(
                    c, owner, self.items[2], operands, 1, self.items[3], out, c.one, c.two
                )
                c.Py_DecRef(owner)
                c.Py_DecRef(out)
                return written
    return c.PyObject_Vectorcall(self.items[4], operands, 1, NULL)


@native
def pair_of(c: RecordContext, known: Object, operands: Array[Object]) -> Tuple:
    """What `numpy.fast` knows of a function of these two, borrowed; NULL for nothing."""
    key = c.PyTuple_New(2)
    if key == NULL:
        c.PyErr_Clear()
        return NULL
    for k in range(2):
        x = operands[k]
        kind = x.type
        if kind == c.stage_tracer:
            kind = StageTracer(x).aval
        elif kind == c.array_impl:
            kind = ArrayImpl(x)._aval
        if kind == NULL:
            kind = c.none
        c.Py_IncRef(kind)
        Tuple(key).items[k] = kind
    found = c.PyDict_GetItem(known, key)
    c.Py_DecRef(key)
    # False: such operands take the complete way; and 64-bit arrays beside numbers ask a flag.
    if found == NULL or found.type != c.tuple or Tuple(found).items[3] != c.false:
        return NULL
    return Tuple(found)


@native
def applied(c: RecordContext, self: Tuple, x: Object, y: Object, owner: Object) -> Object:
    """The operation on x and y, one of which belongs to the trace `owner`; self is (operands that
    are known, primitive, params). None, borrowed, where it is left to Python."""
    operands = stack(Object, 2)
    operands[0] = x
    operands[1] = y
    found = pair_of(c, self.items[0], operands)
    if found == NULL or not current(c, owner):
        return c.none
    constants = found.items[1]
    if not is_a(constants, c.dict):  # the operands are repeated
        return c.none
    for k in range(2):
        if operands[k].type != c.stage_tracer and operands[k].type != c.array_impl:
            constant = c.PyDict_GetItem(constants, operands[k])
            if constant == NULL:
                return c.none
            operands[k] = constant
    c.Py_IncRef(owner)
    c.Py_IncRef(found)  # the dicts may forget them meanwhile
    c.Py_IncRef(operands[0])
    c.Py_IncRef(operands[1])
    out = write(
        c, owner, self.items[1], operands, 2, self.items[2], found.items[0], c.zero, c.one
    )
    c.Py_DecRef(operands[1])
    c.Py_DecRef(operands[0])
    c.Py_DecRef(found)
    c.Py_DecRef(owner)
    return out


def staged_operator(number: int, kind: str) -> object:
    """Operator method `number` of staged arrays (METH_O)."""

    @native(name=f"staged_{number}", exported=True)
    def method(self: Object, other: Object) -> Object:
        c = recording.context
        about = c.operators[number]
        owner = StageTracer(self).owner
        if kind == "reflected":
            out = applied(c, about, other, self, owner)
        else:
            out = applied(c, about, self, other, owner)
        if out != c.none:
            return out
        args = stack(Object, 2)
        args[0] = self
        args[1] = other
        return c.PyObject_Vectorcall(about.items[3], args, 2, NULL)

    return method
