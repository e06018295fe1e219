"""Nodes that stand alone, not in a loop nest with others: kernels by hand, calls to Python.

For `fuse` and the pipeline. `expand` brings a node to nodes that are better compiled, products to
loops among them; `join_transposes` and `turn_results` take transposes into the strides of the node
beside them; `steps` makes what runs. What would break it: a kernel that does not take the strides
that these hand it (`kernels.products.dot` says which).
"""

from __future__ import annotations

from typing import Any

from numjet.base.record import replace
from numjet.core import lowering as low
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import Eqn
from numjet.core.memo import Memo
from numjet.core.structural import transpose_p
from numjet.cpu import kernels
from numjet.cpu.graph import products
from numjet.cpu.graph.nodes import Graph, Node, Val
from numjet.cpu.kernels.idioms import strides
from numjet.cpu.kernels.products import dot
from numjet.cpu.lower.groups import Compilation
from numjet.cpu.program.steps import SpecialStep, Step

# A part of at least 1/WINDOW_SHARE of a value is read in place: that keeps all of it alive.
WINDOW_SHARE = 4


def expand(node: Node) -> list[Node] | None:
    """Nodes that compute the same and are better compiled, or None to run `node` as it is."""
    if (
        node.rule.name != "dot_general"
        or not node.outs[0].size
        or not all(v.size for v in node.ins)
    ):
        return kernels.expand(node)
    group, node = node.group, _without_transposes(node)
    if _is_claimed(node):
        made: list[Node] = []
        side = dot.to_transpose(node)
        while side is not None and len(made) < 2:
            turned, product = _transposed_operand(node, side)
            if not _is_claimed(product):
                break
            made.append(turned)
            node, before = product, side
            side = dot.to_transpose(node)
            if side == before:
                break
        part = _with_windows(node, group)
        return [*made, part if part is not None and _is_claimed(part) else node]
    found = kernels.expand(node)
    return products.expand(node) if found is None else found


def _is_claimed(node: Node) -> bool:
    key = _key(node)
    claimed = _claimed.get(key)
    if claimed is None:
        claimed = kernels.claims(node)
        _claimed[key] = claimed
    return claimed


def stays(eqn: Eqn) -> bool:
    """Whether an equation with a `Kernel` rule is a step of its own, not expanded into loops."""
    rule = eqn.primitive.loops
    if type(rule) is not low.Kernel:
        return True
    node = Node(eqn.primitive, eqn.params, [], [], rule, eqn.effects, None)
    node.ins = [Val.of(v.aval) for v in eqn.invars]
    node.outs = [Val.of(v.aval, node) for v in eqn.outvars]
    found = expand(node)
    while found is not None and len(found) > 1 and found[0].primitive is transpose_p:
        del found[0]  # of the product's operands (`_transposed_operand`)
    return found is None or (len(found) == 1 and type(found[0].rule) is low.Kernel)


# Programs have few kinds of products: whether the library takes one is decided once a kind.
_claimed: dict[Any, bool] = Memo("products by the library")


def _key(node: Node) -> tuple:
    """What decides how a product is computed: shapes, dtypes, dimensions."""
    params = node.params
    return (
        params["dimension_numbers"],
        params["preferred_element_type"],
        params.get("windows"),
        params.get("transposed"),
        params.get("pairs"),
        tuple([(v.shape, v.dtype, v.literal is None) for v in node.ins]),
        tuple([(v.shape, v.dtype) for v in node.outs]),
    )


def _repeats(step: Step, node: Node) -> bool:
    """Whether the step depends on nothing but the node's operands and results in order."""
    return (
        type(step) is SpecialStep
        and not step.inplace
        and all(v.literal is None for v in node.ins)
        and [v.root()[0] for v in step.reads] == [v.root()[0] for v in node.ins]
        and list(step.writes) == node.outs
    )


def join_transposes(graph: Graph) -> bool:
    """Turn `transpose(dot_general(a, b))` that swaps rows and columns into `dot_general(b, a)`;
    whether there was any."""
    joined = False
    uses: dict[Val, int] = {}
    for val in (*graph.outs, *[v for node in graph.nodes for v in node.ins]):
        uses[val] = uses.get(val, 0) + 1
    for node in graph.nodes:
        # Values from outside (constants of a loop's body, rows of what it scans) know the node of
        # another graph, whose operands need not be in memory.
        node.group = graph
    for node in graph.nodes:
        if node.primitive.name != "transpose":
            continue
        maker = node.ins[0].node
        if maker is None or maker.group is not graph or uses[node.ins[0]] > 1:
            continue
        if maker.primitive.name != "dot_general":
            continue
        (lc, rc), (lb, rb) = maker.params["dimension_numbers"]
        batch, lhs, rhs = len(lb), len(maker.ins[0].shape), len(maker.ins[1].shape)
        left, right = lhs - batch - len(lc), rhs - batch - len(rc)
        swapped = [*range(batch + left, batch + left + right), *range(batch, batch + left)]
        if tuple(node.params["permutation"]) != (*range(batch), *swapped):
            continue
        # The transpose becomes the product, in its place; the old product is dead.
        node.primitive, node.rule = maker.primitive, maker.rule
        node.params = {**maker.params, "dimension_numbers": ((rc, lc), (rb, lb))}
        node.ins = [maker.ins[1], maker.ins[0]]
        joined = True
    return joined


def _without_transposes(node: Node) -> Node:
    """A product that reads what its transposed operands were made from (other dimensions)."""
    ins = list(node.ins)
    contract, batch = [list(x) for x in node.params["dimension_numbers"]]
    for side in (0, 1):
        maker = ins[side].node
        while (
            maker is not None
            and maker.group is node.group
            and maker.primitive.name == "transpose"
            and ins[side].literal is None
        ):
            order = maker.params["permutation"]
            free = [
                order[a]
                for a in range(len(order))
                if a not in contract[side] and a not in batch[side]
            ]
            if free != sorted(free):
                break
            contract[side] = tuple([order[a] for a in contract[side]])
            batch[side] = tuple([order[a] for a in batch[side]])
            ins[side] = maker.ins[0]
            maker = ins[side].node
    if ins == node.ins:
        return node
    params = {**node.params, "dimension_numbers": (tuple(contract), tuple(batch))}
    return node.instead(ins, node.outs, params)


def transposed(node: Node, val: Val, permutation: tuple[int, ...], out: Val | None = None) -> Node:
    """A transpose of `val`, for `node`: into `out`, or a new value."""
    if out is None:
        out = Val.of(ShapedArray(tuple([val.shape[a] for a in permutation]), val.dtype))
    return node.instead([val], [out], {"permutation": permutation}, transpose_p)


def _transposed_operand(node: Node, side: int) -> tuple[Node, Node]:
    """A transpose of a product's operand and the product that reads it. The depths take the order
    that they have in the other operand."""
    numbers = [[list(axes) for axes in pair] for pair in node.params["dimension_numbers"]]
    contract, batch = [pair[side] for pair in numbers]
    val, other = node.ins[side], numbers[0][1 - side]
    free = [a for a in range(len(val.shape)) if a not in contract and a not in batch]
    depths = [a for _, a in sorted(zip(other, contract, strict=True))]
    last = side == 0 or dot.depths_last(node)
    order = (*batch, *free, *depths) if last else (*batch, *depths, *free)
    turned = transposed(node, val, order)
    for pair in numbers:
        pair[side] = [order.index(a) for a in pair[side]]
    ins = [*node.ins]
    ins[side] = turned.outs[0]
    (lc, rc), (lb, rb) = [[tuple(axes) for axes in pair] for pair in numbers]
    params = {**node.params, "dimension_numbers": ((lc, rc), (lb, rb))}
    return turned, node.instead(ins, node.outs, params)


def _with_windows(node: Node, group: Graph) -> Node | None:
    """A product that reads parts of what its sliced operands were cut from, or None if there are no
    such: heads of attention, out of one product for queries, keys and values."""
    ins, windows = list(node.ins), [None, None]
    for side in (0, 1):
        found = _window(ins[side], group)
        if found is not None:
            ins[side], windows[side] = found
    if ins == node.ins:
        return None
    params = {**node.params, "windows": tuple(windows)}
    return node.instead(ins, node.outs, params)


def _window(val: Val, group: Graph) -> tuple[Val, Any] | None:
    """(what lies in memory, the part of it that `val` is), if it is no copy of all of it."""
    shape, size, node = val.shape, val.size, val.node
    # For each axis of `shape` the axis of the present value; where on its axes the part begins.
    axes: list[int] = list(range(len(shape)))
    begin = [0] * len(shape)
    sliced = False
    while node is not None and node.group is group and val.literal is None:
        name, source, params = node.primitive.name, node.ins[0], node.params
        if name == "slice":
            if any(s != 1 for s in params["strides"] or ()):
                return None
            begin = [x + y for x, y in zip(begin, params["start_indices"], strict=True)]
            sliced = True
        elif name == "transpose":
            order = params["permutation"]
            axes = [order[a] if a >= 0 else -1 for a in axes]
            begin = [begin[order.index(a)] for a in range(len(order))]
        elif name in ("reshape", "squeeze", "expand_dims") and not sliced:
            # Axes of one element come and go, as long as none of them is cut off.
            before, after = [[a for a, n in enumerate(v.shape) if n != 1] for v in (source, val)]
            if [source.shape[a] for a in before] != [val.shape[a] for a in after]:
                break
            if params.get("dimensions") is not None and name == "reshape":
                break
            found = dict(zip(after, before, strict=True))
            axes = [found.get(a, -1) for a in axes]
            begin = [0] * len(source.shape)
        else:
            break
        val, node = source, source.node
    if not sliced or WINDOW_SHARE * size < val.size or not _in_memory(val, group):
        return None
    steps = strides(val.shape, val.dtype.itemsize)
    start = sum([x * y for x, y in zip(begin, steps, strict=True)])
    return val, dot.Window(start, shape, tuple([steps[a] if a >= 0 else 0 for a in axes]))


def _in_memory(val: Val, group: Graph) -> bool:
    """Whether a value lies in memory whoever reads it: what is given, results of kernels."""
    node = val.node
    while node is not None and node.group is group and node.primitive.name == "reshape":
        node = node.ins[0].node
    # Nodes that others were expanded to are in no group.
    return node is None or node.group not in (group, None) or type(node.rule) is low.Kernel


def turn_results(graph: Graph) -> bool:
    """Let products write where a transpose that leaves their columns in place would put them;
    whether there was any. Every product of the graph is one of the library or no product."""
    uses: dict[Val, int] = {}
    for val in (*graph.outs, *[v for node in graph.nodes for v in node.ins]):
        uses[val] = uses.get(val, 0) + 1
    places: dict[Val, int] = {}  # result of a product -> the product's place
    dead: set[int] = set()
    for place, node in enumerate(graph.nodes):
        if node.primitive.name == "dot_general" and type(node.rule) is low.Kernel:
            places[node.outs[0]] = place
        at = places.get(node.ins[0]) if node.primitive.name == "transpose" else None
        if at is None or uses[node.ins[0]] > 1:
            continue
        order, maker = tuple(node.params["permutation"]), graph.nodes[at]
        if order[-1] != len(order) - 1:
            continue
        made = Node(
            maker.primitive, {**maker.params, "transposed": order}, maker.ins, node.outs,
            maker.rule, maker.effects, maker.source,
        )  # fmt: skip
        if not _is_claimed(made):
            continue
        node.outs[0].node = graph.nodes[at] = made
        dead.add(place)
    graph.nodes = [node for place, node in enumerate(graph.nodes) if place not in dead]
    return bool(dead)


def steps(build: Compilation, node: Node) -> list[Step]:
    """The steps of a node with a `Kernel` or `Host` rule (or that no loop can hold)."""
    if type(node.rule) is low.Kernel and all(v.size for v in (*node.ins, *node.outs)):
        product = node.rule.name == "dot_general"
        key = _key(node) if product else None
        known = build.specials.get(key) if product else None
        if known is not None:
            reads = dot.operands(build, node)
            return [replace(known, reads=reads, writes=list(node.outs))]
        generator = kernels.generator(node.rule.name)
        found = generator(build, node) if generator is not None else None
        if found is not None:
            if product and len(found) == 1 and _repeats(found[0], node):
                build.specials[key] = found[0]
            return found
    return [build.host(node)]
