"""Grows a program a statement at a time: what may come next depends on the values there are.

For `draw`. Each statement is tried at once, operation by operation; what raises, is too large or is
not finite is forgotten. Families of statements register with `statement` and give the text of an
expression, or None where nothing fits. What would break it: a statement with a meaning that NumPy,
or JAX, leaves open.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numjet as nj
from fuzzing import programs
from fuzzing.arrays import is_float

Named = tuple[str, Any]
STATEMENTS: list[tuple[float, Callable[[Drawer], str | None]]] = []
WIDER: list[tuple[float, Callable[[Drawer], str | None]]] = []  # for seeds from programs.WIDE on
AIMED: list[tuple[float, Callable[[Drawer], str | None]]] = []  # of seeds from programs.AIMED on
EDGES: list[tuple[float, Callable[[Drawer], str | None]]] = []  # of seeds from programs.EDGES on
LARGEST = 20_000  # elements
# Larger numbers are not made of smaller ones: errors grow with them.
HIGHEST = {"f": 1e3, "c": 1e3, "V": 50.0, "e": 50.0}


def statement(weight: float, wide: bool = False) -> Callable:
    """Registers a family of statements, to be drawn with this weight; `wide`: by the wider
    generator alone, so that earlier seeds mean what they meant."""

    def add(draw: Callable[[Drawer], str | None]) -> Callable:
        (WIDER if wide else STATEMENTS).append((weight, draw))
        return draw

    return add


class Drawer:
    """A block of statements under construction: lines, and the values that they have made.

    outer: values of the blocks around, which are used now and then. families: of statements.
    """

    def __init__(
        self, rng: np.random.Generator, pool: Sequence[Named], names: dict[str, Any],
        outer: Sequence[Named] = (), depth: int = 0, special: bool = False,
        families: Sequence[tuple[float, Callable[[Drawer], str | None]]] = STATEMENTS,
        largest: int = LARGEST,
    ) -> None:  # fmt: skip
        self.rng, self.depth, self.special = rng, depth, special
        self.families, self.largest = families, largest
        self.pool, self.outer = list(pool), list(outer)
        self.scope = {**names, **dict(pool)}
        self.lines: list[str] = []
        self.made: list[str] = []

    # ---- what statements are made of

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int) -> int:
        """An integer in [low, high)."""
        return int(self.rng.integers(low, high))

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[self.number(0, len(choices))]

    def pick(self, test: Callable[[Any], bool] = lambda v: True) -> Named | None:
        """A value that fits, a recent one rather than an old one."""
        values = self.outer if self.outer and self.chance(0.15) else self.pool
        fitting = [named for named in values if test(named[1])]
        if not fitting:
            return None
        return self.one(fitting[-4:] if self.chance(0.6) else fitting)

    def wide_numbers(self) -> bool:
        """Whether there are floats of 64 bits."""
        return bool(self.scope["jnp"].zeros(0, float).dtype.itemsize == 8)

    def floating(self, test: Callable[[Any], bool] = lambda v: True) -> Named | None:
        return self.pick(lambda v: is_float(v.dtype) and test(v))

    def mate(self, x: Named) -> str | None:
        """Something that broadcasts with x: of its shape, a row, a column, a number, itself."""
        name, value = x
        y = self.pick(lambda v: v.shape == value.shape and v.dtype == value.dtype)
        kind = self.rng.random()
        if kind < 0.15:
            return self.one(["2", "-1", "3"] if value.dtype.kind in "iu" else ["0.5", "-1.5", "2"])
        if kind < 0.35 and value.ndim:
            axis = self.number(0, value.ndim)
            picked = ", ".join(":1" if a == axis else ":" for a in range(value.ndim))
            return f"{name}[{picked}]" if value.shape[axis] else None
        if kind < 0.5:
            z = self.pick(lambda v: _broadcasts(v.shape, value.shape))
            return None if z is None else z[0]
        return None if y is None else y[0]

    # ---- statements

    def fresh(self, prefix: str = "v") -> str:
        """A name that no block has used."""
        counter = self.scope["__count__"]
        counter[0] += 1
        return f"{prefix}{counter[0]}"

    def attempt(self, text: str, functions: str = "") -> bool:
        """Add `name = text`, after definitions of functions, where it runs and is tame."""
        try:
            if functions:
                exec(functions, self.scope)
            value = eval(text, self.scope)
        except Exception:
            return False
        found = list(value) if isinstance(value, tuple | list) else [value]
        if not found or not all(self.tame(v) for v in found):
            return False
        names = [self.fresh() for _ in found]
        left = ", ".join(names) + ("," if isinstance(value, tuple | list) else "")
        self.lines += [*functions.splitlines(), f"{left} = {text}"]
        for name, v in zip(names, found):
            self.scope[name] = v
            self.pool.append((name, v))
            self.made.append(name)
        return True

    def tame(self, value: Any) -> bool:
        """Whether a value is an array that may stay."""
        if not hasattr(value, "dtype") or value.size > self.largest:
            return False
        x = np.asarray(value)
        if x.dtype.kind not in "fcV" or self.special:
            return True
        top = HIGHEST["e" if x.dtype == np.float16 else x.dtype.kind]
        with np.errstate(all="ignore"):
            return bool(np.all(np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else float))
                               <= top))  # fmt: skip

    def step(self) -> None:
        """One more statement, where the family that is drawn has one."""
        weights = np.array([w for w, _ in self.families])
        family = self.families[int(self.rng.choice(len(weights), p=weights / weights.sum()))][1]
        text = family(self)
        if text is not None:
            self.attempt(text)

    def grow(self, count: int) -> None:
        """Up to `count` more statements."""
        for _ in range(3 * count):
            if len(self.made) >= count:
                return
            self.step()

    # ---- functions inside

    def block(
        self, parameters: Sequence[Any], count: int,
        result: Callable[[Drawer, list[str]], str | None], closes: bool = True,
    ) -> tuple[str, str] | None:  # fmt: skip
        """A function of values like `parameters`: its name and its definition.

        result(drawer, names of the parameters) -> the text of what the function returns. It reads
        values of the functions around it only if it `closes` over them.
        """
        names = [self.fresh("p") for _ in parameters]
        pool = list(zip(names, parameters, strict=True))
        outer = [*self.outer, *self.pool] if closes else []
        inner = Drawer(self.rng, pool, self.scope, outer, self.depth + 1, self.special,
                       self.families, self.largest)  # fmt: skip
        inner.grow(count)
        returned = result(inner, names)
        if returned is None:
            return None
        name = self.fresh("f")
        body = textwrap.indent("\n".join([*inner.lines, f"return {returned}"]), "    ")
        return name, f"def {name}({', '.join(names)}):\n{body}"

    def like(self, value: Any) -> str | None:
        """The text of a recent value cast and broadcast to be like `value`."""
        made = [named for named in self.pool if named[0] in self.made]
        fitting = [n for n, v in made if v.shape == value.shape]
        fitting = fitting or [n for n, v in made if _broadcasts(v.shape, value.shape)]
        fitting = fitting or [n for n, v in self.pool if _broadcasts(v.shape, value.shape)]
        if not fitting:
            return None
        name = fitting[-1] if self.chance(0.7) else self.one(fitting)
        found = dict(self.pool)[name]
        text = name
        if found.dtype.kind == "c" and value.dtype.kind != "c":
            text = f"jnp.real({text})"
        if found.dtype != value.dtype:
            text = f"{text}.astype('{value.dtype.name}')"
        if found.shape != value.shape:
            text = f"jnp.broadcast_to({text}, {value.shape})"
        return text


def _broadcasts(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(small, large) == large
    except ValueError:
        return False


def draw(seed: int) -> programs.Program:
    """The program of a seed."""
    from fuzzing import (  # noqa: F401 - they register
        aimed_elements,
        aimed_kernels,
        aimed_loops,
        aimed_moves,
        aimed_nests,
        aimed_places,
        arrays,
        edge_kernels,
        edge_large,
        edge_loops,
        edge_sums,
        nested,
        statements,
        wide_kernels,
        wide_nested,
        wide_places,
    )

    rng = np.random.default_rng(seed)
    wide = seed >= programs.WIDE
    x64 = bool(rng.random() < 0.4)
    special = bool(rng.random() < (0.04 if wide else 0.08))
    large = wide and bool(rng.random() < (0.25 if seed >= programs.AIMED else 0.1))
    given = {}
    shape: tuple[int, ...] = ()
    for k in range(int(rng.integers(1, 4))):
        # Arguments of equal shapes and dtypes have more to do with each other.
        if not k or rng.random() >= 0.5:
            shape = arrays.wide_shape_of(rng, large) if wide else arrays.shape_of(rng)
        dtype = next(iter(given.values())).dtype if k and rng.random() < 0.5 else arrays.dtype_of(
            rng, x64)  # fmt: skip
        given["abc"[k]] = arrays.values(rng, shape, dtype, special)
    aimed = seed >= programs.AIMED
    families = AIMED if aimed else STATEMENTS + WIDER if wide else STATEMENTS
    if seed >= programs.EDGES:
        families = EDGES
    with nj.enable_x64(x64), nj.disable_jit(), np.errstate(all="ignore"):
        names = programs.scope(nj) | {"__count__": [0]}
        pool = [(name, nj.numpy.asarray(x)) for name, x in given.items()]
        drawer = Drawer(rng, pool, names, special=special, families=families,
                        largest=10 * LARGEST if large else LARGEST)  # fmt: skip
        most = 5 if aimed else 14 if wide and not large else 10
        drawer.grow(int(rng.integers(2, most)))
    made = drawer.made or list(given)
    # What nobody uses would not be computed otherwise.
    text = "\n".join(drawer.lines)
    results = [name for name in made if len(re.findall(rf"\b{name}\b", text)) < 2]
    results += [made[int(rng.integers(len(made)))] for _ in range(int(rng.integers(0, 3)))]
    if aimed:  # arguments as they are, which may be donated
        results += [name for name in given if rng.random() < 0.2]
    if wide:  # written as well as read by what follows
        results += [name for name in made if rng.random() < 0.3]
    results = list(dict.fromkeys(results))
    return programs.Program(seed, x64, given, drawer.lines, results)
