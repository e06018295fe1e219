"""Fourier transforms by compiled programs against NumPy's: every kind, lengths, rows to spare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp


def draw(shape: tuple, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def check(f: Callable, want: Any, x: np.ndarray, native: bool = True) -> None:
    """The program agrees with NumPy in double precision."""
    with nj.enable_x64(True):
        program = nj.jit(f)
        assert ("host" not in program.lower(x).as_text()) == native
        kept = x.copy()
        got = np.asarray(program(x))
    np.testing.assert_array_equal(x, kept)
    want = want(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    single = x.dtype.itemsize == (8 if x.dtype.kind == "c" else 4)
    assert got.dtype.itemsize == want.dtype.itemsize // (1 + single)
    assert abs(got - want).max() <= (1e-6 if single else 2e-15) * abs(want).max()


SINGLE = [("complex64", "float32"), ("complex128", "float64")]


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("n", [2, 4, 8, 32, 512])
def test_rows(complex_: str, real: str, n: int) -> None:
    for rows in (16, 33, 50):
        x = draw((rows, n), complex_)
        check(jnp.fft.fft, np.fft.fft, x)
        check(jnp.fft.ifft, np.fft.ifft, x)
        check(jnp.fft.rfft, np.fft.rfft, draw((rows, n), real))
        # The parts of the first and the middle coefficient that a real result cannot have are
        # not read.
        half = draw((rows, n // 2 + 1), complex_)
        check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("n", [3, 5, 6, 7, 14, 30, 60, 105, 128, 210, 1000])
def test_lengths_of_small_prime_factors(complex_: str, real: str, n: int) -> None:
    x, half = draw((21, n), complex_), draw((21, n // 2 + 1), complex_)
    check(jnp.fft.fft, np.fft.fft, x)
    check(jnp.fft.ifft, np.fft.ifft, x)
    check(lambda x: jnp.fft.fft(x, axis=0), lambda x: np.fft.fft(x, axis=0), x.T.copy())
    check(jnp.fft.rfft, np.fft.rfft, draw((21, n), real), native=n % 2 == 0)
    check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half, n % 2 == 0)


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("shape", [(64, 32), (3, 32, 64), (32, 16, 32)])
def test_several_axes(complex_: str, real: str, shape: tuple) -> None:
    x, half = draw(shape, complex_), draw((*shape[:-1], shape[-1] // 2 + 1), complex_)
    check(jnp.fft.fft2, np.fft.fft2, x)
    check(jnp.fft.ifft2, np.fft.ifft2, x)
    check(jnp.fft.rfft2, np.fft.rfft2, draw(shape, real))
    check(jnp.fft.irfft2, np.fft.irfft2, half)
    if shape[0] == 32:
        check(jnp.fft.fftn, np.fft.fftn, x)
        check(jnp.fft.rfftn, np.fft.rfftn, draw(shape, real))
        check(jnp.fft.irfftn, np.fft.irfftn, half)


def test_many_groups_run_over_all_threads() -> None:
    check(jnp.fft.fft, np.fft.fft, draw((300, 1024), "complex64"))


@pytest.mark.parametrize("shape", [(40, 22), (40, 1), (1, 64), (20, 16384)])
def test_other_lengths_and_few_rows_run_in_python(shape: tuple) -> None:
    check(jnp.fft.fft, np.fft.fft, draw(shape, "complex64"), native=False)


def test_infinities_and_nans_stay_in_their_row() -> None:
    x = draw((40, 64), "complex64")
    x[3, 5], x[7, 0] = np.nan, np.inf
    got = np.asarray(nj.jit(jnp.fft.fft)(x))
    touched = ~np.isfinite(got).all(1)
    np.testing.assert_array_equal(np.flatnonzero(touched), [3, 7])


def test_real_rows_do_not_touch_each_other() -> None:
    x = draw((64, 64), "float32")
    x[3] *= 1e20
    half = np.fft.rfft(x).astype(np.complex64)
    x[7, 0] = half[7, 0] = np.inf
    for f, want, given in ((jnp.fft.rfft, np.fft.rfft, x), (jnp.fft.irfft, np.fft.irfft, half)):
        got = np.asarray(nj.jit(f)(given))
        np.testing.assert_array_equal(np.flatnonzero(~np.isfinite(got).all(1)), [7])
        got, given = np.delete(got, 7, 0), np.delete(given, 7, 0)
        right = want(given.astype(np.complex128 if given.dtype.kind == "c" else np.float64))
        assert (abs(got - right).max(1) / abs(right).max(1)).max() < 1e-6


@pytest.mark.parametrize("n", [2, 4, 64])
def test_what_is_real_of_a_real_rows_spectrum(n: int) -> None:
    got = np.asarray(nj.jit(jnp.fft.rfft)(draw((16, n), "float32")))
    np.testing.assert_array_equal(got[:, [0, -1]].imag, 0)


def test_derivatives_and_loops() -> None:
    x = draw((16, 32), "float32")

    def energy(x: Any) -> Any:
        return (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()

    want = nj.grad(energy)(x)
    np.testing.assert_allclose(nj.jit(nj.grad(energy))(x), want, rtol=1e-4, atol=1e-4)
    there_and_back = nj.jit(
        lambda x: nj.lax.fori_loop(0, 3, lambda i, x: jnp.fft.irfft(jnp.fft.rfft(x), n=32), x)
    )
    np.testing.assert_allclose(there_and_back(x), x, atol=1e-5)
