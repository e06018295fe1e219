"""Results in the memory of arguments: whole arrays and reductions of a kernel, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

DTYPES = (np.float32, np.complex64, np.int32)
SIZES = (1, 2, 3, 8, 17, 64)


def drawn(seed: int) -> tuple[Any, list[np.ndarray]]:
    """A function of three arrays of one shape and dtype to several arrays and reductions."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.choice(SIZES, rng.integers(1, 4)).tolist())
    dtype = DTYPES[rng.integers(len(DTYPES))]
    values = [(rng.standard_normal(shape) * 3).astype(dtype) for _ in range(3)]

    def program(*args: Any) -> list[Any]:
        draw, pool = np.random.default_rng(seed + 1000), list(args)

        def pick() -> Any:
            return pool[draw.integers(len(pool))]

        def full() -> Any:
            x, y = pick(), pick()
            return [x * y, x + y, x - 2 * y, jnp.where(y.real > 0, x, y), jnp.flip(x, 0)][
                draw.integers(5)
            ]

        def reduced(x: Any) -> Any:
            axes = [None, 0, -1, tuple(range(x.ndim - 1)) or 0]
            axis, keep = axes[draw.integers(4)], bool(draw.integers(2))
            if jnp.iscomplexobj(x) or draw.integers(2):
                return jnp.sum(x, axis=axis, keepdims=keep)
            return jnp.max(x, axis=axis, keepdims=keep)

        for _ in range(draw.integers(1, 5)):
            x = full()
            pool.append(x - jnp.sum(pick(), axis=0, keepdims=True) if draw.random() < 0.3 else x)
        return [reduced(full()) if draw.integers(2) else full() for _ in range(5)]

    return program, values


@pytest.mark.filterwarnings("ignore:.*donated.*")
@pytest.mark.parametrize("seed", range(40))
def test_donation_changes_no_result(seed: int) -> None:
    program, values = drawn(seed)
    want = [np.asarray(x) for x in program(*map(jnp.array, values))]
    for donated in ((), (0, 1, 2), (1,)):
        got = nj.jit(program, donate_argnums=donated)(*map(jnp.array, values))
        for x, y in zip(want, got, strict=True):
            scale = max(1.0, float(np.abs(x).max()))
            np.testing.assert_allclose(np.asarray(y) / scale, x / scale, rtol=0, atol=1e-5)


def test_a_sum_of_columns_is_read_before_its_operand_is_overwritten() -> None:
    x, y = jnp.arange(12.0).reshape(4, 3), jnp.ones((4, 3))
    double, total = nj.jit(lambda x, y: (y * 2, x.sum(0)), donate_argnums=0)(jnp.array(x), y)
    np.testing.assert_array_equal(np.asarray(total), [18, 22, 26])
    np.testing.assert_array_equal(np.asarray(double), 2)


VIEWS = {
    "a row beside a shifted one": lambda x: x[None] + jnp.roll(x, -3),
    "shifted the other way": lambda x: x[None] + jnp.roll(x, 3),
    "rows beside shifted rows": lambda x: x.reshape(5, 8) + jnp.roll(x, 3).reshape(5, 8),
    "complex": lambda x: jnp.conj(x + 0j)[None] + jnp.roll(x + 1j, 2),
}


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_one_argument_may_be_read_at_other_places(name: str) -> None:
    for dtype in (np.float32, np.complex64):
        x = np.arange(40).astype(dtype)
        got = nj.jit(VIEWS[name], donate_argnums=0)(jnp.array(x))
        np.testing.assert_array_equal(np.asarray(got), np.asarray(VIEWS[name](jnp.array(x))))
