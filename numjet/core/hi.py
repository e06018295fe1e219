"""Values that are no arrays but hold some: their types, and operations on them while tracing.

A value of a registered class stays the object that it is, with traced arrays in it where there are
some, so that differentiation and maps see only arrays. Inside a staged function a value from
outside is stood for by one of its own (`_stand_in`), made of the values of references (`Leaf`), one
for each array that the object holds; what an operation changes of the stand-in is put into these,
and whoever staged the function (jit, loops, branches) puts it into the object (`core.refs`).

Public names are in `numjet.experimental.hijax`. What would break it: an operation that changes a
value without `bind`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from numjet.base.tree import register_pytree_node, tree_flatten, tree_unflatten
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.refs import AbstractRef, Ref, RefError
from numjet.core.structural import zeros
from numjet.core.trace import EVAL, Tracer, aval_of, current_trace, set_trace

# The declared classes -> functions that give the type of a value.
TYPES: dict[type, Callable[[Any], Any]] = {}


# Whether operations with rules of both modes are differentiated by that for forward mode: so it is
# within `checkpoint`, whose passes are derived from the forward derivative.
forward_rules: ContextVar[bool] = ContextVar("forward_rules", default=False)
# Whether the linear function is to be called, as that of `linearize`: rules of `lin` are asked
# where an operation has them.
linear_rules: ContextVar[bool] = ContextVar("linear_rules", default=False)


class MappingSpec:
    """What of a value that is no array `vmap` maps; a subclass holds the axes."""


class HiPspec:
    """How a value of such a type is cut over a mesh, for `shard_map`; a subclass has `to_lo()`,
    which gives the PartitionSpecs of the arrays that a value holds."""

    def to_lo(self) -> Any:
        """The PartitionSpecs of the arrays that a value holds, given by the subclass."""
        raise NotImplementedError(
            f"shard_map requires {type(self).__name__} to implement the `to_lo` method."
        )


class Held:
    """What a value holds: its type, what changes of it (`form`), and its arrays."""

    __slots__ = ("type", "form", "arrays")

    def __init__(self, value: Any) -> None:
        with set_trace(EVAL):  # the methods read the value by operations of their own
            self.type = TYPES[type(value)](value)
            if self.type.has_qdd:
                form = value.cur_qdd()
                self.form = form.normalize()
                self.arrays = list(self.type.read_loval(form, value))
            else:
                self.form, self.arrays = None, list(self.type.lower_val(value))

    def made(self, arrays: Sequence[Any]) -> Any:
        """A value like it of other arrays."""
        with set_trace(EVAL):
            if self.form is None:
                return self.type.raise_val(*arrays)
            return self.type.new_from_loval(self.form, *arrays)


# id of a value -> it, and the traced arrays that carry its tangents.
_carried: dict[int, tuple[weakref.ref, list]] = {}


def carriers_of(ty: Any) -> list[ShapedArray]:
    """The avals of arrays that stand beside those that a value holds, where the tangents of its
    type are other arrays than the tangents of these: zeros, whose tangents are the value's."""
    try:
        tangent = ty.to_tangent_aval()
        found = [tangent] if isinstance(tangent, ShapedArray) else list(tangent.lo_ty())
    except NotImplementedError:
        return []
    own = [a.tangent() for a in ty.lo_ty()]
    alike = [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in own]
    return [] if alike or not all([dtypes.is_inexact(a.dtype) for a in found]) else found


def carried(value: Any) -> list | None:
    """The traced arrays that carry a value's tangents, None where there are none."""
    found = _carried.get(id(value))
    return found[1] if found is not None and found[0]() is value else None


def raised(ty: Any, arrays: Sequence[Any]) -> Any:
    """A value of the arrays that it holds, and of those that carry its tangents."""
    n = len(ty.lo_ty()) if carriers_of(ty) else len(arrays)
    value = ty.raise_val(*arrays[:n])
    if any([isinstance(x, Tracer) for x in arrays[n:]]):
        key = id(value)
        try:
            held = weakref.ref(value, lambda _: _carried.pop(key, None))
        except TypeError:
            raise NotImplementedError(
                f"{type(value).__name__}: values whose tangents are other arrays than theirs are "
                "of a class that weak references can be made to. Give it a slot __weakref__."
            ) from None
        _carried[key] = held, list(arrays[n:])
    return value


class LoweredValue:
    """A value that does not change, as a node of trees: of the arrays that it holds, and those that
    carry its tangents. What a tree with it is made of again is the value of the arrays that are
    given."""

    __slots__ = ("type", "arrays")

    def __init__(self, ty: Any, arrays: Sequence[Any]) -> None:
        self.type, self.arrays = ty, list(arrays)


# What is made of a node again: `raised`, unless somebody asks for something else.
_made_of: ContextVar[Callable[[Any, list], Any]] = ContextVar("made_of", default=raised)
register_pytree_node(
    LoweredValue,
    lambda node: (node.arrays, node.type),
    lambda ty, xs: _made_of.get()(ty, list(xs)),
)


def unflatten_as(made: Callable[[Any, list], Any], treedef: Any, leaves: Sequence[Any]) -> Any:
    """The tree of `leaves`, in which `made(type, arrays)` stands for values that are no arrays."""
    before = _made_of.set(made)
    try:
        return tree_unflatten(treedef, leaves)
    finally:
        _made_of.reset(before)


def lowered(x: Any) -> Any:
    """A value of a declared class that does not change as a node of trees; other things as they
    are."""
    if type(x) not in TYPES or changes(x):
        return x
    held = Held(x)
    beside = carried(x)
    if beside is None:
        beside = [zeros(a) for a in carriers_of(held.type)]
    return LoweredValue(held.type.normalize(), [*held.arrays, *beside])


def lower(value: Any) -> Any:
    """A tree with such values as nodes."""
    if not TYPES:
        return value
    leaves, treedef = tree_flatten(value)
    nodes = [lowered(x) for x in leaves]
    return treedef.unflatten(nodes) if LoweredValue in [*map(type, nodes)] else value


def types_of(shapes: Any) -> Any:
    """Shapes of results, where values that are no arrays are told by their types."""
    if not TYPES:
        return shapes
    leaves, treedef = tree_flatten(shapes)
    return treedef.unflatten([TYPES[type(x)](x) if type(x) in TYPES else x for x in leaves])


class ValueRef:
    """A reference to a value that is no array: references to the arrays that it holds. In trees it
    is a node of these."""

    __slots__ = ("type", "refs")

    def __init__(self, ty: Any, refs: Sequence[Ref]) -> None:
        self.type, self.refs = ty, list(refs)

    def get(self, idx: Any = None) -> Any:
        """The value."""
        _whole(idx)
        return raised(self.type, [ref.get() for ref in self.refs])

    def swap(self, value: Any, idx: Any = None) -> Any:
        """Replace the value; gives what was there."""
        old, held = self.get(idx), lowered(value)
        if held.type.normalize() != self.type.normalize():
            raise TypeError(
                f"a reference to a value of type {self.type} was given one of {held.type}."
            )
        for ref, x in zip(self.refs, held.arrays, strict=True):
            ref.swap(x)
        return old

    def set(self, value: Any, idx: Any = None) -> None:
        """Replace the value."""
        self.swap(value, idx)

    def __getitem__(self, idx: Any) -> Any:
        return self.get(idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self.swap(value, idx)

    def __repr__(self) -> str:
        return f"Ref{{{self.type}}}"


register_pytree_node(
    ValueRef, lambda node: (node.refs, node.type), lambda ty, refs: ValueRef(ty, list(refs))
)


def _whole(idx: Any) -> None:
    parts = idx if isinstance(idx, tuple) else () if idx is None else (idx,)
    if any([part is not Ellipsis and part != slice(None) for part in parts]):
        raise NotImplementedError(
            "parts of a value that is no array are not read or written through a reference. Take "
            "the whole value, ref[...]."
        )


def raised_type(value: Any, cotangents: bool = False) -> Any:
    """The type of a value's tangents (cotangents), of its type or of the value."""
    ty = TYPES[type(value)](value) if type(value) in TYPES else value
    of = getattr(ty, "to_ct_aval" if cotangents else "to_tangent_aval", None)
    return ty if of is None else of()


def changes(value: Any) -> bool:
    """Whether the value is of a type whose values change."""
    with set_trace(EVAL):
        return TYPES[type(value)](value).has_qdd


def change(value: Any, form: Any, arrays: Sequence[Any]) -> None:
    """Let `value` hold `arrays`."""
    with set_trace(EVAL):
        TYPES[type(value)](value).update_from_loval(form, value, *arrays)


class Leaf(Ref):
    """One of the arrays that a value holds, as a reference.

    Where an operation inside of a staged function gave the value another `form`, `pending` takes
    its arrays until all `count` are there; `base` is the form that the value had outside.
    """

    __slots__ = ("of", "form", "index", "base", "pending", "count")

    def __init__(
        self, of: Any, form: Any, index: int, aval: Any, home: Any, base: Any = None,
        pending: dict | None = None, count: int = 0,
    ) -> None:
        self.aval, self.home = AbstractRef(aval), home
        self.of, self.form, self.index = of, form, index
        self.base, self.pending, self.count = base, pending, count

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Leaf)
            and other.of is self.of
            and other.index == self.index
            and other.form == self.form
        )

    def __hash__(self) -> int:
        return hash((id(self.of), self.index))

    @property
    def reshapes(self) -> bool:
        """Whether it belongs to a form that the value did not have outside."""
        return self.pending is not None

    def current(self) -> bool:
        """Whether what was staged with this reference fits the value as it is now."""
        home, holder, _ = _around(self.of)
        held = Held(self.of)
        form = _form_within(self.of, held, home)
        if self.reshapes:
            return form == self.base
        return form == self.form and (
            holder is not None or aval_of(held.arrays[self.index]) is self.aval.inner_aval
        )

    @property
    def _value(self) -> Any:
        held = Held(self.of)
        if held.form == self.form:
            return as_array(held.arrays[self.index])
        return zeros(self.aval.inner_aval)  # not there yet: nobody reads it

    @_value.setter
    def _value(self, value: Any) -> None:
        held = Held(self.of)
        if held.form == self.form:
            change(self.of, self.form, [
                value if i == self.index else x for i, x in enumerate(held.arrays)
            ])  # fmt: skip
        elif self.pending is not None:
            self.pending[self.index] = value
            if len(self.pending) == self.count:
                arrays = [self.pending[i] for i in range(self.count)]
                self.pending.clear()
                change(self.of, self.form, arrays)

    def put(self, value: Any, what: str = "a set/swap") -> None:
        super().put(value, what)
        if self.reshapes and (holder := self._holder()[0]) is not None:
            holder.forms = {**(holder.forms or {}), id(self.of): self}


def _around(value: Any) -> tuple[Any, Any, list]:
    """Where `value` lives: the innermost trace around that arrays in it are of, or EVAL; the
    innermost staging trace inside of that, or None; and the traces between here and these."""
    owners = [x.owner for x in Held(value).arrays if isinstance(x, Tracer)]
    crossed: list[Any] = []
    holder: Any = None
    trace: Any = current_trace()
    while trace is not EVAL and trace is not None and not any([trace is o for o in owners]):
        staging = trace.staging is trace
        if staging and id(value) in trace.own:
            break
        if holder is None and staging:
            holder = trace
        elif holder is None:
            crossed.append(trace)
        trace = trace.parent
    return (EVAL if trace is None else trace), holder, crossed


def _form_within(value: Any, held: Held, home: Any) -> Any:
    """The form that `value` has as the current trace sees it."""
    trace: Any = current_trace()
    while trace is not None and trace is not home:
        found = trace.forms.get(id(value)) if trace.staging is trace and trace.forms else None
        if found is not None:
            return found.form
        trace = trace.parent
    return held.form


class _StandIn:
    """A value from outside, inside of a staged function."""

    __slots__ = ("value", "form", "leaves", "arrays", "made", "home", "held")

    def __init__(self, value: Any, home: Any) -> None:
        self.value, self.home = value, home
        self.held = held = Held(value)
        self.form = _form_within(value, held, home)
        if self.form == held.form:
            avals = [aval_of(x) for x in held.arrays]
        else:
            avals = held.type.lo_ty_qdd(self.form)
            held.form = self.form
        self.leaves = [Leaf(value, self.form, i, a, home) for i, a in enumerate(avals)]
        self.arrays = [leaf.value() for leaf in self.leaves]
        self.made = held.made(self.arrays)

    def hand_on(self) -> None:
        """Put what was changed of it where whoever stages the function finds it."""
        now = Held(self.made)
        if now.form == self.form:
            for leaf, old, new in zip(self.leaves, self.arrays, now.arrays, strict=True):
                if new is not old:
                    leaf.put(as_array(new))
            return
        n = len(now.arrays)
        if not n:
            raise NotImplementedError(
                f"{type(self.value).__name__}: an operation inside of a traced function took its "
                "last array. Keep one, or change the value outside."
            )
        pending: dict = {}
        for i, x in enumerate(now.arrays):
            x = as_array(x)
            Leaf(self.value, now.form, i, x.aval, self.home, self.form, pending, n).put(x)


def own(value: Any) -> None:
    """Note that `value` was made in the staged function around, if there is one."""
    if (staging := current_trace().staging) is not None:
        staging.own[id(value)] = value


def current_value(value: Any) -> Any:
    """What stands for `value` here: itself, or an object of what it holds in this staged
    function."""
    if current_trace() is EVAL or not changes(value):
        return value
    home, holder, _ = _around(value)
    return value if holder is None else _StandIn(value, home).made


def bind(name: str, impl: Callable, args: Sequence[Any], params: dict) -> Any:
    """Run an operation on such values under the current trace."""
    if current_trace() is EVAL:
        return impl(*args, **params)
    inside: dict[int, _StandIn] = {}
    before: list[tuple[Any, Held, list]] = []
    for x in args:
        if type(x) in TYPES and id(x) not in inside:
            if not changes(x):
                continue  # never changed, so it is the same everywhere
            home, holder, crossed = _around(x)
            if holder is not None:
                inside[id(x)] = _StandIn(x, home)
            elif crossed:
                before.append((x, Held(x), crossed))
    out = impl(*[inside[id(x)].made if id(x) in inside else x for x in args], **params)
    for stand_in in inside.values():
        stand_in.hand_on()
    for x in out if isinstance(out, list | tuple) else (out,):
        if type(x) in TYPES:
            own(x)
    for x, held, crossed in before:
        for now in Held(x).arrays:
            if isinstance(now, Tracer) and any([now.owner is t for t in crossed]):
                change(x, held.form, held.arrays)
                raise RefError(
                    f"{name}: a value of class {type(x).__name__} from outside of a transformation "
                    f"({now.owner.name}) takes no array that the transformation traces. Use "
                    "lax.stop_gradient, or return the array."
                )
    return out

