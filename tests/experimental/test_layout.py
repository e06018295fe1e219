"""Layouts and declared types: equality, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import hijax
from numjet.experimental.layout import Format, Layout, with_layout_constraint


def test_layouts_and_formats_are_values():
    assert Layout((0, 1)) == Layout([0, 1]) != Layout((1, 0))
    assert len({Layout((0, 1)), Layout((0, 1)), Layout((0, 1), ((8,),))}) == 2
    sharding = nj.sharding.SingleDeviceSharding(nj.devices()[0])
    assert Format(Layout((0,)), sharding) == Format(Layout((0,)), sharding) != Format()
    with pytest.raises(ValueError, match="Sharding has to be concrete"):
        Format(Layout((0,)))
    with pytest.raises(TypeError, match="must be a Layout"):
        Format("rows", sharding)


def test_orders_of_trees():
    x = {"a": jnp.ones((2, 3)), "b": jnp.ones((3, 2))}
    found = with_layout_constraint(x, {"a": Layout((0, 1)), "b": Layout((1, 0))})
    assert [y.format.layout.major_to_minor for y in found.values()] == [(0, 1), (1, 0)]
    with pytest.raises(ValueError, match="rank of the value should match"):
        with_layout_constraint(x["a"], Layout((0,)))


def test_declared_operations_say_that_they_cannot_run():
    class Twice(hijax.HiPrimitive):
        pass

    with pytest.raises(NotImplementedError, match="twice: Twice has no method `impl`"):
        Twice("twice").bind(1.0)


def test_operations_on_declared_types_run_outside_of_transformations():
    class Box:
        def __init__(self, x):
            self.x = x

        def cur_qdd(self):
            return self.x.shape

    class Scaled(hijax.HiPrimitive):
        def impl(self, box, *, by):
            return Box(box.x * by)

    class Declared(hijax.HiPrimitive):
        pass

    scaled, box = Scaled("scaled"), Box(jnp.ones(2))
    np.testing.assert_array_equal(scaled.bind(box, by=3).x, [3, 3])
    assert nj.experimental.cur_qdd(box) == (2,)
    with pytest.raises(NotImplementedError, match="no method `impl`"):
        Declared("declared").bind(box)
