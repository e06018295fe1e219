"""Weighted means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numjet.api.compiled.shown import FLAG, wanted
from numjet.core.structural import scalar
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import divide, multiply
from numjet.numpy.promote import broadcast, one_array, promote_inexact, reduced_axes
from numjet.numpy.reductions import mean, sum
from numjet.numpy.shape import reshape


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean over `axis`, each element with its weight.

    a: numbers of any shape; integers count as floats. axis: an integer, a tuple of them, or None
    for all. weights: of a's shape, or of that of the axes; all alike by default. returned: give
    (mean, sum of the weights) instead. keepdims: reduced axes stay with size 1. Weights that add up
    to 0 give infinities or NaN (NumPy raises ZeroDivisionError). ValueError for weights of another
    shape without an axis, or where they do not fit.

    >>> jnp.average(jnp.array([1.0, 2.0, 6.0]), weights=jnp.array([2, 1, 1]))
    Array(2.5, dtype=float32)
    """
    x = one_array("average", a)
    if weights is None:
        axes = reduced_axes(axis, x.aval.ndim, "average")
        out = mean(x, axes, keepdims=keepdims)
        total = scalar(math.prod([x.aval.shape[i] for i in axes]), out.aval.dtype)
        return (out, broadcast(total, out.aval.shape)) if returned else out
    x, w = promote_inexact(x, one_array("average", weights))
    if x.aval.shape != w.aval.shape:
        if axis is None:
            told = "Axis must be specified when shapes of a and weights differ, got"
            raise ValueError(f"average: {told} {x.aval.shape} and {w.aval.shape}.")
        axes = reduced_axes(axis, x.aval.ndim, "average")
        if w.aval.shape != tuple([x.aval.shape[i] for i in axes]):
            told = f"do not fit the axes {axes} of values of shape {x.aval.shape}"
            raise ValueError(f"average: weights of shape {w.aval.shape} {told}.")
        order = tuple(np.argsort(axes).tolist())
        w = lax.transpose(w, order)
        if FLAG.uses and wanted():
            w = reshape(w, tuple([n if i in axes else 1 for i, n in enumerate(x.aval.shape)]))
        else:
            w = lax.broadcast_in_dim(w, x.aval.shape, tuple(sorted(axes)))
    total = sum(w, axis, keepdims=keepdims)
    out = divide(sum(multiply(x, w), axis, keepdims=keepdims), total)
    return (out, broadcast(total, out.aval.shape)) if returned else out
