"""Dtypes: the extended types, canonical widths, and the promotion lattice with weak types.

Everything above the base layer uses it. The lattice is the one JAX documents: its order decides
the dtype of every mixed operation, so a changed edge changes user-visible results.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from numjet.base import config, errors
from numjet.core.memo import remembered

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = (np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
# Dtypes of a byte an element or less, which are computed with in wider ones (`core.narrow`).
_OF_BITS = [n for n in (1, 2, 4) if hasattr(ml_dtypes, f"int{n}")]  # 1 from ml_dtypes 0.6 on
NARROW_SIGNED = tuple([np.dtype(getattr(ml_dtypes, f"int{n}")) for n in _OF_BITS])
NARROW_UNSIGNED = tuple([np.dtype(getattr(ml_dtypes, f"uint{n}")) for n in _OF_BITS])
NARROW_FLOATS = tuple([
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
        "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
])  # fmt: skip
NARROW = frozenset([*NARROW_SIGNED, *NARROW_UNSIGNED, *NARROW_FLOATS])
# The dtype of tangents of integers and booleans: no information at all.
float0 = np.dtype([("float0", np.void, 0)])
# What is said to whoever computes with one.
NO_OPERATIONS = (
    "float0s do not support any operations by design: such an array is the derivative of integers, "
    "which has no values. numpy.zeros_like(x, dtype=float) gives zeros to compute with."
)


class extended(np.generic):  # noqa: N801 - a public scalar-type name
    """Abstract scalar type of the dtypes that NumPy does not know: those of PRNG keys."""


class prng_key(extended):  # noqa: N801 - a public scalar-type name
    """Abstract scalar type of PRNG keys, for `issubdtype(x.dtype, dtypes.prng_key)`."""


class KeyDType:
    """The dtype of a PRNG key array of one implementation: opaque elements of a few uint32 words.

    `impl` is the implementation's name, or the object that `extend.random.define_prng_impl` made,
    which has a `tag` and a `key_shape`. Arrays of keys of two words (`threefry2x32`) are stored as
    unsigned 64-bit numbers, the first word in the low half; other keys as plain bytes (`storage`).
    """

    __slots__ = ("name", "impl", "key_shape", "itemsize", "storage")
    name: str
    impl: Any
    key_shape: tuple[int, ...]
    itemsize: int
    storage: np.dtype
    kind = "K"
    char = "K"
    type = prng_key
    _known: dict[Any, KeyDType] = {}
    # name -> the tag that dtypes are written with, and the shape of a key.
    BUILT_IN = {
        "threefry2x32": ("fry", (2,)), "rbg": ("rbg", (4,)), "unsafe_rbg": ("urbg", (4,)),
    }  # fmt: skip

    def __new__(cls, impl: Any = "threefry2x32") -> KeyDType:
        found = cls._known.get(impl)
        if found is None:
            tag, shape = cls.BUILT_IN[impl] if isinstance(impl, str) else (impl.tag, impl.key_shape)
            found = cls._known[impl] = object.__new__(cls)
            found.impl, found.name, found.key_shape = impl, f"key<{tag}>", tuple(shape)
            found.itemsize = 4 * math.prod(shape)
            found.storage = (
                uint64 if impl == "threefry2x32" else np.dtype((np.void, found.itemsize))
            )
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
    **{d: d.name.replace("uint", "u").replace("int", "i") for d in NARROW_SIGNED + NARROW_UNSIGNED},
    **{d: d.name.replace("float", "f") for d in NARROW_FLOATS},
    float0: "float0",
}


def short_name(dtype: Any) -> str:
    """`f32` for float32, as jaxprs print it."""
    return SHORT_NAMES.get(dtype) or dtype.name


def long_name(dtype: Any) -> str:
    """`float32`, as types and messages print it."""
    if type(dtype) is KeyDType:
        return str(dtype)
    return "float0" if dtype == float0 else dtype.name


def physical(dtype: Any) -> np.dtype:
    """The NumPy dtype in which arrays of `dtype` are stored."""
    return dtype.storage if type(dtype) is KeyDType else dtype


_NARROW = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
WIDE = frozenset(_NARROW)  # those of 64 bits
_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}


def named(dtype: Any) -> Any:
    """What a dtype argument that is no np.dtype says: a scalar type, a name, something with a
    dtype. Raises ValueError for an array, whose dtype may be meant or not (TypeError: NumPy's)."""
    if isinstance(dtype, type):
        return dtype
    found = getattr(dtype, "dtype", dtype)
    if found is not dtype and hasattr(dtype, "__array__") and not isinstance(dtype, np.generic):
        raise (TypeError if isinstance(dtype, np.ndarray) else ValueError)(
            "An array was passed as a dtype argument, which is no longer supported. Pass "
            "array.dtype."
        )
    return found


def native(dtype: Any) -> Any:
    """`dtype` as an np.dtype of the machine's byte order, of the width that it names. Python's own
    types are what `canonical` makes of them with `enable_x64`."""
    if type(dtype) is KeyDType:
        return dtype
    if not isinstance(dtype, np.dtype):
        dtype = np.dtype(named(dtype))
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def canonical(dtype: Any) -> Any:
    """`dtype` as an np.dtype, 64-bit types narrowed to 32 bits unless `enable_x64`."""
    if type(dtype) is KeyDType:
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        dtype = _PYTHON[dtype]
    elif not isinstance(dtype, np.dtype):
        dtype = np.dtype(named(dtype))
    if dtype.byteorder == ">" or not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    if dtype in _NARROW and not config.enable_x64.value:
        return _NARROW[dtype]
    return dtype


def requested(dtype: Any, name: str, level: int = 4) -> Any:
    """`canonical(dtype)` of what a user asked `name` for; warns when that was 64 bits in vain.
    level: how many calls up the user's line is. TypeError for what arrays cannot hold."""
    found = canonical(dtype)
    if found not in SHORT_NAMES and type(found) is not KeyDType:
        check_supported(found)
    if found not in _NARROW.values() or isinstance(dtype, type) and dtype in _PYTHON:
        return found
    wanted = dtype if type(dtype) is np.dtype else np.dtype(named(dtype))
    if found.itemsize < wanted.itemsize:
        warnings.warn(
            f"Explicitly requested dtype {wanted.name} requested in {name} is not available, and "
            f"will be truncated to dtype {found.name}. Turn on 64 bits with "
            f"numjet.config.update('enable_x64', True), or ask for {found.name}.",
            UserWarning,
            stacklevel=level,
        )
    return found


# No machine has as many elements, and the addresses behind them have no 64 bits.
MOST_ELEMENTS = 1 << 59


def check_elements(count: int, name: str) -> None:
    """Raise MemoryError where an array of `count` elements cannot be."""
    if count >= MOST_ELEMENTS:
        raise MemoryError(f"{name}: an array of {count} elements does not fit into memory.")


def check_supported(dtype: np.dtype) -> None:
    """Raise TypeError for NumPy dtypes that arrays here cannot hold (object, str, datetime)."""
    if dtype not in SHORT_NAMES:
        raise TypeError(
            f"JAX only supports number, bool, and string dtypes: arrays of dtype {dtype} are not "
            "supported, strings stay with NumPy. Convert to a numeric or boolean dtype first."
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


def refuse_keys(name: str, dtype: Any) -> None:
    """Raise TypeError for PRNG keys, which the function `name` does not take."""
    if type(dtype) is KeyDType:
        raise TypeError(f"Cannot interpret '{dtype}' as a data type: {name} takes no keys.")


_FLOATING = frozenset([float16, bfloat16, float32, float64, *NARROW_FLOATS])
_COMPLEX = frozenset([complex64, complex128])
_INEXACT = _FLOATING | _COMPLEX
_INTEGER = frozenset([
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, *NARROW_SIGNED, *NARROW_UNSIGNED
])  # fmt: skip
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


def kind(dtype: Any) -> str:
    """NumPy's letter of a dtype's kind: "b", "i", "u", "f", "c", also of the narrow dtypes."""
    return _NARROW_KINDS.get(dtype) or dtype.kind


def bits(dtype: Any) -> int:
    """How many bits an element has: 4 for int4, which is stored as a byte."""
    return _BITS.get(dtype) or dtype.itemsize * 8


_BITS = {
    **{np.dtype(getattr(ml_dtypes, f"{s}int{n}")): n for n in _OF_BITS for s in ("", "u")},
    NARROW_FLOATS[0]: 4,
}
_NARROW_KINDS = {
    **dict.fromkeys(NARROW_FLOATS, "f"),
    **dict.fromkeys(NARROW_SIGNED, "i"),
    **dict.fromkeys(NARROW_UNSIGNED, "u"),
}
iinfo, finfo = ml_dtypes.iinfo, ml_dtypes.finfo  # of every dtype


def issubdtype(a: Any, b: Any) -> bool:
    """`np.issubdtype` that also knows the narrow dtypes, bfloat16 and PRNG keys."""
    if is_extended(a):
        if type(b) is KeyDType:
            return a is b
        return isinstance(b, type) and issubclass(a.type if type(a) is KeyDType else a, b)
    if is_extended(b):
        return False
    kinds = _HIERARCHY.get(a)
    return bool(np.issubdtype(a, b)) if kinds is None else b in kinds


def _hierarchy() -> dict[Any, frozenset]:
    """What NumPy's hierarchy of types would say of the dtypes that it takes for structures."""
    found = {}
    for kinds, of in (
        ((np.inexact, np.floating), (bfloat16, *NARROW_FLOATS)),
        ((np.integer, np.signedinteger), NARROW_SIGNED),
        ((np.integer, np.unsignedinteger), NARROW_UNSIGNED),
    ):
        for dtype in of:
            above = frozenset([np.generic, np.number, *kinds, dtype, dtype.type])
            found[dtype] = found[dtype.type] = above
    return found


_HIERARCHY = _hierarchy()


# ------------------------------------------------------------------ the promotion lattice
# Each dtype, and the weak kinds "i*", "f*", "c*" of Python scalars, with the ones directly above.
_ABOVE: dict[Any, tuple] = {
    bool_: ("i*",),
    "i*": (uint8, int8, *NARROW_SIGNED, *NARROW_UNSIGNED),
    uint8: (uint16, int16),
    uint16: (uint32, int32),
    uint32: (uint64, int64),
    uint64: ("f*",),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: ("f*",),
    "f*": (bfloat16, float16, *NARROW_FLOATS, "c*"),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    **dict.fromkeys(NARROW, ()),
    "c*": (complex64,),
    complex64: (complex128,),
    complex128: (),
}
_WEAK_DTYPE = {"i*": int64, "f*": float64, "c*": complex128}


@functools.cache
def _upper(node: Any) -> frozenset:
    if node not in _ABOVE:
        check_supported(node)
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
    raise errors.TypePromotionError(
        f"Input dtypes {_written(a)} and {_written(b)} have no available implicit dtype promotion "
        "path: integers and floats of 8 bits or fewer join with few others. Convert one with "
        ".astype()."
    )


def _written(node: Any) -> str:
    weak = {"i*": "int", "f*": "float", "c*": "complex"}
    return f"'{weak.get(node) if isinstance(node, str) else node}'"


def _node(dtype: Any, weak: bool) -> Any:
    if weak and dtype != bool_:
        return "i*" if dtype in _INTEGER else "f*" if dtype in _FLOATING else "c*"
    return dtype


@remembered("promotions", 4096)
def _promote(x64: bool, mode: str, pairs: tuple) -> tuple[Any, bool]:
    dtypes = [d for d, _ in pairs]
    if any(type(d) is KeyDType for d in dtypes):
        if all(d is dtypes[0] for d in dtypes):
            return dtypes[0], False
        raise ValueError(
            f"PRNG keys do not promote with other dtypes: got {dtypes}; a key's is not a valid "
            "dtype for JAX type promotion. Take random.key_data(key) for the bits."
        )
    if any(d == float0 for d in dtypes):
        if all(d == float0 for d in dtypes):
            return float0, False
        raise TypeError(f"{NO_OPERATIONS} It does not promote with other dtypes: got {dtypes}.")
    node = functools.reduce(_join, [_node(d, w) for d, w in pairs])
    if mode == "strict" and {d for d, w in pairs if not w} not in (set(), {node}):
        given = tuple(dict.fromkeys(f"{d}*" if w else str(d) for d, w in pairs))
        raise errors.TypePromotionError(
            f"Input dtypes {given} have no available implicit dtype promotion path when "
            "jax_numpy_dtype_promotion=strict (an asterisk marks weak types). Convert explicitly "
            "with .astype()."
        )
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


def join_standard(x: Any, y: Any) -> Any:
    """The dtype of two strong ones together, whatever `numpy_dtype_promotion` says."""
    return _promote(config.enable_x64.value, "standard", ((x, False), (y, False)))[0]


def promote_wide(*pairs: tuple[Any, bool]) -> Any:
    """`promote`'s dtype for questions about dtypes alone: those of 64 bits are not narrowed."""
    wide = config.enable_x64.value or any(d in _NARROW for d, _ in pairs)
    return _promote(wide, config.numpy_dtype_promotion.value, pairs)[0]


def join(x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    """The dtype and weak type of products of two operands, which is one of theirs, whatever
    `numpy_dtype_promotion` says: of integers the wider one's, of one width the signed one's, and
    bfloat16 of the two of 16 bits. Weak ones and 8-bit floats join as in `promote`."""
    (a, _), (b, _) = x, y
    if not x[1] and not y[1] and a != b:
        if is_integer(a) and is_integer(b):
            return max(a, b, key=lambda d: (bits(d), kind(d) == "i")), False
        if {a, b} == {float16, bfloat16}:
            return bfloat16, False
        for one, other in ((a, b), (b, a)):
            if one in NARROW and is_integer(one) and is_inexact(other) and other not in NARROW:
                return other, False
    return _promote(config.enable_x64.value, "standard", (x, y))
