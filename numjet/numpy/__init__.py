"""numjet.numpy: NumPy's functions on immutable arrays, differentiable, compilable, in JAX's names.

Import it as `jnp`. Importing it also gives Arrays their operators and methods. What is said here
holds for all functions; their docstrings say what is particular.

Arguments. An array argument is an Array, one of NumPy's, a traced value, or a Python number; a list
raises TypeError, but where sequences are named. Shapes broadcast as NumPy's do, from the last axis
on; TypeError or ValueError, as in JAX, where they cannot. An axis may be negative; ValueError where
there is none, and in some functions IndexError, as in JAX. What shapes depend on must be known
while tracing: ConcretizationTypeError, where a docstring does not name another.

Dtypes. Arguments promote to one dtype: booleans < integers < floats < complex numbers, and within
a kind the wider one; int32 and float16 are float16, where NumPy has float64. Python's numbers are
weak: they take the dtype of arrays of their kind or a higher one. "Integers count as floats" means:
as float32, those of 64 bits as float64. Without `numjet.config.update("enable_x64", True)` dtypes
of 64 bits become those of 32, with a warning where they were asked for; the default float is then
float32 and the default integer int32.

Results are always new: arrays are immutable, and `out` raises NotImplementedError where it is an
argument. Where a docstring does not name another dtype, they have that which the array arguments
promote to, and where it does not name another shape, that which these broadcast to. `out_sharding`
is a layout for them, a Sharding or a PartitionSpec of the current mesh, as
`lax.with_sharding_constraint` takes it. Nothing warns of overflow, division by zero or invalid
values, as NumPy does: the results are infinities and NaN.

Keywords. Of NumPy's, functions of elements take none (`out`, `where`, `casting`, `order`, `dtype`,
subok, `signature`), and no function takes `like`, `subok`, or an `order` of memory or `casting`
that its docstring does not name. NumPy has neither `out_sharding` and `device`, nor, of results
whose length depends on values, `size` and `fill_value`, nor `precision` and
`preferred_element_type` of products, `promote_integers`, `descending`, `inplace`, the `mode`,
`indices_are_sorted`, `unique_indices` and `wrap_negative_indices` of places, `symmetrize_input`,
`dtype`, `method` and `length` where it finds them itself, nor what has no effect here.

Derivatives. Functions are differentiable in both modes and any order in all floating and complex
arguments; where that is not so, or where a function has a corner, its docstring says what it gives.

>>> import numjet as nj, numjet.numpy as jnp
>>> nj.grad(lambda x: jnp.sum(jnp.maximum(x, 0) ** 2))(jnp.array([-1.0, 3.0]))
Array([0., 6.], dtype=float32)
"""

# ruff: noqa: F401, A004 - NumPy's names shadow Python's
from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

import numpy as _np

from numjet.api.compiled.hashed import hold as _hold
from numjet.api.compiled.shown import (
    CALLS as _CALLS,
    LATER as _LATER,
    reflected as _reflected,
    shown as _shown,
)
from numjet.api.eager.large import (
    as_program as _as_program,
    wrap_public as _wrap_public,
)
from numjet.base.class_names import renamed as _renamed
from numjet.core import hooks as _hooks
from numjet.core.array import Array as ndarray
from numjet.numpy import (
    fft,
    jax_forms_linalg as _jax_forms_linalg,  # before its functions are wrapped
    linalg,
    operators as _operators,
    scalar_types as _scalar_types,
)
from numjet.numpy.averages import average, mean, std, var
from numjet.numpy.binary import (
    fmax,
    fmin,
    gcd,
    heaviside,
    hypot,
    isclose,
    lcm,
    logaddexp,
    logaddexp2,
)
from numjet.numpy.calculus import (
    convolve,
    correlate,
    diff,
    ediff1d,
    gradient,
    interp,
    poly,
    polyadd,
    polyder,
    polydiv,
    polyfit,
    polyint,
    polymul,
    polysub,
    polyval,
    roots,
    trapezoid,
    unwrap,
)
from numjet.numpy.creation import (
    array,
    asarray,
    copy,
    empty,
    empty_like,
    from_dlpack,
    frombuffer,
    fromfile,
    fromfunction,
    fromiter,
    fromstring,
    full,
    full_like,
    load,
    ones,
    ones_like,
    save,
    savez,
    zeros,
    zeros_like,
)
from numjet.numpy.cumulative import cumprod, cumsum, cumulative_prod, cumulative_sum
from numjet.numpy.einsum import einsum, einsum_path
from numjet.numpy.elementwise import (
    abs,
    absolute,
    add,
    arctan2,
    around,
    ceil,
    clip,
    divide,
    divmod,
    fabs,
    float_power,
    floor,
    floor_divide,
    fmod,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    nextafter,
    positive,
    pow,
    power,
    reciprocal,
    remainder,
    rint,
    round,
    sign,
    square,
    subtract,
    true_divide,
    trunc,
)
from numjet.numpy.float_parts import copysign, frexp, ldexp, modf, signbit, spacing
from numjet.numpy.functional import (
    allclose,
    apply_along_axis,
    apply_over_axes,
    array_equal,
    array_equiv,
    array_repr,
    array_str,
    isscalar,
    iterable,
    packbits,
    unpackbits,
    vectorize,
)
from numjet.numpy.histograms import (
    bincount,
    histogram,
    histogram2d,
    histogram_bin_edges,
    histogramdd,
)
from numjet.numpy.index_tricks import (
    c_,
    diag,
    diag_indices,
    diag_indices_from,
    diagflat,
    diagonal,
    index_exp,
    indices,
    ix_,
    mask_indices,
    meshgrid,
    mgrid,
    ogrid,
    r_,
    ravel_multi_index,
    s_,
    trace,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
    unravel_index,
)
from numjet.numpy.joining import (
    append,
    array_split,
    block,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)
from numjet.numpy.logic import (
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    right_shift,
)
from numjet.numpy.nan_reductions import (
    corrcoef,
    cov,
    nanargmax,
    nanargmin,
    nancumprod,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from numjet.numpy.padding import pad
from numjet.numpy.positions import (
    argwhere,
    compress,
    extract,
    flatnonzero,
    nonzero,
    where_or_nonzero as where,
)
from numjet.numpy.products import (
    cross,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    vdot,
    vecdot,
    vecmat,
)
from numjet.numpy.quantiles import (
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    quantile,
)
from numjet.numpy.ranges import (
    arange,
    bartlett,
    blackman,
    eye,
    geomspace,
    hamming,
    hanning,
    identity,
    kaiser,
    linspace,
    logspace,
    tri,
    tril,
    triu,
    vander,
)
from numjet.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    prod,
    ptp,
    sum,
)
from numjet.numpy.repetition import repeat, resize, roll, tile, trim_zeros
from numjet.numpy.scalar_types import (
    ComplexWarning,
    astype,
    bfloat16,
    bool_,
    can_cast,
    cdouble,
    character,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    dtype,
    finfo,
    flexible,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    iinfo,
    inexact,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    isdtype,
    issubdtype,
    number,
    object_,
    promote_types,
    result_type as _result_type,
    signedinteger,
    single,
    uint,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)
from numjet.numpy.sets import (
    intersect1d,
    isin,
    setdiff1d,
    setxor1d,
    union1d,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from numjet.numpy.shape import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    rollaxis,
    rot90,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from numjet.numpy.sorting import (
    argpartition,
    argsort,
    digitize,
    lexsort,
    partition,
    searchsorted,
    sort,
    sort_complex,
)
from numjet.numpy.take import (
    choose,
    delete,
    fill_diagonal,
    insert,
    piecewise,
    place,
    put,
    put_along_axis,
    select,
    take,
    take_along_axis,
)
from numjet.numpy.ufunc import attach as _attach_methods, frompyfunc, ufunc
from numjet.numpy.unary import (
    acos,
    acosh,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    asin,
    asinh,
    atan,
    atanh,
    cbrt,
    conj,
    conjugate,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    i0,
    imag,
    iscomplex,
    iscomplexobj,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    isrealobj,
    log,
    log1p,
    log2,
    log10,
    nan_to_num,
    rad2deg,
    radians,
    real,
    sin,
    sinc,
    sinh,
    sqrt,
    tan,
    tanh,
)

_operators.install()
_hold(globals(), __name__)
_hold(vars(linalg), linalg.__name__)
# Made of several operations, with results whose shapes do not depend on values.
_wrap_public(
    globals(), __name__,
    ("floor_divide remainder mod fmod copysign heaviside float_power var std nansum nanmax nanmin "
     "average ptp median convolve correlate interp cov corrcoef trapezoid kron cross angle "
     "packbits searchsorted digitize fmax fmin tril triu roll tile isin hypot logaddexp "
     "logaddexp2 divmod nanvar nanstd gradient ldexp frexp modf i0 unwrap sinc polyval polyder "
     "diff isclose allclose nanmean nanmedian percentile quantile nanpercentile nanquantile "
     "polyint spacing take_along_axis nan_to_num lcm append argmax argmin argsort "
     "bitwise_count count_nonzero cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees "
     "ediff1d fabs flip fliplr flipud gcd histogram histogram_bin_edges imag inner iscomplex "
     "isinf isreal log10 log2 nanargmax nanargmin "
     "nancumprod nancumsum nanprod pad polyadd polysub pow power rad2deg radians reciprocal "
     "resize signbit sort sort_complex take trunc vdot vecdot").split(),
)  # fmt: skip
for _name in "polyfit put_along_axis rollaxis".split():
    globals()[_name] = _shown(globals()[_name], _CALLS[__name__][_name], module=__name__)
_wrap_public(
    globals(), __name__,
    ("argpartition around block diag diagonal geomspace lexsort linspace logspace matvec partition "
     "poly polymul rot90 trace unravel_index vander vecmat").split(),
    large=False,
)  # fmt: skip
_wrap_public(
    vars(linalg), linalg.__name__,
    ("cholesky cond det eigvalsh inv lstsq matrix_norm matrix_power matrix_rank norm pinv qr "
     "slogdet solve svdvals vector_norm").split(),
)  # fmt: skip
_wrap_public(vars(linalg), linalg.__name__, "cross diagonal trace".split(), large=False)
_hooks.install(ndarray, {
    name: _as_program(getattr(ndarray, name), shown=call)
    for name, call in {
        "var": None, "std": None, "ptp": "_ptp", "__floordiv__": "floor_divide",
        "__mod__": "remainder", "__divmod__": "divmod",
        **{name: _CALLS[__name__][name] for name in
           "argsort cumprod cumsum searchsorted sort take".split()},
    }.items()
})
_hooks.install(ndarray, {
    f"__r{name}__": _reflected(getattr(ndarray, f"__r{name}__"), call)
    for name, call in (("floordiv", floor_divide), ("mod", remainder), ("divmod", divmod))
})

_LATER += [f"{__name__}.jax_forms{x}" for x in (
    "", "_polynomials", "_search", "_shapes", "_statistics")]  # fmt: skip
_attach_methods(globals())

if hasattr(_scalar_types, "int1"):
    int1, uint1 = _scalar_types.int1, _scalar_types.uint1
bool = bool_
atan2 = arctan2
for _name in (
    "abs acos acosh amax amin around asin asinh atan atan2 atanh bitwise_invert "
    "bitwise_left_shift bitwise_not bitwise_right_shift conjugate degrees mod pow radians "
    "true_divide"
).split():
    globals()[_name] = _renamed(globals()[_name], _name, __name__)
e, pi, inf, nan, euler_gamma = _np.e, _np.pi, _np.inf, _np.nan, _np.euler_gamma
newaxis = None
printoptions, get_printoptions = _np.printoptions, _np.get_printoptions


def set_printoptions(*args: _Any, **kwargs: _Any) -> None:
    """How arrays are printed, NumPy's and these alike: numpy.set_printoptions.

    args, kwargs: precision, threshold, edgeitems, linewidth, suppress, formatter, floatmode, sign,
    nanstr, infstr, legacy and override_repr, as NumPy takes them.

    >>> jnp.set_printoptions(precision=8)
    """
    _np.set_printoptions(*args, **kwargs)


def result_type(*args: _Any) -> _Any:
    """The dtype that the arguments promote to.

    args: arrays, Python's numbers and types, dtypes; at least one (ValueError). Python's numbers
    are weak: they give way to the dtype of an array of their kind.

    >>> jnp.result_type(jnp.int8(1), 2), jnp.result_type(jnp.int8(1), 2.5)
    (dtype('int8'), dtype('float32'))
    """
    return _result_type(*args)


__array_api_version__ = "2025.12"


def __array_namespace_info__() -> _Any:
    """What the array API asks of this namespace."""
    return _importlib.import_module("numjet.numpy.array_namespace").array_namespace_info()


# Only where a name is missing: while a module has such a function, each use of its names takes
# thrice as long.
if not hasattr(_scalar_types, "int1"):

    def __getattr__(name: str) -> object:
        needs = "; it needs ml_dtypes 0.6 or newer" if name in ("int1", "uint1") else ""
        raise AttributeError(f"module 'numjet.numpy' has no attribute {name!r}{needs}.")
