"""The examples of `examples/` over devices run: a few steps of them, on one process."""
from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from cpu_devices import cpu_devices

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    # Examples set it for a process that has not imported numjet yet.
    monkeypatch.setenv("NUMJET_NUM_CPU_DEVICES", "8")
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


@pytest.mark.parametrize("name, arguments", [
    ("transformer", ["--steps", "2"]),
    ("heat", []),
])  # fmt: skip
def test_examples_over_devices_run(
    name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:  # fmt: skip
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, "--out", str(picture), *arguments])
    with cpu_devices(8):
        module = example(name, monkeypatch)
        if name == "heat":
            monkeypatch.setattr(module, "FRAMES", (0, 5, 10, 15))
        module.main()  # says by its result whether it was trained, which it was not
    assert picture.stat().st_size > 10_000
    assert "1 process(es)" in capsys.readouterr().out
