"""How values inside of `shard_map` are printed: the part of each device where it is known, as JAX
shows it, else the type that one device sees. For `api.maps.shard_map`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.array import ArrayImpl
from numjet.core.shared import ManualAxisType, Shared
from numjet.transforms.batch import BatchTracer
from numjet.transforms.varying import unknown, varies


def of_members(tracer: Any, mesh: Any) -> str:
    """What a value that differs among the devices of `mesh` is printed as."""
    axes, value = [], tracer  # the axes that it has a row each of, the innermost map's first
    while type(value) is BatchTracer and value.owner.axis.of_devices:
        axes.append((value.owner.axis.name, value.dim))
        value = value.value
    if not isinstance(value, ArrayImpl):
        known = [n for n, _ in Shared.axes.get() if unknown(n) is None and varies(tracer, n)]
        kind = ManualAxisType(varying=frozenset(known))
        return f"JitTracer({tracer.aval.update_manual_axis_type(kind) if known else tracer.aval})"
    names, whole = mesh.axis_names, np.asarray(value)
    blocks = []
    for place, device in np.ndenumerate(mesh.devices):
        own = whole
        for name, dim in reversed(axes):
            own = np.take(own, place[names.index(name)], axis=dim)
        where = f"at mesh coordinates ({', '.join(names)},) = {place}"
        blocks.append(f"On {device.platform}:{device.id} {where}:\n{own}\n")
    return "\n".join(blocks)

