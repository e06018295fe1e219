"""numjet.experimental.hijax: types of values that are no arrays, and operations on them.

An operation runs its `impl`, on values that hold traced arrays where it is traced (`core.hi`);
its own rules (`jvp`, `transpose`, `abstract_eval`, `to_lojax`) are not asked. Functions that `jit`
compiles take such values, and with loops and branches change those that they close over. No
transformation differentiates or maps such an argument. An operation with a derivative of its own
(VJPHiPrimitive) is a `custom_vjp` function of arrays; on other values it is refused while tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.custom import custom_vjp
from numjet.base import tree
from numjet.core import hi
from numjet.core.avals import ShapedArray as ShapedArray
from numjet.core.primitive import Linear, Zero as Zero
from numjet.core.refs import AbstractRef as AbstractRef
from numjet.core.structural import instantiate
from numjet.core.trace import EVAL, current_trace


class AbstractValue:
    """What is known of a value before it is computed; libraries derive their types from it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)


class HiType(AbstractValue):
    """A type of values that are no arrays.

    A subclass says which arrays a value holds: `lower_val(value)` gives them, `raise_val(*arrays)`
    makes a value of them, `lo_ty()` gives their avals.
    """

    has_qdd = False


class MutableHiType(HiType):
    """A type of values that can be changed.

    A value's `cur_qdd()` says in which form it is. A subclass has `read_loval(form, value)`, which
    gives its arrays, `new_from_loval(form, *arrays)`, `update_from_loval(form, value, *arrays)` and
    `lo_ty_qdd(form)`.
    """

    has_qdd = True


class AvalQDD:
    """A type and what changes of its value."""

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD:
    """A type and the mutable record of what changes of its value."""

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval, self.mutable_qdd = aval, mutable_qdd


class HiPrimitive:
    """An operation on values of such types, declared by a subclass."""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        return hi.bind(self.name, self.impl, args, params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """What the operation computes, given by the subclass."""
        raise NotImplementedError(f"{self.name}: {type(self).__name__} has no method `impl`.")

    def __repr__(self) -> str:
        return self.name


class VJPHiPrimitive(HiPrimitive):
    """An operation with a derivative, declared by a subclass.

    The subclass sets `in_avals`, `out_aval` and `params` before it calls `super().__init__()`; the
    params become attributes. `expand(*args)` computes the operation. Reverse mode asks
    `vjp_fwd(nonzeros, *args)` for the result and what is kept, and with these
    `vjp_bwd_retval(kept, cotangent)` for a cotangent for each argument, or
    `vjp_bwd(kept, cotangent, *sums)`, which adds them up by `accum`.
    """

    in_avals: tuple
    out_aval: Any
    params: dict[str, Any] = {}

    def __init__(self) -> None:
        super().__init__(type(self).__name__)
        for name, value in self.params.items():
            setattr(self, name, value)

    def __call__(self, *args: Any) -> Any:
        if current_trace() is EVAL:
            return hi.bind(self.name, self.expand, args, {})
        if any([type(x) in hi.TYPES for x in tree.tree_leaves(args)]):
            raise NotImplementedError(
                f"{self.name}: an operation with a derivative of its own (VJPHiPrimitive) on "
                "values that are no arrays is not supported under transformations."
            )
        fun = custom_vjp(self.expand)
        fun.defvjp(self._forward, self._backward)
        return fun(*args)

    def _forward(self, *args: Any) -> Any:
        return self.vjp_fwd(tree.tree_map(lambda _: True, args), *args)

    def _backward(self, kept: Any, cotangent: Any) -> tuple:
        sums = tree.tree_map(lambda _: _Sum(), tuple(self.in_avals))
        self.vjp_bwd(kept, cotangent, *sums)
        return tree.tree_map(lambda x: x.value, sums)

    def expand(self, *args: Any) -> Any:
        """What the operation computes, given by the subclass."""
        raise NotImplementedError(f"{self.name}: {type(self).__name__} has no method `expand`.")

    def vjp_fwd(self, nonzeros: Any, *args: Any) -> Any:
        """The result and what `vjp_bwd` needs, given by the subclass."""
        raise NotImplementedError(f"{self.name}: {type(self).__name__} has no method `vjp_fwd`.")

    def vjp_bwd_retval(self, kept: Any, cotangent: Any) -> Any:
        """A cotangent for each argument, given by the subclass."""
        raise NotImplementedError(
            f"{self.name}: {type(self).__name__} has no method `vjp_bwd_retval`."
        )

    def vjp_bwd(self, kept: Any, cotangent: Any, *sums: Any) -> None:
        """Add a cotangent to what there is for each argument."""
        tree.tree_map(
            lambda total, x: total.accum(x), sums, tuple(self.vjp_bwd_retval(kept, cotangent))
        )


class _Sum:
    """What an argument's cotangents add up to."""

    def __init__(self) -> None:
        self.value: Any = None

    def accum(self, x: Any) -> None:
        """Add `x`, if it is no symbolic zero."""
        if not isinstance(x, Zero):
            self.value = x if self.value is None else self.value + x


class aval_property:  # noqa: N801 - a public name
    """A property that values take from their type."""

    def __init__(self, fget: Callable) -> None:
        self.fget = fget


class aval_method:  # noqa: N801 - a public name
    """A method that values take from their type."""

    def __init__(self, fun: Callable) -> None:
        self.fun = fun


class EffectTypes:
    """A set of types of effects."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect: type) -> None:
        self.types.add(effect)

    def contains(self, effect: Any) -> bool:
        return isinstance(effect, tuple(self.types))


control_flow_allowed_effects = EffectTypes()
def register_hitype(val_cls: type, typeof_fn: Callable) -> None:
    """Declare that `typeof_fn` gives the type of the values of a class.

    val_cls: a class of values that are no arrays. typeof_fn(value): its HiType.

    >>> from numjet.experimental import hijax
    >>> class Pair:
    ...     pass
    >>> hijax.register_hitype(Pair, lambda value: hijax.HiType())
    """
    hi.TYPES[val_cls] = typeof_fn


def cur_qdd(value: Any) -> Any:
    """What changes of a value, as it is now."""
    return hi.current_value(value).cur_qdd()


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent, or an array of zeros for a symbolic zero.

    tangent: an array or a Zero. Result: an array.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import hijax
    >>> hijax.instantiate_zeros(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
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
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType",
    "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip
