"""What a sample of JAX's public behaviour showed: exception types and phrases, representations and
small answers that programs see. Values given here are JAX's."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import dtypes, errors, lax, nn, random, tree_util
from numjet.base.errors import TypePromotionError

x3, m23 = jnp.array([3.0, 1.0, 2.0]), jnp.arange(6.0).reshape(2, 3)
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))
KEY = random.key(0)


class _Node:
    def __init__(self, parts):
        self.parts = parts


tree_util.register_pytree_node(_Node, lambda node: node.parts, lambda data, children: children)

_CASES: list[tuple[type[Exception], Callable, str]] = [
    (TypeError, lambda: jnp.sum(KEY), "Cannot interpret 'key<fry>' as a data type"),
    (TypeError, lambda: jnp.array(np.array([1, 2], object)), "object"),
    (TypeError, lambda: pow(jnp.array(2), 3, 5), "modulus"),
    (errors.ConcretizationTypeError, lambda: nj.jit(nn.one_hot)(2, 4),
     "in jax.nn.one_hot argument `num_classes`"),
    (AttributeError, lambda: x3.partition(1), "partition"),
    (TypeError, lambda: lax.concatenate([x3, x3], 1), "concatenate dimension out of bounds"),
    (ValueError, lambda: lax.squeeze(jnp.ones((1, 1)), (0, -2)), "dimensions are not unique"),
    (ValueError, lambda: lax.slice(m23, (0,), (2,)), "one entry for each"),
    (ValueError, lambda: lax.top_k(jnp.array([1j]), 1), "not compatible with complex inputs"),
    (ValueError, lambda: lax.scatter(x3, jnp.array([[0.0]]), jnp.ones(1), ROWS),
     "indices must have an integer type"),
    (ValueError, lambda: lax.convert_element_type(KEY, float), "keys cannot become float32"),
    (ValueError, lambda: lax.conv_general_dilated(
        jnp.ones((1, 2, 4)), jnp.ones((3, 1, 2)), (1,), "SAME", feature_group_count=2),
     "must be a multiple of feature_group_count"),
    (TypeError, lambda: lax.reduce_window(x3, 0.0, lax.add, (2,), (0,), "SAME"),
     "strictly positive"),
    (TypeError, lambda: lax.while_loop(lambda x: (), lambda x: x, 0), "boolean scalar"),
    (TypeError, lambda: jnp.copy([1, 2]), "requires ndarray or scalar arguments"),
    (ValueError, lambda: jnp.insert(x3, 1.5, 1), "index array must be integer typed; got 1.5"),
    (ValueError, lambda: jnp.delete(x3, jnp.array([1.5])), "must be integer typed"),
    (ValueError, lambda: jnp.put_along_axis(m23, jnp.array([0]), 9.0, 1, inplace=False),
     "must have same ndim"),
    (NotImplementedError, lambda: jnp.put(x3, 1, 9.0, mode="raise", inplace=False),
     "The 'raise' mode to jnp.put is not supported"),
    (ValueError, lambda: jnp.median(x3, overwrite_input=True), "overwrite_input=True"),
    (ValueError, lambda: jnp.roots(m23), "Input must be a rank-1 array"),
    (ValueError, lambda: jnp.unwrap(jnp.array([1j])), "does not support complex inputs"),
    (ValueError, lambda: jnp.fft.rfftfreq([4]), "only takes an int. Got n = [4]"),
    (ValueError, lambda: random.geometric(KEY, 0.5, dtype=float), "must be an int dtype"),
    (TypeError, lambda: dtypes.scalar_type_of("a"), "not a valid JAX array type"),
    (TypeError, lambda: lax.full_like(jnp.float32(1), 1 + 2j), "does not become float32"),
    (TypeError, lambda: lax.full((2,), 1j, jnp.float16), "does not become float16"),
    (TypeError, lambda: jnp.full_like(jnp.arange(2), 1j), "does not become int32"),
    (ValueError, lambda: nj.numpy_rank_promotion("some"), "numpy_rank_promotion"),
    (ValueError, lambda: nj.default_matmul_precision("some"), "default_matmul_precision"),
    (ValueError, lambda: tree_util.tree_leaves(_Node(5)), "should return a (children, aux_data)"),
    (ValueError, lambda: tree_util.tree_leaves(_Node((5, None))), "where 'children' is iterable"),
    (ValueError, lambda: nj.vmap(lambda: 1.0)(), "at least one argument containing an array"),
    (TypeError, lambda: nj.vmap(lambda x: "a")(x3), "Output from batched function 'a'"),
    (ValueError, lambda: nj.jit(lambda x: x, static_argnums=0, donate_argnums=0),
     "static_argnames and donate_argnames cannot intersect"),
    (TypeError, lambda: nj.jit(lambda x: x, static_argnums="a"), "interpreted as an integer"),
    (TypeError, lambda: nj.linear_transpose(lambda x: x, x3)(1.0),
     "cotangent type does not match function output"),
]  # fmt: skip


@pytest.mark.parametrize("kind, call, phrase", _CASES, ids=[phrase for _, _, phrase in _CASES])
def test_refusals(kind, call, phrase):
    with pytest.raises(kind) as caught:
        call()
    assert phrase in str(caught.value)


def test_representations():
    assert repr(lax.GatherScatterMode.CLIP) == "<GatherScatterMode.CLIP: 1>"
    assert repr(jnp.frompyfunc(jnp.add, 2, 1)) == "<jnp.ufunc 'add'>"
    assert nj.make_jaxpr(jnp.sin).__name__ == "make_jaxpr(sin)"
    assert errors.TracerBoolConversionError.__module__ == "numjet.errors"
    assert lax.Precision("high") is lax.Precision.HIGH
    assert lax.Precision(None) is lax.Precision.DEFAULT
    text = str(nj.make_jaxpr(lax.composite(lambda x: x * 2, "twice"))(1.0))
    assert "name=twice" in text and "call_jaxpr" not in text
    assert "mode=GatherScatterMode.CLIP" in str(
        nj.make_jaxpr(lambda x, i: x.at[i].get(mode="clip"))(x3, jnp.array([0, 2])))


def test_structures_of_one_node():
    for tree in (None, (), [], {}, 1):
        assert tree_util.treedef_is_leaf(tree_util.tree_structure(tree))
    assert not tree_util.treedef_is_leaf(tree_util.tree_structure([1]))


def test_parts_on_devices_keep_their_types():
    assert random.split(KEY).addressable_data(0).dtype == KEY.dtype
    assert jnp.asarray(1.0).addressable_shards[0].data.weak_type
    assert jnp.ones(2, jnp.int4).addressable_data(0).dtype == jnp.int4
    np.testing.assert_array_equal(x3.addressable_data(0), [3, 1, 2])


def test_small_dtypes_of_results():
    with nj.enable_x64(True):
        for shift in (jnp.left_shift, jnp.right_shift):
            assert shift(jnp.array(True), True).dtype == jnp.int32
            assert shift(jnp.array(True), 1).dtype == jnp.int64
    assert jnp.full_like(jnp.array([1j]), 2j)[0] == 2j
    np.testing.assert_array_equal(jnp.arange(0, -5, -2, dtype=jnp.uint8), [0, 254, 252])
    assert jnp.arange(-1, 5, -3, dtype=jnp.uint32).shape == (0,)
    both = nn.squareplus(jnp.arange(2, dtype=jnp.int8), jnp.float16(4))
    assert both.dtype == jnp.float16
    with nj.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError):
        nn.squareplus(jnp.arange(2), jnp.float32(4))


@pytest.mark.parametrize("given, drawn, want", [
    ("float32", "bfloat16", "float32"), ("float16", "bfloat16", "float32"),
    ("float16", "float16", "float16"), ("int32", "float16", "float16"),
])  # fmt: skip
def test_weibull_values_join_the_dtypes_of_their_parameters(given, drawn, want):
    scale = jnp.array(2, given)
    assert random.weibull_min(KEY, scale, 2, dtype=drawn).dtype == want
    assert random.weibull_min(KEY, scale, jnp.array(2, drawn), dtype=drawn).dtype == want


def test_binomial_draws_in_the_dtype_of_its_probabilities():
    """Values of JAX."""
    key = random.PRNGKey(123456789)
    wide, narrow = [0, 0, 2, 1, 0, 0], [1, 1, 0, 1, 1, 0]
    for x64 in (False, True):
        with nj.enable_x64(x64):
            for dtype, want in (("float32", wide), ("float16", narrow)):
                p = jnp.array(0.1787109375, dtype)
                got = random.binomial(key, jnp.float32(2.360696792602539), p, (6,))
                np.testing.assert_array_equal(got, want)
                assert got.dtype == (jnp.float64 if x64 else jnp.float32)


@pytest.mark.parametrize("fill, dtype, want", [
    (300, "uint8", 44), (-1, "uint8", 255), (2**40 + 5, "int32", 5), (300.7, "uint8", 255),
    (np.nan, "int32", 0), (2**40, "float32", 2.0**40), (2**32 - 1, "uint32", 2**32 - 1),
])  # fmt: skip
def test_filled_arrays_convert_what_does_not_fit(fill, dtype, want):
    """Integers by their lowest bits, floats as `astype` does."""
    like = jnp.zeros(2, dtype)
    for out in (jnp.full(2, fill, dtype), jnp.full_like(like, fill), lax.full((2,), fill, dtype),
                lax.full_like(like, fill)):  # fmt: skip
        assert out.dtype == dtype and out.tolist() == [want, want]
    assert lax.convert_element_type(2**40 + 5, jnp.int32) == 5
    assert jnp.full(2, 2**40 + 5).tolist() == [5, 5] and jnp.full(2, 2**40).weak_type
    with pytest.raises(OverflowError):
        jnp.full(2, 2**70, jnp.int32)


@pytest.mark.parametrize("value", [np.ones(2, np.longdouble), np.clongdouble(1), np.longdouble(1)])
def test_no_array_has_more_than_64_bits(value):
    for made in (jnp.array, jnp.asarray):
        with pytest.raises(TypeError, match="not numbers|not supported|not a valid"):
            made(value)


def test_eval_shape_of_a_compiled_function_takes_static_arguments():
    by_number = nj.jit(lambda x, n: jnp.concatenate([x] * n), static_argnums=1)
    by_name = nj.jit(lambda x, n: jnp.concatenate([x] * n), static_argnames="n")
    for f in (by_number, by_name):
        assert nj.eval_shape(f, jnp.arange(2), 3).shape == (6,)
    assert nj.eval_shape(by_name, jnp.arange(2), n=3).shape == (6,)


@pytest.mark.parametrize("x, want", [
    (lambda: jnp.ones(14), "1.], dtype=float32)"),
    (lambda: jnp.ones(15), "1.],      dtype=float32)"),
    (lambda: jnp.ones(9, bool), "True],      dtype=bool)"),
    (lambda: jnp.ones((2, 12)), "1.]], dtype=float32)"),
    (lambda: jnp.ones((2, 13)), "1.]],      dtype=float32)"),
    (lambda: jnp.full(9, 2.5), "2.5],      dtype=float32, weak_type=True)"),
    (lambda: jnp.arange(30), "27, 28, 29], dtype=int32)"),
])  # fmt: skip
def test_long_last_lines_stand_apart_from_their_dtype(x, want):
    assert repr(x()).endswith(want)
    with np.printoptions(linewidth=200):
        assert repr(x()).endswith(want.replace("      ", " "))


@pytest.mark.parametrize("dtype, total", [("bfloat16", 41599), ("float16", 42120)])
def test_geometric_draws_of_narrow_probabilities_have_no_outliers(dtype, total):
    """JAX's sums of 4,000 draws: where the uniform number was 0 the draw was 888 or 99."""
    p = jnp.full((4000,), 0.09375, dtype)
    draws = random.geometric(random.PRNGKey(7), p, (4000,))
    assert draws.max() < 72 and abs(int(draws.sum()) - total) <= total * 2e-3


def test_none_is_the_default_float():
    assert jnp.result_type(None) == jnp.float32


def test_stop_gradient_of_an_array_is_that_array():
    assert lax.stop_gradient(x3) is x3


def test_representations_of_memories_and_of_stacks_of_names():
    device = nj.devices()[0]
    assert [repr(m) for m in device.addressable_memories()][0] == "CPU_DEVICE_0"
    assert str(device.default_memory()) == "CpuDeviceMemory(id=0, process_index=0, client=cpu)"
    assert repr(x3.__dlpack_device__()) == "(<DLDeviceType.kDLCPU: 1>, 0)"

    def named(x):
        with nj.named_scope("foo"):
            return jnp.sin(x)

    stacks = [
        repr(nj.make_jaxpr(f)(x3).eqns[0].source_info.name_stack)
        for f in (jnp.sin, nj.vmap(named))
    ]
    assert stacks == [
        "NameStack(stack=())",
        "NameStack(stack=(Transform(name='vmap'), Scope(name='foo')))",
    ]


def test_what_is_told_of_tangents_of_integers_and_of_jaxprs():
    zero = nj.grad(lambda n: n * 2.0, allow_int=True)(3)
    assert repr(zero) == "TypedNdArray((b'',), dtype=void)" and zero.dtype == dtypes.float0
    assert isinstance(zero, np.ndarray)
    info = nj.make_jaxpr(lambda a, b: {"q": a + b["x"]})(1.0, {"x": 2}).jaxpr.debug_info
    assert (info.func_name, info.traced_for) == ("<lambda>", "jit")
    assert (info.arg_names, info.result_paths) == (("a", "b['x']"), ("result['q']",))
    for ct in (2, 2j, np.int32(2)):
        with pytest.raises(TypeError, match="cotangent type does not match function output"):
            nj.linear_transpose(lambda a: a * 3.0, 1.0)(ct)
    with pytest.raises(IndexError, match="no leading axis"):
        lax.scan(lambda c, x: (c, x), 0.0, jnp.float32(3))
    assert lax.map(lax.neg, x3, batch_size=0).tolist() == [-3, -1, -2]


def test_jaxprs_of_callbacks_tell_what_is_called():
    text = str(nj.make_jaxpr(lambda a: nj.debug.print("a {} {x:.2f}", a, x=a.sum()))(x3))
    assert "debug_print[\n      fmt=a {} {x:.2f}\n      has_placeholders=True\n" in text
    assert "      in_tree=PyTreeDef(((*,), {'x': *}))\n      logging_record=None\n" in text
    assert "ordered=False\n      partitioned=False\n      static_args=()\n    ] a b" in text
    text = str(nj.make_jaxpr(lambda a: nj.pure_callback(np.sin, a, a))(x3))
    tree = "in_tree=PyTreeDef(((*,), {})))"
    assert f"callback=_FlatCallback(callback_func=<ufunc 'sin'>, {tree}\n" in text
    assert "sharding=None\n      vmap_method=None\n    ] a" in text


def test_gradients_of_carries_that_become_strong_are_strong():
    # The carry is a Python number, and the rows are float32: so is the carry, and its gradient.
    for f in (
        lambda a: lax.scan(lambda c, t: (c * t, None), a, x3)[0],
        lambda a: lax.fori_loop(0, 3, lambda i, c: c * x3[i], a),
    ):
        assert not nj.grad(f)(2.0).weak_type and not nj.jit(nj.grad(f))(2.0).weak_type
    assert nj.grad(lambda a: lax.scan(lambda c, t: (c * a, None), a, x3)[0])(2.0).weak_type


@pytest.mark.parametrize(
    ("index", "taken"), [(2**31, 0), (2**32 + 1, 1), (-(2**31) - 1, 1), (7, 1)]
)
def test_an_index_beyond_int32_wraps(index, taken):
    assert int(lax.switch(index, [lambda: 0, lambda: 1])) == taken
    with pytest.raises(OverflowError):
        lax.switch(2**70, [lambda: 0, lambda: 1])


def test_transposes_hand_numbers_on_only_where_the_function_does():
    (same,) = nj.linear_transpose(lambda a: a, 1.0)(3.0)
    assert type(same) is float
    first, second = nj.linear_transpose(lambda a, b: a + b, 1.0, 1.0)(3.0)
    assert isinstance(first, nj.Array) and isinstance(second, nj.Array) and first.weak_type


def test_a_mapped_function_with_a_rule_is_shown_with_its_trees():
    @nj.custom_batching.custom_vmap
    def f(a):
        return {"q": a + x3}

    f.def_vmap(lambda size, mapped, a: ({"q": a}, {"q": True}))
    text = str(nj.make_jaxpr(f)(x3))
    assert "in_tree=PyTreeDef(([*], (*,)))\n" in text and "out_tree=PyTreeDef({'q': *})\n" in text
    assert re.search(r"\.<lambda> at 0x\w+>", text) and "call={ lambda ; d:f32[3] e:f32[3]." in text


def test_an_error_without_checks_is_shown_as_jax_shows_it():
    from numjet.experimental import checkify

    error, _ = checkify.checkify(lambda x: x + 1)(x3)
    assert repr(error) == "Error(_pred={}, _code={}, _metadata={}, _payload={})"
    assert str(error) == "Error(None)"


@pytest.mark.parametrize("name", ["F32_F32_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32"])
def test_equations_of_products_and_their_derivatives_name_the_algorithm(name: str) -> None:
    f = lambda x, w: jnp.dot(x, w, precision=name).sum()
    x, w = jnp.ones((4, 2)), jnp.ones((2, 3))
    derived = nj.make_jaxpr(nj.grad(f, (0, 1)))(x, w)
    for program in (derived, nj.make_jaxpr(nj.vmap(f))(x[None], w[None])):
        products = [e for e in program.eqns if e.primitive.name == "dot_general"]
        found = {e.params["precision"] for e in products}
        assert found == {lax.DotAlgorithmPreset[name]}
        assert f"precision={name}" in str(program)
    with nj.default_matmul_precision(name):
        assert f"precision={name}" in str(nj.make_jaxpr(lambda x, w: x @ w)(x, w))
    for dtype in (jnp.float32, jnp.float16):
        y, v = x.astype(dtype), w.astype(dtype)
        given = nj.jit(lambda x, w: jnp.matmul(x, w, precision=name))(y, v)
        assert given.dtype == dtype and (given == 2).all()
    np.testing.assert_array_equal(nj.jit(nj.grad(f))(x, w), np.full((4, 2), 3.0))


def test_no_equations_for_numbers_of_another_type() -> None:
    assert not nj.make_jaxpr(lambda x: lax.full_like(x, 3.0))(2.0).eqns
    half = nj.make_jaxpr(nj.grad(lambda x: x.sum()))(jnp.ones(3, jnp.float16))
    names = [e.primitive.name for e in half.eqns]
    assert names[-2:] == ["broadcast_in_dim", "convert_element_type"]
    assert str(half.eqns[-2].invars[0].aval) == "float32[]"


def test_pickles_of_64_bits_are_of_32_where_there_are_no_64() -> None:
    with nj.enable_x64(True):
        data = pickle.dumps((jnp.array([2.5]), jnp.array(3)))
        assert [x.dtype.name for x in pickle.loads(data)] == ["float64", "int64"]
    with nj.enable_x64(False):
        x, n = pickle.loads(data)
    assert x.dtype == jnp.float32 and n.dtype == jnp.int32 and n.weak_type == jnp.array(3).weak_type
    assert x.item() == 2.5 and n.item() == 3


def test_parameters_alone_are_the_shape_of_double_sided_draws_twice() -> None:
    draw = lambda *args: random.double_sided_maxwell(KEY, *args).shape
    assert draw(jnp.zeros(2), 1.0) == (2, 2) and draw(jnp.zeros(2), 1.0, (5,)) == (5, 2)
    assert draw(0.0, 1.0) == () and draw(0.0, 1.0, (4,)) == (4,)


def test_equations_of_ranges_have_the_numbers_first() -> None:
    def written(*args: float) -> list:
        eqns = nj.make_jaxpr(lambda: jnp.arange(*args))().eqns
        return [(e.primitive.name, float(e.invars[0].value)) for e in eqns[1:]]

    assert written(2, 6) == [("add", 2)] and written(4) == written(0, 4) == []
    assert written(0, 8, 2) == [("mul", 2), ("add", 0)] and written(-1.0, 3.0) == [("add", -1)]


@pytest.mark.parametrize("name", ["TF32_TF32_F32", "ANY_F8_ANY_F8_F32", "F16_F16_F16"])
def test_shown_products_may_have_algorithms_that_only_others_have(name: str) -> None:
    x = m23[:, :2]
    f = lambda x: jnp.dot(x, x, precision=name)
    [eqn] = nj.make_jaxpr(f)(x).eqns
    assert eqn.params["precision"] is lax.DotAlgorithmPreset[name]
    assert eqn.outvars[0].aval.dtype == jnp.float32
    assert str(nj.make_jaxpr(nj.grad(lambda x: f(x).sum()))(x)).count(f"precision={name}") == 3
    if name != "F16_F16_F16":
        with pytest.raises(ValueError, match=f"'{name}' is not supported by dot_general on CPU"):
            nj.jit(f)(x)
