"""Run a command as if the processor had one of the levels of x86-64 and nothing above it.

    python tools/on_level.py x86-64-v3 python -m pytest tests/cpu

What compiled code may use is set by NUMJET_CPU; NumPy's own dispatch and the kernels of its and
SciPy's OpenBLAS follow, since what the references compute differs with them in the last bits.
Where the processor has nothing above the level, or not all of it, the command is left out: plain
tests say what there is to say.
"""

from __future__ import annotations

import os
import sys

import numpy
from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]

from numjet.cpu.link import link, processor

# By level: OpenBLAS's processor, and the features by which NumPy names what lies above the level
# (those of releases before and after 2.4).
_V3 = ("AVX", "F16C", "FMA3", "AVX2", "X86_V3", "XOP", "FMA4")
_V4 = ("AVX512F", "AVX512CD", "AVX512_SKX", "X86_V4")
_ABOVE = ("AVX512_KNL", "AVX512_KNM", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX512_SPR")
LEVELS = {
    "x86-64-v2": ("Nehalem", (*_V3, *_V4, *_ABOVE)),
    "x86-64-v3": ("Haswell", (*_V4, *_ABOVE)),
    "x86-64-v4": ("SkylakeX", _ABOVE),
}


def environment(level: str) -> dict[str, str]:
    """The variables that hide what lies above `level`."""
    kernels, hidden = LEVELS[level]
    known = [x for x in umath.__cpu_dispatch__ if x in hidden and umath.__cpu_features__.get(x)]
    return {
        "NUMJET_CPU": level,
        "OPENBLAS_CORETYPE": kernels,
        **({"NPY_DISABLE_CPU_FEATURES": " ".join(known)} if known else {}),
    }


def left_out(level: str) -> str | None:
    """Why nothing is run at this level here, or None."""
    native = dict.fromkeys(x[1:] for x in link.target().features.split(",") if x[:1] == "+")
    try:
        kept = processor.limited(dict.fromkeys(native, True), level)
    except ValueError as error:
        return str(error)
    # The vectors' width and multiply-adds are what the compiler decides by.
    telling = [x for x in ("avx512f", "avx512vbmi", "avx2", "fma") if x in native and not kept[x]]
    return None if telling else "it is this processor's own: native tests are tests of it"


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in LEVELS:
        sys.exit(f"usage: on_level.py {'|'.join(LEVELS)} COMMAND...")
    level, *command = sys.argv[1:]
    reason = left_out(level)
    if reason is not None:
        print(f"{level}: {reason}")
        return
    print(f"{level}, NumPy {numpy.__version__}:", *command, flush=True)
    os.execvpe(command[0], command, {**os.environ, **environment(level)})


if __name__ == "__main__":
    main()
