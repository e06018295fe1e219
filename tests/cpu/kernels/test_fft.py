"""Fourier transforms by compiled programs against NumPy's: every kind, lengths, rows to spare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import numjet as nj
import numjet.numpy as jnp
from numjet.cpu.kernels import fft, fft_chirp, fft_long


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
@pytest.mark.parametrize("n", [3, 5, 6, 7, 14, 30, 60, 105, 128, 210, 1000,
                               11, 13, 17, 38, 121, 184, 87, 31, 74, 41, 43, 47 * 47])  # fmt: skip
def test_lengths_of_prime_factors_to_47(complex_: str, real: str, n: int) -> None:
    """Butterflies that are written out, and those that are loops."""
    x, half = draw((21, n), complex_), draw((21, n // 2 + 1), complex_)
    check(jnp.fft.fft, np.fft.fft, x)
    check(jnp.fft.ifft, np.fft.ifft, x)
    check(lambda x: jnp.fft.fft(x, axis=0), lambda x: np.fft.fft(x, axis=0), x.T.copy())
    check(jnp.fft.rfft, np.fft.rfft, draw((21, n), real))
    check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)


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


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("shape", [(300, 15), (33, 1001), (3, 16, 125), (12, 2187), (5, 10_007)])
def test_many_rows_of_an_odd_number_of_reals(complex_: str, real: str, shape: tuple) -> None:
    n, half = shape[-1], draw((*shape[:-1], shape[-1] // 2 + 1), complex_)
    check(jnp.fft.rfft, np.fft.rfft, draw(shape, real))
    check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)


def test_long_columns() -> None:
    check(jnp.fft.fft2, np.fft.fft2, draw((20_000, 18), "complex64"))


def test_rows_of_odd_length_do_not_touch_each_other() -> None:
    x = draw((40, 105), "float32")
    x[7, 3], x[8, 50] = np.nan, np.inf
    transformed = np.asarray(nj.jit(jnp.fft.rfft)(x))
    back = np.asarray(nj.jit(lambda y: jnp.fft.irfft(y, n=105))(transformed))
    for found in (transformed, back):
        assert np.flatnonzero(~np.isfinite(found).all(1)).tolist() == [7, 8]


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("n", [53, 59 * 2, 127, 251, 503, 3 * 509, 2039])
def test_many_lengths_of_large_prime_factors(complex_: str, real: str, n: int) -> None:
    """Convolutions side by side, of rows and columns, inverse ones and real ones too."""
    x, half = draw((99, n), complex_), draw((99, n // 2 + 1), complex_)
    check(jnp.fft.fft, np.fft.fft, x)
    check(jnp.fft.ifft, np.fft.ifft, x)
    check(lambda x: jnp.fft.ifft2(x[:, :17]), lambda x: np.fft.ifft2(x[:, :17]), x.T.copy())
    check(jnp.fft.rfft, np.fft.rfft, draw((99, n), real))
    check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)


@pytest.mark.parametrize("shape", [(3, 10_007, 20), (20, 3000, 1), (2, 0)])
def test_other_lengths_run_in_python(shape: tuple) -> None:
    if shape[1]:
        check(jnp.fft.fft2, np.fft.fft2, draw(shape, "complex64"), native=False)
    empty = nj.jit(lambda x: jnp.fft.fft(x))(np.zeros(shape[::-1], np.complex64)[:0])
    assert empty.shape == (0, *shape[-2::-1])


def all_kinds(shape: tuple, complex_: str, real: str) -> None:
    n = shape[-1]
    check(jnp.fft.fft, np.fft.fft, draw(shape, complex_))
    check(jnp.fft.ifft, np.fft.ifft, draw(shape, complex_))
    if n % 2 == 0:
        # The parts of the first and the last coefficient that a real result cannot have are not
        # read.
        half = draw((*shape[:-1], n // 2 + 1), complex_)
        check(jnp.fft.rfft, np.fft.rfft, draw(shape, real))
        check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)


# The smallest, powers of two, both factors odd, a factor that is no multiple of a vector's lanes,
# every radix, pairs of a spectrum left over, several blocks of them, all threads.
LONG = [512, 1000, 4096, 6561, 7200, 10_000, 16_384, 2 * 3 * 7**4, 66_150, 100_000, 1 << 17,
        11 * 1024, 94 * 13**2]  # fmt: skip


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("n", LONG)
def test_one_long_transform(complex_: str, real: str, n: int) -> None:
    all_kinds((n,), complex_, real)


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("shape", [(3, 16_384), (37, 2048), (2, 3, 1200), (3, 100_000)])
def test_long_rows_one_after_another(complex_: str, real: str, shape: tuple) -> None:
    all_kinds(shape, complex_, real)


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize(
    "shape", [(131,), (2 * 509,), (3, 1009), (8191,), (40, 521), (2 * 10_007,)]
)
def test_lengths_with_large_prime_factors(complex_: str, real: str, shape: tuple) -> None:
    n = shape[-1]
    check(jnp.fft.fft, np.fft.fft, draw(shape, complex_))
    check(jnp.fft.ifft, np.fft.ifft, draw(shape, complex_))
    half = draw((*shape[:-1], n // 2 + 1), complex_)
    check(jnp.fft.rfft, np.fft.rfft, draw(shape, real))
    check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize(
    "shape", [(4,), (1, 3), (3, 11), (5, 25), (1, 143), (2, 3, 99), (999,), (4095,)]
)
def test_few_short_rows_of_any_length(complex_: str, real: str, shape: tuple) -> None:
    """Odd numbers of real ones too, whose first coefficient's imaginary part is not read."""
    n = shape[-1]
    check(jnp.fft.fft, np.fft.fft, draw(shape, complex_))
    check(jnp.fft.ifft, np.fft.ifft, draw(shape, complex_))
    half = draw((*shape[:-1], n // 2 + 1), complex_)
    check(jnp.fft.rfft, np.fft.rfft, draw(shape, real))
    check(lambda x: jnp.fft.irfft(x, n=n), lambda x: np.fft.irfft(x, n=n), half)
    check(lambda x: jnp.fft.hfft(x, n=n), lambda x: np.fft.hfft(x, n=n), half)
    check(jnp.fft.ihfft, np.fft.ihfft, draw(shape, real))


@pytest.mark.parametrize("n", [16, 32, 64])
@pytest.mark.parametrize("rows", [(), (2,)])
def test_errors_of_many_transforms_of_a_row_do_not_add_up(n: int, rows: tuple) -> None:
    """Of a time step each: convolutions with a chirp are off in the same direction every time."""
    x = np.broadcast_to(np.sin(6 * np.pi * np.arange(n) / n), (*rows, n)).astype(np.float32)

    def there_and_back(_: Any, x: Any) -> Any:
        if x.dtype == np.float32:
            return jnp.fft.irfft(jnp.fft.rfft(x), n=n)
        return jnp.fft.ifft(jnp.fft.fft(x))

    program = nj.jit(lambda x: nj.lax.fori_loop(0, 256, there_and_back, x))
    assert abs(np.asarray(program(x)) - x).max() < 6e-6
    if n <= 32:
        assert abs(np.asarray(program(x.astype(np.complex64))) - x).max() < 6e-6


@pytest.mark.parametrize("n", [131, 1009, 10_007, 65_537, 2_999_999])
@pytest.mark.parametrize("element", ["float", "double"])
def test_a_convolution_is_long_enough_and_not_much_longer(n: int, element: str) -> None:
    length = fft_chirp.padded(n, element)
    assert length is not None and 2 * n - 1 <= length < 2.3 * n + 256
    assert fft_long.factors(length, element) is not None


def test_long_transforms_take_part_in_those_over_several_axes() -> None:
    check(jnp.fft.fft2, np.fft.fft2, draw((6, 4096), "complex64"))
    check(jnp.fft.rfft2, np.fft.rfft2, draw((6, 8192), "float32"))
    x = draw((6, 4097), "complex64")
    x[0, [0, -1]] = x[0, [0, -1]].real
    x[1:, [0, -1]] += np.conj(x[:0:-1, [0, -1]])  # as of real numbers
    check(jnp.fft.irfft2, np.fft.irfft2, x)


@pytest.mark.parametrize("n", [1 << 12, 15_000, 1 << 18, 10_007])
def test_long_transforms_are_as_accurate_as_scipys(n: int) -> None:
    for c, wide in (("complex64", np.complex128), ("complex128", np.clongdouble)):
        x = draw((n,), c)
        want = scipy.fft.fft(x.astype(wide))
        with nj.enable_x64(True):
            got = np.asarray(nj.jit(jnp.fft.fft)(x))

        def off(y: np.ndarray, want: np.ndarray = want) -> float:
            return float(np.sqrt((abs(y - want) ** 2).mean()))

        # In extended precision roots of unity are not known on every platform.
        assert off(got) < (1.5 if np.finfo(np.longdouble).eps < 1e-18 else 2) * off(
            scipy.fft.fft(x)
        )


def test_a_long_transform_of_a_tone_and_of_one_number() -> None:
    n = 3 << 14
    k = np.arange(n)
    got = np.asarray(nj.jit(jnp.fft.fft)(np.exp(2j * np.pi * 4321 * k / n).astype(np.complex64)))
    assert abs(got[4321] - n) < 1e-6 * n
    assert abs(np.delete(got, 4321)).max() < 1e-5 * n
    one = np.zeros(n, np.float32)
    one[5] = 1
    got = np.asarray(nj.jit(jnp.fft.rfft)(one))
    want = np.exp(-2j * np.pi * 5 * np.arange(n // 2 + 1) / n)
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_a_long_transform_inside_a_loop_and_its_derivative() -> None:
    x = draw((4, 2048), "float32")

    def energy(x: Any) -> Any:
        back = jnp.fft.irfft(jnp.fft.rfft(x) * jnp.arange(1025), n=2048)
        return (back**2).sum()

    def each(x: Any) -> Any:
        return nj.lax.map(nj.grad(energy), x)

    with nj.enable_x64(True):
        x = x.astype(np.float64)
        want = 2 * np.fft.irfft(np.fft.rfft(x) * np.arange(1025) ** 2.0, n=2048)
        np.testing.assert_allclose(nj.jit(each)(x), want, rtol=1e-10, atol=1e-6)


@pytest.mark.parametrize("n", [64, 2048])
def test_infinities_and_nans_stay_in_their_row(n: int) -> None:
    x = draw((40, n), "complex64")
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


@pytest.mark.parametrize("n", [2, 4, 64, 4096])
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


@pytest.mark.parametrize(("complex_", "real"), SINGLE)
@pytest.mark.parametrize("n", [6, 32, 60])
def test_rows_that_no_cache_holds(
    n: int, complex_: str, real: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are copied to scratch memory and back, but for the last where lanes are left."""
    monkeypatch.setattr(fft, "_FAR", 0)
    for count in (32, 37):
        check(jnp.fft.fft, np.fft.fft, draw((count, n), complex_))
        check(jnp.fft.ifft, np.fft.ifft, draw((count, n), complex_))
        check(jnp.fft.rfft, np.fft.rfft, draw((count, n), real))
        check(jnp.fft.irfft, np.fft.irfft, draw((count, n // 2 + 1), complex_))
