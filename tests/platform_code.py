"""What the runtime's threads call on another system: prints JSON, part -> external symbols.

    python platform_code.py linux|darwin|win32

Run by `tests/cpu/test_platforms.py`. LLVM makes an object of each part for that system.
"""

from __future__ import annotations

import importlib
import json
import sys

import llvmlite.binding as llvm

from numjet.cpu import host
from numjet.cpu.builder import module, notation

TRIPLES = {
    "linux": "aarch64-unknown-linux-gnu",
    "darwin": "arm64-apple-darwin23",
    "win32": "x86_64-pc-windows-msvc-elf",
}


def main(system: str) -> None:
    """Print the symbols."""
    host.LINUX, host.MACOS, host.WINDOWS = [system == name for name in TRIPLES]
    relocation, model, _ = host.code_model()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLES[system]).create_target_machine(
        reloc=relocation, codemodel=model
    )
    found = {}
    for part in ("threads", "events", "programs"):
        code = importlib.import_module(f"numjet.cpu.runtime.code.{part}")
        pause = module.pause_ir(TRIPLES[system])
        made = llvm.parse_assembly(notation.module_text(code.functions(), pause=pause))
        assert machine.emit_object(made)
        names = [f.name for f in made.functions if f.is_declaration]
        found[part] = [name for name in names if not name.startswith("llvm.")]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
