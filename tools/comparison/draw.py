"""Draws the arguments of generated calls, as Python text that means the same under both libraries.

A `Draw` belongs to one case: its random numbers come from the case's own seed, so that a case can
be made again alone. Its methods give an `Arg`, the text of an argument and whether `jit` traces it;
other values given to `call` are static and written as they print. The text sees `jax`, `jnp`, `np`,
`nan`, `inf` and `weak` (see worker.py). The tables of functions use nothing else to make arguments.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Shape = tuple[int, ...]

# Dtypes by kind, with the frequency that users' programs give them; 64 bits under enable_x64 alone.
DTYPES = {
    "f": ("float32",) * 5 + ("float16", "bfloat16"),
    "c": ("complex64",),
    "i": ("int32",) * 4 + ("int8", "int16"),
    "u": ("uint8", "uint32", "uint16"),
    "b": ("bool",),
}
WIDE = {"f": ("float64",), "c": ("complex128",), "i": ("int64",), "u": ("uint64",)}

EDGES = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1e30,
    -1e30,
    2.0,
    1e-6,
    100.0,
    -100.0,
)
SUBNORMAL = 1e-40  # of float32
WORD_EDGES = (0, 1, -1, 2, 7, 31, 32, 127, -128, 2**31 - 1, -(2**31))


@dataclass(frozen=True)
class Arg:
    """The text of one argument; `traced`: jit passes it as an argument, not by closure."""

    text: str
    traced: bool = False


@dataclass
class Call:
    """What a table's function gives: positional and keyword arguments."""

    args: list[Arg]
    keywords: dict[str, Arg] = field(default_factory=dict)
    setup: str = ""  # statements before the call, such as definitions of functions


def static(value: Any) -> Arg:
    """`value` as an argument that jit closes over; an Arg passes as it is."""
    return value if isinstance(value, Arg) else Arg(repr(value))


def source(text: str) -> Arg:
    """Python text as a static argument: dtypes, functions."""
    return Arg(text)


def call(*args: Any, setup: str = "", **keywords: Any) -> Call:
    return Call([static(a) for a in args], {k: static(v) for k, v in keywords.items()}, setup)


def sequence(items: Sequence[Arg], brackets: str = "[]") -> Arg:
    """A list (or tuple) of arguments; what jit traces is then the whole list."""
    body = ", ".join(item.text for item in items)
    if brackets == "()" and len(items) == 1:
        body += ","
    return Arg(brackets[0] + body + brackets[1], any(item.traced for item in items))


class Draw(random.Random):
    """Random numbers, and the arguments made of them."""

    def __init__(self, seed: Any, x64: bool = False):
        super().__init__(str(seed))
        self.x64 = x64

    # --- small decisions

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def some(self, probability: float = 0.3, **options: Any) -> dict[str, Any]:
        """Each keyword with this probability. A callable value is called to draw it."""
        return {
            name: value() if callable(value) else value
            for name, value in options.items()
            if self.chance(probability)
        }

    def extent(self) -> int:
        return self.choice((1, 1, 4, 0) if self.chance(0.25) else (2, 3))

    def shape(self, low: int = 0, high: int = 3) -> Shape:
        return tuple(self.extent() for _ in range(self.rank(low, high)))

    def filled(self, low: int = 0, high: int = 3) -> Shape:
        """A shape without empty axes."""
        return tuple(self.choice((1, 2, 3, 3)) for _ in range(self.rank(low, high)))

    def rank(self, low: int, high: int) -> int:
        """Three axes are rare: what they find is found with two most often."""
        return (
            self.randint(low, high)
            if self.chance(0.3)
            else self.randint(low, min(high, max(low, 2)))
        )

    def dtype(self, kinds: str = "f") -> str:
        kind = self.choice(kinds)
        if self.x64 and kind in WIDE and self.chance(0.5):
            return self.choice(WIDE[kind])
        return self.choice(DTYPES[kind])

    def dtype_arg(self, kinds: str = "fiucb") -> Arg:
        return source(f"jnp.{self.dtype(kinds)}".replace("jnp.bool", "jnp.bool_"))

    def axis(self, rank: int, none: float = 0.25, several: bool = True) -> Any:
        """An axis of an array of `rank` axes, now and then one out of range."""
        if self.chance(none):
            return None
        if self.chance(0.03):
            return self.choice((rank, -rank - 1))
        if rank == 0:
            return self.choice((0, -1, ())) if several else self.choice((0, -1))
        if several and self.chance(0.25):
            chosen = self.sample(range(rank), self.randint(0, rank))
            return tuple(a - rank if self.chance(0.3) else a for a in chosen)
        return self.randrange(-rank, rank)

    # --- values

    def number(self, values: str) -> float:
        if values == "any":
            if self.chance(0.25):
                return SUBNORMAL if self.chance(0.02) else self.choice(EDGES)
            return self.gauss(0, 2)
        if values == "plain":
            return self.gauss(0, 2)
        if values == "positive":
            return abs(self.gauss(0, 2)) + 0.1
        if values == "unit":
            return self.uniform(0.02, 0.98)
        if values == "small":
            return float(self.randint(-3, 3))
        if values == "distinct":
            return self.gauss(0, 5)
        raise ValueError(f"no values {values!r}")

    def word(self, values: str, info: np.iinfo) -> int:
        if values == "any" and self.chance(0.2):
            return min(max(self.choice(WORD_EDGES), info.min), info.max)
        low, high = (1, 6) if values in ("positive", "unit") else (-5, 9)
        return self.randint(max(low, info.min), high)

    def value(self, dtype: str, values: str) -> str:
        if dtype == "bool":
            return repr(self.chance(0.5))
        if dtype.startswith(("int", "uint")):
            return repr(self.word(values, np.iinfo(dtype)))
        if dtype.startswith("complex"):
            part = np.float32 if dtype == "complex64" else np.float64
            return (
                f"complex({float(part(self.number(values)))!r}, "
                f"{float(part(self.number(values)))!r})"
            )
        kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype).type
        with np.errstate(over="ignore"):
            return repr(float(kind(self.number(values))))

    def nested(self, shape: Shape, dtype: str, values: str) -> str:
        if not shape:
            return self.value(dtype, values)
        return "[" + ", ".join(self.nested(shape[1:], dtype, values) for _ in range(shape[0])) + "]"

    def array(
        self,
        shape: Shape | None = None,
        kinds: str = "f",
        values: str = "any",
        dtype: str | None = None,
        host: bool = False,
    ) -> Arg:
        """An Array of this shape; `host`: a NumPy array. Drawn where not given."""
        shape = self.shape() if shape is None else tuple(shape)
        dtype = dtype or self.dtype(kinds)
        module = "np" if host and dtype != "bfloat16" else "jnp"
        if 0 in shape:
            return Arg(f"{module}.zeros({shape}, '{dtype}')", True)
        return Arg(f"{module}.array({self.nested(shape, dtype, values)}, '{dtype}')", True)

    def scalar(self, kinds: str = "f", values: str = "any") -> Arg:
        """A Python number."""
        kind = self.choice(kinds)
        if kind in "iu":
            return Arg(repr(self.randint(0 if kind == "u" else -4, 6)), True)
        if kind == "b":
            return Arg(repr(self.chance(0.5)), True)
        dtype = "complex128" if kind == "c" else "float64"
        return Arg(self.value(dtype, values), True)

    def weak(self, shape: Shape, kinds: str = "f", values: str = "any") -> Arg:
        """A weakly typed Array, such as operations on Python numbers give."""
        kind = self.choice(kinds.replace("u", "").replace("b", "") or "i")
        dtype = {"f": "float32", "c": "complex64", "i": "int32"}[kind]
        if 0 in shape:
            return Arg(f"weak(np.zeros({shape}, '{dtype}'))", True)
        return Arg(f"weak({self.nested(shape, dtype, values)})", True)

    def operand(self, shape: Shape | None = None, kinds: str = "f", values: str = "any") -> Arg:
        """Anything users pass as an array: Arrays of all types, weak ones, NumPy's, numbers."""
        shape = self.shape() if shape is None else tuple(shape)
        pick = self.random()
        if pick < 0.08:
            return self.weak(shape, kinds, values)
        if pick < 0.16:
            return self.array(shape, kinds, values, host=True)
        if pick < 0.28 and shape == ():
            return self.scalar(kinds, values)
        return self.array(shape, kinds, values)

    def wrong(self) -> Arg:
        """What no function of arrays takes."""
        return source(self.choice(("'text'", "None", "[1.0, 2.0]", "object()", "{'a': 1.0}")))

    def operands(
        self, count: int, kinds: str = "f", values: str = "any", same: bool = False
    ) -> list[Arg]:
        """Operands whose shapes broadcast (now and then do not); `same`: of one shape and dtype."""
        full = self.shape()
        if same:
            dtype = self.dtype(kinds)
            return [self.array(full, dtype=dtype, values=values) for _ in range(count)]
        drawn = []
        for _ in range(count):
            shape = tuple(1 if self.chance(0.15) else n for n in full)
            if self.chance(0.25):
                shape = shape[self.randint(0, len(shape)) :]
            if self.chance(0.02):
                shape = (*shape, 5)
            drawn.append(self.operand(shape, kinds, values))
        return drawn
