"""Shapes, joins, splits, padding, creation, sorting, sets, index helpers: against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy_differential import B, C, F, G, I, J, S, V, W, agree

import numjet
import numjet as nj
import numjet.numpy as jnp

OF_ONE = [
    ("reshape", (4, 3)),
    ("transpose",),
    ("swapaxes", 0, 1),
    ("moveaxis", 0, 1),
    ("expand_dims", 1),
    ("expand_dims", (0, 3)),
    ("flip",),
    ("flip", 1),
    ("fliplr",),
    ("flipud",),
    ("rot90",),
    ("rot90", 2),
    ("rot90", 3),
    ("roll", 2),
    ("roll", 1, 0),
    ("roll", (1, 2), (0, 1)),
    ("repeat", 2),
    ("repeat", 2, 1),
    ("repeat", np.array([1, 0, 2]), 0),
    ("tile", (2, 3)),
    ("tile", 2),
    ("tile", (2, 1, 2)),
    ("broadcast_to", (2, 3, 4)),
    ("atleast_3d",),
    ("atleast_2d",),
    ("resize", (2, 7)),
    ("squeeze",),
    ("diagonal",),
    ("diagonal", 1),
    ("diagonal", -1),
    ("trace",),
    ("trace", 1),
    ("tril",),
    ("triu", 1),
    ("sort",),
    ("sort", 0),
    ("sort", None),
    ("argsort",),
    ("argsort", 0),
    ("split", 2, 1),
    ("split", [1, 3], 1),
    ("array_split", 3, 1),
    ("hsplit", 2),
    ("vsplit", 3),
    ("rollaxis", 1),
    ("diff",),
    ("diff", 2),
    ("ediff1d",),
    ("gradient",),
    ("nonzero",),
    ("argwhere",),
    ("flatnonzero",),
    ("unique",),
    ("append", 1.0),
    ("delete", 1, 0),
    ("delete", np.array([0, 2]), 1),
    ("delete", slice(1, 3), 1),
    ("insert", 1, 5.0),
    ("insert", 1, np.arange(4.0, dtype=np.float32), 0),
    ("insert", np.array([1, 2]), np.array([[9], [8]], np.float32), 0),
    ("vander", 3),
    ("diag",),
    ("diagflat",),
    ("diagflat", -1),
    ("take", np.array([1, 2])),
    ("take", np.array([1, -1]), 1),
    ("trim_zeros",),
    ("ravel",),
    ("copy",),
    ("trapezoid",),
    ("unwrap",),
    ("cumsum", 1),
    ("sort_complex",),
    ("interp", S, V),
]


@pytest.mark.parametrize("case", OF_ONE, ids=lambda c: "-".join(map(str, c))[:40])
def test_functions_of_one_array(case):
    name, *args = case
    x = V if name in ("vander", "trim_zeros") else F.ravel() if name == "interp" else F
    agree(name, x, *args, reference=_argsort if name == "argsort" else None)


def _argsort(x, axis=-1):
    return np.argsort(x, axis, kind="stable")


@pytest.mark.parametrize(
    "mode",
    ["edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "linear_ramp", "median"],
)
@pytest.mark.parametrize("width", [1, ((1, 2), (2, 1)), ((0, 5), (7, 0)), ((2, 9), (40, 1))])
def test_padding(mode, width):
    agree("pad", F, width, mode, tol=1e-4)


@pytest.mark.parametrize("n", [1, 16, 17, 60])
@pytest.mark.parametrize("mapped", [False, True])
def test_counts_known_at_run_time_repeat_as_those_known_before(n: int, mapped: bool) -> None:
    rng = np.random.default_rng(n)
    x, counts = rng.normal(size=(2, n)).astype(np.float32), rng.integers(0, 4, (2, n))
    counts[:, -1] = 2
    for length in (0, 5, int(counts[0].sum()), int(counts.sum()) + 7):
        run = numjet.jit(lambda x, c, n=length: jnp.repeat(x, c, total_repeat_length=n))
        got = numjet.vmap(run)(x, counts) if mapped else [run(*pair) for pair in zip(x, counts)]
        for row, repeated in zip(got, map(np.repeat, x, counts)):
            want = np.pad(repeated, (0, max(length - len(repeated), 0)), mode="edge")[:length]
            np.testing.assert_array_equal(row, want)



def test_few_repeated_elements_are_joined_and_many_are_gathered():
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        assert "gather" not in str(numjet.jit(lambda x, m=mode: jnp.pad(x, 3, m)).trace(F).program)
    assert "gather" in str(numjet.jit(lambda x: jnp.pad(x, 300, "reflect")).trace(F).program)


def test_padding_with_options():
    agree("pad", F, ((1, 2), (2, 1)), constant_values=((1, 2), (3, 4)))
    agree("pad", F, 2, "reflect", reflect_type="odd")
    agree("pad", F, 5, "symmetric", reflect_type="odd")
    agree("pad", F, 2, "linear_ramp", end_values=((1, 2), (3, 4)))
    agree("pad", F, 2, "mean", stat_length=2)
    np.testing.assert_array_equal(jnp.pad(I, {0: 1, 1: (0, 2)}), np.pad(I, ((1, 1), (0, 2))))
    with pytest.raises(ValueError, match="unsupported keyword"):
        jnp.pad(F, 1, end_values=3)


@pytest.mark.parametrize(
    "name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]
)
def test_joining(name):
    agree(name, [F, G])
    agree(name, [F, I])
    if name != "concatenate":
        agree(name, [V, W])


def test_joining_elsewhere():
    agree("concatenate", [F, G], axis=1)
    agree("concatenate", [F, G], axis=None)
    agree("stack", [F, G], axis=-1)
    got = jnp.block([[jnp.asarray(F), jnp.asarray(G)], [jnp.asarray(G), jnp.asarray(F)]])
    np.testing.assert_array_equal(got, np.block([[F, G], [G, F]]))
    with pytest.raises(ValueError, match="does not allow empty list"):
        jnp.block([])
    np.testing.assert_array_equal(jnp.array([jnp.float32(1), 2.0, jnp.arange(2)[1]]), [1, 2, 1])
    np.testing.assert_array_equal(
        numjet.jit(lambda x: jnp.array([x, [1.0, 2.0]]))(V[:2]), [V[:2], [1, 2]]
    )


CREATED = [
    ("eye", 3),
    ("eye", 3, 4, 1),
    ("eye", 3, 4, -1),
    ("tri", 3, 4, 1),
    ("identity", 3),
    ("linspace", 0.0, 1.0, 7),
    ("linspace", 0.0, 1.0, 7, False),
    ("linspace", 2, 8, 1),
    ("linspace", 0, 10, 5),
    ("logspace", 0.0, 2.0, 5),
    ("geomspace", 1.0, 100.0, 5),
    ("arange", 5),
    ("arange", 3, 10, 2),
    ("arange", 0.0, 1.0, 0.3),
    ("arange", 5, 0, -1),
    ("arange", 3, 0),
    ("full", (2, 3), 2.5),
    ("zeros", 3),
    ("ones", (2, 0)),
    ("meshgrid", V, W),
    ("indices", (2, 3)),
    ("tril_indices", 4, 1),
    ("triu_indices", 4),
    ("diag_indices", 3),
    ("unravel_index", np.array([1, 5, 7]), (3, 4)),
    ("bartlett", 5),
    ("hamming", 4),
    ("hanning", 5),
    ("blackman", 5),
    ("kaiser", 5, 2.0),
    ("ravel_multi_index", [np.array([0, 1]), np.array([2, 3])], (3, 4)),
]


@pytest.mark.parametrize("case", CREATED, ids=lambda c: "-".join(map(str, c))[:40])
def test_creation(case):
    name, *args = case
    agree(name, *args)


@pytest.mark.parametrize("name", ["arange", "linspace", "eye", "tri", "zeros"])
def test_creation_while_tracing(name):
    args = {
        "arange": (2, 9, 3),
        "linspace": (0.0, 2.0, 5),
        "eye": (3, 4, 1),
        "tri": (3, 3, -1),
        "zeros": ((2, 3),),
    }[name]
    f = getattr(jnp, name)
    np.testing.assert_allclose(
        numjet.jit(lambda x: f(*args) + x)(0.0), getattr(np, name)(*args), rtol=1e-6
    )


def test_values_and_dtypes():
    assert jnp.array([1, 2.5]).dtype == jnp.float32 and jnp.array([]).dtype == jnp.float32
    assert jnp.array(1.0).weak_type and not jnp.array([1.0]).weak_type
    assert jnp.asarray(np.arange(3)).dtype == jnp.int32 and jnp.array([True]).dtype == bool
    assert jnp.full((2,), 1).weak_type and jnp.zeros_like(True).dtype == bool
    assert jnp.float32(3).dtype == np.float32 and jnp.float32 == np.float32
    assert np.dtype(jnp.bfloat16) == jnp.zeros(1, jnp.bfloat16).dtype
    assert jnp.issubdtype(nj.dtypes.float0, np.void) and not jnp.issubdtype(jnp.bfloat16, np.void)
    assert isinstance(jnp.int32(1), jnp.ndarray) and jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert jnp.result_type(jnp.int32(1), 1.0) == jnp.float32
    for wrong in ("S1", object, "U", "datetime64[s]"):
        with pytest.raises(TypeError, match="not a valid dtype"):
            jnp.result_type(np.dtype(wrong), 1)
    assert jnp.promote_types("int32", "float16") == jnp.float16
    with pytest.warns(UserWarning, match="float64"):
        assert jnp.zeros(3, jnp.float64).dtype == jnp.float32
    with numjet.enable_x64(True):
        assert jnp.zeros(3).dtype == np.float64 and jnp.arange(3).dtype == np.int64
        x = jnp.arange(4, dtype="float32")
        assert jnp.searchsorted(x, 2.5).dtype == jnp.digitize(x, x).dtype == np.int32
        assert jnp.quantile(x, jnp.array([0.5])).dtype == np.float32  # that of x, whatever q's
        assert jnp.percentile(jnp.arange(4), jnp.float32(50)).dtype == np.float64
    for bad, error in (
        ("a", TypeError),
        (None, ValueError),
        ([[1], [1, 2]], ValueError),
        (2**40, OverflowError),
        ({"a": 1}, TypeError),
    ):
        with pytest.raises(error):
            jnp.array(bad)


def test_sorting_and_sets():
    agree("searchsorted", S, W)
    agree("searchsorted", S, S, side="right")
    agree("digitize", F, S)
    agree("digitize", F, S[::-1].copy(), right=True)
    agree("bincount", J.ravel())
    agree("bincount", J.ravel(), weights=F.ravel(), minlength=9)
    agree("histogram", F.ravel(), 5)
    agree("histogram", F.ravel(), 5, density=True, weights=np.abs(G).ravel())
    agree("histogram2d", V, W, 4)
    assert jnp.histogram2d(V, W, 4)[0].dtype == jnp.int32
    assert jnp.histogram(V, 4, weights=np.arange(V.size))[0].dtype == jnp.float32
    agree("unique", I, return_index=True, return_inverse=True, return_counts=True)
    agree("unique", I % 2, axis=0)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
        agree(name, I, J)
    agree("lexsort", [I.ravel(), J.ravel()])
    agree("lexsort", I)
    assert jnp.lexsort(jnp.array(V)).aval == jnp.lexsort(list(V)).aval
    with pytest.raises(TypeError, match="need sequence of keys"):
        jnp.lexsort(jnp.zeros(0))
    agree("take_along_axis", F, np.argsort(F, 1), axis=1)
    agree("select", [B, ~B], [F, G])
    agree("choose", J % 2, [F, G])
    agree("compress", np.array([True, False, True]), F, axis=0)
    agree("extract", B, F)
    np.testing.assert_array_equal(jnp.sort(F, descending=True), -np.sort(-F))


def test_sizes_under_transformations():
    x = jnp.array([0, 3, 0, 4])
    np.testing.assert_array_equal(numjet.jit(lambda x: jnp.nonzero(x, size=3)[0])(x), [1, 3, 0])
    np.testing.assert_array_equal(
        numjet.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-1)[0])(x), [1, 3, -1]
    )
    np.testing.assert_array_equal(numjet.jit(lambda x: jnp.unique(x, size=4))(x), [0, 3, 4, 0])
    np.testing.assert_array_equal(
        numjet.jit(lambda x: jnp.unique(x, size=2, return_counts=True)[1])(x), [2, 1]
    )
    np.testing.assert_array_equal(
        numjet.jit(lambda x: jnp.bincount(x, length=5))(x), [2, 0, 0, 1, 1]
    )
    np.testing.assert_array_equal(
        numjet.jit(lambda x, n: jnp.repeat(x, n, total_repeat_length=4))(
            x, jnp.array([0, 1, 2, 1])
        ),
        [3, 0, 0, 4],
    )
    np.testing.assert_array_equal(numjet.jit(lambda x, n: jnp.roll(x, n))(x, 1), [4, 0, 3, 0])
    y, chosen = jnp.array([4, 4, 5]), np.array([False, True, False, True])
    wanted = {"setdiff1d": [0, 3, 9], "intersect1d": [4, 9, 9], "setxor1d": [0, 3, 5]}
    for name, want in wanted.items():
        sized = numjet.jit(lambda x, y, f=getattr(jnp, name): f(x, y, size=3, fill_value=9))
        np.testing.assert_array_equal(sized(x, y), want)
    np.testing.assert_array_equal(
        numjet.jit(lambda x, c: jnp.compress(c, x, size=3, fill_value=9))(x, chosen), [3, 4, 9]
    )
    np.testing.assert_array_equal(
        jnp.unique(np.zeros((0, 3)), axis=0, size=2, fill_value=7), np.full((2, 3), 7)
    )
    for f in (jnp.nonzero, jnp.unique, jnp.argwhere):
        with pytest.raises(numjet.errors.ConcretizationTypeError, match="size"):
            numjet.jit(f)(x)


@pytest.mark.parametrize("share", [0, 0.02, 0.5, 1])
@pytest.mark.parametrize("size", [0, 3, 300, 310])
def test_the_first_true_elements(size, share):
    masks = np.random.default_rng(0).random((4, 300)) < share
    found = lambda m: jnp.nonzero(m, size=size, fill_value=-1)[0]  # noqa: E731
    wanted = [np.append(np.flatnonzero(m), np.full(310, -1))[:size] for m in masks]
    np.testing.assert_array_equal(numjet.jit(numjet.vmap(found))(masks), wanted)
    for f in (found, numjet.jit(found)):
        np.testing.assert_array_equal(f(masks[0]), wanted[0])
    rows, columns = numjet.jit(lambda m: jnp.nonzero(m, size=size, fill_value=-1))(masks)
    both = np.pad(np.stack(np.nonzero(masks)), ((0, 0), (0, 310)), constant_values=-1)[:, :size]
    np.testing.assert_array_equal([rows, columns], both)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_known_and_traced_values(side, dtype):
    rng = np.random.default_rng(0)
    table, x = rng.integers(0, 200, 50).astype(dtype), rng.integers(0, 220, (7, 9)).astype(dtype)
    if dtype == "float32":
        table[-3:] = x[0, :4] = np.nan
        x[1, 1] = -0.0
    table.sort()
    known = jnp.searchsorted(table, x, side)
    traced = numjet.jit(lambda a, x: jnp.searchsorted(a, x, side))(table, x)
    assert known.aval is traced.aval
    for got in (known, traced):
        np.testing.assert_array_equal(got, np.searchsorted(table, x, side))


def test_polynomials_and_convolution():
    agree("polyval", V, W)
    for mode in ("full", "same", "valid"):
        agree("convolve", V, W[:3], mode=mode)
        agree("correlate", V, W[:3], mode=mode)
        agree("correlate", V[:3], W, mode=mode)
    agree("polyadd", V, W[:3])
    agree("polymul", V, W[:3])
    agree("polyder", V)
    agree("polyint", V)
    np.testing.assert_allclose(jnp.polydiv(V, W[:3])[0], np.polydiv(V, W[:3])[0], rtol=1e-4)
    np.testing.assert_allclose(jnp.polyfit(V, V**2, 2), [1, 0, 0], atol=1e-4)
    np.testing.assert_allclose(
        np.sort_complex(jnp.roots(jnp.array([1.0, -3.0, 2.0]))), [1, 2], rtol=1e-5
    )


def test_vectorize_and_apply():
    f = jnp.vectorize(lambda a, b: jnp.dot(a, b), signature="(n),(n)->()")
    np.testing.assert_allclose(f(F[:, None], G[None]), F @ G.T, rtol=1e-5)
    # A number in a signature is a name like any other.
    assert jnp.vectorize(jnp.sum, signature="(2)->()")(np.ones((4, 3))).tolist() == [3.0] * 4
    for wrong in (3, ("n",)):
        with pytest.raises(TypeError, match="signature is a string"):
            jnp.vectorize(jnp.sum, signature=wrong)(1.0)
    g = jnp.vectorize(lambda a, b: a + 2 * b)
    np.testing.assert_allclose(g(F, G[0]), F + 2 * G[0], rtol=1e-6)
    h = jnp.vectorize(lambda a, k: a * k, excluded={1})
    np.testing.assert_allclose(h(F, 3), F * 3)
    with pytest.raises(ValueError, match="signature"):
        jnp.vectorize(lambda x: x, signature="(n->n")(F)
    np.testing.assert_allclose(jnp.apply_along_axis(jnp.cumsum, 0, F), np.cumsum(F, 0), rtol=1e-5)
    np.testing.assert_allclose(
        jnp.apply_over_axes(lambda a, n: jnp.sum(a, n), F, (0, 1)), F.sum(keepdims=True), rtol=1e-5
    )
    agree("piecewise", F, [B, ~B], [1.0, 2.0])
    np.testing.assert_array_equal(jnp.packbits(B), np.packbits(B))
    np.testing.assert_array_equal(
        jnp.unpackbits(jnp.array([3, 200], "uint8")), np.unpackbits(np.array([3, 200], np.uint8))
    )


def test_index_helpers():
    np.testing.assert_array_equal(jnp.mgrid[0:3, 1:3], np.mgrid[0:3, 1:3])
    np.testing.assert_array_equal(jnp.r_[1:4, 0, 5], np.r_[1:4, 0, 5])
    np.testing.assert_array_equal(jnp.c_[V, W], np.c_[V, W])
    for got, want in zip(jnp.ogrid[0:3, 1:3], np.ogrid[0:3, 1:3]):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(
        jnp.ix_(jnp.array([0, 2]), jnp.array([1, 0])),
        np.ix_([0, 2], [1, 0]),
    ):
        np.testing.assert_array_equal(got, want)


def test_writes_that_return_new_arrays():
    x = jnp.zeros((3, 3))
    np.testing.assert_array_equal(jnp.fill_diagonal(x, 2, inplace=False), 2 * np.eye(3))
    np.testing.assert_array_equal(
        jnp.put(jnp.arange(4), jnp.array([1, 3]), 9, inplace=False), [0, 9, 2, 9]
    )
    np.testing.assert_array_equal(
        jnp.put_along_axis(x, jnp.array([[1]] * 3), 5.0, 1, inplace=False)[:, 1], [5, 5, 5]
    )
    with pytest.raises(ValueError, match="inplace=False"):
        jnp.put(x, 0, 1)


def test_methods():
    x = jnp.asarray(F)
    assert x.T.shape == (4, 3) and x.mT.shape == (4, 3) and x.astype(int).dtype == jnp.int32
    assert x.reshape(2, 6).shape == x.reshape((2, -1)).shape == (2, 6)
    assert x.transpose(1, 0).shape == x.transpose((1, 0)).shape == (4, 3)
    assert x.flatten().shape == x.ravel().shape == (12,) and x[0, 0].item() == float(F[0, 0])
    np.testing.assert_array_equal(x.view(jnp.int32), F.view(np.int32))
    np.testing.assert_allclose(x.clip(0, 1), F.clip(0, 1))
    np.testing.assert_array_equal(jnp.asarray(C).real, C.real)
    np.testing.assert_array_equal(x.imag, np.zeros_like(F))
    with pytest.raises(ValueError, match="size 1"):
        x.item()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.reshape(jnp.arange(5), (2, 3)), TypeError, "cannot reshape"),
        (lambda: jnp.concatenate([[1], [2]]), TypeError, "concatenate requires"),
        (lambda: jnp.stack([jnp.ones(2), jnp.ones(3)]), ValueError, "same shape"),
        (lambda: jnp.squeeze(jnp.ones((1, 3)), 1), ValueError, "not equal to one"),
        (lambda: jnp.zeros(2.5), TypeError, "Shapes must be 1D"),
        (lambda: jnp.zeros(-1), TypeError, "negative"),
        (lambda: jnp.arange(jnp.ones(2)), ValueError, "scalars"),
        (lambda: jnp.broadcast_to(jnp.ones(3), (2,)), ValueError, "Incompatible types"),
        (lambda: jnp.expand_dims(jnp.ones(3), 3), ValueError, "out of bounds"),
        (lambda: numjet.jit(lambda n: jnp.zeros(n))(3), TypeError, "static"),
        (lambda: jnp.split(jnp.ones(5), 2), ValueError, "equal division"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_functions_of_nothing_and_of_small_integers():
    assert jnp.packbits(jnp.zeros((0, 8), bool), axis=1).shape == (0, 1)
    assert jnp.packbits(jnp.zeros((3, 0), bool), axis=1).shape == (3, 0)
    np.testing.assert_array_equal(jnp.polymul(jnp.zeros(0), jnp.ones(3)), np.zeros(3))
    steps = np.array([2, 8, 9, 2, 6], np.uint8)
    np.testing.assert_allclose(jnp.unwrap(steps), np.unwrap(steps.astype(float)), rtol=1e-5)
    rest = jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([1.0, 2.5]))
    assert rest.dtype == jnp.int32 and rest.tolist() == [2, 3]
    assert jnp.unpackbits(jnp.zeros((0, 2), jnp.uint8), axis=1).shape == (0, 16)
    assert jnp.zeros((0, 5)).view(jnp.uint8).shape == (0, 20)
    assert jnp.zeros((0, 8), jnp.uint8).view(jnp.float32).shape == (0, 2)
    x = jnp.array([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(x.view(bool), np.asarray(x).view(np.uint8) != 0)


def test_convolutions_of_all_lengths():
    rng = np.random.default_rng(0)
    for n, m in itertools.product(range(1, 5), repeat=2):
        a, v = rng.normal(size=n), rng.normal(size=m) + 1j * rng.normal(size=m)
        for mode in ("full", "same", "valid"):
            np.testing.assert_allclose(
                jnp.correlate(a, v, mode), np.correlate(a, v, mode), atol=1e-5
            )
            np.testing.assert_allclose(jnp.convolve(a, v, mode), np.convolve(a, v, mode), atol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 3), (3, 1), (2, 3, 4), (1, 3, 4), (2, 3, 4, 5)])
def test_one_array_is_joined_as_the_list_of_its_parts(shape):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x, parts = jnp.array(a), list(a)
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        np.testing.assert_array_equal(getattr(jnp, name)(x), getattr(np, name)(parts), strict=True)
        text = str(numjet.make_jaxpr(getattr(jnp, name))(x))
        assert "slice" not in text and "concatenate" not in text  # no part alone
    for axis in range(-a.ndim, a.ndim):
        np.testing.assert_array_equal(jnp.stack(x, axis), np.stack(parts, axis), strict=True)
    for axis in range(1 - a.ndim, a.ndim - 1):
        want = np.concatenate(parts, axis)
        np.testing.assert_array_equal(jnp.concatenate(x, axis), want, strict=True)
    assert jnp.vstack(x, dtype=jnp.int32).dtype == jnp.int32
    with pytest.raises(ValueError):
        jnp.stack(x, a.ndim)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("method", ["auto", "sort", "binary_search", "compare_all"])
def test_membership_by_order_is_that_by_comparison(dtype, method, monkeypatch):
    monkeypatch.setattr("numjet.numpy.sets.COMPARED", 100)
    rng = np.random.default_rng(0)
    x, y = [np.round(rng.normal(size=n) * 5) for n in ((30, 40), 50)]
    if dtype == "float32":
        y = np.append(y[y != 0], [-0.0, np.nan, np.inf])
        x[0, :4] = [np.nan, 0.0, -0.0, np.inf]
    x, y = x.astype(dtype), y.astype(dtype)
    for invert in (False, True):
        got = jnp.isin(x, y, invert=invert, method=method)
        np.testing.assert_array_equal(got, np.isin(x, y, invert=invert))


def test_axes_may_be_an_array():
    x = np.arange(24).reshape(2, 3, 4)
    for array in (np.array, jnp.array):
        for got, want in (
            (jnp.moveaxis(x, array([0, 1]), array([1, 2])), np.moveaxis(x, (0, 1), (1, 2))),
            (jnp.sum(x, array([0, 2])), np.sum(x, (0, 2))),
            (jnp.expand_dims(x, array([0, 2])), np.expand_dims(x, (0, 2))),
            (jnp.flip(x, array([0, 2])), np.flip(x, (0, 2))),
            (jnp.roll(x, 1, array([1, 0])), np.roll(x, 1, (1, 0))),
            (jnp.squeeze(x[:, :1], array([1])), x[:, 0]),
        ):
            np.testing.assert_array_equal(got, want)
        with pytest.raises(TypeError, match="integer"):
            jnp.sum(x, array([0.0, 1.0]))


def test_tolerances_of_isclose_broadcast():
    x, tolerance = np.arange(6.0).reshape(2, 3), np.array([[1.5], [4.5]])
    for arguments in ({"atol": tolerance}, {"atol": 0, "rtol": tolerance[:, :, None]}):
        want = np.isclose(x, 1.0, **arguments)
        np.testing.assert_array_equal(jnp.isclose(x, 1.0, **arguments), want)
        assert jnp.allclose(x, 1.0, **arguments) == want.all()


def test_a_numpy_array_is_reshaped_by_numpy():
    """As in JAX: libraries read such values while a function is traced."""
    x = np.arange(6.0)

    @numjet.jit
    def f(y):
        assert bool(jnp.reshape(x, (2, 3)).all(-1)[1])
        return y + jnp.reshape(x, (2, 3), order="F")

    np.testing.assert_array_equal(f(1.0), 1 + x.reshape((2, 3), order="F"))
    assert type(jnp.reshape(x, -1)) is np.ndarray and type(jnp.ravel(x)) is not np.ndarray
    with pytest.raises(ValueError, match="cannot reshape"):
        jnp.reshape(x, (4, 2))


def test_a_shape_may_be_any_iterable_of_integers():
    x = jnp.arange(6)
    for shape in (map(int, "23"), (n for n in (2, -1)), {2: 0, 3: 0}.keys()):
        assert jnp.reshape(x, shape).shape == (2, 3)
    assert x.reshape(n for n in (3, 2)).shape == (3, 2)
    with pytest.raises(TypeError, match="concrete values of integer type"):
        jnp.reshape(x, (n for n in (2.0, 3)))


def test_one_element_fills_every_shape_it_is_resized_to():
    for shape in ((), (1,), (5,), (2, 3), 4):
        for value in (7, np.array([[2.5]], np.float32), True):
            got = jnp.resize(jnp.array(value), shape)
            np.testing.assert_array_equal(got, np.resize(value, shape))
            assert got.dtype == jnp.array(value).dtype


def test_integrals_with_constants_are_numpys():
    for m, k in ((1, None), (2, 3.0), (3, [1.0, -2.0, 0.5])):
        for p in (V, V[:1]):
            wanted = np.polyint(np.asarray(p), m, k)
            got = jnp.polyint(jnp.array(p), m, None if k is None else jnp.array(k))
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


class Blocks:
    """A container as libraries have them (scico's BlockArray): no Sequence, but indexed."""

    def __init__(self, *arrays):
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays)

    def __getitem__(self, i):
        return self.arrays[i]


def test_containers_of_libraries_are_joined():
    x, y = jnp.ones(2), jnp.zeros(2)
    for join in (jnp.concatenate, jnp.stack, jnp.vstack, jnp.hstack, jnp.dstack,
                 jnp.column_stack):
        np.testing.assert_array_equal(join(Blocks(x, y)), join([x, y]))
    with pytest.raises(TypeError, match="needs a sequence of arrays"):
        jnp.concatenate(a for a in (x, y))
    with pytest.raises(TypeError, match="needs a sequence of arrays"):
        jnp.stack({"x": x})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_grids_of_bounds_have_the_dtype_of_these(dtype):
    """As in JAX, also with 64 bits: Python's numbers alone give the default dtypes."""
    with numjet.enable_x64(True):
        a, b = jnp.asarray(0, dtype), jnp.asarray(3, dtype)
        assert jnp.mgrid[a:b, 0:2].dtype == dtype
        assert [x.dtype for x in jnp.ogrid[a:b, a:b:5j]] == [dtype] * 2
        assert jnp.mgrid[0.0:3.0, 0:2].dtype == "float64"
        assert jnp.mgrid[0:3, 0:2].dtype == "int64"


def test_concatenate_to_a_dtype_converts_each_part_alone():
    parts = jnp.array([2**31 - 1]), jnp.array([1.5])
    assert jnp.concatenate(parts, dtype=int).tolist() == [2**31 - 1, 1]
    with numjet.numpy_dtype_promotion("strict"):
        assert jnp.concatenate(parts, dtype="float32").dtype == jnp.float32


def test_unravel_index_of_traced_sizes():
    places, sizes = jnp.arange(-3, 70, 9), jnp.array([3, 4, 5])
    known = jnp.unravel_index(places, (3, 4, 5))
    for found in (
        nj.jit(jnp.unravel_index)(places, sizes),
        nj.jit(lambda i, a, b: jnp.unravel_index(i, (a, 4, b)))(places, 3, 5),
        jnp.unravel_index(places, sizes),
    ):
        assert [x.tolist() for x in found] == [x.tolist() for x in known]
    rows, columns = nj.vmap(jnp.unravel_index)(jnp.arange(3), jnp.array([[2, 3], [3, 2], [1, 4]]))
    assert rows.tolist() == [0, 0, 0] and columns.tolist() == [0, 1, 2]
    assert nj.jit(jnp.unravel_index)(jnp.uint8(7), jnp.array([3, 4], "int16"))[1].dtype == "int16"
    assert not jnp.unravel_index(7, sizes)[0].weak_type
    with pytest.raises(ValueError, match="scalar or 1D"):
        nj.jit(jnp.unravel_index)(7, jnp.array([[3, 4]]))


def test_transpose_takes_axes_as_an_array_and_as_numpy_integers():
    x = nj.numpy.arange(30).reshape(2, 3, 5)
    axes = np.array([1, 2, 0])
    expected = np.asarray(x).transpose(1, 2, 0)
    for turned in (
        x.transpose(axes), np.transpose(x, axes), x.transpose(*axes),
        nj.jit(lambda x: np.transpose(x, axes))(x),
    ):  # fmt: skip
        np.testing.assert_array_equal(turned, expected)
    assert x.transpose(None).shape == (5, 3, 2)
    assert x[0, 0].transpose(np.int32(0)).shape == (5,)


def test_arguments_that_become_arrays_by_a_method() -> None:
    class Held:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return jnp.asarray(self.x)

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(jnp.roll(Held(x), Held(1)), np.roll(x, 1))
    np.testing.assert_array_equal(jnp.roll(Held(x), Held(np.array([1, 2])), (0, 1)),
                                  np.roll(x, (1, 2), (0, 1)))  # fmt: skip
    for ours, theirs in ((jnp.triu_indices_from, np.triu_indices_from),
                         (jnp.tril_indices_from, np.tril_indices_from)):  # fmt: skip
        np.testing.assert_array_equal(ours(Held(x)), theirs(x))
    assert [i.shape for i in jnp.diag_indices_from(Held(x[:, :2]))] == [(2,), (2,)]
    assert (jnp.shape(Held(x)), jnp.ndim(Held(x)), jnp.size(Held(x))) == ((2, 3), 2, 6)
    assert jnp.size(Held(x), 1) == 3 and jnp.shape(Held(1.0)) == ()
    assert jnp.iscomplexobj(Held(x * 1j)) and not jnp.iscomplexobj(Held(x))
    np.testing.assert_array_equal(jnp.delete(x[0], Held(1)), [0, 2])
    np.testing.assert_array_equal(jnp.insert(x[0], Held(np.array([0, 2])), 9), [9, 0, 1, 9, 2])


def test_a_method_that_makes_a_jax_array_comes_before_one_that_makes_a_numpy_array():
    class Both:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return jnp.asarray(self.x)

        def __array__(self, dtype=None, copy=None):
            raise ValueError("not this one")

    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert jnp.shape(Both(x)) == (3, 4) and jnp.ndim(Both(x)) == 2 and jnp.size(Both(x)) == 12
    np.testing.assert_array_equal(jnp.hsplit(Both(x), 2)[1], x[:, 2:])
    np.testing.assert_array_equal(jnp.delete(x, Both(0), 0), x[1:])
    np.testing.assert_array_equal(jnp.insert(x[0], Both(1), 5), np.insert(x[0], 1, 5))
    assert not jnp.iscomplexobj(Both(x))


@pytest.mark.parametrize("f", [jnp.shape, jnp.ndim, jnp.size])
def test_shapes_of_what_numpy_makes_an_array_of_come_with_a_warning(f):
    class Other:
        def __array__(self, dtype=None, copy=None):
            return np.zeros(4, dtype)

    with pytest.warns(DeprecationWarning, match=f"{f.__name__} requires ndarray or scalar"):
        f(Other())


def test_vectorize_hands_none_on() -> None:
    def weighted(x, w, shift):
        total = (x if w is None else x * w).sum()
        return total if shift is None else total + shift

    rows = np.arange(6.0).reshape(2, 3)
    f = jnp.vectorize(lambda x, w: x if w is None else x * w)
    assert f(rows, None).tolist() == rows.tolist() and f(rows, 2).tolist() == (2 * rows).tolist()
    g = jnp.vectorize(weighted, signature="(n),(),()->()")
    for run in (lambda f: f, numjet.jit):
        assert run(g)(rows, None, None).tolist() == [3, 12]
        assert run(g)(rows, np.array([[1.0], [2.0]]), None).tolist() == [[3, 12], [6, 24]]
        assert run(g)(rows, None, np.array([1.0, -1.0])).tolist() == [4, 11]
    with pytest.raises(ValueError, match="Cannot pass None at locations {1}"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(rows, None)


@pytest.mark.parametrize("method", ["auto", "sort", "binary_search", "compare_all"])
def test_complex_numbers_are_found_by_sorting(method):
    """With parts of both signs of zero, infinities, and what is no number, which equals nothing."""
    rng = np.random.default_rng(5)
    parts = np.array([0.0, -0.0, 1.0, 2.0, np.nan, np.inf, -np.inf], np.float32)
    for n, m in ((300, 300), (400, 9), (1, 350)):
        x, y = np.empty(n, np.complex64), np.empty(m, np.complex64)
        for z in (x, y):
            z.real, z.imag = rng.choice(parts, z.size), rng.choice(parts, z.size)
        found = (x[:, None] == y).any(1)
        np.testing.assert_array_equal(jnp.isin(x, y, method=method), found)
        np.testing.assert_array_equal(jnp.isin(x, y, invert=True, method=method), ~found)
