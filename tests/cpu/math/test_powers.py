"""Powers with constant exponents: products and square roots instead of logarithms."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

INF, NAN = float("inf"), float("nan")
EXPONENTS = [-6.0, -3.5, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.5]
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def raised(x, exponent):
    """x to a constant power, compiled."""
    with nj.enable_x64(True):
        run = nj.jit(lambda x: jnp.power(x, jnp.asarray(exponent, x.dtype)))
        return np.asarray(run(x)), run.lower(x).compile().as_text()


@BOTH
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_error_is_small(exponent, dtype):
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    whole = 2.0 ** rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, 150)
    x = np.concatenate([rng.uniform(0.5, 4, 300), whole]).astype(dtype)
    got, _ = raised(x, exponent)
    with mpmath.workdps(60):
        true = [mpmath.mpf(float(v)) ** exponent for v in x]
        for value, found, want in zip(x, got, true, strict=True):
            with np.errstate(all="ignore"):
                nearest = dtype(float(want)) if want < mpmath.mpf(2) ** 1024 else dtype(INF)
            if np.isinf(nearest) or np.isinf(found):
                assert want > mpmath.mpf(float(info.max)) * (1 - 4 * float(info.eps)), value
                continue
            ulp = float(np.spacing(np.abs(nearest)))
            assert abs(mpmath.mpf(float(found)) - want) <= 2 * mpmath.mpf(ulp), value


# C99: (base, exponent, power)
SPECIAL = [
    (0.0, 0.5, 0.0), (-0.0, 0.5, 0.0), (INF, 0.5, INF), (-INF, 0.5, INF), (-1.0, 0.5, NAN),
    (0.0, -0.5, INF), (-0.0, -0.5, INF), (INF, -0.5, 0.0), (-INF, -0.5, 0.0), (-2.0, -0.5, NAN),
    (0.0, -1.5, INF), (-0.0, -1.5, INF), (INF, -1.5, 0.0), (-INF, -1.5, 0.0), (-2.0, -1.5, NAN),
    (-0.0, 1.5, 0.0), (-INF, 1.5, INF), (NAN, 1.5, NAN), (NAN, -1.5, NAN), (NAN, 0.0, 1.0),
    (-0.0, 3.0, -0.0), (-INF, 3.0, -INF), (-2.0, 3.0, -8.0), (-0.0, -1.0, -INF), (-2.0, 2.0, 4.0),
    (-INF, 2.0, INF), (-0.0, -3.0, -INF), (-INF, -3.0, -0.0), (-2.0, -2.0, 0.25), (NAN, 1.0, NAN),
    (-0.0, 2.5, 0.0), (-INF, 2.5, INF), (-0.0, -3.5, INF), (-INF, -3.5, 0.0),
]  # fmt: skip


@BOTH
def test_special_values(dtype):
    for exponent in EXPONENTS:
        cases = [(x, y) for x, e, y in SPECIAL if e == exponent]
        if cases:
            x, want = (np.array(v, dtype) for v in zip(*cases, strict=True))
            got, _ = raised(np.concatenate([x, np.full(17, 2, dtype)]), exponent)
            got = got[: len(x)]
            np.testing.assert_array_equal(got, want, err_msg=str(exponent))
            real = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(want[real]))


def test_vectors_and_scalars_agree():
    x = np.array([3e-40, 1e-30, 0.7, 2.0, 1e30, 0.0, 3.0], np.float32)
    for exponent in EXPONENTS:
        together, _ = raised(x, exponent)
        alone = [float(raised(v[()], exponent)[0]) for v in x]
        np.testing.assert_array_equal(together, np.array(alone, np.float32))


def test_no_logarithm_is_computed():
    x = np.ones(64, np.float32)
    general = raised(x, 0.3)[1]
    for exponent in EXPONENTS:
        text = raised(x, exponent)[1]
        assert len(text) < 0.7 * len(general), exponent
