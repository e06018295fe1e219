"""Assembly of kernels as they are compiled for ARM64, on any machine: JSON, name -> text.

Run by `tests/cpu/test_neon.py` in a process of its own, since what the target is is remembered.
Libraries of kernels that a program starts are written into its text.
"""

from __future__ import annotations

import json

import llvmlite.binding as llvm
import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu import pipeline
from numjet.cpu.kernels import libraries
from numjet.cpu.link import link

ARM = link.Target("aarch64-unknown-linux-gnu", "generic", "+neon", 16)

PROGRAMS = {
    "elementwise": lambda x: jnp.exp(x) * jnp.sin(x),
    "sum": lambda x: jnp.sum(x * x),
    "columns": lambda x: (x * x).sum(0),
    "softmax": lambda x: nj.nn.softmax(x, 1),
    "small product": lambda x: x[:8, :8] @ x[:8, :8],
    "product": lambda x: jnp.tile(x, (4, 4)) @ jnp.tile(x, (4, 4)),
    "transpose": lambda x: x.T + 1,
    "running sum": lambda x: jnp.cumsum(x, 1),
    "sort": lambda x: jnp.sort(x, 1),
    "transform": lambda x: jnp.fft.rfft(x),
    "integers": lambda x: x.astype(jnp.int8) * 3,
    "half": lambda x: x.astype(jnp.float16) + 1,
    "random": lambda x: nj.random.bits(nj.random.key(0), x.shape),
    "loop": lambda x: lax.fori_loop(0, 30, lambda _, c: c * c + x, x),
}


def main() -> None:
    """Print what becomes of each program."""
    started: list[str] = []
    link.target, link.features = lambda: ARM, lambda: frozenset({"neon"})  # type: ignore
    libraries.start = lambda *symbols: started.extend(symbols)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(ARM.triple).create_target_machine(
        cpu=ARM.cpu, features=ARM.features, opt=1, reloc="pic", codemodel="small"
    )

    def assembly(text: str) -> str:
        return machine.emit_assembly(llvm.parse_assembly(text))

    found = {}
    for name, program in PROGRAMS.items():
        started.clear()
        build = pipeline.Build(nj.make_jaxpr(program)(np.ones((64, 64), np.float32)))
        pipeline.run(build)
        found[name] = assembly((build.modules.main or build.modules.module).text())
        for symbol in started:
            prefix, rest = libraries._parts(symbol)
            module = libraries._modules[prefix](rest)
            found[name] += assembly(module if isinstance(module, str) else module.text())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
