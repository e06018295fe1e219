"""Equations of references, which `make_jaxpr` shows (`b:f32[] <- a[0]`), and their effects.

What runs knows no references (`core.refs`): a jaxpr is a function of what they hold. Where jaxprs
are made to be read (the flag `jax_equations`) a reference is a variable, and what is done with it
an equation of one of the primitives here. Their `bind` does to the reference what the equation
says, wherever it is called, so that interpreters of jaxprs, ours and the users', change the
references that they are given; an operation that holds jaxprs of references (`OverRefs`: loops,
branches, calls) is traced again over these. What would break it: such a jaxpr that reaches a
compiler without `core.stretched.written_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numjet.base.tree import register_pytree_node, tree_flatten, tree_unflatten
from numjet.core import hooks
from numjet.core.array import Array
from numjet.core.avals import AbstractValue, ShapedArray
from numjet.core.effects import Effect
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from numjet.core.primitive import NO_EFFECTS, Met, Primitive


class AbstractRef(AbstractValue):
    """The aval of a reference: that of its value."""

    __slots__ = ("inner_aval", "memory_space", "kind")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None) -> None:
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of an element."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.inner_aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way in promotion."""
        return self.inner_aval.weak_type

    @property
    def sharding(self) -> Any:
        """Where the value lies, as its type says."""
        return self.inner_aval.sharding

    def str_short(self, short_dtypes: bool = False, *_: Any, **__: Any) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval is other.inner_aval

    def __hash__(self) -> int:
        return hash(("Ref", self.inner_aval))

    def __repr__(self) -> str:
        return self.str_short()


# ------------------------------------------------------------------ effects
class JaxprInputEffect(Effect):
    """What an equation does to one of its operands, `input`, a variable of the jaxpr."""

    __slots__ = ("input",)

    def __init__(self, input: Var) -> None:
        self.input = input

    def replace(self, input: Var) -> JaxprInputEffect:
        """The same effect on another variable."""
        return type(self)(input)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.input is self.input

    def __hash__(self) -> int:
        return hash((type(self), self.input))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.input})"


class RefEffect(JaxprInputEffect):
    """A reference is read or written."""

    __slots__ = ()
    name = "Ref"

    def __str__(self) -> str:
        return f"{self.name}<{self.input}>"


class ReadEffect(RefEffect):
    """It is read."""

    __slots__ = ()
    name = "Read"


class WriteEffect(RefEffect):
    """It is written."""

    __slots__ = ()
    name = "Write"


class AccumEffect(RefEffect):
    """Something is added to it."""

    __slots__ = ()
    name = "Accum"


class InternalMutableArrayEffect(Effect):
    """A reference is made, or given up."""

    __slots__ = ()


INTERNAL = InternalMutableArrayEffect()


def on_operands(effects: Iterable[Any], params: dict, invars: Sequence[Any]) -> frozenset:
    """Effects of the jaxprs that an equation holds as effects of the equation: on its operands."""
    operand_of: dict[Any, Any] = {}
    if "body_jaxpr" in params:
        n, m = params["cond_nconsts"], params["body_nconsts"]
        pairs = [(params["cond_jaxpr"], [*invars[:n], *invars[n + m :]])]
        pairs.append((params["body_jaxpr"], [*invars[n:]]))
    elif "branches" in params:
        pairs = [(branch, [*invars[1:]]) for branch in params["branches"]]
    else:
        held = [x for x in params.values() if isinstance(x, ClosedJaxpr | Jaxpr)]
        pairs = [(jaxpr, [*invars]) for jaxpr in held]
    for jaxpr, operands in pairs:
        inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
        operand_of.update(zip(inner.invars, operands, strict=False))
    found = []
    for effect in effects:
        if not isinstance(effect, JaxprInputEffect):
            found.append(effect)
        elif type(operand := operand_of.get(effect.input)) is Var:
            found.append(effect.replace(operand))
    return frozenset(found)


def of_inputs(effects: frozenset, inputs: Iterable[Any]) -> frozenset:
    """A jaxpr's effects: of those on references only those on its inputs."""
    if not any([isinstance(e, JaxprInputEffect) for e in effects]):
        return effects
    known = {*inputs}
    return frozenset([
        e for e in effects if not isinstance(e, JaxprInputEffect) or e.input in known
    ])  # fmt: skip


# ------------------------------------------------------------------ indices
class Slice:
    """`size` elements from `start` on, every `stride`-th. The start may be an array; it is moved so
    that the slice lies inside, as `lax.dynamic_slice` does. A pytree of what is traced."""

    __slots__ = ("start", "size", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1) -> None:
        self.start, self.size, self.stride = start, size, stride

    @property
    def is_dynamic_start(self) -> bool:
        return not isinstance(self.start, (int, np.integer))

    @property
    def is_dynamic_size(self) -> bool:
        return not isinstance(self.size, (int, np.integer))

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The same elements of an axis of `size`, as a Slice."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"Slice.from_slice: the step must be positive, got {slc}.")
        return cls(start, max(-(-(stop - start) // step), 0), step)

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash(_fields(self))


def _fields(s: Slice) -> tuple:
    return s.start, s.size, s.stride


def _flatten(s: Slice) -> tuple[tuple, tuple]:
    traced = (s.is_dynamic_start, s.is_dynamic_size)
    children = tuple([v for v, t in zip((s.start, s.size), traced, strict=True) if t])
    known = tuple([None if t else v for v, t in zip((s.start, s.size), traced, strict=True)])
    return children, (traced, known, s.stride)


def _unflatten(aux: tuple, children: Any) -> Slice:
    traced, known, stride = aux
    given = iter(children)
    start, size = [next(given) if t else v for v, t in zip(known, traced, strict=True)]
    return Slice(start, size, stride)


register_pytree_node(Slice, _flatten, _unflatten)


class NDIndexer:
    """An index of a reference of `shape`, with an entry for each axis: a number, an array of
    numbers, or a Slice."""

    __slots__ = ("indices", "shape", "int_indexer_shape")

    def __init__(self, indices: Sequence[Any], shape: tuple, int_indexer_shape: tuple = ()) -> None:
        self.indices, self.shape = tuple(indices), shape
        self.int_indexer_shape = int_indexer_shape

    def get_indexer_shape(self) -> tuple[int, ...]:
        """The shape of what is read there."""
        known = [
            slice(0, s.size) if type(s) is Slice else np.zeros(np.shape(s), int)
            for s in self.indices
        ]
        full = [s.size if type(s) is Slice else n
                for s, n in zip(self.indices, self.shape, strict=True)]  # fmt: skip
        return np.broadcast_to(np.int8(0), full)[tuple(known)].shape

    def apart(self) -> tuple[list, tuple]:
        """What is traced of it, and the rest."""
        leaves, structure = tree_flatten(self.indices)
        return leaves, (structure, self.shape, self.int_indexer_shape)

    def index(self) -> tuple:
        """As Python writes it, but for slices that begin at a traced place, which stay as they
        are."""
        return tuple([_as_python(s) if type(s) is Slice else s for s in self.indices])

    def __repr__(self) -> str:
        return f"NDIndexer(indices={self.indices}, shape={self.shape})"


register_pytree_node(
    NDIndexer,
    NDIndexer.apart,
    lambda aux, leaves: NDIndexer(tree_unflatten(aux[0], leaves), *aux[1:]),
)


def _as_python(s: Slice) -> Any:
    return slice(s.start, s.start + (s.size - 1) * s.stride + 1 if s.size else s.start, s.stride) \
        if type(s.start) is int else s


def indexer(idx: Any, shape: tuple[int, ...]) -> NDIndexer | None:
    """An index as equations hold it; None for what they do not."""
    parts = list(idx) if type(idx) is tuple else [idx]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1 or any([part is None for part in parts]):
        return None
    free = len(shape) - len(parts) + len(dots)
    at = dots[0] if dots else len(parts)
    parts[at : at + len(dots)] = [slice(None)] * free
    if len(parts) != len(shape):
        return None
    found, arrays = [], []
    for part, n in zip(parts, shape, strict=True):
        entry = _entry(part, n)
        if entry is None:
            return None
        found.append(entry)
        arrays.append(() if type(entry) is Slice else np.shape(entry))
    return NDIndexer(found, shape, np.broadcast_shapes(*arrays))


def _entry(part: Any, n: int) -> Any:
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        if not all([x is None or isinstance(x, int | np.integer) for x in bounds]):
            return None
        start, stop, step = part.indices(n)
        return Slice(start, max(-(-(stop - start) // step), 0), step) if step > 0 else None
    if isinstance(part, bool | np.bool_):
        return None
    if isinstance(part, int | np.integer):
        return int(part)
    if isinstance(part, Array | np.ndarray):
        return part if np.issubdtype(part.dtype, np.integer) else None
    if hasattr(part, "stride") and isinstance(part.size, int):  # `ds(start, size)`
        start = int(part.start) if isinstance(part.start, int | np.integer) else part.start
        return Slice(start, part.size, part.stride)
    return None


# ------------------------------------------------------------------ operations
class RefPrimitive(Primitive):
    """An operation on a reference, the first operand: `run(ref, *operands, **params)`.

    In no registry: no transformation and no compiler is given one.
    """

    __slots__ = ("__dict__",)

    def __init__(
        self, name: str, effect: type | None, avals: Callable | None = None, several: bool = False
    ) -> None:
        """effect: on the first operand; avals: those of the results, from the operands'."""
        self.name, self.effect, self.multiple_results = name, effect, several
        self.avals = avals
        self.effects = frozenset((INTERNAL,))
        self.higher_order = self.differentiable = True
        self.linear = self.elementwise = self.collective = self.every_map = False
        self.reference = self.prune = self.hlo = self.transpose = self.partial_eval = None
        self.stage = self.jvp = self.expansion = self.evaluate = self.run = None

    def bind(self, *args: Any, **params: Any) -> Any:
        """Do to the reference what an equation says."""
        return _DOES[self](*args, **params)

    def out_avals(self, avals: tuple, params: dict) -> Any:
        """What the equation gives."""
        return None if self.avals is None else self.avals(*avals, **params)

    def effects_of(self, params: dict, avals: tuple = ()) -> frozenset:
        return NO_EFFECTS

    def get_bind_params(self, params: dict) -> dict:
        """The params that `bind` takes, from an equation's: all of them."""
        return params

    def __reduce__(self) -> tuple:
        return _by_name, (f"{self.name}_p",)


def _by_name(name: str) -> Any:
    return globals()[name]


def _part(aval: Any, *leaves: Any, tree: Any) -> Any:
    shape, found = aval.shape, aval.inner_aval
    for index in tree_unflatten(tree, leaves):
        shape = index.get_indexer_shape()
    return found.update(shape=shape) if shape != found.shape else found


def _reached(ref: Any, leaves: Sequence[Any], tree: Any) -> Any:
    """The reference, or a part of it, and the index that is left."""
    indices = [x.index() for x in tree_unflatten(tree, leaves)]
    for idx in indices[:-1]:
        ref = ref.at[idx]
    return ref, indices[-1] if indices else Ellipsis


get_p = RefPrimitive("get", ReadEffect, _part)
swap_p = RefPrimitive(
    "swap", WriteEffect, lambda ref, value, *leaves, tree: _part(ref, *leaves, tree=tree)
)
addupdate_p = RefPrimitive("addupdate", AccumEffect, lambda *_, **__: [], several=True)
new_ref_p = RefPrimitive("new_ref", None)
empty_ref_p = RefPrimitive("empty_ref", None)
freeze_p = RefPrimitive("freeze", None, lambda ref: ref.inner_aval)
# Of arrays: what a jaxpr of references to them leaves in these.
run_state_p = RefPrimitive("run_state", None, lambda *avals, **_: list(avals), several=True)
free_ref_p = RefPrimitive("free_ref", None, lambda ref: [], several=True)

# What they do; those that make a reference in `core.refs` and `numjet.ref`.
_DOES: dict[Primitive, Callable] = {}


def does(primitive: Primitive) -> Callable:
    """A decorator: the function (*args, **params) is what `bind` does."""

    def enter(run: Callable) -> Callable:
        _DOES[primitive] = run
        return run

    return enter


@does(get_p)
def _get(ref: Any, *leaves: Any, tree: Any) -> Any:
    ref, idx = _reached(ref, leaves, tree)
    return ref.get(idx)


@does(swap_p)
def _swap(ref: Any, value: Any, *leaves: Any, tree: Any) -> Any:
    ref, idx = _reached(ref, leaves, tree)
    return ref.swap(value, idx)


@does(addupdate_p)
def _addupdate(ref: Any, value: Any, *leaves: Any, tree: Any) -> list:
    ref, idx = _reached(ref, leaves, tree)
    ref.addupdate(value, idx)
    return []


def recorded(
    trace: Any, primitive: RefPrimitive, variable: Any, operands: Sequence[Any] = (),
    indices: Sequence[NDIndexer] = (),
) -> Any:
    """Write an equation on the reference of `variable` down in a staging trace."""
    params: dict[str, Any] = {}
    leaves: Sequence[Any] = ()
    if primitive.effect is not None:
        leaves, params["tree"] = tree_flatten(tuple(indices))
    return trace.record_effect(primitive, [variable, *operands, *leaves], params)


def owned_by(index: NDIndexer, traces: Sequence[Any]) -> bool:
    """Whether a value in an index is of one of the traces."""
    return any([getattr(x, "owner", None) in traces for x in tree_flatten(index)[0]])


# ------------------------------------------------------------------ what holds jaxprs of references
class OverRefs(Primitive):
    """An operation that holds jaxprs, whose operands may be references where an equation of
    `make_jaxpr`'s is run: `ops.over_refs` says what it does then."""

    __slots__ = ()


def bind_over_refs(self: OverRefs, *args: Any, **params: Any) -> Any:
    for x in args:
        if isinstance(getattr(x, "aval", None), AbstractRef) and not hasattr(x, "owner"):
            return _DOES[self](*args, **params)
    return Primitive.bind(self, *args, **params)


class Made:
    """Whether an equation of a reference was ever written down."""

    any = False


def made() -> None:
    """Note that one was: programs may run it from now on."""
    if not Made.any:
        Made.any = True
        Met.shown(new_ref_p, lambda eqn: eqn)  # jaxprs that hold one are rewritten as a whole
        hooks.install(OverRefs, {"bind": bind_over_refs})

