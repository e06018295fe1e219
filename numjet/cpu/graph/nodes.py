"""The compiler's view of a jaxpr: a flat list of nodes over values, calls inlined.

`flatten` turns a jaxpr into nodes in order; `fuse` groups them, `control` builds regions from the
ones that hold jaxprs. A `Val` is written once; where it lies in memory (`place`) is decided by
`control` and `buffers`. What would break it: a region primitive that carries a jaxpr to inline
under a param other than `jaxpr`, `call_jaxpr` or `fun_jaxpr`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, unclosed
from numjet.core.primitive import Primitive
from numjet.cpu.graph import convolutions, degenerate, gathers

LOOPS = ("while", "cond", "scan", "repeat")


class Val:
    """One value of the program: physical dtype and shape, and (later) where it lies.

    `node` makes it: None of what is given and of views, which are no node's results. `literal` is
    the NumPy scalar of a constant known at compile time. `base` is the value whose memory this one
    is a view of, `start` bytes in, plus stride * counter for each of `terms`.
    """

    __slots__ = (
        "shape",
        "dtype",
        "size",
        "nbytes",
        "node",
        "literal",
        "place",
        "base",
        "start",
        "terms",
        "number",
        "aval",
    )

    def __init__(self, shape: tuple[int, ...], dtype: Any, node: Node | None = None) -> None:
        self.aval: Any = None
        self.shape = shape
        self.dtype = dtypes.physical(dtype)
        self.size = math.prod(shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.node = node
        self.literal: Any = None
        self.place: Any = None
        self.base: Val | None = None
        self.start = 0
        self.terms: tuple = ()
        self.number = -1

    @staticmethod
    def of(aval: Any, node: Node | None = None) -> Val:
        """The value of an aval."""
        val = Val(aval.shape, aval.dtype, node)
        val.aval = aval
        return val

    def root(self) -> tuple[Val, int, tuple]:
        """The value that owns the memory, and where in it this one starts: bytes, terms."""
        val, start, terms = self, 0, self.terms
        while val.base is not None:
            start += val.start
            val = val.base
            if val.terms:
                terms = terms + val.terms
        return val, start, terms

    def view(self, shape: tuple[int, ...], start: int = 0, terms: tuple = ()) -> Val:
        """A value that is part of this one's memory, and no node's result: a row of it, say."""
        part = Val(shape, self.dtype)
        part.base, part.start, part.terms, part.number = self, start, terms, self.number
        return part

    def __repr__(self) -> str:
        text = f"{dtypes.short_name(self.dtype)}[{','.join(map(str, self.shape))}]"
        if self.literal is not None:
            return f"{self.literal}:{text}"
        return f"%{self.number}:{text}"


class Node:
    """`outs = primitive[params] ins`; `rule` says how it is lowered."""

    __slots__ = ("primitive", "params", "ins", "outs", "rule", "effects", "source", "group", "note")

    def __init__(
        self,
        primitive: Primitive,
        params: dict,
        ins: list[Val],
        outs: list[Val],
        rule: Any,
        effects: frozenset,
        source: Any,
    ) -> None:
        self.primitive, self.params, self.ins, self.outs = primitive, params, ins, outs
        self.rule, self.effects, self.source = rule, effects, source
        self.group: Any = None
        self.note: Any = None

    def instead(
        self, ins: list[Val], outs: list[Val], params: dict | None = None,
        primitive: Primitive | None = None, rule: Any = None,
    ) -> Node:  # fmt: skip
        """A node that does the work of this one or a part of it, with its effects and its line, and
        makes `outs`. What is not given is as here; of another primitive the rule is its own."""
        if primitive is None:
            primitive, rule = self.primitive, rule or self.rule
        params = self.params if params is None else params
        rule = rule or primitive.loops
        made = Node(primitive, params, ins, outs, rule, self.effects, self.source)
        for out in outs:
            out.node = made
        return made

    def __repr__(self) -> str:
        outs = " ".join(map(repr, self.outs))
        return f"{outs} = {self.primitive.name} {' '.join(map(repr, self.ins))}"


class Graph:
    """Nodes in order; `args` are given from outside, `outs` are wanted."""

    __slots__ = ("nodes", "args", "outs", "seen")

    def __init__(self, args: Sequence[Val]) -> None:
        self.nodes: list[Node] = []
        self.args = list(args)
        self.outs: list[Val] = []
        self.seen: dict[Any, list[Val]] = {}  # what an equation computes -> its results


def literal(value: Any, aval: Any) -> Val:
    """The Val of a constant without dimensions."""
    val = Val.of(aval)
    value = np.asarray(getattr(value, "_value", value))
    val.literal = value.astype(val.dtype).reshape(())[()]
    return val


def called(params: dict) -> ClosedJaxpr | Jaxpr | None:
    """The jaxpr of a call-like equation (jit, custom_jvp, remat), or None."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        found = params.get(key)
        if isinstance(found, ClosedJaxpr | Jaxpr):
            return found
    return None


def flatten(
    jaxpr: Jaxpr,
    consts: Sequence[Val],
    args: Sequence[Val],
    constant: Callable[[Any], Val],
    expand: Callable[[Node], ClosedJaxpr],
) -> Graph:
    """The graph of `jaxpr` with calls inlined and dead nodes dropped.

    `constant(array)` gives the Val of an array known at compile time (consts of inlined jaxprs);
    `expand(node)` traces the jaxpr of a node with an `Expand` rule.
    """
    graph = Graph([*consts, *args])
    graph.outs = _inline(graph, jaxpr, consts, args, constant, expand)
    drop_dead(graph)
    return graph


def _inline(
    graph: Graph,
    jaxpr: Jaxpr,
    consts: Sequence[Val],
    args: Sequence[Val],
    constant: Callable,
    expand: Callable,
) -> list[Val]:
    env: dict[Any, Val] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Val:
        return literal(atom.value, atom.aval) if type(atom) is Literal else env[atom]

    nodes = graph.nodes
    for eqn in jaxpr.eqns:
        ins = [read(atom) for atom in eqn.invars]
        rule = eqn.primitive.loops
        if not all([v.size for v in ins]):
            if eqn.primitive.name == "concatenate" and any([v.size for v in ins]):
                ins = [v for v in ins if v.size]
                if len(ins) == 1:
                    env[eqn.outvars[0]] = ins[0]
                    continue
            else:
                results = [v.aval for v in eqn.outvars]
                rule = degenerate.rule_of(eqn.primitive, eqn.params, ins, results) or rule
        elif ins and 1 in ins[0].shape:
            results = [v.aval for v in eqn.outvars]
            rule = degenerate.of_one(eqn.primitive, eqn.params, ins, results) or rule
        if eqn.primitive.name in degenerate.RUNNING and type(rule) is not low.Expand:
            rule = (
                degenerate.few_steps(eqn.primitive, eqn.params, ins[0].shape)
                or degenerate.of_complex(eqn.primitive, eqn.params, ins[0].dtype)
                or rule
            )
        if eqn.primitive.name == "reduce_prod" and type(rule) is low.Reduce:
            shape, dtype = ins[0].shape, ins[0].dtype
            rule = degenerate.long_product(eqn.primitive, eqn.params, shape, dtype) or rule
        if eqn.primitive.name == "gather" and rule is eqn.primitive.loops:
            ins, rule = gathers.along_one_axis(eqn.params, ins) or (ins, rule)
        if eqn.primitive.name == "conv_general_dilated" and rule is eqn.primitive.loops:
            rule = convolutions.rule_of(eqn.params, ins, eqn.outvars[0].aval) or rule
        inner = called(eqn.params) if type(rule) is low.Region and rule.name not in LOOPS else None
        node = Node(eqn.primitive, eqn.params, ins, [], rule, eqn.effects, eqn.source)
        if type(rule) is low.Expand:
            node.outs = [Val.of(v.aval) for v in eqn.outvars]
            inner = expand(node)
        if inner is not None:
            body, held = unclosed(inner)
            if len(body.invars) <= len(ins):
                # Calls whose rules carry extra operands in front (residuals) keep them last.
                inner_consts = [constant(c) for c in held]
                seen = graph.seen
                if eqn.params.get("prevent_cse"):
                    # checkpoint asks for values to be computed again, not kept from the first time.
                    graph.seen = {}
                outs = _inline(
                    graph, body, inner_consts, ins[len(ins) - len(body.invars) :], constant, expand
                )
                graph.seen = seen
                env.update(zip(eqn.outvars, outs, strict=True))
                continue
        known = _fold(eqn, ins)
        if known is not None:
            env[eqn.outvars[0]] = known
            continue
        key = _key(eqn, ins, rule)
        if key is not None:
            before = graph.seen.get(key)
            if before is not None:
                env.update(zip(eqn.outvars, before, strict=True))
                continue
            graph.seen[key] = node.outs
        for var in eqn.outvars:
            val = Val.of(var.aval, node)
            if type(rule) is not low.Expand:
                node.outs.append(val)
            env[var] = val
        if type(rule) is low.Expand:
            node.outs = [env[var] for var in eqn.outvars]
        nodes.append(node)
    return [read(atom) for atom in jaxpr.outvars]


def _key(eqn: Any, ins: Sequence[Val], rule: Any) -> Any:
    """What equal equations share, so that they are computed once; None where that is not known."""
    if type(rule) not in (low.Pointwise, low.Reduce, low.Kernel) or eqn.effects:
        return None
    atoms = [
        v if v.literal is None else (v.literal.dtype, v.literal.tobytes(), v.shape) for v in ins
    ]
    avals = tuple([v.aval for v in eqn.outvars])  # weak types matter to who calls back into Python
    key = (eqn.primitive, tuple(atoms), tuple(eqn.params.items()), avals)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _fold(eqn: Any, ins: Sequence[Val]) -> Val | None:
    """The literal that an elementwise equation of literals gives, or the case a literal selects."""
    primitive = eqn.primitive
    if primitive.name == "select_n" and ins and ins[0].literal is not None:
        return ins[1 + int(ins[0].literal)]
    if not primitive.elementwise or not ins or any(v.literal is None for v in ins):
        return None
    aval = eqn.outvars[0].aval
    if aval.shape or type(aval.dtype) is dtypes.KeyDType or primitive.reference is None:
        return None
    with np.errstate(all="ignore"):
        value = primitive.reference(*[np.asarray(v.literal) for v in ins], **eqn.params)
    return literal(np.asarray(value), aval)


def _prune(node: Node, live: set[Val]) -> None:
    """Take out results nobody reads, with what is computed for them alone."""
    prune = node.primitive.prune
    if prune is None:
        return
    used = tuple([v in live for v in node.outs])
    found = None if all(used) else prune(node.params, used)
    if found is not None:
        node.params, ins, outs = found
        node.ins = [node.ins[i] for i in ins]
        node.outs = [node.outs[i] for i in outs]


def drop_dead(graph: Graph) -> None:
    """Drop nodes whose results nobody reads, and number the values."""
    live = {v for v in graph.outs}
    kept = []
    for node in reversed(graph.nodes):
        outs = node.outs
        if (outs[0] in live if len(outs) == 1 else any([v in live for v in outs])) or (
            node.effects
        ):
            _prune(node, live)
            for val in node.ins:
                live.add(val)
            kept.append(node)
    kept.reverse()
    graph.nodes = kept
    number = 0
    for vals in (graph.args, *[node.outs for node in kept]):
        for val in vals:
            val.number = number
            number += 1


def is_reshape(node: Node) -> bool:
    """Whether the node's result has the bytes of its operand in the same order."""
    name = node.primitive.name
    if (
        len(node.ins) != 1
        or node.ins[0].size != node.outs[0].size
        or node.ins[0].dtype != node.outs[0].dtype
    ):
        return False
    if name == "reshape":
        return node.params.get("dimensions") is None
    if name == "transpose":
        order = [a for a in node.params["permutation"] if node.ins[0].shape[a] != 1]
        return order == sorted(order)
    return name in ("squeeze", "expand_dims", "broadcast_in_dim")
