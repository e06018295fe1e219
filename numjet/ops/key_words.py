"""The words of PRNG keys that are not threefry's: keys from words, words from keys.

What these keys do is written in operations on their words (`numjet.random.implementations`), so
that making keys of words and taking them apart are the only primitives of theirs. Compiled programs
have no keys: `ops.stored_keys` writes them as arrays of words first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.base.errors import InternalError
from numjet.core import dtypes
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive
from numjet.core.structural import moveaxis


def _wrap_abstract(words: ShapedArray, *, impl: Any) -> ShapedArray:
    shape = impl.key_shape
    lead = words.ndim - len(shape)
    if words.dtype != dtypes.uint32 or lead < 0 or words.shape[lead:] != shape:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: {impl.name} is made of uint32 words of a "
            f"shape that ends with {shape}, got {words.str_short()}."
        )
    return ShapedArray(words.shape[:lead], impl)


def _wrap_reference(words: np.ndarray, *, impl: Any) -> np.ndarray:
    lead = words.shape[: words.ndim - len(impl.key_shape)]
    flat = np.ascontiguousarray(words).reshape(*lead, impl.itemsize // 4)
    return flat.view(impl.storage)[..., 0]


def _unwrap_abstract(keys: ShapedArray) -> ShapedArray:
    return ShapedArray((*keys.shape, *keys.dtype.key_shape), dtypes.uint32)


def _words(keys: np.ndarray, *, key_shape: tuple) -> np.ndarray:
    flat = np.ascontiguousarray(keys).reshape(keys.shape)[..., None].view(np.uint32)
    return flat.reshape(*keys.shape, *key_shape)


def _rewritten(*_: Any, **__: Any) -> Any:
    raise InternalError("keys reached the compiler: ops.stored_keys writes programs without.")


random_wrap_words_p = Primitive(
    "random_wrap_words",
    differentiable=False,
    abstract=_wrap_abstract,
    reference=_wrap_reference,
    batch=lambda axis, args, dims, **params: (
        random_wrap_words_p.bind(moveaxis(args[0], dims[0], 0), **params),
        0,
    ),
    loops=Expand(_rewritten),
)
random_unwrap_words_p = Primitive(
    "random_unwrap_words",
    differentiable=False,
    abstract=lambda keys, *, key_shape: _unwrap_abstract(keys),
    reference=_words,
    batch=lambda axis, args, dims, **params: (
        random_unwrap_words_p.bind(moveaxis(args[0], dims[0], 0), **params),
        0,
    ),
    loops=Expand(_rewritten),
)


def wrap(words: Any, impl: Any) -> Any:
    """Keys of the dtype `impl` made of uint32[..., *impl.key_shape]."""
    return random_wrap_words_p.bind(words, impl=impl)


def unwrap(keys: Any) -> Any:
    """The words of keys: uint32[..., *key_shape]."""
    return random_unwrap_words_p.bind(keys, key_shape=keys.aval.dtype.key_shape)
