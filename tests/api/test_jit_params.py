"""What equations of jitted functions say in `make_jaxpr` beside the jaxpr and its name: shardings,
donated arguments, options; and that these equations run."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.jaxpr import eval_jaxpr
from numjet.core.jit_params import UNSPECIFIED
from numjet.sharding import AxisType, NamedSharding, PartitionSpec

X = np.arange(4.0, dtype=np.float32)
DONATING = nj.jit(lambda x: x * 3.0, donate_argnums=0)


@pytest.fixture
def rows():
    return NamedSharding(nj.make_mesh((1,), ("i",), AxisType.Auto), PartitionSpec("i"))


def equation(f, *args):
    (eqn,) = [e for e in nj.make_jaxpr(f)(*args).eqns if e.primitive.name == "jit"]
    return eqn


def test_what_nobody_asked_for_is_there_and_not_printed() -> None:
    f = nj.jit(lambda x, y: (x + y, y))
    params = equation(f, X, X).params
    assert params["in_shardings"] == params["out_shardings"] == (UNSPECIFIED, UNSPECIFIED)
    assert params["donated_invars"] == (False, False) and params["in_layouts"] == (None, None)
    assert not params["keep_unused"] and not params["inline"]
    assert params["compiler_options_kvs"] == () and repr(UNSPECIFIED) == "UnspecifiedValue"
    text = str(nj.make_jaxpr(f)(X, X))
    assert "jit[" in text and "shardings" not in text and "donated" not in text
    assert set(nj.jit(lambda x: f(x, x)).trace(X).program.eqns[0].params) == {"jaxpr", "name"}


def test_what_was_asked_for(rows) -> None:
    f = nj.jit(lambda d, y: d["a"] * y, in_shardings=({"a": rows, "b": None}, rows),
               out_shardings=rows, donate_argnums=0, keep_unused=True)  # fmt: skip
    eqn = equation(f, {"a": X, "b": X}, X)
    assert eqn.params["in_shardings"] == (rows, UNSPECIFIED, rows)
    assert eqn.params["donated_invars"] == (True, True, False) and eqn.params["keep_unused"]
    text = str(nj.make_jaxpr(f)({"a": X, "b": X}, X))
    told = ["donated_invars=(True, True, False)", "in_shardings=(", "jaxpr=", "keep_unused=True",
            f"out_shardings=({rows},)"]  # fmt: skip
    assert [text.index(word) for word in told] == sorted(text.index(word) for word in told)
    assert "sharding_constraint" not in text


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_a_device_is_a_sharding_of_arguments_and_results() -> None:
    device = nj.devices()[0]
    alone = nj.sharding.SingleDeviceSharding(device)
    params = equation(nj.jit(jnp.sin, device=device), X).params
    assert params["in_shardings"] == params["out_shardings"] == (alone,)
    assert equation(nj.jit(jnp.sin, in_shardings=alone), X).params["in_shardings"] == (alone,)


def test_derived_calls_say_what_theirs_did(rows) -> None:
    f = nj.jit(jnp.sin, in_shardings=rows, out_shardings=rows, donate_argnums=0)
    jaxpr = nj.make_jaxpr(nj.grad(lambda x: f(x).sum()))(X)
    forward, backward = [e.params for e in jaxpr.eqns if e.primitive.name == "jit"]
    assert forward["donated_invars"] == (True,) and backward["donated_invars"] == (False, False)
    assert forward["out_shardings"] == (rows, UNSPECIFIED)
    assert backward["in_shardings"] == (UNSPECIFIED, rows)
    assert backward["out_shardings"] == (rows,)
    both = equation(lambda x: nj.jvp(f, (x,), (x,)), X).params
    assert both["in_shardings"] == both["out_shardings"] == (rows, rows)
    assert both["donated_invars"] == (True, True)
    mapped = equation(nj.vmap(f, in_axes=1, out_axes=1), np.ones((4, 2), np.float32)).params
    assert mapped["in_shardings"][0].spec == PartitionSpec("i", None)


def test_functions_that_are_written_in_place_are_so_when_derived() -> None:
    f = nj.jit(lambda x: jnp.sin(x) * x, inline=True)
    for g in (f, nj.vmap(f), lambda x: nj.jvp(f, (x,), (x,)), nj.grad(lambda x: f(x).sum())):
        assert "jit[" not in str(nj.make_jaxpr(g)(X))


def test_constants_have_no_entries() -> None:
    held = jnp.arange(4.0)
    eqn = equation(lambda x: nj.jit(lambda y: y + held, donate_argnums=0)(x), X)
    shown = str(nj.make_jaxpr(nj.jit(lambda y: y + held, donate_argnums=0))(X))
    assert "donated_invars=(True,)" in shown
    assert len(eqn.params["donated_invars"]) == len(eqn.invars)


def test_such_equations_run(rows) -> None:
    laid = nj.jit(jnp.cos, in_shardings=rows, out_shardings=rows)

    def f(x):
        return lax.scan(lambda c, y: (DONATING(c) + y, laid(y)), x, jnp.ones((3, 4)))[0]

    closed = nj.make_jaxpr(f)(X)
    want = f(X)

    def again(x):
        return eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    for g in (again, nj.jit(again)):
        np.testing.assert_allclose(g(X), want, 1e-6)
    np.testing.assert_allclose(nj.grad(lambda x: again(x).sum())(X), np.full(4, 27.0), 1e-6)
    np.testing.assert_allclose(nj.vmap(again)(np.stack([X, X]))[1], want, 1e-6)
    eqn = equation(laid, X)
    (found,) = eqn.primitive.bind(jnp.asarray(X), **eqn.params)
    np.testing.assert_allclose(found, np.cos(X), 1e-6)
