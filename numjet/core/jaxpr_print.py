"""Printing jaxprs in JAX's notation.

`{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }`. `str(jaxpr)` goes through here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from numjet.core import jaxpr as core_jaxpr
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var

_WIDTH = 100


def _names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for length in itertools.count(1):
        for parts in itertools.product(letters, repeat=length):
            name = "".join(parts)
            if name not in ("let", "in"):
                yield name


class _Namer:
    """Hands out a, b, ..., z, aa, ... in order of first appearance."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.supply = _names()

    def bind(self, var: Var) -> str:
        return f"{self(var)}:{var.aval.str_short()}"

    def __call__(self, atom: Any) -> str:
        if type(atom) is Literal:
            value = atom.value
            value = np.asarray(getattr(value, "_value", value))
            return f"{value.item() if value.dtype.kind != 'V' else value!s}:{atom.aval.str_short()}"
        name = self.names.get(atom)
        if name is None:
            name = self.names[atom] = next(self.supply)
        return name


def _param(value: Any, indent: int) -> str:
    if isinstance(value, ClosedJaxpr):
        return _jaxpr(value.jaxpr, indent)
    if isinstance(value, Jaxpr):
        return _jaxpr(value, indent)
    if (
        isinstance(value, tuple)
        and value
        and all(isinstance(v, ClosedJaxpr | Jaxpr) for v in value)
    ):
        pad = " " * (indent + 2)
        inner = "\n".join(pad + _param(v, indent + 2) for v in value)
        return f"(\n{inner}\n{' ' * indent})"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


def _eqn(eqn: Eqn, namer: _Namer, indent: int) -> str:
    outs = " ".join("_:" + v.aval.str_short() if v is None else namer.bind(v) for v in eqn.outvars)
    args = " ".join(namer(v) for v in eqn.invars)
    params = {k: v for k, v in sorted(eqn.params.items()) if v is not None}
    if not params:
        head = eqn.primitive.name
    else:
        parts = [f"{k}={_param(v, indent + 4)}" for k, v in params.items()]
        one_line = f"{eqn.primitive.name}[{' '.join(parts)}]"
        if "\n" in one_line or len(one_line) + indent + len(outs) + len(args) > _WIDTH:
            pad = " " * (indent + 2)
            head = (
                f"{eqn.primitive.name}[\n"
                + "\n".join(pad + p for p in parts)
                + f"\n{' ' * indent}]"
            )
        else:
            head = one_line
    return f"{outs} = {head} {args}".rstrip()


def _jaxpr(jaxpr: Jaxpr, indent: int = 0) -> str:
    namer = _Namer()
    consts = " ".join(namer.bind(v) for v in jaxpr.constvars)
    ins = " ".join(namer.bind(v) for v in jaxpr.invars)
    pad = " " * (indent + 4)
    eqns = [_eqn(e, namer, indent + 4) for e in jaxpr.eqns]
    outs = ", ".join(namer(v) for v in jaxpr.outvars)
    outs = f"({outs},)" if len(jaxpr.outvars) == 1 else f"({outs})"
    head = (
        f"{{ lambda {consts + ' ' if consts else ''}; {ins + ' ' if ins else ''}".rstrip() + ". let"
    )
    head = head.replace(" . let", ". let")
    one_line = f"{head} {eqns[0] if eqns else ''} in {outs} }}".replace("  ", " ")
    if len(eqns) <= 1 and "\n" not in one_line and len(one_line) + indent <= _WIDTH:
        return one_line
    body = "".join(f"\n{pad}{e}" for e in eqns)
    return f"{head}{body}\n{' ' * (indent + 2)}in {outs} }}"


def format_jaxpr(jaxpr: Jaxpr) -> str:
    """The text of `jaxpr`."""
    return _jaxpr(jaxpr)


core_jaxpr.printer = format_jaxpr
