"""What functions that are written as machine code at once have in common.

Registers and conditions by name, and how such a function begins and ends: it keeps the caller's
registers and some bytes of its own on the stack. For: `tiles`, `product`, `segments`, `pack` and
`glue`.
"""

from __future__ import annotations

from numjet.cpu.x86.back import encode
from numjet.cpu.x86.back.encode import GPR, Code
from numjet.cpu.x86.back.opcodes import CONDITIONS

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
R8, R9, R10, R11, R12, R13, R14, R15 = range(8, 16)
SAVED = (RBX, RBP, R12, R13, R14, R15)
LESS, EQUAL, NOT_ZERO = CONDITIONS["l"], CONDITIONS["e"], CONDITIONS["ne"]
GREATER, LESS_OR_EQUAL = CONDITIONS["g"], CONDITIONS["le"]


def enter(code: Code, local: int) -> None:
    """Keep the caller's registers, and so many bytes for the function."""
    for register in SAVED:
        encode.push(code, register)
    if local:
        encode.gr(code, GPR["subi"], 0, RSP, 8, local)


def leave(code: Code, local: int) -> None:
    """What `enter` has begun ends."""
    encode.gr(code, GPR["addi"], 0, RSP, 8, local)
    for register in reversed(SAVED):
        encode.pop(code, register)
    code.buffer += encode.VZEROUPPER
    code.buffer += encode.RET
