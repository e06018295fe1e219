"""Loops for elementwise groups: one flat loop where every operand is read in step, else a nest."""

from __future__ import annotations

import math
from typing import Any

from numjet.core import lowering as low
from numjet.cpu.graph.nodes import Val
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import For, Stmt
from numjet.cpu.lower.core import Lowering
from numjet.cpu.program.steps import Step


def lower(k: Lowering) -> list[Step]:
    """The kernel of a group without reductions."""
    shape = k.group.shape
    total = math.prod(shape)
    if total == 1:
        k.domain = [Index.of(0)] * len(shape)
        return k.finish("scalar", _body(k), k.same_place_pairs())
    if all(reads_flat(k, m.node) for m in k.members):
        k.flat = True
        k.flatten_outputs()
        var = LoopVar("i", total)
        k.domain = [Index.of(var)]
        body = _body(k)
        return k.finish("loop", [For(var, total, tuple(body))], k.same_place_pairs())
    return _nest(k, shape)


def _nest(k: Lowering, shape: tuple[int, ...]) -> list[Step]:
    """A loop an axis, in the order of the result's memory; later passes join and annotate them."""
    k.domain, loops = [], []
    for a, n in enumerate(shape):
        if n == 1:
            k.domain.append(Index.of(0))
        else:
            loops.append(LoopVar(f"i{a}", n))
            k.domain.append(Index.of(loops[-1]))
    body = _body(k)
    for var in reversed(loops):
        body = [For(var, var.extent, tuple(body))]
    return k.finish("nest", body, k.same_place_pairs())


def _body(k: Lowering) -> list[Stmt]:
    body: list[Stmt] = []
    for member in k.members:
        k.compute(member, k.domain, body)
    k.stores(k.writes, {v: k.domain for v in k.writes}, body)
    return body


def reads_flat(k: Lowering, node: Any) -> bool:
    """Whether a member reads whole values in step with its own index, or single elements."""
    if not node.rule.elementwise:
        return _constant(k, node)
    return all(in_step(k, v, 0) for v in node.ins)


def _constant(k: Lowering, node: Any) -> bool:
    """A broadcast of a single element."""
    return (
        node.primitive.name == "broadcast_in_dim"
        and node.ins[0].size == 1
        and in_step(k, node.ins[0], 0)
    )


def in_step(k: Lowering, val: Val, depth: int) -> bool:
    fusion, group = k.fusion, k.group
    if val.literal is not None:
        return True
    if depth > 8:
        return False
    node = fusion.inline.get(val)
    if node is not None:
        return _constant(k, node)
    member = fusion.member.get(val)
    if (
        member is not None
        and val not in fusion.wanted
        and fusion.level[val] != group.number
    ):
        node = member.node
        if type(node.rule) is not low.Pointwise or val.shape != group.shape:
            return False
        if not node.rule.elementwise:
            return _constant(k, node)
        return all(in_step(k, v, depth + 1) for v in node.ins)
    return val.size == 1 or val.shape == group.shape
