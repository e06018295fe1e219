"""Calls of compiled functions on little data, and tracing."""

import numpy as np
from registry import row

from rows.eager import ten, two


def tree_of_21(rng):
    return ({f"leaf{i:02d}": rng.standard_normal(10, dtype=np.float32) for i in range(21)},)


row(
    "jit_one",
    "jit call, one array",
    "jit",
    inputs=ten,
    array=lambda s: s.jit(lambda x: x * 2 + 1),
    bars={"jax": 0.2},
    block=False,
)
row(
    "jit_two",
    "jit call, two arrays",
    "jit",
    inputs=two,
    array=lambda s: s.jit(lambda x, y: x * y + 1),
    bars={"jax": 0.2},
    block=False,
)
row(
    "jit_tree",
    "jit call, 21 leaves in and out",
    "jit",
    inputs=tree_of_21,
    array=lambda s: s.jit(lambda tree: {key: leaf + 1 for key, leaf in tree.items()}),
    bars={"jax": 0.3},
    block=False,
)


def tracing(equations):
    """A program that traces a new function of so many equations at each call."""

    def build(s):
        def trace(x):
            def long(x):
                for _ in range(equations // 2):
                    x = x * 1.5 + 0.5
                return x

            return len(s.make_jaxpr(long)(x).jaxpr.eqns)

        return trace

    return build


SHORT, LONG = 10_000, 200_000
row(
    "trace",
    f"tracing, an equation of {SHORT:,}",
    "trace",
    inputs=ten,
    array=tracing(SHORT),
    bars={"seconds": 20e-6, "jax": 1.05},
    per=SHORT,
    repeats=3,
)
row(
    "trace_long",
    f"tracing, an equation of {LONG:,}",
    "trace",
    inputs=ten,
    array=tracing(LONG),
    bars={"seconds": 20e-6, "row:trace": 1.3},
    per=LONG,
    only=("numjet",),
    repeats=2,
)
