"""numjet under JAX's name: `import numjet.as_jax` before anything else, and `import jax` is numjet.

    import numjet.as_jax      # the one line
    import flax, optax        # everything that asks for jax or jaxlib gets numjet

Also `python -m numjet.as_jax script.py` (or `-m module`, `-c code`; `-m pytest …` too), which
needs no line at all, and `python -m numjet.as_jax install`, which puts a small `jax` and `jaxlib`
into the active environment.

Importing this package puts a finder before all others (finder.py) and reads JAX's environment
variables, again where `jax` is imported (environment.py). It refuses, with RuntimeError, when the
real JAX has been imported before. What would break it: modules of ours under JAX's names
(namespaces.py) that move, private names of libraries that are not in the table (private.py).
"""

from numjet.as_jax import environment, finder
from numjet.as_jax.finder import JAX_VERSION as JAX_VERSION

finder.activate()
environment.read()

__all__ = ["JAX_VERSION"]
