"""custom_jvp, custom_vjp, custom_gradient, custom_root, custom_linear_solve."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from both import both
from near import close

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.jaxpr import eval_jaxpr
from numjet.custom_derivatives import SymbolicZero

x3 = jnp.array([0.5, -1.0, 2.0])


# ------------------------------------------------------------------ custom_jvp
@nj.custom_jvp
def tripled(x: Any) -> Any:
    return jnp.sin(x)


tripled.defjvp(lambda primals, tangents: (tripled(*primals), 3.0 * tangents[0]))

WAYS: dict[str, Callable] = {
    "grad": lambda f: nj.grad(f)(0.3),
    "jit": lambda f: nj.jit(nj.grad(f))(0.3),
    "grad of jit": lambda f: nj.grad(nj.jit(f))(0.3),
    "jvp": lambda f: nj.jvp(f, (0.3,), (1.0,))[1],
    "vmap": lambda f: nj.vmap(nj.grad(f))(jnp.full(2, 0.3))[1],
    "grad of vmap": lambda f: nj.grad(lambda x: nj.vmap(f)(x).sum())(jnp.full(2, 0.3))[0],
    "scan": lambda f: nj.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0])(0.3),
    "cond": lambda f: nj.grad(lambda x: lax.cond(x > 0, f, jnp.cos, x))(0.3),
    "checkpoint": lambda f: nj.grad(nj.checkpoint(f))(0.3),
    "linearize": lambda f: nj.linearize(f, 0.3)[1](1.0),
    "jacfwd": lambda f: nj.jacfwd(f)(0.3),
    "jacrev": lambda f: nj.jacrev(f)(0.3),
    "fori_loop": lambda f: nj.grad(lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x))(0.3),
    "closed_call": lambda f: nj.grad(lambda x: nj.jit(lambda: f(x))())(0.3),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_rule_is_used_everywhere(way: str) -> None:
    close(WAYS[way](tripled), jnp.array(3.0))
    assert float(tripled(0.3)) == pytest.approx(np.sin(0.3), rel=1e-6)


FORWARD = ("jvp", "linearize", "jacfwd")


@nj.custom_vjp
def tenfold(x: Any) -> Any:
    return jnp.sin(x)


tenfold.defvjp(lambda x: (tenfold(x), x), lambda x, ct: (10.0 * ct,))


@pytest.mark.parametrize("way", [w for w in WAYS if w not in FORWARD])
def test_the_reverse_rule_is_used_everywhere(way: str) -> None:
    close(WAYS[way](tenfold), jnp.array(10.0))


def test_rules_of_several_arguments() -> None:
    @nj.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defjvps(lambda t, out, x, y: 2.0 * t, None)
    close(nj.grad(f, (0, 1))(3.0, 4.0), (jnp.array(2.0), jnp.array(0.0)))
    close(nj.jvp(f, (3.0, 4.0), (1.0, 1.0)), (jnp.array(12.0), jnp.array(2.0)))
    g = nj.custom_jvp(lambda x: {"a": x, "b": (2.0 * x,)})
    g.defjvps(None)
    close(nj.jvp(g, (1.0,), (1.0,))[1], {"a": jnp.array(0.0), "b": (jnp.array(0.0),)})


def test_nondiff_arguments_come_first_in_rules() -> None:
    @functools.partial(nj.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f: Callable, x: Any, n: int) -> Any:
        return f(x) * n

    @apply.defjvp
    def rule(f: Callable, n: int, primals: Any, tangents: Any) -> Any:
        return apply(f, *primals, n), 100.0 * n * tangents[0]

    assert float(nj.grad(lambda x: apply(jnp.sin, x, 2))(1.0)) == 200.0
    assert float(nj.jit(nj.grad(lambda x: apply(jnp.sin, x, n=2)))(1.0)) == 200.0

    @functools.partial(nj.custom_vjp, nondiff_argnums=(1,))
    def power(x: Any, n: int) -> Any:
        return x**n

    power.defvjp(lambda x, n: (power(x, n), (x, 1, n)), lambda n, r, ct: (ct * n * r[2],))
    assert float(nj.grad(power)(2.0, 3)) == 9.0
    assert float(nj.jit(nj.grad(lambda x: power(x, 3)))(2.0)) == 9.0
    with pytest.raises(TypeError, match="nondiff_argnums.*traced"):
        nj.jit(lambda n: nj.grad(lambda x: power(x, n))(2.0))(3)


def test_rules_over_trees_with_none_for_parts() -> None:
    @nj.custom_vjp
    def f(p: Any, n: Any, unused: Any) -> Any:
        return {"y": p["a"] * p["b"][0], "n": n}

    def fwd(p: Any, n: Any, unused: Any) -> Any:
        return f(p, n, unused), {"a": p["a"], "none": None}

    f.defvjp(fwd, lambda r, ct: ({"a": ct["y"] * 2.0, "b": [None]}, None, None))
    g = nj.grad(lambda p, u: f(p, 3, u)["y"], (0, 1))({"a": 1.0, "b": [5.0]}, x3)
    close(g, ({"a": jnp.array(2.0), "b": [jnp.array(0.0)]}, jnp.zeros(3)))


def test_symbolic_zeros_tell_rules_what_is_constant() -> None:
    seen: list = []

    @nj.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append([type(t) is SymbolicZero for t in tangents])
        x, y = primals
        parts = [t * o for t, o in zip(tangents, (y, x)) if type(t) is not SymbolicZero]
        return f(x, y), sum(parts)

    f.defjvp(rule, symbolic_zeros=True)
    close(nj.grad(f)(3.0, 4.0), jnp.array(4.0))
    assert seen == [[False, True]]

    @nj.custom_vjp
    def g(x: Any, y: Any) -> Any:
        return x * y, y

    def fwd(x: Any, y: Any) -> Any:
        seen.append([x.perturbed, y.perturbed])
        return g(x.value, y.value), (x.value, y.value)

    def bwd(r: Any, cts: Any) -> Any:
        seen.append([type(ct) is SymbolicZero for ct in cts])
        return cts[0] * r[1], None

    g.defvjp(fwd, bwd, symbolic_zeros=True)
    close(nj.grad(lambda x: g(x, 4.0)[0])(3.0), jnp.array(4.0))
    assert seen[1:] == [[True, False], [False, True]]


def test_second_order_through_rules() -> None:
    @nj.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (square(x), x), lambda x, ct: (ct * 2.0 * x,))
    close(nj.grad(nj.grad(square))(3.0), jnp.array(2.0))
    close(nj.jit(nj.grad(nj.grad(lambda x: square(x) * x)))(3.0), jnp.array(18.0))
    close(nj.hessian(lambda x: jnp.sum(tripled(x) ** 2))(x3), jnp.diag(jnp.full(3, 18.0)))


def test_cotangents_of_unmapped_arguments_are_summed() -> None:
    @nj.custom_vjp
    def scale(x: Any, s: Any) -> Any:
        return x * s

    scale.defvjp(lambda x, s: (x * s, (x, s)), lambda r, ct: (ct * r[1], jnp.sum(ct * r[0])))
    rows = jnp.arange(12.0).reshape(4, 3)

    def total(s: Any) -> Any:
        return nj.vmap(scale, (0, None))(rows, s).sum()

    close(nj.grad(total)(2.0), rows.sum())
    close(nj.jit(nj.grad(total))(2.0), rows.sum())


def test_rules_that_close_over_arrays() -> None:
    table = jnp.arange(3.0)

    @nj.custom_vjp
    def f(x: Any) -> Any:
        return x @ table

    f.defvjp(lambda x: (f(x), None), lambda r, ct: (ct * table * 2.0,))
    close(nj.grad(f)(x3), 2.0 * table)
    close(nj.jit(nj.vmap(nj.grad(f)))(jnp.ones((2, 3))), jnp.stack([2.0 * table] * 2))


def test_custom_gradient_and_methods() -> None:
    @nj.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return x * y, lambda g: (g * 2.0, g * 3.0)

    close(nj.grad(f, (0, 1))(1.0, 1.0), (jnp.array(2.0), jnp.array(3.0)))
    close(nj.jit(nj.grad(f))(1.0, 1.0), jnp.array(2.0))

    @nj.custom_gradient
    def clip(x: Any) -> Any:
        return x, lambda g: jnp.clip(g, -1.0, 1.0)

    assert float(nj.grad(lambda x: clip(x) * 5.0)(1.0)) == 1.0


def test_closure_convert_takes_out_traced_values() -> None:
    def outer(scale: Any) -> Any:
        f, values = nj.closure_convert(lambda x: x * scale + table[0], 1.0)
        assert len(values) == isinstance(scale, nj.core.trace.Tracer)
        return f(3.0, *values)

    table = jnp.array([4.0])
    close(nj.grad(outer)(2.0), jnp.array(3.0))
    close(outer(2.0), jnp.array(10.0))


# ------------------------------------------------------------------ implicit functions
def newton(f: Callable, x: Any) -> Any:
    return lax.fori_loop(0, 20, lambda _, y: y - f(y) / nj.grad(f)(y), x)


def test_custom_root_differentiates_the_solution() -> None:
    def root(a: Any) -> Any:
        return lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))

    close(root(4.0), jnp.array(2.0))
    close(nj.grad(root)(4.0), jnp.array(0.25))
    close(nj.jit(nj.grad(root))(4.0), jnp.array(0.25))
    close(nj.vmap(nj.grad(root))(jnp.array([4.0, 9.0])), jnp.array([0.25, 1 / 6]))
    close(nj.jvp(root, (4.0,), (1.0,))[1], jnp.array(0.25))
    close(nj.grad(nj.grad(root))(4.0), jnp.array(-1.0 / 32))


def test_custom_linear_solve_differentiates_both_sides() -> None:
    a = jnp.array([[2.0, 0.5, 0.0], [0.1, 3.0, 0.2], [0.0, 0.4, 1.5]])

    def solve(a: Any, b: Any) -> Any:
        direct = lambda matvec, v: jnp.linalg.solve(nj.jacobian(matvec)(v), v)  # noqa: E731
        return lax.custom_linear_solve(lambda v: a @ v, b, direct, direct)

    close(solve(a, x3), jnp.linalg.solve(a, x3))

    def loss(f: Callable) -> Callable:
        return lambda a, b: jnp.sum(f(a, b) ** 2)

    want = nj.grad(loss(jnp.linalg.solve), (0, 1))(a, x3)
    close(nj.grad(loss(solve), (0, 1))(a, x3), want)
    close(nj.jit(nj.grad(loss(solve), (0, 1)))(a, x3), want)
    close(nj.jacfwd(solve, 1)(a, x3), jnp.linalg.inv(a), 1e-4)
    close(nj.vmap(solve, (None, 0))(a, jnp.eye(3)), jnp.linalg.inv(a).T, 1e-4)


@pytest.mark.parametrize(
    "wrap, out_axes, of_w",
    [(lambda f: f, (0, 0), 22.0), (nj.jit, (0, 0), 22.0), (nj.jit, (0, None), 16.0)],
    ids=["plain", "jit", "jit, out_axes None"],
)
def test_vmap_of_a_custom_vjp_with_an_output_that_is_not_mapped(wrap, out_axes, of_w):
    @nj.custom_vjp
    def f(x, w):
        return x * w, w * 2

    def backward(residuals, cts):
        x, w = residuals
        return cts[0] * w, cts[0] * x + 2 * cts[1] + 0 * x  # mapped, through the residual

    f.defvjp(lambda x, w: (f(x, w), (x, w)), backward)
    x = jnp.arange(4.0)

    def loss(x, w):
        a, b = nj.vmap(wrap(f), in_axes=(0, None), out_axes=out_axes)(x, w)
        return jnp.sum(a * jnp.arange(4.0)) + jnp.sum(b)

    by_x, by_w = nj.grad(loss, (0, 1))(x, jnp.float32(3))
    np.testing.assert_allclose(by_x, 3 * np.arange(4.0))
    np.testing.assert_allclose(by_w, of_w)


def test_a_cotangent_may_stand_for_a_subtree():
    def gradient(backward):
        @nj.custom_vjp
        def f(x, y):
            return sum(nj.tree.leaves(x)) + y

        f.defvjp(lambda x, y: (f(x, y), None), lambda _, ct: backward(ct))
        return nj.grad(f)({"a": 1.0, "b": (3.0, 4.0), "c": None}, 2.0)

    ones = {"a": 1.0, "b": (1.0, 1.0), "c": None}
    assert gradient(lambda ct: (ct, ct)) == ones
    assert gradient(lambda ct: ({"a": ct, "b": ct, "c": None}, ct)) == ones
    assert gradient(lambda ct: ({"a": ct, "b": None, "c": ct}, ct)) == ones | {"b": (0.0, 0.0)}
    for wrong in (lambda ct: ((ct, ct), ct), lambda ct: ({"a": (ct,), "b": ct, "c": ct}, ct)):
        with pytest.raises(TypeError, match=r"cotangent\[0\].*expected a"):
            gradient(wrong)


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit], ids=["eager", "jit"])
def test_a_rule_runs_where_only_zeros_arrive(wrap):
    """A later rule gives None for what an earlier one made: that one sees zeros, unless nothing
    that is differentiated lies between (JAX 0.10.2's answers)."""

    @nj.custom_vjp
    def noted(x, scale):
        return x * 3.0

    noted.defvjp(lambda x, s: (noted(x, s), s + jnp.max(x)), lambda seen, ct: (None, seen))

    @nj.custom_vjp
    def product(x, q):
        return x * 2.0

    product.defvjp(lambda x, q: (product(x, q), None), lambda _, ct: (ct * 2.0, None))
    x, s = jnp.arange(3.0), jnp.zeros(())
    programs = [
        (2.0, lambda x, s: product(x, noted(x, s)).sum()),
        (2.0, lambda x, s: product(x, jnp.sin(noted(x, s))).sum()),
        (0.0, lambda x, s: (x + 0.0 * lax.stop_gradient(noted(x, s))).sum()),
        (0.0, lambda x, s: x.sum() + 0.0 * noted(x, s).astype(int).sum()),
    ]
    for expected, program in programs:
        assert float(wrap(nj.grad(program, 1))(x, s)) == expected


# ------------------------------------------------------------------ closures
def scaled_by(c: Any, rule: Callable) -> Callable:
    scaled = nj.custom_jvp(lambda x: x * c)
    scaled.defjvp(functools.partial(rule, scaled, c))
    return scaled


# As in JAX 0.10: what the function closes over has no derivative where the rule leaves it alone.
OF_CLOSURES = {
    "jit around": (lambda f: nj.grad(nj.jit(lambda c: f(c)(3.0))), 0.0),
    "jit around, given too": (lambda f: nj.grad(nj.jit(lambda c: f(c)(c))), 7.0),
    "jit inside": (lambda f: nj.grad(lambda c: nj.jit(f(c))(3.0)), 0.0),
    "scan": (lambda f: nj.grad(
        lambda c: lax.scan(lambda s, _: (f(c)(s), None), 1.0, None, length=2)[0]), 0.0),
    "given too": (lambda f: nj.grad(lambda c: f(c)(c)), 7.0),
    "inner gradient": (lambda f: nj.grad(lambda c: nj.grad(f(c))(3.0)), 0.0),
    "vmap": (lambda f: lambda c: nj.vmap(lambda c: nj.grad(f(c))(3.0))(jnp.stack([c, c]))[1], 7.0),
}


@pytest.mark.parametrize("name", OF_CLOSURES)
def test_values_that_a_function_closes_over_have_no_derivative(name: str) -> None:
    of, want = OF_CLOSURES[name]
    rule = lambda _, c, primals, tangents: (primals[0] * 3.0, 7.0 * tangents[0])  # noqa: E731
    assert float(of(lambda c: scaled_by(c, rule))(2.0)) == want


@pytest.mark.parametrize("name", ["jit around", "jit inside", "scan", "given too"])
@pytest.mark.parametrize("rule", [
    lambda f, c, primals, tangents: (f(*primals), 7.0 * tangents[0]),
    lambda f, c, primals, tangents: (primals[0], c * tangents[0]),
], ids=["the function again", "the value"])
def test_a_rule_that_uses_such_a_value_is_refused(name: str, rule: Callable) -> None:
    with pytest.raises(nj.errors.UnexpectedTracerError):
        OF_CLOSURES[name][0](lambda c: scaled_by(c, rule))(2.0)


@pytest.mark.parametrize(("given", "error"), [
    (jnp.arange(3), ValueError), ((1, 2, 3), ValueError), (None, TypeError),
])  # fmt: skip
def test_a_batching_rule_that_gives_no_pair_is_refused(given: Any, error: type) -> None:
    f = nj.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda axis_size, in_batched, x: given)
    with pytest.raises(error, match="must return a pair"):
        nj.vmap(f)(jnp.arange(3))


def test_rules_of_a_decorator_are_set_through_another():
    @nj.custom_vjp
    @nj.custom_batching.custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def mapped(axis_size, in_batched, xs, ys):
        return xs + ys, True

    f.defvjp(lambda x, y: (f(x, y), y), lambda y, ct: (3 * ct * y, ct))
    np.testing.assert_array_equal(nj.vmap(f)(jnp.arange(3.0), jnp.ones(3)), [1, 2, 3])
    assert float(nj.grad(f)(2.0, 5.0)) == 15
    assert not hasattr(nj.custom_vjp(lambda x: x), "def_vmap")
    assert not hasattr(nj.custom_batching.custom_vmap(lambda x: x), "defjvp")

    g = nj.custom_batching.custom_vmap(nj.custom_jvp(jnp.sin))
    with pytest.raises(AttributeError, match="No batching rule"):
        g(1.0)
    g.def_vmap(lambda axis_size, in_batched, x: (jnp.sin(x), True))
    g.defjvp(lambda primals, tangents: (g(*primals), 7 * tangents[0]))
    assert float(nj.jvp(g.fun, (1.0,), (1.0,))[1]) == 7


def _square(seen: list) -> Any:
    @nj.custom_jvp
    def square(x: Any) -> Any:
        seen.append(x)
        return x**2

    @square.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.extend([*primals, *tangents])
        return primals[0] ** 2, 2 * primals[0] * tangents[0]

    return square


def test_rules_see_python_numbers_as_they_were_given() -> None:
    seen: list = []
    square = _square(seen)
    assert repr(square(3.0)) == "9.0" and repr(seen.pop()) == "TypedFloat(3.0, dtype=float32)"
    assert repr(nj.jvp(square, (3.0,), (1.0,))) == "(9.0, 6.0)"
    assert repr(seen) == "[3.0, 1.0]"
    assert repr(nj.jvp(lambda x: square(square(x)), (3.0,), (1.0,))) == "(81.0, 108.0)"
    seen.clear()
    value, slope = nj.value_and_grad(square)(3.0)
    assert repr(value) == "9.0" and isinstance(slope, nj.Array)
    assert repr(seen[0]) == "TypedFloat(3.0, dtype=float32)"
    assert repr(nj.vjp(square, 3.0)[0]) == "9.0"
    assert isinstance(nj.value_and_grad(lambda x: square(x) + 1)(3.0)[0], nj.Array)
    assert isinstance(nj.jvp(lambda x: square(x) + 1, (3.0,), (1.0,))[1], nj.Array)
    sign = nj.custom_jvp(jnp.sign)
    sign.defjvp(lambda primals, tangents: (jnp.sign(primals[0]), tangents[0]))
    assert repr(nj.jvp(sign, (2.0,), (3.0,))[1]) == "3.0"
    assert repr(nj.value_and_grad(square)(jnp.float32(3.0))[0]) == "Array(9., dtype=float32)"


def test_rules_see_numpy_arrays_with_the_dtype_of_arrays() -> None:
    seen: list = []
    square = _square(seen)
    found = square(np.full(2, 3.0))
    assert type(found) is np.ndarray and found.dtype == np.float32
    assert repr(seen.pop()) == "TypedNdArray([3., 3.], dtype=float32)"
    value, _ = nj.vjp(square, np.full(2, 3.0))
    assert type(value) is np.ndarray and value.dtype == np.float32
    assert repr(nj.vjp(lambda x: x, np.ones(2))[0]) == "TypedNdArray([1., 1.], dtype=float32)"


def test_residuals_and_cotangents_are_numbers_with_dtypes() -> None:
    seen: list = []

    @nj.custom_vjp
    def double(x: Any) -> Any:
        return 2 * x

    double.defvjp(
        lambda x: (2 * x, (x, 1, True)), lambda r, ct: (seen.extend([*r, ct]), (3 * ct,))[1]
    )
    value, pullback = nj.vjp(double, 2.0)
    assert repr((value, pullback(1.0))) == "(4.0, (3.0,))"
    assert repr(seen) == "[TypedFloat(2.0, dtype=float32), TypedInt(1, dtype=int32), True, 1.0]"
    assert isinstance(pullback(jnp.float32(1.0))[0], nj.Array)
    double.defvjp(lambda x: (2 * x, "text"), lambda r, ct: (3 * ct,))
    with pytest.raises(TypeError, match="'text' of type <class 'str'> is not a valid JAX type"):
        nj.grad(double)(2.0)


def test_outer_numbers_are_seen_by_inner_rules() -> None:
    seen: list = []
    square = _square(seen)
    assert float(nj.grad(lambda x: nj.jvp(square, (x,), (1.0,))[1])(3.0)) == 2.0
    assert float(nj.grad(nj.grad(square))(3.0)) == 2.0
    assert float(nj.hessian(square)(3.0)) == 2.0


@pytest.mark.parametrize("of", ["float32", "complex64"])
@pytest.mark.parametrize("given", ["float16", "float32", "int32", "complex64", "bool"])
def test_cotangents_of_other_dtypes_are_converted(of, given):
    @nj.custom_vjp
    def f(x):
        return jnp.sum(x * 2).real

    factor = 3 + 1j if given == "complex64" else 1
    f.defvjp(lambda x: (f(x), x), lambda x, g: ((jnp.ones(x.shape) * factor).astype(given),))
    want = np.full(3, factor if of == "complex64" else np.real(factor), of)
    x = jnp.ones(3, of)
    for got in (nj.grad(f)(x), nj.jit(nj.grad(f))(x), nj.grad(lambda x: f(x * 2))(x) / 2):
        assert got.dtype == of
        np.testing.assert_array_equal(got, want)


def test_a_rule_that_vmap_does_not_map_gets_the_whole_cotangent():
    """It got equal parts of it, whose sum is another where the rule is not linear."""

    @nj.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
    y = jnp.arange(8.0)
    closed = lambda x: nj.vmap(lambda y: clipped(x) * y)(y).sum()  # noqa: E731
    given = lambda x: nj.vmap(lambda x, y: clipped(x) * y, (None, 0))(x, y).sum()  # noqa: E731
    for f in (closed, given):
        assert nj.grad(f)(3.0) == nj.jit(nj.grad(f))(3.0) == 1
    twice = lambda x: nj.vmap(nj.vmap(lambda y: clipped(x) * y))(y.reshape(2, 4)).sum()  # noqa: E731
    assert nj.grad(twice)(3.0) == 1


# ------------------------------------------------------------------ what messages say
def _in_a_loop(f: Callable) -> Callable:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def test_a_rule_whose_primal_output_differs_is_told_by_name() -> None:
    @nj.custom_jvp
    def halved(x: Any) -> Any:
        return x / 2

    def doubled_rule(primals: Any, tangents: Any) -> Any:
        return [primals[0]] * 2, [tangents[0]] * 2

    halved.defjvp(doubled_rule)
    one = jnp.float32(1)
    with pytest.raises(TypeError) as caught:
        nj.jvp(_in_a_loop(halved), (one,), (one,))
    assert "rule doubled_rule for function halved must produce a pair" in str(caught.value)
    assert "container/pytree structure:\n    [float32[], float32[]]\nwhile" in str(caught.value)

    @nj.custom_vjp
    def same(x: Any) -> Any:
        return x

    def wider(x: Any) -> Any:
        return jnp.stack([x, x]), None

    same.defvjp(wider, lambda _, ct: (ct,))
    with pytest.raises(TypeError) as caught:
        nj.grad(_in_a_loop(same))(one)
    assert "Custom VJP fwd rule wider for function same must produce a pair" in str(caught.value)
    assert "shapes/dtypes of:\n    float32[2]\nwhile the custom_vjp-decorated" in str(caught.value)


def test_arguments_that_have_no_position_are_named() -> None:
    @nj.custom_jvp
    def f(x: Any, y: Any, *, scale: float = 1.0) -> Any:
        return scale * (x + y)

    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(TypeError, match=r"custom_jvp-decorated function f .*\nmissing a required"):
        f(1.0)
    with pytest.raises(TypeError, match="could not be resolved to positions: scale"):
        f(1.0, 2.0, scale=3.0)
    assert float(f(y=1.0, x=2.0)) == 3.0 and float(nj.grad(f)(1.0, 2.0)) == 1.0
    bound = functools.partial(lambda x, k: k * x, k=4.0)  # what is bound by name is no argument
    g = nj.custom_jvp(bound)
    g.defjvp(lambda p, t: nj.jvp(bound, p, t))
    assert float(nj.grad(g)(2.0)) == 4.0


def test_cotangents_that_do_not_fit_are_told_by_their_place() -> None:
    @nj.custom_vjp
    def f(pair: Any) -> Any:
        return pair["a"]

    f.defvjp(lambda pair: (f(pair), None), lambda _, ct: ({"a": ct, "b": jnp.ones(5)},))
    both = {"a": jnp.float32(1), "b": jnp.ones(4)}
    with pytest.raises(ValueError, match=r"output\[0\]\['b'\] the bwd rule .* type float32\[5\]"):
        nj.grad(f)(both)

    @nj.custom_vjp
    def h(x: Any, y: Any) -> Any:
        return x, y

    h.defvjp(
        lambda x, y: (h(x.value, y.value), None), lambda _, ct: (None, ct[0]), symbolic_zeros=True
    )
    with pytest.raises(ValueError, match="Consider just returning a None here"):
        nj.grad(lambda x, y: h(x, y)[1].sum(), 1)(jnp.ones(2), jnp.ones(3))


@pytest.mark.parametrize("jit", [False, True])
def test_zero_tangents_stay_symbolic_under_vmap(jit: bool) -> None:
    seen = []

    @nj.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y, y

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append([type(t) is SymbolicZero for t in tangents])
        assert [t.shape for t in tangents] == [(), ()]
        return f(*primals), (tangents[0] * primals[1], tangents[1])

    f.defjvp(rule, symbolic_zeros=True)
    g = lambda x: nj.vmap(f, (0, None))(x, 3.0)  # noqa: E731
    run = lambda x: nj.jvp(g, (x,), (2 * x,))  # noqa: E731
    (out, other), (t, t_other) = (nj.jit(run) if jit else run)(x3)
    assert seen[-1] == [False, True]
    close(out, 3 * x3)
    close(t, 6 * x3)
    close(other, jnp.full(3, 3.0))
    close(t_other, jnp.zeros(3))


def test_rules_of_custom_vmap_under_jvp_see_what_is_mapped_of_both() -> None:
    seen: list = []

    @nj.custom_batching.custom_vmap
    def f(x: Any) -> Any:
        return jnp.sin(x)

    @f.def_vmap
    def rule(axis_size: int, in_batched: Any, x: Any) -> Any:
        seen.append((axis_size, in_batched, x.shape))
        return jnp.cos(x), in_batched[0]

    derived = lambda x, t: nj.jvp(f, (x,), (t,))  # noqa: E731
    x, ts = jnp.float32(0.5), jnp.arange(1.0, 4.0)
    out, t = nj.vmap(derived, (None, 0), (None, 0))(x, ts)  # the primal stays one for all
    close(out, jnp.cos(x))
    close(t, -jnp.sin(x) * ts)
    assert seen == [(3, [False], ())]
    outs, t = nj.vmap(derived, (0, None))(ts, x)
    close(outs, jnp.cos(ts))
    close(t, -jnp.sin(ts) * x)
    assert seen[1:] == [(3, [False], ())]
    nj.vmap(derived)(ts, ts)
    assert seen[2:] == [(3, [True], (3,))]


def test_messages_of_rules_of_custom_vmap_name_the_rule() -> None:
    f = nj.custom_batching.custom_vmap(lambda x: x)

    @f.def_vmap
    def by_two(axis_size: int, in_batched: Any, x: Any) -> Any:
        return [x, x], in_batched if x.shape[0] == 2 else [True, True]

    with pytest.raises(ValueError, match=r"batching specification .* rule \(by_two\) do not match"):
        nj.vmap(f)(jnp.ones(2))
    with pytest.raises(ValueError, match=r"rule \(by_two\) does not match that of original"):
        nj.vmap(f)(jnp.ones(3))


def test_optimize_remat_runs_the_function_where_no_residuals_are_kept() -> None:
    both("""
def made(optimize):
    f = jax.custom_vjp(lambda x: jnp.sin(x))  # the rule gives another value, so that it shows
    f.defvjp(lambda x: (100 * jnp.cos(x), (x, jnp.exp(x))), lambda kept, ct: (ct * kept[1],),
             optimize_remat=optimize)
    return f
for optimize in (False, True):
    f = made(optimize)
    for name, way in (('eager', lambda g: g), ('jit', jax.jit)):
        out[f'~{optimize} {name}'] = jnp.stack(way(jax.value_and_grad(f))(1.0))
        out[f'~{optimize} {name} kept'] = jnp.stack(way(jax.value_and_grad(jax.checkpoint(f)))(1.0))
        inside = jax.checkpoint(lambda x: jnp.sin(f(x)))
        out[f'~{optimize} {name} inside'] = jnp.stack(way(jax.value_and_grad(inside))(1.0))
        mapped = jax.vmap(jax.value_and_grad(jax.checkpoint(f)))
        out[f'~{optimize} {name} mapped'] = jnp.stack(way(mapped)(jnp.arange(3.0)))
f = made(True)
jaxpr = jax.make_jaxpr(lambda x: jax.vjp(f, x)[0])(1.0)
out['equations'] = str([e.primitive.name for e in jaxpr.eqns])
out['remat'] = jax.make_jaxpr(jax.checkpoint(f))(1.0).eqns[0].primitive.name
""")


def test_disable_bwd_checks_takes_cotangents_of_any_shape() -> None:
    f = nj.custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, ct))
    slope = nj.grad(lambda x, y: f(x, y).sum(), 1)
    with pytest.raises(ValueError, match="the shapes do not match"):
        slope(jnp.ones(3), jnp.ones(4))
    nj.config.update("disable_bwd_checks", True)
    try:
        assert slope(jnp.ones(3), jnp.ones(4)).shape == (3,)
    finally:
        nj.config.update("disable_bwd_checks", False)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_run_as_their_function_was_shown(kind):
    """`make_jaxpr` writes JAX's equations, by which linear functions remember other shapes: a rule
    that gives what they remember gives the function's shapes when the jaxpr is differentiated."""
    scales = jnp.array([1.0, 2.0, 4.0])

    def remembered(x):
        def one(row):
            return jnp.sum((scales - row) * scales)

        value, linear = nj.linearize(lambda x: jnp.prod(nj.vmap(one)(x)), x)
        return value, nj.tree.leaves(linear)

    if kind == "custom_jvp":
        f = nj.custom_jvp(remembered)
        f.defjvp(lambda x, t: (remembered(*x), nj.jvp(remembered, x, t)[1]))
    else:
        f = nj.custom_vjp(remembered)
        f.defvjp(lambda x: nj.vjp(remembered, x), lambda pull, ct: pull(ct))
    x = jnp.ones((2, 3))
    shown = nj.make_jaxpr(lambda x: 3 * f(x)[0])(x)
    run = lambda x: eval_jaxpr(shown.jaxpr, shown.consts, x)[0]  # noqa: E731
    want = nj.grad(lambda x: 3 * remembered(x)[0])(x)
    for found in (nj.grad(run)(x), nj.jit(nj.grad(run))(x)):
        np.testing.assert_allclose(found, want, rtol=1e-6)


def test_the_cotangent_of_an_output_that_is_not_mapped_is_the_whole_one() -> None:
    @nj.custom_vjp
    def total(x: Any, w: Any) -> Any:
        return lax.psum(x, "i") * w

    total.defvjp(
        lambda x, w: (total(x, w), (lax.psum(x, "i"), w)), lambda r, ct: (5 * r[1] * ct, r[0] * ct)
    )
    x, w = jnp.arange(4.0), jnp.float32(2)

    def summed(x: Any, w: Any) -> Any:
        return nj.vmap(total, (0, None), axis_name="i")(x, w).sum()

    def looped(x: Any, w: Any) -> Any:
        step = lambda c, _: (total(c, w), None)  # noqa: E731
        one = lambda x: lax.scan(step, x, None, length=1)[0]  # noqa: E731
        return nj.vmap(one, axis_name="i")(x).sum()

    for f in (summed, looped, nj.jit(summed)):
        gx, gw = nj.grad(f, (0, 1))(x, w)
        np.testing.assert_allclose(gx, np.full(4, 5 * 2 * 4.0))
        np.testing.assert_allclose(gw, 6 * 4.0)


def test_outputs_that_are_not_mapped_stay_so_under_differentiation() -> None:
    @nj.custom_vjp
    def f(x: Any, w: Any) -> Any:
        return 3 * w, x * w

    f.defvjp(
        lambda x, w: ((3 * w, x * w), (x, w)),
        lambda r, ct: (r[1] * ct[1], 3 * ct[0] + r[0] * ct[1]),
    )

    def loss(x: Any, w: Any) -> Any:
        once, each = nj.vmap(f, (0, None), (None, 0))(x, w)
        return 7 * once + each.sum()

    gx, gw = nj.grad(loss, (0, 1))(jnp.arange(3.0), 2.0)  # JAX counts the 21 thrice
    np.testing.assert_allclose(gx, [2, 2, 2])
    np.testing.assert_allclose(gw, 3 * 7 + 3, rtol=1e-6)


def test_arguments_by_name_behind_others_that_are_not_given() -> None:
    """As optimal transport's `logsumexp(x, b=weights)` is called."""

    @functools.partial(nj.custom_jvp, nondiff_argnums=(1, 3))
    def scaled(x, axis=0, weights=None, power=1):
        return x**power if weights is None else x**power * weights

    @scaled.defjvp
    def _(axis, power, primals, tangents):
        (x, weights), tangent = primals, tangents[0]
        return scaled(x, axis, weights, power), tangent * (7 if weights is None else weights)

    x, w = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    assert scaled(x, weights=w).tolist() == [3, 8] and scaled(x, power=2).tolist() == [1, 4]
    assert scaled(x, power=2, weights=w).tolist() == [3, 16]
    for call in (lambda f: f, nj.jit):
        assert call(nj.grad(lambda v: scaled(v, weights=w).sum()))(x).tolist() == [3, 4]
        assert call(nj.grad(lambda v: scaled(v, power=1).sum()))(x).tolist() == [7, 7]

    @nj.custom_vjp
    def product(a, b=2.0, c=3.0, *, d=4.0):
        return a * b * c * d

    product.defvjp(lambda a, b, c: (product(a, b, c), b * c), lambda r, g: (g * r, 0.0, 0.0))
    assert product(x, c=5.0).tolist() == [40, 80]
    assert nj.grad(lambda v: product(v, c=5.0).sum())(x).tolist() == [10, 10]
    with pytest.raises(TypeError, match="could not be resolved to positions: d"):
        product(x, c=5.0, d=1.0)
