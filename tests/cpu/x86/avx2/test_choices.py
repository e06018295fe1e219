"""Choices by signs, rotations by whole bytes, and the order in which sixteen registers suffice."""

from __future__ import annotations

import numpy as np
import pytest
from x86_agree import GENERATOR, agree

from numjet.cpu.x86 import generate
from numjet.cpu.x86.avx2.defer import defer
from numjet.cpu.x86.avx2.masks import widen
from numjet.cpu.x86.front.parse import parse
from numjet.cpu.x86.listing import listing

pytestmark = GENERATOR
NUMBERS = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, 256).astype(np.int32)


def _two(bits: int, lanes: int, body: str) -> str:
    """A body that makes %r of %a and %b, which lie one behind the other, and writes it."""
    kind = f"<{lanes} x i{bits}>"
    return f"""  %a = load {kind}, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 256
  %b = load {kind}, ptr %q, align 1
{body}  store {kind} %r, ptr %p, align 1
"""


@pytest.mark.parametrize("bits,by", [(32, k) for k in (1, 8, 16, 24)] +
                         [(64, k) for k in (8, 16, 23, 32, 56)])  # fmt: skip
@pytest.mark.parametrize("nbytes", [16, 32, 64])
def test_rotations(bits: int, by: int, nbytes: int) -> None:
    kind = f"<{nbytes * 8 // bits} x i{bits}>"
    agree(_two(bits, nbytes * 8 // bits, f"""  %s = add {kind} %a, %b
  %h = shl {kind} %s, splat (i{bits} {by})
  %l = lshr {kind} %s, splat (i{bits} {bits - by})
  %r = or {kind} %l, %h
"""), NUMBERS)  # fmt: skip


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("nbytes", [16, 32, 64])
@pytest.mark.parametrize("condition", [
    "slt %s, splat (iB 0)", "sgt %s, splat (iB -1)", "sge %s, splat (iB 0)", "eq %e, splat (iB 0)",
    "ne %e, splat (iB 0)", "eq %t, splat (iB 0)", "ne %u, splat (iB 0)", "slt %s, splat (iB 1)",
])  # fmt: skip
@pytest.mark.parametrize("arms", ["%a, K %b", "%a, K splat (iB 7)", "%a, K zeroinitializer"])
def test_choices_by_a_bit(bits: int, nbytes: int, condition: str, arms: str) -> None:
    """By the sign, by one bit, by two (%u) and by none of them alone."""
    kind = f"<{nbytes * 8 // bits} x i{bits}>"
    body = f"""  %s = add K %a, %b
  %e = and K %s, splat (iB 4)
  %t = and K %s, splat (iB {-(1 << (bits - 1))})
  %u = and K %s, splat (iB 5)
  %m = icmp {condition.replace(" ", " K ", 1)}
  %r = select <{nbytes * 8 // bits} x i1> %m, K {arms}
"""
    body = body.replace("K ", f"{kind} ").replace("iB", f"i{bits}")
    agree(_two(bits, nbytes * 8 // bits, body), NUMBERS)


_LONG = """define void @f(ptr %p) nounwind {
entry:
  %a = load <8 x float>, ptr %p, align 4
  %m = fcmp olt <8 x float> %a, splat (float 1.0)
  %s = fadd <8 x float> %a, splat (float 2.0)
CHAIN
  %y = select <8 x i1> %m, <8 x float> %a, <8 x float> %x30
  %z = fmul <8 x float> %y, %s
  store <8 x float> %z, ptr %p, align 4
  ret void
}
"""


def test_what_is_read_late_is_computed_late() -> None:
    """The comparison goes down to where it is read, %a lives until there; the sum does not."""
    chain = "\n".join(
        f"  %x{k} = fmul <8 x float> {f'%x{k - 1}' if k else '%a'}, splat (float 0.5)"
        for k in range(31)
    )
    text = _LONG.replace("CHAIN", chain)
    function = parse(text).functions[0]
    widen(function)
    defer(function)
    order = [i.name for i in function.blocks[0].instructions]
    assert order[:3] == ["%a", "%s", "%x0"] and order[-5:] == ["%x30", "%m", "%y", "%z", None]


def test_what_would_hold_another_register_stays() -> None:
    chain = "\n".join(
        f"  %x{k} = fmul <8 x float> {f'%x{k - 1}' if k else '%s'}, splat (float 0.5)"
        for k in range(31)
    )
    text = _LONG.replace("CHAIN", chain).replace("<8 x float> %a, <8 x float> %x30",
                                                 "<8 x float> %x29, <8 x float> %x30")  # fmt: skip
    text = text.replace("fmul <8 x float> %y, %s", "fmul <8 x float> %y, %y")
    function = parse(text).functions[0]
    before = [i.name for i in function.blocks[0].instructions]
    widen(function)
    defer(function)
    assert [i.name for i in function.blocks[0].instructions] == before


def test_narrow_registers_rotate_by_permuting_bytes() -> None:
    text = """define void @f(ptr %p) nounwind {
entry:
  %a = load <8 x i32>, ptr %p, align 4
  %h = shl <8 x i32> %a, splat (i32 8)
  %l = lshr <8 x i32> %a, splat (i32 24)
  %r = or <8 x i32> %l, %h
  store <8 x i32> %r, ptr %p, align 4
  ret void
}
"""
    shown = listing(text, 32)
    assert shown is not None, generate.refused
    assert "vpshufb" in shown and "vpsrl" not in shown


@pytest.mark.parametrize("rest", ["zeroinitializer", "splat (float 1.0)", "poison"])
@pytest.mark.parametrize("lane", [0, 1, 3])
def test_a_lane_beside_constants(rest: str, lane: int) -> None:
    body = f"""  %x = load float, ptr %p, align 4
  %y = fadd float %x, %x
  %v = insertelement <4 x float> {rest}, float %y, i64 {lane}
  %s = extractelement <4 x float> %v, i64 {lane}
  store float %s, ptr %p, align 4
"""
    if rest != "poison":
        body += "  store <4 x float> %v, ptr %p, align 4\n"
    agree(body, np.arange(1, 129, dtype=np.float32))


def test_a_lane_beside_zeros_is_one_instruction() -> None:
    text = """define void @f(ptr %p) nounwind {
entry:
  %x = load float, ptr %p, align 4
  %y = fadd float %x, %x
  %v = insertelement <4 x float> zeroinitializer, float %y, i64 0
  store <4 x float> %v, ptr %p, align 4
  ret void
}
"""
    shown = listing(text, 32)
    assert shown is not None and "vinsertps" in shown and "vblend" not in shown
