"""Programs over several processes: partitioned, agreed upon, and run on each process's block.

For `api.compiled.sharded_evaluation`. All processes must run the same programs in the same order;
that is checked before each (`Transport.agree`). What would break it: a value that differs between
processes and is no part of an array that is cut (a constant from a random generator): each computes
with its own.
"""
from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.execution import dispatch
from numjet.api.execution.overlap import overlapped
from numjet.core.array import ArrayImpl, as_array
from numjet.core.cluster import Cluster, Ranks
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from numjet.core.sharded import ShardedArray
from numjet.core.structural import transpose_p
from numjet.partition.emit import Partitioned, partition


class Program:
    """A program of this process: its jaxpr, the shardings of arguments and results, and what tells
    it from others."""

    __slots__ = ("closed", "ins", "outs", "digest", "moves")

    def __init__(self, found: Partitioned, mesh: Any, over: Any, outs: Sequence[Any]) -> None:
        self.closed = _overlapped(renamed(found.closed, mesh))
        self.ins = [over.of_layout(layout) for layout in found.ins]
        self.outs = [
            over.of_layout(layout) if s is None else s
            for layout, s in zip(found.outs, outs, strict=True)
        ]
        text = f"{found.closed}{self.ins}{self.outs}"
        self.digest = hashlib.sha256(text.encode()).digest()[:16]
        self.moves = found.moves


def _blocks(mesh: Any, layout: Any) -> Any:
    """The layout, without what would make a process's parts no block of the array: axes with
    devices of one process in front of axes of processes."""
    sizes = mesh.processes.sizes
    out = []
    for axes in layout:
        last = max([k for k, a in enumerate(axes) if sizes[a] > 1], default=-1)
        out.append(tuple([
            a for k, a in enumerate(axes) if k >= last or sizes[a] == mesh.shape[a]
        ]))
    return tuple(out)


def run(
    closed: ClosedJaxpr, arrays: Sequence[Any], over: Any, wanted: Sequence[Any], name: str
) -> list[Any]:
    """Run a jaxpr on arrays of several processes; results are such arrays.

    over: a sharding of the mesh; wanted: shardings of results, None where they follow.
    """
    program = program_of(closed, arrays, over, wanted)
    Cluster.transport.agree(program.digest, name)
    blocks = [
        ArrayImpl(block_of(x, s), a)
        for x, s, a in zip(arrays, program.ins, program.closed.in_avals, strict=True)
    ]
    Cluster.transport.entering(name)
    outs = dispatch.run(program.closed, blocks, name, True)
    return [
        ShardedArray(x._value, aval, s)
        for x, aval, s in zip(outs, closed.out_avals, program.outs, strict=True)
    ]


def program_of(
    closed: ClosedJaxpr, arrays: Sequence[Any], over: Any, wanted: Sequence[Any]
) -> Program:
    """The program of this process for arguments that lie as these do. Remembered with the jaxpr."""
    mesh = over.mesh
    ins = tuple([_layout_in(mesh, x) for x in arrays])
    key = ("processes", mesh, ins, tuple(wanted))
    found = closed.cache.get(key)
    if found is None:
        outs = [None if s is None else _wanted(mesh, s, a.ndim)
                for s, a in zip(wanted, closed.out_avals, strict=True)]
        parts = partition(closed, ins, outs, mesh.shape, mesh.processes.sizes)
        blocks = [_blocks(mesh, layout) for layout in parts.outs]
        if blocks != parts.outs:
            parts = partition(closed, ins, blocks, mesh.shape, mesh.processes.sizes)
        found = closed.cache[key] = Program(parts, mesh, over, wanted)
    return found


def _layout_in(mesh: Any, x: Any) -> Any:
    sharding: Any = x._sharding if isinstance(x, ArrayImpl) else None
    if not hasattr(sharding, "layout"):
        return None
    if not mesh.alike(sharding.mesh):
        raise ValueError(
            f"Mesh for all inputs should be equal. Got one mesh: {mesh} and another mesh: "
            f"{sharding.mesh}. Move the array to the other with numjet.device_put."
        )
    return sharding.layout(x.aval.ndim)


def _wanted(mesh: Any, sharding: Any, ndim: int) -> Any:
    if not mesh.alike(getattr(sharding, "mesh", None)):
        raise ValueError(
            f"A result of a program over {mesh} cannot be laid out as {sharding}: name its mesh."
        )
    return sharding.layout(ndim)


def block_of(x: Any, sharding: Any) -> np.ndarray:
    """The block of an array that is this process's: its own, or cut out of a whole one."""
    if type(x) is ShardedArray and not x.is_fully_addressable:
        x.block_until_ready()
        return x._block
    value = x._value
    index = sharding.block_index(value.shape)
    if all(i.stop - i.start == n for i, n in zip(index, value.shape, strict=True)):
        return value
    return np.asarray(value[index], order="C")


def renamed(closed: ClosedJaxpr, mesh: Any) -> ClosedJaxpr:
    """The jaxpr whose collectives name groups of processes instead of axes of the mesh, and in
    which this process's place is a number."""
    return ClosedJaxpr(_renamed(closed.jaxpr, mesh, {}), closed.consts)


def _overlapped(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr, in which something runs while sums are on their way."""
    return ClosedJaxpr(overlapped(closed.jaxpr, itertools.count()), closed.consts)


def _renamed(jaxpr: Jaxpr, mesh: Any, done: dict[int, Jaxpr]) -> Jaxpr:
    found = done.get(id(jaxpr))
    if found is None:
        known: dict[Any, Literal] = {}
        eqns = []
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "axis_index":
                group = ranks(mesh, (eqn.params["axis_name"],)).mine
                here = as_array(np.int32(group.index(Cluster.index)))
                known[eqn.outvars[0]] = Literal(here, here.aval)
                continue
            invars = [known.get(v, v) if type(v) is Var else v for v in eqn.invars]
            eqns += _along_rows(_renamed_eqn(eqn.replace(invars=invars), mesh, done))
        outs = [known.get(v, v) if type(v) is Var else v for v in jaxpr.outvars]
        found = done[id(jaxpr)] = jaxpr.replace(eqns=eqns, outvars=outs, effects=None)
    return found


def _renamed_eqn(eqn: Eqn, mesh: Any, done: dict[int, Jaxpr]) -> Eqn:
    def within(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return ClosedJaxpr(_renamed(value.jaxpr, mesh, done), value.consts)
        if isinstance(value, tuple) and any(isinstance(v, ClosedJaxpr) for v in value):
            return tuple([within(v) for v in value])
        return value

    params = {k: within(v) for k, v in eqn.params.items()}
    if eqn.primitive.collective:
        if "axes" in params:
            params["axes"] = (ranks(mesh, params["axes"]),)
        else:
            params["axis_name"] = ranks(mesh, (params["axis_name"],))
    avals = tuple([v.aval for v in eqn.invars])
    effects = eqn.primitive.effects_of(params, avals)
    return eqn.replace(params=params, effects=effects)


# The axes that a collective takes parts from, and puts them together along.
_PARTS = {"all_gather": (None, "axis"), "reduce_scatter": ("axis", None),
          "all_to_all": ("split_axis", "concat_axis")}  # fmt: skip


def _along_rows(eqn: Eqn) -> list[Eqn]:
    """The equation as MPI knows it, whose parts are rows: between transposes, which are loops."""
    if eqn.primitive.name not in _PARTS:
        return [eqn]
    taken, joined = _PARTS[eqn.primitive.name]
    params, (x,), (out,) = dict(eqn.params), eqn.invars, eqn.outvars
    made = []
    if taken is not None and params[taken]:
        order = [params[taken], *[i for i in range(x.aval.ndim) if i != params[taken]]]
        x, before = _transposed(x, order), x
        made.append(Eqn([before], [x], transpose_p, {"permutation": tuple(order)}))
        params[taken] = 0
    if joined is None or not params[joined]:
        return [*made, eqn.replace(invars=[x], params=params)]
    axis, params[joined] = params[joined], 0
    order = [*range(1, axis + 1), 0, *range(axis + 1, out.aval.ndim)]
    rows = _transposed(out, [axis, *[i for i in range(out.aval.ndim) if i != axis]])
    made.append(eqn.replace(invars=[x], outvars=[rows], params=params))
    return [*made, Eqn([rows], [out], transpose_p, {"permutation": tuple(order)})]


def _transposed(atom: Any, order: Sequence[int]) -> Var:
    return Var(atom.aval.update(shape=tuple([atom.aval.shape[i] for i in order])))


def ranks(mesh: Any, axes: Sequence[Any]) -> Ranks:
    """The groups of processes along axes of a mesh, the first of which counts slowest."""
    table = mesh.processes.ranks
    places = [mesh.axis_names.index(a) for a in axes]
    rest = [k for k in range(table.ndim) if k not in places]
    rows = np.transpose(table, rest + places)
    size = int(np.prod([table.shape[k] for k in places]))
    return Ranks(rows.reshape(-1, size).tolist())
