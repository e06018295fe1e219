"""The Program: buffer planning, donation, printing, and the calls back into Python."""

from __future__ import annotations

import numpy as np
import pytest
from jaxpr_interpreter import compiled, interpret, spec

from numjet.core.avals import ShapedArray
from numjet.core.lowering import Host
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, full, reduce_sum, transpose
from numjet.cpu import backend
from numjet.cpu.graph.nodes import Val
from numjet.cpu.program.buffers import plan
from numjet.cpu.program.steps import CopyStep, KernelStep, Place, Program, Slot
from numjet.cpu.runtime import memory
from numjet.ops import transcendental as fn
from numjet.ops.arithmetic import add, mul
from numjet.ops.dot import dot_general
from numjet.ops.scan import scan
from numjet.ops.sort import sort
from numjet.transforms.stage import stage_closed

F32 = np.dtype(np.float32)
PRODUCT = (((1,), (0,)), ((), ()))


def temporary(nbytes):
    val = Val((nbytes,), np.dtype(np.uint8))
    val.place = Place(Slot("arena", nbytes))
    return val


def test_memory_is_reused_when_values_die():
    vals = [temporary(1000 + 64 * k) for k in range(6)]
    program = Program(steps=[CopyStep(a, b) for a, b in zip(vals, vals[1:])])
    plan(program)
    slots = [v.place.slot.owner() for v in vals]
    assert program.arena_bytes < sum(-(-s.nbytes // 64) * 64 for s in slots)
    for a, b in zip(slots, slots[1:]):
        apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
        assert apart  # both live while one is copied to the other


def test_equal_sizes_share_memory_in_place():
    vals = [temporary(640) for _ in range(5)]
    program = Program(steps=[CopyStep(a, b) for a, b in zip(vals, vals[1:])])
    plan(program)
    assert program.arena_bytes == 640


def test_temporaries_of_a_network():
    def network(x, w):
        for _ in range(8):
            x = fn.tanh(dot_general(x, w, PRODUCT))
        return x

    run = compiled(network, spec(64, 64), spec(64, 64), tolerance=1e-3)
    assert run.memory_analysis()["temp_size_in_bytes"] <= 2 * 64 * 64 * 4 + 128
    assert run.memory_analysis()["argument_size_in_bytes"] == 2 * 64 * 64 * 4


def test_donated_memory_is_taken_over():
    run = compiled(lambda x, y: add(mul(x, x), y), spec(100), spec(100), options={"donate": (0,)})
    x, y = np.ones(100, np.float32), np.ones(100, np.float32)
    (out,) = run([x, y])
    assert out.ctypes.data == x.ctypes.data and (out == 2).all()
    assert run.memory_analysis()["alias_size_in_bytes"] == 400


def test_donation_of_what_is_still_read_copies():
    run = compiled(lambda x: [add(x, transpose(x, (1, 0)))], spec(20, 20), options={"donate": (0,)})
    x = np.arange(400, dtype=np.float32).reshape(20, 20)
    (out,) = run([x.copy()])
    np.testing.assert_array_equal(out, x + x.T)


def test_donated_read_only_argument_is_left_alone():
    run = compiled(lambda x: add(x, x), spec(10), options={"donate": (0,)})
    x = np.ones(10, np.float32)
    x.flags.writeable = False
    (out,) = run([x])
    assert (x == 1).all() and (out == 2).all()


def test_equal_kernels_are_written_once():
    def layers(x, w):
        for _ in range(10):
            x = dot_general(x, w, PRODUCT)
            e = fn.exp(x)
            x = mul(e, broadcast_in_dim(reduce_sum(e, (1,)), x.shape, (0,)))
            x = mul(x, broadcast_in_dim(full((), 1e-3, F32), x.shape, ()))
        return x

    run = compiled(
        layers,
        spec(32, 32),
        spec(32, 32),
        tolerance=1.0,
        args=[np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)],
    )
    kernels = [
        line for line in run.llvm_text().splitlines()
        if line.startswith("define void @product_with_behind")
    ]
    assert len(kernels) == 1


def test_texts():
    run = compiled(lambda x: [fn.exp(x), reduce_sum(x, (0,))], spec(50))
    assert "kernel" in run.program_text() and "exp(" in run.kernels_text()
    assert "define void @" in run.llvm_text() and "ret" in run.assembly()
    assert run.cost_analysis()["flops"] > 0 and run.cost_analysis()["bytes accessed"] >= 200


def _host(name, reference):
    return Primitive(
        name,
        abstract=lambda x: x,
        reference=reference,
        batch=lambda *a, **k: None,
        loops=Host(),
        differentiable=False,
    )


@pytest.fixture
def host_primitive():
    from numjet.core.primitive import REGISTRY

    names = []

    def make(name, reference):
        names.append(name)
        return _host(name, reference)

    yield make
    for name in names:
        del REGISTRY[name]


def test_host_calls(host_primitive):
    seen = []

    def reference(x):
        seen.append(x.shape)
        return np.sort(x)

    primitive = host_primitive("test_host_sort", reference)
    run = compiled(lambda x: [add(primitive.bind(fn.exp(x)), x)], spec(17))
    assert run.host_calls == ["test_host_sort"] and len(seen) == 2


def test_host_call_in_a_loop(host_primitive):
    primitive = host_primitive("test_host_flip", lambda x: x[::-1])
    run = compiled(
        lambda c, xs: scan(lambda c, x: (primitive.bind(add(c, x)), None), c, xs)[0],
        spec(5),
        spec(4, 5),
    )
    assert run.host_calls == ["test_host_flip"]


def test_exception_in_a_host_call_reaches_the_caller(host_primitive):
    def reference(x):
        if x[0] > 0:
            raise KeyError("from the callback")
        return x

    primitive = host_primitive("test_host_fails", reference)
    closed = stage_closed(lambda x: [add(primitive.bind(x), x)], [spec(3)])
    run = backend.compile(closed)
    with pytest.raises(KeyError, match="from the callback"):
        run([np.ones(3, np.float32)])
    np.testing.assert_array_equal(run([-np.ones(3, np.float32)])[0], -2 * np.ones(3))


def test_sort_runs_somehow():
    compiled(lambda x: sort(x), spec(5, 100))


def test_arguments_constants_and_repetitions_as_results():
    table = np.arange(6, dtype=np.float32).reshape(2, 3)

    def passing(x):
        y = add(x, x)
        return [x, y, x, y, table_of(table)]

    def table_of(value):
        from numjet.core.array import as_array

        return as_array(value)

    closed = stage_closed(passing, [spec(2, 3)])
    run = backend.compile(closed)
    x = np.ones((2, 3), np.float32)
    outs = run([x])
    for got, want in zip(outs, interpret(closed, x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert len({o.ctypes.data for o in outs}) == len(outs) and outs[0].ctypes.data != x.ctypes.data


def test_keys_are_moved_as_words():
    from numjet.core.dtypes import key_dtype

    closed = stage_closed(lambda k: [transpose(k, (1, 0))], [ShapedArray((2, 3), key_dtype)])
    words = np.arange(6, dtype=np.uint64).reshape(2, 3)
    (out,) = backend.compile(closed)([words])
    np.testing.assert_array_equal(out, words.T)


def test_what_a_loop_stacks_is_not_overwritten_by_the_next_iteration():
    """A large temporary dies in the loop's body before the stacked result is first written."""

    def run(x, w, wide, back):
        def body(c, row):
            inside = dot_general(mul(c, along(row, c.shape)), wide, PRODUCT)
            return c, dot_general(dot_general(fn.tanh(inside), back, PRODUCT), w, PRODUCT)

        return sort(scan(body, x, full((5, 1), 1.5, F32))[1], dimension=0)

    def along(row, shape):
        return broadcast_in_dim(row, shape, (1,))

    compiled(run, spec(32, 32), spec(32, 32), spec(32, 96), spec(96, 32), tolerance=1e-3)


def test_temporaries_lie_in_results_that_are_written_later():
    def network(x, w):
        first = dot_general(fn.tanh(dot_general(x, w, PRODUCT)), w, PRODUCT)
        return [dot_general(fn.sin(first), w, PRODUCT), dot_general(fn.cos(first), w, PRODUCT)]

    run = compiled(network, spec(128, 128), spec(128, 128), tolerance=1e-3)
    # Only the sine and the cosine, one after the other, live when a result is written.
    assert run.memory_analysis()["temp_size_in_bytes"] == 128 * 128 * 4


def test_results_take_over_operands_that_die():
    def network(x, w):
        return add(mul(dot_general(x, w, PRODUCT), x), w)

    run = compiled(network, spec(64, 64), spec(64, 64), tolerance=1e-3)
    assert run.memory_analysis()["temp_size_in_bytes"] == 0


def test_every_donated_parameter_is_updated_in_place():
    def step(p, q, x):
        slope = dot_general(x, dot_general(p, q, PRODUCT), PRODUCT)
        return [add(p, slope), add(q, mul(slope, x))]

    shapes = [spec(64, 64)] * 3
    closed = stage_closed(step, shapes)
    run = backend.compile(closed, {"donate": (0, 1)})
    arrays = [np.random.default_rng(k).standard_normal((64, 64), np.float32) for k in range(3)]
    expected = interpret(closed, *arrays)
    given = [a.copy() for a in arrays]
    outs = run(given)
    assert {o.ctypes.data for o in outs} == {a.ctypes.data for a in given[:2]}
    for out, want in zip(outs, expected):
        np.testing.assert_allclose(out, want, rtol=1e-3, atol=1e-3)


def test_a_donated_update_allocates_nothing():
    run = compiled(lambda x: mul(x, x), spec(1 << 18), options={"donate": (0,)})
    x = memory.empty((1 << 18,), F32)
    x.fill(2)
    before = memory.stats()
    (out,) = run([x])
    assert memory.stats() == before and out.ctypes.data == x.ctypes.data and (out == 4).all()


def test_small_temporaries_do_not_split_the_room_of_large_ones():
    """By time alone the small one would lie in the first large one's room."""
    big, small, other, tall = (temporary(n) for n in (64_000, 640, 64_000, 64_000))
    alive = [big, tall], [small, tall], [small, other, tall]
    program = Program(steps=[KernelStep(None, vals, vals, []) for vals in alive])
    plan(program)
    assert program.arena_bytes == 128_000 + 640


def test_random_lifetimes_never_overlap():
    rng = np.random.default_rng(0)
    for _ in range(40):
        count = int(rng.integers(2, 30))
        vals = [temporary(int(n)) for n in rng.integers(1, 5000, count)]
        spans = [sorted(rng.integers(0, 40, 2)) for _ in vals]
        steps = []
        for time in range(40):
            alive = [v for v, (a, b) in zip(vals, spans) if a <= time <= b]
            steps.append(KernelStep(None, alive, alive, []))
        program = Program(steps=steps)
        plan(program)
        for i, (a, b) in enumerate(spans):
            for j, (c, d) in enumerate(spans[:i]):
                one, two = vals[i].place.slot, vals[j].place.slot
                if a <= d and c <= b:
                    apart = one.offset + one.nbytes <= two.offset
                    assert apart or two.offset + two.nbytes <= one.offset
        most = max(v.place.slot.offset + v.nbytes for v in vals)
        assert most <= program.arena_bytes
