"""The distributions, estimates and statistics that SciPy and JAX have beside the common ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet.scipy import special, stats

LINE = np.array([-30.0, -2.5, -0.5, 0.0, 0.2, 0.7, 1.0, 2.5, 40.0])
CASES = {
    "gennorm": (LINE, [(1.0,), (2.5,), (0.7,)], ("pdf", "logpdf", "cdf")),
    "truncnorm": (
        LINE,
        [(-1.0, 1.0), (0.0, 2.0), (-3.0, -2.0, 0.3, 2.0), (5.0, 6.0, -5.0, 1.0), (-np.inf, 1.0)],
        ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"),
    ),
    "vonmises": (LINE, [(0.5,), (4.0,), (50.0,)], ("pdf", "logpdf")),
    "wrapcauchy": (np.array([-0.1, 0.0, 0.4, 3.0, 6.2, 6.4]), [(0.5,), (0.95,)], ("pdf", "logpdf")),
    "betabinom": (
        np.array([-1.0, 0, 1, 5, 10, 11]),
        [(10, 2.0, 3.0), (10, 0.5, 0.1), (9, 1.5, 70.0, 1.0)],
        ("pmf", "logpmf"),
    ),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_against_scipy(name: str, x64: bool) -> None:
    values, parameters, functions = CASES[name]
    rtol, atol = (1e-9, 1e-13) if x64 else (3e-4, 1e-6)
    with nj.enable_x64(x64), np.errstate(all="ignore"):
        for args in parameters:
            for function in functions:
                f = getattr(getattr(stats, name), function)
                want = getattr(getattr(scipy.stats, name), function)(values, *args)
                for call in (f, nj.jit(f)):
                    got = call(jnp.asarray(values), *args)
                    np.testing.assert_allclose(
                        got, want, rtol=rtol, atol=atol, err_msg=f"{name}.{function}{args}"
                    )


def test_narrow_and_far_truncated_normals() -> None:
    """Where differences of distribution functions would be 0."""
    with nj.enable_x64(True):
        x = jnp.array([30.0, 30.01, 30.2])
        want = scipy.stats.truncnorm.logpdf(x, 30.0, 31.0)
        np.testing.assert_allclose(stats.truncnorm.logpdf(x, 30.0, 31.0), want, rtol=1e-6)
        np.testing.assert_allclose(stats.truncnorm.logpdf(-x, -31.0, -30.0), want, rtol=1e-6)


def test_poisson_entropy() -> None:
    mu = np.array([0.0, 1e-3, 0.5, 7.0, 19.0, 21.0, 79.0, 81.0, 150.0])
    want = np.array([scipy.stats.poisson.entropy(m) if m else 0.0 for m in mu])
    with nj.enable_x64(True):
        np.testing.assert_allclose(stats.poisson.entropy(mu), want, rtol=1e-11, atol=1e-13)
        assert np.isnan(stats.poisson.entropy(-1.0))
    np.testing.assert_allclose(stats.poisson.entropy(np.float32(mu)), want, rtol=3e-5)


def test_kernel_density() -> None:
    rng = np.random.default_rng(3)
    one, two = rng.standard_normal(30), rng.standard_normal((2, 40))
    weights = rng.uniform(size=30)
    with nj.enable_x64(True):
        for args in ({}, {"bw_method": "silverman"}, {"bw_method": 0.4}, {"weights": weights}):
            ours, theirs = stats.gaussian_kde(one, **args), scipy.stats.gaussian_kde(one, **args)
            for got, want in (
                (ours(one[:5]), theirs(one[:5])),
                (ours.logpdf(one[:5] * 9), theirs.logpdf(one[:5] * 9)),
                (ours.integrate_box_1d(-0.3, 1.0), theirs.integrate_box_1d(-0.3, 1.0)),
                (ours.integrate_gaussian(0.3, 2.0), theirs.integrate_gaussian(0.3, 2.0)),
                (ours.integrate_kde(ours), theirs.integrate_kde(theirs)),
            ):
                np.testing.assert_allclose(got, want, rtol=1e-9)
        ours, theirs = stats.gaussian_kde(two), scipy.stats.gaussian_kde(two)
        np.testing.assert_allclose(nj.jit(ours)(two[:, :7]), theirs(two[:, :7]), rtol=1e-9)
        np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs))
        drawn = ours.resample(nj.random.key(0), (4000,))
        np.testing.assert_allclose(np.cov(drawn), np.cov(two) + theirs.covariance, atol=0.15)
    with pytest.raises(ValueError, match="dimension"):
        ours(jnp.ones((3, 2)))
    with pytest.raises(AttributeError):
        ours.neff = 3


def test_mode() -> None:
    values = np.random.default_rng(0).integers(0, 5, (7, 6, 3))
    for axis in (0, 1, -1, None):
        for keepdims in (False, True):
            got = stats.mode(jnp.asarray(values), axis=axis, keepdims=keepdims)
            want = scipy.stats.mode(values, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(got.mode, want.mode)
            np.testing.assert_array_equal(got.count, want.count)
    got = stats.mode(jnp.array([1.0, np.nan, np.nan]))
    assert np.isnan(got.mode) and got.count == 2
    assert np.isnan(stats.mode(jnp.zeros(0)).mode)
    with pytest.raises(NotImplementedError):
        stats.mode(jnp.zeros(3), nan_policy="omit")


_EDGES = {
    "beta.logpdf": [(0.3, -2.0, 3.0), (0.3, 2.0, 0.0), (1.0, 2.0, 1.0)],
    "norm.logpdf": [(0.5, 0.1, -2.0), (0.5,), (1,)],
    "binom.pmf": [(1.5, 3, 0.5), (2, 3, 0.5), (1e5, 2e5, 0.5)],
    "nbinom.logpmf": [(1.5, 3, 0.5), (3.0, 1e6, 0.9), (3.0, 1e10, 0.9)],
    "geom.pmf": [(1.5, 0.5)],
    "bernoulli.pmf": [(0.5, 0.3)],
    "bernoulli.ppf": [(0.0, 0.3)],
    "betabinom.pmf": [(1.5, 4, 2.0, 3.0)],
    "gamma.logpdf": [(2.0, 3.0), (np.arange(3), 0.5), (0.5, 2)],
    "vonmises.pdf": [(1.0, -1.0), (0.5, 1)],
    "wrapcauchy.pdf": [(1.0, 1.5)],
    "t.logpdf": [(2.0, 1e8), (2.0, 3.0)],
}


def test_edges_and_weak_types_as_in_jax() -> None:
    """Values outside of what the parameters mean, and whether Python numbers stay weak."""
    script = "\n".join(
        f"y = jax.scipy.stats.{name}(*{args!r}); "
        f"out[{f'{name}{i}'!r}] = np.array(y); out[{f'{name}{i}w'!r}] = np.array(y.weak_type)"
        for name, cases in _EDGES.items()
        for i, args in enumerate(cases)
    ).replace("array([0, 1, 2])", "np.arange(3)")
    names = {name.split(".")[0] for name in _EDGES}
    imports = "\n".join(f"import jax.scipy.stats.{name}" for name in sorted(names))
    want = run_in_oracle(imports + "\n" + script)
    for name, cases in _EDGES.items():
        module, function = name.split(".")
        for i, args in enumerate(cases):
            got = getattr(getattr(stats, module), function)(*args)
            label = f"{name}{args}"
            assert got.weak_type == bool(want[f"{name}{i}w"]), label
            assert got.dtype == want[f"{name}{i}"].dtype, label
            # JAX's own single precision is off where it subtracts logarithms of large gammas.
            if all(np.all(np.abs(a) < 1e4) for a in args):
                np.testing.assert_allclose(got, want[f"{name}{i}"], rtol=1e-4, err_msg=label)


def test_small_tails_of_pareto() -> None:
    """The logarithm of a probability near 1 keeps the digits of what is missing."""
    x, b = np.array([1.0, 1.5, 50.0, 1e4], np.float32), np.float32(2.5)
    with np.errstate(divide="ignore"):
        want = np.log1p(-(x.astype(float) ** -float(b)))
    got = stats.pareto.logcdf(x, b)
    np.testing.assert_allclose(got, want, rtol=5e-6)  # x^-b rounds as b log x does
    assert nj.grad(stats.pareto.logcdf)(x[0], b) == np.inf


@pytest.mark.parametrize("bounds", [(-2.5, 0.99), (-np.inf, 1.0), (-1.0, np.inf), (40.0, 42.0)])
def test_derivatives_of_truncated_normals(bounds: tuple) -> None:
    """Outside of the bounds the distribution is constant; inside its slope is the density."""
    x = jnp.array([-3.0, -2.5, -1.0, 0.3, 0.98, 0.99, 4.0, 41.0, 43.0])
    for name, sign in (("cdf", 1), ("sf", -1)):
        got = nj.vmap(nj.grad(getattr(stats.truncnorm, name)), (0, None, None))(x, *bounds)
        inside = (x > bounds[0]) & (x < bounds[1])
        want = np.where(inside, sign * scipy.stats.truncnorm.pdf(x, *bounds), 0)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-7)
        slope = nj.vmap(nj.grad(getattr(stats.truncnorm, "log" + name)), (0, None, None))
        assert np.isfinite(slope(x, *bounds)).all()


def test_no_nan_of_no_elements() -> None:
    """Under debug_nans a parameter that means nothing raises where there is a result."""
    with nj.debug_nans(True):
        assert stats.gamma.logcdf(jnp.zeros((0, 3)), -4.0).shape == (0, 3)
        with pytest.raises(FloatingPointError):
            stats.gamma.logcdf(jnp.ones(3), -4.0)


def test_mode_is_the_first_of_equal_ones() -> None:
    """Its derivative is there, as in JAX; ranks of its own arrays are no concern of the user's."""
    got = nj.grad(lambda x: stats.mode(x).mode)(jnp.array([3.0, -3.0, 3.0]))
    np.testing.assert_array_equal(got, [1, 0, 0])
    with nj.numpy_rank_promotion("raise"):
        found = stats.mode(jnp.array([[6, 7, 5], [0, 6, -1], [0, 7, 7]]))
    np.testing.assert_array_equal(found, [[0, 7, -1], [2, 2, 1]])


def test_cauchy_keeps_its_digits_at_both_ends() -> None:
    q = np.array([0, 1e-30, 0.01, 0.25, 0.5, 0.6, 0.75, 0.9, 1 - 2**-24, 1], np.float32)
    x = np.array([-1e5, -2, 0, 3, 1e5, 1e15], np.float32)
    cauchy, p, z = stats.cauchy, q.astype(float), (x.astype(float) - 0.5) / 2
    with np.errstate(divide="ignore"):  # SciPy 1.13 loses the digits itself
        low, high = [2 / np.tan(np.pi * np.minimum(tail, 0.5)) for tail in (p, 1 - p)]
    below, above = np.arctan2(1, -z) / np.pi, np.arctan2(1, z) / np.pi
    wanted = {
        "ppf": (q, 0.5 - low + high),
        "isf": (q, 0.5 + low - high),
        "logcdf": (x, np.where(above < 0.5, np.log1p(-above), np.log(below))),
        "logsf": (x, np.where(below < 0.5, np.log1p(-below), np.log(above))),
    }
    for name, (at, want) in wanted.items():
        got = getattr(cauchy, name)(jnp.array(at), 0.5, 2.0)
        np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-5, err_msg=name)
        slope = nj.vmap(nj.grad(getattr(cauchy, name)))(jnp.array(at), 0.5 + 0 * at, 2.0 + 0 * at)
        assert not jnp.isnan(slope).any(), name


def test_slopes_at_ends_and_kinks_are_those_from_within() -> None:
    slope = lambda f, *rest: nj.vmap(nj.grad(lambda x: f(x, *rest)))
    np.testing.assert_allclose(slope(stats.laplace.cdf)(jnp.array([-0.0, 0.0])), [0.5, 0.5])
    np.testing.assert_array_equal(slope(stats.uniform.cdf)(jnp.array([0.0, 1.0, 2.0])), [1, 1, 0])
    ends = slope(stats.truncnorm.logpdf, -1.5, 2.0)(jnp.array([-1.5, 2.0]))
    np.testing.assert_allclose(ends, [1.5, -2.0], rtol=1e-6)


def test_places_at_infinity_and_scales_that_are_not_positive() -> None:
    assert stats.cauchy.sf(1.0, loc=-jnp.inf) == 0 and stats.cauchy.cdf(1.0, loc=-jnp.inf) == 1
    assert stats.cauchy.logcdf(-1e30, -1e30) == np.float32(np.log(0.5))
    for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
        for d in (stats.gumbel_l, stats.gumbel_r):
            assert jnp.isnan(getattr(d, name)(0.5, 0.0, jnp.array([0.0, -1.0]))).all()


def test_distributions_that_compare_take_no_complex_numbers() -> None:
    z = jnp.array([1.0 + 0j])
    for f in (
        stats.expon.pdf, stats.expon.logcdf, stats.expon.sf, stats.gumbel_l.cdf, stats.gumbel_l.ppf,
        stats.gumbel_r.logpdf, stats.gumbel_r.ppf, stats.laplace.pdf, stats.laplace.cdf,
        stats.uniform.pdf, stats.uniform.logpdf, stats.uniform.cdf,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="complex64"):
            f(z)
    for f in (
        stats.bernoulli.pmf, stats.bernoulli.cdf, stats.bernoulli.ppf, stats.geom.logpmf,
        stats.wrapcauchy.pdf, stats.pareto.pdf, stats.pareto.logcdf, stats.pareto.sf,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="complex64"):
            f(z, 0.5)
    for f in (stats.truncnorm.pdf, stats.truncnorm.cdf, stats.truncnorm.logsf):
        with pytest.raises(TypeError, match="complex64"):
            f(z, -1.0, 1.0)
    assert stats.pareto.ppf(z, 0.5).dtype == stats.uniform.ppf(z).dtype == jnp.complex64


def test_derivatives_by_numbers_that_are_strong() -> None:
    for f in (
        special.log_ndtr, special.expi, special.exp1, lambda x: special.expn(3, x),
        stats.norm.logcdf, lambda x: stats.norm.logsf(x, 0.5, 2.0),
    ):  # fmt: skip
        y, pull = nj.vjp(f, 0.75)
        for t in (y, pull(jnp.float32(1))[0], nj.jvp(f, (0.75,), (1.0,))[1], nj.grad(f)(0.75)):
            assert t.dtype == jnp.float32 and not t.weak_type
    assert nj.grad(special.ndtr)(0.75).weak_type


def test_support_of_scales_that_are_not_positive() -> None:
    """Which values lie before the support is asked of them, not of what the scale made of them."""
    x = jnp.array([-2.0, 0.5])
    for d, args, cut in ((stats.expon, (), 0.0), (stats.gamma, (1.5,), 0.0)):
        got = d.pdf(x, *args, cut, -1.0)
        assert got[0] == 0 and jnp.isnan(got[1])
    got = stats.chi2.logpdf(x, 3.0, 0.0, -2.0)
    assert got[0] == -jnp.inf and jnp.isnan(got[1])
    assert stats.expon.sf(-2.0, 0.0, -1.0) == 1 and stats.expon.logcdf(-2.0, 0.0, -1.0) == -jnp.inf
    assert stats.pareto.sf(-2.5, 2.0, 0.0, -1.0) == 1


def test_no_probability_without_a_shape() -> None:
    for f in (stats.gamma.cdf, stats.gamma.sf, stats.gamma.logcdf, stats.chi2.cdf, stats.chi2.sf):
        assert jnp.isnan(f(jnp.array([-1.0, 0.0, 0.5, 30.0]), 0.0)).all()


def test_what_is_no_probability_has_no_slope() -> None:
    assert nj.grad(lambda loc: stats.expon.ppf(1.5, loc))(0.25) == 0
    assert nj.grad(lambda loc: stats.expon.ppf(0.5, loc))(0.25) == 1


def test_standard_errors_along_axes_that_are_not_there() -> None:
    for axis in (1, -2):
        with pytest.raises(IndexError, match="out of range"):
            stats.sem(jnp.ones(3), axis)
        with pytest.raises(ValueError, match="out of bounds"):
            stats.sem(jnp.ones(3), axis, nan_policy="omit")


def test_mode_of_a_number_keeps_an_axis() -> None:
    assert [v.shape for v in stats.mode(3.0, axis=None, keepdims=True)] == [(1,), (1,)]
    assert [v.shape for v in stats.mode(3.0, axis=None)] == [(), ()]


def test_slopes_where_the_support_begins_and_at_infinity() -> None:
    assert nj.grad(stats.expon.logcdf)(0.0) == jnp.inf
    assert nj.grad(stats.pareto.logcdf)(1.0, 2.0) == jnp.inf
    for f in (stats.gamma.cdf, stats.gamma.logsf, stats.chi2.cdf):
        assert nj.grad(f)(jnp.inf, 4.0) == 0


def test_counts_are_whole_after_they_are_shifted() -> None:
    got = stats.betabinom.pmf(jnp.array([0.25, 1.25]), 4, 1.5, 2.0, 0.25)
    np.testing.assert_allclose(got, scipy.stats.betabinom.pmf([0, 1], 4, 1.5, 2.0), rtol=1e-5)


@pytest.mark.parametrize("b", [0.3, 5.0])
def test_far_tails_of_powers_keep_their_digits(b) -> None:
    """Of exp(-b log x) each unit of the logarithm costs a unit in the last place."""
    x, b = np.array([7.0, 90.0, 6000.0, 2e5], np.float32), np.float32(b)
    far = x.astype(np.float64) ** -float(b)
    np.testing.assert_allclose(stats.pareto.sf(x, b), far, rtol=5e-7)
    np.testing.assert_allclose(stats.pareto.logcdf(x, b), np.log1p(-far), rtol=5e-7)
    slope = nj.vmap(nj.grad(stats.pareto.cdf), (0, None))(x, b)
    np.testing.assert_allclose(slope, float(b) * far / x, rtol=1e-6)
