"""A bounded store of compiled bytes: in memory for this process, on disk for the next one.

For: `link` alone. An entry is a file `<directory>/<two hex digits>/<key>`: a magic, a BLAKE2 digest
of the store's format, the kind of machine, the key and the contents, then the contents. Writers put
a file in its place in one step, so readers in other processes see a whole entry or none. What is
damaged, was written for another machine or stands under another name fails the digest, is reported
once and treated as absent; so is what somebody else could have written (`folder`). Entries are
written a moment later by another thread, or at the process's end: a file takes longer than linking
a program does. A process that is killed writes nothing more. What would break it: keys that do not
name everything the bytes depend on (see `link.digest`). docs/security.md says what is relied on.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import time
import warnings
import weakref

from numjet.base.undisturbed import undisturbed
from numjet.core.memo import on_clear
from numjet.cpu import host
from numjet.cpu.link.folder import Folder, Refused
from numjet.cpu.link.later import later

_MAGIC = b"NJC3"
_HEADER = len(_MAGIC) + 32

# Machine code kept in this process beside what runs; a program is 2-100 KB, so this holds hundreds
# to thousands, and the disk has the others.
MEMORY_BYTES = 4 << 20

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


@on_clear
def _clear() -> None:
    for store in list(_stores):
        store.clear_memory()


def _ours(name: str, folder: str) -> bool:
    """Whether a file in that folder is an entry, or one that was not finished."""
    entry = name.startswith(folder) and _HEXADECIMAL.issuperset(name)
    return entry or name.startswith(".tmp-")


def _sealed(key: str, data: bytes) -> bytes:
    """What stands before the contents of an entry."""
    named = f"{host.SYSTEM} {sys.byteorder} {host.machine()} {key}\n".encode()
    return _MAGIC + host.blake2(named + data)


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
        self._folder = Folder(directory or "")
        self._memory: dict[str, bytes] = {}
        self._memory_bytes = 0
        self._warned: set[str] = set()
        self._useless: set[str] = set()  # entries on disk that are not to be read again
        self._prepared = False
        self._writable = True
        self._failure: OSError | Refused | None = None  # of a write behind the caller's back
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
        if data is None and self.directory is not None and key not in self._useless:
            data = self._pending.get(key)
            if data is None:
                data = self._read(key)
            if data is not None:
                self._remember(key, data)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; a disk that cannot be written is reported once."""
        self._remember(key, data)
        self._useless.discard(key)
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
                later(_DELAY_SECONDS, functools.partial(self._write_later, _MOST_DELAYS))
            except RuntimeError:  # no more threads
                self.flush()
        elif self._late:
            self.flush()

    def damaged(self, key: str, reason: object) -> None:
        """Report that what is stored under `key` cannot be read, and forget it."""
        self._forget(key)
        with self._lock:
            self._pending.pop(key, None)
            self._useless.add(key)
        self._warn(
            "corrupt",
            f"entry {self._path(key)} of numjet's compilation cache is damaged ({reason}); it is "
            "compiled anew",
        )

    def flush(self) -> None:
        """Write what is not on disk yet; returns when it is."""
        self._write_pending()
        self._prepare()

    def _prepare(self) -> None:
        """See whether the directory can be written; reports what was found since the last time."""
        try:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            if not self._prepared:
                self._folder.prepare()
                self._prepared = True
        except Refused as refused:
            self._writable = False
            self._warn(refused.kind, str(refused))
        except OSError as error:
            self._writable = False
            self._warn(
                "unwritable",
                f"numjet's compilation cache {self.directory} cannot be written ({error}); "
                "programs are compiled anew in each process. Set NUMJET_CACHE_DIR to a "
                "directory you may write to, or to nothing to switch the cache off.",
            )

    def _write_later(self, delays: int) -> None:
        if delays > 1 and undisturbed.busy():
            later(_DELAY_SECONDS, functools.partial(self._write_later, delays - 1))
        else:
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
                except (OSError, Refused) as error:
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

    def _forget(self, key: str) -> None:
        with self._lock:
            data = self._memory.pop(key, None)
            self._memory_bytes -= 0 if data is None else len(data)

    def _path(self, key: str) -> str:
        return f"{self.directory}/{key[:2]}/{key}"

    def _read(self, key: str) -> bytes | None:
        try:
            found = self._folder.read(key, self.limit + _HEADER)
        except Refused as refused:
            self._warn(refused.kind, str(refused))
            return None
        except NotADirectoryError:
            return None
        except OSError as error:
            self._warn("unreadable", f"numjet's compilation cache cannot be read: {error}")
            return None
        if found is None:
            return None
        raw, written = found
        data = raw[_HEADER:]
        if raw[:_HEADER] != _sealed(key, data):
            self.damaged(key, "its digest is another")
            return None
        if time.time() - written > _REFRESH_SECONDS and self._writable:
            try:
                os.utime(self._path(key))
            except OSError:  # read-only cache: ages then mean the time of writing
                self._writable = False
        return data

    def _write(self, key: str, data: bytes) -> None:
        self._folder.prepare()
        if self._grown(len(data)):
            self.sweep(len(data))
        # A directory in its place stays: it is nothing of ours, and reading has said so.
        with contextlib.suppress(IsADirectoryError):
            self._folder.write(key, [_sealed(key, data), data])

    def _grown(self, nbytes: int) -> bool:
        """Add `nbytes` to the growth log; True when it is time to sweep."""
        return self._folder.log(1 + nbytes // _LOG_UNIT) * _LOG_UNIT >= self.limit // 16

    def sweep(self, coming: int = 0) -> None:
        """Remove entries used longest ago if with `coming` bytes more than 7/8 of the limit were
        taken: what all processes write until the next sweep fits in the rest.

        What else lies in the directory is the user's: it is not counted, and stays.
        """
        self._folder.empty_log()
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


def flush() -> None:
    """Write what is pending, of every store."""
    for store in list(_stores):
        if store._pending or store._failure is not None:
            store.flush()


def _at_exit() -> None:
    for store in list(_stores):
        store._late = True
    flush()


def _after_fork() -> None:
    # The parent writes what was waiting, and its writer may have held the locks.
    for store in list(_stores):
        store._begin()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
