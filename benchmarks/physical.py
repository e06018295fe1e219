"""What the machine can do: memory bandwidth and the peak of fused multiply-adds, measured.

Native kernels through numjet's own link, run on Python threads (foreign calls free the GIL), best
of many. Called in numjet's worker, so that its thread count is that of the rows.
"""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np

from numjet.cpu import link

# Far beyond any cache.
BYTES = 256 << 20
# Enough independent chains to hide four cycles of latency at two issues a cycle.
CHAINS = 12
STREAMS = 8
FMA_ROUNDS = 1_000_000
# Seconds of repetitions; the fastest counts, and the machine may be busy for a while.
DURATION = 0.7


def module(width: int) -> str:
    """LLVM IR of read, copy and multiply_add for vectors of `width` bytes."""
    lanes = width // 4
    v, w = f"<{lanes} x float>", f"<{lanes} x i32>"
    count = range(STREAMS)
    zero = "zeroinitializer"
    text = f"""
declare {v} @llvm.fma.v{lanes}f32({v}, {v}, {v})
declare i32 @llvm.vector.reduce.xor.v{lanes}i32({w})
declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {v})

define void @read(ptr %p, ptr %q, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
"""
    for k in count:
        text += f"  %a{k} = phi {w} [{zero}, %entry], [%b{k}, %loop]\n"
    for k in count:
        text += f"  %o{k} = add i64 %i, {k * width}\n"
        text += f"  %p{k} = getelementptr i8, ptr %p, i64 %o{k}\n"
        text += f"  %x{k} = load {w}, ptr %p{k}, align {width}\n"
        text += f"  %b{k} = xor {w} %a{k}, %x{k}\n"
    text += f"""  %next = add i64 %i, {STREAMS * width}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %s0 = xor {w} %b0, %b0
"""
    for k in count:
        text += f"  %s{k + 1} = xor {w} %s{k}, %b{k}\n"
    text += f"""  %r = call i32 @llvm.vector.reduce.xor.v{lanes}i32({w} %s{STREAMS})
  store i32 %r, ptr %q
  ret void
}}

define void @copy(ptr %p, ptr %q, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
"""
    for k in count:
        text += f"  %o{k} = add i64 %i, {k * width}\n"
        text += f"  %p{k} = getelementptr i8, ptr %p, i64 %o{k}\n"
        text += f"  %q{k} = getelementptr i8, ptr %q, i64 %o{k}\n"
        text += f"  %x{k} = load {v}, ptr %p{k}, align {width}\n"
    for k in count:
        text += f"  store {v} %x{k}, ptr %q{k}, align {width}, !nontemporal !0\n"
    text += f"""  %next = add i64 %i, {STREAMS * width}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}

define void @multiply_add(ptr %p, ptr %q, i64 %n) {{
entry:
  %m = load {v}, ptr %p, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
"""
    for k in range(CHAINS):
        text += f"  %a{k} = phi {v} [%m, %entry], [%b{k}, %loop]\n"
    for k in range(CHAINS):
        text += f"  %b{k} = call {v} @llvm.fma.v{lanes}f32({v} %a{k}, {v} %m, {v} %m)\n"
    text += f"""  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %s0 = fadd {v} %b0, %b0
"""
    for k in range(CHAINS):
        text += f"  %s{k + 1} = fadd {v} %s{k}, %b{k}\n"
    text += f"""  %r = call float @llvm.vector.reduce.fadd.v{lanes}f32(float 0.0, {v} %s{CHAINS})
  store float %r, ptr %q
  ret void
}}

!0 = !{{i32 1}}
"""
    return text


def _best(function, sources: list, targets: list, count: int) -> float:
    """Least seconds of `function` on all threads at once."""

    def run(k):
        function(sources[k].ctypes.data, targets[k].ctypes.data, count)

    best = float("inf")
    end = time.perf_counter() + DURATION
    while time.perf_counter() < end:
        others = [threading.Thread(target=run, args=(k,)) for k in range(1, len(sources))]
        start = time.perf_counter()
        for thread in others:
            thread.start()
        run(0)
        for thread in others:
            thread.join()
        best = min(best, time.perf_counter() - start)
    return best


def aligned(size: int) -> np.ndarray:
    memory = np.ones(size + 4096, np.uint8)
    offset = -memory.ctypes.data % 4096
    return memory[offset : offset + size]


def measure(threads: int) -> dict[str, float]:
    """Bytes a second read and copied (both directions counted), and float32 operations a second."""
    width = link.vector_bytes()
    library = link.load([link.compile_module(module(width))])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    functions = {name: kind(library.address(name)) for name in ("read", "copy", "multiply_add")}
    share = BYTES // threads // 4096 * 4096
    sources = [aligned(share) for _ in range(threads)]
    targets = [aligned(share) for _ in range(threads)]
    read = _best(functions["read"], sources, targets, share)
    copy = _best(functions["copy"], sources, targets, share)
    for source in sources:
        source[:] = 0
    fma = _best(functions["multiply_add"], sources, targets, FMA_ROUNDS)
    return {
        "read": threads * share / read,
        "copy": 2 * threads * share / copy,
        "flops": 2.0 * threads * CHAINS * (width // 4) * FMA_ROUNDS / fma,
    }
