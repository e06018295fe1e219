"""Native functions of this layer, run as Python on the objects, do what their code does."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

import numjet
import numjet.api.eager.deferral  # which says what writing operations down has to know
import numjet.numpy as jnp
from numjet.core import hooks
from numjet.cpu.builder.records import NULL, Array, Pointer, run_in_python
from numjet.native import operators
from numjet.native.objects import Object
from numjet.transforms.replay import ReplayTrace
from numjet.transforms.stage import StageTrace

if not operators.possible():
    pytest.skip(f"Python runs: {operators.status()}", allow_module_level=True)
operators._build()

from numjet.native.code import (  # noqa: E402
    arrays,
    deferral,
    operators as code,
    record,
    replay,
    walk,
)

code.tables.table = Pointer(operators.address(operators._TABLES))
for variable, name in ((record.recording, "recording"), (deferral.deferral, "deferral")):
    variable.context = Pointer(
        ctypes.c_size_t.from_address(operators._state["addresses"][name]).value
    )


def vector(*objects):
    """Arguments of a native function, and what keeps them."""
    words = (ctypes.c_size_t * (len(objects) + 1))(*map(id, objects))
    return Array[Object](ctypes.addressof(words), (words, objects)), len(objects)


def attempt(f, *args):
    """What a call gives: type, values and dtype, or the exception's type."""
    try:
        found = f(*args)
    except Exception as error:
        return type(error)
    if isinstance(found, jnp.ndarray):
        return type(found), str(found.dtype), found.shape, repr(np.asarray(found).tolist())
    return found if found is NotImplemented else type(found)


def method(name: str):
    """An operator method of arrays, as Python."""
    k = list(operators.OPERATORS).index(name)
    made = code.operator(k, operators.OPERATORS[name])
    return lambda self, *other: run_in_python(made, id(self), id(other[0]) if other else NULL)


class Odd:
    def __index__(self):
        return 1

    def __radd__(self, x):
        raise KeyError("odd")


X = np.arange(12, dtype=np.float32).reshape(3, 4)
OPERANDS = [X, X[0], X[:, :1], np.float32(2), X.astype(np.int32), X > 4, X[:, :0]]
OTHERS = [2.5, 3, -1, 2**40, 2**70, True, None, "a", (), Odd(), X, 1j]


def arrays_of_all_kinds():
    made = [jnp.asarray(x) for x in OPERANDS]
    gone = jnp.asarray(X) + 1
    gone.delete()
    return [*made, gone, object.__new__(type(gone))]


BINARY = [name for name, kind in operators.OPERATORS.items() if kind in ("plain", "reflected")]


@pytest.mark.filterwarnings("ignore")
def test_operators() -> None:
    known = arrays_of_all_kinds()
    draw = random.Random(7)
    for name in BINARY:
        as_python = method(name)
        for _ in range(8):
            x, y = draw.choice(known), draw.choice([*known, *OTHERS])
            wanted = attempt(getattr(type(known[0]), name), x, y)
            assert attempt(as_python, x, y) == wanted, (name, y)
    for name in ("__neg__", "__abs__", "__invert__"):
        for x in known:
            assert attempt(method(name), x) == attempt(getattr(type(known[0]), name), x)


def test_rows_and_slices() -> None:
    draw = random.Random(8)
    indices = [0, -1, 2, 3, -4, 2**70, slice(None), slice(1, 3), slice(None, None, -1), slice(5, 9),
               slice("a", 2), Odd(), True, None, ..., slice(0, 2, 0)]  # fmt: skip
    as_python, known = method("__getitem__"), arrays_of_all_kinds()
    for _ in range(120):
        x, index = draw.choice(known), draw.choice(indices)
        assert attempt(as_python, x, index) == attempt(type(known[0]).__getitem__, x, index)


def test_functions_updates_and_where() -> None:
    x = jnp.asarray(X)
    tables = [operators.Table(lambda *args, **names: (args, names), n) for n in (1, 2, 3)]
    tables[0].add(x.aval, None, np.sin, x.aval)
    tables[1].add(x.aval, float, np.add, x.aval)
    tables[2].add_where((x > 3).aval, x.aval, float, x.aval)
    for table, given in zip(tables, [(x,), (x, 1.5), (x > 3, x, 0.5)], strict=True):
        native = table.function()
        as_python = arrays.where_function if len(given) == 3 else code.function
        held = native.__self__
        others = ("a", object.__new__(type(x)), None)
        for changed in (given, given[:-1], *[(*given[:-1], other) for other in others]):
            args, n = vector(*changed)
            assert attempt(lambda: run_in_python(as_python, id(held), args, n, NULL)) == attempt(
                native, *changed
            )
        assert attempt(native, *given)[0] is type(x)
    k = list(operators.OPERATORS).index("at.add")
    update = arrays.update_method(k)
    for index, given in ((1, 2.0), (-1, x[0]), (7, 1.0), ("a", 1.0), (2**70, 1.0), (1, None)):
        ref = x.at[index]
        args, n = vector(given)
        assert attempt(lambda: run_in_python(update, id(ref), args, n, NULL)) == attempt(
            ref.add, given
        )


def traced(x, w):
    y = jnp.tanh(x @ w) * 2.0 + x.sum()
    return jnp.where(y > 0, y, numjet.lax.cond(y[0, 0] > 1, lambda: y, lambda: -y))


def test_recording(monkeypatch) -> None:
    x, w = jnp.asarray(X), jnp.asarray(X.T)
    wanted = str(numjet.make_jaxpr(traced)(x, w))
    calls = []

    def as_python(self, *given):
        args, n = vector(*given)
        calls.append(n)
        return run_in_python(record.record, id(self), args, n)

    monkeypatch.setattr(StageTrace, "record", as_python)
    # Only from here on: these find their lines by counting frames.
    assert str(numjet.make_jaxpr(lambda x, w: traced(x, w))(x, w)) == wanted
    assert len(calls) > 8


def test_what_differentiation_writes_again(monkeypatch) -> None:
    def loss(x, w):
        for _ in range(10):
            x = jnp.tanh(x @ w @ w.T / 3 + w[0, 0]) * x.sum()
        return x[0, 0]

    trace = lambda: str(numjet.make_jaxpr(numjet.grad(loss, (0, 1)))(x, w))  # noqa: E731
    x, w = jnp.asarray(X), jnp.asarray(X.T)
    wanted = [trace() for _ in range(2)][1]
    calls = []

    def process(self, *given):
        args, n = vector(*given)
        calls.append("jvp")
        return run_in_python(replay.replay_jvp, id(self), args, n)

    def transposed(*given):
        args, n = vector(*given)
        calls.append("transpose")
        return run_in_python(replay.replay_transposed, 0, args, n)

    monkeypatch.setattr(ReplayTrace, "process", process)
    monkeypatch.setattr(hooks, "transposed", transposed)
    assert trace() == wanted
    assert calls.count("jvp") > 40 and calls.count("transpose") > 40


def test_the_walk(monkeypatch) -> None:
    native, rows = hooks.describe, []

    def both(*given):
        before = given[3].copy()
        out = native(*given)
        row = given[3].copy()
        given[3][:] = before
        args, n = vector(*given)
        assert run_in_python(walk.describe, 0, args, n) is out
        assert (given[3] == row).all()
        rows.append(out)
        return out

    monkeypatch.setattr(hooks, "describe", both)
    x, w = jnp.asarray(X), jnp.asarray(X.T)

    def long(x, w):
        for k in range(60):  # short programs are walked over in Python
            x = jnp.sin(x) * (k % 7) + (x @ w)[:, :1]
        return traced(x, w)

    numjet.jit(long)(x, w)
    assert rows and all(rows)
