"""Kernels for ARM64 are vector code: what LLVM makes of them is read, on any machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import python_process

from numjet.cpu import host
from numjet.cpu.link import link

# By program of `neon_assembly`: vector instructions that do its work.
INSTRUCTIONS = {
    "elementwise": ("fmla", "fmul"),
    "sum": ("fmul", "fadd"),
    "columns": ("fmul", "fadd"),
    "softmax": ("fmax", "fmla", "fadd"),
    "small product": ("fmla",),
    "product": ("fmla",),
    "transpose": ("zip1", "zip2", "fadd"),
    "running sum": ("ext", "fadd"),
    "sort": ("umin", "umax"),
    "transform": ("fmul", "fadd", "fsub"),
    "integers": ("fcvtzs", "mul"),
    "half": ("fcvtl", "fcvtn", "fadd"),
    "random": ("add", "eor", "shl"),
    "loop": ("fmul", "fadd"),
}


@pytest.fixture(scope="module")
def assembly():
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, root / "tests" / "neon_assembly.py"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": python_process.PATH},
    )  # fmt: skip
    if "No available targets" in done.stderr:
        pytest.skip("this LLVM makes no code for ARM64")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_vector_instructions_do_the_work(assembly, name):
    vectors = re.findall(r"^\t(\w+)(?:\.[\dbhsd]+)?\t(?:\{ )?v\d+\.(?!\w\[)", assembly[name], re.M)
    assert set(INSTRUCTIONS[name]) <= set(vectors)


def test_products_keep_their_sums_in_registers(assembly):
    # 24 sums of four lanes, four vectors and a broadcast: all but three registers, none spilled.
    assert len(re.findall(r"\tfmla\tv\d+\.4s", assembly["product"])) >= 24
    inner = re.search(r"\tfmla.*\tfmla[^\n]*", assembly["product"], re.S).group()
    assert "sp" not in inner


def test_elementary_functions_call_no_library(assembly):
    assert set(re.findall(r"\tbl\t(\w+)", assembly["elementwise"])) <= {"nj_lanes_f32_1"}
    assert not re.findall(r"\tbl\t(\w+)", assembly["softmax"])


@pytest.mark.skipif(host.machine() not in ("aarch64", "arm64"), reason="another processor")
def test_this_processor_has_neon():
    assert link.target().has("neon") and link.vector_bytes() == 16 and link.registers() == 32
