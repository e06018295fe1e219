"""The pipeline as data: what a pass is given is what its signature names."""

from __future__ import annotations

import inspect

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet.cpu import pipeline
from numjet.cpu.pipeline import EARLY, PIPELINE, Build
from numjet.cpu.regions.control import WAYS


def test_a_pass_is_given_the_parts_that_its_signature_names() -> None:
    for step in PIPELINE:
        assert tuple(inspect.signature(step.run).parameters) == step.parts, step.name
    for step in EARLY:
        assert tuple(inspect.signature(step.run).parameters) == ("steps", *step.parts), step.name


def test_what_is_early_is_compiled_before_the_program_is_whole() -> None:
    def f(x):
        return jnp.sort(jnp.sin(x) @ jnp.cos(x)).sum(0), jnp.cumsum(x, 1)

    closed = nj.make_jaxpr(f)(np.ones((40, 40), np.float32))
    modules: list = []
    build = Build(closed, (), modules.append, lambda: True)
    for step in PIPELINE:
        if step.name == "place":
            early = {function.name for module in modules for function in module.functions}
            assert early and early <= build.modules.written.keys() | {
                f.name for module in modules for f in module.functions if f.local
            }
        step.run(*[getattr(build, part) for part in step.parts])
    late = {function.name for module in modules for function in module.functions}
    assert early <= late
    # Without a compiler nothing is early, and all is one module.
    whole = pipeline.run(Build(closed))
    assert whole.modules.written.keys() and not whole.modules.beside.functions


def test_every_way_to_lower_a_region_has_a_reason() -> None:
    assert len({way.lower for way in WAYS}) == len(WAYS)
    assert all(way.why for way in WAYS)
