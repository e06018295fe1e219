"""Equations recorded by native code are those that Python records: values, lines, errors, lives."""

from __future__ import annotations

import gc
import re
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.core import trace as core_trace
from numjet.core.jaxpr import Eqn, Literal, Var
from numjet.core.primitive import NO_EFFECTS, REGISTRY
from numjet.native import operators as fast_native, tables as trace_ir
from numjet.native.record import in_python, traced_products
from numjet.transforms.stage import StageTrace, StageTracer, stage


@pytest.fixture(scope="module", autouse=True)
def native():
    if not fast_native.possible():
        pytest.skip("No native code here.")
    if not fast_native.usable():
        fast_native._build()
    assert type(StageTrace.record) is types.MethodDescriptorType
    assert type(in_python) is types.FunctionType


def test_lines_of_a_file_that_is_excluded_are_its_callers(monkeypatch, tmp_path):
    """Also those that were met before."""
    monkeypatch.setattr(core_trace, "_excluded", core_trace._excluded)
    path = tmp_path / "library.py"
    library = {"jnp": jnp}
    exec(compile("def f(x):\n    return jnp.tanh(x @ x)", path, "exec"), library)

    def lines():
        jaxpr = nj.make_jaxpr(lambda x: library["f"](x))(table)  # traced anew each time
        return {str(e.source).partition(":")[0] for e in jaxpr.eqns}

    try:
        assert lines() == {str(path)} == lines()
        core_trace.exclude(str(tmp_path))
        assert lines() == {__file__}
    finally:
        monkeypatch.undo()
        core_trace._internal.clear()


def both(monkeypatch, fun, *avals):
    """The jaxpr of `fun` as recorded natively, and by Python."""
    native = stage(fun, avals)
    with monkeypatch.context() as patch:
        patch.setattr(StageTrace, "record", in_python)
        return native, stage(fun, avals)


def shown(jaxpr):
    """What is recorded; functions among the params without their addresses."""
    return [
        (
            str(e.primitive),
            [type(a) for a in e.invars],
            [v.aval for v in (*e.invars, *e.outvars)],
            re.sub("0x[0-9a-f]+", "", str(e.params)),
            e.effects,
            str(e.source),
        )
        for e in jaxpr.eqns
    ]


x32 = jnp.ones((4, 4)).aval
table = np.arange(16, dtype=np.float32).reshape(4, 4)


def inner(x):
    return [jnp.sin(x)
            * 2.0 for _ in range(2)]


def program(x):
    y = x @ x + 1
    y = jnp.where(y > 0, y, -y) ** 3 + inner(y)[1]
    values, order = nj.lax.sort_key_val(y, y)  # several results
    y = y + table + jnp.asarray(table) + jnp.cumsum(order, 0) + values
    y = nj.jit(lambda a: jnp.tanh(a) / 3)(y)
    g = nj.grad(lambda a: jnp.sum(nj.nn.softmax(a @ a) * nj.lax.stop_gradient(a)))(y)
    h = nj.vmap(lambda r: nj.lax.fori_loop(0, 3, lambda i, c: c * r[i], r))(g)
    return [y.astype(jnp.float16).sum(), g[0], h.reshape(-1)[::2], jnp.zeros(()) + x.mean()]


def test_equations_are_those_of_python(monkeypatch):
    (native, consts), (python, same_consts) = both(monkeypatch, program, x32)
    assert str(native) == str(python)
    assert shown(native) == shown(python)
    assert [np.asarray(c).tolist() for c in consts] == [np.asarray(c).tolist() for c in same_consts]
    for eqn in native.eqns:
        assert type(eqn) is Eqn and type(eqn.invars) is type(eqn.outvars) is list
        assert eqn.effects is NO_EFFECTS or eqn.primitive.effects is not NO_EFFECTS
        assert all(type(v) is Var for v in eqn.outvars)
        assert all(type(v) in (Var, Literal) for v in eqn.invars)


def test_lines_are_the_users(monkeypatch):
    (native, _), (python, _) = both(monkeypatch, program, x32)
    lines = {str(e.source) for e in native.eqns}
    assert {str(e.source) for e in python.eqns} == lines
    first = inner.__code__.co_firstlineno
    inside = f"{__file__}:{first + 1}:"
    assert [line for line in lines if line.startswith(inside)
            and line.endswith((" (inner.<locals>.<listcomp>)", " (inner)"))]
    assert len([line for line in lines if __file__ in line]) > 8


def test_more_lines_than_the_table_holds():
    count = 3 * trace_ir.LINES
    text = "def long(x):\n" + "".join(f"    x = x * {i}.5\n" for i in range(count)) + "    return x"
    scope: dict = {}
    exec(compile(text, "/elsewhere/long.py", "exec"), scope)
    for _ in range(2):
        jaxpr, _ = stage(lambda x: [scope["long"](x)], [x32])
        assert [e.source.line for e in jaxpr.eqns] == list(range(2, count + 2))
    scope.clear()
    del jaxpr
    gc.collect()
    assert stage(inner, [x32])[0].eqns[0].source.code.co_filename == __file__


def test_without_a_users_frame_there_is_no_line():
    package = core_trace._PACKAGE
    scope: dict = {"jnp": jnp, "stage": stage, "x32": x32}
    text = "def call():\n    return stage(lambda x: [jnp.sin(x)], [x32])[0]"
    exec(compile(text, package + "/made_up.py", "exec"), scope)
    found: list = []
    thread = threading.Thread(target=lambda: found.append(scope["call"]()))
    core_trace._internal[__file__] = core_trace._internal[threading.__file__] = True
    try:
        thread.start()
        thread.join()
    finally:
        del core_trace._internal[__file__], core_trace._internal[threading.__file__]
    assert found[0].eqns[0].source is None


def test_a_source_that_a_transformation_knows_is_taken():
    def fun(x):
        trace = core_trace.current_trace()
        trace.source = "here"
        y = jnp.sin(x)
        trace.source = None
        return [jnp.cos(y)]

    first, second = stage(fun, [x32])[0].eqns
    assert first.source == "here" and second.source.line > fun.__code__.co_firstlineno


def test_errors_are_those_of_python(monkeypatch):
    leaked = []

    def keep(x):
        leaked.append(x)
        return [x]

    sin, add = REGISTRY["sin"], REGISTRY["add"]

    def wrong(make):
        def fun(x):
            make(core_trace.current_trace(), x)
            return [x]

        return fun

    stage(keep, [x32])
    done = leaked[0].owner
    other = jnp.ones((2, 3))
    cases = [
        lambda t, x: jnp.sin(leaked[0]),
        lambda t, x: add.bind(x, leaked[0]),
        lambda t, x: t.record(add, (x, other), {}),
        lambda t, x: t.record(sin, (jnp.arange(3),), {}),
        lambda t, x: t.record(REGISTRY["reduce_sum"], (x,), {"axes": (7,)}),
        lambda t, x: t.record(sin, ("text",), {}),
        lambda t, x: t.record(sin),
        lambda t, x: t.record(sin, (x,), {}, None, 5),
        lambda t, x: t.record(3, (x,), {}),
        lambda t, x: done.record(sin, (x,), {}, x32),
    ]
    for case in cases:
        messages = []
        for record in (StageTrace.record, in_python):
            with monkeypatch.context() as patch:
                patch.setattr(StageTrace, "record", record)
                with pytest.raises(Exception) as caught:  # noqa: B017, PT011 - compared below
                    stage(wrong(case), [x32])
            messages.append((type(caught.value), str(caught.value).split(" positional")[0]))
        assert messages[0][0] is messages[1][0]
        assert messages[0] == messages[1] or "StageTrace.record()" in messages[0][1]


def test_operands_in_a_list_and_an_aval_that_is_given():
    def fun(x):
        trace = core_trace.current_trace()
        y = trace.record(REGISTRY["sin"], [x], {})
        z = trace.record(REGISTRY["sin"], (y,), {}, x32)
        return [trace.record(REGISTRY["add"], (z, jnp.float32(2)), {}, None)]

    jaxpr, _ = stage(fun, [x32])
    assert [str(e.primitive) for e in jaxpr.eqns] == ["sin", "sin", "add"]
    assert all(e.outvars[0].aval is x32 for e in jaxpr.eqns)


def test_nothing_is_lost_or_kept():
    params = {"axes": (0,)}
    objects = [x32, params, REGISTRY["reduce_sum"], REGISTRY["sin"], NO_EFFECTS]
    line = []

    def fun(x):
        trace = core_trace.current_trace()
        for _ in range(50):
            y = trace.record(REGISTRY["sin"], (x,), {}, x32)
            trace.record(REGISTRY["reduce_sum"], (y,), params)
            try:
                trace.record(REGISTRY["add"], (x, table[:, :3]), {})
            except TypeError:
                pass
        line.append(trace.eqns[-1].source)
        alone = object()
        assert type(y) is StageTracer and sys.getrefcount(y) == sys.getrefcount(alone)
        count = sys.getrefcount(y.jaxpr_var)
        assert count == 4  # its equation, its reader, the tracer, the call
        return [x]

    stage(fun, [x32])
    objects.append(line[0])
    gc.collect()
    for _ in range(5):  # what other tests left behind may go meanwhile
        before = [sys.getrefcount(x) for x in objects]
        for _ in range(20):
            stage(fun, [x32])
        del line[1:]
        gc.collect()
        after = [sys.getrefcount(x) for x in objects]
        if after == before:
            break
    assert after == before


def complete(function):
    """The Python function that native code leaves operands to."""
    (native,) = [
        cell.cell_contents for cell in function.__closure__
        if type(getattr(cell.cell_contents, "__self__", None)) is tuple
        and len(cell.cell_contents.__self__) == 5
    ]  # fmt: skip
    assert type(native) is types.BuiltinFunctionType
    return native.__self__[4]


class Stranger:
    def __rmatmul__(self, other):
        return other


OPERANDS = {
    "staged": lambda x: x,
    "matrix": lambda x: jnp.ones((4, 3)),
    "vector": lambda x: jnp.ones(4),
    "numpy": lambda x: table,
    "half": lambda x: jnp.ones((4, 4), jnp.float16),
    "integers": lambda x: x.astype(jnp.int32),
    "list": lambda x: [1.0],
    "scalar": lambda x: 2.0,
    "stranger": lambda x: Stranger(),
    "misfit": lambda x: jnp.ones((3, 4)),
    "batch": lambda x: jnp.ones((2, 4, 4)),
    "differentiated": lambda x: nj.grad(lambda a: jnp.sum(x @ a + jnp.tanh(x)))(x),
    "batched": lambda x: nj.vmap(lambda a: x @ a)(jnp.ones((2, 4, 4))),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_products_are_those_of_python(monkeypatch, name):
    def fun(x):
        for _ in range(2):
            try:
                y = x @ OPERANDS[name](x)
            except (TypeError, ValueError) as error:
                return [x, str(error)]
        return [y] if isinstance(y, StageTracer) else [x, y]

    messages = []

    def values(x):
        first, *rest = fun(x)
        messages.append(rest)
        return [first]

    native, _ = stage(values, [x32])
    assert type(StageTracer.__matmul__) is types.MethodDescriptorType
    with monkeypatch.context() as patch:
        patch.delattr(StageTracer, "__matmul__")
        python, _ = stage(values, [x32])
    assert shown(native) == shown(python)
    assert str(native) == str(python)
    assert [type(m) for m in messages[0]] == [type(m) for m in messages[1]]
    assert messages[0] == messages[1] or type(messages[0][0]) is not str


half = np.full((4, 4), 0.5, np.float32)
STAGED = [name for name, kind in fast_native.OPERATORS.items() if kind in ("plain", "reflected")]
OTHERS = {
    "itself": lambda x: x,
    "half": lambda x: 0.5,
    "zeros of both signs": lambda x: [0.0, -0.0],
    "not a number": lambda x: float("nan"),
    "three": lambda x: 3,
    "a large integer": lambda x: 2**40,
    "true": lambda x: True,
    "complex": lambda x: 1.0 + 2j,
    "NumPy's scalars": lambda x: [np.float32(2), np.float64(2), np.int8(3)],
    "an array": lambda x: jnp.asarray(table),
    "NumPy's array": lambda x: table,
    "of another type": lambda x: [jnp.asarray(table, t) for t in (bool, jnp.int8, jnp.bfloat16)],
    "repeated": lambda x: [x[0], x[:, :1], jnp.ones(())],
    "misfit": lambda x: jnp.ones((3, 4)),
    "nothing": lambda x: None,
    "a text": lambda x: "text",
    "batched": lambda x: nj.vmap(lambda a: (x + a) * (a + x))(jnp.ones((2, 4, 4), x.dtype)),
    "differentiated": lambda x: nj.jvp(lambda a: (x + a) * (a + x), [half], [half])[1],
}


def of_types(*kinds):
    return [x32.update(dtype=np.dtype(kind)) for kind in kinds]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_operators_are_those_of_python(monkeypatch, name, x64):
    """Once the operands are known; also within derivatives and maps."""

    def fun(*xs):
        out = []
        for x in xs:
            others = OTHERS[name](x)
            for y in others if isinstance(others, list) else [others]:
                for operator in STAGED:
                    try:
                        out += [getattr(x, operator)(y) for _ in range(2)]
                    except (TypeError, ValueError, OverflowError) as error:
                        out.append(str(error))
        messages.append([x for x in out if isinstance(x, str) or x is NotImplemented])
        return [x for x in out if isinstance(x, StageTracer)]

    messages = []
    with nj.enable_x64(x64):
        wide = ("float64", "int64") if x64 else ()
        avals = of_types("float32", "int32", "bool", "complex64", "float16", *wide)
        native, _ = stage(fun, avals)
        for operator in STAGED:
            assert type(vars(StageTracer)[operator]) is types.MethodDescriptorType
        with monkeypatch.context() as patch:
            for operator in STAGED:
                patch.delattr(StageTracer, operator)
            python, _ = stage(fun, avals)
    assert shown(native) == shown(python)
    assert str(native) == str(python)
    assert messages[0] == messages[1]


def stages_leave(fun, objects):
    """Twenty traces of `fun` neither lose nor keep references to these."""
    gc.collect()
    before = [sys.getrefcount(x) for x in objects]
    for _ in range(20):
        stage(fun, [x32])
    gc.collect()
    # A reference lost or kept by each trace makes 20; one that something else drops meanwhile, 1.
    after = [sys.getrefcount(x) for x in objects]
    assert all(abs(a - b) < 10 for a, b in zip(after, before, strict=True)), (before, after)


def test_operators_lose_and_keep_nothing():
    def fun(x):
        for _ in range(50):
            y = 2.5 - (x * x + ones) / 1.5
        assert sys.getrefcount(y) == 2
        return [y > 1.25]

    ones = jnp.ones((4, 4))
    stage(fun, [x32])
    written = [e for e in stage(fun, [x32])[0].eqns[-5:]]  # what operators know
    objects = [x32, ones, ones.aval, REGISTRY["mul"], REGISTRY["sub"]]
    objects += [*(e.params for e in written), *(e.outvars[0].aval for e in written)]
    objects += [v.value for e in written for v in e.invars if type(v) is Literal]
    assert len(objects) == 5 + 2 * 5 + 3
    del written
    stages_leave(fun, objects)


def test_functions_are_those_of_python():
    values = [
        lambda x: x, lambda x: x.astype(jnp.int32), lambda x: x.astype(bool), lambda x: table,
        lambda x: 0.5, lambda x: x[0, 0], lambda x: x.astype(jnp.complex64),
    ]  # fmt: skip
    for function in (jnp.tanh, jnp.sin, jnp.square, jnp.absolute):
        for value in values:
            for call in (function, complete(function)):  # both have seen the avals then
                stage(lambda x, f=call, v=value: [f(v(x))], [x32])
            native, python = (
                stage(lambda x, f=call, v=value: [f(v(x))], [x32])[0]
                for call in (function, complete(function))
            )
            assert shown(native) == shown(python)
    with pytest.raises(TypeError, match="tanh"):
        stage(lambda x: [jnp.tanh("text")], [x32])


def test_staged_values_of_other_traces_are_left_to_python():
    """Of a trace around this one, and of one that has ended."""
    old = []

    def fun(x):
        old.append(x)
        inner, consts = stage(lambda a: [jnp.tanh(x), x @ a, a @ x, x * 2.0, 2.0 - x], [x32])
        names = ["tanh", "dot_general", "dot_general", "mul", "sub"]
        assert [str(e.primitive) for e in inner.eqns] == names
        assert len(consts) == 1
        return [x]

    jaxpr, _ = stage(fun, [x32])
    assert not jaxpr.eqns
    for case in (
        lambda: old[0] @ old[0], lambda: jnp.tanh(old[0]), lambda: old[0] @ table,
        lambda: old[0] * 2.0, lambda: 2.0 * old[0], lambda: old[0] < old[0],
    ):  # fmt: skip
        with pytest.raises(nj.errors.UnexpectedTracerError):
            case()
        with pytest.raises(nj.errors.UnexpectedTracerError):
            stage(lambda x, c=case: [c()], [x32])


def test_products_and_functions_lose_and_keep_nothing():
    def fun(x):
        for _ in range(50):
            y = jnp.tanh(x @ x) @ ones
        assert sys.getrefcount(y) == 2
        return [x]

    ones = jnp.ones((4, 4))
    (params, out) = (stage(fun, [x32]), traced_products[x32, x32])[1]
    objects = [x32, params, out, traced_products[x32, x32], REGISTRY["tanh"], ones]
    stages_leave(fun, objects)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python tracks every dictionary")
def test_the_collector_searches_what_may_be_in_cycles_alone():
    def fun(x):
        y = jnp.tanh(x @ x) * 2.0
        return [jnp.sum(y, 0), REGISTRY["sin"].bind(y)]

    jaxpr, _ = stage(fun, [x32])
    named = {str(e.primitive): e for e in jaxpr.eqns}
    for eqn in jaxpr.eqns:
        assert not any(gc.is_tracked(v) for v in (eqn.outvars, *eqn.outvars))
        assert gc.is_tracked(eqn) == gc.is_tracked(eqn.invars)
        assert gc.is_tracked(eqn) == gc.is_tracked(eqn.params)
    assert not any(gc.is_tracked(named[name]) for name in ("tanh", "sin", "mul"))
    assert not gc.is_tracked(named["mul"].invars[1])

    def inside(x):
        trace = core_trace.current_trace()
        params = {"axes": (0,), "itself": []}
        y = trace.record(REGISTRY["sin"], (x,), params, x32)
        params["itself"].append(trace.eqns[-1])
        return [y]

    # A cycle through an equation's params is found and freed.
    live = weakref.WeakSet()

    class Witness:
        pass

    jaxpr, _ = stage(inside, [x32])
    witness = Witness()
    live.add(witness)
    jaxpr.eqns[0].params["itself"].append(witness)
    del jaxpr, witness
    gc.collect()
    assert not live


def test_threads_trace_beside_each_other():
    want = str(stage(program, [x32])[0])
    wrong = []

    def work():
        for _ in range(20):
            if str(stage(program, [x32])[0]) != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
