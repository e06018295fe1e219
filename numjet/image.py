"""numjet.image: images at another size, by interpolation.

Along each axis the result is a product with a matrix of weights, which a kernel (Keys' cubic,
Lanczos windows, triangles) gives for the distances between the centers of pixels. Source: Keys,
"Cubic convolution interpolation for digital image processing", 1981.

>>> import numjet.numpy as jnp
>>> from numjet import image
>>> print(image.resize(jnp.arange(4.0), (8,), "linear"))
[0.   0.25 0.75 1.25 1.75 2.25 2.75 3.  ]
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.compiled.hashed import hold
from numjet.api.compiled.shown import form
from numjet.api.eager.large import wrap_public
from numjet.core import dtypes
from numjet.core.dims import any_symbolic, index_of
from numjet.lax import Precision
from numjet.numpy.promote import inexact_dtype


class ResizeMethod(enum.Enum):
    """How pixels are interpolated: NEAREST, LINEAR, LANCZOS3, LANCZOS5, CUBIC, CUBIC_PYTORCH (as
    CUBIC where kernels widen, else with Keys' parameter -0.75 and edges that go on outside), or
    AREA, which takes the mean of what a new pixel covers.

    `from_string("bilinear")` gives the member that a word means. Raises ValueError for other words.

    >>> from numjet import image
    >>> image.ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The member that a word means: "nearest", "linear", "bilinear", "triangle", "cubic",
        "lanczos3", ...

        s: the word (ValueError for others).

        >>> from numjet import image
        >>> image.ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        found = _METHODS.get(s)
        if found is None:
            raise ValueError(
                f'Unknown resize method "{s}": use one of {sorted(_METHODS)}.'
            )
        return found


# Elements behind an axis from which rows are multiplied as they lie.
_LONG = 64
_METHODS = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys' kernel with its parameter, the slope at distance 1."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (x - 1) * (x - 2) * (x - 2)
        return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))

    return kernel


def _lanczos(radius: int) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        return jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
}


def _continued(pixels: Any, n: int, places: Any) -> Any:
    """Weights of four neighbours by Keys' kernel of -0.75; those outside are the edge's, up to
    four pixels away, and 0 further out."""
    first, total = jnp.floor(places) - 1, jnp.zeros((), places.dtype)
    for k in range(4):
        near = jnp.clip(first + k, 0, n - 1) == pixels
        total = total + jnp.where(near, _cubic(-0.75)(jnp.abs(places - (first + k))), 0)
    return jnp.where((places > -4) & (places < n + 3), total, 0)


def _weights(
    n: int, size: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """The matrix (n, size) that interpolates n pixels at `size` places."""
    inverse = 1 / scale
    places = (jnp.arange(size, dtype=scale.dtype) + 0.5) * inverse - shift * inverse - 0.5
    places = places[None, :]
    pixels = jnp.arange(n, dtype=scale.dtype)[:, None]
    if method is ResizeMethod.AREA:  # how much of each pixel the new one covers
        overlap = (1 + inverse) / 2 - jnp.abs(places - pixels)
        weights = jnp.clip(overlap, 0, jnp.minimum(1, inverse))
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _continued(pixels, n, places)
    else:
        width = jnp.maximum(inverse, 1) if antialias else 1
        kernel = _KERNELS.get(method, _KERNELS[ResizeMethod.CUBIC])
        weights = kernel(jnp.abs(places - pixels) / width)
    total = jnp.sum(weights, axis=0, keepdims=True)
    least = 1000 * float(np.finfo(np.float32).eps)
    weights = jnp.where(jnp.abs(total) > least, weights / jnp.where(total != 0, total, 1), 0)
    # Nothing lies more than half a pixel outside.
    inside = (places >= -0.5) & (places <= n - 0.5)
    return jnp.where(inside, weights, 0)


def _interpolated(
    x: Any, shape: tuple, axes: Sequence[int], scale: Any, shift: Any, method: ResizeMethod,
    antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    for k, axis in enumerate(axes):
        matrix = _weights(x.shape[axis], shape[axis], scale[k], shift[k], method, antialias)
        matrix = matrix.astype(x.dtype)
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        if not any_symbolic(after) and math.prod(after) >= _LONG:  # nothing is transposed
            rows = x.reshape(math.prod(before), x.shape[axis], math.prod(after))
            product = jnp.matmul(matrix.T, rows, precision=precision)
            x = product.reshape(*before, shape[axis], *after)
        else:
            product = jnp.tensordot(x, matrix, (axis, 0), precision=precision)
            x = jnp.moveaxis(product, -1, axis)
    return x


def _nearest(x: Any, shape: tuple) -> Any:
    for axis, size in enumerate(shape):
        n = x.shape[axis]
        if n != size:
            if size == 0:
                x = jnp.take(x, np.zeros(0, np.int32), axis=axis)
                continue
            if any_symbolic((n, size)):
                at = jnp.floor((jnp.arange(size) + 0.5) * (n / size)).astype(jnp.int32)
                x = jnp.take(x, jnp.minimum(at, n - 1), axis=axis)
                continue
            places = np.floor((np.arange(size) + 0.5) * (n / size)).astype(np.int32)
            x = jnp.take(x, np.minimum(places, n - 1), axis=axis)
    return x


def _prepared(name: str, image: Any, shape: Any, method: Any) -> tuple[Any, tuple, ResizeMethod]:
    if isinstance(image, list | tuple):
        raise AttributeError(f"{name}: a {type(image).__name__} has no axes ('ndim').")
    image = jnp.asarray(image)
    if isinstance(shape, int):
        shape = (shape,)
    shape = tuple([index_of(n) for n in shape])
    if len(shape) != image.ndim:
        raise ValueError(
            f"{name}: shape must have length equal to the number of dimensions of x, one size for "
            f"each axis of the image {image.shape}, got {shape}."
        )
    if isinstance(method, str):
        method = ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(f"{name}: method must be a name or a ResizeMethod, got {method!r}.")
    return image, shape, method


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Any:
    """An image scaled and moved: pixel centre x lies at scale x + translation.

    image: a floating or integer array. shape: of the result, one size for each axis. spatial_dims:
    the axes that are moved. scale, translation: floats, one for each of them. method: as of
    `resize`, but "nearest" (ValueError). antialias: kernels widen where the image shrinks.
    precision: of the products. What lies outside of the image is 0. Differentiable in image, scale
    and translation.

    >>> from numjet import image, numpy as jnp
    >>> one = jnp.ones(1)
    >>> image.scale_and_translate(jnp.arange(4.0), (4,), (0,), one, one, "linear")
    Array([0., 0., 1., 2.], dtype=float32)
    """
    image, shape, method = _prepared("scale_and_translate", image, shape, method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(
            "scale_and_translate: the method 'nearest' is not supported. Use resize, or 'linear'."
        )
    axes = [d + image.ndim if d < 0 else d for d in map(operator.index, spatial_dims)]
    if any(not 0 <= d < image.ndim for d in axes) or len(set(axes)) < len(axes):
        raise ValueError(
            f"scale_and_translate: spatial_dims {tuple(spatial_dims)} must name different axes of "
            f"an image with {image.ndim}."
        )
    wrong = [d for d in range(image.ndim) if d not in axes and shape[d] != image.shape[d]]
    if wrong:
        raise ValueError(
            f"scale_and_translate: only spatial_dims may change their size, but axis {wrong[0]} of "
            f"{image.shape} becomes {shape[wrong[0]]}. Name it in spatial_dims."
        )
    image = _floating(image)
    scale, translation = (jnp.asarray(x, dtype=_real(image.dtype)) for x in (scale, translation))
    for name, x in (("scale", scale), ("translation", translation)):
        if x.shape != (len(axes),):
            raise ValueError(
                f"scale_and_translate: {name} must have one entry for each of the {len(axes)} "
                f"spatial_dims, got shape {x.shape}."
            )
    return _interpolated(image, shape, axes, scale, translation, method, antialias, precision)


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Any:
    """An image at another size, its edges where they were.

    image: a floating or integer array of any rank; integers become floats. shape: one size for each
    axis, of channels and batches too. method: "nearest", "linear", "cubic", "cubic-pytorch",
    "lanczos3", "lanczos5" or "area" ("bilinear" and the like mean the same), or a ResizeMethod.
    antialias: kernels widen where the image shrinks. precision: of the products. Result: floats of
    that shape. Linear in the image. Raises ValueError for another number of sizes or another
    method. Source of "cubic": Keys, Cubic convolution interpolation for digital image processing
    (1981).

    >>> from numjet import image, numpy as jnp
    >>> image.resize(jnp.eye(2), (4, 4), "nearest")
    Array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]], dtype=float32)
    """
    image, shape, method = _prepared("resize", image, shape, method)
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape)
    image = _floating(image)
    axes = [d for d in range(image.ndim) if shape[d] != image.shape[d]]
    ratios = [1.0 if not shape[d] else shape[d] / image.shape[d] for d in axes]
    if any_symbolic((*shape, *image.shape)):
        scale = jnp.asarray(ratios, _real(image.dtype))
    else:
        scale = jnp.asarray(np.array(ratios, np.float64), _real(image.dtype))
    return _interpolated(
        image, shape, axes, scale, jnp.zeros_like(scale), method, antialias, precision
    )


def _floating(image: Any) -> Any:
    return image.astype(inexact_dtype(image.dtype))


def _real(dtype: Any) -> Any:
    """The dtype of weights: those of half floats are computed in single precision."""
    real = dtypes.real_of(dtype) if dtypes.is_complex(dtype) else dtype
    return real if real.itemsize >= 4 else dtypes.float32


# ------------------------------------------------------------------ as JAX writes it
_in_place = resize  # below it is one that asks for its form


@form("_resize")
def _resize_in_jax(
    image: Any, shape: Any, method: Any, antialias: bool = True, precision: Any = Precision.HIGHEST
) -> Any:
    """`resize` in JAX's equations, for who looks at jaxprs."""
    given, (image, shape, method) = image, _prepared("resize", image, shape, method)
    axes = [d for d in range(image.ndim) if shape[d] != image.shape[d]]
    known = method in (ResizeMethod.NEAREST, ResizeMethod.LINEAR, ResizeMethod.CUBIC)
    if not known or 0 in (*shape, *image.shape) or any_symbolic((*shape, *image.shape)):
        return _in_place(given, shape, method, antialias, precision)
    if method is ResizeMethod.NEAREST:
        for d in axes:
            at = lax.iota(dtypes.float32, shape[d]) + 0.5
            at = lax.floor(at * float(image.shape[d]) / float(shape[d])).astype(jnp.int32)
            image = image.at[(slice(None),) * d + (at,)].get(mode="promise_in_bounds")
        return image
    image = _floating(image)
    if not axes:
        return image
    if _real(image.dtype) != image.dtype:
        return _in_place(given, shape, method, antialias, precision)
    letters = list(range(image.ndim))
    operands: list[Any] = [image, letters]
    for d in axes:
        operands += [
            _weights_in_jax(image.shape[d], shape[d], image.dtype, method, antialias),
            [d, image.ndim + d],
        ]
    out = [image.ndim + d if d in axes else d for d in letters]
    return jnp.einsum(*operands, out, precision=precision)


def _weights_in_jax(n: int, size: int, dtype: Any, method: ResizeMethod, antialias: bool) -> Any:
    """As `_weights`, without a shift."""
    inverse = jnp.asarray(n / size, dtype)
    width = lax.max(jnp.asarray(n / size), 1.0) if antialias else 1.0
    places = (lax.iota(dtype, size) + 0.5) * inverse - jnp.asarray(0.0, dtype) - 0.5
    pixels = lax.iota(dtype, n)
    x = jnp.abs(places[None, :] - pixels[:, None]) / width
    if method is ResizeMethod.LINEAR:
        weights = jnp.maximum(0, 1 - jnp.abs(x))
    else:
        near, beyond = ((1.5 * x - 2.5) * x) * x + 1.0, x >= 1.0
        weights = jnp.where(beyond, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0, near)
        weights = jnp.where(x >= 2.0, 0.0, weights)
    total = jnp.sum(weights, axis=0, keepdims=True)
    least = 1000 * float(np.finfo(np.float32).eps)
    weights = jnp.where(jnp.abs(total) > least, weights / jnp.where(total != 0, total, 1), 0)
    inside = jnp.logical_and(places >= -0.5, places <= n - 0.5)[None, :]
    return jnp.where(inside, weights, 0)


__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

hold(globals(), __name__)
wrap_public(globals(), __name__, ("resize", "scale_and_translate"))


def __dir__() -> list[str]:
    return [*__all__]
