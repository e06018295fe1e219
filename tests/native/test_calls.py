"""The prebuilt call as Python and as code, on usual and on hostile arguments."""

from __future__ import annotations

import collections
import ctypes
import random
import threading

import numpy as np
import pytest
from together import together

import numjet
import numjet.numpy as jnp
from numjet.cpu.builder.records import NULL, Array, run_in_python
from numjet.native import calls
from numjet.native.objects import Object, Tuple

pytestmark = pytest.mark.skipif(not calls.usable(), reason="objects cannot be read natively here")


def prebuilt(f, *args, **kwargs):
    """A jitted function's native call and what it was made with."""
    jitted = numjet.jit(f)
    for _ in range(20):
        jitted(*args, **kwargs)
        if type(jitted.__call__).__name__ == "builtin_function_or_method":
            break
    table, _, keep = jitted.__call__.__self__
    seen: list = []

    def fallback(*args, **kwargs):
        seen.append((args, kwargs))
        return "fallback"

    held = table, fallback, keep
    native = calls._new_function(ctypes.addressof(calls._method()), held, None)
    return held, native, seen


def as_python(held, *args, **kwargs):
    """The call, run as Python on the objects."""
    from numjet.native.code import calls as code

    objects = [*args, *kwargs.values()]
    given = (ctypes.c_size_t * (len(objects) + 1))(*map(id, objects))
    names = Tuple(id(kept := tuple(kwargs))) if kwargs else NULL
    out = run_in_python(
        code.call, id(held), Array[Object](ctypes.addressof(given)), len(args), names
    )
    assert kept if kwargs else True
    return out


def same(a, b) -> bool:
    return numjet.tree.structure(a) == numjet.tree.structure(b) and all(
        type(x) is type(y) and np.array_equal(x, y)
        for x, y in zip(numjet.tree.leaves(a), numjet.tree.leaves(b), strict=True)
    )


X = np.arange(6, dtype=np.float32)


@pytest.mark.parametrize(
    "case",
    [
        (lambda x: x * 2 + 1, (X,), {}),
        (lambda x, n, s, b: (x * n, {"s": x + s, "b": [x, None, b]}), (X, 3, 2.5, True), {}),
        (lambda d: d["a"] + d["b"][0] * d["b"][1][0], ({"a": X, "b": [X, (X, None)]},), {}),
        (lambda x, *, scale, shift: x * scale + shift, (X,), {"scale": 2.0, "shift": X}),
    ],
)
def test_code_and_python_agree(case) -> None:
    f, args, kwargs = case
    args, kwargs = numjet.tree.map(
        lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, (args, kwargs)
    )
    held, native, seen = prebuilt(f, *args, **kwargs)
    for _ in range(2):  # the memory of the call was given back
        assert same(as_python(held, *args, **kwargs), native(*args, **kwargs))
    found, wanted = map(numjet.tree.leaves, (native(*args, **kwargs), f(*args, **kwargs)))
    assert all(map(np.array_equal, found, wanted)) and not seen


class Odd(dict):
    pass


HOSTILE = [
    None, 1, 2.5, True, 2**70, -1, X, X[::2], X.astype(np.float64), (), [], {}, {"a": 1}, Odd(a=X),
    np.float32(3), object(), type, "a", (1, 2), [X, (X, 1)],
]  # fmt: skip


def test_hostile_arguments_go_to_the_fallback_in_both() -> None:
    x = jnp.asarray(X)

    def f(d, n):
        return d["a"] + d["b"][0] * n

    held, native, seen = prebuilt(f, {"a": x, "b": [x, (x, None)]}, 3)
    gone = jnp.asarray(X) + 1
    gone.delete()
    bare = object.__new__(type(x))
    leaves = [*HOSTILE, gone, bare, x]
    draw = random.Random(5)
    fallbacks = 0
    for _ in range(300):
        pick = lambda: draw.choice(leaves)  # noqa: E731
        d = draw.choice([{"a": pick(), "b": [pick(), (pick(), None)]}, pick(), {"a": x, "b": x},
                         {"a": x, "b": [x, (x, None)]}])  # fmt: skip
        args = (d, pick()) if draw.random() < 0.9 else (d,) * draw.randrange(4)
        results = as_python(held, *args), native(*args)
        fallbacks += results[0] == "fallback" if isinstance(results[0], str) else 0
        if isinstance(results[1], str):
            assert results[0] == results[1]
        else:
            assert same(*results)
    assert len(seen) == 2 * fallbacks > 200


class Labeled:
    """A node whose static data have no hash, so that only `==` tells them from others."""

    def __init__(self, value, names):
        self.value, self.names = value, names


numjet.tree_util.register_pytree_node(
    Labeled, lambda x: ([x.value], dict(x.names)), lambda names, xs: Labeled(xs[0], names))


def test_static_data_without_a_hash_go_the_long_way():
    f = numjet.jit(lambda x, y: x.value * x.names["factor"] + y)
    for factor in (2, 3, 2):
        for _ in range(4):
            assert f(Labeled(jnp.float32(1.5), {"factor": factor}), 1) == 1.5 * factor + 1


def test_which_nodes_native_code_takes_apart():
    pair = collections.namedtuple("pair", "x y")
    structure = numjet.tree_util.tree_structure
    for tree in ((1, 2), [1], {"a": 1, "b": 2}, {3: 1}, pair(1, 2), None):
        assert calls._native(structure(tree)), tree
    for tree in ({1.5: 1}, {(1, 2): 1}, Labeled(1, {})):
        assert not calls._native(structure(tree)), tree


def test_threads_run_one_program_beside_each_other() -> None:
    """Its memory serves one call at a time: the others go to the fallback."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal((300, 300)), jnp.float32)
    _, native, _ = prebuilt(lambda x: jnp.tanh(x @ x) @ jnp.sin(x), x)
    wanted, start = native(x), threading.Barrier(4)

    def work(_: int) -> None:
        start.wait()
        for _ in range(20):
            out = native(x)
            assert isinstance(out, str) or np.array_equal(out, wanted)

    together(work, range(4))
    assert np.array_equal(native(x), wanted)
