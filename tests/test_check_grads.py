"""numjet.test_util finds wrong derivatives and accepts right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.test_util import check_grads, check_jvp, check_vjp

X = np.linspace(-1.5, 2.0, 6, dtype=np.float32).reshape(2, 3)


@nj.custom_jvp
def wrong_forward(x: Any) -> Any:
    return jnp.sin(x)


wrong_forward.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 1.1 * tangents[0]))


@nj.custom_vjp
def wrong_backward(x: Any) -> Any:
    return jnp.sin(x)


wrong_backward.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.sin(x),))


@nj.custom_jvp
def wrong_second(x: Any) -> Any:
    return jnp.sin(x)


wrong_second.defjvp(
    lambda primals, tangents: (
        jnp.sin(primals[0]),
        tangents[0] * nj.lax.stop_gradient(jnp.cos(primals[0])),
    )
)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_right_derivatives_pass(x64: bool, order: int) -> None:
    def f(tree: dict, n: Any, z: Any) -> dict:
        return {"a": jnp.tanh(tree["x"]) @ tree["w"] + n, "z": (z * z).real, "n": n}

    with nj.enable_x64(x64):
        real, complex_ = (np.float64, np.complex128) if x64 else (np.float32, np.complex64)
        tree = {"x": X.astype(real), "w": jnp.ones((3, 2), real)}
        check_grads(f, (tree, 3, complex_(1 + 2j)), order)


def test_wrong_derivatives_are_found() -> None:
    with pytest.raises(AssertionError, match="The JVP disagrees"):
        check_grads(wrong_forward, (X,), 1, modes=["fwd"])
    with pytest.raises(AssertionError, match="The VJP disagrees"):
        check_grads(wrong_forward, (X,), 1, modes="rev")
    with pytest.raises(AssertionError, match="The VJP disagrees"):
        check_grads(wrong_backward, (X,), 1, modes=["rev"])
    check_grads(wrong_second, (X,), 1)
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError, match="disagrees"):
            check_grads(wrong_second, (X,), 2, modes=[mode])


def test_single_checks_and_their_tolerances() -> None:
    check_jvp(jnp.sin, lambda xs, ts: nj.jvp(jnp.sin, xs, ts), (X,))
    check_vjp(jnp.sin, lambda x: nj.vjp(jnp.sin, x), (X,))
    with pytest.raises(AssertionError, match="here: The value of the JVP"):
        check_jvp(jnp.sin, lambda xs, ts: nj.jvp(jnp.cos, xs, ts), (X,), err_msg="here:")
    check_jvp(wrong_forward, lambda xs, ts: nj.jvp(wrong_forward, xs, ts), (X,), atol=5, rtol=1)
    with pytest.raises(AssertionError, match="The JVP"):  # a difference over a period is 0
        check_jvp(jnp.sin, lambda xs, ts: nj.jvp(jnp.sin, xs, ts), (np.float32(0.3),), eps=1e4)


def test_mistakes_are_explained() -> None:
    with pytest.raises(ValueError, match="order must be at least 1"):
        check_grads(jnp.sin, (X,), 0)
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev'"):
        check_grads(jnp.sin, (X,), 1, modes=["forward"])
    with pytest.raises(TypeError, match="takes a function"):
        check_grads(3, (X,), 1)  # type: ignore[arg-type]


def test_equal_infinities_do_not_differ() -> None:
    x = jnp.array([1.0, -1.0])
    check_grads(lambda x: jnp.where(x > 0, x * x, -jnp.inf), (x,), 2)
    check_grads(lambda x: jnp.concatenate([x, jnp.full(1, jnp.inf)]), (x,), 2)
    with pytest.raises(AssertionError):
        check_grads(lambda x: jnp.where(x > 0, x, jnp.nan), (x,), 1)
