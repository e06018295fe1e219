"""numjet.ref: mutable array references, and functions that read and write them.

A reference is made by `new_ref`, read as `ref[...]` and written as `ref[i] = x`, also inside of
functions that are compiled, looped over, mapped or differentiated; `freeze` gives its last value.
"""

from __future__ import annotations

from typing import Any

from numjet.core import dtypes as _dtypes
from numjet.core.avals import ShapedArray as _ShapedArray
from numjet.core.hi import (
    LoweredValue as _LoweredValue,
    ValueRef as _ValueRef,
    carriers_of as _carriers_of,
    lowered as _lowered,
)
from numjet.core.ref_equations import (
    does as _does,
    empty_ref_p as _empty_ref_p,
    free_ref_p as _free_ref_p,
)
from numjet.core.refs import (
    AbstractRef as AbstractRef,
    Ref as Ref,
    frozen as _frozen,
    made as _made,
    new_ref as _of_array,
)
from numjet.core.shared import Shared as _Shared
from numjet.core.structural import zeros as _zeros
from numjet.core.trace import current_trace as _current_trace
from numjet.ops import over_refs as _over_refs  # noqa: F401 - equations over references


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Any:
    """A reference that holds `init_val`, which itself does not change.

    init_val: an array, of any shape and dtype. memory_space and kind are kept in its aval: there is
    one memory. `ref[...]` reads, `ref[i] = x` and `ref[i] += x` write, in the order of the program,
    also in compiled functions that close over it. Raises TypeError for values that are no arrays. A
    function that is differentiated may make and read one, but not return it (ValueError), and a
    `shard_map` outside of `jit` makes none (ValueError). Its content carries the derivative.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> total = nj.new_ref(jnp.zeros(2))
    >>> @nj.jit
    ... def add(i, x):
    ...     total[i] += x
    >>> add(0, 1.0), add(1, 2.0), add(0, 3.0)
    (None, None, None)
    >>> print(nj.freeze(total))
    [4. 2.]
    """
    if _Shared.mapped.get() and _current_trace().staging is None:
        raise ValueError(
            "Eager shard_map cannot return a `jax.Ref`, as new_ref does. Wrap the shard_map, or "
            "the function inside of it that uses references, in jit."
        )
    held = _lowered(init_val)
    if type(held) is _LoweredValue:
        refs = [_of_array(x, memory_space=memory_space, kind=kind) for x in held.arrays]
        return _ValueRef(held.type, refs)
    return _of_array(init_val, memory_space=memory_space, kind=kind)


def get(ref: Ref, idx: Any = None) -> Any:
    """The value of a reference, or a part of it.

    ref: a Ref. idx: an index, slices or Ellipsis; None for all. Result: an Array.

    >>> import numjet as nj
    >>> from numjet import ref, numpy as jnp
    >>> ref.get(nj.new_ref(jnp.arange(3)), 1)
    Array(1, dtype=int32)
    """
    return _held(ref, "get").get(idx)


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Replace a part of a reference's value.

    ref: a Ref. idx: an index, slices or Ellipsis; None for all. value: of the part's shape and
    dtype (ValueError: nothing is broadcast).

    >>> import numjet as nj
    >>> from numjet import ref, numpy as jnp
    >>> r = nj.new_ref(jnp.arange(3))
    >>> ref.set(r, 1, 9)
    >>> r[...]
    Array([0, 9, 2], dtype=int32)
    """
    _held(ref, "set").swap(value, idx)


def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Replace a part of a reference's value, and give what was there.

    ref: a Ref. idx: an index, slices or Ellipsis; None for all. value: of the part's shape and
    dtype (ValueError: nothing is broadcast).

    >>> import numjet as nj
    >>> from numjet import ref, numpy as jnp
    >>> r = nj.new_ref(jnp.arange(3))
    >>> ref.swap(r, 1, 9)
    Array(1, dtype=int32)
    """
    return _held(ref, "swap").swap(value, idx)


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to a part of a reference's value.

    ref: a Ref. idx: an index, slices or Ellipsis; None for all. x: of the part's shape and dtype.

    >>> import numjet as nj
    >>> from numjet import ref, numpy as jnp
    >>> r = nj.new_ref(jnp.arange(3))
    >>> ref.addupdate(r, 1, 10)
    >>> r[...]
    Array([ 0, 11,  2], dtype=int32)
    """
    _held(ref, "addupdate").addupdate(x, idx)


def _held(ref: Any, name: str) -> Any:
    if not hasattr(ref, "swap"):
        raise ValueError(f"{name}: only a reference (new_ref) is read and written, got {ref!r}.")
    return ref


def _reference(ref: Any, name: str) -> Any:
    if not isinstance(ref, Ref | _ValueRef):
        raise TypeError(f"{name}: expected a reference (new_ref), got {ref!r}.")
    return ref


def freeze(ref: Ref) -> Any:
    """The value of the reference `ref`, which must not be used any more.

    Result: an Array of its shape and dtype. Freezing says that no more is written, so that the
    value needs no copy.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.freeze(nj.new_ref(jnp.ones(2))))
    [1. 1.]
    """
    ref = _reference(ref, "freeze")
    return _frozen(ref) if type(ref) is Ref else ref.get()


def free_ref(ref: Ref) -> None:
    """Say that the reference `ref` is not used any more. Its memory goes when nobody holds it.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.free_ref(nj.new_ref(jnp.zeros(2)))
    """
    ref = _reference(ref, "free_ref")
    if type(ref) is Ref:
        _frozen(ref, _free_ref_p)
    else:
        ref.get()


def empty_ref(ty: Any, memory_space: Any = None) -> Any:
    """A reference to an array of the shape and dtype of `ty`, of unspecified content.

    ty: anything with shape and dtype, or a type of `experimental.hijax`. memory_space is kept in
    its aval. Write before reading.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> ref = nj.empty_ref(nj.ShapeDtypeStruct((2,), jnp.float32))
    >>> ref[...] = jnp.ones(2)
    >>> ref[...]
    Array([1., 1.], dtype=float32)
    """
    if hasattr(ty, "lo_ty") and not isinstance(ty, _ShapedArray):
        return _ValueRef(
            ty, [empty_ref(a, memory_space) for a in (*ty.lo_ty(), *_carriers_of(ty))]
        )
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(f"empty_ref: expected something with shape and dtype, got {ty!r:.80}.")
    aval = _ShapedArray(tuple(ty.shape), _dtypes.canonical(ty.dtype))
    params = {"ty": aval, "memory_space": memory_space}
    found = _made(_empty_ref_p, AbstractRef(aval, memory_space), [], params)
    return new_ref(_zeros(aval), memory_space=memory_space) if found is None else found


_does(_empty_ref_p)(empty_ref)


__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
