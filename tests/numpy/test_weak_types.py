"""Which functions keep the weak type of what was made of Python numbers, beside JAX's answers.

Of numbers (no axes) and of arrays it is not always the same.
"""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, nn

WEAK = {2: lax.full((2,), 2), 0.5: lax.full((2,), 0.5), 1j: lax.full((2,), 1j)}

# Function -> operands (a number, or the array of it) with weak results; of others they are strong.
KEPT = {
    "rint": ["0.5", "[0.5]", "1j", "[1j]"],
    "angle": ["[0.5]", "1j", "[1j]"],
    "isinf": [], "isposinf": [], "isneginf": [], "signbit": [], "spacing": [], "diagflat": [],
    "isnan": ["0.5", "[0.5]", "2", "[2]", "1j", "[1j]"],
    "logical_not": ["0.5", "2", "1j"],
    "iscomplex": ["0.5", "2", "1j"],
    "sinc": ["0.5", "2", "1j"], "deg2rad": ["0.5", "2", "1j"], "rad2deg": ["0.5", "2", "1j"],
    "sort_complex": [],
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_weak_types(name):
    function, found = getattr(jnp, name), []
    for number, array in WEAK.items():
        for text, x in ((str(number), number), (f"[{number}]", array)):
            try:
                out = function(x)
            except ValueError:  # of complex numbers, or of none without axes
                continue
            assert nj.eval_shape(function, x).weak_type == out.weak_type
            found += [text] * out.weak_type
    assert sorted(found) == sorted(KEPT[name])


def test_booleans_are_never_weak():
    for function in (jnp.iscomplex, jnp.isreal, jnp.isnan, jnp.logical_not):
        assert not function(True).weak_type


FLOATS, INTEGERS, HALVES = WEAK[0.5], lax.full((2,), 1), jnp.ones(2, "float16")
INT16, MATRIX = jnp.array([1, 2], "int16"), lax.full((2, 2), 0.5)
MIXED = {  # of weak operands beside others: whether the result is weak
    "matmul": (lambda: jnp.matmul(FLOATS, INT16), True),
    "dot": (lambda: jnp.dot(INT16, FLOATS), True),
    "vecdot": (lambda: jnp.vecdot(FLOATS, INT16), True),
    "linalg.matmul": (lambda: jnp.linalg.matmul(WEAK[1j], INT16[:, None]), True),
    "matmul of floats": (lambda: jnp.matmul(FLOATS, jnp.ones(2)), False),
    "matmul of integers": (lambda: jnp.matmul(INTEGERS, INT16), False),
    "convolve": (lambda: jnp.convolve(INT16, FLOATS), True),
    "convolve of weak ones": (lambda: jnp.convolve(INTEGERS, INTEGERS), True),
    "convolve with floats": (lambda: jnp.convolve(FLOATS, jnp.ones(2)), False),
    "polymul": (lambda: jnp.polymul(INT16, FLOATS), True),
    "interp": (lambda: jnp.interp(0.5, INT16, INT16), False),
    "interp of weak ones": (lambda: jnp.interp(FLOATS, FLOATS, FLOATS), True),
    "gradient by a float": (lambda: jnp.gradient(INT16, 0.5), True),
    "gradient by an integer": (lambda: jnp.gradient(INT16, 2), False),
    "gradient by an array": (lambda: jnp.gradient(INT16, jnp.float32(2)), False),
    "gradient": (lambda: jnp.gradient(INT16), False),
    "diagonal": (lambda: jnp.diagonal(MATRIX), False),
    "diagonal of nothing": (lambda: jnp.diagonal(MATRIX, 2), True),
    "diag of a vector": (lambda: jnp.diag(FLOATS), True),
    "tril": (lambda: jnp.tril(MATRIX), True),
    "triu of others": (lambda: jnp.triu(jnp.ones((2, 2))), False),
    "triu": (lambda: jnp.triu(MATRIX, 1), True),
    "insert": (lambda: jnp.insert(FLOATS, 0, jnp.float32(2)), True),
    "resize to nothing": (lambda: jnp.resize(FLOATS, (0,)), True),
    "resize of others": (lambda: jnp.resize(INT16, (0,)), False),
    "insert into others": (lambda: jnp.insert(INT16, 0, 2.0), False),
    "argpartition": (lambda: jnp.argpartition(FLOATS, 0), True),
    "argpartition of others": (lambda: jnp.argpartition(INT16, 0), False),
    "unravel_index": (lambda: jnp.unravel_index(jnp.array(3, "int8"), (2, 2))[0], False),
    "unravel_index of weak ones": (lambda: jnp.unravel_index(INTEGERS, (2, 2))[1], True),
    "unravel_index of a number": (lambda: jnp.unravel_index(3, (2, 2))[0], True),
    "fiedler": (lambda: nj.scipy.linalg.fiedler(FLOATS), True),
    "fiedler_companion": (lambda: nj.scipy.linalg.fiedler_companion(FLOATS), True),
    "fiedler_companion of three": (lambda: nj.scipy.linalg.fiedler_companion(
        lax.full((3,), 0.5)), False),
    "reduce_and": (lambda: lax.reduce_and(INTEGERS, (0,)), False),
    "reduce_or": (lambda: lax.reduce_or(INTEGERS, (0,)), False),
    "reduce_xor over nothing": (lambda: lax.reduce_xor(INTEGERS, ()), False),
    "reduce_max": (lambda: lax.reduce_max(INTEGERS, (0,)), True),
    "reduce_max over nothing": (lambda: lax.reduce_max(INTEGERS, ()), True),
}


@pytest.mark.parametrize("name", MIXED)
def test_weak_types_beside_others(name):
    function, weak = MIXED[name]
    assert function().weak_type is nj.eval_shape(function).weak_type is weak


def two(x):
    return lax.broadcast(x, (2,))


ONES = jnp.ones(2)
GRADIENTS = {  # of a number, whose result is pulled back by a strong one: whether they are weak
    "igamma in a": (lambda x: lax.igamma(x, ONES), True),
    "igammac in x": (lambda x: lax.igammac(ONES, x), True),
    "betainc": (lambda x: lax.betainc(ONES, ONES, x), True),
    "polygamma": (lambda x: lax.polygamma(ONES, x), True),
    "pow of an array": (lambda x: lax.pow(ONES, x), False),
    "mul": (lambda x: lax.mul(x, ONES), False),
    "dot of a number": (lambda x: jnp.dot(x, ONES), False),
    "dot": (lambda x: jnp.dot(two(x), ONES), False),
    "dot of weak ones": (lambda x: lax.dot(two(x), two(0.5)), False),
    "dot of two dtypes": (lambda x: jnp.dot(two(x), HALVES), True),
    "dot of a given dtype": (lambda x: lax.dot(
        two(x), HALVES, preferred_element_type=jnp.float32), False),
    "tensordot": (lambda x: jnp.tensordot(x, ONES, 0), False),
    "logsumexp": (lambda x: nj.nn.logsumexp(two(x)), False),
    "logsumexp in b": (lambda x: nj.nn.logsumexp(0.5, b=x), False),
    "logsumexp in b beside others": (lambda x: nj.nn.logsumexp(ONES, b=x), True),
    "median": (lambda x: jnp.median(two(x)), False),
    "quantile": (lambda x: jnp.quantile(two(x), 0.3, method="lower"), False),
    "quantile in q": (lambda x: jnp.quantile(ONES, x), False),
    "nanpercentile": (lambda x: jnp.nanpercentile(two(x), 30), False),
    "nansum": (lambda x: jnp.nansum(two(x)), True),
    "hypot": (lambda x: jnp.hypot(x, jnp.array([1, 2])), False),
    "logaddexp2": (lambda x: jnp.logaddexp2(x, jnp.array([True, False])), False),
    "deg2rad": (lambda x: jnp.deg2rad(two(x)), False),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_weak_types_of_gradients(name):
    function, weak = GRADIENTS[name]

    def pulled(x):
        out, pull = nj.vjp(function, x)
        return pull(jnp.ones(out.shape, out.dtype))[0]

    assert pulled(0.5).weak_type is nj.jit(pulled)(0.5).weak_type is weak


def test_products_join_strong_types():
    for x, y, dtype, weak in (
        (two(0.5), HALVES, "float32", False), (two(1), HALVES, "float16", False),
        (jnp.ones(2, "int8"), two(1), "int32", False), (two(0.5), two(0.5), "float32", True),
    ):
        for out in (lax.dot(x, y), nj.jit(lax.dot)(x, y)):
            assert (out.dtype, out.weak_type) == (dtype, weak)


def test_weak_types_of_running_sums_and_sets():
    assert jnp.nancumsum(2.0, axis=0).tolist() == [2] and jnp.nancumprod(2.0, -1).tolist() == [2]
    some = jnp.setdiff1d(INTEGERS, lax.full((2,), 3), size=3)
    assert some.weak_type and some.tolist() == [1, 0, 0]
    with nj.disable_jit():
        assert lax.scan(lambda c, x: (c, 2.0), 1.0, ONES)[1].weak_type


def test_carries_that_take_another_dtype_are_not_what_was_given():
    """A weak 0 that the body hands on as float32 comes back as that."""
    for out in (
        lax.scan(lambda c, x: (jnp.float32(c), c), 0, ONES)[0],
        lax.fori_loop(0, 3, lambda i, c: jnp.float32(c), 0),
        lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.float32(c[1])), (0, 0))[1],
    ):
        assert out.dtype == "float32" and not out.weak_type
    assert isinstance(lax.while_loop(lambda c: c < 3, lambda c: c, 5), nj.Array)
    assert lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, 7))[1] == 7


def test_dtypes_of_places_and_polygons():
    with nj.enable_x64(True):
        assert jnp.argpartition(jnp.array([2.0, 1.0]), 0).dtype == "int32"
    assert jnp.interp(2, np.array([1, 3]), HALVES).dtype == "float32"
    assert jnp.interp(HALVES, HALVES, jnp.ones(2)).dtype == "float32"
    with nj.enable_x64(True):
        signs = jnp.array([True, False])
        knots = jnp.atleast_1d(3.5)
        assert jnp.interp(2, knots, jnp.ones(1, "float32")).dtype == "float32"
        assert jnp.interp(1.5, jnp.ones(1, "int8"), jnp.ones(1, bool)).dtype == "float32"
        polygon = jnp.interp(signs, jnp.atleast_1d(2), jnp.atleast_1d(1.5))
        assert (polygon.dtype, polygon.weak_type) == ("float64", True)
    x, points = jnp.array([0.5, 7.0]), jnp.array([0.0, 1.0, 2.0])
    got = jnp.interp(x, points, jnp.array([0, 2j, 1.0]), right=3.0, period=6.0)
    np.testing.assert_allclose(got, [1j, 2j], rtol=1e-6)
    for arguments in ((x + 1j, points, points), (x, points * 1j, points)):
        with pytest.raises(ValueError, match="complex x"):
            jnp.interp(*arguments)


def test_dtypes_of_bins():
    edges, int32 = jnp.array([-2.0, 0.0, 3.0]), jnp.array([1, 2])
    assert jnp.histogram_bin_edges(HALVES, edges).dtype == "float16"
    assert jnp.histogram_bin_edges(int32, HALVES).dtype == "float32"
    for a, weights, dtype in ((HALVES, None, "float16"), (HALVES, jnp.ones(2), "float32"),
                              (jnp.ones(2), HALVES, "float32"), (int32, HALVES, "float16"),
                              (HALVES, int32, "float16"), (int32, int32, "float32")):
        assert {x.dtype.name for x in jnp.histogram(a, edges, weights=weights)} == {dtype}
    counts, (edge,) = jnp.histogramdd(HALVES[:, None], 3, weights=jnp.ones(2))
    assert counts.dtype == edge.dtype == "float32"
    assert jnp.gradient(INT16, jnp.float16(2)).dtype == "float16"


def test_refusals_as_in_jax():
    x = jnp.array([[1, 2, 3]])
    for condition, axis, size in (([True, False], None, 3), ([True] * 2, 0, 2), ([True], 1, -1)):
        with pytest.raises(ValueError, match="size must be positive"):
            jnp.compress(jnp.array(condition), x, axis, size=size)
    assert jnp.compress(jnp.array([True, False]), x, 1, size=1).shape == (1, 1)
    with pytest.raises(ValueError, match="empty"):
        lax.argmax(jnp.zeros((0, 2)), 0, jnp.float32)
    with pytest.raises(ValueError, match="strict"), nj.numpy_dtype_promotion("strict"):
        nj.nn.relu(True)
    assert lax.broadcast_to_rank(jnp.zeros((2, 3)), 1).shape == (2, 3)
    with nj.numpy_rank_promotion("raise"):
        nj.grad(lambda x: jnp.linalg.det(x).sum())(jnp.broadcast_to(jnp.eye(4), (3, 4, 4)))
    drawn = nj.random.weibull_min(nj.random.key(0), jnp.array([1.0, 2.0]), 2.0)
    assert drawn.shape == (2,) and drawn[1] == 2 * drawn[0]
    assert nj.jit(jnp.roots)(jnp.array([2.0])).shape == (0,)


def test_permutations_of_complex_matrices_are_real():
    p, low, _ = nj.scipy.linalg.lu(jnp.array([[1j, 2.0], [3.0, 1.0]]))
    assert p.dtype == "float32" and low.dtype == "complex64"


def test_hessenberg_forms_of_one_row_ask_lapack_nothing(capfd):
    h, q = nj.scipy.linalg.hessenberg(jnp.array([[1j]]), calc_q=True)
    assert h[0, 0] == 1j and q[0, 0] == 1 and "illegal" not in "".join(capfd.readouterr())


# ------------------------------------------------------------------ linear algebra and others
_linalg, _core = jnp.linalg, lax.linalg
_ROW = MATRIX[0]
DECOMPOSED = {  # of weak operands: which results are weak, as in JAX
    "cholesky": (lambda: _linalg.cholesky(MATRIX), [True]),
    "det of 2 by 2": (lambda: _linalg.det(MATRIX), [True]),
    "det of 5 by 5": (lambda: _linalg.det(lax.full((5, 5), 0.5)), [False]),
    "slogdet": (lambda: _linalg.slogdet(MATRIX), [True, True]),
    "eigh": (lambda: _linalg.eigh(MATRIX), [True, True]),
    "eigvals of integers": (lambda: _linalg.eigvals(lax.full((2, 2), 2)), [True]),
    "svd": (lambda: _linalg.svd(MATRIX), [True, True, True]),
    "qr": (lambda: _linalg.qr(MATRIX), [True, True]),
    "solve": (lambda: _linalg.solve(MATRIX, _ROW), [True]),
    "solve of strong": (lambda: _linalg.solve(MATRIX, jnp.ones(2)), [False]),
    "inv": (lambda: _linalg.inv(MATRIX), [False]),
    "cond": (lambda: _linalg.cond(MATRIX), [True]),
    "lstsq": (lambda: _linalg.lstsq(MATRIX, _ROW), [False, False, False, True]),
    "lu": (lambda: _core.lu(MATRIX), [True, True, True]),
    "triangular_solve": (lambda: _core.triangular_solve(MATRIX, MATRIX, left_side=True), [True]),
    "tridiagonal": (lambda: _core.tridiagonal(MATRIX), [True] * 4),
    "schur": (lambda: nj.scipy.linalg.schur(MATRIX), [True, True]),
    "polar": (lambda: nj.scipy.linalg.polar(MATRIX), [False, False]),
    "cho_factor": (lambda: nj.scipy.linalg.cho_factor(MATRIX)[0], [True]),
    "custom_linear_solve": (
        lambda: lax.custom_linear_solve(lambda v: 2 * v, 4.0, lambda matvec, b: b / 2), [True]),
    "associative_scan": (lambda: lax.associative_scan(jnp.add, WEAK[0.5]), [False]),
    "associative_scan of one": (lambda: lax.associative_scan(jnp.add, WEAK[0.5][:1]), [True]),
    "round to tenths": (lambda: [jnp.round(WEAK[0.5], 1), jnp.round(0.55, 1)], [False, True]),
    "diagonal": (lambda: jnp.diagonal(lax.full((2, 2), 0.5), 1), [True]),
    "gradient of diagonal": (
        lambda: nj.grad(lambda x: jnp.diagonal(x, 1).sum())(lax.full((2, 2), 0.5)), [False]),
    "einsum of one": (lambda: jnp.einsum("ij->i", lax.full((2, 2), 0.5)), [True]),
    "einsum of two": (lambda: jnp.einsum("i,i->", WEAK[0.5], WEAK[0.5]), [True]),
    "complex logaddexp": (
        lambda: [jnp.logaddexp(WEAK[1j], 0), jnp.logaddexp(1j, 0)], [False, True]),
    "vander": (lambda: jnp.vander(WEAK[0.5]), [False]),
    "trim_zeros": (lambda: jnp.trim_zeros(WEAK[0.5]), [True]),
    "place": (lambda: jnp.place(WEAK[0.5], WEAK[0.5] > 0, jnp.ones(1), inplace=False), [True]),
    "transposed sum": (lambda: nj.linear_transpose(jnp.sum, jnp.ones(3))(1.0), [True]),
    "transposed sum of strong": (
        lambda: nj.linear_transpose(jnp.sum, jnp.ones(3))(jnp.float32(1)), [False]),
    **{
        f"pad by {mode}": (lambda mode=mode: jnp.pad(WEAK[0.5], 1, mode), [True])
        for mode in ("maximum", "minimum", "mean", "median", "linear_ramp", "edge", "wrap")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DECOMPOSED)
def test_results_of_weak_arrays(name):
    function, want = DECOMPOSED[name]
    for run in (function, nj.jit(function)) if name != "trim_zeros" else (function,):
        assert [x.weak_type for x in nj.tree.leaves(run())] == want


@pytest.mark.parametrize("lower, upper, weak", [
    (0, 3, True), (0, np.int32(3), True), (np.int32(0), 3, False), (0, np.int8(3), False),
])  # fmt: skip
def test_the_number_of_a_round_is_weak_where_the_first_is(lower, upper, weak):
    """While the end is traced; `fori_loop` of known ends counts like Python."""
    loop = nj.jit(lambda n: lax.fori_loop(lower, n, lambda i, c: (i, c[1] + i), (lower, 0)))
    last, total = loop(upper)
    assert (int(last), int(total)) == (2, 3)
    assert last.weak_type == total.weak_type == weak


@pytest.mark.parametrize("function", [jnp.log2, jnp.log10])
def test_gradients_of_scaled_logarithms_are_strong(function):
    assert not nj.grad(function)(0.7).weak_type and not function(0.7).weak_type


@pytest.mark.parametrize("function", [lambda v: v**1.5, lambda v: 1.5**v, nj.nn.relu])
def test_jacobians_are_weak_where_values_are(function):
    assert nj.jacfwd(function)(0.7).weak_type


def test_sums_with_numbers_have_tangents_that_are_arrays():
    for function in (lambda v: v + 1.5, lambda v: 2 - (1 - v)):
        assert nj.jvp(function, (0.7,), (1.0,))[1].weak_type
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'nextafter'"):
        nj.grad(lambda v: jnp.nextafter(v, 1.0))(0.7)


def test_examples_that_choose_branches_of_both_kinds_are_strong():
    strong = lambda: jnp.float32(2)
    choose = lambda *branches: nj.vmap(lambda i: lax.switch(i, branches))(np.array([0, 1]))
    assert not choose(lambda: 1.0, strong).weak_type
    assert not choose(strong, lambda: 1.0).weak_type
    assert not choose(lambda: 1.0, lambda: 3.0, strong).weak_type
    assert choose(lambda: 1.0, lambda: 3.0).weak_type
    assert nj.vmap(lambda x: lax.cond(True, strong, lambda: 1.0))(np.ones(2)).weak_type


@nj.custom_vjp
def scaled(x, by):
    return x * by


scaled.defvjp(lambda x, by: (x * by, (x, by)), lambda kept, ct: (ct * kept[1], ct * kept[0]))


def test_gradients_of_weak_operands_of_loops_and_branches_are_weak():
    """Of a `custom_vjp` function's rule that gives strong ones, too."""
    x = np.float32(3)
    repeated = lambda by: lax.scan(lambda c, _: (scaled(c, by), None), x, None, 2)[0]
    mapped = lambda by: lax.map(lambda row: scaled(row, by), np.ones(2, np.float32)).sum()
    chosen = lambda by: lax.cond(x > 0, lambda: scaled(x, by), lambda: x)
    for fun, slope in ((repeated, 12), (mapped, 2), (chosen, 3)):
        found = nj.grad(fun)(2.0)
        assert found.weak_type and found == slope
        assert not nj.grad(fun)(np.float32(2)).weak_type
    assert not nj.grad(lambda by: scaled(x, by))(2.0).weak_type


def test_arrays_made_of_objects_are_strong():
    class Holds:
        def __jax_array__(self):
            return jnp.asarray(2.0)

    assert not jnp.asarray(Holds()).weak_type and not jnp.array(Holds()).weak_type
    assert jnp.asarray(2.0).weak_type


def test_tangents_of_relu_are_weak_where_its_operand_is():
    rows = jnp.asarray(0.5) * jnp.asarray(np.array([1, -2]))
    for x, weak in ((1.5, True), (np.float32(1.5), False), (rows, True)):
        slope = nj.grad(lambda x: nn.relu(x).sum())
        assert slope(x).weak_type is nj.jit(slope)(x).weak_type is weak
        assert nj.jvp(nn.relu, (x,), (x,))[1].weak_type is weak
