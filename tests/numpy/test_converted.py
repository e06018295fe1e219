"""Shortcuts for operands of several dtypes give what the complete functions give."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import errors
from numjet.numpy import converted, logic

RNG = np.random.default_rng(8)
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32",
          "complex64")  # fmt: skip
NUMBERS = (True, 3, -70000, 2.5, 1e-3, 1j)
BINARY = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
    "max": jnp.maximum, "min": jnp.minimum, "lt": jnp.less, "eq": jnp.equal, "atan2": jnp.arctan2,
    "rem": jnp.remainder, "floor": jnp.floor_divide, "pow": jnp.power, "hypot": jnp.hypot,
    "logaddexp": jnp.logaddexp, "copysign": jnp.copysign, "nextafter": jnp.nextafter,
    "and": jnp.bitwise_and, "shift": jnp.left_shift, "logical": jnp.logical_or,
    "operator": operator.truediv,
}  # fmt: skip
UNARY = {
    name: getattr(jnp, name)
    for name in ("sin", "exp", "sqrt", "log1p", "arctan", "floor", "ceil", "rint", "abs", "sign",
                 "negative", "isnan", "signbit", "square", "reciprocal", "cbrt", "exp2",
                 "logical_not", "invert", "deg2rad")
}  # fmt: skip


def _array(name: str, shape: tuple) -> nj.Array:
    values = RNG.uniform(0, 2 if name == "bool" else 90, shape)
    return jnp.asarray(values.astype(np.int64) if "int" in name else values).astype(name)


def _asked(function, args):
    """The result, or the kind of error."""
    try:
        out = function(*args)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)
    return out.dtype, out.weak_type, out.shape, np.asarray(out).tobytes()


def _operands(count: int) -> list[tuple]:
    arrays = [_array(name, (3, 4)) for name in DTYPES]
    if count == 1:
        return [(x,) for x in arrays] + [(_array(name, ()),) for name in DTYPES]
    others = [_array(name, shape) for name, shape in zip(DTYPES, [(), (4,), (3, 1)] * 4)]
    pairs = [*itertools.product(arrays, arrays), *zip(arrays, others), *zip(others, arrays)]
    numbers = itertools.product(arrays[::2] + others[:3], NUMBERS)
    for x, number in numbers:
        pairs += [(x, number), (number, x)]
    return pairs


@pytest.fixture
def operations():
    """No call is compiled for, which may round another way."""
    nj.config.update("eager_compile", False)
    yield
    nj.config.update("eager_compile", True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_later_calls_are_as_the_first(
    name: str, operations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = (BINARY | UNARY)[name]
    operands = _operands(2 if name in BINARY else 1)
    for part in ("get", "learn"):
        monkeypatch.setattr(converted.Conversions, part, lambda *args: None)
    want = [_asked(function, args) for args in operands]
    monkeypatch.undo()
    for _ in range(3):
        for args, expected in zip(operands, want, strict=True):
            assert _asked(function, args) == expected, (name, args)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [(), (3, 4)])
def test_later_choices_are_as_the_first(
    shape: tuple, operations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    operands = [*[_array(name, shape) for name in DTYPES], True, 3, -70000, 2.5, 2**40]
    mask = _array("bool", (3, 4))
    triples = [(mask, x, y) for x, y in itertools.product(operands, operands)]
    known = logic._where_mixed
    with monkeypatch.context() as patch:
        patch.setattr(logic, "_remember_mixed", lambda *args: None)
        want = [_asked(jnp.where, args) for args in triples]
    for _ in range(3):
        for args, expected in zip(triples, want, strict=True):
            assert _asked(jnp.where, args) == expected, args
    assert len(known) > 50


def test_one_call_finds_the_dtype_for_all_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    staged = []
    stage = converted.stage
    monkeypatch.setattr(converted, "stage", lambda *a, **k: staged.append(a) or stage(*a, **k))
    for n in range(40, 60):
        x = jnp.arange(n, dtype=jnp.int16)
        for _ in range(3):
            np.testing.assert_allclose(x * np.float32(1.5).item() / x[3], np.arange(n) / 2, 1e-6)
    assert len(staged) <= 4


def test_flags_decide_anew() -> None:
    i, f = jnp.arange(1, 4), jnp.ones(3)
    for _ in range(3):
        assert (i + f).dtype == jnp.float32 and (i / 2).dtype == jnp.float32
    with nj.numpy_dtype_promotion("strict"), pytest.raises(errors.TypePromotionError):
        i + f
    nj.config.update("jax_numpy_dtype_promotion", "strict")
    try:
        with pytest.raises(errors.TypePromotionError):
            i + f
    finally:
        nj.config.update("jax_numpy_dtype_promotion", "standard")
    for _ in range(3):
        assert (i + f).dtype == jnp.float32
    with nj.enable_x64(True):
        wide = jnp.arange(3.0)
        for _ in range(3):
            assert (i + wide).dtype == jnp.float64 and (i / i).dtype in (jnp.float32, jnp.float64)
    for _ in range(3):
        with pytest.raises(OverflowError):
            i / 2**40
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        (i - 1) / (i - i)
