"""What wrong arguments raise, and answers at edges, as JAX gave them."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import grad, lax, nn

V, X = jnp.array([1.0, 2.0, 3.0]), jnp.ones((2, 3))
NAN, INF = float("nan"), float("inf")

REFUSED = [
    (lambda: jnp.average(X, weights=jnp.ones(2)), ValueError, "Axis must be specified"),
    (lambda: jnp.var(jnp.array([1 + 1j]), dtype=jnp.float32), ValueError, "real dtype"),
    (lambda: jnp.isin(V, V, method="other"), ValueError, "not implemented; options are"),
    (lambda: jnp.nonzero(X, size=5, fill_value=(9, 8, 7)), ValueError, "one entry for each"),
    (lambda: jnp.place(V, V > 1, jnp.array([]), inplace=False), ValueError, "empty array"),
    (lambda: jnp.fill_diagonal(X, 5), NotImplementedError, "immutable"),
    (
        lambda: jnp.fill_diagonal(jnp.zeros((2, 3, 2)), 5, inplace=False),
        ValueError,
        "All dimensions of input must be of equal length",
    ),
    (lambda: jnp.repeat(V, -1), TypeError, "nonnegative"),
    (lambda: jnp.repeat(V, jnp.array([1, -1, 2])), TypeError, "nonnegative"),
    (lambda: jnp.resize(V, (-1,)), ValueError, "must be non-negative"),
    (lambda: jnp.delete(V, 7), ValueError, "out of bounds"),
    (lambda: jnp.delete(V, -4), ValueError, "out of bounds"),
    (lambda: jnp.copysign(jnp.array([1j]), 2.0), TypeError, "does not support complex"),
    (lambda: jnp.heaviside(jnp.array([1j]), 2.0), TypeError, "does not accept dtype complex64"),
    (lambda: jnp.interp(1.0, V, V, left="other"), ValueError, "the only valid string value"),
    (lambda: jnp.polyint(V, 2, k=V), ValueError, "rank-1 array of length 1 or m"),
    (lambda: jnp.polyfit(V, jnp.ones(2), 1), TypeError, "same length"),
    (lambda: jnp.polyfit(X, V, 1), TypeError, "expected 1D vector for x"),
    (lambda: jnp.polyfit(V, V, 1, w=jnp.ones((3, 1))), TypeError, "1-d array for weights"),
    (lambda: jnp.polyfit(V, V, 1, w=jnp.ones(2)), TypeError, "w and y to have the same length"),
    (lambda: jnp.polyfit(jnp.array([]), V, 1), TypeError, "expected non-empty vector"),
    (lambda: jnp.polyfit(V, jnp.ones((3, 1, 1)), 1), TypeError, "expected 1D or 2D array"),
    (lambda: jnp.polyfit(V, V, -1), ValueError, "deg >= 0"),
    (lambda: jnp.vander(V, -1), ValueError, "nonnegative"),
    (lambda: jnp.matvec(X, jnp.ones(2)), ValueError, "inconsistent size for core dimension"),
    (lambda: jnp.vecmat(V, X), ValueError, "inconsistent size for core dimension"),
    (lambda: jnp.linalg.multi_dot([X, X]), ValueError, "must match first dimension"),
    (lambda: jnp.linalg.multi_dot([X]), ValueError, "at least two arrays"),
    (lambda: jnp.polyint(V, 2, k=[1, 2]), TypeError, "requires ndarray or scalar"),
    (lambda: jnp.ix_([1], V), TypeError, "requires ndarray or scalar"),
    (lambda: jnp.full((2,), [1, 2]), TypeError, "requires ndarray or scalar"),
    (lambda: jnp.hamming(-1), TypeError, "must not be negative"),
    (lambda: nj.random.categorical(nj.random.key(0), V > 1), ValueError, "must be floats"),
    (lambda: jnp.fft.fft(X, axis=(0, 1)), ValueError, "does not support multiple axes"),
    (lambda: jnp.fft.rfft2(X, axes=(0,)), ValueError, "only supports 2 axes"),
    (lambda: lax.full((-1,), 3), TypeError, "nonnegative"),
    (lambda: lax.iota(jnp.int32, -1), TypeError, "nonnegative"),
    (lambda: lax.broadcast(V, (-1,)), TypeError, "nonnegative"),
    (lambda: lax.rev(X, (0, 0)), TypeError, "must be unique"),
    (lambda: lax.rev(X, (2,)), TypeError, "less than operand ndim"),
    (lambda: lax.pad(V, V, [(0, 0, 0)]), ValueError, "must be a scalar"),
    (
        lambda: nn.dot_product_attention(*[jnp.ones((1, 2, 1, 4))] * 3, implementation="other"),
        ValueError,
        "Unsupported implementation option",
    ),
    (
        lambda: nn.dot_product_attention(
            jnp.ones((1, 2, 4), jnp.float16), *[jnp.ones((1, 2, 4))] * 2
        ),
        ValueError,
        "must have one dtype",
    ),
    (
        lambda: nj.vmap(lambda x: lax.all_gather(x, "i", tiled=True), axis_name="i")(V),
        ValueError,
        "needs an axis",
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_wrong_arguments(case):
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


# The derivative of a power is strongly typed, that with respect to the exponent and the second one
# are weakly typed, like the numbers that they are taken at.
@pytest.mark.parametrize(
    ("function", "first", "second", "tangent"),
    [
        (lambda x: x**0.5, False, True, False),
        (lambda x: jnp.power(x, 1.5), False, True, False),
        (lambda x: 2.0**x, True, True, False),
        (lambda x: x**2, True, True, True),
    ],
    ids=["x**0.5", "power", "2**x", "x**2"],
)
def test_weak_types_of_derivatives_of_powers(function, first, second, tangent):
    assert grad(function)(2.0).weak_type == first
    assert nj.jit(grad(function))(2.0).weak_type == first
    assert grad(nj.jit(function))(2.0).weak_type == first
    assert grad(grad(function))(2.0).weak_type == second
    assert nj.jvp(function, (2.0,), (1.0,))[1].weak_type == tangent


def test_powers_carried_by_loops():
    def run(x):
        return lax.scan(lambda c, _: (c**1.5, None), x, None, length=3)[0]

    assert not grad(run)(2.0).weak_type
    np.testing.assert_allclose(grad(run)(2.0), 1.5**3 * 2.0 ** (1.5**3 - 1), rtol=1e-5)


def test_windows_of_fractional_sizes_have_the_whole_part_of_points():
    for window in (jnp.bartlett, jnp.blackman, jnp.hamming, jnp.hanning):
        np.testing.assert_array_equal(window(3.7), window(3))
    np.testing.assert_array_equal(jnp.kaiser(3.7, 2.0), jnp.kaiser(3, 2.0))


def test_unstable_falling_positions_are_rising_ones_backwards():
    n = jnp.array([3, 1, 2, 3, 1])
    np.testing.assert_array_equal(jnp.argsort(n, descending=True), [0, 3, 2, 1, 4])
    np.testing.assert_array_equal(
        jnp.argsort(n, descending=True, stable=False), [3, 0, 2, 4, 1]
    )


def test_bytes_that_can_change_are_bytes():
    assert jnp.array(bytearray(b"ab")).dtype == jnp.uint8


def test_fmax_and_fmin_choose_one():
    pairs = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (1.0, NAN), (NAN, 1.0), (NAN, NAN)]
    firsts = {jnp.fmax: [0, 0, 1, 1, 0, 1], jnp.fmin: [0, 1, 0, 1, 0, 1]}
    for function, first in firsts.items():
        numpys = getattr(np, function.__name__)
        for (a, b), wanted in zip(pairs, first, strict=True):
            np.testing.assert_array_equal(function(a, b), numpys(a, b))
            got = [float(grad(function, i)(a, b)) for i in (0, 1)]
            assert got == [wanted, 1 - wanted], (function.__name__, a, b)


def test_the_logarithm_of_no_terms_has_no_derivative():
    for function in (jnp.logaddexp, jnp.logaddexp2):
        for run in (function, nj.jit(function)):
            assert float(run(-INF, -INF)) == -INF and float(run(INF, INF)) == INF
            assert np.isnan(grad(run, (0, 1))(-INF, -INF)).all()
            assert np.isnan(run(NAN, -INF)) and np.isnan(run(-INF, NAN))
            assert [float(g) for g in grad(run, (0, 1))(INF, INF)] == [1, 1]
            assert [float(g) for g in grad(run, (0, 1))(-INF, 1.0)] == [0, 1]
            assert [float(g) for g in grad(run, (0, 1))(0.5, 0.5)] == [0.5, 0.5]


def test_what_is_refused_first():
    index, choices = jnp.array([0, 1]), [jnp.ones(2), jnp.ones(2, jnp.int32)]
    with nj.numpy_dtype_promotion("strict"), pytest.raises(nj.errors.ConcretizationTypeError):
        nj.jit(jnp.choose)(index, choices)
    with pytest.raises(ValueError, match="axis 1"):
        jnp.delete(jnp.ones(3), [0, 1], axis=1)
    for repeats in (np.array([1, 2]), np.array([], int)):
        with pytest.raises(ValueError, match="one entry for each of the 3"):
            jnp.repeat(jnp.ones(3), repeats, total_repeat_length=6)


def test_ranks_of_loops_are_refused_where_they_differ():
    stack, matrix, vector = jnp.ones((2, 3, 3)), jnp.ones((3, 3)), jnp.ones(3)
    total = jnp.vectorize(lambda x, y: x.sum() + y, signature="(n),()->()")
    refused = [
        lambda: jnp.vecdot(matrix, vector), lambda: jnp.matvec(stack, vector),
        lambda: jnp.vecmat(vector, stack), lambda: total(vector, vector),
        lambda: total(stack, vector), lambda: jnp.vectorize(jnp.add)(matrix, vector),
    ]
    for call in refused:
        with nj.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="require rank"):
            call()
        with nj.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="require rank"):
            call()
        call()
    with nj.numpy_rank_promotion("raise"):
        whole = jnp.ones((3, 3), jnp.int32)
        assert jnp.gcd(whole, whole[0]).shape == jnp.heaviside(matrix, vector).shape == (3, 3)
        assert jnp.array_equiv(matrix, vector) and not jnp.array_equiv(stack, 2 * vector)
        assert jnp.vecdot(vector, vector) == 3 and total(matrix, vector).shape == (3,)
        assert total(matrix, vector[0]).shape == jnp.matvec(matrix, vector).shape == (3,)


def test_spacing_of_half_precision_is_that_to_the_next_larger():
    x = np.array([-1, -0.5, 0.5, -0.0, -65504, 6e-8, -1e-5, INF, -INF], np.float16)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))
    assert jnp.spacing(np.float32(-1)) == np.spacing(np.float32(-1)) < 0


def test_unwrap_of_nothing():
    for shape, axis in (((0,), -1), ((3, 0), -1), ((0, 3), 0)):
        assert jnp.unwrap(jnp.zeros(shape), axis=axis).shape == shape


def test_maxima_of_scatters_leave_others_to_themselves():
    x = jnp.array([1.0, NAN, 0.0])
    index, ones = jnp.array([0, 0]), jnp.ones(2)
    got = grad(lambda x: x.at[index].max(ones).sum())(x)
    np.testing.assert_allclose(got, [1 / 3, 1, 1], rtol=1e-6)
    got = grad(lambda x: x.at[2].min(2.0).sum())(x)
    np.testing.assert_array_equal(got, [1, 1, 1])


def test_celu_at_zero():
    for alpha in (1.0, 2.0):
        def f(x, alpha=alpha):
            return nn.celu(x, alpha)

        assert float(grad(f)(0.0)) == 1
        assert float(grad(grad(f))(0.0)) == 0.25 / alpha
        assert float(grad(grad(f))(1.0)) == 0
    got = nn.celu(jnp.array([-INF, 0.0, 2.0, INF, NAN]))
    np.testing.assert_array_equal(got, np.array([-1, 0, 2, INF, NAN], np.float32))


def test_dtypes():
    cut = nn.relu(jnp.array([True, False]))
    assert cut.dtype == jnp.int32 and cut.weak_type
    made = nn.initializers.constant(3.5)(nj.random.key(0), (2,), jnp.int32)
    assert made.dtype == jnp.int32 and made.tolist() == [3, 3]
    z = jnp.array([1.5 + 2j])
    for convert in (lax.convert_element_type, nj.jit(lax.convert_element_type, static_argnums=1)):
        for dtype, real in ((jnp.float32, 1.5), (jnp.int32, 1)):
            with pytest.warns(np.exceptions.ComplexWarning):
                assert convert(z, dtype).tolist() == [real]
    assert isinstance(jnp.ogrid[0:2, 0:3], list)
    assert jnp.add.nargs == 2
    assert jnp.fft.fftfreq(0).shape == (0,)
    assert jnp.repeat(jnp.zeros(0), jnp.zeros(0, int), total_repeat_length=2).shape == (0,)


def test_divisors_of_the_least_integer_are_positive():
    """Compiled, too: Euclid leaves negative remainders of what has no absolute value."""
    every = np.arange(-128, 128).astype(np.int8)
    x, y = np.meshgrid(every, every)
    for function, reference in ((jnp.gcd, np.gcd), (jnp.lcm, np.lcm)):
        for run in (function, nj.jit(function)):
            np.testing.assert_array_equal(run(x, y), reference(x, y))


def test_more_arguments_that_are_refused():
    b = jnp.array([True, False])
    for f in (jnp.round, jnp.around, lambda x: x.round(), lambda x: round(x[0])):
        with pytest.raises(ValueError, match="booleans"):
            f(b)
    for f in (jnp.partition, jnp.argpartition):
        with pytest.raises(NotImplementedError, match="complex"):
            f(jnp.array([1j, 2]), 0)
        with pytest.raises(TypeError, match="bool"):
            f(b, 0)
    for f in (jnp.sort, jnp.argsort):
        for stable in (None, 1):
            with pytest.raises(TypeError, match="stable"):
                f(V, stable=stable)
    assert type(np.argsort(V)) is np.ndarray
    for f in (jnp.histogram, jnp.histogram_bin_edges):
        with pytest.raises(TypeError, match="list"):
            f(V, bins=[0, 2, 4])
    assert jnp.linspace(0, 3, 3, dtype=jnp.int4).dtype == jnp.int4
    assert jnp.array_repr(V).startswith("ArrayImpl([1., 2., 3.]")


WRONG = [
    (lambda: jnp.delete(V, np.array([7])), IndexError, "out of bounds"),
    (lambda: jnp.polymul([1, 2], V), TypeError, "list"),
    (lambda: jnp.polyfit(jnp.arange(3), V, 1), ValueError, "int32"),
    (lambda: jnp.diagonal(X, axis1=0, axis2=-2), TypeError, "duplicate"),
    (lambda: jnp.moveaxis(X, (0, 0), (0, 1)), TypeError, "duplicate"),
    (lambda: jnp.trace(X, axis1=1, axis2=1), ValueError, "axis1 and axis2"),
    (lambda: jnp.full(2, None), TypeError, "NoneType"),
    (lambda: jnp.ix_(V > 1), NotImplementedError, "booleans"),
    (lambda: jnp.indices(2), TypeError, "not iterable"),
    (lambda: jnp.ravel_multi_index((1.0, 2.0), (2, 3)), ValueError, "int indices"),
    (lambda: jnp.nonzero(V, size=-1), TypeError, "nonnegative"),
    (lambda: X[2**31], OverflowError, "int32"),
    (lambda: X[0, -(2**40)], OverflowError, "int32"),
    (lambda: X.at[2**31].get(), OverflowError, "int32"),
    (lambda: jnp.tri(3, k=2**40), OverflowError, "int32"),
    (lambda: jnp.concatenate([1.0, V[0]]), ValueError, "Zero-dimensional arrays cannot"),
    (lambda: lax.dot_general(X, X, (((), ()), ((0,), (1,)))), TypeError, "rhs batch dimensions to"),
    (lambda: X[range(2)], TypeError, "non-tuple sequence"),
    (lambda: X.at[range(2)].set(0), TypeError, "non-tuple sequence"),
]


@pytest.mark.parametrize("call, error, text", WRONG, ids=map(str, range(len(WRONG))))
def test_arguments_that_jax_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_answers_at_the_edges_of_domains():
    assert jnp.isnan(jnp.geomspace(0, 1, 3)).all() and jnp.isnan(jnp.geomspace(-1, 1, 3)).all()
    assert jnp.geomspace(1, 8, 4)[-1] == 8
    np.testing.assert_allclose(jnp.kaiser(3, V)[1], 1)
    whole, rest = jnp.unravel_index(3.5, (2, 3))
    assert (whole, rest) == (1, 0.5)


def test_integers_beyond_32_bits_choose_a_branch():
    two = [lambda: 1, lambda: 2]
    for index, want in ((2**31, 1), (2**40, 1), (-(2**33), 1), (1, 2)):
        assert lax.switch(index, two) == want
    assert lax.cond(2**31, *two) == lax.cond(-(2**70), *two) == 1
    assert lax.dynamic_slice(V, (1,), 1) == V[1]
    assert (lax.broadcast_in_dim(V, (5,), ()) == V).all()
    for call in (lambda: lax.reduce_sum(V > 1, (0,)), lambda: lax.dynamic_slice(V, (True,), (1,))):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("other", ["uint4", "float8_e5m2", "float8_e4m3fn"])
@pytest.mark.parametrize("compiled", [False, True])
def test_products_to_an_asked_dtype_need_no_common_one(other, compiled):
    # int4 joins with none of these; where the result's dtype is given it need not.
    x, y = jnp.array([[1, 2], [-3, 4]], "int4"), jnp.array([[2, 0], [1, 3]], other)
    for product in (jnp.dot, jnp.matmul):
        def fun(x, y, product=product):
            return product(x, y, preferred_element_type="float32")

        got = (nj.jit(fun) if compiled else fun)(x, y)
        assert got.dtype == jnp.float32
        np.testing.assert_array_equal(got, [[4, 6], [-2, 12]])


def test_fractional_parts_have_no_sign_where_there_is_none():
    rest, whole = jnp.modf(jnp.array([-2.5, -2.0, INF]))
    assert rest.tolist() == [-0.5, 0, 0] and not jnp.signbit(rest[1:]).any() and whole[2] == INF


MORE_WRONG = [
    (lambda: jnp.broadcast_to(X, (-1, 3)), ValueError, "Incompatible"),
    (lambda: nj.random.key(0).astype(int), NotImplementedError, "key_data"),
    (lambda: nn.softmax(V > 1), TypeError, "bool"),
    (lambda: nn.log_softmax(V > 1), TypeError, "bool"),
    (lambda: nn.one_hot(V > 1, 2), TypeError, "bool"),
    (lambda: nn.one_hot(None, 2), ValueError, "None"),
    (
        lambda: nn.dot_product_attention(*[jnp.ones((2, 1, 4))] * 2, jnp.ones((2, 1, 5))),
        ValueError,
        "shapes do not fit",
    ),
    (lambda: lax.associative_scan(lax.add, 3.0), AttributeError, "ndim"),
    (lambda: lax.associative_scan(lax.add, []), IndexError, "at least one"),
    (lambda: nj.image.resize(X, 2, "linear"), ValueError, "one size for each axis"),
    (lambda: nj.image.resize([1.0, 2.0], (4,), "linear"), AttributeError, "ndim"),
    (lambda: jnp.fft.fftfreq(4, [1]), ValueError, "single value"),
    (lambda: nj.scipy.linalg.block_diag([1], X), TypeError, "list"),
    (lambda: nj.scipy.linalg.circulant([1, 2]), TypeError, "list"),
    (lambda: nj.scipy.linalg.hilbert(2.0), TypeError, "float"),
    (lambda: nj.scipy.linalg.hilbert(-1), TypeError, "nonnegative"),
    (lambda: nj.scipy.linalg.polar(X), NotImplementedError, "svd"),
    (lambda: nj.scipy.linalg.polar(V), ValueError, "2-D"),
]


@pytest.mark.parametrize("call, error, text", MORE_WRONG, ids=map(str, range(len(MORE_WRONG))))
def test_more_arguments_that_jax_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()
    assert jnp.fft.fftfreq(4.0).shape == (4,) and jnp.fft.fftfreq(-1).shape == (0,)
    assert nj.scipy.linalg.polar(X, method="svd")[0].shape == (2, 3)


def test_einsum_has_the_asked_dtype():
    x = jnp.array([[100, 100, 100], [-100, 90, 3]], "int8")
    cases = [
        ("ij->ji", (x,), "float16"), ("ii->i", (x[:, :2],), "float32"), ("ij->i", (x,), "int32"),
        ("i,j->ij", (x[0], x[1]), "int32"), ("i,i->i", (x[0], x[1]), "int16"),
        ("ij,kj->", (x, x), "int32"), ("ij,kj,k->i", (x, x, x[:, 0]), "float32"),
        (",", (x[0, 0], x[0, 1]), "int32"), ("ij->i", (x > 0,), "int32"),
        ("ij,jk->ik", (x.astype("int4"), x.T.astype("float8_e5m2")), "float32"),
    ]  # fmt: skip
    for subscripts, operands, dtype in cases:
        def fun(*operands, subscripts=subscripts, dtype=dtype):
            return jnp.einsum(subscripts, *operands, preferred_element_type=dtype)

        want = np.einsum(subscripts, *[np.asarray(v).astype("float64") for v in operands])
        for got in (fun(*operands), nj.jit(fun)(*operands)):
            assert got.dtype == dtype and not got.weak_type
            np.testing.assert_allclose(np.asarray(got).astype("float64"), want, rtol=1e-3)
