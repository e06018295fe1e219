"""Differences that are accepted, each with its reason: JAX's answer is undefined or wrong there."""

from __future__ import annotations

from collections.abc import Callable

from comparison.cases import Case

Test = Callable[[Case, str, str], bool]


def named(*names: str, kinds: tuple[str, ...] = ()) -> Test:
    """These functions; `kinds`: beginnings of the kinds of difference, of any phase."""

    def test(case: Case, kind: str, text: str) -> bool:
        plain = kind.rsplit(": ", 1)[-1]
        return case.name in names and (not kinds or plain.startswith(kinds))

    return test


ACCEPTED: tuple[tuple[Test, str], ...] = (
    (named("numpy.empty", "numpy.empty_like", kinds=("value",)), "values of empty are undefined"),
)


def reason(case: Case, kind: str, text: str) -> str | None:
    """Why this difference is accepted; None when it is not."""
    return next((why for test, why in ACCEPTED if test(case, kind, text)), None)
