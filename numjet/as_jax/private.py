"""JAX's private names that published libraries import all the same: the one table of them.

Each row: the private module, the name in it, the place of ours, and the libraries that need it.
What is not here raises AttributeError (a module: ModuleNotFoundError) with a sentence. Read by
finder.py.

A new row needs a published library that stops without it, or is a class that programs print
("printed": namespaces.SHOWN); tests/as_jax/test_private.py resolves
every row.
"""

from __future__ import annotations

import functools

ROOTS = ("jax._src", "jaxlib.")
_CUSTOM = "numjet.api.derivatives.custom:"
_HERE = "numjet.as_jax.stand_ins:"
_CORE = "numjet.extend.jax_core:"
_PICKLE = "numjet.as_jax.pickles:"
_CHECKS = "numjet.experimental.checkify.sites:"

# module, name, where it is with us, libraries. A row without a name is for a module alone.
TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("jax._src.ad_checkpoint", "saved_residuals", "numjet.ad_checkpoint:_saved_residuals",
     "haliax"),
    ("jax._src.ad_util", "stop_gradient_p", "numjet.lax:stop_gradient_p", "lineax"),
    ("jax._src.api", "VJP", "numjet.api.derivatives.pullbacks:VJP", "printed"),
    ("jax._src.api", "grad", "numjet:grad", "JAX's documentation"),
    ("jax._src.api", "jit", "numjet:jit", "JAX's documentation"),
    ("jax._src.api", "jvp", "numjet:jvp", "JAX's documentation"),
    ("jax._src.api", "vjp", "numjet:vjp", "JAX's documentation"),
    ("jax._src.api", "vmap", "numjet:vmap", "JAX's documentation"),
    ("jax._src.api_util", "_ensure_index_tuple", _HERE + "index_tuple", "jaxloudnorm"),
    ("jax._src.api_util", "infer_argnums_and_argnames", _HERE + "infer_argnums_and_argnames",
     "e3nn-jax"),
    ("jax._src.array", "ArrayImpl", "numjet.core.array:ArrayImpl", "lovely-jax"),
    ("jax._src.array", "_reconstruct_array", _HERE + "reconstruct_array", "pickles of arrays"),
    ("jax._src.basearray", "Array", "numjet:Array", "jinns"),
    ("jax._src.checkify", "DivisionByZeroError", _CHECKS + "DivisionByZeroError", "printed"),
    ("jax._src.checkify", "Error", "numjet.experimental.checkify:Error", "flax"),
    ("jax._src.checkify", "FailedCheckError", _CHECKS + "FailedCheckError", "printed"),
    ("jax._src.checkify", "JaxException", "numjet.experimental.checkify:JaxRuntimeError", "flax"),
    ("jax._src.checkify", "NaNError", _CHECKS + "NaNError", "printed"),
    ("jax._src.checkify", "OOBError", _CHECKS + "OOBError", "printed"),
    ("jax._src.checkify", "Out", "typing:Any", "flax"),
    ("jax._src.checkify", "checkify", "numjet.experimental.checkify:checkify", "flax"),
    ("jax._src.checkify", "user_checks", "numjet.experimental.checkify:user_checks", "flax"),
    ("jax._src.compiler", "", "", "chex"),
    ("jax._src.config", "numpy_rank_promotion", "numjet.base.config:numpy_rank_promotion",
     "quaxed"),
    ("jax._src.core", "AbstractValue", _CORE + "AbstractValue", "quax"),
    ("jax._src.core", "ClosedJaxpr", "numjet.core.jaxpr:ClosedJaxpr", "printed"),
    ("jax._src.core", "Jaxpr", "numjet.core.jaxpr:Jaxpr", "printed"),
    ("jax._src.core", "JaxprEqn", "numjet.core.jaxpr:JaxprEqn", "printed"),
    ("jax._src.core", "Literal", "numjet.core.jaxpr:Literal", "printed"),
    ("jax._src.core", "ManualAxisType", "numjet.sharding:ManualAxisType", "pickles"),
    ("jax._src.core", "MemorySpace", "numjet.api.placement.sharding:MemorySpace", "pickles"),
    ("jax._src.core", "Primitive", _CORE + "Primitive", "quax"),
    ("jax._src.core", "Ref", "numjet.core.refs:Ref", "printed"),
    ("jax._src.core", "ShapedArray", _CORE + "ShapedArray", "flax, quax"),
    ("jax._src.core", "Trace", _CORE + "Trace", "quax"),
    ("jax._src.core", "TraceTag", _CORE + "TraceTag", "quax"),
    ("jax._src.core", "Tracer", _CORE + "Tracer", "quax"),
    ("jax._src.core", "Var", "numjet.core.jaxpr:Var", "printed"),
    ("jax._src.core", "concrete_or_error", _CORE + "concrete_or_error", "dynamiqs"),
    ("jax._src.core", "full_lower", _CORE + "full_lower", "quax"),
    ("jax._src.core", "get_aval", _CORE + "get_aval", "quax"),
    ("jax._src.core", "jaxpr_as_fun", _CORE + "jaxpr_as_fun", "quax"),
    ("jax._src.core", "physical_aval", _HERE + "physical_aval", "flax"),
    ("jax._src.core", "set_current_trace", _CORE + "set_current_trace", "quax"),
    ("jax._src.core", "take_current_trace", _CORE + "take_current_trace", "quax"),
    ("jax._src.core", "trace_ctx", _HERE + "trace_ctx", "quax"),
    ("jax._src.core", "trace_state_clean", _HERE + "trace_state_clean", "numpyro"),
    ("jax._src.custom_batching", "custom_vmap", "numjet.custom_batching:custom_vmap", "printed"),
    ("jax._src.custom_derivatives", "custom_jvp", _CUSTOM + "custom_jvp", "printed"),
    ("jax._src.custom_derivatives", "custom_vjp", _CUSTOM + "custom_vjp", "printed"),
    ("jax._src.dispatch", "wait_for_tokens", "numjet.api.callbacks:effects_barrier", "equinox"),
    ("jax._src.distributed", "global_state", _HERE + "global_state", "orbax-checkpoint"),
    ("jax._src.dtypes", "DType", "numpy:dtype", "flax"),
    ("jax._src.dtypes", "ExtendedDType", _HERE + "ExtendedDType", "flax"),
    ("jax._src.dtypes", "TypePromotionError", "numjet.dtypes:TypePromotionError", "equinox"),
    ("jax._src.dtypes", "extended", "numjet.dtypes:extended", "flax"),
    ("jax._src.dtypes", "finfo", "ml_dtypes:finfo", "flax"),
    ("jax._src.dtypes", "to_complex_dtype", _HERE + "to_complex_dtype", "tinygp"),
    ("jax._src.flatten_util", "ravel_pytree", "numjet.flatten_util:ravel_pytree", "blackjax"),
    ("jax._src.hijax", "MappingSpec", "numjet.core.hi:MappingSpec", "printed"),
    ("jax._src.interpreters.batching", "is_vmappable", _HERE + "is_vmappable", "jaxoplanet"),
    ("jax._src.interpreters.partial_eval", "JaxprTracer",
     "numjet.interpreters.partial_eval:JaxprTracer", "scico"),
    ("jax._src.interpreters.partial_eval", "dce_jaxpr",
     "numjet.interpreters.partial_eval:dce_jaxpr", "asdex"),
    ("jax._src.lax.control_flow", "scan", "numjet.lax:scan", "pytensor"),
    ("jax._src.lax.convolution", "ConvDimensionNumbers", "numjet.lax:ConvDimensionNumbers",
     "pickles"),
    ("jax._src.lax.lax", "Precision", "numjet.lax:Precision", "pickles"),
    ("jax._src.lax.lax", "add", "numjet.lax:add", "JAX's documentation"),
    ("jax._src.lax.lax", "dot_general", "numjet.lax:dot_general", "pickles"),
    ("jax._src.lax.lax", "full_like", "numjet.lax:full_like", "JAX's documentation"),
    ("jax._src.lax.lax", "mul", "numjet.lax:mul", "JAX's documentation"),
    ("jax._src.lax.linalg", "cholesky_p", "numjet.lax.linalg:cholesky_p", "unxt"),
    ("jax._src.lax.linalg", "eigh_p", "numjet.lax.linalg:eigh_p", "unxt"),
    ("jax._src.lax.linalg", "lu_p", "numjet.lax.linalg:lu_p", "unxt"),
    ("jax._src.lax.linalg", "qr_p", "numjet.lax.linalg:qr_p", "unxt"),
    ("jax._src.lax.linalg", "svd_p", "numjet.lax.linalg:svd_p", "unxt"),
    ("jax._src.lax.linalg", "triangular_solve", "numjet.lax.linalg:triangular_solve", "unxt"),
    ("jax._src.lax.slicing", "GatherDimensionNumbers", "numjet.lax:GatherDimensionNumbers",
     "pickles"),
    ("jax._src.lax.slicing", "GatherScatterMode", "numjet.lax:GatherScatterMode", "pickles"),
    ("jax._src.lax.slicing", "ScatterDimensionNumbers", "numjet.lax:ScatterDimensionNumbers",
     "pickles"),
    ("jax._src.lib", "jaxlib_extension_version", _HERE + "jaxlib_extension_version", "grain"),
    ("jax._src.lib.xla_client", "XlaRuntimeError", "numjet.errors:JaxRuntimeError", "dynamiqs"),
    ("jax._src.literals", "TypedComplex", _HERE + "TypedComplex", "quax"),
    ("jax._src.literals", "TypedFloat", _HERE + "TypedFloat", "quax"),
    ("jax._src.literals", "TypedInt", _HERE + "TypedInt", "quax"),
    ("jax._src.literals", "TypedNdArray", _HERE + "TypedNdArray", "equinox"),
    ("jax._src.mesh", "AbstractMesh", _PICKLE + "AbstractMesh", "pickles"),
    ("jax._src.mesh", "AxisType", "numjet.sharding:AxisType", "pickles"),
    ("jax._src.mesh", "get_concrete_mesh", "numjet.api.placement.mesh:context_mesh", "haliax"),
    ("jax._src.named_sharding", "_unpickle_named_sharding", _PICKLE + "unpickle_named_sharding",
     "pickles"),
    ("jax._src.nn.functions", "glu", "numjet.nn:glu", "sbijax"),
    ("jax._src.numpy.array_methods", "_IndexUpdateHelper", "numjet.numpy.at:IndexUpdateHelper",
     "unxt"),
    ("jax._src.numpy.array_methods", "_IndexUpdateRef", "numjet.numpy.at:IndexUpdateRef", "unxt"),
    ("jax._src.numpy.einsum", "_default_poly_einsum_handler", "opt_einsum:contract_path",
     "aqtp, haliax"),
    ("jax._src.numpy.einsum", "_einsum", _HERE + "einsum_of_path", "aqtp, haliax"),
    ("jax._src.numpy.einsum", "_poly_einsum_handlers", _HERE + "einsum_handlers", "aqtp, haliax"),
    ("jax._src.numpy.index_tricks", "CClass", "numjet.numpy.index_tricks:CClass", "quaxed"),
    ("jax._src.numpy.index_tricks", "RClass", "numjet.numpy.index_tricks:RClass", "quaxed"),
    ("jax._src.numpy.ufuncs", "ufunc", "numjet.numpy:ufunc", "esquilax, jumanji"),
    ("jax._src.numpy.util", "promote_args_inexact", "numjet.as_jax.beside:promote_args_inexact",
     "numpyro-schechter"),
    ("jax._src.numpy.util", "promote_dtypes_complex", "numjet.as_jax.beside:promote_dtypes_complex",
     "s2fft"),
    ("jax._src.numpy.util", "promote_dtypes_inexact", "numjet.as_jax.beside:promote_dtypes_inexact",
     "orthax"),
    ("jax._src.numpy.vectorize", "_apply_excluded", _HERE + "apply_excluded", "quaxed"),
    ("jax._src.numpy.vectorize", "_check_output_dims", _HERE + "check_output_dims", "quaxed"),
    ("jax._src.numpy.vectorize", "_parse_gufunc_signature",
     "numjet.numpy.functional:parse_signature", "quaxed"),
    ("jax._src.numpy.vectorize", "_parse_input_dimensions", _HERE + "parse_input_dimensions",
     "quaxed"),
    ("jax._src.pjit", "auto_axes", "numjet.sharding:auto_axes", "jaxns"),
    ("jax._src.pjit", "jit_p", "numjet.ops.jit_call:jit_p", "quax"),
    ("jax._src.public_test_util", "check_close", _HERE + "check_close", "tinygp"),
    ("jax._src.random", "Shape", "collections.abc:Sequence", "evermore"),
    ("jax._src.random.prng", "PRNGImpl", _PICKLE + "PRNGImpl", "pickles"),
    ("jax._src.random.prng", "PRNGKeyArray", _PICKLE + "PRNGKeyArray", "pickles"),
    ("jax._src.random.threefry2x32", "threefry_fold_in", "numjet.random:fold_in", "pickles"),
    ("jax._src.random.threefry2x32", "threefry_random_bits", _HERE + "threefry_random_bits",
     "quax"),
    ("jax._src.random.threefry2x32", "threefry_seed", _HERE + "threefry_seed", "quax"),
    ("jax._src.random.threefry2x32", "threefry_split", _HERE + "threefry_split", "quax"),
    ("jax._src.scipy.special", "gammaln", "numjet.scipy.special:gammaln", "jaxns"),
    ("jax._src.scipy.special", "logsumexp", "numjet.scipy.special:logsumexp", "jaxctx"),
    ("jax._src.sharding_impls", "canonicalize_sharding", _HERE + "canonicalize_sharding", "jaxns"),
    ("jax._src.sharding_impls", "set_mesh", "numjet.api.placement.mesh:set_mesh", "printed"),
    ("jax._src.stages", "ArgInfo", "numjet.api.compiled.stage_info:ArgInfo", "printed"),
    ("jax._src.stages", "Compiled", "numjet.api.compiled.stages:Compiled", "printed"),
    ("jax._src.stages", "Lowered", "numjet.api.compiled.stages:Lowered", "printed"),
    ("jax._src.stages", "Traced", "numjet.api.compiled.stages:Traced", "printed"),
    ("jax._src.state.indexing", "Slice", "numjet.numpy.dynamic_slices:Slice", "haliax"),
    ("jax._src.state.types", "AbstractRef", "numjet.core.refs:AbstractRef", "flax"),
    ("jax._src.test_util", "is_cuda_compute_capability_at_least",
     _HERE + "is_cuda_compute_capability_at_least", "flax's documentation"),
    ("jax._src.traceback_util", "UnfilteredStackTrace", _HERE + "UnfilteredStackTrace", "flax"),
    ("jax._src.traceback_util", "_exclude_paths", _HERE + "exclude_paths", "flax"),
    ("jax._src.traceback_util", "api_boundary", _HERE + "api_boundary", "flax"),
    ("jax._src.traceback_util", "include_frame", _HERE + "include_frame", "equinox"),
    ("jax._src.traceback_util", "register_exclusion", _HERE + "register_exclusion",
     "equinox, flax, jaxtyping"),
    ("jax._src.tree_util", "GetAttrKey", "numjet.tree_util:GetAttrKey", "furax"),
    ("jax._src.tree_util", "_registry", _HERE + "registry", "flax, jaxlie"),
    ("jax._src.tree_util", "all_leaves", "numjet.tree_util:all_leaves", "inox"),
    ("jax._src.tree_util", "default_registry", _HERE + "registry", "pickles"),
    ("jax._src.tree_util", "flatten_one_level", "numjet.tree_util:flatten_one_level",
     "orbax-checkpoint"),
    ("jax._src.tree_util", "flatten_one_level_with_keys",
     "numjet.base.tree:flatten_one_level_with_keys", "inox"),
    ("jax._src.tree_util", "keystr", "numjet.tree_util:keystr", "inox"),
    ("jax._src.tree_util", "register_pytree_node_class",
     "numjet.tree_util:register_pytree_node_class", "inox"),
    ("jax._src.tree_util", "register_pytree_with_keys",
     "numjet.tree_util:register_pytree_with_keys", "furax"),
    ("jax._src.tree_util", "register_pytree_with_keys_class",
     "numjet.tree_util:register_pytree_with_keys_class", "inox"),
    ("jax._src.tree_util", "tree_map", "numjet.tree_util:tree_map", "inox"),
    ("jax._src.tree_util", "tree_map_with_path", "numjet.tree_util:tree_map_with_path", "inox"),
    ("jax._src.tree_util", "tree_structure", "numjet.tree_util:tree_structure", "inox"),
    ("jax._src.tree_util", "tree_unflatten", "numjet.tree_util:tree_unflatten", "inox"),
    ("jax._src.typing", "Array", "numjet:Array", "numpyro-schechter"),
    ("jax._src.typing", "ArrayLike", "numjet.typing:ArrayLike", "numpyro-schechter"),
    ("jax._src.typing", "DType", "numpy:dtype", "furax"),
    ("jax._src.typing", "SupportsDType", "numjet.typing:SupportsDType", "jaxctx"),
    ("jax._src.util", "canonicalize_axis", _HERE + "canonicalize_axis", "jaxloudnorm"),
    ("jax._src.util", "merge_lists", _HERE + "merge_lists", "interpreters of jaxprs"),
    ("jax._src.util", "partition_list", _HERE + "partition_list", "interpreters of jaxprs"),
    ("jax._src.util", "safe_map", "numjet.api_util:safe_map", "JAX's documentation"),
    ("jax._src.util", "safe_zip", _HERE + "safe_zip", "interpreters of jaxprs"),
    ("jax._src.util", "split_list", _HERE + "split_list", "interpreters of jaxprs"),
    ("jax._src.util", "unzip2", _HERE + "unzip2", "interpreters of jaxprs"),
    ("jax._src.util", "unzip3", _HERE + "unzip3", "interpreters of jaxprs"),
    ("jax._src.xla_bridge", "_backends", _HERE + "backends", "chex"),
    ("jax._src.xla_bridge", "backends_are_initialized", _HERE + "backends_are_initialized",
     "flax's documentation"),
    ("jaxlib._jax", "ArrayImpl", "numjet.core.array:ArrayImpl", "pickles"),
    ("jaxlib._jax", "PjitFunction", "numjet.api.compiled.jit:JitFunction", "gpjax"),
    ("jaxlib._jax.pytree", "DictKey", _PICKLE + "DictKey", "pickles"),
    ("jaxlib._jax.pytree", "FlattenedIndexKey", _PICKLE + "FlattenedIndexKey", "pickles"),
    ("jaxlib._jax.pytree", "GetAttrKey", _PICKLE + "GetAttrKey", "pickles"),
    ("jaxlib._jax.pytree", "PyTreeDef", _PICKLE + "PyTreeDef", "pickles"),
    ("jaxlib._jax.pytree", "SequenceKey", _PICKLE + "SequenceKey", "pickles"),
    ("jaxlib.xla_client", "Device", "numjet:Device", "jax-dataclasses, jaxlie"),
)  # fmt: skip


@functools.cache
def _modules() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"jax._src": {}}
    for module, name, place, _ in TABLE:
        rows = found.setdefault(module, {})
        if name:
            rows[name] = place
    return found


def names(module: str) -> dict[str, str]:
    """The names of a private module, with their places."""
    return _modules().get(module, {})


@functools.cache
def children(module: str) -> frozenset[str]:
    """The private modules directly below `module`."""
    prefix = module + "."
    return frozenset(
        other[len(prefix) :].partition(".")[0] for other in _modules() if other.startswith(prefix)
    )


def known(module: str) -> bool:
    """Whether `module`, or a module below it, is in the table."""
    return module in _modules() or bool(children(module))
