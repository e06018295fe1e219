"""The backend's entry: arguments of any layout, threads, and programs kept on disk."""

from __future__ import annotations

import marshal
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from jaxpr_interpreter import compiled, spec
from python_process import printed
from together import together

import numjet
from numjet.core.array import as_array
from numjet.core.structural import full, reduce_sum
from numjet.cpu import backend, host, kernels, pipeline
from numjet.cpu.graph.forms import Forms, Uncacheable
from numjet.cpu.link import link, loader, sources
from numjet.cpu.link.jobs import Jobs
from numjet.cpu.program import cache as program_cache
from numjet.ops import transcendental as fn
from numjet.ops.arithmetic import add, mul
from numjet.ops.scan import scan
from numjet.transforms.stage import stage_closed

F32 = np.dtype(np.float32)


def chain(x):
    return fn.tanh(add(fn.exp(mul(x, x)), fn.sin(x)))


def test_arguments_of_any_layout():
    run = compiled(lambda x: [chain(x)], spec(6, 8))
    x = np.random.default_rng(0).random((6, 8), np.float32)
    (want,) = run([x])
    wide = np.zeros((6, 16), np.float32)
    wide[:, ::2] = x
    raw = np.zeros(6 * 8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(6, 8)
    raw[...] = x
    for other in (np.asfortranarray(x), wide[:, ::2], x[::-1][::-1], raw):
        np.testing.assert_array_equal(run([other])[0], want)


def test_results_are_fresh():
    run = compiled(lambda x: [add(x, x)], spec(100))
    x = np.ones(100, np.float32)
    first, second = run([x])[0], run([x + 1])[0]
    assert (first == 2).all() and (second == 4).all()


def test_threads_share_an_executable():
    run = compiled(
        lambda x: [reduce_sum(fn.exp(add(x, transposed(x))), (0,))], spec(200, 200), tolerance=1e-3
    )
    inputs = [np.full((200, 200), k / 10, np.float32) for k in range(8)]
    want = [run([x])[0] for x in inputs]

    def work(k):
        for _ in range(30):
            np.testing.assert_array_equal(run([inputs[k]])[0], want[k])

    together(work, range(8))


def transposed(x):
    from numjet.core.structural import transpose

    return transpose(x, (1, 0))


def test_keys_of_programs():
    def key(fun, *avals):
        return program_cache.key(stage_closed(lambda *xs: [fun(*xs)], avals), ())

    one = key(chain, spec(10))
    assert one == key(chain, spec(10)) and one != key(chain, spec(11))
    assert key(lambda x: mul(x, full((), 2, F32)), spec(3)) != key(
        lambda x: mul(x, full((), 3, F32)), spec(3)
    )


def test_params_that_differ_have_different_forms():
    values = [
        1, 1.0, True, None, "1", 0.0, -0.0, np.float32(1), np.int32(1), (), [], (1,), [1], (True,),
        (1.0,), (0.0,), (-0.0,), ((1,),), ((1,), ()), (((1,), ()),), ((1, 2),), ((1,), 2),
        (1, (2,)), ((True,),), ([1],), (None,), ("1",), (False, 1), (True, 1), ((False, 1),),
        np.dtype("f4"), (np.float32(1),), (np.int32(1),), (np.uint32(1),),
    ]
    empty = Forms([], [], [])
    forms = {marshal.dumps(empty.value(value, False), 0) for value in values}
    assert len(forms) == len(values)
    # And as params of an equation, where plain values are written at once.
    values += [np.ones(2, np.int32), np.ones((1, 2), np.int32), b"1", ("as",), {"a": 1}, {1: "a"}]
    forms = set()
    for value in values:
        try:
            (eqn,) = stage_closed(lambda x: [mul(x, x)], [spec(3)]).eqns
            forms.add(empty.params(eqn.replace(params={"p": value})))
        except Uncacheable:
            assert isinstance(value, np.ndarray | bytes)
    assert len(forms) == len(values) - 3


def test_a_key_depends_on_every_source_file():
    root = pathlib.Path(numjet.__file__).parent
    found = {pathlib.Path(entry.path).relative_to(root) for entry in sources._files(str(root))}
    layers = "base core transforms ops cpu".split()
    assert found == {
        path.relative_to(root) for layer in layers for path in (root / layer).rglob("*.py")
    }


def test_a_key_depends_on_the_number_of_cores(monkeypatch):
    closed = stage_closed(lambda x: [chain(x)], [spec(10)])
    before = program_cache.key(closed, ())
    monkeypatch.setattr(program_cache.host, "cpu_count", lambda: 77)
    assert program_cache.key(closed, ()) != before


def test_constants_are_found_again():
    def with_table(scale):
        table = as_array(np.arange(8, dtype=np.float32) * scale)
        return stage_closed(
            lambda x: [scan(lambda c, _: (add(mul(c, table), table), None), x, None, length=3)[0]],
            [spec(8)],
        )

    first, second = with_table(0.5), with_table(0.25)
    assert program_cache.key(first, ()) == program_cache.key(second, ())
    x = np.ones(8, np.float32)
    outs = [backend.compile(c)([x])[0] for c in (first, second)]
    for out, scale in zip(outs, (0.5, 0.25), strict=True):
        want, table = x, np.arange(8, dtype=np.float32) * np.float32(scale)
        for _ in range(3):
            want = want * table + table
        np.testing.assert_allclose(out, want, rtol=1e-6)


SCRIPT = """
import sys, time
import numpy as np
from numjet.core.avals import ShapedArray
from numjet.cpu import backend
from numjet.cpu.link import link
from numjet.ops import transcendental as fn
from numjet.ops.dot import dot_general
from numjet.ops.arithmetic import add
from numjet.transforms.stage import stage_closed
if sys.argv[1] == "again":
    def refuse(*_): raise AssertionError("compiled again")
    link._compile = refuse
avals = [ShapedArray((33,), np.dtype(np.float32))]
closed = stage_closed(lambda x: [fn.sin(fn.tanh(add(fn.exp(x), x)))], avals)
run = backend.compile(closed)
x = np.linspace(-1, 1, 33, dtype=np.float32)
np.testing.assert_allclose(run([x])[0], np.sin(np.tanh(np.exp(x) + x)), rtol=1e-5)
assert run.num_kernels == 1
square = [ShapedArray((40, 40), np.dtype(np.float32))] * 2
closed = stage_closed(lambda x, y: [dot_general(x, y, (((1,), (0,)), ((), ())))], square)
run = backend.compile(closed)
x = np.ones((40, 40), np.float32)
np.testing.assert_allclose(run([x, x])[0], 40.0)
if sys.argv[1] == "again":
    assert "numjet.cpu.fusion.fuse" not in sys.modules
    from numjet.cpu.link import processor
    if processor.identity() is not None:
        with open("/proc/self/maps") as file:
            assert "llvmlite" not in file.read()
"""


def test_second_process_compiles_nothing(tmp_path):
    env = {
        **os.environ,
        "NUMJET_CACHE_DIR": str(tmp_path / "cache"),
        "NUMJET_NATIVE_CHECKS": "",  # with which native code is compiled anew in every process
        "PYTHONPATH": os.pathsep.join([str(p) for p in sys.path if p]),
    }
    for word in ("first", "again"):
        subprocess.run([sys.executable, "-c", SCRIPT, word], env=env, check=True, timeout=120)


def test_a_kept_program_is_not_damaged_where_memory_is_refused(monkeypatch):
    """The system may take the right away later: the program stays, and is asked for again."""
    closed = stage_closed(lambda x: [chain(chain(x))], [spec(23)])
    key = backend.compile(closed).key
    with monkeypatch.context() as refused:
        refused.setattr(host, "make_executable", lambda start, size: False)
        refused.setattr(link, "cache_damaged", None)
        with pytest.raises(loader.CodeRefused):
            backend.compile(closed)
    monkeypatch.setattr(backend, "_compile", None)
    assert backend.compile(closed).key == key


@pytest.mark.parametrize("bad", [b"", b"garbage", marshal.dumps([1, 2, 3]), "garbage as code"])
def test_a_program_that_is_damaged_in_the_cache_is_compiled_anew(bad, monkeypatch):
    closed = stage_closed(lambda x: [add(chain(x), x)], [spec(29)])
    before = backend.compile(closed)
    if bad == "garbage as code":
        fields = [{}, [], {}, {}, [b"NJIMAGE1garbage"]]
        monkeypatch.setattr(program_cache, "unpack", lambda *_: fields)
        fields[0] = {"providers": [], "libraries": {}}
    else:
        link.cache_put(before.key, bad)
    monkeypatch.setattr(link._store(), "_warned", set())
    with pytest.warns(RuntimeWarning, match="damaged"):
        again = backend.compile(closed)
    x = np.linspace(-1, 1, 29, dtype=F32)
    np.testing.assert_array_equal(again([x])[0], before([x])[0])
    assert link.cache_get(before.key) not in (None, bad)


def test_texts_of_a_loaded_program_are_rebuilt():
    closed = stage_closed(lambda x: [chain(x)], [spec(21)])
    backend.compile(closed)
    again = backend.compile(stage_closed(lambda x: [chain(x)], [spec(21)]))
    assert "exp(" in again.kernels_text() and link.target().triple


def test_a_single_element_beside_a_reduction_is_read_at_its_place() -> None:
    import numjet as nj
    import numjet.numpy as jnp

    def f(x):  # type: ignore[no-untyped-def]
        product = x[:2] * x[2:]
        return -jnp.sum(x).reshape(1) * nj.lax.pad(product, 0.0, [(-1, 0, 0)])

    x = np.arange(1.0, 5.0, dtype=np.float32)
    np.testing.assert_array_equal(nj.jit(f)(x), [-80.0])


def test_every_special_kernel_has_a_generator() -> None:
    for name in kernels._GENERATORS:
        assert callable(kernels.generator(name)), name
    assert kernels.generator("no such kernel") is None


def test_the_providers_are_all_that_define_library_functions() -> None:
    folder = pathlib.Path(kernels.__file__).parent
    writers = [".".join(f.relative_to(folder).with_suffix("").parts) for f in folder.rglob("*.py")
               if "\nlibraries.provide(" in f.read_text()]
    code = "import sys, numjet.cpu.kernels.providers; print(*sys.modules)"
    loaded = set(printed(code).split())
    assert len(writers) > 5
    assert {f"numjet.cpu.kernels.{name}" for name in writers} <= loaded


def test_an_interrupted_compilation_lets_its_threads_go(monkeypatch):
    """Those that wait for more of LLVM's work."""
    start, used = Jobs.start, []

    def noted(jobs, work):
        used.append(jobs)
        start(jobs, work)

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Jobs, "start", noted)
    monkeypatch.setattr(pipeline, "facts", interrupt)
    monkeypatch.setattr(link, "direct", lambda: False)
    with pytest.raises(KeyboardInterrupt):
        compiled(lambda x: [mul(chain(x), full((313,), 7.25, F32))], spec(313))
    (jobs,) = set(used)
    for thread in jobs._threads:
        thread.join(60)
        assert not thread.is_alive()
