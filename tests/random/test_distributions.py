"""Derived distributions agree with JAX to rounding, and differentiate."""

from __future__ import annotations

import numpy as np
import pytest
from same_script import compare
from scipy import special
from scipy.special import gammainc
from scipy.stats import invgauss, kstest, levy

import numjet as nj
from numjet import random

SHAPES = """
key = random.key(0)
one, two, row = np.ones(1, "f4"), np.ones(2, "f4"), np.ones((1, 3), "f4")
def shape_of(name, function, *args, **kwargs):
    try:
        got = function(key, *args, **kwargs)
        out[f"{name} shape"] = np.array(got.shape)
        out[f"~{name}"] = got
    except ValueError:
        out[f"{name} refused"] = np.array(1)
for n, (low, high) in enumerate([(0 * one, one), (0 * one[None], one), (0 * one, 2.), (0., one),
                                 (0., one[None])]):
    shape_of(f"uniform{n}", random.uniform, (), "float32", low, high)
shape_of("uniform of none", random.uniform, (), "float32", two[:0], 1.)
shape_of("weibull one", random.weibull_min, one, 1., ())
shape_of("weibull two", random.weibull_min, two * 2, 1.5, ())
shape_of("weibull row", random.weibull_min, 1., row, (3,))
shape_of("weibull both", random.weibull_min, two[:, None], row[0] * 2, (3,))
shape_of("dirichlet", random.dirichlet, row, ())
shape_of("dirichlet rows", random.dirichlet, row, (2, 1))
shape_of("generalized normal", random.generalized_normal, one, ())
shape_of("gamma", random.gamma, one, ())
"""
CONTINUOUS = """
for seed in (0, 5):
    key, shape = random.key(seed), (40,)
    for name in ("exponential", "laplace", "logistic", "cauchy", "maxwell", "gumbel"):
        out[f"~{name}{seed}"] = getattr(random, name)(key, shape)
    for name, parameters in {
        "pareto": (2.5,), "rayleigh": (2.5,), "weibull_min": (2., 1.5), "lognormal": (.5,),
        "double_sided_maxwell": (1., 2.), "triangular": (0., 1., 3.), "wald": (2.,),
        "chisquare": (3.,), "f": (3., 4.), "t": (3.,), "generalized_normal": (1.5,),
        "truncated_normal": (-1.5, .7),
    }.items():
        out[f"~{name}{seed}"] = getattr(random, name)(key, *parameters, shape)
    out[f"~ball{seed}"] = random.ball(key, 3, 2, (5,))
    out[f"~orthogonal{seed}"] = random.orthogonal(key, 4, (2,), m=2)
    cov = np.array([[2, .3], [.3, 1]], "float32")
    mean = np.array([1, 2], "float32")
    out[f"~mvn{seed}"] = random.multivariate_normal(key, mean, cov, (5,))
    out[f"~mvn_batch{seed}"] = random.multivariate_normal(key, mean, np.stack([cov, cov * 2]))
    out[f"geometric{seed}"] = random.geometric(key, .3, shape)
    out[f"~complex{seed}"] = random.normal(key, shape, "complex64")
"""
REJECTION = """
for seed in (0, 5):
    key = random.key(seed)
    for a in (.3, 1., 2.5, 40.):
        out[f"~gamma{seed},{a}"] = random.gamma(key, a, (50,))
        out[f"~loggamma{seed},{a}"] = random.loggamma(key, a, (50,))
        out[f"~beta{seed},{a}"] = random.beta(key, a, 1.5, (20,))
    out[f"~dirichlet{seed}"] = random.dirichlet(key, np.array([.2, 1, 3], "float32"), (7,))
    for rate in (0., .5, 9.9, 10., 200.):
        out[f"poisson{seed},{rate}"] = random.poisson(key, rate, (40,))
out["~dgamma"] = grad(lambda a: random.gamma(random.key(0), a))(2.5)
out["~dloggamma"] = grad(lambda a: random.loggamma(random.key(0), a))(.4)
"""


@pytest.mark.oracle
@pytest.mark.parametrize(
    "script", [CONTINUOUS, REJECTION, SHAPES], ids=["continuous", "rejection", "shapes"])
def test_same_values(script: str) -> None:
    compare(script, rtol=2e-4, atol=1e-5)


def test_moments() -> None:
    x = np.asarray(random.normal(random.key(1), (100_000,)))
    assert abs(x.mean()) < 0.02
    assert abs(x.std() - 1) < 0.02
    g = np.asarray(random.gamma(random.key(1), 3.0, (20_000,)))
    assert abs(g.mean() - 3) < 0.1


def test_large_arrays_are_the_beginning_of_the_same_stream() -> None:
    few, many = random.uniform(random.key(2), (1000,)), random.uniform(random.key(2), (100_000,))
    np.testing.assert_array_equal(few, np.asarray(many)[:1000])


def test_gradient_with_respect_to_bounds() -> None:
    def total(low: float) -> object:
        return random.uniform(random.key(0), (10,), minval=low, maxval=2.0).sum()

    assert float(nj.grad(total)(0.5)) == pytest.approx(
        10 - float(random.uniform(random.key(0), (10,)).sum()), rel=1e-4
    )


def test_parameters_that_are_none_or_lists() -> None:
    key = random.key(0)
    for name in "gamma beta t lognormal truncated_normal pareto wald chisquare rayleigh".split():
        more = (1.0,) if name in ("beta", "truncated_normal") else ()
        with pytest.raises(ValueError, match="None"):
            getattr(random, name)(key, None, *more)
    for call in (
        lambda: random.uniform(key, (2,), minval=None),
        lambda: random.bernoulli(key, None),
        lambda: random.fold_in(key, None),
        lambda: random.key(None),
    ):
        with pytest.raises(ValueError, match="None"):
            call()
    for name in ("poisson", "binomial", "geometric", "generalized_normal", "categorical"):
        more = (0.5,) if name == "binomial" else ()
        for given in (None, [0.5]):
            with pytest.raises(TypeError):
                getattr(random, name)(key, given, *more)
    with pytest.raises(TypeError):
        random.multinomial(key, 5, [0.5, 0.5])


def test_shapes_that_are_refused() -> None:
    key, three = random.key(0), np.ones(3, np.float32)
    for call in (
        lambda: random.gamma(key, 1.0, (-1,)),
        lambda: random.randint(key, (-1,), 0, 2),
        lambda: random.ball(key, -1),
        lambda: random.uniform(key, (2,), minval=three),
        lambda: random.choice(key, 5, 2),
        lambda: random.permutation(key, three, 0.0),
        lambda: random.orthogonal(key, 2.0),
    ):
        with pytest.raises(TypeError):
            call()
    assert random.permutation(key, -3).shape == (0,)
    assert random.rademacher(key, (4,), bool).all()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "lower, upper", [(2.5, 3.0), (6.0, 6.5), (-np.inf, -9.0), (13.0, np.inf), (-51.0, -50.0)]
)
def test_normal_values_between_bounds_in_one_tail(lower, upper, compiled) -> None:
    def draw(low, high):
        return random.truncated_normal(random.key(4), low, high, (4000,))

    out = np.asarray((nj.jit(draw) if compiled else draw)(lower, upper), np.float64)
    assert out.min() > lower and out.max() < upper
    near, far = sorted([abs(lower), abs(upper)])
    tail = lambda x: special.log_ndtr(-np.abs(x)) - special.log_ndtr(-near)  # noqa: E731
    distribution = lambda x: np.expm1(tail(x)) / np.expm1(tail(far))  # noqa: E731
    assert kstest(np.abs(out), distribution).pvalue > 1e-4


def test_normal_values_in_tails_and_outside_of_them() -> None:
    low, high = np.float32([-1, 7, -8, -1]), np.float32([1, 8, -7, 1])
    draw = lambda a, b: random.truncated_normal(random.key(9), a, b, (4,))  # noqa: E731
    out = np.asarray(draw(low, high))
    assert np.all((out > low) & (out < high))
    np.testing.assert_allclose(nj.jit(draw)(low, high), out, rtol=1e-6)
    np.testing.assert_array_equal(out[[0, 3]], np.asarray(draw(-1, 1))[[0, 3]])
    mapped = nj.vmap(lambda a, b: random.truncated_normal(random.key(9), a, b))(low, high)
    assert np.all((np.asarray(mapped) > low) & (np.asarray(mapped) < high))


@pytest.mark.parametrize("bounds", [(-1.0, 1.5), (3.0, 4.0), (-9.0, -8.0), (5.0, np.inf)])
def test_truncated_normal_is_differentiable_in_its_bounds(bounds) -> None:
    with nj.enable_x64(True):
        draw = lambda a, b: random.truncated_normal(random.key(2), a, b, (5,))  # noqa: E731
        for k in range(2):
            if np.isinf(bounds[k]):
                continue
            moved = [list(bounds), list(bounds)]
            moved[0][k] -= 1e-6
            moved[1][k] += 1e-6
            difference = (draw(*moved[1]) - draw(*moved[0])) / 2e-6
            np.testing.assert_allclose(nj.jacfwd(draw, k)(*bounds), difference, 1e-6, 1e-8)
            gradient = nj.grad(lambda *b: draw(*b).sum(), k)(*bounds)
            np.testing.assert_allclose(gradient, difference.sum(), 1e-6, 1e-8)


@pytest.mark.parametrize("mean", [1e-3, 1.0, 1e4, 1e9])
def test_inverse_gaussian_values_of_all_means(mean: float) -> None:
    out = np.asarray(random.wald(random.key(5), np.float32(mean), (4000,)), np.float64)
    distribution = invgauss(mean).cdf if mean < 1e6 else levy.cdf      # its limit
    assert kstest(out, distribution).pvalue > 1e-4


@pytest.mark.parametrize("p", [0.5, 4.0, 25.0, 100.0])
def test_generalized_normal_values_near_zero(p: float) -> None:
    out = np.asarray(random.generalized_normal(random.key(6), p, (4000,)), np.float64)
    below = lambda x: gammainc(1 / p, np.abs(x) ** p)  # noqa: E731
    assert kstest(np.abs(out), below).pvalue > 1e-4
