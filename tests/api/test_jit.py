"""jit: signatures, static and donated arguments, nesting, stages, the compiled object."""

from __future__ import annotations

import dataclasses
import functools
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from together import together

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.avals import Placed

x3 = jnp.array([0.5, -1.0, 2.0])


def close(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


class Counted:
    """A function that counts how often Python runs its body."""

    def __init__(self, fun: Callable) -> None:
        self.fun, self.count = fun, 0
        functools.update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.fun(*args, **kwargs)


# ------------------------------------------------------------------ signatures
def test_one_trace_for_each_signature() -> None:
    f = Counted(lambda x, y=1.0: x * 2.0 + y)
    g = nj.jit(f)
    for _ in range(3):
        close(g(x3), x3 * 2.0 + 1.0)
    assert f.count == 1
    g(x3 + 1.0, 1.0)  # given by position: another structure of the arguments
    g(x3, y=2.0)
    assert f.count == 3
    g(jnp.ones(4))
    assert f.count == 4
    g(jnp.ones(4, int))
    assert f.count == 5
    g(1.0)  # weak
    g(2.0)
    assert f.count == 6
    g(jnp.float32(1.0))
    assert f.count == 7
    g(np.ones(4, np.float32))  # NumPy arrays have the signature of Arrays
    assert f.count == 7
    with nj.enable_x64():
        g(x3)
    assert f.count == 8
    g.clear_cache()
    g(x3)
    assert f.count == 9


def test_jit_made_twice_of_one_function_traces_once() -> None:
    f = Counted(lambda x: x + 1.0)
    nj.jit(f)(x3), nj.jit(f)(x3)
    assert f.count == 1
    nj.clear_caches()
    nj.jit(f)(x3)
    assert f.count == 2


def test_trees_in_and_out() -> None:
    @nj.jit
    def f(p: Any, *rest: Any, scale: Any, **others: Any) -> Any:
        return {"sum": p["a"] + p["b"][0] * scale, "rest": rest, "none": None, "o": others}

    out = f({"a": 1.0, "b": (x3,)}, 5, x3, scale=2.0, extra=[3, None])
    close(out["sum"], 1.0 + 2.0 * x3)
    assert isinstance(out["rest"], tuple) and int(out["rest"][0]) == 5
    assert out["none"] is None and out["o"]["extra"][1] is None
    assert float(out["o"]["extra"][0]) == 3.0


def test_dtypes_of_scalars_and_outputs() -> None:
    assert nj.jit(lambda x: x)(3).dtype == jnp.int32 and nj.jit(lambda x: x)(3).weak_type
    assert nj.jit(lambda x: x * 2)(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    assert nj.jit(lambda: 1.5)().weak_type
    out = nj.jit(lambda x: (x, x, 7, np.float32(2.0), x > 0))(x3)
    assert [o.dtype.name for o in out] == ["float32", "float32", "int32", "float32", "bool"]
    close(out[0], x3)
    assert nj.jit(lambda x: x)(jnp.zeros((0, 3))).shape == (0, 3)


# ------------------------------------------------------------------ statics
def test_static_arguments_by_number_and_by_name() -> None:
    def power(x: Any, n: int, *, flag: bool = False) -> Any:
        return functools.reduce(lambda a, _: a * x, range(n - 1), x) * (2.0 if flag else 1.0)

    f = Counted(power)
    g = nj.jit(f, static_argnums=1, static_argnames="flag")
    close(g(x3, 3), x3**3)
    close(nj.jit(power, static_argnums=1)(x3, n=3), x3**3)  # the same argument, by name
    with pytest.raises(nj.errors.TracerIntegerConversionError):
        g(x3, n=3)  # both were given, so that neither follows from the other
    close(g(x3, 2), x3**2)
    close(g(x3, 2, flag=True), 2 * x3**2)
    count = f.count
    g(x3, 3), g(x3, 2), g(x3, 2, flag=True)
    assert f.count == count
    close(nj.jit(power, static_argnames=("n", "flag"))(x3, 3, flag=True), 2 * x3**3)
    close(nj.jit(power, static_argnums=-1)(x3, 3), x3**3)


def test_static_values_of_different_types_differ_although_they_are_equal() -> None:
    f = nj.jit(lambda x, n: x * n, static_argnums=1)
    assert [f(jnp.int32(2), n).dtype.name for n in (1, 1.0, True, 1)] == [
        "int32",
        "float32",
        "int32",
        "int32",
    ]


def test_static_dataclasses_functions_and_strings() -> None:
    @dataclasses.dataclass(frozen=True)
    class Options:
        name: str
        act: Callable

    @functools.partial(nj.jit, static_argnums=(0, 2))
    def run(options: Options, x: Any, kind: str) -> Any:
        return options.act(x) if kind == "act" else x

    close(run(Options("a", jnp.sin), x3, "act"), jnp.sin(x3))
    close(run(Options("a", jnp.cos), x3, "act"), jnp.cos(x3))
    close(run(Options("a", jnp.cos), x3, "none"), x3)


def test_decorator_forms_and_methods() -> None:
    @nj.jit
    def plain(x: Any) -> Any:
        """A docstring."""
        return x + 1.0

    @nj.jit(static_argnames="n")
    def options(x: Any, n: int) -> Any:
        return x * n

    assert plain.__name__ == "plain" and plain.__doc__ == "A docstring."
    assert plain.__wrapped__ is not None
    close(plain(1.0), 2.0)
    close(options(1.0, n=3), 3.0)

    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @functools.partial(nj.jit, static_argnums=0)
        def double(self, x: Any) -> Any:
            return x * self.scale

        @staticmethod
        @nj.jit
        def half(x: Any) -> Any:
            return x / 2.0

    a, b = Model(2.0), Model(3.0)
    assert [float(a.double(1.0)), float(b.double(1.0)), float(a.double(2.0))] == [2.0, 3.0, 4.0]
    assert float(nj.jit(a.double)(1.0)) == 2.0 and float(a.half(3.0)) == 1.5


def test_what_cannot_be_called_for_its_results_is_refused() -> None:
    def gives(x: Any) -> Any:
        yield x

    for transform in (nj.jit, nj.grad, nj.vmap, nj.jacrev, nj.value_and_grad):
        with pytest.raises(TypeError, match="Expected a function, got a generator function"):
            transform(gives)
        with pytest.raises(TypeError, match="staticmethod arguments are not supported"):
            transform(staticmethod(gives))

    class Slots:
        __slots__ = ()

        def __call__(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match="cannot create weak reference"):
        nj.jit(Slots())(1.0)


def test_the_text_of_a_jitted_function_survives_that_of_its_function() -> None:
    class Silent:
        def __call__(self, x: Any) -> Any:
            return x

        def __repr__(self) -> str:
            raise RuntimeError("no text")

    assert repr(nj.jit(Silent())) == "<PjitFunction>"
    assert nj.jit(test_stages).__getstate__() == {"function_name": "test_stages"}


@pytest.mark.parametrize("kind", ["static", "donate"])
def test_numbers_and_names_that_no_argument_has(kind: str) -> None:
    def some(a: Any, /, b: Any, *, c: Any) -> None: ...

    def many(a: Any, /, b: Any, *rest: Any, **more: Any) -> None: ...

    for fun, nums in ((some, -1), (some, (0, 1)), (many, 7), (many, -7)):
        nj.jit(fun, **{f"{kind}_argnums": nums})
    for nums in (2, -3):
        with pytest.raises(ValueError, match="only accepts 2 positional arguments"):
            nj.jit(some, **{f"{kind}_argnums": nums})
    for fun, name in ((some, "b"), (some, "c"), (many, "b"), (many, "other")):
        nj.jit(fun, **{f"{kind}_argnames": name})
    for fun, name in ((some, "a"), (some, "other"), (many, "a"), (many, "rest")):
        with pytest.raises(ValueError, match="invalid argnames"):
            nj.jit(fun, **{f"{kind}_argnames": name})


def test_static_values_have_to_compare() -> None:
    class Apart:
        def __hash__(self) -> int:
            return 3

        def __eq__(self, other: object) -> bool:
            raise LookupError("as they are")

    f = nj.jit(lambda x, y: x * 2, static_argnums=1)
    f(1.0, Apart())
    with pytest.raises(ValueError, match="should be comparable using __eq__.*as they are"):
        f(1.0, Apart())


def test_messages_name_arguments_by_the_paths_they_have() -> None:
    def many(a: Any, *rest: Any, b: Any = 0, **more: Any) -> Any:
        return a

    for args, kwargs, path in [
        ((1, 2, "q"), {}, r"path rest\[1\]\."),
        ((1, {"k": "q"}), {}, r"path rest\[0\]\['k'\]\."),
        ((1,), {"b": "q"}, r"path b\."),
        ((1,), {"z": "q"}, r"path more\['z'\]\."),
    ]:
        with pytest.raises(TypeError, match=rf"is of type <class 'str'> and was passed.*{path}"):
            nj.jit(many)(*args, **kwargs)


def test_results_without_values_are_numpy_arrays() -> None:
    gradient = nj.grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)
    for f in (nj.jit(gradient), nj.jit(gradient).lower(2.0, 3).compile()):
        for _ in range(3):
            dx, dn = f(2.0, 3)
            close(dx, 3.0)
            assert isinstance(dn, np.ndarray) and dn.dtype == nj.float0


def test_eval_shape_shares_the_trace_of_jit() -> None:
    f = Counted(lambda x: x * 2.0)
    spec = nj.eval_shape(f, x3)
    nj.eval_shape(f, x3)
    nj.jit(f)(x3)
    assert f.count == 1 and spec.shape == (3,)
    assert nj.eval_shape(lambda: nj.ShapeDtypeStruct((2,), "int8")).dtype == jnp.int8
    here = nj.sharding.SingleDeviceSharding(nj.devices()[0])
    assert nj.jit(f, out_shardings=here).eval_shape(x3).sharding == here


# ------------------------------------------------------------------ donation
def test_donation_takes_the_buffer_over() -> None:
    f = nj.jit(lambda p, x: {"w": p["w"] + x}, donate_argnums=0)
    p = {"w": jnp.zeros((64, 64))}
    out = f(p, 1.0)
    close(out["w"], np.ones((64, 64)))
    assert p["w"].is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(p["w"])
    for _ in range(3):
        out = f(out, 1.0)
    close(out["w"], np.full((64, 64), 4.0))
    x = jnp.ones(4)
    nj.jit(lambda a, x: a + x, donate_argnames="x")(1.0, x)
    nj.jit(lambda a, x: a + x, donate_argnames="x")(1.0, x=jnp.ones(4))
    assert x.is_deleted()


def test_of_several_threads_one_is_given_a_donated_buffer() -> None:
    f = nj.jit(lambda x: x + 1.0, donate_argnums=0)
    f(jnp.ones(300_000))  # compiled: only the run is left
    for _ in range(10):
        x, done, refused = jnp.zeros(300_000), [], []
        start = threading.Barrier(4)

        def give(x, start=start, done=done, refused=refused) -> None:
            start.wait()
            try:
                done.append(f(x))
            except RuntimeError as error:
                refused.append(error)

        together(give, [x] * 4)
        assert (len(done), len(refused)) == (1, 3) and x.is_deleted()
        assert "deleted" in str(refused[0])
        assert float(done[0].max()) == 1.0


def test_an_array_is_given_up_before_the_program_writes() -> None:
    seen = []

    def look(v):
        seen.append(x.is_deleted())
        return v

    f = nj.jit(
        lambda v: nj.pure_callback(look, nj.ShapeDtypeStruct((3,), "float32"), v) + v,
        donate_argnums=0,
    )
    x = jnp.ones(3)
    assert f(x).tolist() == [2, 2, 2] and seen == [True]


def test_donated_memory_that_numpy_shares_stays_intact() -> None:
    source = np.arange(6.0, dtype=np.float32)
    x = jnp.asarray(source)
    view = np.asarray(x)
    out = nj.jit(lambda x: x * 2.0, donate_argnums=0)(x)
    close(out, np.arange(6.0) * 2.0)
    close(source, np.arange(6.0))
    close(view, np.arange(6.0))


# ------------------------------------------------------------------ nesting and closures
def test_nested_jit_and_transformations_of_it() -> None:
    inner = Counted(lambda x: jnp.sin(x) * x)
    f = nj.jit(lambda x: nj.jit(inner)(x) + nj.jit(inner)(2.0 * x))
    close(f(x3), np.sin(x3) * x3 + np.sin(2 * x3) * 2 * x3)
    assert inner.count == 1
    close(nj.grad(lambda x: f(x).sum())(x3), nj.jit(nj.grad(lambda x: f(x).sum()))(x3))
    close(nj.vmap(f)(x3), f(x3))
    close(nj.jit(nj.jit(nj.jit(jnp.sin)))(x3), np.sin(x3))


def test_closures_over_arrays_and_tracers() -> None:
    big = jnp.arange(1000.0)
    f = nj.jit(lambda i: big[i] * 2.0)
    assert [float(f(3)), float(f(-1))] == [6.0, 1998.0]
    close(nj.jit(lambda x: nj.jit(lambda y: x * y)(2.0))(x3), 2.0 * x3)
    close(nj.grad(lambda x: nj.jit(lambda y: x * y * y)(x))(3.0), 27.0)
    close(nj.vmap(lambda x: nj.jit(lambda: x * 2.0)())(x3), 2.0 * x3)
    # The closed-over tracer differs from call to call of the same function object.
    seen = []

    def outer(x: Any) -> Any:
        g = nj.jit(lambda y: x + y)
        seen.append((g(1.0), g(2.0)))
        return seen[-1][0] * seen[-1][1]

    close(nj.jit(outer)(1.0), 6.0)
    seen.clear()
    with nj.ensure_compile_time_eval():
        assert float(jnp.sin(0.0)) == 0.0


def test_constants_are_evaluated_in_functions_traced_within_compile_time() -> None:
    def f(x: Any) -> Any:
        return x + float(jnp.cos(0.0)) * int(jnp.arange(3).sum())

    within = [
        lambda: nj.jit(f)(1.0),
        lambda: nj.jit(lambda x: nj.jit(f)(x))(1.0),
        lambda: nj.jit(nj.vmap(f))(jnp.ones(1))[0],
        lambda: nj.jit(nj.grad(lambda x: f(x) * 4.0))(1.0),
        lambda: nj.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=1)[0],
        lambda: nj.jit(lambda x: nj.lax.cond(x > 0, f, lambda y: y, x))(1.0),
    ]
    for call in within:
        with nj.ensure_compile_time_eval():
            close(call(), 4.0)
    with pytest.raises(nj.errors.ConcretizationTypeError):
        nj.jit(lambda x: f(x))(1.0)
    with nj.ensure_compile_time_eval():
        jaxpr = nj.make_jaxpr(lambda x: jnp.sin(jnp.arange(2.0)) + x)(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["convert_element_type", "add"]


@pytest.mark.parametrize("count", [3, 5000])
def test_numpy_arrays_that_are_closed_over_are_what_they_were_when_traced(count: int) -> None:
    mine = np.ones(count, np.float32)
    shared = jnp.asarray(np.broadcast_to(mine, mine.shape))  # read-only: not copied
    functions = [
        nj.jit(lambda x: (x * mine).sum()),
        nj.jit(nj.grad(lambda x: (x * mine).sum())),
        nj.jit(lambda x: nj.lax.fori_loop(0, 2, lambda i, c: c + mine, x)),
        nj.jit(lambda x: nj.jit(lambda y: y - mine[0] + jnp.sin(mine))(x)),
        nj.jit(lambda x: x + shared),
        nj.jit(lambda x: x * jnp.asarray(mine)).lower(jnp.ones(count)).compile(),
    ]
    before = [np.array(f(jnp.ones(count))) for f in functions]
    mine[:] = 7.0
    for f, expected in zip(functions, before, strict=True):
        close(f(jnp.ones(count)), expected)
    assert float(shared[0]) == 1.0 and float(nj.jit(lambda x: x * mine)(jnp.ones(count))[0]) == 7.0


def test_a_global_that_changes_is_read_while_tracing_only() -> None:
    scale = [2.0]
    f = nj.jit(lambda x: x * scale[0])
    assert float(f(1.0)) == 2.0
    scale[0] = 3.0
    assert float(f(1.0)) == 2.0
    assert float(f(jnp.ones(1))[0]) == 3.0


def test_disable_jit_runs_python_each_time() -> None:
    f = Counted(lambda x: x + 1.0)
    g = nj.jit(f)
    with nj.disable_jit():
        g(1.0), g(1.0)
        assert f.count == 2
        total = lax.fori_loop(0, 3, lambda i, c: c + float(i), 0.0)
        assert float(total) == 3.0
        assert float(lax.cond(True, lambda x: x, lambda x: -x, 2.0)) == 2.0
    g(1.0), g(1.0)
    assert f.count == 3


def test_effects_of_python_happen_once() -> None:
    printed = []
    f = nj.jit(lambda x: (printed.append(1), x * 2.0)[1])
    f(1.0), f(2.0)
    assert printed == [1]


# ------------------------------------------------------------------ stages
def test_stages() -> None:
    f = nj.jit(lambda x, y: {"out": jnp.tanh(x) @ y})
    spec = nj.ShapeDtypeStruct((3, 4), "float32")
    traced = f.trace(spec, jnp.ones((4, 2)))
    assert traced.out_info == {"out": nj.ShapeDtypeStruct((3, 2), "float32")}
    assert "dot_general" in str(traced.jaxpr)
    lowered = f.lower(spec, jnp.ones((4, 2)))
    assert lowered.out_info == traced.out_info
    compiled = lowered.compile()
    close(
        compiled(jnp.ones((3, 4)), jnp.ones((4, 2)))["out"], np.full((3, 2), 4 * np.tanh(1.0)), 1e-5
    )
    with pytest.raises(TypeError, match=r"mismatches are:\nArgument 'x'.*\[3,4\].*\[5,4\]"):
        compiled(jnp.ones((5, 4)), jnp.ones((4, 2)))
    with pytest.raises(TypeError, match="input pytree"):
        compiled(jnp.ones((3, 4)))
    with pytest.raises(TypeError, match="Cannot apply JAX transformations.*Tracer type"):
        nj.grad(lambda x: compiled(x, jnp.ones((4, 2)))["out"].sum())(jnp.ones((3, 4)))
    assert "define" in compiled.as_text() and compiled.as_text("assembly").strip()
    assert str(compiled.out_tree) == "PyTreeDef({'out': *})"


def test_stages_keep_static_arguments() -> None:
    f = nj.jit(lambda x, n: x * n, static_argnums=1)
    compiled = f.lower(x3, 3).compile()
    close(compiled(x3), 3 * x3)
    assert f.eval_shape(x3, 3) == nj.ShapeDtypeStruct((3,), "float32")


def test_cost_and_memory_analysis() -> None:
    n = 64
    compiled = nj.jit(lambda a, b: a @ b).lower(jnp.ones((n, n)), jnp.ones((n, n))).compile()
    cost = compiled.cost_analysis()
    assert 2 * n**3 * 0.9 <= cost["flops"] <= 2 * n**3 * 1.2
    assert cost["bytes accessed"] >= 3 * n * n * 4
    memory = compiled.memory_analysis()
    assert memory["argument_size_in_bytes"] == 2 * n * n * 4
    assert memory["output_size_in_bytes"] == n * n * 4
    assert memory["generated_code_size_in_bytes"] > 0


def kernels_of(fun: Callable, *args: Any) -> list[str]:
    text = nj.jit(fun).lower(*args).as_text()
    return [line for line in text.splitlines() if line.startswith("kernel ")]


def test_fusion_one_kernel_each() -> None:
    x, y, z = (jnp.ones((32, 48)) for _ in range(3))
    assert len(kernels_of(lambda x, y, z: jnp.sum(x * 2 * y + z), x, y, z)) == 1
    assert len(kernels_of(lambda x: nj.nn.softmax(x, axis=-1), x)) == 1
    assert len(kernels_of(lambda x: jnp.tanh(jnp.exp(-x * x) + jnp.sin(x)), x)) == 1
    assert len(kernels_of(lambda x: jnp.mean((x - x.mean(-1, keepdims=True)) ** 2, -1), x)) == 1
    assert len(kernels_of(lambda x, y: (x[:, ::-1].T * 2.0 + 1.0)[None, 3:], x, y)) == 1


# ------------------------------------------------------------------ eval_shape, make_jaxpr
def test_eval_shape_computes_nothing() -> None:
    f = Counted(lambda x, n: {"a": jnp.outer(x, x), "b": n + 1})
    out = nj.eval_shape(f, nj.ShapeDtypeStruct((10**6,), "float32"), 3)
    assert out["a"] == nj.ShapeDtypeStruct((10**6, 10**6), "float32")
    assert out["b"].dtype == jnp.int32 and out["b"].weak_type
    assert f.count == 1


def test_make_jaxpr_options() -> None:
    jaxpr, shape = nj.make_jaxpr(lambda x, n: x[:n], static_argnums=1, return_shape=True)(x3, 2)
    assert shape == nj.ShapeDtypeStruct((2,), "float32")
    assert [v.aval.str_short() for v in jaxpr.jaxpr.invars] == ["float32[3]"]
    assert nj.core.jaxpr.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x3)[0].shape == (2,)


# ------------------------------------------------------------------ loops stay out of Python
def test_no_python_runs_during_a_compiled_loop() -> None:
    body = Counted(lambda i, c: jnp.sin(c) + i * 0.001)
    step = Counted(lambda c, a: (c * 0.5 + a, jnp.cos(c)))
    cond, grow = Counted(lambda c: c < 5000.0), Counted(lambda c: c + 1.0)
    branch = Counted(lambda x: x * 2.0)

    @nj.jit
    def run(x: Any, n: Any) -> Any:
        a = lax.fori_loop(0, n, body, x)
        b, ys = lax.scan(step, x, jnp.arange(2000.0))
        c = lax.while_loop(cond, grow, x)
        return a, b, ys, c, lax.cond(x > 0.0, branch, jnp.negative, x)

    functions = (body, step, cond, grow, branch)
    run(0.1, 1000)
    counts = [f.count for f in functions]
    assert max(counts) <= 3, counts  # traced, perhaps again for weak types; not 1000 times
    # Threads that run Python would be seen by a trace function: nothing of ours is called.
    called = []

    def watch(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code in {f.fun.__code__ for f in functions}:
            called.append(frame.f_code)

    threading.setprofile(watch)
    import sys

    sys.setprofile(watch)
    try:
        out = run(0.2, 1500)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert not called and [f.count for f in functions] == counts
    assert float(out[3]) == pytest.approx(5000.2, abs=0.01) and out[2].shape == (2000,)
    assert (
        "HostCall" not in nj.jit(lambda x: lax.scan(step, x, jnp.arange(5.0))).lower(0.1).as_text()
    )


# ------------------------------------------------------------------ threads
def test_threads_trace_and_run_side_by_side() -> None:
    f = nj.jit(lambda x, n: jnp.sum(jnp.sin(x) * n), static_argnums=1)
    results: dict[int, float] = {}
    barrier = threading.Barrier(6)

    def work(k: int) -> None:
        barrier.wait()
        for _ in range(5):
            value = f(jnp.arange(100.0), k % 3 + 1)
            g = nj.grad(lambda x: f(x, 1))(jnp.arange(100.0))
            with nj.enable_x64(k % 2 == 0):
                wide = nj.jit(lambda x: x * 2)(1.0).dtype
        assert wide == (np.float64 if k % 2 == 0 else np.float32)
        assert g.dtype == np.float32
        results[k] = float(value)

    together(work, range(6))
    want = float(np.sin(np.arange(100.0)).sum())
    assert results == {k: pytest.approx(want * (k % 3 + 1), rel=1e-5) for k in range(6)}


def test_a_tracer_in_another_thread_is_refused() -> None:
    def f(x: Any) -> Any:
        with pytest.raises(nj.errors.UnexpectedTracerError):
            together(jnp.sin, [x])
        return x

    nj.jit(f)(1.0)


# ------------------------------------------------------------------ long calls
def test_results_of_long_calls_arrive_when_they_are_read() -> None:
    f = nj.jit(lambda x: lax.fori_loop(0, 300, lambda i, c: jnp.tanh(c @ x), x))
    x = jnp.eye(256) * 0.5
    y = f(x)
    assert y.block_until_ready() is y and y.is_ready()
    z = f(y) + f(y)  # pending values feed further calls
    close(z, 2 * np.asarray(f(y)))


def test_cycles_are_looked_for_again_after_a_trace_that_raised():
    import gc

    seen = []

    def f(x):
        seen.append(gc.get_threshold()[0])
        raise KeyError("mine")

    before = gc.get_threshold()
    with pytest.raises(KeyError, match="mine"):
        nj.jit(f)(1.0)
    assert seen[0] > 100 * before[0] and gc.get_threshold() == before and gc.isenabled()


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
def test_an_argument_may_change_its_structure_while_it_is_read(turns: int) -> None:
    class Node:
        reads = 0

    def flatten(node: Node) -> tuple:
        node.reads += 1
        return (ones,) * (1 if node.reads > turns else 2), None

    nj.tree_util.register_pytree_node(Node, flatten, lambda _, children: children)
    ones, f = jnp.ones(3), nj.jit(lambda node, y: y + 1)
    for _ in range(5):
        assert f(Node(), 1.0) == 2.0


def test_static_arguments_by_name_in_prebuilt_calls() -> None:
    """Values that are the same object are known at once, equal ones are compared, others traced."""
    traced = []

    def f(x, *, n, scale=1.0):
        traced.append(n)
        return x * scale + (n if isinstance(n, int) else len(n))

    g = nj.jit(f, static_argnames="n")
    x = jnp.arange(3.0)
    for k in range(6):
        np.testing.assert_array_equal(g(x, n=2), np.arange(3.0) + 2)
        np.testing.assert_array_equal(g(x, scale=2.0, n=(1, 2, 3)), np.arange(3.0) * 2 + 3)
        np.testing.assert_array_equal(g(x, n=tuple([4] * 2)), np.arange(3.0) + 2)
        np.testing.assert_array_equal(g(x, n=True), np.arange(3.0) + 1)
        np.testing.assert_array_equal(g(x, n=1), np.arange(3.0) + 1)
    assert len(traced) == 5


def test_the_function_is_found_under_jaxs_name():
    """nutpie takes a jitted function apart by it."""
    def plain(x):
        return x + 1

    assert nj.jit(plain)._fun is plain


def test_what_jaxprs_tell_of_functions_keeps_none_alive():
    class Callable:
        def __call__(self, a, b):
            return a * b

        def method(self, p, q):
            return p - q

    held = [lambda w, v: w * v, Callable()]
    ways = [(held[0], ("w", "v")), (held[1], ("a", "b")), (held[1].method, ("p", "q")),
            (functools.partial(held[0], 2.0), ("v",))]  # fmt: skip
    for fun, names in ways:
        info = nj.make_jaxpr(fun)(*[1.0] * len(names)).jaxpr.debug_info
        assert (info.traced_for, info.arg_names, info.result_paths) == ("jit", names, ("result",))
    gone = list(map(weakref.ref, held))
    del held, ways, fun
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_what_was_called_leaves_nothing_to_the_collector(monkeypatch) -> None:
    """Functions, programs, traces and callbacks go with the last name that holds them, also where
    types have said something of a mesh."""
    monkeypatch.setattr(Placed, "active", True)
    x = jnp.ones(3)

    def failing(y):
        return bool(y)

    def fails() -> None:
        with pytest.raises(nj.errors.TracerBoolConversionError):
            nj.jit(failing)(1)

    def root(a):
        solve, tangents = lambda f, y: y * 1.5, lambda g, y: y / g(1.0)
        return lax.custom_root(lambda y: y * y - a, 1.0, solve, tangents)

    nj.make_jaxpr(lambda y: y * x)(x[:1])  # from now on programs are looked through for such axes
    calls = {
        "jit": lambda: nj.jit(lambda y: jnp.sin(y) * 2)(x),
        "an error": fails,
        "lower": lambda: nj.jit(lambda y: y * 2).lower(x).compile()(x),
        "vmap": lambda: nj.vmap(lambda y: lax.cond(y > 0, jnp.sin, jnp.cos, y))(x),
        "jacrev": lambda: nj.jacrev(lambda y: y**3)(x),
        "scan": lambda: nj.grad(lambda y: lax.scan(lambda c, v: (c * v, c), y, x)[0])(1.0),
        "linearize": lambda: nj.linearize(nj.jit(lambda y: jnp.sin(y)), x)[1](x),
        "callback": lambda: nj.jit(lambda y: nj.pure_callback(lambda v: v, y, y))(x),
        "named_call": lambda: nj.named_call(lambda y: y * 2, name="twice")(x),
        "root": lambda: nj.grad(root)(2.0),
        "export": lambda: nj.export.export(nj.jit(lambda y: y * 2))(1.0).call(2.0),
        "paths": lambda: nj.tree.map_with_path(lambda _, leaf: leaf, {"a": [1, 2]}),
    }
    left = {}
    for name, call in calls.items():
        for _ in range(2):  # the first call makes what is kept for later ones
            call()
            gc.collect()
        call()
        left[name] = gc.collect()
    assert not any(left.values()), left


def test_what_a_function_does_not_read_needs_no_value():
    """As in JAX; netket's natural gradients pass the parameters' shapes so."""
    spec, keys = nj.ShapeDtypeStruct((3,), "float32"), nj.eval_shape(lambda: nj.random.key(0))
    unread: dict[str, Callable] = {
        "shape": lambda x, s: x + s.size,
        "dead": lambda x, s: (jnp.sin(s), x + 3)[1],
        "call": lambda x, s: nj.jit(lambda a, b: a + 3)(x, s),
        "inside": lambda x, s: x + nj.jit(lambda a, b: 3.0)(1.0, spec),
        "loop": lambda x, s: lax.fori_loop(0, 3, lambda _, c: (c[0] + 1, c[1] * 2), (x, s))[0],
    }
    for f in unread.values():
        jitted = nj.jit(f)
        close([jitted(1.0, spec), jitted(1.0, spec), jitted(1.0, jnp.ones(3))], [4.0] * 3)
        assert jitted._cache_size() == 1
        close(nj.grad(jitted)(1.0, spec), 1.0)
        close(nj.vmap(jitted, (0, None))(jnp.ones(2), spec), [4.0, 4.0])
    pair = nj.jit(lambda n, tree: n * 2 + tree["b"], static_argnums=0)
    close(pair(3, {"a": keys, "b": 1.0}), 7.0)
    for read in (lambda x, s: x + s, lambda x, s: s, lambda x, s: nj.jit(lambda a: a)(s)):
        with pytest.raises(TypeError, match=r"Argument 's' of shape float32\[3\] .*no value"):
            nj.jit(read)(1.0, spec)
    with pytest.raises(TypeError, match="no value"):
        nj.jit(unread["shape"], keep_unused=True)(1.0, spec)
