"""`StageTrace.record` as LLVM IR: one equation of one result is allocated, filled and appended.

`product` and `apply_staged` are the whole way from `x @ w` and `tanh(x)` of staged arrays to there,
for operands of avals that were met before.

`trace_native` installs it; it is compiled with the module of `fast_ir`. Nothing here refers to a
symbol: the interpreter's functions and objects stand in a context table, whose address is in the
variable `recording`. Slots may be anybody's: what is read from one is looked at before it is used.
What is not as usual - another number of arguments, several results, effects,
a trace that has ended - goes to the Python method, which is the specification.

The user's line is found as `core.trace.user_source` does: the innermost frame whose file is not
this package's. Its code and instruction are looked up in a table of `LINES` entries of three words
(code, instruction, and the source, which keeps the code alive and is owned); who is not there asks
the Python function.
"""

from __future__ import annotations

from numjet.native import walk_ir

CONTEXT = (
    "Py_IncRef Py_DecRef PyObject_Vectorcall PyType_GenericAlloc PyList_New PyList_Append "
    "PyTuple_New PyDict_GetItem PyErr_Clear PyErr_Occurred PyLong_AsLong PyFrame_GetBack "
    "PyFrame_GetCode PyFrame_GetLasti PyContextVar_Get PyObject_GC_UnTrack PyObject_GC_IsTracked "
    "none true false tuple list no_effects primitive var literal "
    "eqn stage_trace stage_tracer array_impl shaped_array dict ndarray no_axes record atom "
    "out_avals user_source get_frame zero one two internal lines trace products dot_general product"
).split()
# Slots by class, whose offsets `text` is given.
SLOTS = (
    "StageTrace.done StageTrace.source StageTrace.eqns StageTracer.owner "
    "StageTracer.jaxpr_var StageTracer.aval StageTracer.source Var.aval Literal.aval Literal.value "
    "ArrayImpl._aval ShapedArray.shape Eqn.invars Eqn.outvars Eqn.primitive Eqn.params Eqn.effects "
    "Eqn.source Primitive.multiple_results Primitive.effects code.co_filename"
).split()
LINES = 1024  # entries in the table of lines

# `x = FIELD p name` loads a slot, `PUT v p name` stores one, `x = KNOWN name` loads a word of the
# context; the rest is LLVM IR.
RECORD = """
@recording = hidden global ptr null

; Whether an object (or null) is of exactly this type.
define internal i1 @is_a(ptr %x, ptr %type) #0 {
  %none = icmp eq ptr %x, null
  br i1 %none, label %no, label %look
look:
  %kind_p = getelementptr i8, ptr %x, i64 8
  %kind = load ptr, ptr %kind_p
  %same = icmp eq ptr %kind, %type
  ret i1 %same
no:
  ret i1 false
}

; Whether a trace (or whatever stands where one should) takes equations.
define internal i1 @takes(ptr %c, ptr %trace) #0 {
  %class = KNOWN stage_trace
  %is_trace = call i1 @is_a(ptr %trace, ptr %class)
  br i1 %is_trace, label %look, label %no
look:
  %done = FIELD %trace StageTrace.done
  %false = KNOWN false
  %runs = icmp eq ptr %done, %false
  %eqns = FIELD %trace StageTrace.eqns
  %list = KNOWN list
  %listed = call i1 @is_a(ptr %eqns, ptr %list)
  %source = FIELD %trace StageTrace.source
  %known = icmp ne ptr %source, null
  %both = and i1 %runs, %listed
  %all = and i1 %both, %known
  ret i1 %all
no:
  ret i1 false
}

; So many of the innermost frames are left out (seen from here, and from `user_source`).
define internal ptr @line_of(ptr %c, ptr %skipped, ptr %skipped_there) #0 {
entry:
  %arguments = alloca [1 x ptr]
  store ptr %skipped, ptr %arguments
  %call = KNOWN PyObject_Vectorcall
  %decref = KNOWN Py_DecRef
  %get_frame = KNOWN get_frame
  %first = call ptr %call(ptr %get_frame, ptr %arguments, i64 1, ptr null)
  %deep = icmp ne ptr %first, null
  br i1 %deep, label %frame, label %shallow
shallow:
  %clear = KNOWN PyErr_Clear
  call void %clear()
  br label %ask
frame:
  %f = phi ptr [ %first, %entry ], [ %back, %outer ]
  %get_code = KNOWN PyFrame_GetCode
  %code = call ptr %get_code(ptr %f)
  call void %decref(ptr %code)
  %file = FIELD %code code.co_filename
  %look = KNOWN PyDict_GetItem
  %internal = KNOWN internal
  %known = call ptr %look(ptr %internal, ptr %file)
  %false = KNOWN false
  %users = icmp eq ptr %known, %false
  br i1 %users, label %user, label %inner
inner:
  %true = KNOWN true
  %ours = icmp eq ptr %known, %true
  br i1 %ours, label %outer, label %new
outer:
  %get_back = KNOWN PyFrame_GetBack
  %back = call ptr %get_back(ptr %f)
  call void %decref(ptr %f)
  %more = icmp ne ptr %back, null
  br i1 %more, label %frame, label %ask
new:
  call void %decref(ptr %f)
  br label %ask
user:
  %get_lasti = KNOWN PyFrame_GetLasti
  %lasti32 = call i32 %get_lasti(ptr %f)
  %lasti = sext i32 %lasti32 to i64
  call void %decref(ptr %f)
  %address = ptrtoint ptr %code to i64
  %high = lshr i64 %address, 4
  %mixed = mul i64 %lasti, 37
  %sum = add i64 %high, %mixed
  %slot = and i64 %sum, LINE_MASK
  %offset = mul i64 %slot, 24
  %lines = KNOWN lines
  %entry_p = getelementptr i8, ptr %lines, i64 %offset
  %entry_code = load ptr, ptr %entry_p
  %entry_lasti_p = getelementptr i8, ptr %entry_p, i64 8
  %entry_lasti = load i64, ptr %entry_lasti_p
  %entry_source_p = getelementptr i8, ptr %entry_p, i64 16
  %same_code = icmp eq ptr %entry_code, %code
  %same_lasti = icmp eq i64 %entry_lasti, %lasti
  %hit = and i1 %same_code, %same_lasti
  br i1 %hit, label %found, label %learn
found:
  %source = load ptr, ptr %entry_source_p
  %incref = KNOWN Py_IncRef
  call void %incref(ptr %source)
  ret ptr %source
learn:
  store ptr %skipped_there, ptr %arguments
  %ask_first = KNOWN user_source
  %learned = call ptr %call(ptr %ask_first, ptr %arguments, i64 1, ptr null)
  %none = KNOWN none
  %failed = icmp eq ptr %learned, null
  %nowhere = icmp eq ptr %learned, %none
  %useless = or i1 %failed, %nowhere
  br i1 %useless, label %end, label %keep
keep:
  %old = load ptr, ptr %entry_source_p
  store ptr %code, ptr %entry_p
  store i64 %lasti, ptr %entry_lasti_p
  store ptr %learned, ptr %entry_source_p
  %own = KNOWN Py_IncRef
  call void %own(ptr %learned)
  call void %decref(ptr %old)
  br label %end
end:
  ret ptr %learned
ask:
  store ptr %skipped_there, ptr %arguments
  %user_source = KNOWN user_source
  %asked = call ptr %call(ptr %user_source, ptr %arguments, i64 1, ptr null)
  ret ptr %asked
}

; METH_NOARGS, `core.trace.user_line`; self is the array of the context.
define ptr @user_line(ptr %self, ptr %unused) #0 {
  %c = load ptr, ptr @recording
  %one = KNOWN one
  %two = KNOWN two
  %source = call ptr @line_of(ptr %c, ptr %one, ptr %two)
  ret ptr %source
}

; The aval of the result, as `Primitive.out_avals` gives it; null with an error set.
define internal ptr @result_of(ptr %c, ptr %primitive, ptr %params, ptr %items, i64 %n) #0 {
entry:
  %arguments = alloca [3 x ptr]
  %new = KNOWN PyTuple_New
  %avals = call ptr %new(i64 %n)
  %made = icmp ne ptr %avals, null
  br i1 %made, label %head, label %none
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %one, label %go
one:
  %at = mul i64 %k, 8
  %item_p = getelementptr i8, ptr %items, i64 %at
  %item = load ptr, ptr %item_p
  %type_p = getelementptr i8, ptr %item, i64 8
  %type = load ptr, ptr %type_p
  %var = KNOWN var
  %is_var = icmp eq ptr %type, %var
  br i1 %is_var, label %of_var, label %other
of_var:
  %var_aval = FIELD %item Var.aval
  br label %put
other:
  %literal = KNOWN literal
  %is_literal = icmp eq ptr %type, %literal
  br i1 %is_literal, label %of_literal, label %put
of_literal:
  %literal_aval = FIELD %item Literal.aval
  br label %put
put:
  %found = phi ptr [ %var_aval, %of_var ], [ %literal_aval, %of_literal ], [ null, %other ]
  ; None has no shape, as the rule will say.
  %nothing = KNOWN none
  %empty = icmp eq ptr %found, null
  %aval = select i1 %empty, ptr %nothing, ptr %found
  %incref = KNOWN Py_IncRef
  call void %incref(ptr %aval)
  %place = add i64 %at, ITEMS
  %place_p = getelementptr i8, ptr %avals, i64 %place
  store ptr %aval, ptr %place_p
  %k1 = add i64 %k, 1
  br label %head
go:
  store ptr %primitive, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  store ptr %avals, ptr %second
  %third = getelementptr ptr, ptr %arguments, i64 2
  store ptr %params, ptr %third
  %call = KNOWN PyObject_Vectorcall
  %out_avals = KNOWN out_avals
  %out = call ptr %call(ptr %out_avals, ptr %arguments, i64 3, ptr null)
  %decref = KNOWN Py_DecRef
  call void %decref(ptr %avals)
  ret ptr %out
none:
  ret ptr null
}

; A list of the operands' variables and literals; null with an error set.
define internal ptr @atoms_of(ptr %c, ptr %self, ptr %given, i64 %n) #0 {
entry:
  %arguments = alloca [2 x ptr]
  %new = KNOWN PyList_New
  %atoms = call ptr %new(i64 %n)
  %made = icmp ne ptr %atoms, null
  br i1 %made, label %start, label %none
start:
  %items_p = getelementptr i8, ptr %atoms, i64 24
  %items = load ptr, ptr %items_p
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k1, %put ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %one, label %end
one:
  %at = mul i64 %k, 8
  %x_p = getelementptr i8, ptr %given, i64 %at
  %x = load ptr, ptr %x_p
  %type_p = getelementptr i8, ptr %x, i64 8
  %type = load ptr, ptr %type_p
  %tracer = KNOWN stage_tracer
  %traced = icmp eq ptr %type, %tracer
  br i1 %traced, label %owned, label %other
owned:
  %owner = FIELD %x StageTracer.owner
  %own = icmp eq ptr %owner, %self
  br i1 %own, label %own_var, label %other
own_var:
  %var = FIELD %x StageTracer.jaxpr_var
  %var_class = KNOWN var
  %is_var = call i1 @is_a(ptr %var, ptr %var_class)
  br i1 %is_var, label %take_var, label %ask
take_var:
  %incref = KNOWN Py_IncRef
  call void %incref(ptr %var)
  br label %put
other:
  %array = KNOWN array_impl
  %concrete = icmp eq ptr %type, %array
  br i1 %concrete, label %look, label %ask
look:
  %aval = FIELD %x ArrayImpl._aval
  %aval_class = KNOWN shaped_array
  %is_aval = call i1 @is_a(ptr %aval, ptr %aval_class)
  br i1 %is_aval, label %shaped, label %ask
shaped:
  %shape = FIELD %aval ShapedArray.shape
  %no_axes = KNOWN no_axes
  %scalar = icmp eq ptr %shape, %no_axes
  br i1 %scalar, label %literal, label %ask
literal:
  %alloc = KNOWN PyType_GenericAlloc
  %class = KNOWN literal
  %made_literal = call ptr %alloc(ptr %class, i64 0)
  %got = icmp ne ptr %made_literal, null
  br i1 %got, label %write, label %drop
write:
  %take = KNOWN Py_IncRef
  call void %take(ptr %x)
  PUT %x %made_literal Literal.value
  call void %take(ptr %aval)
  PUT %aval %made_literal Literal.aval
  br label %put
ask:
  store ptr %self, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  store ptr %x, ptr %second
  %call = KNOWN PyObject_Vectorcall
  %method = KNOWN atom
  %found = call ptr %call(ptr %method, ptr %arguments, i64 2, ptr null)
  %good = icmp ne ptr %found, null
  br i1 %good, label %put, label %drop
put:
  %atom = phi ptr [ %var, %take_var ], [ %made_literal, %write ], [ %found, %ask ]
  %to = getelementptr i8, ptr %items, i64 %at
  store ptr %atom, ptr %to
  %k1 = add i64 %k, 1
  br label %head
end:
  ret ptr %atoms
drop:
  %decref = KNOWN Py_DecRef
  call void %decref(ptr %atoms)
  br label %none
none:
  ret ptr null
}

; What cannot be a part of a cycle is hidden from the collector, which would search all of a long
; program after it was traced: the variable and its list, and where the operands are variables and
; arrays and the params hold nothing that is searched, the literals and the equation too.
define internal void @hide(ptr %c, ptr %invars, ptr %outvars, ptr %var, ptr %eqn, ptr %params) #0 {
entry:
  %hidden = KNOWN PyObject_GC_UnTrack
  call void %hidden(ptr %var)
  call void %hidden(ptr %outvars)
  %is_searched = KNOWN PyObject_GC_IsTracked
  %searched = call i32 %is_searched(ptr %params)
  %plain = icmp eq i32 %searched, 0
  br i1 %plain, label %start, label %end
start:
  %size_p = getelementptr i8, ptr %invars, i64 16
  %size = load i64, ptr %size_p
  %items_p = getelementptr i8, ptr %invars, i64 24
  %items = load ptr, ptr %items_p
  %class = KNOWN var
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k1, %one ], [ %k1, %constant ]
  %more = icmp ult i64 %k, %size
  br i1 %more, label %one, label %all
one:
  %x_p = getelementptr ptr, ptr %items, i64 %k
  %x = load ptr, ptr %x_p
  %type_p = getelementptr i8, ptr %x, i64 8
  %type = load ptr, ptr %type_p
  %k1 = add i64 %k, 1
  %is_var = icmp eq ptr %type, %class
  br i1 %is_var, label %head, label %other
other:
  %literal = KNOWN literal
  %is_literal = icmp eq ptr %type, %literal
  br i1 %is_literal, label %value, label %end
value:
  %array = FIELD %x Literal.value
  %array_class = KNOWN array_impl
  %is_array = call i1 @is_a(ptr %array, ptr %array_class)
  br i1 %is_array, label %constant, label %end
constant:
  call void %hidden(ptr %x)
  br label %head
all:
  call void %hidden(ptr %invars)
  call void %hidden(ptr %eqn)
  br label %end
end:
  ret void
}

; The equation of a primitive without effects and its one result, of the aval that is given or
; (None) derived; for the frames that are left out see `line_of`.
define internal ptr @write(ptr %c, ptr %self, ptr %primitive, ptr %operands, i64 %size, ptr %params,
    ptr %out_given, ptr %skipped, ptr %skipped_there) #0 {
entry:
  %held = alloca [7 x ptr]
  %held0 = getelementptr ptr, ptr %held, i64 0
  %held1 = getelementptr ptr, ptr %held, i64 1
  %held2 = getelementptr ptr, ptr %held, i64 2
  %held3 = getelementptr ptr, ptr %held, i64 3
  %held4 = getelementptr ptr, ptr %held, i64 4
  %held5 = getelementptr ptr, ptr %held, i64 5
  %held6 = getelementptr ptr, ptr %held, i64 6
  store ptr null, ptr %held0
  store ptr null, ptr %held1
  store ptr null, ptr %held2
  store ptr null, ptr %held3
  store ptr null, ptr %held4
  store ptr null, ptr %held5
  store ptr null, ptr %held6
  %incref = KNOWN Py_IncRef
  %decref = KNOWN Py_DecRef
  %invars = call ptr @atoms_of(ptr %c, ptr %self, ptr %operands, i64 %size)
  store ptr %invars, ptr %held0
  %have_invars = icmp ne ptr %invars, null
  br i1 %have_invars, label %result, label %fail
result:
  %none = KNOWN none
  %unknown = icmp eq ptr %out_given, %none
  br i1 %unknown, label %derive, label %take
derive:
  %items_p = getelementptr i8, ptr %invars, i64 24
  %items = load ptr, ptr %items_p
  %derived = call ptr @result_of(ptr %c, ptr %primitive, ptr %params, ptr %items, i64 %size)
  %have_derived = icmp ne ptr %derived, null
  br i1 %have_derived, label %line, label %fail
take:
  call void %incref(ptr %out_given)
  br label %line
line:
  %out = phi ptr [ %derived, %derive ], [ %out_given, %take ]
  store ptr %out, ptr %held1
  %set_source = FIELD %self StageTrace.source
  %unset = icmp eq ptr %set_source, %none
  br i1 %unset, label %find, label %use
find:
  %found_source = call ptr @line_of(ptr %c, ptr %skipped, ptr %skipped_there)
  %have_source = icmp ne ptr %found_source, null
  br i1 %have_source, label %make, label %fail
use:
  call void %incref(ptr %set_source)
  br label %make
make:
  %source = phi ptr [ %found_source, %find ], [ %set_source, %use ]
  store ptr %source, ptr %held2
  %list = KNOWN PyList_New
  %alloc = KNOWN PyType_GenericAlloc
  %outvars = call ptr %list(i64 1)
  store ptr %outvars, ptr %held3
  %var_class = KNOWN var
  %var = call ptr %alloc(ptr %var_class, i64 0)
  store ptr %var, ptr %held4
  %eqn_class = KNOWN eqn
  %eqn = call ptr %alloc(ptr %eqn_class, i64 0)
  store ptr %eqn, ptr %held5
  %tracer_class = KNOWN stage_tracer
  %tracer = call ptr %alloc(ptr %tracer_class, i64 0)
  store ptr %tracer, ptr %held6
  %no_outvars = icmp eq ptr %outvars, null
  %no_var = icmp eq ptr %var, null
  %no_eqn = icmp eq ptr %eqn, null
  %no_tracer = icmp eq ptr %tracer, null
  %lack1 = or i1 %no_outvars, %no_var
  %lack2 = or i1 %no_eqn, %no_tracer
  %lack = or i1 %lack1, %lack2
  br i1 %lack, label %fail, label %fill
fill:
  PUT %out %var Var.aval
  %out_items_p = getelementptr i8, ptr %outvars, i64 24
  %out_items = load ptr, ptr %out_items_p
  store ptr %var, ptr %out_items
  PUT %invars %eqn Eqn.invars
  PUT %outvars %eqn Eqn.outvars
  call void %incref(ptr %primitive)
  PUT %primitive %eqn Eqn.primitive
  call void %incref(ptr %params)
  PUT %params %eqn Eqn.params
  %effects = FIELD %primitive Primitive.effects
  call void %incref(ptr %effects)
  PUT %effects %eqn Eqn.effects
  PUT %source %eqn Eqn.source
  call void %incref(ptr %self)
  PUT %self %tracer StageTracer.owner
  call void %incref(ptr %var)
  PUT %var %tracer StageTracer.jaxpr_var
  call void %incref(ptr %out)
  PUT %out %tracer StageTracer.aval
  call void %incref(ptr %source)
  PUT %source %tracer StageTracer.source
  %held_eqns = FIELD %self StageTrace.eqns
  %gone = icmp eq ptr %held_eqns, null
  %eqns = select i1 %gone, ptr %none, ptr %held_eqns ; None takes no items, and that is said
  %append = KNOWN PyList_Append
  %status = call i32 %append(ptr %eqns, ptr %eqn)
  call void @hide(ptr %c, ptr %invars, ptr %outvars, ptr %var, ptr %eqn, ptr %params)
  call void %decref(ptr %eqn)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %end, label %lost
end:
  ret ptr %tracer
lost:
  call void %decref(ptr %tracer)
  ret ptr null
fail:
  %i = phi i64 [ 0, %entry ], [ 0, %derive ], [ 0, %find ], [ 0, %make ], [ %i1, %fail ]
  %held_p = getelementptr ptr, ptr %held, i64 %i
  %owned = load ptr, ptr %held_p
  call void %decref(ptr %owned)
  %i1 = add i64 %i, 1
  %again = icmp ult i64 %i1, 7
  br i1 %again, label %fail, label %failed
failed:
  ret ptr null
}

; METH_FASTCALL: (primitive, operands, params, out=None).
define ptr @record(ptr %self, ptr %given, i64 %n) #0 {
entry:
  %all = alloca [5 x ptr]
  %c = load ptr, ptr @recording
  %none = KNOWN none
  %with_out = icmp eq i64 %n, 4
  br i1 %with_out, label %four, label %fewer
four:
  %out_p = getelementptr i8, ptr %given, i64 24
  %fourth = load ptr, ptr %out_p
  br label %start
fewer:
  %three = icmp eq i64 %n, 3
  br i1 %three, label %start, label %slow
start:
  %out_given = phi ptr [ %fourth, %four ], [ %none, %fewer ]
  %primitive = load ptr, ptr %given
  %operands_p = getelementptr i8, ptr %given, i64 8
  %operands = load ptr, ptr %operands_p
  %params_p = getelementptr i8, ptr %given, i64 16
  %params = load ptr, ptr %params_p
  %primitive_type_p = getelementptr i8, ptr %primitive, i64 8
  %primitive_type = load ptr, ptr %primitive_type_p
  %primitive_class = KNOWN primitive
  %is_primitive = icmp eq ptr %primitive_type, %primitive_class
  %operands_type_p = getelementptr i8, ptr %operands, i64 8
  %operands_type = load ptr, ptr %operands_type_p
  %tuple_class = KNOWN tuple
  %is_tuple = icmp eq ptr %operands_type, %tuple_class
  %typed = and i1 %is_primitive, %is_tuple
  br i1 %typed, label %usual, label %slow
usual:
  %false = KNOWN false
  %runs = call i1 @takes(ptr %c, ptr %self)
  %several = FIELD %primitive Primitive.multiple_results
  %single = icmp eq ptr %several, %false
  %effects = FIELD %primitive Primitive.effects
  %no_effects = KNOWN no_effects
  %pure = icmp eq ptr %effects, %no_effects
  %both = and i1 %runs, %single
  %plain = and i1 %both, %pure
  br i1 %plain, label %go, label %slow
slow:
  store ptr %self, ptr %all
  %rest = getelementptr ptr, ptr %all, i64 1
  %bytes = mul i64 %n, 8
  %few = icmp ult i64 %n, 5
  br i1 %few, label %copy, label %many
copy:
  %j = phi i64 [ 0, %slow ], [ %j1, %copy_one ]
  %left = icmp ult i64 %j, %bytes
  br i1 %left, label %copy_one, label %python
copy_one:
  %j_from = getelementptr i8, ptr %given, i64 %j
  %j_value = load ptr, ptr %j_from
  %j_to = getelementptr i8, ptr %rest, i64 %j
  store ptr %j_value, ptr %j_to
  %j1 = add i64 %j, 8
  br label %copy
many:
  br label %python
python:
  ; Of too many arguments the function is given too few, and raises as well.
  %count = phi i64 [ %n, %copy ], [ 0, %many ]
  %total = add i64 %count, 1
  %slow_call = KNOWN PyObject_Vectorcall
  %method = KNOWN record
  %slow_result = call ptr %slow_call(ptr %method, ptr %all, i64 %total, ptr null)
  ret ptr %slow_result
go:
  %size_p = getelementptr i8, ptr %operands, i64 16
  %size = load i64, ptr %size_p
  %items = getelementptr i8, ptr %operands, i64 ITEMS
  %one = KNOWN one
  %two = KNOWN two
  %result = call ptr @write(ptr %c, ptr %self, ptr %primitive, ptr %items, i64 %size, ptr %params,
      ptr %out_given, ptr %one, ptr %two)
  ret ptr %result
}

; Whether this is a trace, the current one, and has not ended.
define internal i1 @current(ptr %c, ptr %trace) #0 {
entry:
  %value = alloca ptr
  store ptr null, ptr %value
  %get = KNOWN PyContextVar_Get
  %variable = KNOWN trace
  %status = call i32 %get(ptr %variable, ptr null, ptr %value)
  %now = load ptr, ptr %value
  %decref = KNOWN Py_DecRef
  call void %decref(ptr %now)
  %same = icmp eq ptr %now, %trace
  br i1 %same, label %look, label %end
look:
  %runs = call i1 @takes(ptr %c, ptr %trace)
  br label %end
end:
  %answer = phi i1 [ false, %entry ], [ %runs, %look ]
  ret i1 %answer
}

; METH_O, `x @ y` of a staged array.
define ptr @product(ptr %x, ptr %y) #0 {
entry:
  %operands = alloca [2 x ptr]
  store ptr %x, ptr %operands
  %second = getelementptr ptr, ptr %operands, i64 1
  store ptr %y, ptr %second
  %owner = FIELD %x StageTracer.owner
  %c = load ptr, ptr @recording
  %type_p = getelementptr i8, ptr %y, i64 8
  %type = load ptr, ptr %type_p
  %tracer = KNOWN stage_tracer
  %staged = icmp eq ptr %type, %tracer
  br i1 %staged, label %of_tracer, label %other
other:
  %array = KNOWN array_impl
  %concrete = icmp eq ptr %type, %array
  br i1 %concrete, label %of_array, label %python
of_tracer:
  %tracer_aval = FIELD %y StageTracer.aval
  br label %pair
of_array:
  %array_aval = FIELD %y ArrayImpl._aval
  br label %pair
pair:
  %right = phi ptr [ %tracer_aval, %of_tracer ], [ %array_aval, %of_array ]
  %left = FIELD %x StageTracer.aval
  %aval_class = KNOWN shaped_array
  %left_known = call i1 @is_a(ptr %left, ptr %aval_class)
  %right_known = call i1 @is_a(ptr %right, ptr %aval_class)
  %known_both = and i1 %left_known, %right_known
  br i1 %known_both, label %keyed, label %python
keyed:
  %new = KNOWN PyTuple_New
  %key = call ptr %new(i64 2)
  %made = icmp ne ptr %key, null
  br i1 %made, label %look, label %failed
look:
  %incref = KNOWN Py_IncRef
  %decref = KNOWN Py_DecRef
  call void %incref(ptr %left)
  call void %incref(ptr %right)
  %key_items = getelementptr i8, ptr %key, i64 ITEMS
  store ptr %left, ptr %key_items
  %key_second = getelementptr ptr, ptr %key_items, i64 1
  store ptr %right, ptr %key_second
  %get = KNOWN PyDict_GetItem
  %products = KNOWN products
  %found = call ptr %get(ptr %products, ptr %key)
  call void %decref(ptr %key)
  %known = icmp ne ptr %found, null
  br i1 %known, label %ask, label %python
ask:
  %now = call i1 @current(ptr %c, ptr %owner)
  br i1 %now, label %go, label %python
go:
  call void %incref(ptr %found)
  %facts = getelementptr i8, ptr %found, i64 ITEMS
  %params = load ptr, ptr %facts
  %out_p = getelementptr ptr, ptr %facts, i64 1
  %out = load ptr, ptr %out_p
  %primitive = KNOWN dot_general
  %zero = KNOWN zero
  %one = KNOWN one
  %result = call ptr @write(ptr %c, ptr %owner, ptr %primitive, ptr %operands, i64 2, ptr %params,
      ptr %out, ptr %zero, ptr %one)
  call void %decref(ptr %found)
  ret ptr %result
python:
  %call = KNOWN PyObject_Vectorcall
  %method = KNOWN product
  %slow = call ptr %call(ptr %method, ptr %operands, i64 2, ptr null)
  ret ptr %slow
failed:
  ret ptr null
}

; METH_O, a function of one array; self is (None, avals of results by the operand's,
; primitive, params, the complete function).
define ptr @apply_staged(ptr %self, ptr %x) #0 {
entry:
  %operands = alloca [1 x ptr]
  store ptr %x, ptr %operands
  %facts = getelementptr i8, ptr %self, i64 ITEMS
  %c = load ptr, ptr @recording
  %type_p = getelementptr i8, ptr %x, i64 8
  %type = load ptr, ptr %type_p
  %tracer = KNOWN stage_tracer
  %staged = icmp eq ptr %type, %tracer
  br i1 %staged, label %look, label %python
look:
  %aval = FIELD %x StageTracer.aval
  %aval_class = KNOWN shaped_array
  %shaped = call i1 @is_a(ptr %aval, ptr %aval_class)
  br i1 %shaped, label %find, label %python
find:
  %avals_p = getelementptr ptr, ptr %facts, i64 1
  %avals = load ptr, ptr %avals_p
  %get = KNOWN PyDict_GetItem
  %out = call ptr %get(ptr %avals, ptr %aval)
  %known = icmp ne ptr %out, null
  %none = KNOWN none
  %some = icmp ne ptr %out, %none
  %usual = and i1 %known, %some
  br i1 %usual, label %ask, label %python
ask:
  %owner = FIELD %x StageTracer.owner
  %now = call i1 @current(ptr %c, ptr %owner)
  br i1 %now, label %go, label %python
go:
  %primitive_p = getelementptr ptr, ptr %facts, i64 2
  %primitive = load ptr, ptr %primitive_p
  %params_p = getelementptr ptr, ptr %facts, i64 3
  %params = load ptr, ptr %params_p
  %one = KNOWN one
  %two = KNOWN two
  %result = call ptr @write(ptr %c, ptr %owner, ptr %primitive, ptr %operands, i64 1, ptr %params,
      ptr %out, ptr %one, ptr %two)
  ret ptr %result
python:
  %call = KNOWN PyObject_Vectorcall
  %complete_p = getelementptr ptr, ptr %facts, i64 4
  %complete = load ptr, ptr %complete_p
  %slow = call ptr %call(ptr %complete, ptr %operands, i64 1, ptr null)
  ret ptr %slow
}
"""


def text(offsets: tuple[int, ...], items: int) -> str:
    """The functions, and those of `walk_ir`. offsets: those of `SLOTS`; items: where the items of a
    tuple begin."""
    places = dict(zip(SLOTS, offsets, strict=True))
    lines: list[str] = []
    for line in (RECORD + walk_ir.WALK).splitlines():
        words = line.split()
        at = f"%at{len(lines)}"
        if len(words) > 2 and words[2] in ("FIELD", "KNOWN"):
            base, name = (words[3], words[4]) if words[2] == "FIELD" else ("%c", words[3])
            offset = places[name] if words[2] == "FIELD" else 8 * CONTEXT.index(name)
            lines.append(f"  {at} = getelementptr i8, ptr {base}, i64 {offset}")
            line = f"  {words[0]} = load ptr, ptr {at}"
        elif words and words[0] == "PUT":
            lines.append(f"  {at} = getelementptr i8, ptr {words[2]}, i64 {places[words[3]]}")
            line = f"  store ptr {words[1]}, ptr {at}"
        lines.append(line)
    whole = "\n".join(lines)
    return whole.replace("ITEMS", str(items)).replace("LINE_MASK", str(LINES - 1))
