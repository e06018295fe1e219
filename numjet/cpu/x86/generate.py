"""LLVM IR to an object file for x86-64 with AVX-512 or AVX2, without LLVM.

`generate(module)` is for `link`: the object, or None where only LLVM compiles it. The passes:
`read` (of text `parse`), those of `middle`, for AVX2 those of `avx2`, `select`, `allocate`, `spill`
where registers ran out, `finish` with `encode`, and `elf`.
"""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING

from numjet.cpu.x86.back import elf
from numjet.cpu.x86.back.allocate import Allocation, allocate
from numjet.cpu.x86.back.data import table
from numjet.cpu.x86.back.encode import Code
from numjet.cpu.x86.back.finish import Finisher
from numjet.cpu.x86.back.hoist import hoist
from numjet.cpu.x86.back.spill import crowded, spill
from numjet.cpu.x86.front.instructions import Call
from numjet.cpu.x86.front.parse import Function, Module, parse
from numjet.cpu.x86.front.read import read
from numjet.cpu.x86.front.types import VECTORS, Unsupported, use
from numjet.cpu.x86.middle.division import divide
from numjet.cpu.x86.middle.schedule import schedule
from numjet.cpu.x86.middle.sink import sink
from numjet.cpu.x86.select import (
    accesses,
    arithmetic,
    compare,
    convert,
    intrinsics,
    jumps,
    lanes,
    reduce,
    scalar,
)
from numjet.cpu.x86.select.select import Selector
from numjet.cpu.x86.whole import glue

if TYPE_CHECKING:
    from numjet.cpu.builder.module import Module as Writing

# Loaded for the operations they register.
_FAMILIES = (arithmetic, compare, jumps, convert, intrinsics, lanes, accesses, reduce, scalar)

# Why texts were left to LLVM, and how many; for those who widen the generator.
refused: Counter[str] = Counter()


def generate(source: str | Writing, vector_bytes: int = 64) -> bytes | None:
    """The object file of a module, text or a builder's, or None where LLVM has to make it.

    vector_bytes: 64 for AVX-512, 32 for AVX2.
    """
    use(vector_bytes)
    try:
        return _generate(parse(source) if isinstance(source, str) else read(source))
    except Unsupported as what:
        refused[str(what)] += 1
        return None


def prepared(module: Module) -> tuple[Code, dict[str, int], list[tuple[int, int, str]]]:
    """Labels of data and functions, and (label, place behind it, symbol) of addresses in data."""
    code = Code()
    labels: dict[str, int] = {}
    inside: list[tuple[int, int, str]] = []
    for name, rest in module.data.items():
        if "external" not in rest:
            data, align, addresses = table(rest)
            labels[name] = code.block(data, align)
            inside += [(labels[name], place, symbol) for place, symbol in addresses]
    for function in module.functions:
        labels["@" + function.name] = code.label()
    return code, labels, inside


def selected(
    module: Module, function: Function, labels: dict[str, int]
) -> tuple[Selector, Allocation]:
    """A function's instructions with registers."""
    _mark_cold(module, function)
    sink(function)
    divide(function)
    narrow = importlib.import_module("numjet.cpu.x86.avx2.families") if VECTORS.narrow else None
    if narrow is not None:
        narrow.prepare(function)
    schedule(function)
    if narrow is not None:
        narrow.order(function)
    s = Selector(module, function, labels)
    s.run()
    allocation = allocate(s)
    hoist(s, allocation)
    if allocation.slots:
        spill(s, allocation)
        if VECTORS.narrow and crowded(s):
            raise Unsupported("values that 16 registers do not hold")
    return s, allocation


def _generate(module: Module) -> bytes:
    code, labels, inside = prepared(module)
    exports = []
    for function in module.functions:
        code.align(64)
        begin = labels["@" + function.name]
        code.place(begin)
        if function.whole is not None:
            function.whole(code)
        elif function.glue is not None:
            glue.write(code, labels, function.glue)
        else:
            s, allocation = selected(module, function, labels)
            Finisher(code, s, allocation).write()
        end = code.label()
        code.place(end)
        if not function.local:
            exports.append((function.name, begin, end))
    text, places, relocations = code.finish()
    addresses: list[tuple[int, int]] = []
    for label, place, symbol in inside:
        there = labels.get(f"@{symbol}")
        if there is None:
            relocations.append((places[label] + place, symbol))
        else:
            addresses.append((places[label] + place, places[there]))
    named = [(name, places[a], places[b] - places[a]) for name, a, b in exports]
    return elf.write(text, named, relocations, addresses)


def _mark_cold(module: Module, function: Function) -> None:
    """Blocks that call what is declared cold are written apart."""
    if not module.cold:
        return
    for block in function.blocks[1:]:
        block.cold = any(type(i) is Call and i.callee in module.cold for i in block.instructions)
