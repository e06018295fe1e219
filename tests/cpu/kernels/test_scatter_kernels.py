"""scatter: the compiled program against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import cpu
from numjet.base import config
from numjet.core.avals import ShapedArray
from numjet.cpu.kernels import scatter
from numjet.ops import scatter as ops
from numjet.ops.indexing import GatherScatterMode, ScatterDimensionNumbers
from numjet.transforms.stage import stage_closed

MUL = ops.scatter_mul_p
PRIMITIVES = [ops.scatter_p, ops.scatter_add_p, ops.scatter_sub_p, MUL,
              ops.scatter_min_p, ops.scatter_max_p]  # fmt: skip
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
CASES = [
    # operand, indices, updates, numbers
    ((10,), (4, 1), (4,), ScatterDimensionNumbers((), (0,), (0,))),
    ((10,), (1,), (3,), ScatterDimensionNumbers((0,), (), (0,))),
    ((10, 33), (6, 1), (6, 33), ROWS),
    ((10, 33), (6, 1), (6, 5), ROWS),
    ((8, 9), (5, 2), (5,), ScatterDimensionNumbers((), (0, 1), (0, 1))),
    ((8, 9, 4), (5, 2), (5, 2, 3, 4), ScatterDimensionNumbers((1, 2, 3), (), (1, 0))),
    ((8, 9), (2, 3, 1), (2, 9, 3), ScatterDimensionNumbers((1,), (0,), (0,))),
    ((5, 8, 3), (5, 4, 1), (5, 4, 3), ScatterDimensionNumbers((2,), (1,), (1,), (0,), (0,))),
    ((4, 200), (70, 1), (70, 200), ROWS),
    ((100,), (40000, 1), (40000,), ScatterDimensionNumbers((), (0,), (0,))),
]


def check(primitive: Any, operand: np.ndarray, indices: np.ndarray, updates: np.ndarray,
          numbers: Any, mode: GatherScatterMode) -> None:  # fmt: skip
    params = {"dimension_numbers": numbers, "indices_are_sorted": False, "unique_indices": False,
              "mode": mode}  # fmt: skip
    args = [operand, indices, updates]
    with config.enable_x64(True):
        closed = stage_closed(
            lambda *xs: [primitive.bind(*xs, **params)],
            tuple(ShapedArray(x.shape, x.dtype) for x in args),
        )
        compiled = cpu.compile(closed, {})
        assert not compiled.host_calls
        kept = operand.copy()
        got = compiled(args)[0]
    np.testing.assert_array_equal(operand, kept)
    want = primitive.reference(operand, indices, updates, **params)
    assert got.dtype == want.dtype
    if operand.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", [GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP])
@pytest.mark.parametrize(
    ("case", "primitive"),
    # Not four hundred factors in another order.
    [(c, p) for c in range(len(CASES)) for p in PRIMITIVES if c < len(CASES) - 1 or p is not MUL],
)
def test_cases(case: int, primitive: Any, mode: GatherScatterMode) -> None:
    rng = np.random.default_rng(case)
    shape, positions, windows, numbers = CASES[case]
    ends = max(shape[axis] for axis in numbers.scatter_dims_to_operand_dims)  # both are met
    indices = rng.integers(-3, ends + 3, positions).astype(np.int32)
    operand = rng.standard_normal(shape).astype(np.float32)
    check(
        primitive, operand, indices, rng.standard_normal(windows).astype(np.float32), numbers, mode
    )


@pytest.mark.parametrize(
    "dtype",
    ["int32", "uint32", "int64", "uint8", "bool", "float64", "float16", "complex64", "complex128"],
)
def test_dtypes(dtype: str) -> None:
    rng = np.random.default_rng(5)
    operand, updates = (rng.integers(0, 9, s).astype(dtype) for s in ((10, 33), (6, 33)))
    for index in ("int8", "int64", "uint16", "uint64"):
        indices = rng.integers(0, 12, (6, 1)).astype(index)
        for primitive in PRIMITIVES:
            if np.dtype(dtype).kind == "c" and primitive not in PRIMITIVES[:3]:
                continue
            if dtype == "bool" and primitive is ops.scatter_sub_p:
                continue
            check(primitive, operand, indices, updates, ROWS, GatherScatterMode.CLIP)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize("primitive", [ops.scatter_min_p, ops.scatter_max_p], ids=lambda p: p.name)
def test_extrema_of_many_updates_meet(primitive: Any, dtype: str) -> None:
    rng = np.random.default_rng(7)
    _, positions, windows, numbers = CASES[-1]
    # Places that no update reaches keep what they hold, and one NaN wins.
    operand, updates = ((200 * rng.random(n)).astype(dtype) for n in (100, windows))
    if dtype == "float32":
        updates[1000] = np.nan
    indices = rng.integers(0, 60, positions).astype(np.int32)
    with np.errstate(invalid="ignore"):
        check(primitive, operand, indices, updates, numbers, GatherScatterMode.CLIP)


def test_an_operand_that_dies_is_updated_in_place() -> None:
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    params = {"dimension_numbers": numbers, "indices_are_sorted": False, "unique_indices": False,
              "mode": GatherScatterMode.FILL_OR_DROP}  # fmt: skip

    def function(x: Any, i: Any, u: Any) -> list:
        for _ in range(3):
            x = ops.scatter_add_p.bind(x, i, u, **params)
        return [x]

    avals = tuple(
        ShapedArray(s, np.dtype(d)) for s, d in (((50,), "f4"), ((9, 1), "i4"), ((9,), "f4"))
    )
    x, u = np.zeros(50, np.float32), np.ones(9, np.float32)
    got = cpu.compile(stage_closed(function, avals), {})(
        [x, np.arange(9, dtype=np.int32)[:, None], u]
    )[0]
    np.testing.assert_array_equal(got, np.where(np.arange(50) < 9, 3, 0))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", ["add", "subtract", "min", "max"])
@pytest.mark.parametrize("shape", [(50,), (7, 40)])
def test_many_small_floats_into_few_places(name: str, method: str, shape: tuple) -> None:
    """In copies of threads, where processors have no instructions for such floats, too."""
    rng = np.random.default_rng(0)
    rows = (1 << 15, *shape[1:])
    x = jnp.asarray(rng.integers(-8, 8, shape) / 4, name)
    places = rng.integers(-2, shape[0] + 2, rows[0])
    new = rng.integers(-1, 2, rows) * np.where(rng.random(rows) < 0.1, 1.0, 0.0)
    new[5] = np.nan
    new = jnp.asarray(new, name)
    program = nj.jit(lambda x, u: getattr(x.at[places], method)(u))
    got, want = program(x, new), program(x.astype("float32"), new.astype("float32"))
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(got, np.float32), want)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("columns", [(), (5,), (40,)])
def test_sums_of_many_small_floats_are_floats_until_they_meet(name: str, columns: tuple) -> None:
    """A bfloat16 that is added ones to stays 256."""
    n = 4 * scatter.COPIES_FROM
    start = jnp.asarray(np.full((90, *columns), 3.0), name)
    places = jnp.arange(n) % 100
    up = nj.jit(lambda x, u: x.at[places].add(u))(start, jnp.ones((n, *columns), name))
    down = nj.jit(lambda x, u: x.at[places].subtract(u))(start, jnp.ones((n, *columns), name))
    count = np.bincount(np.asarray(places))[:90].reshape(90, *[1] * len(columns))
    for got, want in ((up, 3.0 + count), (down, 3.0 - count)):
        np.testing.assert_array_equal(got, np.broadcast_to(want, start.shape).astype(got.dtype))
