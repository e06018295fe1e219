"""What every compiled program needs, compiled once: the steps of a program walked as data, the
entry that takes array objects, and library functions lane by lane.

For: `executable` (the first two) and generated code, which refers to the rest. Compiling these
functions with each program took longer than compiling a small kernel. `entry` describes the tables.
What would break it: a table that dies while a program runs on it.

    i32 nj_program_run(ptr inputs, ptr outputs, ptr arena, ptr consts)

runs a program that is all data; 1 when a callback into Python failed. `nj_program_objects` does the
same to any program, on tables of NumPy array objects: it reads their data pointers itself, and
returns 2, having done nothing, when one is not contiguous and aligned. `nj_program_places` computes
the addresses of a program's places, `nj_program_steps` runs a part of its steps on them.

    ptr nj_program_take(i64 bytes)          void nj_program_give(ptr block)

lend memory, aligned to 64 bytes, to functions that need more of it than fits the stack.

    void nj_lanes_TYPE_ARITY(ptr function, i64 n, ptr values...)

calls a C function of doubles with every element, and leaves the results in the first array.
"""

from __future__ import annotations

import functools
import threading

from numjet.cpu.link import link
from numjet.cpu.runtime.entry import (
    CHUNKS,
    CONSTS,
    CONTIGUOUS_ALIGNED,
    COPY,
    DATA_OFFSET,
    FLAGS_OFFSET,
    HOST,
    KIND_BITS,
    LANES,
    PROGRAM,
    REPEAT,
    TABLES,
)

# Blocks of memory that functions borrow while they run, in place of much of the stack: each size
# has slots for warm blocks that nobody has, and larger ones come from malloc. Before
# a block stand the address that malloc gave and its size's number.
_SLOTS, _SMALLEST, _SIZES = 64, 14, 9  # 16 KiB to 4 MiB
_BORROWED = f"""
@blocks = internal global [{_SLOTS * _SIZES} x i64] zeroinitializer, align 64
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)

define ptr @program_take(i64 %bytes) nounwind {{
entry:
  %less = sub i64 %bytes, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 false)
  %above = sub i64 {64 - _SMALLEST}, %zeros
  %number = call i64 @llvm.smax.i64(i64 %above, i64 0)
  %kept = icmp slt i64 %number, {_SIZES}
  %first = mul i64 %number, {_SLOTS}
  br i1 %kept, label %try, label %make
try:
  %k = phi i64 [ 0, %entry ], [ %next, %more ]
  %at = add i64 %first, %k
  %slot = getelementptr i64, ptr @blocks, i64 %at
  %here = load atomic i64, ptr %slot monotonic, align 8
  %empty = icmp eq i64 %here, 0
  br i1 %empty, label %more, label %take
take:
  %got = atomicrmw xchg ptr %slot, i64 0 acquire, align 8
  %gone = icmp eq i64 %got, 0
  br i1 %gone, label %more, label %have
have:
  %found = inttoptr i64 %got to ptr
  ret ptr %found
more:
  %next = add i64 %k, 1
  %last = icmp eq i64 %next, {_SLOTS}
  br i1 %last, label %make, label %try
make:
  %power = add i64 %number, {_SMALLEST}
  %whole = shl i64 1, %power
  %room = add i64 %whole, 128
  %raw = call ptr @malloc(i64 %room)
  %address = ptrtoint ptr %raw to i64
  %up = add i64 %address, 127
  %round = and i64 %up, -64
  %made = inttoptr i64 %round to ptr
  %raw_p = getelementptr i8, ptr %made, i64 -8
  store i64 %address, ptr %raw_p, align 8
  %number_p = getelementptr i8, ptr %made, i64 -16
  store i64 %number, ptr %number_p, align 8
  ret ptr %made
}}

define void @program_give(ptr %block) nounwind {{
entry:
  %address = ptrtoint ptr %block to i64
  %number_p = getelementptr i8, ptr %block, i64 -16
  %number = load i64, ptr %number_p, align 8
  %kept = icmp slt i64 %number, {_SIZES}
  %first = mul i64 %number, {_SLOTS}
  br i1 %kept, label %try, label %drop
try:
  %k = phi i64 [ 0, %entry ], [ %next, %more ]
  %at = add i64 %first, %k
  %slot = getelementptr i64, ptr @blocks, i64 %at
  %pair = cmpxchg ptr %slot, i64 0, i64 %address release monotonic, align 8
  %put = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %put, label %out, label %more
more:
  %next = add i64 %k, 1
  %last = icmp eq i64 %next, {_SLOTS}
  br i1 %last, label %drop, label %try
drop:
  %raw_p = getelementptr i8, ptr %block, i64 -8
  %raw = load ptr, ptr %raw_p, align 8
  call void @free(ptr %raw)
  br label %out
out:
  ret void
}}
"""

# A table of so many pointers lies on the stack.
_FEW = 512

_OBJECTS = f"""
define internal i32 @data(ptr %objects, ptr %pointers, i64 %n) nounwind {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %next, label %none
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %both = phi i32 [ -1, %entry ], [ %both1, %next ]
  %a = getelementptr ptr, ptr %objects, i64 %k
  %array = load ptr, ptr %a, align 8
  %b = getelementptr i8, ptr %array, i64 {FLAGS_OFFSET}
  %flags = load i32, ptr %b, align 4
  %c = getelementptr i8, ptr %array, i64 {DATA_OFFSET}
  %data = load ptr, ptr %c, align 8
  %d = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %data, ptr %d, align 8
  %both1 = and i32 %both, %flags
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %next, label %done
done:
  ret i32 %both1
none:
  ret i32 -1
}}

define i32 @program_objects(ptr %inputs, ptr %outputs, ptr %arena, ptr %consts) nounwind {{
entry:
  %a = getelementptr i8, ptr %consts, i64 {CONSTS["inputs"]}
  %ins = load i64, ptr %a, align 8
  %b = getelementptr i8, ptr %consts, i64 {CONSTS["outputs"]}
  %outs = load i64, ptr %b, align 8
  %count = add i64 %ins, %outs
  %few = icmp ule i64 %count, {_FEW}
  br i1 %few, label %stacked, label %borrowed
stacked:
  %near = alloca ptr, i64 %count, align 16
  br label %begin
borrowed:
  %bytes = shl i64 %count, 3
  %far = call ptr @program_take(i64 %bytes)
  br label %begin
begin:
  %from = phi ptr [ %near, %stacked ], [ %far, %borrowed ]
  %to = getelementptr ptr, ptr %from, i64 %ins
  %one = call i32 @data(ptr %inputs, ptr %from, i64 %ins)
  %two = call i32 @data(ptr %outputs, ptr %to, i64 %outs)
  %both = and i32 %one, %two
  %flags = and i32 %both, {CONTIGUOUS_ALIGNED}
  %plain = icmp eq i32 %flags, {CONTIGUOUS_ALIGNED}
  br i1 %plain, label %run, label %refuse
run:
  %c = getelementptr i8, ptr %consts, i64 {CONSTS["main"]}
  %main = load ptr, ptr %c, align 8
  %ended = call i32 %main(ptr %from, ptr %to, ptr %arena, ptr %consts)
  br label %out
refuse:
  br label %out
out:
  %status = phi i32 [ %ended, %run ], [ 2, %refuse ]
  br i1 %few, label %end, label %give
give:
  call void @program_give(ptr %from)
  br label %end
end:
  ret i32 %status
}}
"""

_PLACES = f"""
define void @program_places(
  ptr %inputs, ptr %outputs, ptr %arena, ptr %consts, ptr %places
) nounwind {{
entry:
  %tables = alloca [4 x ptr], align 16
  %arenas = alloca ptr, align 8
  store ptr %arena, ptr %arenas, align 8
  %t0 = getelementptr i8, ptr %tables, i64 {TABLES["arena"]}
  store ptr %arenas, ptr %t0, align 8
  %t1 = getelementptr i8, ptr %tables, i64 {TABLES["input"]}
  store ptr %inputs, ptr %t1, align 8
  %t2 = getelementptr i8, ptr %tables, i64 {TABLES["output"]}
  store ptr %outputs, ptr %t2, align 8
  %t3 = getelementptr i8, ptr %tables, i64 {TABLES["const"]}
  store ptr %consts, ptr %t3, align 8
  %program = load ptr, ptr %consts, align 8
  %a = getelementptr i8, ptr %program, i64 {PROGRAM["count"]}
  %n = load i64, ptr %a, align 8
  %b = getelementptr i8, ptr %program, i64 {PROGRAM["places"]}
  %words = load ptr, ptr %b, align 8
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %next, label %done
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %at = shl i64 %k, 4
  %place = getelementptr i8, ptr %words, i64 %at
  %kind = load i32, ptr %place, align 4
  %c = getelementptr i8, ptr %place, i64 4
  %index = load i32, ptr %c, align 4
  %d = getelementptr i8, ptr %tables, i32 %kind
  %table = load ptr, ptr %d, align 8
  %e = getelementptr i8, ptr %table, i32 %index
  %base = load ptr, ptr %e, align 8
  %f = getelementptr i8, ptr %place, i64 8
  %offset = load i64, ptr %f, align 8
  %address = getelementptr i8, ptr %base, i64 %offset
  %to = getelementptr ptr, ptr %places, i64 %k
  store ptr %address, ptr %to, align 8
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}
"""

# The words of a step: number and kind, how many operands, two 64-bit numbers, the operands' places.
_STEPS = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i32 @program_steps(ptr %consts, ptr %places, i64 %start, i64 %bytes) nounwind {{
entry:
  %program = load ptr, ptr %consts, align 8
  %a = getelementptr i8, ptr %program, i64 {PROGRAM["functions"]}
  %functions = load ptr, ptr %a, align 8
  %b = getelementptr i8, ptr %program, i64 {PROGRAM["steps"]}
  %steps = load ptr, ptr %b, align 8
  %c = getelementptr i8, ptr %program, i64 {PROGRAM["most"]}
  %most = load i64, ptr %c, align 8
  %d = getelementptr i8, ptr %consts, i64 {CONSTS["parallel_for"]}
  %parallel_for = load ptr, ptr %d, align 8
  %first = getelementptr i8, ptr %steps, i64 %start
  %end = getelementptr i8, ptr %first, i64 %bytes
  %few = icmp ule i64 %most, {_FEW}
  br i1 %few, label %stacked, label %borrowed
stacked:
  %near = alloca ptr, i64 %most, align 16
  br label %begin
borrowed:
  %room = shl i64 %most, 3
  %far = call ptr @program_take(i64 %room)
  br label %begin
begin:
  %operands = phi ptr [ %near, %stacked ], [ %far, %borrowed ]
  br label %on
on:
  %at = phi ptr [ %first, %begin ], [ %after, %plain ], [ %after, %chunks ], [ %after, %copy ],
                [ %after, %host ], [ %beyond, %rounds ]
  %more = icmp ult ptr %at, %end
  br i1 %more, label %step, label %done
step:
  %word = load i32, ptr %at, align 4
  %e = getelementptr i8, ptr %at, i64 4
  %count = load i32, ptr %e, align 4
  %f = getelementptr i8, ptr %at, i64 8
  %one = load i64, ptr %f, align 4
  %g = getelementptr i8, ptr %at, i64 16
  %two = load i64, ptr %g, align 4
  %h = getelementptr i8, ptr %at, i64 24
  %size = shl i32 %count, 2
  %after = getelementptr i8, ptr %h, i32 %size
  %kind = and i32 %word, {(1 << KIND_BITS) - 1}
  %number = lshr i32 %word, {KIND_BITS}
  br label %operand
operand:
  %from = phi ptr [ %h, %step ], [ %from1, %operand ]
  %to = phi ptr [ %operands, %step ], [ %to1, %operand ]
  %place = load i32, ptr %from, align 4
  %i = getelementptr ptr, ptr %places, i32 %place
  %value = load ptr, ptr %i, align 8
  store ptr %value, ptr %to, align 8
  %from1 = getelementptr i8, ptr %from, i64 4
  %to1 = getelementptr i8, ptr %to, i64 8
  %again = icmp ult ptr %from1, %after
  br i1 %again, label %operand, label %act
act:
  %j = getelementptr ptr, ptr %functions, i32 %number
  switch i32 %kind, label %plain [
    i32 {CHUNKS}, label %chunks
    i32 {COPY}, label %copy
    i32 {HOST}, label %host
    i32 {REPEAT}, label %repeat
  ]
plain:
  %function = load ptr, ptr %j, align 8
  call void %function(ptr %operands)
  br label %on
chunks:
  %body = load ptr, ptr %j, align 8
  call void %parallel_for(ptr %body, ptr %operands, i64 %one, i64 %two)
  br label %on
copy:
  %target = load ptr, ptr %operands, align 8
  %l = getelementptr i8, ptr %operands, i64 8
  %source = load ptr, ptr %l, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %one, i1 false)
  br label %on
host:
  %m = getelementptr ptr, ptr %consts, i32 %number
  %callback = load ptr, ptr %m, align 8
  %status = call i32 %callback(ptr %operands)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %stop, label %on
repeat:
  %beyond = getelementptr i8, ptr %after, i64 %two
  %here = ptrtoint ptr %after to i64
  %base = ptrtoint ptr %steps to i64
  %inside = sub i64 %here, %base
  br label %round
round:
  %left = phi i64 [ %one, %repeat ], [ %left1, %rounds ]
  %result = call i32 @program_steps(ptr %consts, ptr %places, i64 %inside, i64 %two)
  %broken = icmp ne i32 %result, 0
  br i1 %broken, label %stop, label %rounds
rounds:
  %left1 = sub i64 %left, 1
  %unfinished = icmp sgt i64 %left1, 0
  br i1 %unfinished, label %round, label %on
stop:
  br label %out
done:
  br label %out
out:
  %ended = phi i32 [ 1, %stop ], [ 0, %done ]
  br i1 %few, label %return, label %give
give:
  call void @program_give(ptr %operands)
  br label %return
return:
  ret i32 %ended
}}
"""

_RUN = f"""
define i32 @program_run(ptr %inputs, ptr %outputs, ptr %arena, ptr %consts) nounwind {{
entry:
  %program = load ptr, ptr %consts, align 8
  %a = getelementptr i8, ptr %program, i64 {PROGRAM["count"]}
  %n = load i64, ptr %a, align 8
  %few = icmp ule i64 %n, {_FEW}
  br i1 %few, label %stacked, label %borrowed
stacked:
  %near = alloca ptr, i64 %n, align 16
  br label %run
borrowed:
  %room = shl i64 %n, 3
  %far = call ptr @program_take(i64 %room)
  br label %run
run:
  %places = phi ptr [ %near, %stacked ], [ %far, %borrowed ]
  call void @program_places(ptr %inputs, ptr %outputs, ptr %arena, ptr %consts, ptr %places)
  %b = getelementptr i8, ptr %program, i64 {PROGRAM["bytes"]}
  %bytes = load i64, ptr %b, align 8
  %status = call i32 @program_steps(ptr %consts, ptr %places, i64 0, i64 %bytes)
  br i1 %few, label %end, label %give
give:
  call void @program_give(ptr %places)
  br label %end
end:
  ret i32 %status
}}
"""


def _lanes(element: str, arity: int) -> str:
    """lanes_f32_1 and the like."""
    kind = {"float": "f32", "double": "f64"}[element]
    read = widen = ""
    for k in range(arity):
        read += f"  %p{k} = getelementptr {element}, ptr %values{k}, i64 %i\n"
        read += f"  %x{k} = load {element}, ptr %p{k}\n"
        if element == "float":
            widen += f"  %d{k} = fpext float %x{k} to double\n"
    argument = "%d" if widen else "%x"
    given = ", ".join([f"double {argument}{k}" for k in range(arity)])
    narrow, result = "", "%y"
    if element == "float":
        narrow, result = "  %z = fptrunc double %y to float\n", "%z"
    arrays = ", ".join([f"ptr %values{k}" for k in range(arity)])
    return f"""
define void @lanes_{kind}_{arity}(ptr %function, i64 %n, {arrays}) nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
{read}{widen}  %y = call double %function({given})
{narrow}  store {element} {result}, ptr %p0
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}
"""


def programs_ir() -> str:
    """The module."""
    lanes = [_lanes(element, arity) for element in ("float", "double") for arity in (1, 2)]
    return "".join([_BORROWED, _OBJECTS, _PLACES, _STEPS, _RUN, *lanes])


_starting = threading.Lock()


@functools.cache
def _library_once() -> link.Library:
    library = link.library(programs_ir())
    library.leak()  # queued calls may be inside when the interpreter ends
    return library


def address(name: str) -> int:
    """The address of one of the module's functions, whose names begin with "nj_" outside of it."""
    with _starting:
        return _library_once().address(name.removeprefix("nj_"))


link.provide("nj_program_", address)
link.provide(LANES, address)
