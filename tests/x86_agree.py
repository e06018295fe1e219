"""Functions of one pointer compiled by both generators, which have to leave the same in memory.

`GENERATOR` marks modules whose tests compile by the direct generator: once for each kind of vector
registers that the processor has, by `generated`. What is of AVX-512 alone is marked `AVX512`.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from numjet.cpu.builder.builder import Module
from numjet.cpu.link import link
from numjet.cpu.x86 import generate
from numjet.cpu.x86.able import able

_TARGET = link.target()
# Code for AVX2 runs where there is AVX-512, too.
WIDTHS = [
    size for size in (64, 32)
    if size <= _TARGET.vector_bytes and able(_TARGET.triple, _TARGET.features, size)
]  # fmt: skip
GENERATOR = [
    pytest.mark.skipif(not WIDTHS, reason="not a processor for the direct generator"),
    pytest.mark.usefixtures("vector_bytes"),
]
AVX512 = pytest.mark.skipif(64 not in WIDTHS, reason="of AVX-512 alone")
chosen = WIDTHS[:1]  # what `generated` makes code for; the fixture `vector_bytes` sets it


def generated(source: str | Module) -> bytes | None:
    """The direct generator's object for the registers of this test."""
    return generate.generate(source, chosen[0])


def made_by(image: bytes, memory: np.ndarray) -> bytes:
    """What f(pointer) leaves in a copy of memory."""
    library, left = link.load([image]), memory.copy()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("f"))(left.ctypes.data)
    return left.tobytes()


def agree(body: str, memory: np.ndarray, declared: str = "") -> None:
    """Both generators make of a function of %p what leaves the same in memory."""
    text = f"{declared}\ndefine void @f(ptr %p) nounwind {{\nentry:\n{body}  ret void\n}}\n"
    image = generated(text)
    assert image is not None, generate.refused
    assert made_by(image, memory) == made_by(link._compile(text, verify=True), memory)
