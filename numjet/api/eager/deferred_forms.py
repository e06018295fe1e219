"""What may be deferred: the forms of operations, and whether memory keeps its values until then.

`api.eager.deferral` asks `form_of` of each operation that it meets, and `fixed` of operands'
memory. A form is all of a row of a tape but which operands it has; equal operations share one, so
that rows are told apart by numbers. What would break it: an operation that calls Python, has an
effect or raises when it runs (it would do so at another line), and memory that somebody writes to
meanwhile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.execution import any_size
from numjet.core import dtypes
from numjet.core.avals import ShapedArray
from numjet.core.deferred import RESULTS, FormRecord, Held
from numjet.core.jaxpr import Jaxpr, subjaxprs
from numjet.core.lowering import Host, Kernel, Pointwise, Reduce
from numjet.core.memo import WeighedMemo
from numjet.core.primitive import REGISTRY, Primitive
from numjet.ops.jit_call import jit_p

MASK = (1 << RESULTS) - 1

_KERNELS = frozenset({"dot_general"})
# What the transposes of gathers are: written down where an operand waits.
_ADDED = frozenset({"scatter-add"})
# What NumPy gives as views: a result that is read is one of what it is a part of, as it would be if
# the operation had run at once.
_VIEWS = frozenset("reshape squeeze broadcast_in_dim name stop_gradient".split())
_PARTS = frozenset("transpose slice rev".split())

_numbers = itertools.count()
FORM_BYTES = 1 << 24


def _form_bytes(form: Any) -> int:
    equations = form.params["jaxpr"].jaxpr.eqns if form and form.primitive is jit_p else ()
    return 1024 * (1 + len(equations))


_forms = WeighedMemo("forms of deferred operations", 16384, FORM_BYTES, _form_bytes)


class Form(FormRecord):
    """An operation on operands of given avals: all of a row but which operands."""

    __slots__ = (
        "name", "primitive", "params", "avals", "outs", "several", "view", "alias",
        "numpys", "pattern",
    )  # fmt: skip

    def __init__(self, primitive: Primitive, params: dict, avals: tuple, out: Any) -> None:
        self.number, self.begins = next(_numbers), False
        self.primitive, self.params, self.avals = primitive, params, avals
        self.several = primitive.multiple_results
        self.outs: Sequence[ShapedArray] = tuple(out) if self.several else (out,)
        self.view = primitive.name in _VIEWS
        part = primitive.name in _PARTS
        self.alias = self.view or part
        self.name: str = params["name"] if primitive is jit_p else primitive.name
        # The form without the size, of elementwise operations.
        self.pattern: Any = None
        if any_size.is_elementwise(primitive, avals, out):
            kinds = [(a.dtype, a.weak_type, bool(a.shape)) for a in (*avals, out)]
            self.pattern = (primitive, *kinds, *params.items())
        # What NumPy does as well where it runs at once.
        self.numpys = (
            part
            or self.view and primitive.name != "broadcast_in_dim"
            or primitive.name in _ADDED
        )


# One operation: its form, its operands' codes, and who holds its results (`parts`).
Row = tuple[Form, tuple[int, ...], tuple[Held, ...]]


def form_of(primitive: Primitive, params: dict, avals: tuple, out: Any) -> Any:
    """The form of an operation, or None where it is not to be deferred."""
    try:
        key = (primitive, avals, *params.items())
        found = _forms.get(key, key)
    except TypeError:  # params that do not hash
        return None
    if found is key:
        found = None
        _check_sizes(primitive, params, out)
        if _deferrable(primitive, params, avals, out):
            found = Form(primitive, dict(params), avals, out)
        _forms[key] = found
    return found


def _check_sizes(primitive: Primitive, params: dict, out: Any) -> None:
    """Raise MemoryError where a value is made that no memory holds: now, not when it is read."""
    made = list(out) if primitive.multiple_results else [out]
    if primitive is jit_p:
        made += [v.aval for eqn in params["jaxpr"].jaxpr.eqns for v in eqn.outvars]
    for aval in made:
        dtypes.check_elements(math.prod(getattr(aval, "shape", ())), primitive.name)


def _deferrable(primitive: Primitive, params: dict, avals: tuple, out: Any) -> bool:
    if primitive is jit_p:  # of `api.eager.large`
        return len(out) <= MASK and _native(params["jaxpr"].jaxpr)
    if primitive.evaluate is not None or primitive.effects or primitive.multiple_results:
        return False
    if primitive.expansion is not None or primitive.collective or primitive.higher_order:
        return False
    rule = primitive.loops
    if type(rule) is Kernel:
        if rule.name not in _KERNELS and primitive.name not in _ADDED:
            return False
    elif type(rule) not in (Pointwise, Reduce):
        return False
    return all([
        isinstance(a.dtype, np.dtype) and a.dtype.kind in "biufcV" and not a.narrow
        and a.dtype != dtypes.float0
        for a in (*avals, out)
    ])  # fmt: skip


def _native(jaxpr: Jaxpr) -> bool:
    """Whether nothing in a jaxpr calls Python or has an effect."""
    for eqn in jaxpr.eqns:
        primitive = eqn.primitive
        if eqn.effects or primitive.expansion is not None or type(primitive.loops) is Host:
            return False
        if not all(map(_native, subjaxprs(eqn.params))):
            return False
    return True


def row_by_row(value: np.ndarray, aval: ShapedArray) -> tuple[np.ndarray, ShapedArray, Any]:
    """A value that is repeated or turned as one that is not, and the form that gives it back; the
    value itself and None where it lies otherwise."""
    name, params = "", {}
    if 0 in value.strides:
        once = [slice(0, 1) if s == 0 else slice(None) for s in value.strides]
        core = value[tuple(once)]
        name = "broadcast_in_dim"
        params = {"shape": aval.shape, "broadcast_dimensions": tuple(range(aval.ndim))}
    else:
        order = sorted(range(aval.ndim), key=lambda i: -value.strides[i])
        core = value.transpose(order)
        name, params = "transpose", {"permutation": tuple(map(order.index, range(aval.ndim)))}
    if core.flags.c_contiguous:
        inner = aval.update(shape=core.shape)
        form = form_of(REGISTRY[name], params, (inner,), aval)
        if form is not None:
            return core, inner, form
    return value, aval, None
