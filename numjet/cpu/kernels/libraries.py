"""Libraries of kernels that serve every program: compiled once, cached on disk, linked on demand.

`provide(prefix, module)` says how the module of a symbol is written; it must define `entry`.
`start(symbol)` compiles it while the program that needs it is still being lowered: at once with the
direct generator, where its code is as good as LLVM's, else on another thread. For: `gemm`,
`matvec`, `vecmat`, sorts. What would break it: a module that refers to a symbol of its own prefix.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from numjet.cpu import host
from numjet.cpu.builder.module import Module
from numjet.cpu.link import link
from numjet.cpu.runtime import threads
from numjet.cpu.runtime.entry import RUNTIME

ENTRY = "entry"

_modules: dict[str, Callable[[str], Module | str]] = {}
_direct: dict[str, Callable[[str], bool]] = {}
_jobs: dict[str, _Job] = {}
_lock = threading.Lock()


def _key(symbol: str) -> str:
    sources = link.sources_digest("kernels")
    return link.digest(f"library {symbol} for {host.cpu_count()} cores {sources}")


def keys(symbols: set[str]) -> dict[str, str]:
    """The cache key of each symbol's library; empty unless libraries define all but the pool's."""
    wanted = sorted([symbol for symbol in symbols if not symbol.startswith(RUNTIME)])
    if not all(symbol.startswith(tuple(_modules)) for symbol in wanted):
        return {}
    return {symbol: _key(symbol) for symbol in wanted}


class _Job:
    """One symbol's library, being made or ready."""

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.ready = threading.Event()
        self.address = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Compile and link."""
        try:
            key = _key(self.symbol)
            library = link.kept(key)
            if library is None:
                prefix, rest = _parts(self.symbol)
                module = _modules[prefix](rest)
                made = link.generated(module, kept=False) if _direct[prefix](rest) else None
                if made is None:
                    text = module if isinstance(module, str) else module.text()
                    made = link.compile_module(text)
                (image,) = link.combined([made])
                link.cache_put(key, image)
                library = link.load([image])
            library.leak()
            self.address = library.address(ENTRY)
        except BaseException as failure:  # raised where the address is asked for
            self.failure = failure
        self.ready.set()


def _parts(symbol: str) -> tuple[str, str]:
    """The prefix and the rest of a symbol."""
    prefix = next(p for p in _modules if symbol.startswith(p))
    return prefix, symbol.removeprefix(prefix)


def provide(
    prefix: str,
    module: Callable[[str], Module | str],
    direct: Callable[[str], bool] = lambda rest: False,
) -> None:
    """Symbols `prefix` + rest are the entries of modules `module(rest)`, or of such IR text.

    direct(rest): whether the direct generator makes code for it that is as fast as LLVM's.
    """
    _modules[prefix], _direct[prefix] = module, direct
    link.provide(prefix, address)


def _job(symbol: str) -> tuple[_Job, bool]:
    with _lock:
        found = _jobs.get(symbol)
        if found is not None:
            return found, False
        made = _jobs[symbol] = _Job(symbol)
        return made, True


def start(*symbols: str) -> None:
    """Begin to make the libraries of `symbols`, on other threads; does nothing when repeated."""
    for symbol in symbols:
        job, fresh = _job(symbol)
        if not fresh:
            continue
        prefix, rest = _parts(symbol)
        generated = link.direct() and _direct[prefix](rest)
        if generated or link.cache_get(_key(symbol)) is not None:
            job.run()  # Python's work gains nothing by a thread, and linking is done by then
            continue
        threading.Thread(target=threads.parallel_for_address).start()
        threading.Thread(target=job.run).start()


def busy() -> bool:
    """Whether a library is being made."""
    return any([not job.ready.is_set() for job in list(_jobs.values())])


def address(symbol: str) -> int:
    """The address of `symbol`, once its library is there."""
    job, fresh = _job(symbol)
    if fresh:
        job.run()
    job.ready.wait()
    if job.failure is not None:
        with _lock:
            _jobs.pop(symbol, None)
        raise job.failure
    return job.address


def _forget_unfinished() -> None:
    """In a forked child: the threads that were at work are not there."""
    global _lock
    _lock = threading.Lock()
    for symbol in [name for name, job in _jobs.items() if not job.ready.is_set()]:
        del _jobs[symbol]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_unfinished)
