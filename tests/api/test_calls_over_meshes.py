"""Calls of jitted functions over meshes of several devices, as JAX 0.10.2 has them: where results
lie and with which spec, what `pjit` does within `with mesh:`, stages whose devices are named last,
and which words errors say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import P, lax, numpy as jnp
from numjet.base.errors import DuplicateSpecError, ShardingTypeError
from numjet.core.avals import ShapedArray
from numjet.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
    auto_axes,
    use_abstract_mesh,
)

with warnings.catch_warnings(action="ignore"):
    from numjet.experimental.pjit import pjit

pytestmark = pytest.mark.usefixtures("eight_devices")
m = np.arange(24.0, dtype=np.float32).reshape(6, 4)
AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def mesh(sizes=(2, 2), names=("r", "c"), kind=AUTO):
    return nj.make_mesh(sizes, names, (kind,) * len(sizes))


def over(*spec, of=None):
    return NamedSharding(mesh() if of is None else of, P(*spec))


def put(x, *spec, of=None):
    return nj.device_put(x, over(*spec, of=of))


# ------------------------------------------------------------------ the spec of a result
@pytest.mark.parametrize(
    "spec, f, shown",
    [
        (("r", None), lambda x: x - 1, P("r", None)),
        (("r", None), lambda x: x, P("r", None)),
        (("r", None), lambda x: x.sum(1), P("r")),
        (("r", None), lambda x: x.T, P(None, "r")),
        ((None, None), lambda x: -x, P(None, None)),
        ((None, None), lambda x: x.sum(), P()),
        (("r",), lambda x: x * 3, P("r")),
    ],
)
@pytest.mark.parametrize("way", [lambda f: f, nj.jit])
def test_results_show_the_spec_of_an_argument_that_lies_so(
    spec: tuple, f: Callable, shown: P, way: Callable
) -> None:
    assert way(f)(put(m, *spec)).sharding.spec == shown


def test_the_first_argument_tells_the_spec() -> None:
    long, short = put(m, "r", None), put(m, "r")
    f = nj.jit(lambda x, y: x * y)
    assert f(long, short).sharding.spec == P("r", None) and f(short, long).sharding.spec == P("r")


def test_axes_of_one_device_stay_in_the_spec() -> None:
    x = put(m[None], "a", "b", "c", of=mesh((1, 2, 1), ("a", "b", "c")))
    assert (x + 1).sharding == x.sharding


# ------------------------------------------------------------------ pjit within `with mesh:`
def test_pjit_runs_over_the_mesh_that_was_entered() -> None:
    f = pjit(lambda x: x + 2)
    outside = f(m)
    with mesh() as here:
        inside = f(m)
        assert nj.jit(lambda x: x + 2)(m).sharding == outside.sharding
        kinds: list = []
        pjit(lambda x: kinds.append(nj.sharding.get_abstract_mesh()) or x)(m)
    assert inside.sharding == NamedSharding(here, P()) and inside.committed
    assert isinstance(f(m).sharding, SingleDeviceSharding) and not outside.committed
    assert kinds == [here.abstract_mesh]
    np.testing.assert_array_equal(inside, m + 2)


def test_none_means_whole_arrays_to_pjit() -> None:
    with mesh() as here:
        f = pjit(lambda x, y: x + y, in_shardings=(P("r"), None), out_shardings=None)
        assert f(m, m).sharding == NamedSharding(here, P())
        free = pjit(lambda x, y: x + y, (P("r"), None))
        assert free(m, m).sharding.spec == P("r")
        with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
            pjit(lambda x: x, in_shardings=None)(put(m, "r"))
    assert isinstance(pjit(lambda x: x, in_shardings=None)(m).sharding, SingleDeviceSharding)


def test_pjit_ahead_of_time_keeps_the_mesh() -> None:
    with mesh() as here:
        compiled = pjit(lambda x, *, k: x * k, out_shardings=P("c")).lower(m, k=3).compile()
    out = compiled(m.repeat(1, 0), k=3)
    assert out.sharding == NamedSharding(here, P("c"))


def test_pjit_refuses_what_lies_elsewhere() -> None:
    with mesh():
        with pytest.raises(ValueError, match="incompatible devices .* jit's context mesh"):
            pjit(lambda x: x * 2)(nj.device_put(m, nj.devices()[5]))
        with pytest.raises(ValueError, match="Mesh context manager should not be used with jit"):
            pjit(lambda x: x, device=nj.devices()[1])(m)
        with pytest.raises(ValueError, match="pjit does not support kwargs when in_shardings"):
            pjit(lambda x: x, in_shardings=P("r"))(x=m)

        @pjit
        def f(x):
            with Mesh(nj.devices()[:1], "r"):
                return pjit(lambda y: y)(x)

        with pytest.raises(ValueError, match="cannot change the size of the mesh"):
            f(m)
    with pytest.raises(RuntimeError, match="pjit requires a non-empty mesh in context"):
        pjit(lambda x: x, in_shardings=P("r"))(m)


def test_a_mesh_is_entered_by_a_decorator() -> None:
    @mesh()
    def f(x):
        return lax.with_sharding_constraint(x, P("r"))

    assert f(m).sharding == over("r")


# ------------------------------------------------------------------ devices of jit
def test_arguments_come_to_the_device_of_jit() -> None:
    there = nj.devices()[3]
    f = nj.jit(lambda x: x.sum(0), device=there)
    for x in (m, put(m, "r"), nj.device_put(m, nj.devices()[1])):
        assert f(x).devices() == {there}
    assert f.lower(m).compile()(put(m, "r")).devices() == {there}
    with pytest.raises(ValueError, match="can't specify both a device and a backend"):
        nj.jit(lambda x: x, device=there, backend="cpu")


def test_a_device_of_jit_beside_a_constraint_over_others() -> None:
    f = nj.jit(lambda: lax.with_sharding_constraint(jnp.ones(4), over("r")), device=nj.devices()[0])
    with pytest.raises(ValueError, match=r"explicit output sharding with device ids \[0\].*"
                       "sharding_constraint inside jit with device ids"):  # fmt: skip
        f()


def test_options_of_the_compiler_are_of_whole_programs() -> None:
    f = nj.jit(lambda x: x, compiler_options={"no_such": 1})
    with pytest.raises(nj.errors.JaxRuntimeError, match="No such compile option"):
        f(1.0)
    with pytest.raises(ValueError, match="can only be passed to top-level"):
        nj.jit(lambda x: f(x))(1.0)


# ------------------------------------------------------------------ devices that are named last
def test_devices_of_arguments_over_axes_alone() -> None:
    here = mesh((2,), ("r",))
    alone = nj.ShapeDtypeStruct((4,), "float32", sharding=over("r", of=here.abstract_mesh))
    f = nj.jit(lambda x: x * 5)
    with pytest.raises(ValueError, match="Passing lowering_platforms .* is required"):
        f.lower(alone)
    lowered = f.trace(alone).lower(lowering_platforms=("cpu",))
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None`"):
        lowered.compile()
    with pytest.raises(ValueError, match="size of abstract mesh 2 .* device assignment: 1"):
        lowered.compile(device_assignment=nj.devices()[:1])
    compiled = lowered.compile(device_assignment=tuple(here.devices.flat))
    assert compiled(put(m[0], "r", of=here)).sharding == over("r", of=here)
    known = nj.ShapeDtypeStruct((4,), "float32", sharding=over("r"))
    with pytest.raises(ValueError, match="AbstractMesh size: 2 does not match the device"):
        nj.jit(lambda x, y: (x, y)).lower(alone, known)
    with pytest.raises(ValueError, match="must match the device_assignment calculated"):
        f.lower(known).compile(device_assignment=nj.devices()[:2])


def test_constraints_over_axes_alone_take_the_mesh_of_the_array() -> None:
    alone = over("c", of=mesh().abstract_mesh)
    f = lambda x: lax.with_sharding_constraint(x * 2, alone)  # noqa: E731
    for way in (f, nj.jit(f)):
        assert way(put(m.T, "r")).sharding == over("c")
    with pytest.raises(ValueError, match="requires the input passed should be a `jax.Array`"):
        lax.with_sharding_constraint(m, alone)
    with pytest.raises(TypeError, match="sharding on the input must be a `NamedSharding`"):
        lax.with_sharding_constraint(jnp.ones(4), alone)
    with pytest.raises(ValueError, match="Mesh shape of the input .* does not match"):
        lax.with_sharding_constraint(put(m, "b", of=mesh((2,), ("b",))), alone)


def test_mismatches_of_compiled_calls_are_listed() -> None:
    compiled = nj.jit(lambda a, b: a + b["k"]).lower(put(m, "r"), {"k": put(m, "r")}).compile()
    with pytest.raises(ValueError, match=r"(?s)Here are the 2 mismatches .*b\['k'\]"):
        compiled(put(m, "c"), {"k": put(m, "c")})
    whole = put(m.astype(int), "r")
    with pytest.raises(TypeError, match=r"The mismatches are:\nArgument 'a' compiled with f.*\n"
                       r"Argument 'b\['k'\]'"):  # fmt: skip
        compiled(whole, {"k": whole})


def test_arrays_made_in_a_program_are_laid_out() -> None:
    f = nj.jit(lambda x: jnp.asarray(x, dtype="float16", device=over("r", "c")))
    assert f(m).sharding == over("r", "c")


# ------------------------------------------------------------------ words of errors
@pytest.mark.parametrize(
    "error, f, words",
    [
        (DuplicateSpecError, lambda: pjit(lambda x: x, out_shardings=P("r", "r"))(m),
         "A single out_shardings specification"),
        (ValueError, lambda: pjit(lambda x: {"q": x}, out_shardings=P(None, ("r", "c"), None))(m),
         r"One of pjit outputs with pytree key path result\['q'\].*rank at least 3"),
        (ValueError, lambda: lax.with_sharding_constraint(m[0], P("r", "c")),
         "One of with_sharding_constraint arguments"),
        (ValueError, lambda: lax.with_sharding_constraint(m, None),
         "with_sharding_constraint arguments got sharding None"),
        (ValueError, lambda: pjit(lambda x, y: x, [None] * 3)(m, m),
         "list of length 3 for an args tuple of length 2"),
        (ValueError, lambda: nj.make_mesh(((2,), 2), ("r", "c")), "should be a sequence of ints"),
        (IndexError, lambda: nj.make_mesh((2, 0), ("r", "c")), "leave no device"),
        (TypeError, lambda: nj.make_array_from_callback((8,), P("r"), lambda i: m[0]),
         "requires a non-empty mesh in context"),
        (ValueError, lambda: nj.set_mesh(Mesh(nj.devices(), "z", (AxisType.Manual,))),
         "contains manual axes"),
        (ValueError, lambda: over(P.UNCONSTRAINED, of=mesh(kind=EXPLICIT)),
         "cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`"),
        (TypeError, lambda: nj.jit(lambda x: x)({"w": nj.ShapeDtypeStruct((2,), "int8")}),
         r"Argument 'x\['w'\]' of shape int8\[2\] of type .* is not a valid JAX type"),
        (ValueError, lambda: jnp.stack([nj.device_put(1.0, d) for d in nj.devices()[:2]]),
         "Got argument 0 of concatenate .* and argument 1 of concatenate"),
    ],
)  # fmt: skip
def test_words_of_errors(error: type, f: Callable, words: str) -> None:
    with mesh(), pytest.raises(error, match=words):
        f()


def test_a_layout_of_shape_dtype_struct_is_changed_by_a_layout() -> None:
    from numjet.experimental.layout import Format, Layout

    spec = nj.ShapeDtypeStruct((2, 2), "int8", sharding=Format(Layout((1, 0)), over("r")))
    with pytest.raises(ValueError, match="You are updating ShapeDtypeStruct with"):
        spec.update(sharding=over("c"))


# ------------------------------------------------------------------ Explicit axes
@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,)))),
         "lhs batch dimensions and rhs batch dimensions to have the consistent sharding"),
        (lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))),
         "contracting dimensions to have consistent sharding"),
        (lambda x, y: lax.select(x > 0, x, y), "select cases must have the same shardings"),
        (lambda x, y: x[:3], "slicing on sharded dims where out dim"),
        (lambda x, y: lax.split(x, (3, 3)), "split on sharded dims where out dim"),
        (lambda x, y: lax.pad(x, 0.0, ((1, 0, 0), (0, 0, 0))), "padding on sharded dims"),
        (lambda x, y: jnp.einsum("ij,kj->ik", x, y, out_sharding=over("r")),
         "Context mesh .* should match the mesh of sharding .* passed to einsum"),
        (lambda x, y: auto_axes(lambda a: jnp.dot(a, a, out_sharding=P("r")), out_sharding=P())(x),
         "PartitionSpec passed to dot cannot contain axis names that are of type Auto"),
        (lambda x, y: nj.shard_map(auto_axes(lambda a: a, out_sharding=P("r")), in_specs=P("r"),
                                   out_specs=P("r"))(x), "Going from `Manual` AxisType"),
    ],
)  # fmt: skip
def test_words_of_types(f: Callable, words: str) -> None:
    here = mesh(kind=EXPLICIT)
    with nj.set_mesh(here):
        x, y = nj.device_put(m, P("r")), nj.device_put(m, P("c"))
        with pytest.raises((ShardingTypeError, ValueError, NotImplementedError), match=words):
            nj.jit(f)(x, y)


def test_avals_are_divided_by_explicit_axes() -> None:
    sharding = NamedSharding(AbstractMesh((2,), ("r",), EXPLICIT), P("r"))
    with pytest.raises(ValueError, match="does not evenly divide the dimension size 3"):
        ShapedArray((3, 2), np.dtype("int8"), sharding=sharding)


def test_types_of_axes_that_were_chosen() -> None:
    here = mesh(kind=EXPLICIT)
    shown: list = []

    @nj.jit
    def f(x):
        with use_abstract_mesh(here.abstract_mesh.update_axis_types({"r": AUTO, "c": AUTO})):
            free = nj.reshard(x, P())
            shown.append(nj.typeof(free @ free.T).sharding.spec)
        return nj.reshard(free, P("c"))

    with nj.set_mesh(here):
        assert f(nj.device_put(m, P("r", "c"))).sharding.spec == P("c", None)
        with pytest.raises(ValueError, match="use_abstract_mesh cannot change the size"):
            with use_abstract_mesh(AbstractMesh((8,), ("r",))):
                pass
    assert shown == [P(None, None)]


def test_axes_of_other_names_within_a_function() -> None:
    here = mesh(kind=EXPLICIT)

    @nj.jit
    def f(x):
        other = here.abstract_mesh.update(axis_sizes=(1, 4), axis_names=("p", "q"))
        with use_abstract_mesh(other):
            return nj.reshard(x.T * 2, P("q")) + 1

    with nj.set_mesh(here):
        out: Any = f(nj.device_put(m, P("r", "c")))
    assert out.sharding.spec == P("q", None) and out.sharding.mesh.axis_names == ("p", "q")
    np.testing.assert_array_equal(out, m.T * 2 + 1)


@pytest.mark.parametrize("sizes", [(1, 4), (2, 2)])
def test_inspections_where_axes_have_other_names(sizes: tuple) -> None:
    """Also programs without any are walked no more once there was one somewhere."""
    here, found = mesh(kind=EXPLICIT), []

    def f(x, inspect):
        inspect(x)
        other = here.abstract_mesh.update(axis_sizes=sizes, axis_names=("p", "q"))
        with use_abstract_mesh(other):
            y = nj.reshard(x, P("q")).T * 2
            inspect(y)
            return y

    with nj.set_mesh(here):
        x = nj.device_put(np.zeros((4, 4), np.float32), P("r", "c"))
        for inspect in (lambda v: nj.debug.inspect_array_sharding(v, callback=found.append),
                        lambda v: None):  # fmt: skip
            out = nj.jit(f, static_argnums=1)(x, inspect)
            assert out.sharding.spec == P(None, "q")
    assert len(found) == 2
    assert found[0] == over("r", "c") and found[1].is_equivalent_to(out.sharding, 2)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_what_was_put_nowhere_in_particular(kind: AxisType) -> None:
    """It lies on the default device, and programs over the mesh take it: arrays, numbers, and what
    was made while another device was the default one."""
    here = mesh(kind=kind)
    with nj.default_device(nj.devices()[3]):
        there = jnp.ones(4)
    outside = jnp.asarray(m[:4])
    with nj.set_mesh(here):
        for x in (nj.device_put(m[:4]), nj.device_put([outside])[0]):
            assert isinstance(x.sharding, SingleDeviceSharding) and not x.committed
            assert x.devices() == {nj.devices()[0]} and len(x.addressable_shards) == 1
            cut = nj.device_put(m[:4], P("r"))
            for out in (x + 1, nj.jit(lambda v: v + 1)(x), nj.grad(lambda v: (v**2).sum())(x)):
                assert out.sharding.mesh == here
            assert (x * cut).sharding.spec[0] == nj.jit(lambda a, b: a * b)(x, cut).sharding.spec[0]
        for way in (lambda f: f, nj.jit):
            assert way(lambda v: v + 1)(there).sharding.mesh == here


def test_arguments_that_are_returned_show_no_entries() -> None:
    with nj.set_mesh(mesh(kind=EXPLICIT)):
        x = jnp.asarray(nj.device_put(m))
        same, made = nj.jit(lambda x: (x, x + 1))(x)
        held = nj.jit(lambda: x)()
        own = nj.jit(lambda x: x)(nj.device_put(m, P(None, None)))
        asked = nj.jit(lambda x: x, out_shardings=P("r"))(x)
    assert (same.sharding.spec, made.sharding.spec) == (P(), P(None, None))
    assert (held.sharding.spec, own.sharding.spec) == (P(), P(None, None))
    assert asked.sharding.spec == P("r")


def test_specs_over_axes_of_several_types_are_those_of_types() -> None:
    here = nj.make_mesh((2, 2), ("r", "c"), (EXPLICIT, AUTO))
    with nj.set_mesh(here):
        x = nj.device_put(m, P("r"))
        assert nj.jit(lambda x: jnp.sin(x) * 2)(x).sharding.spec == P("r", None)
        assert nj.jit(lambda x: x * 2)(put(m, ("r",), "c", of=here)).sharding.spec == P("r", "c")


def test_what_is_returned_as_it_is_may_lie_over_another_mesh() -> None:
    with nj.set_mesh(mesh(kind=EXPLICIT)):
        x, y = nj.device_put(m, P("r")), put(m, "r")
        nj.jit(lambda x, y: (x * 2, y))(x, y)
        with pytest.raises(ValueError, match="For primitive .* context mesh .* aval mesh"):
            nj.jit(lambda x, y: (x * 2, y + 1))(x, y)


def test_random_bits_are_laid_out() -> None:
    with nj.set_mesh(mesh(kind=EXPLICIT)):
        state = jnp.arange(4, dtype=jnp.uint32)
        _, bits = nj.jit(lambda s: lax.rng_bit_generator(s, (4, 3), out_sharding=P("r")))(state)
        assert bits.sharding.spec == P("r", None)


def test_updates_by_one_index_each_multiply() -> None:
    """Under `vmap` each example has one index, so that products have derivatives in the factors."""
    f = nj.vmap(lambda x, i, y: x.at[i].mul(y))
    x, i, y = jnp.ones((3, 5)) * 2, jnp.array([1, 4, 0]), jnp.arange(3.0)
    g = nj.grad(lambda y: f(x, i, y).sum())(y)
    np.testing.assert_allclose(g, 2.0)


def test_windows_over_whole_axes_stay_cut() -> None:
    with nj.set_mesh(mesh(kind=EXPLICIT)):
        x = nj.device_put(np.zeros((2, 6, 4), np.float32), P("r", None, "c"))
        i = nj.device_put(np.array([1, 3]), P("r"))
        y = nj.device_put(np.ones((2, 4), np.float32), P("r", "c"))
        f = lambda x, i, y: lax.dynamic_update_slice_in_dim(x, y[None], i, axis=0)  # noqa: E731
        out = nj.jit(nj.vmap(f))(x, i, y)
    assert out.sharding.spec == P("r", None, "c") and np.asarray(out).sum() == 8


def test_fills_refuse_specs_that_are_too_long() -> None:
    """As arrays of that layout have no shape of their own: IndexError, JAX's."""
    place = nj.NamedSharding(nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2), P("x", "y"))
    x = jnp.arange(8.0)
    for make in (
        lambda: lax.full((8,), 1.0, sharding=place), lambda: lax.full_like(x, 1, sharding=place),
        lambda: jnp.zeros(8, device=place), lambda: jnp.ones(8, device=place),
        lambda: jnp.full(8, 2, device=place), lambda: jnp.empty(8, device=place),
        lambda: jnp.zeros_like(x, device=place), lambda: jnp.full_like(x, 2, device=place),
    ):  # fmt: skip
        with pytest.raises(IndexError, match="rank at least 2"):
            make()



def test_out_shardings_over_axes_alone() -> None:
    """The devices are those of the arguments, or of the current mesh."""
    kinds = (AxisType.Auto,)
    mesh = nj.make_mesh((8,), ("x",), kinds)
    other = nj.make_mesh((4, 2), ("x", "y"), kinds * 2)
    wanted = NamedSharding(mesh.abstract_mesh, P("x"))
    double = nj.jit(lambda v: v * 2, out_shardings=wanted)
    x = np.arange(8.0, dtype=np.float32)
    place = NamedSharding(mesh, P("x"))
    for over in (NamedSharding(mesh, P()), NamedSharding(other, P("y"))):
        out = double(nj.device_put(x, over))
        assert out.sharding == place
        np.testing.assert_array_equal(out, 2 * x)
    with nj.set_mesh(mesh):
        assert double(x).sharding == place
    with pytest.raises(ValueError, match="no devices"):
        double(x)
