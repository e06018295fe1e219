"""The directory of a store of code: what may be read from it, and how files get there.

For: `cache` alone. What is read will run, so it comes only from a directory, a folder in it and a
regular file that each belong to this user (or the system's) and that nobody else may write. All
three are looked at after they were opened, not by their names, which somebody may have given to
something else meanwhile. Nothing here waits: a pipe, a device or a socket is no entry. Where the
system has neither users nor files relative to opened directories (Windows), names are taken.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from numjet.core import hooks

# Windows alone has text files. An entry is never a link, whoever may have made one.
_BINARY = getattr(os, "O_BINARY", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
READING = os.O_RDONLY | _BINARY | NO_LINK | _NO_WAITING
_LOGGING = os.O_WRONLY | NO_LINK | _NO_WAITING
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | NO_LINK
DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
OTHERS = stat.S_IWGRP | stat.S_IWOTH
_BY_DESCRIPTOR = hasattr(os, "geteuid") and {os.open, os.mkdir, os.unlink, os.rename} <= (
    os.supports_dir_fd
)

# What opening a link, or a socket, gives.
_NO_FILE = (errno.ELOOP, errno.ENXIO, getattr(errno, "EOPNOTSUPP", errno.ENXIO), errno.EMLINK)


class Refused(Exception):
    """Something that nothing is read from: `kind`, for those who report each kind once, and why."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def _check(status: os.stat_result, what: str, path: str) -> None:
    """Raise Refused where somebody else could have put something there."""
    if not hasattr(os, "geteuid"):
        return
    mine = status.st_uid in (0, os.geteuid())
    if mine and not status.st_mode & OTHERS:
        return
    what = f"{what} {path} of numjet's compilation cache"
    if not mine:
        raise Refused(
            "foreign",
            f"{what} belongs to another user; nothing is taken from there, programs are compiled "
            "anew. Set NUMJET_CACHE_DIR to a directory of your own.",
        )
    raise Refused(
        "shared",
        f"{what} may be written by others; code is not taken from there, programs are compiled "
        f"anew. Take the permission away (chmod go-w), or set NUMJET_CACHE_DIR to a directory "
        "that only you may write to.",
    )


def _refused(kind: str, path: str, why: str) -> Refused:
    return Refused(
        kind, f"entry {path} of numjet's compilation cache is {why}; it is compiled anew"
    )


def _make(path: str, where: int | None = None) -> None:
    """Make a directory for this user alone, whatever the umask is, unless another process was
    quicker."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=where)
        os.chmod(path, 0o700, dir_fd=where)


def _make_above(path: str) -> None:
    """Make the directories above `path` that are missing."""
    above = os.path.dirname(path)
    if above and above != path and not os.path.exists(above):
        _make_above(above)
        _make(above)


class Folder:
    """Files by name, in folders of the first two letters."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._encoded = os.fsencode(path)

    # ---- directories: a descriptor, or the name where there are none

    def _open(self, parent: int | str | None, name: str) -> int | str:
        """An open directory that may be trusted. Raises Refused, or OSError."""
        shown = name if parent is None else f"{self.path}/{name}"
        if not _BY_DESCRIPTOR:
            _check(os.stat(shown), "directory", shown)
            return shown
        if parent is None:
            found = os.open(name, DIRECTORY)
        else:
            assert isinstance(parent, int)
            found = os.open(name, DIRECTORY | NO_LINK, dir_fd=parent)
        try:
            _check(os.fstat(found), "directory", shown)
        except Refused:
            os.close(found)
            raise
        return found

    def _made(self, parent: int | str | None, name: str) -> int | str:
        """`_open`, of a directory that is made where there is none: for this user alone."""
        try:
            return self._open(parent, name)
        except FileNotFoundError:
            pass
        if parent is None:
            _make_above(name)
        where = parent if isinstance(parent, int) else None
        _make(name if parent is None or where is not None else f"{parent}/{name}", where)
        return self._open(parent, name)

    def _close(self, directory: int | str) -> None:
        if isinstance(directory, int):
            os.close(directory)

    def prepare(self) -> None:
        """Make the directory. Raises OSError where that cannot be written, and Refused."""
        root = self._made(None, self.path)
        try:
            if not os.access(self.path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        finally:
            self._close(root)

    # ---- files

    def read(self, name: str, most: int) -> tuple[bytes, float] | None:
        """The content of a file, and when it was written; None where there is none.

        Raises Refused, also of a file with more than `most` bytes, and OSError.
        """
        found = hooks.read_file(self._encoded, os.fsencode(name), most)
        if found is not None:
            return found
        try:
            root = self._open(None, self.path)
        except FileNotFoundError:
            return None
        try:
            folder = self._open(root, name[:2])
            try:
                return self._content(folder, name, most)
            finally:
                self._close(folder)
        except FileNotFoundError:
            return None
        finally:
            self._close(root)

    def _content(self, folder: int | str, name: str, most: int) -> tuple[bytes, float]:
        path = f"{self.path}/{name[:2]}/{name}"
        where = {"dir_fd": folder} if isinstance(folder, int) else {}
        try:
            file = os.open(name if where else f"{folder}/{name}", READING, **where)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _NO_FILE:
                raise _refused("strange", path, "no file") from None
            raise
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise _refused("strange", path, "no file")
            _check(status, "entry", path)
            if status.st_size > most:
                raise _refused("damaged", path, "damaged")
            return os.read(file, status.st_size), status.st_mtime
        finally:
            os.close(file)

    def write(self, name: str, parts: list[bytes]) -> None:
        """Put a file there in one step, for this user alone. Raises Refused, and OSError."""
        root = self._made(None, self.path)
        try:
            folder = self._made(root, name[:2])
            try:
                self._put(folder, name, b"".join(parts))
            finally:
                self._close(folder)
        finally:
            self._close(root)

    def _put(self, folder: int | str, name: str, data: bytes) -> None:
        # Other machines and containers, where processes have the same numbers, may write here too;
        # what a dead process left is swept.
        temporary = f".tmp-{os.urandom(8).hex()}"
        where, source, both = {}, temporary, {}
        if isinstance(folder, int):
            where, both = {"dir_fd": folder}, {"src_dir_fd": folder, "dst_dir_fd": folder}
        else:
            source, name = f"{folder}/{temporary}", f"{folder}/{name}"
        file = os.open(source, _WRITING, 0o600, **where)
        try:
            try:
                if hasattr(os, "fchmod"):
                    os.fchmod(file, 0o600)  # whatever the umask is
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(file, rest) :]
            finally:
                os.close(file)
            os.replace(source, name, **both)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(source, **where)
            raise

    def log(self, bytes: int) -> int:
        """Add so many bytes to the log of what was written; returns its size."""
        log = self._log(os.O_CREAT | os.O_APPEND)
        try:
            os.write(log, b"." * bytes)
            return os.fstat(log).st_size
        finally:
            os.close(log)

    def empty_log(self) -> None:
        """Begin the log anew."""
        os.close(self._log(os.O_CREAT | os.O_TRUNC))

    def _log(self, flags: int) -> int:
        path = f"{self.path}/growth"
        log = os.open(path, flags | _LOGGING, 0o600)
        if not stat.S_ISREG(os.fstat(log).st_mode):
            os.close(log)
            raise Refused(
                "strange", f"{path} is no file; nothing is kept in numjet's compilation cache"
            )
        return log
