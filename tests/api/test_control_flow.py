"""cond, switch, while_loop, fori_loop, scan, map: values, derivatives, vmap, against the oracle."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import cpu, lax

CASES = """
def cases(jx, jnp, lax):
    x = jnp.array([0.5, -1.0, 2.0])
    m = jnp.arange(12.0).reshape(4, 3) / 10
    f32 = jnp.float32
    tree = {"a": x, "b": (jnp.arange(3), 2.0)}

    yield "cond", lambda: [lax.cond(p, jnp.sin, jnp.cos, 1.0) for p in (True, False, 1, 0, 0.5)]
    yield "cond_operands", lambda: lax.cond(x[0] > 0, lambda a, b: a + b, lambda a, b: a - b, x,
        1.0)
    yield "cond_none", lambda: lax.cond(True, lambda: x, lambda: -x)
    yield "cond_tree", lambda: lax.cond(x[1] > 0, lambda t: t, lambda t: {"a": t["a"] * 2,
        "b": t["b"]}, tree)
    yield "cond_weak", lambda: lax.cond(True, lambda a: a, lambda a: 1.0, f32(2.0))
    yield "cond_grad", lambda: [jx.grad(lambda a: lax.cond(a > 0, jnp.sin, lambda b: b ** 3, a))(v)
                                for v in (0.5, -0.5)]
    yield "cond_grad_closure", lambda: jx.grad(lambda a: lax.cond(True, lambda b: a * b,
        lambda b: b, a))(3.0)
    yield "cond_jvp", lambda: jx.jvp(lambda a: lax.cond(a[0] > 0, jnp.sin, jnp.cos, a), (x,), (x,))
    yield "cond_vmap_pred", lambda: jx.vmap(lambda a: lax.cond(a > 0, jnp.sin, jnp.cos, a))(x)
    yield "cond_vmap_operand", lambda: jx.vmap(lambda a: lax.cond(True, jnp.sin, jnp.cos, a))(x)
    yield "cond_vmap_grad", lambda: jx.vmap(jx.grad(lambda a: lax.cond(a > 0, jnp.sin, jnp.cos,
        a)))(x)
    yield "cond_nested", lambda: jx.vmap(lambda a: lax.cond(
        a > 0, lambda b: lax.cond(b > 1, jnp.sin, jnp.cos, b), lambda b: b, a))(x)
    yield "switch", lambda: [lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], 1.0) for i in (-5, 0, 1,
        2, 7)]
    yield "switch_vmap", lambda: jx.vmap(lambda i, a: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan],
        a))(
        jnp.arange(3), x)
    yield "switch_grad", lambda: jx.grad(lambda a: lax.switch(1, [jnp.sin, lambda b: b ** 2], a))(
        3.0)
    yield "switch_one", lambda: lax.switch(3, [jnp.sin], 1.0)

    yield "while", lambda: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 1.1), (
        0, x))
    yield "while_never", lambda: lax.while_loop(lambda c: False, lambda c: c + 1, x)
    yield "while_closure", lambda: jx.jit(lambda n, a: lax.while_loop(lambda c: c[0] < n,
        lambda c: (
        c[0] + 1, c[1] + a), (0, x)))(5, 2.0)
    yield "while_jvp", lambda: jx.jvp(lambda a: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1]) * a), (0, a))[1], (0.7,), (1.0,))
    yield "while_vmap_cond", lambda: jx.vmap(lambda n: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0)))(jnp.array([0, 3, 5]))
    yield "while_vmap_body", lambda: jx.vmap(lambda a: lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * a), (0, 1.0)))(x)
    yield "while_jacfwd", lambda: jx.jacfwd(lambda a: lax.while_loop(
        lambda c: jnp.sum(c) < 10, lambda c: c * 1.5, a))(x)
    yield "while_tree", lambda: lax.while_loop(lambda c: c["b"][1] < 9, lambda c: {
        "a": c["a"] + 1, "b": (c["b"][0], c["b"][1] * 2)}, tree)
    yield "while_swap", lambda: lax.while_loop(lambda c: c[2] < 5, lambda c: (c[1], c[0],
        c[2] + 1), (x, x * 2, 0))
    yield "fori", lambda: lax.fori_loop(0, 10, lambda i, c: c + i * x, x)
    yield "fori_negative", lambda: lax.fori_loop(5, 2, lambda i, c: c + 1, x)
    yield "fori_dynamic", lambda: jx.jit(lambda n: lax.fori_loop(0, n, lambda i,
        c: c.at[i % 3].add(1.0), x))(7)
    yield "fori_grad", lambda: jx.grad(lambda a: lax.fori_loop(0, 5, lambda i, c: jnp.sin(
        c) + i * a, a))(0.3)
    yield "fori_grad_jit", lambda: jx.jit(jx.grad(lambda a: jnp.sum(lax.fori_loop(
        0, 5, lambda i, c: jnp.tanh(m[:3] @ c) + a[i % 3], a))))(x)
    yield "fori_update", lambda: jx.jit(lambda: lax.fori_loop(
        0, 12, lambda i, c: c.at[i].set(c[i - 1] + c[i - 2]), jnp.ones(12)))()
    yield "fori_nested", lambda: jx.jit(lambda a: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(
        0, i + 1, lambda j, d: d + i * j + a, c), x))(2.0)
    yield "fori_game_of_life", lambda: jx.jit(lambda g: lax.fori_loop(0, 4, lambda _, a: (
        lambda n: (
        (n == 3) | ((a == 1) & (n == 2))).astype(int))(sum(
            jnp.roll(a, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0,
        0))), g))(
                jnp.zeros((6, 6), int).at[2, 1:4].set(1).at[1, 3].set(1).at[0, 2].set(1))

    yield "scan", lambda: lax.scan(lambda c, a: (c + a, c * a), 0.0, x)
    yield "scan_tree", lambda: lax.scan(lambda c, a: ({"s": c["s"] + a["a"]}, (a["b"][0], c)),
        {"s": 0.0}, {"a": x, "b": (m[:3],)})
    yield "scan_reverse", lambda: lax.scan(lambda c, a: (c * 2 + a, c), 0.0, x, reverse=True)
    yield "scan_length", lambda: lax.scan(lambda c, _: (c * 2, c), 1.0, None, length=5)
    yield "scan_zero", lambda: lax.scan(lambda c, a: (c + a, c), 1.0, jnp.zeros((0,)))
    yield "scan_unroll", lambda: lax.scan(lambda c, a: (c + a, c * a), 0.0, x, unroll=2)
    yield "scan_none", lambda: lax.scan(lambda c, a: (c + a, None), 0.0, x)
    yield "scan_no_carry", lambda: lax.scan(lambda c, a: (None, a * 2), None, x)
    yield "scan_matrix", lambda: jx.jit(lambda c, a: lax.scan(lambda h, r: (
        jnp.tanh(a @ h + r), h), c, m))(x, m[:3])
    yield "scan_grad", lambda: jx.grad(lambda c, a: jnp.sum(lax.scan(lambda h, r: (
        jnp.tanh(a @ h + r), h), c, m)[1] ** 2), (0, 1))(x, m[:3])
    yield "scan_grad_xs", lambda: jx.jit(jx.grad(lambda a: lax.scan(
        lambda c, b: (jnp.sin(c * b), None), 0.5, a)[0]))(x)
    yield "scan_hessian", lambda: jx.hessian(lambda a: lax.scan(
        lambda c, b: (jnp.sin(c * b), None), 0.5, a)[0])(x)
    yield "scan_jvp", lambda: jx.jvp(lambda a: lax.scan(
        lambda c, b: (jnp.sin(c * b), c), 0.5, a), (x,), (x,))
    yield "scan_vmap", lambda: jx.vmap(lambda a: lax.scan(lambda c, b: (c * b, c + b), 1.0, a))(m)
    yield "scan_vmap_carry", lambda: jx.vmap(lambda c: lax.scan(lambda d, b: (d * b, d + b), c,
        x))(x)
    yield "scan_vmap_grad", lambda: jx.vmap(jx.grad(lambda a: lax.scan(
        lambda c, b: (jnp.sin(c * b + 1), None), 0.5, a)[0]))(m)
    yield "scan_int_carry", lambda: jx.grad(lambda a: lax.scan(
        lambda c, b: ((c[0] + 1, c[1] * b), c[0]), (0, 1.0), a)[0][1])(x)
    yield "scan_bool", lambda: lax.scan(lambda c, b: (c & (b > -2), c), True, x)
    yield "scan_keys", lambda: lax.scan(lambda k, _: (jx.random.split(k)[0], jx.random.uniform(k,
        (2,))),
        jx.random.PRNGKey(0), None, 4)[1]
    yield "scan_of_cond", lambda: jx.jit(lambda a: lax.scan(lambda c, b: (
        lax.cond(b > 0, lambda: c + b, lambda: c * 2), c), 1.0, a))(x)
    yield "scan_weak", lambda: lax.scan(lambda c, b: (c + b, c), 0, x)
    yield "scan_weak_to_weak", lambda: lax.scan(lambda c, _: (c + 0.5, c), 0, None, length=3)
    yield "while_weak_to_weak", lambda: lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] + 0.5, c[1] + 1), (0, 0))
    yield "scan_adam", lambda: jx.jit(lambda p: lax.scan(lambda s, _: (lambda g: (
        (s[0] - 0.1 * (0.9 * s[1] + 0.1 * g), 0.9 * s[1] + 0.1 * g), jnp.sum(s[0] ** 2)))(
            jx.grad(lambda q: jnp.sum(jnp.cos(q) ** 2))(s[0])), (p, jnp.zeros(3)), None, 20))(x)
    yield "map", lambda: lax.map(lambda a: jnp.sin(a) @ a, m)
    yield "map_tree", lambda: lax.map(lambda t: t[0] * t[1], (x, m[:3]))
    yield "map_batched", lambda: lax.map(lambda a: jnp.sin(a) @ a, m, batch_size=3)
    yield "associative_scan", lambda: lax.associative_scan(jnp.multiply, m, axis=0)
    yield "associative_scan_reverse", lambda: lax.associative_scan(lambda a, b: a * 0.5 + b, m,
        reverse=True)
    yield "associative_scan_grad", lambda: jx.grad(lambda a: jnp.sum(lax.associative_scan(
        jnp.multiply, a)))(x)
    yield "bisect", lambda: jx.jit(lambda lo, hi: lax.while_loop(lambda c: c[1] - c[0] > 1e-6,
        lambda c: (
        lambda mid: lax.cond(mid ** 3 > 2, lambda: (c[0], mid), lambda: (mid, c[1])))(
            (c[0] + c[1]) / 2), (lo, hi)))(0.0, 2.0)
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
    for i, leaf in enumerate(jax.tree.leaves(case())):
        out[f"{name}/{i}"] = leaf
        out[f"{name}/{i}/weak"] = getattr(leaf, "weak_type", False)
"""
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_control_flow_agrees_with_the_oracle(name: str, expected: dict) -> None:
    case = dict(scope["cases"](nj, jnp, lax))[name]
    eager = nj.tree.leaves(case())
    staged = nj.tree.leaves(nj.jit(case)())
    assert len(eager) == sum(k.startswith(f"{name}/") for k in expected) // 2
    for i, (a, b) in enumerate(zip(eager, staged, strict=True)):
        want = expected[f"{name}/{i}"]
        np.testing.assert_allclose(np.asarray(a), want, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(b), want, rtol=2e-5, atol=1e-6)
        assert a.dtype == b.dtype == want.dtype and a.shape == want.shape, (a, want)
    # Without shapes beforehand there are no outputs of no round, and rows of several dtypes.
    if name not in ("scan_zero", "scan_weak", "scan_weak_to_weak"):
        with nj.disable_jit():
            for a, b in zip(nj.tree.leaves(case()), eager, strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)


def test_loops_without_jit_are_pythons_and_keep_its_numbers() -> None:
    ones = np.ones(2)
    with nj.disable_jit():
        assert repr(lax.fori_loop(0, 3, lambda i, c: (i, c), 0)) == "(2, (1, (0, 0)))"
        assert repr(lax.fori_loop(0.0, 2.0, lambda i, c: i, 0)) == "1"
        assert lax.fori_loop(0, 2, lambda i, c: c, ones) is ones
        assert repr(lax.scan(lambda c, _: (c + 1, None), 0, None, length=3)) == "(3, None)"
        assert lax.scan(lambda c, _: (c, 1), ones, None, length=2)[0] is ones
        assert repr(lax.switch(5, [lambda: 1, lambda: 2.0])) == "2.0"
        with pytest.raises(TypeError, match="same dtypes"):
            lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(3.0))


def test_reverse_mode_through_loops_of_unknown_length_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="while_loop.*scan.*forward mode.*custom_vjp"):
        nj.grad(lambda x: lax.while_loop(lambda c: c < 9.0, lambda c: c * x, x))(2.0)
    with pytest.raises(ValueError, match="while_loop"):
        nj.jit(lambda n: nj.grad(lambda x: lax.fori_loop(0, n, lambda i, c: c * x, x))(2.0))(3)


def test_loops_update_in_place() -> None:
    # A quadratic number of copies of 4 MB would take seconds.
    f = nj.jit(lambda x: lax.fori_loop(0, 2000, lambda i, c: c.at[i].add(1.0), x))
    compiled = f.lower(jnp.zeros(1_000_000)).compile()
    assert compiled.memory_analysis()["temp_size_in_bytes"] < 1_000_000
    out = compiled(jnp.zeros(1_000_000))
    assert float(out.sum()) == 2000.0


def test_loops_that_hold_host_calls_still_work() -> None:
    f = nj.jit(lambda a: lax.fori_loop(0, 3, lambda i, c: jnp.linalg.qr(c)[0] + i, a))
    a = jnp.eye(3) * 2.0 + 0.1
    want = np.asarray(a)
    for i in range(3):
        want = np.linalg.qr(want)[0] + i
    np.testing.assert_allclose(np.abs(f(a)), np.abs(want), rtol=1e-4, atol=1e-5)


def test_errors_inside_host_calls_come_out() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 2, lambda i, c: c @ jnp.ones((2, 3)), x)

    with pytest.raises(TypeError, match="(?s)fori_loop.*float32"):
        f(jnp.ones((2, 2)))


def test_outputs_of_branches_are_weak_where_the_first_branch_is():
    weak, strong = jnp.array(1), jnp.int32(1)
    assert not lax.cond(True, lambda: weak, lambda: strong).weak_type
    assert lax.cond(True, lambda: strong, lambda: weak).weak_type  # branch 0 is that of False
    assert lax.switch(1, [lambda: weak, lambda: strong]).weak_type
    assert not nj.jit(lambda i, x: lax.switch(i, [lambda: strong, lambda: x]))(1, 1).weak_type
    float_later = lax.while_loop(lambda c: c < 2.0, lambda c: c + 0.5,
                                 lax.cond(False, lambda: strong, lambda: weak))
    assert float_later.dtype == np.float32


def test_a_function_is_traced_once_for_the_same_avals():
    count = []

    def body(c, x):
        count.append(1)
        return c + x, c * x

    def branch(x):
        count.append(1)
        return x + 1

    def below(x):
        count.append(1)
        return x < 5

    def times(run):
        count.clear()
        results = [run() for _ in range(3)]
        assert all([nj.tree.all(nj.tree.map(jnp.array_equal, r, results[0])) for r in results])
        return len(count)

    xs = jnp.ones(3)
    assert times(lambda: lax.scan(body, jnp.float32(0), xs)) == 1
    assert times(lambda: lax.scan(body, jnp.zeros(2), jnp.ones((3, 2)))) == 1
    assert times(lambda: lax.cond(True, branch, branch, 1.0)) == 1
    assert times(lambda: lax.switch(2, [branch, branch, branch], xs)) == 1
    assert times(lambda: lax.while_loop(below, branch, 0)) == 2
    with nj.enable_x64(True):
        assert times(lambda: lax.cond(True, branch, branch, jnp.float32(1))) == 1


def test_what_a_traced_function_closes_over_is_the_calls_own():
    def outer(y):
        def body(c, _):
            return c + y, None

        return lax.scan(body, 0.0, None, length=2)[0] + lax.scan(body, 1.0, None, length=2)[0]

    assert nj.grad(outer)(3.0) == 4.0 and nj.jit(outer)(3.0) == 13.0
    ref = nj.new_ref(1.0)

    def reads(c, _):
        return c + ref[...], None

    for value in (1.0, 2.0):
        ref[...] = value
        assert lax.scan(reads, 0.0, None, length=2)[0] == 2 * value
        assert lax.cond(True, lambda: reads(0.0, None)[0], lambda: 0.0) == value


def test_fori_loop_counts_between_floats_of_one_dtype():
    total = lambda low, high: lax.fori_loop(low, high, lambda i, c: c + i, 0.0)
    for low, high in [(0.0, 3.0), (np.float32(0.5), np.float32(3.2)), (2.0, 1.0)]:
        want = sum(np.arange(low, high))
        for found in (total(low, high), nj.jit(total)(low, high)):
            assert found.dtype == np.float32 and abs(found - want) < 1e-6
    assert total(0.0, 3.2) == 3.0 and nj.jit(total)(0.0, 3.2) == 6.0  # JAX's numbers
    assert nj.grad(lambda x: lax.fori_loop(0.0, 2.0, lambda i, c: c * x, x))(3.0) == 27.0
    with pytest.raises(TypeError, match="must have equal types"):
        total(0, 3.5)


def test_device_get_leaves_keys_as_they_are():
    key = nj.random.key(0)
    got = nj.device_get({"key": key, "x": jnp.ones(2)})
    assert got["key"] is key and type(got["x"]) is np.ndarray


def unrolls(function, *args):
    """The param of every scan in a function's jaxpr."""
    found = []

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "scan":
                found.append(eqn.params["unroll"])
            for value in eqn.params.values():
                if hasattr(value, "eqns"):
                    walk(getattr(value, "jaxpr", value))

    walk(nj.make_jaxpr(function)(*args).jaxpr)
    return found


def test_unroll_stands_in_the_equation():
    x = jnp.ones(6)

    def looped(unroll):
        return lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c), x[0], x, unroll=unroll)[0]

    given = [1, 3, 0, 7, True, False]
    assert [unrolls(looped(u), x) for u in given] == [[1], [3], [0], [7], [6], [1]]
    assert unrolls(nj.grad(looped(3)), x) == [3, 3]
    assert unrolls(nj.vmap(looped(3)), jnp.ones((2, 6))) == [3]
    assert unrolls(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 2, x, unroll=2), x) == [2]
    assert unrolls(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 2, x), x) == [1]
    assert unrolls(lambda x: lax.map(jnp.sin, x), x) == [1]
    with pytest.raises(ValueError, match="`unroll` must be a `bool` or a non-negative `int`"):
        looped(-1)(x)
    with pytest.raises(TypeError):
        looped("a")(x)


# Runs of a body, and the weak types of what comes back, as JAX 0.10.2 has them.
TWO = np.float32(2)
TRACED_ONCE = {
    "scan": (lambda t: lax.scan(lambda c, _: (t() or c * TWO, c), 1.0, None, 3), 1, [0, 1]),
    "scan, a chain": (
        lambda t: lax.scan(lambda c, _: (t() or (c[0] * TWO, *c[:2]), None), (1.0,) * 3, None, 3),
        1, [0, 1, 1]),
    "while_loop": (
        lambda t: lax.while_loop(lambda c: c < 9, lambda c: t() or c * TWO, 1.0), 1, [0]),
    "fori_loop": (lambda t: lax.fori_loop(0, 3, lambda i, c: t() or c * TWO, 1.0), 1, [0]),
    "strong to weak": (lambda t: lax.scan(lambda c, _: (t() or 1.0, c), TWO, None, 3), 1, [1, 0]),
    "another dtype": (lambda t: lax.scan(lambda c, _: (t() or c + TWO, c), 1, None, 3), 2, [0, 0]),
    "dtype beside weak type": (
        lambda t: lax.scan(lambda c, _: (t() or (c[0] + 1.5, c[1] * TWO), c), (1, 1.0), None, 2),
        2, [0, 0, 0, 1]),
    "while_loop, another dtype": (
        lambda t: lax.while_loop(lambda c: c < 9, lambda c: t() or c + TWO, 1), 2, [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED_ONCE)
@pytest.mark.parametrize("staged", [False, True])
def test_bodies_are_traced_again_for_other_dtypes_alone(name: str, staged: bool) -> None:
    function, count, weak = TRACED_ONCE[name]
    calls: list[None] = []

    def run() -> Any:
        return function(lambda: calls.append(None))

    leaves = nj.tree.leaves((nj.jit(run) if staged else run)())
    assert len(calls) == count
    assert [x.weak_type for x in leaves] == [bool(w) for w in weak]


def test_a_body_may_change_state_that_a_second_trace_would_meet() -> None:
    keys = [nj.random.key(0)]

    def body(c: Any, _: Any) -> tuple:
        keys[0], key = nj.random.split(keys[0])
        return c * TWO, nj.random.uniform(key)

    assert float(lax.scan(body, 1.0, None, 3)[0]) == 8


def test_loops_outside_jit_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list = []
    real = cpu.compile
    monkeypatch.setattr(cpu, "compile", lambda *args: made.append(args) or real(*args))

    def body(carry, x):
        return carry + x, carry * x

    def goes_on(state):
        return state[0] < 5

    def step(state):
        return state[0] + 1, state[1] * 2

    x, xs = jnp.arange(3.0), jnp.ones((4, 3))
    for _ in range(3):
        np.testing.assert_array_equal(lax.scan(body, x, xs)[0], [4, 5, 6])
        np.testing.assert_array_equal(lax.while_loop(goes_on, step, (0, x))[1], [0, 32, 64])
    assert len(made) == 2


class Body:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, i: Any, x: Any) -> Any:
        self.calls += 1
        return x + i


def test_fori_loop_traces_an_object_once_and_lets_go_of_it() -> None:
    """As JAX does, whatever the object reads; a function that a line makes anew is not kept."""
    body = Body()
    for bounds in ((0, 3), (0, 3), (0, 5)):
        assert float(lax.fori_loop(*bounds, body, 1.0)) == 1 + sum(range(*bounds))
    assert body.calls == 1
    gone = weakref.ref(body)
    del body
    gc.collect()
    assert gone() is None
