"""numjet.experimental.pjit: `jit` by its older name for several devices."""

from numjet.api.jit import jit as pjit
from numjet.api.reshard import with_sharding_constraint as with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
