"""Arrays of more than 2**31 elements, whose positions 32 bits do not hold; for `make slow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu import host

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(host.memory_bytes() < 14 << 30, reason="needs 14 GB of memory"),
]
SIZE = 2**31 + 100
FAR = 2**31 + 50
PLACES = np.array([0, 5, 2**31 - 1, 2**31, FAR, SIZE - 1, -2, -30])


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    x = np.zeros(SIZE, np.int8)
    x[PLACES] = np.arange(1, len(PLACES) + 1)
    return x


@pytest.fixture
def x(values: np.ndarray) -> Iterator[Any]:
    with nj.enable_x64(True):
        yield jnp.asarray(values)


READS: dict[str, tuple[Callable, Callable]] = {
    "positions": (lambda x: x[PLACES], lambda x: x[PLACES]),
    "take": (lambda x: jnp.take(x, PLACES), lambda x: x[PLACES]),
    "clip": (lambda x: jnp.take(x, np.array([2**40]), mode="clip"), lambda x: x[-1:]),
    "fill": (lambda x: x.at[np.array([2**40, FAR])].get(mode="fill", fill_value=9),
             lambda x: np.array([9, x[FAR]])),
    "along": (lambda x: jnp.take_along_axis(x, PLACES % SIZE, 0), lambda x: x[PLACES]),
    "static": (lambda x: x[FAR], lambda x: x[FAR]),
    "last": (lambda x: x[-1], lambda x: x[-1]),
    "range": (lambda x: x[FAR - 1 : FAR + 2], lambda x: x[FAR - 1 : FAR + 2]),
    "steps": (lambda x: x[:: 2**30 + 25], lambda x: x[:: 2**30 + 25]),
    "dynamic slice": (lambda x: lax.dynamic_slice(x, (FAR - 1,), (3,)),
                      lambda x: x[FAR - 1 : FAR + 2]),
    "mapped slices": (lambda x: nj.vmap(lambda i: lax.dynamic_slice(x, (i,), (2,)))(PLACES[:5]),
                      lambda x: np.stack([x[i : i + 2] for i in PLACES[:5]])),
    "columns": (lambda x: x.reshape(4, -1)[np.array([3]), np.array([SIZE // 4 - 1])],
                lambda x: x[-1:]),
    "rows": (lambda x: x.reshape(-1, 4)[np.array([FAR // 4])],
             lambda x: x.reshape(-1, 4)[FAR // 4][None]),
    "argmax": (lambda x: jnp.argmax(x == 5), lambda x: FAR),
    "sum": (lambda x: jnp.sum(x), lambda x: 36),
    "count": (lambda x: jnp.count_nonzero(x), lambda x: len(PLACES)),
}  # fmt: skip


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", READS)
def test_reads(name: str, jit: bool, x: Any, values: np.ndarray) -> None:
    mine, numpys = READS[name]
    np.testing.assert_array_equal((nj.jit(mine) if jit else mine)(x), numpys(values))


def test_traced_positions(x: Any, values: np.ndarray) -> None:
    places = jnp.asarray(PLACES)
    filled = lambda x, i: x.at[i].get(mode="fill")  # noqa: E731
    for f in (lambda x, i: x[i], lambda x, i: jnp.take(x, i), filled):
        np.testing.assert_array_equal(nj.jit(f)(x, places), values[PLACES])
    np.testing.assert_array_equal(nj.jit(lambda x, i: x[i])(x, jnp.asarray(FAR)), values[FAR])


WRITES: dict[str, tuple[Callable, tuple]] = {
    "static": (lambda x: x.at[FAR].set(7), (0, 7, 0)),
    "range": (lambda x: x.at[FAR - 1 : FAR + 1].set(7), (7, 7, 0)),
    "backwards": (lambda x: x.at[FAR + 1 : FAR - 2 : -2].set(jnp.array([3, 4], x.dtype)),
                  (4, 5, 3)),
    "positions": (lambda x: x.at[np.array([FAR, FAR + 1])].add(1), (0, 6, 1)),
    "slice": (lambda x: lax.dynamic_update_slice(x, jnp.full(2, 9, x.dtype), (FAR,)), (0, 9, 9)),
    "negative": (lambda x: x.at[FAR - SIZE].multiply(2), (0, 10, 0)),
}  # fmt: skip


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, jit: bool, x: Any) -> None:
    write, wanted = WRITES[name]

    def f(x: Any) -> Any:
        y = write(x)
        return y[FAR - 1 : FAR + 2], y[: 5], y[FAR - 2**31 - 1 : FAR - 2**31 + 2]

    near, first, wrapped = (nj.jit(f) if jit else f)(x)
    np.testing.assert_array_equal(near, wanted)
    np.testing.assert_array_equal(first, [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(wrapped, [0, 0, 0])


def test_traced_positions_are_written(x: Any, values: np.ndarray) -> None:
    wanted = values.copy()
    np.add.at(wanted, PLACES, 1)
    got = nj.jit(lambda x, i: x.at[i].add(1))(x, jnp.asarray(PLACES))
    np.testing.assert_array_equal(got, wanted)
