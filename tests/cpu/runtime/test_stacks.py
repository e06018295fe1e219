"""Compiled programs on small stacks: macOS gives threads 512 KiB, musl 128."""

from __future__ import annotations

import subprocess
import textwrap

import pytest
import python_process

from numjet.cpu import host
from numjet.cpu.builder import builder
from numjet.cpu.builder.core import STACK_BYTES
from numjet.cpu.x86.back import encode

SIZES = {"512 KiB": 512 << 10, "128 KiB": 128 << 10}
PROGRAMS = """
import os, sys, threading
import numpy as np
import numjet as nj, numjet.numpy as jnp
from numjet import lax

rng = np.random.default_rng(0)

def random(*shape):
    return jnp.asarray(rng.standard_normal(shape).astype(np.float32))

def definite(*batch, n):
    a = rng.standard_normal((*batch, n, n)).astype(np.float32)
    return jnp.asarray(a @ a.swapaxes(-1, -2) + n * np.eye(n, dtype=np.float32))

CASES = {
    "product": (lambda x: x @ x, random(700, 700)),
    "epilogue": (lambda x: nj.nn.softmax(x @ x.T, axis=-1) @ x, random(256, 256)),
    "small product": (lambda x: jnp.exp(x.T @ x), random(96, 96)),
    "sort": (jnp.sort, random(200_000)),
    "sort of rows": (lambda x: jnp.sort(x, axis=1), random(1000, 300)),
    "argsort": (jnp.argsort, random(100_000)),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=0), random(500, 1000)),
    "transforms": (lambda x: jnp.abs(jnp.fft.fft(x)), random(64, 1009)),
    "convolution": (
        lambda x: lax.conv_general_dilated(x, x[:4, :, :3, :3], (1, 1), "SAME"),
        random(4, 8, 64, 64),
    ),
    "side by side": (jnp.linalg.cholesky, definite(500, n=8)),
    "solve": (lambda x: jnp.linalg.solve(x, x[:, 0]), definite(n=300)),
    "rows": (lambda x: nj.nn.softmax(x, axis=-1), random(100, 16_000)),
    "columns": (lambda x: nj.nn.softmax(x, axis=0), random(3000, 300)),
    "loop": (lambda x: lax.scan(lambda c, y: (jnp.tanh(c @ x + y), c), x[0], x)[0], random(64, 64)),
    "many values": (lambda x: [x[i] * 2 for i in range(700)], random(700)),
}

def run():
    for name, (function, x) in CASES.items():
        compiled = nj.jit(function)
        for _ in range(3):
            nj.block_until_ready(compiled(x))
        print(name, flush=True)

threading.stack_size(int(sys.argv[1]))
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
NAMES = [line.split('"')[1] for line in PROGRAMS.splitlines() if line.startswith('    "')]


def run(text: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: what it may do is end."""
    return python_process.run("-c", textwrap.dedent(text), *arguments, **variables)


@pytest.mark.parametrize("size", SIZES)
def test_programs_run_and_are_compiled_on_a_small_stack(size) -> None:
    done = run(PROGRAMS, str(SIZES[size]))
    assert (done.returncode, done.stdout.split("\n")[:-1]) == (0, NAMES), done.stderr


def test_large_variables_are_borrowed_and_given_back_at_each_end() -> None:
    module = builder.Module(frozenset())
    b = builder.Builder(module, "f", [("x", "i64")])
    small, large = b.alloca("i64"), b.alloca("float", STACK_BYTES)
    b.store(b.const(1, "i64"), small, 8)
    with b.if_(b.icmp("eq", b.args[0], 0)):
        b.store(b.const(1.0, "float"), large, 4)
    b.ret()
    b.block(b.new_label("other"))
    b.ret()
    text = module.text()
    assert f"alloca float, i64 {STACK_BYTES}" not in text and "alloca i64, i64 1" in text
    assert text.count("call ptr @nj_program_take(i64 16384)") == 1
    assert text.count("call void @nj_program_give(ptr %lent)") == text.count("ret void") == 2
    assert module.text() == text  # writing it down changes nothing


def test_what_is_little_lies_on_the_stack() -> None:
    module = builder.Module(frozenset())
    b = builder.Builder(module, "f", [])
    b.alloca("i8", STACK_BYTES)
    b.ret()
    assert "nj_program" not in module.text() and "alloca i8" in module.text()


def test_each_page_of_a_large_frame_is_touched() -> None:
    """What a function needs beyond its variables, for spilled registers, may pass a guard page."""
    module = builder.Module(frozenset())
    b = builder.Builder(module, "f", [])
    b.ret()
    head = module.text().partition("{")[0]
    assert '"probe-stack"="inline-asm"' in head
    if host.machine() in ("x86_64", "AMD64"):
        code = encode.Code()
        encode.reserve(code, 3 * 4096 + 64)
        for page in (1, 2, 3):
            assert (-4096 * page).to_bytes(4, "little", signed=True) in code.buffer


THREADS = python_process.SUBMIT + """
import os, re, resource
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, -1))  # what others get
from numjet.cpu import host
from numjet.cpu.runtime import events, threads
threads.set_num_threads(3)

fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(lambda *_: None)
kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
parallel_for = ctypes.CFUNCTYPE(None, *kinds)(threads.parallel_for_address())
events._native()  # what is compiled leaves memory behind, too

def start():
    parallel_for(ctypes.cast(fn, ctypes.c_void_p), None, 2, 1)
    assert threads.workers() == 2
    submit(events.queue(), lambda: None).wait()
"""


@pytest.mark.skipif(not host.LINUX, reason="reads the state of this process's threads")
def test_signals_go_to_no_thread_of_the_pool_and_of_queues() -> None:
    text = """
before = set(os.listdir("/proc/self/task"))
start()
blocked = []
for task in set(os.listdir("/proc/self/task")) - before:
    state = open(f"/proc/self/task/{task}/status").read()
    blocked.append(int(re.search(r"SigBlk:\\s*(\\w+)", state)[1], 16) & 0x4002)
print(sorted(blocked) == [0x4002] * 3)  # SIGTERM and SIGINT
"""
    done = run(THREADS + text)
    assert done.stdout == "True\n", (done.stdout, done.stderr)


@pytest.mark.skipif(not host.LINUX, reason="asks the GNU C library for a thread's stack")
def test_threads_of_the_pool_and_of_queues_have_a_stated_stack() -> None:
    text = """
import threading
sizes, together = {}, threading.Barrier(3)
libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_void_p

def measure():
    attributes, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
    here = ctypes.c_void_p(libc.pthread_self())
    assert libc.pthread_getattr_np(here, attributes) == 0
    assert libc.pthread_attr_getstacksize(attributes, ctypes.byref(size)) == 0
    sizes[here.value] = size.value

def chunk(*_):  # the pool's two workers and the caller take one each
    together.wait(60)
    measure()

main = libc.pthread_self()
fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(chunk)
parallel_for(ctypes.cast(fn, ctypes.c_void_p), None, 3, 1)
submit(events.queue(), measure).wait()
sizes.pop(main)
print([host.STACK_BYTES - 65536 <= size <= host.STACK_BYTES for size in sizes.values()])
"""
    done = run(THREADS + text)
    assert done.stdout == "[True, True, True]\n", done.stderr
