"""Reading and writing by index: against NumPy, eagerly, compiled, mapped and differentiated."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import numjet
import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base import config
from numjet.extend.jax_core import eval_jaxpr

SHAPES = [(5,), (3, 4), (2, 3, 4), (1, 3), (2, 1, 3, 2)]


@st.composite
def slices(draw, n):
    bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    step = draw(st.one_of(st.none(), st.integers(-3, 3).filter(bool)))
    return slice(draw(bound), draw(bound), step)


@st.composite
def indices(draw, arrays=True):
    """(shape, index) with every kind of index item, positions in bounds."""
    shape = draw(st.sampled_from(SHAPES))
    used = draw(st.integers(0, len(shape)))
    block = draw(st.sampled_from([(), (2,), (3, 2), (1, 2), (0,)])) if arrays else ()
    items, axis = [], 0
    while axis < used:
        n = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "full"] + ["array", "mask"] * arrays))
        if kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            items.append(draw(slices(n)))
        elif kind == "full":
            items.append(slice(None))
        elif kind == "mask":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
        else:
            size = int(np.prod(block))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            items.append(np.array(values, np.int32).reshape(block))
        axis += 1
        if draw(st.integers(0, 5)) == 0:
            items.append(None)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
        # Before an ellipsis the items count from the front, after it from the back.
    return shape, tuple(items)


def numpy_result(shape, index):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    try:
        x.copy()[index] = 0  # which old NumPy warns of where no element is meant
        return x, x[index]
    except (IndexError, DeprecationWarning):
        return x, None


def as_numjet(index):
    return tuple([jnp.asarray(i) if isinstance(i, np.ndarray) else i for i in index])


@given(indices())
def test_reading_agrees_with_numpy(case):
    shape, index = case
    x, want = numpy_result(shape, index)
    if want is None:
        return
    array = jnp.asarray(x)
    np.testing.assert_array_equal(array[as_numjet(index)], want)
    np.testing.assert_array_equal(numjet.numpy.indexing._complete(array, as_numjet(index)), want)


@settings(max_examples=25)
@given(indices())
def test_compiled_reading_agrees_with_numpy(case):
    shape, index = case
    x, want = numpy_result(shape, index)
    if want is None:
        return
    got = numjet.jit(lambda x: x[as_numjet(index)])(x)
    np.testing.assert_array_equal(got, want)


@settings(max_examples=25)
@given(indices())
def test_traced_positions_agree_with_numpy(case):
    shape, index = case
    x, want = numpy_result(shape, index)
    if want is None:
        return
    # Integers and integer arrays are traced; masks and slices stay static.
    traced = [
        k
        for k, i in enumerate(index)
        if isinstance(i, int)
        and not isinstance(i, bool)
        or isinstance(i, np.ndarray)
        and i.dtype != bool
    ]

    def f(x, values):
        full = list(index)
        for k, v in zip(traced, values):
            full[k] = v
        return x[tuple(full)]

    got = numjet.jit(f)(x, [np.asarray(index[k], np.int32) for k in traced])
    np.testing.assert_array_equal(got, want)


WRITES = {
    "set": lambda x, i, y: x.__setitem__(i, y),
    "add": lambda x, i, y: np.add.at(x, i, y),
    "multiply": lambda x, i, y: np.multiply.at(x, i, y),
    "min": lambda x, i, y: np.minimum.at(x, i, y),
    "max": lambda x, i, y: np.maximum.at(x, i, y),
}


def distinct(index, shape):
    """Whether no position is written twice (the order of writes is then irrelevant)."""
    flat = np.arange(np.prod(shape)).reshape(shape)[index].ravel()
    return len(set(flat.tolist())) == flat.size


@given(indices(), st.sampled_from(sorted(WRITES)), st.sampled_from(["value", "scalar", "row"]))
def test_writing_agrees_with_numpy(case, name, kind):
    shape, index = case
    x, at = numpy_result(shape, index)
    if at is None or name == "set" and not distinct(index, shape):
        return
    y = np.full(np.shape(at), 2, np.float32) + np.arange(at.size).reshape(at.shape) % 3
    y = (
        np.float32(3)
        if kind == "scalar" or not at.ndim or 0 in at.shape
        else (y.astype(np.float32) if kind == "value" else y[..., :1].astype(np.float32))
    )
    want = x.copy()
    WRITES[name](want, index, y)
    array = jnp.asarray(x)
    np.testing.assert_allclose(getattr(array.at[as_numjet(index)], name)(y), want)
    whole = numjet.numpy.at.update(name, array, as_numjet(index), y)
    np.testing.assert_allclose(whole, want)


@settings(max_examples=20)
@given(indices(), st.sampled_from(["set", "add"]))
def test_compiled_writing_agrees_with_numpy(case, name):
    shape, index = case
    x, at = numpy_result(shape, index)
    if at is None or name == "set" and not distinct(index, shape):
        return
    y = np.arange(at.size, dtype=np.float32).reshape(at.shape)
    want = x.copy()
    WRITES[name](want, index, y)
    got = numjet.jit(lambda x, y: getattr(x.at[as_numjet(index)], name)(y))(x, y)
    np.testing.assert_allclose(got, want)


@settings(max_examples=20)
@given(indices())
def test_the_gradient_of_reading_counts_the_reads(case):
    shape, index = case
    x, at = numpy_result(shape, index)
    if at is None:
        return
    weights = np.arange(1, at.size + 1, dtype=np.float32).reshape(at.shape)
    want = np.zeros_like(x)
    np.add.at(want, index, weights)
    got = numjet.grad(lambda x: jnp.sum(x[as_numjet(index)] * weights))(jnp.asarray(x))
    np.testing.assert_allclose(got, want)


def test_static_indices_lower_to_slices():
    names = [
        e.primitive.name
        for e in numjet.make_jaxpr(lambda x: x[1, ::-1, None, 2:4])(
            np.zeros((3, 4, 5), np.float32)
        ).jaxpr.eqns
    ]
    assert not {"gather", "dynamic_slice"} & set(names), names
    names = [
        e.primitive.name
        for e in numjet.make_jaxpr(lambda x, i: x[i])(np.zeros((3, 4), np.float32), 1).jaxpr.eqns
    ]
    assert "dynamic_slice" in names and "gather" not in names, names


@pytest.mark.parametrize("compiled", [False, True])
def test_out_of_bounds(compiled):
    wrap = numjet.jit if compiled else (lambda f: f)
    x = jnp.arange(5.0)
    far = jnp.array([10, -10, -6, -5, 4])
    np.testing.assert_array_equal(wrap(lambda x, i: x[i])(x, far), [4, 0, 0, 0, 4])
    np.testing.assert_array_equal(wrap(lambda x: x[10])(x), 4)
    np.testing.assert_array_equal(wrap(lambda x: x[-10])(x), 0)
    np.testing.assert_array_equal(wrap(lambda x, i: x[i])(x, 10), 4)
    np.testing.assert_array_equal(wrap(lambda x, i: x[i])(x, -10), 0)
    np.testing.assert_array_equal(wrap(lambda x, i: x.at[i].set(9))(x, far), [9, 1, 2, 3, 9])
    np.testing.assert_array_equal(wrap(lambda x: x.at[10].set(9))(x), x)
    np.testing.assert_array_equal(wrap(lambda x: x.at[-7].set(9))(x), x)
    np.testing.assert_array_equal(wrap(lambda x, i: x.at[i].set(9))(x, 7), x)
    np.testing.assert_array_equal(
        wrap(lambda x, i: x.at[i].set(9, mode="clip"))(x, 7), [0, 1, 2, 3, 9]
    )
    filled = wrap(lambda x, i: x.at[i].get(mode="fill", fill_value=7))(x, far)
    np.testing.assert_array_equal(filled, [7, 7, 7, 0, 4])
    nan = wrap(lambda x: x.at[10].get(mode="fill"))(x)
    assert np.isnan(nan)


def test_at_methods():
    x = jnp.arange(1.0, 6.0)
    np.testing.assert_allclose(x.at[1].divide(2), [1, 1, 3, 4, 5])
    np.testing.assert_allclose(x.at[1:3].power(2), [1, 4, 9, 4, 5])
    np.testing.assert_allclose(x.at[1:3].apply(jnp.negative), [1, -2, -3, 4, 5])
    np.testing.assert_allclose(x.at[jnp.array([0, 2])].apply(jnp.square), [1, 2, 9, 4, 5])
    np.testing.assert_allclose(x.at[0].subtract(3), [-2, 2, 3, 4, 5])
    assert repr(x.at[0]).startswith("_IndexUpdateRef(") and "UpdateHelper" in repr(x.at)
    ints = jnp.arange(3)
    assert ints.at[0].set(5).dtype == jnp.int32
    with pytest.warns(FutureWarning, match="incompatible types"):
        ints.at[0].set(1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ints.at[0].add(True).dtype == jnp.int32


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("lines", [(), (4,), (2, 3)])
def test_one_row_of_values_is_written_for_each_row_of_the_index(name, wrapped, lines) -> None:
    """`ufunc.at` of NumPy reads past the end of such a row."""
    places = np.random.default_rng(5).integers(0, 40, (*lines, 9))
    row = np.linspace(0.5, 2.5, 9, dtype=np.float32)
    index = (jnp.asarray(places), ...) if wrapped else jnp.asarray(places)
    got = getattr(jnp.ones(40).at[index], name)(jnp.asarray(row))
    want = getattr(jnp.ones(40).at[index], name)(jnp.asarray(np.broadcast_to(row, places.shape)))
    np.testing.assert_array_equal(got, want)



def test_boolean_masks():
    x = jnp.arange(6.0).reshape(2, 3)
    mask = x > 2
    np.testing.assert_array_equal(x[mask], [3, 4, 5])
    np.testing.assert_array_equal(x[True], np.arange(6.0).reshape(1, 2, 3))
    assert x[False].shape == (0, 2, 3)
    want = np.where(np.asarray(mask), 0, np.asarray(x))
    np.testing.assert_array_equal(x.at[mask].set(0), want)
    # A scalar needs no positions, so the mask may be traced.
    np.testing.assert_array_equal(numjet.jit(lambda x, m: x.at[m].set(0.0))(x, mask), want)
    with pytest.raises(numjet.errors.NonConcreteBooleanIndexError, match="jnp.where"):
        numjet.jit(lambda x: x[x > 2])(x)


@pytest.mark.parametrize(
    ("index", "error", "match"),
    [
        ([0, 1], TypeError, "non-tuple sequence"),
        (1.5, TypeError, "integer or boolean"),
        ("a", TypeError, "string"),
        ((0, 0, 0), IndexError, "Too many indices"),
        ((..., ...), IndexError, "ellipsis"),
        (np.array([1.5]), TypeError, "integer or boolean"),
        (np.array([True, False, True]), IndexError, "boolean index did not match"),
        (slice(0, 1, 0), ValueError, "step cannot be zero"),
        (slice(0.5), TypeError, "static integers"),
        ((np.array([0, 1]), np.array([0, 1, 0])), ValueError, "Incompatible shapes"),
    ],
)
def test_wrong_indices_say_what_is_wrong(index, error, match):
    x = jnp.zeros((2, 3))
    with pytest.raises(error, match=match):
        x[index]


def test_traced_slice_bounds_name_the_remedy():
    with pytest.raises(IndexError, match="dynamic_slice"):
        numjet.jit(lambda x, n: x[:n])(jnp.arange(3), 2)


def test_assignment_names_at():
    x = jnp.arange(3)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1


def test_writes_that_do_not_fit():
    with pytest.raises(ValueError, match="Incompatible shapes"):
        jnp.zeros((3, 4)).at[0].set(jnp.zeros(3))


def test_iteration_and_length():
    x = jnp.arange(6.0).reshape(3, 2)
    assert len(x) == 3 and [r.shape for r in x] == [(2,)] * 3
    np.testing.assert_array_equal(numjet.jit(lambda x: sum(r for r in x))(x), [6, 9])
    with pytest.raises(TypeError):
        iter(jnp.float32(1))


def test_keys_are_indexed_like_arrays():
    keys = numjet.random.split(numjet.random.key(0), 3)
    assert keys[1].shape == () and keys[1:].shape == (2,) and keys[jnp.array([0, 2])].shape == (2,)


@settings(max_examples=25)
@given(indices(), st.sampled_from(["x", "index", "both"]), st.booleans())
def test_mapped_indexing_is_stacked_indexing(case, over, writing):
    shape, index = case
    x, at = numpy_result(shape, index)
    if at is None or writing and not distinct(index, shape):
        return
    traced = [
        k
        for k, i in enumerate(index)
        if isinstance(i, int) or isinstance(i, np.ndarray) and i.dtype != bool
    ]
    first = [np.asarray(index[k], np.int32) for k in traced]
    # The second element counts the same positions from the other end.
    second = [-1 - v for v in first]
    xs = np.stack([x, -x])

    def f(x, values):
        full = list(index)
        for k, v in zip(traced, values):
            full[k] = v
        return x.at[tuple(full)].add(1.5) if writing else x[tuple(full)]

    axes = {"x": (0, None), "index": (None, 0), "both": (0, 0)}[over]
    if over != "x" and not traced:
        return
    values = [np.stack(pair) for pair in zip(first, second)] if over != "x" else first
    # Arguments that are not mapped stay NumPy arrays, which no traced index goes into.
    got = numjet.vmap(f, in_axes=axes)(xs if over != "index" else jnp.asarray(x), values)
    want = []
    for k in range(2):
        own = jnp.asarray(xs[k] if over != "index" else x)
        want.append(f(own, [v[k] if over != "x" else v for v in values]))
    np.testing.assert_allclose(got, np.stack(want), rtol=1e-6)


def test_traced_integers_wrap_once_and_are_then_moved_inside() -> None:
    x = jnp.arange(5.0)
    places = [-5, -6, -7, -11, 4, 5, 9]
    want = [0, 0, 0, 0, 4, 4, 4]
    assert [float(numjet.jit(lambda x, i: x[i])(x, i)) for i in places] == want
    assert [float(x[jnp.int32(i)]) for i in places] == want


@pytest.mark.parametrize("mode", [None, "clip", "drop"])
@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_writes_along_an_empty_axis_are_dropped(shape: tuple, mode: str | None) -> None:
    x, i = jnp.zeros(shape), jnp.array([0, 1, -5])
    for f in (lambda x, i: x.at[i].add(1.0, mode=mode), lambda x, i: x.at[i].set(2.0, mode=mode)):
        assert f(x, i).shape == numjet.jit(f)(x, i).shape == shape


@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
@pytest.mark.parametrize(
    ("name", "want"),
    [("add", [7, -6, 1]), ("multiply", [12, -22, 1]), ("min", [2, -9, 1]), ("set", [2, 2, 1])],
)
def test_updates_with_wider_numbers_are_cut_at_the_end(name, want):
    x = jnp.array([5, -9, 1], jnp.int8)
    for run in (lambda f: f, numjet.jit):
        out = run(lambda x: getattr(x.at[:2], name)(2.5))(x)
        assert out.dtype == jnp.int8 and out.tolist() == want


@pytest.mark.parametrize(
    "dtype, positions, places",
    [
        (np.uint32, [4294967176, 3, 70], [8, 3, 8]),
        (np.int8, [-3, 3, 120], [6, 3, 8]),
        (np.uint64, [2**63 + 5, 3, 2**64 - 1], [8, 3, 8]),
        (np.int64, [-(2**63), 3, 2**62], [0, 3, 8]),
    ],
)
def test_positions_that_32_bits_cannot_hold(dtype, positions, places):
    x = np.arange(9.0, dtype=np.float32)
    reads = [
        lambda i: lax.dynamic_slice(x, (i,), (1,))[0],
        lambda i: lax.dynamic_update_slice(x, -np.ones(1, np.float32), (i,)).argmin(),
        lambda i: jnp.asarray(x)[i],
        lambda i: jnp.asarray(x).at[i].get(mode="clip"),
        lambda i: jnp.asarray(x).at[i].set(-1, mode="clip").argmin(),
    ]
    inside = [p if -9 <= p < 9 else np.nan for p in positions]
    filled = [x[int(p)] if p == p else np.nan for p in inside]
    with config.enable_x64(True):
        i = jnp.asarray(np.array(positions, dtype))
        cases = [(f, places) for f in reads]
        cases.append((lambda i: jnp.asarray(x).at[i].get(mode="fill"), filled))
        for f, want in cases:
            scanned = numjet.jit(lambda i, f=f: lax.scan(lambda c, k: (c, f(k)), 0, i)[1])
            for g in (lambda i, f=f: jnp.stack([f(k) for k in i]), numjet.vmap(f), scanned):
                np.testing.assert_array_equal(g(i), want)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_places_at_and_beyond_the_ends(dtype) -> None:
    x = np.arange(10.0, 110, dtype=np.float32)
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    places = [-101, -100, -99, -1, 0, 1, 99, 100, 101, *ends]
    at = np.array([p for p in places if info.min <= p <= info.max] * 40, dtype)
    want = np.array([x[p] if -100 <= p < 100 else np.nan for p in at.tolist()], np.float32)
    with numjet.enable_x64(True):
        take = numjet.jit(lambda x, i: jnp.take(x, i, mode="fill"))
        np.testing.assert_array_equal(take(x, at), want)
        back = numjet.jit(numjet.grad(lambda x, i: jnp.nansum(jnp.take(x, i, mode="fill"))))(x, at)
    inside = at.astype(np.int64)
    inside = inside[(inside >= -100) & (inside < 100)]
    np.testing.assert_array_equal(back, np.bincount(inside % 100, minlength=100))


@pytest.mark.parametrize("second", ["int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("first", ["int8", "uint32", "int32", "int64"])
def test_indices_of_several_integer_types(first, second):
    with numjet.enable_x64(True):
        m = jnp.arange(60.0).reshape(3, 4, 5)
        i, j = np.dtype(first).type(2), np.dtype(second).type(1)
        for f in (lambda i, j: m[i, j], lambda i, j: m[i, :, j], lambda i, j: m[0, i, j]):
            want = f(2, 1)
            closed = numjet.make_jaxpr(f)(i, j)
            assert np.array_equal(numjet.jit(f)(i, j), want)
            assert np.array_equal(eval_jaxpr(closed.jaxpr, closed.consts, i, j)[0], want)


def test_an_integer_index_of_an_empty_axis_is_refused_whatever_the_result_holds() -> None:
    x, rows = jnp.zeros((2, 0, 0)), jnp.zeros((4, 0))
    for f in (
        lambda: x[..., 0],
        lambda: x[0, -1],
        lambda: x[:, jnp.array(0)],
        lambda: numjet.jit(lambda x, i: x[:, i])(x, 1),
        lambda: x.at[:, 0].get(mode="fill", fill_value=1),
        lambda: rows[:0, 0],
        lambda: rows[None, :, np.int64(0)],
        lambda: numjet.grad(lambda r: r[:0, 0].sum())(rows),
    ):
        with pytest.raises(IndexError, match="with size 0"):
            f()
    with pytest.raises(TypeError, match="with size 0"):
        x[:, 0, jnp.array([0])]
    # Arrays of indices ask for nothing where the result has no elements.
    assert x[:, jnp.zeros((0,), int)].shape == (2, 0, 0)
    assert x[jnp.array([[0], [1]]), :, jnp.zeros((2, 0), int)].shape == (2, 0, 0)


@pytest.mark.parametrize("mode", [None, "fill", "clip", "wrap"])
def test_along_an_axis_without_elements_zeros_are_read(mode: str | None) -> None:
    for dtype in (jnp.float32, jnp.uint8, jnp.bool_):
        x = jnp.zeros((3, 0), dtype)
        got = jnp.take_along_axis(x, jnp.ones((3, 2), int), 1, mode=mode, fill_value=7)
        assert got.shape == (3, 2) and got.dtype == dtype and not got.any()


def test_updates_at_several_slices_of_known_sizes():
    x, i = jnp.arange(120.0).reshape(4, 5, 6), jnp.int32(1)
    for index, plain in (
        ((nj.ds(i, 2), nj.ds(2, 3)), (slice(1, 3), slice(2, 5))),
        ((nj.ds(0, 2, 2), slice(1, 4), nj.ds(i, 2)), (slice(0, 4, 2), slice(1, 4), slice(1, 3))),
        ((nj.ds(i, 2), 3, nj.ds(2, 2)), (slice(1, 3), 3, slice(2, 4))),
        ((slice(None), nj.ds(i, 1), nj.ds(0, 2)), (slice(None), slice(1, 2), slice(0, 2))),
    ):
        new = 1000 + jnp.arange(float(x[plain].size)).reshape(x[plain].shape)
        np.testing.assert_array_equal(x.at[index].set(new), x.at[plain].set(new))
        added = nj.jit(lambda x, new, index=index: x.at[index].add(new))(x, new)
        np.testing.assert_array_equal(added, x.at[plain].add(new))
    for index in ((nj.ds(i, 2), jnp.array([0, 1])), (nj.ds(i, 2), None, nj.ds(0, 1))):
        with pytest.raises(NotImplementedError, match="not supported in updates"):
            x.at[index].set(0.0)
