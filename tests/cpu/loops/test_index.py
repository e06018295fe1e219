"""The index algebra: simplification, and that it never changes a value."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings, strategies as st

from numjet.cpu.loops.index import (
    Clamp,
    Div,
    Index,
    LoopVar,
    Mod,
    clamp,
    depends,
    linear_address,
    rewrite,
    stride,
)

I, J, K = LoopVar("i", 10), LoopVar("j", 64), LoopVar("k", 3)  # noqa: E741
i, j, k = Index.of(I), Index.of(J), Index.of(K)


def value(x: Index, env: dict) -> int:
    total = x.const
    for atom, c in x.terms:
        if isinstance(atom, LoopVar):
            a = env[atom]
        else:
            parts = [value(p, env) for p in atom.parts()]
            if isinstance(atom, Div):
                a = parts[0] // atom.divisor
            elif isinstance(atom, Mod):
                a = parts[0] % atom.divisor
            elif isinstance(atom, Clamp):
                a = min(max(parts[0], atom.low), atom.high)
            else:
                a = parts[0] * parts[1]
        total += c * a
    return total


@pytest.mark.parametrize(
    "got, expected",
    [
        ((i * 64 + j) // 64, i),
        ((i * 64 + j) % 64, j),
        ((i * 64 + j) // 128, i // 2),
        ((i * 64 + j) % 128, i % 2 * 64 + j),
        ((i * 192 + j * 3 + k) // 3, i * 64 + j),
        ((i * 192 + j * 3 + k) % 3, k),
        (i // 3 * 3 + i % 3, i),
        (i // 3 * 12 + i % 3 * 4 + 7, i * 4 + 7),
        (j // 4 // 4, j // 16),
        (j % 16 % 4, j % 4),
        (j % 16 // 4 * 4 + j % 4, j % 16),
        (clamp(j, 0, 63), j),
        (clamp(j, -5, -1), Index.of(-1)),
        (i - i, Index.of(0)),
        ((i + 20) // 10, i // 10 + 2),
        (i // 10, Index.of(0)),
        (linear_address([j // 3, j % 3], (22, 3)), j),
        (linear_address([i, 0, j], (10, 1, 64)), i * 64 + j),
    ],
)
def test_simplifies(got, expected):
    assert got == expected


def test_strides():
    assert stride(i * 64 + j, I) == 64
    assert stride(j // 16, J) is None
    assert stride(j // 16 * 100 + j % 16, J, 16) == 1
    assert stride(j % 16, J, 32) is None
    assert stride((j + 1) % 16, J, 8) is None
    assert stride((j * 2 + 1) // 2, J, 8) == 1
    assert depends(j // 7, J) and not depends(j // 7, I)


def test_division_needs_a_constant():
    with pytest.raises(NotImplementedError, match="positive constant"):
        i // j


def _indices():
    leaf = st.sampled_from([i, j, k]) | st.integers(-70, 70).map(Index.of)

    def grow(inner):
        constant = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 64, 100])
        return st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
            st.tuples(inner, st.integers(-9, 70)).map(lambda p: p[0] * p[1]),
            st.tuples(inner, constant).map(lambda p: p[0] // p[1]),
            st.tuples(inner, constant).map(lambda p: p[0] % p[1]),
            st.tuples(inner, constant, constant).map(lambda p: p[0] // p[1] * p[1] + p[0] % p[2]),
            inner.map(lambda x: clamp(x, -3, 40)),
        )

    return st.recursive(leaf, grow, max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(_indices(), st.sampled_from(["+", "//", "%", "clamp"]), st.integers(1, 130))
def test_arithmetic_keeps_values_and_ranges(x, op, c):
    made = {"+": lambda: x + c, "//": lambda: x // c, "%": lambda: x % c,
            "clamp": lambda: clamp(x, -c, c)}[op]()  # fmt: skip
    for a, b, d in itertools.product((0, 1, 9), (0, 5, 31, 32, 63), (0, 2)):
        env = {I: a, J: b, K: d}
        v = value(x, env)
        want = {"+": v + c, "//": v // c, "%": v % c, "clamp": min(max(v, -c), c)}[op]
        assert value(made, env) == want
        assert x.lo <= v <= x.hi and made.lo <= want <= made.hi


@settings(max_examples=200, deadline=None)
@given(_indices(), _indices())
def test_rewriting_substitutes(x, y):
    y = clamp(y, 0, 9)
    made = rewrite(x, {I: y}.get)
    for a, b, d in itertools.product((0, 9), (0, 31, 63), (0, 2)):
        env = {I: a, J: b, K: d}
        assert value(made, env) == value(x, {**env, I: value(y, env)})


@settings(max_examples=200, deadline=None)
@given(_indices(), st.sampled_from([1, 2, 4, 8, 16]))
def test_stride_holds_inside_blocks(x, block):
    step = stride(x, J, block)
    if step is None:
        return
    for a, start, d in itertools.product((0, 7), range(0, 64, block), (0, 2)):
        first = value(x, {I: a, J: start, K: d})
        for lane in range(block):
            assert value(x, {I: a, J: start + lane, K: d}) == first + lane * step


@given(st.lists(st.integers(2, 7), min_size=2, max_size=5), st.integers(0, 3))
def test_the_places_of_a_position_in_several_axes_lie_at_the_position(shape, more):
    j, b = LoopVar("j", math.prod(shape)), LoopVar("b", 5)
    at, places, step = Index.of(j) + Index.of(b) * math.prod(shape) * more, [], 1
    for n in reversed(shape):
        places.append(at // step % n if len(places) + 1 < len(shape) else at // step)
        step *= n
    assert linear_address(places[::-1], shape) == at
