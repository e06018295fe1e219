"""numjet.numpy.fft: discrete Fourier transforms.

Computed in the dtype of the argument: float32 and complex64 stay so, as in NumPy since 2.0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.hashed import hold
from numjet.api.compiled.shown import FLAG, Shown, wanted
from numjet.api.eager.large import wrap_public
from numjet.core import dtypes
from numjet.core.dims import DimExpr, index_of, is_symbolic
from numjet.core.trace import Tracer
from numjet.numpy import lax_names as lax
from numjet.numpy.creation import array, placed, taking_lists
from numjet.numpy.elementwise import multiply
from numjet.numpy.indexing import getitem
from numjet.numpy.promote import (
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    cast,
    inexact_dtype,
    one_array,
    promote_inexact,
)
from numjet.numpy.repetition import roll
from numjet.numpy.shape import moveaxis
from numjet.ops.complex_ops import conjugate
from numjet.ops.fft import fft as _fft_op

_NORMS = (None, "backward", "ortho", "forward")


def _sized(x: Any, axis: int, n: int) -> Any:
    """x cut or padded with zeros to size n along `axis`."""
    own = x.aval.shape[axis]
    if n < own:
        return getitem(x, (slice(None),) * axis + (slice(0, n),))
    if n > own:
        config = [(0, 0, 0)] * x.aval.ndim
        config[axis] = (0, n - own, 0)
        return lax.pad(x, lax.full((), 0, x.aval.dtype), config)
    return x


def _transform(name: str, kind: str, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    (x,) = promote_inexact(one_array(name, a))
    if norm not in _NORMS:
        raise ValueError(
            f"{name}: Invalid norm value {norm}; should be \"backward\", \"ortho\" or "
            "\"forward\", or None."
        )
    rank = x.aval.ndim
    if axes is None:
        count = rank if s is None else len(s)
        axes = tuple(range(rank - count, rank))
    error = IndexError if name in ("hfft", "ihfft") else ValueError
    axes = tuple(axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"jax.numpy.fft.{name} does not support repeated axes. Got axes {axes}.")
    axes = canonical_axes(axes, rank, name, error)
    if name.endswith("2") and len(axes) != 2:
        raise ValueError(f"{name}: only supports 2 axes, got {axes}. Use {name[:-1]}n.")
    if not axes:
        return cast(x, dtypes.complex_of(x.aval.dtype)) if kind in ("FFT", "IFFT") else x
    if kind == "RFFT" and dtypes.is_floating(x.aval.dtype) and x.aval.dtype.itemsize < 4:
        raise ValueError(
            f"RFFT input must be float32 or float64, got {x.aval.dtype} ({name}). Convert it with "
            ".astype."
        )
    if x.aval.dtype.itemsize < 4:
        x = cast(x, dtypes.float32)
    if kind == "RFFT" and dtypes.is_complex(x.aval.dtype):
        raise ValueError(
            f"only real valued inputs supported for {name}, got {x.aval.dtype}. Take .real or use "
            "fft."
        )
    own = [x.aval.shape[i] for i in axes]
    if s is None:
        sizes = list(own)
        if kind == "IRFFT":
            sizes[-1] = max(2 * (own[-1] - 1), 0)
    else:
        if len(s) != len(axes):
            raise ValueError(f"{name}: s {tuple(s)} must give one size for each axis of {axes}.")
        sizes = [own[i] if n in (None, -1) else operator.index(n) for i, n in enumerate(s)]
    if s is None and 0 in sizes and kind != "RFFT":
        whole = enumerate(x.aval.shape)
        shape = tuple([sizes[axes.index(i)] if i in axes else n for i, n in whole])
        of = dtypes.real_of if kind == "IRFFT" else dtypes.complex_of
        return lax.full(shape, 0, of(dtypes.real_of(x.aval.dtype)))
    if any(n <= 0 for n in sizes):
        raise ValueError(f"{name}: Shape should be positive, got {tuple(sizes)}.")
    for i, (axis, n) in enumerate(zip(axes, sizes)):
        last = i == len(axes) - 1
        x = _sized(x, axis, n // 2 + 1 if kind == "IRFFT" and last else n)
    looked_at = FLAG.uses and wanted() and len(sizes) <= 3
    if kind != "RFFT" and not dtypes.is_complex(x.aval.dtype) and not looked_at:
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    tail = tuple(range(rank - len(axes), rank))
    if axes != tail:
        x = moveaxis(x, axes, tail)
    # At most three axes go into one transform; the rest are done one by one before (or after).
    if looked_at:
        out = _shown_fft.call((x,), {"kind": kind, "lengths": tuple(sizes)})
    else:
        out = _in_parts(x, kind, sizes)
    if norm not in (None, "backward"):
        total: Any = math.prod(sizes)
        total = total * 1.0 if type(total) is DimExpr else float(total)
        forward = kind in ("FFT", "RFFT")
        scale = {
            "ortho": total**-0.5 if forward else total**0.5,
            "forward": 1 / total if forward else total,
        }[norm]
        out = multiply(out, scale)
    return out if axes == tail else moveaxis(out, tail, axes)


def _fft(x: Any, *, kind: str, lengths: tuple[int, ...]) -> Any:
    """One transform, of what is complex for it."""
    if kind != "RFFT" and not dtypes.is_complex(x.aval.dtype):
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    return _fft_op(x, kind, lengths)


_shown_fft = Shown(_fft, "fft")


def _in_parts(x: Any, kind: str, sizes: Sequence[int]) -> Any:
    if len(sizes) <= 3:
        return _fft_op(x, kind, tuple(sizes))
    outer = {"RFFT": "FFT", "IRFFT": "IFFT"}.get(kind, kind)
    rank, count = x.aval.ndim, len(sizes)

    def rest(y: Any) -> Any:
        for k in range(count - 1):
            axis = rank - count + k
            y = moveaxis(_fft_op(moveaxis(y, axis, -1), outer, (sizes[k],)), -1, axis)
        return y

    if kind == "IRFFT":
        return _fft_op(rest(x), kind, (sizes[-1],))
    return rest(_fft_op(x, kind, (sizes[-1],)))


def _one(name: str, kind: str, a: Any, n: int | None, axis: int, norm: str | None) -> Any:
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"{name} does not support multiple axes. Please use jnp.fft.{name}n, got axis = {axis}."
        )
    if n is None:
        return _transform(name, kind, a, None, (axis,), norm)
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"{name}: Shape should be positive, got n={n}.")
    return _transform(name, kind, a, (n,), (axis,), norm)


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The discrete Fourier transform: element k is the sum of a[j] exp(-2 pi i j k / n).

    a: numbers, of one axis or more. n: to how many elements `axis` is cut or filled with zeros, by
    default its length. axis: an integer (ValueError). norm: 'backward' (also None) divides the
    inverse by n, 'forward' the transform, 'ortho' both by sqrt(n). Returns a's shape, with n along
    the axis, as complex64, of 64-bit numbers as complex128; integers and 16-bit floats are
    transformed in 32 bits. Linear in a. ValueError for other norms and n < 1. Computed by
    `lax.fft`.

    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0])).round(3)
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _one("fft", "FFT", a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`: with exp(+2 pi i j k / n), divided by n.

    a, n, axis, norm: as in `fft`, as are the result's shape and dtype.

    >>> jnp.fft.ifft(jnp.array([4.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _one("ifft", "IFFT", a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """`fft` of real numbers: the n // 2 + 1 frequencies that are not negative.

    a: real numbers (TypeError). n, axis, norm: as in `fft`. Returns complex numbers as `fft` does,
    n // 2 + 1 along the axis.

    >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0])).round(3)
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _one("rfft", "RFFT", a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `rfft`: real numbers from the frequencies that are not negative.

    a: numbers; the imaginary part of the first one counts as 0. n: how many real numbers there are,
    by default 2 (m - 1) for m frequencies; odd numbers have to be given. axis, norm: as in `fft`.
    Returns float32, of 64-bit numbers float64, n along the axis. Linear in a.

    >>> jnp.fft.irfft(jnp.array([10.0, -2 + 2j, -2.0]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    return _one("irfft", "IRFFT", a, n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The transform, real, of a signal that is hermitian, of which half is given.

    a: numbers. n: how many the result has, by default 2 (m - 1) for m of them. axis, norm: as in
    `fft`. Returns floats as `irfft` does. Linear in a. IndexError for an axis out of range.

    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    return _one("hfft", "IRFFT", conjugate(one_array("hfft", a)), n, axis, _swapped(norm))


@taking_lists
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`: half of the hermitian signal whose transform is real.

    a: real numbers (TypeError). n, axis, norm: as in `fft`. Returns complex numbers as `rfft` does.
    IndexError for an axis out of range.

    >>> jnp.fft.ihfft(jnp.array([8.0, -2.0, 0.0, -2.0])).real
    Array([1., 2., 3.], dtype=float32)
    """
    return lax.conj(rfft(a, n, axis, _swapped(norm)))


def _swapped(norm: str | None) -> str | None:
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The discrete Fourier transform over several axes.

    a: numbers. s: to how many elements each axis is cut or filled with zeros; None or -1 leave it.
    axes: which, by default the last len(s), or all. norm: as in `fft`, n being the product of the
    lengths. Returns a's shape, with s along the axes, complex as of `fft`. Linear in a. ValueError
    where s and axes do not fit.

    >>> jnp.fft.fftn(jnp.array([[1.0, 2.0], [3.0, 4.0]])).real
    Array([[10., -2.],
           [-4.,  0.]], dtype=float32)
    """
    return _transform("fftn", "FFT", a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The inverse of `fftn`.

    a, s, axes, norm: as in `fftn`, as are the result's shape and dtype.

    >>> jnp.fft.ifftn(jnp.array([[10.0, -2.0], [-4.0, 0.0]])).real
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _transform("ifftn", "IFFT", a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """`fftn` of real numbers: of the last axis the frequencies that are not negative.

    a: real numbers (TypeError). s, axes, norm: as in `fftn`. Returns complex numbers, m // 2 + 1
    along the last of the axes where its length is m.

    >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _transform("rfftn", "RFFT", a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The inverse of `rfftn`: real numbers.

    a, axes, norm: as in `fftn`. s: the lengths of the result, by default 2 (m - 1) for the last
    one. Returns float32, of 64-bit numbers float64. Linear in a.

    >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _transform("irfftn", "IRFFT", a, s, axes, norm)


def fft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """`fftn` over two axes, by default the last ones.

    a, s, axes, norm: as in `fftn`, as are the result's shape and dtype.

    >>> jnp.fft.fft2(jnp.array([[1.0, 2.0], [3.0, 4.0]])).real
    Array([[10., -2.],
           [-4.,  0.]], dtype=float32)
    """
    return _transform("fft2", "FFT", a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `fft2`.

    a, s, axes, norm: as in `fftn`, as are the result's shape and dtype.

    >>> jnp.fft.ifft2(jnp.array([[10.0, -2.0], [-4.0, 0.0]])).real
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _transform("ifft2", "IFFT", a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """`rfftn` over two axes, by default the last ones.

    a: real numbers (TypeError). s, axes, norm: as in `fftn`. Returns complex numbers as `rfftn`
    does.

    >>> jnp.fft.rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _transform("rfft2", "RFFT", a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `rfft2`: real numbers.

    a, s, axes, norm: as in `irfftn`, as are the floats that it returns.

    >>> jnp.fft.irfft2(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _transform("irfft2", "IRFFT", a, s, axes, norm)


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `fft`: 0, 1, ..., -2, -1, each divided by n d.

    n: how many samples, an integer or a float that is one (ValueError). d: the distance of samples,
    a scalar (ValueError). dtype: by default the default float. device: where it is placed.

    >>> jnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    return placed(_frequencies("fftfreq", np.fft.fftfreq, n, d, dtype), device)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `rfft`: 0, 1, ..., n // 2, each divided by n d.

    n, d, dtype, device: as in `fftfreq`.

    >>> jnp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    if dtype is not None:  # the quotients are no integers
        dtype = inexact_dtype(canonical_dtype(dtype, "rfftfreq"))
    return placed(_frequencies("rfftfreq", np.fft.rfftfreq, n, d, dtype), device, error=ValueError)


def _frequencies(name: str, of_count: Callable, n: Any, d: Any, dtype: Any) -> Any:
    if isinstance(d, (list, tuple)):
        raise ValueError(
            f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d}."
        )
    if isinstance(n, float) and n.is_integer():
        n = int(n)
    if not is_symbolic(n):
        try:
            n = index_of(n)
        except TypeError as error:
            if isinstance(n, Tracer):
                raise
            raise ValueError(
                f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {n}."
            ) from error
    if is_symbolic(n):
        place = lax.iota(dtypes.int32, n if name == "fftfreq" else n // 2 + 1)
        place = (place + n // 2) % n - n // 2 if name == "fftfreq" else place
        return cast(place / (d * n), canonical_dtype(dtype, name, dtypes.float64))
    if not n and name == "rfftfreq":  # one frequency, 0 / 0
        return lax.full((1,), np.nan, canonical_dtype(dtype, name, dtypes.float64))
    if n <= 0:
        return lax.full((0,), 0, canonical_dtype(dtype, name, dtypes.float64))
    wanted, values = canonical_dtype(dtype, name, dtypes.float64), of_count(n)
    if isinstance(d, (int, float)):
        return array(values / d, wanted)
    step = one_array(name, d)
    if step.aval.size != 1:
        raise ValueError(f"{name}: d must be a scalar, got {step.aval}.")
    return cast(lax.div(array(values, wanted), cast(lax.reshape(step, ()), wanted)), wanted)


def fftshift(x: Any, axes: Any = None) -> Any:
    """The elements along `axes` turned so that the frequency 0 is in the middle.

    x: an array of any dtype. axes: an integer, a tuple, or None for all. IndexError for an axis out
    of range.

    >>> jnp.fft.fftshift(jnp.array([0, 1, -2, -1]))
    Array([-2, -1,  0,  1], dtype=int32)
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`: the frequency 0 comes first.

    x: an array of any dtype. axes: an integer, a tuple, or None for all. IndexError for an axis out
    of range.

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)


def _shifted(name: str, x: Any, axes: Any, direction: int) -> Any:
    x = one_array(name, x)
    if axes is None:
        axes = tuple(range(x.aval.ndim))
    elif isinstance(axes, int):
        axes = (axes,)
    axes = tuple([canonical_axis(i, x.aval.ndim, name, IndexError) for i in axes])
    return roll(x, [direction * (x.aval.shape[i] // 2) for i in axes], axes)


hold(globals(), __name__)
wrap_public(globals(), __name__, ("fftshift", "ifftshift"))

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return [*__all__]
