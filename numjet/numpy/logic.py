"""Truth values and bits: comparisons, logical and bitwise operators, shifts, and where.

For every module above `elementwise`, which makes the operators and holds arithmetic. What would
break it: a comparison of numbers that were promoted to a dtype that does not hold both, and a
`where` that remembers for a scalar operand what depends on the scalar's value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, Shown, apart, wanted
from numjet.base import config
from numjet.core import dtypes
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.evaluate import LARGE, is_dear
from numjet.core.memo import Memo
from numjet.core.trace import current_trace
from numjet.native.operators import Forms
from numjet.numpy import lax_names as lax
from numjet.numpy.converted import REFUSED, is_common, step_to
from numjet.numpy.elementwise import absolute_of, binary, named, prepared, select, unary, zeros_like
from numjet.numpy.fast import (
    CHECKS,
    QUIET,
    eager,
    fix,
    new,
    quick,
    quiet_enter,
    quiet_leave,
)
from numjet.numpy.promote import (
    as_arrays,
    cast,
    converts_plainly,
    one_array,
    promote_dtypes,
    promote_numeric,
    promote_shapes,
    promoted,
    strong,
)
from numjet.ops.shape import select_n_p
from numjet.transforms.again import as_one


# ------------------------------------------------------------------ comparison
def _comparison(name: str, doc: str, operation: Callable, primitive: str) -> Callable:
    def compare(x: Any, y: Any) -> Any:
        if dtypes.is_complex(x.aval.dtype) and primitive not in ("eq", "ne"):
            return _complex_order(operation, x, y)
        return operation(x, y)

    return binary(name, doc, compare, primitive)


def _complex_order(operation: Callable, x: Any, y: Any) -> Any:
    """Lexicographic order of complex numbers, real part first."""
    xr, yr = lax.real(x), lax.real(y)
    return select(lax.eq(xr, yr), operation(lax.imag(x), lax.imag(y)), operation(xr, yr))


equal = _comparison("equal", """Whether x == y, element by element.

    x, y: arrays or numbers of any dtype, PRNG keys included, broadcast to one shape; they are
    compared in their common dtype. Returns booleans. NaN equals nothing, itself included.
    TypeError or ValueError for shapes that do not broadcast.

    >>> jnp.equal(jnp.array([1, 2, 3]), jnp.array([1, 0, 3]))
    Array([ True, False,  True], dtype=bool)
    """, lax.eq, "eq")
not_equal = _comparison("not_equal", """Whether x != y, element by element.

    x, y: arrays or numbers of any dtype, PRNG keys included, broadcast to one shape; they are
    compared in their common dtype. Returns booleans. NaN differs from everything, itself included.
    TypeError or ValueError for shapes that do not broadcast.

    >>> jnp.not_equal(jnp.array([1, 2, 3]), jnp.array([1, 0, 3]))
    Array([False,  True, False], dtype=bool)
    """, lax.ne, "ne")
less = _comparison("less", """Whether x < y, element by element.

    x, y: arrays or numbers, broadcast to one shape and compared in their common dtype; complex
    numbers by real part, then imaginary part. Returns booleans, False where either is NaN.

    >>> jnp.less(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """, lax.lt, "lt")
less_equal = _comparison("less_equal", """Whether x <= y, element by element.

    x, y: arrays or numbers, broadcast to one shape and compared in their common dtype; complex
    numbers by real part, then imaginary part. Returns booleans, False where either is NaN.

    >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """, lax.le, "le")
greater = _comparison("greater", """Whether x > y, element by element.

    x, y: arrays or numbers, broadcast to one shape and compared in their common dtype; complex
    numbers by real part, then imaginary part. Returns booleans, False where either is NaN.

    >>> jnp.greater(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """, lax.gt, "gt")
greater_equal = _comparison(
    "greater_equal", """Whether x >= y, element by element.

    x, y: arrays or numbers, broadcast to one shape and compared in their common dtype; complex
    numbers by real part, then imaginary part. Returns booleans, False where either is NaN.

    >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """, lax.ge, "ge"
)


# ------------------------------------------------------------------ bits and logic
def as_bool(x: Any) -> Any:
    """x != 0."""
    return x if x.aval.dtype == dtypes.bool_ else lax.ne(x, zeros_like(x))


def _promote_bool(*xs: Any) -> list[Any]:
    """The arguments as booleans: weak, as in JAX, for numbers without axes that join to a weak
    dtype."""
    dtype, weak = promoted(*xs)  # raises for dtypes that are not joined
    if FLAG.uses and wanted():
        xs = tuple([x if x.aval.dtype == dtype else cast(x, dtype, weak) for x in xs])
        if dtype is not dtypes.bool_ and weak:  # of arrays strong truth, as zeros of JAX' are
            zeros = [zeros_like(x) for x in xs]
            zeros = [strong(z) if x.aval.shape else z for x, z in zip(xs, zeros, strict=True)]
            return [lax.ne(x, z) for x, z in zip(xs, zeros, strict=True)]
    if dtype is dtypes.bool_ or weak and any([x.aval.shape for x in xs]):
        return [strong(as_bool(x)) for x in xs]
    return [cast(as_bool(x), dtypes.bool_, True) if weak else as_bool(x) for x in xs]


bitwise_and = binary("bitwise_and", """The bits that x and y both have; of booleans `and`.

    x, y: integers or booleans, broadcast to one shape and dtype, which the result has. TypeError
    for floats and complex numbers.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.bitwise_and(jnp.array([12, 7]), 10)
    Array([8, 2], dtype=int32)
    """, lax.bitwise_and, "and")
bitwise_or = binary("bitwise_or", """The bits that x or y has; of booleans `or`.

    x, y: integers or booleans, broadcast to one shape and dtype, which the result has. TypeError
    for floats and complex numbers.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.bitwise_or(jnp.array([12, 7]), 10)
    Array([14, 15], dtype=int32)
    """, lax.bitwise_or, "or")
bitwise_xor = binary(
    "bitwise_xor", """The bits that one of x and y has and the other has not; of booleans whether
    they differ.

    x, y: integers or booleans, broadcast to one shape and dtype, which the result has. TypeError
    for floats and complex numbers.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.bitwise_xor(jnp.array([12, 7]), 10)
    Array([ 6, 13], dtype=int32)
    """, lax.bitwise_xor, "xor"
)
logical_and = binary(
    "logical_and", """Whether x and y are both non-zero, element by element.

    x, y: arrays or numbers of any dtype, broadcast to one shape. Returns booleans; NaN counts as
    non-zero.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.logical_and(jnp.array([0, 1, 2]), True)
    Array([False,  True,  True], dtype=bool)
    """, lax.bitwise_and, "and", _promote_bool, often=True
)
logical_or = binary(
    "logical_or", """Whether x or y is non-zero, element by element.

    x, y: arrays or numbers of any dtype, broadcast to one shape. Returns booleans; NaN counts as
    non-zero.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.logical_or(jnp.array([0, 1, 2]), False)
    Array([False,  True,  True], dtype=bool)
    """, lax.bitwise_or, "or", _promote_bool, often=True
)
logical_xor = binary(
    "logical_xor", """Whether exactly one of x and y is non-zero, element by element.

    x, y: arrays or numbers of any dtype, broadcast to one shape. Returns booleans; NaN counts as
    non-zero.
    out, where: raise NotImplementedError: use `where`.

    >>> jnp.logical_xor(jnp.array([0, 1, 2]), True)
    Array([ True, False, False], dtype=bool)
    """, lax.bitwise_xor, "xor", _promote_bool, often=True
)
invert = unary("invert", """~x: every bit turned over; of booleans `not`.

    x: integers or booleans of any shape, whose dtype the result has. Of signed integers this is -x
    - 1. TypeError for floats and complex numbers.

    >>> jnp.invert(jnp.array([0, 5])), jnp.invert(jnp.array(True))
    (Array([-1, -6], dtype=int32), Array(False, dtype=bool))
    """, lax.bitwise_not, "not")
bitwise_not = bitwise_invert = invert


def logical_not(x: Any, /) -> Any:
    """Whether x is zero, element by element.

    x: an array or number of any dtype. Returns booleans; NaN counts as non-zero.

    >>> jnp.logical_not(jnp.array([0.0, 2.0]))
    Array([ True, False], dtype=bool)
    """
    out = lax.bitwise_not(as_bool(one_array("logical_not", x)))
    return out if not out.aval.ndim else strong(out)  # weak of numbers alone, as JAX's


def _quick_shift(ufunc: np.ufunc, x: Any, y: Any) -> ArrayImpl | None:
    """The NumPy function, for concrete integers x and y of one aval or a count y that x has; as
    here, it shifts by the width or more (or less than 0) until nothing but the sign is left."""
    if type(x) is not ArrayImpl or x.aval.size >= LARGE or not eager():
        return None
    dtype = x.aval.dtype
    if dtype.kind not in "iu" or x.aval.weak_type:
        return None
    if type(y) is int and 0 <= y < dtype.itemsize * 8:
        return ArrayImpl(np.asarray(ufunc(x._value, dtype.type(y))), x.aval)
    if type(y) is ArrayImpl and y.aval is x.aval:
        return ArrayImpl(np.asarray(ufunc(x._value, y._value)), x.aval)
    return None


def _promote_shifted(*xs: Any) -> list[Any]:
    """The arrays at their common dtype; booleans alone are int32, with `enable_x64` too."""
    joined = promote_dtypes(*xs)
    boolean = joined[0].aval.dtype == dtypes.bool_
    return [cast(x, dtypes.int32) for x in joined] if boolean else list(joined)


def left_shift(x: Any, y: Any, /) -> Any:
    """x << y: the bits of x moved y places up, zeros entering.

    x, y: integers, broadcast to one shape and dtype, which the result has. A count y of the dtype's
    width or more, or below 0, gives 0. TypeError for floats.

    >>> jnp.left_shift(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    quick = _quick_shift(np.left_shift, x, y)
    if quick is not None:
        return quick
    return lax.shift_left(*prepared("left_shift", _promote_shifted, x, y))


def right_shift(x1: Any, x2: Any, /) -> Any:
    """x1 >> x2: the bits of x1 moved x2 places down; copies of the sign enter, for unsigned dtypes
    zeros.

    x1, x2: integers, broadcast to one shape and dtype, which the result has. A count x2 of the
    dtype's width or more, or below 0, leaves the sign only: -1 or 0. TypeError for floats.

    >>> jnp.right_shift(jnp.array([12, -12]), 2)
    Array([ 3, -3], dtype=int32)
    """
    quick = _quick_shift(np.right_shift, x1, x2)
    if quick is not None:
        return quick
    x, y = prepared("right_shift", _promote_shifted, x1, x2)
    if dtypes.kind(x.aval.dtype) == "u":
        return lax.shift_right_logical(x, y)
    return lax.shift_right_arithmetic(x, y)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def bitwise_count(x: Any, /) -> Any:
    """The number of one bits of |x|, as uint8.

    x: integers of any shape; booleans become integers. TypeError for floats.

    >>> jnp.bitwise_count(jnp.array([7, -8]))
    Array([3, 1], dtype=uint8)
    """
    (x,) = promote_numeric(one_array("bitwise_count", x))
    return lax.convert(lax.population_count(absolute_of(x)), dtypes.uint8)


# ------------------------------------------------------------------ selection
_where_known: dict[tuple, tuple[ShapedArray, Any]] = Memo("where")
_where_mixed: dict[tuple, tuple] = Memo("where of several dtypes")
_SCALARS = (int, float, bool)
_numpy_where = np.where


def _where_quickly(condition: Any, x: Any, y: Any, /) -> Any:
    if type(condition) is ArrayImpl:
        key: Any
        if type(x) is ArrayImpl and type(y) is ArrayImpl:
            key = (condition.aval, x.aval, y.aval)
            found = _where_known.get(key)
            if found is not None and current_trace().at_once and not CHECKS[0]:
                out = new(ArrayImpl)
                out._aval = aval = found[0]
                value = _numpy_where(condition._value, x._value, y._value)
                out._value = value if aval.shape else fix(value, aval)
                return out
        key = (
            condition.aval,
            x.aval if type(x) is ArrayImpl else type(x),
            y.aval if type(y) is ArrayImpl else type(y),
        )
        found = _where_known.get(key)
        if found is not None and current_trace().at_once and not CHECKS[0]:
            aval, dtype = found
            token = quiet_enter(QUIET)
            try:
                value = np.where(
                    condition._value,
                    x._value if type(x) is ArrayImpl else dtype.type(x),
                    y._value if type(y) is ArrayImpl else dtype.type(y),
                )
            except OverflowError:
                return _where(condition, x, y)
            finally:
                quiet_leave(token)
            if value.dtype is not dtype:
                value = fix(value, aval)
            return ArrayImpl(value, aval)
        run = _where_mixed.get(key)
        if run is not None and run[0] == config.state[0] and current_trace().at_once:
            if not CHECKS[0]:
                return run[1](condition, x, y)
        out = _linear_where(condition, x, y)
        if found is None and type(out) is ArrayImpl and eager():
            _remember_where(key, out.aval)
        return out
    return _linear_where(condition, x, y)


def _linear_where(condition: Any, x: Any, y: Any) -> Any:
    if FLAG.uses and not current_trace().at_once:
        return apart(_shown_where.called, _where, (condition, x, y), {})
    out = as_one(_where, (condition, x, y))
    return _where(condition, x, y) if out is None else out


def _remember_where(key: tuple, out: ShapedArray) -> None:
    """Allow the shortcut where NumPy's own `where` gives this result from these operands."""
    if key[0].dtype != dtypes.bool_ or out.dtype.kind not in "biufc" or out.size >= LARGE:
        return
    if is_dear(select_n_p, (key[0], out)):
        return
    strongly = mixed = False
    for operand in key[1:]:
        if type(operand) is ShapedArray:
            mixed = mixed or operand.dtype != out.dtype
            strongly = strongly or not operand.weak_type
        elif operand not in _SCALARS:
            return
    if mixed or not strongly:
        _remember_mixed(key, out)
    else:
        _where_known[key] = (out, out.dtype)
        _where_forms.learn_where(key[0], key[1], key[2], out)


def _remember_mixed(key: tuple, out: ShapedArray) -> None:
    """Allow it where what is chosen from is converted to the result's dtype before."""
    dtype, kinds = out.dtype, key[1:]
    arrays = [k for k in kinds if type(k) is ShapedArray]
    if config.state[0] < 0 or not all(map(is_common, key)) or out.dtype in dtypes.WIDE:
        return
    if len(arrays) < 2 and dtype.itemsize < 4:
        return  # numbers come by way of the default types
    if not all([converts_plainly(k.dtype, dtype) for k in arrays]):
        return
    first, second = [step_to(k, dtype) for k in kinds]

    def run(condition: Any, x: Any, y: Any) -> Any:
        token = quiet_enter(QUIET)
        try:
            value = _numpy_where(condition._value, first(x), second(y))
        except REFUSED:
            return _where(condition, x, y)
        finally:
            quiet_leave(token)
        return ArrayImpl(fix(value, out), out)

    _where_mixed[key] = config.state[0], run


def _where(condition: Any, x: Any, y: Any) -> Any:
    condition, x, y = as_arrays("where", condition, x, y)
    condition = as_bool(condition)
    x, y = promote_dtypes(x, y)
    condition, x, y = promote_shapes("where", condition, x, y, any_rank=True)
    return select(condition, x, y)


_shown_where = Shown(_where, "_where")
_where_forms = _where_quickly.forms = Forms()  # type: ignore[attr-defined] # see `quick`
where = named("where", "x where `condition` is true, else y.", quick(_where_quickly, 3))


def isnan_of(x: Any) -> Any:
    """Whether elements are NaN, for floating and complex arrays."""
    return lax.ne(x, x)
