"""The values of a program that are not results of its steps: constants, scratch memory, counters.

`Values` is what kernels, lowering and regions make values with, one for each compilation. What
would break it: constants that change after they were given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.program.executable import Description, HostCall
from numjet.cpu.program.steps import Counter, HostStep, Place, Program, Slot, arena


class Values:
    """Makes values, names and calls of Python for one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.origins: dict[int, Any] = {}  # const index -> the object it came from
        self._consts: dict[Any, Val] = {}
        self._counters = self._kernels = 0

    def constant(self, value: Any) -> Val:
        """The value of an array (or scalar) known at compile time; equal scalars are one."""
        array = np.asarray(getattr(value, "_value", value))
        key = (array.tobytes(), array.dtype, array.shape) if array.size <= 1 else id(value)
        found = self._consts.get(key)
        if found is None:
            aval = getattr(value, "aval", None) or ShapedArray(array.shape, array.dtype)
            found = Val.of(aval)
            found.place = Place(Slot("const", found.nbytes, len(self.program.consts)))
            self.origins[len(self.program.consts)] = value
            self.program.consts.append(array)
            self._consts[key] = found
        return found

    def materialize(self, val: Val) -> Val:
        """`val` as memory: a literal becomes an entry of the const table."""
        if val.literal is None:
            return val
        return self.constant(val.literal)

    def temporary(self, val: Val) -> Val:
        """`val` with a slot of its own in the arena."""
        arena(val)
        return val

    def counter(self) -> Counter:
        """A fresh loop counter."""
        self._counters += 1
        return Counter(f"i{self._counters}")

    def kernel_name(self, hint: str) -> str:
        """A fresh kernel name."""
        self._kernels += 1
        return f"{hint}_{self._kernels}"

    def host(self, node: Node) -> HostStep:
        """A call back into Python for `node`."""
        reads = [self.materialize(v) for v in node.ins]
        ins = [(v.shape, v.dtype, v.aval or ShapedArray(v.shape, v.dtype)) for v in node.ins]
        call = HostCall(node.primitive, node.params, ins, [(v.shape, v.dtype) for v in node.outs])
        index = len(self.program.consts)
        self.program.consts.append(None)
        self.program.hosts[index] = call
        if call.has_description:
            description = Val.of(ShapedArray((1,), np.dtype(np.int64)))
            description.place = Place(Slot("const", description.nbytes, index + 1))
            self.program.consts.append(None)
            self.program.hosts[index + 1] = Description(call)
            reads.insert(0, description)
        # What is on its way lies in the memory of what was sent, and becomes the result there.
        moves = node.primitive.name in ("psum_start", "psum_done")
        inplace = ((node.outs[0], reads[1]),) if moves else ()
        answers = call.over_processes
        return HostStep(node.primitive.name, reads, list(node.outs), index, answers, inplace)
