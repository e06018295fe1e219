"""Tokens that order nothing, values kept from being dropped, and arrangements under names of their
own: create_token, after_all, dce_sink, stage, and the primitives split, stack, tile and unstack.

For `lax`. Programs here run in the order of their effects, so that a token is an empty array that
nobody reads. The functions split, stack, tile and unstack record slices and concatenations, which
kernels look through; their primitives are for interpreters that write jaxprs themselves.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.effects import Effect
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive
from numjet.core.structural import reduce_sum
from numjet.ops.arrange import split, stack, tile, unstack
from numjet.ops.composed import composed
from numjet.ops.shape import concatenate, reshape

_TOKEN = ShapedArray((0,), dtypes.bool_)


def _token(*_: Any) -> Any:
    return as_array(np.zeros((0,), np.bool_))


create_token_p = composed("create_token", _token, differentiable=False)
after_all_p = composed("after_all", _token, differentiable=False)


def create_token(_: Any = None) -> Any:
    """A token: something that `after_all` takes. The result is an array of no booleans.

    >>> from numjet import lax
    >>> lax.create_token().shape
    (0,)
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """One token made of several: it depends on all of them.

    operands: tokens, as of `create_token`; at least one may be left out. Result: a token. Raises
    TypeError for what is no token.

    >>> from numjet import lax
    >>> lax.after_all(lax.create_token(), lax.create_token()).shape
    (0,)
    """
    for x in operands:
        if not isinstance(x, Array) or x.aval.update(weak_type=False) is not _TOKEN:
            raise TypeError(f"Arguments to after_all must be tokens, got {x!r}.")
    return after_all_p.bind(*operands)


# ------------------------------------------------------------------ dce_sink
class _Kept(Effect):
    """Keeps an equation without results alive."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoDCE"


_KEPT = _Kept()

dce_sink_p = Primitive(
    "dce_sink",
    multiple_results=True,
    abstract=lambda *_, **__: [],
    reference=lambda *_, **__: [],
    jvp=lambda primals, tangents, **params: (dce_sink_p.bind(*primals, **params), []),
    batch=lambda axis, args, dims, **params: (dce_sink_p.bind(*args, **params), []),
    loops=Expand(lambda *_, **__: []),
    effects=frozenset({_KEPT}),
)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep what computes `val` (a pytree of arrays) in the jaxpr although nobody reads it.

    prevent_mlir_dce is taken for JAX's sake: machine code computes what results need alone.

    >>> import numjet as nj
    >>> from numjet import lax
    >>> nj.make_jaxpr(lambda x: lax.dce_sink(x + 1))(1).eqns[0].primitive.name
    'add'
    """
    for leaf in tree.tree_leaves(val):
        dce_sink_p.bind(as_array(leaf), prevent_mlir_dce=prevent_mlir_dce)


# ------------------------------------------------------------------ names for interpreters
empty_p = composed(
    "empty2",
    lambda *, dtype, memory_space, weak_type: ArrayImpl(
        np.zeros((), dtype), ShapedArray((), dtype, weak_type)
    ),
    differentiable=False,
)
stage_p = composed("stage", lambda x: x)

def _beside(operands: Any, *, axis: int, **params: Any) -> tuple[dict, int]:
    """The mapped axis before the others."""
    return {"axis": axis + 1, **params}, 0


split_p = composed(
    "split",
    split,
    several=True,
    transposed=lambda cts, _, *, sizes, axis: [concatenate(cts, axis)],
    batched=_beside,
)
stack_p = composed(
    "stack",
    lambda *xs, axis: stack(xs, axis),
    transposed=lambda cts, *_, axis: unstack_p.bind(*cts, axis=axis),
    # An axis before the mapped one stays there.
    batched=lambda operands, *, axis: ({"axis": axis and axis + 1}, 0 if axis else 1),
)


def _untile(cts: list, x: Any, *, reps: tuple) -> list:
    """The sum of the copies."""
    pairs = [n for pair in zip(reps, x.aval.shape, strict=True) for n in pair]
    return [reduce_sum(reshape(cts[0], pairs), tuple(range(0, len(pairs), 2)))]


tile_p = composed(
    "tile",
    tile,
    transposed=_untile,
    batched=lambda operands, *, reps: ({"reps": (1, *reps)}, 0),
)
unstack_p = composed(
    "unstack",
    unstack,
    several=True,
    transposed=lambda cts, _, *, axis: [stack_p.bind(*cts, axis=axis)],
    batched=_beside,
)


def stage(x: Any, /) -> Any:
    """x, a number or an array, as an Array, or as a value of the function being traced.

    Within a traced function a constant so becomes part of the program. Result: x's shape and dtype.
    Raises TypeError for other objects.

    >>> from numjet import lax
    >>> lax.stage(1.5)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return as_array(x) if isinstance(x, Array) else stage_p.bind(as_array(x))
