"""Which results are bound to a device, of several of one process: those of programs that name one,
of exported functions, and what references hold."""

from __future__ import annotations

import contextlib
import logging

import numpy as np
import pytest

import numjet as nj
from numjet import P, export, lax, numpy as jnp
from numjet.sharding import AxisType, NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.usefixtures("eight_devices")
x = jnp.linspace(0.0, 1.0, 6)


def on(i):
    return SingleDeviceSharding(nj.devices()[i])


def where(y):
    """Whether an array is bound, and to which device."""
    (device,) = y.devices()
    return y.committed, device.id


def mesh(kind=AxisType.Auto):
    return nj.make_mesh((2,), ("a",), (kind,))


def test_a_constraint_to_one_device_binds_all_results():
    program = nj.jit(lambda x: (lax.with_sharding_constraint(x * 2, on(3)), jnp.ones(2)))
    assert [where(y) for y in program(x)] == [(True, 3)] * 2
    assert where(nj.jit(lambda x: nj.device_put(x, on(2)) + 1)(x)) == (True, 2)
    assert where(nj.jit(lambda x: nj.device_put(x, nj.devices()[2]))(x)) == (False, 0)
    assert where(nj.vmap(lambda v: lax.with_sharding_constraint(v, on(1)))(x)) == (True, 1)
    squares = nj.jit(lambda x: (lax.with_sharding_constraint(x, on(1)) ** 2).sum())
    assert where(nj.grad(squares)(x)) == (True, 1)


def test_shardings_of_inner_functions_bind():
    there = nj.jit(jnp.cos, out_shardings=on(1))
    assert where(nj.jit(lambda x: there(x) + 1)(x)) == (True, 1)
    given = nj.jit(jnp.cos, in_shardings=on(2))
    assert where(nj.jit(lambda x: given(x) + 1)(x)) == (True, 2)


def test_arrays_of_values_bind_and_those_that_are_made_do_not():
    assert where(nj.jit(lambda x: jnp.asarray(x, device=nj.devices()[1]))(x)) == (True, 1)
    assert where(nj.jit(lambda x: x.astype(int, device=on(1)))(x)) == (True, 1)
    assert where(nj.jit(lambda: jnp.zeros(3, device=on(1)))()) == (False, 0)


def test_devices_that_differ_are_refused():
    there = nj.device_put(x, nj.devices()[1])
    for place in (on(2), NamedSharding(mesh(), P("a"))):
        with pytest.raises(ValueError, match="incompatible devices"):
            nj.jit(lambda x, s=place: lax.with_sharding_constraint(x, s))(there)
        with pytest.raises(ValueError, match="incompatible devices"):
            lax.with_sharding_constraint(there, place)
    with pytest.raises(ValueError, match="incompatible devices"):
        nj.jit(lambda x: nj.device_put(nj.device_put(x, on(1)), on(2)))(x)
    with pytest.raises(ValueError, match="incompatible devices"):
        nj.sharding.reshard(there, NamedSharding(mesh(AxisType.Explicit), P("a")))


def test_compiled_programs_tell_their_device_and_take_arguments_there():
    for made, given in (
        (nj.jit(lambda x: lax.with_sharding_constraint(x, on(1))), x),
        (nj.jit(jnp.sin, out_shardings=on(1)), x),
        (nj.jit(jnp.sin), nj.device_put(x, on(1))),
    ):
        compiled = made.lower(given).compile()
        assert compiled.input_shardings[0] == (on(1),)
        assert compiled.output_shardings == on(1)
        assert where(compiled(x)) == (True, 1)
    with pytest.raises(ValueError, match="shardings that disagree"):
        compiled(nj.device_put(x, on(2)))


def test_results_of_exported_functions_are_bound():
    exported = export.export(nj.jit(jnp.tanh))(x)
    assert where(exported.call(x)) == (True, 0)
    assert [where(y) for y in nj.jit(lambda x: (exported.call(x), x + 1))(x)] == [(True, 0)] * 2
    assert where(nj.grad(lambda x: exported.call(x).sum())(x)) == (True, 0)
    assert where(exported.vjp().call(x, x)[0]) == (True, 0)
    again = export.export(nj.jit(exported.call))(x)
    assert where(again.call(x)) == (True, 0)
    assert where(exported.call(nj.device_put(x, on(4)))) == (True, 4)
    with nj.default_device(nj.devices()[5]):
        assert where(exported.call(np.ones(6, np.float32))) == (True, 5)
    laid = nj.device_put(x, NamedSharding(mesh(), P("a")))
    assert nj.jit(exported.call)(laid).sharding == laid.sharding


def test_what_references_hold_is_bound():
    ref = nj.new_ref(x)
    assert where(ref[...]) == where(ref[2]) == where(nj.freeze(ref)) == (True, 0)
    ref = nj.new_ref(np.ones(3, np.float32))
    ref[...] = jnp.zeros(3)
    nj.jit(lambda: ref.set(ref[...] + 1))()
    assert where(ref[...]) == (True, 0)
    assert where(nj.jit(lambda: ref[...] * 2)()) == (True, 0)
    read, other = nj.jit(lambda r, y: (r[...], y))(ref, x)
    assert where(read) == where(other) == (True, 0)
    assert where(nj.new_ref(nj.device_put(x, on(2)))[0]) == (True, 2)
    assert where(ref[...] + x[:3]) == (True, 0)


def test_results_lie_on_the_default_device_of_the_call():
    seventh = nj.devices()[7]
    double = nj.jit(lambda x: x * 2)
    with nj.default_device(seventh):
        there = [
            double(x), jnp.sin(x), jnp.float32(2), lax.iota(int, 3), x + 1, nj.grad(jnp.tanh)(1.0),
            lax.scan(lambda c, v: (c + v, c), 0.0, x)[1], jnp.linalg.inv(np.eye(2)),
            nj.pure_callback(lambda v: v, nj.ShapeDtypeStruct((6,), np.float32), x),
        ]  # fmt: skip
    assert [where(y) for y in there] == [(False, 7)] * len(there)
    assert where(double(there[0])) == where(jnp.zeros_like(there[0])) == (False, 0)
    assert where(double(nj.device_put(x, on(2)))) == (True, 2)


def test_cache_size_counts_kinds_of_arguments():
    double, sizes = nj.jit(lambda x: x * 2), []
    a = NamedSharding(mesh(), P("a"))
    values = np.ones(4, np.float32)
    for given in (values, jnp.ones(4), nj.device_put(values, on(0)), nj.device_put(values, on(3)),
                  nj.device_put(values, a), nj.device_put(values, a), values):  # fmt: skip
        double(given)
        sizes.append(double._cache_size())
    assert sizes == [1, 2, 3, 4, 5, 5, 5]
    with nj.default_device(nj.devices()[1]):
        double(values)
    assert double._cache_size() == 6


def test_functions_are_traced_for_the_axes_of_their_arguments():
    traces = []

    @nj.jit
    def double(x):
        traces.append(x.shape)
        return x * 2

    values, devices = np.ones(4, np.float32), nj.devices()
    for given, count in (
        (NamedSharding(nj.sharding.Mesh(devices[:2], "a"), P("a")), 1),
        (NamedSharding(nj.sharding.Mesh(devices[4:6], "a"), P()), 1),
        (NamedSharding(nj.sharding.Mesh(devices[4:6], "b"), P()), 2),
        (on(0), 3),
        (on(1), 3),
    ):
        double(nj.device_put(values, given))
        assert len(traces) == count
    with nj.explain_cache_misses(True), logged() as messages:
        double(nj.device_put(values, NamedSharding(nj.sharding.Mesh(devices[:4], "c"), P("c"))))
    (text,) = messages
    assert "different input types" in text and "now f32[4]({Auto: ('c',)})" in text


@contextlib.contextmanager
def logged():
    found = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())
    logger = logging.getLogger("numjet")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def test_traced_calls_share_what_was_traced():
    traces = []

    @nj.jit
    def inner(x):
        traces.append(x.shape)
        return x * 2

    outer = nj.jit(lambda x: inner(x) + 1)
    a = nj.device_put(np.ones(4, np.float32), NamedSharding(mesh(), P("a")))
    inner(a), outer(a), inner(a)
    assert len(traces) == 1
    inner(np.ones(4, np.float32))
    assert len(traces) == 2
    explicit = NamedSharding(mesh(AxisType.Explicit), P("a"))
    with nj.set_mesh(explicit.mesh):
        outer(nj.device_put(np.ones(4, np.float32), explicit))
        inner(nj.device_put(np.ones(4, np.float32), explicit))
    assert len(traces) == 3


def test_results_of_pmap_lie_over_its_devices_within_other_functions():
    values = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    halves = nj.pmap(jnp.sin)
    over = halves(values).sharding
    assert over.num_devices == 2 and over.spec[0] is not None
    assert nj.jit(halves)(values).sharding == over
    assert nj.grad(lambda x: halves(x).sum())(values).sharding == over
    assert nj.jit(lambda x: halves(x) + 1)(values).sharding.is_equivalent_to(over, 2)
    columns = nj.vmap(nj.pmap(jnp.cos))(values)  # 4 devices: an element each
    assert columns.sharding.num_devices == 4 and columns.sharding.spec[0] is None
    assert "sharding_constraint" not in str(nj.make_jaxpr(halves)(values))


def test_what_dlpack_gives_is_bound_to_the_first_device():
    for given in (x, nj.device_put(x, on(1)), np.arange(3)):
        assert where(nj.dlpack.from_dlpack(given)) == (True, 0)
    assert where(nj.dlpack.from_dlpack(x, device=nj.devices()[2])) == (True, 2)
