"""Orders of axes in memory, which arrays tell: `Layout`, `Format`, `with_layout_constraint`."""
from __future__ import annotations

import gc

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.api.placement.placements import ORDERS
from numjet.experimental.layout import Format, Layout, with_layout_constraint
from numjet.sharding import make_single_device_sharding

HERE = make_single_device_sharding(nj.devices()[0])
COLUMNS = Format(Layout((1, 0)), HERE)
ROWS = Format(Layout((0, 1)), HERE)
TABLE = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def order(x: nj.Array) -> tuple:
    return x.format.layout.major_to_minor


def test_what_is_put_in_an_order_tells_it() -> None:
    x = nj.device_put(jnp.asarray(TABLE), COLUMNS)
    assert order(x) == (1, 0) and x.format.sharding == HERE
    np.testing.assert_array_equal(x, TABLE)
    assert order(nj.device_put(x, HERE)) == order(nj.device_put(x)) == (1, 0)
    assert order(nj.device_put(x, nj.devices()[0])) == (1, 0)
    assert order(nj.device_put(x, ROWS)) == (0, 1) and order(x) == (1, 0)
    assert order(x + 1) == order(nj.jit(lambda x: x)(x)) == order(x.copy()) == (0, 1)
    both = nj.device_put({"a": TABLE, "b": TABLE}, {"a": COLUMNS, "b": None})
    assert order(both["a"]) == (1, 0) and order(both["b"]) == (0, 1)
    made = nj.make_array_from_callback((3, 4), COLUMNS, lambda index: TABLE[index])
    assert order(made) == (1, 0)


def test_it_is_forgotten_with_the_array() -> None:
    x = nj.device_put(TABLE, COLUMNS)
    held = len(ORDERS)
    del x
    gc.collect()
    assert len(ORDERS) == held - 1


def test_over_a_mesh(eight_devices: None) -> None:
    cut = nj.NamedSharding(nj.make_mesh((4,), ("x",)), nj.P(None, "x"))
    x = nj.device_put(TABLE, Format(Layout((1, 0)), cut))
    assert order(x) == (1, 0) and x.format.sharding == cut
    np.testing.assert_array_equal(x, TABLE)


def test_jit_gives_what_it_was_asked_for() -> None:
    f = nj.jit(lambda x, y: (x * 2, y), out_shardings=(COLUMNS, None))
    doubled, same = f(TABLE, TABLE)
    assert order(doubled) == (1, 0) and order(same) == (0, 1)
    np.testing.assert_array_equal(doubled, TABLE * 2)
    g = nj.jit(lambda x: x + 1, in_shardings=COLUMNS)
    x = nj.device_put(TABLE, COLUMNS)
    for given in (x, TABLE, jnp.asarray(TABLE)):
        np.testing.assert_array_equal(g(given), TABLE + 1)
    with pytest.raises(ValueError, match="Layout passed to jit does not match the layout"):
        g(nj.device_put(TABLE, HERE))
    with pytest.raises(ValueError, match="Layout passed to jit does not match the layout"):
        nj.jit(lambda x: x, in_shardings=ROWS)(x)
    for ends in ({"in_shardings": COLUMNS}, {"out_shardings": COLUMNS}):
        with pytest.raises(ValueError, match="Length of major_to_minor and the rank of the value"):
            nj.jit(lambda x: x, **ends)(jnp.ones(3))
    with pytest.raises(ValueError, match="does not accept device-local layouts directly"):
        nj.jit(lambda x: x, in_shardings=Layout((0, 1)))


def test_stages_tell_it() -> None:
    f = nj.jit(lambda x: x * 2, in_shardings=COLUMNS, out_shardings=COLUMNS)
    compiled = f.lower(jnp.asarray(TABLE)).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (1, 0)
    assert compiled.output_formats.layout.major_to_minor == (1, 0)
    x = nj.device_put(TABLE, COLUMNS)
    assert order(compiled(x)) == (1, 0)
    with pytest.raises(ValueError, match="compiled for input layouts that disagree"):
        compiled(nj.device_put(TABLE, HERE))
    follows = nj.jit(lambda x: x * 2).lower(x).compile()
    assert follows.input_formats[0][0].layout.major_to_minor == (1, 0)
    assert follows.output_formats.layout.major_to_minor == (0, 1)
    told = nj.ShapeDtypeStruct((3, 4), jnp.float32, sharding=COLUMNS)
    found = nj.jit(lambda x: x).lower(told).compile().input_formats
    assert found[0][0].layout.major_to_minor == (1, 0)


def test_constraints() -> None:
    x = with_layout_constraint(jnp.asarray(TABLE), Layout((1, 0)))
    assert order(x) == (1, 0) and x.committed
    held = lambda x: jnp.sum(with_layout_constraint(x, Layout((1, 0))) ** 2)  # noqa: E731
    np.testing.assert_array_equal(nj.jit(nj.grad(held))(TABLE), TABLE * 2)
    rows = nj.vmap(lambda x: with_layout_constraint(x, Layout((1, 0))), 1, 1)
    (eqn,) = nj.make_jaxpr(rows)(jnp.ones((2, 5, 3))).eqns
    assert eqn.primitive.name == "layout_constraint"
    assert eqn.params["layout"].major_to_minor == (1, 2, 0)
    with pytest.raises(ValueError, match="Length of major_to_minor and the rank of the value"):
        with_layout_constraint(x, Layout((0, 1, 2)))
    with pytest.raises(ValueError, match="no order of the axes"):
        with_layout_constraint(x, Layout((0, 0)))
    with pytest.raises(ValueError, match="must be of type `Layout`"):
        with_layout_constraint(x, 3)
    with pytest.raises(ValueError, match="can only be applied to"):
        with_layout_constraint(TABLE, Layout((0, 1)))
    with pytest.raises(NotImplementedError, match="tiles"):
        with_layout_constraint(x, Layout((0, 1), ((2, 2),)))


def test_an_open_order_is_for_programs_alone() -> None:
    with pytest.raises(TypeError, match="cannot be used in place of a device-local layout in a"):
        nj.ShapeDtypeStruct((3, 4), jnp.float32, sharding=Format(Layout.AUTO))
    with pytest.raises(TypeError, match="cannot be used in place of a device-local layout when"):
        nj.make_array_from_callback((3, 4), Format(Layout.AUTO, HERE), lambda i: TABLE[i])
    compiled = nj.jit(lambda x: x.T, in_shardings=Format(Layout.AUTO)).lower(TABLE).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (0, 1)
