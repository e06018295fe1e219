"""Digests of the package's sources, which compiled code depends on and is kept under.

For: `link`, and through it those who make keys. Reading and digesting all that the compiler depends
on takes 10 to 20 ms, longer than all else that a process with its programs in the cache spends on
one; what native functions are made of takes 2 ms, while the package is imported. So the digests are
kept too, under what the system says of the files: place, number, size, when they were written and
when they were last changed in any way (ctime), which nobody can set. They are only kept where that
tells something: not by systems without such a time, nor of files that all have one and the same
(images whose times are normalised), nor within two seconds of a change, which a coarse clock might
not show. What would break it: a change of a file that leaves its ctime.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator

from numjet.cpu import host
from numjet.cpu.link.cache import Store

# What programs are compiled by: the layers up to the compiler; and parts of it, whose products are
# kept by themselves.
Parts = dict[str, tuple[str, ...]]
PARTS: Parts = {
    "program": ("base", "core", "transforms", "ops", "cpu"),
    "kernels": ("cpu/builder", "cpu/kernels", "cpu/math"),
    "generator": ("cpu/builder", "cpu/x86"),
}
# What native functions are compiled from: those that read objects and those of the runtime.
NATIVE: Parts = {"native": ("native", "cpu/builder", "cpu/graph", "cpu/link", "cpu/runtime")}
# Digests to be kept with the next that a program asks for: not while the package is imported, as a
# cache that cannot be written warns.
_unkept: list[Callable[[], None]] = []
_FORMAT = 2
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_COARSE = 2 * 10**9  # nanoseconds; FAT's clock, the coarsest, counts two seconds


def _files(package: str, parts: Parts = PARTS) -> Iterator[os.DirEntry]:
    """The source files of the first of some parts, or compiled ones where there are no others."""
    # Not with pathlib, which takes 5 ms for this.
    folders = [f"{package}/{name}" for name in next(iter(parts.values()))]
    while folders:
        entries = list(os.scandir(folders.pop()))
        names = {entry.name for entry in entries}
        for entry in entries:
            stem, dot, kind = entry.name.rpartition(".")
            if kind == "py" or kind == "pyc" and stem + ".py" not in names:
                yield entry
            elif not dot and entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)


def digests(store: Store, parts: Parts = PARTS, package: str = _PACKAGE) -> dict[str, str]:
    """The digest of each of the parts, from the store where that can be. Raises OSError where the
    package does not lie in files."""
    found = sorted([(entry.path[len(package) + 1 :], entry) for entry in _files(package, parts)],
                   key=lambda pair: pair[0])  # fmt: skip
    names = [name for name, _ in found]
    stats = [entry.stat() for _, entry in found]
    key = _key(package, names, stats)
    kept = None if key is None else store.get(key)
    if kept is not None and len(kept) == 32 * len(parts):
        pieces = [kept[k : k + 32].hex() for k in range(0, len(kept), 32)]
        return dict(zip(parts, pieces, strict=True))
    contents = {}
    for name in names:
        with open(f"{package}/{name}", "rb") as file:
            contents[name] = host.blake2(file.read())
    made = {}
    for part, folders in parts.items():
        within = tuple([folder + "/" for folder in folders])
        named = [name.encode() + b"\0" + contents[name] for name in names
                 if name.startswith(within)]  # fmt: skip
        made[part] = host.blake2(b"".join(named))
    if key is not None and time.time_ns() - max(s.st_ctime_ns for s in stats) > _COARSE:
        _unkept.append(functools.partial(store.put, key, b"".join(made.values())))
    while parts is not NATIVE and _unkept:
        _unkept.pop()()
    return {part: digest.hex() for part, digest in made.items()}


def _key(package: str, names: list[str], stats: list[os.stat_result]) -> str | None:
    """What the digests are kept under, or None where they must be made."""
    changed = {status.st_ctime_ns for status in stats}
    if host.WINDOWS or len(changed) < 2:
        return None
    facts = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats]
    return host.blake2(f"sources {_FORMAT} {package} {names} {facts}".encode()).hex()


def of(store: Store, part: str) -> str | None:
    """The digest of a part of this package; None where it does not lie in files."""
    found = _once(store, part in NATIVE)
    return None if found is None else found[part]


@functools.cache
def _once(store: Store, native: bool) -> dict[str, str] | None:
    try:
        return digests(store, NATIVE if native else PARTS)
    except OSError:  # in an archive, say: nothing is kept that depends on the sources
        return None
