"""A builder's module gives the generator what its text does."""

from __future__ import annotations

import pytest

from numjet.cpu.builder.builder import Builder, Module
from numjet.cpu.x86 import generate
from numjet.cpu.x86.front.parse import parse
from numjet.cpu.x86.front.read import read
from numjet.cpu.x86.front.types import Unsupported
from numjet.cpu.x86.generate import _generate


def everything() -> Module:
    """A function with every kind of line."""
    module = Module(frozenset())
    b = Builder(module, "f", [("p", "ptr noalias"), ("n", "i64")], "i64")
    p, n = b.args
    scratch = b.alloca("[64 x i8]")
    table = module.array([1.5, 2.5], "double")
    wide = b.load(p, "<16 x float>")
    x = b.load(b.gep(p, n, "float"), "float")
    y = b.fma(b.splat(x, 16), wide, b.neg(wide))
    y = b.select(b.fcmp("olt", y, wide), b.max(y, 0.0), b.sqrt(b.abs(y)))
    y = b.masked_load(b.gep(p, 64), b.lanes([True] * 5 + [False] * 11, "i1"), y)
    b.prefetch(p)
    with b.loop(0, n, carried=(y,)) as loop:
        (z,) = loop.values
        z = b.add(b.shuffle(z, None, [*range(8, 16), *range(8)]), y)
        with b.if_(b.icmp("eq", b.and_(loop.index, 1), 0), (z,)) as branch:
            branch.yield_(b.mul(z, b.splat(b.extract(z, 3), 16)))
        with branch.else_():
            branch.yield_(b.insert(z, b.fptrunc(b.load(table, "double"), "float"), 2))
        loop.yield_(*branch.results)
    (z,) = loop.results
    b.store(z, scratch, 64, nontemporal=True)
    b.masked_store(z, p, b.lanes([True, False] * 8, "i1"))
    found = b.call("nj_outside", "i64", p, b.sub(n, 1), n, n, n, n, n, n)
    b.line(f"store i64 {n.ref}, ptr {p.ref}, align 8")
    count = b.fptosi(b.reduce("add", z), "i32", saturate=False)
    b.ret(b.add(b.zext(count, "i64"), b.emit(f"xor i64 {found.ref}, {n.ref}", "i64")))
    return module


def test_tables_of_operations_agree_with_the_text():
    module = everything()
    taken, parsed = read(module), parse(module.text())
    assert taken.data == parsed.data
    (one,), (two,) = taken.functions, parsed.functions
    assert one.arguments == two.arguments
    assert one.outgoing == two.outgoing > 0
    assert [block.label for block in one.blocks] == [block.label for block in two.blocks]
    for name, made in one.defs.items():
        assert made[:4] == two.defs[name][:4]
        assert one.counts[name] == two.counts[name]
    for a, b in zip(one.blocks, two.blocks, strict=True):
        assert a.term == b.term
        assert a.phis == b.phis
        assert a.memory == b.memory


def test_machine_code_is_the_same():
    module = everything()
    assert _generate(read(module)) == _generate(parse(module.text()))


def test_what_only_llvm_compiles_is_refused():
    module = Module(frozenset())
    b = Builder(module, "f", [("p", "ptr")])
    b.store(b.load(b.args[0], "i128"), b.args[0])
    b.ret()
    with pytest.raises(Unsupported):
        read(module)
    assert generate.generate(module) is None


def test_an_unfinished_block_is_refused():
    module = Module(frozenset())
    Builder(module, "f", [("p", "ptr")])
    with pytest.raises(Unsupported, match="without an end"):
        read(module)
