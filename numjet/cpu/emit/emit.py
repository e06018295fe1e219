"""Emit kernels of the loop IR as LLVM IR text, loops already vectorized.

`emit_kernel(module, kernel)` writes `void NAME(ptr buffers)`: `buffers` points to the data pointers
of `kernel.buffers` in order. A top-level loop with a grain becomes a function of its own,
`void NAME_parK(ptr context, i64 begin, i64 end)`, that `nj_parallel_for` calls with ranges.
`emit_launch` leaves the first out where it would do nothing but call the second, and says how the
kernel is run. `emit_round` writes one round of such a loop into somebody else's function.
Nothing is read or written past the end of a buffer.

The writer is built in layers: expressions and accesses (`emit.exprs`), statements and loops in
order (`emit.statements`), vector and tile loops (`emit.vector`), kernels and threads (here).
Who may call it: the CPU backend's pipeline and tests, with verified kernels. What would break
it: a loop with a grain whose iterations depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from numjet.base.config import check_bounds, check_ir
from numjet.base.record import NamedTuple
from numjet.cpu.builder.builder import Builder, Module, Value
from numjet.cpu.emit.vector import VectorWriter
from numjet.cpu.link import link
from numjet.cpu.loops.cost import default_lanes
from numjet.cpu.loops.ir import Buffer, For, Kernel, Load, Stmt, assigned, defined, exprs, stored
from numjet.cpu.loops.scope import Dependence, Dependences


def _checks() -> bool:
    return check_ir.value or check_bounds.value


def emit_kernel(module: Module, kernel: Kernel, check: bool | None = None) -> None:
    """Write `kernel` into `module` as `void kernel.name(ptr buffers)`.

    check: end the process on an index out of its axis (default: `_checks`).
    """
    check = _checks() if check is None else check
    b = Builder(module, kernel.name, [("buffers", "ptr")])
    emitter = _Emitter(b, {}, Dependences(stored(kernel.body)), check)
    emitter.prepare(kernel, kernel.buffers)
    emitter.load_pointers(kernel.buffers, kernel.body)
    emitter.block(kernel.body, top=True)
    emitter.finish()
    b.ret()


def emit_round(b: Builder, kernel: Kernel, pointers: Sequence[Value], number: Value | int) -> None:
    """Write round `number` of the one loop that `kernel` is into a function under construction;
    `pointers` are those of its buffers."""
    (s,) = kernel.body
    assert isinstance(s, For)
    known = dict(zip(kernel.buffers, pointers, strict=True))
    emitter = _Emitter(b, known, Dependences(stored(kernel.body)), _checks())
    emitter.prepare(kernel, kernel.buffers)
    emitter.vars[s.var] = (number, 0) if isinstance(number, Value) else (None, number)
    emitter.block(s.body)
    emitter.finish()


class Launch(NamedTuple):
    """How a kernel is run: NAME(buffers), or where there is a grain
    nj_parallel_for(NAME, buffers, extent, grain)."""

    name: str
    extent: int = 0
    grain: int = 0


def emit_launch(module: Module, kernel: Kernel) -> Launch:
    """Write `kernel` as `void NAME(ptr buffers, i64 begin, i64 end)` when it is one loop for
    threads, else as `emit_kernel` does."""
    (s, *more) = kernel.body
    if more or not isinstance(s, For) or not s.grain or not isinstance(s.extent, int):
        emit_kernel(module, kernel)
        return Launch(kernel.name)
    deps = Dependences(stored(kernel.body))
    unit, grain = _chunks(module, kernel.name, kernel, s, kernel.buffers, deps, _checks())
    return Launch(kernel.name, -(-s.extent // unit), grain)


def _chunks(
    module: Module, name: str, kernel: Kernel, s: For, buffers: Sequence[Buffer],
    deps: Dependences, check: bool, linkage: str = "",
) -> tuple[int, int]:  # fmt: skip
    """Write the rounds of `s` in a range as a function of its own; `buffers` says whose pointers
    its context holds. Returns the rounds of one unit of the range, and the units of a chunk."""
    b = Builder(module, name, [("context", "ptr"), ("begin", "i64"), ("end", "i64")],
                linkage=linkage)  # fmt: skip
    emitter = _Emitter(b, {}, deps, check)
    emitter.prepare(kernel, buffers)
    emitter.load_pointers(buffers, [s])
    unit, grain = 1, s.grain
    begin, end = b.args[1:]
    if s.kind == "vector":
        lanes = s.lanes or default_lanes(s, link.vector_bytes())
        block = lanes * s.unroll
        unit, grain = (s.grain + block - 1) // block * block, 1
    if unit > 1:
        begin, end = b.mul(begin, unit), b.mul(end, unit)
        limit = emitter.extent(s)
        if not (isinstance(limit, int) and limit % unit == 0):
            end = b.min(end, limit)
    emitter.scopes.push()
    emitter.loop(s, False, begin, end)
    emitter.finish()
    b.ret()
    return unit, grain


def _used(stmts: Sequence[Stmt]) -> set[Buffer]:
    return stored(stmts) | {e.buffer for e in exprs(stmts) if isinstance(e, Load)}


class _Emitter(VectorWriter):
    """One LLVM function: the kernel's, or that of a parallel loop's body."""

    kernel: Kernel
    context: Value  # where the pointers of the buffers stand
    parallel_count = 0

    def loop(
        self, s: For, top: bool = False, start: Value | int = 0, stop: Value | int | None = None
    ) -> None:
        """A loop; on several threads when it stands at the top and has a grain."""
        if top and s.grain and self._separable(s):
            self._parallel(s)
        else:
            super().loop(s, top, start, stop)

    def prepare(self, kernel: Kernel, buffers: Sequence[Buffer]) -> None:
        """Write (a part of) `kernel`: the first argument is a table of pointers to `buffers`."""
        self.kernel, self.order, self.context = kernel, list(buffers), self.b.args[0]
        self.streamed = kernel.notes.get("stream", frozenset())
        self.ahead = kernel.notes.get("ahead", {})
        self.rows_ahead = kernel.notes.get("rows", {})

    def finish(self) -> None:
        """Before the function returns: non-temporal stores are seen by other threads."""
        if self.fence and self.b.module.has("sse2"):
            self.b.module.declare("llvm.x86.sse.sfence", "void", ())
            self.b.line("call void @llvm.x86.sse.sfence()")

    def load_pointers(self, buffers: Sequence[Buffer], body: Sequence[Stmt]) -> None:
        """Fetch the data pointers of the buffers that `body` uses."""
        used = _used(body)
        for k, buffer in enumerate(buffers):
            if buffer in used and buffer not in self.pointers:
                slot = self.b.gep(self.context, k, "ptr") if k else self.context
                self.pointers[buffer] = self.b.load(slot, "ptr", 8)

    def _separable(self, s: For) -> bool:
        """Whether the loop needs no local from outside."""
        needed: set[Dependence] = set()
        for e in exprs([s]):
            needed |= self.deps.expr(e)
        outside = set(self.locals) - defined(s.body)
        return outside.isdisjoint(needed) and outside.isdisjoint(assigned(s.body))

    def _parallel(self, s: For) -> None:
        b, module = self.b, self.b.module
        used = [x for x in self.order if x in _used([s]) and x in self.pointers]
        context, order = self.context, list(self.kernel.buffers)
        if any(x.role == "scratch" for x in used):
            order = used
            context = b.alloca("ptr", len(order), 8)
            for k, x in enumerate(order):
                b.store(self.pointers[x], b.gep(context, k, "ptr"), 8)
        self.parallel_count += 1
        name = f"{self.kernel.name}_par{self.parallel_count}"
        unit, grain = _chunks(
            module, name, self.kernel, s, order, self.deps, self.check, "internal"
        )
        extent = self.extent(s)
        if unit > 1:
            if isinstance(extent, int):
                extent = (extent + unit - 1) // unit
            else:
                extent = b.udiv(b.add(extent, unit - 1), unit)
        b.call(
            "nj_parallel_for", "void", Value(f"@{name}", "ptr"), context,
            b.value(extent, "i64"), b.const(grain, "i64"),
        )  # fmt: skip
        self.scopes.kill(stored(s.body))
