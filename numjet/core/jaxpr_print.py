"""Printing jaxprs in JAX's notation.

`{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }`. `str(jaxpr)` goes through here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from numjet.core import hooks
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var

# What JAX writes of equations beside what ours hold, where it is always the same.
_ALWAYS: dict[str, dict[str, Any]] = {
    "reduce_sum": {"out_sharding": None},
    "slice": {"strides": None},
    "reshape": {"dimensions": None, "sharding": None},
    "iota": {"sharding": None},
    "psum": {"axis_index_groups": None},
    "pmax": {"axis_index_groups": None},
    "pmin": {"axis_index_groups": None},
    "random_seed": {"impl": "fry"},
    "gather": {"fill_value": None},
    "random_wrap": {"impl": "fry"},
    "remat": {"differentiated": False, "policy": None},
    "conv_general_dilated": {
        "batch_group_count": 1,
        "out_sharding": None,
        "precision": None,
        "preferred_element_type": None,
    },
}
# What it leaves out.
_NEVER = {
    "custom_jvp_call": ("num_consts",),
    "custom_vjp_call": ("num_consts",),
    "broadcast_in_dim": ("shape",),  # the result's type says it
}
_NAMES = {"remat": "remat2"}

# Columns of a line before it is broken, as JAX breaks it.
_WIDTH = 80


def _names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for length in itertools.count(1):
        for parts in itertools.product(letters, repeat=length):
            name = "".join(parts)
            if name not in ("let", "in"):
                yield name


class _Namer:
    """Hands out a, b, ..., z, aa, ... in order of first appearance, inner jaxprs included."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.supply = _names()

    def bind(self, var: Var) -> str:
        return f"{self(var)}:{var.aval.str_short(True)}"

    def __call__(self, atom: Any) -> str:
        if type(atom) is Literal:
            value = atom.value
            value = np.asarray(getattr(value, "_value", value))
            text = value.item() if value.dtype.kind != "V" else value
            return f"{text!s}:{atom.aval.str_short(True)}"
        name = self.names.get(atom)
        if name is None:
            name = self.names[atom] = next(self.supply)
        return name


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, ClosedJaxpr | Jaxpr)


def _param(name: str, value: Any, namer: _Namer, indent: int) -> str:
    """`name=value` for a line that starts in column `indent`."""
    if _is_jaxpr(value):
        return f"{name}={_jaxpr(value, namer, indent, len(name) + 1)}"
    if isinstance(value, tuple) and value and all(_is_jaxpr(v) for v in value):
        pad = " " * (indent + 2)
        inner = "\n".join(pad + _jaxpr(v, namer, indent + 2) for v in value)
        return f"{name}=(\n{inner}\n{' ' * indent})"
    if name == "dimension_numbers" and type(value) is tuple:  # of a product: pairs of axes
        value = tuple(tuple(list(axes) for axes in pair) for pair in value)
    elif isinstance(value, np.dtype):
        value = value.name
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        value = value.__name__
    return f"{name}={value}"


def _eqn(eqn: Eqn, namer: _Namer, used: set[Var], indent: int) -> str:
    outs = " ".join(
        namer.bind(v) if v in used else f"_:{v.aval.str_short(True)}" for v in eqn.outvars
    )
    kind, hidden = eqn.primitive.name, _NEVER.get(eqn.primitive.name, ())
    told = {k: v for k, v in eqn.params.items() if v is not None and k not in hidden}
    shown = {**_ALWAYS.get(kind, {}), **told}
    if kind == "dot_general":
        shown.setdefault("preferred_element_type", eqn.outvars[0].aval.dtype)
    elif kind == "broadcast_in_dim" and not shown["broadcast_dimensions"]:
        shown = {}
    params = sorted(shown.items(), key=lambda item: (item[0] != "name", item[0]))
    args = " ".join([namer(v) for v in eqn.invars])
    head = _NAMES.get(kind, kind)
    if params:
        parts = [_param(k, v, namer, indent + 2) for k, v in params]
        head = f"{_NAMES.get(kind, kind)}[{' '.join(parts)}]"
        if "\n" in head or indent + len(f"{outs} = {head} {args}") > _WIDTH:
            lines = "".join(f"\n{' ' * (indent + 2)}{part}" for part in parts)
            head = f"{_NAMES.get(kind, kind)}[{lines}\n{' ' * indent}]"
    return f"{outs} = {head} {args}".rstrip()


def _jaxpr(value: Any, namer: _Namer, indent: int = 0, before: int = 0) -> str:
    """The text of a jaxpr whose line starts in column `indent`, behind `before` characters."""
    jaxpr: Jaxpr = value.jaxpr if isinstance(value, ClosedJaxpr) else value
    consts = " ".join([namer.bind(v) for v in jaxpr.constvars])
    ins = " ".join([namer.bind(v) for v in jaxpr.invars])
    read = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
    used = {v for v in read if type(v) is Var}
    eqns = [_eqn(e, namer, used, indent + 4) for e in jaxpr.eqns]
    outs = ", ".join([namer(v) for v in jaxpr.outvars])
    tail = f"in ({outs},) }}" if len(jaxpr.outvars) == 1 else f"in ({outs}) }}"
    head = f"{{ lambda {consts}; {ins}. let" if ins else f"{{ lambda {consts}; . let"
    one_line = f"{head} {'; '.join(eqns)} {tail}"
    if "\n" not in one_line and indent + before + len(one_line) <= _WIDTH:
        return one_line
    body = "".join(f"\n{' ' * (indent + 4)}{eqn}" for eqn in eqns)
    return f"{head}{body}\n{' ' * (indent + 2)}{tail}"


def format_jaxpr(jaxpr: Jaxpr) -> str:
    """The text of `jaxpr`."""
    return _jaxpr(jaxpr, _Namer())


def format_eqn(eqn: Eqn) -> str:
    """The text of one equation."""
    return _eqn(eqn, _Namer(), set(eqn.outvars), 0)


hooks.print_jaxpr, hooks.print_equation = format_jaxpr, format_eqn
