"""`where`, `x.at[i].set(v)` and its kin on small concrete arrays, as LLVM IR.

Parts of the module of `native.operators_ir`, whose functions and names they use. What is not in a
table, or not as the entry wants it, goes to the fallback.
"""

# One element of `size` bytes from p to q, on the way to %next.
MOVE = """\
  switch i64 %size, label %eight [ i64 1, label %one i64 2, label %two i64 4, label %four ]
one:
  %v1 = load i8, ptr %p
  store i8 %v1, ptr %q
  br label %next
two:
  %v2 = load i16, ptr %p
  store i16 %v2, ptr %q
  br label %next
four:
  %v4 = load i32, ptr %p
  store i32 %v4, ptr %q
  br label %next
eight:
  %v8 = load i64, ptr %p, align 4
  store i64 %v8, ptr %q, align 4
  br label %next
"""

# The end of a call by `out`: it, or what Python gives where `out` is null.
OTHERWISE = """\
  %done = icmp ne ptr %out, null
  br i1 %done, label %end, label %slow
end:
  ret ptr %out
slow:
  %other = call ptr @otherwise(ptr %t, ptr %args, i64 %n, ptr %names)
  ret ptr %other
}
"""

# where(condition, x, y): METH_FASTCALL | METH_KEYWORDS. An entry is found under the condition's key
# and a mix of the others', and says which these are (`key_x`, `key_y`). Its counts are elements and
# their bytes, its steps those of condition, x and y.
WHERE = (
    """
define internal void @choose(ptr %e, ptr %out, ptr %c, ptr %x, ptr %y) #0 {
entry:
  %counts = load ptr, ptr ENTRY_counts
  %n = load i64, ptr %counts
  %size_p = getelementptr i64, ptr %counts, i64 1
  %size = load i64, ptr %size_p
  %steps = load ptr, ptr ENTRY_steps
  %sc = load i64, ptr %steps
  %sx_p = getelementptr i64, ptr %steps, i64 1
  %sx = load i64, ptr %sx_p
  %sy_p = getelementptr i64, ptr %steps, i64 2
  %sy = load i64, ptr %sy_p
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %c_at = mul i64 %k, %sc
  %c_p = getelementptr i8, ptr %c, i64 %c_at
  %flag = load i8, ptr %c_p
  %x_at = mul i64 %k, %sx
  %x_p = getelementptr i8, ptr %x, i64 %x_at
  %y_at = mul i64 %k, %sy
  %y_p = getelementptr i8, ptr %y, i64 %y_at
  %false = icmp eq i8 %flag, 0
  %p = select i1 %false, ptr %y_p, ptr %x_p
  %at = mul i64 %k, %size
  %q = getelementptr i8, ptr %out, i64 %at
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

define internal ptr @where(ptr %t, ptr %condition, ptr %x, ptr %y) #0 {
  %buffers = alloca [2 x i64]
  %c = load ptr, ptr %t
  %kc = call i64 @key(ptr %c, ptr %condition)
  %kx = call i64 @key(ptr %c, ptr %x)
  %ky = call i64 @key(ptr %c, ptr %y)
  %ky3 = mul i64 %ky, 3
  %mix = add i64 %kx, %ky3
  %e = call ptr @find(ptr %t, i64 %kc, i64 %mix)
  %known = icmp ne ptr %e, null
  br i1 %known, label %others, label %miss
others:
  %want_x = load i64, ptr ENTRY_key_x
  %want_y = load i64, ptr ENTRY_key_y
  %right_x = icmp eq i64 %want_x, %kx
  %right_y = icmp eq i64 %want_y, %ky
  %right = and i1 %right_x, %right_y
  br i1 %right, label %state, label %miss
state:
  %plain = call i1 @plain(ptr %c, i64 1)
  br i1 %plain, label %operands, label %miss
operands:
  %c_data = call ptr @operand(ptr %c, ptr %condition, i64 0, ptr null)
  %c_good = icmp ne ptr %c_data, null
  br i1 %c_good, label %first, label %miss
first:
  %left = load i64, ptr ENTRY_left
  %x_data = call ptr @operand(ptr %c, ptr %x, i64 %left, ptr %buffers)
  %x_good = icmp ne ptr %x_data, null
  br i1 %x_good, label %second, label %miss
second:
  %code = load i64, ptr ENTRY_right
  %buffer2 = getelementptr i64, ptr %buffers, i64 1
  %y_data = call ptr @operand(ptr %c, ptr %y, i64 %code, ptr %buffer2)
  %y_good = icmp ne ptr %y_data, null
  br i1 %y_good, label %result, label %miss
result:
  %value = call ptr @empty(ptr %c, ptr %e)
  %made = icmp ne ptr %value, null
  br i1 %made, label %run, label %wrap
run:
  %out_data_p = getelementptr i8, ptr %value, i64 16
  %out_data = load ptr, ptr %out_data_p
  call void @choose(ptr %e, ptr %out_data, ptr %c_data, ptr %x_data, ptr %y_data)
  br label %wrap
wrap:
  %aval = load ptr, ptr ENTRY_aval
  %out = call ptr @wrap(ptr %c, ptr %value, ptr %aval)
  ret ptr %out
miss:
  ret ptr null
}

define ptr @where_function(ptr %self, ptr %args, i64 %n, ptr %names) #0 {
  %holder_p = getelementptr i8, ptr %self, i64 ITEMS
  %holder = load ptr, ptr %holder_p
  %t_p = getelementptr i8, ptr %holder, i64 16
  %t = load ptr, ptr %t_p
  %given = icmp eq i64 %n, 3
  %unnamed = icmp eq ptr %names, null
  %fits = and i1 %given, %unnamed
  br i1 %fits, label %read, label %slow
read:
  %condition = load ptr, ptr %args
  %x_p = getelementptr ptr, ptr %args, i64 1
  %x = load ptr, ptr %x_p
  %y_p = getelementptr ptr, ptr %args, i64 2
  %y = load ptr, ptr %y_p
  %out = call ptr @where(ptr %t, ptr %condition, ptr %x, ptr %y)
"""
    + OTHERWISE
)

# x.at (a getter), x.at[index] (METH_O), and updates, number K of the tables (METH_FASTCALL |
# METH_KEYWORDS): a copy of x by the entry's loop, then the update's own on the row that an integer
# names (`row_...`; `row_binary`: it reads the row too).
AT = """
define ptr @at_get(ptr %x, ptr %c) #0 {
  %alloc = load ptr, ptr CONTEXT_PyType_GenericAlloc
  %type = load ptr, ptr CONTEXT_at_helper
  %out = call ptr %alloc(ptr %type, i64 0)
  %made = icmp ne ptr %out, null
  br i1 %made, label %fill, label %end
fill:
  %incref = load ptr, ptr CONTEXT_Py_IncRef
  call void %incref(ptr %x)
  %array_p = getelementptr i8, ptr %out, i64 HELPER_ARRAY
  store ptr %x, ptr %array_p
  br label %end
end:
  ret ptr %out
}

define internal ptr @table_of(i64 %k) #0 {
  %tables = load ptr, ptr @tables
  %t_p = getelementptr ptr, ptr %tables, i64 %k
  %t = load ptr, ptr %t_p
  ret ptr %t
}

define ptr @at_index(ptr %self, ptr %index) #0 {
  %x_p = getelementptr i8, ptr %self, i64 HELPER_ARRAY
  %x = load ptr, ptr %x_p
  %t = call ptr @table_of(i64 FIRST_UPDATE)
  %c = load ptr, ptr %t
  %alloc = load ptr, ptr CONTEXT_PyType_GenericAlloc
  %type = load ptr, ptr CONTEXT_at_ref
  %out = call ptr %alloc(ptr %type, i64 0)
  %made = icmp ne ptr %out, null
  br i1 %made, label %fill, label %end
fill:
  %incref = load ptr, ptr CONTEXT_Py_IncRef
  call void %incref(ptr %x)
  call void %incref(ptr %index)
  %array_p = getelementptr i8, ptr %out, i64 REF_ARRAY
  store ptr %x, ptr %array_p
  %index_p = getelementptr i8, ptr %out, i64 REF_INDEX
  store ptr %index, ptr %index_p
  br label %end
end:
  ret ptr %out
}

define internal ptr @update(ptr %t, ptr %x, ptr %index, ptr %given) #0 {
  %buffer = alloca i64
  %pointers = alloca [3 x ptr]
  %c = load ptr, ptr %t
  %kx = call i64 @key(ptr %c, ptr %x)
  %kv = call i64 @key(ptr %c, ptr %given)
  %e = call ptr @find(ptr %t, i64 %kx, i64 %kv)
  %known = icmp ne ptr %e, null
  br i1 %known, label %kind, label %miss
kind:
  %indexed = icmp ne ptr %index, null
  br i1 %indexed, label %typed, label %miss
typed:
  %type_p = getelementptr i8, ptr %index, i64 8
  %type = load ptr, ptr %type_p
  %int_type = load ptr, ptr CONTEXT_int
  %is_int = icmp eq ptr %type, %int_type
  br i1 %is_int, label %state, label %miss
state:
  %plain = call i1 @plain(ptr %c, i64 1)
  br i1 %plain, label %read, label %miss
read:
  %as_long = load ptr, ptr CONTEXT_PyLong_AsLongLong
  %i = call i64 %as_long(ptr %index)
  %minus = icmp eq i64 %i, -1
  br i1 %minus, label %check, label %bound
check:
  %occurred = load ptr, ptr CONTEXT_PyErr_Occurred
  %error = call ptr %occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %clear, label %bound
bound:
  %rows = load i64, ptr ENTRY_rows
  %negative = icmp slt i64 %i, 0
  %from_end = add i64 %i, %rows
  %row = select i1 %negative, i64 %from_end, i64 %i
  %inside = icmp ult i64 %row, %rows
  br i1 %inside, label %operands, label %miss
operands:
  %x_data = call ptr @operand(ptr %c, ptr %x, i64 0, ptr null)
  %x_good = icmp ne ptr %x_data, null
  br i1 %x_good, label %second, label %miss
second:
  %code = load i64, ptr ENTRY_right
  %v_data = call ptr @operand(ptr %c, ptr %given, i64 %code, ptr %buffer)
  %v_good = icmp ne ptr %v_data, null
  br i1 %v_good, label %result, label %miss
result:
  %value = call ptr @empty(ptr %c, ptr %e)
  %made = icmp ne ptr %value, null
  br i1 %made, label %copy, label %wrap
copy:
  %out_data_p = getelementptr i8, ptr %value, i64 16
  %out_data = load ptr, ptr %out_data_p
  %second_p = getelementptr ptr, ptr %pointers, i64 1
  %third_p = getelementptr ptr, ptr %pointers, i64 2
  store ptr %x_data, ptr %pointers
  store ptr %out_data, ptr %second_p
  call void @sweep(ptr %e, ptr %pointers)
  %bytes = load i64, ptr ENTRY_row_bytes
  %offset = mul i64 %row, %bytes
  %to = getelementptr i8, ptr %out_data, i64 %offset
  %reads = load i64, ptr ENTRY_row_binary
  %binary = icmp ne i64 %reads, 0
  %first_one = select i1 %binary, ptr %to, ptr %v_data
  %second_one = select i1 %binary, ptr %v_data, ptr %to
  store ptr %first_one, ptr %pointers
  store ptr %second_one, ptr %second_p
  store ptr %to, ptr %third_p
  %loop = load ptr, ptr ENTRY_row_loop
  %data = load ptr, ptr ENTRY_row_data
  %counts = load ptr, ptr ENTRY_row_counts
  %steps = load ptr, ptr ENTRY_row_steps
  call void %loop(ptr %pointers, ptr %counts, ptr %steps, ptr %data)
  %failed = call i1 @failed(ptr %c, ptr %value)
  br i1 %failed, label %miss, label %wrap
wrap:
  %aval = load ptr, ptr ENTRY_aval
  %out = call ptr @wrap(ptr %c, ptr %value, ptr %aval)
  ret ptr %out
clear:
  %clear_p = load ptr, ptr CONTEXT_PyErr_Clear
  call void %clear_p()
  br label %miss
miss:
  ret ptr null
}
"""

UPDATE = """
define ptr @update_K(ptr %self, ptr %args, i64 %n, ptr %names) #0 {
entry:
  %vector = alloca [9 x ptr]
  %x_p = getelementptr i8, ptr %self, i64 REF_ARRAY
  %x = load ptr, ptr %x_p
  %t = call ptr @table_of(i64 NUMBER)
  %one = icmp eq i64 %n, 1
  %unnamed = icmp eq ptr %names, null
  %fits = and i1 %one, %unnamed
  br i1 %fits, label %try, label %slow
try:
  %index_p = getelementptr i8, ptr %self, i64 REF_INDEX
  %index = load ptr, ptr %index_p
  %given = load ptr, ptr %args
  %out = call ptr @update(ptr %t, ptr %x, ptr %index, ptr %given)
  %done = icmp ne ptr %out, null
  br i1 %done, label %end, label %slow
end:
  ret ptr %out
slow:
  br i1 %unnamed, label %collect, label %named
named:
  %size_p = getelementptr i8, ptr %names, i64 16
  %size = load i64, ptr %size_p
  br label %collect
collect:
  %more = phi i64 [ 0, %slow ], [ %size, %named ]
  %given_all = add i64 %n, %more
  ; Of too many arguments the function is given too few, and raises as well.
  %few = icmp ult i64 %given_all, 8
  %total = select i1 %few, i64 %given_all, i64 0
  %positional = select i1 %few, i64 %n, i64 0
  %keywords = select i1 %few, ptr %names, ptr null
  store ptr %self, ptr %vector
  br label %head
head:
  %k = phi i64 [ 0, %collect ], [ %k1, %move ]
  %left = icmp ult i64 %k, %total
  br i1 %left, label %move, label %call
move:
  %from = getelementptr ptr, ptr %args, i64 %k
  %argument = load ptr, ptr %from
  %k1 = add i64 %k, 1
  %to = getelementptr ptr, ptr %vector, i64 %k1
  store ptr %argument, ptr %to
  br label %head
call:
  %with_self = add i64 %positional, 1
  %r = call ptr @otherwise(ptr %t, ptr %vector, i64 %with_self, ptr %keywords)
  ret ptr %r
}
"""
