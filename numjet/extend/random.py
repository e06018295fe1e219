"""Generators of random numbers for libraries: seeds by implementation, and threefry itself.

One implementation exists, threefry2x32; `define_prng_impl` is refused.
"""

from __future__ import annotations

from typing import Any

from numjet.random import key as _key


class PRNGImpl:
    """An implementation, by name."""

    def __init__(self, name: str, tag: str, key_shape: tuple[int, ...]) -> None:
        self.name, self.tag, self.key_shape = name, tag, key_shape

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGImpl({self.name})"


threefry_prng_impl = PRNGImpl("threefry2x32", "fry", (2,))


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """The key that `seed` gives under an implementation."""
    return _key(seed, impl=impl.name)


def random_seed(seeds: Any, impl: PRNGImpl) -> Any:
    """The key that `seeds` gives under an implementation."""
    return _key(seeds, impl=impl.name)


def define_prng_impl(**_: Any) -> PRNGImpl:
    """Not there: keys are two words of threefry."""
    raise NotImplementedError(
        "define_prng_impl: keys of other generators have no storage here. Use threefry2x32."
    )
