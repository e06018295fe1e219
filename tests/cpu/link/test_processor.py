"""What a processor is, asked of itself: the same on each core, and what the system says of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from numjet.base import config
from numjet.cpu.link import link, processor

pytestmark = pytest.mark.skipif(
    processor.identity() is None, reason="this processor is described by LLVM alone"
)


def words() -> dict[tuple[int, int], list[int]]:
    """The identity read back: (leaf, subleaf) -> registers."""
    data = processor.identity()
    assert data is not None
    numbers = [int.from_bytes(data[k : k + 4], "little") for k in range(0, len(data), 4)]
    found, at = {}, 0
    for leaf, subleaf, registers in processor._LEAVES:
        if at < len(numbers) and numbers[at : at + 2] == [leaf, subleaf]:
            size = len(registers) + (leaf == 1)
            found[leaf, subleaf] = numbers[at + 2 : at + 2 + size]
            at += 2 + size
    assert at == len(numbers)
    return found


def test_each_core_answers_the_same():
    answers = []

    def ask(core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread
        answers.append(processor.identity.__wrapped__())

    for core in sorted(os.sched_getaffinity(0))[:8]:
        thread = threading.Thread(target=ask, args=(core,))
        thread.start()
        thread.join()
    assert answers and set(answers) == {processor.identity()}


def test_features_are_those_that_llvm_finds(monkeypatch):
    monkeypatch.setattr(config.cpu, "_global", "native")
    found = words()
    features = found[7, 0][0]
    _, _, _, saved = found[1, 0]
    # Leaf 7's ebx; the system saves a register's parts when the bits of `saved` are set.
    for bit, name, needs in ((5, "avx2", 6), (8, "bmi2", 0), (16, "avx512f", 0xE6)):
        has = bool(features >> bit & 1) and saved & needs == needs
        assert f"{'+' if has else '-'}{name}" in link._host().features.split(",")


def test_the_maker_is_a_name():
    first, third, second = (part.to_bytes(4, "little") for part in words()[0, 0])
    assert (first + second + third).decode().isalnum()


def features_of(level: str) -> set[str]:
    """The names that a level keeps of a processor with everything."""
    everything = {x: True for added in processor._LEVELS.values() for x in added.split()}
    kept = processor.limited({**everything, "avx512fp16": True, "sha": True}, level)
    return {name for name, on in kept.items() if on}


def test_levels_contain_each_other_and_nothing_else():
    v2, v3, v4 = (features_of(f"x86-64-v{k}") for k in (2, 3, 4))
    assert v2 < v3 < v4
    assert {"sse2", "sse4.2", "popcnt"} <= v2 and not {"avx", "fma", "avx2"} & v2
    assert {"avx2", "fma", "f16c", "bmi2"} <= v3 and not {"avx512f", "sha"} & v3
    assert {"avx512bw", "avx512vl"} <= v4 and "avx512fp16" not in v4


def test_levels_are_those_that_llvm_knows():
    """What LLVM turns on for a processor of that name is what the level keeps."""
    text = """define <8 x float> @f(<8 x float> %x, <8 x float> %y, <8 x float> %z) {
      %r = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %y, <8 x float> %z)
      ret <8 x float> %r
    }
    declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)"""
    if not link._host().triple.startswith("x86_64"):
        pytest.skip("levels of x86-64")
    for level in list(processor._LEVELS)[1:]:
        names = ",".join("+" + x for x in sorted(features_of(level) - processor._UNTOLD))
        made = [assembly(text, level, ""), assembly(text, level, names)]
        assert made[0] == made[1]
        assert ("vfmadd" in made[0]) == (level != "x86-64-v2")


def assembly(text: str, cpu: str, features: str) -> str:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu, features=features)
    return machine.emit_assembly(llvm.parse_assembly(text))


def test_more_than_the_processor_has_is_refused():
    with pytest.raises(ValueError, match="'x86-64-v3', but this processor has no avx2, bmi"):
        processor.limited({name: True for name in features_of("x86-64-v2") | {"avx"}}, "x86-64-v3")


def test_a_level_is_chosen_before_the_first_program():
    code = """
        import numjet as nj, numjet.numpy as jnp
        try:
            nj.config.update("cpu", "i386")
        except ValueError as error:
            assert "new enum value must be in ['native', 'x86-64-v2'" in str(error), error
        nj.config.update("cpu", "x86-64-v2")
        nj.jit(jnp.sin)(1.0)
        from numjet.cpu.link import link
        assert link.target().vector_bytes == 16 and not link.target().has("avx")
        nj.config.update("cpu", "x86-64-v2")
        for change in (lambda: nj.config.update("cpu", "native"), config.cpu("native").__enter__):
            try:
                change()
            except RuntimeError as error:
                assert "is 'x86-64-v2' and cannot become 'native': programs are" in str(error)
            else:
                raise AssertionError("accepted")
        assert nj.config.cpu == "x86-64-v2"
    """
    code = "from numjet.base import config\n" + textwrap.dedent(code)
    # The checked build compiles native code when it is imported.
    environment = {**os.environ, "NUMJET_CPU": "native", "NUMJET_NATIVE_CHECKS": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    environment["NUMJET_CPU"] = "x86-64-v9"
    done = subprocess.run(
        [sys.executable, "-c", "import numjet"], env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert "NUMJET_CPU='x86-64-v9': new enum value must be in" in done.stderr
