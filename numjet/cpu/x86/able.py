"""Whether the direct generator may make code for a machine."""

from __future__ import annotations

import functools

from numjet.base import config
from numjet.cpu import host

# What the generator selects from: all of AVX-512 that Ice Lake and Zen 4 have, and BMI2.
_NEEDED = (
    "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512vbmi", "avx512vpopcntdq",
    "avx512bitalg", "bmi2", "fma", "f16c", "lzcnt", "popcnt",
)  # fmt: skip


def usable(triple: str, features: str, vector_bytes: int) -> bool:
    """Whether code for this target may come from here (LLVM's names), and the user wants it."""
    return config.direct_code.value and able(triple, features, vector_bytes)


@functools.cache
def able(triple: str, features: str, vector_bytes: int) -> bool:
    """Whether the target has all that the generator selects from."""
    if not host.LINUX or vector_bytes != 64 or not triple.startswith("x86_64"):
        return False
    return {"+" + name for name in _NEEDED} <= set(features.split(","))

