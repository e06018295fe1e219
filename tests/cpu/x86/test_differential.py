"""Random modules compiled by both generators: the results are the same to the bit."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import GENERATOR, generated
from x86_lanes import Lanes
from x86_pressure import Pressure, clobbering
from x86_programs import INPUT_BYTES, OUTPUT_BYTES, Program, Type, inputs

from numjet.cpu.link import link
from numjet.cpu.x86 import generate

pytestmark = GENERATOR
DTYPES = {
    "float": np.float32, "double": np.float64, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32,
    "i64": np.uint64,
}


def run(image: bytes, seed: int) -> np.ndarray:
    """What the module's function writes."""
    library = link.load([image], ["f"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    data = np.frombuffer(inputs(seed), np.uint8).copy()
    out = np.zeros(OUTPUT_BYTES, np.uint8)
    assert data.size == INPUT_BYTES
    function(library.address("f"))(data.ctypes.data, out.ctypes.data, 3)
    return out


def read(out: np.ndarray, place: int, type: Type) -> np.ndarray:
    lanes, element = type
    dtype = np.dtype(DTYPES[element])
    return np.frombuffer(out[place : place + max(lanes, 1) * dtype.itemsize].tobytes(), dtype)


def compare(program: Program, ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    for place, type in program.results:
        x, y = read(ours, place, type), read(theirs, place, type)
        if type[1] in ("float", "double"):
            nan = np.isnan(x) & np.isnan(y)
            x, y = np.where(nan, 0, x), np.where(nan, 0, y)
        assert x.tobytes() == y.tobytes(), f"{what}, {type} at {place}:\n{x}\n{y}"


@pytest.fixture(autouse=True)
def crowded(monkeypatch):
    """Loops whose values do not fit in the registers are compiled, which is left to LLVM else."""
    monkeypatch.setattr(generate, "crowded", lambda s: False)


def agree(kind, steps, seeds, least):
    """Programs of `kind` give the same by both generators; ours takes `least` of them or more."""
    compiled = 0
    for seed in seeds:
        program = kind(seed, steps)
        text = program.text()
        image = generated(text)
        if image is not None:
            compiled += 1
            compare(program, run(image, seed), run(link._compile(text), seed), f"seed {seed}")
    assert compiled >= least


@pytest.mark.parametrize("steps, seeds, least", [
    (4, range(0, 60), 55), (12, range(60, 140), 65), (30, range(140, 200), 35),
])
def test_both_generators_agree(steps, seeds, least):
    agree(Program, steps, seeds, least)


def test_both_generators_agree_on_lanes_and_masks():
    agree(Lanes, 14, range(300, 380), 35)  # AVX-512's mask registers have fewer patterns than lanes


@pytest.fixture
def callee():
    """What cold blocks of the programs call."""
    library = link.load([link._compile(clobbering())])
    link.define_symbol("nj_clobbering", library.address("nj_clobbering"))
    yield
    del link._symbols["nj_clobbering"]


@pytest.mark.parametrize("steps, seeds, least", [
    (6, range(0, 60), 50), (20, range(60, 140), 60), (60, range(140, 170), 14),
])
def test_both_generators_agree_where_registers_run_out(steps, seeds, least, callee):
    agree(Pressure, steps, seeds, least)


COLD = """declare double @nj_clobbering(double, i64) cold
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
define void @f(ptr %in, ptr %out, i64 %n) nounwind {
entry:
  %first = load <8 x double>, ptr %in, align 1
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %warm ]
  %x = phi <8 x double> [ zeroinitializer, %entry ], [ %z, %warm ]
  %sum = phi double [ 0.0, %entry ], [ %sum1, %warm ]
  %y = fmul <8 x double> %x, splat (double 1.5)
  %odd = and i64 %k, 1
  %c = icmp eq i64 %odd, 0
  br i1 %c, label %rare, label %warm
rare:
  %r = call double @nj_clobbering(double %sum, i64 %k)
  br label %warm
warm:
  %sum1 = phi double [ %r, %rare ], [ %sum, %loop ]
  %z = call <8 x double> @llvm.fma.v8f64(<8 x double> %y, <8 x double> splat (double 0.25), <8 x double> splat (double 3.0))
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 5
  br i1 %more, label %loop, label %end
end:
  %q = getelementptr i8, ptr %out, i64 64
  store <8 x double> %z, ptr %out, align 1
  store double %sum1, ptr %q, align 1
  ret void
}
"""  # noqa: E501


def test_constants_of_loops_come_back_behind_cold_calls(callee):
    image = generated(COLD)
    assert image is not None
    np.testing.assert_array_equal(run(image, 1), run(link._compile(COLD), 1))


CARRIED = {
    # A call gives what the loop carries: the old value is read before it, and kept by nobody.
    "call": """define internal double @g(double %x) nounwind {
entry:
  %r = fmul double %x, 0.5
  ret double %r
}
define void @f(ptr %in, ptr %out, i64 %n) nounwind {
entry:
  %first = load double, ptr %in, align 1
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]
  %x = phi double [ 1024.0, %entry ], [ %y, %loop ]
  %sum = fadd double %x, 1.0
  %y = call double @g(double %x)
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %loop, label %end
end:
  %at = getelementptr i8, ptr %out, i64 8
  store double %y, ptr %out, align 1
  store double %sum, ptr %at, align 1
  ret void
}
""",
    # The pattern of a shuffle of the carried value alone must not take its register.
    "shuffle": """define void @f(ptr %in, ptr %out, i64 %n) nounwind {
entry:
  %first = load <8 x i64>, ptr %in, align 1
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]
  %x = phi <8 x i64> [ %first, %entry ], [ %y, %loop ]
  %y = shufflevector <8 x i64> %x, <8 x i64> %x, <8 x i32> <i32 15, i32 6, i32 3, i32 8, i32 8, i32 12, i32 13, i32 8>
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %loop, label %end
end:
  store <8 x i64> %y, ptr %out, align 1
  ret void
}
""",  # noqa: E501
    "constants": """define void @f(ptr %in, ptr %out, i64 %n) nounwind {
entry:
  %x = sub i32 1, 2
  store i32 %x, ptr %out, align 1
  ret void
}
""",
}


@pytest.mark.parametrize("name", CARRIED)
def test_both_generators_agree_on_what_loops_carry_and_on_constants(name):
    image = generated(CARRIED[name])
    assert image is not None
    np.testing.assert_array_equal(run(image, 1), run(link._compile(CARRIED[name]), 1))
