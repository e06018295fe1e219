"""A bounded store of compiled bytes: in memory for this process, on disk for the next one.

For: `link` alone. An entry is a file `<directory>/<two hex digits>/<key>`: a magic, a SHA-256
of the contents, the contents. Writers make a temporary file and `os.replace` it, so readers in
other processes see a whole entry or none; a damaged entry fails its digest, is reported once
and treated as absent. Entries are written a moment later by another thread, or at the process's
end: a file takes longer than linking a program does. A process that is killed writes nothing more.
What would break it: keys that do not name everything the bytes depend on (see `link.digest`), or a
directory whose entries somebody else may write with this user's name (they are machine code).
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import errno
import hashlib
import itertools
import os
import threading
import time
import warnings
import weakref

from numjet.cpu.link.jobs import undisturbed

_MAGIC = b"NJC1"
_HEADER = len(_MAGIC) + 32
# Windows alone has text files. An entry is never a link, whoever may have made one.
_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)

# Machine code kept in this process; a program is 2-100 KB, so this holds thousands.
MEMORY_BYTES = 64 << 20

# The growth log gets one byte per this many bytes written.
_LOG_UNIT = 4096

# A read refreshes an entry's age only when it is older than this: an utime call per hit is waste.
_REFRESH_SECONDS = 3600.0

# Entries wait so long for others, while the program that was compiled begins to run.
_DELAY_SECONDS = 0.05
# So often, at most, they wait for a compilation to end, which would wait for the interpreter.
_MOST_DELAYS = 20

_HEXADECIMAL = frozenset("0123456789abcdef")

_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _ours(name: str, folder: str) -> bool:
    """Whether a file in that folder is an entry, or one that was not finished."""
    entry = name.startswith(folder) and _HEXADECIMAL.issuperset(name)
    return entry or name.startswith(".tmp-")


def _trusted(status: os.stat_result) -> bool:
    """Whether a file is this user's or the system's: what it holds will run."""
    return not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid())


class Store:
    """Key-value store; `directory` None keeps everything in memory only.

    The disk part holds at most `limit` bytes. Each write adds its size to an append-only log
    shared by all processes; when the log says that a sixteenth of the limit was written, the
    writer first sweeps: entries that were not used for longest go, until with the new one 3/4 of
    the limit is taken.
    """

    def __init__(self, directory: str | None, limit: int) -> None:
        self.directory = directory
        self.limit = limit
        self._memory: dict[str, bytes] = {}
        self._memory_bytes = 0
        self._warned: set[str] = set()
        self._prepared = False
        self._writable = True
        self._failure: OSError | None = None  # of a write behind the caller's back
        self._temporaries = itertools.count()
        self._late = False  # the process is ending: nobody writes later
        self._begin()
        _stores.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, bytes] = {}  # entries that are not on disk yet, oldest first
        self._disk = threading.Lock()  # held by who writes them
        self._writing = False  # whether a thread will

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key` (hexadecimal), or None."""
        data = self._memory.get(key)
        if data is None and self.directory is not None:
            data = self._pending.get(key)
            if data is None:
                data = self._read(key)
            if data is not None:
                self._remember(key, data)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; a disk that cannot be written is reported once."""
        self._remember(key, data)
        if self.directory is None or len(data) >= self.limit:
            return
        self._prepare()
        if not self._writable:
            return
        with self._lock:
            self._pending[key] = data
            start = not self._writing and not self._late
            self._writing |= start
        if start:
            try:
                # Not `threading.Thread`, whose start waits until the thread runs.
                _thread.start_new_thread(self._write_later, ())
            except RuntimeError:  # no more threads
                self.flush()
        elif self._late:
            self.flush()

    def flush(self) -> None:
        """Write what is not on disk yet; returns when it is."""
        self._write_pending()
        self._prepare()

    def _prepare(self) -> None:
        """See whether the directory can be written; reports what was found since the last time."""
        try:
            if self._failure is not None:
                raise self._failure
            if not self._prepared:
                assert self.directory is not None
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                if not os.access(self.directory, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                self._prepared = True
        except OSError as error:
            self._writable, self._failure = False, None
            self._warn(
                "unwritable",
                f"numjet's compilation cache {self.directory} cannot be written ({error}); "
                "programs are compiled anew in each process. Set NUMJET_CACHE_DIR to a "
                "directory you may write to, or to nothing to switch the cache off.",
            )

    def _write_later(self) -> None:
        for _ in range(_MOST_DELAYS):
            time.sleep(_DELAY_SECONDS)
            if not undisturbed.busy():
                break
        self._write_pending()

    def _write_pending(self) -> None:
        with self._disk:
            while True:
                with self._lock:
                    if not self._pending:
                        self._writing = False
                        return
                    key, data = next(iter(self._pending.items()))
                try:
                    if self._writable:
                        self._write(key, data)
                except OSError as error:
                    self._writable, self._failure = False, error
                with self._lock:
                    if self._pending.get(key) is data:
                        del self._pending[key]

    def clear_memory(self) -> None:
        """Forget what this process holds; the disk stays."""
        with self._lock:
            self._memory.clear()
            self._memory_bytes = 0

    def _remember(self, key: str, data: bytes) -> None:
        with self._lock:
            old = self._memory.pop(key, None)
            self._memory[key] = data
            self._memory_bytes += len(data) - (len(old) if old is not None else 0)
            while self._memory_bytes > MEMORY_BYTES and len(self._memory) > 1:
                oldest = next(iter(self._memory))
                self._memory_bytes -= len(self._memory.pop(oldest))

    def _path(self, key: str) -> str:
        return f"{self.directory}/{key[:2]}/{key}"

    def _read(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            # Not `open`, whose objects take as long as the reading.
            file = os.open(path, _READING)
            try:
                status = os.fstat(file)
                raw = os.read(file, status.st_size) if _trusted(status) else b""
            finally:
                os.close(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._warn("unreadable", f"numjet's compilation cache cannot be read: {error}")
            return None
        if not _trusted(status):
            self._warn(
                "foreign",
                f"entry {path} of numjet's compilation cache belongs to another user; it is "
                "compiled anew. Set NUMJET_CACHE_DIR to a directory of your own.",
            )
            return None
        data = raw[_HEADER:]
        if raw[:_HEADER] != _MAGIC + hashlib.sha256(data).digest():
            self._warn(
                "corrupt",
                f"entry {path} of numjet's compilation cache is damaged; it is compiled anew",
            )
            return None
        if time.time() - status.st_mtime > _REFRESH_SECONDS and self._writable:
            try:
                os.utime(path)
            except OSError:  # read-only cache: ages then mean the time of writing
                self._writable = False
        return data

    def _write(self, key: str, data: bytes) -> None:
        path = self._path(key)
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if self._grown(len(data)):
            self.sweep(len(data))
        # Unique among threads and live processes; a dead process's leftover is swept.
        temporary = f"{folder}/.tmp-{os.getpid()}-{next(self._temporaries)}-{key[:8]}"
        try:
            with open(temporary, "wb", buffering=0) as file:
                file.write(_MAGIC + hashlib.sha256(data).digest() + data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _grown(self, nbytes: int) -> bool:
        """Add `nbytes` to the growth log; True when it is time to sweep."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        log = os.open(f"{self.directory}/growth", flags, 0o600)
        try:
            os.write(log, b"." * (1 + nbytes // _LOG_UNIT))
            return os.fstat(log).st_size * _LOG_UNIT >= self.limit // 16
        finally:
            os.close(log)

    def sweep(self, coming: int = 0) -> None:
        """Remove entries used longest ago if with `coming` bytes more than 7/8 of the limit were
        taken: what all processes write until the next sweep fits in the rest.

        What else lies in the directory is the user's: it is not counted, and stays.
        """
        with open(f"{self.directory}/growth", "wb"):
            pass
        entries = []
        total = coming
        now = time.time()
        for folder in os.scandir(self.directory):
            if not (len(folder.name) == 2 and _HEXADECIMAL.issuperset(folder.name)):
                continue
            if not folder.is_dir(follow_symlinks=False):
                continue
            for entry in os.scandir(folder.path):
                if not _ours(entry.name, folder.name):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # another process swept it
                    continue
                if entry.name.startswith(".tmp") and now - status.st_mtime < 3600:
                    continue  # somebody is writing it
                total += status.st_size
                entries.append((status.st_mtime, status.st_size, entry.path))
        if total <= self.limit - self.limit // 8:
            return
        for _, size, path in sorted(entries):
            if total <= self.limit - self.limit // 4:
                return
            try:
                os.unlink(path)
            except FileNotFoundError:  # another process swept it
                pass
            total -= size

    def _warn(self, kind: str, message: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def _at_exit() -> None:
    for store in list(_stores):
        store._late = True
        if store._pending or store._failure is not None:
            store.flush()


def _after_fork() -> None:
    # The parent writes what was waiting, and its writer may have held the locks.
    for store in list(_stores):
        store._begin()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
