"""What kernels that hold a whole loop share: graphs, buffers, locals, how they fail.

For: `regions.scalar` (and `regions.element` through it), `regions.lanes`, `regions.small`. What
would break it: two locals of one name in a kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from numjet.base import config
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, unclosed
from numjet.cpu.graph import expand
from numjet.cpu.graph.nodes import Graph, Val, flatten
from numjet.cpu.loops.ir import Buffer, Stmt
from numjet.cpu.lower.groups import Compilation


class LoopKernel:
    """A kernel under construction; `e` makes its expressions."""

    e: Any

    def __init__(self, build: Compilation) -> None:
        self.build = build
        self.inputs: dict[Val, tuple[Buffer, Val]] = {}
        self.outputs: list[tuple[Buffer, Val]] = []
        self.names = 0

    def graph(
        self, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Any]
    ) -> tuple[Graph, dict[Val, Any]]:
        """The nodes of a jaxpr, and which of `args` its operands are."""
        inner, consts = unclosed(jaxpr)
        held = [self.build.constant(c) for c in consts]
        vals = [Val.of(v.aval) for v in inner.invars]
        graph = flatten(inner, held, vals, self.build.constant, expand.trace)
        return graph, dict(zip(vals, args, strict=True))

    def input(self, val: Val) -> Buffer:
        """The buffer of a value from outside."""
        found = self.inputs.get(val)
        if found is None:
            buffer = Buffer(f"in{len(self.inputs)}", val.dtype, val.shape)
            found = self.inputs[val] = buffer, val
        return found[0]

    def output(self, val: Val) -> Buffer:
        buffer = Buffer(f"out{len(self.outputs)}", val.dtype, val.shape, "out")
        self.outputs.append((buffer, val))
        return buffer

    def define(self, value: Any, body: list[Stmt], stem: str = "v") -> Any:
        self.names += 1
        local, stmts = self.e.define(f"{stem}{self.names}", value)
        body.extend(stmts)
        return local


def failed(what: str, error: Exception) -> None:
    """Report that lowering `what` failed where it should have refused; raises it in tests."""
    if config.check_ir.value:
        raise error
    warnings.warn(
        f"numjet: {what} failed to be lowered ({type(error).__name__}: {error}); it runs as a loop "
        "of kernels. Please report this.",
        RuntimeWarning,
        stacklevel=3,
    )
