"""Compiling, caching and linking of IR modules."""

import ctypes
import functools
import glob
import hashlib
import os
import subprocess
import sys
import textwrap
import time
import types
import warnings

import pytest
from together import together

import numjet as nj
from numjet.base import config
from numjet.base.errors import InternalError
from numjet.base.undisturbed import undisturbed
from numjet.cpu import host
from numjet.cpu.link import cache as link_cache, link, processor
from numjet.cpu.link.jobs import Jobs


def constant_module(name, value):
    return f"define i64 @{name}() {{\n  ret i64 {value}\n}}\n"


def call(address, *arguments):
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return kind(address)(*arguments)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A fresh store in a temporary directory, in place of the process's own."""
    link.target()  # which the process's own store may keep, as these
    parts = (*link.sources.PARTS, *link.sources.NATIVE)
    sources = {part: link.sources_digest(part) for part in parts}
    monkeypatch.setattr(link, "sources_digest", sources.get)
    fresh = link_cache.Store(str(tmp_path / "cache"), 1 << 20)
    monkeypatch.setattr(link, "_store", lambda: fresh)
    return fresh


def entries(store):
    store.flush()
    return sorted(glob.glob(f"{store.directory}/??/*"))


def test_target_describes_the_host():
    host = link.target()
    assert link.vector_bytes() in (16, 32, 64)
    assert host.cpu and host.triple
    assert not host.has("no-such-feature")


def test_compile_load_and_call(store):
    library = link.load([link.compile_module(constant_module("f", 41))], ["f"])
    assert call(library.address("f")) == 41


def test_objects_of_one_library_refer_to_each_other(store):
    caller = "declare i64 @g()\ndefine i64 @f() {\n %x = call i64 @g()\n ret i64 %x\n}\n"
    objects = [link.compile_module(text) for text in (caller, constant_module("g", 5))]
    assert call(link.load(objects).address("f")) == 5


def test_libraries_may_reuse_names_and_die_alone(store):
    first = link.load([link.compile_module(constant_module("f", 1))])
    second = link.load([link.compile_module(constant_module("f", 2))])
    assert (call(first.address("f")), call(second.address("f"))) == (1, 2)
    del first
    assert call(second.address("f")) == 2


def test_defined_symbols_resolve(store):
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x * 10)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    link.define_symbol("nj_test_times_ten", address)
    assert link.defined_symbol("nj_test_times_ten") == address
    text = (
        "declare i64 @nj_test_times_ten(i64)\ndefine i64 @f(i64 %x) {\n"
        " %y = call i64 @nj_test_times_ten(i64 %x)\n ret i64 %y\n}\n"
    )
    assert call(link.load([link.compile_module(text)]).address("f"), 7) == 70


def test_provided_symbols_are_asked_for_once(store, monkeypatch):
    monkeypatch.setattr(link, "_providers", {})
    monkeypatch.setattr(link, "_symbols", {})
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 3)
    asked = []

    def resolve(name):
        asked.append(name)
        return ctypes.cast(callback, ctypes.c_void_p).value

    link.provide("nj_test_plus_", resolve)
    text = (
        "declare i64 @nj_test_plus_three(i64)\ndefine i64 @f(i64 %x) {\n"
        " %y = call i64 @nj_test_plus_three(i64 %x)\n ret i64 %y\n}\n"
    )
    for _ in range(2):
        assert call(link.load([link.compile_module(text)]).address("f"), 7) == 10
    assert asked == ["nj_test_plus_three"]


def test_symbols_of_the_process_resolve(store):
    text = (
        "declare double @fmod(double, double)\ndefine i64 @f(i64 %x) {\n"
        " %a = sitofp i64 %x to double\n %b = call double @fmod(double %a, double 4.0)\n"
        " %c = fptosi double %b to i64\n ret i64 %c\n}\n"
    )
    assert call(link.load([link.compile_module(text)]).address("f"), 7) == 3


def test_undefined_symbol_is_named(store):
    text = "declare void @nj_nowhere()\ndefine void @f() {\n call void @nj_nowhere()\n ret void }"
    with pytest.raises(InternalError, match="linking failed.*nj_nowhere"):
        link.load([link.compile_module(text)], ["f"])


def test_unknown_export_is_named(store):
    library = link.load([link.compile_module(constant_module("f", 1))])
    with pytest.raises(InternalError, match="'g'"):
        library.address("g")


@pytest.mark.parametrize("text", ["define i32 @f( {", "define i32 @f() { ret i64 0 }"])
def test_invalid_ir_is_an_internal_error(store, text):
    with pytest.raises(InternalError, match="cannot parse"):
        link.compile_module(text)


def test_verifier_finds_undominated_uses(store):
    text = (
        "define i64 @f(i1 %c) {\nentry:\n br i1 %c, label %a, label %b\n"
        "a:\n %x = add i64 1, 2\n br label %b\nb:\n ret i64 %x\n}\n"
    )
    with pytest.raises(InternalError, match="verify.*dominate"):
        link.compile_module(text, verify=True)


def test_assembly_shows_the_function():
    assert "nj_shown" in link.assembly(constant_module("nj_shown", 3))


def test_equal_text_compiles_once(store, monkeypatch):
    first = link.compile_module(constant_module("f", 1))
    monkeypatch.setattr(link, "_compile", None)
    assert link.compile_module(constant_module("f", 1)) == first
    store.clear_memory()
    assert link.compile_module(constant_module("f", 1)) == first


def test_many_modules_compile_side_by_side(store):
    jobs = Jobs()
    for i in range(40):
        jobs.start(functools.partial(link.compile_module, constant_module(f"f{i}", i)))
    library = link.load(jobs.finish())
    assert [call(library.address(f"f{i}")) for i in range(40)] == list(range(40))
    assert len(entries(store)) == 40


def test_digest_depends_on_text_and_target(monkeypatch):
    assert link.digest("a") != link.digest("b")
    before = link.digest("a")
    monkeypatch.setattr(link, "_salt", lambda: b"another machine")
    assert link.digest("a") != before


def test_a_kept_target_is_the_hosts_and_belongs_to_one_processor(store, monkeypatch):
    if processor.identity() is None:
        pytest.skip("only LLVM knows this processor")
    host = link._host()
    assert link.target.__wrapped__() == host
    with monkeypatch.context() as patch:
        patch.setattr(link, "_host", lambda: None)
        assert link.target.__wrapped__() == host
    salt = link._salt.__wrapped__()
    salts = {salt}
    for level in {*config.cpu.choices} - {config.cpu.value}:
        with monkeypatch.context() as patch:
            patch.setattr(config.cpu, "_global", level)
            salts.add(link._salt.__wrapped__())
    assert len(salts) == len(config.cpu.choices)
    identity = processor.identity()
    monkeypatch.setattr(processor, "identity", lambda: identity[:-1] + b"?")
    assert link._salt.__wrapped__() != salt


def test_generic_entries(store):
    key = link.digest("a program")
    assert link.cache_get(key) is None
    link.cache_put(key, b"bytes")
    store.clear_memory()
    assert link.cache_get(key) == b"bytes"


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_damaged_entry_is_reported_once_and_replaced(store, damage):
    good = link.compile_module(constant_module("f", 1))
    (path,) = entries(store)
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    if damage == "truncate":
        raw = raw[:-5]
    elif damage == "flip":
        raw[100] ^= 1
    else:
        raw = b""
    for attempt in range(2):
        with open(path, "wb") as file:
            file.write(raw)
        store.clear_memory()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert link.compile_module(constant_module("f", 1)) == good
        assert len(caught) == (1 if attempt == 0 else 0)
    store.clear_memory()
    assert link.cache_get(link.digest(constant_module("f", 1))) == good


@pytest.mark.parametrize("bad", [b"", b"garbage", b"NJIMAGE1garbage"])
def test_a_library_that_is_damaged_in_the_cache_is_made_anew(store, bad):
    text = constant_module("f", 6)
    link.library(text)
    link.cache_put(link._library_key(text, False), bad)
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert call(link.library(text).address("f")) == 6
    assert link.cache_get(link._library_key(text, False)) != bad


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_entries_of_other_users_are_not_used(store, monkeypatch):
    store.put("ab" * 32, b"x")
    store.flush()
    store.clear_memory()
    if os.geteuid() == 0:
        os.chown(store._path("ab" * 32), 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert store.get("ab" * 32) is None
    store.put("ab" * 32, b"y")
    store.flush()
    if os.geteuid() == 0:  # an entry of our own takes its place
        store.clear_memory()
        assert store.get("ab" * 32) == b"y"


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links")
def test_links_are_no_entries(store):
    store.put("ab" * 32, b"x")
    store.flush()
    os.symlink(store._path("ab" * 32), store._path("ab" * 31 + "cd"))
    with pytest.warns(RuntimeWarning, match="is no file"):
        assert store.get("ab" * 31 + "cd") is None


def test_unwritable_directory_is_reported_once(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    store = link_cache.Store(str(blocker / "cache"), 1 << 20)
    monkeypatch.setattr(link, "_store", lambda: store)
    with pytest.warns(RuntimeWarning, match="NUMJET_CACHE_DIR"):
        link.compile_module(constant_module("f", 1))
    assert link.compile_module(constant_module("f", 2))
    assert link.compile_module(constant_module("f", 1))


def test_entries_are_written_later_and_found_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(link_cache, "_DELAY_SECONDS", 3600.0)
    store = link_cache.Store(str(tmp_path), 1 << 20)
    for k in range(3):
        store.put(f"{k:064x}", bytes([k]))
    store.clear_memory()
    assert not glob.glob(f"{tmp_path}/??/*")
    assert [store.get(f"{k:064x}") for k in range(3)] == [b"\0", b"\1", b"\2"]
    assert len(entries(store)) == 3
    store.clear_memory()
    assert store.get(f"{2:064x}") == b"\2" and not store._pending


@pytest.mark.parametrize("size", [0, 1, 127, 128, 8191, 100_000])
def test_digests_are_those_of_hashlib(size, monkeypatch):
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    wanted = hashlib.blake2b(data, digest_size=32).digest()
    assert host.blake2(data) == wanted
    monkeypatch.setitem(sys.modules, "_blake2", None)  # an interpreter without one of its own
    monkeypatch.setattr(host, "_hashed", host._own_blake2())
    assert host.blake2(data) == wanted


def test_another_thread_writes_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(link_cache, "_DELAY_SECONDS", 0.0)
    store = link_cache.Store(str(tmp_path), 1 << 20)
    for k in range(20):  # threads end when nothing is left, and new ones begin
        store.put(f"{k:064x}", b"x")
        until = time.monotonic() + 30
        while store._writing and k % 2 and time.monotonic() < until:
            time.sleep(0.001)
    while store._writing and time.monotonic() < until:
        time.sleep(0.001)
    assert len(glob.glob(f"{tmp_path}/??/*")) == 20


def test_a_write_that_fails_later_is_reported_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(link_cache, "_DELAY_SECONDS", 3600.0)
    store = link_cache.Store(str(tmp_path), 1 << 20)

    def full(key, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_write", full)
    store.put("aa", b"x")
    store._write_pending()
    with pytest.warns(RuntimeWarning, match="No space left"):
        store.put("ab", b"y")
    store.put("ac", b"z")  # reported once
    assert (store.get("aa"), store.get("ab"), store.get("ac")) == (b"x", b"y", b"z")
    assert not store._pending


def test_the_option_of_llvm_is_changed_by_the_first_and_the_last_under_a_lock(monkeypatch):
    around, said = link._WithoutStrengthReduction(), []

    def option(name, value):
        assert around._lock.locked()
        said.append(value)

    fake = types.SimpleNamespace(lib=types.SimpleNamespace(LLVMPY_SetCommandLine=option))
    monkeypatch.setattr(link, "_llvm_once", lambda: fake)
    for _ in range(2):
        with around, around:
            assert said[-1] == b"-disable-lsr=1"
    assert said == [b"-disable-lsr=1", b"-disable-lsr=0"] * 2


def test_what_is_made_while_the_process_ends_is_written_at_once(tmp_path, monkeypatch):
    store = link_cache.Store(str(tmp_path), 1 << 20)
    monkeypatch.setattr(link_cache, "_stores", {store})
    monkeypatch.setattr(link_cache, "later", lambda *_: None)  # which nobody waits for any more
    store.put("aa", b"before")
    link_cache._at_exit()
    store.put("ab", b"meanwhile")
    assert {os.path.basename(path) for path in glob.glob(f"{tmp_path}/??/*")} == {"aa", "ab"}


def test_code_stays_while_the_interpreter_ends(monkeypatch):
    """Threads may be inside, and what would give it back may be gone."""
    given_back = []
    before = link.Library({}, given_back.append, lambda: given_back.append("before"))
    meanwhile = link.Library({}, given_back.append, lambda: given_back.append("meanwhile"))
    del before
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    del meanwhile
    assert given_back == ["before"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_writes_its_own_entries_only(tmp_path):
    code = """
        import os, sys
        from numjet.cpu.link import cache as link_cache
        link_cache._DELAY_SECONDS = 3600.0
        store = link_cache.Store(sys.argv[1], 1 << 20)
        store.put("aa" * 32, b"parent")
        with store._disk, store._lock:  # as while the parent's thread writes
            child = os.fork()
        if child == 0:
            store.put("bb" * 32, b"child")
            store.flush()
            os._exit(store.get("aa" * 32) != b"parent")
        assert os.waitpid(child, 0)[1] == 0
        assert os.path.exists(store._path("bb" * 32)) and not os.path.exists(store._path("aa" * 32))
    """
    process = child(str(tmp_path / "own"), code, arguments=[str(tmp_path / "shared")])
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    # What was left is written at the end of the process.
    assert sorted(os.path.basename(path) for path in glob.glob(f"{tmp_path}/shared/??/*")) == [
        "aa" * 32, "bb" * 32,
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_a_library_of_its_parent(tmp_path):
    code = """
        import os, signal, sys, threading
        from numjet.cpu.link import link
        text = "define i64 @f() {\\n  ret i64 3\\n}\\n"
        held = threading.Event()

        def hold():  # as a thread that compiles it
            key = link._library_key(text, False)
            with link._library_locks.setdefault(key, threading.Lock()):
                held.set()
                threading.Event().wait()

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(not link.library(text).address("f"))
        assert os.waitpid(child, 0)[1] == 0
    """
    process = child(str(tmp_path), code)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def test_memory_only(monkeypatch):
    store = link_cache.Store(None, 1 << 20)
    store.put("ab", b"x")
    assert store.get("ab") == b"x"
    store.clear_memory()
    assert store.get("ab") is None


def test_disk_stays_below_its_limit_and_keeps_what_was_used(tmp_path):
    limit = 400_000
    store = link_cache.Store(str(tmp_path), limit)
    for number in range(200):
        store.put(f"{number:064x}", bytes(4000))
        store.flush()
        os.utime(store._path(f"{number:064x}"), (number, number))
        store.clear_memory()
        if number > 0:  # reading refreshes its age, so the sweeps never take it
            assert store.get(f"{0:064x}") is not None
    files = [path for path in glob.glob(f"{tmp_path}/*/*")]
    assert 0.5 * limit < sum(map(os.path.getsize, files)) <= limit
    assert store.get(f"{199:064x}") is not None
    assert store.get(f"{1:064x}") is None


def test_a_sweep_leaves_what_is_not_the_caches(tmp_path):
    """NUMJET_CACHE_DIR may name a folder that holds other things."""
    others = ["notes.txt", "ab/letter.txt", "ab/cd/page.txt", "photos/1.png", "zz/" + "zz" * 32]
    for name in others:
        os.makedirs(os.path.dirname(tmp_path / name), exist_ok=True)
        (tmp_path / name).write_bytes(bytes(50_000))
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / ("ac" * 32)).write_bytes(bytes(50_000))
    os.symlink(tmp_path / "elsewhere", tmp_path / "ac")
    store = link_cache.Store(str(tmp_path), 100_000)
    for number in range(60):
        store.put(f"ab{number:062x}", bytes(4000))
        store.flush()
    assert all((tmp_path / name).exists() for name in others)
    assert (tmp_path / "elsewhere" / ("ac" * 32)).exists()
    assert 50_000 < sum(map(os.path.getsize, glob.glob(f"{tmp_path}/ab/ab*"))) <= 100_000


def test_threads_share_a_store(store):
    def work(seed):
        for i in range(50):
            key = f"{(i * 7 + seed) % 20:064x}"
            store.put(key, key.encode() * 50)
            if i % 10 == 0:
                store.clear_memory()
            assert store.get(key) == key.encode() * 50

    together(work, range(4))


_CHILD = """
import ctypes, sys
from numjet.cpu.link import link
texts = ["define i64 @f%d() {\\n ret i64 %d\\n}\\n" % (i, i) for i in range(30)]
library = link.load([link.compile_module(text) for text in texts])
for i in range(30):
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("f%d" % i))() == i
assert "llvmlite" not in sys.modules
print("ok")
"""


def child(directory, code=_CHILD, arguments=(), **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        # The checked build compiles native code anew in every process.
        env={**os.environ, "NUMJET_CACHE_DIR": directory, "NUMJET_NATIVE_CHECKS": "",
             **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def test_two_processes_fill_one_directory(tmp_path):
    for _ in range(2):
        for process in [child(str(tmp_path)), child(str(tmp_path))]:
            output, errors = process.communicate(timeout=60)
            assert (process.returncode, output) == (0, "ok\n"), errors
    # The modules, what the target is where later processes can recognize it, and digests of the
    # sources of programs and of native functions unless these are quite new.
    described = processor.identity() is not None
    assert len(glob.glob(f"{tmp_path}/??/*")) - described in (30, 31, 32)
    assert not glob.glob(f"{tmp_path}/??/.tmp*")


def test_cache_can_be_switched_off(tmp_path):
    process = child(str(tmp_path), NUMJET_DISK_CACHE="0")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "ok\n"), errors
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("level, width", [("x86-64-v2", 16), ("x86-64-v3", 32)])
def test_narrower_vectors_can_be_asked_for(tmp_path, level, width):
    if not link.target().has("avx2"):
        pytest.skip("this processor has no wider vectors")
    code = """
        from numjet.cpu.link import link
        text = '''define void @f(ptr %x) {
          %v = load <16 x float>, ptr %x
          %w = fadd <16 x float> %v, %v
          store <16 x float> %w, ptr %x
          ret void
        }'''
        print(link.vector_bytes(), "zmm" in link.assembly(text))
    """
    process = child(str(tmp_path), code, NUMJET_CPU=level)
    output, errors = process.communicate(timeout=60)
    assert output == f"{width} False\n", errors


def test_entries_wait_for_compilations(tmp_path, monkeypatch):
    monkeypatch.setattr(link_cache, "_DELAY_SECONDS", 1e-3)
    monkeypatch.setattr(link_cache, "_MOST_DELAYS", 10**6)
    store = link_cache.Store(str(tmp_path), 1 << 20)
    with undisturbed:
        store.put("ad" * 32, b"x")
        time.sleep(0.05)
        assert not glob.glob(f"{tmp_path}/??/*")
    until = time.monotonic() + 30
    while store._writing and time.monotonic() < until:
        time.sleep(0.001)
    assert glob.glob(f"{tmp_path}/??/*")


def test_the_directory_can_change(tmp_path):
    """Flag `cache_dir`, which JAX's `compilation_cache.set_cache_dir` sets."""
    from numjet.experimental.compilation_cache import compilation_cache

    before = config.cache_dir.value
    key = link.digest("test_the_directory_can_change")
    try:
        for name in ("one", "two"):
            compilation_cache.set_cache_dir(tmp_path / name)
            assert nj.config.jax_compilation_cache_dir == str(tmp_path / name)
            assert link.cache_get(key) is None
            link.cache_put(key, name.encode())
        compilation_cache.reset_cache()
        assert link.cache_get(key) == b"two"
        compilation_cache.set_cache_dir(tmp_path / "one")
        assert link.cache_get(key) == b"one"
        assert nj.jit(lambda x: x * 7 + 3)(1.0) == 10
        compilation_cache.reset_cache()
        assert len([f for f in (tmp_path / "one").rglob("*") if f.is_file()]) > 1
    finally:
        config.cache_dir.set(before)
