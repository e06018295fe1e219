"""The immutable Array: one buffer (or one value still being computed), with NumPy's face.

`Array` is the public type: concrete arrays (`ArrayImpl`) and tracers are instances of it. Its
operators and NumPy methods are installed by the `numpy` layer (`hooks.install`); everything
else lives here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from numjet.base.errors import JaxRuntimeError
from numjet.base.slots import read_only
from numjet.core import dtypes, hooks
from numjet.core.avals import ShapedArray


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of the kinds of devices that arrays here lie on."""

    kDLCPU = 1
    kDLCUDA = 2


def check_truth(aval: Any) -> None:
    """Refuse the truth value of what is not one element."""
    if aval.size != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use "
            "a.any() or a.all()."
            if aval.size
            else "The truth value of an empty array is ambiguous. Use `array.size > 0` to check "
            "that an array is not empty."
        )


def check_index(aval: Any) -> None:
    """Refuse to make a Python index of what is no integer without axes."""
    if aval.shape or dtypes.kind(aval.dtype) not in "iu":
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index. This one is "
            f"{aval.str_short()}."
        )


def check_scalar(aval: Any, kind: str) -> None:
    """Refuse to make a Python number, of class `kind`, of an array with axes."""
    if aval.ndim:
        raise TypeError(
            "Only scalar arrays can be converted to Python scalars; got arr.ndim="
            f"{aval.ndim} ({kind} of {aval.str_short()})."
        )


class Array:
    """An immutable n-dimensional array. Make one with `numjet.numpy.array`, not by calling this.

    `isinstance(x, Array)` holds for concrete arrays and for those that a transformation traces.
    Attributes and methods are those of NumPy's arrays that leave them unchanged, with
    `x.at[i].set(v)` for an updated copy. `shape`, `dtype`, `weak_type`, `aval`, `sharding` and
    `devices()` say what and where it is.

    >>> import numpy as np
    >>> import numjet as nj, numjet.numpy as jnp
    >>> isinstance(jnp.ones(2), nj.Array), isinstance(np.ones(2), nj.Array)
    (True, False)
    """

    __slots__ = ("__weakref__",)
    # NumPy then leaves mixed operators to us instead of looping over our elements.
    __array_priority__ = 100
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes, a tuple of Python integers."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements, NumPy's."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.nbytes

    @property
    def weak_type(self) -> bool:
        """Whether the array takes the dtype of others, as what came of Python's numbers alone does.
        """
        return self.aval.weak_type

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: the array has no dimensions.")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.aval.shape[0]))  # type: ignore[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "JAX arrays are immutable and do not support in-place item assignment. Instead of "
            "x[idx] = y, use x = x.at[idx].set(y) (also .add, .multiply, .min, .max, .apply, "
            ".get)."
        )

    def __delitem__(self, index: Any) -> None:
        raise AttributeError(
            "__delitem__: JAX arrays are immutable and do not support in-place item deletion. Use "
            "jnp.delete."
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)


class ArrayImpl(Array):
    """A concrete Array. `_value` is an ndarray of the physical dtype; while the computation that
    makes it is pending the slot is empty and the first read waits for it."""

    __slots__ = ("_aval", "_value", "_pending", "_sharding")
    _aval: ShapedArray
    _value: Any
    _pending: Any
    _sharding: Any

    def __init__(self, value: np.ndarray, aval: ShapedArray) -> None:
        self._value = value
        self._aval = aval

    @classmethod
    def _from_pending(cls, pending: Any, aval: ShapedArray) -> ArrayImpl:
        """An Array whose value is `pending.result()`, asked for at the first read."""
        self = object.__new__(cls)
        self._aval = aval
        self._pending = pending
        return self

    def __getattr__(self, name: str) -> Any:
        # Only reached when a slot is empty or the attribute does not exist.
        if name == "_value":
            pending = self._pending
            if pending is None:
                raise RuntimeError(
                    f"Array has been deleted with shape={self.aval.bare().str_short()}. Its buffer "
                    "was donated (donate_argnums) or .delete() was called. Use the result "
                    "of the function instead of the donated argument."
                )
            value = pending.result()
            self._value = value
            return value
        if name == "_pending" or name == "_sharding":
            return None
        if name == "aval" or name == "_aval":
            raise AttributeError(
                "This Array has no aval: it was made by other means than numjet's functions."
            )
        raise AttributeError(f"'ArrayImpl' object has no attribute {name!r}")

    # ---------------------------------------------------------------- values out
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if type(self.aval.dtype) is dtypes.KeyDType:
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                "random.key_data(key) for the bits."
            )
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            return value.astype(dtype)
        if copy:
            return value.copy()
        if value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
        return value

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.__array__())  # type: ignore[arg-type]

    def __dlpack__(self, **kwargs: Any) -> Any:
        value = self._value
        if not value.flags.writeable:
            # NumPy refuses to export read-only memory; the contract of immutability is documented
            # instead.
            value = _writable_alias(value)
        return value.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._value.__dlpack_device__()
        return DLDeviceType(kind), number

    def __bool__(self) -> bool:
        if type(self.aval.dtype) is dtypes.KeyDType:
            raise TypeError("A key array cannot be converted to boolean.")
        check_truth(self.aval)
        return bool(self._value.reshape(()))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        check_index(self.aval)
        return int(self._value)

    def _scalar(self, kind: str) -> Any:
        check_scalar(self.aval, kind)
        if type(self.aval.dtype) is dtypes.KeyDType or (
            kind != "complex" and dtypes.is_complex(self.aval.dtype)
        ):
            raise TypeError(
                f"{kind}() argument must be a string or a real number, not "
                f"{self.aval.str_short()}."
            )
        return self._value[()]

    def item(self, *args: int) -> Any:
        """The element as a Python number; `args` give the position in larger arrays.

        >>> jnp.array([[1, 2]]).item(0, 1)
        2
        """
        self._numbers("item")
        return self._value.item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python numbers.

        >>> jnp.array([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        self._numbers("tolist", AttributeError)
        return self._value.tolist()

    def _numbers(self, method: str, error: type[Exception] = NotImplementedError) -> None:
        """Raise where the elements are keys, whose words are nobody's business."""
        if type(self.aval.dtype) is dtypes.KeyDType:
            raise error(
                f"{method}() is not there for PRNG keys. Use random.key_data(key) for the bits."
            )

    def tobytes(self, order: Any = "C") -> bytes:
        r"""The bytes of the elements; `order` 'C' row by row, 'F' column by column.

        >>> jnp.array([1, 2], dtype=jnp.uint8).tobytes()
        b'\x01\x02'
        """
        self._numbers("tobytes", AttributeError)
        return self._value.tobytes(order)

    # As a key of a dictionary, or as a static argument, x.item() or a tuple stands for it.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if type(self.aval.dtype) is dtypes.KeyDType:
            words = (
                np.ascontiguousarray(self._value)[..., None]
                .view(np.uint32)
                .reshape(self.aval.shape + self.aval.dtype.key_shape)
            )
            return f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) overlaying:\n{words}"
        weak = ", weak_type=True" if self.aval.weak_type else ""
        prefix = "Array("
        if self.aval.size == 0:
            body = f"[], shape={self.aval.shape}"
        else:
            body = np.array2string(self._value, prefix=prefix, suffix=",", separator=", ")
        ending = f"dtype={self.aval.dtype.name}{weak})"
        # A gap as wide as the prefix where the last line is long, as JAX prints it.
        last = len(body) - (body.rfind("\n") + 1) + len(ending)
        wide = last + 3 > np.get_printoptions()["linewidth"]
        return f"{prefix}{body},{' ' * len(prefix) if wide else ' '}{ending}"

    def __str__(self) -> str:
        if type(self.aval.dtype) is dtypes.KeyDType:
            return repr(self)
        return str(self._value)

    def __format__(self, spec: str) -> str:
        # A number as NumPy writes it here: f"{x}" of a float32 shows all digits of its value.
        if type(self.aval.dtype) is dtypes.KeyDType:
            return format(str(self), spec)
        return format(self._value if self.aval.ndim else self._value[()], spec)

    def __reduce__(self) -> tuple:
        value = self._value
        return _restore, (np.ascontiguousarray(value).reshape(value.shape), self.aval)

    def __copy__(self) -> ArrayImpl:
        made = ArrayImpl(self._value, self.aval)  # values do not change: the memory is shared
        if self._sharding is not None:
            made._sharding = self._sharding
        return made

    def __deepcopy__(self, memo: dict) -> ArrayImpl:
        return ArrayImpl(self._value.copy(), self.aval)

    # ---------------------------------------------------------------- life of the buffer
    def block_until_ready(self) -> ArrayImpl:
        """Wait for the value, and return the array; errors of the computation surface here.

        >>> (jnp.ones(2) * 2).block_until_ready()
        Array([2., 2.], dtype=float32)
        """
        try:
            self._value  # noqa: B018 - reading waits
        except RuntimeError:
            if not self.is_deleted():
                raise
            raise JaxRuntimeError(
                "INVALID_ARGUMENT: BlockHostUntilReady() called on deleted or donated buffer"
            ) from None
        return self

    def is_ready(self) -> bool:
        """Whether the value is there.

        >>> jnp.ones(2).block_until_ready().is_ready()
        True
        """
        pending = self._pending
        return pending is None or pending.done()

    def copy_to_host_async(self) -> None:
        """Begin to copy the value to the host. The CPU's memory is the host's: nothing to do.

        >>> jnp.ones(2).copy_to_host_async()
        """
        if self.is_deleted():
            self._value  # noqa: B018 - raises

    def delete(self) -> None:
        """Give the memory back; later reads raise RuntimeError.

        >>> x = jnp.ones(2)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        if self.is_deleted():
            return
        self._value  # noqa: B018 - a pending value arrives first
        self._give_up()

    def _give_up(self) -> bool:
        """Delete an array whose value is there. Of several threads that do, one is told True."""
        self._pending = None
        try:
            del self._value
        except AttributeError:
            return False
        return True

    def is_deleted(self) -> bool:
        """Whether `delete` was called, or the array was donated to a function.

        >>> jnp.ones(2).is_deleted()
        False
        """
        try:
            object.__getattribute__(self, "_value")
        except AttributeError:
            return self._pending is None
        return False

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element. The array must outlive its use, and nothing may be
        written. Raises JaxRuntimeError for an array that lies on several devices, or was deleted.

        >>> jnp.ones(2).unsafe_buffer_pointer() != 0
        True
        """
        if self._sharding is not None and self._sharding.num_devices > 1:
            raise JaxRuntimeError(
                "INVALID_ARGUMENT: UnsafeBufferPointer() is supported only for unsharded arrays. "
                "Ask the parts: x.addressable_shards[i].data."
            )
        if self.is_deleted():
            raise JaxRuntimeError(
                "INVALID_ARGUMENT: UnsafeBufferPointer() was asked of a deleted or donated array."
            )
        if not self._value.flags.c_contiguous:  # what reads there expects row by row
            self._value = np.ascontiguousarray(self._value)
        return self._value.ctypes.data

    @property
    def traceback(self) -> None:
        """None: the lines at which arrays are made are not recorded."""
        return None

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        return self._sharding is None or self._sharding.is_fully_replicated

    @property
    def committed(self) -> bool:
        if self._sharding is None:  # within set_mesh it says that it lies over the mesh
            return hooks.sharding_of_nowhere(self.ndim) is not None
        return self._sharding.binds

    _committed = committed  # what libraries written for JAX ask


ArrayImpl.aval = read_only(ArrayImpl, "aval", "_aval")


def _writable_alias(value: np.ndarray) -> np.ndarray:
    owner = value
    while isinstance(owner.base, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if owner.flags.writeable:
        return np.ndarray(
            value.shape, value.dtype, owner, value.ctypes.data - owner.ctypes.data, value.strides
        )
    return value.copy()


def _restore(value: np.ndarray, aval: ShapedArray) -> ArrayImpl:
    dtype = dtypes.canonical(aval.dtype)
    if dtype != aval.dtype:  # of 64 bits, in a process that has none
        return ArrayImpl(value.astype(dtype), ShapedArray(aval.shape, dtype, aval.weak_type))
    return ArrayImpl(value, aval)


# ------------------------------------------------------------------ values in
def _from_bool(x: bool) -> ArrayImpl:
    return ArrayImpl(np.asarray(x), ShapedArray((), dtypes.bool_))


def _from_int(x: int) -> ArrayImpl:
    dtype = dtypes.canonical(dtypes.int64)
    try:
        return ArrayImpl(np.asarray(x, dtype), ShapedArray((), dtype, True))
    except OverflowError:
        raise OverflowError(
            f"Python int {x} too large to convert to {dtype}. Turn on 64 bits with "
            "numjet.config.update('enable_x64', True), or pass an unsigned array."
        ) from None


def _from_float(x: float) -> ArrayImpl:
    dtype = dtypes.canonical(dtypes.float64)
    return ArrayImpl(np.asarray(x, dtype), ShapedArray((), dtype, True))


def _from_complex(x: complex) -> ArrayImpl:
    dtype = dtypes.canonical(dtypes.complex128)
    return ArrayImpl(np.asarray(x, dtype), ShapedArray((), dtype, True))


def _from_numpy(x: Any) -> ArrayImpl:
    value = np.asarray(x)
    dtype = dtypes.canonical(value.dtype)
    if value.dtype is not dtype and value.dtype != dtype:
        value = value.astype(dtype)
    elif dtype not in dtypes.SHORT_NAMES:
        dtypes.check_supported(dtype)
    return ArrayImpl(value, ShapedArray(value.shape, dtype))


_CONVERTERS: dict[type, Callable[[Any], ArrayImpl]] = {
    bool: _from_bool,
    int: _from_int,
    float: _from_float,
    complex: _from_complex,
    np.ndarray: _from_numpy,
}


def as_array(x: Any) -> Any:
    """`x` as an Array (or tracer, unchanged): NumPy arrays without a copy, Python scalars weakly
    typed.

    x: an array, a scalar, or an object with `__jax_array__`. Raises TypeError for anything else;
    lists and tuples are not accepted, as in NumPy's `asarray` they would hide slow conversions. Use
    `numjet.numpy.array` for those.

    >>> from numjet.extend import core
    >>> core.as_array(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    convert = _CONVERTERS.get(type(x))
    if convert is not None:
        return convert(x)
    if isinstance(x, Array):
        return x
    if isinstance(x, np.generic | np.ndarray):
        if isinstance(x, np.ma.MaskedArray):
            raise ValueError(
                "numpy masked arrays are not supported as direct inputs to JAX functions. Use "
                "arr.filled() to convert the value to a standard numpy array."
            )
        return _from_numpy(x)
    for method in ("__numjet_array__", "__jax_array__"):
        if hasattr(x, method):
            found = getattr(x, method)()
            if hasattr(found, method) and not isinstance(found, Array | np.ndarray):
                raise TypeError(
                    f"{type(x).__name__}.{method}() must return an array, got {found!r}."
                )
            return as_array(found)
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return _CONVERTERS[kind](kind(x))  # type: ignore[arg-type]
    raise TypeError(
        f"Argument {x!r} of type {type(x)} is not a valid JAX type: expected an array or a scalar. "
        f"The problematic value is of type {type(x)}. Lists and tuples must be converted with "
        "numjet.numpy.array first; other containers are pytrees."
    )


def wrapped(x: Any, dtype: Any = None) -> Any:
    """`as_array`, but a Python integer that the default integer cannot hold becomes one of `dtype`
    (without one, the default integer), of which integers keep its lowest bits. Raises OverflowError
    beyond 64 bits, of integers."""
    inexact = dtype is not None and dtypes.is_inexact(dtype)
    if type(x) is int and (-(2**63) <= x < 2**64 or inexact):
        default = dtypes.canonical(dtypes.int64)
        low = -(1 << 8 * default.itemsize - 1)
        if not low <= x < -low:
            value = np.asarray(x).astype(default if dtype is None else dtype)
            return ArrayImpl(value, ShapedArray((), value.dtype, dtype is None))
    return as_array(x)


def is_arraylike(x: Any) -> bool:
    """Whether `as_array` accepts `x`."""
    return (
        isinstance(x, Array | np.generic | np.ndarray | bool | int | float | complex)
        or hasattr(x, "__numjet_array__")
        or hasattr(x, "__jax_array__")
        or type(x) in _CONVERTERS  # where a library added its types
    )
