"""What transformations answer to statements that were written without looking at numjet, and whose
answers JAX 0.10.2 gave: classes of exceptions, structures of results, printed equations."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
from numjet import lax, nn, numpy as jnp, random


def over(f, x=(1.0, 2.0, 3.0)):
    return np.asarray(nj.vmap(f, axis_name="i")(jnp.asarray(x)))


def test_reductions_over_mapped_axes():
    for name, value in (("sum", 6), ("mean", 2), ("max", 3), ("min", 1)):
        np.testing.assert_allclose(over(lambda x, n=name: getattr(jnp, n)(x, axis="i")), value)
    for name in ("var", "std"):
        wanted = getattr(np, name)([1.0, 2.0, 3.0])
        np.testing.assert_allclose(over(lambda x, n=name: getattr(jnp, n)(x, axis="i")), wanted,
                                   rtol=1e-6)  # fmt: skip
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(over(lambda r: jnp.sum(r, axis=("i", 0)), x), 15)
    np.testing.assert_array_equal(over(lambda r: jnp.mean(r, axis=(0, "i")), x), 2.5)
    np.testing.assert_array_equal(over(lambda r: r.sum("i", keepdims=True), x), [[6, 9]] * 3)
    np.testing.assert_array_equal(over(lambda v: jnp.sum(v, axis="i", where=v > 1)), 5)
    np.testing.assert_array_equal(over(lambda v: jnp.mean(v, axis="i", where=v > 1)), 2.5)
    np.testing.assert_allclose(over(lambda v: nn.softmax(v, axis="i")),
                               nn.softmax(jnp.arange(1.0, 4.0)), rtol=1e-6)  # fmt: skip
    np.testing.assert_allclose(over(lambda v: nn.logsumexp(v, axis="i")),
                               nn.logsumexp(jnp.arange(1.0, 4.0)), rtol=1e-6)  # fmt: skip
    grads = nj.grad(lambda x: nj.vmap(lambda v: jnp.var(v, axis="i"), axis_name="i")(x)[0])
    np.testing.assert_allclose(grads(jnp.arange(1.0, 4.0)), [-2 / 3, 0, 2 / 3], atol=1e-6)
    for name in ("prod", "all"):
        with pytest.raises(NotImplementedError):
            over(lambda x, n=name: getattr(jnp, n)(x, axis="i"))
    with pytest.raises(NameError):
        over(lambda x: jnp.sum(x, axis="j"))


@pytest.mark.parametrize("fun", [
    lambda n: jnp.ones(6).reshape(n, 2), lambda n: lax.reshape(jnp.ones(6), (n, 2)),
    lambda n: random.normal(random.key(0), (n,)), lambda n: lax.iota(jnp.int32, n),
    lambda n: lax.broadcasted_iota(jnp.int32, (n,), 0),
    lambda n: lax.dynamic_slice(jnp.ones(4), (0,), (n,)),
])  # fmt: skip
def test_traced_sizes_are_no_sizes(fun):
    with pytest.raises(TypeError) as caught:
        nj.jit(fun)(3)
    assert caught.type is TypeError and "concrete values of integer type" in str(caught.value)


def test_classes_of_exceptions():
    for fun in (lambda x: x * x, lambda x: 1 / x):
        with pytest.raises(AssertionError, match="linear"):
            nj.linear_transpose(fun, 1.0)(1.0)
    with pytest.raises(AssertionError, match="not linear"):
        nj.linear_transpose(lambda x: x @ x, jnp.ones(2))(1.0)
    for make in (nj.jvp, lambda f, x, t, has_aux: nj.jacfwd(f, has_aux=has_aux)(*x)):
        with pytest.raises(ValueError, match="two-element tuple"):
            make(lambda x: (x, x, x), (1.0,), (1.0,), has_aux=True)
        with pytest.raises(TypeError, match="two-element tuple"):
            make(lambda x: x, (1.0,), (1.0,), has_aux=True)
    with pytest.raises(TypeError) as caught:
        nj.vjp(lambda x: x, "a")
    assert caught.type.__name__ == "InvalidInputException"
    for pairs in ([(0, 5)], [(0, 1), (0, 2)]):
        with pytest.raises(AssertionError, match="Permutation"):
            over(lambda x, p=pairs: lax.ppermute(x, "i", p))
    for run in (lambda f: f(jnp.ones(3)), lambda f: nj.vmap(f)(jnp.ones((2, 3)))):
        with pytest.raises(NotImplementedError, match="Evaluation rule for 'ppermute'"):
            run(lambda x: lax.ppermute(x, "i", [(0, 1)]))
    with pytest.raises(NameError):
        nj.jit(lambda x: lax.ppermute(x, "i", [(0, 1)]))(jnp.ones(3))


def test_scan_gives_the_structure_that_its_body_gives():
    assert type(lax.scan(lambda c, x: [c + x, x], 0, jnp.arange(2))) is list
    found = lax.scan(lambda c, x: {"a": c + x, "b": x}, 0, jnp.arange(2))
    assert found["a"] == 1 and found["b"].tolist() == [0, 1]
    assert lax.scan(lambda c, x: (c + x, x), 0, jnp.arange(2), length=2.0)[0] == 1


def test_the_branch_for_true_is_traced_first():
    seen = []
    lax.cond(True, lambda: seen.append(1) or 0.0, lambda: seen.append(0) or 1.0)
    assert seen == [1, 0]
    assert lax.cond(True, lambda: 5.0, lambda: 6.0) == 5.0


def test_printed_products_say_what_was_asked():
    x = jnp.ones(3)
    assert "preferred" not in str(nj.make_jaxpr(lax.dot)(x, x))
    assert "preferred" not in str(nj.make_jaxpr(nj.grad(lambda v: lax.dot(v, v)))(x))
    for product in (jnp.dot, lambda a, b: a @ b, lambda a, b: jnp.einsum("i,i->", a, b)):
        for _ in range(2):
            assert "preferred_element_type=float32" in str(nj.make_jaxpr(product)(x, x))
            assert nj.jit(product)(x, x) == 3.0


def test_names_apart():
    assert nj.remat is not nj.checkpoint and nj.jacobian is not nj.jacrev
    assert nj.grad(nj.remat(lambda x: x**2, static_argnums=()))(3.0) == 6.0
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        assert nj.jit(lambda x: x + 1, backend="cpu")(1.0) == 2.0


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
def test_keys_are_not_combined_at_an_index(name: str):
    keys = random.split(random.key(0), 3)
    for run in (lambda f: f(keys), lambda f: nj.jit(f)(keys)):
        with pytest.raises(TypeError, match="takes no keys"):
            run(lambda k: getattr(k.at[0], name)(k[1]))
    assert keys.at[0].set(keys[1]).shape == (3,)
