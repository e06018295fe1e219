"""numjet.scipy.stats: probability distributions, a module each, and statistics of samples.

They load when first used.
"""

import importlib as _importlib

_DISTRIBUTIONS = (
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
)
_SAMPLES = {"gaussian_kde": "kde", "mode": "samples", "rankdata": "samples", "sem": "samples"}


def __getattr__(name: str) -> object:
    if name in _DISTRIBUTIONS:
        return _importlib.import_module(f"numjet.scipy.stats.{name}")
    if name in _SAMPLES:
        return getattr(_importlib.import_module(f"numjet.scipy.stats.{_SAMPLES[name]}"), name)
    raise AttributeError(f"module 'numjet.scipy.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_DISTRIBUTIONS, *_SAMPLES})
