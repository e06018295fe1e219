"""What a function returns as it was given: Python's numbers, of which transformations make arrays
only where something is computed. The answers are JAX's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.extend import core

TYPED = "TypedFloat(2.0, dtype=float32)"


def _text(x):
    return repr(nj.tree.leaves(x))


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda: nj.jvp(lambda x: x, (1.0,), (2.0,)), "[1.0, 2.0]"),
        (lambda: nj.jvp(lambda x: (x * 2, x), (2.0,), (1.0,), has_aux=True)[2], "[2.0]"),
        (lambda: nj.linearize(lambda x: x, 3)[0], "[3]"),
        (lambda: nj.linearize(lambda x: x, 3.0)[1](2.0), "[2.0]"),
        (lambda: nj.grad(lambda x: (x * 2, {"a": x}), has_aux=True)(2.0)[1], f"[{TYPED}]"),
        (lambda: nj.value_and_grad(lambda x: x)(2.0)[0], f"[{TYPED}]"),
        (lambda: nj.vjp(lambda x, y: (x * y, y), 1.0, 2.0, has_aux=True)[2], f"[{TYPED}]"),
        (lambda: nj.vjp(lambda x: x, 3)[0], "[TypedInt(3, dtype=int32)]"),
        (lambda: nj.vjp(lambda x: x, 1j)[0], "[TypedComplex(1j, dtype=complex64)]"),
        (lambda: nj.vjp(lambda x: x, True)[0], "[True]"),
        (lambda: nj.vjp(lambda x, y: x + y, 1.0, 2.0)[1](1.0), "[1.0, 1.0]"),
        (lambda: nj.linear_transpose(lambda x: x, 1.0)(2.0), "[2.0]"),
        (lambda: nj.jacfwd(lambda x: (x * x, x), has_aux=True)(2.0)[1], "[2.0]"),
        (lambda: nj.jacrev(lambda x: (x * x, x), has_aux=True)(2.0)[1], f"[{TYPED}]"),
        (lambda: nj.checkpoint(lambda x: x)(2.0), f"[{TYPED}]"),
        (lambda: lax.stop_gradient(2.0), f"[{TYPED}]"),
    ],
)  # fmt: skip
def test_numbers_that_are_returned_stay_numbers(call, want):
    assert _text(call()) == want


@pytest.mark.parametrize(
    ("transform", "value", "want"),
    [
        (nj.vjp, 3, "TypedInt(3, dtype=int32)"),
        (nj.vjp, True, "True"),
        (nj.vjp, np.arange(2), "TypedNdArray([0, 1], dtype=int32)"),
        (nj.linearize, 3, "3"),
        (nj.linearize, np.int64(3), "np.int64(3)"),
    ],
)
def test_functions_are_given_integers_as_they_were(transform, value, want):
    seen = []

    def f(x, y):
        seen.append(repr(x))
        return x * 2, y

    out = transform(f, value, 1.0)[0][0]
    assert seen == [want] and not isinstance(out, nj.Array)


def test_integers_beside_tangents_and_int_gradients_are_given_as_they_were():
    seen = []
    zero = np.zeros((), nj.dtypes.float0)
    out, tangent = nj.jvp(lambda n, x: seen.append(repr(n)) or x * n, (3, 2.0), (zero, 1.0))
    assert seen == ["3"] and float(out) == 6 and float(tangent) == 3
    nj.grad(lambda n, x: seen.append(repr(n)) or x * n, (0, 1), allow_int=True)(3, 2.0)
    assert seen[1] == "TypedInt(3, dtype=int32)"
    with pytest.raises(AttributeError):
        nj.vjp(lambda n: n.shape, 3)


def test_numbers_with_a_dtype_say_their_type():
    number, real = (nj.vjp(lambda x: x, v)[0] for v in (3, 2.0))
    assert str(number) == f"{number}" == "TypedInt(3, dtype=int32)" and str(real) == "2.0"
    assert str(number.aval) == "~int32[]" and number.aval.weak_type
    array = nj.vjp(lambda x: x, np.arange(2))[0]
    assert array.aval.shape == (2,) and array.weak_type is False


def test_arrays_stay_arrays():
    x = jnp.ones(2)
    value, aux = nj.vjp(lambda x: x, x)[0], nj.grad(lambda x: (x.sum(), x), has_aux=True)(x)[1]
    assert value is x and aux is x
    assert isinstance(nj.vjp(lambda x: x * 1.0, 2.0)[0], nj.Array)


def test_a_number_with_a_dtype_is_a_weak_scalar():
    number = nj.vjp(lambda x: x, 2.0)[0]
    assert isinstance(number, float) and not isinstance(number, nj.Array)
    assert str(number) == "2.0" and number.dtype == np.float32 and type(number + 1) is float
    assert jnp.asarray(number).weak_type and nj.jit(lambda x: x)(number).weak_type
    assert (number + jnp.float16(1)).dtype == np.float16
    assert jnp.result_type(number, jnp.float16) == np.float16
    for again in (copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert repr(again) == TYPED


def test_def_impl_is_given_numbers():
    seen = []
    twice_p = core.Primitive("twice_of_numbers")
    twice_p.def_impl(lambda x: seen.append(x) or 2 * x)
    assert twice_p.bind(3) == 6 and repr(seen) == "[TypedInt(3, dtype=int32)]"


def test_jaxprs_of_functions_of_references():
    ref = nj.new_ref(jnp.zeros(2))

    def add(ref, x):
        ref[...] = ref[...] + x
        return ref[0]

    traced = nj.make_jaxpr(add)(ref, 2.0)
    assert [v.aval.shape for v in traced.jaxpr.outvars] == [()]
    assert len(traced.effects) == 2  # it is read and written
    names = [eqn.primitive.name for eqn in nj.jit(add).trace(ref, 2.0).jaxpr.eqns]
    assert [n for n in names if n != "convert_element_type"] == ["get", "add", "swap", "get"]
    np.testing.assert_array_equal(ref[...], [0, 0])


def test_sums_over_no_axis_are_their_operands():
    np.testing.assert_array_equal(lax.psum(jnp.arange(2), ()), [0, 1])
    np.testing.assert_array_equal(lax.pmean(jnp.arange(2.0), ()), [0, 1])


def test_argnums_must_be_integers():
    with pytest.raises(TypeError, match="argnums"):
        nj.grad(lambda x: x, argnums=1.5)


_none = np.zeros(4, nj.dtypes.float0)
_slope = nj.grad(lambda n: 3.0 * n, allow_int=True)
_WITHOUT_VALUES: dict[str, Callable] = {
    "vmap": lambda n: nj.vmap(_slope)(n),
    "vmap of vmap": lambda n: nj.vmap(nj.vmap(_slope))(n.reshape(2, 2)),
    "vmap, axis 1": lambda n: nj.vmap(lambda _: _none, out_axes=1)(n),
    "value and gradient": lambda n: nj.vmap(nj.value_and_grad(lambda k: 2.0 * k, allow_int=True))(
        n
    )[1],
    "pmap": lambda n: nj.pmap(_slope)(n[:1]),
    "map": lambda n: lax.map(_slope, n),
    "scan": lambda n: lax.scan(lambda c, k: (c, _slope(k)), jnp.float32(0), n)[1],
    "cond": lambda n: lax.cond(n[0] >= 0, lambda z: _none, lambda z: z, _none),
    "jvp of map": lambda n: nj.jvp(lambda k: lax.map(lambda j: j * 2, k), (n,), (_none,))[1],
    "device_put": lambda n: nj.device_put(_none),
    "zeros_like": lambda n: jnp.zeros_like(_none),
    "shard_map": lambda n: nj.shard_map(
        nj.grad(lambda k: 1.0 * k.sum(), allow_int=True), in_specs=nj.P("x"), out_specs=nj.P("x"),
        mesh=nj.make_mesh((1,), ("x",), nj.sharding.AxisType.Auto),
    )(n),
}  # fmt: skip


@pytest.mark.parametrize("name", _WITHOUT_VALUES)
def test_tangents_of_integers_are_numpy_arrays(name: str) -> None:
    out = _WITHOUT_VALUES[name](jnp.arange(4))
    assert isinstance(out, np.ndarray) and out.dtype == nj.dtypes.float0


@pytest.mark.parametrize("made", [jnp.asarray, jnp.array, jnp.copy])
@pytest.mark.parametrize("value", [2.0, np.float32(2), np.ones(2)])
def test_what_asarray_gives_in_a_derivative_is_an_array(made, value):
    seen = []

    @nj.custom_vjp
    def scaled(x):
        return x * 2

    def fwd(x):
        seen.append((type(x), x.shape))
        return x * 2, None

    scaled.defvjp(fwd, lambda _, ct: (ct * 2,))
    slope = nj.grad(lambda x: jnp.sum(scaled(made(x)) ** 2))(value)
    np.testing.assert_array_equal(slope, 8 * np.asarray(value))
    array = type(jnp.ones(()))
    assert seen == [(array, np.shape(value))]
    results = [nj.vjp(made, value)[0], *nj.jvp(made, (value,), (value,))]
    results.append(nj.linearize(made, value)[0])
    assert [(type(x), x.dtype) for x in results] == [(array, np.float32)] * 4
