"""The shortcuts of the NumPy functions: no promotion, no checks that these operands passed before.

`fast_unary` and `fast_binary` wrap a complete function (`slow`). What it did to operands of given
avals is remembered when the operands went into one primitive unchanged. The next call with the same
avals runs that primitive's NumPy function directly on concrete operands, and binds the primitive
directly where operands are traced. The checks of results (debug_nans, debug_infs) always take the
complete way. Any condition added to `slow` that depends on values must not use this.

NumPy warns of overflows and invalid values where IEEE's result is what is wanted: that is turned
off around each call, whatever a program does to the filters of warnings.

Where `fast_native` is usable, it takes the concrete operands that were seen before, and the Python
functions here the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import apart, kept
from numjet.api.eager.large import as_program
from numjet.base import config
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray, Plan
from numjet.core.dims import any_symbolic
from numjet.core.evaluate import (
    _QUIET as QUIET,
    LARGE,
    _enter as quiet_enter,
    _leave as quiet_leave,
    evaluate_python,
    is_dear,
    is_large,
    numpy_function,
)
from numjet.core.hooks import Remote
from numjet.core.memo import Memo
from numjet.core.primitive import REGISTRY, Primitive
from numjet.core.remote import RemoteArray
from numjet.core.trace import Tracer, current_trace
from numjet.native import operators as native
from numjet.native.deferral import PLUS_ZERO
from numjet.native.record import staged
from numjet.native.tables import INT_LIMIT
from numjet.numpy.converted import REFUSED, Conversions
from numjet.numpy.promote import broadcast, join_shapes
from numjet.transforms.eager import (
    LinearizeTrace,
    LinearTracer,
    Whole,
    is_deferred,
    linearized,
)
from numjet.transforms.stage import StageTrace, bind_known

CHECKS = config.numeric_checks
JAX_EQUATIONS = config.jax_equations
# Bound once: a global found in this module is cheaper than an attribute of another.
new = object.__new__
_PYTHON_SCALARS = (int, float, bool, complex)
# Larger integers may not fit the default integer type: the complete way decides.
_INT_LIMIT = INT_LIMIT
# How many constants one kind of operation keeps for traced programs.
_MAX_CONSTANTS = 256
# Arrays whose operations are written down.
_WAITING = (DeferredArray, RemoteArray)


def eager() -> bool:
    """Whether a concrete shortcut may be taken: nothing traces, nothing is checked."""
    return current_trace().at_once and not CHECKS[0]


def fix(value: Any, aval: ShapedArray) -> np.ndarray:
    """A NumPy result as the array `aval` promises (a NumPy scalar, or another dtype, came)."""
    return np.asarray(value, dtypes.physical(aval.dtype))




def fast_unary(primitive: str, slow: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`slow`, with a shortcut for avals that it hands to `primitive` unchanged."""
    known: dict[ShapedArray, tuple] = Memo(f"function of arrays: {primitive}")
    recall = known.get  # bound once: looking the method up takes as long as the look-up
    # The result's aval, or None where the complete way is to be taken.
    traced: dict[ShapedArray, ShapedArray | None] = Memo(f"function of traced arrays: {primitive}")
    recall_traced = traced.get
    record = REGISTRY[primitive]
    reference = record.reference
    assert reference is not None
    forms = native.Forms()
    conversions = Conversions(record, slow)
    converted = conversions.get
    later = _large_unary(record, slow, forms)

    def call(x: Any, /) -> Any:
        if type(x) is ArrayImpl:
            found = recall(x.aval)
            if found is not None and current_trace().at_once and not CHECKS[0]:
                aval, function, whole = found
                token = quiet_enter(QUIET)
                try:
                    value = function(x._value)
                finally:
                    quiet_leave(token)
                out = new(ArrayImpl)
                out._value = value if whole else fix(value, aval)
                out._aval = aval
                return out
            if found is None and x.aval.size >= LARGE:
                return later(x)
            run: Any = converted(x.aval) if found is None else False
            if run is not None and current_trace().at_once and not CHECKS[0]:
                return run(x) if run else slow(x)
            out = slow(x)
            if found is None and type(out) is ArrayImpl and eager():
                if not is_dear(record, (x.aval,)) and _direct(reference, x, out):
                    found = known[x.aval] = _entry(out.aval, reference, x.aval.dtype)
                    forms.learn(x.aval, None, found[1], out.aval)
                else:
                    conversions.learn(x.aval, (x.aval,), (x,), out)
            return out
        if type(x) is DeferredArray or type(x) is RemoteArray:
            return later(x)
        if isinstance(x, Tracer):
            aval = recall_traced(x.aval)
            if aval is None:
                if x.aval in traced:
                    return slow(x)
                aval = _of_floats(record, x.aval)
                if aval is None:
                    out = slow(x)
                    direct = _binds(record, (x.aval,), out) and out is not x
                    traced[x.aval] = out.aval if direct else None
                    return out
                traced[x.aval] = aval
            trace = current_trace()
            if type(trace) is StageTrace:  # `bind_known` written out
                return trace.record(record, (x,), {}, aval)
            if type(x) is LinearTracer:
                forms.learn_linear(x, None, record, {})
            return trace.process(record, (x,), {})
        return slow(x)

    call.forms = forms  # type: ignore[attr-defined] # see `quick`
    call.traced = traced, record  # type: ignore[attr-defined]
    return call


def quick(function: Callable, operands: int, often: bool = False) -> Callable:
    """A function with `forms` (of `fast_unary`, `fast_binary`, or `where`) that asks native code
    first, where it is there.

    often: whether calls on operands that native code does not know are compiled for when they come
    often (`api.eager.large`). Not for operators: those of concrete arrays are native methods
    (`fast_native.install`).
    """
    if not native.possible():
        return function
    forms = function.forms  # type: ignore[attr-defined]
    run = others = function

    if often:
        function = as_program(function, large=False)

    def attach() -> None:
        nonlocal run, others
        run = forms.attach(native.Table(function, operands)).function()
        if operands == 1:
            avals, record = function.traced  # type: ignore[attr-defined]
            others = staged(record, avals, function)

    def unary(x: Any, /) -> Any:
        kind = type(x)
        if kind is ArrayImpl or kind is DeferredArray or kind is LinearTracer:
            return run(x)
        return others(x)

    def binary(x: Any, y: Any, /) -> Any:
        return run(x, y)

    def ternary(x: Any, y: Any, z: Any, /) -> Any:
        return run(x, y, z)

    native.when_ready(attach)
    wrapped: Any = (unary, binary, ternary)[operands - 1]
    wrapped.forms = forms
    return wrapped


def _entry(aval: ShapedArray, reference: Callable, dtype: Any) -> tuple:
    """What a shortcut needs: the result's aval, the function, and whether its results need no look.
    (NumPy gives scalars where there are no dimensions, and views of ours give their own dtype.)"""
    whole = bool(aval.shape) and aval.dtype.isbuiltin == 1
    return aval, numpy_function(reference, dtype), whole


def _direct(reference: Callable, x: ArrayImpl, out: ArrayImpl) -> bool:
    """Whether `out` has the dtype that `reference` gives for x's, so that nothing was converted."""
    if type(x.aval.dtype) is dtypes.KeyDType or x.aval.shape != out.aval.shape or x.aval.narrow:
        return False
    probe = np.ones((1,), x.aval.dtype)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(reference(probe)).dtype == out.aval.dtype
    except (TypeError, ValueError):
        return False


def _binds(record: Primitive, avals: tuple, out: Any) -> bool:
    """Whether a traced result is what `record` gives for operands of these avals.

    Not for complex numbers: order and extrema are made up of several primitives for them.
    """
    dtype = avals[0].dtype
    if not isinstance(out, Array) or dtypes.is_key(dtype) or dtype == dtypes.float0:
        return False
    if dtypes.is_complex(dtype):
        return False
    try:
        return record.out_avals(avals, {}) is out.aval
    except TypeError:
        return False


def fast_binary(primitive: str, slow: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`slow`, with a shortcut for operands of one dtype (or a Python scalar that takes it)."""
    # Operands of one aval, the commonest case, have a table of their own: one lookup by identity.
    same: dict[ShapedArray, tuple] = Memo(f"function of two alike: {primitive}")
    known: dict[Any, tuple] = Memo(f"function of two: {primitive}")
    recall_same, recall = same.get, known.get
    record = REGISTRY[primitive]
    reference = record.reference
    assert reference is not None
    forms = native.Forms()
    conversions = Conversions(record, slow)
    converted = conversions.get
    traced = _traced_binary(record, slow, forms)
    large = _large_binary(record, slow, forms)

    def call(x: Any, y: Any, /) -> Any:
        key: Any
        if type(x) is ArrayImpl:
            if type(y) is ArrayImpl:
                key = x.aval
                if key is y.aval:
                    found = recall_same(key)
                else:
                    key = (key, y.aval)
                    found = recall(key)
            elif isinstance(y, Tracer):
                return traced(x, y)
            else:
                key = (x.aval, type(y))
                found = recall(key)
        elif isinstance(x, Tracer):
            return traced(x, y)
        elif type(y) is ArrayImpl:
            key = (type(x), y.aval)
            found = recall(key)
        elif isinstance(y, Tracer):
            return traced(x, y)
        elif type(x) in _WAITING or type(y) in _WAITING:
            return large(x, y)
        else:
            return slow(x, y)
        if found is not None and current_trace().at_once and not CHECKS[0]:
            aval, function, whole = found
            token = quiet_enter(QUIET)
            try:
                if type(y) is not ArrayImpl:
                    dtype = x.aval.dtype
                    if type(y) is int and not -_INT_LIMIT <= y < _INT_LIMIT:
                        return slow(x, y)
                    if dtype.itemsize >= 8 and narrowed(x.aval):
                        return slow(x, y)
                    value = function(x._value, dtype.type(y))
                elif type(x) is not ArrayImpl:
                    dtype = y.aval.dtype
                    if type(x) is int and not -_INT_LIMIT <= x < _INT_LIMIT:
                        return slow(x, y)
                    if dtype.itemsize >= 8 and narrowed(y.aval):
                        return slow(x, y)
                    value = function(dtype.type(x), y._value)
                else:
                    value = function(x._value, y._value)
            except REFUSED:
                return slow(x, y)
            finally:
                quiet_leave(token)
            out = new(ArrayImpl)
            out._value = value if whole else fix(value, aval)
            out._aval = aval
            return out
        if found is None and (
            type(x) is ArrayImpl and x.aval.size >= LARGE
            or type(y) is ArrayImpl and y.aval.size >= LARGE
            or type(x) in _WAITING
            or type(y) in _WAITING
            or type(x) is type(y) is ArrayImpl and _broadcasts_large(x.aval, y.aval)
        ):
            return large(x, y)
        run: Any = converted(key) if found is None else False
        if run is not None and current_trace().at_once and not CHECKS[0]:
            return run(x, y) if run else slow(x, y)
        out = slow(x, y)
        if found is None and type(out) is ArrayImpl and eager() and out.aval.size < LARGE:
            pair = key if type(key) is tuple else (key, key)
            dear = is_dear(record, tuple([k for k in pair if type(k) is ShapedArray]))
            if not dear and _same_dtype(pair, reference, out):
                dtype = (pair[0] if type(pair[0]) is ShapedArray else pair[1]).dtype
                entry = _entry(out.aval, reference, dtype)
                (known if type(key) is tuple else same)[key] = entry
                if _lasting(forms, *pair):
                    forms.learn(pair[0], pair[1], entry[1], out.aval)
            else:
                conversions.learn(key, pair, (x, y), out)
        return out

    call.forms = forms  # type: ignore[attr-defined] # see `quick`
    call.of_tracers = traced  # type: ignore[attr-defined] # for a method of theirs
    return call


def _broadcasts_large(x: ShapedArray, y: ShapedArray) -> bool:
    """Whether small operands that repeat one another have a large result."""
    if x.size * y.size < LARGE or x.shape == y.shape:
        return False
    try:
        return math.prod(join_shapes("", (x.shape, y.shape), TypeError)) >= LARGE
    except TypeError:  # the complete way tells
        return False


def _large_unary(
    record: Primitive, slow: Callable[[Any], Any], forms: native.Forms
) -> Callable[[Any], Any]:
    """The shortcut for an operand that is large, or whose value is not there yet."""
    known: dict[ShapedArray, Any] = Memo(f"large function: {record.name}")
    recall = known.get

    def call(x: Any) -> Any:
        aval = x.aval
        plan = recall(aval)
        if plan is None:
            out = _of_floats(record, aval)
            plan = known[aval] = () if out is None else Plan([aval], [], [(record, {}, (0,), out)])
        if plan and current_trace().at_once:
            found = _written(plan, [x])
            if found is not None:
                if not plan.told and type(found) is not RemoteArray:
                    plan.told = True
                    forms.learn_later(aval, None, plan, large=is_large(plan.avals, plan.out))
                return found
        return slow(x)

    return call


def _large_binary(
    record: Primitive, slow: Callable[[Any, Any], Any], forms: native.Forms
) -> Callable:
    """The shortcut for concrete operands that are large, or whose values are not there yet: wide
    floats and numbers, which the primitive takes as they are."""
    # As in `_traced_binary`.
    known: dict[tuple, Any] = Memo(f"large function of two: {record.name}")
    recall = known.get

    def call(x: Any, y: Any) -> Any:
        left = x.aval if isinstance(x, ArrayImpl) else type(x)
        right = y.aval if isinstance(y, ArrayImpl) else type(y)
        found = recall((left, right))
        if found is None:
            if narrowed(left) or narrowed(right):
                return slow(x, y)
            found = _of_float_pair(record, left, right, mixed=True) or ()
            if found:
                found = *found, _plan(record, left, right, found[0])
            known[left, right] = found
        if not found or not current_trace().at_once or hooks.guards is not None:
            return slow(x, y)
        if found[1] is None:
            if config.numpy_rank_promotion.value != "allow":
                return slow(x, y)
            later = _written(found[2], [x, y])
            if later is not None:
                learn(left, right, found, later)
                return later
            if CHECKS[0]:
                return slow(x, y)
            shape = found[0].shape
            return evaluate_python(record, (broadcast(x, shape), broadcast(y, shape)), {})
        a, b = x, y
        if type(right) is not ShapedArray:
            b = None if narrowed(left) else _constant(found[1], y, left.dtype)
        elif type(left) is not ShapedArray:
            a = None if narrowed(right) else _constant(found[1], x, right.dtype)
        if a is None or b is None:
            return slow(x, y)
        later = _written(found[2], [a, b])
        if later is None:
            return slow(x, y) if CHECKS[0] else evaluate_python(record, (a, b), {})
        learn(left, right, found, later)
        return later

    def learn(left: Any, right: Any, found: tuple, later: Any) -> None:
        plan = found[2]
        if not plan.told and type(later) is not RemoteArray and _lasting(forms, left, right):
            plan.told = True
            numbers = [None if type(k) is ShapedArray else found[1] for k in (left, right)]
            large = is_large(plan.avals, plan.out)
            forms.learn_later(left, right, plan, tuple(numbers), large)

    return call


def _written(plan: Plan, arrays: list) -> Any:
    """The result of a plan that was written down; None where it has to be evaluated."""
    if RemoteArray in map(type, arrays):
        return Remote.defer_plan(plan, arrays)
    return None if CHECKS[0] else hooks.defer_plan(plan, arrays)


def _plan(record: Primitive, left: Any, right: Any, out: ShapedArray) -> Plan:
    """How `record` of operands of these kinds is written down, repeated to its shape where they are
    others (but for numbers)."""
    array = left if type(left) is ShapedArray else right
    number = ShapedArray((), array.dtype)
    avals = [k if type(k) is ShapedArray else number for k in (left, right)]
    equations: list[tuple] = []
    places = [0, 1]
    for k, aval in enumerate(avals):
        if aval.shape not in ((), out.shape):
            first = out.ndim - aval.ndim
            params = {"shape": out.shape, "broadcast_dimensions": tuple(range(first, out.ndim))}
            places[k] = 2 + len(equations)
            repeated = aval.update(shape=out.shape)
            equations.append((REGISTRY["broadcast_in_dim"], params, (k,), repeated))
    equations.append((record, {}, tuple(places), out))
    return Plan(avals, [], equations)


def _traced_binary(
    record: Primitive, slow: Callable[[Any, Any], Any], forms: native.Forms
) -> Callable:
    """The shortcut for operands of which one is traced."""
    # For pairs of operands (avals, or the type of a Python scalar): False where the complete way
    # is to be taken, else the result's aval, the constants made for scalars so far, by their
    # values, where operands are repeated instead the operation with that as one to linearize, and
    # whether one of 64 bits stands beside a number.
    known: dict[tuple, Any] = Memo(f"function of two, traced: {record.name}")
    recall, x64 = known.get, config.enable_x64

    def call(x: Any, y: Any) -> Any:
        left = x.aval if isinstance(x, Array) else type(x)
        right = y.aval if isinstance(y, Array) else type(y)
        found = recall((left, right))
        if not found or found[1] is None:
            return uncommon(x, y, left, right, found)
        aval, constants, _, wide = found
        a, b = x, y
        if type(right) is not ShapedArray:
            if wide and not x64.value:
                return slow(x, y)
            b = constants.get(y)
            if b is None:
                b = _constant(constants, y, left.dtype)
        elif type(left) is not ShapedArray:
            a = None if wide and not x64.value else _constant(constants, x, right.dtype)
        if a is None or b is None:
            return slow(x, y)
        trace = current_trace()
        if type(trace) is StageTrace:
            return trace.record(record, (a, b), {}, aval)
        if hooks.guards is not None and (a is not x or b is not y):
            hooks.guards.host_value(x if a is not x else y)
        if type(trace) is LinearizeTrace:
            numbers = [None if type(k) is ShapedArray else constants for k in (left, right)]
            forms.learn_linear(x, y, record, {}, tuple(numbers))
        return trace.process(record, (a, b), {})

    def uncommon(x: Any, y: Any, left: Any, right: Any, found: Any) -> Any:
        """The call for operands that are new, take the complete way, or are repeated."""
        wide = _beside_number(left, right)
        if found is None:
            if narrowed(left) or narrowed(right):
                return slow(x, y)
            made = _of_float_pair(record, left, right)
            if made is not None:
                known[left, right] = *made, _whole(record, *made), wide
                return call(x, y)
        if JAX_EQUATIONS.uses and kept():
            return apart(call, call, (x, y), {})
        looked_at = JAX_EQUATIONS.value if found is None else config.jax_form()
        if found is False or looked_at:
            return slow(x, y)
        if found is None:
            out = slow(x, y)
            direct = _binds_pair(record, left, right, out)
            made = (out.aval, {}) if direct else _repeated(record, left, right, out)
            known[left, right] = made and (*made, _whole(record, *made), wide)
            return out
        if config.numpy_rank_promotion.value != "allow":
            return slow(x, y)
        aval, _, whole, _ = found
        shape, trace = aval.shape, current_trace()
        if type(trace) is LinearizeTrace and (is_deferred(x) or is_deferred(y)):
            linear = linearized(trace, whole, x, y)
            if linear is not None:
                forms.learn_linear(x, y, whole, {}, always=False)
                return linear
            repeated = trace.repeat(x, shape), trace.repeat(y, shape)
        else:
            repeated = broadcast(x, shape), broadcast(y, shape)
        return bind_known(record, repeated, {}, aval)

    call.staged = known, record  # type: ignore[attr-defined] # for native code
    return call


def _whole(record: Primitive, out: ShapedArray, constants: dict | None) -> Whole | None:
    """`record` with the repetition of its operands as one operation to linearize."""
    if constants is not None:
        return None
    shape = out.shape
    return Whole(lambda x, y: record.bind(broadcast(x, shape), broadcast(y, shape)))


def _of_floats(record: Primitive, *avals: ShapedArray) -> ShapedArray | None:
    """What `record` gives for operands of these avals, which are all wide floats of one type: no
    function wrapped here does more than bind it for them. None where that is not known."""
    dtype = avals[0].dtype
    if dtype is not dtypes.float32 and dtype is not dtypes.float64:
        return None
    try:
        return record.out_avals(avals, {})
    except TypeError:  # of integers alone, or shapes that do not fit: the complete way tells
        return None


def _of_float_pair(
    record: Primitive, left: Any, right: Any, mixed: bool = False
) -> tuple | None:
    """`_of_floats` of operands of these kinds: the result's aval, and what `_traced_binary` notes
    beside it. mixed: one of the types may be weak, which no value shows, and the other not."""
    out: ShapedArray | None
    if type(left) is ShapedArray and type(right) is ShapedArray:
        if left.dtype is not right.dtype or not mixed and left.weak_type is not right.weak_type:
            return None
        if left.shape == right.shape or not left.shape or not right.shape:
            out = _of_floats(record, left, right)
            return None if out is None else (out, {})
        try:
            shape = join_shapes("", (left.shape, right.shape), TypeError)
        except TypeError:
            return None
        out = _of_floats(record, left.update(shape=shape), right.update(shape=shape))
        return None if out is None else (out, None)
    array, scalar = (left, right) if type(left) is ShapedArray else (right, left)
    if type(array) is not ShapedArray or not _accepts_scalar(array, scalar):
        return None
    constant = ShapedArray((), array.dtype)
    out = _of_floats(record, *((array, constant) if array is left else (constant, array)))
    return None if out is None else (out, {})


def _binds_pair(record: Primitive, left: Any, right: Any, out: Any) -> bool:
    """Whether a traced result is what `record` gives for operands of these kinds as they are."""
    if type(left) is ShapedArray and type(right) is ShapedArray:
        alike = left.dtype is right.dtype and left.weak_type is right.weak_type
        return alike and _binds(record, (left, right), out)
    array, scalar = (left, right) if type(left) is ShapedArray else (right, left)
    # Narrow types get constants by way of the default types, which may round twice or wrap.
    if not _accepts_scalar(array, scalar) or array.dtype.itemsize < 4:
        return False
    constant = ShapedArray((), array.dtype)
    return _binds(record, (array, constant) if array is left else (constant, array), out)


def _repeated(record: Primitive, left: Any, right: Any, out: Any) -> Any:
    """The result's aval (and no constants) where `record` gives it for the operands repeated to its
    shape; else False."""
    if type(left) is not ShapedArray or type(right) is not ShapedArray:
        return False
    if not isinstance(out, Array):
        return False
    shape = out.aval.shape
    if not left.shape or not right.shape or left.dtype is not right.dtype:
        return False
    if any_symbolic(shape):
        return False
    if np.broadcast_shapes(left.shape, right.shape) != shape:
        return False
    pair = left.update(shape=shape), right.update(shape=shape)
    return (out.aval, None) if _binds_pair(record, *pair, out) else False


def _constant(constants: dict, value: Any, dtype: Any) -> ArrayImpl | None:
    """A scalar as an array of `dtype`, made once; None where it does not fit."""
    key: Any = value
    if not value and isinstance(value, float | np.floating):  # 0.0 equals -0.0
        key = PLUS_ZERO if math.copysign(1.0, value) > 0 else "-0.0"
    found = constants.get(key)
    if found is not None:
        return found
    if type(value) is int and not -_INT_LIMIT <= value < _INT_LIMIT:
        return None
    try:
        array = ArrayImpl(np.asarray(value, dtype), ShapedArray((), dtype))
    except REFUSED:
        return None
    # Made anew: NaN, which equals nothing, and complex zeros, which have two signs.
    if value == value and (value or type(value) is not complex) and len(constants) < _MAX_CONSTANTS:
        constants[key] = array
    return array


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
        # Integers are weaker than weak floats, whatever `enable_x64` says; floats are not.
        weaker = array.weak_type and array.dtype.kind == "f" and scalar is int
        if not weaker and not _accepts_scalar(array, scalar) or narrowed(array):
            return False
    probe = np.ones((1,), array.dtype)
    try:
        with np.errstate(all="ignore"):
            # Promotion to floats or from booleans shows as a dtype that the operands do not have.
            got = np.asarray(reference(probe, probe)).dtype
    except (TypeError, ValueError):
        return False
    return bool(got == out.aval.dtype)


def _beside_number(left: Any, right: Any) -> bool:
    """Whether one of these operands is an array of 64 bits and the other a Python number."""
    if type(left) is type(right):
        return False
    array = left if type(left) is ShapedArray else right
    return type(array) is ShapedArray and array.dtype in dtypes.WIDE


def narrowed(x: Any) -> bool:
    """Whether an operand of this kind is of 64 bits outside of `enable_x64`, so that it meets
    others as one of 32."""
    if type(x) is not ShapedArray or x.dtype.itemsize < 8:
        return False
    return x.dtype in dtypes.WIDE and not config.enable_x64.value


_forms_of_wide: list[native.Forms] = []


def _lasting(forms: native.Forms, left: Any, right: Any) -> bool:
    """Whether native code may learn what becomes of operands of these kinds: it does not ask for
    the flags, so that arrays of 64 bits beside numbers are for it only where the process has them
    by default. Those forms are made anew when it ceases to."""
    if not _beside_number(left, right):
        return True
    if config.enable_x64.everywhere and forms not in _forms_of_wide:
        _forms_of_wide.append(forms)
    return bool(config.enable_x64.everywhere)


def _forget_wide(x64: bool) -> None:
    while _forms_of_wide and not x64:
        _forms_of_wide.pop().forget()


config.enable_x64.on_change(_forget_wide)


def _accepts_scalar(array: ShapedArray, scalar: Any) -> bool:
    """Whether an array of this aval keeps its dtype when it meets a scalar of this type: one of
    Python's, or NumPy's own for the dtype."""
    if scalar is array.dtype.type and array.dtype.kind == "f" and not array.weak_type:
        return True
    if scalar not in _PYTHON_SCALARS or array.weak_type or array.dtype.kind not in "fiuc":
        return False
    if scalar in (bool, int):
        return True
    return array.dtype.kind == "c" or (scalar is float and array.dtype.kind == "f")


__all__ = [
    "CHECKS",
    "QUIET",
    "eager",
    "fast_binary",
    "fast_unary",
    "fix",
    "narrowed",
    "new",
    "quick",
    "quiet_enter",
    "quiet_leave",
]
