"""Axes and positions that collectives are given: several axes at once, numbers of the array's own
axes, none, and those that are refused, as in JAX."""

from __future__ import annotations

import pytest
from same_answers import differences

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

pytestmark = pytest.mark.usefixtures("eight_devices")

ROWS = """
mesh = jax.make_mesh((8,), ("x",), (jax.sharding.AxisType.Auto,))
P = jax.P
def run(f, x=np.arange(8, dtype=np.float32)):
    return jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(x)
"""
BLOCKS = ROWS.replace('(8,), ("x",), (', '(2, 4), ("x", "y"), (').replace(
    "Auto,)", "Auto,) * 2").replace('P("x")', 'P(("x", "y"))')
MATRIX = "np.arange(128, dtype=np.float32).reshape(64, 2)"
SEVERAL = {
    "ppermute": 'run(lambda x: lax.ppermute(x, ("x", "y"), [(0, 7), (3, 4), (6, 2)]))',
    "ppermute, as the mesh": 'run(lambda x: lax.ppermute(x, ("y", "x"), [(0, 7), (3, 4), (6, 2)]))',
    "ppermute of a tree": 'run(lambda x: lax.ppermute({"a": x, "b": x * 2}, ("x", "y"),'
                          ' [(0, 7)])["b"])',
    "gradient of ppermute": """c = jnp.arange(8.0)
grad(lambda v: (c * run(lambda x: lax.ppermute(x, ("x", "y"), [(0, 7), (3, 4)]), v)).sum())(c)""",
    "pshuffle": 'run(lambda x: lax.pshuffle(x, ("x", "y"), [1, 2, 3, 4, 5, 6, 7, 0]))',
    "all_to_all": f'run(lambda x: lax.all_to_all(x, ("x", "y"), 0, 0), {MATRIX})',
    "all_to_all, turned": f'run(lambda x: lax.all_to_all(x, ("y", "x"), 0, 1), {MATRIX})',
    "tiles": 'run(lambda x: lax.all_to_all(x, ("y", "x"), 1, 0, tiled=True),'
             " np.arange(256.0, dtype=np.float32).reshape(8, 32))",
    "gradient of tiles": """c = jnp.arange(128.0).reshape(64, 2)
grad(lambda v: (c * run(lambda x: lax.all_to_all(x, ("x", "y"), 0, 0, tiled=True), v)).sum())(c)""",
    "psum_scatter": f'run(lambda x: lax.psum_scatter(x, ("y", "x")), {MATRIX})',
    "psum_scatter of tiles": 'run(lambda x: lax.psum_scatter(x, ("x", "y"), tiled=True),'
                             f" {MATRIX})",
    "gradient of psum_scatter": """c = jnp.arange(16.0)
grad(lambda v: (c * run(lambda x: lax.psum_scatter(x, ("x", "y")), v)).sum())(
    jnp.arange(128.0).reshape(64, 2))""",
    "too far": 'run(lambda x: lax.ppermute(x, ("x", "y"), [(0, 8)]))',
}
NONE = {name: f"run(lambda x: {text})" for name, text in {
    "psum": "lax.psum(x, ())", "pmean": "lax.pmean(x, ())", "axis_index": "x + lax.axis_index(())",
    "all_gather": "lax.all_gather(x, ())", "all_to_all": "lax.all_to_all(x, (), 0, 0)",
    "psum_scatter": "lax.psum_scatter(x, ())", "ppermute": "lax.ppermute(x, (), [(0, 0)])",
}.items()}  # fmt: skip
NUMBERS = {
    "psum": "lax.psum(m, 0)", "psum of both": "lax.psum(m, (0, 1))", "pmin": "lax.pmin(m, (1,))",
    "in jit": "jit(lambda x: lax.psum(x, 1))(m)", "pmax": "lax.pmax(m, 0)",
    "beside a name": "vmap(lambda x: lax.psum(x, (0, 'i')), axis_name='i')(m)",
    "after a name": "vmap(lambda x: lax.pmax(x, ('i', 0)), axis_name='i')(m)",
    "of a tree": "vmap(lambda x: lax.psum({'a': x, 'b': x > 3}, (0, 'i')), axis_name='i')(m)",
    "gradient": "vmap(grad(lambda x: lax.psum(x * x, (0, 'i'))), axis_name='i')(m)",
    "too far": "lax.psum(m, 2)", "negative": "lax.psum(m, -1)", "twice": "lax.psum(m, (0, 0))",
    "of a number": "lax.psum(1, 0)",
}  # fmt: skip
REFUSED = {f"{name}, {how}": text for how, run in (
    ("shard_map", 'run(lambda x: CALL)'),
    ("pmap", 'jax.pmap(lambda x: CALL, axis_name="x")(np.arange(8.0)[:, None])'),
) for name, call in {
    "destination": "lax.ppermute(x, 'x', [(0, 8)])", "source": "lax.ppermute(x, 'x', [(8, 0)])",
    "a source twice": "lax.ppermute(x, 'x', [(0, 1), (0, 2)])",
    "a destination twice": "lax.ppermute(x, 'x', [(0, 1), (2, 1)])",
    "floats": "lax.ppermute(x, 'x', [(0.0, 1.0)])", "strings": "lax.ppermute(x, 'x', [('0', '1')])",
    "numbers": "lax.ppermute(x, 'x', [0, 1])", "triples": "lax.ppermute(x, 'x', [(0, 1, 2)])",
    "an axis twice": "lax.psum(x, ('x', 'x'))", "its mean": "lax.pmean(x, ('x', 'x'))",
    "its maximum": "lax.pmax(x, ('x', 'x'))", "gathered twice": "lax.all_gather(x, ('x', 'x'))",
    "scattered twice": "lax.psum_scatter(jnp.ones((8, 8)), ('x', 'x'))",
    "split of an axis that is not there": "lax.all_to_all(jnp.ones((8, 8)), 'x', 2, 0)",
    "tiles of it": "lax.all_to_all(jnp.ones((8, 8)), 'x', 2, 0, tiled=True)",
    "joined there": "lax.all_to_all(jnp.ones((8, 8)), 'x', 0, 2, tiled=True)",
    "stacked there": "lax.all_to_all(jnp.ones((8, 8)), 'x', 0, 2)",
    "of a scalar": "lax.all_to_all(x[0], 'x', 0, 0)", "swapped": "lax.pswapaxes(x, 'x', 3)",
    "a sum cut there": "lax.psum_scatter(jnp.ones((8, 8)), 'x', scatter_dimension=2)",
    "of truths": "lax.psum_scatter(jnp.ones((8, 1)) > x, 'x')",
}.items() for text in [run.replace("CALL", call)]}  # fmt: skip


@pytest.mark.parametrize("head, cases", [
    (BLOCKS, SEVERAL), (ROWS, NONE), ("m = jnp.arange(12.0).reshape(4, 3)\n", NUMBERS),
    (ROWS, REFUSED),
], ids=["several axes", "no axis", "numbers", "refused"])  # fmt: skip
def test_axes_are_taken_as_in_jax(head: str, cases: dict[str, str]) -> None:
    assert not differences({name: head + text for name, text in cases.items()}, devices=8)


def test_messages_name_what_is_wrong() -> None:
    x = jnp.arange(8.0)
    with pytest.raises(AssertionError, match="ppermute over 'i' of size 8 takes pairs"):
        nj.vmap(lambda x: lax.ppermute(x, "i", [(0, -1)]), axis_name="i")(x)
    with pytest.raises(ValueError, match="repeated axis in"):
        nj.vmap(lambda x: lax.psum(x, ("i", "i")), axis_name="i")(x)


def test_what_devices_exchange_is_strong():
    """Sums, extremes and exchanges between devices lose weak types; those of vmap keep them."""
    mesh = nj.make_mesh((2,), ("d",), (nj.sharding.AxisType.Auto,))
    exchanges = {
        "psum": lax.psum, "pmax": lax.pmax, "pmin": lax.pmin, "pmean": lax.pmean,
        "all_to_all": lambda x, name: lax.all_to_all(jnp.stack([x, x]), name, 0, 0)[0],
    }  # fmt: skip
    x = jnp.array([True, False])
    for name, exchange in exchanges.items():
        for one in (1, 1.0):
            f = lambda b: exchange(jnp.where(b, one, one), "d")  # noqa: B023, E731
            after = lambda b: jnp.ones((), jnp.bfloat16) + f(b)  # noqa: B023, E731
            cut = nj.shard_map(
                lambda b: f(b[0])[None],  # noqa: B023
                mesh=mesh, in_specs=nj.P("d"), out_specs=nj.P("d"), check_vma=False,
            )  # fmt: skip
            devices = [nj.pmap(f, axis_name="d")(x), cut(x), nj.jit(cut)(x)]
            assert not any(y.weak_type for y in devices), name
            assert nj.vmap(f, axis_name="d")(x).weak_type, name
            if name == "pmean" or one == 1.0 and type(one) is float:
                found = [
                    m(g, axis_name="d")(x).dtype
                    for m in (nj.pmap, nj.vmap) for g in (after, nj.jit(after))
                ]  # fmt: skip
                assert found == ["float32", "float32", jnp.bfloat16, "float32"], name
    assert nj.pmap(lambda b: lax.psum(1, "d") + 0 * b, axis_name="d")(x).weak_type
