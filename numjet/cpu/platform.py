"""Every assumption about the operating system and the machine, in one file.

For: the linker (library names, object format), the cache (directories), the memory pool
(how much there is) and the thread pool (thread creation, sleeping on an address). Only modules of
`numjet.cpu` use it. What would break it: an operating system or libc whose calls differ from
the ones named here; every function therefore answers None (or False) where a facility is
missing, and its users have a slower way for that case.
"""

from __future__ import annotations

import ctypes
import os
import sys

LINUX = sys.platform.startswith("linux")
MACOS = sys.platform == "darwin"
WINDOWS = sys.platform == "win32"

# A cache line on x86-64 and on most ARM cores; also the widest vector (AVX-512).
CACHE_LINE = 64


def cache_directory() -> str | None:
    """The platform's directory for this package's cache, or None when there is no home."""
    # Strings and not pathlib: importing that module costs 3 ms of the package's import.
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


def c_library() -> ctypes.CDLL | None:
    """The C library of this process, or None where its symbols are not global (Windows)."""
    return None if WINDOWS else ctypes.CDLL(None, use_errno=True)


def symbol_address(name: str, library: ctypes.CDLL | None = None) -> int | None:
    """Address of an exported function of `library` (default: the process), or None."""
    library = library or c_library()
    if library is None:
        return None
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None
