"""What bad input gets: a public exception: operation, what was expected, what came, the remedy.

One test for each kind of mistake; each matches the words that a user needs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest
from messages import message, says

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

x3, x4 = jnp.ones(3), jnp.ones(4)


def line_of(fun: Callable, offset: int) -> str:
    return f"{fun.__code__.co_filename}:{fun.__code__.co_firstlineno + offset}"


# ------------------------------------------------------------------ shapes and dtypes
SHAPES: dict[str, tuple[type[Exception], Callable, tuple[str, ...]]] = {
    "operator": (TypeError, lambda: x3 + x4, ("add", "(3,)", "(4,)", "equal or 1", "reshape")),
    "lax shape": (
        TypeError,
        lambda: lax.mul(x3, x4),
        ("mul", "Sizes must be equal or 1", "float32[3]", "float32[4]", "incompatible shapes"),
    ),
    "lax dtype": (
        TypeError,
        lambda: lax.add(x3, jnp.ones(3, jnp.int32)),
        ("add", "same dtypes", "float32[3]", "int32[3]", "convert_element_type"),
    ),
    "matmul": (
        TypeError,
        lambda: jnp.ones((3, 4)) @ jnp.ones((5, 6)),
        ("matmul", "contracting", "[3,4], whose axis 1 is 4", "[5,6], whose", "Transpose"),
    ),
    "dot": (
        TypeError,
        lambda: jnp.dot(jnp.ones((3, 4)), jnp.ones((5, 6))),
        ("dot", "axis 1 is 4", "axis 0 is 5", "einsum"),
    ),
    "einsum": (
        ValueError,
        lambda: jnp.einsum("ij,jk->ik", jnp.ones((3, 4)), jnp.ones((5, 6))),
        ("einsum", "'j'", "5", "4", "float32[3,4]", "Transpose"),
    ),
    "polynomial": (
        IndexError,
        lambda: jnp.polyadd(jnp.float32(1), x3),
        ("polyadd", "coefficients must be a vector", "float32[]", "atleast_1d"),
    ),
    "glu": (IndexError, lambda: nj.nn.glu(x4, axis=1), ("glu", "axis 1", "float32[4]")),
    "scales": (
        ValueError,
        lambda: nj.nn.scaled_matmul(x3[None, None], x3[None, None], x3[0], x3[None, None]),
        ("scaled_matmul", "scales must be (B, M, K / S)", "float32[]"),
    ),
    "ragged_dot": (
        TypeError,
        lambda: lax.ragged_dot(x3, jnp.ones((1, 3, 3)), jnp.array([3])),
        ("ragged_dot_general", "lhs must have the axes (1,)", "float32[3]"),
    ),
    "reflectors": (
        TypeError,
        lambda: lax.linalg.householder_product(jnp.eye(2), jnp.float32(1)),
        ("householder_product", "taus float32[]", "float32[2,2]"),
    ),
    "solve_sylvester": (
        ValueError,
        lambda: nj.scipy.linalg.solve_sylvester(x3, jnp.eye(3), jnp.eye(3)),
        ("solve_sylvester", "A must be a square matrix", "float32[3]"),
    ),
    "rsf2csf": (
        ValueError,
        lambda: nj.scipy.linalg.rsf2csf(jnp.eye(2), jnp.eye(3)),
        ("rsf2csf", "of one size", "float32[2,2]", "float32[3,3]"),
    ),
    "idct": (
        ValueError,
        lambda: nj.scipy.fft.idct(x3[:0]),
        ("idct", "at least 1", "got 0"),
    ),
    "concatenate": (
        TypeError,
        lambda: jnp.concatenate([jnp.ones((3, 4)), jnp.ones((5, 6))]),
        ("concatenate", "axis 0", "(3, 4)", "(5, 6)", "reshape"),
    ),
    "reshape": (
        TypeError,
        lambda: jnp.ones((3, 4)).reshape(5, 2),
        ("reshape", "(3, 4)", "12", "(5, 2)", "10", "-1"),
    ),
    "axis": (ValueError, lambda: jnp.sum(jnp.ones((3, 4)), axis=2), ("sum", "axis 2", "array of")),
    "broadcast_to": (
        ValueError,
        lambda: jnp.broadcast_to(x3, (4,)),
        ("(3,)", "(4,)", "equal or 1"),
    ),
    "too many indices": (IndexError, lambda: x3[0, 0], ("1-dimensional", "2", "(3,)")),
    "float index": (TypeError, lambda: x3[1.0], ("integer or boolean", "float", "1.0")),
    "key arithmetic": (TypeError, lambda: nj.random.key(0) + 1, ("PRNG keys", "key_data")),
    "no key": (TypeError, lambda: nj.random.normal(3), ("random.normal", "random.key", "int32[]")),
    "truth of many": (ValueError, lambda: bool(x3), ("more than one element", "any", "all")),
    "scalar needed": (TypeError, lambda: float(x3), ("float", "float32[3]")),
    "index needed": (TypeError, lambda: [1, 2][jnp.array(1.0)], ("integer", "float32[]")),
    "no length": (TypeError, lambda: len(jnp.array(1.0)), ("len()",)),
    "no dtype": (TypeError, lambda: jnp.array(["a"]), ("",)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("staged", [False, True], ids=["eager", "jit"])
def test_mismatches_say_what_was_expected_and_what_came(name: str, staged: bool) -> None:
    error, fun, parts = SHAPES[name]
    if staged and name in ("truth of many", "scalar needed", "index needed", "no length"):
        pytest.skip("these need a value")
    text = message(error, nj.jit(fun) if staged else fun)
    says(text, *parts)


# ------------------------------------------------------------------ losses
def test_a_loss_that_is_no_scalar() -> None:
    def loss(x: Any) -> Any:
        return x * 2.0

    says(
        message(TypeError, nj.grad(loss), x3),
        "Gradient only defined for scalar-output functions. Output had shape: (3,)",
        "loss",
        "jnp.sum",
        "jacrev",
    )
    says(
        message(TypeError, nj.grad(lambda x: (x, x)), 1.0),
        "Gradient only",
        "(*, *)",
        "has_aux=True",
    )
    says(message(TypeError, nj.grad(lambda x: None), 1.0), "Gradient only", "None")


def test_a_loss_of_integers_or_complex_numbers() -> None:
    says(
        message(TypeError, nj.grad(lambda x: x.astype(int).sum()), x3),
        "grad",
        "grad requires real-valued outputs",
        "Integers",
        "int32",
        "float",
    )
    says(message(TypeError, nj.grad(lambda x: x * 1j), 1.0), "complex", "holomorphic=True")
    says(
        message(TypeError, nj.grad(lambda x: x * 2.0), 3),
        "grad",
        "int32",
        "float",
        "allow_int",
    )
    says(message(TypeError, nj.grad(lambda p: p["w"][1] * 2.0), {"w": [1.0, 2]}), "['w'][1]")


def test_argnums_out_of_range() -> None:
    says(message(TypeError, nj.grad(lambda x: x, argnums=3), 1.0), "argnums=3", "only 1 positional")


# ------------------------------------------------------------------ Python decides on traced values
def choose(x: Any, n: Any) -> Any:
    if x > 0:
        return x
    return n


def decide(params: Any, y: Any) -> Any:
    total = params["w"].sum() * y
    return y if total > 0 else -y


def test_python_if_on_a_traced_value_names_the_argument_and_the_line() -> None:
    text = message(nj.errors.TracerBoolConversionError, nj.jit(choose), 1.0, 2.0)
    says(
        text,
        "True or False",
        "argument x.\n",
        line_of(choose, 1),
        "lax.cond",
        "static_argnums",
    )
    text = message(nj.errors.TracerBoolConversionError, nj.jit(decide), {"w": x3}, 2.0)
    says(text, "of the arguments params['w'] and y.\n", line_of(decide, 2))
    assert float(nj.jit(choose, static_argnums=0)(1.0, 2.0)) == 1.0
    assert float(nj.grad(choose)(1.0, 2.0)) == 1.0  # eager differentiation knows the value


def test_python_if_under_vmap_and_in_loops() -> None:
    text = message(nj.errors.TracerBoolConversionError, nj.vmap(choose), x3, x3)
    says(text, "vmap at", "size 3", "jnp.where")
    text = message(
        nj.errors.TracerBoolConversionError,
        lax.fori_loop,
        0,
        jnp.array(3),
        lambda i, c: c if i > 1 else c + 1.0,
        0.0,
    )
    says(text, "lax.cond")


@pytest.mark.parametrize(
    "fun, error, parts",
    [
        (
            lambda n: [0 for _ in range(n)],
            "TracerIntegerConversionError",
            ("range()", "argument n", "static"),
        ),
        (
            lambda n: jnp.zeros(n),
            "TypeError",
            ("shape", "argument n", "static_argnums"),
        ),
        (lambda n: [1, 2, 3][n], "TracerIntegerConversionError", ("index",)),
        (
            lambda n: np.sin(n),
            "TracerArrayConversionError",
            ("NumPy", "argument n", "numjet.numpy"),
        ),
        (lambda n: np.asarray(n), "TracerArrayConversionError", ("NumPy", "pure_callback")),
        (lambda n: float(n), "ConcretizationTypeError", ("float()", "argument n")),
        (lambda n: int(n), "ConcretizationTypeError", ("int()",)),
        (lambda n: complex(n), "ConcretizationTypeError", ("complex()",)),
        (lambda n: n.item(), "ConcretizationTypeError", ("item()",)),
        (lambda n: n.tolist(), "ConcretizationTypeError", ("tolist()",)),
        (
            lambda n: jnp.arange(3)[jnp.arange(3) > n],
            "NonConcreteBooleanIndexError",
            ("bool[3]", "jnp.where"),
        ),
    ],
    ids=lambda p: None if isinstance(p, tuple) else getattr(p, "__name__", p),
)
def test_other_uses_that_need_a_value(fun: Callable, error: str, parts: tuple) -> None:
    kind = TypeError if error == "TypeError" else getattr(nj.errors, error)
    says(message(kind, nj.jit(fun), 3), "traced", *parts)


def test_concrete_errors_are_type_errors() -> None:
    assert issubclass(nj.errors.TracerBoolConversionError, nj.errors.ConcretizationTypeError)
    assert issubclass(nj.errors.ConcretizationTypeError, TypeError)
    assert issubclass(nj.errors.NonConcreteBooleanIndexError, IndexError)


# ------------------------------------------------------------------ leaks
kept: list = []


def keep_in_jit(x: Any) -> Any:
    kept.append(x * 2.0)
    return x


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1.0,
        lambda t: jnp.sin(t),
        lambda t: bool(t > 0),
        lambda t: nj.jit(lambda y: y + t)(1.0),
        lambda t: nj.jit(lambda y: t)(1.0),
        lambda t: nj.grad(lambda y: y * t)(1.0),
        lambda t: nj.vmap(lambda y: y * t)(x3),
        lambda t: lax.fori_loop(0, 3, lambda i, c: c + t, 0.0),
        lambda t: jnp.stack([t, t]),
        lambda t: x3.at[0].set(t),
    ],
    ids=["operator", "function", "bool", "jit", "result", "grad", "vmap", "loop", "stack", "at"],
)
def test_a_leaked_tracer_names_where_it_was_made(use: Callable) -> None:
    kept.clear()
    nj.jit(keep_in_jit)(np.float32(1.0))
    nj.jit(lambda x: keep_in_jit(x))(1.0)
    text = message(nj.errors.UnexpectedTracerError, use, kept[-1])
    says(
        text, "after the function it belongs to had returned", line_of(keep_in_jit, 1), "Return it"
    )


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: nj.grad(f)(1.0),
        lambda f: nj.vmap(f)(x3),
        lambda f: nj.jvp(f, (1.0,), (1.0,)),
        lambda f: nj.vjp(f, 1.0),
        lambda f: nj.linearize(f, 1.0),
        lambda f: nj.jit(nj.vmap(f))(x3),
        lambda f: lax.scan(lambda c, a: (f(c), a), 1.0, x3),
        lambda f: lax.cond(True, f, f, 1.0),
        lambda f: nj.checkpoint(f)(1.0),
    ],
    ids=["grad", "vmap", "jvp", "vjp", "linearize", "jit-vmap", "scan", "cond", "checkpoint"],
)
def test_every_transformation_notices_leaks(transform: Callable) -> None:
    kept.clear()
    transform(keep_in_jit)
    for use in (lambda t: t + 1.0, lambda t: nj.jit(lambda y: y + t)(1.0)):
        if isinstance(kept[-1], nj.core.trace.Tracer):
            text = message(nj.errors.UnexpectedTracerError, use, kept[-1])
            says(text, "had returned", __file__, "Return it")


def test_check_tracer_leaks_fails_at_once() -> None:
    kept.clear()
    with nj.check_tracer_leaks():
        text = message(Exception, nj.jit(lambda x: keep_in_jit(x)), 1.0)
    says(text, "check_tracer_leaks", line_of(keep_in_jit, 1))
    kept.clear()


def test_check_tracer_leaks_tells_what_holds_a_value() -> None:
    class Holder:
        pass

    holder, array = Holder(), np.ones(2)

    def keep(x: Any) -> Any:
        holder.held = [{"key": lambda: (array, x)}]
        return x

    chain = (
        r"<{0} \d+> is referred to by <function \d+> \(<lambda>\) closed-over variable x\n"
        r"<function \d+> is referred to by <dict \d+>\['key'\]\n<dict \d+> is referred to by "
        r"<list \d+>\[0\]\n<list \d+> is referred to by <Holder \d+>.held"
    )
    with nj.check_tracer_leaks():
        for transform, name in (
            (nj.jit, "DynamicJaxprTrace"), (nj.vmap, "BatchTrace"),
            (lambda f: nj.vmap(lambda x: nj.vmap(f)(x * jnp.ones(2))), "BatchTrace"),
            (lambda f: nj.jit(lambda x: nj.jit(f)(x)), "DynamicJaxprTrace"),
        ):  # fmt: skip
            text = message(Exception, transform(keep), x3)
            assert f"Leaked trace {name}" in text and re.search(chain.format(name + "r"), text)
        text = message(Exception, lambda: nj.vmap(keep)(x3))
        assert re.search(r"BatchTracer with object id \d+ was created on line:\n  .*test_bad", text)
        nj.vmap(lambda x: nj.jit(jnp.sin)(x) + 1)(x3)


def test_a_number_that_is_too_large_is_named() -> None:
    says(message(OverflowError, nj.jit(lambda p, q: p), 1, {"k": 2**31}), "path is q['k']")
    assert lax.convert_element_type(2**40, jnp.float32) == 2.0**40


# ------------------------------------------------------------------ pytrees
def test_pytree_mismatches_show_the_path() -> None:
    tree = {"a": [1.0, 2.0], "b": 3.0}
    other = {"a": [1.0, 2.0, 3.0], "b": 3.0}
    says(
        message(ValueError, nj.tree.map, lambda a, b: a, tree, other),
        "['a']",
        "length 2",
        "length 3",
    )
    says(
        message(ValueError, nj.tree.map, lambda a, b: a, {"a": 1}, {"b": 1}),
        "the root",
        "'a'",
        "'b'",
    )
    says(message(TypeError, nj.jvp, lambda x: x, (tree,), (other,)), "jvp", "[0]['a']", "length")
    says(message(ValueError, nj.vjp(lambda x: tree, 1.0)[1], other), "vjp", "['a']")
    says(message(TypeError, nj.linearize(lambda x: x, tree)[1], other), "linearize", "[0]['a']")
    says(
        message(TypeError, nj.linear_transpose(lambda x: x, tree), other),
        "linear_transpose",
        "['a']",
    )
    says(
        message(TypeError, lax.cond, True, lambda: tree, lambda: other),
        "cond",
        "['a']",
        "true_fun output",
    )
    says(
        message(TypeError, lax.switch, 1, [lambda: tree, lambda: tree, lambda: other]),
        "branch 2",
        "['a']",
    )
    says(message(TypeError, lax.scan, lambda c, x: (other, x), tree, x3), "scan", "['a']", "carry")
    says(
        message(TypeError, lax.while_loop, lambda c: True, lambda c: other, tree),
        "while_loop",
        "['a']",
    )
    says(message(TypeError, lax.fori_loop, 0, 3, lambda i, c: other, tree), "fori_loop", "['a']")
    says(
        message(ValueError, nj.vmap(lambda a: a, in_axes=({"a": 0},)), {"a": x3, "b": x3}),
        "in_axes",
        "[0]",
        "'b'",
    )
    says(
        message(ValueError, nj.vmap(lambda a: (a, a), out_axes=(0, 0, 0)), x3),
        "out_axes",
        "length 2",
    )


def test_carries_must_keep_shape_and_dtype() -> None:
    says(
        message(TypeError, lax.scan, lambda c, x: ({"k": x3}, x), {"k": 1.0}, x3),
        "scan",
        "carry component c['k']",
        "float32[]",
        "float32[3]",
        ".astype()",
    )
    says(
        message(TypeError, lax.while_loop, lambda c: c[0] < 3.0, lambda c: (c[0], x3), (0.0, x4)),
        "while_loop",
        "carry component c[1]",
        "float32[4]",
        "float32[3]",
    )
    says(
        message(TypeError, lax.fori_loop, 0, 3, lambda i, c: c.astype(int), x3),
        "float32[3]",
        "int32[3]",
    )
    says(
        message(TypeError, lax.cond, True, lambda: (1.0, x3), lambda: (1.0, x4)),
        "cond",
        "at path [1]",
        "float32[3]",
        "float32[4]",
    )


def test_loops_check_their_functions() -> None:
    says(message(TypeError, lax.while_loop, lambda c: c, lambda c: c, 0.0), "boolean", "float32[]")
    says(
        message(TypeError, lax.while_loop, lambda c: c > x3, lambda c: c, 0.0), "boolean", "bool[3]"
    )
    says(
        message(TypeError, lax.cond, x3 > 0, lambda: 1, lambda: 2),
        "Pred must be a scalar, got",
        "bool[3]",
        "jnp.where",
    )
    says(message(TypeError, lax.switch, 0.5, [lambda: 1]), "Index", "integer", "float32")
    says(message(ValueError, lax.switch, 0, []), "switch", "branch")
    says(message(TypeError, lax.scan, lambda c, x: c, 1.0, x3), "scan", "pair", "carry")
    says(
        message(ValueError, lax.scan, lambda c, x: (c, x), 1.0, (x3, x4)),
        "xs[0] has 3",
        "xs[1] has 4",
    )
    says(message(ValueError, lax.scan, lambda c, x: (c, x), 1.0, None), "length")
    says(message(ValueError, lax.scan, lambda c, x: (c, x), 1.0, x3, 5), "length", "5", "3")


# ------------------------------------------------------------------ arrays
def assign(x: Any) -> Any:
    x[0] = 1.0
    return x


@pytest.mark.parametrize(
    "run", [assign, nj.jit(assign), nj.vmap(assign)], ids=["eager", "jit", "vmap"]
)
def test_assignment_in_place_shows_at_set(run: Callable) -> None:
    says(
        message(TypeError, run, jnp.ones((2, 3))), "immutable", "x = x.at[idx].set(y)", ".add"
    )


def test_arrays_are_not_hashable() -> None:
    says(message(TypeError, hash, x3), "unhashable type:")
    assert not isinstance(x3, Hashable)
    says(message(TypeError, nj.jit(lambda x: {x: 1}), 1.0), "unhashable type:", "float32[]")


def test_numpy_sees_read_only_memory() -> None:
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x3)[0] = 5.0


# ------------------------------------------------------------------ jit
def test_static_arguments_must_be_hashable() -> None:
    def f(x: Any, n: Any) -> Any:
        return x

    for run in (nj.jit(f, static_argnums=1), nj.jit(f, static_argnames="n")):
        says(
            message(ValueError, run, 1.0, [1]),
            "jit(f)",
            "static",
            "Non-hashable static arguments",
            "[1]",
            "list",
            "tuple",
        )
        says(message(ValueError, run, 1.0, n=[1]), "static", "'n'", "unhashable", "tuple")
        says(message(ValueError, run, 1.0, x3), "Non-hashable static arguments")
    text = message(ValueError, nj.jit, f, static_argnames="m")
    says(text, "invalid argnames {'m'} in static_argnames", "['x', 'n']")
    text = message(ValueError, nj.jit, f, static_argnums=2)
    says(text, "static_argnums=(2,), but only accepts 2 positional")


def test_arguments_and_results_of_jit_are_arrays() -> None:
    says(
        message(TypeError, nj.jit(lambda x, n: x), 1.0, {"k": "abc"}),
        "path n['k']",
        "'abc'",
        "str",
        "static_argnums",
    )
    says(
        message(TypeError, nj.jit(lambda x: {"a": x, "b": "abc"}), 1.0),
        "output['b']",
        "'abc'",
        "str",
    )
    says(message(TypeError, nj.jit, 3), "jit", "function", "3")
    says(message(TypeError, nj.grad(lambda x: x), "a"), "grad", "'a'", "str")


def test_an_exception_in_a_jitted_function_comes_out_as_it_is() -> None:
    class Mine(Exception):
        pass

    def f(x: Any) -> Any:
        raise Mine("no")

    for run in (nj.jit(f), nj.grad(f), nj.vmap(f), nj.checkpoint(f), nj.jit(nj.grad(nj.jit(f)))):
        with pytest.raises(Mine, match="no"):
            run(jnp.ones(2))
    assert nj.core.trace.current_trace() is nj.core.trace.EVAL


def test_donated_arrays_cannot_be_read() -> None:
    x = jnp.arange(4.0)
    nj.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    says(message(RuntimeError, lambda: x + 1.0), "deleted", "donate", "result")


# ------------------------------------------------------------------ custom rules
def test_custom_vjp_with_the_wrong_number_of_cotangents() -> None:
    def made(bwd: Callable) -> Callable:
        @nj.custom_vjp
        def product(x: Any, y: Any) -> Any:
            return x * y["k"]

        product.defvjp(lambda x, y: (product(x, y), (x, y)), bwd)
        return nj.grad(product, argnums=(0, 1))

    args = 2.0, {"k": 3.0}
    says(
        message(TypeError, made(lambda r, ct: (ct,)), *args),
        "Custom VJP bwd rule of product",
        "length equal to the number of arguments, 2 of them",
        "got 1",
        "None",
    )
    says(message(TypeError, made(lambda r, ct: ct), *args), "product", "tuple", "2")
    says(
        message(TypeError, made(lambda r, ct: (ct, {"k": ct, "j": ct})), *args),
        "product",
        "[1]",
        "'k'",
    )
    says(
        message(ValueError, made(lambda r, ct: (x3, {"k": ct})), *args),
        "product",
        "float32[]",
        "float32[3]",
    )
    gradient = made(lambda r, ct: (ct, None))(*args)
    assert float(gradient[1]["k"]) == 0.0


def test_custom_rules_that_are_missing_or_misshapen() -> None:
    says(message(AttributeError, nj.custom_vjp(choose), 1.0, 2.0), "choose", "defvjp")
    says(message(AttributeError, nj.custom_jvp(choose), 1.0, 2.0), "choose", "defjvp")
    f = nj.custom_vjp(lambda x: x)
    f.defvjp(lambda x: x, lambda r, ct: (ct,))
    says(message(TypeError, nj.grad(f), 1.0), "Custom VJP fwd rule", "pair")
    g = nj.custom_jvp(lambda x: x)
    g.defjvp(lambda p, t: t[0])
    says(message(TypeError, nj.grad(g), 1.0), "Custom JVP rule", "pair")
    h = nj.custom_vjp(lambda x: x)
    h.defvjp(lambda x: (x, None), lambda r, ct: (ct,))
    says(message(TypeError, nj.jvp, h, (1.0,), (1.0,)), "forward-mode", "custom_vjp", "custom_jvp")


# ------------------------------------------------------------------ vmap, devices
def test_vmap_over_unequal_sizes_lists_argument_and_axis() -> None:
    text = message(
        ValueError, nj.vmap(lambda a, b: a, in_axes=(0, {"k": 1})), x3, {"k": jnp.ones((2, 4))}
    )
    says(text, "axis 0 of argument a of type float32[3]", "axis 1 of argument b['k']", "in_axes")
    says(
        message(ValueError, nj.vmap(lambda a: a, axis_size=5), x3),
        "`axis_size` argument was 5",
        "size 3",
    )
    says(
        message(ValueError, nj.vmap(lambda a: a, in_axes=None), x3),
        "at least one non-None value in in_axes",
        "axis_size",
    )
    says(message(ValueError, nj.vmap(lambda a: a), 1.0), "args[0]", "()", "no axis 0", "None")
    says(message(ValueError, nj.vmap(lambda a: a, in_axes=(0, 0)), x3), "len(in_axes)=2", "len(a")
    says(message(ValueError, nj.vmap(lambda a: a, out_axes=None), x3), "axis spec None", "Reduce")
    says(message(ValueError, nj.vmap(lambda a: a, out_axes=3), x3), "out_axes", "axis 3 is out of")
    says(message(TypeError, nj.vmap, lambda a: a, "x"), "in_axes", "'x'")


def test_an_axis_that_is_not_there() -> None:
    says(message(NameError, lax.psum, 1.0, "i"), "'i'", "none", "axis_name='i'", "pmap")
    says(message(NameError, nj.vmap(lambda x: lax.psum(x, "j"), axis_name="i"), x3), "'j'", "'i'")


def test_unknown_devices() -> None:
    says(message(RuntimeError, nj.devices, "abacus"), "abacus", "'cpu'")
    says(message(ValueError, nj.device_put, x3, "gpu:0"), "gpu:0", "numjet.devices()", "CpuDevice")
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        text = message(RuntimeError, nj.jit, lambda x: x, backend="abacus")
    says(text, "abacus", "'cpu'")
    says(message(RuntimeError, nj.pmap, lambda x: x, backend="gpu"), "'gpu'", "cpu", "pip install")


def test_pmap_over_more_than_the_devices() -> None:
    n = nj.device_count() + 1
    says(
        message(ValueError, nj.pmap(lambda x: x), jnp.ones(n)),
        f"size {n}",
        "devices",
        "NUMJET_NUM_CPU_DEVICES",
    )


# ------------------------------------------------------------------ numbers
def test_nan_debugging_names_the_operation() -> None:
    with nj.debug_nans():
        says(message(FloatingPointError, lambda: jnp.log(-x3)), "log")
        says(message(FloatingPointError, nj.jit(lambda x: jnp.log(x) + 1.0), -x3), "(nan)")
        assert float(nj.jit(jnp.sin)(1.0)) == pytest.approx(0.841471, rel=1e-5)
    with nj.debug_infs():
        says(message(FloatingPointError, lambda: 1.0 / (x3 - x3)), "div")
    assert np.isnan(np.asarray(jnp.log(-x3))).all()


def test_flags_that_are_not_there() -> None:
    says(message(AttributeError, nj.config.update, "enable_x46", True), "enable_x46", "enable_x64")
    says(
        message(ValueError, nj.config.update, "numpy_rank_promotion", "no"),
        "allow",
        "raise",
        "'no'",
    )


# ------------------------------------------------------------------ the disk cache
CACHED = """
import sys, warnings
import numpy as np
import numjet as nj, numjet.numpy as jnp
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for k in range(4):
        f = nj.jit(lambda x, k=k: jnp.tanh(x * (k + 2.5)) + jnp.sum(x))
        x = jnp.arange(8.0)
        np.testing.assert_allclose(f(x), np.tanh(np.arange(8) * (k + 2.5)) + 28.0, rtol=1e-6)
print(len(seen), *[str(w.message) for w in seen], sep="|")
"""


def run_cached(folder: str, wait: bool = True) -> subprocess.Popen:
    # The checked build compiles native code anew in every process, before anything is watched.
    environment = {**os.environ, "NUMJET_CACHE_DIR": folder, "NUMJET_NATIVE_CHECKS": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", CACHED],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if wait:
        process.wait(timeout=120)
    return process


def outcome(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-2000:]
    return out.strip()


def test_two_processes_share_a_cache(tmp_path: Any) -> None:
    both = [run_cached(str(tmp_path), wait=False) for _ in range(2)]
    assert [outcome(p).split("|")[0] for p in both] == ["0", "0"]
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert files and not [f for f in files if ".tmp" in f.name]
    for f in files:  # every file broken: the third process compiles again
        f.write_bytes(b"garbage" + f.read_bytes()[7:40])
    count, *texts = outcome(run_cached(str(tmp_path))).split("|")
    assert int(count) <= 1
    assert all(re.search("cache", t) for t in texts)


def test_an_unwritable_cache_warns_once_and_goes_on(tmp_path: Any) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    count, *texts = outcome(run_cached(str(blocked))).split("|")
    assert count == "1", texts
    says(texts[0], str(blocked), "cache")


def test_counts_and_layouts_that_make_no_sense_are_refused() -> None:
    for name in ("num_threads", "num_cpu_devices"):
        with pytest.raises(ValueError, match=rf"'{name}' takes \d or more, got -3"):
            nj.config.update(name, -3)
    with pytest.raises(TypeError, match="expected a Sharding, a PartitionSpec or None"):
        nj.lax.with_sharding_constraint(jnp.ones(3), slice(0, 2))
    x = jnp.arange(6)
    for shape in ((6, -2), (3, -2), -2, (-1, -2)):
        with pytest.raises(TypeError, match="reshape: "):
            jnp.reshape(x, shape)
        with pytest.raises(TypeError, match="reshape: "):
            x.reshape(shape)
