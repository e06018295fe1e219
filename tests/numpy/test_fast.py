"""The shortcuts of functions and operators: a second call gives what the first one gave."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest
from python_process import printed

import numjet as nj
import numjet.numpy as jnp

x32 = jnp.array([0.5, -1.0, 2.0])


def eqns(fun, *args) -> list[str]:
    return [str(e.primitive) for e in nj.make_jaxpr(fun)(*args).jaxpr.eqns]


@pytest.mark.parametrize(
    "fun, args",
    [
        (lambda x: x * 1.5, (x32,)),
        (lambda x: 2 - x, (x32,)),
        (lambda x: x / 4, (x32,)),
        (lambda x: x + x, (x32,)),
        (lambda x: x + True, (x32,)),
        (lambda x: x > 0, (x32,)),
        (lambda x, y: x * y, (x32, jnp.array(3.0))),
        (lambda x: jnp.maximum(x, 0.0), (x32,)),
        (lambda x: jnp.tanh(-x), (x32,)),
        (lambda x: x * 3, (jnp.arange(3),)),
        (lambda x: x / 3, (jnp.arange(3),)),
        (lambda x: x + 0.5, (jnp.arange(3),)),
        (lambda x: x + x, (jnp.array([True, False]),)),
        (lambda x: x + 1, (jnp.arange(3, dtype=jnp.int8),)),
        (lambda x: x * 0.1, (x32.astype(jnp.bfloat16),)),
        (lambda x: x * 0.1, (x32.astype(jnp.float16),)),
        (lambda x, y: x + y, (x32, jnp.arange(3))),
        (lambda x, y: x + y, (x32[:, None], x32)),
        (lambda x: x < x, (jnp.array([1 + 2j, 1 - 2j]),)),
        (lambda x: abs(x), (jnp.array([1, 2], jnp.uint8),)),
    ],
)
def test_a_second_trace_is_the_first(fun, args):
    texts = {str(nj.make_jaxpr(fun)(*args)) for _ in range(3)}
    assert len(texts) == 1
    first, second, compiled = fun(*args), fun(*args), nj.jit(fun)(*args)
    assert first.aval is second.aval is compiled.aval
    np.testing.assert_array_equal(np.asarray(second), np.asarray(first))
    np.testing.assert_allclose(*[np.asarray(v, np.float64) for v in (compiled, first)], rtol=1e-6)


def test_a_constant_keeps_the_sign_of_zero_and_nan():
    def f(x):
        return x * 0.0, x * -0.0, x * float("nan")

    for _ in range(2):
        plus, minus, nan = nj.jit(lambda x: f(x))(jnp.ones(2))
        assert not np.signbit(plus).any() and np.signbit(minus).all() and np.isnan(nan).all()


def test_constants_of_equal_value_and_other_type_stay_apart():
    for value, dtype in ((1, jnp.int32), (True, jnp.int32), (1.0, jnp.float32)) * 2:
        traced = nj.make_jaxpr(lambda x, value=value: x + value)(jnp.arange(3))
        assert traced.out_avals[0].dtype == dtype


def test_an_integer_that_does_not_fit_is_refused_at_every_call():
    assert eqns(lambda x: x + 1, x32) == ["add"]
    for _ in range(2):
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            nj.make_jaxpr(lambda x: x + 2**40)(x32)


def test_strict_promotion_is_checked_after_a_shortcut_was_learned():
    x, i = jnp.ones(3), jnp.arange(3)
    for _ in range(2):
        nj.make_jaxpr(lambda x, i: x + i)(x, i)
    with nj.numpy_dtype_promotion("strict"), pytest.raises(ValueError):
        nj.make_jaxpr(lambda x, i: x + i)(x, i)


def test_ranks_are_checked_after_a_shortcut_was_learned():
    rows, row = jnp.ones((2, 3)), jnp.ones(3)
    for _ in range(3):
        assert (rows + row).shape == jnp.maximum(row, rows).shape == (2, 3)
        nj.make_jaxpr(lambda x, y: x + y)(rows, row)
    with nj.numpy_rank_promotion("raise"):
        for f in (lambda: rows + row, lambda: jnp.maximum(row, rows)):
            with pytest.raises(ValueError, match="rank"):
                f()
        with pytest.raises(ValueError, match="rank"):
            nj.make_jaxpr(lambda x, y: x + y)(rows, row)
        assert (rows + rows).shape == (rows + 1).shape == (2, 3)
    assert (rows + row).shape == (2, 3)


def test_results_that_numpy_gives_as_scalars_are_arrays():
    x = jnp.array(2.0)
    for _ in range(3):
        y = x + x
        assert type(y._value) is np.ndarray and y.shape == () and float(y) == 4.0


@pytest.mark.parametrize("operation", [
    nj.lax.sinh, jnp.exp, jnp.sqrt, jnp.abs, jnp.logical_not, lambda x: x + 1.0, lambda x: 2 / x,
    lambda x: x / x, lambda x: x @ x, lambda x: x < 1.0, lambda x: x.at[0].set(1.0),
    lambda x: x.at[0].add(x[1]), lambda x: nj.lax.integer_pow(x, 3), lambda x: x.astype(int),
    lambda x: jnp.where(x > 0, x, 1.0), jnp.sum, jnp.max, jnp.isnan, nj.lax.reciprocal,
])  # fmt: skip
def test_numpys_settings_come_back_from_operations_that_raise(operation):
    before = np.geterr()
    for _ in range(3):
        x = jnp.ones(4) + 0.0
        operation(x)
        x.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            operation(x)
        assert np.geterr() == before


def test_warnings_as_errors_change_nothing():
    x = jnp.array([1.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x / 0.0), [np.inf, np.nan])
            with np.errstate(all="raise"):
                np.testing.assert_array_equal(np.asarray(jnp.log(x)), [0.0, -np.inf])


def test_overflows_and_invalid_values_warn_under_no_filter():
    told = printed('''
import warnings
import numjet.numpy as jnp
from numjet.numpy.fast import fast_binary, fast_unary
root, quotient = fast_unary("sqrt", jnp.sqrt), fast_binary("div", jnp.divide)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    x, y = jnp.array([-1.0, 0.0]), jnp.zeros(2)
    for _ in range(3):
        jnp.sqrt(x), x / y, 1 / y, jnp.exp(x * -1e9), root(x), quotient(x, y), quotient(1, y)
print(len(told))
''', NUMJET_DISK_CACHE="0")
    assert told.strip() == "0"


def test_results_are_checked_when_asked():
    x = jnp.array([0.0])
    for _ in range(2):
        assert np.isnan(np.asarray(x / x)).all()
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        x / x
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        nj.lax.div(x, x)


_SHORTCUTS = [name for name in dir(jnp) if hasattr(getattr(jnp, name), "forms")]
_OPERATORS = ["add", "sub", "mul", "truediv", "lt", "ge", "ne", "pow", "matmul", "floordiv"]


@pytest.mark.parametrize("name", _SHORTCUTS + _OPERATORS)
def test_floats_that_come_first_are_traced_as_by_the_complete_way(name):
    """What is known of wide floats before any were seen; narrow ones take the complete way."""
    function = getattr(operator if name in _OPERATORS else jnp, name)
    shapes = [(17, 3), (1, 3), (3,), ()]
    cases = [[s] for s in shapes] + [[s, t] for s in shapes for t in shapes]
    cases += [[s, y] for s in shapes for y in (2, 0.5, True, -0.0)]
    cases += [[y, s] for s in shapes for y in (3, 0.25)]

    def text(case, dtype):
        places = [i for i, x in enumerate(case) if type(x) is tuple]

        def run(*xs):
            given = dict(zip(places, xs, strict=True))
            return function(*[given.get(i, x) for i, x in enumerate(case)])

        try:
            jaxpr = nj.make_jaxpr(run)(*[nj.ShapeDtypeStruct(case[i], dtype) for i in places])
        except (TypeError, ValueError) as error:
            return type(error).__name__
        shown = str(jaxpr).replace("bf16", "f32").replace("bfloat16", "float32")
        return shown.replace(".0:", ":")  # as narrow numbers are printed

    compared = 0
    for case in cases:
        narrow = text(case, jnp.bfloat16)
        if "convert_element_type" not in narrow:  # of a constant, which wide floats do not need
            assert text(case, jnp.float32) == narrow
            compared += "Error" not in narrow
    assert compared or name in ("where", "invert") or name.startswith(("bitwise", "logical"))
