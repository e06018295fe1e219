"""Primitives, jaxprs and traces for libraries: `jax.extend.core`'s names."""

from numjet.core.effects import Effect as Effect
from numjet.extend.primitive import Primitive as Primitive
