"""Primitives that are made of others: one function gives every rule.

For operations that need a name of their own in jaxprs - so that interpreters can give them rules,
and printed programs say what was meant - and whose composition is as fast as a kernel would be.
Used by the other files of `ops`. The function must be pure, and of arrays alone but for parameters.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import eval_closed
from numjet.core.lowering import Expand
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import instantiate
from numjet.core.trace import aval_of
from numjet.transforms.batch import all_to_front, batch_call
from numjet.transforms.calls import call_transpose
from numjet.transforms.jvp import jvp_call
from numjet.transforms.stage import stage_closed


def composed(name: str, function: Callable, *, several: bool = False,
             differentiable: bool = True, transposed: Callable | None = None,
             batched: Callable | None = None) -> Primitive:
    """The primitive `name` that means `function(*arrays, **params)`: an array, or a sequence of
    arrays where it has `several` results.

    Its shapes are those of the function traced; its derivative, its transpose and its form under
    vmap are those of what the function does. Of a linear one the transpose may be given:
    transposed(cotangent or cotangents, *operands, **params) -> cotangents; so may batched(operands,
    axes, **params), which says what the axes of the result are.
    """

    def flat(params: dict) -> Callable[..., list]:
        if several:
            return lambda *xs: list(function(*xs, **params))
        return lambda *xs: [function(*xs, **params)]

    def abstract(*avals: ShapedArray, **params: Any) -> Any:
        outs = stage_closed(flat(params), avals, name).out_avals
        return outs if several else outs[0]

    def jvp(primals: tuple, tangents: tuple, /, **params: Any) -> tuple:
        if transposed is not None:
            outs = primitive.bind(*primals, **params)
            if all([type(t) is Zero for t in tangents]):
                zeros = [Zero(x.aval.tangent()) for x in (outs if several else [outs])]
                return outs, zeros if several else zeros[0]
            return outs, primitive.bind(*[instantiate(t) for t in tangents], **params)
        outs, out_tangents, _ = jvp_call(flat(params), primals, tangents)
        return (outs, out_tangents) if several else (outs[0], out_tangents[0])

    def batch(mapped: Any, args: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> tuple:
        if batched is not None:
            operands = all_to_front(args, dims, mapped.size)
            shifted, dim = batched(operands, **params)
            out = primitive.bind(*operands, **shifted)
            return out, [dim] * len(out) if several else dim
        outs, out_dims = batch_call(flat(params), mapped, args, dims)
        return (outs, out_dims) if several else (outs[0], out_dims[0])

    def transpose(cts: Any, *args: Any, **params: Any) -> list:
        if transposed is not None:
            given = [instantiate(ct) for ct in cts] if several else [instantiate(cts)]
            found = transposed(given, *args, **params)
            return [ct if type(x) is Linear else None for x, ct in zip(args, found, strict=True)]
        avals = [x.aval if type(x) is Linear else aval_of(x) for x in args]
        closed = stage_closed(flat(params), avals, name)
        run = lambda jaxpr, values: eval_closed(jaxpr, *values)  # noqa: E731
        return call_transpose(run, closed, cts if several else [cts], args)

    primitive = Primitive(
        name,
        multiple_results=several,
        abstract=abstract,
        evaluate=(lambda *xs, **params: list(function(*xs, **params))) if several else function,
        jvp=jvp if differentiable else None,
        transpose=transpose if differentiable else None,
        differentiable=differentiable,
        batch=batch,
        loops=Expand(function),
    )
    return primitive
