"""Every assumption about the operating system and the machine, in one file.

For: the linker (library names, object format), the cache (directories), the memory pool
(how much there is) and the thread pool (thread creation, sleeping on an address). Only modules of
`numjet.cpu` use it. What would break it: an operating system or libc whose calls differ from
the ones named here; every function therefore answers None (or False) where a facility is
missing, and its users have a slower way for that case.
"""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import os
import sys
from typing import Any

LINUX = sys.platform.startswith("linux")
MACOS = sys.platform == "darwin"
WINDOWS = sys.platform == "win32"

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


def pause_ir(triple: str) -> tuple[str, str]:
    """LLVM IR telling the core that a thread spins: a declaration and a statement."""
    if triple.startswith(("x86_64", "i386", "i686")):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        # `yield` does nothing on most ARM cores; `isb` waits about as long as x86's pause.
        return "declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"
    return "", "fence syncscope(\"singlethread\") seq_cst"


def thread_ir(triple: str) -> str | None:
    """LLVM IR of six functions over the system's threads, or None where there are none.

    i32 @os_thread(ptr start, i64 id, ptr handle): run start(id) on a new detached thread with a
    stack of STACK_BYTES and all signals blocked, and leave its i64 handle; 0 when it worked.
    void @os_sleep(ptr word, i32 seen): sleep while the i32 at `word` is `seen`; may return early.
    void @os_wake(ptr word, i32 count): wake that many sleepers. void @os_yield(): let another
    thread have the core. i32 @os_core(): the core this thread runs on, or -1.
    void @os_keep_off(i32 core, ptr handles, i32 count): let those threads run on any core the
    process's first thread may use but `core`.
    """
    if LINUX:
        machine = triple.split("-")[0]
        # The number of the futex system call, from each architecture's <asm/unistd.h>.
        futex = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "powerpc64le": 221}.get(machine)
        if futex is None:
            return None
        threads = _POSIX_THREADS.format(set_mask=2, stack=STACK_BYTES)
        return threads + _FUTEX.format(number=futex) + _AFFINITY
    if MACOS:
        return _POSIX_THREADS.format(set_mask=3, stack=STACK_BYTES) + _ULOCK + _NO_AFFINITY
    return _WINDOWS_THREADS.format(stack=STACK_BYTES) + _NO_AFFINITY if WINDOWS else None


def thread_symbols() -> dict[str, int]:
    """External symbols of `thread_ir` that the linker does not find in the process by itself."""
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


_POSIX_THREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal i32 @os_thread(ptr %start, i64 %id, ptr %thread) {{
  %all = alloca [128 x i8]
  %old = alloca [128 x i8]
  %settings = alloca [128 x i8], align 16 ; 56 or 64 bytes in each C library
  call i32 @pthread_attr_init(ptr %settings)
  call i32 @pthread_attr_setstacksize(ptr %settings, i64 {stack})
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  call i32 @pthread_sigmask(i32 {set_mask}, ptr %all, ptr %old)
  %argument = inttoptr i64 %id to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr %settings, ptr %start, ptr %argument)
  call i32 @pthread_sigmask(i32 {set_mask}, ptr %old, ptr null)
  call i32 @pthread_attr_destroy(ptr %settings)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %detach, label %out
detach:
  %handle = load i64, ptr %thread
  call i32 @pthread_detach(i64 %handle)
  br label %out
out:
  ret i32 %failed
}}

define internal void @os_yield() {{
  call i32 @sched_yield()
  ret void
}}
"""

# FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG (128).
_FUTEX = """
declare i64 @syscall(i64, ...)

define internal void @os_sleep(ptr %word, i32 %seen) {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 128, i32 %seen, ptr null, ptr null)
  ret void
}}

define internal void @os_wake(ptr %word, i32 %count) {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 129, i32 %count, ptr null, ptr null)
  ret void
}}
"""

# Linux wakes a thread on the core it last ran on even when that is busy with the thread that wakes
# it and another core is idle (it does not search for idle cores when a small machine is half
# used), so worker and caller shared a core for milliseconds. On larger machines it does search.
_AFFINITY = """
declare i32 @sched_getcpu()
declare i32 @getpid()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)

define internal i32 @os_core() {
  %core = call i32 @sched_getcpu()
  ret i32 %core
}

define internal void @os_keep_off(i32 %core, ptr %handles, i32 %count) {
entry:
  %mask = alloca [16 x i64], align 64
  %process = call i32 @getpid()
  %failed = call i32 @sched_getaffinity(i32 %process, i64 128, ptr %mask)
  %known = icmp eq i32 %failed, 0
  %named = icmp ult i32 %core, 1024
  %begin = and i1 %known, %named
  br i1 %begin, label %leave, label %out
leave:
  %word = lshr i32 %core, 6
  %at = getelementptr i64, ptr %mask, i32 %word
  %all = load i64, ptr %at
  %within = and i32 %core, 63
  %shift = zext i32 %within to i64
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %rest = and i64 %all, %others
  store i64 %rest, ptr %at
  br label %size
size:
  %k = phi i32 [ 0, %leave ], [ %k1, %size ]
  %sum = phi i64 [ 0, %leave ], [ %sum1, %size ]
  %part = getelementptr i64, ptr %mask, i32 %k
  %bits = load i64, ptr %part
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %sum1 = add i64 %sum, %ones
  %k1 = add i32 %k, 1
  %unread = icmp ult i32 %k1, 16
  br i1 %unread, label %size, label %decide
decide:
  %some = icmp ne i64 %sum1, 0
  %small = icmp ult i64 %sum1, 16
  %go = and i1 %some, %small
  br i1 %go, label %test, label %out
test:
  %i = phi i32 [ 0, %decide ], [ %next, %set ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %set, label %out
set:
  %p = getelementptr i64, ptr %handles, i32 %i
  %handle = load i64, ptr %p
  %ignored = call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %mask)
  %next = add i32 %i, 1
  br label %test
out:
  ret void
}
"""

_NO_AFFINITY = """
define internal i32 @os_core() {
  ret i32 -1
}

define internal void @os_keep_off(i32 %core, ptr %handles, i32 %count) {
  ret void
}
"""

# UL_COMPARE_AND_WAIT (1); ULF_WAKE_ALL (0x100): it wakes one or all, so all.
_ULOCK = """
declare i32 @__ulock_wait(i32, ptr, i64, i32)
declare i32 @__ulock_wake(i32, ptr, i64)

define internal void @os_sleep(ptr %word, i32 %seen) {
  %wide = zext i32 %seen to i64
  call i32 @__ulock_wait(i32 1, ptr %word, i64 %wide, i32 0)
  ret void
}

define internal void @os_wake(ptr %word, i32 %count) {
  call i32 @__ulock_wake(i32 257, ptr %word, i64 0)
  ret void
}
"""

_WINDOWS_THREADS = """
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @CloseHandle(ptr)
declare i32 @SwitchToThread()
declare i32 @WaitOnAddress(ptr, ptr, i64, i32)
declare void @WakeByAddressAll(ptr)

define internal i32 @os_thread(ptr %start, i64 %id, ptr %thread) {{
  %argument = inttoptr i64 %id to ptr
  ; STACK_SIZE_PARAM_IS_A_RESERVATION
  %handle = call ptr @CreateThread(ptr null, i64 {stack}, ptr %start, ptr %argument, i32 65536,
                                   ptr null)
  %failed = icmp eq ptr %handle, null
  br i1 %failed, label %bad, label %good
good:
  call i32 @CloseHandle(ptr %handle)
  ret i32 0
bad:
  ret i32 1
}}

define internal void @os_yield() {{
  call i32 @SwitchToThread()
  ret void
}}

define internal void @os_sleep(ptr %word, i32 %seen) {{
  %slot = alloca i32
  store i32 %seen, ptr %slot
  call i32 @WaitOnAddress(ptr %word, ptr %slot, i64 4, i32 -1)
  ret void
}}

define internal void @os_wake(ptr %word, i32 %count) {{
  call void @WakeByAddressAll(ptr %word)
  ret void
}}
"""


# -- memory for code ------------------------------------------------------------------------------

# Bytes of a page, the unit of protection.
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def maps_code() -> bool:
    """Whether the functions below work here."""
    return LINUX and ctypes.sizeof(ctypes.c_void_p) == 8


def is_object(data: bytes) -> bool:
    """Whether these bytes begin as an object file does here."""
    return data.startswith(b"\xcf\xfa\xed\xfe" if MACOS else b"\x7fELF")


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
_spare: list[tuple[int, int]] = []  # start and size of what is left


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


def unmap(base: int, size: int) -> None:
    """Give memory of `reserve` back."""
    _memory().munmap(base, size)
