"""Linking of ELF objects without LLVM: references of every kind, and what is left to LLVM."""

import ctypes
import os
import struct

import pytest

from numjet.base.errors import InternalError
from numjet.cpu import host
from numjet.cpu.link import link, loader

pytestmark = pytest.mark.skipif(
    not (host.maps_code() and os.uname().machine == "x86_64"), reason="written for x86-64 Linux"
)

# Constants in code, tables of functions, variables with and without a value, an outer symbol
# called, its address loaded, and its address in a table.
RICH = """
@count = internal global i64 5
@zeros = internal global [600 x i64] zeroinitializer
@weights = private constant [3 x double] [double 0.5, double 2.0, double 8.0]
@calls = private constant [2 x ptr] [ptr @twice, ptr @nj_loader_outer]
@shared = global i64 7
declare i64 @nj_loader_outer(i64)
declare double @fmod(double, double)

define i64 @twice(i64 %x) {
  %y = shl i64 %x, 1
  ret i64 %y
}
define i64 @step() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  %p = getelementptr i64, ptr @zeros, i64 599
  %z = load i64, ptr %p
  %sum = add i64 %new, %z
  store i64 %new, ptr %p
  ret i64 %sum
}
define double @weigh(i64 %i) {
  %p = getelementptr double, ptr @weights, i64 %i
  %w = load double, ptr %p
  %y = fmul double %w, 3.25
  %z = call double @fmod(double %y, double 5.0)
  ret double %z
}
define i64 @choose(i64 %i, i64 %x) {
  %p = getelementptr ptr, ptr @calls, i64 %i
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  %z = call i64 @nj_loader_outer(i64 %y)
  ret i64 %z
}
define i64 @case(i64 %i) {
  switch i64 %i, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d
                                i64 4, label %e ]
a:
  %x = call i64 @nj_loader_outer(i64 50)
  ret i64 %x
b:
  ret i64 11
c:
  %v = load i64, ptr @shared
  ret i64 %v
d:
  ret i64 13
e:
  ret i64 %i
other:
  ret i64 -1
}
define ptr @outer() {
  ret ptr @nj_loader_outer
}
"""


def function(library, name, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(library.address(name))


@pytest.fixture(scope="module")
def outer():
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 100)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    link.define_symbol("nj_loader_outer", address)
    yield address
    del link._symbols["nj_loader_outer"]


def check_rich(library, outer):
    i64, f64 = ctypes.c_int64, ctypes.c_double
    step = function(library, "step", i64)
    assert [step(), step()] == [6, 7 + 6]
    weigh = function(library, "weigh", f64, i64)
    assert [weigh(i) for i in range(3)] == [1.625, 1.5, 1.0]
    choose = function(library, "choose", i64, i64, i64)
    assert [choose(0, 4), choose(1, 4)] == [108, 204]
    case = function(library, "case", i64, i64)
    assert [case(i) for i in range(-1, 6)] == [-1, 150, 11, 7, 13, 4, -1]
    assert function(library, "outer", ctypes.c_void_p)() == outer
    assert i64.from_address(library.address("shared")).value == 7


def test_references_of_every_kind(outer):
    data = link.compile_module(RICH, verify=True)
    kinds = {info & 0xFFFFFFFF for part in relocations(data) for _, info, _ in part}
    assert kinds >= {loader._ABSOLUTE_64, loader._RELATIVE_32, loader._CALL_32} and kinds & {9, 42}
    (kept,) = link.combined([data])
    assert loader.packed(kept)
    # Each load has variables of its own, and what was kept as bytes is as good as the objects.
    for objects in ([data], [kept], [kept]):
        check_rich(link.load(objects), outer)


def relocations(data):
    for section in loader._Object(data).sections:
        if section[1] == loader._RELA:
            yield loader._RELOCATION.iter_unpack(data[section[4] : section[4] + section[5]])


def test_only_sections_that_code_needs_are_in_the_image():
    image = loader._Object(link.compile_module(RICH))
    needed = {number for number, _ in image.parts()}
    left_out = {image.title(k) for k in range(len(image.sections)) if k not in needed}
    assert left_out >= {".symtab", ".strtab", ".eh_frame"}
    assert {image.title(number) for number in needed} >= {".text", ".data", ".bss"}


def test_llvm_links_what_this_does_not(outer, monkeypatch):
    def refuse(objects):
        raise loader.Unsupported("for the test")

    monkeypatch.setattr(loader, "combine", refuse)
    data = link.compile_module(RICH)
    assert link.combined([data]) == [data]
    check_rich(link.load([data]), outer)


def test_objects_share_symbols_but_not_local_ones():
    one = (
        "@local = internal global i64 1\n@both = global i64 30\ndeclare i64 @g()\n"
        "define i64 @f() { %x = call i64 @g() %y = load i64, ptr @local\n"
        "%z = add i64 %x, %y ret i64 %z }"
    )
    two = (
        "@local = internal global i64 2\n@both = external global i64\n"
        "define i64 @g() { %x = load i64, ptr @both %y = load i64, ptr @local\n"
        "%z = add i64 %x, %y ret i64 %z }"
    )
    library = link.load(link.combined([link.compile_module(text) for text in (one, two)]))
    assert function(library, "f", ctypes.c_int64)() == 33


def test_the_first_of_weak_definitions_counts():
    objects = [
        link.compile_module(f"define {kind} i64 @w() {{ ret i64 {k} }}\n"
                            f"define i64 @call{k}() {{ %x = call i64 @w() ret i64 %x }}")
        for k, kind in enumerate(["weak", "weak"])
    ]
    library = link.load(link.combined(objects))
    assert [function(library, f"call{k}", ctypes.c_int64)() for k in range(2)] == [0, 0]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("@t = thread_local global i64 1\ndefine ptr @f() { ret ptr @t }", "section"),
        ("@w = extern_weak global i64\ndefine ptr @f() { ret ptr @w }", "symbol w"),
        ("@c = common global i64 0\ndefine ptr @f() { ret ptr @c }", "symbol c"),
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 65535, ptr @f, ptr null }]\ndefine void @f() { ret void }",
            "section .ctors",
        ),
        ("@d = external hidden global i64\ndefine ptr @f() { ret ptr @d }", "relocation 2 to d"),
    ],
)
def test_what_is_left_to_llvm(text, reason):
    with pytest.raises(loader.Unsupported, match=reason):
        loader.combine([link.compile_module(text)])


def test_two_definitions_are_left_to_llvm_which_refuses_them():
    objects = [link.compile_module(f"define i64 @f() {{ ret i64 {k} }}") for k in range(2)]
    with pytest.raises(loader.Unsupported, match="symbol f"):
        loader.combine(objects)
    with pytest.raises(InternalError, match="linking failed.*f"):
        link.load(objects, ["f"])


@pytest.mark.parametrize(
    "change", [(0, b"MZ"), (4, b"\1"), (16, struct.pack("<H", 2)), (18, struct.pack("<H", 40))]
)
def test_other_formats_are_left_to_llvm(change):
    data = bytearray(link.compile_module("define i64 @f() { ret i64 1 }"))
    where, new = change
    data[where : where + len(new)] = new
    with pytest.raises(loader.Unsupported):
        loader.combine([bytes(data)])


def mappings(address):
    with open("/proc/self/maps") as file:
        for line in file:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if start <= address < end:
                return line.split()[1]
    return None


def test_memory_is_writable_or_executable_and_goes_with_the_library(outer):
    library = link.load([link.compile_module(RICH)])
    code, data = library.address("step"), library.address("shared")
    assert mappings(code) == "r-xp" and mappings(data) == "rw-p"
    before = host.unmap
    freed = []
    try:
        host.unmap = lambda base, size: (freed.append(range(base, base + size)),
                                             before(base, size))
        del library
    finally:
        host.unmap = before
    assert len(freed) == 1 and code in freed[0] and data in freed[0]


def test_a_leaked_library_stays():
    library = link.load([link.compile_module("define i64 @f() { ret i64 21 }")])
    address = library.address("f")
    library.leak()
    del library
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == 21


def test_refused_memory_is_an_error(monkeypatch):
    data = link.compile_module("define i64 @f() { ret i64 1 }")
    freed = []
    monkeypatch.setattr(host, "make_executable", lambda start, size: False)
    monkeypatch.setattr(host, "unmap", lambda base, size: freed.append(base))
    with pytest.raises(InternalError, match="refuses memory"):
        link.load([data])
    assert len(freed) == 1
    monkeypatch.setattr(host, "reserve", lambda size: None)
    with pytest.raises(InternalError, match="refuses memory"):
        link.load([data])


def test_programs_share_what_the_system_gave():
    host._spare.clear()
    first, second = host.reserve(1), host.reserve(2 * host.PAGE)
    assert second == first + host.PAGE
    ctypes.memset(second, 7, 2 * host.PAGE)
    host.unmap(first, 1)
    assert mappings(first) is None and mappings(second) == "rw-p"
    large = host.reserve(host._SPARE)
    assert mappings(large + host._SPARE - 1) == "rw-p" and not host._spare
    assert ctypes.string_at(second, 2 * host.PAGE) == b"\7" * 2 * host.PAGE
    host.unmap(second, 2 * host.PAGE)
    host.unmap(large, host._SPARE)


def test_references_within_code_for_arm() -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = """
    target triple = "aarch64-unknown-linux-gnu"
    @place = hidden global ptr null
    @bytes = hidden global [5000 x i8] zeroinitializer
    define ptr @read() { %x = load ptr, ptr @place
      ret ptr %x }
    define ptr @address() { ret ptr getelementptr (i8, ptr @bytes, i64 4500) }
    define ptr @call() section ".text.other" { %x = tail call ptr @read()
      ret ptr %x }
    """
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(
        reloc="pic", codemodel="small"
    )
    image = loader.combine([machine.emit_object(llvm.parse_assembly(text))])
    assert not image.imports and not image.words

    def word(name: str, number: int) -> tuple[int, int]:
        at = image.exports[name] + 4 * number
        return struct.unpack_from("<I", image.content, at)[0], at

    def page(name: str) -> int:
        """Where ADRP leads: 21 bits of pages, the lowest two in bits 29 and 30."""
        adrp, at = word(name, 0)
        assert adrp & 0x9F000000 == 0x90000000
        pages = adrp >> 29 & 3 | (adrp >> 5 & 0x7FFFF) << 2
        return (at & ~0xFFF) + ((pages ^ 1 << 20) - (1 << 20) << 12)

    ldr, _ = word("read", 1)
    assert ldr & 0xFFC00000 == 0xF9400000
    assert page("read") + 8 * (ldr >> 10 & 0xFFF) == image.exports["place"]
    add, _ = word("address", 1)
    assert add & 0xFFC00000 == 0x91000000
    assert page("address") + (add >> 10 & 0xFFF) == image.exports["bytes"] + 4500
    branch, at = word("call", 0)
    assert branch >> 26 == 0b000101
    assert at + 4 * ((branch & 0x3FFFFFF ^ 1 << 25) - (1 << 25)) == image.exports["read"]
