"""Other systems, simulated: what `host` says there, and what the runtime's code calls."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import python_process

from numjet.cpu import host

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = ("linux", "darwin", "win32")
POSIX = {
    "pthread_attr_destroy", "pthread_attr_init", "pthread_attr_setstacksize", "pthread_create",
    "pthread_detach", "pthread_sigmask", "sched_yield",
}  # fmt: skip
CALLS = {
    "linux": POSIX | {
        "getpid", "pthread_setaffinity_np", "sched_getaffinity", "sched_getcpu", "syscall"
    },
    "darwin": POSIX | {"__ulock_wait", "__ulock_wake"},
    "win32": {
        "CloseHandle", "CreateThread", "SwitchToThread", "WaitOnAddress", "WakeByAddressAll"
    },
}  # fmt: skip


def on(monkeypatch: pytest.MonkeyPatch, system: str) -> ModuleType:
    """A copy of `host` as on another system."""
    monkeypatch.setattr(sys, "platform", system)
    assert host.__file__ is not None
    spec = importlib.util.spec_from_file_location(f"host_on_{system}", host.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_systems_differ_in_one_file():
    asked = re.compile(r"\bsys\.platform\b|\bos\.name\b|\bplatform\.(system|machine)\(")
    files = [p for p in (ROOT / "numjet").rglob("*.py") if asked.search(p.read_text())]
    assert [str(p.relative_to(ROOT)) for p in files] == ["numjet/cpu/host.py"]


@pytest.mark.parametrize("variables, directory", [
    (("linux", {"HOME": "/home/a"}), "/home/a/.cache/numjet"),
    (("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "/var/x"}), "/var/x/numjet"),
    (("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}), "/home/a/.cache/numjet"),
    (("darwin", {"HOME": "/Users/a"}), "/Users/a/Library/Caches/numjet"),
    (("darwin", {"HOME": "", "XDG_CACHE_HOME": "/x"}), None),
    (("win32", {"LOCALAPPDATA": "/C/Local", "HOME": "/x"}), "/C/Local/numjet/cache"),
    (("win32", {"LOCALAPPDATA": ""}), None),
])  # fmt: skip
def test_directories_of_the_cache(monkeypatch, variables, directory):
    system, environment = variables
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert on(monkeypatch, system).cache_directory() == directory


@pytest.mark.parametrize("system, library, model, head", [
    ("linux", "libllvmlite.so", ("pic", "small", True), b"\x7fELF"),
    ("darwin", "libllvmlite.dylib", ("pic", "small", True), b"\xcf\xfa\xed\xfe"),
    ("win32", "llvmlite.dll", ("default", "large", False), b"\x7fELF"),
])  # fmt: skip
def test_objects_and_libraries(monkeypatch, system, library, model, head):
    there = on(monkeypatch, system)
    assert there.llvm_library_name() == library
    assert there.code_model() == model and there.is_object(head + b"...")
    assert there.object_triple("x-y-z") == ("x-y-z-elf" if system == "win32" else "x-y-z")
    assert there.has_threads()
    # Elsewhere LLVM's linker maps code and protects it: nothing is executed from pages of ours.
    assert there.maps_code() == (system == "linux")


def test_pages_on_windows_are_protected_by_its_own_call(monkeypatch):
    calls = []

    def virtual_protect(start, size, rights, before):
        calls.append((start.value, size.value, rights))
        return len(calls) < 3

    kernel = SimpleNamespace(VirtualProtect=virtual_protect)
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, **_: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: 487, raising=False)
    there = on(monkeypatch, "win32")
    there.protect(1 << 32, 4096, there.NOTHING)
    there.protect(1 << 33, 8192, there.READ)
    there.protect(1, 0, there.READ)
    assert calls == [(1 << 32, 4096, 1), (1 << 33, 8192, 2)]  # PAGE_NOACCESS, PAGE_READONLY
    with pytest.raises(OSError, match="protected"):
        there.protect(1 << 32, 4096, there.READ)


@pytest.mark.parametrize("system", SYSTEMS)
def test_threads_call_what_the_system_has(monkeypatch, system):
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "platform_code.py", system], capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": python_process.PATH},
    )  # fmt: skip
    if "No available targets" in done.stderr:
        pytest.skip("this LLVM makes no code for that processor")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["events"]) == CALLS[system]
    clock = set() if system == "win32" else {"clock_gettime"}
    assert set(found["threads"]) == CALLS[system] | clock
    assert set(found["programs"]) == {"malloc", "free"}
    if system == "win32":
        # Those that the linker does not find by itself are named in `host`.
        library = SimpleNamespace(__getitem__=None)
        names = CALLS[system] | {"WakeByAddressSingle"}
        for name in names:
            setattr(library, name, ctypes.c_void_p(1))
        monkeypatch.setattr(ctypes, "WinDLL", lambda _: library, raising=False)
        assert set(on(monkeypatch, system).thread_symbols()) == names
