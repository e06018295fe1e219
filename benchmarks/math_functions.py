"""Speed of the elementary functions.

    python benchmarks/math_functions.py [names] [--avx2 | --sse] [--asm]

One thread, arguments in L1, best of many; also the IR's lines and the time to compile it. The
errors are sampled by tests/cpu/math/test_math.py. Last figures, ns an element on Zen 4, AVX-512,
float32 / float64, and the largest error among twelve million arguments in ulp:

    exp       0.19 / 0.56   1.00    sin      0.30 / 0.81   1.47    sinh     0.36 / 1.05   1.61
    exp2      0.16 / 0.48   0.84    cos      0.30 / 0.82   1.49    cosh     0.25 / 0.72   1.43
    expm1     0.28 / 0.77   1.57    tan      0.48 / 1.35   1.19    tanh     0.37 / 1.02   1.46
    logistic  0.36 / 0.97   1.48    asin     0.28 / 0.81   1.22    asinh    0.94 / 2.47   1.7
    log       0.29 / 0.77   0.88    acos     0.32 / 0.90   1.20    acosh    0.83 / 2.06   1.96
    log2      0.31 / 0.81   1.01    atan     0.33 / 0.95   1.39    atanh    0.66 / 1.66   1.8
    log10     0.34 / 0.88   1.03    atan2    0.57 / 1.44   1.55    erf      0.52 / 1.97   1.0
    log1p     0.48 / 1.22   1.01    pow      1.19 / 2.97   0.96    erfc     0.66 / 2.23   5
    sqrt      0.19 / 0.56   0.50    cbrt     0.52 / 1.10   0.78    erf_inv  0.97 / 2.30   2.7
    rsqrt     0.29 / 0.86   1.50    fmod     0.20 / 0.43   0       lgamma   4.5 / 4.1
"""

from __future__ import annotations

import ctypes
import re
import sys
import time

import llvmlite.binding as llvm
import numpy as np

from numjet.cpu import math as vector_math
from numjet.cpu.builder.builder import Builder, Module, vector
from numjet.cpu.runtime import programs

TYPES = {"f": "float", "d": "double", "i": "i32", "l": "i64", "?": "i1"}
_KEEP = []


def without(*prefixes: str) -> str:
    """The host's features less those that begin with one of `prefixes`."""
    features = llvm.get_host_cpu_features()
    return ",".join(
        ("-" if name.startswith(prefixes) else "+" if on else "-") + name
        for name, on in sorted(features.items())
    )


TARGETS = {
    "avx512": (64, ()),
    "avx2": (32, ("avx512", "evex512")),
    "sse": (16, ("avx", "vaes", "vpcl", "fma4", "xop", "evex512", "f16c")),
}


def build(name: str, dtype, lanes: int | None = None, target: str = "avx512", arity: int = 1):
    """A function(n, inputs..., output) that applies `name` to whole vectors of an array."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    width, off = TARGETS[target]
    element = TYPES[np.dtype(dtype).char]
    if lanes is None:
        lanes = width // np.dtype(dtype).itemsize
    on = {k for k, v in llvm.get_host_cpu_features().items() if v and not k.startswith(off or "?")}
    module = Module(features=frozenset(on))
    names = [f"a{k}" for k in range(arity)]
    pointers = [(a, "ptr noalias") for a in [*names, "out"]]
    b = Builder(module, "f", [("times", "i64"), ("n", "i64"), *pointers])
    times, n, *pointers = b.args
    with b.loop(0, times), b.loop(0, n, max(lanes, 1)) as loop:
        at = [b.gep(p, loop.index, element) for p in pointers]
        values = [b.load(p, vector(element, lanes)) for p in at[:-1]]
        b.store(vector_math.emit(b, name, *values), at[-1])
    b.ret()
    start = time.perf_counter()
    parsed = llvm.parse_assembly(module.text())
    parsed.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=without(*off) if off else "", opt=1
    )
    assembly = machine.emit_assembly(parsed) if "--asm" in sys.argv else ""
    if assembly:
        print(assembly)
    for symbol in set(re.findall(r"nj_lanes_\w+", module.text())):
        llvm.add_symbol(symbol, programs.address(symbol))
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    took = time.perf_counter() - start
    _KEEP.append(engine)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (arity + 3))(
        engine.get_function_address("f")
    )

    def run(*arrays):
        out = np.empty_like(arrays[0])
        call(1, len(out), *[a.ctypes.data for a in arrays], out.ctypes.data)
        return out

    run.raw, run.compile_ms, run.lines = call, took * 1e3, len(b.lines)
    return run


RANGES = {
    "exp": (-10, 10), "exp2": (-10, 10), "expm1": (-5, 5), "logistic": (-8, 8), "log": (1e-3, 100),
    "log2": (1e-3, 100), "log10": (1e-3, 100), "log1p": (-0.9, 10), "asin": (-1, 1),
    "acos": (-1, 1), "erf_inv": (-0.99, 0.99), "acosh": (1, 10), "atanh": (-1, 1),
    "sqrt": (0, 9), "rsqrt": (0.1, 9), "pow": (0.1, 5), "lgamma": (0.1, 12),
}  # fmt: skip


def nanoseconds(run, dtype, low: float, high: float, arity: int = 1, n: int = 2048) -> float:
    """Best time an element."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(low, high, n).astype(dtype) for _ in range(arity)]
    out = np.empty_like(arrays[0])
    args = [20, n, *[a.ctypes.data for a in arrays], out.ctypes.data]
    best = 1e9
    for _ in range(100):
        start = time.perf_counter()
        run.raw(*args)
        best = min(best, time.perf_counter() - start)
    return best / (20 * n) * 1e9


def main() -> None:
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    target = next((t for t in TARGETS if f"--{t}" in sys.argv), "avx512")
    for name in names or [n for n, f in vector_math.FUNCTIONS.items() if f.ulps is not None]:
        arity = 2 if name in ("pow", "atan2", "fmod") else 1
        parts = [f"{name:9}"]
        for dtype in (np.float32, np.float64):
            run = build(name, dtype, target=target, arity=arity)
            low, high = RANGES.get(name, (-4, 4))
            ns = nanoseconds(run, dtype, low, high, arity)
            parts.append(f"{ns:6.2f} ns {run.lines:4} lines {run.compile_ms:5.1f} ms")
        print(" | ".join(parts), flush=True)


if __name__ == "__main__":
    main()
