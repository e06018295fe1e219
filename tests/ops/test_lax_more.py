"""What lax has beside its families: ragged products, generators, approximate selection, local
convolutions, algorithms of products, composites, tokens. Values are JAX's."""
from __future__ import annotations

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

RNG = np.random.default_rng(0)
ARRAYS = {
    "A": RNG.standard_normal((3, 8)), "L": RNG.standard_normal((6, 3)),
    "R": RNG.standard_normal((3, 3, 2)), "R2": RNG.standard_normal((6, 2)),
    "B": RNG.standard_normal((2, 6, 3)), "BR": RNG.standard_normal((3, 2, 3, 2)),
    "BB": RNG.standard_normal((6, 3, 2)), "N": RNG.standard_normal((1, 5, 6, 2)),
    "W": RNG.standard_normal((2, 2, 12, 4)),
}
ARRAYS = {name: x.astype(np.float32) for name, x in ARRAYS.items()}
ARRAYS["g"] = np.array([2, 1, 2], np.int32)
ARRAYS["gg"] = np.array([[2, 1, 2], [0, 4, 1]], np.int32)
ARRAYS["k"] = np.array([1, 2, 3, 0xFFFFFFFF], np.uint32)
NHWC = 'dimension_numbers=("NHWC", "HWIO", "NHWC")'
SAME = [
    "lax.ragged_dot(L, R, g)",
    "jax.grad(lambda l, r: (lax.ragged_dot(l, r, g) ** 2).sum(), (0, 1))(L, R)",
    "jax.vmap(lax.ragged_dot)(B, jnp.stack([R, R]), gg)",
    "lax.ragged_dot(L.astype(jnp.bfloat16), R.astype(jnp.bfloat16), g,"
    " preferred_element_type=jnp.float32)",
    "lax.ragged_dot_general(L, R2, g, D((([0], [0]), ([], [])), [0], []))",
    "lax.ragged_dot_general(B, BR, gg, D((([2], [2]), ([0], [1])), [1], [0]))",
    "lax.ragged_dot_general(B.transpose(1, 0, 2), BB, g, D((([2], [1]), ([0], [0])), [0], []))",
    "lax.ragged_dot_general(B, B, gg, D((([1], [1]), ([0], [0])), [1], []))",
    *[f"lax.rng_bit_generator(k, {shape}, jnp.{dtype}, algorithm=lax.RandomAlgorithm.{name})"
      for name in ("RNG_PHILOX", "RNG_THREE_FRY") for dtype in ("uint8", "uint16", "uint32")
      for shape in ((5,), (2, 4), (3, 5), (4, 3), ())],
    *[f"lax.approx_{which}_k(A, 3, reduction_dimension={axis})" for which in ("max", "min")
      for axis in (0, 1)],
    "jax.grad(lambda a: lax.approx_max_k(a, 2)[0].sum())(A)",
    "lax.index_take(A, (jnp.array([0, 2, -1]), jnp.array([1, 7, 9])), (0, 1))",
    "lax.index_take(A, (jnp.array([0, 2, 1]),), (1,))",
    "jax.vmap(lambda x: lax.pswapaxes(x, 'i', 0), axis_name='i')(jnp.arange(9).reshape(3, 3))",
    "lax.conv_transpose_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (2, 2), 'SAME',"
    " ('NHWC', 'HWIO', 'NHWC'))",
    "lax.conv_transpose_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), [(1, 1), (0, 2)],"
    " ('NCHW', 'OIHW', 'NCHW'))",
    f"lax.conv_general_dilated_local(N, W, (2, 2), 'VALID', (2, 3), {NHWC})",
    "lax.conv_general_dilated_local(N.transpose(0, 3, 1, 2), W.transpose(3, 2, 0, 1), (2, 2),"
    " 'VALID', (2, 3))",
    f"lax.conv_general_dilated_local(N, jnp.ones((5, 6, 12, 1)), (1, 1), 'SAME', (2, 3), {NHWC})",
    f"jax.grad(lambda w: (lax.conv_general_dilated_local(N, w, (2, 2), 'VALID', (2, 3), {NHWC})"
    " ** 2).sum())(W)",
    *[f"lax.dot(A, A.T, precision={p})" for p in (
        "lax.DotAlgorithmPreset.F32_F32_F32", "'BF16_BF16_F32'", "'F16_F16_F16'",
        "lax.DotAlgorithmPreset.BF16_BF16_F32_X3", "'F64_F64_F64'")],
    "lax.scaled_dot(A.astype(jnp.bfloat16), A.T.astype(jnp.bfloat16))",
    "lax.scaled_dot(A, A.T, lhs_scale=jnp.full((3, 2), 2.), rhs_scale=jnp.full((4, 3), .5),"
    " preferred_element_type=jnp.float32)",
    "lax.composite(lambda x, *, by: x * by, 'scaled', 2)(A, by=3)",
]


def _leaves(namespace: dict, expression: str) -> list[np.ndarray]:
    return [np.asarray(x) for x in nj.tree.leaves(eval(expression, dict(namespace)))]


def test_values_are_those_of_jax() -> None:
    script = f"""
from jax import lax
D = lax.RaggedDotDimensionNumbers
arrays = {{n: jnp.asarray(globals()[n]) for n in {list(ARRAYS)}}}
space = dict(jax=jax, jnp=jnp, lax=lax, D=D, **arrays)
for i, expression in enumerate({SAME!r}):
    for j, leaf in enumerate(jax.tree.leaves(eval(expression, dict(space)))):
        out[f"{{i}}/{{j}}"] = leaf
"""
    want = run_in_oracle(script, **ARRAYS)
    space = dict(jax=nj, jnp=jnp, lax=lax, D=lax.RaggedDotDimensionNumbers,
                 **{name: jnp.asarray(x) for name, x in ARRAYS.items()})
    for i, expression in enumerate(SAME):
        for j, leaf in enumerate(_leaves(space, expression)):
            other = want[f"{i}/{j}"]
            assert leaf.dtype == other.dtype or "shape_tuple" in expression, expression
            # Sums of bfloat16 products are added in another order.
            tolerance = 2e-2 if leaf.dtype.itemsize == 2 and leaf.dtype.kind != "u" else 2e-4
            np.testing.assert_allclose(leaf.astype(np.float64), other.astype(np.float64),
                                       rtol=tolerance, atol=tolerance, err_msg=expression)


def test_bits_are_the_same_in_compiled_code_and_64_bits_wide() -> None:
    key = ARRAYS["k"]
    state, bits = lax.rng_bit_generator(key, (7,))
    again = nj.jit(lambda k: lax.rng_bit_generator(k, (7,)))(key)
    np.testing.assert_array_equal(bits, again[1])
    # Two blocks of four words: the counter's lower word carries into the upper one.
    np.testing.assert_array_equal(state, np.array([1, 2, 5, 0xFFFFFFFF], np.uint32))
    full = np.array([1, 2, 0xFFFFFFFF, 4], np.uint32)
    np.testing.assert_array_equal(lax.rng_bit_generator(full, (4,))[0], [1, 2, 0, 5])
    with nj.enable_x64(True):
        wide = np.asarray(lax.rng_bit_generator(key, (3,), np.uint64)[1])
    np.testing.assert_array_equal(wide.view(np.uint32), np.asarray(bits)[:6])
    with pytest.warns(UserWarning, match="rng_bit_generator is not available"):
        assert lax.rng_bit_generator(key, (3,), "uint64")[1].dtype == jnp.uint32


def test_uniform_numbers_differ_from_call_to_call() -> None:
    draw = nj.jit(lambda: (lax.rng_uniform(0.0, 1.0, (4,)), lax.rng_uniform(0.0, 1.0, (4,))))
    first, second = draw()
    values = np.concatenate([first, second, *draw()])
    assert len(np.unique(values)) == 16 and values.min() >= 0 and values.max() < 1
    whole = lax.rng_uniform(0, 5, (100,))
    assert whole.dtype == jnp.int32 and set(np.unique(whole)) <= set(range(5))


def test_ragged_exchange_of_the_documented_example() -> None:
    operand = jnp.array([[1, 2, 2], [3, 4, 0]])
    arguments = [jnp.array(x) for x in (
        [[0, 1], [0, 1]], [[1, 2], [1, 1]], [[0, 0], [1, 2]], [[1, 1], [2, 1]])]
    got = nj.vmap(lambda x, *rest: lax.ragged_all_to_all(
        x, jnp.zeros(4, int), *rest, axis_name="i"), axis_name="i")(operand, *arguments)
    np.testing.assert_array_equal(got, [[1, 3, 0, 0], [2, 2, 4, 0]])


def test_collectives_by_others() -> None:
    broadcast = nj.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3.0))
    np.testing.assert_array_equal(broadcast, [1, 1, 1])
    with pytest.raises(ValueError, match="should be called under jax.shard_map"):
        nj.vmap(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.arange(3.0))


def test_composites_are_seen_by_name_and_act_as_their_function() -> None:
    twice = lax.composite(lambda x, *, by=None: {"a": x * 2.0}, "my.twice", version=3)
    jaxpr = nj.make_jaxpr(lambda x: twice(x, by=None))(1.0)
    (eqn,) = jaxpr.jaxpr.eqns
    assert eqn.primitive.name == "composite" and eqn.params["name"] == "my.twice"
    assert eqn.params["version"] == 3 and eqn.params["attributes"] == ()
    assert nj.grad(lambda x: twice(x)["a"])(1.0) == 2.0
    np.testing.assert_array_equal(nj.jit(nj.vmap(twice))(jnp.ones(3))["a"], [2, 2, 2])


def test_what_a_sink_reads_is_kept() -> None:
    def f(x):
        lax.dce_sink(jnp.sin(x))
        return x

    names = [e.primitive.name for e in nj.make_jaxpr(f)(1.0).jaxpr.eqns]
    assert "sin" in names and "dce_sink" in names and nj.jit(f)(2.0) == 2.0


def test_total_order() -> None:
    ordered = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    ordered[0] = np.copysign(np.nan, -1)
    x, y = jnp.asarray(ordered[:, None] * np.ones(8, "f4")), jnp.asarray(np.tile(ordered, (8, 1)))
    np.testing.assert_array_equal(lax.lt_to_p.bind(x, y), np.triu(np.ones((8, 8)), 1) > 0)
    np.testing.assert_array_equal(lax.le_to_p.bind(x, y), np.triu(np.ones((8, 8))) > 0)
    np.testing.assert_array_equal(lax.eq_to_p.bind(x, y), np.eye(8) > 0)


A, G, L, R = (ARRAYS[n] for n in ("A", "g", "L", "R"))
D = lax.RaggedDotDimensionNumbers


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.ragged_dot(L, R, G * 1.0), TypeError, "np.integer"),
    (lambda: lax.ragged_dot(L, R, G[:2]), TypeError, "group dimension size"),
    (lambda: lax.ragged_dot(L, R, G, group_offset=G[:1]), NotImplementedError, "group_offset"),
    (lambda: lax.ragged_dot_general(L, R, G, D((([1], [1]), ([], [])), [], [0])), TypeError,
     "exactly one lhs"),
    (lambda: lax.ragged_dot_general(L, R, G, D((([1], [1]), ([], [])), [0], [])), TypeError,
     "exactly one rhs"),
    (lambda: lax.ragged_dot_general(L, L, G, D((([0], [0]), ([], [])), [0], [1])), TypeError,
     "zero group"),
    (lambda: lax.approx_max_k(A, 9), ValueError, "smaller than the size"),
    (lambda: lax.approx_max_k(A, 0), ValueError, "positive"),
    (lambda: lax.approx_max_k(A.astype(int), 1), ValueError, "floating"),
    (lambda: lax.approx_max_k(A, 1, recall_target=2.0), ValueError, "recall_target"),
    (lambda: lax.rng_bit_generator(ARRAYS["k"], (2,), jnp.int32), TypeError, "unsupported dtype"),
    (lambda: lax.rng_bit_generator(ARRAYS["k"][:2], (2,)), TypeError, "uint32\\[4\\]"),
    (lambda: lax.rng_uniform(0.0, 1, (2,)), ValueError, "identical dtypes"),
    (lambda: lax.after_all(1.0), TypeError, "must be tokens"),
    (lambda: lax.psend(1.0, "i", []), NotImplementedError, "ppermute"),
    (lambda: nj.vmap(lambda x: lax.pcast(x, "i", to="foo"), axis_name="i")(A), ValueError, "`to`"),
    (lambda: nj.vmap(lambda x: lax.all_gather(x, "i", to="foo"), axis_name="i")(A), ValueError,
     "`to`"),
    (lambda: lax.dot(A, A.T, precision="ANY_F8_ANY_F8_F32"), ValueError, "not supported"),
    (lambda: lax.dot(A, A.T, precision="foo"), ValueError, "Precision argument"),
    (lambda: lax.scaled_dot(A, A.T, lhs_scale=A[:, :3]), TypeError, "divisible"),
    (lambda: nj.jit(lax.composite(lambda x, k: x * k, "f"))(3.0, k=2.0),
     nj.errors.UnexpectedTracerError, "attribute 'k'"),
    (lambda: lax.conv_general_dilated_local(
        ARRAYS["N"], ARRAYS["W"][:1], (2, 2), "VALID", (2, 3),
        dimension_numbers=("NHWC", "HWIO", "NHWC")), TypeError, "positions"),
])
def test_messages(call, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        call()
