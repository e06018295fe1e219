"""Convolutions of sparse arrays: each pair of elements gives one, at the place where they meet.

For `__init__.py` and `transform.py`. What would break it: a stride or a dilation, by which pairs
meet nowhere; they are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.compiled.abstract import eval_shape
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.experimental.sparse.bcoo import BCOO, JAXSparse
from numjet.experimental.sparse.layouts import flat, inside
from numjet.ops.conv_numbers import padtype_to_pads


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
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
) -> BCOO:
    """The convolution of one signal with one kernel, of which some are sparse, as a BCOO.

    lhs, rhs: arrays of three axes, two of size 1; dense ones count as sparse with all elements.
    window_strides, lhs_dilation, rhs_dilation: (1,). padding, dimension_numbers,
    feature_group_count, batch_group_count, precision, preferred_element_type, out_sharding: as of
    `lax.conv_general_dilated`, whose TypeError and ValueError are raised. Result: an element for
    each pair of elements, so that places come several times; those outside are zeros.
    Differentiable in the elements. NotImplementedError for other strides and dilations, for more
    axes, and for several signals or kernels.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([[[0.0, 2.0, 0.0, 1.0]]]), n_batch=2)
    >>> kernel = jnp.array([[[1.0, 10.0]]])
    >>> y = sparse.bcoo_conv_general_dilated(x, kernel, window_strides=(1,), padding="VALID")
    >>> print(y.todense())
    [[[20.  2. 10.]]]
    """
    out = eval_shape(
        lambda x, y: lax.conv_general_dilated(
            x,
            y,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
            out_sharding=out_sharding,
        ),
        *[ShapeDtypeStruct(x.shape, x.dtype) for x in (lhs, rhs)],
    )
    for name, steps in (
        ("non-unit window_strides", window_strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if any(step != 1 for step in steps or ()):
            raise NotImplementedError(f"bcoo convolution with {name}. Convolve dense arrays.")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    specs = (numbers.lhs_spec, numbers.rhs_spec)
    if out.ndim != 3 or any(
        x.shape[axis] != 1 for x, spec in zip((lhs, rhs), specs, strict=True) for axis in spec[:2]
    ):
        raise NotImplementedError(
            "bcoo convolution with leading dimensions other than (1, 1), or with several spatial "
            f"ones: got shapes {lhs.shape} and {rhs.shape}. Convolve dense arrays."
        )
    if isinstance(padding, str):
        long, wide = lhs.shape[specs[0][2]], rhs.shape[specs[1][2]]
        padding = padtype_to_pads([long], [wide], window_strides, padding)
    return _signal(_elements(lhs, specs[0]), _elements(rhs, specs[1]), padding[0][0], out, numbers)


def _elements(x: Any, spec: tuple[int, ...]) -> tuple[Any, Any]:
    """The elements and their places along the spatial axis; padding as zeros at 0."""
    mat = flat(x if isinstance(x, JAXSparse) else BCOO.fromdense(x, nse=x.size))
    good = inside(mat)
    place = jnp.where(good, mat.indices[:, spec[2]], 0)
    return jnp.where(good, mat.data, jnp.zeros((), mat.dtype)), place


def _signal(x: tuple, y: tuple, before: int, out: Any, numbers: Any) -> BCOO:
    """The products of all pairs, at their places in a result of the type `out`."""
    products = (x[0][:, None].astype(out.dtype) * y[0].astype(out.dtype)).reshape(-1)
    place = (x[1][:, None] - y[1] + before).reshape(-1)
    axis = numbers.out_spec[2]
    good = (place >= 0) & (place < out.shape[axis])
    data = jnp.where(good, products, jnp.zeros((), out.dtype))
    place = jnp.where(good, place, 0)[:, None]
    if axis == 2:
        return BCOO((data[None, None], place[None, None]), shape=out.shape)
    unit = np.eye(3, dtype=place.dtype)[axis]
    return BCOO((data, place * unit), shape=out.shape)
