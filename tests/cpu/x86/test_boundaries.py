"""Where the reach of an instruction ends: short vectors, narrow indices, far addresses, one bit."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from numjet.cpu import link
from numjet.cpu.x86 import generate, host

pytestmark = pytest.mark.skipif(
    not host.able(link.target().triple, link.target().features, link.vector_bytes()),
    reason="not a processor for the direct generator",
)


def made_by(image: bytes, memory: np.ndarray) -> bytes:
    """What f(pointer) leaves in a copy of memory."""
    library, left = link.load([image]), memory.copy()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("f"))(left.ctypes.data)
    return left.tobytes()


def agree(body: str, memory: np.ndarray, declared: str = "") -> None:
    """Both generators make of a function of %p what leaves the same in memory."""
    text = f"{declared}\ndefine void @f(ptr %p) nounwind {{\nentry:\n{body}  ret void\n}}\n"
    image = generate.generate(text)
    assert image is not None, generate.refused
    assert made_by(image, memory) == made_by(link._compile(text, verify=True), memory)


# Two lanes of four: what lies beyond them compares too.
TWO_LANES = """  %a = load <4 x float>, ptr %p, align 4
  %l = shufflevector <4 x float> %a, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %m = fcmp ogt <2 x float> %l, splat (float LIMIT)
"""


def test_a_comparison_of_two_floats_has_two_bits() -> None:
    declared = "declare i1 @llvm.vector.reduce.or.v2i1(<2 x i1>)"
    body = TWO_LANES.replace("LIMIT", "2.5") + """
  %r = call i1 @llvm.vector.reduce.or.v2i1(<2 x i1> %m)
  %z = zext i1 %r to i32
  store i32 %z, ptr %p, align 4
"""
    agree(body, np.arange(1, 9, dtype=np.float32), declared)


def test_two_floats_are_stored_and_no_more() -> None:
    declared = "declare void @llvm.masked.store.v2f32.p0(<2 x float>, ptr, i32, <2 x i1>)"
    body = TWO_LANES.replace("LIMIT", "1.5") + """
  %x = fadd <2 x float> %l, splat (float 1.0)
  call void @llvm.masked.store.v2f32.p0(<2 x float> %x, ptr %p, i32 4, <2 x i1> %m)
"""
    agree(body, np.arange(1, 9, dtype=np.float32), declared)


@pytest.mark.parametrize("type,dtype", [("<8 x double>", np.float64), ("<8 x i64>", np.int64),
                                        ("<16 x i32>", np.int32), ("<32 x i64>", np.int64)])
def test_lanes_with_numbers_of_32_bits(type: str, dtype: type) -> None:
    """The upper half of the register of a truncated number counts for nothing."""
    element = type.rpartition(" ")[2][:-1]
    size = np.dtype(dtype).itemsize * int(type[1:].split()[0])
    memory = np.zeros(size // 8 + 2, np.int64)
    memory[-2] = (5 << 32) + 3
    agree(f"""  %a = load {type}, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 {size}
  %w = load i64, ptr %q, align 1
  %t = trunc i64 %w to i32
  %s = load {element}, ptr %q, align 1
  %v = insertelement {type} %a, {element} %s, i32 %t
  store {type} %v, ptr %p, align 1
""", memory)


def test_signs_of_half_floats() -> None:
    vector = "<32 x half>"
    declared = f"declare {vector} @llvm.copysign.v32f16({vector}, {vector})"
    agree(f"""  %a = load {vector}, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 64
  %b = load {vector}, ptr %q, align 1
  %x = call {vector} @llvm.copysign.v32f16({vector} %a, {vector} %b)
  store {vector} %x, ptr %p, align 1
""", np.random.default_rng(2).integers(0, 1 << 16, 64).astype(np.uint16), declared)


def test_a_lane_whose_number_a_loop_computes_stays_in_it() -> None:
    text = """define void @f(ptr %p) nounwind {
entry:
  %s = load float, ptr %p, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %k = and i64 %i, 3
  %v = insertelement <4 x float> poison, float %s, i64 %k
  %x = extractelement <4 x float> %v, i64 %k
  %q = getelementptr float, ptr %p, i64 %i
  store float %x, ptr %q, align 4
  %j = add i64 %i, 1
  %m = icmp slt i64 %j, 8
  br i1 %m, label %loop, label %out
out:
  ret void
}
"""
    image = generate.generate(text)
    assert image is not None
    left = np.frombuffer(made_by(image, np.arange(5, 13, dtype=np.float32)), np.float32)
    assert left.tolist() == [5.0] * 8


def test_addresses_beyond_two_gigabytes_are_left_to_llvm() -> None:
    text = """define void @f(ptr %p) nounwind {
entry:
  %a = getelementptr i8, ptr %p, i64 2147483600
  %e = load <32 x float>, ptr %a, align 4
  store <32 x float> %e, ptr %p, align 4
  ret void
}
"""
    before = generate.refused["a long displacement"]
    assert generate.generate(text) is None
    assert generate.refused["a long displacement"] == before + 1
