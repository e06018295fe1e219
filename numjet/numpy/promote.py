"""Arguments of the NumPy functions: arrays out of scalars, dtype promotion, broadcasting, axes.

Every file of this package begins its functions here. Constants are converted at once, so that
traced programs hold literals of the right dtype instead of conversions.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.base.config import numeric_checks
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array, is_arraylike
from numjet.core.avals import ShapedArray
from numjet.core.dims import index_of
from numjet.core.evaluate import _QUIET, LARGE, _enter, _leave, evaluate, is_dear
from numjet.core.structural import broadcast_in_dim, convert_element_type_p, warn_of_lost_part
from numjet.core.trace import Tracer, current_trace
from numjet.ops.collective import axis_size
from numjet.ops.complex_ops import real
from numjet.ops.logic import ne


def as_arrays(name: str, *args: Any) -> list[Any]:
    """Each argument as an Array or tracer; TypeError names the function and the position."""
    out = []
    for i, x in enumerate(args):
        if not isinstance(x, Array):
            if isinstance(x, (list, tuple)) or not is_arraylike(x):
                raise TypeError(not_an_array(name, x, i))
            x = as_array(x)
        out.append(x)
    return out


def one_array(name: str, x: Any) -> Any:
    """`as_arrays` for one argument."""
    return x if isinstance(x, Array) else as_arrays(name, x)[0]


# NumPy arrays of so many bytes are copied where a result would share their memory, as their owner
# may write to it: programs fill one buffer again and again. Larger ones would take longer than
# JAX's call.
_COPIED = 1 << 20


def apart(x: Any) -> Any:
    """`x`, but a copy of a NumPy array that somebody may write to and that is not large."""
    return x.copy() if type(x) is np.ndarray and is_lent(x) else x


def is_lent(x: np.ndarray) -> bool:
    """Whether an Array on the memory of `x` could change, and a copy is cheap."""
    return x.nbytes <= _COPIED and x.flags.writeable


def mask_of(name: str, where: Any) -> Any:
    """The argument `where` of a reduction as an array of booleans."""
    mask = one_array(name, where)
    if mask.aval.dtype != dtypes.bool_:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array, got one of {mask.aval.dtype}."
        )
    return mask


def not_an_array(name: str, x: Any, position: int = 0) -> str:
    """The message for an argument that is no array."""
    told = "" if x is None or isinstance(x, list | tuple) else (
        f": Error interpreting argument to {name} as an abstract array. The problematic value is "
        f"of type {type(x)}"
    )  # fmt: skip
    return (
        f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}{told}. "
        "Convert it with numjet.numpy.array first; lists and tuples are not converted by "
        "themselves, because that would hide slow copies."
    )


# ------------------------------------------------------------------ dtypes
def canonical_dtype(dtype: Any, name: str, default: Any = None) -> Any:
    """A dtype argument as the dtype arrays will have; warns when it asks for 64 bits in vain."""
    if dtype is None:
        return None if default is None else dtypes.canonical(default)
    if isinstance(dtype, type) and dtype in (bool, int, float, complex):
        return dtypes.canonical(dtype)
    if type(dtype) is dtypes.KeyDType:
        return dtype
    found = dtypes.requested(dtype, name)
    dtypes.check_supported(found)
    return found


def converted(x: Any, dtype: Any) -> Any:
    """`x.astype(dtype)`: complex numbers other than 0 are true, and lose their imaginary parts, of
    which a warning tells, where they become real."""
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(dtype):
        if dtypes.is_bool(dtype):
            zero = np.zeros((), x.aval.dtype)
            return ne(x, ArrayImpl(zero, ShapedArray((), x.aval.dtype)))
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError in JAX. Take .real "
            "or .imag first.",
            DeprecationWarning,
            stacklevel=3,
        )
        x = real(x)
    return cast(x, dtype)


_SHORT = 2000  # NumPy converts so few elements as soon as it is told which way is shorter


def cast(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` as `dtype`; constants without dimensions at once, also while tracing."""
    aval = x.aval
    if aval.dtype == dtype:
        if aval.weak_type == weak_type:
            return x
        if type(x) is ArrayImpl:
            return ArrayImpl(x._value, ShapedArray(aval.shape, aval.dtype, weak_type))
    elif aval.dtype.kind == "c":
        warn_of_lost_part(aval.dtype, dtype)
    params = {"new_dtype": dtype, "weak_type": weak_type}
    small = type(x) is ArrayImpl and aval.size < LARGE and not numeric_checks[0]
    small = small and current_trace().at_once and converts_plainly(aval.dtype, dtype)
    new = ShapedArray(aval.shape, dtype, weak_type)
    if small and (aval.size < _SHORT or not is_dear(convert_element_type_p, (aval,), new)):
        token = _enter(_QUIET)
        try:
            value = x._value.astype(dtype)
        finally:
            _leave(token)
        return ArrayImpl(value, new)
    if type(x) is ArrayImpl and not aval.shape:
        bare = numeric_checks[0] and aval.weak_type and converts_plainly(aval.dtype, dtype)
        if bare and not np.isfinite(x._value):
            # A number that was written down, perhaps NaN on purpose: nothing computed it.
            return ArrayImpl(x._value.astype(dtype), ShapedArray((), dtype, weak_type))
        return evaluate(convert_element_type_p, (x,), params)
    return convert_element_type_p.bind(x, **params)


@functools.cache
def converts_plainly(old: Any, new: Any) -> bool:
    """Whether NumPy's own conversion is the right one: not from floats to integers (which saturate
    here), nor from complex to real, nor among those narrower than a byte."""
    if old in dtypes.NARROW and new in dtypes.NARROW:
        return False
    if dtypes.is_key(old) or dtypes.is_key(new) or old == dtypes.float0 or new == dtypes.float0:
        return False
    if dtypes.is_integer(new) or new == dtypes.bool_:
        return not dtypes.is_inexact(old)
    return not dtypes.is_complex(old) or dtypes.is_complex(new)


def strong(x: Any) -> Any:
    """`x` without weak type."""
    return cast(x, x.aval.dtype) if x.aval.weak_type else x


def weak_alone(x: Any) -> Any:
    """`x`, strong where it has axes: what meets constants of x's dtype in JAX is weak for a number
    alone."""
    return strong(x) if x.aval.shape else x


def promoted(*xs: Any) -> tuple[Any, bool]:
    """The dtype and weak type that the arrays join to. Booleans that join, of comparisons of weak
    numbers too, are strong. Those of one dtype keep it, outside of `enable_x64` too."""
    kinds = [(x.aval.dtype, x.aval.weak_type) for x in xs]
    dtype, weak = dtypes.promote(*kinds)
    own = kinds[0][0]
    if own is not dtype and all([kind[0] is own for kind in kinds]):
        dtype = own
    return dtype, weak and (dtype is not dtypes.bool_ or len(xs) == 1)


def unmixed(name: str, *xs: Any) -> list[Any]:
    """`as_arrays` of an element-wise function, which raises TypeError for PRNG keys that meet
    numbers or others; what only promotes them raises ValueError."""
    arrays = as_arrays(name, *xs)
    keys = [type(x.aval.dtype) is dtypes.KeyDType for x in arrays]
    if any(keys) and len({x.aval.dtype for x in arrays}) > 1:
        raise TypeError(
            f"{name} does not accept dtype {arrays[keys.index(True)].aval.dtype} beside others: "
            "PRNG keys do not promote. Take random.key_data(key) for the bits."
        )
    return arrays


def promote_dtypes(*xs: Any) -> list[Any]:
    """The arrays at their common dtype."""
    first = xs[0].aval
    dtype, weak = first.dtype, first.weak_type
    for x in xs:
        if x.aval.dtype is not dtype or x.aval.weak_type is not weak:
            dtype, weak = promoted(*xs)
            return [cast(x, dtype, weak) for x in xs]
    if weak and dtype is dtypes.bool_ and len(xs) > 1:
        return [strong(x) for x in xs]
    return list(xs)


def inexact_dtype(dtype: Any) -> Any:
    """`dtype`, or the default float for integers and booleans."""
    if dtypes.is_inexact(dtype):
        return dtype
    dtypes.refuse_keys("the function", dtype)
    if dtype == dtypes.float0:
        raise TypeError(f"The function was called with a float0 array. {dtypes.NO_OPERATIONS}")
    return dtypes.canonical(dtypes.float64 if dtype.itemsize == 8 else dtypes.float32)


def promote_inexact(*xs: Any) -> list[Any]:
    """The arrays at their common dtype, integers and booleans as floats."""
    dtype, weak = promoted(*xs)
    dtype = _wide_inexact(dtype)
    return [cast(x, dtype, weak) for x in xs]


def _wide_inexact(dtype: Any) -> Any:
    """`inexact_dtype`, of 64 bits for integers of 64 outside of `enable_x64` too."""
    wide = dtype.itemsize == 8 and dtypes.is_integer(dtype)
    return dtypes.float64 if wide else inexact_dtype(dtype)


def inexact(x: Any) -> Any:
    """One array as floats or complex numbers, of 64 bits outside of `enable_x64` too."""
    dtype = x.aval.dtype
    return x if dtypes.is_inexact(dtype) else cast(x, _wide_inexact(dtype), x.aval.weak_type)


def one_inexact(name: str, x: Any) -> Any:
    """`inexact` of what `one_array` gives."""
    return inexact(one_array(name, x))


def promote_numeric(*xs: Any) -> list[Any]:
    """The arrays at their common dtype, booleans as int32."""
    dtype, weak = promoted(*xs)
    if dtype == dtypes.bool_:
        dtype = dtypes.int32
    return [cast(x, dtype, weak) for x in xs]


def int_dtype() -> Any:
    """The default integer dtype: int32, or int64 with `enable_x64`."""
    return dtypes.canonical(dtypes.int64)


def float_dtype() -> Any:
    """The default float dtype."""
    return dtypes.canonical(dtypes.float64)


# ------------------------------------------------------------------ shapes
def join_shapes(
    name: str,
    shapes: Sequence[tuple[int, ...]],
    error: type[Exception] = ValueError,
) -> tuple[int, ...]:
    """The shape the operands broadcast to."""
    rank = max([len(s) for s in shapes], default=0)
    out = []
    for i in range(-rank, 0):
        size = 1
        for s in shapes:
            if len(s) >= -i and s[i] != 1:
                if size not in (1, s[i]):
                    how = f"{name} got incompatible" if error is TypeError else "Incompatible"
                    raise error(
                        f"{how} shapes for broadcasting: "
                        f"{', '.join(map(str, shapes))}. Incompatible shapes for broadcasting: "
                        "sizes, compared from the last axis on, must be equal or 1. Add axes with "
                        "x[:, None] or reshape."
                    )
                size = s[i]
        out.append(size)
    return tuple(out)


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` repeated to `shape`, to which its own must broadcast."""
    own = x.aval.shape
    if own == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))


def promote_shapes(name: str, *xs: Any, any_rank: bool = False) -> list[Any]:
    """The arrays at their common shape; those without dimensions stay as they are. With `any_rank`
    (of `where`) whatever `numpy_rank_promotion` says. Shapes that do not broadcast raise TypeError,
    as lax has it; ValueError with `any_rank` and where they have different numbers of axes."""
    shapes = [x.aval.shape for x in xs]
    first = ()
    for s in shapes:
        if s:
            if first and s != first:
                break
            first = s
    else:
        return list(xs)
    if not any_rank:
        check_ranks(name, shapes)
    like_lax = not any_rank and len({len(s) for s in shapes if s}) == 1
    shape = join_shapes(name, shapes, TypeError if like_lax else ValueError)
    if not any_rank and config.jax_form() and not current_trace().at_once:
        return [of_rank(x, len(shape)) for x in xs]
    return [broadcast(x, shape) if x.aval.shape else x for x in xs]


def of_rank(x: Any, ndim: int) -> Any:
    """`x` with so many axes, if it has any: of size 1 in front of its own."""
    own = x.aval.shape
    if not own or len(own) == ndim:
        return x
    first = ndim - len(own)
    return broadcast_in_dim(x, (1,) * first + own, tuple(range(first, ndim)))


def check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """What `numpy_rank_promotion` says of operands with axes, but not equally many."""
    if config.numpy_rank_promotion.value == "allow":
        return
    ranks = {len(s) for s in shapes if s}
    if len(ranks) < 2:
        return
    told = " ".join(map(str, shapes))
    if config.numpy_rank_promotion.value == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {told} and with the "
            "config option jax_numpy_rank_promotion='raise'. Add the missing axes with x[None] or "
            "reshape."
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {told}. Set the config "
        "option jax_numpy_rank_promotion='allow' to disable this warning.",
        UserWarning,
        stacklevel=4,
    )


def check_loop_ranks(name: str, signature: str | None, xs: Sequence[Any], cores: list[int]) -> None:
    """What `numpy_rank_promotion` says of operands with different numbers of axes beside those at
    the end, so many as `cores` has for each, that are a function's own."""
    if config.numpy_rank_promotion.value == "allow":
        return
    shapes = [x.aval.shape for x in xs]
    if len({len(s) - core for s, core in zip(shapes, cores) if s}) < 2:
        return
    told = (
        f"operands with shapes {shapes} require rank promotion for {name} with signature "
        f"{signature}. Set the config option jax_numpy_rank_promotion='allow' to disable this "
        "message, or add the missing axes with x[None] or reshape."
    )
    if config.numpy_rank_promotion.value == "raise":
        raise ValueError(told)
    warnings.warn(told, UserWarning, stacklevel=4)


def canonical_axis(
    axis: Any, ndim: int, name: str = "axis", error: type[Exception] = ValueError
) -> int:
    """`axis` counted from the front; `error` when there is no such axis."""
    try:
        if isinstance(axis, Tracer):
            axis = int(axis)  # which says ConcretizationTypeError where it is not known
        axis = operator.index(axis)
    except TypeError as cause:
        if isinstance(axis, Tracer):
            raise
        raise TypeError(f"{name}: an axis must be an integer, got {axis!r}.") from cause
    if not -ndim <= axis < ndim:
        raise error(f"{name}: axis {axis} is out of bounds for array of dimension {ndim}.")
    return axis + ndim if axis < 0 else axis


def canonical_axes(
    axis: Any,
    ndim: int,
    name: str = "axis",
    error: type[Exception] = ValueError,
    twice: type[Exception] = ValueError,
) -> tuple[int, ...]:
    """None, an int or several as a tuple of distinct axes counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (Array, np.ndarray)) and axis.ndim:
        axis = tuple(np.asarray(axis).tolist())
    if isinstance(axis, Iterable) and not isinstance(axis, (str, Array, np.ndarray)):
        axes = tuple([canonical_axis(a, ndim, name, error) for a in axis])
    else:
        axes = (canonical_axis(axis, ndim, name, error),)
    if len(set(axes)) != len(axes):
        raise twice(f"{name}: duplicate value in 'axis': {axis} has a repeated axis.")
    return axes


def reduced_axes(
    axis: Any, ndim: int, name: str, error: type[Exception] = ValueError
) -> tuple[int, ...]:
    """`canonical_axes` of a reduction that takes no mapped axes by their names:
    NotImplementedError for such, NameError for a name that is not bound."""
    names, _ = names_and_axes(axis)
    if names:
        if name not in ("all", "any", "prod"):  # for which JAX has none
            axis_size(names[0])  # raises NameError
        raise NotImplementedError(
            f"{name}: no reductions over the named axis {names[0]!r}. Use lax.psum, lax.pmax or "
            "lax.pmin."
        )
    return canonical_axes(axis, ndim, name, error)


def names_and_axes(axis: Any) -> tuple[tuple, Any]:
    """Of the axes of a reduction those that are mapped ones, by their names, and the others."""
    if type(axis) is str:
        return (axis,), ()
    if type(axis) in (list, tuple):
        names = tuple([part for part in axis if isinstance(part, str)])
        if names:
            return names, tuple([part for part in axis if not isinstance(part, str)])
    return (), axis


def _size(n: Any, name: str) -> Any:
    """A part of a shape argument that is no Python integer, as one or as an expression."""
    try:
        return index_of(n)
    except TypeError as error:
        told = f"Shapes must be 1D sequences of concrete values of integer type, got {n!r}"
        if not isinstance(n, Tracer):
            raise TypeError(f"{told} of type {type(n).__name__} for {name}.") from error
        if getattr(error, "final", False):  # by the function called
            raise
        raise TypeError(
            f"{told}.\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
            f"subfunctions. {error}"
        ) from None


def canonical_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """A shape argument (an integer or several) as a tuple of non-negative Python integers."""
    if type(shape) is int:
        shape = (shape,)
    elif isinstance(shape, (Array, np.ndarray, np.generic)):
        shape = (shape,) if not shape.ndim else tuple(np.asarray(shape).tolist())
    elif not isinstance(shape, Iterable):
        shape = (shape,)
    out = []
    for n in shape:
        if type(n) is not int:
            n = _size(n, name)
        if n < 0:
            raise TypeError(
                f"{name}: shape must have every element be nonnegative, got {tuple(shape)}."
            )
        out.append(n)
    count = math.prod(out)
    if type(count) is int:
        dtypes.check_elements(count, name)
    return tuple(out)


def refuse(name: str, **options: Any) -> None:
    """Raise NotImplementedError for each option that is given."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise NotImplementedError(
                f"The {option!r} argument to jnp.{name} is not supported: arrays are immutable, "
                "results are always returned. Leave it out."
            )
