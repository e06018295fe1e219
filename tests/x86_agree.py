"""Functions of one pointer compiled by both generators, which have to leave the same in memory."""

from __future__ import annotations

import ctypes

import numpy as np

from numjet.cpu.link import link
from numjet.cpu.x86 import generate


def made_by(image: bytes, memory: np.ndarray) -> bytes:
    """What f(pointer) leaves in a copy of memory."""
    library, left = link.load([image]), memory.copy()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("f"))(left.ctypes.data)
    return left.tobytes()


def agree(body: str, memory: np.ndarray, declared: str = "") -> None:
    """Both generators make of a function of %p what leaves the same in memory."""
    text = f"{declared}\ndefine void @f(ptr %p) nounwind {{\nentry:\n{body}  ret void\n}}\n"
    image = generate.generate(text)
    assert image is not None, generate.refused
    assert made_by(image, memory) == made_by(link._compile(text, verify=True), memory)
