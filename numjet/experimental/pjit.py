"""numjet.experimental.pjit: `jit` by its older name for several devices, which warns."""

from collections.abc import Callable
from typing import Any

from numjet.api.compiled.jit import jit
from numjet.api.compiled.jit_layouts import EVERYWHERE
from numjet.api.placement.mesh import entering
from numjet.api.placement.placements import Sharding
from numjet.api.placement.reshard import with_sharding_constraint as with_sharding_constraint
from numjet.experimental.former import warn_importer as _warn_importer

_NOT_SPECIFIED = Sharding()


def _pjit(
    fun: Callable,
    in_shardings: Any = _NOT_SPECIFIED,
    out_shardings: Any = _NOT_SPECIFIED,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    **options: Any,
) -> Any:
    """`jit`, which runs over the mesh of `with mesh:`: results lie over it, and in_shardings and
    out_shardings may hold PartitionSpecs of it, and None for arrays that are whole on each device.

    fun, static_argnums, static_argnames, donate_argnums, donate_argnames, options: as of `jit`.
    in_shardings, out_shardings: pytree prefixes of shardings; left out, layouts follow. The import
    warns (DeprecationWarning): use `jit` and `set_mesh`. Raises RuntimeError for PartitionSpecs
    where there is no mesh, ValueError where a device is named within one.

    >>> import warnings, numjet as nj, numjet.numpy as jnp
    >>> with warnings.catch_warnings(action="ignore"), nj.make_mesh((1,), ("x",)):
    ...     from numjet.experimental.pjit import pjit
    ...     print(pjit(lambda x: 2 * x, in_shardings=nj.P("x"))(jnp.arange(2)))
    [0 2]
    """
    given = (in_shardings, out_shardings)
    ins, outs = [None if s is _NOT_SPECIFIED else s for s in given]
    made = jit(
        fun, in_shardings=ins, out_shardings=outs, static_argnums=static_argnums,
        static_argnames=static_argnames, donate_argnums=donate_argnums,
        donate_argnames=donate_argnames, **options,
    )  # fmt: skip
    core = made._core
    core.layouts = tuple(
        [EVERYWHERE if s is None else own for s, own in zip(given, core.layouts, strict=True)]
    )
    core.within_mesh = entering if core.device is None else _no_place_of_its_own
    return made


_pjit.__name__ = _pjit.__qualname__ = "pjit"


def __getattr__(name: str) -> Any:
    if name != "pjit":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn_importer("pjit has been deprecated. Please use numjet.jit instead.")
    return _pjit


def _no_place_of_its_own() -> None:
    """Raise ValueError within `with mesh:`."""
    if entering() is not None:
        raise ValueError(
            "Mesh context manager should not be used with jit when backend or device is also "
            "specified as an argument to jit."
        )
