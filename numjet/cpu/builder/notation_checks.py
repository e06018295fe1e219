"""What a checked build of native code tests: addresses, declared classes, indices, exceptions.

For `notation_values`. Where a test fails, the process says what is wrong and in which line of the
native function, and ends: nobody could go on from there. Addresses of messages and functions stand
in the code itself, so that it is good for this process alone and never kept.
"""

from __future__ import annotations

import ast
import ctypes
from typing import Any

from numjet.cpu import host
from numjet.cpu.builder.builder import Value
from numjet.cpu.builder.records import layout_of

_messages: list[Any] = []  # code refers to them as long as the process lives
# Where a class says of which of the interpreter's own kinds its objects are: `tp_flags`.
_FLAGS_OFFSET = 168
_KINDS = {int: 24, list: 25, tuple: 26, dict: 29}


class Checks:
    """The tests of one function."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def holds(self, condition: Value, node: ast.AST, what: str) -> None:
        """Go on if `condition` holds."""
        b = self.writer
        code = b.translator.native.function.__code__
        line = getattr(node, "lineno", code.co_firstlineno)
        said = f"{code.co_filename}:{line}: {b.name}: {what}: {ast.unparse(node)}\n"
        message = ctypes.create_string_buffer(said.encode())
        _messages.append(message)
        good, bad = b.new_label("good"), b.new_label("bad")
        b.cond_br(condition, good, bad)
        b.block(bad)
        text, size = baked(ctypes.addressof(message)), len(message) - 1
        b.line(f"call i64 {baked(_c_function('write'))}(i32 2, ptr {text}, i64 {size})")
        b.line(f"call void {baked(_c_function('abort'))}()")
        b.unreachable()
        b.block(good)

    def address(self, x: Value, node: ast.AST) -> None:
        """An address is not NULL."""
        self.holds(self.writer.icmp("ne", x, 0), node, "NULL")

    def record(self, x: Value, kind: Any, node: ast.AST) -> None:
        """An address is not NULL, and what lies there is of the declared class."""
        self.address(x, node)
        cls = kind.python
        if cls is None:
            return
        b = self.writer
        offset, _ = layout_of(kind).field("type")
        type_of = b.load(b.gep(x, offset), "ptr")
        if cls in _KINDS:
            flags = b.load(b.gep(type_of, _FLAGS_OFFSET), "i64")
            right = b.icmp("ne", b.and_(flags, 1 << _KINDS[cls]), 0)
        else:
            right = b.icmp("eq", type_of, Value(baked(id(cls)), "ptr"))
        self.holds(right, node, f"not a {cls.__name__}")

    def element(self, base: Any, index: Value, whole: bool, node: ast.AST) -> None:
        """An index lies in an array; `whole`: one behind the last is right, too."""
        b = self.writer
        self.address(base.content, node)
        self.holds(b.icmp("sge", index, 0), node, "an index below zero")
        if base.length is not None:
            # Of unknown length (-1) all is right.
            inside = b.icmp("ule" if whole else "ult", index, base.length)
            self.holds(inside, node, "an index out of range")

    def span(self, base: Any, n: Value, node: ast.AST) -> None:
        """So many elements lie in an array."""
        b = self.writer
        self.holds(b.icmp("sge", n, 0), node, "a count below zero")
        if base.length is not None:
            self.holds(b.icmp("ule", n, base.length), node, "more elements than there are")

    def raised(self, made: Any, node: ast.Call) -> None:
        """After a call by its address: where there is an address an exception is not set."""
        b = self.writer
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if not name.startswith("Py") or name in ("PyErr_Clear", "PyErr_Occurred", *_UNCHECKED):
            return
        asked = baked(host.python_function("PyErr_Occurred"))
        occurred = b.put(("call", "ptr", asked, (), (), ""), "ptr")
        fine = b.icmp("eq", occurred, 0)
        if made.type is not None and made.content.type in ("ptr", "i64"):
            failed = 0 if made.content.type == "ptr" else -1
            fine = b.or_(fine, b.icmp("eq", made.content, b.const(failed, made.content.type)))
        self.holds(fine, node, "an exception is set after a call that seems to have worked")


# These are called with an exception set, or do not hold the interpreter's lock.
_UNCHECKED = ("Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread",
              "PyErr_SetString")  # fmt: skip


def baked(address: int) -> str:
    """An address of this process in LLVM IR."""
    return f"inttoptr (i64 {address} to ptr)"


def _c_function(name: str) -> int:
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
