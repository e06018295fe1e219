"""Dtypes as users write them: callable scalar types (`numpy.float32(3)`), `finfo`, `iinfo`,
`issubdtype`, `result_type` and others.

Scalar types compare and hash like NumPy's and work wherever a dtype is wanted. Re-exported by
`numjet.numpy` and `numjet.dtypes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from numjet.api.placement.computed import computed_on
from numjet.base.config import numeric_checks
from numjet.core import dtypes, hooks
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import DimExpr
from numjet.core.evaluate import another
from numjet.numpy.promote import apart, canonical_dtype, cast, converted


class ScalarMeta(type):
    """The type of the scalar types; `convert` makes an Array of a container (numpy.creation)."""

    dtype: np.dtype
    convert: Callable[[Any, np.dtype, bool], Any]

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: Any) -> bool:
        return (
            cls is other
            or cls.dtype.type is other
            or (isinstance(other, np.dtype) and other == cls.dtype)
        )

    def __ne__(cls, other: Any) -> bool:
        return not cls == other

    def __call__(cls, x: Any) -> Any:
        dtype = dtypes.requested(cls.dtype, cls.__name__)
        if isinstance(x, Array):
            return cast(x, dtype)
        if type(x) is DimExpr:
            return cast(as_array(x), dtype)
        if x is None:
            raise ValueError(f"{cls.__name__}(): None is not a valid value. Pass a number.")
        of_numpy = isinstance(x, (np.generic, np.ndarray)) and x.dtype.kind != "O"
        if not of_numpy and type(x) not in (bool, int, float, complex, str):
            return ScalarMeta.convert(x, dtype, True)
        if hooks.guards is not None:
            hooks.guards.made("__call__")
        value = x.astype(dtype) if of_numpy else _scalar(x, dtype)
        value = np.asarray(value)
        made = ArrayImpl(value, ShapedArray(value.shape, dtype))
        return hooks.computed_here(made) if numeric_checks[0] else made

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)


def _scalar(x: Any, dtype: np.dtype) -> np.ndarray:
    if isinstance(x, str):
        # ml_dtypes' own reading of text that is no number ends the process; of its dtypes
        # float8_e5m2 has NumPy's kind of floats.
        if dtype.isbuiltin != 1:
            raise TypeError(f"{dtype.name}(): {x!r} is text. Pass a number.")
        return np.asarray(dtype.type(x))
    if type(x) is complex and dtype.kind not in "bc":
        raise TypeError(f"{dtype.name}(): {x!r} is complex. Take .real first.")
    if type(x) in (float, complex) and not dtypes.is_integer(dtype):
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype)
    return np.asarray(x, dtype)


_MADE: dict[Any, Any] = {}
_WIDE = tuple(map(np.dtype, (np.int64, np.uint64, np.float64, np.complex128)))


def _scalar_type(scalar: Any, name: str | None = None) -> Any:
    dtype = np.dtype(scalar)
    half = " Arrays have half as many bits unless `enable_x64` is on." if dtype in _WIDE else ""
    doc = f"""The dtype {dtype.name}; calling it makes an Array of that dtype.

    x: a number, text of one, nested sequences of numbers, or an array, which is converted as by
    `astype`. OverflowError for integers that NumPy's integer dtypes do not hold, TypeError for
    complex numbers as other dtypes.{half}
    """
    body = {"dtype": dtype, "__module__": "numjet.numpy", "__doc__": doc}
    made = ScalarMeta(name or dtype.name, (), body)
    _MADE.setdefault(dtype, made)
    return made


bool_ = _scalar_type(np.bool_, "bool")
int8, int16, int32, int64 = (_scalar_type(t) for t in (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = (
    _scalar_type(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64)
)
float16, float32, float64 = (_scalar_type(t) for t in (np.float16, np.float32, np.float64))
complex64, complex128 = _scalar_type(np.complex64), _scalar_type(np.complex128)
bfloat16 = _scalar_type(ml_dtypes.bfloat16)
float8_e4m3fn = _scalar_type(ml_dtypes.float8_e4m3fn)
float8_e5m2 = _scalar_type(ml_dtypes.float8_e5m2)
float8_e3m4 = _scalar_type(ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar_type(ml_dtypes.float8_e4m3)
float8_e8m0fnu = _scalar_type(ml_dtypes.float8_e8m0fnu)
float8_e4m3b11fnuz = _scalar_type(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fnuz = _scalar_type(ml_dtypes.float8_e4m3fnuz)
float8_e5m2fnuz = _scalar_type(ml_dtypes.float8_e5m2fnuz)
float4_e2m1fn = _scalar_type(ml_dtypes.float4_e2m1fn)
if hasattr(ml_dtypes, "int1"):  # from version 0.6 on; `numjet.numpy.__getattr__` says so
    int1, uint1 = _scalar_type(ml_dtypes.int1), _scalar_type(ml_dtypes.uint1)
int2, int4 = _scalar_type(ml_dtypes.int2), _scalar_type(ml_dtypes.int4)
uint2, uint4 = _scalar_type(ml_dtypes.uint2), _scalar_type(ml_dtypes.uint4)
float6_e2m3fn = _scalar_type(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar_type(ml_dtypes.float6_e3m2fn)
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

generic, number, integer = np.generic, np.number, np.integer
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating
flexible, character, object_ = np.flexible, np.character, np.object_
dtype = np.dtype


class finfo:  # noqa: N801 - NumPy's name
    """The limits of a floating dtype; of a complex one those of its parts.

    dtype: a dtype, an array or a scalar. Has `bits`, `eps`, `max`, `min`, `tiny`,
    `smallest_normal`, ... as numpy.finfo; Python numbers for the array standard's dtypes. Knows
    bfloat16 and the narrow floats. ValueError for integers: use `iinfo`.

    >>> jnp.finfo(jnp.bfloat16).bits, jnp.finfo(jnp.float32).eps == 2.0**-23
    (16, True)
    """

    def __init__(self, dtype: Any) -> None:
        # NumPy's scalar types have an attribute of that name too, which is no dtype.
        named = isinstance(dtype, type) and issubclass(dtype, np.generic)
        info = ml_dtypes.finfo(dtype if named else getattr(dtype, "dtype", dtype))
        self._info = info
        self.dtype, self.bits = info.dtype, int(info.bits)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_info":
            raise AttributeError(name)
        value = getattr(self._info, name)
        return float(value) if isinstance(value, np.floating) else value

    def __repr__(self) -> str:
        return repr(self._info)

    __str__ = __repr__


iinfo = ml_dtypes.iinfo
ComplexWarning = np.exceptions.ComplexWarning


def _as_type(x: Any) -> Any:
    """A dtype-like as np.dtype, abstract NumPy classes and key dtypes as they are."""
    if type(x) is ScalarMeta or isinstance(x, ScalarMeta):
        return x.dtype
    if dtypes.is_extended(x):
        return x
    if isinstance(x, type) and issubclass(x, np.generic) and x.__mro__[1] is not np.generic:
        # A concrete scalar type has a dtype of its own; abstract ones (np.floating) have none.
        try:
            return np.dtype(x) if np.dtype(x).type is x else x
        except TypeError:
            return x
    if isinstance(x, type) and (x is np.generic or issubclass(x, np.generic)):
        return x if x in (np.generic, np.number, np.flexible) else np.dtype(x)
    return x


_ABSTRACT = (
    np.generic,
    np.number,
    np.integer,
    np.signedinteger,
    np.unsignedinteger,
    np.inexact,
    np.floating,
    np.complexfloating,
    np.flexible,
    np.character,
    np.void,
    dtypes.extended,
    dtypes.prng_key,
)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype `arg1` is, or lies below, `arg2` in NumPy's hierarchy of types.

    arg1, arg2: dtypes or abstract types such as `floating`. Knows what NumPy does not: bfloat16,
    the narrow floats and integers, PRNG keys.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    a = arg1 if arg1 in _ABSTRACT else _as_type(arg1)
    if dtypes.is_extended(a) or dtypes.is_extended(arg2):
        return dtypes.issubdtype(a, arg2)
    if not (isinstance(a, type) and a in _ABSTRACT):
        a = np.dtype(a)
    if arg2 in _ABSTRACT:
        if a in dtypes._HIERARCHY:
            return dtypes.issubdtype(a, arg2)
        return bool(np.issubdtype(a, arg2))
    b = np.dtype(_as_type(arg2))
    return a == b


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of a kind, in the array API's words.

    kind: a dtype, 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
    'complex floating', 'numeric', or a tuple of these. ValueError for another name.

    >>> jnp.isdtype(jnp.int8, ("bool", "integral"))
    True
    """
    dtype = np.dtype(_as_type(dtype))
    kinds = kind if isinstance(kind, tuple) else (kind,)
    named = {
        "bool": dtypes.is_bool,
        "signed integer": lambda d: issubdtype(d, np.signedinteger),
        "unsigned integer": lambda d: issubdtype(d, np.unsignedinteger),
        "integral": lambda d: issubdtype(d, np.integer),
        "real floating": lambda d: issubdtype(d, np.floating),
        "complex floating": lambda d: issubdtype(d, np.complexfloating),
        "numeric": lambda d: issubdtype(d, np.number),
    }
    for k in kinds:
        if isinstance(k, str) and k in named:
            if named[k](dtype):
                return True
        else:
            try:
                wanted = np.dtype(_as_type(k))
            except TypeError:
                raise ValueError(
                    f"Unrecognized kind={k!r} of isdtype. Use a dtype or one of {sorted(named)}."
                ) from None
            if wanted == dtype:
                return True
    return False


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether NumPy's rules allow to convert one dtype to another.

    from_, to: dtypes. casting: 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', as in
    numpy.can_cast.

    >>> jnp.can_cast("int32", "float32"), jnp.can_cast("int8", "float32")
    (False, True)
    """
    return bool(np.can_cast(_as_type(from_), np.dtype(_as_type(to)), casting=casting))


_PYTHON = {
    bool: (dtypes.bool_, False),
    int: (dtypes.int64, True),
    float: (dtypes.float64, True),
    complex: (dtypes.complex128, True),
}


def dtype_and_weak(x: Any) -> tuple[Any, bool]:
    """What `x` (array, scalar, dtype or type; None: the default float) contributes to promotion."""
    if x is None:
        return dtypes.canonical(dtypes.float64), False
    if isinstance(x, Array):
        return x.aval.dtype, x.aval.weak_type
    if isinstance(x, type) and x in _PYTHON:
        return _PYTHON[x]
    if type(x) is int:  # of any size
        return dtypes.canonical(dtypes.int64), True
    if type(x) in _PYTHON:
        aval = as_array(x).aval
        return aval.dtype, aval.weak_type
    if type(x) is dtypes.KeyDType:
        return x, False
    if isinstance(x, (str, np.dtype, type)):
        return dtypes.canonical(np.dtype(_as_type(x))), False
    if hasattr(x, "dtype"):
        return dtypes.canonical(x.dtype), bool(getattr(x, "weak_type", False))
    return as_array(x).aval.dtype, False


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, scalars and dtypes promote to.

    args: at least one (ValueError), of dtypes that arrays have (TypeError). return_weak_type_flag:
    the pair of it and whether the result is weak, as Python numbers are. UserWarning for dtypes of
    64 bits that there are not. Differs from NumPy: floats
    win over integers of any width.

    >>> from numjet import dtypes, numpy as jnp
    >>> dtypes.result_type(jnp.int32, 1.0), dtypes.result_type(jnp.int8, jnp.float16)
    (dtype('float32'), dtype('float16'))
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is required.")
    pairs = [dtype_and_weak(x) for x in args]
    for kind, _ in pairs:
        if dtypes.kind(kind) in "SUOMm":
            raise TypeError(
                f"result_type: {kind} is not a valid dtype of arrays; they hold numbers, booleans "
                "and keys."
            )
    for x in args:
        if isinstance(x, str | np.dtype) or isinstance(x, type) and issubclass(x, np.generic):
            dtypes.requested(x, "dtype")  # warns
    found, weak = dtypes.promote(*pairs)
    found = dtypes.canonical(found)
    return (found, weak) if return_weak_type_flag else found


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that two dtypes promote to, by the rules for arrays (see `numjet.numpy`).

    a, b: dtypes, or Python's int, float and complex for its numbers. Unlike NumPy's, integers with
    floats give the float: int32 and float16 are float16. 64 bits are not narrowed.

    >>> jnp.promote_types("int32", "float16"), jnp.promote_types("uint8", "int8")
    (dtype('float16'), dtype('int16'))
    """
    pairs = []
    for x in (a, b):
        weak = isinstance(x, type) and x in (int, float, complex)
        pairs.append(_PYTHON[x] if weak else (np.dtype(_as_type(x)), False))
    return dtypes.promote_wide(*pairs)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype of an array that is asked to have another.

    dtype: anything that names one; those of 64 bits are narrowed without `enable_x64`.
    allow_extended_dtype: let those of keys pass (TypeError otherwise). Result: a NumPy dtype.

    >>> from numjet import dtypes
    >>> dtypes.canonicalize_dtype("float64")
    dtype('float32')
    """
    return dtypes.canonical(_as_type(dtype))


def scalar_type_of(x: Any) -> type:
    """The Python type (bool, int, float, complex) of a value's kind.

    x: an array, scalar or Python number. Raises TypeError for others.

    >>> from numjet import dtypes, numpy as jnp
    >>> dtypes.scalar_type_of(jnp.zeros(2, jnp.bfloat16))
    <class 'float'>
    """
    kind = dtype_and_weak(x)[0] if not isinstance(x, str | bytes) else np.asarray(x).dtype
    if not (kind == dtypes.bool_ or dtypes.is_integer(kind) or dtypes.is_inexact(kind)):
        raise TypeError(
            f"Value {x!r} with dtype {kind} is not a valid JAX array type. Only arrays of numeric "
            "types are supported by JAX."
        )
    if kind == dtypes.bool_:
        return bool
    if dtypes.is_integer(kind):
        return int
    return complex if dtypes.is_complex(kind) else float


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """x as another dtype.

    x: an array or number. dtype: what it becomes; float64 for None. Floats to integers lose the
    fraction and stay within bounds (NaN is 0), complex to real lose the imaginary part, integers to
    narrower ones wrap around; all to bool is != 0. device: where it is placed. copy: an array of
    its own also where nothing changes. NumPy's conversions of floats that do not fit wrap around.

    >>> jnp.astype(jnp.array([1.7, -1.7, 300.0]), jnp.uint8)
    Array([  1,   0, 255], dtype=uint8)
    """
    wanted = canonical_dtype(dtype, "astype", default=dtypes.float64)
    out = converted(as_array(apart(x)), wanted)
    out = another(out) if copy and out is x else out
    return out if device is None else computed_on(out, device)
