"""Native code looks at what it reads: whatever it is handed, a call ends in Python."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
import python_process

import numjet as nj
import numjet.numpy as jnp
from numjet.core.array import ArrayImpl
from numjet.native import operators
from numjet.native.entries import entry_of

needs_native = pytest.mark.skipif(not operators.possible(), reason="no native code here")


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    if operators.possible() and not operators.usable():
        operators._build()


def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: a crash is its end, not ours."""
    return python_process.run("-c", text, *arguments)


@needs_native
@pytest.mark.parametrize("seed", range(3))
def test_a_campaign_of_hostile_calls(seed) -> None:
    path = Path(__file__).with_name("hostile.py")
    done = python_process.run(str(path), str(seed), "2500")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("native True")


@needs_native
def test_a_campaign_in_a_checked_build() -> None:
    path = Path(__file__).with_name("hostile.py")
    done = python_process.run(str(path), "7", "1000", NUMJET_NATIVE_CHECKS="1")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("native True")


WITHOUT_MEMORY = """
import os, sys
import _testcapi
import numjet as nj, numjet.numpy as jnp
from numjet.api.eager import deferral
from numjet.core import hooks
from numjet.core.trace import EVAL
from numjet.cpu.link import cache
from numjet.native import deferral as native, operators
from numjet.transforms import eager
from numjet.transforms.linearize import PartialTrace
operators._build()
x, vector, large = jnp.ones((3, 4)), jnp.arange(4.0), jnp.ones((100000, 4))
store = cache.Store(sys.argv[1], 1 << 20)
store.put("ab" * 32, b"contents")
store.flush()
entry = os.fsencode(store.directory), b"ab" * 32, 1 << 20
kept = [large * 2.0, jnp.tanh(large) + 1.0]
rows = list(deferral._local.open.tape.rows)
trace = eager.LinearizeTrace(PartialTrace(EVAL))
made = eager.linearize(lambda u: [jnp.sum(jnp.tanh(u * 2.0))], [large * 1.0])
record = made.tape, made.in_vars, made.out_tangents, [jnp.ones(())], 5, None
calls = [
    lambda: native.survey(rows), lambda: hooks.lifted(trace, [x, vector]),
    lambda: hooks.record_key(*record), lambda: hooks.read_file(*entry),
    lambda: x + 1.0, lambda: x @ vector, lambda: -x, lambda: x[0], lambda: jnp.tanh(x),
    lambda: jnp.where(x > 0, x, 0.0), lambda: x.at[0].set(1.0), lambda: large * 3.0 + 1.0,
    lambda: nj.make_jaxpr(lambda u: jnp.tanh(u @ vector) * 2)(x),
    lambda: nj.grad(lambda u: jnp.sum(jnp.tanh(u * 2.0 + vector[0])))(large),
]
ended = [0, 0]
for call in calls:
    for _ in range(12):
        call()
    for k in range(80):
        _testcapi.set_nomemory(k, k + 1)
        try:
            call()
            ended[0] += 1
        except (MemoryError, SystemError):  # which methods of dicts leave
            ended[1] += 1
        finally:
            _testcapi.remove_mem_hooks()
assert min(ended) > 100 and hooks.read_file(*entry)[0].endswith(b"contents")
assert float((x + 1.0)[0, 0]) == 2.0
print("survived")
"""


@needs_native
def test_allocations_that_fail_end_in_python(tmp_path) -> None:
    """Each of the first ones of a call; Python takes over, or says MemoryError."""
    pytest.importorskip("_testcapi")
    done = run(WITHOUT_MEMORY, str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr[-3000:]


CALLS = {
    "add": "object.__new__(type(x)) + 1.0",
    "reflected": "1.0 + object.__new__(type(x))",
    "negative": "-object.__new__(type(x))",
    "index": "object.__new__(type(x))[0]",
    "at": "object.__new__(type(x.at))[0].set(1.0)",
    "update": "object.__new__(type(x.at[0])).set(1.0)",
    "function": "jnp.tanh(object.__new__(type(x)))",
    "where": "jnp.where(object.__new__(type(x)), x, x)",
    "jit": "nj.jit(lambda a: a * 2)(object.__new__(type(x)))",
    "aval": "setattr(x, 'aval', '...')",
    "value": "(setattr(x, '_value', '...'), nj.jit(lambda a: a * 2)(x))",
    "value of a compiled call": "(lambda f: (f(x), f(x), setattr(x, '_value', '...'), f(x)))"
    "(nj.jit(lambda a: a * 2))",
    "deleted": "(x.delete(), x + 1.0)",
    "deleted, index": "(x.delete(), x[0])",
    "deleted, update": "(lambda at: (x.delete(), at.set(1.0)))(x.at[0])",
    "deleted, function": "(x.delete(), jnp.tanh(x))",
    "deleted, where": "(lambda c: (x.delete(), jnp.where(c, x, x)))(x > 0)",
    "deleted, compiled call": "(lambda f: (f(x), f(x), f(x), x.delete(), f(x)))"
    "(nj.jit(lambda a: a * 2))",
    "tracer": "nj.make_jaxpr(lambda t: object.__new__(type(t)) @ t)(x)",
    "owner": "nj.make_jaxpr(lambda t: (setattr(t, 'owner', 5), t @ t))(x)",
}


@pytest.mark.parametrize("name", CALLS)
def test_objects_that_nobody_filled_raise(name) -> None:
    text = f"""
import numjet as nj, numjet.numpy as jnp
from numjet.native import operators
operators.possible() and not operators.usable() and operators._build()
x = jnp.ones(3)
for _ in range(12):
    x + 1.0, 1.0 + x, -x, x[0], x.at[0].set(1.0), jnp.tanh(x), jnp.where(x > 0, x, x)
try:
    {CALLS[name]}
except (AttributeError, TypeError, RuntimeError, nj.errors.UnexpectedTracerError) as error:
    print("raised")
"""
    done = run(text)
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr


def test_an_aval_cannot_be_replaced() -> None:
    x = jnp.ones(3)
    with pytest.raises(AttributeError):
        x.aval = jnp.ones(4).aval
    with pytest.raises(AttributeError, match="has no aval"):
        object.__new__(ArrayImpl).aval  # noqa: B018
    assert x.aval is x._aval


@needs_native
def test_an_update_with_too_many_arguments_raises() -> None:
    x = jnp.ones(3)
    for _ in range(3):
        x.at[0].set(1.0)
    with pytest.raises(TypeError):
        x.at[0].set(*[1.0] * 300_000)
    with pytest.raises(TypeError):
        x.at[0].set(**{f"a{k}": 1 for k in range(300)})


@needs_native
def test_what_an_inner_loop_of_numpy_raises_is_not_lost() -> None:
    x = jnp.ones(5)
    aval = x.aval
    words = entry_of(aval, aval, np.add, aval)
    loop = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    words[operators._ENTRY.index("loop")] = loop

    def fallback(*_):
        raise MemoryError("as before")

    table = operators.Table(fallback, 2)
    assert table.put(id(aval), id(aval), (aval,), lambda: words)
    with pytest.raises(MemoryError, match="as before"):
        table.function()(x, x)


class Node:
    """A pytree whose flattening raises when it is told to."""

    raises: BaseException | None = None

    def __init__(self, child) -> None:
        self.child = child


def _flatten(node):
    if node.raises is not None:
        error, node.raises = node.raises, None  # once: a second try would work
        raise error
    return (node.child,), None


nj.tree_util.register_pytree_node(Node, _flatten, lambda _, children: Node(*children))


@pytest.mark.parametrize("error", [ValueError("a"), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_what_flattening_raises_arrives(error) -> None:
    f = nj.jit(lambda tree: tree["node"].child * 2)
    tree = {"node": Node(jnp.ones(3))}
    for _ in range(8):
        f(tree)
    tree["node"].raises = error
    with pytest.raises(type(error)):
        f(tree)
    assert tree["node"].raises is None
    np.testing.assert_array_equal(f(tree), 2 * np.ones(3))


def test_what_comparing_keys_raises_arrives() -> None:
    class Key:
        def __hash__(self):
            return hash("w")

        def __eq__(self, other):
            raise KeyboardInterrupt

    f = nj.jit(lambda tree: tree["w"] * 2)
    for _ in range(8):
        f({"w": jnp.ones(3)})
    strange = dict.fromkeys([Key()])
    with pytest.raises(KeyboardInterrupt):
        f(strange)


def test_a_dict_that_changes_while_it_is_read() -> None:
    text = """
import numjet as nj, numjet.numpy as jnp

class Key:
    def __hash__(self):
        return hash("w")

    def __eq__(self, other):
        items.clear()
        return False

f = nj.jit(lambda t: t[0]["w"] + t[1])
for _ in range(8):
    f([{"w": jnp.ones(3)}, jnp.ones(3)])
items = []
for _ in range(200):
    inner = {Key(): 0}
    items[:] = [inner, jnp.ones(3) + 1.0]
    try:
        f(items)
    except (ValueError, TypeError, KeyError, IndexError):
        pass
print("lives")
"""
    done = run(text)
    assert (done.returncode, done.stdout) == (0, "lives\n"), done.stderr


@needs_native
def test_what_a_container_held_lives_until_the_call() -> None:
    """Comparing a key empties the list, whose elements native code has looked up already."""
    text = """
import numjet as nj, numjet.numpy as jnp, numpy as np
from numjet.native import operators
operators.usable() or operators._build()

class Key:
    def __hash__(self):
        return hash("w")

    def __eq__(self, other):
        items.clear()
        others.extend(jnp.asarray(np.full(3, 100 + k, np.float32)) for k in range(8))
        return True

f = nj.jit(lambda t: t[0]["w"] + t[1])
for _ in range(8):
    f([{"w": jnp.ones(3)}, jnp.ones(3)])
items, others, sums = [], [], []
for _ in range(50):
    items[:] = [{Key(): jnp.ones(3)}, jnp.asarray(np.full(3, 7, np.float32))]
    sums += f(items).tolist()
    others.clear()
print(sums == [8.0] * 150)
"""
    done = run(text)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
