"""The IR writer: every construct assembles, verifies and computes what NumPy computes."""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from numjet.cpu.builder.builder import Builder, Module, const, const_lanes, like, vector
from numjet.cpu.link import link


def target_machine():
    """A new one each time: the engine that takes it owns it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )


def run(module, name, *args):
    """Assemble, verify, load and call `name` on arrays (their address) and integers."""
    parsed = llvm.parse_assembly(module.text())
    parsed.verify()
    engine = llvm.create_mcjit_compiler(parsed, target_machine())
    engine.finalize_object()
    pointers = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(args))(engine.get_function_address(name))
    call(*pointers)


def elementwise(lanes, emit, *arrays, out):
    """out[:lanes] = emit(b, vectors of the arrays)."""
    types = {"f": "float", "d": "double", "i": "i32", "l": "i64", "b": "i8", "h": "i16"}
    module = Module(link.features())
    args = [(f"a{k}", "ptr") for k in range(len(arrays) + 1)]
    b = Builder(module, "f", args)
    loaded = [
        b.load(p, vector(types[a.dtype.char], lanes)) for p, a in zip(b.args, arrays, strict=False)
    ]
    result = emit(b, *loaded)
    if like(result.type, "i1") == result.type:
        result = b.zext(result, "i8")
    b.store(result, b.args[-1])
    b.ret()
    run(module, "f", *arrays, out)
    return out


X = np.array([1.5, -2.25, 3.0, -0.5, 7.0, 0.25, -9.0, 2.0], np.float32)
Y = np.array([2.0, 2.0, -1.0, 4.0, 0.5, 8.0, 3.0, 1.0], np.float32)
I = np.array([7, -3, 100, -50, 2**30, 1, -1, 6], np.int32)
J = np.array([2, 5, 3, 7, 3, 1, 31, 4], np.int32)


@pytest.mark.parametrize("lanes", [0, 4, 8])
@pytest.mark.parametrize(
    "name, expected",
    [
        ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide),
        ("min", np.minimum), ("max", np.maximum),
    ],
)  # fmt: skip
def test_float_arithmetic(name, expected, lanes):
    n = lanes or 1
    got = elementwise(lanes, lambda b, x, y: getattr(b, name)(x, y), X, Y, out=np.zeros_like(X))
    np.testing.assert_array_equal(got[:n], expected(X, Y)[:n])


@pytest.mark.parametrize(
    "name, expected",
    [
        ("add", np.add), ("mul", np.multiply), ("div", lambda a, b: np.trunc(a / b)),
        ("rem", np.fmod), ("and_", np.bitwise_and), ("or_", np.bitwise_or),
        ("xor", np.bitwise_xor), ("shl", np.left_shift), ("ashr", np.right_shift),
        ("lshr", lambda a, b: (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32)),
        ("min", np.minimum), ("max", np.maximum),
        ("umin", lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32)),
        ("udiv", lambda a, b: (a.view(np.uint32) // b.view(np.uint32)).view(np.int32)),
        ("urem", lambda a, b: (a.view(np.uint32) % b.view(np.uint32)).view(np.int32)),
    ],
)  # fmt: skip
def test_integer_arithmetic(name, expected):
    got = elementwise(8, lambda b, x, y: getattr(b, name)(x, y), I, J, out=np.zeros_like(I))
    np.testing.assert_array_equal(got, expected(I, J))


def test_min_and_max_propagate_nan():
    a = np.array([np.nan, 1.0, np.nan, 3.0], np.float32)
    c = np.array([1.0, np.nan, np.nan, 2.0], np.float32)
    for name, expected in (("min", np.minimum), ("max", np.maximum)):
        got = elementwise(
            4, lambda b, x, y, f=name: getattr(b, f)(x, y), a, c, out=np.zeros_like(a)
        )
        np.testing.assert_array_equal(got, expected(a, c))


def test_unary_and_choice():
    f = np.zeros_like(X)
    np.testing.assert_array_equal(elementwise(8, lambda b, x: b.neg(b.abs(x)), X, out=f), -abs(X))
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.select(b.fcmp("olt", x, 0.0), 0.0, x), X, out=f),
        np.maximum(X, 0),
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x, y: b.fma(x, 2.0, y), X, Y, out=f), X * 2 + Y
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.sqrt(b.abs(x)), X, out=f), np.sqrt(abs(X))
    )
    i = np.zeros_like(I)
    np.testing.assert_array_equal(elementwise(8, lambda b, x: b.abs(b.neg(x)), I, out=i), abs(I))
    np.testing.assert_array_equal(elementwise(8, lambda b, x: b.not_(x), I, out=i), ~I)
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.not_(b.icmp("slt", x, 3)), I, out=np.zeros(8, np.int8)),
        I >= 3,
    )


def test_casts():
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.sitofp(x, "double"), I, out=np.zeros(8)), I
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.uitofp(x, "double"), I, out=np.zeros(8)), I.view(np.uint32)
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.sext(x, "i64"), I, out=np.zeros(8, np.int64)), I
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.trunc(x, "i8"), I, out=np.zeros(8, np.int8)),
        I.astype(np.int8),
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.bitcast(x, "i32"), X, out=np.zeros(8, np.int32)),
        X.view(np.int32),
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.fptrunc(b.fpext(x, "double"), "float"), X, out=X * 0), X
    )
    wild = np.array([1e20, -1e20, np.nan, -1.9], np.float32)
    np.testing.assert_array_equal(
        elementwise(4, lambda b, x: b.fptosi(x, "i32"), wild, out=np.zeros(4, np.int32)),
        np.array([2**31 - 1, -(2**31), 0, -1]),
    )


def test_lanes():
    out = np.zeros_like(X)
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x, y: b.shuffle(x, y, [0, 8, 1, 9, 2, 10, 3, 11]), X, Y, out=out),
        np.stack([X, Y], 1).ravel()[:8],
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.concat([b.slice(x, 4, 4), b.slice(x, 0, 4)]), X, out=out),
        np.roll(X, 4),
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.splat(b.extract(x, 3), 8), X, out=out), X[3]
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.insert(x, 5.0, 2), X, out=out),
        np.where(np.arange(8) == 2, 5, X),
    )
    np.testing.assert_array_equal(
        elementwise(8, lambda b, x: b.add(x, b.iota("i32", 8)), I, out=np.zeros_like(I)),
        I + np.arange(8),
    )


@pytest.mark.parametrize(
    "op, expected", [("add", np.sum), ("mul", np.prod), ("min", np.min), ("max", np.max)]
)
def test_reduce(op, expected):
    got = elementwise(8, lambda b, x: b.reduce(op, x), X, out=np.zeros(1, np.float32))
    np.testing.assert_allclose(got[0], expected(X))
    got = elementwise(8, lambda b, x: b.reduce(op, x), J, out=np.zeros(1, np.int32))
    assert got[0] == expected(J)


def test_any_and_all():
    for limit, any_, all_ in ((100.0, 0, 0), (6.0, 1, 0), (-10.0, 1, 1)):
        got = elementwise(
            8, lambda b, x, l=limit: b.any(b.fcmp("ogt", x, l)), X, out=np.zeros(1, np.int8)
        )
        assert got[0] == any_
        got = elementwise(
            8, lambda b, x, l=limit: b.all(b.fcmp("ogt", x, l)), X, out=np.zeros(1, np.int8)
        )
        assert got[0] == all_


def test_a_wider_float_narrowed_again_is_what_it_was_made_of():
    b = Builder(Module(link.features()), "f", [("x", "ptr")])
    x = b.load(b.args[0], "<8 x half>")
    wide = b.fpext(x, "float")
    assert b.fptrunc(wide, "half") is x
    assert b.fptrunc(b.fpext(wide, "double"), "float") is wide
    assert b.fptrunc(b.fpext(wide, "double"), "half") is not x  # of another type


@pytest.mark.parametrize("kind, dtype", [("i8", np.int8), ("float", np.float32)])
@pytest.mark.parametrize("wide", [False, True])
def test_stores_under_constant_masks(kind, dtype, wide):
    """Lanes outside stay as they were, whether the store is one or some of parts of the vector."""
    masks = [[k < n for k in range(8)] for n in range(1, 9)]
    masks += [mask[::-1] for mask in masks]
    masks += [[k in (1, 2, 6) for k in range(8)], [True, False] * 4]
    features = link.features()
    module = Module(features if wide else features - {"avx512f"})
    b = Builder(module, "f", [("x", "ptr"), ("out", "ptr")])
    x = b.load(b.args[0], f"<8 x {kind}>")
    for n, mask in enumerate(masks):
        place = b.gep(b.args[1], 8 * n, kind)
        b.masked_store(x, place, b.lanes(mask, "i1"))
    b.ret()
    assert wide or module.text().count("call void @llvm.masked.store") == 1  # the last one's
    got = np.full((len(masks), 8), 9, dtype)
    run(module, "f", np.arange(1, 9).astype(dtype), got)
    np.testing.assert_array_equal(got, np.where(masks, np.arange(1, 9), 9))


def test_masked_memory_gather_and_scatter():
    module = Module(link.features())
    b = Builder(module, "f", [("x", "ptr"), ("out", "ptr")])
    x, out = b.args
    mask = b.icmp("slt", b.iota("i32", 8), 5)
    part = b.masked_load(x, mask, b.const(-1.0, "<8 x float>"))
    b.masked_store(part, out, b.icmp("slt", b.iota("i32", 8), 7))
    reverse = b.sub(7, b.iota("i64", 8))
    picked = b.gather(b.gep(x, reverse, "float"), "<8 x float>")
    b.store(picked, b.gep(out, 8, "float"))
    b.scatter(part, b.gep(b.gep(out, 64), b.mul(b.iota("i64", 8), 2), "float"), mask)
    b.prefetch(x)
    b.store(picked, b.gep(out, 128), align=32, nontemporal=True)
    b.ret()
    got = np.full(64, 9.0, np.float32)
    base = (-got.ctypes.data // 4) % 16  # to a multiple of 64 bytes
    run(module, "f", X, got.ctypes.data + 4 * base)
    got = got[base : base + 48]
    np.testing.assert_array_equal(got[:8], [*X[:5], -1, -1, 9])
    np.testing.assert_array_equal(got[8:16], X[::-1])
    np.testing.assert_array_equal(got[16:32:2], [*X[:5], 9, 9, 9])
    np.testing.assert_array_equal(got[32:40], X[::-1])


def test_loops_carry_values():
    module = Module(link.features())
    b = Builder(module, "f", [("n", "i64"), ("out", "ptr")])
    n, out = b.args
    with b.loop(0, n, carried=[b.const(0, "i64"), b.const(1.0, "double")]) as loop:
        total, product = loop.values
        loop.yield_(b.add(total, loop.index), b.mul(product, 2.0))
    b.store(loop.results[0], out)
    b.store(b.fptosi(loop.results[1], "i64"), b.gep(out, 8))
    with b.loop(2, 11, 3) as outer, b.loop(0, 4, carried=()) as inner:
        place = b.gep(out, b.add(16, b.mul(outer.index, 8)))
        b.store(b.add(b.mul(outer.index, 10), inner.index), place)
    b.ret()
    for n in (0, 1, 10):
        got = np.zeros(16, np.int64)
        run(module, "f", n, got)
        assert got[0] == sum(range(n)) and got[1] == 2**n
        assert list(got[[4, 7, 10]]) == [23, 53, 83]


def test_branches_and_while():
    module = Module(link.features())
    b = Builder(module, "f", [("n", "i64"), ("out", "ptr")])
    n, out = b.args
    with b.while_([n, b.const(0, "i64")]) as w:
        value, steps = w.values
        w.test(b.icmp("ne", value, 1))
        odd = b.trunc(value, "i1")
        with b.if_(odd) as branch:
            branch.yield_(b.add(b.mul(value, 3), 1))
        with branch.else_():
            branch.yield_(b.ashr(value, 1))
        w.yield_(branch.results[0], b.add(steps, 1))
    b.store(w.results[1], out)
    with b.if_(b.icmp("sgt", n, 10), otherwise=[n]) as branch:
        branch.yield_(b.mul(n, 100))
    b.store(branch.results[0], b.gep(out, 1, "i64"))
    with b.if_(b.icmp("sgt", n, 10)):
        b.store(n, b.gep(out, 2, "i64"))
    b.ret()
    got = np.zeros(3, np.int64)
    run(module, "f", 27, got)
    assert list(got) == [111, 2700, 27]
    got[:] = 0
    run(module, "f", 8, got)
    assert list(got) == [3, 8, 0]


def test_calls_tables_and_stack():
    module = Module(link.features())
    helper = Builder(module, "twice", [("x", "double")], "double", linkage="internal")
    helper.ret(helper.mul(helper.args[0], 2.0))
    b = Builder(module, "f", [("out", "ptr")])
    table = module.array([1.0, 2.5, -3.0], "double")
    assert module.array([1.0, 2.5, -3.0], "double") == table
    text = module.string("hé")
    b.store(b.call("twice", "double", b.load(b.gep(table, 1, "double"), "double")), b.args[0])
    b.store(b.load(text, "i16"), b.gep(b.args[0], 8))
    spot = b.alloca("i64", 4)
    b.store(b.const(77, "i64"), b.gep(spot, 3, "i64"))
    b.store(b.load(b.gep(spot, 3, "i64"), "i64"), b.gep(b.args[0], 16))
    counter = module.variable("counter", "i64", "5")
    b.store(b.load(counter, "i64"), b.gep(b.args[0], 24))
    b.ret()
    got = np.zeros(4)
    run(module, "f", got)
    assert got[0] == 5.0
    assert got.view(np.uint8)[8:10].tobytes() == "hé".encode()[:2]
    assert got.view(np.int64)[2:].tolist() == [77, 5]


@pytest.mark.parametrize("type", ["float", "double", "half", "bfloat"])
def test_float_constants_are_exact(type):
    import ml_dtypes

    dtype = {"float": np.float32, "double": np.float64, "half": np.float16}.get(
        type, ml_dtypes.bfloat16
    )
    values = [0.1, -0.0, 1e-45, 1e-40, np.inf, -np.inf, 3e38, 65504.0, 1 / 3, 5e-324, 1.00390625]
    module = Module(link.features())
    b = Builder(module, "f", [("out", "ptr")])
    for k, value in enumerate(values):
        b.store(b.const(value, type), b.gep(b.args[0], k, type))
    b.ret()
    got = np.zeros(len(values), dtype)
    run(module, "f", got)
    with np.errstate(over="ignore"):
        expected = np.array(values).astype(dtype)
    np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


def test_text_is_deterministic():
    def text():
        module = Module(link.features())
        b = Builder(module, "f", [("x", "ptr noalias")])
        with b.loop(0, 8) as loop:
            b.store(b.const(1.0, "float"), b.gep(b.args[0], loop.index, "float"))
        b.ret()
        return module.text()

    assert text() == text()


def test_mistakes_are_named():
    b = Builder(Module(link.features()), "f")
    with pytest.raises(TypeError, match="add of i32 and i64; cast one of them"):
        b.add(const(1, "i32"), const(1, "i64"))
    with pytest.raises(TypeError, match="xor is not defined for float"):
        b.xor(const(1.0, "float"), const(1.0, "float"))
    with (
        pytest.raises(TypeError, match="loop carries"),
        b.loop(0, 3, carried=[const(0, "i64")]) as loop,
    ):
        loop.yield_(const(0.0, "float"))
    assert const_lanes([1, 2], "i32").type == "<2 x i32>"
