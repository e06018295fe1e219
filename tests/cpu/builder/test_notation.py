"""The notation for native code: compiled functions do what the same functions do as Python."""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import py_compile
import random
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import numjet
from numjet.base.errors import InternalError
from numjet.cpu import backend
from numjet.cpu.builder import notation_source
from numjet.cpu.builder.notation import module_text
from numjet.cpu.builder.notation_values import NotationError
from numjet.cpu.builder.records import (
    ACQUIRE,
    NULL,
    RELAXED,
    SEQUENTIAL,
    Array,
    Double,
    External,
    Inline,
    Int,
    Int8,
    Int32,
    Pointer,
    Record,
    Single,
    Static,
    atomic_add,
    atomic_exchange,
    atomic_load,
    atomic_store,
    below,
    clear,
    compare_exchange,
    copy,
    fence,
    layout_of,
    lshr,
    native,
    place,
    stack,
    stack_of,
    stack_records,
)
from numjet.cpu.link import link

LIMIT = 7


class Point(Record):
    x: Int
    weight: Double
    flag: Int8
    small: Int32
    part: Single
    next: Point


class Row(Record):
    sized = {"values": "count"}
    count: Int
    values: Inline[Int]


class Lock(Record):
    word: Int32
    total: Int


class Visitor(Record):
    visit: Callable[[Int, Pointer], Int]
    given: Pointer


STATE = Static(Lock, "lock_of_the_test", {"word": -1})
absolute = External("labs", Callable[[Int], Int])


@native
def arithmetic(a: Int, b: Int, n: Int) -> Int:
    c = Int(a * b) ^ (a >> 3) | (b & 255)
    c = Int(c + lshr(a, 60) - (b << 2))
    if n > 0:
        c = Int(c - (a // n)) + b % n if a >= 0 and b >= 0 else -c
    return Int(~c) if below(a, b) else min(c, max(a, LIMIT))


@native
def conditions(a: Int, b: Int, c: Int) -> Int:
    if a < b and (b < c or not a == c) and not (a == 0 or c == 0):
        return 1
    elif a == b or b == c:
        return 2
    return Int(a != b) + 10 * Int(b <= c)


@native
def loops(n: Int, m: Int) -> Int:
    total = 0
    for i in range(n):
        if i % 3 == 1:
            continue
        k = 0
        while True:
            k += 1
            if k > m:
                break
            total = total + i * k
        for _ in range(k, 0, 1):
            total = -1
        for j in range(2, m, 2):
            if j > 6:
                break
            total += j
    return total


@native
def choices(x: Int) -> Int:
    y = 0
    match x:
        case 0:
            y = 5
        case 1 | 2:
            if x == 2:
                return 20
            y = 6
        case 3:
            pass
        case _:
            y = -1
    return y + x


@native
def fields(p: Point, n: Int) -> Double:
    sum = 0.0
    at: Point = p
    while at != NULL and n > 0:
        sum = sum + at.weight * Double(at.x) + Double(at.part)
        at.small = at.small + at.flag
        at.flag = Int8(at.flag + n)
        at.part = Single(at.weight)
        at = at.next
        n -= 1
    return sum


@native
def rows(r: Row, out: Array[Int]) -> Int:
    own = stack(Int, r.count)
    fixed = stack(Int, 4)
    clear(fixed, 4)
    copy(own, r.values, r.count)
    for k in range(r.count):
        out[k] = own[r.count - 1 - k]
        fixed[k & 3] += own[k]
    copy(out[r.count:], fixed, 4)
    pairs = stack_records(Lock, 3)
    for k in range(3):
        pairs[k].word = k
        pairs[k].total = fixed[k]
    one = stack_of(Lock)
    one.total = pairs[2].total + pairs[1].word
    return one.total


@native
def atomics(p: Lock, x: Int) -> Int:
    atomic_store(place(p, "total"), x, RELAXED)
    before = atomic_add(place(p, "total"), 5, SEQUENTIAL)
    seen = compare_exchange(place(p, "word"), 3, x, SEQUENTIAL, RELAXED)
    fence(SEQUENTIAL)
    was = atomic_exchange(place(p, "total"), before + 1, SEQUENTIAL)
    STATE.word = STATE.word + 1
    return was * 1000 + seen * 10 + atomic_load(place(p, "word"), ACQUIRE) + STATE.word


@native
def visits(v: Visitor, n: Int) -> Int:
    total = 0
    for k in range(n):
        total += v.visit(k, v.given)
    return total + absolute(-n)


@native
def doubled(x: Int, given: Pointer) -> Int:
    return x * 2 + Array[Int](given)[0]


@native
def visit_own(n: Int, given: Pointer) -> Int:
    v = stack_of(Visitor)
    v.visit = doubled
    v.given = given
    return visits(v, n) + doubled(n, given)


FUNCTIONS = [arithmetic, conditions, loops, choices, fields, rows, atomics, visits, visit_own]


@pytest.fixture(scope="module", params=["plain", "checked"])
def compiled(request):
    checked = request.param == "checked"
    text = module_text(FUNCTIONS, checked=checked)
    code = link.load([link.compile_once(text, verify=True)])
    code.leak()
    types = {Int: ctypes.c_int64, Double: ctypes.c_double}

    def function(f):
        kinds, result = f.types()
        of = [types.get(kind, ctypes.c_void_p) for kind in kinds]
        return ctypes.CFUNCTYPE(types[result], *of)(code.address(f.name))

    return {f.name: function(f) for f in FUNCTIONS}


NUMBERS = [0, 1, -1, 2, 3, 7, 8, 255, -256, 2**31, -(2**31) - 1, 2**62, -(2**63), 2**63 - 1]


def test_arithmetic_and_conditions(compiled) -> None:
    draw = random.Random(3)
    for _ in range(400):
        a, b, c = (draw.choice([*NUMBERS, draw.getrandbits(63)]) for _ in range(3))
        assert compiled["conditions"](a, b, c) == conditions(a, b, c)
        n = draw.choice([0, 3, 7, -2])
        if n > 0 and b < 0:  # the remainder of a negative number has another sign in Python
            b = 5
        assert compiled["arithmetic"](a, b, n) == arithmetic(a, b, n)


def test_control_flow(compiled) -> None:
    for n in range(6):
        for m in range(9):
            assert compiled["loops"](n, m) == loops(n, m)
    for x in range(-2, 6):
        assert compiled["choices"](x) == choices(x)


def points(n: int):
    size = layout_of(Point).size
    memory = (ctypes.c_char * (n * size))()
    first = ctypes.addressof(memory)
    for k in range(n):
        p = Point(first + k * size)
        p.x, p.weight, p.flag, p.small, p.part = k - 2, 0.5 * k, k, 100 * k, 1.5
        p.next = Point(first + (k + 1) * size) if k + 1 < n else NULL
    return memory, first


def test_fields_of_every_width(compiled) -> None:
    for n in (1, 4):
        (_one, at_one), (_two, at_two) = points(n), points(n)
        assert compiled["fields"](at_one, 9) == fields(at_two, 9)
        size = layout_of(Point).size
        for k in range(n):
            p, q = Point(at_one + k * size), Point(at_two + k * size)
            assert (p.flag, p.small, p.part) == (q.flag, q.small, q.part)


def test_arrays_records_and_the_stack(compiled) -> None:
    held = np.array([5, 3, 1, 4, 1, 5], np.int64)
    one, two = np.zeros(9, np.int64), np.zeros(9, np.int64)
    found = compiled["rows"](held.ctypes.data, one.ctypes.data)
    assert found == rows(held.ctypes.data, two.ctypes.data)
    assert (one == two).all() and list(one[:5]) == [5, 1, 4, 1, 3]


def test_atomic_operations(compiled) -> None:
    for x, word in ((4, 3), (9, 2)):
        one, two = np.array([word, 0], np.int64), np.array([word, 0], np.int64)
        STATE.word = -1
        runs = compiled["atomics"](one.ctypes.data, x), atomics(two.ctypes.data, x)
        # The module's own record counts its calls.
        assert runs[0] - runs[1] == (0 if x == 4 else 1) and (one == two).all()


def test_functions_by_their_addresses(compiled) -> None:
    given = np.array([100], np.int64)
    for n in (0, 3):
        assert compiled["visit_own"](n, given.ctypes.data) == visit_own(n, given.ctypes.data)


@native
def unknown_name(x: Int) -> Int:
    y = x + 1
    return nowhere(y)  # noqa: F821


@native
def wrong_type(p: Point) -> Int:
    return p.next


@native
def no_field(p: Point) -> Int:
    return p.colour


@native
def unset(x: Int) -> Int:
    if x > 0:
        y = 1
    return y


@native
def open_end(x: Int) -> Int:
    if x > 0:
        return 1


@native
def outside(x: Int) -> Int:
    return sum([x])


@pytest.mark.parametrize(
    ("function", "line", "said"),
    [
        (unknown_name, 2, "nowhere is nothing"),
        (wrong_type, 1, "a Int is needed, and this is a Point"),
        (no_field, 1, "Point has no field colour"),
        (unset, 3, "y may have no value here"),
        (open_end, 0, "may end without a value"),
        (outside, 1, "sum is nothing that native code can call"),
    ],
)
def test_an_error_names_the_line(function, line: int, said: str) -> None:
    with pytest.raises(NotationError, match=said) as raised:
        module_text([function])
    first = function.function.__code__.co_firstlineno + 1
    assert f"{__file__}:{first + line}: {function.name}: " in str(raised.value)


@native
def over_the_end(n: Int) -> Int:
    values = stack(Int, 2)
    values[n] = 1
    return values[n]


@native
def through_nothing(n: Int) -> Int:
    p = Point(n)
    return p.x if n < 2 else 0


@pytest.mark.parametrize(
    ("name", "good", "bad", "said"),
    [("over_the_end", 1, 2, "an index out of range"), ("through_nothing", 2, 0, "NULL")],
)
def test_a_checked_build_ends_the_process_with_the_line(name, good: int, bad: int, said: str):
    script = (
        "import ctypes, importlib.util as u, sys\n"
        f"spec = u.spec_from_file_location('notation_case', {__file__!r})\n"
        "case = sys.modules['notation_case'] = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(case)\n"
        f"text = case.module_text([case.{name}], checked=True)\n"
        "code = case.link.load([case.link.compile_once(text)])\n"
        f"f = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address({name!r}))\n"
        f"f({good}); print('fine', flush=True); f({bad})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "fine\n" and done.returncode == -6
    assert said in done.stderr and f"{name}: " in done.stderr and __file__ in done.stderr


def test_where_there_are_no_sources_native_code_is_left_out(tmp_path) -> None:
    """As where only .pyc files are installed."""
    from numjet.cpu.builder import sources

    assert sources.readable()
    kept = tmp_path / "sources.pyc"
    py_compile.compile(sources.__file__, cfile=str(kept))
    spec = importlib.util.spec_from_file_location("numjet.cpu.builder.sources", kept)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    assert not found.readable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "_readable", found.readable)
        closed = numjet.make_jaxpr(lambda x: x + 1)(1.0)
        with pytest.raises(InternalError, match="compiled from numjet's .py files"):
            backend.compile(closed)


def test_a_tree_that_another_thread_disturbed_is_made_again(monkeypatch):
    results = [SystemError("AST constructor recursion depth mismatch"), ast.parse("x = 1")]

    def parse(text):
        found = results.pop(0)
        if isinstance(found, SystemError):
            raise found
        return found

    monkeypatch.setattr(notation_source.ast, "parse", parse)
    assert isinstance(notation_source.syntax_tree("x = 1"), ast.Module) and not results


def test_a_file_that_changed_since_it_was_imported_is_no_source(tmp_path) -> None:
    text = "from numjet.cpu.builder.records import Int, native\n@native\ndef {}(x: Int) -> Int:\n"
    for name, after in (("other", "changed"), ("moved", "\n\nx = 1\n")):
        file = tmp_path / f"{name}_code.py"
        file.write_text(text.format(name) + "    return x\n")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        file.write_text(text.format(after) + "    return x\n" if after == "changed" else after)
        with pytest.raises(notation_source.NoSource, match="_code.py has changed"):
            notation_source.source_of(getattr(module, name))
