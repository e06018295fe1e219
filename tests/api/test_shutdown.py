"""A process ends cleanly whatever is in flight: programs, deferred work, compilations, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import python_process

START = """
import os, signal, sys, threading, time
import numpy as np
import numjet as nj, numjet.numpy as jnp

def fresh(k):
    return nj.jit(lambda x: jnp.sum(jnp.sin(x) * k + x[::-1]) + jnp.sort(jnp.cumsum(x * k))[0])

def compile_for_ever(began):
    x, k = np.arange(50.0, dtype=np.float32), 0
    while True:
        k += 1
        fresh(k)(x)
        began.set()

def in_thread(function):
    began = threading.Event()
    threading.Thread(target=function, args=(began,), daemon=True).start()
    began.wait()
"""

ENDINGS = {
    "threads that run programs": """
        x = jnp.ones((300, 300))
        run = nj.jit(lambda x: jnp.tanh(x @ x).sum())
        run(x)
        def work(began):
            while True:
                run(x)
                began.set()
        for _ in range(4):
            in_thread(work)
    """,
    "results that nobody waited for": """
        x = jnp.ones((1200, 1200))
        run = nj.jit(lambda x: jnp.tanh(x @ x))
        for _ in range(5):
            x = run(x)
    """,
    "deferred operations": """
        x = jnp.ones(1_000_000)
        kept = [jnp.sin(x * k) + 1 for k in range(6)]
    """,
    "deferred operations of another thread": """
        kept = []
        def work(began):
            kept.append(jnp.sin(jnp.ones(1_000_000)) * 2)
            began.set()
            time.sleep(100)
        in_thread(work)
    """,
    "a thread that compiles": "in_thread(compile_for_ever)",
    "a thread that compiles by LLVM": """
        nj.config.update("direct_code", False)
        in_thread(compile_for_ever)
    """,
}


def process(body: str, folder: Path, first: str = "") -> subprocess.Popen:
    environment = {
        **os.environ, "PYTHONPATH": python_process.PATH, "NUMJET_CACHE_DIR": str(folder / "cache"),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c",
         textwrap.dedent(first) + START + textwrap.dedent(body)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends(ending: str, tmp_path: Path) -> None:
    running = process(ENDINGS[ending], tmp_path)
    _, errors = running.communicate(timeout=300)
    assert (running.returncode, errors) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "LLVM"])
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3])
def test_a_signal_ends_a_process_that_compiles(direct, delay, tmp_path) -> None:
    running = process(
        f"""
        nj.config.update("direct_code", {direct})
        in_thread(compile_for_ever)
        print("compiling", flush=True)
        time.sleep({delay})
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(100)
        """,
        tmp_path,
    )
    _, errors = running.communicate(timeout=300)
    assert (running.returncode, errors) == (-signal.SIGTERM, "")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_compilation_is_done_again(tmp_path) -> None:
    running = process(
        """
        # One that arrives within a finalizer is reported there and lost: so it is in Python.
        lost = lambda found: found.exc_type is KeyboardInterrupt or sys.__unraisablehook__(found)
        sys.unraisablehook = lost
        x, interrupts = np.arange(50.0, dtype=np.float32), 0
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for k in range(1, 25):
            run = fresh(k)
            signal.setitimer(signal.ITIMER_REAL, 0.001 * k)
            try:
                try:
                    run(x)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
            want = np.sum(np.sin(x) * k + x)
            assert abs(float(run(x)) - want) <= 1e-3 * abs(want), k
        assert interrupts
        """,
        tmp_path,
    )
    _, errors = running.communicate(timeout=300)
    assert (running.returncode, errors) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("others", ["a thread that compiles", "threads that run programs"])
def test_forks_while_others_are_at_work(others, tmp_path) -> None:
    """The child compiles, and runs on several cores."""
    running = process(
        textwrap.dedent(ENDINGS[others]) + textwrap.dedent("""
        import warnings
        warnings.simplefilter("ignore")
        x, wide = np.arange(50.0, dtype=np.float32), np.full((300, 300), 0.05, np.float32)
        for k in range(8):
            child = os.fork()
            if not child:
                signal.alarm(100)
                want = np.sum(np.sin(x) * k + x)
                right = abs(float(fresh(k)(x)) - want) <= 1e-3 * abs(want) + 1e-3
                found = nj.jit(lambda x: jnp.tanh(x @ x).sum())(wide)
                right &= abs(float(found) - 90_000 * np.tanh(0.75)) <= 10
                os._exit(0 if right else 3)
            assert os.waitpid(child, 0)[1] == 0
        """),
        tmp_path,
    )
    _, errors = running.communicate(timeout=300)
    assert (running.returncode, errors) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_within_an_import_that_another_thread_waits_for(tmp_path) -> None:
    """Neither waits for the other."""
    (tmp_path / "fork_a.py").write_text(textwrap.dedent("""
        import os, threading, time, warnings
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=__import__, args=("numjet.fork_b",))
        thread.start()
        time.sleep(0.5)
        child = os.fork()
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """))
    (tmp_path / "fork_b.py").write_text("import numjet.fork_a\n")
    running = process(
        f"""
        import numjet
        numjet.__path__.append({str(tmp_path)!r})
        import numjet.fork_a
        numjet.fork_a.thread.join()
        """,
        tmp_path,
    )
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_imports_the_compiler(tmp_path) -> None:
    """The child would wait for the lock of a module that nobody is importing there."""
    running = process(
        """
        import warnings
        warnings.simplefilter("ignore")
        class Slow:
            began = threading.Event()
            def find_spec(self, name, path, target=None):
                if name.startswith("numjet.cpu.pipeline"):
                    self.began.set()
                    time.sleep(1)
        sys.meta_path.insert(0, Slow())
        x = np.arange(50.0, dtype=np.float32)
        thread = threading.Thread(target=lambda: fresh(3)(x))
        thread.start()
        Slow.began.wait()
        child = os.fork()
        if not child:
            signal.alarm(60)
            want = np.sum(np.sin(x) * 5 + x)
            right = abs(float(fresh(5)(x)) - want) <= 1e-3 * abs(want) + 1e-3
            os._exit(0 if right else 3)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
        """,
        tmp_path,
    )
    _, errors = running.communicate(timeout=300)
    assert (running.returncode, errors) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("nested", [False, True], ids=["sought", "half made"])
def test_an_import_that_begins_when_a_fork_has_waited_for_others(nested, tmp_path) -> None:
    """As another thread's may, which gets the interpreter between the last look and the fork."""
    running = process(
        f"""
        import warnings
        warnings.simplefilter("ignore")
        class Slow:
            names = []
            began = threading.Event()
            def find_spec(self, name, path, target=None):
                if name.startswith("numjet.cpu"):
                    self.names.append(name)
                    if len(self.names) > {nested} and not self.began.is_set():
                        self.began.set()
                        time.sleep(1)
        sys.meta_path.insert(0, Slow())
        x = np.arange(50.0, dtype=np.float32)
        thread = threading.Thread(target=lambda: (forking.wait(), fresh(3)(x)))
        thread.start()
        child = os.fork()
        if not child:
            signal.alarm(60)
            want = np.sum(np.sin(x) * 5 + x)
            right = abs(float(fresh(5)(x)) - want) <= 1e-3 * abs(want) + 1e-3
            os._exit(0 if right else 3)
        assert Slow.began.is_set()
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
        """,
        tmp_path,
        first="""
        import os, threading
        forking = threading.Event()
        # Called after what numjet registers.
        os.register_at_fork(before=lambda: (forking.set(), Slow.began.wait()))
        """,
    )
    _, errors = running.communicate(timeout=300)
    assert (running.returncode, errors) == (0, "")
