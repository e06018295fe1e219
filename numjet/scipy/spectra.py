"""Spectra of time series for numjet.scipy.signal: stft, istft, csd, welch.

A series is cut into overlapping pieces, each is weighted by a window and transformed. Source:
Welch, "The use of fast Fourier transform for the estimation of power spectra", IEEE Trans. AU 15,
1967; the inverse of least squares by Griffin & Lim, IEEE Trans. ASSP 32, 1984.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet import numpy as jnp
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays, promote_inexact
from numjet.scipy.trends import broadcasting, detrend as _detrend

_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


class _Cut(NamedTuple):
    """How a series is cut: a window, its length, the overlap, the transform's length."""

    window: np.ndarray | Any
    length: int
    overlap: int
    size: int


def _window(window: Any, length: int | None, longest: int) -> tuple[Any, int]:
    """The window's values and their number."""
    if isinstance(window, str | tuple):
        count = 256 if length is None else length
        if count > longest:
            if length is not None:
                warnings.warn(
                    f"nperseg = {count} is greater than input length = {longest}, using "
                    f"nperseg = {longest}",
                    stacklevel=4,
                )
            count = longest
        from scipy.signal import get_window

        return get_window(window, count), count
    values = jnp.asarray(window)
    if values.ndim != 1:
        raise ValueError("window must be 1-D.")
    if longest < values.shape[0]:
        raise ValueError("window is longer than input signal.")
    if length is not None and length != values.shape[0]:
        raise ValueError(
            f"value specified for nperseg is different from length of window: {length} and "
            f"{values.shape[0]}."
        )
    return values, values.shape[0]


def _cut(window: Any, nperseg: Any, noverlap: Any, nfft: Any, longest: int) -> _Cut:
    if nperseg is not None and int(nperseg) < 1:
        raise ValueError(f"nperseg must be a positive integer, got {nperseg}.")
    values, length = _window(window, None if nperseg is None else int(nperseg), longest)
    size = length if nfft is None else int(nfft)
    if size < length:
        raise ValueError(f"nfft must be greater than or equal to nperseg, got {size} and {length}.")
    overlap = length // 2 if noverlap is None else int(noverlap)
    if overlap >= length:
        raise ValueError(f"noverlap must be less than nperseg, got {overlap} and {length}.")
    return _Cut(values, length, overlap, size)


def _detrended(detrend: Any) -> Callable:
    if not detrend:
        return lambda x: x
    if callable(detrend):
        return detrend
    return lambda x: _detrend(x, type=detrend, axis=-1)


def _extended(x: Any, boundary: str | None, count: int) -> Any:
    """`x` with `count` more elements at both ends of the last axis."""
    if boundary is None or not count:
        return x
    if boundary in ("even", "odd") and count > x.shape[-1] - 1:
        raise ValueError(
            f"boundary={boundary!r} needs more than {count} samples, got {x.shape[-1]}."
        )
    first, last = x[..., :1], x[..., -1:]
    if boundary == "zeros":
        left = right = jnp.zeros((*x.shape[:-1], count), x.dtype)
    elif boundary == "constant":
        left, right = (jnp.broadcast_to(v, (*x.shape[:-1], count)) for v in (first, last))
    else:
        left = x[..., 1 : count + 1][..., ::-1]
        right = x[..., -count - 1 : -1][..., ::-1]
        if boundary == "odd":
            left, right = 2 * first - left, 2 * last - right
    return jnp.concatenate([left, x, right], -1)


def _pieces(x: Any, cut: _Cut, trend: Callable, window: Any, one_sided: bool) -> Any:
    """The transforms of the weighted pieces of the last axis: [..., pieces, frequencies]."""
    step = cut.length - cut.overlap
    starts = np.arange(0, x.shape[-1] - cut.length + 1, step)
    pieces = x[..., starts[:, None] + np.arange(cut.length)]
    weighted = trend(pieces) * window.astype(x.dtype)
    transform = jnp.fft.rfft if one_sided else jnp.fft.fft
    return transform(weighted, cut.size)


def _series(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """Both series along their last axes, in one floating dtype, their other axes broadcast."""
    if y is None:
        (x,) = promote_inexact(*as_arrays(name, x))
        y = x
    else:
        x, y = promote_inexact(*as_arrays(name, x, y))
    for v in (x, y):
        if not -v.ndim <= axis < v.ndim:
            raise ValueError(f"{name}: axis {axis} is out of bounds for {v.ndim} dimensions.")
    same = y is x
    x = jnp.moveaxis(x, axis, -1)
    if same:
        return x, x
    y = jnp.moveaxis(y, axis, -1)
    longest = max(x.shape[-1], y.shape[-1])
    try:
        lead = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    except ValueError:
        raise ValueError(f"{name}: x and y cannot be broadcast together.") from None
    x, y = (
        jnp.broadcast_to(
            jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, longest - v.shape[-1])]), (*lead, longest)
        )
        for v in (x, y)
    )
    return x, y


def _spectra(
    name: str,
    x: Any,
    y: Any,
    *,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    products: bool,
    boundary: Any = None,
    padded: bool = False,
) -> tuple[Any, Any, Any]:
    """Frequencies, times, and [..., frequencies, pieces] along the former `axis` and the last one:
    transforms, or with `products` the spectral densities of pieces."""
    if boundary not in _BOUNDARIES:
        raise ValueError(
            f"Unknown boundary option {boundary!r}, must be one of: {list(_BOUNDARIES)}"
        )
    same = y is None
    x, y = _series(name, x, y, axis)
    complex_ = dtypes.is_complex(x.dtype)
    real = dtypes.real_of(x.dtype) if complex_ else x.dtype
    if not x.size or not y.size:
        empty = jnp.moveaxis(jnp.zeros((*x.shape[:-1], 0), real), -1, axis)
        out = empty if products and same else empty.astype(dtypes.complex_of(real))
        return empty, empty, out  # All of the shape of x, as in SciPy.
    cut = _cut(window, nperseg, noverlap, nfft, x.shape[-1])
    step = cut.length - cut.overlap
    values = jnp.asarray(cut.window).astype(real)
    if scaling == "density":
        scale = 1 / (fs * (values * values).sum())
    elif scaling == "spectrum":
        scale = 1 / values.sum() ** 2
    else:
        raise ValueError(f"{name}: Unknown scaling: {scaling}. Use 'density' or 'spectrum'.")
    parts = [x] if same else [x, y]
    parts = [_extended(v, boundary, cut.length // 2) for v in parts]
    if padded:
        more = (-(parts[0].shape[-1] - cut.length)) % step % cut.length
        parts = [jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, more)]) for v in parts]
    one_sided = return_onesided and not complex_
    trend = _detrended(detrend)
    transforms = [_pieces(v, cut, trend, values, one_sided) for v in parts]
    frequencies = (jnp.fft.rfftfreq if one_sided else jnp.fft.fftfreq)(cut.size, 1 / fs)
    kind = transforms[0].dtype
    out = transforms[0] * jnp.sqrt(scale).astype(kind) if not products else None
    if products:
        if same:
            out = jnp.square(jnp.abs(transforms[0])) * scale
        else:
            out = jnp.conj(transforms[0]) * transforms[1] * scale.astype(kind)
        if one_sided:
            # Both signs of a frequency count, but for those that are their own opposites.
            stop = out.shape[-1] - (cut.size % 2 == 0)
            out = out.at[..., 1:stop].multiply(2)
    n = parts[0].shape[-1]
    half = cut.length / 2
    real = dtypes.real_of(kind)  # float32 of half precision, whose transforms are complex64
    times = jnp.asarray(np.arange(half, n - half + 1, step).astype(real)) / fs
    if boundary is not None:
        times = times - half / fs
    out = jnp.swapaxes(out, -1, -2)
    return (
        frequencies.astype(real),
        times.astype(real),
        jnp.moveaxis(out, -2, axis - 1 if axis < 0 else axis),
    )


@broadcasting
def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """The Fourier transforms of overlapping pieces of x: (frequencies, times, transforms).

    x: a real or complex array. fs: samples in a unit of time. window: a name or tuple that
    `scipy.signal.get_window` knows, or its values. nperseg, noverlap, nfft: the length of the
    pieces (256, or all of a shorter x), how far they overlap (half), the transforms' length.
    detrend: False, "constant", "linear" or a function of pieces. return_onesided: of real x the
    frequencies from 0 on alone; complex x has those of both signs. axis: of time. boundary: how x
    is extended by half a piece: "zeros", "even", "odd", "constant", None (not). padded: zeros
    behind so that pieces cover all. Result: transforms complex, with the frequencies in the place
    of the axis and the times behind. Linear in x. Raises ValueError for other words and lengths.
    Source: Allen, Short term spectral analysis, synthesis, and modification by discrete Fourier
    transform (1977). SciPy's `scaling` is not there: it is that of 'spectrum'.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> frequencies, times, z = signal.stft(jnp.ones(16), nperseg=8)
    >>> print(z.shape, frequencies[1])
    (5, 5) 0.125
    """
    return _spectra(
        "stft", x, None, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft,
        detrend=detrend, return_onesided=return_onesided, scaling="spectrum", axis=axis,
        products=False, boundary=boundary, padded=padded,
    )  # fmt: skip


@broadcasting
def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The cross spectral density of two series: (frequencies, density).

    x, y: real or complex arrays; a shorter one has zeros behind; y=None takes x. fs: samples in a
    unit of time. window: a name or tuple that `scipy.signal.get_window` knows, or its values.
    nperseg, noverlap, nfft: the length of the pieces (256, or all of a shorter x), how far they
    overlap (half), the transforms' length. detrend: False, "constant", "linear" or a function of
    pieces. return_onesided: of real x the frequencies from 0 on alone; complex x has those of both
    signs. axis: of time. scaling: "density" (per unit of frequency) or "spectrum". average: "mean"
    or "median" of the pieces. Raises ValueError for other words and lengths. Source: Welch, The use
    of fast Fourier transform for the estimation of power spectra (1967).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> frequencies, density = signal.csd(jnp.ones(16), jnp.ones(16), nperseg=8, detrend=False)
    >>> density.shape
    (5,)
    """
    frequencies, _, out = _spectra(
        "csd", x, y, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft,
        detrend=detrend, return_onesided=return_onesided, scaling=scaling, axis=axis,
        products=True,
    )  # fmt: skip
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    if not out.size:
        return frequencies, out
    if out.shape[-1] == 1 or average == "mean":
        return frequencies, out.mean(-1)
    # The median of n exponential values is below their mean by this factor (Allen et al. 2012).
    even = 2 * np.arange(1, (out.shape[-1] - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if dtypes.is_complex(out.dtype):
        middle = jnp.median(out.real, -1) + 1j * jnp.median(out.imag, -1)
    else:
        middle = jnp.median(out, -1)
    return frequencies, middle / bias


@broadcasting
def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The power spectral density of a series, averaged over pieces: (frequencies, density).

    x: a real or complex array. fs: samples in a unit of time. window: a name or tuple that
    `scipy.signal.get_window` knows, or its values. nperseg, noverlap, nfft: the length of the
    pieces (256, or all of a shorter x), how far they overlap (half), the transforms' length.
    detrend: False, "constant", "linear" or a function of pieces. return_onesided: of real x the
    frequencies from 0 on alone; complex x has those of both signs. axis: of time. scaling:
    "density" (per unit of frequency) or "spectrum". average: "mean" or "median" of the pieces.
    Result: density real. Raises ValueError for other words and lengths. Source: Welch, The use of
    fast Fourier transform for the estimation of power spectra (1967).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> frequencies, density = signal.welch(jnp.sin(jnp.arange(64.0)), nperseg=16)
    >>> print(density.shape, jnp.argmax(density))
    (9,) 3
    """
    frequencies, out = csd(
        x, None, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft,
        detrend=detrend, return_onesided=return_onesided, scaling=scaling, axis=axis,
        average=average,
    )  # fmt: skip
    return frequencies, out.real


def _added(pieces: Any, step: int) -> Any:
    """The sum of overlapping pieces [..., count, length], each `step` behind the one before."""
    count, length = pieces.shape[-2:]
    rows = -(-length // step)
    pieces = jnp.pad(pieces, [(0, 0)] * (pieces.ndim - 1) + [(0, rows * step - length)])
    pieces = pieces.reshape(*pieces.shape[:-1], rows, step)
    out = jnp.zeros((*pieces.shape[:-3], count + rows - 1, step), pieces.dtype)
    for r in range(rows):
        out = out.at[..., r : r + count, :].add(pieces[..., r, :])
    return out.reshape(*out.shape[:-2], -1)[..., : (count - 1) * step + length]


@broadcasting
def istft(
    Zxx: Any,  # noqa: N803 - a public name
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:
    """The series whose `stft` is nearest to given transforms, the inverse of `stft`: (times,
    series).

    Zxx: complex, as stft gave it. fs, window, nperseg, noverlap, nfft: as they were there.
    input_onesided: frequencies from 0 on alone, of a real series. boundary: whether stft extended
    the series. time_axis, freq_axis: where times and frequencies are. Linear in Zxx. Raises
    ValueError for lengths that do not fit. Source: Griffin and Lim, Signal estimation from modified
    short-time Fourier transform (1984). SciPy's `scaling` is not there.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> times, again = signal.istft(signal.stft(jnp.arange(16.0), nperseg=8)[2])
    >>> bool(jnp.abs(again - jnp.arange(16.0)).max() < 1e-4)
    True
    """
    (z,) = promote_inexact(*as_arrays("istft", Zxx))
    if z.ndim < 2:
        raise ValueError("istft: Input stft must be at least 2d!")
    if freq_axis % z.ndim == time_axis % z.ndim:
        raise ValueError("istft: Must specify differing time and frequency axes!")
    if not dtypes.is_complex(z.dtype):
        z = z.astype(dtypes.complex_of(z.dtype if z.dtype.itemsize >= 4 else dtypes.float32))
    lines = z.shape[freq_axis]
    natural = 2 * (lines - 1) if input_onesided else lines
    length = natural if nperseg is None else int(nperseg)
    if length < 1:
        raise ValueError(f"istft: nperseg must be a positive integer, got {nperseg}.")
    if nfft is None:
        # An odd length cannot be told from the number of frequencies alone.
        size = length if input_onesided and length == natural + 1 else natural
    else:
        size = int(nfft)
    if size < length:
        raise ValueError(f"istft: FFT length ({size}) must be longer than nperseg ({length}).")
    overlap = length // 2 if noverlap is None else int(noverlap)
    if overlap >= length:
        raise ValueError(f"istft: noverlap must be less than nperseg, got {overlap} and {length}.")
    step = length - overlap
    real = dtypes.real_of(z.dtype)
    if isinstance(window, str | tuple):
        from scipy.signal import get_window

        values = jnp.asarray(get_window(window, length).astype(real))
    else:
        values = jnp.asarray(window).astype(real)
        if values.shape != (length,):
            raise ValueError(f"istft: window must have {length} values, got shape {values.shape}.")
    frequency, time = freq_axis % z.ndim, time_axis % z.ndim
    z = jnp.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    inverse = jnp.fft.irfft if input_onesided else jnp.fft.ifft
    pieces = inverse(z, size)[..., :length] * (values * values.sum())
    total = _added(pieces, step)
    weights = jnp.broadcast_to(values * values, (z.shape[-2], length))
    norm = _added(weights, step)
    if boundary:
        half = length // 2
        total = total[..., half : total.shape[-1] - half]
        norm = norm[half : norm.shape[-1] - half]
    out = total / jnp.where(norm > 1e-10, norm, 1)
    if z.ndim > 2:
        out = jnp.moveaxis(out, -1, time - (frequency < time))
    # Of as many times as the first axis is long, as in SciPy.
    return jnp.arange(out.shape[0], dtype=real) / fs, out


__all__ = ["csd", "istft", "stft", "welch"]
