"""The operations this package is built from, under their lax names, in one namespace.

Only names: `from numjet.numpy import lax_names as lax`. Users have `numjet.lax`.
"""

# ruff: noqa: F401, A004 - a namespace of names that shadow Python's
from __future__ import annotations

from numjet.core.structural import broadcast_in_dim, convert, full, reduce_sum, transpose
from numjet.ops.arithmetic import (
    abs,
    add,
    clamp,
    div,
    integer_pow,
    max,
    min,
    mul,
    rem,
    sign,
    square,
    sub,
)
from numjet.ops.arrange import place_like, stack, stop_gradient, unstack
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.collective import varied_like
from numjet.ops.complex_ops import complex, conj, imag, neg, real
from numjet.ops.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from numjet.ops.dot import dot_general
from numjet.ops.gather import GatherDimensionNumbers, GatherScatterMode, gather
from numjet.ops.logic import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceil,
    clz,
    eq,
    floor,
    ge,
    gt,
    is_finite,
    le,
    lt,
    ne,
    population_count,
    round,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from numjet.ops.neighbours import nextafter
from numjet.ops.reduce import (
    argmax,
    argmin,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from numjet.ops.scatter import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from numjet.ops.shape import (
    broadcasted_iota,
    concatenate,
    copy_p,
    expand_dims,
    iota,
    pad,
    reshape,
    rev,
    select,
    select_n,
    squeeze,
)
from numjet.ops.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
    slice,
    slice_in_dim,
)
from numjet.ops.sort import sort, sort_key_val, top_k
from numjet.ops.special import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erf_inv,
    erfc,
    igamma,
    igammac,
    lgamma,
    polygamma,
    zeta,
)
from numjet.ops.transcendental import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    logistic,
    pow,
    rsqrt,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
