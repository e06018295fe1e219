"""Loops, branches and calls that take references, as equations of `make_jaxpr` do.

Bound to references (`core.ref_equations.OverRefs`) they are made anew by the public functions, with
functions that close over the references and evaluate the jaxprs. Loaded with `numjet.ref`. What
would break it: a primitive that holds jaxprs and is neither here nor free of references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr, eval_closed
from numjet.core.primitive import Primitive
from numjet.core.ref_equations import does
from numjet.core.refs import Ref, RefUse
from numjet.core.trace import EVAL, aval_of, current_trace
from numjet.ops.bodies import split
from numjet.ops.cond import choose, cond_p
from numjet.ops.jit_call import jit_p
from numjet.ops.scan import scan, scan_p
from numjet.ops.while_loop import while_loop, while_p
from numjet.transforms.remat import remat_p
from numjet.transforms.stage import hoist_consts, stage


def _apart(args: Sequence[Any]) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """The arguments that are no references, and what puts values of theirs among these."""

    def whole(values: Sequence[Any]) -> list[Any]:
        others = iter(values)
        return [x if isinstance(x, Ref) else next(others) for x in args]

    return [x for x in args if not isinstance(x, Ref)], whole


def _call(primitive: Primitive, args: tuple, params: dict) -> list[Any]:
    """A call of a jaxpr: outside of traces its equations run one by one."""
    given, whole = _apart(args)
    closed: ClosedJaxpr = params["jaxpr"]
    if current_trace() is EVAL:
        return eval_closed(closed, *args)
    use = RefUse(reads=True)
    jaxpr, consts = stage(
        lambda *values: eval_closed(closed, *whole(values)), [aval_of(x) for x in given],
        params.get("name", ""), use=use,
    )  # fmt: skip
    params = {**params, "jaxpr": hoist_consts(jaxpr)}
    outs = primitive.bind(*consts, *given, *use.values(), **params)
    n = len(outs) - len(use.written)
    for ref, value in zip(use.written, outs[n:], strict=True):
        ref.put_back(value)
    return outs[:n]


@does(jit_p)
def _jit(*args: Any, **params: Any) -> list[Any]:
    return _call(jit_p, args, params)


@does(remat_p)
def _remat(*args: Any, **params: Any) -> list[Any]:
    return _call(remat_p, args, params)


@does(scan_p)
def _scan(*args: Any, **params: Any) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    consts, carry, xs = split(args, params["num_consts"], params["num_carry"])
    n = len(carry)

    def body(carry: list, row: list) -> tuple[list, list]:
        outs = eval_closed(closed, *consts, *carry, *row)
        return outs[:n], outs[n:]

    length, reverse, unroll = params["length"], params["reverse"], params["unroll"]
    last, ys = scan(body, carry, xs, length, reverse, unroll)
    return [*last, *ys]


@does(while_p)
def _while(*args: Any, **params: Any) -> list[Any]:
    counts = params["cond_nconsts"], params["body_nconsts"]
    ask, consts, carry = split(args, *counts)
    return while_loop(
        lambda carry: eval_closed(params["cond_jaxpr"], *ask, *carry)[0],
        lambda carry: eval_closed(params["body_jaxpr"], *consts, *carry),
        carry,
    )


@does(cond_p)
def _cond(*args: Any, **params: Any) -> list[Any]:
    given, whole = _apart(args[1:])

    def branch(closed: ClosedJaxpr) -> Callable:
        return lambda *values: eval_closed(closed, *whole(values))

    branches = [branch(closed) for closed in params["branches"]]
    return choose("switch", args[0], branches, tuple(given))
