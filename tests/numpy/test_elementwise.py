"""Elementwise functions: values against NumPy, types against JAX, special values, errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_differential import B, C, F, G, I, J, P, U, agree
from oracle import run_in_oracle

import numjet
import numjet.numpy as jnp

UNARY = """sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 cbrt absolute fabs negative
sign square floor ceil trunc rint isnan isfinite isinf signbit deg2rad rad2deg sinc positive
isneginf isposinf logical_not reciprocal spacing i0 real imag conj angle nan_to_num iscomplex
isreal""".split()
BINARY = """add subtract multiply divide maximum minimum arctan2 hypot logaddexp logaddexp2 fmax
fmin mod fmod floor_divide remainder equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor heaviside isclose divmod copysign nextafter""".split()
INTEGER = """add subtract multiply divide maximum minimum mod fmod floor_divide remainder equal less
bitwise_and bitwise_or bitwise_xor right_shift gcd lcm power divmod""".split()
COMPLEX = """sin cos tan sinh cosh tanh exp log sqrt absolute square real imag conj angle negative
reciprocal isfinite sign""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    agree(name, F)
    agree(name, F[0, 0])


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "sqrt", "arccosh"])
def test_unary_of_positive(name):
    agree(name, P + 1)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arctanh"])
def test_unary_of_small(name):
    agree(name, F / 4)


@pytest.mark.parametrize("name", COMPLEX)
def test_unary_of_complex(name):
    agree(name, C)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    agree(name, F, G)
    agree(name, F, np.repeat(G[:1], 3, 0))
    agree(name, F, G[0])
    agree(name, F[:, :1], G[:1])


@pytest.mark.parametrize("name", INTEGER)
def test_binary_of_integers(name):
    agree(name, I, J)
    agree(name, U, U)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "equal", "power"])
def test_binary_of_complex(name):
    agree(name, C, C[:1] + 1)


def test_other_functions():
    agree("power", P, G)
    agree("power", F, 3)
    agree("float_power", P, G)
    agree("left_shift", J, J)
    agree("invert", I)
    agree("invert", B)
    agree("bitwise_count", I)
    agree("round", F, 2)
    agree("clip", F, -0.5, 0.5)
    agree("modf", F)
    agree("frexp", F)
    agree("ldexp", F, I)
    agree("where", B, F, G)
    agree("where", B, F, 0.0)
    agree("allclose", F, F)


@pytest.mark.parametrize("name", ["frexp", "spacing", "signbit", "nan_to_num", "sign", "modf"])
def test_special_values(name):
    agree(name, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38], np.float32))


@pytest.mark.parametrize(
    "name",
    [
        "fmax",
        "fmin",
        "maximum",
        "minimum",
        "logaddexp",
        "hypot",
        "heaviside",
        "copysign",
        "mod",
        "floor_divide",
    ],
)
def test_special_pairs(name):
    v = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], np.float32)
    x, y = (m.ravel() for m in np.meshgrid(v, v))
    if name == "floor_divide":
        # NumPy and JAX differ for infinite operands; NumPy's other cases hold.
        keep = np.isfinite(x) & np.isfinite(y) & (y != 0)
        x, y = x[keep], y[keep]
    if name == "mod":
        keep = np.isfinite(y)
        x, y = x[keep], y[keep]
    agree(name, x, y)


# Runs here and under JAX.
OPERATORS = """
import operator
names = "bool int8 int32 uint8 uint32 float16 bfloat16 float32 complex64 int float complex".split()
scalars = {"int": 2, "float": 2.0, "complex": 2j}
functions = dict(add=operator.add, truediv=operator.truediv, mul=operator.mul,
                 maximum=jnp.maximum, arctan2=jnp.arctan2, equal=operator.eq,
                 floordiv=operator.floordiv, where=lambda x, y: jnp.where(True, x, y),
                 power=jnp.power)
def value(name):
    return scalars[name] if name in scalars else jnp.ones(2, name)
"""


@pytest.mark.oracle
def test_dtypes_of_operators_are_jax_s():
    script = (
        OPERATORS
        + """
rows = []
for f in sorted(functions):
    for a in names:
        for b in names:
            try:
                # Tracing alone gives the types; compiling each case would take a minute.
                r = jax.eval_shape(lambda: jnp.asarray(functions[f](value(a), value(b))))
                rows.append(f'{f} {a} {b} {r.dtype.name} {int(r.weak_type)}')
            except (TypeError, ValueError):
                rows.append(f'{f} {a} {b} error')
out['rows'] = np.array(rows)
"""
    )
    want = [str(r) for r in run_in_oracle(script)["rows"]]
    scope = {"jnp": jnp}
    exec(OPERATORS, scope)
    wrong = []
    for row in want:
        f, a, b, *rest = row.split()
        try:
            r = scope["functions"][f](scope["value"](a), scope["value"](b))
            if not isinstance(r, jnp.ndarray):
                r = jnp.asarray(r)
            got = [r.dtype.name, str(int(r.weak_type))]
        except (TypeError, ValueError):
            got = ["error"]
        complex_angle = f == "arctan2" and rest[0] == "complex64"  # not supported here
        if got[0] == "bool":
            got[1] = rest[1]  # the weak type of a boolean has no consequence
        if got != rest and not complex_angle:
            wrong.append(f"{row} -> {got}")
    assert not wrong, "\n".join(wrong)


def test_the_shortcut_and_the_complete_way_agree():
    x = jnp.arange(4.0)
    for _ in range(3):  # the first call teaches the shortcut
        for f in (
            lambda x: x + x,
            lambda x: x * 2,
            lambda x: 2 - x,
            lambda x: x > 1,
            jnp.sin,
            lambda x: jnp.where(x > 1, x, 0.0),
            lambda x: x.sum(),
            lambda x: x[1],
        ):
            got, want = f(x), numjet.jit(f)(x)
            assert (got.dtype, got.shape, got.weak_type) == (want.dtype, want.shape, want.weak_type)
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_debug_nans_sees_the_shortcut():
    x = jnp.zeros(3)
    x / x
    x / x
    with numjet.debug_nans(True), pytest.raises(FloatingPointError):
        x / x


def test_warnings_of_numpy_stay_silent():
    with np.errstate(all="raise"):
        x = jnp.array([0.0, np.inf])
        for _ in range(2):
            x / 0.0
            x - x
            jnp.log(x - 1)
        jnp.float32(1e300)


def test_operators_defer_to_other_types():
    class Other:
        def __radd__(self, x):
            return "mine"

        def __rmatmul__(self, x):
            return "mine"

    x = jnp.arange(3)
    assert x + Other() == "mine" and x @ Other() == "mine"
    for y in ([1, 2, 3], None, "a"):
        with pytest.raises(TypeError):
            x + y
    assert (x == None) is False  # noqa: E711 - the comparison itself is the case
    assert (np.float32(2) * x).dtype == jnp.float32 and isinstance(np.ones(3) + x, jnp.ndarray)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.sin([1.0]), TypeError, "sin requires ndarray or scalar"),
        (lambda: jnp.add([1], 2), TypeError, "add requires ndarray or scalar"),
        (lambda: jnp.zeros((2, 3)) + jnp.zeros((2, 2)), TypeError, "Incompatible shapes"),
        (lambda: jnp.array(2) ** -1, TypeError, "negative powers"),
        (lambda: -jnp.array(True), TypeError, "neg"),
        (lambda: jnp.ones(2) & 1, TypeError, "and"),
        (lambda: jnp.zeros(2, "float16") + numjet.random.key(0), TypeError, "keys"),
        (lambda: jnp.floor(1j), TypeError, "complex"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_rank_promotion_can_be_refused():
    with numjet.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="Operands could"):
        jnp.ones((2, 3)) + jnp.ones(3)


def test_where_and_select_join_ranks_whatever_the_flag():
    row, table = jnp.arange(3.0), jnp.ones((2, 3))
    with numjet.numpy_rank_promotion("raise"):
        joined = jnp.where(table > 0, row, 0.0)
        np.testing.assert_array_equal(joined, np.tile(np.arange(3.0), (2, 1)))
        assert jnp.select([table > 0], [row]).shape == (2, 3)


@pytest.mark.parametrize("name", ["logaddexp", "hypot", "power", "arctan2", "maximum", "xlogy"])
def test_gradients_at_special_points_are_finite_or_documented(name):
    if name == "xlogy":
        from numjet.scipy.special import xlogy as f

        assert numjet.grad(f)(0.0, 2.0) == pytest.approx(np.log(2.0))
        return
    f = getattr(jnp, name)
    both = numjet.grad(lambda x, y: f(x, y), (0, 1))(2.0, 2.0)
    assert np.isfinite(both).all()
    if name == "logaddexp":
        np.testing.assert_allclose(both, [0.5, 0.5])
        np.testing.assert_allclose(numjet.grad(f)(-np.inf, 0.0), 0)


def test_complex_powers_of_zero():
    y = np.array([1j, 2 + 1j, -1 + 1j, -1, 2, 0], np.complex64)
    want = [np.nan, 0, np.nan, np.nan, 0, 1]
    for power in (jnp.power, numjet.jit(jnp.power)):
        for zero in (jnp.complex64(0), jnp.array(-0.0, jnp.complex64)):
            np.testing.assert_array_equal(np.asarray(power(zero, y)).real, want)


def test_complex_sums_of_exponentials():
    x, y = C[0], C[1]
    np.testing.assert_allclose(jnp.logaddexp(x, y), np.log(np.exp(x) + np.exp(y)), rtol=1e-5)
    np.testing.assert_allclose(jnp.logaddexp2(x, y), np.log2(2**x + 2**y), rtol=1e-5)


def test_integers_become_the_default_float():
    with numjet.enable_x64():
        for dtype in ("bool", "int8", "int32"):
            x = jnp.ones(3, dtype)
            assert jnp.rint(x).dtype == jnp.angle(x).dtype == jnp.float64


def test_squares_of_booleans_count():
    assert jnp.square(jnp.array([True, False])).dtype == jnp.int32


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
@pytest.mark.parametrize("by_zero", [False, True])
def test_division_of_known_and_traced_integers(dtype, by_zero):
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    x, y = rng.integers(info.min, info.max, (2, 40, 5), dtype=dtype, endpoint=True)
    y[y == 0] = 3
    x[0], y[0] = info.min, -1 if info.min else 1
    x[1], y[1:3] = info.max, 1
    y[3, 3] = 0 if by_zero else 7
    for f in (jnp.floor_divide, jnp.remainder):
        known, traced = f(jnp.asarray(x), jnp.asarray(y)), numjet.jit(f)(x, y)
        assert known.aval is traced.aval
        np.testing.assert_array_equal(known, traced)
        with np.errstate(all="ignore"):
            want = getattr(np, f.__name__)(x, y)
        np.testing.assert_array_equal(known[y != 0], want[y != 0])


def test_the_spacing_of_floats_is_constant_between_powers_of_two():
    x = jnp.array([1.0, -3.0, 0.0, jnp.inf])
    np.testing.assert_array_equal(numjet.vmap(numjet.grad(jnp.spacing))(x), np.zeros(4))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("of", ["int8", "uint8", "int32", "int64"])
def test_ldexp_rounds_once(dtype, of):
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 5e-324, 3.4e38]
        x = np.append(rng.normal(size=3000) * 2.0 ** rng.integers(-150, 120, 3000), special)
        x = x.astype(dtype)
        n = rng.integers(-2200, 2200, x.size) // rng.choice([1, 8], x.size)
        n = n.astype(of)
        want = np.ldexp(x, n.astype(np.int64)).astype(dtype)
    with numjet.enable_x64(True):
        np.testing.assert_array_equal(jnp.ldexp(x, n), want)
        slope = numjet.grad(lambda v: jnp.ldexp(v, -3))(np.asarray(0.0, dtype))
        assert slope == 0.125


@pytest.mark.parametrize("dtype", "int8 uint8 int16 int32 uint32 int64 uint64".split())
@pytest.mark.parametrize("most", [9, 200, 70_000, 2**62])
def test_integer_powers_use_every_bit_of_the_exponent(dtype, most):
    rng = np.random.default_rng(0)
    signed = dtype[0] == "i"
    most = min(most, int(np.iinfo(dtype).max))
    x = rng.integers(-9 if signed else 0, 9, 70_000).astype(dtype)
    y = rng.integers(-3 if signed else 0, most, 70_000).astype(dtype)
    want = np.power(x, np.where(y < 0, y & 63, y).astype(dtype))  # of negative ones 6 bits
    with numjet.enable_x64(True):
        for call in (jnp.power, numjet.jit(jnp.power)):
            np.testing.assert_array_equal(call(jnp.array(x), jnp.array(y)), want, strict=True)


def test_whether_numbers_are_real_is_known_of_their_dtype():
    real = jnp.array([1.5, np.nan, 0.0])
    for x in (real, real > 0, jnp.arange(3), real + jnp.zeros((70_000, 1))):
        for function in (jnp.isreal, jnp.iscomplex):
            got = function(x)
            assert got.dtype == bool and got.shape == x.shape
            np.testing.assert_array_equal(got, function is jnp.isreal)
            np.testing.assert_array_equal(numjet.jit(function)(x), got)
            np.testing.assert_array_equal(numjet.vmap(function)(x), got)
    np.testing.assert_array_equal(jnp.isreal(jnp.array([1j, 1 + 0j])), [False, True])
    real.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jnp.isreal(real)


def test_booleans_are_counted_in_int32():
    """With 64 bits as well, as in JAX."""
    with numjet.enable_x64():
        b = jnp.array([True, False])
        for f in (jnp.floor_divide, jnp.remainder, jnp.power, jnp.fmod):
            assert f(b, jnp.array(True)).dtype == np.int32, f.__name__
        assert jnp.square(b).dtype == jnp.divmod(b, b)[1].dtype == np.int32


def test_sinc_has_all_digits_beside_zero_and_in_16_bits():
    x = np.array([-100.0, 300.0, 1e-4, 0.0, 2.5, 0.06, 0.07], np.float32)
    wide = np.pi * x.astype(float)
    with np.errstate(all="ignore"):
        exact = np.where(np.abs(wide) < 1e-3, -np.pi * wide / 3,
                         np.pi * (np.cos(wide) / wide - np.sin(wide) / wide**2))  # fmt: skip
    for dtype, digits in (("float32", 1e-4), ("float16", 2e-3), ("bfloat16", 2e-2)):
        got = numjet.vmap(numjet.grad(jnp.sinc))(jnp.array(x, dtype))
        np.testing.assert_allclose(got.astype("float32")[:6], exact[:6], rtol=digits)
    np.testing.assert_allclose(jnp.sinc(x), np.sinc(x.astype(float)), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(jnp.sinc(jnp.complex64(1e-40 + 1e-3j)), np.sinc(1e-3j), rtol=1e-6)
    third = numjet.grad(numjet.grad(numjet.grad(numjet.grad(jnp.sinc))))(1e-3)
    np.testing.assert_allclose(third, np.pi**4 / 5, rtol=1e-4)


def test_slopes_of_16_bit_values_are_as_exact_as_the_points():
    xp = jnp.array([-2.4679, 1.8967, 3.089])
    fp = jnp.array([-4.78125, -0.2734375, 1.828125], "bfloat16")
    got = jnp.interp(jnp.array([-0.03799, 2.0]), xp, fp)
    want = np.interp([-0.03799, 2.0], np.asarray(xp, float), np.asarray(fp, float))
    np.testing.assert_allclose(got, want, rtol=1e-6)
