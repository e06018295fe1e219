"""From LLVM IR text to callable addresses: compile, cache, link.

For: the compiler (`numjet.cpu`) and the runtime. A module's IR text is compiled with no IR
passes at code generation level 1 (it is already vectorized; higher levels double the time for
no gain), kept under the digest of everything it depends on, and linked into the process one
`Library` a program. Nothing of LLVM is loaded before the first call. What would break it: IR
whose meaning depends on something that is not in its text, and external symbols that are
redefined at another address after code was linked against them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import marshal
import os
import re
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from ctypes import byref, c_void_p
from typing import Protocol

from numjet.base import config, locks
from numjet.base.errors import InternalError
from numjet.base.handles import handles
from numjet.base.record import NamedTuple
from numjet.cpu import host
from numjet.cpu.link import cache, llvm, loader, processor, sources
from numjet.cpu.link.cache import Store
from numjet.cpu.x86.able import able

# Part of every key: raise it when cached bytes of an older version must not be used any more.
CACHE_VERSION = 30

# What reading data that is not what was written raises.
MALFORMED = (
    EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error
)  # fmt: skip

_OPTIMIZATION_LEVEL, _QUICK_LEVEL = 1, 0


class Target(NamedTuple):
    """The processor code is generated for."""

    triple: str
    cpu: str
    features: str  # "+avx2,-avx512f,…", sorted
    vector_bytes: int  # width of the vectors the compiler should emit

    def has(self, feature: str) -> bool:
        """Whether the processor has LLVM feature `feature` ("avx2", "fma", "avx512f", …)."""
        return f"+{feature}" in self.features.split(",")



class Written(Protocol):
    """A module as `builder` writes it."""

    def text(self) -> str: ...


_llvm_lock = locks.lock()
_symbols: dict[str, int] = {}
_providers: dict[str, Callable[[str], int]] = {}
_UNKNOWN = os.urandom(16).hex()  # of sources that do not lie in files: kept for this process
_PROVIDABLE = rb"(nj_[A-Za-z0-9_]+)\0"
# Idle target machines, by level; one serves one thread at a time.
_machines: dict[int, list[int]] = {_OPTIMIZATION_LEVEL: [], _QUICK_LEVEL: []}
_library_numbers = itertools.count()
_library_locks: dict[str, threading.Lock] = {}  # by key
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_library_locks.clear)  # whose threads are not there


@functools.cache
def _llvm_once() -> llvm.LLVM:
    return llvm.LLVM()


def _llvm() -> llvm.LLVM:
    with _llvm_lock:
        return _llvm_once()


@functools.cache
def target() -> Target:
    """The host, or what `config.cpu` leaves of it; asked for once.

    Raises ValueError where the flag asks for more than the processor has.
    """
    config.cpu.fix("programs are compiled for it")
    key = None
    if processor.identity() is not None:
        # A later process on this machine learns it without loading LLVM.
        key = digest("target")
        known = cache_get(key)
        found = None if known is None else _target_of(known)
        if found is not None:
            return found
        if known is not None:
            cache_damaged(key, "it describes no processor")
    found = _host()
    if key is not None:
        cache_put(key, marshal.dumps([*found], 2))
    return found


def _target_of(data: bytes) -> Target | None:
    """The target that was written down, or None where that was something else."""
    try:
        fields = marshal.loads(data)
        kinds = [type(field) for field in fields]
    except MALFORMED:
        return None
    return Target(*fields) if kinds == [str, str, str, int] else None


@functools.cache
def features() -> frozenset[str]:
    """The features that the processor has, by LLVM's names, as `builder`'s modules take them."""
    return frozenset([name[1:] for name in target().features.split(",") if name[:1] == "+"])


def _host() -> Target:
    """`target` as LLVM describes it."""
    library = _llvm()
    features = {}
    for item in library.text("LLVMPY_GetHostCPUFeatures").split(","):
        if item:
            features[item[1:]] = item[0] == "+"
    if host.machine() in host.ARM:
        features["neon"] = True  # part of the architecture; not every system tells
    name = library.text("LLVMPY_GetHostCPUName")
    asked = config.cpu.value
    if asked != "native":
        features = processor.limited(features, asked)
        name = asked  # LLVM knows the levels as processors, of the time when they were new
    return Target(
        triple=host.object_triple(library.text("LLVMPY_GetProcessTriple")),
        cpu=name,
        features=",".join(("+" if on else "-") + name for name, on in sorted(features.items())),
        vector_bytes=64 if features.get("avx512f") else 32 if features.get("avx2") else 16,
    )


def vector_bytes() -> int:
    """Bytes in one vector register of the target: 64, 32 or 16."""
    return target().vector_bytes


def registers() -> int:
    """How many vector registers the target has: NEON 32, x86-64 16 below AVX-512."""
    return 32 if vector_bytes() == 64 or not target().triple.startswith("x86_64") else 16


# -- cache ---------------------------------------------------------------------------------


def _store() -> Store:
    return _store_in(config.cache_dir.value)


@functools.cache
def _store_in(named: str | None) -> Store:
    if not config.disk_cache.value or named == "":
        directory = None
    else:
        directory = os.path.abspath(named) if named else host.cache_directory()
    return Store(directory, config.cache_bytes.value)


def reopen_store() -> None:
    """Look at the cache's directory anew: it may have been emptied, or is another's now."""
    cache.flush()
    _store_in.cache_clear()


@functools.cache
def _salt() -> bytes:
    """What compiled code depends on beside its text: the compiler and the machine."""
    machine: tuple
    level = config.cpu.fix("programs are compiled for it")
    fenced = config.check_bounds.fix("programs are compiled with it or without")
    processor_is = processor.identity()
    if processor_is is None:
        described = _host()
        machine = (_llvm().version, described.triple, described.cpu, described.features)
        machine += (described.vector_bytes,)
    else:
        # The file stands for the version: LLVM would have to be loaded to tell it.
        file = os.stat(llvm.library_path())
        machine = (file.st_size, file.st_mtime_ns, host.SYSTEM, processor_is.hex(), level)
    return "\n".join(map(str, (CACHE_VERSION, *machine, fenced, _OPTIMIZATION_LEVEL))).encode()


def digest(text: str | bytes) -> str:
    """Hexadecimal BLAKE2 digest of `text`, the target, the generators and this cache's version."""
    data = text.encode() if isinstance(text, str) else text
    generator = b"\0"
    if config.direct_code.value:
        generator = f"\1{sources_digest('generator')}\n".encode()
    return host.blake2(b"".join((_salt(), generator, data))).hex()


def cache_get(key: str) -> bytes | None:
    """What `cache_put` stored under `key`, in this process or an earlier one, or None.

    `key` is a result of `digest`.
    """
    return _store().get(key)


def sources_digest(part: str) -> str | None:
    """What changes with the sources of a part of the package (`sources.PARTS`, `NATIVE`); None
    where they do not lie in files."""
    return sources.of(_store(), part)


def identity(*facts: object) -> str:
    """What native functions are kept under: their sources, and facts that they depend on."""
    return f"native functions {sources_digest('native') or _UNKNOWN} {facts!r}"


def cache_damaged(key: str, reason: object) -> None:
    """Say that what is kept under `key` cannot be read, and that it is made anew."""
    _store().damaged(key, reason)


def cache_put(key: str, data: bytes) -> None:
    """Keep `data` under `key` (a result of `digest`) in memory and on disk."""
    _store().put(key, data)


# -- compile -------------------------------------------------------------------------------


def compile_module(ir_text: str, *, verify: bool = False) -> bytes:
    """The object file for `ir_text` (one LLVM module), from the cache when it is there.

    verify: run LLVM's verifier before compiling (what is cached has compiled before).
    Invalid IR raises InternalError with LLVM's message.
    """
    key = digest(ir_text)
    data = _store().get(key)
    if data is None or not host.is_object(data):
        data = _compile(ir_text, verify=verify)
        _store().put(key, data)
    return data


def compile_once(ir_text: str, *, verify: bool = False) -> bytes:
    """The object file for `ir_text`, not kept: for those who keep it as a part of something."""
    return _compile(ir_text, verify=verify)


def written_directly() -> bool:
    """Whether the direct generator could make code for the target, wanted or not."""
    machine = target()
    return able(machine.triple, machine.features, machine.vector_bytes)


def direct() -> bool:
    """Whether the direct generator makes code for the target."""
    return config.direct_code.value and written_directly()


def generated(source: str | Written, *, kept: bool) -> bytes | None:
    """The object file of the direct generator, or None where LLVM has to make it.

    source: IR text, or a builder's module. kept: as by `compile_module`. It is Python's work: no
    other thread runs Python meanwhile.
    """
    if not direct():
        return None
    key = digest(source if isinstance(source, str) else source.text()) if kept else ""
    data = _store().get(key) if kept else None
    if data is None or not host.is_object(data):
        # Half of the package's compiler: loaded when there is something to compile.
        generate = importlib.import_module("numjet.cpu.x86.generate").generate
        try:
            data = generate(source, vector_bytes())
        except Exception as error:
            warnings.warn(
                f"the direct generator failed, LLVM compiles the module: {error!r}; please report "
                "it.", RuntimeWarning, stacklevel=2,
            )  # fmt: skip
            return None
        if kept and data is not None:
            _store().put(key, data)
    return data


def assembly(ir_text: str) -> str:
    """The assembly text `ir_text` compiles to on this target; not cached.

    Of the direct generator a listing of its instructions, which leaves out frames and copies.
    """
    if direct():
        listing = importlib.import_module("numjet.cpu.x86.listing").listing
        shown = listing(ir_text, vector_bytes())
        if shown is not None:
            return shown
    return _compile(ir_text, assembly=True).decode()


class _WithoutStrengthReduction:
    """While any thread is inside, LLVM leaves the addresses of loops as they are written.

    They are simple as the compiler writes them, and strength reduction is a quarter to a half of
    all code generation, for no gain. The option belongs to the process, where others may use LLVM.
    """

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._inside = 0

    def __enter__(self) -> None:
        self._change(1)

    def __exit__(self, *_: object) -> None:
        self._change(-1)

    def _change(self, by: int) -> None:
        with self._lock:
            was, self._inside = self._inside > 0, self._inside + by
            if was != (self._inside > 0):
                option = b"-disable-lsr=1" if self._inside else b"-disable-lsr=0"
                _llvm_once().lib.LLVMPY_SetCommandLine(b"numjet", option)


_without_strength_reduction = _WithoutStrengthReduction()


def _compile(
    ir_text: str, *, verify: bool = False, assembly: bool = False, quick: bool = False
) -> bytes:
    level = _QUICK_LEVEL if quick else _OPTIMIZATION_LEVEL
    machine = _take_machine(level)
    try:
        with _without_strength_reduction:
            return _llvm().machine_code(machine, ir_text, verify=verify, assembly=assembly)
    finally:
        _machines[level].append(machine)


def _take_machine(level: int = _OPTIMIZATION_LEVEL) -> int:
    try:
        return _machines[level].pop()
    except IndexError:
        pass
    library = _llvm()
    described = target()
    error = c_void_p()
    reference = library.lib.LLVMPY_GetTargetFromTriple(described.triple.encode(), byref(error))
    if not reference:
        raise InternalError(f"no LLVM target for {described.triple}: {library.take_string(error)}")
    relocation, model, _ = host.code_model()
    machine = library.lib.LLVMPY_CreateTargetMachine(
        reference, described.triple.encode(), described.cpu.encode(), described.features.encode(),
        level, relocation.encode(), model.encode(), 0, 1, b"",
    )
    if not machine:
        raise InternalError(f"LLVM has no machine {described.cpu} for {described.triple}")
    return machine


# -- link ----------------------------------------------------------------------------------


def define_symbol(name: str, address: int) -> None:
    """Let code loaded from now on refer to external symbol `name`; process-wide."""
    _symbols[name] = address


def defined_symbol(name: str) -> int | None:
    """The address given to `define_symbol`, or None."""
    return _symbols.get(name)


def provide(prefix: str, resolve: Callable[[str], int]) -> None:
    """Define symbols that begin with `prefix` (itself beginning with "nj_") when code needs them.

    resolve(name) -> address is called once a name, the first time an object refers to it.
    """
    _providers[prefix] = resolve


def resolve(names: Iterable[str]) -> None:
    """Define those of the symbols that somebody provides and that are not defined yet."""
    for name in names:
        if name in _symbols:
            continue
        for prefix, make in _providers.items():
            if name.startswith(prefix):
                _symbols[name] = make(name)


def combined(objects: Iterable[bytes]) -> list[bytes]:
    """Objects linked as far as that can be done once for all processes, for `load` and to be kept:
    one image, or the objects themselves where this system's linker is LLVM's."""
    parts = list(objects)
    if not parts or not host.maps_code() or loader.packed(parts[0]):
        return parts
    try:
        return [loader.combine(parts).pack()]
    except loader.Unsupported:
        return parts


# How code that is mapped is given back, by a number that its library has.
_releases: dict[int, Callable[[], None]] = {}
_numbers = itertools.count()


def _release(number: int, releases: dict = _releases) -> None:
    # The end of the process frees everything, and globals may be gone by then.
    if sys is not None and not sys.is_finalizing():
        release = releases.pop(number, None)
        if release is not None:
            release()


_held_by = handles(_release)


class Library:
    """Linked code. Its addresses are valid as long as the object lives, unless `leak`ed.

    addresses: those known; find(symbol) tells others; release() gives the memory back.
    """

    __slots__ = ("__weakref__", "_addresses", "_find", "_held")

    def __init__(
        self, addresses: dict[str, int], find: Callable[[str], int], release: Callable[[], None]
    ) -> None:
        self._addresses = addresses
        self._find = find
        number = next(_numbers)
        _releases[number] = release
        self._held = _held_by(number)

    def address(self, symbol: str) -> int:
        """Address of an exported function or variable of the library."""
        found = self._addresses.get(symbol)
        if found is None:
            found = self._addresses[symbol] = self._find(symbol)
        return found

    def leak(self) -> None:
        """Keep the code in memory for ever: threads may be inside when the process ends."""
        _releases.pop(self._held, None)


def load(objects: Iterable[bytes], exports: Sequence[str] = ()) -> Library:
    """Link object files, or what `combined` made of them, into one library.

    exports: symbols whose addresses are wanted at once (others are looked up when asked for).
    References are resolved among the objects, then among `define_symbol`s, then in the process.
    """
    parts = list(objects)
    if not (parts and loader.packed(parts[0])):
        parts = combined(parts)
    if parts and loader.packed(parts[0]):
        return _map(loader.unpack(parts[0]))
    library = _link(parts, exports)
    for name in exports:
        library.address(name)
    return library


def kept(key: str) -> Library | None:
    """`load` of what the cache has under `key`; None where that is nothing, or damaged, which is
    reported. Raises CodeRefused."""
    data = cache_get(key)
    if data is None:
        return None
    try:
        return load([data])
    except loader.CodeRefused:
        raise
    except (InternalError, *MALFORMED) as reason:
        cache_damaged(key, reason)
        return None


def library(ir_text: str, *, quick: bool = False) -> Library:
    """`load` of one module that stands alone, which is kept as it is linked.

    quick: in a third of LLVM's time to slower code, for what runs seldom or mostly waits.
    """
    return library_of(ir_text, lambda: ir_text, quick=quick)


def library_of(identity: str, text: Callable[[], str], *, quick: bool = False) -> Library:
    """`library` of a module that is written only when it is compiled. `identity` names all that
    its text depends on."""
    return kept(_library_key(identity, quick)) or load(
        [library_code(identity, quick=quick, text=text)]
    )


def _library_key(identity: str, quick: bool) -> str:
    return digest(("quick library " if quick else "library ") + identity)


def library_code(
    ir_text: str, *, quick: bool, text: Callable[[], str] | None
) -> bytes:
    """What `library` loads, and (with `text`, `ir_text` being an identity) `library_of`. Any thread
    may ask for it before it is needed."""
    key = _library_key(ir_text, quick)
    with _library_locks.setdefault(key, threading.Lock()):  # who asks meanwhile waits
        data = _store().get(key)
        if data is None:
            (data,) = combined([_compile(ir_text if text is None else text(), quick=quick)])
            _store().put(key, data)
    return data


def _map(image: loader.Image) -> Library:
    addresses = []
    for name in image.imports:
        address = _symbols.get(name)
        if address is None:
            resolve([name])
            address = _symbols.get(name)
        addresses.append(_in_process(name) if address is None else address)
    base = loader.place(image, addresses)
    places = {name: base + offset for name, offset in image.exports.items()}

    def find(symbol: str) -> int:
        raise loader.Malformed(f"symbol {symbol!r}: not in a library of {list(image.exports)}")

    return Library(places, find, functools.partial(loader.remove, base, len(image.content)))


@functools.cache
def _in_process(name: str) -> int:
    found = host.symbol_address(name)
    if found is None:
        raise InternalError(f"linking failed: nobody defines {name}")
    return found


# -- LLVM's linker, where objects are not ELF or not understood ------------------------------


def _imports(images: list[bytes]) -> dict[str, int]:
    """The defined and providable symbols that the objects may refer to, with their addresses."""
    # Names end with a zero byte in an object's string table: a cheap, generous test.
    for image in images:
        resolve([found.decode() for found in re.findall(_PROVIDABLE, image)])
    return {
        name: address
        for name, address in list(_symbols.items())
        if any(name.encode() + b"\0" in image for image in images)
    }


@functools.cache
def _linker_once() -> int:
    library = _llvm()
    error = c_void_p()
    machine = _take_machine()
    _, _, use_jitlink = host.code_model()
    linker = library.lib.LLVMPY_CreateLLJITCompiler(machine, False, use_jitlink, byref(error))
    _machines[_OPTIMIZATION_LEVEL].append(machine)
    if not linker:
        raise InternalError(f"LLVM's linker cannot start: {library.take_string(error)}")
    return linker


_linker_lock = locks.lock()


def _linker() -> int:
    with _linker_lock:
        return _linker_once()


def _link(images: list[bytes], exports: Sequence[str]) -> Library:
    library = _llvm()
    elements = (llvm.LinkElement * (len(images) + 1))()
    for element, image in zip(elements, images, strict=False):
        element.kind, element.value, element.length = llvm.OBJECT_IMAGE, image, len(image)
    elements[len(images)].kind = llvm.JIT_LIBRARY
    elements[len(images)].value = b""
    wanted = _imports(images)
    imports = (llvm.SymbolAddress * len(wanted))()
    for slot, (name, address) in zip(imports, wanted.items(), strict=True):
        slot.name, slot.address = name.encode(), address
    outputs = (llvm.SymbolAddress * len(exports))()
    for slot, name in zip(outputs, exports, strict=True):
        slot.name = name.encode()
    name_of_library = f"nj{next(_library_numbers)}".encode()
    error = c_void_p()
    tracker = library.lib.LLVMPY_LLJIT_Link(
        _linker(), name_of_library, elements, len(elements), imports, len(imports),
        outputs, len(outputs), byref(error),
    )
    if not tracker:
        raise InternalError(f"linking failed: {library.take_string(error).strip()}")
    trackers = [tracker]

    def find(symbol: str) -> int:
        error, value = c_void_p(), ctypes.c_uint64()
        found = library.lib.LLVMPY_LLJITLookup(
            _linker(), name_of_library, symbol.encode(), byref(value), byref(error)
        )
        if not found:
            raise InternalError(f"symbol {symbol!r}: {library.take_string(error).strip()}")
        trackers.insert(0, found)  # look-ups own code too, and go before the library
        return value.value

    def release() -> None:
        for owner in trackers:
            library.lib.LLVMPY_LLJIT_Dylib_Tracker_Dispose(owner, byref(c_void_p()))

    return Library({slot.name.decode(): slot.address for slot in outputs}, find, release)
