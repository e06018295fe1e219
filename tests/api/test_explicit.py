"""Arrays over a mesh with Explicit axes: their types show how they are cut, and operations check
and pass it on. What is asked here was compared with JAX 0.10.2 over eight CPU devices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp, random
from numjet.base.errors import ShardingTypeError
from numjet.scipy import signal
from numjet.sharding import AxisType, auto_axes, explicit_axes, get_abstract_mesh

pytestmark = pytest.mark.usefixtures("eight_devices")


@functools.cache
def mesh() -> Any:
    return nj.make_mesh((4, 2), ("x", "y"))


def put(shape: tuple, *spec: Any) -> Any:
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return nj.device_put(value, nj.NamedSharding(mesh(), nj.P(*spec)))


def typed(x: Any) -> str:
    return str(nj.typeof(x)).removeprefix("float32")


CASES = {
    "itself": (lambda x: x, "[8@x,4]"),
    "elementwise": (lambda x: jnp.sin(x) + 1, "[8@x,4]"),
    "both axes": (lambda x: x + put((8, 4), None, "y"), "[8@x,4@y]"),
    "unsharded": (lambda x: x * np.ones((8, 4), np.float32), "[8@x,4]"),
    "broadcast": (lambda x: x + put((4,), "y"), "[8@x,4@y]"),
    "transpose": (lambda x: x.T, "[4,8@x]"),
    "sum": (lambda x: x.sum(0), "[4]"),
    "mean": (lambda x: x.mean(1), "[8@x]"),
    "prod": (lambda x: x.prod(0), "[4]"),
    "matmul": (lambda x: x @ put((4, 6), None, "y"), "[8@x,6@y]"),
    "product of a cut and a whole axis": (lambda x: x.T @ jnp.ones((8, 3)), "[4,3]"),
    "split": (lambda x: x.reshape(4, 2, 4), "[4@x,2,4]"),
    "join": (lambda x: x.reshape(32), "[32@x]"),
    "new axis": (lambda x: x[None], "[1,8@x,4]"),
    "column": (lambda x: x[:, 0], "[8@x]"),
    "concatenate": (lambda x: jnp.concatenate([x, x], 0), "[16@x,4]"),
    "slice": (lambda x: lax.slice(x, (0, 0), (4, 2)), "[4@x,2]"),
    "rev": (lambda x: x[:, ::-1], "[8@x,4]"),
    "sort": (lambda x: jnp.sort(x, 1), "[8@x,4]"),
    "take": (lambda x: jnp.take(x, jnp.array([0, 2]), axis=1), "[8@x,2]"),
    "update": (lambda x: x.at[:, 0].set(1.0), "[8@x,4]"),
    "update of all": (lambda x: x.at[...].set(1.0), "[8@x,4]"),
    "join of two that are cut": (lambda x: (x + put((8, 4), None, "y")).reshape(32), "[32@(x,y)]"),
    "windows": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (2, 1), "VALID"), "[4@x,4]"
    ),
    "where": (lambda x: jnp.where(x > 3, x, 0.0), "[8@x,4]"),
    "empty like": (lambda x: jnp.empty_like(x), "[8@x,4]"),
    "keys": (
        lambda x: nj.vmap(lambda r: random.normal(random.key(r.sum().astype(int)), (3,)))(x),
        "[8@x,3]",
    ),
    "jacfwd": (nj.jacfwd(lambda x: x.sum(1)), "[8@x,8,4]"),
    "jacrev": (lambda x: nj.jacrev(lambda x: 2 * x)(x[:, 0]), "[8,8@x]"),
    "hessian": (lambda x: nj.hessian(lambda r: (r**3).sum())(x[:, 0]), "[8@x,8]"),
    "like": (lambda x: jnp.zeros_like(x), "[8@x,4]"),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, 2 * a), put((8,), "x"), x.T)[1], "[4,8@x]"),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: 2 * c, x), "[8@x,4]"),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), "[8@x,4]"),
    "vmap": (nj.vmap(lambda r: r / r.sum()), "[8@x,4]"),
    "vmap of columns": (nj.vmap(jnp.sort, in_axes=0, out_axes=1), "[4,8@x]"),
    "vmap, no operand": (nj.vmap(lambda r: jnp.ones(3)), "[8@x,3]"),
    "grad": (nj.grad(lambda x: jnp.tanh(x @ put((4, 6), None, "y")).sum()), "[8@x,4]"),
    "grad of the whole operand": (
        lambda x: nj.grad(lambda w: jnp.tanh(x @ w).sum())(put((4, 6), None, "y")), "[4,6@y]"
    ),
    "grad of a sum": (nj.grad(lambda x: x.sum()), "[8@x,4]"),
    "grad, unused": (nj.grad(lambda x: 1.0), "[8@x,4]"),
    "second derivative": (nj.grad(lambda x: nj.grad(lambda y: (y**3).sum())(x).sum()), "[8@x,4]"),
    "grad of scan": (
        nj.grad(lambda x: lax.scan(lambda c, a: (c * a, None), put((8,), "x"), x.T)[0].sum()),
        "[8@x,4]",
    ),
    "checkpoint": (nj.grad(lambda x: nj.checkpoint(jnp.sin)(x).sum()), "[8@x,4]"),
    "jvp": (lambda x: nj.jvp(jnp.sin, (x,), (jnp.ones((8, 4)),))[1], "[8@x,4]"),
    "reshard": (lambda x: nj.reshard(x, nj.NamedSharding(mesh(), nj.P(None, "y"))), "[8,4@y]"),
    "asked": (
        lambda x: jnp.dot(x.T, x, out_sharding=nj.NamedSharding(mesh(), nj.P("y"))), "[4@y,4]"
    ),
    "asked of reshape": (
        lambda x: jnp.reshape(x, (2, 16), out_sharding=nj.NamedSharding(mesh(), nj.P("y"))),
        "[2@y,16]",
    ),
    "shard_map": (
        lambda x: nj.shard_map(
            lambda a: lax.psum(a, "x"), mesh=mesh(), in_specs=nj.P("x"), out_specs=nj.P(None, "x")
        )(x),
        "[2,16@x]",
    ),
    "shard_map over one axis": (
        lambda x: nj.shard_map(
            lambda a: 2 * a, mesh=mesh(), in_specs=nj.P("x"), out_specs=nj.P("x"), axis_names={"x"}
        )(x + put((8, 4), None, "y")),
        "[8@x,4@y]",
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_types_and_values(name: str) -> None:
    function, want = CASES[name]
    x = put((8, 4), "x")
    inside: list[str] = []

    def traced(x: Any) -> Any:
        out = function(x)
        inside.append(typed(out))
        return out

    with nj.set_mesh(mesh()):
        eager = function(x)
    compiled = nj.jit(traced)(x)
    assert [typed(eager), *inside, typed(compiled)] == [want] * 3
    assert eager.sharding.is_equivalent_to(compiled.sharding, eager.ndim)
    assert compiled.aval.sharding.spec == compiled.sharding.spec
    np.testing.assert_allclose(eager, compiled, rtol=1e-5)


REFUSED = {
    "axes that differ": (lambda x: x + put((8, 4), "y"), "incompatible"),
    "an axis twice": (lambda x: x + put((8, 4), None, "x"), "illegally sharded"),
    "a contraction": (lambda x: x.T @ x, "out_sharding"),
    "reshape": (lambda x: x.reshape(2, 16), "out_sharding"),
    "index": (lambda x: x[0], "get"),
    "places": (lambda x: x[jnp.array([0, 1])], "get"),
    "places that are cut": (lambda x: jnp.ones((4, 2))[put((8,), "x").astype(int)], "get"),
    "concatenate": (
        lambda x: jnp.concatenate([x, put((8, 4), None, "x")], 1), "have the same sharding"
    ),
    "sort": (lambda x: jnp.sort(x, 0), "numjet.reshard"),
    "cumsum": (lambda x: jnp.cumsum(x, 0), "numjet.reshard"),
    "pad": (lambda x: jnp.pad(x, ((1, 1), (0, 0))), "padding on sharded dims where out dim"),
    "where": (lambda x: jnp.where(x > 0, x, put((8, 4), "y")), "have the same shardings"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_types_do_not_say_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    x = put((8, 4), "x")
    for run in (function, nj.jit(function)):
        with pytest.raises(ShardingTypeError, match=message):
            run(x)


def test_loops_branches_and_maps_keep_placements() -> None:
    x, other = put((8, 4), "x"), nj.NamedSharding(mesh(), nj.P(None, "y"))
    with pytest.raises(TypeError, match="carry"):
        lax.fori_loop(0, 2, lambda i, c: nj.reshard(c, other), x)
    with pytest.raises(TypeError, match="equal output types"):
        lax.cond(True, lambda c: c, lambda c: nj.reshard(c, other), x)
    with pytest.raises(ValueError, match="replicated"):
        lax.scan(lambda c, a: (c, a), 0.0, x)
    with pytest.raises(ValueError, match="sharded the same"):
        nj.vmap(jnp.add)(x, jnp.ones((8, 4)))
    with pytest.raises(ValueError, match="in_specs"):
        nj.shard_map(lambda a: a, mesh=mesh(), in_specs=nj.P("y"), out_specs=nj.P("y"))(x)
    other = nj.NamedSharding(nj.make_mesh((8,), ("x",)), nj.P("x"))
    with pytest.raises(ValueError, match="Mesh for all inputs"):
        nj.jit(jnp.add)(x, nj.device_put(x, other))


@pytest.mark.parametrize("jit", [False, True])
def test_axes_that_are_not_mapped_cut_blocks_further(jit: bool) -> None:
    seen: list[str] = []

    def double(x: Any) -> Any:
        seen.append(str(nj.typeof(x)))
        return x * (1 + lax.axis_index("x"))

    # What an argument and its spec name, the type of a block, and that of the result.
    cases = (
        ((("x", "y"),), ("x",), "[2@y,4]{V:x}", "[8@(x,y),4]"),
        ((("y", "x"),), ("x",), "[2@y,4]{V:x}", "[8@(x,y),4]"),
        ((("x", "y"),), (None, "x"), "[8@y,1]{V:x}", "[8@y,4@x]"),
        (("x", "y"), ("x",), "[2,4@y]{V:x}", "[8@x,4@y]"),
        (("y", "x"), ("x",), "[2@y,4]{V:x}", "[8@(x,y),4]"),
    )
    for lies, given, block, result in cases:
        x, spec = put((8, 4), *lies), nj.P(*given)
        f = nj.shard_map(double, mesh=mesh(), in_specs=spec, out_specs=spec, axis_names={"x"})
        f = nj.jit(f) if jit else f
        seen.clear()
        y = f(x)
        assert seen[-1] == "float32" + block and typed(y) == result
        dim = given.index("x")
        scale = np.repeat(np.arange(1.0, 5), (8, 4)[dim] // 4)
        scale = scale[:, None] if dim == 0 else scale
        np.testing.assert_array_equal(y, np.asarray(x) * scale)
        slope = nj.jit(
            nj.grad(lambda x, f=f: nj.reshard(f(x), nj.NamedSharding(mesh(), nj.P())).sum())
        )(x)
        np.testing.assert_array_equal(slope, np.broadcast_to(scale, (8, 4)))


def test_arrays_over_another_mesh_than_the_current_one_are_refused() -> None:
    x, eight = put((8, 4), "x"), nj.make_mesh((8,), ("x",))
    inside = nj.device_put(np.ones(8, np.float32), nj.NamedSharding(eight, nj.P("x")))
    with nj.set_mesh(eight):
        for f in (jnp.sin, nj.jit(jnp.sin), lambda x: x.sum(1), lambda x: x @ x.T,
                  lambda x: nj.jit(lambda: x * 2)()):
            with pytest.raises(ValueError, match="context mesh .* should match the aval mesh"):
                f(x)
        np.testing.assert_array_equal(np.asarray(x)[:, 0], nj.device_put(x, inside.sharding)[:, 0])
        assert typed(inside + 1) == "[8@x]"
        auto = nj.shard_map(lambda a: a * lax.axis_index("x"), mesh=eight, in_specs=nj.P("x"),
                            out_specs=nj.P("x"))  # fmt: skip
        assert typed(nj.grad(lambda a: auto(a).sum())(inside)) == "[8@x]"
        with pytest.raises(ValueError, match="incompatible devices"):
            nj.jit(jnp.sin)(nj.device_put(np.ones(3), nj.devices()[1]))
    assert typed(jnp.sin(x)) == "[8@x,4]"


def test_searches_and_counts_lie_beside_what_they_read() -> None:
    v = put((8,), "x")
    everywhere = nj.NamedSharding(mesh(), nj.P(None))
    for method in ("scan", "compare_all", "sort"):
        assert typed(jnp.searchsorted(jnp.arange(8.0), v, method=method)) == "int32[8@x]"
    assert typed(jnp.digitize(v, jnp.array([2.0, 5.0]))) == "int32[8@x]"
    for out in (jnp.bincount(v.astype(int)), jnp.nonzero(v)[0], jnp.nonzero(v, size=4)[0],
                jnp.flatnonzero(v), jnp.bincount(put((8,)).astype(int))):  # fmt: skip
        assert out.sharding.is_equivalent_to(everywhere, 1) and len(out.devices()) == 8
    np.testing.assert_array_equal(jnp.bincount(v.astype(int)), np.ones(8))


def test_constraints_assert() -> None:
    x = put((8, 4), "x")
    with nj.set_mesh(mesh()):
        for run in (lambda f: f, nj.jit):
            f = run(lambda x: lax.with_sharding_constraint(x, nj.P("x")))
            g = run(lambda x: lax.with_sharding_constraint(x, nj.P("y")))
            assert typed(f(x)) == "[8@x,4]"
            with pytest.raises(AssertionError, match="assert"):
                g(x)


def test_types_of_axes_for_a_function() -> None:
    x = put((8, 4), "x")
    seen = []

    def f(x: Any) -> Any:
        seen.append((typed(x), set(get_abstract_mesh().axis_types)))
        return x.T.reshape(8, 4) + x

    with nj.set_mesh(mesh()):
        for run in (lambda f: f, nj.jit):
            out = run(auto_axes(f, out_sharding=nj.P("x", "y")))(x)
            assert typed(out) == "[8@x,4@y]"
            np.testing.assert_array_equal(out, np.asarray(x).T.reshape(8, 4) + x)
    assert seen == [("[8,4]", {AxisType.Auto})] * 2
    auto = nj.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    with nj.set_mesh(auto):
        y = nj.device_put(np.asarray(x), nj.NamedSharding(auto, nj.P("x")))
        g = explicit_axes(lambda x: (seen.append(typed(x)), 2 * x)[1], in_sharding=nj.P(None, "y"))
        assert typed(nj.jit(g)(y)) == typed(g(y)) == "[8,4]"
    assert seen[2:] == ["[8,4@y]"] * 2


def test_some_axes_explicit() -> None:
    mixed = nj.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = nj.device_put(np.ones((8, 4)), nj.NamedSharding(mixed, nj.P("x", "y")))
    for out in (x + x, nj.jit(lambda x: x + x)(x)):
        assert typed(out) == "[8@x,4]"
        assert out.sharding.spec == nj.P("x", "y")


def test_functions_are_traced_for_the_mesh_that_they_ask_for() -> None:
    auto, eight = (nj.make_mesh(shape, names, AxisType.Auto)
                   for shape, names in (((4, 2), ("x", "y")), ((8,), ("x",))))  # fmt: skip
    seen: list[int] = []

    def body(c: Any, a: Any) -> Any:
        return lax.with_sharding_constraint(c + a, nj.P("x")), None

    inner = nj.jit(lambda x: lax.scan(body, x, np.ones((3, 8), np.float32))[0])
    outer = nj.jit(lambda x: inner(x) * 2)
    asks = nj.jit(lambda x: (seen.append(len(get_abstract_mesh().axis_names)), x)[1])
    plain = nj.jit(lambda x: (seen.append(-1), x + 1)[1])
    x = np.arange(8, dtype=np.float32)
    for _ in range(2):
        for mesh in (auto, eight):
            with nj.set_mesh(mesh):
                for f in (inner, outer):
                    out = f(x)
                    assert out.sharding.is_equivalent_to(nj.NamedSharding(mesh, nj.P("x")), 1)
                for _ in range(4):
                    asks(x), plain(x)
        for _ in range(4):
            asks(x), plain(x)
    assert seen == [2, -1, 1, 0]
    with pytest.raises(ValueError, match="outside of functions that are traced"):
        nj.jit(lambda x: (nj.set_mesh(auto), x)[1])(x)
    with pytest.raises(ValueError, match="expected a Mesh"):
        nj.set_mesh("x")
    with pytest.raises(TypeError, match="AxisType"):
        nj.make_mesh((8,), ("x",), axis_types=("auto",))


def test_compiled_stages_know_shardings() -> None:
    auto = nj.make_mesh((4, 2), ("x", "y"), AxisType.Auto)
    rows, columns = nj.NamedSharding(auto, nj.P("x")), nj.NamedSharding(auto, nj.P(None, "y"))
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    for spec in (value, nj.ShapeDtypeStruct((8, 4), "float32")):
        made = nj.jit(lambda x: x.T, in_shardings=rows).lower(spec).compile()
        assert made.input_shardings == ((rows,), {})
        assert made.output_shardings.is_equivalent_to(nj.NamedSharding(auto, nj.P(None, "x")), 2)
        out = made(value)
        np.testing.assert_array_equal(out, value.T)
        assert out.sharding.is_equivalent_to(made.output_shardings, 2)
        with pytest.raises(ValueError, match="compiled for input shardings that disagree"):
            made(nj.device_put(value, columns))
    told = nj.jit(lambda x: x + 1, out_shardings=columns).lower(nj.device_put(value, rows))
    out = told.compile()(nj.device_put(value, rows))
    assert out.sharding == columns and told.compile().output_shardings == columns


def test_copies_and_closures_of_arrays_laid_out_over_devices() -> None:
    auto = nj.NamedSharding(nj.make_mesh((4, 2), ("x", "y"), AxisType.Auto), nj.P("x"))
    x = nj.device_put(np.ones((8, 4), np.float32), auto)
    assert nj.device_put(x, auto) is x and x.on_device_size_in_bytes() == 2 * x.nbytes
    assert nj.jit(lambda: x * 2)().sharding.num_devices == 1  # a constant of the program
    assert nj.jit(lambda y: x * y)(x).sharding == auto
    copies = [x.copy(), jnp.copy(x), jnp.array(x), nj.device_put(x, may_alias=False)]
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x.copy()
    for copy in copies:
        assert copy.sharding == auto
        np.testing.assert_array_equal(copy, np.ones((8, 4)))


def test_compiled_ahead_of_calls() -> None:
    x = put((8, 4), "x")
    out = nj.jit(lambda x: 2 * x).lower(x).compile()(x)
    assert typed(out) == "[8@x,4]" and out.sharding.spec == nj.P("x", None)


def test_arrays_that_nobody_placed() -> None:
    with nj.set_mesh(mesh()):
        assert jnp.ones(3).sharding == nj.NamedSharding(mesh(), nj.P(None))
    assert isinstance(jnp.ones(3).sharding, nj.sharding.SingleDeviceSharding)
    with pytest.deprecated_call(match="set_mesh"), mesh():
        assert isinstance(jnp.ones(3).sharding, nj.sharding.SingleDeviceSharding)


def test_auto_axes_may_be_named_where_they_do_not_divide() -> None:
    auto = nj.NamedSharding(nj.make_mesh((8,), ("x",), AxisType.Auto), nj.P("x"))
    constrain = functools.partial(lax.with_sharding_constraint, shardings=auto)
    np.testing.assert_array_equal(nj.jit(constrain)(np.ones((4, 2))), np.ones((4, 2)))
    with pytest.raises(ValueError, match="multiple of 8"):
        constrain(np.ones((4, 2)))
    with pytest.raises(ValueError, match="type Auto"):
        nj.reshard(np.ones((8, 2)), auto)


def test_constraints_of_mapped_values() -> None:
    half = nj.NamedSharding(mesh(), nj.P("y"))
    out = nj.vmap(lambda r: nj.reshard(r, half))(jnp.ones((8, 4)))
    assert typed(out) == "[8,4@y]" and out.sharding.spec == nj.P(None, "y")


def test_avals() -> None:
    x = put((8, 4), "x")
    aval = nj.typeof(x)
    assert aval is nj.typeof(x + 1) is not nj.typeof(jnp.ones((8, 4)))
    assert str(aval.update(shape=(4, 4))) == "float32[4@x,4]"
    assert str(aval.update(dtype="int32")) == "int32[8@x,4]"
    abstract = nj.NamedSharding(mesh().abstract_mesh, nj.P("x"))
    assert str(nj.core.avals.ShapedArray((8, 4), "float32", sharding=abstract)) == str(aval)
    spec = nj.ShapeDtypeStruct((8, 4), "float32", sharding=abstract)
    out = nj.eval_shape(lambda x: x.sum(1), spec)
    assert out.sharding.spec == nj.P("x") and str(nj.typeof(out)) == "float32[8@x]"
    with nj.sharding.use_abstract_mesh(mesh().abstract_mesh):
        made = nj.eval_shape(lambda: jnp.zeros(8, out_sharding=nj.P("x")))
    assert str(nj.typeof(made)) == "float32[8@x]"
    assert aval.sharding.mesh == get_abstract_mesh() or get_abstract_mesh().empty
    text = str(nj.make_jaxpr(lambda x: jnp.sin(x).T)(x))
    assert "a:f32[8@x,4]" in text and "c:f32[4,8@x]" in text


@pytest.mark.parametrize("f", [jnp.convolve, jnp.correlate, signal.convolve])
@pytest.mark.parametrize("how", ["full", "same", "valid"])
def test_convolutions_of_a_cut_vector(f: Any, how: str) -> None:
    x, kernel = np.arange(8.0, dtype=np.float32), np.ones(3, np.float32)
    over = nj.make_mesh((2, 4), ("x", "y"))
    with nj.set_mesh(over):
        cut = nj.device_put(x, nj.P("x"))
        got = f(cut, kernel, how)
        assert got.sharding == nj.NamedSharding(over, nj.P("x"))
        np.testing.assert_array_equal(got, f(x, kernel, how))
        with pytest.raises(ShardingTypeError, match="specify the output sharding"):
            f(cut, nj.device_put(x, nj.P("y")), how)
    with nj.set_mesh(over), pytest.raises(ShardingTypeError, match="divi"):
        f(cut, np.ones(4, np.float32))


def test_in_shardings_are_a_part_of_types() -> None:
    explicit = nj.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    sharding = nj.NamedSharding(explicit, nj.P("x", "y"))
    seen = []

    def double(x):
        seen.append(str(nj.typeof(x)))
        return x * 2

    f = nj.jit(double, in_shardings=sharding)
    for x in (np.ones((8, 8), np.float32), nj.device_put(np.ones((8, 8), np.float32), sharding)):
        y = f(x)
        assert y.sharding == sharding and str(nj.typeof(y)) == "float32[8@x,8@y]"
    assert seen == ["float32[8@x,8@y]"]


def test_constraints_name_auto_axes_and_keep_types() -> None:
    constrain = lax.with_sharding_constraint
    both = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    x = put((8, 4), "x")
    for spec, over in ((("x",), mesh()), (("x", "y"), both)):
        layout = nj.NamedSharding(over, nj.P(*spec))
        for f in (constrain, nj.jit(constrain, static_argnums=1)):
            with pytest.raises(ValueError, match="can only refer to Auto axes"):
                f(x, layout)
    with nj.set_mesh(both):
        x = nj.device_put(np.ones((8, 4), np.float32), nj.P("x"))
        for spec, want in ((nj.P("y"), nj.P(("x", "y"))), (nj.P(None, "y"), nj.P("x", "y"))):
            y = nj.jit(lambda x, spec=spec: constrain(x * 2, spec))(x)
            assert typed(y) == "[8@x,4]" and y.sharding.spec == want
        assert typed(constrain(x, nj.P(None, "y"))) == "[8,4]"  # of arrays it is device_put


def test_shapes_of_results_have_the_shardings_asked_for() -> None:
    layout = nj.NamedSharding(mesh(), nj.P("x"))
    f = nj.jit(lambda x: (x * 2, x), out_shardings=(layout, None))
    x = np.ones((8, 4), np.float32)
    for info in (f.eval_shape(x), nj.eval_shape(f, x), f.trace(x).out_info, f.lower(x).out_info):
        assert [s.sharding for s in info] == [layout, None]


def test_pmap_of_more_examples_than_devices() -> None:
    with pytest.raises(ValueError, match="size 9, but there are only 8 devices"):
        nj.pmap(lambda x: x)(np.ones((9, 2)))


# What a stranger maps over keys and values that lie over an axis, with values that do not.
MAPPED = {
    "key_data": lambda k, x: nj.random.key_data(k),
    "wrap_key_data": lambda k, x: nj.random.wrap_key_data(nj.random.key_data(k)),
    "gamma": lambda k, x: nj.vmap(lambda k: nj.random.gamma(k, 2.0))(k),
    "cond": lambda k, x: nj.vmap(lambda v: lax.cond(v > 3, jnp.sin, jnp.cos, v))(x),
    "cond of a row": lambda k, x: nj.vmap(
        lambda v: lax.cond(v > 3, lambda a: jnp.ones(3), lambda a: jnp.zeros(3) + a, v))(x),
    "at set": lambda k, x: nj.vmap(lambda v: jnp.zeros(4).at[1].set(v))(x),
    "update": lambda k, x: nj.vmap(
        lambda v: lax.dynamic_update_slice(jnp.zeros(4), v[None], (1,)))(x),
    "while": lambda k, x: nj.vmap(lambda v: lax.while_loop(
        lambda c: c[0] < 30, lambda c: (c[0] + v + 1, c[1] + 1), (0.0, 0)))(x),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_operations_lie_over_the_axis_that_is_mapped(name, eight_devices):
    keys, x = nj.random.split(nj.random.key(0), 8), jnp.arange(8.0)
    mesh = nj.make_mesh((4,), ("x",), (nj.sharding.AxisType.Explicit,))
    with nj.set_mesh(mesh):
        placed = [nj.device_put(v, nj.P("x")) for v in (keys, x)]
        found = [run(*placed) for run in (MAPPED[name], nj.jit(MAPPED[name]))]
    for want, *got in zip(*map(nj.tree.leaves, (MAPPED[name](keys, x), *found)), strict=True):
        for one in got:
            assert nj.typeof(one).sharding.spec[0] == "x"
            if nj.dtypes.issubdtype(one.dtype, nj.dtypes.prng_key):
                one = nj.random.key_data(one)
            if nj.dtypes.issubdtype(want.dtype, nj.dtypes.prng_key):
                want = nj.random.key_data(want)
            np.testing.assert_allclose(one, want, rtol=1e-6)


def test_none_entries_past_an_arrays_dimensions_mean_nothing() -> None:
    """One PartitionSpec serves arrays of several ranks, as `reshard(model, P(None, None))` asks."""
    tall = nj.NamedSharding(mesh(), nj.P("x", None, None))
    row = put((8,), "y")
    with nj.set_mesh(mesh()):
        made = nj.reshard({"kernel": put((8, 4), "x"), "bias": row}, nj.P(None, None))
        assert [typed(made[name]) for name in ("kernel", "bias")] == ["[8,4]", "[8]"]
        assert nj.reshard(np.float32(1), nj.P(None)).sharding.spec == nj.P()
        assert typed(nj.jit(lambda x: nj.reshard(x, tall))(row)) == "[8@x]"
        assert typed(nj.grad(lambda x: nj.reshard(x, tall).sum())(row)) == "[8@y]"
        assert typed(jnp.zeros(8, out_sharding=tall)) == "[8@x]"
        assert str(nj.typeof(jnp.arange(8, out_sharding=tall))) == "int32[8@x]"
        assert typed(jnp.einsum("ij,j->i", put((8, 4)), put((4,)), out_sharding=tall)) == "[8@x]"
        assert typed(auto_axes(lambda x: 2 * x, out_sharding=nj.P("x", None))(row)) == "[8@x]"
        for past in (nj.P(None, "x"), nj.P(None, None, "x")):
            with pytest.raises(ValueError, match="rank at least"):
                nj.reshard(row, past)
    with pytest.raises(ValueError, match="rank at least"):
        nj.device_put(row, tall)


def test_types_without_axes_of_one_device() -> None:
    mesh = nj.make_mesh((2, 1), ("a", "b"), (AxisType.Explicit,) * 2)
    flag, seen = "jax_remove_size_one_mesh_axis_from_type", []

    def double(x):
        seen.append(nj.typeof(x).sharding.spec)
        return lax.with_sharding_constraint(x * 2, nj.P("a", "b"))  # which tests it

    def varies(x):
        seen.append(nj.typeof(x).manual_axis_type.varying)
        return lax.psum(x, "a")

    values = np.ones((4, 3), np.float32)
    with nj.set_mesh(mesh):
        nj.config.update(flag, True)
        try:
            out = nj.jit(double)(nj.device_put(values, nj.P("a", "b")))
            given = nj.device_put(values, nj.P("a", "b"))
            total = nj.shard_map(varies, in_specs=nj.P("a", "b"), out_specs=nj.P())(given)
        finally:
            nj.config.update(flag, False)
        assert seen == [nj.P("a", None), {"a"}] and out.sharding.spec == nj.P("a", None)
        assert total.shape == (2, 3)
        assert nj.typeof(nj.device_put(values, nj.P("a", "b"))).sharding.spec == nj.P("a", "b")
