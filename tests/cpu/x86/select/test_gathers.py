"""Gathers of all lanes or the first, of every type of elements and indices, against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import GENERATOR, generated

from numjet.cpu.link import link

pytestmark = GENERATOR
KINDS = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64,
         "float": np.float32, "double": np.float64}  # fmt: skip
MANGLED = {"float": "f32", "double": "f64"}
TABLE = 1000


def gathers(kind: str, lanes: int, index: str, constant: bool, count: int, on: int):
    """A function that stores `count` gathers, all of them made before the first is stored, and
    where they read, from the table's middle on: lanes that are off far outside."""
    rng = np.random.default_rng([lanes, count, constant])
    type, size = f"<{lanes} x {kind}>", np.dtype(KINDS[kind]).itemsize
    places = rng.integers(-TABLE // 2, TABLE // 2, (count, lanes))
    places[:, on:] = 1 << 28
    mask = ", ".join([f"i1 {'true' if k < on else 'false'}" for k in range(lanes)])
    lines, name = [], f"llvm.masked.gather.v{lanes}{MANGLED.get(kind, kind)}.v{lanes}p0"
    for n, row in enumerate(places):
        at = "<" + ", ".join([f"{index} {k}" for k in row]) + ">"
        if not constant:
            width = int(index[1:]) // 8 * lanes
            lines += [f"%f{n} = getelementptr i8, ptr %from, i64 {n * width}",
                      f"%i{n} = load <{lanes} x {index}>, ptr %f{n}, align 1"]  # fmt: skip
            at = f"%i{n}"
        lines += [
            f"%p{n} = getelementptr {kind}, ptr %table, <{lanes} x {index}> {at}",
            f"%g{n} = call {type} @{name}(<{lanes} x ptr> %p{n}, i32 1, "
            f"<{lanes} x i1> <{mask}>, {type} zeroinitializer)",
        ]
    for n in range(count):
        lines += [f"%t{n} = getelementptr i8, ptr %to, i64 {n * lanes * size}",
                  f"store {type} %g{n}, ptr %t{n}, align 1"]  # fmt: skip
    body = "\n  ".join(lines)
    text = (
        f"declare {type} @{name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {type})\n"
        f"define void @f(ptr %table, ptr %from, ptr %to) nounwind {{\nentry:\n  {body}\n"
        "  ret void\n}\n"
    )
    return text, places


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("lanes", "count", "on"),
    [(2, 1, 2), (4, 3, 4), (8, 2, 8), (16, 2, 16), (32, 1, 32), (8, 40, 8), (16, 1, 10), (8, 2, 3),
     (16, 2, 1)],
)  # fmt: skip
def test_gathers_read_the_elements_that_they_name(kind, index, constant, lanes, count, on):
    if np.dtype(KINDS[kind]).itemsize * lanes < 4:
        pytest.skip("no vector has as few bytes")
    text, places = gathers(kind, lanes, index, constant, count, on)
    image = generated(text)
    assert image is not None, "left to LLVM"
    library = link.load([image], ["f"])
    dtype = np.dtype(KINDS[kind])
    table = np.random.default_rng(0).integers(0, 256, TABLE * dtype.itemsize, np.uint8).view(dtype)
    given = np.ascontiguousarray(places, f"int{index[1:]}")
    out = np.zeros(places.shape, dtype)
    middle = table.ctypes.data + TABLE // 2 * dtype.itemsize
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.address("f"))
    function(middle, given.ctypes.data, out.ctypes.data)
    wanted = np.zeros_like(out)
    wanted[:, :on] = table[places[:, :on] + TABLE // 2]
    np.testing.assert_array_equal(out.view(np.uint8), wanted.view(np.uint8))
