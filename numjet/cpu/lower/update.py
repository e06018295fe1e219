"""Updates of parts of an array: scatter and dynamic_update_slice, in place where the array dies.

The step first copies the array to its result (nothing, when both share memory), then a kernel
writes the windows, in the order of the positions. What would break it: updates that are computed
in this kernel from the array itself, other than a single element (`fuse` puts them in memory).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from numjet.base.record import replace
from numjet.core import lowering as low
from numjet.core.jaxpr import Eqn
from numjet.cpu import kernels
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.index import Dyn, Index, LoopVar, clamp, dynamic
from numjet.cpu.loops.ir import Buffer, For, If, Kernel, Load, Stmt, Store, exprs
from numjet.cpu.lower.core import Lowering
from numjet.cpu.lower.groups import Compilation, Fusion, Group
from numjet.cpu.passes.vectorize import collapse, map_blocks
from numjet.cpu.program.steps import KernelStep, Step, UpdateStep

METHODS = {
    "scatter-add": "add",
    "scatter-sub": "sub",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}
# Windows with rows of at least this many elements are written as vectors.
VECTOR_WINDOW = 4
# From so many positions on, what is dear to compute of them has a loop of its own.
MANY_PLACES = 16


def writes_parts(node: Node | Eqn) -> bool:
    """Whether `node` may be an update at all."""
    name = node.primitive.name
    return name == "dynamic_update_slice" or name == "scatter" or name in METHODS


def is_update(node: Node, carried: bool) -> bool:
    """Whether `node` is better run as an update than as a loop over its whole result; `carried`
    says that the array dies, as a loop's carry, so that nothing is copied."""
    name = node.primitive.name
    if name == "scatter" or name in METHODS:
        return bool(node.ins[2].size) and not kernels.claims(node)
    if name != "dynamic_update_slice" or not node.ins[1].size:
        return False
    return carried or 2 * node.ins[1].size <= node.ins[0].size


def updates_of(node: Node) -> Val:
    """The operand that holds the new elements."""
    return node.ins[1] if node.primitive.name == "dynamic_update_slice" else node.ins[2]


def lower(build: Compilation, fusion: Fusion, group: Group, node: Node) -> list[Step]:
    """The step of an update node."""
    k = Lowering(build, fusion, group)
    operand, out, updates = node.ins[0], node.outs[0], updates_of(node)
    operand = build.materialize(operand)
    buffer = k.output(out)
    axes = [LoopVar(f"i{a}", n) for a, n in enumerate(updates.shape)]
    k.domain = [Index.of(v) for v in axes]
    if node.primitive.name == "dynamic_update_slice":
        place, order, conditions = slice_place(k, node, operand)
    else:
        place, order, conditions = scatter_place(k, node, operand, guarded=True)
    window = [a for a in range(len(axes)) if a not in order]
    value = k.element(updates, tuple(k.domain))
    method = METHODS.get(node.primitive.name)
    if method is not None:
        value = getattr(k.e, method)(k.e.load(buffer, place), value)
    body: list[Stmt] = k.e.store(buffer, place, value)
    # Without positions one after the other the passes choose the vector loops themselves.
    plain = not order and method is None
    for a in reversed(window):
        if axes[a].extent > 1:
            body = [For(axes[a], axes[a].extent, tuple(body))]
    if not plain and type(body[0]) is For:
        # Windows that lie together in all arrays are one row.
        body = [_lane_wise(collapse(body[0]))]
    if conditions:
        body = [If(functools.reduce(k.e.and_, conditions.values()), tuple(body))]
    for a in reversed(order):
        if axes[a].extent > 1:
            body = [For(axes[a], axes[a].extent, tuple(body))]
    return [_step(k, body, operand, out, updates, {} if plain else {"annotated": True})]


def _lane_wise(s: Stmt) -> Stmt:
    """A nest of loops whose innermost one runs over lanes, if it is long enough."""
    assert type(s) is For
    if type(s.body[0]) is For:
        return replace(s, body=(_lane_wise(s.body[0]),))
    return replace(s, kind="vector") if s.var.extent >= VECTOR_WINDOW else s


def redirect(steps: Sequence[Step], node: Node) -> bool:
    """Let the kernel that computes the new elements of a dynamic_update_slice at a known place
    write them there, in memory that no operand shares; whether it does."""
    new, out = node.ins[1], node.outs[0]
    found = [s for s in steps if isinstance(s, KernelStep) and any(v is new for v in s.writes)]
    if len(found) != 1 or type(found[0]) is not KernelStep:
        return False
    step = found[0]
    position = next(k for k, v in enumerate(step.operands) if v is new)
    before = step.kernel.buffers[position]
    if before.shape != new.shape or any(
        isinstance(e, Load) and e.buffer is before for e in exprs(step.kernel.body)
    ):
        return False  # one axis only, or read again
    starts = [
        min(max(int(start.literal), 0), n - size)
        for start, n, size in zip(node.ins[2:], out.shape, new.shape, strict=True)
    ]
    after = Buffer(before.name, out.dtype, out.shape, "out")

    def change(s: Stmt) -> Stmt:
        s = map_blocks(s, lambda block: tuple([change(x) for x in block]))
        if isinstance(s, Store) and s.buffer is before:
            index = tuple([i + start for i, start in zip(s.index, starts, strict=True)])
            return replace(s, buffer=after, index=index)
        return s

    body = tuple([change(s) for s in step.kernel.body])
    buffers = tuple([after if x is before else x for x in step.kernel.buffers])
    step.kernel = replace(step.kernel, buffers=buffers, body=body)
    step.operands = [out if v is new else v for v in step.operands]
    step.writes = [out if v is new else v for v in step.writes]
    step.inplace = [(w, r) for w, r in step.inplace if w is not new]
    return True


def _step(k: Lowering, body: list[Stmt], operand: Val, out: Val, updates: Val, notes: dict) -> Step:
    vals = list(k.operands.values())
    reads = vals[1:]
    kernel = Kernel(
        k.build.kernel_name("update"),
        tuple(k.buffers[v] for v in vals),
        tuple(body),
        notes,
    )
    shared = any(v.root()[0] is operand.root()[0] for v in reads)
    inplace = [(out, operand)] if updates.size == 1 or not shared else []
    return UpdateStep(kernel, vals, [operand, *reads], [out], inplace, updates.size, operand, out)


def slice_place(k: Lowering, node: Node, operand: Val) -> tuple[tuple, list[int], dict[int, Any]]:
    e, place = k.e, []
    for i, start, n, size in zip(
        k.domain, node.ins[2:], operand.shape, node.ins[1].shape, strict=True
    ):
        at = e.value_index(k.element(start, ()))
        place.append(i if n == size else e.index_clamp(at, 0, n - size) + i)
    return tuple(place), [], {}


def scatter_place(
    k: Lowering, node: Node, operand: Val, guarded: bool = False
) -> tuple[tuple, list[int], dict[int, Any]]:
    """(index in the result, axes of the updates that count positions, conditions for writing, each
    with the axis whose place it is about). guarded: the place is used where the conditions hold."""
    e, (_, indices, updates) = k.e, node.ins
    numbers, mode = node.params["dimension_numbers"], node.params["mode"]
    window = sorted(numbers.update_window_dims)
    order = [a for a in range(len(updates.shape)) if a not in window]
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    along = iter(window)
    axis_of = {a: next(along) for a in range(len(operand.shape)) if a not in gone}
    starts: dict[int, Index] = {}
    for component, axis in enumerate(numbers.scatter_dims_to_operand_dims):
        position = (*[k.domain[a] for a in order], Index.of(component))
        starts[axis] = e.value_index(k.element(indices, position))
    for axis, batch in zip(
        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
    ):
        starts[axis] = k.domain[order[batch]]
    clip = mode.name == "CLIP"
    place: list[Index] = []
    conditions: dict[int, Any] = {}
    for axis, n in enumerate(operand.shape):
        size = updates.shape[axis_of[axis]] if axis in axis_of else 1
        at = Index.of(0)
        if axis in starts:
            at = e.index_clamp(starts[axis], 0, n - size)
            if not clip and axis not in numbers.operand_batching_dims:
                inside = e.index_in_range(starts[axis], 0, n - size + 1)
                if getattr(inside, "value", False) is not True:
                    conditions[axis] = inside
                    at = _known_inside(starts[axis], n - size) if guarded else at
        place.append(at + k.domain[axis_of[axis]] if axis in axis_of else at)
    return tuple(place), order, conditions


def _known_inside(at: Index, last: int) -> Index:
    """A start that was found to be in 0..last."""
    atoms = [atom for atom, factor in at.terms if factor == 1 and type(atom) is Dyn]
    if len(at.terms) != 1 or not atoms or at.const:
        return clamp(at, 0, last)
    return dynamic(atoms[0].expr, max(atoms[0].lo, 0), min(atoms[0].hi, last))


def dear_places(node: Node) -> bool:
    """Whether what computes the positions of a scatter divides: the loop over them goes one by one,
    in which a division takes as long as all else, while a loop of its own takes many at once."""
    if node.primitive.name == "dynamic_update_slice" or node.ins[1].size < MANY_PLACES:
        return False
    todo, seen = [node.ins[1]], 0
    while todo and seen < 2 * MANY_PLACES:
        maker = todo.pop().node
        seen += 1
        if maker is not None and type(maker.rule) is low.Pointwise:
            if maker.primitive.name in ("div", "rem", "floor", "round", "sqrt"):
                return True
            todo += maker.ins
    return False


def repeated(val: Val) -> Val | None:
    """The one element, or literal, that `val` is or repeats by broadcasts; None of others."""
    while val.size > 1 and val.literal is None:
        node = val.node
        if node is None or node.primitive.name != "broadcast_in_dim":
            return None
        val = node.ins[0]
    return val
