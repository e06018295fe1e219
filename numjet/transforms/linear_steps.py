"""Steps of a record of linear equations: operations whose linear part is known as a whole.

`transforms.eager` makes them; `transforms.transpose` runs them backwards at once where values are
concrete, and everybody else has them written out as equations (`expanded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import NO_EFFECTS, Eqn, Jaxpr, Literal, Var


class Rule:
    """How one primitive is linearized at operands of given avals, of which some are active.

    forward(*primals) -> (result, residuals); backward(cotangent, residuals) -> a cotangent (or
    None) for each active operand. `linear` is the linear part: a jaxpr of the residuals and the
    active operands' tangents; `reverse` that turned round: a jaxpr of the residuals and the
    cotangent, and the atoms that are the active operands' (None: zero). `aval` is the aval of its
    result, None where that is zero; `alias` says which active operand's tangent is the result's, if
    one is. `plan` is what `forward` does as operations to be written down, or None: `gives` are the
    numbers of the result and the residuals among its operands, its `constants`, and its results.
    """

    __slots__ = (
        "forward", "backward", "linear", "aval", "alias", "reverse",
        "plan", "constants", "gives",
    )

    def __init__(
        self,
        forward: Callable,
        backward: Callable | None,
        linear: Jaxpr | None,
        aval: ShapedArray | None,
        alias: int | None,
        reverse: tuple[Jaxpr, list] | None = None,
    ) -> None:
        self.forward, self.linear, self.aval, self.alias = forward, linear, aval, alias
        self.backward: Any = backward
        self.reverse = reverse
        self.plan: Any = None
        self.constants: list = []
        self.gives: tuple[int, ...] = ()


class LinearStep:
    """A rule in a record: like an `Eqn` of the variables `invars`."""

    __slots__ = ("rule", "residuals", "invars", "outvars")
    effects = NO_EFFECTS

    def __init__(self, rule: Rule, residuals: tuple, invars: Sequence[Var], out: Var) -> None:
        self.rule, self.residuals, self.invars, self.outvars = rule, residuals, invars, (out,)

    def expand(self) -> list[Eqn]:
        """The equations it stands for; known inputs are values."""
        linear: Any = self.rule.linear
        env: dict[Var, Any] = dict(zip(linear.invars, [*self.residuals, *self.invars], strict=True))
        env[linear.outvars[0]] = self.outvars[0]

        def defined(v: Var) -> Var:
            found = env.get(v)
            if found is None:
                found = env[v] = Var(v.aval)
            return found

        return [
            eqn.replace(
                invars=[v.value if type(v) is Literal else env[v] for v in eqn.invars],
                outvars=[defined(v) for v in eqn.outvars],
            )
            for eqn in linear.eqns
        ]


def expanded(tape: Sequence[Any]) -> list[Eqn]:
    """A record with its steps written out."""
    out: list[Eqn] = []
    for eqn in tape:
        if type(eqn) is LinearStep:
            out.extend(eqn.expand())
        else:
            out.append(eqn)
    return out
