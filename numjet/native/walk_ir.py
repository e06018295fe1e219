"""The walk over a program's equations (`cpu.graph.forms`) as LLVM IR: a row of numbers.

A number is a byte, or ESCAPE and four bytes where it does not fit. In the notation and with the
context of `native.record_ir`, in whose module it is compiled. `describe` gets the address of words:
a header (`cpu.graph.row`), a hash table from addresses to numbers (linear probing; an entry is a
key and a number), and room for the row. Variables are numbered as they are bound. What a primitive,
params, a literal and an aval are called is asked of Python once an object. The answer is True; None
means that Python has to do it: where operands do not stand in lists, something is neither variable
nor literal, a variable is not bound, or there is too little room.
"""

from __future__ import annotations

from numjet.cpu.graph.row import ESCAPE

# FAILED: an exception is set. LIMIT: numbers are above it.
_TABLE = """
define internal ptr @entry_of(ptr %h, i64 %key) #0 {
entry:
  %mask = load i64, ptr %h
  %mixed = mul i64 %key, -7046029254386353131
  %high = lshr i64 %mixed, 32
  br label %head
head:
  %i = phi i64 [ %high, %entry ], [ %i1, %next ]
  %slot = and i64 %i, %mask
  %at = shl i64 %slot, 4
  %place = add i64 %at, 64
  %p = getelementptr i8, ptr %h, i64 %place
  %found = load i64, ptr %p
  %same = icmp eq i64 %found, %key
  br i1 %same, label %end, label %other
other:
  %free = icmp eq i64 %found, 0
  br i1 %free, label %end, label %next
next:
  %i1 = add i64 %i, 1
  br label %head
end:
  ret ptr %p
}

; The number of an object, which `ask(given)` tells once.
define internal i64 @number_of(ptr %c, ptr %h, ptr %ask, ptr %object, ptr %given) #0 {
entry:
  %arguments = alloca [1 x ptr]
  %key = ptrtoint ptr %object to i64
  %p = call ptr @entry_of(ptr %h, i64 %key)
  %value_p = getelementptr i8, ptr %p, i64 8
  %found = load i64, ptr %p
  %hit = icmp eq i64 %found, %key
  br i1 %hit, label %known, label %new
known:
  %value = load i64, ptr %value_p
  ret i64 %value
new:
  %free_p = getelementptr i8, ptr %h, i64 8
  %free = load i64, ptr %free_p
  %any = icmp sgt i64 %free, 0
  br i1 %any, label %go, label %full
go:
  %less = sub i64 %free, 1
  store i64 %less, ptr %free_p
  store ptr %given, ptr %arguments
  %call = KNOWN PyObject_Vectorcall
  %answer = call ptr %call(ptr %ask, ptr %arguments, i64 1, ptr null)
  %answered = icmp ne ptr %answer, null
  br i1 %answered, label %keep, label %failed
keep:
  %as_long = KNOWN PyLong_AsLong
  %number = call i64 %as_long(ptr %answer)
  %decref = KNOWN Py_DecRef
  call void %decref(ptr %answer)
  ; -1 is also how an error shows.
  %minus = icmp eq i64 %number, -1
  br i1 %minus, label %check, label %note
check:
  %occurred = KNOWN PyErr_Occurred
  %error = call ptr %occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %failed, label %note
note:
  store i64 %key, ptr %p
  store i64 %number, ptr %value_p
  ret i64 %number
failed:
  ret i64 FAILED
full:
  ret i64 LIMIT
}

; Add a number to the row. Returns it, or why there is none.
define internal i64 @put(ptr %h, i64 %x) #0 {
entry:
  %good = icmp sgt i64 %x, LIMIT
  br i1 %good, label %look, label %bad
look:
  %cursor_p = getelementptr i8, ptr %h, i64 32
  %cursor = load i64, ptr %cursor_p
  %end_p = getelementptr i8, ptr %h, i64 40
  %end = load i64, ptr %end_p
  %most = add i64 %cursor, 5
  %room = icmp sle i64 %most, %end
  br i1 %room, label %size, label %full
size:
  %p = getelementptr i8, ptr %h, i64 %cursor
  %above = add i64 %x, 127
  %fits = icmp ult i64 %above, 255
  br i1 %fits, label %short, label %long
short:
  %byte = trunc i64 %x to i8
  store i8 %byte, ptr %p
  %next = add i64 %cursor, 1
  store i64 %next, ptr %cursor_p
  ret i64 %x
long:
  store i8 ESCAPE, ptr %p
  %rest = getelementptr i8, ptr %p, i64 1
  %word = trunc i64 %x to i32
  store i32 %word, ptr %rest, align 1
  store i64 %most, ptr %cursor_p
  ret i64 %x
full:
  ret i64 LIMIT
bad:
  ret i64 %x
}

; Number a variable. Returns the number.
define internal i64 @bind(ptr %h, ptr %var) #0 {
entry:
  %key = ptrtoint ptr %var to i64
  %p = call ptr @entry_of(ptr %h, i64 %key)
  %free_p = getelementptr i8, ptr %h, i64 8
  %free = load i64, ptr %free_p
  %any = icmp sgt i64 %free, 0
  br i1 %any, label %go, label %full
go:
  %less = sub i64 %free, 1
  store i64 %less, ptr %free_p
  %count_p = getelementptr i8, ptr %h, i64 16
  %count = load i64, ptr %count_p
  %value_p = getelementptr i8, ptr %p, i64 8
  store i64 %key, ptr %p
  store i64 %count, ptr %value_p
  %more = add i64 %count, 1
  store i64 %more, ptr %count_p
  ret i64 %count
full:
  ret i64 LIMIT
}
"""

# How many atoms a list holds, and a word for each. The lines of a function stand in its place:
# START before the loop; EACH from block `variable`, where the atom x is one, and block `other` to
# block `next`, with its %word; `bad` gives up.
_EACH = """
define internal i64 @NAME(ptr %c, ptr %h, ptr %atoms, ptr %ask) #0 {
entry:
  %list = KNOWN list
  %usual = call i1 @is_a(ptr %atoms, ptr %list)
  br i1 %usual, label %start, label %bad
start:
  %size_p = getelementptr i8, ptr %atoms, i64 16
  %size = load i64, ptr %size_p
  %items_p = getelementptr i8, ptr %atoms, i64 24
START  %begun = call i64 @put(ptr %h, i64 %size)
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k1, %next ]
  %status = phi i64 [ %begun, %start ], [ %written, %next ]
  %fine = icmp sgt i64 %status, LIMIT
  %left = icmp slt i64 %k, %size
  %on = and i1 %fine, %left
  br i1 %on, label %one, label %end
one:
  ; What is asked of Python may have changed the list.
  %still = load i64, ptr %size_p
  %inside = icmp slt i64 %k, %still
  br i1 %inside, label %item, label %bad
item:
  %items = load ptr, ptr %items_p
  %x_p = getelementptr ptr, ptr %items, i64 %k
  %x = load ptr, ptr %x_p
  %type_p = getelementptr i8, ptr %x, i64 8
  %type = load ptr, ptr %type_p
  %var = KNOWN var
  %is_var = icmp eq ptr %type, %var
  br i1 %is_var, label %variable, label %other
EACH  %written = call i64 @put(ptr %h, i64 %word)
  %k1 = add i64 %k, 1
  br label %head
end:
  ret i64 %status
bad:
  ret i64 LIMIT
}
"""


def _each(name: str, start: str, each: str) -> str:
    """The function `name` over the atoms of a list."""
    text = _EACH.replace("NAME", name)
    return text.replace("START", start.lstrip("\n")).replace("EACH", each.lstrip("\n"))


# Operands: what they are numbered, or how many numbers further back.
_OPERANDS = _each(
    "operands",
    """
  %count_p = getelementptr i8, ptr %h, i64 16
  %count = load i64, ptr %count_p
  %first_p = getelementptr i8, ptr %h, i64 24
  %first = load i64, ptr %first_p
""",
    """
variable:
  %key = ptrtoint ptr %x to i64
  %p = call ptr @entry_of(ptr %h, i64 %key)
  %found = load i64, ptr %p
  %bound = icmp eq i64 %found, %key
  br i1 %bound, label %place, label %bad
place:
  %value_p = getelementptr i8, ptr %p, i64 8
  %number = load i64, ptr %value_p
  %back = sub i64 %number, %count
  %outer = icmp slt i64 %number, %first
  %where = select i1 %outer, i64 %number, i64 %back
  br label %next
other:
  %literal = KNOWN literal
  %is_literal = icmp eq ptr %type, %literal
  br i1 %is_literal, label %constant, label %bad
constant:
  %content = FIELD %x Literal.value
  %filled = icmp ne ptr %content, null
  br i1 %filled, label %ask_it, label %bad
ask_it:
  %code = call i64 @number_of(ptr %c, ptr %h, ptr %ask, ptr %content, ptr %x)
  br label %next
next:
  %word = phi i64 [ %where, %place ], [ %code, %ask_it ]
""",
)

# Results: their avals; they are numbered here.
_RESULTS = _each(
    "results",
    "",
    """
variable:
  %number = call i64 @bind(ptr %h, ptr %x)
  %bound = icmp sgt i64 %number, LIMIT
  br i1 %bound, label %next, label %bad
other:
  br label %bad
next:
  %found_aval = FIELD %x Var.aval
  %no_aval = icmp eq ptr %found_aval, null
  %nothing = KNOWN none
  %aval = select i1 %no_aval, ptr %nothing, ptr %found_aval
  %word = call i64 @number_of(ptr %c, ptr %h, ptr %ask, ptr %aval, ptr %aval)
""",
)

_DESCRIBE = """
; Whether the header of an array of words says what is true of it.
define internal i1 @sound(ptr %c, ptr %words) #0 {
  %class = KNOWN ndarray
  %is_array = call i1 @is_a(ptr %words, ptr %class)
  br i1 %is_array, label %array, label %no
array:
  %rank_p = getelementptr i8, ptr %words, i64 24
  %rank = load i32, ptr %rank_p
  %flat = icmp eq i32 %rank, 1
  %flags_p = getelementptr i8, ptr %words, i64 64
  %flags = load i32, ptr %flags_p
  %good_flags = and i32 %flags, 1281 ; contiguous, aligned, writeable
  %plain = icmp eq i32 %good_flags, 1281
  %both = and i1 %flat, %plain
  br i1 %both, label %sized, label %no
sized:
  %dims_p = getelementptr i8, ptr %words, i64 32
  %dims = load ptr, ptr %dims_p
  %bytes = load i64, ptr %dims ; of words of one byte, the fewest that there may be
  %head = icmp sge i64 %bytes, 64
  br i1 %head, label %read, label %no
read:
  %h_p = getelementptr i8, ptr %words, i64 16
  %h = load ptr, ptr %h_p
  %mask = load i64, ptr %h
  %free_p = getelementptr i8, ptr %h, i64 8
  %free = load i64, ptr %free_p
  %cursor_p = getelementptr i8, ptr %h, i64 32
  %cursor = load i64, ptr %cursor_p
  %end_p = getelementptr i8, ptr %h, i64 40
  %end = load i64, ptr %end_p
  %size = add i64 %mask, 1
  %power = and i64 %mask, %size
  %is_power = icmp eq i64 %power, 0
  %small = icmp ult i64 %mask, 4294967295
  %room = icmp ult i64 %free, %size ; a table that is never full
  %table = shl i64 %size, 4
  %first = add i64 %table, 64
  %behind = icmp uge i64 %cursor, %first
  %ordered = icmp ule i64 %cursor, %end
  %inside = icmp ule i64 %end, %bytes
  %a1 = and i1 %is_power, %small
  %a2 = and i1 %a1, %room
  %a3 = and i1 %a2, %behind
  %a4 = and i1 %a3, %ordered
  %a5 = and i1 %a4, %inside
  ret i1 %a5
no:
  ret i1 false
}

; METH_FASTCALL: (operands, equations, results, the words, ask primitive, ask params of an equation,
; ask literal, ask aval); the first three are lists, the fourth an array of bytes.
define ptr @describe(ptr %self, ptr %given, i64 %n) #0 {
entry:
  %c = load ptr, ptr @recording
  %eight = icmp eq i64 %n, 8
  br i1 %eight, label %lists, label %python
lists:
  %args = load ptr, ptr %given
  %eqns_p = getelementptr i8, ptr %given, i64 8
  %eqns = load ptr, ptr %eqns_p
  %outs_p = getelementptr i8, ptr %given, i64 16
  %outs = load ptr, ptr %outs_p
  %words_p = getelementptr i8, ptr %given, i64 24
  %words = load ptr, ptr %words_p
  %list = KNOWN list
  %args_list = call i1 @is_a(ptr %args, ptr %list)
  %eqns_list = call i1 @is_a(ptr %eqns, ptr %list)
  %outs_list = call i1 @is_a(ptr %outs, ptr %list)
  %words_sound = call i1 @sound(ptr %c, ptr %words)
  %two_lists = and i1 %args_list, %eqns_list
  %all_lists = and i1 %two_lists, %outs_list
  %usual = and i1 %all_lists, %words_sound
  br i1 %usual, label %begin, label %python
begin:
  %h_p = getelementptr i8, ptr %words, i64 16
  %h = load ptr, ptr %h_p
  %ask_primitive_p = getelementptr i8, ptr %given, i64 32
  %ask_primitive = load ptr, ptr %ask_primitive_p
  %ask_params_p = getelementptr i8, ptr %given, i64 40
  %ask_params = load ptr, ptr %ask_params_p
  %ask_literal_p = getelementptr i8, ptr %given, i64 48
  %ask_literal = load ptr, ptr %ask_literal_p
  %ask_aval_p = getelementptr i8, ptr %given, i64 56
  %ask_aval = load ptr, ptr %ask_aval_p
  %args_size_p = getelementptr i8, ptr %args, i64 16
  %args_size = load i64, ptr %args_size_p
  %args_items_p = getelementptr i8, ptr %args, i64 24
  %args_items = load ptr, ptr %args_items_p
  br label %args_head
args_head:
  %a = phi i64 [ 0, %begin ], [ %a1, %args_next ]
  %args_left = icmp slt i64 %a, %args_size
  br i1 %args_left, label %args_one, label %start
args_one:
  %arg_p = getelementptr ptr, ptr %args_items, i64 %a
  %arg = load ptr, ptr %arg_p
  %arg_number = call i64 @bind(ptr %h, ptr %arg)
  %arg_bound = icmp sgt i64 %arg_number, LIMIT
  br i1 %arg_bound, label %args_next, label %python
args_next:
  %a1 = add i64 %a, 1
  br label %args_head
start:
  %size_p = getelementptr i8, ptr %eqns, i64 16
  %items_p = getelementptr i8, ptr %eqns, i64 24
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k1, %next ]
  ; What is asked of Python may change the list.
  %size = load i64, ptr %size_p
  %left = icmp slt i64 %k, %size
  br i1 %left, label %one, label %last
one:
  %items = load ptr, ptr %items_p
  %eqn_p = getelementptr ptr, ptr %items, i64 %k
  %eqn = load ptr, ptr %eqn_p
  %eqn_type_p = getelementptr i8, ptr %eqn, i64 8
  %eqn_type = load ptr, ptr %eqn_type_p
  %eqn_class = KNOWN eqn
  %is_eqn = icmp eq ptr %eqn_type, %eqn_class
  br i1 %is_eqn, label %named, label %python
named:
  %primitive = FIELD %eqn Eqn.primitive
  %params = FIELD %eqn Eqn.params
  %primitive_there = icmp ne ptr %primitive, null
  %dict = KNOWN dict
  %params_dict = call i1 @is_a(ptr %params, ptr %dict)
  %filled = and i1 %primitive_there, %params_dict
  br i1 %filled, label %name_it, label %python
name_it:
  %name = call i64 @number_of(ptr %c, ptr %h, ptr %ask_primitive, ptr %primitive, ptr %primitive)
  %s1 = call i64 @put(ptr %h, i64 %name)
  %good1 = icmp sgt i64 %s1, LIMIT
  br i1 %good1, label %params_of, label %stop
params_of:
  %used_p = getelementptr i8, ptr %params, i64 16
  %used = load i64, ptr %used_p
  %some = icmp ne i64 %used, 0
  br i1 %some, label %known, label %kind
known:
  %told = call i64 @number_of(ptr %c, ptr %h, ptr %ask_params, ptr %params, ptr %eqn)
  br label %kind
kind:
  %number = phi i64 [ -1, %params_of ], [ %told, %known ]
  %s2 = call i64 @put(ptr %h, i64 %number)
  %good2 = icmp sgt i64 %s2, LIMIT
  br i1 %good2, label %reads, label %stop
reads:
  %invars = FIELD %eqn Eqn.invars
  %s3 = call i64 @operands(ptr %c, ptr %h, ptr %invars, ptr %ask_literal)
  %good3 = icmp sgt i64 %s3, LIMIT
  br i1 %good3, label %writes, label %stop
writes:
  %outvars = FIELD %eqn Eqn.outvars
  %s4 = call i64 @results(ptr %c, ptr %h, ptr %outvars, ptr %ask_aval)
  %good4 = icmp sgt i64 %s4, LIMIT
  br i1 %good4, label %next, label %stop
next:
  %k1 = add i64 %k, 1
  br label %head
last:
  %s5 = call i64 @operands(ptr %c, ptr %h, ptr %outs, ptr %ask_literal)
  %good5 = icmp sgt i64 %s5, LIMIT
  br i1 %good5, label %all, label %stop
all:
  %incref = KNOWN Py_IncRef
  %true = KNOWN true
  call void %incref(ptr %true)
  ret ptr %true
stop:
  %s = phi i64 [ %s1, %name_it ], [ %s2, %kind ], [ %s3, %reads ], [ %s4, %writes ], [ %s5, %last ]
  %raised = icmp eq i64 %s, FAILED
  br i1 %raised, label %error, label %python
error:
  ret ptr null
python:
  %none = KNOWN none
  %take = KNOWN Py_IncRef
  call void %take(ptr %none)
  ret ptr %none
}
"""

WALK = "".join([_TABLE, _OPERANDS, _RESULTS, _DESCRIBE])
for _name, _value in (("FAILED", -(1 << 41)), ("LIMIT", -(1 << 40)), ("ESCAPE", ESCAPE)):
    WALK = WALK.replace(_name, str(_value))
