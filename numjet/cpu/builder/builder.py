"""A thin writer of LLVM IR text: functions over scalars and explicit vectors.

Used by the native backend's generators (`emit`, `math`, `kernels`, `runtime`). It writes tuples
into a list, which the direct generator takes as they are and `text` spells for LLVM; the text is
deterministic, so that it can be hashed for the object cache. An operation is written once in a
block.

Values carry their LLVM type; operations are chosen from it (`add` on "<16 x float>" is `fadd`).
Integers are signless, so unsigned operations have names of their own (`udiv`, `lshr`, "ult").
A Python number beside a `Value` becomes a constant of that value's type. No fast-math flags,
except that reductions may reassociate and that `min`/`max` leave the sign of a zero open.

What would break it: a value used in a block that its definition does not dominate (LLVM's verifier
reports that), or a `yield_` whose types differ from the carried values.
"""

from __future__ import annotations

from numjet.cpu.builder.module import Module
from numjet.cpu.builder.structured import Branch, ControlWriter, Loop, While
from numjet.cpu.builder.types import (
    TYPES,
    TypeInfo,
    Value,
    const,
    const_lanes,
    like,
    poison,
    vector,
)


class Builder(ControlWriter):
    """Writes one function of a module.

    `Builder(module, name, arguments, result)` with (name, type) or (name, type, attributes) for
    each argument; "ptr noalias" as a type means "ptr" with an attribute.
    """


__all__ = [
    "TYPES",
    "Branch",
    "Builder",
    "Loop",
    "Module",
    "TypeInfo",
    "Value",
    "While",
    "const",
    "const_lanes",
    "like",
    "poison",
    "vector",
]
