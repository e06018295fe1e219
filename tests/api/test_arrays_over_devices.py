"""Arrays made of parts, taken apart, copied and put elsewhere, over several devices, as JAX 0.10.2
has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import P, lax, numpy as jnp, random
from numjet.errors import UnexpectedTracerError
from numjet.experimental.layout import Format, Layout
from numjet.experimental.serialize_executable import serialize
from numjet.sharding import AbstractMesh, AxisType, Mesh, NamedSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
V = np.arange(12.0, dtype=np.float32).reshape(6, 2)


def rows(n: int = 2) -> NamedSharding:
    return NamedSharding(nj.make_mesh((n,), ("r",), (AxisType.Auto,)), P("r"))


def parts(*devices: int, value: Any = V[:3]) -> list:
    return [nj.device_put(value, nj.devices()[i]) for i in devices]


def together(arrays: list, sharding: Any = None) -> Any:
    return nj.make_array_from_single_device_arrays((6, 2), sharding or rows(), arrays)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: together(parts(0)), "Expected 2 per-device arrays .* but got 1"),
    (lambda: together(parts(0, 1, 2)), "Expected 2 per-device arrays .* but got 3"),
    (lambda: together(parts(0, 2)), r"devices \{1\} that are not .* devices \{2\} that are not"),
    (lambda: together(parts(1, 1)), "must be from distinct devices"),
    (lambda: together(parts(0, 1, value=V)), r"Expected shard shape \(3, 2\) doesn't match the "
     r"single device array shape \(6, 2\)"),
    (lambda: together([*parts(0), *parts(1, value=V[:3].astype(int))]),
     "must have matching dtypes. Got int32, expected float32"),
    (lambda: together([nj.device_put(V, rows(3))] * 2), r"had 3 shard\(s\)"),
    (lambda: nj.jit(lambda x: together([x, x]))(V[:3]), "requires a list of concrete arrays"),
    (lambda: nj.make_array_from_callback((6, 2), rows(), lambda i: V[0]),
     r"Expected shard shape \(3, 2\) doesn't match the single device array shape \(2,\)"),
    (lambda: nj.device_put(1.0, rows()), r"For scalars the PartitionSpec should be P\(\)"),
])  # fmt: skip
def test_words_of_errors(call: Callable, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_parts_come_in_any_order_of_their_devices() -> None:
    first, second = parts(0, 1)
    for arrays in ([first, second + 1], [second + 1, first]):
        made = together(arrays)
        np.testing.assert_array_equal(np.asarray(made), np.concatenate([V[:3], V[:3] + 1]))


def test_callbacks_return_no_traced_values() -> None:
    make = lambda x: nj.make_array_from_callback(x.shape, rows(), lambda i: x[i])  # noqa: E731
    np.testing.assert_array_equal(np.asarray(make(jnp.asarray(V))), V)
    with pytest.raises(UnexpectedTracerError, match="cannot be called within a traced context"):
        nj.jit(make)(V)


def test_parts_are_committed_where_the_array_is() -> None:
    free = jnp.ones(3)
    for x in (free, nj.device_put(free, nj.devices()[0]), nj.device_put(free, nj.devices()[3])):
        assert x.addressable_shards[0].data.committed == x.committed
        assert x.addressable_data(0).devices() == x.devices()
    assert nj.device_put(V, rows()).addressable_shards[1].data.committed


def test_rows_of_what_every_device_has_lie_on_all() -> None:
    whole = NamedSharding(rows().mesh, P())
    for row, value in zip(nj.device_put(V, whole), V, strict=True):
        assert row.sharding == whole
        np.testing.assert_array_equal(np.asarray(row), value)
    assert [len(row.devices()) for row in nj.device_put(V, rows())] == [1] * 6


def test_cotangents_come_back_to_the_device_of_the_argument() -> None:
    for source in (0, 3):
        x = nj.device_put(2.0, nj.devices()[source])
        y, slope = nj.value_and_grad(lambda x: nj.device_put(x, nj.devices()[5]))(x)
        assert y.devices() == {nj.devices()[5]}
        assert slope.committed and slope.devices() == {nj.devices()[source]}
    to_other = nj.grad(lambda x: nj.device_put(x, nj.devices()[5]).sum())
    for given in (2.0, np.float32(2), V, V[0].tolist()[0]):
        assert not to_other(given).committed
    for array in (jnp.asarray(2.0), jnp.asarray(V)):
        assert to_other(array).committed and to_other(array).devices() == {nj.devices()[0]}


def test_what_is_made_like_an_array() -> None:
    x = nj.device_put(V, nj.devices()[2])
    for make in (jnp.zeros_like, jnp.empty_like, lambda x, shape: lax.full_like(x, 3, shape=shape)):
        assert make(x, shape=(4,)).devices() == {nj.devices()[2]}
        assert not make(jnp.asarray(V), shape=(4,)).committed
    assert lax.full_like(V, 2, sharding=rows()).sharding == rows()
    assert lax.full_like(nj.device_put(V, rows()), 2, shape=(3,)).committed is False


def test_equal_meshes_are_one_object() -> None:
    pair = nj.devices()[:2]
    mesh = Mesh(pair, "a")
    assert Mesh(np.array(pair), ("a",)) is mesh
    assert Mesh(pair[::-1], "a") is not mesh and Mesh(pair, "b") is not mesh
    assert Mesh(pair, "a", AxisType.Explicit) is not mesh
    assert Mesh([pair], ("a", "b")) is not Mesh([[d] for d in pair], ("a", "b"))


def test_a_mesh_without_axes_has_no_devices() -> None:
    none = Mesh(np.empty((), object), [])
    assert none.size == none.abstract_mesh.size == AbstractMesh((), ()).size == 0


def test_a_program_with_a_reference_is_not_stored() -> None:
    total = nj.new_ref(0)

    @nj.jit
    def add(x: Any) -> None:
        total[...] += x

    @nj.jit
    def add_to(ref: Any, x: Any) -> None:
        ref[...] += x

    with pytest.raises(ValueError, match="serialize with a closed-over mutable array ref"):
        serialize(add.lower(1).compile())
    assert len(serialize(add_to.lower(total, 1).compile())) == 3


def test_operands_lie_in_one_kind_of_memory() -> None:
    placed = nj.device_put(V, rows())
    held = nj.device_put(V, rows().with_memory_kind("pinned_host"))
    with pytest.raises(ValueError, match="memory_space of all inputs passed to `mul` must be"):
        held * placed
    for out in (held + held, held * 2.0, placed + nj.device_put(held, placed.sharding)):
        np.testing.assert_array_equal(np.asarray(out), 2 * V)


def test_formats_say_where_arrays_lie() -> None:
    own = NamedSharding(rows().mesh, P("r", None))
    made = nj.make_array_from_callback((6, 2), Format(Layout((0, 1)), own), lambda i: V[i])
    assert made.sharding == own
    with pytest.raises(ValueError, match="rank of the value should match"):
        nj.make_array_from_callback((6, 2), Format(Layout((1,)), own), lambda i: V[i])
    with pytest.raises(ValueError, match="should be concrete. Got layout: .*AUTO"):
        nj.device_put(V, Format(Layout.AUTO, own))
    with pytest.raises(TypeError, match="Invalid value received for the sharding argument"):
        Format(Layout.AUTO, P("r"))


def test_conversions_of_what_somebody_put_stay_there() -> None:
    one, other = nj.devices()[:2]
    x = nj.device_put(jnp.arange(4), one)
    for convert in (jnp.array, jnp.asarray, lambda x, device: x.astype(float, device=device)):
        assert convert(jnp.arange(4), device=other).devices() == {other}
        assert convert(x, device=one).devices() == {one}
        with pytest.raises(ValueError, match="Received incompatible devices"):
            convert(x, device=other)
    assert nj.device_put(x, other).devices() == {other}


def test_a_constraint_to_one_device_is_not_mapped_over_axes_of_a_mesh() -> None:
    here = nj.sharding.SingleDeviceSharding(nj.devices()[0])
    held = lambda x: nj.lax.with_sharding_constraint(x, here)  # noqa: E731
    with pytest.raises(ValueError, match="If you are using spmd_axis_name"):
        nj.jit(nj.vmap(held, spmd_axis_name="r"))(jnp.ones(2))


def test_keys_are_made_of_parts() -> None:
    mesh = nj.make_mesh((8,), ("x",), AxisType.Auto)
    place = NamedSharding(mesh, P("x"))
    keys = random.split(random.key(3), 16)
    one = nj.make_array_from_callback((16,), place, lambda index: keys[index])
    parts = [nj.device_put(keys[2 * i : 2 * i + 2], d) for i, d in enumerate(nj.devices())]
    two = nj.make_array_from_single_device_arrays((16,), place, parts)
    three = nj.make_array_from_process_local_data(place, keys)
    for found in (one, two, three):
        assert found.sharding == place and found.dtype == keys.dtype
        np.testing.assert_array_equal(random.key_data(found), random.key_data(keys))
    assert random.normal(one[5], (2,)).shape == (2,)
    with pytest.raises(ValueError, match="matching dtypes"):
        nj.make_array_from_callback(
            (16,), place, lambda index: keys[index] if index[0].start else np.zeros(2)
        )


def test_local_data_by_spec_of_the_current_mesh() -> None:
    mesh = nj.make_mesh((8,), ("x",), AxisType.Auto)
    data = np.arange(16.0, dtype=np.float32)
    with nj.set_mesh(mesh):
        found = nj.make_array_from_process_local_data(P("x"), data)
    assert found.sharding == NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="mesh"):
        nj.make_array_from_process_local_data(P("x"), data)


def test_device_put_takes_trees_of_what_may_be_given_up() -> None:
    x = {"a": jnp.ones(2), "b": jnp.ones(3)}
    put = functools.partial(nj.device_put, x, nj.devices()[1])
    assert put(donate={"a": True, "b": False})["b"].shape == (3,)
    for wrong in ({"donate": {"a": True}}, {"may_alias": [True, False]}):
        with pytest.raises(ValueError, match="prefix"):
            put(**wrong)


@pytest.mark.parametrize("call", [
    lambda x: jnp.roll(x, 3), lambda x: jnp.roll(x.reshape(8, 2), 1, axis=0),
    lambda x: jnp.split(x, 2), lambda x: jnp.array_split(x, 4)[1],
    lambda x: jnp.split(x, [4, 8])[2], jnp.gradient, jnp.unwrap,
    jnp.fft.fftshift, lambda x: jnp.diff(x, prepend=0.0),
    lambda x: jnp.convolve(x, jnp.ones(3), mode="same"),
    lambda x: jnp.convolve(x, jnp.ones(5), "valid"),
    lambda x: jnp.correlate(x, jnp.ones(3), mode="same"), lambda x: nj.nn.glu(x),
])  # fmt: skip
def test_what_is_made_of_slices_stays_cut_over_auto_axes(call: Callable) -> None:
    x = np.arange(16, dtype=np.float32)
    whole, cut = call(jnp.asarray(x)), call(nj.device_put(x, rows(4)))
    for a, b in zip(nj.tree.leaves(whole), nj.tree.leaves(cut), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert b.sharding.spec == P("r")


@pytest.mark.parametrize("call", [jnp.diff, lambda x: jnp.split(x, [3])[0], jnp.convolve])
def test_what_parts_do_not_divide_is_whole(call: Callable) -> None:
    args = (jnp.ones(3),) if call is jnp.convolve else ()
    assert call(nj.device_put(jnp.arange(16.0), rows(4)), *args).sharding.spec == P()


def test_a_mesh_of_one_device_needs_no_axes() -> None:
    mesh = Mesh(nj.devices()[1], ())
    assert (mesh.size, mesh.empty, mesh.shape_tuple) == (1, False, ())
    x = nj.device_put(V, NamedSharding(mesh, P()))
    assert (x + 1).sharding == NamedSharding(mesh, P())
    nothing = nj.sharding.get_mesh()
    assert (nothing.size, nothing.empty) == (0, True)


def test_programs_compiled_for_arrays_that_lay_nowhere_take_none_from_elsewhere() -> None:
    compiled = nj.jit(lambda x, unread: 2 * x).lower(V, V).compile()
    elsewhere = nj.device_put(V, nj.devices()[3])
    for x in (V, jnp.asarray(V), nj.device_put(V, nj.devices()[0])):
        np.testing.assert_array_equal(compiled(x, elsewhere), 2 * V)
    for x in (elsewhere, nj.device_put(V, rows())):
        with pytest.raises(ValueError, match="compiled for input shardings that disagree"):
            compiled(x, V)


def test_one_process_has_all_of_an_array() -> None:
    assert nj.make_array_from_process_local_data(rows(), V, (6, 2)).shape == (6, 2)
    for shape in ((None, 2), (12, 2), (6,)):
        with pytest.raises(ValueError, match="should be None or equal to local_data.shape"):
            nj.make_array_from_process_local_data(rows(), V, shape)
