"""What `shard_map` says of what it is not given rightly, what a mesh of axes alone stands for in
it, and which types its function sees, as JAX 0.10.2 has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import P, lax, numpy as jnp
from numjet.sharding import AxisType, Mesh, NamedSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
V = np.arange(12.0, dtype=np.float32)


def mesh(shape: tuple = (2, 3), names: tuple = ("a", "b"), kind: AxisType = AxisType.Auto) -> Mesh:
    return nj.make_mesh(shape, names, (kind,) * len(shape))


def put(over: Mesh, *spec: Any, value: Any = V) -> nj.Array:
    return nj.device_put(value, NamedSharding(over, P(*spec)))


def mapped(f: Callable, over: Any = None, ins: Any = None, outs: Any = None, **more: Any) -> Any:
    specs = {"in_specs": P("a") if ins is None else ins, "out_specs": outs or P("a")}
    return nj.shard_map(f, mesh=mesh() if over is None else over, **specs, **more)


def same(x: Any) -> Any:
    return x


@pytest.mark.parametrize(("error", "call", "words"), [
    (ValueError, lambda: mapped(same, ins=([P("a")],))([V, V]), r"at shard_map in_specs\[0\]"),
    (ValueError, lambda: mapped(lambda x: {"k": [x, x]}, outs={"k": [P("a")]})(V),
     r"at shard_map out_specs\['k'\]"),
    (ValueError, lambda: mapped(lambda x: x.sum())(V), "length 1, .* which has rank 0"),
    (ValueError, lambda: mapped(same)(1.0), r"consider using an in_specs entry of `P\(\)`"),
    (ValueError, lambda: mapped(same, ins=P("a", "b"))(V), "length 2, .* which has rank 1"),
    (ValueError, lambda: mapped(same, ins=P(("a", "b")))(V),
     r"is P\('a',\) which .* only varying across mesh axes \{a\} and not \{b\}, but it was "
     r"inferred to be possibly varying over \{a,b\}"),
    (ValueError, lambda: mapped(same, ins=P(unreduced={"a"}))(V), "names all of type `Explicit`"),
    (NotImplementedError, lambda: mapped(same, ins=P(unreduced={"a"}), axis_names={"a"})(V),
     "full manual mode"),
    (TypeError, lambda: mapped(lambda x: lax.pcast(x, {"a"}, to="varying"))(V),
     "must be a tuple or a str"),
    (NameError, lambda: nj.jit(lambda x: lax.pmax(x, "c"))(V),
     "name: c. To fix this, please call pmax under `jax.shard_map`"),
    (NameError, lambda: lax.axis_index("c"), "please call axis_index under"),
])  # fmt: skip
def test_words_of_errors(error: type[Exception], call: Callable, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("axes", [P("a"), P(None, "a"), P("a", "b")])
def test_constraints_name_no_axis_that_is_mapped(axes: Any) -> None:
    over, value = mesh(), V.reshape(4, 3)
    sharding = NamedSharding(over, axes)
    f = mapped(lambda x: lax.with_sharding_constraint(x, sharding), over, axis_names={"a"})
    with pytest.raises(ValueError, match=r"contains a manual axes \('a',\) of mesh"):
        nj.jit(f)(value)


def test_axes_alone_stand_for_the_mesh_of_the_arguments() -> None:
    over = mesh()
    f = mapped(lambda x, y: x + y, over.abstract_mesh, P("a"))
    placed = put(over, "b")
    for run in (f, nj.jit(f)):
        out = run(V, placed) if run is f else run(placed, placed)
        assert out.sharding == NamedSharding(over, P("a"))
        np.testing.assert_array_equal(np.asarray(out), 2 * V)
    with pytest.raises(ValueError, match="Please pass `jax.Array`s with a `NamedSharding` as "):
        f(V, jnp.asarray(V))
    with pytest.raises(ValueError, match="Mesh shape of the input .*6.* does not match the mesh"):
        f(placed, put(mesh((6,), ("c",)), "c"))


def test_a_program_over_axes_alone_is_traced_once_for_all_devices() -> None:
    traces = []

    def double(x: Any) -> Any:
        traces.append(x.shape)
        return x * 2

    first, second = (Mesh(nj.devices()[i : i + 3], ("a",)) for i in (0, 4))
    f = nj.jit(mapped(double, first.abstract_mesh))
    for over in (first, second):
        out = f(put(over, "a"))
        assert out.sharding == NamedSharding(over, P("a")) and out.devices() == set(over.devices)
    assert traces == [(4,)]


@pytest.mark.parametrize("constrain", [
    lambda axes: mapped(lambda x: x * 2, axes),
    lambda axes: lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(axes, P("a"))),
])
def test_axes_alone_of_other_names_are_laid_over_the_devices(constrain: Callable) -> None:
    f = nj.jit(constrain(mesh().abstract_mesh))
    out = f(put(mesh((6,), ("c",)), "c"))
    assert out.sharding == NamedSharding(mesh(), P("a"))
    np.testing.assert_array_equal(np.asarray(out), 2 * V)
    with pytest.raises(ValueError, match="of 6 devices, but the arguments lie over 2"):
        f(put(mesh((2,), ("c",)), "c"))


def test_types_within_show_which_axes_are_mapped() -> None:
    over, seen = mesh(kind=AxisType.Explicit), []

    def look(x: Any) -> Any:
        seen.append((x.aval.sharding.mesh.axis_types, x.aval.sharding.spec))
        return x

    f = mapped(look, over, P("a", None), P("a", None), axis_names={"a"})
    out = nj.jit(f)(put(over, "a", "b", value=V.reshape(4, 3)))
    assert seen == [((AxisType.Manual, AxisType.Explicit), P(None, "b"))]
    assert out.sharding.spec == P("a", "b")
