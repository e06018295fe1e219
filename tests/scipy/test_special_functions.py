"""The special functions over their whole domains, against mpmath and SciPy, with derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import scipy.special
from mpmath import mp
from versions import needs

import numjet as nj
import numjet.numpy as jnp
from numjet.scipy import special

RNG = np.random.default_rng(11)
LINE = np.concatenate([np.linspace(-12, 12, 49), 10 ** RNG.uniform(-7, 4, 25)])
POSITIVE = np.abs(LINE) + 1e-3
mp.dps = 30


def quarters(low: float, high: float, count: int = 60) -> np.ndarray:
    """Numbers that single precision holds."""
    return np.round(RNG.uniform(low, high, count) * 256) / 256


def dawson(x: mpmath.mpf) -> mpmath.mpf:
    if abs(x) > 40:
        return (1 + 1 / (2 * x**2) + 3 / (4 * x**4) + 15 / (8 * x**6) + 105 / (16 * x**8)) / (2 * x)
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def owens(h: mpmath.mpf, a: mpmath.mpf) -> mpmath.mpf:
    ends = [0] + [a * s for s in (0.05, 0.2, 0.5, 1)]
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), ends) / (2 * mp.pi)


def log_beta(a: mpmath.mpf, b: mpmath.mpf) -> mpmath.mpf:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


A, B, C, X = quarters(0.1, 8), quarters(0.2, 9), quarters(0.3, 9), quarters(-1, 1)
NEAR_ONE = np.where(np.arange(60) % 2 == 0, 1 - 2.0 ** -(np.arange(60) % 18), -(2.0**X))
# A function, its reference, arguments, and by how many units in the last place it may be off,
# relative to the value and (for those that pass through 0) absolutely.
CASES: dict[str, tuple[Callable, Callable, list, float, float]] = {
    "si": (lambda x: special.sici(x)[0], mp.si, [LINE], 8, 0),
    "ci": (lambda x: special.sici(x)[1], mp.ci, [POSITIVE], 8, 30),
    "fresnel s": (lambda x: special.fresnel(x)[0], mp.fresnels, [LINE], 10, 0),
    "fresnel c": (lambda x: special.fresnel(x)[1], mp.fresnelc, [LINE], 10, 0),
    "dawsn": (special.dawsn, dawson, [LINE], 8, 0),
    "owens_t": (special.owens_t, owens, [quarters(0, 4), quarters(-3, 3)], 100, 1),
    "hyp1f1": (special.hyp1f1, mp.hyp1f1, [A, B, 30 * X], 2000, 0),
    "hyp1f1 far": (special.hyp1f1, mp.hyp1f1, [A, B, -1000 * np.abs(X) - 80], 1000, 0),
    "hyp2f1": (special.hyp2f1, mp.hyp2f1, [A / 2, B / 2, C, X], 1000, 10),
    "hyp2f1 near 1": (special.hyp2f1, mp.hyp2f1, [A / 4, B / 4, C, NEAR_ONE], 1000, 10),
    "betaln": (special.betaln, log_beta, [10 ** (A - 2), 10 ** (B * 2 - 1)], 80, 80),
    "comb": (special.comb, mp.binomial, [A + B, np.minimum(A, B)], 100, 0),
    "poch": (special.poch, mp.rf, [A, B], 200, 0),
    "expn": (special.expn, mp.expint, [np.floor(A * 3), np.abs(X) * 20 + 1e-3], 200, 0),
    "expi": (special.expi, mp.ei, [np.linspace(-30, 60, 61) + 0.25], 50, 50),
    "spence": (special.spence, lambda x: mp.polylog(2, 1 - x), [POSITIVE], 30, 10),
}


@pytest.mark.parametrize("name", CASES)
def test_against_mpmath(name: str) -> None:
    f, reference, arguments, units, absolute = CASES[name]
    for x64, dtype in ((False, np.float32), (True, np.float64)):
        values = [np.asarray(x, dtype) for x in np.broadcast_arrays(*arguments)]
        rows = zip(*[v.tolist() for v in values], strict=True)
        want = np.array([float(mp.re(reference(*map(mp.mpf, row)))) for row in rows])
        eps, kept = np.finfo(dtype).eps, np.abs(want) < np.finfo(dtype).max / 10
        kept &= np.abs(want) > np.finfo(dtype).tiny * 1e6
        with nj.enable_x64(x64):
            for call in (f, nj.jit(f)):
                got = np.asarray(call(*values), np.float64)
                np.testing.assert_allclose(
                    got[kept], want[kept], rtol=units * eps, atol=absolute * eps, err_msg=name
                )


def test_quotients_of_gammas_keep_the_digits_of_single_precision() -> None:
    large = 10.0 ** np.arange(2, 30, 3)
    z = np.float32([*large, *(-large[:3] - 0.375), -3.0, -3.0, 0.25, -0.25, 1e5])
    m = np.float32([*(large * 0 + 0.7), 0.3, -1.5, 2, 2, -2, 3, 1.5, -1.5])
    want = [mp.rf(float(x), float(y)) for x, y in zip(z, m, strict=True)]
    for f in (special.poch, nj.jit(special.poch)):
        np.testing.assert_allclose(f(z, m), np.array(want, np.float64), rtol=2e-7)
        ends = f(np.float32([-0.5, -1.5, 0, 2]), np.float32([np.inf, np.inf, -np.inf, np.nan]))
        np.testing.assert_array_equal(ends, [-np.inf, np.inf, 0, np.nan])
    n, k = np.float32([1e10, 1e20, 3e38, 40.5, 1e20]), np.float32([2, 0.3, 0.3, 20.25, 2])
    ways = [mp.binomial(float(x), float(y)) for x, y in zip(n[:4], k[:4], strict=True)]
    for f in (special.comb, nj.jit(special.comb)):
        np.testing.assert_allclose(f(n, k), [*map(float, ways), np.inf], rtol=2e-7)
    slope = nj.grad(special.poch, (0, 1))(2.5, -1.25)
    exact = [mp.diff(lambda x: mp.rf(x, -1.25), 2.5), mp.diff(lambda y: mp.rf(2.5, y), -1.25)]
    np.testing.assert_allclose(slope, [float(x) for x in exact], rtol=1e-6)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 3e-14), (np.float32, 1e-6)])
def test_faddeeva_of_real_numbers(dtype: type, rtol: float) -> None:
    x = np.concatenate([np.linspace(-9, 9, 181), [0.0, 1e-30, 1e4, np.inf, -np.inf]]).astype(dtype)
    with nj.enable_x64(dtype == np.float64):
        got = nj.jit(special.wofz)(x)
        assert got.dtype == np.result_type(dtype, np.complex64)
        np.testing.assert_allclose(got.imag, scipy.special.wofz(x + 0j).imag, rtol)
        np.testing.assert_allclose(got.real, np.exp(-(x.astype(np.float64) ** 2)), 20 * rtol, 1e-38)
        assert np.isnan(special.wofz(dtype(np.nan)))
        slope = nj.grad(lambda x: special.wofz(x).imag)(dtype(0.7))
        y = scipy.special.wofz(0.7 + 0j)
        np.testing.assert_allclose(slope, (2j / np.sqrt(np.pi) - 1.4 * y).imag, 20 * rtol)


def test_faddeeva() -> None:
    z = RNG.uniform(-12, 12, 400) + 1j * RNG.uniform(-2, 12, 400)
    z = np.concatenate([z, 10.0 ** RNG.uniform(-6, 3, 50) * np.exp(1j * np.arange(50))])
    z = np.concatenate([z, np.linspace(-6, 6, 25), 1e-7j + np.linspace(-20, 20, 9)])
    want = scipy.special.wofz(z)
    kept = np.abs(want) < 1e10
    with nj.enable_x64(True):
        np.testing.assert_allclose(special.wofz(z)[kept], want[kept], rtol=3e-13)
        real = np.linspace(-5, 5, 21)
        np.testing.assert_allclose(special.wofz(real).real, np.exp(-(real**2)), rtol=1e-14)
        slope = nj.grad(special.wofz, holomorphic=True)(1 + 1j)
        exact = -2 * (1 + 1j) * scipy.special.wofz(1 + 1j) + 2j / np.sqrt(np.pi)
        np.testing.assert_allclose(slope, exact, rtol=1e-13)
    got = nj.jit(special.wofz)(z.astype(np.complex64))
    assert got.dtype == jnp.complex64
    np.testing.assert_allclose(
        got[kept], scipy.special.wofz(z.astype(np.complex64))[kept], rtol=2e-4
    )


@pytest.mark.parametrize("v", [0, 1, 4, 30])
def test_bessel(v: int) -> None:
    z = np.concatenate([np.linspace(-60, 60, 121), [1e-6, 1e-3, 200.0, 3000.0]])
    want = scipy.special.jv(np.arange(v + 1)[:, None], z)
    with nj.enable_x64(True):
        got = special.bessel_jn(z, v=v)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=3e-14)
        slope = nj.vmap(nj.jacfwd(lambda z: special.bessel_jn(z, v=v)))(z)
        exact = scipy.special.jvp(np.arange(v + 1), z[:, None])
        np.testing.assert_allclose(slope, exact, rtol=1e-12, atol=3e-14)
    got = nj.jit(lambda z: special.bessel_jn(z, v=v))(z[:121])
    np.testing.assert_allclose(got, want[:, :121], atol=1e-6)
    assert special.bessel_jn(jnp.array([np.inf, np.nan]), v=0)[0, 0] == 0
    with pytest.raises(TypeError):
        special.bessel_jn(1.0, v=1.0)  # type: ignore[arg-type]


@needs("scipy", "1.15")
def test_spherical_harmonics() -> None:
    n = RNG.integers(0, 40, 80)
    m = np.trunc(RNG.uniform(-1, 1, 80) * (n + 1)).astype(int)
    theta, phi = RNG.uniform(-np.pi, 2 * np.pi, 80), RNG.uniform(0, 2 * np.pi, 80)
    want = scipy.special.sph_harm_y(n, m, theta, phi)
    with nj.enable_x64(True):
        np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, atol=1e-12)
    traced = nj.jit(lambda n: special.sph_harm_y(n, m, theta, phi, n_max=40))(n)
    np.testing.assert_allclose(traced, want, atol=1e-4)
    clipped = special.sph_harm_y(jnp.array([9]), jnp.array([1]), theta[:1], phi[:1], n_max=4)
    np.testing.assert_allclose(
        clipped, scipy.special.sph_harm_y([4], [1], theta[:1], phi[:1]), atol=1e-6
    )
    with pytest.raises(nj.errors.ConcretizationTypeError):
        nj.jit(lambda n: special.sph_harm_y(n, n, theta, phi))(n)


_SLOPES = {
    "sici": (lambda x: special.sici(x)[0] + special.sici(x)[1], lambda x: mp.si(x) + mp.ci(x),
             [(0.7,), (5.5,), (40.0,)]),
    "fresnel": (lambda x: special.fresnel(x)[0], mp.fresnels, [(0.7,), (1.9,), (-30.25,)]),
    "dawsn": (special.dawsn, dawson, [(0.7,), (3.0,), (900.0,)]),
    "owens_t": (special.owens_t, owens, [(0.7, 1.9), (2.0, 0.3)]),
    "hyp1f1": (special.hyp1f1, mp.hyp1f1, [(1.3, 2.4, 0.7), (1.3, 2.4, -70.0), (0.5, 3.0, 20.0)]),
    "hyp2f1": (special.hyp2f1, mp.hyp2f1,
               [(0.7, 1.2, 2.3, 0.4), (0.7, 1.2, 2.3, 0.8), (0.7, 1.2, 2.3, -3.0)]),
    "betaln": (special.betaln, log_beta, [(1e6, 0.5), (3.0, 1e10), (20.0, 30.0), (0.4, 0.9)]),
    "comb": (special.comb, mp.binomial, [(7.5, 2.25), (6.0, 2.0)]),
    "expi": (special.expi, mp.ei, [(0.5,), (-2.0,), (45.0,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", _SLOPES)
def test_derivatives_against_mpmath(name: str) -> None:
    f, reference, points = _SLOPES[name]
    with nj.enable_x64(True):
        for args in points:
            got = nj.grad(f, tuple(range(len(args))))(*args)
            for i, slope in enumerate(got):
                want = mp.diff(
                    lambda t, i=i, args=args: reference(*args[:i], t, *args[i + 1 :]), args[i]
                )
                np.testing.assert_allclose(
                    slope, float(want), rtol=3e-9, err_msg=f"{name}{args}{i}"
                )
        batched = nj.vmap(f)(*[jnp.array(column) for column in zip(*points, strict=True)])
        one_by_one = [f(*args) for args in points]
        np.testing.assert_allclose(batched, one_by_one, rtol=1e-13)


def test_ends_of_the_domains() -> None:
    inf, nan = np.inf, np.nan
    same = np.testing.assert_array_equal
    si, ci = special.sici(jnp.array([0.0, -0.0, inf, nan]))
    np.testing.assert_allclose(si, [0, 0, np.pi / 2, nan], rtol=1e-6)
    assert np.signbit(si[1])
    same(ci, [-inf, -inf, 0, nan])
    same(special.dawsn(jnp.array([inf, -inf, nan])), [0, 0, nan])
    same(special.fresnel(jnp.array([inf, -inf, nan]))[0], [0.5, -0.5, nan])
    same(special.owens_t(jnp.array([inf, nan, 0.0]), jnp.array([1.0, 1.0, inf])), [0, nan, 0.25])
    same(
        special.hyp1f1(jnp.array([0.0, 1.0, -1.0]), jnp.array([0.0, -1.0, -2.0]), 1.0),
        [1, inf, 1.5],
    )
    same(
        special.hyp2f1(1.0, 2.0, jnp.array([0.0, 4.0, 2.5, 2.0]), jnp.array([0.5, 1.0, 1.0, 2.0])),
        [inf, 3, inf, -1],
    )
    a, b, c = [2.0, 3.0, -2.0, 2.0], [5.0, 1.5, 3.0, 1.5], [5.0, 3.0, 3.0, 4.0]
    powers = [np.array(v) for v in (a, b, c, [3.0, 1.75, 4.0, 2.0])]
    np.testing.assert_allclose(special.hyp2f1(*powers), scipy.special.hyp2f1(*powers), rtol=1e-6)
    finite = scipy.special.hyp2f1(-3, 2, 1.5, 4)
    np.testing.assert_allclose(special.hyp2f1(-3.0, 2.0, 1.5, 4.0), finite, rtol=1e-6)
    same(
        special.expn(jnp.array([0, 1, 2, -1, 3]), jnp.array([0.0, 0.0, 0.0, 1.0, inf])),
        [inf, inf, 1, nan, 0],
    )
    same(special.comb(jnp.array([5, 5, -1, 0]), jnp.array([2, 6, 2, 0])), [10, 0, 0, 1])
    same(
        special.comb(jnp.array([5, 0, 0, 3]), jnp.array([2, 0, 1, 5]), repetition=True),
        [15, 1, 0, 21],
    )
    np.testing.assert_allclose(
        special.poch(jnp.array([-2.0, -2.0, 0.0]), jnp.array([1.0, 3.0, 1.0])),
        [-2, 0, 0],
        rtol=1e-6,
    )
    for f in (special.sici, special.dawsn, special.hyp1f1):
        with pytest.raises(ValueError):
            f(*[1j] * (3 if f is special.hyp1f1 else 1))
    with pytest.raises(ValueError, match="integer"):
        special.polygamma(1.5, 1.0)


def test_derivatives_where_products_are_nothing() -> None:
    """0 log 0 and its kin: the derivatives of the formula, not of the limit."""
    same = np.testing.assert_array_equal
    same(nj.grad(special.xlogy, (0, 1))(0.0, 0.0), [-np.inf, np.nan])
    same(nj.grad(special.xlog1py, (0, 1))(0.0, -1.0), [-np.inf, np.nan])
    same(nj.vmap(nj.grad(special.entr))(jnp.array([0.0, 1.0, -1.0])), [np.inf, -1, np.nan])
    assert special.xlogy(0.0, 0.0) == special.xlogy(0.0, -1.0) == special.entr(0.0) == 0


@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_compiled_bessel_functions(name: str) -> None:
    """Compiled programs compute them by series of their own."""
    x = np.concatenate([np.linspace(-30, 30, 121), 10.0 ** np.linspace(-6, 5, 45)])
    for x64, dtype in ((False, np.float32), (True, np.float64)):
        values = x.astype(dtype)
        want = getattr(scipy.special, name)(values.astype(np.float64))
        with nj.enable_x64(x64):
            compiled = nj.jit(getattr(special, name))
            assert "host" not in compiled.lower(values).as_text()
            eps = 20 * np.finfo(dtype).eps
            np.testing.assert_allclose(compiled(values), want, rtol=eps)
            ends = compiled(np.array([np.inf, np.nan], dtype))
            np.testing.assert_array_equal(ends, [0, np.nan])


# ------------------------------------------------------------------ Legendre functions
@pytest.mark.parametrize("m, n", [(5, 5), (2, 6), (6, 2), (0, 0)])
def test_legendre_functions_of_all_orders(m, n):
    z = np.array([0.0, 0.3, -0.7, 0.99, 1.0, -1.0])
    orders, degrees = np.arange(m + 1)[:, None, None], np.arange(n + 1)[:, None]
    want = np.where(orders <= degrees, scipy.special.lpmv(orders, degrees, z), 0)
    with nj.enable_x64(True):
        values, slopes = special.lpmn(m, n, z)
        normalized = special.lpmn_values(m, n, z, True)
        np.testing.assert_allclose(values, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(special.lpmn_values(m, n, z, False), values)
    h = 1e-6
    inner = z[:4]
    about = [scipy.special.lpmv(orders, degrees, inner + s) for s in (h, -h)]
    np.testing.assert_allclose(
        slopes[..., :4], np.where(orders <= degrees, (about[0] - about[1]) / (2 * h), 0),
        rtol=1e-6, atol=1e-6)  # fmt: skip
    scale = scipy.special.poch(np.maximum(degrees - orders, 0) + 1, 2 * np.minimum(orders, degrees))
    factor = np.sqrt((2 * degrees + 1) / (4 * np.pi) / scale)
    np.testing.assert_allclose(normalized, factor * want, rtol=1e-12, atol=1e-12)


def test_legendre_functions_at_the_ends_and_of_high_degree():
    slopes = np.asarray(special.lpmn(3, 3, jnp.array([1.0, -1.0]))[1])
    np.testing.assert_array_equal(slopes[0], [[0, 0], [1, 1], [3, -3], [6, 6]])
    np.testing.assert_array_equal(slopes[1, 1:], np.inf * np.array([[1, -1], [1, 1], [1, -1]]))
    np.testing.assert_array_equal(slopes[2], [[0, 0], [0, 0], [-6, 6], [-30, -30]])
    np.testing.assert_array_equal(slopes[3], 0)
    z = np.linspace(-1, 1, 9, dtype=np.float32)
    high = np.asarray(special.lpmn_values(60, 60, z, True))
    assert np.isfinite(high).all()
    # Their squares over the orders add up to (2l + 1) / 4π at every point.
    total = high[0] ** 2 + 2 * (high[1:] ** 2).sum(0)
    want = np.broadcast_to((2 * np.arange(61)[:, None] + 1) / (4 * np.pi), total.shape)
    np.testing.assert_allclose(total, want, rtol=1e-4)


def test_bad_legendre_functions():
    for arguments, kind in (((2, 2, jnp.arange(3)), TypeError), ((2, 2, 0.5), ValueError),
                            ((-1, 2, jnp.ones(3)), IndexError), ((2.0, 2, jnp.ones(3)), TypeError)):
        with pytest.raises(kind):
            special.lpmn(*arguments)


def test_gamma_quotients_without_compilation() -> None:
    """`disable_jit` evaluates what is computed in doubles, whatever `enable_x64` says."""
    n, k = jnp.array([6.0, 4.0, 2.5]), jnp.array([1.0, 2.0, 0.75])
    for function in (special.comb, special.poch):
        with nj.disable_jit():
            got = function(n, k)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, function(n, k), rtol=2e-7)


def test_cosine_integral_at_both_infinities() -> None:
    si, ci = special.sici(jnp.array([-np.inf, np.inf]))
    np.testing.assert_allclose(si, [-np.pi / 2, np.pi / 2], rtol=1e-6)
    np.testing.assert_array_equal(ci, [np.nan, 0])


def test_lists_where_jax_takes_them() -> None:
    matrix = [[4.0, 1.0], [1.0, 3.0]]
    linalg = nj.scipy.linalg
    for function in (linalg.cholesky, linalg.eigh, linalg.svd, linalg.qr, linalg.lu, linalg.polar):
        for got, want in zip(function(matrix), function(jnp.array(matrix)), strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        linalg.inv(matrix)
    for function in (special.ndtr, special.log_ndtr, special.spence, nj.scipy.signal.detrend):
        np.testing.assert_array_equal(function([1.0, 2.0]), function(jnp.array([1.0, 2.0])))


def test_a_schur_form_of_one_number_differentiates() -> None:
    t, z = nj.scipy.linalg.rsf2csf(jnp.array([[2.0]]), jnp.array([[-1.0]]))
    assert t.dtype == z.dtype == np.complex64 and t == 2 and z == -1
    real = lambda x: nj.scipy.linalg.rsf2csf(x, jnp.eye(1))[0].real.sum()  # noqa: E731
    assert nj.grad(real)(jnp.array([[2.0]])) == 1


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
def test_box_and_cox_in_their_exponent(name: str) -> None:
    """Values and derivatives in lmbda, at 0 and beside it, where the quotient is 0 / 0."""
    f = getattr(special, name)
    x = np.array([0.001, 0.5, 1.0, 2.0, 700.0, 0.0, np.inf])
    for lmbda in [0.0, -1e-8, 1e-4, -0.03, 0.2, 0.3, 1.0, -2.0]:
        want = getattr(scipy.special, name)(x, lmbda)
        got = f(jnp.array(x), jnp.float32(lmbda))
        np.testing.assert_allclose(got, want, rtol=3e-6, err_msg=str(lmbda))
    logs = np.log1p(x[:5]) if name == "boxcox1p" else np.log(x[:5])
    with nj.enable_x64(True):
        first = nj.grad(f, 1)
        for lmbda in [0.0, 1e-30, 1e-9, 1e-3, -0.02]:
            # Σ log(x)^(k + 2) lmbda^k / (k! (k + 2)), the series of the derivative.
            terms = [lmbda**k / math.factorial(k) * logs ** (k + 2) / (k + 2) for k in range(40)]
            at = [jnp.array(x[:5]), jnp.full(5, lmbda)]
            np.testing.assert_allclose(nj.vmap(first)(*at), sum(terms), rtol=1e-12)
        at[1] = 0 * at[1]
        slope = logs / (x[:5] + (name == "boxcox1p"))
        np.testing.assert_allclose(nj.vmap(nj.grad(first, 1))(*at), logs**3 / 3, rtol=1e-12)
        np.testing.assert_allclose(nj.vmap(nj.grad(first, 0))(*at), slope, rtol=1e-12)


def test_box_and_cox_of_complex_numbers() -> None:
    x, lmbda = np.array([0.5 + 1j, -2 + 0.1j, 3.0]), np.array([0.3j, 1e-3, 2 - 1j])
    np.testing.assert_allclose(special.boxcox(x, lmbda), (x**lmbda - 1) / lmbda, rtol=1e-4)
    np.testing.assert_allclose(special.boxcox1p(x, 0j), np.log(1 + x), rtol=1e-6)


def test_hypergeometric_series_that_end_have_derivatives_that_do_not() -> None:
    """In a parameter that is 0, -1, ..., and in b where b - a is, after Kummer's transformation."""
    cases = [
        (special.hyp1f1, mpmath.hyp1f1, 0, [(-1.0, 1.5, 0.7), (0.0, 1.5, -0.7), (-2.0, 0.5, 9.0)]),
        (special.hyp1f1, mpmath.hyp1f1, 1, [(0.5, -0.5, -0.7), (2.25, 0.25, -3.0)]),
        (special.hyp2f1, mpmath.hyp2f1, 0, [(-1.0, 0.5, 1.5, 0.3), (0.0, 0.5, 1.5, -3.0)]),
        (special.hyp2f1, mpmath.hyp2f1, 1, [(0.5, -2.0, 1.5, 0.8), (0.25, -1.0, 0.75, -0.5)]),
    ]
    with nj.enable_x64(True):
        for f, exact, i, points in cases:
            for p in points:
                want = mpmath.diff(lambda t: exact(*p[:i], t, *p[i + 1 :]), p[i])  # noqa: B023
                assert abs(float(nj.grad(f, argnums=i)(*p)) / float(want) - 1) < 1e-11, (f, p)


def test_harmonics_without_n_max_are_a_program() -> None:
    # The largest degree was looked for where it was traced, so that they ran one by one for ever.
    n, m, angle = jnp.array([1, 2, 5]), jnp.array([0, -1, 3]), jnp.array([0.1, 0.7, 2.0])
    for turn in range(6):
        got = special.sph_harm_y(n, m, angle + turn, angle)
        want = scipy.special.sph_harm_y(n, m, np.asarray(angle + turn), np.asarray(angle))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    assert special.sph_harm_y(n[:0], m[:0], angle[:0], angle[:0]).shape == (0,)
