"""The debugger of `debug.breakpoint`: the stack and its values, asked for line by line.

`breakpoint` notes the stack where the function is traced: traced values among its variables become
operands of a callback, which runs when the program comes there and opens the prompt. What would
break it: a variable that is changed in place between the two is shown as it is then.
"""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from numjet.api.callbacks import debug_callback, pure_callback
from numjet.api.derivatives.custom import custom_jvp
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import tree
from numjet.core.array import Array, as_array
from numjet.core.trace import Tracer, is_ours
from numjet.ops.arrange import stop_gradient

# One prompt at a time: callbacks of several devices and programs run in threads of their own.
_PROMPT = threading.RLock()
_BEFORE, _AFTER = 3, 2  # the lines that `list` shows around the current one


class _Frame:
    """One function on the stack: where it is, and its variables, of which traced ones are held as
    numbers of operands."""

    __slots__ = ("file", "line", "leaves", "names", "scope", "source", "start", "trees")

    def __init__(self, frame: Any, operands: list) -> None:
        self.file, self.line, self.scope = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        self.names, self.trees, self.leaves = [], [], []  # type: ignore[var-annotated]
        for name, value in frame.f_locals.items():
            leaves, structure = _leaves(value)
            self.names.append(name)
            self.trees.append(structure)
            self.leaves.append([_Operand.of(x, operands) for x in leaves])
        try:
            lines, start = inspect.getsourcelines(frame)
        except (OSError, TypeError):  # code that was no file
            lines, start = [], self.line
        self.source, self.start = "".join(lines), max(start, 1)

    def variables(self, values: list) -> dict[str, Any]:
        """The variables by name, with the operands' values."""
        return {
            name: tree.tree_unflatten(
                structure, [values[x.number] if type(x) is _Operand else x for x in leaves]
            )
            for name, structure, leaves in zip(self.names, self.trees, self.leaves, strict=True)
        }

    def listing(self) -> str:
        """The lines around the current one."""
        lines, now = self.source.split("\n"), self.line - self.start
        first = max(0, now - _BEFORE)
        shown = lines[first : now + _AFTER + 1]
        marks = ["->  " if k == now else "    " for k in range(first, first + len(shown))]
        text = "\n".join([mark + line for mark, line in zip(marks, shown, strict=True)])
        return f"> {self.file}({self.line})\n{text}"

    def at(self) -> str:
        """The file and line, and what stands there."""
        lines, now = self.source.split("\n"), self.line - self.start
        text = lines[now].strip() if now < len(lines) else ""
        return f'  File "{self.file}", line {self.line}\n    {text}'


class _Operand:
    """The place of a traced value among a callback's operands."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    @staticmethod
    def of(x: Any, operands: list) -> Any:
        if not (isinstance(x, Tracer) and isinstance(x, Array)):
            return x
        for number, known in enumerate(operands):
            if known is x:
                return _Operand(number)
        operands.append(x)
        return _Operand(len(operands) - 1)


def _leaves(value: Any) -> tuple[list, Any]:
    """The leaves of a variable; one that is no tree that can be taken apart is a leaf."""
    try:
        return tree.tree_flatten(value)
    except (TypeError, ValueError, RecursionError):
        return [value], tree.tree_structure(0)


def _stack(frame: Any, every: bool, most: int | None, operands: list) -> Iterator[_Frame]:
    """The functions on the stack, the innermost first. every: those of this package, and of the
    interpreter that started the script, too. most: how many; None for all."""
    count = 0
    while frame is not None and (most is None or count < most):
        file = frame.f_code.co_filename
        if every or not (is_ours(file) or file.startswith("<frozen ")):
            yield _Frame(frame, operands)
            count += 1
        frame = frame.f_back


class _Prompt(cmd.Cmd):
    """The commands; what is none of them is an expression that is printed."""

    prompt = "(jdb) "

    def __init__(
        self, frames: list[_Frame], values: list, stdin: TextIO | None, stdout: TextIO | None,
        completekey: str = "tab",
    ) -> None:  # fmt: skip
        super().__init__(completekey, stdin, stdout)
        self.use_rawinput = stdin is None
        self.frames, self.values, self.current = frames, values, 0

    def say(self, text: str) -> None:
        print(text, file=self.stdout)

    def evaluated(self, expression: str) -> Any:
        frame = self.frames[self.current]
        return eval(expression, {**frame.scope, **frame.variables(self.values)})  # noqa: S307

    def show(self, expression: str, written: Callable[[Any], str]) -> None:
        try:
            text = written(self.evaluated(expression))
        except Exception as error:  # whatever the expression raises is its value here
            told = "invalid syntax" if isinstance(error, SyntaxError) else error
            text = f"*** {type(error).__name__}: {told}"
        self.say(text)

    def default(self, line: str) -> None:
        """An expression by itself, and the end of the input."""
        self.show(line, repr)

    def do_p(self, arg: str) -> None:
        """p expression: evaluates the expression, and prints what it is."""
        self.show(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: evaluates the expression, and prints what it is over several lines."""
        self.show(arg, pprint.pformat)

    def do_list(self, _: str) -> None:
        """l(ist): the lines around the current one."""
        self.say(self.frames[self.current].listing())

    def do_bt(self, _: str) -> None:
        """bt, w(here): the stack, the current function last."""
        self.say("\n".join(["Traceback:", *[f.at() for f in reversed(self.frames)]]))

    def move(self, to: int, end: str) -> None:
        if 0 <= to < len(self.frames):
            self.current = to
        else:
            self.say(f"At {end} frame.")
        self.do_list("")

    def do_up(self, _: str) -> None:
        """u(p): to the function that called this one."""
        self.move(self.current + 1, "topmost")

    def do_down(self, _: str) -> None:
        """d(own): to the function that this one called."""
        self.move(self.current - 1, "bottommost")

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit, and the end of the input: SystemExit."""
        sys.exit(0)

    do_l, do_w, do_where, do_u, do_d = do_list, do_bt, do_bt, do_up, do_down
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit  # noqa: N815 - the name that cmd asks for


def enter(
    frame: Any, every: bool, most: int | None, ordered: bool, token: Any, options: dict
) -> Any:
    """`debug.breakpoint`, called from `frame`."""
    if most is not None and most < 1:
        raise ValueError(f"debug.breakpoint: num_frames must be at least 1, got {most}.")
    operands: list = []
    frames = list(_stack(frame, every, most, operands))
    stdin, stdout = options.pop("stdin", None), options.pop("stdout", None)

    def opened(*values: Any) -> None:
        with _PROMPT:
            found = [as_array(x) for x in values]
            _Prompt(frames, found, stdin, stdout, **options).cmdloop("Entering jdb:")

    if token is None:
        return debug_callback(opened, *[stop_gradient(x) for x in operands], ordered=ordered)
    leaves, structure = tree.tree_flatten(token)
    arrays = [as_array(x) for x in leaves]

    @custom_jvp
    def passed(arrays: list, values: list) -> Any:
        def run(arrays: list, values: list) -> Any:
            opened(*values)
            return arrays

        like = [ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
        return pure_callback(run, like, arrays, values, vmap_method="sequential")

    passed.defjvp(lambda primals, tangents: (passed(*primals), tangents[0]))
    return tree.tree_unflatten(structure, passed(arrays, [stop_gradient(x) for x in operands]))
