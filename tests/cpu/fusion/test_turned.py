"""Reductions run over memory as it lies, and transposed operands are copied before."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

N = 160
RNG = np.random.default_rng(0)


def kernels(f, *args) -> list[str]:
    text = nj.jit(f).lower(*args).as_text()
    return [part for part in text.split("kernel ") if part.strip()]


@pytest.fixture
def square():
    return jnp.ones((N, N), "float32")


@pytest.mark.parametrize(
    ("f", "straight"),
    [
        (lambda x: jnp.sum(x.T, 0), lambda x: jnp.sum(x, 1)),
        (lambda x: jnp.max(x.T, 1), lambda x: jnp.max(x, 0)),
        (lambda x: jnp.argmax(x.T, 1), lambda x: jnp.argmax(x, 0)),
        (lambda x: jnp.sum(x.T * jnp.cos(x.T), 1), lambda x: jnp.sum(x * jnp.cos(x), 0)),
        (lambda x: jnp.einsum("ab,ab->b", x, x), lambda x: jnp.sum(x * x, 0)),
        (lambda x: jnp.einsum("ba,ba->b", x, x), lambda x: jnp.sum(x * x, 1)),
    ],
)
def test_a_domain_lies_as_what_is_read(f, straight, square) -> None:
    (found,), (wanted,) = kernels(f, square), kernels(straight, square)
    assert found.partition(":")[0] == wanted.partition(":")[0]
    assert "in0[j0" not in found  # the place along a row comes last


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: jnp.sum(x.T * y, 1),
        lambda x, y: jnp.sum(x.T * y),
        lambda x, y: jnp.max(x.T + y, 0),
        lambda x, y: jnp.einsum("ij,ji->i", x, y),
        lambda x, y: nj.nn.softmax(x.T + y, -1),
        lambda x, y: nj.nn.softmax(x.T, -1),
    ],
)
def test_what_lies_across_is_copied_by_a_kernel_of_its_own(f, square) -> None:
    copy, *others = kernels(f, square, square)
    assert "tile" in copy and "acc" not in copy
    assert others and all("tile" not in part for part in others)


def test_of_two_operands_that_lie_across_one_is_copied() -> None:
    x, y = jnp.ones((40, 24, 30), "float32"), jnp.ones((24, 30, 40), "float32")
    assert len(kernels(lambda x, y: jnp.einsum("cab,bca->abc", x, y.transpose(1, 2, 0)), x, y)) == 1
    text = kernels(lambda x, y: jnp.transpose(x, (1, 2, 0)) * jnp.transpose(y, (0, 1, 2)), x, y)
    assert len(text) == 1  # one of them lies in order
    z = jnp.ones((30, 40, 24), "float32")
    assert len(kernels(lambda x, z: x.transpose(1, 2, 0) * z.transpose(2, 0, 1), x, z)) == 2


def test_complex_results_are_computed_as_their_operands_lie(square) -> None:
    x = square + 1j
    for f in (lambda x, y: jnp.conj(x.T), lambda x, y: x.T + y.T):
        computed, copy = kernels(f, x, x)
        assert "tile" not in computed and "c64" not in copy  # whole numbers are moved
    copy, computed = kernels(lambda x, y: x.T + y, x, x)
    assert "tile" not in computed and "c64" not in copy


def test_short_rows_are_transposed_as_a_part_of_longer_ones() -> None:
    x = jnp.ones((64, 40, 5, 2), "float32")
    squares, rows = kernels(lambda x: jnp.swapaxes(x, 0, -1), x)
    assert "tile" in squares and "tile" not in rows
    assert len(kernels(lambda x: jnp.transpose(x, (1, 2, 3, 0)), x)) == 1  # that is what it is


@pytest.mark.parametrize("columns", [2, 3, 7])
def test_rows_of_few_columns_are_joined(columns: int) -> None:
    x = jnp.ones((30, 40, 50, columns), "float32")
    for f in (jnp.sum, jnp.max, lambda x, axis: jnp.any(x > 0, axis)):
        (text,) = kernels(lambda x, f=f: f(x, axis=(0, 1, 2)), x)
        assert "for r0 <" in text and "for r0_0" not in text  # one loop over all rows
    y = jnp.ones((40, 1, columns), "float32")
    (text,) = kernels(lambda x, y: jnp.sum(x * y, (0, 1, 2)), x, y)
    assert "for r0_0" in text  # y has one of these axes alone


def test_large_results_of_every_kind_beside_a_transpose(square) -> None:
    f = nj.jit(lambda x: (x.T + 1, jnp.stack([x, x]).sum(0), jnp.sort(x.T), x.T @ x, x,
                          jnp.sum(jnp.tril(x.T), 0)))
    for got, want in zip(f(square), f.__wrapped__(square), strict=True):
        np.testing.assert_array_equal(got, want)


def test_small_ones_stay_as_they_are() -> None:
    x = jnp.ones((20, 20), "float32")
    assert len(kernels(lambda x, y: jnp.sum(x.T * y, 1), x, x)) == 1


SIZES = {"a": 33, "b": 8, "c": 21, "d": 6}
DTYPES = ("int32", "int32", "float32", "complex64")
REDUCERS = ("sum", "max", "min", "argmin", "any", "prod", "ptp", "count_nonzero")


def drawn(rng: random.Random) -> tuple[str, list[tuple[int, ...]]]:
    """An expression over `np`, x, y and z, whose values are integers, and their shapes."""
    axes = rng.sample("abcd", 4)
    shape = [SIZES[a] for a in axes]
    operands, shapes = [], []
    for name in ("x", "y", "z")[: rng.randint(1, 3)]:
        kept = [k for k in range(4) if not operands or rng.random() < 0.8] or [0]
        order = rng.sample(kept, len(kept))
        shapes.append(tuple([shape[k] for k in order]))
        back = tuple([sorted(kept).index(k) for k in order])
        turned = f"np.transpose({name}, {tuple(np.argsort(back).tolist())})"
        wide = tuple([n if k in kept else 1 for k, n in enumerate(shape)])
        operands.append(f"{turned}.reshape({wide})" if len(kept) < 4 else turned)
    body = operands[0]
    for operand in operands[1:]:
        body = f"({body} {rng.choice('+-*')} {operand})"
    if rng.random() < 0.3:
        body = f"np.transpose({body}, {tuple(rng.sample(range(4), 4))})"
    reducer = rng.choice(REDUCERS)
    some = tuple(sorted(rng.sample(range(4), rng.randint(1, 4))))
    if rng.random() < 0.15:
        some = tuple(range(rng.randint(2, 3)))
    along = some[0] if reducer == "argmin" else some
    if reducer == "any":
        body = f"{body} > 3"
    elif reducer == "prod":
        body = f"np.where({body} > 2, -1, 1)"
    made = f"np.{reducer}({body}, axis={along})"
    if rng.random() < 0.25:
        made = body
    if reducer in ("max", "sum") and rng.random() < 0.4:
        keep = f"np.{reducer}({body}, axis={along}, keepdims=True)"
        made = f"{body} - {keep}"
    if rng.random() < 0.3:
        made = f"({made}).T * 2"
    return made, shapes


@pytest.mark.parametrize("seed", [0, 1, 2, 1009, 1020, 1031, 1044, 1139])
def test_drawn_reductions_are_numpys(seed: int) -> None:
    rng, values = random.Random(seed), np.random.default_rng(seed)
    for _ in range(8):
        text, shapes = drawn(rng)
        sums = not any([name in text for name in ("max", "min", "ptp", ">")])
        dtype = rng.choice(DTYPES) if sums else "int32"
        args = [values.integers(-2, 4, shape).astype(dtype) for shape in shapes]
        want = eval(f"lambda np, x, y=0, z=0: {text}")(np, *args)
        f = eval(f"lambda x, y=0, z=0: {text}", {"np": jnp})
        got = nj.jit(f)(*args)
        assert np.array_equal(got, want), (text, shapes)


def test_every_order_of_a_batched_product() -> None:
    """Every way to share, keep and sum up to three axes of one operand with one of one or two."""
    sizes, rng = {"a": 33, "b": 24, "c": 25}, np.random.default_rng(3)
    specs = []
    for right in (*itertools.permutations("abc", 3), *itertools.permutations("abc", 2)):
        kept = "".join([axis for axis in "abc" if axis not in right])
        for count in range(3):
            for batch in itertools.permutations(right, count):
                specs.append((("abc", "".join(right)), "".join(batch) + kept))
    for k, (operands, out) in enumerate(specs):
        if k % 4 != 1:
            continue
        if k % 8 == 1:
            operands = operands[::-1]
        spec = f"{','.join(operands)}->{out}"
        x, y = (rng.integers(-3, 4, [sizes[a] for a in axes]).astype("int32") for axes in operands)
        got = nj.jit(lambda x, y, spec=spec: jnp.einsum(spec, x, y))(x, y)
        assert np.array_equal(got, np.einsum(spec, x, y)), spec


def test_what_an_update_writes_is_read_as_it_lies() -> None:
    """A step of decoding: the cache with a row more, whose products are sums of its rows."""

    def step(query, cache, row, place):
        cache = nj.lax.dynamic_update_slice(cache, row, (0, 0, place, 0))
        return jnp.einsum("bhqd,bhkd->bhqk", query, cache) / 8

    rng = np.random.default_rng(5)
    query, cache, row = (
        rng.integers(-3, 4, (1, 4, n, 64)).astype("float32") for n in (1, 128, 1)
    )
    update, product = kernels(step, query, cache, row, 77)
    assert "tile" not in product and ":f32[1,4,1,128]" in product.replace(": ", ":")
    cache_after = cache.copy()
    cache_after[:, :, 77] = row[:, :, 0]
    want = np.einsum("bhqd,bhkd->bhqk", query, cache_after) / 8
    assert np.array_equal(nj.jit(step)(query, cache, row, 77), want)


@pytest.mark.parametrize("size", [3, 4, 8])
def test_one_small_matrix_times_many_runs_as_the_many_lie(size):
    w, x = (RNG.integers(-5, 6, s).astype(np.float32) for s in ((size, size), (3000, size, size)))
    run = nj.jit(lambda w, x: w @ x)
    np.testing.assert_array_equal(run(w, x), w @ x)
    text = run.lower(w, x).as_text()
    assert text.count("kernel") == 1 and "clamp" not in text
    lanes = [line for line in text.splitlines() if "vector" in line]
    assert all([f"< {size} vector" in line for line in lanes])


def test_a_part_that_is_turned_is_copied_alone():
    x, y = (RNG.integers(-5, 6, (3000, 8, 8)).astype(np.float32) for _ in range(2))
    run = nj.jit(lambda x, y: jnp.einsum("bij,bj->bi", x, y[..., 0]))
    np.testing.assert_array_equal(run(x, y), np.einsum("bij,bj->bi", x, y[..., 0]))
    assert "f32[8,3000,8] out" not in run.lower(x, y).as_text()
