"""The instructions of the IR as records: what `read` and `parse` make and selection takes apart.

Each begins with the operation's word, the name of its result (None for none), the number of its
block and the type of its result; operands are the IR's words. They are tuples, so that a pass can
walk over the operands of any of them (`schedule.names`). What would break it: fields in another
order than `read`, `parse` and `division` fill in.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from numjet.base.record import NamedTuple
from numjet.cpu.x86.front.types import Type


class Argument(NamedTuple):
    """An argument of the function; of the first block."""

    op: str
    name: str
    block: int
    type: Type


class Binary(NamedTuple):
    """a op b, of numbers or lanes."""

    op: str
    name: str
    block: int
    type: Type
    a: str
    b: str


class Negation(NamedTuple):
    """fneg"""

    op: str
    name: str
    block: int
    type: Type
    x: str


class Fma(NamedTuple):
    """a * b + c"""

    op: str
    name: str
    block: int
    type: Type
    a: str
    b: str
    c: str


class Compare(NamedTuple):
    """icmp and fcmp, of operands of type `of`."""

    op: str
    name: str
    block: int
    type: Type
    a: str
    b: str
    predicate: str
    of: Type


class Cast(NamedTuple):
    """`x`, of type `source`, as another type."""

    op: str
    name: str
    block: int
    type: Type
    x: str
    source: Type


class Select(NamedTuple):
    """a where the condition holds, else b."""

    op: str
    name: str
    block: int
    type: Type
    condition: str
    a: str
    b: str
    condition_type: Type


class Address(NamedTuple):
    """getelementptr: base + size * offset."""

    op: str
    name: str
    block: int
    type: Type
    size: int
    base: str
    offset_type: Type
    offset: str
    base_type: Type


class Extract(NamedTuple):
    """A lane of `x`, of type `source`."""

    op: str
    name: str
    block: int
    type: Type
    x: str
    source: Type
    lane: str
    lane_type: Type


class Insert(NamedTuple):
    """`x` with another lane."""

    op: str
    name: str
    block: int
    type: Type
    x: str
    scalar: str
    scalar_type: Type
    lane: str
    lane_type: Type


class Shuffle(NamedTuple):
    """Lanes of a and b, of type `source`, as the constant `picked` says."""

    op: str
    name: str
    block: int
    type: Type
    a: str
    b: str
    source: Type
    picked: str
    picked_type: Type


class Load(NamedTuple):
    """`memory` counts the writes before it."""

    op: str
    name: str
    block: int
    type: Type
    pointer: str
    memory: int


class Store(NamedTuple):
    """`memory` counts the writes before it; `nontemporal` may bypass the caches."""

    op: str
    name: None
    block: int
    type: Type
    value: str
    pointer: str
    memory: int
    nontemporal: bool
    align: int


class Call(NamedTuple):
    """`arguments`: the text between the brackets, or a tuple of operands of the result's type.

    `name` and `type` are None where nothing comes back.
    """

    op: str
    name: Any
    block: int
    type: Any
    callee: str
    arguments: Any
    memory: int
    flags: str


class Alloca(NamedTuple):
    """`size` bytes of the stack."""

    op: str
    name: str
    block: int
    type: Type
    size: int
    align: int


class Phi(NamedTuple):
    """The value that comes from each label."""

    op: str
    name: str
    block: int
    type: Type
    incoming: dict[str, str]


class Br(NamedTuple):
    """A jump."""

    op: str
    name: None
    block: int
    type: None
    label: str


class CondBr(NamedTuple):
    """A branch."""

    op: str
    name: None
    block: int
    type: None
    condition: str
    then: str
    otherwise: str


class Switch(NamedTuple):
    """A branch to the label of a number, or to `default`."""

    op: str
    name: None
    block: int
    type: Type
    value: str
    default: str
    choices: list[tuple[int, str]]


class Ret(NamedTuple):
    """The function's end."""

    op: str
    name: None
    block: int
    type: Type | None
    value: str | None


class Unreachable(NamedTuple):
    """What control does not come to."""

    op: str
    name: None
    block: int
    type: None


# What has a name that others read.
Value: TypeAlias = (
    Argument | Binary | Negation | Fma | Compare | Cast | Select | Address | Extract | Insert
    | Shuffle | Load | Call | Alloca | Phi
)  # fmt: skip
Ending: TypeAlias = Br | CondBr | Switch | Ret | Unreachable
Instruction: TypeAlias = Value | Store


def result_of(call: Call) -> tuple[str, Type]:
    """The name and type of what a call gives."""
    return call.name, call.type
