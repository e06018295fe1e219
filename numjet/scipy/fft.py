"""numjet.scipy.fft: discrete cosine transforms of type 2 and their inverses.

By one real Fourier transform of the same length. Source: Makhoul, "A fast cosine transform in one
and two dimensions", IEEE Trans. ASSP 28, 1980.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays, inexact_dtype


def _axis(name: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is out of bounds for array of dimension {ndim}.")
    return axis % ndim


def _checked(name: str, x: Any, kind: int, norm: str | None) -> Any:
    """`x` as floats of at least 32 bits."""
    if kind != 2:
        raise NotImplementedError(
            f"Only DCT type 2 is implemented. {name} got type={kind!r}."
        )
    if norm not in (None, "backward", "ortho"):
        raise ValueError(
            f"{name}: norm={norm!r} is not implemented. Use None, 'backward' or 'ortho'."
        )
    (x,) = as_arrays(name, x)
    if not dtypes.is_inexact(x.dtype):
        return x.astype(inexact_dtype(x.dtype))
    return x.astype(dtypes.float32) if x.dtype.itemsize < 4 else x


def _of_length(name: str, x: Any, n: int | None, axis: int) -> Any:
    """`x` with zeros behind, or without what is too much, `n` long along `axis`."""
    n = x.shape[axis] if n is None else n
    if n == x.shape[axis] > 0:
        return x
    if n < 1:
        raise ValueError(f"{name}: the length must be at least 1, got {n}.")
    if n < x.shape[axis]:
        return x[(slice(None),) * axis + (slice(0, n),)]
    return jnp.pad(x, [(0, n - m if i == axis else 0) for i, m in enumerate(x.shape)])


def _by_parts(transform: Callable, x: Any, *args: Any) -> Any:
    """A linear real `transform` of real or complex `x`."""
    if not dtypes.is_complex(x.dtype):
        return transform(x, *args)
    return lax.complex(transform(x.real, *args), transform(x.imag, *args))


def _along_last(values: np.ndarray, x: Any) -> Any:
    """Constants for the last axis of `x`, of its dtype (complex ones of the complex dtype), with
    as many axes: ranks and dtypes that numpy_rank_promotion and numpy_dtype_promotion admit."""
    dtype = dtypes.complex_of(x.dtype) if values.dtype.kind == "c" else x.dtype
    return jnp.asarray(values.astype(dtype).reshape((1,) * (x.ndim - 1) + values.shape))


def _turns(n: int, count: int, x: Any) -> Any:
    """exp(-i π k / 2n) for k < count, along the last axis of `x`."""
    return _along_last(np.exp(-0.5j * np.pi * np.arange(count) / n), x)


def _last(x: Any, norm: str | None) -> Any:
    n = x.shape[-1]
    # Even places rising, then odd ones falling: the cosines become those of a periodic sequence.
    turned = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    half = jnp.fft.rfft(turned)
    rotated = half * _turns(n, n // 2 + 1, x)
    # Term n - k is minus the imaginary part of term k.
    rest = -rotated.imag[..., 1 : (n + 1) // 2][..., ::-1]
    out = 2 * jnp.concatenate([rotated.real, rest], -1)
    if norm == "ortho":
        scale = np.full(n, math.sqrt(0.5 / n))
        scale[0] = math.sqrt(0.25 / n)
        out = out * _along_last(scale, x)
    return out


def _last_inverse(x: Any, norm: str | None) -> Any:
    n = x.shape[-1]
    scale = np.full(n, math.sqrt(0.5 / n) if norm == "ortho" else 0.5 / n)
    scale[0] = math.sqrt(1 / n) if norm == "ortho" else 0.5 / n
    x = x * _along_last(n * scale, x)
    count = n // 2 + 1
    behind = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., ::-1]], -1)[..., :count]
    half = lax.complex(x[..., :count], -behind) * jnp.conj(_turns(n, count, x))
    turned = jnp.fft.irfft(half, n)
    out = jnp.zeros_like(x)
    out = out.at[..., ::2].set(turned[..., : (n + 1) // 2])
    return out.at[..., 1::2].set(turned[..., (n + 1) // 2 :][..., ::-1])


def _along(transform: Callable, name: str, x: Any, n: int | None, axis: int, norm: Any) -> Any:
    x = _of_length(name, x, n, axis)
    return jnp.moveaxis(_by_parts(transform, jnp.moveaxis(x, axis, -1), norm), -1, axis)


def dct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Any:
    """The cosine transform of type 2 along an axis: y_k = 2 Σ x_j cos(π k (2j + 1) / 2n).

    x: numbers of any dtype (float32 where it is none of 32 bits and more). type must be 2
    (NotImplementedError). n: the length that x is cut or padded to. axis: an integer. norm: None or
    "backward" (as above), "ortho" (an orthogonal transform). Result: x's shape, with n along the
    axis. Linear. Raises ValueError for other norms and lengths. Source: Makhoul, A fast cosine
    transform in one and two dimensions (1980). SciPy's orthogonalize, overwrite_x and workers
    are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.fft import dct
    >>> dct(jnp.ones(4)).round(3) + 0.0
    Array([8., 0., 0., 0.], dtype=float32)
    """
    x = _checked("dct", x, type, norm)
    return _along(_last, "dct", x, n, _axis("dct", axis, x.ndim), norm)


def idct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Any:
    """The inverse cosine transform of type 2 along an axis: idct(dct(x)) is x.

    x, type, n, axis, norm: as of `dct`, norm as it was there. Linear. Raises ValueError for other
    norms and lengths, NotImplementedError for another type. SciPy's orthogonalize, overwrite_x and
    workers are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.fft import dct, idct
    >>> idct(dct(jnp.array([1.0, 2.0, 3.0]))).round(4)
    Array([1., 2., 3.], dtype=float32)
    """
    x = _checked("idct", x, type, norm)
    return _along(_last_inverse, "idct", x, n, _axis("idct", axis, x.ndim), norm)


def _several(transform: Callable, name: str, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if axes is None:
        places = list(range(x.ndim - (x.ndim if sizes is None else len(sizes)), x.ndim))
    else:
        places = [axes] if isinstance(axes, int) else list(axes)
    places = [_axis(name, a, x.ndim) for a in places]
    if len(set(places)) != len(places):
        raise ValueError(f"{name}: repeated axis: {axes}.")
    for i, axis in enumerate(places):
        x = _along(transform, name, x, None if sizes is None else sizes[i], axis, norm)
    return x


def dctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Any:
    """The cosine transform of type 2 along several axes.

    x, type, norm: as of `dct`. s: the lengths that x is cut or padded to. axes: all unless given,
    or the last len(s). Linear. Raises ValueError for other norms and lengths, NotImplementedError
    for another type. SciPy's orthogonalize, overwrite_x and workers are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.fft import dctn
    >>> dctn(jnp.ones((2, 2))).round(3) + 0.0
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _several(_last, "dctn", _checked("dctn", x, type, norm), s, axes, norm)


def idctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Any:
    """The inverse cosine transform of type 2 along several axes: idctn(dctn(x)) is x.

    x, type, norm: as of `dct`, norm as it was there. s: the lengths that x is cut or padded to.
    axes: all unless given, or the last len(s). Linear. Raises ValueError for other norms and
    lengths, NotImplementedError for another type. SciPy's orthogonalize, overwrite_x and
    workers are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy.fft import dctn, idctn
    >>> idctn(dctn(jnp.ones((2, 2)))).round(4)
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _several(_last_inverse, "idctn", _checked("idctn", x, type, norm), s, axes, norm)


__all__ = ["dct", "dctn", "idct", "idctn"]


def __dir__() -> list[str]:
    return [*__all__]
