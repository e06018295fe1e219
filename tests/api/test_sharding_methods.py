"""What methods of meshes, specs and shardings answer, beside JAX; they are values that do not
change."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from same_answers import differences

import numjet as nj
from numjet.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.usefixtures("eight_devices")

P = nj.P
HEAD = """
from copy import copy, deepcopy
from functools import partial
AxisType, Mesh, NamedSharding = jax.sharding.AxisType, jax.sharding.Mesh, jax.sharding.NamedSharding
SingleDeviceSharding, PartitionSpec = jax.sharding.SingleDeviceSharding, jax.sharding.PartitionSpec
P, auto, explicit = PartitionSpec, AxisType.Auto, AxisType.Explicit
m8, m24 = jax.make_mesh((8,), ("x",), (auto,)), jax.make_mesh((2, 4), ("x", "y"), (auto,) * 2)
e24, none = jax.make_mesh((2, 4), ("x", "y"), (explicit,) * 2), Mesh(np.empty((), object), ())
turned = Mesh(np.array(jax.devices()[::-1]), ("x",))
a = np.arange(64, dtype=np.float32).reshape(8, 8)
def at(pairs):
    return [(d.id, [i.indices(8) for i in index]) for d, index in pairs.items()]
"""
SHARDINGS = {
    "rows": "NamedSharding(m8, P('x'))", "whole": "NamedSharding(m24, P())",
    "blocks": "NamedSharding(m24, P('x', 'y'))", "both": "NamedSharding(m24, P(('y', 'x')))",
    "columns": "NamedSharding(m24, P(None, 'x'))", "typed": "NamedSharding(e24, P('y', 'x'))",
    "axes alone": "NamedSharding(m24.abstract_mesh, P('x'))",
    "nothing": "NamedSharding(m24, P(()))",
    "turned": "NamedSharding(turned, P('x'))", "one": "SingleDeviceSharding(jax.devices()[2])",
    "host": "NamedSharding(m8, P('x'), memory_kind='pinned_host')",
}
ASKED = """
repr(s) | sorted(d.id for d in s.device_set) | s.num_devices | s.memory_kind | s.is_fully_replicated
s.shard_shape((8,)) | s.shard_shape((8, 8)) | s.shard_shape((16, 8, 2)) | s.shard_shape((7,))
s.shard_shape((7, 9)) | s.shard_shape((0, 8)) | at(s.devices_indices_map((8, 8)))
at(s.addressable_devices_indices_map((8,))) | repr(s.with_memory_kind('device'))
s.with_memory_kind('q') | repr(s.update(spec=P())) | s.is_equivalent_to(s, 3)
s.is_equivalent_to(NamedSharding(m8, P('x')), 1)
s.is_equivalent_to(NamedSharding(m24, P(('x', 'y'))), 2)
s.is_equivalent_to(SingleDeviceSharding(jax.devices()[2]), 2) | s == NamedSharding(m8, P('x'))
copy(s) == s | s.check_compatible_aval((7,)) | [d.id for d in s._device_assignment]
repr(jax.device_put(a, s).sharding)
repr(jax.device_put(a, s).addressable_shards[-1].data.sharding)
[(t.device.id, t.replica_id, t.data) for t in jax.device_put(a, s).addressable_shards]
"""
MESHES = ("m8", "m24", "e24", "none", "turned", "m24.abstract_mesh")
ASKED_OF_MESHES = """
repr(m) | str(m) | m.size | m.empty | dict(m.shape) | m.axis_sizes | m == m8
hash(m) == hash(copy(m)) | copy(m) == m | deepcopy(m) == m
repr(m.update(axis_names=tuple('pq'[:len(m.axis_names)])))
m.update(nothing=1) | repr(m.update(axis_types=(auto,) * len(m.axis_names)))
setattr(m, 'devices', 3) | m.manual_axes | m.are_all_axes_auto
setattr(m, 'axis_names', ()) | str(m.abstract_mesh)
"""
SPECS = ("P()", "P('x', None)", "P(('x', 'y'), None, 'z')", "P(P.UNCONSTRAINED, 'x')")
ASKED_OF_SPECS = """
repr(p) | len(p) | repr(p[0]) | repr(p[-1]) | repr(p + P('w')) | repr(('w',) + p)
p.update(nothing=1) | 'x' in p
deepcopy(p) == p | repr(p.update(partitions=('w',))) | setattr(p, 'partitions', ()) | p < P()
deepcopy(P.UNCONSTRAINED) is P.UNCONSTRAINED | p.index('x') | p == P('x') | repr(P(*p))
"""
MORE = {
    **{f"open rows, {what}": f"jit(lambda x: x, {what}=NamedSharding(m24, P(P.UNCONSTRAINED)))"
       for what in ("in_shardings", "out_shardings")},
    **{f"made, {made}": f"with jax.set_mesh(e24):\n    y = {made}\nrepr(y.sharding)" for made in (
        "jnp.zeros((8, 2), out_sharding=P('x'))", "jnp.empty((8, 2), out_sharding=P())",
        "jnp.full((8, 2, 2), 1., out_sharding=P('x'))", "jnp.array(a, out_sharding=P('x'))",
        "jnp.ones((8, 2), out_sharding=NamedSharding(e24, P('y')))",
        "jnp.zeros(8, out_sharding='x')", "jnp.zeros_like(a, out_sharding=P(None, 'y'))",
        "jnp.zeros(8, device=NamedSharding(m8, P()))",
    )},
    **{f"too short, {how}": f"f = {how}\nf(np.ones((7, 3), np.float32))" for how in (
        "jit(lambda x: jax.device_put(x, NamedSharding(m8, P('x'))))",
        "grad(lambda x: jax.device_put(x, NamedSharding(m8, P(None, 'x'))).sum())",
        "jit(lambda x: jax.device_put(x, NamedSharding(m8, P(None, None, 'x'))))",
        "partial(jax.eval_shape, lambda x: jax.device_put(x, NamedSharding(m8, P('x'))))",
    )},
    "axes of other types": """with jax.set_mesh(m24):
    y = jit(jax.sharding.explicit_axes(lambda v: v * 2, in_sharding=P('x')))(a)
repr(y.sharding)""",
    "a part that lies as the whole": """with jax.set_mesh(e24):
    x, u = jax.device_put(a, P('x', 'y')), jax.device_put(a[:4], P('x', 'y'))
    y = lax.dynamic_update_slice(x, u, (2, 0))
(y, repr(y.sharding))""",
    "its gradient": """with jax.set_mesh(e24):
    x, u = jax.device_put(a, P('x')), jax.device_put(a[:4], P('x'))
    y = grad(lambda x, u: (lax.dynamic_update_slice(x, u, (2, 0)) ** 2).sum(), (0, 1))(x, u)
(y, repr([g.sharding for g in y]))""",
    **{f"elsewhere, {f}": f"f = jit({f})\nf(jax.device_put(a, jax.devices()[3]))" for f in (
        "lambda x: lax.with_sharding_constraint(x, NamedSharding(m8, P('x')))",
        "lambda x: lax.with_sharding_constraint(jnp.ones(8), NamedSharding(m8, P('x')))",
        "jax.shard_map(lambda x: x, mesh=m8, in_specs=P('x'), out_specs=P('x'))",
    )},
    "no mesh": "NamedSharding(None, P())", "no device": "SingleDeviceSharding(None)",
    "another spec": "setattr(NamedSharding(m8, P('x')), 'spec', P())",
    "another mesh": "setattr(NamedSharding(m8, P('x')), 'mesh', m24)",
}


def _cases() -> dict[str, str]:
    of = [(SHARDINGS, "s", ASKED), ({m: m for m in MESHES}, "m", ASKED_OF_MESHES),
          ({p: p for p in SPECS}, "p", ASKED_OF_SPECS)]  # fmt: skip
    out = {
        f"{name}: {asked}": f"{letter} = {made}\n{asked}"
        for made_of, letter, questions in of
        for name, made in made_of.items()
        for asked in [q.strip() for line in questions.split("\n") for q in line.split(" | ")]
        if asked
    }
    return {**out, **MORE}


def test_answers_are_jaxs() -> None:
    found = differences({name: HEAD + text for name, text in _cases().items()}, devices=8)
    assert not found, found


def test_copies_are_of_the_same_devices() -> None:
    mesh = nj.make_mesh((8,), ("x",), (AxisType.Auto,))
    rows, alone = NamedSharding(mesh, P("x")), SingleDeviceSharding(nj.devices()[3])
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert copied(mesh) == mesh and copied(rows) == rows and copied(alone) == alone
        assert copied(rows).device_set == set(nj.devices())
        assert copied(P.UNCONSTRAINED) is P.UNCONSTRAINED
        nothing = Mesh(np.empty((), object), ())
        assert copied(nothing) == nothing and hash(copied(nothing)) == hash(nothing)


def test_meshes_of_axes_alone_have_no_devices() -> None:
    rows = NamedSharding(AbstractMesh((8,), ("x",)), P("x"))
    with pytest.raises(ValueError, match="not implemented for AbstractMesh"):
        rows._device_assignment  # noqa: B018 - raises
    assert not rows.is_equivalent_to(NamedSharding(AbstractMesh((4,), ("x",)), P("x")), 1)


def test_arguments_are_named_as_in_jax() -> None:
    mesh = nj.make_mesh((8,), ("x",))
    for placed, want in (
        (NamedSharding(mesh, P("x")), (2,)), (SingleDeviceSharding(nj.devices()[0]), (16,))
    ):  # fmt: skip
        assert placed.shard_shape(global_shape=(16,)) == want
        held = placed.devices_indices_map(global_shape=(16,))
        assert held == placed.addressable_devices_indices_map(global_shape=(16,))
    assert P("a").update(("b",), {"c"}) == P("b", unreduced={"c"})
    assert P("a", "a").count(value="a") == 2 and P("a", "b").index(value="b") == 1
    types = mesh.abstract_mesh.update_axis_types(name_to_type={"x": AxisType.Explicit}).axis_types
    assert types == (AxisType.Explicit,)
