"""Dtypes: the extended types, canonical widths, and the promotion lattice with weak types.

Everything above the base layer uses it. The lattice is the one JAX documents: its order decides
the dtype of every mixed operation, so a changed edge changes user-visible results.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from numjet.base import config, errors

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = (np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
# The dtype of tangents of integers and booleans: no information at all.
float0 = np.dtype([("float0", np.void, 0)])


class extended(np.generic):  # noqa: N801 - a public scalar-type name
    """Abstract scalar type of the dtypes that NumPy does not know: those of PRNG keys."""


class prng_key(extended):  # noqa: N801 - a public scalar-type name
    """Abstract scalar type of PRNG keys, for `issubdtype(x.dtype, dtypes.prng_key)`."""


class KeyDType:
    """The dtype of a PRNG key array: opaque elements, stored as one unsigned 64-bit word each.

    A key of implementation `threefry2x32` is two uint32 words, the first in the low half.
    """

    __slots__ = ("name", "impl")
    name: str
    impl: str
    itemsize = 8
    kind = "K"
    char = "K"
    type = prng_key
    _known: dict[str, KeyDType] = {}

    def __new__(cls, impl: str = "threefry2x32") -> KeyDType:
        found = cls._known.get(impl)
        if found is None:
            found = cls._known[impl] = object.__new__(cls)
            found.impl = impl
            found.name = {"threefry2x32": "key<fry>"}.get(impl, f"key<{impl}>")
        return found

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return KeyDType, (self.impl,)


key_dtype = KeyDType()

SHORT_NAMES = {
    bool_: "bool",
    int8: "i8",
    int16: "i16",
    int32: "i32",
    int64: "i64",
    uint8: "u8",
    uint16: "u16",
    uint32: "u32",
    uint64: "u64",
    float16: "f16",
    bfloat16: "bf16",
    float32: "f32",
    float64: "f64",
    complex64: "c64",
    complex128: "c128",
    float8_e4m3fn: "f8_e4m3fn",
    float8_e5m2: "f8_e5m2",
    float0: "float0",
}


def short_name(dtype: Any) -> str:
    """`f32` for float32, as jaxprs print it."""
    return SHORT_NAMES.get(dtype) or dtype.name


def physical(dtype: Any) -> np.dtype:
    """The NumPy dtype in which arrays of `dtype` are stored."""
    return uint64 if type(dtype) is KeyDType else dtype


_NARROW = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}


def canonical(dtype: Any) -> Any:
    """`dtype` as an np.dtype, 64-bit types narrowed to 32 bits unless `enable_x64`."""
    if type(dtype) is KeyDType:
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        dtype = _PYTHON[dtype]
    elif not isinstance(dtype, np.dtype):
        dtype = np.dtype(dtype if isinstance(dtype, type) else getattr(dtype, "dtype", dtype))
    if dtype.byteorder == ">" or not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    if dtype in _NARROW and not config.enable_x64.value:
        return _NARROW[dtype]
    return dtype


def check_supported(dtype: np.dtype) -> None:
    """Raise TypeError for NumPy dtypes that arrays here cannot hold (object, str, datetime)."""
    if dtype not in SHORT_NAMES:
        raise TypeError(
            f"Arrays of dtype {dtype} are not supported. Convert to a numeric or boolean "
            "dtype first (NumPy arrays of objects, strings and dates stay with NumPy)."
        )


def is_inexact(dtype: Any) -> bool:
    """True for floating and complex dtypes."""
    return dtype in _INEXACT


def is_floating(dtype: Any) -> bool:
    return dtype in _FLOATING


def is_complex(dtype: Any) -> bool:
    return dtype in _COMPLEX


def is_integer(dtype: Any) -> bool:
    return dtype in _INTEGER


def is_bool(dtype: Any) -> bool:
    return dtype == bool_


def is_key(dtype: Any) -> bool:
    return type(dtype) is KeyDType


_FLOATING = frozenset([float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2])
_COMPLEX = frozenset([complex64, complex128])
_INEXACT = _FLOATING | _COMPLEX
_INTEGER = frozenset([int8, int16, int32, int64, uint8, uint16, uint32, uint64])
_REAL_OF = {complex64: float32, complex128: float64}
_COMPLEX_OF = {
    float32: complex64,
    float64: complex128,
    complex64: complex64,
    complex128: complex128,
    float16: complex64,
    bfloat16: complex64,
}


def real_of(dtype: Any) -> Any:
    """The dtype of the real part."""
    return _REAL_OF.get(dtype, dtype)


def complex_of(dtype: Any) -> Any:
    """The complex dtype whose parts hold `dtype`."""
    return _COMPLEX_OF[dtype]


@functools.cache
def tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents of values of `dtype`: itself for inexact, float0 for the rest."""
    return dtype if is_inexact(dtype) else float0


def is_extended(x: Any) -> bool:
    """Whether `x` is a dtype that NumPy does not know, or a scalar type of such."""
    return type(x) is KeyDType or (isinstance(x, type) and issubclass(x, extended))


def issubdtype(a: Any, b: Any) -> bool:
    """`np.issubdtype` that also knows bfloat16, float8 and PRNG keys."""
    if is_extended(a):
        if type(b) is KeyDType:
            return a is b
        return isinstance(b, type) and issubclass(a.type if type(a) is KeyDType else a, b)
    if is_extended(b):
        return False
    if a in (bfloat16, float8_e4m3fn, float8_e5m2) or a in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    ):
        if isinstance(b, type) and b in (np.floating, np.inexact, np.number, np.generic):
            return True
        return (
            not isinstance(b, type)
            and np.dtype(a) == b
            or (
                isinstance(b, type)
                and issubclass(b, np.generic) is not False
                and np.dtype(a).type is b
            )
        )
    return bool(np.issubdtype(a, b))


# ------------------------------------------------------------------ the promotion lattice
# Each dtype, and the weak kinds "i*", "f*", "c*" of Python scalars, with the ones directly above.
_ABOVE: dict[Any, tuple] = {
    bool_: ("i*",),
    "i*": (uint8, int8),
    uint8: (uint16, int16),
    uint16: (uint32, int32),
    uint32: (uint64, int64),
    uint64: ("f*",),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: ("f*",),
    "f*": (bfloat16, float16, float8_e4m3fn, float8_e5m2, "c*"),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    float8_e4m3fn: (),
    float8_e5m2: (),
    "c*": (complex64,),
    complex64: (complex128,),
    complex128: (),
}
_WEAK_DTYPE = {"i*": int64, "f*": float64, "c*": complex128}


@functools.cache
def _upper(node: Any) -> frozenset:
    found = {node}
    for above in _ABOVE[node]:
        found |= _upper(above)
    return frozenset(found)


@functools.cache
def _join(a: Any, b: Any) -> Any:
    common = _upper(a) & _upper(b)
    for node in common:
        if common <= _upper(node):
            return node
    raise TypeError(f"dtypes {a} and {b} have no implicit promotion. Convert one with .astype().")


def _node(dtype: Any, weak: bool) -> Any:
    if weak and dtype != bool_:
        return "i*" if dtype in _INTEGER else "f*" if dtype in _FLOATING else "c*"
    return dtype


@functools.cache
def _promote(x64: bool, mode: str, pairs: tuple) -> tuple[Any, bool]:
    dtypes = [d for d, _ in pairs]
    if any(type(d) is KeyDType for d in dtypes):
        if all(d is dtypes[0] for d in dtypes):
            return dtypes[0], False
        raise TypeError(
            f"PRNG keys do not promote with other dtypes: got {dtypes}. Take "
            "random.key_data(key) for the bits."
        )
    if any(d == float0 for d in dtypes):
        if all(d == float0 for d in dtypes):
            return float0, False
        raise TypeError(f"float0 does not promote with other dtypes: got {dtypes}.")
    if mode == "strict":
        strong = {d for d, w in pairs if not w}
        if len(strong) > 1:
            raise errors.TypePromotionError(
                f"numpy_dtype_promotion='strict' forbids mixing {sorted(map(str, strong))}. "
                "Convert explicitly with .astype()."
            )
    node = functools.reduce(_join, [_node(d, w) for d, w in pairs])
    weak = isinstance(node, str)
    if all(w for _, w in pairs):
        # Only weak operands: the widest of their own dtypes within the joined kind.
        own = [d for d, w in pairs if _node(d, w) == node]
        dtype = functools.reduce(_join, own) if own else _WEAK_DTYPE[node]
        if isinstance(dtype, str):
            dtype = _WEAK_DTYPE[dtype]
        return dtype if x64 else _NARROW.get(dtype, dtype), True
    dtype = _WEAK_DTYPE[node] if weak else node
    return dtype if x64 else _NARROW.get(dtype, dtype), weak


def promote(*pairs: tuple[Any, bool]) -> tuple[Any, bool]:
    """Join (dtype, weak_type) pairs in the lattice: the result's dtype and weak type."""
    return _promote(config.enable_x64.value, config.numpy_dtype_promotion.value, pairs)


def join(*pairs: tuple[Any, bool]) -> tuple[Any, bool]:
    """`promote` for operations that take operands of several dtypes whatever
    `numpy_dtype_promotion` says: `dot_general` is no NumPy function."""
    return _promote(config.enable_x64.value, "standard", pairs)
