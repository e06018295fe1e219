"""What the Python array API standard (2025.12) asks of a namespace, where JAX does otherwise or the
values are special ones: NumPy is the reference."""

from __future__ import annotations

import numpy as np
import pytest

import numjet
import numjet.numpy as jnp

ENDS = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 3.0, -3.0, np.inf, -np.inf, np.nan], np.float32)


def same(got, want):
    """Equal, signs of zeros included."""
    got, want = np.asarray(got), np.asarray(want)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "divmod"])
def test_divisions_have_signed_zeros_and_infinities(name, compiled):
    x, y = np.meshgrid(ENDS, ENDS)
    fun = numjet.jit(getattr(jnp, name)) if compiled else getattr(jnp, name)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    got = fun(jnp.asarray(x), jnp.asarray(y))
    for g, w in zip(got, want) if name == "divmod" else [(got, want)]:
        same(g, w)


def test_remainder_keeps_its_derivative_where_it_is_zero():
    x, y = jnp.array([4.0, -4.0, 4.0, -4.0, 0.0]), jnp.array([2.0, 2.0, -2.0, -2.0, -3.0])
    dx, dy = numjet.grad(lambda x, y: jnp.sum(jnp.remainder(x, y)), (0, 1))(x, y)
    np.testing.assert_array_equal(dx, np.ones(5))
    np.testing.assert_array_equal(dy, [-2.0, 2.0, 2.0, -2.0, 0.0])


def _lengths(jaxpr, given):
    """Whether each result is a length, by the steps' rules of units, where `given` operands are."""
    known = dict(zip(jaxpr.invars, given))
    for eqn in jaxpr.eqns:
        ins = [not hasattr(v, "val") and known.get(v, False) for v in eqn.invars]
        name = eqn.primitive.name
        if name in ("add", "sub", "rem"):
            assert ins[0] == ins[1], eqn
        if name == "select_n":
            assert ins[1] == ins[2], eqn
        if name == "jit":
            outs = _lengths(eqn.params["jaxpr"].jaxpr, ins)
        elif name in ("lt", "gt", "eq", "ne", "and", "sign"):
            outs = [False]
        elif name == "div":
            outs = [ins[0] and not ins[1]]
        elif name == "mul":
            assert not all(ins), eqn
            outs = [any(ins)]
        else:
            assert name in ("add", "sub", "rem", "neg", "round", "select_n", "broadcast_in_dim")
            outs = [ins[-1]]
        known.update(zip(eqn.outvars, outs))
    return [known[v] for v in jaxpr.outvars]


@pytest.mark.parametrize(
    ("fun", "want"),
    [(jnp.remainder, [True]), (jnp.fmod, [True]), (jnp.floor_divide, [False]),
     (jnp.divmod, [False, True])],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (3,)])
def test_divisions_of_lengths_add_no_numbers_to_them(fun, want, shape):
    """A library's trace may hold units: every step has to have some."""
    jaxpr = numjet.make_jaxpr(fun)(jnp.ones((3,)), jnp.ones(shape)).jaxpr
    assert _lengths(jaxpr, [True, True]) == want


@pytest.mark.parametrize("compiled", [False, True])
def test_sign_of_zero_is_positive(compiled):
    fun = numjet.jit(jnp.sign) if compiled else jnp.sign
    same(fun(jnp.asarray(ENDS)), np.sign(ENDS))
    # bfloat16 too, whose NumPy dtype keeps the zero's sign
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float8_e5m2):
        assert not jnp.signbit(fun(jnp.asarray([-0.0, 0.0], dtype))).any()


@pytest.mark.parametrize("compiled", [False, True])
def test_complex_expm1_at_its_ends(compiled):
    inf, nan = np.inf, np.nan
    table = {
        (0.0, 0.0): (0.0, 0.0), (inf, 0.0): (inf, 0.0), (nan, 0.0): (nan, 0.0),
        (-inf, inf): (-1.0, 0.0), (-inf, nan): (-1.0, 0.0), (inf, inf): (inf, nan),
        (inf, nan): (inf, nan), (1.0, inf): (nan, nan), (nan, 1.0): (nan, nan),
    }  # fmt: skip
    z = np.array([complex(*k) for k in table], np.complex64)
    fun = numjet.jit(jnp.expm1) if compiled else jnp.expm1
    got = np.asarray(fun(jnp.asarray(z)))
    np.testing.assert_array_equal(got.real, [v[0] for v in table.values()])
    np.testing.assert_array_equal(got.imag, [v[1] for v in table.values()])


def test_limits_are_python_numbers():
    for dtype in (jnp.float32, jnp.complex64, jnp.ones(2)):
        info = jnp.finfo(dtype)
        assert info.bits == 32 and info.dtype == np.float32
        for name in ("eps", "max", "min", "smallest_normal"):
            value = getattr(info, name)
            assert type(value) is float and value == getattr(np.finfo(np.float32), name)
    assert type(jnp.iinfo(jnp.int8).max) is int
    assert jnp.finfo(jnp.bfloat16).bits == 16


def test_sequences_are_tuples():
    x = jnp.arange(3.0)
    assert type(jnp.meshgrid(x, x)) is tuple and type(jnp.broadcast_arrays(x, 1.0)) is tuple


def test_inspection():
    info = jnp.__array_namespace_info__()
    assert jnp.__array_api_version__ == "2025.12"
    assert info.capabilities()["boolean indexing"] is False
    assert info.default_device() is None and info.devices()[1] in numjet.devices()
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32"}
    assert info.default_dtypes()["integral"] == np.int32
    with numjet.enable_x64(True):
        assert info.default_dtypes()["real floating"] == np.float64
        assert "int64" in info.dtypes(kind="integral")
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="text")
    with pytest.raises(ValueError, match="no device"):
        info.dtypes(device="tpu")


@pytest.mark.parametrize(
    "dtype", [np.float32, "float32", np.dtype("float32"), jnp.float32, np.float32(1), np.complex64,
              jnp.complex64, np.ones(2, np.float32), jnp.ones(2)]
)
def test_finfo_takes_whatever_names_a_dtype(dtype) -> None:
    assert jnp.finfo(dtype).bits == 32 and jnp.finfo(dtype).eps == np.finfo(np.float32).eps


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_powers_of_one_half_are_no_square_roots(compiled, dtype):
    x = jnp.array([-np.inf, -0.0, 0.0, -4.0, np.inf, 16.0], dtype)
    for f in (lambda x: x**0.5, lambda x: jnp.power(x, jnp.full(6, 0.5, dtype))):
        got = (numjet.jit(f) if compiled else f)(x)
        same(got.astype(jnp.float32), np.float32([np.inf, 0, 0, np.nan, np.inf, 4]))
    mixed = jnp.power(jnp.array([-np.inf, -np.inf, -0.0], dtype), jnp.array([0.5, 3, 3], dtype))
    same(mixed.astype(jnp.float32), np.float32([np.inf, -np.inf, -0.0]))


def test_positions_in_sets_of_distinct_elements_are_int32():
    with numjet.enable_x64(True):
        a, b = jnp.array([4, 2, 7]), jnp.array([7, 1, 4])
        _, *places = jnp.intersect1d(a, b, assume_unique=True, return_indices=True)
        assert [p.tolist() for p in places] == [[0, 2], [2, 0]]
        assert all(p.dtype == jnp.int32 for p in places)
        _, *places = jnp.intersect1d(a, b, assume_unique=True, return_indices=True, size=2)
        assert all(p.dtype == jnp.int64 for p in places)
