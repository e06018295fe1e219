"""numjet.debug: look into programs that run under transformations."""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from numjet.api.callbacks import (
    debug_callback as callback,
    debug_print as print,  # noqa: A004 - the public name
)
from numjet.core.deferred import Piece, pieces
from numjet.core.effects import DEBUG, ORDERED_DEBUG, HostEffect
from numjet.core.hooks import Sharded
from numjet.core.memo import MemoInfo, info
from numjet.core.trace import Tracer
from numjet.ops.constraint import inspect_sharding_p

log = functools.partial(print, _use_logging=True)


class DebugEffect(HostEffect):
    """What equations of debug.print and debug.callback do beside computing."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(DEBUG.name, DEBUG.io, DEBUG.ordered)


class OrderedDebugEffect(HostEffect):
    """The same of those with ordered=True."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ORDERED_DEBUG.name, ORDERED_DEBUG.io, ORDERED_DEBUG.ordered)


def breakpoint(  # noqa: A001 - the public name
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop where the program comes to this line, and ask what the stack's variables are.

    A prompt takes commands: `p` and `pp` print expressions of the variables, `list` the lines
    around, `up` and `down` go along the stack, `where` shows it, `continue` goes on, `quit` raises
    SystemExit; `help` names them all. backend: "cli", the one debugger that there is.
    filter_frames: without numjet's own functions. num_frames: how many of the innermost are kept,
    at least 1 (ValueError); None for all. ordered: in the order of other ordered calls. token:
    arrays that are handed on; it stops when they are computed, and not at all where the result is
    not used. kwargs: stdin and stdout, files instead of the terminal, and completekey, as of
    `cmd.Cmd`. Result: token.

    Under `vmap` it stops for each example, under differentiation at the primal values. Variables
    are shown as they were when the function was traced, traced ones with the values of the run.

    >>> import io
    >>> import numjet as nj
    >>> from numjet import debug
    >>> answers, asked = io.StringIO("p y + 1\\ncontinue\\n"), io.StringIO()
    >>> @nj.jit
    ... def f(x):
    ...     y = 2 * x
    ...     debug.breakpoint(stdin=answers, stdout=asked)
    ...     return y
    >>> _ = f(3.0).block_until_ready()
    >>> nj.effects_barrier()
    >>> print(asked.getvalue().rstrip())
    Entering jdb:
    (jdb) Array(7., dtype=float32)
    (jdb)
    """
    if not isinstance(backend, str | None):
        raise TypeError(f"debug.breakpoint: backend must be a name, got {backend!r}.")
    debugger = importlib.import_module("numjet.debugger")
    frame = sys._getframe(1)
    return debugger.enter(frame, not filter_frames, num_frames, ordered, token, kwargs)


def inspect_array_sharding(value: Any, *, callback: Callable) -> None:
    """Call `callback(sharding)` with where an array lives.

    value: an Array, or a traced value: then the callback is called once for each program that is
    made of the function, before it runs, with the layout that the partitioner gives the value,
    over axes of type Auto. callback: a function of the sharding.

    >>> from numjet import debug, numpy as jnp
    >>> seen = []
    >>> debug.inspect_array_sharding(jnp.zeros(2), callback=seen.append)
    >>> len(seen[0].device_set)
    1
    """
    if isinstance(value, Tracer):
        Sharded.marks, Sharded.inspects = Sharded.marks + 1, True
        inspect_sharding_p.bind(value, callback=callback)
    else:
        callback(value.sharding)


def memos() -> list[MemoInfo]:
    """What was learned and is remembered, largest first.

    Records of `name`, `size` (entries), `bound`, `hits` (None where they are not counted),
    `learned`, `dropped` and `bytes` (an estimate).

    Shortcuts for operands of shapes and dtypes that were met before. `numjet.clear_caches()`
    forgets them all.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> _ = jnp.sin(jnp.ones(3))
    >>> any(memo.size > 0 for memo in nj.debug.memos())
    True
    """
    return info()


def eager() -> list[Piece]:
    """What operations outside jit were run together lately, the last first.

    One `Piece` for each time that operations which had been written down (config.eager_fusion) were
    run: `operations`, their names in order; `kept`, how many results somebody held; `why` they ran
    ("read": a value was asked for; "a round of a loop", "so many operations", "so much memory": a
    piece ended there); `line`, of the user's program that asked; `how`: "compiled" now, "found",
    "one by one" where they change with each call, or "views" where there was nothing to compute;
    `milliseconds`. The last 256 are kept.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> x = jnp.ones(100_000)
    >>> total = float(jnp.sum(jnp.sin(x) * 2))
    >>> nj.debug.eager()[0].operations
    ('sin', 'mul', 'reduce_sum')
    """
    return [ran.piece() for ran in list(pieces)[::-1]]


def visualize_sharding(
    shape: Any,
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print which device holds which part of an array of one or two axes, as a table of text.

    shape: of the array; sharding: its layout. scale: how large the table of two axes is, 10 lines
    high for 1 and as wide as the array's shape says. min_width, max_width: bounds for the width of
    a cell and of the table, with its lines. use_color and color_map change nothing: the table has
    no colours. Raises ValueError for other numbers of axes.

    >>> import numjet as nj
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> nj.debug.visualize_sharding((4,), layout)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(
            f"visualize_sharding: shows arrays of one or two axes, got shape {shape}."
        )
    cells: dict[tuple, list[int]] = {}
    for device, index in sharding.indices(shape):
        place = tuple([s.indices(n)[0] for s, n in zip(index, shape, strict=True)])
        cells.setdefault(place if len(place) == 2 else (0, *place), []).append(device.id)
    rows, columns = (sorted({place[i] for place in cells}) for i in (0, 1))
    texts = {place: "CPU " + ",".join(map(str, sorted(ids))) for place, ids in cells.items()}
    high, wide = 1, 0
    if len(shape) == 2:
        high = max(int(10 * scale) // len(rows) - 1, 1)
        square = int(10 * scale * shape[1] / max(shape[0], 1))  # characters are higher than wide
        wide = int(2.5 * square) // len(columns) - 2
    width = max(wide, min_width - 2, *[len(text) for text in texts.values()])
    widths = [width] * len(columns)
    room = max(max_width - len(columns) - 1, len(columns))
    if sum(widths) > room:
        each, more = divmod(room, len(columns))
        widths = [each + (i < more) for i in range(len(columns))]
    builtins.print(_table(
        [[texts[row, column] for column in columns] for row in rows], widths, high
    ))  # fmt: skip


_BOXES = "┌┬┐├┼┤└┴┘─│"
_PLAIN = "+++++++++-|"


def _table(rows: list[list[str]], widths: list[int], high: int) -> str:
    """Texts in cells of these widths, so many lines high, with lines between them."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        _BOXES.encode(encoding)
        signs = _BOXES
    except UnicodeEncodeError:
        signs = _PLAIN
    dash, bar = signs[9], signs[10]
    lines = [
        signs[i] + signs[i + 1].join([dash * width for width in widths]) + signs[i + 2]
        for i in (0, 3, 6)
    ]
    found = [lines[0]]
    for row in rows:
        if len(found) > 1:
            found.append(lines[1])
        for i in range(high):
            shown = row if i == (high - 1) // 2 else [""] * len(row)
            cells = [f"{text:^{width}}" for text, width in zip(shown, widths, strict=True)]
            found.append(bar + bar.join(cells) + bar)
    return "\n".join([*found, lines[2]])


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print which device holds which part of an array, as a table: `visualize_sharding`.

    arr: a concrete array of one or two axes. kwargs: options of visualize_sharding.

    >>> from numjet import debug, numpy as jnp
    >>> debug.visualize_array_sharding(jnp.zeros(4))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(arr.shape, s, **kwargs))


def explain_sharding(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The program of one device that the partitioner makes of `fun`, with the collectives in it.

    fun: a function of pytrees of arrays; args, kwargs: arguments with shardings, or
    ShapeDtypeStructs that have them. Result: an object that prints as the program; its records are
    in `api.compiled.explain`.

    >>> import numjet as nj
    >>> from numjet import debug, numpy as jnp
    >>> layout = nj.NamedSharding(nj.make_mesh((1,), ("x",)), nj.P("x"))
    >>> x = nj.device_put(jnp.arange(2.0), layout)
    >>> text = str(debug.explain_sharding(jnp.sum, x))
    """
    explain = importlib.import_module("numjet.api.compiled.explain")
    return explain.explain_sharding(fun, *args, **kwargs)


__all__ = [
    "explain_sharding",
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "eager",
    "inspect_array_sharding",
    "log",
    "memos",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]


def __dir__() -> list[str]:
    return [*__all__]
