"""Arguments for functions of dtypes and bits, and for what is called inside a mapped axis."""

from __future__ import annotations

from comparison.draw import Arg, Call, Draw, call, sequence, source
from comparison.families import ALL, Table

TABLE: Table = {}


def dtype_or_value(d: Draw) -> object:
    """A dtype, or a value that has one."""
    return d.choice(
        (
            d.dtype_arg(),
            d.operand((), ALL),
            d.scalar(ALL),
            source(d.choice(("float", "int", "'float32'", "bool"))),
        )
    )


TABLE["numpy.result_type"] = lambda d: call(*[dtype_or_value(d) for _ in range(d.randint(1, 3))])
TABLE["numpy.promote_types"] = lambda d: call(d.dtype_arg(), d.dtype_arg())
TABLE["numpy.can_cast"] = lambda d: call(
    d.dtype_arg(),
    d.dtype_arg(),
    **d.some(0.5, casting=lambda: d.choice(("no", "equiv", "safe", "same_kind", "unsafe"))),
)
TABLE["numpy.isdtype"] = lambda d: call(
    d.dtype_arg(),
    d.choice(
        (
            "bool",
            "signed integer",
            "unsigned integer",
            "integral",
            "real floating",
            "complex floating",
            "numeric",
            ("bool", "integral"),
            d.dtype_arg(),
        )
    ),
)
TABLE["numpy.issubdtype"] = lambda d: call(
    d.dtype_arg(),
    source(
        d.choice(
            (
                "jnp.floating",
                "jnp.integer",
                "jnp.inexact",
                "jnp.signedinteger",
                "jnp.number",
                "jnp.complexfloating",
                "jnp.float32",
                "jnp.bool_",
            )
        )
    ),
)
TABLE["numpy.packbits"] = lambda d: call(
    d.array(d.filled(1, 2), "bi"), **d.some(0.4, axis=lambda: d.choice((0, -1)), bitorder="little")
)
TABLE["numpy.unpackbits"] = lambda d: call(
    d.array(d.filled(1, 2), dtype="uint8"),
    **d.some(0.4, axis=lambda: d.choice((0, -1)), bitorder="little", count=lambda: d.randint(0, 9)),
)
TABLE["numpy.ravel_multi_index"] = lambda d: call(
    sequence([d.operand((2,), "iiu", "unit") for _ in range(2)], "()"),
    (7, 8),
    **d.some(0.6, mode=lambda: d.choice(("clip", "wrap"))),
    **d.some(0.3, order="F"),
)
TABLE["numpy.unravel_index"] = lambda d: call(
    d.operand(d.shape(0, 2), "iiu"), d.choice(((3, 4), (12,), (2, 2, 3)))
)
TABLE["numpy.vectorize"] = lambda d: Call(
    [d.array(d.filled(1, 2), "ffi"), d.array((), "fi")],
    {},
    "vectorized = jnp.vectorize(lambda x, y: x * 2 + y)\n",
)
TABLE["numpy.frompyfunc"] = lambda d: Call(
    [d.array(d.filled(1, 2), "ffi"), d.array((), "fi")],
    {},
    "ufunc = jnp.frompyfunc(lambda x, y: x * 2 + y, nin=2, nout=1)\n",
)
TABLE["nn.scaled_dot_general"] = lambda d: call(
    d.array((2, 32), dtype="float32", values="plain"),
    d.array((32, 2), dtype="float32", values="plain"),
    (((1,), (0,)), ((), ())),
)
TABLE["lax.scaled_dot"] = lambda d: call(
    *[d.array((32, 32), dtype="float32", values="plain") for _ in range(2)]
)
TABLE["lax.rng_bit_generator"] = lambda d: call(
    Arg("jnp.array([1, 2], 'uint32')", True), d.shape(0, 2)
)

# The called text of functions that are made, or need an axis of a map.
CALLED = {"numpy.vectorize": "vectorized", "numpy.frompyfunc": "ufunc"}
COLLECTIVES = {
    "psum": "lax.psum(x, 'i')",
    "pmean": "lax.pmean(x, 'i')",
    "pmax": "lax.pmax(x, 'i')",
    "pmin": "lax.pmin(x, 'i')",
    "all_gather": "lax.all_gather(x, 'i')",
    "axis_index": "x + lax.axis_index('i')",
    "axis_size": "x + lax.axis_size('i')",
    "ppermute": "lax.ppermute(x, 'i', [(0, 1), (1, 2), (2, 0)])",
    "pshuffle": "lax.pshuffle(x, 'i', [1, 2, 0])",
    "all_to_all": "lax.all_to_all(x, 'i', 0, 0)",
    "psum_scatter": "lax.psum_scatter(x, 'i')",
    "pswapaxes": "lax.pswapaxes(x, 'i', 0)",
}
for _name, _body in COLLECTIVES.items():
    TABLE[f"lax.{_name}"] = lambda d: call(d.array((3, 3), "ffi", "plain"))
    CALLED[f"lax.{_name}"] = f"jax.vmap(lambda x: {_body}, axis_name='i')"

# Public functions that are not compared, each with the reason.
EXCEPTIONS = {
    **dict.fromkeys(("lax.after_all", "lax.create_token"), "tokens have no value"),
    **dict.fromkeys(
        ("lax.pbroadcast", "lax.pcast", "lax.precv", "lax.psend", "lax.ragged_all_to_all"),
        "needs a mesh of several devices",
    ),
    "lax.with_sharding_constraint": "needs a mesh; tests/api/test_layouts.py",
    "lax.composite": "a decorator: its function is the user's",
    "lax.dce_sink": "has no result",
    "lax.stage": "traces; tests of stages",
    "lax.ragged_dot_general": "its dimension numbers are objects; tests/ops/test_ragged.py",
    "lax.rng_uniform": "draws other numbers at each call, in JAX too",
    "nn.get_scaled_dot_general_config": "block-scaled quantization is not there (docs/limits.md)",
    **dict.fromkeys(
        ("numpy.fromfile", "numpy.fromiter", "numpy.load", "numpy.save", "numpy.savez"),
        "reads or writes files",
    ),
    "numpy.from_dlpack": "takes another library's arrays; tests/api/test_array.py",
    **dict.fromkeys(
        ("numpy.get_printoptions", "numpy.printoptions", "numpy.set_printoptions"),
        "NumPy's own, passed on",
    ),
}
