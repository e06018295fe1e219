"""Concrete evaluation of one primitive: NumPy at once, nothing compiled.

`core.trace` calls it for the outermost trace. Primitives with an `evaluate` rule (jit, loops)
take over themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config, errors
from numjet.base.config import numeric_checks
from numjet.core import dtypes, hooks, narrow
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray
from numjet.core.hooks import Remote, Sharded
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.remote import RemoteArray, kept_home, target
from numjet.core.sharded import ShardedArray, any_sharded

# NumPy keeps its floating-point error mode in a context variable. Setting that directly costs a
# tenth of entering np.errstate for each operation; where the private name is gone, np.errstate does
# the same.
try:
    from numpy._core._ufunc_config import (  # type: ignore[attr-defined]
        _extobj_contextvar,
        _make_extobj,
    )

    _QUIET = _make_extobj(all="ignore")
    _enter = _extobj_contextvar.set
    _leave = _extobj_contextvar.reset
except ImportError:

    def _enter(_: Any) -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def _leave(state: Any) -> None:
        state.__exit__(None, None, None)

    _QUIET = None


_new = object.__new__
_ndarray = np.ndarray


def numpy_function(reference: Callable, dtype: Any) -> Callable:
    """What `reference` calls for operands of `dtype`, without its detours for other types."""
    plain = getattr(reference, "plain", None)
    if plain is None and dtypes.is_floating(dtype):
        plain = getattr(reference, "of_floats", None)
    return plain if plain is not None and dtype.itemsize > 2 else reference


# Loops and branches: operations of their own to `debug_nans`, whose results may be what they were
# given or closed over.
_CONTROL = frozenset(("cond", "scan", "while"))


def evaluate(primitive: Primitive, args: tuple, params: dict) -> Any:
    """Run `primitive` on concrete arrays and return Array(s)."""
    if not params:
        run = primitive.run
        return evaluate_python(primitive, args, params) if run is None else run(*args)
    avals = [x.aval for x in args if type(x) is ArrayImpl]
    if len(avals) != len(args) or primitive.evaluate is not None or primitive.multiple_results:
        return evaluate_python(primitive, args, params)
    key = (*avals, *params.items())
    run = primitive.runs.get(key)
    if run is not None:
        return run(*args)
    out = evaluate_python(primitive, args, params)
    if not primitive.lays_out:  # which it does each time
        remember(primitive.runs, key, lambda: executor(primitive, tuple(avals), params))
    return out


def remember(memo: dict, key: Any, make: Callable[[], Any]) -> None:
    """Keep what is made of executors in `memo`, unless better ones may have come meanwhile: native
    evaluation is installed by another thread, which then empties such memos."""
    before = hooks.executor
    memo[key] = make()
    if hooks.executor is not before:
        memo.pop(key, None)


def evaluate_python(primitive: Primitive, args: tuple, params: dict) -> Any:
    """`evaluate` by Python and NumPy."""
    if Sharded.active and primitive.evaluate is None and (
        any_sharded(args) or primitive.lays_out
    ):
        return Sharded.evaluate(primitive, args, params)
    if Remote.active and primitive.evaluate is None:
        place = target(args, primitive.name)
        if place:
            return Remote.evaluate(primitive, args, params, place)
        if place is not None:
            out = _at_home(primitive, args, params)
            kept_home(out if primitive.multiple_results else [out], args)
            return out
    return _at_home(primitive, args, params)


def _at_home(primitive: Primitive, args: tuple, params: dict) -> Any:
    """Run on the CPU."""
    # Most operations have one or two arrays and no parameters, and were run on such avals before.
    key: Any = None
    if not params:
        if len(args) == 2:
            x, y = args
            if type(x) is ArrayImpl and type(y) is ArrayImpl:
                key = (x.aval, y.aval)
        elif len(args) == 1:
            (x,) = args
            if type(x) is ArrayImpl:
                key = x.aval
        found = primitive.eager.get(key)
        if found is not None:
            aval, function = found
            token = _enter(_QUIET)
            try:
                out = function(x._value) if len(args) == 1 else function(x._value, y._value)
            finally:
                _leave(token)
            if type(out) is _ndarray and out.dtype is aval.dtype and not numeric_checks[0]:
                result = _new(ArrayImpl)
                result._value, result._aval = out, aval
                return result
            return _wrap(primitive, out, aval)
    if DeferredArray in map(type, args):
        later = hooks.defer_again(primitive, args, params)
        if later is not None:
            return later
    if primitive.evaluate is not None:
        for x in args:
            if type(x) is not ArrayImpl and isinstance(x, Array):
                _concrete(primitive, x)  # raises: a tracer that leaked
        out = primitive.evaluate(*args, **params)
        if numeric_checks[0] and primitive.name in _CONTROL:
            for x in out if primitive.multiple_results else [out]:
                if type(x) is ArrayImpl and type(x.aval.dtype) is not dtypes.KeyDType:
                    check_finite(primitive.name, x._value)
        return out
    arrays = [x if type(x) is ArrayImpl else _concrete(primitive, x) for x in args]
    avals = tuple([x.aval for x in arrays])
    out_avals = primitive.out_avals(avals, params)
    large = is_large(avals, out_avals)
    if large:
        for aval in out_avals if type(out_avals) is list else (out_avals,):
            dtypes.check_elements(aval.size, primitive.name)
    if large or DeferredArray in map(type, arrays):
        later = hooks.defer(primitive, arrays, params, avals, out_avals)
        if later is not None:
            return later
    large = large or is_dear(primitive, avals, out_avals)
    if large:
        program = hooks.operation(primitive, avals, params, out_avals)
        if program is not None:
            return _large(primitive, program, arrays, params, out_avals)
    reference = _reference(primitive, avals, out_avals)
    if primitive.name in _PADDED:
        reference = _padded(primitive, avals) or reference
    token = _enter(_QUIET)
    try:
        out = reference(*[x._value for x in arrays], **params)
    finally:
        _leave(token)
    if primitive.multiple_results:
        return [_wrap(primitive, value, aval) for value, aval in zip(out, out_avals, strict=True)]
    result = _wrap(primitive, out, out_avals)
    if key is not None and primitive.elementwise and not large:
        function = numpy_function(reference, arrays[0].aval.dtype)
        primitive.eager[key] = out_avals, function
        if hooks.learn is not None:
            hooks.learn(primitive, key if type(key) is tuple else (key,), function, out_avals)
        elif hooks.long_trace is not None:
            hooks.long_trace()
    return result


def _reference(primitive: Primitive, avals: tuple, out: Any) -> Any:
    """What evaluates `primitive` on the NumPy arrays of operands of these avals."""
    for aval in avals if avals else (out if type(out) is list else (out,)):
        if aval.narrow:
            return narrow.reference(primitive)
        if type(aval.dtype) is dtypes.KeyDType and primitive.name in ("eq", "ne"):
            return _of_keys(primitive)
    if type(out) is ShapedArray and out.narrow:
        return narrow.reference(primitive)
    return primitive.reference


def _of_keys(primitive: Primitive) -> Callable:
    """The reference of `eq` or `ne` for PRNG keys: NumPy compares no plain bytes, so each byte is
    compared."""

    def compare(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        same = np.equal(*[_byte_rows(v) for v in (x, y)]).all(-1)
        return same if primitive.name == "eq" else ~same

    return compare


def _byte_rows(x: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(x).reshape(x.shape)[..., None].view(np.uint8)
    return raw.reshape(*x.shape, x.dtype.itemsize)


def executor(primitive: Primitive, avals: tuple, params: dict) -> Callable:
    """A function of concrete arrays of these avals that evaluates `primitive` (which has no
    `evaluate` rule), for callers that do so often. It does not ask what traces."""
    if not params and primitive.run is not None:
        return primitive.run
    aval = primitive.out_avals(avals, params)

    def complete(*args: Any) -> Any:
        return evaluate_python(primitive, args, params)

    if is_dear(primitive, avals, aval):
        return complete
    if is_large(avals, aval):
        return hooks.planned(primitive, avals, params, aval, False, complete) or complete
    if params and hooks.executor is not None:
        native = hooks.executor(primitive, avals, params, aval)
        if native is not None:
            return native
    reference = _reference(primitive, avals, aval)
    later: Any = None  # made when the first operand waits

    def run(*args: Any) -> Any:
        if DeferredArray in map(type, args):
            nonlocal later
            if later is None:
                later = hooks.planned(primitive, avals, params, aval, True, complete) or complete
            return later(*args)
        token = _enter(_QUIET)
        try:
            out = reference(*[x._value for x in args], **params)
        finally:
            _leave(token)
        return _wrap(primitive, out, aval)

    return run


# What NumPy takes long for (functions that it has no loop for, batches of small matrices): compiled
# from so many elements on.
_DEAR = frozenset(
    "erf_inv digamma polygamma zeta zeta_grad_x igamma igammac igamma_grad_a random_gamma_grad "
    "regularized_incomplete_beta betainc_grad_a betainc_grad_b bessel_i0e bessel_i1e clz top_k lu "
    "eig eigh svd".split()
)
_OF_MATRICES = frozenset("lu eig eigh svd".split())
DEAR = 256

# Of these fewer elements are filled up to so many, and one program runs for every shape: normal
# draws have the same bits with `jit` and without, and SciPy is not loaded for them.
_PADDED = frozenset(("erf_inv",))


# The nanoseconds an element that NumPy's other slow loops take (with vectors of 512 bits), by the
# kind of the first operand's dtype ("e": float16, "V": bfloat16 and narrower ones; of conversions
# by both kinds; of selections for a mask of no order): compiled where they come to `_CALL`, about
# what the call of a program takes.
_CALL = 20_000
_COSTS: dict[str, dict[str, float]] = {}
for _kind, _cost, _names in (
    ("c", 60, "acos acosh asin asinh atan atan2 atanh log log1p pow"),
    ("c", 20, "cos cosh exp exp2 expm1 logistic rsqrt sign sin sinh sqrt tan tanh"),
    ("c", 2.5, "clamp div fft square"),
    ("c", 1.4, "eq ge gt le lt ne neg"),
    ("f", 8, "lgamma"),
    ("f", 5, "round"),
    ("f", 3, "acos acosh asin atanh erf erfc"),
    ("f", 2, "asinh atan2 cbrt fft log1p logistic nextafter pow rem"),
    ("V", 8, "lgamma rem round"),
    ("V", 3, "acosh erf erfc logistic one_less_square"),
    ("V", 2, "add asinh atan2 atanh cbrt ceil clamp div floor max min mul pow sign sub"),
    ("e", 12, "lgamma round"),
    ("e", 6, "erf erfc one_less_square rem round_even"),
    ("e", 3, "acos acosh add asin asinh atan atan2 atanh cbrt ceil clamp cos cosh div exp exp2"),
    ("e", 3, "expm1 floor log log1p logistic max min mul pow rsqrt sin sinh sqrt sub tan tanh"),
    ("i", 15, "pow"),
    ("b", 3.5, "select_n"),
    ("c", 4.8, "reduce_prod"),
    ("f", 1, "reduce_prod"),
    ("i", 1, "reduce_prod"),
    ("i", 4, "div rem shift_left shift_right_arithmetic shift_right_logical"),
):
    for _name in _names.split():
        _COSTS.setdefault(_name, {})[_kind] = _cost
_COSTS["convert_element_type"] = {
    "ei": 8, "Vi": 8, "ci": 7, "fi": 6, "cV": 3.5, "be": 2.3, "ie": 2.3, "fe": 2.3, "ce": 2.3,
    "eV": 1.5, "Ve": 1, "ef": 1, "ec": 1,
}  # fmt: skip


def is_dear(primitive: Primitive, avals: tuple, out: Any = None) -> bool:
    """Whether NumPy takes longer for these operands than the call of a program; conversions say
    what the result is."""
    if primitive.name in _DEAR:
        if primitive.name in _OF_MATRICES:
            return avals[0].size >= DEAR and avals[0].ndim > 2
        return max([aval.size for aval in avals]) >= DEAR
    costs = _COSTS.get(primitive.name)
    if costs is None:
        return False
    kind = _kind_of(avals[0].dtype)
    if primitive.name == "convert_element_type" and out is not None:
        kind += _kind_of(out.dtype)
    return costs.get(kind, 0) * max([aval.size for aval in avals]) >= _CALL


def _kind_of(dtype: Any) -> str:
    return "e" if dtype.char == "e" else "i" if dtype.kind == "u" else dtype.kind


def _padded(primitive: Primitive, avals: tuple) -> Callable | None:
    """An elementwise operation on fewer than `DEAR` elements as the program of `DEAR`."""
    whole = tuple([ShapedArray((DEAR,), aval.dtype) for aval in avals])
    program = hooks.operation(primitive, whole, {}, primitive.out_avals(whole, {}))
    if program is None:
        return None

    def run(*values: np.ndarray) -> np.ndarray:
        full = [np.zeros(DEAR, x.dtype) for x in values]
        for array, x in zip(full, values, strict=True):
            array[: x.size] = x.reshape(-1)
        return program(full)[0][: values[0].size].reshape(values[0].shape).copy()

    return run


# Operations on so many elements run as compiled programs, on all cores; NumPy's take less than the
# call of a program below (and where they are views).
LARGE = 1 << 16


def is_large(avals: tuple, out: Any) -> bool:
    """Whether an operation on operands of these avals (and with this result) has much to do."""
    for aval in avals:
        if aval.size >= LARGE:
            return True
    return type(out) is ShapedArray and out.size >= LARGE


def may_wait(x: Any) -> bool:
    """Whether operations on `x` may be written down rather than run, so that a short way to write
    them pays."""
    return type(x) is DeferredArray or type(x) is ArrayImpl and x.aval.size >= LARGE


def another(x: Any) -> Any:
    """Another Array of the value of `x`: functions that leave an array as it is give a new one,
    which lives on when the first is deleted or donated. Traced values are returned themselves."""
    if type(x) in (ArrayImpl, RemoteArray, ShardedArray):
        return x.__copy__()
    if type(x) is DeferredArray:
        return evaluate_python(REGISTRY["stop_gradient"], (x,), {})
    return x.in_scope("copy")  # a tracer


# Exact operations: what NumPy gives for operands that do not lie row by row, without a copy of
# them, has the same bits.
_EXACT = frozenset(
    "add sub mul max min neg abs and or xor not eq ne lt le gt ge select_n sign copy real imag "
    "conj square".split()
)


def _large(
    primitive: Primitive, program: Callable, arrays: list, params: dict, out_avals: Any
) -> Any:
    """Run the compiled program of one operation."""
    values = [x._value for x in arrays]
    if primitive.name in _EXACT and not all([v.flags.c_contiguous for v in values]):
        token = _enter(_QUIET)
        try:
            outs = [primitive.reference(*values, **params)]  # type: ignore[misc]
        finally:
            _leave(token)
    else:
        outs = program(values)
    if primitive.multiple_results:
        return [_wrap(primitive, value, aval) for value, aval in zip(outs, out_avals, strict=True)]
    return _wrap(primitive, outs[0], out_avals)


def _wrap(primitive: Primitive, value: Any, aval: ShapedArray) -> ArrayImpl:
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    dtype = aval.dtype
    if value.dtype is not dtype and value.dtype != dtype:
        value = value.astype(dtypes.physical(dtype))
    if value.shape != aval.shape:
        raise errors.InternalError(
            f"{primitive.name}: reference gave shape {value.shape}, the abstract rule {aval.shape}."
        )
    # What is repeated was there before, perhaps on purpose: a constant for what has no value.
    if numeric_checks[0]:
        try:
            if primitive.name != "broadcast_in_dim":
                check_finite(primitive.name, value)
        except FloatingPointError:
            hooks.not_finite()
            raise
        return hooks.computed_here(ArrayImpl(value, aval))
    return ArrayImpl(value, aval)


def check_finite(name: str, value: np.ndarray) -> None:
    """Raise FloatingPointError for a NaN (debug_nans) or an infinity (debug_infs), and RuntimeError
    where nothing may run (no_execution)."""
    if config.no_execution.value:
        raise RuntimeError(
            f"{name} was executed, but the no_execution config option is set."
        )
    if not dtypes.is_inexact(value.dtype):      # bfloat16 is no kind of NumPy's
        return
    if config.debug_nans.value and np.isnan(value).any():
        raise FloatingPointError(f"invalid value (nan) encountered in {name} (debug_nans is on).")
    if config.debug_infs.value and np.isinf(value).any():
        raise FloatingPointError(f"invalid value (inf) encountered in {name} (debug_infs is on).")


def _concrete(primitive: Primitive, x: Any) -> ArrayImpl:
    if isinstance(x, ArrayImpl):
        return x
    if isinstance(x, Array):
        raise errors.leaked(x, primitive.name)
    return as_array(x)


def run_compiled(closed: Any, args: tuple, name: str) -> list:
    """Compile (once) and run a closed jaxpr on concrete arrays."""
    return hooks.run_compiled(closed, args, name)
