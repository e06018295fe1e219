"""Equations on arrays without elements, written so that nothing is computed for them.

Kernels have no form for them: each would be a call of Python, in a loop one a round. Used by
`nodes.flatten`. What would break it: a reduction whose result over no elements is not one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import lowering as low
from numjet.core.dtypes import KeyDType
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, full, zeros

_SUMS = ("conv_general_dilated", "dot_general")


def rule_of(primitive: Primitive, params: dict, ins: Sequence[Any], outs: Sequence[Any]) -> Any:
    """The lowering of an operation on operands of which some are empty; None where its own will
    do. ins: Vals; outs: avals."""
    rule = primitive.loops
    if type(rule) is low.Region or primitive.effects:
        return None
    if any([type(v.aval.dtype) is KeyDType for v in ins if v.aval is not None]):
        return None
    if not any([math.prod(out.shape) for out in outs]):
        if type(rule) is low.Pointwise:
            return None  # never made
        return low.Expand(lambda *args, **params: [zeros(out) for out in outs])
    out = outs[0]
    if primitive.reference and (type(rule) is low.Reduce or primitive.name in _SUMS):
        operands = [np.zeros(v.shape, v.dtype) for v in ins]
        value = np.asarray(primitive.reference(*operands, **params)).flat[0]
        return low.Expand(lambda *args, **params: full(out.shape, value, out.dtype, out.weak_type))
    if primitive.name == "pad":
        return low.Expand(lambda x, value, **params: broadcast_in_dim(value, out.shape, ()))
    if primitive.name == "dynamic_update_slice":
        return low.Expand(lambda x, update, *starts, **params: x)
    return None
