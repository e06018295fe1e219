"""What modules of JAX show because they import it: other modules, and small functions.

Programs read some of it there (`jax.experimental.jet.lax`). Each row: the module, the name in it,
and its place under JAX's names, in this file or in stand_ins.py. Read by namespaces.py, and by
tools/coverage.py.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from numjet import eval_shape, numpy as jnp
from numjet.base.config import trace_key
from numjet.flatten_util import ravel_pytree
from numjet.numpy.promote import as_arrays, check_ranks, promote_dtypes, promote_inexact

_HERE = "numjet.as_jax.beside:"
_STAND_INS = "numjet.as_jax.stand_ins:"
_MODULES = {
    "ad": "jax.interpreters.ad", "ad_util": "jax.interpreters.ad", "api_util": "jax.api_util",
    "batching": "jax.interpreters.batching", "core": "jax.core",
    "custom_derivatives": "jax.custom_derivatives", "distributed": "jax.distributed",
    "dtypes": "jax.dtypes", "jax": "jax", "jnp": "jax.numpy", "lax": "jax.lax",
    "lax_internal": "jax.lax", "lu": "jax.extend.linear_util", "mlir": "jax.interpreters.mlir",
    "pe": "jax.interpreters.partial_eval", "pjit": "jax.experimental.pjit",
    "pjit_lib": "jax.experimental.pjit", "prng": "jax.extend.random",
    "sharding_impls": "jax.sharding", "xla_bridge": "jax.extend.backend",
}  # fmt: skip
_TREES = ("register_pytree_node", "tree_flatten", "tree_leaves", "tree_map", "tree_structure",
          "tree_unflatten", "treedef_is_leaf")  # fmt: skip
_FUNCTIONS = {
    **{name: f"jax.tree_util:{name}" for name in _TREES},
    **{name: "jax.api_util:safe_map" for name in ("map", "safe_map")},
    **{name: _STAND_INS + "safe_zip" for name in ("safe_zip", "zip")},
    "unzip2": _STAND_INS + "unzip2",
    **{name: _HERE + name for name in (
        "call_param_updaters", "promote_dtypes_inexact", "ravel_first_arg", "weakref_lru_cache")},
}  # fmt: skip
_SHOWN = {
    "jax.experimental.jet": (
        "ad_util api_util call_param_updaters core jnp lax lax_internal lu pe pjit "
        "register_pytree_node safe_zip sharding_impls tree_flatten tree_structure tree_unflatten "
        "treedef_is_leaf unzip2 weakref_lru_cache"
    ),
    "jax.experimental.multihost_utils": (
        "ad batching core distributed dtypes jax jnp mlir pjit_lib prng safe_zip sharding_impls "
        "tree_flatten tree_unflatten xla_bridge"
    ),
    "jax.experimental.ode": (
        "api_util core custom_derivatives jax jnp lax lu map promote_dtypes_inexact "
        "ravel_first_arg safe_map safe_zip tree_leaves tree_map zip"
    ),
}
TABLE: dict[str, dict[str, str]] = {
    module: {name: _MODULES.get(name) or _FUNCTIONS[name] for name in names.split()}
    for module, names in _SHOWN.items()
}
# Where JAX has a format's functions in one file, and we in several.
_SPARSE = "numjet.experimental.sparse:"
_FORMATS = {
    "bcoo": "broadcast_in_dim concatenate dot_general dot_general_p dot_general_sampled "
    "dot_general_sampled_p dynamic_slice extract extract_p fromdense_p gather multiply_dense "
    "multiply_sparse reduce_sum reshape rev slice sort_indices sort_indices_p spdot_general_p "
    "squeeze sum_duplicates sum_duplicates_p todense_p transpose transpose_p update_layout",
    "bcsr": "dot_general_p extract_p fromdense_p todense_p",
}
for _kind, _names in _FORMATS.items():
    TABLE[f"jax.experimental.sparse.{_kind}"] = {
        f"{_kind}_{name}": f"{_SPARSE}{_kind}_{name}" for name in _names.split()
    }
# Which laplax takes for a search of its own.
TABLE["jax.experimental.sparse.linalg"] = {
    "_check_inputs": _HERE + "check_search", "_eigh_ascending": _HERE + "eigh_from_largest",
    "_mm": "jax.lax:dot",
}  # fmt: skip

# Params of primitives that call functions follow from the functions themselves.
call_param_updaters: MappingProxyType = MappingProxyType({})


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """Arrays of the dtype that `args` promote to, floats at least.

    >>> print(promote_dtypes_inexact(1, jnp.zeros(1, jnp.float16))[0].dtype)
    float16
    """
    return promote_inexact(*as_arrays("promote_dtypes_inexact", *args))


def promote_args_inexact(fun_name: str, *args: Any) -> list[Any]:
    """Arrays of the dtype that `args` promote to, floats at least, and of one number of axes where
    those with axes differ in it: axes of length 1 come in front.

    fun_name: whose arguments they are, for messages. Raises TypeError for what is no array, and
    ValueError for several numbers of axes under `numpy_rank_promotion="raise"`.

    >>> [x.shape for x in promote_args_inexact("f", jnp.zeros(3), jnp.zeros((2, 3)))]
    [(1, 3), (2, 3)]
    """
    found = promote_inexact(*as_arrays(fun_name, *args))
    check_ranks(fun_name, [x.shape for x in found])
    ranks = {x.ndim for x in found if x.ndim}
    if len(ranks) < 2:
        return found
    return [jnp.expand_dims(x, tuple(range(max(ranks) - x.ndim))) for x in found]


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """Arrays of the dtype that `args` promote to, complex.

    >>> print(promote_dtypes_complex(1, jnp.zeros(1, jnp.float16))[0].dtype)
    complex64
    """
    return promote_dtypes(*as_arrays("promote_dtypes_complex", *args, 0j))[:-1]


def check_search(a: Any, x: Any) -> None:
    """Raise ValueError unless the directions `x`, an (n, k) array, can begin a search for k
    eigenvectors of `a`, a function of such arrays: k is positive and below n / 5, dtypes agree.

    >>> check_search(lambda v: 2 * v, jnp.ones((11, 2)))
    """
    n, k = x.shape
    made = eval_shape(a, x)
    if not 0 < 5 * k < n or made.shape != x.shape or made.dtype != x.dtype:
        raise ValueError(
            f"check_search: expected search dim > 0, search dim * 5 < matrix dim, and a function "
            f"that keeps shapes and dtypes, got {k} directions of {n} and one that makes "
            f"{made.dtype}{list(made.shape)} of {x.dtype}{list(x.shape)}."
        )


def eigh_from_largest(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a symmetric matrix, the largest first.

    >>> print(eigh_from_largest(jnp.diag(jnp.array([1.0, 3.0])))[0])
    [3. 1.]
    """
    values, vectors = jnp.linalg.eigh(a)
    return values[::-1], vectors[:, ::-1]


def ravel_first_arg(f: Callable, unravel: Callable, debug_info: Any) -> Callable:
    """`f` with its first argument, and its result, as one vector.

    f: a function; unravel: makes its first argument of a vector; debug_info: for messages, of
    which there are none here.

    >>> g = ravel_first_arg(lambda y, t: (y[0] * t,), lambda v: (v,), None)
    >>> print(g(jnp.ones(2), 3.0))
    [3. 3.]
    """
    del debug_info
    return lambda y_flat, *args: ravel_pytree(f(unravel(y_flat), *args))[0]


def weakref_lru_cache(
    f: Callable | None = None, *, maxsize: int | None = 2048, trace_context_in_key: bool = True,
    explain: Callable | None = None,
) -> Callable:  # fmt: skip
    """A function that remembers its results by its first argument, which it does not keep alive,
    and the others, which have a hash.

    f: the function. maxsize: how many are remembered for one first argument.
    trace_context_in_key: whether the flags that change tracing count. explain: None alone. Usable
    as a decorator.

    >>> square = weakref_lru_cache(lambda s: len(s) ** 2)
    >>> square(frozenset({1, 2}))
    4
    """
    if explain is not None:
        raise NotImplementedError("weakref_lru_cache: explain must be None.")
    if f is None:
        return functools.partial(weakref_lru_cache, maxsize=maxsize,
                                 trace_context_in_key=trace_context_in_key)  # fmt: skip
    caches: Any = weakref.WeakKeyDictionary()

    @functools.wraps(f)
    def call(first: Any, *rest: Any, **keywords: Any) -> Any:
        own = caches.get(first)
        if own is None:
            target = weakref.ref(first)

            @functools.lru_cache(maxsize)
            def own(_: Any, *rest: Any, **keywords: Any) -> Any:
                return f(target(), *rest, **keywords)

            caches[first] = own
        return own(trace_key() if trace_context_in_key else None, *rest, **keywords)

    call.cache_clear = caches.clear  # type: ignore[attr-defined]
    return call
