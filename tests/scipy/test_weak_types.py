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
STRONG = """2 stats.norm.cdf 3 stats.truncnorm.cdf 2 stats.uniform.cdf
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


def test_weak_transforms_and_trends() -> None:
    """Gradients of Fourier transforms are as weak as the operand, convolutions as both operands."""
    array, weak = KINDS["array"], KINDS["weak array"]

    def gradient(function, x):
        return nj.eval_shape(nj.grad(lambda x: jnp.abs(function(x)).sum()), x).weak_type

    for function in (jnp.fft.fft, jnp.fft.rfft, jnp.fft.irfft):
        assert gradient(function, weak) and not gradient(function, array)
        # Padding comes before the numbers become complex; its gradient is strong.
        assert not gradient(lambda x, f=function: f(x, n=8), weak)
    signal = nj.scipy.signal
    for x, y in product((array, weak), repeat=2):
        for function in (signal.convolve, signal.correlate):
            assert nj.eval_shape(function, x, y).weak_type == (x is y is weak)
    assert nj.eval_shape(signal.detrend, weak).weak_type
    assert not nj.eval_shape(signal.detrend, array).weak_type


def test_quantiles_are_of_the_default_dtype() -> None:
    with nj.enable_x64(True):
        q = jnp.array([0.25], "float32")
        assert nj.scipy.stats.norm.ppf(q).dtype == nj.scipy.stats.norm.isf(q).dtype == np.float64


def test_strict_promotion_sees_no_constants() -> None:
    """What is made of one dtype's numbers alone needs no promotion of the user's."""
    x = np.sin(np.arange(16, dtype=np.float32))
    signal, ways = nj.scipy.signal, nj.scipy.stats.multinomial.pmf
    calls = [
        lambda: signal.csd(x, x[::-1], nperseg=8)[1],
        lambda: signal.stft(x, nperseg=8)[2],
        lambda: signal.welch(x * np.complex64(1 + 2j), nperseg=8)[1],
        lambda: signal.detrend(x.astype(np.complex64)),
        lambda: ways(np.array([1, 1], np.int32), np.int32(2), np.array([0.5, 0.5], np.float32)),
    ]
    for call in calls:
        want = call()
        with nj.numpy_dtype_promotion("strict"):
            got = call()
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(calls[-1](), 0.5)


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
