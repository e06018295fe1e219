"""Makers of arguments for functions that are called alike: elementwise, reductions, and the like.

A maker takes a `Draw` and gives a `Call`. The functions here return makers; the tables (table_*.py)
say which function has which.
"""

from __future__ import annotations

from collections.abc import Callable

from comparison.draw import Arg, Call, Draw, Shape, call, source

Maker = Callable[[Draw], Call]
Table = dict[str, Maker]

ALL = "ffffiicub"  # kinds, floating most often
REAL = "fffiub"


def several(table: Table, prefix: str, names: str, maker: Maker) -> None:
    """Enter `maker` for each of the names."""
    for name in names.split():
        table[f"{prefix}.{name}"] = maker


def elementwise(count: int, kinds: str = ALL, values: str = "any", wrong: float = 0.02) -> Maker:
    """`count` operands that broadcast, of any of the dtypes."""

    def make(d: Draw) -> Call:
        chosen = d.choice(kinds) if d.chance(0.6) else kinds
        args = d.operands(count, chosen, values)
        if d.chance(wrong):
            args[d.randrange(count)] = d.wrong()
        return call(*args)

    return make


def strict(count: int, kinds: str, values: str = "any") -> Maker:
    """Operands of lax: one shape and dtype, now and then not."""

    def make(d: Draw) -> Call:
        chosen = d.choice(kinds)
        if d.chance(0.75):
            return call(*d.operands(count, chosen, values, same=True))
        if d.chance(0.3):
            return call(*d.operands(count, ALL, values))
        shape = d.shape()
        return call(
            *[
                d.array(shape, dtype=d.dtype(chosen), values=values)
                if d.chance(0.6)
                else d.scalar(chosen, values)
                for _ in range(count)
            ]
        )

    return make


def mask(d: Draw, shape: Shape) -> Arg:
    """Booleans for `where=`, that broadcast to `shape`."""
    shape = tuple(1 if d.chance(0.2) else n for n in shape)
    return d.array(shape[d.randint(0, len(shape)) :] if d.chance(0.2) else shape, "b")


def reduction(
    kinds: str = ALL, options: str = "", several_axes: bool = True, values: str = "any"
) -> Maker:
    """One operand and an axis; options: words of keepdims dtype where initial ddof."""

    def make(d: Draw) -> Call:
        shape = d.shape(0, 3)
        operand = d.operand(shape, kinds, values) if d.chance(0.98) else d.wrong()
        keywords = d.some(0.85, axis=lambda: d.axis(len(shape), several=several_axes))
        drawn = {
            "keepdims": lambda: True,
            "dtype": d.dtype_arg,
            "where": lambda: mask(d, shape),
            "initial": lambda: d.scalar("fi", "plain"),
            "ddof": lambda: d.choice((1, 0, 2, 0.5)),
            "correction": lambda: d.choice((1, 0, 0.5)),
            "include_initial": lambda: True,
            "reverse": lambda: True,
        }
        for option in options.split():
            keywords.update(d.some(0.25, **{option: drawn[option]}))
        return call(operand, **keywords)

    return make


def square(d: Draw, kinds: str = "ffffc", values: str = "plain", least: int = 0) -> Arg:
    """A square matrix, or a stack of them."""
    n = d.randint(least, 4) if d.chance(0.9) else 1
    return d.array((*d.filled(0, 1), n, n), kinds, values)


def diagonally_dominant(d: Draw, batch: Shape, n: int, kinds: str = "ffffc") -> Arg:
    """A well-conditioned matrix."""
    inner = d.array((*batch, n, n), kinds, "plain")
    return Arg(f"{inner.text} + 8 * jnp.eye({n}, dtype='{dtype_of(inner)}')", True)


def positive_definite(d: Draw, batch: Shape, n: int, kinds: str = "ffffc") -> Arg:
    """A symmetric (Hermitian) matrix with eigenvalues above 1."""
    dtype = d.dtype(kinds)
    inner = d.nested((*batch, n, n), dtype, "plain") if n else f"np.zeros({(*batch, n, n)})"
    return Arg(f"spd({inner}, '{dtype}')", True)


def dtype_of(array: Arg) -> str:
    """The dtype that an array's text ends with."""
    return array.text.rsplit("'", 2)[1]


def text_of_dtype(name: str) -> Arg:
    return source(f"jnp.{'bool_' if name == 'bool' else name}")
