"""What a processor is, asked of itself: the same on each core, and what the system says of it."""

from __future__ import annotations

import os
import threading

import pytest

from numjet.cpu import link, processor

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
    monkeypatch.delenv("NUMJET_VECTOR_BYTES", raising=False)
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
