"""Functions that are written without registers for their values: the results of LLVM's code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import GENERATOR, generated

from numjet.cpu.builder.builder import Builder, Module
from numjet.cpu.kernels.idioms import GLUE, table
from numjet.cpu.kernels.products import gemm_task
from numjet.cpu.link import link
from numjet.cpu.x86.whole import glue

pytestmark = GENERATOR
PAIRS = [(0, 1), (7, 3), (-5, 2), (1 << 40, 17), (3, 3), (-(1 << 63), 5)]


def both(module: Module, *numbers: int) -> list[list[int]]:
    """What `entry` writes to sixteen words, by each generator; every function of it is glue."""
    assert all([glue.able(f) for f in module.functions])
    image = generated(module)
    assert image is not None
    found = []
    for made in (image, link._compile(module.text(), verify=True)):
        words = np.zeros(64, np.int64)
        library = link.load([made])
        kinds = [ctypes.c_void_p] + [ctypes.c_int64] * len(numbers)
        ctypes.CFUNCTYPE(None, *kinds)(library.address("entry"))(words.ctypes.data, *numbers)
        found.append(words.tolist())
    return found


def entry(arguments: str) -> Builder:
    names = [("out", "ptr"), *[(name, "i64") for name in arguments]]
    return Builder(Module(link.features()), "entry", names, attributes=GLUE)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_arithmetic_and_comparisons(pair: tuple[int, int]) -> None:
    b = entry("xy")
    out, x, y = b.args
    holds = [b.icmp(p, x, y) for p in ("eq", "slt", "sge", "ult", "ugt", "ule")]
    holds.append(b.and_(b.xor(holds[1], holds[3]), b.icmp("ne", x, 7)))
    holds.append(b.or_(holds[0], b.not_(holds[4])))
    found = [
        b.add(x, y), b.sub(x, 1 << 35), b.mul(x, y), b.mul(y, -24), b.udiv(x, y), b.urem(x, y),
        b.and_(x, -64), b.xor(b.or_(x, y), 9), b.min(x, y), b.max(x, 2), b.umin(x, y), b.umax(x, y),
        *[b.zext(bit, "i64") for bit in holds],
        b.select(holds[1], x, 100), b.select(holds[6], b.const(1, "i64"), y),
        b.urem(x, 10), b.load(out, "i64", 8),
    ]  # fmt: skip
    for number, value in enumerate(found):
        b.store(value, b.gep(out, 8 * number), 8)
    b.ret()
    ours, theirs = both(b.module, *pair)
    assert ours == theirs
    assert ours[4] == (pair[0] % (1 << 64)) // pair[1] and ours[8] == min(pair)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_loops_whose_values_change_places(count: int) -> None:
    b = entry("n")
    out, n = b.args
    start = [b.const(1, "i64"), b.const(2, "i64"), out]
    with b.loop(0, n, carried=start) as loop:
        one, two, place = loop.values
        b.store(b.add(one, loop.index), place, 8)
        with b.if_(b.icmp("sgt", loop.index, 2), otherwise=[one]) as some:
            some.yield_(b.mul(one, 10))
        loop.yield_(two, some.results[0], b.gep(place, 8))
    for number, value in enumerate(loop.results[:2]):
        b.store(value, b.gep(out, 400 + 8 * number), 8)
    b.ret()
    ours, theirs = both(b.module, count)
    assert ours == theirs
    assert ours[:5] == [1, 3, 3, 5, 5][:count] + [0] * (5 - count)


def test_calls_by_name_and_address_with_arguments_on_the_stack() -> None:
    b = entry("xy")
    names = [(f"a{k}", "i64") for k in range(8)]
    inner = Builder(
        b.module, "inner", [("to", "ptr"), *names], "i64", linkage="internal", attributes=GLUE
    )
    for k, value in enumerate(inner.args[1:]):
        inner.store(value, inner.gep(inner.args[0], 8 * k), 8)
    inner.ret(inner.sub(inner.args[8], inner.args[1]))
    out, x, y = b.args
    space, words = b.alloca("[3 x ptr]"), b.alloca("[8 x i8]")
    b.store(b.const(77, "i64"), words, 8)
    b.store(out, b.gep(space, 16), 8)
    numbers = [b.const(k, "i64") for k in (3, -4, 5)]
    constants = table(b.module, [11, 12, 13])
    more = b.load(b.gep(constants, 8), "i64", 8)
    rest = [x, y, *numbers, more, b.load(words, "i64", 8)]
    first = b.call("inner", "i64", b.load(b.gep(space, 16), "ptr", 8), x, *rest)
    address = b.inttoptr(b.load(table(b.module, ["inner"]), "i64", 8), "ptr")
    second = b.call(address, "i64", b.gep(out, 128), first, *rest)
    b.store(second, b.gep(b.gep(out, 64), b.mul(y, 8)), 8)
    b.ret()
    ours, theirs = both(b.module, 1000, 2)
    assert ours == theirs
    assert ours[:8] == [1000, 1000, 2, 3, -4, 5, 12, 77] and ours[10] == 77 - (77 - 1000)
    assert ours[16:18] == [77 - 1000, 1000]


def test_the_libraries_of_products_are_written_so() -> None:
    for written in (gemm_task.written("float"), gemm_task.written("double")):
        assert written.functions and all([glue.able(f) for f in written.functions])


def test_what_holds_anything_else_is_not() -> None:
    module = Module(link.features())
    plain = Builder(module, "plain", [("x", "ptr")], attributes=GLUE)
    plain.store(plain.load(plain.args[0], "double", 8), plain.args[0], 8)
    plain.ret()
    signed = Builder(module, "signed", [("x", "i64")], "i64", attributes=GLUE)
    signed.ret(signed.div(signed.args[0], 3))
    narrow = Builder(module, "narrow", [("x", "i32")], attributes=GLUE)
    narrow.ret()
    assert not any([glue.able(f) for f in module.functions])
    assert generated(module) is not None
