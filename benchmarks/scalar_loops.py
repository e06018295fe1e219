"""Elementwise programs as scalar loops for Numba: what a user of Numba would write, by the hundred.

A program runs once on `Term`s, which write each operation down; the loop over all elements, shared
out among threads, has a line for each. A gradient (of the mean of the results) is the same lines
and then their derivatives, backwards. Imported by the rows; needs Numba only when one is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

# Of each operation: its text, and the derivatives by its operands, given those and the result y.
OPERATIONS = {
    "add": ("{0} + {1}", "1", "1"),
    "sub": ("{0} - {1}", "1", "-1"),
    "mul": ("{0} * {1}", "{1}", "{0}"),
    "div": ("{0} / {1}", "c(1.0) / {1}", "-{y} / {1}"),
    "neg": ("-{0}", "-1"),
    "abs": ("abs({0})", "math.copysign(c(1.0), {0})"),
    "sqrt": ("np.sqrt({0})", "c(0.5) / {y}"),
    "exp": ("np.exp({0})", "{y}"),
    "log": ("np.log({0})", "c(1.0) / {0}"),
}


class Term:
    """A value of one element: a name, or a number."""

    def __init__(self, program: Program, text: str) -> None:
        self.program, self.text = program, text

    def __add__(self, other: Any) -> Term:
        return self.program.write("add", self, other)

    def __radd__(self, other: Any) -> Term:
        return self.program.write("add", other, self)

    def __sub__(self, other: Any) -> Term:
        return self.program.write("sub", self, other)

    def __rsub__(self, other: Any) -> Term:
        return self.program.write("sub", other, self)

    def __mul__(self, other: Any) -> Term:
        return self.program.write("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Term:
        return self.program.write("div", self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return self.program.write("div", other, self)

    def __neg__(self) -> Term:
        return self.program.write("neg", self)


class Program:
    """The operations of a function of elements, in their order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, tuple[str, ...]]] = []
        one = lambda name: lambda x: self.write(name, x)
        self.names = SimpleNamespace(
            **{name: one(name) for name in ("abs", "sqrt", "exp", "log")},
            zeros_like=lambda _: Term(self, "c(0.0)"), stack=list,
        )  # fmt: skip

    def write(self, operation: str, *operands: Any) -> Term:
        texts = [x.text if isinstance(x, Term) else f"c({float(x)!r})" for x in operands]
        name = f"v{len(self.lines)}"
        self.lines.append((name, operation, tuple(texts)))
        return Term(self, name)

    def text(self) -> list[str]:
        return [f"{name} = {OPERATIONS[op][0].format(*args)}" for name, op, args in self.lines]

    def backwards(self, out: str, seed: str, inputs: Sequence[str]) -> list[str]:
        """The lines after which `d_NAME` is the derivative by each input."""
        lines, known = [f"d_{out} = {seed}"], {out}

        def grow(name: str, text: str) -> None:
            if not name.startswith("c("):
                before = f"d_{name} + " if name in known else ""
                lines.append(f"d_{name} = {before}{text}")
                known.add(name)

        for name, op, args in reversed(self.lines):
            if name not in known:
                continue
            for x, rule in zip(args, OPERATIONS[op][1:], strict=True):
                factor = rule.format(*args, y=name)
                times = {"1": f"d_{name}", "-1": f"(-d_{name})"}
                grow(x, times.get(factor, f"d_{name} * ({factor})"))
        return lines + [f"d_{x} = c(0.0)" for x in inputs if x not in known]


def loop(
    function: Callable, places: Sequence[Any], axes: int = 1, gradient: bool = False,
    dtype: Any = np.float32,
) -> Callable:  # fmt: skip
    """What builds a Numba function of arrays from `function(np, *elements)`.

    places: for each argument where its element stands ("i", "i, j, k", "0, 0, k"), or a list of
    such where the function takes several of it; the result has one place, or a leading axis for
    several. axes: how many the loops run over, the first of them shared out. gradient: of the mean,
    by all arguments; axes of length 1 ("0" in front) are summed over.
    """

    def build(numba: Any) -> Callable:
        program, loads, given = Program(), [], []
        for k, place in enumerate(places):
            names = []
            for i, at in enumerate([place] if isinstance(place, str) else place):
                loads.append(f"x{k}_{i} = x{k}[{at}]")
                names.append(Term(program, f"x{k}_{i}"))
            given.append(names[0] if isinstance(place, str) else names)
        out = function(program.names, *given)
        over = "ijk"[:axes]
        whole = ", ".join(over)
        arguments = ", ".join([f"x{k}" for k in range(len(places))])
        first = next(k for k, place in enumerate(places) if place == whole)
        body = [*loads, *program.text()]
        if gradient:
            inputs = [f"x{k}_0" for k in range(len(places))]
            body += program.backwards(out.text, "scale", inputs)
            head = [f"scale = c(1.0 / x{first}.size)"]
            tail, results = [], []
            for k, place in enumerate(places):
                if place == whole:
                    head.append(f"g{k} = np.empty_like(x{k})")
                    body.append(f"g{k}[{whole}] = d_x{k}_0")
                    results.append(f"g{k}")
                else:  # a sum for each round of the outer loop, added up at the end
                    head.append(f"g{k} = np.zeros(({_size(first, 0)}, x{k}.shape[-1]), x{k}.dtype)")
                    body.append(f"g{k}[i, {over[-1]}] += d_x{k}_0")
                    results.append(f"g{k}.sum(0).reshape(x{k}.shape)")
            tail.append(f"return {', '.join(results)}")
        elif isinstance(out, list):
            head = [f"out = np.empty(({len(out)}, {_size(first, 0)}), x{first}.dtype)"]
            body += [f"out[{n}, {whole}] = {x.text}" for n, x in enumerate(out)]
            tail = ["return out"]
        else:
            head, tail = [f"out = np.empty_like(x{first})"], ["return out"]
            body.append(f"out[{whole}] = {out.text}")
        text, depth = [f"def run({arguments}):", *["    " + line for line in head]], 1
        for axis, name in enumerate(over):
            turn = "numba.prange" if axis == 0 else "range"
            text.append("    " * depth + f"for {name} in {turn}({_size(first, axis)}):")
            depth += 1
        text += ["    " * depth + line for line in body] + ["    " + line for line in tail]
        made: dict[str, Any] = {"np": np, "numba": numba, "math": math, "c": np.dtype(dtype).type}
        exec("\n".join(text), made)
        return numba.njit(parallel=True, fastmath=True)(made["run"])

    return build


def _size(array: int, axis: int) -> str:
    return f"x{array}.shape[{axis}]"
