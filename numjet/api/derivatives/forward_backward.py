"""fwd_and_bwd: the two halves of reverse mode as functions of their own."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.compiled.jit import jit
from numjet.api.derivatives.pullbacks import vjp


def fwd_and_bwd(fun: Callable, argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable, Callable]:
    """The forward and the backward pass of `fun` as two functions, which can be compiled apart.

    argnums: the arguments to differentiate, an integer or several. has_aux: `fun` returns (out,
    aux). jitted: compile both. Result: (forward, backward): forward(*args) -> (out, residuals),
    with has_aux (out, residuals, aux); backward(residuals, cotangent of out) -> the cotangents of
    the arguments argnums: one, or a tuple where argnums is a sequence. residuals: a pytree of
    arrays, what the backward pass needs.

    >>> import numjet as nj
    >>> forward, backward = nj.fwd_and_bwd(lambda x, y: x * y, (0, 1), jitted=False)
    >>> out, residuals = forward(2.0, 3.0)
    >>> print(*backward(residuals, 1.0))
    3.0 2.0
    """
    one = isinstance(argnums, int)
    numbers: tuple[int, ...] = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def forward(*args: Any, **kwargs: Any) -> Any:
        places = [n % len(args) for n in numbers]

        def of_some(*some: Any) -> Any:
            whole = list(args)
            for place, value in zip(places, some, strict=True):
                whole[place] = value
            return fun(*whole, **kwargs)

        return vjp(of_some, *[args[i] for i in places], has_aux=has_aux)

    def backward(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if one else cotangents

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
