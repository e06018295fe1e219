"""Distributions against SciPy's: inside of the support, at its ends, outside, NaN; derivatives."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats

import numjet as nj
import numjet.numpy as jnp

INF, NAN = np.inf, np.nan
LINE = np.array([-30.0, -3.0, -0.5, 0.0, 0.2, 1.0, 2.5, 40.0, -INF, INF, NAN])
UNIT = np.array([-0.5, 0.0, 1e-3, 0.25, 0.5, 0.9, 1.0, 1.5, NAN])
PARTS = np.array([0.01, 0.2, 0.5, 0.9, 0.999, -1.0, 1.5, NAN])
COUNTS = np.array([-1.0, 0, 1, 2, 5, 9, 10, 11, NAN])
# Values and sets of parameters (the last have loc and scale, or loc).
CONTINUOUS: dict[str, tuple[np.ndarray, list[tuple]]] = {
    "uniform": (LINE, [(), (0.3, 2.0)]),
    "expon": (LINE, [(), (0.3, 2.0)]),
    "laplace": (LINE, [(), (0.3, 2.0)]),
    "logistic": (LINE, [(), (0.3, 2.0)]),
    "cauchy": (LINE, [(), (0.3, 2.0)]),
    "gumbel_l": (LINE[~np.isinf(LINE)], [(), (0.3, 2.0)]),
    "gumbel_r": (LINE[~np.isinf(LINE)], [(), (0.3, 2.0)]),
    "norm": (LINE, [(), (0.3, 2.0)]),
    "gamma": (LINE, [(0.5,), (3.0, 0.3, 2.0)]),
    "chi2": (LINE, [(1.5,), (2.0,), (4.0, 0.3, 2.0)]),
    "t": (LINE, [(1.5,), (30.0, 0.3, 2.0)]),
    "pareto": (LINE, [(1.5,), (3.0, 0.3, 2.0)]),
    "beta": (UNIT, [(0.5, 0.7), (2.0, 3.0, -0.2, 1.5)]),
}
DISCRETE: dict[str, list[tuple]] = {
    "bernoulli": [(0.3,), (1.0, 1.0)],
    "binom": [(10, 0.3), (9, 0.0), (9, 1.0, 1.0)],
    "nbinom": [(10, 0.3), (2.5, 0.9, 1.0)],
    "geom": [(0.3,), (0.9, 2.0)],
    "poisson": [(3.5,), (0.2, 1.0)],
}


def same(name: str, function: str, *args: Any) -> None:
    """Equal to SciPy's, in both widths, compiled and not."""
    f = getattr(importlib.import_module(f"numjet.scipy.stats.{name}"), function)
    with np.errstate(all="ignore"):
        want = getattr(getattr(scipy.stats, name), function)(*args)
    for x64, rtol, atol in ((False, 2e-4, 2e-6), (True, 1e-10, 1e-13)):
        with nj.enable_x64(x64):
            for call in (f, nj.jit(f)):
                got = call(*args)
                assert got.dtype == (jnp.float64 if x64 else jnp.float32)
                label = f"{name}.{function}{args[1:]}"
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=label)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    module = importlib.import_module(f"numjet.scipy.stats.{name}")
    values, cases = CONTINUOUS[name]
    for args in cases:
        for function in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"):
            if not hasattr(module, function):
                continue
            kept = values
            if function.startswith("log") and function != "logpdf":
                kept = values[np.abs(values) < 20]  # tails beyond the range of single precision
            same(name, function, kept, *args)
        for function in ("ppf", "isf"):
            if hasattr(module, function):
                same(name, function, PARTS, *args)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str) -> None:
    for args in DISCRETE[name]:
        same(name, "logpmf", COUNTS, *args)
        same(name, "pmf", COUNTS, *args)
        if name in ("bernoulli", "poisson") and len(args) == 1:
            same(name, "cdf", np.append(COUNTS, 3.7), *args)
        if name == "bernoulli" and len(args) == 1:
            same(name, "ppf", np.array([0.05, 0.1, 0.7, 0.8, 1.0, 1.1, NAN]), *args)


def test_gumbel_tails_and_infinities() -> None:
    from numjet.scipy.stats import gumbel_l, gumbel_r

    for side, module in ((1.0, gumbel_r), (-1.0, gumbel_l)):
        for f in (module.logpdf, nj.jit(module.logpdf)):
            assert f(INF).item() == f(-INF).item() == -INF
            assert nj.grad(module.pdf)(side * -INF).item() == 0
        upper = module.logsf if side > 0 else module.logcdf
        far = np.array([14.9, 15.1, 800.0])
        np.testing.assert_allclose(upper(side * far), -far)
        np.testing.assert_array_equal(module.ppf(np.array([0.0, 1, -1])), [-INF, INF, NAN])


def test_the_logistic_density_continues_to_complex_numbers() -> None:
    for z in (0.4 - 1.1j, -2.0 + 0.3j):
        want = 0.25 / np.cosh(z / 4) ** 2 / 2
        got = nj.scipy.stats.logistic.pdf(jnp.complex64(z), scale=2.0)
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_vectors() -> None:
    rng = np.random.default_rng(0)
    x, mean = rng.standard_normal((5, 3)), rng.standard_normal(3)
    root = rng.standard_normal((3, 3))
    cov = root @ root.T + np.eye(3)
    same("multivariate_normal", "logpdf", x, mean, cov)
    same("multivariate_normal", "pdf", x, mean, cov)
    same("multivariate_normal", "logpdf", x[:, 0], 0.5, 2.0)
    same("multivariate_normal", "logpdf", x, mean, 2.0)
    parts = rng.dirichlet([1.0, 2, 3], 6).T
    same("dirichlet", "logpdf", parts[:, 0] / parts[:, 0].sum(), np.array([0.5, 2.0, 3.0]))
    same("multinomial", "logpmf", np.array([1, 3, 6]), 10, np.array([0.2, 0.3, 0.5]))
    same("multinomial", "pmf", np.array([1, 3, 6]), 11, np.array([0.2, 0.3, 0.5]))
    same("multinomial", "logpmf", np.array([0, 4, 6]), 10, np.array([0.0, 0.4, 0.6]))


def test_batches_of_normal_vectors() -> None:
    from numjet.scipy.stats import multivariate_normal

    rng = np.random.default_rng(1)
    x, mean = rng.standard_normal((2, 4, 3)), rng.standard_normal((4, 3))
    root = rng.standard_normal((4, 3, 3))
    cov = root @ root.transpose(0, 2, 1) + np.eye(3)
    got = multivariate_normal.logpdf(x, mean, cov)
    want = [
        [scipy.stats.multivariate_normal.logpdf(x[i, j], mean[j], cov[j]) for j in range(4)]
        for i in range(2)
    ]
    np.testing.assert_allclose(got, want, rtol=1e-4)
    by_map = nj.vmap(multivariate_normal.logpdf)(x[0], mean, cov)
    np.testing.assert_allclose(by_map, want[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "outside", "args"),
    [
        ("uniform", -1.0, ()),
        ("expon", -1.0, ()),
        ("gamma", -1.0, (2.0,)),
        ("beta", 1.5, (2.0, 3.0)),
        ("pareto", 0.5, (2.0,)),
        ("chi2", -1.0, (3.0,)),
    ],
)
def test_derivatives_outside_of_the_support_are_zero(name: str, outside: float, args: tuple):
    module = importlib.import_module(f"numjet.scipy.stats.{name}")
    for function in (module.logpdf, module.pdf):
        gradient = nj.grad(lambda x: function(x, *args))(outside)  # noqa: B023
        assert float(gradient) == 0, function


def test_derivatives_by_parameters() -> None:
    from numjet.scipy.stats import binom, gamma, poisson, t
    from numjet.test_util import check_grads

    with nj.enable_x64(True):
        check_grads(lambda a, s: gamma.logpdf(1.3, a, 0.1, s), (2.5, 0.8), 2)
        check_grads(lambda d: t.logpdf(0.4, d), (3.5,), 2)
        check_grads(lambda p: binom.logpmf(3, 10, p), (0.3,), 2)
        check_grads(lambda mu: poisson.logpmf(4, mu), (2.2,), 2)


def test_mistakes_are_explained() -> None:
    from numjet.scipy.stats import dirichlet, multivariate_normal

    with pytest.raises(ValueError, match="alpha must be a vector"):
        dirichlet.logpdf(jnp.ones(5) / 5, jnp.ones(3))
    with pytest.raises(ValueError, match=r"cov must be \(3, 3\)"):
        multivariate_normal.logpdf(jnp.ones(3), jnp.ones(3), jnp.eye(2))
    with pytest.raises(AttributeError, match="no attribute 'zipf'"):
        nj.scipy.stats.zipf  # noqa: B018
