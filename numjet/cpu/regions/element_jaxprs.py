"""What the jaxpr of a loop says of its carries, before anything is built: for `regions.element`.

`suits(node)` is a cheap look at whether a loop updates elements of arrays and does nothing that
needs whole ones; `carried` tells what a carry becomes, `step_of` and `bounds` what is known of
counters, `ordered` puts readers of an array before what updates it. What would break it: a region
primitive whose operands stand in another order than `ops` states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.core import lowering as low
from numjet.core.jaxpr import Eqn, Jaxpr, Literal, Var, subjaxprs, unclosed
from numjet.cpu.fusion.added_parts import FEWEST
from numjet.cpu.graph.nodes import Graph, Node, Val, called
from numjet.cpu.lower.update import writes_parts
from numjet.cpu.regions.scalar import NotScalar, native

# Arrays up to this size are their elements, each a value; windows up to it are written one by one.
FEW = 16
SUMS = ("add_any", "add")
SPARSE = ("dynamic_update_slice", "scatter-add", "pad")
_CHOSEN = ("scan", "while", "cond")
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def suits(node: Node) -> bool:
    """Whether every large carry of a loop is an update of itself, and what else there is may be
    single elements."""
    params, name = node.params, node.rule.name
    if name == "scan":
        length, count = params["length"], params["num_carry"]
        if not length or any([v.size > FEW * length for v in node.outs[count:]]):
            return False
        bodies = [params["jaxpr"]]
    elif name == "while":
        count = len(node.outs)
        bodies = [params["body_jaxpr"], params["cond_jaxpr"]]
    else:
        return False
    if not all([native(v) and v.size for v in node.outs]):
        return False
    found = [
        carried(name, params, k, v.size <= FEW)
        for k, v in enumerate(node.outs[:count])
        if v.size > 1
    ]
    return True in found and None not in found and all([_plain(unclosed(x)[0]) for x in bodies])


def carried(name: str, params: dict, k: int, small: bool) -> bool | None:
    """Whether carry k of a loop is updated in place; None where it is replaced and not small."""
    scanned = name == "scan"
    body = unclosed(params["jaxpr" if scanned else "body_jaxpr"])[0]
    found = _origin(body, body.outvars[k])
    if found is None or found[0] != params["num_consts" if scanned else "body_nconsts"] + k:
        return False if small else None
    return found[1]


def adds_parts(node: Node) -> bool:
    """Whether a round adds a part to a large carry, where the others of its elements stay: each
    element by itself would go through all rounds."""
    name, params = node.rule.name, node.params
    count = params["num_carry"] if name == "scan" else len(node.outs)
    body = unclosed(params["jaxpr" if name == "scan" else "body_jaxpr"])[0]
    for k, v in enumerate(node.outs[:count]):
        if v.size >= FEWEST and type(body.outvars[k]) is not Literal:
            made = _maker(body, body.outvars[k])
            summing = made is not None and made.primitive.name in SUMS
            if summing and carried(name, params, k, False):
                return True
    return False


def _maker(jaxpr: Jaxpr, var: Any) -> Eqn | None:
    for eqn in reversed(jaxpr.eqns):
        if any([v is var for v in eqn.outvars]):
            return eqn
    return None


def sparse(value: Any, maker: Callable[[Any], Any]) -> bool:
    """Whether `value` is zeros to which elements were added, as what reads an element gives in
    reverse; `maker` finds the equation or node that computes a value."""
    made = maker(value)
    if made is None:
        return False
    if type(made) is Eqn and type(made.primitive.loops) is low.Region:
        return _sparse_in_call(made, value)
    ins = made.invars if type(made) is Eqn else made.ins
    if made.primitive.name in SUMS:
        return all([sparse(x, maker) for x in ins])
    if made.primitive.name == "pad":
        few = ins[0].aval.size <= FEW
        if not few or min([min(edges) for edges in made.params["padding_config"]]) < 0:
            return False
        fill = ins[1]
    elif made.primitive.name in ("dynamic_update_slice", "scatter-add"):
        base = maker(ins[0])
        if base is None or base.primitive.name != "broadcast_in_dim":
            return False
        (fill,) = base.invars if type(base) is Eqn else base.ins
    else:
        return False
    known = fill.value if type(fill) is Literal else getattr(fill, "literal", None)
    return known is not None and known == 0


def _sparse_in_call(eqn: Eqn, value: Var) -> bool:
    """`sparse` of a result of a call, which the graph of a body has inlined."""
    rule = eqn.primitive.loops
    inner = called(eqn.params)
    if type(rule) is not low.Region or rule.name in _CHOSEN or inner is None:
        return False
    body = unclosed(inner)[0]
    out = body.outvars[next(k for k, v in enumerate(eqn.outvars) if v is value)]
    return sparse(out, lambda v: _maker(body, v))


def summed(ins: Sequence[Any], maker: Callable[[Any], Any]) -> int | None:
    """Which operand of a sum is an array to which the other adds elements, if one is. (That other
    elements get + 0 is left out: only -0 would not stay what it is.)"""
    for side in (0, 1):
        if sparse(ins[1 - side], maker):
            return side
    return None


def chosen(ins: Sequence[Any], maker: Callable[[Any], Any]) -> tuple[int, list[Any]] | None:
    """Of a choice between an array and an update of it: which case is the array as it was, and the
    updates, the last one first; else None."""
    test, *cases = ins
    if len(cases) != 2 or test.aval is None or test.aval.size != 1 or test.aval.dtype != np.bool_:
        return None
    for side in (0, 1):
        updates: list[Any] = []
        value = cases[1 - side]
        while value is not cases[side]:
            made = maker(value)
            if made is None or not writes_parts(made):
                break
            updates.append(made)
            value = (made.invars if type(made) is Eqn else made.ins)[0]
        else:
            return (side, updates) if updates else None
    return None


class Choices:
    """The updates of a graph that a choice takes or leaves: `guards` has what decides by the
    update's id (and which answer leaves the array as it was), `old` that answer by the choice's."""

    def __init__(self, graph: Graph) -> None:
        self.guards: dict[Node, tuple[Val, int]] = {}
        self.old: dict[Node, int] = {}
        uses: dict[Val, int] | None = None
        for node in graph.nodes:
            if node.primitive.name != "select_n" or node.outs[0].size == 1:
                continue
            found = chosen(node.ins, maker_of)
            if found is None:
                continue
            if uses is None:
                uses = {}
                for val in (*graph.outs, *[v for x in graph.nodes for v in x.ins]):
                    uses[val] = uses.get(val, 0) + 1
            if all([uses[update.outs[0]] == 1 for update in found[1]]):
                self.old[node] = found[0]
                for update in found[1]:
                    self.guards[update] = node.ins[0], found[0]


def _origin(jaxpr: Jaxpr, var: Any) -> tuple[int, bool] | None:
    """(the argument that a result is, but for updates in place; whether there are any), or None."""
    updated = False
    while type(var) is not Literal:
        for k, v in enumerate(jaxpr.invars):
            if v is var:
                return k, updated
        eqn = _maker(jaxpr, var)
        if eqn is None:
            return None
        k = next(k for k, v in enumerate(eqn.outvars) if v is var)
        if writes_parts(eqn):
            var, updated = eqn.invars[0], True
            continue
        if eqn.primitive.name == "select_n":
            choice = chosen(eqn.invars, lambda v: _maker(jaxpr, v))
            if choice is None:
                return None
            var, updated = eqn.invars[1 + choice[0]], True
            continue
        if eqn.primitive.name in SUMS:
            side = summed(eqn.invars, lambda v: _maker(jaxpr, v))
            if side is None:
                return None
            var, updated = eqn.invars[side], True
            continue
        if type(eqn.primitive.loops) is not low.Region:
            return None
        found = _through(eqn.primitive.loops.name, eqn.params, k, len(eqn.invars))
        if found is None:
            return None
        var, updated = eqn.invars[found[0]], updated or found[1]
    return None


def _through(name: str, params: dict, k: int, count: int) -> tuple[int, bool] | None:
    """(the operand of a region that its result k is, but for updates in place; whether any)."""
    if name in ("scan", "while"):
        if name == "scan":
            first, carries = params["num_consts"], params["num_carry"]
            body, held = unclosed(params["jaxpr"])[0], first
        else:
            held = params["body_nconsts"]
            first = params["cond_nconsts"] + held
            body, carries = unclosed(params["body_jaxpr"])[0], count - first
        if k >= carries:
            return None
        found = _origin(body, body.outvars[k])
        return None if found is None or found[0] != held + k else (first + k, found[1])
    if name == "cond":
        branches = [unclosed(b)[0] for b in params["branches"]]
        known = [f for f in [_origin(b, b.outvars[k]) for b in branches] if f is not None]
        if len(known) < len(branches) or len({f[0] for f in known}) > 1:
            return None
        return 1 + known[0][0], any([f[1] for f in known])
    inner = called(params)
    if inner is None:
        return None
    body = unclosed(inner)[0]
    found = _origin(body, body.outvars[k])
    return None if found is None else (count - len(body.invars) + found[0], found[1])


def _plain(jaxpr: Jaxpr) -> bool:
    """Whether nothing in a body needs whole arrays."""
    for eqn in jaxpr.eqns:
        rule = type(eqn.primitive.loops)
        if rule is low.Kernel or rule is low.Host:
            if not writes_parts(eqn):
                return False
            updates = eqn.invars[1 if eqn.primitive.name == "dynamic_update_slice" else 2]
            if updates.aval.size > FEW:
                return False
        elif rule is low.Reduce and eqn.invars[0].aval.size > FEW:
            return False
        for inner in subjaxprs(eqn.params):
            if not _plain(unclosed(inner)[0]):
                return False
    return True


def step_of(body: Jaxpr, position: int, k: int) -> int | None:
    """By how much result k of a body exceeds its argument `position`, where that is known."""
    own = body.invars[position]
    for eqn in reversed(body.eqns):
        if eqn.outvars[0] is body.outvars[k]:
            name, (x, *more) = eqn.primitive.name, eqn.invars
            if name == "add" and more[0] is own:
                x, more = own, [x]
            if name in ("add", "sub") and x is own and type(more[0]) is Literal:
                step = int(more[0].value)
                return step if name == "add" else -step
            return None
    return None


def counting(val: Val) -> tuple[int, int] | None:
    """(first, step) of integers that count, as jnp.arange makes them, or None."""
    node, base = val.node, val.base
    if node is None and base is not None and base.shape == val.shape and not val.terms:
        return counting(base)  # what a loop's body has of a value from outside
    if node is None or len(val.shape) != 1 or val.dtype.kind not in "iu":
        return None
    name = node.primitive.name
    if name == "iota":
        found = 0, 1
    elif name in ("add", "sub", "mul"):
        x, y = node.ins
        if x.literal is not None and name != "sub":
            x, y = y, x
        known = counting(x) if y.literal is not None else None
        if known is None:
            return None
        other = int(y.literal) if name != "sub" else -int(y.literal)
        first, step = known
        found = (first * other, step * other) if name == "mul" else (first + other, step)
    else:
        return None
    ends = found[0], found[0] + found[1] * (val.size - 1)
    info = np.iinfo(val.dtype)
    return found if info.min <= min(ends) and max(ends) <= info.max else None


def bounds(test: Jaxpr, position: int) -> list[tuple[str, Any]]:
    """The comparisons of argument `position` with other values that hold wherever `test` does."""
    own, found = test.invars[position], []
    pending = list(test.outvars)
    while pending:
        var = pending.pop()
        for eqn in test.eqns:
            if eqn.outvars[0] is not var:
                continue
            name = eqn.primitive.name
            if name == "and":
                pending += eqn.invars
            elif name in _MIRRORED and own in eqn.invars:
                left, right = eqn.invars
                found.append((name, right) if left is own else (_MIRRORED[name], left))
    return found


def _consumed(node: Node) -> list[Val]:
    """The operands whose memory `node` takes over."""
    if writes_parts(node):
        return [] if sparse(node.outs[0], maker_of) else node.ins[:1]
    if node.primitive.name in SUMS and node.outs[0].size > 1:
        side = summed(node.ins, maker_of)
        return [] if side is None else [node.ins[side]]
    if type(node.rule) is not low.Region:
        return []
    found = []
    for k, out in enumerate(node.outs):
        if out.size > 1:
            source = _through(node.rule.name, node.params, k, len(node.ins))
            if source is not None and source[1]:
                found.append(node.ins[source[0]])
    return found


def maker_of(val: Val) -> Node | None:
    return val.node


def ordered(nodes: list[Node], choices: Choices) -> list[Node]:
    """The nodes so that what reads an array stands before what updates it."""
    maker = {v: k for k, node in enumerate(nodes) for v in node.outs}
    readers: dict[Val, list[int]] = {}
    for k, node in enumerate(nodes):
        for val in node.ins:
            readers.setdefault(val, []).append(k)
    waits: list[list[int]] = []
    late = False
    for k, node in enumerate(nodes):
        first = [maker[v] for v in node.ins if v in maker]
        for val in _consumed(node):
            first += [r for r in readers[val] if r != k and nodes[r] not in choices.old]
        guard = choices.guards.get(node)
        if guard is not None and guard[0] in maker:
            first.append(maker[guard[0]])
        waits.append(first)
        late = late or any([r > k for r in first])
    if not late:
        return nodes
    order: list[Node] = []
    state = [0] * len(nodes)  # 1: waits for others, 2: has its place

    def place(k: int) -> None:
        if state[k] == 1:
            raise NotScalar  # two updates of one version
        if not state[k]:
            state[k] = 1
            for r in waits[k]:
                place(r)
            state[k] = 2
            order.append(nodes[k])

    for k in range(len(nodes)):
        place(k)
    return order
