"""lax.map and lax.associative_scan: against loops, under grad, vmap and jit; messages."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import sample

from numjet import lax
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.autodiff import grad
from numjet.api.maps.mapping import vmap


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_running_sum(n: int, reverse: bool) -> None:
    x = sample(3, n)
    want = np.cumsum(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(x, 1)

    def scan(x):
        return lax.associative_scan(lax.add, x, reverse, 1)

    for f in (scan, jit(scan)):
        np.testing.assert_allclose(f(x), want, rtol=1e-5, atol=1e-6)


def test_associative_scan_of_a_function_that_does_not_commute() -> None:
    a, b = sample(9), sample(9, seed=1)

    def affine(left, right):
        return lax.mul(left[0], right[0]), lax.add(lax.mul(left[1], right[0]), right[1])

    want, state = [], 0.0
    for i in range(9):
        state = state * a[i] + b[i]
        want.append(state)
    np.testing.assert_allclose(lax.associative_scan(affine, (a, b))[1], want, rtol=1e-4, atol=1e-5)


def test_associative_scan_differentiates() -> None:
    def last(x):
        return lax.index_in_dim(lax.associative_scan(lax.mul, x), 3, 0, False)

    x = np.array([2.0, 3.0, 0.5, 4.0], np.float32)
    np.testing.assert_allclose(grad(last)(x), 12 / x, rtol=1e-5)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 10])
def test_map(batch_size: int | None) -> None:
    x = {"a": sample(7, 2), "b": np.arange(7, dtype=np.float32)}

    def row(x):
        return lax.mul(lax.sin(x["a"]), x["b"]), x["b"]

    def mapped(x):
        return lax.map(row, x, batch_size=batch_size)

    want = np.sin(x["a"]) * x["b"][:, None]
    for f in (mapped, jit(mapped)):
        np.testing.assert_allclose(f(x)[0], want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(f(x)[1], x["b"])


def test_map_under_vmap_and_grad() -> None:
    x = sample(3, 4)

    def total(x):
        return lax.reduce_sum(lax.map(lambda y: lax.mul(y, y), x), (0,))

    np.testing.assert_allclose(vmap(grad(total))(x), 2 * x, rtol=1e-6)


def test_platform_dependent() -> None:
    assert float(lax.platform_dependent(1.0, cpu=lax.neg, default=lax.abs)) == -1.0
    assert float(lax.platform_dependent(-2.0, cuda=lax.neg, default=lax.abs)) == 2.0
    with pytest.raises(NotImplementedError, match="no function for the platform 'cpu'"):
        lax.platform_dependent(1.0, cuda=lax.neg)
    with pytest.raises(TypeError, match="the 'cpu' branch must be a callable"):
        lax.platform_dependent(1.0, cpu=3)


def test_messages() -> None:
    with pytest.raises(ValueError, match="associative_scan must have the same first dim"):
        lax.associative_scan(lambda a, b: a, (sample(3), sample(4)))
    with pytest.raises(TypeError, match="fn must return the structure it takes"):
        lax.associative_scan(lambda a, b: (a, b), sample(4))
    with pytest.raises(TypeError, match="batch_size must be at least 1"):
        lax.map(lax.neg, sample(4), batch_size=-1)
