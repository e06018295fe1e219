"""numjet.scipy.stats: probability distributions, a module each. They load when first used."""

import importlib as _importlib

_DISTRIBUTIONS = (
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "geom",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "t",
    "uniform",
)


def __getattr__(name: str) -> object:
    if name in _DISTRIBUTIONS:
        return _importlib.import_module(f"numjet.scipy.stats.{name}")
    raise AttributeError(f"module 'numjet.scipy.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_DISTRIBUTIONS})
