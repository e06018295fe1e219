"""Iterative solvers and minimization: solutions, derivatives, transformations, mistakes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import numjet as nj
import numjet.numpy as jnp
from numjet.scipy.optimize import minimize
from numjet.scipy.sparse.linalg import bicgstab, cg, gmres
from numjet.test_util import check_grads

SOLVERS = [cg, bicgstab, gmres]


def system(n: int, complex_: bool = False, definite: bool = True) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    if complex_:
        a, b = a + 1j * rng.standard_normal((n, n)), b + 1j * rng.standard_normal(n)
    return (a @ a.conj().T / n if definite else a / 3) + 3 * np.eye(n), b


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("n", [1, 5, 30])
def test_solutions(solver: Any, complex_: bool, n: int) -> None:
    a, b = system(n, complex_, solver is cg)
    with nj.enable_x64(True):
        want = np.linalg.solve(a, b)
        for options in ({}, {"x0": want + 0.1}, {"M": np.diag(1 / a.diagonal())}):
            x, info = solver(a, b, tol=1e-12, **options)
            assert not info
            np.testing.assert_allclose(x, want, rtol=1e-9, atol=1e-9)
        many = nj.jit(nj.vmap(lambda b: solver(lambda x: a @ x, b, tol=1e-12)[0]))
        np.testing.assert_allclose(many(np.stack([b, 2 * b, 0 * b])), [want, 2 * want, 0 * want])


@pytest.mark.parametrize("solver", [bicgstab, gmres])
def test_a_system_that_cg_does_not_solve(solver: Any) -> None:
    a, b = np.array([[2.0, 5.0], [-4.0, 1.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(solver(a, b)[0], np.linalg.solve(a, b), rtol=1e-4)


@pytest.mark.parametrize("restart", [1, 3, 8, 50])
def test_gmres_begins_anew(restart: int) -> None:
    a, b = system(30, definite=False)
    with nj.enable_x64(True):
        x = gmres(a, b, tol=1e-10, restart=restart, solve_method="incremental")[0]
        assert np.linalg.norm(a @ x - b) <= 1e-10 * np.linalg.norm(b)
        rough = [np.linalg.norm(a @ gmres(a, b, restart=3, maxiter=k)[0] - b) for k in (0, 1, 3)]
        assert rough[0] > 2 * rough[1] > 4 * rough[2]


def test_negative_tolerances_of_gmres_are_none() -> None:
    a, b = system(6, definite=False)
    for limits in ({"tol": -1.0}, {"tol": 0.0, "atol": -9.0}):
        x = gmres(a, b, **limits)[0]
        assert np.linalg.norm(a @ x - b) <= 1e-4 * np.linalg.norm(b)


def test_gmres_ends_where_nothing_helps() -> None:
    turn = np.roll(np.eye(4), 1, 0)  # no vector of a shorter space comes nearer
    b = np.eye(4)[0]
    np.testing.assert_array_equal(gmres(turn, b, restart=3)[0], np.zeros(4))
    np.testing.assert_allclose(gmres(turn, b, restart=4)[0], np.eye(4)[3], atol=1e-6)
    singular = np.diag([1.0, 0.0, 2.0])
    np.testing.assert_allclose(gmres(singular, np.array([1.0, 0, 4]))[0], [1, 0, 2], atol=1e-6)
    np.testing.assert_array_equal(gmres(np.zeros((3, 3)), np.ones(3))[0], np.zeros(3))


@pytest.mark.parametrize("solver", SOLVERS)
def test_trees_and_derivatives(solver: Any) -> None:
    a, b = system(4, definite=solver is cg)

    def solved(scale: Any, b: Any, start: Any) -> Any:
        def product(x: dict) -> dict:
            return {"u": scale * (a @ x["u"]), "v": 2.0 * x["v"]}

        return solver(product, b, start, tol=1e-13)[0]

    with nj.enable_x64(True):
        tree = {"u": b, "v": np.array([[1.0, 2.0]])}
        x = solved(2.0, tree, None)
        np.testing.assert_allclose(x["u"], np.linalg.solve(a, b) / 2)
        np.testing.assert_allclose(x["v"], [[0.5, 1.0]])
        start = {"u": np.ones(4), "v": np.ones((1, 2))}
        for x0 in (None, start):
            check_grads(lambda s, b: solved(s, b, x0), (2.0, tree), 2)  # noqa: B023
        g = nj.grad(lambda x0: solved(2.0, tree, x0)["u"].sum())(start)
        assert not np.any(g["u"])


def test_maxiter_and_atol_stop() -> None:
    a, b = system(30)
    with nj.enable_x64(True):
        errors = [
            np.linalg.norm(a @ np.asarray(cg(a, b, maxiter=k, tol=0.0)[0]) - b) for k in (0, 2, 6)
        ]
        assert errors[0] == pytest.approx(np.linalg.norm(b))
        assert errors[0] > 3 * errors[1] > 9 * errors[2] > 0
        again = [cg(a, b, maxiter=k, tol=0.0)[0] for k in (6, 5.5, jnp.array(6))]
        assert np.array_equal(again[0], again[1]) and np.array_equal(again[0], again[2])
        rough = np.linalg.norm(a @ np.asarray(cg(a, b, tol=0.0, atol=0.1)[0]) - b)
        assert 1e-6 < rough <= 0.1


def rosenbrock(x: Any) -> Any:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def valley(x: Any) -> Any:
    return jnp.log(1 + jnp.sum(jnp.array([1.0, 1e3, 1e-2]) * (x - 2) ** 2))


@pytest.mark.parametrize(
    ("fun", "x0"),
    [
        (rosenbrock, np.zeros(2)),
        (rosenbrock, np.full(10, -1.2)),
        (himmelblau, np.ones(2)),
        (himmelblau, np.array([-200.0, 300.0])),
        (valley, np.array([30.0, -5.0, 100.0])),
        (lambda x: jnp.sum(jnp.cosh(x)), np.array([8.0, -3.0])),
        (lambda x: x[0] - jnp.log(x[0]), np.array([40.0])),  # NaN behind the edge
    ],
)
def test_minima(fun: Any, x0: np.ndarray) -> None:
    with nj.enable_x64(True):
        for run in (minimize, nj.jit(minimize, static_argnums=0, static_argnames="method")):
            found = run(fun, x0, method="BFGS")
            assert found.success and found.status == 0
            assert abs(nj.grad(fun)(found.x)).max() < 1e-5
            want = scipy.optimize.minimize(lambda x: float(fun(x)), found.x, method="Nelder-Mead")
            assert found.fun <= want.fun + 1e-7
            np.testing.assert_allclose(found.fun, fun(found.x))
            assert found.nfev < 60 * (1 + len(x0))


LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


@pytest.mark.parametrize("kept", [1, 4, 10])
def test_minima_with_limited_memory(kept: int) -> None:
    options = {"maxcor": kept, "ftol": 0.0, "maxiter": 3000}
    find = nj.jit(lambda fun, x: minimize(fun, x, method=LIMITED, options=options),
                  static_argnums=0)  # fmt: skip
    with nj.enable_x64(True):
        for fun, x0 in [(rosenbrock, np.full(6, -1.2)), (himmelblau, np.array([-20.0, 30.0])),
                        (valley, np.array([3.0, -5.0, 10.0]))]:  # fmt: skip
            found = find(fun, x0)
            assert found.success and found.status == 0 and found.hess_inv is None
            assert abs(nj.grad(fun)(found.x)).max() < 1e-5
            np.testing.assert_allclose(found.jac, nj.grad(fun)(found.x), atol=1e-12)
        target = jnp.array([1 + 2j, -3j])
        found = minimize(lambda z: jnp.sum(jnp.abs(z - target) ** 4 + jnp.abs(z - target) ** 2),
                         jnp.zeros(2, complex), method=LIMITED.upper())  # fmt: skip
        assert found.success and found.x.dtype == found.jac.dtype == "complex128"
        np.testing.assert_allclose(found.x, target, atol=1e-4)


def test_limits_of_limited_memory() -> None:
    run = lambda **options: minimize(rosenbrock, jnp.zeros(5), method=LIMITED, options=options)
    assert run(maxiter=2).status == 1 and run(maxiter=2).nit == 2
    assert run(maxfun=3).status == 2 and run(maxgrad=3).status == 3 and run(ftol=0.5).status == 4
    assert minimize(lambda x: -jnp.sum(x) ** 3, jnp.ones(2), method=LIMITED,
                    options={"maxls": 2}).status in (4, 5)  # fmt: skip
    for name in ("line_search_maxiter", "disp"):
        with pytest.raises(TypeError, match="unknown options"):
            run(**{name: 3})
    with pytest.raises(TypeError, match="unknown options"):
        minimize(rosenbrock, jnp.ones(2), method="BFGS", options={"maxcor": 3})


def test_single_precision_arguments_and_maps() -> None:
    def f(x: Any, center: Any) -> Any:
        return jnp.sum((x - center) ** 2) + jnp.sum(x**4)

    found = nj.vmap(lambda c: minimize(f, jnp.zeros(3), (c,), method="bfgs", tol=1e-3))(
        jnp.array([0.0, 1.0, -5.0])
    )
    assert found.success.all() and found.x.dtype == jnp.float32
    np.testing.assert_allclose(4 * found.x**3 + 2 * found.x, [[0] * 3, [2] * 3, [-10] * 3],
                               atol=2e-3)  # fmt: skip


@pytest.mark.parametrize(
    ("fun", "x0", "counts"),  # the evaluations and iterations that JAX takes
    [
        (lambda x: 0.01 * jnp.sum(x**2), [3.0, 4.0], (7, 3)),
        (lambda x: jnp.sum((x - 2) ** 4), [0.0, 0.0], (19, 18)),
        (lambda x: jnp.exp(3 * x[0]) - 40 * x[0], [0.0], (8, 6)),
        (lambda x: 3 * jnp.sum(jnp.cosh(x - 1)), [5.0, -3.0], (10, 9)),
        (rosenbrock, [0.0] * 4, (48, 33)),
    ],
)
def test_steps_are_those_of_jax(fun: Any, x0: list, counts: tuple[int, int]) -> None:
    with nj.enable_x64(True):
        found = minimize(fun, jnp.array(x0), method="BFGS")
    assert found.success and (found.nfev, found.nit) == counts


@nj.custom_jvp
def promising(x: Any) -> Any:
    """Rises, with a derivative that says that it falls."""
    return jnp.sum(x)


promising.defjvp(lambda primals, tangents: (promising(*primals), -jnp.sum(tangents[0])))


def test_ends_of_line_searches() -> None:
    found = minimize(promising, jnp.zeros(1), method="BFGS")
    assert (found.status, found.nit, found.x[0]) == (3, 1, 0)
    few = minimize(promising, jnp.zeros(1), method="BFGS", options={"maxiter": 1})
    assert few.status == 1
    for most in (3, 10):
        found = minimize(lambda x: -jnp.sum(x), jnp.zeros(2), method="BFGS",
                         options={"line_search_maxiter": most})  # fmt: skip
        assert (found.status, found.nfev) == (5, 1 + most) and not found.x.any()
    # From beyond a minimum back: the better end of the bracket lies further off.
    found = minimize(lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2,
                     jnp.zeros(2), method="BFGS")  # fmt: skip
    np.testing.assert_allclose(found.x, [3, 2], atol=1e-3)


def test_what_stops_without_success() -> None:
    few = minimize(rosenbrock, jnp.zeros(5), method="BFGS", options={"maxiter": 3})
    assert not few.success and few.status == 1 and few.nit == 3
    stuck = minimize(lambda x: -jnp.sum(x), jnp.zeros(2), method="BFGS",
                     options={"line_search_maxiter": 3, "maxiter": 50})  # fmt: skip
    assert not stuck.success
    lost = minimize(lambda x: jnp.sum(x) * jnp.nan, jnp.zeros(2), method="BFGS")
    assert not lost.success and lost.nit <= 1


@pytest.mark.parametrize("method", ["BFGS", LIMITED])
@pytest.mark.parametrize("fun", [
    lambda x: jnp.sum(jnp.sqrt(x)),  # NaN beyond its minimum at 0, where the slope is infinite
    lambda x: jnp.sum(jnp.sqrt(jnp.abs(x - 0.3))),
    lambda x: jnp.sum(0.5 * ((x[:2] - 1) / jnp.exp(x[2])) ** 2) + x[2] * 20,  # without a minimum
])  # fmt: skip
def test_slopes_without_an_end_leave_the_point_finite(fun: Any, method: str) -> None:
    start = jnp.array([1.0, 2.0, 3.0])
    found = minimize(fun, start, method=method)
    assert bool(jnp.isfinite(found.x).all()) and bool(jnp.isfinite(found.fun))
    np.testing.assert_allclose(found.fun, fun(found.x), rtol=1e-5)
    assert found.fun < fun(start)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: minimize(rosenbrock, 1.0, method="BFGS"), ValueError, "must be a vector"),
        (lambda: minimize(rosenbrock, jnp.ones(2), method="CG"), ValueError, "Use 'BFGS'"),
        (
            lambda: minimize(rosenbrock, jnp.ones(2), method="BFGS", options={"disp": True}),
            TypeError,
            r"unknown options \['disp'\]",
        ),
        (lambda: minimize(rosenbrock, jnp.ones(2), 3.0, method="BFGS"), TypeError, "tuple"),
        (lambda: cg(jnp.ones((2, 3)), jnp.ones(2)), ValueError, "cg: A, the linear"),
        (lambda: gmres(jnp.eye(2), jnp.ones(2), restart=0), ValueError, "gmres: restart must be"),
        (
            lambda: gmres(jnp.eye(2), jnp.ones(2), solve_method="qr"),
            ValueError,
            "gmres: solve_method must be",
        ),
        (lambda: cg(jnp.eye(2), jnp.ones(2), jnp.ones(3)), ValueError, "x0 and b must have"),
    ],
)
def test_mistakes_are_explained(call, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_bicgstab_ends_at_half_a_step_that_is_near_enough() -> None:
    a = jnp.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    x = bicgstab(a, jnp.array([1.0, 2, 3]), tol=0.1)[0]
    np.testing.assert_allclose(x, [0.1735, 0.2405, 1.3193], atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_gradients_of_hermitian_systems(solver: Any) -> None:
    a, b = system(4, True)
    with nj.enable_x64(True):
        a, b = jnp.asarray(a), jnp.asarray(b)

        def norm(solve: Any) -> Any:
            return lambda a, b: jnp.sum(jnp.abs(solve((a + a.conj().T) / 2, b)) ** 3)

        found = nj.grad(norm(lambda a, b: solver(a, b, tol=1e-13)[0]), (0, 1))(a, b)
        wanted = nj.grad(norm(jnp.linalg.solve), (0, 1))(a, b)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)


def test_vectors_of_classes_that_do_not_compare() -> None:
    @nj.tree_util.register_pytree_node_class
    class Held:
        def __init__(self, x: Any) -> None:
            self.x = x

        def tree_flatten(self) -> tuple:
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, _: Any, leaves: Any) -> Any:
            return cls(*leaves)

    b = jnp.arange(3.0)
    x = cg(lambda v: Held(4 * v.x), Held(b), Held(b + 1))[0]
    np.testing.assert_allclose(x.x, b / 4, rtol=1e-6)
    with pytest.raises(ValueError, match="x0 and b must have matching tree structure"):
        cg(lambda v: v, {"p": b}, {"q": b})


def test_a_value_that_is_no_number_is_told_apart_from_a_step_that_fails():
    start = jnp.array([-1.0, 2.0])
    lost = minimize(lambda x: jnp.sum(jnp.sqrt(x)), start, method="BFGS")
    assert not lost.success and lost.status == 5
    at_rest = minimize(lambda x: jnp.sum((x - 1) ** 2), start, method="BFGS")
    assert at_rest.success and at_rest.status == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_calls_leave_no_circles_of_objects(solver):
    """With a function of its own each call compiles a loop, which goes when the call has ended."""

    def call() -> None:
        two = jnp.float32(2)
        solver(lambda x: x * two, jnp.ones(3))

    for _ in range(3):
        call()
    gc.collect()
    gc.disable()
    try:
        call()
        assert gc.collect() == 0
    finally:
        gc.enable()
