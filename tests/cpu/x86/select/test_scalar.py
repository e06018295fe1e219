"""Scalar code of the direct generator: divisions by constants, and choices by comparisons."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import GENERATOR, generated

from numjet.cpu.link import link
from numjet.cpu.x86 import generate

pytestmark = GENERATOR


def run(body: str, memory: np.ndarray, out: np.ndarray) -> None:
    """Run a function of %p and %o made by the direct generator."""
    image = generated(f"define void @f(ptr %p, ptr %o) nounwind {{\nentry:\n{body}}}\n")
    assert image is not None, generate.refused
    library = link.load([image])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("f"))
    function(memory.ctypes.data, out.ctypes.data)


def divisions(bits: int, divisors: list[int]) -> str:
    """Divides the number at %p by each divisor, in four ways each."""
    lines = [f"  %x = load i{bits}, ptr %p, align 1"]
    for k, divisor in enumerate(divisors):
        for n, op in enumerate(("sdiv", "srem", "udiv", "urem")):
            by = divisor if op[0] == "s" else divisor % (1 << bits)
            lines += [
                f"  %r{k}.{n} = {op} i{bits} %x, {by}",
                f"  %q{k}.{n} = getelementptr i{bits}, ptr %o, i64 {4 * k + n}",
                f"  store i{bits} %r{k}.{n}, ptr %q{k}.{n}, align 1",
            ]
    return "\n".join([*lines, "  ret void", ""])


@pytest.mark.parametrize("bits", [32, 64])
def test_division_by_constants(bits: int) -> None:
    top = 1 << (bits - 1)
    divisors = [2, 3, 5, 7, 8, 10, 40, 100, 641, 1000003, 65537, top - 1, top // 2, top // 2 + 1]
    divisors += [-d for d in divisors] + [-2, 1, -top + 1]
    rng = np.random.default_rng(bits)
    numbers = [0, 1, -1, 2, -2, 6, 7, -7, 99, 100, -100, top - 1, -top, 1 - top, top // 2]
    numbers += [int(x) for x in rng.integers(-top, top - 1, 12)]
    dtype = np.dtype(f"int{bits}")
    out = np.zeros(4 * len(divisors), dtype)
    body = divisions(bits, divisors)
    for number in numbers:
        run(body, np.array([number], dtype), out)
        expected = []
        for divisor in divisors:
            quotient = abs(number) // abs(divisor) * (1 if (number < 0) == (divisor < 0) else -1)
            plain = number % (1 << bits)
            by = divisor % (1 << bits)
            made = (quotient, number - quotient * divisor, plain // by, plain % by)
            expected += [x % (1 << bits) for x in made]
        assert [int(x) % (1 << bits) for x in out] == expected, number


def test_a_remainder_uses_the_quotient_of_the_same_numbers() -> None:
    body = """  %a = load i32, ptr %p, align 4
  %q = getelementptr i32, ptr %p, i64 1
  %b = load i32, ptr %q, align 4
  %r = srem i32 %a, %b
  %d = sdiv i32 %a, %b
  store i32 %r, ptr %o, align 4
  %s = getelementptr i32, ptr %o, i64 1
  store i32 %d, ptr %s, align 4
  ret void
"""
    out = np.zeros(2, np.int32)
    for a, b, r, d in ((100, 7, 2, 14), (-100, 7, -2, -14), (5, -3, 2, -1), (-9, -9, 0, 1)):
        run(body, np.array([a, b], np.int32), out)
        assert out.tolist() == [r, d]


HOLDS = {
    "oeq": "=", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">=", "one": "<>", "ord": "<=>",
    "uno": "?", "ueq": "=?", "ult": "<?", "ule": "<=?", "ugt": ">?", "uge": ">=?", "une": "<>?",
}  # fmt: skip


@pytest.mark.parametrize("predicate", HOLDS)
@pytest.mark.parametrize("type,dtype,operand", [
    ("float", np.float32, "%b"), ("double", np.float64, "%b"), ("float", np.float32, "0.0"),
])  # fmt: skip
def test_comparisons_of_floats_decide(predicate: str, type: str, dtype: type, operand: str) -> None:
    """A comparison's answer as a number, in a choice, behind `and` and `xor`, and in a branch."""
    body = f"""  %a = load {type}, ptr %p, align 4
  %q = getelementptr {type}, ptr %p, i64 1
  %b = load {type}, ptr %q, align 4
  %c = fcmp {predicate} {type} %a, {operand}
  %n = zext i1 %c to i32
  store i32 %n, ptr %o, align 4
  %d = fcmp {predicate} {type} %b, %a
  %s = select i1 %d, i32 7, i32 9
  %t = select i1 %d, i32 %s, i32 %n
  %o1 = getelementptr i32, ptr %o, i64 1
  store i32 %t, ptr %o1, align 4
  %e = icmp ne i1 %c, false
  %f = and i1 %e, %d
  %g = select i1 %f, i32 3, i32 4
  %o2 = getelementptr i32, ptr %o, i64 2
  store i32 %g, ptr %o2, align 4
  %h = fcmp {predicate} {type} %a, %b
  %i = xor i1 %h, true
  br i1 %i, label %then, label %done
then:
  %o3 = getelementptr i32, ptr %o, i64 3
  store i32 5, ptr %o3, align 4
  br label %done
done:
  ret void
"""
    def holds(x: float, y: float) -> bool:
        found = "?" if x != x or y != y else "=" if x == y else "<" if x < y else ">"
        return found in HOLDS[predicate]

    for a in (0.0, -0.0, 1.5, -2.0, np.inf, np.nan):
        for b in (0.0, 1.5, -np.inf, np.nan):
            out = np.zeros(4, np.int32)
            run(body, np.array([a, b], dtype), out)
            c = holds(a, b if operand == "%b" else 0.0)
            d, h = holds(b, a), holds(a, b)
            assert out.tolist() == [c, 7 if d else c, 3 if c and d else 4, 0 if h else 5], (a, b)


LOOP = """define void @f(ptr %p, ptr %o) nounwind {
entry:
  %n = load i32, ptr %p, align 4
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %j, %body ]
  %s = phi i32 [ 5, %entry ], [ %t, %body ]
  %c = icmp slt i32 %i, %n
  %d = icmp slt i32 %s, 400
  %e = JOIN i1 %c, %d
  br i1 %e, label %THEN, label %ELSE
body:
  %j = add i32 %i, 1
  %m = mul i32 %s, 3
  %u = icmp sgt i32 %m, 50
  %v = icmp sgt i32 %j, %n
  %w = OTHER i1 %u, %v
  %t = select i1 %w, i32 %m, i32 %j
  br label %head
end:
  %r = phi i32 [ %s, %head ]
  store i32 %r, ptr %o, align 4
  %o1 = getelementptr i32, ptr %o, i64 1
  store i32 %i, ptr %o1, align 4
  ret void
}
"""


@pytest.mark.parametrize("join", ["and", "or"])
@pytest.mark.parametrize("other", ["and", "or"])
def test_loops_that_ask_twice(join: str, other: str) -> None:
    """Both generators agree on a loop's two conditions and on a choice by two."""
    then, otherwise = ("body", "end") if join == "and" else ("end", "body")
    text = LOOP.replace("JOIN", join).replace("OTHER", other)
    if join == "or":
        text = text.replace("slt i32 %i", "sge i32 %i").replace("slt i32 %s", "sge i32 %s")
    text = text.replace("THEN", then).replace("ELSE", otherwise)
    made = generated(text)
    assert made is not None
    for n in (0, 1, 4, 9, 60):
        left = []
        for image in (made, link._compile(text)):
            library, out = link.load([image]), np.zeros(2, np.int32)
            memory = np.array([n], np.int32)
            function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
            function(library.address("f"))(memory.ctypes.data, out.ctypes.data)
            left.append(out.tolist())
        assert left[0] == left[1]


@pytest.mark.parametrize("size", [1, 4, 7, 16, 31, 64, 65])
def test_bytes_that_are_moved(size: int) -> None:
    body = f"""  %q = getelementptr i8, ptr %p, i64 3
  call void @llvm.memcpy.p0.p0.i64(ptr %o, ptr %q, i64 {size}, i1 false)
  ret void
"""
    memory, out = np.arange(100, dtype=np.uint8), np.zeros(100, np.uint8)
    run(body, memory, out)
    np.testing.assert_array_equal(out, np.where(np.arange(100) < size, np.arange(100) + 3, 0))


@pytest.mark.parametrize("mask", ["1" * 20 + "0" * 12, "0" * 16 + "1" * 8 + "0" * 8,
                                  "1" * 16 + "01" * 8, "0" * 32, "1" * 32, "1" + "0" * 31])
def test_constant_masks_of_two_registers(mask: str) -> None:
    """Lanes that are read and written, by registers: plain moves where they are the first ones."""
    bits = ", ".join(f"i1 {'true' if bit == '1' else 'false'}" for bit in mask)
    body = f"""  %x = call <32 x float> @llvm.masked.load.v32f32.p0(ptr %p, i32 4, <32 x i1> <{bits}>, <32 x float> splat (float 0x0000000000000000))
  store <32 x float> %x, ptr %o, align 4
  %q = getelementptr float, ptr %o, i64 32
  %y = load <32 x float>, ptr %p, align 4
  call void @llvm.masked.store.v32f32.p0(<32 x float> %y, ptr %q, i32 4, <32 x i1> <{bits}>)
  ret void
"""  # noqa: E501
    memory, out = np.arange(1, 33, dtype=np.float32), np.full(64, -1, np.float32)
    run(body, memory, out)
    held = np.array([bit == "1" for bit in mask])
    np.testing.assert_array_equal(out[:32], np.where(held, memory, 0))
    np.testing.assert_array_equal(out[32:], np.where(held, memory, -1))


@pytest.mark.parametrize("condition", ["true", "false"])
def test_constant_choices(condition: str) -> None:
    body = f"""  %a = load <16 x float>, ptr %p, align 4
  %q = getelementptr float, ptr %p, i64 16
  %b = load <16 x float>, ptr %q, align 4
  %x = select i1 {condition}, <16 x float> %a, <16 x float> %b
  %y = fadd <16 x float> %x, %a
  %z = select i1 {condition}, <16 x float> zeroinitializer, <16 x float> %y
  %w = fadd <16 x float> %z, %x
  store <16 x float> %w, ptr %o, align 4
  ret void
"""
    memory, out = np.arange(32, dtype=np.float32), np.zeros(16, np.float32)
    run(body, memory, out)
    a, b = memory[:16], memory[16:]
    np.testing.assert_array_equal(out, a if condition == "true" else b + a + b)


def test_more_numbers_than_registers() -> None:
    """Sums, products, shifts and choices of integers that live in memory."""
    lines = [f"  %q{k} = getelementptr i64, ptr %p, i64 {k}\n  %a{k} = load i64, ptr %q{k}, align 8"
             for k in range(24)]
    ops = ("add", "sub", "xor", "mul", "or", "and")
    lines += [f"  %b{k} = {ops[k % 6]} i64 %a{k}, %a{(7 * k + 3) % 24}" for k in range(24)]
    lines += [f"  %c{k} = shl i64 %b{k}, {k % 5 + 1}" for k in range(24)]
    lines += [f"  %e{k} = icmp slt i64 %c{k}, %a{23 - k}" for k in range(24)]
    lines += [f"  %d{k} = select i1 %e{k}, i64 %b{k}, i64 %c{(5 * k + 1) % 24}" for k in range(24)]
    lines += [f"  %r{k} = getelementptr i64, ptr %o, i64 {k}\n  %n{k} = sub i64 %d{k}, %c{k}\n"
              f"  store i64 %n{k}, ptr %r{k}, align 8" for k in range(24)]
    text = "\n".join([*lines, "  ret void", ""])
    memory, out = np.random.default_rng(2).integers(-(10**9), 10**9, 24), np.zeros(24, np.int64)
    run(text, memory, out)
    a = [int(x) for x in memory]
    apply = (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x ^ y, lambda x, y: x * y,
             lambda x, y: x | y, lambda x, y: x & y)  # fmt: skip

    def wrapped(x: int) -> int:
        return (x + (1 << 63)) % (1 << 64) - (1 << 63)

    b = [wrapped(apply[k % 6](a[k], a[(7 * k + 3) % 24])) for k in range(24)]
    c = [wrapped(b[k] << k % 5 + 1) for k in range(24)]
    d = [b[k] if c[k] < a[23 - k] else c[(5 * k + 1) % 24] for k in range(24)]
    assert out.tolist() == [wrapped(d[k] - c[k]) for k in range(24)]
