"""Where the axes of a convolution are, how it is padded, and which shape it has.

Used by `ops.conv` and `ops.window`; no arrays are touched here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class ConvDimensionNumbers(NamedTuple):
    """Where the axes are: lhs (batch, feature, spatial…), rhs (out feature, in feature, spatial…),
    out like lhs.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def out_spatial(
    n: int, k: int, stride: int, pads: tuple[int, int], n_dilation: int, k_dilation: int
) -> int:
    size = dilated(n, n_dilation) + pads[0] + pads[1] - dilated(k, k_dilation)
    return max(0, size // stride + 1) if size >= 0 else 0


def dilated(n: int, by: int) -> int:
    """The size of n elements with by - 1 gaps between neighbours."""
    return (n - 1) * by + 1 if n else 0


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """The (low, high) pads that 'SAME', 'SAME_LOWER' or 'VALID' mean."""
    name = str(getattr(padding, "name", padding)).upper()
    if name == "VALID":
        return [(0, 0)] * len(window_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"Unknown padding {padding!r}: use 'SAME', 'SAME_LOWER', 'VALID' or pairs of integers."
        )
    pads = []
    for n, k, s in zip(in_shape, window_shape, window_strides, strict=True):
        total = max(0, (-(-int(n) // int(s)) - 1) * int(s) + int(k) - int(n))
        low = total // 2 if name == "SAME" else -(-total // 2)
        pads.append((low, total - low))
    return pads


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: Any,
) -> ConvDimensionNumbers:
    """Dimension numbers from None (NCHW, OIHW), three strings such as ('NHWC', 'HWIO', 'NHWC'), or
    themselves.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim:
        raise TypeError(
            f"convolution: lhs and rhs need equally many axes, got shapes {tuple(lhs_shape)} and "
            f"{tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    specs: tuple = tuple(dimension_numbers)
    if len(specs) != 3 or any(len(s) != ndim for s in specs):
        raise TypeError(
            f"convolution: dimension_numbers must be three strings of {ndim} letters, such as "
            f"('NHWC', 'HWIO', 'NHWC'), got {dimension_numbers}."
        )
    if not all(isinstance(s, str) for s in specs):
        return ConvDimensionNumbers(*[tuple(s) for s in specs])
    return ConvDimensionNumbers(*conv_general_permutations(specs))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The axes (batch or out feature, feature, spatial in the order of the kernel) that the letters
    name.
    """
    letters: tuple = (("N", "C"), ("O", "I"), ("N", "C"))
    spatial = [c for c in dimension_numbers[1] if c not in "OI"]
    found = []
    for spec, (first, second) in zip(dimension_numbers, letters, strict=True):
        if sorted(spec) != sorted([first, second, *spatial]):
            raise ValueError(
                f"convolution: {spec!r} must hold {first}, {second} and the spatial letters "
                f"{''.join(spatial)!r} of {dimension_numbers[1]!r} once each."
            )
        found.append((spec.index(first), spec.index(second), *[spec.index(c) for c in spatial]))
    return tuple(found)


def transpose_pads(k: int, stride: int, padding: str) -> tuple[int, int]:
    """The pads of a transposed convolution that undo those of a forward one."""
    if padding == "SAME":
        total = k + stride - 2
        low = k - 1 if stride > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total = k + stride - 2 + max(k - stride, 0)
        low = k - 1
    else:
        raise ValueError(
            f"conv_transpose: padding must be 'SAME', 'VALID' or pairs of integers, got "
            f"{padding!r}."
        )
    return low, total - low


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The output shape for NCHW inputs and OIHW kernels."""
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    spatial = [
        out_spatial(n, k, s, tuple(p), 1, 1)
        for n, k, s, p in zip(lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True)
    ]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The output shape for the given dimension numbers."""
    ls, rs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    plain = conv_shape_tuple(
        [lhs_shape[i] for i in ls], [rhs_shape[i] for i in rs], window_strides, padding
    )
    return tuple([plain[out.index(i)] for i in range(len(plain))])
