"""The instructions of the function writer, and how LLVM IR spells them.

For: `builder.core`, where they are written, and `x86.front.read`, which takes them as they are. An
instruction is a tuple:

    (add, fadd and other operations on two operands, type, a, b)     (fneg, type, x)
    (fma, type, a, b, c)
    (icmp or fcmp, type of the result, predicate, type, a, b)
    (trunc zext bitcast and other casts, to, from, x)
    (select, type, type of the condition, condition, a, b)
    (getelementptr, type of the result, element, type of base, base, type of index, index)
    (load, type, pointer, align)            (store, type, value, pointer, align, nontemporal?)
    (extractelement, type, type of the vector, vector, type of lane, lane)
    (insertelement, type, vector, type of scalar, scalar, type of lane, lane)
    (shufflevector, type, type of operands, a, b, type of lanes, lanes)
    (call, type, callee, types, operands, flags)            (phi, type, ((value, label), ...))
    (br, label)  (cbr, condition, then, otherwise)  (ret, type, value)  (unreachable,)

All types and operands are LLVM's spellings. What would break it: an operation that
`x86.front.read` does not know.
"""

from __future__ import annotations

from collections.abc import Callable

from numjet.cpu.builder.types import TYPES

Instruction = tuple
Line = tuple[str | None, Instruction] | str


def spelled(line: Line) -> str:
    """A line as text."""
    if isinstance(line, str):
        return line
    name, instruction = line
    text = _SPELLINGS.get(instruction[0], _binary)(instruction)
    return f"  {text}" if name is None else f"  {name} = {text}"


def arguments(types: tuple[str, ...], operands: tuple[str, ...]) -> str:
    """The operands of a call."""
    return ", ".join([f"{t} {x}" for t, x in zip(types, operands, strict=True)])


def _binary(i: Instruction) -> str:
    op, type, a, b = i
    return f"{op} {type} {a}, {b}"


def _fneg(i: Instruction) -> str:
    return f"fneg {i[1]} {i[2]}"


def fma_name(type: str) -> str:
    """LLVM's function for multiply-adds."""
    return f"llvm.fma.{TYPES[type].mangled}"


def _fma(i: Instruction) -> str:
    _, type, a, b, c = i
    return f"call {type} @{fma_name(type)}({type} {a}, {type} {b}, {type} {c})"


def _compare(i: Instruction) -> str:
    op, _, predicate, type, a, b = i
    return f"{op} {predicate} {type} {a}, {b}"


def _cast(i: Instruction) -> str:
    op, to, source, x = i
    return f"{op} {source} {x} to {to}"


def _select(i: Instruction) -> str:
    _, type, kind, condition, a, b = i
    return f"select {kind} {condition}, {type} {a}, {type} {b}"


def _gep(i: Instruction) -> str:
    _, _, element, base_type, base, index_type, index = i
    return f"getelementptr {element}, {base_type} {base}, {index_type} {index}"


def _load(i: Instruction) -> str:
    _, type, pointer, align = i
    return f"load {type}, ptr {pointer}, align {align}"


def _store(i: Instruction) -> str:
    _, type, value, pointer, align, nontemporal = i
    hint = ", !nontemporal !{i32 1}" if nontemporal else ""
    return f"store {type} {value}, ptr {pointer}, align {align}{hint}"


def _extract(i: Instruction) -> str:
    _, _, type, x, lane_type, lane = i
    return f"extractelement {type} {x}, {lane_type} {lane}"


def _insert(i: Instruction) -> str:
    _, type, x, scalar_type, scalar, lane_type, lane = i
    return f"insertelement {type} {x}, {scalar_type} {scalar}, {lane_type} {lane}"


def _shuffle(i: Instruction) -> str:
    _, _, type, a, b, mask_type, mask = i
    return f"shufflevector {type} {a}, {type} {b}, {mask_type} {mask}"


def _call(i: Instruction) -> str:
    _, type, callee, types, operands, flags = i
    return f"call {flags}{type} {callee}({arguments(types, operands)})"


def _phi(i: Instruction) -> str:
    return f"phi {i[1]} " + ", ".join([f"[ {value}, %{label} ]" for value, label in i[2]])


def _br(i: Instruction) -> str:
    return f"br label %{i[1]}"


def _cbr(i: Instruction) -> str:
    return f"br i1 {i[1]}, label %{i[2]}, label %{i[3]}"


def _ret(i: Instruction) -> str:
    return f"ret {i[1]} {i[2]}".rstrip()


def _unreachable(_: Instruction) -> str:
    return "unreachable"


CASTS = (
    "trunc zext sext fptrunc fpext fptosi fptoui sitofp uitofp ptrtoint inttoptr bitcast".split()
)
_SPELLINGS: dict[str, Callable[[Instruction], str]] = {
    **dict.fromkeys(CASTS, _cast),
    "fneg": _fneg, "fma": _fma, "icmp": _compare, "fcmp": _compare, "select": _select,
    "getelementptr": _gep,
    "load": _load, "store": _store, "extractelement": _extract, "insertelement": _insert,
    "shufflevector": _shuffle, "call": _call, "phi": _phi, "br": _br, "cbr": _cbr, "ret": _ret,
    "unreachable": _unreachable,
}  # fmt: skip
