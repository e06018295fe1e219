"""Types inside of `shard_map`: over which axes of the mesh a value differs (`{V:x}`)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import P, lax
from numjet.sharding import AxisType, ManualAxisType

X = np.arange(8, dtype=np.float32)


pytestmark = pytest.mark.usefixtures("eight_devices")


def seen(f: Callable, jit: bool = False, **more: Any) -> Any:
    """What `f` returns of a: [2,2] over x and y, b: [2] over x, c: [2] that does not vary."""
    mesh = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    found = []

    def body(a: Any, b: Any, c: Any) -> Any:
        found.append(f(a, b, c))
        return b

    specs = (P("x", "y"), P("x"), P())
    mapped = nj.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x"), **more)
    (nj.jit(mapped) if jit else mapped)(X.reshape(8, 1).repeat(4, 1), X, X[:2])
    return found[-1]


def text(x: Any) -> str:
    return str(nj.typeof(x))


@pytest.mark.parametrize("jit", [False, True])
def test_types_name_the_axes_along_which_a_value_varies(jit: bool) -> None:
    told = seen(lambda a, b, c: (text(a), text(b), text(c), text(jnp.ones(3))), jit)
    assert told == ("float32[2,2]{V:(x,y)}", "float32[2]{V:x}", "float32[2]", "float32[3]")
    kind = seen(lambda a, b, c: nj.typeof(a), jit)
    assert kind.manual_axis_type == kind.mat == ManualAxisType(varying={"x", "y"})
    assert seen(lambda a, b, c: nj.typeof(b) is nj.typeof(b + 1) is not nj.typeof(c), jit)


def test_collectives_change_what_varies() -> None:
    f = lambda a, b, c: [  # noqa: E731
        text(x) for x in (lax.psum(a, "x"), lax.psum(a, ("x", "y")), lax.all_gather(b, "x"),
                          lax.axis_index("y"), lax.ppermute(c, "x", [(0, 1)]), b * a.sum(),
                          lax.all_gather(b, "x", to="invarying"), jnp.where(c > 0, b, c))
    ]  # fmt: skip
    assert seen(f) == [
        "float32[2,2]{V:y}", "float32[2,2]", "float32[4,2]{V:x}", "int32[]{V:y}",
        "float32[2]{V:x}", "float32[2]{V:(x,y)}", "float32[4,2]", "float32[2]{V:x}",
    ]  # fmt: skip


def test_gradients_and_arrays_like_others_vary_as_these_do() -> None:
    f = lambda a, b, c: [  # noqa: E731
        text(x) for x in (*nj.grad(lambda b, c: (b * c).sum(), (0, 1))(b, c), jnp.zeros_like(b),
                          jnp.full_like(b, 2), jnp.ones_like(c), lax.full_like(b, 1))
    ]  # fmt: skip
    assert seen(f) == ["float32[2]{V:x}", "float32[2]", *["float32[2]{V:x}"] * 2, "float32[2]",
                       "float32[2]{V:x}"]  # fmt: skip


def test_functions_that_are_traced_see_what_varies() -> None:
    told: list[str] = []

    def f(v: Any) -> Any:
        told.append(text(v))
        return v + 1

    f_jit = nj.jit(f)

    def body(a: Any, b: Any, c: Any) -> list:
        told.clear()
        out = [f_jit(b), f_jit(c), f_jit(c), nj.vmap(f)(b), nj.checkpoint(f)(b)]
        return [text(x) for x in out]

    assert seen(body) == ["float32[2]{V:x}", "float32[2]", "float32[2]", *["float32[2]{V:x}"] * 2]
    assert told == ["float32[2]{V:x}", "float32[2]", "float32[]{V:x}", "float32[2]{V:x}"]
    vary = lambda x: lax.pcast(x, "x", to="varying")  # noqa: E731
    loop = lambda a, b, c: lax.scan(lambda s, _: (f(s) + b, None), vary(c), None, length=2)[0]  # noqa: E731, E501
    assert seen(lambda *args: text(loop(*args))) == "float32[2]{V:x}"
    assert told[-1] == "float32[2]{V:x}"


def test_shapes_alone_say_what_varies() -> None:
    def body(a: Any, b: Any, c: Any) -> tuple:
        return nj.eval_shape(jnp.add, nj.typeof(b), c), nj.eval_shape(jnp.sin, c)

    varying, shared = seen(body)
    assert varying.manual_axis_type == ManualAxisType(varying={"x"})
    assert shared.manual_axis_type.empty and "manual" not in repr(shared)
    assert nj.eval_shape(jnp.sin, varying).manual_axis_type.empty  # outside of shard_map
    assert varying != nj.ShapeDtypeStruct((2,), jnp.float32)
    assert shared == nj.ShapeDtypeStruct((2,), jnp.float32)


def test_casts_of_what_varies_already() -> None:
    with pytest.raises(ValueError, match="Unsupported pcast from=varying, to='varying'"):
        seen(lambda a, b, c: lax.pcast(b, "x", to="varying"))
    with pytest.raises(ValueError, match="can only accept axis_name which corresponds to one of"):
        seen(lambda a, b, c: lax.pcast(b, ("x", "y"), to="varying"))
    with pytest.raises(ValueError, match="from=invarying, to='unreduced'"):
        seen(lambda a, b, c: lax.pcast(c, "x", to="unreduced"))
    with pytest.raises(ValueError, match="should be called under jax.shard_map"):
        lax.pcast(X, "x", to="varying")
    cast = lambda a, b, c: text(lax.pcast(c, ("x", "y"), to="varying"))  # noqa: E731
    assert seen(cast) == "float32[2]{V:(x,y)}"
    assert seen(lambda a, b, c: text(lax.pcast(b, "x", to="varying")), check_vma=False) == (
        "float32[2]"
    )


def test_manual_axis_types() -> None:
    kind = ManualAxisType(unreduced={"x"}, reduced={"y"})
    assert kind.to_ct_mat() == ManualAxisType(unreduced={"y"}, reduced={"x"})
    assert kind.vur == {"x", "y"} and not kind.empty and ManualAxisType().empty
    assert kind.update(reduced=frozenset()) == ManualAxisType(unreduced={"x"})
    with pytest.raises(ValueError, match="varying and unreduced cannot have common mesh axes"):
        ManualAxisType(varying={"x"}, unreduced={"x"})
    aval = nj.typeof(X).update(manual_axis_type=ManualAxisType(varying={"x"}))
    assert str(aval.update(shape=(3,))) == "float32[3]{V:x}" != str(nj.typeof(X))
    assert pickle.loads(pickle.dumps(aval)) is aval
    assert aval.update_manual_axis_type(ManualAxisType()) is nj.typeof(X)


def test_specs_that_the_arguments_tell() -> None:
    seen: list[str] = []

    def show(x: Any) -> Any:
        seen.append(text(x))
        return x

    x = jnp.arange(32.0).reshape(8, 4)
    with nj.set_mesh(nj.make_mesh((4, 2), ("x", "y"))):
        y = nj.reshard(x, P("x", "y"))
        out = nj.shard_map(show, out_specs=P("x"), axis_names={"x"})(y)
        assert text(out) == "float32[8@x,4@y]" and seen.pop() == "float32[2,4@y]{V:x}"
        assert text(nj.smap(show, out_axes=1, axis_name="y")(y)) == "float32[8@x,4@y]"
        assert seen.pop() == "float32[8@x,2]{V:y}"
        whole = nj.smap(show, in_axes=None, out_axes=0, axis_name="x")(y)
        assert text(whole) == "float32[32@x,4@y]" and seen.pop() == "float32[8,4@y]"
        np.testing.assert_array_equal(whole, np.tile(x, (4, 1)))
        y = nj.reshard(jnp.tile(x, (1, 2)), P("x", "y"))
        moved = nj.smap(show, in_axes=(1,), out_axes=1, axis_name="x")(y)
        assert text(moved) == "float32[8,8@(x,y)]"
        np.testing.assert_array_equal(moved, y)
        with pytest.raises(ValueError, match="shard_map applied to the function 'show'"):
            nj.smap(show, in_axes=5, out_axes=1, axis_name="x")(y)
        # None is a spec: the argument is cut over nothing.
        stacked = nj.shard_map(show, in_specs=None, out_specs=P("x"))(x)
        np.testing.assert_array_equal(stacked, np.tile(x, (4, 1)))
    types = (AxisType.Explicit, AxisType.Auto)
    with nj.set_mesh(nj.make_mesh((4, 2), ("x", "y"), types)):
        y = nj.reshard(x, P("x"))
        assert text(nj.smap(show, out_axes=0, axis_name="x")(y)) == "float32[8@x,4]"
        with pytest.raises(TypeError, match="in_axes was not specified when axis_name='y'"):
            nj.smap(show, out_axes=0, axis_name="y")(y)
        with pytest.raises(TypeError, match="in_specs argument must be a pytree"):
            nj.shard_map(show, out_specs=P("x"))(y)


def test_static_arguments_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"static_broadcasted_argnums=\(5,\) but was called with"):
        nj.pmap(lambda x: x, static_broadcasted_argnums=5)(X)


def test_arrays_like_shapes_that_are_laid_out() -> None:
    mesh = nj.make_mesh((4, 2), ("x", "y"))
    lies = nj.NamedSharding(mesh, P("x"))
    likes = (jnp.zeros_like, jnp.empty_like, lambda s: jnp.full_like(s, 2),
             lambda s: lax.full_like(s, 2))  # fmt: skip
    shape, array = nj.ShapeDtypeStruct((8, 4), jnp.float32, sharding=lies), jnp.ones((8, 4))
    for like in likes:
        assert like(shape).sharding.is_equivalent_to(lies, 2)
        assert like(nj.device_put(array, lies)).sharding.is_equivalent_to(lies, 2)
        with nj.set_mesh(mesh):
            assert text(like(shape)) == "float32[8@x,4]"
            assert text(nj.jit(like)(nj.device_put(array, lies))) == "float32[8@x,4]"
            told = nj.eval_shape(lambda x: x.sum(1), nj.device_put(array, lies))
            assert text(like(told)) == "float32[8@x]"
    assert jnp.zeros_like(shape, shape=(3,)).sharding.num_devices == 1


def test_sharding_of_traced_values_is_what_their_types_say() -> None:
    found: list[Any] = []

    def f(x: Any) -> Any:
        nj.debug.inspect_array_sharding(x.sum(1), callback=found.append)
        return x

    mesh = nj.make_mesh((4, 2), ("x", "y"))
    with nj.set_mesh(mesh):
        nj.jit(f)(nj.reshard(jnp.ones((8, 4)), P("x", "y")))
    auto = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    assert found == [nj.NamedSharding(auto, P("x"))]
    found.clear()
    run = nj.jit(f)
    for lies in (P("x"), P("x"), P(None, "x")):
        run(nj.device_put(jnp.ones((8, 4)), nj.NamedSharding(auto, lies)))
    assert found == [nj.NamedSharding(auto, P("x")), nj.NamedSharding(auto, P())]
    run(nj.device_put(jnp.ones((8, 4)), nj.devices()[1]))
    assert found[2].device_set == {nj.devices()[1]}
    found.clear()
    x = nj.device_put(jnp.ones((8, 4)), nj.NamedSharding(auto, P("x")))
    nj.vmap(lambda r: nj.debug.inspect_array_sharding(r, callback=found.append))(x)
    g = nj.jit(nj.grad(lambda x: f(jnp.stack([x, x])).sum()))
    nj.lax.scan(lambda c, r: (g(r).sum() + c, None), 0.0, x)
    assert found == [x.sharding, nj.NamedSharding(auto, P())]
    shown = str(nj.make_jaxpr(f)(x))
    assert "inspect_sharding[\n" in shown and "callback=<built-in method append" in shown


def test_axes_of_functions_around_stay_manual() -> None:
    mesh = nj.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    seen: list = []

    def inner(x):
        seen.append(nj.sharding.get_abstract_mesh().axis_types)
        with pytest.raises(ValueError, match="can only refer to Auto axes"):
            lax.with_sharding_constraint(x, P("x"))
        return x

    def outer(x):
        seen.append(nj.sharding.get_abstract_mesh().axis_types)
        spec = P(None, "y")
        return nj.shard_map(inner, in_specs=spec, out_specs=spec, axis_names={"y"})(x)

    f = nj.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    for run in (f, nj.jit(f), nj.make_jaxpr(f)):
        seen.clear()
        run(x)
        assert seen[:2] == [(AxisType.Manual, AxisType.Auto), (AxisType.Manual,) * 2]


def test_values_are_printed_of_each_device():
    mesh = nj.make_mesh((2, 2), ("x", "y"), (AxisType.Auto,) * 2)
    texts = []

    def body(v):
        texts.append([str(v), f"{v * 2}", repr([lax.axis_index("y")])])
        return v

    mapped = nj.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    mapped(np.arange(4).reshape(2, 2))
    places = [f"On cpu:{i} at mesh coordinates (x, y,) = {divmod(i, 2)}:\n" for i in range(4)]
    assert texts.pop() == [
        "\n".join([f"{place}[[{i}]]\n" for i, place in enumerate(places)]),
        "\n".join([f"{place}[[{2 * i}]]\n" for i, place in enumerate(places)]),
        "[" + "\n".join([f"{place}{i % 2}\n" for i, place in enumerate(places)]) + "]",
    ]
    mapped(nj.device_put(np.arange(4).reshape(2, 2), nj.NamedSharding(mesh, P("x", "y"))))
    assert texts.pop()[0] == "\n".join([f"{place}[[{i}]]\n" for i, place in enumerate(places)])
    nj.jit(mapped)(np.arange(4).reshape(2, 2))
    assert texts.pop()[0] == "JitTracer(int32[1,1]{V:(x,y)})"
