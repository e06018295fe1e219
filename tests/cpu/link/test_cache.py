"""Nothing but our own code is executed: who may write to the cache, and what an entry is."""

from __future__ import annotations

import ctypes
import hashlib
import marshal
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
import types
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import numjet
from numjet.core import hooks
from numjet.cpu import host
from numjet.cpu.link import cache, link, loader, sources
from numjet.cpu.link.folder import Folder
from numjet.native import files, operators

KEY = "ab" * 32
posix = pytest.mark.skipif(os.name != "posix", reason="needs users and modes")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files to other users"
)


@pytest.fixture(params=["native", "python"])
def store(tmp_path, request, monkeypatch):
    """A store with one entry, on disk alone, which native code reads, or Python."""
    if request.param == "python":
        monkeypatch.setattr(hooks, "read_file", lambda *_: None)
    elif not read_natively():
        pytest.skip(f"Python reads: {operators.status()}")
    made = cache.Store(str(tmp_path / "cache"), 1 << 20)
    made.put(KEY, b"contents")
    made.flush()
    made.clear_memory()
    return made


@pytest.fixture
def promptly():
    """A test that waits for a pipe fails."""

    def late(*_: object) -> None:
        raise AssertionError("something waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def read_natively() -> bool:
    """Whether native code reads files, which is there from now on."""
    if operators.possible() and not operators.usable():
        operators._build()
    return isinstance(hooks.read_file, types.BuiltinFunctionType)


def entry(store: cache.Store, key: str = KEY) -> Path:
    return Path(store.directory) / key[:2] / key


def refused(store: cache.Store, match: str, key: str = KEY) -> None:
    """The entry is a miss, at once, and said so once."""
    begin = time.monotonic()
    with pytest.warns(RuntimeWarning, match=match):
        assert store.get(key) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get(key) is None
    assert time.monotonic() - begin < 5


# ---------------------------------------------------------------- who may write


@posix
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path, mask) -> None:
    before = os.umask(mask)
    try:
        store = cache.Store(str(tmp_path / "far" / "above" / "cache"), 1 << 20)
        store.put(KEY, b"contents")
        store.flush()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    folders = dict.fromkeys(("far", "above", "cache", "ab"), 0o700)
    assert modes == folders | {KEY: 0o600, "growth": modes["growth"]}
    assert not modes["growth"] & 0o077
    store.clear_memory()
    assert store.get(KEY) == b"contents"


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("which", ["directory", "folder"])
def test_directories_that_others_may_write_are_no_source_of_code(store, which, mode) -> None:
    path = Path(store.directory) / ("" if which == "directory" else "ab")
    path.chmod(mode)
    refused(store, "may be written by others.*chmod go-w")
    path.chmod(0o755)
    assert store.get(KEY) == b"contents"


def test_what_is_kept_in_memory_is_bounded_and_forgotten(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(cache, "MEMORY_BYTES", 1000)
    store = cache.Store(None, 1 << 20)
    for k in range(50):
        store.put(f"{k:02}", bytes(100))
    assert sum(store.get(f"{k:02}") is not None for k in range(50)) == 10
    numjet.clear_caches()
    assert store.get("49") is None


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_no_entries(store, mode) -> None:
    entry(store).chmod(mode)
    refused(store, "may be written by others")


@posix
def test_nothing_is_written_where_others_may_write(tmp_path) -> None:
    tmp_path.chmod(0o777)
    store = cache.Store(str(tmp_path), 1 << 20)
    with pytest.warns(RuntimeWarning, match="may be written by others"):
        store.put(KEY, b"contents")
    store.flush()
    assert not list(tmp_path.iterdir()) and store.get(KEY) == b"contents"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    store = cache.Store(str(tmp_path), 1 << 20)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    store.put(KEY, b"contents")
    with pytest.warns(RuntimeWarning, match="no space"):
        store.flush()
    assert not list((tmp_path / KEY[:2]).iterdir())


def test_writers_with_one_process_number_do_not_meet(tmp_path, monkeypatch) -> None:
    """As in containers, or on machines, that share a directory."""
    write, other = os.write, Folder(str(tmp_path))

    def meanwhile(file: int, data: bytes) -> int:
        monkeypatch.undo()
        other.write(KEY, [b"contents"])
        return write(file, data)

    monkeypatch.setattr(os, "write", meanwhile)
    Folder(str(tmp_path)).write(KEY, [b"contents"])
    assert [path.name for path in (tmp_path / "ab").iterdir()] == [KEY]
    assert (tmp_path / "ab" / KEY).read_bytes() == b"contents"


def test_what_has_the_name_of_a_temporary_stays(tmp_path, monkeypatch) -> None:
    """It may be another process's."""
    monkeypatch.setattr(os, "urandom", bytes)
    folder = Folder(str(tmp_path))
    folder.write(KEY, [b"contents"])
    theirs = tmp_path / "ab" / f".tmp-{bytes(8).hex()}"
    theirs.write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        folder.write(KEY, [b"others"])
    assert theirs.read_bytes() == b"theirs"
    assert (tmp_path / "ab" / KEY).read_bytes() == b"contents"


@as_root
@pytest.mark.parametrize("which", ["", "ab", "ab/" + KEY])
def test_what_belongs_to_others_is_no_source_of_code(store, which) -> None:
    os.chown(Path(store.directory) / which, 12345, -1)
    refused(store, "belongs to another user")


@posix
def test_a_folder_that_is_a_link_is_none(store, tmp_path) -> None:
    (tmp_path / "cache" / "ab").rename(tmp_path / "elsewhere")
    (tmp_path / "cache" / "ab").symlink_to(tmp_path / "elsewhere")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert store.get(KEY) is None


@posix
def test_the_directory_itself_may_be_a_link_to_the_users(store, tmp_path) -> None:
    (tmp_path / "link").symlink_to(store.directory)
    assert cache.Store(str(tmp_path / "link"), 1 << 20).get(KEY) == b"contents"


def test_native_code_reads_what_python_reads(tmp_path, monkeypatch) -> None:
    if not read_natively():
        pytest.skip(f"Python reads: {operators.status()}")
    native, rng = hooks.read_file, random.Random(1)
    store = cache.Store(str(tmp_path / "ünïcode and spaces"), 1 << 30)
    store.put("ab" * 32, b"makes the folders")
    store.flush()
    directory, open_before = os.fsencode(store.directory), len(os.listdir("/proc/self/fd"))
    for size in (0, 1, 35, 36, 4095, 4096, 70_000, 3 << 20):
        path = entry(store)
        path.write_bytes(data := rng.randbytes(size))
        os.utime(path, (5, seconds := rng.randrange(1 << 33)))
        assert native(directory, KEY.encode(), size) == (data, seconds)
        with monkeypatch.context() as patch:
            patch.setattr(hooks, "read_file", lambda *_: None)
            assert store._folder.read(KEY, size) == (data, seconds)
        assert native(directory, KEY.encode(), size - 1) is None
    name = KEY.encode()
    assert native(directory, name, most := 1 << 22) is not None
    for given in (
        (directory, name), (directory, name, most, 9), (store.directory, name, most),
        (directory, KEY, most), (directory, b"ab", most), (directory, b"", most),
        (b"", name, most), (directory, name + b"\0", most), (directory + b"\0/", name, most),
        (directory, name, -1), (directory, name, 1 << 70), (directory, name, None),
        (directory, b"cd" + name, most), (b"missing", name, most),
    ):  # fmt: skip
        assert native(*given) is None
    assert len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize("found", [7, 0, -1])
def test_native_code_takes_no_part_of_a_file(store, monkeypatch, found) -> None:
    """Where the disk fails, or the file becomes shorter meanwhile."""
    if not read_natively():
        pytest.skip(f"Python reads: {operators.status()}")
    native, variable = hooks.read_file, operators._state["addresses"]["files"]
    kind = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
    read = kind(lambda *_: found)
    addresses = {"read": ctypes.cast(read, ctypes.c_void_p).value}
    given = os.fsencode(store.directory), KEY.encode(), 1 << 20
    whole = native(*given)
    with monkeypatch.context() as patch:
        of_all = host.symbol_address
        patch.setattr(host, "symbol_address", lambda n, *a: addresses.get(n) or of_all(n, *a))
        patch.setattr(hooks, "read_file", native)
        files.install(native, variable)
        assert native(*given) is None
    files.install(native, variable)
    assert native(*given) == whole


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files")
def test_nothing_stays_open(store, monkeypatch) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    store.put("cd" * 32, b"contents")
    store.flush()
    store.clear_memory()
    assert store.get("cd" * 32) == store.get(KEY) == b"contents" and store.get("ef" * 32) is None
    (Path(store.directory) / "cd").chmod(0o777)
    store.clear_memory()
    refused(store, "may be written by others", "cd" * 32)
    for name in ("replace", "write"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
            patch.setattr(os, name, mock.Mock(side_effect=OSError("full")))
            Folder(store.directory).write("01" * 32, [b"contents"])
    store.sweep()
    assert opened() == before


class Guarded(dict):
    """What is changed only under a lock."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __setitem__(self, key: str, value: bytes) -> None:
        assert self.lock.locked()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        assert self.lock.locked()
        super().__delitem__(key)

    def pop(self, *given: Any) -> Any:
        assert self.lock.locked()
        return super().pop(*given)

    def clear(self) -> None:
        assert self.lock.locked()
        super().clear()


def test_what_threads_share_is_changed_under_its_lock(store, monkeypatch) -> None:
    monkeypatch.setattr(cache, "MEMORY_BYTES", 10)
    store._memory, store._pending = Guarded(store._lock), Guarded(store._lock)
    for key in ("cd" * 32, "ef" * 32):
        store.put(key, b"contents")
    store.flush()
    assert len(store._memory) == 1 and not store._pending
    with pytest.warns(RuntimeWarning, match="damaged"):
        store.damaged("ef" * 32, "by a test")
    store.clear_memory()
    assert store.get("cd" * 32) == b"contents"


# ---------------------------------------------------------------- what is an entry


@posix
@pytest.mark.parametrize("kind", ["pipe", "directory", "socket", "link", "broken link"])
def test_what_is_no_file_is_a_miss_without_waiting(store, promptly, tmp_path, kind) -> None:
    path = entry(store)
    path.rename(tmp_path / "saved")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        bound = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket may not be long
        try:
            bound.bind(path.name)
        finally:
            os.chdir(here)
            bound.close()
    else:
        path.symlink_to(tmp_path / ("saved" if kind == "link" else "nothing"))
    refused(store, "is no file")
    store.put(KEY, b"new")  # takes its place, but for a directory
    store.flush()
    store.clear_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert store.get(KEY) == (None if kind == "directory" else b"new")


@posix
@pytest.mark.parametrize("kind", ["pipe", "read pipe", "directory", "link"])
def test_what_is_no_log_keeps_nobody_waiting(store, promptly, tmp_path, kind) -> None:
    log = Path(store.directory) / "growth"
    log.unlink(missing_ok=True)
    reader = None
    if "pipe" in kind:
        os.mkfifo(log)
        if kind == "read pipe":
            reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    elif kind == "directory":
        log.mkdir()
    else:
        (tmp_path / "other").write_text("precious")
        log.symlink_to(tmp_path / "other")
    try:
        with pytest.warns(RuntimeWarning, match="numjet's compilation cache"):
            store.put(KEY, b"contents")
            store.flush()
    finally:
        if kind == "pipe":  # a writer that waits goes on
            reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    if reader is not None:
        assert not os.read(reader, 9)
        os.close(reader)
    if kind == "link":
        assert (tmp_path / "other").read_text() == "precious"
    assert store.get(KEY) == b"contents"


@as_root
def test_a_device_is_a_miss(store) -> None:
    entry(store).unlink()
    try:
        os.mknod(entry(store), stat.S_IFCHR | 0o600, os.makedev(1, 3))  # /dev/null
    except OSError:
        pytest.skip("this container makes no devices")
    refused(store, "is no file|cannot be read")


def test_a_renamed_entry_is_a_miss(store) -> None:
    other = "ab" * 31 + "cd"
    shutil.copy(entry(store), entry(store, other))
    refused(store, "damaged", other)
    assert store.get(KEY) == b"contents"


def test_an_entry_of_another_kind_of_machine_is_a_miss(store, monkeypatch) -> None:
    monkeypatch.setattr(cache.host, "machine", lambda: "pdp11")
    refused(store, "damaged")


def test_an_entry_of_the_former_format_is_a_miss(store) -> None:
    data = b"contents"
    entry(store).write_bytes(b"NJC1" + hashlib.sha256(data).digest() + data)
    refused(store, "damaged")


def test_a_file_larger_than_the_cache_is_not_read(store) -> None:
    os.truncate(entry(store), 1 << 40)
    refused(store, "damaged")


def test_fuzzed_entries_are_never_taken(store) -> None:
    rng = random.Random(0)
    whole = entry(store).read_bytes()
    for number in range(300):
        raw = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            kind = rng.randrange(4)
            at = rng.randrange(len(raw) + 1)
            if kind == 0 and at < len(raw):
                raw[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del raw[at:]
            elif kind == 2:
                raw[at:at] = rng.randbytes(rng.randint(1, 9))
            else:
                raw += rng.randbytes(rng.randint(1, 100))
        entry(store).write_bytes(raw)
        store.clear_memory()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = store.get(KEY)
        assert found is None or bytes(raw) == whole, (number, found)


# ---------------------------------------------------------------- right digests, wrong contents


BAD = [b"", b"NJIMAGE1", b"NJIMAGE1garbage", b"garbage", marshal.dumps([1, 2, 3]), bytes(100),
       b"NJIMAGE1" + marshal.dumps([b"x" * 8, 0, [(5, 0, 0)], [], {}]),
       b"NJIMAGE1" + marshal.dumps([b"x" * 8, 0, [], [], {"entry": 10**9}]),
       b"NJIMAGE1" + marshal.dumps([b"x" * 8, 0, [(0, 7, 0)], ["a"], {}]),
       b"NJIMAGE1" + marshal.dumps([[], 0, 5, None, 7])]  # fmt: skip


@pytest.mark.parametrize("data", BAD)
def test_what_is_no_image_is_refused(data) -> None:
    with pytest.raises(loader.Malformed):
        loader.unpack(data)


PROGRAM = """
    import sys, warnings
    import numpy as np
    import numjet as nj, numjet.numpy as jnp
    x = jnp.arange(4096.0).reshape(64, 64)
    for _ in range(3):
        x + 1.0
    got = nj.jit(lambda x: jnp.sort(jnp.tanh(x @ x * 1e-6 + 1.0), axis=-1))(x)
    v = np.arange(4096.0, dtype=np.float32).reshape(64, 64)
    np.testing.assert_allclose(got, np.sort(np.tanh(v @ v * 1e-6 + 1.0), axis=-1), rtol=1e-4)
    print("right")
"""


def run(text: str, directory: Path, *arguments: str, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments], text=True,
        env={**os.environ, "NUMJET_CACHE_DIR": str(directory)}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def finished(process) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def entries(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("??/*") if not path.name.startswith(".tmp"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    """A cache with all that `PROGRAM` needs, native code for operators included."""
    directory = tmp_path_factory.mktemp("filled")
    for _ in range(2):
        assert finished(run(PROGRAM, directory))[:2] == (0, "right\n")
    return directory


def copied(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "cache", symlinks=True))


@pytest.mark.parametrize("bad", [BAD[2], BAD[3], BAD[4], BAD[7]])
def test_damaged_contents_with_a_right_digest_are_made_anew(filled, tmp_path, bad) -> None:
    directory = copied(filled, tmp_path)
    for path in entries(directory):
        path.write_bytes(cache._sealed(path.name, bad) + bad)
    status, output, errors = finished(run(PROGRAM, directory))
    assert (status, output) == (0, "right\n"), errors
    assert "damaged" in errors
    # They were replaced: the next process says nothing.
    assert finished(run(PROGRAM, directory)) == (0, "right\n", "")


@posix
def test_an_import_does_not_wait_for_pipes(filled, tmp_path) -> None:
    directory = copied(filled, tmp_path)
    for path in entries(directory):
        path.unlink()
        os.mkfifo(path)
    status, output, errors = finished(run(PROGRAM, directory))
    assert (status, output) == (0, "right\n"), errors
    assert errors.count("is no file") == 1


@posix
def test_a_shared_directory_runs_nothing_and_says_so_once(filled, tmp_path) -> None:
    directory = copied(filled, tmp_path)
    directory.chmod(0o777)
    status, output, errors = finished(run(PROGRAM, directory))
    assert (status, output) == (0, "right\n"), errors
    assert errors.count("may be written by others") == 1


@posix
def test_a_campaign_against_the_whole_cache(filled, tmp_path) -> None:
    """Entries exchanged, cut, changed, given other modes and types, in any number at a time."""
    rng = random.Random(1)
    for number in range(3):
        directory = copied(filled, tmp_path / str(number))
        paths = entries(directory)
        for path in rng.sample(paths, rng.randint(1, len(paths))):
            kind = rng.randrange(8)
            raw = bytearray(path.read_bytes())
            if kind == 0:
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
                path.write_bytes(raw)
            elif kind == 1:
                path.write_bytes(raw[: rng.randrange(len(raw))])
            elif kind == 2:
                path.write_bytes(rng.choice(paths).read_bytes() if paths else b"")
            elif kind == 3:
                path.chmod(rng.choice([0o666, 0o000, 0o622, 0o777]))
            elif kind == 4:
                path.unlink()
                rng.choice([os.mkfifo, os.mkdir])(path)
            elif kind == 5:
                path.write_bytes(rng.randbytes(rng.randrange(200)))
            elif kind == 6:
                path.parent.chmod(0o777)
            else:
                path.unlink()
        status, output, errors = finished(run(PROGRAM, directory))
        assert (status, output) == (0, "right\n"), (number, errors)


_RACER = """
    import random, sys, warnings
    warnings.simplefilter("ignore")
    from numjet.cpu.link import cache
    store = cache.Store(sys.argv[1], 40_000)
    rng = random.Random(int(sys.argv[2]))
    for round in range(int(sys.argv[3])):
        key = f"{rng.randrange(40):064x}"
        found = store.get(key)
        assert found is None or found == key.encode() * 30, found
        store.put(key, key.encode() * 30)
        if round % 3 == 0:
            store.flush()
        store.clear_memory()
    print("fine")
"""


def test_processes_that_race_and_are_killed(tmp_path) -> None:
    racers = [run(_RACER, tmp_path, str(tmp_path), str(k), "400") for k in range(5)]
    killed = [run(_RACER, tmp_path, str(tmp_path), str(9 + k), "1000000") for k in range(3)]
    time.sleep(0.7)
    for process in killed:
        process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    for process in racers:
        assert finished(process)[:2] == (0, "fine\n")
    for process in killed:
        process.communicate()
    store = cache.Store(str(tmp_path), 40_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is there is whole
        for number in range(40):
            key = f"{number:064x}"
            assert store.get(key) in (None, key.encode() * 30)


# ---------------------------------------------------------------- the sources


@pytest.fixture
def package(tmp_path) -> Path:
    """A small package, changed some time ago."""
    root = tmp_path / "package"
    for name in ("base/a.py", "core/b.py", "transforms/c.py", "ops/d.py", "cpu/x86/e.py"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(f"# {name}")
    return root


def test_digests_of_sources_tell_contents(package) -> None:
    store = cache.Store(None, 1 << 20)
    before = sources.digests(store, package=str(package))
    (package / "ops" / "d.py").write_text("# another")
    after = sources.digests(store, package=str(package))
    assert after["program"] != before["program"] and after["generator"] == before["generator"]
    (package / "cpu" / "x86" / "new.py").write_text("")
    assert sources.digests(store, package=str(package))["generator"] != before["generator"]


@posix
def test_digests_are_kept_only_where_the_system_tells_of_changes(package, monkeypatch) -> None:
    store = cache.Store(None, 1 << 20)
    sources.digests(store, package=str(package))
    assert not store._memory  # changed less than two seconds ago
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10**10)
    before = sources.digests(store, package=str(package))
    assert len(store._memory) == 1
    opened = []
    monkeypatch.setattr("builtins.open", lambda *a, **k: opened.append(a))
    assert sources.digests(store, package=str(package)) == before and not opened
    monkeypatch.undo()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10**10)
    path = package / "ops" / "d.py"
    status = path.stat()
    path.write_text("# ops/D.py")  # as long as before
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert sources.digests(store, package=str(package))["program"] != before["program"]
    # All of one time: normalised, which tells nothing.
    names = sorted(path.name for path in package.rglob("*.py"))
    stats = [os.stat_result([0] * 10)] * len(names)
    assert sources._key(str(package), names, stats) is None


def test_a_changed_operation_gives_its_own_answers_where_times_are_normalised(tmp_path) -> None:
    """A copy of the package whose `sub` is changed to what is as long, and as old."""
    import numjet

    root = tmp_path / "copy"
    shutil.copytree(os.path.dirname(numjet.__file__), root / "numjet",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    text = """
        import sys
        sys.path.insert(0, sys.argv[1])
        sys.dont_write_bytecode = True
        import numjet as nj, numjet.numpy as jnp
        assert nj.__file__.startswith(sys.argv[1])
        print(nj.jit(lambda x, y: x - y)(jnp.ones(40) * 5, jnp.ones(40) * 3)[0])
    """

    def answer() -> str:
        for path in root.rglob("*.py"):
            os.utime(path, ns=(0, 10**18))
        status, output, errors = finished(run(text, tmp_path / "cache", str(root)))
        assert status == 0, errors
        return output

    assert answer() == answer() == "2.0\n"
    path = root / "numjet" / "ops" / "arithmetic.py"
    source = path.read_text()
    changed = source.replace("e.sub(x, y)", "e.add(x, y)")
    assert changed != source and len(changed) == len(source)
    path.write_text(changed)
    assert answer() == "8.0\n"


def test_kept_targets_are_looked_at(tmp_path, monkeypatch) -> None:
    assert link._target_of(marshal.dumps([*link.target()], 2)) == link.target()
    for bad in (b"", b"x", marshal.dumps(5), marshal.dumps(["a", "b", "c", "d"])):
        assert link._target_of(bad) is None


def test_values_without_bytes_are_read_again(tmp_path) -> None:
    """Tangents of integers (float0) are constants of such programs."""
    text = """
        import numjet as nj, numjet.numpy as jnp
        print(nj.jit(lambda x: nj.jvp(lambda a: (a * 2, 1), (x,), (x,)))(3.0)[1][0])
    """
    for _ in range(2):
        assert finished(run(text, tmp_path / "cache")) == (0, "6.0\n", "")
