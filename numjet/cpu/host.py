"""Every assumption about the operating system and the machine, in one file.

For: the linker (library names, object format), the cache (directories), the memory pool
(how much there is) and the thread pool (thread creation, sleeping on an address). Only modules of
`numjet.cpu` use it. What would break it: an operating system or libc whose calls differ from
the ones named here; every function therefore answers None (or False) where a facility is
missing, and its users have a slower way for that case.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

SYSTEM = sys.platform
LINUX = SYSTEM.startswith("linux")
MACOS = SYSTEM == "darwin"
WINDOWS = SYSTEM == "win32"

# What systems call 64-bit ARM.
ARM = ("aarch64", "arm64", "ARM64")

# A cache line on x86-64 and on most ARM cores; also the widest vector (AVX-512).
CACHE_LINE = 64

# The stack of threads that run compiled programs: BLAS, LAPACK and callbacks into Python run there
# too. Systems' own sizes lie between 128 KiB (musl) and what the user's shell says. Pages that
# nobody wrote to are no memory.
STACK_BYTES = 4 << 20


def cache_directory() -> str | None:
    """The platform's directory for this package's cache, or None when there is no home."""
    # Strings and not pathlib: importing that module costs 3 ms of the package's import.
    rest: tuple[str, ...]
    if WINDOWS:
        base, rest = os.environ.get("LOCALAPPDATA", ""), ("numjet", "cache")
    elif MACOS:
        base, rest = os.environ.get("HOME", ""), ("Library", "Caches", "numjet")
    elif os.path.isabs(os.environ.get("XDG_CACHE_HOME", "")):
        # The XDG base directory specification says to ignore a relative path.
        base, rest = os.environ["XDG_CACHE_HOME"], ("numjet",)
    else:
        base, rest = os.path.expanduser("~"), (".cache", "numjet")
    return os.path.join(base, *rest) if os.path.isabs(base) else None


def llvm_library_name() -> str:
    """The file name of llvmlite's shared library."""
    if WINDOWS:
        return "llvmlite.dll"
    return "libllvmlite.dylib" if MACOS else "libllvmlite.so"


def object_triple(process_triple: str) -> str:
    """The target triple objects are compiled for.

    In-memory linking on Windows knows only ELF objects (LLVM's RuntimeDyld and JITLink both
    handle COFF in part), so the object format is forced there.
    """
    return process_triple + "-elf" if WINDOWS else process_triple


def code_model() -> tuple[str, str, bool]:
    """(relocation model, code model, use JITLink) for objects linked into this process.

    JITLink puts a library's sections in one slab, so position-independent code of the small
    model reaches its own data, and adds stubs for calls that are far away. Without it
    (Windows) only the large model is safe: sections may lie more than 2 GB apart.
    """
    return ("default", "large", False) if WINDOWS else ("pic", "small", True)


def cpu_count() -> int:
    """Cores this process may run on, at least 1."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not Linux
        return max(1, os.cpu_count() or 1)


def memory_bytes() -> int:
    """Main memory this process may use (the machine's, or its control group's limit)."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        total = 8 << 30
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


@functools.cache  # opening it makes a class: 0.1 ms
def c_library() -> ctypes.CDLL | None:
    """The C library of this process, or None where its symbols are not global (Windows)."""
    return None if WINDOWS else ctypes.CDLL(None, use_errno=True)


def symbol_address(name: str, library: ctypes.CDLL | None = None) -> int | None:
    """Address of an exported function of `library` (default: the process), or None."""
    library = library or c_library()
    if library is None:
        return None
    try:
        if not WINDOWS:  # a tenth of the time: no function object is made
            return _ctypes.dlsym(library._handle, name)
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except (AttributeError, OSError):
        return None


def python_function(name: str) -> int:
    """Address of a function of the interpreter. Raises AttributeError where there is none."""
    address = symbol_address(name, ctypes.pythonapi)
    if address is None:
        raise AttributeError(f"this interpreter has no function {name}")
    return address


def _own_blake2() -> Callable[..., Any]:
    """The interpreter's own BLAKE2, which takes a third of the time of its SHA-256: `hashlib` loads
    OpenSSL, which takes 3 ms."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("_blake2").blake2b
    return importlib.import_module("hashlib").blake2b


_hashed = _own_blake2()


def blake2(data: bytes) -> bytes:
    """The BLAKE2b digest of some bytes, 32 bytes long."""
    return _hashed(data, digest_size=32).digest()


def futex_number() -> int | None:
    """The number of Linux's futex system call, from each architecture's <asm/unistd.h>."""
    return {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221}.get(machine())


def has_threads() -> bool:
    """Whether native code starts threads here (`runtime.code.system` says how)."""
    return MACOS or WINDOWS or LINUX and futex_number() is not None


def thread_symbols() -> dict[str, int]:
    """External symbols of `runtime.code.system` that the linker does not find by itself."""
    if not WINDOWS:
        return {}
    symbols = {}
    for library, names in (
        ("kernel32", ("CreateThread", "CloseHandle", "SwitchToThread")),
        ("kernelbase", ("WaitOnAddress", "WakeByAddressSingle", "WakeByAddressAll")),
    ):
        opened = ctypes.WinDLL(library)  # type: ignore[attr-defined]
        for name in names:
            symbols[name] = ctypes.cast(getattr(opened, name), ctypes.c_void_p).value or 0
    return symbols


# -- memory for code ------------------------------------------------------------------------------

# Bytes of a page, the unit of protection.
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def maps_code() -> bool:
    """Whether the functions below work here."""
    return LINUX and ctypes.sizeof(ctypes.c_void_p) == 8


def is_object(data: bytes) -> bool:
    """Whether these bytes begin as an object file does here."""
    return data.startswith(b"\xcf\xfa\xed\xfe" if MACOS else b"\x7fELF")


@functools.cache
def machine() -> str:
    """The kind of processor, as the system calls it."""
    if hasattr(os, "uname"):
        return os.uname().machine
    return os.environ.get("PROCESSOR_ARCHITECTURE", "")


def object_machine() -> str:
    """The triple of ELF objects for any processor of this architecture (Linux)."""
    return f"{machine()}-unknown-linux-gnu"


# Addresses are asked of the system for several programs at once: it takes 20 us, and 5 KB to 20 KB
# are what one needs. Pages that nobody wrote to are no memory.
_SPARE = 64 * PAGE
_HUGE = 4 << 20  # bytes from which on memory may be in huge pages
_spare: list[tuple[int, int]] = []  # start and size of what is left


def fresh(size: int) -> np.ndarray:
    """An array of `size` bytes, zeros, on pages of its own: they are the system's again when it
    dies, whereas what NumPy allocates may stay with the process, between what lives. Raises
    MemoryError."""
    import mmap  # 0.3 ms that most programs do without

    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return np.empty(size, np.uint8)
    try:
        area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes: {error}") from None
    if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        # An advice, as NumPy gives it; kernels without huge pages refuse it.
        with contextlib.suppress(OSError):
            area.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(area, np.uint8)


@functools.cache
def _memory() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def reserve(size: int) -> int | None:
    """The address of `size` fresh bytes to write to, on pages of their own; None if refused."""
    size = -(-size // PAGE) * PAGE
    try:
        base, left = _spare.pop()  # nobody else has it meanwhile
    except IndexError:
        base, left = 0, 0
    if left < size:
        if left:
            _memory().munmap(base, left)
        left = max(size, _SPARE)
        # Readable and writable; private and anonymous.
        base = _memory().mmap(None, left, 1 | 2, 2 | 0x20, -1, 0)
        if base == ctypes.c_void_p(-1).value:
            return None
    if left > size:
        _spare.append((base + size, left - size))
    return base


def make_executable(start: int, size: int) -> bool:
    """Make these pages code, which nobody writes to any more; False if refused. (Kernels that map
    a page as executable see to it that instruction caches are right.)"""
    return not size or _memory().mprotect(start, size, 1 | 4) == 0


# Rights to pages, as PROT_NONE and PROT_READ or PAGE_NOACCESS and PAGE_READONLY.
NOTHING, READ = (1, 2) if WINDOWS else (0, 1)


def protect(start: int, size: int, rights: int) -> None:
    """Let whole pages be read, or not even that. Raises OSError where the system refuses it."""
    if not size:
        return
    if WINDOWS:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
        before = ctypes.c_uint32()
        if kernel.VirtualProtect(
            ctypes.c_void_p(start), ctypes.c_size_t(size), rights, ctypes.byref(before)
        ):
            return
        error = ctypes.get_last_error()  # type: ignore[attr-defined]
    elif not _memory().mprotect(start, size, rights):
        return
    else:
        error = ctypes.get_errno()
    raise OSError(error, "memory could not be protected")


@functools.cache
def executes_code() -> bool:
    """Whether the system lets memory become code: hardened kernels, SELinux and seccomp may not."""
    base = reserve(PAGE)
    if base is None:
        return False
    allowed = make_executable(base, PAGE)
    unmap(base, PAGE)
    return allowed


def unmap(base: int, size: int) -> None:
    """Give memory of `reserve` back."""
    _memory().munmap(base, size)
