"""Reduction by any associative function: halves of the array are combined, log₂ n times.

Used by `ops.reduce` for computations that are no known reduction, and for several operands at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import tree
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import eval_closed
from numjet.core.structural import broadcast_in_dim
from numjet.ops.bodies import stage_tree
from numjet.ops.shape import cut, reshape
from numjet.transforms.batch import Axis, batch_jaxpr


def fold(
    computation: Callable, treedef: Any, xs: list[Any], starts: list[Any], axes: Sequence[int]
) -> list[Any]:
    """Leaves of the reduction over `axes` of arrays `xs` of one shape.

    computation(a, b) takes and returns a tree of scalars; `starts` (scalars of the dtypes of xs)
    come first. Raises ValueError when the computation changes structure, shape or dtype.
    """
    scalars = [ShapedArray((), x.aval.dtype) for x in xs]
    in_tree = tree.tree_structure((tree.tree_unflatten(treedef, range(len(xs))),) * 2)
    closed, consts, out_tree = stage_tree(computation, in_tree, [*scalars, *scalars], "reduce")
    if out_tree != treedef or [a.strong() for a in closed.out_avals] != scalars:
        raise ValueError(
            "reduce: the computation must return what it takes, scalars "
            f"{', '.join(a.str_short() for a in scalars)} in the structure {treedef}, got "
            f"{', '.join(a.str_short() for a in closed.out_avals)} in {out_tree}."
        )

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        shape, lanes = a[0].aval.shape, a[0].aval.size
        mapped = [False] * len(consts) + [True] * (2 * len(xs))
        wide, _ = batch_jaxpr(closed, Axis(lanes), mapped, True)
        flat = [reshape(x, (lanes,)) for x in (*a, *b)]
        outs = eval_closed(wide, *consts, *flat)
        return [reshape(x, shape) for x in outs]

    shape = tuple([n for i, n in enumerate(xs[0].aval.shape) if i not in axes])
    first = [broadcast_in_dim(s, shape, ()) if shape else s for s in starts]
    if xs[0].aval.size == 0:
        return first
    for axis in axes:
        xs = _along(combine, xs, axis)
    return combine(first, [reshape(x, shape) for x in xs])


def _along(combine: Callable, xs: list[Any], axis: int) -> list[Any]:
    """Arrays of size 1 along `axis`; the order of the operands is kept."""
    rest: list[Any] | None = None
    while (n := xs[0].aval.shape[axis]) > 1:
        half = n // 2
        if n % 2:
            odd = [_rows(x, axis, n - 1, n) for x in xs]
            rest = odd if rest is None else combine(odd, rest)
        # Neighbours are combined, so that the order stays for functions that do not commute.
        pairs = [_pairs(x, axis, half) for x in xs]
        xs = combine([p[0] for p in pairs], [p[1] for p in pairs])
    return xs if rest is None else combine(xs, rest)


def _pairs(x: Any, axis: int, half: int) -> tuple[Any, Any]:
    shape = x.aval.shape
    x = _rows(x, axis, 0, 2 * half)
    x = reshape(x, (*shape[:axis], half, 2, *shape[axis + 1 :]))
    out = (*shape[:axis], half, *shape[axis + 1 :])
    return tuple([reshape(_rows(x, axis + 1, k, k + 1), out) for k in (0, 1)])  # type: ignore[return-value]


def _rows(x: Any, axis: int, start: int, stop: int) -> Any:
    shape = x.aval.shape
    if (start, stop) == (0, shape[axis]):
        return x
    starts, limits = [0] * len(shape), list(shape)
    starts[axis], limits[axis] = start, stop
    return cut(x, starts, limits)
