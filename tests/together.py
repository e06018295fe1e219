"""Work done on several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any


def together(work: Callable[[Any], Any], values: Iterable[Any]) -> None:
    """`work(value)` for each value, on a thread of its own; raises the first thing that one
    raised."""
    raised: list[BaseException] = []

    def run(value: Any) -> None:
        try:
            work(value)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
