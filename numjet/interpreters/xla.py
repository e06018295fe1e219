"""Names of `jax.interpreters.xla` that programs ask for: `apply_primitive`, and the tables that
say how Python's types become arrays."""

from __future__ import annotations

from numjet.cpu.program.executable import Executable as Backend
from numjet.extend.primitive import apply_primitive as apply_primitive
from numjet.extend.types import canonicalize_dtype_handlers, pytype_aval_mappings

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]


def __dir__() -> list[str]:
    return [*__all__]
