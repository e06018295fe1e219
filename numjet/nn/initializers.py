"""numjet.nn.initializers: functions (key, shape, dtype) -> Array that fill weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from numjet import random
from numjet.core import dtypes
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.creation import full as full_, ones as ones_, zeros as zeros_
from numjet.numpy.elementwise import multiply
from numjet.numpy.promote import canonical_dtype, cast
from numjet.numpy.shape import moveaxis, reshape


class Initializer(Protocol):
    """A function that makes an Array of the given shape and dtype from a PRNG key."""

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
    """Zeros; the key is not used."""
    return zeros_(shape, np.float32 if dtype is None else dtype)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; the key is not used."""
    return ones_(shape, np.float32 if dtype is None else dtype)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """`value` everywhere."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return full_(shape, value, _dtype(dtype, None))

    return init


def _times(draw: Callable, scale: Any, dtype: Any) -> Initializer:
    """`scale` times what `draw(key, shape, dtype)` gives."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype, None)
        return multiply(draw(key, shape, kind), cast_scalar(scale, kind))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform in [0, scale)."""
    return _times(random.uniform, scale, dtype)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal with standard deviation `stddev`."""
    return _times(random.normal, stddev, dtype)


def truncated_normal(
    stddev: Any = 1e-2,
    dtype: Any = None,
    lower: Any = -2.0,
    upper: Any = 2.0,
) -> Initializer:
    """Normal, cut to [lower, upper] standard deviations."""

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
    """Random weights of variance scale / fan: the fan of the inputs, the outputs or their mean."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
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
            raise ValueError(f"variance_scaling: mode must be one of {sorted(fans)}, got {mode!r}.")
        variance = scale / max(fans[mode], 1e-30) if fans[mode] else 0.0
        # Rounded like the weights themselves, so that equal keys give equal weights everywhere.
        real = dtypes.real_of(kind)
        variance = np.asarray(variance, real)
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
            spread = _root(variance, real) / real.type(0.87962566103423978)
            return multiply(random.truncated_normal(key, -2, 2, shape, kind), spread)
        raise ValueError(
            "variance_scaling: distribution must be 'normal', 'uniform' or "
            f"'truncated_normal', got {distribution!r}."
        )

    return init


def _root(x: Any, dtype: Any) -> Any:
    return np.sqrt(np.asarray(x, dtype)).astype(dtype)[()]


def _complex_uniform(key: Any, shape: tuple, dtype: Any) -> Any:
    """Uniform in a disk, of variance 1."""
    real = dtypes.real_of(dtype)
    first, second = random.split(key)
    radius = lax.sqrt(multiply(random.uniform(first, shape, real), 2))
    angle = multiply(random.uniform(second, shape, real), 2 * math.pi)
    return lax.complex(multiply(radius, lax.cos(angle)), multiply(radius, lax.sin(angle)))


def _complex_truncated(key: Any, shape: tuple, dtype: Any, upper: float) -> Any:
    """Complex normal, cut at the radius `upper`."""
    real = dtypes.real_of(dtype)
    first, second = random.split(key)
    t = multiply(1 - math.exp(-(upper**2)), random.uniform(first, shape, real))
    radius = lax.sqrt(lax.neg(lax.log1p(lax.neg(t))))
    angle = multiply(random.uniform(second, shape, real), 2 * math.pi)
    return lax.complex(multiply(radius, lax.cos(angle)), multiply(radius, lax.sin(angle)))


def _scaled(scale: float, mode: str, distribution: str, doc: str) -> Any:
    def make(
        in_axis: Any = -2,
        out_axis: Any = -1,
        batch_axis: Any = (),
        dtype: Any = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__doc__ = doc
    return make


xavier_uniform = glorot_uniform = _scaled(
    1.0, "fan_avg", "uniform", "Uniform of variance 1 / mean fan (Glorot 2010)."
)
xavier_normal = glorot_normal = _scaled(
    1.0, "fan_avg", "truncated_normal", "Normal of variance 1 / mean fan (Glorot 2010)."
)
lecun_uniform = _scaled(1.0, "fan_in", "uniform", "Uniform of variance 1 / fan in (LeCun 1998).")
lecun_normal = _scaled(
    1.0, "fan_in", "truncated_normal", "Normal of variance 1 / fan in (LeCun 1998)."
)
kaiming_uniform = he_uniform = _scaled(
    2.0, "fan_in", "uniform", "Uniform of variance 2 / fan in (He 2015)."
)
kaiming_normal = he_normal = _scaled(
    2.0, "fan_in", "truncated_normal", "Normal of variance 2 / fan in (He 2015)."
)


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Matrices with orthonormal rows or columns (whichever are fewer), times `scale`."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype, None)
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError(f"orthogonal: needs at least two dimensions, got shape {shape}.")
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
    """Convolution kernels that are an orthogonal matrix at their middle and 0 elsewhere."""

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        kind = _dtype(dtype, None)
        shape = tuple(shape)
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: needs 3, 4 or 5 dimensions, got shape {shape}.")
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
