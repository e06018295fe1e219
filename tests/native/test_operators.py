"""Operators and functions as native code: the same results, errors and lifetimes as in Python."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import numpy as np
import pytest
from python_process import printed

import numjet.numpy as jnp
from numjet.base.errors import InternalError
from numjet.core import memo
from numjet.core.avals import ShapedArray
from numjet.core.primitive import REGISTRY
from numjet.cpu.builder import sources
from numjet.cpu.link import freestanding, link
from numjet.native import entries, operators

NO_NATIVE = operators._reason()  # why there is no native code here, or ""

SCRIPT = r"""
import hashlib, json, operator, pickle, sys, time, weakref
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet.core.array import ArrayImpl
from numjet.core.dtypes import physical
from numjet.native import operators as fast_native

found = {"native": fast_native.usable()}
fast_native.WAIT_SECONDS = float(sys.argv[1])
special = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e38, 1e-45]
arrays = {
    "f": jnp.array(special), "g": jnp.array(special[::-1]), "i": jnp.arange(-4, 5),
    "s": jnp.array(0.25), "t": jnp.array(3), "u": jnp.array([1, 2, 2**32 - 1], jnp.uint32),
    "b": jnp.array([True, False, True]), "h": jnp.array([0.5, 1.5], jnp.float16),
    "w": jnp.array([0.5, 1.5], jnp.bfloat16), "c": jnp.array([1 + 2j, -1j]),
    "e": jnp.ones((0, 3)), "m": jnp.arange(6.0).reshape(2, 3),
    "T": jnp.arange(6.0).reshape(3, 2).T, "L": jnp.arange(20000.0), "r": jnp.array([3.0, -1, 2]),
    "C": jnp.array([[0.5], [-2]]), "M": jnp.sin(jnp.arange(105.0)).reshape(5, 3, 7),
    "N": jnp.array([[1, -2, 3], [7, 0, 2**31 - 1]]), "z": jnp.array([-0.0]),
}
# While the tables are empty: an array that is deleted by its index.
class Deleting:
    def __index__(self):
        doomed.delete()
        self.others = [np.zeros(9) for _ in range(9)]  # where the array was
        return 1

jnp.ones(9)[1:]
for _ in range(9):
    doomed = jnp.ones(9)
    try:
        part = doomed[Deleting():]
    except RuntimeError as error:
        assert "deleted" in str(error)
    else:  # NumPy held the memory while it read the index
        assert not fast_native.usable() and part.shape == (8,)
scalars = [2, -3, 0.1, 0.0, -0.0, float("inf"), True, 2**31 - 1, -1, 2**40, 2**70, 1e300, 1j]
names = "add sub mul truediv and_ or_ xor eq ne lt le gt ge".split()
functions = "sin cos exp log tanh sqrt abs sign square negative floor isnan".split()
pairs = [jnp.maximum, jnp.minimum, jnp.add, jnp.arctan2]

def outcome(f, *args):
    try:
        y = f(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(y, ArrayImpl):
        return repr(y)
    assert type(y._value) is np.ndarray and y._value.shape == y.aval.shape, (f, args)
    assert y._value.dtype == physical(y.aval.dtype), (f, args)
    return repr(y.aval) + hashlib.sha256(np.ascontiguousarray(y._value).tobytes()).hexdigest()

results, cases = {}, []
for _ in range(3):
    for n, x in arrays.items():
        for name in functions:
            key = f"{name} {n}"
            got = outcome(getattr(jnp, name), x)
            assert results.setdefault(key, got) == got, key
        for f in (operator.neg, operator.abs, operator.invert):
            key = f"{f.__name__} {n}"
            got = outcome(f, x)
            assert results.setdefault(key, got) == got, key
        others = list(arrays.items()) + [(repr(v), v) for v in scalars] + [("none", None)]
        for k, y in others:
            for f in [getattr(operator, name) for name in names] + pairs:
                kind = type(f).__name__
                for args in ((x, y), (y, x)):
                    key = f"{kind} {f.__name__} {n} {k} {args[0] is x}"
                    cases.append((f, args, key))
                    got = outcome(f, *args)
                    assert results.setdefault(key, got) == got, (key, results[key], got)
reductions = [getattr(jnp, name) for name in "sum prod max min any all mean".split()]
for _ in range(3):
    for n, x in arrays.items():
        for f in reductions:
            for axis in (None, 0, 1, -1, (0, 2), ()):
                for keep in (False, True):
                    key = f"{f.__name__} {n} {axis} {keep}"
                    got = outcome(lambda x: f(x, axis, keepdims=keep), x)
                    assert results.setdefault(key, got) == got, (key, results[key], got)
                    cases.append((lambda x, f=f, a=axis, k=keep: f(x, a, keepdims=k), (x,), key))
        for m, c in (("x > 0", x > 0 if x.dtype.kind != "c" else x == 0), ("t", jnp.array(True))):
            for k, y in [*arrays.items(), (2, 2), (-0.5, -0.5), (2**70, 2**70), (True, True)]:
                for i, args in enumerate(((c, x, y), (c, y, x), (x, x, y))):
                    key = f"where {n} {m} {k} {i}"
                    got = outcome(jnp.where, *args)
                    assert results.setdefault(key, got) == got, (key, results[key], got)
                    cases.append((jnp.where, args, key))
        for i in (0, -1, 1, 99, -99, 2**70, True, None, slice(0, 2), jnp.array(0)):
            for k, y in [*arrays.items(), (2, 2), (-0.5, -0.5), (2**40, 2**40), (True, True)]:
                for name in "set add subtract multiply min max".split():
                    if k != "none" and isinstance(y, jnp.ndarray) and y.dtype != x.dtype:
                        continue  # warns
                    key = f"at {n} {i!r} {k} {name}"
                    update = lambda x, y, i=i, name=name: getattr(x.at[i], name)(y)
                    before = x._value.tobytes()
                    got = outcome(update, x, y)
                    assert results.setdefault(key, got) == got, (key, results[key], got)
                    assert x._value.tobytes() == before, key
                    cases.append((update, (x, y), key))
slices = [(None,), (1, 3), (5, 1), (None, None, -1), (-2, None, 2), (99, None), (3, 1, -1), (0,),
          (None, None, 0), ("a", 1)]
indices = [0, 3, -1, -4, 99, -99, 2**70, True, np.int64(1), None, ..., (1,), (0, 1), 1.5,
           jnp.array(1), [0], *[slice(*bounds) for bounds in slices]]
for _ in range(3):
    for n, x in [*arrays.items(), ("k", nj.random.split(nj.random.key(0), 3))]:
        for index in indices:
            key = f"{n} {index!r}"
            got = outcome(operator.getitem, x, index)
            assert results.setdefault(key, got) == got, (key, results[key], got)
row = jnp.arange(12.0).reshape(3, 4)[1]
for _ in range(3):
    part = row[1:3]
    assert part._value.base is not None and np.shares_memory(part._value, row._value)
    assert not np.asarray(part).flags.writeable and part._value.flags.aligned
    assert (row[::2] + row[::2]).tolist() == [8.0, 12.0]
temporary = weakref.ref((jnp.arange(5.0) + 1)[2:4]._value.base)
assert temporary() is None, "a view's memory stayed"
found["results"] = hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()
found["errors"] = sum("Error" in value for value in results.values())

x = arrays["f"]
for bad in (lambda: jnp.sin(), lambda: jnp.sin(x, x), lambda: jnp.sin(x=x), lambda: x.__add__(),
            lambda: x.at[0].set(), lambda: x.at[0].set(1, 2), lambda: x.at[0].set(1, wrong=2),
            lambda: x.at.__getitem__()):
    try:
        bad()
    except TypeError:
        continue
    raise AssertionError("accepted")

# Memory and references come back.
y = x + x
counts = []
for _ in range(2):  # the first time new avals are remembered
    for _ in range(500):
        x + x; x + 2; 2.0 - x; jnp.sin(x); -x; x < x; x[2]; x[1:4]; x[::-2]; jnp.sum(x)
        jnp.where(x < x, x, 0.5); x.at[3].set(1); x.at[-1].add(x[0]); x.at; x.at[1:3]; x @ x
        x.at[2**70]; x.at[99].set(1); x.at[0].set(values=2.0); x.at[0].set(1, mode="drop")
    counts.append([sys.getrefcount(o) for o in (x, x._value, x.aval, x.aval.dtype, y.aval)])
assert counts[0] == counts[1], counts

# Views, deleted arrays, tracers, checks of results.
view = ArrayImpl(np.arange(18, dtype=np.float32)[::2], x.aval)
np.testing.assert_array_equal(np.asarray(view + view), np.arange(18)[::2] * 2)
gone = x + 1
gone.delete()
for f in (lambda: gone + gone, lambda: jnp.sin(gone), lambda: -gone, lambda: gone[0],
          lambda: jnp.sum(gone), lambda: jnp.where(x < x, gone, x), lambda: gone.at[0].set(1),
          lambda: gone @ gone):
    try:
        f()
    except RuntimeError as error:
        assert "deleted" in str(error)
    else:
        raise AssertionError("read a deleted array")
assert len(nj.make_jaxpr(lambda z: z + x)(x).jaxpr.eqns) == 1
assert len(nj.make_jaxpr(lambda: x + x)().jaxpr.eqns) == 1
assert len(nj.make_jaxpr(lambda z: jnp.sum(x) + jnp.where(x < x, x, x))(x).jaxpr.eqns) > 1
assert len(nj.make_jaxpr(lambda z: x.at[0].set(1))(x).jaxpr.eqns) >= 1
assert len(nj.make_jaxpr(lambda z: z.at[0].set(1))(x).jaxpr.eqns) >= 1
with nj.debug_nans(True):
    for f in (lambda: x - x, lambda: jnp.sum(x), lambda: x.at[0].add(jnp.nan), lambda: x @ x):
        try:
            f()
        except FloatingPointError:
            pass
        else:
            raise AssertionError("not checked")
assert pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin and jnp.sin.__name__ == "sin"
g = nj.grad(lambda z: jnp.sum(jnp.tanh(z) ** 2 * z))
z = jnp.linspace(-1, 1, 5)
exact = nj.jit(g)(z)
for _ in range(3):
    np.testing.assert_allclose(np.asarray(g(z)), np.asarray(exact), rtol=1e-6)
if sys.argv[2:]:
    deadline = time.monotonic() + 60
    while not fast_native.usable() and time.monotonic() < deadline:
        time.sleep(0.01)
    found["late"] = fast_native.usable()
    for f, args, key in cases:
        assert outcome(f, *args) == results[key], key
print(json.dumps(found))
"""


def run(cache: Path, *arguments: str) -> dict:
    text = printed(SCRIPT, *arguments, timeout=300, NUMJET_CACHE_DIR=str(cache))
    return json.loads(text.splitlines()[-1])  # before it stands what `debug_nans` says


@pytest.mark.skipif(sources.CHECKED, reason="a checked build is there at once")
def test_a_later_process_gives_in_native_code_what_the_first_gave_in_python(tmp_path):
    first, second = run(tmp_path, "1000"), run(tmp_path, "0")
    assert not first.pop("native")
    assert second.pop("native") == (not NO_NATIVE)
    assert first == second and first["errors"] > 100


@pytest.mark.skipif(bool(NO_NATIVE), reason=NO_NATIVE)
@pytest.mark.skipif(sources.CHECKED, reason="a checked build is there at once")
def test_a_process_takes_native_code_when_it_is_compiled(tmp_path):
    first = run(tmp_path, "0.01", "and wait")
    assert not first["native"] and first["late"]


@pytest.mark.skipif(bool(NO_NATIVE), reason=NO_NATIVE)
def test_code_that_refers_to_something_is_refused():
    text = "declare void @abort()\ndefine void @f() { call void @abort() ret void }"
    with pytest.raises(InternalError, match="freestanding"):
        freestanding.build("a module that is not freestanding", text)


@pytest.mark.skipif(bool(NO_NATIVE), reason=NO_NATIVE)
def test_code_is_found_under_its_identity_alone():
    import ctypes

    text = (
        "define i64 @f(i64 %x) { %y = mul i64 %x, 3 ret i64 %y }\n"
        "define i64 @g(i64 %x) { %y = call i64 @f(i64 %x) %z = add i64 %y, 1 ret i64 %z }"
    )
    try:
        freestanding.build("test: three times", text)
    except InternalError:
        # A call between functions that others may replace goes through a symbol.
        text = text.replace("define i64 @f", "define internal i64 @f")
        freestanding.build("test: three times", text)
    addresses = freestanding.load("test: three times")
    assert addresses is not None and freestanding.load("test: something else") is None
    g = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(addresses["g"])
    assert g(5) == 16
    assert link.cache_get(freestanding._key("test: three times")) is not None


@pytest.mark.skipif(bool(NO_NATIVE), reason=NO_NATIVE)
@pytest.mark.parametrize("bad", [b"", b"garbage", b"NJIMAGE1garbage"])
def test_code_that_is_damaged_in_the_cache_is_not_there(bad, monkeypatch):
    monkeypatch.setattr(link._store(), "_warned", set())
    link.cache_put(freestanding._key("test: damaged"), bad)
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert freestanding.load("test: damaged") is None
    assert freestanding.load("test: damaged") is None


def test_evaluations_of_ever_new_shapes_are_bounded():
    if not operators.possible():
        pytest.skip("no native code here")
    if not operators.usable():
        operators._build()

    def learned() -> int:
        gc.collect()
        return sum([len(m) for m in memo.memos() if isinstance(m, operators.Table)])

    before = learned()
    for n in range(5000):
        jnp.ones(n + 3).sum()
    assert 0 < learned() < before + 3500


def test_what_is_learned_while_the_code_arrives_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread lets the functions' tables know what was learned, one after the other: a fact
    that comes when none waits any more, but the last is not there yet, is for that one, too."""
    if not operators.usable():
        pytest.skip("there is no native code here")
    forms, x = operators.Forms(), jnp.ones(7).aval
    monkeypatch.setitem(operators._state, "connected", False)

    def learn_then_attach() -> None:
        assert not operators._waiting
        forms.learn(x, None, np.negative, x)
        tables.append(forms.attach(operators.Table(lambda _: None, 1)))

    tables: list[operators.Table] = []
    monkeypatch.setattr(operators, "_waiting", [learn_then_attach])
    operators._arrive()
    assert len(tables[0]) == 1
    assert operators._state["connected"]


def test_an_action_that_waits_when_the_code_has_come_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not operators.usable():
        pytest.skip("there is no native code here")
    done: list[int] = []
    addresses = operators._state["addresses"]
    monkeypatch.setitem(operators._state, "addresses", None)
    monkeypatch.setattr(operators, "_waiting", [])
    operators.when_ready(lambda: done.append(1))
    assert done == []
    monkeypatch.setitem(operators._state, "addresses", addresses)
    operators._arrive()
    operators.when_ready(lambda: done.append(2))
    assert done == [1, 2]


@pytest.mark.parametrize("axis", [0, 1, None])
def test_reductions_of_many_short_rows_are_numpys_inner_loops(axis):
    x = np.random.default_rng(3).normal(size=(1700, 16)).astype(np.float32)  # above 64 KiB
    aval = ShapedArray(x.shape, x.dtype)
    axes = (0, 1) if axis is None else (axis,)
    sums = REGISTRY["reduce_sum"]
    out = sums.out_avals((aval,), {"axes": axes})
    whole = axis is None and entries._adds_up_in_parts()  # by NumPy in another order
    if operators.usable():
        assert (entries.entry_with_params(sums, (aval,), {"axes": axes}, out) is None) == whole
    given = jnp.array(x)
    for _ in range(3):
        np.testing.assert_array_equal(jnp.max(given, axis=axis), x.max(axis))
        np.testing.assert_allclose(jnp.sum(given, axis=axis), x.sum(axis), 1e-5, 1e-4)


def test_methods_of_the_class_take_traced_arrays():
    """`type(x).__add__` is JAX's way for libraries to wrap operators (scico); it is not x's own."""
    text = printed("""
        import numjet as nj, numjet.numpy as jnp
        from numjet.native import operators as fast_native
        if fast_native.possible() and not fast_native.usable():
            fast_native._build()
        x = jnp.arange(3.0)
        assert (x + x)[1] == 2.0
        kind = type(x)
        for name in ("__add__", "__radd__", "__ge__", "__matmul__"):
            f = getattr(kind, name)
            got = nj.jit(f)(x, x)
            assert (got == f(x, x)).all(), name
        assert nj.jit(kind.__neg__)(x)[1] == -1 and nj.jit(kind.__getitem__)(x, 1) == 1
        assert nj.grad(lambda v: kind.__mul__(v, v))(3.0) == 6.0
        try:
            kind.__add__("a", x)
        except TypeError as error:
            print(type(kind.__add__).__name__)
    """)
    assert text == ("method_descriptor\n" if operators.possible() else "function\n")
