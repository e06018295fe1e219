"""Loops for elementwise groups: one flat loop where every operand is read in step, else a nest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numjet.core import lowering as low
from numjet.cpu.graph import Val
from numjet.cpu.index import Index, LoopVar, clamp, linear_address
from numjet.cpu.loop_ir import For, Load, Stmt
from numjet.cpu.lower_core import Lowering, product
from numjet.cpu.program import Step

# Operands read across the grain of memory (transposes) are walked in blocks that stay in cache:
# so many elements of the axis contiguous in the operand, and of the result's last axis (as many
# lines as a set of the first-level cache holds: rows of a power of two bytes share one).
TILE = (256, 8)
# Smaller results stay in cache anyway.
TILED_ELEMENTS = 1 << 14


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
    across = _across(k, loops)
    if across is not None and product(shape) >= TILED_ELEMENTS:
        return _tiled(k, shape, across)
    for var in reversed(loops):
        body = [For(var, var.extent, tuple(body))]
    return k.finish("nest", body, k.same_place_pairs())


def _across(k: Lowering, loops: list[LoopVar]) -> int | None:
    """The number of the loop along which an operand is contiguous that is not along the last one."""
    for expr in list(k.e._made.values()):
        if type(expr) is not Load or loops[-1].extent < TILE[1]:
            continue
        address = linear_address(expr.index, expr.buffer.shape)
        if address.coefficient(loops[-1]) in (-1, 0, 1):
            continue
        for n, var in enumerate(loops[:-1]):
            if abs(address.coefficient(var)) == 1 and var.extent >= TILE[1]:
                return n
    return None


def _tiled(k: Lowering, shape: tuple[int, ...], across: int) -> list[Step]:
    """The nest with its last axis and the loop `across` cut into blocks."""
    k.forget()
    axes = [a for a, n in enumerate(shape) if n > 1]
    sizes = {axes[across]: TILE[0], axes[-1]: TILE[1]}
    k.domain = [Index.of(0)] * len(shape)
    outer: list[tuple[LoopVar, Any]] = []
    inner: list[tuple[LoopVar, Any]] = []
    for a in axes:
        n = shape[a]
        size = min(sizes.get(a, 1), n)
        whole = LoopVar(f"b{a}", -(-n // size))
        outer.append((whole, whole.extent))
        k.domain[a] = Index.of(whole) * size
        if size > 1:
            part = LoopVar(f"i{a}", size)
            inner.append((part, size if n % size == 0 else clamp(n - k.domain[a], 1, size)))
            k.domain[a] = k.domain[a] + Index.of(part)
    body = _body(k)
    for n, (var, extent) in enumerate(reversed([*outer, *inner])):
        body = [For(var, extent, tuple(body), "serial" if n else "vector", 1 if n else 2)]
    first = body[0]
    assert isinstance(first, For)
    grain = k.grain(first.var.extent, product(shape) / first.var.extent * k.weight())
    return k.finish("tiles", [replace(first, grain=grain)], k.same_place_pairs(), annotated=True)


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
