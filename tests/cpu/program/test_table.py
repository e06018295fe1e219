"""Long runs of steps as tables, and equal groups that are lowered once."""

import numpy as np
import pytest

import numjet
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu.builder.builder import Module
from numjet.cpu.kernels.idioms import table
from numjet.cpu.link import link
from numjet.cpu.program.steps import SpecialStep
from numjet.cpu.program.table import ProgramTable


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

    np.testing.assert_allclose(numjet.jit(run)(x, w), _expected(60, x, w), rtol=2e-3, atol=2e-4)


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
    with pytest.raises(numjet.errors.JaxRuntimeError, match="a callback's own"):
        numjet.jit(run)(np.ones(3, np.float32))
    assert not done


def test_programs_without_steps_or_arguments():
    assert numjet.jit(lambda: 3)() == 3
    assert numjet.jit(lambda x: ())(np.ones(2)) == ()
    assert numjet.jit(lambda x: x)(np.float32(4)) == 4


def test_special_steps_of_different_modules_differ_by_their_tables():
    """Each module numbers its tables for itself: equal calls of table0 need not be equal."""
    modules: list[Module] = []

    def fresh():
        modules.append(Module(link.features()))
        return modules[-1]

    def step(numbers):
        def emit(b, reads, writes):
            b.call("nj_some_kernel", "void", table(b.module, numbers), *reads, *writes)

        return SpecialStep("some", [], [], emit)

    known = ProgramTable(lambda kernel: None, fresh)
    steps = [step(numbers) for numbers in ([1, 2], [1, 3], [1, 2])]
    first, second, third = [known._special(x) for x in steps]
    assert first == third != second
    assert [len(m.functions) for m in modules] == [1, 1, 0]


def test_loops_without_steps_in_programs_with_others():
    def inner(c, row):
        jnp.max(row[:, None] * c[0])  # nobody reads it
        return c, None

    def body(c, u):
        c = lax.cond(u[0, 0] > 0, lambda c: c, lambda c: (c[1], c[0]), c)
        c = lax.scan(inner, c, u)[0]
        return (c[0] + 1, c[1] * 2), c

    x, u = np.arange(1030, dtype=np.float32), np.zeros((5, 2, 1030), np.float32)
    u[::2] = 1
    found, rows = numjet.jit(lambda x, u: lax.scan(body, (x, x), u))(x, u)
    a, b = x, x
    for k in range(5):
        a, b = (a, b) if k % 2 == 0 else (b, a)
        np.testing.assert_array_equal([rows[0][k], rows[1][k]], [a, b])
        a, b = a + 1, b * 2
    np.testing.assert_array_equal(found, [a, b])
