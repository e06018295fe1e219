"""What only one way behind a branch reads is computed on that way, and nothing else moves."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import WIDTHS, generated

from numjet.cpu.link import link
from numjet.cpu.x86.front.parse import parse
from numjet.cpu.x86.middle.sink import sink

TEXT = """define void @f(ptr %p, ptr %q, i64 %n) nounwind {
entry:
  %x = load <8 x double>, ptr %p, align 8
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %join ]
  %v = phi <8 x double> [ %x, %entry ], [ %w, %join ]
  %s = fmul <8 x double> %v, %x
  %a = fadd <8 x double> %s, splat (double 1.0)
  %b = fsub <8 x double> %v, splat (double 3.0)
  %both = fmul <8 x double> %v, splat (double 0.5)
  %y = load <8 x double>, ptr %q, align 8
  %odd = and i64 %k, 1
  %c = icmp eq i64 %odd, 0
  br i1 %c, label %then, label %else
then:
  %d = fadd <8 x double> %a, %both
  br label %join
else:
  %e = fadd <8 x double> %b, %y
  br label %join
join:
  %g = phi <8 x double> [ %d, %then ], [ %e, %else ]
  %w = fsub <8 x double> %g, %both
  %k1 = add i64 %k, 1
  store <8 x double> %w, ptr %q, align 8
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %loop, label %done
done:
  store <8 x double> %w, ptr %p, align 8
  ret void
}
"""


def test_chains_move_and_what_both_ways_read_stays() -> None:
    (function,) = parse(TEXT).functions
    sink(function)
    names = {b.label: [i[1] for i in b.instructions if i[1] is not None] for b in function.blocks}
    assert names == {
        "entry": ["%x"], "loop": ["%both", "%y", "%odd", "%c"], "then": ["%s", "%a", "%d"],
        "else": ["%b", "%e"], "join": ["%w", "%k1", "%more"], "done": [],
    }  # fmt: skip
    for block in function.blocks:
        assert all(i[2] == block.index for i in block.instructions)
        assert all(function.defs[i[1]] is i for i in block.instructions if i[1] is not None)


@pytest.mark.skipif(not WIDTHS, reason="not a processor for the direct generator")
@pytest.mark.usefixtures("vector_bytes")
def test_moved_instructions_compute_the_same() -> None:
    made = generated(TEXT)
    assert made is not None
    left = []
    for image in (made, link._compile(TEXT)):
        library = link.load([image])
        p, q = np.linspace(-1, 2, 8), np.linspace(1, 3, 8)
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        function(library.address("f"))(p.ctypes.data, q.ctypes.data, 7)
        left.append((p.tolist(), q.tolist()))
    assert left[0] == left[1]
