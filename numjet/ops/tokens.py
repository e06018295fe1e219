"""Tokens, and what keeps a value from being dropped: create_token, after_all, dce_sink.

For `lax`. Programs here run in the order of their effects, so that a token is an empty array that
nobody reads.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array, as_array
from numjet.core.avals import ShapedArray
from numjet.core.effects import Effect
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive
from numjet.ops.composed import composed

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
