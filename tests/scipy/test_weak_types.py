"""When results of scipy.special and scipy.stats are weak: JAX has four kinds of functions."""

from __future__ import annotations

import importlib
from itertools import product

import numpy as np
import pytest

import numjet as nj
from numjet import numpy as jnp

# Weak where all arguments join to a weak type; `parts` with a number before: of so many arguments.
JOINED = """2 stats.gennorm.cdf 2 stats.wrapcauchy.pdf 2 stats.expon.ppf 2 stats.gamma.sf
    3 stats.gamma.logsf 2 stats.gumbel_l.cdf 1 stats.gumbel_l.logcdf 3 stats.gumbel_l.logpdf
    2 stats.gumbel_l.logsf 2 stats.gumbel_l.pdf 2 stats.gumbel_l.ppf 2 stats.gumbel_l.sf
    2 stats.gumbel_r.cdf 2 stats.gumbel_r.logcdf 2 stats.gumbel_r.logpdf 2 stats.gumbel_r.logsf
    2 stats.gumbel_r.pdf 2 stats.gumbel_r.ppf 2 stats.logistic.cdf 2 stats.logistic.sf
    2 stats.pareto.logcdf 2 stats.poisson.pmf 2 stats.uniform.pdf 2 special.comb"""
# Only for a single first argument besides.
LED = """2 stats.bernoulli.cdf 2 stats.bernoulli.logpmf 2 stats.bernoulli.pmf 2 stats.bernoulli.ppf
    3 stats.beta.cdf 3 stats.beta.logsf 2 stats.cauchy.cdf 2 stats.cauchy.isf 2 stats.cauchy.sf
    2 stats.cauchy.logsf 2 stats.cauchy.logpdf 2 stats.chi2.cdf 2 stats.chi2.logpdf 2 stats.chi2.sf
    2 stats.gamma.cdf 2 stats.gamma.logcdf 2 stats.gamma.pdf 2 stats.geom.pmf 2 stats.gumbel_r.sf
    2 stats.laplace.cdf 2 stats.logistic.isf 2 stats.logistic.ppf 3 stats.nbinom.pmf
    2 stats.norm.pdf 2 stats.pareto.cdf 2 stats.pareto.ppf 2 stats.pareto.sf 2 stats.poisson.cdf
    2 stats.t.pdf 1 special.logit 2 special.kl_div 2 special.rel_entr"""
SINGLE = "2 stats.logistic.logpdf 2 stats.logistic.pdf"  # only for single arguments alone besides
STRONG = """2 stats.norm.cdf 2 stats.norm.ppf 3 stats.truncnorm.cdf 2 stats.uniform.cdf
    2 special.owens_t"""

KINDS = {
    "array": nj.ShapeDtypeStruct((3,), "float32"),
    "integers": nj.ShapeDtypeStruct((3,), "int32"),
    "weak array": nj.ShapeDtypeStruct((3,), "float32", weak_type=True),
    "float": nj.ShapeDtypeStruct((), "float32", weak_type=True),
    "int": nj.ShapeDtypeStruct((), "int32", weak_type=True),
}


def _listed(text: str) -> list[tuple[str, int]]:
    words = text.split()
    return [(name, int(count)) for count, name in zip(words[::2], words[1::2], strict=True)]


def _joins(kinds: tuple[str, ...]) -> bool:
    """Whether the kinds join to a weak type: floats count before integers."""
    floats = [k for k in kinds if k in ("array", "weak array", "float")]
    return not {"array", "integers"} & set(floats or kinds)


_WEAK = {
    JOINED: _joins,
    LED: lambda kinds: _joins(kinds) and kinds[0] in ("float", "int"),
    SINGLE: lambda kinds: _joins(kinds) and set(kinds) <= {"float", "int"},
    STRONG: lambda kinds: False,
}


@pytest.mark.parametrize(
    "name, count, group", [(*found, group) for group in _WEAK for found in _listed(group)]
)
def test_weak_types(name: str, count: int, group: str) -> None:
    path = name.rsplit(".", 1)
    function = getattr(importlib.import_module("numjet.scipy." + path[0]), path[1])
    # What is left out is 0 or 1.
    rest = ("int",) if name.startswith("stats.") and "gennorm" not in name else ()
    for kinds in product(KINDS, repeat=count):
        got = nj.eval_shape(function, *[KINDS[k] for k in kinds])
        assert got.weak_type == _WEAK[group](kinds + rest), kinds
        assert got.dtype == np.float32


def test_booleans_are_numbers() -> None:
    """The left Gumbel distribution is the right one at the other sign, of floats."""
    got = nj.scipy.stats.gumbel_l.logpdf(np.array([True, False]))
    np.testing.assert_allclose(got, [1 - np.e, -1], rtol=1e-6)
    assert got.weak_type


def test_owens_t_of_half_precision() -> None:
    for dtype in ("float16", "bfloat16"):
        got = nj.scipy.special.owens_t(jnp.array([1.0], dtype), 2.0)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, [0.07846819], rtol=1e-6)
