"""PRNG keys: making, splitting, folding, looking inside.

Functions take typed keys (`random.key`) and raw uint32[2] keys (`random.PRNGKey`) alike; what they
return is of the kind they were given. The other files of this package call `single_key`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, wanted
from numjet.api.eager.large import as_program, drawn
from numjet.base import config
from numjet.base.errors import TracerArrayConversionError
from numjet.core import dtypes
from numjet.core.array import Array, as_array, is_arraylike
from numjet.core.dims import DimExpr, size_of
from numjet.core.evaluate import DEAR
from numjet.core.structural import convert
from numjet.numpy.creation import placed
from numjet.ops.shape import copy
from numjet.ops.slicing import index_in_dim
from numjet.random.implementations import dtype_of
from numjet.random.streams import (
    random_bits,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)


def _dtype(impl: Any, dtype: Any = None) -> Any:
    """The dtype of keys of an implementation, or of the default one."""
    if impl is not None and dtype is not None:
        raise ValueError(
            f"Cannot specify both impl and dtype to key constructor, got impl={impl} and "
            f"dtype={dtype}. Leave one away."
        )
    spec = dtype if impl is None else impl
    if spec is None:
        spec = config.default_prng_impl.value
        if spec == "threefry2x32":
            return dtypes.key_dtype
    return dtype_of(spec)


def _seed(seed: Any, name: str) -> Any:
    if isinstance(seed, Array) and dtypes.is_key(seed.dtype):
        raise TypeError(
            f"{name.removeprefix('random.')} accepts a scalar seed, but was given a PRNG key. Use "
            "random.split or random.fold_in to make a key from a key."
        )
    if isinstance(seed, bool):
        seed = int(seed)
    if isinstance(seed, int):
        # As an int64 would be narrowed: low bits stay.
        width = dtypes.canonical(dtypes.int64).itemsize * 8
        if not -(1 << 63) <= seed < 1 << 64:
            raise OverflowError(f"{name}: the seed {seed} does not fit 64 bits.")
        seed = (seed + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    seed = parameter(seed)
    if seed.ndim:
        raise TypeError(
            f"{name.removeprefix('random.')} accepts a scalar seed, but was given an array of "
            f"shape {seed.shape} != (). Use jax.vmap for batching."
        )
    if not dtypes.is_integer(seed.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {seed.aval.str_short()} ({name}).")
    return seed


def key(seed: int | Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A typed PRNG key made from an integer seed.

    seed: an integer scalar (TypeError for others), of which the low 32 bits count without
    `enable_x64`; OverflowError beyond 64 bits. impl: the implementation: 'threefry2x32', 'rbg',
    'unsafe_rbg', what `extend.random.define_prng_impl` made, or the dtype of keys; the flag
    `default_prng_impl`'s unless given. dtype: the same, given as a dtype. Result: a scalar array of
    a key dtype. Every function of this module is determined by its key: give each use a key of its
    own, from `split` or `fold_in`. Raises ValueError for unknown names. Source: Salmon, Moraes,
    Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> from numjet import random
    >>> random.key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    return placed(random_seed(_seed(seed, "random.key"), _dtype(impl, dtype)), None)


def PRNGKey(seed: int | Any, *, impl: Any = None) -> Any:  # noqa: N802 - a public name
    """A raw key made from an integer seed: the words without their type. New code takes `key`.

    seed, impl: as of `key`. Result: uint32[2] for threefry2x32, uint32[4] for rbg; a typed key
    under `enable_custom_prng`. Raises TypeError for seeds that are no integers, ValueError for
    unknown names.

    >>> from numjet import random
    >>> random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    made = placed(random_seed(_seed(seed, "random.PRNGKey"), _dtype(impl)), None)
    return made if config.enable_custom_prng.value else random_unwrap(made)


def as_keys(keys: Any, name: str) -> tuple[Any, bool]:
    """Typed keys, and whether they came raw."""
    if not is_arraylike(keys):
        raise TypeError(
            f"unexpected PRNG key type {type(keys)}: the first argument of random.{name} must be a "
            f"PRNG key, got {keys!r}. Make one with random.key(seed)."
        )
    keys = keys if isinstance(keys, Array) else as_array(keys)
    if dtypes.is_key(keys.dtype):
        return keys, False
    dtype = _dtype(None)
    shape = dtype.key_shape
    if keys.dtype != dtypes.uint32 or keys.shape[max(keys.ndim - len(shape), 0) :] != shape:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: random.{name} expected a PRNG key "
            "(random.key) or raw words "
            f"uint32[..., {', '.join(map(str, shape))}] of the default implementation, got "
            f"{keys.aval.str_short()}."
        )
    if config.legacy_prng_key.value != "allow":
        _legacy(name)
    return random_wrap(keys, dtype), True


def _legacy(name: str) -> None:
    """Warn of a raw key, or raise ValueError, as the flag `legacy_prng_key` says."""
    message = (
        "Legacy uint32 key array passed as key to jax.random function: "
        f"random.{name}. Make keys with random.key(), or wrap the words with "
        "random.wrap_key_data()."
    )
    if config.legacy_prng_key.value == "error":
        raise ValueError(message)
    warnings.warn(message, stacklevel=4)


def single_key(given: Any, name: str) -> Any:
    """One typed key. Raises ValueError for an array of keys."""
    keys, _ = as_keys(given, name)
    if keys.ndim:
        raise ValueError(
            f"random.{name} accepts a single key, but was given a key array of shape {keys.shape}. "
            "Use vmap for batching."
        )
    return keys


def _like_given(keys: Any, raw: bool) -> Any:
    return random_unwrap(keys) if raw else keys


def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """New keys from one, as good as independent; the old one must not be used again.

    key: one PRNG key, typed or raw. num: how many, or the shape of an array of them. Result: keys
    [num] or [*num], raw ones with their words behind. Raises TypeError for what is no key,
    ValueError for several keys and for negative numbers. Source: Salmon, Moraes, Dror and Shaw,
    Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> from numjet import random
    >>> first, second = random.split(random.key(0))
    >>> print(random.key_data(first))
    [1797259609 2579123966]
    """
    typed, raw = as_keys(key, "split")
    if typed.ndim:
        raise ValueError(
            f"random.split accepts a single key, but was given a key array of shape {typed.shape}. "
            "Use vmap for batching."
        )
    shape = shape_of(num)
    if len(shape) == 1 and type(shape[0]) is int and shape[0] >= DEAR:
        return _like_given(_split_into_many(typed, shape), raw)
    return _like_given(random_split(typed, shape=shape), raw)


def _split_into(typed: Any, shape: tuple) -> Any:
    return random_split(typed, shape=shape)


# Of a number of keys that is asked for again.
_split_into_many = as_program(_split_into, drawn(1))


def _index(num: Any) -> Any:
    if type(num) is DimExpr:
        return num
    if not hasattr(num, "__index__"):
        raise TypeError(
            "Shapes must be 1D sequences of concrete values of integer type: random's shapes and "
            f"counts are made of integers, got {num!r}. Convert it with int(...)."
        )
    return size_of(num)


def split_two(typed: Any) -> tuple[Any, Any]:
    """The two keys of `split(key)` of one typed key."""
    return tuple(split_many(typed, 2))  # type: ignore[return-value]


def split_many(typed: Any, num: int) -> list[Any]:
    """The keys of `split(key, num)`, one by one."""
    keys = random_split(typed, shape=(num,))
    if FLAG.uses and wanted():
        return list(keys)
    return [index_in_dim(keys, i, 0, keepdims=False) for i in range(num)]


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer, such as the number of a step or a device.

    key: one PRNG key, typed or raw. data: a scalar, taken as uint32; it may be traced. Different
    numbers give keys that are as good as independent. Raises TypeError for what is no key and for
    arrays of data (use `vmap`). Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as
    easy as 1, 2, 3 (2011).

    >>> from numjet import random
    >>> random.key_data(random.fold_in(random.key(0), 3))
    Array([2467461003, 3840466878], dtype=uint32)
    """
    typed, raw = as_keys(key, "fold_in")
    if typed.ndim:
        raise ValueError(
            "random.fold_in accepts a single key, but was given a key array of shape "
            f"{typed.shape}. Use vmap for batching."
        )
    if isinstance(data, int):
        if not 0 <= data < 1 << 32:
            raise OverflowError(
                f"Python integer {data} out of bounds for uint32 (random.fold_in). Take it modulo "
                "2**32."
            )
        data = np.uint32(data)
    data = parameter(data)
    if data.ndim:
        raise TypeError(
            f"random.fold_in accepts a scalar, but was given an array of shape {data.shape}. Use "
            "vmap for batching."
        )
    if not dtypes.is_integer(data.dtype) and not dtypes.is_floating(data.dtype):
        raise TypeError(f"random.fold_in: data must be an integer, got {data.aval.str_short()}.")
    return _like_given(random_fold_in(typed, convert(data, dtypes.uint32)), raw)


def key_data(keys: Any) -> Any:
    """The words of keys, as integers.

    keys: PRNG keys [...]. Result: uint32[..., 2], or of the implementation's shape. Raw keys come
    back as they are. The inverse is `wrap_key_data`.

    >>> from numjet import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    if not isinstance(keys, Array | np.ndarray | np.generic):
        raise TypeError(
            "JAX encountered invalid PRNG key data: key_data expected keys, or an array of words, "
            f"got {keys!r}."
        )
    keys = keys if isinstance(keys, Array) else as_array(keys)
    if dtypes.is_key(keys.dtype):
        return random_unwrap(keys)
    if keys.dtype != np.uint32:
        raise TypeError(
            "JAX encountered invalid PRNG key data: key_data expected keys, or uint32 words, got "
            f"{keys.aval}."
        )
    return keys


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Typed keys from their words.

    key_bits_array: uint32[..., 2] for threefry2x32, uint32[..., 4] for rbg. impl: as of `key`.
    dtype: the same, given as a dtype. Result: keys [...]. Raises TypeError for words of another
    shape or dtype, ValueError for unknown names.

    >>> from numjet import random, numpy as jnp
    >>> random.wrap_key_data(jnp.array([0, 7], jnp.uint32))
    Array((), dtype=key<fry>) overlaying:
    [0 7]
    """
    return random_wrap(as_array(key_bits_array), _dtype(impl, dtype))


def key_impl(keys: Any) -> Any:
    """The implementation of keys: its name, or what `define_prng_impl` made.

    keys: PRNG keys, typed or raw ones of the default implementation. Raises TypeError for what is
    no key.

    >>> from numjet import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return as_keys(keys, "key_impl")[0].dtype.impl


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of typed keys of an implementation.

    impl_spec: as impl of `key`; None is the default implementation. Raises ValueError for unknown
    names.

    >>> from numjet import random
    >>> random.key_dtype()
    key<fry>
    """
    return _dtype(impl_spec)


def clone(key: Any) -> Any:
    """A copy of a key, for use where using it again is meant.

    key: a PRNG key, or an array of them. Result: key's shape and implementation. The same words
    come out; with the flag `debug_key_reuse` it counts as a new one.

    >>> from numjet import random
    >>> bool(random.clone(random.key(0)) == random.key(0))
    True
    """
    return copy(key)


_UNSIGNED = {dtypes.uint8: 8, dtypes.uint16: 16, dtypes.uint32: 32, dtypes.uint64: 64}


def bits(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Uniformly distributed unsigned integers: the bits that all other functions are made of.

    key: one PRNG key. shape: of the result, () by default. dtype: unsigned, uint32 (uint64 under
    `enable_x64`) unless given. out_sharding: the layout of the result. Raises TypeError for what is
    no key, ValueError for several keys (use `vmap`) and for another dtype. Source: Salmon, Moraes,
    Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (2011), for the default
    implementation.

    >>> from numjet import random
    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    wide = dtypes.canonical(dtypes.uint64)
    dtype = wide if dtype is None else dtypes.requested(dtype, "random.bits")
    if dtype not in _UNSIGNED:
        raise ValueError(f"random.bits: dtype must be an unsigned integer dtype, got {dtype}.")
    return random_bits(single_key(key, "bits"), bit_width=_UNSIGNED[dtype], shape=shape_of(shape))


def parameter(x: Any) -> Any:
    """A parameter of a distribution as an Array; ValueError for None, as of seeds."""
    if x is None:
        raise ValueError("random: None is no parameter and no seed. Give a number or an array.")
    return as_array(x)


def refuse_lists(name: str, *parameters: Any) -> None:
    """Raise TracerArrayConversionError (a TypeError) for lists and tuples among a function's
    parameters, whose numbers JAX hands to NumPy as traced values."""
    for x in parameters:
        if isinstance(x, list | tuple) and x:
            raise TracerArrayConversionError(
                f"random.{name}: parameters are numbers or arrays, got {x!r}. Convert it with "
                "numjet.numpy.array."
            )


def shape_of(shape: Any, broadcasts: bool = False) -> tuple[int, ...]:
    """A shape as a tuple of ints; a bare integer, or an array that is one, is one axis. A negative
    size raises ValueError, or TypeError where parameters broadcast to it."""
    several = isinstance(shape, Iterable) and getattr(shape, "ndim", 1) != 0
    out = tuple([_index(n) for n in (shape if several else (shape,))])
    if any(n < 0 for n in out) or math.prod(out) < 0:
        raise (TypeError if broadcasts else ValueError)(
            f"random: shapes have no negative sizes, got {out}."
        )
    return out
