"""What functions cost by the model of `experimental.roofline`."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import P, lax
from numjet.experimental import roofline as rl
from numjet.experimental.roofline import RooflineResult, roofline
from numjet.extend.core import Primitive
from numjet.sharding import AbstractMesh


def spec(*shape, dtype=np.float32):
    return nj.ShapeDtypeStruct(shape, dtype)


def cost(f, *args, **options):
    return roofline(f, **options)(*args)[1]


def unfused(f, *args):
    found = cost(f, *args)
    assert found.flops == found.hbm_bytes == 0
    return found.unfused_flops, found.unfused_hbm_bytes, found.peak_hbm_bytes


def test_nothing_is_run_and_shapes_are_told():
    shapes, found = roofline(lambda d: {"y": d["a"] @ d["b"]})({"a": spec(4, 5), "b": spec(5, 6)})
    assert shapes["y"].shape == (4, 6) and found.flops == 2 * 4 * 5 * 6
    assert cost(lambda x: x, jnp.ones(3)) == RooflineResult(peak_hbm_bytes=12)


@pytest.mark.parametrize(("f", "args", "want"), [
    (jnp.sin, (spec(6),), (6, 48, 24)),
    (jnp.tanh, (spec(6),), (0, 0, 24)),
    (lax.add, (spec(6), spec(6)), (6, 72, 48)),
    (lambda x: x > 0, (spec(6),), (6, 34, 24)),
    (lambda x: x.sum(0), (spec(4, 6),), (18, 120, 96)),
    (lambda x: x.max(0), (spec(4, 6),), (0, 0, 96)),
    (lambda x: lax.cumsum(x, 0), (spec(4, 6),), (4, 192, 96)),
    (lambda x: lax.cumlogsumexp(x, 1), (spec(4, 6),), (12, 192, 96)),
    (lambda p, x: lax.select_n(p, x, x), (spec(6, dtype=bool), spec(6)), (6, 30, 30)),
    (lambda x: x.T.reshape(-1)[2:5], (spec(4, 6),), (0, 0, 96)),
    (nj.jit(lambda x: jnp.cos(jnp.sin(x))), (spec(6),), (12, 96, 24)),
    (nj.checkpoint(jnp.sin), (spec(6),), (6, 48, 24)),
    (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=9)[0], (spec(6),),
     (6, 48, 24)),
    (lambda x: lax.while_loop(lambda c: c.sum() < 1, jnp.sin, x), (spec(6),), (0, 0, 24)),
    (lambda x: nj.pure_callback(lambda a: a, spec(6), x), (spec(6),), (0, 48, 24)),
])  # fmt: skip
def test_equations_that_are_fused(f, args, want):
    assert unfused(f, *args) == want


def test_products():
    x, y = spec(8, 16), spec(16, 4)
    found = cost(lambda x, y: x @ y, x, y)
    assert (found.flops, found.unfused_flops) == (1024, 1024)
    assert (found.hbm_bytes, found.unfused_hbm_bytes, found.peak_hbm_bytes) == (896, 896, 768)
    for pins, want in (((True, False), 256), ((False, True), 640), ((True, True), 0)):
        lhs, rhs = pins
        found = cost(lambda x, y: x @ y, x, y, pin_lhs_in_vmem=lhs, pin_rhs_in_vmem=rhs)
        assert found.hbm_bytes == want

    def conv(a, b, **options):
        return lambda *given: lax.conv_general_dilated(*given, a, b, **options)

    image, kernel = spec(2, 3, 6, 6), spec(4, 3, 3, 3)
    padded = unfused(conv((1, 1), "SAME"), image, kernel)
    assert padded[0] == 2 * 16**2 * 2 * 4 * 3  # 16 elements of an axis under all windows of 3
    assert padded[1] == 4 * (216 + 108 + 288)
    inner = unfused(conv((1, 1), "VALID", rhs_dilation=(2, 1)), image, kernel)
    assert inner[0] == 2 * 6 * 12 * 2 * 4 * 3
    grouped = unfused(conv((1, 1), "VALID", feature_group_count=3), image, spec(6, 1, 3, 3))
    assert grouped[0] == 2 * 144 * 2 * 6


def test_indices():
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    x, i = spec(8, 16), spec(3, 1, dtype=np.int32)
    for mode, flops in (("clip", 0), ("fill", 4 * 3 + 48)):
        found = unfused(lambda x, i, m=mode: lax.gather(x, i, numbers, (1, 16), mode=m), x, i)
        assert found[:2] == (flops, 2 * 192 + 12)
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    for scatter, flops in ((lax.scatter, 0), (lax.scatter_add, 48), (lax.scatter_max, 48)):
        found = unfused(lambda x, i, s=scatter: s(x, i, jnp.ones((3, 16)), numbers, mode="clip"),
                        x, i)  # fmt: skip
        assert found[:2] == (flops, 3 * 192 + 12)


MESH = AbstractMesh((4, 2), ("i", "j"))


@pytest.mark.parametrize(("f", "ici", "latency"), [
    (lambda x: lax.psum(x, "i"), {"i": 192}, {"i": 8}),
    (lambda x: lax.psum(x, ("i", "j")), {"i": 112, "j": 112}, {"i": 16, "j": 16}),
    (lambda x: lax.pmax(x, "i"), {"i": 12}, {"i": 4}),
    (lambda x: lax.all_gather(x, "i", tiled=True), {"i": 384}, {"i": 4}),
    (lambda x: lax.psum_scatter(x, "i", tiled=True), {"i": 96}, {"i": 4}),
    (lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), {"i": 128}, {"i": 2}),
    (lambda x: lax.ppermute(x, "i", [(0, 2), (1, 3)]), {"i": 256}, {"i": 2}),
    (lambda x: lax.ppermute(x, "i", [(0, 3), (1, 2)]), {"i": 128}, {"i": 1}),
    (lambda x: lax.ppermute(x, "j", [(0, 0)]), {"j": 0}, {"j": 0}),
])  # fmt: skip
def test_collectives(f, ici, latency):
    spread = P(("i", "j"), None)
    found = cost(f, spec(32, 8), mesh=MESH, in_specs=(spread,), out_specs=spread)
    assert found.ici_bytes == ici and found.ici_latency == latency
    assert found.unfused_flops == 0 and found.peak_hbm_bytes in (128, 512)


def test_one_device_sends_nothing():
    mesh = AbstractMesh((1,), ("i",))
    found = cost(lambda x: lax.psum(x, "i"), spec(4), mesh=mesh, in_specs=(P("i"),), out_specs=P())
    assert found.ici_bytes == {"i": 0} and found.ici_latency == {"i": 0}


def test_backward_passes():
    w = jnp.ones((16, 4))

    def f(x):
        return jnp.sin(x) @ w

    assert cost(f, spec(8, 16), vjp=True).flops == 2048
    shapes, forward, backward = rl.roofline_and_grad(
        f, MESH, (P("i", None),), P("i", None)
    )(spec(8, 16))
    assert shapes.shape == (8, 4)
    assert (forward.flops, forward.unfused_flops) == (256, 288)
    assert (backward.flops, backward.unfused_flops) == (256, 288)
    assert backward.hbm_bytes == 4 * (32 + 64 + 8)


def test_rules_of_the_users(caplog, capsys):
    free, known, unknown = Primitive("free"), Primitive("known"), Primitive("unknown")
    for p in (free, known, unknown):
        p.def_abstract_eval(lambda x, **_: x)
    rl.register_standard_roofline(free)
    seen = []

    @rl.register_roofline(known)
    def rule(ctx, x, *, by):
        seen.append((ctx.primitive, ctx.avals_out[0].shape, x.size, x.bytes, by, ctx.mesh))
        return RooflineResult(flops=x.size, unfused_flops=by, ici_bytes={"i": 1}, peak_hbm_bytes=99)

    found = cost(lambda x: known.bind(known.bind(free.bind(x), by=2), by=3), spec(5))
    assert (found.flops, found.unfused_flops, found.ici_bytes) == (10, 5, {"i": 2})
    assert found.peak_hbm_bytes == 20 and seen[0] == (known, (5,), 5, 20, 2, None)
    assert not caplog.records
    cost(unknown.bind, spec(5), print_jaxpr=True)
    assert "No roofline rule for unknown" in caplog.text
    assert "unknown" in capsys.readouterr().out


def test_results_are_added_and_repeated():
    a = RooflineResult(flops=1, ici_bytes={"a": 1}, peak_hbm_bytes=5)
    b = RooflineResult(flops=2, ici_bytes={"b": 3}, peak_hbm_bytes=4)
    assert a + b == RooflineResult(flops=3, ici_bytes={"a": 1, "b": 3}, peak_hbm_bytes=5)
    assert 3 * a == RooflineResult(flops=3, ici_bytes={"a": 3}, peak_hbm_bytes=15)
    assert RooflineResult.zeros() == RooflineResult()
    assert rl.RooflineShape.total_bytes([jnp.ones(3).aval, nj.random.key(0).aval]) == 20
