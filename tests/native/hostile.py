"""Calls of native entry points with objects that nobody should hand them.

`python hostile.py SEED COUNT`: each call ends in a result or a Python exception; a crash ends the
process, which the test sees. What native code knows is learned first, so that hostile operands meet
tables that are full.
"""

from __future__ import annotations

import faulthandler
import random
import sys
import threading
import time
from typing import Any

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet.core import hooks
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import Eqn, Literal, Var
from numjet.native import operators
from numjet.transforms import replay
from numjet.transforms.eager import LinearTracer
from numjet.transforms.linear_steps import LinearStep
from numjet.transforms.linearize import PartialTracer
from numjet.transforms.stage import StageTrace, StageTracer

rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
x = jnp.ones((3, 4))
vector = jnp.arange(4.0)
large = jnp.ones((100000, 4))  # whose operations are written down
Concrete: Any = type(x)
At, AtIndex = type(x.at), type(x.at[0])


class Derived(Concrete):
    """A subclass of concrete arrays."""


class Odd(np.ndarray):
    """A subclass of NumPy's arrays."""


class Wide(float):
    """A float that is not one."""


class Index:
    """An index that deletes the array it is used on."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __index__(self) -> int:
        self.of.delete()
        return 1


class Colliding:
    """A key that a dict compares with "w", and which then takes the dict apart."""

    def __init__(self, of: dict, error: bool) -> None:
        self.of, self.error = of, error

    def __hash__(self) -> int:
        return hash("w")

    def __eq__(self, other: object) -> bool:
        if self.error:
            raise KeyboardInterrupt
        self.of.clear()
        return False


class Custom:
    """A pytree whose flattening changes or raises what it likes."""

    action: Any = None

    def __init__(self, child: Any) -> None:
        self.child = child


def flatten(tree: Custom) -> tuple:
    if tree.action is not None:
        tree.action()
    return (tree.child,), None


nj.tree_util.register_pytree_node(Custom, flatten, lambda _, children: Custom(*children))

dot = nj.jit(lambda a, b: (a @ b, {"sum": a.sum()}))
trees = nj.jit(lambda t: t["w"]["w"] + t["w"]["b"][0] + t["c"].child)
lists = nj.jit(lambda t: t[0]["w"] + t[1])
scalars = nj.jit(lambda a, n, f: a * n + f)


def tree() -> dict:
    return {"w": {"w": jnp.ones(5) * rng.random(), "b": [jnp.ones(5)]}, "c": Custom(jnp.ones(5))}


def learn() -> None:
    """Fill the tables."""
    for _ in range(12):
        dot(x, vector), trees(tree()), lists([{"w": vector}, vector]), scalars(vector, 2, 1.5)
        x + 1.0, x + x, 2 * x, x @ vector, -x, x[0], x[1:], abs(x), x < 2.0, x == x
        x.at[0].set(1.0), x.at[1].add(vector), jnp.where(x > 0, x, 0.0), jnp.tanh(x), jnp.exp(x)
        jnp.sum(x), jnp.maximum(x, 1.0)
        nj.grad(lambda v: jnp.sum(jnp.tanh(v @ vector)))(x)
        for v in (x, large):
            nj.grad(lambda v: jnp.mean((2.0 - jnp.tanh(-v * 2.0 + vector[0]) ** 2) @ vector))(v)
            v * 1.0
    nj.make_jaxpr(lambda v: [jnp.tanh(v @ vector) * 2 for _ in range(40)])(x)
    for _ in range(3):
        nj.make_jaxpr(nj.grad(lambda v: sum(jnp.sum(jnp.tanh(v @ vector)) for _ in range(40))))(x)
    deadline = time.time() + 30
    while not operators.usable() and operators.possible() and time.time() < deadline:
        time.sleep(0.05)


def empty(cls: type) -> Any:
    return object.__new__(cls)


def deleted() -> Any:
    array = jnp.ones((3, 4)) + 0.0
    array.delete()
    return array


def with_value(value: Any) -> Any:
    array = empty(Concrete)
    array._value, array._aval = value, x.aval
    return array


def with_aval(aval: Any) -> Any:
    array = empty(Concrete)
    array._value, array._aval = np.ones((3, 4), np.float32), aval
    return array


def helper(array: Any) -> Any:
    made = empty(At)
    made.array = array
    return made


def reference(array: Any, index: Any) -> Any:
    made = empty(AtIndex)
    if array is not None:
        made.array = array
    if index is not None:
        made.index = index
    return made


def thing(depth: int = 0) -> Any:
    """Something hostile, or not."""
    made: list[Any] = [
        lambda: x, lambda: x, lambda: vector, lambda: empty(Concrete), lambda: empty(Derived),
        lambda: Derived(np.ones((3, 4), np.float32), x.aval), deleted,
        lambda: with_value("text"), lambda: with_value(np.ones((3, 4), np.float32).view(Odd)),
        lambda: with_value(None),
        lambda: with_value(np.asfortranarray(np.ones((3, 4), np.float32))),
        lambda: with_aval("text"), lambda: with_aval(None), lambda: with_aval(empty(ShapedArray)),
        lambda: 10**30, lambda: -(10**30), lambda: 2**31, lambda: -1, lambda: True, lambda: 1.5,
        lambda: Wide(2.0), lambda: None, lambda: "text", lambda: b"bytes", lambda: object(),
        lambda: slice(None, Index(x + 0.0)), lambda: slice("a", 10**40), lambda: ..., lambda: Index,
        lambda: np.ones((3, 4), np.float32), lambda: np.ones((3, 4), ">f4"), lambda: np.ma.ones(3),
        lambda: empty(At), lambda: empty(AtIndex), lambda: helper(5), lambda: reference(5, None),
        lambda: reference(x, None), lambda: reference(None, 0), lambda: x.aval,
        lambda: float("nan"), lambda: empty(StageTracer), lambda: empty(Var), lambda: empty(Eqn),
        lambda: empty(StageTrace), lambda: int, lambda: np.float32(1), lambda: 1j,
    ]  # fmt: skip
    if depth < 2:
        made += [
            lambda: (thing(depth + 1), thing(depth + 1)), lambda: [thing(depth + 1)],
            lambda: {"w": thing(depth + 1)}, lambda: Custom(thing(depth + 1)),
        ]  # fmt: skip
    return rng.choice(made)()


OPERATORS = [name for name in vars(Concrete) if name.startswith("__") and name != "__init__"]
OPERATORS = [n for n in OPERATORS if type(vars(Concrete)[n]).__name__ == "method_descriptor"]
UPDATES = "set add subtract multiply min max".split()
FUNCTIONS: list[Any] = [
    jnp.tanh, jnp.exp, jnp.add, jnp.multiply, jnp.maximum, jnp.where, jnp.sqrt, jnp.negative,
    jnp.abs, jnp.sum, jnp.power, nj.lax.exp, nj.lax.add,
]  # fmt: skip


def operator() -> None:
    method = getattr(Concrete, rng.choice(OPERATORS), None)
    arguments = [thing() for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    first = x if rng.random() < 0.5 else thing()
    method(first, *arguments)  # type: ignore[misc]


def index() -> None:
    array = x + 0.0
    which = rng.choice(
        [thing(), Index(array), slice(Index(array), None), slice(0, 2, Index(array))]
    )
    array[which]


def update() -> None:
    at = rng.choice([lambda: x.at, lambda: empty(At), lambda: helper(thing())])()
    where = at[thing() if rng.random() < 0.5 else rng.choice([0, 5, -1, 10**30])]
    if rng.random() < 0.3:
        where = rng.choice([reference(x, None), reference(None, 0), reference(thing(), thing())])
    arguments = [thing() for _ in range(rng.choice([0, 1, 1, 1, 2, 40]))]
    names = {f"a{k}": thing() for k in range(rng.choice([0, 0, 0, 1, 30]))}
    getattr(where, rng.choice(UPDATES))(*arguments, **names)


def function() -> None:
    named = {"out": thing()} if rng.random() < 0.1 else {}
    rng.choice(FUNCTIONS)(*[thing() for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))], **named)


def call() -> None:
    kind = rng.randrange(8)
    if kind == 0:
        dot(*[thing() for _ in range(rng.choice([1, 2, 2, 3]))])
    elif kind == 1:
        dot(x, b=thing())
    elif kind == 2:
        scalars(vector, thing(), thing())
    elif kind == 3:
        lists([{"w": vector + 0.0}, vector + 0.0] if rng.random() < 0.5 else [thing(), thing()])
    elif kind == 4:
        given = tree()
        given["c"].action = lambda: given["w"].clear()
        trees(given)
    elif kind == 5:
        given = tree()
        inner = {Colliding(given, rng.random() < 0.5): 0}
        inner["w"] = given["w"]["w"]
        given["w"] = inner
        trees(given)
    elif kind == 6:
        items: list[Any] = []
        inner = {Colliding(items, False): vector + 0.0}  # type: ignore[arg-type]
        items += [inner, vector + 0.0]
        inner["w"] = vector + 0.0  # type: ignore[index]
        lists(items)
    else:
        trees(thing())


def trace() -> None:
    def traced(t: Any) -> Any:
        tracer = rng.choice([t, empty(StageTracer)])
        if rng.random() < 0.5 and type(tracer) is StageTracer:
            setattr(tracer, rng.choice(["owner", "jaxpr_var", "aval", "source"]), thing())
        if rng.random() < 0.2:
            owner = t.owner
            name = rng.choice(["eqns", "source", "done", "invars"])
            if rng.random() < 0.5:
                delattr(owner, name)
            else:
                setattr(owner, name, thing())
        rng.choice([
            lambda: tracer @ rng.choice([vector, tracer, thing()]), lambda: jnp.tanh(tracer),
            lambda: tracer + 1.0, lambda: rng.choice([tracer, thing()]) - tracer,
            lambda: tracer * rng.choice([t, vector, thing()]),
            lambda: StageTrace.record(*[thing() for _ in range(rng.randrange(7))]),
            lambda: tracer.owner.record(jnp.tanh, (tracer,), {}),
            lambda: t.owner.record(
                rng.choice([nj.lax.sin_p, object.__new__(type(nj.lax.sin_p)), thing()]),
                (rng.choice([tracer, thing()]),), rng.choice([{}, thing()]),
                rng.choice([None, x.aval, thing()]),
            ),
        ])()  # fmt: skip
        return t

    nj.make_jaxpr(traced)(x)


def pattern() -> Any:
    """A pattern of differentiation with parts that none has."""

    def rows() -> list:
        row = [nj.lax.sin_p, {}, (0,), x.aval]
        for _ in range(rng.randrange(3)):
            row[rng.randrange(4)] = rng.choice([thing(), (7,), (-1,), (2**70,), ("a",), [0]])
        return [tuple(row)] * rng.randrange(3)

    made = empty(replay.Pattern)
    for name in ("constants", "known", "linear", "outs"):
        if rng.random() < 0.9:
            part = rows() if name in ("known", "linear") else rng.choice(
                [[], [0, None], [0, 1], [1, 0], [thing()], [0, 9], [0, 1, 2]])
            setattr(made, name, part if rng.random() < 0.8 else thing())
    return made


def differentiate() -> None:
    def one_pattern(tables: dict) -> None:
        for table in tables.values():
            keys = [*table]
            if keys:
                table[rng.choice(keys)] = rng.choice([pattern, thing])()

    def loss(t: Any) -> Any:
        trace, tracer = t.owner, rng.choice([t, t, empty(type(t))])
        if type(trace) is replay.ReplayTrace:
            trace.long = True
            name = rng.choice(["patterns", "long", "partial", "stage", "tape"])
            if rng.random() < 0.4:
                setattr(trace, name, thing())
            if rng.random() < 0.1:
                delattr(trace, name)
        if rng.random() < 0.3:
            setattr(tracer, rng.choice(["owner", "primal", "tangent", "aval"]), thing())
        if type(t.tangent) is PartialTracer and rng.random() < 0.3:
            setattr(t.tangent, rng.choice(["owner", "jaxpr_var", "aval"]), thing())
        if rng.random() < 0.3:
            one_pattern(rng.choice([replay._jvps, replay._transposes]))
        if rng.random() < 0.2:
            trace.process(*[thing() for _ in range(rng.randrange(6))])
        return jnp.sum(jnp.tanh(tracer @ vector) * rng.choice([2.0, vector[0], thing()]))

    def given(v: Any) -> Any:
        if rng.random() < 0.3:
            equation = empty(Eqn)
            for name in ("invars", "primitive", "params"):
                if rng.random() < 0.9:
                    setattr(equation, name, rng.choice(
                        [[], {}, nj.lax.sin_p, [v], [empty(Var)], [v] * 30, thing()]))
            patterns = rng.choice([*replay._transposes.values(), thing()])
            stage = rng.choice([v.owner, thing()])
            arguments = [patterns, stage, equation, rng.choice([v, thing()])]
            hooks.transposed(*arguments[: rng.choice([4, 4, 4, 3])])
        return nj.grad(loss)(v)

    nj.make_jaxpr(given)(x)


def walk() -> None:
    def equation() -> Any:
        made = empty(Eqn)
        for name in ("invars", "outvars", "primitive", "params"):
            if rng.random() < 0.8:
                setattr(
                    made,
                    name,
                    rng.choice([[], {}, nj.lax.sin_p, [empty(Var)], [empty(Literal)], thing()]),
                )
        return made

    def ask(_: Any) -> Any:
        if rng.random() < 0.1:
            equations.clear()
        return rng.choice([0, 1, 300, 2**40, "text", None])

    equations = [rng.choice([equation, thing])() for _ in range(rng.randrange(4))]
    words: Any = np.zeros(8 * 200, np.uint8)
    words.view(np.int64)[:6] = (15, 12, 0, 0, 8 * 40, 8 * 200)
    if rng.random() < 0.3:
        words.view(np.int64)[rng.randrange(6)] = rng.choice([-1, 1, 2**40, 7, 100])
        words.view(np.int64)[1] = min(words.view(np.int64)[1], 12)
    words = rng.choice([words, words, words, thing()])
    given = [[empty(Var)], equations, [empty(Var)], words, ask, ask, ask, ask]
    if rng.random() < 0.2:
        given[rng.randrange(len(given))] = thing()
    hooks.describe(*given[: rng.choice([8, 8, 8, 7])])


def linearize() -> None:
    """Eager derivatives of what waits, whose tracers, steps and variables are anybody's."""

    def loss(t: Any) -> Any:
        tracer = rng.choice([t, t, empty(LinearTracer)])
        if rng.random() < 0.4:
            setattr(tracer, rng.choice(["owner", "primal", "tangent", "aval"]), thing())
        if rng.random() < 0.1:
            setattr(t.owner, rng.choice(["rules", "tape"]), thing())
        out = rng.choice([
            lambda: jnp.tanh(tracer), lambda: tracer * 2.0, lambda: rng.choice([x, 2.0]) - tracer,
            lambda: tracer @ rng.choice([vector, thing()]), lambda: -tracer, lambda: tracer ** 2,
            lambda: tracer + rng.choice([tracer, vector[0], thing()]), lambda: jnp.mean(tracer),
            lambda: tracer ** thing(),
        ])()  # fmt: skip
        tape = t.owner.tape
        if rng.random() < 0.2 and type(tape) is list and tape:
            setattr(tape[-1], rng.choice(["rule", "residuals", "invars", "outvars"]), rng.choice([
                (), [], [empty(Var)], (empty(Var),), thing()]))  # fmt: skip
        return jnp.sum(out)

    def some(kind: type) -> list:
        return [rng.choice([empty(kind), thing()]) for _ in range(rng.randrange(3))]

    rng.choice([
        lambda: nj.grad(loss)(x * 1.0), lambda: nj.grad(loss)(large * 1.0),
        lambda: hooks.lifted(*[thing(), some(Concrete), thing()][: rng.choice([1, 2, 2, 2, 3])]),
        lambda: hooks.residuals(rng.choice([some(LinearStep), thing()]), rng.choice(
            [[(0, 0)], [(-1, 2**70)], [(0, "a"), (5, 5)], some(tuple), thing()])),
        lambda: hooks.record_key(rng.choice([some(LinearStep), thing()]), some(Var), some(Var),
                                 some(Concrete), thing(), thing()),
    ])()  # fmt: skip


def read() -> None:
    names = [b"/", b"/tmp", b"etc", b"passwd", b"", b"\0" * 3, b"x" * 9000, thing(), thing()]
    given = [rng.choice(names), rng.choice(names), rng.choice([1 << 20, 0, -1, 1 << 80, thing()])]
    hooks.read_file(*given[: rng.choice([3, 3, 3, 2])])


KINDS = [operator, index, update, function, call, trace, differentiate, linearize, walk, read]


def main() -> None:
    faulthandler.enable()
    learn()
    stop = False

    def meanwhile() -> None:
        # Another thread that changes what is looked at.
        while not stop:
            with_value(np.ones(3, np.float32)).delete()
            time.sleep(0.0005)

    thread = threading.Thread(target=meanwhile)
    thread.start()
    raised = done = 0
    try:
        for _ in range(COUNT):
            kind = rng.choice(KINDS)
            if "-v" in sys.argv:
                print(kind.__name__, flush=True)
            try:
                kind()
                done += 1
            except (Exception, KeyboardInterrupt):  # whatever it is, the process lives
                raised += 1
    finally:
        stop = True
        thread.join()
    assert float((x + 1.0)[0, 0]) == 2.0 and float(dot(x, vector)[0][0]) == 6.0
    print(f"native {operators.usable()}: {done} results, {raised} exceptions")


if __name__ == "__main__":
    main()
