"""Where the axes of a convolution are, how it is padded, and which shape it has.

Used by `ops.conv` and `ops.window`; no arrays are touched here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.record import NamedTuple
from numjet.core.dims import DimExpr, index_of, largest


class ConvDimensionNumbers(NamedTuple):
    """Where the axes are: lhs (batch, feature, spatial…), rhs (out feature, in feature, spatial…),
    out like lhs.

    lhs_spec, rhs_spec, out_spec: tuples of integers, for each such place the axis of the array.
    `conv_dimension_numbers` makes one from letters.

    >>> from numjet import lax
    >>> lax.conv_dimension_numbers((1, 5, 3), (2, 3, 8), ("NHC", "HIO", "NHC"))
    ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


# The type of such an argument, as annotations name it.
ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def out_spatial(
    n: int, k: int, stride: int, pads: tuple[int, int], n_dilation: int, k_dilation: int
) -> int:
    size = dilated(n, n_dilation) + pads[0] + pads[1] - dilated(k, k_dilation)
    if type(size) is DimExpr:
        return largest(size // stride + 1, 0)
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
    """The (low, high) pads that a word means, for each spatial axis.

    in_shape, window_shape, window_strides: integers for each spatial axis. padding: 'SAME' (as many
    windows as strides fit in, the odd element at the end), 'SAME_LOWER' (at the beginning) or
    'VALID' (none). Raises RuntimeError for other words.

    >>> from numjet import lax
    >>> lax.padtype_to_pads((5,), (2,), (2,), "SAME")
    [(0, 1)]
    """
    name = getattr(padding, "name", padding)
    if not isinstance(name, str):
        raise TypeError(f"Unknown padding type: {padding!r}. Use 'SAME', 'SAME_LOWER' or 'VALID'.")
    name = name.upper()
    if name == "VALID":
        return [(0, 0)] * len(window_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
            f"{padding}. Pairs of integers say it for each axis."
        )
    pads = []
    for n, k, s in zip(in_shape, window_shape, window_strides, strict=True):
        n, k, s = index_of(n), index_of(k), index_of(s)
        total = largest(0, (-(-n // s) - 1) * s + k - n)
        low = total // 2 if name == "SAME" else -(-total // 2)
        pads.append((low, total - low))
    return pads


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: Any,
) -> ConvDimensionNumbers:
    """What the axes of a convolution's arrays mean, as ConvDimensionNumbers.

    lhs_shape, rhs_shape: the shapes of input and kernel. dimension_numbers: None for [n, c, ...]
    and [o, c, ...]; three strings for input, kernel and output, such as ('NHWC', 'HWIO', 'NHWC');
    or ConvDimensionNumbers, which stay. Raises TypeError or ValueError for letters that do not fit.

    >>> from numjet import lax
    >>> lax.conv_dimension_numbers((1, 5, 5, 3), (2, 2, 3, 8), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim:
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}, "
            f"shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
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
    """The order of axes that three strings of letters mean.

    dimension_numbers: strings for input, kernel and output. Result: for each the axes of batch (or
    output feature), feature, and space in the order of the kernel's letters. Raises TypeError for
    letters that do not fit.

    >>> from numjet import lax
    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    letters: tuple = (("N", "C"), ("O", "I"), ("N", "C"))
    spatial = [c for c in dimension_numbers[1] if c not in "OI"]
    found = []
    for spec, (first, second) in zip(dimension_numbers, letters, strict=True):
        if sorted(spec) != sorted([first, second, *spatial]):
            raise TypeError(
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
    """The shape of a convolution's result, for [n, c, ...] inputs and [o, c, ...] kernels.

    lhs_shape, rhs_shape: shapes. strides: an integer for each spatial axis. pads: 'SAME', 'VALID'
    or (low, high) for each. batch_group_count: groups of examples that are convolved apart. Raises
    TypeError or ValueError for what does not fit.

    >>> from numjet import lax
    >>> lax.conv_shape_tuple((1, 3, 8), (4, 3, 2), (2,), [(0, 0)])
    (1, 4, 4)
    """
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
    """The shape of a convolution's result, for axes named by letters.

    lhs_shape, rhs_shape, window_strides, padding, dimension_numbers: as of `conv_general_dilated`.
    Raises TypeError or ValueError for what does not fit.

    >>> from numjet import lax
    >>> lax.conv_general_shape_tuple((1, 8, 3), (2, 3, 4), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 4, 4)
    """
    if dimension_numbers is None:
        raise TypeError("conv_general_shape_tuple: dimension_numbers must name the axes, got None.")
    ls, rs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    plain = conv_shape_tuple(
        [lhs_shape[i] for i in ls], [rhs_shape[i] for i in rs], window_strides, padding
    )
    return tuple([plain[out.index(i)] for i in range(len(plain))])
