"""Primitives of the user's: operations made of rules that are registered one by one.

`extend.core.Primitive` and the registers of `numjet.interpreters` are views of what lies here. To
the transformations such a primitive is a record like every other (`core.primitive`), whose fields
look its rules up when they are needed, so that a rule registered later, or another one, counts
from then on. The conventions are those of the programming model: rules for tangents and cotangents
as ours, batching without the axis, `def_impl` for concrete values, a lowering that is traced or,
where it is written in MLIR, stands for a call of `def_impl`. What would break it: code that keeps
what a rule gave for operands of these avals; such code asks `higher_order`, which is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from numjet.core import primitive as core
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import AbstractValue
from numjet.core.evaluate import run_compiled
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.core.lowering import Host
from numjet.core.primitive import NO_EFFECTS, Zero
from numjet.core.trace import EVAL, Tracer, aval_of, current_trace, leaked, set_trace
from numjet.core.typed_numbers import typed
from numjet.transforms.batch import Axis
from numjet.transforms.stage import stage_closed


class NeedsMLIR(NotImplementedError):
    """Code that was written for MLIR asked for it: there is none here."""


class AxisData:
    """The axis of a vmap as batching rules see it: `name`, `size`, `spmd_name`."""

    __slots__ = ("name", "size", "spmd_name", "explicit_mesh_axis")

    def __init__(
        self, name: Any, size: int, spmd_name: Any = None, explicit_mesh_axis: Any = None
    ) -> None:
        self.name, self.size = name, size
        self.spmd_name, self.explicit_mesh_axis = spmd_name, explicit_mesh_axis

    def __repr__(self) -> str:
        return f"AxisData(name={self.name}, size={self.size}, spmd_name={self.spmd_name})"


class LoweredFun:
    """A lowering written as a function of arrays (`mlir.lower_fun`): called with a context and
    values it gives a list of values."""

    def __init__(self, fun: Callable, multiple_results: bool) -> None:
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx: Any, *values: Any, **params: Any) -> list[Any]:
        args = [x.array if type(x) is Value else x for x in values]
        out = self.fun(*args, **params)
        outs = out if self.multiple_results else [out]
        return [Value(as_array(x)) for x in outs]


class Value:
    """What a lowering rule gets for an operand and gives for a result. It stands for an array that
    is traced; what only MLIR knows of it raises NeedsMLIR."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        raise NeedsMLIR(f"A lowering rule asked an operand for {name!r}. {NO_MLIR}")


NO_MLIR = (
    "numjet compiles without MLIR: write the lowering as mlir.lower_fun(function of arrays), or "
    "give the primitive def_impl, which compiled programs then call."
)


class LoweringContext:
    """The first argument of lowering rules: the primitive and the avals of operands, results."""

    def __init__(self, primitive: Primitive, avals_in: Sequence[Any], avals_out: Sequence[Any]):
        self.primitive, self.avals_in, self.avals_out = primitive, avals_in, avals_out

    def __getattr__(self, name: str) -> Any:
        raise NeedsMLIR(f"A lowering rule asked its context for {name!r}. {NO_MLIR}")


class Lowerable:
    """Which effects of users' primitives a compiled program may have (`mlir.lowerable_effects`)."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Allow effects of this type and of types derived from it."""
        self.types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Whether the effect is allowed."""
        return isinstance(effect, tuple(self.types))

    def filter_in(self, effects: Any) -> list[Any]:
        """The allowed ones among `effects`."""
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects: Any) -> list[Any]:
        """The others among `effects`."""
        return [e for e in effects if not self.contains(e)]


lowerable_effects = Lowerable()


class _EveryPrimitive(type):
    """Our own primitives are instances of `Primitive` too."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, core.Primitive) if cls is Primitive else type.__instancecheck__(cls, x)


class Primitive(core.Primitive, metaclass=_EveryPrimitive):
    """An operation made of rules: `Primitive(name)`, then `def_impl`, `def_abstract_eval`, and the
    registers of `numjet.interpreters` (`ad.primitive_jvps`, `batching.primitive_batchers`, ...).
    A class derived from it may have the methods `impl` and `abstract_eval` (the avals and a set of
    effects), and set `multiple_results`.

    `bind(*arrays, **params)` applies it, to a list of results where `multiple_results` is set. What
    a rule is missing for raises NotImplementedError when it is needed.

    >>> import numjet as nj
    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import ad
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear2(twice_p, lambda ct, x: [twice_p.bind(ct)])
    >>> print(nj.grad(lambda x: twice_p.bind(x) * x)(3.0))
    12.0
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.effects: Any = _ask_rule
        several = getattr(type(self), "multiple_results", None) is True
        # The slot, which native code reads, and the attribute, where a class has one of that name.
        vars(core.Primitive)["multiple_results"].__set__(self, several)
        self.multiple_results = several
        self.linear = self.elementwise = self.collective = self.lays_out = False
        # Nothing of it is remembered, as its rules may change.
        self.higher_order = self.differentiable = True
        self.reference = self.prune = self.hlo = self.shard = self.run = self.transpose = None
        self.partial_eval = self.stage = None
        self.eager, self.runs, self._abstract_cache = {}, {}, {}
        self.every_map = False
        self.loops = Host()
        self.abstract = self._no_abstract_eval
        self.abstract_eval_rule: Callable = self._no_abstract_eval
        self.evaluate = self._evaluate
        self.jvp, self.batch = self._jvp, self._batch
        self.expansion = self._expansion
        self.jvp_rule: Callable | None = None
        self.batch_rule: Callable | None = None
        self.fancy_batch_rule: Callable | None = None
        self.axis_batch_rule: Callable | None = None
        self.lowerings: dict[str | None, Callable] = {}
        # A class that has the method `abstract_eval` gives effects with the avals.
        self.effectful = type(self).abstract_eval is not Primitive.abstract_eval

    # ------------------------------------------------------------ definition
    def def_impl(self, impl: Callable) -> Callable:
        """Set how concrete values are computed: `impl(*arrays, **params)`. Usable as a
        decorator."""
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Set the rule for shapes and dtypes: `abstract_eval(*avals, **params)` gives an aval, or
        a list of them where there are several results. Usable as a decorator."""
        self.abstract_eval_rule, self.effectful = abstract_eval, False
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """As `def_abstract_eval`; the rule gives the avals and a set of effects."""
        self.abstract_eval_rule, self.effectful = abstract_eval, True
        return abstract_eval

    def impl(self, *args: Any, **params: Any) -> Any:
        """Compute concrete values; `def_impl` sets it."""
        raise NotImplementedError(f"Evaluation rule for {self.name!r} not implemented")

    @property
    def has_impl(self) -> bool:
        """Whether `def_impl` was called, or the class has the method."""
        return "impl" in self.__dict__ or type(self).impl is not Primitive.impl

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, frozenset]:
        """The result's aval (or avals), and the effects."""
        if self.effectful:
            out, effects = self.abstract_eval_rule(*avals, **params)
            return out, frozenset(effects)
        return self.abstract_eval_rule(*avals, **params), NO_EFFECTS

    def is_effectful(self, params: dict) -> bool:
        """Whether its abstract evaluation tells of effects."""
        return self.effectful

    def get_bind_params(self, params: dict) -> dict:
        """The params that `bind` takes, from an equation's: all of them."""
        return params

    def _no_abstract_eval(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"Abstract evaluation for {self.name!r} not implemented")

    # ------------------------------------------------------------ what transformations read
    def out_avals(self, avals: tuple, params: dict) -> Any:
        out = self.abstract_eval(*avals, **params)[0]
        _check_count(self, out)
        return [_aval(self, a) for a in out] if self.multiple_results else _aval(self, out)

    def effects_of(self, params: dict, avals: tuple = ()) -> frozenset:
        return self.abstract_eval(*avals, **params)[1] if self.effectful else NO_EFFECTS

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply it to `args` under the current trace."""
        for i, x in enumerate(args):
            if not isinstance(x, Array):
                self._check_value(i, x)
        trace = current_trace()
        if trace is EVAL:
            return self.call_impl(*args, **params)
        return trace.process(self, args, params)

    def bind_with_trace(self, trace: Any, args: Sequence[Any], *avals_params: Any) -> Any:
        """Apply it to `args` under `trace`; the params come last."""
        with set_trace(trace):
            return trace.process(self, tuple(args), avals_params[-1])

    def call_impl(self, *args: Any, **params: Any) -> Any:
        """`impl` on concrete arrays; Python's scalars are numbers with a dtype."""
        given = []
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x, self.name)
            else:
                number = type(x) in (int, float, complex)
                given.append(typed(x, as_array(x).dtype) if number else x)
        return self.impl(*given, **params)

    def _evaluate(self, *args: Any, **params: Any) -> Any:
        """`call_impl` for compiled programs and rules: with Arrays as results."""
        with set_trace(EVAL):
            out = self.call_impl(*args, **params)
        outs = [as_array(x) for x in (out if self.multiple_results else [out])]
        if self.effectful or self.abstract_eval_rule != self._no_abstract_eval:
            want = self.out_avals(tuple([aval_of(x) for x in args]), params)
            outs = _as_promised(self, outs, want if self.multiple_results else [want])
        return outs if self.multiple_results else outs[0]

    def _check_value(self, position: int, x: Any) -> None:
        try:
            as_array(x)
        except TypeError:
            raise TypeError(
                f"Error interpreting argument to {self.name} as a JAX value. The problematic value "
                f"is of type {type(x)} and was passed to {self.name} at position {position}. Pass "
                "arrays and scalars as operands, everything else as a keyword (a param)."
            ) from None

    def _jvp(self, primals: tuple, tangents: tuple, **params: Any) -> tuple:
        rule = self.jvp_rule
        if rule is None:
            if all([type(t) is Zero for t in tangents]):
                return self._without_tangents(primals, params)
            raise NotImplementedError(f"Differentiation rule for {self.name!r} not implemented")
        out, tangent = rule(primals, tangents, **params)
        if not self.multiple_results:
            out = as_array(out)
            return out, _tangent(out, tangent)
        outs = [as_array(x) for x in out]
        return outs, [_tangent(x, t) for x, t in zip(outs, tangent, strict=True)]

    def _without_tangents(self, primals: tuple, params: dict) -> tuple:
        out = self.bind(*primals, **params)
        if self.multiple_results:
            return out, [Zero(aval_of(x).tangent()) for x in out]
        return out, Zero(aval_of(out).tangent())

    def _batch(self, axis: Axis, args: tuple, dims: tuple, **params: Any) -> tuple:
        if self.fancy_batch_rule is not None:
            data = AxisData(axis.name, axis.size, axis.spmd)
            found = self.fancy_batch_rule(data, args, dims, **params)
        elif self.axis_batch_rule is not None:
            found = self.axis_batch_rule(axis.size, axis.name, None, args, dims, **params)
        elif self.batch_rule is not None:
            found = self.batch_rule(args, dims, **params)
        else:
            raise NotImplementedError(f"Batching rule for {self.name!r} not implemented")
        outs, out_dims = found
        if not self.multiple_results:
            return as_array(outs), out_dims
        outs = [as_array(x) for x in outs]
        if out_dims is None or isinstance(out_dims, int):
            return outs, [out_dims] * len(outs)
        return outs, list(out_dims)

    # ------------------------------------------------------------ compiled programs
    @property
    def lowering(self) -> Callable | None:
        """The rule by which compiled programs run it here."""
        return self.lowerings.get("cpu") or self.lowerings.get(None)

    def _expansion(self, avals: tuple, out_avals: list, params: dict) -> ClosedJaxpr | None:
        """The lowering, traced; None where it is written in MLIR and `def_impl` is called."""
        refused = lowerable_effects.filter_not_in(self.effects_of(params, avals))
        if refused:
            raise ValueError(
                f"Cannot lower jaxpr with effects: {set(refused)}. Allow them with "
                "mlir.lowerable_effects.add_type(type of the effect)."
            )
        rule = self.lowering
        if rule is None:
            raise NotImplementedError(
                f"MLIR translation rule for primitive {self.name!r} not found for platform cpu"
            )

        def run(*args: Any) -> list[Any]:
            ctx = LoweringContext(self, avals, out_avals)
            return [_array(x) for x in _flat(rule(ctx, *map(Value, args), **params))]

        try:
            return stage_closed(run, avals, self.name)
        except (NeedsMLIR, ImportError) as error:
            if self.has_impl and getattr(self.impl, "func", None) is not apply_primitive:
                return None
            raise NotImplementedError(
                f"The lowering of {self.name!r} is written in MLIR. {NO_MLIR}"
            ) from error

    def __deepcopy__(self, memo: dict) -> Primitive:
        return self

    def __reduce__(self) -> tuple:
        raise TypeError(
            f"The primitive {self.name!r} cannot be pickled: its rules are functions of this "
            "process. Pickle what it computes."
        )


Primitive.def_effectful_abstract_eval2 = Primitive.def_effectful_abstract_eval  # type: ignore[attr-defined]


def _ask_rule(**_: Any) -> frozenset:
    """Stands in `effects`, which says that there may be some: `effects_of` tells."""
    return NO_EFFECTS


def _as_promised(primitive: Primitive, outs: list, avals: Sequence[Any]) -> list[Any]:
    """`outs` with the dtypes that the abstract rule gave. Raises TypeError for other shapes."""
    if [x.aval.shape for x in outs] != [a.shape for a in avals]:
        have = ", ".join([x.aval.str_short() for x in outs])
        want = ", ".join([a.str_short() for a in avals])
        raise TypeError(
            f"{primitive.name}: def_impl gave ({have}), the abstract evaluation rule ({want}). Let "
            "both give the same shapes."
        )
    return [
        x if x.aval.dtype == a.dtype else ArrayImpl(x._value.astype(a.dtype), a)
        for x, a in zip(outs, avals, strict=True)
    ]


def _aval(primitive: core.Primitive, aval: Any) -> Any:
    if isinstance(aval, AbstractValue):
        return aval
    raise AssertionError(
        f"The abstract evaluation rule of {primitive.name!r} must give ShapedArray(shape, dtype), "
        f"got {aval!r}."
    )


def _check_count(primitive: core.Primitive, out: Any) -> None:
    """Raise where an abstract evaluation rule gives several results for one, or one for several."""
    if isinstance(out, tuple | list) != primitive.multiple_results:
        raise ValueError(
            f"{primitive.name}.abstract_eval() method should return a tuple or a list iff "
            f"{primitive.name}.multiple_results, which is {primitive.multiple_results}: got "
            f"{out!r}."
        )


def _tangent(primal: Any, tangent: Any) -> Any:
    want = primal.aval.tangent()
    if type(tangent) is Zero or tangent is None:
        return Zero(want)
    tangent = as_array(tangent)
    return Zero(want) if tangent.aval.dtype.kind == "V" else tangent


def _flat(values: Any) -> list[Any]:
    """The results of a lowering rule: a value or a sequence of them, a sequence in place of a
    value."""
    if isinstance(values, tuple | list):
        return [x for value in values for x in _flat(value)]
    return [values]


def _array(value: Any) -> Any:
    return value.array if type(value) is Value else as_array(value)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compile and run one operation on concrete arrays.

    prim: a primitive. args: arrays; params: its parameters. Result: what the primitive gives.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.interpreters import xla
    >>> xla.apply_primitive(nj.make_jaxpr(jnp.sin)(0.0).eqns[0].primitive, jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    arrays = [as_array(x) for x in args]
    avals = tuple([x.aval for x in arrays])
    invars = [Var(a) for a in avals]
    out = prim.out_avals(avals, params)
    outvars = [Var(a) for a in (out if prim.multiple_results else [out])]
    effects = prim.effects_of(params, avals)
    eqn = Eqn(invars, outvars, prim, params, effects)
    program = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn]), [])
    outs = run_compiled(program, tuple(arrays), prim.name)
    return outs if prim.multiple_results else outs[0]


class Rules(MutableMapping):
    """A register of one kind of rule: primitive -> rule. `read(primitive)` gives the rule or None,
    `write(primitive, rule)` sets it (None: takes it away)."""

    def __init__(self, what: str, read: Callable, write: Callable) -> None:
        self.what, self.read, self.write = what, read, write

    def __getitem__(self, primitive: Any) -> Callable:
        rule = self.read(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Any, rule: Callable) -> None:
        if not isinstance(primitive, core.Primitive):
            raise TypeError(
                f"{self.what}: rules are registered for primitives, got {primitive!r}. Use the "
                "Primitive that bind is called on."
            )
        self.write(primitive, rule)
        _known.setdefault(primitive)

    def __delitem__(self, primitive: Any) -> None:
        self[primitive]
        self.write(primitive, None)

    def __iter__(self) -> Iterator:
        every = [*core.REGISTRY.values(), *_known]
        return (p for p in dict.fromkeys(every) if self.read(p) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_known: dict[Any, None] = {}  # primitives of the user's, for who walks over a register
