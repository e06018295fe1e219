"""Which processor this is, found without LLVM: what compiled code is kept under.

`identity()` for `link`: two machines with equal answers run the same code. It holds everything that
decides which instructions LLVM selects: maker, model and every feature bit that the processor
reports, and which registers the system saves. Asking LLVM means loading 100 MB first. What would
break it: a feature that is reported in a leaf not listed here. Source: Intel's and AMD's manuals
of the CPUID and XGETBV instructions.
"""

from __future__ import annotations

import ctypes
import functools
import os

from numjet.base.errors import InternalError
from numjet.cpu import loader, platform

# void ask(leaf, subleaf, u32 answer[4]): cpuid. push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi;
# cpuid; mov [r8], eax; mov [r8+4], ebx; mov [r8+8], ecx; mov [r8+12], edx; pop rbx; ret
_ASK = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
# u32 saved(): the registers that the system saves. xor ecx, ecx; xgetbv; ret
_SAVED = bytes.fromhex("31c9 0f01d0 c3")
_SAVES = 1 << 27  # bit of leaf 1's ecx: xgetbv may be used

# (leaf, subleaf, which of eax, ebx, ecx, edx are properties of the processor). Left out is what
# differs between cores (numbers of the core) or changes while the machine runs.
_LEAVES = (
    (0x0, 0, (1, 2, 3)),  # maker
    (0x1, 0, (0, 2, 3)),  # family, model, stepping; features
    (0x7, 0, (1, 2, 3)),
    (0x7, 1, (0, 1, 2, 3)),
    (0xD, 1, (0,)),
    (0x14, 0, (1,)),
    (0x19, 0, (1,)),
    (0x1E, 1, (0,)),
    (0x24, 0, (1,)),
    (0x29, 0, (1,)),
    (0x80000001, 0, (2, 3)),
    (0x80000008, 0, (1,)),
    (0x80000021, 0, (0,)),
)


@functools.cache
def identity() -> bytes | None:
    """What this processor is and can do; None where only LLVM can tell."""
    if not platform.maps_code() or os.uname().machine != "x86_64":
        return None
    start = -(-len(_ASK) // 16) * 16
    code = _ASK.ljust(start, b"\xcc") + _SAVED
    image = loader.Image(code, 0, (), (), {})
    try:
        base = loader.place(image, ())
    except InternalError:  # LLVM needs memory for code as well, and says so
        return None
    try:
        return _answers(base, base + start)
    finally:
        loader.remove(base, len(code))


def _answers(ask_at: int, saved_at: int) -> bytes:
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(ask_at)
    answer = (ctypes.c_uint32 * 4)()
    most = {}
    for group in (0, 0x80000000):
        ask(group, 0, answer)
        most[group] = answer[0]
    out = []
    for leaf, subleaf, registers in _LEAVES:
        if leaf > most[leaf & 0x80000000]:
            continue
        ask(leaf, subleaf, answer)
        out += [leaf, subleaf, *[answer[k] for k in registers]]
        if leaf == 1 and answer[2] & _SAVES:
            out.append(ctypes.CFUNCTYPE(ctypes.c_uint32)(saved_at)())
    return b"".join([number.to_bytes(4, "little") for number in out])
