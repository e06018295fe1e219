"""grad, value_and_grad, jvp, vjp, linearize, linear_transpose, jacfwd, jacrev, hessian."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from near import close
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

Pair = namedtuple("Pair", "first second")
x3 = jnp.array([0.5, -1.0, 2.0])
m = jnp.array([[0.2, -0.4, 0.1], [0.5, 0.3, -0.6]])


def loss(params: Any, x: Any, scale: Any = 1.0) -> Any:
    return jnp.sum(jnp.tanh(params["w"] @ x + params["b"].first) ** 2) * scale + params["b"].second


params = {"w": m, "b": Pair(jnp.array([0.1, 0.2]), jnp.array(3.0))}


# ------------------------------------------------------------------ grad
def test_gradients_have_the_structure_shapes_and_dtypes_of_the_arguments() -> None:
    g = nj.grad(loss)(params, x3)
    assert nj.tree.structure(g) == nj.tree.structure(params)
    for a, b in zip(nj.tree.leaves(g), nj.tree.leaves(params), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    half = nj.grad(lambda x: jnp.sum(x * 2.0))(jnp.ones(2, jnp.bfloat16))
    assert half.dtype == jnp.bfloat16


@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (1, 0), [0, 1], (-2, -1)], ids=repr)
def test_argnums_choose_arguments_and_the_shape_of_the_result(argnums: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.sum(x**2) * y**3

    both = (2 * x3 * 8.0, jnp.sum(x3**2) * 12.0)
    want = both[argnums] if isinstance(argnums, int) else tuple([both[i] for i in argnums])
    close(nj.grad(f, argnums)(x3, 2.0), want)
    value, g = nj.value_and_grad(f, argnums)(x3, 2.0)
    close(value, f(x3, 2.0))
    close(g, want)


def test_keyword_arguments_are_passed_on_and_not_differentiated() -> None:
    close(nj.grad(loss)(params, x3, scale=3.0)["b"].second, jnp.array(1.0))
    g1, g3 = nj.grad(loss)(params, x3), nj.grad(loss)(params, x3, scale=3.0)
    close(g3["w"], 3.0 * g1["w"])
    with pytest.raises(TypeError, match="requires at least 1 positional"):
        nj.grad(loss)(params=params, x=x3)


def test_has_aux_returns_anything_beside_the_value() -> None:
    def f(x: Any) -> Any:
        return x**2, {"y": x + 1.0, "name": "text", "none": None, "n": 3}

    g, aux = nj.grad(f, has_aux=True)(2.0)
    assert float(g) == 4.0 and float(aux["y"]) == 3.0
    assert aux["name"] == "text" and aux["none"] is None and aux["n"] == 3
    (value, aux), g = nj.value_and_grad(f, has_aux=True)(2.0)
    assert float(value) == 4.0 and aux["name"] == "text"
    with pytest.raises(TypeError, match="has_aux=True.*pair"):
        nj.grad(lambda x: x, has_aux=True)(1.0)
    # The second derivative sees the auxiliary value too.
    second, inner = nj.grad(
        lambda x: nj.grad(lambda y: (y**3, y * 2.0), has_aux=True)(x), has_aux=True
    )(2.0)
    assert float(second) == 12.0 and float(inner) == 4.0


def test_gradients_of_integers_are_float0() -> None:
    g = nj.grad(lambda p: p["x"] * p["n"], allow_int=True)({"x": 2.0, "n": 3})
    assert g["n"].dtype == nj.dtypes.float0
    assert float(g["x"]) == 3.0
    g = nj.jacrev(lambda n: n * 2.0, allow_int=True)(jnp.arange(3))
    assert g.shape == (3, 3)


def test_holomorphic_and_complex_gradients() -> None:
    z = 1.0 + 2.0j
    close(nj.grad(lambda w: w**3, holomorphic=True)(z), jnp.array(3 * z**2))
    close(nj.grad(lambda w: jnp.exp(w) * w, holomorphic=True)(z), jnp.array(np.exp(z) * (1 + z)))
    # A real loss of a complex argument: JAX's convention, conjugate of the steepest ascent.
    close(nj.grad(lambda w: jnp.abs(w) ** 2)(z), jnp.array(2 * np.conj(z)))
    with pytest.raises(TypeError, match="holomorphic=True requires inputs with complex"):
        nj.grad(lambda w: w, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="requires outputs with complex"):
        nj.grad(lambda w: jnp.abs(w), holomorphic=True)(z)
    jac = nj.jacfwd(lambda w: w**2, holomorphic=True)(jnp.array([z, 2.0]))
    close(jac, jnp.diag(jnp.array([2 * z, 4.0])))
    close(nj.jacrev(lambda w: w**2, holomorphic=True)(jnp.array([z, 2.0])), jac)


def test_grad_of_a_constant_and_of_unused_arguments_is_zero() -> None:
    close(nj.grad(lambda x, y: y * 2.0, argnums=(0, 1))(x3, 1.0), (jnp.zeros(3), jnp.array(2.0)))
    close(nj.grad(lambda x: 5.0)(2.0), jnp.array(0.0))
    close(nj.grad(lambda x: jnp.sum(x > 0.0) * 1.0)(x3), jnp.zeros(3))


def test_stop_gradient_and_rounding_have_no_derivative() -> None:
    close(nj.grad(lambda x: lax.stop_gradient(x) * x)(3.0), jnp.array(3.0))
    close(nj.grad(lambda p: lax.stop_gradient(p)["a"] * p["a"])({"a": 3.0}), {"a": jnp.array(3.0)})
    close(nj.jvp(lambda x: lax.stop_gradient(x * x), (3.0,), (1.0,))[1], jnp.array(0.0))
    close(nj.grad(lambda x: jnp.sum(jnp.floor(x) + jnp.round(x) + jnp.sign(x)))(x3), jnp.zeros(3))


def test_perturbations_of_nested_derivatives_stay_apart() -> None:
    def f(x: Any) -> Any:
        return x * nj.grad(lambda y: x + y * 1.0)(1.0)

    close(nj.grad(f)(2.0), jnp.array(1.0))
    close(
        nj.grad(lambda x: nj.grad(lambda y: nj.grad(lambda z: x * y * z)(y) * x)(x))(3.0),
        jnp.array(6.0),
    )
    close(
        nj.jvp(lambda x: nj.jvp(lambda y: x * y, (x,), (x,))[1], (3.0,), (1.0,))[1], jnp.array(6.0)
    )


def test_high_orders() -> None:
    f = functools.reduce(lambda g, _: nj.grad(g), range(5), lambda x: x**6)
    close(f(2.0), jnp.array(720.0 * 2.0))
    f = functools.reduce(lambda g, _: nj.grad(g), range(4), jnp.sin)
    close(f(0.7), jnp.sin(jnp.array(0.7)))


def test_methods_partials_and_callables() -> None:
    class Model:
        weight = 3.0

        def loss(self, x: Any) -> Any:
            return self.weight * x**2

        def __call__(self, x: Any) -> Any:
            return self.loss(x)

    model = Model()
    for f in (model.loss, model, functools.partial(Model.loss, model), nj.jit(model)):
        assert float(nj.grad(f)(2.0)) == 12.0
    assert nj.grad(model.loss).__name__ == "loss"


def test_python_control_flow_on_values_works_without_jit() -> None:
    def f(x: Any) -> Any:
        y = x
        while y < 10.0:
            y = y * x
        return y if x > 0 else -y

    assert float(nj.grad(f)(2.0)) == 32.0
    assert float(nj.grad(nj.grad(f))(2.0)) == 48.0


# ------------------------------------------------------------------ jvp, vjp, linearize
def test_jvp_pushes_trees() -> None:
    def f(p: Any, y: Any) -> Any:
        return {"out": p["a"] * y, "flag": y > 0.0}

    out, t = nj.jvp(f, ({"a": x3}, 2.0), ({"a": jnp.ones(3)}, 1.0))
    close(out["out"], 2.0 * x3)
    close(t["out"], 2.0 + x3)
    assert t["flag"].dtype == nj.dtypes.float0
    out, t, aux = nj.jvp(lambda x: (x**2, ("aux", x)), (3.0,), (1.0,), has_aux=True)
    assert (float(out), float(t)) == (9.0, 6.0) and aux[0] == "aux" and float(aux[1]) == 3.0


def test_jvp_checks_tangents() -> None:
    with pytest.raises(ValueError, match=r"tangents\[0\].*expected float32\[3\], got float32\[2\]"):
        nj.jvp(jnp.sin, (x3,), (jnp.ones(2),))
    with pytest.raises(TypeError, match="must be tuples or lists"):
        nj.jvp(jnp.sin, x3, x3)
    with pytest.raises(TypeError, match="got int32"):
        nj.jvp(jnp.sin, (x3,), (jnp.ones(3, int),))
    t = nj.jvp(lambda n, x: n * x, (3, 2.0), (np.zeros((), nj.dtypes.float0), 1.0))[1]
    assert float(t) == 3.0


def test_vjp_pulls_trees_back() -> None:
    out, pull, aux = nj.vjp(
        lambda p, y: ({"o": p[0] * y, "q": p[1]}, "aux"), (x3, 2.0), 3.0, has_aux=True
    )
    assert aux == "aux"
    (c0, c1), cy = pull({"o": jnp.ones(3), "q": 5.0})
    close((c0, c1, cy), (3.0 * jnp.ones(3), jnp.array(5.0), jnp.sum(x3)))
    close(pull({"o": jnp.ones(3), "q": 5.0})[1], cy)  # the pullback can be called again
    close(nj.vmap(lambda ct: pull({"o": ct, "q": 0.0})[1])(jnp.eye(3)), x3)
    with pytest.raises(ValueError, match="must match the pytree structure of the diff"):
        pull(1.0)
    with pytest.raises(ValueError, match=r"got float32.2., but expected float32.3. .*cot.*'o'"):
        pull({"o": jnp.ones(2), "q": 5.0})


def test_vjp_of_integer_outputs_takes_float0() -> None:
    out, pull = nj.vjp(lambda x: (x * 2.0, jnp.argmax(x)), x3)
    close(pull((jnp.ones(3), np.zeros((), nj.dtypes.float0)))[0], 2.0 * jnp.ones(3))


def test_the_pullback_and_the_linear_map_can_be_jitted_and_returned() -> None:
    _, pull = nj.vjp(lambda x: jnp.sin(x) * x, x3)
    want = jnp.cos(x3) * x3 + jnp.sin(x3)
    close(nj.jit(lambda ct: pull(ct)[0])(jnp.ones(3)), want)
    y, lin = nj.linearize(lambda x: jnp.sin(x) * x, x3)
    close(y, jnp.sin(x3) * x3)
    close(lin(jnp.ones(3)), want)
    close(nj.jit(lin)(jnp.ones(3)), want)
    close(nj.vmap(lin)(jnp.eye(3)), jnp.diag(want))
    close(nj.jit(lambda x: nj.linearize(jnp.sin, x)[1](x))(x3), jnp.cos(x3) * x3)
    with pytest.raises(TypeError, match="linearize"):
        lin(jnp.ones(3), jnp.ones(3))


def test_linearize_with_aux_and_trees() -> None:
    (y, z), lin, aux = nj.linearize(lambda p: ((p["a"] ** 2, 7.0), "aux"), {"a": 3.0}, has_aux=True)
    assert (float(y), float(z), aux) == (9.0, 7.0, "aux")
    close(lin({"a": 1.0}), (jnp.array(6.0), jnp.array(0.0)))


def test_linear_transpose_is_the_adjoint() -> None:
    def f(x: Any) -> Any:
        return {"a": m @ x, "b": 2.0 * jnp.cumsum(x)[::-1]}

    transposed = nj.linear_transpose(f, nj.ShapeDtypeStruct((3,), "float32"))
    ct = {"a": jnp.array([1.0, -2.0]), "b": jnp.arange(3.0)}
    close(transposed(ct), nj.vjp(f, x3)[1](ct))
    close(nj.jit(transposed)(ct), transposed(ct))
    left = sum(jnp.vdot(a, b) for a, b in zip(nj.tree.leaves(f(x3)), nj.tree.leaves(ct)))
    close(left, jnp.vdot(x3, transposed(ct)[0]))
    with pytest.raises((NotImplementedError, TypeError), match="sin.*linear"):
        nj.linear_transpose(jnp.sin, 1.0)(1.0)
    with pytest.raises(TypeError, match=r"cotangent\['a'\].*float32\[2\].*float32\[5\]"):
        transposed({"a": jnp.ones(5), "b": jnp.ones(3)})


# ------------------------------------------------------------------ Jacobians
@pytest.mark.parametrize("jac", [nj.jacfwd, nj.jacrev, nj.jacobian])
def test_jacobians_over_trees(jac: Any) -> None:
    def f(p: Any, y: Any) -> Any:
        return {"v": p["w"] @ y, "s": jnp.sum(y**2)}

    found = jac(f, argnums=(0, 1))({"w": m}, x3)
    assert found["v"][0]["w"].shape == (2, 2, 3)
    close(found["v"][0]["w"], jnp.einsum("ij,k->ijk", jnp.eye(2), x3))
    close(found["v"][1], m)
    close(found["s"][0]["w"], jnp.zeros((2, 3)))
    close(found["s"][1], 2 * x3)
    single = jac(f, argnums=1)({"w": m}, x3)
    close(single, {"v": m, "s": 2 * x3})


@pytest.mark.parametrize("jac", [nj.jacfwd, nj.jacrev])
def test_jacobians_with_aux_and_under_jit_and_vmap(jac: Any) -> None:
    j, aux = jac(lambda x: (x**2, {"mean": x.mean()}), has_aux=True)(x3)
    close(j, jnp.diag(2 * x3))
    close(aux["mean"], x3.mean())
    close(nj.jit(jac(jnp.sin))(x3), jnp.diag(jnp.cos(x3)))
    close(nj.vmap(jac(jnp.sin))(m), nj.vmap(jnp.diag)(jnp.cos(m)))
    with pytest.raises(TypeError, match="int32"):
        jac(lambda n: n * 2.0)(jnp.arange(3))


def test_hessian_over_trees() -> None:
    def f(p: Any) -> Any:
        return p["a"] ** 2 * jnp.sum(p["b"] ** 3)

    h = nj.hessian(f)({"a": 2.0, "b": x3})
    close(h["a"]["a"], 2 * jnp.sum(x3**3))
    close(h["a"]["b"], 12 * x3**2)
    close(h["b"]["a"], 12 * x3**2)
    close(h["b"]["b"], jnp.diag(24 * x3))
    close(
        nj.hessian(lambda x, y: jnp.sum(x * y**2), argnums=(0, 1))(x3, x3)[1][0], jnp.diag(2 * x3)
    )
    h, aux = nj.hessian(lambda x: (jnp.sum(x**3), "a"), has_aux=True)(x3)
    close(h, jnp.diag(6 * x3))


# ------------------------------------------------------------------ against the oracle
CASES = """
def cases(jx, jnp, lax):
    x = jnp.array([0.5, -1.0, 2.0]); w = jnp.arange(9.0).reshape(3, 3) / 7
    z = x + 1j * x[::-1]
    yield "norm", lambda: jx.grad(lambda v: jnp.linalg.norm(w @ v))(x)
    yield "max_ties", lambda: jx.grad(lambda v: jnp.max(v))(jnp.array([1.0, 2.0, 2.0]))
    yield "maximum_ties", lambda: jx.grad(lambda v: jnp.sum(jnp.maximum(v, 2.0)))(
        jnp.array([1.0, 2.0, 3.0]))
    yield "abs_zero", lambda: jx.grad(jnp.abs)(0.0)
    yield "relu_zero", lambda: jx.grad(jx.nn.relu)(0.0)
    yield "sqrt_zero", lambda: jx.grad(jnp.sqrt)(0.0)
    yield "where", lambda: jx.grad(lambda v: jnp.sum(jnp.where(v > 0, v**2, v)))(x)
    yield "prod_zero", lambda: jx.grad(jnp.prod)(jnp.array([0.0, 2.0, 3.0]))
    yield "clip", lambda: jx.grad(lambda v: jnp.sum(jnp.clip(v, -1.0, 1.0)))(x)
    yield "sort", lambda: jx.grad(lambda v: jnp.sort(v) @ x)(x)
    yield "logsumexp", lambda: jx.grad(lambda v: jx.nn.logsumexp(v))(x)
    yield "softmax", lambda: jx.jacrev(jx.nn.softmax)(x)
    yield "cumprod", lambda: jx.jacrev(jnp.cumprod)(x)
    yield "fft", lambda: jx.grad(lambda v: jnp.sum(jnp.abs(jnp.fft.fft(v)) ** 2))(x)
    yield "complex_grad", lambda: jx.grad(lambda v: jnp.sum(jnp.real(v * v.conj() * v)))(z)
    yield "complex_vjp", lambda: jx.vjp(lambda v: jnp.exp(v) * v, z)[1](z)[0]
    yield "real_imag", lambda: jx.grad(lambda v: jnp.sum(jnp.real(v) * jnp.imag(v)))(z)
    yield "inv", lambda: jx.grad(lambda a: jnp.sum(jnp.linalg.inv(a + 2 * jnp.eye(3))))(w)
    yield "det", lambda: jx.grad(lambda a: jnp.linalg.det(a + 2 * jnp.eye(3)))(w)
    yield "cholesky", lambda: jx.grad(
        lambda a: jnp.sum(jnp.linalg.cholesky(a @ a.T + jnp.eye(3))))(w)
    yield "eigh", lambda: jx.grad(lambda a: jnp.sum(jnp.linalg.eigh(a + a.T)[0] ** 3))(w)
    yield "solve", lambda: jx.jacfwd(lambda b: jnp.linalg.solve(w + 2 * jnp.eye(3), b))(x)
    yield "conv", lambda: jx.grad(lambda v: jnp.sum(jnp.convolve(v, x) ** 2))(x)
    yield "gather", lambda: jx.grad(lambda v: jnp.sum(v[jnp.array([0, 0, 2, -1])] ** 2))(x)
    yield "out_of_bounds", lambda: jx.grad(lambda v: jnp.sum(v[jnp.array([0, 7])] ** 2))(x)
    yield "scatter", lambda: jx.grad(lambda v: jnp.sum(w.at[jnp.array([0, 2])].multiply(
            v, unique_indices=True) ** 2))(x)
    yield "hessian", lambda: jx.hessian(lambda v: jnp.sum(jnp.tanh(w @ v)) ** 2)(x)
    yield "third", lambda: jx.jacfwd(jx.hessian(lambda v: jnp.sum(jnp.sin(v)) * jnp.prod(v)))(x)
    yield "while_forward", lambda: jx.jvp(
        lambda v: lax.while_loop(lambda c: c < 10.0, lambda c: c * v, v), (2.0,), (1.0,))[1]
    yield "scan_grad", lambda: jx.grad(
        lambda v: lax.scan(lambda c, a: (jnp.sin(c * a + v), c), 0.5, x)[0])(0.3)
    yield "pow_zero", lambda: jx.grad(lambda a, b: a**b, (0, 1))(0.0, 2.0)[0]
    yield "atan2", lambda: jx.grad(lambda a: jnp.sum(jnp.arctan2(a, x)))(x[::-1])
    yield "logaddexp", lambda: jx.grad(lambda a: jnp.sum(jnp.logaddexp(a, x)))(x[::-1])
    yield "sinc", lambda: jx.grad(lambda a: jnp.sum(jnp.sinc(a)))(x)
    yield "var", lambda: jx.grad(lambda a: jnp.std(a) + jnp.var(a))(x)
    yield "median", lambda: jx.grad(jnp.median)(x)
    yield "interp", lambda: jx.grad(lambda a: jnp.sum(jnp.interp(a, jnp.arange(3.0), x)))(
        jnp.array([0.2, 1.5]))
"""
scope: dict[str, Any] = {}
exec(CASES, scope)
NAMES = [name for name, _ in scope["cases"](nj, jnp, lax)]


@pytest.fixture(scope="module")
def expected() -> dict:
    return run_in_oracle(
        CASES
        + """
from jax import lax
for name, case in cases(jax, jnp, lax):
    out[name] = case()
""",
        x64=True,
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_agree_with_the_oracle(name: str, expected: dict) -> None:
    with nj.enable_x64(True):
        case = dict(scope["cases"](nj, jnp, lax))[name]
        got = case()
        staged = nj.jit(case)()
    np.testing.assert_allclose(np.asarray(got), expected[name], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(np.asarray(staged), expected[name], rtol=1e-9, atol=1e-10)
    assert got.dtype == expected[name].dtype


@pytest.mark.parametrize("derivative", [nj.grad, nj.value_and_grad, nj.jacfwd, nj.jacrev])
@pytest.mark.parametrize("argnums", [(0, 0), (1, 0, -1)])
def test_an_argument_that_is_named_twice(derivative, argnums) -> None:
    with pytest.raises(TypeError, match="names an argument of .* twice"):
        derivative(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)
