"""Numbers of 8 and 16 bits, of the direct generator: widened, put together, compared; bfloat."""

from __future__ import annotations

import numpy as np
import pytest
from x86_agree import GENERATOR, agree

pytestmark = GENERATOR
BYTES = np.random.default_rng(5).integers(0, 256, 512).astype(np.uint8)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("operation", ["sitofp", "uitofp"])
@pytest.mark.parametrize("float_", ["float", "double"])
def test_lanes_become_floats(bits: int, lanes: int, operation: str, float_: str) -> None:
    """Of what was computed, so that it is in a register, and of what is read."""
    kind, made = f"<{lanes} x i{bits}>", f"<{lanes} x {float_}>"
    agree(f"""  %a = load {kind}, ptr %p, align 1
  %b = add {kind} %a, %a
  %x = {operation} {kind} %b to {made}
  %c = load {kind}, ptr %p, align 1
  %y = {operation} {kind} %c to {made}
  %q = getelementptr i8, ptr %p, i64 256
  store {made} %x, ptr %q, align 1
  store {made} %y, ptr %p, align 1
""", BYTES)


@pytest.mark.parametrize("bits,lanes", [(8, 2), (8, 4), (8, 16), (8, 32), (16, 8), (16, 32)])
@pytest.mark.parametrize("kind", "add mul and or xor smin smax umin umax".split())
def test_lanes_are_put_together(bits: int, lanes: int, kind: str) -> None:
    vector, name = f"<{lanes} x i{bits}>", f"@llvm.vector.reduce.{kind}.v{lanes}i{bits}"
    agree(f"""  %a = load {vector}, ptr %p, align 1
  %x = call i{bits} {name}({vector} %a)
  store i{bits} %x, ptr %p, align 1
""", BYTES, f"declare i{bits} {name}({vector})")


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("limit", [0, 100, 255])
def test_whether_all_of_a_few_lanes_hold(lanes: int, limit: int) -> None:
    name = f"@llvm.vector.reduce.and.v{lanes}i1"
    agree(f"""  %a = load <{lanes} x i64>, ptr %p, align 1
  %b = and <{lanes} x i64> %a, splat (i64 255)
  %m = icmp ule <{lanes} x i64> %b, splat (i64 {limit})
  %r = call i1 {name}(<{lanes} x i1> %m)
  %x = zext i1 %r to i64
  store i64 %x, ptr %p, align 1
""", BYTES, f"declare i1 {name}(<{lanes} x i1>)")


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("kind", ["smin", "smax", "umin", "umax"])
@pytest.mark.parametrize("operands", ["%a, iB %b", "%b, iB %a", "%a, iB 100", "%a, iB -3"])
def test_the_larger_of_two(bits: int, kind: str, operands: str) -> None:
    """Where other bits stand above the numbers'."""
    type = f"i{bits}"
    body = f"""  %v = load i64, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 8
  %w = load i64, ptr %q, align 1
  %a = trunc i64 %v to {type}
  %b = trunc i64 %w to {type}
  %x = call {type} @llvm.{kind}.{type}({type} {operands.replace("iB", type)})
  %y = sext {type} %x to i64
  store i64 %y, ptr %p, align 1
"""
    for start in (0, 8, 16, 24):
        agree(body, BYTES[start:], f"declare {type} @llvm.{kind}.{type}({type}, {type})")


@pytest.mark.parametrize("lanes", [0, 2, 8, 16, 32])
def test_bfloats_are_upper_halves(lanes: int) -> None:
    source, made = (f"<{lanes} x {x}>" if lanes else x for x in ("bfloat", "float"))
    agree(f"""  %a = load {source}, ptr %p, align 1
  %x = fpext {source} %a to {made}
  store {made} %x, ptr %p, align 1
""", BYTES & 0xBF)  # no NaN, whose bits nobody promises


@pytest.mark.parametrize("constant,source,type", [
    ("0x3FF8000000000000", "double", "i64"), ("1.5", "float", "i32"), ("-7", "i32", "float"),
    ("<i32 1, i32 -2, i32 3, i32 4>", "<4 x i32>", "<2 x i64>"),
    ("splat (double 2.5)", "<16 x double>", "<32 x float>"),
])  # fmt: skip
def test_bits_of_constants(constant: str, source: str, type: str) -> None:
    agree(f"""  %x = bitcast {source} {constant} to {type}
  store {type} %x, ptr %p, align 1
""", BYTES)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 64])
@pytest.mark.parametrize("predicate", "eq ne ult ule ugt uge slt sle sgt sge".split())
def test_bits_are_compared_and_chosen(lanes: int, predicate: str) -> None:
    kind, bits = f"<{lanes} x i8>", f"<{lanes} x i1>"
    for start in (0, 64, 128):
        agree(f"""  %a = load {kind}, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 64
  %b = load {kind}, ptr %q, align 1
  %c = load i8, ptr %q, align 1
  %m = icmp slt {kind} %a, zeroinitializer
  %n = icmp slt {kind} %b, zeroinitializer
  %k = icmp {predicate} {bits} %m, %n
  %one = icmp slt i8 %c, 0
  %l = select i1 %one, {bits} %m, {bits} %k
  %x = zext {bits} %k to {kind}
  %y = zext {bits} %l to {kind}
  store {kind} %x, ptr %p, align 1
  store {kind} %y, ptr %q, align 1
""", BYTES[start:])
