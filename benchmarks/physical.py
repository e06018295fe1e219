"""What the machine can do: memory bandwidth and the peak of fused multiply-adds, measured.

Native kernels through numjet's own link, run by numjet's pool of threads, in numjet's worker. A
`Stream` moves as many bytes as a row has to, in memory of its own, and is timed in turn with the
row: bandwidth depends on how many bytes are moved (caches hold some of them) and on what else the
machine does meanwhile. `measure` gives the figures of the report's head: the best of many, from
memory beyond most caches.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable

import numpy as np
from registry import WAYS

from numjet.cpu.link import link
from numjet.cpu.runtime import threads as pool

BYTES = 256 << 20
# Bytes that a thread takes at once where threads take what is left, and how far ahead prefetches
# look: beyond the end of a page, where those of the hardware stop.
PIECE, AHEAD = 1 << 20, 4096
# Enough independent chains to hide four cycles of latency at two issues a cycle.
CHAINS = 12
STREAMS = 8
FMA_ROUNDS = 1_000_000
# Seconds of repetitions; the fastest counts, and the machine may be busy for a while.
DURATION = 0.7

# A task of the pool: the pieces [begin, end) of memory from address p on (of q too, when copying).
_HEAD = """
define void @{name}(ptr %c, i64 %begin, i64 %end) {{
entry:
  %p = load ptr, ptr %c
  %c1 = getelementptr i64, ptr %c, i64 1
  %q = load ptr, ptr %c1
  %c2 = getelementptr i64, ptr %c, i64 2
  %total = load i64, ptr %c2
  %c3 = getelementptr i64, ptr %c, i64 3
  %piece = load i64, ptr %c3
  %first = mul i64 %begin, %piece
  %past = mul i64 %end, %piece
  %n = call i64 @llvm.smin.i64(i64 %past, i64 %total)
  br label %loop
loop:
  %i = phi i64 [%first, %entry], [%next, %loop]
"""


def _read(name: str, width: int, ahead: int) -> str:
    """@name: read everything, with prefetches `ahead` bytes ahead if that is not 0."""
    kind, count = f"<{width // 4} x i32>", range(STREAMS)
    text = _HEAD.format(name=name)
    for k in count:
        text += f"  %a{k} = phi {kind} [zeroinitializer, %entry], [%b{k}, %loop]\n"
    for k in count:
        text += _place(k, width)
        if ahead:
            text += f"  %f{k} = getelementptr i8, ptr %p{k}, i64 {ahead}\n"
            text += f"  call void @llvm.prefetch.p0(ptr %f{k}, i32 0, i32 3, i32 1)\n"
        text += f"  %x{k} = load {kind}, ptr %p{k}, align {width}\n"
        text += f"  %b{k} = xor {kind} %a{k}, %x{k}\n"
    text += _step(width) + f"  %s0 = xor {kind} %b0, %b0\n"
    for k in count:
        text += f"  %s{k + 1} = xor {kind} %s{k}, %b{k}\n"
    reduce = f"llvm.vector.reduce.xor.v{width // 4}i32"
    text += f"  %r = call i32 @{reduce}({kind} %s{STREAMS})\n"
    text += "  %c4 = getelementptr i64, ptr %c, i64 4\n  store i32 %r, ptr %c4\n"
    return text + "  ret void\n}\n"


def _copy(name: str, width: int, past_caches: bool) -> str:
    """@name: copy everything."""
    kind, count = f"<{width // 4} x i32>", range(STREAMS)
    text = _HEAD.format(name=name)
    for k in count:
        text += _place(k, width) + f"  %q{k} = getelementptr i8, ptr %q, i64 %o{k}\n"
        text += f"  %x{k} = load {kind}, ptr %p{k}, align {width}\n"
    hint = ", !nontemporal !0" if past_caches else ""
    for k in count:
        text += f"  store {kind} %x{k}, ptr %q{k}, align {width}{hint}\n"
    return text + _step(width) + "  ret void\n}\n"


def _place(k: int, width: int) -> str:
    return f"  %o{k} = add i64 %i, {k * width}\n  %p{k} = getelementptr i8, ptr %p, i64 %o{k}\n"


def _step(width: int) -> str:
    return f"""  %next = add i64 %i, {STREAMS * width}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
"""


def _multiply_add(width: int) -> str:
    """@multiply_add: FMA_ROUNDS of CHAINS operations on vectors."""
    lanes = width // 4
    kind, count = f"<{lanes} x float>", range(CHAINS)
    text = f"""
define void @multiply_add(ptr %c, i64 %begin, i64 %end) {{
entry:
  %m = load {kind}, ptr %c, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
"""
    for k in count:
        text += f"  %a{k} = phi {kind} [%m, %entry], [%b{k}, %loop]\n"
    for k in count:
        text += f"  %b{k} = call {kind} @llvm.fma.v{lanes}f32"
        text += f"({kind} %a{k}, {kind} %m, {kind} %m)\n"
    text += f"""  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {FMA_ROUNDS}
  br i1 %more, label %loop, label %done
done:
  %s0 = fadd {kind} %b0, %b0
"""
    for k in count:
        text += f"  %s{k + 1} = fadd {kind} %s{k}, %b{k}\n"
    text += f"""  %slot = getelementptr <16 x float>, ptr %c, i64 %end
  store {kind} %s{CHAINS}, ptr %slot, align 4
  ret void
}}
"""
    return text


@functools.cache
def _library() -> link.Library:
    """The kernels, linked once."""
    width = link.vector_bytes()
    lanes = width // 4
    kind, whole = f"<{lanes} x float>", f"<{lanes} x i32>"
    text = f"""
declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})
declare i32 @llvm.vector.reduce.xor.v{lanes}i32({whole})
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.smin.i64(i64, i64)
"""
    text += _read("read", width, 0) + _read("read_ahead", width, AHEAD)
    text += _copy("copy", width, False) + _copy("copy_past", width, True) + _multiply_add(width)
    return link.load([link.compile_module(text + "!0 = !{i32 1}\n")])


def _run(name: str, context: int, count: int) -> None:
    """Call a task for each of `count` pieces, on the pool's threads."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    kind(pool.parallel_for_address())(_library().address(name), context, count, 1)


class Stream:
    """So many bytes read, or where more than a tenth as many are written, copied: half of all read
    and half written."""

    def __init__(self, reads: float, writes: float, threads: int) -> None:
        block = STREAMS * link.vector_bytes()
        self.copies = writes > reads / 10
        moved = (reads + writes) / 2 if self.copies else reads + writes
        self.size = max(int(moved) // block * block, block)
        self.share = -(-self.size // threads // block) * block
        self.source = aligned(self.size)
        self.target = aligned(self.size if self.copies else 0)

    def seconds(self, way: int, count: int = 1) -> float:
        """The seconds that a pass takes, of `count` in a row, in one of WAYS ways: the threads'
        equal shares or pieces as they come, each with and without prefetches or stores past the
        caches. What the machine can do is the least of the ways' medians."""
        name = (("read", "read_ahead"), ("copy", "copy_past"))[self.copies][way % 2]
        piece = min(self.share, PIECE) if way // 2 else self.share
        context = (ctypes.c_int64 * 5)(
            self.source.ctypes.data, self.target.ctypes.data, self.size, piece
        )
        start = time.perf_counter()
        for _ in range(count):
            _run(name, ctypes.addressof(context), -(-self.size // piece))
        return (time.perf_counter() - start) / count


def aligned(size: int) -> np.ndarray:
    memory = np.ones(size + 4096, np.uint8)
    offset = -memory.ctypes.data % 4096
    return memory[offset : offset + size]


def _fastest(seconds: Callable[[], float]) -> float:
    """The least of what `seconds` returns in a while."""
    best = float("inf")
    end = time.perf_counter() + DURATION
    while time.perf_counter() < end:
        best = min(best, seconds())
    return best


def measure(threads: int) -> dict[str, float]:
    """Bytes a second read and copied (both directions counted), and float32 operations a second."""
    reading, copying = Stream(BYTES, 0, threads), Stream(BYTES, BYTES, threads)
    values = np.zeros((threads + 1, 16), np.float32)

    def multiply_add() -> float:
        start = time.perf_counter()
        _run("multiply_add", values.ctypes.data, threads)
        return time.perf_counter() - start

    operations = 2.0 * threads * CHAINS * (link.vector_bytes() // 4) * FMA_ROUNDS
    return {
        "read": BYTES / _fastest(lambda: min(map(reading.seconds, range(WAYS)))),
        "copy": 2 * BYTES / _fastest(lambda: min(map(copying.seconds, range(WAYS)))),
        "flops": operations / _fastest(multiply_add),
    }
