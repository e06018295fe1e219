"""Loops for elementwise groups: one flat loop where every operand is read in step, else a nest."""

from __future__ import annotations

from typing import Any

from numjet.core import lowering as low
from numjet.cpu.graph import Val
from numjet.cpu.index import Index, LoopVar
from numjet.cpu.loop_ir import For, Stmt
from numjet.cpu.lower_core import Lowering, product, unflatten
from numjet.cpu.program import Step

# Light bodies gain from several independent vectors a round.
LIGHT = 12


def lower(k: Lowering) -> list[Step]:
    """The kernel of a group without reductions."""
    shape = k.group.shape
    total = product(shape)
    if total == 1:
        k.domain = [Index.of(0)] * len(shape)
        return k.finish("scalar", _body(k), k.same_place_pairs())
    if all(reads_flat(k, m.node) for m in k.members):
        k.flat = True
        k.flatten_outputs()
        var = LoopVar("i", total)
        k.domain = [Index.of(var)]
        body = _body(k)
        loops: list[Stmt] = [For(var, total, tuple(body), "vector", _unroll(k), 0, k.grain(total, k.weight()))]
        return k.finish("loop", loops, k.same_place_pairs())
    return _nest(k, shape)


def _unroll(k: Lowering) -> int:
    return 2 if k.weight() <= LIGHT else 1


def _nest(k: Lowering, shape: tuple[int, ...]) -> list[Step]:
    axes = [a for a, n in enumerate(shape) if n > 1]
    inner = axes[-1]
    outer = axes[:-1]
    k.domain = [Index.of(0)] * len(shape)
    inner_var = LoopVar("j", shape[inner])
    k.domain[inner] = Index.of(inner_var)
    if not outer:
        body = _body(k)
        loop = For(inner_var, shape[inner], tuple(body), "vector", _unroll(k), 0,
                   k.grain(shape[inner], k.weight()))
        return k.finish("loop", [loop], k.same_place_pairs())
    rows = [shape[a] for a in outer]
    count = product(rows)
    outer_var = LoopVar("i", count)
    for a, i in zip(outer, unflatten(Index.of(outer_var), rows), strict=True):
        k.domain[a] = i
    body = _body(k)
    row = For(inner_var, shape[inner], tuple(body), "vector", _unroll(k))
    loop = For(outer_var, count, (row,), "serial", 1, 0, k.grain(count, shape[inner] * k.weight()))
    return k.finish("nest", [loop], k.same_place_pairs())


def _body(k: Lowering) -> list[Stmt]:
    body: list[Stmt] = []
    for member in k.members:
        k.compute(member, k.domain, body)
    k.stores(k.writes, {id(v): k.domain for v in k.writes}, body)
    return body


def reads_flat(k: Lowering, node: Any) -> bool:
    """Whether a member reads whole values in step with its own index, or single elements."""
    if not node.rule.elementwise:
        return _constant(k, node)
    return all(in_step(k, v, 0) for v in node.ins)


def _constant(k: Lowering, node: Any) -> bool:
    """A broadcast of a single element."""
    return (node.primitive.name == "broadcast_in_dim" and node.ins[0].size == 1
            and in_step(k, node.ins[0], 0))


def in_step(k: Lowering, val: Val, depth: int) -> bool:
    fusion, group = k.fusion, k.group
    if val.literal is not None:
        return True
    if depth > 8:
        return False
    node = fusion.inline.get(id(val))
    if node is not None:
        return _constant(k, node)
    member = fusion.member.get(id(val))
    if member is not None and id(val) not in fusion.wanted and fusion.level[id(val)] != group.number:
        node = member.node
        if type(node.rule) is not low.Pointwise or val.shape != group.shape:
            return False
        if not node.rule.elementwise:
            return _constant(k, node)
        return all(in_step(k, v, depth + 1) for v in node.ins)
    return val.size == 1 or val.shape == group.shape
