"""conv_general_dilated: n-dimensional convolutions with strides, padding, dilation and feature
groups.

Called through the functions below by numjet.lax and the neural-network layers. Batch groups are
rewritten into feature groups before the primitive is bound, so that its rules know one kind of
group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, hooks
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import index_of
from numjet.core.lowering import Kernel
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import add_tangents, convert, moveaxis, transpose, zeros
from numjet.ops.conv_numbers import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    dilated,
    out_spatial,
    padtype_to_pads,
    transpose_pads,
)
from numjet.ops.dot import canonical_precision, dot_general
from numjet.ops.dot_algorithms import of_convolution
from numjet.ops.shape import padded, reshape, rev


# ------------------------------------------------------------------ the primitive
def _abstract(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    ls, rs, out = dimension_numbers
    both = f"lhs {lhs.str_short()}, rhs {rhs.str_short()}"
    if lhs.ndim != rhs.ndim:
        raise ValueError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, but got "
            f"{lhs.ndim} and {rhs.ndim}: {both}."
        )
    if lhs.ndim < 2:
        raise TypeError(f"conv_general_dilated: lhs and rhs need at least two axes; got {both}.")
    spatial = lhs.ndim - 2
    for name, value in (
        ("window_strides", window_strides),
        ("padding", padding),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if name == "padding" and len(value) != spatial:
            raise TypeError(
                f"Wrong number of explicit pads for convolution: expected {spatial}, got "
                f"{len(value)}: {value}; {both}."
            )
        if len(value) != spatial:
            raise ValueError(
                f"conv_general_dilated window and {name} must have the same number of dimensions, "
                f"but got {spatial} and {len(value)}, {value}; {both}."
            )
    if lhs.shape[ls[1]] % feature_group_count:
        raise ValueError(
            "conv_general_dilated feature_group_count must divide lhs feature dimension size, but "
            f"{feature_group_count} does not divide {lhs.shape[ls[1]]}; got {both}."
        )
    if lhs.shape[ls[1]] != rhs.shape[rs[1]] * feature_group_count:
        raise ValueError(
            "conv_general_dilated lhs feature dimension size divided by feature_group_count must "
            f"equal the rhs input feature dimension size, but {lhs.shape[ls[1]]} // "
            f"{feature_group_count} != {rhs.shape[rs[1]]}; got {both}. Check dimension_numbers."
        )
    if rhs.shape[rs[0]] % feature_group_count:
        raise ValueError(
            "conv_general_dilated rhs output feature dimension size must be a multiple of "
            f"feature_group_count, but {rhs.shape[rs[0]]} is not a multiple of "
            f"{feature_group_count}; rhs is {rhs.str_short()}."
        )
    if lhs.dtype != rhs.dtype and preferred_element_type is None:
        raise TypeError(f"conv_general_dilated: operands must have one dtype, got {both}.")
    shape = [0] * lhs.ndim
    shape[out[0]], shape[out[1]] = lhs.shape[ls[0]], rhs.shape[rs[0]]
    for i in range(spatial):
        shape[out[i + 2]] = out_spatial(
            lhs.shape[ls[i + 2]],
            rhs.shape[rs[i + 2]],
            window_strides[i],
            padding[i],
            lhs_dilation[i],
            rhs_dilation[i],
        )
    weak = lhs.weak_type and rhs.weak_type
    return ShapedArray(tuple(shape), preferred_element_type or lhs.dtype, weak)


def _reference(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    window_strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> np.ndarray:
    ls, rs, out_spec = dimension_numbers
    dtype = preferred_element_type or lhs.dtype
    work = dtypes.float32 if dtypes.is_floating(dtype) and dtype.itemsize <= 2 else dtype
    x, w = lhs.astype(work, copy=False).transpose(ls), rhs.astype(work, copy=False).transpose(rs)
    groups, spatial = feature_group_count, x.ndim - 2
    kernel = w.shape[2:]
    gaps = [(low, high, by - 1) for (low, high), by in zip(padding, lhs_dilation, strict=True)]
    x = padded(x, 0, padding_config=[(0, 0, 0)] * 2 + gaps)
    out_shape = [
        max(0, (n - dilated(k, d)) // s + 1) if n >= dilated(k, d) else 0
        for n, k, d, s in zip(x.shape[2:], kernel, rhs_dilation, window_strides, strict=True)
    ]
    batch, features = x.shape[:2]
    if 0 in out_shape or 0 in kernel or not batch:
        result = np.zeros((batch, w.shape[0], *out_shape), work)
    else:
        strides = (
            *x.strides[:2],
            *[a * s for a, s in zip(x.strides[2:], window_strides, strict=True)],
            *[a * d for a, d in zip(x.strides[2:], rhs_dilation, strict=True)],
        )
        windows = np.lib.stride_tricks.as_strided(
            x, (batch, features, *out_shape, *kernel), strides, writeable=False
        )
        # [group, batch, out…, features of the group, kernel…] as matrices of one row an output
        # position.
        windows = windows.reshape(batch, groups, features // groups, *out_shape, *kernel)
        order = [1, 0, *range(3, 3 + spatial), 2, *range(3 + spatial, 3 + 2 * spatial)]
        inner = features // groups * math.prod(kernel)
        rows = windows.transpose(order).reshape(groups, batch * math.prod(out_shape), inner)
        columns = w.reshape(groups, w.shape[0] // groups, inner).transpose(0, 2, 1)
        result = np.matmul(rows, columns).reshape(groups, batch, *out_shape, w.shape[0] // groups)
        result = np.moveaxis(np.moveaxis(result, -1, 1), 2, 0).reshape(
            batch, w.shape[0], *out_shape
        )
    inverse = [out_spec.index(i) for i in range(result.ndim)]
    return result.transpose(inverse).astype(dtype, copy=False)


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    lhs, rhs = primals
    out = conv_general_dilated_p.bind(lhs, rhs, **params)
    total: Any = Zero(out.aval.tangent())
    if type(tangents[0]) is not Zero:
        total = conv_general_dilated_p.bind(tangents[0], rhs, **params)
    if type(tangents[1]) is not Zero:
        total = add_tangents(total, conv_general_dilated_p.bind(lhs, tangents[1], **params))
    return out, total


def _to_lhs(
    ct: Any,
    lhs: ShapedArray,
    rhs: Any,
    *,
    window_strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    **rest: Any,
) -> Any:
    """The convolution of the cotangent with the reversed kernel, features exchanged."""
    if 0 in lhs.shape or 0 in ct.aval.shape:
        return zeros(lhs)
    ls, rs, out_spec = dimension_numbers
    rhs = rev(rhs, rs[2:])
    if feature_group_count > 1:
        rhs = _regroup(rhs, rs[0], rs[1], feature_group_count)
    pads = []
    for i in range(len(window_strides)):
        k = dilated(rhs.aval.shape[rs[i + 2]], rhs_dilation[i])
        low = k - 1 - padding[i][0]
        high = (
            dilated(lhs.shape[ls[i + 2]], lhs_dilation[i])
            + k
            - 1
            - dilated(ct.aval.shape[out_spec[i + 2]], window_strides[i])
            - low
        )
        pads.append((low, high))
    return conv_general_dilated_p.bind(
        ct,
        rhs,
        window_strides=lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        feature_group_count=feature_group_count,
        **rest,
        dimension_numbers=ConvDimensionNumbers(out_spec, (rs[1], rs[0], *rs[2:]), ls),
    )


def _regroup(rhs: Any, out_axis: int, in_axis: int, groups: int) -> Any:
    """Move the group from the output features to the input features."""
    return merge(split_axis(rhs, out_axis, groups), out_axis, in_axis + (in_axis > out_axis))


def split_axis(x: Any, axis: int, count: int) -> Any:
    """Axis of size count * n as two axes (count, n)."""
    shape = x.aval.shape
    return reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))


def merge(x: Any, axis: int, into: int) -> Any:
    """Axis `axis` moved before axis `into` (positions in x) and merged with it, `axis` being the
    slower one.
    """
    into -= into > axis
    x = moveaxis(x, axis, into)
    shape = x.aval.shape
    return reshape(x, (*shape[:into], shape[into] * shape[into + 1], *shape[into + 2 :]))


def _to_rhs(
    ct: Any,
    lhs: Any,
    rhs: ShapedArray,
    *,
    window_strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    **rest: Any,
) -> Any:
    """The convolution of the input with the cotangent, batch and features exchanged."""
    if 0 in lhs.aval.shape or 0 in ct.aval.shape:
        return zeros(rhs)
    ls, rs, out_spec = dimension_numbers
    pads = []
    for i in range(len(window_strides)):
        low = padding[i][0]
        high = (
            dilated(ct.aval.shape[out_spec[i + 2]], window_strides[i])
            + dilated(rhs.shape[rs[i + 2]], rhs_dilation[i])
            - dilated(lhs.aval.shape[ls[i + 2]], lhs_dilation[i])
            - 1
            - low
        )
        pads.append((low, high))
    if feature_group_count > 1:
        # Groups of input features become groups of the exchanged features, which are the batch.
        lhs = merge(split_axis(lhs, ls[1], feature_group_count), ls[1], ls[0] + (ls[0] > ls[1]))
    return conv_general_dilated_p.bind(
        lhs,
        ct,
        window_strides=rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        feature_group_count=feature_group_count,
        **rest,
        dimension_numbers=ConvDimensionNumbers(
            (ls[1], ls[0], *ls[2:]),
            (out_spec[1], out_spec[0], *out_spec[2:]),
            (rs[1], rs[0], *rs[2:]),
        ),
    )


def _transpose(ct: Any, lhs: Any, rhs: Any, *, preferred_element_type: Any, **params: Any) -> list:
    side, other = (lhs, rhs) if type(lhs) is Linear else (rhs, lhs)
    params["preferred_element_type"] = None
    if ct.aval.dtype != other.aval.dtype:
        ct = convert(ct, other.aval.dtype, ct.aval.weak_type)
    to_lhs = type(lhs) is Linear
    out = _to_lhs(ct, side.aval, rhs, **params) if to_lhs else _to_rhs(
        ct, lhs, side.aval, **params)
    out = convert(out, side.aval.dtype, out.aval.weak_type)
    return [out, None] if to_lhs else [None, out]


def _batch(
    axis: Any,
    args: tuple,
    dims: tuple,
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    **params: Any,
) -> tuple:
    (lhs, rhs), (ld, rd) = args, dims
    ls, rs, out_spec = dimension_numbers
    params["dimension_numbers"] = dimension_numbers

    def fold(x: Any, dim: int, into: int) -> Any:
        return merge(x, dim, into + (into >= dim))

    if rd is None:
        out = conv_general_dilated_p.bind(
            fold(lhs, ld, ls[0]), rhs, feature_group_count=feature_group_count, **params
        )
        return split_axis(out, out_spec[0], axis.size), out_spec[0]
    if ld is None:
        # Output features ordered (group, batch element, feature of the group).
        groups = feature_group_count
        rhs = split_axis(moveaxis(rhs, rd, 0), rs[0] + 1, groups)
        rhs = moveaxis(rhs, 0, rs[0] + 1)
        shape, at = rhs.aval.shape, rs[0]
        rhs = reshape(
            rhs, (*shape[:at], shape[at] * shape[at + 1] * shape[at + 2], *shape[at + 3 :])
        )
        out = conv_general_dilated_p.bind(lhs, rhs, feature_group_count=groups, **params)
        at = out_spec[1]
        shape = out.aval.shape
        out = reshape(
            out,
            (*shape[:at], groups, axis.size, shape[at] // (groups * axis.size), *shape[at + 1 :]),
        )
        out = moveaxis(out, at + 1, 0)
        shape = out.aval.shape
        return reshape(out, (*shape[: at + 1], shape[at + 1] * shape[at + 2], *shape[at + 3 :])), 0
    out = conv_general_dilated_p.bind(
        fold(lhs, ld, ls[1]),
        fold(rhs, rd, rs[0]),
        feature_group_count=feature_group_count * axis.size,
        **params,
    )
    return split_axis(out, out_spec[1], axis.size), out_spec[1]


conv_general_dilated_p = Primitive(
    "conv_general_dilated",
    linear=True,
    abstract=_abstract,
    reference=_reference,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loops=Kernel("conv"),
)


# ------------------------------------------------------------------ public functions
def _ones(value: Sequence[int] | None, n: int) -> tuple[int, ...]:
    return (1,) * n if value is None else tuple([int(v) for v in value])


def _check_preferred(own: Any, preferred: Any) -> None:
    """TypeError for results of another kind than floats and complex numbers, narrower ones than
    the operands', and unsigned ones of signed integers."""
    if own == dtypes.bool_:
        return
    kind, wanted = ("f" if dtypes.is_floating(d) else dtypes.kind(d) for d in (own, preferred))
    allowed = {"i": "if", "u": "iuf", "f": "f", "c": "c"}[kind]
    if wanted not in allowed or preferred.itemsize < own.itemsize:
        raise TypeError(
            f"conv_general_dilated: preferred_element_type {preferred} does not fit operands of "
            f"{own}. Convert the result with .astype()."
        )


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """A convolution of lhs with rhs over their spatial axes; the kernel is not reversed (a
    correlation).

    lhs: the input, with an axis of batch, one of features and any of space; rhs: the kernel, with
    axes of output features, input features and space; of one dtype. window_strides: an integer for
    each spatial axis. padding: 'SAME', 'VALID', 'SAME_LOWER' or (low, high) for each. lhs_dilation:
    gaps between elements of lhs (a transposed convolution); rhs_dilation: gaps in the kernel.
    dimension_numbers: as of `conv_dimension_numbers`. feature_group_count, batch_group_count:
    groups of features or examples that are convolved apart. precision, preferred_element_type,
    out_sharding: as of `dot_general`.

    Linear in both operands. Raises TypeError for dtypes that differ, ValueError for shapes and
    groups that do not fit.

    >>> from numjet import lax, numpy as jnp
    >>> x, kernel = jnp.arange(4.0).reshape(1, 1, 4), jnp.ones((1, 1, 2))
    >>> lax.conv_general_dilated(x, kernel, (1,), "SAME")
    Array([[[1., 3., 5., 3.]]], dtype=float32)
    """
    if out_sharding is not None:
        given = (
            lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
            feature_group_count, batch_group_count, precision, preferred_element_type,
        )  # fmt: skip
        return hooks.laid_out(lambda: conv_general_dilated(*given), out_sharding)
    lhs, rhs = as_array(lhs), as_array(rhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    spatial = lhs.ndim - 2
    strides, lhs_dilation, rhs_dilation = (
        _ones(v, spatial) for v in (window_strides, lhs_dilation, rhs_dilation)
    )
    for error, values in ((TypeError, rhs_dilation), (ValueError, (*strides, *lhs_dilation))):
        if any(v < 1 for v in values):
            raise error(
                f"conv_general_dilated: strides {strides} and dilations {lhs_dilation}, "
                f"{rhs_dilation} must be positive."
            )
    for count in (feature_group_count, batch_group_count):
        if isinstance(count, str):
            raise TypeError(f"conv_general_dilated: counts of groups are integers, not {count!r}.")
        if count != int(count) or count < 1:
            raise ValueError(
                f"conv_general_dilated: counts of groups must be positive integers, got {count!r}."
            )
    if isinstance(padding, str) or hasattr(padding, "name"):
        if len(strides) != spatial:
            raise ValueError(
                "conv_general_dilated window and window_strides must have the same number of "
                f"dimensions, but got {spatial} and {len(strides)}."
            )
        if any(by != 1 for by in lhs_dilation or ()):
            raise ValueError(
                f"conv_general_dilated: padding={padding!r} has no meaning with lhs_dilation="
                f"{tuple(lhs_dilation)}: String padding is not implemented for transposed "
                "convolution. Give pairs of integers, or use conv_transpose."
            )
        window = [
            dilated(rhs.shape[a], d)
            for a, d in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)
        ]
        size = [
            dilated(lhs.shape[a], d)
            for a, d in zip(numbers.lhs_spec[2:], lhs_dilation, strict=True)
        ]
        padding = padtype_to_pads(size, window, strides, padding)
    elif not isinstance(padding, Sequence) or not all(
        isinstance(p, Sequence) and len(p) == 2 for p in padding
    ):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, "
            f"high) pairs, got {padding!r}."
        )
    if batch_group_count > 1:
        if feature_group_count > 1:
            raise ValueError(
                "conv_general_dilated: at most one of feature_group_count and batch_group_count "
                "may exceed 1."
            )
        batch, feature = numbers.lhs_spec[:2]
        if (
            lhs.shape[batch] % batch_group_count
            or rhs.shape[numbers.rhs_spec[0]] % batch_group_count
        ):
            raise ValueError(
                f"conv_general_dilated: batch_group_count {batch_group_count} must divide the "
                "batch size and the output features."
            )
        lhs = merge(split_axis(lhs, batch, batch_group_count), batch, feature + (feature > batch))
        feature_group_count = batch_group_count
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonical(preferred_element_type)
        dtypes.check_supported(preferred_element_type)
        _check_preferred(lhs.aval.dtype, preferred_element_type)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=tuple([(index_of(a), index_of(b)) for a, b in padding]),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        precision=canonical_precision(of_convolution(precision)),
        preferred_element_type=preferred_element_type,
    )


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution of inputs by batch, feature, space with a kernel by output feature, input
    feature, space.

    lhs: [n, c, ...], rhs: [o, c, ...], floating or integer, of one dtype. window_strides, padding,
    precision, preferred_element_type: as of `conv_general_dilated`, which it is without dilation.
    Result: [n, o, ...].

    >>> from numjet import lax, numpy as jnp
    >>> lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (2,), "VALID")
    Array([[[2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        tuple(window_strides),
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """As `conv`, with padding and dilations free: `conv_general_dilated` of [n, c, ...] by [o, c,
    ...].

    lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision,
    preferred_element_type: as there. Result: [n, o, ...].

    >>> from numjet import lax, numpy as jnp
    >>> x, kernel = jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2))
    >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, None)
    Array([[[1., 2., 2.]]], dtype=float32)
    """
    if isinstance(padding, str) and lhs_dilation is not None and any(
        [d != 1 for d in lhs_dilation]
    ):
        raise ValueError(
            "String padding is not implemented for transposed convolution: "
            f"padding={padding!r} with lhs_dilation={tuple(lhs_dilation)}. Give the padding in "
            "numbers, or use conv_transpose."
        )
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_TRANSPOSE_SPECS = {
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """The transposed (fractionally strided) convolution: strides dilate the input instead of
    thinning it.

    lhs: the input, rhs: the kernel; axes [n, ..., c] and [..., c, o] unless dimension_numbers say
    otherwise. strides: an integer for each spatial axis. padding: 'SAME', 'VALID' or (low, high)
    for each, of the forward convolution with use_consistent_padding. rhs_dilation: gaps in the
    kernel. transpose_kernel: reverse the kernel and exchange its features, so that this is the
    gradient of the forward convolution with the same kernel. precision, preferred_element_type: as
    of `dot_general`. Result: axes as of lhs with o features, the operands' dtype unless
    preferred_element_type is given. Linear in both operands. Raises ValueError for shapes that do
    not fit.

    >>> from numjet import lax, numpy as jnp
    >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), "SAME").ravel()
    Array([1., 1., 1., 1.], dtype=float32)
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    if dimension_numbers is None:
        if lhs.ndim not in _TRANSPOSE_SPECS:
            raise ValueError(
                "conv_transpose: pass dimension_numbers for other than one to three spatial axes."
            )
        dimension_numbers = _TRANSPOSE_SPECS[lhs.ndim]
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    spatial = lhs.ndim - 2
    dilation = _ones(rhs_dilation, spatial)
    kernel = [dilated(rhs.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], dilation, strict=True)]
    if isinstance(padding, str):
        padding = [
            transpose_pads(k, s, padding.upper()) for k, s in zip(kernel, strides, strict=True)
        ]
    elif use_consistent_padding:
        padding = [
            (k - 1 - low, k - 1 - high) for k, (low, high) in zip(kernel, padding, strict=True)
        ]
    if transpose_kernel:
        rhs = rev(rhs, numbers.rhs_spec[2:])
        spec = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(spec[1], spec[0], *spec[2:]))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * spatial,
        padding,
        strides,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The windows that a convolution sees, as features: by input feature, then by position in the
    window.

    lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision,
    preferred_element_type: as of `conv_general_dilated`. filter_shape: the window's sizes. Result:
    as the convolution's, with c · ∏ filter_shape features.

    >>> from numjet import lax, numpy as jnp
    >>> lax.conv_general_dilated_patches(jnp.arange(3.0).reshape(1, 1, 3), (2,), (1,), "VALID")
    Array([[[0., 1.],
            [1., 2.]]], dtype=float32)
    """
    lhs = as_array(lhs)
    filter_shape = tuple([int(k) for k in filter_shape])
    numbers = conv_dimension_numbers(lhs.shape, (1, 1, *filter_shape), dimension_numbers)
    features, count = lhs.shape[numbers.lhs_spec[1]], math.prod(filter_shape)
    # One kernel for each window position, repeated for each feature, each a group of its own.
    one_hot = np.tile(
        np.eye(count, dtype=lhs.dtype).reshape(count, 1, *filter_shape),
        (features, *[1] * (1 + len(filter_shape))),
    )
    rhs = one_hot.transpose([numbers.rhs_spec.index(i) for i in range(one_hot.ndim)])
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a transposed convolution's result. See `conv_transpose`.

    lhs_shape, rhs_shape, window_strides, padding, dimension_numbers: as there; padding is (low,
    high) for each spatial axis, or a word. Raises TypeError or ValueError for what does not fit.

    >>> from numjet import lax
    >>> lax.conv_transpose_shape_tuple((1, 2, 1), (2, 1, 3), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 4, 3)
    """
    numbers = conv_dimension_numbers(tuple(lhs_shape), tuple(rhs_shape), dimension_numbers)
    sizes = []
    spatial = zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], window_strides, strict=True)
    for i, (left, right, stride) in enumerate(spatial):
        n, kernel = lhs_shape[left], rhs_shape[right]
        pads = (
            transpose_pads(kernel, stride, padding.upper())
            if isinstance(padding, str)
            else padding[i]
        )
        sizes.append(dilated(n, stride) + sum(pads) - kernel + 1)
    out = [0] * len(lhs_shape)
    out[numbers.out_spec[0]] = lhs_shape[numbers.lhs_spec[0]]
    out[numbers.out_spec[1]] = rhs_shape[numbers.rhs_spec[0]]
    for axis, size in zip(numbers.out_spec[2:], sizes, strict=True):
        out[axis] = max(size, 0)
    return tuple(out)


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Any:
    """A convolution with a kernel of its own at each output position (a locally connected layer).

    lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as of
    `conv_general_dilated`. rhs: its spatial axes are the output's positions, its input features
    those of lhs times the places of the window, features first. filter_shape: the window's sizes.
    Result: the shape of `conv_general_dilated` with that window, the operands' dtype. Linear in
    both operands. Raises TypeError where the positions differ.

    >>> from numjet import lax, numpy as jnp
    >>> kernels = jnp.arange(6.0).reshape(1, 2, 3)
    >>> lax.conv_general_dilated_local(jnp.ones((1, 1, 4)), kernels, (1,), "VALID", (2,))
    Array([[[3., 5., 7.]]], dtype=float32)
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    (n, features, *places), (_, into, *kernels) = numbers.out_spec, numbers.rhs_spec
    found = [patches.shape[a] for a in places]
    if found != [rhs.shape[a] for a in kernels] or patches.shape[features] != rhs.shape[into]:
        raise TypeError(
            f"conv_general_dilated_local: rhs {rhs.aval.str_short()} must have the output's "
            f"positions {tuple(found)} as spatial axes and {patches.shape[features]} input "
            "features."
        )
    axes = (((features,), (into,)), (tuple(places), tuple(kernels)))
    made = dot_general(patches, rhs, axes, precision)  # positions, then batch and features
    order = [0] * made.ndim
    for axis, source in zip((*places, n, features), range(made.ndim), strict=True):
        order[axis] = source
    return transpose(made, tuple(order))
