"""The direct generator against LLVM: the same text, the same bits.

Each text is a function of a pointer, compiled by both; both run on equal random memory, and what
they leave there has to be equal. Whole programs are compiled by both as well.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from x86_agree import AVX512, GENERATOR, generated

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base import config
from numjet.cpu.link import link
from numjet.cpu.x86 import generate, listing

pytestmark = GENERATOR


def run_both(text: str, memory: np.ndarray, *arguments: int, name: str = "f") -> None:
    """Run `name`(pointer to memory, arguments) from both generators and compare the memory."""
    made = generated(text)
    assert made is not None, generate.refused
    left = []
    for image in (made, link._compile(text, verify=True)):
        library = link.load([image])
        buffer = memory.copy()
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (1 + len(arguments)))(
            library.address(name)
        )
        function(buffer.ctypes.data, *arguments)
        left.append(buffer)
    np.testing.assert_array_equal(left[0].view(np.uint8), left[1].view(np.uint8))


def lines(*body: str, arguments: str = "ptr %p") -> str:
    """A function `f` of one block."""
    head = f"define void @f({arguments}) nounwind {{"
    return "\n".join([head, "entry:", *body, "  ret void", "}"])


FLOATS = np.array(
    [0.0, -0.0, 1.5, -2.25, 3e38, -1e-40, np.inf, -np.inf, 7.0, 0.1, 100.0, -5e4, 1e-3, 2.0, 9.9,
     -0.5], np.float32,
)  # fmt: skip


@pytest.mark.parametrize("operation", ["fadd", "fsub", "fmul", "fdiv"])
@pytest.mark.parametrize("type,dtype,lanes", [
    ("<16 x float>", np.float32, 16), ("<8 x double>", np.float64, 8),
    ("<16 x double>", np.float64, 16), ("<4 x float>", np.float32, 4), ("float", np.float32, 1),
    ("double", np.float64, 1), ("<2 x float>", np.float32, 2),
])  # fmt: skip
def test_float_arithmetic(operation: str, type: str, dtype: type, lanes: int) -> None:
    size = lanes * np.dtype(dtype).itemsize
    text = lines(
        f"  %a = load {type}, ptr %p, align 4",
        f"  %q = getelementptr i8, ptr %p, i64 {size}",
        f"  %b = load {type}, ptr %q, align 4",
        f"  %x = {operation} {type} %a, %b",
        f"  %y = {operation} {type} %x, %a",
        f"  store {type} %y, ptr %q, align 4",
    )
    rng = np.random.default_rng(3)
    run_both(text, rng.standard_normal(2 * lanes).astype(dtype))


@pytest.mark.parametrize("order", ["%a, T %b, T %c", "%b, T %c, T %a", "%c, T %a, T %a",
                                   "%a, T K, T %b", "%a, T %b, T K", "%a, T K, T K2",
                                   "K, T %a, T %a"])
def test_fused_products(order: str) -> None:
    text = lines(
        "  %a = load T, ptr %p, align 4",
        "  %q = getelementptr i8, ptr %p, i64 64",
        "  %b = load T, ptr %q, align 4",
        "  %r = getelementptr i8, ptr %p, i64 128",
        "  %c = load T, ptr %r, align 4",
        f"  %x = call T @llvm.fma.v16f32(T {order})",
        "  %y = call T @llvm.fma.v16f32(T %x, T %a, T %c)",
        "  store T %y, ptr %q, align 4",
        "  store T %x, ptr %p, align 4",
    )
    text = text.replace("K2", "splat (float 0x3FF8000000000000)")
    text = text.replace("K", "splat (float 0x3FE45F3060000000)").replace("T ", "<16 x float> ")
    text = text.replace("load T,", "load <16 x float>,").replace("T @", "<16 x float> @")
    vector = "<16 x float>"
    text = f"declare {vector} @llvm.fma.v16f32({vector}, {vector}, {vector})\n" + text
    rng = np.random.default_rng(4)
    run_both(text, rng.standard_normal(48).astype(np.float32))


@pytest.mark.parametrize("predicate", [
    "oeq", "olt", "ole", "ogt", "oge", "one", "ord", "uno", "ueq", "ult", "ule", "ugt", "uge",
    "une",
])  # fmt: skip
def test_comparisons_of_floats(predicate: str) -> None:
    text = lines(
        "  %a = load <16 x float>, ptr %p, align 4",
        "  %q = getelementptr i8, ptr %p, i64 64",
        "  %b = load <16 x float>, ptr %q, align 4",
        f"  %m = fcmp {predicate} <16 x float> %a, %b",
        "  %x = select <16 x i1> %m, <16 x float> %a, <16 x float> %b",
        f"  %n = fcmp {predicate} <16 x float> splat (float 0x3FF8000000000000), %b",
        "  %y = select <16 x i1> %n, <16 x float> %x, <16 x float> zeroinitializer",
        "  store <16 x float> %x, ptr %p, align 4",
        "  store <16 x float> %y, ptr %q, align 4",
        "  %r = getelementptr i8, ptr %p, i64 128",
        "  %s = load float, ptr %r, align 4",
        f"  %k = fcmp {predicate} float %s, 0x3FF8000000000000",
        "  %t = select i1 %k, float %s, float 0x4000000000000000",
        "  store float %t, ptr %r, align 4",
    )
    other = np.roll(FLOATS, 3)
    other[[2, 5]] = np.nan
    for s in (1.0, 1.5, np.nan):
        run_both(text, np.concatenate([FLOATS, other, np.full(16, s, np.float32)]))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("predicate", [
    "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
])
def test_integers(bits: int, predicate: str) -> None:
    type = f"i{bits}"
    shifts = [] if bits < 32 else [
        f"  %s = shl {type} %a, 3", f"  %t = ashr {type} %b, 2", f"  %u = lshr {type} %s, 1",
        f"  %v = xor {type} %u, %t",
    ]  # fmt: skip
    last = "%v" if shifts else "%a"
    text = lines(
        f"  %a = load {type}, ptr %p, align 1",
        "  %q = getelementptr i8, ptr %p, i64 8",
        f"  %b = load {type}, ptr %q, align 1",
        *shifts,
        f"  %c = icmp {predicate} {type} %a, %b",
        f"  %x = add {type} {last}, %b",
        f"  %y = mul {type} %x, 7" if bits >= 16 else f"  %y = sub {type} %x, %a",
        f"  %d = icmp {predicate} {type} %y, 5",
        "  %e = xor i1 %c, %d",
        f"  %z = select i1 %e, {type} %x, {type} %y",
        f"  store {type} %z, ptr %q, align 1",
    )
    rng = np.random.default_rng(bits)
    for _ in range(4):
        run_both(text, rng.integers(0, 255, 16).astype(np.uint8))


@pytest.mark.parametrize("operation", ["sdiv", "udiv", "srem", "urem"])
@pytest.mark.parametrize("divisor", ["%b", "7", "8", "-3"])
def test_division(operation: str, divisor: str) -> None:
    text = lines(
        "  %a = load i64, ptr %p, align 8",
        "  %q = getelementptr i8, ptr %p, i64 8",
        "  %b = load i64, ptr %q, align 8",
        f"  %x = {operation} i64 %a, {divisor}",
        "  %m = mul i64 %x, %b",
        "  %y = add i64 %m, %a",
        "  store i64 %y, ptr %p, align 8",
        "  store i64 %x, ptr %q, align 8",
    )
    for a, b in ((100, 7), (-100, 7), (3, -5), (-(1 << 60), 12345)):
        run_both(text, np.array([a, b], np.int64))


def test_loops_and_branches() -> None:
    text = """define void @f(ptr %p, i64 %n) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %join ]
  %a = phi i64 [ 1, %entry ], [ %b, %join ]
  %b = phi i64 [ 2, %entry ], [ %c, %join ]
  %odd = and i64 %i, 1
  %test = icmp eq i64 %odd, 0
  br i1 %test, label %even, label %join
even:
  %double = add i64 %a, %a
  switch i64 %i, label %join [
    i64 2, label %two
    i64 4, label %join
  ]
two:
  br label %join
join:
  %c = phi i64 [ %b, %loop ], [ %double, %even ], [ %a, %even ], [ -7, %two ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 %c, ptr %q, align 8
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  store i64 %a, ptr %p, align 8
  ret void
}
""".replace("    i64 4, label %join\n", "").replace("[ %a, %even ], ", "")
    run_both(text, np.zeros(16, np.int64), 9)


@pytest.mark.parametrize("lanes,made", [(16, 16), (8, 16), (16, 32), (64, 64), (4, 4), (32, 8)])
def test_shuffles_of_masks(lanes: int, made: int) -> None:
    picked = ", ".join(f"i32 {(5 * k + 3) % lanes}" for k in range(made))
    bits = max(8, 128 // made)
    text = lines(
        f"  %a = load <{lanes} x i8>, ptr %p, align 1",
        f"  %m = icmp slt <{lanes} x i8> %a, splat (i8 9)",
        f"  %n = shufflevector <{lanes} x i1> %m, <{lanes} x i1> poison, <{made} x i32> <{picked}>",
        f"  %x = zext <{made} x i1> %n to <{made} x i{bits}>",
        f"  store <{made} x i{bits}> %x, ptr %p, align 1",
    )
    run_both(text, np.random.default_rng(7).integers(-99, 99, 256).astype(np.int8))


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
@pytest.mark.parametrize("operands", ["%a, <16 x float> %b", "%b, <16 x float> %a",
                                      "%a, <16 x float> splat (float 0x3FF8000000000000)",
                                      "splat (float 0x3FF8000000000000), <16 x float> %b"])
def test_extrema_keep_what_is_no_number(kind: str, operands: str) -> None:
    vector = "<16 x float>"
    text = "\n".join([
        f"declare {vector} @llvm.{kind}.v16f32({vector}, {vector})",
        lines(
            f"  %a = load {vector}, ptr %p, align 4",
            "  %q = getelementptr float, ptr %p, i64 16",
            f"  %b = load {vector}, ptr %q, align 4",
            f"  %x = call nsz {vector} @llvm.{kind}.v16f32({vector} {operands})",
            f"  store {vector} %x, ptr %p, align 4",
        ),
    ])
    values = np.concatenate([FLOATS, np.roll(FLOATS, 5)])
    run_both(text.replace("call nsz", "call nnan nsz"), values)  # where there are none
    values[[1, 3, 20, 23]] = np.nan
    run_both(text, values)


def test_broadcast_numbers_leave_loops() -> None:
    text = """define void @f(ptr %p, i64 %n) nounwind {
entry:
  %s = load float, ptr %p, align 4
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %ni, %last ]
  %t = sitofp i64 %i to float
  br label %loop
loop:
  %j = phi i64 [ 0, %outer ], [ %nj, %loop ]
  %v = insertelement <16 x float> poison, float %s, i64 0
  %w = shufflevector <16 x float> %v, <16 x float> poison, <16 x i32> zeroinitializer
  %x = insertelement <16 x float> poison, float %t, i64 0
  %y = shufflevector <16 x float> %x, <16 x float> poison, <16 x i32> zeroinitializer
  %q = getelementptr float, ptr %p, i64 %j
  %a = load <16 x float>, ptr %q, align 4
  %b = fadd <16 x float> %a, %w
  %c = fmul <16 x float> %b, %y
  store <16 x float> %c, ptr %q, align 4
  %nj = add i64 %j, 16
  %mj = icmp slt i64 %nj, %n
  br i1 %mj, label %loop, label %last
last:
  %ni = add i64 %i, 1
  %mi = icmp slt i64 %ni, 3
  br i1 %mi, label %outer, label %done
done:
  ret void
}
"""
    run_both(text, np.random.default_rng(1).standard_normal(64).astype(np.float32), 64)


@pytest.mark.parametrize("kind", ["fmaximum", "fminimum"])
@pytest.mark.parametrize("nan", [None, 0, 15])
def test_extrema_of_lanes(kind: str, nan: int | None) -> None:
    values = FLOATS.copy()
    if nan is not None:
        values[nan] = np.nan
    text = "\n".join([
        f"declare float @llvm.vector.reduce.{kind}.v16f32(<16 x float>)",
        lines(
            "  %a = load <16 x float>, ptr %p, align 4",
            f"  %x = call nsz float @llvm.vector.reduce.{kind}.v16f32(<16 x float> %a)",
            "  store float %x, ptr %p, align 4",
        ),
    ])
    run_both(text, values)


@pytest.mark.parametrize("by,back", [(13, 19), (1, 31), (13, 18)])
def test_rotations(by: int, back: int) -> None:
    text = lines(
        "  %a = load <16 x i32>, ptr %p, align 4",
        f"  %x = shl <16 x i32> %a, splat (i32 {by})",
        f"  %y = lshr <16 x i32> %a, splat (i32 {back})",
        "  %z = or <16 x i32> %y, %x",
        "  %w = xor <16 x i32> %z, %a",
        "  store <16 x i32> %w, ptr %p, align 4",
    )
    run_both(text, np.random.default_rng(8).integers(0, 1 << 31, 16).astype(np.int32))


def test_a_number_for_all_lanes_is_read_by_its_reader() -> None:
    text = "\n".join([
        "declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)",
        lines(
            "  %a = load float, ptr %p, align 4",
            "  %s = insertelement <16 x float> poison, float %a, i64 0",
            "  %v = shufflevector <16 x float> %s, <16 x float> poison, "
            "<16 x i32> zeroinitializer",
            "  %q = getelementptr float, ptr %p, i64 16",
            "  %b = load <16 x float>, ptr %q, align 4",
            "  %x = call <16 x float> @llvm.fma.v16f32(<16 x float> %v, <16 x float> %b, "
            "<16 x float> %b)",
            "  store <16 x float> %x, ptr %p, align 4",
        ),
    ])
    run_both(text, np.random.default_rng(9).standard_normal(32).astype(np.float32))


def test_more_values_than_registers() -> None:
    loads = [f"  %v{k} = load <16 x float>, ptr %p{k}, align 4" for k in range(40)]
    places = [f"  %p{k} = getelementptr float, ptr %p, i64 {16 * k}" for k in range(40)]
    sums = [f"  %s{k} = fadd <16 x float> %v{k}, %v{39 - k}" for k in range(40)]
    products = [f"  %m{k} = fmul <16 x float> %s{k}, %v{(k * 7) % 40}" for k in range(40)]
    stores = [f"  store <16 x float> %m{k}, ptr %p{k}, align 4" for k in range(40)]
    rng = np.random.default_rng(5)
    run_both(lines(*places, *loads, *sums, *products, *stores),
             rng.standard_normal(640).astype(np.float32))


PROGRAMS = {
    "chain": lambda x: jnp.tanh(jnp.exp(-x * x) + jnp.sin(x)),
    "rows": lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(1),
    "columns": lambda x: (x * x).sum(0) + x.var(0),
    "softmax": lambda x: nj.nn.softmax(x, axis=-1),
    "sort": lambda x: jnp.sort(x, axis=1),
    "cumsum": lambda x: jnp.cumsum(x, axis=0),
    "take": lambda x: x[jnp.argmax(x, axis=1)],
    "transposed": lambda x: x.T + x[:, :1].T,
    "half": lambda x: (x.astype(jnp.float16) * 3).astype(jnp.float32).sum(0),
    "bfloat": lambda x: (x.astype(jnp.bfloat16) + 1).astype(jnp.float32),
    "bytes": lambda x: (x > 0).astype(jnp.int8).sum(1),
    "loop": lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) + c * i, x),
    "product": lambda x: x @ x.T + 1,
    "gradient": lambda x: nj.grad(lambda y: (jnp.tanh(y @ y.T) ** 2).mean())(x),
    "integers": lambda x: (x * 100).astype(jnp.int32) // 7 % 5,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_equal_bits(name: str) -> None:
    x = np.random.default_rng(6).standard_normal((13, 21)).astype(np.float32)
    program = PROGRAMS[name]
    results = []
    for on in (False, True):
        with config.direct_code(on):
            results.append(np.asarray(nj.jit(lambda x: program(x))(x)))  # noqa: B023
    np.testing.assert_array_equal(results[0].view(np.uint8), results[1].view(np.uint8))


def test_the_listing_shows_what_runs() -> None:
    with config.direct_code(True):
        text = nj.jit(PROGRAMS["chain"]).lower(np.ones(100, np.float32)).compile()
        shown = text.as_text("assembly")
    scaled = "vscalefps zmm" if link.vector_bytes() == 64 else "vpslldi ymm"
    for part in (scaled, "vfmadd", "ret", "0x"):
        assert part in shown
    assert listing.listing("declare nothing\nfence seq_cst\n") is None


def test_what_is_refused() -> None:
    assert generated("define void @f(ptr %p) {\n  %x = load atomic i32, ptr %p seq_cst, "
                             "align 4\n  ret void\n}\n") is None
    assert any(re.search("atomic", reason) for reason in generate.refused)


def test_number_that_ends_in_a_multiply_add_of_wide_values() -> None:
    """Its parts share no register there: each multiply-add writes its own."""
    call = "call <64 x float> @llvm.fma.v64f32(<64 x float>"
    text = "\n".join([
        "declare <64 x float> @llvm.fma.v64f32(<64 x float>, <64 x float>, <64 x float>)",
        lines(
            "  %x = load float, ptr %p",
            "  %one = insertelement <64 x float> poison, float %x, i64 0",
            "  %all = shufflevector <64 x float> %one, <64 x float> poison,"
            " <64 x i32> zeroinitializer",
            "  %q = getelementptr i8, ptr %p, i64 256",
            "  %y = load <64 x float>, ptr %p, align 4",
            "  %z = load <64 x float>, ptr %q, align 4",
            f"  %s = {call} %all, <64 x float> %y, <64 x float> %z)",
            f"  %t = {call} %s, <64 x float> %y, <64 x float> %s)",
            "  store <64 x float> %t, ptr %p, align 4",
        ),
    ])  # fmt: skip
    run_both(text, np.random.default_rng(0).random(128).astype(np.float32))


@AVX512
def test_a_result_that_vanishes_is_left_out_by_the_scaling() -> None:
    scale, wide = "@llvm.x86.avx512.mask.scalef.ps.512", "<16 x float>"
    bound = ", ".join(["float -9.0"] * 16)
    text = f"""
declare {wide} {scale}({wide}, {wide}, {wide}, i16, i32)
define void @f(ptr %p, ptr %q) {{
entry:
  %x = load {wide}, ptr %p, align 4
  %n = load {wide}, ptr %q, align 4
  %kept = fcmp uge {wide} %n, <{bound}>
  %y = call {wide} {scale}({wide} %x, {wide} %n, {wide} %x, i16 -1, i32 4)
  %z = select <16 x i1> %kept, {wide} %y, {wide} zeroinitializer
  store {wide} %z, ptr %p, align 4
  ret void
}}
"""
    shown = listing.listing(text)
    assert shown is not None
    assert "vscalefps zmm0, zmm1, zmm0, k1" in shown and shown.count("vmov") == 3
