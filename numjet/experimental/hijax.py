"""numjet.experimental.hijax: types of values that are no arrays, and operations on them.

Functions that are compiled, looped over, differentiated and checkpointed take and give values of
types whose values do not change (`HiType`), as the arrays that they hold; under `vmap` they may be
made and taken apart inside. Operations are run by `to_lojax` or `expand`, and their rules are asked
for derivatives (`jvp`, `vjp_fwd`, `vjp_bwd`, `lin`, `transpose`) and for `vmap` (`batch`,
`batch_dim_rule`); one that has an `impl` is run by that on values as they are. Values that change
(`MutableHiType`) are taken by `jit`, and changed by closure in loops and branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.base import tree
from numjet.core import hi
from numjet.core.avals import ShapedArray as ShapedArray
from numjet.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from numjet.core.primitive import Linear, Zero as Zero
from numjet.core.refs import AbstractRef as AbstractRef, Ref, RefPart as TransformedRef
from numjet.core.structural import instantiate, zeros
from numjet.core.trace import EVAL, aval_of, current_trace
from numjet.transforms import hi_rules


class AbstractValue:
    """What is known of a value before it is computed; libraries derive their types from it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)


def _lacks(ty: Any, what: str, name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{what} requires {type(ty).__name__} to implement the `{name}` method."
    )


class HiType(AbstractValue):
    """A type of values that are no arrays.

    A subclass says which arrays a value holds: `lower_val(value)` gives them, `raise_val(*arrays)`
    makes a value of them, `lo_ty()` gives their avals. For derivatives it gives the type of
    tangents, or the aval of an array: `to_tangent_aval()`, and `to_ct_aval()` where that of
    cotangents, of as many arrays, is another; `vspace_zero()` is a tangent of zeros,
    `vspace_add(x, y)` a sum.
    """

    has_qdd = False
    is_high = True

    def lo_ty(self) -> Sequence[Any]:
        """The avals of the arrays that a value holds, given by the subclass."""
        raise _lacks(self, "compiling a function of such values", "lo_ty")

    def lower_val(self, value: Any) -> Sequence[Any]:
        """The arrays that a value holds, given by the subclass."""
        raise _lacks(self, "a transformation", "lower_val")

    def raise_val(self, *arrays: Any) -> Any:
        """A value of other arrays, given by the subclass."""
        raise _lacks(self, "a transformation", "raise_val")

    def to_tangent_aval(self) -> Any:
        """The type of tangents, given by the subclass."""
        raise _lacks(self, "differentiation", "to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """The type of cotangents: that of tangents, unless the subclass says another."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """A tangent of zeros: of arrays of zeros, unless the subclass gives another."""
        return self.raise_val(*[zeros(a) for a in self.lo_ty()])

    def normalize(self) -> Any:
        """This type without what tells one call from another."""
        return self

    def str_short(self, *_: Any, **__: Any) -> str:
        return repr(self)


class MutableHiType(HiType):
    """A type of values that can be changed.

    A value's `cur_qdd()` says in which form it is. A subclass has `read_loval(form, value)`, which
    gives its arrays, `new_from_loval(form, *arrays)`, `update_from_loval(form, value, *arrays)` and
    `lo_ty_qdd(form)`.
    """

    has_qdd = True


# What of such a value `vmap` maps, and how `shard_map` cuts one.
MappingSpec, HiPspec = hi.MappingSpec, hi.HiPspec


class AvalQDD:
    """A type and what changes of its value."""

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD:
    """A type and the mutable record of what changes of its value."""

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval, self.mutable_qdd = aval, mutable_qdd


def _type_of(x: Any) -> Any:
    declared = hi.TYPES.get(type(x))
    return aval_of(x) if declared is None else declared(x)


def _changing(leaves: Sequence[Any]) -> bool:
    return any([type(x) in hi.TYPES and hi.changes(x) for x in leaves])


class HiPrimitive:
    """An operation on values of such types, declared by a subclass.

    `abstract_eval(*types, **params)` gives the type of the result (a list of types where
    `multiple_results` says so) and a set of effects, `to_lojax(*args, **params)` computes it,
    `jvp(primals, tangents, **params)` gives result and tangent, `transpose(cotangent, *args,
    **params)` a cotangent for each argument that it is linear in (`is_undefined_primal`). Where
    there is an `impl(*args, **params)`, that is run instead, and no rule is asked.
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        if type(self).impl is not HiPrimitive.impl:
            return hi.bind(self.name, self.impl, args, params)
        if current_trace() is EVAL or _changing(args):
            return hi.bind(self.name, self.to_lojax, args, params)
        declared, _ = self.abstract_eval(*[_type_of(x) for x in args], **params)
        declared = list(declared) if self.multiple_results else declared
        return hi_rules.bind(self, args, declared, params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """What the operation computes on values as they are, given by the subclass."""
        raise NotImplementedError(f"{self.name}: {type(self).__name__} has no method `impl`.")

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether the operation is one on such values: it is."""
        return True

    def is_effectful(self, params: dict) -> bool:
        """Whether the operation has effects: it has none."""
        return False

    def abstract_eval(self, *types: Any, **params: Any) -> Any:
        """The type of the result and a set of effects, given by the subclass."""
        raise self._lacks("abstract_eval")

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """What the operation computes, given by the subclass."""
        raise self._lacks("impl` or `to_lojax")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """The result and its tangent, given by the subclass."""
        raise self._lacks("jvp")

    def transpose(self, *args: Any, **params: Any) -> Any:
        """The cotangents of the arguments, given by the subclass."""
        raise self._lacks("transpose")

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{self.name}: {type(self).__name__} has no method `{name}`.")

    def __repr__(self) -> str:
        return self.name


class VJPHiPrimitive(HiPrimitive):
    """An operation with parameters and rules of its own, declared by a subclass.

    The subclass sets `in_avals`, `out_aval` (trees of types) and `params` before it calls
    `super().__init__()`; the params become attributes. `expand(*args)` computes the operation.
    Forward mode asks `jvp(primals, tangents)` for the result and its tangent; tangents may be Zero.
    Reverse mode asks `vjp_fwd(nonzeros, *args)` for the result and what is kept, and with these
    `vjp_bwd_retval(kept, cotangent)` for a cotangent for each argument, or
    `vjp_bwd(kept, cotangent, *sums)`, which adds them up by `accum`. `linearize` asks
    `lin(nonzeros, *args)` and `linearized(kept, *tangents)`; `vmap` asks
    `batch(axis, args, dims)` for a result and where it is mapped, or `batch_dim_rule(axis, dims)`
    for the latter alone, and maps `expand` and the rules. An operation that rules apply to tangents
    has `transpose(cotangent, *sums_or_args)`.
    """

    in_avals: tuple
    out_aval: Any
    params: dict[str, Any] = {}
    effects: Any = frozenset()

    def __init__(self) -> None:
        super().__init__(type(self).__name__)
        own = [getattr(type(self), n) is not getattr(VJPHiPrimitive, n) for n in _BACKWARD]
        if all(own):
            raise AttributeError(
                f"{type(self).__name__} has both `vjp_bwd` and `vjp_bwd_retval`. Define one."
            )
        for name, value in self.params.items():
            setattr(self, name, value)

    def __call__(self, *args: Any) -> Any:
        leaves = tree.tree_leaves(args)
        if any([isinstance(x, Ref) for x in leaves]):
            return self.expand(*args)
        if current_trace() is EVAL or _changing(leaves):
            return hi.bind(self.name, self.expand, args, {})
        return hi_rules.bind(self, args, self.out_aval)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def expand(self, *args: Any) -> Any:
        """What the operation computes, given by the subclass."""
        raise self._lacks("expand")

    def vjp_fwd(self, nonzeros: Any, *args: Any) -> Any:
        """The result and what the backward rule needs, given by the subclass."""
        raise self._lacks("vjp_fwd")

    def vjp_bwd_retval(self, kept: Any, cotangent: Any) -> Any:
        """A cotangent for each argument, given by the subclass."""
        raise self._lacks("vjp_bwd_retval")

    def vjp_bwd(self, kept: Any, cotangent: Any, *sums: Any) -> None:
        """Add a cotangent to what there is for each argument."""
        tree.tree_map(
            lambda total, x: total.accum(x), sums, tuple(self.vjp_bwd_retval(kept, cotangent))
        )

    def lin(self, nonzeros: Any, *args: Any) -> Any:
        """The result and what the linear function needs, given by the subclass."""
        raise self._lacks("lin")

    def linearized(self, kept: Any, *tangents: Any) -> Any:
        """The tangent of the result, given by the subclass."""
        raise self._lacks("linearized")

    def transpose(self, cotangent: Any, *sums: Any) -> Any:
        """Add cotangents of what the operation is linear in, given by the subclass."""
        raise self._lacks("transpose")

    def batch(self, axis: Any, args: Any, dims: Any) -> Any:
        """The result of mapped arguments and where it is mapped, given by the subclass."""
        raise self._lacks("batch")

    def batch_dim_rule(self, axis: Any, dims: Any) -> Any:
        """Where the result of mapped arguments is mapped, given by the subclass."""
        raise self._lacks("batch_dim_rule")


_BACKWARD = ("vjp_bwd", "vjp_bwd_retval")
hi_rules.note_bases(VJPHiPrimitive, HiPrimitive)


class aval_property:  # noqa: N801 - a public name
    """A property that values take from their type."""

    def __init__(self, fget: Callable) -> None:
        self.fget = fget


class aval_method:  # noqa: N801 - a public name
    """A method that values take from their type."""

    def __init__(self, fun: Callable) -> None:
        self.fun = fun


def register_hitype(val_cls: type, typeof_fn: Callable) -> None:
    """Declare that `typeof_fn` gives the type of the values of a class.

    val_cls: a class of values that are no arrays. typeof_fn(value): its HiType.

    >>> from numjet.experimental import hijax
    >>> class Pair:
    ...     pass
    >>> hijax.register_hitype(Pair, lambda value: hijax.HiType())
    """
    hi.TYPES[val_cls] = typeof_fn


def cur_qdd(x: Any) -> Any:
    """What changes of a value, as it is now."""
    return hi.current_value(x).cur_qdd()


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent, or an array of zeros for a symbolic zero.

    tangent: an array or a Zero. Result: an array.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import hijax
    >>> hijax.instantiate_zeros(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    if isinstance(tangent, Zero) and not isinstance(tangent.aval, ShapedArray):
        return tangent.aval.vspace_zero()
    return instantiate(tangent)


def is_undefined_primal(x: Any) -> bool:
    """Whether x stands for an operand that a transpose rule is linear in.

    x: what a transpose rule gets for an operand.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import hijax
    >>> hijax.is_undefined_primal(jnp.ones(2))
    False
    """
    return isinstance(x, Linear)


__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec",
    "HiType", "MutableHiType", "ShapedArray", "TransformedRef", "VJPHiPrimitive", "Zero",
    "aval_method", "aval_property", "control_flow_allowed_effects", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]  # fmt: skip
