"""Long runs of steps as tables, and equal groups that are lowered once."""

import numpy as np
import pytest

import numjet
import numjet.numpy as jnp
from numjet import lax


def _llvm(function, *arguments):
    return numjet.jit(function).lower(*arguments).compile().as_text()


def _layers(count):
    def run(x, w):
        for _ in range(count):
            x = jnp.tanh(x @ w)
        return x

    return run


def _operands(n=32):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, n), np.float32), rng.standard_normal((n, n), np.float32) / 6


def _expected(count, x, w):
    for _ in range(count):
        x = np.tanh(x @ w)
    return x


def test_many_equal_layers_are_a_table():
    x, w = _operands()
    np.testing.assert_allclose(
        numjet.jit(_layers(40))(x, w), _expected(40, x, w), rtol=2e-3, atol=2e-4
    )
    short, long = _llvm(_layers(40), x, w), _llvm(_layers(80), x, w)
    assert "define i32 @numjet_main" not in long
    assert long.count("define") == short.count("define")
    assert long.count("\n") == short.count("\n")


def test_control_flow_needs_a_main_function():
    x, w = _operands()

    def run(x, w, many):
        return lax.cond(many, lambda x: _layers(20)(x, w), lambda x: _layers(3)(x, w), x)

    text = _llvm(run, x, w, True)
    assert text.count("call i32 @nj_program_steps") == 1  # twenty steps; three are calls
    assert text.count("call void @nj_program_places") == 1
    for many, count in ((True, 20), (False, 3)):
        np.testing.assert_allclose(
            numjet.jit(run)(x, w, many), _expected(count, x, w), rtol=2e-3, atol=2e-4
        )
    np.testing.assert_allclose(
        numjet.jit(_layers(3))(x, w), _expected(3, x, w), rtol=1e-4, atol=1e-5
    )


def test_a_table_inside_a_loop_reads_the_carry():
    x, w = _operands(16)

    def run(x, w):
        return lax.fori_loop(0, 3, lambda _, x: _layers(20)(x, w), x)

    np.testing.assert_allclose(
        numjet.jit(run)(x, w), _expected(60, x, w), rtol=2e-3, atol=2e-4
    )


def test_equal_groups_keep_their_own_operands():
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal((20, 30), np.float32) for _ in range(16)]

    def run(*xs):
        shares = [jnp.exp(x) / jnp.exp(x).sum(1, keepdims=True) for x in xs]
        return [share.sum(0) + k for k, share in enumerate(shares)]

    for k, (found, x) in enumerate(zip(numjet.jit(run)(*xs), xs, strict=True)):
        e = np.exp(x)
        np.testing.assert_allclose(found, (e / e.sum(1, keepdims=True)).sum(0) + k, rtol=1e-5)


def test_results_and_constants_in_a_table():
    rng = np.random.default_rng(2)
    consts = [rng.standard_normal(500).astype(np.float32) for _ in range(20)]

    def run(x):
        outs = []
        for c in consts:
            x = jnp.cumsum(jnp.flip(x) * c) / 500
            outs.append(x)
        return outs

    x = expected = rng.standard_normal(500).astype(np.float32)
    for found, c in zip(numjet.jit(run)(x), consts, strict=True):
        expected = np.cumsum(expected[::-1].astype(np.float64) * c) / 500
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_copies_and_callbacks_are_steps():
    seen = []

    def note(x):
        seen.append(float(x))
        return x + 1

    def run(x, y):
        z = numjet.pure_callback(note, jnp.sum(x), jnp.sum(x))
        return x, z * 2, y.at[1].set(7.0), y

    x, y = np.arange(5, dtype=np.float32), np.zeros(3, np.float32)
    assert "define i32 @numjet_main" not in _llvm(run, x, y)
    same, z, changed, kept = numjet.jit(run)(x, y)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(changed, [0, 7, 0])
    np.testing.assert_array_equal(kept, y)
    assert z == 22 and seen[-1] == 10


def test_a_callback_that_fails_ends_the_program():
    def fail(x):
        raise KeyError("a callback's own")

    def run(x):
        y = numjet.pure_callback(fail, x, x)
        return numjet.pure_callback(lambda y: done.append(1) or y, y, y)

    done: list = []
    with pytest.raises(KeyError, match="a callback's own"):
        numjet.jit(run)(np.ones(3, np.float32))
    assert not done


def test_programs_without_steps_or_arguments():
    assert numjet.jit(lambda: 3)() == 3
    assert numjet.jit(lambda x: ())(np.ones(2)) == ()
    assert numjet.jit(lambda x: x)(np.float32(4)) == 4


def test_products_of_different_shapes_in_different_modules():
    """Their calls look alike but for tables of sizes, which each module numbers for itself."""
    rng = np.random.default_rng(0)
    sizes = (256, 192, 320, 128)
    weights = [
        rng.standard_normal((m, n)).astype(np.float32) / 16
        for m, n in zip(sizes, sizes[1:], strict=False)
    ]
    x = rng.standard_normal((128, 256)).astype(np.float32)

    def run(x, weights, np):
        for k, w in enumerate(weights):
            x = (np.tanh, np.sin, np.arctan)[k](np.exp(-np.abs(x @ w)) + np.log1p(x[:, :1] ** 2))
        return x

    got = numjet.jit(lambda x, weights: run(x, weights, jnp))(x, weights)
    np.testing.assert_allclose(got, run(x, weights, np), rtol=1e-4, atol=1e-5)
