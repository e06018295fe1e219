"""Loops and branches over single elements as one kernel: carries are locals, kept in registers.

`lower(build, node)` gives the step of a while, scan or cond whose values all have one element
(arrays may be read at computed places, a scan's inputs and outputs element by element), or None.
Tried by `control` before a region becomes native control flow around kernels. What would break
it: a rule that reads an operand which changes in the loop at another index than its only one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.core import lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import Buffer, For, If, Kernel, Stmt, While
from numjet.cpu.lower.access import KernelEmitter
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.program.steps import KernelStep, Step
from numjet.cpu.regions.loop_kernel import LoopKernel

# Bodies beyond this many nodes stay kernels of their own.
MAX_NODES = 400
NAMED_DEPTH = 16


class NotScalar(Exception):
    """The region holds something that is not a single element."""


def lower(build: Compilation, node: Node) -> list[Step] | None:
    """The kernel of a scalar region, or None."""
    if any(_unsuited(v) for v in node.outs if not _scanned(node, v)):
        return None
    kernel = ScalarKernel(build)
    try:
        body: list[Stmt] = []
        outs = kernel.region(node, [kernel.operand(v) for v in node.ins], body, node.outs)
    except (NotScalar, NotImplementedError):
        return None
    return kernel.finish(node, outs, body)


def _unsuited(val: Val) -> bool:
    return val.size != 1 or not native(val)


def native(val: Val) -> bool:
    return val.dtype.kind in "fiubc" or val.dtype.name == "bfloat16"


def _scanned(node: Node, val: Val) -> bool:
    """Whether `val` is a stacked result of a scan over single elements."""
    if node.rule.name != "scan" or val.size != node.params["length"]:
        return False
    return any(v is val for v in node.outs[node.params["num_carry"] :]) and native(val)


class Array:
    """An operand with several elements, read where rules ask."""

    __slots__ = ("buffer", "kernel")

    def __init__(self, kernel: ScalarKernel, buffer: Buffer) -> None:
        self.kernel, self.buffer = kernel, buffer


class _Reader:
    __slots__ = ("value", "shape", "dtype")

    def __init__(self, value: Any, val: Val) -> None:
        self.value, self.shape, self.dtype = value, val.shape, val.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, *index: Any) -> Any:
        if type(self.value) is Array:
            return self.value.kernel.e.load(self.value.buffer, [Index.of(i) for i in index])
        return self.value


class ScalarKernel(LoopKernel):
    def __init__(self, build: Compilation) -> None:
        super().__init__(build)
        self.e = KernelEmitter()
        self.nodes = 0

    def operand(self, val: Val) -> Any:
        """A value from outside: a constant, an element, or an array."""
        if val.literal is not None:
            return self.e.const(val.literal, val.dtype)
        if not native(val) or val.size == 0:
            raise NotScalar
        buffer = self.input(val)
        if val.size == 1:
            return self.e.load(buffer, [Index.of(0)] * len(val.shape))
        return Array(self, buffer)

    # ---- evaluation

    def call(self, jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[Any], body: list[Stmt]) -> list[Any]:
        """The results of a jaxpr on `args`; statements go to `body`."""
        graph, env = self.graph(jaxpr, args)
        depth: dict[Val, int] = {}
        self.nodes += len(graph.nodes)
        if self.nodes > MAX_NODES:
            raise NotScalar

        def value(val: Val) -> Any:
            found = env.get(val)
            return self.operand(val) if found is None else found

        for node in graph.nodes:
            args = [value(v) for v in node.ins]
            rule = type(node.rule)
            if rule is low.Region:
                if any(_unsuited(v) for v in node.outs):
                    raise NotScalar
                outs = self.region(node, args, body, node.outs)
            elif any(_unsuited(v) for v in node.outs) or node.effects:
                raise NotScalar
            elif rule is low.Pointwise:
                index = [Index.of(0)] * len(node.outs[0].shape)
                readers = [_Reader(x, v) for x, v in zip(args, node.ins, strict=True)]
                found = node.rule.fn(self.e, index, *readers, **node.params)
                outs = list(found) if isinstance(found, tuple | list) else [found]
            elif (
                rule is low.Reduce and node.ins[0].size == 1 and not node.rule.op.startswith("arg")
            ):
                outs = args
            else:
                raise NotScalar
            level = 1 + max([depth.get(v, 0) for v in node.ins], default=0)
            for val, out in zip(node.outs, outs, strict=True):
                if type(out) is Array:
                    raise NotScalar
                if level >= NAMED_DEPTH:
                    out = self.e.read_local(self.define(out, body))
                env[val] = out
                depth[val] = level % NAMED_DEPTH
        return [value(v) for v in graph.outs]

    # ---- regions

    def region(
        self, node: Node, args: list[Any], body: list[Stmt], outs: Sequence[Val]
    ) -> list[Any]:
        name = node.rule.name
        if name == "while":
            return self.while_(node.params, args, body)
        if name == "cond":
            return self.cond(node, args, body)
        if name == "scan":
            return self.scan(node, args, body, outs)
        raise NotScalar

    def carries(self, values: Sequence[Any], body: list[Stmt]) -> list[Any]:
        for value in values:
            if type(value) is Array:
                raise NotScalar
        return [self.define(value, body, "c") for value in values]

    def assign(self, locals_: list[Any], values: list[Any], body: list[Stmt]) -> None:
        """Set all locals at once."""
        new = []
        for local, value in zip(locals_, values, strict=True):
            if type(value) is Array:
                raise NotScalar
            if value is not self.e.read_local(local):
                new.append((local, self.define(value, body)))
        for local, held in new:
            body.extend(self.e.assign(local, self.e.read_local(held)))

    def while_(self, params: dict, args: list[Any], body: list[Stmt]) -> list[Any]:
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        first, second = args[:n_cond], args[n_cond : n_cond + n_body]
        locals_ = self.carries(args[n_cond + n_body :], body)
        carry = [self.e.read_local(x) for x in locals_]
        before: list[Stmt] = []
        (test,) = self.call(params["cond_jaxpr"], [*first, *carry], before)
        if before:
            raise NotScalar  # a condition is an expression
        inside: list[Stmt] = []
        outs = self.call(params["body_jaxpr"], [*second, *carry], inside)
        self.assign(locals_, outs, inside)
        body.append(While(test, tuple(inside)))
        return carry

    def cond(self, node: Node, args: list[Any], body: list[Stmt]) -> list[Any]:
        index, *operands = args
        e = self.e
        locals_ = [self.define(e.const(0, v.dtype), body, "r") for v in node.outs]
        branches = []
        for jaxpr in node.params["branches"]:
            inside: list[Stmt] = []
            outs = self.call(jaxpr, operands, inside)
            self.assign(locals_, outs, inside)
            branches.append(tuple(inside))
        chosen = branches[-1]
        for k in reversed(range(len(branches) - 1)):
            test = e.not_(index) if index.dtype.kind == "b" else e.le(index, k)
            chosen = (If(test, branches[k], chosen),)
        body.extend(chosen)
        return [e.read_local(x) for x in locals_]

    def scan(self, node: Node, args: list[Any], body: list[Stmt], outs: Sequence[Val]) -> list[Any]:
        params, e = node.params, self.e
        length, n_consts, n_carry = params["length"], params["num_consts"], params["num_carry"]
        if length == 0:
            raise NotScalar
        if length == 1:  # and what it stacks are single elements, wherever they go
            if any(v.size != 1 for v in node.ins[n_consts + n_carry :]):
                raise NotScalar
            return self.call(params["jaxpr"], args, body)
        locals_ = self.carries(args[n_consts : n_consts + n_carry], body)
        carry = [e.read_local(x) for x in locals_]
        self.names += 1
        var = LoopVar(f"i{self.names}", length)
        at = length - 1 - Index.of(var) if params["reverse"] else Index.of(var)
        rows = []
        for x, val in zip(args[n_consts + n_carry :], node.ins[n_consts + n_carry :], strict=True):
            if val.size != length or val.literal is not None:
                raise NotScalar
            zeros = [Index.of(0)] * (len(val.shape) - 1)
            rows.append(e.load(x.buffer, [at, *zeros]) if type(x) is Array else x)
        inside: list[Stmt] = []
        results = self.call(params["jaxpr"], [*args[:n_consts], *carry, *rows], inside)
        for val, out in zip(outs[n_carry:], results[n_carry:], strict=True):
            if val.size != length or type(out) is Array:
                raise NotScalar
            buffer = self.output(val)
            inside.extend(e.store(buffer, [at, *[Index.of(0)] * (len(val.shape) - 1)], out))
        self.assign(locals_, results[:n_carry], inside)
        body.append(For(var, length, tuple(inside)))
        return [*carry, *[None] * (len(outs) - n_carry)]

    def finish(self, node: Node, outs: list[Any], body: list[Stmt]) -> list[Step]:
        """Store the results and make the step."""
        stored = {v for _, v in self.outputs}
        named = []
        for val, value in zip(node.outs, outs, strict=True):
            if val not in stored:
                named.append((val, self.define(value, body)))
        for val, local in named:
            buffer = self.output(val)
            body.extend(
                self.e.store(buffer, [Index.of(0)] * len(val.shape), self.e.read_local(local))
            )
        ins = list(self.inputs.values())
        buffers = (*[b for b, _ in self.outputs], *[b for b, _ in ins])
        writes, reads = [v for _, v in self.outputs], [v for _, v in ins]
        kernel = Kernel(
            self.build.kernel_name("scalars"), buffers, tuple(body), {"annotated": True}
        )
        pairs = [
            (w, r)
            for w in writes
            for r in reads
            if w.size == r.size == 1 and w not in stored and w.nbytes == r.nbytes
        ]
        return [KernelStep(kernel, [*writes, *reads], reads, writes, pairs, self.nodes)]
