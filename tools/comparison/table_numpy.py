"""Arguments for `numpy`: elementwise functions, reductions, sorting, sets and statistics."""

from __future__ import annotations

from comparison.draw import Arg, Call, Draw, call, sequence, source
from comparison.families import ALL, REAL, Table, elementwise, reduction, several

TABLE: Table = {}


def of(names: str):
    """Enter the decorated maker for these functions of `numpy`."""

    def enter(maker):
        several(TABLE, "numpy", names, maker)
        return maker

    return enter


several(
    TABLE,
    "numpy",
    """
    abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
    bitwise_count bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp
    exp2 expm1 fabs floor imag invert isfinite isinf isnan isneginf isposinf log log10 log1p log2
    logical_not negative positive rad2deg radians real reciprocal rint sign signbit sin sinc sinh
    spacing sqrt square tan tanh trunc frexp modf i0 iscomplex isreal""",
    elementwise(1),
)
several(
    TABLE,
    "numpy",
    """
    add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod greater
    greater_equal heaviside hypot less less_equal logaddexp logaddexp2 logical_and logical_or
    logical_xor maximum minimum mod multiply nextafter not_equal pow power remainder subtract
    true_divide bitwise_and bitwise_or bitwise_xor""",
    elementwise(2),
)
several(
    TABLE,
    "numpy",
    "gcd lcm ldexp bitwise_left_shift bitwise_right_shift left_shift right_shift "
    "bitwise_and bitwise_or bitwise_xor",
    elementwise(2, "iiiiubf"),
)
several(
    TABLE,
    "numpy",
    "iscomplexobj isrealobj isscalar iterable ndim shape size flatnonzero "
    "argwhere nonzero fliplr flipud atleast_1d atleast_2d atleast_3d sort_complex "
    "matrix_transpose array_repr array_str",
    elementwise(1),
)

several(TABLE, "numpy", "sum prod nansum nanprod", reduction(ALL, "keepdims dtype where initial"))
several(TABLE, "numpy", "mean nanmean", reduction(ALL, "keepdims dtype where"))
several(TABLE, "numpy", "var std nanvar nanstd", reduction(ALL, "keepdims dtype where ddof"))
several(TABLE, "numpy", "max min amax amin nanmax nanmin", reduction(ALL, "keepdims where initial"))
several(TABLE, "numpy", "any all", reduction(ALL, "keepdims where"))
several(TABLE, "numpy", "ptp median nanmedian count_nonzero", reduction(ALL, "keepdims"))
several(
    TABLE,
    "numpy",
    "argmax argmin nanargmax nanargmin",
    reduction(ALL, "keepdims", several_axes=False),
)
several(
    TABLE,
    "numpy",
    "cumsum cumprod nancumsum nancumprod",
    reduction(ALL, "dtype", several_axes=False),
)
several(
    TABLE,
    "numpy",
    "cumulative_sum cumulative_prod",
    reduction(ALL, "dtype include_initial", several_axes=False),
)


@of("angle")
def angle(d: Draw) -> Call:
    return call(d.operand(kinds="fcib"), **d.some(0.3, deg=True))


@of("nan_to_num")
def nan_to_num(d: Draw) -> Call:
    return call(
        d.operand(kinds="ffci"),
        **d.some(
            0.3,
            nan=lambda: d.scalar("f", "plain"),
            posinf=lambda: d.scalar("f", "plain"),
            neginf=lambda: d.scalar("f", "plain"),
        ),
    )


@of("clip")
def clip(d: Draw) -> Call:
    x, low, high = d.operands(3, d.choice("fffiuc"))
    return call(x, *[a if d.chance(0.85) else None for a in (low, high)][: d.randint(1, 2)])


@of("round around")
def rounding(d: Draw) -> Call:
    return call(d.operand(kinds="fffciub"), **d.some(0.5, decimals=lambda: d.randint(-2, 3)))


@of("where")
def where(d: Draw) -> Call:
    condition, x, y = d.operands(3, d.choice(("f", "i", "fi", "ficub")))
    shape = d.shape()
    if d.chance(0.7):
        condition = d.array(shape, "b")
        x, y = (d.operand(shape[d.choice((0, 0, len(shape))) :], ALL) for _ in range(2))
    return call(condition, x, y)


@of("isclose allclose")
def closeness(d: Draw) -> Call:
    x, y = d.operands(2, "ffffic")
    return call(
        x,
        x if d.chance(0.3) else y,
        **d.some(
            0.25,
            rtol=lambda: d.choice((0.1, 1e-3)),
            atol=lambda: d.choice((0.5, 0.0)),
            equal_nan=True,
        ),
    )


@of("array_equal array_equiv")
def equality(d: Draw) -> Call:
    x, y = d.operands(2, "ffib")
    return call(x, x if d.chance(0.4) else y)


@of("interp")
def interp(d: Draw) -> Call:
    n = d.randint(1, 4)
    points = sorted(d.gauss(0, 2) for _ in range(n))
    return call(
        d.operand(kinds="ffi", values="plain"),
        Arg(f"jnp.array({points}, 'float32')", True),
        d.array((n,), "ffc", "plain"),
        **d.some(
            0.25,
            left=lambda: d.scalar("f", "plain"),
            right=lambda: d.scalar("f", "plain"),
            period=lambda: d.choice((2.0, 6.5)),
        ),
    )


# --- sorting, searching, sets --------------------------------------------------------------------


@of("sort argsort")
def sort(d: Draw) -> Call:
    shape = d.shape()
    return call(
        d.operand(shape, ALL),
        **d.some(0.5, axis=lambda: d.axis(len(shape), 0.2, False)),
        **d.some(0.2, descending=True, stable=lambda: d.chance(0.5)),
    )


@of("partition")
def partition(d: Draw) -> Call:
    return call(d.operand((2, 4), "ffi"), d.randint(-5, 4), **d.some(0.3, axis=0))


@of("argpartition")
def argpartition(d: Draw) -> Call:
    return call(d.operand((4,), "f", "distinct"), d.choice((0, 3)))


@of("lexsort")
def lexsort(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        sequence([d.array(shape, "iif", "small") for _ in range(2)], "()"),
        **d.some(0.3, axis=lambda: d.axis(len(shape), 0, False)),
    )


@of("searchsorted")
def searchsorted(d: Draw) -> Call:
    values = sorted(d.randint(-5, 9) for _ in range(d.randint(0, 5)))
    return call(
        Arg(f"jnp.array({values}, '{d.dtype('ffi')}')", True),
        d.operand(kinds="ffi"),
        **d.some(
            0.3,
            side=lambda: d.choice(("left", "right")),
            method=lambda: d.choice(("scan", "sort", "compare_all", "scan_unrolled")),
        ),
    )


@of("digitize")
def digitize(d: Draw) -> Call:
    values = sorted((d.randint(-5, 9) for _ in range(d.randint(1, 5))), reverse=d.chance(0.3))
    return call(
        d.operand(kinds="ffi"),
        Arg(f"jnp.array({values}, '{d.dtype('ffi')}')", True),
        **d.some(0.4, right=True),
    )


@of("unique")
def unique(d: Draw) -> Call:
    shape = d.shape(0, 2)
    return call(
        d.operand(shape, "iiffub", "small"),
        **d.some(
            0.3,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            axis=lambda: d.axis(len(shape), 0.2, False),
            size=lambda: d.randint(1, 5),
        ),
    )


@of("unique_all unique_counts unique_inverse unique_values")
def uniques(d: Draw) -> Call:
    return call(
        d.operand(d.shape(0, 2), "iiffub", "small"), **d.some(0.4, size=lambda: d.randint(1, 5))
    )


@of("union1d setdiff1d setxor1d intersect1d")
def sets(d: Draw) -> Call:
    return call(
        *[d.operand(d.shape(1, 2), "iif", "small") for _ in range(2)],
        **d.some(0.3, size=lambda: d.randint(0, 6)),
    )


@of("intersect1d")
def intersect1d(d: Draw) -> Call:
    return call(
        *[d.operand(d.shape(1, 2), "iif", "small") for _ in range(2)],
        **d.some(0.3, size=lambda: d.randint(0, 6), assume_unique=True, return_indices=True),
    )


@of("setdiff1d setxor1d")
def set_differences(d: Draw) -> Call:
    return call(
        *[d.operand(d.shape(1, 2), "iif", "small") for _ in range(2)],
        **d.some(0.3, size=lambda: d.randint(0, 6), assume_unique=True),
    )


@of("isin")
def isin(d: Draw) -> Call:
    return call(
        d.operand(kinds="iifb", values="small"),
        d.operand(kinds="iifb", values="small"),
        **d.some(0.3, invert=True, assume_unique=True),
    )


@of("bincount")
def bincount(d: Draw) -> Call:
    n = d.randint(0, 5)
    return call(
        d.array((n,), "iub", "positive"),
        **d.some(
            0.4,
            weights=lambda: d.array((n,), "fi", "plain"),
            minlength=lambda: d.randint(0, 8),
            length=lambda: d.randint(0, 8),
        ),
    )


def edges(d: Draw) -> object:
    return d.choice((5, 3, source("jnp.array([-2.0, 0.0, 1.0, 3.0])")))


@of("histogram histogram_bin_edges")
def histogram(d: Draw) -> Call:
    shape = d.filled(1, 2)
    return call(
        d.array(shape, "ffi", "plain"),
        edges(d),
        **d.some(0.3, range=lambda: (-1.0, 2.0), weights=lambda: d.array(shape, "f", "positive")),
    )


@of("histogram2d")
def histogram2d(d: Draw) -> Call:
    return call(
        d.array((4,), "ff", "plain"),
        d.array((4,), "f", "plain"),
        edges(d),
        **d.some(0.3, density=True, weights=lambda: d.array((4,), "f", "positive")),
    )


@of("histogramdd")
def histogramdd(d: Draw) -> Call:
    return call(
        d.array((4, 2), "f", "plain"),
        d.choice((3, [2, 3])),
        **d.some(0.3, density=True, weights=lambda: d.array((4,), "f", "positive")),
    )


@of("quantile percentile nanquantile nanpercentile")
def quantile(d: Draw) -> Call:
    shape = d.shape(0, 2)
    return call(
        d.operand(shape, "ffffi"),
        d.operand(d.shape(0, 1), "f", "unit"),
        **d.some(
            0.3,
            axis=lambda: d.axis(len(shape)),
            keepdims=True,
            method=lambda: d.choice(("linear", "lower", "higher", "midpoint", "nearest")),
        ),
    )


@of("average")
def average(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.operand(shape, "ffic"),
        **d.some(
            0.4,
            axis=lambda: d.axis(len(shape)),
            weights=lambda: d.operand(shape, "fi", "positive"),
            returned=True,
            keepdims=True,
        ),
    )


@of("cov corrcoef")
def covariance(d: Draw) -> Call:
    shape = d.filled(1, 2)
    return call(
        d.operand(shape, "fffic", "plain"),
        **d.some(0.2, rowvar=False, y=lambda: d.operand(shape, "f", "plain")),
    )


TABLE["numpy.cov"] = lambda d: call(
    d.operand((2, 4), "fffic", "plain"),
    **d.some(
        0.25,
        rowvar=False,
        y=lambda: d.operand((2, 4), "f", "plain"),
        bias=True,
        ddof=lambda: d.choice((0, 1, 2)),
        aweights=lambda: d.array((4,), "f", "positive"),
        fweights=lambda: d.array((4,), "i", "positive"),
    ),
)


@of("diff ediff1d")
def diff(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(
        d.operand(shape, ALL),
        **d.some(
            0.4,
            n=lambda: d.randint(0, 2),
            axis=lambda: d.axis(len(shape), 0, False),
            prepend=lambda: d.scalar("fi", "plain"),
            append=lambda: d.scalar("fi", "plain"),
        ),
    )


TABLE["numpy.ediff1d"] = lambda d: call(
    d.operand(kinds="ffic"),
    **d.some(
        0.4, to_begin=lambda: d.operand(d.shape(0, 1), "fi"), to_end=lambda: d.operand((), "fi")
    ),
)


@of("gradient")
def gradient(d: Draw) -> Call:
    shape = tuple(d.choice((2, 3, 4)) for _ in range(d.randint(1, 3)))
    return call(
        d.operand(shape, "ffic", "plain"),
        *([d.scalar("f", "positive")] if d.chance(0.4) else []),
        **d.some(0.4, axis=lambda: d.axis(len(shape))),
    )


@of("trapezoid")
def trapezoid(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.operand(shape, "ffic"),
        **d.some(
            0.35,
            x=lambda: d.operand(shape, "f", "plain"),
            dx=lambda: d.scalar("f", "positive"),
            axis=lambda: d.axis(len(shape), 0, False),
        ),
    )


@of("unwrap")
def unwrap(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(
        d.operand(shape, "ffi", "distinct"),
        **d.some(
            0.3,
            axis=lambda: d.axis(len(shape), 0, False),
            discont=lambda: 4.0,
            period=lambda: d.choice((4, 5.0)),
        ),
    )


@of("piecewise")
def piecewise(d: Draw) -> Call:
    shape = d.shape(0, 2)
    return call(
        d.array(shape, "fi", "plain"),
        sequence([d.array(shape, "b") for _ in range(2)]),
        source(d.choice(("[-1, 1]", "[jnp.sin, lambda v: v * 2]", "[1, 2.5, 3]", "[1, 2, 3, 4]"))),
    )


several(TABLE, "numpy", "bitwise_and bitwise_or bitwise_xor", elementwise(2, "iiuubbf"))
several(TABLE, "numpy", "nextafter arctan2 copysign hypot heaviside", elementwise(2, REAL))
