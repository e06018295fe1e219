"""How an operation may be cut over the devices of a mesh: factors of the axes of its operands.

A rule names the loops of an operation, its factors, and says which of them each axis of each
operand and result runs over. An axis that is cut over devices cuts its factor for all that have it.
For `families`, which writes the rules, and `propagate` and `emit`, which read them. What would
break it: a factor whose parts do not depend on themselves alone and that is not in `whole`.

A layout is a tuple: for each axis of an array the axes of the mesh it is cut over, the major first.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numjet.base.record import field, record

Layout = tuple[tuple[Any, ...], ...]
Sizes = Mapping[Any, int]
Cuts = dict[int, tuple]


@record(eq=False)
class Rule:
    """ins, outs: for each operand and result, for each of its axes, the factors that it runs over,
    the major first; none for an axis of length 1 and for one that is always whole.

    sizes: how long each factor is. whole: those that may not be cut. reduced: those that the
    results lack, and how parts are joined ("add", "max", "min"). local(params, shapes, out_shapes):
    params for operands and results of these shapes.
    """

    ins: list[list[tuple[int, ...]]]
    outs: list[list[tuple[int, ...]]]
    sizes: dict[int, int]
    whole: set[int] = field(default_factory=set)
    reduced: dict[int, str] = field(default_factory=dict)
    local: Callable[[dict, list, list], dict] | None = None


class Factors:
    """Numbers for factors while a rule is written."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}

    def new(self, size: int) -> tuple[int, ...]:
        """A factor of its own, or none for a single element."""
        if size == 1:
            return ()
        number = len(self.sizes)
        self.sizes[number] = size
        return (number,)

    def of(self, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """A factor for each axis."""
        return [self.new(n) for n in shape]


def count(axes: Sequence[Any], sizes: Sizes) -> int:
    """How many parts axes of the mesh cut into."""
    return math.prod([sizes[a] for a in axes])


def layout_of(dims: Sequence[tuple[int, ...]], cuts: Cuts) -> Layout:
    """The layout of an array whose axes run over these factors."""
    return tuple([tuple([a for f in factors for a in cuts.get(f, ())]) for factors in dims])


def local_shape(shape: Sequence[int], layout: Layout, sizes: Sizes) -> tuple[int, ...]:
    """The shape of one device's part."""
    return tuple([n // count(axes, sizes) for n, axes in zip(shape, layout, strict=True)])


def dividing(shape: Sequence[int], layout: Layout, sizes: Sizes) -> Layout:
    """The layout without the minor axes that do not divide their axis of the array."""
    found = []
    for n, axes in zip(shape, layout, strict=True):
        while n % count(axes, sizes):
            axes = axes[:-1]
        found.append(axes)
    return tuple(found)


def results(
    rule: Rule, ins: Sequence[Layout | None], wanted: Sequence[Layout | None], sizes: Sizes,
    uneven: bool = False,
) -> list[Layout]:  # fmt: skip
    """The layouts of the results. Axes that were whole while they were computed are cut as the
    operands' were: that costs nothing, and saves memory. uneven: as in `assign`."""
    cuts = assign(rule, ins, wanted, sizes, kept=True, uneven=uneven)
    return [layout_of(dims, cuts) for dims in rule.outs]


def agreed(rule: Rule, ins: Sequence[Layout | None]) -> list[Layout | None]:
    """The layouts of operands without the axes that cut a factor of a result in one of them and
    another way in another; and without those that cut a factor which is summed away here, and one
    of a result there."""
    found: dict[int, list] = {}
    for dims, layout in zip(rule.ins, ins, strict=True):
        for factors, axes in zip(dims, layout or ()):
            if len(factors) == 1 and axes:
                found.setdefault(factors[0], []).append(tuple(axes))
    chosen: dict[int, tuple] = {}
    taken: set = set()
    for f in [f for dims in rule.outs for factors in dims for f in factors]:
        if f not in found or f in chosen:
            continue
        longest = max(found[f], key=len)
        alike = all(longest[: len(way)] == way for way in found[f])
        chosen[f] = tuple([a for a in longest if a not in taken]) if alike else ()
        taken.update(chosen[f])

    def kept(factors: tuple[int, ...], axes: Sequence[Any]) -> tuple:
        if len(factors) == 1 and factors[0] in chosen:
            return chosen[factors[0]] if axes else ()
        summed = factors and all(f in rule.reduced for f in factors)
        return tuple([a for a in axes if not (summed and a in taken)])

    return [
        layout and tuple([kept(*pair) for pair in zip(dims, layout, strict=True)])
        for dims, layout in zip(rule.ins, ins, strict=True)
    ]


def assign(
    rule: Rule,
    ins: Sequence[Layout | None],
    wanted: Sequence[Layout | None],
    sizes: Sizes,
    kept: bool = False,
    uneven: bool = False,
) -> Cuts:
    """Which axes of the mesh cut each factor, given the operands' layouts. uneven: a factor that is
    all of an axis may be cut into parts that are not equally long.

    Operands that are cut decide, the largest first, since moving it would cost most. What only
    operands that are None (free to be cut as it pleases) run over, or none at all, is cut as the
    results are wanted.
    """
    cuts: Cuts = {}
    used: set = set()
    later: set[int] = set()
    even = set(rule.sizes)
    if uneven:
        dims = [factors for axes in (*rule.ins, *rule.outs) for factors in axes]
        even = {f for factors in dims if len(factors) > 1 for f in factors}

    def take(dims: Sequence[tuple[int, ...]], layout: Layout) -> None:
        for factors, axes in zip(dims, layout, strict=True):
            rest = list(axes)
            for f in factors:
                if not rest:
                    break
                if f in cuts:
                    had = cuts[f]
                    if tuple(rest[: len(had)]) != had:
                        break
                    rest = rest[len(had) :]
                    left = rule.sizes[f] // count(had, sizes)
                else:
                    left = rule.sizes[f]
                if f in rule.whole and not kept or f in later:
                    break
                mine = list(cuts.get(f, ()))
                while rest and rest[0] not in used and (
                    f not in even or left % sizes[rest[0]] == 0
                ):
                    left = -(-left // sizes[rest[0]])
                    used.add(rest[0])
                    mine.append(rest.pop(0))
                if mine:
                    cuts[f] = tuple(mine)
                if left > 1:
                    break  # the next factor is cut only behind one that is cut up entirely

    order = sorted(
        [i for i, layout in enumerate(ins) if layout is not None and any(layout)],
        key=lambda i: -math.prod([rule.sizes[f] for d in rule.ins[i] for f in d]),
    )
    # What operands cut differently and is summed away comes last: the results' axes matter more.
    later = _disputed(rule, ins)
    for _ in range(2 if later else 1):
        for i in order:
            found = ins[i]
            assert found is not None
            take(rule.ins[i], found)
        later = set()
    # What no operand that lies somewhere runs over is cut as the results are wanted.
    later = {
        f for dims, layout in zip(rule.ins, ins, strict=True) if layout is not None
        for factors in dims for f in factors
    }  # fmt: skip
    for dims, layout in zip(rule.outs, wanted, strict=True):
        if layout is not None:
            take(dims, layout)
    return _sayable(rule, cuts, sizes)


def _disputed(rule: Rule, ins: Sequence[Layout | None]) -> set[int]:
    """The factors that are summed away and that operands cut over axes that differ."""
    seen: dict[int, set] = {}
    for dims, layout in zip(rule.ins, ins, strict=True):
        for factors, axes in zip(dims, layout or ()):
            for f in factors[:1]:
                if f in rule.reduced and axes:
                    seen.setdefault(f, set()).add(axes)
    return {f for f, axes in seen.items() if len(axes) > 1}


def _sayable(rule: Rule, cuts: Cuts, sizes: Sizes) -> Cuts:
    """Without cuts of a minor factor of an axis whose major ones are not cut up entirely: no layout
    says that."""
    again = True
    while again:
        again = False
        for dims in [*rule.ins, *rule.outs]:
            for factors in dims:
                complete = True
                for f in factors:
                    if f in cuts and not complete:
                        del cuts[f]
                        again = True
                    complete = complete and count(cuts.get(f, ()), sizes) == rule.sizes[f]
    return cuts
