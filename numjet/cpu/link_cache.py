"""A bounded store of compiled bytes: in memory for this process, on disk for the next one.

For: `link` alone. An entry is a file `<directory>/<two hex digits>/<key>`: a magic, a SHA-256
of the contents, the contents. Writers make a temporary file and `os.replace` it, so readers in
other processes see a whole entry or none; a damaged entry fails its digest, is reported once
and treated as absent. What would break it: keys that do not name everything the bytes depend
on (see `link.digest`), or a directory that somebody else may write to (entries are machine code).
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
import time
import warnings

_MAGIC = b"NJC1"
_HEADER = len(_MAGIC) + 32

# Machine code kept in this process; a program is 2-100 KB, so this holds thousands.
MEMORY_BYTES = 64 << 20

# The growth log gets one byte per this many bytes written.
_LOG_UNIT = 4096

# A read refreshes an entry's age only when it is older than this: an utime call per hit is waste.
_REFRESH_SECONDS = 3600.0


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
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._writable = True
        self._temporaries = itertools.count()

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key` (hexadecimal), or None."""
        data = self._memory.get(key)
        if data is None and self.directory is not None:
            data = self._read(key)
            if data is not None:
                self._remember(key, data)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; a disk that cannot be written is reported once."""
        self._remember(key, data)
        if self.directory is not None and self._writable and len(data) < self.limit:
            try:
                self._write(key, data)
            except OSError as error:
                self._writable = False
                self._warn(
                    "unwritable",
                    f"numjet's compilation cache {self.directory} cannot be written ({error}); "
                    "programs are compiled anew in each process. Set NUMJET_CACHE_DIR to a "
                    "directory you may write to, or to nothing to switch the cache off.",
                )

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
            with open(path, "rb", buffering=0) as file:
                raw = file.readall()
                stamp = os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._warn("unreadable", f"numjet's compilation cache cannot be read: {error}")
            return None
        data = raw[_HEADER:]
        if raw[:_HEADER] != _MAGIC + hashlib.sha256(data).digest():
            self._warn(
                "corrupt",
                f"entry {path} of numjet's compilation cache is damaged; it is compiled anew",
            )
            return None
        if time.time() - stamp > _REFRESH_SECONDS and self._writable:
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
        taken: what all processes write until the next sweep fits in the rest."""
        with open(f"{self.directory}/growth", "wb"):
            pass
        entries = []
        total = coming
        now = time.time()
        for folder in os.scandir(self.directory):
            if not folder.is_dir():
                continue
            for entry in os.scandir(folder.path):
                try:
                    status = entry.stat()
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
