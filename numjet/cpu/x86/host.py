"""Whether the direct generator may make code for a machine."""

from __future__ import annotations

from numjet.base import config
from numjet.cpu import platform

# What the generator selects from: all of AVX-512 that Ice Lake and Zen 4 have, and BMI2.
_NEEDED = (
    "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512vbmi", "avx512vpopcntdq",
    "avx512bitalg", "bmi2", "fma", "f16c", "lzcnt", "popcnt",
)  # fmt: skip


def usable(triple: str, features: str, vector_bytes: int) -> bool:
    """Whether code for this target may come from here (LLVM's names), and the user wants it."""
    if not config.direct_code.value or platform.WINDOWS or vector_bytes != 64:
        return False
    return triple.startswith("x86_64") and _NEEDED_SET <= set(features.split(","))


_NEEDED_SET = frozenset("+" + name for name in _NEEDED)
