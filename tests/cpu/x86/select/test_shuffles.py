"""Shuffles of registers and constants, halves and joined vectors, against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import GENERATOR, generated

from numjet.cpu.link import link

pytestmark = GENERATOR
KINDS = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64,
         "float": np.float32, "double": np.float64}  # fmt: skip
PLACE = 512  # bytes an operand or a result has


def places(rng: np.random.Generator, lanes: int, both: bool) -> list[int]:
    """Which lanes a shuffle takes: a piece, a pair joined, every second, one, any; some unsaid."""
    size = 2 * lanes if both else lanes
    count = int(rng.choice([n for n in (2, 4, 8, 16, 32, 64) if lanes // 4 <= n <= 2 * lanes]))
    kind = rng.integers(6)
    if kind == 0:
        start = int(rng.integers(max(size - count, 0) // count + 1)) * count
        found = [min(start + k, size - 1) for k in range(count)]
    elif kind == 1:
        found = [k % size for k in range(count)]
    elif kind == 2:
        found = [(int(rng.integers(2)) + 2 * k) % size for k in range(count)]
    elif kind == 3:
        found = [int(rng.integers(size))] * count
    elif kind == 4:
        found = [min(k, size - 2) for k in range(count)]
    else:
        found = [int(p) for p in rng.integers(size, size=count)]
    return [-1 if kind == 5 and rng.random() < 0.1 else p for p in found]


def operand(rng, kind: str, lanes: int, value: np.ndarray) -> tuple[str, np.ndarray]:
    """A constant's text and lanes."""
    if rng.random() < 0.5:
        value = np.full_like(value, value[0])
    element = lambda x: str(float(x)) if kind in ("float", "double") else str(int(x))
    if (value == value[0]).all() and rng.random() < 0.7:
        return f"splat ({kind} {element(value[0])})", value
    return "<" + ", ".join(f"{kind} {element(x)}" for x in value) + ">", value


@pytest.mark.parametrize("seed", range(60))
def test_shuffles_take_the_lanes_they_name(seed):
    rng = np.random.default_rng(seed)
    lines, memory, wanted = [], np.zeros(32 * PLACE, np.uint8), []
    for n in range(12):
        kind = str(rng.choice(list(KINDS)))
        dtype = np.dtype(KINDS[kind])
        lanes = int(rng.choice([x for x in (4, 8, 16, 32, 64) if x * dtype.itemsize <= 256]))
        two, texts, values = bool(rng.integers(2)), [], []
        for k in range(2):
            value = rng.integers(1, 99, lanes).astype(dtype)
            if rng.random() < 0.4:
                text, value = operand(rng, kind, lanes, value)
            else:
                at = (2 * n + k) * PLACE
                memory[at : at + value.nbytes] = value.view(np.uint8)
                lines.append(f"  %p{n}_{k} = getelementptr i8, ptr %in, i64 {at}")
                lines.append(f"  %x{n}_{k} = load <{lanes} x {kind}>, ptr %p{n}_{k}, align 1")
                text = f"%x{n}_{k}"
            texts.append(text)
            values.append(value)
        chosen = places(rng, lanes, two)
        mask = ", ".join("i32 poison" if p < 0 else f"i32 {p}" for p in chosen)
        second = texts[1] if two else "poison"
        lines.append(
            f"  %y{n} = shufflevector <{lanes} x {kind}> {texts[0]}, <{lanes} x {kind}> {second}, "
            f"<{len(chosen)} x i32> <{mask}>"
        )
        lines.append(f"  %q{n} = getelementptr i8, ptr %out, i64 {n * PLACE}")
        lines.append(f"  store <{len(chosen)} x {kind}> %y{n}, ptr %q{n}, align 1")
        wanted.append((np.concatenate(values)[chosen], np.array(chosen) >= 0))
    body = "\n".join(lines)
    text = f"define void @f(ptr %in, ptr %out, i64 %n) nounwind {{\n{body}\n  ret void\n}}\n"
    image = generated(text)
    if image is None:
        pytest.skip("a shuffle that is left to LLVM")
    out = np.zeros(12 * PLACE, np.uint8)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    library = link.load([image], ["f"])
    function(library.address("f"))(memory.ctypes.data, out.ctypes.data, 1)
    for n, (want, said) in enumerate(wanted):
        got = out[n * PLACE : n * PLACE + want.nbytes].view(want.dtype)
        np.testing.assert_array_equal(got[said], want[said], f"shuffle {n} of\n{text}")
