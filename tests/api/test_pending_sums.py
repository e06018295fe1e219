"""Sums over devices as a part of types: `P(unreduced=..., reduced=...)`, shown as `{U:x}`, `{R:x}`.
What is asked here was compared with JAX 0.10.2 over eight CPU devices; the sum itself is made where
it arises, which types do not show."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import P, lax, numpy as jnp
from numjet.base.errors import ShardingTypeError
from numjet.sharding import AxisType, reshard

pytestmark = pytest.mark.usefixtures("eight_devices")

VALUE = np.arange(32, dtype=np.float32).reshape(4, 8)


@functools.cache
def mesh() -> Any:
    return nj.make_mesh((2, 4), ("x", "y"))


def put(*spec: Any, value: Any = VALUE, **sums: Any) -> Any:
    return nj.device_put(value, nj.NamedSharding(mesh(), P(*spec, **sums)))


def text(x: Any) -> str:
    return str(nj.typeof(x)).removeprefix("float32")


def operands() -> dict[str, Any]:
    """Cut over x and pending (U), reduced (R) or neither (N) over y; pending and reduced over x."""
    return {
        "U": put("x", None, unreduced={"y"}), "R": put("x", None, reduced={"y"}),
        "N": put("x", None), "T": put(None, None, reduced={"x"}),
        "V": put(None, None, unreduced={"x"}), "W": put(None, None, unreduced={"x", "y"}),
    }  # fmt: skip


KEPT: dict[str, tuple[Callable, str]] = {
    "sum": (lambda x: x.sum(1), "[4@x]"),
    "transpose": (lambda x: x.T, "[8,4@x]"),
    "reshape": (lambda x: x.reshape(4, 2, 4), "[4@x,2,4]"),
    "broadcast": (lambda x: jnp.broadcast_to(x, (3, 4, 8)), "[3,4@x,8]"),
    "slice": (lambda x: x[:, :4], "[4@x,4]"),
    "pad": (lambda x: jnp.pad(x, ((0, 0), (0, 4))), "[4@x,12]"),
    "concatenate": (lambda x: jnp.concatenate([x, x], 1), "[4@x,16]"),
    "like": (jnp.zeros_like, "[4@x,8]"),
    "twice": (lambda x: x + x, "[4@x,8]"),
    "no gradient": (lax.stop_gradient, "[4@x,8]"),
    "triangle": (jnp.triu, "[4@x,8]"),
    "scan": (lambda x: lax.scan(lambda c, _: (c + c, None), x, None, length=3)[0], "[4@x,8]"),
    "jit": (nj.jit(lambda x: x + x), "[4@x,8]"),
    "cond": (lambda x: lax.cond(True, lambda y: y, lambda y: y + y, x), "[4@x,8]"),
    "auto": (lambda x: nj.sharding.auto_axes(lambda y: 2 * y, out_sharding=P("x"))(x), "[4@x,8]"),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", KEPT)
def test_linear_operations_keep_sums(name: str, jit: bool) -> None:
    f, shape = KEPT[name]
    with nj.set_mesh(mesh()):
        for kind in "UR":
            x = operands()[kind]
            out = (nj.jit(f) if jit else f)(x)
            ends = "" if name == "auto" else f"{{{kind}:y}}"
            assert text(out) == shape + ends
            names = {"U": "unreduced", "R": "reduced"}[kind]
            assert getattr(out.sharding.spec, names) == (set() if name == "auto" else {"y"})
            np.testing.assert_array_equal(np.asarray(out), np.asarray(f(jnp.asarray(VALUE))))


def test_reduced_values_are_values() -> None:
    with nj.set_mesh(mesh()):
        x = operands()["R"]
        for f in (jnp.exp, lambda x: 2 * x + 1, lambda x: x > 0, lambda x: jnp.maximum(x, 0),
                  lambda x: x / x.sum(1, keepdims=True), nj.nn.softmax, lambda x: x * x,
                  lambda x: jnp.where(x > 3, x, 0.0), nj.nn.relu):  # fmt: skip
            assert str(nj.typeof(f(x))).endswith("[4@x,8]{R:y}")
        assert text(nj.nn.logsumexp(x, 1)) == "[4@x]{R:y}"


PAIRS = {
    "U + U": (jnp.add, "[4@x,8]{U:y}"),
    "U - U": (jnp.subtract, "[4@x,8]{U:y}"),
    "W + W": (jnp.add, "[4,8]{U:(x,y)}"),
    "U * R": (jnp.multiply, "[4@x,8]{U:y}"),
    "R * U": (jnp.multiply, "[4@x,8]{U:y}"),
    "R + R": (jnp.add, "[4@x,8]{R:y}"),
    "V * T": (jnp.multiply, "[4,8]{U:x}"),
    "U + N": (jnp.add, "add: lhs is unreduced while rhs is not"),
    "N + V": (jnp.add, "rhs is unreduced while lhs is not"),
    "U + W": (jnp.add, "lhs and rhs to `add` must be unreduced along the same mesh axes"),
    "U * U": (jnp.multiply, "cannot both be unreduced, as it is bilinear"),
    "U * N": (jnp.multiply, "should be reduced along the same axes"),
    "R + N": (jnp.add, "cannot be replicated on the same axes that another input is reduced on"),
    "T + N": (jnp.add, "cannot be sharded on the same axes that another input is reduced on"),
    "R * T": (jnp.multiply, "all inputs should be reduced across the same mesh axes"),
    "U @ N": (lambda a, b: jnp.einsum("ab,cb->ac", a, b), "operands cannot be unreduced"),
    "U @ R": (
        lambda a, b: jnp.einsum("ab,cb->ac", a, b, out_sharding=P("x", None)),
        "operands cannot be unreduced",
    ),
    "T @ T": (lambda a, b: jnp.einsum("ab,cb->ac", a, b), "[4,4]"),
    "N @ T": (lambda a, b: jnp.einsum("ab,cb->ac", a, b), "[4@x,4]"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_operands_that_go_together(name: str) -> None:
    f, told = PAIRS[name]
    with nj.set_mesh(mesh()):
        a, b = (operands()[kind] for kind in (name[0], name[-1]))
        if told.startswith("["):
            assert text(f(a, b)) == text(nj.jit(f)(a, b)) == told
        else:
            for run in (f, nj.jit(f)):
                with pytest.raises(ShardingTypeError, match=told):
                    run(a, b)


def test_what_is_not_linear_is_refused() -> None:
    with nj.set_mesh(mesh()):
        u = operands()["U"]
        for f in (jnp.exp, jnp.abs, lambda x: x > 0, lambda x: jnp.maximum(x, x), jnp.square,
                  lambda x: x.max(1), lambda x: jnp.sort(x, 1), lambda x: 2 / x):  # fmt: skip
            with pytest.raises(NotImplementedError, match=r"Add f32\[4@x,8\]\{U:y\} up with"):
                f(u)
        for f in (lambda x: 2 * x, lambda x: x + 1, lambda x: x / 2):
            with pytest.raises(ShardingTypeError, match="unreduced"):
                f(u)
        with pytest.raises(AssertionError, match="did not match"):
            lax.with_sharding_constraint(u, P("x", None))
        with pytest.raises(TypeError, match="branches"):
            lax.cond(True, lambda: u, lambda: operands()["R"])


def test_products_and_sums_that_wait() -> None:
    a, b = put("x", "y"), put("y", None, value=np.ones((8, 8), np.float32))
    with nj.set_mesh(mesh()):
        waiting = P("x", None, unreduced={"y"})
        for f in (
            lambda a, b: jnp.dot(a, b, out_sharding=waiting),
            lambda a, b: jnp.einsum("ab,bc->ac", a, b, out_sharding=waiting),
            lambda a, b: jnp.matmul(a, b, out_sharding=waiting),
        ):
            out = nj.jit(f)(a, b)
            assert text(out) == text(f(a, b)) == "[4@x,8]{U:y}"
            done = reshard(out, P("x", None))
            assert text(done) == "[4@x,8]" and text(reshard(out, P(None, "y"))) == "[4,8@y]"
            np.testing.assert_allclose(done, VALUE @ np.ones((8, 8)))
        assert text(lax.reduce_sum(a, (1,), out_sharding=P("x", unreduced={"y"}))) == "[4@x]{U:y}"
        bad = [
            (a, b, P(None, None, unreduced={"x"}), "unreduced axes should be equal to the contra"),
            (a, put(None, "y", value=np.ones((8, 8))), waiting, "should be sharded identically"),
        ]
        for lhs, rhs, spec, told in bad:
            with pytest.raises(ShardingTypeError, match=told):
                jnp.dot(lhs, rhs, out_sharding=spec)
        with pytest.raises(ShardingTypeError, match="in operand's specs that were summed over"):
            lax.reduce_sum(a, (0,), out_sharding=P(None, unreduced={"y"}))
        with pytest.raises(ValueError, match="Unreduced axes z is not found"):
            jnp.dot(a, b, out_sharding=P("x", None, unreduced={"z"}))


def test_reshard_between_all_kinds() -> None:
    specs = [P(None, None), P("x", None), P("x", None, unreduced={"y"}),
             P("x", None, reduced={"y"}), P(None, None, unreduced={"x", "y"}),
             P(None, None, reduced={"x"})]  # fmt: skip
    with nj.set_mesh(mesh()):
        for old in specs:
            for new in specs:
                x = reshard(put(*old, unreduced=old.unreduced, reduced=old.reduced), new)
                assert x.sharding.spec == nj.typeof(x).sharding.spec == new
                np.testing.assert_array_equal(np.asarray(x), VALUE)


@pytest.mark.parametrize("jit", [False, True])
def test_gradients_of_reduced_values_wait(jit: bool) -> None:
    x, w = put("x", None), np.ones((8, 8), np.float32)
    run = nj.jit if jit else lambda f: f
    with nj.set_mesh(mesh()):
        reduced, plain = put(None, None, value=w, reduced={"x"}), put(None, None, value=w)
        losses = {
            "product": lambda w: (x @ w).sum(),
            "twice": lambda w: (x @ w).sum() + (x @ w).sum(),
            "checkpoint": lambda w: nj.checkpoint(lambda w: jnp.sin(x @ w))(w).sum(),
            "scan": lambda w: lax.scan(lambda c, _: (c @ w, None), x, None, length=3)[0].sum(),
            "not read": lambda w: 3.0,
        }
        for loss in losses.values():
            found = run(nj.grad(loss))(reduced)
            assert text(found) == "[8,8]{U:x}"
            want = run(nj.grad(loss))(plain)
            assert text(want) == "[8,8]"
            np.testing.assert_allclose(reshard(found, P(None, None)), want, rtol=1e-6)
        cast = P(None, None, reduced={"x"})
        through = run(nj.grad(lambda w: losses["product"](reshard(w, cast))))
        assert text(through(plain)) == "[8,8]"
        back = nj.vjp(lambda w: 2 * w, reduced)[1]
        assert text(back(run(nj.grad(losses["product"]))(reduced))[0]) == "[8,8]{U:x}"
        with pytest.raises(ValueError, match=r"but expected float32\[8,8\]\{U:x\}"):
            back(plain)
        kind = nj.typeof(reduced).to_cotangent_aval()
        assert kind.sharding.spec == P(None, None, unreduced={"x"})


def test_sums_of_steps_are_added_up_once() -> None:
    x = put("x", None, value=np.ones((4, 8), np.float32))
    waiting = P(None, None, unreduced={"x"})
    with nj.set_mesh(mesh()):

        @nj.jit
        def accumulated(rows: Any) -> Any:
            def step(total: Any, r: Any) -> Any:
                return total + jnp.dot(r.T, r, out_sharding=waiting), None

            return lax.scan(step, reshard(jnp.zeros((8, 8)), waiting), rows)[0]

        out = accumulated(jnp.stack([x, x]))
        assert text(out) == "[8,8]{U:x}"
        np.testing.assert_array_equal(reshard(out, P(None, None)), np.full((8, 8), 8))


def test_shard_map_gives_and_takes_parts_of_sums() -> None:
    waiting, whole, rows = P(None, None, unreduced={"x"}), P(None, None), P("x", None)
    with nj.set_mesh(mesh()):
        g = put(None, None, unreduced={"x"})
        parts = []

        def body(a: Any) -> Any:
            parts.append(a)
            return a

        assert text(nj.shard_map(body, in_specs=waiting, out_specs=waiting)(g)) == "[4,8]{U:x}"
        assert text(nj.shard_map(body, out_specs=waiting)(g)) == "[4,8]{U:x}"
        cases = [
            (lambda a: lax.psum(a, "x"), waiting, whole, g),
            (lambda a: lax.psum_scatter(a, "x", tiled=True), waiting, rows, g),
            (lambda a: a, waiting, waiting, g),
        ]
        for f, ins, outs, x in cases:
            for run in (nj.shard_map(f, in_specs=ins, out_specs=outs),
                        nj.jit(nj.shard_map(f, in_specs=ins, out_specs=outs))):  # fmt: skip
                np.testing.assert_array_equal(np.asarray(reshard(run(x), whole)), VALUE)
        cast = lambda a: lax.pcast(a.T @ a, "x", to="unreduced")  # noqa: E731
        out = nj.shard_map(cast, in_specs=rows, out_specs=waiting)(put("x", None))
        assert text(out) == "[8,8]{U:x}"
        np.testing.assert_allclose(reshard(out, whole), VALUE.T @ VALUE, rtol=1e-6)
        reduced = P(None, None, reduced={"x"})
        w = put(None, None, value=np.ones((8, 8), np.float32), reduced={"x"})
        f = nj.shard_map(lambda a, b: a @ b, in_specs=(rows, reduced), out_specs=rows)
        assert text(nj.grad(lambda w: f(put("x", None), w).sum())(w)) == "[8,8]{U:x}"
        with pytest.raises(ValueError, match="does not match the specs of the input"):
            nj.shard_map(body, in_specs=whole, out_specs=whole)(g)
        with pytest.raises(ValueError, match="does not match the specs of the input"):
            nj.shard_map(body, in_specs=waiting, out_specs=whole)(put(None, None))
        with pytest.raises(ValueError, match="which is no sum over"):
            nj.shard_map(body, in_specs=whole, out_specs=waiting)(put(None, None))
        with pytest.raises(ValueError, match="inferred to be possibly varying over"):
            nj.shard_map(body, in_specs=waiting, out_specs=whole)(g)
        with pytest.raises(ValueError, match="marked as manual"):
            nj.shard_map(body, in_specs=P(unreduced={"z"}), out_specs=whole)(g)


def test_arrays_of_pending_sums() -> None:
    layout = nj.NamedSharding(mesh(), P(None, None, unreduced={"x"}))
    assert not layout.is_fully_replicated and layout.shard_shape((4, 8)) == (4, 8)
    assert layout != layout.update(spec=P(None, None))
    x = nj.device_put(VALUE, layout)
    held = sum(np.asarray(s.data) for s in x.addressable_shards)
    np.testing.assert_array_equal(held, VALUE * 4)  # four devices along y hold the same
    ones = [nj.device_put(np.ones((4, 8), np.float32), d) for d in mesh().devices.flat]
    made = nj.make_array_from_single_device_arrays((4, 8), layout, ones)
    np.testing.assert_array_equal(np.asarray(made), np.full((4, 8), 2))
    assert text(made) == "[4,8]{U:x}"
    f = nj.jit(lambda w: w, out_shardings=layout)
    assert text(f(put(None, None))) == "[4,8]{U:x}"


def test_bad_sums() -> None:
    auto = nj.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    for what in ("unreduced", "reduced"):
        with pytest.raises(ValueError, match=f"{what.capitalize()} axes z is not found"):
            nj.NamedSharding(mesh(), P(**{what: {"z"}}))
        with pytest.raises(ValueError, match="can only refer to mesh axes that is of type `Explic"):
            nj.NamedSharding(auto, P(**{what: {"x"}}))


def test_shapes_of_results_tell_sums() -> None:
    with nj.set_mesh(mesh()):
        told = nj.eval_shape(lambda a: a + a, operands()["U"])
        assert told.sharding.spec == P("x", None, unreduced={"y"})
        assert nj.eval_shape(lambda a: a + a, jnp.ones((2, 2))).sharding.spec == P(None, None)
    assert nj.eval_shape(lambda a: a + a, jnp.ones((2, 2))).sharding is None


PARTS: dict[str, tuple[Callable, type[Exception]]] = {
    "sine": (jnp.sin, NotImplementedError),
    "power": (lambda x: x**3, NotImplementedError),
    "sine in jit": (nj.jit(jnp.sin), NotImplementedError),
    "sine in vmap": (nj.vmap(jnp.sin), NotImplementedError),
    "sine in a loop": (
        lambda x: lax.fori_loop(0, 2, lambda _, c: jnp.sin(c), x), NotImplementedError),
    "largest": (lambda x: x.max(0), NotImplementedError),
    "square": (lambda x: x * x, ShardingTypeError),
    "product": (lambda x: x @ jnp.ones((8, 2)), ShardingTypeError),
    "constant added": (lambda x: x + 2.0, ShardingTypeError),
    "constant factor": (lambda x: 2.0 * x, ShardingTypeError),
    "sum added": (lambda x: x + lax.psum(x, "y"), ShardingTypeError),
    "gather": (lambda x: lax.all_gather(x, "y"), ValueError),
    "permute": (lambda x: lax.ppermute(x, "y", [(0, 1)]), ValueError),
    "exchange": (lambda x: lax.all_to_all(x, "y", 0, 0), ValueError),
    "maximum": (lambda x: lax.pmax(x, "y"), ValueError),
    "cast": (lambda x: lax.pcast(x, "y", to="varying"), ValueError),
    "callback": (
        lambda x: nj.pure_callback(lambda v: v, nj.ShapeDtypeStruct(x.shape, x.dtype), x),
        ValueError),
}  # fmt: skip


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_parts_are_not_read_inside_of_shard_map(name: str, jit: bool, check_vma: bool) -> None:
    f, error = PARTS[name]
    with nj.set_mesh(mesh()):
        x = put(unreduced={"y"})
        for out in (P(unreduced={"y"}), P("y")):
            g = nj.shard_map(
                f, in_specs=P(unreduced={"y"}), out_specs=out, check_vma=check_vma)  # fmt: skip
            with pytest.raises(error):
                (nj.jit(g) if jit else g)(x)
        part = nj.shard_map(
            lambda v: v, in_specs=P(unreduced={"y"}), out_specs=P("y"), check_vma=check_vma
        )
        with pytest.raises(ValueError, match="psum"):
            part(x)


@pytest.mark.parametrize("jit", [False, True])
def test_parts_inside_of_shard_map_say_so(jit: bool) -> None:
    seen = []

    def f(x: Any, v: Any) -> Any:
        part = lax.pcast(v, "y", to="unreduced")
        both = nj.jit(lambda t: (t + t).T)(x)
        seen.extend([text(x), text(both), text(part), text(lax.psum(x, "y"))])
        outs = lax.psum_scatter(both, "y", tiled=True), lax.psum(x, "y"), lax.pmean(x, "y")
        return *outs, lax.psum(part, "y"), jnp.zeros_like(x)

    specs = P("y"), P(), P(), P(), P()
    g = nj.shard_map(f, in_specs=(P(unreduced={"y"}), P("y")), out_specs=specs)
    with nj.set_mesh(mesh()):
        own = put("y", value=np.arange(8, dtype=np.float32))
        found = (nj.jit(g) if jit else g)(put(unreduced={"y"}), own)
        assert seen[:4] == ["[4,8]{U:y}", "[8,4]{U:y}", "[2]{U:y}", "[4,8]"]
        for x, wanted in zip(
            found, (2 * VALUE.T, VALUE, VALUE / 4, [12, 16], np.zeros_like(VALUE)), strict=True
        ):
            np.testing.assert_allclose(np.asarray(x), wanted)
        with pytest.raises(NotImplementedError):
            nj.shard_map(
                lambda v: lax.psum(jnp.sin(lax.pcast(v, "y", to="unreduced")), "y"),
                in_specs=P("y"), out_specs=P(),
            )(own)  # fmt: skip
