"""Operators and functions on small concrete arrays, as LLVM IR.

`native.operators` compiles it (with the parts in `fast_ir_arrays`) and fills the tables it reads,
with entries of `fast_entries`. A call looks its operands' avals up in the operation's table and
runs the inner loop that NumPy has for them, on memory of a new array; whatever is not in the table
goes to the fallback. Nothing here refers to a symbol: the interpreter's functions and objects stand
in a context table.

Words of an operation's table (`TABLE`), then its slots of three words each: the keys of the left
and the right operand (an aval, the type of a Python scalar, or 0) and the entry. An entry's words
are named in `ENTRY`: the inner loop is called `outer` times with its arrays of counts and steps, on
operands and results that lie `ostep`s apart. A reduction's results are filled first, `fill` of them
with `init` or (`fill_own`) with elements of the operand, of which the loop then leaves out the
first `skip` bytes.
"""

from __future__ import annotations

from typing import Any

from numjet.native import record_ir as trace_ir, walk_ir
from numjet.native.arrays_ir import AT, MOVE, OTHERWISE, UPDATE, WHERE

CONTEXT = (
    "Py_IncRef Py_DecRef PyObject_Vectorcall PyContextVar_Get PyLong_AsLongLong PyErr_Occurred "
    "PyErr_Clear PyType_GenericAlloc PySlice_Unpack PySlice_AdjustIndices new_array set_base trace "
    "eval checks zero array ndarray int slice at_helper at_ref"
).split()
TABLE = ["context", "fallback", "check_trace", "operands"]
SLOTS = 64
# Python integers beyond this do not fit the default integer type.
INT_LIMIT = 2**31
ENTRY = (
    "counts steps loop data aval dtype rank dims left right out_place outer ostep0 ostep1 ostep2 "
    "fill fill_size fill_step fill_own init skip key_x key_y row_loop row_data row_counts "
    "row_steps row_bytes rows row_binary"
).split()
MAX_RANK = 8  # of arrays that are indexed here
# How an operand is read: an array, or a Python scalar made a number of the array's type.
ARRAY, FLOAT_F32, FLOAT_F64, INT_F32, INT_F64, INT_I32, INT_I64 = range(7)

# Methods are handed an object alone, which may be anybody's: what they know of is found here.
_TABLES = """
@tables = hidden global ptr null
"""

_OPERAND = (
    """
define internal ptr @operand(ptr %c, ptr %x, i64 %code, ptr %buffer) #0 {
  switch i64 %code, label %none [
    i64 0, label %array i64 1, label %float_single i64 2, label %float_double
    i64 3, label %int i64 4, label %int i64 5, label %int i64 6, label %int ]
array:
  %value_p = getelementptr i8, ptr %x, i64 VALUE
  %value = load ptr, ptr %value_p
  %there = icmp ne ptr %value, null
  br i1 %there, label %typed, label %none
typed:
  %kind_p = getelementptr i8, ptr %value, i64 8
  %kind = load ptr, ptr %kind_p
  %ndarray = load ptr, ptr CONTEXT_ndarray
  %is_array = icmp eq ptr %kind, %ndarray
  br i1 %is_array, label %look, label %none
look:
  %flags_p = getelementptr i8, ptr %value, i64 64
  %flags = load i32, ptr %flags_p
  %both = and i32 %flags, 257
  %dense = icmp eq i32 %both, 257
  %data_p = getelementptr i8, ptr %value, i64 16
  %data = load ptr, ptr %data_p
  br i1 %dense, label %good, label %none
good:
  ret ptr %data
float_single:
  %d_p = getelementptr i8, ptr %x, i64 16
  %d = load double, ptr %d_p
  %s = fptrunc double %d to float
  store float %s, ptr %buffer
  ret ptr %buffer
float_double:
  %e_p = getelementptr i8, ptr %x, i64 16
  %e = load double, ptr %e_p
  store double %e, ptr %buffer
  ret ptr %buffer
int:
  %as_long = load ptr, ptr CONTEXT_PyLong_AsLongLong
  %i = call i64 %as_long(ptr %x)
  %low = icmp sge i64 %i, -INT_LIMIT
  %high = icmp slt i64 %i, INT_LIMIT
  %fits = and i1 %low, %high
  br i1 %fits, label %convert, label %clear
clear:
  %clear_p = load ptr, ptr CONTEXT_PyErr_Clear
  call void %clear_p()
  ret ptr null
convert:
  ; -1 is also how an error shows, which cannot be told from it by the value.
  %minus = icmp eq i64 %i, -1
  br i1 %minus, label %check, label %store
check:
  %occurred = load ptr, ptr CONTEXT_PyErr_Occurred
  %error = call ptr %occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %clear, label %store
store:
  switch i64 %code, label %store_i64 [
    i64 3, label %store_f32 i64 4, label %store_f64 i64 5, label %store_i32 ]
store_f32:
  %f = sitofp i64 %i to float
  store float %f, ptr %buffer
  ret ptr %buffer
store_f64:
  %g = sitofp i64 %i to double
  store double %g, ptr %buffer
  ret ptr %buffer
store_i32:
  %t = trunc i64 %i to i32
  store i32 %t, ptr %buffer
  ret ptr %buffer
store_i64:
  store i64 %i, ptr %buffer
  ret ptr %buffer
none:
  ret ptr null
}

define internal i64 @key(ptr %c, ptr %x) #0 {
  ; A slot that nobody has filled; no entry has this key.
  %none = icmp eq ptr %x, null
  br i1 %none, label %unknown, label %look
unknown:
  ret i64 0
look:
  %type_p = getelementptr i8, ptr %x, i64 8
  %type = load ptr, ptr %type_p
  %array = load ptr, ptr CONTEXT_array
  %is = icmp eq ptr %type, %array
  %aval_p = getelementptr i8, ptr %x, i64 AVAL
  br i1 %is, label %aval, label %other
aval:
  %k = load i64, ptr %aval_p
  ret i64 %k
other:
  %t = ptrtoint ptr %type to i64
  ret i64 %t
}

; Whether nothing traces (where that is to be asked) and no results are checked.
define internal i1 @plain(ptr %c, i64 %check_trace) #0 {
  %value = alloca ptr
  %checks = load ptr, ptr CONTEXT_checks
  %count_p = getelementptr i8, ptr %checks, i64 16
  %count = load i64, ptr %count_p
  %some = icmp ne i64 %count, 0
  br i1 %some, label %flags, label %no
flags:
  %items_p = getelementptr i8, ptr %checks, i64 24
  %items = load ptr, ptr %items_p
  %flag = load ptr, ptr %items
  %zero = load ptr, ptr CONTEXT_zero
  %unchecked = icmp eq ptr %flag, %zero
  br i1 %unchecked, label %ask, label %no
ask:
  %asked = icmp ne i64 %check_trace, 0
  br i1 %asked, label %trace, label %yes
trace:
  %var = load ptr, ptr CONTEXT_trace
  %get = load ptr, ptr CONTEXT_PyContextVar_Get
  store ptr null, ptr %value
  %r = call i32 %get(ptr %var, ptr null, ptr %value)
  %now = load ptr, ptr %value
  %decref = load ptr, ptr CONTEXT_Py_DecRef
  call void %decref(ptr %now)
  %eval = load ptr, ptr CONTEXT_eval
  %same = icmp eq ptr %now, %eval
  ret i1 %same
yes:
  ret i1 true
no:
  ret i1 false
}

; The entry for operands with these keys, or null.
define internal ptr @find(ptr %t, i64 %kx, i64 %ky) #0 {
  %a = lshr i64 %kx, 4
  %b = lshr i64 %kx, 10
  %c = lshr i64 %ky, 5
  %d = lshr i64 %ky, 11
  %ab = xor i64 %a, %b
  %cd = xor i64 %c, %d
  %mix = xor i64 %ab, %cd
  %h = and i64 %mix, SLOT_MASK
  %first_at = mul i64 %h, 24
  %base = getelementptr i8, ptr %t, i64 HEADER
  %p = getelementptr i8, ptr %base, i64 %first_at
  %x1 = load i64, ptr %p
  %y1_p = getelementptr i64, ptr %p, i64 1
  %y1 = load i64, ptr %y1_p
  %ex1 = icmp eq i64 %x1, %kx
  %ey1 = icmp eq i64 %y1, %ky
  %hit1 = and i1 %ex1, %ey1
  br i1 %hit1, label %one, label %next
one:
  %e1_p = getelementptr i64, ptr %p, i64 2
  %e1 = load ptr, ptr %e1_p
  ret ptr %e1
next:
  %h2 = xor i64 %h, 1
  %second_at = mul i64 %h2, 24
  %q = getelementptr i8, ptr %base, i64 %second_at
  %x2 = load i64, ptr %q
  %y2_p = getelementptr i64, ptr %q, i64 1
  %y2 = load i64, ptr %y2_p
  %ex2 = icmp eq i64 %x2, %kx
  %ey2 = icmp eq i64 %y2, %ky
  %hit2 = and i1 %ex2, %ey2
  %e2_p = getelementptr i64, ptr %q, i64 2
  %e2 = load ptr, ptr %e2_p
  %e = select i1 %hit2, ptr %e2, ptr null
  ret ptr %e
}

; An Array around `value`, which is taken over; null (and no error set) when there is no memory.
define internal ptr @wrap(ptr %c, ptr %value, ptr %aval) #0 {
  %none = icmp eq ptr %value, null
  br i1 %none, label %fail, label %make
make:
  %alloc = load ptr, ptr CONTEXT_PyType_GenericAlloc
  %type = load ptr, ptr CONTEXT_array
  %out = call ptr %alloc(ptr %type, i64 0)
  %made = icmp ne ptr %out, null
  br i1 %made, label %fill, label %drop
fill:
  %incref = load ptr, ptr CONTEXT_Py_IncRef
  call void %incref(ptr %aval)
  %aval_p = getelementptr i8, ptr %out, i64 AVAL
  store ptr %aval, ptr %aval_p
  %value_p = getelementptr i8, ptr %out, i64 VALUE
  store ptr %value, ptr %value_p
  ret ptr %out
drop:
  %decref = load ptr, ptr CONTEXT_Py_DecRef
  call void %decref(ptr %value)
  br label %fail
fail:
  %clear = load ptr, ptr CONTEXT_PyErr_Clear
  call void %clear()
  ret ptr null
}

; A new NumPy array for an entry's results, or null with an error set.
define internal ptr @empty(ptr %c, ptr %e) #0 {
  %dtype = load ptr, ptr ENTRY_dtype
  %incref = load ptr, ptr CONTEXT_Py_IncRef
  call void %incref(ptr %dtype)
  %new = load ptr, ptr CONTEXT_new_array
  %ndarray = load ptr, ptr CONTEXT_ndarray
  %rank = load i64, ptr ENTRY_rank
  %rank32 = trunc i64 %rank to i32
  %dims = load ptr, ptr ENTRY_dims
  %value = call ptr %new(ptr %ndarray, ptr %dtype, i32 %rank32, ptr %dims, ptr null, ptr null,
                         i32 0, ptr null)
  ret ptr %value
}

; The results of a reduction before it.
define internal void @fill(ptr %e, ptr %out, ptr %x) #0 {
entry:
  %n = load i64, ptr ENTRY_fill
  %size = load i64, ptr ENTRY_fill_size
  %step = load i64, ptr ENTRY_fill_step
  %own = load i64, ptr ENTRY_fill_own
  %given = icmp eq i64 %own, 0
  %from = select i1 %given, ptr ENTRY_init, ptr %x
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %from_at = mul i64 %k, %step
  %p = getelementptr i8, ptr %from, i64 %from_at
  %to_at = mul i64 %k, %size
  %q = getelementptr i8, ptr %out, i64 %to_at
"""
    + MOVE
    + """\
next:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %head, label %done
done:
  ret void
}

; NumPy's inner loop on the operands and results at `pointers`, `outer` times.
define internal void @sweep(ptr %e, ptr %pointers) #0 {
entry:
  %loop = load ptr, ptr ENTRY_loop
  %data = load ptr, ptr ENTRY_data
  %outer = load i64, ptr ENTRY_outer
  %counts = load ptr, ptr ENTRY_counts
  %steps = load ptr, ptr ENTRY_steps
  %osteps_p = getelementptr i8, ptr ENTRY_ostep0, i64 0
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %again ]
  call void %loop(ptr %pointers, ptr %counts, ptr %steps, ptr %data)
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %outer
  br i1 %more, label %again, label %done
again:
  %p0 = load ptr, ptr %pointers
  %s0 = load i64, ptr %osteps_p
  %q0 = getelementptr i8, ptr %p0, i64 %s0
  store ptr %q0, ptr %pointers
  %pointer1 = getelementptr ptr, ptr %pointers, i64 1
  %p1 = load ptr, ptr %pointer1
  %ostep1_p = getelementptr i64, ptr %osteps_p, i64 1
  %s1 = load i64, ptr %ostep1_p
  %q1 = getelementptr i8, ptr %p1, i64 %s1
  store ptr %q1, ptr %pointer1
  %pointer2 = getelementptr ptr, ptr %pointers, i64 2
  %p2 = load ptr, ptr %pointer2
  %ostep2_p = getelementptr i64, ptr %osteps_p, i64 2
  %s2 = load i64, ptr %ostep2_p
  %q2 = getelementptr i8, ptr %p2, i64 %s2
  store ptr %q2, ptr %pointer2
  br label %head
done:
  ret void
}

; Whether NumPy's inner loop has set an error, which is dropped with the results: what Python does
; in its place raises it again.
define internal i1 @failed(ptr %c, ptr %value) #0 {
  %occurred = load ptr, ptr CONTEXT_PyErr_Occurred
  %error = call ptr %occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %drop, label %fine
drop:
  %clear = load ptr, ptr CONTEXT_PyErr_Clear
  call void %clear()
  %decref = load ptr, ptr CONTEXT_Py_DecRef
  call void %decref(ptr %value)
  ret i1 true
fine:
  ret i1 false
}

; The operation on x (and y, unless null), or null where the fallback is to be taken.
define internal ptr @apply(ptr %t, ptr %x, ptr %y) #0 {
entry:
  %buffers = alloca [2 x i64]
  %pointers = alloca [3 x ptr]
  %c = load ptr, ptr %t
  %check_p = getelementptr i64, ptr %t, i64 2
  %check = load i64, ptr %check_p
  %kx = call i64 @key(ptr %c, ptr %x)
  %unary = icmp eq ptr %y, null
  br i1 %unary, label %search, label %right_key
right_key:
  %ky = call i64 @key(ptr %c, ptr %y)
  br label %search
search:
  %k2 = phi i64 [ 0, %entry ], [ %ky, %right_key ]
  %e = call ptr @find(ptr %t, i64 %kx, i64 %k2)
  %known = icmp ne ptr %e, null
  br i1 %known, label %state, label %miss
state:
  %plain = call i1 @plain(ptr %c, i64 %check)
  br i1 %plain, label %operands, label %miss
operands:
  %left = load i64, ptr ENTRY_left
  %x_data = call ptr @operand(ptr %c, ptr %x, i64 %left, ptr %buffers)
  store ptr %x_data, ptr %pointers
  %x_good = icmp ne ptr %x_data, null
  br i1 %x_good, label %second, label %miss
second:
  br i1 %unary, label %result, label %second_read
second_read:
  %right = load i64, ptr ENTRY_right
  %buffer2 = getelementptr i64, ptr %buffers, i64 1
  %y_data = call ptr @operand(ptr %c, ptr %y, i64 %right, ptr %buffer2)
  %pointer2 = getelementptr ptr, ptr %pointers, i64 1
  store ptr %y_data, ptr %pointer2
  %y_good = icmp ne ptr %y_data, null
  br i1 %y_good, label %result, label %miss
result:
  %value = call ptr @empty(ptr %c, ptr %e)
  %made = icmp ne ptr %value, null
  br i1 %made, label %run, label %wrap
run:
  %out_data_p = getelementptr i8, ptr %value, i64 16
  %out_data = load ptr, ptr %out_data_p
  %place = load i64, ptr ENTRY_out_place
  %out_p = getelementptr ptr, ptr %pointers, i64 %place
  store ptr %out_data, ptr %out_p
  %fill = load i64, ptr ENTRY_fill
  %elementwise = icmp eq i64 %fill, 0
  br i1 %elementwise, label %sweep, label %reduce
reduce:
  call void @fill(ptr %e, ptr %out_data, ptr %x_data)
  store ptr %out_data, ptr %pointers
  %skip = load i64, ptr ENTRY_skip
  %rest = getelementptr i8, ptr %x_data, i64 %skip
  %reduced_p = getelementptr ptr, ptr %pointers, i64 1
  store ptr %rest, ptr %reduced_p
  br label %sweep
sweep:
  call void @sweep(ptr %e, ptr %pointers)
  %failed = call i1 @failed(ptr %c, ptr %value)
  br i1 %failed, label %miss, label %wrap
wrap:
  %aval = load ptr, ptr ENTRY_aval
  %out = call ptr @wrap(ptr %c, ptr %value, ptr %aval)
  ret ptr %out
miss:
  ret ptr null
}

define internal ptr @otherwise(ptr %t, ptr %args, i64 %n, ptr %names) #0 {
  %c = load ptr, ptr %t
  %call = load ptr, ptr CONTEXT_PyObject_Vectorcall
  %fallback_p = getelementptr i64, ptr %t, i64 1
  %fallback = load ptr, ptr %fallback_p
  %r = call ptr %call(ptr %fallback, ptr %args, i64 %n, ptr %names)
  ret ptr %r
}

; METH_FASTCALL | METH_KEYWORDS; self is a tuple that begins with the table's array.
define ptr @function(ptr %self, ptr %args, i64 %n, ptr %names) #0 {
  %holder_p = getelementptr i8, ptr %self, i64 ITEMS
  %holder = load ptr, ptr %holder_p
  %t_p = getelementptr i8, ptr %holder, i64 16
  %t = load ptr, ptr %t_p
  %operands_p = getelementptr i64, ptr %t, i64 3
  %operands = load i64, ptr %operands_p
  %given = icmp eq i64 %n, %operands
  %unnamed = icmp eq ptr %names, null
  %fits = and i1 %given, %unnamed
  br i1 %fits, label %read, label %slow
read:
  %x = load ptr, ptr %args
  %binary = icmp eq i64 %operands, 2
  br i1 %binary, label %two, label %go
two:
  %y_p = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %y_p
  br label %go
go:
  %second = phi ptr [ null, %read ], [ %y, %two ]
  %out = call ptr @apply(ptr %t, ptr %x, ptr %second)
"""
    + OTHERWISE
)

# x[index] for an integer or a slice (METH_O): a view of x's array. Its table's right keys are the
# type `int`, and for slices `range_key` of the number of rows they leave.
_GETITEM = """
define internal ptr @view(ptr %c, ptr %of, i32 %rank, ptr %dims, ptr %strides, i64 %offset,
                          ptr %aval) #0 {
  %dtype_p = getelementptr i8, ptr %of, i64 56
  %dtype = load ptr, ptr %dtype_p
  %incref = load ptr, ptr CONTEXT_Py_IncRef
  call void %incref(ptr %dtype)
  %flags_p = getelementptr i8, ptr %of, i64 64
  %flags = load i32, ptr %flags_p
  %writeable = and i32 %flags, 1024
  %data_p = getelementptr i8, ptr %of, i64 16
  %data = load ptr, ptr %data_p
  %start = getelementptr i8, ptr %data, i64 %offset
  %ndarray = load ptr, ptr CONTEXT_ndarray
  %new = load ptr, ptr CONTEXT_new_array
  %value = call ptr %new(ptr %ndarray, ptr %dtype, i32 %rank, ptr %dims, ptr %strides, ptr %start,
                         i32 %writeable, ptr null)
  %made = icmp ne ptr %value, null
  br i1 %made, label %based, label %wrapped
based:
  call void %incref(ptr %of)
  %set_base = load ptr, ptr CONTEXT_set_base
  %status = call i32 %set_base(ptr %value, ptr %of)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %wrapped, label %drop
drop:
  %decref = load ptr, ptr CONTEXT_Py_DecRef
  call void %decref(ptr %value)
  br label %wrapped
wrapped:
  %whole = phi ptr [ null, %0 ], [ %value, %based ], [ null, %drop ]
  %out = call ptr @wrap(ptr %c, ptr %whole, ptr %aval)
  ret ptr %out
}

define internal ptr @rows(ptr %t, ptr %self, ptr %index) #0 {
  %ints = alloca [3 x i64]
  %dims = alloca [MAX_RANK x i64]
  %strides = alloca [MAX_RANK x i64]
  %k = alloca i64
  %c = load ptr, ptr %t
  %plain = call i1 @plain(ptr %c, i64 1)
  br i1 %plain, label %read, label %miss
read:
  %value_p = getelementptr i8, ptr %self, i64 VALUE
  %value = load ptr, ptr %value_p
  %there = icmp ne ptr %value, null
  br i1 %there, label %typed, label %miss
typed:
  %value_type_p = getelementptr i8, ptr %value, i64 8
  %value_type = load ptr, ptr %value_type_p
  %ndarray = load ptr, ptr CONTEXT_ndarray
  %is_array = icmp eq ptr %value_type, %ndarray
  br i1 %is_array, label %ranked, label %miss
ranked:
  %rank_p = getelementptr i8, ptr %value, i64 24
  %rank32 = load i32, ptr %rank_p
  %rank = sext i32 %rank32 to i64
  %low = icmp sge i64 %rank, 1
  %high = icmp sle i64 %rank, MAX_RANK
  %fits = and i1 %low, %high
  br i1 %fits, label %kind, label %miss
kind:
  %dims_p = getelementptr i8, ptr %value, i64 32
  %own_dims = load ptr, ptr %dims_p
  %strides_p = getelementptr i8, ptr %value, i64 40
  %own_strides = load ptr, ptr %strides_p
  %n = load i64, ptr %own_dims
  %stride = load i64, ptr %own_strides
  %aval_p = getelementptr i8, ptr %self, i64 AVAL
  %aval = load i64, ptr %aval_p
  %type_p = getelementptr i8, ptr %index, i64 8
  %type = load ptr, ptr %type_p
  %int_type = load ptr, ptr CONTEXT_int
  %is_int = icmp eq ptr %type, %int_type
  br i1 %is_int, label %int, label %other
int:
  %int_key = ptrtoint ptr %int_type to i64
  %row = call ptr @find(ptr %t, i64 %aval, i64 %int_key)
  %row_known = icmp ne ptr %row, null
  br i1 %row_known, label %position, label %miss
position:
  %as_long = load ptr, ptr CONTEXT_PyLong_AsLongLong
  %given = call i64 %as_long(ptr %index)
  %minus = icmp eq i64 %given, -1
  br i1 %minus, label %check, label %bound
check:
  %occurred = load ptr, ptr CONTEXT_PyErr_Occurred
  %error = call ptr %occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %clear, label %bound
bound:
  %negative = icmp slt i64 %given, 0
  %from_end = add i64 %given, %n
  %i = select i1 %negative, i64 %from_end, i64 %given
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %take_row, label %miss
take_row:
  %row_offset = mul i64 %i, %stride
  %row_rank = sub i32 %rank32, 1
  %row_dims = getelementptr i64, ptr %own_dims, i64 1
  %row_strides = getelementptr i64, ptr %own_strides, i64 1
  %row_aval_p = getelementptr i64, ptr %row, i64 WORD_OF_AVAL
  %row_aval = load ptr, ptr %row_aval_p
  %row_out = call ptr @view(ptr %c, ptr %value, i32 %row_rank, ptr %row_dims, ptr %row_strides,
                            i64 %row_offset, ptr %row_aval)
  ret ptr %row_out
other:
  %slice_type = load ptr, ptr CONTEXT_slice
  %is_slice = icmp eq ptr %type, %slice_type
  br i1 %is_slice, label %slice, label %miss
slice:
  %stop_p = getelementptr i64, ptr %ints, i64 1
  %step_p = getelementptr i64, ptr %ints, i64 2
  %unpack = load ptr, ptr CONTEXT_PySlice_Unpack
  %bad = call i32 %unpack(ptr %index, ptr %ints, ptr %stop_p, ptr %step_p)
  %good = icmp eq i32 %bad, 0
  br i1 %good, label %still, label %clear
still:
  ; An index's __index__ may have deleted the array, and with it what was read above.
  %value_now = load ptr, ptr %value_p
  %kept = icmp eq ptr %value_now, %value
  br i1 %kept, label %adjust, label %miss
adjust:
  %step = load i64, ptr %step_p
  %adjust_p = load ptr, ptr CONTEXT_PySlice_AdjustIndices
  %length = call i64 %adjust_p(i64 %n, ptr %ints, ptr %stop_p, i64 %step)
  %key_high = mul i64 %length, 64
  %key = or i64 %key_high, 1
  %range = call ptr @find(ptr %t, i64 %aval, i64 %key)
  %range_known = icmp ne ptr %range, null
  br i1 %range_known, label %copy, label %miss
copy:
  store i64 0, ptr %k
  br label %head
head:
  %j = load i64, ptr %k
  %d_p = getelementptr i64, ptr %own_dims, i64 %j
  %d = load i64, ptr %d_p
  %d_q = getelementptr i64, ptr %dims, i64 %j
  store i64 %d, ptr %d_q
  %s_p = getelementptr i64, ptr %own_strides, i64 %j
  %s = load i64, ptr %s_p
  %s_q = getelementptr i64, ptr %strides, i64 %j
  store i64 %s, ptr %s_q
  %j1 = add i64 %j, 1
  store i64 %j1, ptr %k
  %more = icmp slt i64 %j1, %rank
  br i1 %more, label %head, label %cut
cut:
  store i64 %length, ptr %dims
  %new_stride = mul i64 %stride, %step
  store i64 %new_stride, ptr %strides
  %start = load i64, ptr %ints
  %offset = mul i64 %start, %stride
  %empty = icmp eq i64 %length, 0
  %from = select i1 %empty, i64 0, i64 %offset
  %range_aval_p = getelementptr i64, ptr %range, i64 WORD_OF_AVAL
  %range_aval = load ptr, ptr %range_aval_p
  %range_out = call ptr @view(ptr %c, ptr %value, i32 %rank32, ptr %dims, ptr %strides, i64 %from,
                              ptr %range_aval)
  ret ptr %range_out
clear:
  %clear_p = load ptr, ptr CONTEXT_PyErr_Clear
  call void %clear_p()
  br label %miss
miss:
  ret ptr null
}
"""

# An operator method (METH_O, or METH_NOARGS with `other` null) number K.
_OPERATOR = """
define ptr @operator_K(ptr %self, ptr %other) #0 {
  %args = alloca [2 x ptr]
  %tables = load ptr, ptr @tables
  %t_p = getelementptr ptr, ptr %tables, i64 K
  %t = load ptr, ptr %t_p
  %out = call ptr @BODY(ptr %t, ptr %X, ptr %Y)
  %done = icmp ne ptr %out, null
  br i1 %done, label %end, label %slow
end:
  ret ptr %out
slow:
  store ptr %self, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  store ptr %other, ptr %second
  %unary = icmp eq ptr %other, null
  %n = select i1 %unary, i64 1, i64 2
  %r = call ptr @otherwise(ptr %t, ptr %args, i64 %n, ptr null)
  ret ptr %r
}
"""


def range_key(rows: int) -> int:
    """The right key of slices that leave so many rows; no address is odd."""
    return rows * 64 + 1


def identity(*offsets: Any) -> str:
    """A text that tells modules of these arguments of `text` apart, and is quick to make."""
    functions = (_TABLES, _OPERAND, _GETITEM, _OPERATOR, WHERE, AT, UPDATE)
    parts = (*functions, CONTEXT, TABLE, SLOTS, ENTRY)
    record = (trace_ir.RECORD, walk_ir.WALK, trace_ir.CONTEXT, trace_ir.LINES)
    return "\n".join(map(repr, (*parts, *record, offsets)))


def text(
    items: int,
    aval: int,
    value: int,
    helper: int,
    ref: tuple[int, int],
    kinds: list[str],
    recording: tuple[int, ...] | None,
) -> str:
    """The module. items, aval, value: offsets in a tuple and an Array; helper, ref: those of the
    slots of the objects behind `x.at`; kinds: for each operator "plain", "reflected" (self is the
    right operand), "index", or "update" (a method of `x.at[i]`); recording: what `record_ir` needs,
    or None without it."""
    at = AT.replace("FIRST_UPDATE", str(kinds.index("update")))
    parts = [_TABLES, _OPERAND, _GETITEM, WHERE, at]
    for k, kind in enumerate(kinds):
        if kind == "update":
            parts.append(UPDATE.replace("K(", f"{k}(").replace("NUMBER", str(k)))
            continue
        names = ("other", "self") if kind == "reflected" else ("self", "other")
        body = _OPERATOR.replace("K(", f"{k}(").replace("i64 K", f"i64 {k}")
        body = body.replace("BODY", "rows" if kind == "index" else "apply")
        parts.append(body.replace("%X", f"%{names[0]}").replace("%Y", f"%{names[1]}"))
    # A switch as comparisons: tables would lie outside of the code.
    parts.append('attributes #0 = { nounwind "no-jump-tables"="true" }')
    numbers = {
        "ITEMS": items, "WORD_OF_AVAL": ENTRY.index("aval"), "AVAL": aval, "VALUE": value,
        "INT_LIMIT": INT_LIMIT, "MAX_RANK": MAX_RANK,
        "SLOT_MASK": SLOTS - 1, "HEADER": 8 * len(TABLE), "HELPER_ARRAY": helper,
        "REF_ARRAY": ref[0], "REF_INDEX": ref[1],
    }
    # Longer names first, of which others are parts.
    order = sorted(numbers, key=len, reverse=True)
    whole = "\n".join(_with_fields(part) for part in parts)
    for name in order:
        whole = whole.replace(name, str(numbers[name]))
    return whole if recording is None else whole + trace_ir.text(recording, items)


def _with_fields(body: str) -> str:
    """Addresses of context and entry words (`ptr CONTEXT_name`) written out before their use."""
    lines: list[str] = []
    for line in body.splitlines():
        for prefix, base, names in (("CONTEXT_", "%c", CONTEXT), ("ENTRY_", "%e", ENTRY)):
            while prefix in line:
                start = line.index(prefix)
                end = start + len(prefix)
                while end < len(line) and (line[end].isalnum() or line[end] == "_"):
                    end += 1
                number = names.index(line[start + len(prefix) : end])
                register = f"%at{len(lines)}"
                lines.append(f"  {register} = getelementptr i64, ptr {base}, i64 {number}")
                line = line[:start] + register + line[end:]
        lines.append(line)
    return "\n".join(lines)
