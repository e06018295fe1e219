"""jet against forward mode applied as often as there are orders."""
from __future__ import annotations

import gc
import math

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import jet as jets
from numjet.experimental.jet import jet
from numjet.extend.core import Primitive
from numjet.interpreters import mlir

X = np.array([0.3, 0.7, 1.2])
SERIES = [np.array(s) for s in ([1.0, 0.5, -0.2], [0.3, -0.4, 0.1], [0.2, 0.1, 0.6],
                                [0.05, 0.2, 0.1])]
M = np.random.default_rng(0).normal(size=(3, 3))


@pytest.fixture(autouse=True)
def wide():
    with nj.enable_x64(True):
        yield


def nested(f):
    g = lambda t: f(X + sum(s * t**k / math.factorial(k) for k, s in enumerate(SERIES, 1)))
    found = [g(0.0)]
    for _ in SERIES:
        g = (lambda g: lambda t: nj.jvp(g, (t,), (1.0,))[1])(g)
        found.append(g(0.0))
    return found


def looped(x):
    carry, rows = lax.scan(lambda c, a: (c * jnp.sin(a) + x.sum(), c * c), x, jnp.outer(x, x))
    return carry + rows


@nj.custom_jvp
def ruled(x):
    return jnp.exp(x)


@ruled.defjvp
def _rule(primals, tangents):
    (x,), (t,) = primals, tangents
    out = ruled(x)
    last = lax.scan(lambda c, _: (c * 0.5, None), nj.jit(lambda y: y * 4.0)(out), None, length=2)[0]
    return out, t * last


@nj.custom_vjp
def backward_only(x):
    return jnp.sin(x) * x


backward_only.defvjp(lambda x: (backward_only(x), x), lambda x, ct: (ct * jnp.cos(x),))

FUNCTIONS = {
    "elementwise": lambda x: jnp.tanh(jnp.exp(jnp.sin(x)) / (1 + x * x)) + jnp.log1p(x) * x**2.5,
    "powers": lambda x: x**x + x**7 + jnp.sqrt(x) * lax.rsqrt(x + 1),
    "special": lambda x: lax.erf(x) + lax.lgamma(x),
    "corners": lambda x: jnp.maximum(x, 0.6 * x + 0.2) * jnp.abs(x - 0.5) + jnp.clip(x * x, 0.2, 1),
    "products": lambda x: jnp.sin(x) @ M @ jnp.cos(x) + jnp.outer(x, x * x) + jnp.convolve(x, x)[1],
    "shapes": lambda x: jnp.concatenate([x, x * x])[::2].at[1].mul(x[0])[jnp.array([2, 0, 2])],
    "softmax": nj.nn.softmax,
    "linear algebra": lambda x: jnp.linalg.solve(M + jnp.diag(x), x)
        + jnp.linalg.cholesky(M @ M.T + jnp.diag(x)),
    "sort": lambda x: jnp.sort(-x * x) * jnp.cumprod(x) * jnp.max(x),
    "scan": looped,
    "while": lambda x: lax.fori_loop(0, jnp.asarray(3), lambda i, c: c * jnp.sin(c) + x, x),
    "branches": lambda x: lax.cond(x[0] > 0.1, lambda y: y * y, jnp.sin, x),
    "calls": nj.jit(nj.checkpoint(lambda x: jnp.sin(x) * jnp.exp(x))),
    "gradient": nj.grad(lambda x: jnp.sum(jnp.sin(x) * x**3)),
    "rule of the user's": lambda x: ruled(x * x),
    "reverse rule of the user's": backward_only,
    "mapped": nj.vmap(lambda a: jnp.sin(a) * a),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_nested_forward_mode(name):
    f = FUNCTIONS[name]
    expand = lambda x, s: jet(f, (x,), (s,))
    # The function whose reverse rule is all there is has no forward mode to compare with.
    want = nested((lambda x: jnp.sin(x) * x) if f is backward_only else f)
    for run in (expand, nj.jit(expand)):
        value, series = run(X, SERIES)
        for found, true in zip([value, *series], want, strict=True):
            np.testing.assert_allclose(found, true, rtol=1e-8, atol=1e-8)


def test_coefficients_instead_of_derivatives():
    scaled = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
    plain = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose(scaled[1], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(plain[1], [1.0, 1 / 2, 1 / 6])


def test_structures_several_arguments_and_constants():
    value, series = jet(lambda x, y: {"product": x * y, "constant": 2.0, "floor": jnp.floor(x)},
                        (2.0, 3.0), ((1.0, 0.0), (0.5, 1.0)))
    assert value["product"] == 6.0 and series["constant"] == series["floor"] == [0.0, 0.0]
    np.testing.assert_allclose(series["product"], [4.0, 3.0])


def test_derivatives_of_the_derivatives():
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(nj.grad(third)(0.3), np.sin(0.3), rtol=1e-12)
    np.testing.assert_allclose(nj.vmap(third)(X), -np.cos(X), rtol=1e-12)


def test_refusals():
    with pytest.raises(ValueError, match="primal value at position 0 is not an array"):
        jet(lambda x: x, ({"a": 1.0},), ((1.0,),))
    with pytest.raises(ValueError, match="inconsistent lengths"):
        jet(lambda x, y: x * y, (1.0, 2.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        jet(lambda x, y: x * y, (1.0, 2.0), ((1.0,),))
    with pytest.raises(ValueError, match="inconsistent lengths"):
        jet(lambda x: x, (1.0,), ())
    assert jet(lambda x: 2 * x, (1.0,), ((1.0,), (1.0,))) == (2.0, [2.0])  # as many as fit
    with pytest.raises(TypeError, match="argument 0 has dtype int32"):
        jet(lambda x: x, (np.arange(3, dtype=np.int32),), ((1.0,),))
    with pytest.raises(TypeError, match=r"expected shape \(3,\)"):
        jet(lambda x: x, (X,), ((np.ones(4),),))


def primitive(name, f, many=False):
    made = Primitive(name)
    made.multiple_results = many
    made.def_impl(f)
    made.def_abstract_eval(lambda *avals, **_: [avals[0]] * 2 if many else avals[0])
    mlir.register_lowering(made, mlir.lower_fun(f, many))
    return made


def test_rules_of_users():
    x, terms = jnp.asarray(0.7), [jnp.asarray(t) for t in (1.0, 0.5, -0.2, 0.3)]
    by = lambda f: jet(f, (x,), (terms,))
    cos_p, twice_p = primitive("my_cos", jnp.cos), primitive("my_twice", lambda x: 2 * x)
    floor_p, comp_p = primitive("my_floor", jnp.floor), primitive("my_comp", lambda x: x)
    pair_p = primitive("my_pair", lambda x, y, *, power: [x * y, x**power], many=True)
    jets.def_deriv(cos_p, lambda x: -jnp.sin(x))
    jets.deflinear(twice_p)
    jets.defzero(floor_p)
    jets.def_comp(comp_p, lambda x: jnp.sin(x) * x)
    seen = []

    def pair_rule(primals, series, *, power):
        seen.append([len(s) for s in series])
        f = lambda x, y: [x * y, x**power]
        (product, one), rows = jet(f, primals, series, factorial_scaled=False)
        return [product, one], rows if power else [rows[0], jets.zero_series]

    jets.jet_rules[pair_p] = pair_rule
    for ruled, plain in [
        (cos_p.bind, jnp.cos), (twice_p.bind, lambda x: 2 * x), (floor_p.bind, jnp.floor),
        (lambda x: jnp.exp(cos_p.bind(x)), lambda x: jnp.exp(jnp.cos(x))),
        (comp_p.bind, lambda x: jnp.sin(x) * x),
        (lambda x: sum(pair_p.bind(x, 3.0, power=2)), lambda x: x * 3.0 + x**2),
        (lambda x: sum(pair_p.bind(x * x, x, power=0)), lambda x: x**3 + 1.0),
        (lambda x: nj.jit(cos_p.bind)(x * x), lambda x: jnp.cos(x * x)),
    ]:
        (y, row), (want, wanted) = by(ruled), by(plain)
        np.testing.assert_allclose(y, want, rtol=1e-12)
        np.testing.assert_allclose(row, wanted, rtol=1e-12, atol=1e-12)
    assert seen and all(n == [4, 4] for n in seen)
    assert jets.fact(jnp.arange(5)).tolist() == [1, 1, 2, 6, 24]
    assert nj.tree.leaves([jets.zero_term, jets.zero_series]) == []


def test_results_that_are_no_floats_have_zero_coefficients():
    (flags, count), (first, second) = jet(lambda x: (x > 0.5, 3), (X,), (SERIES[:2],))
    assert flags.tolist() == [False, True, True] and count == 3
    for terms, shape in [(first, (3,)), (second, ())]:
        assert [(t.shape, t.dtype, t.weak_type) for t in terms] == [(shape, np.float64, True)] * 2
        assert not any(np.any(t) for t in terms)


def test_calls_leave_no_circles_of_objects():
    def call() -> None:
        jet(lambda x: jnp.sin(x) * jnp.exp(x), (1.0,), ((1.0, 0.0, 0.0),))

    call()
    gc.collect()
    gc.disable()
    try:
        call()
        assert gc.collect() == 0
    finally:
        gc.enable()
