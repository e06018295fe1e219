"""composite: a function whose equation carries a name, a version and attributes.

For `lax`. The equation means what the function does: the compiler inlines it, derivatives and vmap
are the function's; interpreters of jaxprs find the name.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numjet.base import tree
from numjet.base.errors import UnexpectedTracerError
from numjet.core.array import as_array
from numjet.core.debug_info import Tracing
from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.lowering import Region
from numjet.core.primitive import Primitive
from numjet.core.trace import Tracer, set_trace
from numjet.transforms.batch import batch_call
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import hoist_consts, stage
from numjet.transforms.varying import along


def _run(jaxpr: ClosedJaxpr) -> Callable[..., list]:
    return lambda *xs: eval_closed(jaxpr, *xs)


def _jvp(primals: tuple, tangents: tuple, *, jaxpr: ClosedJaxpr, **_: Any) -> tuple:
    outs, out_tangents, _trace = jvp_call(_run(jaxpr), primals, tangents)
    return outs, out_tangents


def _partial_eval(trace: Any, args: tuple, params: dict) -> list:
    with set_trace(trace):
        return _run(params["jaxpr"])(*args)


composite_p = Primitive(
    "composite",
    multiple_results=True,
    higher_order=True,
    abstract=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    evaluate=lambda *args, jaxpr, **_: _run(jaxpr)(*args),
    jvp=_jvp,
    batch=lambda axis, args, dims, *, jaxpr, **_: batch_call(
        _run(jaxpr), axis, args, dims),
    partial_eval=_partial_eval,
    loops=Region("call"),
    effects=lambda *, jaxpr, **_: jaxpr.effects,
)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """`decomposition` as one equation of the program, called `name`.

    decomposition: a function of pytrees of arrays. name: for a backend that knows a better way.
    version: an integer, part of the equation. The result takes positional arguments (pytrees of
    arrays); keyword arguments are attributes of the equation and must not be traced
    (UnexpectedTracerError); those that are None are left out. Differentiation and `vmap` see the
    function itself.

    >>> from numjet import lax
    >>> twice = lax.composite(lambda x: x * 2.0, "my.twice")
    >>> print(twice(3.0))
    6.0
    """

    @functools.wraps(decomposition)
    def call(*args: Any, **attributes: Any) -> Any:
        for key, value in attributes.items():
            if any(isinstance(x, Tracer) for x in tree.tree_leaves(value)):
                raise UnexpectedTracerError(
                    f"composite {name!r}: the attribute {key!r} is traced. Attributes are fixed "
                    "when the function is traced; pass arrays as positional arguments.")
        leaves, treedef = tree.tree_flatten(args)
        leaves = [as_array(x) for x in leaves]
        found: list = []

        def flat(*xs: Any) -> list:
            out = decomposition(*tree.tree_unflatten(treedef, xs), **attributes)
            outs, structure = tree.tree_flatten(out)
            found.append(structure)
            return [as_array(x) for x in outs]

        traced = Tracing(decomposition, "composite", treedef, by_name=False)
        jaxpr, consts = stage(flat, [x.aval for x in leaves], name, traced, flows=along(leaves))
        jaxpr.debug = traced.told(found[0])
        outs = composite_p.bind(
            *consts, *leaves,
            attributes=tuple([(k, v) for k, v in attributes.items() if v is not None]),
            jaxpr=hoist_consts(jaxpr), name=name, version=version)
        return tree.tree_unflatten(found[0], outs)

    return call
