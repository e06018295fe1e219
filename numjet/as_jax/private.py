"""JAX's private names that published libraries import all the same: the one table of them.

Each row: the private module, the name in it, the place of ours, and the libraries that need it.
What is not here raises AttributeError (a module: ModuleNotFoundError) with a sentence. Read by
finder.py.

A new row needs a published library that stops without it; tests/as_jax/test_private.py resolves
every row.
"""

from __future__ import annotations

import functools

ROOTS = ("jax._src", "jaxlib.")

# module, name, where it is with us, libraries
TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("jax._src.core", "ShapedArray", "numjet.core.avals:ShapedArray", "flax, quax"),
    ("jax._src.core", "Tracer", "numjet.core.trace:Tracer", "quax"),
)


@functools.cache
def _modules() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"jax._src": {}}
    for module, name, place, _ in TABLE:
        found.setdefault(module, {})[name] = place
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
