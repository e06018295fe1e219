"""`config.check_bounds`: compiled code that leaves its arrays ends the process, or is told of."""

from __future__ import annotations

import numpy as np
import pytest
import python_process

from numjet.base.errors import InternalError
from numjet.cpu.program import fences

PROGRAMS = """
import numpy as np
import numjet as nj, numjet.numpy as jnp

def program(x, y):
    a = jnp.sin(x) * 2 + y
    b = jnp.cumsum(a, 0)
    c = jnp.sum(b, axis=1)
    d = x.at[1].set(c[: x.shape[1]].astype(x.dtype)) @ a.T
    return a, b, jnp.sort(d, axis=0), x[jnp.argsort(c)], jnp.zeros((0, 3)), nj.lax.fori_loop(
        0, 3, lambda i, s: s * 0.5 + a, b)

rng = np.random.default_rng(0)
for dtype in ("float32", "int8"):
    x, y = (jnp.asarray(rng.integers(-9, 9, (17, 9)), dtype) for _ in range(2))
    with nj.disable_jit():
        want = program(x, y)
    for _ in range(3):
        for g, w in zip(nj.jit(program)(x, y), want):
            np.testing.assert_allclose(np.float64(g), np.float64(w), rtol=1e-4, atol=1e-3)
given = jnp.arange(4.0)
found = nj.jit(lambda x: jnp.cumsum(x) + 1, donate_argnums=0)(given)
assert np.asarray(found).tolist() == [1, 2, 4, 7]
assert given.is_deleted()
print("agree")
"""
# Rows of which operands are read in steps, backwards or in part, by few lanes and by many.
ROWS = """
import numpy as np
import numjet as nj, numjet.numpy as jnp

CALLS = [
    lambda x: x[:, ::2] + x[:, 1::2][:, :1], lambda x: x[:, ::-1], lambda x: jnp.repeat(x, 2, 1),
    lambda x: x[:, 1:] - x[:, :-1], lambda x: x[:, :, None] * x[:, None, :], lambda x: x[:, ::4],
]
for dtype in ("float32", "uint8", "complex64"):
    for rows, width in ((1031, 3), (512, 5), (333, 9), (1031, 12)):
        x = jnp.asarray(np.arange(rows * width).reshape(rows, width) % 50, dtype)
        for f in CALLS:
            with nj.disable_jit():
                want = f(x)
            np.testing.assert_array_equal(nj.jit(f)(x), want)
print("agree")
"""
# Stores through a pointer that is `offset` bytes past an argument of 5 floats.
LEAVES = """
import sys, ctypes
import numpy as np
from numjet.cpu.program import fences

at_end, offset, store = sys.argv[1] == "end", int(sys.argv[2]), sys.argv[3] == "store"
fence = fences.Fence((5,), np.dtype("f4"), at_end)
place = ctypes.c_float.from_address(fence.array.ctypes.data + offset)
if store:
    place.value = 1.0
else:
    place.value
print("lives")
"""


@pytest.mark.parametrize("direct", ["0", "1"])
def test_programs_run_inside_fences(direct: str) -> None:
    for programs in (PROGRAMS, ROWS):
        done = python_process.run(
            "-c", programs, NUMJET_CHECK_BOUNDS="1", NUMJET_DIRECT_CODE=direct
        )
        assert done.stdout == "agree\n", done.stderr[-3000:]


@pytest.mark.parametrize("case", ["end 20 load", "end 20 store", "begin -4 load", "begin -4 store"])
def test_a_fence_ends_the_process(case: str) -> None:
    done = python_process.run("-c", LEAVES, *case.split())
    assert done.returncode < 0 and "lives" not in done.stdout


@pytest.mark.parametrize("at_end, place", [(True, -1), (False, 5)])
def test_what_is_written_beside_an_array_is_noticed(at_end: bool, place: int) -> None:
    fence = fences.Fence((5,), np.dtype("f4"), at_end)
    fence.array[...] = 1
    fence.check("argument 0")
    address = fence.array.ctypes.data + 4 * place
    np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 1).from_address(address))[0] = 2
    with pytest.raises(InternalError, match="outside of argument 0"):
        fence.check("argument 0")


def test_what_is_written_between_temporaries_is_noticed() -> None:
    sizes = [100, 5000, 64]
    offsets, guards, end = fences.place(sizes)
    assert all(offset % fences.ALIGNMENT == 0 for offset in offsets)
    arena = fences.Arena(end, guards, list(zip(offsets, sizes, strict=True)))
    for offset, size in zip(offsets, sizes, strict=True):
        arena._memory[offset : offset + size] = 1
    arena.check()
    arena._memory[offsets[1] - 1] = 1
    with pytest.raises(InternalError, match="outside of a temporary"):
        arena.check()


def test_a_constant_cannot_be_written() -> None:
    text = """
import numpy as np
from numjet.cpu.program import fences
x = fences.constant(np.arange(4.0))
assert (x == np.arange(4.0)).all()
import ctypes
ctypes.c_double.from_address(x.ctypes.data).value = 3.0
print("lives")
"""
    done = python_process.run("-c", text)
    assert done.returncode < 0 and "lives" not in done.stdout
