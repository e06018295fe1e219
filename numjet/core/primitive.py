"""The Primitive record: everything the system knows about one operation, in one place.

`ops` builds them, the transformations and backends read them. A record with a hole is refused
when it is built, so nothing fails later because a rule was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.base import config
from numjet.core import hooks, lowering as low
from numjet.core.avals import Placed, ShapedArray, any_placed
from numjet.core.memo import Memo

REGISTRY: dict[str, Primitive] = {}
NO_EFFECTS: frozenset = frozenset()


class Zero:
    """A tangent or cotangent known to be zero; never materialized. `aval` is its own aval."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @classmethod
    def from_primal_value(cls, value: Any) -> Zero:
        """The zero tangent of an Array or tracer."""
        return cls(value.aval.tangent())

    def instantiate(self) -> Any:
        """The array of zeros; `core.structural` installs it."""
        raise NotImplementedError("numjet.core.structural installs instantiate.")

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


class Linear:
    """Stands for an operand that a transpose rule is linear in: only its aval is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval.str_short()})"


class Stretched(TypeError):
    """Operands of an elementwise operation have axes of size 1 where its result has others
    (`core.stretched`)."""

    def __init__(self, out: ShapedArray) -> None:
        super().__init__("Operands must have one shape. Use lax.broadcast_in_dim.")
        self.out = out


class Met:
    """Whether any equation has such operands."""

    stretched = False
    # Primitives with equations that only who looks at jaxprs sees -> what compilers take instead
    # (the equation itself where it is plain).
    plain: dict[Primitive, Callable] = {}

    @classmethod
    def shown(cls, primitive: Primitive, plain: Callable) -> None:
        """An equation of `primitive` was made that `plain` has to rewrite."""
        cls.stretched = True
        cls.plain[primitive] = plain


_LOWERINGS = (low.Pointwise, low.Reduce, low.Kernel, low.Region, low.Expand, low.Host)


class Primitive:
    """One operation: its name, meaning and rules.

    abstract(*avals, **params) -> aval, or a list of avals when `multiple_results`
    reference(*ndarrays, **params) -> ndarray(s): the executable specification, used eagerly
    evaluate(*arrays, **params) -> array(s): instead of `reference` where eager evaluation is more
        than one NumPy call (control flow, jit)
    jvp(primals, tangents, **params) -> (out, tangent): zero tangents are `Zero`
    transpose(ct, *args, **params) -> [cotangent or None]: linear args are `Linear`; required if
        linear
    batch(axis, args, dims, **params) -> (out, dim): dim None is "not mapped"
    loops: a lowering record
    hlo: what it is on devices of XLA, where that does not follow from `loops` and `xla.hlo` has no
        method of its name: a function (emitter, out aval or avals, *values, **params), or a
        sentence that says why there is none
    shard: how it is cut over devices, where that is no family's rule (`partition.families`): a
        function (avals, out avals, params) that gives a rule, or None
    partial_eval(trace, args, params) -> outs: how an equation with unknown inputs is recorded,
        where it can be split
    stage(trace, args, params) -> outs: how it is recorded, where its params hold functions to be
        traced first
    prune(params, used) -> (params, inputs kept, outputs kept), or None where nothing goes: the
        equation without outputs nobody uses (`used`: a flag each) and what only they need
    effects: a set, or a function of the params that gives one
    eager: a table of `core.evaluate`
    runs: functions that evaluate it with params (`core.evaluate`), by avals and params
    run: evaluation without params by native code, where there is any (`core.evaluate`)
    lays_out: the result is the operand, where the params say: a constraint of its layout
    every_map: the batch rule runs under each vmap, whether operands are mapped or not
    expansion(avals, out_avals, params) -> a closed jaxpr, or None where the equation is a call of
        Python: how an operation of the user's is written in ours before a program is compiled
    """

    __slots__ = (
        "name",
        "abstract",
        "reference",
        "evaluate",
        "jvp",
        "transpose",
        "batch",
        "loops",
        "hlo",
        "shard",
        "linear",
        "elementwise",
        "effects",
        "multiple_results",
        "partial_eval",
        "prune",
        "higher_order",
        "differentiable",
        "collective",
        "stage",
        "eager",
        "run",
        "runs",
        "lays_out",
        "every_map",
        "expansion",
        "_abstract_cache",
        "_recall",
    )
    # No primitive of ours is a call that interpreters of jaxprs have to look into.
    call_primitive = False

    def __init__(
        self,
        name: str,
        *,
        abstract: Callable,
        reference: Callable | None = None,
        evaluate: Callable | None = None,
        jvp: Callable | None = None,
        transpose: Callable | None = None,
        batch: Callable,
        loops: Any,
        hlo: Any = None,
        shard: Callable | None = None,
        linear: bool = False,
        elementwise: bool = False,
        effects: frozenset | Callable = NO_EFFECTS,
        multiple_results: bool = False,
        partial_eval: Callable | None = None,
        prune: Callable | None = None,
        higher_order: bool = False,
        differentiable: bool = True,
        collective: bool = False,
        stage: Callable | None = None,
        lays_out: bool = False,
    ) -> None:
        if name in REGISTRY:
            raise ValueError(f"primitive {name!r} is registered twice.")
        if reference is None and evaluate is None:
            raise ValueError(f"primitive {name!r} has neither reference nor evaluate.")
        if jvp is None and differentiable:
            raise ValueError(
                f"primitive {name!r} has no jvp rule; pass differentiable=False if its "
                "outputs carry no tangents."
            )
        if linear and transpose is None:
            raise ValueError(f"primitive {name!r} is linear but has no transpose rule.")
        if not isinstance(loops, _LOWERINGS):
            raise ValueError(f"primitive {name!r} has no lowering record (see core/lowering.py).")
        self.name, self.abstract, self.reference, self.evaluate = (
            name,
            abstract,
            reference,
            evaluate,
        )
        self.jvp, self.transpose, self.batch = jvp, transpose, batch
        self.loops, self.hlo, self.shard = loops, hlo, shard
        self.linear, self.elementwise = linear, elementwise
        self.effects, self.multiple_results = effects, multiple_results
        self.partial_eval, self.prune, self.higher_order = partial_eval, prune, higher_order
        self.differentiable, self.collective, self.stage = differentiable, collective, stage
        # What concrete evaluation knows of operands it saw: avals -> (result's aval, function).
        self.eager: dict = Memo(f"evaluation of {name}")
        self.run: Callable | None = None
        self.runs: dict = Memo(f"evaluation of {name} with parameters")
        self.lays_out, self.every_map = lays_out, False
        self.expansion: Callable | None = None
        self._abstract_cache: dict = Memo(f"avals of {name}")
        self._recall = self._abstract_cache.get
        REGISTRY[name] = self

    def out_avals(self, avals: tuple, params: dict) -> Any:
        """`abstract`, remembered. For one result an aval, else a list."""
        if self.higher_order:
            return self.abstract(*avals, **params)
        key = (avals, tuple(params.items())) if params else avals
        found = self._recall(key)
        if found is None:
            if Placed.active and any_placed(avals):
                return hooks.placed_results(self, avals, params)
            found = self.abstract(*avals, **params)
            if (
                self.elementwise
                and len(avals) > 1
                and any([a.shape not in ((), found.shape) for a in avals])
            ):
                if not config.jax_form():
                    raise Stretched(found)
                Met.stretched = True
                return found
            self._abstract_cache[key] = found
        return found

    def effects_of(self, params: dict, avals: tuple = ()) -> frozenset:
        """The effects of an equation with these params, its operands being of `avals`."""
        effects = self.effects
        return effects(**params) if callable(effects) else effects

    def bind(self, *args: Any, **params: Any) -> Any:
        """Run this operation on `args` under the current trace."""
        raise NotImplementedError("numjet.core.trace installs bind.")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return _by_name, (self.name,)


def _by_name(name: str) -> Primitive:
    return REGISTRY[name]
