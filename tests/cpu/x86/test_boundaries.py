"""Where the reach of an instruction ends: short vectors, narrow indices, far addresses, one bit."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest
from x86_agree import GENERATOR, agree, generated, made_by

from numjet.cpu.link import link
from numjet.cpu.x86 import generate

pytestmark = GENERATOR


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


@pytest.mark.parametrize("type", ["<64 x i8>", "<128 x i8>", "<16 x i8>", "<2 x i8>"])
@pytest.mark.parametrize("operation", ["mul", "shl", "lshr", "ashr"])
@pytest.mark.parametrize("operand", [None, 0, 1, 3, 7])
def test_products_and_shifts_of_bytes(type: str, operation: str, operand: int | None) -> None:
    """By lanes, by one number, behind a mask, and of what a loop carries."""
    other = "%c" if operand is None else f"splat (i8 {operand})"
    agree(f"""  %a = load {type}, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 128
  %b = load {type}, ptr %q, align 1
  %c = {"and" if operation != "mul" else "or"} {type} %b, splat (i8 7)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]
  %x = phi {type} [ %a, %entry ], [ %y, %loop ]
  %y = {operation} {type} %x, {other}
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 2
  br i1 %more, label %loop, label %end
end:
  %m = and {type} %a, splat (i8 60)
  %s = {operation} {type} %m, {other}
  %z = xor {type} %s, %y
  store {type} %z, ptr %p, align 1
""", np.random.default_rng(1).integers(0, 256, 256).astype(np.uint8))


@pytest.mark.parametrize("lanes", [2, 4, 16, 32])
def test_lanes_divided_by_a_number(lanes: int) -> None:
    """Quotients and remainders as Python has them, by numbers of all kinds."""
    top = 1 << 31
    divisors = [1, -1, 2, -2, 3, -3, 5, 7, -7, 8, 10, 28, 100, 641, 65537, 100000, 1 << 20, top - 1,
                1 - top, -top, top // 2 + 1]
    numbers = [0, 1, -1, 2, 6, 7, -7, 99, -100, top - 1, 1 - top, top // 2, 641 * 6700417]
    numbers += [int(x) for x in np.random.default_rng(3).integers(-top, top, 19)]
    kind, body, places = f"<{lanes} x i32>", [f"  %x = load <{lanes} x i32>, ptr %p, align 1"], []
    for k, divisor in enumerate(divisors):
        for op in ("srem", "sdiv", "udiv", "urem"):
            name = f"{op}{k}"
            by = divisor if op[0] == "s" else divisor % (1 << 32)
            place = 4 * lanes * (1 + len(places))
            body += [
                f"  %{name} = {op} {kind} %x, splat (i32 {by})",
                f"  %q{name} = getelementptr i8, ptr %p, i64 {place}",
                f"  store {kind} %{name}, ptr %q{name}, align 1",
            ]
            places.append((op, divisor))
    text = "\n".join(["define void @f(ptr %p) nounwind {", "entry:", *body, "  ret void", "}", ""])
    image = generated(text)
    assert image is not None, generate.refused
    for start in range(0, len(numbers), lanes):
        x = [n % (1 << 32) for n in (numbers[start : start + lanes] + [3] * lanes)[:lanes]]
        memory = np.zeros(lanes * (1 + len(places)), np.uint32)
        memory[:lanes] = x
        left = np.frombuffer(made_by(image, memory), np.uint32).reshape(-1, lanes)[1:]
        for (op, divisor), row in zip(places, left, strict=True):
            for number, found in zip(x, row.tolist(), strict=True):
                a, b = number, divisor % (1 << 32)
                if op[0] == "s":
                    a, b = a - (a >> 31 << 32), divisor
                    if a == -top and b == -1:
                        continue  # no number of 32 bits
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                wanted = quotient if op.endswith("div") else a - quotient * b
                assert found == wanted % (1 << 32), (op, a, b)


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
def test_bits_as_a_number_and_back(lanes: int) -> None:
    kind, mask, number = f"<{lanes} x i8>", f"<{lanes} x i1>", f"i{lanes}"
    agree(f"""  %a = load {kind}, ptr %p, align 1
  %m = icmp slt {kind} %a, zeroinitializer
  %n = bitcast {mask} %m to {number}
  %q = getelementptr i8, ptr %p, i64 64
  %w = load i64, ptr %q, align 1
  %t = {f"trunc i64 %w to {number}" if lanes < 64 else "add i64 %w, 0"}
  %u = xor {number} %t, %n
  %v = bitcast {number} %u to {mask}
  %z = zext {mask} %v to {kind}
  store {kind} %z, ptr %p, align 1
  store {number} %n, ptr %q, align 1
""", np.random.default_rng(4).integers(0, 256, 128).astype(np.uint8))


@pytest.mark.parametrize("kind", ["fadd", "fmaximum"])
def test_two_lanes_are_put_together(kind: str) -> None:
    start = "float -0.0, " if kind == "fadd" else ""
    flags = "reassoc" if kind == "fadd" else "nsz"
    types = "float, <2 x float>" if kind == "fadd" else "<2 x float>"
    for values in ([1, 2, np.nan, np.nan], [np.nan, 2, 3, 4], [2, 1, 9, 9]):
        agree(f"""  %a = load <4 x float>, ptr %p, align 4
  %l = shufflevector <4 x float> %a, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %r = call {flags} float @llvm.vector.reduce.{kind}.v2f32({start}<2 x float> %l)
  store float %r, ptr %p, align 4
""", np.array(values, np.float32), f"declare float @llvm.vector.reduce.{kind}.v2f32({types})")


@pytest.mark.parametrize("operation", ["fptosi", "fptoui"])
@pytest.mark.parametrize("source,type", [("<16 x double>", "<16 x i64>"),
                                         ("<32 x float>", "<32 x i32>")])
def test_conversions_of_several_registers(operation: str, source: str, type: str) -> None:
    size = 8 if "double" in source else 4
    words = f"v{128 // size}i{8 * size}.v{128 // size}f{8 * size}"
    name = f"@llvm.{operation}.sat.{words}"
    values = [0, -0.0, 1.5, -1.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**31, 2.0**32, 2.0**63,
              2.0**64, -(2.0**31), -(2.0**63), 4294967040.0]  # fmt: skip
    agree(f"""  %a = load {source}, ptr %p, align 4
  %x = call {type} {name}({source} %a)
  store {type} %x, ptr %p, align 4
""", np.array(values * 2, f"f{size}"), f"declare {type} {name}({source})")


@pytest.mark.parametrize("written", [
    "store <16 x float> %b, ptr %p, align 4",
    "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 64, i1 false)",
    "call void @llvm.masked.store.v16f32.p0(<16 x float> %b, ptr %p, i32 4, <16 x i1> %m)",
])
def test_what_was_read_is_not_read_again_behind_a_write(written: str) -> None:
    """Loads become operands of their readers, save past what may write there."""
    agree(f"""  %a = load <16 x float>, ptr %p, align 4
  %s = load i64, ptr %p, align 4
  %q = getelementptr i8, ptr %p, i64 64
  %b = load <16 x float>, ptr %q, align 4
  %m = fcmp ogt <16 x float> %b, splat (float 20.0)
  {written}
  %x = fadd <16 x float> %b, %a
  %t = sub i64 7, %s
  store <16 x float> %x, ptr %q, align 4
  store i64 %t, ptr %p, align 4
""", np.arange(1, 33, dtype=np.float32))


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
    image = generated(text)
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
    assert generated(text) is None
    assert generate.refused["a long displacement"] == before + 1


READERS = [
    ("<2 x i16>", "<2 x i32>", "zext"), ("<2 x i8>", "<2 x i32>", "sext"),
    ("<4 x i8>", "<4 x i16>", "zext"), ("<2 x half>", "<2 x float>", "fpext"),
    ("<1 x float>", "<1 x double>", "fpext"), ("<1 x i32>", "<1 x double>", "sitofp"),
    ("<4 x i8>", "<4 x i32>", "sext"), ("<16 x i8>", "<16 x i32>", "zext"),
    ("<2 x i16>", "<2 x float>", "uitofp"), ("half", "float", "fpext"), ("i16", "i64", "sext"),
]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fault would end the process")
@pytest.mark.parametrize("source,type,operation", READERS)
def test_nothing_is_read_behind_a_page(source: str, type: str, operation: str) -> None:
    """A vector at the very end of memory is read, and not what its instruction could read more."""
    text = f"""define void @f(ptr %p, ptr %o) nounwind {{
entry:
  %a = load {source}, ptr %p, align 1
  %x = {operation} {source} %a to {type}
  store {type} %x, ptr %o, align 1
  ret void
}}
"""
    image = generated(text)
    assert image is not None, generate.refused
    library = link.load([image])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("f"))
    lanes, element = source[1:-1].split(" x ") if source[0] == "<" else (1, source)
    size = int(lanes) * {"half": 2, "float": 4, "i8": 1, "i16": 2, "i32": 4}[element]
    out = np.zeros(64, np.uint8)
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    child = os.fork()
    if child == 0:
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        protect(start + mmap.PAGESIZE, mmap.PAGESIZE, 0)
        function(start + mmap.PAGESIZE - size, out.ctypes.data)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
