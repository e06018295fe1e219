"""Calls of compiled functions that others register: `ffi_call`.

The params say the target's name, its attributes, and how operands and results lie in memory (axes
from the fastest to the slowest, as XLA writes layouts). The target is called from Python
(`core.ffi_targets`), which gives up the interpreter's lock meanwhile; a compiled program calls it
so the first time, and itself from then on where it can (`prepared`). Each equation has its
`instance`, since a target may keep a state for each place that calls it. `numjet.ffi` is the public
side. What would break it: a pass that joins two equations of different instances.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base.config import numeric_checks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import physical
from numjet.core.effects import FOREIGN
from numjet.core.ffi_targets import Prepared, Shape, Site
from numjet.core.lowering import Host
from numjet.core.memo import Memo, remembered
from numjet.core.primitive import NO_EFFECTS, Primitive
from numjet.ops.callback import VMAP_METHODS, by_method, checked
from numjet.ops.scan import scan
from numjet.transforms.batch import Axis, mapped_to_front

# Attributes that a call outside of programs remembers a target's state for.
_STATES = 256


class HashableArray:
    """An array among the attributes, as a value that can be compared."""

    __slots__ = ("val",)

    def __init__(self, val: np.ndarray) -> None:
        self.val = np.array(val, copy=True)

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"

    def __hash__(self) -> int:
        return hash((self.val.shape, self.val.dtype, self.val.tobytes()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HashableArray)
            and self.val.dtype == other.val.dtype
            and self.val.shape == other.val.shape
            and self.val.tobytes() == other.val.tobytes()
        )


class FrozenDict:
    """A dictionary among the attributes, as a value that can be compared. `val`: its items."""

    __slots__ = ("val",)

    def __init__(self, val: dict) -> None:
        self.val = tuple(sorted(((k, hashable(k, x)) for k, x in val.items()), key=_name))

    def __repr__(self) -> str:
        return f"FrozenDict({dict(self.val)})"

    def __hash__(self) -> int:
        return hash(self.val)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenDict) and self.val == other.val


def _name(item: tuple[str, Any]) -> str:
    return item[0]


def hashable(name: str, value: Any) -> Any:
    """An attribute as a value that can be compared. Raises TypeError for others."""
    if isinstance(value, np.ndarray):
        return HashableArray(value)
    if isinstance(value, dict):
        return FrozenDict(value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"Non-hashable keyword argument to ffi_call {name}: {value}. Attributes are numbers, "
            "strings, NumPy arrays and dictionaries of these."
        ) from None
    return value


def _plain(value: Any) -> Any:
    if type(value) is HashableArray:
        return value.val
    if type(value) is FrozenDict:
        return {k: _plain(x) for k, x in value.val}
    return value


class Instance:
    """One equation's call: its place for what the target keeps."""

    __slots__ = ("site", "lock")

    def __init__(self) -> None:
        self.site: Site | None = None
        self.lock = threading.Lock()

    def __reduce__(self) -> tuple:
        return Instance, ()  # a copy has a state of its own


# What calls outside of programs reach: by what they say of the target.
_instances = Memo("places of ffi_call", _STATES)


def _site(avals: tuple, params: dict) -> Site:
    """Where the call keeps what its target needs."""
    name, given = params["target_name"], params["attributes"]
    version, text = params["custom_call_api_version"], params["legacy_backend_config"]
    instance = params["instance"]
    if instance is None:
        # Equal numbers of different types are different attributes.
        key = (name, given, repr(given), version, text, params["result_avals"], avals)
        instance = _instances.get(key)
        if instance is None:
            instance = _instances.setdefault(key, Instance())
    if instance.site is None:
        with instance.lock:
            if instance.site is None:
                attributes = [(k, _plain(x)) for k, x in given]
                instance.site = Site(name, attributes, version, text)
    return instance.site


@remembered("shapes of ffi_call")
def _shape(aval: ShapedArray, layout: tuple[int, ...]) -> Shape:
    return Shape(aval.shape, physical(aval.dtype), layout[::-1])


def _evaluate(*args: ArrayImpl, **params: Any) -> list[ArrayImpl]:
    avals = tuple([x.aval for x in args])
    results = params["result_avals"]
    outs = _site(avals, params)(
        [x._value for x in args],
        [*map(_shape, avals, params["input_layouts"])],
        [*map(_shape, results, params["output_layouts"])],
        params["input_output_aliases"],
    )
    found = [ArrayImpl(x, a) for x, a in zip(outs, results, strict=True)]
    return checked("ffi_call", found) if numeric_checks[0] else found


def prepared(avals: Sequence[ShapedArray], params: dict) -> Prepared | None:
    """The frame for calls of an equation that native code makes; None where they stay here."""
    return _site(tuple(avals), params).prepared(
        [*map(_shape, avals, params["input_layouts"])],
        [*map(_shape, params["result_avals"], params["output_layouts"])],
        params["input_output_aliases"],
    )


def _abstract(*avals: ShapedArray, result_avals: tuple, **_: Any) -> list[ShapedArray]:
    return list(result_avals)


def _stage(trace: Any, args: tuple, params: dict) -> Any:
    return trace.record(ffi_call_p, args, {**params, "instance": Instance()})


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    raise ValueError(
        f"The FFI call to `{params['target_name']}` cannot be differentiated. You can use "
        "`jax.custom_jvp` or `jax.custom_vjp` to add support."
    )


def _transpose(cts: list, *args: Any, **params: Any) -> list:
    raise ValueError(
        f"The FFI call to `{params['target_name']}` cannot be differentiated. You can use "
        "`jax.custom_jvp` or `jax.custom_vjp` to add support."
    )


def _outer(layout: tuple[int, ...]) -> tuple[int, ...]:
    """A layout behind a new axis in front, which is the slowest."""
    return (*[axis + 1 for axis in layout], 0)


def _looped(axis: Axis, args: tuple, dims: tuple, params: dict, unroll: int) -> tuple:
    """The call for each example, in order."""
    values = mapped_to_front(args, dims)
    mapped = [x for x, d in zip(values, dims, strict=True) if d is not None]

    def example(_: Any, rows: Sequence[Any]) -> tuple:
        given = iter(rows)
        operands = [x if d is None else next(given) for x, d in zip(values, dims, strict=True)]
        return (), ffi_call_p.bind(*operands, **params)

    outs = scan(example, (), mapped, axis.size, unroll=unroll)[1]
    return outs, [0] * len(outs)


def _batch(axis: Axis, args: tuple, dims: tuple, **params: Any) -> tuple:
    method = "sequential" if axis.of_devices else params["vmap_method"]
    if method is None:
        raise NotImplementedError(
            "vmap is only supported for the ffi_call primitive when vmap_method is one of "
            f"{', '.join(map(repr, VMAP_METHODS[:-1]))}, or {VMAP_METHODS[-1]!r}. Got "
            "vmap_method=None."
        )
    if method.startswith("sequential"):
        return _looped(axis, args, dims, params, axis.size if "unrolled" in method else 1)
    aliased = {i for i, _ in params["input_output_aliases"]}
    values, layouts = [], []
    for i, (x, d) in enumerate(zip(args, dims, strict=True)):
        layout = params["input_layouts"][i]
        x, led = by_method(x, d, axis.size, "broadcast_all" if i in aliased else method)
        values.append(x)
        layouts.append(_outer(layout) if led else layout)
    avals = tuple([a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"]])
    outs = ffi_call_p.bind(*values, **{
        **params, "result_avals": avals, "input_layouts": tuple(layouts),
        "output_layouts": tuple(map(_outer, params["output_layouts"])),
    })  # fmt: skip
    return outs, [0] * len(outs)


ffi_call_p = Primitive(
    "ffi_call",
    multiple_results=True,
    higher_order=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    stage=_stage,
    loops=Host(),
    effects=lambda *, has_side_effect, **_: (
        frozenset([FOREIGN]) if has_side_effect else NO_EFFECTS
    ),
)
