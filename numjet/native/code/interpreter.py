"""All that `native.operators` and `native.record` install: one module of code.

It refers to no symbol, so it can be mapped before anybody asks which processor this is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.native.code import (
    arrays,
    backward,
    deferral,
    files,
    finish,
    known,
    linear,
    operators,
    record,
    replay,
    walk,
)

PAIRS = ("plain", "reflected")  # kinds of operators that staged arrays have, too


def functions(kinds: Sequence[str]) -> list[Any]:
    """The functions. kinds: for each operator "plain", "reflected" (self is the right operand),
    "product", "unary", "index", or "update" (a method of `x.at[i]`)."""
    first_update = list(kinds).index("update")
    methods = [
        arrays.update_method(k) if kind == "update" else operators.operator(k, kind)
        for k, kind in enumerate(kinds)
    ]
    methods += [record.staged_operator(k, kind) for k, kind in enumerate(kinds) if kind in PAIRS]
    return [
        operators.function, arrays.where_function, arrays.at_get, arrays.at_index(first_update),
        *methods, record.record, record.user_line, record.caller_line, record.product,
        record.apply_staged, walk.describe, deferral.defer_plan, deferral.planned, finish.survey,
        finish.run_found,
        linear.process, linear.lifted, backward.record_key, backward.residuals, known.known_call,
        replay.replay_jvp, replay.replay_transposed, files.read_file,
    ]  # fmt: skip
