"""Names of the front door that are small: slices from a traced start, places of gradients, smap,
and those that are refused with a sentence."""
import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

X = jnp.arange(10)


@pytest.mark.parametrize("start", [0, 4, 8, -3, 20])
def test_a_slice_from_a_traced_start(start):
    for size, stride in ((2, 1), (2, 3)):
        span = (size - 1) * stride + 1
        at = min(max(start + (10 if start < 0 else 0), 0), 10 - span)
        want = np.arange(10)[at : at + span : stride]
        pick = lambda x, i: x[nj.ds(i, size, stride)]  # noqa: B023, E731
        for f in (pick, nj.jit(pick)):
            np.testing.assert_array_equal(f(X, start), want)
        changed = np.arange(10)
        changed[at : at + span : stride] = 0
        put = lambda x, i: x.at[nj.ds(i, size, stride)].set(0)  # noqa: B023, E731
        for f in (put, nj.jit(put)):
            np.testing.assert_array_equal(f(X, start), changed)


def test_slices_beside_other_indices():
    x = jnp.arange(24).reshape(2, 3, 4)
    assert nj.ds(None) == slice(None) and repr(nj.ds(2)) == "Slice(start=0, size=2, stride=1)"
    np.testing.assert_array_equal(x[1, nj.ds(jnp.array(1), 2), ..., 3], np.asarray(x)[1, 1:3, 3])
    np.testing.assert_array_equal(x[..., nj.ds(1, 2)], np.asarray(x)[..., 1:3])
    mapped = nj.vmap(lambda i: X[nj.ds(i, 2)])(jnp.arange(2))
    np.testing.assert_array_equal(mapped, [[0, 1], [1, 2]])
    ref = nj.new_ref(X)
    np.testing.assert_array_equal(ref[nj.ds(jnp.array(3), 2)], [3, 4])
    with pytest.raises(TypeError, match="static"):
        nj.jit(lambda n: X[nj.ds(0, n)])(3)
    with pytest.raises(NotImplementedError, match="dynamic_update_slice"):
        x.at[nj.ds(0, 1), jnp.array([0])].set(0)


def test_gradients_go_where_they_are_wanted():
    _, pull = nj.vjp(lambda x, y: (jnp.sin(x["a"]) * y).sum(), {"a": jnp.ones(3)}, jnp.ones(3))
    total = nj.new_ref(jnp.ones(3))
    out = pull.with_refs({"a": total}, nj.ad.GradValue())(1.0)
    assert out[0] == {"a": nj.ad.GradRef()}
    np.testing.assert_allclose(out[1], np.sin(np.ones(3)), rtol=1e-6)
    np.testing.assert_allclose(total[...], 1 + np.cos(np.ones(3)), rtol=1e-6)
    out = pull.with_refs({"a": nj.ad.DontWant()}, nj.ad.DontWant())(1.0)
    assert out == ({"a": nj.ad.DidntWant()}, nj.ad.DidntWant())
    # The stand-ins hold no arrays, so that traced functions may return them; what is asked may not.
    assert nj.tree.leaves([out, nj.ad.GradRef()]) == []
    assert nj.tree.leaves(nj.ad.DontWant()) == [nj.ad.DontWant()]
    wanted = (nj.ad.GradValue(), nj.ad.DontWant())
    _, product = nj.vjp(jnp.multiply, 2.0, 3.0)
    assert nj.jit(lambda: product.with_refs(*wanted)(1.0))() == (3.0, nj.ad.DidntWant())
    with pytest.raises(ValueError, match="structure of the arguments"):
        pull.with_refs(total, total)(1.0)


def test_smap_maps_over_an_axis_of_the_current_mesh():
    explicit = nj.make_mesh((1,), ("i",))
    assert explicit.axis_types == (nj.sharding.AxisType.Explicit,)
    mesh = nj.make_mesh((1,), ("i",), nj.sharding.AxisType.Auto)
    f = nj.smap(lambda x, y: x * y + lax.axis_index("i"), in_axes=(0, None), out_axes=0,
                axis_name="i")  # fmt: skip
    with nj.set_mesh(mesh):
        np.testing.assert_array_equal(f(jnp.ones((2, 3)), 2.0), np.full((2, 3), 2.0))
    with nj.set_mesh(explicit):
        cut = nj.reshard(jnp.ones((2, 3)), nj.P("i"))
        np.testing.assert_array_equal(f(cut, 2.0), np.full((2, 3), 2.0))
        with pytest.raises(ValueError, match="does not match the specs of the input"):
            f(jnp.ones((2, 3)), 2.0)
    with pytest.raises(ValueError, match="context mesh cannot be empty"):
        f(jnp.ones((2, 3)), 2.0)


def test_specs_are_written_short():
    assert repr(nj.P("x", None)) == "P('x', None)" and str(nj.P("x")) == "P('x',)"
    assert repr(nj.P(("a", "b"), None, "c")) == "P(('a', 'b'), None, 'c')"


@pytest.mark.parametrize("call", [
    lambda: nj.extend.pallas.register_lowering_rule("x"),
])  # fmt: skip
def test_what_is_not_there_says_so(call):
    with pytest.raises(NotImplementedError, match=r"\. "):
        call()


def test_processes_are_joined_first_of_all():
    nj.devices()
    with pytest.raises(RuntimeError, match="must be called before any calls that use devices"):
        nj.distributed.initialize()
