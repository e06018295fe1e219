"""Reductions run over memory as it lies; what would be read across it is turned before.

To a reduction the axes of its domain are all alike: it runs over them in the order in which the
largest operand lies, so that `sum(x.T, 0)` is a sum of rows. Of an operand whose neighbours in
memory are not neighbours there a copy is made that lies in that order: kernels that do nothing else
copy squares of the cache, where a reduction would read a line of it for each element. Results that
tiles do not serve (complex ones, operands along several axes, rows too short for squares) take
copies as well, and sums over several leading axes that leave few numbers are sums over one.

`rewrite(graph)` is for `fuse`. What would break it: a reduction whose result depends on the order
of its axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numjet.base.record import NamedTuple
from numjet.core import lowering as low
from numjet.core.avals import ShapedArray
from numjet.core.primitive import REGISTRY
from numjet.core.structural import transpose_p
from numjet.cpu.fusion.standalone import transposed
from numjet.cpu.graph.nodes import Graph, Node, Val, is_reshape
from numjet.cpu.lower.access import OTHER, access, compose, every_axis
from numjet.cpu.lower.update import writes_parts

# Smaller domains are in the nearest cache, and shorter rows no longer than a vector.
LARGE, LONG = 1 << 14, 8
# Rows of so few columns are joined to vectors; longer ones fill some.
COLUMNS = 7
# Smaller operands are not worth a kernel.
SMALLEST = 256
# A factor of so many times the other's elements says in which order a product runs: 15,625 matrices
# of 8 by 8 behind one took 2.9 ms in the order of the result, so 0.3.
_FAR_LARGER = 16
# So many operations are looked through for what a reduction reads.
_MOST = 64


def rewrite(graph: Graph) -> tuple[list[Val], list[Val]]:
    """Turn domains, operands and results, in new nodes. Gives the copies, which kernels of their
    own make, and other values that are to be in memory."""
    behind = _behind_turns(graph)
    sums = [
        node for node in graph.nodes
        if type(node.rule) is low.Reduce and len(node.ins) == len(node.outs) == 1
        and (node.ins[0] in behind or _has_few_columns(node))
    ]  # fmt: skip
    if not behind and not sums:
        return [], []
    found = _Rewriter(graph)
    for val in behind:
        if val.node is not None and val.node.primitive is transpose_p:
            found.transpose(val.node)
    for node in sums:
        found.reduction(node)
    for val in dict.fromkeys(graph.outs):
        if val in behind:
            found.result(val)
    if found.behind or found.instead:
        found.write()
    return found.copies, found.stored


def _behind_turns(graph: Graph) -> dict[Val, None]:
    """The values whose readers may read memory across: all else is read in the order in which it
    lies, whatever is computed on the way."""
    behind: dict[Val, None] = {}
    for node in graph.nodes:
        if type(node.rule) is not low.Pointwise:
            continue
        turned = _turns(node) or not behind.keys().isdisjoint(node.ins)
        if turned and _computes(node):
            behind.update(dict.fromkeys(node.outs))
    return behind


def _turns(node: Node) -> bool:
    """Whether a node reads memory across."""
    if node.primitive is transpose_p:
        return not is_reshape(node)
    return node.primitive.name == "dot_general" and type(node.rule) is low.Pointwise


def _has_few_columns(node: Node) -> bool:
    """Whether a reduction is one over several leading axes that leaves few numbers."""
    source, axes = node.ins[0], _reduced(node)
    return (
        source.size >= LARGE
        and len(axes) > 1
        and axes == list(range(len(axes)))
        and 1 < node.outs[0].size <= COLUMNS
    )


def _reduced(node: Node) -> list[int]:
    return sorted([a % len(node.ins[0].shape) for a in node.params["axes"]])


class _Leaf(NamedTuple):
    """A value that a reduction reads from memory: `at`, the domain's axis of each of its axes;
    `reader` reads it as operand number `place`; `movers`, the results of operations that only move
    elements between it and the first that computes, with their own axes."""

    val: Val
    at: tuple
    reader: Node
    place: int
    movers: tuple[tuple[Val, tuple], ...]


class _Rewriter:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, set(graph.nodes)
        self.uses: dict[Val, int] = {}
        for val in (*graph.outs, *[v for node in graph.nodes for v in node.ins]):
            self.uses[val] = self.uses.get(val, 0) + 1
        self.behind: dict[Node | None, list[Node]] = {}
        self.instead: dict[Node, list[Node]] = {}
        self.operands: dict[Node, list[Val]] = {}
        self.turned: dict[tuple, Val] = {}
        self.copies: list[Val] = []
        self.stored: list[Val] = []

    def reduction(self, node: Node) -> None:
        source = node.ins[0]
        axes = [a for a, n in enumerate(source.shape) if n > 1]
        if source.size < LARGE or len(axes) < 2:
            return
        leaves, alone = self.leaves(source)
        order = _order(leaves, axes, node) if alone else axes
        if order != axes:
            self.turn_domain(node, order)
        elif _has_few_columns(node) and all([self.joins(leaf, node) for leaf in leaves]):
            self.join_rows(node)
        if source.shape[order[-1]] < LONG:
            return
        for leaf in leaves:
            if leaf.val.size >= SMALLEST and _across(leaf.val.shape, leaf.at, order):
                self.turn_operand(leaf, order)

    def result(self, val: Val) -> None:
        """Tiles follow what lies along one other axis: of what lies along a further one copies are
        made."""
        node = val.node
        if val.size < LARGE or node not in self.nodes or type(node.rule) is not low.Pointwise:
            return
        order = [a for a, n in enumerate(val.shape) if n > 1]
        along: dict[int, list[_Leaf]] = {}
        leaves, alone = self.leaves(val)
        for leaf in leaves:
            if leaf.val.size >= SMALLEST and _across(leaf.val.shape, leaf.at, order):
                along.setdefault(_axes(leaf)[-1], []).append(leaf)
        computed = not access(node).moves
        if computed and val.dtype.kind == "c":  # no tiles
            turned, *others = {tuple(_axes(leaf)) for leaf in leaves} or {()}
            same = not others and sorted(turned) == order
            if along and alone and same and node.rule.elementwise:
                self.turn_result(node, turned)
                return
            along[-1] = []
        nbytes = {axis: sum([leaf.val.nbytes for leaf in found]) for axis, found in along.items()}
        most = -1 if -1 in along else max(along, key=lambda axis: nbytes[axis], default=-1)
        for axis, found in along.items():
            for leaf in found:
                if axis != most:
                    self.turn_operand(leaf, order)

    def leaves(self, source: Val) -> tuple[list[_Leaf], bool]:
        """What `source` is computed from, and whether nobody else reads what is on the way."""
        found: list[_Leaf] = []
        reads: dict[Val, int] = {source: 1}  # of what is on the way
        whole = True
        seen: set[tuple[Val, tuple]] = set()
        todo: list[tuple[Val, tuple, Any]] = [(source, every_axis(len(source.shape)), None)]
        while todo:
            val, at, reading = todo.pop()
            if (val, at) in seen:
                continue
            seen.add((val, at))
            node = val.node
            inside = node is not None and node in self.nodes and _computes(node)
            if node is None or not inside or len(seen) > _MOST:
                whole = whole and not inside
                reads.pop(val, None)
                if reading is not None:
                    found.append(_Leaf(val, at, *reading))
                continue
            way = access(node)
            movers = ()
            if way.moves and node.ins and node.ins[0].size >= val.size:
                movers = (*(reading[2] if reading else ()), (val, at))
            for place, (operand, asked) in enumerate(zip(node.ins, way.maps, strict=True)):
                if asked is None or operand.literal is not None:
                    continue
                there = compose(at, asked)
                if there is OTHER:
                    whole = False
                else:
                    reads[operand] = reads.get(operand, 0) + 1
                    todo.append((operand, there, (node, place, movers)))
        alone = whole and all([count == self.uses.get(val, 1) for val, count in reads.items()])
        return found, alone

    def turn_domain(self, node: Node, order: list[int]) -> None:
        """Run `node` over the axes of its operand in this order."""
        source, out, reduced = node.ins[0], node.outs[0], _reduced(node)
        long = iter(order)
        permutation = tuple([a if n == 1 else next(long) for a, n in enumerate(source.shape)])
        turned = transposed(node, source, permutation)
        kept = [a for a in permutation if a not in reduced]
        shape = tuple([source.shape[a] for a in kept])
        back = tuple([kept.index(a) for a in sorted(kept)])
        straight = back == tuple(range(len(back)))
        result = out if straight else Val.of(ShapedArray(shape, out.dtype))
        axes = tuple([k for k, a in enumerate(permutation) if a in reduced])
        made = [turned, node.instead([turned.outs[0]], [result], {**node.params, "axes": axes})]
        if not straight:
            made.append(transposed(node, result, back, out))
        self.replace(node, made)

    def joins(self, leaf: _Leaf, node: Node) -> bool:
        """Whether a value is as well read where the axes that are summed are one."""
        at = [a for a in leaf.at if a is not None]
        every = list(range(len(node.ins[0].shape)))
        return at in (every, every[len(node.params["axes"]) :], [])

    def join_rows(self, node: Node) -> None:
        """Sum over one axis what is summed over several: rows of few columns make long vectors."""
        source, count = node.ins[0], len(node.params["axes"])
        shape = (math.prod(source.shape[:count]), *source.shape[count:])
        joined = Val.of(ShapedArray(shape, source.dtype))
        params = {"new_sizes": shape, "dimensions": None}
        made = node.instead([source], [joined], params, REGISTRY["reshape"])
        summed = node.instead([joined], node.outs, {**node.params, "axes": (0,)})
        self.replace(node, [made, summed])

    def turn_result(self, node: Node, order: Sequence[int]) -> None:
        """Compute an elementwise result as its operands lie, and copy it."""
        (out,) = node.outs
        permutation = (*[a for a, n in enumerate(out.shape) if n == 1], *order)
        back = tuple([permutation.index(a) for a in range(len(permutation))])
        made = [transposed(node, v, permutation) for v in node.ins if v.shape]
        turned = iter(made)
        ins = [next(turned).outs[0] if v.shape else v for v in node.ins]
        result = Val.of(ShapedArray(tuple([out.shape[a] for a in permutation]), out.dtype))
        computed = node.instead(ins, [result])
        self.replace(node, [*made, computed, transposed(node, result, back, out)])
        self.stored.append(result)
        self.copies.append(out)

    def transpose(self, node: Node) -> None:
        """Copy squares of a matrix, then whole rows, where what lies along the operand's last axis
        is too short for squares."""
        (val,), (out,) = node.ins, node.outs
        axes = [a for a, n in enumerate(val.shape) if n > 1]
        order = [a for a in node.params["permutation"] if val.shape[a] > 1]
        if out.size < LARGE or order == axes or val.shape[axes[-1]] >= LONG:
            return
        last = order[-1]
        behind = [a for a in range(len(val.shape)) if a > last]
        squares = (*range(last), *behind, last)
        if math.prod([val.shape[a] for a in behind]) < LONG or val.shape[last] < LONG:
            return
        if order == [a for a in squares if val.shape[a] > 1]:
            return
        copy = transposed(node, val, squares)
        rows = tuple([squares.index(a) for a in node.params["permutation"]])
        self.replace(node, [copy, transposed(node, copy.outs[0], rows, out)])
        self.copies.append(copy.outs[0])

    def turn_operand(self, leaf: _Leaf, order: list[int]) -> None:
        """Have `leaf` lie in memory in the order of the domain."""
        for val, at in reversed(leaf.movers):
            if not _across(val.shape, at, order):
                self.copies.append(val)
                return
        ranks = {a: k for k, a in enumerate(order)}
        axes = range(len(leaf.val.shape))
        permutation = tuple(sorted(axes, key=lambda a: ranks.get(leaf.at[a], -1)))
        key = leaf.val, permutation
        if key not in self.turned:
            copy = transposed(leaf.reader, leaf.val, permutation)
            back = tuple([permutation.index(a) for a in axes])
            seen = transposed(leaf.reader, copy.outs[0], back)
            maker = leaf.val.node if leaf.val.node in self.nodes else None
            self.behind.setdefault(maker, []).extend([copy, seen])
            self.nodes.update([copy, seen])
            self.copies.append(copy.outs[0])
            self.turned[key] = seen.outs[0]
        ins = self.operands.setdefault(leaf.reader, list(leaf.reader.ins))
        ins[leaf.place] = self.turned[key]

    def replace(self, node: Node, made: list[Node]) -> None:
        """Have `made` in the place of `node`."""
        self.instead[node] = made
        self.nodes.update(made)

    def write(self) -> None:
        nodes: list[Node] = []

        def add(some: Sequence[Node]) -> None:
            for node in some:
                if node in self.instead:
                    add(self.instead[node])
                    continue
                ins = self.operands.get(node)
                nodes.append(node if ins is None else node.instead(ins, node.outs))
                add(self.behind.get(node, ()))

        add(self.behind.get(None, ()))
        add(self.graph.nodes)
        self.graph.nodes = nodes


def _computes(node: Node) -> bool:
    """Whether readers may compute a node's result anew: updates are written in memory."""
    return type(node.rule) is low.Pointwise and not writes_parts(node)


def _axes(leaf: _Leaf) -> list[int]:
    """The domain's axes in the order in which a value lies, those of one place left out."""
    return [a for a, n in zip(leaf.at, leaf.val.shape, strict=True) if n > 1 and a is not None]


def _order(leaves: list[_Leaf], axes: list[int], node: Node) -> list[int]:
    """The order of the domain's axes in which most bytes lie that are read, of what has all; or, of
    a product, in which one factor that is far larger than the other lies."""
    bytes_of: dict[tuple[int, ...], int] = {tuple(axes): 0}
    for leaf in leaves:
        at = _axes(leaf)
        if sorted(at) == axes:
            bytes_of[tuple(at)] = bytes_of.get(tuple(at), 0) + leaf.val.nbytes
    if len(bytes_of) == 1 and len(leaves) == 2:
        shape, reduced = node.ins[0].shape, _reduced(node)
        few, at = sorted([_axes(x) for x in leaves], key=lambda v: math.prod([shape[a] for a in v]))
        sizes = [math.prod([shape[a] for a in v]) for v in (few, at)]
        inside = [k for k, a in enumerate(at) if a in reduced]
        if sizes[1] > _FAR_LARGER * sizes[0] and inside and at[-1] not in reduced:
            first = inside[0]
            return [*at[:first], *[a for a in axes if a not in at], *at[first:]]
    return [*max(bytes_of, key=lambda order: bytes_of[order])]


def _across(shape: tuple[int, ...], at: tuple, order: list[int]) -> bool:
    """Whether neighbours in the domain are not neighbours in memory, though they are there."""
    axes = [a for a, n in zip(at, shape, strict=True) if n > 1]
    return order[-1] in axes[:-1]
