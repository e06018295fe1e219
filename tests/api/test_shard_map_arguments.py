"""What `shard_map` takes beside arrays, and what it says of them: objects, references, meshes of
other names; as JAX 0.10.2 does."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
from numjet import P, lax, numpy as jnp, shard_map
from numjet.sharding import AxisType, Mesh, NamedSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
x = np.arange(8.0, dtype=np.float32)


def mesh(names="a", shape=(2,), kind=AxisType.Auto):
    return nj.make_mesh(shape, tuple(names), (kind,) * len(names))


def test_objects_without_a_spec_are_handed_on():
    marker, seen = object(), []

    def f(held, y, other):
        seen.append((held["k"], other))
        return y * 2

    mapped = shard_map(f, mesh=mesh(), in_specs=({"k": None}, P("a"), None), out_specs=P("a"))
    for call in (mapped, nj.jit(lambda y: mapped({"k": marker}, y, None))):
        out = call({"k": marker}, x, None) if call is mapped else call(x)
        np.testing.assert_array_equal(out, x * 2)
    assert seen == [(marker, None)] * 2
    with pytest.raises(TypeError, match="not a valid JAX type"):
        shard_map(f, mesh=mesh(), in_specs=(P("a"), P("a"), None), out_specs=P("a"))(marker, x, 1)
    with pytest.raises(ValueError, match="evenly divisible"):
        shard_map(lambda o, y: y, mesh=mesh(), in_specs=(None, P("a")), out_specs=P("a"))(
            marker, x[:3])  # fmt: skip


def test_references_among_the_arguments_are_written_part_by_part():
    def add(ref, y):
        ref[...] += lax.axis_index("a") + y

    for kind, specs in ((AxisType.Auto, (P("a"), P())), (AxisType.Explicit, None)):
        where = mesh(kind=kind)
        with nj.set_mesh(where):
            ref = nj.new_ref(nj.device_put(jnp.zeros(4), NamedSharding(where, P("a"))))
            one = nj.device_put(jnp.float32(1), NamedSharding(where, P()))
            given = {} if specs is None else {"in_specs": specs}
            mapped = shard_map(add, out_specs=None, **given)
            mapped(ref, one)
            nj.jit(mapped)(ref, one)
            np.testing.assert_array_equal(nj.freeze(ref), [2, 2, 4, 4])


def test_meshes_of_other_names_in_one_program():
    devices = np.array(nj.devices()[:4]).reshape(2, 2)

    def summed(names):
        return shard_map(lambda v: lax.psum(v, names[0]), mesh=Mesh(devices, names),
                         in_specs=P(*names), out_specs=P(*names), check_vma=False)  # fmt: skip

    def f(v):
        return summed(("p", "q"))(summed(("r", "s"))(v))

    out = nj.jit(f)(np.ones((4, 4), np.float32))
    np.testing.assert_array_equal(out, np.full((4, 4), 4))
    assert out.sharding.mesh.axis_names == ("r", "s") and out.sharding.spec == P("r", "s")


def test_what_varies_is_told_with_its_remedy():
    where = mesh("ab", (1, 1))

    def mapped(f, *specs):
        return shard_map(f, mesh=where, in_specs=specs, out_specs=P(("a", "b")))

    with pytest.raises(TypeError, match=r"pcast\(..., \('b',\), to='varying'\)` to the output of "
                                        "true_fun"):  # fmt: skip
        mapped(lambda u, v: lax.cond(True, lambda: u, lambda: v), P("a"), P("b"))(x, x)
    swap = lambda u, v: lax.scan(lambda c, _: ((c[1], c[0]), None), (u, v), length=3)[0]  # noqa: E731
    with pytest.raises(TypeError, match=r"applying `jax.lax.pcast\(..., \('a',\), to='varying'\)` "
                                        "to the initial carry"):  # fmt: skip
        mapped(swap, P("a"), P())(x, x)
    with pytest.raises(TypeError, match=r"fixed by:\n  \* applying .*'b'.*carry\[0\]\n  \* .*'a'"):
        mapped(swap, P("a"), P("b"))(x, x)


def test_small_answers():
    with pytest.raises(ValueError, match="The context mesh cannot be empty"):
        shard_map(lambda v: v, in_specs=P(), out_specs=P())(x)
    with pytest.raises(ValueError, match="requires a non-empty mesh"):
        nothing = Mesh(np.empty((), dtype=object), ())
        shard_map(lambda v: v, mesh=nothing, in_specs=P(), out_specs=P())(x)
    both = shard_map(lambda v: v, mesh=mesh("ab", (2, 2)), in_specs=P("b"), out_specs=P(("a", "b")),
                     check_vma=False)  # fmt: skip
    with pytest.raises(ValueError, match="cannot appear in shard_map out_specs"):
        nj.vmap(both, spmd_axis_name="a")(np.ones((2, 4), np.float32))
    seen = []

    def f(v):
        seen.append(nj.typeof(v).manual_axis_type.invarying(nj.sharding.get_abstract_mesh()))
        return v

    shard_map(f, mesh=mesh("ab", (2, 2)), in_specs=P("a"), out_specs=P("a"))(x)
    assert seen == [{"b"}]
