"""numjet: NumPy that differentiates, vectorizes, compiles and parallelizes.

The front door: the transformations, and the namespaces `numjet.numpy`, `lax`, `random`, `nn`,
`tree`, `tree_util` and others, which load when they are first used.
"""

import importlib as _importlib

from numjet.base.undisturbed import undisturbed as _undisturbed

with _undisturbed:  # garbage collections were a seventh of importing
    import numjet.core.jaxpr_print  # noqa: F401 - installs how jaxprs print
    from numjet import core as core, numpy as numpy
    from numjet.api import asked as _asked  # noqa: F401 - installs it
    from numjet.api.compiled import sharded_evaluation as _sharded  # noqa: F401 - installs it
    from numjet.api.compiled.abstract import eval_shape as eval_shape, make_jaxpr as make_jaxpr
    from numjet.api.compiled.jit import (
        clear_caches as clear_caches,
        jit as jit,
    )
    from numjet.api.derivatives.autodiff import (
        checkpoint as checkpoint,
        grad as grad,
        jvp as jvp,
        linearize as linearize,
        remat as remat,
        value_and_grad as value_and_grad,
    )
    from numjet.api.derivatives.custom import (
        closure_convert as closure_convert,
        custom_gradient as custom_gradient,
        custom_jvp as custom_jvp,
        custom_vjp as custom_vjp,
    )
    from numjet.api.derivatives.jacobians import (
        hessian as hessian,
        jacfwd as jacfwd,
        jacobian as jacobian,
        jacrev as jacrev,
    )
    from numjet.api.derivatives.pullbacks import linear_transpose as linear_transpose, vjp as vjp
    from numjet.api.maps.mapping import pmap as pmap, vmap as vmap
    from numjet.api.placement.devices import (
        Device as Device,
        default_backend as default_backend,
        device_count as device_count,
        device_put as device_put,
        devices as devices,
        local_device_count as local_device_count,
        local_devices as local_devices,
        process_count as process_count,
        process_index as process_index,
    )
    from numjet.api.placement.host import (
        block_until_ready as block_until_ready,
        copy_to_host_async as copy_to_host_async,
        device_get as device_get,
    )
    from numjet.api.placement.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
    from numjet.base.config import (
        check_tracer_leaks as check_tracer_leaks,
        config as config,
        debug_infs as debug_infs,
        debug_nans as debug_nans,
        default_matmul_precision as default_matmul_precision,
        enable_x64 as enable_x64,
        log_compiles as log_compiles,
        numpy_dtype_promotion as numpy_dtype_promotion,
        numpy_rank_promotion as numpy_rank_promotion,
    )
    from numjet.core import hooks as _hooks
    from numjet.core.array import Array as Array
    from numjet.core.trace import compile_time as _compile_time, set_trace as _set_trace
    from numjet.transforms.remat import checkpoint_policies as checkpoint_policies
    from numjet.transforms.varying import manual_type as _manual_type
    from numjet.version import __version__ as __version__, __version_info__ as __version_info__
_undisturbed.lasting()

_NAMESPACES = frozenset(
    {
        "ad_checkpoint",
        "api_util",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "distributed",
        "dlpack",
        "dtypes",
        "errors",
        "experimental",
        "export",
        "ffi",
        "lib",
        "extend",
        "flatten_util",
        "image",
        "interpreters",
        "lax",
        "monitoring",
        "nn",
        "ops",
        "example_libraries",
        "profiler",
        "random",
        "ref",
        "scipy",
        "checkpoints",
        "sharding",
        "stages",
        "test_util",
        "tree",
        "tree_util",
        "typing",
        "version",
    }
)


# Names of the front door that few programs use: found in their module when first asked for.
_LAZY = {
    "Ref": "ref",
    "ad": "api.derivatives.gradient_places",
    "ds": "numpy.dynamic_slices",
    "empty_ref": "ref",
    "smap": "api.maps.smap",
    "free_ref": "ref",
    "freeze": "ref",
    "new_ref": "ref",
    "AbstractMesh": "api.placement.mesh",
    "Shard": "api.placement.shards",
    "disable_jit": "api.contexts",
    "float0": "core.dtypes",
    "fwd_and_bwd": "api.derivatives.forward_backward",
    "memory": "api.placement.sharding",
    "reshard": "api.placement.reshard",
    **dict.fromkeys(
        ("host_count", "host_id", "host_ids", "live_arrays", "print_environment_info",
         "process_indices"),
        "process",
    ),
    **dict.fromkeys(
        ("device_put_replicated", "device_put_sharded", "make_array_from_callback",
         "make_array_from_process_local_data", "make_array_from_single_device_arrays"),
        "api.placement.assemble",
    ),
    **dict.fromkeys(
        ("allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "checking_leaks",
         "debug_key_reuse", "default_device", "default_prng_impl", "enable_checks",
         "enable_custom_prng", "explain_cache_misses", "jax2tf_associative_scan_reductions",
         "legacy_prng_key", "make_user_context", "no_execution", "no_tracing",
         "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard",
         "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
         "transfer_guard_device_to_host", "transfer_guard_host_to_device"),
        "api.contexts",
    ),
    "NamedSharding": "api.placement.sharding",
    "P": "sharding",
    "effects_barrier": "api.callbacks",
    "make_mesh": "api.placement.mesh",
    "named_call": "api.names",
    "named_scope": "api.names",
    "pure_callback": "api.callbacks",
    "set_mesh": "api.placement.mesh",
    "shard_map": "api.maps.shard_map",
}


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return _importlib.import_module(f"numjet.{name}")
    if name in _LAZY:
        found = getattr(_importlib.import_module(f"numjet.{_LAZY[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'numjet' has no attribute {name!r}")


def _aval_sharding(ndim: int, placed: object) -> object:
    return _importlib.import_module("numjet.api.placement.sharding").of_aval(ndim, placed)


def _placed_results(*args: object) -> object:
    return _importlib.import_module("numjet.partition.explicit").placed_results(*args)


_hooks.aval_sharding, _hooks.placed_results = _aval_sharding, _placed_results


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMESPACES, *_LAZY})


def ensure_compile_time_eval() -> _set_trace:
    """A context in which operations on concrete values run at once, also while a function is
    traced.

    Operations on traced values go to their trace as ever. For tables that a traced function
    computes from constants and that Python needs (`if`, shapes).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> @nj.jit
    ... def f(x):
    ...     with nj.ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.arange(3)))
    ...     return x * n
    >>> print(f(2.0))
    6.0
    """
    return _compile_time()


def typeof(x: object) -> object:
    """The abstract value (shape, dtype, weak type) of an array, tracer, number or reference.

    x: anything that operations take. Inside of `shard_map` that tests it (check_vma), the result's
    `manual_axis_type.varying` names the axes along which the value differs, and the text shows
    them: `float32[2]{V:x}`. Raises TypeError for other objects.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.typeof(jnp.ones((2, 3))), nj.typeof(1))
    float32[2,3] ~int32[]
    """
    declared = core.hi.TYPES.get(type(x))
    if declared is not None:
        return declared(x)
    aval = getattr(x, "aval", None) or getattr(x, "_aval", None)
    aval = core.trace.aval_of(x) if aval is None else aval
    if core.shared.Shared.axes.get() and isinstance(aval, core.avals.ShapedArray):
        return aval.update_manual_axis_type(_manual_type(x))
    return aval
