"""Names that older programs take from JAX and JAX 0.10.2 no longer has, and what stands in place of
each: errors say it. And those that it still has, with a warning.

A row is a name and its successor: `module:name`, or a sentence where that is no one name. Loaded
when a name is not found, or not yet. Called by finder.py alone.
"""

from __future__ import annotations

_AT = "x.at[index].set(y), .add, .multiply, .min or .max (methods of arrays)"

# Module -> name -> what to use.
NAMES: dict[str, dict[str, str]] = {
    "jax": {
        "abstract_arrays": "jax.core",
        "api": "jax",
        "clear_backends": "jax.extend.backend.clear_backends",
        "linear_util": "jax.extend.linear_util",
        "mask": "jax.numpy.where",
        "partial": "functools.partial",
        "soft_pmap": "jax.pmap",
        "tree_all": "jax.tree.all",
        "tree_flatten": "jax.tree.flatten",
        "tree_leaves": "jax.tree.leaves",
        "tree_map": "jax.tree.map",
        "tree_multimap": "jax.tree.map",
        "tree_reduce": "jax.tree.reduce",
        "tree_structure": "jax.tree.structure",
        "tree_transpose": "jax.tree.transpose",
        "tree_unflatten": "jax.tree.unflatten",
        "xla_computation": "jax.jit(f).lower(*args).as_text()",
    },
    "jax.experimental": {
        "ann": "jax.lax.approx_max_k",
        "global_device_array": "jax.make_array_from_callback",
        "host_callback": "jax.pure_callback, jax.experimental.io_callback or jax.debug.callback",
        "loops": "jax.lax.fori_loop",
        "maps": "jax.shard_map",
        "optimizers": "jax.example_libraries.optimizers",
        "stax": "jax.example_libraries.stax",
    },
    "jax.experimental.maps": {"xmap": "jax.shard_map"},
    "jax.interpreters.xla": {"DeviceArray": "jax.Array"},
    "jax.lax": {"tie_in": "its second argument, without a call"},
    "jax.lib": {"xla_bridge": "jax.extend.backend"},
    "jax.nn": {"normalize": "jax.nn.standardize"},
    "jax.numpy": {
        "DeviceArray": "jax.Array",
        "Inf": "jax.numpy.inf",
        "NINF": "-jax.numpy.inf",
        "NaN": "jax.numpy.nan",
        "PINF": "jax.numpy.inf",
        "alltrue": "jax.numpy.all",
        "asfarray": "jax.numpy.asarray(x, dtype=float)",
        "bool8": "jax.numpy.bool_",
        "cumproduct": "jax.numpy.cumprod",
        "errstate": "jax.debug_nans",
        "in1d": "jax.numpy.isin",
        "infty": "jax.numpy.inf",
        "lax_numpy": "jax.numpy",
        "msort": "jax.numpy.sort(x, axis=0)",
        "product": "jax.numpy.prod",
        "random": "jax.random, whose functions take a key",
        "round_": "jax.numpy.round",
        "row_stack": "jax.numpy.vstack",
        "sometrue": "jax.numpy.any",
        "trapz": "jax.numpy.trapezoid",
    },
    "jax.ops": {
        "index": "an index in brackets",
        "index_add": _AT,
        "index_max": _AT,
        "index_min": _AT,
        "index_mul": _AT,
        "index_update": _AT,
    },
    "jax.random": {"KeyArray": "jax.Array", "shuffle": "jax.random.permutation"},
    "jax.tree_util": {"tree_multimap": "jax.tree.map"},
}
# What was a module and is now something else.
_MODULES = {"jax.config": "jax.config, an object (`import jax; jax.config.update(...)`)"}

_OF_CORE = """CallPrimitive DebugInfo DropVar Effect Effects check_jaxpr concrete_or_error
find_top_trace gensym get_opaque_trace_state jaxprs_in_params new_jaxpr_eqn no_effects
primal_dtype_to_tangent_dtype valid_jaxtype"""
_OF_ERRORS = "InconclusiveDimensionOperation JaxprTypeError"
_WITHOUT = """is_concrete is_constant_dim is_constant_shape nonempty_axis_env_DO_NOT_USE
pytype_aval_mappings unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE
unsafe_get_axis_names_DO_NOT_USE"""
_OF_TRITON = (
    " Accessing it via jax.experimental.pallas is deprecated. You can use jax.numpy.dot, "
    "jax.numpy.einsum or the @ operator instead in a TPU or MGPU kernel."
)
# Module -> name -> what the warning says behind the name. They stand in no list of the module's.
DEPRECATED: dict[str, dict[str, str]] = {
    "jax.core": {
        **{name: f" is deprecated. Use jax.extend.core.{name}." for name in _OF_CORE.split()},
        **{name: f" is deprecated. Use jax.errors.{name}." for name in _OF_ERRORS.split()},
        **dict.fromkeys(_WITHOUT.split(), " is deprecated."),
    },
    "jax.experimental.pallas": {
        "dot": " was moved to jax.experimental.pallas.triton." + _OF_TRITON
    },
    "jax.interpreters.pxla": {
        "thread_resources": " is deprecated as of JAX v0.8.2. Please switch to using `with "
        "jax.set_mesh(mesh)` instead of `with mesh:` and then use "
        "`jax.sharding.get_abstract_mesh()` to get the current mesh."
    },
    "jax.scipy.special": dict.fromkeys(
        ("lpmn", "lpmn_values"), " is deprecated; no replacement is planned."
    ),
}


def instead(module: str, name: str = "") -> str:
    """The end of a message: what to use in place of `module.name`, or of the module; "" where
    that is not known."""
    whole = f"{module}.{name}" if name else module
    parent, _, last = whole.rpartition(".")
    found = NAMES.get(parent, {}).get(last) or _MODULES.get(whole)
    return f". JAX has it no more: use {found}" if found else ""
