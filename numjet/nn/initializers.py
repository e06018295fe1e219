"""numjet.nn.initializers: functions (key, shape, dtype) -> Array that fill weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from numjet import random
from numjet.api.compiled.shown import FLAG, wanted
from numjet.api.placement.reshard import laid_out
from numjet.core import dtypes
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.creation import full as full_, ones as ones_, zeros as zeros_
from numjet.numpy.elementwise import multiply
from numjet.numpy.promote import canonical_dtype, cast
from numjet.numpy.shape import moveaxis, reshape


class Initializer(Protocol):
    """A function that makes an Array of the given shape and dtype from a PRNG key.

    key: as of `numjet.random`; shape: a tuple of integers; dtype: floating or complex, the default
    float unless given; out_sharding: the layout.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """

    def __call__(
        self,
        key: Any,
        shape: Any,
        dtype: Any = None,
        out_sharding: Any = None,
    ) -> Any: ...


def _dtype(given: Any, default: Any) -> Any:
    wanted = given if given is not None else default
    found = (
        dtypes.canonical(dtypes.float64)
        if wanted is None
        else canonical_dtype(wanted, "initializer")
    )
    if not dtypes.is_inexact(found):
        raise ValueError(f"initializer: dtype must be floating or complex, got {found}.")
    return found


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros of the given shape: an initializer itself.

    key: is not used. shape: a tuple of integers. dtype: any, the default float unless given.
    out_sharding: the layout.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return zeros_(shape, dtype, out_sharding=out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones of the given shape: an initializer itself.

    key: is not used. shape: a tuple of integers. dtype: any, the default float unless given.
    out_sharding: the layout.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return ones_(shape, dtype, out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An initializer that gives `value` everywhere.

    value: a number, or an array that broadcasts to the shape. dtype: the default of the
    initializer's. Result: a function (key, shape, dtype, out_sharding) -> Array.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.constant(0.5)(random.key(0), (2,))
    Array([0.5, 0.5], dtype=float32)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if out_sharding is not None:
            return laid_out(lambda: init(key, shape, dtype), out_sharding)
        wanted = dtypes.canonical(dtypes.float64) if dtype is None else dtype
        return full_(shape, value, canonical_dtype(wanted, "constant"))

    return init


def _times(draw: Callable, scale: Any, dtype: Any) -> Initializer:
    """`scale` times what `draw(key, shape, dtype)` gives."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if out_sharding is not None:
            return laid_out(lambda: init(key, shape, dtype), out_sharding)
        kind = _dtype(dtype, None)
        return multiply(draw(key, shape, kind), cast_scalar(scale, kind))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer of uniform values in [0, scale).

    scale: a number. dtype: the default of the initializer's. Result: a function (key, shape, dtype,
    out_sharding) -> Array.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.uniform(2.0)(random.key(0), (2,)).round(4)
    Array([1.8953, 1.9572], dtype=float32)
    """
    return _times(random.uniform, scale, dtype)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer of normal values with mean 0.

    stddev: the standard deviation. dtype: the default of the initializer's; complex ones have both
    parts. Result: a function (key, shape, dtype, out_sharding) -> Array.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.normal(1.0)(random.key(0), (2,)).round(4)
    Array([1.6226, 2.0253], dtype=float32)
    """
    return _times(random.normal, stddev, dtype)


def truncated_normal(
    stddev: Any = 1e-2,
    dtype: Any = None,
    lower: Any = -2.0,
    upper: Any = 2.0,
) -> Initializer:
    """An initializer of normal values with mean 0, cut at some standard deviations.

    stddev: the standard deviation before they are cut. dtype: the default of the initializer's.
    lower, upper: the bounds, in standard deviations. Result: a function (key, shape, dtype,
    out_sharding) -> Array.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.truncated_normal(1.0)(random.key(0), (2,)).round(4)
    Array([1.456 , 1.7147], dtype=float32)
    """

    def draw(key: Any, shape: Any, dtype: Any) -> Any:
        return random.truncated_normal(key, lower, upper, shape, dtype)

    return _times(draw, stddev, dtype)


def cast_scalar(value: Any, dtype: Any) -> Any:
    """A Python number as it is, an array in `dtype`."""
    return cast(value, dtype) if hasattr(value, "aval") else value


def _fans(shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple:
    def sizes(axes: Any) -> int:
        axes = (axes,) if isinstance(axes, int) else tuple(axes)
        return math.prod([shape[i] for i in axes])

    if len(shape) <= 1:
        raise ValueError(
            f"variance_scaling: weights of shape {tuple(shape)} have no fan in and fan "
            "out: at least two dimensions are needed."
        )
    inputs, outputs, batch = sizes(in_axis), sizes(out_axis), sizes(batch_axis)
    field = math.prod(shape) / max(inputs * outputs * batch, 1)
    return inputs * field, outputs * field


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: Any = None,
) -> Initializer:
    """An initializer of random weights with variance scale / fan.

    scale: a positive number. mode: which fan, 'fan_in', 'fan_out', 'fan_avg' (their mean) or
    'fan_geo_avg'. distribution: 'truncated_normal' (cut at two standard deviations, of the variance
    asked for), 'normal' or 'uniform'. in_axis, out_axis, batch_axis: which axes are inputs, outputs
    and neither; the others count for both fans. dtype: the default of the initializer's. Result: a
    function (key, shape, dtype, out_sharding) -> Array. Raises ValueError for other words.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.variance_scaling(1.0, "fan_in", "uniform")(random.key(0), (4, 1)).shape
    (4, 1)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if out_sharding is not None:
            return laid_out(lambda: init(key, shape, dtype), out_sharding)
        kind = _dtype(dtype, None)
        shape = tuple(shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in fans:
            raise ValueError(
                f"invalid mode for variance scaling initializer: {mode}. Use one of "
                f"{sorted(fans)}."
            )
        variance = scale / max(fans[mode], 1e-30) if fans[mode] else 0.0
        # Rounded like the weights themselves, so that equal keys give equal weights everywhere.
        real = dtypes.real_of(kind)
        variance = np.asarray(variance, real)
        if FLAG.uses and wanted() and not dtypes.is_complex(kind):
            return _shown_weights(distribution, key, shape, kind, scalar(variance, kind))
        if distribution == "normal":
            return multiply(random.normal(key, shape, kind), _root(variance, kind))
        if distribution == "uniform":
            if dtypes.is_complex(kind):
                return multiply(_complex_uniform(key, shape, kind), _root(variance, kind))
            return multiply(random.uniform(key, shape, kind, -1), _root(3 * variance, real))
        if distribution == "truncated_normal":
            if dtypes.is_complex(kind):
                return multiply(
                    _complex_truncated(key, shape, kind, 2.0),
                    _root(variance, kind) / real.type(0.95311164380491208),
                )
            # The deviation of a standard normal distribution cut at two deviations.
            deviation = _root(variance, real) / real.type(0.87962566103423978)
            return multiply(random.truncated_normal(key, -2, 2, shape, kind), deviation)
        raise ValueError(
            f"invalid distribution for variance scaling initializer: {distribution}. Use 'normal', "
            "'uniform' or 'truncated_normal'."
        )

    return init


def _shown_weights(distribution: str, key: Any, shape: tuple, dtype: Any, variance: Any) -> Any:
    """Weights whose deviation is computed by equations, as in JAX's jaxprs."""
    if distribution == "uniform":
        drawn = random.uniform(key, shape, dtype, -1)
        return multiply(drawn, lax.sqrt(lax.mul(scalar(3, dtype), variance)))
    if distribution == "normal":
        return multiply(random.normal(key, shape, dtype), lax.sqrt(variance))
    deviation = lax.div(lax.sqrt(variance), scalar(0.87962566103423978, dtype))
    return multiply(random.truncated_normal(key, -2, 2, shape, dtype), deviation)


def _root(x: Any, dtype: Any) -> Any:
    return np.sqrt(np.asarray(x, dtype)).astype(dtype)[()]


def _turned(key: Any, radius: Any) -> Any:
    """Complex numbers of these absolute values, in every direction alike."""
    angle = multiply(random.uniform(key, radius.shape, radius.dtype), 2 * math.pi)
    return lax.complex(multiply(radius, lax.cos(angle)), multiply(radius, lax.sin(angle)))


def _complex_uniform(key: Any, shape: tuple, dtype: Any) -> Any:
    """Uniform in a disk, of variance 1."""
    real = dtypes.real_of(dtype)
    first, second = random.split(key)
    radius = lax.sqrt(multiply(random.uniform(first, shape, real), 2))
    return _turned(second, radius)


def _complex_truncated(key: Any, shape: tuple, dtype: Any, upper: float) -> Any:
    """Complex normal, cut at the radius `upper`."""
    real = dtypes.real_of(dtype)
    first, second = random.split(key)
    t = multiply(1 - math.exp(-(upper**2)), random.uniform(first, shape, real))
    radius = lax.sqrt(lax.neg(lax.log1p(lax.neg(t))))
    return _turned(second, radius)


# The names of a layer's weights, by where their variance was derived.
_SOURCES = {
    "glorot": "Glorot and Bengio, Understanding the difficulty of training deep networks (2010)",
    "lecun": "LeCun, Bottou, Orr and Müller, Efficient BackProp (1998)",
    "he": "He, Zhang, Ren and Sun, Delving deep into rectifiers (2015)",
}


def _scaled(name: str, scale: float, mode: str, distribution: str) -> Any:
    """`variance_scaling` with its first three arguments given, under `name`."""

    def make(
        in_axis: Any = -2,
        out_axis: Any = -1,
        batch_axis: Any = (),
        dtype: Any = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    who, kind = name.split("_")
    fan = {"fan_in": "inputs", "fan_avg": "mean of inputs and outputs"}[mode]
    drawn = "uniform" if kind == "uniform" else "normal, cut at two deviations"
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""An initializer of variance {scale:g} / {fan}: {drawn}.

    in_axis, out_axis, batch_axis: which axes are inputs, outputs and neither; the others count for
    inputs and outputs. dtype: the default of the initializer's. Result: a function (key, shape,
    dtype, out_sharding) -> Array. Raises ValueError for shapes of less than two axes.
    Source: {_SOURCES[who]}.

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.{name}()(random.key(0), (4, 2)).shape
    (4, 2)
    """
    return make


xavier_uniform = glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
xavier_normal = glorot_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
kaiming_uniform = he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
kaiming_normal = he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of matrices with orthonormal rows or columns, whichever are fewer.

    scale: a factor. column_axis: the axis of the columns; the others together are the rows. dtype:
    the default of the initializer's. Result: a function (key, shape, dtype, out_sharding) -> Array.
    It raises ValueError for less than two axes. Source: Saxe, McClelland and Ganguli, Exact
    solutions to the nonlinear dynamics of learning (2013).

    >>> from numjet import random, numpy as jnp
    >>> from numjet.nn import initializers
    >>> w = initializers.orthogonal()(random.key(0), (3, 2))
    >>> jnp.abs(w.T @ w).round(3)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if out_sharding is not None:
            return laid_out(lambda: init(key, shape, dtype), out_sharding)
        kind = _dtype(dtype, None)
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError(f"orthogonal initializer requires at least a 2D shape, got {shape}.")
        columns = shape[column_axis]
        rows = math.prod(shape) // max(columns, 1)
        n, m = max(rows, columns), min(rows, columns)
        q, r = linalg.qr(random.normal(key, (n, m), kind))
        diagonal = linalg.diagonal(r)
        q = multiply(
            q, reshape(lax.div(diagonal, cast(lax.abs(diagonal), diagonal.aval.dtype)), (1, m))
        )
        if rows < columns:
            q = lax.transpose(q, (1, 0))
        others = shape[:column_axis] + (shape[column_axis + 1 :] if column_axis != -1 else ())
        q = moveaxis(reshape(q, (*others, columns)), -1, column_axis)
        return multiply(cast_scalar(scale, kind), q)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of convolution kernels: an orthogonal matrix at their middle, 0 elsewhere.

    scale: a factor. column_axis: the axis of the output features. dtype: the default of the
    initializer's. Result: a function (key, shape, dtype, out_sharding) -> Array. It takes shapes of
    3 to 5 axes with no more inputs than outputs (ValueError). Source: Xiao and others, Dynamical
    isometry and a mean field theory of CNNs (2018).

    >>> from numjet import random
    >>> from numjet.nn import initializers
    >>> initializers.delta_orthogonal()(random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if out_sharding is not None:
            return laid_out(lambda: init(key, shape, dtype), out_sharding)
        kind = _dtype(dtype, None)
        shape = tuple(shape)
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape, got {shape}."
            )
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal: outputs {shape[-1]} must not be fewer than inputs {shape[-2]}."
            )
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        middle = tuple([(n - 1) // 2 for n in shape[:-2]])
        return zeros_(shape, kind).at[(*middle, ...)].set(matrix)

    return init


__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


def __dir__() -> list[str]:
    return [*__all__]
