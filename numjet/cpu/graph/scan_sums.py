"""Sums of products over the rounds of a scan, taken out of it as one product.

`hoist_all(nodes)` replaces each scan in which a carry only gathers products:
    c' = c + dot_general(a, b)        (the product may be transposed)
The scan stacks what a and b were in each round, unless they are rows of what it reads anyway, and a
product over all rounds follows. That is how the gradient of a loop's weights comes about: a matrix
would be read and written in every round. For: `fuse`. Keeps: values, but for the order of the sum.
"""

from __future__ import annotations

import math
from typing import Any

from numjet.base.record import record
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.cpu.graph.nodes import Node, Val

# A round's product contracts at most so many elements; beyond, it is a good product by itself.
SHORT_CONTRACTION = 8
# A shorter loop, or more bytes to stack, is left as it is.
FEWEST_ROUNDS, MOST_BYTES = 4, 1 << 26

_ADDITIONS = ("add", "add_any")


@record(slots=True)
class _Sum:
    """Carry number `carry`: add(carry, transpose?(product))."""

    carry: int
    add: Eqn
    turn: Eqn | None
    product: Eqn

    @property
    def factors(self) -> list[Var]:
        return [a for a in self.product.invars if isinstance(a, Var)]


def hoist_all(nodes: list[Node]) -> list[Node]:
    """The nodes of a graph with such sums taken out of its scans."""
    if all(node.primitive.name != "scan" for node in nodes):
        return nodes
    out: list[Node] = []
    for node in nodes:
        found = hoist(node) if node.primitive.name == "scan" else None
        out += [node] if found is None else found
    return out


def hoist(node: Node) -> list[Node] | None:
    """The nodes that compute what the scan `node` does, or None: nothing is to be taken out."""
    closed = node.params["jaxpr"]
    if node.params["length"] < FEWEST_ROUNDS or not isinstance(closed, ClosedJaxpr):
        return None
    jaxpr = closed.jaxpr
    sums = _sums(jaxpr, node.params)
    if not sums:
        return None
    return _without(node, closed, sums)


def _sums(jaxpr: Jaxpr, params: dict) -> list[_Sum]:
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    uses: dict[Any, int] = {}
    for atom in (*jaxpr.outvars, *[a for eqn in jaxpr.eqns for a in eqn.invars]):
        if type(atom) is Var:
            uses[atom] = uses.get(atom, 0) + 1
    first = params["num_consts"]
    consts = set(jaxpr.invars[:first])
    budget = MOST_BYTES
    found = []
    for k in range(params["num_carry"]):
        carry, out = jaxpr.invars[first + k], jaxpr.outvars[k]
        add = makers.get(out) if type(out) is Var else None
        if add is None or add.primitive.name not in _ADDITIONS or uses.get(carry) != 1:
            continue
        terms = [a for a in add.invars if a is not carry]
        if len(terms) != 1 or uses[out] != 1 or type(terms[0]) is not Var:
            continue
        term, turn = makers.get(terms[0]), None
        if term is not None and term.primitive.name == "transpose" and uses[terms[0]] == 1:
            turn, inner = term, term.invars[0]
            term = makers.get(inner) if type(inner) is Var else None
        if term is None or term.primitive.name != "dot_general" or uses[term.outvars[0]] != 1:
            continue
        bytes_ = _worth(term, params["length"], consts)
        if bytes_ is not None and bytes_ <= budget:
            budget -= bytes_
            found.append(_Sum(k, add, turn, term))
    return found


def _worth(product: Eqn, length: int, consts: set) -> int | None:
    """The bytes that taking a product out stacks at most; None where it gains nothing."""
    atoms, out = product.invars, product.outvars[0].aval
    if any(type(a) is not Var or a in consts for a in atoms):
        return None
    if any(a.aval.dtype != out.dtype for a in atoms) or out.dtype.kind != "f":
        return None
    sizes = [math.prod(a.aval.shape) for a in atoms]
    over = product.params["dimension_numbers"][0][0]
    contracted = math.prod([atoms[0].aval.shape[d] for d in over])
    if contracted > SHORT_CONTRACTION or math.prod(out.shape) <= max(sizes):
        return None
    return length * sum(sizes) * out.dtype.itemsize


def _without(node: Node, closed: ClosedJaxpr, sums: list[_Sum]) -> list[Node]:
    """The scan without the sums, and the products behind it."""
    jaxpr, params = closed.jaxpr, node.params
    length, first, carries = params["length"], params["num_consts"], params["num_carry"]
    gone = {s.carry for s in sums}
    dropped = {id(e) for s in sums for e in (s.add, s.turn, s.product) if e is not None}
    left = [k for k in range(carries) if k not in gone]
    stacks: dict[Var, Val] = dict(
        zip(jaxpr.invars[first + carries :], node.ins[first + carries :], strict=True)
    )
    extra: list[Var] = []
    for s in sums:
        for atom in s.factors:
            if atom not in stacks:
                stacks[atom] = Val.of(ShapedArray((length, *atom.aval.shape), atom.aval.dtype))
                extra.append(atom)
    body = jaxpr.replace(
        invars=[v for k, v in enumerate(jaxpr.invars) if k - first not in gone],
        eqns=[e for e in jaxpr.eqns if id(e) not in dropped],
        outvars=[
            *[jaxpr.outvars[k] for k in left], *jaxpr.outvars[carries:], *extra
        ],
    )  # fmt: skip
    nodes = [node.instead(
        [v for k, v in enumerate(node.ins) if k - first not in gone],
        [*[node.outs[k] for k in left], *node.outs[carries:], *[stacks[v] for v in extra]],
        {**params, "jaxpr": ClosedJaxpr(body, closed.consts), "num_carry": len(left)},
    )]  # fmt: skip
    for s in sums:
        (lc, rc), (lb, rb) = s.product.params["dimension_numbers"]
        over = (0, *[d + 1 for d in lc]), (0, *[d + 1 for d in rc])
        batch = tuple([d + 1 for d in lb]), tuple([d + 1 for d in rb])
        changes = {**s.product.params, "dimension_numbers": (over, batch)}
        value = _append(nodes, s.product, [stacks[a] for a in s.factors], changes)
        if s.turn is not None:
            value = _append(nodes, s.turn, [value], s.turn.params)
        start, out = node.ins[first + s.carry], node.outs[s.carry]
        _append(nodes, s.add, [start, value], s.add.params, out)
    for made in nodes:
        for out in made.outs:
            out.node = made
    return nodes


def _append(
    nodes: list[Node], eqn: Eqn, ins: list[Val], params: dict, out: Val | None = None
) -> Val:
    out = Val.of(eqn.outvars[0].aval) if out is None else out
    rule = eqn.primitive.loops
    nodes.append(Node(eqn.primitive, params, ins, [out], rule, eqn.effects, eqn.source))
    return out
