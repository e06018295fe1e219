"""Batching (vmap): carry a batch axis through every operation.

A `BatchTracer` is an array with one more axis, at `dim`; each operation runs its `batch` rule under
the parent trace. Collectives see the axis by its name (`axis_env`). For `api.maps.mapping`, and for
rules of higher-order primitives (`batch_jaxpr`). What would break it: a rule that returns a result
of one example where `dims` says that there is an axis.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from numjet.base import config
from numjet.core import hooks
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import derived
from numjet.core.effects import Effect
from numjet.core.jaxpr import ClosedJaxpr, eval_closed, note_form
from numjet.core.memo import Memo
from numjet.core.primitive import Primitive
from numjet.core.shared import ManualAxisType
from numjet.core.structural import broadcast_batch, moveaxis
from numjet.core.trace import (
    Trace,
    Tracer,
    current_trace,
    enter_trace,
    leave_trace,
    set_trace,
    user_source,
)
from numjet.transforms import mapped_refs
from numjet.transforms.stage import closed_over, stage


class Axis:
    """A mapped axis: its size and, for collectives, its name. `trace` is the one whose batch rule
    of a higher-order primitive runs: rules that call functions by the user run them under it
    (`batch_again`). `pin`, where the members are devices, lays a value with one row a member out
    over them. `placed`: by which Explicit axes of a mesh it is cut, as the sharding of an array
    that has this axis alone. `tested`: types of values tell whether they vary along it."""

    __slots__ = ("size", "name", "spmd", "trace", "pin", "placed", "tested")

    def __init__(
        self,
        size: int,
        name: Any = None,
        spmd: Any = None,
        pin: Callable | None = None,
        placed: Any = None,
        tested: bool = False,
    ) -> None:
        self.size, self.name, self.spmd, self.pin, self.tested = size, name, spmd, pin, tested
        self.trace: Any = None
        self.placed = placed

    @property
    def of_devices(self) -> bool:
        """Whether the members are the devices of a `shard_map`."""
        return self.name is not None and self.spmd == self.name

    def over(self, aval: ShapedArray, at: int = 0) -> ShapedArray:
        """The aval of a batch of values of this aval, whose axis is at `at`."""
        new = aval.update(shape=(*aval.shape[:at], self.size, *aval.shape[at:]))
        placed = aval.placed or self.placed
        if placed is None:
            return new
        own = self.placed.spec[0] if self.placed is not None else None
        entries = (None,) * aval.ndim if aval.placed is None else tuple(aval.placed.spec)
        return new.with_axes(placed, (*entries[:at], own, *entries[at:]))


class AxisEffect(Effect):
    """Marks equations that use a named axis, so that batching never skips them. Interned by
    name."""

    __slots__ = ("name",)
    name: Any
    _known: dict[Any, AxisEffect] = {}

    def __new__(cls, name: Any) -> AxisEffect:
        found = cls._known.get(name)
        if found is None:
            found = cls._known[name] = object.__new__(cls)
            found.name = name
        return found

    def __repr__(self) -> str:
        return f"NamedAxis({self.name})"


# Named axes in scope: name -> size.
_axis_env: ContextVar[dict] = ContextVar("numjet.axis_env", default={})  # noqa: B039 - never mutated


# Those of them whose members are no devices.
axes_of_vmap: ContextVar[frozenset] = ContextVar("numjet.axes_of_vmap", default=frozenset())


def axis_env() -> dict:
    """The named axes in scope, name -> size."""
    return _axis_env.get()


def axis_size(name: Any, caller: str = "") -> int:
    """The size of a named axis in scope. Raises NameError when there is none of that name.

    caller: the function that asks for it."""
    env = _axis_env.get()
    if name not in env:
        known = ", ".join(map(repr, env)) or "none"
        raise NameError(
            f"Found an unbound axis name: {name}. To fix this, please call {caller or 'it'} under "
            f"`jax.shard_map`, pmap or vmap(..., axis_name={name!r}). Axes in scope: {known}."
        )
    return env[name]


class extend_axis_env:  # noqa: N801 - a context manager read as a statement
    """Bring a named axis into scope (nothing for unnamed ones)."""

    def __init__(self, axis: Axis) -> None:
        self.axis = axis

    def __enter__(self) -> None:
        env, name = _axis_env.get(), self.axis.name
        self.alone: Any = None
        if name is not None:
            env = {**env, name: self.axis.size}
            of_vmap = axes_of_vmap.get()
            if (name in of_vmap) is self.axis.of_devices:
                self.alone = axes_of_vmap.set(of_vmap ^ {name})
        self.token = _axis_env.set(env)

    def __exit__(self, *exc: Any) -> None:
        _axis_env.reset(self.token)
        if self.alone is not None:
            axes_of_vmap.reset(self.alone)


# (aval, batch axis) -> the aval of one example; both are few.
_examples: dict[tuple[ShapedArray, int], ShapedArray] = Memo("examples of batches")


def _example(aval: ShapedArray, dim: int) -> ShapedArray:
    found = _examples[aval, dim] = aval.row(dim)
    return found


def _varying(aval: ShapedArray, whole: ShapedArray, name: Any) -> ShapedArray:
    """The aval of one example along an axis of `shard_map` that tests what varies."""
    names = whole.manual_axis_type.varying | {name}
    return aval.update_manual_axis_type(ManualAxisType(varying=names))


class BatchTracer(Tracer):
    """`value` with its batch axis at `dim`; the aval is that of one example."""

    __slots__ = ("value", "dim", "aval")

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self.owner, self.value, self.dim = trace, value, dim
        aval = _examples.get((value.aval, dim))
        self.aval: ShapedArray = _example(value.aval, dim) if aval is None else aval
        if trace.tested is not None:
            self.aval = _varying(self.aval, value.aval, trace.tested)

    @property
    def val(self) -> Any:
        """All examples' values, under the name that JAX's documentation looks at them by."""
        return self.value

    def origin(self) -> str:
        at = f" at {self.owner.source}" if self.owner.source else ""
        return f"It is mapped by the vmap{at} over an axis of size {self.owner.axis.size}."

    def __repr__(self) -> str:
        if self.owner.axis.of_devices:
            return hooks.member_text(self)
        return f"VmapTracer(aval={self.aval}, batched={self.value.aval})"


class BatchTrace(Trace):
    """Runs each primitive's batch rule under the parent trace.

    Values of traces with the same `root` are mapped values of each of them (`batch_again`).
    """

    name = "vmap"

    def __init__(self, parent: Trace, axis: Axis, root: Any = None) -> None:
        self.parent, self.axis, self.root = parent, axis, root or object()
        self.staging = parent.staging
        self.source = user_source(3)
        # The axis, where it is one of a `shard_map` that tests what varies along it.
        self.tested = axis.name if axis.tested else None

    def process(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        if primitive.higher_order:
            args, params = closed_over(args, params)
        values: list[Any] = []
        dims: list[int | None] = []
        mapped = False
        for x in args:
            if type(x) is BatchTracer and (x.owner is self or x.owner.root is self.root):
                values.append(x.value)
                dims.append(x.dim)
                mapped = True
            else:  # numbers and NumPy arrays, which libraries bind, too, are arrays to the rules
                values.append(x if hasattr(x, "aval") else as_array(x))
                dims.append(None)
        parent: Any = self.parent
        token = enter_trace(parent)
        try:
            if not (mapped or primitive.every_map or self._concerns(primitive, params)):
                return parent.process(primitive, tuple(values), params)
            if primitive.higher_order:
                self.axis.trace = self
            out, out_dims = primitive.batch(self.axis, tuple(values), tuple(dims), **params)
        finally:
            leave_trace(token)
        if primitive.multiple_results:
            return [
                BatchTracer(self, x, d) if d is not None else x
                for x, d in zip(out, out_dims, strict=True)
            ]
        return BatchTracer(self, out, out_dims) if out_dims is not None else out

    def made_ref(self, value: Any, params: dict) -> Any:
        """A reference of a mapped value where jaxprs are to be read; None elsewhere."""
        return mapped_refs.made(self, value, self.tracer, params)

    def tracer(self, value: Any, dim: int) -> BatchTracer:
        """The value of each example, which is mapped along an axis."""
        return BatchTracer(self, value, dim)

    def _concerns(self, primitive: Primitive, params: dict) -> bool:
        """Whether a primitive without mapped operands may use the axis all the same: by its name,
        or where it calls a function by the user, which may close over mapped values."""
        if primitive.effects is _NO_EFFECTS:
            return False
        if callable(params.get("call_jaxpr")):
            return True
        if "bwd" in params and self.axis.of_devices:  # whose rules may have collectives
            return True
        return self.axis.name is not None and AxisEffect(self.axis.name) in primitive.effects_of(
            params
        )


_NO_EFFECTS: frozenset = frozenset()


def batch_call(
    fun: Callable,
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[list[Any], list[int | None]]:
    """Run flat `fun` on mapped arguments; returns the outputs with the place of their batch
    axis."""
    trace = BatchTrace(current_trace(), axis)
    ins = [x if d is None else BatchTracer(trace, x, d) for x, d in zip(args, dims, strict=True)]
    if axis.name is None:
        with set_trace(trace):
            outs = fun(*ins)
    else:
        with extend_axis_env(axis), set_trace(trace):
            outs = fun(*ins)
    found = unwrap(trace, outs)
    axis.trace = None  # which refers to the axis
    if config.check_tracer_leaks.value:
        del ins, outs
        importlib.import_module("numjet.transforms.leaks").check(trace, "BatchTrace")
    return found


def batch_again(
    fun: Callable,
    trace: BatchTrace,
    args: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[list[Any], list[int | None]]:
    """`batch_call` over the axis of `trace`, for functions that may close over its values: they
    are mapped values here too."""
    again = BatchTrace(current_trace(), trace.axis, trace.root)
    pairs = zip(args, dims, strict=True)
    ins = [x if d is None else BatchTracer(again, as_array(x), d) for x, d in pairs]
    with extend_axis_env(trace.axis), set_trace(again):
        outs = fun(*ins)
    return unwrap(again, outs)


def unwrap(trace: BatchTrace, outs: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    values: list[Any] = []
    dims: list[int | None] = []
    for x in outs:
        if type(x) is BatchTracer and x.owner.root is trace.root:
            values.append(x.value)
            dims.append(x.dim)
        else:
            values.append(x)
            dims.append(None)
    return values, dims


def to_front(x: Any, dim: int | None, size: int) -> Any:
    """`x` with its batch axis first; repeated when it has none."""
    return broadcast_batch(x, size) if dim is None else moveaxis(x, dim, 0)


def all_to_front(xs: Sequence[Any], dims: Sequence[int | None], size: int) -> list[Any]:
    """`to_front` of each."""
    return [to_front(x, d, size) for x, d in zip(xs, dims, strict=True)]


def mapped_to_front(xs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Each with its batch axis first, where it has one."""
    return [x if d is None else moveaxis(x, d, 0) for x, d in zip(xs, dims, strict=True)]


def batch_jaxpr_in_place(
    closed: ClosedJaxpr, axis: Axis, dims: Sequence[int | None]
) -> tuple[ClosedJaxpr, list[int | None]]:
    """The jaxpr of inputs whose batch axes are at `dims`, and where those of its outputs are: as
    JAX writes calls. Remembered with the jaxpr."""
    key = (
        "batch in place", axis.size, axis.name, axis.of_devices, tuple(dims),
        tuple(axis_env().items()), axis.placed,
    )  # fmt: skip
    note_form(closed)
    found = closed.cache.get(key)
    if found is None:
        dims_out: list[int | None] = []

        def fun(*args: Any) -> list[Any]:
            outs, places = batch_call(
                lambda *xs: eval_closed(closed, *xs), axis, args, dims
            )
            dims_out.extend(places)
            return outs

        pairs = zip(closed.in_avals, dims, strict=True)
        jaxpr, consts = stage(fun, [a if d is None else axis.over(a, d) for a, d in pairs])
        jaxpr.debug = derived(closed.jaxpr, named=True)
        found = closed.cache[key] = ClosedJaxpr(jaxpr, consts), dims_out
    note_form(found[0])
    return found


def batch_jaxpr(
    closed: ClosedJaxpr,
    axis: Axis,
    mapped: Sequence[bool],
    force: bool | Sequence[bool] = False,
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr with a leading batch axis on mapped inputs; also which outputs have one (all
    leading).

    `force` makes outputs mapped. Remembered with the jaxpr.
    """
    n_out = len(closed.jaxpr.outvars)
    forced = [force] * n_out if isinstance(force, bool) else list(force)
    key = (
        "batch", axis.size, axis.name, axis.of_devices, tuple(mapped), tuple(forced),
        tuple(axis_env().items()), axis.placed,
    )  # fmt: skip
    note_form(closed)
    found = closed.cache.get(key)
    if found is not None:
        note_form(found[0])
        return found
    mapped_out: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        outs, dims = batch_call(
            lambda *xs: eval_closed(closed, *xs),
            axis,
            args,
            [0 if m else None for m in mapped],
        )
        mapped_out.extend(d is not None or f for d, f in zip(dims, forced, strict=True))
        return [
            to_front(x, d, axis.size) if m else x
            for x, d, m in zip(outs, dims, mapped_out, strict=True)
        ]

    avals = [
        axis.over(a) if m else a for a, m in zip(closed.in_avals, mapped, strict=True)
    ]
    jaxpr, consts = stage(fun, avals)
    jaxpr.debug = derived(closed.jaxpr, named=True)
    result = ClosedJaxpr(jaxpr, consts), mapped_out
    closed.cache[key] = result
    return result
