"""Control regions: native loops and branches, carries in place, slices as views."""

from __future__ import annotations

import numpy as np
import pytest
from jaxpr_interpreter import compiled, spec

from numjet.core.structural import broadcast_in_dim, convert, full, reduce_sum
from numjet.ops import transcendental as fn
from numjet.ops.arithmetic import add, mul, sub
from numjet.ops.cond import cond, switch
from numjet.ops.dot import dot_general
from numjet.ops.logic import gt, lt
from numjet.ops.scan import scan
from numjet.ops.slicing import dynamic_slice, dynamic_update_slice
from numjet.ops.while_loop import fori_loop, while_loop

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def number(value, dtype=I32):
    return full((), value, dtype)


def test_while_with_scalars():
    def collatz(n):
        def body(state):
            n, count = state
            return sub(n, number(3)), add(count, number(1))

        return list(while_loop(lambda s: gt(s[0], number(0)), body, (n, number(0))))

    for start in (0, 1, 100):
        run = compiled(collatz, spec(dtype=np.int32), args=[np.asarray(start, np.int32)])
        assert not run.host_calls


def test_while_rotates_its_carries():
    def rotate(n, x):
        def body(state):
            i, a, b, c = state
            return add(i, number(1)), b, c, add(a, b)

        return list(while_loop(lambda s: lt(s[0], n), body, (number(0), x, fn.exp(x), fn.sin(x))))

    for steps in (0, 1, 2, 7):
        compiled(
            rotate,
            spec(dtype=np.int32),
            spec(5),
            args=[np.asarray(steps, np.int32), np.ones(5, np.float32)],
        )


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_stacks_old_and_new(reverse):
    def run(init, xs):
        def body(c, x):
            new = add(c, x)
            return new, (mul(new, new), c, x)

        c, ys = scan(body, init, xs, reverse=reverse)
        return [c, *ys]

    found = compiled(run, spec(4), spec(9, 4))
    assert not found.host_calls


def test_scan_carry_is_updated_in_place():
    def run(init, xs):
        def body(c, x):
            total = broadcast_in_dim(reduce_sum(c, (0,)), c.shape, ())
            return add(mul(c, c), mul(x, total)), None

        return scan(body, init, xs)[0]

    text = compiled(
        run,
        spec(1000),
        spec(5, 1000),
        args=[np.zeros(1000, np.float32), np.ones((5, 1000), np.float32) / 8],
    ).program_text()
    assert text.count("copy") == 1


def test_nested_scans():
    def run(init, xs):
        def outer(c, row):
            return scan(lambda a, e: (add(a, e), mul(a, e)), c, row)

        return list(scan(outer, init, xs))

    compiled(run, spec(), spec(5, 6))


def test_empty_scan():
    compiled(lambda c, xs: list(scan(lambda a, x: (add(a, x), a), c, xs)), spec(3), spec(0, 3))


def test_update_of_a_row_in_a_loop_copies_nothing():
    def run(x, positions):
        def body(c, i):
            row = dynamic_slice(c, (i, number(0)), (1, 8))
            return dynamic_update_slice(c, fn.exp(row), (i, number(0))), None

        return scan(body, x, positions)[0]

    text = compiled(run, spec(10, 8), spec(3, dtype=np.int32)).program_text()
    inside = text[text.index("for i1") :]
    assert inside.count("copy") == 1 and "copy %" in inside  # of the array to itself: no code


def test_recurrent_network():
    def run(h, w, xs):
        def step(h, x):
            h = fn.tanh(add(dot_general(h, w, (((0,), (0,)), ((), ()))), x))
            return h, h

        return list(scan(step, h, xs))

    found = compiled(run, spec(16), spec(16, 16), spec(20, 16), tolerance=1e-3)
    assert not found.host_calls


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_switch(index):
    def run(i, x, y):
        return switch(
            i,
            [lambda a, b: (add(a, b), a), lambda a, b: (b, b), lambda a, b: (fn.exp(a), mul(a, b))],
            x,
            y,
        )

    compiled(
        run,
        spec(dtype=np.int32),
        spec(6),
        spec(6),
        args=[np.asarray(index, np.int32), np.ones(6, np.float32), np.arange(6, dtype=np.float32)],
    )


def test_cond_inside_a_loop():
    def run(x, n):
        def body(i, c):
            return cond(
                lt(reduce_sum(c, (0,)), number(10, F32)),
                lambda c: add(c, c),
                lambda c: sub(c, number(1, F32)),
                c,
            )

        return fori_loop(number(0), n, body, x)

    for n in (0, 1, 9):
        compiled(
            run,
            spec(4),
            spec(dtype=np.int32),
            args=[np.ones(4, np.float32), np.asarray(n, np.int32)],
        )


def test_loop_invariants_are_read_where_they_lie():
    def run(x, w):
        return fori_loop(0, 5, lambda i, c: add(mul(c, w), convert(i, F32)), x)

    compiled(run, spec(7), spec(7))


def test_while_of_arrays_over_outer_values():
    def run(x, y):
        z = fn.exp(y)

        def body(s):
            return add(s[0], number(1)), sub(mul(s[1], z), y)

        return list(while_loop(lambda s: lt(s[0], number(4)), body, (number(0), x)))

    compiled(run, spec(5), spec(5), tolerance=1e-3)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_branches_on_arrays_of_nothing(shape):
    def branching(above, x):
        y = fn.cos(x)
        return mul(cond(above, fn.sin, lambda v: mul(v, v), y), y)

    compiled(branching, spec(dtype=np.bool_), spec(*shape))
