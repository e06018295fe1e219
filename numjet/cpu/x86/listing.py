"""What the direct generator made of a text, to be read: `Compiled.as_text("assembly")`.

Instructions as selected, with their registers, block by block. Copies on the way between blocks,
frames and what calls keep are named, not spelled.
"""

from __future__ import annotations

from numjet.cpu.x86.back.opcodes import CONDITIONS
from numjet.cpu.x86.front import formats
from numjet.cpu.x86.front.parse import parse
from numjet.cpu.x86.front.types import GENERAL, VECTOR, Unsupported, use
from numjet.cpu.x86.generate import prepared, selected
from numjet.cpu.x86.select.jumps import Branch, Call, branch, call, leap, leave
from numjet.cpu.x86.select.select import Selector

_GENERAL = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
_CONDITIONS = {number: name for name, number in CONDITIONS.items()}
# Where the length of a format's vectors stands in its instructions.
_LENGTHS = {
    formats.v3: 7, formats.v3t: 7, formats.vout: 7, formats.vread: 7, formats.v3m: 7,
    formats.v3mt: 7, formats.vstore: 7, formats.vreadm: 7, formats.v3c: 7, formats.v3ct: 7,
    formats.vreadc: 7,
    formats.vmove: 4, formats.v3s: 4, formats.vgather: 5, formats.vscatter: 5,
}  # fmt: skip


def listing(text: str, vector_bytes: int = 64) -> str | None:
    """The instructions of a module, to be read, or None where LLVM makes it."""
    use(vector_bytes)
    try:
        module = parse(text)
        _, labels, _ = prepared(module)
        made = [selected(module, function, labels) for function in module.functions]
    except Unsupported:
        return None
    return "".join([_function(s, allocation.at) for s, allocation in made])


def _function(s: Selector, at: list[int]) -> str:
    """One function's instructions in order."""
    lines = [f"{s.function.name}:"]
    cold = [block for block in s.function.blocks if block.cold]
    entry = s.out[s.places[0].end :][::-1]
    lines += [_line(s, at, m) for m in entry]
    for block in [block for block in s.function.blocks if not block.cold] + cold:
        first, last = s.places[block.index]
        lines.append(f".{block.label}:")
        lines += [_line(s, at, m) for m in s.out[first:last][::-1]]
    return "\n".join(lines) + "\n"


def _line(s: Selector, at: list[int], m: tuple) -> str:
    format = m[0]
    if format is branch:
        return f"    {_branch(s, m[1])}"
    if format is call:
        return f"    {_call(s, at, m[1])}"
    if format is leap:
        return f"    j{_CONDITIONS[m[1]]} .{s.function.blocks[m[2]].label}"
    if format is leave:
        return "    ret"
    writes, reads, memory = formats.ROLES[format]
    length = m[_LENGTHS[format]] if format in _LENGTHS else 0
    named = [_register(s, at, m[k], length) for k in sorted({*writes, *reads}) if m[k] >= 0]
    if memory:
        named.append(_memory(s, at, m[memory], length))
    constants = [x for x in m[2:] if isinstance(x, bytes)]
    named += ["0x" + data[::-1].hex() for data in constants]
    if format is formats.gconst:
        named.append(hex(m[2]))
    name = m[1].name.removesuffix("_s") if hasattr(m[1], "name") else format.__name__
    return f"    {name} {', '.join(named)}"


def _register(s: Selector, at: list[int], register: int, length: int) -> str:
    place, cls = at[register], s.classes[register]
    if place < 0:
        return f"slot{-2 - place}"
    if cls == GENERAL:
        return _GENERAL[place]
    return f"{'xyz'[length]}mm{place}" if cls == VECTOR else f"k{place}"


def _memory(s: Selector, at: list[int], where: tuple, length: int) -> str:
    base, index, scale, disp = where
    parts = [] if base is None else [_register(s, at, base, length)]
    if index is not None:
        parts.append(f"{scale}*{_register(s, at, index, length)}")
    return f"[{' + '.join([*parts, str(disp)] if disp or not parts else parts)}]"


def _branch(s: Selector, made: Branch) -> str:
    blocks = s.function.blocks
    cases = [f"case {number}: .{blocks[target].label}; " for _, _, number, target, _ in made.cases]
    if made.condition < 0:
        return "".join(cases) + f"jmp .{blocks[made.then].label}"
    word = _CONDITIONS[made.condition]
    return f"j{word} .{blocks[made.then].label} else .{blocks[made.otherwise].label}"


def _call(s: Selector, at: list[int], made: Call) -> str:
    if made.symbol:
        return f"call {made.symbol}"
    return "call" if made.register < 0 else f"call {_register(s, at, made.register, 0)}"
