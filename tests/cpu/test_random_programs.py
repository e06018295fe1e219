"""Programs drawn at random: what is compiled agrees with the references, equation by equation."""

from __future__ import annotations

import numpy as np
import pytest
from jaxpr_interpreter import compiled, spec

from numjet.core.structural import broadcast_in_dim, convert, full, reduce_sum, transpose
from numjet.ops import reduce as red, transcendental as fn
from numjet.ops.arithmetic import add, max as maximum, mul, sub
from numjet.ops.cond import cond
from numjet.ops.dot import dot_general
from numjet.ops.logic import lt
from numjet.ops.scan import scan
from numjet.ops.shape import concatenate, pad, reshape, rev, select
from numjet.ops.slicing import dynamic_slice, dynamic_update_slice, slice as slice_

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
SIZES = (1, 2, 3, 5, 8, 17, 33)


def squash(x):
    """Keeps values small, so that errors do not grow."""
    return fn.tanh(x)


class Drawer:
    """Grows a pool of values by operations drawn at random."""

    def __init__(self, rng, pool):
        self.rng, self.pool = rng, list(pool)

    def pick(self, test=lambda v: True):
        fitting = [v for v in self.pool if test(v)]
        return fitting[self.rng.integers(len(fitting))] if fitting else None

    def step(self):
        kinds = [
            self.unary,
            self.binary,
            self.reduction,
            self.keep,
            self.moving,
            self.broadcast,
            self.cutting,
            self.joining,
            self.product,
            self.update,
            self.branch,
            self.loop,
        ]
        weights = np.array([4, 6, 3, 3, 2, 3, 2, 1, 1, 1, 0.5, 0.7])
        made = self.rng.choice(kinds, p=weights / weights.sum())()
        if made is not None and made.size <= 20000:
            self.pool.append(made)

    def unary(self):
        x = self.pick()
        return [fn.sin, fn.exp, squash, lambda v: mul(v, v)][self.rng.integers(4)](squash(x))

    def binary(self):
        x = self.pick()
        y = self.pick(lambda v: v.shape == x.shape)
        return [add, sub, mul, maximum][self.rng.integers(4)](x, y)

    def reduction(self):
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        axes = tuple(
            sorted(
                self.rng.choice(x.ndim, self.rng.integers(1, x.ndim + 1), replace=False).tolist()
            )
        )
        return squash([reduce_sum, red.reduce_max, red.reduce_min][self.rng.integers(3)](x, axes))

    def keep(self):
        """Normalize along an axis: reduce and use row by row."""
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        axis = int(self.rng.integers(x.ndim))
        kept = tuple(a for a in range(x.ndim) if a != axis)
        return sub(squash(x), broadcast_in_dim(squash(reduce_sum(x, (axis,))), x.shape, kept))

    def moving(self):
        x = self.pick(lambda v: v.ndim > 1)
        if x is None:
            return None
        kind = self.rng.integers(3)
        if kind == 0:
            return transpose(x, tuple(self.rng.permutation(x.ndim).tolist()))
        if kind == 1:
            return rev(x, (int(self.rng.integers(x.ndim)),))
        return reshape(x, (x.size,) if self.rng.integers(2) else (x.shape[0], x.size // x.shape[0]))

    def broadcast(self):
        x = self.pick(lambda v: v.ndim < 3)
        if x is None:
            return None
        n = int(self.rng.choice(SIZES))
        at = int(self.rng.integers(x.ndim + 1))
        shape = (*x.shape[:at], n, *x.shape[at:])
        return broadcast_in_dim(x, shape, tuple(a for a in range(len(shape)) if a != at))

    def cutting(self):
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        if self.rng.integers(3) == 0:
            low, high, inner = self.rng.integers(0, 3, 3).tolist()
            return pad(x, full((), 0.5, F32), ((low, high, inner), *[(0, 0, 0)] * (x.ndim - 1)))
        starts = [int(self.rng.integers(n)) for n in x.shape]
        return slice_(
            x, starts, [int(self.rng.integers(s + 1, n + 1)) for s, n in zip(starts, x.shape)]
        )

    def joining(self):
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        axis = int(self.rng.integers(x.ndim))
        y = self.pick(
            lambda v: (
                v.ndim == x.ndim
                and all(m == n for a, (m, n) in enumerate(zip(v.shape, x.shape)) if a != axis)
            )
        )
        return concatenate([x, y], axis)

    def product(self):
        x = self.pick(lambda v: v.ndim == 2)
        y = self.pick(lambda v: x is not None and v.ndim in (1, 2) and v.shape[0] == x.shape[1])
        if y is None:
            return None
        return squash(dot_general(x, y, (((1,), (0,)), ((), ()))))

    def update(self):
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        sizes = tuple(int(self.rng.integers(1, n + 1)) for n in x.shape)
        at = [convert(mul(self.scalar(), full((), 9.7, F32)), I32) for _ in x.shape]
        piece = squash(dynamic_slice(x, at, sizes))
        return piece if self.rng.integers(2) else dynamic_update_slice(x, piece, at)

    def scalar(self):
        x = self.pick()
        return squash(reduce_sum(x, tuple(range(x.ndim)))) if x.ndim else x

    def branch(self):
        x = self.pick()
        test = lt(self.scalar(), full((), 0, F32))
        if self.rng.integers(2):
            return cond(test, lambda v: fn.sin(v), lambda v: add(v, v), x)
        where = broadcast_in_dim(test, x.shape, ())
        return select(where, x, squash(x))

    def loop(self):
        x = self.pick(lambda v: v.size < 500)
        y = self.pick(lambda v: x is not None and v.shape == x.shape)
        if x is None:
            return None
        xs = broadcast_in_dim(y, (3, *y.shape), tuple(range(1, y.ndim + 1)))

        def body(c, row):
            new = squash(add(c, row))
            return new, sub(c, new)

        last, ys = scan(body, x, xs, reverse=bool(self.rng.integers(2)))
        self.pool.append(last)
        return ys


def draw(seed):
    rng = np.random.default_rng(seed)
    shapes = [tuple(rng.choice(SIZES, rng.integers(0, 4)).tolist()) for _ in range(3)]

    def program(*args):
        drawer = Drawer(np.random.default_rng(seed + 1), args)
        for _ in range(int(rng.integers(5, 40))):
            drawer.step()
        chosen = np.random.default_rng(seed + 2)
        made = drawer.pool[len(args) :] or drawer.pool
        return [made[chosen.integers(len(made))] for _ in range(int(chosen.integers(1, 4)))] + [
            made[-1]
        ]

    return program, [spec(*shape) for shape in shapes]


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    program, avals = draw(seed)
    run = compiled(program, *avals, tolerance=2e-3)
    assert not run.host_calls
