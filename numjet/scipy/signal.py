"""numjet.scipy.signal: convolution of arrays; spectra of time series (`spectra`), removal of
trends (`trends`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet import lax, numpy as jnp
from numjet.api.compiled.hashed import hold
from numjet.core import dtypes
from numjet.numpy.promote import as_arrays, promote_inexact
from numjet.scipy.spectra import csd, istft, stft, welch
from numjet.scipy.trends import detrend

_MODES = ("full", "same", "valid")


def _check_mode(name: str, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {list(_MODES)}, got {mode!r}.")


def _larger_first(name: str, x: Any, y: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    """For mode 'valid': the operand first that is nowhere smaller."""
    sizes = [(x.shape[i], y.shape[i]) for i in axes]
    if all(a >= b for a, b in sizes):
        return x, y
    if all(a <= b for a, b in sizes):
        return y, x
    raise ValueError(
        f"{name}: One input must be smaller than the other in every dimension for mode='valid', "
        f"got shapes {x.shape} and {y.shape}."
    )


# ------------------------------------------------------------------ by Fourier transforms
def fftconvolve(
    in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Any:
    """The convolution of arrays by Fourier transforms.

    in1, in2: of one number of axes; integers as floats. mode: as for `convolve`. axes: those that
    are convolved (all, unless given); along others the shapes are equal. Source: that of
    `numpy.fft.fft`.

    >>> import numjet.numpy as jnp
    >>> print(jnp.round(fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])), 5))
    [1. 5. 6.]
    """
    x, y = promote_inexact(*as_arrays("fftconvolve", in1, in2))
    if x.ndim != y.ndim:
        raise ValueError(
            f"fftconvolve: in1 and in2 should have the same dimensionality, got shapes {x.shape} "
            f"and {y.shape}."
        )
    _check_mode("fftconvolve", mode)
    if axes is None:
        places = list(range(x.ndim))
    else:
        places = [axes] if isinstance(axes, int) else list(axes)
        if any(not -x.ndim <= a < x.ndim for a in places):
            raise ValueError(f"fftconvolve: axes {axes} are out of bounds for {x.ndim} dimensions.")
        places = [a % x.ndim for a in places]
    for i in set(range(x.ndim)) - set(places):
        if x.shape[i] != y.shape[i]:
            raise ValueError(
                f"fftconvolve: mapped axes must have same shape; got in1.shape={x.shape} "
                f"in2.shape={y.shape} axes={tuple(places)}."
            )
    if not places:
        return x * y
    if mode == "valid":
        x, y = _larger_first("fftconvolve", x, y, places)
    return _by_transforms(x, y, mode, places)


def _by_transforms(x: Any, y: Any, mode: str, axes: Sequence[int]) -> Any:
    sizes = [x.shape[i] + y.shape[i] - 1 for i in axes]
    small = x.dtype.itemsize < 4 and not dtypes.is_complex(x.dtype)
    a, b = (v.astype(dtypes.float32) if small else v for v in (x, y))
    if dtypes.is_complex(x.dtype):
        product = jnp.fft.fftn(a, sizes, axes) * jnp.fft.fftn(b, sizes, axes)
        whole = jnp.fft.ifftn(product, sizes, axes)
    else:
        product = jnp.fft.rfftn(a, sizes, axes) * jnp.fft.rfftn(b, sizes, axes)
        whole = jnp.fft.irfftn(product, sizes, axes)
    if mode == "full":
        return whole.astype(x.dtype)
    window = [slice(None)] * x.ndim
    for i in axes:
        n, m = x.shape[i], y.shape[i]
        start, count = ((m - 1) // 2, n) if mode == "same" else (m - 1, n - m + 1)
        window[i] = slice(start, start + count)
    return whole[tuple(window)].astype(x.dtype)


# ------------------------------------------------------------------ directly
def _correlated(name: str, x: Any, kernel: Any, mode: str, precision: Any) -> Any:
    """Σ_j x_(i + j) kernel_j, for the positions that `mode` names."""
    if not x.ndim:
        return x * kernel
    if not x.size or not kernel.size:
        raise ValueError(
            f"{name}: zero-size arrays not supported in convolutions, got shapes {x.shape} and "
            f"{kernel.shape}."
        )
    if mode == "full":
        padding = [(m - 1, m - 1) for m in kernel.shape]
    elif mode == "same":
        padding = [(m // 2, m - m // 2 - 1) for m in kernel.shape]
    else:
        padding = [(0, 0)] * x.ndim
    out = lax.conv_general_dilated(
        x[None, None], kernel[None, None], (1,) * x.ndim, padding, precision=precision
    )
    return out[0, 0]


def _operands(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    x, y = promote_inexact(*as_arrays(name, in1, in2))
    if x.ndim != y.ndim:
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes {x.shape} "
            f"and {y.shape}."
        )
    _check_mode(name, mode)
    return x, y


def _convolved(name: str, x: Any, y: Any, mode: str, precision: Any) -> Any:
    """Of larger arrays with smaller ones; "same" is about in1, whichever it was."""
    sizes = list(zip(x.shape, y.shape, strict=True))
    if any([a < b for a, b in sizes]) and any([a > b for a, b in sizes]):
        raise ValueError(
            f"{name}: One input must be smaller than the other in every dimension, got shapes "
            f"{x.shape} and {y.shape}. fftconvolve takes others."
        )
    if mode == "valid":
        x, y = _larger_first(name, x, y, range(x.ndim))
    if x.shape == y.shape or mode == "full" and all([a <= b for a, b in sizes]):
        x, y = y, x  # the smaller one, or the first of equal ones, is turned round
    if mode != "same" or all(a >= b for a, b in zip(x.shape, y.shape, strict=True)):
        return _correlated(name, x, jnp.flip(y), mode, precision)
    whole = _correlated(name, x, jnp.flip(y), "full", precision)
    starts = [(m - 1) // 2 for m in y.shape]
    return whole[tuple(slice(s, s + n) for s, n in zip(starts, x.shape, strict=True))]


def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Any:
    """The convolution of arrays of any number of axes: y_i = Σ_j in1_j in2_(i - j).

    in1, in2: of one number of axes; integers as floats. mode: "full", all positions where the
    arrays meet; "same", as many as in1 has, from the middle; "valid", those where one array lies
    within the other. method: "direct" ("auto" means it) or "fft", `fftconvolve`. precision: of the
    products, as of `lax.dot_general`. Linear in both. Raises ValueError for other words and for
    numbers of axes that differ.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]))
    Array([1., 5., 6.], dtype=float32)
    """
    if method == "fft":
        _operands("convolve", in1, in2, mode)
        return fftconvolve(in1, in2, mode=mode)
    if method not in ("direct", "auto"):
        raise ValueError(f"convolve: Got method={method!r}; expected 'auto', 'fft', or 'direct'.")
    x, y = _operands("convolve", in1, in2, mode)
    return _convolved("convolve", x, y, mode, precision)


def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Any:
    """The correlation of arrays: the convolution of in1 with in2 reversed and conjugated.

    in1, in2: of one number of axes; integers as floats. mode: "full", all positions where the
    arrays meet; "same", as many as in1 has, from the middle; "valid", those where one array lies
    within the other. Result: the promoted dtype. method: "direct" ("auto" means it) or "fft".
    precision: of the products. Raises ValueError for other words and for numbers of axes that
    differ.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> signal.correlate(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]))
    Array([3., 7., 2.], dtype=float32)
    """
    x, y = _operands("correlate", in1, in2, mode)
    turned = jnp.flip(jnp.conj(y))
    if mode == "valid" and any(a < b for a, b in zip(x.shape, y.shape, strict=True)):
        x, turned = _larger_first("correlate", x, turned, range(x.ndim))
    return convolve(x, turned, mode, method, precision)


def _check_boundary(name: str, x: Any, y: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}() only supports boundary='fill', fillvalue=0. Pad in1 with jnp.pad and use "
            "mode='valid'."
        )
    if jnp.ndim(x) != 2 or jnp.ndim(y) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


def convolve2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Any:
    """`convolve` of two matrices; outside of them are zeros.

    in1, in2: matrices (ValueError for others); integers as floats. mode: "full", all positions
    where the arrays meet; "same", as many as in1 has, from the middle; "valid", those where one
    array lies within the other. Result: a matrix of the promoted dtype. boundary must be "fill",
    fillvalue 0 (NotImplementedError). precision: of the products.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> signal.convolve2d(jnp.eye(2), jnp.array([[1.0, 2.0]]))
    Array([[1., 2., 0.],
           [0., 1., 2.]], dtype=float32)
    """
    _check_boundary("convolve2d", in1, in2, boundary, fillvalue)
    return convolve(in1, in2, mode, precision=precision)


def correlate2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Any:
    """`correlate` of two matrices; outside of them are zeros.

    in1, in2: matrices (ValueError for others); integers as floats. mode: as of `convolve`, but
    "same" differs for even sizes of in2: position i has in2's element n // 2 on in1's element i,
    and "valid" of a smaller in1 conjugates in1 instead of in2, both as in SciPy. boundary must be
    "fill", fillvalue 0 (NotImplementedError). precision: of the
    products.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import signal
    >>> signal.correlate2d(jnp.eye(2), jnp.array([[1.0, 2.0]]))
    Array([[2., 1., 0.],
           [0., 2., 1.]], dtype=float32)
    """
    _check_boundary("correlate2d", in1, in2, boundary, fillvalue)
    x, y = _operands("correlate2d", in1, in2, mode)
    if mode != "same":
        found = correlate(x, y, mode, precision=precision)
        return found.conj() if mode == "valid" and x.size < y.size else found
    whole = correlate(x, y, "full", precision=precision)
    starts = [m // 2 for m in y.shape]
    return whole[tuple(slice(s, s + n) for s, n in zip(starts, x.shape, strict=True))]


__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]

hold(globals(), __name__)


def __dir__() -> list[str]:
    return [*__all__]
