"""Which processor this is, found without LLVM: what compiled code is kept under.

`identity()` for `link`: two machines with equal answers run the same code. It holds everything that
decides which instructions LLVM selects: maker, model and every feature bit that the processor
reports, and which registers the system saves. Asking LLVM means loading 100 MB first. What would
break it: a feature that is reported in a leaf not listed here. Source: Intel's and AMD's manuals
of the CPUID and XGETBV instructions.

`limited` is what `config.cpu` leaves of a processor's features.
"""

from __future__ import annotations

import ctypes
import functools
import os

from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.link import loader

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

# What the levels of x86-64 are, each with those before it, in LLVM's names. Source: the System V
# ABI's supplement for AMD64, table of the micro-architecture levels.
_LEVELS = {
    "x86-64": "64bit cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "crc32 cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl evex512",
}
# What only some versions of LLVM tell: before 21 whether registers of 64 bytes may be used.
_UNTOLD = {"evex512"}


def limited(features: dict[str, bool], level: str) -> dict[str, bool]:
    """`features` (by LLVM's names, whether the processor has each) without those above `level`.

    Raises ValueError where the processor has not all of the level.
    """
    kept: set[str] = set()
    for name, added in _LEVELS.items():
        kept.update(added.split())
        if name == level:
            break
    missing = sorted(name for name in kept - _UNTOLD if not features.get(name))
    if missing:
        raise ValueError(
            f"config.cpu (NUMJET_CPU) is {level!r}, but this processor has no "
            f"{', '.join(missing)}. Ask for a lower level, or for 'native', which is all that the "
            "processor has."
        )
    return {name: on and name in kept for name, on in features.items()}


@functools.cache
def identity() -> bytes | None:
    """What this processor is and can do; None where only LLVM can tell."""
    if not host.maps_code() or os.uname().machine != "x86_64":
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


@functools.cache
def is_amd() -> bool:
    """Whether AMD made this processor; False where nothing tells."""
    known = identity()
    return known is not None and known[8:12] == b"Auth"  # AuthenticAMD begins in leaf 0's ebx


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
