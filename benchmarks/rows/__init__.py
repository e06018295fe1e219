"""The rows of the benchmark, one module a topic. Importing a module registers its rows, in the
order of the table."""

from __future__ import annotations

import importlib

TOPICS = (
    "startup",
    "eager",
    "dispatch",
    "elementwise",
    "reductions",
    "movement",
    "randomness",
    "products",
    "loops",
    "training",
    "science",
    "long",
    "memory",
)


def load_all() -> None:
    """Register every row."""
    for topic in TOPICS:
        importlib.import_module(f"rows.{topic}")
