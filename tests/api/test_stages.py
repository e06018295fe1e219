"""What stages say of arguments and results, and the Array's rarer methods."""
from __future__ import annotations

import gc
import gzip
import types
import weakref

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base import protobuf

X = np.arange(3.0, dtype=np.float32)


@pytest.fixture(scope="module")
def stages():
    f = nj.jit(lambda x, y=2.0: {"a": x + y}, donate_argnums=0)
    traced = f.trace(X, y=3.0)
    lowered = traced.lower()
    return traced, lowered, lowered.compile()


def test_arguments_and_results(stages) -> None:
    for stage in stages:
        (x,), named = stage.args_info
        assert x.shape == (3,) and x.dtype == jnp.float32 and x.donated
        assert not named["y"].donated and named["y"]._aval.weak_type
        assert stage.in_avals[0][0].shape == (3,) and stage.donate_argnums == (0,)
        assert stage.out_info["a"].shape == (3,)
        assert nj.tree.unflatten(stage.out_tree, [1]) == {"a": 1}
        assert nj.tree.unflatten(stage.in_tree, [1, 2]) == ((1,), {"y": 2})
    traced, lowered, compiled = stages
    assert traced.out_avals["a"].shape == (3,)
    assert lowered.compiler_ir("jaxpr") is not None and "kernel" in lowered.compiler_ir()
    with pytest.raises(ValueError, match="dialect 'foo'"):
        lowered.compiler_ir("foo")
    device = nj.devices()[0]
    assert compiled.input_shardings[0][0].device_set == {device}
    assert compiled.output_shardings["a"].device_set == {device}
    memory = compiled.memory_analysis()
    assert memory.output_size_in_bytes == 12 and memory.host_temp_size_in_bytes == 0
    assert memory.peak_memory_in_bytes >= 12
    named = {name: getattr(memory, name) for name in dir(memory) if not name.startswith("_")}
    assert named == dict(memory) and "host_temp_size_in_bytes" in named
    assert str(memory).startswith("CompiledMemoryStats(generated_code_size_in_bytes=")
    with pytest.raises(AttributeError, match="no 'x'"):
        compiled.memory_analysis().x  # noqa: B018
    assert compiled.runtime_executable() is not None
    np.testing.assert_array_equal(traced(jnp.asarray(X), y=1.0)["a"], X + 1)


def test_shapes_that_need_no_array() -> None:
    made = nj.ShapeDtypeStruct((2, 3), jnp.float32, is_ref=True)
    assert made.update(shape=(3,)).shape == (3,) and made.update(shape=(3,)).is_ref
    assert nj.ShapeDtypeStruct.like(jnp.ones((2, 3))) == nj.ShapeDtypeStruct((2, 3), "float32")
    assert "is_ref=True" in repr(made) and made != made.update(is_ref=False)
    assert made.update(size=3) == made  # a name that there is not, as in JAX
    with pytest.raises(ValueError, match="dtype must be specified"):
        nj.ShapeDtypeStruct((2,), None)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "complex64", "bfloat16", "bool"])
def test_bytes_in_reverse(dtype: str) -> None:
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    here = np.asarray(x)  # as integers, since ml_dtypes 0.5 leaves the bytes where they are
    want = (here.view(np.uint16) if dtype == "bfloat16" else here).byteswap()
    for run in (lambda x: x.byteswap(), nj.jit(lambda x: x.byteswap())):
        assert np.asarray(run(x)).tobytes() == want.tobytes()


def test_methods() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(x.diagonal(1), np.asarray(x).diagonal(1))
    np.testing.assert_array_equal(nj.jit(lambda x: x.diagonal())(x), [0, 4])
    assert 2.0 in x[0] and 7.0 not in x[0]
    with pytest.raises(ValueError, match="one-dimensional"):
        _ = 2.0 in x
    with pytest.raises(nj.errors.TracerBoolConversionError):
        nj.jit(lambda x: 2.0 in x)(x[0])
    device = nj.devices()[0]
    assert x.to_device(device).device == device and x.clone() is not x
    assert x.on_device_size_in_bytes() == 24 and x.platform() == "cpu"
    assert x.__array_namespace__() is jnp and x.__array_namespace__(api_version="2024.12") is jnp
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="1999.12")
    assert bytes(x) == np.asarray(x).tobytes() and bytes(jnp.array(3)) == bytes(3)
    assert bytes(jnp.arange(2)) == np.arange(2, dtype="int32").tobytes()
    with pytest.raises(nj.errors.TracerArrayConversionError):
        nj.jit(bytes)(x)
    with pytest.raises(NotImplementedError, match="flatten"):
        x.flat  # noqa: B018
    assert x.is_fully_addressable and x.is_fully_replicated and not x.committed
    assert isinstance(nj.Array.committed, property)
    with pytest.raises(nj.errors.ConcretizationTypeError, match="is_fully_replicated"):
        nj.jit(lambda x: x.is_fully_replicated)(x)
    for call in (lambda: x.byteswap(inplace=True), lambda: x.to_device(device, stream=1)):
        with pytest.raises(NotImplementedError):
            call()


def test_printing_with_decorators_and_logs(capsys, caplog) -> None:
    @nj.debug.callback()
    def show(x):
        print("got", x)

    nj.jit(lambda x: (show(x), x)[1])(2.0)
    nj.debug.print()(lambda x: "x is {}")(3.0)
    nj.effects_barrier()
    assert capsys.readouterr().out == "got 2.0\nx is 3.0\n"
    with caplog.at_level("INFO"):
        nj.debug.log("y is {}", 4)
    assert "y is 4" in caplog.text


def test_a_layout_as_text(capsys) -> None:
    devices = [nj.api.placement.devices._device(i) for i in range(4)]
    mesh = nj.make_mesh((2, 2), ("x", "y"), devices=devices)
    nj.debug.visualize_array_sharding(
        nj.device_put(jnp.ones((4, 4)), nj.NamedSharding(mesh, nj.P("x", "y"))))
    text = capsys.readouterr().out
    assert text.count("CPU") == 4 and "CPU 3" in text and len(text.splitlines()) == 11
    nj.debug.visualize_sharding((4,), nj.NamedSharding(mesh, nj.P("x")))
    assert "CPU 0,1" in capsys.readouterr().out
    with pytest.raises(ValueError, match="one or two axes"):
        nj.debug.visualize_sharding((2, 2, 2), nj.NamedSharding(mesh, nj.P()))


def test_names_of_the_registry() -> None:
    registry = nj.tree_util.default_registry
    assert registry.flatten_one_level([1, 2])[0] == [1, 2]
    assert registry.flatten_one_level({"b": 3, "a": [1]}) == (([1], 3), ("a", "b"))
    assert registry.flatten_one_level(1) is None and registry.is_node(dict)
    assert registry.flatten({"a": 1})[0] == [1]


def test_memory_by_array(tmp_path) -> None:
    kept = jnp.ones(1234)
    more = [jnp.ones(4321, jnp.int8) for _ in range(3)]
    nj.profiler.save_device_memory_profile(tmp_path / "profile")
    profile = list(protobuf.fields(gzip.decompress((tmp_path / "profile").read_bytes())))
    strings = [value.decode() for field, value in profile if field == 6]
    kinds = [dict(protobuf.fields(value)) for field, value in profile if field == 1]
    assert [(strings[k[1]], strings[k[2]]) for k in kinds] == [
        ("allocations", "count"), ("space", "bytes")]
    names = {k[1]: strings[k[2]] for k in (dict(protobuf.fields(v)) for f, v in profile if f == 5)}
    held = {}
    for data in [value for field, value in profile if field == 2]:
        sample = list(protobuf.fields(data))
        (place,), (count, space) = [numbers(value) for field, value in sample if field in (1, 2)]
        labels = [dict(protobuf.fields(value)) for field, value in sample if field == 3]
        assert [strings[x[1]] for x in labels] == ["kind", "device"]
        held[names[place]] = count, space
    assert held["float32[1234]"] == (1, 4936) and held["int8[4321]"] == (3, 3 * 4321)
    del kept, more


def numbers(data):
    """Numbers that lie one behind the other, as one field of several."""
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            out.append(value)
            value = shift = 0
    return out


def test_compiler_options(caplog) -> None:
    """XLA's are accepted, and it is said once that they change nothing; others are refused."""
    wrong = nj.errors.JaxRuntimeError
    lowered = nj.jit(lambda x: x + 1).lower(1.0)
    with pytest.raises(wrong, match="No such compile option: 'fast'"):
        nj.jit(lambda x: x, compiler_options={"fast": True})(1.0)
    with pytest.raises(wrong, match="No such compile option: 'fast'"):
        lowered.compile({"fast": True})
    with pytest.raises(TypeError, match="must be a dictionary"):
        nj.jit(lambda x: x, compiler_options="fast")
    nj.jit(jnp.cosh)(2.0)
    with pytest.raises(wrong, match="'fast'"):  # of a function that was compiled without, too
        nj.jit(jnp.cosh, compiler_options={"fast": True})(2.0)
    option = {"xla_cpu_option_of_a_test": True}
    for _ in range(2):
        assert lowered.compile(option)(1.0) == 2
        assert nj.jit(lambda x: x + 1, compiler_options=option)(1.0) == 2
    said = [r for r in caplog.records if "xla_cpu_option_of_a_test" in r.getMessage()]
    assert len(said) == 1 and "has no effect" in said[0].getMessage()


def test_traced_jaxpr_is_in_the_equations_of_make_jaxpr() -> None:
    """Which follow from its one trace; under the flags of the first time where they do not."""
    runs = []

    def clipped(x, n):
        runs.append(x.dtype)
        return jnp.where(x > 0, x[1] * n, 0.0)

    traced = nj.jit(clipped, static_argnums=1, donate_argnums=0).trace(X, 2)
    assert len(runs) == 1 and "name=_where" not in str(traced.program)
    assert str(traced.jaxpr) == str(nj.make_jaxpr(clipped, static_argnums=1)(X, 2))
    assert traced.jaxpr is traced.jaxpr and len(runs) == 1
    np.testing.assert_array_equal(traced.lower().compile()(jnp.array(X)), [0, 2, 2])
    with nj.enable_x64(True):
        traced = nj.jit(clipped, static_argnums=1).trace(np.ones(3), 2)
    assert "f64[3]" in str(traced.jaxpr) and "f64[3]" in str(traced.program)


def test_cache_size_counts_signatures_that_were_called() -> None:
    f = nj.jit(lambda x: x + 1)
    f.lower(X).compile()(X)
    nj.make_jaxpr(f)(X)
    assert f._cache_size() == 0
    for x in (X, X, 1.0):
        f(x)
    assert f._cache_size() == 2
    f.clear_cache()
    assert f._cache_size() == 0


def test_stages_are_freed_without_the_collector() -> None:
    def function(x: jnp.ndarray) -> jnp.ndarray:
        return jnp.cos(x) * 2

    for make in (
        lambda f: nj.jit(f).lower(1.0), lambda f: nj.jit(f).trace(1.0),
        lambda f: nj.eval_shape(f, 1.0),
        lambda f: nj.make_jaxpr(f)(1.0),
    ):  # fmt: skip
        fresh = types.FunctionType(function.__code__, globals(), "fresh")
        gone = weakref.ref(fresh)
        gc.collect()
        gc.disable()
        try:
            make(fresh)
            del fresh
            assert gone() is None
        finally:
            gc.enable()


def test_linear_solves_tell_of_their_functions() -> None:
    scale = jnp.array([2.0, 4.0])

    def product(v: jnp.ndarray) -> jnp.ndarray:
        return v * scale

    def solver(matvec: object, right: jnp.ndarray) -> jnp.ndarray:
        return right / scale

    found = nj.make_jaxpr(lambda b: nj.lax.custom_linear_solve(product, b, solver, solver))(scale)
    (eqn,) = found.eqns
    assert sorted(eqn.params) == ["const_lengths", "jaxprs"]
    assert eqn.params["const_lengths"] == (1, 1, 1, 1)
    parts = eqn.params["jaxprs"]
    assert parts._fields == ("matvec", "vecmat", "solve", "transpose_solve")
    told = [getattr(parts, name).jaxpr.debug_info for name in ("matvec", "solve")]
    assert [(d.func_name, d.traced_for, d.arg_names) for d in told] == [
        ("product", "custom_linear_solve", ("", "v")),
        ("solver", "custom_linear_solve solve", ("", "right")),
    ]
    assert nj.debug_nans.__name__ == "debug_nans"
