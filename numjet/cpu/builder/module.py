"""A module of LLVM IR text: functions, declarations, constant data.

For `builder`, which writes the functions. Names of tables are numbered in order of use, so that
equal programs have equal text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numjet.cpu.builder.text import Line, fma_name
from numjet.cpu.builder.types import Value, const


class Function(Protocol):
    """A function as `builder` writes it: what a module and its readers know of it."""

    name: str
    result: str
    local: bool
    glue: bool
    args: tuple[Value, ...]
    lines: list[Line]
    module: Module
    whole: Callable[[Any], None] | None

    def text(self) -> str: ...

    def finished(self) -> tuple[list[str], list[Line]]: ...


class Module:
    """Functions, declarations and constant data that become one LLVM module.

    `features`: the target's feature names ("avx512f", "fma"), as `link.features()` gives them. They
    only let generators choose between equivalent instruction sequences.
    """

    def __init__(self, features: frozenset[str]) -> None:
        self._features = features
        self.functions: list[Function] = []
        self.raw: list[str] = []
        self.fused: set[str] = set()  # types of multiply-adds
        self._declared: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._arrays: dict[str, str] = {}

    def has(self, feature: str) -> bool:
        """Whether the target has an instruction set extension."""
        return feature in self._features

    def converts_half(self) -> bool:
        """Whether the target has instructions between float and half: LLVM calls a library routine
        that is not there on x86 processors without them."""
        return self.has("f16c") or not self.has("sse2")

    def declare(
        self, name: str, result: str, arguments: Sequence[str], attributes: str = ""
    ) -> None:
        """Declare an external function (or intrinsic) `name`, once."""
        if name not in self._declared:
            self._declared[name] = (
                f"declare {result} @{name}({', '.join(arguments)}) {attributes}".rstrip()
            )

    def external(self, name: str) -> Value:
        """The address of an external symbol of data."""
        self._globals.setdefault(name, f"@{name} = external global i8")
        return Value(f"@{name}", "ptr")

    def variable(self, name: str, type: str, initial: str = "zeroinitializer") -> Value:
        """A mutable global variable private to the module; its address."""
        self._globals.setdefault(name, f"@{name} = internal global {type} {initial}, align 64")
        return Value(f"@{name}", "ptr")

    def array(self, values: Sequence[float | int], element: str) -> Value:
        """A constant table; equal tables are stored once. Returns its address (64-aligned)."""
        inner = ", ".join(f"{element} {const(v, element).ref}" for v in values)
        return self.constant(f"[{len(values)} x {element}] [{inner}]")

    def string(self, text: str) -> Value:
        """A zero-terminated UTF-8 string; its address."""
        data = text.encode() + b"\0"
        return self.constant(
            f'[{len(data)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'
        )

    def constant(self, initial: str) -> Value:
        """Constant data from its LLVM spelling (type and value); equal data is stored once."""
        name = self._arrays.get(initial)
        if name is None:
            name = self._arrays[initial] = f"table{len(self._arrays)}"
            self._globals[name] = f"@{name} = private unnamed_addr constant {initial}, align 64"
        return Value(f"@{name}", "ptr")

    def adopt(self, other: Module) -> None:
        """Take over the functions and declarations of a module that holds no data of its own."""
        if other._globals or other.raw:
            raise ValueError("builder: a module with data cannot be taken over by another")
        for function in other.functions:
            function.module = self
        self.functions += other.functions
        for name, line in other._declared.items():
            self._declared.setdefault(name, line)
        self.fused |= other.fused

    def symbols(self) -> set[str]:
        """What the module refers to that begins with "nj_", and is not its own."""
        found = {name for name in (*self._declared, *self._globals) if name.startswith("nj_")}
        return found.difference([function.name for function in self.functions])

    def text(self) -> str:
        """The module as LLVM assembly."""
        functions = [function.text() for function in self.functions]  # may declare more
        for type in sorted(self.fused):
            self.declare(fma_name(type), type, (type, type, type))
        defined = {function.name for function in self.functions}
        declared = [line for name, line in self._declared.items() if name not in defined]
        parts = [*self._globals.values(), *declared, *self.raw]
        return "\n".join([*parts, *functions]) + "\n"


def pause_ir(triple: str) -> tuple[str, str]:
    """LLVM IR telling the core that a thread spins: a declaration and a statement."""
    if triple.startswith(("x86_64", "i386", "i686")):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        # `yield` does nothing on most ARM cores; `isb` waits about as long as x86's pause.
        return "declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"
    return "", "fence syncscope(\"singlethread\") seq_cst"
