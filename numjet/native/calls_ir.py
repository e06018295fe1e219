"""The native call of a compiled signature, as LLVM IR: one function for all of them.

`native.calls` fills the tables it reads and links it. The function is a METH_FASTCALL |
METH_KEYWORDS method whose `self` is the tuple (table, fallback, ...). The table (64-bit words) is
the flags' state it was made under, a number of entries and their addresses. Each entry is tried in
turn; a call that fits none goes to `fallback`. What would break it: an entry whose objects are not
kept alive by that tuple, and another layout of the objects read here (`fastcall_native` tests
them before the first use).

An entry's words (`ENTRY` names them): an argument program of five-word steps
(code, register, a, b, c) over registers that hold borrowed object pointers, then the outputs, then
a program that builds the result's tree from registers that own theirs.
"""

from __future__ import annotations

FUNCTIONS = """
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @nj_py_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
@nj_py_state = external global i64
@nj_py_trace = external global i8
@nj_py_eval = external global i8
@nj_py_axes = external global i8
@nj_py_no_axes = external global i8
@nj_py_array = external global i8
@nj_py_ndarray = external global i8
@nj_py_dict = external global i8
@nj_py_list = external global i8
@nj_py_float = external global i8
@nj_py_int = external global i8
@nj_py_true = external global i8
@nj_py_false = external global i8
@nj_py_error = external global i8
@message = private constant [28 x i8] c"a compiled program failed.\\0A\\00"

define ptr @numjet_call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
entry:
  %value = alloca ptr
  %status = alloca i32
  %ip = alloca i64
  %holder_p = getelementptr i8, ptr %self, i64 ITEMS
  %holder = load ptr, ptr %holder_p
  %fallback_p = getelementptr i8, ptr %self, i64 ITEMS1
  %fallback = load ptr, ptr %fallback_p
  %table_p = getelementptr i8, ptr %holder, i64 16
  %table = load ptr, ptr %table_p
  %want = load i64, ptr %table
  %state = load i64, ptr @nj_py_state
  %same = icmp eq i64 %want, %state
  br i1 %same, label %trace, label %slow
trace:
  store ptr null, ptr %value
  %r1 = call i32 @PyContextVar_Get(ptr @nj_py_trace, ptr null, ptr %value)
  %v1 = load ptr, ptr %value
  call void @Py_DecRef(ptr %v1)
  %ok1 = icmp eq ptr %v1, @nj_py_eval
  br i1 %ok1, label %axes, label %slow
axes:
  store ptr null, ptr %value
  %r2 = call i32 @PyContextVar_Get(ptr @nj_py_axes, ptr null, ptr %value)
  %v2 = load ptr, ptr %value
  call void @Py_DecRef(ptr %v2)
  %ok2 = icmp eq ptr %v2, @nj_py_no_axes
  br i1 %ok2, label %entries, label %slow
entries:
  %count_p = getelementptr i64, ptr %table, i64 1
  %count = load i64, ptr %count_p
  store i64 0, ptr %ip
  br label %next
next:
  %i = load i64, ptr %ip
  %more = icmp slt i64 %i, %count
  br i1 %more, label %try, label %slow
try:
  %at = add i64 %i, 2
  %e_p = getelementptr i64, ptr %table, i64 %at
  %e = load ptr, ptr %e_p
  store i32 0, ptr %status
  %result = call ptr @run(ptr %e, ptr %args, i64 %nargs, ptr %kwnames, ptr %status)
  %s = load i32, ptr %status
  %done = icmp ne i32 %s, 0
  br i1 %done, label %out, label %again
again:
  %i1 = add i64 %i, 1
  store i64 %i1, ptr %ip
  br label %next
out:
  ret ptr %result
slow:
  %other = call ptr @PyObject_Vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %other
}

define internal void @release(ptr %table, i64 %n) {
entry:
  %ip = alloca i64
  store i64 0, ptr %ip
  br label %head
head:
  %i = load i64, ptr %ip
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %out
body:
  %p = getelementptr ptr, ptr %table, i64 %i
  %x = load ptr, ptr %p
  call void @Py_DecRef(ptr %x)
  %i1 = add i64 %i, 1
  store i64 %i1, ptr %ip
  br label %head
out:
  ret void
}

define internal ptr @call_with(ptr %function, ptr %x) {
entry:
  %args = alloca [2 x ptr]
  %first = getelementptr ptr, ptr %args, i64 1
  store ptr %x, ptr %first
  %r = call ptr @PyObject_Vectorcall(ptr %function, ptr %first, i64 -9223372036854775807, ptr null)
  ret ptr %r
}

define internal ptr @run(ptr %e, ptr %args, i64 %nargs, ptr %kwnames, ptr %status) {
entry:
  %ip = alloca i64
  %kp = alloca i64
  %owned_n = alloca i64
  %arena_p = alloca ptr
WORDS
  %ok_n = icmp eq i64 %nargs, %w_nargs
  br i1 %ok_n, label %keywords, label %never
never:
  ret ptr null
keywords:
  %plain = icmp eq ptr %kwnames, null
  br i1 %plain, label %no_kw, label %some_kw
no_kw:
  %none = icmp eq i64 %w_nkw, 0
  br i1 %none, label %setup, label %never
some_kw:
  %size_p = getelementptr i8, ptr %kwnames, i64 16
  %size = load i64, ptr %size_p
  %ok_kw = icmp eq i64 %size, %w_nkw
  br i1 %ok_kw, label %kw_start, label %never
kw_start:
  store i64 0, ptr %ip
  br label %kw_head
kw_head:
  %kw_i = load i64, ptr %ip
  %kw_more = icmp slt i64 %kw_i, %w_nkw
  br i1 %kw_more, label %kw_body, label %setup
kw_body:
  %kw_items = getelementptr i8, ptr %kwnames, i64 ITEMS
  %kw_p = getelementptr ptr, ptr %kw_items, i64 %kw_i
  %kw_name = load ptr, ptr %kw_p
  %kw_q = getelementptr ptr, ptr %w_kwnames, i64 %kw_i
  %kw_want = load ptr, ptr %kw_q
  %kw_same = icmp eq ptr %kw_name, %kw_want
  %kw_i1 = add i64 %kw_i, 1
  store i64 %kw_i1, ptr %ip
  br i1 %kw_same, label %kw_head, label %never
setup:
  %regs = alloca ptr, i64 %w_regs
  %inputs = alloca ptr, i64 %w_in
  %owned = alloca ptr, i64 %w_owned
  %scalars = alloca i64, i64 %w_in
  %outputs = alloca ptr, i64 %w_out
  %oregs = alloca ptr, i64 %w_oregs
  store i64 0, ptr %owned_n
  %given = add i64 %w_nargs, %w_nkw
  %given_bytes = mul i64 %given, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %regs, ptr %args, i64 %given_bytes, i1 false)
  %preset_at = getelementptr ptr, ptr %regs, i64 %given
  %preset_bytes = mul i64 %w_presets, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %preset_at, ptr %w_preset, i64 %preset_bytes, i1 false)
  store i64 0, ptr %ip
  br label %steps

; ------------------------------------------------------------------ arguments
steps:
  %i = load i64, ptr %ip
  %more = icmp slt i64 %i, %w_steps
  br i1 %more, label %step, label %arena
step:
  %i1 = add i64 %i, 1
  store i64 %i1, ptr %ip
  %offset = mul i64 %i, 40
  %s_p = getelementptr i8, ptr %w_step, i64 %offset
  %code = load i64, ptr %s_p
  %reg_p = getelementptr i64, ptr %s_p, i64 1
  %reg = load i64, ptr %reg_p
  %a_p = getelementptr i64, ptr %s_p, i64 2
  %a = load i64, ptr %a_p
  %a_ptr = inttoptr i64 %a to ptr
  %b_p = getelementptr i64, ptr %s_p, i64 3
  %b = load i64, ptr %b_p
  %c_p = getelementptr i64, ptr %s_p, i64 4
  %c = load i64, ptr %c_p
  %obj_p = getelementptr ptr, ptr %regs, i64 %reg
  %obj = load ptr, ptr %obj_p
  %type_p = getelementptr i8, ptr %obj, i64 8
  %type = load ptr, ptr %type_p
  %input = getelementptr ptr, ptr %inputs, i64 %b
  %scalar = getelementptr i64, ptr %scalars, i64 %b
  %child = getelementptr ptr, ptr %regs, i64 %c
  switch i64 %code, label %miss [
    i64 0, label %array i64 1, label %dict i64 2, label %tuple i64 3, label %list
    i64 4, label %static i64 5, label %float i64 6, label %int i64 7, label %bool
    i64 8, label %ndarray i64 9, label %reader ]

array:
  %is_array = icmp eq ptr %type, @nj_py_array
  br i1 %is_array, label %array_aval, label %miss
array_aval:
  %aval_p = getelementptr i8, ptr %obj, i64 AVAL
  %aval = load ptr, ptr %aval_p
  %ok_aval = icmp eq ptr %aval, %a_ptr
  br i1 %ok_aval, label %array_value, label %miss
array_value:
  %val_p = getelementptr i8, ptr %obj, i64 VALUE
  %val = load ptr, ptr %val_p
  %there = icmp ne ptr %val, null
  br i1 %there, label %take, label %miss
take:
  %nd = phi ptr [ %val, %array_value ], [ %obj, %dims_done ]
  %flags_p = getelementptr i8, ptr %nd, i64 64
  %flags = load i32, ptr %flags_p
  %both = and i32 %flags, 257
  %dense = icmp eq i32 %both, 257
  br i1 %dense, label %taken, label %miss
taken:
  %data_p = getelementptr i8, ptr %nd, i64 16
  %data = load ptr, ptr %data_p
  store ptr %data, ptr %input
  call void @Py_IncRef(ptr %nd)
  %on = load i64, ptr %owned_n
  %own_p = getelementptr ptr, ptr %owned, i64 %on
  store ptr %nd, ptr %own_p
  %on1 = add i64 %on, 1
  store i64 %on1, ptr %owned_n
  br label %steps

ndarray:
  %is_nd = icmp eq ptr %type, @nj_py_ndarray
  br i1 %is_nd, label %nd_dtype, label %miss
nd_dtype:
  %descr_p = getelementptr i8, ptr %obj, i64 56
  %descr = load ptr, ptr %descr_p
  %descr_want = load ptr, ptr %a_ptr
  %ok_descr = icmp eq ptr %descr, %descr_want
  br i1 %ok_descr, label %nd_rank, label %miss
nd_rank:
  %rank_p = getelementptr i8, ptr %obj, i64 24
  %rank = load i32, ptr %rank_p
  %rank64 = sext i32 %rank to i64
  %rank_q = getelementptr i64, ptr %a_ptr, i64 1
  %rank_want = load i64, ptr %rank_q
  %ok_rank = icmp eq i64 %rank64, %rank_want
  br i1 %ok_rank, label %dims_start, label %miss
dims_start:
  %dims_p = getelementptr i8, ptr %obj, i64 32
  %dims = load ptr, ptr %dims_p
  store i64 0, ptr %kp
  br label %dims_head
dims_head:
  %dk = load i64, ptr %kp
  %dmore = icmp slt i64 %dk, %rank64
  br i1 %dmore, label %dims_body, label %dims_done
dims_done:
  br label %take
dims_body:
  %dk1 = add i64 %dk, 1
  store i64 %dk1, ptr %kp
  %d_p = getelementptr i64, ptr %dims, i64 %dk
  %d = load i64, ptr %d_p
  %dk2 = add i64 %dk, 2
  %dw_p = getelementptr i64, ptr %a_ptr, i64 %dk2
  %dw = load i64, ptr %dw_p
  %ok_d = icmp eq i64 %d, %dw
  br i1 %ok_d, label %dims_head, label %miss

dict:
  %is_dict = icmp eq ptr %type, @nj_py_dict
  br i1 %is_dict, label %dict_size, label %miss
dict_size:
  %length = call i64 @PyDict_Size(ptr %obj)
  %ok_length = icmp eq i64 %length, %b
  br i1 %ok_length, label %dict_start, label %miss
dict_start:
  store i64 0, ptr %kp
  br label %dict_head
dict_head:
  %k = load i64, ptr %kp
  %kmore = icmp slt i64 %k, %b
  br i1 %kmore, label %dict_body, label %steps
dict_body:
  %k1 = add i64 %k, 1
  store i64 %k1, ptr %kp
  %key_p = getelementptr ptr, ptr %a_ptr, i64 %k
  %key = load ptr, ptr %key_p
  %item = call ptr @PyDict_GetItemWithError(ptr %obj, ptr %key)
  %child_k = getelementptr ptr, ptr %child, i64 %k
  store ptr %item, ptr %child_k
  %found = icmp ne ptr %item, null
  br i1 %found, label %dict_head, label %dict_miss
dict_miss:
  call void @PyErr_Clear()
  br label %miss

tuple:
  %is_tuple = icmp eq ptr %type, %a_ptr
  br i1 %is_tuple, label %tuple_size, label %miss
tuple_size:
  %t_items = getelementptr i8, ptr %obj, i64 ITEMS
  br label %sized
list:
  %is_list = icmp eq ptr %type, @nj_py_list
  br i1 %is_list, label %list_items, label %miss
list_items:
  %l_items_p = getelementptr i8, ptr %obj, i64 24
  %l_items = load ptr, ptr %l_items_p
  br label %sized
sized:
  %items = phi ptr [ %t_items, %tuple_size ], [ %l_items, %list_items ]
  %n_p = getelementptr i8, ptr %obj, i64 16
  %n = load i64, ptr %n_p
  %ok_size = icmp eq i64 %n, %b
  br i1 %ok_size, label %copy_items, label %miss
copy_items:
  %item_bytes = mul i64 %b, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %child, ptr %items, i64 %item_bytes, i1 false)
  br label %steps

static:
  %is_it = icmp eq ptr %obj, %a_ptr
  br i1 %is_it, label %steps, label %miss

float:
  %is_float = icmp eq ptr %type, @nj_py_float
  br i1 %is_float, label %float_read, label %miss
float_read:
  %double_p = getelementptr i8, ptr %obj, i64 16
  %double = load double, ptr %double_p
  store ptr %scalar, ptr %input
  %wide_f = icmp eq i64 %a, 8
  br i1 %wide_f, label %float_wide, label %float_narrow
float_wide:
  store double %double, ptr %scalar
  br label %steps
float_narrow:
  %single = fptrunc double %double to float
  store float %single, ptr %scalar
  br label %steps

int:
  %is_int = icmp eq ptr %type, @nj_py_int
  br i1 %is_int, label %int_read, label %miss
int_read:
  %long = call i64 @PyLong_AsLongLong(ptr %obj)
  %maybe = icmp eq i64 %long, -1
  br i1 %maybe, label %int_check, label %int_good
int_check:
  %err = call ptr @PyErr_Occurred()
  %bad = icmp ne ptr %err, null
  br i1 %bad, label %dict_miss, label %int_good
int_good:
  store ptr %scalar, ptr %input
  %wide_i = icmp eq i64 %a, 8
  br i1 %wide_i, label %int_wide, label %int_narrow
int_wide:
  store i64 %long, ptr %scalar
  br label %steps
int_narrow:
  %short = trunc i64 %long to i32
  %back = sext i32 %short to i64
  store i32 %short, ptr %scalar
  %fits = icmp eq i64 %back, %long
  br i1 %fits, label %steps, label %miss

bool:
  %is_true = icmp eq ptr %obj, @nj_py_true
  %is_false = icmp eq ptr %obj, @nj_py_false
  %is_bool = or i1 %is_true, %is_false
  br i1 %is_bool, label %bool_read, label %miss
bool_read:
  store ptr %scalar, ptr %input
  %byte = zext i1 %is_true to i8
  store i8 %byte, ptr %scalar
  br label %steps

reader:
  %leaves = call ptr @call_with(ptr %a_ptr, ptr %obj)
  %raised = icmp eq ptr %leaves, null
  br i1 %raised, label %dict_miss, label %reader_own
reader_own:
  %ron = load i64, ptr %owned_n
  %rown_p = getelementptr ptr, ptr %owned, i64 %ron
  store ptr %leaves, ptr %rown_p
  %ron1 = add i64 %ron, 1
  store i64 %ron1, ptr %owned_n
  %ltype_p = getelementptr i8, ptr %leaves, i64 8
  %ltype = load ptr, ptr %ltype_p
  %ok_ltype = icmp eq ptr %ltype, @nj_py_list
  br i1 %ok_ltype, label %reader_size, label %miss
reader_size:
  %ln_p = getelementptr i8, ptr %leaves, i64 16
  %ln = load i64, ptr %ln_p
  %ok_ln = icmp eq i64 %ln, %b
  br i1 %ok_ln, label %reader_copy, label %miss
reader_copy:
  %ritems_p = getelementptr i8, ptr %leaves, i64 24
  %ritems = load ptr, ptr %ritems_p
  %rbytes = mul i64 %b, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %child, ptr %ritems, i64 %rbytes, i1 false)
  br label %steps

miss:
  %mn = load i64, ptr %owned_n
  call void @release(ptr %owned, i64 %mn)
  ret ptr null

; ------------------------------------------------------------------ the call
arena:
  store ptr null, ptr %arena_p
  %needs = icmp ne i64 %w_needs_arena, 0
  br i1 %needs, label %arena_take, label %results
arena_take:
  %cell = getelementptr i64, ptr %e, i64 ARENA_CELL
  %taken_i = atomicrmw xchg ptr %cell, i64 0 seq_cst, align 8
  %taken_p = inttoptr i64 %taken_i to ptr
  store ptr %taken_p, ptr %arena_p
  %busy = icmp eq i64 %taken_i, 0
  br i1 %busy, label %miss, label %results
results:
  store i32 1, ptr %status
  %oreg_bytes = mul i64 %w_oregs, 8
  call void @llvm.memset.p0.i64(ptr %oregs, i8 0, i64 %oreg_bytes, i1 false)
  store i64 0, ptr %ip
  br label %out_head
out_head:
  %oi = load i64, ptr %ip
  %omore = icmp slt i64 %oi, %w_out
  br i1 %omore, label %out_body, label %invoke
out_body:
  %oi1 = add i64 %oi, 1
  store i64 %oi1, ptr %ip
  %ooff = mul i64 %oi, 48
  %o_p = getelementptr i8, ptr %w_outs, i64 %ooff
  %o_aval = load ptr, ptr %o_p
  %o_descr_p = getelementptr i64, ptr %o_p, i64 1
  %o_descr = load ptr, ptr %o_descr_p
  %o_nd_p = getelementptr i64, ptr %o_p, i64 2
  %o_nd = load i64, ptr %o_nd_p
  %o_dims_p = getelementptr i64, ptr %o_p, i64 3
  %o_dims = load ptr, ptr %o_dims_p
  %o_maker_p = getelementptr i64, ptr %o_p, i64 4
  %o_maker = load ptr, ptr %o_maker_p
  %o_reg_p = getelementptr i64, ptr %o_p, i64 5
  %o_reg = load i64, ptr %o_reg_p
  %simple = icmp eq ptr %o_maker, null
  br i1 %simple, label %make_small, label %make_large
make_small:
  call void @Py_IncRef(ptr %o_descr)
  %o_rank = trunc i64 %o_nd to i32
  %small = call ptr @nj_py_new_array(ptr @nj_py_ndarray, ptr %o_descr, i32 %o_rank,
    ptr %o_dims, ptr null, ptr null, i32 0, ptr null)
  br label %made
make_large:
  %large = call ptr @PyObject_CallObject(ptr %o_maker, ptr null)
  br label %made
made:
  %new = phi ptr [ %small, %make_small ], [ %large, %make_large ]
  %no_new = icmp eq ptr %new, null
  br i1 %no_new, label %fail, label %wrap
wrap:
  %arr = call ptr @PyType_GenericAlloc(ptr @nj_py_array, i64 0)
  %no_arr = icmp eq ptr %arr, null
  br i1 %no_arr, label %wrap_fail, label %fill
wrap_fail:
  call void @Py_DecRef(ptr %new)
  br label %fail
fill:
  %n_aval_p = getelementptr i8, ptr %arr, i64 AVAL
  store ptr %o_aval, ptr %n_aval_p
  call void @Py_IncRef(ptr %o_aval)
  %n_val_p = getelementptr i8, ptr %arr, i64 VALUE
  store ptr %new, ptr %n_val_p
  %n_reg = getelementptr ptr, ptr %oregs, i64 %o_reg
  store ptr %arr, ptr %n_reg
  %n_data_p = getelementptr i8, ptr %new, i64 16
  %n_data = load ptr, ptr %n_data_p
  %n_out = getelementptr ptr, ptr %outputs, i64 %oi
  store ptr %n_data, ptr %n_out
  br label %out_head
invoke:
  %arena_now = load ptr, ptr %arena_p
  %unlock = icmp ne i64 %w_unlock, 0
  br i1 %unlock, label %invoke_unlocked, label %invoke_locked
invoke_locked:
  %st1 = call i32 %w_main(ptr %inputs, ptr %outputs, ptr %arena_now, ptr %w_consts)
  br label %invoked
invoke_unlocked:
  %thread = call ptr @PyEval_SaveThread()
  %st2 = call i32 %w_main(ptr %inputs, ptr %outputs, ptr %arena_now, ptr %w_consts)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %invoked
invoked:
  %st = phi i32 [ %st1, %invoke_locked ], [ %st2, %invoke_unlocked ]
  call void @give_back(ptr %e, ptr %arena_now)
  store ptr null, ptr %arena_p
  %un = load i64, ptr %owned_n
  call void @release(ptr %owned, i64 %un)
  store i64 0, ptr %owned_n
  %good = icmp eq i32 %st, 0
  store i64 0, ptr %ip
  br i1 %good, label %build, label %failed
failed:
  call void @PyErr_SetString(ptr @nj_py_error, ptr @message)
  br label %fail

; ------------------------------------------------------------------ the result's tree
build:
  %bi = load i64, ptr %ip
  %bmore = icmp slt i64 %bi, %w_builds
  br i1 %bmore, label %build_step, label %finish
build_step:
  %bi1 = add i64 %bi, 1
  store i64 %bi1, ptr %ip
  %boff = mul i64 %bi, 40
  %bs_p = getelementptr i8, ptr %w_build, i64 %boff
  %bcode = load i64, ptr %bs_p
  %breg_p = getelementptr i64, ptr %bs_p, i64 1
  %breg = load i64, ptr %breg_p
  %ba_p = getelementptr i64, ptr %bs_p, i64 2
  %ba = load ptr, ptr %ba_p
  %bn_p = getelementptr i64, ptr %bs_p, i64 3
  %bn = load i64, ptr %bn_p
  %bf_p = getelementptr i64, ptr %bs_p, i64 4
  %bf = load i64, ptr %bf_p
  %target = getelementptr ptr, ptr %oregs, i64 %breg
  %parts = getelementptr ptr, ptr %oregs, i64 %bf
  %part_bytes = mul i64 %bn, 8
  store i64 0, ptr %kp
  switch i64 %bcode, label %b_const [
    i64 1, label %b_dict i64 2, label %b_tuple i64 3, label %b_list ]
b_const:
  call void @Py_IncRef(ptr %ba)
  store ptr %ba, ptr %target
  br label %build
b_tuple:
  %tup = call ptr @PyTuple_New(i64 %bn)
  store ptr %tup, ptr %target
  %no_tup = icmp eq ptr %tup, null
  br i1 %no_tup, label %fail, label %b_tuple_fill
b_tuple_fill:
  %tup_items = getelementptr i8, ptr %tup, i64 ITEMS
  br label %b_move
b_list:
  %lst = call ptr @PyList_New(i64 %bn)
  store ptr %lst, ptr %target
  %no_lst = icmp eq ptr %lst, null
  br i1 %no_lst, label %fail, label %b_list_fill
b_list_fill:
  %lst_items_p = getelementptr i8, ptr %lst, i64 24
  %lst_items = load ptr, ptr %lst_items_p
  br label %b_move
b_move:
  %to = phi ptr [ %tup_items, %b_tuple_fill ], [ %lst_items, %b_list_fill ]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %parts, i64 %part_bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %parts, i8 0, i64 %part_bytes, i1 false)
  br label %build
b_dict:
  %dct = call ptr @PyDict_New()
  store ptr %dct, ptr %target
  %no_dct = icmp eq ptr %dct, null
  br i1 %no_dct, label %fail, label %b_dict_head
b_dict_head:
  %bk = load i64, ptr %kp
  %bkmore = icmp slt i64 %bk, %bn
  br i1 %bkmore, label %b_dict_body, label %build
b_dict_body:
  %bk1 = add i64 %bk, 1
  store i64 %bk1, ptr %kp
  %bkey_p = getelementptr ptr, ptr %ba, i64 %bk
  %bkey = load ptr, ptr %bkey_p
  %part_p = getelementptr ptr, ptr %parts, i64 %bk
  %part = load ptr, ptr %part_p
  %set = call i32 @PyDict_SetItem(ptr %dct, ptr %bkey, ptr %part)
  store ptr null, ptr %part_p
  call void @Py_DecRef(ptr %part)
  %set_bad = icmp ne i32 %set, 0
  br i1 %set_bad, label %fail, label %b_dict_head
finish:
  %root = load ptr, ptr %oregs
  %no_builder = icmp eq ptr %w_builder, null
  br i1 %no_builder, label %give, label %custom
give:
  ret ptr %root
custom:
  %built = call ptr @call_with(ptr %w_builder, ptr %root)
  call void @Py_DecRef(ptr %root)
  ret ptr %built

fail:
  call void @release(ptr %oregs, i64 %w_oregs)
  %fn = load i64, ptr %owned_n
  call void @release(ptr %owned, i64 %fn)
  %fa = load ptr, ptr %arena_p
  call void @give_back(ptr %e, ptr %fa)
  ret ptr null
}

define internal void @give_back(ptr %e, ptr %arena) {
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %out, label %put
put:
  %cell = getelementptr i64, ptr %e, i64 ARENA_CELL
  %word = ptrtoint ptr %arena to i64
  store atomic i64 %word, ptr %cell release, align 8
  br label %out
out:
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

# An entry's words in order. "ptr" ones are loaded as pointers.
ENTRY = (
    ("nargs", "i64"), ("nkw", "i64"), ("kwnames", "ptr"), ("regs", "i64"), ("presets", "i64"),
    ("preset", "ptr"), ("steps", "i64"), ("step", "ptr"), ("in", "i64"), ("owned", "i64"),
    ("out", "i64"), ("outs", "ptr"), ("oregs", "i64"), ("builds", "i64"), ("build", "ptr"),
    ("main", "ptr"), ("consts", "ptr"), ("needs_arena", "i64"), ("unlock", "i64"),
    ("builder", "ptr"), ("arena", "i64"),
)
WORD = {name: k for k, (name, _) in enumerate(ENTRY)}


def text(items: int, aval: int, value: int) -> str:
    """The module, for a tuple's items at offset `items` and an Array's slots at `aval`, `value`."""
    words = []
    for k, (name, kind) in enumerate(ENTRY[:-1]):
        words.append(f"  %w_{name}_p = getelementptr i64, ptr %e, i64 {k}")
        words.append(f"  %w_{name} = load {kind}, ptr %w_{name}_p")
    out = FUNCTIONS.replace("WORDS", "\n".join(words))
    for name, number in (("ARENA_CELL", WORD["arena"]), ("ITEMS1", items + 8), ("ITEMS", items),
                         ("AVAL", aval), ("VALUE", value)):
        out = out.replace(name, str(number))
    return out
