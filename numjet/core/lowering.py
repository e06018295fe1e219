"""How a primitive is lowered to native code: the records that `Primitive.loops` holds.

Operations describe themselves with these; the CPU backend reads them. No code of a backend is
imported here: rules get an emitter `e` passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.base.record import record


@record(frozen=True, slots=True)
class Pointwise:
    """The element of the output at `index`, from elements of the operands (pull style).

    `fn(e, index, *readers, **params)` returns the value; `readers[k](*indices)` reads operand k
    and has `.shape` and `.dtype`. `elementwise` says that every operand is read exactly at `index`.
    """

    fn: Callable[..., Any]
    elementwise: bool = False


@record(frozen=True, slots=True)
class Reduce:
    """A reduction over params["axes"] with `op`: add mul max min and or xor argmax argmin."""

    op: str


@record(frozen=True, slots=True)
class Kernel:
    """A special generator of the backend, found by `name`."""

    name: str


@record(frozen=True, slots=True)
class Region:
    """Control flow over jaxprs in the params: jit, cond, while, scan."""

    name: str


@record(frozen=True, slots=True)
class Expand:
    """`fn(*tracers, **params)` in terms of other primitives; traced anew by the compiler."""

    fn: Callable[..., Any]


@record(frozen=True, slots=True)
class Host:
    """The compiled program calls `reference` back in Python. Listed in docs/limits.md."""


def elementwise_loops(fn: Callable[..., Any]) -> Pointwise:
    """`fn(e, *values, **params)` applied to the operands' elements at the same index."""

    def pointwise(e: Any, index: list, *readers: Any, **params: Any) -> Any:
        # Operands without dimensions stand for every element.
        return fn(e, *[read(*index) if read.shape else read() for read in readers], **params)

    return Pointwise(pointwise, elementwise=True)
