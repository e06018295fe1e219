"""Arguments for `lax`."""

from __future__ import annotations

from comparison.draw import Arg, Call, Draw, call, sequence, source
from comparison.families import ALL, Table, several, strict

TABLE: Table = {}


def of(names: str):
    """Enter the decorated maker for these functions of `lax`."""

    def enter(maker):
        several(TABLE, "lax", names, maker)
        return maker

    return enter


several(
    TABLE, "lax", "abs neg sign square conj real imag stop_gradient reciprocal", strict(1, "fffciu")
)
several(
    TABLE,
    "lax",
    """acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 log log1p
        logistic rsqrt sin sinh sqrt tan tanh""",
    strict(1, "ffffc"),
)
several(
    TABLE,
    "lax",
    "ceil floor erf erfc digamma lgamma is_finite bessel_i0e bessel_i1e",
    strict(1, "f"),
)
several(TABLE, "lax", "erf_inv", strict(1, "f", "unit"))
several(TABLE, "lax", "bitwise_not population_count clz", strict(1, "iub"))
several(TABLE, "lax", "add mul sub div", strict(2, "fffciu"))
several(TABLE, "lax", "max min eq ne ge gt le lt rem", strict(2, "fffiub"))
several(TABLE, "lax", "atan2 nextafter pow complex", strict(2, "f"))
several(TABLE, "lax", "pow", strict(2, "fffc"))
several(TABLE, "lax", "bitwise_and bitwise_or bitwise_xor", strict(2, "iub"))
several(
    TABLE, "lax", "shift_left shift_right_arithmetic shift_right_logical mulhi", strict(2, "iu")
)
several(TABLE, "lax", "igamma igammac igamma_grad_a random_gamma_grad", strict(2, "f", "positive"))
several(
    TABLE,
    "lax",
    "polygamma",
    lambda d: call(
        d.array((2,), dtype="float32", values="positive"),
        d.array((2,), dtype="float32", values="positive"),
    ),
)
several(
    TABLE,
    "lax",
    "zeta",
    lambda d: call(
        Arg(f"1.5 + {d.array((2,), dtype='float32', values='positive').text}", True),
        d.array((2,), dtype="float32", values="positive"),
    ),
)
TABLE["lax.betainc"] = lambda d: call(
    *[d.array((3,), dtype="float32", values=v) for v in ("positive", "positive", "unit")]
)


@of("clamp")
def clamp(d: Draw) -> Call:
    shape, kinds = d.shape(), d.choice("fffiu")
    dtype = d.dtype(kinds)
    return call(
        *[d.array(s, dtype=dtype) for s in (d.choice(((), shape)), shape, d.choice(((), shape)))]
    )


@of("integer_pow")
def integer_pow(d: Draw) -> Call:
    return call(d.array(kinds="ffciu", values="any"), d.randint(-3, 5))


@of("round")
def rounding(d: Draw) -> Call:
    return call(
        d.array(),
        **d.some(
            0.5,
            rounding_method=source(
                d.choice(
                    ("lax.RoundingMethod.TO_NEAREST_EVEN", "lax.RoundingMethod.AWAY_FROM_ZERO")
                )
            ),
        ),
    )


@of("convert_element_type")
def convert(d: Draw) -> Call:
    to = d.dtype_arg() if d.chance(0.8) else source(d.choice(("float", "int", "bool", "complex")))
    return call(d.operand(kinds=ALL, values="plain"), to)


@of("bitcast_convert_type")
def bitcast(d: Draw) -> Call:
    return call(d.array(d.choice(((), (2,), (3, 4), (2, 2))), "fiu"), d.dtype_arg("fiu"))


@of("reduce_precision")
def reduce_precision(d: Draw) -> Call:
    return call(d.array(), d.choice((5, 8, 3)), d.choice((10, 7, 2)))


@of("full")
def full(d: Draw) -> Call:
    return call(d.shape(), d.operand((), ALL), **d.some(0.5, dtype=d.dtype_arg))


@of("full_like")
def full_like(d: Draw) -> Call:
    return call(
        d.operand(kinds=ALL), d.operand((), ALL), **d.some(0.4, dtype=d.dtype_arg, shape=d.shape)
    )


@of("iota")
def iota(d: Draw) -> Call:
    return call(d.dtype_arg("fiuc"), d.randint(0, 5))


@of("broadcasted_iota")
def broadcasted_iota(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(d.dtype_arg("fiu"), shape, d.randrange(len(shape)))


@of("broadcast")
def broadcast(d: Draw) -> Call:
    return call(d.operand(kinds=ALL), d.shape(0, 2))


@of("broadcast_in_dim")
def broadcast_in_dim(d: Draw) -> Call:
    shape = d.shape(0, 2)
    return call(
        d.operand(shape, ALL), (*shape, 2), tuple(range(len(shape))) if d.chance(0.9) else (0,)
    )


@of("broadcast_to_rank")
def broadcast_to_rank(d: Draw) -> Call:
    return call(d.operand(d.shape(0, 2), ALL), d.choice((2, 3, 1)))


@of("broadcast_shapes")
def broadcast_shapes(d: Draw) -> Call:
    shape = d.shape()
    return call(
        shape, tuple(1 if d.chance(0.4) else n for n in shape), *([(7,)] if d.chance(0.1) else [])
    )


@of("broadcast_like")
def broadcast_like(d: Draw) -> Call:
    shape = d.shape()
    return call(d.array(shape[d.randint(0, len(shape)) :], ALL), d.array(shape, ALL))


@of("reshape")
def reshape(d: Draw) -> Call:
    return call(
        d.operand((2, 3), ALL),
        d.choice(((6,), (3, 2), (1, 6), (2, -1), (4,))),
        **d.some(0.2, dimensions=lambda: d.choice(((1, 0), (0, 1)))),
    )


@of("collapse")
def collapse(d: Draw) -> Call:
    return call(
        d.operand(d.shape(2, 3), ALL), d.choice((0, 1, -2)), *([2] if d.chance(0.5) else [])
    )


@of("squeeze")
def squeeze(d: Draw) -> Call:
    return call(
        d.operand(d.choice(((1, 3), (2, 1), (1, 1), (2, 2))), ALL),
        d.choice(((0,), (1,), (0, 1), (-1,), ())),
    )


@of("expand_dims")
def expand_dims(d: Draw) -> Call:
    return call(d.operand(d.shape(0, 2), ALL), d.choice(((0,), (-1,), (0, 1), (5,))))


@of("transpose")
def transpose(d: Draw) -> Call:
    shape = d.shape()
    return call(d.operand(shape, ALL), tuple(d.sample(range(len(shape)), len(shape))))


@of("rev")
def rev(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(d.operand(shape, ALL), tuple(d.sample(range(len(shape)), d.randint(0, len(shape)))))


@of("concatenate")
def concatenate(d: Draw) -> Call:
    dtype = d.dtype(ALL)
    return call(
        sequence([d.array((2, d.extent()), dtype=dtype) for _ in range(d.randint(1, 3))]),
        1 if d.chance(0.95) else 0,
    )


@of("stack")
def stack(d: Draw) -> Call:
    dtype, shape = d.dtype(ALL), d.shape(0, 2)
    return call(
        sequence([d.array(shape, dtype=dtype) for _ in range(2)]),
        **d.some(0.6, axis=lambda: d.randint(-1, len(shape))),
    )


@of("unstack")
def unstack(d: Draw) -> Call:
    return call(d.array(d.shape(1, 3), ALL), **d.some(0.4, axis=-1))


@of("split")
def split(d: Draw) -> Call:
    return call(d.operand((2, 5), ALL), d.choice(((2, 3), (5,), (1, 1, 3), (2, 2))), axis=1)


@of("tile")
def tile(d: Draw) -> Call:
    return call(d.array((2, 3), ALL), d.choice(((1, 2), (2, 2), (0, 1), (2,))))


@of("pad")
def pad(d: Draw) -> Call:
    dtype = d.dtype(ALL)
    shape = d.shape(0, 2)
    return call(
        d.array(shape, dtype=dtype),
        d.array((), dtype=dtype),
        [(d.randint(-1, 2), d.randint(-1, 2), d.randint(0, 2)) for _ in shape],
    )


@of("slice")
def slicing(d: Draw) -> Call:
    return call(
        d.operand((3, 4), ALL),
        (d.randint(0, 1), d.randint(0, 2)),
        (d.randint(1, 3), d.randint(2, 5 if d.chance(0.1) else 4)),
        *([(d.randint(1, 2), d.randint(1, 3))] if d.chance(0.5) else []),
    )


@of("slice_in_dim")
def slice_in_dim(d: Draw) -> Call:
    return call(
        d.operand((3, 4), ALL),
        d.choice((None, 0, 1, -2)),
        d.choice((None, 3, -1)),
        **d.some(0.4, stride=lambda: d.randint(1, 2), axis=lambda: d.choice((1, -1))),
    )


@of("index_in_dim")
def index_in_dim(d: Draw) -> Call:
    return call(d.operand((3, 4), ALL), d.randint(-3, 3), **d.some(0.4, axis=1, keepdims=False))


@of("dynamic_slice")
def dynamic_slice(d: Draw) -> Call:
    return call(
        d.operand((3, 4), ALL),
        sequence([d.scalar("i"), d.scalar("i")], "()"),
        (d.randint(1, 3), d.randint(1, 4)),
    )


@of("dynamic_slice_in_dim")
def dynamic_slice_in_dim(d: Draw) -> Call:
    return call(d.operand((3, 4), ALL), d.scalar("i"), d.randint(1, 3), **d.some(0.4, axis=1))


@of("dynamic_index_in_dim")
def dynamic_index_in_dim(d: Draw) -> Call:
    return call(d.operand((3, 4), ALL), d.operand((), "ii"), **d.some(0.4, axis=1, keepdims=False))


@of("dynamic_update_slice")
def dynamic_update_slice(d: Draw) -> Call:
    dtype = d.dtype(ALL)
    return call(
        d.array((3, 4), dtype=dtype),
        d.array((2, d.randint(0, 3)), dtype=dtype),
        sequence([d.scalar("i"), d.scalar("i")], "()"),
    )


@of("dynamic_update_slice_in_dim")
def dynamic_update_slice_in_dim(d: Draw) -> Call:
    dtype = d.dtype(ALL)
    return call(d.array((3, 4), dtype=dtype), d.array((2, 4), dtype=dtype), d.scalar("i"), 0)


@of("dynamic_update_index_in_dim")
def dynamic_update_index_in_dim(d: Draw) -> Call:
    dtype = d.dtype(ALL)
    return call(
        d.array((3, 4), dtype=dtype),
        d.array(d.choice(((4,), (1, 4))), dtype=dtype),
        d.scalar("i"),
        0,
    )


@of("index_take")
def index_take(d: Draw) -> Call:
    return call(
        d.operand((3, 4), ALL), sequence([d.array((2,), dtype="int32", values="unit")], "()"), (0,)
    )


@of("gather")
def gather(d: Draw) -> Call:
    numbers = (
        "lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), "
        "start_index_map=(0,))"
    )
    return call(
        d.array((3, 4), ALL),
        d.array((2, 1), dtype="int32"),
        source(numbers),
        (1, 4),
        **d.some(
            0.5,
            mode=lambda: (
                d.choice(("clip", "fill", "promise_in_bounds")) if d.chance(0.9) else "fill"
            ),
        ),
    )


@of("scatter scatter_add scatter_mul scatter_min scatter_max scatter_sub")
def scatter(d: Draw) -> Call:
    dtype = d.dtype("ffiu")
    numbers = (
        "lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,))"
    )
    return call(
        d.array((3, 4), dtype=dtype),
        d.array((2, 1), dtype="int32"),
        d.array((2, 4), dtype=dtype, values="plain"),
        source(numbers),
        **d.some(0.4, mode=lambda: d.choice(("clip", "drop"))),
    )


@of("scatter_apply")
def scatter_apply(d: Draw) -> Call:
    numbers = (
        "lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,))"
    )
    return call(
        d.array((3, 4), "f"),
        d.array((2, 1), dtype="int32"),
        source("jnp.sin"),
        source(numbers),
        update_shape=(2, 4),
    )


@of("select")
def select(d: Draw) -> Call:
    shape, dtype = d.shape(), d.dtype(ALL)
    return call(
        d.array(d.choice((shape, shape, ())), "b"),
        d.array(shape, dtype=dtype),
        d.array(shape, dtype=dtype),
    )


@of("select_n")
def select_n(d: Draw) -> Call:
    shape, dtype = d.shape(), d.dtype(ALL)
    return call(
        d.array(d.choice((shape, ())), "b"),
        d.array(shape, dtype=dtype),
        d.array(shape, dtype=dtype),
    )


@of("argmax argmin")
def argmax(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(
        d.operand(shape, "ffiub"),
        d.choice((0, len(shape) - 1, len(shape), -1)),
        source(d.choice(("jnp.int32", "jnp.uint8", "jnp.float32"))),
    )


@of("reduce_sum reduce_prod reduce_max reduce_min")
def reductions(d: Draw) -> Call:
    shape = d.shape()
    return call(
        d.operand(shape, "fffic"), tuple(d.sample(range(len(shape)), d.randint(0, len(shape))))
    )


@of("reduce_and reduce_or reduce_xor")
def bit_reductions(d: Draw) -> Call:
    shape = d.shape()
    return call(
        d.operand(shape, "ibu"), tuple(d.sample(range(len(shape)), d.randint(0, len(shape))))
    )


@of("reduce")
def reduce(d: Draw) -> Call:
    shape, dtype = d.shape(1, 3), d.dtype("ffi")
    return call(
        d.array(shape, dtype=dtype),
        d.array((), dtype=dtype),
        source(d.choice(("lax.add", "lax.max", "lambda x, y: x * y"))),
        (0,),
    )


@of("cumsum cumprod cummax cummin cumlogsumexp")
def cumulative(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(
        d.operand(shape, "fffic", "plain"),
        **d.some(0.6, axis=lambda: d.randrange(-1, len(shape)), reverse=True),
    )


@of("sort")
def sort(d: Draw) -> Call:
    return call(d.operand(d.shape(1, 3), ALL), **d.some(0.4, dimension=0, is_stable=False))


@of("sort_key_val")
def sort_key_val(d: Draw) -> Call:
    shape = d.shape(1, 2)
    return call(d.array(shape, "fi"), d.array(shape, "fi"))


@of("top_k")
def top_k(d: Draw) -> Call:
    return call(d.operand((2, 4), "ffi"), d.randint(0, 5))


@of("approx_max_k approx_min_k")
def approximate(d: Draw) -> Call:
    return call(d.array((2, 4), dtype="float32", values="distinct"), d.randint(1, 4))


@of("dot")
def dot(d: Draw) -> Call:
    dtype, k = d.dtype("ffci"), d.extent()
    return call(
        *[
            d.array(s, dtype=dtype, values="plain")
            for s in d.choice(
                (((2, k), (k, 3)), ((k,), (k,)), ((2, k), (k,)), ((k,), (k, 2)), ((2, 5), (k,)))
            )
        ],
        **d.some(0.2, preferred_element_type=lambda: source("jnp.float32")),
    )


@of("batch_matmul")
def batch_matmul(d: Draw) -> Call:
    dtype, k = d.dtype("ffc"), d.extent()
    return call(*[d.array(s, dtype=dtype, values="plain") for s in ((2, 3, k), (2, k, 2))])


@of("dot_general")
def dot_general(d: Draw) -> Call:
    dtype, k = d.dtype("ffci"), d.extent()
    left, right, numbers = d.choice(
        (
            ((2, k), (k, 3), (((1,), (0,)), ((), ()))),
            ((2, 3, k), (2, k, 2), (((2,), (1,)), ((0,), (0,)))),
            ((k, 2), (k, 2), (((0,), (0,)), ((1,), (1,)))),
            ((k,), (2,), (((), ()), ((), ()))),
        )
    )
    other = dtype if d.chance(0.85) else d.dtype("fi")
    return call(
        d.array(left, dtype=dtype, values="plain"),
        d.array(right, dtype=other, values="plain"),
        numbers,
        **d.some(0.2, preferred_element_type=lambda: source("jnp.float32")),
    )


@of("conv conv_with_general_padding conv_transpose")
def conv(d: Draw) -> Call:
    return call(
        d.array((1, 2, 4, 4), dtype="float32", values="plain"),
        d.array((3, 2, 2, 2), dtype="float32", values="plain"),
        (d.randint(1, 2), 1),
        d.choice(("SAME", "VALID")),
    )


TABLE["lax.conv_transpose"] = lambda d: call(
    d.array((1, 3, 3, 2), dtype="float32", values="plain"),
    d.array((2, 2, 2, 3), dtype="float32", values="plain"),
    (d.randint(1, 2), 1),
    d.choice(("SAME", "VALID")),
    **d.some(0.3, rhs_dilation=lambda: (1, 2)),
)
TABLE["lax.conv_with_general_padding"] = lambda d: call(
    d.array((1, 2, 4, 4), dtype="float32", values="plain"),
    d.array((3, 2, 2, 2), dtype="float32", values="plain"),
    (1, d.randint(1, 2)),
    d.choice(("SAME", [(1, 0), (2, 1)])),
    d.choice((None, (2, 1))),
    d.choice((None, (1, 2))),
)


@of("conv_general_dilated")
def conv_general_dilated(d: Draw) -> Call:
    groups = d.choice((1, 2))
    dtype = d.dtype("f")
    return call(
        d.array((1, 2, 4), dtype=dtype, values="plain"),
        d.array((2, 2 // groups, 2), dtype=dtype, values="plain"),
        (d.randint(1, 2),),
        d.choice(("SAME", "VALID", [(1, 1)])),
        feature_group_count=groups,
        **d.some(0.3, lhs_dilation=lambda: (2,), rhs_dilation=lambda: (2,)),
    )


TABLE["lax.conv_general_dilated_patches"] = lambda d: call(
    d.array((1, 2, 4), dtype="float32", values="plain"),
    (2,),
    (d.randint(1, 2),),
    d.choice(("SAME", "VALID")),
)
TABLE["lax.conv_general_dilated_local"] = lambda d: call(
    d.array((1, 2, 4), dtype="float32", values="plain"),
    d.array((3, 4, 3), dtype="float32", values="plain"),
    (1,),
    "VALID",
    (2,),
)
TABLE["lax.conv_dimension_numbers"] = lambda d: call(
    (1, 2, 4, 4), (3, 2, 2, 2), d.choice((None, ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")))
)
TABLE["lax.conv_general_permutations"] = lambda d: call(("NHWC", "HWIO", "NHWC"))
TABLE["lax.conv_shape_tuple"] = lambda d: call(
    (1, 2, 4, 4), (3, 2, 2, 2), (1, d.randint(1, 2)), [(d.randint(0, 2), 0), (0, 0)]
)
TABLE["lax.conv_general_shape_tuple"] = lambda d: call(
    (1, 4, 4, 2),
    (2, 2, 2, 3),
    (1, d.randint(1, 2)),
    [(d.randint(0, 2), 0), (0, 0)],
    ("NHWC", "HWIO", "NHWC"),
)
TABLE["lax.conv_transpose_shape_tuple"] = lambda d: call(
    (1, 4, 4, 2),
    (2, 2, 2, 3),
    (1, d.randint(1, 2)),
    d.choice(("SAME", "VALID")),
    ("NHWC", "HWIO", "NHWC"),
)
TABLE["lax.padtype_to_pads"] = lambda d: call(
    (4, 5), (2, 3), (1, d.randint(1, 2)), d.choice(("SAME", "VALID", "SAME_LOWER"))
)


@of("reduce_window")
def reduce_window(d: Draw) -> Call:
    dtype = d.dtype("ffi")
    start, body = d.choice((("0", "lax.add"), ("1", "lax.mul")))
    return call(
        d.array((3, 4), dtype=dtype, values="plain"),
        source(
            f"np.array({start}, '{dtype}')"
            if dtype != "bfloat16"
            else f"jnp.array({start}, 'bfloat16')"
        ),
        source(body),
        (d.randint(1, 2), 2),
        (1, d.randint(1, 2)),
        d.choice(("SAME", "VALID")),
    )


TABLE["lax.reduce_window_shape_tuple"] = lambda d: call(
    (3, 4), (2, 2), (1, d.randint(1, 2)), [(0, 0), (1, d.randint(0, 1))], (1, 1), (1, 1)
)


@of("fft")
def fft(d: Draw) -> Call:
    kind = d.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    dtype = "float32" if kind == "RFFT" else "complex64"
    return call(
        d.array((2, 4), dtype=dtype, values="plain"),
        source(f"lax.FftType.{kind}"),
        (6,) if kind == "IRFFT" else (4,),
    )


# --- control flow --------------------------------------------------------------------------------


@of("cond")
def cond(d: Draw) -> Call:
    return call(
        d.operand((), "bbi"),
        source("lambda x: x * 2"),
        source(d.choice(("lambda x: x + 1", "jnp.sin", "lambda x: x"))),
        d.operand(kinds="ffi", values="plain"),
    )


@of("switch")
def switch(d: Draw) -> Call:
    return call(
        d.operand((), "ii"),
        source("[lambda x: x, jnp.negative, lambda x: x * x]"),
        d.operand(kinds="ffi", values="plain"),
    )


@of("fori_loop")
def fori_loop(d: Draw) -> Call:
    return call(
        d.randint(0, 2),
        d.randint(0, 5),
        source(d.choice(("lambda i, x: x * 1.5", "lambda i, x: x + i", "lambda i, x: x * 2"))),
        d.operand(d.shape(0, 2), "ffi", "plain"),
    )


@of("while_loop")
def while_loop(d: Draw) -> Call:
    return call(
        source("lambda s: s[0] < 4"),
        source(
            d.choice(
                (
                    "lambda s: (s[0] + 1, s[1] * 2)",
                    "lambda s: (s[0] + 1, jnp.sin(s[1]))",
                    "lambda s: (s[0] + 1, s[1] * 2.0)",
                )
            )
        ),
        sequence([d.scalar("i"), d.operand(d.shape(0, 1), "ffi", "plain")], "()"),
    )


@of("scan")
def scan(d: Draw) -> Call:
    body = d.choice(
        (
            "lambda c, x: (c + x, c * x)",
            "lambda c, x: (c * 0.5 + x, c)",
            "lambda c, x: (c, 2.0)",
            "lambda c, x: (x, (c, x > 0))",
        )
    )
    dtype = d.dtype("ffi")
    carry = d.array((2,), dtype=dtype, values="plain") if d.chance(0.6) else d.scalar("fi", "plain")
    return call(
        source(body),
        carry,
        d.array((3, 2) if d.chance(0.6) else (3,), dtype=dtype, values="plain"),
        **d.some(0.2, reverse=True, unroll=lambda: 2),
    )


@of("map")
def mapping(d: Draw) -> Call:
    return call(
        source(d.choice(("jnp.sin", "lambda x: (x * 2, x > 0)", "lambda x: 1.0"))),
        d.array(d.filled(1, 2), "ffi"),
        **d.some(0.3, batch_size=lambda: 2),
    )


@of("associative_scan")
def associative_scan(d: Draw) -> Call:
    shape = d.filled(1, 2)
    return call(
        source(d.choice(("jnp.add", "jnp.maximum", "lambda x, y: x * y"))),
        d.array(shape, "ffi", "plain"),
        **d.some(0.4, reverse=True, axis=-1),
    )


TABLE["lax.custom_linear_solve"] = lambda d: call(
    source("lambda x: 3 * x"),
    d.array((3,), "f", "plain"),
    source("lambda m, b: b / 3"),
    **d.some(0.5, symmetric=True),
)
TABLE["lax.custom_root"] = lambda d: call(
    source("lambda x: x ** 3 - 2"),
    d.scalar("f", "positive"),
    source("lambda f, x: lax.fori_loop(0, 30, lambda i, y: y - f(y) / (3 * y * y), x)"),
    source("lambda g, y: y / g(1.0)"),
)
TABLE["lax.platform_dependent"] = lambda d: call(
    d.array((2,)), cpu=source("jnp.sin"), default=source("jnp.cos")
)
TABLE["lax.optimization_barrier"] = lambda d: call(d.operand(kinds=ALL))
TABLE["lax.dtype"] = lambda d: call(d.operand(kinds=ALL) if d.chance(0.8) else d.dtype_arg())
TABLE["lax.shape_as_value"] = lambda d: call(d.shape())
TABLE["lax.ragged_dot"] = lambda d: call(
    d.array((4, 2), dtype="float32", values="plain"),
    d.array((2, 2, 3), dtype="float32", values="plain"),
    Arg(d.choice(("jnp.array([1, 3], 'int32')", "jnp.array([4, 0], 'int32')")), True),
)
TABLE["lax.empty"] = lambda d: call(d.shape(), d.dtype_arg())
