"""Arguments for `nn`, `random`, `scipy.special`, `scipy.stats` and the small modules of SciPy."""

from __future__ import annotations

from collections.abc import Callable

from comparison.draw import Arg, Call, Draw, call, sequence, source
from comparison.families import (
    ALL,
    Table,
    elementwise,
    mask,
    positive_definite,
    reduction,
    several,
)

TABLE: Table = {}


def of(module: str, names: str):
    """Enter the decorated maker for these functions of `module`."""

    def enter(maker):
        several(TABLE, module, names, maker)
        return maker

    return enter


# --- nn ------------------------------------------------------------------------------------------

several(
    TABLE,
    "nn",
    """elu gelu celu selu silu swish relu relu6 sigmoid log_sigmoid soft_sign softplus
        sparse_plus sparse_sigmoid squareplus mish hard_tanh hard_sigmoid hard_silu hard_swish
        leaky_relu tanh identity log1mexp""",
    elementwise(1),
)


@of("nn", "leaky_relu elu celu squareplus")
def with_parameter(d: Draw) -> Call:
    return call(*d.operands(1, ALL), *([d.operand((), "ffi")] if d.chance(0.6) else []))


TABLE["nn.gelu"] = lambda d: call(d.operand(kinds=ALL), **d.some(0.5, approximate=False))


@of("nn", "softmax log_softmax standardize logmeanexp")
def normalizing(d: Draw) -> Call:
    shape = d.shape(0, 3)
    return call(
        d.operand(shape, "ffffi"),
        **d.some(0.5, axis=lambda: d.axis(len(shape)), where=lambda: mask(d, shape)),
    )


@of("nn", "logsumexp")
def logsumexp(d: Draw) -> Call:
    shape = d.shape(0, 3)
    return call(
        d.operand(shape, "ffffic"),
        **d.some(
            0.3,
            axis=lambda: d.axis(len(shape)),
            keepdims=True,
            return_sign=True,
            b=lambda: d.operand(shape, "ff"),
            where=lambda: mask(d, shape),
        ),
    )


several(TABLE, "scipy.special", "logsumexp", logsumexp)
several(TABLE, "scipy.special", "softmax log_softmax", reduction("ffffi"))
TABLE["nn.glu"] = lambda d: call(
    d.operand((2, 4), "fffi"), **d.some(0.5, axis=lambda: d.axis(2, 0, False))
)


@of("nn", "one_hot")
def one_hot(d: Draw) -> Call:
    return call(
        d.operand(kinds="iiiuf", values="small"),
        d.randint(0, 4),
        **d.some(0.3, dtype=d.dtype_arg, axis=lambda: d.choice((-1, 0))),
    )


@of("nn", "dot_product_attention")
def attention(d: Draw) -> Call:
    dtype = d.dtype("f")
    return call(
        *[d.array((1, 3, 2, 4), dtype=dtype, values="plain") for _ in range(3)],
        **d.some(
            0.3,
            is_causal=True,
            scale=lambda: 0.3,
            bias=lambda: d.array((1, 2, 3, 3), dtype=dtype, values="plain"),
            mask=lambda: d.array((1, 2, 3, 3), "b"),
            local_window_size=lambda: 1,
        ),
    )


@of("nn", "scaled_matmul")
def scaled_matmul(d: Draw) -> Call:
    return call(
        *[
            d.array(s, dtype="float32", values="plain")
            for s in ((1, 2, 8), (1, 3, 8), (1, 2, 2), (1, 3, 2))
        ]
    )


KEY = source("jax.random.key(7)")


def initializer(name: str, arguments: Callable[[Draw], dict]):
    """A maker that makes the initializer and calls it."""

    def make(d: Draw) -> Call:
        options = ", ".join(f"{k}={v}" for k, v in arguments(d).items())
        maker = f"jax.nn.initializers.{name}({options})"
        shape = d.choice(((3, 4), (2, 3, 4), (4, 4), (3, 3, 2, 4)))
        return Call(
            [source("jax.random.key(3)"), source(repr(shape)), d.dtype_arg("fffc")],
            setup=f"initializer = {maker}\n",
        )

    return make


for _name in """glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform
        lecun_normal lecun_uniform xavier_normal xavier_uniform""".split():
    TABLE[f"nn.initializers.{_name}"] = initializer(
        _name, lambda d: d.some(0.2, in_axis=-1, out_axis=-2)
    )
for _name in ("normal", "uniform", "truncated_normal"):
    TABLE[f"nn.initializers.{_name}"] = initializer(
        _name, lambda d: d.choice(({}, {"dtype": "jnp.float32"}))
    )
TABLE["nn.initializers.constant"] = initializer("constant", lambda d: {"value": d.choice((2, 1.5))})
TABLE["nn.initializers.orthogonal"] = initializer("orthogonal", lambda d: {})
TABLE["nn.initializers.variance_scaling"] = initializer(
    "variance_scaling",
    lambda d: {
        "scale": 2.0,
        "mode": repr(d.choice(("fan_in", "fan_out", "fan_avg"))),
        "distribution": repr(d.choice(("normal", "uniform", "truncated_normal"))),
    },
)
TABLE["nn.initializers.delta_orthogonal"] = lambda d: Call(
    [KEY, source(repr(d.choice(((3, 2, 4), (3, 3, 2, 2), (3, 4, 2)))))],
    setup="initializer = jax.nn.initializers.delta_orthogonal()\n",
)
several(
    TABLE,
    "nn.initializers",
    "zeros ones",
    lambda d: call(KEY, d.shape(), *([d.dtype_arg()] if d.chance(0.5) else [])),
)


# --- random --------------------------------------------------------------------------------------


def key(d: Draw) -> Arg:
    seed = d.choice((0, 1, 7, 123456789))
    return Arg(f"jax.random.{d.choice(('key', 'key', 'PRNGKey'))}({seed})", True)


def drawn(*parameters: str, dtypes: str = "f", values: str = "positive"):
    """A distribution: parameters by keyword, then shape and dtype."""

    def make(d: Draw) -> Call:
        shape = d.shape(0, 2)
        options = {name: d.operand(d.choice(((), shape)), "f", values) for name in parameters}
        if not parameters or d.chance(0.6):
            options["shape"] = shape
        options.update(d.some(0.4, dtype=lambda: d.dtype_arg(dtypes)))
        return call(key(d), **options)

    return make


several(TABLE, "random", "normal", drawn(dtypes="fffc"))
several(TABLE, "random", "cauchy exponential gumbel laplace logistic maxwell", drawn())
several(TABLE, "random", "rademacher", drawn(dtypes="fi"))
several(TABLE, "random", "bits", drawn(dtypes="u"))
for _name, _parameters in {
    "beta": ("a", "b"),
    "chisquare": ("df",),
    "f": ("dfnum", "dfden"),
    "gamma": ("a",),
    "loggamma": ("a",),
    "lognormal": ("sigma",),
    "pareto": ("b",),
    "rayleigh": ("scale",),
    "t": ("df",),
    "wald": ("mean",),
    "weibull_min": ("scale", "concentration"),
}.items():
    TABLE[f"random.{_name}"] = drawn(*_parameters)
TABLE["random.geometric"] = drawn("p", dtypes="i", values="unit")
TABLE["random.poisson"] = drawn("lam", dtypes="i")
TABLE["random.uniform"] = lambda d: call(
    key(d),
    d.shape(0, 2),
    **d.some(
        0.4,
        dtype=lambda: d.dtype_arg("f"),
        minval=lambda: d.scalar("fi", "plain"),
        maxval=lambda: d.scalar("fi", "plain"),
    ),
)
TABLE["random.bernoulli"] = lambda d: call(
    key(d), d.operand((), "f", "unit"), **d.some(0.5, shape=lambda: d.shape(0, 2))
)
TABLE["random.binomial"] = lambda d: call(
    key(d), d.operand((), "fi", "positive"), d.operand((), "f", "unit"), d.shape(0, 1)
)
TABLE["random.randint"] = lambda d: call(
    key(d),
    d.shape(0, 2),
    d.operand((), "iii"),
    d.operand((), "iii", "positive"),
    **d.some(0.3, dtype=lambda: d.dtype_arg("iu")),
)
TABLE["random.truncated_normal"] = lambda d: call(
    key(d),
    d.scalar("f", "plain"),
    d.scalar("f", "positive"),
    d.shape(0, 2),
    **d.some(0.3, dtype=lambda: d.dtype_arg("f")),
)
TABLE["random.triangular"] = lambda d: call(key(d), 0.0, d.scalar("f", "unit"), 1.0, d.shape(0, 2))
TABLE["random.generalized_normal"] = lambda d: call(
    key(d), d.choice((1.0, 1.5, 2.0)), d.shape(0, 2)
)
TABLE["random.ball"] = lambda d: call(
    key(d), d.randint(1, 3), **d.some(0.5, shape=lambda: d.shape(0, 1))
)
TABLE["random.double_sided_maxwell"] = lambda d: call(key(d), 0.5, 2.0, d.shape(0, 2))
TABLE["random.dirichlet"] = lambda d: call(key(d), d.array(d.filled(1, 2), "f", "positive"))
TABLE["random.multinomial"] = lambda d: call(
    key(d), d.randint(0, 5), Arg("jnp.array([0.2, 0.3, 0.5])", True)
)
TABLE["random.categorical"] = lambda d: call(
    key(d), d.array(d.filled(1, 2), "f", "plain"), **d.some(0.3, axis=lambda: 0, shape=lambda: (2,))
)
TABLE["random.choice"] = lambda d: call(
    key(d),
    d.choice((5, d.array((5,), ALL))),
    d.choice(((), (3,), (2, 2))),
    **d.some(0.4, replace=False, p=lambda: Arg("jnp.array([0.1, 0.2, 0.3, 0.2, 0.2])", True)),
)
TABLE["random.permutation"] = lambda d: call(
    key(d), d.choice((4, d.array((3, 2), ALL))), **d.some(0.2, axis=lambda: 0, independent=True)
)
TABLE["random.multivariate_normal"] = lambda d: call(
    key(d),
    d.array((2,), dtype="float32", values="plain"),
    Arg("jnp.array([[2.0, 0.5], [0.5, 1.0]])", True),
    **d.some(0.4, shape=lambda: (3,), method=lambda: d.choice(("cholesky", "svd", "eigh"))),
)
TABLE["random.orthogonal"] = lambda d: call(
    key(d), d.randint(1, 3), **d.some(0.4, shape=lambda: (2,), m=lambda: 2)
)
TABLE["random.split"] = lambda d: call(
    key(d), *([d.choice((1, 3, (2, 2)))] if d.chance(0.7) else [])
)
TABLE["random.fold_in"] = lambda d: call(key(d), d.operand((), "iiu"))
TABLE["random.key"] = TABLE["random.PRNGKey"] = lambda d: call(d.operand((), "iiuf"))
several(TABLE, "random", "key_data key_impl clone", lambda d: call(key(d)))
TABLE["random.wrap_key_data"] = lambda d: call(d.array((2,), dtype="uint32"))
TABLE["random.key_dtype"] = lambda d: call("threefry2x32")


# --- scipy.special -------------------------------------------------------------------------------

several(
    TABLE,
    "scipy.special",
    """dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit factorial
        fresnel gamma gammaln gammasgn i0 i0e i1 i1e log_ndtr logit loggamma ndtr ndtri sici spence
        wofz""",
    elementwise(1, "fffffi"),
)
several(
    TABLE,
    "scipy.special",
    "boxcox boxcox1p betaln beta comb kl_div poch rel_entr xlog1py xlogy",
    elementwise(2, "fffffi"),
)
several(TABLE, "scipy.special", "beta betaln comb poch boxcox", elementwise(2, "fffi", "positive"))
several(
    TABLE, "scipy.special", "gammainc gammaincc zeta owens_t", elementwise(2, "fffi", "positive")
)
TABLE["scipy.special.betainc"] = lambda d: call(
    *[d.operand(d.choice(((), (3,))), "f", v) for v in ("positive", "positive", "unit")]
)
TABLE["scipy.special.polygamma"] = lambda d: call(
    d.operand((), "ii", "positive"), d.operand(d.shape(0, 1), "f", "positive")
)
TABLE["scipy.special.multigammaln"] = lambda d: call(
    Arg(f"3.0 + {d.array((2,), dtype='float32', values='positive').text}", True), d.randint(1, 3)
)
TABLE["scipy.special.hyp1f1"] = lambda d: call(
    *[d.operand((2,), "f", "positive") for _ in range(3)]
)
TABLE["scipy.special.hyp2f1"] = lambda d: call(
    *[d.array((2,), "f", "positive") for _ in range(3)], d.array((2,), "f", "unit")
)
TABLE["scipy.special.expn"] = lambda d: call(
    d.operand((), "ii", "positive"), d.operand(d.shape(0, 1), "f", "positive")
)
TABLE["scipy.special.bernoulli"] = lambda d: call(d.randint(0, 9))
TABLE["scipy.special.bessel_jn"] = lambda d: call(
    d.array((2,), dtype="float32", values="positive"), v=d.randint(0, 4)
)
TABLE["scipy.special.sph_harm_y"] = lambda d: call(
    *[Arg(f"jnp.array({v})", True) for v in ([2, 3], [1, -2], [0.3, 1.2], [0.5, 2.5])]
)

# --- scipy.stats ---------------------------------------------------------------------------------

DISTRIBUTIONS = {  # functions; names of the parameters with their kind of values
    "bernoulli": ("cdf logpmf pmf ppf", "unit"),
    "beta": ("cdf logcdf logpdf logsf pdf sf", "positive positive"),
    "betabinom": ("logpmf pmf", "count positive positive"),
    "binom": ("logpmf pmf", "count unit"),
    "cauchy": ("cdf isf logcdf logpdf logsf pdf ppf sf", ""),
    "chi2": ("cdf logcdf logpdf logsf pdf sf", "positive"),
    "expon": ("cdf logcdf logpdf logsf pdf ppf sf", ""),
    "gamma": ("cdf logcdf logpdf logsf pdf sf", "positive"),
    "gennorm": ("cdf logpdf pdf", "positive"),
    "geom": ("logpmf pmf", "unit"),
    "gumbel_l": ("cdf logcdf logpdf logsf pdf ppf sf", ""),
    "gumbel_r": ("cdf logcdf logpdf logsf pdf ppf sf", ""),
    "laplace": ("cdf logpdf pdf", ""),
    "logistic": ("cdf isf logpdf pdf ppf sf", ""),
    "nbinom": ("logpmf pmf", "count unit"),
    "norm": ("cdf isf logcdf logpdf logsf pdf ppf sf", ""),
    "pareto": ("cdf logcdf logpdf logsf pdf ppf sf", "positive"),
    "poisson": ("cdf logpmf pmf", "positive"),
    "t": ("logpdf pdf", "positive"),
    "truncnorm": ("cdf logcdf logpdf logsf pdf sf", "low high"),
    "uniform": ("cdf logpdf pdf ppf", ""),
    "vonmises": ("logpdf pdf", "positive"),
    "wrapcauchy": ("logpdf pdf", "unit"),
}
WITHOUT_SCALE = (
    "bernoulli",
    "betabinom",
    "binom",
    "gennorm",
    "geom",
    "nbinom",
    "poisson",
    "vonmises",
    "wrapcauchy",
)


def distribution(name: str, function: str, parameters: str):
    """A value, the distribution's parameters, and now and then location and scale."""

    def make(d: Draw) -> Call:
        shape = d.shape(0, 2)

        def parameter(kind: str) -> Arg:
            where = d.choice(((), shape))
            if kind == "count":
                return d.operand(where, "fi", "positive") if d.chance(0.3) else d.scalar("u")
            if kind in ("low", "high"):
                return Arg(
                    f"{'-' if kind == 'low' else ''}{d.array(where, 'f', 'positive').text}", True
                )
            return d.operand(where, "fff", kind if d.chance(0.9) else "any")

        kinds = "fffi" if "pmf" not in function else "iiif"
        values = d.choice(("any", "plain", "positive", "unit"))
        options = (
            {}
            if name in WITHOUT_SCALE
            else d.some(
                0.3,
                loc=lambda: d.operand((), "f", "plain"),
                scale=lambda: d.operand((), "f", "positive"),
            )
        )
        if name == "uniform" and function == "ppf" and not options:
            values = "unit"
        return call(d.operand(shape, kinds, values), *map(parameter, parameters.split()), **options)

    return make


for _name, (_functions, _kinds) in DISTRIBUTIONS.items():
    for _function in _functions.split():
        TABLE[f"scipy.stats.{_name}.{_function}"] = distribution(_name, _function, _kinds)
TABLE["scipy.stats.poisson.entropy"] = lambda d: call(d.operand(d.shape(0, 1), "f", "positive"))
several(
    TABLE,
    "scipy.stats.dirichlet",
    "logpdf pdf",
    lambda d: call(Arg("jnp.array([0.2, 0.3, 0.5])", True), d.array((3,), "f", "positive")),
)
several(
    TABLE,
    "scipy.stats.multinomial",
    "logpmf pmf",
    lambda d: call(
        Arg(f"jnp.array({[d.randint(0, 2) for _ in range(3)]})", True),
        3,
        Arg("jnp.array([0.2, 0.3, 0.5])", True),
    ),
)
several(
    TABLE,
    "scipy.stats.multivariate_normal",
    "logpdf pdf",
    lambda d: call(
        d.array(d.choice(((2,), (3, 2))), "f", "plain"),
        d.array((2,), "f", "plain"),
        positive_definite(d, (), 2, "f"),
    ),
)
TABLE["scipy.stats.mode"] = lambda d: call(
    d.operand(d.shape(1, 2), "iif", "small"),
    **d.some(0.4, axis=lambda: d.axis(1, several=False), keepdims=True),
)
TABLE["scipy.stats.rankdata"] = lambda d: call(
    d.operand(d.shape(1, 2), "iif", "small"),
    **d.some(
        0.4,
        axis=lambda: d.axis(1, several=False),
        method=lambda: d.choice(("average", "min", "max", "dense", "ordinal")),
    ),
)
TABLE["scipy.stats.sem"] = lambda d: call(
    d.operand(d.shape(1, 2), "iff", "plain"),
    **d.some(
        0.4, axis=lambda: d.axis(1, several=False), keepdims=True, ddof=lambda: d.randint(0, 2)
    ),
)


# --- signal and the rest -------------------------------------------------------------------------


@of("scipy.signal", "convolve correlate fftconvolve")
def convolve(d: Draw) -> Call:
    rank = d.randint(1, 2)
    return call(
        *[
            d.operand(tuple(d.choice((2, 3, 4)) for _ in range(rank)), "fffi", "plain")
            for _ in range(2)
        ],
        **d.some(0.6, mode=lambda: d.choice(("full", "same", "valid"))),
    )


TABLE["scipy.signal.convolve2d"] = TABLE["scipy.signal.correlate2d"] = lambda d: call(
    d.operand((3, 4), "fffi", "plain"),
    d.operand((2, 2), "ffi", "plain"),
    **d.some(0.6, mode=lambda: d.choice(("full", "same", "valid"))),
)
TABLE["scipy.signal.detrend"] = lambda d: call(
    d.operand((2, 5), "ffi", "plain"),
    **d.some(0.4, type=lambda: d.choice(("linear", "constant")), axis=lambda: d.choice((0, -1))),
)
several(
    TABLE,
    "scipy.signal",
    "stft welch",
    lambda d: call(
        d.array((16,), dtype="float32", values="plain"),
        nperseg=d.choice((4, 8)),
        **d.some(0.3, fs=lambda: 2.0, detrend=lambda: d.choice((False, "constant"))),
    ),
)
TABLE["scipy.signal.csd"] = lambda d: call(
    *[d.array((16,), dtype="float32", values="plain")] * 2, nperseg=8
)
TABLE["scipy.signal.istft"] = lambda d: call(
    d.array((5, 4), dtype="complex64", values="plain"), nperseg=8
)
TABLE["scipy.ndimage.map_coordinates"] = lambda d: call(
    d.array((3, 4), "ffi", "plain"),
    sequence([d.array((2,), "f", "plain") for _ in range(2)]),
    d.randint(0, 1),
    **d.some(
        0.6,
        mode=lambda: d.choice(("constant", "nearest", "wrap", "mirror", "reflect")),
        cval=lambda: 2.0,
    ),
)
TABLE["scipy.integrate.trapezoid"] = lambda d: call(
    d.operand((2, 3), "ffi", "plain"), **d.some(0.4, dx=lambda: 0.5, axis=lambda: 0)
)
TABLE["scipy.optimize.minimize"] = lambda d: call(
    source("lambda x: jnp.sum((x - 1.5) ** 2)"),
    d.array((2,), dtype="float32", values="plain"),
    method="BFGS",
)
several(
    TABLE,
    "scipy.sparse.linalg",
    "cg bicgstab gmres",
    lambda d: Call(
        [
            Arg(f"spd({d.nested((3, 3), 'float32', 'unit')}, 'float32')", True),
            d.array((3,), dtype="float32", values="plain"),
        ]
    ),
)
TABLE["scipy.cluster.vq.vq"] = lambda d: call(
    d.array((4, 2), "f", "plain"), d.array((3, 2), "f", "plain")
)
