"""Rows of deferred operations as jaxprs: whole, or of one block of elements or of rows.

For `deferral`, which compiles them. A row is its form, the codes of its operands, and who holds its
results. What would break it: a row whose operation looks at more than its own elements, or rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.execution import any_size
from numjet.base.record import NamedTuple
from numjet.core.avals import ShapedArray
from numjet.core.deferred import RESULTS
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var

Rows = Sequence[tuple[Any, tuple[int, ...], Any]]


class Cutting(NamedTuple):
    """How rows are run on blocks: their number or that of elements, a block's, the rows without
    them, which inputs are cut, and the jaxpr of one block."""

    size: int
    block: int
    pattern: tuple
    cut: list[bool]
    jaxpr: Callable[[], ClosedJaxpr]


def flat(
    avals: list[ShapedArray], rows: Rows, outs: Sequence[int], results: list
) -> Cutting | None:
    """Elementwise rows: blocks of elements."""
    patterns = [form.pattern for form, _, _ in rows]
    shape = any_size.common_shape([*avals, *results])
    if None in patterns or shape is None:
        return None
    size = math.prod(shape)
    block = any_size.block_of(size)
    cut = [bool(a.shape) for a in avals]
    codes = [(pattern, codes) for pattern, (_, codes, _) in zip(patterns, rows, strict=True)]
    return Cutting(
        size, block, (*cut, *codes), cut, lambda: jaxpr_of(avals, rows, outs, block)
    )  # fmt: skip


def by_rows(
    avals: list[ShapedArray], rows: Rows, outs: Sequence[int], results: list
) -> Cutting | None:
    """Operations on each row of arrays: blocks of rows."""
    if len({a.shape[:1] for a in results}) != 1 or not results[0].shape:
        return None
    if any([form.several for form, _, _ in rows]):
        return None
    (n,) = results[0].shape[:1]
    steps = [
        any_size.Step(form.primitive, form.params, codes, form.avals, i << RESULTS, form.outs[0])
        for i, (form, codes, _) in enumerate(rows)
    ]
    roles = any_size.roles(steps, outs, n)
    if roles is None:
        return None
    steps = [step for step in steps if step.code in roles]
    width = max([step.out.size // n for step in steps if roles[step.code]])
    block = any_size.rows_of(n, width)
    cut = [roles.get(-1 - k, False) for k in range(len(avals))]
    given = [
        (a.dtype, a.weak_type, a.shape[1:] if part else a.shape, part)
        for a, part in zip(avals, cut, strict=True)
    ]

    def jaxpr() -> ClosedJaxpr:
        def new(aval: ShapedArray, part: bool) -> Var:
            return Var(aval.update(shape=(block, *aval.shape[1:])) if part else aval)

        values = {-1 - k: new(a, part) for k, (a, part) in enumerate(zip(avals, cut))}
        ins, eqns = list(values.values()), []
        for step in steps:
            out = values[step.code] = new(step.out, roles[step.code])
            operands = [values[code] for code in step.operands]
            params = any_size.resized(step, roles, block)
            eqns.append(Eqn(operands, [out], step.primitive, params))
        return ClosedJaxpr(Jaxpr([], ins, [values[code] for code in outs], eqns), [])

    patterns = [any_size.pattern(step, roles) for step in steps]
    return Cutting(n, block, (*given, *patterns), cut, jaxpr)


def jaxpr_of(
    avals: list[ShapedArray], rows: Rows, outs: Sequence[int], block: int = 0
) -> ClosedJaxpr:
    """The rows as a jaxpr; of elementwise rows that of one block, if `block` says how long."""

    def new(aval: ShapedArray) -> Var:
        return Var(any_size.as_block(aval, block) if block else aval)

    variables: dict[int, Var] = {-1 - k: new(aval) for k, aval in enumerate(avals)}
    ins = list(variables.values())
    eqns = []
    for i, (form, codes, _) in enumerate(rows):
        results = [new(aval) for aval in form.outs]
        variables.update({i << RESULTS | k: v for k, v in enumerate(results)})
        operands = [variables[code] for code in codes]
        eqns.append(Eqn(operands, results, form.primitive, form.params))
    return ClosedJaxpr(Jaxpr([], ins, [variables[code] for code in outs], eqns), [])
