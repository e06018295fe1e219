"""Operations written down natively: as Python writes them, and left to it where it must look."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import errors
from numjet.api.eager import deferral
from numjet.base import config
from numjet.core import evaluate, hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.deferred import DeferredArray, Plan, parts
from numjet.core.primitive import REGISTRY
from numjet.cpu.builder.records import Array, Pointer
from numjet.native import deferral as native, operators
from numjet.native.objects import Object

if not operators.possible():
    pytest.skip(f"Python runs: {operators.status()}", allow_module_level=True)
if not operators.usable():
    operators._build()

from numjet.native.code import deferral as code  # noqa: E402

N = evaluate.LARGE
X = np.random.default_rng(0).normal(size=N).astype(np.float32)
code.deferral.context = Pointer(
    ctypes.c_size_t.from_address(operators._state["addresses"]["deferral"]).value
)


@pytest.fixture(autouse=True)
def fresh():
    deferral.finish_here("a new test")
    yield
    deferral.finish_here("a test ends")


def plan_of_a_chain(aval) -> Plan:
    """sin(x) * 2 + y, as `transforms.again` would have it."""
    two = jnp.array(2.0)
    mul, add, sin = (REGISTRY[name] for name in ("mul", "add", "sin"))
    equations = [(sin, {}, (0,), aval), (mul, {}, (3, 2), aval), (add, {}, (4, 1), aval)]
    return Plan([aval, aval], [two], equations)


def plain(rows) -> list:
    """Rows without the objects that they refer to."""
    found = map(parts, rows)
    return [(form.number, codes, [h() is None for h in helds]) for form, codes, helds in found]


def written(write) -> list:
    """The rows that come of three plans, and what they are written on, without the forms' places
    in memory."""
    x, y = jnp.array(X), jnp.array(X[::-1].copy())
    plan = plan_of_a_chain(x.aval)
    deferral.defer_plan(plan, [x, x])  # the first row of a tape is Python's
    tape = deferral._local.open.tape
    outs = [write(plan, [x, y])]
    outs.append(write(plan, [outs[0], y]))
    outs.append(write(plan, (outs[1], outs[0])))
    assert [type(out) for out in outs] == [DeferredArray] * 3
    rows = plain(tape.rows)
    facts = len(tape.inputs), [str(a) for a in tape.avals], tape.bytes, sorted(tape.places.values())
    assert {id(v) for v in tape.inputs} == set(tape.places)
    places = [(out._pending.code, out._pending.record is tape, out.aval) for out in outs]
    return [rows, facts, places, *[np.asarray(out) for out in outs]]


def in_python(plan, arrays):
    """`code.write` as Python."""
    words = (ctypes.c_size_t * len(arrays))(*map(id, arrays))
    out = code.write(code.deferral.context, id(plan), Array[Object](ctypes.addressof(words)),
                     len(arrays))  # fmt: skip
    if not out:
        return None
    found = ctypes.cast(out._at, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(found))
    return found


def test_rows_are_those_that_python_writes() -> None:
    wanted = written(deferral.defer_plan)
    for write in (hooks.defer_plan, in_python):
        rows, facts, places, *values = written(write)
        assert rows == wanted[0] and places == wanted[2]
        assert facts == wanted[1]
        for got, want in zip(values, wanted[3:], strict=True):
            np.testing.assert_array_equal(got, want)


def test_what_python_has_to_look_at_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.array(X)
    plan = plan_of_a_chain(x.aval)
    assert in_python(plan, [x, x]) is None  # not looked at by Python yet
    first = deferral.defer_plan(plan, [x, x])
    assert in_python(plan, [x]) is None
    assert in_python(plan, [x, 1.0]) is None
    assert type(in_python(plan, [x, first])) is DeferredArray
    users = np.array(X)  # the user may write to it
    assert in_python(plan, [x, jnp.asarray(users, copy=False)]) is None
    assert in_python(plan, [x, ArrayImpl(X[::-1], x.aval)]) is None  # lies backwards
    assert in_python(plan, [x, object.__new__(ArrayImpl)]) is None
    others: list = []
    thread = threading.Thread(target=lambda: others.append(hooks.defer_plan(plan, [x, x])))
    thread.start()
    thread.join()
    assert in_python(plan, [others[0], x]) is None
    with config.eager_fusion(False):
        assert in_python(plan, [x, first]) is None
    with nj.debug_nans(True):
        assert in_python(plan, [x, first]) is None
    assert deferral._enabled()  # Python looks at the flags after each change
    assert type(in_python(plan, [x, first])) is DeferredArray
    tape, local = deferral._local.open.tape, deferral._local.open
    monkeypatch.setattr(tape, "limit", tape.bytes - 1)
    assert in_python(plan, [x, first]) is None
    monkeypatch.undo()
    local.busy = True
    assert in_python(plan, [x, first]) is None
    local.busy = False
    assert type(in_python(plan, [x, first])) is DeferredArray
    tape.finish("a test")
    assert in_python(plan, [x, x]) is None  # the next tape has no row yet


def test_a_tape_begins_natively_where_one_began_before(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list = []
    x = jnp.array(X)
    plan = plan_of_a_chain(x.aval)
    for k in range(3):
        if k:
            monkeypatch.setattr(deferral, "_begin", begun.append)
        out = hooks.defer_plan(plan, [x, x])
        assert type(out) is DeferredArray and len(deferral._local.open.tape.rows) == 3
        deferral.finish_here("a round ends")
        np.testing.assert_allclose(out, np.sin(X) * 2 + X, rtol=1e-5, atol=1e-5)
    assert not begun
    other_line = hooks.defer_plan(plan, [x, x])
    assert begun == [plan.forms[0]] and type(other_line) is DeferredArray


def test_small_operands_are_copied_natively() -> None:
    users = np.arange(3, dtype=np.float32)
    x, y = jnp.array(X[:3]), jnp.asarray(users, copy=False)
    assert users.base is None and x.aval is y.aval
    plan = plan_of_a_chain(x.aval)
    first = deferral.defer_plan(plan, [x, x])
    assert first is not None
    out = in_python(plan, [first, y])
    turned = in_python(plan, [first, ArrayImpl(users[::-1], x.aval)])
    users[:] = 0
    sine = 2 * np.sin(2 * np.sin(X[:3]) + X[:3])
    np.testing.assert_allclose(out, sine + [0, 1, 2], rtol=1e-5)
    np.testing.assert_allclose(turned, sine + [2, 1, 0], rtol=1e-5)


def test_operands_of_views_are_not_copied() -> None:
    x, users = jnp.array(X), np.ones(3, np.float32)
    y, out = jnp.asarray(users, copy=False), ShapedArray((1, 3), np.dtype(np.float32))
    params = {"new_sizes": (1, 3), "dimensions": None, "sharding": None}
    view = Plan([y.aval], [], [(REGISTRY["reshape"], params, (0,), out)])
    first = deferral.defer_plan(plan_of_a_chain(x.aval), [x, x])
    for write in (deferral.defer_plan, hooks.defer_plan, in_python):
        assert type(first) is DeferredArray and write(view, [y]) is None
    assert view.forms[0].view


def test_a_round_of_a_loop_ends_where_python_ends_it() -> None:
    """From `SOFT` rows on the form that earlier tapes began with is Python's; others go on."""
    x = jnp.array(X)
    plan = plan_of_a_chain(x.aval)
    other = Plan([x.aval], [], [(REGISTRY["cos"], {}, (0,), x.aval)])
    first = deferral.defer_plan(plan, [x, x])
    assert plan.forms[0].begins
    deferral.defer_plan(other, [first])
    while len(deferral._local.open.tape.rows) < deferral.SOFT:
        assert type(in_python(plan, [x, first])) is DeferredArray
    assert in_python(plan, [x, first]) is None
    assert not other.forms[0].begins
    assert type(in_python(other, [first])) is DeferredArray


def test_operators_and_functions_know_what_waits() -> None:
    """What was written down once does not come to Python again."""
    x = jnp.array(X)

    def program():
        y = jnp.sin(x) * 2.5
        return [-y, y + x, 3 - y, jnp.exp(y) / y, jnp.maximum(y, 1), y > x, x * y, x - 0.5]

    for _ in range(4):
        want = [np.asarray(out) for out in program()]
    calls: list = []
    python = deferral.defer_plan
    context = np.ctypeslib.as_array(
        (ctypes.c_size_t * len(code.DeferralContext.__annotations__)).from_address(
            code.deferral.context._at
        )
    )
    place = list(code.DeferralContext.__annotations__).index("defer_plan")
    before = context[place]

    def counted(plan, arrays):
        calls.append(plan)
        return python(plan, arrays)

    context[place] = id(counted)
    try:
        got = program()
    finally:
        context[place] = before
    assert len(calls) <= 1, "the first row alone is Python's"
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_held_longer_than_it_lives() -> None:
    x = jnp.array(X)
    plan = plan_of_a_chain(x.aval)
    value = x._value
    first = deferral.defer_plan(plan, [x, x])
    form = plan.forms[0]
    before = sys.getrefcount(form), sys.getrefcount(value)
    for _ in range(30):
        hooks.defer_plan(plan, [x, first])
    assert len(deferral._local.open.tape.rows) == 3 * 31
    assert sys.getrefcount(form) == before[0] + 30
    deferral.finish_here("a test")
    gc.collect()
    # Before, the open tape had one row of the form, and the input.
    assert (sys.getrefcount(form), sys.getrefcount(value)) == (before[0] - 1, before[1] - 1)


def test_numbers_keep_their_signs_and_types() -> None:
    x = jnp.array(X)
    for _ in range(3):
        y = x * 2
        outs = [y * 0.0, y * -0.0, y * np.float32(0), y * np.float32(-0.0), y + 0, y * True]
        outs += [y * np.float32(3), y * 3, y * 3.0, y * np.float64(3), y * np.float16(3)]
        assert all(type(out) is DeferredArray for out in outs)
    value = np.asarray(y)
    for k, zero in enumerate((0.0, -0.0, 0.0, -0.0)):
        np.testing.assert_array_equal(np.signbit(outs[k]), np.signbit(value * np.float32(zero)))
    np.testing.assert_array_equal(outs[4], value)
    np.testing.assert_array_equal(outs[5], value)
    for out in outs[6:]:
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, value * np.float32(3))
    assert (y / float("nan") != y / float("nan")).all()


def test_small_operands_are_repeated_on_the_tape() -> None:
    """Under differentiation the bias of a layer is repeated by a row, not by NumPy beforehand."""
    w, b = jnp.array(X.reshape(256, -1)[:, :256]), jnp.arange(256.0) / 256
    x = jnp.array(X[: 8 * 256].reshape(8, 256))

    def loss(w, b, x):
        return jnp.mean(jnp.tanh(x @ w + b) * b)

    for _ in range(12):
        got = nj.grad(loss, (0, 1, 2))(w, b, x)
        names = [form.primitive.name for form, *_ in deferral._local.open.tape.rows]
        assert all(value.flags.c_contiguous for value in deferral._local.open.tape.inputs)
        got = [np.asarray(g) for g in got]
    assert names.count("broadcast_in_dim") >= 2
    for one, other in zip(got, nj.jit(nj.grad(loss, (0, 1, 2)))(w, b, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("native_too", [True, False])
def test_views_of_what_nobody_else_holds_are_kept_as_they_are(native_too, monkeypatch) -> None:
    """They are copied where somebody may write to what they are views of."""
    if not native_too:
        monkeypatch.setattr(hooks, "defer_plan", deferral.defer_plan)
    large, small = jnp.array(X[: N // 2 * 2].reshape(2, -1)), jnp.arange(64.0)
    for _ in range(3):
        np.asarray(large + (small * 1.0)[:2, None])  # what it is written down as is known now
    for kept in (True, False):
        of = small * 2.0
        column = of[:2, None]
        if kept:
            del of
        assert column._value.base is not None
        out = large + column
        tape = deferral._local.open.tape
        assert any(x is column._value for x in tape.inputs) == kept
        np.testing.assert_array_equal(out, np.asarray(large) + np.array([[0], [2]], np.float32))
    mine = np.ones((2, 1), np.float32)
    theirs = mine[:, :1]
    seen = ArrayImpl(theirs[:2], ShapedArray((2, 1), mine.dtype))
    out = large + seen
    assert not any(x is seen._value for x in deferral._local.open.tape.inputs)
    mine[:] = 5
    np.testing.assert_array_equal(out, np.asarray(large) + 1)


def test_views_of_arrays_that_were_copied_are_kept_as_they_are() -> None:
    """What `jnp.array` copies is nobody else's, also where other Arrays see it."""
    given = np.arange(16000, dtype=np.float32).reshape(1000, 16) / 16000
    x, y = jnp.array(given), jnp.array(given)
    for _ in range(3):
        out = x @ y.T
        inputs = deferral._local.open.tape.inputs
        for array in (x, y):
            assert any(np.shares_memory(value, array._value) for value in inputs)
        given[0, 0] = 7  # was copied
        np.testing.assert_allclose(out[0], np.asarray(x)[0] @ np.asarray(y).T, rtol=1e-5)


def test_a_plan_is_made_once():
    """Native code of one thread reads what another would replace."""
    x = ShapedArray((8,), np.dtype(np.float32))
    plan = Plan([x], [], [(REGISTRY["sin"], {}, (0,), x)])
    forms = deferral._forms_of(plan)
    native.prepare(plan, forms)
    entry, held = plan.entry, plan.held
    assert plan.forms is forms and entry is not None
    native.prepare(plan, deferral._forms_of(plan))
    assert plan.forms is forms and plan.entry is entry and plan.held is held


def test_plans_of_several_results_are_written_as_python_writes_them() -> None:
    def several(write) -> list:
        x, y = jnp.array(X), jnp.array(X[::-1].copy())
        chain = plan_of_a_chain(x.aval)
        plan = Plan([x.aval, x.aval], chain.constants, chain.equations, frozenset({0, 2}))
        deferral.defer_plan(plan, [x, x])
        outs = write(plan, [x, y])
        assert type(outs) is list and [type(out) for out in outs] == [DeferredArray] * 2
        tape = deferral._local.open.tape
        rows = plain(tape.rows)
        return [rows, [out._pending.code for out in outs], *map(np.asarray, outs)]

    wanted = several(deferral.defer_plan)
    assert wanted[1] == [3 << deferral.RESULTS, 5 << deferral.RESULTS]
    for write in (hooks.defer_plan, in_python):
        got = several(write)
        assert got[:2] == wanted[:2]
        np.testing.assert_array_equal(got[2], wanted[2])
        np.testing.assert_array_equal(got[3], wanted[3])


def test_rows_are_told_apart_as_python_tells_them() -> None:
    x = jnp.array(X)
    first = jnp.sin(x)
    held = [first * 2.5, jnp.split(first, 2)]
    jnp.exp(held[0])  # nobody holds it
    rows = list(deferral._local.open.tape.rows)
    key, holders = native.survey(rows)
    wanted, its_holders = native._survey(rows)
    assert key == wanted and list(holders) == list(its_holders)
    assert len(holders) >= 2
    assert list(map(id, holders.values())) == list(map(id, its_holders.values()))
    assert native.survey([]) == (b"", {})
    assert native._survey(rows[:-1])[0] != key


def test_a_program_of_other_results_is_an_internal_error() -> None:
    x = jnp.array(X)

    def run():
        made = jnp.sin(x) * 2 - 5
        assert type(made) is DeferredArray
        return made

    for _ in range(4):
        np.asarray(run())
    ready = {key: entry for key, entry in deferral._ready.items() if entry}
    assert ready
    right = jnp.array(X)
    for wrong in ((), (right, right), [right], (None,), (object.__new__(ArrayImpl),), right):
        for key, entry in ready.items():
            deferral._ready[key] = (lambda *given, wrong=wrong: wrong, *entry[1:])
        y = run()
        with pytest.raises(errors.InternalError, match="a program gave .* where 1 arrays"):
            np.asarray(y)
        deferral._ready.update(ready)
        np.testing.assert_allclose(y, np.sin(X) * 2 - 5, rtol=1e-5, atol=1e-5)
