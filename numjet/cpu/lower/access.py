"""How a pointwise node reads its operands and what an element costs: its rule, run once, tells.

`access(node)` runs the rule on fresh loop variables with readers that record the indices asked for.
Used by `fuse` (which node can run in whose loop) and `lower`. What would break it: a rule whose
reads depend on anything but the index and the params.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base.record import record
from numjet.core.memo import Memo, remembered
from numjet.cpu.graph.nodes import Node, Val
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import Buffer, Cast, Op, Select
from numjet.cpu.math import FUNCTIONS

# A map from an operand's axes to the reader's: the axis whose index it takes, None for "always 0".
# OTHER stands for any index that is not such a projection.
AxisMap = tuple
OTHER = "other"

# Rough cost of an operation on one element, an addition being 1.
WEIGHTS = {
    "div": 4, "rem": 8, "hypot": 8, "nextafter": 4,
    **{name: function.weight for name, function in FUNCTIONS.items()},
}  # fmt: skip


class KernelEmitter(ExprEmitter):
    """The emitter rules receive while kernels are built."""

    def index_const(self, value: int) -> Index:
        """A constant index."""
        return Index.of(value)


@record(slots=True)
class Access:
    """maps[k]: how operand k is read (None: not at all); reads[k]: at how many places; cost: of
    the rest."""

    maps: list[Any]
    reads: list[int]
    cost: int
    moves: bool  # nothing is computed: one operand's element (or none) is handed through


class _Recorder:
    """Stands for one operand; remembers the indices at which it is read."""

    __slots__ = ("shape", "dtype", "seen", "emitter", "buffer")

    def __init__(self, val: Val, emitter: ExprEmitter, number: int) -> None:
        self.shape, self.dtype, self.emitter = val.shape, val.dtype, emitter
        self.seen: dict[tuple, None] = {}
        self.buffer = Buffer(f"x{number}", val.dtype, val.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, *index: Any) -> Any:
        if not self.shape:
            index = ()
        at = tuple([Index.of(i) for i in index])
        self.seen[at] = None
        return self.emitter.load(self.buffer, at)


def loop_vars(shape: tuple[int, ...]) -> list[Index]:
    """One fresh loop variable an axis, as indices (0 for axes of extent 1)."""
    return [Index.of(LoopVar(f"i{k}", n)) for k, n in enumerate(shape)]


def _projection(at: tuple, axis_of: dict[Any, int]) -> Any:
    out: list[int | None] = []
    for i in at:
        if not i.terms:
            if i.const:
                return OTHER
            out.append(None)
        elif len(i.terms) == 1 and i.terms[0][1] == 1 and i.const == 0 and i.terms[0][0] in axis_of:
            out.append(axis_of[i.terms[0][0]])
        else:
            return OTHER
    return tuple(out)


_elementwise_costs: dict[Any, int] = Memo("costs of elementwise operations")


def _weigh(emitter: ExprEmitter) -> int:
    cost = 0
    for expr in emitter._made.values():
        if type(expr) is Op:
            cost += WEIGHTS.get(expr.name, 1)
        elif type(expr) is Select or (type(expr) is Cast and not expr.bits):
            cost += 1
    return cost


# How equal nodes read their operands is found out once.
_known: dict[Any, Access] = Memo("how operations read their operands")


def access(node: Node) -> Access:
    """The Access of a pointwise node whose outputs are not empty."""
    if node.rule.elementwise:
        return _access(node)
    key = (
        node.rule,
        tuple(node.params.items()),
        tuple([(v.shape, v.dtype) for v in node.ins]),
        tuple([(v.shape, v.dtype) for v in node.outs]),
    )
    try:
        found = _known.get(key)
    except TypeError:  # a param without a hash
        return _access(node)
    if found is None:
        found = _known[key] = _access(node)
    return found


def _access(node: Node) -> Access:
    shape = node.outs[0].shape
    elementwise = node.rule.elementwise
    if elementwise:
        key = (node.primitive, node.ins[0].dtype if node.ins else None, node.outs[0].dtype)
        cost = _elementwise_costs.get(key)
        if cost is None:
            cost = _elementwise_costs[key] = max(_run(node, [])[1], 1)
        return _same_place(len(shape), tuple([bool(v.shape) for v in node.ins]), cost)
    index = loop_vars(shape)
    recorders, cost = _run(node, index)
    axis_of = {i.terms[0][0]: k for k, i in enumerate(index) if i.terms}
    maps: list[Any] = []
    reads: list[int] = []
    for recorder in recorders:
        seen = list(recorder.seen)
        reads.append(len(seen))
        if not seen:
            maps.append(None)
        elif len(seen) == 1:
            maps.append(_projection(seen[0], axis_of) if recorder.shape else ())
        else:
            maps.append(OTHER)
    return Access(maps, reads, cost, cost == 0 and sum(reads) <= 1)


def accessed(node: Node, index: list[Index]) -> list[list[tuple]]:
    """At which indices a pointwise node reads each of its operands for its element at `index`."""
    return [list(recorder.seen) for recorder in _run(node, index)[0]]


@remembered("how elementwise operations read their operands", 1024)
def _same_place(rank: int, ranked: tuple[bool, ...], cost: int) -> Access:
    """The Access of an elementwise node; operands without axes have one element."""
    same = every_axis(rank)
    return Access([same if axes else () for axes in ranked], [1] * len(ranked), cost, False)


def _run(node: Node, index: list[Index]) -> tuple[list[_Recorder], int]:
    emitter = KernelEmitter()
    recorders = []
    for k, val in enumerate(node.ins):
        if node.rule.elementwise:
            # Every operand is read at the same place: a single element tells the cost.
            val = Val((), val.dtype)
        recorders.append(_Recorder(val, emitter, k))
    node.rule.fn(emitter, list(index), *recorders, **node.params)
    return recorders, _weigh(emitter)


_every: list[tuple[int, ...]] = []


def every_axis(rank: int) -> tuple[int, ...]:
    """The map of what is read at the reader's own place; one object a rank."""
    while len(_every) <= rank:
        _every.append(tuple(range(len(_every))))
    return _every[rank]


def compose(outer: Any, inner: Any) -> Any:
    """The map of a value read by `inner` from a node that is itself read by `outer`."""
    if outer is inner and outer is not OTHER and outer is every_axis(len(outer)):
        return outer
    if outer is OTHER or inner is OTHER:
        return OTHER
    return tuple([None if a is None else outer[a] for a in inner])


def same_places(found: Any, wanted: AxisMap, shape: tuple[int, ...]) -> bool:
    """Whether two maps agree on every axis longer than 1."""
    if found is OTHER:
        return False
    if found == wanted:
        return True
    return all(n == 1 or f == w for f, w, n in zip(found, wanted, shape, strict=True))


def is_real(dtype: np.dtype) -> bool:
    """Whether the loop IR computes with values of this dtype as single numbers."""
    return dtype.kind in "fiub" or dtype.name in ("bfloat16",)
