"""Random numbers from explicit keys, in JAX's names: the same key gives the same bits.

Layer 6: built on the operations, not on numjet.numpy.
"""

from __future__ import annotations

import functools as _functools
import inspect as _inspect
from collections.abc import Callable as _Callable
from typing import Any as _Any

from numjet.api.eager.large import (
    drawn as _drawn,
    elements as _elements,
    wrap_public as _wrap_public,
)
from numjet.api.placement.reshard import laid_out as _laid_out
from numjet.random import (  # noqa: F401
    jax_forms as _jax_forms,
    jax_forms_more as _jax_forms_more,
)
from numjet.random.basic import (
    bernoulli,
    categorical,
    choice,
    gumbel,
    normal,
    permutation,
    rademacher,
    randint,
    truncated_normal,
    uniform,
)
from numjet.random.continuous import (
    ball,
    cauchy,
    chisquare,
    double_sided_maxwell,
    exponential,
    f,
    generalized_normal,
    geometric,
    laplace,
    logistic,
    lognormal,
    maxwell,
    multivariate_normal,
    orthogonal,
    pareto,
    rayleigh,
    t,
    triangular,
    wald,
    weibull_min,
)
from numjet.random.counts import binomial, multinomial
from numjet.random.keys import (
    PRNGKey,
    bits,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from numjet.random.rejection import (
    beta,
    dirichlet,
    gamma,
    loggamma,
    poisson,
    random_gamma_p,
)

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "random_gamma_p",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]



def _keeping_layouts(function: _Callable) -> _Callable:
    """`function`, whose results have the layout that is asked for as `out_sharding`."""

    @_functools.wraps(function)
    def draw(*args: _Any, out_sharding: _Any = None, **kwargs: _Any) -> _Any:
        if out_sharding is None:
            return function(*args, **kwargs)
        made = _functools.partial(function, *args, **kwargs)
        return _laid_out(made, out_sharding, anew=True)

    draw.__module__ = __name__  # where pickle finds it
    return draw


# Draws that are rejected are drawn again, in loops whose bodies would be traced in each call.
_BY_REJECTION = "beta chisquare dirichlet f gamma generalized_normal loggamma t".split()
# Logarithms of programs and of NumPy differ in last bits, and a key draws the same numbers always.
_BY_LOGARITHM = ("cauchy double_sided_maxwell exponential gumbel laplace logistic lognormal "
                 "maxwell pareto rayleigh wald weibull_min").split()  # fmt: skip
# Distributions, by the place of their argument `shape`.
for _name in __all__:
    _parameters = list(_inspect.signature(globals()[_name]).parameters) if callable(
        globals()[_name]) else []
    if "shape" in _parameters and _name not in ("random_gamma_p", "split"):
        _count = _drawn(_parameters.index("shape"))
        _always = _name in (*_BY_REJECTION, *_BY_LOGARITHM)
        _wrap_public(globals(), __name__, [_name], _count, _always)
    if _name == "permutation":
        _wrap_public(globals(), __name__, [_name], _elements)
    if "out_sharding" in _parameters:
        globals()[_name] = _keeping_layouts(globals()[_name])
