"""Programs of symbolic sizes, called with many: each gives what the function gives for those."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import numjet as nj
from numjet import export, lax, nn, numpy as jnp, ops
from numjet.errors import InconclusiveDimensionOperation


def run(f, shapes, *sizes, constraints=()):
    """Export `f` for shapes, texts, and call it with arrays of each of the sizes, against `f`."""
    scope = export.SymbolicScope(constraints)
    specs = [nj.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), np.float32) for s in shapes]
    exported = export.export(nj.jit(f))(*specs)
    for shape in sizes:
        args = [np.random.default_rng(3).normal(size=s).astype(np.float32) for s in shape]
        got, want = exported.call(*args), f(*args)
        for a, b in zip(nj.tree.leaves(got), nj.tree.leaves(want), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return exported


@pytest.mark.parametrize("step", [lambda b: b, lambda b: -b, lambda b: -1, lambda b: -3])
def test_slices_with_ends_and_steps_of_symbolic_sizes(step):
    places = [lambda b: None, lambda b: 1, lambda b: b, lambda b: 2 * b + 1, lambda b: -b]
    for start, stop in itertools.product(places, places):
        run(lambda x, a=start, o=stop: x[a(x.shape[1]):o(x.shape[1]):step(x.shape[1])], ["a, b"],
            [(11, 4)], [(3, 5)])  # fmt: skip


def test_gradients_of_slices_in_symbolic_steps():
    run(nj.grad(lambda x: (x[:: -x.shape[1]] ** 2).sum()), ["a, b"], [(9, 2)], [(4, 5)])


def test_pads_ranges_and_repeats_of_symbolic_sizes():
    for mode in ("constant", "edge", "wrap", "mean", "maximum"):
        run(lambda x, m=mode: jnp.pad(x, [[x.shape[0], 1], [0, x.shape[1]]], mode=m), ["a, b"],
            [(2, 3)], [(4, 2)])  # fmt: skip
    run(lambda x: jnp.repeat(x, x.shape[0], axis=1), ["a, 2"], [(3, 2)])
    run(lambda x: jnp.repeat(x, x.shape[1]), ["a, b"], [(3, 2)], [(2, 4)])
    with pytest.raises(ValueError, match="`total_repeat_length` is None"):
        run(lambda x: jnp.repeat(x, x.shape[0], total_repeat_length=4), ["a"])
    with pytest.raises(ValueError, match="dimension expressions or integers"):
        run(lambda x: jnp.arange(0, x.shape[0], 0.5), ["a"])
    with pytest.raises(ValueError, match="has step == 0"):
        run(lambda x: jnp.arange(0, x.shape[0], 0), ["a"])


def test_windows_buckets_and_contractions_of_symbolic_sizes():
    for fold, start in ((lax.add, 0.0), (lax.max, 0.0), (lax.min, 2.0), (lax.add, 1.0)):
        run(lambda x, f=fold, s=start: lax.reduce_window(x, s, f, (2, x.shape[0]), (1, 1), "VALID"),
            ["a, 9"], [(3, 9)], [(5, 9)])  # fmt: skip
    with pytest.raises(NotImplementedError, match="a window of symbolic size"):
        run(lambda x: lax.reduce_window(x, 0.0, lambda a, b: a * b + 1, x.shape, (1, 1), "VALID"),
            ["a, b"])  # fmt: skip
    ids = np.array([0, 2, 2, 1])
    run(lambda x, y: ops.segment_sum(x, ids, num_segments=3, bucket_size=y.shape[0]), ["4", "b"],
        [(4,), (2,)], [(4,), (3,)])  # fmt: skip
    run(lambda x: jnp.einsum("ab,bc,ad->cd", x, jnp.ones((3, 2)), x), ["a, 3"], [(4, 3)])
    run(lambda x, y: lax.approx_max_k(x, y.shape[0])[0], ["9", "k"], [(9,), (3,)],
        constraints=["k <= 9"])  # fmt: skip


def test_what_needs_sizes_says_so():
    for f, error, text in (
        (lambda x: jnp.squeeze(x), ValueError, "axis=None is not supported"),
        (lambda x: jnp.split(x, x.shape[0]), ValueError, "symbolic number of sections"),
        (lambda x: [*x], InconclusiveDimensionOperation, "requires a constant"),
        (lambda x: jnp.einsum("ab,bc->ac", x, x), AssertionError, "Incompatible reduction"),
        (lambda x: lax.approx_max_k(x, x.shape[1], aggregate_to_topk=False), NotImplementedError,
         "aggregate_to_topk=False"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            run(f, ["a, b"])


def test_how_sizes_are_written():
    a, b = export.symbolic_shape("a, b")
    sliced = run(lambda x: nn.relu(x[-1 : -x.shape[1] : -1]), ["a, b"], [(3, 4)])
    assert str(sliced.out_avals[0].shape[0]) == "- max(- 1, - b + a) + a - 1"
    assert (a // b >= 0) and (a * b // b >= 0)
