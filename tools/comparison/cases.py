"""From a seed and a number to a case: which function, arguments, mode and phases."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from comparison import tables
from comparison.draw import Draw

# How often each mode is drawn; the plain one fills up to 1.
MODES = (
    ("x64", 0.12),
    ("rank", 0.07),
    ("strict", 0.05),
    ("nans", 0.03),
    ("leaks", 0.03),
    ("interpreted", 0.03),
)
JIT = 0.5  # of the cases are also traced,
GRADIENT = 0.25  # and differentiated, where they have floating-point arguments

PRELUDE = """\
import numpy as np; from numpy import inf, nan
import {library} as jax, {library}.numpy as jnp; lax = jax.lax
"""


@dataclass(frozen=True)
class Case:
    """One generated call, in text."""

    number: int
    name: str  # of the function, below the library
    setup: str
    args: tuple[tuple[str, bool], ...]
    keywords: tuple[tuple[str, tuple[str, bool]], ...]
    mode: str
    phases: tuple[str, ...]

    @property
    def called(self) -> str:
        """The text of the function that is called."""
        return tables.CALLED.get(self.name, "jax." + self.name)

    @property
    def work(self):
        """What a worker needs of it."""
        return (self.setup, self.called, self.args, self.keywords, self.mode, self.phases)

    @property
    def key(self) -> str:
        return hashlib.sha256(repr(self.work).encode()).hexdigest()

    def __str__(self) -> str:
        parts = [text for text, _ in self.args]
        parts += [f"{key}={text}" for key, (text, _) in self.keywords]
        setup = f"{self.setup.strip()}; " if self.setup else ""
        mode = "" if self.mode == "plain" else f"   # mode {self.mode}"
        return f"{setup}{self.called}({', '.join(parts)}){mode}"


def case(seed: int, number: int, names: list[str], types: bool = False) -> Case:
    """Case `number` of `seed`: the functions take turns, so that all are met equally often.

    What is drawn depends on the seed, the function and its turn, not on the other functions. With
    `types` nothing is compiled: the phases are those that JAX answers by abstract evaluation.
    """
    turn, which = divmod(number, len(names))
    name = names[which]
    chooser = Draw(f"{seed}/{name}/{turn}/mode")
    mode, pick = "plain", chooser.random()
    for candidate, share in MODES:
        if pick < share:
            mode = candidate
            break
        pick -= share
    d = Draw(f"{seed}/{name}/{turn}", x64=mode == "x64")
    drawn = tables.TABLE[name](d)
    phases = ["eager"]
    traced = any(a.traced for a in [*drawn.args, *drawn.keywords.values()])
    if traced and mode != "interpreted" and chooser.chance(JIT):
        phases.append("jit")
    if traced and name not in tables.NO_GRADIENT and chooser.chance(GRADIENT):
        phases.append("grad")
        if mode != "interpreted" and chooser.chance(0.4):
            phases.append("grad jit")
    if types:
        mode = "plain" if mode == "interpreted" else mode
        phases = ["types", *["grad types"] * ("grad" in phases), "eager types"]
    return Case(
        number,
        name,
        drawn.setup,
        tuple((a.text, a.traced) for a in drawn.args),
        tuple((k, (a.text, a.traced)) for k, a in drawn.keywords.items()),
        mode,
        tuple(phases),
    )


def generate(
    seed: int, count: int, only: str | list[str] | None = None, types: bool = False
) -> list[Case]:
    """`count` cases of `seed`; `only`: a function's name, or a module's with a dot at its end;
    `types`: those phases alone that compile nothing."""
    names = sorted(only if isinstance(only, list) else tables.TABLE)
    if isinstance(only, str):
        names = [
            n
            for n in names
            if n == only
            or n.startswith(only)
            and only.endswith(".")
            or n.rsplit(".", 1)[-1] == only
        ]
        if not names:
            raise SystemExit(f"no function {only!r} in the tables of tools/comparison")
    return [case(seed, number, names, types) for number in range(count)]
