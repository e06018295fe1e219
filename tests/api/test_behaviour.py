"""Behaviours of JAX that programs see and no other file's subject covers."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, tree_util
from numjet.errors import JaxRuntimeError
from numjet.flatten_util import ravel_pytree


def test_one_array_is_not_donated_and_given_again() -> None:
    f = nj.jit(lambda x, y: (x + y, x - y), donate_argnums=(0,))
    a = jnp.ones(3)
    with pytest.raises(JaxRuntimeError, match="donate the same buffer twice"):
        f(a, a)
    assert not a.is_deleted() and f(a, jnp.ones(3))[0].tolist() == [2.0, 2.0, 2.0]


def test_donated_arguments_that_no_result_replaces_are_told() -> None:
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\]"):
        nj.jit(lambda x: x[:1], donate_argnums=0)(jnp.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nj.jit(lambda x: x * 2, donate_argnums=0)(jnp.ones(3))
        nj.jit(lambda x: jnp.float32(1), donate_argnums=0)(jnp.ones(3))  # not read at all


def test_compiled_functions_take_no_static_arguments() -> None:
    compiled = nj.jit(lambda x, n: x * n, static_argnums=1).lower(1.0, 3).compile()
    assert compiled(2.0) == 6.0
    with pytest.raises(TypeError, match="input pytree does not match"):
        compiled(2.0, 3)


def test_jacobians_of_integers_are_zeros_of_their_dtype() -> None:
    jac = nj.jacrev(lambda x, y: x * y, argnums=(0, 1), allow_int=True)(jnp.arange(2), 3.0)
    assert jac[0].dtype == jnp.int32 and jac[0].tolist() == [[0, 0], [0, 0]]
    assert jac[1].tolist() == [0.0, 1.0]


def test_gradients_of_weak_complex_numbers_are_strong() -> None:
    for f in (lambda z: jnp.sin(z).real, lambda z: z.imag):
        assert not nj.grad(f)(1.0 + 2.0j).weak_type


def test_bounds_of_fori_loop() -> None:
    with pytest.raises(TypeError, match="must have equal types, got int16 and int8"):
        lax.fori_loop(jnp.int16(0), jnp.int8(3), lambda i, c: c + i, 0)
    with pytest.raises(ValueError, match="Can only use `unroll` in `fori_loop` if the loop bounds"):
        nj.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0.0, unroll=2))(3)
    jaxpr = nj.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["scan"]


def test_jaxprs_show_the_parameters_that_jax_shows() -> None:
    def text(f: Any, *args: Any) -> str:
        return str(nj.make_jaxpr(f)(*args))

    x = jnp.ones((2, 3))
    assert "reduce_sum[axes=(0,) out_sharding=None] a" in text(lambda x: x.sum(0), x)
    assert "slice[limit_indices=(2, 3) start_indices=(0, 1) strides=None]" in text(
        lambda x: x[:, 1:], x
    )
    assert "reshape[dimensions=None new_sizes=(6,) sharding=None]" in text(jnp.ravel, x)
    assert "preferred_element_type=float32" in text(lambda x: x @ x.T, x)
    mapped = nj.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert "psum[axes=('i',) axis_index_groups=None] a" in str(mapped)
    f = nj.custom_jvp(jnp.sin)

    @f.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        return f(*primals), tangents[0]

    assert "jvp=slope\n      symbolic_zeros=False" in text(f, 1.0)
    eqn = nj.make_jaxpr(jnp.sin)(1.0).eqns[0]
    assert str(eqn) == "a:f32[] = sin b"


def test_lines_of_equations_have_columns() -> None:
    jaxpr = nj.make_jaxpr(lambda x: jnp.cos(x))(1.0)
    assert f"{__file__}:" in str(jaxpr.eqns[0].source)
    assert str(jaxpr.eqns[0].source).split(":")[-1].startswith("36 ")


def test_arrays_as_python_objects() -> None:
    x = jnp.arange(3.0)
    assert copy.copy(x) is not x and copy.copy(x).tolist() == x.tolist()
    assert round(jnp.float32(2.5)).dtype == jnp.int32
    assert round(jnp.float32(2.26), 1).dtype == jnp.float32
    assert repr(x.at) == f"_IndexUpdateHelper({x!r})"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{x:.2f}"
    for run in (lambda: x == [1], lambda: [1] * jnp.int32(2), lambda: (1,) + x, lambda: x + [1]):
        with pytest.raises(TypeError, match="unsupported operand type"):
            run()


def test_static_nodes_that_compare_with_their_own_kind_alone() -> None:
    @tree_util.register_static
    class Mode:
        def __init__(self, name: str) -> None:
            self.name = name

        def __hash__(self) -> int:
            return hash(self.name)

        def __eq__(self, other: Any) -> bool:
            return self.name == other.name

    with pytest.raises(ValueError, match="static data"):
        tree_util.tree_map(lambda a, b: a, Mode("a"), Mode("b"))


def test_unraveling_asks_for_the_dtype() -> None:
    vector, unravel = ravel_pytree({"a": jnp.ones(2), "b": jnp.arange(2)})
    with pytest.raises(TypeError, match="expected dtype float32"):
        unravel(vector.astype(jnp.int32))
    assert ravel_pytree(3.0)[0].weak_type


def test_unraveling_functions_of_equal_trees_are_equal() -> None:
    def unravel(*tree: Any) -> Any:
        return ravel_pytree(tree)[1]

    one = unravel(jnp.ones(2), {"a": jnp.arange(2)})
    other = unravel(jnp.zeros(2), {"a": np.ones(2, np.int32)})
    assert one == other and hash(one) == hash(other)
    assert nj.jit(lambda x: unravel(x, {"a": jnp.arange(2)}) == one)(jnp.ones(2))
    assert one != unravel(jnp.ones(2), {"b": jnp.arange(2)})
    assert one != unravel(jnp.ones(2), jnp.arange(2))
    assert one != unravel(jnp.ones((2, 1)), {"a": jnp.arange(2)})
    assert one != unravel(jnp.ones(2, jnp.float16), {"a": jnp.arange(2)})
    # Of one dtype for all, the vector that is given says which.
    assert unravel(jnp.ones(2)) == unravel(jnp.arange(2)) and unravel() == unravel()


def test_printed_containers_hold_arrays(capsys: Any) -> None:
    nj.debug.print("{x} {y!r}", x={"a": jnp.ones(2)}, y=jnp.float32(2))
    assert capsys.readouterr().out == (
        "{'a': Array([1., 1.], dtype=float32)} Array(2., dtype=float32)\n"
    )


def test_promotions_that_are_refused_name_the_option() -> None:
    x, y = jnp.ones((2, 3)), np.ones(3, np.float32)
    with nj.numpy_rank_promotion("raise"), pytest.raises(
        ValueError, match=r"for add on shapes \(2, 3\) \(3,\) and with the config option"
    ):
        x + y
    with nj.numpy_rank_promotion("warn"), pytest.warns(
        UserWarning, match=r"Following NumPy automatic rank promotion for add on shapes \(2, 3\)"
    ):
        x + y
    with nj.numpy_dtype_promotion("strict"), pytest.raises(
        ValueError,
        match=r"Input dtypes \('float32', 'int32'\) have no available implicit dtype promotion",
    ):
        jnp.ones(3) + jnp.arange(3)


def test_inlined_functions_are_written_in_place() -> None:
    inner = nj.jit(lambda x: (x, jnp.sin(x)), inline=True)
    jaxpr = nj.make_jaxpr(lambda x: inner(x)[1] * 2)(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["sin", "mul"]
    assert nj.jit(nj.grad(lambda x: inner(x)[1]))(0.0) == 1.0
    assert nj.vmap(inner)(jnp.zeros(2))[1].tolist() == [0.0, 0.0]


def test_residuals_of_checkpointed_functions_are_named(capsys: Any) -> None:
    def f(x: Any) -> Any:
        return nj.ad_checkpoint.checkpoint_name(jnp.sin(x), "s") * jnp.cos(x)

    policy = nj.checkpoint_policies.save_only_these_names("s")
    nj.ad_checkpoint.print_saved_residuals(nj.checkpoint(f, policy=policy), 1.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "f32[] from the argument x" and "named 's' from " in lines[1]


def test_traced_values_print_what_they_are(capsys: pytest.CaptureFixture) -> None:
    x = jnp.ones(2)
    nj.jit(print)(x)
    nj.jit(print)(1.0)
    nj.vmap(print)(jnp.ones((2, 3)))
    nj.grad(lambda x: (print(x), x.sum())[1])(x)
    nj.jit(nj.grad(lambda x: (print(x), x.sum())[1]))(x)
    nj.jvp(lambda x: (print(x), x)[1], (x,), (x,))
    assert capsys.readouterr().out.splitlines() == [
        "JitTracer(float32[2])",
        "JitTracer(~float32[])",
        "VmapTracer(aval=float32[3], batched=float32[2,3])",
        "GradTracer(primal=[1. 1.], typeof(tangent)=f32[2])",
        "GradTracer(primal=JitTracer(float32[2]), typeof(tangent)=f32[2])",
        "JVPTracer(primal=[1. 1.], tangent=[1. 1.])",
    ]
    assert nj.jit(lambda x: copy.deepcopy(x) + copy.copy(x))(1.0) == 2.0


def test_transformed_functions_say_what_they_are() -> None:
    def f(x: Any) -> Any:
        """Its own text."""
        return x

    for made, text in [
        (nj.grad(f), "Gradient of f with respect to positional argument(s) 0."),
        (nj.value_and_grad(f), "Value and gradient of f with respect to positional argument(s) 0."),
        (nj.jacrev(f, (0,)), "Jacobian of f with respect to positional argument(s) (0,)."),
        (nj.vmap(f), "Vectorized version of f."),
    ]:
        assert made.__doc__ is not None and made.__doc__.startswith(text), made.__doc__
        assert made.__doc__.endswith("Its own text.") and made.__name__ == "f"


def test_imaginary_parts_do_not_go_silently() -> None:
    z = jnp.array([1 + 2j])
    for cast in (lambda: z.astype(float), lambda: jnp.astype(z, int)):
        with pytest.warns(DeprecationWarning, match="Casting from complex to real dtypes"):
            assert cast().tolist() == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert z.astype(bool).tolist() == [True]


def test_64_bits_that_are_not_there_are_told() -> None:
    key = nj.random.key(0)
    for make in (
        lambda: jnp.float64(1),
        lambda: jnp.uint64([1]),
        lambda: jnp.sum(jnp.ones(2), dtype="float64"),
        lambda: nj.random.normal(key, dtype=jnp.float64),
        lambda: nj.random.randint(key, (), 0, 2, jnp.int64),
    ):
        with pytest.warns(UserWarning, match="Explicitly requested dtype .* is not available"):
            make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jnp.float32(1), jnp.bool_(1), nj.random.normal(key, dtype=float)


def test_a_pullback_shows_the_arguments_it_keeps() -> None:
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    _, pullback = nj.vjp(lambda a, b: (a["x"] * b + jnp.sin(b)).sum(), {"x": x}, y)
    assert pullback.args_res[1] is y and pullback.args_res[0]["x"] is x
    assert [r.tolist() for r in pullback.opaque_residuals] == [jnp.cos(y).tolist()]
    pullback.args_res[1] = jnp.array([5.0, 6.0])
    assert pullback(1.0)[0]["x"].tolist() == [5.0, 6.0]
    assert nj.jit(lambda p: p(1.0))(pullback)[0]["x"].tolist() == [5.0, 6.0]
    _, pullback = nj.vjp(lambda a, b: a * 2 + b, 1.0, 2.0)
    assert str(pullback.args_res) == "[NotNeeded(), NotNeeded()]"
    assert [r.tolist() for r in pullback.opaque_residuals] == [2]
    _, pullback = nj.vjp(lambda a, b: a * b, 1.0, 2.0)
    pullback.args_res[0] = type(nj.vjp(lambda a: a, 1.0)[1].args_res[0])()
    with pytest.raises(ValueError, match=r"NotNeeded\(\) in the place of an argument"):
        pullback(1.0)


def test_lowered_and_compiled_results_are_not_weak_and_lie_somewhere() -> None:
    traced = nj.jit(lambda x: x + 1).trace(1.0)
    lowered = traced.lower()
    assert traced.out_info.weak_type and not lowered.out_info.weak_type
    info = lowered.compile().out_info
    assert info.sharding == nj.sharding.SingleDeviceSharding(nj.devices()[0])
    assert repr(info).endswith(
        "memory_kind=device), format=Layout(major_to_minor=(), tiling=(), "
        "sub_byte_element_size_in_bits=0))"
    )
    assert lowered.compile().output_formats == info.format


def test_shape_dtype_structs_keep_the_width_they_were_given() -> None:
    spec = nj.ShapeDtypeStruct((2,), np.float64)
    assert spec.dtype == np.float64 and spec != nj.ShapeDtypeStruct((2,), np.float32)
    assert nj.eval_shape(lambda x: x + 1, spec).dtype == jnp.float32


def test_printed_calls_share_names_with_what_they_are_called_with() -> None:
    call = nj.jit(lambda a, b: (b, lax.sin(a), lax.cos(lax.cos(a)), a))
    assert str(nj.make_jaxpr(lambda x, y: call(x, y))(1.0, 2.0)) == """\
{ lambda ; a:f32[] b:f32[]. let
    e:f32[] c:f32[] d:f32[] f:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[] b:f32[]. let
          c:f32[] = sin a
          g:f32[] = cos a
          d:f32[] = cos g
        in (b, c, d, a) }
    ] a b
  in (e, c, d, f) }"""
    step = nj.jit(lambda a: (a + 1, a * 2, a - 3))
    assert str(nj.make_jaxpr(lambda x: step(x)[1])(1.0)) == """\
{ lambda ; a:f32[]. let
    _:f32[] b:f32[] _:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[]. let
          _:f32[] = add a 1.0:f32[]
          b:f32[] = mul a 2.0:f32[]
          _:f32[] = sub a 3.0:f32[]
        in (_, b, _) }
    ] a
  in (b,) }"""


def _sines(count: int) -> Any:
    def f(x: Any) -> Any:
        for _ in range(count):
            x = lax.sin(x)
        return x

    return f


def test_jaxprs_in_several_places_and_long_ones_are_written_once() -> None:
    f = nj.jit(_sines(1))
    assert str(nj.make_jaxpr(lambda x: lax.cond(x < 3, f, f, x))(1.0)) == """\
let jaxpr = { lambda ; a:f32[]. let b:f32[] = jit[name=f jaxpr=f] a in (b,) } in
let f = { lambda ; c:f32[]. let d:f32[] = sin c in (d,) } in
{ lambda ; e:f32[]. let
    g:bool[] = lt e 3.0:f32[]
    h:i32[] = convert_element_type[new_dtype=int32 weak_type=False] g
    i:f32[] = cond[branches=(jaxpr jaxpr)] h e
  in (i,) }"""
    a, b = nj.jit(_sines(2)), nj.jit(_sines(3))
    text = str(nj.make_jaxpr(lambda x: a(x) + b(a(b(x))))(1.0))
    assert text.startswith("let f = {") and "\nlet f1 = {" in text
    assert "name=f jaxpr=f1" in text and " f:f32" not in text
    assert str(nj.make_jaxpr(nj.jit(_sines(10)))(1.0)).startswith("{ lambda")
    assert str(nj.make_jaxpr(nj.jit(_sines(11)))(1.0)).startswith("let f = {")


def test_names_after_z() -> None:
    assert "    ba:f32[] = sin z\n    bb:f32[] = sin ba\n" in str(nj.make_jaxpr(_sines(30))(1.0))
    assert repr(nj.make_jaxpr(lambda x: x * 2)(1.0).eqns[0].invars[1]) == "Literal(2.0)"


def test_scalar_types_take_what_asarray_takes() -> None:
    x = jnp.float32(2)
    made = nj.jit(lambda a: jnp.bool_([[a != 2, True], [a, 0]]))(x)
    assert made.dtype == bool and made.tolist() == [[False, True], [True, False]]
    assert nj.jit(lambda a: jnp.int8((a, 1.5)))(x).tolist() == [2, 1]
    assert nj.grad(lambda a: jnp.float32([a, 3 * a]).sum())(1.0) == 4
    assert jnp.bool_(1j) and jnp.int32([x, 5]).tolist() == [2, 5]
    given = np.arange(3)
    made = jnp.int32(given)
    given[0] = 9
    assert made.tolist() == [0, 1, 2]
    for wrong, error in ([300, -1], OverflowError), ([1j], TypeError), ([None], ValueError):
        with pytest.raises(error):
            jnp.int8(wrong)


def test_sizes_may_be_arrays_that_are_known() -> None:
    three, x = jnp.int32(3), jnp.array([0, 1, 2, 0, 5])
    places = nj.jit(lambda z: jnp.nonzero(z, size=three)[0])(x)
    assert places.tolist() == [1, 2, 4]
    assert nj.jit(lambda: jnp.setdiff1d(x, places[:1], size=three))().tolist() == [0, 2, 5]
    assert nj.jit(lambda z: jnp.fft.fft(z, n=three))(x).shape == (3,)
    split = nj.jit(lambda key: nj.random.key_data(nj.random.split(key, three)))(nj.random.key(0))
    assert split.tolist() == nj.random.key_data(nj.random.split(nj.random.key(0), 3)).tolist()


def test_loops_to_a_traced_end_convert_nothing() -> None:
    jaxpr = nj.make_jaxpr(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(5)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["while"]
    assert "convert_element_type" not in str(jaxpr)
