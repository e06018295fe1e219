"""What `debug.inspect_array_sharding` tells: where values of a program lie.

For `api.compiled.sharded_evaluation`, once a program of the process asked. What would break it:
a program that is walked though it does not ask, which costs each program's first call.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numjet.api.placement.devices import SingleDeviceSharding, first_device
from numjet.api.placement.mesh import Mesh
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, subjaxprs
from numjet.partition import propagate


def inspected(closed: ClosedJaxpr, over: Any, layouts: tuple, single: Any) -> None:
    """Tell `debug.inspect_array_sharding` where values of a program lie, once for each way in which
    its arguments do. over: a sharding over the mesh that it runs over; layouts: of its arguments;
    single: where all are that lies over no mesh."""
    asks = closed.cache.get("inspects")
    if asks is None:
        asks = closed.cache["inspects"] = any(True for _ in _inspections(closed.jaxpr, []))
    if not asks:
        return
    key = ("inspected", None if over is None else over.mesh, layouts)
    if closed.cache.setdefault(key, (told := object())) is not told:
        return
    flat = propagate.flatten(closed)
    if over is None:
        place = single or SingleDeviceSharding(first_device())
        for eqn, _ in _inspections(flat.jaxpr, []):
            eqn.params["callback"](place)
        return
    own = over.over_mesh(Mesh(over.mesh.devices, over.mesh.axis_names))
    n, apart = len(closed.jaxpr.constvars), not over.mesh.is_multi_process
    plan = propagate.propagate(flat.jaxpr, [*layouts[n:]], None, over.mesh.shape, apart)
    for eqn, plans in _inspections(flat.jaxpr, [plan]):
        (x,) = eqn.invars
        if (said := x.aval.placed) is not None and said.mesh.shape_tuple != over.mesh.shape_tuple:
            axes = said.mesh  # the type's, over other axes of the same devices
            devices = over.mesh.devices.reshape(axes.axis_sizes)
            eqn.params["callback"](said.update(mesh=Mesh(devices, axes.axis_names)))
            continue
        found = next((f for p in plans if (f := p.of(x)) is not None), None)
        layout = propagate.label(x.aval, found, over.mesh.shape)
        eqn.params["callback"](own.of_layout(layout))


def _inspections(jaxpr: Jaxpr, plans: list) -> Iterator[tuple[Eqn, list]]:
    """The equations that ask where values lie, and what was found for the jaxpr that has them."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "inspect_sharding":
            yield eqn, plans
        inner = [found for p in plans for found in p.inner.get(id(eqn), ())]
        for held in subjaxprs(eqn.params):
            yield from _inspections(held, inner)
