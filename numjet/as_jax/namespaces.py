"""Which module of ours stands behind each public module of JAX.

A public module `jax.x.y` is `numjet.x.y` unless a table here says otherwise: packages of ours that
are internal, although JAX has a public module of that name (`core`, `ops`), and modules of JAX
whose names we keep elsewhere. Read by finder.py.
"""

from __future__ import annotations

import functools
import importlib.util

# Packages of numjet that are its inside: never seen under JAX's name.
INTERNAL = frozenset(
    {"api", "as_jax", "base", "checkpoints", "core", "cpu", "doctor", "native", "ops", "partition",
     "process", "transforms", "version", "xla"}
)  # fmt: skip
# Packages whose modules are their inside, but for those named here.
_PUBLIC_WITHIN = {
    "numjet.lax": {"linalg"},
    "numjet.nn": {"initializers"},
    "numjet.numpy": {"fft", "linalg"},
    "numjet.random": set(),
    "numjet.scipy": {
        "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
        "sparse", "spatial", "special", "stats",
    },
}  # fmt: skip
# Other modules that are the inside of packages which have public ones, too.
_WITHIN = frozenset(
    {
        *(f"numjet.extend.{n}" for n in ("jax_core", "jax_params", "primitive", "traces", "types")),
        "numjet.experimental.array_serialization.tree_bytes",
        *(f"numjet.scipy.stats.{n}" for n in ("arguments", "kde", "samples")),
        *(f"numjet.experimental.checkify.{n}" for n in ("rewrite", "sites")),
        *(f"numjet.experimental.pallas.{n}" for n in ("blocks", "call", "helpers")),
        *(f"numjet.experimental.sparse.{n}" for n in ("layouts", "operations", "primitives")),
    }
)
# Modules of JAX that are made of names from several modules of ours.
ROWS: dict[str, dict[str, str]] = {
    "jax.core": {"ensure_compile_time_eval": "numjet:ensure_compile_time_eval"},
    "jax.experimental.colocated_python": {
        "colocated_cpu_devices": "numjet.as_jax.colocated:colocated_cpu_devices",
        "colocated_python": "numjet.as_jax.colocated:colocated_python",
        "colocated_python_class": "numjet.as_jax.colocated:colocated_python_class",
    },
    "jax.experimental.colocated_python.func": {},
    "jax.experimental.colocated_python.serialization": {"DeviceList": "builtins:tuple"},
    "jax.experimental.fused": {"fused": "numjet.as_jax.refused:fused"},
    "jax.experimental.profiler": {
        "get_profiled_instructions_proto": "numjet.as_jax.refused:get_profiled_instructions_proto"
    },
    "jax.experimental.transfer": {
        name: f"numjet.as_jax.refused:{name}"
        for name in "TransferConnection TransferServer make_error_array "
        "start_transfer_server".split()
    },
    "jax.experimental.pallas": {"dot": "numjet.experimental.pallas.triton:dot"},
    "jax.experimental.pallas.ops": {},
    "jax.experimental.pallas.ops.tpu": {},
    "jax.experimental.pallas.ops.tpu.megablox": {"gmm": "numjet.as_jax.stand_ins:gmm"},
    "jax.experimental.pallas.ops.tpu.splash_attention": {},
    **{
        f"jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_{part}": dict.fromkeys(
            names.split(), "numjet.as_jax.stand_ins:splash_attention"
        )
        for part, names in (
            ("kernel", "BlockSizes SegmentIds make_splash_mha make_splash_mha_single_device "
             "make_splash_mqa make_splash_mqa_single_device"),
            ("mask", "CausalMask FullMask LocalMask MultiHeadMask NumpyMask make_causal_mask"),
        )
    },
    "jax.extend.ifrt_programs": {"ifrt_programs": "numjet.as_jax.stand_ins:IfrtPrograms"},
    "jax.lib": {},
    "jax.ops": {
        f"segment_{kind}": f"numjet.ops.segment:segment_{kind}"
        for kind in ("max", "min", "prod", "sum")
    },
    "jax.version": {"annotations": "__future__:annotations"},
    "jaxlib": {},
    "jaxlib.version": {},
}
# Names that are another object than in the module of ours, where the array standard asks for what
# JAX has not: limits of dtypes that are Python numbers (JAX's are NumPy's, with a dtype), and
# tuples (JAX gives lists, which are another pytree).
NAMES: dict[str, dict[str, str]] = {
    # Private ones, which axlearn and orbax read.
    "jax.experimental.array_serialization.serialization": {
        name: f"numjet.experimental.array_serialization.serialization:{name}"
        for name in ("_LimitInFlightBytes", "_REMOTE_URL_PREFIXES", "_get_metadata")
    },
    "jax.dtypes": {"finfo": "ml_dtypes:finfo"},
    "jax.experimental": {
        "EArray": "numjet.as_jax.refused:EArray",
        "compilation_cache": "jax.experimental.compilation_cache",
        "primal_tangent_dtype": "numjet.as_jax.refused:primal_tangent_dtype",
    },
    "jax.numpy": {
        # What the array API standard has programs ask a namespace for.
        "__array_api_version__": "numjet.numpy:__array_api_version__",
        "__array_namespace_info__": "numjet.numpy:__array_namespace_info__",
        "broadcast_arrays": "numjet.as_jax.lists:broadcast_arrays",
        "finfo": "ml_dtypes:finfo",
        "meshgrid": "numjet.as_jax.lists:meshgrid",
    },
}
# Modules of JAX whose name an internal package of ours has.
MODULES = {
    "jax.core": "numjet.extend.jax_core",
    "jax.experimental.pallas": "numjet.experimental.pallas",
}
# Those some of whose names warn (`removed.DEPRECATED`).
DEPRECATED_IN = frozenset(
    {"jax.core", "jax.experimental.pallas", "jax.interpreters.pxla", "jax.scipy.special"}
)
# Classes that say JAX's module, as programs print it and pickle writes it: by our module, JAX's
# with their names there.
SHOWN: dict[str, tuple[tuple[str, str], ...]] = {
    "numjet.api.derivatives.custom": (("jax._src.custom_derivatives", "custom_jvp custom_vjp"),),
    "numjet.api.placement.mesh": (
        ("jax._src.mesh", "AxisType"), ("jax._src.sharding_impls", "set_mesh"),
    ),
    "numjet.api.placement.placements": (("jax.sharding", "SingleDeviceSharding"),),
    "numjet.api.derivatives.pullbacks": (("jax._src.api", "VJP"),),
    "numjet.api.compiled.stage_info": (("jax._src.stages", "ArgInfo"),),
    "numjet.api.placement.shape_struct": (("jax", "ShapeDtypeStruct"),),
    "numjet.api.compiled.stages": (("jax._src.stages", "Compiled Lowered Traced"),),
    "numjet.api.placement.sharding": (("jax.sharding", "NamedSharding"), ("jax", "P")),
    "numjet.base.errors": (
        ("jax.dtypes", "TypePromotionError"),
        (
            "jax.errors",
            "ConcretizationTypeError InconclusiveDimensionOperation JAXIndexError JAXTypeError "
            "JaxRuntimeError JaxprTypeError KeyReuseError NonConcreteBooleanIndexError "
            "TracerArrayConversionError TracerBoolConversionError TracerIntegerConversionError "
            "UnexpectedTracerError",
        ),
    ),
    "numjet.base.tree_registry": (("jax.tree_util", "Partial"),),
    "numjet.core.avals": (("jax._src.core", "AbstractValue ShapedArray"),),
    "numjet.core.jaxpr": (("jax._src.core", "ClosedJaxpr Jaxpr JaxprEqn Literal Var"),),
    "numjet.core.refs": (("jax._src.core", "Ref"),),
    "numjet.core.shared": (("jax._src.core", "ManualAxisType"),),
    "numjet.core.trace": (("jax._src.core", "Trace"),),
    "numjet.custom_batching": (("jax._src.custom_batching", "custom_vmap"),),
    "numjet.dtypes": (("jax.dtypes", "extended prng_key"),),
    "numjet.example_libraries.optimizers": (
        ("jax.example_libraries.optimizers", "JoinPoint Optimizer OptimizerState"),
    ),
    "numjet.experimental.checkify": (("jax._src.checkify", "Error"),),
    "numjet.experimental.checkify.sites": (
        ("jax._src.checkify", "DivisionByZeroError FailedCheckError NaNError OOBError"),
    ),
    "numjet.experimental.multihost_utils": (
        ("jax.experimental.multihost_utils", "ProcessFailureError"),
    ),
    "numjet.experimental.sparse.bcoo": (("jax.experimental.sparse.bcoo", "BCOO"),),
    "numjet.experimental.sparse.bcsr": (("jax.experimental.sparse.bcsr", "BCSR"),),
    "numjet.experimental.sparse.coo": (("jax.experimental.sparse.coo", "COO"),),
    "numjet.experimental.sparse.csr": (("jax.experimental.sparse.csr", "CSC CSR"),),
    "numjet.experimental.sparse.layouts": (
        ("jax.experimental.sparse.util", "SparseEfficiencyError SparseEfficiencyWarning"),
    ),
    "numjet.extend.primitive": (("jax._src.core", "Primitive"),),
    "numjet.nn.initializers": (("jax.nn.initializers", "Initializer"),),
    "numjet.numpy": (
        (
            "jax.numpy",
            "bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 "
            "float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
            "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int16 int2 int32 int4 "
            "int64 int8 ufunc uint1 uint16 uint2 uint32 uint4 uint64 uint8",
        ),
    ),
    "numjet.ops.conv_numbers": (("jax._src.lax.convolution", "ConvDimensionNumbers"),),
    "numjet.ops.dot": (("jax._src.lax.lax", "Precision"),),
    "numjet.ops.indexing": (
        (
            "jax._src.lax.slicing",
            "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers",
        ),
    ),
}
# Names of the front door that JAX's does not have.
HIDDEN: dict[str, frozenset[str]] = {
    "jax": INTERNAL, "jax.lax.linalg": frozenset({"solve"}),
    "jax.sharding": frozenset({"P", "use_mesh"}),
    "jax.interpreters.ad": frozenset(
        "Primitive Rules WrappedFun as_array aval_of clear_caches".split()
    ),
    "jax.interpreters.batching": frozenset(
        "Primitive Rules as_array broadcast_in_dim clear_caches reshape".split()
    ),
    "jax.extend.core": frozenset(
        "NO_EFFECTS as_array axis_names nonempty_axis_env under_jit under_vmap".split()
    ),
    "jax.extend.core.primitives": frozenset(
        "Axis LoweredFun REGISTRY WrappedFun call_batch call_impl call_jvp call_transpose "
        "eval_closed registered".split()
    ),
    "jax.extend.mlir": frozenset({"NO_MLIR", "NeedsMLIR"}),
}

# Names of ours that stand in no `__all__`, and that JAX's modules have.
KEPT: dict[str, frozenset[str]] = {
    "jax.core": frozenset({"Atom", "Effects", "Value"}),
    "jax.example_libraries.stax": frozenset(
        "elu gelu glorot_normal leaky_relu log_softmax normal ones relu selu sigmoid softmax "
        "softplus standardize zeros".split()
    ),
    "jax.extend.core": frozenset({"Effects"}),
    "jax.interpreters.partial_eval": frozenset({"Val"}),
    "jax.experimental.ode": frozenset(
        "abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri mean_error_ratio "
        "optimal_step_size ravel_pytree runge_kutta_step".split()
    ),
    "jax.interpreters.mlir": frozenset(
        "AxisContext DEVICE_TO_DEVICE_TYPE LoweringRule Mesh MeshAxisName RECV_FROM_HOST_TYPE "
        "SEND_TO_HOST_TYPE Value ir ir_tree_registry ir_type_handlers".split()
    ),
}


@functools.cache
def source(name: str) -> str | None:
    """The module of ours behind the public module `name`; None where there is none."""
    if name == "jax":
        return "numjet"
    if name in MODULES:
        return MODULES[name]
    if name in ROWS or not name.startswith("jax."):
        return None
    ours = "numjet" + name[len("jax") :]
    parts = ours.split(".")
    if parts[1] in INTERNAL or any(part.startswith("_") for part in parts) or ours in _WITHIN:
        return None
    public = _PUBLIC_WITHIN.get(".".join(parts[:2]))
    if public is not None and len(parts) > 2 and parts[2] not in public:
        return None
    try:
        return ours if importlib.util.find_spec(ours) is not None else None
    except ModuleNotFoundError:
        return None


def known(name: str) -> bool:
    """Whether there is a public module `name`."""
    return name in ROWS or source(name) is not None


def names(name: str) -> dict[str, str]:
    """The names of the public module `name` that come from elsewhere, with their places."""
    found = ROWS.get(name) or NAMES.get(name)
    if found is None and name.startswith("jax.experimental."):
        # Loaded here: what it holds is made of half of numjet.
        from numjet.as_jax.beside import TABLE

        found = TABLE.get(name)
    return found or {}


def children(name: str) -> frozenset[str]:
    """The modules directly below `name` that a table here names."""
    prefix = name + "."
    return frozenset(
        other[len(prefix) :].partition(".")[0] for other in ROWS if other.startswith(prefix)
    )
