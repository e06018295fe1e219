"""Names that older programs take from JAX and JAX 0.10.2 no longer has, and what stands in place of
each: errors say it.

A row is a name and its successor: `module:name`, or a sentence where that is no one name. Loaded
when a name is not found. Called by finder.py alone.
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


def instead(module: str, name: str = "") -> str:
    """The end of a message: what to use in place of `module.name`, or of the module; "" where
    that is not known."""
    whole = f"{module}.{name}" if name else module
    parent, _, last = whole.rpartition(".")
    found = NAMES.get(parent, {}).get(last) or _MODULES.get(whole)
    return f". JAX has it no more: use {found}" if found else ""
