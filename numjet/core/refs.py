"""Mutable references: arrays whose value changes, in programs without side effects.

A `Ref` has a value under the trace it was made in, its home, and changes it in place. Where a
function is staged that was given the reference from outside, the staging trace keeps a value of its
own (`Cell`), an input of the jaxpr; what is there at the end is an output, and whoever staged the
function (jit, loops, branches) puts it into the reference. So every jaxpr stays a function of its
arguments, and nothing below knows of references, but where jaxprs are made to be read
(`make_jaxpr`): there a staging trace has a variable for each reference that it can name, and what
is done with it is written down as an equation (`core.ref_equations`). Values may not escape: what
another transformation between here and the holder's trace has made of a value (a tangent, an axis)
cannot be written.

Public names are in `numjet.ref`. What would break it: a cache of staged functions that are closed
over references, and that does not treat them as arguments.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from numjet.base import config, errors
from numjet.base.tree import register_pytree_node, tree_flatten, tree_leaves, tree_map
from numjet.core import dtypes, hooks, ref_equations as equations
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.primitive import Zero
from numjet.core.ref_equations import AbstractRef
from numjet.core.structural import convert
from numjet.core.trace import EVAL, Trace, Tracer, current_trace, set_trace, user_source


class Cell:
    """A reference's value inside a staged function: the variable it starts as, and what it is. A
    `shown` one is the variable that stands for the reference itself; `argument` is the name of one
    that is given as an argument."""

    __slots__ = ("start", "value", "shown", "argument")

    def __init__(self, start: Any, shown: bool = False) -> None:
        self.start = self.value = start
        self.shown, self.argument = shown, ""


# The traces of which rules of the user's run right now: references that were made under them may
# be read and written there.
_ruled: ContextVar[tuple] = ContextVar("numjet.ruled", default=())


@contextmanager
def rule_under(trace: Trace) -> Iterator[None]:
    """A block in which a rule runs for a function that was called under `trace`."""
    token = _ruled.set((*_ruled.get(), trace))
    try:
        yield
    finally:
        _ruled.reset(token)


class RefUse:
    """How a staged function uses references from outside, filled by `transforms.stage.stage`.

    The jaxpr has an input for each of `refs` behind its others, those `written` first, and an
    output for each of `written` behind its others. Where `reads` is False, references that are only
    read are constants instead (`fixed`: there are such). `reshapes`: what is handed on may have
    another form than what came (`core.hi`). References that are variables of the jaxpr (`shown`)
    are never outputs: arguments and those that no function around made are inputs behind the others
    where these are `behind`; else they are constants.
    """

    __slots__ = ("reads", "refs", "written", "fixed", "reshapes", "behind", "shown")

    def __init__(self, reads: bool = False, reshapes: bool = False, behind: bool = False) -> None:
        self.reads, self.fixed, self.reshapes, self.behind = reads, False, reshapes, behind
        self.refs: list[Ref] = []
        self.written: list[Ref] = []
        self.shown: list[Ref] = []

    def values(self) -> list[Any]:
        """The references' values now, those that are shown as they are here."""
        return [variable_of(ref) if ref in self.shown else ref.value() for ref in self.refs]

    def current(self) -> bool:
        """Whether the references still have the forms that they were staged with."""
        if self.refs and config.jax_form():
            trace = current_trace()
            apart = [trace is not EVAL and variable_of(ref) is None for ref in self.refs]
            if any([(ref in self.shown) is a for ref, a in zip(self.refs, apart, strict=True)]):
                return False
        return all([ref.current() for ref in self.refs])


class Ref:
    """An array that can be changed: `ref[...]` reads, `ref[i] = x` writes. Made by `new_ref`.

    Has `shape`, `dtype`, `ndim`, `size`, `aval` (an AbstractRef); refs is what holds the value.
    What is written must have the shape that is read there: nothing is broadcast (ValueError). Its
    operations keep their order in compiled functions and loops. Raises ValueError where it is
    returned from a compiled function or given twice to one.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> ref = nj.new_ref(jnp.zeros(3))
    >>> ref[0] = 2.0
    >>> ref[...]
    Array([2., 0., 0.], dtype=float32)
    """

    __slots__ = ("aval", "home", "_value", "origin", "__weakref__")

    def __init__(self, aval: AbstractRef, refs: Any) -> None:
        if not isinstance(aval, AbstractRef):
            raise TypeError(f"Ref: expected an AbstractRef, got {aval!r}. Use new_ref(array).")
        self.aval = aval
        self.home = current_trace()
        self._value = self._bound(refs)
        # Where it was made, or which argument it is, for messages.
        self.origin: Any = None

    @property
    def reshapes(self) -> bool:
        """Whether it was made for another form of a value than the value has outside: never."""
        return False

    def current(self) -> bool:
        """Whether it has the form that what uses it was staged for: always."""
        return True

    # ---------------------------------------------------------------- the value
    def _holder(self) -> tuple[Any, list[Trace]]:
        """The innermost staging trace around that is inside the home, or None; and the traces that
        lie between here and the holder."""
        crossed: list[Trace] = []
        trace: Any = current_trace()
        home: Any = self.home
        if (ruled := _ruled.get()) and home in ruled:
            home = home.parent  # where the rule runs
        while trace is not home:
            if trace is None:
                raise errors.UnexpectedTracerError(
                    f"A mutable array reference of type {self.aval} was used after the function it "
                    "was made in had returned. Return freeze(ref), or make the reference outside."
                )
            if trace.staging is trace:
                return trace, crossed
            crossed.append(trace)
            trace = trace.parent
        return None, crossed

    def _bound(self, value: Any) -> Any:
        """A value to be held: outside of traces one that is bound to where it lies."""
        return hooks.bound(value) if self.home is EVAL and type(value) is ArrayImpl else value

    def _shown(self) -> tuple[Any, Any, list[Trace]] | None:
        """The staging trace that writes equations of it down, the variable that it is there, and
        the traces between here and that; None where there are no such equations."""
        if not (config.jax_form() or equations.Made.any):
            return None
        holder, crossed = self._holder()
        trace = self.home if holder is None else holder
        variable = None if trace is EVAL else variable_of(self, trace)
        return None if variable is None else (trace, variable, crossed)

    def value(self) -> Any:
        """What is in it now."""
        if current_trace() is not EVAL and (shown := self._shown()) is not None:
            return equations.recorded(shown[0], equations.get_p, shown[1])
        holder, _ = self._holder()
        if holder is not None:
            return holder.cell(self).value
        held = self._value
        if isinstance(held, Tracer) and held.owner in _ruled.get():
            return getattr(held, "primal", held)  # rules see values without their tangents
        return held

    def put(self, value: Any, what: str = "a set/swap") -> None:
        """Make `value`, an array of the reference's shape and dtype, its value."""
        holder, crossed = self._holder()
        self._check_written(value, what, crossed)
        if current_trace() is not EVAL and (shown := self._shown()) is not None:
            equations.recorded(shown[0], equations.swap_p, shown[1], [value])
        elif holder is None:
            self._value = self._bound(value)
        else:
            holder.cell(self).value = value

    def _check_written(self, value: Any, what: str, crossed: Sequence[Trace]) -> None:
        """Raise RefError where `value` is of a trace between here and the holder's."""
        if isinstance(value, Tracer) and value.owner in crossed:
            mapped = value.owner.name == "vmap"
            how = ("vmapped value on an unbatched", "vmapped") if mapped else (
                "a differentiated value on a non-differentiated", "differentiated")  # fmt: skip
            preposition = "to" if mapped else "of"
            raise RefError(
                f"performing {what} operation with {how[0]} array reference of type {self.aval}. "
                f"Move the array reference to be an argument {preposition} the {how[1]} function?"
            )

    def put_back(self, value: Any) -> None:
        """`put` of what a program left in it: no weak type is kept there."""
        if type(value) is ArrayImpl and value.aval.weak_type:
            value = ArrayImpl(value._value, value.aval.strong())
        elif value.weak_type:  # traced, or laid out over devices
            value = convert(value, value.dtype)
        self.put(value)

    # ---------------------------------------------------------------- reading and writing
    def get(self, idx: Any = None) -> Any:
        """The value, or a part of it."""
        if _watched:
            _note_read(self)
        if current_trace() is not EVAL and (shown := self._shown()) is not None:
            return self._written_down(shown, equations.get_p, idx)
        value = self.value()
        weak = self.aval.weak_type
        if value.weak_type != weak and (
            not isinstance(value, Tracer) or current_trace().staging is None
        ):
            value = convert(value, value.dtype, weak)
            own = type(self) is Ref and not isinstance(self._value, Tracer)
            if own and self._holder()[0] is None:
                value = self._value = self._bound(value)  # as JAX prints it from now on
        return value if whole(idx) else value[self._index(idx)]

    def set(self, value: Any, idx: Any = None) -> None:
        """Replace the value, or a part of it."""
        self.swap(value, idx)

    def swap(self, value: Any, idx: Any = None) -> Any:
        """Replace the value, or a part of it; gives what was there."""
        if current_trace() is not EVAL and (shown := self._shown()) is not None:
            value = self._fitting("swap", value, self._part(idx))
            return self._written_down(shown, equations.swap_p, idx, value)
        old = self.get(idx)
        value = self._fitting("swap", value, old)
        if whole(idx):
            self.put(value)
        else:
            self.put(self.value().at[self._index(idx)].set(value))
        return old

    def addupdate(self, x: Any, idx: Any = None) -> None:
        """Add `x` to the value, or to a part of it."""
        if current_trace() is not EVAL and (shown := self._shown()) is not None:
            x = self._fitting("addupdate", x, self._part(idx))
            self._written_down(shown, equations.addupdate_p, idx, x)
            return
        old = self.get(idx)
        x = self._fitting("addupdate", x, old)
        if whole(idx):
            self.put(old + x, "an addupdate")
        else:
            at = self.value().at[self._index(idx)]
            self.put(at.max(x) if dtypes.is_bool(old.dtype) else at.add(x), "an addupdate")

    def _part(self, idx: Any) -> Any:
        """The aval of the value, or of a part of it."""
        if whole(idx):
            return self.aval.inner_aval
        index = equations.indexer(self._index(idx), self.shape)
        shape = RefPart(self, idx).shape if index is None else index.get_indexer_shape()
        return self.aval.inner_aval.update(shape=shape)

    def _written_down(self, shown: tuple, primitive: Any, idx: Any, *operands: Any) -> Any:
        """What an equation on the reference gives, or on what it holds where the index is none of
        those that equations have."""
        trace, variable, crossed = shown
        what = "an addupdate" if primitive is equations.addupdate_p else "a set/swap"
        for x in operands:
            self._check_written(x, what, crossed)
        index = None if whole(idx) else equations.indexer(self._index(idx), self.shape)
        if whole(idx) or index is not None and not equations.owned_by(index, crossed):
            indices = () if index is None else (index,)
            return equations.recorded(trace, primitive, variable, operands, indices)
        old = equations.recorded(trace, equations.get_p, variable)
        if not operands:
            return old[idx]
        at = old.at[idx]
        self.put(at.add(*operands) if what == "an addupdate" else at.set(*operands), what)
        return old[idx]

    def _fitting(self, what: str, value: Any, old: Any) -> Any:
        value = as_array(value)
        if value.weak_type and what == "swap":
            # A Python number takes the reference's width, and keeps its kind.
            kinds = (dtypes.is_floating, dtypes.is_integer, dtypes.is_complex)
            if any(of(value.dtype) and of(self.dtype) for of in kinds):
                value = convert(value, self.dtype)
        elif what == "swap" and dtypes.is_integer(value.dtype) and dtypes.is_integer(self.dtype):
            value = convert(value, self.dtype)
        if value.dtype != self.dtype:
            raise ValueError(
                f"Invalid dtype for `{what}`. Ref dtype: {self.dtype}. Value dtype: {value.dtype}. "
                "Convert the value with astype."
            )
        if value.shape != old.shape:
            raise ValueError(
                f"Invalid shape for `{what}`. Ref shape: {self.shape}. Expected shape: "
                f"{old.shape}. Value shape: {value.shape}. Broadcast the value with "
                "jnp.broadcast_to."
            )
        return value

    def _index(self, idx: Any) -> Any:
        """`idx`, where it can be an index. Raises ValueError where it is out of bounds."""
        parts = idx if isinstance(idx, tuple) else (idx,)
        named = [p for p in parts if p is not None and p is not Ellipsis]
        if len(named) > self.ndim:
            raise ValueError(
                f"`indices` must not be longer than `shape`: indices={parts}, shape={self.shape}"
            )
        for part in parts:
            if getattr(part, "dtype", None) == np.bool_:
                raise errors.NonConcreteBooleanIndexError(
                    f"Array boolean indices must be concrete; got {part!r}. Use jnp.where on the "
                    "value, or integers."
                )
            if isinstance(part, slice) and isinstance(part.step, int) and part.step < 1:
                raise ValueError(f"slice must have a step >= 1 (found: {part.step})")
        if Ellipsis not in [p for p in parts if isinstance(p, type(Ellipsis))]:
            for part, n in zip(named, self.shape, strict=False):
                if isinstance(part, int) and not -n <= part < n:
                    raise ValueError(f"Out of bound indexer: idx={part}, dim={n}.")
        return idx

    def __getitem__(self, idx: Any) -> Any:
        return self.get(idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self.swap(value, idx)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a reference to an array without dimensions.")
        return self.shape[0]

    @property
    def at(self) -> _Parts:
        """`ref.at[i]`, a reference to a part: reading and writing it, or parts of it, reads and
        writes there."""
        return _Parts(self)

    # ---------------------------------------------------------------- what it is
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of an element."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.aval.size

    @property
    def sharding(self) -> Any:
        """Where it lies."""
        return self.value().sharding

    @property
    def committed(self) -> bool:
        """Whether it was put where it is."""
        return self.value().committed

    def unsafe_buffer_pointer(self) -> int:
        return self.value().unsafe_buffer_pointer()

    def block_until_ready(self) -> Ref:
        """Wait for the value."""
        self.value().block_until_ready()
        return self

    def __repr__(self) -> str:
        if isinstance(self._value, Tracer):
            return f"JitTracer({self.aval.str_short()})"
        return "Ref" + repr(self._value).removeprefix("Array")


class _Parts:
    """`ref.at`."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        self.ref = ref

    def __getitem__(self, idx: Any) -> RefPart:
        return RefPart(self.ref, idx)


class RefPart:
    """A part of a reference, as a reference. In trees it is a node: of the reference, and of the
    arrays in its index."""

    __slots__ = ("ref", "idx")

    def __init__(self, ref: Any, idx: Any) -> None:
        self.ref, self.idx = ref, idx

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        parts = self.idx if type(self.idx) is tuple else (self.idx,)
        known = [np.zeros(x.shape, int) if isinstance(x, Array) else x for x in parts]
        full = np.broadcast_to(np.int8(0), self.ref.shape)
        return full.shape if whole(self.idx) else full[tuple(known)].shape

    @property
    def dtype(self) -> Any:
        """The dtype of an element."""
        return self.ref.dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def at(self) -> _Parts:
        return _Parts(self)

    def _shown(self, primitive: Any, idx: Any, *operands: Any) -> Any:
        """The results of an equation on a part of a part, in a list; None where there is none."""
        ref, path = self, [idx]
        while type(ref) is RefPart:
            ref, path = ref.ref, [ref.idx, *path]
        shown = ref._shown() if isinstance(ref, Ref) else None
        if shown is None or shown[2]:
            return None
        shape, indices = ref.shape, []
        for part in path:
            if not whole(part):
                index = equations.indexer(part, shape)
                if index is None:
                    return None
                indices.append(index)
                shape = index.get_indexer_shape()
        given = [
            ref._fitting(primitive.name, x, ref.aval.inner_aval.update(shape=shape))
            for x in operands
        ]
        return [equations.recorded(shown[0], primitive, shown[1], given, indices)]

    def get(self, idx: Any = None) -> Any:
        if (found := self._shown(equations.get_p, idx)) is not None:
            return found[0]
        part = self.ref.get(self.idx)
        return part if whole(idx) else part[idx]

    def swap(self, value: Any, idx: Any = None) -> Any:
        if (found := self._shown(equations.swap_p, idx, value)) is not None:
            return found[0]
        part = self.ref.get(self.idx)
        if whole(idx):
            return self.ref.swap(value, self.idx)
        self.ref.swap(part.at[idx].set(value), self.idx)
        return part[idx]

    def set(self, value: Any, idx: Any = None) -> None:
        self.swap(value, idx)

    def addupdate(self, x: Any, idx: Any = None) -> None:
        if self._shown(equations.addupdate_p, idx, x) is None:
            self.swap(self.get(idx) + x, idx)

    def __getitem__(self, idx: Any) -> Any:
        return self.get(idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self.swap(value, idx)


def _part_parts(part: RefPart) -> tuple[list, tuple]:
    """A part's children, and what else its index holds: slices as tuples, which have a hash."""
    parts = part.idx if type(part.idx) is tuple else (part.idx,)
    plain = (int, np.integer, slice, type(None), type(Ellipsis))
    arrays = [not isinstance(x, plain) for x in parts]
    rest = tuple([
        (x.start, x.stop, x.step) if isinstance(x, slice) else _ARRAY if a else x
        for x, a in zip(parts, arrays, strict=True)
    ])  # fmt: skip
    return [part.ref, *[x for x, a in zip(parts, arrays, strict=True) if a]], rest


def _part_of(rest: tuple, children: Any) -> RefPart:
    ref, *given = children
    arrays = iter(given)
    return RefPart(ref, tuple([
        slice(*x) if type(x) is tuple else next(arrays) if x is _ARRAY else x for x in rest
    ]))  # fmt: skip


_ARRAY = "an array"  # in what a part's index holds beside its arrays
register_pytree_node(RefPart, _part_parts, _part_of)


def refuse_parts(what: str, args: Any) -> None:
    """Raise TypeError where a part of a reference is among the arguments."""
    for x in tree_leaves(args, is_leaf=lambda x: type(x) is RefPart):
        if type(x) is RefPart:
            raise TypeError(
                f"{what}: TransformedRefs are not allowed as arguments: ref.at[...] of type "
                f"{x.ref.aval}. Pass the reference, or use its part by closure."
            )


def variable_of(ref: Ref, trace: Any = None) -> Any:
    """The variable that stands for `ref` in a staging trace, the current one unless given: where
    jaxprs are to be read, and there are staging traces alone between it and the reference's home.
    None where there is none; the reference itself outside of traces."""
    trace = current_trace() if trace is None else trace
    if trace is ref.home:
        if trace is EVAL:
            return ref
        return ref._value if isinstance(ref._value.aval, AbstractRef) else None
    if trace is None or trace.staging is not trace or type(ref) is not Ref:
        return None
    cell = (trace.refs or {}).get(ref)
    if cell is not None and cell.argument:
        raise ValueError(
            f"when tracing {trace.fun_name} for jit, a mutable array reference of type {ref.aval} "
            f"was both closed over and passed as the argument {cell.argument}"
        )
    if cell is not None:
        return cell.start if cell.shown else None
    if not config.jax_form() or trace.parent is EVAL and not trace.outermost:
        return None
    outside = variable_of(ref, trace.parent)
    return None if outside is None else trace.cell(ref, shown=True).start


def as_argument(ref: Ref, name: str) -> Ref:
    """What the function that is staged is given for the argument `name`, a reference: where it is
    shown, one that stands for the same variable, so that this is the only one to be used."""
    variable = variable_of(ref)
    if variable is None or variable is ref:
        return ref
    current_trace().refs[ref].argument = name  # type: ignore[attr-defined]
    given = Ref(ref.aval, variable)
    given.origin = name
    return given


def made_around(ref: Ref, trace: Any) -> bool:
    """Whether a reference that is shown in a staging trace was made in a function around, or is an
    argument of one."""
    while (trace := trace.parent) is not EVAL:
        if trace is ref.home:
            return True
    return False


class RefError(Exception):
    """A reference was written under a transformation that it does not take part in."""


def whole(idx: Any) -> bool:
    if type(idx) is tuple:
        return not idx or len(idx) == 1 and idx[0] is Ellipsis
    return idx is None or idx is Ellipsis


@equations.does(equations.new_ref_p)
def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference that holds the array `init_val`; see `numjet.new_ref`."""
    if isinstance(init_val, Ref):
        raise TypeError("new_ref: the value is a reference already. Pass its value, ref[...].")
    try:
        # The user may write into a NumPy array later.
        value = as_array(init_val.copy() if type(init_val) is np.ndarray else init_val)
    except TypeError:
        raise TypeError(
            "Error interpreting argument to new_ref as a JAX value. The problematic value is of "
            f"type {type(init_val)} and was passed to new_ref at position 0. Make a reference for "
            "each array (tree_map)."
        ) from None
    aval = AbstractRef(value.aval, memory_space, kind)
    params = {"memory_space": memory_space, "kind": kind}
    return made(equations.new_ref_p, aval, [value], params)


def made(primitive: Any, aval: AbstractRef, operands: list, params: dict) -> Any:
    """A reference of the one operand, by an equation where jaxprs are to be read; None where that
    has no operand, and there are no equations."""
    trace = current_trace()
    value = operands[0] if operands else None
    if isinstance(value, Tracer):
        value.in_scope(primitive.name)
    if config.jax_form() and trace.staging is trace:
        value = trace.record_effect(primitive, operands, params, aval)
    elif value is None:
        return None
    elif config.jax_form() and (made_ref := getattr(trace, "made_ref", None)) is not None:
        if (found := made_ref(value, params)) is not None:
            return found
    ref = Ref(aval, value)
    ref.origin = user_source()
    return ref


def frozen(ref: Ref, primitive: Any = equations.freeze_p) -> Any:
    """The value of a reference that is not used any more."""
    shown = ref._shown()
    if shown is None or shown[0] is not ref.home or shown[2]:
        return ref.get()
    return equations.recorded(shown[0], primitive, shown[1])


@equations.does(equations.freeze_p)
@equations.does(equations.free_ref_p)
def _ended(ref: Ref) -> Any:
    return frozen(ref)


# ------------------------------------------------------------------ references among arguments
# References that `watched` watches -> the trace around, and those that were read.
_watched: dict[Ref, tuple[Any, list[Ref]]] = {}


def _note_read(ref: Ref) -> None:
    around, read = _watched.get(ref, (None, None))
    if read is not None and current_trace() is not around:
        read.append(ref)


@contextmanager
def watched(refs: Iterable[Ref]) -> Iterator[list[Ref]]:
    """Watch references; gives a list that gets those that are read under another trace than the
    one around (where rules of the user read them)."""
    read: list[Ref] = []
    refs = list(refs)
    for ref in refs:
        _watched[ref] = current_trace(), read
    try:
        yield read
    finally:
        for ref in refs:
            _watched.pop(ref, None)


# A reference that was made in a differentiated function -> what stands for it after that.
_lasting: weakref.WeakKeyDictionary[Ref, Ref] = weakref.WeakKeyDictionary()


def _primal(ref: Ref) -> Any:
    """What a reference holds, without its tangent, where its home is a trace that is not around and
    nothing else is there to hold it; else None."""
    trace: Any = current_trace()
    while trace is not None and trace is not ref.home:
        trace = trace.parent
    value = ref._value
    if trace is not None or isinstance(value.aval, AbstractRef):
        return None
    if isinstance(value, Tracer) and value.owner is ref.home:
        known = type(getattr(value, "tangent", None)) is Zero
        return getattr(value, "primal", None) if known else None
    return value


def lasting(ref: Ref) -> Ref:
    """`ref`, or, where the differentiated function that it was made in has returned, a reference to
    what it held at the end: for backward passes."""
    if ref not in _lasting and (value := _primal(ref)) is not None:
        _lasting[ref] = Ref(ref.aval, value)
    return _lasting.get(ref, ref)


class _Held:
    """A reference in a tree of arguments, as a node without leaves: it comes back as it went."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


register_pytree_node(_Held, lambda held: ((), held.ref), lambda ref, _: ref)


def hold(value: Any) -> Any:
    """`value` with nodes in place of references; None where there is no reference."""
    leaves, _ = tree_flatten(value)
    if not any([isinstance(x, Ref) for x in leaves]):
        return None
    return tree_map(lambda x: _Held(x) if isinstance(x, Ref) else x, value)


def refuse_returned(value: Any, what: str, path: str = "") -> None:
    """Raise ValueError where a result, which is at `path`, is a reference."""
    if isinstance(value, Ref):
        origin = value.origin
        if isinstance(origin, str):
            told = f"\n\nThe returned reference was passed in as the argument {origin}."
        else:
            told = f"\n\nThe returned reference was created on line {origin}." * bool(origin)
        at = f" at output tree path result{path}" * bool(path)
        raise ValueError(
            f"{what} returned a mutable array reference of type {value.aval}{at}, but mutable "
            f"array references cannot be returned.{told} Return its value, ref[...]."
        )


def refuse_twice(function: str, label: str, leaves: Sequence[Any], names: Sequence[str]) -> None:
    """Raise ValueError where a reference is twice among the leaves of a function's arguments."""
    first: dict[Ref, str] = {}
    for x, name in zip(leaves, names, strict=True):
        if isinstance(x, Ref) and first.setdefault(x, name) != name:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {function} for {label} the mutable array reference of type "
                f"{x.aval} appeared at both {first[x]} and {name}."
            )


def read_under(ref: Ref, trace: Any) -> Any:
    """The value of a reference under another trace."""
    with set_trace(trace):
        return ref.value()


__all__ = [
    "AbstractRef", "Array", "Cell", "Ref", "RefPart", "RefUse", "hold", "new_ref", "read_under",
    "watched",
]  # fmt: skip
