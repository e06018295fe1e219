"""Whether the direct generator may make code for a machine, and for which vectors."""

from __future__ import annotations

import functools

from numjet.cpu import host

# What the generator selects from, by the bytes of a vector: all of AVX-512 that Ice Lake and
# Zen 4 have, or AVX2 and what every processor with it has beside it.
_AVX2 = ("avx2", "bmi2", "fma", "f16c", "lzcnt", "popcnt")
_NEEDED = {
    64: (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512vbmi",
         "avx512vpopcntdq", "avx512bitalg"),
    32: _AVX2,
}  # fmt: skip


@functools.cache
def able(triple: str, features: str, vector_bytes: int) -> bool:
    """Whether the target has all that the generator selects from."""
    needed = _NEEDED.get(vector_bytes)
    if not host.LINUX or needed is None or not triple.startswith("x86_64"):
        return False
    return {"+" + name for name in needed} <= set(features.split(","))
