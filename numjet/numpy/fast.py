"""The shortcut for small concrete operations: no trace, no promotion, one NumPy call.

`fast_unary` and `fast_binary` wrap a complete function (`slow`). What it did to operands of given
avals is remembered when the operands went into one primitive unchanged; the next call with the same
avals runs that primitive's NumPy function directly. Tracing, debug_nans and debug_infs always take
the complete way. Any condition added to `slow` that depends on values must not use this.

NumPy warns of overflows and invalid values where IEEE's result is what is wanted. The complete way
turns that off around each call, which costs as much as a small addition; here the warnings that
NumPy attributes to this module are filtered instead, and where a user turns them into errors, the
complete way is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import _QUIET as QUIET, _enter as quiet_enter, _leave as quiet_leave
from numjet.core.primitive import REGISTRY
from numjet.core.trace import EVAL, current_trace

CHECKS = config.numeric_checks
# Bound once: a global found in this module is cheaper than an attribute of another.
ndarray, new = np.ndarray, object.__new__
_PYTHON_SCALARS = (int, float, bool, complex)


def eager() -> bool:
    """Whether a concrete shortcut may be taken: nothing traces, nothing is checked."""
    return current_trace() is EVAL and not CHECKS[0]


def fix(value: Any, aval: ShapedArray) -> np.ndarray:
    """A NumPy result as the array `aval` promises (a NumPy scalar, or another dtype, came)."""
    return np.asarray(value, dtypes.physical(aval.dtype))


warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"numjet\.numpy\.fast")
# How a user's settings (warnings as errors, np.errstate) or a scalar that does not fit show.
_REFUSED = (OverflowError, RuntimeWarning, FloatingPointError)


# References that distinguish integers, which never get here.
_OF_FLOATS: dict[Any, Callable] = {REGISTRY["div"].reference: np.divide}


def numpy_function(reference: Callable, dtype: Any) -> Callable:
    """What `reference` calls for operands of `dtype`, without its detour for 16-bit floats."""
    plain = _OF_FLOATS.get(reference) or getattr(reference, "plain", None)
    return plain if plain is not None and dtype.itemsize > 2 else reference


def fast_unary(primitive: str, slow: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`slow`, with a shortcut for avals that it hands to `primitive` unchanged."""
    known: dict[ShapedArray, tuple] = {}
    reference = REGISTRY[primitive].reference
    assert reference is not None

    def call(x: Any, /) -> Any:
        if type(x) is ArrayImpl:
            found = known.get(x.aval)
            if found is not None and current_trace() is EVAL and not CHECKS[0]:
                aval, function = found
                try:
                    value = function(x._value)
                except _REFUSED:
                    return slow(x)
                if type(value) is not ndarray or value.dtype is not aval.dtype:
                    value = fix(value, aval)
                out = new(ArrayImpl)
                out._value = value
                out.aval = aval
                return out
            out = slow(x)
            if found is None and type(out) is ArrayImpl and eager() and _direct(reference, x, out):
                known[x.aval] = (out.aval, numpy_function(reference, x.aval.dtype))
            return out
        return slow(x)

    return call


def _direct(reference: Callable, x: ArrayImpl, out: ArrayImpl) -> bool:
    """Whether `out` has the dtype that `reference` gives for x's, so that nothing was converted."""
    if type(x.aval.dtype) is dtypes.KeyDType or x.aval.shape != out.aval.shape:
        return False
    probe = np.ones((1,), x.aval.dtype)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(reference(probe)).dtype == out.aval.dtype
    except (TypeError, ValueError):
        return False


def fast_binary(primitive: str, slow: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`slow`, with a shortcut for operands of one dtype (or a Python scalar that takes it)."""
    # Operands of one aval, the commonest case, have a table of their own: one lookup by identity.
    same: dict[ShapedArray, tuple] = {}
    known: dict[Any, tuple] = {}
    reference = REGISTRY[primitive].reference
    assert reference is not None

    def call(x: Any, y: Any, /) -> Any:
        key: Any
        if type(x) is ArrayImpl:
            if type(y) is ArrayImpl:
                key = x.aval
                if key is y.aval:
                    found = same.get(key)
                else:
                    key = (key, y.aval)
                    found = known.get(key)
            else:
                key = (x.aval, type(y))
                found = known.get(key)
        elif type(y) is ArrayImpl:
            key = (type(x), y.aval)
            found = known.get(key)
        else:
            return slow(x, y)
        if found is not None and current_trace() is EVAL and not CHECKS[0]:
            aval, function = found
            try:
                if type(y) is not ArrayImpl:
                    value = function(x._value, x.aval.dtype.type(y))
                elif type(x) is not ArrayImpl:
                    value = function(y.aval.dtype.type(x), y._value)
                else:
                    value = function(x._value, y._value)
            except _REFUSED:
                return slow(x, y)
            if type(value) is not ndarray or value.dtype is not aval.dtype:
                value = fix(value, aval)
            out = new(ArrayImpl)
            out._value = value
            out.aval = aval
            return out
        out = slow(x, y)
        if found is None and type(out) is ArrayImpl and eager():
            pair = key if type(key) is tuple else (key, key)
            if _same_dtype(pair, reference, out):
                dtype = (pair[0] if type(pair[0]) is ShapedArray else pair[1]).dtype
                entry = (out.aval, numpy_function(reference, dtype))
                (known if type(key) is tuple else same)[key] = entry
        return out

    return call


def _same_dtype(key: tuple, reference: Callable, out: ArrayImpl) -> bool:
    """Whether operands of these avals reach the primitive without conversion or broadcasting."""
    x, y = key
    both = type(x) is ShapedArray and type(y) is ShapedArray
    array = x if type(x) is ShapedArray else y
    if type(array.dtype) is dtypes.KeyDType or array.dtype == dtypes.float0:
        return False
    if both:
        if x.dtype != y.dtype:
            return False
        if (
            x.shape != y.shape
            and x.shape
            and y.shape
            and not (
                isinstance(reference, np.ufunc) and config.numpy_rank_promotion.value == "allow"
            )
        ):
            return False
    else:
        scalar = y if array is x else x
        if scalar not in _PYTHON_SCALARS or array.weak_type or array.dtype.kind not in "fiuc":
            return False
        if not _takes(array.dtype, scalar):
            return False
    probe = np.ones((1,), array.dtype)
    try:
        with np.errstate(all="ignore"):
            # Promotion to floats or from booleans shows as a dtype that the operands do not have.
            got = np.asarray(reference(probe, probe)).dtype
    except (TypeError, ValueError):
        return False
    return bool(got == out.aval.dtype)


def _takes(dtype: np.dtype, scalar: type) -> bool:
    """Whether an array of `dtype` keeps it when it meets a Python scalar of this type."""
    if scalar in (bool, int):
        return True
    return dtype.kind == "c" or (scalar is float and dtype.kind == "f")


__all__ = [
    "CHECKS",
    "QUIET",
    "eager",
    "fast_binary",
    "fast_unary",
    "fix",
    "quiet_enter",
    "quiet_leave",
]
