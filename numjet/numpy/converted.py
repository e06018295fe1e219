"""Shortcuts for concrete operands of other dtypes than the operation runs in: `x / 2` of integers.

`fast` takes operands that reach a primitive unchanged. Most others are converted to one dtype
before. `Conversions` finds that dtype by tracing the complete function once for operands of these
dtypes, and makes a function that converts and then calls the primitive's NumPy function. For:
`fast`. What would break it: a complete function that does something else for some values or sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import (
    _QUIET as QUIET,
    LARGE,
    _enter as quiet_enter,
    _leave as quiet_leave,
    is_dear,
    numpy_function,
)
from numjet.core.jaxpr import Jaxpr
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive
from numjet.native.tables import INT_LIMIT
from numjet.numpy.promote import converts_plainly
from numjet.transforms.stage import stage

# How a number that does not fit its dtype shows, which is converted with the user's settings
# (warnings as errors, np.errstate) where it becomes a constant.
REFUSED = (OverflowError, RuntimeWarning, FloatingPointError)
_MOVES = ("broadcast_in_dim", "reshape")


class Conversions:
    """What `slow`, which ends in `record`, does to concrete operands of several dtypes."""

    def __init__(self, record: Primitive, slow: Callable) -> None:
        self.record, self.slow = record, slow
        # The flags, and (dtype, weak type, whether there are axes) or a number's type of each
        # operand -> dtype
        self.dtypes: dict[tuple, Any] = Memo(f"dtypes of mixed operands: {record.name}")
        self.runs: dict[Any, tuple] = Memo(f"function of mixed operands: {record.name}")

    def get(self, key: Any) -> Any:
        """The function for operands that `learn` was told of; False where there is none, None where
        it was not told, or not under these flags."""
        found = self.runs.get(key)
        return found[1] if found is not None and found[0] == config.state[0] else None

    def learn(self, key: Any, kinds: Sequence[Any], args: tuple, out: ArrayImpl) -> None:
        """`slow` gave `out`. kinds: the operands' avals or, of numbers, types."""
        if config.state[0] >= 0:
            self.runs[key] = config.state[0], self._made(kinds, args, out.aval) or False

    def _made(self, kinds: Sequence[Any], args: tuple, aval: ShapedArray) -> Callable | None:
        arrays = [k for k in kinds if type(k) is ShapedArray]
        if aval.size >= LARGE or not all(map(is_common, kinds)):
            return None
        signature = config.state[0], *[
            (k.dtype, k.weak_type, bool(k.shape)) if type(k) is ShapedArray else k for k in kinds
        ]  # fmt: skip
        if signature not in self.dtypes:
            self.dtypes[signature] = self._dtype(kinds, args)
        dtype = self.dtypes[signature]
        if dtype is None or is_dear(self.record, (ShapedArray(aval.shape, dtype),)):
            return None
        assert self.record.reference is not None
        function = numpy_function(self.record.reference, dtype)
        shapes = {k.shape for k in arrays if k.shape}
        if len(shapes) > 1 and not isinstance(function, np.ufunc):
            return None
        whole = bool(aval.shape) and aval.dtype.isbuiltin == 1
        steps = [step_to(k, dtype) for k in kinds]
        first, second = steps[0], steps[1] if len(steps) > 1 else None
        slow = self.slow

        physical = dtypes.physical(aval.dtype)

        def unary(x: Any) -> Any:
            token = quiet_enter(QUIET)
            try:
                value = function(first(x))
            finally:
                quiet_leave(token)
            return ArrayImpl(value if whole else np.asarray(value, physical), aval)

        def binary(x: Any, y: Any) -> Any:
            token = quiet_enter(QUIET)
            try:
                value = function(first(x), second(y))  # type: ignore[misc]
            except REFUSED:
                return slow(x, y)
            finally:
                quiet_leave(token)
            return ArrayImpl(value if whole else np.asarray(value, physical), aval)

        return unary if second is None else binary

    def _dtype(self, kinds: Sequence[Any], args: tuple) -> Any:
        """The dtype to which operands of these kinds are converted; None where that is not all."""

        def whole(*given: Any) -> list[Any]:
            left = iter(given)
            return [self.slow(*[
                next(left) if type(k) is ShapedArray else x
                for k, x in zip(kinds, args, strict=True)
            ])]  # fmt: skip

        jaxpr, _ = stage(whole, [
            ShapedArray((2,) if k.shape else (), k.dtype, k.weak_type)
            for k in kinds if type(k) is ShapedArray
        ])  # fmt: skip
        dtype = self._converted_to(jaxpr)
        if dtype is None:
            return None
        for k in kinds:
            if type(k) is not ShapedArray and dtype.itemsize < 4:
                return None  # by way of the default type, which may round twice or wrap
            if type(k) is ShapedArray and not converts_plainly(k.dtype, dtype):
                return None
        return dtype

    def _converted_to(self, jaxpr: Jaxpr) -> Any:
        if not jaxpr.eqns:
            return None
        *before, last = jaxpr.eqns
        found = {v.aval.dtype for v in last.invars}
        if last.primitive is not self.record or last.params or len(found) != 1:
            return None
        if list(jaxpr.outvars) != list(last.outvars):
            return None
        dtype = found.pop()
        for eqn in before:
            if eqn.primitive.name == "convert_element_type":
                if eqn.params["new_dtype"] != dtype or eqn.invars[0] not in jaxpr.invars:
                    return None
            elif eqn.primitive.name not in _MOVES:
                return None
        return dtype


def is_common(kind: Any) -> bool:
    """Whether an operand of this kind may be converted here: no keys, no narrow or 64-bit types."""
    if type(kind) is not ShapedArray:
        return kind in (int, float, bool, complex)
    dtype = kind.dtype
    usual = type(dtype) is not dtypes.KeyDType and dtype != dtypes.float0 and not kind.narrow
    return usual and dtype not in dtypes.WIDE and kind.placed is None


def step_to(kind: Any, dtype: Any) -> Callable[[Any], Any]:
    """From an operand to its NumPy value of this dtype."""
    if type(kind) is ShapedArray:
        if kind.dtype is dtype:
            return lambda x: x._value
        return lambda x: x._value.astype(dtype)
    made = dtype.type
    if kind is not int:
        return lambda x: made(x)

    def of_int(x: int) -> Any:
        if not -INT_LIMIT <= x < INT_LIMIT:
            raise OverflowError
        return made(x)

    return of_int
