"""The entry of the native backend: `compile(closed_jaxpr, options) -> Executable`.

Called by the API layer (through `numjet.cpu.compile`). Options: `donate`, the indices of arguments
whose memory results may take over.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from time import perf_counter_ns
from typing import Any

from numjet.base import log, spans
from numjet.base.config import check_ir, disk_cache, log_compiles
from numjet.base.errors import InternalError
from numjet.base.undisturbed import undisturbed
from numjet.core.dtypes import physical
from numjet.core.jaxpr import ClosedJaxpr
from numjet.cpu import host, runtime
from numjet.cpu.builder import sources
from numjet.cpu.graph.forms import Forms
from numjet.cpu.graph.reroll import reroll
from numjet.cpu.link import link, loader
from numjet.cpu.link.jobs import Jobs
from numjet.cpu.program import cache as program_cache
from numjet.cpu.program.executable import Executable
from numjet.cpu.runtime.entry import RUN


def _compiler() -> Any:
    """The compiler proper: forty modules that a process with all programs on disk never loads."""
    return importlib.import_module("numjet.cpu.pipeline")


@functools.cache
def _readable() -> bool:
    return sources.readable()


def compile(closed_jaxpr: ClosedJaxpr, options: Mapping[str, Any] | None = None) -> Executable:
    """Native code for `closed_jaxpr`.

    options: {"donate": indices of donated arguments}. The result is called with a list of
    C-contiguous NumPy arrays (physical dtypes) and returns a list of fresh ones. Raises CodeRefused
    where memory may not become code, or the runtime's cannot be compiled.
    """
    donate = tuple((options or {}).get("donate", ()))
    if host.maps_code() and not host.executes_code():
        raise loader.CodeRefused(loader.REFUSED)
    if not _readable():
        raise loader.CodeRefused(sources.MISSING)

    with undisturbed:
        asked = closed_jaxpr
        forms = Forms.of_jaxpr(closed_jaxpr)
        if forms.foreign:
            closed_jaxpr = importlib.import_module("numjet.cpu.graph.users").expanded(closed_jaxpr)
            forms = Forms.of_jaxpr(closed_jaxpr)
        if forms.stored:
            closed_jaxpr = importlib.import_module("numjet.cpu.graph.storage").rewritten(
                closed_jaxpr
            )
            forms = Forms.of_jaxpr(closed_jaxpr)
        key = program_cache.key(closed_jaxpr, donate, forms)
        start = perf_counter_ns()
        data = None if key is None else link.cache_get(key)
        if key is not None and disk_cache.value:
            spans.looked_up(data is not None, start)
        if key is not None and data is not None:
            try:
                program = _loaded(closed_jaxpr, donate, data, forms)
                text = "Persistent compilation cache hit for 'jit_%s' with key %r"  # JAX's words
                log.compiling(log_compiles.value, text, (options or {}).get("name", ""), key)
                return _given(program, asked, closed_jaxpr, key)
            except loader.CodeRefused:
                raise
            except (InternalError, *link.MALFORMED) as reason:
                link.cache_damaged(key, reason)
        return _given(_compile(closed_jaxpr, donate, key, forms), asked, closed_jaxpr, key)


def _given(
    program: Executable, asked: ClosedJaxpr, compiled: ClosedJaxpr, key: str | None
) -> Executable:
    """The program, its results of the dtypes of the function that was asked for."""
    program.key = key
    if asked is not compiled:
        program.outs = _outs(asked)
    return program


def _outs(closed: ClosedJaxpr) -> list[tuple]:
    """Shapes and dtypes of the results."""
    return [(v.aval.shape, physical(v.aval.dtype)) for v in closed.jaxpr.outvars]


def _loaded(
    closed: ClosedJaxpr, donate: tuple[int, ...], data: bytes, forms: Forms
) -> Executable:
    """The program that was kept."""
    facts, consts, hosts, aliases, images = program_cache.unpack(
        data, lambda: reroll(closed, forms)
    )
    libraries = facts.get("libraries")
    if facts["providers"] and not (libraries and _linked(libraries)):
        for name in facts["providers"]:
            importlib.import_module(name)
    return _executable(closed, donate, images, consts, hosts, facts, aliases)


def _compile(
    closed: ClosedJaxpr, donate: tuple[int, ...], key: str | None, forms: Forms
) -> Executable:
    """Run the compiler, and keep the program under `key`."""
    modules = _Modules(kept=key is None)
    if link.defined_symbol(RUN) is None:
        # LLVM compiles what runs programs on other threads, while this one loads the compiler.
        for work in runtime.compile_ahead():
            modules.jobs.start(work)
    compiler = _compiler()
    built = compiler.Build(reroll(closed, forms), donate, modules.compile, modules.idle)
    try:
        compiler.run(built)
        if built.modules.main is not None:
            modules.compile(built.modules.main)
        facts = compiler.facts(built)
        images = link.combined(modules.images())
    except InternalError as error:
        import tempfile  # 6 ms, which a process without faults need not spend

        handle, path = tempfile.mkstemp(prefix="numjet-", suffix=".ll")
        with os.fdopen(handle, "w") as file:
            file.writelines(f"; {line}\n" for line in built.program.text().splitlines())
            file.write("\n".join([module.text() for module in modules.written]))
        raise InternalError(f"{error} The modules are in {path}; please report it.") from error
    finally:
        modules.jobs.close()
    facts["code_bytes"] = sum([len(image) for image in images])
    facts["providers"] = program_cache.providers(modules.symbols)
    if facts["providers"]:
        libraries = importlib.import_module("numjet.cpu.kernels.libraries")
        facts["libraries"] = libraries.keys(modules.symbols)
    if key is not None:
        data = program_cache.pack(built.closed, built.compilation, facts, images)
        if data is not None:
            link.cache_put(key, data)
    program = built.program
    return _executable(
        closed, donate, images, program.consts, program.hosts, facts, program.aliases
    )


class _Modules:
    """The modules of one program: compiled beside each other and beside their writer."""

    def __init__(self, kept: bool) -> None:
        self.compiler = link.compile_module if kept else link.compile_once
        self.jobs = Jobs()
        self.kept = kept
        self.direct = link.direct()  # all so far, and what comes too as far as is known
        self.written: list[Any] = []
        self.ready: list[bytes] = []
        self.symbols: set[str] = set()

    def compile(self, module: Any) -> None:
        """Begin to compile a builder's module."""
        self.symbols |= module.symbols()
        self.written.append(module)
        # Without LLVM it is this thread's work, which holds the interpreter all the while.
        image = link.generated(module, kept=self.kept)
        if image is None:
            self.direct, text = False, module.text()
            self.jobs.start(lambda: self.compiler(text, verify=check_ir.value))
        else:
            self.ready.append(image)

    def idle(self) -> bool:
        """Whether another thread would compile another module at once. What is kept under its text
        is cut into modules the same way each time."""
        return not self.kept and not self.direct and self.jobs.idle()

    def images(self) -> list[bytes]:
        """The machine code of all, once it is there."""
        return self.ready + [image for image in self.jobs.finish() if image is not None]


def _linked(libraries: Mapping[str, str]) -> bool:
    """Link the libraries of kernels that a cached program calls, symbol -> cache key, without the
    modules that write them; False where one is not in the cache."""
    for symbol, key in libraries.items():
        if link.defined_symbol(symbol) is None:
            library = link.kept(key)
            if library is None:
                return False
            library.leak()
            link.define_symbol(symbol, library.address("entry"))
    return True


def _executable(
    closed: ClosedJaxpr,
    donate: tuple[int, ...],
    images: list[bytes],
    consts: list,
    hosts: dict,
    facts: dict,
    aliases: dict,
) -> Executable:
    # Without what is remembered with it, this executable among that: it would hold itself.
    alone = ClosedJaxpr(closed.jaxpr.replace(), closed.consts)
    return Executable(
        images,
        consts=consts,
        hosts=hosts,
        facts=facts,
        texts=lambda: _texts(alone, donate),
        aliases=aliases,
        n_args=len(closed.jaxpr.invars),
        outs=_outs(closed),
    )


def _texts(closed: ClosedJaxpr, donate: tuple[int, ...]) -> dict[str, str]:
    """What a compiled program looks like, all of it in one module; made when somebody looks."""
    compiler = _compiler()
    build = compiler.run(compiler.Build(reroll(closed), donate))
    return {
        "program": build.program.text(),
        "llvm": build.llvm,
        "kernels": "\n\n".join(build.kernel_texts()),
    }
