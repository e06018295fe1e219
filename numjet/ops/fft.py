"""Discrete Fourier transforms over the last one to three axes.

For `lax.fft`, `numpy.fft` and `scipy.fft`, which move axes and scale. What would break it: a
transform to real values whose length is taken from half a spectrum, which does not tell even from
odd: `fft_lengths` says it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import index_of
from numjet.core.lowering import Kernel
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, convert, linear_jvp, moveaxis, zeros
from numjet.ops.arithmetic import mul
from numjet.ops.complex_ops import conj, real
from numjet.ops.shape import pad


class FftType(enum.IntEnum):
    """Forward and inverse transforms of complex values, and of real ones to half a spectrum and
    back.

    >>> from numjet import lax, numpy as jnp
    >>> lax.fft(jnp.ones(2), lax.FftType.RFFT, (2,))
    Array([2.+0.j, 0.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _abstract(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple) -> ShapedArray:
    name, count = fft_type.name, len(fft_lengths)
    if not 1 <= count <= 3 or count > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths "
            f"{fft_lengths}, which are one to three ({name} of {x.str_short()})."
        )
    if fft_type is FftType.RFFT:
        if x.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(f"fft: RFFT takes float32 or float64, got {x.str_short()}.")
    elif not dtypes.is_complex(x.dtype):
        raise TypeError(
            f"fft: {name} takes complex values, got {x.str_short()}. Convert with .astype()."
        )
    last = fft_lengths[-1] // 2 + 1 if fft_type is FftType.IRFFT else fft_lengths[-1]
    want = (*fft_lengths[:-1], last)
    if x.shape[-count:] != want:
        raise ValueError(
            f"fft: {name} with lengths {fft_lengths} takes an operand whose last axes are {want}, "
            f"got {x.str_short()}. Pad or slice it first."
        )
    if fft_type is FftType.RFFT:
        return ShapedArray((*x.shape[:-1], fft_lengths[-1] // 2 + 1), dtypes.complex_of(x.dtype))
    if fft_type is FftType.IRFFT:
        return ShapedArray((*x.shape[:-1], fft_lengths[-1]), dtypes.real_of(x.dtype))
    return x.strong()


def _reference(x: np.ndarray, *, fft_type: FftType, fft_lengths: tuple) -> np.ndarray:
    import scipy.fft

    if len(fft_lengths) == 1 and x.size and fft_lengths[0]:
        one = (scipy.fft.fft, scipy.fft.ifft, scipy.fft.rfft, scipy.fft.irfft)[fft_type]
        return one(x, fft_lengths[0])
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    function = {
        FftType.FFT: scipy.fft.fftn,
        FftType.IFFT: scipy.fft.ifftn,
        FftType.RFFT: scipy.fft.rfftn,
        FftType.IRFFT: scipy.fft.irfftn,
    }[fft_type]
    if not x.size or 0 in fft_lengths:
        out = _abstract(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(out.shape, out.dtype)
    return function(x, s=fft_lengths, axes=axes)


def _transpose(ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple) -> list:
    aval = x.aval
    out = _transposed(ct, fft_type, fft_lengths)
    return [convert(out, aval.dtype, aval.weak_type)]


def _transposed(ct: Any, fft_type: FftType, fft_lengths: tuple) -> Any:
    """The transposed transform of `ct`."""
    if fft_type in (FftType.FFT, FftType.IFFT):  # the matrix is symmetric
        return fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)
    n = fft_lengths[-1]
    if fft_type is FftType.RFFT:
        # The missing half of the spectrum has no cotangent; the operand is real.
        missing = n - ct.aval.shape[-1]
        full = pad(
            ct,
            zeros(ShapedArray((), ct.aval.dtype)),
            [(0, 0, 0)] * (ct.aval.ndim - 1) + [(0, missing, 0)],
        )
        return real(fft_p.bind(full, fft_type=FftType.FFT, fft_lengths=fft_lengths))
    # Every coefficient counts twice, except those that are their own mirror image.
    half = n // 2 + 1
    weight = np.full(half, 2.0)
    weight[0] = 1
    if n % 2 == 0:
        weight[-1] = 1
    weight = (weight / math.prod(fft_lengths)).astype(ct.aval.dtype)
    spectrum = conj(fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths))
    factor = convert(as_array(weight), spectrum.aval.dtype)
    return mul(spectrum, broadcast_in_dim(factor, spectrum.aval.shape, (spectrum.aval.ndim - 1,)))


def _batch(axis: Any, args: tuple, dims: tuple, **params: Any) -> tuple:
    return fft_p.bind(moveaxis(args[0], dims[0], 0), **params), 0


fft_p = Primitive(
    "fft",
    linear=True,
    abstract=_abstract,
    reference=_reference,
    jvp=linear_jvp(lambda: fft_p),
    transpose=_transpose,
    batch=_batch,
    loops=Kernel("fft"),
)


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """The discrete Fourier transform over the last axes.

    x: an array, real for RFFT; integers become floats. fft_type: 'FFT', 'IFFT', 'RFFT' (to n // 2 +
    1 elements) or 'IRFFT' (back), or an FftType. fft_lengths: one to three lengths, which the last
    axes must have (IRFFT: n // 2 + 1 last). Inverse transforms divide by the number of elements.
    Result: complex64 or complex128, for IRFFT real. Linear. Raises ValueError for lengths and types
    that do not fit; `numpy.fft` pads. Source: Cooley and Tukey (1965) with Stockham's order; Bailey
    (1990) for long ones; Bluestein (1970) for large prime factors.

    >>> from numjet import lax, numpy as jnp
    >>> lax.fft(jnp.array([1.0, 0.0, 0.0, 0.0]), "RFFT", (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    x = as_array(x)
    if isinstance(fft_type, str):
        name = fft_type.upper()
        if name not in FftType.__members__:
            raise ValueError(
                f"Unknown FFT type {fft_type!r}: use 'FFT', 'IFFT', 'RFFT' or 'IRFFT'."
            )
        fft_type = FftType[name]
    if not isinstance(fft_type, FftType):
        raise TypeError(f"fft: fft_type must be an FftType or its name, got {fft_type!r}.")
    if fft_type is FftType.RFFT:
        if dtypes.is_complex(x.dtype):
            raise ValueError(
                f"only real valued inputs supported for rfft, got {x.aval.str_short()}. Use "
                "'FFT'."
            )
        if x.dtype not in (dtypes.float32, dtypes.float64):
            wide = x.dtype in (dtypes.int64, dtypes.uint64)
            x = convert(x, dtypes.float64 if wide else dtypes.float32)
    elif not dtypes.is_complex(x.dtype):
        wide = x.dtype in (dtypes.float64, dtypes.int64, dtypes.uint64)
        x = convert(x, dtypes.complex128 if wide else dtypes.complex64)
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=tuple([index_of(n) for n in fft_lengths]))
