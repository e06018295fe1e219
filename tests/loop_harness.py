"""Compile hand-written kernels of the loop IR and run them on NumPy arrays."""

from __future__ import annotations

import ctypes

import numpy as np

from numjet.cpu.builder.builder import Module
from numjet.cpu.emit.emit import emit_kernel
from numjet.cpu.link import link
from numjet.cpu.loops.ir import Kernel
from numjet.cpu.loops.verify import verify

# Runs the chunks one after the other, last first: parallel iterations must not depend on order.
SERIAL_POOL = """
define internal void @nj_parallel_for(ptr %fn, ptr %ctx, i64 %n, i64 %grain) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %head, label %exit
head:
  %i = phi i64 [ %n, %entry ], [ %low, %head ]
  %start = sub i64 %i, %grain
  %low = call i64 @llvm.smax.i64(i64 %start, i64 0)
  call void %fn(ptr %ctx, i64 %low, i64 %i)
  %more = icmp sgt i64 %low, 0
  br i1 %more, label %head, label %exit
exit:
  ret void
}
declare i64 @llvm.smax.i64(i64, i64)
"""


def text(kernel: Kernel, check: bool = False) -> str:
    verify(kernel)
    module = Module(link.features())
    emit_kernel(module, kernel, check=check)
    out = module.text()
    lines = [x for x in out.splitlines() if not x.startswith("declare void @nj_parallel_for")]
    if "declare i64 @llvm.smax.i64(" in out:
        return "\n".join(lines) + SERIAL_POOL.replace("declare i64 @llvm.smax.i64(i64, i64)", "")
    return "\n".join(lines) + SERIAL_POOL


class Compiled:
    """A kernel as a function of arrays, in the order of its buffers."""

    def __init__(self, kernel: Kernel, check: bool = False):
        self.text = text(kernel, check)
        self.library = link.load([link.compile_module(self.text, verify=True)], [kernel.name])
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.call = function(self.library.address(kernel.name))
        self.kernel = kernel

    def __call__(self, *arrays: np.ndarray) -> None:
        for array, buffer in zip(arrays, self.kernel.buffers, strict=True):
            assert array.shape == buffer.shape and array.dtype == buffer.dtype, buffer
            assert array.flags.c_contiguous
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        self.call(pointers)


def run(kernel: Kernel, *arrays: np.ndarray, check: bool = False) -> None:
    Compiled(kernel, check)(*arrays)
